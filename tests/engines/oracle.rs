//! What the engines are held against: real-number convolution in f64, and frames of random pixels.

use crate::whole_matrix::is_whole_matrix;
use framepipe::engine::Engine;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::reference::Reference;
use framepipe::filter::{Algorithm, Border, Chain, Filter, Mask, Planes, Response};
use framepipe::frame::{Allocator, Buffer, Channel, Colour, Frame, Layout, Pageable, PixelFormat};

/// True for every other `turn`, or for all with FRAMEPIPE_WHOLE_MATRIX=1.
pub(crate) fn is_tried(turn: usize) -> bool {
    turn.is_multiple_of(2) || is_whole_matrix()
}

/// A small, seeded generator (xorshift64*), so that a failure can be repeated.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

pub(crate) fn format(name: &str) -> PixelFormat {
    PixelFormat::from_name(name).unwrap()
}

pub(crate) fn empty_frame(format: PixelFormat, width: usize, height: usize, alignment: usize) -> Frame {
    let layout = Layout::new(format, width, height, alignment).unwrap();
    let memory = Pageable.allocate(layout.size()).unwrap();
    Frame::new(layout, Buffer::unpooled(memory)).unwrap()
}

/// Writes a sample as the format stores it.
pub(crate) fn put(frame: &mut Frame, plane: usize, x: usize, y: usize, channel: usize, value: u32) {
    let channels = frame.layout().planes()[plane].channels;
    let (bytes, shift) = (frame.format().bytes_per_sample(), frame.format().shift());
    let at = (x * channels + channel) * bytes;
    let word = ((value << shift) as u16).to_le_bytes();
    frame.row_mut(plane, y)[at..at + bytes].copy_from_slice(&word[..bytes]);
}

/// Calls `make(plane, x, y, channel)` for each sample of a new frame.
pub(crate) fn frame_of(
    format: PixelFormat,
    width: usize,
    height: usize,
    alignment: usize,
    mut make: impl FnMut(usize, usize, usize, usize) -> u32,
) -> Frame {
    let mut frame = empty_frame(format, width, height, alignment);
    for (index, plane) in frame.layout().planes().to_vec().into_iter().enumerate() {
        for y in 0..plane.height {
            for x in 0..plane.width {
                for c in 0..plane.channels {
                    let value = make(index, x, y, c);
                    put(&mut frame, index, x, y, c, value);
                }
            }
        }
    }
    frame
}

/// White noise over the whole range, with runs of the extremes in it.
pub(crate) fn noise(format: PixelFormat, width: usize, height: usize, random: &mut Random) -> Frame {
    let max = format.max_value();
    let alignment = [1, 2, 64][random.below(3) as usize];
    frame_of(format, width, height, alignment, |_, _, _, _| {
        match random.below(8) {
            0 => 0,
            1 => max,
            _ => random.below(u64::from(max) + 1) as u32,
        }
    })
}

/// A copy with another memory of another stride.
pub(crate) fn copy(frame: &Frame, alignment: usize) -> Frame {
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let mut copy = empty_frame(frame.format(), width, height, alignment);
    for (index, plane) in frame.layout().planes().iter().enumerate() {
        for y in 0..plane.height {
            copy.row_mut(index, y).copy_from_slice(frame.row(index, y));
        }
    }
    copy.metadata = frame.metadata.clone();
    copy.sequence = frame.sequence;
    copy
}

