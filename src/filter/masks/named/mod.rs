//! The named masks: one table of what each is called, takes and computes, from which the grammar reads and
//! the listing prints.
//!
//! All are applied as correlations. Where f64 cannot add weights without error, masks that find edges are put
//! on a grid on which it can, so that their sum is exactly zero.

mod parameters;
mod shapes;
mod smooth;
#[cfg(test)]
mod tests;

use crate::filter::{MAX_THRESHOLD, Mask, MaskError, Response, Scale};
pub(in crate::filter) use parameters::Arguments;
pub use parameters::{Parameter, Preset, Range};
use shapes::{disk, motion};
use smooth::{binomial, laplacian_of_gaussian, outer, unsharp};

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
    pub(in crate::filter) build: fn(&Arguments<'_>) -> Result<Mask, MaskError>,
    pub(in crate::filter) others: Others,
}

/// The masks that a name stands for beside the first one.
#[derive(Debug)]
pub(in crate::filter) enum Others {
    /// None.
    None,
    /// A slope across the first one's, of 3x3; the filter is the magnitude of both.
    Across([i64; 9]),
    /// The first one's outer weights, turned on by one place, seven times; the filter is the largest of all.
    Compass,
}

impl Others {
    /// What is made of the sums of `first` and of these, without a scale.
    pub(in crate::filter) fn of(&self, first: &Mask) -> Result<Response, MaskError> {
        let mask = |weights: Vec<i64>| Mask::from_integers(3, 3, weights, 1);
        Ok(match self {
            Others::None => Response::Linear,
            Others::Across(weights) => Response::Magnitude {
                across: mask(weights.to_vec())?,
                scale: Scale::ONE,
            },
            Others::Compass => {
                // Clockwise from the upper left.
                const RING: [usize; 8] = [0, 1, 2, 5, 8, 7, 6, 3];
                let weights = first.exact().map_or(&[][..], |exact| &exact.numerators);
                let turned = |by: usize| {
                    let mut turned = weights.to_vec();
                    for (k, &from) in RING.iter().enumerate() {
                        turned[RING[(k + by) % RING.len()]] = weights[from];
                    }
                    mask(turned)
                };
                Response::Largest {
                    others: (1..RING.len()).map(turned).collect::<Result<_, _>>()?,
                }
            }
        })
    }
}

/// The parameter that keeps small differences as they were.
pub(in crate::filter) const THRESHOLD: &str = "threshold";

const BLUR_SIZE: &str = "2*ceil(3*sigma)+1, and endless where that is more than 63";
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
    ($name:literal, $alias:expr, $width:literal x $height:literal,
        $weights:expr, $divisor:literal, $about:literal) => {
        NamedMask {
            name: $name,
            alias: $alias,
            about: $about,
            parameters: &[],
            build: |_| Mask::from_integers($width, $height, $weights.to_vec(), $divisor),
            others: Others::None,
        }
    };
}

