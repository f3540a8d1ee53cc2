//! The engines, which filter frames: `reference` defines the results, `cpu` uses all cores, `cuda` a card,
//! and `none` passes frames on as they are.
//!
//! `wrappers` work in front of any of them (luma, regions, before and after, several cards). `pool` keeps
//! engines between runs. `rgb` defines the RGB of a frame, and `verify` compares an engine with the
//! reference.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod none;
pub mod pool;
pub mod reference;
#[doc(hidden)]
pub mod rgb;
#[doc(hidden)]
pub mod verify;
mod wrappers;

pub use crate::explain::EXPLAIN_TARGET;
pub use wrappers::{compare, luma, region, several};

use crate::filter::PlanError;
use crate::frame::{
    AllocationError, Allocator, Buffer, Colour, DeviceHandle, Frame, Layout, LayoutError, PixelFormat,
    Remarks, UnknownMatrix,
};
use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Takes frames and gives them back filtered, in the same order.
///
/// The caller keeps at most [`Engine::depth`] frames in flight: it submits until that number is reached, then
/// collects the oldest.
///
/// An engine around another one returns that one from [`Engine::inner`] and [`Engine::inner_mut`]. Methods
/// that it does not write itself are then forwarded, but for [`Engine::result_device`] and
/// [`Engine::leave_results`]: an engine that works on results needs them in the host's memory.
pub trait Engine: Send {
    /// The engine that this one works in front of, if any.
    fn inner(&self) -> Option<&dyn Engine> {
        None
    }

    /// The same engine as [`Engine::inner`].
    fn inner_mut(&mut self) -> Option<&mut dyn Engine> {
        None
    }

    /// "none", "reference", "cpu" or "cuda".
    fn name(&self) -> &'static str;

    /// One line for the summary: what it runs on, and how.
    fn description(&self) -> String;

    /// How many frames may be in flight; 1 for an engine that works at once.
    fn depth(&self) -> usize {
        match self.inner() {
            Some(inner) => inner.depth(),
            None => 1,
        }
    }

    /// Makes the memory that the engine reads frames from fastest.
    fn input_allocator(&self) -> Arc<dyn Allocator>;

    /// Makes the memory that the engine writes frames to fastest.
    fn output_allocator(&self) -> Arc<dyn Allocator>;

    /// Width and height in pixels of the result for a frame of this format and size. Filters keep the size;
    /// [`compare::Compare`] does not.
    fn output_size(&self, format: PixelFormat, width: usize, height: usize) -> (usize, usize) {
        match self.inner() {
            Some(inner) => inner.output_size(format, width, height),
            None => (width, height),
        }
    }

    /// Bytes of frame memory that the engine allocates itself for frames of this layout, besides the
    /// pipeline's pools. An estimate.
    fn own_bytes(&self, frame: &Layout) -> u128 {
        self.inner().map_or(0, |inner| inner.own_bytes(frame))
    }

    /// Announces frames of this layout with these colour facts, so that the engine prepares itself while the
    /// first one is being read. Errors are reported when that one is submitted.
    fn expect(&mut self, frame: &Layout, colour: &Colour) {
        if let Some(inner) = self.inner_mut() {
            inner.expect(frame, colour);
        }
    }

    /// True if the frame lies on this engine's device. [`several::Several`] gives such a frame to this
    /// engine.
    fn is_home_of(&self, frame: &Frame) -> bool {
        self.inner().is_some_and(|inner| inner.is_home_of(frame))
    }

