//! framepipe: a staged pipeline that decodes frames, convolves them exactly on the CPU or on CUDA, encodes
//! the result, and reports where the time went.
//!
//! The data flows source -> pipeline -> engine -> sink; [`filter`] and [`frame`] lie underneath, [`report`]
//! beside; [`bench`] measures them.

pub mod bench;
pub mod convert;
pub mod engine;
mod ffmpeg;
pub mod filter;
pub mod frame;
pub mod pipeline;
pub mod report;
#[cfg(target_os = "linux")]
pub mod sandbox;
pub mod shortage;
pub mod sink;
pub mod source;
pub mod still;
