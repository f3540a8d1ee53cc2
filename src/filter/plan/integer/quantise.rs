//! Weights as integers: the one place where real numbers become exact ones (docs/arithmetic.md).

/// The largest magnitude of a weight of two signed bytes, `127 * 256 + 127`.
pub(in crate::filter) const MAX_WEIGHT: i64 = 32639;

/// The largest magnitude of a weight of three signed bytes.
const MAX_THREE_BYTES: i64 = 127 * 65536 + MAX_WEIGHT;

/// The largest scale, as a power of two.
const MAX_SHIFT: u32 = 30;

/// What the integers of a pass stay within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// No weight is larger in magnitude.
    pub(in crate::filter) weight: i64,
    /// The magnitudes add up to less.
    pub(in crate::filter) total: i64,
    /// The scale is at most 2^this.
    pub(in crate::filter) shift: u32,
}

impl Limits {
    /// Weights of two bytes for samples of `depth` bits: every sum fits 31 bits up to 12 bits, and above, the
    /// sums of the two bytes of samples do.
    pub fn short(depth: u32) -> Limits {
        Limits {
            weight: MAX_WEIGHT,
            total: magnitude_limit(depth),
            shift: MAX_SHIFT,
        }
    }

    /// Weights of three bytes for numbers of `bits` bits: every sum fits 52 bits, so that sums of doubles are
    /// exact.
    pub(in crate::filter) fn three_bytes(bits: u32) -> Limits {
        Limits {
            weight: MAX_THREE_BYTES,
            ..Limits::long(bits)
        }
    }

    /// True if they allow weights of more than two bytes.
    pub(in crate::filter) fn is_long(&self) -> bool {
        self.weight > MAX_WEIGHT
    }

    /// Weights of 31 bits, likewise.
    pub(in crate::filter) fn long(bits: u32) -> Limits {
        Limits {
            weight: 1 << 30,
            total: 1 << (52 - bits),
            shift: MAX_SHIFT,
        }
    }
}

/// Integer weights `q` that stand for real weights `w = q / 2^shift`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantised {
    /// The integers, row by row; at most 2^30 in magnitude.
    pub weights: Vec<i32>,
    /// The scale, 0 to 30.
    pub shift: u32,
}

impl Quantised {
    /// The sum of the weights as integers, over 2^shift; at most 2^52 in magnitude.
    pub fn sum(&self) -> i64 {
        self.weights.iter().map(|&q| i64::from(q)).sum()
    }

    /// How far the sum over numbers from 0 to 1 may be from that of the real weights.
    pub(in crate::filter) fn error(&self, weights: &[f64]) -> f64 {
        let one = f64::from(1_u32 << self.shift);
        let (above, below) = weights
            .iter()
            .zip(&self.weights)
            .fold((0.0, 0.0), |(a, b), (w, &q)| {
                let more = f64::from(q) / one - w;
                (a + more.max(0.0), b + (-more).max(0.0))
            });
        f64::max(above, below)
    }

    /// The sums of the positive integers, and of the magnitudes of the negative ones.
    pub fn gains(&self) -> (i64, i64) {
        self.weights.iter().fold((0, 0), |(p, n), &q| {
            let q = i64::from(q);
            if q > 0 { (p + q, n) } else { (p, n - q) }
        })
    }
}

/// The weights are too large for exact integer sums.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "the mask's weights are too large for {depth}-bit pixels: results would be more than half a level off \
     before they are rounded; the weights' magnitudes reach {largest} and add up to {total}; give it a \
     divisor"
)]
pub struct QuantiseError {
    /// Bits of a pixel.
    pub depth: u32,
    /// The largest magnitude of a weight.
    pub largest: f64,
    /// The sum of the weights' magnitudes.
    pub total: f64,
}

impl QuantiseError {
    pub(in crate::filter) fn new(weights: &[f64], depth: u32) -> QuantiseError {
        QuantiseError {
            depth,
            largest: weights.iter().fold(0.0, |m, w| w.abs().max(m)),
            total: weights.iter().map(|w| w.abs()).sum(),
        }
    }
}

