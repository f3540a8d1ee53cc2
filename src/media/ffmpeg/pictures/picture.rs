//! Uncompressed pictures in FFmpeg's hands.
#![allow(unsafe_code)]

use super::format::range_number;
use super::side_data::{frame_fact, frame_kind, frame_kind_name};
use crate::frame::fact::Fact;
use crate::frame::{Colour, FieldOrder, Frame, METADATA_LIMIT, Range, SideData};
use crate::media::ffmpeg::text::timestamp;
use crate::media::ffmpeg::{AvError, AvFormat, version};
use ffmpeg_next::ffi;
use std::ffi::c_int;
use std::ptr;

/// An uncompressed picture in FFmpeg's hands.
pub(crate) struct Picture {
    frame: *mut ffi::AVFrame,
}

// SAFETY: a frame is plain memory and reference counts that are atomic.
unsafe impl Send for Picture {}

impl Picture {
    /// A picture without pixels.
    pub(crate) fn new() -> Result<Picture, AvError> {
        // SAFETY: allocates; null is refused.
        let frame = unsafe { ffi::av_frame_alloc() };
        if frame.is_null() {
            return Err(AvError::no_memory());
        }
        Ok(Picture { frame })
    }

    /// A picture with room for its pixels, padded as FFmpeg's fast loops need it.
    pub(crate) fn allocate(format: AvFormat, width: usize, height: usize) -> Result<Picture, AvError> {
        let picture = Picture::new()?;
        let size = |v: usize| c_int::try_from(v).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)));
        // SAFETY: the frame is valid and empty.
        unsafe {
            (*picture.frame).format = format.0;
            (*picture.frame).width = size(width)?;
            (*picture.frame).height = size(height)?;
            AvError::check(ffi::av_frame_get_buffer(picture.frame, 0))?;
        }
        Ok(picture)
    }

    /// Fills the picture with a faint pattern whose values exist in any format. Not with one value, since
    /// some codecs' own decoders do not read that back.
    pub(crate) fn fill(&mut self) {
        for buffer in &self.raw().buf {
            // SAFETY: a buffer of the picture's, which was made by `allocate` and is borrowed mutably, has
            // `size` bytes.
            unsafe {
                if let Some(buffer) = buffer.as_ref() {
                    for at in 0..buffer.size {
                        // 0 and 1 in bytes, 256 in words, which 9 bits hold.
                        buffer.data.add(at).write(u8::from(at % 2 == 1));
                    }
                }
            }
        }
    }

    /// The raw frame, for the encoder.
    pub(crate) fn as_ptr(&self) -> *mut ffi::AVFrame {
        self.frame
    }

    pub(in crate::media::ffmpeg) fn raw(&self) -> &ffi::AVFrame {
        // SAFETY: the frame is valid as long as `self` lives.
        unsafe { &*self.frame }
    }

    /// Gives up the pixels.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the frame is valid.
        unsafe { ffi::av_frame_unref(self.frame) };
    }

    /// The pixel format.
    pub(crate) fn format(&self) -> AvFormat {
        AvFormat(self.raw().format)
    }

    /// Calls planes green, blue and red that the matrix 0 of H.273 says are, where the decoder calls them
    /// luma and chroma: of 4:4:4 they are the same planes in the same order.
    pub(in crate::media::ffmpeg) fn name_green_blue_red(&mut self) {
        const IDENTITY: u8 = 0;
        if self.colour().matrix != IDENTITY {
            return;
        }
        let name = self.format().name();
        let depth = |family: &str| name.strip_prefix(family).map(str::to_owned);
        let named = depth("yuv444p")
            .or_else(|| depth("yuvj444p"))
            .map(|depth| format!("gbrp{depth}"))
            .or_else(|| Some(format!("gbrap{}", depth("yuva444p")?)));
        if let Some(format) = named.and_then(|name| AvFormat::from_name(&name)) {
            // SAFETY: the frame is valid and borrowed mutably; both formats have the same planes.
            unsafe { (*self.frame).format = format.0 };
        }
    }

    /// Pixels across.
    pub(crate) fn width(&self) -> usize {
        self.raw().width.max(0) as usize
    }

    /// Rows.
    pub(crate) fn height(&self) -> usize {
        self.raw().height.max(0) as usize
    }

    /// FFmpeg's best knowledge of the time at which the picture is shown, in the stream's time base.
    pub(crate) fn timestamp(&self) -> Option<i64> {
        timestamp(self.raw().best_effort_timestamp)
    }

    /// How long it is shown, in the stream's time base, if that is known.
    pub(crate) fn duration(&self) -> Option<i64> {
        Some(version::duration(self.raw())).filter(|&d| d > 0)
    }

    /// True if the decoder concealed damage in it, or could not.
    pub(crate) fn is_corrupt(&self) -> bool {
        self.raw().flags & ffi::AV_FRAME_FLAG_CORRUPT as c_int != 0 || self.raw().decode_error_flags != 0
    }

    /// Colour facts, as the decoder tagged them; FFmpeg's old names for full range count as tags.
    pub(crate) fn colour(&self) -> Colour {
        // SAFETY: the fields are C enumerations read as their numbers, since a newer library may know more
        // values than our headers.
        let (range, primaries, transfer, matrix, location) = unsafe {
            (
                ptr::addr_of!((*self.frame).color_range).cast::<u32>().read(),
                ptr::addr_of!((*self.frame).color_primaries).cast::<u32>().read(),
                ptr::addr_of!((*self.frame).color_trc).cast::<u32>().read(),
                ptr::addr_of!((*self.frame).colorspace).cast::<u32>().read(),
                ptr::addr_of!((*self.frame).chroma_location).cast::<u32>().read(),
            )
        };
        let tag = |v: u32| u8::try_from(v).unwrap_or(2);
        let facts = self.format().facts().unwrap_or_default();
        let stated = Colour {
            range: match range {
                _ if self.format().name().starts_with("yuvj") => Range::Full,
                1 => Range::Limited,
                2 => Range::Full,
                _ => Range::Unspecified,
            },
            primaries: tag(primaries),
            transfer: tag(transfer),
            matrix: tag(matrix),
            chroma_location: u8::try_from(location).unwrap_or(0),
            ..Colour::default()
        };
        stated.at_meant_location((facts.log2_x, facts.log2_y))
    }

    /// Tags the picture. Numbers that this FFmpeg does not know become "unspecified".
    pub(crate) fn set_colour(&mut self, colour: Colour) {
        let known = |v: u8, end: u32, otherwise: u32| {
            let v = u32::from(v);
            if v < end { v } else { otherwise }
        };
        let primaries = known(colour.primaries, ffi::AVColorPrimaries::AVCOL_PRI_NB as u32, 2);
        let transfer = known(
            colour.transfer,
            ffi::AVColorTransferCharacteristic::AVCOL_TRC_NB as u32,
            2,
        );
        let matrix = known(colour.matrix, ffi::AVColorSpace::AVCOL_SPC_NB as u32, 2);
        let location = known(
            colour.chroma_location,
            ffi::AVChromaLocation::AVCHROMA_LOC_NB as u32,
            0,
        );
        // SAFETY: the numbers written are below each enumeration's end, so they are values of it.
        unsafe {
            ptr::addr_of_mut!((*self.frame).color_range)
                .cast::<u32>()
                .write(range_number(colour.range));
            ptr::addr_of_mut!((*self.frame).color_primaries)
                .cast::<u32>()
                .write(primaries);
            ptr::addr_of_mut!((*self.frame).color_trc)
                .cast::<u32>()
                .write(transfer);
            ptr::addr_of_mut!((*self.frame).colorspace)
                .cast::<u32>()
                .write(matrix);
            ptr::addr_of_mut!((*self.frame).chroma_location)
                .cast::<u32>()
                .write(location);
        }
    }

    /// Field order, as the decoder marked it.
    pub(crate) fn field_order(&self) -> FieldOrder {
        match version::fields(self.raw()) {
            (false, _) => FieldOrder::Progressive,
            (true, false) => FieldOrder::BottomFirst,
            (true, true) => FieldOrder::TopFirst,
        }
    }

    /// Marks the picture as progressive or interlaced.
    pub(crate) fn set_field_order(&mut self, order: FieldOrder) {
        let top_first = order.shows_top_first();
        // SAFETY: the frame is valid and borrowed mutably.
        let frame = unsafe { &mut *self.frame };
        version::set_fields(frame, top_first.is_some(), top_first == Some(true));
    }

    /// Sets the time in the encoder's time base, the pixel aspect, and that the encoder chooses the picture's
    /// type.
    pub(crate) fn set_timing(&mut self, pts: i64, sample_aspect: (i32, i32)) {
        // SAFETY: the frame is valid.
        unsafe {
            (*self.frame).pts = pts;
            (*self.frame).sample_aspect_ratio = ffi::AVRational {
                num: sample_aspect.0,
                den: sample_aspect.1.max(1),
            };
            (*self.frame).pict_type = ffi::AVPictureType::AV_PICTURE_TYPE_NONE;
        }
    }

    /// The blocks attached to the picture that are facts about it; `kind` is a number of AVFrameSideDataType.
    pub(crate) fn side_data(&self) -> Vec<SideData> {
        let small = self
            .blocks()
            .into_iter()
            .filter(|(_, _, data)| data.len() <= METADATA_LIMIT);
        small
            .map(|(kind, fact, data)| SideData {
                kind,
                fact,
                name: matches!(fact, Fact::Other(_)).then(|| frame_kind_name(kind)),
                data: data.into(),
            })
            .collect()
    }

    /// What the blocks are about that are too large to be carried.
    pub(crate) fn large_side_data(&self) -> Vec<Fact> {
        let large = self
            .blocks()
            .into_iter()
            .filter(|(_, _, data)| data.len() > METADATA_LIMIT);
        large.map(|(_, fact, _)| fact).collect()
    }

    /// The blocks that are facts about the picture: kind, fact and bytes.
    fn blocks(&self) -> Vec<(u32, Fact, &[u8])> {
        let mut found = Vec::new();
        for index in 0..self.raw().nb_side_data.max(0) as usize {
            // SAFETY: the frame holds `nb_side_data` pointers; the kind is read as a number, the block has
            // `size` bytes.
            let (kind, data) = unsafe {
                let block = *self.raw().side_data.add(index);
                let kind = ptr::addr_of!((*block).type_).cast::<u32>().read();
                if (*block).data.is_null() {
                    continue;
                }
                (kind, std::slice::from_raw_parts((*block).data, (*block).size))
            };
            if let Some(fact) = frame_fact(kind, data) {
                found.push((kind, fact, data));
            }
        }
        found
    }

    /// Attaches a block; one of a kind that is not passed on is left out.
    pub(crate) fn add_side_data(&mut self, block: &SideData) -> Result<(), AvError> {
        let Some(kind) = frame_kind(block) else {
            return Ok(());
        };
        // SAFETY: the new block has room for the bytes that are copied.
        unsafe {
            let new = ffi::av_frame_new_side_data(self.frame, kind, block.data.len());
            if new.is_null() {
                return Err(AvError::no_memory());
            }
            ptr::copy_nonoverlapping(block.data.as_ptr(), (*new).data, block.data.len());
        }
        Ok(())
    }

    /// Row `y` of plane `plane`, `len` bytes of it; `None` if the picture holds no such row.
    pub(crate) fn row(&self, plane: usize, y: usize, len: usize) -> Option<&[u8]> {
        let start = self.row_start(plane, y, len)?;
        // SAFETY: row_start has checked that the row exists and is at least `len` bytes long.
        Some(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// Row `y` of plane `plane` to write into.
    pub(crate) fn row_mut(&mut self, plane: usize, y: usize, len: usize) -> Option<&mut [u8]> {
        let start = self.row_start(plane, y, len)?;
        // SAFETY: row_start has checked that the row exists and is at least `len` bytes long; the picture is
        // borrowed mutably and was made by `allocate`, so nobody else reads it.
        Some(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Sets the palette of a picture of format pal8 that was made by `allocate`: red, green, blue and alpha;
    /// what is missing is black.
    pub(crate) fn set_palette(&mut self, colours: &[[u8; 4]]) -> Result<(), AvError> {
        let palette = self.raw().data[1];
        if self.format().facts().is_none_or(|facts| !facts.palette) || palette.is_null() {
            return Err(AvError(ffi::AVERROR_BUG));
        }
        for index in 0..ffi::AVPALETTE_COUNT as usize {
            let [red, green, blue, alpha] = colours.get(index).copied().unwrap_or([0, 0, 0, 255]);
            let entry = u32::from_be_bytes([alpha, red, green, blue]).to_ne_bytes();
            // SAFETY: the second plane of a picture with a palette holds AVPALETTE_COUNT entries of four
            // bytes.
            unsafe { ptr::copy_nonoverlapping(entry.as_ptr(), palette.add(4 * index), 4) };
        }
        Ok(())
    }

    fn row_start(&self, plane: usize, y: usize, len: usize) -> Option<*mut u8> {
        let raw = self.raw();
        let stride = *raw.linesize.get(plane)? as isize;
        let data = raw.data[plane];
        let rows = match plane {
            1 | 2 => self.height().div_ceil(1 << self.format().log2_chroma_height()),
            _ => self.height(),
        };
        if data.is_null() || y >= rows || len > stride.unsigned_abs() {
            return None;
        }
        // SAFETY: the row lies inside the plane; a negative stride walks up from the bottom row, as FFmpeg
        // means it.
        Some(unsafe { data.offset(y as isize * stride) })
    }

    /// Copies the pixels into `frame`, which has the same format and size.
    pub(crate) fn copy_to(&self, frame: &mut Frame) -> Result<(), AvError> {
        let layout = *frame.layout();
        for (index, plane) in layout.planes().iter().enumerate() {
            let len = layout.row_bytes(index);
            for y in 0..plane.height {
                let row = self.row(index, y, len).ok_or(AvError(ffi::AVERROR_BUG))?;
                frame.row_mut(index, y).copy_from_slice(row);
            }
        }
        Ok(())
    }

    /// Copies the pixels of `frame`, which has the same format and size, into this picture.
    pub(crate) fn copy_from(&mut self, frame: &Frame) -> Result<(), AvError> {
        let layout = frame.layout();
        for (index, plane) in layout.planes().iter().enumerate() {
            let len = layout.row_bytes(index);
            for y in 0..plane.height {
                let row = self.row_mut(index, y, len).ok_or(AvError(ffi::AVERROR_BUG))?;
                row.copy_from_slice(frame.row(index, y));
            }
        }
        Ok(())
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // SAFETY: allocated by av_frame_alloc and freed once.
        unsafe { ffi::av_frame_free(&mut self.frame) };
    }
}
