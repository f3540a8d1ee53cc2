//! Weighted sums by 16-bit multiply-adds (`pmaddwd`, `vpdpwssd`).
//!
//! ```text
//! row y      a0 a1 a2 a3 ..       words, border filled                        rows/
//! row y + 1  b0 b1 b2 b3 ..
//!    | row filter: k taps, both rows at once                                  row_filter/
//! line       a0 b0 a1 b1 a2 b2 .. pairs of words, one u32 each, of two rows
//!    | column filter: one multiply-add is two rows of the mask                unrolled_columns.rs
//! sums       s0 s1 s2 ..          32 bits
//!    | bias, shift, round, clamp                                              rows/store/requantize.rs
//! rows out   p0 p1 p2 ..          two at a time, or four
//! ```
//!
//! A direct mask skips the row filter: its lines are the rows themselves. `plan.rs` chooses the loops and
//! proves that 32 bits hold the sums; `taps.rs` packs weights in pairs; `folded.rs` replaces a division by
//! other weights and a shift. Where no column filter is compiled for the number of taps, the general one runs
//! (`rows/sums/column_filter.rs`). `mask_3x3/` filters bytes with 3x3 masks in place in the picture, without
//! lines.
//!
//! Interleaved components are convolved together: neighbouring pixels are `channels` samples apart. Where
//! that makes a row filter faster, rows are deinterleaved first (`rows/words/deinterleave.rs`). The row
//! filter pairs neighbours that lie side by side in memory. Others are interleaved in registers; for a
//! symmetric row of weights, samples of equal weight are added first.

mod folded;
pub(super) mod mask_3x3;
mod plan;
mod row_filter;
mod taps;
mod unrolled_columns;

use crate::engine::cpu::rows::border::{self, RowBorder};
use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::store::prefetch::{NextRows, next_result};
use crate::engine::cpu::rows::strip::{OutputRows, Picture, Strip};
use crate::engine::cpu::rows::sums::column_filter::{self, Lines};
use crate::engine::cpu::rows::sums::taps::{Group, Taps};
use crate::engine::cpu::rows::words::deinterleave::{self, Planar};
use crate::engine::cpu::rows::words::widen;
use crate::engine::cpu::simd::scratch::{self, LineRing, aligned, room, spread};
use crate::engine::cpu::simd::vector::{Order, Simd, TILE};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, Kernel};
use crate::frame::{Layout, PixelFormat, Plane};
use plan::{ColumnLoops, FirPlan, Passes, Row, row_order};
use std::ops::Range;
use unrolled_columns::Unrolled;

/// One plane's part of a step, prepared for the inner loops.
pub(super) struct Fir {
    vectors: Vectors,
    format: PixelFormat,
    border: RowBorder,
    channels: Vec<ChannelStep>,
    /// Rows of the mask.
    rows: usize,
    /// In multiply-adds.
    cost_per_sample: f64,
    plan: FirPlan,
}

/// Scratch memory of a thread.
#[derive(Default)]
struct FirScratch {
    input: Input,
    /// A stored row of the border's constant.
    outside: Vec<u8>,
    /// The ring of lines.
    lines: Vec<u32>,
    output: Output,
    /// An output row that the strip does not have.
    spare: Vec<u8>,
}

/// Scratch memory for making lines.
#[derive(Default)]
struct Input {
    /// Two padded rows, limb after limb.
    words: [Vec<u16>; 2],
    apron: border::Apron,
}

/// Scratch memory for making rows of the result.
#[derive(Default)]
struct Output {
    /// The taps with the places of their lines.
    taps: [Group; 3],
    /// Rows of the result before they are interleaved: one component after the other.
    planar: Vec<u8>,
}

