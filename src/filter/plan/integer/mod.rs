//! A chain of filters made exact: the integers that every engine computes with, for one pixel format and one
//! set of colour facts.
//!
//! docs/arithmetic.md states the same in prose. Nothing here depends on the engine.

pub(in crate::filter) mod compass;
pub(in crate::filter) mod division;
pub(in crate::filter) mod kernel;
pub(in crate::filter) mod quantise;
mod rational;

use super::error::PlanError;
use super::float::{self, FloatAlpha, FloatKernel};
use super::pyramid::PyramidKernel;
use crate::filter::{
    Algorithm, AlphaWeighting, Bias, Border, Chain, ChannelPolicy, Factors, Filter, Mask, Response, factors,
    rank,
};
use crate::frame::{Channel, Colour, PixelFormat};
use division::Division;
use kernel::{Column, CombinedKernel, Combining, DirectKernel, Pass, SeparableKernel, sum};
use quantise::{Limits, QuantiseError, Quantised, quantise};

/// The chain's steps for one pixel format.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The format that the plan is for.
    pub format: PixelFormat,
    /// One a filter, in order.
    pub steps: Vec<Step>,
}

/// One filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// How pixels outside the plane are made.
    pub border: Border,
    /// The integer weights.
    pub kernel: Kernel,
    /// What happens to each component: a list a plane, an entry for each interleaved component.
    pub planes: Vec<Vec<ChannelStep>>,
    /// Levels: where a sample of the result differs by less from what it was before the step, it stays what
    /// it was. 0 keeps every result.
    pub threshold: u16,
}

/// What happens to one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelStep {
    /// Kept as it is.
    Copy,
    /// Set to this sample value.
    Fill(u16),
    /// Convolved.
    Convolve(Convolve),
}

impl ChannelStep {
    /// What a component that is convolved adds; `None` for others.
    pub fn convolved(&self) -> Option<&Convolve> {
        match self {
            ChannelStep::Convolve(convolve) => Some(convolve),
            ChannelStep::Copy | ChannelStep::Fill(_) => None,
        }
    }
}

/// The integers that a convolved component adds: `out = clamp(floor((sum + low) / divisor) + high, 0, max)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convolve {
    /// The part of bias and rounding below one level, `0 <= low < divisor`; where a [`Division`] multiplies,
    /// with as many whole levels more as keep `sum + low` from being negative.
    pub low: i64,
    /// The whole levels of the bias, less those in `low`. Fits 32 bits up to 12-bit pixels.
    pub high: i64,
    /// The sample value outside the plane, where the border holds a constant.
    pub border: u16,
    /// The sample value that stands for no signal.
    pub level: u16,
    /// True for alpha itself.
    pub is_alpha: bool,
}

/// The weights of one step.
#[derive(Debug, Clone, PartialEq)]
pub enum Kernel {
    /// `out = clamp(floor((sum q p + low) / divisor) + high)`.
    Direct(DirectKernel),
    /// A row pass into an intermediate, then a column pass.
    Separable(SeparableKernel),
    /// The sums of whole masks, of which one number is made: `out = clamp(((number + low) >> shift) + high)`.
    Combined(CombinedKernel),
    /// A Gaussian that is made of a smaller picture.
    Pyramid(PyramidKernel),
    /// Colour that alpha weights, and alpha.
    Weighted(WeightedKernel),
}

/// Colour under alpha: sums of floating-point numbers, in the order of
/// [`FloatPlan`](crate::filter::FloatPlan), so that a colour keeps its bits under any alpha.
///
/// With straight colour c, zero level L and alpha a, as numbers of 32 bits, a step makes `p = (c - L) a`,
/// convolves p to P and a to A without a bias, and gives colours, each operation rounded,
///
/// ```text
/// out = clamp(floor((P gain) / A + ((L + bias) + 1/2)), 0, max)       c where A is 0
/// ```
///
/// and `clamp(floor(A + 1/2), 0, max)` for alpha, if it is filtered. If not `weighting.normalise`, colours
/// are over the alpha of the result in the place of A.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedKernel {
    /// The weights.
    pub kernel: FloatKernel,
    /// How sums become colours again, with a bias in levels.
    pub weighting: FloatAlpha,
    /// Alpha outside the plane, where the border holds a constant, in levels.
    pub outside: f32,
}

