//! The engine itself: a frame is enqueued on three streams, and waited for when it is collected.
//!
//! ```text
//! Engine::submit    plans     the kernels for this kind of frame, compiled when the first one comes
//!                   enqueue   upload, kernels, download                        -> a slot of the ring
//! Engine::collect   waits for the oldest frame in flight
//!
//! codec             frames come from the card's decoders, results go to its encoders, without a transfer
//! resident          filters pictures of another library in place, on that library's stream
//! rgb               converts frames on the card to RGB there
//! ```
//!
//! `options` is what can be chosen.

pub(crate) mod codec;
mod enqueue;
pub(crate) mod options;
mod plans;
pub(crate) mod resident;
pub(crate) mod rgb;

use super::driver::device::{Device, nvrtc_version};
use super::driver::memory::Pinned;
use super::driver::nvtx;
use super::driver::pictures::card_frame::{Blocks, CardFrame};
use super::driver::pictures::picture::DevicePlanes;
use super::driver::pictures::texture::{self, ALIGNMENT};
use super::kernels::variant::MemoryVariant;
use super::launch::chain::LaunchPlan;
use super::launch::scratch::{Scratch, ScratchError, ScratchMemory};
use super::ring::Ring;
use super::ring::overlap::Overlap;
use super::ring::slot::{Amount, FrameBuffers};
use super::ring::times::Times;
use crate::engine::{DeviceTimes, Engine, EngineError, Ranges};
use crate::filter::Chain;
use crate::frame::{Allocator, Buffer, Colour, DeviceHandle, Frame, Layout, Pageable, Plane};
use codec::encode::EncoderCard;
use enqueue::Enqueued;
use options::CudaOptions;
use plans::{PlanKey, Plans};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

/// The longest row, in samples, whose bytes kernels count in 32 bits with a mask's halo on either side.
const MAX_ROW: usize = 1 << 29;

/// Frames enqueued beyond the number of slots: they hide the host's latency between a frame's end and the
/// next submit.
const AHEAD: usize = 2;

/// With sampled timing, one in `SAMPLE` resident frames is timed.
const SAMPLE: u64 = 16;

/// The CUDA engine.
pub struct Cuda {
    // `drop` waits for the streams before any of these fields is dropped.
    options: CudaOptions,
    plans: Plans,
    scratch: ScratchMemory,
    /// Results stay on the card in this run, whose sink reads them there.
    leaves_results: bool,
    /// The memory of results that stay on the card.
    results: Option<Arc<Blocks>>,
    ring: Ring,
    /// Frames submitted.
    count: u64,
    /// The number of the frame at which a fault is injected.
    fault: Option<u64>,
    device: Arc<Device>,
}

/// The layouts of a frame and its result in the host's memory and on the card.
#[derive(Clone, Copy)]
struct Geometry {
    host_input: Layout,
    device_input: Layout,
    host_output: Layout,
    device_output: Layout,
}

impl Cuda {
    /// Starts the engine on a card. Kernels are compiled when the first frame's pixel format is known.
    pub fn new(chain: Chain, options: CudaOptions) -> Result<Cuda, EngineError> {
        if options.overlap == Overlap::Ring && options.slots < 2 {
            return Err(EngineError::Unfit(format!(
                "--slots {} is too few; transfers overlap kernels from 2 slots on (--no-overlap runs \
                 without)",
                options.slots
            )));
        }
        // Driver and NVRTC take time to load, and are loaded side by side.
        let device = thread::scope(|scope| {
            let nvrtc = thread::Builder::new().spawn_scoped(scope, nvrtc_version);
            let device = Device::open(options.device)?;
            match nvrtc.map(ScopedJoinHandle::join) {
                Ok(Ok(found)) => found.map(|_| device),
                Ok(Err(panic)) => resume_unwind(panic),
                Err(_) => nvrtc_version().map(|_| device),
            }
        })?;
        let (slots, ahead) = match options.overlap {
            Overlap::Ring => (options.slots, AHEAD),
            Overlap::SerialPinned | Overlap::SerialPageable => (1, 0),
        };
        Ok(Cuda {
            options,
            plans: Plans::new(chain, &device)?,
            scratch: ScratchMemory::default(),
            leaves_results: false,
            results: None,
            ring: Ring::new(&device, slots, slots + ahead)?,
            count: 0,
            fault: fault_from_environment(),
            device,
        })
    }

