//! The threshold of a step: samples that change by less keep their old value.

use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::simd::vector::Plain;
use crate::engine::cpu::simd::{Vectors, run_plain};
use crate::filter::{ChannelStep, Step};
use crate::frame::{Layout, PixelFormat};

/// A step's threshold, which is not 0.
pub(in crate::engine::cpu) struct Threshold {
    vectors: Option<Vectors>,
    bytes: usize,
    /// The smallest change that is kept, for each channel of each plane, in units of stored samples (with
    /// their padding bits). 0 for channels that are not convolved.
    least: Vec<Vec<u16>>,
}

impl Threshold {
    /// The threshold of `step`; `None` if it has none.
    pub(in crate::engine::cpu) fn new(
        step: &Step,
        format: PixelFormat,
        vectors: Option<Vectors>,
    ) -> Option<Threshold> {
        let of = |c: &ChannelStep| match c {
            ChannelStep::Convolve(_) => step.threshold << format.shift(),
            ChannelStep::Copy | ChannelStep::Fill(_) => 0,
        };
        let planes = step.planes.iter();
        (step.threshold > 0).then(|| Threshold {
            vectors,
            bytes: format.bytes_per_sample(),
            least: planes.map(|channels| channels.iter().map(of).collect()).collect(),
        })
    }

    /// Restores the samples of `input` in a strip of the result where they changed too little.
    pub(in crate::engine::cpu) fn apply(&self, input: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>) {
        let least = &self.least[strip.plane];
        if least.iter().all(|&least| least == 0) {
            return;
        }
        strip.each_row(layout, |position, row| {
            let row = ThresholdRow {
                least,
                before: input.row(position.plane, position.row),
                row,
            };
            match self.bytes {
                1 => run_plain(self.vectors, ThresholdBytes(row)),
                _ => run_plain(self.vectors, ThresholdWords(row)),
            }
        });
    }
}

/// A row to apply a threshold to.
struct ThresholdRow<'a> {
    /// The smallest change that is kept, for each channel.
    least: &'a [u16],
    /// The row before the step.
    before: &'a [u8],
    /// The row of the result.
    row: &'a mut [u8],
}

impl ThresholdRow<'_> {
    /// The threshold of all channels, if it is the same for all.
    #[inline(always)]
    fn uniform(&self) -> Option<u16> {
        let first = self.least[0];
        self.least.iter().all(|&least| least == first).then_some(first)
    }
}

/// [`ThresholdRow`] for samples of one byte.
struct ThresholdBytes<'a>(ThresholdRow<'a>);

/// [`ThresholdRow`] for samples of two bytes.
struct ThresholdWords<'a>(ThresholdRow<'a>);

impl Plain for ThresholdBytes<'_> {
    #[inline(always)]
    fn run(self) {
        let (channels, uniform) = (self.0.least.len(), self.0.uniform());
        let samples = self.0.row.iter_mut().zip(self.0.before);
        match uniform {
            Some(least) => {
                for (sample, &before) in samples {
                    let is_small = u16::from(sample.abs_diff(before)) < least;
                    *sample = if is_small { before } else { *sample };
                }
            }
            None => {
                for (at, (sample, &before)) in samples.enumerate() {
                    if u16::from(sample.abs_diff(before)) < self.0.least[at % channels] {
                        *sample = before;
                    }
                }
            }
        }
    }
}

impl Plain for ThresholdWords<'_> {
    #[inline(always)]
    fn run(self) {
        let (channels, uniform) = (self.0.least.len(), self.0.uniform());
        let before = self.0.before.as_chunks::<2>().0;
        let samples = self.0.row.as_chunks_mut::<2>().0.iter_mut().zip(before);
        let difference = |a: [u8; 2], b: [u8; 2]| u16::from_le_bytes(a).abs_diff(u16::from_le_bytes(b));
        match uniform {
            Some(least) => {
                for (sample, &before) in samples {
                    let is_small = difference(*sample, before) < least;
                    *sample = if is_small { before } else { *sample };
                }
            }
            None => {
                for (at, (sample, &before)) in samples.enumerate() {
                    if difference(*sample, before) < self.0.least[at % channels] {
                        *sample = before;
                    }
                }
            }
        }
    }
}
