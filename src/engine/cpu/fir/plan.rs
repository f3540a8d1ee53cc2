//! Which loops make a mask: the taps, the samples, and a proof that 32 bits hold the sums.

use super::column_filter;
use super::row_filter::{InterleavedTerms, Pairing, RowFilter};
use super::taps::{self, TapTable, pack, vertical, vertical_deltas};
use crate::engine::cpu::fir::column_filter::unrolled::{self, UniformRequantize};
use crate::engine::cpu::fir::row_filter::sixteen_bit::SixteenBit;
use crate::engine::cpu::fir::row_filter::unrolled::UnrolledRow;
use crate::engine::cpu::rows::deinterleave;
use crate::engine::cpu::rows::requantize::{self, Requantize, Sums};
use crate::engine::cpu::rows::sample::{SampleEncoding, magnitude, range, total};
use crate::engine::cpu::simd::vector::{self, Order, Simd};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, DirectKernel, SeparableKernel};
use crate::frame::PixelFormat;

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

impl Work {
    /// True if a row pass before a column of so many taps asks for the next rows of the picture.
    pub(super) fn prefetches<L: Simd>(&self, _: L, taps: usize, format: PixelFormat) -> bool {
        let Work::Separable { row, .. } = self else {
            return false;
        };
        match row {
            Row::Any(_) => false,
            Row::Unrolled(few) => {
                format.bytes_per_sample() == 1 && taps <= const { short_column::<L>() } && few.prefetches()
            }
            Row::Grouped(_) => {
                vector::has_32_registers::<L>() && !format.has_alpha() && (6..=8).contains(&taps)
            }
        }
    }
}

/// The loop that makes intermediates of rows.
pub(super) enum Row {
    Any(RowFilter),
    Unrolled(UnrolledRow),
    Grouped(SixteenBit),
}

/// Taps of a column, of two rows each, up to which it takes less time than memory takes to bring both the
/// next rows of the picture and those of the result.
const fn short_column<L: Simd>() -> usize {
    match (vector::has_32_registers::<L>(), L::FUSED_MULTIPLY_ADD) {
        (true, true) => 4,
        (true, false) => 3,
        (false, _) => 0,
    }
}

/// The loops that make rows.
pub(super) enum Making {
    /// Those for any taps: two rows, or four by these taps where that is better.
    Any(Option<TapTable>),
    /// Those compiled for so few taps (see `unrolled`), of samples that are all made with the same: two rows,
    /// four, or either. Two that they do not make are made like any.
    Unrolled {
        uniform: UniformRequantize,
        two: bool,
        four: bool,
    },
}

impl Making {
    /// True if four rows are made at a time.
    pub(super) fn makes_four(&self) -> bool {
        matches!(self, Making::Any(Some(_)) | Making::Unrolled { four: true, .. })
    }

    /// Rows that are made at a time.
    pub(super) fn at_once(&self) -> i64 {
        if self.makes_four() { 4 } else { 2 }
    }
}

/// What a kernel needs of its plane.
pub(super) struct Parts {
    pub(super) encoding: SampleEncoding,
    pub(super) work: Work,
    pub(super) taps: TapTable,
    pub(super) deltas: Option<TapTable>,
    /// The taps that end groups (see `carry`), where these are groups.
    ends: u32,
    pub(super) finish: Requantize,
}

/// The terms of a row whose neighbouring pixels are `step` words apart; where it mirrors itself, of its two
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
        // A single one left over comes with itself.
        let second = two.get(1).map_or((two[0].0, 0), |s| *s);
        interleaved
            .singles
            .push(([two[0].0, second.0], pack(two[0].1, second.1)));
    }
    interleaved
}

/// How a row's words are brought together where neighbouring pixels are `step` words apart.
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

