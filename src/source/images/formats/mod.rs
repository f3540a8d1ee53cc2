//! Single kinds of image files: decoders of our own, and what other decoders do not look at.
//!
//! | decoded here | beside another decoder |
//! |---|---|
//! | `dds`, `exr`, `jpeg`, `pfm`, `tga`, `tiff` | `bmp_alpha`: alpha that no header states |
//! | | `bmp_runs`: pixels that run lengths skip |
//! | `checked_png`: PNG with its checksum | `palette`: pixels beyond a palette (PNG, BMP) |
//! | `ico`: the file of one picture of several | `pnm`, `hdr`: what a head says beside the size |
//! | | `exr_attributes`: attributes that the crate writes otherwise |
//! | | `webp_chunks`, `webp_flags`: WebP chunks against the file's length and its flags |

pub(super) mod bmp_alpha;
pub(super) mod bmp_runs;
pub(super) mod checked_png;
pub(super) mod dds;
pub(super) mod exr;
mod exr_attributes;
pub(super) mod hdr;
pub(super) mod ico;
pub(super) mod jpeg;
pub(super) mod palette;
pub(super) mod pfm;
pub(super) mod pnm;
pub(super) mod tga;
pub(super) mod tiff;
pub(in crate::source) mod webp_chunks;
pub(super) mod webp_flags;
