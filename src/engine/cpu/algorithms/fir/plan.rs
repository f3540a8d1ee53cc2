//! The plan of a mask: the loops, the taps, the encoding of samples, and a proof that 32 bits hold the sums.
//! [`FirPlan::new`] decides all of it.

use super::folded::folded;
use super::row_filter::{InterleavedTerms, Pairing, RowFilter};
use super::taps::{self, TapTable, vertical};
use super::unrolled_columns::{self, ColumnShape, UniformRequantize};
use crate::engine::cpu::algorithms::fir::row_filter::unrolled::UnrolledRow;
use crate::engine::cpu::rows::plane_filter::PlanePart;
use crate::engine::cpu::rows::store::requantize::{Requantize, Sums};
use crate::engine::cpu::rows::sums::column_filter;
use crate::engine::cpu::rows::sums::taps::pack;
use crate::engine::cpu::rows::words::deinterleave;
use crate::engine::cpu::rows::words::sample::{SampleEncoding, magnitude, range, total};
use crate::engine::cpu::simd::vector::Order;
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, DirectKernel, Kernel, SeparableKernel};
use crate::frame::PixelFormat;
use std::fmt;

/// How the mask of a plane is computed.
pub(super) struct FirPlan {
    /// The encoding of samples.
    pub(super) encoding: SampleEncoding,
    pub(super) passes: Passes,
    /// The taps of two rows.
    pub(super) taps: TapTable,
    pub(super) column_loops: ColumnLoops,
    pub(super) requantize: Requantize,
}

impl FirPlan {
    /// `None` if nothing is convolved in the plane, or if sums need more bits than the inner loops have.
    pub(super) fn new(part: &PlanePart<'_>, vectors: Vectors) -> Option<FirPlan> {
        let (format, channels) = (part.format, part.channels());
        if part.step.kernel.is_long() {
            return None;
        }
        let draft = match &part.step.kernel {
            Kernel::Direct(k) => {
                let folded = folded(k, channels, format);
                let (k, channels) = match &folded {
                    Some((kernel, channels)) => (kernel, &channels[..]),
                    None => (k, channels),
                };
                direct(vectors, k, format, channels)?
            }
            Kernel::Separable(k) => separable(vectors, k, format, channels)?,
            Kernel::Combined(_) | Kernel::Pyramid(_) | Kernel::Weighted(_) => return None,
        };
        Some(FirPlan {
            column_loops: draft.column_loops(vectors, format),
            encoding: draft.encoding,
            passes: draft.passes,
            taps: draft.taps,
            requantize: draft.requantize,
        })
    }

    /// True if rows are filtered with their components deinterleaved.
    pub(super) fn is_planar(&self) -> bool {
        matches!(self.passes, Passes::Separable { planar: true, .. })
    }
}

impl fmt::Display for FirPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limbs = match &self.passes {
            Passes::Direct { .. } => {
                f.write_str("whole mask ")?;
                self.encoding.limbs()
            }
            Passes::Separable {
                row, planar, limbs, ..
            } => {
                let deinterleaved = if *planar { ", deinterleaved" } else { "" };
                write!(f, "row filter {row}{deinterleaved}, column filter ")?;
                *limbs
            }
        };
        let rows = self.column_loops.at_once();
        match &self.column_loops {
            ColumnLoops::Unrolled { .. } => write!(f, "{rows} rows unrolled<{}>", self.taps.len())?,
            ColumnLoops::General(_) => write!(f, "{rows} rows")?,
        }
        if self.taps.folded() > 0 {
            f.write_str(" folded")?;
        }
        if limbs > 1 {
            write!(f, ", {limbs} limbs")?;
        }
        Ok(())
    }
}

/// The passes of a mask.
pub(super) enum Passes {
    /// The whole mask in one pass.
    Direct {
        /// Columns of the mask.
        columns: usize,
    },
    /// A row filter, then a column filter.
    Separable {
        /// The row filter.
        row: Row,
        /// Columns of the mask.
        columns: usize,
        /// Limbs of the intermediates.
        limbs: usize,
        /// True if rows are deinterleaved (see `deinterleave`).
        planar: bool,
    },
}

