//! Borders: at sizes around the mask, and in the halo of tiles of every format.

use super::{
    EACH_BORDER, card, case, chain, hold_against_reference, hold_all_variants, hold_packed_rows, is_tried,
    options,
};
use framepipe::engine::cuda::MemoryVariant;
use framepipe::filter::{Algorithm, Border, Planes};
use rayon::prelude::*;

#[test]
fn every_border_of_every_variant_at_sizes_around_the_mask() {
    let Some(_card) = card() else { return };
    let mut list = Vec::new();
    for (index, border) in Border::ALL.into_iter().enumerate() {
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

/// Masks that reach several pixels outside the plane, of every size of a pixel: out of the tile and out of
/// the card's memory, in frames of several tiles and in such as are narrower than the mask, where tiles begin
/// and end within pixels, too.
#[test]
fn halos_of_every_format() {
    let Some(_card) = card() else { return };
    let formats = [
        "gray", "nv12", "rgb24", "rgba", "gray16le", "p010le", "rgb48le", "rgba64le",
    ];
    let works: Vec<_> = formats
        .into_iter()
        .flat_map(|format| EACH_BORDER.iter().map(move |&border| (format, border)))
        .enumerate()
        // On a stand-in of each format one or two borders, and others of the next one.
        .filter(|(index, _)| is_tried(index % EACH_BORDER.len() + index / EACH_BORDER.len(), 5))
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
