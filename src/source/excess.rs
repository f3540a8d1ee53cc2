//! Words of raw frames that hold more than the format's samples: bits above the stated depth, or below the
//! sample where it lies in the upper bits (p010).
//!
//! Filters count on samples that fit: a word with its highest bit set would come out as black. So a sample
//! above the depth becomes the greatest one, bits below are cleared, and the run says at its end how many
//! there were. Of a frame that has none, each row is read once, a vector at a time.

use crate::frame::{Frame, PixelFormat};
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples of a stream that were changed since they did not fit.
#[derive(Debug, Default)]
pub(super) struct Excess {
    above: AtomicU64,
    below: AtomicU64,
    frames: AtomicU64,
}

impl Excess {
    /// Brings the samples of a frame to those of its format, and counts the changed ones.
    pub(super) fn remove(&self, frame: &mut Frame) {
        let format = frame.format();
        let Some(unused) = unused_bits(format) else {
            return;
        };
        let (mut above, mut below) = (0, 0);
        for plane in 0..format.planes().len() {
            for y in 0..frame.layout().planes()[plane].height {
                // Memory that is shared would be copied if it were requested for writing.
                if has_bits(frame.row(plane, y), unused) {
                    let (more, less) = fit(frame.row_mut(plane, y).as_chunks_mut::<2>().0, format);
                    (above, below) = (above + more, below + less);
                }
            }
        }
        if above + below > 0 {
            self.above.fetch_add(above, Ordering::Relaxed);
            self.below.fetch_add(below, Ordering::Relaxed);
            self.frames.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was changed in frames of `format`, in sentences.
    pub(super) fn sentences(&self, format: PixelFormat) -> Vec<String> {
        let frames = match self.frames.load(Ordering::Relaxed) {
            1 => "1 frame".to_owned(),
            frames => format!("{frames} frames"),
        };
        let counted = |count: &AtomicU64| match count.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(("1 sample".to_owned(), "has", "is")),
            samples => Some((format!("{samples} samples"), "have", "are")),
        };
        let (depth, most) = (format.depth(), format.max_value());
        let above = counted(&self.above).map(|(samples, _, are)| {
            format!(
                "{samples} in {frames} {are} above {most}, the most of {format}, and taken for {most}; words \
                 of 16 bits need a format of 16 bits"
            )
        });
        let below = counted(&self.below).map(|(samples, have, _)| {
            format!("{samples} in {frames} {have} bits below the {depth} of {format}, which are cleared")
        });
        above.into_iter().chain(below).collect()
    }
}

/// The bits of a word that no sample of the format sets; `None` if there are none.
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

/// Brings words to samples of the format. Returns how many were above the greatest one, and how many had bits
/// below the sample.
fn fit(row: &mut [[u8; 2]], format: PixelFormat) -> (u64, u64) {
    let (shift, most) = (format.shift(), format.max_value() as u16);
    let (mut above, mut below) = (0, 0);
    for stored in row {
        let word = u16::from_le_bytes(*stored);
        let sample = word >> shift;
        above += u64::from(sample > most);
        below += u64::from(sample << shift != word);
        *stored = (sample.min(most) << shift).to_le_bytes();
    }
    (above, below)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::frame::{Buffer, Layout};

    fn brought(format: PixelFormat, words: [u16; 4]) -> ([u16; 4], Vec<String>) {
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
        (out, excess.sentences(format))
    }

    #[test]
    fn what_does_not_fit_is_brought_to_the_nearest_sample_and_counted() {
        let (out, said) = brought(PixelFormat::GRAY10, [1023, 1024, 32768, 65535]);
        assert_eq!(out, [1023; 4]);
        assert!(
            said.len() == 1 && said[0].starts_with("3 samples in 1 frame are above 1023"),
            "{said:?}"
        );
        let (out, said) = brought(PixelFormat::P010, [65535, 64, 65472, 0]);
        assert_eq!(out, [65472, 64, 65472, 0]);
        assert!(
            said.len() == 1 && said[0].starts_with("1 sample in 1 frame has bits below the 10"),
            "{said:?}"
        );
        let (out, said) = brought(PixelFormat::NV20, [65535, 0, 1023, 5]);
        assert_eq!((out, said.len()), ([1023, 0, 1023, 5], 1));
        for format in [PixelFormat::GRAY16, PixelFormat::GRAYF16, PixelFormat::P016] {
            assert_eq!(brought(format, [65535, 1, 0, 2]), ([65535, 1, 0, 2], Vec::new()));
        }
    }
}
