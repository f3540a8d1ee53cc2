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
//! engine      frames in, frames out, in order; frames of the card's decoders, results for its encoders;
//!             pictures of other libraries in place; RGB
//! timing      what benchmarks time; the engine does not know it
//! ring        several frames in flight at a time
//! launch      a plan with its kernels, enqueued
//! select      which kernel does a job
//! kernels     which kernels there are, and their shapes
//! compile     compiles kernel texts to machine code
//! driver      handles of the CUDA driver
//! ```

mod compile;
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
    DeviceInfo, Devices, available, card_of, devices, has_driver, keeping_context, nvrtc_version, present,
    probe,
};
#[doc(hidden)]
pub use driver::memory::Reservation;
pub use engine::Cuda;
pub use engine::codec::{decode, encode};
pub use engine::options::CudaOptions;
pub use engine::resident::{CardFilter, CardMemory, CardPicture};
pub use engine::rgb::CardRgb;
#[doc(hidden)]
pub use engine::rgb::rgb_recipe;
pub use kernels::variant::{MemoryVariant, UnknownMemoryVariant};
pub use ring::overlap::Overlap;
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
