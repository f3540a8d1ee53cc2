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
use super::levels::LevelConversion;
use crate::frame::{Channel, Colour, ColourModel, Frame, PixelFormat, rgb_of_yuv, yuv_of_rgb};

/// RGB into YUV, the other way round, or YUV into YUV.
pub(super) struct MatrixConversion {
    /// The three components that are read.
    read: [Channel; 3],
    /// Those that are written, as many at a time as lie at the same places.
    groups: Vec<Group>,
    /// Of alpha.
    levels: LevelConversion,
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
            levels: LevelConversion::new((from, before), (to, after)),
        })
    }

    /// Fills `converted` from `frame`, which has its size.
    pub(super) fn run(&self, frame: &Frame, converted: &mut Frame) {
        let (from, to) = (frame.format(), converted.format());
        let most = f64::from(to.max_value());
        let sources = self.read.map(|channel| Component::of(from, channel));
        let (mut read, mut sums) = (Vec::new(), Vec::new());
        for group in &self.groups {
            let size = converted.layout().planes()[group.written[0].component.plane];
            let mut rows = [vec![0_i32; size.width], vec![0; size.width], vec![0; size.width]];
            let mut line = vec![0_u16; size.width];
            for y in 0..size.height {
                for ((grid, source), row) in group.grids.iter().zip(sources).zip(&mut rows) {
                    if let (Some(grid), Some(source)) = (grid, source) {
                        grid.row((frame, source), y, &mut read, &mut sums, row);
                    }
                }
                let [first, second, third] = &rows;
                for written in &group.written {
                    let ([a, b, c], offset) = (written.weights, written.offset);
                    let components = first.iter().zip(second).zip(third);
                    for (to, ((&x, &y), &z)) in line.iter_mut().zip(components) {
                        let level = a * f64::from(x) + b * f64::from(y) + c * f64::from(z) + offset;
                        *to = (level.clamp(0.0, most) + 0.5) as u16;
                    }
                    written.component.write(&line, converted, y);
                }
            }
        }
        self.levels.run_alpha(frame, converted);
    }
}
