//! The CUDA engine on a card: every variant gives the reference's bits, and the ring holds up. Without a card one line says so, and the tests that are
//! quick enough run on a stand-in.
#![allow(clippy::unwrap_used)]

mod standin;
mod tracks;

use framepipe::bench::{self, Bench, CeilingKind, Effort, Scope, Subject};
use framepipe::engine::cpu::Cpu;
use framepipe::engine::cuda::{
    Cuda, CudaOptions, KernelCase, KernelEffort, KernelTimer, MemoryVariant, Overlap, Reservation,
    SelectContext, Source, Table, devices, probe, recipes,
};
use framepipe::engine::reference::Reference;
use framepipe::engine::verify::{Case, cases, compare, fill_with_noise};
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Border, Chain, Filter, Plan, Planes};
use framepipe::frame::{Buffer, Channel, Colour, Frame, FramePool, Layout, PixelFormat};
use rayon::prelude::*;
use std::collections::{HashSet, VecDeque};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Tests of this file that need a card.
const TESTS: usize = 38;

/// Held to read by tests that compare bits, side by side, and to write by those that fill the card's memory, count it or take times.
static CARD: RwLock<()> = RwLock::new(());

/// The card beside other tests, or `None` where there is none.
fn card() -> Option<RwLockReadGuard<'static, ()>> {
    is_there().then(|| CARD.read().unwrap_or_else(PoisonError::into_inner))
}

/// The card and no other test on it, or `None` where there is none.
fn card_alone() -> Option<RwLockWriteGuard<'static, ()>> {
    is_there().then(|| CARD.write().unwrap_or_else(PoisonError::into_inner))
}

/// True where there is a card; else one visible line says how many tests that skips.
fn is_there() -> bool {
    static SAID: Once = Once::new();
    match probe() {
        Ok(_) => true,
        Err(reason) => {
            let required = std::env::var_os("FRAMEPIPE_REQUIRE_GPU").is_some();
            assert!(!required, "FRAMEPIPE_REQUIRE_GPU is set, but {reason}");
            // Straight to the stream, since the harness shows what a passing test prints to nobody.
            SAID.call_once(|| {
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED: {TESTS} GPU tests (tests/gpu.rs): {reason}"
                );
            });
            false
        }
    }
}

const BORDERS: [Border; Border::ALL.len()] = Border::ALL;

/// One for each way in which kernels differ: zero is a constant.
static EACH_BORDER: LazyLock<Vec<Border>> = LazyLock::new(|| {
    let all = Border::ALL.into_iter();
    all.filter(|border| *border != Border::Zero).collect()
});

fn chain(specs: &[&str], border: Border, planes: Planes, algorithm: Algorithm) -> Chain {
    Chain {
        filters: specs.iter().map(|s| s.parse::<Filter>().unwrap()).collect(),
        border,
        planes,
        algorithm,
    }
}

fn case(chain: Chain, format: &str, (width, height): (usize, usize), seed: u64) -> Case {
    Case {
        chain,
        format: PixelFormat::from_name(format).unwrap(),
        width,
        height,
        seed,
    }
}

fn options(memory: MemoryVariant) -> CudaOptions {
    CudaOptions {
        memory,
        ..CudaOptions::default()
    }
}

fn start(options: CudaOptions) -> impl FnMut(Chain) -> Result<Box<dyn Engine>, EngineError> {
    move |chain| Ok(Box::new(Cuda::new(chain, options)?))
}

fn hold_against_reference(cases: &[Case], algorithm: Algorithm, options: CudaOptions) {
    let found = compare(cases, algorithm, &mut start(options)).unwrap();
    assert!(
        found.frames > 0 && found.samples > 0,
        "nothing compared: {options:?}"
    );
    assert_eq!(found.differences, 0, "{options:?} {algorithm}: {found:?}");
}

/// Every variant with each of these algorithms, side by side: most of the time is compilation, which takes one core each.
fn hold_all_variants(cases: &[Case], algorithms: &[Algorithm]) {
    std::thread::scope(|scope| {
        for memory in MemoryVariant::ALL {
            for &algorithm in algorithms {
                scope.spawn(move || hold_against_reference(cases, algorithm, options(memory)));
            }
        }
    });
}

#[test]
fn every_variant_gives_the_references_bits() {
    let Some(_card) = card() else { return };
    let cases = cases(150);
    hold_all_variants(&cases, &[Algorithm::Direct, Algorithm::Separable]);
}

#[test]
fn every_border_of_every_variant_at_sizes_around_the_mask() {
    let Some(_card) = card() else { return };
    let mut list = Vec::new();
    for (index, border) in BORDERS.into_iter().enumerate() {
        for (spec, size) in [
            ("box:size=7", (1, 1)),
            ("gaussian:size=15:sigma=3", (2, 5)),
            ("gaussian:size=63:sigma=12", (33, 17)),
            ("box:size=5", (65, 33)),
        ] {
            for format in ["gray", "rgb24", "p010le"] {
                let chain = chain(&[spec], border, Planes::All, Algorithm::Auto);
                list.push(case(chain, format, size, index as u64 + 1));
            }
        }
    }
    hold_all_variants(&list, &[Algorithm::Direct, Algorithm::Separable]);
}

/// Masks around those from which a thread loops over columns, of every kind of sums and interleaving: eight, four and fewer rows a thread.
#[test]
fn several_rows_a_thread_give_the_references_bits_with_masks_of_any_size() {
    let Some(_card) = card() else { return };
    let specs = [
        "box:size=7",
        "box:size=9",
        "unsharp:sigma=2:amount=0.7",
        "gaussian:size=31:sigma=5",
        "gaussian:size=33:sigma=5",
        "gaussian:size=63:sigma=12",
        "mask:rows=1 4 6 4 1",
        "mask:rows=1;4;6;4;1",
    ];
    let formats = [
        "gray", "gray10le", "gray16le", "nv12", "rgb24", "rgba", "rgba64le",
    ];
    std::thread::scope(|scope| {
        for (turn, format) in formats.into_iter().enumerate() {
            scope.spawn(move || {
                for (index, spec) in specs.into_iter().enumerate() {
                    let border = EACH_BORDER[(turn + index) % EACH_BORDER.len()];
                    let chain = chain(&[spec], border, Planes::All, Algorithm::Direct);
                    // Tiles are 64 samples across and at most 32 rows.
                    let list = [(65, 33), (63, 95)].map(|size| case(chain.clone(), format, size, 4));
                    for block in [None, Some((32, 8)), Some((7, 3))] {
                        let options = CudaOptions {
                            block,
                            ..options(MemoryVariant::Registers)
                        };
                        hold_against_reference(&list, Algorithm::Direct, options);
                    }
                }
            });
        }
    });
}

/// Frames a little smaller and larger than the tiles of the tensor-core kernels, their rows at multiples of 64 bytes and tightly packed,
/// where every row begins elsewhere in memory.
#[test]
fn frames_around_the_tiles_of_tensor_cores() {
    let Some(_card) = card() else { return };
    let formats = [
        "gray", "nv12", "rgb24", "rgba", "ya8", "gray10le", "p010le", "gray16le", "rgb48le", "rgba64le",
    ];
    let specs = [
        "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5",
        "gaussian:size=5:sigma=1.1",
        "unsharp:sigma=2:amount=0.7",
        "gaussian:size=25:sigma=4",
        "mask:rows=1 4 6 4 1",
        "box:size=15",
        "sharpen",
    ];
    let sizes = [
        (511, 17),
        (513, 33),
        (128, 64),
        (129, 65),
        (43, 16),
        (257, 130),
        (1, 300),
        (700, 1),
    ];
    std::thread::scope(|scope| {
        for (turn, format) in formats.into_iter().enumerate() {
            for algorithm in [Algorithm::Direct, Algorithm::Separable] {
                scope.spawn(move || {
                    for (index, size) in sizes.into_iter().enumerate() {
                        let spec = specs[(turn + index) % specs.len()];
                        let border = EACH_BORDER[(2 * turn + index) % EACH_BORDER.len()];
                        let chain = chain(&[spec], border, Planes::All, algorithm);
                        let case = case(chain, format, size, (turn * 8 + index) as u64);
                        if !case.allows(algorithm) {
                            continue;
                        }
                        hold_against_reference(
                            std::slice::from_ref(&case),
                            algorithm,
                            options(MemoryVariant::Tensor),
                        );
                        hold_packed_rows(&case);
                    }
                });
            }
        }
    });
}

