//! The engine itself: a frame is enqueued on three streams, and waited for where it is collected.
#![allow(unsafe_code)]

pub(crate) mod resident;
pub(crate) mod rgb;

use super::compile::cache::Cache;
use super::driver::card_frame::{Blocks, CardFrame};
use super::driver::device::{Device, nvrtc_version};
use super::driver::memory::Pinned;
use super::driver::nvtx;
use super::driver::picture::{Arrangement, DevicePlanes};
use super::driver::stream::{Event, Stream};
use super::driver::texture::{self, ALIGNMENT, sample_texel};
use super::kernels::variant::MemoryVariant;
use super::launch::Request;
use super::launch::chain::ChainLaunch;
use super::launch::scratch::{Scratch, ScratchMemory, ScratchShortage};
use super::ring::graph::ChainWork;
use super::ring::slot::{self, Amount, Flight, FrameBuffers, Slot};
use super::ring::times::Times;
use super::select::SelectContext;
use super::select::table::Table;
use super::{CudaOptions, Overlap};
use crate::engine::{DeviceTimes, Engine, EngineError, Ranges};
use crate::filter::Chain;
use crate::frame::{Allocator, Buffer, Colour, Frame, Layout, Pageable, PixelFormat, Plane};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

/// The longest row, in samples, whose bytes kernels count in 32 bits with a mask's halo on either side.
const MAX_ROW: usize = 1 << 29;

/// Frames that are enqueued beyond the ring's slots, so that the time in which the host sees an end and
/// enqueues anew is hidden too.
const AHEAD: usize = 2;

/// Of so many frames that lie on the card one is timed, where times are sampled.
const SAMPLE: u64 = 16;

/// Launch plans that are kept, for runs whose frames differ in format or colour facts.
const KEPT_PLANS: usize = 8;

/// The CUDA engine.
pub struct Cuda {
    // Fields are dropped in this order: what the streams may still use comes after they were waited for in
    // `drop`.
    chain: Chain,
    options: CudaOptions,
    cache: Cache,
    table: Table,
    prepared: Vec<(PlanKey, Arc<ChainLaunch>)>,
    /// Why the plan for frames that were announced cannot be made.
    refused: Option<(PlanKey, EngineError)>,
    /// The kernels that were picked for the frame submitted last, if its plan is new.
    explanation: Vec<String>,
    scratch: ScratchMemory,
    /// The layout of the frames that it serves now.
    scratch_layout: Option<Layout>,
    /// Where results lie that stay on the card.
    results: Option<Arc<Blocks>>,
    /// Least recently used first.
    slots: VecDeque<Slot>,
    idle: Vec<Flight>,
    /// The oldest first.
    in_flight: VecDeque<Flight>,
    ready: VecDeque<Frame>,
    times: Times,
    /// Frames submitted.
    count: u64,
    /// The number of the frame at which a fault is injected.
    fault: Option<u64>,
    streams: Streams,
    device: Arc<Device>,
}

#[derive(PartialEq, Eq)]
struct PlanKey {
    format: PixelFormat,
    colour: Colour,
    memory: MemoryVariant,
    /// Where the table decides, the power of two of the frame's pixels: kernels are chosen for the first
    /// frame of about its size.
    scale: u32,
}

/// A stream for uploads, one for kernels, one for downloads, and the clocks.
struct Streams {
    upload: Stream,
    compute: Stream,
    download: Stream,
    /// Where the times of uploads and downloads are taken, so that the copies' own streams are not held up.
    clocks: [Stream; 2],
}

impl Streams {
    /// The streams of upload, kernels and download. Without overlap all three are one, and the host waits
    /// after each part.
    fn of(&self, overlap: Overlap) -> [&Stream; 3] {
        match overlap {
            Overlap::Ring => [&self.upload, &self.compute, &self.download],
            Overlap::SerialPinned | Overlap::SerialPageable => [&self.compute; 3],
        }
    }
}

/// How a frame lies in the host's memory and on the card.
struct Geometry {
    host_input: Layout,
    device_input: Layout,
    host_output: Layout,
    device_output: Layout,
}

