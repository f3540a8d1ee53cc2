//! The shape of the tensor-core kernels: which family fits a step, how its tiles lie in shared memory, and what it cannot do.

pub(super) mod pair;

use super::device::DeviceInfo;
use super::fragments::{self, Mask, Passes, Patch};
use super::job::{Interleaving, border_number, is_wide};
use super::program::{Recipe, Source};
use super::tile_map::TileSize;
use crate::filter::{ChannelStep, Convolve, DirectKernel, Kernel, SeparableKernel, Step};
use crate::frame::{Channel, PixelFormat};
use std::ffi::CStr;

/// Why a step is not worked on by tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    /// The card is too old.
    #[error("the card's compute capability is below 8.0")]
    Card,
    /// The weights of a separable mask do not fit the registers.
    #[error("the mask's weights need too many registers")]
    Registers,
    /// A bias that 32-bit sums cannot hold beside the pixels.
    #[error("the bias is too large for 32-bit sums")]
    Bias,
    /// The tile with its halo is larger than a block's shared memory.
    #[error("the tile and its halo do not fit in shared memory")]
    SharedMemory,
    /// The user chose the threads of a block.
    #[error("--block was given")]
    Block,
}

/// How tiles come to shared memory. Each way is a program of its own: LOADER in tensor_entries.cuh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loader {
    /// In pieces of 16 bytes, of rows that begin at multiples of them.
    Aligned,
    /// In such pieces, of rows that begin anywhere.
    Unaligned,
    /// As a whole, by one instruction, of rows that begin at multiples of 16 bytes.
    Streamed,
}

impl Loader {
    pub(super) const ALL: [Loader; 3] = [Loader::Aligned, Loader::Unaligned, Loader::Streamed];

    /// The kernel's name.
    pub(super) fn entry(self) -> &'static CStr {
        match self {
            Loader::Aligned => c"aligned",
            Loader::Unaligned => c"unaligned",
            Loader::Streamed => c"streamed",
        }
    }
}

/// A kernel for the tensor cores, and how it is launched.
#[derive(Debug, Clone)]
pub(super) struct TensorKernel {
    /// Of all loaders, but for which one it is.
    recipe: Recipe,
    /// Bytes across and rows of a tile.
    pub(super) tile: (usize, usize),
    pub(super) threads: u32,
    /// Bytes of shared memory: two tiles with their halos, or one and its components taken apart; for two masks what is between them besides.
    pub(super) shared: usize,
    pub(super) fragments: Vec<u32>,
    /// What [`Loader::Streamed`] copies as a whole; `None` if the card cannot do that.
    pub(super) streamed: Option<TileSize>,
    /// The shift of a separable mask's row pass, or of the first of two masks, else 0.
    pub(super) row_shift: u32,
    /// True if it weighs colours by alpha and divides them again.
    pub(super) weighs: bool,
    /// What a block does at a time.
    block: Block,
    /// The same where a frame has few tiles of these, from the larger ones down.
    lower: Vec<Block>,
    /// Rows that are loaded of a tile besides its own.
    halo: usize,
}

impl TensorKernel {
    /// The text.
    pub(super) fn source(&self) -> Source {
        self.recipe.source
    }

    /// The program that loads tiles in this way.
    pub(super) fn recipe_for(&self, loader: Loader) -> Recipe {
        let mut recipe = self.recipe.clone();
        recipe.parameters.push(("LOADER", loader as i64));
        recipe
    }

    /// The programs of all ways that the card knows.
    pub(super) fn recipes(&self) -> impl Iterator<Item = Recipe> {
        let can = |loader: &Loader| *loader != Loader::Streamed || self.streamed.is_some();
        Loader::ALL
            .into_iter()
            .filter(can)
            .map(|loader| self.recipe_for(loader))
    }

    /// Blocks that such a card holds at a time, as the compiler was told.
    pub(super) fn resident(&self, limits: &DeviceInfo) -> usize {
        self.block.blocks * limits.multiprocessors as usize
    }

    /// Tiles of planes of so many bytes across and so many rows.
    pub(super) fn tiles(&self, sizes: impl IntoIterator<Item = (usize, usize)>) -> usize {
        let of_plane =
            |(across, down): (usize, usize)| across.div_ceil(self.tile.0) * down.div_ceil(self.tile.1);
        sizes.into_iter().map(of_plane).sum()
    }
}

/// The smallest compute capability whose tensor cores multiply bytes in the shape that the kernels use.
const CAPABILITY: (u32, u32) = (8, 0);

/// The smallest one whose cards copy a whole tile by one instruction.
const WHOLE_TILES: (u32, u32) = (9, 0);

/// Registers of weights that a lane of the separable kernel can hold, of each pass, where the intermediate has two bytes.
const MOST_WEIGHTS: usize = 40;

/// Registers of weights, intermediate and pixels that a lane can hold where the intermediate has three bytes, and nothing spills: with three blocks on a
/// multiprocessor, and with two.
const MOST_HELD_BY_THREE: usize = 64;
const MOST_HELD_BY_TWO: usize = 150;

/// Pieces of a row's bands whose weights a lane can hold beside those of three groups of rows, with three blocks on a multiprocessor.
const MOST_PIECES_BY_THREE: usize = 8;

