//! The tensor-core kernels: which family fits a step, how its tiles lie in shared memory, and which steps
//! they cannot do.
//!
//! A mask is a matrix product. Neighbouring results need nearly the same pixels, so one operand is the pixels
//! as they lie in memory, and the other a band (Toeplitz) matrix of weights: the mask, shifted by one more
//! for each column:
//!
//! ```text
//!     16 K-slices of pixels (A)         weights (B)               sums (D)
//!     p0  p1  p2  p3 ..  p31            w0  0   0  ..             r0  r1 .. r7
//!     next row or columns               w1  w0  0                 ..
//!     ..                           x    w2  w1  w0           =
//!                                       0   w2  w1
//!     mma.m16n8k32 of bytes             ..                        32 bits
//! ```
//!
//! Weights and samples of more than a byte are split into bytes, a product for each pair (`fragments`).
//! `direct` takes a whole mask, `separable` both passes in one launch, `fused` two masks of a chain. `shape`
//! is how a tile lies in shared memory, `tile_size` how large it is for a frame. The kernels' texts are in
//! `kernels/tensor/`.

mod direct;
mod fragments;
pub(crate) mod fused;
mod separable;
mod shape;
pub(crate) mod tile_size;

pub(crate) use shape::{Loader, TensorKernel, Unfit, bias};

use super::plane_group::{Interleaving, LINEAR_NUMBER, divides, is_wide};
use super::scalar::combining;
use crate::engine::cuda::driver::device::DeviceInfo;
use crate::filter::{CombinedKernel, Combining, Compass, Kernel, SeparableKernel, Step};
use crate::frame::PixelFormat;
use direct::{Weights, deinterleaving_pays, direct};
use fragments::MOST_OF_THREE;
use separable::separable;
use shape::{Block, WHOLE_TILES, biases, folded_bias};

/// The first compute capability whose tensor cores have the byte product of the kernels.
const CAPABILITY: (u32, u32) = (8, 0);

/// The fewest steps with which components are deinterleaved.
const LEAST_DEINTERLEAVED: usize = 3;

/// The kernel of one step for planes of one interleaving, in the blocks that are best for large frames.
pub(crate) fn tune(
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    limits: &DeviceInfo,
) -> Result<TensorKernel, Unfit> {
    shaped(step, format, planes, limits, None)
}

/// [`tune`] with these blocks: the first one, and those for frames with few tiles of it.
fn shaped(
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    limits: &DeviceInfo,
    blocks: Option<&[Block]>,
) -> Result<TensorKernel, Unfit> {
    if limits.compute_capability < CAPABILITY {
        return Err(Unfit::Card);
    }
    let is_folded = divides(step) || !is_wide(step, format);
    if is_folded && biases(step).any(|c| folded_bias(&step.kernel, c).is_none()) {
        return Err(Unfit::Bias);
    }
    match &step.kernel {
        Kernel::Direct(kernel) if kernel.weights.iter().any(|q| q.abs() > MOST_OF_THREE) => {
            Err(Unfit::Weights)
        }
        Kernel::Combined(kernel) if kernel.long => Err(Unfit::Weights),
        Kernel::Direct(kernel) => {
            let block = blocks.and_then(|blocks| blocks.first().copied());
            let weights = Weights::of(kernel);
            let whole = |is_deinterleaved| {
                let mask = (weights, &LINEAR[..]);
                whole_mask(mask, step, format, planes, limits, (is_deinterleaved, block))
            };
            // Long weights' sums over each byte of the samples would need 64 bits.
            let can_deinterleave = !kernel.long || format.bytes_per_sample() == 1;
            if can_deinterleave && deinterleaving_pays(weights, format, planes) {
                whole(true).or_else(|_| whole(false))
            } else {
                whole(false)
            }
        }
        Kernel::Combined(kernel) => {
            let block = blocks.and_then(|blocks| blocks.first().copied());
            combined_masks(kernel, step, format, planes, limits, block)
        }
        Kernel::Separable(kernel) => separable_mask(kernel, step, format, planes, limits, blocks),
        Kernel::Pyramid(_) | Kernel::Weighted(_) => Err(Unfit::Response),
    }
}

