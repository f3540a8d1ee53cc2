//! Overlap-save: large direct masks by way of Fourier transforms, exact to the last bit.
//!
//! ```text
//! tile        N x N samples of a component, N = 64, 128 or 256    overlap_save.rs
//!    | two tiles, as real and imaginary part                      tile.rs
//!    | transform, rows and then columns                           butterfly.rs
//! spectrum    x the mask's spectrum, made once for a plane's N
//!    | transform back
//! sums        exact integers plus an error below E                tile.rs derives E
//!    | round; a sum within E of a border between two levels is computed again as docs/arithmetic.md says
//! results     (N - columns + 1) x (N - rows + 1) of them          recheck.rs
//! ```
//!
//! What a sample costs hardly depends on the number of weights. [`Transforms`] picks the side that takes the
//! least on a plane, makes its spectrum when a plane first asks for it, and says whether it beats a
//! multiply-add for each weight. `float.rs` is what transforms ask of a vector of real numbers.

mod butterfly;
mod float;
#[cfg(target_arch = "x86_64")]
mod float_x86;
mod overlap_save;
mod recheck;
mod tile;

pub(super) use overlap_save::{OverlapSave, Scratch};

use super::simd::InstructionSet;
use crate::filter::{ChannelStep, DirectKernel, Kernel, Step};
use crate::frame::{PixelFormat, Plane};
use float::{Doubles2, Float, Singles4};
use overlap_save::convolved;
use std::sync::OnceLock;
use tile::{Spectra, Spectrum, Tiles, error, norm, spectrum};

/// Weights of the smallest masks that it is tried for: smaller ones are faster by far in other ways.
const LEAST_WEIGHTS: usize = 81;

/// Points a side that tiles may have.
const SIDES: [usize; 3] = [64, 128, 256];

/// Vectors of a pair of tiles of white noise with a doubted result, as a share of all, up to which transforms
/// of 32 bits are worth while: well below what is transformed once more in 64 bits.
const MAX_UNCERTAIN_VECTORS: f64 = 0.35;

/// What a pair of tiles of each of [`SIDES`] takes, with staging its samples and writing its results, in
/// multiply-adds of two samples and two weights each as `fir` does them (measured, docs/lab/2026-11-23-cpu-fft.md): in
/// 32 bits, and in 64.
struct Terms {
    singles: [f64; 3],
    doubles: [f64; 3],
}

const TERMS_PLAIN: Terms = Terms {
    singles: [1.1e6, 5.6e6, 28e6],
    doubles: [1.6e6, 7.5e6, 28e6],
};

const TERMS_AVX2: Terms = Terms {
    singles: [0.42e6, 2.3e6, 12e6],
    doubles: [0.7e6, 3.6e6, 22e6],
};

const TERMS_AVX512: Terms = Terms {
    singles: [0.44e6, 2.4e6, 13e6],
    doubles: [0.78e6, 4.0e6, 24e6],
};

/// There multiply-adds take half as long.
const TERMS_AVX512_VNNI: Terms = Terms {
    singles: [0.85e6, 4.2e6, 23e6],
    doubles: [1.0e6, 5.1e6, 31e6],
};

/// How much more the same takes where samples of a component do not lie side by side.
const INTERLEAVED: f64 = 1.35;

/// What makes spectra over tiles of so many points a side, in 32 bits, too, if that is asked for.
type MakeSpectra = Box<dyn Fn(&DirectKernel, usize, bool) -> Spectra + Send + Sync>;

/// What makes spectra of numbers of some kind.
struct Maker {
    make: MakeSpectra,
    /// Numbers of 32 bits that a vector holds.
    lanes: usize,
}

/// The transforms of a direct mask.
pub(super) struct Transforms {
    kernel: DirectKernel,
    format: PixelFormat,
    set: InstructionSet,
    make: MakeSpectra,
    /// Over tiles of each of [`SIDES`].
    sides: [Side; 3],
}

/// Transforms over tiles of one side.
struct Side {
    points: usize,
    /// True if they are made in 32 bits at first.
    is_fast: bool,
    /// What a pair of tiles takes.
    terms: f64,
    made: OnceLock<OverlapSave>,
}