impl WeightedKernel {
    /// What is added to a colour of `channel` whose zero level is `level`, in levels: a half, so that it is
    /// rounded to nearest, and the bias, which chroma does not take.
    pub fn base(&self, channel: Channel, level: u16) -> f32 {
        let bias = if channel.is_chroma() {
            0.0
        } else {
            self.weighting.bias
        };
        (f32::from(level) + bias) + 0.5
    }

    /// What is summed up outside the plane, where the border holds a constant: a colour times alpha, or
    /// alpha.
    pub fn outside(&self, convolve: &Convolve) -> f32 {
        if convolve.is_alpha {
            self.outside
        } else {
            (f32::from(convolve.border) - f32::from(convolve.level)) * self.outside
        }
    }
}

impl Kernel {
    /// True if there are weights of more than two bytes, whose sums fit 53 bits at any depth.
    pub fn is_long(&self) -> bool {
        match self {
            Kernel::Direct(k) => k.long,
            Kernel::Separable(k) => k.long,
            Kernel::Combined(k) => k.long,
            Kernel::Pyramid(_) | Kernel::Weighted(_) => false,
        }
    }

    /// Columns and rows of the mask, or of what a result of a pyramid depends on.
    pub fn size(&self) -> (usize, usize) {
        match self {
            Kernel::Direct(k) => (k.width, k.height),
            Kernel::Separable(k) => (k.row.weights.len(), k.column.weights.len()),
            Kernel::Combined(k) => (k.width, k.height),
            Kernel::Pyramid(k) => (2 * k.grid.radius() + 1, 2 * k.grid.radius() + 1),
            Kernel::Weighted(k) => k.kernel.size(),
        }
    }
}

impl Plan {
    /// The plan of `chain` for frames of `format`, which holds integer samples, with these colour facts; see
    /// [`FloatPlan`](crate::filter::FloatPlan) for the others.
    pub fn new(chain: &Chain, format: PixelFormat, colour: &Colour) -> Result<Plan, PlanError> {
        if format.is_float() {
            return Err(PlanError::FloatSamples(format));
        }
        if chain.filters.is_empty() {
            return Err(PlanError::Empty);
        }
        chain.planes.check(format)?;
        let steps = chain
            .filters
            .iter()
            .map(|filter| Step::new(chain, filter, format, colour));
        Ok(Plan {
            format,
            steps: steps.collect::<Result<_, _>>()?,
        })
    }

    /// Samples that the plan convolves in a frame of `width` x `height`, summed over the steps.
    pub fn convolved_samples(&self, planes: &[crate::frame::Plane]) -> u64 {
        self.steps
            .iter()
            .flat_map(|step| step.planes.iter().zip(planes))
            .map(|(channels, plane)| {
                let convolved = channels.iter().filter_map(ChannelStep::convolved).count();
                (plane.width * plane.height * convolved) as u64
            })
            .sum()
    }
}

impl Step {
    fn new(chain: &Chain, filter: &Filter, format: PixelFormat, colour: &Colour) -> Result<Step, PlanError> {
        // Levels of a pixel to one of 8 bits.
        let levels = 1_u32 << (format.depth() - 8);
        let eight_bit_levels = f64::from(levels);
        let kernel = match weighted(chain, filter, format, filter.bias.value() * eight_bit_levels)? {
            Some(kernel) => Kernel::Weighted(kernel),
            None => kernel(filter, chain.algorithm, format.depth())?,
        };
        let channel_step = |channel: Channel| {
            let level = colour.zero_level(format, channel);
            let is_alpha = channel == Channel::Alpha;
            match chain.planes.policy(channel) {
                ChannelPolicy::Neutral => return ChannelStep::Fill(level as u16),
                ChannelPolicy::Copy => return ChannelStep::Copy,
                ChannelPolicy::Filter => {}
            }
            let takes_bias = !channel.is_chroma() && !is_alpha;
            let bias = if takes_bias { filter.bias } else { Bias::NONE };
            let border = match chain.border {
                Border::Constant(_) if is_alpha => format.max_value(),
                Border::Constant(v) if !channel.is_chroma() => {
                    ((v * eight_bit_levels).round() as u32).min(format.max_value())
                }
                _ => level,
            };
            let (low, high) = kernel.bias(i64::from(level), i64::from(format.max_value()), (bias, levels));
            ChannelStep::Convolve(Convolve {
                low,
                high,
                border: border as u16,
                level: level as u16,
                is_alpha,
            })
        };
        let planes = format
            .planes()
            .iter()
            .map(|plane| plane.channels.iter().map(|&c| channel_step(c)).collect())
            .collect();
        Ok(Step {
            border: chain.border,
            kernel,
            planes,
            threshold: (filter.threshold * eight_bit_levels).round() as u16,
        })
    }
}