    /// The key of the plan for frames of `layout`.
    fn plan_key(&self, layout: &Layout, colour: &Colour) -> PlanKey {
        let memory = self.memory_for(layout);
        PlanKey {
            format: layout.format(),
            colour: *colour,
            memory,
            scale: match memory.is_chosen() {
                true => (layout.width() * layout.height()).ilog2(),
                false => 0,
            },
        }
    }

    /// The plan for frames of this kind, its kernels loaded; `size` is that of the frame at hand.
    fn prepare(&mut self, key: PlanKey, size: (usize, usize)) -> Result<Arc<LaunchPlan>, EngineError> {
        let compute = &self.ring.streams.compute;
        self.plans
            .prepare(key, size, &self.options, &self.device, compute)
    }

    /// The layouts of a frame and its result. A frame is uploaded by one copy, with its own layout, unless
    /// textures need aligned rows or much of the block is not part of the picture.
    fn geometry(&self, input: &Layout, row_alignment: usize) -> Result<Geometry, EngineError> {
        let (format, width, height) = (input.format(), input.width(), input.height());
        let host_output = Layout::new(format, width, height, row_alignment.max(1))?;
        let too_wide = input.planes().iter().any(|p| p.width * p.channels > MAX_ROW);
        if too_wide || height > MAX_ROW {
            return Err(EngineError::Device {
                doing: format!("filtering a frame of {width}x{height} pixels"),
                reason: format!("kernels count rows and the samples of a row up to {MAX_ROW}"),
            });
        }
        let aligned = Layout::new(format, width, height, ALIGNMENT)?;
        let keeps_layout = |layout: &Layout| {
            let sample = format.bytes_per_sample();
            let whole_samples =
                |p: &Plane| p.offset.is_multiple_of(sample) && p.stride.is_multiple_of(sample);
            self.options.memory != MemoryVariant::Texture
                && layout.planes().iter().all(whole_samples)
                && layout.size() <= layout.picture_bytes() / 4 * 5 + 4096
        };
        let on_device = |layout: &Layout| if keeps_layout(layout) { *layout } else { aligned };
        Ok(Geometry {
            host_input: *input,
            device_input: on_device(input),
            host_output,
            device_output: on_device(&host_output),
        })
    }

    /// The memory variant for frames of `layout`: where textures were requested and a plane is beyond their
    /// limits, pixels come from global memory, which gives the same bits.
    fn memory_for(&self, layout: &Layout) -> MemoryVariant {
        let fits = |p: &Plane| {
            // The intermediate's rows are the longest, with four bytes a value.
            let samples = p.width * p.channels;
            texture::fits(
                &self.device.info,
                samples,
                p.height,
                (4 * samples).next_multiple_of(ALIGNMENT),
            )
        };
        match self.options.memory {
            MemoryVariant::Texture if !layout.planes().iter().all(fits) => MemoryVariant::Constant,
            memory => memory,
        }
    }

    /// True if the frame is filtered in place: a decoder left it on this card. Not with textures, which show
    /// the ring's own pictures only, nor without overlap, where the upload is timed.
    fn is_resident(&self, input: &Frame, memory: MemoryVariant) -> bool {
        self.is_home_of(input) && memory != MemoryVariant::Texture && self.options.overlap == Overlap::Ring
    }

    fn memory_short(&self, need: usize, layout: &Layout) -> EngineError {
        const MIB: f64 = 1024.0 * 1024.0;
        let (free, total) = self.device.memory().unwrap_or((0, 0));
        EngineError::Device {
            doing: format!(
                "making room on the card for frames of {}x{} pixels in {}",
                layout.width(),
                layout.height(),
                layout.format()
            ),
            reason: format!(
                "{:.1} MiB are needed, and of the card's {:.0} MiB only {:.1} MiB are free; end other \
                 programs that use the card, or use --engine cpu",
                need as f64 / MIB,
                total as f64 / MIB,
                free as f64 / MIB
            ),
        }
    }

    /// The intermediate pictures of `launch` for frames of `layout`.
    fn scratch(
        &mut self,
        launch: &LaunchPlan,
        layout: &Layout,
        textures: bool,
    ) -> Result<Scratch, EngineError> {
        if !self.scratch.serves(layout) {
            // Frames in flight may still be using what is about to be made anew.
            self.ring.streams.compute.synchronise()?;
        }
        let needs = launch.scratch_needs();
        let scratch = self.scratch.fit(&self.device, &needs, layout, textures);
        scratch.map_err(|error| match error {
            ScratchError::Shortage(need) => self.memory_short(need, layout),
            ScratchError::Driver(error) => error,
        })
    }

