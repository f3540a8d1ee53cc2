//! Large direct masks by Fourier transforms (overlap-save), exact to the last bit.
//!
//! ```text
//! tile        N x N samples of a component, N = 64, 128 or 256    overlap_save.rs
//!    | two tiles, as real and imaginary part                      tile.rs
//!    | transform, rows and then columns                           butterfly.rs
//! spectrum    x the mask's spectrum, made once for a step's N
//!    | transform back
//! sums        exact integers plus an error below E                tile.rs derives E
//!    | round; a sum within E of the border between two levels is computed again by docs/arithmetic.md
//! results     (N - columns + 1) x (N - rows + 1) of them          recheck.rs
//! ```
//!
//! The cost of a sample hardly depends on the number of weights. [`Fft::cheapest`] chooses the cheapest side
//! N for a plane; the spectrum is computed when a plane first needs it.

mod butterfly;
mod overlap_save;
mod recheck;
mod tile;

use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, PlaneFilter, PlanePart};
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::simd::float::{Doubles2, Float, Singles4, TransformCosts};
use crate::engine::cpu::simd::scratch::Scratch;
use crate::engine::cpu::simd::vector::Simd;
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{Border, ChannelStep, DirectKernel, Kernel};
use crate::frame::{Layout, PixelFormat, Plane};
use overlap_save::{OverlapSave, convolved};
use std::sync::{Arc, OnceLock};
use tile::{Spectra, Spectrum, Tiles, error, norm, spectrum};

/// Fewest weights of a mask: other algorithms are much faster for smaller ones.
const LEAST_WEIGHTS: usize = 81;

/// The sides of tiles, in points.
const SIDES: [usize; 3] = [64, 128, 256];

/// Largest share of vectors with an uncertain result, in tiles of white noise, for which transforms of 32
/// bits pay. It is well below the share from which a pair of tiles is transformed again in 64 bits.
const MAX_UNCERTAIN_VECTORS: f64 = 0.35;

/// Factor of the cost for interleaved components.
const INTERLEAVED: f64 = 1.35;

/// Computes the spectra of a mask over tiles of a side; the last argument says whether also in 32 bits.
type MakeSpectra = Box<dyn Fn(&DirectKernel, usize, bool) -> Spectra + Send + Sync>;

/// The transforms of an instruction set.
struct SpectrumMaker {
    make: MakeSpectra,
    /// Numbers of 32 bits that a vector holds.
    lanes: usize,
    /// The cost of transforms.
    costs: TransformCosts,
}

/// One plane's part of a step with a large direct mask.
pub(super) struct Fft {
    /// Shared by all planes of the step.
    transforms: Arc<Transforms>,
    channels: Vec<ChannelStep>,
    border: Border,
}

/// The transforms of a direct mask.
struct Transforms {
    kernel: DirectKernel,
    format: PixelFormat,
    vectors: Option<Vectors>,
    make: MakeSpectra,
    /// Over tiles of each of [`SIDES`].
    sides: [Side; 3],
}

/// Transforms over tiles of one side.
struct Side {
    points: usize,
    /// True if tiles are transformed in 32 bits first.
    is_fast: bool,
    /// Cost of a pair of tiles, in multiply-adds.
    cost: f64,
    /// Computed when it is first needed.
    made: OnceLock<OverlapSave>,
}

/// The expected share of vectors with an uncertain result, for white noise of samples up to `largest` in
/// pairs of tiles of `side` points. A result is uncertain within the error on either side of the border
/// between two levels; a vector has `lanes` results in each tile.
fn uncertain_share(kernel: &DirectKernel, largest: f64, side: usize, lanes: usize) -> f64 {
    let samples = largest / 12_f64.sqrt() * std::f64::consts::SQRT_2 * side as f64;
    let results = 2.0 * error::<Singles4>(samples, norm(&kernel.weights) / kernel.division.divisor() as f64);
    1.0 - (1.0 - results.min(1.0)).powi(2 * lanes as i32)
}

/// A mask's spectra over tiles of `N` points a side.
fn tiles<S: Float, D: Float, const N: usize>(
    kernel: &DirectKernel,
    (singles, doubles): (S, D),
    is_fast: bool,
) -> Spectra {
    let points = spectrum::<N>(kernel);
    let fast = || -> Box<dyn Tiles> { Box::new(Spectrum::<S, N>::new(singles, kernel, &points)) };
    Spectra {
        fast: is_fast.then(fast),
        exact: Box::new(Spectrum::<D, N>::new(doubles, kernel, &points)),
    }
}

