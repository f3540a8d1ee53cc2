//! Chains: filters that share a launch, launches that overlap, intermediates that stay on the card.

use super::{
    card, case, chain, hold_against_reference, hold_all_variants, hold_packed_rows, hold_stream, is_stand_in,
    is_tried, options,
};
use framepipe::engine::cuda::{
    Cuda, CudaOptions, MemoryVariant, SelectContext, Source, Table, probe, recipes,
};
use framepipe::engine::reference::Reference;
use framepipe::engine::verify::Case;
use framepipe::filter::{Algorithm, Border, Plan, Planes};
use framepipe::frame::Colour;

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

/// Chains whose steps share launches, at sizes below the masks, around a tile's 496 x 24 results and in
/// planes of several sizes, with rows at multiples of 64 bytes and tightly packed. Each keeps the bits that
/// it has with every step in a launch of its own.
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
        let borders = Border::ALL.into_iter().enumerate();
        for (place, border) in borders.filter(|(place, _)| is_tried(index + place, 5)) {
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
                    let separate = CudaOptions {
                        fuse: false,
                        ..options(MemoryVariant::Tensor)
                    };
                    hold_against_reference(one, Algorithm::Direct, separate);
                }
            }
        }
    }
}

/// Small frames whose planes take a launch each: the second one loads its tiles while the first is in flight,
/// but not those of a later step.
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
                    let chain = chain(specs, Border::ALL[index], Planes::All, algorithm);
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
