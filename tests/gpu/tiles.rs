//! Sizes of frames around the tiles, blocks and grids that kernels cut them into.

use super::{
    EACH_BORDER, assert_same_rows, card, case, chain, hold_against_reference, hold_packed_rows, is_tried,
    options,
};
use framepipe::engine::Engine;
use framepipe::engine::cpu::Cpu;
use framepipe::engine::cuda::{
    Cuda, CudaOptions, MemoryVariant, SelectContext, Source, Table, probe, recipes,
};
use framepipe::engine::verify::Case;
use framepipe::filter::{Algorithm, AlphaWeighting, Border, Chain, Plan, Planes};
use framepipe::frame::{Buffer, Colour};
use rayon::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Frames a little smaller and larger than the tiles of the tensor-core kernels, their rows at multiples of
/// 64 bytes and tightly packed, where every row begins elsewhere in memory.
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
    let compared = AtomicUsize::new(0);
    let compared = &compared;
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
                        compared.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
    });
    let compared = compared.load(Ordering::Relaxed);
    // All whole masks, and the four of seven that are of rank 1.
    assert!(compared > 110, "{compared}");
}

/// Separable masks whose weights leave room for two blocks on a multiprocessor, by what a row holds of them
/// or a column.
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

/// Separable masks whose intermediate takes three bytes: all masks on deep samples, and rows of large weights
/// on others. At sizes below the mask, at primes and around tiles.
fn wide_separable_cases() -> Vec<Case> {
    let gains = [
        "mask:rows=30 -75 51;-10 25 -17;20 -50 34:divisor=7:bias=9",
        "mask:rows=25 100 -75:divisor=3",
        "mask:rows=10;-20;30;-20;10:divisor=0.7:bias=-40",
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
    let large_rows = [
        "mask:rows=301 -750 511;602 -1500 1022;-301 750 -511:divisor=7:bias=9",
        "binomial:size=11",
        "mask:rows=251 1000 -751:divisor=3",
        "mask:rows=41.371 0.613 -35.119:divisor=0.777:bias=-40",
    ];
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
    let every_other = |turn: usize, specs: Vec<&'static str>| specs.into_iter().skip(turn % 2).step_by(2);
    let deep = deep.into_iter().enumerate().flat_map(|(turn, format)| {
        every_other(turn, [&gains[..], &others[..]].concat()).map(move |spec| (format, spec))
    });
    let shallow = shallow
        .into_iter()
        .enumerate()
        .flat_map(|(turn, format)| every_other(turn, large_rows.to_vec()).map(move |spec| (format, spec)));
    let works = deep
        .chain(shallow)
        // The longest columns and rows that have room in the registers.
        .chain([
            ("gray16le", "gaussian:size=47:sigma=9"),
            ("rgb48le", "gaussian:size=21:sigma=4"),
        ]);
    works
        .enumerate()
        .map(|(index, (format, spec))| {
            let border = Border::ALL[index % Border::ALL.len()];
            let planes = if index % 5 == 4 {
                Planes::AllWithAlpha
            } else {
                Planes::All
            };
            let chain = Chain {
                // Colour under alpha is made without tensor cores.
                alpha: AlphaWeighting::Straight,
                ..chain(&[spec], border, planes, Algorithm::Separable)
            };
            let turn = index + index / sizes.len();
            case(chain, format, sizes[turn % sizes.len()], index as u64)
        })
        .collect()
}

/// Each case is of the kernel that is meant, and together they are of all its kinds.
fn check_wide_separable_recipes(list: &[Case]) {
    let mut met = HashSet::new();
    for case in list {
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
    assert!(met.contains(&("COLUMN_BYTES", 3)) && met.contains(&("BANDS", 4)));
    assert!(met.contains(&("SPLIT_SUM32", 0)) && met.contains(&("SPLIT_SUM32", 1)));
}

#[test]
fn wide_separable_masks_on_tensor_cores() {
    let Some(_card) = card() else { return };
    let list = wide_separable_cases();
    check_wide_separable_recipes(&list);
    // The last two are the longest. The others' formats, borders and sizes take turns, of two lengths each.
    let longest = list.len() - 2;
    let list: Vec<Case> = list
        .into_iter()
        .enumerate()
        .filter(|(index, _)| *index >= longest || is_tried(index + index / 2, 3))
        .map(|(_, case)| case)
        .collect();
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

/// Frames of more tiles than the card works on at a time, so that each block of the tensor-core kernels goes
/// through several, from plane to plane.
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

/// Frames of one plane of bytes that the card has a block for each tile of, at odd sizes and with packed
/// rows.
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
                        Border::ALL[k % Border::ALL.len()],
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

/// What both engines make of one frame. The CPU engine is held against the reference elsewhere; the reference
/// itself would take minutes.
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