/// The loop of a row filter.
pub(super) enum Row {
    /// The general loop.
    General(RowFilter),
    /// A loop compiled for its number of terms.
    Unrolled(UnrolledRow),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Row::General(pass) => f.write_str(match pass.pairing {
                Pairing::InPlace(_) => "in place",
                Pairing::Interleaved(_) => "interleaved",
            }),
            Row::Unrolled(row) => write!(f, "unrolled<{}>", row.terms()),
        }
    }
}

/// The loops that filter lines along the column and write rows of the result.
pub(super) enum ColumnLoops {
    /// The general loop for two rows; with a table also for four rows, where that is faster.
    General(Option<TapTable>),
    /// Loops compiled for this number of taps (see `unrolled_columns`), for samples that share their
    /// constants. If there is none for two rows, the general loop makes them.
    Unrolled {
        /// The constants of all samples.
        uniform: UniformRequantize,
        /// True if there is a loop for two rows.
        two: bool,
        /// True if there is a loop for four rows.
        four: bool,
    },
}

impl ColumnLoops {
    /// True if four rows are made at a time.
    pub(super) fn makes_four(&self) -> bool {
        matches!(
            self,
            ColumnLoops::General(Some(_)) | ColumnLoops::Unrolled { four: true, .. }
        )
    }

    /// Most rows that are made at a time.
    pub(super) fn at_once(&self) -> i64 {
        if self.makes_four() { 4 } else { 2 }
    }
}

/// The decisions of a plan before the loops are chosen.
struct Draft {
    encoding: SampleEncoding,
    passes: Passes,
    taps: TapTable,
    requantize: Requantize,
}

/// The terms of a row filter whose neighbouring pixels are `pixel_stride` words apart. Words of equal weight
/// in a symmetric row are added first.
fn interleaved(weights: &[i32], pixel_stride: usize, encoding: SampleEncoding) -> InterleavedTerms {
    let (last, at) = (weights.len() - 1, |i: usize| i * pixel_stride);
    // The sum of two biased samples needs 17 bits; with the other encodings it fits a signed word.
    let mirrors = encoding != SampleEncoding::Biased && weights.iter().eq(weights.iter().rev());
    let folded = if mirrors { weights.len() / 2 } else { 0 };
    let sums: Vec<([usize; 2], i32)> = (0..folded).map(|i| ([at(i), at(last - i)], weights[i])).collect();
    let singles: Vec<(usize, i32)> = (folded..weights.len() - folded)
        .map(|i| (at(i), weights[i]))
        .collect();
    let mut interleaved = InterleavedTerms::default();
    let (pairs, rest) = sums.as_chunks::<2>();
    interleaved
        .sums
        .extend(pairs.iter().map(|[a, b]| ([a.0, b.0], pack(a.1, b.1))));
    let mut singles = &singles[..];
    if let ([sum], [single, others @ ..]) = (rest, singles) {
        interleaved.mixed.push((sum.0, single.0, pack(sum.1, single.1)));
        singles = others;
    }
    for two in singles.chunks(2) {
        // The last one of an odd number is paired with itself, with weight 0.
        let second = two.get(1).map_or((two[0].0, 0), |s| *s);
        interleaved
            .singles
            .push(([two[0].0, second.0], pack(two[0].1, second.1)));
    }
    interleaved
}

/// How a row's words are paired where neighbouring pixels are `pixel_stride` words apart.
fn pairing(weights: &[i32], pixel_stride: usize, encoding: SampleEncoding) -> Pairing {
    if pixel_stride > 1 {
        return Pairing::Interleaved(interleaved(weights, pixel_stride, encoding));
    }
    // A pair of neighbours in a row corresponds to a line of two rows in a column filter: it has weights for
    // even and for odd results.
    let pairs = vertical(weights.len(), 0, 0, |i| weights[i]);
    Pairing::InPlace(
        pairs
            .iter()
            .map(|p| (2 * p.line, [p.weights[0], p.weights[1]]))
            .collect(),
    )
}

