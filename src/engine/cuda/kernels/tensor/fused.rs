//! Two steps of a chain in one launch: which steps can be fused, and the shape of their kernel,
//! tensor/fused.cu.

use super::direct::{Cover, Weights, mask};
use super::fragments::{self, OutputTile};
use super::shape::{Between, Block, Extent, Shape, TensorKernel, Unfit};
use super::tile_size::tile_that_fits;
use crate::engine::cuda::compile::Source;
use crate::engine::cuda::driver::device::DeviceInfo;
use crate::engine::cuda::kernels::plane_group::{Interleaving, divides, groups};
use crate::filter::{Border, ChannelStep, DirectKernel, Kernel, Step};
use crate::frame::PixelFormat;

/// Two steps that follow each other.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    steps: [&'a Step; 2],
    masks: [&'a DirectKernel; 2],
    format: PixelFormat,
}

/// The interleaving of planes of one component, which is convolved.
pub(crate) const PLAIN: Interleaving = Interleaving {
    channels: 1,
    convolved: 1,
};

/// Rows of results of a tile.
const ROWS: usize = 24;

/// Bytes of a row of the middle before a tile's first result, and bytes of the row besides the results' own:
/// the next mask's reach on both sides, rounded up so that tiles begin at multiples of 16 bytes.
const MIDDLE_LEFT: usize = 8;
const MIDDLE_MORE: usize = 16;

/// Bytes before an output tile at which its K-slice begins.
const START: usize = 4;

/// The most products for 128 results, with those that neighbouring tiles compute twice, with which one launch
/// is sure to be faster. Two launches write and read the middle, which takes as long as 9.8 products, but
/// hide more than half of their products behind their transfers. docs/lab/2026-11-22-gpu-fused-filters.md has
/// the figures.
const MOST_PRODUCTS: usize = 16;

/// The most registers of weights with which four blocks fit a multiprocessor; with more, three do.
const MOST_WEIGHTS_OF_FOUR: usize = 48;