impl SpectrumMaker {
    /// The transforms with these numbers of 32 and of 64 bits.
    fn of<S: Float, D: Float>(singles: S, doubles: D, costs: TransformCosts) -> SpectrumMaker {
        SpectrumMaker {
            make: Box::new(move |kernel, side, is_fast| match side {
                64 => tiles::<S, D, 64>(kernel, (singles, doubles), is_fast),
                128 => tiles::<S, D, 128>(kernel, (singles, doubles), is_fast),
                _ => tiles::<S, D, 256>(kernel, (singles, doubles), is_fast),
            }),
            lanes: S::LANES,
            costs,
        }
    }

    /// The transforms with the vectors of a set.
    fn with<L: Simd>(simd: L) -> SpectrumMaker {
        SpectrumMaker::of(simd.singles(), simd.doubles(), L::TRANSFORM_COSTS)
    }
}

impl Transforms {
    fn new(kernel: &DirectKernel, format: PixelFormat, vectors: Option<Vectors>) -> Transforms {
        let SpectrumMaker { make, lanes, costs } = match vectors {
            Some(vectors) => with_simd!(vectors, simd => SpectrumMaker::with(simd)),
            None => SpectrumMaker::of(Singles4, Doubles2, TransformCosts::PLAIN),
        };
        let side = |k: usize| {
            let points = SIDES[k];
            // The sums that recheck results fit 32 bits for samples of up to 12 bits.
            let is_fast = !kernel.long
                && format.depth() <= 12
                && uncertain_share(kernel, f64::from(format.max_value()), points, lanes)
                    <= MAX_UNCERTAIN_VECTORS;
            let costs = if is_fast { costs.singles } else { costs.doubles };
            Side {
                points,
                is_fast,
                cost: costs[k],
                made: OnceLock::new(),
            }
        };
        Transforms {
            kernel: kernel.clone(),
            format,
            vectors,
            make,
            sides: [side(0), side(1), side(2)],
        }
    }

    /// The convolution over tiles of a side.
    fn over<'a>(&self, side: &'a Side) -> &'a OverlapSave {
        side.made.get_or_init(|| {
            let spectra = (self.make)(&self.kernel, side.points, side.is_fast);
            OverlapSave::new(&self.kernel, self.format, self.vectors, spectra)
        })
    }
}

impl Fft {
    /// Estimated cost of a plane over tiles of a side.
    fn cost_with(&self, side: &Side, plane: &Plane) -> f64 {
        let kernel = &self.transforms.kernel;
        let kept = |reach: usize| side.points + 1 - reach;
        let tiles = plane.width.div_ceil(kept(kernel.width)) * convolved(&self.channels).count();
        let pairs = plane.height.div_ceil(kept(kernel.height)) * tiles.div_ceil(2);
        let interleaved = if plane.channels > 1 { INTERLEAVED } else { 1.0 };
        side.cost * interleaved * pairs as f64
    }

    /// The cheapest side for a plane, and its cost.
    fn cheapest(&self, plane: &Plane) -> (&Side, f64) {
        let [first, others @ ..] = &self.transforms.sides;
        others
            .iter()
            .fold((first, self.cost_with(first, plane)), |least, side| {
                let cost = self.cost_with(side, plane);
                if cost < least.1 { (side, cost) } else { least }
            })
    }

    /// The convolutions over tiles of each side.
    #[cfg(test)]
    fn all(&self) -> impl Iterator<Item = &OverlapSave> {
        self.transforms
            .sides
            .iter()
            .map(|side| self.transforms.over(side))
    }
}

