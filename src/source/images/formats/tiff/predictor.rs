//! The predictor: what was done to the samples of a row before they were compressed, and how it is undone.
//!
//! Differences compress better than samples. The predictor for floating point also groups the bytes of a row
//! by their significance, the most significant first.
//!
//! ```text
//! samples of a row          10     12     15     15
//! horizontal differences    10     +2     +3     +0        (within each channel)
//! floating-point bytes      a3 a2 a1 a0  b3 b2 b1 b0  ->  a3 b3  a2 b2  a1 b1  a0 b0, then differences
//! ```

use super::compression::Packing;
use super::{Result, damaged, unsupported};

/// The predictors that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predictor {
    None,
    /// Each sample less the one to its left.
    Difference,
    /// The same for the bytes of floating-point numbers, grouped by significance.
    Float,
}

impl Predictor {
    /// The predictor that the tag means, if it applies to this compression and these samples.
    pub(super) fn new(code: u64, packing: Packing, bits: usize, float: bool) -> Result<Predictor> {
        Ok(match code {
            // As in libtiff, only LZW and Deflate have a predictor; elsewhere the tag means nothing.
            _ if !matches!(packing, Packing::Lzw | Packing::Deflate) => Predictor::None,
            1 => Predictor::None,
            2 if matches!(bits, 8 | 16 | 32 | 64) => Predictor::Difference,
            2 => return unsupported(format!("holds differences of {bits}-bit samples")),
            3 if float => Predictor::Float,
            3 => return damaged("a predictor for floating-point samples, but the samples are integers"),
            other => return unsupported(format!("has an unknown predictor ({other})")),
        })
    }

    /// Undoes the predictor in rows of `stride` bytes, of little-endian samples of `bits` bits.
    pub(super) fn undo(self, raw: &mut [u8], stride: usize, bits: usize, samples: usize) {
        if self == Predictor::None || stride == 0 {
            return;
        }
        let size = bits / 8;
        let mut grouped = Vec::new();
        for row in raw.chunks_exact_mut(stride) {
            match (self, size) {
                (Predictor::Float, _) => {
                    sum::<1>(row, samples);
                    grouped.clear();
                    grouped.extend_from_slice(row);
                    // The most significant bytes come first, those of the whole row.
                    let numbers = row.len() / size;
                    for (at, bytes) in grouped.chunks_exact(numbers).take(size).enumerate() {
                        let places = row.iter_mut().skip(size - 1 - at).step_by(size);
                        places.zip(bytes).for_each(|(to, &from)| *to = from);
                    }
                }
                (_, 1) => sum::<1>(row, samples),
                (_, 2) => sum::<2>(row, samples),
                (_, 4) => sum::<4>(row, samples),
                (_, 8) => sum::<8>(row, samples),
                _ => {}
            }
        }
    }
}

/// Adds to each number of `N` bytes the one that is `samples` numbers before it.
fn sum<const N: usize>(row: &mut [u8], samples: usize) {
    match samples {
        1 => sum_by::<N, 1>(row),
        2 => sum_by::<N, 2>(row),
        3 => sum_by::<N, 3>(row),
        4 => sum_by::<N, 4>(row),
        _ => {
            let mut before = vec![0; samples];
            let (numbers, _) = row.as_chunks_mut::<N>();
            numbers
                .chunks_mut(samples)
                .for_each(|pixel| add(pixel, &mut before));
        }
    }
}

fn sum_by<const N: usize, const SAMPLES: usize>(row: &mut [u8]) {
    let mut before = [0; SAMPLES];
    let (numbers, _) = row.as_chunks_mut::<N>();
    let (pixels, _) = numbers.as_chunks_mut::<SAMPLES>();
    pixels.iter_mut().for_each(|pixel| add(pixel, &mut before));
}

/// Adds `before` to the numbers of a pixel, which are then those before the next.
#[inline(always)]
fn add<const N: usize>(pixel: &mut [[u8; N]], before: &mut [u64]) {
    for (number, before) in pixel.iter_mut().zip(before) {
        let mut wide = [0; 8];
        wide.iter_mut().zip(&*number).for_each(|(to, &from)| *to = from);
        *before = before.wrapping_add(u64::from_le_bytes(wide));
        number
            .iter_mut()
            .zip(before.to_le_bytes())
            .for_each(|(to, from)| *to = from);
    }
}
