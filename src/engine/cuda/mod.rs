//! The CUDA engine: a ring of slots, three streams, and the kernels in `kernels/`.
//!
//! A frame goes up on one stream, is filtered on a second and comes down on a third. Slot k uploads while k-1
//! is filtered and k-2 downloads. Within a frame, events order the three; between frames, each stream's own
//! order does. The host enqueues a little further than there are slots, so that the card never waits for the
//! host. A frame's upload waits, on the card, for the kernels of the slot's last frame, which read what it
//! overwrites, and its kernels for that frame's download.
//!
//! Folders import only those below them:
//!
//! ```text
//! engine      frames in, frames out, in order;            timing     what benchmarks time
//!             pictures of others filtered where they lie  decode     frames of the card's decoders
//!             RGB of frames made where they lie
//!
//! ring        several frames in flight at a time
//! launch      a plan with its kernels, enqueued
//! select      which kernel does a job
//! kernels     which kernels there are, and their shapes
//! compile     kernel texts become machine code
//! driver      what the CUDA driver hands out
//! ```

mod compile;
pub mod decode;
mod driver;
mod engine;
mod kernels;
mod launch;
mod ring;
mod select;
mod timing;

// What follows with `doc(hidden)` is for benchmarks and tests.
#[doc(hidden)]
pub use compile::{Compiled, Recipe, Source};
pub use driver::device::{
    DeviceInfo, Devices, available, card_of, devices, has_driver, keeping_context, nvrtc_version, probe,
};
#[doc(hidden)]
pub use driver::memory::Reservation;
pub use engine::Cuda;
pub use engine::resident::{CardFilter, CardMemory, CardPicture};
pub use engine::rgb::CardRgb;
#[doc(hidden)]
pub use engine::rgb::rgb_recipe;
pub use kernels::variant::{MemoryVariant, UnknownMemoryVariant};
#[doc(hidden)]
pub use select::crossover::{Crossover, RunEstimate, SourcedCrossover, Verdict};
#[doc(hidden)]
pub use select::features::LaunchFeatures;
#[doc(hidden)]
pub use select::table::{Origin, Table, TableCell, VariantTime};
#[doc(hidden)]
pub use select::{SelectContext, chain_recipes, contest, recipes};
#[doc(hidden)]
pub use timing::kernel_time::{ArithmeticRates, KernelCase, KernelEffort, KernelTimer, KernelTimes};
#[doc(hidden)]
pub use timing::link::{Duplex, duplex};

use super::EngineError;
use crate::filter::Plan;

/// Refuses a plan that holds a step for which there is no kernel: which one, and what to do.
pub fn check(plan: &Plan) -> Result<(), EngineError> {
    kernels::scalar::check(plan)
}

/// How transfers and kernels of different frames lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// Beside each other, on three streams with page-locked memory.
    #[default]
    Ring,
    /// One after another, with page-locked memory.
    SerialPinned,
    /// One after another, with ordinary memory, as a simple program does it.
    SerialPageable,
}

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
    /// Results stay on the card, in memory that the frames that come back hold: they are sent to the host
    /// when somebody asks for their bytes.
    pub keeps_results: bool,
    /// Of frames that the card's decoders made only some are timed. The driver lets in one call at a time, so
    /// that the clock's calls would hold the decoders up.
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
