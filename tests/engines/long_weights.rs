//! Weights of three bytes and of 31 bits: every instruction set against the reference, bit for bit, and the
//! plan's integers against the real weights, on the pictures that are worst for them.

use super::oracle::{Random, chain, compare, format, frame_of, noise, real, run};
use framepipe::engine::reference::Reference;
use framepipe::filter::{Algorithm, AlphaWeighting, Border, Chain, Filter, Kernel, Mask, Plan, factors};
use framepipe::frame::{Frame, PixelFormat};

/// The first filter's kernel for frames like this one.
fn kernel(chain: &Chain, frame: &Frame) -> Option<Kernel> {
    let plan = Plan::new(chain, frame.format(), &frame.metadata.colour).ok()?;
    plan.steps.into_iter().next().map(|step| step.kernel)
}

/// A chain of one filter; colours are not weighted by alpha, so that they take its integers.
fn one(spec: &str, border: Border, algorithm: Algorithm) -> Chain {
    let filter: Filter = spec.parse().unwrap_or_else(|e| panic!("{spec}: {e}"));
    Chain {
        filters: vec![filter],
        alpha: AlphaWeighting::Straight,
        ..chain(Mask::new(1, 1, vec![1.0]).unwrap(), border, algorithm)
    }
}

/// True if the weights are long; then each set gives the reference's bits.
fn agrees_if_long(chain: &Chain, frame: &Frame, threads: usize) -> bool {
    let is_long = kernel(chain, frame).is_some_and(|kernel| kernel.is_long());
    if is_long {
        compare(chain, frame, threads, 1);
    }
    is_long
}

/// Gaussians of many sizes, masks of both signs, whole and in two passes, symmetric ones and others, and
/// several masks at once.
const SPECS: [&str; 19] = [
    "gaussian:size=3",
    "gaussian:size=5",
    "gaussian:size=7:sigma=1.3",
    "gaussian:size=9",
    "gaussian:size=11:bias=9.3",
    "gaussian:size=13",
    "gaussian:size=15",
    "gaussian:size=23",
    "unsharp:sigma=1",
    "unsharp:sigma=2:amount=1.7:threshold=3",
    "disk:radius=2.5",
    "log:size=9:sigma=1.4",
    "log:size=7:sigma=1:abs",
    "motion:length=9:angle=30",
    "kirsch:scale=0.7",
    "mask:rows=40000 3 -70000.5",
    "mask:rows=0.1234567;0.5;-0.333;2;0.25",
    "mask:rows=0.1234567 0.7 0.3;0.2 -1.1 0.9;0.33 0.01 0.07",
    "mask:rows=0.123456 0.5 0.123456;1.7 -0.3 1.7;-0.777 0.1 -0.777",
];

const FORMATS: [&str; 14] = [
    "gray16le",
    "rgb48le",
    "p016le",
    "gbrp16le",
    "gray14le",
    "rgba64le",
    "ya16le",
    "gray12le",
    "p010le",
    "gray9le",
    "gray",
    "rgb24",
    "nv12",
    "gbrap16le",
];

#[test]
fn long_masks_give_the_references_bits() {
    let mut random = Random::new(60);
    let sizes = [
        (1, 1),
        (1, 13),
        (17, 1),
        (2, 3),
        (5, 4),
        (31, 29),
        (67, 11),
        (43, 37),
    ];
    let (mut compared, mut of_specs) = (0, [0; SPECS.len()]);
    for (k, spec) in SPECS.into_iter().enumerate() {
        for name in FORMATS {
            for algorithm in [Algorithm::Direct, Algorithm::Separable] {
                let border = Border::ALL[random.below(Border::ALL.len() as u64) as usize];
                let mut chain = one(spec, border, algorithm);
                chain.planes = ["all", "all+alpha", "luma"][random.below(3) as usize]
                    .parse()
                    .unwrap();
                let (width, height) = sizes[random.below(8) as usize];
                let frame = noise(format(name), width, height, &mut random);
                let is_long = agrees_if_long(&chain, &frame, 1 + random.below(3) as usize);
                compared += usize::from(is_long);
                of_specs[k] += usize::from(is_long);
            }
        }
    }
    assert!(compared > 150, "{compared}");
    assert!(of_specs.iter().all(|&n| n > 0), "{of_specs:?}");
}

