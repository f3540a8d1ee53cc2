//! Filters pictures of another library in place on the card, on that library's stream.
//!
//! ```text
//! caller's stream   ... makes the picture | step 0 | step 1 | step 2 | uses the result ...
//!                                 source ---'   between[0] between[1]  `--> target
//! engine's stream                                                    `- waits for the last step
//! ```
//!
//! The host waits for nothing: the stream does what the caller enqueued before the call first, and what it
//! enqueues after it last. The pictures between steps and the kernels' intermediate ones belong to the
//! filter: a call on another stream waits for the call before it, which may still be using them.
#![allow(unsafe_code)]

use super::options::CudaOptions;
use super::{Cuda, card_frame, planes_in};
use crate::engine::EngineError;
use crate::engine::cuda::driver::dependency::TrackedStream;
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::engine::cuda::driver::pictures::card_frame::CardFrame;
use crate::engine::cuda::driver::pictures::picture::{Arrangement, Picture};
use crate::engine::cuda::driver::pictures::texture::ALIGNMENT;
use crate::engine::cuda::driver::stream::{Event, Stream};
use crate::engine::cuda::kernels::variant::MemoryVariant;
use crate::engine::cuda::launch::StepBuffers;
use crate::engine::wrappers::luma;
use crate::filter::Chain;
use crate::frame::{Buffer, Colour, Frame, Layout, Memory, Plane};

/// A picture on a card.
#[derive(Debug, Clone, Copy)]
pub struct CardPicture {
    /// The address on the card from which the layout counts its bytes.
    pub pointer: u64,
    /// The layout of its planes.
    pub layout: Layout,
}

impl CardPicture {
    /// An error if rows do not begin at whole samples.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let sample = self.layout.format().bytes_per_sample();
        let begins = |plane: &Plane| self.pointer as usize + plane.offset;
        let is_whole =
            |plane: &Plane| begins(plane).is_multiple_of(sample) && plane.stride.is_multiple_of(sample);
        match self.layout.planes().iter().all(is_whole) {
            true => Ok(()),
            false => Err(EngineError::Device {
                doing: "reading a picture on the CUDA device".to_owned(),
                reason: format!("its rows do not begin at multiples of {sample} bytes, a sample's size"),
            }),
        }
    }
}

/// Filters pictures in place on a card, one after another, of any sizes and formats.
pub struct CardFilter {
    // When it is dropped it waits for all enqueued work, and so it goes before the memory that may be in use.
    cuda: Cuda,
    /// The results of all steps but the last.
    between: [Picture; 2],
    /// The event at the end of what was enqueued last.
    done: Event,
}

impl CardFilter {
    /// Filters by `chain` on card number `device`.
    pub fn new(chain: Chain, device: usize) -> Result<CardFilter, EngineError> {
        let options = CudaOptions {
            device,
            memory: MemoryVariant::Auto,
            ..CudaOptions::default()
        };
        let cuda = Cuda::new(chain, options)?;
        Ok(CardFilter {
            done: Event::untimed(&cuda.device)?,
            cuda,
            between: Default::default(),
        })
    }

    /// Enqueues the filters on `stream`, a handle of a stream on the card, or 0 or 1 for the driver's legacy
    /// default stream, 2 for its per-thread default stream. Bytes between rows of `target` are not written.
    ///
    /// An error if luma of RGB is chosen, which no kernel computes; if the pictures differ in size or format;
    /// if the card is short of memory, or fails.
    ///
    /// # Safety
    ///
    /// Both pictures lie on the filter's card and do not overlap. They stay there until what was enqueued is
    /// done, and until then nobody writes to `source`, and nobody uses `target`, but on `stream` after this
    /// call.
    pub unsafe fn filter(
        &mut self,
        source: &CardPicture,
        target: &CardPicture,
        stream: usize,
    ) -> Result<(), EngineError> {
        let shape = |picture: &CardPicture| {
            let layout = &picture.layout;
            (layout.width(), layout.height(), layout.format())
        };
        if shape(source) != shape(target) {
            let words = |(width, height, format)| format!("{width}x{height} {format}");
            return Err(EngineError::Mismatch {
                input: words(shape(source)),
                output: words(shape(target)),
            });
        }
        let (width, height, format) = shape(source);
        if luma::filtered_format(format, &self.cuda.plans.chain.planes) != format {
            return Err(EngineError::Unfit(
                "luma of RGB is computed by the processor; filter such pictures in the host's memory"
                    .to_owned(),
            ));
        }
        source.check()?;
        target.check()?;
        let cuda = &mut self.cuda;
        cuda.device.bind()?;
        let tight = Layout::new(format, width, height, 1)?;
        let aligned = cuda.geometry(&tight, ALIGNMENT)?.device_output;
        let is_new = !cuda.scratch.serves(&aligned);
        let launch = cuda.prepare(cuda.plan_key(&aligned, &Colour::default()), (width, height))?;
        // For another layout, waits for the work that may be using the memory.
        let scratch = cuda.scratch(&launch, &aligned, false)?;
        let steps = launch.step_count();
        let arrangement = Arrangement::of(&aligned);
        let mut places = [planes_in(source.pointer, &source.layout); 2];
        for (picture, place) in self
            .between
            .iter_mut()
            .zip(&mut places)
            .take(steps.saturating_sub(1))
        {
            if is_new && !picture.fit(&cuda.device, aligned.size())? {
                cuda.scratch.forget_layout();
                return Err(cuda.memory_short(aligned.size(), &aligned));
            }
            *place = picture.device_planes(&cuda.device, &arrangement, None)?;
        }
        let mut result = planes_in(target.pointer, &target.layout);
        for (index, (place, plane)) in result.iter_mut().zip(target.layout.planes()).enumerate() {
            place.keeps_padding = plane.stride > target.layout.row_bytes(index);
        }
        let stream = Stream::of_another(&cuda.device, stream);
        stream.wait_for(&self.done)?;
        let tracked = TrackedStream::new(stream.handle());
        let mut enqueued = Ok(());
        for index in 0..steps {
            let from = match index {
                0 => planes_in(source.pointer, &source.layout),
                _ => places[(index - 1) % 2],
            };
            let to = if index + 1 == steps {
                result
            } else {
                places[index % 2]
            };
            let buffers = StepBuffers {
                layout: &aligned,
                source: &from,
                result: &to,
                scratch: &scratch,
                stream: &tracked,
            };
            enqueued = launch.run(index, &buffers);
            if enqueued.is_err() {
                break;
            }
        }
        // After an error, too: whoever waits for the engine's stream waits for what was enqueued.
        self.done.record(&stream)?;
        cuda.ring.streams.compute.wait_for(&self.done)?;
        enqueued
    }

