//! Box filters of bytes of several components, from 9 columns on, by sums of groups of columns:
//!
//! ```text
//! 13 columns of a component     c c c c c c c c c c c c c
//! window                       |c|   four|   four|   four|
//!
//! 15 columns                    c c c c c c c c c c c c c c c
//! window                     |   four|   four|   four|   four| less the column before the first
//! ```
//!
//! A group holds its last column's place. Sums of four columns are made in registers while the columns change
//! by the entering row less the leaving one, so that a window is the sum of a few vectors. Columns at even
//! and at odd places are kept separately, as in `sums.rs`.
#![allow(unsafe_code)]

use super::Windows;
use super::quotient::{Constants, Kept, Quotient, QuotientScratch};
use super::row_ends::{ENDS, EndScratch, RowEnds};
use crate::engine::cpu::rows::border::{Apron, RowBorder};
use crate::engine::cpu::rows::store::prefetch::{NextRows, prefetch};
use crate::engine::cpu::simd::scratch::filled;
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};

/// Fewest and most columns of a mask; most components of a pixel.
const LEAST: usize = 9;
const MOST: usize = 31;
const MOST_CHANNELS: usize = 4;

// What a window reads, a column before it included, fits one TILE on either side of a row.
const _: () = assert!((MOST / 2 + 1) * MOST_CHANNELS <= TILE);

/// True if this method suits masks of `columns` columns.
pub(in crate::engine::cpu::algorithms::box_blur) fn suit(columns: usize, channels: usize) -> bool {
    (LEAST..=MOST).contains(&columns) && (2..=MOST_CHANNELS).contains(&channels)
}

/// Index of lines: columns and sums of four, each of even and of odd places.
const ONES: usize = 0;
const FOURS: usize = 1;

/// Most groups of a window.
const MOST_GROUPS: usize = (MOST + 1) / 4;

/// Scratch memory of a thread.
#[derive(Default)]
pub(in crate::engine::cpu) struct GroupScratch {
    lines: [[Vec<u16>; 2]; 2],
    quotient: QuotientScratch,
    zeros: Vec<u8>,
    ends: EndScratch,
}

/// The columns of a strip.
pub(in crate::engine::cpu::algorithms::box_blur) struct GroupedColumns<'a> {
    /// Sums of columns, or what they change by; they begin a TILE before the row.
    lines: [[&'a mut [u16]; 2]; 2],
    kept: Kept<'a>,
    /// A row of zeros.
    zeros: &'a [u8],
    ends: RowEnds<'a>,
    samples: usize,
    columns: usize,
    channels: usize,
}

impl<'a> GroupedColumns<'a> {
    /// Columns without rows, for rows of `width` pixels with this apron and masks of `columns` x `rows`.
    pub(in crate::engine::cpu::algorithms::box_blur) fn new(
        scratch: &'a mut GroupScratch,
        (border, apron): (&RowBorder, &Apron),
        width: usize,
        ((columns, rows), quotient): ((usize, usize), Quotient),
    ) -> GroupedColumns<'a> {
        let channels = border.channels();
        assert!(suit(columns, channels));
        let samples = width * channels;
        let half = (samples.next_multiple_of(TILE) + ENDS) / 2;
        scratch.zeros.resize(scratch.zeros.len().max(samples), 0);
        GroupedColumns {
            lines: scratch
                .lines
                .each_mut()
                .map(|both| both.each_mut().map(|line| filled(line, half, 0))),
            kept: Kept::new(&mut scratch.quotient, quotient, samples),
            zeros: &scratch.zeros[..samples],
            ends: RowEnds::new(&mut scratch.ends, (border, apron), samples, rows),
            samples,
            columns,
            channels,
        }
    }

    /// The words that results at even and at odd places read for the row's first one: of the column at the
    /// end of the window, or before it, and of its groups.
    fn terms(&self) -> ([*const u16; 2], [[*const u16; 2]; MOST_GROUPS]) {
        let lines = self
            .lines
            .each_ref()
            .map(|both| both.each_ref().map(|line| line[TILE / 2..].as_ptr()));
        let (last, channels) = ((self.columns / 2) as isize, self.channels as isize);
        let term = |line: usize, before: usize| {
            [0, 1].map(|odd| {
                let place = odd + (last - before as isize) * channels;
                lines[line][place.rem_euclid(2) as usize].wrapping_offset(place.div_euclid(2))
            })
        };
        let beside = if self.is_less() {
            self.columns
        } else {
            self.columns - 1
        };
        (term(ONES, beside), std::array::from_fn(|k| term(FOURS, 4 * k)))
    }

    /// True if groups have a column more than the window, and not one less.
    fn is_less(&self) -> bool {
        self.columns % 4 == 3
    }

    fn enter_change<L: Simd, const ARE_SUMS: bool>(simd: L, channels: usize, change: Change<'_>) {
        match channels {
            2 => simd.enter(ChangeOf::<2, ARE_SUMS>(change)),
            3 => simd.enter(ChangeOf::<3, ARE_SUMS>(change)),
            _ => simd.enter(ChangeOf::<4, ARE_SUMS>(change)),
        }
    }
}