/// The kernel of colours that alpha weights, with `bias` levels added; `None` if it weights none.
fn weighted(
    chain: &Chain,
    filter: &Filter,
    format: PixelFormat,
    bias: f64,
) -> Result<Option<WeightedKernel>, PlanError> {
    if chain.alpha == AlphaWeighting::Straight {
        return Ok(None);
    }
    let Some(weighting) = float::alpha_use(chain, filter, format, bias as f32) else {
        return Ok(None);
    };
    Ok(Some(WeightedKernel {
        kernel: float::kernel(filter, chain.algorithm)?,
        weighting,
        outside: match chain.border {
            Border::Constant(_) => format.max_value() as f32,
            _ => 0.0,
        },
    }))
}

impl Kernel {
    /// Bias and rounding of a component whose zero level is `level`, of samples up to `max`: low and high
    /// part. A level of the bias is `levels` of the samples.
    fn bias(&self, level: i64, max: i64, (bias, levels): (Bias, u32)) -> (i64, i64) {
        // What a picture of the zero level comes to, and the least sum of any.
        let (division, at_level, least) = match self {
            Kernel::Direct(k) => (k.division, level * sum(&k.weights), least(&k.weights, (0, max))),
            Kernel::Separable(k) => {
                let t = |sum: i64| (sum + k.row.start()) >> k.row.shift;
                let lowest = least(&k.row.weights, (0, max));
                let highest = max * sum(&k.row.weights) - lowest;
                let between = (t(lowest), t(highest));
                let at_level = t(level * sum(&k.row.weights)) * sum(&k.column.weights);
                (k.column.division, at_level, least(&k.column.weights, between))
            }
            // Sums are of the signal above the level.
            Kernel::Combined(k) => (Division::by_power_of_two(k.shift), 0, 0),
            // Weights add up to 1.
            Kernel::Pyramid(k) => {
                let division = Division::by_power_of_two(k.last_shift());
                (division, level * division.divisor(), 0)
            }
            // The bias is the kernel's own.
            Kernel::Weighted(_) => return (0, 0),
        };
        let one = division.divisor();
        // Rounded down, which changes no quotient of an integer.
        let total = level * one - at_level + bias.rounding(levels, one);
        let (low, high) = (total.rem_euclid(one), total.div_euclid(one));
        if division.factor().is_none() {
            return (low, high);
        }
        // As many levels as the least sum is below zero, and one more where that leaves none.
        let raised = (-least - low + one - 1).div_euclid(one).max(0);
        let raised = if high == raised + 1 { high } else { raised };
        (low + raised * one, high - raised)
    }
}

/// The least sum that values between two numbers come to.
fn least(weights: &[i32], (lowest, highest): (i64, i64)) -> i64 {
    let each = |&q: &i32| i64::from(q) * if q > 0 { lowest } else { highest };
    weights.iter().map(each).sum()
}

fn kernel(filter: &Filter, algorithm: Algorithm, depth: u32) -> Result<Kernel, PlanError> {
    let mask = &filter.mask;
    match filter.response {
        Response::Linear => {}
        Response::WideGaussian { sigma } if algorithm == Algorithm::Auto => {
            return Ok(Kernel::Pyramid(PyramidKernel::new(sigma, depth)));
        }
        Response::WideGaussian { .. } => {
            return Err(PlanError::NoMask {
                label: filter.label.clone(),
            });
        }
        _ => return combined(filter, algorithm, depth).map(Kernel::Combined),
    }
    let labelled = |cause| PlanError::Quantise {
        label: filter.label.clone(),
        cause,
    };
    let (w, h) = (mask.width(), mask.height());
    match algorithm {
        Algorithm::Direct => {}
        Algorithm::Auto if 2 * (w + h) >= w * h => {}
        Algorithm::Auto | Algorithm::Separable => {
            let factors = factors(mask);
            let is_exact = |f: &Factors| rational::separable(mask, f, depth).is_some();
            // Where the mask's own integers fit no two passes, one pass still gives the exact quotients.
            let whole = rational::direct(mask, depth).filter(|_| algorithm == Algorithm::Auto);
            if let Some(kernel) = whole.filter(|_| !factors.as_ref().is_some_and(is_exact)) {
                return Ok(Kernel::Direct(kernel));
            }
            match factors.map(|f| separable(mask, &f, depth)) {
                Some(Ok(kernel)) => return Ok(Kernel::Separable(kernel)),
                Some(Err(cause)) if algorithm == Algorithm::Separable => return Err(labelled(cause)),
                None if algorithm == Algorithm::Separable => {
                    return Err(PlanError::NotSeparable {
                        label: filter.label.clone(),
                        rank: rank(mask),
                    });
                }
                _ => {}
            }
        }
    }
    direct(mask, depth).map(Kernel::Direct).map_err(labelled)
}

