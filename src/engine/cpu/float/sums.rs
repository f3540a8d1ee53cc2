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

/// Vectors of each of them that are made at once: eight sums or more fill the time that a multiply-add takes,
/// and with the vectors of a line they leave some registers, so that none goes to memory.
pub(super) const fn vectors<S: Samples>() -> usize {
    if S::REGISTERS < 32 { 2 } else { 4 }
}

/// The weights of a mask as the loops take them: of each line, tap by tap, those for each of the output rows
/// that are made at once. 0 stands where a line is no part of a row, and is not used.
///
/// ```text
/// line 0    w00 -- -- --   w01 -- -- --   w02 -- -- --
/// line 1    w10 w00 -- --  w11 w01 -- --  w12 w02 -- --
/// line 2    w20 w10 w00 --  ..
/// ```
pub(super) struct Taps {
    weights: Vec<[f32; ROWS]>,
    width: usize,
    height: usize,
}

impl Taps {
    /// Those of a mask, row by row.
    pub(super) fn new(weights: &[f32], width: usize) -> Taps {
        let height = weights.len() / width;
        let at = |j: usize, i: usize, r: usize| match j.checked_sub(r) {
            Some(row) if row < height => weights[row * width + i],
            _ => 0.0,
        };
        let lines = (0..height + ROWS - 1).flat_map(|j| (0..width).map(move |i| (j, i)));
        Taps {
            weights: lines.map(|(j, i)| std::array::from_fn(|r| at(j, i, r))).collect(),
            width,
            height,
        }
    }

