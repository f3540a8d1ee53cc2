//! Colour under alpha: multiplied before the convolution, divided after it (the formula is at [`AlphaUse`]).

use super::rows::{Place, load, store};
use super::strip::each_row;
use super::team::Team;
use super::{Picture, Strip, strips};
use crate::filter::{AlphaUse, ChannelStep, Convolve, Step};
use crate::frame::{Channel, Layout, PixelFormat};

/// Plane and place of the alpha component.
fn alpha_place(format: PixelFormat) -> Option<(usize, Place)> {
    format.planes().iter().enumerate().find_map(|(plane, pf)| {
        let channel = pf.channels.iter().position(|&c| c == Channel::Alpha)?;
        Some((
            plane,
            Place {
                channels: pf.channels.len(),
                channel,
                format,
            },
        ))
    })
}

/// The strip's rows with the convolved colours multiplied by alpha, everything else copied.
pub(super) fn premultiply(step: &Step, input: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>) {
    let format = layout.format();
    let Some((alpha_plane, alpha_place)) = alpha_place(format) else {
        return;
    };
    let max = format.max_value();
    let width = layout.planes()[strip.plane].width;
    let (mut colour, mut alpha) = (vec![0; width], vec![0; width]);
    let channels = &step.planes[strip.plane];
    each_row(layout, strip, |at, row| {
        row.copy_from_slice(input.row(at.plane, at.row));
        load(alpha_place, input.row(alpha_plane, at.row), &mut alpha);
        for (channel, what) in channels.iter().enumerate() {
            let ChannelStep::Convolve(Convolve {
                level,
                is_alpha: false,
                ..
            }) = what
            else {
                continue;
            };
            let place = Place {
                channels: channels.len(),
                channel,
                format,
            };
            let level = u32::from(*level);
            load(place, input.row(at.plane, at.row), &mut colour);
            weigh_by_depth(max, level, &mut colour, &alpha);
            store(place, &colour, row);
        }
    });
}

/// [`weigh`] for pixels of these depths.
fn weigh_by_depth(max: u32, level: u32, colour: &mut [i32], alpha: &[i32]) {
    match max {
        0xff => weigh::<0xff>(level, colour, alpha),
        0x1ff => weigh::<0x1ff>(level, colour, alpha),
        0x3ff => weigh::<0x3ff>(level, colour, alpha),
        0xfff => weigh::<0xfff>(level, colour, alpha),
        0x3fff => weigh::<0x3fff>(level, colour, alpha),
        _ => weigh::<0xffff>(level, colour, alpha),
    }
}

/// `level + floor((2 (c - level) a + MAX) / 2 MAX)`, whose numerator is odd, in numbers that are never negative and fit 32 bits.
fn weigh<const MAX: u32>(level: u32, colour: &mut [i32], alpha: &[i32]) {
    for (c, &a) in colour.iter_mut().zip(alpha) {
        let product = (*c as u32).wrapping_sub(level).wrapping_mul(a as u32);
        *c = (product.wrapping_add(level * MAX + MAX / 2) / MAX) as i32;
    }
}

/// Straight colour again, in place; `before` is the picture that the step began with.
pub(super) fn unpremultiply(
    step: &Step,
    alpha: &AlphaUse,
    before: Picture<'_>,
    layout: &Layout,
    output: &mut [u8],
    team: &Team,
) {
    let format = layout.format();
    let Some((alpha_plane, alpha_place)) = alpha_place(format) else {
        return;
    };
    let plane = layout.planes()[alpha_plane];
    // Where colours have planes of their own the convolved alpha is read by every plane's strips while they are written, so it is set apart first.
    let mut apart = Vec::new();
    if layout.planes().len() > 1 {
        apart = vec![0; plane.width * plane.height];
        for (y, line) in apart.chunks_mut(plane.width).enumerate() {
            let start = plane.offset + y * plane.stride;
            load(
                alpha_place,
                &output[start..start + layout.row_bytes(alpha_plane)],
                line,
            );
        }
    }
    let straight = Straight {
        max: i64::from(format.max_value()),
        gain: i64::from(alpha.gain),
        offset: i64::from(alpha.offset),
    };
    team.each(strips(step, layout, output, team.size()), |_, mut strip| {
        let mut beside = vec![0; plane.width];
        let mut kept = vec![0; plane.width];
        let mut original = vec![0; plane.width];
        let mut colour = vec![0; plane.width];
        let channels = &step.planes[strip.plane];
        each_row(layout, &mut strip, |at, row| {
            load(alpha_place, before.row(alpha_plane, at.row), &mut kept);
            let convolved = if apart.is_empty() {
                load(alpha_place, row, &mut beside);
                &beside[..]
            } else {
                &apart[at.row * plane.width..][..plane.width]
            };
            let of_result = if alpha.filter_alpha { convolved } else { &kept };
            let weight = if alpha.normalise { convolved } else { of_result };
            for (channel, what) in channels.iter().enumerate() {
                let ChannelStep::Convolve(c) = what else { continue };
                let place = Place {
                    channels: channels.len(),
                    channel,
                    format,
                };
                if c.is_alpha {
                    store(place, of_result, row);
                    continue;
                }
                load(place, before.row(at.plane, at.row), &mut original);
                load(place, row, &mut colour);
                straight.row(i64::from(c.level), &mut colour, &original, weight);
                store(place, &colour, row);
            }
        });
    });
}

