//! Direct masks on tensor cores: which K-slices cover the pixels that an output tile reads, and the shape of
//! the kernel, tensor/direct.cu.

use super::fragments::{self, Mask, OutputTile};
use super::shape::{Between, Block, Shape};
use crate::engine::cuda::compile::Source;
use crate::engine::cuda::kernels::plane_group::Interleaving;
use crate::filter::{CombinedKernel, DirectKernel};
use crate::frame::PixelFormat;

/// The weights of one mask, or of two whose sums are combined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights<'a> {
    first: &'a [i32],
    second: Option<&'a [i32]>,
    size: (usize, usize),
    /// True if there are more masks, a compass: the kernel compares sums of neighbours, without products.
    compares: bool,
}

impl<'a> Weights<'a> {
    /// The weights of a mask whose sums become samples.
    pub(super) fn of(kernel: &'a DirectKernel) -> Weights<'a> {
        Weights {
            first: &kernel.weights,
            second: None,
            size: (kernel.width, kernel.height),
            compares: false,
        }
    }

    /// The weights of masks whose sums are combined: of one mask, of two, or of the first of a compass.
    /// `None` without masks.
    pub(super) fn combined(kernel: &'a CombinedKernel) -> Option<Weights<'a>> {
        let (first, second) = match &kernel.masks[..] {
            [first, second] => (first, Some(&second[..])),
            [first, ..] => (first, None),
            [] => return None,
        };
        Some(Weights {
            first,
            second,
            size: (kernel.width, kernel.height),
            compares: kernel.masks.len() > 2,
        })
    }
}

/// How K-slices cover the pixels that an output tile reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cover {
    pub(super) outputs: OutputTile,
    /// Bytes before an output tile at which its first K-slice begins.
    start: usize,
    /// Pairs of rows under an output tile, and K-slices beside each other.
    pub(super) pairs: usize,
    pub(super) slices: usize,
}

impl Cover {
    /// The cover of these output tiles with K-slices that begin `start` bytes before them.
    fn with(mask: Mask<'_>, outputs: OutputTile, start: usize) -> Cover {
        let (reach, sample_bytes) = (mask.reach(), mask.sample_bytes);
        Cover {
            outputs,
            start,
            pairs: (mask.size.1 + outputs.size().1 - 1).div_ceil(2),
            slices: (start + (outputs.size().0 - 1) * sample_bytes + reach + sample_bytes).div_ceil(16),
        }
    }

    /// The cover of output tiles that leave a lane with eight neighbouring results in two rows.
    fn by_eight(mask: Mask<'_>) -> Cover {
        let outputs = if mask.sample_bytes == 1 {
            OutputTile::Shared
        } else {
            OutputTile::Wide
        };
        Cover::with(mask, outputs, mask.reach().next_multiple_of(4))
    }

    /// The cover that needs the fewest products.
    pub(super) fn of(mask: Mask<'_>) -> Cover {
        let (reach, sample_bytes) = (mask.reach(), mask.sample_bytes);
        let cover = |outputs: OutputTile, start: usize| Cover::with(mask, outputs, start);
        // Preferred: K-slices begin at whole words of shared memory.
        let whole = reach.next_multiple_of(4);
        let shared = cover(OutputTile::Shared, whole);
        if sample_bytes == 1 && shared.slices == 1 && shared.pairs <= 5 {
            return shared;
        }
        // The fewest products, then the fewest shifts of the words that are read.
        let starts = (reach..=whole).step_by(sample_bytes);
        let covers = starts
            .flat_map(|start| [OutputTile::Wide, OutputTile::Tall].map(|outputs| cover(outputs, start)));
        let fewest = covers.min_by_key(|c| (c.products(), c.start % 4 != 0, c.start % 2, c.start));
        fewest.unwrap_or_else(|| cover(OutputTile::Tall, reach))
    }

