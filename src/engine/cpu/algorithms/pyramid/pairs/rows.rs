//! Rows of the result from pairs of wide rows, with vectors, where sums fit 32 bits.
//!
//! ```text
//! wide row 0   a0 a1 a2 ..    16 bits, less 32768
//! wide row 1   b0 b1 b2 ..
//!    | once for D rows of the result
//! line         a0 b0 a1 b1 a2 b2 ..   pairs of words; three lines of them
//!    | three multiply-adds, bias, shift, clamp                  rows/sums/column_filter.rs
//! rows         p0 p1 p2 ..            two at a time, or four
//! ```

use super::dots::word;
use crate::engine::cpu::algorithms::pyramid::Pyramid;
use crate::engine::cpu::rows::plane_filter::PlanePart;
use crate::engine::cpu::rows::store::requantize::{Requantize, Sums};
use crate::engine::cpu::rows::strip::OutputRows;
use crate::engine::cpu::rows::sums::column_filter::{Lines, convolve, makes_four_rows};
use crate::engine::cpu::rows::sums::taps::{Fold, Group, Tap, Taps, pack};
use crate::engine::cpu::simd::scratch::{aligned, room, spread};
use crate::engine::cpu::simd::vector::{Order, Plain, Simd, TILE};
use crate::engine::cpu::simd::{Vectors, run_plain, with_simd};
use crate::filter::{Division, PyramidGrid, PyramidKernel};

/// Lines of pairs.
const LINES: usize = PyramidGrid::TAPS / 2;

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct RowMemory {
    /// Pairs of wide rows.
    pairs: Vec<u32>,
    taps: [Group; 3],
    /// Result rows that the strip does not have.
    spare: Vec<u8>,
}

/// Makes rows of a plane from pairs of wide rows.
pub(super) struct PairedRows {
    pub(super) vectors: Vectors,
    requantize: Requantize,
    /// Rows that are made at once.
    pub(super) at_once: usize,
}

impl PairedRows {
    /// `None` without vectors, if nothing is convolved, or if sums do not fit 32 bits.
    pub(super) fn new(part: &PlanePart<'_>, kernel: &PyramidKernel) -> Option<PairedRows> {
        let vectors = part.vectors.filter(|_| !kernel.is_wide())?;
        let scale = 1_i64 << kernel.interpolate_bits;
        let most = i64::from(part.format.max_value()) << kernel.fraction_bits;
        let sums = Sums {
            limbs: 1,
            bits: 16,
            division: Division::by_power_of_two(kernel.last_shift()),
            range: (0, most * scale),
            largest: most,
            weight: scale,
            correction: scale << 15,
            raise: 0,
        };
        let order = (Order::Plain, vectors.lanes());
        Some(PairedRows {
            vectors,
            requantize: sums.requantize(part.format, part.channels(), order)?,
            at_once: with_simd!(vectors, simd => if makes_four_rows(simd, 1) { 4 } else { 2 }),
        })
    }

    /// Elements from a line of pairs to the next, for rows of `samples` samples.
    fn pitch(samples: usize) -> usize {
        spread(samples.next_multiple_of(TILE))
    }

    /// Makes rows from `wide` rows, which are paired if they are new, from `place` after a low row on: as
    /// many as `out` has, at most [`PairedRows::at_once`].
    pub(super) fn make(
        &self,
        pyramid: &Pyramid,
        RowMemory { pairs, taps, spare }: &mut RowMemory,
        (wide, are_new): ([&[i32]; PyramidGrid::TAPS], bool),
        place: usize,
        out: OutputRows<'_>,
    ) {
        let samples = wide[0].len();
        let pitch = PairedRows::pitch(samples);
        let pairs = aligned(pairs, LINES * pitch);
        if are_new {
            run_plain(
                Some(self.vectors),
                Pair {
                    wide,
                    pairs: &mut *pairs,
                },
            );
        }
        let made = out.bytes.len().div_ceil(out.stride);
        let is_four = made > 2;
        for group in &mut *taps {
            group.single.clear();
        }
        // The taps of all four rows are the second group.
        let group = &mut taps[usize::from(is_four)].single;
        group.extend((0..LINES).map(|line| {
            let pair = |row: usize| match pyramid.kernel.interpolate.get(place + row) {
                Some(weights) if row < made => pack(weights[2 * line], weights[2 * line + 1]),
                _ => 0,
            };
            let at = line * pitch;
            Tap {
                at,
                mirror: at,
                weights: std::array::from_fn(pair),
            }
        }));
        let taps = Taps {
            groups: taps,
            fold: Fold::Add,
        };
        let out = OutputRows {
            spare: room(spare, 2 * out.row_bytes),
            ..out
        };
        with_simd!(self.vectors, simd => match (pyramid.format.bytes_per_sample(), is_four) {
            (1, false) => self.convolve::<_, 1, 2>(simd, pairs, taps, samples, out),
            (1, true) => self.convolve::<_, 1, 4>(simd, pairs, taps, samples, out),
            (_, false) => self.convolve::<_, 2, 2>(simd, pairs, taps, samples, out),
            (_, true) => self.convolve::<_, 2, 4>(simd, pairs, taps, samples, out),
        });
    }

    fn convolve<L: Simd, const BYTES: usize, const ROWS: usize>(
        &self,
        simd: L,
        pairs: &[u32],
        taps: Taps<'_>,
        samples: usize,
        out: OutputRows<'_>,
    ) {
        let lines = Lines {
            elements: pairs,
            limbs: 1,
            limb_stride: 0,
            order: Order::Plain,
            next: [&[], &[]],
        };
        let out = out.split::<ROWS>();
        convolve::<L, BYTES, ROWS>(simd, lines, taps, &self.requantize, samples, out);
    }
}

/// The loop that pairs six wide rows.
struct Pair<'a> {
    wide: [&'a [i32]; PyramidGrid::TAPS],
    pairs: &'a mut [u32],
}

impl Plain for Pair<'_> {
    #[inline(always)]
    fn run(self) {
        let lines = self.pairs.chunks_mut(PairedRows::pitch(self.wide[0].len()));
        for (line, [upper, lower]) in lines.zip(self.wide.as_chunks::<2>().0) {
            for ((pair, &upper), &lower) in line.iter_mut().zip(*upper).zip(*lower) {
                *pair = word(upper) | word(lower) << 16;
            }
        }
    }
}
