//! The plan of a box: its mask, how its sums are made, and how they become samples.

use super::row_sums::RowSums;
use super::sliding_window::{Scale, WindowSums};
use super::{column_sums, deep_columns, in_registers};
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
}

/// How sums are made, and how they become samples.
pub(super) enum Way {
    /// In registers, rows at a time.
    InRegisters(Scale),
    /// Column sums of 16 bits.
    ByColumns(Quotient),
    /// Column sums of 32 bits.
    ByDeepColumns(Requantize),
    /// Row sums in a ring of lines.
    Window(RowSums, Ending),
}

/// How column sums of 16 bits are divided: as a [`Scale`] has it, or by means of parts of the sums (see
/// [`MeanDivision`](crate::filter::MeanDivision)).
#[derive(Clone, Copy)]
pub(super) struct Quotient {
    pub(super) add: u16,
    pub(super) factor: u16,
    pub(super) down: u32,
    /// What sums in parts are divided by; 0 with a scale.
    pub(super) divisor: u16,
}

impl BoxPlan {
    /// `None` if nothing is convolved in the plane, if the mask is another one or if its numbers need more
    /// than 31 bits.
    pub(super) fn new(part: &PlanePart<'_>, vectors: Vectors) -> Option<BoxPlan> {
        let (format, channels) = (part.format, part.channels());
        if part.step.kernel.is_long() {
            return None;
        }
        let mask = UniformMask::of(&part.step.kernel)?;
        let mut convolved = channels.iter().filter_map(ChannelStep::convolved);
        let first = convolved.next()?;
        // The loops treat all channels the same, so their sums must begin with the same.
        if !convolved.all(|c| (c.low, c.high) == (first.low, first.high)) {
            return None;
        }
        let way = match format.bytes_per_sample() {
            1 => mask.in_bytes(first, vectors, channels.len()),
            2 if mask.suits_deep_columns(format) => {
                mask.weighted(vectors, format, channels).map(Way::ByDeepColumns)
            }
            _ => None,
        };
        let way = match way {
            Some(way) => way,
            None => mask.by_window(first, vectors, (format, channels))?,
        };
        Some(BoxPlan { mask, way })
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

    /// The sums of the windows in the form that this ending needs, of samples that are shifted up by `left`.
    pub(super) fn window_sums<'a>(
        &'a self,
        sums: &'a mut [u16],
        weighted: &'a mut [i32],
        left: u32,
    ) -> WindowSums<'a> {
        match self {
            Ending::Scaled(scale) => WindowSums::Scaled { sums, scale, left },
            Ending::Weighted { weights, finish } => WindowSums::Weighted {
                sums: weighted,
                weights: *weights,
                finish,
            },
        }
    }
}

impl fmt::Display for BoxPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            Way::InRegisters(_) => f.write_str("rows in registers, 16-bit sums"),
            Way::ByColumns(quotient) => {
                let parts = if quotient.divisor == 0 { "" } else { " in parts" };
                write!(f, "column sums, 16-bit sums{parts}")
            }
            Way::ByDeepColumns(_) => f.write_str("column sums, 32-bit sums"),
            Way::Window(row_sums, ending) => {
                let sums = match ending {
                    Ending::Scaled(_) => "16-bit sums",
                    Ending::Weighted { .. } if self.weighs_centre() => "32-bit sums, centre apart",
                    Ending::Weighted { .. } => "32-bit sums",
                };
                write!(f, "sliding window over {row_sums}, {sums}")
            }
        }
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
    /// What the constants of the channels make up for and these sums have not: a row pass's offset.
    pub(super) offset: i64,
    pub(super) division: Division,
}

impl UniformMask {
    pub(super) fn of(kernel: &Kernel) -> Option<UniformMask> {
        let (columns, rows) = kernel.size();
        let (weights, division, offset) = match kernel {
            Kernel::Direct(k) => (&k.weights, k.division, 0),
            // The row pass has to be a sum of pixels, and the column's weights all the same.
            Kernel::Separable(k) => {
                let is_sum = k.row.shift == 0 && k.row.weights.iter().all(|&q| q == 1);
                let is_even = k.column.weights.iter().all(|&q| q == k.column.weights[0]);
                (is_sum && is_even).then_some((&k.column.weights, k.column.division, k.row.offset))?
            }
            Kernel::Combined(_) | Kernel::Pyramid(_) | Kernel::Weighted(_) => return None,
        };
        let (weight, centre) = (weights[0], weights.len() / 2);
        let is_even = (0..weights.len()).all(|i| i == centre || weights[i] == weight);
        // Windows of fewer rows than three have no row between the one that enters and the one that leaves.
        (is_even && rows >= 3).then(|| UniformMask {
            columns,
            rows,
            weight: weight.into(),
            excess: i64::from(weights[centre]) - i64::from(weight),
            offset: offset * weights.iter().map(|&q| i64::from(q)).sum::<i64>(),
            division,
        })
    }

