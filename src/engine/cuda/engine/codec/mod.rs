//! Where the engine meets the card's decoders and encoders: their frames stay in the card's memory.
//!
//! ```text
//! decode/    a decoder's surfaces -> planes of frames for the engine
//! encode.rs  results of the engine -> an encoder's surfaces
//! ```

pub mod decode;
pub mod encode;
