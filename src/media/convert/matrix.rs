//! RGB of YUV and YUV of RGB by the formulas of H.273, and YUV of another subsampling. swscale makes 943 of
//! white of 10 bits where 940 is right and 0 of the brightest blues of 8 bits, stretches chroma of odd sizes,
//! and knows no YCgCo.
//!
//! ```text
//!   Y = KR R + KG G + KB B      Cb = (B - Y) / (2 (1 - KB))      Cr = (R - Y) / (2 (1 - KR))
//! ```
//!
//! What is read is brought to the places of what is written, exactly, weighted in numbers of 64 bits, and
//! rounded once to the nearest level.

use super::component::Component;
use super::grid::Grid;
use super::levels::AlphaConversion;
use crate::frame::{Channel, Colour, ColourModel, Frame, PixelFormat, rgb_of_yuv, yuv_of_rgb};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::thread;

/// RGB into YUV, the other way round, or YUV into YUV.
pub(super) struct MatrixConversion {
    /// The three components that are read.
    read: [Channel; 3],
    /// Those that are written, as many at a time as lie at the same places.
    groups: Vec<Group>,
    alpha: AlphaConversion,
    threads: usize,
}

/// Components that are written at the same places.
struct Group {
    written: Vec<Written>,
    /// What brings each of those that are read to these places; `None` if it counts nothing.
    grids: [Option<Grid>; 3],
}

/// A component that is written.
struct Written {
    component: Component,
    /// What each of those that are read counts in it, and what is added to that.
    weights: [f64; 3],
    offset: f64,
}

/// Rows that are worth a thread, and the most threads of a frame, beside which others may be converted.
const FEWEST_ROWS: usize = 64;
const MOST_THREADS: usize = 8;

const RGB: [Channel; 3] = [Channel::Red, Channel::Green, Channel::Blue];
const YUV: [Channel; 3] = [Channel::Luma, Channel::Cb, Channel::Cr];
const SAME: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

impl MatrixConversion {
    /// Between formats with these colour facts, of which one or both are YUV, by a matrix if not both are;
    /// `None` if that has no formula. Frames have this size.
    pub(super) fn new(
        (from, before): (PixelFormat, Colour),
        (to, after): (PixelFormat, Colour),
        matrix: u8,
        size: (usize, usize),
    ) -> Option<MatrixConversion> {
        let (read, written, parts) = match (from.model(), to.model()) {
            (ColourModel::Rgb, _) => (RGB, YUV, yuv_of_rgb(matrix)?),
            (_, ColourModel::Rgb) => (YUV, RGB, rgb_of_yuv(matrix)?),
            _ => (YUV, YUV, SAME),
        };
        let mut groups = Vec::new();
        for to_chroma in [false, true] {
            let indices = (0..3).filter(|&k| written[k].is_chroma() == to_chroma);
            let indices: Vec<usize> = indices.collect();
            let grids = [0, 1, 2].map(|j| {
                let counts = indices.iter().any(|&k| parts[k][j] != 0.0);
                let of_chroma = read[j].is_chroma();
                counts.then(|| Grid::new((from, before, of_chroma), (to, after, to_chroma), size))
            });
            let bits = |j: usize| grids[j].as_ref().map_or(0, Grid::bits);
            let mut all = Vec::new();
            for &k in &indices {
                let span = f64::from(after.span(to, written[k]));
                let mut offset = f64::from(after.zero_level(to, written[k]));
                let mut weights = [0.0; 3];
                for j in 0..3 {
                    let weight = parts[k][j] * span / f64::from(before.span(from, read[j]));
                    offset -= weight * f64::from(before.zero_level(from, read[j]));
                    weights[j] = weight / f64::from(1_u32 << bits(j));
                }
                all.push(Written {
                    component: Component::of(to, written[k])?,
                    weights,
                    offset,
                });
            }
            groups.push(Group { written: all, grids });
        }
        groups.retain(|group| !group.written.is_empty());
        Some(MatrixConversion {
            read,
            groups,
            alpha: AlphaConversion::new((from, before), (to, after)),
            threads: thread::available_parallelism()
                .map_or(1, NonZeroUsize::get)
                .min(MOST_THREADS),
        })
    }