    /// True if results stay on the card.
    fn keeps_results(&self) -> bool {
        self.options.keeps_results || self.leaves_results
    }

    /// A frame whose picture lies on the card: `buffer` hosts a block of the card's memory.
    fn frame_on_card(&mut self, layout: &Layout, mut buffer: Buffer) -> Result<Frame, EngineError> {
        let fitting = self.results.take_if(|blocks| blocks.size() == layout.size());
        let blocks = fitting.unwrap_or_else(|| Arc::new(Blocks::new(&self.device, layout.size())));
        buffer.host(Box::new(blocks.take(&self.ring.streams.compute)?));
        self.results = Some(blocks);
        Ok(Frame::new(*layout, buffer)?)
    }

    /// Makes the result frame of `input`, and says what the two move. Returns the geometry, too: a frame that
    /// is filtered in place keeps its layout.
    fn frame_buffers(
        &mut self,
        input: Frame,
        output: Buffer,
        geometry: Geometry,
        (launch, memory): (&LaunchPlan, MemoryVariant),
    ) -> Result<(FrameBuffers, Geometry), EngineError> {
        let downloads = !self.keeps_results();
        let mut result = match downloads {
            true => Frame::new(geometry.host_output, output)?,
            false => self.frame_on_card(&geometry.device_output, output)?,
        };
        result.sequence = input.sequence;
        result.born = input.born;
        result.metadata = input.metadata.clone();
        let is_resident = self.is_resident(&input, memory);
        let geometry = match is_resident {
            true => Geometry {
                device_input: geometry.host_input,
                ..geometry
            },
            false => geometry,
        };
        let moved = |moves: bool, host: &Layout, device: &Layout| match moves {
            true => bytes_moved(host, device),
            false => 0,
        };
        let buffers = FrameBuffers {
            amount: Amount {
                bytes_up: moved(!is_resident, &geometry.host_input, &geometry.device_input),
                bytes_down: moved(downloads, &geometry.host_output, &geometry.device_output),
                samples: launch.convolved_samples(input.layout().planes()),
            },
            staged: downloads && self.options.overlap == Overlap::Ring && !result.is_pinned(),
            is_resident,
            input: Some(input),
            output: result,
        };
        Ok((buffers, geometry))
    }
}

/// `FRAMEPIPE_FAULT=cuda:N` makes the engine fail at the frame with number N, to test what happens then.
fn fault_from_environment() -> Option<u64> {
    let word = std::env::var("FRAMEPIPE_FAULT").ok()?;
    word.strip_prefix("cuda:")?.parse().ok()
}