/// How much a block does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Warps beside and below each other.
    pub(super) warps: (usize, usize),
    /// The parameter STEPS: what a warp works on one below the other.
    pub(super) steps: usize,
    /// Blocks on a multiprocessor that the compiler keeps registers for.
    pub(super) blocks: usize,
}

impl Block {
    const fn new(warps: (usize, usize), steps: usize, blocks: usize) -> Block {
        Block { warps, steps, blocks }
    }

    /// True if it has a multiprocessor for itself, with warps beside each other only, so that tiles may have any number of steps.
    fn is_alone(&self) -> bool {
        self.blocks == 1 && self.warps.1 == 1
    }
}

/// The kernel of one step for planes of one interleaving, in blocks of the shape that is the best for large frames.
pub(super) fn tune(
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    limits: &DeviceInfo,
) -> Result<TensorKernel, Unfit> {
    shaped(step, format, planes, limits, None)
}

/// What a tile costs besides its rows, in rows: waiting for its first bytes and for each other.
const TILE_COST: usize = 8;

/// What a multiprocessor's time grows by beside the warps that it has to run, in warps: what each tile takes however few there are. It is less of the time
/// of a separable mask's warps, which have more to do.
const ALONE: usize = 5;
const ALONE_SEPARABLE: usize = 2;

/// High tiles pay where a frame has so many times the tiles that the card holds at a time.
const MANY: usize = 4;

/// The fewest steps of blocks that have a multiprocessor for themselves.
const LEAST_ALONE: usize = 3;

/// The fewest steps with which components are taken apart.
const LEAST_APART: usize = 3;

/// A tile's shape is changed where that promises this many hundredths of the time at least.
const LEAST_GAIN: usize = 5;

/// Makes `kernel`'s tiles lower, and of half the width where that is better still, if the card would then have tiles for more of the blocks that it holds at a
/// time; `None` where they are best as they are. `sizes` are the planes' bytes across and rows.
pub(super) fn fitted(
    kernel: &TensorKernel,
    (step, format, planes): (&Step, PixelFormat, Interleaving),
    sizes: &[(usize, usize)],
    limits: &DeviceInfo,
) -> Option<TensorKernel> {
    let shaped = |block| shaped(step, format, planes, limits, Some(&[block])).ok();
    let are_few =
        |kernel: &TensorKernel| kernel.tiles(sizes.iter().copied()) < MANY * kernel.resident(limits);
    let mut low: Option<TensorKernel> = None;
    for &block in &kernel.lower {
        if !are_few(low.as_ref().unwrap_or(kernel)) {
            break;
        }
        low = shaped(block).or(low);
    }
    if kernel.block.is_alone() {
        let cost = |kernel: &TensorKernel| rounds_cost(kernel, (step, format, planes), sizes, limits);
        let steps = LEAST_ALONE..kernel.block.steps;
        let lower = steps.filter_map(|steps| {
            shaped(Block {
                steps,
                ..kernel.block
            })
        });
        let best = lower.filter(|kernel| !are_few(kernel)).min_by_key(cost);
        if let Some(best) = best.filter(|best| cost(best) < cost(low.as_ref().unwrap_or(kernel))) {
            return Some(best);
        }
    }
    let kernel = low.as_ref().unwrap_or(kernel);
    let rows_of_step = kernel.tile.1 / kernel.block.steps;
    match fitting(kernel, sizes, limits, 1, |steps| rows_of_step * steps) {
        Some(block) => shaped(block),
        None => low,
    }
}

/// What the multiprocessor with the most tiles takes for them, in bytes that are loaded: of many tiles, whose blocks do not wait for each other.
fn rounds_cost(
    kernel: &TensorKernel,
    (step, format, planes): (&Step, PixelFormat, Interleaving),
    sizes: &[(usize, usize)],
    limits: &DeviceInfo,
) -> usize {
    let busiest = kernel
        .tiles(sizes.iter().copied())
        .div_ceil(limits.multiprocessors as usize);
    let pixel = planes.channels * format.bytes_per_sample();
    let across = kernel.tile.0 + (step.kernel.size().0 - 1) * pixel;
    busiest * across * (kernel.tile.1 + kernel.halo + TILE_COST)
}

