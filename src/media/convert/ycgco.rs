//! YCgCo to RGB by its own formula (ITU-T H.273, matrix coefficients 8), which swscale does not know: four
//! additions a pixel.

use crate::frame::{Channel, Frame};

/// Converts `from`, planar 4:4:4 whose second plane is Cg and whose third is Co, into `to`, which is RGB of
/// the same size.
pub(super) fn to_rgb(from: &Frame, limited: bool, to: &mut Frame) {
    let (source, target) = (from.format(), to.format());
    let unit = 1_i64 << (source.depth() - 8);
    let centre = 1_i64 << (source.depth() - 1);
    // All three on one scale, on which white is `white`.
    let (black, luma_scale, chroma_scale, white) = if limited {
        (16 * unit, 224, 219, 219 * 224 * unit)
    } else {
        (0, 1, 1, i64::from(source.max_value()))
    };
    let max = i64::from(target.max_value());
    let alpha_max = i64::from(source.max_value());
    let output = |value: i64, white: i64| ((2 * value.max(0) * max + white) / (2 * white)).min(max) as u16;
    let places: Vec<(usize, usize, Channel)> = target
        .planes()
        .iter()
        .enumerate()
        .flat_map(|(plane, p)| p.channels.iter().enumerate().map(move |(at, &c)| (plane, at, c)))
        .collect();
    let has_alpha = source.has_alpha();
    let (width, bytes) = (from.layout().width(), target.bytes_per_sample());
    for y in 0..from.layout().height() {
        for &(plane, at, channel) in &places {
            let channels = target.planes()[plane].channels.len();
            for x in 0..width {
                let sample = |plane: usize| i64::from(from.sample(plane, x, y, 0));
                let luma = (sample(0) - black) * luma_scale;
                let cg = (sample(1) - centre) * chroma_scale;
                let co = (sample(2) - centre) * chroma_scale;
                let value = match channel {
                    Channel::Green | Channel::Luma => output(luma + cg, white),
                    Channel::Blue | Channel::Cb => output(luma - cg - co, white),
                    Channel::Red | Channel::Cr => output(luma - cg + co, white),
                    Channel::Alpha if has_alpha => output(sample(3), alpha_max),
                    Channel::Alpha | Channel::Data => max as u16,
                };
                let start = (x * channels + at) * bytes;
                let row = to.row_mut(plane, y);
                row[start..start + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
        }
    }
}
