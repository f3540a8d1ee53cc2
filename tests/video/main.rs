//! Videos: FFmpeg makes them, and its programs judge what becomes of them.
#![allow(clippy::unwrap_used)]

mod alpha;
mod card_encoders;
mod changes;
mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod conversions;
mod decoders;
mod decoding;
mod facts;
mod fields;
mod library;
mod range;
#[path = "../standin/mod.rs"]
mod standin;
mod streams;
mod transport;
