//! The ends of rows of bytes, which the border continues, for loops that read rows in place in the picture.
//!
//! ```text
//! row              |p p p p p p p p .. p p p p p p|
//! ends   b b b b b |                       p p p p|b b b b        b: what the border fills
//!        one TILE before the row           what follows the last whole TILE
//! ```

use crate::engine::cpu::rows::border::{Apron, ApronSource, RowBorder};
use crate::engine::cpu::simd::scratch::filled;
use crate::engine::cpu::simd::vector::TILE;

/// Bytes of the ends of a row.
pub(super) const ENDS: usize = 3 * TILE;

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct EndScratch {
    ends: Vec<u8>,
    apron: Apron,
}

/// A ring of the ends of rows, one more than the mask has rows.
pub(super) struct RowEnds<'a> {
    ends: &'a mut [u8],
    /// Bytes of a row's ends that the border fills, and their sources.
    apron: &'a Apron,
    /// Rows that have entered.
    entered: usize,
    /// Bytes of a row.
    samples: usize,
}

impl<'a> RowEnds<'a> {
    /// Ends of rows of zeros, for rows of `samples` bytes with this apron, at most [`TILE`] bytes on either
    /// side, and masks of `rows` rows.
    pub(super) fn new(
        scratch: &'a mut EndScratch,
        (border, apron): (&RowBorder, &Apron),
        samples: usize,
        rows: usize,
    ) -> RowEnds<'a> {
        let origin = border.origin();
        let tail = TILE + samples % TILE;
        scratch.apron.clear();
        scratch.apron.extend(apron.iter().map(|&(to, from)| {
            let place = if to < origin {
                TILE + to - origin
            } else {
                tail + to - origin - samples
            };
            let from = match from {
                ApronSource::Sample(at) => ApronSource::Sample(at - origin),
                constant @ ApronSource::Constant(_) => constant,
            };
            (place, from)
        }));
        RowEnds {
            ends: filled(&mut scratch.ends, (rows + 1) * ENDS, 0),
            apron: &scratch.apron,
            entered: 0,
            samples,
        }
    }

    /// The ends of the row that enters, and those of the row that leaves: zeros until the window is full.
    pub(super) fn enter(&mut self, entering: &[u8]) -> [&[u8]; 2] {
        let slots = self.ends.len() / ENDS;
        // The oldest row's ends are still there, zeros at first.
        let at = [self.entered, self.entered + 1].map(|row| row % slots * ENDS);
        let ends = &mut self.ends[at[0]..][..ENDS];
        let tail = &entering[self.samples / TILE * TILE..];
        ends[TILE..][..tail.len()].copy_from_slice(tail);
        for &(to, from) in self.apron {
            ends[to] = match from {
                ApronSource::Sample(from) => entering[from],
                ApronSource::Constant(value) => value as u8,
            };
        }
        self.entered += 1;
        at.map(|at| &self.ends[at..][..ENDS])
    }
}
