//! The plan of a box: its mask, the method that computes its sums, and their requantization.

use super::columns::quotient::{Quotient, largest_change};
use super::columns::{deep_sums, groups, pairs, sums};
use super::in_registers;
use super::row_sums::RowSums;
use super::sliding_window::{Scale, WindowSums};
use crate::engine::cpu::rows::plane_filter::PlanePart;
use crate::engine::cpu::rows::store::requantize::{Requantize, Sums};
use crate::engine::cpu::simd::vector::{Order, registers};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, Convolve, Division, Kernel};
use crate::frame::PixelFormat;
use std::fmt;

/// How the box filter of a plane is computed.
pub(super) struct BoxPlan {
    pub(super) mask: UniformMask,
    pub(super) method: Method,
}

/// How sums are computed, and their requantization.
pub(super) enum Method {
    /// In registers, several rows at a time.
    InRegisters(Scale),
    /// Column sums of 16 bits.
    ByColumns(Scale),
    /// Pairs of columns, of 16 bits.
    ByPairs(Quotient),
    /// Groups of columns, of 16 bits.
    ByGroups(Quotient),
    /// Column sums of 32 bits.
    ByDeepColumns(Requantize),
    /// Row sums in a ring of lines.
    Window(RowSums, BoxRequantize),
}

impl BoxPlan {
    /// `None` if nothing is convolved in the plane, for other masks, and for sums that need too many bits.
    pub(super) fn new(part: &PlanePart<'_>, vectors: Vectors) -> Option<BoxPlan> {
        let (format, channels) = (part.format, part.channels());
        if part.step.kernel.is_long() {
            return None;
        }
        let mask = UniformMask::of(&part.step.kernel)?;
        // Weighted sums filter 3x3 masks such as `laplacian8` up to three times as fast: of bytes, and of
        // words with 32 registers.
        let is_small = (mask.columns, mask.rows) == (3, 3) && mask.excess != 0;
        let is_wide = with_simd!(vectors, simd => registers(simd)) >= 32;
        if is_small && (format.bytes_per_sample() == 1 || is_wide) {
            return None;
        }
        let mut convolved = channels.iter().filter_map(ChannelStep::convolved);
        let first = convolved.next()?;
        // The loops treat all channels the same, so they must have the same constants.
        if !convolved.all(|c| (c.low, c.high) == (first.low, first.high)) {
            return None;
        }
        let method = match format.bytes_per_sample() {
            1 => mask.in_bytes(first, vectors, channels.len()),
            2 if mask.suits_deep_columns(format) => mask
                .weighted(vectors, format, channels)
                .map(Method::ByDeepColumns),
            _ => None,
        };
        let method = match method {
            Some(method) => method,
            None => mask.by_window(first, vectors, (format, channels))?,
        };
        Some(BoxPlan { mask, method })
    }

    /// True if the centre has another weight than the rest.
    pub(super) fn weighs_centre(&self) -> bool {
        self.mask.excess != 0
    }
}

impl BoxRequantize {
    /// Fills the sums of 16 bits, or those of 32, with their start value.
    pub(super) fn begin(&self, sums: &mut [u16], weighted: &mut [i32]) {
        match self {
            BoxRequantize::Scaled(scale) => sums.fill(scale.add),
            BoxRequantize::Weighted { requantize, .. } => weighted.fill(requantize.start[0][0]),
        }
    }

    /// The windows' sums with this requantization, for samples that are stored shifted up by `left`.
    pub(super) fn window_sums<'a>(
        &'a self,
        sums: &'a mut [u16],
        weighted: &'a mut [i32],
        left: u32,
    ) -> WindowSums<'a> {
        match self {
            BoxRequantize::Scaled(scale) => WindowSums::Scaled { sums, scale, left },
            BoxRequantize::Weighted { weights, requantize } => WindowSums::Weighted {
                sums: weighted,
                weights: *weights,
                requantize,
            },
        }
    }
}

impl fmt::Display for BoxPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.method {
            Method::InRegisters(_) => f.write_str("rows in registers, 16-bit sums"),
            Method::ByColumns(_)
            | Method::ByPairs(Quotient::Sums(_))
            | Method::ByGroups(Quotient::Sums(_)) => f.write_str("column sums, 16-bit sums"),
            Method::ByPairs(Quotient::Changes { .. }) | Method::ByGroups(Quotient::Changes { .. }) => {
                f.write_str("column changes, 16-bit remainders")
            }
            Method::ByDeepColumns(_) => f.write_str("column sums, 32-bit sums"),
            Method::Window(row_sums, requantize) => {
                let sums = match requantize {
                    BoxRequantize::Scaled(_) => "16-bit sums",
                    BoxRequantize::Weighted { .. } if self.weighs_centre() => {
                        "32-bit sums, centre weighted separately"
                    }
                    BoxRequantize::Weighted { .. } => "32-bit sums",
                };
                write!(f, "sliding window over {row_sums}, {sums}")
            }
        }
    }
}

/// The requantization of window sums.
pub(super) enum BoxRequantize {
    /// Sums of 16 bits, divided by a multiplication.
    Scaled(Scale),
    /// Weighted sums of 32 bits.
    Weighted {
        /// The weight of all samples, and the difference of the centre's weight from it.
        weights: [i32; 2],
        requantize: Requantize,
    },
}

/// A mask of equal weights, except for the centre.
pub(super) struct UniformMask {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// The weight of each sample.
    pub(super) weight: i64,
    /// The centre's weight less `weight`.
    pub(super) excess: i64,
    /// The row pass's offset times the column's weights. Channel constants correct for it, but box sums lack
    /// it, so it is subtracted.
    pub(super) offset: i64,
    pub(super) division: Division,
}