/// What makes straight colour of weighted colour: the largest sample, the mask's gain times 2^16, and what is added last.
struct Straight {
    max: i64,
    gain: i64,
    offset: i64,
}

impl Straight {
    /// Colours above `level`, their alpha, and what they were where that is 0.
    fn row(&self, level: i64, colour: &mut [i32], original: &[i32], alpha: &[i32]) {
        let pixels = colour.iter_mut().zip(original).zip(alpha);
        if self.max == 0xff && self.gain == 1 << 16 {
            // What is beyond this cuts every colour, whatever it is exactly.
            let above = (level + self.offset).clamp(-(1 << 17), 1 << 17) as i32;
            let level = level as i32;
            pixels.for_each(|((c, &original), &a)| *c = straight_byte(*c - level, above, original, a));
        } else {
            pixels.for_each(|((c, &original), &a)| {
                *c = self.straight(i64::from(*c) - level, level, original, a);
            });
        }
    }

    /// `floor((N + a 2^15) / (a 2^16))` is `floor(floor((N + a 2^15) / 2^16) / a)`. What is added after it is added before as so many a's, and what would be cut after
    /// it is cut before.
    fn straight(&self, colour: i64, level: i64, original: i32, a: i32) -> i32 {
        if a == 0 {
            return original;
        }
        let a = i64::from(a);
        let n = ((colour * self.max * self.gain + (a << 15)) >> 16) + (level + self.offset) * a;
        // Off by less than the half that is added is away from a whole number.
        ((n.clamp(0, self.max * a) as f64 + 0.5) / a as f64) as i32
    }
}

/// `2^24 / a`, rounded up: times a number of at most 255 a and over 2^24 that is the number over a, rounded down.
const RECIPROCALS: [u32; 256] = {
    let mut table = [0; 256];
    let mut a = 1;
    while a < 256 {
        table[a] = (1_u32 << 24).div_ceil(a as u32);
        a += 1;
    }
    table
};

/// The same for 8 bits and a gain of 1.
fn straight_byte(colour: i32, above: i32, original: i32, a: i32) -> i32 {
    let n = (colour * 0xff + (a >> 1) + above * a).clamp(0, 0xff * a) as u32;
    let straight = (n * RECIPROCALS[(a & 0xff) as usize]) >> 24;
    if a == 0 { original } else { straight as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_formula() {
        for (max, levels) in [
            (0xff, [0, 16, 128]),
            (0x3ff, [0, 64, 512]),
            (0xffff, [0, 4096, 32768]),
        ] {
            let step = (max as usize / 255).max(1);
            let all: Vec<i32> = (0..=max as i32).step_by(step).chain([max as i32 - 1]).collect();
            for level in levels {
                for &a in &all {
                    let mut got = all.clone();
                    weigh_by_depth(max, level, &mut got, &vec![a; all.len()]);
                    for (&c, &got) in all.iter().zip(&got) {
                        let (c, a, level, max) =
                            (i64::from(c), i64::from(a), i64::from(level), i64::from(max));
                        let expected = level + (2 * (c - level) * a + max).div_euclid(2 * max);
                        assert_eq!(i64::from(got), expected, "{c} {a} {level} {max}");
                    }
                }
            }
        }
    }

    #[test]
    fn straight_colours_are_those_of_the_formula() {
        for (max, level) in [
            (0xff, 0),
            (0xff, 16),
            (0xff, 128),
            (0x3ff, 64),
            (0xffff, 0),
            (0xffff, 32768),
        ] {
            for (gain, offset) in [
                (1 << 16, 0),
                (1 << 16, -9),
                (1 << 16, 40_000_000),
                (21_845, 20),
                (1, -3),
            ] {
                let straight = Straight { max, gain, offset };
                let step = (max as usize / 255).max(1);
                let all: Vec<i32> = (0..=max as i32)
                    .step_by(step)
                    .chain([1, 2, 3, max as i32 - 1])
                    .collect();
                for &a in [0].iter().chain(&all) {
                    let mut got = all.clone();
                    straight.row(level, &mut got, &vec![-7; all.len()], &vec![a; all.len()]);
                    for (&c, &got) in all.iter().zip(&got) {
                        let (c, a) = (i64::from(c), i64::from(a));
                        let expected = if a == 0 {
                            -7
                        } else {
                            let scaled = 2 * (c - level) * max * gain + (a << 16);
                            (level + scaled.div_euclid(a << 17) + offset).clamp(0, max)
                        };
                        assert_eq!(i64::from(got), expected, "{c} {a} {level} {max} {gain} {offset}");
                    }
                }
            }
        }
    }
}