/// Masks that reach several pixels beyond the edges, of every size of a pixel: out of the tile and out of the card's memory, in frames of several tiles and in
/// such as are narrower than the mask, where tiles begin and end within pixels, too.
#[test]
fn what_lies_beyond_the_edges_of_every_format() {
    let Some(_card) = card() else { return };
    let formats = [
        "gray", "nv12", "rgb24", "rgba", "gray16le", "p010le", "rgb48le", "rgba64le",
    ];
    let works: Vec<_> = formats
        .into_iter()
        .flat_map(|format| EACH_BORDER.iter().map(move |&border| (format, border)))
        .enumerate()
        // Of each format one or two borders, and others of the next one, where processors have to do it.
        .filter(|(index, _)| {
            !is_stand_in() || (index % EACH_BORDER.len() + index / EACH_BORDER.len()).is_multiple_of(3)
        })
        .collect();
    works.par_iter().for_each(|&(index, (format, border))| {
        let (spec, algorithm) = if index % 2 == 0 {
            ("gaussian:size=11:sigma=2", Algorithm::Direct)
        } else {
            ("gaussian:size=15:sigma=3", Algorithm::Separable)
        };
        let chain = chain(&[spec], border, Planes::All, algorithm);
        let list = [(43, 21), (150, 37), (5, 3)].map(|size| case(chain.clone(), format, size, index as u64));
        hold_against_reference(&list, algorithm, options(MemoryVariant::Tensor));
        hold_packed_rows(&list[1]);
    });
}

/// Separable masks whose weights leave room for two blocks on a multiprocessor, by what a row holds of them or a column.
#[test]
fn long_separable_masks_on_tensor_cores() {
    let Some(_card) = card() else { return };
    let works = [
        ("gray", "gaussian:size=35:sigma=6", Border::Reflect),
        ("nv12", "gaussian:size=63:sigma=11", Border::Mirror),
        ("rgb24", "box:size=49", Border::Constant(77.0)),
        ("gray10le", "gaussian:size=41:sigma=7", Border::Wrap),
        ("p010le", "gaussian:size=25:sigma=4", Border::Replicate),
    ];
    works
        .par_iter()
        .enumerate()
        .for_each(|(index, &(format, spec, border))| {
            let chain = chain(&[spec], border, Planes::All, Algorithm::Separable);
            let list = [(301, 70), (33, 170)].map(|size| case(chain.clone(), format, size, index as u64));
            hold_against_reference(&list, Algorithm::Separable, options(MemoryVariant::Tensor));
            hold_packed_rows(&list[0]);
        });
}

/// Separable masks whose intermediate takes three bytes: all masks on deep samples, and large gains on others. At sizes below the mask, at primes and around
/// tiles.
#[test]
fn wide_separable_masks_on_tensor_cores() {
    let Some(_card) = card() else { return };
    let gains = [
        "mask:rows=300 -750 510;-100 250 -170;200 -500 340:divisor=7:bias=9",
        "mask:rows=2500 10000 -7500:divisor=3",
        "mask:rows=100;-200;300;-200;100:divisor=0.7:bias=-40",
    ];
    let others = [
        "gaussian:size=5:sigma=1.1",
        "mask:rows=1 4 6 4 1",
        "gaussian:size=15:sigma=2.5:bias=30",
        "sobel-x:bias=128",
        "box:size=9",
        "gaussian:size=17:sigma=3",
        "mask:rows=1;4;6;4;1",
    ];
    let deep = [
        "gray16le",
        "ya16le",
        "yuv420p16le",
        "p016le",
        "gbrp16le",
        "rgb48le",
        "rgba64le",
        "gray14le",
    ];
    let shallow = ["gray", "ya8", "nv12", "rgb24", "gray12le", "p012le"];
    let sizes = [
        (67, 131),
        (1, 1),
        (13, 7),
        (257, 37),
        (2, 5),
        (129, 65),
        (3, 90),
        (31, 257),
    ];
    let borders = [
        Border::Mirror,
        Border::Constant(77.0),
        Border::Replicate,
        Border::Zero,
        Border::Reflect,
        Border::Wrap,
    ];
    let every_other = |turn: usize, specs: Vec<&'static str>| specs.into_iter().skip(turn % 2).step_by(2);
    let deep = deep.into_iter().enumerate().flat_map(|(turn, format)| {
        every_other(turn, [&gains[..], &others[..]].concat()).map(move |spec| (format, spec))
    });
    let shallow = shallow
        .into_iter()
        .enumerate()
        .flat_map(|(turn, format)| every_other(turn, gains.to_vec()).map(move |spec| (format, spec)));
    let works = deep
        .chain(shallow)
        // The longest columns and rows that have room in the registers.
        .chain([
            ("gray16le", "gaussian:size=63:sigma=12"),
            ("rgb48le", "gaussian:size=31:sigma=6"),
        ]);
    let list: Vec<Case> = works
        .enumerate()
        .map(|(index, (format, spec))| {
            let border = borders[index % borders.len()];
            let planes = if index % 5 == 4 {
                Planes::AllWithAlpha
            } else {
                Planes::All
            };
            let chain = chain(&[spec], border, planes, Algorithm::Separable);
            let turn = index + index / sizes.len();
            case(chain, format, sizes[turn % sizes.len()], index as u64)
        })
        .collect();
    let mut met = HashSet::new();
    for case in &list {
        let plan = Plan::new(&case.chain, case.format, &Colour::default()).unwrap();
        let terms = SelectContext {
            memory: MemoryVariant::Auto,
            block: None,
            fuse: true,
            size: (case.width, case.height),
            card: &probe().unwrap(),
            table: &Table::rule(),
        };
        let first = recipes(&plan, &terms).unwrap().remove(0);
        assert!(
            first.source == Source::TensorSeparable && first.parameters.contains(&("WIDE", 1)),
            "{case:?}: {first:?}"
        );
        met.extend(first.parameters);
    }
    for kind in ["SAMPLE_BYTES", "COLUMN_BYTES"].map(|name| [(name, 1), (name, 2)]) {
        assert!(kind.iter().all(|kind| met.contains(kind)), "{kind:?}");
    }
    assert!(met.contains(&("SPLIT_SUM32", 0)) && met.contains(&("SPLIT_SUM32", 1)));
    let (next, list) = (&AtomicUsize::new(0), &list);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                while let Some(case) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                    hold_against_reference(
                        std::slice::from_ref(case),
                        Algorithm::Separable,
                        options(MemoryVariant::Tensor),
                    );
                    hold_packed_rows(case);
                }
            });
        }
    });
}

/// True if two filters of the case share a launch, on the cards whose tensor cores are used.
fn shares_a_launch(case: &Case) -> bool {
    let plan = Plan::new(&case.chain, case.format, &Colour::default()).unwrap();
    let card = probe().unwrap();
    let terms = SelectContext {
        memory: MemoryVariant::Tensor,
        block: None,
        fuse: true,
        size: (case.width, case.height),
        card: &card,
        table: &Table::rule(),
    };
    let recipes = recipes(&plan, &terms).unwrap();
    // Cards with little shared memory hold too few blocks with large masks.
    card.shared_per_multiprocessor < 128 << 10 || recipes.iter().any(|r| r.source == Source::TensorFused)
}

