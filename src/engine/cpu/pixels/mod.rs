//! What is done to pixels around a filter: luma taken out of RGB and put back, mixing by a matte, and RGB for
//! callers that want it. Plain rows, which the compiler makes vectors of.

pub(in crate::engine) mod luma;
pub(in crate::engine) mod mix;
mod rgb;

pub use rgb::to_rgb;

/// 2^52: the low bits of a whole number that is added to it are that number's.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// The low bits of a number that is not negative, rounded down. A conversion would check the range of each,
/// and not be made in vectors.
#[inline(always)]
fn floor_bits(number: f64) -> u32 {
    (number.floor() + WHOLE).to_bits() as u32
}

/// An integer sample as it is stored.
trait Stored: Copy {
    fn level(self) -> u32;

    /// The low bits of a level.
    fn of(level: u32) -> Self;
}

impl Stored for u8 {
    #[inline(always)]
    fn level(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn of(level: u32) -> u8 {
        level as u8
    }
}

impl Stored for [u8; 2] {
    #[inline(always)]
    fn level(self) -> u32 {
        u32::from(u16::from_le_bytes(self))
    }

    #[inline(always)]
    fn of(level: u32) -> [u8; 2] {
        (level as u16).to_le_bytes()
    }
}
