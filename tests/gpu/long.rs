//! Weights of three bytes and more, whose sums take 64 bits at any depth: every variant, and tensor cores
//! where they have the registers.

use super::{card, case, chain, hold_against_reference, hold_packed_rows, is_tried, options};
use framepipe::engine::cuda::MemoryVariant;
use framepipe::filter::{Algorithm, Border, Plan, Planes};
use framepipe::frame::Colour;
use rayon::prelude::*;

#[test]
fn weights_of_three_bytes_and_more_give_the_references_bits() {
    let Some(_card) = card() else { return };
    let specs = [
        ("gaussian:size=3", Algorithm::Direct),
        ("gaussian:size=9:sigma=2", Algorithm::Separable),
        ("unsharp:size=31:sigma=8:amount=3", Algorithm::Direct),
        ("gaussian:size=33:sigma=6:bias=-20", Algorithm::Separable),
        ("disk:radius=7", Algorithm::Direct),
        ("gaussian:size=63:sigma=12", Algorithm::Separable),
        ("gaussian:size=17:sigma=3", Algorithm::Direct),
        ("log:size=25:abs", Algorithm::Auto),
        ("unsharp:sigma=2:amount=0.7", Algorithm::Direct),
        ("gaussian:size=21:sigma=4", Algorithm::Separable),
    ];
    let formats = [
        "gray16le",
        "rgb48le",
        "gray",
        "p016le",
        "gray12le",
        "yuv420p16le",
        "gray10le",
    ];
    let sizes = [(67, 45), (1, 1), (129, 70), (200, 7), (3, 90)];
    let works: Vec<_> = (0..specs.len() * formats.len())
        .flat_map(|turn| (0..MemoryVariant::ALL.len()).map(move |v| (turn, v)))
        .filter(|(turn, v)| is_tried(turn + v, 5 * MemoryVariant::ALL.len()))
        .collect();
    let long = works.par_iter().map(|&(turn, v)| {
        let ((spec, algorithm), format) = (specs[turn % specs.len()], formats[turn % formats.len()]);
        let chain = chain(
            &[spec],
            Border::ALL[(turn + v) % Border::ALL.len()],
            Planes::All,
            algorithm,
        );
        let list = [0, 1].map(|k| {
            let size = sizes[(turn + v + k) % sizes.len()];
            case(chain.clone(), format, size, (turn + k) as u64)
        });
        let memory = MemoryVariant::ALL[v];
        hold_against_reference(&list, algorithm, options(memory));
        if memory == MemoryVariant::Tensor {
            hold_packed_rows(&list[0]);
        }
        let plan = Plan::new(&list[0].chain, list[0].format, &Colour::default()).unwrap();
        usize::from(plan.steps[0].kernel.is_long())
    });
    let long: usize = long.sum();
    assert!(2 * long > works.len(), "{long} of {}", works.len());
}
