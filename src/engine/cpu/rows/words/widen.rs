//! Widening: 8- and 16-bit samples become 16-bit words, or pairs of them, in registers, for vectors of any
//! width.
#![allow(unsafe_code)]

use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};

/// The conversion of stored samples to words of a [`SampleEncoding`](super::sample::SampleEncoding).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::cpu) struct Widening {
    /// Bytes of a stored sample, 1 or 2.
    pub(in crate::engine::cpu) bytes: usize,
    /// Padding bits below a sample of two bytes.
    pub(in crate::engine::cpu) shift: u32,
    /// Bits to invert: 0x8000 subtracts 32768 from a sample.
    pub(super) flip: u16,
    /// True if the two bytes of a sample are two limbs.
    pub(super) split_bytes: bool,
}

/// [`Widening`] in registers.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Words<T> {
    widening: Widening,
    shift: T,
    kept: T,
    flip: T,
    eight: T,
    byte: T,
}

impl<T: Copy> Words<T> {
    #[inline(always)]
    pub(in crate::engine::cpu) fn new<L: Simd<V = T>>(simd: L, widening: Widening) -> Words<T> {
        let both = |word: u16| i32::from(word) << 16 | i32::from(word);
        Words {
            widening,
            shift: simd.splat(widening.shift as i32),
            kept: simd.splat(both(u16::MAX >> widening.shift)),
            flip: simd.splat(both(widening.flip)),
            eight: simd.splat(8),
            byte: simd.splat(both(255)),
        }
    }

    /// Stored words without their padding bits, with [`Widening::flip`] applied.
    #[inline(always)]
    fn taken<L: Simd<V = T>>(&self, simd: L, mut stored: T) -> T {
        if self.widening.shift > 0 {
            stored = simd.and(simd.shift_right_i32(stored, self.shift), self.kept);
        }
        simd.xor(stored, self.flip)
    }

    /// The low and the high bytes of words.
    #[inline(always)]
    fn split<L: Simd<V = T>>(&self, simd: L, words: T) -> [T; 2] {
        let high = simd.and(simd.shift_right_i32(words, self.eight), self.byte);
        [simd.and(words, self.byte), high]
    }

    /// Converts stored words and writes them to `to`; a second limb goes `stride` words further on.
    ///
    /// # Safety
    /// A vector is writable at `to`, and at the second limb's place.
    #[inline(always)]
    pub(in crate::engine::cpu) unsafe fn put<L: Simd<V = T>>(
        &self,
        simd: L,
        stored: T,
        to: *mut u16,
        stride: usize,
    ) {
        let taken = self.taken(simd, stored);
        // SAFETY: 2 LANES words are writable at `to` and, if there is a second limb, `stride` words on.
        unsafe {
            if self.widening.split_bytes {
                let [low, high] = self.split(simd, taken);
                simd.store(to, low);
                simd.store(to.add(stride), high);
            } else {
                simd.store(to, taken);
            }
        }
    }
}

/// `out[x] = (upper[x], lower[x])`; a second limb goes `stride` elements further on. `out` has room for the
/// row rounded up to a multiple of [`TILE`] / 2 samples; elements after the row's end are undefined.
pub(in crate::engine::cpu) fn pair_rows<L: Simd>(
    simd: L,
    widening: Widening,
    rows: [&[u8]; 2],
    out: &mut [u32],
    stride: usize,
) {
    let reach = (rows[0].len() / widening.bytes).next_multiple_of(TILE / 2);
    let limbs = if widening.split_bytes { 2 } else { 1 };
    assert!(rows[0].len() == rows[1].len() && (limbs - 1) * stride + reach <= out.len());
    let simd = simd.without_vnni();
    if widening.bytes == 1 {
        simd.enter(PairRows::<1>(widening, rows, out.as_mut_ptr(), stride));
    } else {
        simd.enter(PairRows::<2>(widening, rows, out.as_mut_ptr(), stride));
    }
}

/// The loop of [`pair_rows`], which has checked its bounds, for samples of `BYTES` bytes.
struct PairRows<'a, const BYTES: usize>(Widening, [&'a [u8]; 2], *mut u32, usize);

impl<const BYTES: usize> IntLoop for PairRows<'_, BYTES> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let PairRows(widening, rows, out, stride) = self;
        let words = Words::new(simd, widening);
        let step = 2 * L::LANES * BYTES;
        let whole = rows[0].len() / step * step;
        for at in (0..whole).step_by(step) {
            // SAFETY: the step ends within the rows, and `pair_rows` asserted room for it in `out`.
            unsafe {
                let from = [rows[0].as_ptr().add(at), rows[1].as_ptr().add(at)];
                pair_step::<L, BYTES>(simd, &words, from, out.add(at / BYTES), stride);
            }
        }
        if whole < rows[0].len() {
            let last = [padded_step(&rows[0][whole..]), padded_step(&rows[1][whole..])];
            // SAFETY: the copies are a step long, and `pair_rows` asserted room for another step in `out`.
            unsafe {
                let from = [last[0].as_ptr(), last[1].as_ptr()];
                pair_step::<L, BYTES>(simd, &words, from, out.add(whole / BYTES), stride);
            }
        }
    }
}