    /// The device in whose memory results can stay, for a sink that reads them there; an error says why they
    /// cannot, as a clause after "because".
    fn result_device(&self) -> Result<DeviceHandle, &'static str> {
        Err("results are made in the host's memory")
    }

    /// Whether results stay in the memory of [`Engine::result_device`], from the next frame on. Called while
    /// no frame is in flight.
    fn leave_results(&mut self, _on_device: bool) {}

    /// Begins to filter `input` into `output`, which grows as needed. The rows of the result are aligned to
    /// `row_alignment` bytes.
    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError>;

    /// Explains, a line each, what was chosen for the last submitted frame. Empty if the choice has not
    /// changed.
    fn explanation(&mut self) -> Vec<String> {
        match self.inner_mut() {
            Some(inner) => inner.explanation(),
            None => Vec::new(),
        }
    }

    /// Waits for the oldest frame in flight and gives it back; `None` if there is none. Sequence number,
    /// metadata and birth are the input's.
    fn collect(&mut self) -> Result<Option<Frame>, EngineError>;

    /// The profiler that records what the run's threads do, for engines whose device has one.
    fn ranges(&self) -> Option<Arc<dyn Ranges>> {
        self.inner()?.ranges()
    }

    /// The device's own times, for engines that have a device. Called once, after the last frame.
    fn device_times(&mut self) -> Option<DeviceTimes> {
        self.inner_mut()?.device_times()
    }

    /// Prepares the engine, which has no frame in flight, for another run: times and counts start at 0.
    fn restart(&mut self) -> Result<(), EngineError> {
        match self.inner_mut() {
            Some(inner) => inner.restart(),
            None => Ok(()),
        }
    }

    /// Notes and warnings about the run. Called once, after the last frame. `whole` is false if the input may
    /// have more frames than were submitted.
    fn remarks(&mut self, whole: bool) -> Remarks {
        match self.inner_mut() {
            Some(inner) => inner.remarks(whole),
            None => Remarks::default(),
        }
    }
}

/// Reports to a profiler what the calling thread does, in nested ranges.
pub trait Ranges: fmt::Debug + Send + Sync {
    /// Begins a range: the name of the work, and the number of its frame.
    fn begin(&self, name: &'static CStr, frame: u64);

    /// Ends the range that began last on this thread.
    fn end(&self);
}

/// Device times of one frame, in seconds from the run's first event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrameTimes {
    /// The frame's number.
    pub sequence: u64,
    /// The slot of the ring that it used.
    pub slot: usize,
    /// Begin and end of the upload, in seconds.
    pub upload: (f64, f64),
    /// Begin and end of the kernels, in seconds.
    pub kernel: (f64, f64),
    /// Begin and end of the download, in seconds.
    pub download: (f64, f64),
    /// Bytes uploaded.
    pub bytes_up: u64,
    /// Bytes downloaded.
    pub bytes_down: u64,
    /// Samples convolved, over all planes.
    pub samples: u64,
}

/// What a device engine measured with its own clock.
#[derive(Debug, Clone, Default)]
pub struct DeviceTimes {
    /// The device's name.
    pub device: String,
    /// Slots in the ring.
    pub slots: usize,
    /// The times of each frame, in order; only of the first ones if the engine limits their number.
    pub frames: Vec<FrameTimes>,
    /// Frames that were timed.
    pub count: u64,
    /// Frames that were not timed. `totals` includes an estimate for them.
    pub untimed: u64,
    /// Seconds in which at least one upload, at least one kernel, at least one download was in flight.
    pub totals: [f64; 3],
    /// The host's instant just before the first event was recorded, from which the frames' times count;
    /// `None` if the engine does not state it.
    pub origin: Option<Instant>,
    /// Seconds from the start of the first upload to the end of the last download.
    pub wall: f64,
    /// Bytes uploaded, all frames.
    pub bytes_up: u64,
    /// Bytes downloaded, all frames.
    pub bytes_down: u64,
    /// Samples convolved, all frames.
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
    /// The engine cannot be started on this machine, but may be on another: what is missing and what to do.
    #[error("{0}")]
    Unavailable(String),
    /// What was requested of the engine cannot be had for such frames and filters, or is beyond its device:
    /// why, and what to request instead.
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

#[cfg(test)]
mod tests {
    use super::compare::{Arrangement, Compare, Shown};
    use super::pool::EnginePool;
    use super::region::{Clock, Parts};
    use super::*;
    use crate::filter::{Chain, Planes};
    use crate::frame::{Pageable, Rational};
    use std::sync::Mutex;

    /// Layouts that an engine was to expect, and was given.
    type Seen = Arc<Mutex<[Option<Layout>; 2]>>;

