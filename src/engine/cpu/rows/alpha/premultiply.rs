//! The inner loops that premultiply and unpremultiply: plain arithmetic on whole pixels, each in one integer,
//! which the compiler vectorises for each instruction set.
//!
//! A pixel has `SIZE` bytes, samples of `BYTES` bytes, and alpha at place `ALPHA` among them; or it is one
//! sample, and alpha has a row of its own.

use crate::engine::cpu::simd::vector::Plain;

/// How the colours of a plane are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// The bits of a pixel's number, lowest byte first, that are weighted colours.
    pub(super) colours: u64,
    /// Bits of a sample that count.
    pub(super) depth: u32,
    /// The colour that stands for no signal.
    pub(super) level: u32,
    /// True if the mask's bias is added to the colours.
    pub(super) takes_bias: bool,
}

/// The constants of unpremultiplication, beside the [`Form`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnpremultiplyConstants {
    /// The mask's gain times 2^16.
    pub(super) gain: u32,
    /// What is added last.
    pub(super) offset: i32,
    /// The bits of a pixel that are those of the original in the end.
    pub(super) restored: u64,
}

/// A row of pixels that becomes another.
pub(super) struct Pixels<'a> {
    /// The row of the original.
    pub(super) before: &'a [u8],
    /// The row of alpha, where pixels are one sample; else any row as long.
    pub(super) alpha: &'a [u8],
    /// The row that is made, or, where colours are unpremultiplied, changed.
    pub(super) out: &'a mut [u8],
}

/// Colours of a pixel.
const fn colours(size: usize, bytes: usize) -> u32 {
    if size == bytes {
        1
    } else {
        (size / bytes - 1) as u32
    }
}

/// The bit of a pixel's number at which its first colour begins.
const fn first(size: usize, bytes: usize, alpha: usize) -> u32 {
    if size > bytes && alpha == 0 {
        8 * bytes as u32
    } else {
        0
    }
}

/// Premultiplies pixels of four bytes whose zero level is 0, two samples in one product.
pub(super) struct PremultiplyFours<'a, const ALPHA: usize>(pub(super) Form, pub(super) Pixels<'a>);

impl<const ALPHA: usize> Plain for PremultiplyFours<'_, ALPHA> {
    #[inline(always)]
    fn run(self) {
        const EVEN: u32 = 0x00FF_00FF;
        let PremultiplyFours(form, Pixels { before, out, .. }) = self;
        let colours = form.colours as u32;
        let before = before.as_chunks::<4>().0;
        for (out, before) in out.as_chunks_mut::<4>().0.iter_mut().zip(before) {
            let pixel = u32::from_le_bytes(*before);
            let alpha = (pixel >> (8 * ALPHA)) & 0xFF;
            // A product of two bytes over 255, to the nearest: in the upper byte of each word.
            let divided = |products: u32| {
                let rounded = products + 0x0080_0080;
                rounded + ((rounded >> 8) & EVEN)
            };
            let even = divided((pixel & EVEN) * alpha) >> 8;
            let odd = divided(((pixel >> 8) & EVEN) * alpha);
            let weighted = (even & EVEN) | (odd & !EVEN);
            *out = ((weighted & colours) | (pixel & !colours)).to_le_bytes();
        }
    }
}