/// The block whose tiles of `rows(steps)` rows, with at least `least` steps, promise so much less time; `None` if the kernel's own is the best.
fn fitting(
    kernel: &TensorKernel,
    sizes: &[(usize, usize)],
    limits: &DeviceInfo,
    least: usize,
    rows: impl Fn(usize) -> usize,
) -> Option<Block> {
    let multiprocessors = limits.multiprocessors as usize;
    // Launching a tiny frame takes longer than working on it, whatever its tiles. How many rounds of tiles a large one takes was seen not to matter.
    let tiles = kernel.tiles(sizes.iter().copied());
    if 2 * tiles < multiprocessors || tiles > kernel.resident(limits) {
        return None;
    }
    let warps = kernel.block.warps;
    let alone = match kernel.recipe.source {
        Source::TensorSeparable => ALONE_SEPARABLE,
        _ => ALONE,
    };
    let row_bytes = kernel.shared / (kernel.tile.1 + kernel.halo);
    let cost = |block: &Block| {
        let rows = rows(block.steps);
        let across = kernel.tile.0 * block.warps.0 / warps.0;
        let shared = row_bytes * block.warps.0 / warps.0 * (rows + kernel.halo) + 1024;
        let fit = block
            .blocks
            .min(limits.shared_per_multiprocessor as usize / shared);
        let tiles = |&(bytes, down): &(usize, usize)| bytes.div_ceil(across) * down.div_ceil(rows);
        let busiest = sizes.iter().map(tiles).sum::<usize>().div_ceil(multiprocessors);
        // Blocks that find no room begin when others have ended.
        let rounds = busiest.div_ceil(fit.max(1));
        rounds * (rows + kernel.halo + TILE_COST) * (busiest.min(fit) * block.warps.0 * block.warps.1 + alone)
    };
    let lowest = |warps: (usize, usize), blocks: usize| {
        let steps = least..=kernel.block.steps;
        let blocks = steps.map(|steps| Block { warps, steps, blocks });
        blocks.min_by_key(&cost)
    };
    let pays = |new: &Block, old: &Block| 100 * cost(new) <= (100 - LEAST_GAIN) * cost(old);
    let best = lowest(warps, kernel.block.blocks).filter(|low| pays(low, &kernel.block));
    if kernel.recipe.source != Source::TensorDirect || warps.0 % 2 == 1 {
        return best;
    }
    lowest((warps.0 / 2, warps.1), 2 * kernel.block.blocks)
        .filter(|narrow| pays(narrow, &best.unwrap_or(kernel.block)))
        .or(best)
}

/// [`tune`] with blocks of these shapes: the first, and those where a frame has few tiles of it.
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
    if !is_wide(step, format) && biases(step).any(|c| folded_bias(&step.kernel, c).is_none()) {
        return Err(Unfit::Bias);
    }
    let shape = match &step.kernel {
        Kernel::Direct(kernel) => {
            let block = blocks.and_then(|blocks| blocks.first().copied());
            let copies_whole_tiles = limits.compute_capability >= WHOLE_TILES;
            if pays_apart(kernel, format, planes) {
                // Long masks leave room for lower tiles.
                let mut lower = block;
                loop {
                    let shape = direct(kernel, format, planes, lower, true, copies_whole_tiles);
                    let tried = shape.block;
                    match shape.finish(step, format, planes, limits) {
                        Ok(fits) => return Ok(fits),
                        Err(_) if tried.steps <= LEAST_APART => break,
                        Err(_) => {
                            let steps = tried.steps - 1;
                            lower = Some(Block { steps, ..tried });
                        }
                    }
                }
            }
            direct(kernel, format, planes, block, false, copies_whole_tiles)
        }
        Kernel::Separable(kernel) => {
            let shape = separable(kernel, step, format, planes, blocks)?;
            let (block, lower) = (shape.block, shape.lower.clone());
            // The halo of a long mask may leave room for a lower tile.
            let next = match block {
                _ if block.is_alone() && block.steps > LEAST_ALONE => {
                    let steps = block.steps - 1;
                    [&[Block { steps, ..block }], &lower[..]].concat()
                }
                _ if lower.is_empty() && block.steps > 1 => {
                    let steps = block.steps / 2;
                    vec![Block { steps, ..block }]
                }
                _ => lower.clone(),
            };
            let has_room = |kernel: &TensorKernel| {
                kernel.block.blocks * (kernel.shared + 1024) <= limits.shared_per_multiprocessor as usize
            };
            return match shape.finish(step, format, planes, limits) {
                Err(Unfit::SharedMemory) if !next.is_empty() => {
                    shaped(step, format, planes, limits, Some(&next))
                }
                // High tiles are no gain where they leave room for fewer blocks.
                Ok(kernel) if !lower.is_empty() && !has_room(&kernel) => {
                    shaped(step, format, planes, limits, Some(&lower))
                }
                finished => finished,
            };
        }
    };
    shape.finish(step, format, planes, limits)
}

fn biases(step: &Step) -> impl Iterator<Item = &Convolve> {
    step.planes.iter().flatten().filter_map(|channel| match channel {
        ChannelStep::Convolve(c) => Some(c),
        ChannelStep::Copy | ChannelStep::Fill(_) => None,
    })
}

/// The whole bias of a component as one number that is added to its sum, `low + high * 2^shift`; `None` if 32-bit sums cannot hold it beside the
/// pixels' 2^30.
fn folded_bias(kernel: &Kernel, c: &Convolve) -> Option<i64> {
    let bias = bias(kernel, c);
    (bias.abs() < 1 << 30).then_some(bias)
}

/// The whole bias of a component: what is added to its sum before the last shift.
pub(super) fn bias(kernel: &Kernel, c: &Convolve) -> i64 {
    let shift = match kernel {
        Kernel::Direct(k) => k.shift,
        Kernel::Separable(k) => k.column.shift,
    };
    c.low.saturating_add(c.high.saturating_mul(1 << shift))
}

/// True if all convolved components of each plane add the same.
fn same_bias(step: &Step) -> bool {
    step.planes.iter().all(|channels| {
        let mut convolved = channels.iter().filter_map(|channel| match channel {
            ChannelStep::Convolve(c) => Some((c.low, c.high)),
            ChannelStep::Copy | ChannelStep::Fill(_) => None,
        });
        let first = convolved.next();
        convolved.all(|c| Some(c) == first)
    })
}

