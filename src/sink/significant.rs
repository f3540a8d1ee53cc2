//! How many bits of the samples mean something, as PNG's sBIT states it: forgotten where it is not true any
//! more, so that no output carries it or names its loss. A filter's results have more bits than its input.

use crate::frame::{Channel, Frame, PixelFormat};
use std::sync::Arc;

/// The frame, whose annotations state significant bits only if its samples have no others.
pub(super) fn with_true_bits(mut frame: Frame) -> Frame {
    let Some(annotations) = &frame.metadata.annotations else {
        return frame;
    };
    let is_true = |bits: &Vec<u8>| are_true(&frame, bits);
    if annotations.significant_bits.as_ref().is_none_or(is_true) {
        return frame;
    }
    let mut rest = annotations.as_ref().clone();
    rest.significant_bits = None;
    frame.metadata.annotations = Some(Arc::new(rest));
    frame
}

/// The channels that the numbers of bits are for.
fn channels(format: PixelFormat) -> &'static [Channel] {
    match format.place(Channel::Luma) {
        // Luma of RGB is another sample than those that the bits were stated for.
        Some(_) if format.place(Channel::Cb).is_some() => &[],
        Some(_) => &[Channel::Luma, Channel::Alpha],
        None => &[Channel::Red, Channel::Green, Channel::Blue, Channel::Alpha],
    }
}

fn are_true(frame: &Frame, bits: &[u8]) -> bool {
    let format = frame.format();
    let channels = channels(format);
    // Alpha may have come or gone.
    if bits.len() > channels.len() || bits.len() + 1 < channels.len() {
        return false;
    }
    let pairs = channels.iter().zip(bits);
    let mut places = pairs.filter_map(|(&channel, &bits)| Some((format.place(channel)?, u32::from(bits))));
    let (width, height) = (frame.layout().width(), frame.layout().height());
    places.all(|((plane, at), bits)| {
        let mut pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        match format.is_float() {
            true => pixels.all(|(x, y)| is_part(frame.float(plane, x, y, at), bits)),
            false if bits > format.depth() => false,
            false if bits == format.depth() => true,
            false => {
                pixels.all(|(x, y)| has_only(frame.sample(plane, x, y, at).into(), bits, format.depth()))
            }
        }
    })
}

/// True if so many of `depth` bits say what a sample is: those below are zero, repeat them, or are what
/// scaling them to the whole range makes.
fn has_only(sample: u32, bits: u32, depth: u32) -> bool {
    let Some(lower) = depth.checked_sub(bits).filter(|_| bits > 0) else {
        return false;
    };
    let most = (1_u32 << depth) - 1;
    let value = sample >> lower;
    let least = (1_u32 << bits) - 1;
    let scaled = (value * most + least / 2) / least;
    let mut repeated = value << lower;
    let mut filled = bits;
    while filled < depth {
        repeated |= repeated >> filled;
        filled *= 2;
    }
    [value << lower, scaled, repeated].contains(&sample)
}

/// The same for a part of white that was made of a sample of 8 or 16 bits.
fn is_part(value: f32, bits: u32) -> bool {
    [8, 16].into_iter().any(|depth: u32| {
        let most = f64::from((1_u32 << depth) - 1);
        let sample = (f64::from(value) * most).round();
        let is_whole = (0.0..=most).contains(&sample) && (sample / most) as f32 == value;
        is_whole && has_only(sample as u32, bits, depth)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_are_filled_up_say_nothing() {
        // 5 of 8 bits: with zeros, scaled, repeated.
        for sample in [0b1011_0000, 0b1011_0101, 181, 0, 255, 248] {
            assert!(has_only(sample, 5, 8), "{sample}");
            assert!(is_part(sample as f32 / 255.0, 5), "{sample}");
        }
        for sample in [1, 0b1011_0011, 254] {
            assert!(!has_only(sample, 5, 8), "{sample}");
            assert!(!is_part(sample as f32 / 255.0, 5), "{sample}");
        }
        assert!(!has_only(1, 0, 8) && !has_only(1, 9, 8) && has_only(77, 8, 8));
        assert!(!is_part(f32::NAN, 5) && !is_part(-1.0, 5) && !is_part(1.5, 5) && !is_part(0.123, 10));
    }
}
