//! Rows of pixels of several components as *pairs of pixels*: the first components of two neighbouring pixels, the second ones and so on, then those of the next
//! two. So two neighbours of one component lie side by side, as in a plane of its own, and a row pass takes them where they lie (see `row_pass`); what it
//! makes of them lies in the same way, until results are put back in order.
#![allow(unsafe_code)]

use super::lanes::{Lanes, Work};

/// Weights of a row from which on pixels are worth pairing.
const LEAST_WEIGHTS: usize = 21;

/// True if pixels of so many components are worth pairing for a row of so many weights: of wide vectors hardly any load begins on a cache line, and half as many are
/// needed then, but twice as many products, which therefore have to be added at once.
pub(super) fn suit<L: Lanes>(_: L, channels: usize, weights: usize) -> bool {
    is_for::<L>() && (2..=4).contains(&channels) && weights >= LEAST_WEIGHTS
}

const fn is_for<L: Lanes>() -> bool {
    L::LANES == LANES && L::FUSES
}

/// Samples of a row of pixels, paired; the last pixel may be there without its partner.
pub(super) fn paired_samples(pixels: usize, channels: usize) -> usize {
    2 * channels * pixels.div_ceil(2)
}

/// Numbers in a vector with which pixels are paired.
pub(super) const LANES: usize = 16;

/// Words in such a vector.
const WORDS: usize = 2 * LANES;

/// Words of whole pairs of pixels in a vector.
pub(super) const fn step(channels: usize) -> usize {
    WORDS / (2 * channels) * 2 * channels
}

/// Pairs the pixels that `words` begins with, so many samples and some more, for which there has to be room on both sides.
pub(super) fn pair<L: Lanes>(lanes: L, channels: usize, samples: usize, words: &[u16], out: &mut [u16]) {
    assert!(samples + 2 * WORDS <= words.len() && samples + 2 * WORDS <= out.len());
    // A constant asked for as such, lest loops be compiled that nothing enters.
    if const { !is_for::<L>() } {
        unreachable!("no loop is compiled for pairs of pixels with such vectors");
    }
    match channels {
        2 => lanes.enter(Pair::<2>(samples, words, out)),
        3 => lanes.enter(Pair::<3>(samples, words, out)),
        4 => lanes.enter(Pair::<4>(samples, words, out)),
        _ => unreachable!("{channels} components are not paired"),
    }
}

struct Pair<'a, const C: usize>(usize, &'a [u16], &'a mut [u16]);

impl<const C: usize> Work for Pair<'_, C> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Pair(samples, words, out) = self;
        let step = const { step(C) };
        for x in (0..samples).step_by(step) {
            // SAFETY: x is below `samples`, and `pair` has asked for more than a step beyond them.
            unsafe { lanes.pair_pixels::<C>(words.as_ptr().add(x), out.as_mut_ptr().add(x)) };
        }
    }
}

/// Puts the bytes of paired pixels back in order, as many as `out` has; `bytes` goes on for 64 more.
pub(super) fn part<L: Lanes>(lanes: L, channels: usize, bytes: &[u8], out: &mut [u8]) {
    assert!(out.len() + 2 * WORDS <= bytes.len());
    // A constant asked for as such, lest loops be compiled that nothing enters.
    if const { !is_for::<L>() } {
        unreachable!("no loop is compiled for pairs of pixels with such vectors");
    }
    match channels {
        2 => lanes.enter(Part::<2>(bytes, out)),
        3 => lanes.enter(Part::<3>(bytes, out)),
        4 => lanes.enter(Part::<4>(bytes, out)),
        _ => unreachable!("{channels} components are not paired"),
    }
}

struct Part<'a, const C: usize>(&'a [u8], &'a mut [u8]);

impl<const C: usize> Work for Part<'_, C> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Part(bytes, out) = self;
        let step = const { step(C) };
        let mut x = 0;
        while x + WORDS <= out.len() {
            // SAFETY: a step writes WORDS bytes at most, and reads as many, of which there are more.
            unsafe { lanes.part_pixels::<C>(bytes.as_ptr().add(x), out.as_mut_ptr().add(x)) };
            x += step;
        }
        while x < out.len() {
            let mut last = [0; WORDS];
            let left = step.min(out.len() - x);
            // SAFETY: there is room for WORDS bytes, and as many beyond the row to read.
            unsafe { lanes.part_pixels::<C>(bytes.as_ptr().add(x), last.as_mut_ptr()) };
            out[x..x + left].copy_from_slice(&last[..left]);
            x += step;
        }
    }
}

/// Where the words of a vector come from whose pixels of `C` components are paired or, the other way, put `back` in order; those beyond whole pairs stay where they
/// are.
pub(super) const fn places<const C: usize>(back: bool) -> [u16; WORDS] {
    let mut places = [0; WORDS];
    let mut to = 0;
    while to < WORDS {
        let (pair, within) = (to / (2 * C) * 2 * C, to % (2 * C));
        let from = if to >= step(C) {
            to
        } else if back {
            pair + within % C * 2 + within / C
        } else {
            pair + within % 2 * C + within / 2
        };
        places[to] = from as u16;
        to += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pixels_are_paired_and_parted() {
        assert_eq!(places::<3>(false)[..8], [0, 3, 1, 4, 2, 5, 6, 9]);
        assert_eq!(places::<3>(true)[..8], [0, 2, 4, 1, 3, 5, 6, 8]);
        assert_eq!(places::<3>(true)[29..], [29, 30, 31]);
        assert_eq!(places::<2>(false)[..8], [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(places::<4>(true)[..8], [0, 2, 4, 6, 1, 3, 5, 7]);
    }
}
