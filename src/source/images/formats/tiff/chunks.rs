//! Strips and tiles: read from the file, decompressed, with the predictor undone.
//!
//! A strip is some rows of the page, a tile is a rectangle. Tiles at the right and the bottom are padded to
//! full size. With separate planes the list has all strips or tiles of the first plane, then all of the
//! second, and so on. Compressed ones are unpacked whole; uncompressed ones are read in bands of about a
//! megabyte.
//!
//! ```text
//! strips      +-----------+      tiles   +---+---+---+
//!             | 0         |              | 0 | 1 | 2 |    place 0..6 in the grid;
//!             +-----------+              +---+---+---+    in the list: plane * 6 + place
//!             | 1         |              | 3 | 4 | 5 |
//!             +-----------+              +---+---+---+
//! ```

use super::compression::{
    Packing, Shape, jpeg_size, unpack, unpack_jpeg, unpack_old_lzw, unpack_webp, with_tables,
};
use super::directory::Input;
use super::fax::{self, Rows};
use super::page::Page;
use super::predictor::Predictor;
use super::{Problem, Result, damaged, unsupported};
use tiff::TiffError;

/// A compressed strip or tile may always unpack to this many bytes, however small the picture.
const ALWAYS_ALLOWED: usize = 64 << 20;
/// Beyond that it may be this many times as large as the output, because samples may have 64 bits or be left
/// out.
const TIMES_OUTPUT: usize = 16;
/// About this many bytes are read at a time if they are not compressed.
const BAND: usize = 1 << 20;

/// Reads the strips or tiles of a page.
pub(super) struct Chunks<'a> {
    input: Input,
    page: &'a Page,
    offsets: Vec<u64>,
    counts: Vec<u64>,
    /// The most bytes that a strip or tile may unpack to.
    limit: usize,
    /// The planes of the band; a single one if they are not separate.
    planes: Vec<Vec<u8>>,
}

/// Rows of a strip or tile, unpacked.
pub(super) struct Band<'a> {
    /// How many rows.
    pub(super) rows: usize,
    planes: &'a [Vec<u8>],
    stride: usize,
}

impl Band<'_> {
    /// The bytes of a plane's row; of a row of blocks if the page is stored in blocks.
    pub(super) fn row(&self, plane: usize, row: usize) -> &[u8] {
        let start = row * self.stride;
        self.planes
            .get(plane)
            .and_then(|raw| raw.get(start..start + self.stride))
            .unwrap_or(&[])
    }
}

impl<'a> Chunks<'a> {
    /// Reads where the strips or tiles are. The picture will take `output` bytes.
    pub(super) fn new(mut input: Input, page: &'a Page, output: usize) -> Result<Chunks<'a>> {
        let offsets = input.numbers(&page.offsets, u64::MAX)?;
        let counts = match &page.counts {
            Some(entry) => input.numbers(entry, u64::MAX)?,
            None => Vec::new(),
        };
        let planes = if page.planar { page.wanted.len() } else { 1 };
        Ok(Chunks {
            input,
            page,
            offsets,
            counts,
            limit: output.saturating_mul(TIMES_OUTPUT).max(ALWAYS_ALLOWED),
            planes: vec![Vec::new(); planes],
        })
    }

    /// Reads rows of the strip or tile at `place` in the grid: those after `skipped`, at most `rows`.
    pub(super) fn read_band(&mut self, place: u64, skipped: usize, rows: usize) -> Result<Band<'_>> {
        let page = self.page;
        let rows = page.band().min(rows);
        let (across, down) = page.grid();
        let mut stride = 0;
        for (plane, buffer) in self.planes.iter_mut().enumerate() {
            let plane = match page.wanted.get(plane) {
                Some(&plane) if page.planar => plane as u64,
                _ => 0,
            };
            let index =
                usize::try_from(plane * u64::from(across) * u64::from(down) + place).unwrap_or(usize::MAX);
            let Some(&offset) = self.offsets.get(index) else {
                return damaged("the list of strips or tiles is too short");
            };
            let chunk = Chunk {
                index,
                offset,
                count: self.counts.get(index).copied(),
                skipped,
                rows,
                alone: across == 1 && down == 1,
            };
            stride = page.expand(&mut self.input, &chunk, buffer, self.limit)?;
            if self.input.big_endian {
                page.swap_bytes(buffer);
            }
            page.predictor.undo(buffer, stride, page.bits, page.samples);
        }
        Ok(Band {
            rows,
            planes: &self.planes,
            stride,
        })
    }
}

