//! Pixel formats: each with every memory variant, deep samples split into bytes, and choices of planes.

use super::{
    EACH_BORDER, card, case, chain, hold_against_reference, hold_all_variants, hold_packed_rows, is_tried,
    options,
};
use framepipe::engine::cuda::{CudaOptions, MemoryVariant};
use framepipe::engine::verify::{Case, cases};
use framepipe::filter::{Algorithm, Border, Planes};
use framepipe::frame::Channel;

#[test]
fn every_variant_gives_the_references_bits() {
    let Some(_card) = card() else { return };
    let cases = cases(150);
    hold_all_variants(&cases, &[Algorithm::Direct, Algorithm::Separable]);
}

/// Masks around those from which a thread loops over columns, of every kind of sums and interleaving: eight,
/// four and fewer rows a thread.
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

/// Whole masks of samples that are split into their two bytes: on one component and on several, with weights
/// of one byte and of two, at odd sizes and on more tiles than the card holds blocks.
#[test]
fn deep_samples_split_into_bytes() {
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
                        Border::ALL[turn % Border::ALL.len()],
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

/// Neighbours are compared in place of eight masks' sums: in halves of words, with what they weigh or
/// without, and in words; of every interleaving, in rows that begin anywhere.
#[test]
fn the_largest_of_eight_slopes_at_every_depth() {
    let Some(_card) = card() else { return };
    let formats = [
        "gray", "gray10le", "gray12le", "gray14le", "gray16le", "p010le", "nv12", "p016le", "ya16le",
        "rgb24", "rgb48le", "rgba64le",
    ];
    let specs = [
        "kirsch",
        "kirsch:scale=1/4:bias=20",
        "kirsch:scale=1/2:bias=-9",
        "kirsch:flip:scale=16",
    ];
    let sizes = [(129, 33), (1, 1), (255, 97), (1, 37), (601, 46), (41, 1), (7, 5)];
    std::thread::scope(|scope| {
        for (f, format) in formats.into_iter().enumerate() {
            scope.spawn(move || {
                for (s, spec) in specs.into_iter().enumerate() {
                    if !is_tried(f + s, 7) {
                        continue;
                    }
                    let turn = 3 * f + s;
                    let border = EACH_BORDER[turn % EACH_BORDER.len()];
                    let chain = chain(&[spec], border, Planes::All, Algorithm::Direct);
                    for size in [0, 1, 4].map(|more| sizes[(turn + more) % sizes.len()]) {
                        let case = case(chain.clone(), format, size, turn as u64);
                        let options = options(MemoryVariant::Tensor);
                        hold_against_reference(std::slice::from_ref(&case), Algorithm::Direct, options);
                        hold_packed_rows(&case);
                    }
                }
            });
        }
    });
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
