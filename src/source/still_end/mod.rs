//! Where a still ends by its format's own account, of the kinds that FFmpeg's decoders take for whole when
//! their end is missing. `images/picture_end.rs` looks at what follows that end.
//!
//! ```text
//!  QOI         header 14 | codes of width x height pixels | 0 0 0 0 0 0 0 1
//!  JPEG-LS,    SOI | segments, each with its length | scan, up to the next marker | .. | EOI
//!  lossless
//!  Sun raster  header 32 | map | rows of whole 16-bit words, plain or in runs
//!  SGI         header 512 | plain rows, or a table of places and lengths, then rows in runs
//!  PCX         header 128 | rows in runs | palette, 769 bytes, if a pixel is one byte
//!  Alias PIX   header 10 | runs: count, then one pixel
//!  DPX         header, which states the file's length | rows of whole 32-bit words
//!  BMP         header, which states where rows begin | rows of whole 32-bit words, plain
//!  PSD         header 26 | three parts, each with its length | packing | rows, or lengths of rows in runs
//!  XBM         #define width and height | numbers as text between { and }
//! ```
//!
//! Runs are walked and not decoded, a few bytes at a time.

mod alias_pix;
pub(super) mod bmp;
mod dpx;
mod header;
mod jpeg;
mod pcx;
mod psd;
mod qoi;
mod sgi;
mod sun_raster;
mod xbm;

use std::io::{self, BufRead, ErrorKind, Seek};

/// Where a still ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StillEnd {
    /// Behind this number of bytes, which may be more than there are.
    At(u64),
    /// Somewhere past the last byte.
    Beyond,
}