impl<'a> Pair<'a> {
    /// `first` and `next` if one launch can do both: direct masks to 9x9 on all planes, each of one 8-bit
    /// component, with the same border, and without alpha.
    pub(crate) fn new(first: &'a Step, next: &'a Step, format: PixelFormat) -> Option<Pair<'a>> {
        let is_plain = |step: &Step| {
            let all = (0..step.planes.len()).collect();
            step.threshold == 0 && groups(step) == [(PLAIN, all)]
        };
        let steps = [first, next];
        if format.depth() != 8 || !steps.into_iter().all(is_plain) || borders(first) != borders(next) {
            return None;
        }
        let shared = |step: &'a Step| match &step.kernel {
            Kernel::Direct(kernel) if !kernel.long => {
                (Cover::of(mask(Weights::of(kernel), 1, 1)).outputs == OutputTile::Shared).then_some(kernel)
            }
            _ => None,
        };
        Some(Pair {
            steps,
            masks: [shared(first)?, shared(next)?],
            format,
        })
    }

    /// Columns and rows of each mask.
    pub(crate) fn sizes(&self) -> [(usize, usize); 2] {
        self.masks.map(|kernel| (kernel.width, kernel.height))
    }

    /// Products of each mask for 128 results.
    fn products(&self) -> [usize; 2] {
        self.masks.map(|kernel| {
            let mask = mask(Weights::of(kernel), 1, 1);
            Cover::of(mask).products() * mask.bands()
        })
    }

    /// True if one launch takes less time than two.
    pub(crate) fn pays(&self) -> bool {
        let [first, next] = self.products();
        // The first mask's results are computed in the next one's halo, too.
        let rows = ROWS + self.masks[1].height - 1;
        first * rows + next * ROWS <= MOST_PRODUCTS * ROWS
    }

    /// The kernel in the blocks that are best for large frames.
    pub(crate) fn tune(&self, limits: &DeviceInfo) -> Result<TensorKernel, Unfit> {
        let weights = 4 * self.products().iter().sum::<usize>();
        let steps = (ROWS + self.masks[1].height - 1) / 2;
        let blocks = if weights > MOST_WEIGHTS_OF_FOUR { 3 } else { 4 };
        let kernel = self.shaped(Block::new((4, 1), steps, blocks), limits)?;
        // With one block on a multiprocessor, nothing runs while it waits at a barrier.
        if 2 * (kernel.shared + 1024) > limits.shared_per_multiprocessor as usize {
            return Err(Unfit::SharedMemory);
        }
        Ok(kernel)
    }

    /// The kernel with lower tiles, chosen as `tile_size::fitted` does; `sizes` are the planes' bytes across
    /// and rows.
    pub(crate) fn fitted(
        &self,
        kernel: &TensorKernel,
        sizes: &[(usize, usize)],
        limits: &DeviceInfo,
    ) -> Option<TensorKernel> {
        let beyond = self.masks[1].height - 1;
        let block = tile_that_fits(kernel, sizes, limits, beyond / 2 + 1, |steps| 2 * steps - beyond)?;
        self.shaped(block, limits).ok()
    }

    /// The kernel in this block, which computes two rows of the middle in each step.
    fn shaped(&self, block: Block, limits: &DeviceInfo) -> Result<TensorKernel, Unfit> {
        let [first, next] = self.masks.map(|kernel| mask(Weights::of(kernel), 1, 1));
        let covers = [first, next].map(Cover::of);
        let weights = [(first, covers[0]), (next, covers[1])].map(|(mask, cover)| {
            fragments::direct(mask, OutputTile::Shared, cover.pairs, cover.slices, START)
        });
        let row = 8 * OutputTile::Shared.slices_apart();
        let width = row * block.warps.0;
        let rows = 2 * block.steps;
        // Lanes write two rows at once, which lie eight bytes apart modulo the banks.
        let pitch = width + 8;
        let extent = Extent {
            mask: (first.size.0 + next.size.0 - 1, first.size.1 + next.size.1 - 1),
            tile: (width - MIDDLE_MORE, rows - (next.size.1 - 1)),
            // K-slices at the end of the last row reach beyond it.
            beside: (rows * pitch + 16).next_multiple_of(128),
            divides: divides(self.steps[1]),
        };
        let shape = Shape {
            source: Source::TensorFused,
            own: vec![
                ("PAIRS", covers[0].pairs as i64),
                ("NEXT_PAIRS", covers[1].pairs as i64),
                ("NEXT_BANDS", next.bands() as i64),
                ("NEXT_W", next.size.0 as i64),
                ("NEXT_H", next.size.1 as i64),
                ("FIRST_DIVIDES", i64::from(divides(self.steps[0]))),
                ("MIDDLE_PITCH", pitch as i64),
                ("MIDDLE_LEFT", MIDDLE_LEFT as i64),
            ],
            bands: first.bands(),
            parts: 1,
            warp: (row, rows),
            block,
            start: MIDDLE_LEFT + START,
            read: 16,
            rows_below: 0,
            odd_chunks: false,
            fragments: weights.concat(),
            between: Between::masks(self.masks[0].division),
            lower: Vec::new(),
            narrow: None,
        };
        shape.finish_as(&extent, self.steps[0], self.format, PLAIN, limits)
    }
}

