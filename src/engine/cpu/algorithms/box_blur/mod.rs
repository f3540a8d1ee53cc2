//! Box filters by running sums: the cost hardly depends on the size of the box.
//!
//! ```text
//! row y    p p p p p ..               words, border filled
//!    | sums of `columns` neighbours   row_sums.rs
//! line y   h h h h ..                 a ring of as many lines as the mask has rows
//!    | window += line y - line (y - rows)                     sliding_window.rs
//! window   w w w w ..                 one sum a sample, kept from row to row
//!    | (w + add) * factor >> shift    16 bits, or weighted sums of 32
//! row out  p p p p ..
//! ```
//!
//! Sums that fit 16 bits are divided by a multiplication of words. Others, and those of masks whose centre
//! has another weight, are weighted sums of 32 bits. `plan.rs` decides.
//!
//! Other methods read the picture in place: `columns/` keeps sums of columns instead of lines, or what they
//! change by; `in_registers.rs` makes eight rows of small boxes at a time, and stores nothing but results.

mod columns;
mod in_registers;
mod plan;
mod row_sums;
mod sliding_window;

use crate::engine::cpu::rows::border::{self, RowBorder};
use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::store::prefetch::next_result;
use crate::engine::cpu::rows::strip::{OutputRows, Picture, Strip};
use crate::engine::cpu::rows::words::sample::SampleEncoding;
use crate::engine::cpu::rows::words::widen::{self, Widening};
use crate::engine::cpu::simd::scratch::{self, LineRing, aligned, room, spread};
use crate::engine::cpu::simd::vector::{Simd, TILE};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::ChannelStep;
use crate::frame::{Layout, PixelFormat, Plane};
use columns::deep_sums::DeepColumns;
use columns::groups::GroupedColumns;
use columns::pairs::PairedColumns;
use columns::sums::ColumnSums;
use columns::{Columns, Windows};
use in_registers::{AT_ONCE, InRegisters};
use plan::{BoxPlan, BoxRequantize, Method};
use row_sums::RowSums;
use sliding_window::{LINES, NewRow, Scale};

/// One plane's part of a step with a box mask.
pub(super) struct BoxBlur {
    vectors: Vectors,
    format: PixelFormat,
    border: RowBorder,
    channels: Vec<ChannelStep>,
    widening: Widening,
    plan: BoxPlan,
}

/// Rows kept for a centre of another weight: two new middle rows, and the one before them.
const CENTRES: usize = 3;

/// Scratch memory of a thread.
#[derive(Default)]
struct BoxScratch {
    /// A stored row of the border's constant.
    outside: Vec<u8>,
    memory: WindowBuffers,
}

/// Scratch memory of each method.
#[derive(Default)]
struct WindowBuffers {
    /// The padded rows that enter the window, as many as are made at once.
    words: Vec<u16>,
    /// For each of these rows: sums of four samples or prefix sums, and sums of eight.
    parts: [Vec<u16>; 2],
    /// The ring of row sums, in which row y replaces row y - rows; after it the last three middle rows
    /// without their aprons, and a row of zeros.
    ring: Vec<u16>,
    /// The windows' sums.
    sums: Vec<u16>,
    /// The windows' weighted sums.
    weighted: Vec<i32>,
    apron: border::Apron,
    columns: columns::sums::ColumnScratch,
    pairs: columns::pairs::PairScratch,
    groups: columns::groups::GroupScratch,
    deep_columns: columns::deep_sums::DeepScratch,
    small: in_registers::RegisterScratch,
    /// Rows of the result of windows that are not yet full.
    spare: Vec<u8>,
}

/// Cost of a sample in multiply-adds, for any size: less than with any other algorithm.
const COST: f64 = 1.0;

