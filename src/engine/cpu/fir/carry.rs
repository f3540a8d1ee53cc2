//! Carry groups: terms whose total exceeds 32 bits, split into groups whose sums fit, one after the other. Of
//! each group's sum what is above the shift is added to the result, and what is below it is where the next
//! group's sum begins. That takes one multiplication for each pair of 16-bit words, where two limbs take two.

use crate::engine::cpu::rows::words::sample::{magnitude, range};
use crate::engine::cpu::simd::vector::Simd;
use std::cmp::Reverse;

/// The two weights of a pair.
fn unpack(pair: i32) -> [i32; 2] {
    [i32::from(pair as i16), pair >> 16]
}

/// Splits terms into groups whose 32-bit sums cannot overflow, for words between two numbers and with the
/// start of the sums, which are shifted down by `shift`; `weights` are the pairs of weights of a term, one
/// for each sum. First fit, the heaviest terms first. `None` if a term alone overflows, or if two sums of all
/// terms, one for each byte of a word, take fewer instructions.
pub(super) fn groups<T: Copy>(
    mut terms: Vec<T>,
    weights: impl Fn(&T) -> &[i32],
    (lowest, highest): (i64, i64),
    shift: u32,
) -> Option<Vec<Vec<T>>> {
    let below = (1_i64 << shift) - 1;
    let count = terms.len();
    terms.sort_by_key(|term| {
        let all = weights(term).iter().map(|&pair| magnitude(&unpack(pair)));
        Reverse(all.max())
    });
    let mut groups: Vec<Vec<T>> = Vec::new();
    for term in terms {
        let fits = |others: &[T]| {
            (0..weights(&term).len()).all(|sum| {
                let all = others.iter().chain([&term]);
                let all: Vec<i32> = all.flat_map(|t| unpack(weights(t)[sum])).collect();
                let (least, most) = range(&all, (lowest, highest));
                least >= i64::from(i32::MIN) && most + below <= i64::from(i32::MAX)
            })
        };
        match groups.iter_mut().find(|group| fits(group)) {
            Some(group) => group.push(term),
            None if fits(&[]) => groups.push(vec![term]),
            None => return None,
        }
    }
    // A term takes five instructions for each of the bytes that it saves, a group six more.
    (3 * groups.len() <= 2 * count).then_some(groups)
}

/// A bit for each of up to 32 terms that is the last one of its group.
pub(in crate::engine::cpu) fn ends<T>(groups: &[Vec<T>]) -> u32 {
    let mut end = 0;
    groups.iter().fold(0, |ends, group| {
        end += group.len();
        ends | 1 << (end - 1)
    })
}

/// What becomes of the sum of a group.
#[derive(Clone, Copy)]
pub(super) struct CarrySave<V> {
    shift: V,
    /// The bits below the shift.
    below: V,
}

impl<V: Copy> CarrySave<V> {
    #[inline(always)]
    pub(super) fn new<L: Simd<V = V>>(simd: L, shift: u32) -> CarrySave<V> {
        CarrySave {
            shift: simd.splat(shift as i32),
            below: simd.splat(((1_u32 << shift) - 1) as i32),
        }
    }

    /// Adds to a result what the sum gives it, and returns what the next sum begins with.
    #[inline(always)]
    pub(super) fn carry<L: Simd<V = V>>(self, simd: L, result: V, sum: V) -> (V, V) {
        (
            simd.add(result, simd.shift_down(sum, self.shift)),
            simd.and(sum, self.below),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: (i64, i64) = (i16::MIN as i64, i16::MAX as i64);

    fn grouped(pairs: &[[i32; 2]], shift: u32) -> Option<Vec<Vec<i32>>> {
        let packed = pairs.iter().map(|[low, high]| low & 0xFFFF | high << 16);
        groups(packed.collect(), std::slice::from_ref, WORDS, shift)
    }

    #[test]
    fn groups_hold_as_much_as_32_bits_do() {
        // 65536 x -32768 is the least number of 32 bits.
        let most = [[32000, 500], [16000, 17000], [20, 16]];
        assert_eq!(grouped(&most, 10).map(|g| g.len()), Some(1));
        assert_eq!(
            grouped(&[most[0], most[1], [20, 17]], 10).map(|g| g.len()),
            Some(2)
        );
        // Only magnitudes count, whatever the sign.
        assert_eq!(
            grouped(&[[32000, -500], [-16000, 17000], [20, -17]], 10).map(|g| g.len()),
            Some(2)
        );
        // Light terms fill up the groups of heavy ones.
        let mixed = [[30000, 30000], [100, 100], [30000, -30000], [-100, 100], [1, 2]];
        let mixed = grouped(&mixed, 10).unwrap();
        assert_eq!(mixed.iter().map(Vec::len).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(ends(&mixed), 0b11000);
    }

    #[test]
    fn as_many_groups_as_terms_are_not_worth_it() {
        assert_eq!(grouped(&[[32000, 32000]; 3], 10), None);
        assert!(grouped(&[[16000, 16000]; 4], 10).is_some());
        // 2 x 32639 x 32767 leaves room for 23 bits.
        assert!(grouped(&[[32639, 32639], [0, 1], [1, 0]], 23).is_some());
        assert_eq!(grouped(&[[32639, 32639], [0, 1], [1, 0]], 24), None);
    }
}
