//! Handles of the CUDA driver, each with an owner that frees it when it is dropped.
//!
//! An owner holds the device that its handle belongs to, so that a context outlives everything in it. A
//! frame's picture lies in one block of the card's memory:
//!
//! ```text
//! memory | plane 0 | plane 1 | .. picture: Arrangement, Picture, DevicePlane
//!         | row 0 pixels ..   | unused |
//!         | row 1 pixels ..   | unused |                             a row and its unused bytes: the pitch
//! texture   shows the same rows, one texel a sample                  texture
//! tensor map  tells the card how to copy a tile of them at once      tensor_map
//! ```
//!
//! `planes` copies and fills planes of pictures. `card_frame` is the memory of a frame that outlives the
//! ring's slots. `stream` orders work, `dependency` tells which launches of a stream may overlap, `module`
//! holds compiled kernels, and `nvtx` names ranges of time for NVIDIA's profilers.

pub(crate) mod card_frame;
pub(crate) mod dependency;
pub(crate) mod device;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod nvtx;
pub(crate) mod picture;
pub(crate) mod planes;
pub(crate) mod stream;
pub(crate) mod tensor_map;
pub(crate) mod texture;
