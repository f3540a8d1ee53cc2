//! What all tensor-core kernels share: blocks and tiles, their layout in shared memory, and compile-time
//! parameters.
//!
//! ```text
//! block   warps across x down, steps of each warp, blocks of a multiprocessor
//!   | times what a warp makes in a step
//! tile    bytes across x rows of results; with its halo it lies in shared memory: two of them, so that one
//!         arrives while the other is computed, or one and its deinterleaved parts
//! ```

use crate::engine::cuda::compile::{Recipe, Source};
use crate::engine::cuda::driver::device::DeviceInfo;
use crate::engine::cuda::driver::pictures::tensor_map::TileSize;
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
    /// Weights of more than three bytes, or of more than two where sums are combined.
    #[error("the mask's weights have too many bytes")]
    Weights,
    /// A bias that 32-bit sums cannot hold beside the pixels.
    #[error("the bias is too large for 32-bit sums")]
    Bias,
    /// The tile with its halo is larger than a block's shared memory.
    #[error("the tile and its halo do not fit in shared memory")]
    SharedMemory,
    /// More than two masks that are no compass, a Gaussian that fits no mask, or colour under alpha.
    #[error("tensor cores compute one or two masks, or the eight rotations of one compass mask")]
    Response,
    /// The user chose the threads of a block.
    #[error("--block was given")]
    Block,
}

/// How tiles come to shared memory. Each loader is a program of its own: LOADER in tensor/tile/geometry.cuh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loader {
    /// In 16-byte chunks by cp.async, of rows that are aligned to 16 bytes.
    CpAsyncAligned,
    /// In 16-byte chunks by cp.async, of unaligned rows.
    CpAsyncUnaligned,
    /// As a whole by TMA, of rows that are aligned to 16 bytes.
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
    /// The recipe without LOADER; `recipe_for` adds it.
    pub(super) recipe: Recipe,
    /// Bytes across and rows of a tile.
    pub(crate) tile: (usize, usize),
    pub(crate) threads: u32,
    /// Bytes of shared memory: two tiles with their halos, or one and its deinterleaved parts; with two masks
    /// also the middle.
    pub(crate) shared: usize,
    pub(crate) fragments: Vec<u32>,
    /// The tile that [`Loader::Tma`] copies; `None` if the card has no TMA or the tile is too large for it.
    pub(crate) streamed: Option<TileSize>,
    /// The division of a separable mask's row pass, or of the first of two masks.
    pub(crate) between: Between,
    /// True if it deinterleaves a tile before the products.
    pub(super) is_deinterleaved: bool,
    /// The work of a block at a time.
    pub(super) block: Block,
    /// Smaller blocks for frames with few tiles, largest first.
    pub(super) lower: Vec<Block>,
    /// A narrower block for frames with somewhat more tiles than the card holds at a time.
    pub(super) narrow: Option<Block>,
    /// Rows that are loaded of a tile besides its own.
    pub(super) halo: usize,
}

impl TensorKernel {
    /// The kernel source.
    pub(crate) fn source(&self) -> Source {
        self.recipe.source
    }

    /// The recipe with this loader.
    pub(crate) fn recipe_for(&self, loader: Loader) -> Recipe {
        let mut recipe = self.recipe.clone();
        recipe.parameters.push(("LOADER", loader as i64));
        recipe
    }

    /// The recipes with each loader that the card has.
    pub(crate) fn recipes(&self) -> impl Iterator<Item = Recipe> {
        let can = |loader: &Loader| *loader != Loader::Tma || self.streamed.is_some();
        Loader::ALL
            .into_iter()
            .filter(can)
            .map(|loader| self.recipe_for(loader))
    }

    /// Blocks that the card holds at a time, by the number that the kernel is compiled for.
    pub(crate) fn resident(&self, limits: &DeviceInfo) -> usize {
        self.block.blocks * limits.multiprocessors as usize
    }

    /// True if the card holds a block for each tile of planes of `sizes` (bytes per row, rows) at a time.
    pub(super) fn fits_at_once(&self, sizes: &[(usize, usize)], limits: &DeviceInfo) -> bool {
        self.tiles(sizes.iter().copied()) <= self.resident(limits)
    }

    /// Tiles of planes of `sizes` (bytes per row, rows).
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
    /// The parameter STEPS: K-slices, or groups of 16 rows, that a warp works on below each other.
    pub(crate) steps: usize,
    /// The parameter BLOCKS: blocks for which a multiprocessor shall have registers.
    pub(crate) blocks: usize,
}

impl Block {
    pub(super) const fn new(warps: (usize, usize), steps: usize, blocks: usize) -> Block {
        Block { warps, steps, blocks }
    }
}

/// The division of sums within a launch, of a separable mask's row pass or of the first of two masks:
/// `(sum + start) >> shift`, or with a factor as in [`Division`].
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

/// True if all convolved components of each plane have the same bias.
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
    /// Bytes before a result at which its first K-slice begins, and bytes that one lane reads from there on.
    pub(super) start: usize,
    pub(super) read: usize,
    /// Rows that are read below the mask's last.
    pub(super) rows_below: usize,
    /// True if the pitch has to be an odd number of 16-byte chunks, so that lanes that read words of eight
    /// rows at once have no bank conflicts.
    pub(super) odd_chunks: bool,
    pub(super) fragments: Vec<u32>,
    pub(super) between: Between,
    /// Smaller blocks for frames with few tiles, largest first.
    pub(super) lower: Vec<Block>,
    /// A narrower block for frames with somewhat more tiles than the card holds at a time.
    pub(super) narrow: Option<Block>,
}

