//! A chain of filters for floating-point samples: the weights and the order of operations that every engine
//! follows, so that results have the same bits everywhere.
//!
//! docs/arithmetic.md states the same in prose. Nothing is clamped; 1.0 is white. All operations are those of
//! IEEE 754 in 32 bits, rounded to nearest, with subnormal numbers kept; `fma(a, b, c)` is a b + c rounded
//! once.
//!
//! ```text
//! sum(mask, start):  s = start;  for each tap, row by row:  s = fma(weight, pixel, s)
//!
//! direct      out = sum(mask, bias)
//! separable   t = sum(row, 0) on every row;  out = sum(column of t, bias)
//! combined    out = combine(sum(mask 0, 0), sum(mask 1, 0), ...), to which the bias is added
//! pyramid     six passes of such sums, of which the last starts with the bias (pyramid.rs)
//! ```
//!
//! Samples of 16 bits become 32 bits exactly, and each step's results are rounded to nearest even. A result
//! that is not a number is stored as the quiet one without a payload, 0x7fc00000 or 0x7e00.

pub(in crate::filter) mod pyramid;

use super::error::PlanError;
use crate::filter::{
    Algorithm, AlphaWeighting, Border, Chain, ChannelPolicy, Filter, FloatPyramid, Mask, Planes, PyramidGrid,
    Response, factors, rank,
};
use crate::frame::{AlphaKind, Channel, Colour, PixelFormat, Plane};

/// The chain's steps for one pixel format of floating-point samples.
#[derive(Debug, Clone, PartialEq)]
pub struct FloatPlan {
    /// The format that the plan is for.
    pub format: PixelFormat,
    /// One a filter, in order.
    pub steps: Vec<FloatStep>,
}

/// One filter.
#[derive(Debug, Clone, PartialEq)]
pub struct FloatStep {
    /// How pixels outside the plane are made.
    pub border: Border,
    /// The weights.
    pub kernel: FloatKernel,
    /// What happens to each component: a list a plane, an entry for each interleaved component.
    pub planes: Vec<Vec<FloatChannelStep>>,
    /// How colour is weighted by straight alpha; `None` if it is not.
    pub alpha: Option<FloatAlpha>,
    /// Where a result differs by less than this from what it was before the step, it stays what it was: if
    /// `abs(out - before) < threshold`. 0 keeps every result.
    pub threshold: f32,
}

/// What happens to one component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FloatChannelStep {
    /// Kept as it is.
    Copy,
    /// Convolved.
    Convolve(FloatConvolve),
}

impl FloatChannelStep {
    /// What a component that is convolved adds; `None` for others.
    pub fn convolved(&self) -> Option<&FloatConvolve> {
        match self {
            FloatChannelStep::Convolve(convolve) => Some(convolve),
            FloatChannelStep::Copy => None,
        }
    }
}

/// What a convolved component adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloatConvolve {
    /// Added to the sums, from -257 to 257; 0 for alpha and for colour under [`FloatAlpha`].
    pub bias: f32,
    /// The sample outside the plane, where the border holds a constant.
    pub border: f32,
    /// True for alpha itself.
    pub is_alpha: bool,
}

/// Colour under straight alpha. A step makes `p = c a`, convolves p to P, and gives
/// `out = ((P gain) / A) + bias`, each operation rounded, or c where A is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloatAlpha {
    /// True if A is the convolved alpha (masks without negative weights: an average weighted by alpha); false
    /// if A is the alpha of the result.
    pub normalise: bool,
    /// The mask's gain, at most 1; 1 if not `normalise`.
    pub gain: f32,
    /// The user's bias, from -257 to 257, added last.
    pub bias: f32,
    /// True if alpha itself is filtered; otherwise it is copied.
    pub filter_alpha: bool,
}

/// The weights of one step.
#[derive(Debug, Clone, PartialEq)]
pub enum FloatKernel {
    /// The whole mask.
    Direct(FloatMask),
    /// A row pass without a rounding to samples, then a column pass. Both of odd length.
    Separable {
        /// Along the row, first.
        row: Vec<f32>,
        /// Along the column, second.
        column: Vec<f32>,
    },
    /// The sums of whole masks of one size, of which one number is made.
    Combined {
        /// The masks.
        masks: Vec<FloatMask>,
        /// How.
        combining: FloatCombining,
    },
    /// A Gaussian that is made of a smaller picture.
    Pyramid(FloatPyramid),
}

