//! The launch plans of the frames that an engine meets: one for each format, colour facts and about a size.
//!
//! Compiling kernels takes long, so that plans are kept, and one that is announced (`Engine::expect`) is made
//! before its first frame comes. An error of such a plan is kept for that frame.

use super::options::CudaOptions;
use crate::engine::EngineError;
use crate::engine::cuda::compile::cache::Cache;
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::stream::Stream;
use crate::engine::cuda::kernels::variant::MemoryVariant;
use crate::engine::cuda::launch::Request;
use crate::engine::cuda::launch::chain::LaunchPlan;
use crate::engine::cuda::select::SelectContext;
use crate::engine::cuda::select::table::Table;
use crate::filter::Chain;
use crate::frame::{Colour, PixelFormat};
use std::cell::RefCell;
use std::sync::Arc;

/// Launch plans that are kept, for runs whose frames differ in format or colour facts.
const KEPT_PLANS: usize = 8;

/// What a plan depends on.
#[derive(PartialEq, Eq)]
pub(super) struct PlanKey {
    pub(super) format: PixelFormat,
    pub(super) colour: Colour,
    pub(super) memory: MemoryVariant,
    /// Where the table decides, the power of two of the frame's pixels: kernels are chosen for the first
    /// frame of about its size.
    pub(super) scale: u32,
}

/// A chain and its plans.
pub(super) struct Plans {
    pub(super) chain: Chain,
    cache: Cache,
    table: Table,
    /// The oldest first.
    kept: Vec<(PlanKey, Arc<LaunchPlan>)>,
    /// Why the plan for frames that were announced cannot be made.
    refused: Option<(PlanKey, EngineError)>,
    /// The kernels that were picked for the frame submitted last, if its plan is new.
    explanation: Vec<String>,
}

impl Plans {
    pub(super) fn new(chain: Chain, device: &Device) -> Result<Plans, EngineError> {
        let cache = Cache::of_user();
        Ok(Plans {
            chain,
            table: Table::for_card(device, &cache)?,
            cache,
            kept: Vec::new(),
            refused: None,
            explanation: Vec::new(),
        })
    }

    /// The plan for frames of this kind, its kernels loaded; `size` is that of the frame at hand. Plans are
    /// used on `compute`.
    pub(super) fn prepare(
        &mut self,
        key: PlanKey,
        size: (usize, usize),
        options: &CudaOptions,
        device: &Arc<Device>,
        compute: &Stream,
    ) -> Result<Arc<LaunchPlan>, EngineError> {
        if let Some((_, launch)) = self.kept.iter().find(|(k, _)| *k == key) {
            return Ok(Arc::clone(launch));
        }
        if let Some((_, error)) = self.refused.take_if(|(refused, _)| *refused == key) {
            return Err(error);
        }
        if self.kept.len() >= KEPT_PLANS {
            // Frames in flight may still be using it.
            compute.synchronise()?;
            self.kept.remove(0);
        }
        let request = Request {
            device,
            cache: &self.cache,
            context: SelectContext {
                memory: key.memory,
                block: options.block,
                fuse: options.fuse,
                size,
                card: &device.info,
                table: &self.table,
            },
            explanation: RefCell::default(),
        };
        let launch = LaunchPlan::new(&self.chain, key.format, &key.colour, &request);
        let explanation = request.explanation.into_inner();
        let launch = Arc::new(launch?);
        self.explanation = explanation;
        self.kept.push((key, Arc::clone(&launch)));
        Ok(launch)
    }

    /// Keeps the error of the plan for announced frames until such a frame is submitted; `None` if there is
    /// none.
    pub(super) fn refuse(&mut self, refused: Option<(PlanKey, EngineError)>) {
        self.refused = refused;
    }

    /// Takes the kernels that were picked for the frame submitted last, if its plan is new.
    pub(super) fn take_explanation(&mut self) -> Vec<String> {
        std::mem::take(&mut self.explanation)
    }
}
