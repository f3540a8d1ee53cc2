//! Integer types of weighted sums, for loops in plain Rust.

use std::ops::{Add, AddAssign, Mul, Shr};

/// The integer type of a sum: `i32` where docs/arithmetic.md proves that it holds all sums, `i64` elsewhere.
pub(in crate::engine::cpu) trait Sum:
    Copy + Default + From<i32> + Add<Output = Self> + AddAssign + Mul<Output = Self> + Shr<u32, Output = Self>
{
    /// The low bits of a bias, which fit by construction.
    fn from_bias(bias: i64) -> Self;
    /// The sum after its shift.
    fn widen(self) -> i64;
}

impl Sum for i32 {
    fn from_bias(bias: i64) -> i32 {
        bias as i32
    }
    fn widen(self) -> i64 {
        i64::from(self)
    }
}

impl Sum for i64 {
    fn from_bias(bias: i64) -> i64 {
        bias
    }
    fn widen(self) -> i64 {
        self
    }
}
