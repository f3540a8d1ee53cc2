//! The driver, NVRTC and the card: whether they are there, their facts, and the context in which everything
//! else lives.
//!
//! Both libraries are loaded at run time, so that the program starts where there is none. A card's primary
//! context is shared with other libraries of the process; what is made in it holds its [`Device`].
#![allow(unsafe_code)]

use crate::engine::EngineError;
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::nvrtc::sys as nvrtc;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What `framepipe devices` prints of one card, and the limits that launches are checked against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number, for `--device`.
    pub ordinal: usize,
    /// The maker's name for it.
    pub name: String,
    /// Major and minor compute capability.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of memory.
    pub memory_total: u64,
    /// Bytes of it that were free when asked.
    pub memory_free: u64,
    /// Copies that can run beside kernels: 2 allow both directions at once.
    pub copy_engines: u32,
    /// Bytes of the level-2 cache.
    pub l2_bytes: u64,
    /// Bytes of shared memory that a block has by default.
    pub shared_per_block: u32,
    /// Bytes of shared memory that a block may opt in to.
    pub shared_per_block_optin: u32,
    /// Bytes of shared memory of one multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// 32-bit registers that a block may use.
    pub registers_per_block: u32,
    /// Threads of a block, at most.
    pub max_threads_per_block: u32,
    /// Threads of a block in x and y, at most.
    pub max_block: (u32, u32),
    /// Texels across and rows of a texture over linear memory, at most, and bytes from one row to the next.
    pub max_texture: (usize, usize, usize),
}

/// The driver, NVRTC and every card.
#[derive(Debug, Clone)]
pub struct Devices {
    /// The newest CUDA version that the driver supports, major and minor.
    pub driver: (u32, u32),
    /// NVRTC's version, or why there is none.
    pub nvrtc: Result<(u32, u32), String>,
    /// The cards, by number.
    pub cards: Vec<DeviceInfo>,
}

const NO_DRIVER: &str =
    "there is no NVIDIA driver: libcuda.so.1 cannot be loaded; install the driver, or use the CPU";
const NO_NVRTC: &str = "NVRTC, CUDA's run-time compiler, is missing: libnvrtc.so cannot be loaded (version \
    13 or 12); install CUDA's NVRTC library where the loader finds it (or name its folder in \
    LD_LIBRARY_PATH), or use --engine cpu";

/// Looks for driver, NVRTC and a card, without opening one, which would take a good part of a second. The
/// error says which of them is missing and what to do.
pub fn available() -> Result<(), EngineError> {
    let count = initialise()?;
    nvrtc_version()?;
    if count == 0 { Err(no_card()) } else { Ok(()) }
}

/// The same without NVRTC, which decoders do not need.
pub fn present() -> Result<(), EngineError> {
    if initialise()? == 0 {
        Err(no_card())
    } else {
        Ok(())
    }
}

/// [`available`], and the first card's facts.
pub fn probe() -> Result<DeviceInfo, EngineError> {
    available()?;
    Ok(Device::open(0)?.info.clone())
}

/// The driver, NVRTC and every card. It is an error if there is no driver; a missing NVRTC and missing cards
/// are named in the result.
pub fn devices() -> Result<Devices, EngineError> {
    let count = initialise()?;
    let cards = (0..count).map(|ordinal| Ok(Device::open(ordinal)?.info.clone()));
    Ok(Devices {
        driver: driver_version()?,
        nvrtc: nvrtc_version().map_err(|e| e.to_string()),
        cards: cards.collect::<Result<_, EngineError>>()?,
    })
}

fn no_card() -> EngineError {
    EngineError::Unavailable(
        "the NVIDIA driver finds no CUDA device (look at nvidia-smi and CUDA_VISIBLE_DEVICES); use --engine \
         cpu without one"
            .to_owned(),
    )
}

/// True if there is a driver's library. It is not initialised, since that takes time.
pub fn has_driver() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: loads the driver's library as any program does that links to it.
    *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

/// Initialises the driver and counts the cards. Never panics: it looks for the libraries before it calls
/// them.
fn initialise() -> Result<usize, EngineError> {
    if !has_driver() {
        return Err(EngineError::Unavailable(NO_DRIVER.to_owned()));
    }
    // SAFETY: the library is present; cuInit may be called any number of times.
    let result = unsafe { sys::cuInit(0) };
    if result == sys::CUresult::CUDA_ERROR_NO_DEVICE {
        return Ok(0);
    }
    if result != sys::CUresult::CUDA_SUCCESS {
        return Err(EngineError::Unavailable(format!(
            "the NVIDIA driver does not start: {}; look at nvidia-smi, or use --engine cpu",
            explain(result)
        )));
    }
    let mut count = 0;
    // SAFETY: the driver is initialised, and the pointer is to a live integer.
    check("counting the CUDA devices", unsafe {
        sys::cuDeviceGetCount(&raw mut count)
    })?;
    Ok(count.max(0) as usize)
}