/// A strip or tile of a plane.
struct Chunk {
    /// Its number in the list.
    index: usize,
    /// Where it is in the file.
    offset: u64,
    /// Its bytes in the file.
    count: Option<u64>,
    /// Rows before those that are read; 0 if they are compressed.
    skipped: usize,
    /// The rows that are read; never those below the picture.
    rows: usize,
    /// It is the only one of its plane.
    alone: bool,
}

impl Page {
    /// Bytes of a stored row of a strip or tile; of a row of blocks for subsampled YCbCr.
    fn stride(&self) -> Option<usize> {
        let width = self.chunk_width as usize;
        let (h, v) = self.model.block();
        if (h, v) != (1, 1) {
            return width.div_ceil(h).checked_mul(h * v + 2);
        }
        Some(
            width
                .checked_mul(self.bits)?
                .checked_mul(self.samples)?
                .div_ceil(8),
        )
    }

    /// The rows of a strip or tile that are read at a time: about a megabyte, or all if they are compressed.
    fn band(&self) -> usize {
        let stride = self.stride().unwrap_or(usize::MAX);
        match self.packing {
            Packing::None => (BAND / stride.max(1)).max(1) * self.model.block().1,
            _ => usize::MAX,
        }
    }

    /// Reads and decompresses what is needed of a strip or tile into `raw`; returns the bytes of a row there.
    fn expand(&self, input: &mut Input, chunk: &Chunk, raw: &mut Vec<u8>, limit: usize) -> Result<usize> {
        let number = chunk.index + 1;
        let kind = self.kind;
        if chunk.offset == 0 || chunk.count == Some(0) && self.packing != Packing::None {
            return unsupported(format!("leaves out {kind} {number}"));
        }
        let available = input.len.saturating_sub(chunk.offset);
        let rows = chunk.rows.div_ceil(self.model.block().1);
        let stride = self.stride();
        let size = stride.and_then(|stride| stride.checked_mul(rows));
        let (Some(mut stride), Some(mut size)) = (stride, size) else {
            return damaged(format!("{kind} {number} is larger than any memory"));
        };
        if self.packing == Packing::None {
            self.read_plain(input, chunk, (stride, size), raw)?;
            return Ok(stride);
        }
        let packed = chunk.count.unwrap_or(available);
        if packed > available {
            return damaged(format!("{kind} {number} goes beyond the end of the file"));
        }
        // No compressor in use makes the data larger than this, so the rest is not needed.
        let packed = packed.min(size.saturating_mul(8).saturating_add(1 << 20) as u64);
        input.seek(chunk.offset)?;
        let mut data = vec![0; usize::try_from(packed).unwrap_or(usize::MAX)];
        input.fill(&mut data)?;
        // As in libtiff, JPEG data is never reversed.
        if self.reversed && self.packing != Packing::Jpeg {
            reverse(&mut data);
        }
        if self.packing == Packing::Jpeg {
            data = with_tables(&self.jpeg_tables, data);
        }
        let shape = self.packed_shape(chunk, (stride, rows), &data, limit)?;
        if self.packing == Packing::Jpeg {
            stride = shape.width * shape.samples;
            size = stride * rows;
        }
        if size > limit {
            return damaged(format!("{kind} {number} is too large for the picture"));
        }
        resize(raw, size);
        let rows_of_fax = match self.packing {
            Packing::FaxRuns => Some(Rows::Bytes),
            Packing::Fax3 => Some(Rows::Codes {
                may_refer: self.fax_refers,
            }),
            _ => None,
        };
        if let Some(rows) = rows_of_fax {
            // No wider than 65535, see above.
            fax::unpack(rows, shape.width as u16, &data, raw)
                .or_else(|words| damaged(format!("{kind} {number}: {words}")))?;
            return Ok(stride);
        }
        if self.packing == Packing::Lzw && data.first() == Some(&0) && data.get(1).is_some_and(|b| b & 1 == 1)
        {
            unpack_old_lzw(&data, raw)?;
            return Ok(stride);
        }
        if self.packing == Packing::Jpeg {
            unpack_jpeg(&data, &shape, raw)?;
            return Ok(stride);
        }
        if self.packing == Packing::WebP {
            let size = (self.chunk_width as usize, rows, self.samples);
            unpack_webp(&data, size, limit, raw)?;
            return Ok(stride);
        }
        unpack(self.packing, &shape, &data, raw).map_err(|cause| match cause {
            TiffError::UnsupportedError(cause) => Problem::Unsupported(format!("has this: {cause}")),
            cause => {
                // Some of these messages have several lines.
                let words: Vec<String> = cause.to_string().split_whitespace().map(str::to_owned).collect();
                Problem::Damaged(format!("{kind} {number}: {}", words.join(" ")))
            }
        })?;
        Ok(stride)
    }

