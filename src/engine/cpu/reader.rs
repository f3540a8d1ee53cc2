//! How samples become numbers that signed 16-bit multiplications take.

use super::loops::Reading;
use crate::frame::PixelFormat;

/// How samples become pieces that signed 16-bit multiplications take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Bytes as they are.
    Bytes,
    /// Words as they are.
    Words,
    /// Words less 32768; the sums' beginning makes up for it.
    Offset,
    /// The two bytes of a word, as two pieces.
    Halves,
}

impl Reader {
    pub(super) fn pieces(self) -> usize {
        if self == Reader::Halves { 2 } else { 1 }
    }

    /// The reader for which sums that stay below `bound` in magnitude, rounding included, are exact.
    pub(super) fn for_bound(format: PixelFormat, bound: i64) -> Reader {
        match format.depth() {
            8 => Reader::Bytes,
            16 if bound < 1 << 31 => Reader::Offset,
            _ if bound < 1 << 31 => Reader::Words,
            _ => Reader::Halves,
        }
    }

    pub(super) fn reading(self, format: PixelFormat) -> Reading {
        Reading {
            bytes: format.bytes_per_sample(),
            shift: format.shift(),
            flip: if self == Reader::Offset { 0x8000 } else { 0 },
            halves: self == Reader::Halves,
        }
    }

    /// Piece `piece` of a sample, as the loops hold it.
    pub(super) fn word(self, sample: u16, piece: usize) -> u16 {
        match self {
            Reader::Bytes | Reader::Words => sample,
            Reader::Offset => sample ^ 0x8000,
            Reader::Halves => (sample >> (8 * piece)) & 255,
        }
    }

    /// What is to be added to a sum over weights that add up to `total`.
    pub(super) fn correction(self, total: i64) -> i64 {
        if self == Reader::Offset { total << 15 } else { 0 }
    }
}
