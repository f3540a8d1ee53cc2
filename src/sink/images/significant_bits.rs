//! What annotations say of the bits that samples have (the `sBIT` of PNG), for the channels that a file
//! stores.
//!
//! The frame's samples have no other bits (`sink/significant.rs`), and what is stored has none either:
//! samples of 9 to 14 bits are scaled to 16 so that shifting them down gives them back.

use super::stored::Stored;
use crate::annotations::Annotations;
use crate::frame::Channel;

/// The annotations for a file with these channels.
pub(super) fn fitting(annotations: &Annotations, stored: Stored) -> Annotations {
    let mut fitting = annotations.clone();
    let channels = stored.channels.len();
    let has_alpha = stored.channels.contains(&Channel::Alpha);
    if let Some(bits) = &mut fitting.significant_bits
        && !has_alpha
        && bits.len() == channels + 1
        && matches!(channels, 1 | 3)
    {
        bits.truncate(channels);
    }
    // Alpha that is new has all bits, and what is said of one that is gone says nothing.
    let fits = |bits: &mut Vec<u8>| bits.len() == channels || has_alpha && bits.len() + 1 == channels;
    fitting.significant_bits.take_if(|bits| !fits(bits));
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, ColourModel, Frame, Layout, PixelFormat};
    use crate::media::still::ImageKind;
    use crate::sink::images::picture::pixels;
    use crate::sink::images::stored::stored;

    #[test]
    fn bits_of_samples_that_are_scaled_to_16_are_still_theirs() {
        let mut depths = Vec::new();
        for format in PixelFormat::all() {
            let (depth, is_gray) = (format.depth(), format.model() == ColourModel::Gray);
            if !is_gray || format.has_alpha() || format.is_float() || !(9..=14).contains(&depth) {
                continue;
            }
            depths.push(depth);
            let most = format.max_value() as u16;
            let layout = Layout::new(format, usize::from(most) + 1, 1, 1).unwrap();
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
            for (sample, place) in (0..=most).zip(frame.row_mut(0, 0).as_chunks_mut::<2>().0) {
                *place = (sample << format.shift()).to_le_bytes();
            }
            let scaled = pixels(&frame, stored(ImageKind::Png, format).unwrap());
            for (sample, scaled) in (0..=most).zip(scaled.as_chunks::<2>().0) {
                // The depth of PNG's sBIT is brought back by a shift, and so is a lesser one.
                let scaled = u16::from_le_bytes(*scaled);
                assert_eq!(scaled >> (16 - depth), sample, "{format}");
            }
        }
        depths.dedup();
        assert_eq!(depths, [9, 10, 12, 14]);
    }

    #[test]
    fn bits_are_stated_for_the_channels_that_are_stored() {
        let stated = |bits: &[u8], format: PixelFormat| {
            let mut annotations = Annotations::default();
            annotations.significant_bits = Some(bits.to_vec());
            fitting(&annotations, stored(ImageKind::Png, format).unwrap()).significant_bits
        };
        assert_eq!(stated(&[5, 6, 5], PixelFormat::RGB24), Some(vec![5, 6, 5]));
        assert_eq!(stated(&[5, 6, 5, 1], PixelFormat::RGB24), Some(vec![5, 6, 5]));
        assert_eq!(stated(&[5, 6, 5], PixelFormat::RGBA), Some(vec![5, 6, 5]));
        assert_eq!(stated(&[5, 1], PixelFormat::GRAY), Some(vec![5]));
        assert_eq!(stated(&[5], PixelFormat::RGB24), None);
        assert_eq!(stated(&[5, 6, 5], PixelFormat::GRAY), None);
    }
}