impl PlaneFilter for Fft {
    fn new(part: &PlanePart<'_>, before: Option<&Fft>) -> Option<Fft> {
        let Kernel::Direct(kernel) = &part.step.kernel else {
            return None;
        };
        let channels = part.channels();
        if kernel.weights.len() < LEAST_WEIGHTS || convolved(channels).next().is_none() {
            return None;
        }
        let transforms = match before {
            Some(fft) => Arc::clone(&fft.transforms),
            None => Arc::new(Transforms::new(kernel, part.format, part.vectors)),
        };
        Some(Fft {
            transforms,
            channels: channels.to_vec(),
            border: part.step.border,
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        self.cheapest(plane).1
    }

    fn rows_at_once(&self, plane: &Plane) -> usize {
        self.cheapest(plane).0.points + 1 - self.transforms.kernel.height
    }

    fn plan(&self, plane: &Plane) -> AlgorithmPlan {
        let Side { points, is_fast, .. } = self.cheapest(plane).0;
        let bits = if *is_fast { 32 } else { 64 };
        let rechecked = if *is_fast || self.transforms.kernel.long {
            ", uncertain results rechecked"
        } else {
            ""
        };
        let loops = format_args!("overlap-save, tiles of {points}x{points} in {bits} bits{rechecked}");
        AlgorithmPlan::new("fft", loops)
    }

    fn filter(&self, picture: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>, scratch: &mut Scratch) {
        let (side, _) = self.cheapest(&layout.planes()[strip.plane]);
        let job = (&self.channels[..], self.border);
        let overlap_save = self.transforms.over(side);
        overlap_save.convolve(job, picture, layout, strip, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::rows::plane_filter::samples;
    use crate::engine::cpu::simd::InstructionSet;
    use crate::filter::{Algorithm, AlphaWeighting, Border, Chain, Filter, Mask, Plan, Planes, Step};
    use crate::frame::Colour;

    /// The algorithm for the first plane of a step with a set.
    pub(super) fn fft(step: &Step, format: PixelFormat, set: InstructionSet) -> Option<Fft> {
        let part = PlanePart {
            step,
            plane: 0,
            format,
            vectors: Vectors::of(set),
        };
        Fft::new(&part, None)
    }

    /// The step of a chain of one mask.
    pub(super) fn step(
        mask: Mask,
        border: Border,
        bias: f64,
        planes: &str,
        format: PixelFormat,
    ) -> Option<Step> {
        let chain = Chain {
            filters: vec![Filter {
                bias: bias.into(),
                ..Filter::of_mask("", mask)
            }],
            border,
            planes: planes.parse::<Planes>().unwrap(),
            algorithm: Algorithm::Direct,
            // Weighted colours are no integers.
            alpha: AlphaWeighting::Straight,
        };
        let plan = Plan::new(&chain, format, &Colour::default()).ok()?;
        plan.steps.into_iter().next()
    }

    #[test]
    fn larger_masks_and_larger_planes_have_larger_tiles() {
        let side = |size: usize, (width, height): (usize, usize)| {
            let weights: Vec<i64> = (0..size * size).map(|k| 1 + k as i64 % 7).collect();
            let total = weights.iter().sum();
            let mask = Mask::from_integers(size, size, weights, total).unwrap();
            let format = "gray".parse().unwrap();
            let step = step(mask, Border::Replicate, 0.0, "all", format).unwrap();
            let layout = Layout::new(format, width, height, 1).unwrap();
            let fft = fft(&step, format, InstructionSet::Portable).unwrap();
            fft.rows_at_once(&layout.planes()[0]) + size - 1
        };
        let large = (1920, 1080);
        assert_eq!([9, 25, 63].map(|size| side(size, large)), SIDES);
        assert_eq!((side(31, (160, 90)), side(31, (3840, 2160))), (128, 256));
    }

    #[test]
    fn small_planes_are_not_transformed_where_sums_are_faster() {
        let format = "gray".parse().unwrap();
        let mask = Mask::from_integers(25, 25, vec![1; 625], 625).unwrap();
        let step = step(mask, Border::Replicate, 0.0, "all", format).unwrap();
        let fft = fft(&step, format, InstructionSet::Portable).unwrap();
        let is_faster = |width, height| {
            let layout = Layout::new(format, width, height, 1).unwrap();
            let plane = layout.planes()[0];
            fft.cost(&plane) < samples(&plane) * 625.0
        };
        assert!(is_faster(640, 480) && !is_faster(20, 15));
    }

    #[test]
    fn blurs_of_bytes_are_transformed_in_32_bits_and_deep_samples_in_64() {
        let is_fast = |format: &str, edge: i64| {
            let format = format.parse().unwrap();
            let mut weights: Vec<i64> = (0..25 * 25).map(|k| 1 + k % 7).collect();
            weights[312] += edge;
            let total = weights.iter().sum();
            let mask = Mask::from_integers(25, 25, weights, total).unwrap();
            let step = step(mask, Border::Replicate, 0.0, "all", format).unwrap();
            let fft = fft(&step, format, InstructionSet::Portable).unwrap();
            fft.transforms.sides[1].is_fast
        };
        assert!(is_fast("gray", 0) && is_fast("gray10le", 0));
        // A weight of nine tenths: sums differ by as much as samples do.
        assert!(!is_fast("gray", 20_000));
        assert!(!is_fast("gray12le", 0) && !is_fast("gray16le", 0));
    }
}
