//! How sums become levels: division by what a mask's integers are over, rounded down.
//!
//! ```text
//! divisor 2^s        x >> s                any x
//! any other d        (x m >> 32) >> s      0 <= x < 2^31,  s = floor(log2 d),  m = ceil(2^(32 + s) / d)
//! ```
//!
//! The second line is exact. With e = m d - 2^(32 + s), which is less than d, the product is
//! `x m / 2^(32 + s) = x / d + (x e / 2^(32 + s)) / d`. The fraction of x / d is a multiple of 1 / d and so
//! at most 1 - 1 / d: what is added does not reach the next integer if x e < 2^(32 + s). It is below that,
//! since x < 2^31 and e < d < 2^(s + 1). And m < 2^32, since d > 2^s.

/// Division of sums by a positive integer, rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    divisor: i64,
    /// 0 where the divisor is a power of two.
    factor: u32,
    shift: u32,
}

impl Division {
    /// 2^31 - 1: at most this is a divisor, and a sum that is divided by a multiplication.
    pub const LARGEST: i64 = i32::MAX as i64;

    /// Division by 2^shift; the shift is below 63.
    pub fn by_power_of_two(shift: u32) -> Division {
        Division {
            divisor: 1 << shift,
            factor: 0,
            shift,
        }
    }

    /// Division by any number from 1 to [`Division::LARGEST`]; `None` for others.
    pub fn by(divisor: i64) -> Option<Division> {
        if !(1..=Division::LARGEST).contains(&divisor) {
            return None;
        }
        let shift = divisor.ilog2();
        if divisor == 1 << shift {
            return Some(Division::by_power_of_two(shift));
        }
        Some(Division {
            divisor,
            factor: (1_u64 << (32 + shift)).div_ceil(divisor as u64) as u32,
            shift,
        })
    }

    /// What is divided by: from 1 to [`Division::LARGEST`], or a power of two below 2^63.
    pub fn divisor(self) -> i64 {
        self.divisor
    }

    /// What sums are multiplied by before their product is shifted down by 32 and by
    /// [`Division::shift`] more; `None` where the shift alone divides.
    pub fn factor(self) -> Option<u32> {
        (self.factor != 0).then_some(self.factor)
    }

    /// How far sums are shifted down, or products beyond 32.
    pub fn shift(self) -> u32 {
        self.shift
    }

    /// The quotient of a sum, which is from 0 to [`Division::LARGEST`] where there is a factor.
    pub fn of(self, sum: i64) -> i64 {
        if self.factor == 0 {
            return sum >> self.shift;
        }
        debug_assert!((0..=Division::LARGEST).contains(&sum));
        ((sum as u64 * u64::from(self.factor)) >> 32 >> self.shift) as i64
    }

    /// The same for sums of 16 bits up to `largest`, if there are numbers for it.
    pub fn of_words(self, largest: i64) -> Option<WordDivision> {
        let shift = self.divisor.ilog2().checked_sub(u32::from(self.factor == 0))?;
        let one = 1_i64 << (16 + shift);
        // The factor is rounded up, or down with one more in the sum: the same proof with a lack in place of
        // the excess.
        let lack = one % self.divisor;
        let above = (self.divisor - lack) % self.divisor * largest < one;
        let below = lack > 0 && lack * (largest + 1) <= one;
        let add = u16::from(!above);
        let factor = one / self.divisor + i64::from(above && lack > 0);
        let fits = (0..=i64::from(u16::MAX)).contains(&(largest + i64::from(add)));
        ((above || below) && fits).then_some(WordDivision {
            add,
            factor: u16::try_from(factor).ok()?,
            shift,
        })
    }

    /// Division rounded to nearest, of words with sign from -`largest` to `largest`, by an odd number from 5
    /// on, if there are numbers for it.
    pub fn of_signed_words(self, largest: i64) -> Option<SignedDivision> {
        let divisor = self.divisor;
        let shift = divisor.ilog2().checked_sub(1).filter(|shift| *shift > 0)?;
        let one = 1_i64 << (16 + shift);
        let factor = (one + divisor / 2) / divisor;
        // Quotients by an odd number are 1 / (2 divisor) from a tie at least, and the factor's rounding moves
        // them by less.
        let is_near = 2 * largest * (factor * divisor - one).abs() < one;
        let fits = (0..=i64::from(i16::MAX)).contains(&largest);
        (divisor % 2 == 1 && is_near && fits).then_some(SignedDivision {
            divisor: u16::try_from(divisor).ok()?,
            factor: i16::try_from(factor).ok()?.unsigned_abs(),
            shift,
        })
    }
}

