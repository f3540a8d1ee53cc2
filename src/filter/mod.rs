//! Filters: masks, borders, planes, and the plan of integers that every engine carries out. Pure maths.
//!
//! `language` reads filters from text and mask files, `masks` holds masks and their names, `plan` turns a
//! chain into the numbers for one pixel format.

mod bias;
mod border;
mod direction;
mod language;
mod masks;
mod plan;
mod planes;
mod response;

pub use crate::messages::text_file::{LineError, TextFileError};
pub use bias::Bias;
pub use border::{Border, UnknownBorder};
pub use language::grammar::FilterError;
pub use language::keys::{COMMON_KEYS, Key, OWN_MASK, OWN_MASK_KEYS};
pub use language::mask_file::{LineProblem, MaskFileError};
pub use masks::mask::{Exact, MAX_MASK, Mask, MaskError};
pub use masks::named::{NAMED_MASKS, NamedMask, Parameter, Preset, Range as ParameterRange, named_mask};
pub use masks::number::NumberError;
pub use masks::rank::{Factors, RANK_TOLERANCE, factors, rank};
pub use plan::error::PlanError;
pub use plan::float::FloatPlan;
pub use plan::integer::Plan;
pub(crate) use plan::integer::compass::{Compass, RING};
pub(crate) use plan::widest_pyramid_grid;
pub use planes::{ChannelPolicy, NoSuchPlane, Planes, UnknownPlanes};
pub use response::{Response, Scale};

// What plans are made of, for the engines, and for the tests and benchmarks of this package.
#[doc(hidden)]
pub use plan::float::pyramid::FloatPyramid;
#[doc(hidden)]
pub use plan::float::{
    FloatAlpha, FloatChannelStep, FloatCombining, FloatConvolve, FloatKernel, FloatMask, FloatStep,
};
#[doc(hidden)]
pub use plan::integer::division::{Division, SignedDivision, WordDivision};
#[doc(hidden)]
pub use plan::integer::kernel::{Column, CombinedKernel, Combining, DirectKernel, Pass, SeparableKernel};
#[doc(hidden)]
pub use plan::integer::quantise::{Limits, QuantiseError, Quantised, quantise};
#[doc(hidden)]
pub use plan::integer::{ChannelStep, Convolve, Kernel, Step, WeightedKernel};
#[doc(hidden)]
pub use plan::pyramid::{PyramidGrid, PyramidKernel};

use language::grammar;
use std::fmt;
use std::str::FromStr;

/// The largest magnitude of a bias.
pub const MAX_BIAS: f64 = 65535.0;

/// The largest threshold, in levels of 8-bit pixels.
pub const MAX_THRESHOLD: f64 = 255.0;

/// One link of a chain: a mask, what is made of its sums and what is added to that.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// As the user wrote it.
    pub label: String,
    /// The weights; of a [`Response::WideGaussian`] those of its middle.
    pub mask: Mask,
    /// What is made of the mask's sums.
    pub response: Response,
    /// Added to luma and RGB results (not to chroma or alpha), stated at 8 bits full scale and scaled to the
    /// depth.
    pub bias: Bias,
    /// Results that differ from the original by less than this leave it as it was; in levels of 8-bit pixels,
    /// scaled to the depth. 0 for none, at most [`MAX_THRESHOLD`].
    pub threshold: f64,
    /// Where the mask is not quite what was requested: a sentence.
    pub caveat: Option<String>,
}

impl Filter {
    /// A filter that is the sums over `mask`, without bias or threshold; errors name it by `label`.
    pub fn of_mask(label: impl Into<String>, mask: Mask) -> Filter {
        Filter {
            label: label.into(),
            mask,
            response: Response::Linear,
            bias: Bias::NONE,
            threshold: 0.0,
            caveat: None,
        }
    }

    /// All masks of the filter.
    pub fn masks(&self) -> impl Iterator<Item = &Mask> {
        std::iter::once(&self.mask).chain(self.response.others())
    }

    /// True if the filter can be made by a row pass and a column pass: one mask of rank 1, with its sums as
    /// they are.
    pub fn is_separable(&self) -> bool {
        self.response == Response::Linear && factors(&self.mask).is_some()
    }

    /// The same with every mask turned by 180 degrees.
    #[must_use]
    pub fn flipped(self) -> Filter {
        Filter {
            mask: self.mask.flipped(),
            response: self.response.flipped(),
            ..self
        }
    }
}

