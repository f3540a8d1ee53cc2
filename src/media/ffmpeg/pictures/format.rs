//! Pixel formats by FFmpeg's numbers and descriptors.
#![allow(unsafe_code)]

use super::bits::BitsPlace;
use super::place::Place;
use crate::frame::{PixelFormat, Range};
use crate::media::ffmpeg::text::text;
use ffmpeg_next::ffi;
use std::ffi::{CString, c_int};

/// A pixel format by FFmpeg's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AvFormat(pub(crate) c_int);

/// What FFmpeg's descriptor says of a pixel format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FormatFacts {
    /// FFmpeg's name.
    pub(crate) name: String,
    /// Components, 1 to 4, alpha included.
    pub(crate) components: u32,
    /// Significant bits of the deepest component.
    pub(crate) depth: u32,
    /// log2 of the chroma subsampling, across.
    pub(crate) log2_x: u32,
    /// log2 of the chroma subsampling, down.
    pub(crate) log2_y: u32,
    /// Planes in memory.
    pub(crate) planes: u32,
    /// Holds red, green and blue.
    pub(crate) rgb: bool,
    /// Holds alpha.
    pub(crate) alpha: bool,
    /// Pixels are indices into a palette.
    pub(crate) palette: bool,
    /// Samples are floating-point numbers.
    pub(crate) float: bool,
    /// A mosaic of single-colour sensors.
    pub(crate) bayer: bool,
    /// Pixels live in a device's own memory.
    pub(crate) hardware: bool,
}

impl AvFormat {
    /// The format of FFmpeg's name `name`, if this FFmpeg knows it.
    pub(crate) fn from_name(name: &str) -> Option<AvFormat> {
        let name = CString::new(name).ok()?;
        // SAFETY: `name` is zero-terminated.
        let format = unsafe { ffi::av_get_pix_fmt(name.as_ptr()) } as c_int;
        (format >= 0).then_some(AvFormat(format))
    }

    /// FFmpeg's own type, if the number is one of its formats.
    pub(crate) fn to_raw(self) -> Option<ffi::AVPixelFormat> {
        let known = 0..ffi::AVPixelFormat::AV_PIX_FMT_NB as c_int;
        // SAFETY: the enumeration holds every number below AV_PIX_FMT_NB.
        known
            .contains(&self.0)
            .then(|| unsafe { std::mem::transmute::<c_int, ffi::AVPixelFormat>(self.0) })
    }

