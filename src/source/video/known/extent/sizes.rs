//! How many bytes a container says that it has, against how many there are.
//!
//! FFmpeg's demuxers tell a file that was cut off inside a packet as plain end of file. The containers that
//! state sizes are walked here by their outermost elements, a few bytes each, so that such a file is known
//! for what it is.

use super::Extent;
use super::flv;
use super::nut;
use super::packets;
use crate::media::containers::bytes::{BoxHead, MAX_ELEMENTS, byte, skip};
use crate::media::ffmpeg::ebml::{EBML, Element, SEGMENT, element};
use crate::source::still_end::{StillEnd, still_end};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

const CLUSTER: u32 = 0x1F43_B675;

/// What holds the packets of a cluster: BlockGroup and SimpleBlock.
const BLOCKS: [u32; 2] = [0xA0, 0xA3];

/// What a Segment holds: SeekHead, Info, Tracks, Cluster, Cues, Chapters, Tags, Attachments, Void, CRC-32.
const SEGMENT_CHILDREN: [u32; 10] = [
    0x114D_9B74,
    0x1549_A966,
    0x1654_AE6B,
    0x1F43_B675,
    0x1C53_BB6B,
    0x1043_A770,
    0x1254_C367,
    0x1941_A469,
    0xEC,
    0xBF,
];

/// What a cluster holds: Timestamp, SilentTracks, Position, PrevSize, BlockGroup, SimpleBlock,
/// EncryptedBlock, Void, CRC-32.
const CLUSTER_CHILDREN: [u32; 9] = [0xE7, 0x5854, 0xA7, 0xAB, 0xA0, 0xA3, 0xAF, 0xEC, 0xBF];

/// How a page of an Ogg file begins.
const PAGE: &[u8; 4] = b"OggS";

/// Outermost boxes of MP4 and QuickTime files. What bears another name may be rubbish behind a whole file.
const BOXES: [&[u8; 4]; 13] = [
    b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"mfra", b"sidx", b"free", b"skip", b"wide", b"uuid",
    b"meta", b"pnot",
];

/// How Windows Media files begin, and how their object of file properties does.
pub(super) const ASF: [u8; 16] = [
    0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11, 0xA6, 0xD9, 0x00, 0xAA, 0x00, 0x62, 0xCE, 0x6C,
];
pub(super) const ASF_PROPERTIES: [u8; 16] = [
    0xA1, 0xDC, 0xAB, 0x8C, 0x47, 0xA9, 0xCF, 0x11, 0x8E, 0xE4, 0x00, 0xC0, 0x0C, 0x20, 0x53, 0x65,
];

/// How the names of all elements of MXF begin.
const MXF: [u8; 4] = [0x06, 0x0E, 0x2B, 0x34];

/// Bytes in which that object is looked for; it comes first in all files that FFmpeg writes.
const ASF_SEARCHED: u64 = 4096;

/// What the file at `path` says of its end. `demuxer` reads pictures of `codec` from it, by FFmpeg's names.
pub(in crate::source::video) fn extent_of(path: &Path, demuxer: &str, codec: &str) -> Extent {
    let is_bare = |name: &str| name.ends_with("_pipe") || matches!(name, "image2" | "alias_pix");
    let ask = || {
        // Opening a pipe once more could wait for ever.
        let mut file = path.is_file().then(|| File::open(path).ok())??;
        let length = file.metadata().ok()?.len();
        if demuxer.split(',').any(is_bare)
            && let Some(end) = still_end(codec, &mut BufReader::new(&file)).ok()?
        {
            return Some((end, length));
        }
        file.rewind().ok()?;
        if let Some(end) = amv(&mut file, length).ok()? {
            return Some((end, length));
        }
        file.rewind().ok()?;
        if is_cut_gif(&mut BufReader::new(&file)) {
            return Some((StillEnd::Beyond, length));
        }
        file.rewind().ok()?;
        Some((StillEnd::At(stated_end(&mut file, length).ok()??), length))
    };
    if let Some(extent) = of_packets(path, demuxer) {
        return extent;
    }
    match ask() {
        Some((StillEnd::At(end), length)) if end > length => Extent::Missing(end - length),
        Some((StillEnd::At(_), _)) => Extent::Whole,
        Some((StillEnd::Beyond, _)) => Extent::Cut,
        None if is_broken_gif(path) => Extent::Broken,
        None => Extent::Unknown,
    }
}