    /// Fills `converted` from `frame`, which has its size, on all cores.
    pub(super) fn run(&self, frame: &Frame, converted: &mut Frame) {
        let most = f64::from(converted.format().max_value());
        for group in &self.groups {
            let size = converted.layout().planes()[group.written[0].component.plane];
            for first in (0..size.height).step_by(FEWEST_ROWS * self.threads) {
                let band = first..size.height.min(first + FEWEST_ROWS * self.threads);
                let shares = self.band(frame, group, band.clone(), size.width, most);
                let lines = shares.iter().flat_map(|share| share.chunks_exact(size.width));
                let places = band.flat_map(|y| group.written.iter().map(move |w| (y, w.component)));
                for ((y, component), line) in places.zip(lines) {
                    component.write(line, converted, y);
                }
            }
        }
        self.alpha.run(frame, converted);
    }

    /// The rows of a band of what a group writes, a share of them from each thread.
    fn band(
        &self,
        frame: &Frame,
        group: &Group,
        band: Range<usize>,
        width: usize,
        most: f64,
    ) -> Vec<Vec<u16>> {
        let count = self.threads.min(band.len() / FEWEST_ROWS).max(1);
        let rows = band.len().div_ceil(count);
        let share = |k: usize| {
            let mut buffers = Rows::default();
            let mut lines = Vec::new();
            for y in (band.start + k * rows..band.end).take(rows) {
                self.row(frame, group, (y, width), most, &mut buffers, &mut lines);
            }
            lines
        };
        let share = &share;
        thread::scope(|scope| {
            let start = |k: usize| thread::Builder::new().spawn_scoped(scope, move || share(k));
            let started: Vec<_> = (1..count).map(start).collect();
            let mut shares = vec![share(0)];
            for (k, thread) in (1..).zip(started) {
                // Where no thread can be had, this one does it.
                let done = thread.ok().and_then(|thread| thread.join().ok());
                shares.push(done.unwrap_or_else(|| share(k)));
            }
            shares
        })
    }

    /// Appends row `y` of what a group writes, one component after the other.
    fn row(
        &self,
        frame: &Frame,
        group: &Group,
        (y, width): (usize, usize),
        most: f64,
        rows: &mut Rows,
        lines: &mut Vec<u16>,
    ) {
        for ((grid, channel), row) in group.grids.iter().zip(self.read).zip(&mut rows.sums) {
            row.resize(width, 0);
            if let (Some(grid), Some(source)) = (grid, Component::of(frame.format(), channel)) {
                grid.row((frame, source), y, &mut rows.read, &mut rows.columns, row);
            }
        }
        let [first, second, third] = &rows.sums;
        for written in &group.written {
            let ([a, b, c], offset) = (written.weights, written.offset);
            let components = first.iter().zip(second).zip(third);
            lines.extend(components.map(|((&x, &y), &z)| {
                let level = a * f64::from(x) + b * f64::from(y) + c * f64::from(z) + offset;
                (level.clamp(0.0, most) + 0.5) as u16
            }));
        }
    }
}

/// Rows that a thread works on.
#[derive(Default)]
struct Rows {
    /// Samples as they are read, and summed down.
    read: Vec<u16>,
    columns: Vec<i32>,
    /// Those of the three components at the places of what is written.
    sums: [Vec<i32>; 3],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Layout;
    use crate::media::convert::unpooled;

    #[test]
    fn threads_and_bands_change_nothing() {
        let (width, height) = (13, 301);
        let colour = Colour::default();
        let made = |format: PixelFormat| {
            let layout = Layout::new(format, width, height, 64).unwrap();
            Frame::new(layout, unpooled(&layout).unwrap()).unwrap()
        };
        let mut frame = made(PixelFormat::RGB24);
        for (at, byte) in frame.bytes_mut().iter_mut().enumerate() {
            *byte = (at * 7919 % 251) as u8;
        }
        let to = PixelFormat::YUV420P;
        let (from, to) = ((PixelFormat::RGB24, colour), (to, colour));
        let mut conversion = MatrixConversion::new(from, to, 6, (width, height)).unwrap();
        let expected: Vec<Vec<u8>> = [1, 2, 3, 8]
            .map(|threads| {
                conversion.threads = threads;
                let mut converted = made(to.0);
                conversion.run(&frame, &mut converted);
                let planes = (0..3).flat_map(|plane| {
                    let rows = converted.layout().planes()[plane].height;
                    (0..rows)
                        .flat_map(|y| converted.row(plane, y).to_vec())
                        .collect::<Vec<u8>>()
                });
                planes.collect()
            })
            .to_vec();
        assert!(expected[0].iter().any(|&byte| byte != 0));
        assert!(expected.iter().all(|bytes| *bytes == expected[0]));
    }
}
