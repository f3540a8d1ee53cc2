//! The portable inner loops: one row of one component at a time, as plain arithmetic over slices, which the
//! compiler vectorizes.

use crate::engine::cpu::rows::sums::integer::Sum;
use crate::filter::Division;

/// Adds to each sum the taps of one row: `sums[x] += sum over i of weights[i] * line[x + i]`.
pub(super) fn accumulate<S: Sum>(sums: &mut [S], weights: &[i32], line: &[i32]) {
    for (i, &q) in weights.iter().enumerate().filter(|(_, q)| **q != 0) {
        let q = S::from(q);
        sums.iter_mut()
            .zip(&line[i..])
            .for_each(|(s, &p)| *s += q * S::from(p));
    }
}

/// Requantizes sums to samples.
pub(super) fn finish<S: Sum>(sums: &[S], division: Division, high: i64, max: i32, out: &mut [i32]) {
    // Two loops, so that neither has a condition in it.
    if division.factor().is_some() {
        for (o, &s) in out.iter_mut().zip(sums) {
            *o = (division.of(s.widen()) + high).clamp(0, i64::from(max)) as i32;
        }
        return;
    }
    let shift = division.shift();
    for (o, &s) in out.iter_mut().zip(sums) {
        *o = ((s >> shift).widen() + high).clamp(0, i64::from(max)) as i32;
    }
}

/// The intermediates of a row pass, `(sum + rounding) >> shift`; the sums include the rounding.
pub(super) fn intermediate<S: Sum>(sums: &[S], shift: u32, out: &mut [i32]) {
    out.iter_mut()
        .zip(sums)
        .for_each(|(o, &s)| *o = (s >> shift).widen() as i32);
}

/// One tap of a column pass: `sums[x] += weight * line[x]`.
pub(super) fn accumulate_column<S: Sum>(sums: &mut [S], weight: i32, line: &[i32]) {
    let q = S::from(weight);
    sums.iter_mut().zip(line).for_each(|(s, &t)| *s += q * S::from(t));
}