/// The same of a stream without a container, and of one that is a list of tags; `None` for all others.
fn of_packets(path: &Path, demuxer: &str) -> Option<Extent> {
    let open = || path.is_file().then(|| File::open(path).ok())?;
    let length = |file: &File| Some(file.metadata().ok()?.len());
    match demuxer {
        "mpegts" => open().and_then(|mut file| {
            let length = length(&file)?;
            packets::transport(&mut file, length).ok()
        }),
        "mpeg" => open().and_then(|mut file| {
            let length = length(&file)?;
            packets::program(&mut file, length).ok()
        }),
        "flv" | "live_flv" => open().and_then(|mut file| {
            let length = length(&file)?;
            flv::extent(&mut file, length).ok()
        }),
        // FFmpeg's names for the forms without and with sizes in front.
        "obu" | "av1" => open().and_then(|file| {
            let length = length(&file)?;
            packets::av1(&mut BufReader::new(file), length, demuxer == "av1").ok()
        }),
        _ => None,
    }
}

/// Where the container that `file` begins with says it ends: past `length` if it was cut off, `None` if it
/// says nothing.
fn stated_end(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<u64>> {
    let mut head = [0; 12];
    file.read_exact(&mut head)?;
    let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    if first == EBML {
        matroska(file, length)
    } else if &head[..4] == b"RIFF" {
        walk(file, length, riff_chunk)
    } else if first == u32::from_be_bytes(*b"GIF8") {
        gif(&mut BufReader::new(file), length)
    } else if &head[..4] == PAGE {
        ogg(file, length)
    } else if &head[..8] == b"\x89PNG\r\n\x1a\n" {
        Ok(ends_with(file, length, b"IEND", 8))
    } else if head == ASF[..12] {
        asf(file)
    } else if head == nut::NAME[..12] {
        nut::end(&mut BufReader::new(file), length)
    } else if head[..4] == MXF {
        walk(file, length, mxf_element)
    } else if BOXES.iter().any(|name| head[4..8] == name[..]) {
        walk(file, length, iso_box)
    } else {
        Ok(None)
    }
}

/// Goes from one outermost element to the next; `step` gives an element's end, or `None` where the walk must
/// stop.
fn walk<R: Read + Seek>(
    file: &mut R,
    length: u64,
    step: fn(&mut R, u64) -> io::Result<Option<u64>>,
) -> io::Result<Option<u64>> {
    let mut at = 0;
    for _ in 0..MAX_ELEMENTS {
        if at >= length {
            return Ok(Some(at));
        }
        file.seek(SeekFrom::Start(at))?;
        match step(file, at)? {
            Some(end) if end > at => at = end,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Where the element of MXF at `at` ends: a name of 16 bytes, a length in one or in as many as it says, and
/// the value.
fn mxf_element(file: &mut (impl Read + Seek), at: u64) -> io::Result<Option<u64>> {
    let mut head = [0; 17];
    file.read_exact(&mut head)?;
    let first = head[16];
    let bytes = if first < 0x80 { 0 } else { first & 0x7F };
    if head[..4] != MXF || bytes > 8 {
        return Ok(None);
    }
    let mut length = if bytes == 0 { u64::from(first) } else { 0 };
    for _ in 0..bytes {
        length = length << 8 | u64::from(byte(file)?);
    }
    Ok(at
        .checked_add(17 + u64::from(bytes))
        .and_then(|content| content.checked_add(length)))
}

/// The file's length if its last `tail` bytes begin with `mark`, which is how it ends; one more if they
/// don't.
fn ends_with(file: &mut (impl Read + Seek), length: u64, mark: &[u8], tail: u64) -> Option<u64> {
    let mut found = vec![0; mark.len()];
    file.seek(SeekFrom::Start(length.checked_sub(tail)?)).ok()?;
    file.read_exact(&mut found).ok()?;
    Some(if found == mark { length } else { length + 1 })
}

/// Where an AMV file ends, the kind of AVI of small players, which states no sizes; `None` for other files.
fn amv(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<StillEnd>> {
    const MARK: &[u8; 8] = b"AMV_END_";
    let mut head = [0; 12];
    file.read_exact(&mut head)?;
    if &head[..4] != b"RIFF" || &head[8..] != b"AMV " {
        return Ok(None);
    }
    Ok(match ends_with(file, length, MARK, MARK.len() as u64) {
        Some(end) if end == length => Some(StillEnd::At(end)),
        _ => Some(StillEnd::Beyond),
    })
}

/// True for a GIF whose blocks break off before its trailer and the end of the file.
fn is_broken_gif(path: &Path) -> bool {
    let ask = || -> io::Result<bool> {
        let mut head = [0; 4];
        let mut file = BufReader::new(File::open(path)?);
        file.read_exact(&mut head)?;
        let is_broken = |e: io::Error| e.kind() == io::ErrorKind::InvalidData;
        Ok(&head == b"GIF8" && walk_gif(&mut file).is_err_and(is_broken))
    };
    path.is_file() && ask().unwrap_or(false)
}

/// True for a GIF that ends within one of its blocks.
fn is_cut_gif(file: &mut (impl BufRead + Seek)) -> bool {
    let mut head = [0; 4];
    let mut is_between = false;
    let is_gif = file.read_exact(&mut head).is_ok() && &head == b"GIF8";
    let is_cut = |e: io::Error| e.kind() == io::ErrorKind::UnexpectedEof;
    is_gif && gif_blocks(file, &mut is_between).is_err_and(is_cut) && !is_between
}

/// Where a GIF ends: behind its trailer, or past the file's end if that is missing.
fn gif(file: &mut (impl BufRead + Seek), length: u64) -> io::Result<Option<u64>> {
    match walk_gif(file) {
        Ok(()) => Ok(Some(length)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(length + 1)),
        Err(_) => Ok(None),
    }
}

/// Goes through the blocks of a GIF up to its trailer.
pub(super) fn walk_gif(file: &mut (impl BufRead + Seek)) -> io::Result<()> {
    gif_blocks(file, &mut false)
}

/// The same; an early end was met `between` two blocks or within one.
fn gif_blocks(file: &mut (impl BufRead + Seek), between: &mut bool) -> io::Result<()> {
    let table = |flags: u8| {
        if flags & 0x80 == 0 {
            0
        } else {
            3 << ((flags & 7) + 1)
        }
    };
    let mut head = [0; 13];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut head)?;
    skip(file, table(head[10]))?;
    loop {
        let mut kind = [0];
        // What was passed over may lie past the end, too.
        let reached = file.stream_position()?;
        if file.read(&mut kind)? == 0 {
            *between = file.seek(SeekFrom::End(0))? == reached;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let [kind] = kind;
        match kind {
            // An image: its place, perhaps a table of colours, the size of codes.
            0x2C => {
                let mut image = [0; 9];
                file.read_exact(&mut image)?;
                skip(file, table(image[8]) + 1)?;
            }
            // An extension and its label.
            0x21 => skip(file, 1)?,
            0x3B => return Ok(()),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        // Blocks of up to 255 bytes, up to an empty one.
        loop {
            match byte(file)? {
                0 => break,
                size => skip(file, u64::from(size))?,
            }
        }
    }
}

/// Where an Ogg file ends: its last page says that it is its stream's last one, and is whole.
fn ogg(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<u64>> {
    // A page has at most 255 pieces of 255 bytes behind its head.
    const LARGEST: u64 = 27 + 255 + 255 * 255;
    let start = length.saturating_sub(2 * LARGEST);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(2 * LARGEST).read_to_end(&mut tail)?;
    let is_page = |at: &usize| tail[*at..].starts_with(PAGE) && tail.get(at + 4) == Some(&0);
    let Some(at) = (0..tail.len()).rev().find(is_page) else {
        return Ok(None);
    };
    let page = &tail[at..];
    let pieces = page
        .get(26)
        .and_then(|&count| page.get(27..27 + usize::from(count)));
    let Some(pieces) = pieces else {
        return Ok(Some(length + 1));
    };
    let size = 27 + pieces.len() + pieces.iter().map(|&size| usize::from(size)).sum::<usize>();
    let is_last = page[5] & 4 != 0;
    let missing = size.saturating_sub(page.len()) as u64;
    Ok(Some(if is_last {
        length + missing
    } else {
        length + missing.max(1)
    }))
}

/// Where a Windows Media file says that it ends: the field of its File Properties object.
pub(super) fn asf(file: &mut (impl Read + Seek)) -> io::Result<Option<u64>> {
    let properties = asf_properties(file)?;
    // The object's name, its size, and the file's name, 16, 8 and 16 bytes, come before.
    let size = properties.and_then(|object| object.get(40..48)?.try_into().ok());
    Ok(size.map(u64::from_le_bytes).filter(|&size| size > 0))
}

/// The File Properties object of a Windows Media file, and what comes behind it.
pub(super) fn asf_properties(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(ASF_SEARCHED).read_to_end(&mut head)?;
    let found = head
        .windows(ASF_PROPERTIES.len())
        .position(|bytes| bytes == ASF_PROPERTIES);
    Ok(found.map(|at| head.split_off(at)))
}

fn iso_box(file: &mut (impl Read + Seek), at: u64) -> io::Result<Option<u64>> {
    let head = BoxHead::read(file)?;
    let size = head.size.filter(|_| BOXES.contains(&&head.name));
    Ok(size.and_then(|size| at.checked_add(size)))
}

fn riff_chunk(file: &mut (impl Read + Seek), at: u64) -> io::Result<Option<u64>> {
    let mut head = [0; 8];
    file.read_exact(&mut head)?;
    let size = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    // A writer that was stopped, or that could not go back, leaves one of these.
    if &head[..4] != b"RIFF" || size == 0 || size == u64::from(u32::MAX) {
        return Ok(None);
    }
    Ok(at.checked_add(8 + size))
}

fn matroska(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<u64>> {
    file.seek(SeekFrom::Start(0))?;
    let header = element(file, 0)?;
    let Some(after) = header.size.and_then(|size| header.content.checked_add(size)) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(after))?;
    let segment = element(file, after)?;
    if segment.id != SEGMENT {
        return Ok(None);
    }
    if let Some(size) = segment.size {
        return Ok(segment.content.checked_add(size));
    }
    // Written to a pipe: only the elements inside have sizes, or not even they.
    let mut at = segment.content;
    for _ in 0..MAX_ELEMENTS {
        if at >= length {
            return Ok(Some(at));
        }
        file.seek(SeekFrom::Start(at))?;
        let child = element(file, at)?;
        let end = child.size.and_then(|size| child.content.checked_add(size));
        match end {
            Some(end) if SEGMENT_CHILDREN.contains(&child.id) => at = end,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// What a Matroska file has after the packets that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source::video) enum Rest {
    /// Nothing that its sizes show.
    Nothing,
    /// Blocks of its last cluster.
    Blocks,
    /// Bytes that are no element.
    NoElement,
}

/// What the Matroska file at `path` has from byte `reached` on, where the last packet ended.
pub(in crate::source::video) fn classify_rest(path: &Path, reached: u64) -> Rest {
    let ask = || -> io::Result<Rest> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        // An element's head is all that is read of it.
        classify_rest_of(&mut BufReader::with_capacity(16, file), length, reached)
    };
    // Opening a pipe once more could wait for ever.
    let asked = path.is_file().then(ask);
    asked.and_then(Result::ok).unwrap_or(Rest::Nothing)
}

fn classify_rest_of(file: &mut (impl Read + Seek), length: u64, reached: u64) -> io::Result<Rest> {
    let mut at = |at: u64| -> io::Result<Element> {
        file.seek(SeekFrom::Start(at))?;
        element(file, at)
    };
    let end_of = |element: &Element| element.size.and_then(|size| element.content.checked_add(size));
    let Some(segment) = end_of(&at(0)?) else {
        return Ok(Rest::Nothing);
    };
    let segment = at(segment)?;
    if segment.id != SEGMENT {
        return Ok(Rest::Nothing);
    }
    let (end, is_sized) = match end_of(&segment) {
        Some(end) => (end, true),
        None => (length, false),
    };
    let broken_at = |place: u64| match place >= reached {
        true => Rest::NoElement,
        // FFmpeg found more behind it.
        false => Rest::Nothing,
    };
    // The last cluster's content. One without a size goes on to the next element that is none of its own.
    let (mut last, mut is_open) = (None, false);
    let mut place = segment.content;
    for _ in 0..MAX_ELEMENTS {
        if place >= end {
            break;
        }
        let child = match at(place) {
            Ok(child) if SEGMENT_CHILDREN.contains(&child.id) => child,
            Ok(child) if is_open && CLUSTER_CHILDREN.contains(&child.id) => child,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Rest::Nothing),
            _ => return Ok(broken_at(place)),
        };
        let next = end_of(&child);
        match next {
            // The file was cut off.
            Some(next) if next > end && !is_sized => return Ok(Rest::Nothing),
            Some(next) if next > end => return Ok(broken_at(place)),
            Some(next) => place = next,
            None if child.id == CLUSTER => place = child.content,
            None => return Ok(Rest::Nothing),
        }
        if child.id == CLUSTER {
            is_open = next.is_none();
            last = Some((child.content, next.unwrap_or(end)));
        }
    }
    let Some((mut place, end)) = last else {
        return Ok(Rest::Nothing);
    };
    for _ in 0..MAX_ELEMENTS {
        if place >= end {
            break;
        }
        let child = match at(place) {
            Ok(child) if CLUSTER_CHILDREN.contains(&child.id) => child,
            // A cluster without a size is over.
            Ok(child) if is_open && SEGMENT_CHILDREN.contains(&child.id) => break,
            _ => return Ok(broken_at(place)),
        };
        match end_of(&child).filter(|&next| next <= end) {
            Some(_) if BLOCKS.contains(&child.id) && place >= reached => return Ok(Rest::Blocks),
            Some(next) => place = next,
            None => return Ok(broken_at(place)),
        }
    }
    Ok(Rest::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn end(bytes: &[u8]) -> Option<u64> {
        stated_end(&mut Cursor::new(bytes), bytes.len() as u64).unwrap_or(None)
    }

    /// The whole file states its own length; every shorter one that still shows the last element's head, too.
    fn check(whole: &[u8], last_head: usize) {
        assert_eq!(end(whole), Some(whole.len() as u64));
        for cut in last_head..whole.len() {
            assert_eq!(end(&whole[..cut]), Some(whole.len() as u64), "cut at {cut}");
        }
        for cut in 0..last_head {
            // What is not known is not made up.
            assert!(
                end(&whole[..cut]).is_none_or(|end| end <= whole.len() as u64),
                "cut at {cut}"
            );
        }
    }

    fn mp4() -> Vec<u8> {
        let mut file = Vec::new();
        file.extend([0, 0, 0, 16]);
        file.extend(b"ftypisomisom");
        file.extend([0, 0, 0, 1]);
        file.extend(b"mdat");
        file.extend(40u64.to_be_bytes());
        file.extend([7; 24]);
        file
    }

    #[test]
    fn boxes() {
        check(&mp4(), 32);
        // Rubbish behind a whole file, and a last box without a size, say nothing.
        for tail in [&b"\x00\x01\x00\x00junkjunk"[..], b"\x00\x00\x00\x00mdatmore"] {
            let mut file = mp4();
            file.extend(tail);
            assert_eq!(end(&file), None);
        }
    }

    #[test]
    fn riff() {
        let mut file = b"RIFF".to_vec();
        file.extend(16u32.to_le_bytes());
        file.extend(b"AVI LIST\x04\x00\x00\x00abcd");
        check(&file, 12);
        file[4..8].fill(0);
        assert_eq!(end(&file), None);
    }

    #[test]
    fn segments_with_and_without_a_size() {
        let header = [0x1A, 0x45, 0xDF, 0xA3, 0x82, 1, 2];
        let cluster = [0x1F, 0x43, 0xB6, 0x75, 0x40, 0x04, 1, 2, 3, 4];
        let mut sized = header.to_vec();
        sized.extend([0x18, 0x53, 0x80, 0x67, 0x01, 0, 0, 0, 0, 0, 0, 10]);
        sized.extend(cluster);
        check(&sized, 19);
        let mut live = header.to_vec();
        live.extend([0x18, 0x53, 0x80, 0x67, 0xFF]);
        live.extend(cluster);
        live.extend(cluster);
        check(&live, live.len() - 4);
        let mut unknown = live.clone();
        unknown.truncate(12);
        unknown.extend([0x1F, 0x43, 0xB6, 0x75, 0xFF, 1, 2, 3]);
        assert_eq!(end(&unknown), None);
    }

    #[test]
    fn what_is_no_element_of_matroska_is_found() {
        let block = |content: &[u8]| [&[0xA3, 0x80 | content.len() as u8][..], content].concat();
        // Sizes of the segment and of the clusters are stated or not.
        for (segment_size, cluster_size) in [(true, true), (false, true), (false, false)] {
            let size = |is_stated: bool, bytes: usize| if is_stated { 0x80 | bytes as u8 } else { 0xFF };
            let blocks = [&[0xE7, 0x81, 0][..], &block(&[7; 20]), &block(&[7; 20])].concat();
            let head = [0x1F, 0x43, 0xB6, 0x75, size(cluster_size, blocks.len())];
            let cluster = [&head[..], &blocks].concat();
            // Void stands for what comes behind the clusters.
            let content = [&cluster[..], &cluster, &[0xEC, 0x83, 1, 2, 3]].concat();
            let mut file = vec![0x1A, 0x45, 0xDF, 0xA3, 0x82, 1, 2, 0x18, 0x53, 0x80, 0x67];
            // In two bytes, since it may be longer than 126.
            file.extend(match segment_size {
                true => [0x40, content.len() as u8],
                false => [0x7F, 0xFF],
            });
            file.extend(&content);
            let end_of_blocks = file.len() - 5;
            let ask = |bytes: &[u8], reached: usize| {
                classify_rest_of(&mut Cursor::new(bytes), bytes.len() as u64, reached as u64).ok()
            };
            let what = (segment_size, cluster_size);
            assert_eq!(ask(&file, end_of_blocks), Some(Rest::Nothing), "{what:?}");
            assert_eq!(ask(&file, end_of_blocks - 22), Some(Rest::Blocks), "{what:?}");
            // From within the last block on, from within the one before, and behind the cluster alone.
            for zeros in [5 + 4, 5 + 22 + 4, 5] {
                let mut zeroed = file.clone();
                let from = file.len() - zeros;
                zeroed[from..].fill(0);
                assert_eq!(ask(&zeroed, from), Some(Rest::NoElement), "{what:?}, {zeros}");
                // A reader that found something behind them has passed over them.
                assert_eq!(
                    ask(&zeroed, file.len() + 1),
                    Some(Rest::Nothing),
                    "{what:?}, {zeros}"
                );
            }
            // Another element's name in place of a block's.
            let mut renamed = file.clone();
            renamed[end_of_blocks - 22] = 0x86;
            assert_eq!(
                ask(&renamed, end_of_blocks - 22),
                Some(Rest::NoElement),
                "{what:?}"
            );
        }
    }

    #[test]
    fn pictures_that_move_have_an_end() {
        let (table, codes) = (&[9; 6], b"\x2C\0\0\0\0\x01\0\x01\0\0\x02\x02\x3B\x01\0");
        let gif = [
            b"GIF89a\x01\0\x01\0\x80\0\0",
            &table[..],
            codes,
            b"\x21\xFE\x01x\0\x3B",
        ]
        .concat();
        for whole in [&gif[..], b"\x89PNG\r\n\x1a\n....IEND\xae\x42\x60\x82"] {
            assert_eq!(end(whole), Some(whole.len() as u64));
            let cut = &whole[..whole.len() - 1];
            assert_eq!(end(cut), Some(whole.len() as u64));
        }
        let is_cut = |file: &[u8]| is_cut_gif(&mut Cursor::new(file));
        assert!(!is_cut(&gif) && !is_cut(&gif[..gif.len() - 1]));
        assert!(is_cut(&gif[..gif.len() - 2]) && is_cut(&gif[..22]) && !is_cut(b"GIF") && !is_cut(b""));
        // The byte that ends a GIF may be anywhere in it.
        let at = gif.iter().position(|&b| b == 0x3B).unwrap_or(0);
        assert_eq!(end(&gif[..=at]), Some(at as u64 + 2));
        let mut media = ASF.to_vec();
        media.extend([0; 14]);
        media.extend(ASF_PROPERTIES);
        media.extend([0; 24]);
        media.extend(1000_u64.to_le_bytes());
        assert_eq!(end(&media), Some(1000));
    }

    #[test]
    fn ogg_ends_with_a_page_that_says_so() {
        let page = |flags: u8| {
            let mut page = b"OggS\0".to_vec();
            page.push(flags);
            page.extend([0; 20]);
            page.extend([2, 3, 4, 1, 2, 3, 4, 5, 6, 7]);
            page
        };
        let file = [page(2), page(0), page(4)].concat();
        assert_eq!(end(&file), Some(file.len() as u64));
        for cut in 75..file.len() {
            assert!(
                end(&file[..cut]).is_some_and(|end| end > cut as u64),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn what_is_no_container_says_nothing() {
        assert_eq!(end(b""), None);
        assert_eq!(end(&[0x47; 400]), None);
        assert_eq!(extent_of(Path::new("/"), "qoi_pipe", "qoi"), Extent::Unknown);
        assert_eq!(extent_of(Path::new("no such file"), "", ""), Extent::Unknown);
    }
}
