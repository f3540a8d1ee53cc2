//! Words of raw frames that hold more than the format's samples: bits above the stated depth, or below it.
//!
//! Filters count on samples that fit: a word with its highest bit set would come out as black. So a sample
//! above the depth becomes the greatest one, and the run says at its end how many there were. Of a frame that
//! has none, each row is read once, a vector at a time. Bits below a sample that lies in the upper bits of
//! its word (p010) are cleared, since results have none.

use crate::frame::{Frame, PixelFormat};
use crate::wording::counted;
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples of a stream that were changed since they did not fit.
#[derive(Debug, Default)]
pub(in crate::source) struct Excess {
    samples: AtomicU64,
    frames: AtomicU64,
}

impl Excess {
    /// Brings the samples of a frame to those of its format, and counts the changed ones.
    pub(in crate::source) fn remove(&self, frame: &mut Frame) {
        let format = frame.format();
        let Some(unused) = unused_bits(format) else {
            return;
        };
        let mut samples = 0;
        for plane in 0..format.planes().len() {
            for y in 0..frame.layout().planes()[plane].height {
                // Memory that is shared would be copied if it were requested for writing.
                if has_bits(frame.row(plane, y), unused) {
                    let row = frame.row_mut(plane, y).as_chunks_mut::<2>().0;
                    samples += match format.shift() {
                        0 => fit(row, format.max_value() as u16),
                        _ => clear(row, unused),
                    };
                }
            }
        }
        if samples > 0 {
            self.samples.fetch_add(samples, Ordering::Relaxed);
            self.frames.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was changed in frames of `format`, as a sentence.
    pub(in crate::source) fn sentence(&self, format: PixelFormat) -> Option<String> {
        let samples = self.samples.load(Ordering::Relaxed);
        let frames = counted(self.frames.load(Ordering::Relaxed), "frame");
        let are = if samples == 1 { "is" } else { "are" };
        let (samples, most) = (Some(samples).filter(|&n| n > 0)?, format.max_value());
        if format.shift() > 0 {
            let has = if samples == 1 { "has" } else { "have" };
            return Some(format!(
                "{} in {frames} {has} bits below the {} of {format}, which are cleared; words of 16 bits \
                 need a format of 16 bits",
                counted(samples, "sample"),
                format.depth()
            ));
        }
        Some(format!(
            "{} in {frames} {are} above {most}, the most of {format}, and taken for {most}; words of 16 bits \
             need a format of 16 bits",
            counted(samples, "sample")
        ))
    }
}

/// The bits beside the samples of a format in its words; `None` if there are none.
fn unused_bits(format: PixelFormat) -> Option<u16> {
    if format.is_float() || format.bytes_per_sample() != 2 {
        return None;
    }
    let unused = !((format.max_value() << format.shift()) as u16);
    (unused != 0).then_some(unused)
}

/// True if some word of a row has one of the `unused` bits.
fn has_bits(row: &[u8], unused: u16) -> bool {
    // Eight numbers of four words each, which fill the vectors of every processor.
    let (blocks, rest) = row.as_chunks::<64>();
    let mut set = [0_u64; 8];
    for block in blocks {
        for (set, four) in set.iter_mut().zip(block.as_chunks::<8>().0) {
            *set |= u64::from_le_bytes(*four);
        }
    }
    let unused_in_four = u64::from(unused) * 0x0001_0001_0001_0001;
    let mut ends = rest.as_chunks::<2>().0.iter();
    set.iter().any(|set| set & unused_in_four != 0)
        || ends.any(|&word| u16::from_le_bytes(word) & unused != 0)
}

/// Makes words above `most` that. Returns how many there were.
fn fit(row: &mut [[u8; 2]], most: u16) -> u64 {
    let mut above = 0;
    for stored in row {
        let word = u16::from_le_bytes(*stored);
        above += u64::from(word > most);
        *stored = word.min(most).to_le_bytes();
    }
    above
}

/// Clears the `unused` bits of words. Returns how many had some.
fn clear(row: &mut [[u8; 2]], unused: u16) -> u64 {
    let mut changed = 0;
    for stored in row {
        let word = u16::from_le_bytes(*stored);
        changed += u64::from(word & unused != 0);
        *stored = (word & !unused).to_le_bytes();
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, Layout};

    fn brought(format: PixelFormat, words: [u16; 4]) -> ([u16; 4], Option<String>) {
        let layout = Layout::new(format, 4, 1, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
        frame.bytes_mut().fill(0);
        let row = frame.row_mut(0, 0).as_chunks_mut::<2>().0;
        for (stored, word) in row.iter_mut().zip(words) {
            *stored = word.to_le_bytes();
        }
        let excess = Excess::default();
        excess.remove(&mut frame);
        let row = frame.row(0, 0).as_chunks::<2>().0;
        let out = [0, 1, 2, 3].map(|x| u16::from_le_bytes(row[x]));
        (out, excess.sentence(format))
    }

    #[test]
    fn what_does_not_fit_is_brought_to_the_nearest_sample_and_counted() {
        let (out, said) = brought(PixelFormat::GRAY10, [1023, 1024, 32768, 65535]);
        assert_eq!(out, [1023; 4]);
        assert!(said.unwrap().starts_with("3 samples in 1 frame are above 1023"));
        let (out, said) = brought(PixelFormat::NV20, [65535, 0, 1023, 5]);
        assert_eq!(out, [1023, 0, 1023, 5]);
        assert!(said.unwrap().starts_with("1 sample in 1 frame is above 1023"));
        let (out, said) = brought(PixelFormat::P010, [65535, 64, 0, 65]);
        assert_eq!(out, [65472, 64, 0, 64]);
        assert!(
            said.unwrap()
                .starts_with("2 samples in 1 frame have bits below the 10 of p010le")
        );
        for format in [PixelFormat::GRAY16, PixelFormat::GRAYF16, PixelFormat::P016] {
            assert_eq!(brought(format, [65535, 1, 0, 2]), ([65535, 1, 0, 2], None));
        }
    }
}
