//! Memory on the card, and page-locked memory of the host, which the card reads and writes directly.
//!
//! Only copies from and to page-locked memory run beside kernels. Memory is freed when it is dropped; that no
//! work on the card uses it any more is up to its owner, who waits for the stream. Blocks on the card are
//! zeroed, so that padding never shows what another program left there, unless it never leaves the card.
#![allow(unsafe_code)]

use super::device::{Device, check, explain};
use crate::engine::EngineError;
use crate::frame::{AllocationError, Allocator, Memory};
use cudarc::driver::sys;
use std::sync::Arc;

/// A block of the card's memory.
pub(crate) struct DeviceMemory {
    device: Arc<Device>,
    pointer: sys::CUdeviceptr,
    len: usize,
}

impl DeviceMemory {
    /// `len` bytes, zeroed, so that padding never shows what another program left there. `Ok(None)` if the
    /// card lacks the memory.
    pub(crate) fn try_new(device: &Arc<Device>, len: usize) -> Result<Option<DeviceMemory>, EngineError> {
        let Some(memory) = DeviceMemory::uncleared(device, len)? else {
            return Ok(None);
        };
        // SAFETY: the block was just allocated with at least `len` bytes. The synchronisation makes the
        // zeroes visible to all streams.
        unsafe {
            check(
                "clearing memory on the CUDA device",
                sys::cuMemsetD8_v2(memory.pointer, 0, len.max(1)),
            )?;
            check("clearing memory on the CUDA device", sys::cuCtxSynchronize())?;
        }
        Ok(Some(memory))
    }

    /// `len` uninitialised bytes, whose padding must never be sent to the host. `Ok(None)` if the card lacks
    /// the memory.
    pub(crate) fn uncleared(device: &Arc<Device>, len: usize) -> Result<Option<DeviceMemory>, EngineError> {
        device.bind()?;
        let mut pointer = 0;
        // SAFETY: the context is current and the pointer is to a live variable.
        let result = unsafe { sys::cuMemAlloc_v2(&raw mut pointer, len.max(1)) };
        if result == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Ok(None);
        }
        check("allocating memory on the CUDA device", result)?;
        Ok(Some(DeviceMemory {
            device: Arc::clone(device),
            pointer,
            len,
        }))
    }

    /// Copies the bytes from `from` on, an address in the block, to all of `to`, and waits for the copy.
    pub(crate) fn read(&self, from: sys::CUdeviceptr, to: &mut [u8]) -> Result<(), EngineError> {
        let rest = (self.pointer + self.len as u64).saturating_sub(from);
        assert!(
            from >= self.pointer && rest >= to.len() as u64,
            "within the block"
        );
        self.device.bind()?;
        // SAFETY: the context is current, and both blocks hold as many bytes, which was just checked. The
        // call waits for its copy.
        check("fetching a frame from the CUDA device", unsafe {
            sys::cuMemcpyDtoH_v2(to.as_mut_ptr().cast(), from, to.len())
        })
    }

    /// Copies `bytes` to the start of the block, and waits for the copy.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), EngineError> {
        let bytes = &bytes[..bytes.len().min(self.len)];
        self.device.bind()?;
        // SAFETY: the context is current, and the block holds as many bytes, which are this value's own.
        unsafe { fill("copying a picture to the CUDA device", self.pointer, bytes) }
    }

    /// A block that holds `values`.
    pub(crate) fn holding<T: Copy>(device: &Arc<Device>, values: &[T]) -> Result<DeviceMemory, EngineError> {
        let len = size_of_val(values);
        let memory = DeviceMemory::try_new(device, len)?.ok_or_else(|| EngineError::Device {
            doing: "allocating memory for the weights on the CUDA device".to_owned(),
            reason: "it has none left".to_owned(),
        })?;
        // SAFETY: the block was just allocated with as many bytes as the values have.
        unsafe { fill("copying the weights to the CUDA device", memory.pointer, values) }?;
        Ok(memory)
    }

    pub(crate) fn pointer(&self) -> sys::CUdeviceptr {
        self.pointer
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// True if it lies on that card.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        self.device.info.ordinal == device.info.ordinal
    }
}