    /// Products for 128 results, of one band.
    pub(super) fn products(&self) -> usize {
        self.pairs * self.slices
    }

    /// True if all weights stay in registers.
    fn is_resident(&self, bands: usize) -> bool {
        let down = self.outputs.size().1 / 2;
        self.outputs == OutputTile::Shared
            || (self.slices == 1 && self.pairs * bands <= 18 && self.pairs >= down)
    }
}

/// Products for 128 results that deinterleaving has to save to be worth its own time.
const LEAST_SAVED: usize = 5;

/// True if deinterleaving pixels, into rows of one byte of one component, saves enough products to pay.
pub(super) fn deinterleaving_pays(kernel: Weights<'_>, format: PixelFormat, planes: Interleaving) -> bool {
    let sample_bytes = format.bytes_per_sample();
    let products = |mask: Mask<'_>| Cover::of(mask).products() * mask.bands();
    // Components that are not convolved cost products only if they are interleaved with others.
    let computed = planes.convolved.count_ones() as usize * sample_bytes;
    let needed = planes.channels * products(mask(kernel, planes.channels, sample_bytes));
    let saved = needed.saturating_sub(computed * products(mask(kernel, 1, 1)));
    planes.channels * sample_bytes > 1 && saved >= LEAST_SAVED * planes.channels
}

/// A direct mask on rows of `channels` interleaved components, with samples of `sample_bytes` bytes.
pub(super) fn mask(kernel: Weights<'_>, channels: usize, sample_bytes: usize) -> Mask<'_> {
    Mask {
        weights: kernel.first,
        second: kernel.second,
        size: kernel.size,
        channels,
        sample_bytes,
    }
}

/// The shape of a direct mask's kernel, in this block or in the best one. `combining` are the parameters of
/// common/combining.cuh and tensor/compass.cuh.
pub(super) fn direct(
    (kernel, combining): (Weights<'_>, &[(&'static str, i64)]),
    format: PixelFormat,
    planes: Interleaving,
    block: Option<Block>,
    is_deinterleaved: bool,
    copies_whole_tiles: bool,
) -> Shape {
    let (parts, mask) = if is_deinterleaved {
        let parts = planes.channels * format.bytes_per_sample();
        (parts, mask(kernel, 1, 1))
    } else {
        (1, mask(kernel, planes.channels, format.bytes_per_sample()))
    };
    let (sample_bytes, bands) = (mask.sample_bytes, mask.bands());
    let cover = if kernel.compares {
        Cover::by_eight(mask)
    } else {
        Cover::of(mask)
    };
    let Cover {
        outputs,
        start,
        pairs,
        slices,
    } = cover;
    let resident = cover.is_resident(bands);
    let row = 8 * outputs.slices_apart() * sample_bytes * parts;
    let bytes = format.bytes_per_sample();
    let best = || match outputs {
        // Without products, only other warps hide the latency of instructions.
        OutputTile::Wide if kernel.compares => Block::new((2, 1), 8, 8),
        _ => best_block(mask, &cover, (parts, bytes), is_deinterleaved, copies_whole_tiles),
    };
    let block = block.unwrap_or_else(best);
    // Six steps are best for large frames; with small ones they leave a part of the card idle.
    let lower = if sample_bytes < format.bytes_per_sample() && parts == 2 && block.steps > 4 {
        vec![Block { steps: 4, ..block }]
    } else {
        Vec::new()
    };
    let mut own = vec![
        ("SHARED_SLICES", i64::from(outputs == OutputTile::Shared)),
        ("PAIRS", pairs as i64),
    ];
    own.extend(combining);
    if outputs != OutputTile::Shared {
        own.extend([
            ("COLUMNS", outputs.size().0 as i64),
            ("SLICES", slices as i64),
            ("RESIDENT", i64::from(resident)),
        ]);
    }
    Shape {
        source: Source::TensorDirect,
        own,
        bands,
        parts,
        warp: (row, outputs.size().1 * block.steps),
        block,
        start: parts * start,
        read: parts * 16 * slices,
        rows_below: 0,
        odd_chunks: false,
        fragments: fragments::direct(mask, outputs, pairs, slices, start),
        between: Between::default(),
        lower,
        narrow: narrow_block(kernel, &cover, planes.channels, block).filter(|_| copies_whole_tiles),
    }
}

