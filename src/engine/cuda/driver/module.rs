//! Compiled kernels loaded on the card, with their constant memory.
//!
//! ```text
//! Image    machine code (CUBIN) or PTX, in memory
//!   | load
//! Module   on the card, with constant arrays of its own: one module for each step
//!   | by name
//! Function a kernel, which is launched; the module must outlive it
//! ```
#![allow(unsafe_code)]

use super::device::{Device, DeviceInfo, check};
use super::memory::{DeviceMemory, fill};
use crate::engine::EngineError;
use cudarc::driver::sys;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// A program for the driver: a CUBIN, which states its own length, or PTX that ends with a zero.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image(Vec<u8>);

impl Image {
    /// A CUBIN; `None` if it is empty.
    pub(crate) fn cubin(bytes: Vec<u8>) -> Option<Image> {
        (!bytes.is_empty()).then_some(Image(bytes))
    }

    /// PTX; `None` if the driver would read beyond its end.
    pub(crate) fn ptx(bytes: Vec<u8>) -> Option<Image> {
        (bytes.last() == Some(&0)).then_some(Image(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Machine code loaded on a card. Its constant memory is its own.
pub(crate) struct Module {
    device: Arc<Device>,
    handle: sys::CUmodule,
}

// SAFETY: a module may be used from any thread whose context is current; `Device::bind` sees to that.
unsafe impl Send for Module {}
// SAFETY: a module does not change once it is loaded, and the driver's calls may be made by several threads.
unsafe impl Sync for Module {}

/// A kernel of a module, which must outlive it.
#[derive(Clone, Copy)]
pub(crate) struct Function(pub(crate) sys::CUfunction);

// SAFETY: a kernel may be used from any thread whose context is current; `Device::bind` sees to that.
unsafe impl Send for Function {}
// SAFETY: a handle of a loaded kernel, which does not change, and the driver's calls may be made by several
// threads.
unsafe impl Sync for Function {}

impl Function {
    /// Opts in to more shared memory than a block has by default, if `shared` is more. The caller has checked
    /// that the card allows it.
    pub(crate) fn allow_shared(self, bytes: usize, limits: &DeviceInfo) -> Result<(), EngineError> {
        if bytes <= limits.shared_per_block as usize {
            return Ok(());
        }
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function belongs to a live module.
        check("asking for shared memory for a kernel's tile", unsafe {
            sys::cuFuncSetAttribute(self.0, attribute, bytes as i32)
        })
    }
}

impl Module {
    pub(crate) fn load(device: &Arc<Device>, image: &Image) -> Result<Module, EngineError> {
        device.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: an image states its own length or is ended by a zero; the driver copies what it needs.
        check("loading a kernel on the CUDA device", unsafe {
            sys::cuModuleLoadData(&raw mut handle, image.0.as_ptr().cast::<c_void>())
        })?;
        Ok(Module {
            device: Arc::clone(device),
            handle,
        })
    }

    pub(crate) fn function(&self, name: &CStr) -> Result<Function, EngineError> {
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is live, the name is ended by a zero.
        check("finding a kernel in its module", unsafe {
            sys::cuModuleGetFunction(&raw mut function, self.handle, name.as_ptr())
        })?;
        Ok(Function(function))
    }

    /// Fills the constant array `name`.
    pub(crate) fn set_constant<T: Copy>(&self, name: &CStr, values: &[T]) -> Result<(), EngineError> {
        let (mut pointer, mut len) = (0, 0_usize);
        // SAFETY: the module is live, the name is ended by a zero, the pointers are to live variables.
        check("finding the constant memory of a kernel", unsafe {
            sys::cuModuleGetGlobal_v2(&raw mut pointer, &raw mut len, self.handle, name.as_ptr())
        })?;
        let bytes = size_of_val(values);
        if bytes != len {
            return Err(EngineError::Device {
                doing: "filling the constant memory of a kernel".to_owned(),
                reason: format!("it holds {len} bytes, and the weights are {bytes}"),
            });
        }
        // SAFETY: the module is live in the context that is current, and the array has as many bytes as the
        // values.
        unsafe { fill("filling the constant memory of a kernel", pointer, values) }
    }

    /// Copies the weights to constant array `array`, or else to memory, which must outlive every launch.
    pub(crate) fn set_weights<T: Copy>(
        &self,
        constant: Option<&CStr>,
        values: &[T],
    ) -> Result<Option<DeviceMemory>, EngineError> {
        match constant {
            Some(name) => self.set_constant(name, values).map(|()| None),
            None => DeviceMemory::holding(&self.device, values).map(Some),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: loaded in `load`, unloaded only here; the engine waits for its streams before it drops
            // modules.
            let _ = unsafe { sys::cuModuleUnload(self.handle) };
        }
    }
}
