//! Icons and cursors of Windows (ICO, CUR): one picture in several sizes, of which the largest is read, and
//! of these the deepest. The image crate decodes it, from a file of this picture alone that is made in
//! memory: by itself the crate reads no PNG but RGBA, takes the deepest before the largest, and the place of
//! a cursor for its depth.
//!
//! ```text
//!  0 0, 1 or 2, count | entries: width, height, .., length, place; 16 bytes each | pictures
//!
//!  a picture:  a whole PNG file, or
//!              header of a BMP, its height doubled | colours | rows | mask, 1 bit a pixel: 1 is transparent
//! ```

use crate::source::images::picture::Reason;
use crate::source::images::trailing::several_pictures;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Bytes of the list's head, and of an entry.
const HEAD: usize = 6;
const ENTRY: usize = 16;

/// The kind of file that holds cursors.
const CURSOR: u8 = 2;

/// Bytes of a picture that its size and depth stand in, however it is stored.
const START: usize = 40;

/// Bytes of the smallest of a BMP's headers that are read.
const BMP_HEADER: usize = 40;

/// A BMP's kinds of packing: none, and none with masks of where the colours lie.
const PLAIN: u32 = 0;
const MASKED: u32 = 3;

/// Bytes of the largest picture that is read.
const MOST: u64 = 256 << 20;

/// The picture that was chosen.
pub(in crate::source::images) struct Chosen {
    /// A file of its own, and whether it is a PNG and no icon.
    pub(in crate::source::images) file: Vec<u8>,
    pub(in crate::source::images) is_png: bool,
    /// What is not given, in words.
    pub(in crate::source::images) losses: Vec<String>,
}

/// Where a picture lies, and what its head says.
#[derive(Debug, Clone, Copy)]
struct Entry {
    width: u32,
    height: u32,
    /// Bits of a pixel.
    bits: u32,
    /// The pixel that points, of a cursor; an icon states planes and depth there.
    hot_spot: (u16, u16),
    place: u64,
    length: u64,
}

/// Reads the largest picture of a file.
pub(in crate::source::images) fn open(path: &Path) -> Result<Chosen, Reason> {
    let mut file = File::open(path)?;
    let mut head = [0; HEAD];
    file.read_exact(&mut head)?;
    let count = usize::from(u16::from_le_bytes([head[4], head[5]]));
    if head[..2] != [0, 0] || !matches!(head[2..4], [1 | 2, 0]) {
        return Err("it is neither an icon nor a cursor".into());
    }
    let mut list = vec![0; count * ENTRY];
    file.read_exact(&mut list)?;
    let mut entries = Vec::with_capacity(count);
    for stored in list.as_chunks::<ENTRY>().0 {
        entries.extend(entry(&mut file, stored)?);
    }
    let Some(best) = entries.iter().copied().rev().max_by_key(rank) else {
        return Err(if count == 0 {
            "it holds no picture".into()
        } else {
            "none of its pictures is in the file".into()
        });
    };
    let mut losses = Vec::new();
    if count > 1 {
        losses.push(others(count, &best));
    }
    let (x, y) = best.hot_spot;
    if head[2] == CURSOR && (x, y) != (0, 0) {
        losses.push(format!("its hot spot, the pixel at {x},{y}, is left out"));
    }
    file.seek(SeekFrom::Start(best.place))?;
    let mut data = Vec::new();
    file.take(MOST).read_to_end(&mut data)?;
    let is_png = data.starts_with(PNG);
    let file = if is_png {
        data
    } else {
        let (icon, lost) = lone_icon(data, &best)?;
        losses.extend(lost);
        icon
    };
    Ok(Chosen { file, is_png, losses })
}

/// Larger is better, then deeper.
fn rank(entry: &Entry) -> (u64, u32) {
    (u64::from(entry.width) * u64::from(entry.height), entry.bits)
}

fn others(count: usize, best: &Entry) -> String {
    let several = several_pictures(count, "pictures", "largest and deepest");
    format!("{several} ({}x{}, {} bits)", best.width, best.height, best.bits)
}

