//! Conversions of pixels before and after a filter: luma of RGB and back, mixing by a matte, and RGB for
//! callers. All are loops over rows in plain Rust, which the compiler vectorizes.

pub(in crate::engine) mod luma;
pub(in crate::engine) mod mix;
mod rgb;

pub use rgb::to_rgb;

/// 2^52: adding it to an integer puts the integer into the low bits of the sum.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// The low bits of a number of at least 0, rounded down. A conversion would check each number's range, and
/// would not be vectorized.
#[inline(always)]
fn floor_bits(number: f64) -> u32 {
    (number.floor() + WHOLE).to_bits() as u32
}

/// A stored integer sample.
trait Stored: Copy {
    /// The sample as a number.
    fn level(self) -> u32;

    /// The sample of a level, of which the low bits are used.
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
