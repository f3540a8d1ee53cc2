//! Running sums: boxes, whose cost hardly depends on their size.
//!
//! ```text
//! row y    p p p p p ..               words, border filled
//!    | sums of `columns` neighbours   row_sums.rs
//! line y   h h h h ..                 a ring of as many lines as the mask has rows
//!    | window += line y - line (y - rows)                     sliding_window.rs
//! window   w w w w ..                 one sum a sample, kept from row to row
//!    | (w + add) * factor >> shift    or, where that is not exact, weighted sums of 32 bits
//! row out  p p p p ..
//! ```
//!
//! The mask's weights are all alike but for what quantisation mends. Where the result is a function of the
//! window's sum alone, a 16-bit multiplication makes it, which is tried for every sum; elsewhere the weighted
//! sum is kept, and rows at which weights differ from their neighbours' change it, too. `plan.rs` says which.
//!
//! Small boxes of bytes have two shorter ways: `column_sums.rs` keeps sums of columns in place of lines,
//! `in_registers.rs` makes eight rows at a time and writes nothing but results.

mod column_sums;
mod in_registers;
mod plan;
mod row_sums;
mod sliding_window;

use super::simd::{Vectors, with_simd};
use crate::engine::cpu::rows::alpha::Source;
use crate::engine::cpu::rows::border::{self, RowBorder};
use crate::engine::cpu::rows::complete::{complete, is_partial};
use crate::engine::cpu::rows::prefetch::rows_to_prefetch;
use crate::engine::cpu::rows::sample::SampleEncoding;
use crate::engine::cpu::rows::strip::{OutputRows, Strip};
use crate::engine::cpu::rows::widen::{self, Widening};
use crate::engine::cpu::simd::scratch::{aligned, room, spread};
use crate::engine::cpu::simd::vector::{Simd, TILE};
use crate::filter::{ChannelStep, Step};
use crate::frame::{Layout, PixelFormat};
use column_sums::ColumnSums;
use in_registers::InRegisters;
use plan::{Ending, UniformMask};
use row_sums::RowSums;
use sliding_window::{FewRows, LINES, Making, NewRow, Scale};

/// One plane's part of a step with such a mask.
pub(super) struct BoxBlur {
    vectors: Vectors,
    format: PixelFormat,
    border: RowBorder,
    channels: Vec<ChannelStep>,
    widening: Widening,
    mask: UniformMask,
    ending: Ending,
}

/// Middle rows that are kept where the centre weighs more: two new ones, and the one before them.
const CENTRES: usize = 3;

/// The memory that a thread works in.
#[derive(Default)]
pub(super) struct Scratch {
    /// Rows with what lies beyond their ends, as many as are made at once.
    words: Vec<u16>,
    /// Of each sums of four samples of it or of all up to each, and sums of eight.
    parts: [Vec<u16>; 2],
    /// The rows' sums, row y in place of row y - rows; after them the last three rows that were in the
    /// middle, without their ends, and a row of zeros.
    ring: Vec<u16>,
    /// The windows' sums.
    sums: Vec<u16>,
    /// The windows' weighted sums.
    weighted: Vec<i32>,
    /// A row outside the frame, as rows are stored.
    outside: Vec<u8>,
    /// A row whose colours are weighted by alpha.
    under_alpha: Vec<u8>,
    apron: border::Apron,
    /// What boxes of bytes are made with.
    columns: column_sums::Scratch,
    small: in_registers::Scratch,
    /// The rows of the result that windows which are not yet full would make.
    spare: Vec<u8>,
}

impl BoxBlur {
    /// The plane's part of `step`; `None` if nothing is convolved in it, if the mask is another one or if its
    /// numbers need more than 16 bits.
    pub(super) fn new(vectors: Vectors, step: &Step, plane: usize, format: PixelFormat) -> Option<BoxBlur> {
        let channels = &step.planes[plane];
        let mask = UniformMask::of(&step.kernel)?;
        let max = i64::from(format.max_value());
        if format.depth() > 12 || mask.columns as i64 * max > i64::from(i16::MAX) {
            return None;
        }
        let mut convolved = channels.iter().filter_map(ChannelStep::convolved);
        let first = convolved.next()?;
        // The loops do not tell channels apart.
        if !convolved.all(|c| (c.low, c.high) == (first.low, first.high)) {
            return None;
        }
        let ending = match mask.scale(first, max) {
            Some(scale) => Ending::Scaled(scale),
            None => mask.weighted(vectors, format, channels)?,
        };
        let encoding = if format.depth() == 8 {
            SampleEncoding::Bytes
        } else {
            SampleEncoding::Words
        };
        Some(BoxBlur {
            vectors,
            format,
            border: RowBorder::new(step.border, format, channels, (mask.columns, false)),
            channels: channels.clone(),
            widening: encoding.widening(format),
            mask,
            ending,
        })
    }