/// What an entry leads to; none if it leads nowhere. Its own account of size and depth is not to be relied
/// on: one byte holds a side, and a cursor has another number in the place of the depth.
fn entry(file: &mut File, stored: &[u8; ENTRY]) -> Result<Option<Entry>, Reason> {
    let number = |at: usize| u64::from(le32(stored, at));
    let (length, place) = (number(8), number(12));
    file.seek(SeekFrom::Start(place))?;
    let mut start = Vec::with_capacity(START);
    file.take(START as u64).read_to_end(&mut start)?;
    if start.len() < START {
        return Ok(None);
    }
    let (width, height, bits) = if start.starts_with(PNG) {
        let big = |at: usize| u32::from_be_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
        let channels = [1, 0, 3, 1, 2, 0, 4].get(usize::from(start[25])).copied();
        (big(16), big(20), u32::from(start[24]) * channels.unwrap_or(0))
    } else {
        let bits = u32::from(u16::from_le_bytes([start[14], start[15]]));
        // A negative height is that of rows from the top, which icons do not have.
        (le32(&start, 4), le32(&start, 8) / 2, bits)
    };
    Ok(Some(Entry {
        width,
        height,
        bits,
        hot_spot: (le16(stored, 4), le16(stored, 6)),
        place,
        length,
    }))
}

/// A picture that is stored as a BMP as an icon of its own, with what is damaged of it in words. `data` goes
/// on to the end of the file, since some programs write a wrong length.
fn lone_icon(mut data: Vec<u8>, entry: &Entry) -> Result<(Vec<u8>, Vec<String>), Reason> {
    let header = le32(&data, 0) as usize;
    let packing = le32(&data, 16);
    let (width, height) = (entry.width as usize, entry.height as usize);
    if header < BMP_HEADER || !matches!(entry.bits, 1 | 4 | 8 | 16 | 24 | 32) {
        return Err(format!("a picture of {} bits with a header of {header} bytes", entry.bits).into());
    }
    if !matches!(packing, PLAIN | MASKED) {
        return Err(format!("a picture with packing {packing}, which icons do not have").into());
    }
    // Larger ones than any icon, whose sides would overflow below.
    if width == 0 || height == 0 || width > 1 << 15 || height > 1 << 15 {
        return Err(format!("a picture of {width}x{height} pixels").into());
    }
    let colours = match (entry.bits, le32(&data, 32)) {
        (bits @ 1..=8, used) if used == 0 || used > 1 << bits => 1 << bits,
        (1..=8, used) => used as usize,
        _ => 0,
    };
    let masks = if packing == MASKED && header == BMP_HEADER {
        12
    } else {
        0
    };
    let pixels = header + masks + 4 * colours;
    let rows = |bits: usize| (width * bits).div_ceil(32) * 4 * height;
    let end = pixels + rows(entry.bits as usize);
    if data.len() < end {
        return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
    }
    let mut losses = Vec::new();
    let mask = end + rows(1);
    let length = usize::try_from(entry.length).unwrap_or(usize::MAX);
    if length < end {
        losses.push("damaged: its list of pictures states another length".to_owned());
    }
    let profile = profile(&data[..header]);
    if profile.is_some() {
        losses.push("its ICC profile is left out".to_owned());
    }
    // What the picture may take: all that there is if its length is wrong.
    let room = if length < end {
        data.len()
    } else {
        length.min(data.len())
    };
    let room = profile
        .filter(|&profile| profile >= end)
        .map_or(room, |profile| room.min(profile));
    // With alpha in some pixel the mask is for screens of few colours. Without, it is all that there is.
    let keep = if entry.bits == 32 && has_alpha(&mut data[pixels..end]) {
        end
    } else if room >= mask {
        mask
    } else {
        if room != end {
            losses.push("damaged: the mask of what is transparent ends early and is left out".to_owned());
        }
        end
    };
    data.truncate(keep);
    let side = |pixels: usize| if pixels < 256 { pixels as u8 } else { 0 };
    let mut icon = vec![0, 0, 1, 0, 1, 0, side(width), side(height), 0, 0, 1, 0, 32, 0];
    icon.extend((data.len() as u32).to_le_bytes());
    icon.extend(((HEAD + ENTRY) as u32).to_le_bytes());
    icon.extend(data);
    Ok((icon, losses))
}

/// Where the newest of a BMP's headers says that a profile lies, if there is one.
fn profile(header: &[u8]) -> Option<usize> {
    let size = header.get(116..120)?;
    (size != [0; 4]).then(|| le32(header, 112) as usize)
}

/// True if any of the pixels of 32 bits has alpha; else they are made opaque, as Windows shows them.
fn has_alpha(pixels: &mut [u8]) -> bool {
    let pixels = pixels.as_chunks_mut::<4>().0;
    if pixels.iter().any(|pixel| pixel[3] != 0) {
        return true;
    }
    for pixel in pixels {
        pixel[3] = u8::MAX;
    }
    false
}

/// The number of 16 bits at `at` of bytes that are there.
fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The number of 32 bits at `at` of bytes that are there.
fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
