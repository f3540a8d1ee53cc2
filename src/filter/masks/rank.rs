//! Whether a mask is a product of a column and a row, and how far it is from being one.

use super::number::gcd;
use crate::filter::Mask;

/// How far a product may be from a mask that is not known in integers, as a share of the largest magnitude
/// among its weights. Masks of integers over a divisor are held to exact equality.
pub const RANK_TOLERANCE: f64 = 1e-9;

/// Primes below 2^61 over which the rank of a matrix of large integers is found.
const PRIMES: [u64; 3] = [
    2_305_843_009_213_693_951,
    2_305_843_009_213_693_921,
    2_305_843_009_213_693_907,
];

/// A mask of rank 1 as a product: weight (i, j) = row\[i\] * column\[j\].
///
/// Of an exact mask the row holds integers without a common divisor and the column integers over the mask's
/// divisor. Of any other mask the row's positive weights, or its negative ones if their sum is larger, add up
/// to
/// 1. The row's sum is positive where it is not zero; the column's is not negative where the row's is zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// Along the row.
    pub row: Vec<f64>,
    /// Along the column.
    pub column: Vec<f64>,
}

/// The product, if the mask is one: exactly for masks of integers over a divisor, within [`RANK_TOLERANCE`]
/// for others. `None` for a mask of zeros, whose rank is 0.
pub fn factors(mask: &Mask) -> Option<Factors> {
    match mask.exact() {
        Some(exact) => exact_factors(&exact.numerators, exact.divisor, mask.width()),
        None => float_factors(mask.weights(), mask.width()),
    }
}

/// The rank of the matrix: 0 for zeros, 1 exactly where [`factors`] finds a product. Of an exact mask it is
/// found in integers, or, where those grow beyond 128 bits, as the largest rank over three primes of 61 bits.
/// Of any other mask it is the number of pivots above [`RANK_TOLERANCE`].
pub fn rank(mask: &Mask) -> usize {
    if mask.weights().iter().all(|&w| w == 0.0) {
        return 0;
    }
    if factors(mask).is_some() {
        return 1;
    }
    let width = mask.width();
    let found = match mask.exact() {
        Some(exact) => fraction_free_rank(&exact.numerators, width).unwrap_or_else(|| {
            let over = PRIMES.iter().map(|&p| modular_rank(&exact.numerators, width, p));
            over.max().unwrap_or(0)
        }),
        None => float_rank(mask.weights(), width),
    };
    found.max(2)
}

fn exact_factors(numerators: &[i64], divisor: i64, width: usize) -> Option<Factors> {
    let first = numerators.chunks(width).find(|row| row.iter().any(|&n| n != 0))?;
    let common = first.iter().fold(0, |g, &n| gcd(g, i128::from(n)));
    let mut row: Vec<i128> = first.iter().map(|&n| i128::from(n) / common).collect();
    let pivot = row.iter().position(|&n| n != 0)?;
    let mut column = Vec::with_capacity(numerators.len() / width);
    for other in numerators.chunks(width) {
        // A multiple of a row without a common divisor is a multiple by an integer.
        let times = i128::from(other[pivot]) / row[pivot];
        if other.iter().zip(&row).any(|(&n, r)| i128::from(n) != times * r) {
            return None;
        }
        column.push(times);
    }
    let (row_sum, column_sum): (i128, i128) = (row.iter().sum(), column.iter().sum());
    if row_sum < 0 || (row_sum == 0 && column_sum * i128::from(divisor.signum()) < 0) {
        row.iter_mut().chain(&mut column).for_each(|n| *n = -*n);
    }
    Some(Factors {
        row: row.iter().map(|&n| n as f64).collect(),
        column: column.iter().map(|&n| n as f64 / divisor as f64).collect(),
    })
}

fn float_factors(weights: &[f64], width: usize) -> Option<Factors> {
    let at = largest(weights.iter().copied())?;
    let pivot = weights[at];
    if pivot == 0.0 {
        return None;
    }
    let (left, top) = (at % width, at / width * width);
    let mut row: Vec<f64> = weights[top..top + width].iter().map(|w| w / pivot).collect();
    let mut column: Vec<f64> = weights.chunks(width).map(|r| r[left]).collect();
    let limit = pivot.abs() * RANK_TOLERANCE;
    let is_product = weights
        .chunks(width)
        .zip(&column)
        .all(|(found, c)| found.iter().zip(&row).all(|(w, r)| (w - r * c).abs() <= limit));
    if !is_product {
        return None;
    }
    // The row holds a 1, so that one of these is at least 1.
    let positive: f64 = row.iter().filter(|w| **w > 0.0).sum();
    let negative: f64 = -row.iter().filter(|w| **w < 0.0).sum::<f64>();
    let balance = positive - negative;
    let turned = if balance.abs() > positive * RANK_TOLERANCE {
        balance < 0.0
    } else {
        column.iter().sum::<f64>() < 0.0
    };
    let gain = positive.max(negative) * if turned { -1.0 } else { 1.0 };
    row.iter_mut().for_each(|w| *w /= gain);
    column.iter_mut().for_each(|w| *w *= gain);
    Some(Factors { row, column })
}