/// The loops for pixels in whole numbers of one width, which has to hold the product of two samples.
macro_rules! premultiplying {
    ($bits:ty) => {
        use super::{Form, Pixels, Plain};

        #[inline(always)]
        fn read<const SIZE: usize>(pixel: &[u8; SIZE]) -> $bits {
            let mut bytes = [0; size_of::<$bits>()];
            bytes[..SIZE].copy_from_slice(pixel);
            <$bits>::from_le_bytes(bytes)
        }

        /// All bits of a sample of so many bytes.
        const fn sample(bytes: usize) -> $bits {
            (1 << (8 * bytes)) - 1
        }

        /// Bits that count of a sample of so many bytes, as a constant where it is one.
        #[inline(always)]
        fn depth(form: Form, bytes: usize) -> u32 {
            if bytes == 1 { 8 } else { form.depth }
        }

        /// Finds out if all alpha of a row of pixels, or of a row of alpha, is the largest that there is.
        pub(in super::super) struct Opaque<'a, const SIZE: usize, const BYTES: usize, const ALPHA: usize>(
            pub(in super::super) Form,
            pub(in super::super) &'a [u8],
            pub(in super::super) &'a mut bool,
        );

        impl<const SIZE: usize, const BYTES: usize, const ALPHA: usize> Plain
            for Opaque<'_, SIZE, BYTES, ALPHA>
        {
            #[inline(always)]
            fn run(self) {
                let Opaque(form, row, is_opaque) = self;
                let max: $bits = (1 << depth(form, BYTES)) - 1;
                *is_opaque = row.as_chunks::<SIZE>().0.chunks(256).all(|pixels| {
                    let mut common = <$bits>::MAX;
                    for pixel in pixels {
                        common &= read(pixel);
                    }
                    (common >> (8 * BYTES * ALPHA)) & max == max
                });
            }
        }

        /// Premultiplies: `L + floor((2 (c - L) a + M) / 2M)`, whose numerator is odd.
        pub(in super::super) struct Premultiply<
            'a,
            const SIZE: usize,
            const BYTES: usize,
            const ALPHA: usize,
        >(
            pub(in super::super) Form,
            pub(in super::super) Pixels<'a>,
        );

        impl<const SIZE: usize, const BYTES: usize, const ALPHA: usize> Plain
            for Premultiply<'_, SIZE, BYTES, ALPHA>
        {
            #[inline(always)]
            fn run(self) {
                let Premultiply(form, Pixels { before, alpha, out }) = self;
                let depth = depth(form, BYTES);
                let max: $bits = (1 << depth) - 1;
                let (level, colours) = (form.level as $bits, form.colours as $bits);
                let before = before.as_chunks::<SIZE>().0.iter();
                let alpha = alpha.as_chunks::<SIZE>().0;
                let out = out.as_chunks_mut::<SIZE>().0.iter_mut();
                for ((out, before), alpha) in out.zip(before).zip(alpha) {
                    let pixel = read(before);
                    let of_row = if SIZE == BYTES { read(alpha) } else { pixel };
                    let a = (of_row >> (8 * BYTES * ALPHA)) & sample(BYTES);
                    // One more than what is divided: that over 2^depth - 1 is this plus that over 2^depth,
                    // over 2^depth.
                    let more = level * (max - a) + max / 2 + 1;
                    let mut weighted = 0;
                    for k in 0..super::colours(SIZE, BYTES) {
                        let at = super::first(SIZE, BYTES, ALPHA) + 8 * BYTES as u32 * k;
                        let colour = (pixel >> at) & sample(BYTES);
                        let sum = colour * a + more;
                        weighted |= ((sum + ((sum - 1) >> depth)) >> depth) << at;
                    }
                    let result = (weighted & colours) | (pixel & !colours);
                    out.copy_from_slice(&result.to_le_bytes()[..SIZE]);
                }
            }
        }
    };
}