/// Rows that are cut into parts, with borders from both ends of them.
#[test]
fn parts_of_rows_give_the_references_bits() {
    let mut random = Random::new(61);
    for border in Border::ALL {
        for (spec, name, algorithm, width) in [
            ("gaussian:size=15", "gray16le", Algorithm::Auto, 3851),
            ("gaussian:size=31", "rgba64le", Algorithm::Separable, 601),
            ("unsharp:sigma=1", "rgb48le", Algorithm::Auto, 1511),
        ] {
            let frame = noise(format(name), width, 9, &mut random);
            assert!(
                agrees_if_long(&one(spec, border, algorithm), &frame, 2),
                "{spec} {name}"
            );
        }
    }
}

/// Columns of many heights, symmetric and not.
#[test]
fn columns_of_many_heights_give_the_references_bits() {
    let mut random = Random::new(62);
    let mut compared = 0;
    for rows in (3..=63).step_by(4) {
        let half: Vec<f64> = (0..=rows / 2).map(|_| random.below(1000) as f64 / 3e3).collect();
        let mirrored: Vec<f64> = half.iter().chain(half.iter().rev().skip(1)).copied().collect();
        let other: Vec<f64> = mirrored
            .iter()
            .enumerate()
            .map(|(k, w)| w + k as f64 * 1e-3)
            .collect();
        for weights in [mirrored, other] {
            let row = [0.21, 0.58, 0.21];
            let both = weights.iter().flat_map(|w| row.map(|r| w * r)).collect();
            let mask = Mask::new(3, rows, both).unwrap();
            let chain = chain(
                mask,
                Border::ALL[rows / 2 % Border::ALL.len()],
                Algorithm::Separable,
            );
            let frame = noise(format("gray16le"), 61, 10, &mut random);
            compared += usize::from(agrees_if_long(&chain, &frame, 1));
        }
    }
    assert!(compared > 25, "{compared}");
}

/// What is rounded last, without a bias, at the middle of a picture of the mask's size.
fn before_the_last_rounding(kernel: &Kernel, picture: &[i64]) -> f64 {
    let total = |weights: &[i32], values: &[i64]| -> i64 {
        weights.iter().zip(values).map(|(&q, p)| i64::from(q) * p).sum()
    };
    match kernel {
        Kernel::Direct(k) => total(&k.weights, picture) as f64 / k.division.divisor() as f64,
        Kernel::Separable(k) => {
            let rows = picture.chunks(k.row.weights.len());
            let t = rows.map(|row| (total(&k.row.weights, row) + k.row.start()) >> k.row.shift);
            let lines: Vec<i64> = t.collect();
            total(&k.column.weights, &lines) as f64 / k.column.division.divisor() as f64
        }
        _ => panic!("a mask makes no other kernel"),
    }
}

/// What a kernel's weights are in all.
fn effective(kernel: &Kernel) -> Vec<f64> {
    let over =
        |weights: &[i32], one: f64| -> Vec<f64> { weights.iter().map(|&q| f64::from(q) / one).collect() };
    match kernel {
        Kernel::Direct(k) => over(&k.weights, k.division.divisor() as f64),
        Kernel::Separable(k) => {
            let row = over(&k.row.weights, 2_f64.powi(k.row.shift as i32));
            let column = over(&k.column.weights, k.column.division.divisor() as f64);
            column
                .iter()
                .flat_map(|c| row.iter().map(move |r| c * r))
                .collect()
        }
        _ => panic!("a mask makes no other kernel"),
    }
}

/// A random real mask: noise, a bell, a bell on a heavy centre, a product of two rows; of some gain.
fn real_mask(random: &mut Random) -> Mask {
    let mut side = || 1 + 2 * random.below(8) as usize;
    let (w, h) = (side(), side());
    let mut number = || random.below(2_000_001) as f64 / 1e6 - 1.0;
    let (row, column): (Vec<f64>, Vec<f64>) = (
        (0..w).map(|_| number()).collect(),
        (0..h).map(|_| number()).collect(),
    );
    let bell = |i: usize, n: usize| (-((i as f64 - (n / 2) as f64) / (n as f64 / 4.0)).powi(2)).exp();
    let noise: Vec<f64> = (0..w * h).map(|_| number()).collect();
    let kind = random.below(4);
    let mut weights: Vec<f64> = (0..w * h)
        .map(|k| match kind {
            0 => noise[k],
            1 | 2 => bell(k % w, w) * bell(k / w, h),
            _ => row[k % w] * column[k / w],
        })
        .collect();
    if kind == 2 {
        weights[w * h / 2] -= 100.0;
    }
    let total: f64 = weights.iter().map(|w| w.abs()).sum();
    let gain = [0.37, 1.0, 3.7, 41.0][random.below(4) as usize] / total.max(1e-6);
    Mask::new(w, h, weights.iter().map(|w| w * gain).collect()).unwrap()
}

