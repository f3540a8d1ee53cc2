//! The plan of a box: its mask, how its sums are made, and how they become samples.

use super::row_sums::RowSums;
use super::sliding_window::{DIFFERENCES, FewRows, LINES, Making, Scale};
use super::{column_sums, in_registers};
use crate::engine::cpu::rows::plane_filter::PlanePart;
use crate::engine::cpu::rows::requantize::{Requantize, Sums};
use crate::engine::cpu::simd::scratch::LineRing;
use crate::engine::cpu::simd::vector::Order;
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, Convolve, Kernel};
use crate::frame::PixelFormat;
use std::fmt;

/// How the boxes of a plane are made.
pub(super) struct BoxPlan {
    pub(super) mask: UniformMask,
    pub(super) way: Way,
    pub(super) ending: Ending,
}

/// How sums are made.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// In registers, rows at a time.
    InRegisters(Scale),
    /// Column sums.
    ByColumns(Scale),
    /// Row sums in a ring of lines.
    Window(RowSums),
}

impl BoxPlan {
    /// `None` if nothing is convolved in the plane, if the mask is another one or if its numbers need more
    /// than 16 bits.
    pub(super) fn new(part: &PlanePart<'_>, vectors: Vectors) -> Option<BoxPlan> {
        let (format, channels) = (part.format, part.channels());
        let mask = UniformMask::of(&part.step.kernel)?;
        let max = i64::from(format.max_value());
        if format.depth() > 12 || mask.columns as i64 * max > i64::from(i16::MAX) {
            return None;
        }
        let mut convolved = channels.iter().filter_map(ChannelStep::convolved);
        let first = convolved.next()?;
        // The loops treat all channels the same, so their sums must begin with the same.
        if !convolved.all(|c| (c.low, c.high) == (first.low, first.high)) {
            return None;
        }
        let ending = match mask.scale(first, max) {
            Some(scale) => Ending::Scaled(scale),
            None => mask.weighted(vectors, format, channels)?,
        };
        let size = (mask.columns, mask.rows);
        // Bytes that lie in the picture as they are.
        let in_place = format.bytes_per_sample() == 1 && !part.premultiplied;
        let suits_registers =
            |scale| with_simd!(vectors, simd => in_registers::suit(simd, size, channels.len(), scale));
        let way = match ending {
            Ending::Scaled(scale) if in_place && suits_registers(scale) => Way::InRegisters(scale),
            Ending::Scaled(scale) if in_place && column_sums::suit(size.0, channels.len()) => {
                Way::ByColumns(scale)
            }
            _ => Way::Window(RowSums::new(size.0, channels.len())),
        };
        Some(BoxPlan { mask, way, ending })
    }

    /// True if sums of whole masks change by what the centre weighs more.
    pub(super) fn weighs_centre(&self) -> bool {
        matches!(self.ending, Ending::Weighted { .. }) && !self.mask.is_column
    }

    /// Where the lines lie by which sums change beside the line `k` that enters the window and the one that
    /// leaves it: those at which weights of a column differ.
    pub(super) fn lines(&self, ring: &LineRing<'_, u16>, k: usize, lines: &mut [usize; LINES]) {
        let rows = self.mask.rows;
        match &self.ending {
            Ending::Uneven { others, .. } => {
                for (line, j) in lines.iter_mut().zip(others) {
                    *line = ring.slot(k + 1 + j);
                }
            }
            Ending::Weighted { .. } if self.mask.is_column => {
                for (two, (j, _)) in lines.as_chunks_mut().0.iter_mut().zip(self.mask.steps()) {
                    *two = [ring.slot(k + 1 + j), ring.slot(k + rows - 1 - j)];
                }
            }
            Ending::Scaled(_) | Ending::Weighted { .. } => {}
        }
    }
}

impl Ending {
    /// What the sums of windows begin with, those of 16 bits and those of 32.
    pub(super) fn begin(&self, sums: &mut [u16], weighted: &mut [i32]) {
        match self {
            Ending::Scaled(scale) => sums.fill(scale.add),
            Ending::Uneven { is_wide: false, .. } => sums.fill(0),
            Ending::Uneven { finish, .. } | Ending::Weighted { finish, .. } => {
                weighted.fill(finish.start[0][0]);
            }
        }
    }

