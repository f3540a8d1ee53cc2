//! The engines: the plain reference, the threaded CPU engine, CUDA; and wrappers that work in front of any of
//! them (luma, regions, before and after).

pub mod compare;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod luma;
pub mod none;
pub mod pool;
pub mod reference;
pub mod region;
#[doc(hidden)]
pub mod rgb;
pub mod several;
#[doc(hidden)]
pub mod verify;

pub use crate::explain::EXPLAIN_TARGET;
use crate::filter::PlanError;
use crate::frame::{
    AllocationError, Allocator, Buffer, Colour, Frame, Layout, LayoutError, PixelFormat, Remarks,
    UnknownMatrix,
};
use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Takes frames and gives them back filtered, in the same order.
///
/// The caller keeps at most [`Engine::depth`] frames in flight: it submits until so many are, then collects
/// the oldest.
pub trait Engine: Send {
    /// "none", "reference", "cpu" or "cuda".
    fn name(&self) -> &'static str;

    /// One line for the summary: what it runs on, and how.
    fn description(&self) -> String;

    /// How many frames may be in flight; 1 for an engine that works at once.
    fn depth(&self) -> usize {
        1
    }

    /// Makes the memory that the engine reads frames from fastest.
    fn input_allocator(&self) -> Arc<dyn Allocator>;

    /// Makes the memory that the engine writes frames to fastest.
    fn output_allocator(&self) -> Arc<dyn Allocator>;

    /// Pixels across and rows of what is made of frames of this format and size: the same, for all that only
    /// filter.
    fn output_size(&self, format: PixelFormat, width: usize, height: usize) -> (usize, usize) {
        let _ = format;
        (width, height)
    }

    /// Bytes that the engine will keep for frames laid out like this, beside the buffers that it is given, as
    /// far as that is known before the run.
    fn own_bytes(&self, frame: &Layout) -> u128 {
        let _ = frame;
        0
    }

    /// Frames laid out like this one, with these colour facts, are about to come: what needs no frame is made
    /// ready while the first is still being read. Whatever is wrong is reported when it is submitted.
    fn expect(&mut self, frame: &Layout, colour: &Colour) {
        let _ = (frame, colour);
    }

    /// True if the frame lies where this engine, of several for different devices, reads it at once.
    fn is_home_of(&self, frame: &Frame) -> bool {
        let _ = frame;
        false
    }

    /// Begins to filter `input` into `output`, which is grown as needed; the rows of the result are aligned
    /// to `row_alignment` bytes.
    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError>;

    /// What was picked for the frame that was submitted last, and why, a line each; nothing if that is what
    /// was picked for the frame before.
    fn explanation(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Waits for the oldest frame in flight and gives it back; `None` if there is none. Sequence number,
    /// metadata and birth are the input's.
    fn collect(&mut self) -> Result<Option<Frame>, EngineError>;

    /// A profiler that wants to know what the run's threads are at, for engines whose device has one.
    fn ranges(&self) -> Option<Arc<dyn Ranges>> {
        None
    }

    /// The device's own times, for engines that have a device; asked for once, after the last frame.
    fn device_times(&mut self) -> Option<DeviceTimes> {
        None
    }

    /// Another run begins with this engine, which has no frame in flight: times and counts begin anew.
    fn restart(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// What there is to say of the run; asked for once, after the last frame. `whole` is false if the input
    /// may have more frames than were submitted.
    fn remarks(&mut self, whole: bool) -> Remarks {
        let _ = whole;
        Remarks::default()
    }
}

/// Tells a profiler what the calling thread is at, in ranges that lie within each other.
pub trait Ranges: fmt::Debug + Send + Sync {
    /// Begins a range: what the thread is at, and on which frame.
    fn begin(&self, name: &'static CStr, frame: u64);

    /// Ends the range that began last on this thread.
    fn end(&self);
}

/// Device times of one frame, in seconds from the run's first event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrameTimes {
    /// The frame's number.
    pub sequence: u64,
    /// The ring slot that it used.
    pub slot: usize,
    /// Begin and end of the upload, in seconds.
    pub upload: (f64, f64),
    /// Begin and end of the kernels.
    pub kernel: (f64, f64),
    /// Begin and end of the download, in seconds.
    pub download: (f64, f64),
    /// Bytes uploaded.
    pub bytes_up: u64,
    /// Bytes downloaded.
    pub bytes_down: u64,
    /// Pixels filtered, every sample of every plane counted.
    pub samples: u64,
}

/// What a device engine measured with its own clock.
#[derive(Debug, Clone, Default)]
pub struct DeviceTimes {
    /// The device's name.
    pub device: String,
    /// Slots in the ring.
    pub slots: usize,
    /// Each frame's times, in order, at most as many as the engine keeps (the first ones).
    pub frames: Vec<FrameTimes>,
    /// Frames that were timed.
    pub count: u64,
    /// Further frames, which `totals` estimates by those that were timed.
    pub untimed: u64,
    /// Seconds in which at least one upload was in flight, at least one frame's kernels, at least one
    /// download.
    pub totals: [f64; 3],
    /// The host's instant just before the first event, from which the frames' times count, was recorded;
    /// `None` if the engine does not say.
    pub origin: Option<Instant>,
    /// Seconds from the start of the first upload to the end of the last download.
    pub wall: f64,
    /// Bytes up and down, pixels filtered, all frames.
    pub bytes_up: u64,
    /// Bytes downloaded.
    pub bytes_down: u64,
    /// Samples filtered.
    pub samples: u64,
    /// Per-frame seconds of upload, kernel and download: histograms in nanoseconds.
    pub histograms: Option<[hdrhistogram::Histogram<u64>; 3]>,
}

/// Why frames could not be filtered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The filter cannot be applied to frames of this format.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No memory for a frame.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// The output frame's geometry is impossible.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A picture and the one that its result goes to differ in size or format.
    #[error("the result of a picture of {input} cannot go to one of {output}")]
    Mismatch {
        /// Size and format of what is filtered.
        input: String,
        /// Size and format of where it goes.
        output: String,
    },
    /// A part of the picture cannot be filtered.
    #[error(transparent)]
    Region(#[from] region::RegionError),
    /// RGB is wanted of pictures whose matrix is not known.
    #[error(transparent)]
    Matrix(#[from] UnknownMatrix),
    /// The engine cannot be started on this machine: what is missing and what to do.
    #[error("{0}")]
    Unavailable(String),
    /// What was requested of the engine cannot be had for such frames and filters: why, and what to do.
    #[error("{0}")]
    Unfit(String),
    /// The device refused or failed: what was being done and what the driver said.
    #[error("{doing}: {reason}")]
    Device {
        /// What was being done.
        doing: String,
        /// What the driver said.
        reason: String,
    },
}
