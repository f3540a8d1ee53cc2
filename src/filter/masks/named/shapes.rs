//! Masks that are the area of a shape in each pixel: disks and lines.

use super::normalised;
use crate::filter::{MAX_MASK, Mask, MaskError};

pub(super) fn disk(radius: f64) -> Result<Mask, MaskError> {
    let reach = (radius - 0.5).ceil().max(0.0) as usize;
    let size = 2 * reach + 1;
    let coverage = |at: usize| {
        let (x, y) = ((at % size).abs_diff(reach), (at / size).abs_diff(reach));
        // One octant for all, so that the mask is symmetric to the bit.
        pixel_in_disk(x.max(y) as f64, x.min(y) as f64, radius)
    };
    Mask::new(size, size, normalised((0..size * size).map(coverage).collect()))
}

/// The area that a disk around the origin covers of the unit square around (x, y), neither negative.
pub(super) fn pixel_in_disk(x: f64, y: f64, radius: f64) -> f64 {
    let near = (x - 0.5).max(0.0).hypot((y - 0.5).max(0.0));
    let far = (x + 0.5).hypot(y + 0.5);
    if near >= radius {
        return 0.0;
    }
    if far <= radius {
        return 1.0;
    }
    // The covered area of the rectangle from the origin to (a, b); odd in both.
    let corner = |a: f64, b: f64| quadrant_in_disk(a.abs(), b.abs(), radius) * a.signum() * b.signum();
    let (left, right, top, bottom) = (x - 0.5, x + 0.5, y - 0.5, y + 0.5);
    (corner(right, bottom) - corner(left, bottom) - corner(right, top) + corner(left, top)).clamp(0.0, 1.0)
}

/// The area that a disk around the origin covers of the rectangle from the origin to (a, b), neither
/// negative.
fn quadrant_in_disk(a: f64, b: f64, radius: f64) -> f64 {
    let (a, b) = (a.min(radius), b.min(radius));
    let square = radius * radius;
    if a * a + b * b <= square {
        return a * b;
    }
    // Flat at height b as far as the circle, then under the circle.
    let under = |x: f64| 0.5 * (x * (square - x * x).max(0.0).sqrt() + square * (x / radius).min(1.0).asin());
    let bend = (square - b * b).max(0.0).sqrt();
    bend * b + under(a) - under(bend)
}

pub(super) fn motion(length: f64, angle: f64) -> Result<Mask, MaskError> {
    let (sin, cos) = match angle.rem_euclid(180.0) {
        0.0 => (0.0, 1.0),
        90.0 => (1.0, 0.0),
        turned => turned.to_radians().sin_cos(),
    };
    // Half of the line's box. Rows count downwards, angles upwards.
    let half = |along: f64, across: f64| 0.5 * (length * along.abs() + across.abs());
    let most = MAX_MASK / 2;
    let reach = |half: f64| ((half - 0.5 - 1e-9).ceil().max(0.0) as usize).min(most);
    let (rx, ry) = (reach(half(cos, sin)), reach(half(sin, cos)));
    let (width, height) = (2 * rx + 1, 2 * ry + 1);
    let line: Vec<(f64, f64)> = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]
        .iter()
        .map(|&(u, v)| (u * length * cos - v * sin, -u * length * sin - v * cos))
        .collect();
    let mut weights: Vec<f64> = (0..width * height)
        .map(|at| {
            let (x, y) = ((at % width) as f64 - rx as f64, (at / width) as f64 - ry as f64);
            let area = pixel_in_polygon(&line, x, y);
            if area > 1e-9 { area } else { 0.0 }
        })
        .collect();
    // Symmetric about the centre to the bit, as the line is.
    for at in 0..weights.len() / 2 {
        let mirrored = weights.len() - 1 - at;
        weights[mirrored] = weights[at];
    }
    Mask::new(width, height, normalised(weights))
}

/// The area that a convex polygon covers of the unit square around (x, y).
pub(super) fn pixel_in_polygon(polygon: &[(f64, f64)], x: f64, y: f64) -> f64 {
    let mut rest: Vec<(f64, f64)> = polygon.iter().map(|p| (p.0 - x, p.1 - y)).collect();
    // Cut by each side of the square in turn: what lies within has a distance that is not negative.
    let sides: [fn((f64, f64)) -> f64; 4] = [|p| p.0 + 0.5, |p| 0.5 - p.0, |p| p.1 + 0.5, |p| 0.5 - p.1];
    for inside in sides {
        let mut cut = Vec::with_capacity(rest.len() + 1);
        for (at, &to) in rest.iter().enumerate() {
            let from = rest[(at + rest.len() - 1) % rest.len()];
            let (a, b) = (inside(from), inside(to));
            if (a < 0.0) != (b < 0.0) {
                let t = a / (a - b);
                cut.push((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)));
            }
            if b >= 0.0 {
                cut.push(to);
            }
        }
        rest = cut;
    }
    let turned = |at: usize| {
        let (p, q) = (rest[at], rest[(at + 1) % rest.len()]);
        p.0 * q.1 - q.0 * p.1
    };
    0.5 * (0..rest.len()).map(turned).sum::<f64>().abs()
}