/// The bits of a sample as they are stored.
pub(crate) fn stored(frame: &Frame, index: usize, x: usize, y: usize, channel: usize) -> u32 {
    let at = x * frame.layout().planes()[index].channels + channel;
    let bytes = frame.format().bytes_per_sample();
    let sample = &frame.row(index, y)[at * bytes..(at + 1) * bytes];
    sample
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// Every sample of a frame, tagged with where it is, for comparisons that tell the place.
pub(crate) fn first_difference(a: &Frame, b: &Frame) -> Option<String> {
    for (index, plane) in a.layout().planes().iter().enumerate() {
        for y in (0..plane.height).filter(|&y| a.row(index, y) != b.row(index, y)) {
            for x in 0..plane.width {
                for c in 0..plane.channels {
                    let (p, q) = (stored(a, index, x, y, c), stored(b, index, x, y, c));
                    if p != q {
                        return Some(format!(
                            "plane {index} channel {c} at ({x}, {y}): {p:#x} and {q:#x}"
                        ));
                    }
                }
            }
        }
    }
    None
}

/// What an engine makes of a frame; the result's rows are aligned to `alignment` bytes.
pub(crate) fn run(engine: &mut dyn Engine, frame: &Frame, alignment: usize) -> Frame {
    // Poisoned, so that a sample nobody writes shows.
    let mut memory = Pageable.allocate(frame.layout().size() * 2 + 4096).unwrap();
    memory.bytes_mut().fill(0xA5);
    engine
        .submit(copy(frame, 64), Buffer::unpooled(memory), alignment)
        .unwrap();
    engine.collect().unwrap().unwrap()
}

/// Fails unless every instruction set that this machine has gives the reference's bits, twice: what one frame
/// left behind in an engine's memory shows in the next.
pub(crate) fn compare(chain: &Chain, frame: &Frame, threads: usize, alignment: usize) {
    let expected = run(&mut Reference::new(chain.clone()), frame, 1);
    for set in InstructionSet::available() {
        let mut engine = Cpu::with_instruction_set(chain.clone(), threads, set).unwrap();
        for turn in 0..2 {
            let place = first_difference(&expected, &run(&mut engine, frame, alignment));
            let (format, width, height) = (frame.format(), frame.layout().width(), frame.layout().height());
            assert_eq!(
                place, None,
                "{set}, turn {turn}, {format} {width}x{height}, {threads} threads: {chain:?}"
            );
        }
    }
}

pub(crate) fn chain(mask: Mask, border: Border, algorithm: Algorithm) -> Chain {
    let filter = Filter::of_mask("test", mask);
    Chain {
        filters: vec![filter],
        border,
        planes: Planes::All,
        algorithm,
        alpha: Default::default(),
    }
}

/// The real-number result of one filter for one sample, before rounding: correlation of the signal above the
/// zero level, and what the filter makes of its masks' sums.
pub(crate) fn real(
    frame: &Frame,
    colour: &Colour,
    filter: &Filter,
    border: Border,
    place: (usize, usize, usize, usize),
) -> f64 {
    let (index, x, y, c) = place;
    let plane = frame.layout().planes()[index];
    let channel = frame.format().planes()[index].channels[c];
    let level = f64::from(colour.zero_level(frame.format(), channel));
    let eight = f64::from(1 << (frame.format().depth() - 8));
    let outside = match border {
        Border::Constant(v) if !channel.is_chroma() && channel != Channel::Alpha => {
            (v * eight).round() - level
        }
        Border::Constant(_) if channel == Channel::Alpha => f64::from(frame.format().max_value()),
        _ => 0.0,
    };
    let (rx, ry) = (filter.mask.width() as i64 / 2, filter.mask.height() as i64 / 2);
    let sum = |mask: &Mask| {
        let mut sum = 0.0;
        for j in 0..mask.height() {
            for i in 0..mask.width() {
                let at = (
                    border.index(x as i64 + i as i64 - rx, plane.width),
                    border.index(y as i64 + j as i64 - ry, plane.height),
                );
                let signal = match at {
                    (Some(x), Some(y)) => f64::from(frame.sample(index, x, y, c)) - level,
                    _ => outside,
                };
                sum += mask.at(i, j) * signal;
            }
        }
        sum
    };
    let sum = match &filter.response {
        Response::Linear => sum(&filter.mask),
        Response::Absolute => sum(&filter.mask).abs(),
        Response::Magnitude { across, scale } => {
            let scale = f64::from(scale.numerator()) / f64::from(scale.denominator());
            scale * sum(&filter.mask).hypot(sum(across))
        }
        Response::Largest { .. } => filter.masks().map(sum).fold(f64::MIN, f64::max),
        Response::WideGaussian { .. } => panic!("tests/engines/wide_gaussians.rs has an oracle of its own"),
        other => panic!("no oracle of {other:?}"),
    };
    let bias = if channel.is_chroma() || channel == Channel::Alpha {
        0.0
    } else {
        filter.bias.value() * eight
    };
    sum + level + bias
}