impl PlaneFilter for Fir {
    /// `None` if nothing is convolved in the plane, or if sums need more bits than the inner loops have.
    fn new(part: &PlanePart<'_>, _: Option<&Fir>) -> Option<Fir> {
        let (vectors, step, format, channels) = (part.vectors?, part.step, part.format, part.channels());
        let plan = FirPlan::new(part, vectors)?;
        let (columns, rows) = step.kernel.size();
        Some(Fir {
            vectors,
            format,
            border: RowBorder::new(step.border, format, channels, (columns, plan.is_planar())),
            channels: channels.to_vec(),
            rows,
            cost_per_sample: cost_per_sample(&step.kernel, &plan),
            plan,
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        samples(plane) * self.cost_per_sample
    }

    fn plan(&self, _: &Plane) -> AlgorithmPlan {
        AlgorithmPlan::new("fir", &self.plan)
    }

    fn filter(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut scratch::Scratch,
    ) {
        let scratch = scratch.of();
        with_simd!(self.vectors, simd => self.convolve_with(simd, picture, layout, strip, scratch));
    }
}

/// Cost of a sample in multiply-adds, at least two. A folded tap also adds two words, once for all rows that
/// are made at a time. The two passes of a separable mask need at most one multiply-add per weight.
fn cost_per_sample(kernel: &Kernel, plan: &FirPlan) -> f64 {
    let count = |weights: &[i32]| weights.iter().filter(|&&q| q != 0).count();
    let cost = match kernel {
        Kernel::Separable(k) => (count(&k.row.weights) + count(&k.column.weights)) as f64,
        // A plan is of separable and of whole masks only.
        _ => {
            let additions = plan.taps.folded() as f64 / plan.column_loops.at_once() as f64;
            (plan.taps.len() as f64 + additions) * plan.encoding.limbs() as f64
        }
    };
    cost.max(2.0)
}

impl Fir {
    /// Makes the rows of the strip with the vectors of `simd`.
    fn convolve_with<L: Simd>(
        &self,
        simd: L,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut FirScratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let FirScratch {
            input,
            outside,
            lines,
            output,
            spare,
        } = scratch;
        self.border.locate_apron(plane.width, &mut input.apron);
        let rows = PlaneRows::new(picture, strip, (&self.channels, &self.border), outside);
        let form = self.form(&plane);
        // The lines that two rows read; four rows read one more.
        let reach = self.rows / 2 + 1;
        let makes_four = self.plan.column_loops.makes_four();
        let slots = reach + usize::from(makes_four);
        let mut ring = LineRing::new(lines, (slots, form.slot), 0);
        // Line k holds rows 2k and 2k + 1, counted from the first row that the strip's first result reads.
        let first = |line: usize| 2 * line as i64 - self.rows as i64 / 2;
        let row_bytes = plane.width * plane.channels * self.format.bytes_per_sample();
        let mut row = 0;
        while row < strip.rows {
            let is_four = makes_four && row + 2 < strip.rows;
            let end = row / 2 + reach + usize::from(is_four);
            while let Some((line, to)) = ring.next_before(end) {
                self.fill(simd, (&rows, first(line)), &form, to, input);
            }
            let at_once = if is_four { 4 } else { 2 };
            let made = strip.rows.min(row + at_once) - row;
            let place = |k: usize| (row + k) * plane.stride;
            let (there, later) = next_result(strip.bytes, place(made), at_once, plane.stride);
            let out = OutputRows {
                bytes: &mut there[place(0)..place(made - 1) + row_bytes],
                stride: plane.stride,
                row_bytes,
                spare: room(spare, row_bytes),
            };
            let next = match self.row_filter_prefetches() {
                true => [&[], later],
                false => [rows.ahead(first(ring.next()), at_once), later],
            };
            self.make_rows(simd, row..row + made, (&ring, &form), next, out, output);
            for k in 0..made {
                let out = &mut strip.bytes[place(k)..place(k) + row_bytes];
                if let Some(planar) = form.planar {
                    let bytes = self.format.bytes_per_sample();
                    let row = self.planar_row(&form);
                    let made = &aligned(&mut output.planar, 4 * row)[k * row..][..row];
                    deinterleave::interleave_row(simd, planar, bytes, made, out);
                }
                rows.fill_unconvolved_channels(row + k, out);
            }
            row += made;
        }
    }

    /// True if the row filter prefetches the picture, and the column filter only the result. A short column
    /// filter is done before memory has answered for both.
    fn row_filter_prefetches(&self) -> bool {
        let is_short = match &self.plan.passes {
            Passes::Separable {
                row: Row::Unrolled(row),
                ..
            } => row.is_short(),
            _ => false,
        };
        is_short && self.format.bytes_per_sample() == 1
    }

    /// Makes these rows of the strip, up to two or four, from the lines in the ring. Results go to `out`, the
    /// rows in the strip, or, if they are deinterleaved, to planar rows. The loops prefetch the next rows of
    /// the picture, and those of the result that are written next: for planar rows the ones that they are
    /// interleaved to.
    fn make_rows<L: Simd>(
        &self,
        simd: L,
        made: Range<usize>,
        (ring, form): (&LineRing<'_, u32>, &LineForm),
        [next, later]: NextRows<'_>,
        out: OutputRows<'_>,
        output: &mut Output,
    ) {
        let is_four = made.len() > 2;
        let (samples, bytes) = (form.samples, self.format.bytes_per_sample());
        let table = match &self.plan.column_loops {
            ColumnLoops::General(Some(fours)) if is_four => fours,
            _ => &self.plan.taps,
        };
        let slot = ring.slots_from(made.start / 2);
        let start = |k: usize| slot(k) + form.lead;
        let taps = table.taps(&mut output.taps, start);
        let planar_row = self.planar_row(form);
        let (rows, later): (_, &[u8]) = match form.planar {
            Some(_) => (
                OutputRows {
                    bytes: aligned(&mut output.planar, 4 * planar_row),
                    stride: planar_row,
                    row_bytes: samples * bytes,
                    spare: &mut [],
                },
                out.bytes,
            ),
            None => (out, later),
        };
        let lines = Lines {
            elements: ring.all(),
            limbs: form.limbs,
            limb_stride: form.limb,
            order: self.order(),
            next: [next, later],
        };
        let unrolled = |uniform, beyond| Unrolled {
            lines,
            taps: &taps.groups[0].single,
            beyond,
            requantize: &self.plan.requantize,
            uniform,
            samples,
        };
        match self.plan.column_loops {
            ColumnLoops::General(_) if is_four => {
                self.make(simd, lines, taps, samples, rows.split::<4>());
            }
            ColumnLoops::Unrolled { uniform, .. } if is_four => {
                let unrolled = unrolled(uniform, start(taps.groups[0].single.len()));
                match bytes {
                    1 => unrolled.make_four::<L, 1>(simd, rows.split()),
                    _ => unrolled.make_four::<L, 2>(simd, rows.split()),
                }
            }
            ColumnLoops::Unrolled {
                uniform, two: true, ..
            } => {
                let unrolled = unrolled(uniform, 0);
                match bytes {
                    1 => unrolled.make::<L, 1>(simd, rows.split()),
                    _ => unrolled.make::<L, 2>(simd, rows.split()),
                }
            }
            _ => self.make(simd, lines, taps, samples, rows.split::<2>()),
        }
    }

    /// Makes `R` rows of `samples` samples from the lines, with the general loop.
    fn make<L: Simd, const R: usize>(
        &self,
        simd: L,
        lines: Lines<'_>,
        taps: Taps<'_>,
        samples: usize,
        out: [&mut [u8]; R],
    ) {
        let requantize = &self.plan.requantize;
        if self.format.bytes_per_sample() == 1 {
            column_filter::convolve::<L, 1, R>(simd, lines, taps, requantize, samples, out);
        } else {
            column_filter::convolve::<L, 2, R>(simd, lines, taps, requantize, samples, out);
        }
    }

    /// The order of a line's elements.
    fn order(&self) -> Order {
        match self.plan.passes {
            Passes::Separable { .. } => row_order(self.border.pixel_stride()),
            Passes::Direct { .. } => Order::Plain,
        }
    }

    /// Columns of the mask.
    fn columns(&self) -> usize {
        match &self.plan.passes {
            Passes::Direct { columns } | Passes::Separable { columns, .. } => *columns,
        }
    }

    /// The layout of the lines of a plane.
    fn form(&self, plane: &Plane) -> LineForm {
        let samples = self.border.samples(plane.width);
        let padded = self.padded(samples);
        let limbs_of_row = self.plan.encoding.limbs();
        let (limbs, limb, slot, lead) = match &self.plan.passes {
            Passes::Direct { .. } => (limbs_of_row, padded, limbs_of_row * padded, self.border.lead()),
            Passes::Separable { limbs, .. } => {
                let limb = samples.next_multiple_of(TILE);
                (*limbs, limb, spread(limbs * limb), 0)
            }
        };
        LineForm {
            samples,
            padded,
            planar: self.plan.is_planar().then(|| Planar {
                channels: plane.channels,
                pitch: self.border.pitch(plane.width),
            }),
            limbs,
            limb,
            slot,
            lead,
        }
    }

    /// Bytes from a planar row of the result to the next.
    fn planar_row(&self, form: &LineForm) -> usize {
        spread(form.samples + deinterleave::BEHIND) * self.format.bytes_per_sample()
    }

    /// Length of a padded row in samples, with room for whole steps of the loops.
    fn padded(&self, samples: usize) -> usize {
        // Row filters load their words in whole steps.
        let rest = match self.plan.passes {
            Passes::Separable { .. } => TILE,
            Passes::Direct { .. } => 0,
        };
        let columns = self.columns() * self.border.pixel_stride();
        spread(self.border.lead() + samples.next_multiple_of(TILE) + columns + rest)
    }

    /// Makes a line from rows `y` and `y + 1`: loads both and runs the row filter, if there is one.
    fn fill<L: Simd>(
        &self,
        simd: L,
        (rows, y): (&PlaneRows<'_>, i64),
        form: &LineForm,
        line: &mut [u32],
        input: &mut Input,
    ) {
        let Input { words, apron } = input;
        let two = [rows.row(y), rows.row(y + 1)];
        let encoding = self.plan.encoding;
        let widening = encoding.widening(self.format);
        let (limbs, origin, lead) = (encoding.limbs(), self.border.origin(), self.border.lead());
        let padded = form.padded;
        let Passes::Separable { row, .. } = &self.plan.passes else {
            widen::pair_rows(simd, widening, two, &mut line[origin..], padded);
            for (limb, line) in line.chunks_mut(padded).enumerate() {
                let pair = |word| u32::from(word) << 16 | u32::from(word);
                RowBorder::fill(apron, line, |sample| pair(encoding.word(sample, limb)));
            }
            return;
        };
        let out = &mut line[..form.limbs * form.limb];
        let mut words = words.each_mut().map(|words| aligned(words, limbs * padded));
        for (row, words) in two.iter().zip(words.each_mut()) {
            let to = &mut words[origin..];
            match form.planar {
                Some(planar) => deinterleave::deinterleave_row(simd, widening, planar, row, to, padded),
                None => widen::load_row(simd, widening, row, to, padded),
            }
            for (limb, words) in words.chunks_mut(padded).enumerate() {
                RowBorder::fill(apron, words, |sample| encoding.word(sample, limb));
            }
        }
        let words = words.each_ref().map(|row| &row[lead..]);
        match row {
            Row::General(pass) => row_filter::row_filter(simd, words, (limbs, padded), pass, out, form.limbs),
            Row::Unrolled(unrolled) => {
                let prefetches = self.row_filter_prefetches();
                let next = if prefetches { rows.ahead(y + 2, 2) } else { &[] };
                unrolled.make(simd, words, next, out);
            }
        }
    }
}

/// The layout of the lines of a plane, each of which holds two rows.
struct LineForm {
    /// Samples of a row, from the first to the last one.
    samples: usize,
    /// Length of a padded row in samples (see [`Fir::padded`]).
    padded: usize,
    /// The layout of deinterleaved rows; `None` if components stay interleaved.
    planar: Option<Planar>,
    /// Limbs of an element.
    limbs: usize,
    /// Elements from a limb to the next.
    limb: usize,
    /// Elements from a line to the next.
    slot: usize,
    /// Elements from a line's start to the first one that the first sample reads.
    lead: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::InstructionSet;
    use crate::filter::{Border, Chain, Plan, Planes};
    use crate::frame::Colour;

    /// Filter, format and algorithm, and below them the plans with AVX2 and with AVX-512 VNNI.
    const PLANS: &str = "
        mask:rows=1 2 3;4 5 6;7 8 9 | gray | direct
            whole mask 2 rows
            whole mask 2 rows unrolled<6>
        mask:rows=1 2 3;4 5 6;7 8 9 | gray12le | direct
            whole mask 2 rows unrolled<6>
            whole mask 2 rows unrolled<6>
        mask:rows=1 2 3;4 5 6;7 8 9 | gray16le | direct
            whole mask 2 rows unrolled<6>
            whole mask 2 rows unrolled<6>
        gaussian:size=7 | gray | direct
            whole mask 2 rows folded
            whole mask 4 rows folded
        gaussian:size=15 | rgb24 | direct
            whole mask 2 rows folded
            whole mask 4 rows folded
        sobel-x | gray | direct
            whole mask 2 rows
            whole mask 2 rows unrolled<4>
        disk:radius=5 | gray | direct
            whole mask 2 rows folded
            whole mask 4 rows folded
        gaussian:size=3 | gray | separable
            row filter unrolled<2>, column filter 2 rows unrolled<2>
            row filter unrolled<2>, column filter 4 rows unrolled<2>
        gaussian:size=7 | gray | separable
            row filter unrolled<4>, column filter 4 rows unrolled<4>
            row filter unrolled<4>, column filter 4 rows unrolled<4>
        gaussian:size=7 | rgb24 | separable
            row filter unrolled<7>, column filter 4 rows unrolled<4>
            row filter unrolled<4>, deinterleaved, column filter 4 rows unrolled<4>
        gaussian:size=7 | gray10le | separable
            row filter unrolled<4>, column filter 4 rows unrolled<4>
            row filter unrolled<4>, column filter 4 rows unrolled<4>
        binomial:size=9 | gray16le | separable
            row filter in place, column filter 2 rows unrolled<5>, 2 limbs
            row filter in place, column filter 4 rows unrolled<5>, 2 limbs
        gaussian:size=25 | rgb24 | separable
            row filter unrolled<25>, column filter 4 rows unrolled<13>
            row filter unrolled<13>, deinterleaved, column filter 4 rows
        gaussian:size=63 | gray | separable
            row filter in place, column filter 2 rows
            row filter in place, column filter 4 rows
        gaussian:size=63 | gray12le | separable
            row filter in place, column filter 2 rows, 3 limbs
            row filter in place, column filter 2 rows, 3 limbs
    ";

    fn plan(filter: &str, format: &str, algorithm: &str, set: InstructionSet) -> Option<String> {
        let chain = Chain {
            filters: vec![filter.parse().unwrap()],
            border: Border::Mirror,
            planes: Planes::All,
            algorithm: algorithm.parse().unwrap(),
            alpha: Default::default(),
        };
        let format = format.parse().unwrap();
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let part = PlanePart {
            step: &plan.steps[0],
            plane: 0,
            format,
            vectors: Vectors::assume(set),
        };
        Some(FirPlan::new(&part, part.vectors?)?.to_string())
    }

    #[test]
    fn each_mask_takes_the_loops_that_hold_its_numbers() {
        if Vectors::assume(InstructionSet::Avx2).is_none() {
            eprintln!("SKIPPED: no loops are written for this kind of machine");
            return;
        }
        let lines: Vec<&str> = PLANS.trim().lines().map(str::trim).collect();
        let (cases, rest) = lines.as_chunks::<3>();
        assert!(cases.len() > 10 && rest.is_empty());
        let mut others = Vec::new();
        for [case, plans @ ..] in cases {
            let cells: Vec<&str> = case.split('|').map(str::trim).collect();
            for (set, expected) in [InstructionSet::Avx2, InstructionSet::Avx512Vnni]
                .into_iter()
                .zip(plans)
            {
                let found = plan(cells[0], cells[1], cells[2], set);
                if found.as_deref() != Some(*expected) {
                    others.push(format!("{case}, {set}: {found:?}"));
                }
            }
        }
        assert!(others.is_empty(), "{others:#?}");
    }
}