/// Of components that are taken apart for a row of so many weights, since that is better, what all are made
/// with.
pub(super) fn planar(vectors: Vectors, channels: &[ChannelStep], weights: usize) -> Option<ChannelStep> {
    let mut convolved = channels.iter().filter(|c| c.convolved().is_some());
    let first = convolved.next()?;
    let made = |c: &ChannelStep| c.convolved().map(|c| (c.low, c.high));
    let are_alike = convolved.all(|c| made(c) == made(first));
    let is_better = with_simd!(vectors, simd => deinterleave::suit(simd, channels.len(), weights));
    (are_alike && is_better).then_some(*first)
}

/// The encoding, the passes and the last step of a separable kernel.
pub(super) fn separable(
    vectors: Vectors,
    kernel: &SeparableKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Parts> {
    let max = i64::from(format.max_value());
    let (r, c) = (&kernel.row, &kernel.column);
    let planar = planar(vectors, channels, r.weights.len());
    let channels = planar.as_ref().map_or(channels, std::slice::from_ref);
    let (column_total, whole) = (total(&c.weights), 1_i64 << c.shift);
    let bound = magnitude(&r.weights) * max + r.rounding();
    let (encoding, missing) = SampleEncoding::choose(format, bound, || {
        // What the column makes of it must come to whole levels.
        SampleEncoding::biased_after(&r.weights, r.shift, r.rounding())
            .filter(|missing| column_total * missing % whole == 0)
    });
    // Intermediates as they are held: those of offset words may have their offset left.
    let between = range(&r.weights, (0, max));
    let held = |sum: i64| ((sum + r.rounding()) >> r.shift) - missing.unwrap_or(0);
    let (bottom, top) = (held(between.0), held(between.1));
    let sums = |limbs: usize, bits: u32| Sums {
        limbs,
        bits,
        shift: c.shift,
        range: range(&c.weights, (bottom, top)),
        largest: top.max(-bottom),
        weight: magnitude(&c.weights),
        correction: 0,
        raise: (column_total * missing.unwrap_or(0)) >> c.shift,
    };
    let order = (row_order(channels.len()), vectors.lanes());
    let fits_words = top < 1 << 15 && bottom >= -(1 << 15);
    let ways = [(1, 16), (2, 12), (3, 8)];
    let (limbs, bits, finish) = ways
        .into_iter()
        .filter(|&(limbs, _)| limbs > 1 || fits_words)
        .find_map(|(limbs, bits)| Some((limbs, bits, sums(limbs, bits).finish(format, channels, order)?)))?;
    let start = |encoding: SampleEncoding| r.rounding() + encoding.correction(total(&r.weights));
    let terms = |encoding| pairing(&r.weights, channels.len(), encoding);
    let (words, values) = SampleEncoding::whole_words(format);
    let grouped = (encoding == SampleEncoding::SplitBytes)
        .then(|| {
            SixteenBit::of(
                &terms(SampleEncoding::Biased),
                values,
                (start(words), r.shift),
                bits,
            )
        })
        .flatten();
    let (encoding, row) = match grouped {
        Some(grouped) => (words, Row::Grouped(grouped)),
        None => {
            let pass = RowFilter {
                pairing: terms(encoding),
                start: missing.map_or(start(encoding), |_| r.rounding()) as i32,
                shift: r.shift,
                bits,
            };
            let is_narrow = (encoding.limbs(), limbs) == (1, 1);
            let few: Option<UnrolledRow> =
                with_simd!(vectors, simd => UnrolledRow::of(simd, &pass, encoding));
            let few = few.filter(|_| is_narrow);
            (encoding, few.map_or(Row::Any(pass), Row::Unrolled))
        }
    };
    let work = Work::Separable {
        row,
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
        ends: 0,
        finish,
    })
}