/// Chains whose steps share launches, at sizes below the masks, around a tile's 496 x 24 results and in planes of several sizes, with rows at multiples of
/// 64 bytes and tightly packed. Each keeps the bits that it has with every step in a launch of its own.
#[test]
fn masks_that_share_a_launch_give_the_references_bits() {
    let Some(_card) = card() else { return };
    let lopsided = "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5";
    // Weights of one byte, of which a launch takes more.
    let large = format!("mask:rows={}:divisor=128", ["1 2 1 2 1 -2 1 2 3"; 9].join(";"));
    let chains: [&[&str]; 8] = [
        &[lopsided, "sharpen"],
        &[
            "mask:rows=3 -2 5 1 7;1 1 1 1 1;0 2 0 -4 9;1 1 1 1 1;2 0 0 0 6:divisor=31",
            lopsided,
        ],
        &["box:size=3", &large],
        &[
            "mask:rows=1 2 3 4 5 6 7 8 9:divisor=45:bias=7",
            "mask:rows=1;-2;3",
        ],
        &["mask:rows=9;8;7;6;5;4;3;2;1:divisor=45", lopsided, "box:size=3"],
        &["box:size=7", lopsided, "sobel-x:bias=128", "laplacian8"],
        &["gaussian:size=5", "gaussian:size=7"],
        &["gaussian:size=9:sigma=2", lopsided],
    ];
    let sizes = [
        (1, 1),
        (1, 37),
        (41, 1),
        (2, 3),
        (5, 4),
        (495, 25),
        (497, 47),
        (512, 24),
        (503, 50),
        (993, 23),
    ];
    let mut turn = 0;
    for (index, specs) in chains.into_iter().enumerate() {
        for (place, border) in BORDERS.into_iter().enumerate() {
            let chain = chain(specs, border, Planes::All, Algorithm::Direct);
            // Every chain and border meets one small frame and one around the tile.
            for size in [sizes[(index + place) % 5], sizes[5 + (2 * index + place) % 5]] {
                turn += 1;
                let format = ["gray", "yuv420p", "gbrp"][turn % 3];
                let case = case(chain.clone(), format, size, turn as u64);
                assert!(shares_a_launch(&case), "{case:?}");
                let one = std::slice::from_ref(&case);
                hold_against_reference(one, Algorithm::Direct, options(MemoryVariant::Tensor));
                if turn % 4 == 0 {
                    hold_packed_rows(&case);
                }
                if turn % 8 == 1 {
                    let apart = CudaOptions {
                        fuse: false,
                        ..options(MemoryVariant::Tensor)
                    };
                    hold_against_reference(one, Algorithm::Direct, apart);
                }
            }
        }
    }
}

/// Frames of more tiles than the card works on at a time, so that each block of the tensor-core kernels goes through several, from plane to plane.
#[test]
fn frames_of_more_tiles_than_the_card_holds_blocks() {
    let Some(_card) = card() else { return };
    std::thread::scope(|scope| {
        for format in ["gray", "yuv420p", "nv12", "rgb24", "gray10le", "rgba"] {
            let lopsided = "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5";
            for (specs, algorithm) in [
                (vec![lopsided], Algorithm::Direct),
                (vec![lopsided, "sharpen"], Algorithm::Direct),
                (vec!["gaussian:size=5:sigma=1.1"], Algorithm::Separable),
            ] {
                scope.spawn(move || {
                    let chain = chain(&specs, Border::Mirror, Planes::All, algorithm);
                    let case = case(chain, format, (6150, 1411), 3);
                    hold_against_reference(
                        std::slice::from_ref(&case),
                        algorithm,
                        options(MemoryVariant::Tensor),
                    );
                    hold_packed_rows(&case);
                });
            }
        }
    });
}

/// Small frames whose planes take a launch each: the second one loads its tiles while the first is under way, but not those of a later step.
#[test]
fn launches_of_small_frames_run_side_by_side() {
    let Some(_card) = card() else { return };
    let lopsided = "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5";
    let chains: [(&[&str], Algorithm); 3] = [
        (&["gaussian:size=9:sigma=2"], Algorithm::Direct),
        (&["gaussian:size=7"], Algorithm::Separable),
        (&[lopsided, "gaussian:size=5", lopsided], Algorithm::Auto),
    ];
    let large = if is_stand_in() { (161, 47) } else { (637, 361) };
    std::thread::scope(|scope| {
        for (index, format) in ["nv12", "nv24", "p010le", "p016le"].into_iter().enumerate() {
            for (specs, algorithm) in chains {
                scope.spawn(move || {
                    let chain = chain(specs, BORDERS[index], Planes::All, algorithm);
                    let options = CudaOptions {
                        slots: 2,
                        fuse: false,
                        ..options(MemoryVariant::Tensor)
                    };
                    let mut engine = Cuda::new(chain.clone(), options).unwrap();
                    // Each slot's first frame of a size is launched step by step, its others as graphs.
                    let sizes = [[(65, 33); 5], [large; 5]].concat().into_iter();
                    let seeded = sizes.zip(0..);
                    let list: Vec<Case> = seeded
                        .map(|(size, seed)| case(chain.clone(), format, size, seed))
                        .collect();
                    hold_stream(&mut engine, &list, &mut Reference::new(chain));
                });
            }
        }
    });
}

/// Frames of one plane of bytes that the card has a block for each tile of, at odd sizes and with packed rows.
#[test]
fn frames_of_a_block_for_each_tile() {
    let Some(_card) = card() else { return };
    std::thread::scope(|scope| {
        for (format, size) in [
            ("gray", (1273, 719)),
            ("gray", (1001, 1003)),
            ("gray", (767, 637)),
            ("rgb24", (637, 479)),
            ("rgb24", (319, 477)),
            ("rgba", (479, 473)),
            ("rgba", (953, 479)),
            ("ya8", (637, 719)),
        ] {
            for (k, spec) in [
                "gaussian:size=5",
                "gaussian:size=7",
                "gaussian:size=9",
                "gaussian:size=15",
                "gaussian:size=31",
            ]
            .into_iter()
            .enumerate()
            {
                scope.spawn(move || {
                    let chain = chain(
                        &[spec],
                        BORDERS[k % BORDERS.len()],
                        Planes::All,
                        Algorithm::Separable,
                    );
                    let case = case(chain, format, size, 6);
                    hold_against_reference(
                        std::slice::from_ref(&case),
                        Algorithm::Separable,
                        options(MemoryVariant::Tensor),
                    );
                    hold_packed_rows(&case);
                });
            }
        }
    });
}

/// Frames so large that colour under alpha is convolved in blocks that have a multiprocessor for themselves, which no row and no column of tiles fits.
#[test]
fn frames_of_many_tiles_of_weighed_colours() {
    let Some(_card) = card() else { return };
    std::thread::scope(|scope| {
        for (spec, border, size) in [
            ("gaussian:size=3", Border::Wrap, (6331, 3571)),
            ("gaussian:size=15", Border::Mirror, (4201, 1999)),
            ("gaussian:size=25:sigma=4", Border::Constant(77.0), (4201, 1303)),
            ("gaussian:size=33:sigma=6", Border::Replicate, (4201, 1303)),
        ] {
            scope.spawn(move || {
                let chain = chain(&[spec], border, Planes::All, Algorithm::Separable);
                let case = case(chain, "rgba", size, 4);
                hold_against_reference(
                    std::slice::from_ref(&case),
                    Algorithm::Separable,
                    options(MemoryVariant::Tensor),
                );
                hold_packed_rows(&case);
            });
        }
    });
}

