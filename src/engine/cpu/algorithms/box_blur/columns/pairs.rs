//! Box filters of bytes of one component, from 7 columns on, by sums of pairs of columns, which the windows
//! of two neighbouring results share:
//!
//! ```text
//! 7 columns          . e o e o e o e .        9 columns     e o e o e o e o e .
//! even result        o[e o|e o|e o]           even result  [e o|e o|e o|e o]e
//! odd result           [e o|e o|e o]e         odd result    even result - first e + next o
//! ```
//!
//! Neighbouring pairs are added up by two or by four while the columns change, so that a window is the sum of
//! a few vectors.
//!
//! Up to 15 columns a column's sum changes by the entering byte less the leaving one, and windows fit 16
//! bits. From 17 columns on they do not, but their changes from row to row do (`quotient.rs`).
#![allow(unsafe_code)]

use super::Windows;
use super::quotient::{Constants, Kept, Quotient, QuotientScratch};
use super::row_ends::{ENDS, EndScratch, RowEnds};
use crate::engine::cpu::rows::border::{Apron, RowBorder};
use crate::engine::cpu::rows::store::prefetch::{NextRows, prefetch};
use crate::engine::cpu::simd::scratch::filled;
use crate::engine::cpu::simd::unroll::unroll;
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};

/// Fewest columns of a mask.
const LEAST: usize = 7;

/// Most columns of a mask whose sums fit words.
const MOST_IN_WORDS: usize = 15;

/// Most columns of a mask.
const MOST: usize = 31;

/// Neighbouring pairs that are added up while columns change.
const fn pairs_of_a_group(columns: usize) -> usize {
    match columns {
        ..9 => 1,
        9..23 => 2,
        _ => 4,
    }
}

/// Whole groups of a window of `columns` columns. Three pairs are a group of four less the next pair.
const fn groups(columns: usize) -> usize {
    let group = pairs_of_a_group(columns);
    (columns / 2 + group / 4) / group
}

/// Columns that are read on the right of a result: those of the window, and a pair next to it if groups have
/// more pairs than the window.
const fn reach_of_groups(columns: usize) -> usize {
    let has_next = groups(columns) * pairs_of_a_group(columns) > columns / 2;
    columns / 2 + if has_next { 2 } else { 0 }
}

/// True if this method suits masks of `columns` columns, given that their sums fit words.
pub(in crate::engine::cpu::algorithms::box_blur) fn suit(columns: usize, channels: usize) -> bool {
    (LEAST..=MOST_IN_WORDS).contains(&columns) && channels == 1
}

/// True if this method suits larger masks.
pub(in crate::engine::cpu::algorithms::box_blur) fn suit_changes(columns: usize, channels: usize) -> bool {
    (MOST_IN_WORDS + 2..=MOST).contains(&columns) && channels == 1
}

/// Scratch memory of a thread.
#[derive(Default)]
pub(in crate::engine::cpu) struct PairScratch {
    lines: [Vec<u16>; 4],
    quotient: QuotientScratch,
    zeros: Vec<u8>,
    ends: EndScratch,
}

/// Index of a line: columns at even places, those at odd places, pairs of both, and sums of a group of pairs,
/// each up to the pair at its place.
const EVEN: usize = 0;
const ODD: usize = 1;
const PAIRS: usize = 2;
const GROUPS: usize = 3;

/// The columns of a strip.
pub(in crate::engine::cpu::algorithms::box_blur) struct PairedColumns<'a> {
    /// Sums of columns, or what they change by; they begin a TILE before the row.
    lines: [&'a mut [u16]; 4],
    kept: Kept<'a>,
    /// A row of zeros.
    zeros: &'a [u8],
    ends: RowEnds<'a>,
    samples: usize,
    columns: usize,
}