/// The border, with each component's constant.
fn borders(step: &Step) -> (Border, Vec<Option<u16>>) {
    let constant = |channel: &ChannelStep| channel.convolved().map(|c| c.border);
    (step.border, step.planes.iter().flatten().map(constant).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::h200;
    use super::*;
    use crate::filter::{Algorithm, Chain, Plan, Planes};
    use crate::frame::Colour;

    fn plan(specs: [&str; 2], format: &str, planes: &Planes, algorithm: Algorithm) -> Plan {
        let chain = Chain {
            filters: specs.map(|spec| spec.parse().unwrap()).to_vec(),
            algorithm,
            border: Border::Mirror,
            planes: planes.clone(),
            alpha: Default::default(),
        };
        let format = PixelFormat::from_name(format).unwrap();
        Plan::new(&chain, format, &Colour::default()).unwrap()
    }

    /// The result of `of` for two Gaussians of these sizes on gray.
    fn gaussians<T>(sizes: [usize; 2], of: impl Fn(&Pair<'_>) -> T) -> T {
        let specs = sizes.map(|size| format!("gaussian:size={size}:sigma=1.7"));
        let plan = plan([&specs[0], &specs[1]], "gray", &Planes::All, Algorithm::Direct);
        of(&Pair::new(&plan.steps[0], &plan.steps[1], plan.format).unwrap())
    }

    #[test]
    fn planes_of_one_byte_and_one_component_can_share_a_launch() {
        let fits = |specs, format, planes, algorithm| {
            let plan = plan(specs, format, planes, algorithm);
            Pair::new(&plan.steps[0], &plan.steps[1], plan.format).is_some()
        };
        let (small, all, direct) = (["sharpen", "box:size=9"], &Planes::All, Algorithm::Direct);
        for format in ["gray", "yuv420p", "gbrp"] {
            assert!(fits(small, format, all, direct), "{format}");
        }
        for format in ["nv12", "rgb24", "rgba", "gbrap", "gray10le", "gray16le"] {
            assert!(!fits(small, format, all, direct), "{format}");
        }
        // Chroma is copied or set to a value.
        assert!(!fits(small, "yuv420p", &Planes::Luma, direct));
        assert!(!fits(small, "yuv420p", &Planes::Gray, direct));
        assert!(!fits(["sharpen", "gaussian:size=11"], "gray", all, direct));
        assert!(!fits(
            ["sharpen", "gaussian:size=7"],
            "gray",
            all,
            Algorithm::Auto
        ));
        assert!(fits(
            ["mask:rows=1 2 3 4 5 6 7 8 9", "mask:rows=1;-2;3"],
            "gray",
            all,
            direct
        ));
    }

    #[test]
    fn products_that_take_longer_than_the_frame_between_are_kept_apart() {
        let apart = |sizes| gaussians(sizes, |pair| !pair.pays());
        for sizes in [[3, 3], [5, 5], [3, 7], [7, 3], [5, 7], [7, 5], [3, 9], [9, 3]] {
            assert!(!apart(sizes), "{sizes:?}");
        }
        for sizes in [[7, 7], [5, 9], [9, 5], [9, 9]] {
            assert!(apart(sizes), "{sizes:?}");
        }
        // Weights of one byte take half the products.
        let rows = ["1 2 1 2 1 2 1 2 3"; 9].join(";");
        let spec = format!("mask:rows={rows}:divisor=128");
        let plan = plan([&spec, &spec], "gray", &Planes::All, Algorithm::Direct);
        let pair = Pair::new(&plan.steps[0], &plan.steps[1], plan.format).unwrap();
        assert!(pair.pays());
    }

    #[test]
    fn tiles_begin_at_multiples_of_16_bytes_and_hold_the_halo_of_both() {
        let shape = |sizes| {
            gaussians(sizes, |pair| {
                let kernel = pair.tune(&h200()).unwrap();
                (kernel.tile, kernel.halo, kernel.streamed.map(|whole| whole.rows))
            })
        };
        assert_eq!(shape([3, 3]), ((496, 24), 4, Some(28)));
        assert_eq!(shape([3, 9]), ((496, 24), 10, Some(34)));
    }

    #[test]
    fn low_frames_get_low_tiles_and_cards_with_little_shared_memory_none() {
        let rows = |sizes, frame| {
            gaussians(sizes, |pair| {
                let kernel = pair.tune(&h200()).unwrap();
                let fitted = pair.fitted(&kernel, &[frame], &h200());
                fitted.map_or(kernel.tile.1, |fitted| fitted.tile.1)
            })
        };
        assert_eq!(rows([3, 3], (7680, 4320)), 24);
        let low = rows([3, 3], (1280, 720));
        assert!((2..24).contains(&low) && low % 2 == 0, "{low}");
        assert!(rows([3, 9], (1280, 720)) % 2 == 0);
        let small = DeviceInfo {
            shared_per_multiprocessor: 64 << 10,
            ..h200()
        };
        let refusal = gaussians([3, 3], |pair| pair.tune(&small).err());
        assert_eq!(refusal, Some(Unfit::SharedMemory));
    }
}
