//! Deinterleaving: a row of interleaved pixels becomes one component after the other, so that neighbours lie
//! side by side for the row filter, as in a planar format (see `row_filter`). Between components there is
//! room for their aprons (see `border`), so that loops treat the whole as one row; the results in that room
//! are undefined.
#![allow(unsafe_code)]

use super::widen::{Widening, Words};
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};

/// Fewest weights of a row filter with which deinterleaving pays. Wide vectors rarely load from the start of
/// a cache line, so halving the number of loads saves more than deinterleaving costs.
const LEAST_WEIGHTS: usize = 3;

/// True if deinterleaving pays for a row filter of `weights` weights.
pub(in crate::engine::cpu) fn suit<L: Simd>(_: L, channels: usize, weights: usize) -> bool {
    (2..=4).contains(&channels) && weights >= LEAST_WEIGHTS && const { L::DEINTERLEAVES }
}

/// Words of a cache line.
const LINE: usize = 32;

/// Samples from a component of a row to the next one, with an apron of `reach` samples at each end: a
/// multiple of cache lines, with room for whole steps of the loops.
pub(in crate::engine::cpu) fn pitch(width: usize, reach: usize) -> usize {
    width.next_multiple_of(LINE) + (2 * reach).next_multiple_of(LINE)
}

/// Most bytes of a step of four components.
const STEP: usize = 4 * TILE;

/// The layout of a deinterleaved row: one component after the other, `pitch` samples apart.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Planar {
    pub(in crate::engine::cpu) channels: usize,
    pub(in crate::engine::cpu) pitch: usize,
}

/// Runs a loop that is compiled for this number of components and these bytes per sample.
macro_rules! with_form {
    ($channels:expr, $bytes:expr, $work:ident($($argument:expr),*), $simd:expr) => {{
        let simd = $simd.without_vnni();
        match ($channels, $bytes) {
            (2, 1) => simd.enter_with_bytes($work::<2, 1>($($argument),*)),
            (3, 1) => simd.enter_with_bytes($work::<3, 1>($($argument),*)),
            (4, 1) => simd.enter_with_bytes($work::<4, 1>($($argument),*)),
            (2, 2) => simd.enter_with_bytes($work::<2, 2>($($argument),*)),
            (3, 2) => simd.enter_with_bytes($work::<3, 2>($($argument),*)),
            (4, 2) => simd.enter_with_bytes($work::<4, 2>($($argument),*)),
            (channels, bytes) => unreachable!("{channels} components of {bytes} bytes"),
        }
    }};
}

/// Reads a row of pixels into words of one component after the other; a second limb goes `stride` words
/// further on. Components are written in whole cache lines, for which `out` has room; words after a
/// component's end are undefined.
pub(in crate::engine::cpu) fn deinterleave_row<L: Simd>(
    simd: L,
    widening: Widening,
    planar: Planar,
    row: &[u8],
    out: &mut [u16],
    stride: usize,
) {
    let Planar { channels, pitch } = planar;
    let pixels = row.len() / (channels * widening.bytes);
    let limbs = if widening.split_bytes { 2 } else { 1 };
    assert!(pixels.next_multiple_of(LINE) <= pitch);
    assert!((limbs - 1) * stride + (channels - 1) * pitch + pixels.next_multiple_of(LINE) <= out.len());
    // A constant condition: sets without deinterleaving do not compile the loops.
    if const { L::DEINTERLEAVES } {
        let out = out.as_mut_ptr();
        with_form!(
            channels,
            widening.bytes,
            Load(widening, row, out, pitch, stride),
            simd
        );
    }
}

/// The loop of [`deinterleave_row`], which has checked its bounds, for pixels of `C` components of `BYTES`
/// bytes.
struct Load<'a, const C: usize, const BYTES: usize>(Widening, &'a [u8], *mut u16, usize, usize);