/// How colours are weighed by alpha on the way: the parameters of weighing.cuh.
#[derive(Debug, Clone, Copy)]
struct Weighing {
    /// Which of a pixel's components is alpha.
    alpha: usize,
    normalise: bool,
    filter_alpha: bool,
}

impl Weighing {
    /// `None` where nothing is weighed, or only the kernels of alpha.cu can.
    fn of(step: &Step, format: PixelFormat, planes: Interleaving) -> Option<Weighing> {
        let alpha = step.alpha?;
        let [plane] = format.planes() else { return None };
        let place = plane.channels.iter().position(|&c| c == Channel::Alpha)?;
        let is_kept = !matches!(step.planes[0][place], ChannelStep::Fill(_));
        let is_byte = (planes.channels, format.bytes_per_sample()) == (4, 1);
        let fits = is_byte && (alpha.gain, alpha.offset) == (1 << 16, 0);
        (fits && is_kept && biases(step).all(|c| c.level == 0)).then_some(Weighing {
            alpha: place,
            normalise: alpha.normalise,
            filter_alpha: alpha.filter_alpha,
        })
    }
}

/// A family's part of a kernel's shape.
struct Shape {
    source: Source,
    own: Vec<(&'static str, i64)>,
    bands: usize,
    /// Components that are taken apart in shared memory; 1 if none are.
    parts: usize,
    /// Bytes across and rows that one warp computes.
    warp: (usize, usize),
    block: Block,
    /// Bytes of a row before a result's first byte at which its window begins, and bytes that are read from there on for one lane.
    start: usize,
    read: usize,
    /// Rows that are read below the mask's last.
    rows_below: usize,
    /// How rows lie apart so that lanes that read several at once meet in no bank: the remainder of a row's pieces of 16 bytes, and what divides them.
    pieces_apart: (usize, usize),
    /// True if four pixels' components lie side by side where colours were weighed.
    by_fours: bool,
    fragments: Vec<u32>,
    row_shift: u32,
    /// The blocks where a frame has few tiles of this one's, from the larger ones down.
    lower: Vec<Block>,
}

/// How windows cover what a patch of results reads.
#[derive(Debug, Clone, Copy)]
struct Cover {
    patch: Patch,
    /// Bytes before a patch at which its first window begins.
    start: usize,
    /// Pairs of rows under a patch, and windows beside each other.
    pairs: usize,
    windows: usize,
}

impl Cover {
    /// The cover that needs the fewest products.
    fn of(mask: Mask<'_>) -> Cover {
        let (reach, sample_bytes) = (mask.reach(), mask.sample_bytes);
        let cover = |patch: Patch, start: usize| Cover {
            patch,
            start,
            pairs: (mask.size.1 + patch.size().1 - 1).div_ceil(2),
            windows: (start + (patch.size().0 - 1) * sample_bytes + reach + sample_bytes).div_ceil(16),
        };
        // Windows begin at whole words of shared memory if they can.
        let whole = reach.next_multiple_of(4);
        let shared = cover(Patch::Shared, whole);
        if sample_bytes == 1 && shared.windows == 1 && shared.pairs <= 5 {
            return shared;
        }
        // The fewest products, then the fewest shifts of what was read.
        let starts = (reach..=whole).step_by(sample_bytes);
        let covers = starts.flat_map(|start| [Patch::Wide, Patch::Tall].map(|patch| cover(patch, start)));
        let fewest = covers.min_by_key(|c| (c.products(), c.start % 4 != 0, c.start % 2, c.start));
        fewest.unwrap_or_else(|| cover(Patch::Tall, reach))
    }

    /// Products for 128 results, a band.
    fn products(&self) -> usize {
        self.pairs * self.windows
    }

    /// True if all weights stay in registers.
    fn is_resident(&self, bands: usize) -> bool {
        let down = self.patch.size().1 / 2;
        self.patch == Patch::Shared || (self.windows == 1 && self.pairs * bands <= 18 && self.pairs >= down)
    }
}

/// Products for 128 results that taking components apart has to save, for it takes time too.
const LEAST_SAVED: usize = 5;

fn mask(kernel: &DirectKernel, format: PixelFormat, channels: usize) -> Mask<'_> {
    Mask {
        weights: &kernel.weights,
        size: (kernel.width, kernel.height),
        channels,
        sample_bytes: format.bytes_per_sample(),
    }
}

/// True if so many products are saved where components are taken apart first that it pays.
fn pays_apart(kernel: &DirectKernel, format: PixelFormat, planes: Interleaving) -> bool {
    let together = mask(kernel, format, planes.channels);
    let apart = mask(kernel, format, 1);
    // Components that are not convolved cost products only where they lie between the others.
    let computed = planes.convolved.count_ones() as usize;
    let needed = planes.channels * Cover::of(together).products();
    let saved = needed.saturating_sub(computed * Cover::of(apart).products());
    planes.channels > 1 && saved * together.bands() >= LEAST_SAVED * planes.channels
}

