//! What all tensor-core kernels share: blocks and tiles, their layout in shared memory, and compile-time
//! parameters.

use crate::engine::cuda::compile::{Recipe, Source};
use crate::engine::cuda::driver::device::DeviceInfo;
use crate::engine::cuda::driver::tensor_map::TileSize;
use crate::engine::cuda::kernels::plane_group::{Interleaving, border_number, divides, division, is_wide};
use crate::filter::{ChannelStep, Convolve, Division, Kernel, Pass, Step};
use crate::frame::PixelFormat;
use std::ffi::CStr;

/// Why tensor cores cannot do a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// The card is too old.
    #[error("the card's compute capability is below 8.0")]
    Card,
    /// The weights of a separable mask do not fit the registers.
    #[error("the mask's weights need too many registers")]
    Registers,
    /// Weights of more than three bytes, or of more than two where numbers are made of sums.
    #[error("the mask's weights have too many bytes")]
    Weights,
    /// A bias that 32-bit sums cannot hold beside the pixels.
    #[error("the bias is too large for 32-bit sums")]
    Bias,
    /// The tile with its halo is larger than a block's shared memory.
    #[error("the tile and its halo do not fit in shared memory")]
    SharedMemory,
    /// A number of more sums than two that are no compass's, or of a smaller picture.
    #[error("tensor cores make the sums of two masks at most, and of more where they are one that is turned")]
    Response,
    /// The user chose the threads of a block.
    #[error("--block was given")]
    Block,
}

/// How tiles come to shared memory. Each loader is a program of its own: LOADER in tensor/tile/geometry.cuh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loader {
    /// In chunks of 16 bytes, of rows that begin at multiples of them.
    CpAsyncAligned,
    /// In such chunks, of rows that begin anywhere.
    CpAsyncUnaligned,
    /// As a whole, by one instruction, of rows that begin at multiples of 16 bytes.
    Tma,
}

impl Loader {
    pub(crate) const ALL: [Loader; 3] = [Loader::CpAsyncAligned, Loader::CpAsyncUnaligned, Loader::Tma];

    /// The kernel's name.
    pub(crate) fn entry(self) -> &'static CStr {
        match self {
            Loader::CpAsyncAligned => c"aligned",
            Loader::CpAsyncUnaligned => c"unaligned",
            Loader::Tma => c"streamed",
        }
    }
}

/// A kernel for the tensor cores, and how it is launched.
#[derive(Debug, Clone)]
pub(crate) struct TensorKernel {
    /// Of all loaders, but for which one it is.
    pub(super) recipe: Recipe,
    /// Bytes across and rows of a tile.
    pub(crate) tile: (usize, usize),
    pub(crate) threads: u32,
    /// Bytes of shared memory: two tiles with their halos, or one and its components deinterleaved; for two
    /// masks what is between them besides.
    pub(crate) shared: usize,
    pub(crate) fragments: Vec<u32>,
    /// What [`Loader::Tma`] copies as a whole; `None` if the card cannot do that.
    pub(crate) streamed: Option<TileSize>,
    /// What becomes of the sums of a separable mask's row pass, or of the first of two masks.
    pub(crate) between: Between,
    /// True if it deinterleaves a tile before the products.
    pub(super) is_deinterleaved: bool,
    /// The work of a block at a time.
    pub(super) block: Block,
    /// The same where a frame has few tiles of these, from the larger ones down.
    pub(super) lower: Vec<Block>,
    /// Rows that are loaded of a tile besides its own.
    pub(super) halo: usize,
}

impl TensorKernel {
    /// The text.
    pub(crate) fn source(&self) -> Source {
        self.recipe.source
    }

    /// The program with this loader.
    pub(crate) fn recipe_for(&self, loader: Loader) -> Recipe {
        let mut recipe = self.recipe.clone();
        recipe.parameters.push(("LOADER", loader as i64));
        recipe
    }

    /// The programs with each loader that the card has.
    pub(crate) fn recipes(&self) -> impl Iterator<Item = Recipe> {
        let can = |loader: &Loader| *loader != Loader::Tma || self.streamed.is_some();
        Loader::ALL
            .into_iter()
            .filter(can)
            .map(|loader| self.recipe_for(loader))
    }

    /// Blocks that such a card holds at a time, which the kernel is compiled for.
    pub(crate) fn resident(&self, limits: &DeviceInfo) -> usize {
        self.block.blocks * limits.multiprocessors as usize
    }

    /// True if the card holds a block for each tile of planes of so many bytes across and so many rows.
    pub(super) fn fits_at_once(&self, sizes: &[(usize, usize)], limits: &DeviceInfo) -> bool {
        self.tiles(sizes.iter().copied()) <= self.resident(limits)
    }

    /// Tiles of planes of so many bytes across and so many rows.
    pub(crate) fn tiles(&self, sizes: impl IntoIterator<Item = (usize, usize)>) -> usize {
        let of_plane =
            |(across, down): (usize, usize)| across.div_ceil(self.tile.0) * down.div_ceil(self.tile.1);
        sizes.into_iter().map(of_plane).sum()
    }
}

/// The first compute capability whose cards have TMA.
pub(super) const WHOLE_TILES: (u32, u32) = (9, 0);

/// How much a block does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// Warps beside and below each other.
    pub(crate) warps: (usize, usize),
    /// The parameter STEPS: what a warp works on one below the other.
    pub(crate) steps: usize,
    /// Blocks on a multiprocessor that the compiler keeps registers for.
    pub(crate) blocks: usize,
}