/// The encoding, the taps and the last step of a direct kernel.
pub(super) fn direct(
    vectors: Vectors,
    kernel: &DirectKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Parts> {
    let largest = i64::from(format.max_value());
    let weight = magnitude(&kernel.weights);
    let below = 1_i64 << kernel.shift;
    let (encoding, missing) = SampleEncoding::choose(format, weight * largest + below, || {
        SampleEncoding::biased_after(&kernel.weights, kernel.shift, below - 1)
    });
    let (values, correction) = match missing {
        Some(_) => ((i16::MIN.into(), i16::MAX.into()), 0),
        None => ((0, largest), encoding.correction(total(&kernel.weights))),
    };
    let sums = Sums {
        limbs: encoding.limbs(),
        bits: 8,
        shift: kernel.shift,
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
        ends: 0,
        finish,
    })
}

/// The same as `limbs` with taps in groups, where that is better than words in two limbs.
pub(super) fn in_groups(
    limbs: &Parts,
    vectors: Vectors,
    kernel: &DirectKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Parts> {
    if limbs.encoding != SampleEncoding::SplitBytes {
        return None;
    }
    let (encoding, values) = SampleEncoding::whole_words(format);
    // The only loops that know groups are those of few taps.
    let (taps, _) = taps::direct(kernel, channels.len(), encoding, unrolled::MOST_GROUPED)?;
    if taps.len() > unrolled::MOST_GROUPED {
        return None;
    }
    let (taps, ends) = taps.grouped(values, kernel.shift)?;
    let groups = ends.count_ones() as usize;
    if !with_simd!(vectors, simd => unrolled::suit_groups(simd, taps.len(), groups)) {
        return None;
    }
    let correction = encoding.correction(total(&kernel.weights));
    let columns = kernel.width;
    let parts = Parts {
        encoding,
        work: Work::Direct { columns },
        taps,
        deltas: None,
        ends,
        finish: requantize::finish_groups(format, channels, kernel.shift, correction)?,
    };
    parts.uniform(vectors, format).map(|_| parts)
}

impl Parts {
    pub(super) fn limbs(&self) -> usize {
        match &self.work {
            Work::Direct { .. } => self.encoding.limbs(),
            Work::Separable { limbs, .. } => *limbs,
        }
    }

    /// What all samples are made with, where that is the same and sums are not kept.
    pub(super) fn uniform(&self, vectors: Vectors, format: PixelFormat) -> Option<UniformRequantize> {
        let (limbs, bytes) = (self.limbs(), format.bytes_per_sample());
        let uniform: Option<UniformRequantize> =
            with_simd!(vectors, simd => UniformRequantize::of(simd, &self.finish, self.ends, limbs, bytes));
        uniform.filter(|_| self.deltas.is_none())
    }

    /// The loops that make rows.
    pub(super) fn making(&self, vectors: Vectors, format: PixelFormat) -> Making {
        let (lanes, limbs, folded) = (vectors.lanes(), self.limbs(), self.taps.folded());
        if let Some(uniform) = self.uniform(vectors, format) {
            let most = if self.ends != 0 {
                unrolled::MOST_GROUPED
            } else {
                unrolled::MOST
            };
            let two = folded == 0 && (2..=most).contains(&self.taps.len());
            let four = self.makes_four_rows(vectors, format);
            if two || four {
                return Making::Unrolled { uniform, two, four };
            }
        }
        let four = self.deltas.is_none() && column_filter::makes_four_rows(lanes, limbs, folded);
        Making::Any(four.then(|| self.taps.four_rows()))
    }

    /// True if four rows of a column are made at a time, by a loop that is compiled for so many taps.
    fn makes_four_rows(&self, vectors: Vectors, format: PixelFormat) -> bool {
        let samples = (format.bytes_per_sample(), self.finish.rounds_high_words());
        let (taps, limbs) = (self.taps.len(), self.limbs());
        let Work::Separable { planar, .. } = self.work else {
            return false;
        };
        self.taps.are_lines()
            && with_simd!(vectors, simd => unrolled::makes_four_rows(simd, taps, limbs, samples, planar))
    }
}
