//! Computes luma of rows of RGB, and applies a change of luma to them.
//!
//! ```text
//! packed   r g b a r g b a ..    weight kr kg kb 0, mask 1 1 1 0     one row of 3 or 4 samples a pixel
//! planar   g g ..  b b ..  r r ..   kg, kb, kr                       three rows of one sample a pixel
//! ```
//!
//! Samples that are no colours have weight 0, and are copied.

use super::Stored;
use crate::engine::cpu::simd::vector::Plain;
use crate::engine::cpu::simd::{Vectors, best_vectors, run_plain};
use crate::frame::{Channel, MAX_PLANES, PixelFormat};

/// The same row of each plane of a picture.
pub(in crate::engine) type PlaneRows<'a> = [&'a [u8]; MAX_PLANES];

/// The same, to write to.
pub(in crate::engine) type PlaneRowsMut<'a> = [&'a mut [u8]; MAX_PLANES];

/// How new luma changes the colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Change {
    /// The difference of luma is added to each colour.
    Difference,
    /// Each colour becomes the new luma.
    Gray,
}

/// The conversions between pixels of one RGB format and luma.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct LumaRows {
    vectors: Option<Vectors>,
    /// Bytes of a sample.
    bytes: usize,
    /// Samples of a pixel in one row; 1 if each colour has a plane.
    samples: usize,
    /// The planes that have colours.
    planes: [usize; 3],
    /// The weights of samples, times 2^16, by plane and place in a pixel.
    weights: [[u32; 4]; 3],
    /// The largest sample.
    max: u32,
}

impl LumaRows {
    /// The conversions of `format`; `weights` are the weights of red, green and blue, times 2^16, with the
    /// sum 2^16.
    pub(in crate::engine) fn new(format: PixelFormat, weights: [u32; 3]) -> LumaRows {
        let colours = [Channel::Red, Channel::Green, Channel::Blue];
        // Every RGB format has them.
        let places = colours.map(|channel| format.place(channel).unwrap_or_default());
        let samples = format.planes()[places[0].0].channels.len();
        let mut by_place = [[0; 4]; 3];
        for (k, (&(_, at), weight)) in places.iter().zip(weights).enumerate() {
            by_place[if samples == 1 { k } else { 0 }][at] = weight;
        }
        LumaRows {
            vectors: best_vectors(),
            bytes: format.bytes_per_sample(),
            samples,
            planes: places.map(|(plane, _)| plane),
            weights: by_place,
            max: format.max_value(),
        }
    }

    /// Stores the luma of a row's pixels, rounded, halves up.
    pub(in crate::engine) fn luma(&self, rows: PlaneRows<'_>, luma: &mut [u16]) {
        self.run(Task {
            rows,
            luma: Luma::Make(luma),
        });
    }

    /// Stores the pixels of `rows` with the luma `after`. Samples of the same planes that are no colours are
    /// copied.
    pub(in crate::engine) fn put_back(
        &self,
        rows: PlaneRows<'_>,
        after: &[u16],
        change: Change,
        to: PlaneRowsMut<'_>,
    ) {
        self.run(Task {
            rows,
            luma: Luma::PutBack(after, change, to),
        });
    }

    fn run(&self, task: Task<'_>) {
        match (self.bytes, self.samples) {
            (1, 1) => self.run_as::<u8, 3, 1>(task),
            (1, 3) => self.run_as::<u8, 1, 3>(task),
            (1, _) => self.run_as::<u8, 1, 4>(task),
            (_, 1) => self.run_as::<[u8; 2], 3, 1>(task),
            (_, 3) => self.run_as::<[u8; 2], 1, 3>(task),
            _ => self.run_as::<[u8; 2], 1, 4>(task),
        }
    }

    fn run_as<S: Samples, const P: usize, const C: usize>(&self, task: Task<'_>) {
        let weights: [[u32; C]; P] =
            std::array::from_fn(|plane| std::array::from_fn(|at| self.weights[plane][at]));
        let rows: [&[[S; C]]; P] = std::array::from_fn(|k| S::pixels(task.rows[self.planes[k]]));
        let from = Pixels { rows, weights };
        match task.luma {
            Luma::Make(luma) => run_plain(self.vectors, Make { from, luma }),
            Luma::PutBack(after, change, mut to) => {
                let planes = self.planes.map(|plane| std::mem::take(&mut to[plane]));
                let mut planes = planes.into_iter();
                let to = std::array::from_fn(|_| S::pixels_mut(planes.next().unwrap_or_default()));
                let max = self.max;
                match change {
                    Change::Gray => run_plain(self.vectors, PutGray { from, after, to }),
                    Change::Difference => run_plain(self.vectors, PutDifference { from, after, to, max }),
                }
            }
        }
    }
}

