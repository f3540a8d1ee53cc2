//! Which loops compute a mask: the taps, the encoding of samples, and a proof that 32 bits hold the sums.
//! [`FirPlan::new`] decides all of it.

use super::column_filter;
use super::folded::folded;
use super::row_filter::{InterleavedTerms, Pairing, RowFilter};
use super::taps::{self, TapTable, pack, vertical, vertical_deltas};
use crate::engine::cpu::fir::column_filter::unrolled::{self, UniformRequantize};
use crate::engine::cpu::fir::row_filter::unrolled::UnrolledRow;
use crate::engine::cpu::rows::plane_filter::PlanePart;
use crate::engine::cpu::rows::requantize::{Requantize, Sums};
use crate::engine::cpu::rows::words::deinterleave;
use crate::engine::cpu::rows::words::sample::{SampleEncoding, magnitude, range, total};
use crate::engine::cpu::simd::vector::{Order, Simd};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, DirectKernel, Kernel, SeparableKernel};
use crate::frame::PixelFormat;
use std::fmt;

fn registers<L: Simd>(_: L) -> usize {
    L::REGISTERS
}

/// How the mask of a plane is computed.
pub(super) struct FirPlan {
    pub(super) encoding: SampleEncoding,
    pub(super) work: Work,
    /// The taps that compute two rows from scratch.
    pub(super) taps: TapTable,
    /// The taps that change the sums of one pair of rows into the next one's, where they are fewer: where
    /// weights below each other are equal.
    pub(super) deltas: Option<TapTable>,
    pub(super) column_loops: ColumnLoops,
    pub(super) finish: Requantize,
    /// True if results are rounded high words of sums.
    pub(super) high_words: bool,
}

impl FirPlan {
    /// `None` if nothing is convolved in the plane, or if its numbers need more than the inner loops hold.
    pub(super) fn new(part: &PlanePart<'_>, vectors: Vectors) -> Option<FirPlan> {
        let (format, channels) = (part.format, part.channels());
        if part.step.kernel.is_long() {
            return None;
        }
        let mut parts = match &part.step.kernel {
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
        let (limbs, taps) = (parts.limbs(), parts.taps.len());
        // Keeping sums costs a read and a write, as much as a few taps.
        parts.deltas = parts.deltas.filter(|c| limbs == 1 && c.len() + 2 < taps);
        let column_loops = parts.column_loops(vectors, format);
        // The general loop has registers for high words with two rows only, and only where registers are few.
        let is_general = !matches!(column_loops, ColumnLoops::Unrolled { .. });
        let is_rounded = !is_general || (limbs == 1 && parts.deltas.is_none() && !column_loops.makes_four());
        let few_registers = with_simd!(vectors, simd => registers(simd)) < 32;
        let high_words = parts.finish.rounds_high_words()
            && format.bytes_per_sample() == 1
            && is_rounded
            && (!is_general || few_registers);
        Some(FirPlan {
            column_loops,
            high_words,
            encoding: parts.encoding,
            work: parts.work,
            taps: parts.taps,
            deltas: parts.deltas,
            finish: parts.finish,
        })
    }

    /// True if rows are filtered with their components deinterleaved.
    pub(super) fn is_planar(&self) -> bool {
        matches!(self.work, Work::Separable { planar: true, .. })
    }
}

impl fmt::Display for FirPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limbs = match &self.work {
            Work::Direct { .. } => {
                f.write_str("whole mask ")?;
                self.encoding.limbs()
            }
            Work::Separable {
                row, planar, limbs, ..
            } => {
                let apart = if *planar { " of components apart" } else { "" };
                write!(f, "row filter {row}{apart}, column filter ")?;
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
        if self.deltas.is_some() {
            f.write_str(" by deltas")?;
        }
        if limbs > 1 {
            write!(f, ", {limbs} limbs")?;
        }
        f.write_str(if self.high_words {
            ", pmulhrsw rounding"
        } else {
            ""
        })
    }
}

pub(super) enum Work {
    Direct {
        columns: usize,
    },
    Separable {
        row: Row,
        columns: usize,
        limbs: usize,
        /// True if components lie one after the other (see `deinterleave`).
        planar: bool,
    },
}

/// The loop that makes intermediates of rows.
pub(super) enum Row {
    General(RowFilter),
    Unrolled(UnrolledRow),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Row::General(pass) => f.write_str(match pass.pairing {
                Pairing::InPlace(_) => "in place",
                Pairing::Interleaved(_) => "interleaved",
            }),
            Row::Unrolled(few) => write!(f, "unrolled<{}>", few.terms()),
        }
    }
}

