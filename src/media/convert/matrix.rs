//! RGB of YUV and YUV of RGB by the formulas of H.273, in 4:4:4. swscale does so for 8 bits; beyond, it makes
//! 943 of white where 940 is right, and 1020 of 1023, and it knows no YCgCo.
//!
//! ```text
//!   Y = KR R + KG G + KB B      Cb = (B - Y) / (2 (1 - KB))      Cr = (R - Y) / (2 (1 - KR))
//! ```
//!
//! Sums are numbers of 64 bits, rounded once to the nearest level.

use super::component::Component;
use super::levels::LevelConversion;
use crate::frame::{Channel, Colour, ColourModel, Frame, PixelFormat, rgb_of_yuv, yuv_of_rgb};

/// RGB into YUV, or the other way round.
pub(super) struct MatrixConversion {
    /// The three components that are read, and those that are written.
    read: [Channel; 3],
    written: [Channel; 3],
    /// What each of those read counts in each of those written, and what is added to that.
    weights: [[f64; 3]; 3],
    offsets: [f64; 3],
    /// Of alpha.
    levels: LevelConversion,
}

const RGB: [Channel; 3] = [Channel::Red, Channel::Green, Channel::Blue];
const YUV: [Channel; 3] = [Channel::Luma, Channel::Cb, Channel::Cr];

impl MatrixConversion {
    /// Between formats with these colour facts, one of RGB and one of YUV, by a matrix; `None` if that has no
    /// formula.
    pub(super) fn new(
        (from, before): (PixelFormat, Colour),
        (to, after): (PixelFormat, Colour),
        matrix: u8,
    ) -> Option<MatrixConversion> {
        let (read, written, parts) = match to.model() {
            ColourModel::Rgb => (YUV, RGB, rgb_of_yuv(matrix)?),
            _ => (RGB, YUV, yuv_of_rgb(matrix)?),
        };
        let spans = read.map(|channel| f64::from(before.span(from, channel)));
        let zeros = read.map(|channel| f64::from(before.zero_level(from, channel)));
        let (mut weights, mut offsets) = (parts, [0.0; 3]);
        for (k, &channel) in written.iter().enumerate() {
            let span = f64::from(after.span(to, channel));
            weights[k] = [0, 1, 2].map(|j| parts[k][j] * span / spans[j]);
            let zero: f64 = (0..3).map(|j| weights[k][j] * zeros[j]).sum();
            offsets[k] = f64::from(after.zero_level(to, channel)) - zero;
        }
        Some(MatrixConversion {
            read,
            written,
            weights,
            offsets,
            levels: LevelConversion::new((from, before), (to, after)),
        })
    }

    /// Fills `converted` from `frame`, which has its size. Both have a sample of each component for each
    /// pixel.
    pub(super) fn run(&self, frame: &Frame, converted: &mut Frame) {
        let (from, to) = (frame.format(), converted.format());
        let most = f64::from(to.max_value());
        let (width, height) = (frame.layout().width(), frame.layout().height());
        let sources = self.read.map(|channel| Component::of(from, channel));
        let targets = self.written.map(|channel| Component::of(to, channel));
        let mut read = [vec![0_u16; width], vec![0; width], vec![0; width]];
        let mut line = vec![0_u16; width];
        for y in 0..height {
            for (source, line) in sources.iter().zip(&mut read) {
                if let Some(source) = source {
                    source.read(frame, y, line);
                }
            }
            let [first, second, third] = &read;
            for ((target, weights), offset) in targets.iter().zip(self.weights).zip(self.offsets) {
                let components = first.iter().zip(second).zip(third);
                for (to, ((&a, &b), &c)) in line.iter_mut().zip(components) {
                    let [a, b, c] = [a, b, c].map(f64::from);
                    let level = weights[0] * a + weights[1] * b + weights[2] * c + offset;
                    *to = (level.clamp(0.0, most) + 0.5) as u16;
                }
                if let Some(target) = target {
                    target.write(&line, converted, y);
                }
            }
        }
        self.levels.run_alpha(frame, converted);
    }
}
