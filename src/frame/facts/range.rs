//! Integer samples of one depth and range into those of another, where black, white and the centre of chroma
//! keep their meaning.
//!
//! ```text
//!   round((v - black before) * span / span before) + black
//!
//!                        black           span
//!   full range, RGB      0               2^depth - 1
//!   limited range, luma  16 * 2^(d-8)    219 * 2^(d-8)
//!                chroma  2^(d-1)         224 * 2^(d-8)     in full range 2^d - 1
//! ```

use crate::frame::{Channel, Colour, Frame, PixelFormat, Range};

/// From full range to limited range and back, within one format.
pub(crate) struct RangeChange {
    to: Range,
    luma: Vec<u16>,
    chroma: Vec<u16>,
}

impl RangeChange {
    /// From limited to full range, or the other way round.
    pub(crate) fn new(format: PixelFormat, to: Range) -> RangeChange {
        let with = |range| {
            let colour = Colour::default();
            (format, Colour { range, ..colour })
        };
        let from = match to {
            Range::Full => Range::Limited,
            Range::Limited | Range::Unspecified => Range::Full,
        };
        RangeChange {
            to,
            luma: levels(with(from), with(to), Channel::Luma),
            chroma: levels(with(from), with(to), Channel::Cb),
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

/// What becomes of each sample of `channel`, from 0 on, between two formats of integers with these colour
/// facts.
pub(crate) fn levels(from: (PixelFormat, Colour), to: (PixelFormat, Colour), channel: Channel) -> Vec<u16> {
    let [(black, span), (new_black, new_span)] = [from, to].map(|(format, colour)| {
        let black = colour.zero_level(format, channel);
        (i64::from(black), i64::from(colour.span(format, channel)))
    });
    let most = i64::from(to.0.max_value());
    let level = |v: i64| {
        // Rounded to the nearest, halves up.
        let share = (2 * (v - black) * new_span + span).div_euclid(2 * span);
        (share + new_black).clamp(0, most) as u16
    };
    (0..=from.0.max_value().into()).map(level).collect()
}

#[cfg(test)]
mod tests {
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