/// Does `work`, which may enter contexts of cards, and then makes the thread's former context current again,
/// for threads that call CUDA themselves.
pub fn keeping_context<T>(work: impl FnOnce() -> T) -> T {
    struct Keep(sys::CUcontext);

    impl Drop for Keep {
        fn drop(&mut self) {
            BOUND.set(0);
            // SAFETY: the driver is loaded, and the context was current when it was asked for. Null is none.
            let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
        }
    }

    let _keep = has_driver().then(|| {
        let mut context = std::ptr::null_mut();
        // SAFETY: the driver is loaded and the pointer is to a live variable, which stays null if the driver
        // has not been started.
        let _ = unsafe { sys::cuCtxGetCurrent(&raw mut context) };
        Keep(context)
    });
    work()
}

/// The number of the card on which `pointer` lies; `None` if it is no address of a card's memory.
pub fn card_of(pointer: u64) -> Result<Option<usize>, EngineError> {
    if initialise()? == 0 {
        return Err(no_card());
    }
    let mut ordinal: c_int = 0;
    // SAFETY: the driver is initialised, the attribute is an integer, and the pointer is to a live one. The
    // address itself is looked up, and not followed.
    let result = unsafe {
        sys::cuPointerGetAttribute(
            (&raw mut ordinal).cast(),
            sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            pointer,
        )
    };
    if result == sys::CUresult::CUDA_ERROR_INVALID_VALUE {
        return Ok(None);
    }
    check("asking where an array lies", result)?;
    Ok(usize::try_from(ordinal).ok())
}

/// The newest CUDA version that the driver supports, major and minor.
pub(crate) fn driver_version() -> Result<(u32, u32), EngineError> {
    let mut version = 0;
    // SAFETY: the pointer is to a live integer.
    check("asking for the driver's version", unsafe {
        sys::cuDriverGetVersion(&raw mut version)
    })?;
    let version = version.max(0) as u32;
    Ok((version / 1000, version % 1000 / 10))
}

/// NVRTC's version; the error says that it is missing and what to do.
pub fn nvrtc_version() -> Result<(u32, u32), EngineError> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: loads NVRTC's library as any program does that links to it.
    if !*PRESENT.get_or_init(|| unsafe { nvrtc::is_culib_present() }) {
        return Err(EngineError::Unavailable(NO_NVRTC.to_owned()));
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is present and the pointers are to live integers.
    unsafe { nvrtc::nvrtcVersion(&raw mut major, &raw mut minor) };
    Ok((major.max(0) as u32, minor.max(0) as u32))
}

/// The driver's name and text for an error.
pub(crate) fn explain(result: sys::CUresult) -> String {
    let text = |get: unsafe fn(sys::CUresult, *mut *const c_char) -> sys::CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: the driver writes a pointer to a string that lives as long as the process, or leaves null.
        unsafe {
            let found = get(result, &raw mut text);
            (found == sys::CUresult::CUDA_SUCCESS && !text.is_null())
                .then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    let name = text(sys::cuGetErrorName).unwrap_or_else(|| format!("error {}", result as u32));
    match text(sys::cuGetErrorString) {
        Some(says) => format!("{name} ({says})"),
        None => name,
    }
}

/// Turns a driver's error into one of the engine's.
pub(crate) fn check(doing: &str, result: sys::CUresult) -> Result<(), EngineError> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(EngineError::Device {
        doing: doing.to_owned(),
        reason: explain(result),
    })
}

/// Devices that were opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The device whose context this thread has entered last.
    static BOUND: Cell<u64> = const { Cell::new(0) };
}

/// A card's primary context, held for as long as anything lives in it.
pub(crate) struct Device {
    /// Its number among all devices that were ever opened, from 1 on.
    id: u64,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    pub(crate) info: DeviceInfo,
}

// SAFETY: a context may be used from any thread that made it current, and `bind` does that.
unsafe impl Send for Device {}
// SAFETY: it does not change after it was made, and the driver's calls may be made by several threads.
unsafe impl Sync for Device {}

/// The first compute capability with programmatic dependent launch: a launch can begin before the one before
/// it has ended.
const EARLY_LAUNCHES: (u32, u32) = (9, 0);

/// The first driver that keeps such launches in CUDA graphs.
const EARLY_LAUNCHES_IN_GRAPHS: (u32, u32) = (12, 3);

impl Device {
    /// True if a launch may begin before the one before it has ended, in a CUDA graph too.
    pub(crate) fn begins_launches_early(&self) -> Result<bool, EngineError> {
        Ok(self.info.compute_capability >= EARLY_LAUNCHES && driver_version()? >= EARLY_LAUNCHES_IN_GRAPHS)
    }