    /// An engine that no method's default describes, and that stores the layouts that it sees.
    struct Watched(Seen, none::NoFilter);

    impl Engine for Watched {
        fn name(&self) -> &'static str {
            "watched"
        }
        fn description(&self) -> String {
            String::new()
        }
        fn depth(&self) -> usize {
            3
        }
        fn input_allocator(&self) -> Arc<dyn Allocator> {
            Arc::new(Pageable)
        }
        fn output_allocator(&self) -> Arc<dyn Allocator> {
            Arc::new(Pageable)
        }
        fn own_bytes(&self, _: &Layout) -> u128 {
            1 << 40
        }
        fn expect(&mut self, frame: &Layout, _: &Colour) {
            self.0.lock().unwrap()[0] = Some(*frame);
        }
        fn is_home_of(&self, _: &Frame) -> bool {
            true
        }
        fn result_device(&self) -> Result<DeviceHandle, &'static str> {
            Ok(Arc::new(()))
        }
        fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
            self.0.lock().unwrap()[1] = Some(*input.layout());
            self.1.submit(input, output, row_alignment)
        }
        fn explanation(&mut self) -> Vec<String> {
            vec!["why".to_owned()]
        }
        fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
            self.1.collect()
        }
        fn device_times(&mut self) -> Option<DeviceTimes> {
            Some(DeviceTimes::default())
        }
        fn restart(&mut self) -> Result<(), EngineError> {
            Err(EngineError::Unfit("restarted".to_owned()))
        }
        fn remarks(&mut self, _: bool) -> Remarks {
            Remarks::warnings(["watched".to_owned()])
        }
    }

    #[test]
    fn wrappers_forward_every_method_to_the_engine_inside() {
        let chain = Chain::parse("box:size=3").unwrap();
        let around = |name: &str, inner: Box<dyn Engine>| -> Box<dyn Engine> {
            let region = |outside| {
                let parts = Parts {
                    regions: vec!["9x8+20+10".parse().unwrap()],
                    outside,
                    ..Parts::default()
                };
                let clock = Clock {
                    time_base: Rational { num: 1, den: 25 },
                    frame_rate: None,
                };
                (parts, clock)
            };
            match name {
                "compare" => Box::new(Compare::new(inner, Arrangement::Side, Shown::AsStored)),
                "luma" => luma::around(inner, &Planes::Luma, true, 1).unwrap(),
                "pool" => EnginePool::default().take(|_| true, || Ok(inner)).unwrap(),
                name => {
                    let (parts, clock) = region(name == "outside");
                    region::around(inner, parts, &chain, clock, None).unwrap()
                }
            }
        };
        let layout = Layout::new(PixelFormat::RGB24, 64, 40, 64).unwrap();
        let buffer = || Buffer::unpooled(Pageable.allocate(0).unwrap());
        for name in ["compare", "luma", "pool", "region", "outside"] {
            let seen = Seen::default();
            let inner = Box::new(Watched(Arc::clone(&seen), none::NoFilter::default()));
            let mut engine = around(name, inner);
            let frame = Frame::new(layout, buffer()).unwrap();
            engine.expect(&layout, &Colour::default());
            assert!(engine.is_home_of(&frame), "{name}");
            // All others work on results.
            assert_eq!(engine.result_device().is_ok(), name == "pool", "{name}");
            engine.submit(frame, buffer(), 1).unwrap();
            let [expected, given] = *seen.lock().unwrap();
            assert!(
                expected.is_some() && expected == given,
                "{name}: {expected:?} {given:?}"
            );
            assert_eq!(engine.explanation(), ["why"], "{name}");
            assert!(engine.collect().unwrap().is_some(), "{name}");
            assert_eq!(engine.depth(), 3, "{name}");
            assert!(engine.own_bytes(&layout) >= 1 << 40, "{name}");
            assert!(engine.device_times().is_some(), "{name}");
            assert!(engine.restart().is_err(), "{name}");
            assert_eq!(engine.remarks(true).warning_texts(), ["watched"], "{name}");
        }
    }
}