    /// Makes the strip's rows from the picture.
    pub(super) fn convolve(
        &self,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        with_simd!(self.vectors, simd => self.convolve_with(simd, source, layout, strip, scratch));
    }

    /// The strip by way of the sums of its columns, where it is known what lies outside.
    fn convolve_by_columns<L: Simd>(
        &self,
        simd: L,
        scale: Scale,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let (samples, rows) = (plane.width * plane.channels, self.mask.rows);
        let mut sums = ColumnSums::new(&mut scratch.columns, &self.border, samples);
        let first = strip.first_row as i64 - rows as i64 / 2;
        let partial = is_partial(&self.channels, source);
        let row_at = |k: usize| match self.border.row_index(first + k as i64, plane.height) {
            Some(y) => source.picture.row(strip.plane, y),
            None => &scratch.outside,
        };
        for k in 0..rows - 1 + strip.rows {
            sums.change(simd, row_at(k), k.checked_sub(rows).map(row_at));
            let Some(row) = k.checked_sub(rows - 1) else {
                continue;
            };
            sums.extend(&scratch.apron, rows);
            let out = &mut strip.bytes[row * plane.stride..][..samples];
            sums.make(simd, (self.mask.columns, plane.channels), scale, out);
            if partial {
                complete(
                    &self.channels,
                    self.format,
                    source,
                    (strip.plane, strip.first_row + row),
                    out,
                );
            }
        }
    }

    /// The same by way of rows that stay in registers.
    fn convolve_small<L: Simd>(
        &self,
        simd: L,
        scale: Scale,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let (samples, rows) = (plane.width * plane.channels, self.mask.rows);
        let mut boxes = InRegisters::new(
            &mut scratch.small,
            &self.border,
            &scratch.apron,
            (rows, scale),
            plane.width,
        );
        let partial = is_partial(&self.channels, source);
        let first = strip.first_row as i64 - rows as i64 / 2;
        let spare = room(&mut scratch.spare, in_registers::AT_ONCE * samples);
        for row in (0..strip.rows).step_by(in_registers::AT_ONCE) {
            let from = std::array::from_fn(|k| {
                let y = self.border.row_index(first + (row + k) as i64, plane.height);
                y.map_or((&scratch.outside[..], 0), |y| {
                    source.picture.place(strip.plane, y)
                })
            });
            let out = OutputRows {
                bytes: &mut strip.bytes[row * plane.stride..],
                stride: plane.stride,
                row_bytes: samples,
                spare,
            };
            boxes.make(simd, from, out.split());
            if partial {
                for row in (row..strip.rows).take(in_registers::AT_ONCE) {
                    let out = &mut strip.bytes[row * plane.stride..][..samples];
                    let y = strip.first_row + row;
                    complete(&self.channels, self.format, source, (strip.plane, y), out);
                }
            }
        }
    }

    fn convolve_with<L: Simd>(
        &self,
        simd: L,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        self.border.find(plane.width, &mut scratch.apron);
        self.border.store_outside(plane.width, &mut scratch.outside);
        if let Ending::Scaled(scale) = self.ending
            && self.format.bytes_per_sample() == 1
            && source.alpha.is_none()
        {
            let (size, channels) = ((self.mask.columns, self.mask.rows), self.border.channels());
            if in_registers::suit(simd, size, channels, scale) {
                self.convolve_small(simd, scale, source, layout, strip, scratch);
                return;
            }
            if column_sums::suit(size.0, channels) {
                self.convolve_by_columns(simd, scale, source, layout, strip, scratch);
                return;
            }
        }
        let horizontal = RowSums::new(self.mask.columns, self.border.channels());
        if horizontal.suits_two_rows(plane.width * plane.channels) {
            self.convolve_rows::<L, 2>(simd, horizontal, source, layout, strip, scratch);
        } else {
            self.convolve_rows::<L, 1>(simd, horizontal, source, layout, strip, scratch);
        }
    }

