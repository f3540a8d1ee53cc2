//! Architectures without vector loops, which have plain Rust only. Also the template for a new architecture.
//!
//! Neither [`Vectors`] nor the only type that implements [`Simd`] has values here, so loops are type-checked
//! but not compiled.
#![allow(unsafe_code)]

use super::InstructionSet;
use super::float::{Doubles2, Singles4, TransformCosts};
use super::vector::{IntLoop, Order, Simd};
use std::convert::Infallible;

/// The vector instructions of a set: there are none.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code, reason = "there are none to make it of")]
pub(in crate::engine::cpu) enum Vectors {
    None(NoVectors),
}

impl Vectors {
    /// `None` for every set.
    pub(in crate::engine::cpu) fn of(_: InstructionSet) -> Option<Vectors> {
        None
    }

    /// `None`, also in tests.
    #[cfg(test)]
    pub(in crate::engine::cpu) fn assume(_: InstructionSet) -> Option<Vectors> {
        None
    }

    /// Numbers that a vector holds.
    pub(in crate::engine::cpu) fn lanes(self) -> usize {
        let Vectors::None(none) = self;
        match none.0 {}
    }
}

/// The value of an expression for a set: there is none.
macro_rules! with_simd {
    ($vectors:expr, $simd:ident => $work:expr) => {
        match $vectors {
            $crate::engine::cpu::simd::Vectors::None($simd) => $work,
        }
    };
}
pub(in crate::engine::cpu) use with_simd;

/// A proof without values.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code, reason = "nobody has it")]
pub(in crate::engine::cpu) struct NoVectors(Infallible);

impl Simd for NoVectors {
    type V = NoVectors;

    const LANES: usize = 4;

    const REGISTERS: usize = 16;

    const HAS_VNNI: bool = false;

    const LATENCY_BOUND: bool = false;

    type WithoutVnni = NoVectors;

    type Singles = Singles4;

    type Doubles = Doubles2;

    const TRANSFORM_COSTS: TransformCosts = TransformCosts::PLAIN;

    const NEAR_ROOT_ERROR: f64 = 0.0;

    fn without_vnni(self) -> NoVectors {
        self
    }

    fn singles(self) -> Singles4 {
        match self.0 {}
    }

    fn doubles(self) -> Doubles2 {
        match self.0 {}
    }

    // Never called, but it uses the items of loops, so that they are not reported as dead.
    fn enter<W: IntLoop>(self, work: W) {
        work.run(self);
    }

    fn splat(self, _: i32) -> Self::V {
        match self.0 {}
    }

    unsafe fn load<T>(self, _: *const T) -> Self::V {
        match self.0 {}
    }

    unsafe fn store<T>(self, _: *mut T, _: Self::V) {
        match self.0 {}
    }

    fn prefetch<T>(self, _: *const T) {
        match self.0 {}
    }

    fn add_i32(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn sub_i32(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn add_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn add_i8(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn earlier_i16<const N: usize>(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn multiply_high_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn sub_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn add_saturating_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn sub_saturating_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn multiply_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn min_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn max_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn multiply_round_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn multiply_high_u16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn multiply_high_u32(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn add_pairs_u8(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn average_u16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn running_sums_i16<const C: usize>(self, _: Self::V, _: Self::V) -> [Self::V; 2] {
        match self.0 {}
    }

    fn shift_right_u16(self, _: Self::V, _: u32) -> Self::V {
        match self.0 {}
    }

    fn shift_left_i16(self, _: Self::V, _: u32) -> Self::V {
        match self.0 {}
    }

    fn add_dot_i16(self, _: Self::V, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn dot_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn multiply_i32(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn min_i32(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn max_i32(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn scaled_roots(self, _: Self::V, _: Option<f32>) -> Self::V {
        match self.0 {}
    }

    fn near_roots(self, _: Self::V, _: Option<f32>) -> Self::V {
        match self.0 {}
    }

    fn roots_below(self, _: Self::V, _: Option<f32>) -> Self::V {
        match self.0 {}
    }

    fn lengths_below(self, _: Self::V, _: Self::V, _: Option<f32>) -> Self::V {
        match self.0 {}
    }

    fn count_above_i16(self, _: Self::V, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn count_above_i32(self, _: Self::V, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn shift_right_i32(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn shift_left_i32(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn and(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn xor(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn merge_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    fn interleave_i16(self, _: Self::V, _: Self::V) -> [Self::V; 2] {
        match self.0 {}
    }

    fn pack_i16(self, _: Self::V, _: Self::V) -> Self::V {
        match self.0 {}
    }

    unsafe fn widen(self, _: *const u8) -> Self::V {
        match self.0 {}
    }

    unsafe fn pair_bytes(self, _: *const u8, _: *const u8) -> [Self::V; 2] {
        match self.0 {}
    }

    unsafe fn pair_words(self, _: *const u16, _: *const u16) -> [Self::V; 2] {
        match self.0 {}
    }

    unsafe fn store_bytes<const N: usize>(self, _: [Self::V; N], _: Order, _: *mut u8) {
        match self.0 {}
    }

    unsafe fn store_packed(self, _: [Self::V; 2], _: Order, _: *mut u8) {
        match self.0 {}
    }

    unsafe fn store_even_odd(self, _: [Self::V; 2], _: *mut u8) {
        match self.0 {}
    }

    unsafe fn store_words(self, _: [Self::V; 2], _: Order, _: u16, _: u32, _: *mut u8) {
        match self.0 {}
    }
}
