//! What the header of a JPEG XL codestream says that FFmpeg's decoder passes over: that frames follow the
//! first, and samples of more than 16 bits or of floating point.
//!
//! ```text
//!  ff 0a | size | all as usual? | else: more? orientation, size to show, preview, animation
//!                               |       floating point?  bits of a sample, of its exponent | ..
//! ```
//!
//! Bits are read from the lowest of each byte on.

use crate::ffmpeg::{Codestream, codestream};
use crate::frame::PixelFormat;

/// What the header of a stream's first packet says.
#[derive(Debug, Default)]
pub(in crate::source::video) struct JpegXl {
    header: Option<Header>,
}

/// What a codestream's header says.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    is_animated: bool,
    is_float: bool,
    bits: u32,
}

impl JpegXl {
    /// Looks at a packet, if none before was understood.
    pub(in crate::source::video) fn note_packet(&mut self, packet: &[u8]) {
        if self.header.is_some() {
            return;
        }
        self.header = match codestream(packet) {
            Codestream::Bare => header(packet),
            Codestream::Boxed(stream) => header(&stream),
            Codestream::Missing => None,
        };
    }

    /// True if frames may follow the first.
    pub(in crate::source::video) fn is_animated(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.is_animated)
    }

    /// What frames of `format` do not hold of the samples, in words.
    pub(in crate::source::video) fn lost_samples(&self, format: PixelFormat) -> Option<String> {
        let Header { is_float, bits, .. } = *self.header.as_ref().filter(|_| !format.is_float())?;
        let depth = format.depth();
        if is_float {
            Some(format!(
                "its floating-point samples of {bits} bits are read as integers of {depth} bits, from 0 to 1"
            ))
        } else {
            (bits > depth).then(|| format!("its samples of {bits} bits are read as {depth} bits"))
        }
    }
}

/// Bits of a codestream.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The number in the next `count` bits, at most 32.
    fn take(&mut self, count: usize) -> Option<u32> {
        let mut number = 0;
        for place in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            number |= u32::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Some(number)
    }

    fn flag(&mut self) -> Option<bool> {
        self.take(1).map(|bit| bit == 1)
    }

    /// Two bits choose a number: so many bits, and what is added to them.
    fn chosen(&mut self, ways: [(usize, u32); 4]) -> Option<u32> {
        let (count, more) = ways[self.take(2)? as usize];
        Some(self.take(count)?.wrapping_add(more))
    }

    /// Passes a height, a ratio, and the width that goes with none.
    fn pass_sides(&mut self, side: impl Fn(&mut Self) -> Option<u32>) -> Option<()> {
        side(self)?;
        if self.take(3)? == 0 {
            side(self)?;
        }
        Some(())
    }

    fn pass_size(&mut self) -> Option<()> {
        match self.flag()? {
            true => self.pass_sides(|bits| bits.take(5)),
            false => self.pass_sides(|bits| bits.chosen([(9, 1), (13, 1), (18, 1), (30, 1)])),
        }
    }

    fn pass_preview(&mut self) -> Option<()> {
        match self.flag()? {
            true => self.pass_sides(|bits| bits.chosen([(0, 16), (0, 32), (5, 1), (9, 33)])),
            false => self.pass_sides(|bits| bits.chosen([(6, 1), (8, 65), (10, 321), (12, 1345)])),
        }
    }

    /// Ticks a second, loops, and whether frames have time codes.
    fn pass_animation(&mut self) -> Option<()> {
        self.chosen([(0, 100), (0, 1000), (10, 1), (30, 1)])?;
        self.chosen([(0, 1), (0, 1001), (8, 1), (10, 1)])?;
        self.chosen([(0, 0), (3, 0), (16, 0), (32, 0)])?;
        self.flag()?;
        Some(())
    }
}

fn header(codestream: &[u8]) -> Option<Header> {
    let mut bits = Bits {
        bytes: codestream.get(2..)?,
        at: 0,
    };
    let mut header = Header {
        is_animated: false,
        is_float: false,
        bits: 8,
    };
    bits.pass_size()?;
    if bits.flag()? {
        return Some(header);
    }
    if bits.flag()? {
        // How it is turned.
        bits.take(3)?;
        if bits.flag()? {
            bits.pass_size()?;
        }
        if bits.flag()? {
            bits.pass_preview()?;
        }
        header.is_animated = bits.flag()?;
        if header.is_animated {
            bits.pass_animation()?;
        }
    }
    header.is_float = bits.flag()?;
    header.bits = match header.is_float {
        true => bits.chosen([(0, 32), (0, 16), (0, 24), (6, 1)])?,
        false => bits.chosen([(0, 8), (0, 10), (0, 12), (6, 1)])?,
    };
    Some(header)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// How files of libjxl's begin: three frames of 4 x 4 pixels, and samples of 32 bits.
    const ANIMATED: &[u8] = b"\xff\x0a\x83\x05\x4d\x00\x20\x26\x08\x04\x01\x00";
    const FLOATS: &[u8] = b"\xff\x0a\x83\xc9\x01\x14\x2d\x02\x08\x04\x01\x00";

    #[test]
    fn headers_say_what_decoders_pass_over() {
        let said = |packet: &[u8]| {
            let mut stream = JpegXl::default();
            stream.note_packet(packet);
            let lost = stream.lost_samples(PixelFormat::RGB48);
            assert_eq!(stream.lost_samples(PixelFormat::RGBF32), None);
            (stream.is_animated(), lost.unwrap_or_default())
        };
        let plain = (false, String::new());
        assert_eq!(said(ANIMATED), (true, String::new()));
        let (is_animated, lost) = said(FLOATS);
        assert!(
            !is_animated && lost.contains("floating-point samples of 32 bits"),
            "{lost}"
        );
        assert_eq!(said(b"\xff\x0a\x41\x02"), plain);
        assert_eq!(said(b"\x89PNG"), plain);
        assert!((0..5).all(|end| said(&ANIMATED[..end]) == plain));
    }
}