    /// Reads the rows that are needed of a strip or tile that is not compressed.
    fn read_plain(
        &self,
        input: &mut Input,
        chunk: &Chunk,
        (stride, size): (usize, usize),
        raw: &mut Vec<u8>,
    ) -> Result<()> {
        let available = input.len.saturating_sub(chunk.offset);
        // Some writers get the count of an only strip wrong.
        let counted = chunk
            .count
            .filter(|&count| count != 0 && !chunk.alone)
            .unwrap_or(available);
        let before = (chunk.skipped / self.model.block().1).saturating_mul(stride);
        if before.saturating_add(size) as u64 > counted.min(available) {
            return damaged(format!("{} {} is too short", self.kind, chunk.index + 1));
        }
        resize(raw, size);
        input.seek(chunk.offset.saturating_add(before as u64))?;
        input.fill(raw)?;
        if self.reversed {
            reverse(raw);
        }
        Ok(())
    }

    /// What compressed data holds: rows of bytes, of a fax's pixels, or a JPEG picture.
    fn packed_shape(
        &self,
        chunk: &Chunk,
        (stride, rows): (usize, usize),
        data: &[u8],
        limit: usize,
    ) -> Result<Shape> {
        let (kind, number) = (self.kind, chunk.index + 1);
        match self.packing {
            Packing::FaxRuns | Packing::Fax3 | Packing::Fax4 => {
                let width = self.chunk_width as usize;
                if width > 65_535 || rows > 65_535 {
                    return unsupported("holds a fax of more than 65535 columns or rows");
                }
                Ok(Shape {
                    width,
                    height: rows,
                    bits: 1,
                    samples: 1,
                })
            }
            Packing::Jpeg => {
                let (width, height, samples) = jpeg_size(data)?;
                if samples != self.samples {
                    return damaged(format!(
                        "the JPEG data of {kind} {number} has {samples} components"
                    ));
                }
                if width < self.chunk_width as usize || height < rows {
                    return damaged(format!("the JPEG data of {kind} {number} is too small"));
                }
                if width > 16_384 || height > 16_384 {
                    return unsupported("holds JPEG data of more than 16384 columns or rows");
                }
                // The whole JPEG picture is decoded, so all of it counts.
                if width * height * samples > limit {
                    return damaged(format!("the JPEG data of {kind} {number} is too large"));
                }
                Ok(Shape {
                    width,
                    height: rows,
                    bits: 8,
                    samples,
                })
            }
            _ => Ok(Shape {
                width: stride,
                height: rows,
                bits: 8,
                samples: 1,
            }),
        }
    }

    /// Makes big-endian samples little-endian.
    fn swap_bytes(&self, raw: &mut [u8]) {
        // The floating-point predictor stores the most significant bytes first in all files.
        if self.predictor == Predictor::Float {
            return;
        }
        match self.bits {
            16 => raw.as_chunks_mut::<2>().0.iter_mut().for_each(|n| n.reverse()),
            32 => raw.as_chunks_mut::<4>().0.iter_mut().for_each(|n| n.reverse()),
            64 => raw.as_chunks_mut::<8>().0.iter_mut().for_each(|n| n.reverse()),
            _ => {}
        }
    }
}

/// Sets the length of a buffer. New memory is not written to before something is unpacked into it.
fn resize(raw: &mut Vec<u8>, size: usize) {
    if raw.len() != size {
        *raw = Vec::new();
        *raw = vec![0; size];
    }
}

