//! Gray of RGB: its luma, by the weights that `--planes gray` takes, too. swscale takes those of BT.601.
//!
//! ```text
//!   Y = floor((kr R + kg G + kb B) span / (2^16 most) + 1/2) + black
//! ```

use super::component::Component;
use crate::frame::{Channel, Colour, Frame};

/// Fills luma of `to`, which has the facts `written`, from `from`, RGB of its size. `weights` are those of
/// red, green and blue, times 2^16.
pub(super) fn fill(from: &Frame, weights: [u32; 3], (to, written): (&mut Frame, Colour)) {
    let (before, format) = (from.format(), to.format());
    let (width, height) = (from.layout().width(), from.layout().height());
    let black = written.zero_level(format, Channel::Luma) as u16;
    let span = u64::from(written.span(format, Channel::Luma));
    let white = u64::from(before.max_value()) << 16;
    let colours = [Channel::Red, Channel::Green, Channel::Blue].map(|c| Component::of(before, c));
    let Some(luma) = Component::of(format, Channel::Luma) else {
        return;
    };
    let (mut line, mut sums) = (vec![0_u16; width], vec![0_u64; width]);
    for y in 0..height {
        sums.fill(0);
        for (colour, weight) in colours.iter().flatten().zip(weights) {
            colour.read(from, y, &mut line);
            sums.iter_mut()
                .zip(&line)
                .for_each(|(sum, &v)| *sum += u64::from(weight) * u64::from(v));
        }
        for (level, &sum) in line.iter_mut().zip(&sums) {
            *level = ((2 * sum * span + white) / (2 * white)) as u16 + black;
        }
        luma.write(&line, to, y);
    }
}