impl<'a> PairedColumns<'a> {
    /// Columns without rows, for rows of `width` pixels with this apron and masks of `columns` x `rows`.
    pub(in crate::engine::cpu::algorithms::box_blur) fn new(
        scratch: &'a mut PairScratch,
        (border, apron): (&RowBorder, &Apron),
        width: usize,
        ((columns, rows), quotient): ((usize, usize), Quotient),
    ) -> PairedColumns<'a> {
        let fits_words = matches!(quotient, Quotient::Sums(_));
        assert!(border.channels() == 1 && fits_words == (columns <= MOST_IN_WORDS));
        let half = (width.next_multiple_of(TILE) + ENDS) / 2;
        scratch.zeros.resize(scratch.zeros.len().max(width), 0);
        PairedColumns {
            lines: scratch.lines.each_mut().map(|line| filled(line, half, 0)),
            kept: Kept::new(&mut scratch.quotient, quotient, width),
            zeros: &scratch.zeros[..width],
            ends: RowEnds::new(&mut scratch.ends, (border, apron), width, rows),
            samples: width,
            columns,
        }
    }
}

impl<'a> Windows<'a> for PairedColumns<'a> {
    fn kept(&mut self) -> &mut Kept<'a> {
        &mut self.kept
    }

    fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>) {
        let leaving = leaving.unwrap_or(self.zeros);
        assert!(entering.len() == self.samples && leaving.len() == self.samples);
        let ends = self.ends.enter(entering);
        let lines = self.lines.each_mut().map(|line| line[TILE / 2..].as_mut_ptr());
        let rows = [entering, leaving];
        unroll!(
            self.columns,
            [7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31],
            COLUMNS => simd.enter(Change::<COLUMNS> { rows, ends, lines })
        );
    }

    fn make_from<L: Simd>(&mut self, simd: L, above: Option<&[u8]>, out: &mut [u8], next: NextRows<'_>) {
        assert!(out.len() == self.samples && above.is_none_or(|above| above.len() == self.samples));
        let lines = self.lines.each_ref().map(|line| line[TILE / 2..].as_ptr());
        let remainders = self.kept.remainders.each_mut().map(|line| line.as_mut_ptr());
        let quotient = self.kept.quotient;
        unroll!(
            self.columns,
            [7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31],
            COLUMNS => simd.enter(Make::<COLUMNS> { lines, remainders, quotient, above, out, next })
        );
    }
}

/// The loop that changes columns.
struct Change<'a, const COLUMNS: usize> {
    /// The entering row and the leaving one.
    rows: [&'a [u8]; 2],
    /// Their ends.
    ends: [&'a [u8]; 2],
    /// From the row's first sample on.
    lines: [*mut u16; 4],
}

/// Element `x` of each line; before the line where that is negative.
#[inline(always)]
fn elements(mut lines: [*mut u16; 4], x: isize) -> [*mut u16; 4] {
    for line in &mut lines {
        *line = line.wrapping_offset(x);
    }
    lines
}

impl<const COLUMNS: usize> Change<'_, COLUMNS> {
    const GROUP: usize = pairs_of_a_group(COLUMNS);

    /// True if windows have pairs beside whole groups.
    const HAS_PAIRS: bool = Self::GROUP == 1 || !(COLUMNS / 2).is_multiple_of(Self::GROUP);

    /// Changes a step's columns from sample `x` on by the bytes of both rows at `from`. `before` holds the
    /// previous step's pairs, and its sums of two pairs.
    ///
    /// # Safety
    /// 4 LANES bytes are readable at both places, and x is a multiple of the step from -TILE to the end of
    /// the lines less a step.
    #[inline(always)]
    unsafe fn step<L: Simd>(
        &self,
        simd: L,
        low: L::V,
        before: &mut [L::V; 2],
        x: isize,
        from: [*const u8; 2],
    ) {
        // SAFETY: 4 LANES bytes are readable at both places, and 2 LANES words of each line from x / 2 on,
        // as this function requires.
        unsafe {
            let at = elements(self.lines, x / 2);
            let (more, less) = (simd.load(from[0]), simd.load(from[1]));
            let mut columns = [
                simd.sub_i16(simd.and(more, low), simd.and(less, low)),
                simd.sub_i16(simd.shift_right_u16(more, 8), simd.shift_right_u16(less, 8)),
            ];
            for odd in 0..2 {
                if COLUMNS <= MOST_IN_WORDS {
                    columns[odd] = simd.add_i16(columns[odd], simd.load(at[odd]));
                }
                simd.store(at[odd], columns[odd]);
            }
            let pairs = simd.add_i16(columns[0], columns[1]);
            if Self::HAS_PAIRS {
                simd.store(at[PAIRS], pairs);
            }
            if Self::GROUP > 1 {
                let twos = simd.add_i16(pairs, simd.earlier_i16::<1>(before[0], pairs));
                let group = if Self::GROUP == 2 {
                    twos
                } else {
                    simd.add_i16(twos, simd.earlier_i16::<2>(before[1], twos))
                };
                simd.store(at[GROUPS], group);
                *before = [pairs, twos];
            }
        }
    }
}