/// Where the largest magnitude is, the first of equals.
fn largest(values: impl Iterator<Item = f64>) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (at, value) in values.enumerate() {
        if best.is_none_or(|(_, b)| value.abs() > b) {
            best = Some((at, value.abs()));
        }
    }
    best.map(|(at, _)| at)
}

/// Elimination without fractions (every division is exact, by Sylvester's identity); `None` if a number
/// outgrows 128 bits.
fn fraction_free_rank(numerators: &[i64], width: usize) -> Option<usize> {
    let mut rows: Vec<Vec<i128>> = numerators
        .chunks(width)
        .map(|r| r.iter().map(|&n| i128::from(n)).collect())
        .collect();
    let mut rank = 0;
    let mut last = 1_i128;
    for column in 0..width {
        let Some(found) = (rank..rows.len()).find(|&j| rows[j][column] != 0) else {
            continue;
        };
        rows.swap(rank, found);
        let (done, below) = rows.split_at_mut(rank + 1);
        let lead = &done[rank];
        for row in below {
            let factor = row[column];
            for (value, &l) in row.iter_mut().zip(lead) {
                let minuend = value.checked_mul(lead[column])?;
                *value = minuend.checked_sub(factor.checked_mul(l)?)? / last;
            }
        }
        last = lead[column];
        rank += 1;
        if rank == rows.len() {
            break;
        }
    }
    Some(rank)
}

/// The rank over the integers modulo a prime: never more than the rank, and less only if the prime divides
/// every minor of that size.
fn modular_rank(numerators: &[i64], width: usize, prime: u64) -> usize {
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(prime)) as u64;
    let inverse = |a: u64| {
        let (mut power, mut base, mut exponent) = (1, a, prime - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = times(power, base);
            }
            base = times(base, base);
            exponent >>= 1;
        }
        power
    };
    let residue = |&n: &i64| i128::from(n).rem_euclid(i128::from(prime)) as u64;
    let mut rows: Vec<Vec<u64>> = numerators
        .chunks(width)
        .map(|r| r.iter().map(residue).collect())
        .collect();
    let mut rank = 0;
    for column in 0..width {
        let Some(found) = (rank..rows.len()).find(|&j| rows[j][column] != 0) else {
            continue;
        };
        rows.swap(rank, found);
        let (done, below) = rows.split_at_mut(rank + 1);
        let lead = &done[rank];
        let unit = inverse(lead[column]);
        for row in below {
            let factor = prime - times(row[column], unit);
            for (value, &l) in row.iter_mut().zip(lead) {
                // Both terms are below 2^61.
                *value = (*value + times(factor, l)) % prime;
            }
        }
        rank += 1;
        if rank == rows.len() {
            break;
        }
    }
    rank
}