/// Whole masks of samples whose two bytes are taken apart: on one component and on several, with weights of one byte and of two, at odd sizes and on more
/// tiles than the card holds blocks.
#[test]
fn deep_samples_taken_apart_to_bytes() {
    let Some(_card) = card() else { return };
    let lopsided = |width: usize, height: usize, divisor: usize| {
        let weight = |i: usize, j: usize| ((7 * i + 5 * j * j) % 23) as i32 - 9;
        let row = |j: usize| (0..width).map(|i| weight(i, j).to_string()).collect::<Vec<_>>();
        let rows: Vec<String> = (0..height).map(|j| row(j).join(" ")).collect();
        format!("mask:rows={}:divisor={divisor}", rows.join(";"))
    };
    let masks = [
        lopsided(5, 5, 31),
        lopsided(5, 7, 32),
        lopsided(9, 9, 64),
        lopsided(9, 9, 77),
        lopsided(9, 5, 50),
        lopsided(11, 13, 90),
        lopsided(15, 15, 200),
        lopsided(13, 15, 256),
        lopsided(25, 25, 700),
        lopsided(21, 1, 30),
        lopsided(1, 31, 40),
        lopsided(63, 63, 4000),
    ];
    let formats = [
        "gray16le",
        "gray10le",
        "gray12le",
        "p010le",
        "p016le",
        "rgb48le",
        "rgba64le",
        "ya16le",
        "yuv420p10le",
    ];
    let sizes = [(1, 1), (1, 37), (41, 1), (7, 5), (129, 33), (255, 97), (257, 46)];
    let hold = |case: &Case, packed: bool| {
        hold_against_reference(
            std::slice::from_ref(case),
            Algorithm::Direct,
            options(MemoryVariant::Tensor),
        );
        if packed {
            hold_packed_rows(case);
        }
    };
    std::thread::scope(|scope| {
        for (f, format) in formats.into_iter().enumerate() {
            let (masks, hold) = (&masks, &hold);
            scope.spawn(move || {
                for (m, mask) in masks.iter().enumerate() {
                    let turn = 5 * f + m;
                    let chain = chain(
                        &[mask],
                        BORDERS[turn % BORDERS.len()],
                        Planes::All,
                        Algorithm::Direct,
                    );
                    for size in [sizes[turn % 7], sizes[(turn + 3) % 7]] {
                        let case = case(chain.clone(), format, size, turn as u64);
                        hold(&case, turn % 3 == 0);
                    }
                }
            });
        }
        for (format, mask, size) in [
            ("gray16le", 3, (4150, 1411)),
            ("gray10le", 6, (4150, 1411)),
            ("p010le", 2, (4150, 1412)),
            ("rgb48le", 3, (2150, 1411)),
            ("rgb48le", 8, (2150, 811)),
        ] {
            let (mask, hold) = (&masks[mask], &hold);
            scope.spawn(move || {
                let chain = chain(&[mask], Border::Mirror, Planes::All, Algorithm::Direct);
                hold(&case(chain, format, size, 5), true);
            });
        }
    });
}

/// The case's frame in memory from a pool, its rows aligned to `alignment` bytes.
fn frame_in(buffer: Buffer, case: &Case, alignment: usize) -> Frame {
    let noise = case.frame().unwrap();
    let layout = Layout::new(case.format, case.width, case.height, alignment).unwrap();
    let mut frame = Frame::new(layout, buffer).unwrap();
    for (plane, place) in layout.planes().iter().enumerate() {
        for y in 0..place.height {
            frame.row_mut(plane, y).copy_from_slice(noise.row(plane, y));
        }
    }
    frame.metadata = noise.metadata.clone();
    frame
}

/// Every row of every plane is the same in both frames, whatever lies between the rows.
fn assert_same_rows(expected: &Frame, got: &Frame, what: impl Display) {
    for (plane, place) in expected.layout().planes().iter().enumerate() {
        for y in 0..place.height {
            assert!(
                expected.row(plane, y) == got.row(plane, y),
                "{what}: plane {plane} row {y}"
            );
        }
    }
}

/// Filters a frame whose rows follow each other without a gap, on both ways.
fn hold_packed_rows(case: &Case) {
    let unpooled = || Buffer::unpooled(Box::new(Vec::new()));
    let mut reference = Reference::new(case.chain.clone());
    reference.submit(case.frame().unwrap(), unpooled(), 1).unwrap();
    let expected = reference.collect().unwrap().unwrap();
    let mut engine = Cuda::new(case.chain.clone(), options(MemoryVariant::Tensor)).unwrap();
    let pool = FramePool::new(2, engine.input_allocator());
    let frame = frame_in(pool.try_take().unwrap(), case, 1);
    engine.submit(frame, pool.try_take().unwrap(), 1).unwrap();
    let got = engine.collect().unwrap().unwrap();
    assert_same_rows(&expected, &got, format_args!("{case:?}"));
}

#[test]
fn choices_of_planes_copy_and_fill_the_others() {
    let Some(_card) = card() else { return };
    let only = |list: &[Channel]| Planes::Only(list.to_vec());
    let choices = [
        ("nv12", Planes::Luma),
        ("nv12", Planes::Gray),
        ("nv12", only(&[Channel::Cb])),
        ("yuv420p10le", Planes::Chroma),
        ("yuv420p", Planes::Gray),
        ("rgb24", only(&[Channel::Green])),
        ("rgba", only(&[Channel::Red, Channel::Blue])),
        ("rgba64le", Planes::AllWithAlpha),
        ("ya8", Planes::AllWithAlpha),
        ("ya16le", Planes::Luma),
        ("gbrap12le", Planes::AllWithAlpha),
        ("argb", only(&[Channel::Alpha])),
        ("p016le", only(&[Channel::Cr])),
    ];
    let list: Vec<Case> = choices
        .into_iter()
        .flat_map(|(format, planes)| {
            ["gaussian:size=5:sigma=1.1", "sharpen"].map(|spec| {
                let chain = chain(&[spec], Border::Mirror, planes.clone(), Algorithm::Auto);
                case(chain, format, (77, 41), 9)
            })
        })
        .collect();
    hold_all_variants(&list, &[Algorithm::Auto, Algorithm::Direct]);
}

/// Every colour of 8 bits under every alpha, rows packed and not; deep formats with both at their ends and noise between.
#[test]
fn every_colour_under_every_alpha() {
    let Some(_card) = card() else { return };
    let specs = [
        "mask:rows=1",
        "mask:rows=1:divisor=3:bias=20",
        "mask:rows=-1 3 -1:bias=-9",
        "mask:rows=-1 3 -1",
        "mask:rows=-2 5 -2",
    ];
    for format in [
        "rgba",
        "argb",
        "ya8",
        "yuva444p",
        "gbrap",
        "rgba64le",
        "yuva444p16le",
        "gbrap10le",
    ] {
        for (turn, spec) in specs.into_iter().enumerate() {
            let planes = [Planes::All, Planes::AllWithAlpha][turn % 2].clone();
            let chain = chain(&[spec], Border::Replicate, planes, Algorithm::Direct);
            let case = case(chain, format, (257, 256), 2);
            let mut engine = Cuda::new(case.chain.clone(), CudaOptions::default()).unwrap();
            let mut reference = Reference::new(case.chain.clone());
            for alignment in [1, 64] {
                let pool = FramePool::new(2, engine.input_allocator());
                let mut frame = frame_in(pool.try_take().unwrap(), &case, alignment);
                spread_colours(&mut frame);
                let unpooled = Buffer::unpooled(Box::new(vec![0; frame.layout().size()]));
                let mut same = frame_in(unpooled, &case, alignment);
                spread_colours(&mut same);
                let output = Buffer::unpooled(Box::new(Vec::new()));
                reference.submit(same, output, 1).unwrap();
                engine.submit(frame, pool.try_take().unwrap(), alignment).unwrap();
                let expected = reference.collect().unwrap().unwrap();
                let got = engine.collect().unwrap().unwrap();
                assert_same_rows(
                    &expected,
                    &got,
                    format_args!("{format}, {spec}, rows at {alignment}"),
                );
            }
        }
    }
}

