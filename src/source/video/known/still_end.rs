//! Where a still ends by its format's own account, of the kinds that FFmpeg's decoders take for whole when
//! their end is missing.
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

use crate::media::containers::bytes::{byte, skip};
use std::io::{self, BufRead, ErrorKind, Read, Seek};

/// Where a still ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source::video) enum StillEnd {
    /// Behind this number of bytes, which may be more than there are.
    At(u64),
    /// Somewhere past the last byte.
    Beyond,
}

/// Asks a file that holds pictures of `codec`, by FFmpeg's name, and nothing around them. `None` if the
/// format says nothing of its end, or the file is of another one.
pub(in crate::source::video) fn still_end<R: BufRead + Seek>(
    codec: &str,
    file: &mut R,
) -> io::Result<Option<StillEnd>> {
    let walk: fn(&mut R) -> io::Result<Option<u64>> = match codec {
        "qoi" => qoi,
        "jpegls" | "mjpeg" | "ljpeg" => jpeg,
        "sunrast" => sun_raster,
        "sgi" => sgi,
        "pcx" => pcx,
        "alias_pix" => alias_pix,
        "dpx" => dpx,
        "bmp" => bmp,
        "psd" => psd,
        "xbm" => xbm,
        _ => return Ok(None),
    };
    file.rewind()?;
    match walk(file) {
        Ok(end) => Ok(end.map(StillEnd::At)),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(Some(StillEnd::Beyond)),
        Err(e) => Err(e),
    }
}

fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut found = [0; N];
    file.read_exact(&mut found)?;
    Ok(found)
}

fn be16(header: &[u8], at: usize) -> u64 {
    u64::from(header[at]) << 8 | u64::from(header[at + 1])
}

fn le16(header: &[u8], at: usize) -> u64 {
    u64::from(header[at + 1]) << 8 | u64::from(header[at])
}

fn be32(header: &[u8], at: usize) -> u64 {
    be16(header, at) << 16 | be16(header, at + 2)
}

fn qoi<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const MARKER: u64 = 8;
    let header: [u8; 14] = bytes(file)?;
    if !header.starts_with(b"qoif") {
        return Ok(None);
    }
    let pixels = be32(&header, 4).saturating_mul(be32(&header, 8));
    let (mut seen, mut at) = (0_u64, 14_u64);
    while seen < pixels {
        let code = byte(file)?;
        let (more, run) = match code {
            0xfe => (3, 1),
            0xff => (4, 1),
            0x80..0xc0 => (1, 1),
            0xc0.. => (0, u64::from(code & 63) + 1),
            _ => (0, 1),
        };
        skip(file, more)?;
        (seen, at) = (seen + run, at + 1 + more);
    }
    Ok(Some(at + MARKER))
}

/// Walks all pictures that follow one upon the other.
fn jpeg<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const BEGIN: [u8; 2] = [0xff, 0xd8];
    if bytes(file)? != BEGIN {
        return Ok(None);
    }
    loop {
        if !jpeg_picture(file)? {
            return Ok(None);
        }
        let end = file.stream_position()?;
        match bytes(file) {
            Ok(BEGIN) => {}
            Ok(_) => return Ok(Some(end)),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(Some(end)),
            Err(e) => return Err(e),
        }
    }
}

/// Passes a picture behind its first marker; false if what follows is no marker.
fn jpeg_picture(file: &mut impl BufRead) -> io::Result<bool> {
    if byte(file)? != 0xff {
        return Ok(false);
    }
    loop {
        // Any number of bytes 0xff may stand before the code of a marker.
        let mut code = byte(file)?;
        while code == 0xff {
            code = byte(file)?;
        }
        if code == 0xd9 {
            return Ok(true);
        }
        if !matches!(code, 0x01 | 0xd0..=0xd8) {
            let length = be16(&bytes::<2>(file)?, 0);
            skip(file, length.saturating_sub(2))?;
        }
        if code == 0xda {
            pass_scan(file)?;
        } else if byte(file)? != 0xff {
            return Ok(false);
        }
    }
}

