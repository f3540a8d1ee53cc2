//! The named masks: one table of what each is called, takes and computes, from which the grammar reads and the listing prints.
//!
//! All are applied as correlations. Where f64 cannot add weights without error, masks that find edges are put on a grid on which it can,
//! so that their sum is exactly zero.

use super::{MAX_MASK, Mask, MaskError};
use std::cell::RefCell;

/// One named mask.
#[derive(Debug)]
pub struct NamedMask {
    /// The word that a filter begins with.
    pub name: &'static str,
    /// Another word for the same mask.
    pub alias: Option<&'static str>,
    /// What it does, in one line.
    pub about: &'static str,
    /// What it takes.
    pub parameters: &'static [Parameter],
    pub(super) build: fn(&Arguments<'_>) -> Result<Mask, MaskError>,
}

/// One parameter of a named mask.
#[derive(Debug)]
pub struct Parameter {
    /// The word before the equals sign.
    pub name: &'static str,
    /// What it is when it is not given.
    pub default: Preset,
    /// What it means, with its unit.
    pub about: &'static str,
    /// What it may be.
    pub range: Range,
}

/// What a parameter is when it is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Preset {
    /// This.
    Value(f64),
    /// Computed from the others, as this text says.
    Follows(&'static str),
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// An odd integer from this to [`MAX_MASK`].
    Side(usize),
    /// A number above the first and up to the second.
    Above(f64, f64),
    /// A number from the first to the second.
    Within(f64, f64),
}

impl Range {
    /// True if the parameter may be `value`.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Range::Side(least) => {
                value.fract() == 0.0
                    && value % 2.0 == 1.0
                    && value >= least as f64
                    && value <= MAX_MASK as f64
            }
            Range::Above(low, high) => value > low && value <= high,
            Range::Within(low, high) => value >= low && value <= high,
        }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Range::Side(least) => write!(f, "an odd integer from {least} to {MAX_MASK}"),
            Range::Above(low, high) => write!(f, "a number above {low} and up to {high}"),
            Range::Within(low, high) => write!(f, "a number from {low} to {high}"),
        }
    }
}

/// The parameters that the user gave, each within its range.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    pub(super) parameters: &'a [Parameter],
    pub(super) given: Vec<(&'a str, f64)>,
    /// Where the mask is not quite what was asked for; set while it is built.
    pub(super) caveat: RefCell<Option<String>>,
}

impl Arguments<'_> {
    /// The value given.
    fn given(&self, name: &str) -> Option<f64> {
        self.given
            .iter()
            .find(|(key, _)| *key == name)
            .map(|&(_, value)| value)
    }

    /// The value given, or the table's default.
    fn value(&self, name: &str) -> f64 {
        let preset = |p: &Parameter| match p.default {
            Preset::Value(value) if p.name == name => Some(value),
            _ => None,
        };
        self.given(name)
            .or_else(|| self.parameters.iter().find_map(preset))
            .unwrap_or_default()
    }

    fn side(&self, name: &str) -> usize {
        self.value(name) as usize
    }

    /// Size and sigma of a bell, each from the other where only one is given; `reach` sigmas on either side fit the size.
    fn bell(&self, sigma: f64, reach: f64) -> Bell {
        let (size, given) = (self.given("size"), self.given("sigma"));
        let sigma = given.or_else(|| size.map(sigma_of)).unwrap_or(sigma);
        let wanted = 2.0 * (reach * sigma).ceil() + 1.0;
        let size = size.unwrap_or(wanted.min(MAX_MASK as f64)) as usize;
        if self.given("size").is_none() && wanted > size as f64 {
            self.caveat.replace(Some(format!(
                "sigma {sigma} needs a mask of {wanted}x{wanted}; it is cut off at {size}x{size}, which filters less than sigma says"
            )));
        }
        Bell { size, sigma }
    }
}

/// The sigma of a Gaussian that fits a mask of `size`: 0.8 at 3, and 0.15 more for each further pixel (OpenCV's rule).
fn sigma_of(size: f64) -> f64 {
    0.3 * ((size - 1.0) * 0.5 - 1.0) + 0.8
}

/// A Gaussian's side and standard deviation, in pixels.
struct Bell {
    size: usize,
    sigma: f64,
}

