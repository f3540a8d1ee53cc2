//! One chain on several frames, through an engine and through the reference: they must agree in every bit.

use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::reference::Reference;
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Border, Chain, Filter};
use framepipe::frame::{Allocator, Buffer, Colour, Frame, Layout, Memory, PixelFormat, Range};
use std::collections::VecDeque;

/// Bytes of the input that choose everything but the filters.
pub const HEAD: usize = 12;

/// Levels of the constant border beside the one of `Border::ALL`: white, and one between two samples.
const LEVELS: [f64; 2] = [255.0, 0.5];

const PLANES: [&str; 12] = [
    "all",
    "all+alpha",
    "luma",
    "gray",
    "chroma",
    "y",
    "u,v",
    "r",
    "g,b",
    "a",
    "y,a",
    "r,a",
];

/// What the head chooses.
#[derive(Debug)]
pub struct Case {
    pub format: PixelFormat,
    pub size: (usize, usize),
    pub border: Border,
    pub planes: &'static str,
    pub algorithm: Algorithm,
    /// Of the rows of the input and of the output, in bytes.
    pub alignments: (usize, usize),
    pub range: Range,
    pub seed: u64,
    /// Noise, black and white, white, or noise whose alpha is mostly 0.
    pub style: u8,
    pub threads: usize,
    pub set: InstructionSet,
    /// Whether frames lie in memory that the engine asks for.
    pub own_memory: bool,
}

fn pick<T: Copy>(choices: &[T], by: u8) -> T {
    choices[usize::from(by) % choices.len()]
}

impl Case {
    pub fn new(head: &[u8], most: (usize, usize)) -> Case {
        let formats: Vec<_> = PixelFormat::integers().collect();
        let sets: Vec<_> = InstructionSet::available().collect();
        let borders = [&Border::ALL[..], &LEVELS.map(Border::Constant)].concat();
        Case {
            format: pick(&formats, head[0]),
            size: (
                1 + usize::from(head[1]) % most.0,
                1 + usize::from(head[2]) % most.1,
            ),
            border: pick(&borders, head[3]),
            planes: pick(&PLANES, head[4]),
            algorithm: pick(
                &[Algorithm::Auto, Algorithm::Direct, Algorithm::Separable],
                head[5],
            ),
            alignments: (pick(&[1, 2, 64], head[6]), pick(&[64, 1, 32], head[6] / 3)),
            range: pick(&[Range::Unspecified, Range::Limited, Range::Full], head[7]),
            seed: u64::from(head[8]) << 8 | u64::from(head[9]) | 0x9e37_79b9_0000_0000,
            style: head[10] % 4,
            // Threads are started anew for each case, so that most cases do with one.
            threads: if head[11] >= 0xf0 { 2 } else { 1 },
            set: sets[usize::from(head[11] & 0xf) % sets.len()],
            own_memory: head[7] / 3 % 2 == 1,
        }
    }

    /// Samples of a frame that are multiplied by each weight of a mask.
    pub fn samples(&self) -> usize {
        self.layout(self.size, 1).picture_bytes() / self.format.bytes_per_sample()
    }

    fn layout(&self, (width, height): (usize, usize), alignment: usize) -> Layout {
        Layout::new(self.format, width, height, alignment).unwrap()
    }

    /// The facts about colour of every frame.
    pub fn colour(&self) -> Colour {
        Colour {
            range: self.range,
            ..Colour::default()
        }
    }

    /// The sizes of the frames: `many` of the case's, then a smaller one, with which memory is used again.
    pub fn sizes(&self, many: usize) -> Vec<(usize, usize)> {
        let (width, height) = self.size;
        let smaller = (width.div_ceil(3), height.div_ceil(2));
        std::iter::repeat_n(self.size, many).chain([smaller]).collect()
    }

    /// Memory for a frame: the allocator's, or, without one, memory whose last byte is the frame's.
    fn memory(&self, size: usize, allocator: Option<&dyn Allocator>) -> Box<dyn Memory> {
        match allocator {
            Some(allocator) => allocator.allocate(size).unwrap(),
            None => Box::new(vec![0; size]),
        }
    }