/// Passes the codes of a scan and the first byte of the marker behind it.
fn pass_scan(file: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let Some(at) = buffer.iter().position(|&byte| byte == 0xff) else {
            let length = buffer.len();
            file.consume(length);
            continue;
        };
        file.consume(at + 1);
        // Below 0x80 it belongs to the codes: JPEG stuffs a zero byte, JPEG-LS a zero bit.
        let next = *file
            .fill_buf()?
            .first()
            .ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))?;
        if matches!(next, 0x80..=0xcf | 0xd8..) {
            return Ok(());
        }
        file.consume(1);
    }
}

fn sun_raster<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const RUNS: u64 = 2;
    let header: [u8; 32] = bytes(file)?;
    let word = |index: usize| be32(&header, 4 * index);
    if word(0) != 0x59a6_6a95 {
        return Ok(None);
    }
    let row = word(1).saturating_mul(word(3)).div_ceil(16).saturating_mul(2);
    let (all, map) = (row.saturating_mul(word(2)), word(7));
    match word(5) {
        0 | 1 | 3 => return Ok(Some(all.saturating_add(32 + map))),
        RUNS => {}
        _ => return Ok(None),
    }
    skip(file, map)?;
    let (mut seen, mut at) = (0, 32 + map);
    while seen < all {
        // 0x80 begins a run of its count plus one, and stands for itself where that is 0.
        if byte(file)? != 0x80 {
            (seen, at) = (seen + 1, at + 1);
            continue;
        }
        let count = u64::from(byte(file)?);
        let has_value = count > 0;
        skip(file, u64::from(has_value))?;
        (seen, at) = (seen + count + 1, at + 2 + u64::from(has_value));
    }
    Ok(Some(at))
}

fn sgi<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const HEADER: u64 = 512;
    let header: [u8; HEADER as usize] = bytes(file)?;
    let (storage, sample_bytes, dimensions) = (header[2], u64::from(header[3]), be16(&header, 4));
    if be16(&header, 0) != 0x01da {
        return Ok(None);
    }
    let (width, mut rows) = (be16(&header, 6), 1);
    if dimensions >= 2 {
        rows *= be16(&header, 8);
    }
    if dimensions >= 3 {
        rows *= be16(&header, 10);
    }
    if storage == 0 {
        return Ok(Some(HEADER + width * rows * sample_bytes));
    }
    // All places come before all lengths.
    let mut places = Vec::new();
    for _ in 0..rows {
        places.push(u32::from_be_bytes(bytes(file)?));
    }
    let mut end = HEADER + 8 * rows;
    for place in places {
        end = end.max(u64::from(place) + u64::from(u32::from_be_bytes(bytes(file)?)));
    }
    Ok(Some(end))
}

fn pcx<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const PALETTE: u64 = 1 + 3 * 256;
    let header: [u8; 128] = bytes(file)?;
    let (is_packed, bits, planes) = (header[2] == 1, header[3], header[65]);
    let rows = (le16(&header, 10) + 1).saturating_sub(le16(&header, 6));
    if header[0] != 10 {
        return Ok(None);
    }
    let row = le16(&header, 66) * u64::from(planes);
    let mut at = 128;
    if is_packed {
        for _ in 0..rows {
            let mut seen = 0;
            // A run does not go on into the next row.
            while seen < row {
                let code = byte(file)?;
                let is_run = code >= 0xc0;
                skip(file, u64::from(is_run))?;
                at += 1 + u64::from(is_run);
                seen += if is_run { u64::from(code & 63) } else { 1 };
            }
        }
    } else {
        at += row * rows;
    }
    let has_palette = (bits, planes) == (8, 1);
    Ok(Some(if has_palette { at + PALETTE } else { at }))
}

fn alias_pix<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    let header: [u8; 10] = bytes(file)?;
    let pixels = be16(&header, 0) * be16(&header, 2);
    let pixel_bytes = match be16(&header, 8) {
        24 => 3,
        8 => 1,
        _ => return Ok(None),
    };
    let (mut seen, mut at) = (0, 10);
    while seen < pixels {
        let count = byte(file)?;
        if count == 0 {
            return Ok(None);
        }
        skip(file, pixel_bytes)?;
        (seen, at) = (seen + u64::from(count), at + 1 + pixel_bytes);
    }
    Ok(Some(at))
}