/// A filter of several 3x3 matrices, of which the first one is named.
macro_rules! several {
    ($name:literal, $weights:expr, $others:expr, $about:literal) => {
        NamedMask {
            name: $name,
            alias: None,
            about: $about,
            parameters: &[],
            build: |_| Mask::from_integers(3, 3, $weights.to_vec(), 1),
            others: $others,
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
        others: Others::None,
    },
    NamedMask {
        name: "gaussian",
        alias: None,
        about: "Gaussian blur, cut off at the sides of a given size",
        parameters: &[
            parameter(
                "sigma",
                Preset::Follows(SIGMA_ONLY),
                Range::Above(0.0, 1000.0),
                "standard deviation in pixels",
            ),
            parameter("size", Preset::Follows(BLUR_SIZE), SIDE, "side in pixels"),
        ],
        build: |a| {
            let row = a.blur().row();
            Mask::new(row.len(), row.len(), outer(&row))
        },
        others: Others::None,
    },
    NamedMask {
        name: "binomial",
        alias: None,
        about: "blur by a row of Pascal's triangle; integers up to size 31",
        parameters: &[parameter("size", Preset::Value(5.0), SIDE, "side in pixels")],
        build: |a| binomial(a.side("size")),
        others: Others::None,
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
        others: Others::None,
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
        others: Others::None,
    },
    fixed!("sharpen", None, 3 x 3, [0, -1, 0, -1, 5, -1, 0, -1, 0], 1,
        "the picture plus laplacian4: 0 -1 0 / -1 5 -1 / 0 -1 0"),
    NamedMask {
        name: "unsharp",
        alias: None,
        about: "the picture plus amount times its difference from its Gaussian blur",
        parameters: &[
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
            parameter("size", Preset::Follows(SIZE_ONLY), SIDE, "side in pixels"),
            parameter(
                THRESHOLD,
                Preset::Value(0.0),
                Range::Within(0.0, MAX_THRESHOLD),
                "samples that would change by less stay as they are, in levels of 8-bit pixels",
            ),
        ],
        build: |a| unsharp(&a.bell(1.0, 3.0), a.value("amount")),
        others: Others::None,
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
        about: "Laplacian of Gaussian with a positive centre; its zero crossing is moved until it adds up to \
            0",
        parameters: &[
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
            parameter(
                "size",
                Preset::Follows("2*ceil(4*sigma)+1, at most 63"),
                Range::Side(3),
                "side in pixels",
            ),
        ],
        build: |a| laplacian_of_gaussian(&a.bell(1.4, 4.0), a.value("amount")),
        others: Others::None,
    },
    fixed!("log5", None, 5 x 5,
        [0, 0, -1, 0, 0, 0, -1, -2, -1, 0, -1, -2, 16, -2, -1, 0, -1, -2, -1, 0, 0, 0, -1, 0, 0], 1,
        "the textbook's 5x5 Laplacian of Gaussian, 16 in its centre"),
    several!(
        "sobel",
        [-1, 0, 1, -2, 0, 2, -1, 0, 1],
        Others::Across([-1, -2, -1, 0, 0, 0, 1, 2, 1]),
        "edges of every direction: the magnitude of sobel-x and sobel-y"
    ),
    several!(
        "prewitt",
        [-1, 0, 1, -1, 0, 1, -1, 0, 1],
        Others::Across([-1, -1, -1, 0, 0, 0, 1, 1, 1]),
        "edges of every direction: the magnitude of prewitt-x and prewitt-y"
    ),
    several!(
        "scharr",
        [-3, 0, 3, -10, 0, 10, -3, 0, 3],
        Others::Across([-3, -10, -3, 0, 0, 0, 3, 10, 3]),
        "edges of every direction, equally strong in each: the magnitude of scharr-x and scharr-y"
    ),
    several!(
        "roberts",
        [1, 0, 0, 0, -1, 0, 0, 0, 0],
        Others::Across([0, 1, 0, -1, 0, 0, 0, 0, 0]),
        "fine edges: the magnitude of the differences along both diagonals of 2x2 pixels"
    ),
    several!(
        "kirsch",
        [5, 5, 5, -3, 0, -3, -3, -3, -3],
        Others::Compass,
        "strong edges: the largest of eight slopes, 5 5 5 / -3 0 -3 / -3 -3 -3 turned by 45 degrees each"
    ),
    fixed!("sobel-x", None, 3 x 3, [-1, 0, 1, -2, 0, 2, -1, 0, 1], 1,
        "horizontal slope; positive where it brightens to the right"),
    fixed!("sobel-y", None, 3 x 3, [-1, -2, -1, 0, 0, 0, 1, 2, 1], 1,
        "vertical slope; positive where it brightens downwards"),
    fixed!("prewitt-x", None, 3 x 3, [-1, 0, 1, -1, 0, 1, -1, 0, 1], 1,
        "horizontal slope, rows weighted equally; positive where it brightens to the right"),
    fixed!("prewitt-y", None, 3 x 3, [-1, -1, -1, 0, 0, 0, 1, 1, 1], 1,
        "vertical slope, columns weighted equally; positive where it brightens downwards"),
    fixed!("scharr-x", None, 3 x 3, [-3, 0, 3, -10, 0, 10, -3, 0, 3], 1,
        "horizontal slope, isotropic; positive where it brightens to the right"),
    fixed!("scharr-y", None, 3 x 3, [-3, -10, -3, 0, 0, 0, 3, 10, 3], 1,
        "vertical slope, isotropic; positive where it brightens downwards"),
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