/// The parameters of common/combining.cuh for a kernel whose sums become samples.
const LINEAR: [(&str, i64); 12] = [
    ("COMBINING", LINEAR_NUMBER),
    ("MASKS", 1),
    ("SCALE_N", 1),
    ("SCALE_D", 1),
    ("MOST", 1),
    ("MOST_SQUARES", 1),
    ("MOST_SUM", 0),
    NO_COMPASS[0],
    NO_COMPASS[1],
    NO_COMPASS[2],
    NO_COMPASS[3],
    NO_COMPASS[4],
];

/// The parameters of tensor/compass.cuh for kernels without a compass.
const NO_COMPASS: [(&str, i64); 5] = [
    ("MORE", 0),
    ("FEWER", 0),
    ("HALVES", 1),
    ("HALF_NUMBERS", 1),
    ("ONLY_CLAMPED", 0),
];

/// The parameters of tensor/compass.cuh for the largest of several sums; `None` if the masks are no compass.
/// `biases`: what is added to their numbers.
fn compass(
    kernel: &CombinedKernel,
    format: PixelFormat,
    mut biases: impl Iterator<Item = i64>,
) -> Option<[(&'static str, i64); 5]> {
    let compass = Compass::of(kernel).filter(Compass::is_balanced)?;
    let (more, fewer, max) = (compass.more, -compass.others, i64::from(format.max_value()));
    let (three, eight) = (3 * max, 8 * max);
    let fits = |most: i64| most <= i64::from(u16::MAX);
    let holds_sums = fits(eight);
    let holds_numbers = holds_sums && fits(fewer * eight) && fits(more * three);
    let are_levels = holds_numbers
        && kernel.shift == 0
        && format.bytes_per_sample() == 1
        && biases.all(|bias| bias >= 0 && fits(more * three + bias));
    Some([
        ("MORE", more),
        ("FEWER", fewer),
        ("HALVES", i64::from(holds_sums)),
        ("HALF_NUMBERS", i64::from(holds_numbers)),
        ("ONLY_CLAMPED", i64::from(are_levels)),
    ])
}

/// The kernel of combined masks: of one with absolute sums, of two with magnitudes, or of a compass.
fn combined_masks(
    kernel: &CombinedKernel,
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    limits: &DeviceInfo,
    block: Option<Block>,
) -> Result<TensorKernel, Unfit> {
    // The bias is added to the number that sums are combined to.
    let added = || biases(step).map(|c| bias(&step.kernel, c));
    let turned = match kernel.combining {
        Combining::Absolute | Combining::Magnitude(_) => NO_COMPASS,
        Combining::Largest => compass(kernel, format, added()).ok_or(Unfit::Response)?,
    };
    let weights = Weights::combined(kernel).ok_or(Unfit::Response)?;
    let most = kernel.most_sum(format.max_value()) + added().map(i64::abs).max().unwrap_or(0);
    if !is_wide(step, format) && most > i64::from(i32::MAX) {
        return Err(Unfit::Bias);
    }
    let mut parameters = combining(kernel, step, format).map_err(|_| Unfit::Bias)?;
    parameters.extend(turned);
    let whole = |is_deinterleaved| {
        let mask = (weights, &parameters[..]);
        whole_mask(mask, step, format, planes, limits, (is_deinterleaved, block))
    };
    // Samples of two bytes would need registers for the sums over the high bytes of each mask.
    let can_deinterleave = format.bytes_per_sample() == 1 && kernel.combining != Combining::Largest;
    if can_deinterleave && deinterleaving_pays(weights, format, planes) {
        whole(true).or_else(|_| whole(false))
    } else {
        whole(false)
    }
}

/// The kernel of a whole mask, in this block or one with fewer steps: deinterleaved tiles of large masks may
/// only fit shared memory if they are lower.
fn whole_mask(
    mask: (Weights<'_>, &[(&'static str, i64)]),
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    limits: &DeviceInfo,
    (is_deinterleaved, mut block): (bool, Option<Block>),
) -> Result<TensorKernel, Unfit> {
    let copies_whole_tiles = limits.compute_capability >= WHOLE_TILES;
    loop {
        let shape = direct(mask, format, planes, block, is_deinterleaved, copies_whole_tiles);
        let tried = shape.block;
        let fits = shape.finish(step, format, planes, limits);
        if fits.is_ok() || !is_deinterleaved || tried.steps <= LEAST_DEINTERLEAVED {
            return fits;
        }
        let steps = tried.steps - 1;
        block = Some(Block { steps, ..tried });
    }
}

