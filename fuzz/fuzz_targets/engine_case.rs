//! One chain on two frames, through the CPU engine and through the reference: they must agree in every bit.

use framepipe::engine::Engine;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::reference::Reference;
use framepipe::filter::{Algorithm, Border, Chain, Filter, Planes};
use framepipe::frame::{Allocator, Buffer, Colour, Frame, Layout, Pageable, PixelFormat, Range};

/// Bytes of the input that choose everything but the filters.
pub const HEAD: usize = 12;

const BORDERS: [&str; 8] = [
    "replicate",
    "zero",
    "reflect",
    "mirror",
    "wrap",
    "constant:77",
    "constant:255",
    "constant:0.5",
];

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
    pub border: &'static str,
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
}

fn pick<T: Copy>(choices: &[T], by: u8) -> T {
    choices[usize::from(by) % choices.len()]
}

impl Case {
    pub fn new(head: &[u8], most: (usize, usize)) -> Case {
        let formats: Vec<_> = PixelFormat::all().collect();
        let sets: Vec<_> = InstructionSet::available().collect();
        Case {
            format: pick(&formats, head[0]),
            size: (
                1 + usize::from(head[1]) % most.0,
                1 + usize::from(head[2]) % most.1,
            ),
            border: pick(&BORDERS, head[3]),
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
        }
    }

    /// Samples of a frame that are multiplied by each weight of a mask.
    pub fn samples(&self) -> usize {
        self.layout(self.size, 1).picture_bytes() / self.format.bytes_per_sample()
    }

    fn layout(&self, (width, height): (usize, usize), alignment: usize) -> Layout {
        Layout::new(self.format, width, height, alignment).unwrap()
    }

    fn frame(&self, size: (usize, usize)) -> Frame {
        let layout = self.layout(size, self.alignments.0);
        let buffer = Buffer::unpooled(Pageable.allocate(layout.size()).unwrap());
        let mut frame = Frame::new(layout, buffer).unwrap();
        frame.metadata.colour = Colour {
            range: self.range,
            ..Colour::default()
        };
        let most = self.format.max_value();
        let bytes = self.format.bytes_per_sample();
        let mut state = self.seed | 1;
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

    fn run(&self, engine: &mut dyn Engine, size: (usize, usize)) -> Result<Frame, String> {
        let output = Buffer::unpooled(Box::new(Vec::new()));
        let submitted = engine.submit(self.frame(size), output, self.alignments.1);
        submitted.map_err(|e| e.to_string())?;
        engine.collect().map_err(|e| e.to_string()).map(Option::unwrap)
    }

    /// Filters two frames, the second one smaller, so that an engine uses its memory again.
    pub fn check(&self, filters: Vec<Filter>) {
        let border: Border = self.border.parse().unwrap();
        let planes: Planes = self.planes.parse().unwrap();
        let chain = Chain {
            filters,
            border,
            planes,
            algorithm: self.algorithm,
        };
        let mut reference = Reference::new(chain.clone());
        let mut cpu = Cpu::with_instruction_set(chain.clone(), self.threads, self.set).unwrap();
        let smaller = (self.size.0.div_ceil(3), self.size.1.div_ceil(2));
        for size in [self.size, smaller] {
            let labels = || {
                chain
                    .filters
                    .iter()
                    .map(|f| f.label.as_str())
                    .collect::<Vec<_>>()
                    .join("|")
            };
            match (self.run(&mut reference, size), self.run(&mut cpu, size)) {
                (Ok(a), Ok(b)) => {
                    assert_eq!(a.metadata.colour, b.metadata.colour);
                    for (index, plane) in a.layout().planes().iter().enumerate() {
                        for y in 0..plane.height {
                            let same = a.row(index, y) == b.row(index, y);
                            assert!(same, "{} {self:?} {size:?}: plane {index}, row {y}", labels());
                        }
                    }
                }
                (Err(a), Err(b)) => assert_eq!(a, b, "{} {self:?}", labels()),
                (a, b) => {
                    panic!(
                        "{} {self:?}: reference {:?}, cpu {:?}",
                        labels(),
                        a.err(),
                        b.err()
                    )
                }
            }
        }
    }
}
