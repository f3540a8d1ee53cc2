//! Gaussians that fit no mask: within a level of the real one, the same bits on every instruction set, and
//! nothing but a Gaussian of its sigma.

use super::oracle::{Random, compare, first_difference, format, frame_of, noise, run};
use framepipe::engine::cpu::Cpu;
use framepipe::filter::{Border, Chain, Kernel, Pass, Plan, Planes, PyramidGrid, PyramidKernel};
use framepipe::frame::Colour;

fn chain(spec: &str, border: Border, planes: Planes) -> Chain {
    Chain::parse(spec)
        .unwrap()
        .with_border(border)
        .with_planes(planes)
}

#[test]
fn every_set_gives_the_references_bits_in_every_format() {
    let mut random = Random::new(71);
    let formats = [
        "gray",
        "yuv420p",
        "nv12",
        "rgb24",
        "rgba",
        "ya8",
        "gbrap",
        "gray10le",
        "p010le",
        "yuva444p12le",
        "gray14le",
        "gray16le",
        "rgba64le",
    ];
    for name in formats {
        for (sigma, (width, height)) in [(10.4, (37, 29)), (20.0, (53, 17)), (41.0, (19, 61))] {
            let border = Border::ALL[random.below(Border::ALL.len() as u64) as usize];
            let planes = [Planes::All, Planes::AllWithAlpha][random.below(2) as usize].clone();
            let chain = chain(&format!("gaussian:sigma={sigma}:bias=-3.5"), border, planes);
            compare(
                &chain,
                &noise(format(name), width, height, &mut random),
                1 + random.below(3) as usize,
                1,
            );
        }
    }
}

#[test]
fn every_set_gives_the_references_bits_at_every_border_and_size() {
    let mut random = Random::new(72);
    for border in Border::ALL {
        for (width, height) in [(1, 1), (1, 9), (9, 1), (2, 3), (67, 31), (300, 5), (5, 130)] {
            for spec in ["gaussian:sigma=11", "gaussian:sigma=150"] {
                let frame = noise(format("gray"), width, height, &mut random);
                compare(&chain(spec, border, Planes::All), &frame, 2, 1);
            }
        }
    }
    // Strips of several threads, and a chain with masks around it.
    let frame = noise(format("yuv420p"), 64, 480, &mut random);
    compare(
        &chain(
            "sharpen,gaussian:sigma=12,laplacian8",
            Border::Mirror,
            Planes::All,
        ),
        &frame,
        4,
        1,
    );
}

/// The real Gaussian of the samples of a picture of this size, row by row, cut off at eight sigmas. Where the
/// border holds a constant, `outside` is there.
pub(super) fn gaussian(
    samples: &[f64],
    (width, height): (usize, usize),
    sigma: f64,
    (border, outside): (Border, f64),
) -> Vec<f64> {
    let reach = (8.0 * sigma).ceil() as i64;
    let bell = |x: i64| (-0.5 * (x as f64 / sigma).powi(2)).exp();
    let total: f64 = (-reach..=reach).map(bell).sum();
    // What each pixel of a line weighs for each result of it, and what the border's constant does.
    let weights = |len: usize| -> Vec<(Vec<f64>, f64)> {
        (0..len as i64)
            .map(|at| {
                let (mut inside, mut constant) = (vec![0.0; len], 0.0);
                for x in -reach..=reach {
                    match border.index(at + x, len) {
                        Some(from) => inside[from] += bell(x) / total,
                        None => constant += bell(x) / total,
                    }
                }
                (inside, constant)
            })
            .collect()
    };
    let (across, down) = (weights(width), weights(height));
    let mut rows = vec![0.0; width * height];
    for y in 0..height {
        for x in 0..width {
            let (inside, constant) = &across[x];
            let line = (0..width).map(|from| samples[y * width + from] * inside[from]);
            rows[y * width + x] = line.sum::<f64>() + constant * outside;
        }
    }
    let result = |at: usize| {
        let (inside, constant) = &down[at / width];
        let column = (0..height).map(|from| rows[from * width + at % width] * inside[from]);
        column.sum::<f64>() + constant * outside
    };
    (0..width * height).map(result).collect()
}

#[test]
fn results_are_within_a_level_of_the_real_gaussian() {
    let mut random = Random::new(73);
    let (width, height) = (121, 83);
    let white = noise(format("gray"), width, height, &mut random);
    // Steps of full height show what is wrong with a kernel best.
    let steps = frame_of(format("gray"), width, height, 1, |_, x, y, _| {
        if (x / 31 + y / 23) % 2 == 0 { 255 } else { 0 }
    });
    for border in Border::ALL {
        for sigma in [10.4, 18.2, 30.0, 50.0, 100.0, 200.0] {
            let chain = chain(&format!("gaussian:sigma={sigma}"), border, Planes::All);
            for frame in [&white, &steps] {
                let got = run(&mut Cpu::new(chain.clone(), 1).unwrap(), frame, 1);
                let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
                let samples: Vec<f64> = places.map(|(x, y)| frame.sample(0, x, y, 0).into()).collect();
                let outside = match border {
                    Border::Constant(level) => level,
                    _ => 0.0,
                };
                let expected = gaussian(&samples, (width, height), sigma, (border, outside));
                for (at, expected) in expected.into_iter().enumerate() {
                    let level = f64::from(got.sample(0, at % width, at / width, 0));
                    // Half a level is rounding, a quarter what the passes differ by at most.
                    assert!(
                        (level - expected).abs() < 0.75,
                        "{border}, sigma {sigma}, pixel {at}: {level} for {expected}"
                    );
                }
            }
        }
    }
}