/// Asks a file that holds pictures of `codec`, by FFmpeg's name, and nothing around them. `None` if the
/// format says nothing of its end, or the file is of another one.
pub(super) fn still_end<R: BufRead + Seek>(codec: &str, file: &mut R) -> io::Result<Option<StillEnd>> {
    let walk: fn(&mut R) -> io::Result<Option<u64>> = match codec {
        "qoi" => qoi::end,
        "jpegls" | "mjpeg" | "ljpeg" => jpeg::end,
        "sunrast" => sun_raster::end,
        "sgi" => sgi::end,
        "pcx" => pcx::end,
        "alias_pix" => alias_pix::end,
        "dpx" => dpx::end,
        "bmp" => bmp::end,
        "psd" => psd::end,
        "xbm" => xbm::end,
        _ => return Ok(None),
    };
    file.rewind()?;
    match walk(file) {
        Ok(end) => Ok(end.map(StillEnd::At)),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(Some(StillEnd::Beyond)),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn end(codec: &str, file: &[u8]) -> Option<StillEnd> {
        still_end(codec, &mut Cursor::new(file)).unwrap()
    }

    #[test]
    fn stills_end_where_their_formats_say() {
        // Two pixels of three bytes, a difference of two, a difference of one, an index and a run of three.
        let codes = [
            &[0xfe, 9, 8, 7][..],
            &[0xff, 9, 8, 7, 6, 0xa0, 0x88, 0x6a, 0x05, 0xc2],
        ]
        .concat();
        let mut qoi = b"qoif\0\0\0\x04\0\0\0\x02\x04\0".to_vec();
        qoi.extend(codes);
        qoi.extend([0, 0, 0, 0, 0, 0, 0, 1]);
        // A scan with a stuffed byte, a stuffed bit, a restart marker and filling before its end.
        let jpeg = b"\xff\xd8\xff\xf7\0\x03x\xff\xda\0\x04abc\xff\x00\xff\x7fd\xff\xd0e\xff\xff\xd9".to_vec();
        let header = |words: [u32; 7]| {
            let words = words.map(u32::to_be_bytes).concat();
            [&[0x59, 0xa6, 0x6a, 0x95], &words[..]].concat()
        };
        // Three pixels of a byte make rows of four bytes.
        let plain = [&header([3, 2, 8, 0, 1, 1, 3])[..], &[7; 3], &[5; 8]].concat();
        let runs = [&header([3, 2, 8, 0, 2, 0, 0])[..], &[0x80, 4, 9, 0x80, 0, 1, 2]].concat();
        let mut sgi = [&[1, 0xda, 1, 1, 0, 2, 0, 9, 0, 2, 0, 1][..], &[0; 500]].concat();
        sgi.extend([528_u32, 531, 3, 2].map(u32::to_be_bytes).concat());
        sgi.extend([9; 5]);
        let mut pcx = vec![10, 5, 1, 8, 0, 0, 0, 0, 3, 0, 1, 0];
        pcx.resize(128, 0);
        pcx[65..68].copy_from_slice(&[3, 4, 0]);
        pcx.extend([0xcc, 7, 0xc9, 1, 2, 3, 4]);
        let psd = |packing: u8, more: &[u8]| {
            let mut file = b"8BPS\0\x01\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\x05\0\x08\0\x03".to_vec();
            file.extend([0, 0, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 2, 8, 8, 0, packing]);
            file.extend(more);
            file
        };
        // A row of three bytes and one of padding, and the length that the header states.
        let mut dpx = b"SDPX\0\0\x08\0".to_vec();
        dpx.resize(2056, 0);
        dpx[16..20].copy_from_slice(&2056_u32.to_be_bytes());
        dpx[772..780].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2]);
        (dpx[800], dpx[803]) = (50, 8);
        let mut longer = dpx.clone();
        longer[16..20].copy_from_slice(&3000_u32.to_be_bytes());
        assert_eq!(end("dpx", &longer), Some(StillEnd::At(3000)));
        longer[771] = 1;
        assert_eq!(end("dpx", &longer), Some(StillEnd::At(2056)));
        assert_eq!(end("dpx", &longer[..2055]), Some(StillEnd::At(3000)));
        let mut unstated = dpx[..2055].to_vec();
        unstated[16..20].fill(0xff);
        assert_eq!(end("dpx", &unstated), Some(StillEnd::At(2056)));
        let mut unpadded = dpx[..2054].to_vec();
        unpadded[16..20].copy_from_slice(&2054_u32.to_be_bytes());
        assert_eq!(end("dpx", &unpadded), Some(StillEnd::At(2054)));
        assert_eq!(end("dpx", &unpadded[..2053]), Some(StillEnd::At(2054)));
        // Another one behind it is no padding.
        let twice = [&unpadded[..], &unpadded].concat();
        assert_eq!(end("dpx", &twice), Some(StillEnd::At(2054)));
        let mut bmp = b"BM\0\0\0\0\0\0\0\0\x20\0\0\0\x0c\0\0\0\x05\0\x02\0\x01\0\x08\0".to_vec();
        bmp.resize(48, 0);
        let pix = b"\0\x03\0\x02\0\0\0\0\0\x18\x03abc\x03def".to_vec();
        for (codec, whole) in [
            ("qoi", qoi),
            ("jpegls", jpeg.clone()),
            ("mjpeg", jpeg.repeat(2)),
            ("sunrast", plain),
            ("sunrast", runs),
            ("sgi", sgi),
            ("pcx", pcx),
            ("alias_pix", pix),
            ("dpx", dpx),
            ("bmp", bmp),
            (
                "xbm",
                b"#define a_width 8\nchar a_bits[] = { 0x55, 0x5 }".to_vec(),
            ),
            ("psd", psd(0, &[7; 15])),
            ("psd", psd(1, &[0, 2, 0, 2, 0, 3, 252, 7, 252, 7, 0, 1, 2])),
        ] {
            let length = whole.len() as u64;
            // What stands behind a whole file is not its own.
            for file in [&whole[..], &[&whole[..], b"more"].concat()] {
                assert_eq!(end(codec, file), Some(StillEnd::At(length)), "{codec}");
            }
            for cut in whole.len() - 4..whole.len() {
                let found = end(codec, &whole[..cut]);
                let is_known = found == Some(StillEnd::At(length)) || found == Some(StillEnd::Beyond);
                assert!(is_known, "{codec} of {cut} bytes: {found:?}");
            }
            assert_eq!(end("h264", &whole), None);
        }
        for codec in [
            "qoi", "jpegls", "sunrast", "sgi", "pcx", "psd", "dpx", "bmp", "xbm",
        ] {
            assert_eq!(end(codec, &[0; 900]), None, "{codec}");
        }
    }
}
