//! The files that hold annotations, one kind in each: where they stand there, and how they are put there.
//!
//! | kind | read | written |
//! |---|---|---|
//! | `bmp`, `jpeg`, `png`, `pnm`, `radiance`, `tiff`, `webp` | yes | yes |
//! | `boxes` (AVIF, JPEG 2000, JPEG XL), `dpx`, `fits`, `gif`, `pcx`, `psd`, `sgi`, `tga` | yes | no |
//! | `jpeg_xl`: a codestream's header, of frames and samples, too | yes | no |
//! | `exr` | by the decoder | by the encoder |

pub(super) mod bmp;
pub mod boxes;
mod comment;
pub(crate) mod dpx;
#[cfg(feature = "images")]
pub mod exr;
pub(super) mod fits;
pub(super) mod gif;
pub(crate) mod jpeg;
pub mod jpeg_xl;
pub mod pcx;
pub(crate) mod png;
pub(super) mod pnm;
pub mod psd;
pub(super) mod radiance;
pub(super) mod sgi;
pub mod tga;
pub(super) mod tiff;
pub(super) mod webp;