    /// Opens card number `ordinal`.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Device>, EngineError> {
        let count = initialise()?;
        if count == 0 {
            return Err(no_card());
        }
        if ordinal >= count {
            let last = count - 1;
            return Err(EngineError::Unavailable(format!(
                "there is no CUDA device {ordinal}; the devices are numbered 0 to {last} (see `framepipe \
                 devices`)"
            )));
        }
        let (mut handle, mut context) = (0, std::ptr::null_mut());
        // SAFETY: the driver is initialised, the ordinal is in range, and the pointers are to live variables.
        unsafe {
            check(
                "opening the CUDA device",
                sys::cuDeviceGet(&raw mut handle, ordinal as c_int),
            )?;
            check(
                "making a context on the CUDA device",
                sys::cuDevicePrimaryCtxRetain(&raw mut context, handle),
            )?;
        }
        let mut device = Device {
            id: OPENED.fetch_add(1, Ordering::Relaxed) + 1,
            handle,
            context,
            info: DeviceInfo::default(),
        };
        device.info = device.read_info(ordinal)?;
        Ok(Arc::new(device))
    }

    /// The context, for a library that allocates memory in it.
    pub(crate) fn context(&self) -> sys::CUcontext {
        self.context
    }

    /// Makes the context current on this thread, as every driver call needs it.
    pub(crate) fn bind(&self) -> Result<(), EngineError> {
        // SAFETY: the context is retained until `self` is dropped.
        check("entering the CUDA device's context", unsafe {
            sys::cuCtxSetCurrent(self.context)
        })?;
        BOUND.set(self.id);
        Ok(())
    }

    /// Makes the context current on a thread of framepipe's own, where no other library changes it: calls the
    /// driver only if the thread entered another device last.
    pub(crate) fn bind_once(&self) -> Result<(), EngineError> {
        if BOUND.get() == self.id {
            Ok(())
        } else {
            self.bind()
        }
    }

    /// Waits for all work on the card, also of other libraries.
    pub(crate) fn synchronise(&self) -> Result<(), EngineError> {
        self.bind()?;
        // SAFETY: a context is current.
        check("waiting for the CUDA device", unsafe { sys::cuCtxSynchronize() })
    }

    fn attribute(&self, attribute: Attribute) -> Result<u32, EngineError> {
        let mut value = 0;
        // SAFETY: the handle is valid and the pointer is to a live integer.
        check("asking for a limit of the CUDA device", unsafe {
            sys::cuDeviceGetAttribute(&raw mut value, attribute, self.handle)
        })?;
        Ok(value.max(0) as u32)
    }

    fn read_info(&self, ordinal: usize) -> Result<DeviceInfo, EngineError> {
        use Attribute::{
            CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT as COPY_ENGINES,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE as L2,
            CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X as BLOCK_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y as BLOCK_Y,
            CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK as REGISTERS,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK as SHARED,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as SHARED_OPTIN,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR as SHARED_SM,
            CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK as THREADS,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT as TEXTURE_H,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH as TEXTURE_PITCH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH as TEXTURE_W,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as MULTIPROCESSORS,
        };
        let mut name = [0_u8; 256];
        let mut total = 0_usize;
        // SAFETY: the buffer has the stated length, the driver ends the name with a zero, the pointer is to a
        // live integer.
        unsafe {
            let length = name.len() as c_int;
            check(
                "asking for the CUDA device's name",
                sys::cuDeviceGetName(name.as_mut_ptr().cast(), length, self.handle),
            )?;
            check(
                "asking for the CUDA device's memory",
                sys::cuDeviceTotalMem_v2(&raw mut total, self.handle),
            )?;
        }
        let name = CStr::from_bytes_until_nul(&name).map(|n| n.to_string_lossy().into_owned());
        let (free, _) = self.memory()?;
        Ok(DeviceInfo {
            ordinal,
            name: name.unwrap_or_default(),
            compute_capability: (self.attribute(MAJOR)?, self.attribute(MINOR)?),
            multiprocessors: self.attribute(MULTIPROCESSORS)?,
            memory_total: total as u64,
            memory_free: free,
            copy_engines: self.attribute(COPY_ENGINES)?,
            l2_bytes: u64::from(self.attribute(L2)?),
            shared_per_block: self.attribute(SHARED)?,
            shared_per_block_optin: self.attribute(SHARED_OPTIN)?,
            shared_per_multiprocessor: self.attribute(SHARED_SM)?,
            registers_per_block: self.attribute(REGISTERS)?,
            max_threads_per_block: self.attribute(THREADS)?,
            max_block: (self.attribute(BLOCK_X)?, self.attribute(BLOCK_Y)?),
            max_texture: (
                self.attribute(TEXTURE_W)? as usize,
                self.attribute(TEXTURE_H)? as usize,
                self.attribute(TEXTURE_PITCH)? as usize,
            ),
        })
    }

    /// Free bytes of the card's memory, and all bytes.
    pub(crate) fn memory(&self) -> Result<(u64, u64), EngineError> {
        self.bind()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the pointers are to live integers.
        check("asking how much of the CUDA device's memory is free", unsafe {
            sys::cuMemGetInfo_v2(&raw mut free, &raw mut total)
        })?;
        Ok((free as u64, total as u64))
    }

    /// The architecture's number as NVRTC writes it: 90 for compute capability 9.0.
    pub(crate) fn architecture(&self) -> u32 {
        let (major, minor) = self.info.compute_capability;
        major * 10 + minor
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`; whatever lives in the context holds an Arc of `self`.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.handle) };
    }
}
