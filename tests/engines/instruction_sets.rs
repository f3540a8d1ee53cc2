//! Every instruction set that this machine has against the reference, bit for bit: random masks of each shape
//! that a fast path looks for, on sizes around the widths of vectors and the heights of strips.

use super::oracle::{Random, chain, compare, format, frame_of, noise};
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Border, Chain, Filter, Mask, Plan, Planes};
use framepipe::frame::Frame;

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

/// Compares each set with the reference; false if the format cannot hold the mask's weights.
#[must_use]
fn agrees(chain: &Chain, frame: &Frame, threads: usize) -> bool {
    if Plan::new(chain, frame.format(), &frame.metadata.colour).is_err() {
        return false;
    }
    compare(chain, frame, threads, 1);
    true
}

fn odd(random: &mut Random, most: u64) -> usize {
    1 + 2 * random.below(most.div_ceil(2)) as usize
}

/// A random integer mask of one of the shapes that engines have paths of their own for.
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
    // A unit gain, a divisor that leaves a large gain, no divisor, one that is no power of two.
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
        let border = Border::ALL[random.below(Border::ALL.len() as u64) as usize];
        let mut chain = chain(mask(&mut random), border, algorithm);
        chain.filters[0].bias = [0.0, 0.0, 100.0, -37.5, 60000.0][random.below(5) as usize].into();
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
                border: Border::ALL[k % Border::ALL.len()],
                planes: Planes::All,
                algorithm: Algorithm::Auto,
                alpha: Default::default(),
            };
            // Tall for strips of rows, wide for long rows.
            for (width, height) in [(101, 151), (811, 23)] {
                let frame = noise(format(name), width, height, &mut random);
                assert!(agrees(&chain, &frame, threads), "{spec} {name}");
            }
        }
    }
}

/// Direct masks that planes of some size are transformed for, on white noise, on black and white, and where
/// all sums lie between two levels.
#[test]
fn large_direct_masks_give_the_references_bits() {
    let mut random = Random::new(26);
    let sizes = [(25, 25), (31, 17), (13, 41), (45, 45), (19, 19), (63, 11)];
    let formats = [
        "gray", "rgb24", "rgba", "yuv420p", "gray10le", "gray16le", "nv12", "p010le", "ya8", "rgb48le",
    ];
    let mut compared = 0;
    for k in 0..6 {
        let (columns, rows) = sizes[k % sizes.len()];
        let low = [1, -20][k / 2 % 2];
        let weights: Vec<i64> = (0..columns * rows)
            .map(|_| low + random.below(60) as i64)
            .collect();
        let total = weights.iter().sum::<i64>().max(1);
        let ties = k % 5 == 4;
        let mask = Mask::from_integers(columns, rows, weights, if ties { 2 * total } else { total }).unwrap();
        let mut chain = chain(
            mask,
            Border::ALL[random.below(Border::ALL.len() as u64) as usize],
            Algorithm::Direct,
        );
        chain.planes = ["all", "all+alpha"][k % 2].parse().unwrap();
        let format = format(formats[k % formats.len()]);
        let mut frame = noise(format, [301, 260, 407][k % 3], [233, 310][k % 2], &mut random);
        if ties {
            frame = frame_of(format, 300, 300, 1, |_, _, _, _| 77);
        } else if k % 4 == 3 && format.depth() == 8 {
            frame
                .bytes_mut()
                .iter_mut()
                .for_each(|b| *b = if *b < 128 { 0 } else { 255 });
        }
        compared += usize::from(agrees(&chain, &frame, 1 + k % 3));
    }
    assert!(compared > 3, "{compared}");
}

/// A separable or direct mask from integers that a border, a format and a size are then put to.
fn compare_everywhere(random: &mut Random, mask: &Mask, algorithm: Algorithm) -> usize {
    let formats = [
        "gray",
        "rgb24",
        "rgba",
        "ya8",
        "nv12",
        "gray10le",
        "p010le",
        "yuv444p12le",
        "rgb48le",
    ];
    let mut compared = 0;
    for _ in 0..3 {
        let name = formats[random.below(formats.len() as u64) as usize];
        let width = [1, 2, 5, 31, 61, 67, 131][random.below(7) as usize];
        let height = [1, 2, 3, 17, 71][random.below(5) as usize];
        let mut chain = chain(
            mask.clone(),
            Border::ALL[random.below(Border::ALL.len() as u64) as usize],
            algorithm,
        );
        chain.filters[0].bias = [0.0, 0.0, 0.0, 40.0, -300.0][random.below(5) as usize].into();
        chain.planes = ["all", "all+alpha"][random.below(2) as usize].parse().unwrap();
        let frame = noise(format(name), width, height, random);
        compared += usize::from(agrees(&chain, &frame, 1 + random.below(2) as usize));
    }
    compared
}

