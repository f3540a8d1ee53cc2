//! Full range to limited range and back, sample by sample, rounded exactly.

use crate::frame::{Channel, Frame, PixelFormat, Range};

/// Stretches or compresses the samples of one format.
pub(crate) struct RangeChange {
    to: Range,
    luma: Vec<u16>,
    chroma: Vec<u16>,
}

impl RangeChange {
    /// From limited to full range, or the other way round.
    pub(crate) fn new(format: PixelFormat, to: Range) -> RangeChange {
        let max = i64::from(format.max_value());
        let unit = 1_i64 << (format.depth() - 8);
        let centre = 1_i64 << (format.depth() - 1);
        let scaled = |value: i64, span: i64| match to {
            Range::Full => rounded(value * max, span),
            Range::Limited | Range::Unspecified => rounded(value * span, max),
        };
        let clamped = |value: i64| value.clamp(0, max) as u16;
        let luma = (0..=max).map(|v| {
            clamped(match to {
                Range::Full => scaled(v - 16 * unit, 219 * unit),
                Range::Limited | Range::Unspecified => 16 * unit + scaled(v, 219 * unit),
            })
        });
        let chroma = (0..=max).map(|v| clamped(centre + scaled(v - centre, 224 * unit)));
        RangeChange {
            to,
            luma: luma.collect(),
            chroma: chroma.collect(),
        }
    }

    /// Changes `frame`, which is of the format that this was made for.
    pub(crate) fn apply(&self, frame: &mut Frame) {
        let format = frame.format();
        let (bytes, shift) = (format.bytes_per_sample(), format.shift());
        for (index, plane) in format.planes().iter().enumerate() {
            let channels = plane.channels.len();
            for (offset, channel) in plane.channels.iter().enumerate() {
                let table = match channel {
                    Channel::Luma => &self.luma,
                    Channel::Cb | Channel::Cr => &self.chroma,
                    Channel::Red | Channel::Green | Channel::Blue | Channel::Alpha | Channel::Data => {
                        continue;
                    }
                };
                for y in 0..frame.layout().planes()[index].height {
                    let row = frame.row_mut(index, y);
                    if bytes == 1 {
                        for sample in row[offset..].iter_mut().step_by(channels) {
                            *sample = table[usize::from(*sample)] as u8;
                        }
                        continue;
                    }
                    for word in row[2 * offset..].chunks_mut(2 * channels) {
                        let sample = u16::from_le_bytes([word[0], word[1]]) >> shift;
                        // A word may hold more than its format's depth.
                        let at = usize::from(sample).min(table.len() - 1);
                        word[..2].copy_from_slice(&(table[at] << shift).to_le_bytes());
                    }
                }
            }
        }
        frame.metadata.colour.range = self.to;
    }
}

/// `num / den`, halves away from zero.
fn rounded(num: i64, den: i64) -> i64 {
    (2 * num.abs() + den) / (2 * den) * num.signum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn black_white_and_gray_go_where_they_belong() {
        for (name, unit) in [("yuv420p", 1_u16), ("yuv422p10le", 4), ("p010le", 4)] {
            let format = PixelFormat::from_name(name).unwrap();
            let max = format.max_value() as u16;
            let narrow = RangeChange::new(format, Range::Limited);
            assert_eq!(narrow.luma[0], 16 * unit);
            assert_eq!(narrow.luma[usize::from(max)], 235 * unit);
            assert_eq!(narrow.chroma[usize::from(max / 2 + 1)], max / 2 + 1);
            let wide = RangeChange::new(format, Range::Full);
            assert_eq!(wide.luma[usize::from(235 * unit)], max);
            assert_eq!(wide.luma[usize::from(16 * unit)], 0);
            assert_eq!(wide.luma[0], 0);
            for value in 0..=max {
                let back = wide.luma[usize::from(narrow.luma[usize::from(value)])];
                assert!(back.abs_diff(value) <= 1, "{name} {value} {back}");
            }
        }
    }
}