fn combined(filter: &Filter, algorithm: Algorithm, depth: u32) -> Result<CombinedKernel, PlanError> {
    let label = || filter.label.clone();
    if algorithm == Algorithm::Separable {
        return Err(PlanError::WholeMasks { label: label() });
    }
    let combining = match &filter.response {
        Response::Linear | Response::Absolute | Response::WideGaussian { .. } => Combining::Absolute,
        Response::Largest { .. } => Combining::Largest,
        Response::Magnitude { scale, .. } => Combining::Magnitude(*scale),
    };
    let within = |limits: &Limits| {
        let masks = filter.masks().map(|mask| quantised(mask, *limits, depth));
        let kernels: Vec<Quantised> = masks.collect::<Option<_>>()?;
        // One scale for all: what common factors were taken out of is multiplied again.
        let shift = kernels.iter().map(|k| k.shift).max()?;
        let scaled = |k: Quantised| {
            let weights = k.weights.iter().map(|&q| i64::from(q) << (shift - k.shift));
            let fits = |q: i64| (q.abs() <= limits.weight).then_some(q as i32);
            weights.map(fits).collect::<Option<Vec<i32>>>()
        };
        Some(CombinedKernel {
            width: filter.mask.width(),
            height: filter.mask.height(),
            masks: kernels.into_iter().map(scaled).collect::<Option<_>>()?,
            shift,
            combining,
            long: limits.is_long(),
        })
    };
    kinds(depth)
        .iter()
        .find_map(within)
        .ok_or_else(|| PlanError::Quantise {
            label: label(),
            cause: QuantiseError::new(filter.mask.weights(), depth),
        })
}

/// How far a result may be from the real-number one before the last rounding, in levels.
const MAX_ERROR: f64 = 0.5;

/// What weights of a whole mask may be, the cheapest first.
fn kinds(depth: u32) -> [Limits; 3] {
    [
        Limits::short(depth),
        Limits::three_bytes(depth),
        Limits::long(depth),
    ]
}

/// The integers of a whole mask; `None` where these limits, or samples of `depth` bits, leave too large an
/// error.
fn quantised(mask: &Mask, limits: Limits, depth: u32) -> Option<Quantised> {
    let q = quantise(mask.weights(), mask.width(), mask.height(), limits, depth).ok()?;
    (q.error(mask.weights()) * largest(depth) as f64 <= MAX_ERROR).then_some(q)
}

/// The largest sample of so many bits.
fn largest(depth: u32) -> i64 {
    (1 << depth) - 1
}

/// The whole mask: its own integers where these are known and fit.
fn direct(mask: &Mask, depth: u32) -> Result<DirectKernel, QuantiseError> {
    if let Some(kernel) = rational::direct(mask, depth) {
        return Ok(kernel);
    }
    let within = |limits: &Limits| {
        let q = quantised(mask, *limits, depth)?;
        Some(DirectKernel {
            width: mask.width(),
            height: mask.height(),
            weights: q.weights,
            division: Division::by_power_of_two(q.shift),
            long: limits.is_long(),
        })
    };
    let kernel = kinds(depth).iter().find_map(within);
    kernel.ok_or_else(|| QuantiseError::new(mask.weights(), depth))
}

/// What the passes of a separable kernel may hold.
struct Passes {
    wide: bool,
    /// |t| stays below 2^bits.
    bits: u32,
    row: Limits,
    column: Limits,
}

impl Passes {
    /// The cheapest first.
    fn kinds(depth: u32) -> [Passes; 3] {
        let short = |wide, (bits, total)| Passes {
            wide,
            bits,
            row: Limits::short(depth),
            column: Limits {
                total,
                ..Limits::short(depth)
            },
        };
        [
            short(false, rational::NARROW),
            short(true, rational::WIDE),
            Passes {
                wide: true,
                bits: 23,
                row: Limits::three_bytes(depth),
                column: Limits::three_bytes(23),
            },
        ]
    }
}

