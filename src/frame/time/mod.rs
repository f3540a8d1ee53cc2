//! Times of frames: rates, and points that users name.

mod point;
mod rational;

pub(crate) use point::SECOND;
pub use point::{InvalidPoint, Point, Skipped};
#[cfg(feature = "images")]
pub(crate) use rational::gcd;
pub use rational::{BadRate, Rational, parse_rate};
