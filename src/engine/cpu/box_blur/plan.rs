//! The plan of a box: its mask, how its sums are made, and how they become samples.

use super::row_sums::RowSums;
use super::sliding_window::{Making, Scale};
use super::{column_sums, in_registers};
use crate::engine::cpu::rows::plane_filter::PlanePart;
use crate::engine::cpu::rows::requantize::{Requantize, Sums};
use crate::engine::cpu::simd::vector::Order;
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, Convolve, Division, Kernel};
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

    /// True if sums change by what the centre weighs more.
    pub(super) fn weighs_centre(&self) -> bool {
        self.mask.excess != 0
    }
}

impl Ending {
    /// What the sums of windows begin with, those of 16 bits and those of 32.
    pub(super) fn begin(&self, sums: &mut [u16], weighted: &mut [i32]) {
        match self {
            Ending::Scaled(scale) => sums.fill(scale.add),
            Ending::Weighted { finish, .. } => weighted.fill(finish.start[0][0]),
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
            Ending::Scaled(_) => ", 16-bit sums",
            Ending::Weighted { .. } if self.weighs_centre() => ", 32-bit sums, centre apart",
            Ending::Weighted { .. } => ", 32-bit sums",
        })
    }
}

/// How sums become samples.
pub(super) enum Ending {
    /// Sums of 16 bits, divided by a multiplication.
    Scaled(Scale),
    /// Weighted sums of 32 bits.
    Weighted {
        /// What all samples of the window weigh, and how much more the centre does.
        weights: [i32; 2],
        finish: Requantize,
    },
}

/// A mask of equal weights, but for the centre.
pub(super) struct UniformMask {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// What each sample weighs.
    pub(super) weight: i64,
    /// The centre's weight less that of the others.
    pub(super) excess: i64,
    pub(super) division: Division,
}

impl UniformMask {
    pub(super) fn of(kernel: &Kernel) -> Option<UniformMask> {
        let (columns, rows) = kernel.size();
        let (weights, division) = match kernel {
            Kernel::Direct(k) => (&k.weights, k.division),
            // The row pass has to be a sum of pixels, and the column's weights all the same.
            Kernel::Separable(k) => {
                let is_sum = (k.row.shift, k.row.offset) == (0, 0) && k.row.weights.iter().all(|&q| q == 1);
                let is_even = k.column.weights.iter().all(|&q| q == k.column.weights[0]);
                (is_sum && is_even).then_some((&k.column.weights, k.column.division))?
            }
            Kernel::Combined(_) | Kernel::Pyramid(_) => return None,
        };
        let (weight, centre) = (weights[0], weights.len() / 2);
        let is_even = (0..weights.len()).all(|i| i == centre || weights[i] == weight);
        // Windows of fewer rows than three have no row between the one that enters and the one that leaves.
        (is_even && rows >= 3).then(|| UniformMask {
            columns,
            rows,
            weight: weight.into(),
            excess: i64::from(weights[centre]) - i64::from(weight),
            division,
        })
    }

    /// How sums of 16 bits become samples up to `max`, if they fit.
    pub(super) fn scale(&self, c: &Convolve, max: i64) -> Option<Scale> {
        if (self.weight, self.excess) != (1, 0) {
            return None;
        }
        let one = self.division.divisor();
        let add = c.low + c.high * one;
        let largest = (self.columns * self.rows) as i64 * max + add;
        let words = self.division.of_words(largest)?;
        (add >= 0 && largest / one <= max).then(|| Scale {
            add: add as u16 + words.add,
            factor: words.factor,
            down: words.shift,
        })
    }

    /// How weighted sums become samples, if 32 bits and weights of 16 suffice for that.
    pub(super) fn weighted(
        &self,
        vectors: Vectors,
        format: PixelFormat,
        channels: &[ChannelStep],
    ) -> Option<Ending> {
        let largest = i64::from(format.max_value());
        let others = (self.columns * self.rows - 1) as i64 * self.weight;
        let parts = [others, self.weight + self.excess];
        let sums = Sums {
            limbs: 1,
            bits: 16,
            division: self.division,
            range: (
                parts.map(|part| part.min(0) * largest).iter().sum(),
                parts.map(|part| part.max(0) * largest).iter().sum(),
            ),
            largest,
            weight: parts.map(i64::abs).iter().sum(),
            correction: 0,
            raise: 0,
        };
        Some(Ending::Weighted {
            weights: [
                i16::try_from(self.weight).ok()?.into(),
                i16::try_from(self.excess).ok()?.into(),
            ],
            finish: sums.finish(format, channels, (Order::Interleaved, vectors.lanes()))?,
        })
    }
}