/// What the sum of the integers' magnitudes must stay below for samples of `depth` bits: `2^(30-depth)` up to
/// 12 bits, so that a sum fits 31 bits; 2^22 for deeper ones, so that the sums of their two bytes do.
pub(in crate::filter) fn magnitude_limit(depth: u32) -> i64 {
    if depth <= 12 { 1 << (30 - depth) } else { 1 << 22 }
}

/// Quantises a `width` x `height` matrix within `limits`. The scale is the largest that these allow. The
/// integers add up to `round(2^shift * sum of weights)` exactly; what rounding left over goes to the largest
/// remainders, to mirror images together, so that a symmetric matrix stays symmetric. Common factors of two
/// are taken out at the end, which changes no result.
pub fn quantise(
    weights: &[f64],
    width: usize,
    height: usize,
    limits: Limits,
    depth: u32,
) -> Result<Quantised, QuantiseError> {
    let orbits = Orbits::of(weights, width, height);
    let mut scaled = (0..=limits.shift).rev().filter_map(|shift| {
        let q = round_keeping_sum(weights, f64::from(1_u32 << shift), &orbits)?;
        let total: i64 = q.iter().map(|v| v.abs()).sum();
        let fits = q.iter().all(|v| v.abs() <= limits.weight) && total < limits.total;
        fits.then_some((q, shift))
    });
    let (mut q, mut shift) = scaled.next().ok_or_else(|| QuantiseError::new(weights, depth))?;
    while shift > 0 && q.iter().all(|v| v % 2 == 0) {
        q.iter_mut().for_each(|v| *v /= 2);
        shift -= 1;
    }
    Ok(Quantised {
        weights: q.into_iter().map(|v| v as i32).collect(),
        shift,
    })
}

/// Weights that the matrix's own symmetries carry into one another.
struct Orbits {
    groups: Vec<Vec<usize>>,
    centre: usize,
}

impl Orbits {
    fn of(weights: &[f64], width: usize, height: usize) -> Orbits {
        let flip_x = |i: usize| i / width * width + (width - 1 - i % width);
        let flip_y = |i: usize| (height - 1 - i / width) * width + i % width;
        let turn = |i: usize| weights.len() - 1 - i;
        let transpose = |i: usize| i % width * width + i / width;
        let keeps = |map: &dyn Fn(usize) -> usize| (0..weights.len()).all(|i| weights[i] == weights[map(i)]);
        let mut maps: Vec<&dyn Fn(usize) -> usize> = Vec::new();
        for map in [&flip_x as &dyn Fn(usize) -> usize, &flip_y, &turn] {
            if keeps(map) {
                maps.push(map);
            }
        }
        if width == height && keeps(&transpose) {
            maps.push(&transpose);
        }
        let mut seen = vec![false; weights.len()];
        let mut groups = Vec::new();
        for start in 0..weights.len() {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            let mut group = vec![start];
            let mut next = 0;
            while next < group.len() {
                for map in &maps {
                    let image = map(group[next]);
                    if !seen[image] {
                        seen[image] = true;
                        group.push(image);
                    }
                }
                next += 1;
            }
            groups.push(group);
        }
        Orbits {
            groups,
            centre: weights.len() / 2,
        }
    }
}

/// Rounds each weight to nearest (halves away from zero, so that an odd matrix stays odd), then corrects the
/// sum. `None` if a product leaves the range in which f64 holds integers.
fn round_keeping_sum(weights: &[f64], scale: f64, orbits: &Orbits) -> Option<Vec<i64>> {
    let limit = 2_f64.powi(40);
    if weights.iter().any(|w| (w * scale).abs() > limit) {
        return None;
    }
    let mut q: Vec<i64> = weights.iter().map(|w| (w * scale).round() as i64).collect();
    let target = exact_sum(weights, scale).round() as i64;
    let mut left = target - q.iter().sum::<i64>();
    if left == 0 {
        return Some(q);
    }
    let step = left.signum();
    // What rounding took away in the direction of the correction, largest first.
    let lack = |i: usize| (weights[i] * scale - (weights[i] * scale).round()) * step as f64;
    let mut order: Vec<&Vec<usize>> = orbits.groups.iter().filter(|g| weights[g[0]] != 0.0).collect();
    order.sort_by(|a, b| lack(b[0]).total_cmp(&lack(a[0])));
    for group in order {
        // A group is stepped if that brings the sum closer, even if it then goes a little too far: the centre
        // has to take less.
        let size = group.len() as i64;
        if (left.abs() - size).abs() < left.abs() {
            for &i in group {
                q[i] += step;
            }
            left -= step * size;
        }
        if left * step <= 0 {
            break;
        }
    }
    q[orbits.centre] += left;
    Some(q)
}