/// Division of words x with sign, rounded to nearest: `((x factor >> 16) + (1 << shift - 1)) >> shift`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedDivision {
    /// What is divided by, an odd number from 5 to 65535.
    pub divisor: u16,
    /// What words are multiplied by, from 16384 to 32767.
    pub factor: u16,
    /// How far the high word of the product is shifted down, in bits, 1 to 14.
    pub shift: u32,
}

/// Division of sums x of 16 bits: `((x + add) factor >> 16) >> shift`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordDivision {
    /// What is added to sums, from 0 to 1: 1 where the factor is rounded down.
    pub add: u16,
    /// What these are multiplied by, from 1 to 65535.
    pub factor: u16,
    /// How far the high word of the product is shifted down, in bits.
    pub shift: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums up to `largest` at which a quotient is most likely to be wrong: those beside multiples.
    fn edges(divisor: i64, largest: i64) -> impl Iterator<Item = i64> {
        let count = largest / divisor;
        let multiples = (0..=count.min(300)).chain((count - 300).max(0)..=count);
        let more = (1..60).map(move |k| count / 60 * k);
        let beside = move |k: i64| [k * divisor - 1, k * divisor, k * divisor + 1];
        multiples
            .chain(more)
            .flat_map(move |k| beside(k).map(|x| x - divisor / 2).into_iter().chain(beside(k)))
            .chain([largest - 1, largest])
            .filter(move |x| (0..=largest).contains(x))
    }

    #[test]
    fn quotients_are_exact_at_the_edges_of_all_divisors() {
        let powers = (0..31).flat_map(|s| [(1_i64 << s) - 1, 1 << s, (1 << s) + 1]);
        let divisors = (1..3000).chain((3000..100_000).step_by(97)).chain(powers);
        for divisor in divisors.filter(|d| *d > 0) {
            let division = Division::by(divisor).unwrap();
            assert_eq!(division.divisor(), divisor);
            for x in edges(divisor, Division::LARGEST) {
                assert_eq!(division.of(x), x / divisor, "{x} / {divisor}");
            }
        }
    }

    #[test]
    fn shifts_round_sums_of_either_sign_down() {
        let division = Division::by(8).unwrap();
        assert_eq!(division.factor(), None);
        for x in -100..100 {
            assert_eq!(division.of(x), x.div_euclid(8));
        }
        assert_eq!(
            (Division::by(0), Division::by(-3), Division::by(1 << 31)),
            (None, None, None)
        );
    }

    #[test]
    fn words_are_divided_exactly_or_not_at_all() {
        let mut divided = 0;
        for divisor in 1..1000_i64 {
            for largest in [255 * divisor + divisor / 2, 65535] {
                let Some(words) = Division::by(divisor).unwrap().of_words(largest) else {
                    continue;
                };
                divided += 1;
                for x in 0..=largest {
                    let quotient =
                        ((x + i64::from(words.add)) * i64::from(words.factor)) >> 16 >> words.shift;
                    assert_eq!(quotient, x / divisor, "{x} / {divisor}");
                }
            }
        }
        assert!(divided > 500, "{divided}");
        // Every box whose sums fit, but for those of a few deep samples.
        for (n, max) in [
            (3, 255),
            (5, 255),
            (7, 255),
            (9, 255),
            (11, 255),
            (13, 255),
            (15, 255),
        ] {
            let d = n * n;
            assert!(
                Division::by(d).unwrap().of_words(max * d + d / 2).is_some(),
                "{n}"
            );
        }
    }

    #[test]
    fn words_with_sign_are_divided_to_the_nearest_or_not_at_all() {
        let mut divided = 0;
        let boxes = (17..=31).step_by(2).map(|n| (n * n, 255 * n + n * n / 2));
        let others = (1..700).chain([30_001, 32_767, 65_535]).map(|d| (d, 16_000));
        for (divisor, largest) in boxes.chain(others) {
            let Some(signed) = Division::by(divisor).unwrap().of_signed_words(largest) else {
                assert!(divisor % 2 == 0 || divisor < 5, "{divisor}");
                continue;
            };
            divided += 1;
            for x in -largest..=largest {
                let product = (x * i64::from(signed.factor)) >> 16;
                let quotient = (product + (1 << (signed.shift - 1))) >> signed.shift;
                assert_eq!(
                    quotient,
                    (2 * x + divisor).div_euclid(2 * divisor),
                    "{x} / {divisor}"
                );
            }
        }
        assert!(divided > 350, "{divided}");
        assert_eq!(Division::by(625).unwrap().of_signed_words(1 << 15), None);
    }
}
