//! Sums of weights times samples by fused multiply-adds of floating-point numbers.
//!
//! ```text
//! line  0   x x x x x x ..        output row 0   lines 0 1 2
//! line  1   x x x x x x ..        output row 1   lines   1 2 3        mask of three rows
//! line  2   x x x x x x ..        output row 2   lines     2 3 4
//! ..                              output row 3   lines       3 4 5
//! ```
//!
//! A vector of a line is loaded once for all output rows that it contributes to, and a weight is broadcast
//! once for all vectors of a row. So multiply-adds limit the speed of the loop, not loads.
//!
//! [`sums`] adds in the order of the taps. [`exact_sums`] is for sums that are exact in any order: a mask
//! with symmetric rows is folded, `(line[x - i] + line[x + i]) w[i]`. Both samples are added once for all
//! output rows of the line, which halves the number of multiply-adds.

use crate::engine::cpu::rows::strip::Picture;
use crate::engine::cpu::simd::float::{Exact, Sums};
use crate::filter::MAX_MASK;
use std::ops::Range;

/// Output rows that are made at once.
pub(in crate::engine::cpu) const ROWS: usize = 4;

/// Vectors of each output row that are made at once. Eight independent sums or more hide the latency of a
/// multiply-add, and with the vectors of a line they still fit the registers.
pub(in crate::engine::cpu) const fn vectors<S: Sums>() -> usize {
    if S::REGISTERS < 32 { 2 } else { 4 }
}

/// The weights of a mask in the order of the loops: for each line and each of its taps, the weight in each of
/// the output rows. Rows that the line does not contribute to have a 0, which is not used.
///
/// ```text
/// line 0    w00 -- -- --   w01 -- -- --   w02 -- -- --
/// line 1    w10 w00 -- --  w11 w01 -- --  w12 w02 -- --
/// line 2    w20 w10 w00 --  ..
/// ```
pub(in crate::engine::cpu) struct Taps<N> {
    weights: Vec<[N; ROWS]>,
    /// Taps of a line: the columns of the mask, or of a folded mask those up to the middle one.
    width: usize,
    height: usize,
    /// True if the mask is folded: samples left and right of the middle column are added before the product.
    folds: bool,
}

impl<N: Copy + Default + PartialEq> Taps<N> {
    /// The taps of a mask, given row by row, for [`sums`].
    pub(in crate::engine::cpu) fn new(weights: &[N], width: usize) -> Taps<N> {
        let height = weights.len() / width;
        let at = |j: usize, i: usize, r: usize| match j.checked_sub(r) {
            Some(row) if row < height => weights[row * width + i],
            _ => N::default(),
        };
        let lines = (0..height + ROWS - 1).flat_map(|j| (0..width).map(move |i| (j, i)));
        Taps {
            weights: lines.map(|(j, i)| std::array::from_fn(|r| at(j, i, r))).collect(),
            width,
            height,
            folds: false,
        }
    }

    /// The taps of a mask, given row by row, for [`exact_sums`]: folded if its rows are symmetric.
    pub(in crate::engine::cpu) fn folded(weights: &[N], width: usize) -> Taps<N> {
        let half = width / 2 + 1;
        let mut rows = weights.chunks_exact(width);
        if width == 1 || !rows.all(|row| row.iter().eq(row.iter().rev())) {
            return Taps::new(weights, width);
        }
        let halves = weights.chunks_exact(width).flat_map(|row| &row[..half]);
        Taps {
            folds: true,
            ..Taps::new(&halves.copied().collect::<Vec<N>>(), half)
        }
    }

    /// Number of multiply-adds of a sum.
    pub(in crate::engine::cpu) fn len(&self) -> usize {
        self.width * self.height
    }

    /// True if the mask is folded.
    pub(in crate::engine::cpu) fn is_folded(&self) -> bool {
        self.folds
    }
}

/// The lines to sum up.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Lines<'a, N> {
    pub(in crate::engine::cpu) rows: &'a [&'a [N]],
    /// Index in each line of the sample for the first tap of the first sum.
    pub(in crate::engine::cpu) from: usize,
    /// Samples from one tap to the next.
    pub(in crate::engine::cpu) pixel_stride: usize,
}

/// Bytes of a line of the caches.
const CACHE_LINE: usize = 64;

/// Most lines that [`ROWS`] output rows read.
pub(in crate::engine::cpu) const MOST_LINES: usize = MAX_MASK + ROWS - 1;

/// The rows to prefetch: [`ROWS`] of the picture, and [`ROWS`] of the result.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Next<'a> {
    pub(in crate::engine::cpu) rows: [&'a [u8]; 2 * ROWS],
    /// Bytes of a sample.
    pub(in crate::engine::cpu) bytes: usize,
}

