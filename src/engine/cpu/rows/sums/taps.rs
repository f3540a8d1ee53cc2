//! Taps of the column filter: where an element lies, and pairs of weights for several output rows.
//!
//! ```text
//! weights w0 w1 w2 of a column, lines of rows (0 1) (2 3)
//!
//! tap of line 0    row 0: w0 w1     row 1: 0  w0      packed in pairs, 16 bits each
//! tap of line 1    row 0: w2 0      row 1: w1 w2
//! ```

/// One multiply-add of the sums of several output rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct Tap {
    /// Index of the element that the row's first sample reads.
    pub(in crate::engine::cpu) at: usize,
    /// Index of the mirror image's element, which folded taps add to or subtract from the first one before
    /// the multiplication.
    pub(in crate::engine::cpu) mirror: usize,
    /// Two packed weights (low half first) for each output row, from the top down. Two output rows use the
    /// first two.
    pub(in crate::engine::cpu) weights: [i32; 4],
}

/// How the right half of a mask is folded onto the left one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::cpu) enum Fold {
    /// Equal weights: samples are added.
    Add,
    /// Opposite weights: samples are subtracted.
    Subtract,
}

/// The taps of the same output rows.
#[derive(Debug, Clone, Default)]
pub(in crate::engine::cpu) struct Group {
    /// Taps of one element.
    pub(in crate::engine::cpu) single: Vec<Tap>,
    /// Taps of an element and its mirror image.
    pub(in crate::engine::cpu) folded: Vec<Tap>,
}

/// The taps of two output rows, or of four.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct Taps<'a> {
    /// Taps of the upper two rows only, of all four rows, and of the lower two only. Two rows have the first
    /// group only.
    pub(in crate::engine::cpu) groups: &'a [Group; 3],
    /// How mirror images are folded.
    pub(in crate::engine::cpu) fold: Fold,
}

/// Packs two 16-bit weights into one number.
pub(in crate::engine::cpu) fn pack(low: i32, high: i32) -> i32 {
    (low & 0xFFFF) | (high << 16)
}