/// FFmpeg's decoder takes a file whose last row lacks bytes for one without padding, and skews the picture.
fn dpx<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const UNDEFINED: u64 = 0xffff_ffff;
    let header: [u8; 808] = bytes(file)?;
    let word = |at: usize| match header[0] {
        b'X' => le16(&header, at + 2) << 16 | le16(&header, at),
        _ => be32(&header, at),
    };
    let half = |at: usize| match header[0] {
        b'X' => le16(&header, at),
        _ => be16(&header, at),
    };
    if !header.starts_with(b"SDPX") && !header.starts_with(b"XPDS") {
        return Ok(None);
    }
    let stated = Some(word(16)).filter(|&length| length > 0 && length != UNDEFINED);
    let samples = match header[800] {
        1..=4 | 6..=8 => 1,
        50 | 102 => 3,
        51 | 52 | 103 => 4,
        100 => 2,
        _ => return Ok(stated),
    } * word(772);
    let (is_filled, is_packed_in_runs) = (half(804) > 0, half(806) > 0);
    let row = match (header[803], is_filled) {
        (8, _) => samples,
        (10, true) => samples.div_ceil(3) * 4,
        (12, true) | (16, _) => samples * 2,
        (10 | 12, false) => (samples * u64::from(header[803])).div_ceil(32) * 4,
        _ => return Ok(stated),
    };
    if is_packed_in_runs {
        return Ok(stated);
    }
    let end = |row: u64| row.saturating_mul(word(776)).saturating_add(word(4));
    let (padded, unpadded) = (end(row.next_multiple_of(4)), end(row));
    let length = file.seek(io::SeekFrom::End(0))?;
    // Some programs write rows without padding, and say so by the length alone.
    Ok(Some(match stated.filter(|&stated| stated >= unpadded) {
        Some(stated) if stated == unpadded && length <= unpadded => unpadded,
        // ImageMagick states more than it writes of gray.
        Some(_) if half(770) == 1 && length >= padded => padded,
        Some(stated) => stated.max(padded),
        None if length == unpadded => unpadded,
        None => padded,
    }))
}

/// As [`dpx`]. Packed rows have no length that the size tells.
fn bmp<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const OLD: u64 = 12;
    const PLAIN: [u64; 3] = [0, 3, 6];
    let header: [u8; 26] = bytes(file)?;
    let word = |header: &[u8], at: usize| le16(header, at + 2) << 16 | le16(header, at);
    if !header.starts_with(b"BM") {
        return Ok(None);
    }
    let (width, height, bits) = if word(&header, 14) == OLD {
        (le16(&header, 18), le16(&header, 20), le16(&header, 24))
    } else {
        let rest: [u8; 8] = bytes(file)?;
        if !PLAIN.contains(&word(&rest, 4)) {
            return Ok(None);
        }
        let height = (word(&header, 22) as u32).cast_signed().unsigned_abs();
        (word(&header, 18), height.into(), le16(&rest, 2))
    };
    let row = (width * bits).div_ceil(32) * 4;
    Ok(Some(row.saturating_mul(height).saturating_add(word(&header, 10))))
}

fn psd<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    let header: [u8; 26] = bytes(file)?;
    // Files of the second version have longer numbers, and no decoder in FFmpeg.
    if !header.starts_with(b"8BPS\0\x01") {
        return Ok(None);
    }
    let rows = be16(&header, 12).saturating_mul(be32(&header, 14));
    let row = be32(&header, 18).saturating_mul(be16(&header, 22)).div_ceil(8);
    let mut at = 28;
    for _ in 0..3 {
        let length = be32(&bytes::<4>(file)?, 0);
        skip(file, length)?;
        at += 4 + length;
    }
    match be16(&bytes::<2>(file)?, 0) {
        0 => Ok(Some(rows.saturating_mul(row).saturating_add(at))),
        1 => {
            for _ in 0..rows {
                at += 2 + be16(&bytes::<2>(file)?, 0);
            }
            Ok(Some(at))
        }
        _ => Ok(None),
    }
}

fn xbm<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    // A definition, or a comment before it.
    if !matches!(byte(file)?, b'#' | b'/') {
        return Ok(None);
    }
    for bracket in *b"{}" {
        while byte(file)? != bracket {}
    }
    file.stream_position().map(Some)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
