//! Image files: which kinds there are, what each can hold, and how sequences of them are named. What reading
//! and writing have in common lies here.

pub mod annotations;
mod kind;
pub mod pattern;

pub use kind::{Decoding, Encoding, ImageKind, UnknownImageKind};