impl<const COLUMNS: usize> IntLoop for Change<'_, COLUMNS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let low = simd.splat(0x00FF_00FF);
        let mut before = [simd.splat(0); 2];
        let (step, samples) = (4 * L::LANES, self.rows[0].len());
        let whole = samples / TILE * TILE;
        let rows = [self.rows[0].as_ptr(), self.rows[1].as_ptr()];
        let ends = [self.ends[0].as_ptr(), self.ends[1].as_ptr()];
        // SAFETY: the ends have a TILE before the row, of which this is the last step; steps up to `whole`
        // end within both rows, which have as many bytes; what follows are less than a TILE of the row, and
        // at most 17 bytes after it, in two TILEs of the ends. The lines have as many words.
        unsafe {
            self.step(
                simd,
                low,
                &mut before,
                -(step as isize),
                [ends[0].add(TILE - step), ends[1].add(TILE - step)],
            );
            for x in (0..whole).step_by(step) {
                self.step(
                    simd,
                    low,
                    &mut before,
                    x as isize,
                    [rows[0].add(x), rows[1].add(x)],
                );
            }
            for x in (whole..samples + reach_of_groups(COLUMNS)).step_by(step) {
                let at = TILE + x - whole;
                self.step(
                    simd,
                    low,
                    &mut before,
                    x as isize,
                    [ends[0].add(at), ends[1].add(at)],
                );
            }
        }
    }
}

/// The loop that makes a row of results.
struct Make<'a, const COLUMNS: usize> {
    /// From the row's first sample on.
    lines: [*const u16; 4],
    remainders: [*mut u16; 2],
    quotient: Quotient,
    /// The results above, as many as `out` has; `None` if they are in `out`.
    above: Option<&'a [u8]>,
    out: &'a mut [u8],
    next: NextRows<'a>,
}

