//! Where a NUT file ends: behind its index, or else behind its last frame, whose header states its size.

use crate::media::containers::bytes::byte;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::path::Path;

/// How a NUT file begins.
pub(super) const NAME: &[u8; 25] = b"nut/multimedia container\0";

/// The first byte of a packet that is no frame, and the whole marks of two kinds.
const STARTCODE: u8 = b'N';
const MAIN: [u8; 8] = *b"NM\x7a\x56\x1f\x5f\x04\xad";
const INDEX: [u8; 8] = *b"NX\xdd\x67\x2f\x23\xe6\x4e";

/// A packet that is longer has a checksum of its head.
const CHECKED: u64 = 4096;

/// Frames after which a walk gives up: a day of video and sound.
const MOST_FRAMES: u32 = 20_000_000;

/// What a frame's header holds, by its flags.
const CODED_PTS: u64 = 1 << 3;
const STREAM_ID: u64 = 1 << 4;
const SIZE_MSB: u64 = 1 << 5;
const CHECKSUM: u64 = 1 << 6;
const RESERVED: u64 = 1 << 7;
const HEADER_INDEX: u64 = 1 << 10;
const MATCH_TIME: u64 = 1 << 11;
const CODED_FLAGS: u64 = 1 << 12;
const INVALID: u64 = 1 << 13;

/// What the first byte of a frame stands for.
#[derive(Debug, Clone, Copy, Default)]
struct Code {
    flags: u64,
    /// The frame has `low` bytes and `factor` times what it states.
    factor: u64,
    low: u64,
    reserved: u64,
    header: u64,
}

/// The main header.
struct Header {
    codes: Vec<Code>,
    /// Bytes of the headers that frames leave out.
    left_out: Vec<u64>,
}

/// Where a file of `length` bytes ends by its last frame; its length where it has an index.
pub(super) fn end(file: &mut (impl BufRead + Seek), length: u64) -> io::Result<Option<u64>> {
    if index_begin(file, length)?.is_some() {
        return Ok(Some(length));
    }
    let mut at = NAME.len() as u64;
    let mut header = None;
    for _ in 0..MOST_FRAMES {
        if at >= length {
            // Between two frames, nothing shows whether more came.
            return Ok(None);
        }
        let mut walked = Walked { file, at };
        walked.file.seek(SeekFrom::Start(at))?;
        let stepped = if walked.file.fill_buf()?.first() == Some(&STARTCODE) {
            walked.packet(&mut header)
        } else if let Some(header) = &header {
            walked.frame(header)
        } else {
            return Ok(None);
        };
        match stepped {
            Ok(end) if end > length => return Ok(Some(end)),
            Ok(end) => at = end,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(length + 1)),
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Where the index begins that the file ends with, and that says at its end how long it is.
fn index_begin(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<u64>> {
    let mut eight = [0; 8];
    let Some(at) = length.checked_sub(12) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut eight)?;
    let Some(begin) = length.checked_sub(u64::from_be_bytes(eight)) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(begin))?;
    let is_index = file.read_exact(&mut eight).is_ok() && eight == INDEX;
    Ok(is_index.then_some(begin))
}

/// True if the NUT file at `path` has frames between byte `reached`, where the last one that was read ends,
/// and its index or else its end.
pub(in crate::source::video) fn has_frames_behind(path: &Path, reached: u64) -> bool {
    let ask = || -> io::Result<bool> {
        let mut file = path.is_file().then(|| File::open(path)).transpose()?;
        let Some(file) = &mut file else {
            return Ok(false);
        };
        let length = file.metadata()?.len();
        frames_behind(file, length, reached)
    };
    ask().unwrap_or(false)
}

fn frames_behind(file: &mut (impl Read + Seek), length: u64, reached: u64) -> io::Result<bool> {
    // Bytes that frames leave out count as theirs.
    const LEFT_OUT: u64 = 16;
    if reached >= index_begin(file, length)?.unwrap_or(length) {
        return Ok(false);
    }
    // The headers may be repeated behind the last frame.
    let mut near = Vec::new();
    file.seek(SeekFrom::Start(reached.saturating_sub(LEFT_OUT)))?;
    file.take(2 * LEFT_OUT).read_to_end(&mut near)?;
    Ok(!near.windows(MAIN.len()).any(|code| code == MAIN))
}

/// A file that is read from one place on.
struct Walked<'a, F> {
    file: &'a mut F,
    at: u64,
}

