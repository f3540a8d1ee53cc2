//! A tensor-core kernel with its weights on the card. Each loader of tiles has code of its own, which is
//! compiled when a launch first needs it.
#![allow(unsafe_code)]

use crate::engine::EngineError;
use crate::engine::cuda::compile::cache::Cache;
use crate::engine::cuda::driver::device::{Device, check};
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::engine::cuda::driver::module::{Function, Module};
use crate::engine::cuda::kernels::tensor::{Loader, TensorKernel};
use cudarc::driver::sys;
use std::sync::{Arc, OnceLock};

/// One launch on tensor cores.
pub(crate) struct TensorPass {
    pub(crate) kernel: TensorKernel,
    pub(crate) fragments: DeviceMemory,
    /// True if the card can begin a launch before earlier ones have ended.
    pub(crate) can_begin_early: bool,
    loaded: [OnceLock<TensorFunction>; Loader::ALL.len()],
    device: Arc<Device>,
    cache: Cache,
}

/// A loaded kernel.
pub(crate) struct TensorFunction {
    pub(crate) function: Function,
    /// Blocks that the card holds at a time.
    pub(crate) resident: usize,
    /// Held for the function.
    _module: Module,
}

impl TensorPass {
    pub(crate) fn new(
        kernel: TensorKernel,
        device: &Arc<Device>,
        cache: &Cache,
    ) -> Result<TensorPass, EngineError> {
        Ok(TensorPass {
            fragments: DeviceMemory::holding(device, &kernel.fragments)?,
            kernel,
            can_begin_early: device.begins_launches_early()?,
            loaded: Default::default(),
            device: Arc::clone(device),
            cache: cache.clone(),
        })
    }

    /// The fastest loader for `tiles` tiles of planes whose rows are all aligned to 16 bytes (`aligned`) or
    /// not.
    pub(crate) fn loader(&self, aligned: bool, tiles: usize) -> Loader {
        // If each block has one tile, the tile arrives sooner when all threads load it.
        let many = tiles > self.kernel.resident(&self.device.info);
        match (aligned, self.kernel.streamed) {
            (false, _) => Loader::CpAsyncUnaligned,
            (true, Some(_)) if many => Loader::Tma,
            (true, _) => Loader::CpAsyncAligned,
        }
    }

    /// The kernel with this loader.
    pub(crate) fn function(&self, loader: Loader) -> Result<&TensorFunction, EngineError> {
        let place = &self.loaded[loader as usize];
        if let Some(function) = place.get() {
            return Ok(function);
        }
        let function = self.load(loader)?;
        Ok(place.get_or_init(|| function))
    }

    fn load(&self, loader: Loader) -> Result<TensorFunction, EngineError> {
        let image = self.kernel.recipe_for(loader).image(&self.device, &self.cache)?;
        let module = Module::load(&self.device, &image)?;
        let function = module.function(loader.entry())?;
        function.allow_shared(self.kernel.shared, &self.device.info)?;
        let mut blocks = 0;
        // SAFETY: the function belongs to a live module and the pointer is to a live integer.
        check("asking how many blocks of a kernel fit the card", unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                function.0,
                self.kernel.threads as i32,
                self.kernel.shared,
            )
        })?;
        Ok(TensorFunction {
            function,
            resident: blocks.max(1) as usize * self.device.info.multiprocessors as usize,
            _module: module,
        })
    }
}