/// The loops that weigh the lines of a column and write rows of the result.
pub(super) enum ColumnLoops {
    /// The general loops: two rows, or four by these taps where that is faster.
    General(Option<TapTable>),
    /// Loops compiled for this number of taps (see `unrolled`), where all samples share their constants: two
    /// rows, four, or either. Two rows that they do not make go through the general loop.
    Unrolled {
        uniform: UniformRequantize,
        two: bool,
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

    /// Rows that are made at a time.
    pub(super) fn at_once(&self) -> i64 {
        if self.makes_four() { 4 } else { 2 }
    }
}

/// What a mask needs of its plane.
struct Parts {
    encoding: SampleEncoding,
    work: Work,
    taps: TapTable,
    deltas: Option<TapTable>,
    finish: Requantize,
}

/// The terms of a row whose neighbouring pixels are `step` words apart; of a symmetric row those of both
/// halves at once.
fn interleaved(q: &[i32], step: usize, encoding: SampleEncoding) -> InterleavedTerms {
    let (last, at) = (q.len() - 1, |i: usize| i * step);
    // Two offset samples of 16 bits do not add up to 16 signed bits; no other two leave them.
    let mirrors = encoding != SampleEncoding::Biased && q.iter().eq(q.iter().rev());
    let folded = if mirrors { q.len() / 2 } else { 0 };
    let sums: Vec<([usize; 2], i32)> = (0..folded).map(|i| ([at(i), at(last - i)], q[i])).collect();
    let singles: Vec<(usize, i32)> = (folded..q.len() - folded).map(|i| (at(i), q[i])).collect();
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
        // A single one that is left is paired with itself.
        let second = two.get(1).map_or((two[0].0, 0), |s| *s);
        interleaved
            .singles
            .push(([two[0].0, second.0], pack(two[0].1, second.1)));
    }
    interleaved
}

/// How a row's words are paired where neighbouring pixels are `step` words apart.
fn pairing(q: &[i32], step: usize, encoding: SampleEncoding) -> Pairing {
    if step > 1 {
        return Pairing::Interleaved(interleaved(q, step, encoding));
    }
    // A pair of neighbours is to a row what a line of two rows is to a column: it has weights for even
    // results and for odd ones.
    let pairs = vertical(q.len(), 0, 0, |i| q[i]);
    Pairing::InPlace(
        pairs
            .iter()
            .map(|p| (2 * p.line, [p.weights[0], p.weights[1]]))
            .collect(),
    )
}

/// How the intermediates of a row pass lie where neighbouring pixels are `step` words apart.
pub(super) fn row_order(step: usize) -> Order {
    if step == 1 {
        Order::Alternate
    } else {
        Order::Interleaved
    }
}