/// The kernel of a separable mask, in the first of these blocks or in the best one.
fn separable_mask(
    kernel: &SeparableKernel,
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    limits: &DeviceInfo,
    blocks: Option<&[Block]>,
) -> Result<TensorKernel, Unfit> {
    let shape = separable(kernel, step, format, planes, blocks)?;
    let (block, lower) = (shape.block, shape.lower.clone());
    // With the halo of a long mask only a lower tile may fit.
    let next = match block {
        _ if lower.is_empty() && block.steps > 1 => {
            let steps = block.steps / 2;
            vec![Block { steps, ..block }]
        }
        _ => lower.clone(),
    };
    let has_room = |kernel: &TensorKernel| {
        kernel.block.blocks * (kernel.shared + 1024) <= limits.shared_per_multiprocessor as usize
    };
    match shape.finish(step, format, planes, limits) {
        Err(Unfit::SharedMemory) if !next.is_empty() => shaped(step, format, planes, limits, Some(&next)),
        // High tiles gain nothing if fewer blocks fit a multiprocessor.
        Ok(kernel) if !lower.is_empty() && !has_room(&kernel) => {
            shaped(step, format, planes, limits, Some(&lower))
        }
        finished => finished,
    }
}

#[cfg(test)]
mod tests {
    use super::super::plane_group::groups;
    use super::tile_size::fitted;
    use super::*;
    use crate::engine::cuda::driver::pictures::tensor_map::TileSize;
    use crate::filter::{Algorithm, AlphaWeighting, Border, Chain, Plan, Planes};
    use crate::frame::Colour;

    pub(crate) fn h200() -> DeviceInfo {
        DeviceInfo {
            compute_capability: (9, 0),
            multiprocessors: 132,
            shared_per_block_optin: 227 << 10,
            shared_per_multiprocessor: 228 << 10,
            ..DeviceInfo::default()
        }
    }

    /// The kernel of a separable mask, of the first plane's interleaving.
    fn separable_kernel(spec: &str, format: &str, card: &DeviceInfo) -> Result<TensorKernel, Unfit> {
        let chain = Chain {
            filters: vec![spec.parse().unwrap()],
            algorithm: Algorithm::Separable,
            border: Border::Replicate,
            planes: Planes::All,
            alpha: AlphaWeighting::Straight,
        };
        let format = PixelFormat::from_name(format).unwrap();
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let (planes, _) = groups(&plan.steps[0]).remove(0);
        tune(&plan.steps[0], format, planes, card)
    }

    fn value(kernel: &TensorKernel, name: &str) -> i64 {
        let mut parameters = kernel.recipe.parameters.iter();
        parameters.find(|(n, _)| *n == name).unwrap().1
    }

    #[test]
    fn wide_sums_are_joined_in_32_bits_where_the_shifts_allow_it() {
        let split_sum32 = |spec, format| {
            let kernel = separable_kernel(spec, format, &h200()).unwrap();
            (value(&kernel, "WIDE"), value(&kernel, "SPLIT_SUM32"))
        };
        assert_eq!(split_sum32("gaussian:size=15", "gray16le"), (1, 1));
        assert_eq!(split_sum32("gaussian:size=15:bias=-99", "rgb48le"), (1, 1));
        // Small integers: the column's shift is 4.
        assert_eq!(split_sum32("mask:rows=1;4;6;4;1:divisor=16", "gray16le"), (1, 0));
        // A bias of 2^16 levels of 8 bits is 2^24 of 16, and takes 2^56 beside a shift of 32.
        assert_eq!(split_sum32("gaussian:size=15:bias=65535", "gray16le"), (1, 0));
        assert_eq!(split_sum32("gaussian:size=15", "gray10le"), (0, 0));
    }

    #[test]
    fn wide_kernels_have_as_many_blocks_as_registers_allow() {
        let blocks = |spec, format| separable_kernel(spec, format, &h200()).map(|k| value(&k, "BLOCKS"));
        // Weights of two bytes, and of three.
        assert_eq!(blocks("binomial:size=9", "gray16le"), Ok(3));
        assert_eq!(blocks("gaussian:size=7", "gray16le"), Ok(3));
        assert_eq!(blocks("gaussian:size=15", "gray16le"), Ok(2));
        assert_eq!(blocks("gaussian:size=47:sigma=9", "gray16le"), Ok(2));
        assert_eq!(blocks("gaussian:size=15", "rgba64le"), Ok(2));
        for (spec, format) in [
            ("gaussian:size=63:sigma=12", "gray16le"),
            ("gaussian:size=25", "rgba64le"),
        ] {
            assert_eq!(blocks(spec, format), Err(Unfit::Registers), "{spec} {format}");
        }
    }