/// Sizes of the whole kernel, which differ from those of one pass where two masks are fused.
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

/// A tile with its halo in shared memory, as tensor/tile/geometry.cuh lays it out.
struct Stage {
    /// Bytes of a row before its first result.
    left: usize,
    rows: usize,
    /// 16-byte chunks that are loaded of a row, and bytes from row to row: of unaligned rows, and of aligned
    /// ones.
    chunks: usize,
    pitch: usize,
    aligned_chunks: usize,
    aligned_pitch: usize,
    /// Bytes of a stage, with room for reads beyond its last row.
    bytes: usize,
    /// Bytes of a part of a deinterleaved tile, and from row to row of it.
    part: usize,
    part_pitch: usize,
}

impl Shape {
    /// Bytes across and rows that a block computes.
    fn computed(&self) -> (usize, usize) {
        (self.warp.0 * self.block.warps.0, self.warp.1 * self.block.warps.1)
    }

    fn warps(&self) -> usize {
        self.block.warps.0 * self.block.warps.1
    }

    fn is_deinterleaved(&self) -> bool {
        self.parts > 1
    }

    /// The stage for tiles of `extent` with pixels of `pixel_bytes` bytes.
    fn stage(&self, extent: &Extent, pixel_bytes: usize) -> Stage {
        let ((width, height), tile) = (extent.mask, extent.tile);
        let reach = width / 2 * pixel_bytes;
        let left = self.start.next_multiple_of(16);
        let odd = |chunks: usize| chunks | usize::from(self.odd_chunks);
        // Rows of memory may begin up to 15 bytes after a multiple of 16.
        let chunks = (left + tile.0 + reach + 15).div_ceil(16);
        let aligned_chunks = (left + tile.0 + reach).div_ceil(16);
        // Unaligned rows end with a word that holds their misalignment.
        let pitch = 16 * odd((16 * chunks.max(aligned_chunks + 1) + 4).div_ceil(16));
        // Reads go on beyond the last row, for the K-slices and for whole words.
        let read_to = left - self.start + self.computed().0 + self.read + 24;
        let rows = tile.1 + height - 1;
        let bytes = (pitch * (rows + self.rows_below - 1) + pitch.max(read_to)).next_multiple_of(128);
        // A part has the rows, as far as the tile's K-slices reach.
        let part_pitch = (tile.0 + self.read) / self.parts;
        Stage {
            left,
            rows,
            chunks,
            pitch,
            aligned_chunks,
            aligned_pitch: 16 * odd(aligned_chunks),
            bytes,
            part: if self.is_deinterleaved() {
                rows * part_pitch
            } else {
                0
            },
            part_pitch,
        }
    }

    /// The parameters that all families have.
    fn parameters(
        &self,
        extent: &Extent,
        stage: &Stage,
        (step, format, planes): (&Step, PixelFormat, Interleaving),
    ) -> Vec<(&'static str, i64)> {
        vec![
            ("SAMPLE_BYTES", format.bytes_per_sample() as i64),
            ("SAMPLE_SHIFT", i64::from(format.shift())),
            ("WIDE", i64::from(is_wide(step, format))),
            ("DIVIDES", i64::from(extent.divides)),
            ("CHANNELS", planes.channels as i64),
            ("CONVOLVED", i64::from(planes.convolved)),
            ("BORDER", border_number(step.border)),
            ("MASK_W", extent.mask.0 as i64),
            ("MASK_H", extent.mask.1 as i64),
            ("SAME_BIAS", i64::from(same_bias(step))),
            ("BANDS", self.bands as i64),
            ("TILE_W", extent.tile.0 as i64),
            ("TILE_H", extent.tile.1 as i64),
            ("PITCH", stage.pitch as i64),
            ("ALIGNED_PITCH", stage.aligned_pitch as i64),
            ("STAGE", stage.bytes as i64),
            ("ROWS", stage.rows as i64),
            ("LEFT", stage.left as i64),
            ("CHUNKS", stage.chunks as i64),
            ("ALIGNED_CHUNKS", stage.aligned_chunks as i64),
            ("START", (stage.left - self.start) as i64),
            ("WARPS_X", self.block.warps.0 as i64),
            ("WARPS", self.warps() as i64),
            ("BLOCKS", self.block.blocks as i64),
            ("STEPS", self.block.steps as i64),
            ("DEINTERLEAVE", i64::from(self.is_deinterleaved())),
            ("PART", stage.part as i64),
            ("PART_PITCH", stage.part_pitch as i64),
        ]
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
        let stage = self.stage(extent, planes.channels * format.bytes_per_sample());
        let shared = match self.is_deinterleaved() {
            true => stage.bytes + self.parts * stage.part,
            false => 2 * stage.bytes + extent.beside,
        };
        if shared + 1024 > limits.shared_per_block_optin as usize {
            return Err(Unfit::SharedMemory);
        }
        let whole = TileSize {
            bytes: stage.aligned_pitch,
            rows: stage.rows,
        };
        let mut parameters = self.parameters(extent, &stage, (step, format, planes));
        let (threads, is_deinterleaved) = (32 * self.warps() as u32, self.is_deinterleaved());
        parameters.extend(self.own);
        Ok(TensorKernel {
            recipe: Recipe {
                source: self.source,
                parameters,
            },
            tile: extent.tile,
            threads,
            shared,
            fragments: self.fragments,
            streamed: (limits.compute_capability >= WHOLE_TILES && whole.fits()).then_some(whole),
            between: self.between,
            is_deinterleaved,
            block: self.block,
            lower: self.lower,
            narrow: self.narrow,
            halo: extent.mask.1 - 1 + self.rows_below,
        })
    }
}