/// The share of vectors that are doubted in white noise of samples up to `largest`, in pairs of tiles of
/// `side` points: those with a result within the error on both sides of the border between two levels, of
/// `lanes` in each tile.
fn doubted(kernel: &DirectKernel, largest: f64, side: usize, lanes: usize) -> f64 {
    let samples = largest / 12_f64.sqrt() * std::f64::consts::SQRT_2 * side as f64;
    let results = 2.0 * error::<Singles4>(samples, norm(&kernel.weights) / f64::from(kernel.shift).exp2());
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

/// What makes spectra of these numbers.
fn maker<S: Float + 'static, D: Float + 'static>(singles: S, doubles: D) -> Maker {
    Maker {
        make: Box::new(move |kernel, side, is_fast| match side {
            64 => tiles::<S, D, 64>(kernel, (singles, doubles), is_fast),
            128 => tiles::<S, D, 128>(kernel, (singles, doubles), is_fast),
            _ => tiles::<S, D, 256>(kernel, (singles, doubles), is_fast),
        }),
        lanes: S::LANES,
    }
}

/// The vectors of a set, and what tiles take with them; `None` if it has none, or if this machine lacks them.
#[cfg(target_arch = "x86_64")]
fn by_vectors(set: InstructionSet) -> Option<(Maker, &'static Terms)> {
    use float_x86::{Doubles4, Doubles8, Singles8, Singles16};
    match set {
        InstructionSet::Portable => None,
        InstructionSet::Avx2 | InstructionSet::Avx2Vnni => Singles8::detect()
            .zip(Doubles4::detect())
            .map(|(singles, doubles)| (maker(singles, doubles), &TERMS_AVX2)),
        InstructionSet::Avx512 | InstructionSet::Avx512Vnni => {
            let terms = match set {
                InstructionSet::Avx512 => &TERMS_AVX512,
                _ => &TERMS_AVX512_VNNI,
            };
            let reals = Singles16::detect().zip(Doubles8::detect());
            reals.map(|(singles, doubles)| (maker(singles, doubles), terms))
        }
    }
}

/// No set has any.
#[cfg(not(target_arch = "x86_64"))]
fn by_vectors(_: InstructionSet) -> Option<(Maker, &'static Terms)> {
    None
}

impl Transforms {
    /// Those of a step; `None` if its mask is not direct, or so small that other ways are faster anyway.
    pub(super) fn new(step: &Step, format: PixelFormat, set: InstructionSet) -> Option<Transforms> {
        let Kernel::Direct(kernel) = &step.kernel else {
            return None;
        };
        if kernel.weights.len() < LEAST_WEIGHTS {
            return None;
        }
        let plain = || (maker(Singles4, Doubles2), &TERMS_PLAIN);
        let (Maker { make, lanes }, terms) = by_vectors(set).unwrap_or_else(plain);
        let side = |k: usize| {
            let points = SIDES[k];
            // Sums that results are mended by have 32 bits up to 12-bit pixels.
            let is_fast = format.depth() <= 12
                && doubted(kernel, f64::from(format.max_value()), points, lanes) <= MAX_UNCERTAIN_VECTORS;
            let terms = if is_fast { terms.singles } else { terms.doubles };
            Side {
                points,
                is_fast,
                terms: terms[k],
                made: OnceLock::new(),
            }
        };
        Some(Transforms {
            kernel: kernel.clone(),
            format,
            set,
            make,
            sides: [side(0), side(1), side(2)],
        })
    }

    /// What a plane takes over tiles of a side.
    fn terms(&self, side: &Side, plane: &Plane, channels: &[ChannelStep]) -> f64 {
        let kept = |reach: usize| side.points + 1 - reach;
        let tiles = plane.width.div_ceil(kept(self.kernel.width)) * convolved(channels).count();
        let pairs = plane.height.div_ceil(kept(self.kernel.height)) * tiles.div_ceil(2);
        let apart = if plane.channels > 1 { INTERLEAVED } else { 1.0 };
        side.terms * apart * pairs as f64
    }

    fn over<'a>(&self, side: &'a Side) -> &'a OverlapSave {
        side.made.get_or_init(|| {
            let spectra = (self.make)(&self.kernel, side.points, side.is_fast);
            OverlapSave::new(&self.kernel, self.format, self.set, spectra)
        })
    }

    /// The fastest on a plane, if it is faster than a way that takes so many terms a sample.
    pub(super) fn faster(
        &self,
        plane: &Plane,
        channels: &[ChannelStep],
        terms: usize,
    ) -> Option<&OverlapSave> {
        let samples = plane.width * plane.height * plane.channels;
        let each = self
            .sides
            .iter()
            .map(|side| (side, self.terms(side, plane, channels)));
        let (side, takes) = each.min_by(|one, other| one.1.total_cmp(&other.1))?;
        (takes < (samples * terms) as f64).then(|| self.over(side))
    }

    /// Over tiles of each side.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &OverlapSave> {
        self.sides.iter().map(|side| self.over(side))
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::filter::{Algorithm, Border, Chain, Filter, Mask, Plan, Planes};
    use crate::frame::{Colour, Layout};

    /// The step of a chain of one mask.
    pub(in super::super) fn step(
        mask: Mask,
        border: Border,
        bias: f64,
        planes: &str,
        format: PixelFormat,
    ) -> Option<Step> {
        let chain = Chain {
            filters: vec![Filter {
                mask,
                bias,
                caveat: None,
                label: String::new(),
            }],
            border,
            planes: planes.parse::<Planes>().unwrap(),
            algorithm: Algorithm::Direct,
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
            let transforms = Transforms::new(&step, format, InstructionSet::Portable).unwrap();
            let by = transforms.faster(&layout.planes()[0], &step.planes[0], 4 * size * size);
            by.unwrap().rows() + size - 1
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
        let transforms = Transforms::new(&step, format, InstructionSet::Portable).unwrap();
        let is_faster = |width, height| {
            let layout = Layout::new(format, width, height, 1).unwrap();
            let plane = layout.planes()[0];
            transforms.faster(&plane, &step.planes[0], 625).is_some()
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
            let transforms = Transforms::new(&step, format, InstructionSet::Portable).unwrap();
            transforms.sides[1].is_fast
        };
        assert!(is_fast("gray", 0) && is_fast("gray10le", 0));
        // A weight of nine tenths: sums differ by as much as samples do.
        assert!(!is_fast("gray", 20_000));
        assert!(!is_fast("gray12le", 0) && !is_fast("gray16le", 0));
    }
}