/// A mask of numbers of 32 bits.
#[derive(Debug, Clone, PartialEq)]
pub struct FloatMask {
    /// Columns, odd.
    pub width: usize,
    /// Rows, odd.
    pub height: usize,
    /// Row by row.
    pub weights: Vec<f32>,
}

/// How one number is made of the sums of several masks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FloatCombining {
    /// `abs(S0)`.
    Absolute,
    /// The largest: `m = S0; for each other: m = S if S > m or S is no number, else m`.
    Largest,
    /// `sqrt(fma(S1, S1, S0 S0)) scale`, each of the three operations and the root rounded.
    Magnitude(f32),
}

impl FloatCombining {
    /// One number of the sums, one a mask.
    pub fn combine(self, sums: impl Iterator<Item = f32>) -> f32 {
        let mut sums = sums;
        let first = sums.next().unwrap_or(0.0);
        match self {
            FloatCombining::Absolute => first.abs(),
            FloatCombining::Largest => sums.fold(first, |m, s| if s > m || s.is_nan() { s } else { m }),
            FloatCombining::Magnitude(scale) => {
                let second = sums.next().unwrap_or(0.0);
                second.mul_add(second, first * first).sqrt() * scale
            }
        }
    }
}

impl FloatKernel {
    /// True if it has a pass along rows and one along columns.
    pub fn is_separable(&self) -> bool {
        matches!(self, FloatKernel::Separable { .. })
    }

    /// Multiply-adds of a sample.
    pub fn taps(&self) -> usize {
        match self {
            FloatKernel::Direct(mask) => mask.weights.len(),
            FloatKernel::Separable { row, column } => row.len() + column.len(),
            FloatKernel::Combined { masks, .. } => masks.iter().map(|mask| mask.weights.len()).sum(),
            // Of the low picture there is little.
            FloatKernel::Pyramid(_) => 2 * PyramidGrid::TAPS,
        }
    }

    /// The grids of a pyramid; `None` of other kernels.
    pub fn grid(&self) -> Option<PyramidGrid> {
        match self {
            FloatKernel::Pyramid(kernel) => Some(kernel.grid),
            _ => None,
        }
    }

    /// Columns and rows of the mask, or of what a result of a pyramid depends on.
    pub fn size(&self) -> (usize, usize) {
        match self {
            FloatKernel::Direct(mask) => (mask.width, mask.height),
            FloatKernel::Separable { row, column } => (row.len(), column.len()),
            FloatKernel::Combined { masks, .. } => masks.first().map_or((1, 1), |m| (m.width, m.height)),
            FloatKernel::Pyramid(k) => (2 * k.grid.radius() + 1, 2 * k.grid.radius() + 1),
        }
    }
}

impl FloatPlan {
    /// The plan of `chain` for frames of `format`, which holds floating-point samples, with these colour
    /// facts.
    pub fn new(chain: &Chain, format: PixelFormat, colour: &Colour) -> Result<FloatPlan, PlanError> {
        if chain.filters.is_empty() {
            return Err(PlanError::Empty);
        }
        chain.planes.check(format)?;
        let steps = chain
            .filters
            .iter()
            .map(|filter| step(chain, filter, format, colour));
        Ok(FloatPlan {
            format,
            steps: steps.collect::<Result<_, _>>()?,
        })
    }
}

impl FloatPlan {
    /// Samples that the plan convolves in a frame with these planes, summed over the steps.
    pub fn convolved_samples(&self, planes: &[Plane]) -> u64 {
        let steps = self.steps.iter().flat_map(|step| step.planes.iter().zip(planes));
        let of_plane = |(channels, plane): (&Vec<FloatChannelStep>, &Plane)| {
            let convolved = channels.iter().filter_map(FloatChannelStep::convolved).count();
            (plane.width * plane.height * convolved) as u64
        };
        steps.map(of_plane).sum()
    }
}