impl Bell {
    /// The Gaussian along one axis, adding up to 1. It narrows to a single 1 as sigma goes to 0.
    fn row(&self) -> Vec<f64> {
        let centre = (self.size / 2) as f64;
        // Divided before it is squared, for the square of a tiny sigma is 0.
        let weight = |i: usize| (-0.5 * ((i as f64 - centre) / self.sigma).powi(2)).exp();
        normalised((0..self.size).map(weight).collect())
    }
}

const SIZE_ONLY: &str = "2*ceil(3*sigma)+1, at most 63";
const SIGMA_ONLY: &str = "1, or 0.3*((size-1)/2-1)+0.8 of a given size";
const SIDE: Range = Range::Side(1);

const fn parameter(name: &'static str, default: Preset, range: Range, about: &'static str) -> Parameter {
    Parameter {
        name,
        default,
        about,
        range,
    }
}

/// A fixed matrix.
macro_rules! fixed {
    ($name:literal, $alias:expr, $width:literal x $height:literal, $weights:expr, $divisor:literal, $about:literal) => {
        NamedMask {
            name: $name,
            alias: $alias,
            about: $about,
            parameters: &[],
            build: |_| Mask::from_integers($width, $height, $weights.to_vec(), $divisor),
        }
    };
}

/// Every named mask, in the order in which they are listed.
pub static NAMED_MASKS: &[NamedMask] = &[
    fixed!("identity", None, 1 x 1, [1], 1, "changes nothing"),
    NamedMask {
        name: "box",
        alias: None,
        about: "the mean of a square",
        parameters: &[parameter("size", Preset::Value(3.0), SIDE, "side in pixels")],
        build: |a| {
            let n = a.side("size");
            Mask::from_integers(n, n, vec![1; n * n], (n * n) as i64)
        },
    },
    NamedMask {
        name: "gaussian",
        alias: None,
        about: "Gaussian blur, cut off at the mask's sides",
        parameters: &[
            parameter("size", Preset::Follows(SIZE_ONLY), SIDE, "side in pixels"),
            parameter(
                "sigma",
                Preset::Follows(SIGMA_ONLY),
                Range::Above(0.0, 1000.0),
                "standard deviation in pixels",
            ),
        ],
        build: |a| {
            let row = a.bell(1.0, 3.0).row();
            Mask::new(row.len(), row.len(), outer(&row))
        },
    },
    NamedMask {
        name: "binomial",
        alias: None,
        about: "blur by a row of Pascal's triangle; integers up to size 31",
        parameters: &[parameter("size", Preset::Value(5.0), SIDE, "side in pixels")],
        build: |a| binomial(a.side("size")),
    },
    fixed!("soft", None, 3 x 3, [1, 2, 1, 2, 4, 2, 1, 2, 1], 16, "light blur: 1 2 1 / 2 4 2 / 1 2 1 over 16"),
    NamedMask {
        name: "disk",
        alias: None,
        about: "the mean of a disk, edge pixels weighted by what it covers of them (out of focus)",
        parameters: &[parameter(
            "radius",
            Preset::Value(3.0),
            Range::Above(0.0, 31.5),
            "in pixels; a radius of 2.5 is a disk 5 pixels across",
        )],
        build: |a| disk(a.value("radius")),
    },
    NamedMask {
        name: "motion",
        alias: None,
        about: "the mean along a line one pixel wide, pixels weighted by what it covers of them",
        parameters: &[
            parameter(
                "length",
                Preset::Value(9.0),
                Range::Within(1.0, 63.0),
                "in pixels",
            ),
            parameter(
                "angle",
                Preset::Value(0.0),
                Range::Within(-360.0, 360.0),
                "in degrees, anticlockwise from horizontal",
            ),
        ],
        build: |a| motion(a.value("length"), a.value("angle")),
    },
    fixed!("sharpen", None, 3 x 3, [0, -1, 0, -1, 5, -1, 0, -1, 0], 1,
        "the picture plus laplacian4: 0 -1 0 / -1 5 -1 / 0 -1 0"),
    NamedMask {
        name: "unsharp",
        alias: None,
        about: "the picture plus amount times its difference from its Gaussian blur",
        parameters: &[
            parameter("size", Preset::Follows(SIZE_ONLY), SIDE, "side in pixels"),
            parameter(
                "sigma",
                Preset::Follows(SIGMA_ONLY),
                Range::Above(0.0, 1000.0),
                "standard deviation of the blur in pixels",
            ),
            parameter(
                "amount",
                Preset::Value(1.0),
                Range::Within(0.0, 100.0),
                "how much of the difference is added",
            ),
        ],
        build: |a| unsharp(&a.bell(1.0, 3.0), a.value("amount")),
    },
    fixed!("emboss", None, 3 x 3, [-2, -1, 0, -1, 1, 1, 0, 1, 2], 1,
        "relief lit from the upper left; keeps mid-tones, so it needs no bias"),
    fixed!("laplacian4", Some("laplacian"), 3 x 3, [0, -1, 0, -1, 4, -1, 0, -1, 0], 1,
        "edges, from the 4 nearest neighbours; positive where a pixel is brighter than they are"),
    fixed!("laplacian8", Some("edge"), 3 x 3, [-1, -1, -1, -1, 8, -1, -1, -1, -1], 1,
        "edges, from all 8 neighbours; positive where a pixel is brighter than they are"),
    NamedMask {
        name: "log",
        alias: None,
        about: "Laplacian of Gaussian with a positive centre; its zero crossing is moved until it adds up to 0",
        parameters: &[
            parameter(
                "size",
                Preset::Follows("2*ceil(4*sigma)+1, at most 63"),
                Range::Side(3),
                "side in pixels",
            ),
            parameter(
                "sigma",
                Preset::Follows("1.4, or 0.3*((size-1)/2-1)+0.8 of a given size"),
                // Below, the Gaussian falls between the pixels; above, 63 of them do not hold it.
                Range::Within(0.3, 20.0),
                "standard deviation in pixels",
            ),
            parameter(
                "amount",
                Preset::Value(1.0),
                Range::Above(0.0, 1000.0),
                "what the weights are multiplied by",
            ),
        ],
        build: |a| laplacian_of_gaussian(&a.bell(1.4, 4.0), a.value("amount")),
    },
    fixed!("log5", None, 5 x 5,
        [0, 0, -1, 0, 0, 0, -1, -2, -1, 0, -1, -2, 16, -2, -1, 0, -1, -2, -1, 0, 0, 0, -1, 0, 0], 1,
        "the textbook's 5x5 Laplacian of Gaussian, 16 in its centre"),
    fixed!("sobel-x", None, 3 x 3, [-1, 0, 1, -2, 0, 2, -1, 0, 1], 1,
        "horizontal slope; positive where it brightens to the right"),
    fixed!("sobel-y", None, 3 x 3, [-1, -2, -1, 0, 0, 0, 1, 2, 1], 1,
        "vertical slope; positive where it brightens downwards"),
    fixed!("prewitt-x", None, 3 x 3, [-1, 0, 1, -1, 0, 1, -1, 0, 1], 1,
        "horizontal slope, rows weighted alike; positive where it brightens to the right"),
    fixed!("prewitt-y", None, 3 x 3, [-1, -1, -1, 0, 0, 0, 1, 1, 1], 1,
        "vertical slope, columns weighted alike; positive where it brightens downwards"),
    fixed!("scharr-x", None, 3 x 3, [-3, 0, 3, -10, 0, 10, -3, 0, 3], 1,
        "horizontal slope, alike in all directions; positive where it brightens to the right"),
    fixed!("scharr-y", None, 3 x 3, [-3, -10, -3, 0, 0, 0, 3, 10, 3], 1,
        "vertical slope, alike in all directions; positive where it brightens downwards"),
];