    #[test]
    fn a_long_mask_has_lower_tiles_where_shared_memory_is_short() {
        let small = DeviceInfo {
            shared_per_block_optin: 99 << 10,
            ..h200()
        };
        let rows = |card| separable_kernel("gaussian:size=31", "gray16le", card).map(|k| k.tile.1);
        assert_eq!((rows(&h200()), rows(&small)), (Ok(128), Ok(64)));
    }

    /// The tiles for a frame of one plane of a gray picture: bytes across and rows.
    fn tile(spec: &str, algorithm: Algorithm, size: (usize, usize)) -> (usize, usize) {
        tile_in("gray", spec, algorithm, size)
    }

    /// The tile, in bytes and rows, for frames of `size` (bytes across, rows).
    fn tile_in(format: &str, spec: &str, algorithm: Algorithm, size: (usize, usize)) -> (usize, usize) {
        let chain = Chain {
            filters: vec![spec.parse().unwrap()],
            algorithm,
            border: Border::Replicate,
            planes: Planes::All,
            alpha: AlphaWeighting::Straight,
        };
        let format = PixelFormat::from_name(format).unwrap();
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let (planes, _) = groups(&plan.steps[0])[0];
        let kernel = tune(&plan.steps[0], format, planes, &h200()).unwrap();
        let work = (&plan.steps[0], format, planes);
        fitted(&kernel, work, &[size], &h200()).map_or(kernel.tile, |k| k.tile)
    }

    #[test]
    fn small_frames_get_small_tiles() {
        use Algorithm::{Direct, Separable};
        // 3 x 45 tiles of 512 x 16 leave most multiprocessors with one; 5 x 72 are three for each, and no
        // byte beyond the frame's edge.
        for spec in ["sharpen", "gaussian:size=5", "gaussian:size=7"] {
            assert_eq!(tile(spec, Direct, (1280, 720)), (256, 10), "{spec}");
        }
        // 4 x 90 tiles, which narrower ones would hardly improve on.
        assert_eq!(tile("sharpen", Direct, (1920, 1080)), (512, 12));
        // There are many rounds of tiles whatever their size.
        assert_eq!(tile("sharpen", Direct, (7680, 4320)), (512, 16));
        // 2 x 60 tiles, one for nearly each multiprocessor.
        assert_eq!(tile("sharpen", Direct, (640, 360)), (512, 6));
        // 10 x 23 tiles of a separable mask: two for nearly each multiprocessor.
        assert_eq!(tile("gaussian:size=5", Separable, (1280, 720)), (128, 32));
        assert_eq!(tile("gaussian:size=15", Separable, (1920, 1080)), (128, 64));
        // 38 x 15 such tiles are more than the card holds at once, 38 x 10 higher ones are not.
        let bytes = (3 * 1600, 900);
        assert_eq!(tile_in("rgb24", "gaussian:size=5", Separable, bytes), (128, 96));
    }

    #[test]
    fn gradients_with_few_rounds_of_tiles_get_narrow_ones() {
        let tile = |spec, format, size| tile_in(format, spec, Algorithm::Direct, size);
        for spec in ["sobel", "scharr", "roberts"] {
            // 8 x 135 tiles of 512 x 16 are 2.7 times as many as the card holds, 8 x 68 are 1.4 times.
            assert_eq!(tile(spec, "gray", (3840, 2160)), (256, 16), "{spec}");
            assert_eq!(tile(spec, "nv12", (3840, 1080)), (256, 16), "{spec}");
            // These fit at once, or are many, or have pixels of more components.
            assert_eq!(tile(spec, "gray", (1920, 1080)), (512, 12), "{spec}");
            assert_eq!(tile(spec, "gray", (7680, 4320)), (512, 16), "{spec}");
            assert_eq!(tile(spec, "rgb24", (3 * 1920, 1080)), (512, 16), "{spec}");
        }
        for spec in ["sobel-x", "laplacian8:abs"] {
            assert_eq!(tile(spec, "gray", (3840, 2160)), (512, 16), "{spec}");
        }
    }

