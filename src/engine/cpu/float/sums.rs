//! Sums of weights times samples, each in the order of its taps.
//!
//! ```text
//! line  0   x x x x x x ..        output row 0   lines 0 1 2
//! line  1   x x x x x x ..        output row 1   lines   1 2 3        mask of three rows
//! line  2   x x x x x x ..        output row 2   lines     2 3 4
//! ..                              output row 3   lines       3 4 5
//! ```
//!
//! A vector of a line is loaded once for all output rows that it is part of, and a weight is broadcast once
//! for all vectors of a row, so that multiply-adds, not loads, are what the loop waits for.
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use crate::engine::cpu::simd::float::Samples;

/// Output rows that are made at once.
pub(super) const ROWS: usize = 4;

/// Vectors of each of them that are made at once: their sums, and the vectors of one line, take most of the
/// registers.
pub(super) const fn vectors<S: Samples>() -> usize {
    if S::REGISTERS < 32 { 3 } else { 6 }
}

/// The weights of a mask.
pub(super) struct Taps {
    /// Row by row.
    weights: Vec<f32>,
    width: usize,
}

impl Taps {
    pub(super) fn new(weights: Vec<f32>, width: usize) -> Taps {
        Taps { weights, width }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn height(&self) -> usize {
        self.weights.len() / self.width
    }
}

/// Lines that sums are made of.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) memory: &'a [f32],
    /// Where each line has the sample of the first tap of the first sum.
    pub(super) places: &'a [usize],
    /// Samples from one tap to the next.
    pub(super) step: usize,
}

/// The sums of [`ROWS`] output rows, each of as many as `starts` has, which is what they start from: a
/// multiple of a vector. They go to `to`, row after row.
#[inline(always)]
pub(super) fn sums<S: Samples>(s: S, taps: &Taps, lines: Lines<'_>, starts: &[f32], to: &mut [f32]) {
    let at = if const { S::REGISTERS < 32 } {
        rows_of_tiles::<S, 3>(s, taps, lines, starts, to, 0)
    } else {
        rows_of_tiles::<S, 6>(s, taps, lines, starts, to, 0)
    };
    rows_of_tiles::<S, 1>(s, taps, lines, starts, to, at);
}

/// Tiles of `V` vectors from sum `from` on, as many as there are; where the rest begins.
#[inline(always)]
fn rows_of_tiles<S: Samples, const V: usize>(
    s: S,
    taps: &Taps,
    lines: Lines<'_>,
    starts: &[f32],
    to: &mut [f32],
    from: usize,
) -> usize {
    let len = starts.len();
    let mut at = from;
    while at + V * S::LANES <= len {
        let sums = tile::<S, V>(s, taps, lines, &starts[at..], at);
        for r in 0..ROWS {
            for v in 0..V {
                s.store(sums[r][v], &mut to[r * len + at + v * S::LANES..]);
            }
        }
        at += V * S::LANES;
    }
    at
}

#[inline(always)]
fn tile<S: Samples, const V: usize>(
    s: S,
    taps: &Taps,
    lines: Lines<'_>,
    starts: &[f32],
    at: usize,
) -> [[S::V; V]; ROWS] {
    let mut start = [s.splat(0.0); V];
    for v in 0..V {
        start[v] = s.load(&starts[v * S::LANES..]);
    }
    let mut sums = [start; ROWS];
    let (width, height) = (taps.width, taps.height());
    let reach = (width - 1) * lines.step + V * S::LANES;
    for (j, &place) in lines.places.iter().enumerate() {
        let line = &lines.memory[place + at..][..reach];
        // The output rows that this line is part of, with mask row j for the first of all.
        let job = (taps, line, lines.step, j);
        match ((j + 1).saturating_sub(height), (j + 1).min(ROWS)) {
            (0, 4) => add::<S, V, 0, 4>(s, job, &mut sums),
            (0, 1) => add::<S, V, 0, 1>(s, job, &mut sums),
            (0, 2) => add::<S, V, 0, 2>(s, job, &mut sums),
            (0, 3) => add::<S, V, 0, 3>(s, job, &mut sums),
            (1, 2) => add::<S, V, 1, 2>(s, job, &mut sums),
            (2, 3) => add::<S, V, 2, 3>(s, job, &mut sums),
            (3, 4) => add::<S, V, 3, 4>(s, job, &mut sums),
            (1, 4) => add::<S, V, 1, 4>(s, job, &mut sums),
            (2, 4) => add::<S, V, 2, 4>(s, job, &mut sums),
            _ => unreachable!("masks have an odd number of rows"),
        }
    }
    sums
}

/// Adds a line's products to the output rows from `FIRST` up to `END`.
#[inline(always)]
fn add<S: Samples, const V: usize, const FIRST: usize, const END: usize>(
    s: S,
    (taps, line, step, j): (&Taps, &[f32], usize, usize),
    sums: &mut [[S::V; V]; ROWS],
) {
    let width = taps.width;
    let mut weights = [&taps.weights[..0]; ROWS];
    for r in FIRST..END {
        weights[r] = &taps.weights[(j - r) * width..][..width];
    }
    let mut samples = [s.splat(0.0); V];
    for i in 0..width {
        let from = &line[i * step..][..V * S::LANES];
        for v in 0..V {
            samples[v] = s.load(&from[v * S::LANES..]);
        }
        for r in FIRST..END {
            let weight = s.splat(weights[r][i]);
            for v in 0..V {
                sums[r][v] = s.fused(weight, samples[v], sums[r][v]);
            }
        }
    }
}

/// Sums along one line, `step` samples from tap to tap, from 0 on: as many as `to` takes, a multiple of a
/// vector.
#[inline(always)]
pub(super) fn along_row<S: Samples>(s: S, taps: &Taps, line: &[f32], step: usize, to: &mut [f32]) {
    let at = along_tiles::<S, 8>(s, taps, (line, step), to, 0);
    along_tiles::<S, 1>(s, taps, (line, step), to, at);
}

#[inline(always)]
fn along_tiles<S: Samples, const V: usize>(
    s: S,
    taps: &Taps,
    (line, step): (&[f32], usize),
    to: &mut [f32],
    from: usize,
) -> usize {
    let reach = (taps.width - 1) * step + V * S::LANES;
    let mut at = from;
    while at + V * S::LANES <= to.len() {
        let line = &line[at..][..reach];
        let mut sums = [s.splat(0.0); V];
        for (i, &weight) in taps.weights.iter().enumerate() {
            let from = &line[i * step..][..V * S::LANES];
            let weight = s.splat(weight);
            for v in 0..V {
                sums[v] = s.fused(weight, s.load(&from[v * S::LANES..]), sums[v]);
            }
        }
        for v in 0..V {
            s.store(sums[v], &mut to[at + v * S::LANES..]);
        }
        at += V * S::LANES;
    }
    at
}
