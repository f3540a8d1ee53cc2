//! How samples lie in memory: pixel formats and the layout of their planes.

pub mod float;
mod layout;
mod pixel_format;

pub use layout::{Layout, LayoutError, MAX_PLANES, Plane};
pub use pixel_format::{
    Channel, ColourModel, MAX_CHANNELS, PixelFormat, PlaneFormat, SampleKind, UnknownPixelFormat,
};
