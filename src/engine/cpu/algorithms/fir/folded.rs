//! Folds a division into the weights: weights over a divisor d are replaced by weights over a power of two
//! that give the same results, so that a shift divides.
//!
//! ```text
//! results          floor((S + T) / d)          S the sum of n p, T the bias and half a divisor
//! folded           (m S + U) >> s              m about 2^s / d, weights m n
//! ```
//!
//! A result is at least k if S >= k d - T. For the same S the folded result is at least k if
//!
//! ```text
//! k 2^s <= m (k d - T) + U < k 2^s + m        or, with E = m d - 2^s,        0 <= k E + U - m T < m
//! ```
//!
//! This is linear in k. As results are clamped to 0 and the largest sample, it holds for all k if it holds
//! for 1 and for the largest.

use crate::engine::cpu::rows::words::sample::magnitude;
use crate::filter::{ChannelStep, Convolve, DirectKernel, Division};
use crate::frame::PixelFormat;

/// The largest magnitude of a weight that a word holds.
const MOST: i64 = i16::MAX as i64;

/// Bound of the sum of the weights' magnitudes times the largest sample, so that 32 bits hold sums with their
/// biases.
const SUM_LIMIT: i64 = 1 << 30;

/// The largest shift that is tried.
const MOST_BITS: u32 = 24;

/// The mask over a power of two, and the constants of its channels; `None` if no power of two gives the same
/// results, or if a shift divides already.
pub(super) fn folded(
    kernel: &DirectKernel,
    channels: &[ChannelStep],
    format: PixelFormat,
) -> Option<(DirectKernel, Vec<ChannelStep>)> {
    kernel.division.factor()?;
    let (divisor, max) = (kernel.division.divisor(), i64::from(format.max_value()));
    let largest = kernel.weights.iter().map(|&n| i64::from(n).abs()).max()?;
    let total = magnitude(&kernel.weights);
    let scales = (1..=MOST_BITS).rev().flat_map(|shift| {
        let below = (1 << shift) / divisor;
        [(shift, below), (shift, below + 1)]
    });
    scales
        .filter(|&(_, factor)| factor * largest <= MOST && factor * total * max < SUM_LIMIT && factor > 0)
        .find_map(|(shift, factor)| {
            let of = |channel: &ChannelStep| match channel {
                ChannelStep::Convolve(c) => Some(ChannelStep::Convolve(constants(
                    c,
                    divisor,
                    (shift, factor),
                    max,
                )?)),
                other => Some(*other),
            };
            let channels = channels.iter().map(of).collect::<Option<_>>()?;
            let kernel = DirectKernel {
                weights: kernel.weights.iter().map(|&n| n * factor as i32).collect(),
                division: Division::by_power_of_two(shift),
                ..*kernel
            };
            Some((kernel, channels))
        })
}

/// The bias U of a channel's folded sums: one half if that gives the right results, else the middle of the
/// values that do. `None` if there is none.
fn constants(c: &Convolve, divisor: i64, (shift, factor): (u32, i64), max: i64) -> Option<Convolve> {
    let one = 1_i64 << shift;
    let (total, excess) = (c.low + c.high * divisor, factor * divisor - one);
    let ends = [excess, max * excess];
    let least = factor * total - ends[0].min(ends[1]);
    let most = factor * total + factor - 1 - ends[0].max(ends[1]);
    let half = one / 2;
    let chosen = match least..=most {
        range if range.is_empty() => return None,
        range if range.contains(&half) => half,
        _ => least + (most - least) / 2,
    };
    Some(Convolve {
        low: chosen.rem_euclid(one),
        high: chosen.div_euclid(one),
        ..*c
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Algorithm, Border, Chain, Filter, Kernel, Mask, Plan, Planes};
    use crate::frame::Colour;

    #[test]
    fn folded_masks_give_every_sum_its_result() {
        let masks: [&[i64]; 4] = [&[1, 2, 3], &[7, -3, 1], &[-1, 5, -1], &[100, 30, 7]];
        let (mut made, mut refused) = (0, 0);
        for format in ["gray", "gray10le", "gray12le"] {
            let format: PixelFormat = format.parse().unwrap();
            let max = i64::from(format.max_value());
            for (weights, divisor) in masks.iter().flat_map(|mask| (3..400).map(move |d| (mask, d))) {
                let mask = Mask::from_integers(3, 1, weights.to_vec(), divisor).unwrap();
                let chain = Chain {
                    filters: vec![Filter {
                        bias: [0.0, 9.0, -20.0][divisor as usize % 3].into(),
                        ..Filter::of_mask("", mask)
                    }],
                    border: Border::Mirror,
                    planes: Planes::All,
                    algorithm: Algorithm::Direct,
                    alpha: Default::default(),
                };
                let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
                let Kernel::Direct(kernel) = &plan.steps[0].kernel else {
                    unreachable!("a direct mask")
                };
                let channels = &plan.steps[0].planes[0];
                let Some((other, others)) = folded(kernel, channels, format) else {
                    refused += usize::from(kernel.division.factor().is_some());
                    continue;
                };
                made += 1;
                let factor = i64::from(other.weights[0]) / i64::from(kernel.weights[0]);
                let result = |sum: i64, kernel: &DirectKernel, c: &Convolve| {
                    let levels = (sum + c.low).div_euclid(kernel.division.divisor());
                    (levels + c.high).clamp(0, max)
                };
                let (c, d) = (channels[0].convolved().unwrap(), others[0].convolved().unwrap());
                let all = kernel.weights.iter().map(|&n| i64::from(n));
                let ends = (
                    all.clone().filter(|n| *n < 0).sum::<i64>(),
                    all.filter(|n| *n > 0).sum::<i64>(),
                );
                for sum in (ends.0 * max..=ends.1 * max).step_by(if max > 255 { 7 } else { 1 }) {
                    let (exact, found) = (result(sum, kernel, c), result(sum * factor, &other, d));
                    assert_eq!(exact, found, "{weights:?} over {divisor}, {format}: {sum}");
                }
            }
        }
        assert!(made > 500 && refused > 100, "{made} made, {refused} refused");
    }
}