    /// How rows are made of these sums, of samples that are shifted up by `left`.
    pub(super) fn making<'a>(
        &'a self,
        sums: &'a mut [u16],
        weighted: &'a mut [i32],
        left: u32,
    ) -> Making<'a> {
        match self {
            Ending::Scaled(scale) => Making::Scaled { sums, scale, left },
            Ending::Uneven {
                weights,
                newest,
                others,
                is_wide,
                finish,
            } => {
                let few = FewRows {
                    weights: *weights,
                    newest: *newest,
                    others: others.len(),
                };
                if *is_wide {
                    let sums = weighted;
                    Making::UnevenWide { sums, few, finish }
                } else {
                    Making::Uneven { sums, few, finish }
                }
            }
            Ending::Weighted { weights, finish } => Making::Weighted {
                sums: weighted,
                weights: *weights,
                finish,
            },
        }
    }
}

impl fmt::Display for BoxPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way {
            Way::InRegisters(_) => f.write_str("rows in registers")?,
            Way::ByColumns(_) => f.write_str("column sums")?,
            Way::Window(row_sums) => write!(f, "sliding window over {row_sums}")?,
        }
        f.write_str(match self.ending {
            Ending::Scaled(_) => ", one 16-bit factor",
            Ending::Uneven { is_wide: false, .. } => ", unequal rows apart, 16-bit sums",
            Ending::Uneven { .. } => ", unequal rows apart, 32-bit sums",
            Ending::Weighted { .. } => ", weighted 32-bit sums",
        })
    }
}

/// How sums become samples.
pub(super) enum Ending {
    /// The sample is a function of the window's sum alone.
    Scaled(Scale),
    /// The sample depends on the window's sum and on that of a few of its rows.
    Uneven {
        weights: [i32; 2],
        /// True if the newest row is one of the few.
        newest: bool,
        /// The others of them.
        others: Vec<usize>,
        /// True if the window's sum needs more than 16 bits.
        is_wide: bool,
        finish: Requantize,
    },
    /// Weighted sums of 32 bits.
    Weighted {
        /// The weight at the edge of the window, and after it the change at each step.
        weights: [i32; 1 + DIFFERENCES],
        finish: Requantize,
    },
}

/// A mask of equal weights, but for a few steps.
pub(super) struct UniformMask {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// The weights of the whole mask, or of the column if the row's are 1.
    pub(super) weights: Vec<i64>,
    /// True if each row's samples are added up before they are weighted.
    pub(super) is_column: bool,
    pub(super) shift: u32,
}

impl UniformMask {
    pub(super) fn of(kernel: &Kernel) -> Option<UniformMask> {
        let (columns, rows) = kernel.size();
        let (weights, shift, is_column) = match kernel {
            Kernel::Direct(k) => (&k.weights, k.shift, false),
            // The row pass has to be a sum of pixels.
            Kernel::Separable(k) if k.row.shift == 0 && k.row.weights.iter().all(|&q| q == 1) => {
                (&k.column.weights, k.column.shift, true)
            }
            Kernel::Separable(_) | Kernel::Combined(_) | Kernel::Pyramid(_) => return None,
        };
        let flat = UniformMask {
            columns,
            rows,
            weights: weights.iter().map(|&q| i64::from(q)).collect(),
            is_column,
            shift,
        };
        let q = &flat.weights;
        let known = match kernel {
            Kernel::Direct(_) => flat.is_even(),
            Kernel::Separable(_) => q.iter().eq(q.iter().rev()) && flat.steps().count() <= DIFFERENCES,
            Kernel::Combined(_) | Kernel::Pyramid(_) => false,
        };
        // Windows of fewer rows than three have no row between the one that enters and the one that leaves.
        (known && rows >= 3).then_some(flat)
    }

    /// True if all weights but the centre's are the same.
    fn is_even(&self) -> bool {
        let q = &self.weights;
        (0..q.len()).all(|i| i == q.len() / 2 || q[i] == q[0])
    }

    /// Samples that are added up before they are weighted.
    fn values(&self) -> usize {
        if self.is_column { self.columns } else { 1 }
    }

    /// The centre's weight less that of the others.
    fn excess(&self) -> i64 {
        self.weights[self.weights.len() / 2] - self.weights[0]
    }

    /// Of a column of two weights: the one that most rows have, how much more the others weigh, and which
    /// they are.
    pub(super) fn uneven(&self) -> Option<(i64, i64, Vec<usize>)> {
        let q = &self.weights;
        let others_than = |base: i64| (0..q.len()).filter(move |&j| q[j] != base).collect::<Vec<_>>();
        let (base, rows) = q
            .iter()
            .map(|&base| (base, others_than(base)))
            .min_by_key(|(_, rows)| rows.len())?;
        let excess = rows.first().map_or(0, |&j| q[j] - base);
        let fits = self.is_column && rows.iter().all(|&j| q[j] - base == excess);
        fits.then_some((base, excess, rows))
    }

