//! What a card decodes, and how many decoders it has: asked of NVIDIA's decoding library.
#![allow(unsafe_code)]

use crate::engine::cuda::driver::device::Device;
use libloading::Library;
use std::ffi::{c_int, c_uchar, c_uint, c_ushort};

/// The library, which comes with the driver.
const LIBRARY: &str = "libnvcuvid.so.1";

/// Codecs whose pictures are defined bit by bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// H.264.
    H264,
    /// H.265.
    Hevc,
    /// VP9.
    Vp9,
    /// AV1.
    Av1,
}

impl Codec {
    /// The codec by FFmpeg's name for it.
    pub fn from_name(name: &str) -> Option<Codec> {
        match name {
            "h264" => Some(Codec::H264),
            "hevc" => Some(Codec::Hevc),
            "vp9" => Some(Codec::Vp9),
            "av1" => Some(Codec::Av1),
            _ => None,
        }
    }

    /// Its number in the library.
    fn number(self) -> c_int {
        match self {
            Codec::H264 => 4,
            Codec::Hevc => 8,
            Codec::Vp9 => 10,
            Codec::Av1 => 11,
        }
    }
}

/// What a card decodes of a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Decoders that work side by side.
    pub engines: usize,
    /// The most pixels across and rows.
    pub most: (usize, usize),
    /// The fewest pixels across and rows.
    pub least: (usize, usize),
}

/// `CUVIDDECODECAPS` of the library's header.
#[repr(C)]
#[derive(Default)]
struct DecodeCaps {
    codec: c_int,
    chroma: c_int,
    depth_minus_8: c_uint,
    reserved1: [c_uint; 3],
    is_supported: c_uchar,
    engines: c_uchar,
    output_formats: c_ushort,
    most_width: c_uint,
    most_height: c_uint,
    most_blocks: c_uint,
    least_width: c_ushort,
    least_height: c_ushort,
    histogram: [c_uchar; 2],
    histogram_bins: c_ushort,
    reserved3: [c_uint; 10],
}

/// The number of 4:2:0 among the kinds of chroma.
const CHROMA_420: c_int = 1;

type GetDecoderCaps = unsafe extern "C" fn(*mut DecodeCaps) -> c_int;

/// What card `ordinal` decodes of `codec` with `depth` bits a sample and 4:2:0. An error is the end of a
/// sentence about why it decodes none.
pub fn capabilities(ordinal: usize, codec: Codec, depth: u32) -> Result<Capabilities, String> {
    let device = Device::open(ordinal).map_err(|e| e.to_string())?;
    device.bind().map_err(|e| e.to_string())?;
    // SAFETY: loading the library runs no code but its own.
    let library = unsafe { Library::new(LIBRARY) }
        .map_err(|_| format!("the driver's library for decoding, {LIBRARY}, is not installed"))?;
    // SAFETY: the type is that of the function in the library's header.
    let ask = unsafe { library.get::<GetDecoderCaps>(b"cuvidGetDecoderCaps\0") };
    let ask = ask.map_err(|_| format!("{LIBRARY} is too old to say what it decodes"))?;
    let mut caps = DecodeCaps {
        codec: codec.number(),
        chroma: CHROMA_420,
        depth_minus_8: depth.saturating_sub(8),
        ..DecodeCaps::default()
    };
    // SAFETY: the struct is laid out as the header has it and lives through the call; a context is current.
    let result = unsafe { ask(&raw mut caps) };
    if result != 0 || caps.is_supported == 0 {
        return Err(format!("the card does not decode {codec:?} of {depth} bits"));
    }
    Ok(Capabilities {
        engines: usize::from(caps.engines).max(1),
        most: (caps.most_width as usize, caps.most_height as usize),
        least: (caps.least_width.into(), caps.least_height.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn the_struct_lies_in_memory_as_the_library_has_it() {
        assert_eq!(size_of::<DecodeCaps>(), 88);
        assert_eq!(offset_of!(DecodeCaps, is_supported), 24);
        assert_eq!(offset_of!(DecodeCaps, most_width), 28);
        assert_eq!(offset_of!(DecodeCaps, least_width), 40);
        assert_eq!(offset_of!(DecodeCaps, reserved3), 48);
    }
}