/// A block half as wide, where that was measured to be faster for frames with somewhat more tiles than the
/// card holds at a time: with roots tiles take longer, so that it matters how evenly the last are spread.
fn narrow_block(kernel: Weights<'_>, cover: &Cover, channels: usize, block: Block) -> Option<Block> {
    let has_roots = kernel.second.is_some();
    let is_small = cover.outputs == OutputTile::Shared && cover.pairs <= 2 && channels <= 2;
    match block.warps {
        (4, down) if has_roots && is_small => Some(Block::new((2, down), block.steps, 2 * block.blocks)),
        _ => None,
    }
}

/// The block that was measured fastest. `parts` is the number of planar rows that a row is deinterleaved
/// into, of samples of `bytes` bytes.
fn best_block(
    mask: Mask<'_>,
    cover: &Cover,
    (parts, bytes): (usize, usize),
    is_deinterleaved: bool,
    copies_whole_tiles: bool,
) -> Block {
    let &Cover {
        outputs,
        start,
        pairs,
        ..
    } = cover;
    let bands = mask.bands();
    let resident = cover.is_resident(bands);
    let row = 8 * outputs.slices_apart() * mask.sample_bytes * parts;
    match (outputs, bands) {
        _ if is_deinterleaved && bytes == 2 => {
            // A lane holds the results of all components in registers, and the sums over the high bytes.
            let (steps, blocks) = match outputs {
                _ if resident && parts > 4 => (2, 3),
                _ if !resident && parts > 4 => (4, 2),
                OutputTile::Shared if parts == 2 => (6, 3),
                _ if resident && parts == 2 => (6, 2),
                _ => (4, 3),
            };
            Block::new((1, 4), steps, blocks)
        }
        _ if is_deinterleaved => {
            // At least as many threads as a row of the tile has chunks to load.
            let chunks =
                ((parts * start).next_multiple_of(16) + row + parts * mask.reach() + 15).div_ceil(16);
            let (down, blocks) = match outputs {
                // Weights are read for each tile, once for all of a warp's steps.
                OutputTile::Wide if parts == 3 && !resident => (4, 2),
                OutputTile::Tall if parts == 3 && !resident => (4, 3),
                _ if chunks > 64 => (4, 2),
                OutputTile::Shared if parts == 4 => (4, 4),
                // Of the widest K-slices' registers three blocks' are enough.
                _ if parts == 4 => (4, 3),
                _ => (2, 5),
            };
            let steps = match outputs {
                // What a lane keeps of four components is half of its registers in eight steps.
                OutputTile::Shared if parts == 4 => 5,
                _ if parts == 4 => 3,
                OutputTile::Shared => 8,
                _ if resident => 6,
                _ => 4,
            };
            Block::new((1, down), steps, blocks)
        }
        (OutputTile::Shared, _) if mask.channels == 4 => Block::new((4, 1), 12, 3),
        // Copied as a whole, wide tiles are the best for all of these; else only for the smallest masks.
        (OutputTile::Shared, _) if pairs <= 2 || copies_whole_tiles => Block::new((4, 1), 8, 3),
        (OutputTile::Shared, _) => Block::new((2, 1), 8, 6),
        _ if resident => Block::new((2, 1), 8, 5),
        (OutputTile::Wide, ..3) => Block::new((1, 2), 8, 4),
        (_, ..3) => Block::new((2, 1), 6, 4),
        // Weights are read for each tile, once for all of a warp's steps.
        _ => Block::new((1, 2), 4, 6),
    }
}