/// What pixels weigh along one side, by the integer weights, in the result `place` pixels behind a low pixel:
/// those from `reach` before it on.
fn composed(kernel: &PyramidKernel, decimate: &Pass, place: usize, reach: usize) -> Vec<f64> {
    let shares = |weights: &[i32]| -> Vec<f64> {
        let total: i64 = weights.iter().map(|&q| i64::from(q)).sum();
        weights.iter().map(|&q| f64::from(q) / total as f64).collect()
    };
    let (step, radius) = (kernel.grid.step, kernel.grid.low_radius);
    let (decimate, low) = (shares(&decimate.weights), shares(&kernel.low.weights));
    let mut line = vec![0.0; 2 * reach + 1];
    for (t, weight) in shares(&kernel.interpolate[place]).into_iter().enumerate() {
        for (k, filter) in low.iter().enumerate() {
            let first = reach as i64 + (t as i64 - 2 + k as i64 - radius as i64 - 3) * step as i64;
            for (i, share) in decimate.iter().enumerate() {
                line[(first + i as i64 - place as i64) as usize] += weight * filter * share;
            }
        }
    }
    line
}

/// White where the passes weigh a pixel more than the real Gaussian does, black elsewhere: no picture makes a
/// larger difference at the pixel for which that was found.
#[test]
fn the_worst_picture_stays_within_the_stated_bound() {
    for (sigma, name) in [10.34, 16.0, 18.2, 36.3]
        .into_iter()
        .flat_map(|sigma| ["gray", "gray12le", "gray16le"].map(|name| (sigma, name)))
    {
        let format = format(name);
        let (depth, white) = (format.depth(), f64::from(format.max_value()));
        let kernel = PyramidKernel::new(sigma, depth);
        let step = kernel.grid.step;
        let reach = (kernel.grid.low_radius + PyramidGrid::TAPS + 3) * step;
        let bell = |x: i64| (-0.5 * (x as f64 / sigma).powi(2)).exp();
        let total: f64 = (-1000..=1000).map(bell).sum();
        let real: Vec<f64> = (-(reach as i64)..=reach as i64)
            .map(|x| bell(x) / total)
            .collect();
        // The place whose weights are off most, of each side.
        let worst = |decimate: &Pass| {
            let off = |line: &Vec<f64>| -> f64 { line.iter().zip(&real).map(|(a, b)| (a - b).abs()).sum() };
            let lines = (0..step).map(|place| (composed(&kernel, decimate, place, reach), place));
            lines.max_by(|a, b| off(&a.0).total_cmp(&off(&b.0))).unwrap()
        };
        let ((down, row), (across, column)) = (worst(&kernel.rows), worst(&kernel.columns));
        let first = reach.next_multiple_of(step);
        let (x, y) = (first + column, first + row);
        let weighs_more = |i: usize, j: usize| down[j] * across[i] > real[j] * real[i];
        let size = first + step + reach + 1;
        let (mut predicted, mut expected) = (0.0, 0.0);
        let frame = frame_of(format, size, size, 1, |_, i, j, _| {
            let (Some(i), Some(j)) = ((i + reach).checked_sub(x), (j + reach).checked_sub(y)) else {
                return 0;
            };
            if i >= real.len() || j >= real.len() || !weighs_more(i, j) {
                return 0;
            }
            predicted += white * (down[j] * across[i] - real[j] * real[i]);
            expected += white * real[j] * real[i];
            format.max_value()
        });
        let bound = white / 1020.0;
        assert!(predicted > bound / 8.0, "{sigma} {name}: {predicted}");
        let chain = chain(&format!("gaussian:sigma={sigma}"), Border::Zero, Planes::All);
        let found = f64::from(run(&mut Cpu::new(chain, 2).unwrap(), &frame, 1).sample(0, x, y, 0));
        // Half a level is the last rounding, and a tenth what the passes round.
        assert!(
            (found - expected).abs() < 0.6 + bound && (found - expected - predicted).abs() < 0.6,
            "{sigma} {name}: {found} for {expected}, where {predicted} more were predicted"
        );
    }
}

#[test]
fn constant_pictures_stay_as_they_are() {
    for name in ["gray", "gray10le", "gray16le", "rgb24"] {
        let format = format(name);
        for level in [0, 1, format.max_value() / 3, format.max_value()] {
            let frame = frame_of(format, 40, 30, 1, |_, _, _, _| level);
            let chain = chain("gaussian:sigma=33", Border::Mirror, Planes::All);
            let got = run(&mut Cpu::new(chain, 2).unwrap(), &frame, 1);
            assert_eq!(first_difference(&frame, &got), None, "{name} {level}");
        }
    }
}

#[test]
fn only_gaussians_that_fit_no_mask_are_made_so() {
    let kernel = |spec: &str| {
        let plan = Plan::new(&Chain::parse(spec).unwrap(), format("gray"), &Colour::default());
        plan.unwrap().steps.remove(0).kernel
    };
    assert!(matches!(kernel("gaussian:sigma=10.3"), Kernel::Separable(_)));
    assert!(matches!(kernel("gaussian:sigma=10.4"), Kernel::Pyramid(_)));
    assert!(matches!(
        kernel("gaussian:sigma=50:size=63"),
        Kernel::Separable(_)
    ));
    let direct = Chain::parse("gaussian:sigma=50")
        .unwrap()
        .with_algorithm("direct".parse().unwrap());
    let error = Plan::new(&direct, format("gray"), &Colour::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("--algorithm auto"), "{error}");
}