/// No result is more than half a level off the real one before it is rounded, so one in all: on noise, and on
/// the largest sample where a weight is too large and nothing where it is too small, and the other way round.
#[test]
fn no_weight_costs_more_than_half_a_level() {
    let mut random = Random::new(63);
    let formats: Vec<PixelFormat> = ["gray", "gray9le", "gray10le", "gray12le", "gray14le", "gray16le"]
        .map(format)
        .to_vec();
    let (mut compared, mut long, mut most) = (0, 0, 0.0_f64);
    for k in 0..600 {
        let mask = real_mask(&mut random);
        let algorithm = match factors(&mask) {
            Some(_) if k % 2 == 0 => Algorithm::Separable,
            _ => Algorithm::Direct,
        };
        let format = formats[k % formats.len()];
        let max = i64::from(format.max_value());
        let (w, h) = (mask.width(), mask.height());
        let mut chain = chain(mask, Border::Zero, algorithm);
        let weights = chain.filters[0].mask.weights().to_vec();
        let any = noise(format, w, h, &mut random);
        let Some(kernel) = kernel(&chain, &any) else {
            continue;
        };
        let error: Vec<f64> = effective(&kernel)
            .iter()
            .zip(&weights)
            .map(|(q, w)| q - w)
            .collect();
        let noise: Vec<i64> = (0..w * h)
            .map(|k| any.sample(0, k % w, k / w, 0).into())
            .collect();
        let above = error.iter().map(|&e| if e > 0.0 { max } else { 0 }).collect();
        let below = error.iter().map(|&e| if e < 0.0 { max } else { 0 }).collect();
        for picture in [noise, above, below] {
            let exact: f64 = weights.iter().zip(&picture).map(|(w, &p)| w * p as f64).sum();
            let off = (before_the_last_rounding(&kernel, &picture) - exact).abs();
            assert!(off <= 0.5 + 1e-6, "{off}: {format} {algorithm} {chain:?}");
            most = most.max(off);
            // The result in the middle of the range, where nothing is clamped.
            let frame = frame_of(format, w, h, 1, |_, x, y, _| picture[y * w + x] as u32);
            let at = (0, w / 2, h / 2, 0);
            chain.filters[0].bias = 0.0.into();
            let centre = real(
                &frame,
                &frame.metadata.colour,
                &chain.filters[0],
                Border::Zero,
                at,
            );
            chain.filters[0].bias =
                ((max as f64 / 2.0 - centre) / f64::from(1 << (format.depth() - 8))).into();
            let result = run(&mut Reference::new(chain.clone()), &frame, 1);
            let off = (f64::from(result.sample(0, w / 2, h / 2, 0)) - max as f64 / 2.0).abs();
            assert!(off <= 1.0 + 1e-6, "{off}: {format} {algorithm} {chain:?}");
        }
        compared += 1;
        long += usize::from(kernel.is_long());
    }
    assert!(compared > 500 && long > 100, "{compared} {long}");
    // The bound is not far from what the worst pictures come to.
    assert!(most > 0.4, "{most}");
}

/// Weights that no 31 bits hold beside others, or alone, are refused.
#[test]
fn weights_that_cost_more_are_refused() {
    let frame = noise(format("gray16le"), 3, 1, &mut Random::new(64));
    for (weights, is_refused) in [
        ([0.0, 1073741824.0, 0.0], false),
        ([0.0, 2147483648.0, 0.0], true),
        ([0.0, 4000.0, 0.3], false),
        ([0.0, 1073741823.0, 0.3], true),
    ] {
        let mask = Mask::new(3, 1, weights.to_vec()).unwrap();
        let chain = chain(mask, Border::Zero, Algorithm::Direct);
        assert_eq!(kernel(&chain, &frame).is_none(), is_refused, "{weights:?}");
    }
}
