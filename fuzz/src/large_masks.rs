//! The CPU engine against the reference: masks of up to 63 x 63 built from bytes, of many shapes.

use super::engine_case::{Case, HEAD};
use framepipe::filter::{Filter, MAX_MASK, Mask};

/// Products of the mask and the frame, for the reference's sake.
const MOST_WORK: usize = 600_000;

/// A mask from its width and height, a shape, a divisor and the bytes of its weights, used in turn.
fn mask(head: &[u8], bytes: &[u8]) -> Option<Mask> {
    let side = |b: u8| usize::from(b) % MAX_MASK.div_ceil(2) * 2 + 1;
    let (width, height) = (side(head[0]), side(head[1]));
    let weight = |at: usize| i64::from(bytes[at % bytes.len()] as i8);
    let (middle_x, middle_y) = (width / 2, height / 2);
    let mut weights = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            let (folded_x, folded_y) = (x.abs_diff(middle_x), y.abs_diff(middle_y));
            weights.push(match head[2] % 8 {
                // Any weights.
                0 => weight(y * width + x),
                // A product of a row and a column, and the same with mirror images.
                1 => weight(x) * weight(width + y),
                2 => weight(folded_x) * weight(middle_x + 1 + folded_y),
                // Mirror images only; a half turn only.
                3 => weight(folded_y * (middle_x + 1) + folded_x),
                4 => {
                    let at = y * width + x;
                    weight(at.min(width * height - 1 - at))
                }
                // A product with one weight off.
                5 => weight(x) * weight(width + y) + i64::from((x, y) == (0, middle_y)),
                // Few weights in much nothing.
                6 => match weight(y * width + x) {
                    w if w % 16 == 0 => w / 16,
                    _ => 0,
                },
                // All the same.
                _ => weight(0),
            });
        }
    }
    match (head[3], weights.iter().sum::<i64>()) {
        (0, 0) => None,
        (0, sum) => Mask::from_integers(width, height, weights, sum).ok(),
        (1..0x80, _) => Mask::from_integers(width, height, weights, i64::from(head[3])).ok(),
        // Without the knowledge that they are integers.
        (scale, _) => {
            let weights = weights
                .iter()
                .map(|&w| w as f64 / f64::from(scale) / 64.0)
                .collect();
            Mask::new(width, height, weights).ok()
        }
    }
}

pub fn run(data: &[u8]) {
    let Some((head, rest)) = data.split_at_checked(HEAD) else {
        return;
    };
    let Some((shape, bytes)) = rest.split_at_checked(5) else {
        return;
    };
    if bytes.is_empty() {
        return;
    }
    let Some(mask) = mask(shape, bytes) else { return };
    let case = Case::new(head, (96, 24));
    if mask.width() * mask.height() * case.samples() > MOST_WORK {
        return;
    }
    let bias = f64::from(shape[4] as i8) / 4.0;
    let label = format!("{mask}, shape {}, divisor {}", shape[2] % 8, shape[3]);
    let filter = Filter::of_mask(label, mask);
    case.check_cpu(vec![Filter { bias, ..filter }]);
}