#[test]
fn boxes_of_every_size_give_the_references_bits() {
    let mut random = Random::new(22);
    let mut compared = 0;
    for size in (1..=63).step_by(2) {
        for height in [size, 3, 1] {
            let mask =
                Mask::from_integers(size, height, vec![1; size * height], (size * height) as i64).unwrap();
            let algorithm = if size * height > 400 || random.below(2) == 0 {
                Algorithm::Separable
            } else {
                Algorithm::Direct
            };
            compared += compare_everywhere(&mut random, &mask, algorithm);
        }
    }
    assert!(compared > 250, "{compared}");
}

/// Boxes of many columns on rows so long that two of them are made at once, and masks that are boxes but for
/// their centre, likewise.
#[test]
fn large_boxes_on_long_rows_give_the_references_bits() {
    let mut random = Random::new(32);
    for (name, width) in [
        ("gray", 4161),
        ("nv12", 4130),
        ("rgb24", 1367),
        ("rgba", 1029),
        ("gray10le", 4097),
    ] {
        for (columns, rows) in [(17, 17), (21, 21), (31, 31), (41, 19), (63, 3), (17, 3)] {
            let is_whole = rows == 3;
            let mut weights = vec![1; columns * rows];
            if is_whole {
                weights[columns * rows / 2] = 5;
            }
            let total = weights.iter().sum();
            let mask = Mask::from_integers(columns, rows, weights, total).unwrap();
            let algorithm = if is_whole {
                Algorithm::Direct
            } else {
                Algorithm::Separable
            };
            let mut chain = chain(
                mask,
                Border::ALL[random.below(Border::ALL.len() as u64) as usize],
                algorithm,
            );
            chain.planes = ["all", "all+alpha"][random.below(2) as usize].parse().unwrap();
            for height in [1, 2, 9, 44] {
                let frame = noise(format(name), width, height, &mut random);
                assert!(
                    agrees(&chain, &frame, 1 + random.below(2) as usize),
                    "{name} {columns}x{rows}"
                );
            }
        }
    }
}

/// Small boxes of bytes, at every width around those of vectors, with all numbers of components.
#[test]
fn small_boxes_of_bytes_give_the_references_bits_at_any_width() {
    let mut random = Random::new(24);
    for (name, planes) in [
        ("gray", "all"),
        ("nv12", "all"),
        ("rgb24", "all"),
        ("rgb24", "g"),
        ("rgba", "a"),
    ] {
        for width in (1..=70).chain([127, 128, 129, 191, 192, 193, 255, 256, 257, 1025, 1366, 4097]) {
            for (columns, rows) in [(3, 3), (5, 5), (7, 7), (3, 9), (7, 3)] {
                let count = columns * rows;
                // A large divisor takes a scale that shifts by more than eight bits.
                let divisor = [count, count, count, 63 * count][random.below(4) as usize];
                let mask = Mask::from_integers(columns, rows, vec![1; count], divisor as i64).unwrap();
                let mut chain = chain(
                    mask,
                    Border::ALL[random.below(Border::ALL.len() as u64) as usize],
                    Algorithm::Auto,
                );
                chain.planes = planes.parse().unwrap();
                let frame = noise(format(name), width, 1 + random.below(20) as usize, &mut random);
                assert!(agrees(&chain, &frame, 1 + random.below(2) as usize));
            }
        }
    }
}

/// Every number of columns of a box that has a loop of its own, and other loops, at every width up to two
/// steps of the longest vectors: the last step of a row reads further than results go.
#[test]
fn every_width_up_to_two_vectors_gives_the_references_bits() {
    let mut random = Random::new(33);
    let boxes = (7..=33).step_by(2).map(|columns| {
        let mask = Mask::from_integers(columns, 3, vec![1; 3 * columns], 3 * columns as i64).unwrap();
        chain(mask, Border::Replicate, Algorithm::Auto)
    });
    let named = [
        "gaussian:size=3",
        "gaussian:size=9",
        "gaussian:size=27",
        "sobel",
        "scharr:scale=0.5",
    ]
    .map(|spec| Chain::parse(spec).unwrap());
    for mut chain in boxes.chain(named) {
        for width in 1..=130 {
            chain.border = Border::ALL[random.below(Border::ALL.len() as u64) as usize];
            let frame = noise(format("gray"), width, 3 + random.below(3) as usize, &mut random);
            assert!(agrees(&chain, &frame, 1), "{width}");
        }
    }
}

