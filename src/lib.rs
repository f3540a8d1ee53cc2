//! Blurs, sharpens and finds edges in pictures and videos, with the same bits on CPU and NVIDIA GPU.
//!
//! A filter is a mask (convolution kernel) of up to 63x63 weights, by name or by numbers, or what is made of
//! several: gradients, absolute values, Gaussians of any width. It is applied in the pixel format that
//! pictures have, planar or interleaved. Samples are integers of 8 to 16 bits or floating-point numbers of 16
//! or 32. Results are defined to the bit, for every engine, instruction set and number of threads.
//!
//! # A picture in memory
//!
//! [`filter_image`] reads and writes borrowed memory; rows may be padded. [`ImageFilter`] is the same for
//! many pictures.
//!
//! ```
//! use framepipe::{Chain, Image, ImageMut, PixelFormat, filter_image};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (width, height) = (64, 48);
//! let mut input = vec![0_u8; width * height * 3];
//! input[(24 * width + 32) * 3] = 255; // one red pixel
//! let mut output = vec![0_u8; input.len()];
//!
//! let image = Image::new(&input, PixelFormat::RGB24, width, height)?;
//! let mut blurred = ImageMut::new(&mut output, PixelFormat::RGB24, width, height)?;
//! filter_image(&image, &mut blurred, &Chain::parse("gaussian:sigma=2")?, 0)?;
//!
//! assert_eq!(output[(24 * width + 32) * 3], 10); // spread over its neighbours
//! # Ok(())
//! # }
//! ```
//!
//! # A stream of frames
//!
//! ```text
//!  source ──frames──> engine ──frames──> sink         each on threads of its own, queues between them
//!    ^                  | ^                |
//!    '── input pool <───' '── output pool <'          of fixed size: memory does not grow
//! ```
//!
//! [`pipeline::run`] joins a [`source`], an [`engine`] and a [`sink`], which are traits with many
//! implementations. It returns what was written, what was lost on the way, and where the time went
//! ([`report`]).
//!
//! | you want | look at |
//! |---|---|
//! | masks, borders, components | [`filter`], [`Chain`] |
//! | formats, memory, facts about pictures | [`frame`] |
//! | frames of your own | `examples/own_ends.rs` in the package: [`source::Source`], [`sink::Sink`] |
//! | videos with their sound and metadata | `examples/filter_video.rs`: `source::video`, `sink::video` |
//! | image files and folders of them | `examples/blur_image.rs`: `source::images`, `sink::images` |
//! | an NVIDIA card | `engine::cuda` |
//!
//! # Features
//!
//! | feature | what it brings | what building needs |
//! |---|---|---|
//! | none | filters, the CPU engine, the pipeline, raw video, Y4M | Rust |
//! | `cuda` | the engine for NVIDIA cards | Rust; driver and NVRTC are loaded at run time |
//! | `ffmpeg` | video files, conversions of pixel formats | FFmpeg 5.1 to 9 with headers, clang |
//! | `images` | image files; implies `ffmpeg` | the same, cmake, NASM |
//! | `cli` | the program; implies all others | the same |
//!
//! All features are on by default. Only Linux is tested.
//!
//! # What may change
//!
//! The enums of errors, borders, responses and kinds of images are `#[non_exhaustive]`, and so are reports,
//! stream facts and the options of sources, sinks and the pipeline: change what `default()` gives
//! (`let mut options = ImageOptions::default(); options.overwrite = true;`). Other structs of options may
//! gain fields, too: write `..Default::default()` at their end. Results keep their bits.

#[cfg(feature = "ffmpeg")]
#[doc(hidden)]
pub mod annotations;
pub mod compare;
pub mod engine;
pub mod filter;
mod filter_image;
pub mod frame;
#[cfg(feature = "ffmpeg")]
mod media;
mod messages;
pub mod pipeline;
pub mod report;
pub mod sink;
pub mod source;
mod waiting;

pub use filter::{Algorithm, AlphaWeighting, Border, Chain, Filter, Planes};
pub use filter_image::{ImageFilter, filter_image};
pub use frame::{Image, ImageMut, PixelFormat};
#[cfg(feature = "ffmpeg")]
pub use media::still;

// For the program, the tests and the benchmarks of this package. What is hidden from the documentation, here
// and further below, is no part of the library's interface and changes without notice.
#[cfg(feature = "ffmpeg")]
#[doc(hidden)]
pub use media::convert;
#[doc(hidden)]
pub use messages::{error_chain, shortage, wording};
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod program;

use messages::explain;
