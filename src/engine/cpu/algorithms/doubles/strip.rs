//! The rows of a strip: rows of the picture are loaded as lines of numbers, summed up, and requantized to
//! samples.

use super::{Doubles, RowPass};
use crate::engine::cpu::rows::border::span::Span;
use crate::engine::cpu::rows::plane_rows::fill_unconvolved_channels;
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::rows::sums::fused::{Lines, MOST_LINES, Next, ROWS, along_row, exact_sums, rows_of};
use crate::engine::cpu::simd::float::{Exact, FloatLoop};
use crate::engine::cpu::simd::scratch::{LineRing, aligned, room, spread};
use crate::filter::Combining;
use crate::frame::{Layout, PixelFormat};
use std::ops::Range;

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct DoubleScratch {
    ring: Vec<f64>,
    /// A line before its row pass.
    line: Vec<f64>,
    /// The start values of each mask's sums for a row, and the values to add at the end.
    starts: Vec<f64>,
    sums: Vec<f64>,
    /// A row of samples.
    words: Vec<u16>,
}

/// The loop that filters a strip of a plane.
pub(super) struct StripWork<'a, 'b> {
    pub(super) filter: &'a Doubles,
    pub(super) picture: Picture<'a>,
    /// The layout of the result.
    pub(super) layout: &'a Layout,
    pub(super) strip: &'a mut Strip<'b>,
    pub(super) memory: &'a mut DoubleScratch,
}

impl<S: Exact> FloatLoop<S> for StripWork<'_, '_> {
    #[inline(always)]
    fn run(self, s: S) {
        let StripWork {
            filter,
            picture,
            layout,
            strip,
            memory,
        } = self;
        let geometry = layout.planes()[strip.plane];
        if !filter.convolves {
            strip.each_row(layout, |at, row| {
                fill_unconvolved_channels(&filter.channels, picture, (at.plane, at.row), row);
            });
            return;
        }
        let pixels = filter.part_width(&geometry);
        let mut first = 0;
        while first < geometry.width {
            let columns = first..(first + pixels).min(geometry.width);
            first = columns.end;
            let halo = filter.kernel.size.0 / 2;
            let part = Part {
                filter,
                picture,
                plane: strip.plane,
                span: Span::around(&columns, halo, geometry.width, filter.border),
                columns,
                height: geometry.height,
                first_row: strip.first_row,
            };
            part.make(s, layout, strip, memory);
        }
    }
}

/// Converts the samples of a row to numbers.
#[inline(always)]
fn widen(format: PixelFormat, from: &[u8], to: &mut [f64]) {
    if format.bytes_per_sample() == 1 {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = f64::from(from);
        }
        return;
    }
    let words = from.as_chunks().0.iter();
    if format.shift() == 0 {
        for (to, &from) in to.iter_mut().zip(words) {
            *to = f64::from(u16::from_le_bytes(from));
        }
        return;
    }
    for (to, &from) in to.iter_mut().zip(words) {
        *to = f64::from(u16::from_le_bytes(from) >> format.shift());
    }
}

/// Stores samples in a row.
#[inline(always)]
fn store(format: PixelFormat, samples: &[u16], to: &mut [u8]) {
    if format.bytes_per_sample() == 1 {
        for (to, &sample) in to.iter_mut().zip(samples) {
            *to = sample as u8;
        }
        return;
    }
    for (to, &sample) in to.as_chunks_mut().0.iter_mut().zip(samples) {
        *to = (sample << format.shift()).to_le_bytes();
    }
}

/// Combines the sums of several masks to one number each, which replaces the first mask's sum. Each mask has
/// `of` sums, one mask after the other.
#[inline(always)]
fn combine<S: Exact>(s: S, combining: Combining, sums: &mut [f64], of: usize) {
    let (first, others) = sums.split_at_mut(of);
    match combining {
        Combining::Absolute => {
            for m in first.chunks_exact_mut(S::LANES) {
                let sum = s.load(m);
                s.store(s.larger(sum, s.sub(s.splat(0.0), sum)), m);
            }
        }
        Combining::Largest => {
            for other in others.chunks_exact(of) {
                for (m, sum) in first.chunks_exact_mut(S::LANES).zip(other.chunks_exact(S::LANES)) {
                    s.store(s.larger(s.load(m), s.load(sum)), m);
                }
            }
        }
        Combining::Magnitude(_) => unreachable!("magnitudes have short weights"),
    }
}

/// The row pass of one line.
#[inline(always)]
fn along<S: Exact>(s: S, row: &RowPass, line: &[f64], pixel_stride: usize, to: &mut [f64]) {
    let scale = s.splat(row.scale);
    along_row(s, (&row.weights, row.start), line, pixel_stride, to, |sum| {
        s.floor(s.mul(sum, scale))
    });
}

/// Some columns of a strip.
struct Part<'a> {
    filter: &'a Doubles,
    picture: Picture<'a>,
    plane: usize,
    columns: Range<usize>,
    span: Span,
    /// Rows of the plane.
    height: usize,
    /// The first row of the strip.
    first_row: usize,
}

