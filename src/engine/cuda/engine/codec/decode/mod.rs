//! Frames of the card's decoders, which the engine filters in place.
//!
//! A decoder owns few surfaces and needs them back soon, while a frame may wait long for its turn. So each
//! surface is converted to the planes of a frame at once, on the decoder's own stream: a kernel deinterleaves
//! chroma and shifts samples to the low bits.
//!
//! ```text
//! decoder's stream   surface 0 -> frame 0 | surface 1 -> frame 1 | ...      `DecoderStream`
//!                         '- given back when the kernel is done
//! engine                  waits, on the card, for `ready` of a frame        `driver::pictures::card_frame`
//! ```
//!
//! All decoders of a card share the blocks of frames.

mod capabilities;

pub use capabilities::{Capabilities, Codec, capabilities};

use crate::engine::EngineError;
use crate::engine::cuda::compile::cache::Cache;
use crate::engine::cuda::compile::{Recipe, Source};
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::engine::cuda::driver::module::{Function, Module};
use crate::engine::cuda::driver::pictures::card_frame::{Blocks, Ready};
use crate::engine::cuda::driver::pictures::texture::ALIGNMENT;
use crate::engine::cuda::driver::stream::Stream;
use crate::engine::cuda::launch::parameters;
use crate::frame::{Layout, Memory, PixelFormat};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;

/// Formats of frames to which surfaces are converted, and the unused low bits of a surface's samples.
const FORMATS: [(PixelFormat, i64); 3] = [
    (PixelFormat::YUV420P, 0),
    (PixelFormat::YUV420P10, 6),
    (PixelFormat::YUV420P12, 4),
];

/// Surfaces whose kernels may be in flight, and the number for which the host waits at a time.
const IN_FLIGHT: usize = 4;
const AT_A_TIME: usize = 2;

/// A decoder's picture: rows of luma, and rows of interleaved chroma. Samples of more than eight bits lie in
/// the high bits of 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surface {
    /// The addresses of the first bytes of luma and of chroma on the card.
    pub planes: [u64; 2],
    /// Bytes from row to row of either.
    pub pitches: [usize; 2],
}

/// Bits by which samples of a surface are shifted for frames of `format`; an error says that decoders of a
/// card make no such frames.
pub fn shift_for(format: PixelFormat) -> Result<i64, EngineError> {
    let known = FORMATS.iter().find(|(known, _)| *known == format);
    known
        .map(|&(_, shift)| shift)
        .ok_or_else(|| EngineError::Unfit(format!("the card's decoders make no frames of {format}")))
}

/// A card, with the things that its decoders share.
#[derive(Clone)]
pub struct DecoderCard {
    device: Arc<Device>,
    blocks: Arc<Blocks>,
    function: Function,
    /// The module of the function.
    _kernels: Arc<Module>,
    /// The layout of frames on the card.
    layout: Layout,
}

impl DecoderCard {
    /// Card number `ordinal`, for frames of `format`, `width` pixels across and `height` rows. An error says
    /// why the card cannot make such frames.
    pub fn open(
        ordinal: usize,
        format: PixelFormat,
        (width, height): (usize, usize),
    ) -> Result<DecoderCard, EngineError> {
        let shift = shift_for(format)?;
        let layout = Layout::new(format, width, height, ALIGNMENT)?;
        let device = Device::open(ordinal)?;
        let recipe = Recipe {
            source: Source::Surface,
            parameters: vec![
                ("SAMPLE_BYTES", format.bytes_per_sample() as i64),
                ("SHIFT", shift),
            ],
        };
        let kernels = Module::load(&device, &recipe.image(&device, &Cache::of_user())?)?;
        Ok(DecoderCard {
            blocks: Arc::new(Blocks::new(&device, layout.size())),
            function: kernels.function(c"to_planes")?,
            _kernels: Arc::new(kernels),
            device,
            layout,
        })
    }

    /// The card's number.
    pub fn ordinal(&self) -> usize {
        self.device.info.ordinal
    }

    /// Bytes of its memory that are free.
    pub fn free_bytes(&self) -> Result<u64, EngineError> {
        self.device.memory().map(|(free, _)| free)
    }

    /// Bytes of a frame on the card.
    pub fn frame_bytes(&self) -> usize {
        self.layout.size()
    }

    /// A stream for one decoder.
    pub fn stream(&self) -> Result<DecoderStream, EngineError> {
        Ok(DecoderStream {
            stream: Arc::new(Stream::new(&self.device)?),
            in_flight: VecDeque::new(),
            card: self.clone(),
        })
    }