impl Cuda {
    /// Starts the engine on a card. Kernels are compiled when the first frame tells the pixel format.
    pub fn new(chain: Chain, options: CudaOptions) -> Result<Cuda, EngineError> {
        if options.overlap == Overlap::Ring && options.slots < 2 {
            return Err(EngineError::Unavailable(format!(
                "--slots {} is too few; transfers overlap kernels from 2 slots on (--no-overlap runs \
                 without)",
                options.slots
            )));
        }
        // Each is a library to load and more, and takes its time by itself.
        let device = thread::scope(|scope| {
            let nvrtc = thread::Builder::new().spawn_scoped(scope, nvrtc_version);
            let device = Device::open(options.device)?;
            match nvrtc.map(ScopedJoinHandle::join) {
                Ok(Ok(found)) => found.map(|_| device),
                Ok(Err(panic)) => resume_unwind(panic),
                Err(_) => nvrtc_version().map(|_| device),
            }
        })?;
        let cache = Cache::of_user();
        let slots = match options.overlap {
            Overlap::Ring => options.slots,
            Overlap::SerialPinned | Overlap::SerialPageable => 1,
        };
        let ahead = if options.overlap == Overlap::Ring {
            AHEAD
        } else {
            0
        };
        let idle = (0..slots + ahead).map(|_| Flight::new(&device));
        Ok(Cuda {
            chain,
            options,
            table: Table::for_card(&device, &cache)?,
            cache,
            prepared: Vec::new(),
            refused: None,
            explanation: Vec::new(),
            scratch: ScratchMemory::default(),
            scratch_layout: None,
            results: None,
            slots: (0..slots).map(Slot::new).collect(),
            idle: idle.collect::<Result<_, _>>()?,
            in_flight: VecDeque::new(),
            ready: VecDeque::new(),
            times: Times::new(&device),
            count: 0,
            fault: fault_from_environment(),
            streams: Streams {
                upload: Stream::new(&device)?,
                compute: Stream::new(&device)?,
                download: Stream::new(&device)?,
                clocks: [Stream::new(&device)?, Stream::new(&device)?],
            },
            device,
        })
    }

    /// What the plan for such frames depends on.
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
    fn prepare(&mut self, key: PlanKey, size: (usize, usize)) -> Result<Arc<ChainLaunch>, EngineError> {
        if let Some((_, prepared)) = self.prepared.iter().find(|(k, _)| *k == key) {
            return Ok(Arc::clone(prepared));
        }
        if let Some((_, error)) = self.refused.take_if(|(refused, _)| *refused == key) {
            return Err(error);
        }
        if self.prepared.len() >= KEPT_PLANS {
            // Frames in flight may still be using it.
            self.streams.compute.synchronise()?;
            self.prepared.remove(0);
        }
        let request = Request {
            device: &self.device,
            cache: &self.cache,
            context: SelectContext {
                memory: key.memory,
                block: self.options.block,
                fuse: self.options.fuse,
                size,
                card: &self.device.info,
                table: &self.table,
            },
            explanation: RefCell::default(),
        };
        let prepared = ChainLaunch::new(&self.chain, key.format, &key.colour, &request);
        let explanation = request.explanation.into_inner();
        let prepared = Arc::new(prepared?);
        self.explanation = explanation;
        self.prepared.push((key, Arc::clone(&prepared)));
        Ok(prepared)
    }

