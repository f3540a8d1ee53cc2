//! Every named mask: its sum, its symmetry, its formula, and what quantisation makes of it.

use super::shapes::{pixel_in_disk, pixel_in_polygon};
use super::*;
use crate::filter::plan::integer::quantise::Limits;
use crate::filter::{Algorithm, Border, Chain, Filter, Kernel, Plan, Planes, factors, quantise, rank};
use crate::frame::{Colour, PixelFormat};

fn mask(spec: &str) -> Mask {
    spec.parse::<Filter>().unwrap().mask
}

const BLURS: &[&str] = &[
    "identity",
    "box",
    "box:size=1",
    "box:size=7",
    "box:size=63",
    "gaussian",
    "gaussian:sigma=0.001",
    "gaussian:sigma=0.3",
    "gaussian:sigma=3",
    "gaussian:size=15",
    "gaussian:size=5:sigma=900",
    "gaussian:sigma=10.3",
    "binomial",
    "binomial:size=1",
    "binomial:size=25",
    "binomial:size=31",
    "binomial:size=33",
    "binomial:size=63",
    "soft",
    "disk",
    "disk:radius=0.1",
    "disk:radius=0.5",
    "disk:radius=0.75",
    "disk:radius=31.5",
    "motion",
    "motion:length=1:angle=45",
    "motion:length=20:angle=30",
    "motion:length=63:angle=1",
    "motion:length=8:angle=90",
    "motion:length=12.5:angle=-200",
];

/// They add up to 1 without being blurs.
const SHARPENERS: &[&str] = &[
    "sharpen",
    "emboss",
    "unsharp",
    "unsharp:sigma=4:amount=2.5",
    "unsharp:amount=0",
    "unsharp:amount=100:sigma=0.01",
    "unsharp:size=63:amount=0.3",
];

const EDGES: &[&str] = &[
    "sobel",
    "prewitt",
    "scharr",
    "roberts",
    "kirsch",
    "laplacian8:abs:scale=1/4",
    "laplacian4",
    "laplacian8",
    "log",
    "log:size=3",
    "log:size=5:sigma=1.1",
    "log:size=9:amount=100",
    "log:size=15",
    "log:sigma=0.3",
    "log:sigma=20",
    "log:sigma=2.7:amount=0.01",
    "log5",
    "sobel-x",
    "sobel-y",
    "prewitt-x",
    "prewitt-y",
    "scharr-x",
    "scharr-y",
];

#[test]
fn the_lists_of_these_tests_name_every_mask() {
    for named in NAMED_MASKS {
        let listed = [BLURS, SHARPENERS, EDGES].concat().contains(&named.name);
        assert!(listed, "{}", named.name);
    }
}

#[test]
fn names_are_plain_and_unique_and_all_is_described() {
    let mut words: Vec<&str> = NAMED_MASKS
        .iter()
        .flat_map(|m| [Some(m.name), m.alias])
        .flatten()
        .collect();
    let count = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), count);
    for named in NAMED_MASKS {
        assert!(
            named
                .name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        );
        assert!(!named.about.is_empty() && !named.about.contains('\n'));
        for parameter in named.parameters {
            assert!(!parameter.about.is_empty());
            if let Preset::Value(value) = parameter.default {
                assert!(parameter.range.holds(value), "{} {}", named.name, parameter.name);
            }
        }
    }
}

#[test]
fn blurs_add_up_to_one_and_have_no_negative_weights() {
    for spec in BLURS {
        let m = mask(spec);
        assert!((m.sum() - 1.0).abs() < 1e-13, "{spec}: {}", m.sum());
        assert!(m.weights().iter().all(|&w| w >= 0.0), "{spec}");
    }
    for spec in SHARPENERS {
        let m = mask(spec);
        assert!((m.sum() - 1.0).abs() < 1e-11, "{spec}: {}", m.sum());
    }
}