/// The mask that `word` names.
pub fn named_mask(word: &str) -> Option<&'static NamedMask> {
    NAMED_MASKS
        .iter()
        .find(|m| m.name == word || m.alias == Some(word))
}

/// Divided by their sum.
fn normalised(mut weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    weights
}

/// The square matrix of the products of a row with itself.
fn outer(row: &[f64]) -> Vec<f64> {
    row.iter().flat_map(|c| row.iter().map(move |r| r * c)).collect()
}

fn binomial(size: usize) -> Result<Mask, MaskError> {
    let degree = size as u32 - 1;
    // Row 62 adds up to 2^62, so that every number of it fits.
    let mut row = vec![1_i64];
    for k in 0..degree {
        let next = i128::from(row[k as usize]) * i128::from(degree - k) / i128::from(k + 1);
        row.push(next as i64);
    }
    // The products add up to 4^degree.
    if 2 * degree <= 62 {
        let products = row.iter().flat_map(|c| row.iter().map(move |r| r * c)).collect();
        Mask::from_integers(size, size, products, 1 << (2 * degree))
    } else {
        // Dividing by a power of two adds no error to that of each number's own rounding.
        let row: Vec<f64> = row
            .iter()
            .map(|&n| n as f64 / 2_f64.powi(degree as i32))
            .collect();
        Mask::new(size, size, outer(&row))
    }
}