/// How a mask is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// Separable where the mask allows it and it saves work, else direct. The choice depends on the mask and
    /// the depth alone, so that every engine makes the same one.
    #[default]
    Auto,
    /// The whole mask at each pixel, one rounding.
    Direct,
    /// A row pass and a column pass; for masks of rank 1 only.
    Separable,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::Auto => "auto",
            Algorithm::Direct => "direct",
            Algorithm::Separable => "separable",
        })
    }
}

/// A word that names no algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no algorithm; use auto, direct or separable")]
pub struct UnknownAlgorithm(pub String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "auto" => Ok(Algorithm::Auto),
            "direct" => Ok(Algorithm::Direct),
            "separable" => Ok(Algorithm::Separable),
            _ => Err(UnknownAlgorithm(word.to_owned())),
        }
    }
}

/// How colour is filtered where there is alpha.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlphaWeighting {
    /// Weighted by alpha, so that transparent pixels contribute none. Premultiplied colour is filtered as it
    /// is, together with its alpha.
    #[default]
    Weighted,
    /// As if there were no alpha.
    Straight,
}

impl fmt::Display for AlphaWeighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AlphaWeighting::Weighted => "weighted",
            AlphaWeighting::Straight => "straight",
        })
    }
}

/// A word that names no way of filtering colour under alpha.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no way of filtering colour under alpha; use weighted or straight")]
pub struct UnknownAlphaWeighting(pub String);

impl FromStr for AlphaWeighting {
    type Err = UnknownAlphaWeighting;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "weighted" => Ok(AlphaWeighting::Weighted),
            "straight" => Ok(AlphaWeighting::Straight),
            _ => Err(UnknownAlphaWeighting(word.to_owned())),
        }
    }
}

/// Filters in the order of their application, and what they share.
///
/// ```
/// use framepipe::{Border, Chain};
///
/// let chain = Chain::parse("gaussian:sigma=2,laplacian8")?.with_border(Border::Mirror);
/// assert_eq!(chain.filters.len(), 2);
/// # Ok::<(), framepipe::filter::FilterError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// At least one.
    pub filters: Vec<Filter>,
    /// What pixels outside the frame are.
    pub border: Border,
    /// The components that are changed.
    pub planes: Planes,
    /// How the masks are applied.
    pub algorithm: Algorithm,
    /// How colour goes with alpha.
    pub alpha: AlphaWeighting,
}

impl From<Filter> for Chain {
    /// One filter, on every component but alpha, with the edge pixels repeated outside the plane.
    fn from(filter: Filter) -> Chain {
        Chain::of(vec![filter])
    }
}

impl Chain {
    fn of(filters: Vec<Filter>) -> Chain {
        Chain {
            filters,
            border: Border::default(),
            planes: Planes::default(),
            algorithm: Algorithm::default(),
            alpha: Default::default(),
        }
    }

    /// Reads filters with commas between them, each as `framepipe masks` lists them and [`Filter`] reads it.
    /// Border, planes and algorithm are the default ones.
    ///
    /// A comma before a letter separates filters, so that `mask:rows=1,2,1;2,4,2;1,2,1` is one filter; after
    /// `file=` one before a filter's name.
    pub fn parse(text: &str) -> Result<Chain, FilterError> {
        Ok(Chain::of(grammar::filters(text)?))
    }

    /// The same with another filter behind the others.
    pub fn then(mut self, filter: Filter) -> Chain {
        self.filters.push(filter);
        self
    }

    /// The same with another border.
    pub fn with_border(self, border: Border) -> Chain {
        Chain { border, ..self }
    }

    /// The same for other components.
    pub fn with_planes(self, planes: Planes) -> Chain {
        Chain { planes, ..self }
    }

    /// The same with colour under alpha filtered in another way.
    pub fn with_alpha(self, alpha: AlphaWeighting) -> Chain {
        Chain { alpha, ..self }
    }

    /// The same by another algorithm.
    pub fn with_algorithm(self, algorithm: Algorithm) -> Chain {
        Chain { algorithm, ..self }
    }
}

impl FromStr for Chain {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Chain::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_commas_must_be_a_filter() {
        for text in ["", "box:size=3,", ",box:size=3", "box:size=3,nonsense"] {
            assert!(Chain::parse(text).is_err(), "{text}");
        }
    }
}
