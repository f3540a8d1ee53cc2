//! Every instruction set that this machine has against the reference, bit for bit: random masks of each shape that a fast path looks for, on sizes around
//! the widths of vectors and the heights of strips.

#![allow(clippy::unwrap_used)]

mod oracle;

use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::reference::Reference;
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Border, Chain, Filter, Mask, Plan, Planes};
use framepipe::frame::{Allocator, Buffer, Frame, Pageable};
use oracle::{Random, chain, copy, first_difference, format, noise};

const FORMATS: [&str; 12] = [
    "gray",
    "yuv420p",
    "nv12",
    "rgb24",
    "rgba",
    "ya8",
    "gray10le",
    "p010le",
    "yuv444p12le",
    "gray14le",
    "gray16le",
    "rgb48le",
];

const BORDERS: [Border; 6] = [
    Border::Replicate,
    Border::Zero,
    Border::Constant(200.0),
    Border::Reflect,
    Border::Mirror,
    Border::Wrap,
];

fn run(engine: &mut dyn Engine, frame: &Frame) -> Frame {
    // Poisoned, so that a sample nobody writes shows.
    let mut memory = Pageable.allocate(frame.layout().size() + 4096).unwrap();
    memory.bytes_mut().fill(0x5A);
    engine
        .submit(copy(frame, 32), Buffer::unpooled(memory), 1)
        .unwrap();
    engine.collect().unwrap().unwrap()
}

/// Compares each set with the reference; false if the format cannot hold the mask's weights.
fn agrees(chain: &Chain, frame: &Frame, threads: usize) -> bool {
    if Plan::new(chain, frame.format(), &frame.metadata.colour).is_err() {
        return false;
    }
    let expected = run(&mut Reference::new(chain.clone()), frame);
    for set in InstructionSet::available() {
        let mut engine = Cpu::with_instruction_set(chain.clone(), threads, set).unwrap();
        // Twice, so that what one frame left behind in an engine's memory shows in the next.
        for turn in 0..2 {
            let place = first_difference(&expected, &run(&mut engine, frame));
            let (format, width, height) = (frame.format(), frame.layout().width(), frame.layout().height());
            assert_eq!(
                place, None,
                "{set}, turn {turn}, {format} {width}x{height}, {threads} threads: {chain:?}"
            );
        }
    }
    true
}

fn odd(random: &mut Random, most: u64) -> usize {
    1 + 2 * random.below(most.div_ceil(2)) as usize
}

/// A random integer mask of one of the shapes that engines treat in their own way.
fn mask(random: &mut Random) -> Mask {
    let (w, h) = (odd(random, 17), odd(random, 17));
    let range = [3, 20, 200, 3000][random.below(4) as usize];
    let low = if random.below(2) == 0 { 0 } else { -(range / 2) };
    let mut any = || low + random.below(range as u64) as i64;
    let mut q: Vec<i64> = (0..w * h).map(|_| any()).collect();
    let (row, column): (Vec<i64>, Vec<i64>) =
        ((0..w).map(|_| any()).collect(), (0..h).map(|_| any()).collect());
    match random.below(6) {
        0 => {}
        1 | 2 => {
            let sign = if random.below(2) == 0 { 1 } else { -1 };
            for j in 0..h {
                for i in 0..w / 2 {
                    q[j * w + w - 1 - i] = sign * q[j * w + i];
                }
                if sign < 0 {
                    q[j * w + w / 2] = 0;
                }
            }
        }
        3 => q = (0..w * h).map(|k| row[k % w] * column[k / w]).collect(),
        4 => q.fill(1 + random.below(5) as i64),
        _ => q.iter_mut().step_by(2).for_each(|v| *v = 0),
    }
    let total: i64 = q.iter().sum();
    let magnitude: i64 = q.iter().map(|v| v.abs()).sum();
    // A unit gain, a divisor that leaves a large gain, none at all, one that is no power of two.
    let divisor = match random.below(4) {
        0 if total != 0 => total,
        1 => 1 + magnitude / 30,
        2 => 1,
        _ => magnitude.max(1),
    };
    Mask::from_integers(w, h, q, divisor).unwrap()
}

#[test]
fn random_masks_give_the_references_bits() {
    let mut random = Random::new(20);
    let mut compared = 0;
    for k in 0..700 {
        let frame_format = format(FORMATS[k % FORMATS.len()]);
        let width = [1, 2, 7, 15, 31, 32, 33, 63, 65, 97][random.below(10) as usize];
        let height = [1, 2, 3, 13, 31, 37][random.below(6) as usize];
        let algorithm = [Algorithm::Direct, Algorithm::Auto, Algorithm::Separable][random.below(3) as usize];
        let border = BORDERS[random.below(6) as usize];
        let mut chain = chain(mask(&mut random), border, algorithm);
        chain.filters[0].bias = [0.0, 0.0, 100.0, -37.5, 60000.0][random.below(5) as usize];
        chain.planes = ["all", "all+alpha", "luma"][random.below(3) as usize]
            .parse()
            .unwrap();
        let frame = noise(frame_format, width, height, &mut random);
        compared += usize::from(agrees(&chain, &frame, 1 + random.below(3) as usize));
    }
    assert!(compared > 400, "{compared}");
}

#[test]
fn pictures_of_several_strips_give_the_references_bits() {
    let mut random = Random::new(21);
    for (k, spec) in [
        "box:size=3",
        "box:size=7",
        "box:size=15",
        "box:size=41",
        "gaussian:size=9",
        "gaussian:size=25",
        "sobel-x",
        "log:size=9:sigma=1.4",
        "motion:length=15:angle=30",
        "disk:radius=9",
        "laplacian8",
    ]
    .into_iter()
    .enumerate()
    {
        let filter: Filter = spec.parse().unwrap();
        for (name, threads) in [
            ("gray", 1),
            ("rgb24", 2),
            ("gray10le", 3),
            ("gray16le", 2),
            ("rgba", 2),
        ] {
            let chain = Chain {
                filters: vec![filter.clone()],
                border: BORDERS[k % 6],
                planes: Planes::All,
                algorithm: Algorithm::Auto,
            };
            // Tall for strips of rows, wide for long rows.
            for (width, height) in [(101, 151), (811, 23)] {
                let frame = noise(format(name), width, height, &mut random);
                assert!(agrees(&chain, &frame, threads), "{spec} {name}");
            }
        }
    }
}

#[test]
fn an_instruction_set_that_the_machine_lacks_is_refused() {
    for set in InstructionSet::ALL {
        let chain = chain(
            Mask::from_integers(1, 1, vec![1], 1).unwrap(),
            Border::Zero,
            Algorithm::Auto,
        );
        match Cpu::with_instruction_set(chain, 1, set) {
            Ok(engine) => assert!(set.is_available() && engine.description().contains(&set.to_string())),
            Err(EngineError::Unavailable(text)) => assert!(!set.is_available() && text.contains("portable")),
            Err(other) => panic!("{other}"),
        }
    }
}