impl<const C: usize, const BYTES: usize> IntLoop for Load<'_, C, BYTES> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Load(widening, row, out, pitch, stride) = self;
        let words = Words::new(simd, widening);
        let pixels = 2 * L::LANES;
        let step = pixels * C * BYTES;
        let whole = row.len() / step;
        for k in 0..whole {
            // SAFETY: the step ends within the row, and `deinterleave_row` asserted room for the row in each
            // component.
            unsafe {
                let from = row.as_ptr().add(k * step);
                load_step::<L, C, BYTES>(simd, &words, from, out.add(k * pixels), (pitch, stride));
            }
        }
        let rest = &row[whole * step..];
        if !rest.is_empty() {
            let mut last = [0; STEP];
            last[..rest.len()].copy_from_slice(rest);
            // SAFETY: the copy is a step long, and `deinterleave_row` asserted room for whole cache lines,
            // which are whole steps, in each component.
            unsafe {
                let to = out.add(whole * pixels);
                load_step::<L, C, BYTES>(simd, &words, last.as_ptr(), to, (pitch, stride));
            }
        }
    }
}

/// Makes a vector of words of each component.
///
/// # Safety
/// 2 LANES pixels are readable at `from`. A vector is writable at `out` plus `pitch` words for each
/// component, and `stride` words after each of these if there is a second limb.
#[inline(always)]
unsafe fn load_step<L: Simd, const C: usize, const BYTES: usize>(
    simd: L,
    words: &Words<L::V>,
    from: *const u8,
    out: *mut u16,
    (pitch, stride): (usize, usize),
) {
    // SAFETY: 2 LANES pixels are readable at `from`, and 2 LANES words are writable at `out` for each
    // component and limb.
    unsafe {
        let components = simd.deinterleave::<C, BYTES>(from);
        for c in 0..C {
            let to = out.add(c * pitch);
            if BYTES == 1 {
                simd.store(to, components[c]);
            } else {
                words.put(simd, components[c], to, stride);
            }
        }
    }
}

/// Readable samples after the last one of a row that is [interleaved](interleave_row).
pub(in crate::engine::cpu) const BEHIND: usize = TILE;

/// Interleaves a row: writes the pixels of a deinterleaved row of `bytes` bytes per sample, which has
/// [`BEHIND`] more samples after the last one.
pub(in crate::engine::cpu) fn interleave_row<L: Simd>(
    simd: L,
    planar: Planar,
    bytes: usize,
    row: &[u8],
    out: &mut [u8],
) {
    let Planar { channels, pitch } = planar;
    let pixels = out.len() / (channels * bytes);
    assert!(((channels - 1) * pitch + pixels + BEHIND) * bytes <= row.len());
    // A constant condition: sets without deinterleaving do not compile the loops.
    if const { L::DEINTERLEAVES } {
        with_form!(channels, bytes, Put(row, pitch, out), simd);
    }
}

/// The loop of [`interleave_row`], which has checked its bounds.
struct Put<'a, const C: usize, const BYTES: usize>(&'a [u8], usize, &'a mut [u8]);