impl PlaneFilter for BoxBlur {
    /// `None` if nothing is convolved in the plane, for other masks, and for sums that need too many bits.
    fn new(part: &PlanePart<'_>, _: Option<&BoxBlur>) -> Option<BoxBlur> {
        let (vectors, format, channels) = (part.vectors?, part.format, part.channels());
        let plan = BoxPlan::new(part, vectors)?;
        let encoding = if format.depth() == 8 {
            SampleEncoding::Bytes
        } else {
            SampleEncoding::Words
        };
        Some(BoxBlur {
            vectors,
            format,
            border: RowBorder::new(part.step.border, format, channels, (plan.mask.columns, false)),
            channels: channels.to_vec(),
            widening: encoding.widening(format),
            plan,
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        samples(plane) * COST
    }

    fn plan(&self, _: &Plane) -> AlgorithmPlan {
        AlgorithmPlan::new("box", &self.plan)
    }

    fn filter(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut scratch::Scratch,
    ) {
        let scratch = scratch.of();
        with_simd!(self.vectors, simd => {
            self.convolve_with(simd.without_vnni(), picture, layout, strip, scratch);
        });
    }
}

impl BoxBlur {
    /// Makes the rows of the strip with the vectors of `simd`.
    fn convolve_with<L: Simd>(
        &self,
        simd: L,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut BoxScratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let BoxScratch { outside, memory } = scratch;
        self.border.locate_apron(plane.width, &mut memory.apron);
        let input = PlaneRows::new(picture, strip, (&self.channels, &self.border), outside);
        let job = (&input, &plane);
        let columns = self.plan.mask.columns;
        match &self.plan.method {
            Method::InRegisters(scale) => self.in_registers(simd, *scale, job, strip, memory),
            Method::ByPairs(quotient) => {
                let mask = ((columns, self.plan.mask.rows), *quotient);
                let apron = (&self.border, &memory.apron);
                let pairs = PairedColumns::new(&mut memory.pairs, apron, plane.width, mask);
                self.by_neighbours(simd, pairs, job, strip);
            }
            Method::ByGroups(quotient) => {
                let mask = ((columns, self.plan.mask.rows), *quotient);
                let apron = (&self.border, &memory.apron);
                let groups = GroupedColumns::new(&mut memory.groups, apron, plane.width, mask);
                self.by_neighbours(simd, groups, job, strip);
            }
            Method::ByColumns(scale) => {
                let mask = (columns, *scale);
                let sums = ColumnSums::new(&mut memory.columns, &self.border, plane.width, mask);
                self.by_columns(simd, sums, job, strip, &memory.apron);
            }
            Method::ByDeepColumns(requantize) => {
                let mask = (columns, requantize);
                let sums = DeepColumns::new(&mut memory.deep_columns, &self.border, plane.width, mask);
                self.by_columns(simd, sums, job, strip, &memory.apron);
            }
            Method::Window(row_sums, requantize) if row_sums.suits_two_rows(plane.width * plane.channels) => {
                self.by_window::<L, 2>(simd, (*row_sums, requantize), job, strip, memory);
            }
            Method::Window(row_sums, requantize) => {
                self.by_window::<L, 1>(simd, (*row_sums, requantize), job, strip, memory);
            }
        }
    }

    /// Makes the strip by column sums.
    fn by_columns<L: Simd>(
        &self,
        simd: L,
        mut sums: impl Columns,
        (input, plane): (&PlaneRows<'_>, &Plane),
        strip: &mut Strip<'_>,
        apron: &border::Apron,
    ) {
        let row_bytes = plane.width * plane.channels * self.format.bytes_per_sample();
        let rows = self.plan.mask.rows;
        let row_at = |k: usize| input.row(k as i64 - rows as i64 / 2);
        for k in 0..rows - 1 + strip.rows {
            sums.change(simd, row_at(k), k.checked_sub(rows).map(row_at));
            let Some(row) = k.checked_sub(rows - 1) else {
                continue;
            };
            sums.extend(apron, rows);
            let out = &mut strip.bytes[row * plane.stride..];
            let (out, next) = next_result(out, plane.stride, 1, plane.stride);
            let out = &mut out[..row_bytes];
            let entering = input.ahead((k + 1) as i64 - rows as i64 / 2, 1);
            sums.make(simd, out, [entering, next]);
            input.fill_unconvolved_channels(row, out);
        }
    }

    /// Makes the strip by sums of neighbouring columns.
    fn by_neighbours<'a, L: Simd>(
        &self,
        simd: L,
        mut windows: impl Windows<'a>,
        (input, plane): (&PlaneRows<'_>, &Plane),
        strip: &mut Strip<'_>,
    ) {
        let (rows, stride, samples) = (self.plan.mask.rows, plane.stride, plane.width * plane.channels);
        let row_at = |k: usize| input.row(k as i64 - rows as i64 / 2);
        for k in 0..rows - 1 + strip.rows {
            windows.change(simd, row_at(k), k.checked_sub(rows).map(row_at));
            let Some(row) = k.checked_sub(rows - 1) else {
                windows.fill(simd);
                continue;
            };
            let (made, rest) = strip.bytes.split_at_mut(row * stride);
            // Channels that are not convolved have other values there, and are replaced below.
            let above = row.checked_sub(1).map(|row| &made[row * stride..][..samples]);
            let (out, next) = next_result(rest, stride, 1, stride);
            let out = &mut out[..samples];
            let entering = input.ahead((k + 1) as i64 - rows as i64 / 2, 1);
            windows.make(simd, above, out, [entering, next]);
            input.fill_unconvolved_channels(row, out);
        }
    }

    /// Makes the strip with sums in registers.
    fn in_registers<L: Simd>(
        &self,
        simd: L,
        scale: Scale,
        (input, plane): (&PlaneRows<'_>, &Plane),
        strip: &mut Strip<'_>,
        memory: &mut WindowBuffers,
    ) {
        let (samples, rows) = (plane.width * plane.channels, self.plan.mask.rows);
        let apron = &memory.apron;
        let mut boxes = InRegisters::new(&mut memory.small, &self.border, apron, (rows, scale), plane.width);
        let spare = room(&mut memory.spare, AT_ONCE * samples);
        for row in (0..strip.rows).step_by(AT_ONCE) {
            let from = std::array::from_fn(|k| input.place((row + k) as i64 - rows as i64 / 2));
            let block = AT_ONCE * plane.stride;
            let out = &mut strip.bytes[row * plane.stride..];
            let (bytes, next) = next_result(out, block, AT_ONCE, plane.stride);
            let out = OutputRows {
                bytes,
                stride: plane.stride,
                row_bytes: samples,
                spare,
            };
            let entering = input.ahead((row + AT_ONCE + rows / 2) as i64, AT_ONCE);
            boxes.make(simd, from, out.split(), [entering, next]);
            for row in (row..strip.rows).take(AT_ONCE) {
                input.fill_unconvolved_channels(row, &mut strip.bytes[row * plane.stride..][..samples]);
            }
        }
    }

    /// Loads a row with its apron into `words`.
    fn load_padded<L: Simd>(&self, simd: L, row: &[u8], apron: &border::Apron, words: &mut [u16]) {
        let padded = words.len();
        let to = &mut words[self.border.origin()..];
        widen::load_row(simd, self.widening, row, to, padded);
        RowBorder::fill(apron, words, |sample| sample);
    }

    /// Makes the strip by running sums, `R` rows at a time.
    fn by_window<L: Simd, const R: usize>(
        &self,
        simd: L,
        (row_sums, requantize): (RowSums, &BoxRequantize),
        (input, plane): (&PlaneRows<'_>, &Plane),
        strip: &mut Strip<'_>,
        memory: &mut WindowBuffers,
    ) {
        let samples = plane.width * plane.channels;
        let (lead, rows) = (self.border.lead(), self.plan.mask.rows);
        let made = samples.next_multiple_of(TILE);
        let padded = spread(lead + row_sums.reach(made));
        let words = aligned(&mut memory.words, R * padded);
        let mut parts = memory.parts.each_mut().map(|parts| aligned(parts, R * padded));
        let slot = spread(made);
        let mut ring = LineRing::new(&mut memory.ring, (rows, slot), (CENTRES + 1) * slot);
        // A window begins empty: nothing leaves it until it is full.
        ring.memory().fill(0);
        let centre = |row: usize| (rows + row % CENTRES) * slot;
        let zeros = (rows + CENTRES) * slot;
        let sums = aligned(&mut memory.sums, made);
        let weighted = aligned(&mut memory.weighted, made);
        requantize.begin(sums, weighted);
        let row_bytes = samples * self.format.bytes_per_sample();
        for k in (0..rows - 1 + strip.rows).step_by(R) {
            // The output rows that the entering rows complete, if any.
            let completed: [_; R] = std::array::from_fn(|r| {
                let row = (k + r).checked_sub(rows - 1);
                row.filter(|&row| row < strip.rows)
            });
            let mut lines = [[zeros; LINES]; R];
            for ((r, lines), words) in lines.iter_mut().enumerate().zip(words.chunks_mut(padded)) {
                let entering = input.row((k + r) as i64 - rows as i64 / 2);
                self.load_padded(simd, entering, &memory.apron, words);
                if let Some(row) = completed[r]
                    && self.plan.weighs_centre()
                {
                    let middle = input.row(row as i64);
                    let to = &mut ring.memory()[centre(row)..][..made];
                    widen::load_row(simd, self.widening, middle, to, made);
                    *lines = [centre(row), row.checked_sub(1).map_or(zeros, centre)];
                }
            }
            let window = requantize.window_sums(sums, weighted, self.widening.shift);
            let [mut fours_or_all, mut eights] = parts.each_mut().map(|parts| parts.chunks_mut(padded));
            let mut each = words.chunks(padded);
            let new: [_; R] = std::array::from_fn(|r| {
                let words = each.next().unwrap_or_default();
                let parts = [&mut fours_or_all, &mut eights].map(|parts| parts.next().unwrap_or_default());
                NewRow {
                    sums: row_sums.add_up(simd, words, lead, parts, made),
                    at: ring.slot(k + r),
                    lines: lines[r],
                }
            });
            let spare = room(&mut memory.spare, R * row_bytes);
            let (out, later) = output_rows(completed, strip.bytes, spare, (plane.stride, row_bytes));
            let next = input.ahead((k + R) as i64 - rows as i64 / 2, R);
            let new = (new, [next, later]);
            let ring = (ring.memory(), made);
            match self.format.bytes_per_sample() {
                1 => sliding_window::make::<L, 1, R>(simd, new, ring, window, out),
                _ => sliding_window::make::<L, 2, R>(simd, new, ring, window, out),
            }
            for row in completed.into_iter().flatten() {
                let out = &mut strip.bytes[row * plane.stride..][..row_bytes];
                input.fill_unconvolved_channels(row, out);
            }
        }
    }
}

/// The rows of a strip to write to, which are `completed`, with rows of `spare` where there is none; and the
/// next rows of the strip to prefetch.
fn output_rows<'a, const R: usize>(
    completed: [Option<usize>; R],
    strip: &'a mut [u8],
    spare: &'a mut [u8],
    (stride, row_bytes): (usize, usize),
) -> ([&'a mut [u8]; R], &'a [u8]) {
    let mut rows = completed.iter().flatten();
    let first = rows.next();
    let last = rows.last().or(first);
    let begin = first.map_or(0, |row| row * stride);
    let end = last.map_or(0, |row| (row + 1) * stride);
    let (now, later) = next_result(strip, end, R, stride);
    let mut there = now[begin..].chunks_mut(stride);
    let mut spare = spare.chunks_mut(row_bytes);
    let out = completed.map(|row| {
        let out = if row.is_some() { there.next() } else { spare.next() };
        &mut out.unwrap_or_default()[..row_bytes]
    });
    (out, later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::InstructionSet;
    use crate::filter::{Border, Chain, Convolve, Division, Filter, Mask, Plan, Planes};
    use crate::frame::Colour;
    use plan::UniformMask;

    /// Sizes, weights where they are not all the same, algorithm, format and plan.
    const PLANS: &str = "
        3   | | direct    | gray     | rows in registers, 16-bit sums
        3   | | separable | gray     | rows in registers, 16-bit sums
        7   | | separable | gray     | column sums, 16-bit sums
        15  | | direct    | gray     | column sums, 16-bit sums
        7   | | separable | rgb24    | column sums, 16-bit sums
        9   | | separable | rgb24    | column sums, 16-bit sums
        15  | | direct    | rgb24    | column sums, 16-bit sums
        // Sums that leave 16 bits.
        17  | | separable | gray     | column changes, 16-bit remainders
        31  | | direct    | gray     | column changes, 16-bit remainders
        33  | | direct    | gray     | sliding window over prefix sums, 32-bit sums
        17  | | direct    | gray10le | sliding window over sums of 8, 32-bit sums
        63  | | separable | gray     | sliding window over prefix sums, 32-bit sums
        17  | | separable | rgb24    | column changes, 16-bit remainders
        33  | | separable | rgb24    | sliding window over prefix sums, 32-bit sums
        3   | | direct    | gray12le | sliding window over samples, 16-bit sums
        5   | | direct    | gray12le | sliding window over samples, 32-bit sums
        // A row's sum leaves 16 bits.
        9   | | separable | gray12le | column sums, 32-bit sums
        3   | | separable | rgb48le  | column sums, 32-bit sums
        63  | | direct    | gray16le | column sums, 32-bit sums
        3   | 1 1 1 1 8 1 1 1 1 | direct | gray10le | sliding window over samples, 32-bit sums, \
              centre weighted separately
        // Weighted sums are faster.
        3   | 1 1 1 1 8 1 1 1 1 | direct    | gray     | none
        3   | 1 1 1 2 7 1 1 1 1 | direct    | gray     | none
    ";

    fn plan(size: usize, weights: &str, algorithm: &str, format: &str) -> Option<String> {
        let format: PixelFormat = format.parse().unwrap();
        let weights: Vec<i64> = match weights {
            "" => vec![1; size * size],
            some => some.split(' ').map(|q| q.parse().unwrap()).collect(),
        };
        let total = weights.iter().sum();
        let chain = Chain {
            filters: vec![Filter::of_mask(
                "",
                Mask::from_integers(size, size, weights, total).unwrap(),
            )],
            border: Border::Mirror,
            planes: Planes::All,
            algorithm: algorithm.parse().unwrap(),
            alpha: Default::default(),
        };
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let part = PlanePart {
            step: &plan.steps[0],
            plane: 0,
            format,
            vectors: Vectors::assume(InstructionSet::Avx2),
        };
        BoxBlur::new(&part, None).map(|filter| filter.plan.to_string())
    }

    #[test]
    fn each_mask_takes_the_method_that_holds_its_sums() {
        if Vectors::assume(InstructionSet::Avx2).is_none() {
            eprintln!("SKIPPED: no loops are written for this kind of machine");
            return;
        }
        let lines = PLANS.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let found = plan(cells[0].parse().unwrap(), cells[1], cells[2], cells[3]);
            assert_eq!(found.as_deref().unwrap_or("none"), cells[4], "{line}");
        }
    }

    #[test]
    fn a_scale_gives_every_sum_its_result() {
        for (size, max) in [(3, 255), (5, 255), (9, 255), (15, 255), (7, 1023), (3, 4095)] {
            let all = size * size;
            let mask = UniformMask {
                columns: size as usize,
                rows: size as usize,
                weight: 1,
                excess: 0,
                offset: 0,
                division: Division::by(all).unwrap(),
            };
            let mut c = Convolve {
                low: all / 2,
                high: 0,
                border: 0,
                level: 0,
                is_alpha: false,
            };
            let scale = mask.scale(&c, max).unwrap();
            for sum in 0..=all * max {
                let product = (sum + i64::from(scale.add)) * i64::from(scale.factor);
                assert_eq!(
                    product >> (16 + scale.down),
                    (2 * sum + all) / (2 * all),
                    "{size} {sum}"
                );
            }
            // A level more leaves the range of samples, and a level less has no words.
            for high in [1, -1] {
                c.high = high;
                assert!(mask.scale(&c, max).is_none());
            }
        }
    }
}