fn direct(
    kernel: &DirectKernel,
    format: PixelFormat,
    planes: Interleaving,
    block: Option<Block>,
    is_apart: bool,
    copies_whole_tiles: bool,
) -> Shape {
    let parts = if is_apart { planes.channels } else { 1 };
    let mask = mask(kernel, format, planes.channels / parts);
    let (sample_bytes, bands, cover) = (mask.sample_bytes, mask.bands(), Cover::of(mask));
    let Cover {
        patch,
        start,
        pairs,
        windows,
    } = cover;
    let resident = cover.is_resident(bands);
    let row = 8 * patch.windows_apart() * sample_bytes * parts;
    let block = block.unwrap_or(match (patch, bands) {
        _ if is_apart => {
            // As many threads as a row of the tile has pieces to be copied, at least.
            let pieces =
                ((parts * start).next_multiple_of(16) + row + parts * mask.reach() + 15).div_ceil(16);
            let (down, blocks) = match bands {
                _ if pieces > 64 => (4, 2),
                3.. if resident => (2, 4),
                3.. => (4, 2),
                // Of the widest windows' registers three blocks' are enough.
                _ if parts == 4 => (4, if patch == Patch::Shared { 4 } else { 3 }),
                _ => (2, 5),
            };
            let steps = match (patch, bands) {
                // What a lane keeps of four components is half of its registers in eight steps.
                (Patch::Shared, _) if parts == 4 => 5,
                (_, ..3) if parts == 4 => 3,
                (Patch::Shared, _) => 8,
                (_, ..3) if resident => 6,
                _ => 4,
            };
            Block::new((1, down), steps, blocks)
        }
        // Copied as a whole, wide tiles are the best for all of these; else only for the smallest masks.
        (Patch::Shared, _) if pairs <= 2 || copies_whole_tiles => Block::new((4, 1), 8, 3),
        (Patch::Shared, _) => Block::new((2, 1), 8, 6),
        _ if resident => Block::new((2, 1), 8, 5),
        (Patch::Wide, ..3) => Block::new((1, 2), 8, 4),
        (_, ..3) => Block::new((2, 1), 6, 4),
        // Weights are read anew for each tile, once for all of a warp's steps.
        _ => Block::new((1, 2), 4, 6),
    });
    let mut own = vec![
        ("SHARED_WINDOWS", i64::from(patch == Patch::Shared)),
        ("PAIRS", pairs as i64),
    ];
    if patch != Patch::Shared {
        own.extend([
            ("COLUMNS", patch.size().0 as i64),
            ("WINDOWS", windows as i64),
            ("RESIDENT", i64::from(resident)),
        ]);
    }
    Shape {
        source: Source::TensorDirect,
        own,
        bands,
        parts,
        warp: (row, patch.size().1 * block.steps),
        block,
        start: parts * start,
        read: parts * 16 * windows,
        rows_below: 0,
        pieces_apart: (0, 1),
        by_fours: false,
        fragments: fragments::direct(mask, patch, pairs, windows, start),
        row_shift: 0,
        lower: Vec::new(),
    }
}

/// True if a wide kernel's sums may be joined in 32 bits, without the last 8 in the row pass and the last 16 in the column pass. The column's sums
/// lie within 2^45.
fn goes_by_halves(kernel: &SeparableKernel, step: &Step, row_bands: usize) -> bool {
    let row = row_bands < 3 || kernel.row.shift >= 8;
    let bias_fits = biases(step).all(|c| bias(&step.kernel, c).abs() < 1 << 45);
    kernel.wide && row && kernel.column.shift >= 16 && same_bias(step) && bias_fits
}

/// The block of a separable mask's kernel for large frames, and those for frames that have few tiles of it.
fn separable_blocks(
    passes: Passes,
    bands: usize,
    column_bytes: usize,
    sample_bytes: usize,
    by_fours: bool,
) -> Result<Vec<Block>, Unfit> {
    let Passes { pieces, groups, .. } = passes;
    let (row, column) = (2 * bands * pieces, 2 * column_bytes * groups);
    let beside = |steps: usize, blocks: usize| Block::new((4, 1), steps, blocks);
    if passes.wide {
        // Three bytes of four values in each of four products, and the pixels of a window.
        let held = row + column + 12 * groups + pieces;
        let blocks = if held > MOST_HELD_BY_THREE { 2 } else { 3 };
        let steps = if groups > 2 { 8 } else { 4 };
        return if held > MOST_HELD_BY_TWO {
            Err(Unfit::Registers)
        } else {
            Ok(vec![beside(steps, blocks)])
        };
    }
    if row > MOST_WEIGHTS || column > MOST_WEIGHTS {
        return Err(Unfit::Registers);
    }
    Ok(match (by_fours, groups) {
        // What is weighed of halos weighs most: as large as two tiles leave room for.
        (true, ..=2) => vec![Block::new((12, 1), 7, 1), beside(4, 3), beside(2, 4)],
        (true, 3) => vec![Block::new((8, 1), 7, 1), beside(4, 2)],
        (true, _) => vec![Block::new((4, 2), 4, 1), beside(4, 2)],
        (false, ..=2) => {
            let low = beside(4, if bands * pieces <= 4 { 4 } else { 3 });
            // Of samples of two bytes two high tiles would not leave room for three blocks.
            if sample_bytes == 1 {
                vec![beside(8, 3), low]
            } else {
                vec![low]
            }
        }
        (false, _) if bands * pieces > MOST_PIECES_BY_THREE => vec![beside(8, 2)],
        (false, _) => vec![beside(8, 3)],
    })
}