/// For a row of so many weights: the constants that all components share, if they are deinterleaved because
/// that is faster.
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
) -> Option<Parts> {
    let max = i64::from(format.max_value());
    let (r, c) = (&kernel.row, &kernel.column);
    let planar = planar(vectors, channels, r.weights.len());
    let channels = planar.as_ref().map_or(channels, std::slice::from_ref);
    let (column_total, whole) = (total(&c.weights), c.division.divisor());
    let bound = magnitude(&r.weights) * max + r.start().abs();
    let (encoding, missing) = SampleEncoding::choose(format, bound, || {
        // What the column makes of it must come to whole levels.
        SampleEncoding::biased_after(&r.weights, r.shift, r.start())
            .filter(|missing| column_total * missing % whole == 0)
    });
    // Intermediates as they are held: those of offset words may have their offset left.
    let between = range(&r.weights, (0, max));
    let held = |sum: i64| ((sum + r.start()) >> r.shift) - missing.unwrap_or(0);
    let (bottom, top) = (held(between.0), held(between.1));
    let sums = |limbs: usize, bits: u32| Sums {
        limbs,
        bits,
        division: c.division,
        range: range(&c.weights, (bottom, top)),
        largest: top.max(-bottom),
        weight: magnitude(&c.weights),
        correction: 0,
        raise: column_total * missing.unwrap_or(0) / whole,
    };
    let order = (row_order(channels.len()), vectors.lanes());
    let fits_words = top < 1 << 15 && bottom >= -(1 << 15);
    let ways = [(1, 16), (2, 12), (3, 8)];
    let (limbs, bits, finish) = ways
        .into_iter()
        .filter(|&(limbs, _)| limbs > 1 || fits_words)
        .find_map(|(limbs, bits)| Some((limbs, bits, sums(limbs, bits).finish(format, channels, order)?)))?;
    let correction = missing.map_or_else(|| encoding.correction(total(&r.weights)), |_| 0);
    let pass = RowFilter {
        pairing: pairing(&r.weights, channels.len(), encoding),
        start: (r.start() + correction) as i32,
        shift: r.shift,
        bits,
    };
    let is_narrow = (encoding.limbs(), limbs) == (1, 1);
    let few: Option<UnrolledRow> = with_simd!(vectors, simd => UnrolledRow::of(simd, &pass));
    let few = few.filter(|_| is_narrow);
    let work = Work::Separable {
        row: few.map_or(Row::General(pass), Row::Unrolled),
        columns: r.weights.len(),
        limbs,
        planar: planar.is_some(),
    };
    let q = |j: usize| c.weights[j];
    let taps = TapTable::single(vertical(c.weights.len(), 0, 0, q));
    let deltas = vertical_deltas(c.weights.len(), 0, 0, q).map(TapTable::single);
    Some(Parts {
        encoding,
        work,
        taps,
        deltas,
        finish,
    })
}

/// The encoding, the taps and the requantization of a direct mask.
fn direct(
    vectors: Vectors,
    kernel: &DirectKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Parts> {
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
    let finish = sums.finish(format, channels, (Order::Plain, vectors.lanes()))?;
    let (taps, deltas) = taps::direct(kernel, channels.len(), encoding, unrolled::MOST)?;
    let columns = kernel.width;
    Some(Parts {
        encoding,
        work: Work::Direct { columns },
        taps,
        deltas,
        finish,
    })
}

impl Parts {
    fn limbs(&self) -> usize {
        match &self.work {
            Work::Direct { .. } => self.encoding.limbs(),
            Work::Separable { limbs, .. } => *limbs,
        }
    }

    /// The constants of all samples, where these are the same and sums are not kept.
    fn uniform(&self, vectors: Vectors, format: PixelFormat) -> Option<UniformRequantize> {
        let (limbs, bytes) = (self.limbs(), format.bytes_per_sample());
        let uniform: Option<UniformRequantize> =
            with_simd!(vectors, simd => UniformRequantize::of(simd, &self.finish, limbs, bytes));
        uniform.filter(|_| self.deltas.is_none())
    }

    /// The loops that write rows of the result.
    fn column_loops(&self, vectors: Vectors, format: PixelFormat) -> ColumnLoops {
        let (limbs, folded) = (self.limbs(), self.taps.folded());
        if let Some(uniform) = self.uniform(vectors, format) {
            let two = folded == 0 && (2..=unrolled::MOST).contains(&self.taps.len());
            let four = self.makes_four_rows(vectors, format);
            if two || four {
                return ColumnLoops::Unrolled { uniform, two, four };
            }
        }
        let makes_four = with_simd!(vectors, simd => column_filter::makes_four_rows(simd, limbs));
        let four = self.deltas.is_none() && makes_four;
        ColumnLoops::General(four.then(|| self.taps.four_rows()))
    }

    /// True if four rows of a column are made at a time, by a loop that is compiled for so many taps.
    fn makes_four_rows(&self, vectors: Vectors, format: PixelFormat) -> bool {
        let samples = (format.bytes_per_sample(), self.finish.rounds_high_words());
        let (taps, limbs) = (self.taps.len(), self.limbs());
        let Work::Separable { planar, .. } = self.work else {
            return false;
        };
        self.taps.are_lines()
            && self.finish.factor.is_none()
            && with_simd!(vectors, simd => unrolled::makes_four_rows(simd, taps, limbs, samples, planar))
    }
}