fn unsharp(bell: &Bell, amount: f64) -> Result<Mask, MaskError> {
    let mut weights: Vec<f64> = outer(&bell.row()).iter().map(|w| -amount * w).collect();
    let centre = weights.len() / 2;
    weights[centre] += 1.0 + amount;
    Mask::new(bell.size, bell.size, weights)
}

/// `-amount * (r^2 - c) / sigma^4 * gaussian`, where c, which is 2 sigma^2 for a continuous and endless Gaussian, is the weighted mean of r^2
/// over the mask's pixels. That makes the sum zero and leaves the weights' fall-off to the sides alone, as taking a mean away from
/// every weight would not. The last of it goes to the centre, on a grid on which f64 adds without error.
fn laplacian_of_gaussian(bell: &Bell, amount: f64) -> Result<Mask, MaskError> {
    let size = bell.size;
    let gaussian = outer(&bell.row());
    let centre = (size / 2) as f64;
    let squared = |at: usize| ((at % size) as f64 - centre).powi(2) + ((at / size) as f64 - centre).powi(2);
    let crossing: f64 = gaussian.iter().enumerate().map(|(at, g)| g * squared(at)).sum();
    let gain = -amount / bell.sigma.powi(4);
    let mut weights: Vec<f64> = gaussian
        .iter()
        .enumerate()
        .map(|(at, g)| gain * g * (squared(at) - crossing))
        .collect();
    sum_to_zero(&mut weights);
    Mask::new(size, size, weights)
}

/// Rounds weights to multiples of a power of two that is so much larger than the precision of their total magnitude that any sum of them is
/// exact, and makes the centre what the others lack.
fn sum_to_zero(weights: &mut [f64]) {
    let total: f64 = weights.iter().map(|w| w.abs()).sum();
    let grid = 2_f64.powi(total.log2().ceil() as i32 - 50);
    weights.iter_mut().for_each(|w| *w = (*w / grid).round() * grid);
    weights[weights.len() / 2] -= weights.iter().sum::<f64>();
}

fn disk(radius: f64) -> Result<Mask, MaskError> {
    let reach = (radius - 0.5).ceil().max(0.0) as usize;
    let size = 2 * reach + 1;
    let coverage = |at: usize| {
        let (x, y) = ((at % size).abs_diff(reach), (at / size).abs_diff(reach));
        // One octant for all, so that the mask is symmetric to the bit.
        pixel_in_disk(x.max(y) as f64, x.min(y) as f64, radius)
    };
    Mask::new(size, size, normalised((0..size * size).map(coverage).collect()))
}

/// The area that a disk around the origin covers of the unit square around (x, y), neither negative.
fn pixel_in_disk(x: f64, y: f64, radius: f64) -> f64 {
    let near = (x - 0.5).max(0.0).hypot((y - 0.5).max(0.0));
    let far = (x + 0.5).hypot(y + 0.5);
    if near >= radius {
        return 0.0;
    }
    if far <= radius {
        return 1.0;
    }
    // The covered area of the rectangle from the origin to (a, b); odd in both.
    let corner = |a: f64, b: f64| quadrant_in_disk(a.abs(), b.abs(), radius) * a.signum() * b.signum();
    let (left, right, top, bottom) = (x - 0.5, x + 0.5, y - 0.5, y + 0.5);
    (corner(right, bottom) - corner(left, bottom) - corner(right, top) + corner(left, top)).clamp(0.0, 1.0)
}

/// The area that a disk around the origin covers of the rectangle from the origin to (a, b), neither negative.
fn quadrant_in_disk(a: f64, b: f64, radius: f64) -> f64 {
    let (a, b) = (a.min(radius), b.min(radius));
    let square = radius * radius;
    if a * a + b * b <= square {
        return a * b;
    }
    // Flat at height b as far as the circle, then under the circle.
    let under = |x: f64| 0.5 * (x * (square - x * x).max(0.0).sqrt() + square * (x / radius).min(1.0).asin());
    let bend = (square - b * b).max(0.0).sqrt();
    bend * b + under(a) - under(bend)
}