impl Part<'_> {
    /// Loads row `y`, inside or outside the picture, as a line.
    #[inline(always)]
    fn line(&self, y: i64, to: &mut [f64]) {
        let (format, channels) = (self.filter.format, self.filter.channels.len());
        let (span, outside) = (&self.span, &self.filter.outside);
        let Some(y) = self.filter.border.index(y, self.height) else {
            for pixel in to[..span.pixels * channels].chunks_exact_mut(channels) {
                pixel.copy_from_slice(outside);
            }
            return;
        };
        let inside = span.lead * channels..(span.lead + span.inside.len()) * channels;
        let stored = self.picture.pixels((self.plane, y), &span.inside);
        widen(format, stored, &mut to[inside]);
        for &(place, from) in &span.outside {
            let at = place * channels;
            match from {
                None => to[at..at + channels].copy_from_slice(outside),
                Some(x) if span.inside.contains(&x) => {
                    let from = (span.lead + x - span.inside.start) * channels;
                    to.copy_within(from..from + channels, at);
                }
                Some(x) => {
                    let stored = self.picture.pixels((self.plane, y), &(x..x + 1));
                    widen(format, stored, &mut to[at..at + channels]);
                }
            }
        }
    }

    /// Repeats the channels' values for all sums of a row; sums that only fill up the last vector get 0.
    fn repeat(&self, values: &[f64], to: &mut [f64]) {
        let samples = self.columns.len() * values.len();
        for pixel in to[..samples].chunks_exact_mut(values.len()) {
            pixel.copy_from_slice(values);
        }
        to[samples..].fill(0.0);
    }

    /// Makes these columns in all rows of the strip.
    #[inline(always)]
    fn make<S: Exact>(&self, s: S, layout: &Layout, strip: &mut Strip<'_>, memory: &mut DoubleScratch) {
        let (filter, kernel) = (self.filter, &*self.filter.kernel);
        let channels = filter.channels.len();
        let samples = self.columns.len() * channels;
        let len = samples.next_multiple_of(S::LANES);
        let halo = 2 * (kernel.size.0 / 2) * channels;
        let masks = kernel.masks.len();
        let starts = room(&mut memory.starts, (masks + 1) * len);
        let values = filter.starts.iter().chain([&filter.biases]);
        for (values, to) in values.zip(starts.chunks_exact_mut(len)) {
            self.repeat(values, to);
        }
        let (starts, biases) = starts.split_at(masks * len);
        let all_sums = aligned(&mut memory.sums, masks * ROWS * len);
        let line = aligned(&mut memory.line, len + halo);
        let pitch = spread(if kernel.row.is_some() { len } else { len + halo });
        let mut ring = LineRing::new(&mut memory.ring, (kernel.lines(), pitch), 0);
        let top = self.first_row as i64 - (kernel.size.1 / 2) as i64;
        for k in (0..strip.rows).step_by(ROWS) {
            // Line j is row j of the strip's input rows.
            while let Some((j, to)) = ring.next_before(k + kernel.lines()) {
                match &kernel.row {
                    None => self.line(top + j as i64, to),
                    Some(row) => {
                        self.line(top + j as i64, line);
                        along(s, row, line, channels, &mut to[..len]);
                    }
                }
            }
            let mut rows: [&[f64]; MOST_LINES] = [&[]; MOST_LINES];
            for (row, j) in rows.iter_mut().zip(k..k + kernel.lines()) {
                *row = &ring.all()[ring.slot(j)..];
            }
            let lines = Lines {
                rows: &rows,
                from: 0,
                pixel_stride: channels,
            };
            let below = self.first_row + k + ROWS + kernel.size.1 / 2;
            let stride = layout.planes()[strip.plane].stride;
            let later = strip.bytes.get((k + ROWS) * stride..).unwrap_or_default();
            let mut next = Next::of(self.picture, (strip.plane, below), (later, stride), &self.columns);
            let each = starts
                .chunks_exact(len)
                .zip(all_sums.chunks_exact_mut(ROWS * len));
            for (taps, (starts, sums)) in kernel.masks.iter().zip(each) {
                exact_sums(s, taps, lines, (starts, next), rows_of(sums));
                next.rows = [&[]; 2 * ROWS];
            }
            if let Some(combining) = kernel.combining {
                combine(s, combining, all_sums, ROWS * len);
            }
            let rows = ROWS.min(strip.rows - k);
            for (r, sums) in all_sums.chunks_exact(len).take(rows).enumerate() {
                let biases = kernel.combining.map(|_| biases);
                let words = aligned(&mut memory.words, len);
                self.finish(s, (sums, biases), words);
                self.put(layout, strip, k + r, &words[..samples]);
            }
        }
    }

    /// Requantizes a row of sums to samples.
    #[inline(always)]
    fn finish<S: Exact>(&self, s: S, (sums, biases): (&[f64], Option<&[f64]>), to: &mut [u16]) {
        let largest = s.splat(self.filter.format.max_value().into());
        let scale = s.splat(self.filter.kernel.scale);
        let vectors = sums.chunks_exact(S::LANES).zip(to.chunks_exact_mut(S::LANES));
        match biases {
            None => {
                for (sums, to) in vectors {
                    s.store_whole(s.mul(s.load(sums), scale), largest, to);
                }
            }
            Some(biases) => {
                for ((sums, to), biases) in vectors.zip(biases.chunks_exact(S::LANES)) {
                    let sum = s.add(s.load(sums), s.load(biases));
                    s.store_whole(s.mul(sum, scale), largest, to);
                }
            }
        }
    }

    /// Writes these columns of row `k` of the strip, and after the last ones the channels that are not
    /// convolved.
    #[inline(always)]
    fn put(&self, layout: &Layout, strip: &mut Strip<'_>, k: usize, samples: &[u16]) {
        let (format, geometry) = (self.filter.format, layout.planes()[self.plane]);
        let row = &mut strip.bytes[k * geometry.stride..][..layout.row_bytes(self.plane)];
        let pixel = geometry.channels * format.bytes_per_sample();
        store(
            format,
            samples,
            &mut row[self.columns.start * pixel..self.columns.end * pixel],
        );
        if self.columns.end == geometry.width {
            fill_unconvolved_channels(
                &self.filter.channels,
                self.picture,
                (self.plane, self.first_row + k),
                row,
            );
        }
    }
}