#[test]
fn edges_add_up_to_exactly_zero() {
    for spec in EDGES {
        let m = mask(spec);
        assert_eq!(m.sum(), 0.0, "{spec}");
        assert_eq!(m.weights().iter().rev().sum::<f64>(), 0.0, "{spec} backwards");
        assert!(m.weights().iter().any(|&w| w != 0.0), "{spec}");
    }
}

#[test]
fn round_masks_are_symmetric_to_the_bit() {
    for spec in [
        "gaussian:sigma=2.3",
        "binomial:size=63",
        "disk:radius=4.3",
        "log",
        "log:size=15",
        "unsharp:sigma=1.7",
        "box",
        "soft",
        "laplacian4",
        "log5",
    ] {
        let m = mask(spec);
        let last = m.width() - 1;
        for j in 0..m.height() {
            for i in 0..m.width() {
                let w = m.at(i, j);
                assert_eq!(w, m.at(last - i, j), "{spec}");
                assert_eq!(w, m.at(i, last - j), "{spec}");
                assert_eq!(w, m.at(j, i), "{spec}");
            }
        }
    }
    for angle in [0, 17, 45, 90, 133] {
        let m = mask(&format!("motion:length=11:angle={angle}"));
        assert_eq!(m, m.flipped());
    }
}

#[test]
fn gaussians_are_what_the_formula_says() {
    let m = mask("gaussian:size=3:sigma=1");
    let e = (-0.5_f64).exp();
    let centre = 1.0 / (1.0 + 2.0 * e).powi(2);
    assert!((m.at(1, 1) - centre).abs() < 1e-15);
    assert!((m.at(0, 1) - centre * e).abs() < 1e-15);
    assert!((m.at(0, 0) - centre * e * e).abs() < 1e-15);
    assert_eq!(
        mask("gaussian:size=7").weights(),
        mask("gaussian:size=7:sigma=1.4").weights()
    );
    assert_eq!(
        mask("gaussian").weights(),
        mask("gaussian:sigma=1:size=7").weights()
    );
    assert_eq!(mask("gaussian:sigma=2.01").width(), 15);
}

