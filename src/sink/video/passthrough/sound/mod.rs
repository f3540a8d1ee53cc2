//! Where sound lies beside the picture.
//!
//! ```text
//!   picture        |■■■■|■■■■|■■■■|■■■■|
//!   sound     ~~▒▒▒▒▒▒▒▒▒▒▒▒▒     ▒▒▒▒▒▒▒▒▒▒
//!             start          gaps          end
//! ```
//!
//! `start`: what is late or early, and priming, which is not heard. `gaps`: pauses that a container would
//! close. `changes`: another rate, other channels or another codec from somewhere on, by `headers`. `end`:
//! silence where a container must not run out of sound, and what it cuts off.

mod changes;
mod end;
mod gaps;
mod headers;
mod start;

use crate::media::ffmpeg::Muxer;
pub(super) use changes::Changes;
pub(super) use gaps::Gaps;

/// Sound that is late by so few seconds is where it belongs.
pub(super) const TOO_SHORT_TO_HEAR: f64 = 0.01;

/// True if the muxer writes each picture together with its sound, whatever their times are, and leaves out
/// pictures without sound, as those of MXF and DV do.
pub(in crate::sink::video) fn writes_units(muxer: &Muxer) -> bool {
    muxer.name().starts_with("mxf") || muxer.name() == "dv"
}