/// The loops that unpremultiply, for pixels in numbers of one width and floating point numbers of
/// that width.
macro_rules! unpremultiplying {
    ($bits:ty, $real:ty) => {
        use super::UnpremultiplyConstants;

        /// The least floating point number all of whose successors are whole. With a smaller whole number for
        /// its lowest bits it is greater by that.
        const WHOLE: $real = (1 as $bits << (<$real>::MANTISSA_DIGITS - 1)) as $real;

        /// Unpremultiplies: `clamp(L + floor((2 (c - L) M g + A 2^16) / (2 A 2^16)) + offset)`, the original
        /// where A = 0. `PLAIN` where L and the offset are 0.
        ///
        /// That is `(c - L) M g / (A 2^16)` to the nearest whole number, halves up, and the rest. It is a
        /// multiple of a unit `1 / (A 2^16)`, or `1 / A` where g is 2^16, so that with a quarter of a unit
        /// more it is never half way and always a quarter of a unit away from there. Its six roundings, of
        /// numbers up to 2^48 units, or 2^16 for bytes where g is 2^16, take or add less: 6 / 32 of a unit
        /// with numbers of 64 bits, 6 / 256 with those of 32.
        pub(in super::super) struct Unpremultiply<
            'a,
            const SIZE: usize,
            const BYTES: usize,
            const ALPHA: usize,
            const PLAIN: bool,
        >(
            pub(in super::super) Form,
            pub(in super::super) UnpremultiplyConstants,
            pub(in super::super) Pixels<'a>,
        );

        impl<const SIZE: usize, const BYTES: usize, const ALPHA: usize, const PLAIN: bool> Plain
            for Unpremultiply<'_, SIZE, BYTES, ALPHA, PLAIN>
        {
            #[inline(always)]
            fn run(self) {
                let Unpremultiply(form, constants, Pixels { before, alpha, out }) = self;
                let depth = depth(form, BYTES);
                let max = ((1 << depth) - 1) as $real;
                let (colours, restored) = (form.colours as $bits, constants.restored as $bits);
                let unit = if constants.gain == 1 << 16 {
                    1.0
                } else {
                    1.0 / 65536.0
                };
                let (scale, nudge) = (max * constants.gain as $real / 65536.0, 0.25 * unit);
                // What is beyond this cuts every colour, whatever it is exactly.
                let most = 2 << (2 * depth);
                let above = i64::from(form.level) + i64::from(constants.offset);
                let (zero, above) = if PLAIN {
                    (WHOLE, 0.0)
                } else {
                    (WHOLE + form.level as $real, above.clamp(-most, most) as $real)
                };
                let (least, largest) = (-above, max - above);
                // Sums with this are whole, and their lowest bits the colour.
                let rounding = 1.5 * WHOLE + above;
                let before = before.as_chunks::<SIZE>().0.iter();
                let alpha = alpha.as_chunks::<SIZE>().0;
                let out = out.as_chunks_mut::<SIZE>().0.iter_mut();
                for ((out, before), alpha) in out.zip(before).zip(alpha) {
                    let (pixel, original) = (read(out), read(before));
                    let of_row = if SIZE == BYTES { read(alpha) } else { pixel };
                    let a = (of_row >> (8 * BYTES * ALPHA)) & sample(BYTES);
                    let reciprocal = 1.0 / (<$real>::from_bits(a | WHOLE.to_bits()) - WHOLE);
                    let (scale, nudge) = (scale * reciprocal, nudge * reciprocal);
                    let mut made = 0;
                    for k in 0..super::colours(SIZE, BYTES) {
                        let at = super::first(SIZE, BYTES, ALPHA) + 8 * BYTES as u32 * k;
                        let colour = (pixel >> at) & sample(BYTES);
                        let colour = <$real>::from_bits(colour | WHOLE.to_bits()) - zero;
                        let colour = colour * scale + nudge;
                        // Written so, either takes one instruction and makes a number of what is none.
                        let colour = if PLAIN || colour > least { colour } else { least };
                        let colour = if colour < largest { colour } else { largest };
                        made |= ((colour + rounding).to_bits() & sample(BYTES)) << at;
                    }
                    let made = (made & colours) | (pixel & !colours);
                    let kept = if a == 0 { colours | restored } else { restored };
                    let result = (made & !kept) | (original & kept);
                    out.copy_from_slice(&result.to_le_bytes()[..SIZE]);
                }
            }
        }
    };
}

pub(in crate::engine::cpu) mod words {
    premultiplying!(u16);
}

pub(in crate::engine::cpu) mod numbers {
    premultiplying!(u32);
    unpremultiplying!(u32, f32);
}

pub(in crate::engine::cpu) mod doubles {
    premultiplying!(u64);
    unpremultiplying!(u64, f64);
}