impl<F: BufRead> Walked<'_, F> {
    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// A number, seven bits a byte.
    fn number(&mut self) -> io::Result<u64> {
        let mut value = 0_u64;
        for _ in 0..10 {
            let next = byte(self.file)?;
            self.at += 1;
            value = value << 7 | u64::from(next & 0x7F);
            if next & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// The end of a packet that is no frame; the main header is kept.
    fn packet(&mut self, header: &mut Option<Header>) -> io::Result<u64> {
        let code = self.bytes::<8>()?;
        let size = self.number()?;
        if size > CHECKED {
            self.bytes::<4>()?;
        }
        let end = self.at.checked_add(size).ok_or(io::ErrorKind::InvalidData)?;
        if code == MAIN && header.is_none() {
            *header = Some(self.header(end)?);
        }
        Ok(end)
    }

    /// The main header, which ends at `end`, behind four bytes of a checksum.
    fn header(&mut self, end: u64) -> io::Result<Header> {
        let version = self.number()?;
        if version > 3 {
            self.number()?;
        }
        // Streams, and the largest distance between two syncpoints.
        self.number()?;
        self.number()?;
        for _ in 0..self.number()?.saturating_mul(2) {
            self.number()?;
        }
        let mut codes = Vec::with_capacity(256);
        // A code keeps the factor and the header of the one before it where it has none of its own.
        let (mut factor, mut left_out) = (1, 0);
        while codes.len() < 256 {
            let flags = self.number()?;
            let fields = self.number()?;
            let mut field =
                |n: u64| -> io::Result<Option<u64>> { (fields > n).then(|| self.number()).transpose() };
            // Times and streams do not matter here.
            field(0)?;
            factor = field(1)?.unwrap_or(factor);
            field(2)?;
            let low = field(3)?.unwrap_or(0);
            let reserved = field(4)?.unwrap_or(0);
            let count = field(5)?.unwrap_or(factor.saturating_sub(low));
            field(6)?;
            left_out = field(7)?.unwrap_or(left_out);
            for n in 8..fields {
                field(n)?;
            }
            if count == 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            for n in 0..count {
                if codes.len() == usize::from(STARTCODE) {
                    codes.push(Code {
                        flags: INVALID,
                        ..Code::default()
                    });
                }
                if codes.len() == 256 {
                    break;
                }
                codes.push(Code {
                    flags,
                    factor,
                    low: low + n,
                    reserved,
                    header: left_out,
                });
            }
        }
        let mut sizes = vec![0];
        if self.at + 4 < end {
            for _ in 0..self.number()? {
                let size = self.number()?;
                sizes.push(size);
                for _ in 0..size {
                    self.bytes::<1>()?;
                }
            }
        }
        Ok(Header {
            codes,
            left_out: sizes,
        })
    }

    /// The end of a frame.
    fn frame(&mut self, header: &Header) -> io::Result<u64> {
        let [code] = self.bytes::<1>()?;
        let code = header.codes[usize::from(code)];
        let mut flags = code.flags;
        if flags & CODED_FLAGS != 0 {
            flags ^= self.number()?;
        }
        if flags & INVALID != 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut field =
            |flag: u64| -> io::Result<Option<u64>> { (flags & flag != 0).then(|| self.number()).transpose() };
        field(STREAM_ID)?;
        field(CODED_PTS)?;
        let high = field(SIZE_MSB)?.unwrap_or(0);
        field(MATCH_TIME)?;
        let left_out = field(HEADER_INDEX)?.unwrap_or(code.header);
        let reserved = field(RESERVED)?.unwrap_or(code.reserved);
        for _ in 0..reserved {
            self.number()?;
        }
        if flags & CHECKSUM != 0 {
            self.bytes::<4>()?;
        }
        let size = high
            .checked_mul(code.factor)
            .and_then(|high| high.checked_add(code.low));
        let size = size.ok_or(io::ErrorKind::InvalidData)?;
        // Large frames leave nothing out.
        let left_out = if size > CHECKED { 0 } else { left_out };
        let left_out = usize::try_from(left_out)
            .ok()
            .and_then(|n| header.left_out.get(n));
        let stored = left_out.and_then(|&left_out| size.checked_sub(left_out));
        stored
            .and_then(|stored| self.at.checked_add(stored))
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