impl Engine for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn description(&self) -> String {
        let info = &self.device.info;
        let how = match self.options.overlap {
            Overlap::Ring => format!("{} slots", self.ring.slot_count()),
            Overlap::SerialPinned => "no overlap, pinned memory".to_owned(),
            Overlap::SerialPageable => "no overlap, pageable memory".to_owned(),
        };
        let (major, minor) = info.compute_capability;
        let kept = match (self.leaves_results, self.options.keeps_results) {
            (true, _) => ", results stay on the card for the encoder",
            (false, true) => ", results stay on the card",
            (false, false) => "",
        };
        format!(
            "cuda: {} (compute capability {major}.{minor}), memory variant {}, {how}{kept}",
            info.name, self.options.memory
        )
    }

    fn depth(&self) -> usize {
        self.ring.depth()
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        self.allocator(self.options.write_combined)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        match self.keeps_results() {
            // Results stay on the card; this memory is never touched.
            true => Arc::new(Pageable),
            false => self.allocator(false),
        }
    }

    fn expect(&mut self, frame: &Layout, colour: &Colour) {
        let key = self.plan_key(frame, colour);
        let made = self.device.bind();
        let made = made.and_then(|()| self.prepare(key, (frame.width(), frame.height())));
        let refused = made.err().map(|error| (self.plan_key(frame, colour), error));
        self.plans.refuse(refused);
    }

    fn is_home_of(&self, frame: &Frame) -> bool {
        card_frame(frame).is_some_and(|frame| frame.is_on(&self.device))
    }

    fn result_device(&self) -> Result<DeviceHandle, &'static str> {
        match self.options.overlap {
            Overlap::Ring => Ok(Arc::new(EncoderCard::new(&self.device))),
            Overlap::SerialPinned | Overlap::SerialPageable => Err("--no-overlap downloads each result"),
        }
    }

    fn leave_results(&mut self, on_device: bool) {
        self.leaves_results = on_device;
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        self.device.bind()?;
        self.ring.release_inputs()?;
        let number = self.count;
        self.count += 1;
        if self.fault == Some(number) {
            return Err(EngineError::Device {
                doing: format!("filtering frame {number}"),
                reason: "a fault was requested by FRAMEPIPE_FAULT".to_owned(),
            });
        }
        let geometry = self.geometry(input.layout(), row_alignment)?;
        let key = self.plan_key(input.layout(), &input.metadata.colour);
        let memory = key.memory;
        let launch = self.prepare(key, (input.layout().width(), input.layout().height()))?;
        let (mut buffers, geometry) = self.frame_buffers(input, output, geometry, (&launch, memory))?;
        let need = geometry.device_input.size().max(geometry.device_output.size());
        let layouts = (geometry.device_input, geometry.device_output);
        let Some(mut slot) = self.ring.take_slot(need, layouts)? else {
            return Err(self.memory_short(2 * need, &geometry.host_input));
        };
        let mut flight = self.ring.take_flight()?;
        flight.slot = slot.id;
        flight.result_in_first = launch.step_count().is_multiple_of(2);
        flight.is_uploaded = !buffers.is_resident;
        flight.is_downloaded = !self.keeps_results();
        let is_sampled =
            self.options.samples_times && buffers.is_resident && self.options.overlap == Overlap::Ring;
        flight.is_timed = !is_sampled || number.is_multiple_of(SAMPLE);
        let enqueued = self.enqueue(&mut Enqueued {
            slot: &mut slot,
            flight: &mut flight,
            buffers: &mut buffers,
            geometry: &geometry,
            launch: &launch,
            memory,
        });
        if enqueued.is_err() {
            // A part may be in flight, and it must not outlive the frames' memory.
            self.ring.wait_for_everything();
        }
        self.ring.give_back(slot);
        if let Err(error) = enqueued {
            self.ring.push_idle(flight);
            return Err(error);
        }
        flight.buffers = Some(buffers);
        self.ring.push_in_flight(flight);
        Ok(())
    }

    fn explanation(&mut self) -> Vec<String> {
        self.plans.take_explanation()
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        self.device.bind()?;
        self.ring.collect()
    }

    fn ranges(&self) -> Option<Arc<dyn Ranges>> {
        nvtx::ranges()
    }

    fn device_times(&mut self) -> Option<DeviceTimes> {
        Some(self.ring.times.summary(self.ring.slot_count()))
    }

    fn restart(&mut self) -> Result<(), EngineError> {
        self.device.bind()?;
        self.ring.times = Times::new(&self.device);
        self.count = 0;
        self.leaves_results = false;
        Ok(())
    }
}

impl Cuda {
    fn allocator(&self, write_combined: bool) -> Arc<dyn Allocator> {
        match self.options.overlap {
            Overlap::Ring | Overlap::SerialPinned => Arc::new(Pinned {
                device: Arc::clone(&self.device),
                write_combined,
            }),
            Overlap::SerialPageable => Arc::new(Pageable),
        }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Nothing may be freed while a copy or a kernel still uses it.
        self.ring.wait_for_everything();
    }
}

/// The frame's memory on a card, if it lies on one.
fn card_frame(frame: &Frame) -> Option<&CardFrame> {
    frame.on_device()?.downcast_ref()
}

/// The planes of a frame that lies on the card at `pointer`.
fn planes_in(pointer: u64, layout: &Layout) -> DevicePlanes {
    let mut places = DevicePlanes::default();
    for (place, plane) in places.iter_mut().zip(layout.planes()) {
        place.pointer = pointer + plane.offset as u64;
        place.pitch = plane.stride;
    }
    places
}

/// Bytes that one transfer of a frame moves.
fn bytes_moved(host: &Layout, device: &Layout) -> u64 {
    let bytes = if host == device {
        host.size()
    } else {
        host.picture_bytes()
    };
    bytes as u64
}
