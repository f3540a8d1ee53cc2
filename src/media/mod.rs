//! What the sources and the sinks of videos and images have in common.
//!
//! | folder | what is in it |
//! |---|---|
//! | `still` | kinds of image files, and names of sequences of them |
//! | `convert` | one pixel format into another, by `ffmpeg` or by loops of its own |
//! | `containers` | what containers say that FFmpeg does not pass on |
//! | `ffmpeg` | FFmpeg's raw interface: demuxing, decoding, swscale, encoding, muxing |
//! | `rescale` | samples of one depth as those of another |

pub(crate) mod containers;
pub mod convert;
pub(crate) mod ffmpeg;
pub(crate) mod rescale;
pub mod still;