    /// Multiply-adds of a sum.
    pub(super) fn len(&self) -> usize {
        self.width * self.height
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

/// Rows that come next, brought into the cache meanwhile: of the picture, of the result, as many of each as
/// are made at once.
#[derive(Clone, Copy)]
pub(super) struct Next<'a> {
    pub(super) rows: [&'a [u8]; 2 * ROWS],
    /// Bytes of a sample.
    pub(super) bytes: usize,
}

impl Next<'_> {
    /// Prefetches what belongs to so many samples from sample `at` on.
    #[inline(always)]
    fn prefetch<S: Samples>(&self, s: S, at: usize, samples: usize) {
        const CACHE_LINE: usize = 64;
        for n in 0..2 * ROWS {
            let mut byte = at * self.bytes;
            while byte < self.rows[n].len().min((at + samples) * self.bytes) {
                s.prefetch(self.rows[n][byte..].as_ptr());
                byte += CACHE_LINE;
            }
        }
    }
}

/// The sums of [`ROWS`] output rows, each of as many as `starts` has, which is what they start from: a
/// multiple of a vector. They go to `to`, row after row.
#[inline(always)]
pub(super) fn sums<S: Samples>(
    s: S,
    taps: &Taps,
    lines: Lines<'_>,
    (starts, next): (&[f32], Next<'_>),
    to: &mut [f32],
) {
    // Of a column the one tap of a line is a constant of the loop.
    if taps.width == 1 {
        all_tiles::<S, 1>(s, taps, lines, (starts, next), to);
    } else {
        all_tiles::<S, 0>(s, taps, lines, (starts, next), to);
    }
}

/// [`sums`] of masks of `W` columns; 0 stands for any number.
#[inline(always)]
fn all_tiles<S: Samples, const W: usize>(
    s: S,
    taps: &Taps,
    lines: Lines<'_>,
    (starts, next): (&[f32], Next<'_>),
    to: &mut [f32],
) {
    let at = if const { S::REGISTERS < 32 } {
        tiles::<S, W, 2>(s, taps, lines, (starts, next), to, 0)
    } else {
        tiles::<S, W, 4>(s, taps, lines, (starts, next), to, 0)
    };
    tiles::<S, W, 1>(s, taps, lines, (starts, next), to, at);
}

/// Tiles of `V` vectors from sum `from` on, as many as there are; where the rest begins.
#[inline(always)]
fn tiles<S: Samples, const W: usize, const V: usize>(
    s: S,
    taps: &Taps,
    lines: Lines<'_>,
    (starts, next): (&[f32], Next<'_>),
    to: &mut [f32],
    from: usize,
) -> usize {
    let len = starts.len();
    let mut at = from;
    while at + V * S::LANES <= len {
        next.prefetch(s, at, V * S::LANES);
        let sums = tile::<S, W, V>(s, taps, lines, &starts[at..], at);
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
fn tile<S: Samples, const W: usize, const V: usize>(
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
    let width = if W > 0 { W } else { taps.width };
    let reach = (width - 1) * lines.step + V * S::LANES;
    let mut all = lines.places.iter().zip(taps.weights.chunks_exact(width));
    let mut next = || {
        let Some((&place, weights)) = all.next() else {
            unreachable!("there are as many lines as the rows are part of")
        };
        (&lines.memory[place + at..][..reach], lines.step, weights)
    };
    if taps.height == 1 {
        add::<S, V, 0, 1>(s, next(), &mut sums);
        add::<S, V, 1, 2>(s, next(), &mut sums);
        add::<S, V, 2, 3>(s, next(), &mut sums);
        add::<S, V, 3, 4>(s, next(), &mut sums);
        return sums;
    }
    add::<S, V, 0, 1>(s, next(), &mut sums);
    add::<S, V, 0, 2>(s, next(), &mut sums);
    add::<S, V, 0, 3>(s, next(), &mut sums);
    for _ in ROWS - 1..taps.height {
        add::<S, V, 0, 4>(s, next(), &mut sums);
    }
    add::<S, V, 1, 4>(s, next(), &mut sums);
    add::<S, V, 2, 4>(s, next(), &mut sums);
    add::<S, V, 3, 4>(s, next(), &mut sums);
    sums
}

/// What a line adds: its samples, how far one tap is from the next, and the weights.
type Line<'a> = (&'a [f32], usize, &'a [[f32; ROWS]]);

/// Adds a line's products to the output rows from `FIRST` up to `END`.
#[inline(always)]
fn add<S: Samples, const V: usize, const FIRST: usize, const END: usize>(
    s: S,
    (line, step, weights): Line<'_>,
    sums: &mut [[S::V; V]; ROWS],
) {
    let mut samples = [s.splat(0.0); V];
    let mut at = 0;
    for weights in weights {
        let from = &line[at..][..V * S::LANES];
        for v in 0..V {
            samples[v] = s.load(&from[v * S::LANES..]);
        }
        for r in FIRST..END {
            let weight = s.splat(weights[r]);
            for v in 0..V {
                sums[r][v] = s.fused(weight, samples[v], sums[r][v]);
            }
        }
        at += step;
    }
}

/// Sums along one line, `step` samples from tap to tap, from 0 on: as many as `to` takes, a multiple of a
/// vector.
#[inline(always)]
pub(super) fn along_row<S: Samples>(s: S, weights: &[f32], line: &[f32], step: usize, to: &mut [f32]) {
    let at = along_tiles::<S, 8>(s, weights, (line, step), to, 0);
    along_tiles::<S, 1>(s, weights, (line, step), to, at);
}

#[inline(always)]
fn along_tiles<S: Samples, const V: usize>(
    s: S,
    weights: &[f32],
    (line, step): (&[f32], usize),
    to: &mut [f32],
    from: usize,
) -> usize {
    let reach = (weights.len() - 1) * step + V * S::LANES;
    let mut at = from;
    while at + V * S::LANES <= to.len() {
        let line = &line[at..][..reach];
        let mut sums = [s.splat(0.0); V];
        let mut tap = 0;
        for &weight in weights {
            let from = &line[tap..][..V * S::LANES];
            let weight = s.splat(weight);
            for v in 0..V {
                sums[v] = s.fused(weight, s.load(&from[v * S::LANES..]), sums[v]);
            }
            tap += step;
        }
        for v in 0..V {
            s.store(sums[v], &mut to[at + v * S::LANES..]);
        }
        at += V * S::LANES;
    }
    at
}
