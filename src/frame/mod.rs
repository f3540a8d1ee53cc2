//! Frames: pixel formats, plane geometry, colour facts, and the memory that holds the pixels.

mod concealed;
mod decoded;
mod facts;
mod format;
mod hash;
mod image;
mod memory;
mod remarks;
mod time;

pub use crate::messages::metadata_limit::METADATA_LIMIT;
#[cfg(feature = "ffmpeg")]
pub(crate) use crate::messages::metadata_limit::too_large;
pub use concealed::Concealed;
pub use decoded::Decoded;
pub use facts::{AlphaKind, Colour, Range, Turn, TurnError, UnknownMatrix, fact};
#[cfg(feature = "ffmpeg")]
pub(crate) use facts::{CHROMA_CENTRE, CHROMA_LEFT, levels, usual_matrix, yuv_of_rgb};
pub(crate) use facts::{RangeChange, YCGCO, luma_of_rgb, rgb_of_yuv};
pub use format::{
    Channel, ColourModel, Layout, LayoutError, MAX_CHANNELS, MAX_PLANES, PixelFormat, Plane, PlaneFormat,
    SampleKind, UnknownPixelFormat, float,
};
pub use hash::{ContentHash, content_hash};
pub use image::{Image, ImageMut};
pub use memory::{
    AllocationError, Allocator, Buffer, DeviceHandle, FramePool, Memory, Pageable, Reserve, Shared, Stopped,
};
pub use remarks::{Remarks, Warning, WarningKind};
pub(crate) use time::SECOND;
#[cfg(feature = "images")]
pub(crate) use time::gcd;
pub use time::{BadRate, InvalidPoint, Point, Rational, Skipped, parse_rate};

#[cfg(feature = "ffmpeg")]
use crate::annotations::Annotations;
#[cfg(feature = "images")]
use crate::annotations::exr::ExrPart;
use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Which field of an interlaced frame comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldOrder {
    /// Not interlaced.
    #[default]
    Progressive,
    /// Interlaced, top field first.
    TopFirst,
    /// Interlaced, bottom field first.
    BottomFirst,
    /// Interlaced, top field first, with the lines of both fields in turn: Matroska's 9, FFmpeg's TB.
    /// FFmpeg's header calls it bottom first, but its programs and encoders follow Matroska.
    TopFirstInterleaved,
    /// Interlaced, bottom field first, with the lines of both fields in turn: Matroska's 14, FFmpeg's BT.
    BottomFirstInterleaved,
    /// Of a stream: each frame states its own order.
    Mixed,
}

impl FieldOrder {
    /// True if the top field is shown first; `None` for progressive and mixed pictures.
    pub fn shows_top_first(self) -> Option<bool> {
        match self {
            FieldOrder::TopFirst | FieldOrder::TopFirstInterleaved => Some(true),
            FieldOrder::BottomFirst | FieldOrder::BottomFirstInterleaved => Some(false),
            FieldOrder::Progressive | FieldOrder::Mixed => None,
        }
    }

    /// True if even and odd rows are of different times: each row of chroma belongs to one of the fields.
    pub fn is_interlaced(self) -> bool {
        self.shows_top_first().is_some()
    }
}

/// A block of data that a source attaches to a frame and a sink of the same kind understands; nothing between
/// reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideData {
    /// The kind's number in the library that made it.
    pub kind: u32,
    /// What it is about.
    pub fact: fact::Fact,
    /// The library's name of a kind that is not passed on.
    pub name: Option<String>,
    /// The block.
    pub data: Arc<[u8]>,
}

/// Everything that a frame carries besides its pixels.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Metadata {
    /// Presentation time in the stream's time base.
    pub pts: Option<i64>,
    /// How long the frame is shown, in the stream's time base.
    pub duration: Option<i64>,
    /// What of the input was left out before the frame.
    pub skipped: Skipped,
    /// Colour facts.
    pub colour: Colour,
    /// Width over height of a pixel; (0, 1) if unknown.
    pub sample_aspect: (i32, i32),
    /// Field order.
    pub field_order: FieldOrder,
    /// The file that the frame came from, for image sequences.
    pub file: Option<Arc<PathBuf>>,
    /// An embedded ICC profile.
    pub icc_profile: Option<Arc<[u8]>>,
    /// Exif orientation, 1 to 8; 1 is upright.
    pub orientation: Option<u8>,
    /// Metadata of an image file: Exif, XMP, resolution, texts, PNG's colour description.
    #[cfg(feature = "ffmpeg")]
    pub annotations: Option<Arc<Annotations>>,
    /// Metadata of an OpenEXR file.
    #[cfg(feature = "images")]
    pub exr: Option<Arc<ExrPart>>,
    /// Blocks that only source and sink understand (HDR metadata, captions).
    pub side_data: Vec<SideData>,
    /// The frame only keeps the place of an image file that could not be read; nothing is written for it.
    pub stands_in: bool,
    /// Some sample of the input is infinite or no number, so that results may be, too.
    pub has_no_numbers: bool,
}

impl Metadata {
    /// The place in the input of a frame that is the `sequence`th of the run, counted from 0; `None` if the
    /// frames before it were not counted.
    pub fn place(&self, sequence: u64) -> Option<u64> {
        Some(self.skipped.frames?.saturating_add(sequence))
    }

    /// H.273's number of the primaries: those of the colour facts, else those that a PNG file states.
    pub(crate) fn primaries(&self) -> u8 {
        #[cfg(feature = "ffmpeg")]
        if self.colour.primaries == Colour::default().primaries
            && let Some(primaries) = self.annotations.as_ref().and_then(|said| said.primaries())
        {
            return primaries;
        }
        self.colour.primaries
    }
}

