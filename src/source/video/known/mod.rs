//! What is known of files and codecs beside what FFmpeg says of them, read from the files' own bytes.
//!
//! - `extent`: whether a file is whole, by its container, its packets or as a picture
//!   (`source/still_end`).
//! - `crop`: the part of the picture that is to be shown. `layers`: alpha and second views that no decoder
//!   gives.
//! - `dolby`, `unfit`: pictures that are not what they seem.
//! - `jpeg_xl`: frames and samples that its decoder passes over.

pub(super) mod crop;
pub(super) mod dolby;
pub(super) mod extent;
pub(super) mod jpeg_xl;
pub(super) mod layers;
pub(super) mod unfit;
