//! Converts stored samples to numbers of any type and back, in loops that the compiler vectorizes.

use crate::frame::PixelFormat;

/// Loads the samples of a row. `number` converts a sample without its padding bits.
#[inline(always)]
pub(in crate::engine::cpu) fn load<T>(
    format: PixelFormat,
    row: &[u8],
    to: &mut [T],
    number: impl Fn(u16) -> T,
) {
    if format.bytes_per_sample() == 1 {
        for (to, &from) in to.iter_mut().zip(row) {
            *to = number(u16::from(from));
        }
    } else {
        let shift = format.shift();
        for (to, &from) in to.iter_mut().zip(row.as_chunks::<2>().0) {
            *to = number(u16::from_le_bytes(from) >> shift);
        }
    }
}

/// Stores numbers, which are in the range of samples, in a row.
#[inline(always)]
pub(in crate::engine::cpu) fn store(format: PixelFormat, numbers: &[i32], row: &mut [u8]) {
    if format.bytes_per_sample() == 1 {
        for (to, &number) in row.iter_mut().zip(numbers) {
            *to = number as u8;
        }
    } else {
        let left = format.shift();
        for (to, &number) in row.as_chunks_mut::<2>().0.iter_mut().zip(numbers) {
            *to = ((number as u16) << left).to_le_bytes();
        }
    }
}
