//! Straight colours under alpha into those that are multiplied by it.

use super::component::Component;
use super::float::{read, write};
use crate::frame::{AlphaKind, Channel, Frame};

/// Multiplies the colours of floating-point samples by their alpha, each product rounded to 32 bits, if they
/// are straight. False if nothing was to be done.
pub(crate) fn associate(frame: &mut Frame) -> bool {
    let (format, colour) = (frame.format(), frame.metadata.colour);
    let is_straight = format.is_float() && colour.alpha == AlphaKind::Straight;
    let Some(alpha) = Component::of(format, Channel::Alpha).filter(|_| is_straight) else {
        return false;
    };
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let (mut line, mut opacity) = (vec![0.0; width], vec![0.0; width]);
    for y in 0..height {
        read(frame, alpha, y, colour, &mut opacity);
        for (channel, place) in Component::all(format) {
            if channel == Channel::Alpha {
                continue;
            }
            read(frame, place, y, colour, &mut line);
            line.iter_mut().zip(&opacity).for_each(|(value, &a)| *value *= a);
            write(&line, place, y, frame);
        }
    }
    frame.metadata.colour.alpha = AlphaKind::Associated;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, Layout, PixelFormat};

    #[test]
    fn straight_colours_are_multiplied_once() {
        for format in [PixelFormat::RGBAF32, PixelFormat::GBRAPF32] {
            let layout = Layout::new(format, 3, 2, 16).unwrap();
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
            let value = |x: usize, y: usize, k: usize| 0.7_f32 + (x + 3 * y) as f32 / 8.0 - k as f32;
            let alpha = |x: usize, y: usize| x as f32 / 3.0 + y as f32;
            let colours = [Channel::Red, Channel::Green, Channel::Blue];
            let place = |channel| format.place(channel).unwrap();
            for (x, y) in (0..6).map(|k| (k % 3, k / 3)) {
                for (k, channel) in colours.into_iter().enumerate() {
                    frame.set_float(place(channel).0, x, y, place(channel).1, value(x, y, k));
                }
                let (plane, at) = place(Channel::Alpha);
                frame.set_float(plane, x, y, at, alpha(x, y));
            }
            // The second time they are no longer straight.
            assert!(associate(&mut frame) && !associate(&mut frame));
            for (x, y) in (0..6).map(|k| (k % 3, k / 3)) {
                let sample = |channel| frame.float(place(channel).0, x, y, place(channel).1);
                for (k, channel) in colours.into_iter().enumerate() {
                    assert_eq!(sample(channel), value(x, y, k) * alpha(x, y));
                }
                assert_eq!(sample(Channel::Alpha), alpha(x, y));
            }
        }
    }
}
