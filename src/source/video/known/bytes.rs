//! Bytes of a file, one after another.

use std::io::{self, BufRead, Read};

/// The next byte.
pub(super) fn byte(file: &mut impl Read) -> io::Result<u8> {
    let mut one = [0];
    file.read_exact(&mut one)?;
    Ok(one[0])
}

/// Passes over `bytes` bytes, all of which must be there.
pub(super) fn skip(file: &mut impl BufRead, mut bytes: u64) -> io::Result<()> {
    while bytes > 0 {
        let buffered = file.fill_buf()?.len();
        if buffered == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let passed = bytes.min(buffered as u64);
        file.consume(passed as usize);
        bytes -= passed;
    }
    Ok(())
}