impl<'a> Next<'a> {
    /// The pixels of `columns` that are first read, from row `y` of plane `plane` on, and those that are
    /// written next, to the rows of the strip in `later`, which begin `stride` bytes apart. There are none
    /// behind the strip's last row.
    pub(in crate::engine::cpu) fn of(
        picture: Picture<'a>,
        (plane, y): (usize, usize),
        (later, stride): (&'a [u8], usize),
        columns: &Range<usize>,
    ) -> Next<'a> {
        let (geometry, bytes) = (
            picture.layout.planes()[plane],
            picture.layout.format().bytes_per_sample(),
        );
        let mut rows: [&[u8]; 2 * ROWS] = [&[]; 2 * ROWS];
        if !later.is_empty() {
            let from = columns.start * geometry.channels * bytes;
            let len = columns.len() * geometry.channels * bytes;
            let (read, written) = rows.split_at_mut(ROWS);
            for (y, read) in (y..geometry.height).zip(read) {
                *read = picture.pixels((plane, y), columns);
            }
            for (row, written) in later.chunks(stride).zip(written) {
                *written = &row[from..][..len];
            }
        }
        Next { rows, bytes }
    }

    /// The rows of the result alone.
    pub(in crate::engine::cpu) fn written(mut self) -> Next<'a> {
        self.rows[..ROWS].fill(&[]);
        self
    }

    /// No rows.
    pub(in crate::engine::cpu) fn none() -> Next<'a> {
        Next {
            rows: [&[]; 2 * ROWS],
            bytes: 1,
        }
    }

    /// Prefetches the cache lines that begin within `samples` samples from sample `at` on.
    #[inline(always)]
    fn prefetch<S: Sums>(&self, s: S, at: usize, samples: usize) {
        let first = (at * self.bytes).next_multiple_of(CACHE_LINE);
        let end = (at + samples) * self.bytes;
        if first >= end {
            return;
        }
        for n in 0..2 * ROWS {
            let mut byte = first;
            while byte < self.rows[n].len().min(end) {
                s.prefetch(self.rows[n][byte..].as_ptr());
                byte += CACHE_LINE;
            }
        }
    }
}

/// The output rows in memory that holds one after the other.
pub(in crate::engine::cpu) fn rows_of<N>(memory: &mut [N]) -> [&mut [N]; ROWS] {
    let mut rows = memory.chunks_exact_mut(memory.len() / ROWS);
    std::array::from_fn(|_| rows.next().unwrap_or_default())
}

/// What is done to sums before they are stored. It is no closure: that might be compiled without the
/// instructions of the set, and called (scripts/check-inlined).
pub(in crate::engine::cpu) trait End<S: Sums>: Copy {
    fn of(self, s: S, sum: S::V) -> S::V;
}

/// Sums are stored as they are.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Unchanged;

impl<S: Sums> End<S> for Unchanged {
    #[inline(always)]
    fn of(self, _: S, sum: S::V) -> S::V {
        sum
    }
}

