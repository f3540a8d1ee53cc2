//! Copying and filling of stretches of a frame, in any format: every plane by its own subsampling.

use crate::frame::{Channel, Colour, ColourModel, Frame, Layout, PixelFormat, PlaneFormat};
use half::f16;
use std::ops::Range;

/// The direction in which stretches follow each other in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    /// Columns.
    Across,
    /// Rows.
    Down,
}

impl Axis {
    /// Pixels of a frame along the axis.
    pub(super) fn length(self, layout: &Layout) -> usize {
        match self {
            Axis::Across => layout.width(),
            Axis::Down => layout.height(),
        }
    }

    /// Pixels along the axis that share a sample of the coarsest plane.
    pub(super) fn unit(self, format: PixelFormat) -> usize {
        let planes = format.planes().iter();
        1 << planes.map(|plane| self.log2(plane)).max().unwrap_or(0)
    }

    fn log2(self, plane: &PlaneFormat) -> u8 {
        match self {
            Axis::Across => plane.log2_x,
            Axis::Down => plane.log2_y,
        }
    }

    /// The samples of a plane that show these pixels, of which the first must begin a sample.
    fn samples(self, plane: &PlaneFormat, pixels: &Range<usize>) -> Range<usize> {
        let log2 = self.log2(plane);
        pixels.start >> log2..pixels.end.div_ceil(1 << log2)
    }
}

/// White and black.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    White,
    Black,
}

impl Tone {
    /// The bytes of a sample of the tone in `channel`.
    fn sample(self, format: PixelFormat, colour: &Colour, channel: Channel) -> Vec<u8> {
        if !format.is_float() {
            let word = self.word(format, colour, channel).to_le_bytes();
            return word[..format.bytes_per_sample()].to_vec();
        }
        let value = match (channel, self) {
            (Channel::Alpha, _) | (_, Tone::White) => 1.0,
            (_, Tone::Black) => 0.0,
        };
        match format.depth() {
            16 => f16::from_f32(value).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        }
    }

    /// The word that stands for the tone in `channel`; alpha is opaque.
    fn word(self, format: PixelFormat, colour: &Colour, channel: Channel) -> u16 {
        let most = format.max_value();
        let is_limited = colour.is_limited(format);
        let scale = format.depth() - 8;
        // With H.273's matrix 0, green, blue and red lie in the places of luma and chroma.
        let has_chroma = format.model() == ColourModel::Yuv && colour.matrix != 0;
        let level = match (channel, self) {
            (Channel::Alpha, _) => most,
            (Channel::Cb | Channel::Cr, _) if has_chroma => 1 << (format.depth() - 1),
            (_, Tone::White) if is_limited => 235 << scale,
            (_, Tone::Black) if is_limited => 16 << scale,
            (_, Tone::White) => most,
            (_, Tone::Black) => 0,
        };
        (level << format.shift()) as u16
    }

    /// One pixel of a plane as its bytes.
    pub(super) fn pixel(self, format: PixelFormat, colour: &Colour, plane: &PlaneFormat) -> Vec<u8> {
        let channels = plane.channels.iter();
        channels
            .flat_map(|&channel| self.sample(format, colour, channel))
            .collect()
    }
}

/// Bytes of one pixel of a plane.
fn pixel_bytes(format: PixelFormat, plane: &PlaneFormat) -> usize {
    plane.channels.len() * format.bytes_per_sample()
}

/// Copies the `pixels` of a frame along `axis` into another of the same format, from pixel `to` on. Both
/// stretches begin where a chroma sample does.
pub(super) fn copy(from: &Frame, pixels: Range<usize>, into: &mut Frame, to: usize, axis: Axis) {
    let format = from.format();
    for (index, plane) in format.planes().iter().enumerate() {
        let source = axis.samples(plane, &pixels);
        let target = to >> axis.log2(plane);
        match axis {
            Axis::Across => {
                let size = pixel_bytes(format, plane);
                let (begin, len) = (target * size, source.len() * size);
                for y in 0..from.layout().planes()[index].height {
                    let row = &from.row(index, y)[source.start * size..source.end * size];
                    into.row_mut(index, y)[begin..begin + len].copy_from_slice(row);
                }
            }
            Axis::Down => {
                for (y, row) in source.enumerate() {
                    into.row_mut(index, target + y)
                        .copy_from_slice(from.row(index, row));
                }
            }
        }
    }
}

/// Fills `pixels` along `axis` with the ones before them, in planes where these are samples of their own. The
/// end of the stretch is where a chroma sample begins.
pub(super) fn repeat(frame: &mut Frame, pixels: Range<usize>, axis: Axis) {
    let format = frame.format();
    for (index, plane) in format.planes().iter().enumerate() {
        let log2 = axis.log2(plane);
        let filled = pixels.start.div_ceil(1 << log2)..pixels.end >> log2;
        if filled.is_empty() || filled.start == 0 {
            continue;
        }
        match axis {
            Axis::Across => {
                let size = pixel_bytes(format, plane);
                for y in 0..frame.layout().planes()[index].height {
                    let row = frame.row_mut(index, y);
                    let last = (filled.start - 1) * size;
                    for x in filled.clone() {
                        row.copy_within(last..last + size, x * size);
                    }
                }
            }
            Axis::Down => {
                let last = frame.row(index, filled.start - 1).to_vec();
                for y in filled {
                    frame.row_mut(index, y).copy_from_slice(&last);
                }
            }
        }
    }
}

/// Fills `pixels` along `axis` with a tone.
pub(super) fn fill(frame: &mut Frame, pixels: Range<usize>, axis: Axis, tone: Tone) {
    let (format, colour) = (frame.format(), frame.metadata.colour);
    for (index, plane) in format.planes().iter().enumerate() {
        let samples = axis.samples(plane, &pixels);
        let pixel = tone.pixel(format, &colour, plane);
        let place = frame.layout().planes()[index];
        let (columns, rows) = match axis {
            Axis::Across => (samples, 0..place.height),
            Axis::Down => (0..place.width, samples),
        };
        for y in rows {
            let row = &mut frame.row_mut(index, y)[columns.start * pixel.len()..columns.end * pixel.len()];
            for target in row.chunks_exact_mut(pixel.len()) {
                target.copy_from_slice(&pixel);
            }
        }
    }
}