    #[test]
    fn large_frames_get_high_tiles_for_separable_masks() {
        for spec in ["gaussian:size=5", "gaussian:size=15"] {
            let tile = |format, bytes, (width, height): (usize, usize)| {
                tile_in(format, spec, Algorithm::Separable, (bytes * width, height))
            };
            assert_eq!(tile("gray", 1, (7680, 4320)), (128, 128), "{spec}");
            assert_eq!(tile("gray", 1, (3840, 2160)), (128, 64), "{spec}");
            assert_eq!(tile("rgb24", 3, (7680, 4320)), (128, 128), "{spec}");
            // Two such tiles would not leave room for three blocks.
            assert_eq!(tile("gray10le", 2, (7680, 4320)), (256, 64), "{spec}");
        }
        let card = DeviceInfo {
            shared_per_multiprocessor: 100 << 10,
            ..h200()
        };
        let rows = |card| separable_kernel("gaussian:size=5", "gray", card).map(|k| k.tile.1);
        assert_eq!((rows(&h200()), rows(&card)), (Ok(128), Ok(64)));
    }

    #[test]
    fn pixels_are_deinterleaved_where_that_saves_products() {
        let deinterleaved = |size: usize, format: &str| {
            let chain = Chain {
                filters: vec![format!("gaussian:size={size}").parse().unwrap()],
                algorithm: Algorithm::Direct,
                border: Border::Replicate,
                planes: Planes::All,
                alpha: AlphaWeighting::Straight,
            };
            let format = PixelFormat::from_name(format).unwrap();
            let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
            let (planes, _) = groups(&plan.steps[0]).pop().unwrap();
            let kernel = tune(&plan.steps[0], format, planes, &h200()).unwrap();
            (value(&kernel, "DEINTERLEAVE"), value(&kernel, "BANDS"))
        };
        // One component of a byte has nothing to deinterleave.
        assert_eq!(
            (deinterleaved(3, "gray"), deinterleaved(25, "gray")),
            ((0, 2), (0, 2))
        );
        assert_eq!(
            (deinterleaved(5, "rgb24"), deinterleaved(7, "rgb24")),
            ((0, 2), (1, 2))
        );
        assert_eq!(
            (deinterleaved(3, "rgba"), deinterleaved(5, "rgba")),
            ((0, 2), (1, 2))
        );
        assert_eq!(
            (deinterleaved(7, "nv12"), deinterleaved(9, "nv12")),
            ((0, 2), (1, 2))
        );
        // Samples of two bytes take three products in place, and two for each byte once they are split; four
        // where weights have three bytes, which stay in place.
        assert_eq!(
            (deinterleaved(7, "gray12le"), deinterleaved(9, "gray12le")),
            ((0, 3), (1, 2))
        );
        assert_eq!(
            (deinterleaved(3, "rgb48le"), deinterleaved(9, "rgb48le")),
            ((0, 4), (0, 4))
        );
        assert_eq!(
            (deinterleaved(3, "p010le"), deinterleaved(5, "p010le")),
            ((0, 3), (1, 2))
        );
        let tile = |(width, height): (usize, usize)| {
            tile_in(
                "gray10le",
                "gaussian:size=15",
                Algorithm::Direct,
                (2 * width, height),
            )
        };
        assert_eq!((tile((7680, 4320)), tile((1920, 1080))), ((128, 96), (128, 64)));
    }

    #[test]
    fn each_way_of_loading_tiles_is_a_program_and_only_new_cards_copy_them_whole() {
        let plan = |spec: &str| {
            let chain = Chain {
                filters: vec![spec.parse().unwrap()],
                algorithm: Algorithm::Direct,
                border: Border::Replicate,
                planes: Planes::All,
                alpha: AlphaWeighting::Straight,
            };
            Plan::new(
                &chain,
                PixelFormat::from_name("gray").unwrap(),
                &Colour::default(),
            )
            .unwrap()
        };
        let loaders = |spec: &str, compute_capability| {
            let card = DeviceInfo {
                compute_capability,
                ..h200()
            };
            let planes = Interleaving {
                channels: 1,
                convolved: 1,
            };
            let plan = plan(spec);
            let format = PixelFormat::from_name("gray").unwrap();
            let kernel = tune(&plan.steps[0], format, planes, &card).unwrap();
            (kernel.recipes().count(), kernel.streamed)
        };
        assert_eq!(loaders("sharpen", (8, 9)), (2, None));
        // A byte to the left of 512, rounded down to 16, and one to the right, rounded up.
        let whole = TileSize { bytes: 544, rows: 18 };
        assert_eq!(loaders("sharpen", (9, 0)), (3, Some(whole)));
    }
}