fn step(
    chain: &Chain,
    filter: &Filter,
    format: PixelFormat,
    colour: &Colour,
) -> Result<FloatStep, PlanError> {
    let kernel = kernel(filter, chain.algorithm)?;
    let bias = (filter.bias.value() / 255.0) as f32;
    let is_weighted = chain.alpha == AlphaWeighting::Weighted;
    let is_associated = is_weighted && colour.alpha == AlphaKind::Associated;
    let policy = |channel| match chain.planes.policy(channel) {
        // Premultiplied colour stays in proportion to its alpha only if both are filtered.
        ChannelPolicy::Copy if channel == Channel::Alpha && is_associated && chain.planes == Planes::All => {
            ChannelPolicy::Filter
        }
        policy => policy,
    };
    let alpha = if is_weighted && !is_associated {
        alpha_use(chain, filter, format, bias)
    } else {
        None
    };
    let channel_step = |channel: Channel| {
        let is_alpha = channel == Channel::Alpha;
        let is_normalised = is_alpha && alpha.is_some_and(|a| a.normalise);
        if policy(channel) != ChannelPolicy::Filter && !is_normalised {
            return FloatChannelStep::Copy;
        }
        FloatChannelStep::Convolve(FloatConvolve {
            bias: if is_alpha || alpha.is_some() { 0.0 } else { bias },
            border: match chain.border {
                Border::Constant(_) if is_alpha => 1.0,
                Border::Constant(v) => (v / 255.0) as f32,
                _ => 0.0,
            },
            is_alpha,
        })
    };
    let planes = format.planes().iter();
    Ok(FloatStep {
        border: chain.border,
        kernel,
        planes: planes
            .map(|plane| plane.channels.iter().map(|&c| channel_step(c)).collect())
            .collect(),
        alpha,
        threshold: (filter.threshold / 255.0) as f32,
    })
}

pub(in crate::filter) fn alpha_use(
    chain: &Chain,
    filter: &Filter,
    format: PixelFormat,
    bias: f32,
) -> Option<FloatAlpha> {
    let mut channels = format.planes().iter().flat_map(|p| p.channels);
    let is_filtered = |c| chain.planes.policy(c) == ChannelPolicy::Filter;
    if !format.has_alpha() || !channels.any(|&c| c != Channel::Alpha && is_filtered(c)) {
        return None;
    }
    let mask = &filter.mask;
    // A mask of one pixel mixes nothing.
    let mixes_nothing = mask.width() == 1 && mask.height() == 1;
    let filter_alpha = is_filtered(Channel::Alpha);
    if mixes_nothing && (!filter_alpha || mask.sum() == 1.0) {
        return None;
    }
    let normalise = mask.weights().iter().all(|&w| w >= 0.0) && mask.sum() > 0.0;
    Some(FloatAlpha {
        normalise,
        gain: if normalise {
            mask.sum().min(1.0) as f32
        } else {
            1.0
        },
        bias,
        filter_alpha,
    })
}

pub(in crate::filter) fn kernel(filter: &Filter, algorithm: Algorithm) -> Result<FloatKernel, PlanError> {
    let label = || filter.label.clone();
    let combining = match &filter.response {
        Response::Linear => return linear(filter, algorithm),
        Response::WideGaussian { sigma } if algorithm == Algorithm::Auto => {
            return Ok(FloatKernel::Pyramid(FloatPyramid::new(*sigma)));
        }
        Response::WideGaussian { .. } => return Err(PlanError::NoMask { label: label() }),
        Response::Absolute => FloatCombining::Absolute,
        Response::Largest { .. } => FloatCombining::Largest,
        Response::Magnitude { scale, .. } => {
            FloatCombining::Magnitude((f64::from(scale.numerator()) / f64::from(scale.denominator())) as f32)
        }
    };
    if algorithm == Algorithm::Separable {
        return Err(PlanError::WholeMasks { label: label() });
    }
    let masks = filter.masks().map(|mask| float_mask(mask, filter));
    Ok(FloatKernel::Combined {
        masks: masks.collect::<Result<_, _>>()?,
        combining,
    })
}

