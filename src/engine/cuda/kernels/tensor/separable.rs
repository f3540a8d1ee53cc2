//! Separable masks on tensor cores: the shape of their kernel, tensor/separable.cu.
//!
//! Both passes are one launch, with the intermediate in registers (picture in docs/gpu-kernels.md). So
//! registers are what limits it: weights of both passes, groups of rows between them and pixels have to fit
//! those of a lane.

use super::fragments::{self, Mask, Passes};
use super::shape::{Between, Block, Shape, Unfit, bias, biases, same_bias};
use crate::engine::cuda::compile::Source;
use crate::engine::cuda::kernels::plane_group::Interleaving;
use crate::filter::{SeparableKernel, Step};
use crate::frame::PixelFormat;

/// The most registers of weights of one pass that a lane can hold with three blocks on a multiprocessor, if
/// the intermediate has two bytes.
const MOST_WEIGHTS: usize = 40;

/// The most registers of weights, intermediate and pixels that a lane can hold without spilling: with three
/// blocks on a multiprocessor if the intermediate has three bytes, and with two blocks.
const MOST_HELD_BY_THREE: usize = 64;
const MOST_HELD_BY_TWO: usize = 150;

/// The most K-slices of all bands of a row whose weights a lane can hold beside those of three groups of
/// rows, with three blocks on a multiprocessor.
const MOST_SLICES_BY_THREE: usize = 8;

/// True if a wide kernel's sums can be joined in 32 bits (SPLIT_SUM32): without their lowest 8 or 16 bits in
/// the row pass, with three or four bands, and 16 or 24 in the column pass, with weights of up to two bytes
/// or of three. The shifts have to drop these bits in any case. The column's sums then lie within 2^45, or
/// 2^52.
fn can_split_sum32(kernel: &SeparableKernel, step: &Step, row_bands: usize, column_bytes: usize) -> bool {
    let row = match row_bands {
        ..=2 => true,
        3 => kernel.row.shift >= 8,
        _ => kernel.row.shift >= 16,
    };
    let division = kernel.column.division;
    let (shifted, most_bias) = if column_bytes > 2 {
        (24, 1 << 53)
    } else {
        (16, 1 << 45)
    };
    let bias_fits = biases(step).all(|c| bias(&step.kernel, c).abs() < most_bias);
    let column = division.factor().is_none() && division.shift() >= shifted;
    kernel.wide && row && column && same_bias(step) && bias_fits
}

/// True if a lane needs more registers, for weights and for groups of rows between the passes, than it has
/// with three blocks on a multiprocessor.
fn fills_two_blocks(row: usize, column: usize, groups: usize) -> bool {
    row.max(column) > MOST_WEIGHTS || groups > 3
}

/// The block of a separable mask's kernel for large frames, and smaller ones for frames with few tiles. `row`
/// and `column` are the registers of each pass's weights.
fn separable_blocks(
    passes: Passes,
    (row, column): (usize, usize),
    sample_bytes: usize,
) -> Result<Vec<Block>, Unfit> {
    let Passes { slices, groups, .. } = passes;
    let band_slices = row / 2;
    let beside = |steps: usize, blocks: usize| Block::new((4, 1), steps, blocks);
    if passes.wide {
        // Three bytes of four values in each of four products, and a word of pixels of each K-slice.
        let held = row + column + 12 * groups + slices;
        let blocks = if held > MOST_HELD_BY_THREE { 2 } else { 3 };
        let steps = if groups > 2 { 8 } else { 4 };
        return if held > MOST_HELD_BY_TWO {
            Err(Unfit::Registers)
        } else {
            Ok(vec![beside(steps, blocks)])
        };
    }
    let fills_two = fills_two_blocks(row, column, groups);
    let held = row + column + 8 * groups + slices;
    if row.max(column) > MOST_WEIGHTS && held > MOST_HELD_BY_TWO {
        return Err(Unfit::Registers);
    }
    Ok(match groups {
        _ if fills_two => vec![beside(if groups > 2 { 8 } else { 4 }, 2)],
        ..=2 => {
            let low = beside(4, if band_slices <= 4 { 4 } else { 3 });
            // With samples of two bytes, high tiles would not leave shared memory for three blocks.
            if sample_bytes == 1 {
                vec![beside(8, 3), low]
            } else {
                vec![low]
            }
        }
        _ if band_slices > MOST_SLICES_BY_THREE => vec![beside(8, 2)],
        _ => vec![beside(8, 3)],
    })
}

/// The shape of a separable mask's kernel, in the first of these blocks or in the best one.
pub(super) fn separable(
    kernel: &SeparableKernel,
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    blocks: Option<&[Block]>,
) -> Result<Shape, Unfit> {
    let sample_bytes = format.bytes_per_sample();
    let row = Mask {
        weights: &kernel.row.weights,
        second: None,
        size: (kernel.row.weights.len(), 1),
        channels: planes.channels,
        sample_bytes,
    };
    let column = &kernel.column.weights;
    let start = row.reach().next_multiple_of(4);
    let slices = (start + 16 * sample_bytes + row.reach()).div_ceil(16);
    // Blocks of 8 rows under 16 results, and groups of 16 rows.
    let eights = (15 + column.len()).div_ceil(8);
    let groups = eights.div_ceil(2);
    let passes = Passes {
        start,
        slices,
        groups,
        wide: kernel.wide,
    };
    let (bands, column_bytes) = (row.bands(), fragments::weight_bytes(column));
    let (row_weights, column_weights) = (2 * bands * slices, 2 * column_bytes * groups);
    let best = separable_blocks(passes, (row_weights, column_weights), sample_bytes)?;
    let (&block, lower) = blocks.unwrap_or(&best).split_first().ok_or(Unfit::SharedMemory)?;
    let written_out = match block.steps {
        // Unrolled passes of wide sums would keep too many registers for later passes.
        _ if kernel.wide => 1,
        // The intermediate is moved from register to register, less often the more passes are unrolled.
        // Unrolled passes hold more registers.
        steps if fills_two_blocks(row_weights, column_weights, groups) => {
            let most = if row_weights + column_weights < MOST_WEIGHTS {
                4
            } else {
                2
            };
            if steps % most == 0 { most } else { steps }
        }
        // More code would not fit the card's instruction cache.
        8 if groups <= 2 && bands * slices > 6 => 4,
        steps => steps,
    };
    // The last pass can leave rows out only if it is unrolled, with code of its own.
    let rows_read = if written_out == block.steps {
        8 * eights
    } else {
        16 * groups
    };
    Ok(Shape {
        source: Source::TensorSeparable,
        own: vec![
            ("ROW_SLICES", slices as i64),
            ("COLUMN_GROUPS", groups as i64),
            ("COLUMN_BYTES", column_bytes as i64),
            (
                "SPLIT_SUM32",
                i64::from(can_split_sum32(kernel, step, bands, column_bytes)),
            ),
            ("UNROLL", written_out as i64),
        ],
        bands,
        parts: 1,
        warp: (32 * sample_bytes, 16 * block.steps),
        block,
        start,
        read: 16 * slices,
        rows_below: rows_read - 15 - column.len(),
        odd_chunks: true,
        fragments: fragments::separable(row, column, passes),
        between: Between::passes(&kernel.row),
        lower: lower.to_vec(),
        narrow: None,
    })
}