    fn descriptor(self) -> Option<&'static ffi::AVPixFmtDescriptor> {
        let raw = self.to_raw()?;
        // SAFETY: descriptors are static; a null one is refused.
        unsafe { ffi::av_pix_fmt_desc_get(raw).as_ref() }
    }

    /// The descriptor's facts; `None` for a number that is no format.
    pub(crate) fn facts(self) -> Option<FormatFacts> {
        let descriptor = self.descriptor()?;
        let flag = |bit: u32| descriptor.flags & u64::from(bit) != 0;
        let components = usize::from(descriptor.nb_components).min(4);
        let parts = &descriptor.comp[..components];
        Some(FormatFacts {
            name: text(descriptor.name),
            components: components as u32,
            depth: parts.iter().map(|c| c.depth.max(0) as u32).max().unwrap_or(0),
            log2_x: u32::from(descriptor.log2_chroma_w),
            log2_y: u32::from(descriptor.log2_chroma_h),
            planes: parts.iter().map(|c| c.plane.max(0) as u32 + 1).max().unwrap_or(0),
            rgb: flag(ffi::AV_PIX_FMT_FLAG_RGB as u32),
            alpha: flag(ffi::AV_PIX_FMT_FLAG_ALPHA as u32),
            palette: flag(ffi::AV_PIX_FMT_FLAG_PAL as u32),
            float: flag(ffi::AV_PIX_FMT_FLAG_FLOAT as u32),
            bayer: flag(ffi::AV_PIX_FMT_FLAG_BAYER as u32),
            hardware: flag(ffi::AV_PIX_FMT_FLAG_HWACCEL as u32),
        })
    }

    /// log2 of the subsampling of planes 1 and 2, down; asked for each row, so without the other facts.
    pub(in crate::media::ffmpeg) fn log2_chroma_height(self) -> u32 {
        self.descriptor()
            .filter(|d| d.flags & u64::from(ffi::AV_PIX_FMT_FLAG_RGB as u32) == 0)
            .map_or(0, |d| u32::from(d.log2_chroma_h))
    }

    /// Where alpha lies, if it stands in whole bytes or words of integers.
    pub(super) fn alpha_place(self) -> Option<Place> {
        let descriptor = self.descriptor()?;
        let flag = |bit: u32| descriptor.flags & u64::from(bit) != 0;
        let others = ffi::AV_PIX_FMT_FLAG_FLOAT | ffi::AV_PIX_FMT_FLAG_PAL | ffi::AV_PIX_FMT_FLAG_HWACCEL;
        if !flag(ffi::AV_PIX_FMT_FLAG_ALPHA as u32) || flag((others | ffi::AV_PIX_FMT_FLAG_BITSTREAM) as u32)
        {
            return None;
        }
        // Alpha is the last component.
        let last = usize::from(descriptor.nb_components).checked_sub(1)?;
        let part = descriptor.comp.get(last).filter(|part| part.shift == 0)?;
        let number = |v: c_int| usize::try_from(v).ok();
        Some(Place {
            plane: number(part.plane)?,
            step: number(part.step)?,
            at: number(part.offset)?,
            depth: u32::try_from(part.depth).ok()?,
            big_endian: flag(ffi::AV_PIX_FMT_FLAG_BE as u32),
        })
    }

    /// The bits of red, green, blue and perhaps alpha, if all lie in one plane as integers.
    pub(crate) fn packed_rgb(self) -> Option<Vec<BitsPlace>> {
        const DEEPEST: u32 = 16;
        let descriptor = self.descriptor()?;
        let flag = |bit: u32| descriptor.flags & u64::from(bit) != 0;
        let others = ffi::AV_PIX_FMT_FLAG_FLOAT
            | ffi::AV_PIX_FMT_FLAG_PAL
            | ffi::AV_PIX_FMT_FLAG_HWACCEL
            | ffi::AV_PIX_FMT_FLAG_BAYER;
        if !flag(ffi::AV_PIX_FMT_FLAG_RGB as u32) || flag(others as u32) {
            return None;
        }
        let big_endian = flag(ffi::AV_PIX_FMT_FLAG_BE as u32);
        let parts = &descriptor.comp[..usize::from(descriptor.nb_components).min(4)];
        let place = |part: &ffi::AVComponentDescriptor| {
            let (shift, depth) = (u32::try_from(part.shift).ok()?, u32::try_from(part.depth).ok()?);
            // Of a byte in a word of the other order FFmpeg counts from the byte before.
            let skipped = c_int::from(big_endian && shift + depth <= 8);
            let place = BitsPlace {
                step: usize::try_from(part.step).ok()?,
                at: usize::try_from(part.offset + skipped).ok()?,
                shift,
                depth,
                big_endian,
                is_bitstream: flag(ffi::AV_PIX_FMT_FLAG_BITSTREAM as u32),
            };
            let is_known = part.plane == 0 && (1..=DEEPEST).contains(&depth) && shift <= DEEPEST;
            (is_known && place.is_sound()).then_some(place)
        };
        let mut places: Vec<BitsPlace> = parts.iter().map(place).collect::<Option<_>>()?;
        // Of the bits in a byte of rgb8, FFmpeg's descriptor gives red two and blue three, and swscale, as
        // the list of formats has it, the other way round.
        if text(descriptor.name) == "rgb8" && places.len() == 3 {
            for (place, (shift, depth)) in places.iter_mut().zip([(5, 3), (2, 3), (0, 2)]) {
                (place.shift, place.depth) = (shift, depth);
            }
        }
        Some(places)
    }

    /// True if frames have pictures of this format as they are: a native format, or FFmpeg's old name for one
    /// in full range.
    pub(crate) fn is_native(self) -> bool {
        // SAFETY: names are static and zero-terminated; null for a number that is no format.
        let name = self.to_raw().map(|raw| unsafe { ffi::av_get_pix_fmt_name(raw) });
        let name = name.map_or_else(String::new, text);
        match name.strip_prefix("yuvj") {
            Some(rest) => PixelFormat::from_name(&format!("yuv{rest}")).is_some(),
            None => PixelFormat::from_name(&name).is_some(),
        }
    }

    /// FFmpeg's name, or the number if it has none.
    pub(crate) fn name(self) -> String {
        self.facts()
            .map_or_else(|| format!("format {}", self.0), |facts| facts.name)
    }
}

/// FFmpeg's number for a sample range.
pub(in crate::media::ffmpeg) fn range_number(range: Range) -> u32 {
    match range {
        Range::Unspecified => 0,
        Range::Limited => 1,
        Range::Full => 2,
    }
}

/// swscale's chroma offsets (1/256 of a luma sample) for a location; `None` where there is no subsampling or
/// no knowledge.
pub(in crate::media::ffmpeg) fn chroma_position(
    location: u8,
    (log2_x, log2_y): (u32, u32),
) -> Option<(i64, i64)> {
    let (x, y) = match location {
        1 => (0, 128),
        2 => (128, 128),
        3 => (0, 0),
        4 => (128, 0),
        5 => (0, 256),
        6 => (128, 256),
        _ => return None,
    };
    match (log2_x, log2_y) {
        (0, 0) => None,
        (0, _) => Some((-513, y)),
        (_, 0) => Some((x, -513)),
        _ => Some((x, y)),
    }
}