/// Copies `values` to the card, and waits for the copy: one from ordinary memory may still be in flight when
/// its call returns. The engine's streams do not wait for it, and it must not outlive the memory.
///
/// # Safety
///
/// A context is current, and the caller owns as many bytes of its memory from `to` on as `values` has.
pub(super) unsafe fn fill<T: Copy>(
    doing: &str,
    to: sys::CUdeviceptr,
    values: &[T],
) -> Result<(), EngineError> {
    // SAFETY: `values` holds as many bytes as are copied, and by the contract of `fill` so does the
    // destination, in memory of the current context.
    check(doing, unsafe {
        sys::cuMemcpyHtoD_v2(to, values.as_ptr().cast(), size_of_val(values))
    })?;
    // SAFETY: a context is current by the contract of `fill`.
    check(doing, unsafe { sys::cuCtxSynchronize() })
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: allocated in `try_new` and freed only here; the engine waits for its streams before it
            // drops memory.
            let _ = unsafe { sys::cuMemFree_v2(self.pointer) };
        }
    }
}

/// Page-locked memory of the host.
pub(crate) struct PinnedMemory {
    device: Arc<Device>,
    pointer: *mut u8,
    len: usize,
}

// SAFETY: the block belongs to this value alone, as a Vec's does.
unsafe impl Send for PinnedMemory {}
// SAFETY: shared access only reads.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// `len` bytes, zeroed. Write-combined memory is uploaded a little faster, but reading it is very slow.
    pub(crate) fn new(
        device: &Arc<Device>,
        len: usize,
        write_combined: bool,
    ) -> Result<PinnedMemory, AllocationError> {
        let failed = |reason: String| AllocationError {
            len,
            kind: "pinned",
            reason,
        };
        device.bind().map_err(|e| failed(e.to_string()))?;
        let flags = if write_combined {
            sys::CU_MEMHOSTALLOC_WRITECOMBINED
        } else {
            0
        };
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the context is current and the pointer is to a live variable.
        let result = unsafe { sys::cuMemHostAlloc(&raw mut pointer, len.max(1), flags) };
        if result != sys::CUresult::CUDA_SUCCESS {
            return Err(failed(explain(result)));
        }
        // SAFETY: the block was just allocated with at least `len` bytes.
        unsafe { pointer.cast::<u8>().write_bytes(0, len) };
        Ok(PinnedMemory {
            device: Arc::clone(device),
            pointer: pointer.cast(),
            len,
        })
    }
}

impl Memory for PinnedMemory {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the block holds `len` initialised bytes and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the block holds `len` initialised bytes, lives as long as `self`, and `self` is borrowed
        // exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.len) }
    }

    fn is_pinned(&self) -> bool {
        true
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: allocated in `new` and freed only here; frames in flight are held by the engine until
            // their copies are done.
            let _ = unsafe { sys::cuMemFreeHost(self.pointer.cast()) };
        }
    }
}

/// The allocator of page-locked memory.
pub(crate) struct Pinned {
    pub(crate) device: Arc<Device>,
    /// Only for memory that is written by the host and never read back.
    pub(crate) write_combined: bool,
}

impl Allocator for Pinned {
    fn allocate(&self, len: usize) -> Result<Box<dyn Memory>, AllocationError> {
        Ok(Box::new(PinnedMemory::new(
            &self.device,
            len,
            self.write_combined,
        )?))
    }
}

/// Memory of a card that is held, to test what happens when memory is short.
pub struct Reservation {
    _blocks: Vec<DeviceMemory>,
}

impl Reservation {
    /// Takes memory of card `device` until about `free` bytes are left.
    pub fn leaving(device: usize, free: u64) -> Result<Reservation, EngineError> {
        const SMALLEST: u64 = 2 << 20;
        let device = Device::open(device)?;
        let mut blocks = Vec::new();
        let mut part = device.memory()?.0.saturating_sub(free);
        while part >= SMALLEST {
            match DeviceMemory::try_new(&device, part as usize)? {
                Some(block) => {
                    blocks.push(block);
                    part = device.memory()?.0.saturating_sub(free);
                }
                None => part /= 2,
            }
        }
        Ok(Reservation { _blocks: blocks })
    }
}

/// The description of a copy with all fields zero, to be completed.
pub(crate) fn no_copy() -> sys::CUDA_MEMCPY2D {
    sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_HOST,
        srcHost: std::ptr::null(),
        srcDevice: 0,
        srcArray: std::ptr::null_mut(),
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_HOST,
        dstHost: std::ptr::null_mut(),
        dstDevice: 0,
        dstArray: std::ptr::null_mut(),
        dstPitch: 0,
        WidthInBytes: 0,
        Height: 0,
    }
}
