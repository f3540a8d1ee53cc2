//! Masks of integers over divisors that are no powers of two, by every memory variant: sums that a
//! multiplication divides, of both signs, with biases, in one pass and in two, and rows whose sums take an
//! offset to fit.

use super::{card, case, chain, hold_against_reference, is_tried, options};
use framepipe::engine::cuda::MemoryVariant;
use framepipe::filter::{Algorithm, Border, Planes};
use rayon::prelude::*;

const SPECS: [&str; 10] = [
    "box:size=3",
    "box:size=5:bias=-20",
    "box:size=15",
    "mask:rows=1 -3 5 -2 1 4 -1:divisor=5",
    "mask:rows=-9 2 3;0 -1 4;2 0 -30:divisor=7:bias=100",
    "mask:rows=1 1 1;1 1 1;1 1 1:divisor=-9:bias=255",
    "mask:rows=-3 1 0 2 -3;0 0 0 0 0;6 -2 0 -4 6:divisor=11",
    // Two bytes of weights.
    "mask:rows=3000 700 1;-900 5000 2;17 -250 3000:divisor=10001",
    // Sums of rows that fit 16 bits, or 24, less an offset.
    "binomial:size=9",
    "box:size=11",
];

const FORMATS: [&str; 9] = [
    "gray", "rgb24", "rgba", "nv12", "gray10le", "p010le", "gray12le", "gray16le", "rgba64le",
];

#[test]
fn sums_divided_by_a_multiplication_give_the_references_bits() {
    let Some(_card) = card() else { return };
    let works: Vec<_> = (0..SPECS.len())
        .flat_map(|s| (0..FORMATS.len()).map(move |f| (s, f)))
        .filter(|(s, f)| is_tried(s + f, 7))
        .collect();
    works.par_iter().for_each(|&(s, f)| {
        let variants = MemoryVariant::ALL;
        for (algorithm, turn) in [(Algorithm::Direct, 0), (Algorithm::Auto, 3)] {
            let border = Border::ALL[(s + f) % Border::ALL.len()];
            let chain = chain(&[SPECS[s]], border, Planes::All, algorithm);
            let list = [(67, 45), (129, 33), (3, 1)].map(|size| case(chain.clone(), FORMATS[f], size, 8));
            // Tensor cores always, and others in turn.
            let other = variants[(s + 2 * f + turn) % variants.len()];
            for memory in [MemoryVariant::Tensor, other] {
                hold_against_reference(&list, algorithm, options(memory));
            }
        }
    });
}

#[test]
fn masks_that_share_a_launch_divide_each_in_its_way() {
    let Some(_card) = card() else { return };
    let pairs = [
        ["box:size=3", "sharpen"],
        ["sharpen", "box:size=3"],
        ["box:size=5", "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5"],
        ["mask:rows=1 -2 3;0 -7 4;2 0 -5:divisor=3:bias=90", "soft"],
    ];
    pairs.par_iter().enumerate().for_each(|(turn, specs)| {
        for format in ["gray", "yuv420p"] {
            let border = Border::ALL[turn % Border::ALL.len()];
            let chain = chain(specs, border, Planes::All, Algorithm::Direct);
            let list = [(67, 45), (497, 26)].map(|size| case(chain.clone(), format, size, 9));
            hold_against_reference(&list, Algorithm::Direct, options(MemoryVariant::Tensor));
        }
    });
}
