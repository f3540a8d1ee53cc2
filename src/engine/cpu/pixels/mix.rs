//! Mixes two rows by a row of weights, sample by sample, rounded by docs/arithmetic.md.
//!
//! The quotient of integers is computed in 64-bit floating point. Its numerator is an integer below 2^38, its
//! denominator at most 2^21. With one half added to the numerator no quotient is nearer to an integer than
//! 2^-22, while the product with the reciprocal has an error of at most 2^-36: its floor is the quotient's
//! floor.

use super::{Stored, floor_bits};
use crate::engine::cpu::simd::vector::Plain;
use crate::engine::cpu::simd::{Vectors, best_vectors, run_plain};
use crate::frame::PixelFormat;
use half::f16;

/// Mixes samples of one format.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Mixing {
    vectors: Option<Vectors>,
    /// Bytes of a sample.
    bytes: usize,
    is_float: bool,
    /// Padding bits below a stored sample.
    shift: u32,
}

impl Mixing {
    /// For samples of `format`.
    pub(in crate::engine) fn new(format: PixelFormat) -> Mixing {
        Mixing {
            vectors: best_vectors(),
            bytes: format.bytes_per_sample(),
            is_float: format.is_float(),
            shift: format.shift(),
        }
    }

    /// Mixes samples of `from` into `to`: each sample of `from` has its weight over `whole`, and the sample
    /// of `to` the rest. With weight 0 or `whole` the result has the bits of one of them. `whole` is at most
    /// 2^20.
    pub(in crate::engine) fn mix(&self, to: &mut [u8], from: &[u8], weights: &[u32], whole: u32) {
        match (self.bytes, self.is_float) {
            (1, _) => self.run(Mix {
                to,
                from,
                weights,
                whole,
                arithmetic: Integers(0),
            }),
            (2, false) => self.run(Mix {
                to: to.as_chunks_mut::<2>().0,
                from: from.as_chunks::<2>().0,
                weights,
                whole,
                arithmetic: Integers(self.shift),
            }),
            (2, true) => self.run(Mix {
                to: to.as_chunks_mut::<2>().0,
                from: from.as_chunks::<2>().0,
                weights,
                whole,
                arithmetic: Halves,
            }),
            _ => self.run(Mix {
                to: to.as_chunks_mut::<4>().0,
                from: from.as_chunks::<4>().0,
                weights,
                whole,
                arithmetic: Singles,
            }),
        }
    }

    fn run<S: Copy, A: Arithmetic<S>>(&self, mix: Mix<'_, S, A>) {
        run_plain(self.vectors, mix);
    }
}

/// The arithmetic of mixing two samples.
trait Arithmetic<S>: Copy {
    /// `(to (whole - weight) + from weight) / whole`, where the weight is more than 0 and less than `whole`.
    fn mixed(self, to: S, from: S, weight: f64, whole: f64) -> S;
}

/// Integers, halves rounded up. The field is the number of padding bits below a stored sample.
#[derive(Clone, Copy)]
struct Integers(u32);

impl<S: Stored> Arithmetic<S> for Integers {
    #[inline(always)]
    fn mixed(self, to: S, from: S, weight: f64, whole: f64) -> S {
        let to = f64::from((to.level() >> self.0) as i32);
        let from = f64::from((from.level() >> self.0) as i32);
        let numerator = 2.0 * (to * (whole - weight) + from * weight) + whole;
        let quotient = (numerator + 0.5) * (0.5 / whole);
        S::of(floor_bits(quotient) << self.0)
    }
}

/// Floating-point numbers of 32 bits, computed in 64 bits and rounded once.
#[derive(Clone, Copy)]
struct Singles;

impl Arithmetic<[u8; 4]> for Singles {
    #[inline(always)]
    fn mixed(self, to: [u8; 4], from: [u8; 4], weight: f64, whole: f64) -> [u8; 4] {
        let (to, from) = (
            f64::from(f32::from_le_bytes(to)),
            f64::from(f32::from_le_bytes(from)),
        );
        let value = ((to * (whole - weight) + from * weight) / whole) as f32;
        // Which NaN the operations make depends on the processor.
        let value = if value.is_nan() { f32::NAN } else { value };
        value.to_le_bytes()
    }
}