/// Elimination with the largest remaining weight as the pivot, until what remains is below the tolerance.
fn float_rank(weights: &[f64], width: usize) -> usize {
    let mut rest = weights.to_vec();
    let height = weights.len() / width;
    let limit = weights.iter().fold(0.0, |m: f64, w| m.max(w.abs())) * RANK_TOLERANCE;
    for rank in 0..width.min(height) {
        let Some(at) = largest(rest.iter().copied()) else {
            return rank;
        };
        let pivot = rest[at];
        if pivot.abs() <= limit {
            return rank;
        }
        let lead: Vec<f64> = rest[at / width * width..][..width]
            .iter()
            .map(|w| w / pivot)
            .collect();
        for row in rest.chunks_mut(width) {
            let factor = row[at % width];
            row.iter_mut().zip(&lead).for_each(|(w, l)| *w -= factor * l);
            // What subtraction leaves of the pivot's own column is rounding.
            row[at % width] = 0.0;
        }
        rest[at / width * width..][..width].fill(0.0);
    }
    width.min(height)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator of repeatable numbers (splitmix64).
    struct SplitMix64(u64);

    impl SplitMix64 {
        fn roll(&mut self, from: i64, to: i64) -> i64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            from + ((z ^ (z >> 31)) % (to - from + 1) as u64) as i64
        }

        fn vector(&mut self, len: usize, reach: i64) -> Vec<i64> {
            loop {
                let v: Vec<i64> = (0..len).map(|_| self.roll(-reach, reach)).collect();
                if v.iter().any(|&n| n != 0) {
                    return v;
                }
            }
        }

        fn side(&mut self) -> usize {
            2 * self.roll(0, 8) as usize + 1
        }
    }

    fn product(row: &[i64], column: &[i64]) -> Vec<i64> {
        column
            .iter()
            .flat_map(|c| row.iter().map(move |r| c * r))
            .collect()
    }

    fn integers(width: usize, weights: &[i64], divisor: i64) -> Mask {
        Mask::from_integers(width, weights.len() / width, weights.to_vec(), divisor).unwrap()
    }

    fn floats(mask: &Mask) -> Mask {
        Mask::new(mask.width(), mask.height(), mask.weights().to_vec()).unwrap()
    }

    fn assert_reproduces(mask: &Mask, factors: &Factors, tolerance: f64) {
        let top = mask.weights().iter().fold(0.0, |m: f64, w| m.max(w.abs()));
        assert_eq!(
            (factors.row.len(), factors.column.len()),
            (mask.width(), mask.height())
        );
        for j in 0..mask.height() {
            for i in 0..mask.width() {
                let difference = mask.at(i, j) - factors.row[i] * factors.column[j];
                assert!(difference.abs() <= tolerance * top, "{i} {j}: {difference}");
            }
        }
    }

    #[test]
    fn known_masks_have_known_factors() {
        let soft = integers(3, &[1, 2, 1, 2, 4, 2, 1, 2, 1], 16);
        let f = factors(&soft).unwrap();
        assert_eq!(f.row, [1.0, 2.0, 1.0]);
        assert_eq!(f.column, [1.0 / 16.0, 2.0 / 16.0, 1.0 / 16.0]);
        let sobel_y = integers(3, &[-1, -2, -1, 0, 0, 0, 1, 2, 1], 1);
        let f = factors(&sobel_y).unwrap();
        assert_eq!(
            (f.row.as_slice(), f.column.as_slice()),
            (&[1.0, 2.0, 1.0][..], &[-1.0, 0.0, 1.0][..])
        );
        let sobel_x = integers(3, &[-1, 0, 1, -2, 0, 2, -1, 0, 1], 1);
        let f = factors(&sobel_x).unwrap();
        assert_eq!(
            (f.row.as_slice(), f.column.as_slice()),
            (&[-1.0, 0.0, 1.0][..], &[1.0, 2.0, 1.0][..])
        );
        let f = factors(&floats(&sobel_x)).unwrap();
        assert_eq!(
            (f.row.as_slice(), f.column.as_slice()),
            (&[-1.0, 0.0, 1.0][..], &[1.0, 2.0, 1.0][..])
        );
        let shared = integers(3, &[6, 12, -18, 0, 0, 0, 4, 8, -12], 2);
        let f = factors(&shared).unwrap();
        assert_eq!(
            (f.row.as_slice(), f.column.as_slice()),
            (&[1.0, 2.0, -3.0][..], &[3.0, 0.0, 2.0][..])
        );
    }

    #[test]
    fn known_masks_have_known_ranks() {
        for (width, weights, expected) in [
            (3, vec![0; 9], 0),
            (1, vec![5], 1),
            (3, vec![0, -1, 0, -1, 4, -1, 0, -1, 0], 2),
            (3, vec![-1, -1, -1, -1, 8, -1, -1, -1, -1], 2),
            (3, vec![1, 0, 0, 0, 1, 0, 0, 0, 1], 3),
            (3, vec![1, 2, 3, 4, 5, 6, 7, 8, 9], 2),
            (5, vec![1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 1, 2, 3, 4, 6], 2),
            (3, vec![0, 0, 1, 0, 1, 0, 1, 0, 0], 3),
        ] {
            let mask = integers(width, &weights, 7);
            assert_eq!(rank(&mask), expected, "{weights:?}");
            assert_eq!(rank(&floats(&mask)), expected, "{weights:?} as floats");
            assert_eq!(factors(&mask).is_some(), expected == 1);
            assert_eq!(factors(&floats(&mask)).is_some(), expected == 1);
        }
    }

    #[test]
    fn products_of_integers_are_found_exactly() {
        let mut random = SplitMix64(1);
        for _ in 0..500 {
            let (width, height) = (random.side(), random.side());
            let (row, column) = (random.vector(width, 2000), random.vector(height, 2000));
            let divisor = random.roll(1, 99999);
            let mask = integers(width, &product(&row, &column), divisor);
            let f = factors(&mask).unwrap();
            let common = f.row.iter().fold(0, |g, &r| gcd(g, r as i128));
            assert!(f.row.iter().all(|r| r.fract() == 0.0) && common == 1);
            assert_reproduces(&mask, &f, 1e-15);
            assert_eq!(rank(&mask), 1);
            assert!(f.row.iter().sum::<f64>() >= 0.0);
        }
    }

    #[test]
    fn products_of_floats_are_found_within_the_tolerance() {
        let mut random = SplitMix64(2);
        for _ in 0..500 {
            let (width, height) = (random.side(), random.side());
            let (row, column) = (random.vector(width, 1 << 40), random.vector(height, 1 << 40));
            let weights = column
                .iter()
                .flat_map(|&c| row.iter().map(move |&r| c as f64 * 1e-9 * (r as f64 / 3.0)));
            let mask = Mask::new(width, height, weights.collect()).unwrap();
            let f = factors(&mask).unwrap();
            assert_reproduces(&mask, &f, 1e-14);
            assert_eq!(rank(&mask), 1);
            let positive: f64 = f.row.iter().filter(|w| **w > 0.0).sum();
            let negative: f64 = f.row.iter().filter(|w| **w < 0.0).sum();
            assert!((positive.max(-negative) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn products_off_by_one_are_refused() {
        let mut random = SplitMix64(3);
        for _ in 0..500 {
            let (width, height) = (random.side() + 2, random.side() + 2);
            let (row, column) = (random.vector(width, 1 << 20), random.vector(height, 1 << 20));
            let mut weights = product(&row, &column);
            // Off by one where the rest of the matrix still tells what should be there.
            let pivots = |v: &[i64]| v.iter().filter(|n| **n != 0).count();
            if pivots(&row) < 2 || pivots(&column) < 2 {
                continue;
            }
            let at = random.roll(0, weights.len() as i64 - 1) as usize;
            weights[at] += 1;
            let mask = integers(width, &weights, 1);
            assert_eq!(factors(&mask), None);
            assert_eq!(rank(&mask), 2);
        }
    }

    #[test]
    fn floats_beyond_the_tolerance_are_refused() {
        let mut weights = vec![1.0 / 3.0; 25];
        weights[7] += 1e-10 / 3.0;
        assert!(factors(&Mask::new(5, 5, weights.clone()).unwrap()).is_some());
        weights[7] += 1e-8 / 3.0;
        let mask = Mask::new(5, 5, weights).unwrap();
        assert_eq!(factors(&mask), None);
        assert_eq!(rank(&mask), 2);
    }

    #[test]
    fn large_integers_do_not_overflow() {
        let big = i64::MAX;
        let mask = integers(3, &[big, i64::MIN, big, i64::MIN, big, 3, big, 5, big], 1);
        assert_eq!(rank(&mask), 3);
        assert_eq!(factors(&mask), None);
        let mask = integers(3, &[i64::MIN; 9], i64::MIN);
        let f = factors(&mask).unwrap();
        assert_eq!((f.row, f.column), (vec![1.0; 3], vec![1.0; 3]));
        assert_eq!(rank(&mask), 1);
    }

    #[test]
    fn integers_primes_and_floats_agree_on_sums_of_products() {
        let mut random = SplitMix64(4);
        for terms in 1..6 {
            let (width, height) = (9, 7);
            let mut weights = vec![0; width * height];
            for _ in 0..terms {
                let term = product(&random.vector(width, 9), &random.vector(height, 9));
                weights.iter_mut().zip(&term).for_each(|(w, t)| *w += t);
            }
            let mask = integers(width, &weights, 1);
            assert_eq!(fraction_free_rank(&weights, width), Some(terms));
            for prime in PRIMES {
                assert_eq!(modular_rank(&weights, width, prime), terms);
            }
            assert_eq!(rank(&mask), terms);
            assert_eq!(rank(&floats(&mask)), terms);
        }
        // Far too large for 128 bits.
        let weights: Vec<i64> = (0..63 * 63)
            .map(|_| random.roll(i64::MIN / 4, i64::MAX / 4))
            .collect();
        assert_eq!(fraction_free_rank(&weights, 63), None);
        assert_eq!(rank(&integers(63, &weights, 1)), 63);
    }
}