impl UniformMask {
    /// The mask of a kernel; `None` if it is no such mask, or has fewer than three rows.
    pub(super) fn of(kernel: &Kernel) -> Option<UniformMask> {
        let (columns, rows) = kernel.size();
        let (weights, division, offset) = match kernel {
            Kernel::Direct(k) => (&k.weights, k.division, 0),
            // The row pass must be a plain sum of pixels, and the column's weights must be equal.
            Kernel::Separable(k) => {
                let is_sum = k.row.shift == 0 && k.row.weights.iter().all(|&q| q == 1);
                let is_even = k.column.weights.iter().all(|&q| q == k.column.weights[0]);
                (is_sum && is_even).then_some((&k.column.weights, k.column.division, k.row.offset))?
            }
            Kernel::Combined(_) | Kernel::Pyramid(_) | Kernel::Weighted(_) => return None,
        };
        let (weight, centre) = (weights[0], weights.len() / 2);
        let is_even = (0..weights.len()).all(|i| i == centre || weights[i] == weight);
        // A window of fewer than three rows has no row between the entering and the leaving one.
        (is_even && rows >= 3).then(|| UniformMask {
            columns,
            rows,
            weight: weight.into(),
            excess: i64::from(weights[centre]) - i64::from(weight),
            offset: offset * weights.iter().map(|&q| i64::from(q)).sum::<i64>(),
            division,
        })
    }

    /// The method for 8-bit boxes, which reads the picture in place; `None` if it does not suit.
    fn in_bytes(&self, c: &Convolve, vectors: Vectors, channels: usize) -> Option<Method> {
        let (max, size) = (i64::from(u8::MAX), (self.columns, self.rows));
        match self.scale(c, max) {
            Some(scale) if with_simd!(vectors, simd => in_registers::suit(simd, size, channels, scale)) => {
                Some(Method::InRegisters(scale))
            }
            Some(scale) if pairs::suit(self.columns, channels) => {
                Some(Method::ByPairs(Quotient::Sums(scale)))
            }
            Some(scale) if sums::suit(self.columns, channels) => Some(Method::ByColumns(scale)),
            Some(scale) if groups::suit(self.columns, channels) => {
                Some(Method::ByGroups(Quotient::Sums(scale)))
            }
            _ if pairs::suit_changes(self.columns, channels) => self.changes(c).map(Method::ByPairs),
            _ if groups::suit(self.columns, channels) => self.changes(c).map(Method::ByGroups),
            _ => None,
        }
    }

    /// True if boxes of two-byte samples are made of column sums of 32 bits: if the row sums of a sliding
    /// window do not fit words.
    fn suits_deep_columns(&self, format: PixelFormat) -> bool {
        (self.weight, self.excess) == (1, 0)
            && self.columns <= deep_sums::MOST_COLUMNS
            && !self.fits_window(format)
    }

    /// True if words hold the row sums of a sliding window.
    fn fits_window(&self, format: PixelFormat) -> bool {
        let row = self.columns as i64 * i64::from(format.max_value());
        format.depth() <= 12 && row <= i64::from(i16::MAX)
    }

    /// The method of a sliding window, if words hold its row sums.
    fn by_window(
        &self,
        first: &Convolve,
        vectors: Vectors,
        (format, channels): (PixelFormat, &[ChannelStep]),
    ) -> Option<Method> {
        if !self.fits_window(format) {
            return None;
        }
        let requantize = match self.scale(first, format.max_value().into()) {
            Some(scale) => BoxRequantize::Scaled(scale),
            None => BoxRequantize::Weighted {
                weights: [self.weight, self.excess].map(|q| q as i32),
                requantize: self.weighted(vectors, format, channels)?,
            },
        };
        Some(Method::Window(
            RowSums::new(self.columns, channels.len()),
            requantize,
        ))
    }

    /// The value to add to sums before the division; `None` if it is negative, if a result may exceed `max`,
    /// or if weights differ from 1.
    fn addend(&self, c: &Convolve, max: i64) -> Option<i64> {
        let add = c.low + c.high * self.division.divisor() - self.offset;
        let largest = self.largest(max) + add;
        let is_box = (self.weight, self.excess) == (1, 0);
        (is_box && add >= 0 && largest / self.division.divisor() <= max).then_some(add)
    }

    /// The largest sum of samples up to `max`.
    fn largest(&self, max: i64) -> i64 {
        (self.columns * self.rows) as i64 * max
    }

    /// The division of what sums of bytes change by; `None` if words do not hold it.
    fn changes(&self, c: &Convolve) -> Option<Quotient> {
        let add = self.addend(c, u8::MAX.into())?;
        let largest = largest_change(self.columns, self.division.divisor());
        let division = self.division.of_signed_words(largest)?;
        Some(Quotient::Changes { division, add })
    }

    /// The division of 16-bit sums of samples up to `max`; `None` if sums need more bits.
    pub(super) fn scale(&self, c: &Convolve, max: i64) -> Option<Scale> {
        let add = self.addend(c, max)?;
        let words = self.division.of_words(self.largest(max) + add)?;
        Some(Scale {
            add: add as u16 + words.add,
            factor: words.factor,
            down: words.shift,
        })
    }

    /// The requantization of weighted sums; `None` if it needs more than 32 bits, or a weight more than 16.
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
        sums.requantize(format, channels, (Order::Interleaved, vectors.lanes()))
    }
}
