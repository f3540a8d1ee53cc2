//! Chooses tiles for the size of a frame.
//!
//! Large tiles load less halo. Small frames have few of them, which leaves a part of the card idle:
//!
//! ```text
//! multiprocessor  0 1 2 3 4 5          0 1 2 3 4 5
//! high tiles      # # # # . .          lower: # # # # # #   a little more halo, nothing idle
//! ```
//!
//! A model of the time decides, rounds of tiles times rows of a tile; its constants were measured
//! (docs/lab/2026-11-23-gpu-tile-size.md).

use super::shape::{Block, TensorKernel};
use super::shaped;
use crate::engine::cuda::compile::Source;
use crate::engine::cuda::driver::device::DeviceInfo;
use crate::engine::cuda::kernels::plane_group::Interleaving;
use crate::filter::Step;
use crate::frame::PixelFormat;

/// The overhead of a tile, in rows: waiting for its first bytes and at barriers. It is larger for separable
/// masks, whose warps filter the first rows of a tile before they have a result.
const TILE_COST: usize = 8;
const TILE_COST_SEPARABLE: usize = 16;

/// The overhead of a multiprocessor, in warps: the time of a round of tiles does not fall with the number of
/// warps alone. It is smaller for separable masks, fused masks and deinterleaved tiles, whose warps have more
/// to do.
const ALONE: usize = 8;
const ALONE_BUSY: usize = 5;

/// High tiles are faster if a frame has this many times the tiles that the card holds at a time.
const MANY: usize = 4;

/// A tile's shape is changed if that is predicted to save at least this many percent of the time.
const LEAST_GAIN: usize = 5;

/// Narrow tiles are faster from this many percent of the tiles on that the card holds at a time, up to
/// [`MANY`] times as many: the last ones leave less of it idle.
const LEAST_FOR_NARROW: usize = 125;

/// `kernel` with lower tiles, or also half as wide ones, if they keep more of the card busy; `None` if its
/// own tiles are best. `sizes` are the planes' bytes across and rows.
pub(crate) fn fitted(
    kernel: &TensorKernel,
    (step, format, planes): (&Step, PixelFormat, Interleaving),
    sizes: &[(usize, usize)],
    limits: &DeviceInfo,
) -> Option<TensorKernel> {
    let shaped = |block| shaped(step, format, planes, limits, Some(&[block])).ok();
    let are_few =
        |kernel: &TensorKernel| kernel.tiles(sizes.iter().copied()) < MANY * kernel.resident(limits);
    let tiles = kernel.tiles(sizes.iter().copied());
    if let Some(block) = kernel.narrow
        && 100 * tiles >= LEAST_FOR_NARROW * kernel.resident(limits)
        && are_few(kernel)
    {
        return shaped(block);
    }
    let mut low = None;
    for &block in &kernel.lower {
        let high = low.as_ref().unwrap_or(kernel);
        if !are_few(high) {
            break;
        }
        let Some(next) = shaped(block) else { continue };
        // Blocks of one tile each overlap the launch before.
        if high.fits_at_once(sizes, limits) && !next.fits_at_once(sizes, limits) {
            break;
        }
        low = Some(next);
    }
    let kernel = low.as_ref().unwrap_or(kernel);
    let rows_of_step = kernel.tile.1 / kernel.block.steps;
    match tile_that_fits(kernel, sizes, limits, 1, |steps| rows_of_step * steps) {
        Some(block) => shaped(block),
        None => low,
    }
}

/// The block whose tiles, of `rows(steps)` rows with at least `least` steps, are predicted to save
/// [`LEAST_GAIN`]; `None` if the kernel's own block is best.
pub(super) fn tile_that_fits(
    kernel: &TensorKernel,
    sizes: &[(usize, usize)],
    limits: &DeviceInfo,
    least: usize,
    rows: impl Fn(usize) -> usize,
) -> Option<Block> {
    // For large frames the number of rounds was measured not to matter.
    if !kernel.fits_at_once(sizes, limits) {
        return None;
    }
    let multiprocessors = limits.multiprocessors as usize;
    let warps = kernel.block.warps;
    let (tile_cost, alone) = match kernel.recipe.source {
        Source::TensorSeparable => (TILE_COST_SEPARABLE, ALONE_BUSY),
        Source::TensorDirect if !kernel.is_deinterleaved => (TILE_COST, ALONE),
        _ => (TILE_COST, ALONE_BUSY),
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
        // Blocks that do not fit at once begin when others have ended.
        let rounds = busiest.div_ceil(fit.max(1));
        rounds * (rows + kernel.halo + tile_cost) * (busiest.min(fit) * block.warps.0 * block.warps.1 + alone)
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