/// Symmetric 3x3 masks on bytes, likewise: with sums far larger than a word or a byte holds, and without any
/// shift.
#[test]
fn mirrored_masks_of_bytes_give_the_references_bits_at_any_width() {
    let mut random = Random::new(25);
    let mut compared = 0;
    for (name, planes) in [
        ("gray", "all"),
        ("nv12", "all"),
        ("rgb24", "all"),
        ("rgb24", "g"),
        ("rgba", "a"),
        ("rgba", "all"),
    ] {
        for width in (1..=140).chain([191, 192, 193, 255, 256, 257]) {
            let most = [2, 12, 400, 20_000][random.below(4) as usize];
            let [corner, above, left, middle] =
                std::array::from_fn(|_| random.below(2 * most + 1) as i64 - most as i64);
            let weights = vec![corner, above, corner, left, middle, left, corner, above, corner];
            let scale = [1, 1 << random.below(12), 1 + random.below(30) as i64][random.below(3) as usize];
            let mask = Mask::from_integers(3, 3, weights, scale).unwrap();
            let mut chain = chain(
                mask,
                Border::ALL[random.below(Border::ALL.len() as u64) as usize],
                Algorithm::Direct,
            );
            chain.filters[0].bias = [0.0, 0.0, 0.0, -300.0][random.below(4) as usize].into();
            chain.planes = planes.parse().unwrap();
            // Black and white, whose sums are the furthest apart, or noise.
            let mut frame = noise(format(name), width, 1 + random.below(12) as usize, &mut random);
            if random.below(2) == 0 {
                frame
                    .bytes_mut()
                    .iter_mut()
                    .for_each(|b| *b = if *b < 128 { 0 } else { 255 });
            }
            compared += usize::from(agrees(&chain, &frame, 1 + random.below(2) as usize));
        }
    }
    assert!(compared > 800, "{compared}");
}