impl<'a> Windows<'a> for GroupedColumns<'a> {
    fn kept(&mut self) -> &mut Kept<'a> {
        &mut self.kept
    }

    fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>) {
        let leaving = leaving.unwrap_or(self.zeros);
        assert!(entering.len() == self.samples && leaving.len() == self.samples);
        let change = Change {
            rows: [entering, leaving],
            ends: self.ends.enter(entering),
            lines: self
                .lines
                .each_mut()
                .map(|both| both.each_mut().map(|line| line[TILE / 2..].as_mut_ptr())),
            reach: self.columns / 2 * self.channels,
        };
        match self.kept.quotient {
            Quotient::Sums(_) => Self::enter_change::<L, true>(simd, self.channels, change),
            Quotient::Changes { .. } => Self::enter_change::<L, false>(simd, self.channels, change),
        }
    }

    fn make_from<L: Simd>(&mut self, simd: L, above: Option<&[u8]>, out: &mut [u8], next: NextRows<'_>) {
        assert!(out.len() == self.samples && above.is_none_or(|above| above.len() == self.samples));
        let (column, groups) = self.terms();
        let quotient = self.kept.quotient;
        let remainders = self.kept.remainders.each_mut().map(|line| line.as_mut_ptr());
        let make = Make {
            column,
            is_less: self.is_less(),
            groups: &groups[..self.columns.div_ceil(4) - usize::from(!self.is_less())],
            remainders,
            quotient,
            above,
            out,
            next,
        };
        match quotient {
            Quotient::Sums(_) => simd.enter(MakeOf::<true>(make)),
            Quotient::Changes { .. } => simd.enter(MakeOf::<false>(make)),
        }
    }
}

/// The arguments of a row's change.
struct Change<'a> {
    /// The entering row and the leaving one.
    rows: [&'a [u8]; 2],
    /// Their ends.
    ends: [&'a [u8]; 2],
    /// From the row's first sample on.
    lines: [[*mut u16; 2]; 2],
    /// Samples that masks reach to the right of a result.
    reach: usize,
}

/// The loop that changes columns of pixels of `C` components; with `ARE_SUMS` their sums, else what is stored
/// is the change.
struct ChangeOf<'a, const C: usize, const ARE_SUMS: bool>(Change<'a>);

/// The words `by` places before each of `words`, which follow those of `before`.
#[inline(always)]
fn earlier<L: Simd>(simd: L, by: usize, before: L::V, words: L::V) -> L::V {
    match by {
        1 => simd.earlier_i16::<1>(before, words),
        2 => simd.earlier_i16::<2>(before, words),
        3 => simd.earlier_i16::<3>(before, words),
        _ => simd.earlier_i16::<4>(before, words),
    }
}

impl<const C: usize, const ARE_SUMS: bool> ChangeOf<'_, C, ARE_SUMS> {
    /// Changes a step's columns from sample `x` on by the bytes of both rows at `from`. `before` holds the
    /// previous step's columns and its sums of two.
    ///
    /// # Safety
    /// 4 LANES bytes are readable at both places, and x is a multiple of the step from -TILE to the end of
    /// the lines less a step.
    #[inline(always)]
    unsafe fn step<L: Simd>(
        &self,
        simd: L,
        low: L::V,
        before: &mut [[L::V; 2]; 2],
        x: isize,
        from: [*const u8; 2],
    ) {
        let at = |line: usize, odd: usize| self.0.lines[line][odd].wrapping_offset(x / 2);
        // SAFETY: 4 LANES bytes are readable at both places, and 2 LANES words of each line from x / 2 on, as
        // this function requires.
        unsafe {
            let (more, less) = (simd.load(from[0]), simd.load(from[1]));
            let mut columns = [
                simd.sub_i16(simd.and(more, low), simd.and(less, low)),
                simd.sub_i16(simd.shift_right_u16(more, 8), simd.shift_right_u16(less, 8)),
            ];
            for odd in 0..2 {
                if ARE_SUMS {
                    columns[odd] = simd.add_i16(columns[odd], simd.load(at(ONES, odd)));
                }
                simd.store(at(ONES, odd), columns[odd]);
            }
            let mut twos = columns;
            for odd in 0..2 {
                // The column before lies C samples before this one.
                let place = odd as isize - C as isize;
                let (half, by) = (place.rem_euclid(2) as usize, -place.div_euclid(2));
                let other = earlier(simd, by as usize, before[0][half], columns[half]);
                twos[odd] = simd.add_i16(columns[odd], other);
                let others = earlier(simd, C, before[1][odd], twos[odd]);
                simd.store(at(FOURS, odd), simd.add_i16(twos[odd], others));
            }
            *before = [columns, twos];
        }
    }
}

