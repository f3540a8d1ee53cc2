//! Bytes of a file, one after another, and the heads of boxes of MP4.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// Outermost elements after which a walk gives up: weeks of video.
pub(crate) const MAX_ELEMENTS: u32 = 1_000_000;

/// The next byte.
pub(crate) fn byte(file: &mut impl Read) -> io::Result<u8> {
    let mut one = [0];
    file.read_exact(&mut one)?;
    Ok(one[0])
}

/// Passes over `bytes` bytes, all of which must be there.
pub(crate) fn skip(file: &mut impl BufRead, mut bytes: u64) -> io::Result<()> {
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

/// What a box of MP4 begins with: its size in 32 bits and its name, and behind a size of 1 one of 64 bits.
pub(crate) struct BoxHead {
    pub(crate) name: [u8; 4],
    /// Bytes of the box with its head; `None` if it goes on to the end of the file.
    pub(crate) size: Option<u64>,
}

impl BoxHead {
    /// The head of the box that begins at byte `at`; `file` is then behind it.
    pub(crate) fn at(file: &mut (impl Read + Seek), at: u64) -> io::Result<BoxHead> {
        file.seek(SeekFrom::Start(at))?;
        BoxHead::read(file)
    }

    pub(crate) fn read(file: &mut impl Read) -> io::Result<BoxHead> {
        let (mut short, mut name) = ([0; 4], [0; 4]);
        file.read_exact(&mut short)?;
        file.read_exact(&mut name)?;
        let size = match u32::from_be_bytes(short) {
            0 => None,
            1 => {
                let mut long = [0; 8];
                file.read_exact(&mut long)?;
                Some(u64::from_be_bytes(long))
            }
            size => Some(size.into()),
        };
        Ok(BoxHead { name, size })
    }
}