/// Floating-point numbers of 16 bits, computed in 64 bits, rounded to 32 and then to 16.
#[derive(Clone, Copy)]
struct Halves;

impl Arithmetic<[u8; 2]> for Halves {
    #[inline(always)]
    fn mixed(self, to: [u8; 2], from: [u8; 2], weight: f64, whole: f64) -> [u8; 2] {
        let single = |half| f16::from_le_bytes(half).to_f32().to_le_bytes();
        let mixed = Singles.mixed(single(to), single(from), weight, whole);
        f16::from_f32(f32::from_le_bytes(mixed)).to_le_bytes()
    }
}

/// The loop that mixes a row.
struct Mix<'a, S, A> {
    to: &'a mut [S],
    from: &'a [S],
    weights: &'a [u32],
    whole: u32,
    arithmetic: A,
}

impl<S: Copy, A: Arithmetic<S>> Plain for Mix<'_, S, A> {
    #[inline(always)]
    fn run(self) {
        let all = f64::from(self.whole as i32);
        for ((to, &from), &weight) in self.to.iter_mut().zip(self.from).zip(self.weights) {
            let mixed = self.arithmetic.mixed(*to, from, f64::from(weight as i32), all);
            let or_whole = if weight == self.whole { from } else { mixed };
            *to = if weight == 0 { *to } else { or_whole };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nan_that_is_mixed_is_the_quiet_one() {
        let singles = [
            0x7F80_0000_u32,
            0xFF80_0000,
            0x7FA0_0001,
            0xFFC0_1234,
            0x3F80_0000,
        ];
        let halves = [0x7C00_u16, 0xFC00, 0x7D01, 0xFE34, 0x3C00];
        for k in 0..singles.len() {
            // The negative of the sample: of infinity the difference is no number.
            let (mut single, other) = (singles[k].to_le_bytes(), singles[k] ^ 0x8000_0000);
            let mixing = Mixing::new(PixelFormat::from_name("grayf32le").unwrap());
            mixing.mix(&mut single, &other.to_le_bytes(), &[100], 255);
            let (mut half, other) = (halves[k].to_le_bytes(), halves[k] ^ 0x8000);
            let mixing = Mixing::new(PixelFormat::from_name("grayf16le").unwrap());
            mixing.mix(&mut half, &other.to_le_bytes(), &[100], 255);
            let found = (u32::from_le_bytes(single), u16::from_le_bytes(half));
            let is_number = k == 4;
            assert_eq!(found == (0x7FC0_0000, 0x7E00), !is_number, "{k}: {found:x?}");
        }
    }

    /// Quotients just above and just below integers, for all denominators.
    #[test]
    fn quotients_next_to_integers_are_rounded_as_integers_are() {
        let mixing = Mixing::new(PixelFormat::from_name("gray16le").unwrap());
        let integer = |to: u64, from: u64, weight: u64, whole: u64| {
            (2 * (to * (whole - weight) + from * weight) + whole) / (2 * whole)
        };
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut close = 0;
        for turn in 0..200_000 {
            let max = [255, 1023, 4095, 65535][turn % 4];
            let whole = max * [1, 2, 4, 8, 16][turn % 5];
            let (weight, to) = (random(whole + 1), random(65536));
            // Of the samples near a random one that whose result lies next to a half.
            let around = random(65536 - 64);
            let distance = |from: u64| {
                let rest = (2 * (to * (whole - weight) + from * weight) + whole) % (2 * whole);
                rest.min(2 * whole - rest)
            };
            let from = (around..around + 64).min_by_key(|&from| distance(from)).unwrap();
            close += u32::from(distance(from) <= 1);
            let mut bytes = (to as u16).to_le_bytes();
            mixing.mix(
                &mut bytes,
                &(from as u16).to_le_bytes(),
                &[weight as u32],
                whole as u32,
            );
            let found = u64::from(u16::from_le_bytes(bytes));
            assert_eq!(
                found,
                integer(to, from, weight, whole),
                "{to} {from} {weight} {whole}"
            );
        }
        assert!(close > 10_000, "{close}");
    }
}