fn separable(
    kernel: &SeparableKernel,
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    blocks: Option<&[Block]>,
) -> Result<Shape, Unfit> {
    let sample_bytes = format.bytes_per_sample();
    let weighs = Weighing::of(step, format, planes).is_some();
    let by_fours = weighs && !kernel.wide;
    // Pixels of a word each, so that a lane's four neighbours are 16 bytes.
    let components = if by_fours { planes.channels } else { 1 };
    let row = Mask {
        weights: &kernel.row.weights,
        size: (kernel.row.weights.len(), 1),
        channels: planes.channels / components,
        sample_bytes,
    };
    let column = &kernel.column.weights;
    let start = row.reach().next_multiple_of(4);
    let pieces = (start + 16 * sample_bytes + row.reach()).div_ceil(16);
    // Blocks of 8 rows under 16 results, and groups of 16.
    let eights = (15 + column.len()).div_ceil(8);
    let groups = eights.div_ceil(2);
    let passes = Passes {
        start,
        pieces,
        groups,
        wide: kernel.wide,
    };
    let (bands, column_bytes) = (row.bands(), fragments::weight_bytes(column));
    let best = separable_blocks(passes, bands, column_bytes, sample_bytes, by_fours)?;
    let (&block, lower) = blocks.unwrap_or(&best).split_first().ok_or(Unfit::SharedMemory)?;
    let written_out = match block.steps {
        // Of wide sums written out pass after pass, too many registers would hold what later passes need.
        _ if kernel.wide => 1,
        // More does not fit the card's instruction cache, or the registers.
        4 if by_fours && groups > 2 && !block.is_alone() => 2,
        8 if groups <= 2 && bands * pieces > 6 => 4,
        steps => steps,
    };
    let across = if by_fours {
        16 * components
    } else {
        32 * sample_bytes
    };
    // Only where the last pass has code of its own can it leave rows out.
    let rows_read = if written_out == block.steps {
        8 * eights
    } else {
        16 * groups
    };
    Ok(Shape {
        source: Source::TensorSeparable,
        own: vec![
            ("ROW_PIECES", pieces as i64),
            ("COLUMN_GROUPS", groups as i64),
            ("COLUMN_BYTES", column_bytes as i64),
            ("BY_HALVES", i64::from(goes_by_halves(kernel, step, bands))),
            ("WRITTEN_OUT", written_out as i64),
        ],
        bands,
        parts: 1,
        warp: (across, 16 * block.steps),
        block,
        start: components * start,
        read: components * 16 * pieces,
        rows_below: rows_read - 15 - column.len(),
        // A warp reads eight rows at once, a word a lane, or turns of two, 16 bytes a lane.
        pieces_apart: if by_fours { (4, 8) } else { (1, 2) },
        by_fours,
        fragments: fragments::separable(row, column, passes),
        row_shift: kernel.row.shift,
        lower: lower.to_vec(),
    })
}

/// What a kernel computes.
struct Extent {
    /// Columns and rows of its mask.
    mask: (usize, usize),
    /// Bytes across and rows of a tile.
    tile: (usize, usize),
    /// Bytes of shared memory besides the tiles'.
    beside: usize,
}

impl Shape {
    /// Bytes across and rows that a block computes.
    fn computed(&self) -> (usize, usize) {
        (self.warp.0 * self.block.warps.0, self.warp.1 * self.block.warps.1)
    }

    fn finish(
        self,
        step: &Step,
        format: PixelFormat,
        planes: Interleaving,
        limits: &DeviceInfo,
    ) -> Result<TensorKernel, Unfit> {
        let extent = Extent {
            mask: step.kernel.size(),
            tile: self.computed(),
            beside: 0,
        };
        self.finish_as(&extent, step, format, planes, limits)
    }