    /// Waits on the host until all that was enqueued is done.
    pub fn wait(&self) -> Result<(), EngineError> {
        self.cuda.device.bind()?;
        self.done.wait()
    }
}

/// A block of a card's memory that other libraries use by its address.
pub struct CardMemory(Held);

/// The owner of the block.
enum Held {
    Own(DeviceMemory),
    /// A frame's buffer, and the block's address.
    Frame {
        buffer: Buffer,
        pointer: u64,
    },
}

impl CardMemory {
    /// `len` uninitialised bytes on card number `device`, for a result.
    pub fn new(device: usize, len: usize) -> Result<CardMemory, EngineError> {
        let device = Device::open(device)?;
        let memory = DeviceMemory::uncleared(&device, len)?;
        let own = memory.map(|memory| CardMemory(Held::Own(memory)));
        own.ok_or_else(|| EngineError::Device {
            doing: format!("making room for a result of {len} bytes on the CUDA device"),
            reason: "it has not got as much".to_owned(),
        })
    }

    /// The memory of a frame, and the number of its card; the frame itself if it lies on no card. The frame's
    /// buffer goes back to its pool. Waits until the picture is complete.
    pub fn of_frame(frame: Frame) -> Result<Result<(CardMemory, usize), Frame>, EngineError> {
        let Some(card) = card_frame(&frame) else {
            return Ok(Err(frame));
        };
        card.wait()?;
        let (pointer, ordinal) = (card.lend(), card.ordinal());
        let buffer = frame.into_parts().1.detached();
        Ok(Ok((CardMemory(Held::Frame { buffer, pointer }), ordinal)))
    }

    /// A block whose content is complete.
    pub(super) fn lent(card: CardFrame) -> CardMemory {
        let pointer = card.lend();
        let buffer = Buffer::unpooled(Box::new(card));
        CardMemory(Held::Frame { buffer, pointer })
    }

    /// True if it lies on that card and has at least `len` bytes.
    pub(super) fn holds(&self, device: &Device, len: usize) -> bool {
        match &self.0 {
            Held::Own(memory) => memory.is_on(device) && memory.len() >= len,
            Held::Frame { buffer, .. } => {
                card_frame_in(buffer).is_some_and(|card| card.is_on(device) && card.size() >= len)
            }
        }
    }

    /// The address of its first byte.
    pub fn pointer(&self) -> u64 {
        match &self.0 {
            Held::Own(memory) => memory.pointer(),
            Held::Frame { pointer, .. } => *pointer,
        }
    }

    /// A copy on the host, after all work on the card that was enqueued before.
    pub fn fetch(&self) -> Result<Vec<u8>, EngineError> {
        match &self.0 {
            Held::Own(memory) => {
                let mut bytes = vec![0; memory.len()];
                memory.read(memory.pointer(), &mut bytes)?;
                Ok(bytes)
            }
            Held::Frame { buffer, .. } => match card_frame_in(buffer) {
                Some(card) => {
                    card.wait_for_all()?;
                    card.fetch()
                }
                None => Ok(buffer.bytes().to_vec()),
            },
        }
    }
}

/// A buffer's memory on a card, if it lies on one.
fn card_frame_in(buffer: &Buffer) -> Option<&CardFrame> {
    buffer.on_device()?.downcast_ref()
}