    fn frame(&self, number: usize, size: (usize, usize), allocator: Option<&dyn Allocator>) -> Frame {
        let layout = self.layout(size, self.alignments.0);
        let buffer = Buffer::unpooled(self.memory(layout.size(), allocator));
        let mut frame = Frame::new(layout, buffer).unwrap();
        frame.metadata.colour = self.colour();
        let most = self.format.max_value();
        let bytes = self.format.bytes_per_sample();
        let mut state = (self.seed + ((number as u64) << 16)) | 1;
        for index in 0..layout.planes().len() {
            let channels = self.format.planes()[index].channels;
            for y in 0..layout.planes()[index].height {
                for (at, sample) in frame.row_mut(index, y).chunks_exact_mut(bytes).enumerate() {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let noise = (state >> 20) as u32;
                    let is_alpha = channels[at % channels.len()] == framepipe::frame::Channel::Alpha;
                    let value = match self.style {
                        1 if noise & 1 == 0 => 0,
                        1 | 2 => most,
                        3 if is_alpha && noise & 0x300 != 0 => 0,
                        _ => noise & most,
                    };
                    let word = (value as u16) << self.format.shift();
                    sample.copy_from_slice(&word.to_le_bytes()[..bytes]);
                }
            }
        }
        frame
    }

    /// What an engine makes of the frames, as many of them under way at a time as it can have.
    fn run(
        &self,
        engine: &mut dyn Engine,
        sizes: &[(usize, usize)],
        own_memory: bool,
    ) -> Vec<Result<Frame, EngineError>> {
        let allocators = own_memory.then(|| (engine.input_allocator(), engine.output_allocator()));
        let (input, output) = match &allocators {
            Some((input, output)) => (Some(&**input), Some(&**output)),
            None => (None, None),
        };
        let mut results: Vec<Option<Result<Frame, EngineError>>> = Vec::new();
        let mut under_way = VecDeque::new();
        let collect = |engine: &mut dyn Engine| engine.collect().map(Option::unwrap);
        for (number, size) in sizes.iter().copied().enumerate() {
            if under_way.len() >= engine.depth() {
                results[under_way.pop_front().unwrap()] = Some(collect(engine));
            }
            let room = self.memory(self.layout(size, self.alignments.1).size(), output);
            let frame = self.frame(number, size, input);
            results.push(
                match engine.submit(frame, Buffer::unpooled(room), self.alignments.1) {
                    Ok(()) => {
                        under_way.push_back(number);
                        None
                    }
                    Err(error) => Some(Err(error)),
                },
            );
        }
        for number in under_way {
            results[number] = Some(collect(engine));
        }
        results.into_iter().map(Option::unwrap).collect()
    }

    /// The filters with the border, the planes and the algorithm.
    pub fn chain(&self, filters: Vec<Filter>) -> Chain {
        Chain {
            filters,
            border: self.border,
            planes: self.planes.parse().unwrap(),
            algorithm: self.algorithm,
            alpha: Default::default(),
        }
    }

    /// Holds the CPU engine against the reference.
    pub fn check_cpu(&self, filters: Vec<Filter>) {
        let chain = self.chain(filters);
        let mut cpu = Cpu::with_instruction_set(chain.clone(), self.threads, self.set).unwrap();
        // As many at a time as the engine works on.
        self.check(&chain, &mut cpu, &self.sizes(self.threads), |_| false);
    }

    /// Holds an engine against the reference. False if it refused a frame for a reason that is excused.
    pub fn check(
        &self,
        chain: &Chain,
        engine: &mut dyn Engine,
        sizes: &[(usize, usize)],
        is_excused: impl Fn(&EngineError) -> bool,
    ) -> bool {
        let expected = self.run(&mut Reference::new(chain.clone()), sizes, false);
        let found = self.run(engine, sizes, self.own_memory);
        let labels: Vec<&str> = chain.filters.iter().map(|f| f.label.as_str()).collect();
        let case = || format!("{} {self:?}", labels.join("|"));
        for (number, pair) in expected.into_iter().zip(found).enumerate() {
            match pair {
                (Ok(a), Ok(b)) => {
                    assert_eq!(a.metadata.colour, b.metadata.colour);
                    for (index, plane) in a.layout().planes().iter().enumerate() {
                        for y in 0..plane.height {
                            let same = a.row(index, y) == b.row(index, y);
                            assert!(same, "{}: frame {number}, plane {index}, row {y}", case());
                        }
                    }
                }
                (_, Err(error)) if is_excused(&error) => return false,
                (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string(), "{}", case()),
                (a, b) => panic!("{}: reference {:?}, engine {:?}", case(), a.err(), b.err()),
            }
        }
        true
    }
}

/// Filters as the command line has them, three at most.
pub fn filters(text: &[u8]) -> Option<Vec<Filter>> {
    let text = std::str::from_utf8(text).ok()?;
    // A mask's file could be any file of this machine.
    if text.contains("file") {
        return None;
    }
    text.split('|')
        .take(3)
        .map(|filter| filter.parse().ok())
        .collect()
}

/// Products of a sample, at most.
pub fn largest_area(filters: &[Filter]) -> usize {
    let areas = filters.iter().map(|f| f.mask.width() * f.mask.height());
    areas.max().unwrap_or(1)
}
