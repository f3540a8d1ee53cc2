//! Gray of RGB: its luma, by the weights that `--planes gray` takes, too. swscale takes those of BT.601.
//!
//! ```text
//!   Y = floor((kr R + kg G + kb B) most / (2^16 most before) + 1/2)
//! ```

use crate::frame::{Channel, ColourModel, Frame, PixelFormat};

/// True if samples go from one format to the other here.
pub(super) fn is_luma(from: PixelFormat, to: PixelFormat) -> bool {
    let is_integer = !from.is_float() && !to.is_float();
    is_integer && (from.model(), to.model()) == (ColourModel::Rgb, ColourModel::Gray)
}

/// Fills `to` with the luma of `from`, which has its size. `weights` are those of red, green and blue, times
/// 2^16. Alpha that `from` lacks is opaque.
pub(super) fn fill(from: &Frame, weights: [u32; 3], to: &mut Frame) {
    let (before, format) = (from.format(), to.format());
    let (width, height) = (from.layout().width(), from.layout().height());
    let most = u64::from(format.max_value());
    let whole = u64::from(before.max_value());
    let colours = [Channel::Red, Channel::Green, Channel::Blue].map(|channel| before.place(channel));
    let alpha = before.place(Channel::Alpha);
    let mut line = vec![0_u64; width];
    for (plane, description) in format.planes().iter().enumerate() {
        for (at, &channel) in description.channels.iter().enumerate() {
            let step = description.channels.len();
            for y in 0..height {
                line.fill(0);
                let unit = if channel == Channel::Alpha {
                    match alpha {
                        Some(place) => add(from, place, y, 1, &mut line),
                        None => line.fill(whole),
                    }
                    whole
                } else {
                    for (&place, weight) in colours.iter().flatten().zip(weights) {
                        add(from, place, y, weight.into(), &mut line);
                    }
                    whole << 16
                };
                let row = to.row_mut(plane, y);
                for (x, &sum) in line.iter().enumerate() {
                    let value = ((2 * sum * most + unit) / (2 * unit)) as u16;
                    let place = x * step + at;
                    match format.bytes_per_sample() {
                        1 => row[place] = value as u8,
                        _ => row[2 * place..][..2].copy_from_slice(&value.to_le_bytes()),
                    }
                }
            }
        }
    }
}

/// Adds the samples of a component of row `y`, times `weight`.
fn add(frame: &Frame, (plane, at): (usize, usize), y: usize, weight: u64, line: &mut [u64]) {
    let (row, step) = (frame.row(plane, y), frame.format().planes()[plane].channels.len());
    let mut put = |samples: &mut dyn Iterator<Item = u16>| {
        line.iter_mut()
            .zip(samples)
            .for_each(|(sum, v)| *sum += weight * u64::from(v));
    };
    match frame.format().bytes_per_sample() {
        1 => put(&mut row.iter().skip(at).step_by(step).map(|&v| v.into())),
        _ => {
            let words = row.as_chunks::<2>().0.iter();
            put(&mut words.skip(at).step_by(step).map(|&v| u16::from_le_bytes(v)));
        }
    }
}