#[test]
fn masks_that_are_almost_boxes_give_the_references_bits() {
    let mut random = Random::new(23);
    let mut compared = 0;
    for (width, height) in [
        (3, 3),
        (5, 3),
        (3, 7),
        (1, 3),
        (5, 5),
        (11, 11),
        (13, 13),
        (9, 15),
    ] {
        let count = width * height;
        for off in [-3000, -9, -1, 1, 2, 10, 3000] {
            for weight in [1, 3, 200, -1] {
                // At the centre, which boxes allow, beside it and in a corner, which they do not.
                for at in [count / 2, count / 2 - 1, 0] {
                    let mut q = vec![weight; count];
                    q[at] += off;
                    let total: i64 = q.iter().sum();
                    let divisor = if total > 0 { total } else { 1 + off.abs() };
                    let mask = Mask::from_integers(width, height, q, divisor).unwrap();
                    compared += compare_everywhere(&mut random, &mask, Algorithm::Direct);
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn columns_of_steps_give_the_references_bits() {
    let mut random = Random::new(24);
    let mut compared = 0;
    for steps in 0..=4 {
        for width in [3, 5, 9, 19, 33] {
            for mirrored in [true, false] {
                // From the edge to the middle a step every other row, and back.
                let height = 11;
                let column = (0..height).map(|j: usize| {
                    let j = if mirrored { j.min(height - 1 - j) } else { j };
                    3 + 2 * j.div_ceil(2).min(steps) as i64
                });
                let column: Vec<i64> = column.collect();
                let q: Vec<i64> = (0..width * height).map(|k| column[k / width]).collect();
                let total = q.iter().sum();
                let mask = Mask::from_integers(width, height, q, total).unwrap();
                compared += compare_everywhere(&mut random, &mask, Algorithm::Separable);
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn rows_that_are_interleaved_give_the_references_bits() {
    let mut random = Random::new(25);
    let mut compared = 0;
    for width in (1..=17).step_by(2) {
        for kind in 0..4 {
            let mut row: Vec<i64> = (0..width).map(|_| random.below(400) as i64 - 100).collect();
            for i in 0..width / 2 {
                match kind {
                    0 => row[width - 1 - i] = row[i],
                    1 => row[width - 1 - i] = -row[i],
                    // But for one weight a mirror image.
                    2 => row[width - 1 - i] = row[i] + i64::from(i == 0),
                    _ => {}
                }
            }
            let column = [1 + random.below(9) as i64, 5, 1 + random.below(9) as i64];
            let q: Vec<i64> = (0..width * 3)
                .map(|k| row[k % width] * column[k / width])
                .collect();
            let magnitude: i64 = q.iter().map(|v| v.abs()).sum();
            let mask = Mask::from_integers(width, 3, q, magnitude.max(1)).unwrap();
            for _ in 0..2 {
                compared += compare_everywhere(&mut random, &mask, Algorithm::Separable);
            }
        }
    }
    assert!(compared > 150, "{compared}");
}

/// Loops whose number of terms is compiled in: every number, with weights that let sums be rounded as words
/// and such that do not, on noise and on pictures of black and white, whose sums go far beyond what words
/// hold.
#[test]
fn masks_of_few_terms_give_the_references_bits() {
    let mut random = Random::new(26);
    let mut compared = 0;
    let sizes = (3..=27).step_by(2).map(|width| (width, 1 + 2 * (width % 9)));
    let columns = (1..=19).step_by(2).map(|height| (5, height));
    let whole = [(3, 3), (1, 3), (1, 5), (1, 9), (3, 5), (5, 1), (3, 1)];
    let kinds = sizes.chain(columns).map(|size| (size, Algorithm::Separable));
    for ((width, height), algorithm) in kinds.chain(whole.map(|size| (size, Algorithm::Direct))) {
        for kind in 0..6 {
            let least = if kind < 3 { 0 } else { -40 };
            let mut weights = |count: usize, is_mirrored: bool| {
                let mut all: Vec<i64> = (0..count).map(|_| least + 1 + random.below(90) as i64).collect();
                for i in 0..count / 2 * usize::from(is_mirrored) {
                    all[count - 1 - i] = all[i];
                }
                all
            };
            let (row, column) = (weights(width, kind != 1), weights(height, true));
            let mut q: Vec<i64> = (0..width * height)
                .map(|k| row[k % width] * column[k / width])
                .collect();
            if algorithm == Algorithm::Direct {
                q = weights(width * height, false);
            }
            let magnitude: i64 = q.iter().map(|v| v.abs()).sum();
            // Gains of 1, and of 3 or so.
            let divisor = if kind % 3 == 2 { magnitude / 3 } else { magnitude };
            let mask = Mask::from_integers(width, height, q, divisor.max(1)).unwrap();
            for name in ["gray", "rgb24", "nv12", "rgba", "gray10le", "yuv420p"] {
                let size = (1 + random.below(150) as usize, 1 + random.below(9) as usize);
                let mut frame = noise(format(name), size.0, size.1, &mut random);
                if kind % 2 == 1 && !name.ends_with("10le") {
                    for plane in 0..frame.layout().planes().len() {
                        for y in 0..frame.layout().planes()[plane].height {
                            let row = frame.row_mut(plane, y);
                            row.iter_mut().for_each(|v| *v = if *v < 128 { 0 } else { 255 });
                        }
                    }
                }
                let mut chain = chain(
                    mask.clone(),
                    Border::ALL[random.below(Border::ALL.len() as u64) as usize],
                    algorithm,
                );
                chain.filters[0].bias = [0.0, 0.0, 0.0, 12.5][random.below(4) as usize].into();
                chain.planes = ["all", "all+alpha"][random.below(2) as usize].parse().unwrap();
                compared += usize::from(agrees(&chain, &frame, 1));
            }
        }
    }
    assert!(compared > 900, "{compared}");
}

/// Sums of deep samples that reach the ends of 32 bits and go beyond: pictures of black and white alone,
/// masks whose weights add up to 2^15, 2^16, 2^17 and more, to nothing, and with both signs.
#[test]
fn sixteen_bits_of_black_and_white_give_the_references_bits() {
    let mut random = Random::new(31);
    let specs = [
        "gaussian:size=3",
        "gaussian:size=5",
        "gaussian:size=7",
        "gaussian:size=9",
        "gaussian:size=13",
        "gaussian:size=17:sigma=2.5",
        "gaussian:size=27:sigma=7",
        "box:size=5",
        "sharpen",
        "unsharp:size=5",
        "laplacian8",
        "sobel-x",
        "mask:rows=1 3 7:divisor=16",
        "mask:rows=1 2 3;4 5 7;-6 8 9:divisor=sum",
        // As many taps as groups of them are compiled for, and one more.
        "mask:rows=1 2 3;2 3 4;1 9 1;4 5 6;1 2 2:divisor=sum",
        "mask:rows=1 2 3 4 5;5 4 3 2 1;1 1 8 1 1;2 2 2 2 2;3 4 5 6 7:divisor=sum",
        "mask:rows=-1 -2 -3 -2 -1;-2 4 5 4 -2;-3 5 9 5 -3;-2 4 5 4 -2;-1 -2 -3 -2 -2:divisor=3",
        "mask:rows=1 2 3 4 5 6 7;2 3 4 5 4 3 2;1 1 1 1 1 1 2:divisor=sum",
        "mask:rows=1 2 3;1 1 1;1 1 1;1 1 1;1 2 1;1 1 1;1 1 1;1 1 1;2 1 1:divisor=sum",
        "mask:rows=-1 2 -3 4 5 -4 3 -2 1:divisor=5",
        "mask:rows=-1 2 -3 4 5 -4 3 -2 1;2 -4 6 -8 -10 8 -6 4 -2;1 -2 3 -4 -5 4 -3 2 -1:divisor=5",
    ];
    let mut compared = 0;
    for spec in specs {
        for algorithm in [Algorithm::Direct, Algorithm::Separable] {
            for (name, bias) in [
                ("gray16le", 0.0),
                ("rgb48le", 0.0),
                ("gray16le", 30000.0),
                ("gray14le", 5.0),
                ("p016le", -9.5),
            ] {
                for white in [0, 16, 32] {
                    let mut frame = noise(format(name), 83, 11, &mut random);
                    for plane in 0..frame.layout().planes().len() {
                        for y in 0..frame.layout().planes()[plane].height {
                            for sample in frame.row_mut(plane, y).as_chunks_mut::<2>().0 {
                                let value = if random.below(32) < white {
                                    format(name).max_value() as u16
                                } else {
                                    0
                                };
                                *sample = value.to_le_bytes();
                            }
                        }
                    }
                    let mut chain = Chain {
                        filters: vec![spec.parse().unwrap()],
                        border: Border::ALL[random.below(Border::ALL.len() as u64) as usize],
                        planes: Planes::All,
                        algorithm,
                        alpha: Default::default(),
                    };
                    chain.filters[0].bias = bias.into();
                    compared += usize::from(agrees(&chain, &frame, 1));
                }
            }
        }
    }
    assert!(compared > 400, "{compared}");
}

/// Rows of interleaved components of every number and depth, under every border, at widths about those of
/// vectors.
#[test]
fn interleaved_components_give_the_references_bits_at_any_width() {
    let mut random = Random::new(31);
    let widths = [1, 2, 15, 16, 17, 31, 32, 33, 47, 64, 65, 95, 97, 128, 131, 257];
    let formats = [
        "ya8", "nv12", "rgb24", "rgba", "p010le", "ya16le", "rgb48le", "rgba64le",
    ];
    for name in formats {
        for (k, border) in Border::ALL.into_iter().enumerate() {
            // Short rows, long ones, and columns of other lengths.
            for (j, (columns, rows)) in [(3, 1), (5, 5), (9, 3), (21, 3), (27, 9), (41, 1)]
                .into_iter()
                .enumerate()
            {
                let mut weights =
                    |count: usize| -> Vec<i64> { (0..count).map(|_| 1 + random.below(30) as i64).collect() };
                let (row, column) = (weights(columns), weights(rows));
                let q: Vec<i64> = (0..columns * rows)
                    .map(|at| row[at % columns] * column[at / columns])
                    .collect();
                let divisor = q.iter().sum();
                let mask = Mask::from_integers(columns, rows, q, divisor).unwrap();
                let mut chain = chain(mask, border, Algorithm::Separable);
                // With alpha copied, and convolved along with the others.
                chain.planes = ["all", "all+alpha"][(k + j) % 2].parse().unwrap();
                chain.filters[0].bias = [0.0, 10.0][k / 2 % 2].into();
                let width = widths[random.below(widths.len() as u64) as usize];
                let height = [1, 2, 5, 11][random.below(4) as usize];
                let frame = noise(format(name), width, height, &mut random);
                let threads = 1 + random.below(2) as usize;
                assert!(agrees(&chain, &frame, threads), "{name} {columns}x{rows}");
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
