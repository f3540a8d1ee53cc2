//! What decoders of image files get to read: no more than the picture can need, and nothing of what stands
//! beside it.

use std::cell::Cell;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::rc::Rc;

/// Bytes that a header may take.
pub(super) const HEADER: u64 = 1 << 20;

/// A reader that ends when its budget is used up. It is the same type for every input, so that decoders are
/// compiled once.
pub(super) struct BudgetedReader<'a> {
    input: Box<dyn BufReadSeek + 'a>,
    left: ReadBudget,
}

trait BufReadSeek: BufRead + Seek {}

impl<R: BufRead + Seek> BufReadSeek for R {}

/// The bytes that a [`BudgetedReader`] reader may still read.
#[derive(Clone)]
pub(super) struct ReadBudget(Rc<Cell<u64>>);

impl ReadBudget {
    /// A budget for a header.
    pub(super) fn new() -> ReadBudget {
        ReadBudget(Rc::new(Cell::new(HEADER)))
    }

    /// Extends the budget, once the header was read, to what a picture of so many bytes can need.
    pub(super) fn extend(&self, picture: u64) {
        // Digits of plain text with spaces between them are the longest form that samples come in.
        self.0.set(picture.saturating_mul(8).saturating_add(16 * HEADER));
    }

    /// True if all of it was read, so that an early end is the budget's and not the file's.
    pub(super) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    fn spend(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub(bytes as u64));
    }
}

impl<'a> BudgetedReader<'a> {
    pub(super) fn new(input: impl BufRead + Seek + 'a, budget: &ReadBudget) -> BudgetedReader<'a> {
        BudgetedReader {
            input: Box::new(input),
            left: budget.clone(),
        }
    }
}

impl BufRead for BudgetedReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let left = usize::try_from(self.left.0.get()).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(&[]);
        }
        let buffer = self.input.fill_buf()?;
        Ok(&buffer[..buffer.len().min(left)])
    }

    fn consume(&mut self, bytes: usize) {
        self.left.spend(bytes);
        self.input.consume(bytes);
    }
}

impl Read for BudgetedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut there = self.fill_buf()?;
        let read = there.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl Seek for BudgetedReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.input.seek(to)
    }
}

/// A PNG file without the chunks that stand beside its picture: the decoder would unpack a profile, and keep
/// texts, of any length.
pub(super) struct PngPixels<R> {
    input: R,
    state: PngState,
    /// Palette and transparency are not shown either.
    hides_palette: bool,
}

/// Bytes of the signature and of the chunk with the size.
const PNG_BEGIN: usize = 33;

enum PngState {
    /// The signature and the first chunk, and how much of them was shown.
    Begin([u8; PNG_BEGIN], usize),
    /// So many bytes are to be shown, of the signature or of a chunk.
    Shown(u64),
    /// The head of a chunk, and how much of it was shown; so many bytes of the chunk follow.
    Head([u8; 8], usize, u64),
    Ended,
}

impl<R: BufRead + Seek> PngPixels<R> {
    pub(super) fn new(input: R) -> PngPixels<R> {
        PngPixels {
            input,
            state: PngState::Shown(8),
            hides_palette: false,
        }
    }

    /// A file of a palette, as one of gray whose samples are the numbers of its colours.
    pub(super) fn numbers(mut input: R) -> io::Result<PngPixels<R>> {
        const GRAY: u8 = 0;
        let mut begin = [0; PNG_BEGIN];
        input.read_exact(&mut begin)?;
        begin[25] = GRAY;
        let mut checksum = flate2::Crc::new();
        checksum.update(&begin[12..29]);
        begin[29..].copy_from_slice(&checksum.sum().to_be_bytes());
        Ok(PngPixels {
            input,
            state: PngState::Begin(begin, 0),
            hides_palette: true,
        })
    }