    /// The strip by way of windows' sums, `R` rows at a time, where it is known what lies outside.
    fn convolve_rows<L: Simd, const R: usize>(
        &self,
        simd: L,
        horizontal: RowSums,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let samples = plane.width * plane.channels;
        let bytes = self.format.bytes_per_sample();
        let (origin, lead) = (self.border.origin(), self.border.lead());
        let made = samples.next_multiple_of(TILE);
        let rows = self.mask.rows;
        let padded = spread(lead + horizontal.reach(made));
        let slot = spread(made);
        let words = aligned(&mut scratch.words, R * padded);
        let mut parts = scratch.parts.each_mut().map(|parts| aligned(parts, R * padded));
        // A window begins empty: nothing leaves it until it is full.
        let zeros = rows + CENTRES;
        let ring = aligned(&mut scratch.ring, (zeros + 1) * slot);
        ring.fill(0);
        let sums = aligned(&mut scratch.sums, made);
        let weighted = aligned(&mut scratch.weighted, made);
        match &self.ending {
            Ending::Scaled(scale) => sums.fill(scale.add),
            Ending::Uneven { is_wide: false, .. } => sums.fill(0),
            Ending::Uneven { finish, .. } | Ending::Weighted { finish, .. } => {
                weighted.fill(finish.start[0][0]);
            }
        }
        let row_bytes = samples * bytes;
        let first = strip.first_row as i64 - rows as i64 / 2;
        let partial = is_partial(&self.channels, source);
        for k in (0..rows - 1 + strip.rows).step_by(R) {
            // The rows of the strip that the entering ones complete, if they do.
            let completed: [_; R] = std::array::from_fn(|r| {
                let row = (k + r).checked_sub(rows - 1);
                row.filter(|&row| row < strip.rows)
            });
            let mut lines = [[zeros; LINES]; R];
            for ((r, lines), words) in lines.iter_mut().enumerate().zip(words.chunks_mut(padded)) {
                let k = k + r;
                let y = first + k as i64;
                let entering =
                    self.border
                        .row(source, strip.plane, y, &scratch.outside, &mut scratch.under_alpha);
                widen::load_row(simd, self.widening, entering, &mut words[origin..], padded);
                RowBorder::fill(&scratch.apron, words, |sample| sample);
                match &self.ending {
                    Ending::Scaled(_) => {}
                    Ending::Uneven { others, .. } => {
                        for (line, j) in lines.iter_mut().zip(others) {
                            *line = (k + 1 + j) % rows;
                        }
                    }
                    Ending::Weighted { .. } if self.mask.is_column => {
                        for (two, (j, _)) in lines.as_chunks_mut().0.iter_mut().zip(self.mask.steps()) {
                            *two = [(k + 1 + j) % rows, (k + rows - 1 - j) % rows];
                        }
                    }
                    Ending::Weighted { .. } => {
                        let Some(row) = completed[r] else {
                            continue;
                        };
                        let centre = |row: usize| rows + row % CENTRES;
                        let to = &mut ring[centre(row) * slot..][..made];
                        let middle = source.row(strip.plane, strip.first_row + row, &mut scratch.under_alpha);
                        widen::load_row(simd, self.widening, middle, to, made);
                        lines[0] = centre(row);
                        lines[1] = row.checked_sub(1).map_or(zeros, centre);
                    }
                }
            }
            let making = match &self.ending {
                Ending::Scaled(scale) => Making::Scaled {
                    sums,
                    scale,
                    left: self.widening.shift,
                },
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
                        let sums = &mut *weighted;
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
            };
            let [mut fours_or_all, mut eights] = parts.each_mut().map(|parts| parts.chunks_mut(padded));
            let mut each = words.chunks(padded);
            let new: [_; R] = std::array::from_fn(|r| {
                let words = each.next().unwrap_or_default();
                let parts = [&mut fours_or_all, &mut eights].map(|parts| parts.next().unwrap_or_default());
                NewRow {
                    sums: horizontal.add_up(simd, words, lead, parts, made),
                    at: (k + r) % rows * slot,
                    lines: lines[r].map(|line| line * slot),
                }
            });
            let from = |row: usize| row * plane.stride;
            let begin = completed.iter().flatten().next().map_or(0, |&row| from(row));
            let mut there = strip.bytes[begin..].chunks_mut(plane.stride);
            let mut spare = room(&mut scratch.spare, R * row_bytes).chunks_mut(row_bytes);
            let out = completed.map(|row| {
                let out = if row.is_some() { there.next() } else { spare.next() };
                &mut out.unwrap_or_default()[..row_bytes]
            });
            let next = rows_to_prefetch(source, strip.plane, first + (k + R) as i64, R);
            if bytes == 1 {
                sliding_window::make::<L, 1, R>(simd, (new, next), (ring, made), making, out);
            } else {
                sliding_window::make::<L, 2, R>(simd, (new, next), (ring, made), making, out);
            }
            for row in completed.into_iter().flatten().filter(|_| partial) {
                let out = &mut strip.bytes[from(row)..][..row_bytes];
                let y = strip.first_row + row;
                complete(&self.channels, self.format, source, (strip.plane, y), out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::engine::cpu::InstructionSet;
    use crate::filter::{Algorithm, Border, Chain, Convolve, Filter, Mask, Plan, Planes};
    use crate::frame::Colour;

    fn ending(size: usize, weights: Option<Vec<i64>>, direct: bool, max: i64) -> Option<&'static str> {
        let format: PixelFormat = if max == 255 { "gray" } else { "gray12le" }.parse().unwrap();
        let weights = weights.unwrap_or_else(|| vec![1; size * size]);
        let total = weights.iter().sum();
        let chain = Chain {
            filters: vec![Filter {
                mask: Mask::from_integers(size, size, weights, total).unwrap(),
                bias: 0.0,
                caveat: None,
                label: String::new(),
            }],
            border: Border::Mirror,
            planes: Planes::All,
            algorithm: if direct {
                Algorithm::Direct
            } else {
                Algorithm::Separable
            },
        };
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let vectors = Vectors::of(InstructionSet::Avx2)?;
        let window = BoxBlur::new(vectors, &plan.steps[0], 0, format);
        Some(match window.map(|window| window.ending) {
            Some(Ending::Scaled(_)) => "scaled",
            Some(Ending::Uneven { is_wide: false, .. }) => "uneven",
            Some(Ending::Uneven { .. }) => "uneven, wide",
            Some(Ending::Weighted { .. }) => "weighted",
            None => "none",
        })
    }

    #[test]
    fn each_mask_takes_the_ending_that_holds_its_numbers() {
        if Vectors::of(InstructionSet::Avx2).is_none() {
            eprintln!("SKIPPED: this machine has no AVX2");
            return;
        }
        let is = |expected, size, weights, direct, max| {
            assert_eq!(
                ending(size, weights, direct, max),
                Some(expected),
                "{size} {direct} {max}"
            );
        };
        is("scaled", 3, None, true, 255);
        is("scaled", 3, None, false, 255);
        is("scaled", 7, None, false, 255);
        // The middle row's excess shows.
        is("uneven", 15, None, false, 255);
        // Sums that leave 16 bits.
        is("uneven, wide", 17, None, false, 255);
        // Three rows weigh more, and five.
        is("uneven", 9, None, false, 255);
        is("uneven", 11, None, false, 255);
        // Three rows weigh less, thirteen, and twelve.
        is("uneven, wide", 25, None, false, 255);
        is("weighted", 31, None, false, 255);
        is("weighted", 63, None, false, 255);
        // Quantisation mends the corners, where the window's edge is.
        is("none", 3, None, true, 4095);
        // A row's sum leaves 16 bits.
        is("none", 9, None, false, 4095);
        is("weighted", 3, Some(vec![1, 1, 1, 1, 8, 1, 1, 1, 1]), true, 255);
        is("none", 3, Some(vec![1, 1, 1, 2, 7, 1, 1, 1, 1]), true, 255);
    }

    #[test]
    fn a_scale_gives_every_sum_its_result() {
        let mask = UniformMask {
            columns: 3,
            rows: 3,
            weights: vec![29127; 9],
            is_column: false,
            shift: 18,
        };
        let c = Convolve {
            low: 1 << 17,
            high: 0,
            border: 0,
            level: 0,
            is_alpha: false,
        };
        let scale = mask.scale(&c, 255).unwrap();
        for sum in 0..=9 * 255_i64 {
            let product = (sum + i64::from(scale.add)) * i64::from(scale.factor) + (1 << 14);
            assert_eq!(product >> (15 + scale.down), (2 * sum + 9) / 18);
        }
        // An excess that reaches a level cannot be told from the sum.
        let mut uneven = UniformMask {
            weights: vec![29127; 9],
            ..mask
        };
        uneven.weights[4] += 2000;
        assert!(uneven.scale(&c, 255).is_none());
    }
}