/// Reverses the bits of each byte.
fn reverse(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
}

#[cfg(test)]
mod tests {
    use super::super::directory::{
        BITS, COMPRESSION, FILL_ORDER, PHOTOMETRIC, PLANAR, SAMPLES, T4_OPTIONS, TILE_HEIGHT, TILE_WIDTH,
    };
    use super::super::fixtures::{file, read};

    #[test]
    fn bits_in_reverse_order_are_read() {
        let entries: &[(u16, &[u32])] = &[(PHOTOMETRIC, &[0]), (FILL_ORDER, &[2])];
        let (_, out) = read(&file(10, 1, entries, &[&[0b0000_0101, 0b10]])).unwrap();
        assert_eq!(out, [0, 255, 0, 255, 255, 255, 255, 255, 255, 0]);
        // PackBits: the byte 0b1010_0000 twice, every byte reversed.
        let entries: &[(u16, &[u32])] = &[(PHOTOMETRIC, &[1]), (FILL_ORDER, &[2]), (COMPRESSION, &[32_773])];
        let (_, out) = read(&file(16, 1, entries, &[&[0b1111_1111, 0b0000_0101]])).unwrap();
        assert_eq!(out, [255, 0, 255, 0, 0, 0, 0, 0].repeat(2));
    }

    #[test]
    fn faxes_old_lzw_and_webp_are_read() {
        // White 2, black 3, white 5.
        let runs: &[u8] = &[0b0111_1011, 0b0000_0000];
        for (packing, options) in [(2, 0), (3, 0)] {
            let entries: &[(u16, &[u32])] = &[
                (PHOTOMETRIC, &[0]),
                (COMPRESSION, &[packing]),
                (T4_OPTIONS, &[options]),
            ];
            let (_, out) = read(&file(10, 1, entries, &[runs])).unwrap();
            assert_eq!(out, [255, 255, 0, 0, 0, 255, 255, 255, 255, 255], "{packing}");
        }
        let pixels: Vec<u8> = (0..64 * 48 * 3_u32).map(|i| (i * i / 7) as u8).collect();
        let lzw = weezl::encode::Encoder::new(weezl::BitOrder::Lsb, 8)
            .encode(&pixels)
            .unwrap();
        assert_eq!((lzw[0], lzw[1] & 1), (0, 1));
        let mut webp = Vec::new();
        image::codecs::webp::WebPEncoder::new_lossless(&mut webp)
            .encode(&pixels, 64, 48, image::ExtendedColorType::Rgb8)
            .unwrap();
        for (packing, data) in [(5, &lzw), (50_001, &webp)] {
            let entries: &[(u16, &[u32])] = &[
                (BITS, &[8; 3]),
                (SAMPLES, &[3]),
                (PHOTOMETRIC, &[2]),
                (COMPRESSION, &[packing]),
            ];
            let (_, out) = read(&file(64, 48, entries, &[data])).unwrap();
            assert!(out == pixels, "{packing}");
            for end in [0, 1, data.len() / 2] {
                assert!(
                    read(&file(64, 48, entries, &[&data[..end]])).is_err(),
                    "{packing}: {end}"
                );
            }
        }
    }

    #[test]
    fn tiles_of_separate_planes_are_read() {
        let entries: &[(u16, &[u32])] = &[
            (BITS, &[8; 3]),
            (PHOTOMETRIC, &[2]),
            (SAMPLES, &[3]),
            (PLANAR, &[2]),
            (TILE_WIDTH, &[16]),
            (TILE_HEIGHT, &[16]),
        ];
        let tiles: Vec<Vec<u8>> = (0..6)
            .map(|tile| (0..=255).map(|i| tile * 40 + i % 16 + i / 16).collect())
            .collect();
        let tiles: Vec<&[u8]> = tiles.iter().map(Vec::as_slice).collect();
        let (_, out) = read(&file(19, 5, entries, &tiles)).unwrap();
        for (at, pixel) in out.chunks_exact(3).enumerate() {
            let (x, y) = (at as u8 % 19, at as u8 / 19);
            let first = x / 16 * 40 + x % 16 + y;
            assert_eq!(pixel, [first, first + 80, first + 160]);
        }
    }
}
