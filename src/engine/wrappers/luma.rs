//! Luma of RGB frames: it is computed, filtered by another engine, and put back.
//!
//! ```text
//! R G B (A) --Y = kr R + kg G + kb B--> Y (A) --another engine--> Y' (A)
//!     |                                                             |
//!     +--------------- R + Y' - Y, G + Y' - Y, B + Y' - Y <---------+      or Y' Y' Y' for a gray picture
//! ```
//!
//! Y is rounded to the frame's own depth, so that a mask that changes nothing gives the very samples back.

use super::{ALIGNMENT, free};
use crate::engine::cpu::Threads;
use crate::engine::cpu::pixels::luma::{Change, LumaRows, PlaneRows, PlaneRowsMut};
use crate::engine::{Engine, EngineError};
use crate::filter::{Chain, FloatPlan, Plan, Planes};
use crate::frame::{
    Allocator, Buffer, Channel, Colour, ColourModel, Frame, FramePool, Layout, LayoutError, Pageable,
    PixelFormat, Range, luma_of_rgb,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// The format that the inner engine filters for frames of `format` with this choice of planes: luma, with the
/// alpha of `format` if it has one, for RGB whose luma is chosen; else `format` itself.
pub fn filtered_format(format: PixelFormat, planes: &Planes) -> PixelFormat {
    let is_luma = matches!(planes, Planes::Luma | Planes::Gray);
    // The plan refuses luma of floating-point RGB.
    if format.model() != ColourModel::Rgb || format.is_float() || !is_luma {
        return format;
    }
    let name = match (format.has_alpha(), format.depth()) {
        (false, 8) => "gray".to_owned(),
        (false, depth) => format!("gray{depth}le"),
        (true, 8) => "ya8".to_owned(),
        (true, 16) => "ya16le".to_owned(),
        // No gray format of this depth has alpha. The chroma is neutral.
        (true, depth) => format!("yuva444p{depth}le"),
    };
    PixelFormat::from_name(&name).unwrap_or(format)
}

/// The plan of integers for frames of `format` with these colour facts; `None` for floating-point samples. An
/// error if the filters cannot be planned for them.
pub fn integer_plan(
    chain: &Chain,
    format: PixelFormat,
    colour: &Colour,
) -> Result<Option<Plan>, EngineError> {
    let format = filtered_format(format, &chain.planes);
    if format.is_float() {
        FloatPlan::new(chain, format, colour)?;
        return Ok(None);
    }
    Ok(Some(Plan::new(chain, format, colour)?))
}

/// `engine`, or that engine behind a [`Luma`] with `threads` threads (0: one per core) if this choice of
/// planes asks for the luma of RGB frames.
pub fn around(
    engine: Box<dyn Engine>,
    planes: &Planes,
    may_be_rgb: bool,
    threads: usize,
) -> Result<Box<dyn Engine>, EngineError> {
    Ok(match planes {
        Planes::Luma | Planes::Gray if may_be_rgb => Box::new(Luma::new(engine, planes.clone(), threads)?),
        _ => engine,
    })
}

/// An engine that gives another one the luma of RGB frames, and frames of other formats unchanged.
pub struct Luma {
    inner: Box<dyn Engine>,
    planes: Planes,
    /// The RGB frames in flight, oldest first; `None` for a frame that the inner engine filters unchanged.
    waiting: VecDeque<Option<Original>>,
    /// Memory of the luma before the inner engine.
    before: FramePool,
    /// Memory of the filtered luma.
    after: FramePool,
    threads: Threads,
}

/// An RGB frame whose luma is being filtered.
struct Original {
    frame: Frame,
    /// Memory for the result.
    output: Buffer,
    /// Alignment of the result's rows, in bytes.
    row_alignment: usize,
}

impl Luma {
    /// Lets `inner` filter the luma of RGB frames. The result is the RGB with that luma, or a gray picture,
    /// as `planes` says. `threads` threads (0: one per core) convert.
    pub fn new(inner: Box<dyn Engine>, planes: Planes, threads: usize) -> Result<Luma, EngineError> {
        let depth = inner.depth().max(1) + 1;
        Ok(Luma {
            planes,
            waiting: VecDeque::new(),
            before: FramePool::new(depth, inner.input_allocator()),
            after: FramePool::new(depth, inner.output_allocator()),
            inner,
            threads: Threads::new(threads)?,
        })
    }

    /// The layout of the luma of frames of this layout; `None` if these are filtered unchanged.
    fn luma_layout(&self, frame: &Layout) -> Result<Option<Layout>, LayoutError> {
        let format = filtered_format(frame.format(), &self.planes);
        if format == frame.format() {
            return Ok(None);
        }
        Layout::new(format, frame.width(), frame.height(), ALIGNMENT).map(Some)
    }

    /// The colour facts of the luma of frames with these.
    fn luma_colour(colour: Colour) -> Colour {
        Colour {
            range: Range::Full,
            ..colour
        }
    }
}

impl Engine for Luma {
    fn inner(&self) -> Option<&dyn Engine> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Engine> {
        Some(&mut *self.inner)
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn description(&self) -> String {
        format!("{}; luma of RGB", self.inner.description())
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn own_bytes(&self, frame: &Layout) -> u128 {
        let pools = self.before.capacity() + self.after.capacity();
        match self.luma_layout(frame) {
            Ok(Some(luma)) => pools as u128 * luma.size() as u128 + self.inner.own_bytes(&luma),
            Ok(None) => self.inner.own_bytes(frame),
            Err(_) => 0,
        }
    }

    fn expect(&mut self, frame: &Layout, colour: &Colour) {
        match self.luma_layout(frame) {
            Ok(Some(luma)) => self.inner.expect(&luma, &Luma::luma_colour(*colour)),
            Ok(None) => self.inner.expect(frame, colour),
            // Reported when the frame is submitted.
            Err(_) => {}
        }
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let Some(layout) = self.luma_layout(input.layout())? else {
            self.waiting.push_back(None);
            return self.inner.submit(input, output, row_alignment);
        };
        let mut luma = Frame::new(layout, free(&self.before)?)?;
        make_luma(&self.threads, &input, &mut luma);
        luma.sequence = input.sequence;
        luma.born = input.born;
        luma.metadata.colour = Luma::luma_colour(input.metadata.colour);
        self.waiting.push_back(Some(Original {
            frame: input,
            output,
            row_alignment,
        }));
        let room = free(&self.after)?;
        self.inner.submit(luma, room, ALIGNMENT)
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
        let change = match self.planes {
            Planes::Gray => Change::Gray,
            _ => Change::Difference,
        };
        put_back(&self.threads, (&frame, &luma), change, &mut result);
        result.sequence = frame.sequence;
        result.born = frame.born;
        result.metadata = frame.into_parts().0;
        Ok(Some(result))
    }
}

/// Rows that a thread converts at a time.
const AT_ONCE: usize = 16;

/// Row `y` of each plane of a frame, whose planes are all as high as the frame.
pub(super) fn rows_at(frame: &Frame, y: usize) -> PlaneRows<'_> {
    let planes = frame.layout().planes().len();
    std::array::from_fn(|plane| if plane < planes { frame.row(plane, y) } else { &[] })
}

/// For each row of a frame that row of each plane, to write to. All planes are as high as the frame.
fn rows_mut(frame: &mut Frame) -> Vec<PlaneRowsMut<'_>> {
    let height = frame.layout().height();
    let mut planes: Vec<_> = frame.plane_rows_mut().into_iter().map(Vec::into_iter).collect();
    let mut at_height = || {
        let mut rows = PlaneRowsMut::default();
        for (row, plane) in rows.iter_mut().zip(&mut planes) {
            *row = plane.next().unwrap_or_default();
        }
        rows
    };
    (0..height).map(|_| at_height()).collect()
}

/// Stores the luma and the alpha of `from` in `luma`, whose chroma, if it has any, becomes neutral.
fn make_luma(threads: &Threads, from: &Frame, luma: &mut Frame) {
    let format = luma.format();
    let place = |channel| format.place(channel);
    let (luma_place, alpha_place) = (place(Channel::Luma), place(Channel::Alpha));
    let loops = luma_rows(from);
    let width = from.layout().width();
    threads.each_row(AT_ONCE, rows_mut(luma), |y, mut rows| {
        let mut words = vec![0; width];
        loops.luma(rows_at(from, y), &mut words);
        put(format, luma_place, &words, &mut rows);
        if format.has_alpha() {
            take(from, Channel::Alpha, y, &mut words);
            put(format, alpha_place, &words, &mut rows);
        }
        if format.model() == ColourModel::Yuv {
            words.fill(1 << (format.depth() - 1));
            put(format, place(Channel::Cb), &words, &mut rows);
            put(format, place(Channel::Cr), &words, &mut rows);
        }
    });
}

/// Stores `from` with the new luma of `after` in `to`.
fn put_back(threads: &Threads, (from, after): (&Frame, &Frame), change: Change, to: &mut Frame) {
    let loops = luma_rows(from);
    // Alpha in a plane of its own.
    let alpha = from
        .format()
        .place(Channel::Alpha)
        .filter(|&(plane, _)| plane > 0);
    threads.each_row(AT_ONCE, rows_mut(to), |y, rows| {
        let mut words = Vec::new();
        take(after, Channel::Luma, y, &mut words);
        if let Some((plane, _)) = alpha {
            rows[plane].copy_from_slice(from.row(plane, y));
        }
        loops.put_back(rows_at(from, y), &words, change, rows);
    });
}

/// The loops for RGB frames of this one's format and colour facts.
pub(super) fn luma_rows(frame: &Frame) -> LumaRows {
    LumaRows::new(
        frame.format(),
        luma_of_rgb(frame.metadata.colour.matrix, frame.metadata.primaries()),
    )
}

/// Replaces `samples` by the samples of one channel of row `y`.
pub(super) fn take(frame: &Frame, channel: Channel, y: usize, samples: &mut Vec<u16>) {
    samples.clear();
    let Some((plane, at)) = frame.format().place(channel) else {
        return;
    };
    let row = frame.row(plane, y);
    let words = row.as_chunks::<2>().0;
    let word = |word: &[u8; 2]| u16::from_le_bytes(*word);
    // With one sample per pixel the compiler vectorizes the loop.
    match (
        frame.format().bytes_per_sample(),
        frame.format().planes()[plane].channels.len(),
    ) {
        (1, 1) => samples.extend(row.iter().map(|&b| u16::from(b))),
        (1, step) => samples.extend(row[at..].iter().step_by(step).map(|&b| u16::from(b))),
        (_, 1) => samples.extend(words.iter().map(word)),
        (_, step) => samples.extend(words[at..].iter().step_by(step).map(word)),
    }
}

/// Writes the samples of one channel of `format` into its row. `place` is its plane, and its position in a
/// pixel.
fn put(format: PixelFormat, place: Option<(usize, usize)>, samples: &[u16], rows: &mut PlaneRowsMut<'_>) {
    let Some((plane, at)) = place else {
        return;
    };
    let step = format.planes()[plane].channels.len();
    let row = &mut *rows[plane];
    if format.bytes_per_sample() == 1 {
        for (pixel, &sample) in row.chunks_exact_mut(step).zip(samples) {
            pixel[at] = sample as u8;
        }
    } else {
        for (pixel, sample) in row.as_chunks_mut::<2>().0.chunks_exact_mut(step).zip(samples) {
            pixel[at] = sample.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::Cpu;
    use crate::engine::none::NoFilter;
    use crate::engine::reference::Reference;
    use crate::filter::{Algorithm, Border, Chain};

    const COLOURS: [Channel; 3] = [Channel::Red, Channel::Green, Channel::Blue];

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
            for mut rows in rows_mut(&mut frame) {
                let mut next = || {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    (state >> 40) as u16 & format.max_value() as u16
                };
                let samples: Vec<u16> = (0..width).map(|_| next()).collect();
                put(format, format.place(channel), &samples, &mut rows);
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
        PixelFormat::integers().filter(|format| format.model() == ColourModel::Rgb)
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
                let after = run(&mut *around(inner, &planes, true, 2).unwrap(), frame);
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
                for mut rows in rows_mut(&mut frame) {
                    put(format, format.place(Channel::Alpha), &[max as u16; 13], &mut rows);
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
                let result = run(&mut *around(inner, &planes, true, 2).unwrap(), copy);
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

    /// The bounds of docs/arithmetic.md, at the pixels where the weights are off the most and beside them.
    #[test]
    fn luma_is_near_that_of_real_numbers() {
        let format = PixelFormat::from_name("gbrp16le").unwrap();
        let planes = Planes::Gray;
        // Ten-thousandths of H.273's weights, and of the levels that their rounding leaves.
        for (matrix, exact, most) in [
            (1, [2126, 7152, 722], 3_500),
            (4, [3000, 5900, 1100], 2_400),
            (6, [2990, 5870, 1140], 3_700),
            (7, [2120, 7010, 870], 7_400),
            (9, [2627, 6780, 593], 6_000),
        ] {
            let error = |of: usize| i64::from(luma_of_rgb(matrix, 2)[of]) * 10_000 - exact[of] * 65_536;
            for sign in [1, -1] {
                let worst = [0, 1, 2].map(|of| if error(of) * sign > 0 { 65_535 } else { 0 });
                let by_weights = (0..3).map(|of| error(of) * worst[of]).sum::<i64>() / 65_536;
                assert!(
                    (most - 100..=most).contains(&by_weights.abs()),
                    "{matrix}: {by_weights}"
                );
                let layout = Layout::new(format, 1000, 1, 1).unwrap();
                let mut frame = Frame::new(layout, Buffer::unpooled(Pageable.allocate(0).unwrap())).unwrap();
                frame.metadata.colour.matrix = matrix;
                let rows: [Vec<i64>; 3] =
                    worst.map(|sample| (0..1000).map(|n| (sample - n).max(0)).collect());
                for (channel, row) in COLOURS.into_iter().zip(&rows) {
                    let samples: Vec<u16> = row.iter().map(|&sample| sample as u16).collect();
                    put(
                        format,
                        format.place(channel),
                        &samples,
                        &mut rows_mut(&mut frame)[0],
                    );
                }
                let inner = Box::new(NoFilter::default());
                let gray = run(&mut *around(inner, &planes, true, 1).unwrap(), frame);
                let mut luma = Vec::new();
                take(&gray, Channel::Green, 0, &mut luma);
                let off = luma.iter().enumerate().map(|(n, &found)| {
                    let real: i64 = (0..3).map(|of| exact[of] * rows[of][n]).sum();
                    (i64::from(found) * 10_000 - real).abs()
                });
                let off = off.max().unwrap();
                assert!((most..=5_000 + most).contains(&off), "{matrix}: {off}");
            }
        }
    }

    #[test]
    fn weights_follow_the_matrix_then_the_primaries() {
        let of = luma_of_rgb;
        assert_eq!(of(0, 2), of(1, 9));
        assert_eq!(of(0, 9), of(9, 1));
        assert_eq!(of(2, 6), of(5, 1));
        // A part of one is the light of a primary of P3, as its points and those of the white make it.
        for (primaries, white) in [(11, [0.314, 0.351]), (12, [0.3127, 0.329])] {
            let found = of(0, primaries).map(|weight| f64::from(weight) / 65536.0);
            for k in 0..2 {
                let points = [[0.68, 0.32], [0.265, 0.69], [0.15, 0.06]];
                // With the light of each, x / y, 1 and z / y add up to those of the white.
                let sum = |of: &dyn Fn([f64; 2]) -> f64| -> f64 {
                    points
                        .iter()
                        .zip(found)
                        .map(|(&point, light)| light * of(point))
                        .sum()
                };
                let part: &dyn Fn([f64; 2]) -> f64 = match k {
                    0 => &|[x, y]| x / y,
                    _ => &|[x, y]| (1.0 - x - y) / y,
                };
                assert!((sum(part) - part(white)).abs() < 1e-3, "{primaries} {found:?}");
            }
        }
        for matrix in 0..12 {
            assert_eq!(of(matrix, 2).iter().sum::<u32>(), 65536);
        }
    }
}