/// A conversion of one row.
struct Task<'a> {
    rows: PlaneRows<'a>,
    luma: Luma<'a>,
}

/// The luma of a task.
enum Luma<'a> {
    /// Luma to compute.
    Make(&'a mut [u16]),
    /// New luma, how it changes the colours, and the rows to store these in.
    PutBack(&'a [u16], Change, PlaneRowsMut<'a>),
}

/// Stored samples as a view of rows of bytes.
trait Samples: Stored {
    fn pixels<const C: usize>(row: &[u8]) -> &[[Self; C]];

    fn pixels_mut<const C: usize>(row: &mut [u8]) -> &mut [[Self; C]];
}

impl Samples for u8 {
    fn pixels<const C: usize>(row: &[u8]) -> &[[u8; C]] {
        row.as_chunks().0
    }

    fn pixels_mut<const C: usize>(row: &mut [u8]) -> &mut [[u8; C]] {
        row.as_chunks_mut().0
    }
}

impl Samples for [u8; 2] {
    fn pixels<const C: usize>(row: &[u8]) -> &[[[u8; 2]; C]] {
        row.as_chunks().0.as_chunks().0
    }

    fn pixels_mut<const C: usize>(row: &mut [u8]) -> &mut [[[u8; 2]; C]] {
        row.as_chunks_mut().0.as_chunks_mut().0
    }
}

/// A row's pixels, and the weights of their samples in luma, times 2^16.
struct Pixels<'a, S, const P: usize, const C: usize> {
    rows: [&'a [[S; C]]; P],
    weights: [[u32; C]; P],
}

/// The loop that computes luma.
struct Make<'a, S, const P: usize, const C: usize> {
    from: Pixels<'a, S, P, C>,
    luma: &'a mut [u16],
}

/// The luma of a pixel. The sum is at most 65535 x 2^16 + 2^15, which fits 32 bits.
#[inline(always)]
fn weighted_sum<S: Stored, const P: usize, const C: usize>(
    pixel: &[[S; C]; P],
    weights: &[[u32; C]; P],
) -> u32 {
    let mut sum = 1 << 15;
    for (samples, weights) in pixel.iter().zip(weights) {
        for (sample, weight) in samples.iter().zip(weights) {
            sum += sample.level() * weight;
        }
    }
    sum >> 16
}

impl<S: Stored, const P: usize, const C: usize> Plain for Make<'_, S, P, C> {
    #[inline(always)]
    fn run(self) {
        let rows = self.from.rows.map(|row| &row[..self.luma.len()]);
        for (x, luma) in self.luma.iter_mut().enumerate() {
            *luma = weighted_sum(&std::array::from_fn(|plane| rows[plane][x]), &self.from.weights) as u16;
        }
    }
}

/// The loop of [`Change::Gray`].
struct PutGray<'a, S, const P: usize, const C: usize> {
    from: Pixels<'a, S, P, C>,
    after: &'a [u16],
    to: [&'a mut [[S; C]]; P],
}

impl<S: Stored, const P: usize, const C: usize> Plain for PutGray<'_, S, P, C> {
    #[inline(always)]
    fn run(self) {
        let Pixels { rows, weights } = self.from;
        for ((row, weights), to) in rows.into_iter().zip(weights).zip(self.to) {
            for ((to, pixel), &luma) in to.iter_mut().zip(row).zip(self.after) {
                *to = std::array::from_fn(|at| match weights[at] {
                    0 => pixel[at],
                    _ => S::of(u32::from(luma)),
                });
            }
        }
    }
}

/// The loop of [`Change::Difference`].
struct PutDifference<'a, S, const P: usize, const C: usize> {
    from: Pixels<'a, S, P, C>,
    after: &'a [u16],
    to: [&'a mut [[S; C]]; P],
    max: u32,
}

impl<S: Stored, const P: usize, const C: usize> Plain for PutDifference<'_, S, P, C> {
    #[inline(always)]
    fn run(self) {
        let PutDifference { from, after, to, max } = self;
        let rows = from.rows.map(|row| &row[..after.len()]);
        let mut to = to.map(|row| &mut row[..after.len()]);
        // Samples that are no colours do not change.
        let masks = from
            .weights
            .map(|weights| weights.map(|weight| if weight == 0 { 0 } else { -1 }));
        for (x, &after) in after.iter().enumerate() {
            let pixel = std::array::from_fn(|plane| rows[plane][x]);
            let change = i32::from(after) - weighted_sum(&pixel, &from.weights) as i32;
            for ((to, samples), masks) in to.iter_mut().zip(pixel).zip(masks) {
                to[x] = std::array::from_fn(|at| {
                    let level = samples[at].level() as i32 + (change & masks[at]);
                    S::of(level.clamp(0, max as i32) as u32)
                });
            }
        }
    }
}
