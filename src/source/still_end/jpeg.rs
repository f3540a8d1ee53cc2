//! The end of JPEG-LS, JPEG and lossless JPEG files: segments with their lengths, scans, and the marker EOI.

use super::header::{be16, bytes};
use crate::media::containers::bytes::{byte, skip};
use std::io::{self, BufRead, ErrorKind, Seek};

/// Walks all pictures that follow one upon the other.
pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
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
