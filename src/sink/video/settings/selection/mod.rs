//! Which encoder, pixel format and time base an output gets when the user does not say.

mod encoder;
mod format;
mod time_base;

pub use encoder::usual_encoders;
pub(in crate::sink::video) use encoder::{choose_encoder, default_encoder, offer};
pub(in crate::sink::video) use format::{FormatChoice, choose_format};
pub(in crate::sink::video) use time_base::{counts_frames, encoder_time_base};