/// Colours that grow along the rows and alpha that grows down; of deep formats that only at the edges.
fn spread_colours(frame: &mut Frame) {
    let format = frame.format();
    let (bytes, max) = (format.bytes_per_sample(), format.max_value() as usize);
    for (plane, described) in format.planes().iter().enumerate() {
        let (width, height) = (
            frame.layout().planes()[plane].width,
            frame.layout().planes()[plane].height,
        );
        for y in 0..height {
            let row = frame.row_mut(plane, y);
            for x in 0..width {
                for (c, &channel) in described.channels.iter().enumerate() {
                    let at = if channel == Channel::Alpha {
                        y
                    } else {
                        (x + 85 * c) % 256
                    };
                    let value = match at {
                        _ if bytes == 1 => at,
                        0..4 => at,
                        252.. => max + at - 255,
                        _ => continue,
                    };
                    let begin = (x * described.channels.len() + c) * bytes;
                    row[begin..begin + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                }
            }
        }
    }
}

/// What both engines make of one frame. The CPU engine is held against the reference elsewhere; the reference itself would take minutes.
#[test]
fn the_largest_frames_are_filtered_to_the_cpu_engines_bits() {
    let Some(_card) = card() else { return };
    for (format, spec, algorithm) in [
        (
            "gray",
            "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5",
            Algorithm::Direct,
        ),
        ("gray", "gaussian:size=15", Algorithm::Separable),
        ("rgba", "unsharp:sigma=1:amount=0.7", Algorithm::Direct),
    ] {
        let chain = chain(&[spec], Border::Mirror, Planes::All, algorithm);
        let case = case(chain.clone(), format, (16384, 16384), 5);
        let run = |engine: &mut dyn Engine| {
            let buffer = Buffer::unpooled(Box::new(Vec::new()));
            engine.submit(case.frame().unwrap(), buffer, 64).unwrap();
            engine.collect().unwrap().unwrap()
        };
        let on_card = run(&mut Cuda::new(chain.clone(), options(MemoryVariant::Auto)).unwrap());
        let on_cores = run(&mut Cpu::new(chain, 0).unwrap());
        assert_same_rows(&on_cores, &on_card, format_args!("{format} {spec}"));
    }
}

#[test]
fn frames_of_more_rows_than_a_grid_has() {
    let Some(_card) = card() else { return };
    let chain = chain(
        &["gaussian:size=3:sigma=0.8"],
        Border::Wrap,
        Planes::All,
        Algorithm::Auto,
    );
    // One row of blocks more than a grid has, with blocks of one row.
    let list = [case(chain, "gray", (3, 70_001), 5)];
    for memory in MemoryVariant::ALL {
        for block in [None, Some((32, 1))] {
            for algorithm in [Algorithm::Direct, Algorithm::Separable] {
                let options = CudaOptions {
                    block,
                    ..options(memory)
                };
                hold_against_reference(&list, algorithm, options);
            }
        }
    }
}

#[test]
fn any_block_that_launches_gives_the_same_bits() {
    let Some(_card) = card() else { return };
    let list = cases(14);
    let list = &list;
    std::thread::scope(|scope| {
        for memory in MemoryVariant::ALL {
            for block in [(1, 1), (7, 3), (32, 32), (256, 1), (1, 64)] {
                let options = CudaOptions {
                    block: Some(block),
                    ..options(memory)
                };
                scope.spawn(move || hold_against_reference(list, Algorithm::Auto, options));
            }
        }
    });
}

#[test]
fn chains_stay_on_the_device() {
    let Some(_card) = card() else { return };
    let specs = ["gaussian:sigma=1.5", "sharpen", "box:size=3", "laplacian8"];
    let mut list = Vec::new();
    for length in 1..=4 {
        for format in ["rgb24", "yuv420p", "rgba", "gray16le", "yuva444p10le"] {
            let chain = chain(&specs[..length], Border::Replicate, Planes::All, Algorithm::Auto);
            list.push(case(chain, format, (101, 57), length as u64));
        }
    }
    hold_all_variants(&list, &[Algorithm::Auto]);
}

#[test]
fn without_overlap_the_bits_are_the_same() {
    let Some(_card) = card() else { return };
    let list = cases(30);
    for overlap in [Overlap::Ring, Overlap::SerialPinned, Overlap::SerialPageable] {
        let options = CudaOptions {
            overlap,
            ..CudaOptions::default()
        };
        hold_against_reference(&list, Algorithm::Auto, options);
    }
}

/// Runs `cases` through one engine as a pipeline does: frames from its own pools, as many in flight as it takes.
fn stream(engine: &mut dyn Engine, cases: &[Case], mut check: impl FnMut(usize, &Frame)) {
    let depth = engine.depth();
    let inputs = FramePool::new(depth + 2, engine.input_allocator());
    let outputs = FramePool::new(depth + 2, engine.output_allocator());
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut collect = |engine: &mut dyn Engine, waiting: &mut VecDeque<usize>| {
        let frame = engine.collect().unwrap().unwrap();
        let index = waiting.pop_front().unwrap();
        assert_eq!(frame.sequence, index as u64);
        check(index, &frame);
    };
    for (index, case) in cases.iter().enumerate() {
        if waiting.len() == depth {
            collect(engine, &mut waiting);
        }
        let mut frame = frame_in(inputs.try_take().unwrap(), case, 32);
        frame.sequence = index as u64;
        engine.submit(frame, outputs.try_take().unwrap(), 64).unwrap();
        waiting.push_back(index);
    }
    while !waiting.is_empty() {
        collect(engine, &mut waiting);
    }
    assert!(engine.collect().unwrap().is_none());
}

/// Puts all cases, which have the same chain, through one engine and holds each result against the reference's.
fn hold_stream(engine: &mut dyn Engine, list: &[Case], reference: &mut Reference) {
    stream(engine, list, |index, frame| {
        let case = &list[index];
        let buffer = Buffer::unpooled(Box::new(Vec::new()));
        reference.submit(case.frame().unwrap(), buffer, 1).unwrap();
        let expected = reference.collect().unwrap().unwrap();
        assert_same_rows(&expected, frame, format_args!("frame {index}"));
    });
}

/// From a slot's second frame of a size on, the chain's launches are one graph.
#[test]
fn chains_that_begin_with_one_call_keep_the_bits_when_sizes_change() {
    let Some(_card) = card() else { return };
    let specs = ["gaussian:size=5", "box:size=3", "mask:rows=1 2 1:divisor=4"];
    for (format, planes, memory, overlap) in [
        ("yuv420p", Planes::Luma, MemoryVariant::Auto, Overlap::Ring),
        ("rgba", Planes::All, MemoryVariant::Auto, Overlap::Ring),
        ("gray10le", Planes::All, MemoryVariant::Texture, Overlap::Ring),
        (
            "nv12",
            Planes::Gray,
            MemoryVariant::ConstantShared,
            Overlap::SerialPinned,
        ),
    ] {
        let chain = chain(&specs, Border::Mirror, planes, Algorithm::Separable);
        // Runs of one size, with single frames of others between them, and back to the first.
        let sizes = [[(65, 33); 9], [(32, 65); 9], [(65, 33); 9]].concat();
        let others = [(9, 31, 7), (20, 3, 120), (21, 1, 1)];
        let list: Vec<Case> = sizes
            .into_iter()
            .enumerate()
            .map(|(index, size)| {
                let other = others.iter().find(|other| other.0 == index);
                let size = other.map_or(size, |&(_, width, height)| (width, height));
                case(chain.clone(), format, size, index as u64)
            })
            .collect();
        let options = CudaOptions {
            slots: 2,
            overlap,
            ..options(memory)
        };
        let mut engine = Cuda::new(chain.clone(), options).unwrap();
        hold_stream(&mut engine, &list, &mut Reference::new(chain));
    }
}

#[test]
fn a_ring_of_changing_sizes_and_formats_keeps_order_and_bits() {
    let Some(_card) = card() else { return };
    let chain = chain(
        &["gaussian:size=9:sigma=2", "sharpen"],
        Border::Reflect,
        Planes::All,
        Algorithm::Auto,
    );
    let sizes = [
        (64, 48),
        (640, 360),
        (3, 3),
        (641, 361),
        (17, 900),
        (64, 48),
        if is_stand_in() { (320, 180) } else { (1920, 1080) },
    ];
    let formats = ["rgb24", "yuv420p", "rgba", "gray12le"];
    let list: Vec<Case> = (0..40)
        .map(|i| case(chain.clone(), formats[i / 3 % 4], sizes[i % 7], i as u64))
        .collect();
    let mut reference = Reference::new(chain.clone());
    for memory in [MemoryVariant::Auto, MemoryVariant::Texture] {
        for slots in [2, 3, 5] {
            let options = CudaOptions {
                slots,
                ..options(memory)
            };
            let mut engine = Cuda::new(chain.clone(), options).unwrap();
            hold_stream(&mut engine, &list, &mut reference);
            let times = engine.device_times().unwrap();
            assert_eq!(times.count, 40);
            assert_eq!(times.frames.len(), 40);
            assert!(times.wall > 0.0 && times.totals.iter().all(|&t| t > 0.0 && t <= times.wall));
            for pair in times.frames.windows(2) {
                assert!(pair[0].download.1 <= pair[1].download.1);
            }
            for frame in &times.frames {
                assert!(frame.upload.1 <= frame.kernel.0 + 1e-5 && frame.kernel.1 <= frame.download.0 + 1e-5);
            }
        }
    }
}

#[test]
fn a_block_or_device_that_cannot_be_is_refused_with_the_limit() {
    let Some(_card) = card() else { return };
    let list = cases(1);
    let too_many = CudaOptions {
        block: Some((64, 32)),
        ..CudaOptions::default()
    };
    let error = compare(&list, Algorithm::Direct, &mut start(too_many)).unwrap_err();
    assert!(error.to_string().contains("2048 threads"), "{error}");
    let device = CudaOptions {
        device: 99,
        ..CudaOptions::default()
    };
    let error = compare(&list, Algorithm::Direct, &mut start(device)).unwrap_err();
    assert!(error.to_string().contains("99"), "{error}");
    let one_slot = CudaOptions {
        slots: 1,
        ..CudaOptions::default()
    };
    let error = compare(&list, Algorithm::Direct, &mut start(one_slot)).unwrap_err();
    assert!(error.to_string().contains("--slots 1"), "{error}");
}

#[test]
fn a_full_card_leaves_fewer_slots_and_then_a_clear_error() {
    let Some(_card) = card_alone() else { return };
    let chain = chain(&["box:size=3"], Border::Replicate, Planes::All, Algorithm::Direct);
    // 64 MB a picture, two pictures a slot.
    let list: Vec<Case> = (0..4)
        .map(|i| case(chain.clone(), "gray", (8192, 7813), i))
        .collect();
    let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    let reservation = Reservation::leaving(0, 320 << 20).unwrap();
    stream(&mut engine, &list, |_, _| {});
    let slots = engine.device_times().unwrap().slots;
    assert!((1..3).contains(&slots), "{slots} slots");
    drop(engine);
    drop(reservation);

    let mut engine = Cuda::new(chain, CudaOptions::default()).unwrap();
    let reservation = Reservation::leaving(0, 32 << 20).unwrap();
    let input = list[0].frame().unwrap();
    let buffer = Buffer::unpooled(Box::new(Vec::new()));
    let error = engine.submit(input, buffer, 1).unwrap_err().to_string();
    assert!(
        error.contains("MiB are needed") && error.contains("are free"),
        "{error}"
    );
    drop(reservation);
}

#[test]
fn a_run_broken_off_frees_what_it_held() {
    let Some(_card) = card_alone() else { return };
    let free = || devices().unwrap().cards[0].memory_free;
    let chain = chain(
        &["gaussian:sigma=3"],
        Border::Replicate,
        Planes::All,
        Algorithm::Auto,
    );
    let case = case(chain.clone(), "rgb24", (1920, 1080), 3);
    let keep = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    let mut before = 0;
    for round in 0..20 {
        let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
        for _ in 0..3 {
            let buffer = Buffer::unpooled(Box::new(Vec::new()));
            engine.submit(case.frame().unwrap(), buffer, 64).unwrap();
        }
        // Dropped with three frames in flight.
        drop(engine);
        if round == 4 {
            before = free();
        }
    }
    assert!(
        free() + (4 << 20) >= before,
        "{before} bytes were free, {} are",
        free()
    );
    drop(keep);
}

#[test]
fn memory_stays_flat_over_a_hundred_thousand_frames() {
    let Some(_card) = card_alone() else { return };
    let chain = chain(
        &["gaussian:size=5:sigma=1.1"],
        Border::Replicate,
        Planes::All,
        Algorithm::Auto,
    );
    let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    let inputs = FramePool::new(5, engine.input_allocator());
    let outputs = FramePool::new(5, engine.output_allocator());
    let layout = Layout::new(PixelFormat::from_name("yuv420p").unwrap(), 64, 48, 1).unwrap();
    let mut in_flight = 0;
    let mut before = None;
    for number in 0..100_000_u64 {
        if in_flight == engine.depth() {
            assert!(engine.collect().unwrap().is_some());
            in_flight -= 1;
        }
        let mut frame = Frame::new(layout, inputs.try_take().unwrap()).unwrap();
        frame.sequence = number;
        engine.submit(frame, outputs.try_take().unwrap(), 1).unwrap();
        in_flight += 1;
        if number == 20_000 {
            before = Some((resident_bytes(), devices().unwrap().cards[0].memory_free));
        }
    }
    while engine.collect().unwrap().is_some() {}
    let (resident, free) = before.unwrap();
    let now = (resident_bytes(), devices().unwrap().cards[0].memory_free);
    assert!(
        now.0 < resident + (8 << 20),
        "resident memory grew from {resident} to {}",
        now.0
    );
    assert!(
        now.1 + (8 << 20) > free,
        "free device memory shrank from {free} to {}",
        now.1
    );
    assert_eq!(engine.device_times().unwrap().count, 100_000);
    assert_eq!(engine.device_times().unwrap().frames.len(), 1024);
}

/// Bytes of this process that lie in memory.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn two_engines_share_a_card() {
    let Some(_card) = card() else { return };
    let list = cases(20);
    std::thread::scope(|scope| {
        for memory in [
            MemoryVariant::Auto,
            MemoryVariant::Constant,
            MemoryVariant::Texture,
        ] {
            let list = &list;
            scope.spawn(move || hold_against_reference(list, Algorithm::Auto, options(memory)));
        }
    });
}

