//! CUDA graphs: launches that the driver keeps as a whole and starts with one call.
//!
//! ```text
//! a frame unlike the slot's last one    its launches one by one, so that one that is refused gives its error
//! the next of the same kind             captured as a graph, or the graph is changed; launched
//! those after it                        launched
//! ```
//!
//! The host then needs one call a frame, and there are next to no gaps between launches.
#![allow(unsafe_code)]

use crate::engine::EngineError;
use crate::engine::cuda::driver::dependency::TrackedStream;
use crate::engine::cuda::driver::device::{Device, check};
use crate::engine::cuda::driver::pictures::picture::DevicePlanes;
use crate::engine::cuda::driver::stream::Stream;
use crate::engine::cuda::launch::StepBuffers;
use crate::engine::cuda::launch::chain::LaunchPlan;
use crate::engine::cuda::launch::scratch::Scratch;
use crate::frame::Layout;
use cudarc::driver::sys;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Launches with next to no gaps between them.
pub(crate) struct Graph {
    device: Arc<Device>,
    handle: sys::CUgraphExec,
}

// SAFETY: a graph may be launched from any thread whose context is current; `Device::bind` sees to that.
unsafe impl Send for Graph {}

/// A captured graph, not yet instantiated.
struct Captured(sys::CUgraph);

impl Captured {
    /// What `enqueue` enqueues on `stream`.
    fn new(
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<(), EngineError>,
    ) -> Result<Captured, EngineError> {
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live and nothing else is being captured on it.
        check("beginning a CUDA graph", unsafe {
            sys::cuStreamBeginCapture_v2(stream.handle(), mode)
        })?;
        let enqueued = enqueue();
        let mut graph = std::ptr::null_mut();
        // The stream has to leave its capture even if a launch failed; the launch's error says more.
        // SAFETY: the stream is being captured, and the pointer is to a live variable.
        let ended = check("ending a CUDA graph", unsafe {
            sys::cuStreamEndCapture(stream.handle(), &raw mut graph)
        });
        let captured = Captured(graph);
        enqueued.and(ended).map(|()| captured)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: made in `new`, destroyed only here; the instantiated graph does not need it any more.
            let _ = unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

impl Graph {
    /// Captures what `enqueue` enqueues on `stream`.
    pub(crate) fn capture(
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<(), EngineError>,
    ) -> Result<Graph, EngineError> {
        let captured = Captured::new(stream, enqueue)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the graph was just captured, and the pointer is to a live variable.
        check("preparing a CUDA graph", unsafe {
            sys::cuGraphInstantiateWithFlags(&raw mut handle, captured.0, 0)
        })?;
        Ok(Graph {
            device: Arc::clone(stream.device()),
            handle,
        })
    }

    /// Updates the graph to what `enqueue` enqueues. Where only sizes and addresses differ the launches'
    /// parameters are changed; else the graph is instantiated anew.
    pub(crate) fn change(
        &mut self,
        stream: &Stream,
        enqueue: impl Fn() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let captured = Captured::new(stream, &enqueue)?;
        // Receives which launch cannot be changed; it is not used.
        let mut info = MaybeUninit::uninit();
        // SAFETY: both graphs are live, and the pointer is to memory for the driver to write.
        let changed = unsafe { sys::cuGraphExecUpdate_v2(self.handle, captured.0, info.as_mut_ptr()) };
        if changed == sys::CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE {
            *self = Graph::capture(stream, enqueue)?;
            return Ok(());
        }
        check("changing a CUDA graph", changed)
    }

    pub(crate) fn launch(&self, stream: &Stream) -> Result<(), EngineError> {
        // SAFETY: graph and stream are live and of one context. The memory that its launches use belongs to
        // the slots and plans of an engine, or to a timer's pictures, which wait for the stream before they
        // free it.
        check("launching a CUDA graph", unsafe {
            sys::cuGraphLaunch(self.handle, stream.handle())
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `capture`, destroyed only here; the driver holds what replays in flight need.
            let _ = unsafe { sys::cuGraphExecDestroy(self.handle) };
        }
    }
}

/// The launches of a chain on one slot's pictures.
#[derive(Clone)]
pub(crate) struct ChainWork {
    pub(crate) launch: Arc<LaunchPlan>,
    pub(crate) layout: Layout,
    /// Where the first step reads.
    pub(crate) input: DevicePlanes,
    /// The two pictures from the first step's result on, which is in the second one.
    pub(crate) pictures: [DevicePlanes; 2],
    pub(crate) scratch: Scratch,
}

impl ChainWork {
    /// Enqueues every step.
    fn enqueue(&self, stream: &Stream) -> Result<(), EngineError> {
        let tracked = TrackedStream::new(stream.handle());
        for index in 0..self.launch.step_count() {
            let source = if index == 0 {
                &self.input
            } else {
                &self.pictures[index % 2]
            };
            let buffers = StepBuffers {
                layout: &self.layout,
                source,
                result: &self.pictures[(index + 1) % 2],
                scratch: &self.scratch,
                stream: &tracked,
            };
            self.launch.run(index, &buffers)?;
        }
        Ok(())
    }

    fn is_same(&self, other: &ChainWork) -> bool {
        Arc::ptr_eq(&self.launch, &other.launch)
            && self.layout == other.layout
            && self.input == other.input
            && self.pictures == other.pictures
            && self.scratch == other.scratch
    }
}

/// A slot's launches. Where a frame's are the same as those of the frame before, a chain of several launches
/// begins with one call (a graph).
#[derive(Default)]
pub(crate) struct Launches {
    last: Option<ChainWork>,
    graph: Option<Graph>,
    /// True if the graph is that of the last frame.
    is_current: bool,
}

impl Launches {
    /// Enqueues a chain's kernels.
    pub(crate) fn run(&mut self, work: ChainWork, stream: &Stream) -> Result<(), EngineError> {
        if work.launch.launch_count() < 2 {
            return work.enqueue(stream);
        }
        if !self.last.as_ref().is_some_and(|last| last.is_same(&work)) {
            // Outside of a graph, a launch that the card refuses gives its own error.
            self.is_current = false;
            work.enqueue(stream)?;
            self.last = Some(work);
            return Ok(());
        }
        let graph = match self.graph.take() {
            Some(mut graph) => {
                if !self.is_current {
                    graph.change(stream, || work.enqueue(stream))?;
                }
                graph
            }
            None => Graph::capture(stream, || work.enqueue(stream))?,
        };
        self.is_current = true;
        self.graph.insert(graph).launch(stream)
    }
}