/// One picture on its way through the pipeline.
pub struct Frame {
    /// Position in the run, counted from 0 without gaps.
    pub sequence: u64,
    /// Everything besides the pixels.
    pub metadata: Metadata,
    /// When the source began to make this frame: the start of its end-to-end latency.
    pub born: Instant,
    /// The decoder that made it, if a source has several.
    pub decoded: Option<Decoded>,
    layout: Layout,
    buffer: Buffer,
}

impl Frame {
    /// A frame in `buffer`, which is grown if it is too small. The pixels keep the previous content of the
    /// buffer.
    pub fn new(layout: Layout, mut buffer: Buffer) -> Result<Frame, AllocationError> {
        buffer.fit(layout.size())?;
        Ok(Frame {
            sequence: 0,
            metadata: Metadata::default(),
            born: Instant::now(),
            decoded: None,
            layout,
            buffer,
        })
    }

    /// Where the planes lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The pixel format.
    pub fn format(&self) -> PixelFormat {
        self.layout.format()
    }

    /// The frame's memory, `layout().size()` bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[..self.layout.size()]
    }

    /// The frame's memory, to write into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[..self.layout.size()]
    }

    /// True if the pixels lie in page-locked memory.
    pub fn is_pinned(&self) -> bool {
        self.buffer.is_pinned()
    }

    /// Where the pixels lie on a device, as a type that the device's engine knows; `None` for memory of the
    /// host.
    pub fn on_device(&self) -> Option<&dyn Any> {
        self.buffer.on_device()
    }

    /// Row `y` of plane `index`, without its padding.
    pub fn row(&self, index: usize, y: usize) -> &[u8] {
        let plane = self.layout.planes()[index];
        let start = plane.offset + y * plane.stride;
        &self.bytes()[start..start + self.layout.row_bytes(index)]
    }

    /// Row `y` of plane `index`, without its padding, to write into.
    pub fn row_mut(&mut self, index: usize, y: usize) -> &mut [u8] {
        let plane = self.layout.planes()[index];
        let start = plane.offset + y * plane.stride;
        let len = self.layout.row_bytes(index);
        &mut self.bytes_mut()[start..start + len]
    }

    /// The rows of each plane, without their padding, to be written to side by side. The planes lie in the
    /// format's order, as in each [`Layout::new`].
    pub(crate) fn plane_rows_mut(&mut self) -> Vec<Vec<&mut [u8]>> {
        let layout = self.layout;
        let mut rest = self.bytes_mut();
        let mut begin = 0;
        let mut planes = Vec::with_capacity(layout.planes().len());
        for (index, plane) in layout.planes().iter().enumerate() {
            let mut rows = Vec::with_capacity(plane.height);
            for y in 0..plane.height {
                let start = plane.offset + y * plane.stride;
                let (row, behind) = rest[start - begin..].split_at_mut(layout.row_bytes(index));
                begin = start + row.len();
                rows.push(row);
                rest = behind;
            }
            planes.push(rows);
        }
        planes
    }

    /// The integer sample of `channel` (an index into the plane's interleaved samples) at (`x`, `y`) of plane
    /// `index`.
    pub fn sample(&self, index: usize, x: usize, y: usize, channel: usize) -> u16 {
        let at = x * self.layout.planes()[index].channels + channel;
        let row = self.row(index, y);
        match self.format().bytes_per_sample() {
            1 => u16::from(row[at]),
            _ => u16::from_le_bytes([row[2 * at], row[2 * at + 1]]) >> self.format().shift(),
        }
    }

    /// True if no pixel lets anything through: there is no alpha, or it is at its largest everywhere.
    pub fn is_opaque(&self) -> bool {
        let most = self.format().max_value();
        self.every_alpha(|alpha| alpha == most)
    }

    /// True if every pixel is either opaque or lets everything through.
    pub fn is_cut_out(&self) -> bool {
        let most = self.format().max_value();
        self.every_alpha(|alpha| alpha == 0 || alpha == most)
    }

    fn every_alpha(&self, holds: impl Fn(u32) -> bool) -> bool {
        let format = self.format();
        let bytes = format.bytes_per_sample();
        let of_float = |alpha: f32| match alpha {
            1.0.. => format.max_value(),
            ..=0.0 => 0,
            _ => 1,
        };
        let alpha = |sample: &[u8]| match *sample {
            [a, b, c, d] => of_float(f32::from_le_bytes([a, b, c, d])),
            [low, high] if format.is_float() => of_float(half::f16::from_le_bytes([low, high]).to_f32()),
            [low, high] => u32::from(u16::from_le_bytes([low, high])) >> format.shift(),
            [byte] => u32::from(byte),
            _ => 0,
        };
        format.planes().iter().enumerate().all(|(index, plane)| {
            let Some(at) = plane.channels.iter().position(|&c| c == Channel::Alpha) else {
                return true;
            };
            let (pixel, at) = (plane.channels.len() * bytes, at * bytes);
            (0..self.layout.planes()[index].height).all(|y| {
                let row = self.row(index, y);
                row.chunks_exact(pixel).all(|p| holds(alpha(&p[at..at + bytes])))
            })
        })
    }

    /// Takes the frame apart, so that its memory can be used for another one.
    pub fn into_parts(self) -> (Metadata, Buffer) {
        (self.metadata, self.buffer)
    }
}