#[test]
fn a_weights_change_of_one_engine_does_not_reach_another() {
    let Some(_card) = card() else { return };
    // Two engines of one process whose kernels are compiled alike, with other weights, used in turn.
    let blur = chain(&["box:size=5"], Border::Replicate, Planes::All, Algorithm::Direct);
    let gauss = chain(
        &["gaussian:size=5:sigma=1"],
        Border::Replicate,
        Planes::All,
        Algorithm::Direct,
    );
    let mut engines = [
        Cuda::new(blur.clone(), options(MemoryVariant::ConstantShared)).unwrap(),
        Cuda::new(gauss.clone(), options(MemoryVariant::ConstantShared)).unwrap(),
    ];
    let cases = [case(blur, "gray", (99, 77), 1), case(gauss, "gray", (99, 77), 1)];
    let mut results: Vec<Vec<Vec<u8>>> = vec![Vec::new(), Vec::new()];
    for _ in 0..3 {
        for (index, engine) in engines.iter_mut().enumerate() {
            stream(engine, &cases[index..=index], |_, frame| {
                results[index].push((0..77).flat_map(|y| frame.row(0, y).to_vec()).collect());
            });
        }
    }
    for (index, case) in cases.iter().enumerate() {
        let mut reference = Reference::new(case.chain.clone());
        let buffer = Buffer::unpooled(Box::new(Vec::new()));
        reference.submit(case.frame().unwrap(), buffer, 1).unwrap();
        let expected = reference.collect().unwrap().unwrap();
        let expected: Vec<u8> = (0..77).flat_map(|y| expected.row(0, y).to_vec()).collect();
        assert!(results[index].iter().all(|r| *r == expected));
    }
}