/// The end of a row, padded with zeros to the longest step.
fn padded_step(rest: &[u8]) -> [u8; TILE] {
    let mut step = [0; TILE];
    step[..rest.len()].copy_from_slice(rest);
    step
}

/// Makes two vectors of pairs.
#[inline(always)]
unsafe fn pair_step<L: Simd, const BYTES: usize>(
    simd: L,
    words: &Words<L::V>,
    from: [*const u8; 2],
    out: *mut u32,
    stride: usize,
) {
    // SAFETY: 2 LANES samples are readable at each of `from`, and as many elements are writable at `out` and,
    // if there is a second limb, `stride` on.
    unsafe {
        if BYTES == 1 {
            store_both(simd, out, simd.pair_bytes(from[0], from[1]));
            return;
        }
        let [first, second] = simd.pair_words(from[0].cast(), from[1].cast());
        let pairs = [words.taken(simd, first), words.taken(simd, second)];
        if words.widening.split_bytes {
            let (first, second) = (words.split(simd, pairs[0]), words.split(simd, pairs[1]));
            store_both(simd, out, [first[0], second[0]]);
            store_both(simd, out.add(stride), [first[1], second[1]]);
        } else {
            store_both(simd, out, pairs);
        }
    }
}

/// `out[x] = row[x]` as a word; a second limb goes `stride` words further on. `out` has room for the row
/// rounded up to a multiple of [`TILE`] / 2 samples; words after the row's end are undefined.
pub(in crate::engine::cpu) fn load_row<L: Simd>(
    simd: L,
    widening: Widening,
    row: &[u8],
    out: &mut [u16],
    stride: usize,
) {
    let reach = (row.len() / widening.bytes).next_multiple_of(TILE / 2);
    let limbs = if widening.split_bytes { 2 } else { 1 };
    assert!((limbs - 1) * stride + reach <= out.len());
    let simd = simd.without_vnni();
    if widening.bytes == 1 {
        simd.enter(LoadRow::<1>(widening, row, out.as_mut_ptr(), stride));
    } else {
        simd.enter(LoadRow::<2>(widening, row, out.as_mut_ptr(), stride));
    }
}

/// The loop of [`load_row`], which has checked its bounds, for samples of `BYTES` bytes.
struct LoadRow<'a, const BYTES: usize>(Widening, &'a [u8], *mut u16, usize);

impl<const BYTES: usize> IntLoop for LoadRow<'_, BYTES> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let LoadRow(widening, row, out, stride) = self;
        let words = Words::new(simd, widening);
        let step = 2 * L::LANES * BYTES;
        let whole = row.len() / step * step;
        for at in (0..whole).step_by(step) {
            // SAFETY: the step ends within the row, and `load_row` asserted room for it in `out`.
            unsafe {
                let from = row.as_ptr().add(at);
                load_step::<L, BYTES>(simd, &words, from, out.add(at / BYTES), stride);
            }
        }
        if whole < row.len() {
            let last = padded_step(&row[whole..]);
            // SAFETY: the copy is a step long, and `load_row` asserted room for another step in `out`.
            unsafe {
                load_step::<L, BYTES>(simd, &words, last.as_ptr(), out.add(whole / BYTES), stride);
            };
        }
    }
}

/// Makes a vector of words.
#[inline(always)]
unsafe fn load_step<L: Simd, const BYTES: usize>(
    simd: L,
    words: &Words<L::V>,
    from: *const u8,
    out: *mut u16,
    stride: usize,
) {
    // SAFETY: 2 LANES samples are readable at `from`, and as many words are writable at `out` and, if there
    // is a second limb, `stride` on.
    unsafe {
        if BYTES == 1 {
            simd.store(out, simd.widen(from));
            return;
        }
        words.put(simd, simd.load(from), out, stride);
    }
}

/// Stores two vectors, one after the other.
#[inline(always)]
unsafe fn store_both<L: Simd>(simd: L, to: *mut u32, values: [L::V; 2]) {
    // SAFETY: 2 LANES elements are writable at `to`.
    unsafe {
        simd.store(to, values[0]);
        simd.store(to.add(L::LANES), values[1]);
    }
}
