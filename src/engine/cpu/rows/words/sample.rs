//! Sample encodings: how samples become the signed 16-bit words that multiply-adds take, and what that adds
//! to sums.

use super::widen::Widening;
use crate::frame::PixelFormat;

/// How samples become limbs that signed 16-bit multiplications take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::cpu) enum SampleEncoding {
    /// Bytes as they are.
    Bytes,
    /// Words as they are.
    Words,
    /// Words less 32768; the sums' beginning makes up for it, or what is added once they are shifted down.
    Biased,
    /// The two bytes of a word, as two limbs.
    SplitBytes,
}

impl SampleEncoding {
    pub(in crate::engine::cpu) fn limbs(self) -> usize {
        if self == SampleEncoding::SplitBytes { 2 } else { 1 }
    }

    /// The encoding for which sums that stay below `bound` in magnitude, rounding included, are exact.
    fn for_bound(format: PixelFormat, bound: i64) -> SampleEncoding {
        match format.depth() {
            8 => SampleEncoding::Bytes,
            16 if bound < 1 << 31 => SampleEncoding::Biased,
            _ if bound < 1 << 31 => SampleEncoding::Words,
            _ => SampleEncoding::SplitBytes,
        }
    }

    /// The encoding for which such sums are exact, and what is missing in them; `offset` is what would be in
    /// those of offset words.
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

    /// What is missing in sums of offset words once they are shifted down, if 32 bits hold them that way:
    /// without what makes up for the offset, and with up to `added` more. They reach twice as far as sums
    /// that are made up for from the start.
    pub(in crate::engine::cpu) fn biased_after(weights: &[i32], shift: u32, added: i64) -> Option<i64> {
        let (lowest, highest) = range(weights, (i16::MIN.into(), i16::MAX.into()));
        let offset = total(weights) << 15;
        let fits = lowest >= i64::from(i32::MIN) && highest + added <= i64::from(i32::MAX);
        (fits && offset % (1 << shift) == 0).then_some(offset >> shift)
    }

    pub(in crate::engine::cpu) fn widening(self, format: PixelFormat) -> Widening {
        Widening {
            bytes: format.bytes_per_sample(),
            shift: format.shift(),
            flip: if self == SampleEncoding::Biased { 0x8000 } else { 0 },
            split_bytes: self == SampleEncoding::SplitBytes,
        }
    }

    /// Limb `limb` of a sample, as the loops hold it.
    pub(in crate::engine::cpu) fn word(self, sample: u16, limb: usize) -> u16 {
        match self {
            SampleEncoding::Bytes | SampleEncoding::Words => sample,
            SampleEncoding::Biased => sample ^ 0x8000,
            SampleEncoding::SplitBytes => (sample >> (8 * limb)) & 255,
        }
    }

    /// What is to be added to a sum over weights that add up to `total`.
    pub(in crate::engine::cpu) fn correction(self, total: i64) -> i64 {
        if self == SampleEncoding::Biased {
            total << 15
        } else {
            0
        }
    }
}

/// What weights add up to.
pub(in crate::engine::cpu) fn total(weights: &[i32]) -> i64 {
    weights.iter().map(|&q| i64::from(q)).sum()
}

/// What they add up to without their signs.
pub(in crate::engine::cpu) fn magnitude(weights: &[i32]) -> i64 {
    weights.iter().map(|&q| i64::from(q).abs()).sum()
}

/// The least and the largest sum that values between two numbers come to, weighted.
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
    fn offset_words_reach_as_far_as_32_bits_hold_their_sums() {
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
        // 32768 is no whole level of 2^16.
        assert_eq!(SampleEncoding::biased_after(&[3, -2], 16, 0), None);
    }
}