/// The program: what the bundle's script names, where cargo built it otherwise.
fn program() -> Command {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_framepipe"));
    let program = std::env::var_os("FRAMEPIPE_PROGRAM").map_or(built, PathBuf::from);
    Command::new(program)
}

/// A file of samples/: in the bundle, or where cargo built the test.
fn sample(name: &str) -> PathBuf {
    let bundle = std::env::var_os("FRAMEPIPE_PROGRAM").map(PathBuf::from);
    let folder = bundle.map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")),
        |program| program.parent().unwrap().to_owned(),
    );
    folder.join("samples").join(name)
}

/// A run of some 400 frames on the card.
fn framepipe() -> Command {
    framepipe_on("synthetic:640x360:rgb24:30:400")
}

fn framepipe_on(input: &str) -> Command {
    let mut command = program();
    command.args(["filter", input, "null:"]);
    command.args(["--filter", "gaussian:size=5:sigma=1.1", "--engine", "cuda"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

#[test]
fn an_error_in_mid_stream_ends_the_run_with_its_reason() {
    let Some(_card) = card() else { return };
    let done = framepipe().env("FRAMEPIPE_FAULT", "cuda:123").output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("frame 123") && said.contains("FRAMEPIPE_FAULT"),
        "{said}"
    );
}

#[test]
fn an_interrupt_in_mid_flight_ends_with_whole_frames() {
    let Some(_card) = card_alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.y4m");
    let process = program()
        .args(["filter", "synthetic:320x180:gray:30:1000000"])
        .arg(&file)
        .args(["--filter", "gaussian:size=5:sigma=1.1", "--engine", "cuda"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Until frames are on their way to the file, which has another name so far.
    let written = || -> u64 {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files.map(|f| f.unwrap().metadata().map_or(0, |m| m.len())).sum()
    };
    while written() < 5_000_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", process.id())])
        .status();
    assert!(interrupt.unwrap().success());
    let done = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(130), "{said}");
    let bytes = std::fs::read(&file).unwrap();
    let header = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
    let frame = "FRAME\n".len() + 320 * 180;
    assert_eq!((bytes.len() - header) % frame, 0, "a frame is cut off");
    let count = (bytes.len() - header) / frame;
    assert!(
        said.contains(&format!("interrupted: {count} frames were written")),
        "{count} frames: {said}"
    );
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "something was left beside the output");
}

#[test]
fn decoded_video_is_filtered_to_the_cpu_engines_bits() {
    let Some(_card) = card() else { return };
    for name in ["clip-720p.mp4", "clip-10bit.mkv", "clip-odd.mp4"] {
        let run = |engine: &str| {
            let done = program()
                .arg("filter")
                .arg(sample(name))
                .args(["-", "--filter", "gaussian:sigma=2", "--filter", "sharpen"])
                .args(["--engine", engine])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            done.stdout
        };
        let (card, cores) = (run("cuda"), run("cpu"));
        assert!(card.len() > 100_000, "{name}: {} bytes", card.len());
        assert!(card == cores, "{name}: the engines differ");
    }
}

#[test]
fn two_processes_share_a_card() {
    let Some(_card) = card() else { return };
    let running: Vec<_> = (0..2).map(|_| framepipe().spawn().unwrap()).collect();
    for process in running {
        let done = process.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_trace_shows_uploads_beside_kernels_and_no_slot_used_twice() {
    let Some(_card) = card_alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let (input, frames) = if is_stand_in() {
        ("synthetic:64x48:rgb24:30:60:cycle", 60)
    } else {
        ("synthetic:1920x1080:rgb24:30:400:cycle", 400)
    };
    let trace = |more: &[&str]| {
        let mut command = framepipe_on(input);
        let done = command
            .args(["--overwrite", "--trace"])
            .arg(&file)
            .args(more)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        tracks::read(&std::fs::read_to_string(&file).unwrap())
    };
    for slots in ["2", "3", "6"] {
        let trace = trace(&["--slots", slots]);
        trace.check(frames, true).unwrap();
        assert!(
            trace.overlap() > 0.0,
            "{slots} slots: no upload ran beside another frame's kernels"
        );
        assert!(
            trace.facts["device_clock_tolerance_us"].is_number(),
            "{}",
            trace.facts
        );
        trace.check_clocks().unwrap();
    }
    let serial = trace(&["--no-overlap"]);
    serial.check(frames, true).unwrap();
    assert_eq!(serial.overlap(), 0.0, "without overlap");
    let kept = trace(&["--trace-frames", "50"]);
    kept.check(50, true).unwrap();
    assert_eq!(kept.facts["frames_dropped"], frames - 50);
}

#[test]
fn compiled_kernels_are_kept_and_damaged_ones_made_again() {
    let Some(_card) = card() else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let done = framepipe().env("XDG_CACHE_HOME", folder.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let entries = || {
        let entries = std::fs::read_dir(folder.path().join("framepipe")).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths
    };
    run();
    let first = entries();
    assert!(!first.is_empty());
    let whole = std::fs::read(&first[0]).unwrap();
    std::fs::write(&first[0], &whole[..whole.len() / 2]).unwrap();
    run();
    assert_eq!(entries(), first);
    assert!(
        std::fs::read(&first[0]).unwrap() == whole,
        "the damaged entry was not made again"
    );
}

#[test]
fn what_was_tuned_here_is_what_auto_goes_by() {
    let Some(_card) = card_alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let tables = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder.path().join("framepipe")).unwrap();
        entries
            .map(|e| e.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "tuning"))
            .collect()
    };
    let explained = || {
        let mut run = framepipe_on("synthetic:320x180:gray:30:4");
        run.arg("--explain").env("XDG_CACHE_HOME", folder.path());
        let done = run.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        said
    };
    let before = explained();
    assert!(!before.contains("measured here"), "{before}");
    let mut tune = program();
    tune.args(["bench", "tune", "--quick", "--mask-sizes", "3,5"]);
    tune.args(["--formats", "gray,rgb24", "--sizes", "320x180", "--json", "-"]);
    let done = tune.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 2 * 2);
    for cell in cells {
        let times = cell["times"].as_array().unwrap();
        assert!(times.len() >= 5, "{cell}");
        assert_eq!(cell["winner"], times[0]["variant"]);
        let median = |time: &serde_json::Value| time["milliseconds"]["median"].as_f64().unwrap();
        assert!(median(&times[0]) > 0.0 && cell["ahead"].as_f64().unwrap() >= 1.0);
        assert!(times.windows(2).all(|pair| median(&pair[0]) <= median(&pair[1])));
    }
    let kept = tables();
    assert_eq!(kept.len(), 1);
    assert_eq!(json["kept"].as_str(), kept[0].to_str());
    let after = explained();
    let date = json["date"].as_str().unwrap();
    let told = format!("measured here on {date}, cell separable 5x5");
    assert!(after.contains(&told), "{after}");
    let whole = std::fs::read(&kept[0]).unwrap();
    std::fs::write(&kept[0], &whole[..whole.len() / 2]).unwrap();
    let damaged = explained();
    assert!(
        damaged.contains("is damaged") && !damaged.contains("measured here on"),
        "{damaged}"
    );
}

#[test]
fn an_interrupt_while_tuning_keeps_no_table() {
    let Some(_card) = card_alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut tune = program();
    tune.args([
        "bench",
        "tune",
        "-v",
        "--mask-sizes",
        "3,5,7,9",
        "--formats",
        "gray",
    ]);
    tune.args(["--sizes", "320x180"])
        .env("XDG_CACHE_HOME", folder.path())
        .env_remove("RUST_LOG");
    tune.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = tune.spawn().unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    // The first time is there.
    while !line.contains(" ms") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    let interrupt = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", process.id())])
        .status();
    assert!(interrupt.unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let done = process.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{rest}");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(
        printed.contains("interrupted: nothing of this is kept"),
        "{printed}"
    );
    let files = std::fs::read_dir(folder.path().join("framepipe")).unwrap();
    let names = files.map(|f| f.unwrap().file_name().into_string().unwrap());
    let others: Vec<String> = names.filter(|n| !n.ends_with(".kernel")).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// The reference's result on the noise that a timer says it used.
fn expected(chain: &Chain, format: PixelFormat, (width, height): (usize, usize), seed: u64) -> Frame {
    let layout = Layout::new(format, width, height, 64).unwrap();
    let buffer = || Buffer::unpooled(Box::new(Vec::new()));
    let mut frame = Frame::new(layout, buffer()).unwrap();
    fill_with_noise(&mut frame, seed);
    let mut reference = Reference::new(chain.clone());
    reference.submit(frame, buffer(), 64).unwrap();
    reference.collect().unwrap().unwrap()
}

#[test]
fn kernels_that_are_timed_make_the_references_bits() {
    let Some(_card) = card_alone() else { return };
    let effort = KernelEffort {
        time: Duration::from_millis(2),
        rounds: (3, 5),
    };
    let size = (301, 97);
    let mut timer = KernelTimer::open(0, 77).unwrap();
    // The chains of several filters go through a second set of results, the others after them through the same pictures as before.
    let chains: [(&[&str], Algorithm); 4] = [
        (&["gaussian:size=7"], Algorithm::Separable),
        (&["gaussian:size=7", "sharpen", "box:size=3"], Algorithm::Auto),
        (&["laplacian8"], Algorithm::Direct),
        (&["soft", "soft"], Algorithm::Separable),
    ];
    let formats =
        ["gray", "rgba", "gray16le", "yuv420p", "nv12"].map(|name| PixelFormat::from_name(name).unwrap());
    let chains = chains.map(|(specs, algorithm)| chain(specs, Border::Mirror, Planes::All, algorithm));
    for (index, format) in formats.into_iter().enumerate() {
        // All chains on the first format; on the others one of several filters.
        let chosen = if index == 0 { &chains[..] } else { &chains[1..2] };
        for chain in chosen {
            let cases = MemoryVariant::ALL.map(|memory| KernelCase {
                chain,
                format,
                width: size.0,
                height: size.1,
                memory,
                block: None,
                fuse: true,
            });
            timer.compile(&cases);
            for case in cases {
                let timed = timer.time(&case, effort).unwrap();
                let what = format!("{format} {} {}", chain.filters.len(), case.memory);
                assert!((3..=5).contains(&timed.milliseconds.len()), "{what}");
                assert!(
                    timed.milliseconds.iter().all(|t| t.is_finite() && *t > 0.0),
                    "{what}"
                );
                assert!(timed.turns >= 3 && timed.block.is_some(), "{what}");
                let expected = expected(chain, format, size, timed.seed);
                assert_same_rows(&expected, &timed.output, &what);
            }
        }
    }
}

#[test]
fn cells_of_a_sweep_are_checked_and_held_against_ceilings() {
    let Some(_card) = card_alone() else { return };
    let (mut bench, why_not) = Bench::new(0, Effort::QUICK);
    assert!(bench.has_card(), "{why_not:?}");
    let case = |subject| bench::Case {
        subject,
        filter: "gaussian:size=5".parse().unwrap(),
        algorithm: Algorithm::Direct,
        border: Border::Replicate,
        format: PixelFormat::from_name("rgb24").unwrap(),
        width: 640,
        height: 361,
    };
    let block = None;
    for memory in [MemoryVariant::Auto, MemoryVariant::Texture] {
        for scope in Scope::ALL {
            let cell = bench
                .measure(&case(Subject::Cuda { memory, block }), scope)
                .unwrap();
            assert_eq!(cell.samples_checked, 640 * 361 * 3);
            let times = cell.milliseconds;
            assert!(times.min > 0.0 && times.min <= times.median && times.median <= times.p90);
            assert!(times.count >= 3 && cell.frames_in_turn >= 3);
            assert!(cell.share_of_copy.unwrap() > 0.0 && cell.speed_up.unwrap() > 0.0);
            assert_eq!(cell.share_of_arithmetic.is_some(), scope == Scope::Kernel);
        }
    }
    let rate = |kind| {
        let mut ceilings = bench.ceilings().iter();
        ceilings.find(|c| c.kind == kind).map(|c| c.giga_per_second)
    };
    for kind in [CeilingKind::Copy, CeilingKind::Link, CeilingKind::MultiplyAdd] {
        assert!(rate(kind).is_some_and(|r| r.is_finite() && r > 0.0), "{kind:?}");
    }
    let memory = MemoryVariant::Global;
    let block = Some((32, 64));
    let error = bench
        .measure(&case(Subject::Cuda { memory, block }), Scope::Kernel)
        .unwrap_err();
    assert!(
        error.is_refusal() && error.to_string().contains("2048"),
        "{error}"
    );
}

/// Tests whose frames are few and small enough for a stand-in, which computes a few million samples a second.
const ON_A_STAND_IN: [&str; 18] = [
    "long_separable_masks_on_tensor_cores",
    "what_lies_beyond_the_edges_of_every_format",
    "launches_of_small_frames_run_side_by_side",
    "every_colour_under_every_alpha",
    "wide_separable_masks_on_tensor_cores",
    "masks_that_share_a_launch_give_the_references_bits",
    "choices_of_planes_copy_and_fill_the_others",
    "chains_stay_on_the_device",
    "chains_that_begin_with_one_call_keep_the_bits_when_sizes_change",
    "a_trace_shows_uploads_beside_kernels_and_no_slot_used_twice",
    "without_overlap_the_bits_are_the_same",
    "a_ring_of_changing_sizes_and_formats_keeps_order_and_bits",
    "a_block_or_device_that_cannot_be_is_refused_with_the_limit",
    "two_engines_share_a_card",
    "a_weights_change_of_one_engine_does_not_reach_another",
    "an_error_in_mid_stream_ends_the_run_with_its_reason",
    "an_interrupt_in_mid_flight_ends_with_whole_frames",
    "kernels_that_are_timed_make_the_references_bits",
];

/// True where the card is the stand-in that the test below starts this program with.
fn is_stand_in() -> bool {
    std::env::var_os("FRAMEPIPE_STANDIN_SEED").is_some()
}

#[test]
fn quick_tests_hold_on_a_stand_in_for_a_card() {
    let Some(stand_in) = standin::stand_in() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let run = |test: &str| {
        let report = folder.path().join(test);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test]).env("FRAMEPIPE_REQUIRE_GPU", "1");
        command
            .env("FRAMEPIPE_STANDIN_SEED", "2")
            .env("FRAMEPIPE_STANDIN_REPORT", &report);
        let done = stand_in
            .with(&mut command, &folder.path().join("kernels"))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stdout);
        assert!(
            done.status.success() && told.contains("1 passed; 0 failed"),
            "{told}{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let report = std::fs::read_to_string(report).unwrap_or_else(|e| panic!("{test} left no report: {e}"));
        assert!(!report.contains("complaint"), "{test}: {report}");
        report.contains("call cuGraphLaunch")
    };
    // Beside each other, since most of their time goes to compiling kernels, which takes one core each.
    let launched: Vec<bool> = ON_A_STAND_IN
        .par_iter()
        .with_max_len(1)
        .map(|test| run(test))
        .collect();
    assert!(launched.contains(&true));
}

#[test]
fn without_a_driver_the_error_says_so_and_nothing_panics() {
    match probe() {
        Ok(info) => assert!(info.multiprocessors > 0 && info.memory_total > 0),
        Err(error) => {
            let text = error.to_string();
            assert!(
                ["driver", "NVRTC", "device"].iter().any(|w| text.contains(w)),
                "{text}"
            );
            assert!(text.contains("--engine cpu"), "{text}");
            let chain = chain(&["box:size=3"], Border::Replicate, Planes::All, Algorithm::Auto);
            assert!(Cuda::new(chain, CudaOptions::default()).is_err());
        }
    }
}