/// The order of a row filter's intermediates where neighbouring pixels are `pixel_stride` words apart.
pub(super) fn row_order(pixel_stride: usize) -> Order {
    if pixel_stride == 1 {
        Order::Alternate
    } else {
        Order::Interleaved
    }
}

/// The constants shared by all components, if a row filter of `weights` weights is faster on deinterleaved
/// rows; `None` if not, or if components differ in them.
fn planar(vectors: Vectors, channels: &[ChannelStep], weights: usize) -> Option<ChannelStep> {
    let mut convolved = channels.iter().filter(|c| c.convolved().is_some());
    let first = convolved.next()?;
    let constants = |c: &ChannelStep| c.convolved().map(|c| (c.low, c.high));
    let share_constants = convolved.all(|c| constants(c) == constants(first));
    let is_better = with_simd!(vectors, simd => deinterleave::suit(simd, channels.len(), weights));
    (share_constants && is_better).then_some(*first)
}

/// The encoding, both passes and the requantization of a separable mask.
fn separable(
    vectors: Vectors,
    kernel: &SeparableKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Draft> {
    let max = i64::from(format.max_value());
    let (r, c) = (&kernel.row, &kernel.column);
    let planar = planar(vectors, channels, r.weights.len());
    let channels = planar.as_ref().map_or(channels, std::slice::from_ref);
    let (column_total, divisor) = (total(&c.weights), c.division.divisor());
    let bound = magnitude(&r.weights) * max + r.start().abs();
    let (encoding, missing) = SampleEncoding::choose(format, bound, || {
        // The column filter must turn the missing value into whole levels.
        SampleEncoding::biased_after(&r.weights, r.shift, r.start())
            .filter(|missing| column_total * missing % divisor == 0)
    });
    // The range of the stored intermediates. The bias of samples may stay in them (`missing`).
    let row_sums = range(&r.weights, (0, max));
    let stored = |sum: i64| ((sum + r.start()) >> r.shift) - missing.unwrap_or(0);
    let (bottom, top) = (stored(row_sums.0), stored(row_sums.1));
    let sums = |limbs: usize, bits: u32| Sums {
        limbs,
        bits,
        division: c.division,
        range: range(&c.weights, (bottom, top)),
        largest: top.max(-bottom),
        weight: magnitude(&c.weights),
        correction: 0,
        raise: column_total * missing.unwrap_or(0) / divisor,
    };
    let order = (row_order(channels.len()), vectors.lanes());
    let requantize = |limbs, bits| sums(limbs, bits).requantize(format, channels, order);
    let (limbs, bits, requantize) = intermediate_limbs((bottom, top), requantize)?;
    let correction = missing.map_or_else(|| encoding.correction(total(&r.weights)), |_| 0);
    let filter = RowFilter {
        pairing: pairing(&r.weights, channels.len(), encoding),
        start: (r.start() + correction) as i32,
        shift: r.shift,
        bits,
    };
    let passes = Passes::Separable {
        row: row_loop(vectors, filter, (encoding.limbs(), limbs)),
        columns: r.weights.len(),
        limbs,
        planar: planar.is_some(),
    };
    let weight = |j: usize| c.weights[j];
    let taps = TapTable::single(vertical(c.weights.len(), 0, 0, weight));
    Some(Draft {
        encoding,
        passes,
        taps,
        requantize,
    })
}

/// The limbs of intermediates from `bottom` to `top`, the bits of a limb, and the requantization: the fewest
/// limbs for which `requantize` has one.
fn intermediate_limbs(
    (bottom, top): (i64, i64),
    requantize: impl Fn(usize, u32) -> Option<Requantize>,
) -> Option<(usize, u32, Requantize)> {
    let fits_words = top < 1 << 15 && bottom >= -(1 << 15);
    let sizes = [(1, 16), (2, 12), (3, 8)];
    let mut sizes = sizes.into_iter().filter(|&(limbs, _)| limbs > 1 || fits_words);
    sizes.find_map(|(limbs, bits)| Some((limbs, bits, requantize(limbs, bits)?)))
}

/// The loop of a row filter, from samples and to intermediates of these numbers of limbs: an unrolled one for
/// one limb each, if it is compiled for the filter's terms.
fn row_loop(vectors: Vectors, filter: RowFilter, limbs: (usize, usize)) -> Row {
    let unrolled: Option<UnrolledRow> = with_simd!(vectors, simd => UnrolledRow::of(simd, &filter));
    match unrolled.filter(|_| limbs == (1, 1)) {
        Some(unrolled) => Row::Unrolled(unrolled),
        None => Row::General(filter),
    }
}

/// The encoding, the taps and the requantization of a direct mask.
fn direct(
    vectors: Vectors,
    kernel: &DirectKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Draft> {
    let largest = i64::from(format.max_value());
    let weight = magnitude(&kernel.weights);
    let below = kernel.division.divisor();
    let (encoding, missing) = SampleEncoding::choose(format, weight * largest + below, || {
        let shift = kernel
            .division
            .factor()
            .is_none()
            .then(|| kernel.division.shift())?;
        SampleEncoding::biased_after(&kernel.weights, shift, below - 1)
    });
    let (values, correction) = match missing {
        Some(_) => ((i16::MIN.into(), i16::MAX.into()), 0),
        None => ((0, largest), encoding.correction(total(&kernel.weights))),
    };
    let sums = Sums {
        limbs: encoding.limbs(),
        bits: 8,
        division: kernel.division,
        range: range(&kernel.weights, values),
        largest,
        weight,
        correction,
        raise: missing.unwrap_or(0),
    };
    let requantize = sums.requantize(format, channels, (Order::Plain, vectors.lanes()))?;
    let columns = kernel.width;
    Some(Draft {
        encoding,
        passes: Passes::Direct { columns },
        taps: taps::direct(kernel, channels.len(), encoding, unrolled_columns::MOST),
        requantize,
    })
}

impl Draft {
    /// Limbs of the column filter's input.
    fn limbs(&self) -> usize {
        match &self.passes {
            Passes::Direct { .. } => self.encoding.limbs(),
            Passes::Separable { limbs, .. } => *limbs,
        }
    }

    /// The constants of all samples, if they are the same for all.
    fn uniform(&self, vectors: Vectors, format: PixelFormat) -> Option<UniformRequantize> {
        let (limbs, bytes) = (self.limbs(), format.bytes_per_sample());
        with_simd!(vectors, simd => UniformRequantize::of(simd, &self.requantize, limbs, bytes))
    }

    /// The loops that write rows of the result.
    fn column_loops(&self, vectors: Vectors, format: PixelFormat) -> ColumnLoops {
        let (limbs, folded) = (self.limbs(), self.taps.folded());
        if let Some(uniform) = self.uniform(vectors, format) {
            let two = folded == 0 && (2..=unrolled_columns::MOST).contains(&self.taps.len());
            let four = self.makes_four_rows(vectors, format);
            if two || four {
                return ColumnLoops::Unrolled { uniform, two, four };
            }
        }
        let makes_four = with_simd!(vectors, simd => column_filter::makes_four_rows(simd, limbs));
        ColumnLoops::General(makes_four.then(|| self.taps.four_rows()))
    }

    /// True if a loop compiled for this number of taps makes four rows of a column at a time.
    fn makes_four_rows(&self, vectors: Vectors, format: PixelFormat) -> bool {
        let Passes::Separable { planar, .. } = self.passes else {
            return false;
        };
        let column = ColumnShape {
            taps: self.taps.len(),
            limbs: self.limbs(),
            bytes: format.bytes_per_sample(),
            is_planar: planar,
        };
        self.taps.are_lines()
            && self.requantize.factor.is_none()
            && with_simd!(vectors, simd => unrolled_columns::makes_four_rows(simd, &column))
    }
}
