//! Pictures in the card's memory, and what kernels see of them.
//!
//! A frame's picture lies in one block:
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
//! ring's slots.

pub(crate) mod card_frame;
pub(crate) mod picture;
pub(crate) mod planes;
pub(crate) mod tensor_map;
pub(crate) mod texture;