    /// The rows of a column whose weight differs from the next one's, and by how much; up to the middle,
    /// since the column is symmetric.
    pub(super) fn steps(&self) -> impl Iterator<Item = (usize, i64)> {
        let q = &self.weights;
        let all = (0..q.len() / 2).map(|j| (j, q[j] - q[j + 1]));
        all.filter(|(_, step)| *step != 0)
    }

    /// The result of a window whose samples add up to `sum`, if it depends on nothing else, for samples up to
    /// `max`.
    fn result(&self, sum: i64, c: &Convolve, max: i64) -> Option<i64> {
        let (all, centre) = ((self.columns * self.rows) as i64, self.values() as i64);
        let of = |middle: i64| {
            let weighted = self.weights[0] * sum + self.excess() * middle;
            (((weighted + c.low) >> self.shift) + c.high).clamp(0, max)
        };
        // The result is monotonic in the sum of the middle samples, so the least and the largest one suffice.
        let (least, most) = ((sum - (all - centre) * max).max(0), sum.min(centre * max));
        (of(least) == of(most)).then(|| of(least))
    }

    /// A 16-bit multiplication that makes the sample of the window's sum, if there is one that is right for
    /// every sum.
    pub(super) fn scale(&self, c: &Convolve, max: i64) -> Option<Scale> {
        let (limit, weight) = (i64::from(i16::MAX), self.weights[0]);
        let largest = (self.columns * self.rows) as i64 * max;
        if !self.is_even() || weight <= 0 {
            return None;
        }
        // The multiplication shifts 15 bits out; the shift down removes what lets the factor have as many.
        let factor = |down: u32| (weight << (15 + down)) >> self.shift;
        let down = (0..15).rev().find(|&down| factor(down) < limit)?;
        let half = 1 << 14;
        let add = ((c.low << (15 + down) >> self.shift) - half) / factor(down).max(1);
        for add in (add - 1).max(0)..=add + 1 {
            for factor in factor(down) - 1..=factor(down) + 1 {
                let scaled = |sum: i64| (((sum + add) * factor + half) >> 15) >> down;
                if largest + add <= limit
                    && (0..=largest).all(|sum| self.result(sum, c, max) == Some(scaled(sum)))
                {
                    return Some(Scale {
                        add: add as u16,
                        factor: factor as u16,
                        down,
                    });
                }
            }
        }
        None
    }

    /// How weighted sums become samples, if 32 bits and weights of 16 suffice for that.
    pub(super) fn weighted(
        &self,
        vectors: Vectors,
        format: PixelFormat,
        channels: &[ChannelStep],
    ) -> Option<Ending> {
        let of_window = (self.columns * self.rows) as i64 * i64::from(format.max_value());
        let largest = self.values() as i64 * i64::from(format.max_value());
        let is_wide = of_window > i64::from(u16::MAX);
        let newest = self.rows - 1;
        let uneven = self.uneven().filter(|(_, _, few)| {
            let has_newest = few.contains(&newest);
            let others = few.len() - usize::from(has_newest);
            let fits = few.len() as i64 * largest <= i64::from(i16::MAX);
            // Wide sums are best weighted at the steps between weights, unless that takes more lines: two for
            // each step.
            let is_better = !is_wide || (others <= 2 && others < 2 * self.steps().count());
            fits && is_better && FewRows::suit(has_newest, others)
        });
        let weight: i64 = self.weights.iter().map(|q| q.abs()).sum();
        let sums = Sums {
            limbs: 1,
            bits: 16,
            shift: self.shift,
            range: (-weight * largest, weight * largest),
            largest,
            weight,
            correction: match &uneven {
                Some((base, ..)) if !is_wide => base << 15,
                _ => 0,
            },
            raise: 0,
        };
        let mut weights = [0; 1 + DIFFERENCES];
        weights[0] = i16::try_from(self.weights[0]).ok()?.into();
        if self.is_column {
            for (weight, (_, step)) in weights[1..].iter_mut().zip(self.steps()) {
                *weight = i16::try_from(step).ok()?.into();
            }
        } else {
            weights[1] = i16::try_from(self.excess()).ok()?.into();
        }
        let finish = sums.finish(format, channels, (Order::Interleaved, vectors.lanes()))?;
        if let Some((base, excess, mut others)) = uneven {
            let weights = [
                i16::try_from(base).ok()?.into(),
                i16::try_from(excess).ok()?.into(),
            ];
            let newest = others.pop_if(|last| *last == newest).is_some();
            return Some(Ending::Uneven {
                weights,
                newest,
                others,
                is_wide,
                finish,
            });
        }
        Some(Ending::Weighted { weights, finish })
    }
}
