//! FFmpeg's raw interface: no other module holds its pointers.
//!
//! Every type owns its FFmpeg object and frees it when dropped.
//!
//! ```text
//!   input/             pictures/                                 output/
//!   file -> Demuxer -> Packet -> Decoder -> Picture -> Scaler -> Picture -> Encoder -> Packet -> Muxer
//!                                  | memory: pictures decoded into the frames' own blocks
//!                                  | hardware: decoded on a card, where they stay
//!                                             frames lent to the encoder without a copy: lend
//!                                             copied on a card for its encoder: surfaces
//!          sound that is re-encoded:                             audio (AudioTranscoder)
//! ```
//!
//! `io` reads and writes files in memory and pipes through callbacks.
#![allow(unsafe_code)]

mod error;
mod input;
mod io;
pub(crate) mod log;
mod output;
mod packet;
mod pictures;
mod text;
mod version;

pub(crate) use error::{AvError, SurfaceError};
pub use input::access::Access;
#[cfg(test)]
pub(crate) use input::clock::Jump;
pub(crate) use input::clock::Jumps;
pub(crate) use input::demuxer::{Chapter, Demuxer, Medium, OpenFailure, Outline, StreamFacts};
pub(crate) use input::ebml;
pub(crate) use log::TransportFault;
pub(crate) use output::audio::{AudioEncoderKind, AudioTranscoder, is_lossless};
pub(crate) use output::channels::{copied_taken_for, copied_unnamed_taken_for};
pub(crate) use output::encoder::{Encoder, EncoderKind, EncoderSetup};
pub(crate) use output::muxer::{Muxer, MuxerFailure};
pub(crate) use packet::Packet;
pub(crate) use pictures::bits::BitsPlace;
#[cfg(feature = "cuda")]
pub(crate) use pictures::card::hardware::{HardwareDevice, OnCard};
#[cfg(not(feature = "cuda"))]
pub(crate) use pictures::card::no_surfaces::{CardSurfaces, fetch};
#[cfg(feature = "cuda")]
pub(crate) use pictures::card::surfaces::{CardSurfaces, fetch};
pub(crate) use pictures::decoder::Decoder;
pub(crate) use pictures::decoder::jpeg_xl::{Codestream, codestream};
pub(crate) use pictures::decoder::memory::{Decoded, decoded};
pub(crate) use pictures::facts::picture_facts;
pub(crate) use pictures::format::{AvFormat, FormatFacts};
pub(crate) use pictures::lend::lend;
pub(crate) use pictures::picture::Picture;
pub(crate) use pictures::scaler::{Scaler, ScalerEnd};
pub(crate) use pictures::side_data::{for_frame, for_stream};
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