impl<const C: usize, const ARE_SUMS: bool> IntLoop for ChangeOf<'_, C, ARE_SUMS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let low = simd.splat(0x00FF_00FF);
        let mut before = [[simd.splat(0); 2]; 2];
        let Change {
            rows, ends, reach, ..
        } = self.0;
        let (step, samples) = (4 * L::LANES, rows[0].len());
        let whole = samples / TILE * TILE;
        let (rows, ends) = (rows.map(<[u8]>::as_ptr), ends.map(<[u8]>::as_ptr));
        // SAFETY: the ends have a TILE before the row; steps up to `whole` end within both rows, which have
        // as many bytes; what follows are less than a TILE of the row, and at most a TILE after it, in two
        // TILEs of the ends. The lines have as many words.
        unsafe {
            for at in (0..TILE).step_by(step) {
                let from = [ends[0].add(at), ends[1].add(at)];
                self.step(simd, low, &mut before, at as isize - TILE as isize, from);
            }
            for x in (0..whole).step_by(step) {
                let from = [rows[0].add(x), rows[1].add(x)];
                self.step(simd, low, &mut before, x as isize, from);
            }
            for x in (whole..samples + reach).step_by(step) {
                let at = TILE + x - whole;
                let from = [ends[0].add(at), ends[1].add(at)];
                self.step(simd, low, &mut before, x as isize, from);
            }
        }
    }
}

/// The arguments of a row of results.
struct Make<'a> {
    /// See [`GroupedColumns::terms`].
    column: [*const u16; 2],
    /// True if the column is subtracted.
    is_less: bool,
    groups: &'a [[*const u16; 2]],
    remainders: [*mut u16; 2],
    quotient: Quotient,
    /// The results above, as many as `out` has; `None` if they are in `out`.
    above: Option<&'a [u8]>,
    out: &'a mut [u8],
    next: NextRows<'a>,
}

/// The loop that makes a row of results from windows' sums, or from what they change by.
struct MakeOf<'a, const ARE_SUMS: bool>(Make<'a>);

impl<const ARE_SUMS: bool> MakeOf<'_, ARE_SUMS> {
    /// Makes a step's results from sample `x` on, from those at `above`.
    ///
    /// # Safety
    /// Each line of `column` and `groups` has 2 LANES readable words from `x / 2` on, and each of
    /// `remainders` as many that are readable and writable; 4 LANES bytes are readable at `above` and
    /// writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize, above: *const u8, to: *mut u8) {
        let Make {
            column,
            is_less,
            groups,
            remainders,
            ..
        } = &self.0;
        // SAFETY: a vector is 2 LANES words, as many as this function requires of each line from `x / 2` on,
        // and of bytes 4 LANES, as many as it requires at `above` and `to`.
        unsafe {
            let load = |from: *const u16| simd.load(from.add(x / 2));
            let mut windows = groups[0].map(load);
            for group in &groups[1..] {
                for odd in 0..2 {
                    windows[odd] = simd.add_i16(windows[odd], load(group[odd]));
                }
            }
            for odd in 0..2 {
                let column = load(column[odd]);
                windows[odd] = match is_less {
                    true => simd.sub_i16(windows[odd], column),
                    false => simd.add_i16(windows[odd], column),
                };
            }
            let kept = remainders.map(|line| line.add(x / 2));
            c.store::<L, ARE_SUMS>(simd, windows, kept, above, to);
        }
    }
}

impl<const ARE_SUMS: bool> IntLoop for MakeOf<'_, ARE_SUMS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let constants = Constants::new(simd, self.0.quotient);
        let (step, samples) = (4 * L::LANES, self.0.out.len());
        let whole = samples / step * step;
        let to = self.0.out.as_mut_ptr();
        let above = self.0.above.map_or(to.cast_const(), <[u8]>::as_ptr);
        for x in (0..whole).step_by(step) {
            prefetch(simd, self.0.next, x, step);
            // SAFETY: the step ends within the row. The lines have a TILE before the row and two after its
            // last whole one, as much as masks reach; remainders are as many as the row's samples, rounded up
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
            self.0.out[whole..].copy_from_slice(&last[1][..samples - whole]);
        }
    }
}