    fn finish_as(
        self,
        extent: &Extent,
        step: &Step,
        format: PixelFormat,
        planes: Interleaving,
        limits: &DeviceInfo,
    ) -> Result<TensorKernel, Unfit> {
        let sample_bytes = format.bytes_per_sample();
        let ((width, height), tile) = (extent.mask, extent.tile);
        let reach = width / 2 * planes.channels * sample_bytes;
        let left = self.start.next_multiple_of(16);
        let (remainder, number) = self.pieces_apart;
        let apart = |pieces: usize| pieces + (number + remainder - pieces % number) % number;
        // Rows of memory may begin up to 15 bytes after a multiple of 16.
        let chunks = (left + tile.0 + reach + 15).div_ceil(16);
        // The word at the row's end says where it begins; a read may go on for the words that hold its last byte.
        let read_to = left - self.start + self.computed().0 + self.read + 24;
        let pitch = 16 * apart(read_to.max(16 * chunks + 4).div_ceil(16));
        // Aligned rows need neither: what is read beyond one is the next, and beyond the last one there is room enough for longer rows.
        let aligned_chunks = (left + tile.0 + reach).div_ceil(16);
        let aligned_pitch = 16 * apart(aligned_chunks);
        let rows = tile.1 + height - 1;
        let stage = (pitch * (rows + self.rows_below)).next_multiple_of(128);
        // A component's rows, of what the tile's windows cover.
        let (part_pitch, is_apart) = ((tile.0 + self.read) / self.parts, self.parts > 1);
        let part = if is_apart { rows * part_pitch } else { 0 };
        let shared = if is_apart {
            stage + self.parts * part
        } else {
            2 * stage + extent.beside
        };
        let whole = TileSize {
            bytes: aligned_pitch,
            rows,
        };
        let streamed = (limits.compute_capability >= WHOLE_TILES && whole.fits()).then_some(whole);
        if shared + 1024 > limits.shared_per_block_optin as usize {
            return Err(Unfit::SharedMemory);
        }
        let weighing = Weighing::of(step, format, planes);
        let weighs = |what: fn(Weighing) -> bool| i64::from(weighing.is_some_and(what));
        let warps = self.block.warps.0 * self.block.warps.1;
        let mut parameters = vec![
            ("SAMPLE_BYTES", sample_bytes as i64),
            ("SAMPLE_SHIFT", i64::from(format.shift())),
            ("WIDE", i64::from(is_wide(step, format))),
            ("CHANNELS", planes.channels as i64),
            ("CONVOLVED", i64::from(planes.convolved)),
            ("BORDER", border_number(step.border)),
            ("MASK_W", width as i64),
            ("MASK_H", height as i64),
            ("SAME_BIAS", i64::from(same_bias(step))),
            ("BANDS", self.bands as i64),
            ("TILE_W", tile.0 as i64),
            ("TILE_H", tile.1 as i64),
            ("PITCH", pitch as i64),
            ("ALIGNED_PITCH", aligned_pitch as i64),
            ("STAGE", stage as i64),
            ("ROWS", rows as i64),
            ("LEFT", left as i64),
            ("CHUNKS", chunks as i64),
            ("ALIGNED_CHUNKS", aligned_chunks as i64),
            ("START", (left - self.start) as i64),
            ("WARPS_X", self.block.warps.0 as i64),
            ("WARPS", warps as i64),
            ("BLOCKS", self.block.blocks as i64),
            ("STEPS", self.block.steps as i64),
            ("APART", i64::from(is_apart)),
            ("PART", part as i64),
            ("PART_PITCH", part_pitch as i64),
            ("BY_FOURS", i64::from(self.by_fours)),
            ("ALPHA", weighing.map_or(-1, |w| w.alpha as i64)),
            ("NORMALISE", weighs(|w| w.normalise)),
            ("FILTER_ALPHA", weighs(|w| w.filter_alpha)),
        ];
        parameters.extend(self.own);
        Ok(TensorKernel {
            recipe: Recipe {
                source: self.source,
                parameters,
            },
            tile,
            threads: 32 * warps as u32,
            shared,
            fragments: self.fragments,
            streamed,
            row_shift: self.row_shift,
            weighs: weighing.is_some(),
            block: self.block,
            lower: self.lower,
            halo: height - 1 + self.rows_below,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::job::groups;
    use super::*;
    use crate::filter::{Algorithm, Border, Chain, Plan, Planes};
    use crate::frame::Colour;

    pub(super) fn h200() -> DeviceInfo {
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
        let by_halves = |spec, format| {
            let kernel = separable_kernel(spec, format, &h200()).unwrap();
            (value(&kernel, "WIDE"), value(&kernel, "BY_HALVES"))
        };
        assert_eq!(by_halves("gaussian:size=15", "gray16le"), (1, 1));
        assert_eq!(by_halves("gaussian:size=15:bias=-99", "rgb48le"), (1, 1));
        // Small integers: the column's shift is 4.
        assert_eq!(by_halves("mask:rows=1;4;6;4;1:divisor=16", "gray16le"), (1, 0));
        // A bias of 2^16 levels of 8 bits is 2^24 of 16, and takes 2^49 beside a shift of 25.
        assert_eq!(by_halves("gaussian:size=15:bias=65535", "gray16le"), (1, 0));
        assert_eq!(by_halves("gaussian:size=15", "gray10le"), (0, 0));
    }

    #[test]
    fn wide_kernels_have_as_many_blocks_as_registers_allow() {
        let blocks = |spec, format| separable_kernel(spec, format, &h200()).map(|k| value(&k, "BLOCKS"));
        assert_eq!(blocks("gaussian:size=15", "gray16le"), Ok(3));
        assert_eq!(blocks("gaussian:size=31", "gray16le"), Ok(2));
        assert_eq!(blocks("gaussian:size=63:sigma=12", "gray16le"), Ok(2));
        assert_eq!(blocks("gaussian:size=25", "rgba64le"), Ok(2));
        assert_eq!(
            blocks("gaussian:size=63:sigma=12", "rgba64le"),
            Err(Unfit::Registers)
        );
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

    /// The tile, in bytes and rows, for frames of so many bytes across and rows.
    fn tile_in(format: &str, spec: &str, algorithm: Algorithm, size: (usize, usize)) -> (usize, usize) {
        let chain = Chain {
            filters: vec![spec.parse().unwrap()],
            algorithm,
            border: Border::Replicate,
            planes: Planes::All,
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
        // 3 x 45 tiles of 512 x 16 leave most multiprocessors with one; 5 x 52 are two for each, and no byte beyond the frame's edge.
        for spec in ["sharpen", "gaussian:size=5", "gaussian:size=7"] {
            assert_eq!(tile(spec, Direct, (1280, 720)), (256, 14), "{spec}");
        }
        // 4 x 90 tiles, which narrower ones would hardly improve on.
        assert_eq!(tile("sharpen", Direct, (1920, 1080)), (512, 12));
        // There are many rounds of tiles whatever their size.
        assert_eq!(tile("sharpen", Direct, (7680, 4320)), (512, 16));
        // A tiny one stays as it is.
        assert_eq!(tile("sharpen", Direct, (640, 360)), (512, 16));
        // 10 x 12 tiles of a separable mask: one for nearly each multiprocessor is better than two of half the height.
        assert_eq!(tile("gaussian:size=15", Separable, (1280, 720)), (128, 64));
        assert_eq!(tile("gaussian:size=15", Separable, (1920, 1080)), (128, 64));
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
            assert_eq!(tile("rgba", 4, (1920, 1080)), (256, 32), "{spec}");
        }
        let tile = |spec, (width, height): (usize, usize)| {
            tile_in("rgba", spec, Algorithm::Separable, (4 * width, height))
        };
        // What is weighed has a multiprocessor for each block, with tiles as high as there is room for.
        assert_eq!(tile("gaussian:size=5", (7680, 4320)), (768, 112));
        assert_eq!(tile("gaussian:size=15", (7680, 4320)), (768, 96));
        assert_eq!(tile("gaussian:size=25", (7680, 4320)), (512, 112));
        // Five steps would leave a multiprocessor with five tiles where 4.1 are its share; three leave it with seven, of 6.8.
        assert_eq!(tile("gaussian:size=5", (3840, 2160)), (256, 64));
        assert_eq!(tile("gaussian:size=15", (3840, 2160)), (768, 48));
        assert_eq!(tile("gaussian:size=25", (3840, 2160)), (512, 112));
        // What tests/gpu.rs holds against the reference.
        assert_eq!(tile("gaussian:size=3", (6949, 1303)).0, 768);
        assert_eq!(tile("gaussian:size=15", (4201, 1303)).0, 768);
        assert_eq!(tile("gaussian:size=25:sigma=4", (4201, 1303)).0, 512);
        assert_eq!(tile("gaussian:size=33:sigma=6", (4201, 1303)).0, 512);
        let card = DeviceInfo {
            shared_per_multiprocessor: 100 << 10,
            ..h200()
        };
        let rows = |card| separable_kernel("gaussian:size=5", "gray", card).map(|k| k.tile.1);
        assert_eq!((rows(&h200()), rows(&card)), (Ok(128), Ok(64)));
    }

    #[test]
    fn what_is_weighed_comes_by_fours_in_rows_that_meet_no_bank() {
        for spec in [
            "gaussian:size=3",
            "gaussian:size=9",
            "gaussian:size=15",
            "gaussian:size=25",
        ] {
            let kernel = separable_kernel(spec, "rgba", &h200()).unwrap();
            assert_eq!(value(&kernel, "BY_FOURS"), 1, "{spec}");
            // Two rows that lanes read at once lie in different halves of the 128 bytes that all banks give.
            assert_eq!(value(&kernel, "ALIGNED_PITCH") % 128, 64, "{spec}");
            assert_eq!(value(&kernel, "PITCH") % 128, 64, "{spec}");
            let without = separable_kernel(spec, "rgb24", &h200()).unwrap();
            assert_eq!(value(&without, "BY_FOURS"), 0, "{spec}");
        }
    }

    #[test]
    fn rgba_of_bytes_is_weighed_on_the_way_unless_the_mask_has_another_gain() {
        let weighs = |spec: &str, format: &str, planes: Planes, algorithm| {
            let chain = Chain {
                filters: vec![spec.parse().unwrap()],
                algorithm,
                border: Border::Replicate,
                planes,
            };
            let format = PixelFormat::from_name(format).unwrap();
            let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
            let (interleaving, _) = groups(&plan.steps[0])[0];
            tune(&plan.steps[0], format, interleaving, &h200())
                .unwrap()
                .weighs
        };
        for algorithm in [Algorithm::Direct, Algorithm::Separable] {
            for format in ["rgba", "bgra", "argb"] {
                assert!(
                    weighs("gaussian:size=5", format, Planes::All, algorithm),
                    "{format}"
                );
                assert!(
                    weighs("gaussian:size=5", format, Planes::AllWithAlpha, algorithm),
                    "{format}"
                );
            }
            for format in ["rgb24", "ya8", "rgba64le", "gbrap"] {
                assert!(
                    !weighs("gaussian:size=5", format, Planes::All, algorithm),
                    "{format}"
                );
            }
        }
        // What divides is the alpha of the result, by no gain.
        assert!(weighs("sharpen", "rgba", Planes::All, Algorithm::Direct));
        let third = "mask:rows=1:divisor=3";
        assert!(!weighs(third, "rgba", Planes::All, Algorithm::Direct));
        let biased = "sharpen:bias=3";
        assert!(!weighs(biased, "rgba", Planes::All, Algorithm::Direct));
        // Alpha alone is weighed by nothing.
        let alpha = Planes::Only(vec![Channel::Alpha]);
        assert!(!weighs("sharpen", "rgba", alpha, Algorithm::Direct));
    }

    #[test]
    fn each_way_of_loading_tiles_is_a_program_and_only_new_cards_copy_them_whole() {
        let plan = |spec: &str| {
            let chain = Chain {
                filters: vec![spec.parse().unwrap()],
                algorithm: Algorithm::Direct,
                border: Border::Replicate,
                planes: Planes::All,
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