#[test]
fn a_tiny_sigma_changes_nothing() {
    for sigma in ["1e-5", "1e-200", "5e-324", "0.02"] {
        let m = mask(&format!("gaussian:sigma={sigma}"));
        assert_eq!(m.weights(), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        let m = mask(&format!("unsharp:sigma={sigma}:amount=7"));
        assert_eq!(m.weights(), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    }
    assert_eq!(mask("disk:radius=1e-9").weights(), [1.0]);
}

#[test]
fn binomials_are_pascals_rows() {
    let m = mask("binomial:size=5");
    let exact = m.exact().unwrap();
    assert_eq!(exact.divisor, 256);
    assert_eq!(exact.numerators[..10], [1, 4, 6, 4, 1, 4, 16, 24, 16, 4]);
    assert_eq!(mask("binomial:size=3").exact(), mask("soft").exact());
    let exact = mask("binomial:size=31").exact().cloned().unwrap();
    assert_eq!(exact.divisor, 1 << 60);
    assert_eq!(exact.numerators[31 * 15 + 15], 155_117_520 * 155_117_520);
    assert_eq!(
        exact.numerators.iter().map(|&n| i128::from(n)).sum::<i128>(),
        1 << 60
    );
    let m = mask("binomial:size=63");
    assert!(m.exact().is_none());
    let middle = 465_428_353_255_261_088_f64 / 2_f64.powi(62);
    assert!((m.at(31, 31) / (middle * middle) - 1.0).abs() < 1e-15);
    assert_eq!(m.at(0, 0), 2_f64.powi(-124));
}

#[test]
fn the_laplacian_of_gaussian_is_near_its_formula() {
    // Where the mask holds nearly all of the Gaussian, the correction is small.
    let m = mask("log:sigma=2:size=25");
    for (x, y) in [(0, 0), (1, 0), (2, 1), (3, 3), (6, 0)] {
        let r2 = f64::from(x * x + y * y);
        let s2 = 4.0_f64;
        let formula =
            -(r2 - 2.0 * s2) / (s2 * s2) * (-r2 / (2.0 * s2)).exp() / (2.0 * std::f64::consts::PI * s2);
        let found = m.at(12 + x as usize, 12 + y as usize);
        assert!((found - formula).abs() < 1e-6, "{x} {y}: {found} {formula}");
    }
    assert_eq!(rank(&m), 2);
    let doubled = mask("log:sigma=2:size=25:amount=2");
    assert!((doubled.at(12, 12) / m.at(12, 12) - 2.0).abs() < 1e-12);
    assert_eq!(mask("log").width(), 13);
}

#[test]
fn unsharp_adds_the_difference_from_the_blur() {
    let (m, blur) = (mask("unsharp:sigma=1.5:amount=0.5"), mask("gaussian:sigma=1.5"));
    for (at, (u, g)) in m.weights().iter().zip(blur.weights()).enumerate() {
        let one = if at == m.weights().len() / 2 { 1.0 } else { 0.0 };
        assert!((u - (one + 0.5 * (one - g))).abs() < 1e-15);
    }
}

#[test]
fn level_lines_cover_whole_pixels() {
    let m = mask("motion:length=5");
    assert_eq!((m.width(), m.height()), (5, 1));
    assert!(m.weights().iter().all(|w| (w - 0.2).abs() < 1e-15));
    let m = mask("motion:length=4");
    let expected = [0.125, 0.25, 0.25, 0.25, 0.125];
    assert!(
        m.weights()
            .iter()
            .zip(expected)
            .all(|(w, e)| (w - e).abs() < 1e-15)
    );
    let m = mask("motion:length=4:angle=90");
    assert_eq!((m.width(), m.height()), (1, 5));
    assert!(
        m.weights()
            .iter()
            .zip(expected)
            .all(|(w, e)| (w - e).abs() < 1e-15)
    );
    assert_eq!(mask("motion:length=4:angle=-90"), m);
}

#[test]
fn slanted_lines_rise_to_the_right() {
    let m = mask("motion:length=15:angle=45");
    assert_eq!(m.width(), m.height());
    let last = m.width() - 1;
    assert!(m.at(last - 1, 1) > 0.01 && m.at(1, 1) == 0.0);
    // A square of side sqrt(2), standing on a corner, covers the middle pixel whole and of each neighbour
    // beside it a triangle.
    let square = [(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)];
    assert!((pixel_in_polygon(&square, 0.0, 0.0) - 1.0).abs() < 1e-15);
    assert!((pixel_in_polygon(&square, 1.0, 0.0) - 0.25).abs() < 1e-15);
    assert!(pixel_in_polygon(&square, 1.0, 1.0).abs() < 1e-15);
    assert_eq!(pixel_in_polygon(&square, 5.0, 0.0), 0.0);
}

#[test]
fn the_coverage_of_a_disk_adds_up_to_its_area() {
    for radius in [0.3, 0.5, 0.6, 1.0, 1.5, 2.5, 3.7, 10.0, 31.5] {
        let reach = 32_i32;
        let mut area = 0.0;
        for y in -reach..=reach {
            for x in -reach..=reach {
                let covered = pixel_in_disk(f64::from(x.abs()), f64::from(y.abs()), radius);
                assert!((0.0..=1.0).contains(&covered));
                area += covered;
            }
        }
        let expected = std::f64::consts::PI * radius * radius;
        assert!(
            (area / expected - 1.0).abs() < 1e-11,
            "radius {radius}: {area} {expected}"
        );
    }
    let m = mask("disk:radius=1.5");
    assert_eq!(m.width(), 3);
    assert!((m.at(1, 1) - 1.0 / (std::f64::consts::PI * 2.25)).abs() < 2e-2);
    assert!(m.at(0, 0) < m.at(0, 1) && m.at(0, 1) < m.at(1, 1) + 1e-15);
    assert_eq!(mask("disk:radius=31.5").width(), 63);
}

#[test]
fn separable_masks_are_found() {
    for (spec, expected) in [
        ("box:size=63", 1),
        ("gaussian:sigma=10", 1),
        ("gaussian:sigma=0.2", 1),
        ("binomial:size=31", 1),
        ("binomial:size=63", 1),
        ("soft", 1),
        ("identity", 1),
        ("sobel-x", 1),
        ("prewitt-y", 1),
        ("scharr-x", 1),
        ("motion:length=9:angle=90", 1),
        ("sharpen", 2),
        ("emboss", 3),
        ("laplacian4", 2),
        ("laplacian8", 2),
        ("log5", 3),
        ("log:sigma=3", 2),
        ("unsharp", 2),
    ] {
        let m = mask(spec);
        assert_eq!(rank(&m), expected, "{spec}");
        assert_eq!(factors(&m).is_some(), expected == 1, "{spec}");
    }
    assert!(rank(&mask("disk:radius=4")) > 1);
}

#[test]
fn quantised_sums_are_exact_at_every_depth() {
    for depth in [8, 9, 10, 12, 14, 16] {
        let sums = |spec: &str| {
            let m = mask(spec);
            let q = quantise(m.weights(), m.width(), m.height(), Limits::short(depth), depth).unwrap();
            (q.sum(), 1_i64 << q.shift, q.weights)
        };
        for spec in BLURS.iter().chain(SHARPENERS) {
            let (sum, one, weights) = sums(spec);
            assert_eq!(sum, one, "{spec} at {depth} bits");
            assert!(
                SHARPENERS.contains(spec) || weights.iter().all(|&q| q >= 0),
                "{spec} at {depth} bits"
            );
        }
        for spec in EDGES {
            let (sum, _, weights) = sums(spec);
            assert_eq!(sum, 0, "{spec} at {depth} bits");
            assert!(weights.iter().any(|&q| q != 0), "{spec} at {depth} bits");
        }
    }
}

#[test]
fn plans_of_named_masks_keep_constants_and_use_their_factors() {
    for format in ["gray", "gray10le", "gray16le"] {
        let format = PixelFormat::from_name(format).unwrap();
        for spec in [BLURS, SHARPENERS, EDGES].concat() {
            let filter: Filter = spec.parse().unwrap();
            let (unit, separable) = (!EDGES.contains(&spec), filter.is_separable());
            for algorithm in [Algorithm::Direct, Algorithm::Auto, Algorithm::Separable] {
                let chain = Chain {
                    filters: vec![filter.clone()],
                    border: Border::Replicate,
                    planes: Planes::All,
                    algorithm,
                    alpha: Default::default(),
                };
                let plan = Plan::new(&chain, format, &Colour::default());
                if algorithm == Algorithm::Separable && !separable {
                    assert!(plan.unwrap_err().to_string().contains("separable"), "{spec}");
                    continue;
                }
                let kernel = plan.unwrap().steps.remove(0).kernel;
                let max = i64::from(format.max_value());
                let sum = |weights: &[i32]| weights.iter().map(|&q| i64::from(q)).sum::<i64>();
                // What the engines make of a constant picture.
                for level in [0, 1, max / 3, max] {
                    let (total, divisor) = match &kernel {
                        Kernel::Direct(k) => (level * sum(&k.weights), k.division.divisor()),
                        Kernel::Combined(k) => {
                            let sums = k.masks.iter().map(|mask| level * sum(mask));
                            (k.combine(sums), 1 << k.shift)
                        }
                        Kernel::Pyramid(k) => (level << k.last_shift(), 1 << k.last_shift()),
                        Kernel::Weighted(_) => panic!("{format} has no alpha"),
                        Kernel::Separable(k) => {
                            let row = (level * sum(&k.row.weights) + k.row.start()) >> k.row.shift;
                            let between = row + k.row.offset;
                            (between * sum(&k.column.weights), k.column.division.divisor())
                        }
                    };
                    let out = (total + divisor / 2).div_euclid(divisor);
                    assert_eq!(out, if unit { level } else { 0 }, "{spec} {format} {algorithm}");
                }
            }
        }
    }
}