impl Block {
    pub(super) const fn new(warps: (usize, usize), steps: usize, blocks: usize) -> Block {
        Block { warps, steps, blocks }
    }
}

/// What becomes of sums that a launch goes on with, of a separable mask's row pass or of the first of two
/// masks: `(sum + start) >> shift`, or with a factor as [`Division`] has it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Between {
    pub(crate) start: i32,
    pub(crate) shift: u32,
    pub(crate) factor: Option<u32>,
}

impl Between {
    pub(super) fn passes(row: &Pass) -> Between {
        Between {
            start: row.start() as i32,
            shift: row.shift,
            factor: None,
        }
    }

    pub(super) fn masks(first: Division) -> Between {
        Between {
            start: 0,
            shift: first.shift(),
            factor: first.factor(),
        }
    }
}

pub(super) fn biases(step: &Step) -> impl Iterator<Item = &Convolve> {
    step.planes.iter().flatten().filter_map(ChannelStep::convolved)
}

/// The whole bias of a component as one number that is added to its sum, `low + high * divisor`; `None` if
/// 32-bit sums cannot hold it beside the pixels' 2^30.
pub(super) fn folded_bias(kernel: &Kernel, c: &Convolve) -> Option<i64> {
    let bias = bias(kernel, c);
    (bias.abs() < 1 << 30).then_some(bias)
}

/// The whole bias of a component: what is added to its sum before it is divided.
pub(crate) fn bias(kernel: &Kernel, c: &Convolve) -> i64 {
    c.low
        .saturating_add(c.high.saturating_mul(division(kernel).divisor()))
}

/// True if all convolved components of each plane add the same.
pub(super) fn same_bias(step: &Step) -> bool {
    step.planes.iter().all(|channels| {
        let convolved = channels.iter().filter_map(ChannelStep::convolved);
        let mut biases = convolved.map(|c| (c.low, c.high, c.level));
        let first = biases.next();
        biases.all(|bias| Some(bias) == first)
    })
}

/// A family's part of a kernel's shape.
pub(super) struct Shape {
    pub(super) source: Source,
    pub(super) own: Vec<(&'static str, i64)>,
    pub(super) bands: usize,
    /// Planar rows that a tile's row is deinterleaved into in shared memory; 1 if it is not.
    pub(super) parts: usize,
    /// Bytes across and rows that one warp computes.
    pub(super) warp: (usize, usize),
    pub(super) block: Block,
    /// Bytes of a row before a result's first byte at which its K-slice begins, and bytes that are read from
    /// there on for one lane.
    pub(super) start: usize,
    pub(super) read: usize,
    /// Rows that are read below the mask's last.
    pub(super) rows_below: usize,
    /// True if rows have to be an odd number of 16-byte chunks apart, so that lanes which read a word of
    /// eight rows at once have no bank conflicts.
    pub(super) odd_chunks: bool,
    pub(super) fragments: Vec<u32>,
    pub(super) between: Between,
    /// The blocks where a frame has few tiles of this one's, from the larger ones down.
    pub(super) lower: Vec<Block>,
}

/// What a kernel computes.
pub(super) struct Extent {
    /// Columns and rows of its mask.
    pub(super) mask: (usize, usize),
    /// Bytes across and rows of a tile.
    pub(super) tile: (usize, usize),
    /// Bytes of shared memory besides the tiles'.
    pub(super) beside: usize,
    /// True if a multiplication divides the last sums.
    pub(super) divides: bool,
}

impl Shape {
    /// Bytes across and rows that a block computes.
    fn computed(&self) -> (usize, usize) {
        (self.warp.0 * self.block.warps.0, self.warp.1 * self.block.warps.1)
    }

    pub(super) fn finish(
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
            divides: divides(step),
        };
        self.finish_as(&extent, step, format, planes, limits)
    }

    pub(super) fn finish_as(
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
        let odd = |chunks: usize| chunks | usize::from(self.odd_chunks);
        // Rows of memory may begin up to 15 bytes after a multiple of 16.
        let chunks = (left + tile.0 + reach + 15).div_ceil(16);
        let aligned_chunks = (left + tile.0 + reach).div_ceil(16);
        let aligned_pitch = 16 * odd(aligned_chunks);
        // The word at the end of rows that begin anywhere says where.
        let pitch = 16 * odd((16 * chunks.max(aligned_chunks + 1) + 4).div_ceil(16));
        // What is read beyond a row is the next one's: for the K-slices, and for the words that hold the last
        // byte.
        let read_to = left - self.start + self.computed().0 + self.read + 24;
        let rows = tile.1 + height - 1;
        let stage = (pitch * (rows + self.rows_below - 1) + pitch.max(read_to)).next_multiple_of(128);
        // A part's rows, of what the tile's K-slices cover.
        let (part_pitch, is_deinterleaved) = ((tile.0 + self.read) / self.parts, self.parts > 1);
        let part = if is_deinterleaved { rows * part_pitch } else { 0 };
        let shared = if is_deinterleaved {
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
        let warps = self.block.warps.0 * self.block.warps.1;
        let mut parameters = vec![
            ("SAMPLE_BYTES", sample_bytes as i64),
            ("SAMPLE_SHIFT", i64::from(format.shift())),
            ("WIDE", i64::from(is_wide(step, format))),
            ("DIVIDES", i64::from(extent.divides)),
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
            ("DEINTERLEAVE", i64::from(is_deinterleaved)),
            ("PART", part as i64),
            ("PART_PITCH", part_pitch as i64),
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
            between: self.between,
            is_deinterleaved,
            block: self.block,
            lower: self.lower,
            halo: height - 1 + self.rows_below,
        })
    }
}
