//! Sample encodings: how samples become the signed 16-bit words of multiply-adds, and how sums are corrected
//! for that.

use super::widen::Widening;
use crate::frame::PixelFormat;

/// The encoding of samples as signed 16-bit words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::cpu) enum SampleEncoding {
    /// Samples of one byte.
    Bytes,
    /// Samples of up to 15 bits.
    Words,
    /// 16-bit samples less 32768. The start value of sums corrects for it, or the value added after the
    /// shift.
    Biased,
    /// The two bytes of a word, as two limbs.
    SplitBytes,
}

impl SampleEncoding {
    /// Limbs of a sample.
    pub(in crate::engine::cpu) fn limbs(self) -> usize {
        if self == SampleEncoding::SplitBytes { 2 } else { 1 }
    }

    /// The encoding with which sums below `bound` in magnitude, rounding included, are exact in 32 bits.
    fn for_bound(format: PixelFormat, bound: i64) -> SampleEncoding {
        match format.depth() {
            8 => SampleEncoding::Bytes,
            16 if bound < 1 << 31 => SampleEncoding::Biased,
            _ if bound < 1 << 31 => SampleEncoding::Words,
            _ => SampleEncoding::SplitBytes,
        }
    }

    /// The encoding with which sums below `bound` are exact, and for biased samples whose bias stays in the
    /// sums the value that is missing after the shift, which `offset` computes; `None` if the bias cannot
    /// stay.
    pub(in crate::engine::cpu) fn choose(
        format: PixelFormat,
        bound: i64,
        offset: impl Fn() -> Option<i64>,
    ) -> (SampleEncoding, Option<i64>) {
        let plain = SampleEncoding::for_bound(format, bound);
        if plain == SampleEncoding::SplitBytes
            && format.depth() == 16
            && let Some(missing) = offset()
        {
            return (SampleEncoding::Biased, Some(missing));
        }
        (plain, None)
    }

    /// The value that is missing in sums of biased samples after the shift, if the sums are not corrected
    /// before it. `None` if that value is not an integer, or if 32 bits do not hold the sums with up to
    /// `added` more. Uncorrected sums have up to half the magnitude of corrected ones.
    pub(in crate::engine::cpu) fn biased_after(weights: &[i32], shift: u32, added: i64) -> Option<i64> {
        let (lowest, highest) = range(weights, (i16::MIN.into(), i16::MAX.into()));
        let offset = total(weights) << 15;
        let fits = lowest >= i64::from(i32::MIN) && highest + added <= i64::from(i32::MAX);
        (fits && offset % (1 << shift) == 0).then_some(offset >> shift)
    }

    /// The conversion of stored samples to this encoding.
    pub(in crate::engine::cpu) fn widening(self, format: PixelFormat) -> Widening {
        Widening {
            bytes: format.bytes_per_sample(),
            shift: format.shift(),
            flip: if self == SampleEncoding::Biased { 0x8000 } else { 0 },
            split_bytes: self == SampleEncoding::SplitBytes,
        }
    }

    /// Limb `limb` of a sample in this encoding.
    pub(in crate::engine::cpu) fn word(self, sample: u16, limb: usize) -> u16 {
        match self {
            SampleEncoding::Bytes | SampleEncoding::Words => sample,
            SampleEncoding::Biased => sample ^ 0x8000,
            SampleEncoding::SplitBytes => (sample >> (8 * limb)) & 255,
        }
    }

    /// The correction to add to a sum over weights that add up to `total`.
    pub(in crate::engine::cpu) fn correction(self, total: i64) -> i64 {
        if self == SampleEncoding::Biased {
            total << 15
        } else {
            0
        }
    }
}

/// The sum of weights.
pub(in crate::engine::cpu) fn total(weights: &[i32]) -> i64 {
    weights.iter().map(|&q| i64::from(q)).sum()
}

/// The sum of the magnitudes of weights.
pub(in crate::engine::cpu) fn magnitude(weights: &[i32]) -> i64 {
    weights.iter().map(|&q| i64::from(q).abs()).sum()
}

/// The least and the largest weighted sum of values from `least` to `most`.
pub(in crate::engine::cpu) fn range(weights: &[i32], (least, most): (i64, i64)) -> (i64, i64) {
    let all = |sign: i64| -> i64 { weights.iter().map(|&q| (sign * i64::from(q)).max(0)).sum() };
    let (positive, negative) = (all(1), all(-1));
    (
        positive * least - negative * most,
        positive * most - negative * least,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biased_words_suit_sums_that_32_bits_hold() {
        let quarter = 1 << 14;
        // 4 * 2^14 * -32768 is the least number of 32 bits; the largest sum leaves 65535 for what is added.
        let most = [quarter; 4];
        assert_eq!(range(&most, (-32768, 32767)), (-(1 << 31), (1 << 31) - 65536));
        assert_eq!(SampleEncoding::biased_after(&most, 9, 65535), Some(1 << 22));
        assert_eq!(SampleEncoding::biased_after(&most, 9, 65536), None);
        assert_eq!(
            SampleEncoding::biased_after(&[quarter, quarter, quarter, quarter, 1], 9, 0),
            None
        );
        // Weights of both signs: each end takes the other one's values.
        assert_eq!(
            range(&[3, -2], (-32768, 32767)),
            (-3 * 32768 - 2 * 32767, 3 * 32767 + 2 * 32768)
        );
        assert_eq!(SampleEncoding::biased_after(&[3, -2], 15, 0), Some(1));
        // 32768 over 2^16 is not an integer.
        assert_eq!(SampleEncoding::biased_after(&[3, -2], 16, 0), None);
    }
}
