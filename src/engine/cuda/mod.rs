//! The CUDA engine: a ring of slots, three streams, and the kernels in `kernels/`.
//!
//! A frame is uploaded on one stream, filtered on a second and downloaded on a third. Slot k uploads while
//! k-1 is filtered and k-2 downloads. Within a frame, events order the three; between frames, each stream's
//! own order does. The host enqueues a few more frames than there are slots, so that the card never waits for
//! the host. On the card, a frame's upload waits for the kernels of the slot's last frame, which read what it
//! overwrites, and its kernels wait for that frame's download.
//!
//! Folders import only those below them:
//!
//! ```text
//! engine      frames in, frames out, in order;            timing     what benchmarks time
//!             filters other libraries' pictures in place  codec      frames of the card's decoders,
//!             converts frames on the card to RGB                     results for the card's encoders
//!
//! ring        several frames in flight at a time
//! launch      a plan with its kernels, enqueued
//! select      which kernel does a job
//! kernels     which kernels there are, and their shapes
//! compile     compiles kernel texts to machine code
//! driver      handles of the CUDA driver
//! ```

mod codec;
mod compile;
mod driver;
mod engine;
mod kernels;
mod launch;
mod ring;
mod select;
mod timing;

pub use codec::{decode, encode};

// What follows with `doc(hidden)` is for benchmarks and tests.
#[doc(hidden)]
pub use compile::{Compiled, Recipe, Source};
pub use driver::device::{
    DeviceInfo, Devices, available, card_of, devices, has_driver, keeping_context, nvrtc_version, present,
    probe,
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

/// An error if the plan has a step for which there is no kernel. It says which one, and what to do.
pub fn check(plan: &Plan) -> Result<(), EngineError> {
    kernels::scalar::check(plan)
}

/// Whether transfers of one frame overlap kernels of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// They overlap, on three streams with page-locked memory.
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