/// `scale * sum of weights`, with the rounding errors of the sum carried along (Neumaier), so that weights
/// that cancel sum to zero.
fn exact_sum(weights: &[f64], scale: f64) -> f64 {
    let (mut sum, mut carry) = (0.0_f64, 0.0_f64);
    for &w in weights {
        let next = sum + w;
        carry += if sum.abs() >= w.abs() {
            (sum - next) + w
        } else {
            (w - next) + sum
        };
        sum = next;
    }
    let total = sum + carry;
    // Below this the weights cancel, and only their own rounding is left.
    let noise = weights.iter().map(|w| w.abs()).sum::<f64>() * 1e-13;
    let total = if total.abs() < noise { 0.0 } else { total };
    // A unit gain computed in floating point is meant to be a unit gain.
    let nearest = total.round();
    let total = if (total - nearest).abs() < noise {
        nearest
    } else {
        total
    };
    total * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaussian(size: usize, sigma: f64) -> Vec<f64> {
        let r = (size / 2) as f64;
        let mut w: Vec<f64> = (0..size * size)
            .map(|i| {
                let (x, y) = ((i % size) as f64 - r, (i / size) as f64 - r);
                (-(x * x + y * y) / (2.0 * sigma * sigma)).exp()
            })
            .collect();
        let sum: f64 = w.iter().sum();
        w.iter_mut().for_each(|v| *v /= sum);
        w
    }

    #[test]
    fn integers_and_dyadic_fractions_are_exact() {
        let soft: Vec<f64> = [1, 2, 1, 2, 4, 2, 1, 2, 1]
            .iter()
            .map(|&v| f64::from(v) / 16.0)
            .collect();
        let q = quantise(&soft, 3, 3, Limits::short(8), 8).unwrap();
        assert_eq!(q.weights, [1, 2, 1, 2, 4, 2, 1, 2, 1]);
        assert_eq!(q.shift, 4);
        let edge = [-1.0, -1.0, -1.0, -1.0, 8.0, -1.0, -1.0, -1.0, -1.0];
        let q = quantise(&edge, 3, 3, Limits::short(8), 8).unwrap();
        assert_eq!((q.weights[4], q.shift, q.sum()), (8, 0, 0));
    }

    #[test]
    fn sums_are_exact_and_symmetry_stays() {
        for depth in [8, 10, 12, 14, 16] {
            for size in [3, 5, 7, 15, 31, 63] {
                for sigma in [0.3, 0.8, 1.7, 5.0, 40.0] {
                    let q =
                        quantise(&gaussian(size, sigma), size, size, Limits::short(depth), depth).unwrap();
                    assert_eq!(q.sum(), 1_i64 << q.shift, "size {size} sigma {sigma}");
                    assert!(q.gains().0 + q.gains().1 < magnitude_limit(depth));
                    for y in 0..size {
                        for x in 0..size {
                            let v = q.weights[y * size + x];
                            assert_eq!(v, q.weights[y * size + size - 1 - x]);
                            assert_eq!(v, q.weights[(size - 1 - y) * size + x]);
                            assert_eq!(v, q.weights[x * size + y]);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_scale_one_larger_would_break_a_limit() {
        let w = gaussian(5, 1.1);
        let q = quantise(&w, 5, 5, Limits::short(8), 8).unwrap();
        let top = w.iter().copied().fold(0.0, f64::max) * f64::from(1_u32 << (q.shift + 1));
        assert!(top.round() as i64 > MAX_WEIGHT || 1_i64 << (q.shift + 1) >= magnitude_limit(8));
    }

    #[test]
    fn weights_beyond_the_limits_are_refused() {
        let error = quantise(&[40000.0], 1, 1, Limits::short(8), 8).unwrap_err();
        assert!(error.to_string().contains("divisor"), "{error}");
        assert!(quantise(&[300.0; 961], 31, 31, Limits::short(12), 12).is_err());
        assert!(quantise(&[f64::MAX], 1, 1, Limits::short(8), 8).is_err());
    }
}
