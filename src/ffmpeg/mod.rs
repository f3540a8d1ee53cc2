//! FFmpeg's raw interface: the only place that holds its pointers.
//!
//! Every type owns its FFmpeg object and frees it when dropped; nothing outside this module touches a
//! pointer.
//!
//! ```text
//!   file -> Demuxer -> Packet -> Decoder -> Picture -> Scaler -> Picture -> Encoder -> Packet -> Muxer
//!                                  | memory: pictures decoded into the frames' own blocks
//!                                  | hardware: decoded on a card, where they stay
//!          sound that is encoded anew: audio (AudioTranscoder)
//!                                            frames lent to the encoder without a copy: lend
//! ```
#![allow(unsafe_code)]

mod access;
mod audio;
mod clock;
mod decoder;
mod demuxer;
mod encoder;
mod error;
mod facts;
mod format;
#[cfg(feature = "cuda")]
mod hardware;
mod io_context;
mod lend;
pub(crate) mod log;
mod memory;
mod memory_io;
mod metadata_limit;
mod muxer;
mod packet;
mod picture;
mod pipe_io;
mod scaler;
mod side_data;
mod text;
mod version;

pub use access::Access;
pub(crate) use audio::{AudioEncoderKind, AudioTranscoder};
#[cfg(test)]
pub(crate) use clock::Jump;
pub(crate) use clock::Jumps;
pub(crate) use decoder::Decoder;
pub(crate) use demuxer::{Chapter, Demuxer, Medium, OpenFailure, StreamFacts};
pub(crate) use encoder::{Encoder, EncoderKind, EncoderSetup};
pub(crate) use error::AvError;
pub(crate) use facts::picture_facts;
pub(crate) use format::{AvFormat, FormatFacts};
#[cfg(feature = "cuda")]
pub(crate) use hardware::{HardwareDevice, OnCard};
pub(crate) use lend::lend;
pub(crate) use memory::{Decoded, decoded};
pub(crate) use muxer::{Muxer, MuxerFailure};
pub(crate) use packet::Packet;
pub(crate) use picture::Picture;
pub(crate) use scaler::{Scaler, ScalerEnd};
pub(crate) use side_data::{for_frame, for_stream};
pub(crate) use text::rescale;
pub use version::name as version_name;

use ffmpeg_next::ffi;
use std::ffi::c_int;
use std::sync::Once;

/// Prepares FFmpeg; called before its first use, and any number of times.
pub(crate) fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        version::check();
        log::capture();
        // SAFETY: only sets process-wide state of FFmpeg, once.
        unsafe { ffi::avformat_network_init() };
    });
}

/// What a codec had to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// The picture or packet is filled.
    Item,
    /// More input is needed.
    Again,
    /// Nothing more will come.
    End,
}

impl Received {
    /// Tells what a receive call's code means.
    pub(crate) fn from_code(code: c_int) -> Result<Received, AvError> {
        Received::of(AvError::check(code))
    }

    /// Tells what a receive call's result means.
    fn of(result: Result<c_int, AvError>) -> Result<Received, AvError> {
        match result {
            Ok(_) => Ok(Received::Item),
            Err(e) if e.is_again() => Ok(Received::Again),
            Err(e) if e.is_eof() => Ok(Received::End),
            Err(e) => Err(e),
        }
    }
}