    /// The next chunk that is shown.
    fn next_chunk(&mut self) -> io::Result<PngState> {
        loop {
            let mut head = [0; 8];
            match self.input.read_exact(&mut head) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(PngState::Ended),
                Err(e) => return Err(e),
            }
            let [l0, l1, l2, l3, name @ ..] = head;
            // The checksum follows the data.
            let rest = u64::from(u32::from_be_bytes([l0, l1, l2, l3])) + 4;
            // Names of chunks are four letters; what is none is the decoder's to refuse.
            let is_beside = name.iter().all(u8::is_ascii_alphabetic) && name[0].is_ascii_lowercase();
            let is_beside = match &name {
                b"tRNS" | b"PLTE" => self.hides_palette,
                _ => is_beside,
            };
            if !is_beside {
                return Ok(PngState::Head(head, 0, rest));
            }
            self.input.seek_relative(rest as i64)?;
        }
    }
}

impl<R: BufRead + Seek> BufRead for PngPixels<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if matches!(self.state, PngState::Shown(0)) {
            self.state = self.next_chunk()?;
        }
        match &self.state {
            PngState::Ended => Ok(&[]),
            PngState::Begin(begin, shown) => Ok(&begin[*shown..]),
            PngState::Head(head, shown, _) => Ok(&head[*shown..]),
            PngState::Shown(left) => {
                let buffer = self.input.fill_buf()?;
                let left = usize::try_from(*left).unwrap_or(usize::MAX);
                Ok(&buffer[..buffer.len().min(left)])
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        match &mut self.state {
            PngState::Ended => {}
            PngState::Begin(_, shown) if *shown + bytes >= PNG_BEGIN => self.state = PngState::Shown(0),
            PngState::Begin(_, shown) => *shown += bytes,
            PngState::Head(_, shown, rest) if *shown + bytes >= 8 => self.state = PngState::Shown(*rest),
            PngState::Head(_, shown, _) => *shown += bytes,
            PngState::Shown(left) => {
                *left = left.saturating_sub(bytes as u64);
                self.input.consume(bytes);
            }
        }
    }
}

impl<R: BufRead + Seek> Read for PngPixels<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut there = self.fill_buf()?;
        let read = there.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R> Seek for PngPixels<R> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "PNG is read from its beginning to its end",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_ration_ends_and_is_extended() {
        let budget = ReadBudget::new();
        let mut input = BudgetedReader::new(Cursor::new(vec![7; 3 << 20]), &budget);
        let mut all = Vec::new();
        assert_eq!(input.read_to_end(&mut all).unwrap(), HEADER as usize);
        budget.extend(0);
        assert_eq!(input.read_to_end(&mut all).unwrap(), 2 << 20);
    }

    #[test]
    fn of_a_png_file_the_picture_is_read_and_nothing_beside_it() {
        let chunk =
            |name: &[u8], data: &[u8]| [&(data.len() as u32).to_be_bytes(), name, data, b"crc."].concat();
        let signature = b"\x89PNG\r\n\x1a\n".to_vec();
        let of = |chunks: &[Vec<u8>]| [signature.clone(), chunks.concat()].concat();
        let wanted = [
            chunk(b"IHDR", &[1; 13]),
            chunk(b"tRNS", &[2; 6]),
            chunk(b"IDAT", &[3; 10_000]),
            chunk(b"IEND", &[]),
        ];
        let mut all = wanted.to_vec();
        all.insert(1, chunk(b"iCCP", &[4; 100]));
        all.insert(3, chunk(b"zTXt", &[5; 20_000]));
        all.push(b"cut".to_vec());
        let mut shown = Vec::new();
        PngPixels::new(io::BufReader::with_capacity(16, Cursor::new(of(&all))))
            .read_to_end(&mut shown)
            .unwrap();
        assert_eq!(shown, of(&wanted));
        // What is no PNG file stays so.
        let mut shown = Vec::new();
        PngPixels::new(Cursor::new(b"\x89PNG".to_vec()))
            .read_to_end(&mut shown)
            .unwrap();
        assert_eq!(shown, b"\x89PNG");
    }
}
