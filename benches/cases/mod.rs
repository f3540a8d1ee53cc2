//! The kinds of inner loops that the CPU engine has, each as one filter on one small picture.

use framepipe::engine::Engine;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::filter::{Algorithm, Border, Chain, Mask, Planes};
use framepipe::frame::{Allocator, Buffer, Frame, Layout, Pageable};

/// What a case convolves with.
#[derive(Clone, Copy)]
enum Weights {
    /// Full rank and no symmetry.
    Full(usize),
    /// A named mask.
    Named(&'static str),
}

/// One kind of inner loop.
pub(crate) struct Case {
    /// What it is called in tables.
    pub(crate) name: &'static str,
    weights: Weights,
    format: &'static str,
    algorithm: Algorithm,
}

const fn case(name: &'static str, weights: Weights, format: &'static str, algorithm: Algorithm) -> Case {
    Case {
        name,
        weights,
        format,
        algorithm,
    }
}

/// All of them.
pub(crate) const CASES: [Case; 25] = {
    use Algorithm::{Direct, Separable};
    use Weights::{Full, Named};
    [
        case("direct-3x3", Full(3), "gray", Direct),
        case("direct-7x7", Full(7), "gray", Direct),
        case("direct-15x15", Full(15), "gray", Direct),
        case("direct-7x7-rgb24", Full(7), "rgb24", Direct),
        case("direct-7x7-10-bit", Full(7), "gray10le", Direct),
        // In groups.
        case("direct-5x5-16-bit", Full(5), "gray16le", Direct),
        case("direct-7x7-16-bit", Full(7), "gray16le", Direct),
        // By Fourier transforms, in 32 bits and in 64.
        case("direct-25x25", Full(25), "gray", Direct),
        case("direct-25x25-16-bit", Full(25), "gray16le", Direct),
        case("folded-7x7", Named("gaussian:size=7"), "gray", Direct),
        case("symmetric-3x3", Named("gaussian:size=3"), "gray", Direct),
        case("symmetric-3x3-rgb24", Named("gaussian:size=3"), "rgb24", Direct),
        case("box-15-direct", Named("box:size=15"), "gray", Direct),
        case("separable-7", Named("gaussian:size=7"), "gray", Separable),
        case("separable-25", Named("gaussian:size=25"), "gray", Separable),
        case("separable-7-rgb24", Named("gaussian:size=7"), "rgb24", Separable),
        case(
            "separable-7-16-bit",
            Named("gaussian:size=7"),
            "gray16le",
            Separable,
        ),
        case("box-3", Named("box:size=3"), "gray", Direct),
        case("box-7", Named("box:size=7"), "gray", Separable),
        case("box-9-rgb24", Named("box:size=9"), "rgb24", Separable),
        case("box-25", Named("box:size=25"), "gray", Separable),
        case("box-41-rgb24", Named("box:size=41"), "rgb24", Separable),
        case("under-alpha-3-rgba", Named("gaussian:size=3"), "rgba", Direct),
        case("under-alpha-3-gbrap", Named("gaussian:size=3"), "gbrap", Direct),
        case(
            "under-alpha-3-rgba64",
            Named("gaussian:size=3"),
            "rgba64le",
            Direct,
        ),
    ]
};

/// A case ready to run again and again.
pub(crate) struct Run {
    engine: Cpu,
    picture: Vec<u8>,
    layout: Layout,
}

impl Run {
    /// The case on one thread with the instructions of `set`, on a picture of `width` x `height`.
    pub(crate) fn new(case: &Case, set: InstructionSet, width: usize, height: usize) -> Run {
        let filter = match case.weights {
            Weights::Named(spec) => spec.parse().unwrap(),
            Weights::Full(size) => {
                let weight = |k: usize| {
                    (1 + (7 * (k / size) + 5 * (k % size) + 3 * (k / size) * (k % size)) % 11) as i64
                };
                let q: Vec<i64> = (0..size * size).map(weight).collect();
                let total = q.iter().sum();
                let mask = Mask::from_integers(size, size, q, total).unwrap();
                framepipe::filter::Filter::of_mask(case.name, mask)
            }
        };
        let chain = Chain {
            filters: vec![filter],
            border: Border::Replicate,
            planes: Planes::All,
            algorithm: case.algorithm,
            alpha: Default::default(),
        };
        let format = case.format.parse().unwrap();
        let layout = Layout::new(format, width, height, 64).unwrap();
        let mut state = 1_u32;
        let picture = (0..layout.size()).map(|at| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // The high byte of a word stays within the format's depth.
            let high = format.bytes_per_sample() == 2 && at % 2 == 1;
            (state >> 24) as u8
                & if high {
                    (format.max_value() >> 8) as u8
                } else {
                    255
                }
        });
        Run {
            engine: Cpu::with_instruction_set(chain, 1, set).unwrap(),
            picture: picture.collect(),
            layout,
        }
    }

    /// What a frame needs: the picture, and room for the result.
    pub(crate) fn input(&self) -> (Frame, Buffer) {
        let memory = || Buffer::unpooled(Pageable.allocate(self.layout.size()).unwrap());
        let mut frame = Frame::new(self.layout, memory()).unwrap();
        frame.bytes_mut().copy_from_slice(&self.picture);
        (frame, memory())
    }

    /// Filters it.
    pub(crate) fn filter(&mut self, (frame, output): (Frame, Buffer)) -> Frame {
        self.engine.submit(frame, output, 64).unwrap();
        self.engine.collect().unwrap().unwrap()
    }
}
