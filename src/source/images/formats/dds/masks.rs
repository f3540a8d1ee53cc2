//! Pictures without compression whose header has a mask for each channel, of the kinds that the dds crate
//! does not know: channels of up to 8 bits, wherever they lie, and gray whose masks are not filled in. Gray
//! with alpha it takes for red and green.
//!
//! ```text
//!  a pixel of 16 bits:  x r r r r r g g g g g b b b b b      masks 7c00, 03e0, 001f, none for alpha
//! ```

use crate::source::images::picture::{OpenPicture, PictureNotes, Reason};
use dds::header::{Dx9Header, Dx9PixelFormat, PixelFormatFlags};
use std::fs::File;
use std::io::{BufReader, Read};

/// A picture whose pixels begin where `input` stands.
pub(super) struct Masked {
    input: BufReader<File>,
    width: usize,
    height: usize,
    pixel_bytes: usize,
    channels: Vec<Channel>,
    /// What else the file holds, in words.
    pub(super) said: PictureNotes,
}

/// Where a channel lies in a pixel. A mask of no bits gives 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Channel {
    shift: u32,
    most: u32,
}

impl Channel {
    /// None if the bits of the mask are scattered or more than 8.
    fn of(mask: u32) -> Option<Channel> {
        let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
        let most = mask >> shift;
        (most <= 255 && (most + 1).is_power_of_two()).then_some(Channel { shift, most })
    }

    /// Scaled to 8 bits, to the nearest.
    fn sample(self, pixel: u32) -> u8 {
        let value = pixel >> self.shift & self.most;
        ((value * 255 + self.most / 2) / self.most.max(1)) as u8
    }
}

/// The channels of a header in the order in which they are given; none if they are not read.
fn channels(flags: PixelFormatFlags, bits: u32, masks: [u32; 4]) -> Option<Vec<Channel>> {
    let has_alpha = flags.contains(PixelFormatFlags::ALPHAPIXELS);
    let masks = if flags.contains(PixelFormatFlags::RGB) {
        masks[..if has_alpha { 4 } else { 3 }].to_vec()
    } else if flags.contains(PixelFormatFlags::LUMINANCE) {
        // Some programs leave other masks there, which no pixel of this size can have.
        match (bits, has_alpha) {
            (8, false) => vec![0xff],
            (16, true) => vec![0xff, 0xff00],
            _ => vec![masks[0], masks[3]][..if has_alpha { 2 } else { 1 }].to_vec(),
        }
    } else {
        return None;
    };
    masks.into_iter().map(Channel::of).collect()
}

/// True for a header of gray with alpha.
pub(super) fn is_gray_with_alpha(header: &Dx9Header) -> bool {
    matches!(&header.pixel_format, Dx9PixelFormat::Mask(format)
        if format.flags.contains(PixelFormatFlags::LUMINANCE_ALPHA))
}

/// Opens the picture of a header whose masks the dds crate does not know; `length` bytes are the file's.
pub(super) fn open(input: BufReader<File>, header: &Dx9Header, length: u64) -> Result<Masked, Reason> {
    const UNKNOWN: &str = "its channels lie in pixels in a way that framepipe does not read";
    let Dx9PixelFormat::Mask(format) = &header.pixel_format else {
        return Err(UNKNOWN.into());
    };
    let masks = [
        format.r_bit_mask,
        format.g_bit_mask,
        format.b_bit_mask,
        format.a_bit_mask,
    ];
    let bits = u32::from(format.rgb_bit_count);
    let channels = channels(format.flags, bits, masks).ok_or(UNKNOWN)?;
    let bytes = u64::from(header.width) * u64::from(header.height) * u64::from(bits / 8);
    if bytes == 0 {
        return Err(format!("a picture of {}x{} pixels", header.width, header.height).into());
    }
    if bytes > length {
        return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
    }
    Ok(Masked {
        input,
        width: header.width as usize,
        height: header.height as usize,
        pixel_bytes: bits as usize / 8,
        channels,
        said: PictureNotes::default(),
    })
}

impl OpenPicture for Masked {
    fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    fn format(&self) -> &'static str {
        match self.channels.len() {
            1 => "gray",
            2 => "ya8",
            3 => "rgb24",
            _ => "rgba",
        }
    }

    fn most_packed(&self) -> Option<u64> {
        // A byte may hold three samples.
        Some(4)
    }

    fn decode(mut self: Box<Self>, samples: &mut [u8]) -> Result<PictureNotes, Reason> {
        let mut row = vec![0; self.width * self.pixel_bytes];
        let count = self.channels.len();
        for to in samples.chunks_exact_mut(self.width * count) {
            self.input.read_exact(&mut row)?;
            for (to, from) in to.chunks_exact_mut(count).zip(row.chunks_exact(self.pixel_bytes)) {
                let pixel = from.iter().rev().fold(0, |n, &byte| n << 8 | u32::from(byte));
                for (sample, channel) in to.iter_mut().zip(&self.channels) {
                    *sample = channel.sample(pixel);
                }
            }
        }
        Ok(self.said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_say_where_channels_lie() {
        let red = Channel::of(0x7c00);
        assert_eq!(red.map(|c| c.sample(0x7c00)), Some(255));
        assert_eq!(red.map(|c| c.sample(0xffff)), Some(255));
        assert_eq!(red.map(|c| c.sample(16 << 10)), Some(132));
        assert_eq!(Channel::of(0).map(|c| c.sample(77)), Some(0));
        assert_eq!(Channel::of(0xff00_0000).map(|c| c.sample(0x8000_0000)), Some(128));
        assert_eq!(Channel::of(0b101), None);
        assert_eq!(Channel::of(0x3ff), None);
    }
}
