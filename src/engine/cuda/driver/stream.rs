//! Streams, whose work runs in order, and events, by which one stream waits for another and the host for
//! both.
//!
//! ```text
//! stream 0   | upload | record |
//! stream 1            wait ----| kernels | record |
//! host                                   wait ----| result
//! ```
//!
//! The host polls for a moment before it sleeps, since a sleeping thread is woken late. A stream may be one
//! of another library, which is not destroyed here.
#![allow(unsafe_code)]

use super::device::{Device, check};
use crate::engine::EngineError;
use cudarc::driver::sys;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long a wait polls before it sleeps: a sleeping thread is woken tens of microseconds late.
const POLL: Duration = Duration::from_micros(200);

/// How long a wait sleeps between two polls.
const NAP: Duration = Duration::from_micros(50);

/// A stream: its work runs in order, and may overlap that of other streams.
pub(crate) struct Stream {
    device: Arc<Device>,
    handle: sys::CUstream,
    is_ours: bool,
}

// SAFETY: a stream may be used from any thread whose context is current; `Device::bind` sees to that.
unsafe impl Send for Stream {}
// SAFETY: the driver's calls on a stream may be made by several threads.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn new(device: &Arc<Device>) -> Result<Stream, EngineError> {
        device.bind()?;
        let mut handle = std::ptr::null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current and the pointer is to a live variable.
        check("making a stream on the CUDA device", unsafe {
            sys::cuStreamCreate(&raw mut handle, flags)
        })?;
        Ok(Stream {
            device: Arc::clone(device),
            handle,
            is_ours: true,
        })
    }

    /// A stream that another library made in the card's primary context, or one of the driver's own. It is
    /// the caller's, and outlives the value.
    pub(crate) fn of_another(device: &Arc<Device>, handle: usize) -> Stream {
        Stream {
            device: Arc::clone(device),
            handle: std::ptr::with_exposed_provenance_mut(handle),
            is_ours: false,
        }
    }

    pub(crate) fn handle(&self) -> sys::CUstream {
        self.handle
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Makes work that is enqueued from now on wait for `event`.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<(), EngineError> {
        // SAFETY: stream and event are live.
        check("ordering the CUDA device's streams", unsafe {
            sys::cuStreamWaitEvent(self.handle, event.handle, 0)
        })
    }

    /// Waits on the host until the stream is empty.
    pub(crate) fn synchronise(&self) -> Result<(), EngineError> {
        // SAFETY: the stream is live.
        check("waiting for the CUDA device", unsafe {
            sys::cuStreamSynchronize(self.handle)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_ours && self.device.bind().is_ok() {
            // SAFETY: made in `new`, destroyed only here.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.handle) };
        }
    }
}

type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;

/// The call by the name that every driver has: the bindings for CUDA 13 have only a newer one, which drivers
/// before 12.8 lack.
fn elapsed_time() -> Result<ElapsedTime, EngineError> {
    static FOUND: OnceLock<Option<ElapsedTime>> = OnceLock::new();
    // SAFETY: the library is present, since an event exists, and the type is that of the call.
    let found = FOUND.get_or_init(|| unsafe {
        let symbol = sys::culib().get::<ElapsedTime>(b"cuEventElapsedTime\0");
        symbol.ok().map(|s| *s)
    });
    found.ok_or_else(|| EngineError::Device {
        doing: "reading the CUDA device's clock".to_owned(),
        reason: "the driver's library has no cuEventElapsedTime".to_owned(),
    })
}

/// A moment in a stream, with its time.
pub(crate) struct Event {
    device: Arc<Device>,
    handle: sys::CUevent,
}

// SAFETY: an event may be used from any thread whose context is current; `Device::bind` sees to that.
unsafe impl Send for Event {}
// SAFETY: the driver's calls on an event may be made by several threads.
unsafe impl Sync for Event {}

impl Event {
    /// An event that the host only polls and reads the time of.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Event, EngineError> {
        Event::with(device, sys::CUevent_flags_enum::CU_EVENT_DEFAULT)
    }

    /// An event without a time, which only orders streams: it delays a copy far less than a timed one.
    pub(crate) fn untimed(device: &Arc<Device>) -> Result<Event, EngineError> {
        Event::with(device, sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING)
    }

    fn with(device: &Arc<Device>, flags: sys::CUevent_flags_enum) -> Result<Event, EngineError> {
        device.bind()?;
        let mut handle = std::ptr::null_mut();
        let flags = flags as u32;
        // SAFETY: the context is current and the pointer is to a live variable.
        check("making an event on the CUDA device", unsafe {
            sys::cuEventCreate(&raw mut handle, flags)
        })?;
        Ok(Event {
            device: Arc::clone(device),
            handle,
        })
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<(), EngineError> {
        // SAFETY: event and stream are live and of one context.
        check("recording an event on the CUDA device", unsafe {
            sys::cuEventRecord(self.handle, stream.handle)
        })
    }

    /// True if what was enqueued before the last record is done; a failure of that work is an error here.
    pub(crate) fn is_done(&self) -> Result<bool, EngineError> {
        // SAFETY: the event is live.
        let result = unsafe { sys::cuEventQuery(self.handle) };
        if result == sys::CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        check("asking how far the CUDA device is", result).map(|()| true)
    }

    /// Waits on the host: polls for a moment, then sleeps between polls. A blocking event would cost the card
    /// an interrupt each time that it happens.
    pub(crate) fn wait(&self) -> Result<(), EngineError> {
        let begun = Instant::now();
        while begun.elapsed() < POLL {
            if self.is_done()? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.wait_asleep()
    }

    /// Waits on the host, asleep between all polls: for when other threads call the driver, which admits one
    /// call at a time.
    pub(crate) fn wait_asleep(&self) -> Result<(), EngineError> {
        while !self.is_done()? {
            std::thread::sleep(NAP);
        }
        Ok(())
    }

    /// Seconds from `earlier` to this event; both must be done.
    pub(crate) fn seconds_since(&self, earlier: &Event) -> Result<f64, EngineError> {
        let mut milliseconds = 0_f32;
        let elapsed = elapsed_time()?;
        // SAFETY: both events are live and the pointer is to a live float.
        check("reading the CUDA device's clock", unsafe {
            elapsed(&raw mut milliseconds, earlier.handle, self.handle)
        })?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `new`, destroyed only here.
            let _ = unsafe { sys::cuEventDestroy_v2(self.handle) };
        }
    }
}
