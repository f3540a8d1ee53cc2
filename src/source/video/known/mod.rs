//! What is known of files and codecs beside what FFmpeg says of them, read from the files' own bytes.
//!
//! - `extent`: whether a file is whole. `containers` asks for that: the sizes that a container states (`nut`,
//!   `flv`: where one of these ends), or where a stream without one (`packets`) or a picture (`still_end`)
//!   ends. `blocks`: what is no block or packet any more in the midst of a file.
//! - `avi`: pictures without bytes at the end of an AVI file. `joined`: a second movie behind the first.
//! - `fragments`: how long pictures of an MP4 file last, and what of it is behind a damaged place.
//! - `crop`: the part of the picture that is to be shown. `layers`: alpha and second views that no decoder
//!   gives.
//! - `dolby`, `unfit`: pictures that are not what they seem.
//! - `jpeg_xl`: frames and samples that its decoder passes over.

pub(super) mod avi;
pub(super) mod blocks;
pub(super) mod containers;
pub(super) mod crop;
pub(super) mod dolby;
pub(super) mod extent;
mod flv;
pub(super) mod fragments;
pub(super) mod joined;
pub(super) mod jpeg_xl;
pub(super) mod layers;
pub(super) mod nut;
mod packets;
mod still_end;
pub(super) mod unfit;
