//! The engines, which must give the same bits: against integers and real numbers that are computed here anew,
//! against FFmpeg's filters, and against each other on every instruction set.
#![allow(clippy::unwrap_used)]

mod against_ffmpeg;
mod alpha;
mod exact_integers;
mod exactness;
mod float;
mod gradients;
mod images;
mod instruction_sets;
mod long_weights;
mod oracle;
mod region;
mod rgb;
#[path = "../common/whole_matrix.rs"]
mod whole_matrix;
mod wide_floats;
mod wide_gaussians;
