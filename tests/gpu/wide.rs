//! Gaussians that fit no mask: every format and border, pictures smaller than what a result depends on, and
//! chains with masks around them.

use super::{card, case, chain, hold_against_reference, options};
use framepipe::engine::cuda::MemoryVariant;
use framepipe::filter::{Algorithm, Border, Planes};
use rayon::prelude::*;

#[test]
fn gaussians_that_fit_no_mask() {
    let Some(_card) = card() else { return };
    let formats = [
        "gray",
        "nv12",
        "yuv420p",
        "rgb24",
        "rgba",
        "gbrap",
        "gray16le",
        "p010le",
        "rgb48le",
        "yuva444p12le",
    ];
    let works: Vec<_> = formats
        .into_iter()
        .enumerate()
        .flat_map(|(turn, format)| {
            (0..2).map(move |k| (format, Border::ALL[(2 * turn + k) % Border::ALL.len()]))
        })
        .collect();
    works
        .par_iter()
        .enumerate()
        .for_each(|(index, &(format, border))| {
            let specs = [
                &["gaussian:sigma=10.4:bias=2"][..],
                &["gaussian:sigma=150"],
                &["sharpen", "gaussian:sigma=20", "gaussian:sigma=40"],
            ];
            let planes = [Planes::All, Planes::AllWithAlpha][index % 2].clone();
            let chain = chain(specs[index % specs.len()], border, planes, Algorithm::Auto);
            let list =
                [(67, 45), (150, 9), (1, 1)].map(|size| case(chain.clone(), format, size, index as u64));
            hold_against_reference(&list, Algorithm::Auto, options(MemoryVariant::Auto));
        });
}