/// Both passes of a mask with these factors: its own integers where these are known and fit.
fn separable(mask: &Mask, factors: &Factors, depth: u32) -> Result<SeparableKernel, QuantiseError> {
    if let Some(kernel) = rational::separable(mask, factors, depth) {
        return Ok(kernel);
    }
    let (row, column) = balanced(factors);
    let products = column.iter().flat_map(|c| row.iter().map(move |r| c * r));
    let lack: f64 = products.zip(mask.weights()).map(|(p, w)| (p - w).abs()).sum();
    let max = largest(depth) as f64;
    let within = |kind: Passes| {
        // Sums of deeper samples need 64 bits.
        if depth > 12 && !kind.wide {
            return None;
        }
        let (kernel, error) = separable_with(&kind, &row, &column, depth).ok()?;
        (error + lack * max <= MAX_ERROR).then_some(kernel)
    };
    let kernel = Passes::kinds(depth).into_iter().find_map(within);
    kernel.ok_or_else(|| QuantiseError::new(mask.weights(), depth))
}

/// The factors with the row scaled by a power of two so that its gain lies in (1/2, 1]; the column takes up
/// the rest. Integers stay exact by that.
fn balanced(Factors { row, column }: &Factors) -> (Vec<f64>, Vec<f64>) {
    let positive: f64 = row.iter().filter(|w| **w > 0.0).sum();
    let negative: f64 = -row.iter().filter(|w| **w < 0.0).sum::<f64>();
    // A unit gain that floating point made a hair larger is a unit gain.
    let gain = positive.max(negative) * (1.0 - 1e-12);
    let scale = if gain > 0.0 {
        2_f64.powi(-(gain.log2().ceil() as i32))
    } else {
        1.0
    };
    let row = row.iter().map(|w| w * scale).collect();
    (row, column.iter().map(|w| w / scale).collect())
}

/// The kernel, and a bound of its error before the last rounding, in levels; infinite for a narrow one that
/// rounds too coarsely.
fn separable_with(
    kind: &Passes,
    row: &[f64],
    column: &[f64],
    depth: u32,
) -> Result<(SeparableKernel, f64), QuantiseError> {
    let max = largest(depth);
    let r = quantise(row, row.len(), 1, kind.row, depth)?;
    let (positive, negative) = r.gains();
    let fits = |f: &u32| {
        let shift = r.shift - f;
        let half = (1_i64 << shift) >> 1;
        let top = (positive * max + half) >> shift;
        let bottom = (-negative * max + half) >> shift;
        top < 1 << kind.bits && bottom >= -(1 << kind.bits)
    };
    // The row's gain is at most 1, so that at least the pixel's own bits fit.
    let fraction_bits = (0..=r.shift).rev().find(fits).unwrap_or(0);
    let limits = Limits {
        shift: if kind.wide { 30 } else { 30 - fraction_bits },
        ..kind.column
    };
    let c = quantise(column, 1, column.len(), limits, depth)?;
    let gain = |weights: &[f64]| weights.iter().map(|w| w.abs()).sum::<f64>();
    let rounding = if fraction_bits == r.shift {
        0.0
    } else {
        0.5 / f64::from(1_u32 << fraction_bits)
    };
    // One unit of the last of 15 - depth fraction bits: what half a unit becomes under a column gain of 2.
    // More changes too many results.
    let error = if !kind.wide && rounding * gain(column) > 2_f64.powi(depth as i32 - 15) {
        f64::INFINITY
    } else {
        let max = max as f64;
        // The column's integers are applied to what the row's make.
        let of_row = rounding + max * r.error(row);
        let row_gain = gain(row) + r.error(row) + rounding / max;
        gain(column) * of_row + row_gain * max * c.error(column)
    };
    let kernel = SeparableKernel {
        row: Pass {
            weights: r.weights,
            shift: r.shift - fraction_bits,
            offset: 0,
        },
        column: Column {
            weights: c.weights,
            division: Division::by_power_of_two(c.shift + fraction_bits),
        },
        wide: kind.wide,
        long: kind.row.is_long(),
        fraction_bits,
    };
    Ok((kernel, error))
}
