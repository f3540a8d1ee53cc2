//! Luma of RGB frames: it is computed, filtered by another engine, and put back.
//!
//! ```text
//! R G B (A) --Y = kr R + kg G + kb B--> Y (A) --another engine--> Y' (A)
//!     |                                                             |
//!     +--------------- R + Y' - Y, G + Y' - Y, B + Y' - Y <---------+      or Y' Y' Y' for a gray picture
//! ```
//!
//! Y is rounded to the frame's own depth, so that a mask that changes nothing gives the very samples back.

use super::{DeviceTimes, Engine, EngineError, Ranges};
use crate::filter::Planes;
use crate::frame::{
    Allocator, Buffer, Channel, Colour, ColourModel, Frame, FramePool, Layout, Pageable, PixelFormat, Range,
    Remarks, luma_weights,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// The format in which an engine is given frames of `format` under this choice of planes: luma, with alpha if
/// there is one, for RGB whose luma is chosen; else `format` itself.
pub fn filtered_format(format: PixelFormat, planes: &Planes) -> PixelFormat {
    let is_luma = matches!(planes, Planes::Luma | Planes::Gray);
    // Of floating-point RGB no luma is made; the plan refuses it.
    if format.model() != ColourModel::Rgb || format.is_float() || !is_luma {
        return format;
    }
    let name = match (format.has_alpha(), format.depth()) {
        (false, 8) => "gray".to_owned(),
        (false, depth) => format!("gray{depth}le"),
        (true, 8) => "ya8".to_owned(),
        (true, 16) => "ya16le".to_owned(),
        // No gray format has alpha of such a depth; the chroma stays neutral.
        (true, depth) => format!("yuva444p{depth}le"),
    };
    PixelFormat::from_name(&name).unwrap_or(format)
}

/// `engine`, or that engine behind a [`Luma`] if this choice of planes asks for the luma of RGB frames.
pub fn around(engine: Box<dyn Engine>, planes: &Planes, may_be_rgb: bool) -> Box<dyn Engine> {
    match planes {
        Planes::Luma | Planes::Gray if may_be_rgb => Box::new(Luma::new(engine, planes.clone())),
        _ => engine,
    }
}

/// An engine that gives another one the luma of RGB frames; frames of other formats pass to it as they are.
pub struct Luma {
    inner: Box<dyn Engine>,
    planes: Planes,
    /// What the frames in flight are made of again, oldest first; `None` for one that passes as it is.
    waiting: VecDeque<Option<Original>>,
    /// Memory of the luma, before and after.
    before: FramePool,
    after: FramePool,
}

struct Original {
    frame: Frame,
    output: Buffer,
    row_alignment: usize,
}

impl Luma {
    /// Luma, or gray, as `planes` says, filtered by `inner`.
    pub fn new(inner: Box<dyn Engine>, planes: Planes) -> Luma {
        let depth = inner.depth().max(1) + 1;
        Luma {
            planes,
            waiting: VecDeque::new(),
            before: FramePool::new(depth, inner.input_allocator()),
            after: FramePool::new(depth, inner.output_allocator()),
            inner,
        }
    }

    fn free(pool: &FramePool) -> Result<Buffer, EngineError> {
        match pool.try_take() {
            Some(buffer) => Ok(buffer),
            // Only if more frames are in flight than the engine allows.
            None => Ok(Buffer::unpooled(Pageable.allocate(0)?)),
        }
    }
}

impl Engine for Luma {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn description(&self) -> String {
        format!("{}; luma of RGB", self.inner.description())
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn own_bytes(&self, frame: &Layout) -> u128 {
        let format = filtered_format(frame.format(), &self.planes);
        if format == frame.format() {
            return self.inner.own_bytes(frame);
        }
        let luma = Layout::new(format, frame.width(), frame.height(), 64);
        let pools = self.before.capacity() + self.after.capacity();
        luma.map_or(0, |luma| {
            pools as u128 * luma.size() as u128 + self.inner.own_bytes(&luma)
        })
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let format = filtered_format(input.format(), &self.planes);
        if format == input.format() {
            self.waiting.push_back(None);
            return self.inner.submit(input, output, row_alignment);
        }
        let (width, height) = (input.layout().width(), input.layout().height());
        let layout = Layout::new(format, width, height, 64)?;
        let mut luma = Frame::new(layout, Luma::free(&self.before)?)?;
        let weights = Weights::of(&input.metadata.colour);
        let mut rows = Rows::default();
        for y in 0..height {
            rows.read(&input, y);
            rows.weighted_sum(weights);
            put(&mut luma, Channel::Luma, y, &rows.luma);
            if format.model() == ColourModel::Yuv {
                rows.other.clear();
                rows.other.resize(width, 1 << (format.depth() - 1));
                put(&mut luma, Channel::Cb, y, &rows.other);
                put(&mut luma, Channel::Cr, y, &rows.other);
            }
            if format.has_alpha() {
                take(&input, Channel::Alpha, y, &mut rows.other);
                put(&mut luma, Channel::Alpha, y, &rows.other);
            }
        }
        luma.sequence = input.sequence;
        luma.born = input.born;
        luma.metadata.colour = Colour {
            range: Range::Full,
            ..input.metadata.colour
        };
        self.waiting.push_back(Some(Original {
            frame: input,
            output,
            row_alignment,
        }));
        let room = Luma::free(&self.after)?;
        self.inner.submit(luma, room, 64)
    }

    fn explanation(&mut self) -> Vec<String> {
        self.inner.explanation()
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        let Some(luma) = self.inner.collect()? else {
            return Ok(None);
        };
        let Some(Original {
            frame,
            output,
            row_alignment,
        }) = self.waiting.pop_front().flatten()
        else {
            return Ok(Some(luma));
        };
        let (format, width, height) = (frame.format(), frame.layout().width(), frame.layout().height());
        let mut result = Frame::new(Layout::new(format, width, height, row_alignment)?, output)?;
        let weights = Weights::of(&frame.metadata.colour);
        let max = format.max_value() as i32;
        let mut rows = Rows::default();
        for y in 0..height {
            take(&luma, Channel::Luma, y, &mut rows.other);
            if self.planes == Planes::Gray {
                for channel in COLOURS {
                    put(&mut result, channel, y, &rows.other);
                }
            } else {
                rows.read(&frame, y);
                rows.weighted_sum(weights);
                for (samples, channel) in rows.colours.iter_mut().zip(COLOURS) {
                    for ((sample, &before), &after) in samples.iter_mut().zip(&rows.luma).zip(&rows.other) {
                        let sum = i32::from(*sample) + i32::from(after) - i32::from(before);
                        *sample = sum.clamp(0, max) as u16;
                    }
                    put(&mut result, channel, y, samples);
                }
            }
            if format.has_alpha() {
                take(&frame, Channel::Alpha, y, &mut rows.other);
                put(&mut result, Channel::Alpha, y, &rows.other);
            }
        }
        result.sequence = frame.sequence;
        result.born = frame.born;
        result.metadata = frame.into_parts().0;
        Ok(Some(result))
    }

    fn ranges(&self) -> Option<Arc<dyn Ranges>> {
        self.inner.ranges()
    }

    fn device_times(&mut self) -> Option<DeviceTimes> {
        self.inner.device_times()
    }

    fn remarks(&mut self, whole: bool) -> Remarks {
        self.inner.remarks(whole)
    }
}

const COLOURS: [Channel; 3] = [Channel::Red, Channel::Green, Channel::Blue];

/// What red, green and blue count in luma, times 2^16; their sum is 2^16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weights([u32; 3]);

impl Weights {
    /// Those of the matrix that a picture's colour facts name, else those of its primaries, else BT.709's
    /// (H.273, tables 2 and 4).
    fn of(colour: &Colour) -> Weights {
        let of_primaries = match colour.primaries {
            5 | 6 => Some(6),
            7 => Some(7),
            9 => Some(9),
            _ => None,
        };
        // BT.709's are always known.
        let matrices = [Some(colour.matrix), of_primaries, Some(1)];
        let (red, blue) = matrices
            .into_iter()
            .flatten()
            .find_map(luma_weights)
            .unwrap_or_default();
        let whole = |weight: f64| (weight * 65536.0).round() as u32;
        let (red, blue) = (whole(red), whole(blue));
        Weights([red, 65536 - red - blue, blue])
    }
}

/// One row of a frame, component by component.
#[derive(Default)]
pub(super) struct Rows {
    colours: [Vec<u16>; 3],
    pub(super) luma: Vec<u16>,
    other: Vec<u16>,
}

impl Rows {
    pub(super) fn read(&mut self, frame: &Frame, y: usize) {
        for (samples, channel) in self.colours.iter_mut().zip(COLOURS) {
            take(frame, channel, y, samples);
        }
    }

    /// Luma of the colours by a picture's colour facts.
    pub(super) fn weigh(&mut self, colour: &Colour) {
        self.weighted_sum(Weights::of(colour));
    }

    /// Luma of the colours, halves rounded up.
    fn weighted_sum(&mut self, Weights([red, green, blue]): Weights) {
        let [r, g, b] = &self.colours;
        self.luma.clear();
        let pixels = r.iter().zip(g).zip(b);
        // At most 65535 x 2^16 + 2^15, which fits.
        self.luma.extend(pixels.map(|((&r, &g), &b)| {
            ((red * u32::from(r) + green * u32::from(g) + blue * u32::from(b) + (1 << 15)) >> 16) as u16
        }));
    }
}

/// The words of one channel of row `y`.
pub(super) fn take(frame: &Frame, channel: Channel, y: usize, samples: &mut Vec<u16>) {
    samples.clear();
    let Some((plane, at)) = frame.format().place(channel) else {
        return;
    };
    let step = frame.format().planes()[plane].channels.len();
    let row = frame.row(plane, y);
    if frame.format().bytes_per_sample() == 1 {
        samples.extend(row[at..].iter().step_by(step).map(|&b| u16::from(b)));
    } else {
        let words = row[2 * at..].chunks(2 * step);
        samples.extend(words.map(|word| u16::from_le_bytes([word[0], word[1]])));
    }
}

/// Writes the samples of one channel of row `y`, if the frame has that channel.
fn put(frame: &mut Frame, channel: Channel, y: usize, samples: &[u16]) {
    let Some((plane, at)) = frame.format().place(channel) else {
        return;
    };
    let step = frame.format().planes()[plane].channels.len();
    let bytes = frame.format().bytes_per_sample();
    let row = frame.row_mut(plane, y);
    if bytes == 1 {
        for (to, &sample) in row[at..].iter_mut().step_by(step).zip(samples) {
            *to = sample as u8;
        }
    } else {
        for (to, sample) in row[2 * at..].chunks_mut(2 * step).zip(samples) {
            to[..2].copy_from_slice(&sample.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::engine::cpu::Cpu;
    use crate::engine::none::NoFilter;
    use crate::engine::reference::Reference;
    use crate::filter::{Algorithm, Border, Chain};

    fn chain(filter: &str, planes: &Planes) -> Chain {
        Chain {
            filters: vec![filter.parse().unwrap()],
            border: Border::Replicate,
            planes: planes.clone(),
            algorithm: Algorithm::Auto,
            alpha: Default::default(),
        }
    }

    fn noise(format: PixelFormat, width: usize, height: usize) -> Frame {
        let layout = Layout::new(format, width, height, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Pageable.allocate(0).unwrap())).unwrap();
        let mut state = 12345_u64;
        for channel in COLOURS.into_iter().chain([Channel::Alpha]) {
            for y in 0..height {
                let mut next = || {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    (state >> 40) as u16 & format.max_value() as u16
                };
                let samples: Vec<u16> = (0..width).map(|_| next()).collect();
                put(&mut frame, channel, y, &samples);
            }
        }
        frame
    }

    fn run(engine: &mut dyn Engine, frame: Frame) -> Frame {
        let room = Buffer::unpooled(Pageable.allocate(0).unwrap());
        engine.submit(frame, room, 1).unwrap();
        engine.collect().unwrap().unwrap()
    }

    fn rgb() -> impl Iterator<Item = PixelFormat> {
        PixelFormat::all().filter(|format| format.model() == ColourModel::Rgb)
    }

    #[test]
    fn every_rgb_format_has_a_luma_format_of_its_depth() {
        for format in rgb() {
            let luma = filtered_format(format, &Planes::Luma);
            assert_eq!(luma.depth(), format.depth(), "{format}");
            assert_eq!(luma.has_alpha(), format.has_alpha());
            assert_ne!(luma.model(), ColourModel::Rgb);
            assert_eq!(filtered_format(format, &Planes::All), format);
        }
    }

    #[test]
    fn what_changes_no_luma_changes_no_sample() {
        for format in rgb() {
            let planes = Planes::Luma;
            let reference: Box<dyn Engine> = Box::new(Reference::new(chain("identity", &planes)));
            for inner in [reference, Box::new(NoFilter::default())] {
                let frame = noise(format, 17, 5);
                let before = frame.bytes().to_vec();
                let after = run(&mut *around(inner, &planes, true), frame);
                assert_eq!(after.bytes(), before, "{format}");
            }
        }
    }

    /// The box of three by three over the luma of opaque frames, by the formula.
    #[test]
    fn the_difference_of_luma_is_added_to_each_colour() {
        for format in rgb() {
            for planes in [Planes::Luma, Planes::Gray] {
                let mut frame = noise(format, 13, 7);
                let max = i64::from(format.max_value());
                for y in 0..7 {
                    put(&mut frame, Channel::Alpha, y, &[max as u16; 13]);
                }
                let at = |frame: &Frame, channel, x: i64, y: i64| {
                    let (plane, at) = format.place(channel).unwrap();
                    let (x, y) = (x.clamp(0, 12) as usize, y.clamp(0, 6) as usize);
                    i64::from(frame.sample(plane, x, y, at))
                };
                let luma = |frame: &Frame, x, y| {
                    let [r, g, b] = COLOURS.map(|c| at(frame, c, x, y) as f64);
                    (0.2126 * r + 0.7152 * g + 0.0722 * b).round() as i64
                };
                let mut copy = noise(format, 13, 7);
                copy.bytes_mut().copy_from_slice(frame.bytes());
                let inner = Box::new(Cpu::new(chain("box:size=3", &planes), 2).unwrap());
                let result = run(&mut *around(inner, &planes, true), copy);
                for (x, y) in (0..7).flat_map(|y| (0..13).map(move |x| (x, y))) {
                    let around = (-1..2).flat_map(|j| (-1..2).map(move |i| (x + i, y + j)));
                    let sum: i64 = around.map(|(x, y)| luma(&frame, x, y)).sum();
                    let mean = (2 * sum + 9).div_euclid(18);
                    for channel in COLOURS {
                        let expected = match planes {
                            Planes::Gray => mean,
                            _ => (at(&frame, channel, x, y) + mean - luma(&frame, x, y)).clamp(0, max),
                        };
                        let found = at(&result, channel, x, y);
                        // The weights have 16 bits, and the mask's mean is rounded by integers.
                        let allowed = 1 + (max >> 14);
                        assert!(
                            (found - expected).abs() <= allowed,
                            "{format}: {found} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn weights_follow_the_matrix_then_the_primaries() {
        let of = |matrix, primaries| {
            Weights::of(&Colour {
                matrix,
                primaries,
                ..Colour::default()
            })
        };
        assert_eq!(of(0, 2), of(1, 9));
        assert_eq!(of(0, 9), of(9, 1));
        assert_eq!(of(2, 6), of(5, 1));
        for matrix in 0..12 {
            assert_eq!(of(matrix, 2).0.iter().sum::<u32>(), 65536);
        }
    }
}
