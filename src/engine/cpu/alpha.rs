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
    let max = i64::from(format.max_value());
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
            let level = i64::from(*level);
            load(place, input.row(at.plane, at.row), &mut colour);
            for (c, &a) in colour.iter_mut().zip(&alpha) {
                *c = (level + (2 * (i64::from(*c) - level) * i64::from(a) + max).div_euclid(2 * max)) as i32;
            }
            store(place, &colour, row);
        }
    });
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
    let max = i64::from(format.max_value());
    let plane = layout.planes()[alpha_plane];
    // The convolved alpha is read by every plane's strips while they are written, so it is set apart first.
    let mut convolved = vec![0; plane.width * plane.height];
    for (y, line) in convolved.chunks_mut(plane.width).enumerate() {
        let start = plane.offset + y * plane.stride;
        load(
            alpha_place,
            &output[start..start + layout.row_bytes(alpha_plane)],
            line,
        );
    }
    team.each(strips(step, layout, output, team.size()), |_, mut strip| {
        let mut kept = vec![0; plane.width];
        let mut original = vec![0; plane.width];
        let mut colour = vec![0; plane.width];
        let channels = &step.planes[strip.plane];
        each_row(layout, &mut strip, |at, row| {
            load(alpha_place, before.row(alpha_plane, at.row), &mut kept);
            let convolved = &convolved[at.row * plane.width..][..plane.width];
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
                for ((value, &original), &a) in colour.iter_mut().zip(&original).zip(weight) {
                    *value = straight(alpha, i64::from(c.level), max, *value, original, a);
                }
                store(place, &colour, row);
            }
        });
    });
}

fn straight(alpha: &AlphaUse, level: i64, max: i64, value: i32, original: i32, a: i32) -> i32 {
    if a == 0 {
        return original;
    }
    let a = i64::from(a);
    let scaled = 2 * (i64::from(value) - level) * max * i64::from(alpha.gain) + (a << 16);
    let colour = level + scaled.div_euclid(a << 17);
    (colour + i64::from(alpha.offset)).clamp(0, max) as i32
}
