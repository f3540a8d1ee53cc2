//! What the header of a JPEG XL codestream says that FFmpeg's decoder passes over: that frames follow the
//! first, and samples of more than 16 bits or of floating point.

use crate::annotations::jpeg_xl::{CodestreamHeader, Contents};
use crate::frame::PixelFormat;
use crate::media::ffmpeg::{Codestream, codestream};

/// What the header of a stream's first packet says.
#[derive(Debug, Default)]
pub(in crate::source::video) struct JpegXl {
    contents: Option<Contents>,
}

impl JpegXl {
    /// Looks at a packet, if none before was understood.
    pub(in crate::source::video) fn note_packet(&mut self, packet: &[u8]) {
        let contents = |codestream: &[u8]| CodestreamHeader::begin(codestream)?.contents();
        if self.contents.is_some() {
            return;
        }
        self.contents = match codestream(packet) {
            Codestream::Bare => contents(packet),
            Codestream::Boxed(stream) => contents(&stream),
            Codestream::Missing => None,
        };
    }

    /// True if frames may follow the first.
    pub(in crate::source::video) fn is_animated(&self) -> bool {
        self.contents
            .as_ref()
            .is_some_and(|contents| contents.is_animated)
    }

    /// What frames of `format` do not hold of the samples, in words.
    pub(in crate::source::video) fn lost_samples(&self, format: PixelFormat) -> Option<String> {
        let Contents { is_float, bits, .. } = *self.contents.as_ref().filter(|_| !format.is_float())?;
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

#[cfg(test)]
mod tests {
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
