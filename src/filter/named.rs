//! The named masks: one table of what each is called, takes and computes, from which the grammar reads and the listing prints.
//!
//! All are applied as correlations. Where f64 cannot add weights without error, masks that find edges are put on a grid on which it can,
//! so that their sum is exactly zero.

use super::{MAX_MASK, Mask, MaskError};

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
            tracing::warn!(
                "sigma {sigma} needs a mask of {wanted}x{wanted}; it is cut off at {size}x{size}, which filters less than sigma says"
            );
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
        "relief lit from the lower right; keeps mid-tones, so it needs no bias"),
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