    /// How boxes of bytes are made that are read in place, if they are.
    fn in_bytes(&self, c: &Convolve, vectors: Vectors, channels: usize) -> Option<Way> {
        let (max, size) = (i64::from(u8::MAX), (self.columns, self.rows));
        let Some(scale) = self.scale(c, max) else {
            return self.quotient_of_means(c, channels).map(Way::ByColumns);
        };
        if with_simd!(vectors, simd => in_registers::suit(simd, size, channels, scale)) {
            return Some(Way::InRegisters(scale));
        }
        let Scale { add, factor, down } = scale;
        column_sums::suit(self.columns, channels).then_some(Way::ByColumns(Quotient {
            add,
            factor,
            down,
            divisor: 0,
        }))
    }

    /// True if column sums of 32 bits are what boxes of samples of two bytes are made of: where the numbers
    /// of a sliding window do not fit words, or where they are more to add up.
    fn suits_deep_columns(&self, format: PixelFormat) -> bool {
        (self.weight, self.excess) == (1, 0)
            && self.columns <= deep_columns::MOST_COLUMNS
            && !self.fits_window(format)
    }

    /// True if words hold the sums of rows that a sliding window takes.
    fn fits_window(&self, format: PixelFormat) -> bool {
        let row = self.columns as i64 * i64::from(format.max_value());
        format.depth() <= 12 && row <= i64::from(i16::MAX)
    }

    /// By a sliding window, if words hold what enters and leaves it.
    fn by_window(
        &self,
        first: &Convolve,
        vectors: Vectors,
        (format, channels): (PixelFormat, &[ChannelStep]),
    ) -> Option<Way> {
        if !self.fits_window(format) {
            return None;
        }
        let ending = match self.scale(first, format.max_value().into()) {
            Some(scale) => Ending::Scaled(scale),
            None => Ending::Weighted {
                weights: [self.weight, self.excess].map(|q| q as i32),
                finish: self.weighted(vectors, format, channels)?,
            },
        };
        Some(Way::Window(RowSums::new(self.columns, channels.len()), ending))
    }

    /// What is added to sums, if results without more bits than samples up to `max` have come of them.
    fn addend(&self, c: &Convolve, max: i64) -> Option<i64> {
        let add = c.low + c.high * self.division.divisor() - self.offset;
        let largest = self.largest(max) + add;
        let is_box = (self.weight, self.excess) == (1, 0);
        (is_box && add >= 0 && largest / self.division.divisor() <= max).then_some(add)
    }

    /// The largest sum.
    fn largest(&self, max: i64) -> i64 {
        (self.columns * self.rows) as i64 * max
    }

    /// How sums of bytes in parts of 16 bits become samples, if that is how they are made.
    fn quotient_of_means(&self, c: &Convolve, channels: usize) -> Option<Quotient> {
        let max = i64::from(u8::MAX);
        let add = self.addend(c, max)?;
        let parts = column_sums::parts(self.columns) as i64;
        let means = self.division.of_means(self.largest(max) + add, parts)?;
        column_sums::suit_in_parts((self.columns, self.rows), channels, add).then_some(Quotient {
            add: add as u16,
            factor: means.factor,
            down: 0,
            divisor: means.divisor,
        })
    }

    /// How sums of 16 bits become samples up to `max`, if they fit.
    pub(super) fn scale(&self, c: &Convolve, max: i64) -> Option<Scale> {
        let add = self.addend(c, max)?;
        let words = self.division.of_words(self.largest(max) + add)?;
        Some(Scale {
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
    ) -> Option<Requantize> {
        if [self.weight, self.excess]
            .iter()
            .any(|&q| i16::try_from(q).is_err())
        {
            return None;
        }
        let largest = i64::from(format.max_value());
        let others = (self.columns * self.rows - 1) as i64 * self.weight;
        let parts = [others, self.weight + self.excess];
        let sums = Sums {
            limbs: 1,
            bits: 16,
            division: self.division,
            range: (
                parts.map(|part| part.min(0) * largest).iter().sum::<i64>() - self.offset,
                parts.map(|part| part.max(0) * largest).iter().sum::<i64>() - self.offset,
            ),
            largest,
            weight: parts.map(i64::abs).iter().sum(),
            correction: -self.offset,
            raise: 0,
        };
        sums.finish(format, channels, (Order::Interleaved, vectors.lanes()))
    }
}