    /// Where the frame's planes are on the host and on the card. A frame is copied at once, rows as they are,
    /// unless textures need aligned rows or the block holds much besides the picture.
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
        let as_it_is = |layout: &Layout| {
            let sample = format.bytes_per_sample();
            let whole_samples =
                |p: &Plane| p.offset.is_multiple_of(sample) && p.stride.is_multiple_of(sample);
            self.options.memory != MemoryVariant::Texture
                && layout.planes().iter().all(whole_samples)
                && layout.size() <= layout.picture_bytes() / 4 * 5 + 4096
        };
        let on_device = |layout: &Layout| if as_it_is(layout) { *layout } else { aligned };
        Ok(Geometry {
            host_input: *input,
            device_input: on_device(input),
            host_output,
            device_output: on_device(&host_output),
        })
    }

    /// Textures where they were requested and the planes are within their limits; beyond them, pixels come
    /// from global memory, which gives the same bits.
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

    /// The next slot, its pictures large enough. Slots that the card has no memory for are given up.
    fn take_slot(&mut self, need: usize, geometry: &Geometry) -> Result<Slot, EngineError> {
        loop {
            let Some(mut slot) = self.slots.pop_front() else {
                return Err(self.memory_short(2 * need, &geometry.host_input));
            };
            let layouts = Some((geometry.device_input, geometry.device_output));
            if slot.layouts != layouts {
                // What is about to be re-made, memory or textures, may still be in use.
                while self.in_flight.iter().any(|flight| flight.slot == slot.id) {
                    self.finish_oldest()?;
                }
                if !slot.fit(&self.device, need)? {
                    drop(slot);
                    tracing::warn!(
                        slots = self.slots.len(),
                        "the card's memory is short, so the ring has fewer slots"
                    );
                    continue;
                }
                slot.layouts = layouts;
            }
            return Ok(slot);
        }
    }

    /// True if the frame is filtered where it lies: on this card, put there by one of its decoders. Textures
    /// are made over the ring's own pictures only, and a run without overlap times the upload.
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

    /// The kernels' own pictures for frames of this geometry.
    fn scratch(
        &mut self,
        prepared: &ChainLaunch,
        layout: &Layout,
        textures: bool,
    ) -> Result<Scratch, EngineError> {
        if self.scratch_layout != Some(*layout) {
            // Frames in flight may still be using what is about to be re-made.
            self.streams.compute.synchronise()?;
            self.scratch_layout = Some(*layout);
        }
        let places = self.scratch.places(&self.device, prepared, layout, textures)?;
        places.map_err(|ScratchShortage(need)| self.memory_short(need, layout))
    }

    /// The steps of a frame in this slot, and where its pictures are.
    fn work(
        &mut self,
        slot: &mut Slot,
        geometry: &Geometry,
        prepared: &Arc<ChainLaunch>,
        memory: MemoryVariant,
    ) -> Result<ChainWork, EngineError> {
        let textures = memory == MemoryVariant::Texture;
        let scratch = self.scratch(prepared, &geometry.device_output, textures)?;
        let texel = textures.then(|| sample_texel(geometry.host_input.format()));
        // The first step reads a picture that lies as the input does; all others lie as the output does.
        let first = Arrangement::of(&geometry.device_input);
        let later = Arrangement::of(&geometry.device_output);
        let places = slot.pictures[0].places(&self.device, &first, texel)?;
        // From the second step on the first picture is written as the output lies.
        let texel_of_later = if first == later { texel } else { None };
        let pictures = [
            slot.pictures[0].places(&self.device, &later, texel_of_later)?,
            slot.pictures[1].places(&self.device, &later, texel)?,
        ];
        Ok(ChainWork {
            prepared: Arc::clone(prepared),
            layout: geometry.device_output,
            input: places,
            pictures,
            scratch,
        })
    }

    /// Where the host's memory is that a frame is uploaded from and downloaded to: its buffers where they are
    /// page-locked or nothing overlaps, else the flight's staging memory.
    fn host_memory(
        &self,
        flight: &mut Flight,
        buffers: &mut FrameBuffers,
        output: &Layout,
    ) -> Result<(*const u8, *mut u8), EngineError> {
        let from = match &buffers.input {
            Some(_) if buffers.is_resident => std::ptr::null(),
            Some(input) if self.options.overlap == Overlap::Ring && !input.is_pinned() => {
                flight.stage_input(&self.device, input.bytes())?
            }
            Some(input) => input.bytes().as_ptr(),
            None => [].as_ptr(),
        };
        let to = if !flight.is_downloaded {
            std::ptr::null_mut()
        } else if buffers.staged {
            flight.stage_output(&self.device, output.size())?
        } else {
            buffers.output.bytes_mut().as_mut_ptr()
        };
        Ok((from, to))
    }

    /// Enqueues a frame's upload, its steps and its download.
    fn enqueue(
        &mut self,
        slot: &mut Slot,
        flight: &mut Flight,
        buffers: &mut FrameBuffers,
        geometry: &Geometry,
        prepared: &Arc<ChainLaunch>,
        memory: MemoryVariant,
    ) -> Result<(), EngineError> {
        let mut work = self.work(slot, geometry, prepared, memory)?;
        let overlap = self.options.overlap;
        let resident = buffers.input.as_ref().filter(|_| buffers.is_resident);
        if let Some(frame) = resident.and_then(card_frame) {
            // The decoder's stream writes it.
            frame.ready().hold(&self.streams.compute)?;
            work.input = planes_in(frame.pointer(), &geometry.device_input);
        }
        let (from, to) = self.host_memory(flight, buffers, &geometry.host_output)?;
        let [up, compute, down] = self.streams.of(overlap);
        let serial = overlap != Overlap::Ring;
        let pause = |stream: &Stream| if serial { stream.synchronise() } else { Ok(()) };
        // On the stream whose end is waited for, so that the event is done when times are read.
        let first = if flight.is_uploaded { up } else { compute };
        let timed = flight.is_timed;
        if timed {
            self.times.before_upload(&self.device, first)?;
        }
        let marks = &mut flight.marks;
        let before = self.in_flight.iter().rfind(|other| other.slot == slot.id);
        // Where a copy follows upon work that is still in flight, that work's end is its start.
        let is_pending = |event: Option<&Event>| event.map_or(Ok(false), |e| e.is_done().map(|done| !done));
        if flight.is_uploaded {
            let free = before.map(|before| {
                if before.result_in_first {
                    before.marks.download.done()
                } else {
                    before.marks.kernel.done()
                }
            });
            let last = self.in_flight.back().map(|other| other.marks.upload.done());
            let follows = !serial && (is_pending(last)? || is_pending(free)?);
            if let Some(free) = free {
                up.wait_for(free)?;
            }
            marks.upload.begin(!follows, up)?;
            // SAFETY: the flight holds the input (or the slot its copy) until the upload's end was seen; the
            // picture has room for either layout.
            unsafe {
                slot::upload(
                    up,
                    from,
                    &geometry.host_input,
                    slot.pictures[0].pointer(),
                    &geometry.device_input,
                )?;
            }
            marks.upload.end(up, &self.streams.clocks[0], timed)?;
            pause(up)?;
            compute.wait_for(marks.upload.done())?;
        }
        if let Some(before) = before.filter(|before| before.is_downloaded) {
            compute.wait_for(before.marks.download.done())?;
        }
        let result = slot.pictures[prepared.step_count() % 2].pointer();
        marks.kernel.begin(timed, compute)?;
        slot.launches.run(work, compute)?;
        if let Some(frame) = card_frame(&buffers.output) {
            // SAFETY: the slot's picture and the frame's block are as large as the layout says, and whoever
            // writes to either waits for this stream.
            unsafe { slot::copy(compute, result, frame.pointer(), geometry.device_output.size()) }?;
            frame.ready().record(compute)?;
        }
        marks.kernel.end(compute, compute, timed)?;
        pause(compute)?;
        if !flight.is_downloaded {
            return Ok(());
        }
        // Behind a frame whose end is not known a copy has a start of its own.
        let is_known = self.in_flight.back().is_none_or(|last| last.is_timed);
        let follows = timed && is_known && !serial && is_pending(Some(marks.kernel.done()))?;
        down.wait_for(marks.kernel.done())?;
        marks.download.begin(timed && !follows, down)?;
        // SAFETY: the flight holds the output (or the slot its staging memory), and nobody reads it before
        // the download's end was seen.
        unsafe { slot::download(down, result, &geometry.device_output, to, &geometry.host_output)? };
        marks.download.end(down, &self.streams.clocks[1], timed)?;
        pause(down)
    }

    /// Waits for the oldest frame in flight and moves it to those that are ready.
    fn finish_oldest(&mut self) -> Result<(), EngineError> {
        let Some(mut flight) = self.in_flight.pop_front() else {
            return Ok(());
        };
        let marks = &flight.marks;
        let last = match (flight.is_downloaded, flight.is_timed) {
            (true, true) => marks.download.end_time(),
            (true, false) => marks.download.done(),
            (false, _) => marks.kernel.end_time(),
        };
        // The upload ended long before, but its time is taken on another stream. Where nothing is uploaded
        // the card's decoders are at work, whose threads want the driver.
        let ended = match flight.is_uploaded {
            true => last.wait().and_then(|()| marks.upload.end_time().wait()),
            false => last.wait_asleep(),
        };
        if let Err(error) = ended {
            // The copies may not have ended, and the frame's memory must not go back to its pool before they
            // have.
            self.wait_for_everything();
            self.idle.push(flight);
            return Err(error);
        }
        if let Some(mut buffers) = flight.buffers.take() {
            if buffers.staged {
                flight.unstage(&mut buffers.output);
            }
            match flight.is_timed {
                true => self.times.add(buffers.output.sequence, &flight, buffers.amount)?,
                false => self.times.pass(buffers.amount),
            }
            self.ready.push_back(buffers.output);
        }
        self.idle.push(flight);
        Ok(())
    }

    /// Gives back the memory of inputs that the card has read. They are read in order, so that the first one
    /// that is not answers for the rest.
    fn release_inputs(&mut self) -> Result<(), EngineError> {
        for flight in &mut self.in_flight {
            if !flight.release_input()? {
                break;
            }
        }
        Ok(())
    }

    /// A frame whose picture lies on the card, as the guest of `buffer`.
    fn frame_on_card(&mut self, layout: &Layout, mut buffer: Buffer) -> Result<Frame, EngineError> {
        let fitting = self.results.take_if(|blocks| blocks.size() == layout.size());
        let blocks = fitting.unwrap_or_else(|| Arc::new(Blocks::new(&self.device, layout.size())));
        buffer.host(Box::new(blocks.take(&self.streams.compute)?));
        self.results = Some(blocks);
        Ok(Frame::new(*layout, buffer)?)
    }

    fn wait_for_everything(&self) {
        if self.device.bind().is_ok() {
            let Streams {
                upload,
                compute,
                download,
                clocks,
            } = &self.streams;
            for stream in [upload, compute, download].into_iter().chain(clocks) {
                if let Err(error) = stream.synchronise() {
                    tracing::debug!("while stopping: {error}");
                }
            }
        }
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
            Overlap::Ring => format!("{} slots", self.slots.len()),
            Overlap::SerialPinned => "no overlap, pinned memory".to_owned(),
            Overlap::SerialPageable => "no overlap, pageable memory".to_owned(),
        };
        let (major, minor) = info.compute_capability;
        let kept = match self.options.keeps_results {
            true => ", results stay on the card",
            false => "",
        };
        format!(
            "cuda: {} (compute capability {major}.{minor}), memory variant {}, {how}{kept}",
            info.name, self.options.memory
        )
    }

    fn depth(&self) -> usize {
        self.idle.len() + self.in_flight.len()
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        self.allocator(self.options.write_combined)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        match self.options.keeps_results {
            // Which nobody writes to, so that it costs nothing.
            true => Arc::new(Pageable),
            false => self.allocator(false),
        }
    }

    fn expect(&mut self, frame: &Layout, colour: &Colour) {
        let key = self.plan_key(frame, colour);
        let made = self.device.bind();
        let made = made.and_then(|()| self.prepare(key, (frame.width(), frame.height())));
        self.refused = made.err().map(|error| (self.plan_key(frame, colour), error));
    }

    fn is_home_of(&self, frame: &Frame) -> bool {
        card_frame(frame).is_some_and(|frame| frame.is_on(&self.device))
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        self.device.bind()?;
        self.release_inputs()?;
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
        let prepared = self.prepare(key, (input.layout().width(), input.layout().height()))?;
        let downloads = !self.options.keeps_results;
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
        let mut buffers = FrameBuffers {
            amount: Amount {
                bytes_up: moved(!is_resident, &geometry.host_input, &geometry.device_input),
                bytes_down: moved(downloads, &geometry.host_output, &geometry.device_output),
                samples: prepared.convolved_samples(input.layout().planes()),
            },
            staged: downloads && self.options.overlap == Overlap::Ring && !result.is_pinned(),
            is_resident,
            input: Some(input),
            output: result,
        };
        let need = geometry.device_input.size().max(geometry.device_output.size());
        let mut slot = self.take_slot(need, &geometry)?;
        let mut flight = loop {
            match self.idle.pop() {
                Some(flight) => break flight,
                None => self.finish_oldest()?,
            }
        };
        flight.slot = slot.id;
        flight.result_in_first = prepared.step_count().is_multiple_of(2);
        (flight.is_uploaded, flight.is_downloaded) = (!is_resident, downloads);
        let is_sampled = self.options.samples_times && is_resident && self.options.overlap == Overlap::Ring;
        flight.is_timed = !is_sampled || number.is_multiple_of(SAMPLE);
        let enqueued = self.enqueue(&mut slot, &mut flight, &mut buffers, &geometry, &prepared, memory);
        if enqueued.is_err() {
            // A part may be in flight, and it must not outlive the frames' memory.
            self.wait_for_everything();
        }
        self.slots.push_back(slot);
        if let Err(error) = enqueued {
            self.idle.push(flight);
            return Err(error);
        }
        flight.buffers = Some(buffers);
        self.in_flight.push_back(flight);
        Ok(())
    }

    fn explanation(&mut self) -> Vec<String> {
        std::mem::take(&mut self.explanation)
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        self.device.bind()?;
        if self.ready.is_empty() {
            self.finish_oldest()?;
        }
        self.release_inputs()?;
        Ok(self.ready.pop_front())
    }

    fn ranges(&self) -> Option<Arc<dyn Ranges>> {
        nvtx::ranges()
    }

    fn device_times(&mut self) -> Option<DeviceTimes> {
        Some(self.times.summary(self.slots.len()))
    }

    fn restart(&mut self) -> Result<(), EngineError> {
        self.device.bind()?;
        self.times = Times::new(&self.device);
        self.count = 0;
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
        self.wait_for_everything();
    }
}

/// The frame's memory on a card, if it lies on one.
fn card_frame(frame: &Frame) -> Option<&CardFrame> {
    frame.on_device()?.downcast_ref()
}

/// Where the planes of a frame are that lies on the card at `pointer`.
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
