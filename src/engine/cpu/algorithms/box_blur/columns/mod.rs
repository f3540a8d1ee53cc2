//! Box filters by sums of columns: each column's sum over the rows of the window changes by the entering
//! sample less the leaving one, both read in place in the picture, and a window is a sum of columns.
//!
//! ```text
//! entering row    p p p p p p ..
//! leaving row     p p p p p p ..
//!    | column += entering - leaving
//! columns         c c c c c c ..      kept from row to row
//!    | sums of neighbours
//! windows         w w w w w w ..
//!    | division
//! row out         p p p p p p ..
//! ```
//!
//! | file | samples | columns of the mask | a window is the sum of |
//! |---|---|---|---|
//! | `sums.rs` | bytes | up to 7 | its columns |
//! | `pairs.rs` | bytes of one component | 7 to 31 | pairs of columns, or two or four pairs |
//! | `groups.rs` | bytes of several | 9 to 31 | groups of four columns |
//! | `deep_sums.rs` | words | any | its columns, in 32 bits |
//!
//! Where 16 bits do not hold a window's sum, they hold what it changes by from row to row (`quotient.rs`).

pub(super) mod deep_sums;
pub(super) mod groups;
pub(super) mod pairs;
pub(super) mod quotient;
mod row_ends;
pub(super) mod sums;

use crate::engine::cpu::rows::border;
use crate::engine::cpu::rows::store::prefetch::NextRows;
use crate::engine::cpu::simd::vector::Simd;
use quotient::{Kept, Quotient};

/// The sums of a strip's columns over the rows of the window, which is empty at first.
pub(super) trait Columns {
    /// Adds the entering row to the sums, and subtracts the leaving one; there is none until the window is
    /// full.
    fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>);

    /// Fills the apron of the row of column sums. A border constant counts once for each of the `rows` rows.
    fn extend(&mut self, apron: &border::Apron, rows: usize);

    /// Makes a row of the result, and prefetches the rows of `next`.
    fn make<L: Simd>(&mut self, simd: L, out: &mut [u8], next: NextRows<'_>);
}

/// The sums of a strip's windows, or what they change by; windows are empty at first.
pub(super) trait Windows<'a> {
    /// What is kept of results.
    fn kept(&mut self) -> &mut Kept<'a>;

    /// Changes the columns by the entering row and the leaving one; there is none until the window is full.
    fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>);

    /// Makes a row from the results above it; `None`: from those that `out` has. The rows of `next` are
    /// prefetched.
    fn make_from<L: Simd>(&mut self, simd: L, above: Option<&[u8]>, out: &mut [u8], next: NextRows<'_>);

    /// Takes the change of windows that are not yet full.
    fn fill<L: Simd>(&mut self, simd: L) {
        if let Quotient::Changes { .. } = self.kept().quotient {
            let results = std::mem::take(&mut self.kept().above);
            self.make_from(simd, None, results, [&[]; 2]);
            self.kept().above = results;
        }
    }

    /// Makes a row of the result. `above` is the result's row above; there is none in the strip's first row.
    /// The rows of `next` are prefetched.
    fn make<L: Simd>(&mut self, simd: L, above: Option<&[u8]>, out: &mut [u8], next: NextRows<'_>) {
        let kept = std::mem::take(&mut self.kept().above);
        self.make_from(simd, Some(above.unwrap_or(kept)), out, next);
        self.kept().above = kept;
    }
}
