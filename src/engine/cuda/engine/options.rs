//! What can be chosen about the CUDA engine, and the defaults.

use crate::engine::cuda::kernels::variant::MemoryVariant;
use crate::engine::cuda::ring::overlap::Overlap;

/// What can be chosen about the CUDA engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaOptions {
    /// The card's number.
    pub device: usize,
    /// Where kernels keep weights and pixels.
    pub memory: MemoryVariant,
    /// Threads of a block in x and y; `None` for the variant's own.
    pub block: Option<(u32, u32)>,
    /// Whether two filters of a chain share a launch where that is faster; the bits are the same.
    pub fuse: bool,
    /// Frames in flight at a time, at least 2; without overlap there is one.
    pub slots: usize,
    /// Whether transfers overlap kernels.
    pub overlap: Overlap,
    /// Input memory is write-combined: a little faster to upload, ruinous for a source that reads what it
    /// wrote (decoders do).
    pub write_combined: bool,
    /// Results stay on the card, in memory that the result frames hold. They are downloaded when their bytes
    /// are asked for.
    pub keeps_results: bool,
    /// Times only one in 16 of the frames that the card's decoders made: event calls take the driver's lock,
    /// which the decoders need.
    pub samples_times: bool,
}

impl Default for CudaOptions {
    fn default() -> Self {
        CudaOptions {
            device: 0,
            memory: MemoryVariant::Auto,
            block: None,
            fuse: true,
            slots: 3,
            overlap: Overlap::Ring,
            write_combined: false,
            keeps_results: false,
            samples_times: false,
        }
    }
}