fn linear(filter: &Filter, algorithm: Algorithm) -> Result<FloatKernel, PlanError> {
    let mask = &filter.mask;
    let (w, h) = (mask.width(), mask.height());
    let is_worth_it = 2 * (w + h) < w * h;
    if algorithm == Algorithm::Separable || (algorithm == Algorithm::Auto && is_worth_it) {
        if let Some(factors) = factors(mask) {
            // Of a mask of integers the factors are integers, which a row of up to 1 keeps small.
            let gain = factors.row.iter().map(|w| w.abs()).sum::<f64>();
            let scale = 2_f64.powi(gain.log2().ceil() as i32);
            return Ok(FloatKernel::Separable {
                row: floats(factors.row.iter().map(|w| w / scale), filter)?,
                column: floats(factors.column.iter().map(|w| w * scale), filter)?,
            });
        }
        if algorithm == Algorithm::Separable {
            return Err(PlanError::NotSeparable {
                label: filter.label.clone(),
                rank: rank(mask),
            });
        }
    }
    float_mask(mask, filter).map(FloatKernel::Direct)
}

fn float_mask(mask: &Mask, filter: &Filter) -> Result<FloatMask, PlanError> {
    Ok(FloatMask {
        width: mask.width(),
        height: mask.height(),
        weights: floats(mask.weights().iter().copied(), filter)?,
    })
}

/// The nearest numbers of 32 bits.
fn floats(weights: impl Iterator<Item = f64>, filter: &Filter) -> Result<Vec<f32>, PlanError> {
    let rounded: Vec<f32> = weights.map(|w| w as f32).collect();
    if rounded.iter().all(|w| w.is_finite()) {
        return Ok(rounded);
    }
    Err(PlanError::BeyondFloat {
        label: filter.label.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(filter: &str, format: PixelFormat) -> FloatPlan {
        FloatPlan::new(&Chain::parse(filter).unwrap(), format, &Colour::default()).unwrap()
    }

    #[test]
    fn weights_are_the_nearest_floats_of_the_masks_own() {
        let FloatKernel::Direct(mask) = &plan("box:size=3", PixelFormat::GRAYF32).steps[0].kernel else {
            panic!("3x3 masks are direct");
        };
        assert_eq!(mask.weights, vec![1.0_f32 / 9.0; 9]);
        let FloatKernel::Separable { row, column } =
            &plan("gaussian:sigma=2", PixelFormat::GRAYF32).steps[0].kernel
        else {
            panic!("Gaussians are separable");
        };
        assert_eq!(row.len(), column.len());
        let sum: f64 = row.iter().map(|&w| f64::from(w)).sum();
        let other: f64 = column.iter().map(|&w| f64::from(w)).sum();
        assert!((sum * other - 1.0).abs() < 1e-6, "{sum} {other}");
    }

    #[test]
    fn gaussians_that_fit_no_mask_are_made_in_one_way() {
        let kernel = |filter| plan(filter, PixelFormat::GRAYF32).steps[0].kernel.clone();
        assert!(matches!(
            kernel("gaussian:sigma=10.3"),
            FloatKernel::Separable { .. }
        ));
        assert!(matches!(kernel("gaussian:sigma=10.4"), FloatKernel::Pyramid(_)));
        for algorithm in [Algorithm::Direct, Algorithm::Separable] {
            let chain = Chain::parse("gaussian:sigma=30")
                .unwrap()
                .with_algorithm(algorithm);
            let error = FloatPlan::new(&chain, PixelFormat::GRAYF32, &Colour::default()).unwrap_err();
            assert!(matches!(error, PlanError::NoMask { .. }), "{error}");
        }
    }

    #[test]
    fn associated_alpha_is_filtered_with_its_colour() {
        let chain = Chain::parse("gaussian:sigma=1").unwrap();
        let colour = Colour {
            alpha: AlphaKind::Associated,
            ..Colour::default()
        };
        let plan = FloatPlan::new(&chain, PixelFormat::RGBAF32, &colour).unwrap();
        assert_eq!(plan.steps[0].alpha, None);
        assert!(plan.steps[0].planes[0].iter().all(|c| c.convolved().is_some()));
        let straight = FloatPlan::new(&chain, PixelFormat::RGBAF32, &Colour::default()).unwrap();
        assert!(straight.steps[0].alpha.unwrap().normalise);
    }

    #[test]
    fn weights_beyond_floats_are_refused() {
        let chain = Chain::parse("mask:rows=1 1e300 1").unwrap();
        let error = FloatPlan::new(&chain, PixelFormat::GRAYF32, &Colour::default()).unwrap_err();
        assert!(matches!(error, PlanError::BeyondFloat { .. }), "{error}");
    }
}