impl<const COLUMNS: usize> Make<'_, COLUMNS> {
    const GROUP: usize = pairs_of_a_group(COLUMNS);

    /// Columns on either side of the middle one.
    const REACH: isize = (COLUMNS / 2) as isize;

    /// A vector of a line, from `place` words after that of sample `x` on.
    ///
    /// # Safety
    /// The line has 2 LANES readable words from place `x / 2 + place` on.
    #[inline(always)]
    unsafe fn load<L: Simd>(&self, simd: L, line: usize, x: usize, place: isize) -> L::V {
        // SAFETY: 2 LANES words are readable at `x / 2 + place`, as this function requires.
        unsafe { simd.load(self.lines[line].offset((x / 2) as isize + place)) }
    }

    /// The sums of as many pairs as the mask reaches columns on either side, from pair `first` on.
    ///
    /// # Safety
    /// The step's columns, and those that the mask reaches on either side, are readable.
    #[inline(always)]
    unsafe fn pairs<L: Simd>(&self, simd: L, x: usize, first: isize) -> L::V {
        // A group holds its last pair's place.
        let (all, group, groups) = (COLUMNS / 2, Self::GROUP, groups(COLUMNS));
        let line = if group == 1 { PAIRS } else { GROUPS };
        // SAFETY: the pairs are within the mask's reach of the step's columns, or next to it.
        unsafe {
            let mut sum = self.load(simd, line, x, first + group as isize - 1);
            for k in 1..groups {
                let last = (group * (k + 1) - 1) as isize;
                sum = simd.add_i16(sum, self.load(simd, line, x, first + last));
            }
            for k in groups * group..all {
                sum = simd.add_i16(sum, self.load(simd, PAIRS, x, first + k as isize));
            }
            if groups * group > all {
                sum = simd.sub_i16(sum, self.load(simd, PAIRS, x, first + all as isize));
            }
            sum
        }
    }

    /// The sums of the windows of results at even and at odd places, or what they change by.
    ///
    /// # Safety
    /// The step's columns, and those that the mask reaches on either side, are readable.
    #[inline(always)]
    unsafe fn windows<L: Simd>(&self, simd: L, x: usize) -> [L::V; 2] {
        // SAFETY: the places are within the mask's reach of the step's columns.
        unsafe {
            if Self::REACH % 2 == 1 {
                let half = (Self::REACH + 1) / 2;
                let common = self.pairs(simd, x, 1 - half);
                return [
                    simd.add_i16(common, self.load(simd, ODD, x, -half)),
                    simd.add_i16(common, self.load(simd, EVEN, x, half)),
                ];
            }
            let half = Self::REACH / 2;
            let even = simd.add_i16(self.pairs(simd, x, -half), self.load(simd, EVEN, x, half));
            let common = simd.sub_i16(even, self.load(simd, EVEN, x, -half));
            [even, simd.add_i16(common, self.load(simd, ODD, x, half))]
        }
    }

    /// Makes a step's results from sample `x` on, from those at `above`.
    ///
    /// # Safety
    /// The step's columns, and those that the mask reaches on either side, are readable; each line of
    /// `remainders` has 2 LANES words from `x / 2` on that are readable and writable; 4 LANES bytes are
    /// readable at `above` and writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize, above: *const u8, to: *mut u8) {
        // SAFETY: this function requires the columns that `windows` reads, and for `store` 2 LANES words of
        // each line of remainders and 4 LANES bytes at `above` and `to`.
        unsafe {
            let windows = self.windows(simd, x);
            let kept = self.remainders.map(|line| line.add(x / 2));
            if COLUMNS <= MOST_IN_WORDS {
                c.store::<L, true>(simd, windows, kept, above, to);
            } else {
                c.store::<L, false>(simd, windows, kept, above, to);
            }
        }
    }
}

impl<const COLUMNS: usize> IntLoop for Make<'_, COLUMNS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let constants = Constants::new(simd, self.quotient);
        let (step, samples) = (4 * L::LANES, self.out.len());
        let whole = samples / step * step;
        let to = self.out.as_mut_ptr();
        let above = self.above.map_or(to.cast_const(), <[u8]>::as_ptr);
        for x in (0..whole).step_by(step) {
            prefetch(simd, self.next, x, step);
            // SAFETY: the step ends within the row. The lines have a TILE before the row and two after its
            // last whole one, more than masks reach; remainders are as many as the row's samples, rounded up
            // to a multiple of TILE. `above` has as many results as `out`.
            unsafe { self.step(simd, &constants, x, above.add(x), to.add(x)) };
        }
        if whole < samples {
            let mut last = [[0_u8; TILE]; 2];
            // SAFETY: `above` has as many results as `out`, and the copies have a step's length.
            unsafe {
                above
                    .add(whole)
                    .copy_to_nonoverlapping(last[0].as_mut_ptr(), samples - whole);
                let [above, to] = &mut last;
                self.step(simd, &constants, whole, above.as_ptr(), to.as_mut_ptr());
            }
            self.out[whole..].copy_from_slice(&last[1][..samples - whole]);
        }
    }
}