    /// A surface that holds `luma` and `chroma`, and its memory, for tests without a decoder.
    #[doc(hidden)]
    pub fn surface(
        &self,
        (luma, chroma): (&[u8], &[u8]),
        pitches: [usize; 2],
    ) -> Result<(Surface, Box<dyn Send>), EngineError> {
        let mut memory = Vec::new();
        for bytes in [luma, chroma] {
            let block = DeviceMemory::try_new(&self.device, bytes.len())?;
            let block = block.ok_or_else(|| EngineError::Unavailable("the card is full".to_owned()))?;
            block.write(bytes)?;
            memory.push(block);
        }
        let surface = Surface {
            planes: [memory[0].pointer(), memory[1].pointer()],
            pitches,
        };
        Ok((surface, Box::new(memory)))
    }
}

/// A stream for another library's use.
pub struct StreamHandles {
    /// The context of the stream.
    pub context: *mut c_void,
    /// The stream.
    pub stream: *mut c_void,
    /// Keeps both alive.
    pub owner: Box<dyn Send>,
}

/// A surface that a kernel may still be reading.
struct InFlight {
    ready: Arc<Ready>,
    /// The number of the record after the kernel.
    number: u64,
    _owner: Box<dyn Send>,
}

/// The stream of one decoder, and the surfaces that its kernels still read.
pub struct DecoderStream {
    // `drop` waits for what is in flight, before the fields are dropped.
    in_flight: VecDeque<InFlight>,
    stream: Arc<Stream>,
    card: DecoderCard,
}

impl DecoderStream {
    /// The stream, for the library that decodes.
    pub fn handles(&self) -> StreamHandles {
        StreamHandles {
            context: self.card.device.context().cast(),
            stream: self.stream.handle().cast(),
            owner: Box::new(Arc::clone(&self.stream)),
        }
    }

    /// Converts `surface`, which has the size of the card's frames, to a frame. `owner` keeps the surface
    /// until it has been read. Only enqueues: whoever uses the frame waits for it.
    pub fn take(
        &mut self,
        surface: &Surface,
        owner: Box<dyn Send>,
    ) -> Result<(Layout, Box<dyn Memory>), EngineError> {
        let card = &self.card;
        card.device.bind_once()?;
        let aligned = surface.planes.iter().all(|plane| plane.is_multiple_of(16))
            && surface.pitches.iter().all(|pitch| pitch.is_multiple_of(16));
        if !aligned {
            return Err(EngineError::Device {
                doing: "reading a decoded surface".to_owned(),
                reason: "its rows do not begin at multiples of 16 bytes".to_owned(),
            });
        }
        let layout = card.layout;
        let frame = card.blocks.take(&self.stream)?;
        let mut parameters = parameters::Surface {
            luma: surface.planes[0],
            chroma: surface.planes[1],
            luma_pitch: surface.pitches[0] as i64,
            chroma_pitch: surface.pitches[1] as i64,
            width: layout.width() as i32,
            height: layout.height() as i32,
            ..parameters::Surface::default()
        };
        let places = parameters.plane.iter_mut().zip(&mut parameters.pitch);
        for ((place, pitch), plane) in places.zip(layout.planes()) {
            *place = frame.pointer() + plane.offset as u64;
            *pitch = plane.stride as i64;
        }
        let bytes = layout.format().bytes_per_sample();
        parameters::to_planes(card.function, bytes, self.stream.handle(), parameters)?;
        let ready = Arc::clone(frame.ready());
        let number = ready.record(&self.stream)?;
        if self.in_flight.len() >= IN_FLIGHT {
            self.give_back()?;
        }
        self.in_flight.push_back(InFlight {
            ready,
            number,
            _owner: owner,
        });
        Ok((layout, Box::new(frame)))
    }

    /// Waits until the oldest surfaces have been read, and gives them back. They are read in order, so that
    /// it waits for the last of them.
    fn give_back(&mut self) -> Result<(), EngineError> {
        if let Some(last) = self.in_flight.get(AT_A_TIME - 1) {
            last.ready.wait(last.number)?;
        }
        for surface in self.in_flight.drain(..AT_A_TIME) {
            surface.ready.saw(surface.number);
        }
        Ok(())
    }
}

impl Drop for DecoderStream {
    fn drop(&mut self) {
        // Surfaces may be freed only when they have been read, and the module when none of its kernels runs.
        let waited = self.card.device.bind().and_then(|()| self.stream.synchronise());
        if let Err(error) = waited {
            tracing::debug!("while a decoder ends: {error}");
        }
    }
}

impl std::fmt::Debug for DecoderCard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DecoderCard({})", self.device.info.name)
    }
}