/// Stores the sums of [`ROWS`] output rows. Each row has as many sums as `starts` has start values, a
/// multiple of a vector. `end` converts sums before they are stored.
#[inline(always)]
pub(in crate::engine::cpu) fn sums<S: Sums>(
    s: S,
    taps: &Taps<S::Number>,
    lines: Lines<'_, S::Number>,
    (starts, next): (&[S::Number], Next<'_>),
    to: [&mut [S::Number]; ROWS],
    end: impl End<S>,
) {
    // For masks of one and of three columns the number of taps is a constant of the loop.
    match taps.width {
        1 => all_tiles::<S, 1, false>(s, taps, lines, (starts, next), to, end),
        3 => all_tiles::<S, 3, false>(s, taps, lines, (starts, next), to, end),
        _ => all_tiles::<S, 0, false>(s, taps, lines, (starts, next), to, end),
    }
}

/// [`sums`] for sums that are exact in any order.
#[inline(always)]
pub(in crate::engine::cpu) fn exact_sums<S: Exact>(
    s: S,
    taps: &Taps<f64>,
    lines: Lines<'_, f64>,
    (starts, next): (&[f64], Next<'_>),
    to: [&mut [f64]; ROWS],
) {
    if taps.folds {
        // A folded mask of three columns has two taps per line.
        match taps.width {
            2 => all_tiles::<S, 2, true>(s, taps, lines, (starts, next), to, Unchanged),
            _ => all_tiles::<S, 0, true>(s, taps, lines, (starts, next), to, Unchanged),
        }
    } else {
        sums(s, taps, lines, (starts, next), to, Unchanged);
    }
}

/// [`sums`] for masks with `W` taps per line; 0 stands for any number.
#[inline(always)]
fn all_tiles<S: Sums, const W: usize, const FOLDS: bool>(
    s: S,
    taps: &Taps<S::Number>,
    lines: Lines<'_, S::Number>,
    (starts, next): (&[S::Number], Next<'_>),
    mut to: [&mut [S::Number]; ROWS],
    end: impl End<S>,
) {
    let at = if const { S::REGISTERS < 32 } {
        tiles::<S, W, 2, FOLDS>(s, taps, lines, (starts, next), (&mut to, 0), end)
    } else {
        tiles::<S, W, 4, FOLDS>(s, taps, lines, (starts, next), (&mut to, 0), end)
    };
    tiles::<S, W, 1, FOLDS>(s, taps, lines, (starts, next), (&mut to, at), end);
}

/// Makes the whole tiles of `V` vectors from sum `from` on. Returns the index of the first sum that is left.
#[inline(always)]
fn tiles<S: Sums, const W: usize, const V: usize, const FOLDS: bool>(
    s: S,
    taps: &Taps<S::Number>,
    lines: Lines<'_, S::Number>,
    (starts, next): (&[S::Number], Next<'_>),
    (to, from): (&mut [&mut [S::Number]; ROWS], usize),
    end: impl End<S>,
) -> usize {
    let mut at = from;
    while at + V * S::LANES <= starts.len() {
        next.prefetch(s, at, V * S::LANES);
        let sums = tile::<S, W, V, FOLDS>(s, taps, lines, &starts[at..], at);
        for r in 0..ROWS {
            for v in 0..V {
                s.store(end.of(s, sums[r][v]), &mut to[r][at + v * S::LANES..]);
            }
        }
        at += V * S::LANES;
    }
    at
}

/// The sums of a tile: `V` vectors of each output row, from sum `at` on.
#[inline(always)]
fn tile<S: Sums, const W: usize, const V: usize, const FOLDS: bool>(
    s: S,
    taps: &Taps<S::Number>,
    lines: Lines<'_, S::Number>,
    starts: &[S::Number],
    at: usize,
) -> [[S::V; V]; ROWS] {
    let mut start = [s.splat(S::number(0.0)); V];
    for v in 0..V {
        start[v] = s.load(&starts[v * S::LANES..]);
    }
    let mut sums = [start; ROWS];
    let width = if W > 0 { W } else { taps.width };
    let columns = if FOLDS { 2 * width - 1 } else { width };
    let reach = (columns - 1) * lines.pixel_stride + V * S::LANES;
    let from = lines.from + at;
    // There is a line for each row of the mask in each output row.
    let mut all = TileLines {
        taps,
        width,
        lines,
        samples: from..from + reach,
        next: 0,
    };
    if taps.height == 1 {
        add::<S, V, 0, 1, FOLDS>(s, all.next(), &mut sums);
        add::<S, V, 1, 2, FOLDS>(s, all.next(), &mut sums);
        add::<S, V, 2, 3, FOLDS>(s, all.next(), &mut sums);
        add::<S, V, 3, 4, FOLDS>(s, all.next(), &mut sums);
        return sums;
    }
    add::<S, V, 0, 1, FOLDS>(s, all.next(), &mut sums);
    add::<S, V, 0, 2, FOLDS>(s, all.next(), &mut sums);
    add::<S, V, 0, 3, FOLDS>(s, all.next(), &mut sums);
    for _ in ROWS - 1..taps.height {
        add::<S, V, 0, 4, FOLDS>(s, all.next(), &mut sums);
    }
    add::<S, V, 1, 4, FOLDS>(s, all.next(), &mut sums);
    add::<S, V, 2, 4, FOLDS>(s, all.next(), &mut sums);
    add::<S, V, 3, 4, FOLDS>(s, all.next(), &mut sums);
    sums
}

/// One line's part of a tile: its samples, samples from a tap to the next, and the weights.
type Line<'a, N> = (&'a [N], usize, &'a [[N; ROWS]]);

/// The lines of a tile from the top down, each with its row of the mask.
struct TileLines<'a, N> {
    taps: &'a Taps<N>,
    /// Taps of a line.
    width: usize,
    lines: Lines<'a, N>,
    /// The samples that the tile reads of each line.
    samples: Range<usize>,
    next: usize,
}

impl<'a, N: Copy> TileLines<'a, N> {
    #[inline(always)]
    fn next(&mut self) -> Line<'a, N> {
        let (k, lines) = (self.next, &self.lines);
        self.next += 1;
        let samples = &lines.rows[k][self.samples.start..self.samples.end];
        let weights = &self.taps.weights[k * self.width..][..self.width];
        (samples, lines.pixel_stride, weights)
    }
}

/// Adds a line's products to the output rows from `FIRST` up to `END`.
#[inline(always)]
fn add<S: Sums, const V: usize, const FIRST: usize, const END: usize, const FOLDS: bool>(
    s: S,
    (line, pixel_stride, weights): Line<'_, S::Number>,
    sums: &mut [[S::V; V]; ROWS],
) {
    let mut samples = [s.splat(S::number(0.0)); V];
    let (mut at, mut opposite) = (0, line.len() - V * S::LANES);
    for weights in weights {
        let from = &line[at..][..V * S::LANES];
        for v in 0..V {
            samples[v] = s.load(&from[v * S::LANES..]);
        }
        if FOLDS && at < opposite {
            let from = &line[opposite..][..V * S::LANES];
            for v in 0..V {
                samples[v] = s.add(samples[v], s.load(&from[v * S::LANES..]));
            }
            opposite -= pixel_stride;
        }
        for r in FIRST..END {
            let weight = s.splat(weights[r]);
            for v in 0..V {
                sums[r][v] = s.fused(weight, samples[v], sums[r][v]);
            }
        }
        at += pixel_stride;
    }
}

/// Stores sums along one line, `pixel_stride` samples from tap to tap; `to` holds a multiple of a vector.
/// Sums begin with `start`, and `end` converts them before they are stored.
#[inline(always)]
pub(in crate::engine::cpu) fn along_row<S: Sums>(
    s: S,
    weights: (&[S::Number], S::Number),
    line: &[S::Number],
    pixel_stride: usize,
    to: &mut [S::Number],
    end: impl Fn(S::V) -> S::V,
) {
    of_places(s, weights, (line, |tap| tap * pixel_stride), to, end);
}

/// [`along_row`] for a row that lies in the picture; the row `next` is prefetched.
#[inline(always)]
pub(in crate::engine::cpu) fn along_picture_row<S: Sums>(
    s: S,
    weights: (&[S::Number], S::Number),
    (row, next): (&[S::Number], &[S::Number]),
    pixel_stride: usize,
    to: &mut [S::Number],
) {
    all_of_places(s, weights, (row, |tap| tap * pixel_stride), next, to, |sum| sum);
}

/// [`along_row`] for taps at any place: tap `t` weights the numbers of `memory` from `place(t)` on.
#[inline(always)]
pub(in crate::engine::cpu) fn of_places<S: Sums>(
    s: S,
    weights: (&[S::Number], S::Number),
    read: (&[S::Number], impl Fn(usize) -> usize),
    to: &mut [S::Number],
    end: impl Fn(S::V) -> S::V,
) {
    all_of_places(s, weights, read, &[], to, end);
}

/// [`of_places`], and prefetches `next`.
#[inline(always)]
fn all_of_places<S: Sums>(
    s: S,
    weights: (&[S::Number], S::Number),
    (memory, place): (&[S::Number], impl Fn(usize) -> usize),
    next: &[S::Number],
    to: &mut [S::Number],
    end: impl Fn(S::V) -> S::V,
) {
    let at = tiles_of_places::<S, 8>(s, weights, (memory, &place), next, (to, 0), &end);
    tiles_of_places::<S, 1>(s, weights, (memory, &place), next, (to, at), &end);
}

/// Makes the whole tiles of `V` vectors from sum `from` on. Returns the index of the first sum that is left.
#[inline(always)]
fn tiles_of_places<S: Sums, const V: usize>(
    s: S,
    (weights, start): (&[S::Number], S::Number),
    (memory, place): (&[S::Number], &impl Fn(usize) -> usize),
    next: &[S::Number],
    (to, from): (&mut [S::Number], usize),
    end: &impl Fn(S::V) -> S::V,
) -> usize {
    let mut at = from;
    while at + V * S::LANES <= to.len() {
        for ahead in (at..next.len().min(at + V * S::LANES)).step_by(CACHE_LINE / size_of::<S::Number>()) {
            s.prefetch(next[ahead..].as_ptr().cast());
        }
        let memory = &memory[at..];
        let mut sums = [s.splat(start); V];
        for (tap, &weight) in weights.iter().enumerate() {
            let from = &memory[place(tap)..][..V * S::LANES];
            let weight = s.splat(weight);
            for v in 0..V {
                sums[v] = s.fused(weight, s.load(&from[v * S::LANES..]), sums[v]);
            }
        }
        for v in 0..V {
            s.store(end(sums[v]), &mut to[at + v * S::LANES..]);
        }
        at += V * S::LANES;
    }
    at
}
