//! Masks of integers over a divisor, kept as that: results are the exact quotient, rounded half up once.
//!
//! ```text
//! direct      x = sum of n p + low             out = clamp(floor(x / d) + high)
//! two passes  t = sum of r p - offset          integers, nothing is rounded
//!             x = sum of c t + low             out as above: n = c r, so these are the same bits
//! ```
//!
//! `None` where the numbers are larger than engines hold; then the mask is quantised like any other.

use super::division::Division;
use super::kernel::{Column, DirectKernel, Pass, SeparableKernel};
use super::quantise::{MAX_WEIGHT, magnitude_limit};
use crate::filter::masks::number::gcd;
use crate::filter::{Factors, Mask};

/// What sums of samples, without their signs, and twice the divisor stay below where a multiplication
/// divides: as much again for a bias leaves 31 bits.
const SUM_LIMIT: i128 = 1 << 30;

/// The largest divisor that is a power of two, as an exponent.
const MAX_SHIFT: u32 = 30;

/// What signed numbers between the passes hold: bits without the sign, and what the column's magnitudes stay
/// below.
pub(in crate::filter) const NARROW: (u32, i64) = (15, 1 << 15);
pub(in crate::filter) const WIDE: (u32, i64) = (23, 1 << 22);

/// The numbers over what they are divided by, in lowest terms, as weights.
fn lowest_terms(numerators: &[i128], divisor: i128) -> Option<(Vec<i32>, Division)> {
    let common = numerators.iter().fold(divisor, |g, &n| gcd(g, n)).abs() * divisor.signum();
    let weight = |n: &i128| i64::try_from(n / common).ok().filter(|n| n.abs() <= MAX_WEIGHT);
    let weights = numerators
        .iter()
        .map(|n| Some(weight(n)? as i32))
        .collect::<Option<_>>()?;
    let division = Division::by(i64::try_from(divisor / common).ok()?)?;
    (division.factor().is_some() || division.shift() <= MAX_SHIFT).then_some((weights, division))
}

/// True if a multiplication divides sums of so many samples right, weights counted without their signs.
fn divides(division: Division, magnitude: i64, depth: u32) -> bool {
    let sums = i128::from(magnitude) << depth;
    division.factor().is_none() || sums + 2 * i128::from(division.divisor()) < SUM_LIMIT
}

fn magnitude(weights: &[i32]) -> i64 {
    weights.iter().map(|&q| i64::from(q).abs()).sum()
}

/// The whole mask for samples of `depth` bits.
pub(in crate::filter) fn direct(mask: &Mask, depth: u32) -> Option<DirectKernel> {
    let exact = mask.exact()?;
    let numerators: Vec<i128> = exact.numerators.iter().map(|&n| n.into()).collect();
    let (weights, division) = lowest_terms(&numerators, exact.divisor.into())?;
    let total = magnitude(&weights);
    let fits = total < magnitude_limit(depth) && divides(division, total, depth);
    fits.then(|| DirectKernel {
        width: mask.width(),
        height: mask.height(),
        weights,
        division,
        long: false,
    })
}

/// Both passes for samples of `depth` bits, where `factors` are the mask's.
pub(in crate::filter) fn separable(mask: &Mask, factors: &Factors, depth: u32) -> Option<SeparableKernel> {
    let exact = mask.exact()?;
    let integers = |values: &[f64], scale: f64| -> Vec<i128> {
        values.iter().map(|v| (v * scale).round() as i128).collect()
    };
    let row = integers(&factors.row, 1.0);
    let column = integers(&factors.column, exact.divisor as f64);
    let products = column.iter().flat_map(|c| row.iter().map(move |r| c * r));
    if !products.eq(exact.numerators.iter().map(|&n| i128::from(n))) {
        return None;
    }
    let (row, _) = lowest_terms(&row, 1)?;
    let (column, division) = lowest_terms(&column, exact.divisor.into())?;
    let (across, down) = (magnitude(&row), magnitude(&column));
    if across >= magnitude_limit(depth) || !divides(division, across * down, depth) {
        return None;
    }
    let max = (1_i64 << depth) - 1;
    let gain = |sign: i64| row.iter().map(|&q| (sign * i64::from(q)).max(0)).sum::<i64>();
    let (bottom, top) = (-gain(-1) * max, gain(1) * max);
    let ways = [(NARROW, false), (WIDE, true)];
    ways.into_iter().find_map(|((bits, column_limit), wide)| {
        let half = 1_i64 << bits;
        let offset = match (bottom, top) {
            _ if bottom >= -half && top < half => 0,
            _ if top - bottom < 2 * half => bottom + half,
            _ => return None,
        };
        // Sums of deeper samples need 64 bits.
        ((wide || depth <= 12) && down < column_limit).then(|| SeparableKernel {
            row: Pass {
                weights: row.clone(),
                shift: 0,
                offset,
            },
            column: Column {
                weights: column.clone(),
                division,
            },
            wide,
            long: false,
            fraction_bits: 0,
        })
    })
}