fn motion(length: f64, angle: f64) -> Result<Mask, MaskError> {
    let (sin, cos) = match angle.rem_euclid(180.0) {
        0.0 => (0.0, 1.0),
        90.0 => (1.0, 0.0),
        turned => turned.to_radians().sin_cos(),
    };
    // Half of the line's box. Rows count downwards, angles upwards.
    let half = |along: f64, across: f64| 0.5 * (length * along.abs() + across.abs());
    let most = MAX_MASK / 2;
    let reach = |half: f64| ((half - 0.5 - 1e-9).ceil().max(0.0) as usize).min(most);
    let (rx, ry) = (reach(half(cos, sin)), reach(half(sin, cos)));
    let (width, height) = (2 * rx + 1, 2 * ry + 1);
    let line: Vec<(f64, f64)> = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]
        .iter()
        .map(|&(u, v)| (u * length * cos - v * sin, -u * length * sin - v * cos))
        .collect();
    let mut weights: Vec<f64> = (0..width * height)
        .map(|at| {
            let (x, y) = ((at % width) as f64 - rx as f64, (at / width) as f64 - ry as f64);
            let area = pixel_in_polygon(&line, x, y);
            if area > 1e-9 { area } else { 0.0 }
        })
        .collect();
    // Symmetric about the centre to the bit, as the line is.
    for at in 0..weights.len() / 2 {
        let mirrored = weights.len() - 1 - at;
        weights[mirrored] = weights[at];
    }
    Mask::new(width, height, normalised(weights))
}

/// The area that a convex polygon covers of the unit square around (x, y).
fn pixel_in_polygon(polygon: &[(f64, f64)], x: f64, y: f64) -> f64 {
    let mut rest: Vec<(f64, f64)> = polygon.iter().map(|p| (p.0 - x, p.1 - y)).collect();
    // Cut by each side of the square in turn: what lies within has a distance that is not negative.
    let sides: [fn((f64, f64)) -> f64; 4] = [|p| p.0 + 0.5, |p| 0.5 - p.0, |p| p.1 + 0.5, |p| 0.5 - p.1];
    for inside in sides {
        let mut cut = Vec::with_capacity(rest.len() + 1);
        for (at, &to) in rest.iter().enumerate() {
            let from = rest[(at + rest.len() - 1) % rest.len()];
            let (a, b) = (inside(from), inside(to));
            if (a < 0.0) != (b < 0.0) {
                let t = a / (a - b);
                cut.push((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)));
            }
            if b >= 0.0 {
                cut.push(to);
            }
        }
        rest = cut;
    }
    let turned = |at: usize| {
        let (p, q) = (rest[at], rest[(at + 1) % rest.len()]);
        p.0 * q.1 - q.0 * p.1
    };
    0.5 * (0..rest.len()).map(turned).sum::<f64>().abs()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::filter::quantise::magnitude_limit;
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
        // A square of side sqrt(2), standing on a corner, covers the middle pixel whole and of each neighbour beside it a triangle.
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
                let q = quantise(m.weights(), m.width(), m.height(), magnitude_limit(depth), depth).unwrap();
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
                let (unit, separable) = (!EDGES.contains(&spec), factors(&filter.mask).is_some());
                for algorithm in [Algorithm::Direct, Algorithm::Auto, Algorithm::Separable] {
                    let chain = Chain {
                        filters: vec![filter.clone()],
                        border: Border::Replicate,
                        planes: Planes::All,
                        algorithm,
                    };
                    let plan = Plan::new(&chain, format, &Colour::default());
                    if algorithm == Algorithm::Separable && !separable {
                        assert!(plan.unwrap_err().to_string().contains("not separable"), "{spec}");
                        continue;
                    }
                    let kernel = plan.unwrap().steps.remove(0).kernel;
                    let max = i64::from(format.max_value());
                    let sum = |weights: &[i32]| weights.iter().map(|&q| i64::from(q)).sum::<i64>();
                    // What the engines make of a constant picture.
                    for level in [0, 1, max / 3, max] {
                        let (total, shift) = match &kernel {
                            Kernel::Direct(k) => (level * sum(&k.weights), k.shift),
                            Kernel::Separable(k) => {
                                let row = level * sum(&k.row.weights) + k.row.rounding();
                                ((row >> k.row.shift) * sum(&k.column.weights), k.column.shift)
                            }
                        };
                        let out = (total + ((1 << shift) >> 1)) >> shift;
                        assert_eq!(out, if unit { level } else { 0 }, "{spec} {format} {algorithm}");
                    }
                }
            }
        }
    }
}