impl<const C: usize, const BYTES: usize> IntLoop for Put<'_, C, BYTES> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Put(row, pitch, out) = self;
        // Bytes of a component in a step.
        let vector = 4 * L::LANES;
        let step = vector * C;
        let whole = out.len() / step;
        for k in 0..whole {
            // SAFETY: the step ends within `out`, and `interleave_row` asserted as many samples in each
            // component.
            unsafe {
                let from = row.as_ptr().add(k * vector);
                store_step::<L, C, BYTES>(simd, from, pitch, out.as_mut_ptr().add(k * step));
            }
        }
        let rest = &mut out[whole * step..];
        if !rest.is_empty() {
            let mut last = [0; STEP];
            // SAFETY: `interleave_row` asserted BEHIND readable samples after a component's last one, and
            // `last` is a step long.
            unsafe {
                let from = row.as_ptr().add(whole * vector);
                store_step::<L, C, BYTES>(simd, from, pitch, last.as_mut_ptr());
            }
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

/// Interleaves a vector of each component.
///
/// # Safety
/// A vector is readable at `from` plus `pitch` samples for each component, and `C` vectors are writable at
/// `to`.
#[inline(always)]
unsafe fn store_step<L: Simd, const C: usize, const BYTES: usize>(
    simd: L,
    from: *const u8,
    pitch: usize,
    to: *mut u8,
) {
    // SAFETY: 2 LANES samples are readable at `from` and at each further component's place, and C times as
    // many are writable at `to`.
    unsafe {
        let mut components = [from; C];
        for c in 0..C {
            components[c] = from.add(c * pitch * BYTES);
        }
        simd.interleave::<C, BYTES>(components, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::simd::{InstructionSet, Vectors, with_simd};

    /// Deinterleaves `pixels` into a vector of words of each component, and interleaves `components`.
    struct Both<'a, const C: usize, const BYTES: usize> {
        pixels: &'a [u8],
        words: &'a mut [Vec<u16>],
        components: &'a [Vec<u8>],
        together: &'a mut [u8],
    }

    impl<const C: usize, const BYTES: usize> IntLoop for Both<'_, C, BYTES> {
        #[inline(always)]
        fn run<L: Simd>(self, simd: L) {
            let mut from = [self.pixels.as_ptr(); C];
            // SAFETY: with at most 16 lanes 2 LANES pixels, and C vectors, are at most STEP bytes, which
            // `pixels` and `together` have; a vector is at most TILE bytes of a component and LINE words.
            unsafe {
                let components = simd.deinterleave::<C, BYTES>(self.pixels.as_ptr());
                for c in 0..C {
                    simd.store(self.words[c].as_mut_ptr(), components[c]);
                    from[c] = self.components[c].as_ptr();
                }
                simd.interleave::<C, BYTES>(from, self.together.as_mut_ptr());
            }
        }
    }

    fn check<L: Simd, const C: usize, const BYTES: usize>(simd: L, permutes_bytes: bool) {
        let pixels: Vec<u8> = (0..STEP).map(|at| (at * 89 + at / 7) as u8).collect();
        let components: Vec<Vec<u8>> = (0..C)
            .map(|c| (0..TILE).map(|at| (at * 37 + c * 101 + 5) as u8).collect())
            .collect();
        let (mut words, mut together) = (vec![vec![0; LINE]; C], vec![0; STEP]);
        let work = Both::<C, BYTES> {
            pixels: &pixels,
            words: &mut words,
            components: &components,
            together: &mut together,
        };
        if permutes_bytes {
            simd.without_vnni().enter_with_bytes(work);
        } else {
            simd.without_vnni().enter(work);
        }
        let sample = |bytes: &[u8], at: usize| match BYTES {
            1 => u16::from(bytes[at]),
            _ => u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]),
        };
        for (c, words) in words.iter().enumerate() {
            for x in 0..2 * L::LANES {
                assert_eq!(
                    words[x],
                    sample(&pixels, x * C + c),
                    "word {x} of component {c} of {C}"
                );
            }
        }
        for at in 0..4 * L::LANES * C / BYTES {
            let expected = sample(&components[at % C], at / C);
            assert_eq!(sample(&together, at), expected, "sample {at} of {C} components");
        }
    }

    fn check_all<L: Simd>(simd: L, permutes_bytes: bool) {
        check::<L, 2, 1>(simd, permutes_bytes);
        check::<L, 3, 1>(simd, permutes_bytes);
        check::<L, 4, 1>(simd, permutes_bytes);
        check::<L, 2, 2>(simd, permutes_bytes);
        check::<L, 3, 2>(simd, permutes_bytes);
        check::<L, 4, 2>(simd, permutes_bytes);
    }

    #[test]
    fn components_are_deinterleaved_and_interleaved() {
        let Some(vectors) = Vectors::of(InstructionSet::Avx512) else {
            eprintln!("SKIPPED: this machine has no AVX-512");
            return;
        };
        // Once more with instructions that permute bytes, if the machine has them.
        for permutes_bytes in [false, true] {
            with_simd!(vectors, simd => check_all(simd, permutes_bytes));
        }
    }
}
