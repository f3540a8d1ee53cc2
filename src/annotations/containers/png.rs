//! PNG: everything is a chunk of its own, and all of it may stand between the header and the pixels.
//!
//! ```text
//!  signature | IHDR | cICP gAMA cHRM sRGB sBIT pHYs eXIf tEXt zTXt iTXt | iCCP PLTE tRNS .. IDAT .. IEND
//!                     +---------------- put here ---------------------+
//!  a chunk: length, 32 bits | name, 4 bytes | data | CRC of name and data
//! ```
//!
//! XMP is an iTXt of a certain name. IPTC has no chunk; the world writes it as ImageMagick does, in
//! hexadecimal digits as a text "Raw profile type iptc". Exif and XMP in such texts, from before PNG had a
//! place for them, are read as what they are.

use std::io::{self, BufRead, Read, Seek};

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};

use super::jpeg;
use crate::annotations::bytes::{array, be32, latin1, part, pass, take_array, take_exactly};
use crate::annotations::excerpt::Excerpt;
use crate::annotations::exif::without_prefix;
use crate::annotations::word::all_lost;
use crate::annotations::{Annotations, Density, DensityUnit, exif, instant_frames, once, photoshop, word};
use crate::messages::metadata_limit::METADATA_LIMIT;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const XMP: &str = "XML:com.adobe.xmp";
const RAW: &str = "Raw profile type ";

/// The chunks that are read.
const KNOWN: [&[u8; 4]; 13] = [
    b"gAMA", b"cHRM", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"sBIT", b"pHYs", b"eXIf", b"tEXt", b"zTXt",
    b"iTXt", b"tIME",
];

/// Chunks that say how the pixels are stored, which their decoder knows; those of animations and of Apple's
/// decoders among them.
const STORAGE: [&[u8; 4]; 9] = [
    b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"acTL", b"fcTL", b"fdAT", b"iDOT", b"CgBI",
];

/// Chunks that only advise a viewer: a background, and colours for displays of few.
const HINTS: [(&[u8; 4], &str); 3] = [
    (b"bKGD", "background (bKGD)"),
    (b"hIST", "histogram (hIST)"),
    (b"sPLT", "palette (sPLT)"),
];

/// What other chunks say.
const NAMES: [(&[u8; 4], &str); 6] = [
    (b"oFFs", "place on the page"),
    (b"sCAL", "scale"),
    (b"pCAL", "calibration of samples"),
    (b"sTER", "stereo mark"),
    (b"caBX", "content credentials"),
    (b"dSIG", "signature"),
];

/// Letters of the longest name of a text.
const MOST_LETTERS: usize = 79;

/// Texts from this length on are compressed.
const LONG: usize = 1024;

/// A chunk: its name, its data, and all of it.
struct Chunk<'a> {
    name: [u8; 4],
    data: &'a [u8],
    whole: &'a [u8],
}

impl Chunk<'_> {
    fn is_intact(&self) -> bool {
        let stated = self
            .whole
            .len()
            .checked_sub(4)
            .and_then(|at| be32(self.whole, at));
        stated == Some(crc(self.name, self.data))
    }
}

fn crc(name: [u8; 4], data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(&name);
    crc.update(data);
    crc.sum()
}

/// The chunks of a file, as far as they are whole.
fn chunks(file: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    chunks_in(file.strip_prefix(SIGNATURE).unwrap_or_default())
}

/// The chunks in a row, as far as they are whole.
fn chunks_in(mut rest: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    std::iter::from_fn(move || {
        let len = usize::try_from(be32(rest, 0)?).ok()?;
        let name = array(rest, 4)?;
        let data = part(rest, 8, len)?;
        let (whole, after) = rest.split_at_checked(len.checked_add(12)?)?;
        rest = after;
        Some(Chunk { name, data, whole })
    })
}

/// The chunks of a file of `len` bytes that say something, as far as they are whole.
pub(in crate::annotations) fn excerpt(input: &mut (impl BufRead + Seek), len: u64) -> io::Result<Excerpt> {
    let mut found = Excerpt::new(SIGNATURE);
    if take_array(input)?.is_none_or(|signature: [u8; 8]| signature != *SIGNATURE) {
        return Ok(found);
    }
    let mut at = SIGNATURE.len() as u64;
    let mut animation = Animation::default();
    let mut is_shallow_gray = false;
    while let Some(head) = take_array::<8>(input)? {
        let [l0, l1, l2, l3, name @ ..] = head;
        // The checksum follows the data.
        let rest = u64::from(u32::from_be_bytes([l0, l1, l2, l3])).saturating_add(4);
        at = at.saturating_add(8).saturating_add(rest);
        if &name == b"IEND" || at > len || !name.iter().all(u8::is_ascii_alphabetic) {
            break;
        }
        let is_profile = &name == b"iCCP" && found.icc_profile.is_none();
        // ImageMagick's chunk of the page: width, height and a byte for the unit, all 0 without a page.
        if &name == b"vpAg" && rest == 13 {
            let Some([page @ .., _, _, _, _]) = take_array::<13>(input)? else {
                break;
            };
            if page != [0; 9] {
                found.leave_out("size of the page (vpAg)".to_owned());
            }
            continue;
        }
        if let Some((_, hint)) = HINTS.iter().find(|(hint, _)| **hint == name) {
            once(&mut found.hints, hint);
        } else if !(KNOWN.contains(&&name) || STORAGE.contains(&&name) || &name == b"iCCP") {
            let chunk = latin1(&name);
            found.leave_out(match NAMES.iter().find(|(known, _)| **known == name) {
                Some((_, words)) => format!("{words} ({chunk})"),
                None => format!("chunk {chunk}"),
            });
        }
        if &name == b"acTL" && rest == 12 {
            let Some([f0, f1, f2, f3, plays @ .., _, _, _, _]) = take_array::<12>(input)? else {
                break;
            };
            found.plays = Some(u32::from_be_bytes(plays));
            animation.stated = Some(u32::from_be_bytes([f0, f1, f2, f3]));
            continue;
        }
        if &name == b"fcTL" && rest == Animation::CONTROL as u64 {
            let Some(control) = take_array(input)? else {
                break;
            };
            animation.take_control(&control);
            continue;
        }
        if &name == b"IHDR" && rest == 17 {
            let Some(header) = take_array::<17>(input)? else {
                break;
            };
            let [w0, w1, w2, w3, h0, h1, h2, h3, depth, colour, ..] = header;
            is_shallow_gray = depth < 8 && colour == 0;
            animation.is_opaque = matches!(colour, 0 | 2);
            animation.cleared = Some(Area {
                width: u32::from_be_bytes([w0, w1, w2, w3]),
                height: u32::from_be_bytes([h0, h1, h2, h3]),
                ..Area::default()
            });
            continue;
        }
        animation.is_opaque &= &name != b"tRNS";
        if &name == b"tRNS" && rest == 6 {
            let Some([k0, k1, ..]) = take_array::<6>(input)? else {
                break;
            };
            // Black is 0 in all depths.
            found.has_shallow_key |= is_shallow_gray && [k0, k1] != [0, 0];
            continue;
        }
        animation.is_begun_by_picture |= &name == b"IDAT" && animation.frames == 0;
        if !(is_profile || KNOWN.contains(&&name)) || !found.has_room(rest, word_for(name)) {
            pass(input, rest)?;
            continue;
        }
        let Some(data) = take_exactly(input, rest)? else {
            break;
        };
        if is_profile {
            if take_profile(&mut found, &[&head, &data[..]].concat()).is_none() {
                once(&mut found.damaged, word::PROFILE);
            }
        } else {
            found.bytes.extend_from_slice(&head);
            found.bytes.extend_from_slice(&data);
        }
    }
    animation.put_into(&mut found);
    Ok(found)
}

/// What the chunks of an animation say.
#[derive(Default)]
struct Animation {
    /// How many frames are announced.
    stated: Option<u32>,
    frames: u32,
    /// Frames that state a time of 0.
    instant: u32,
    /// The picture of a still comes before the first frame.
    is_begun_by_picture: bool,
    /// Pixels have no alpha, so that what is cleared becomes black.
    is_opaque: bool,
    /// What is transparent before the next frame is drawn.
    cleared: Option<Area>,
    /// A frame leaves some of that as it is.
    shows_cleared: bool,
}

/// A rectangle of the picture.
#[derive(Clone, Copy, Default)]
struct Area {
    width: u32,
    height: u32,
    left: u32,
    top: u32,
}

impl Area {
    /// True if all of `other` lies in it.
    fn covers(self, other: Area) -> bool {
        let end = |at: u32, length: u32| u64::from(at) + u64::from(length);
        self.left <= other.left
            && self.top <= other.top
            && end(self.left, self.width) >= end(other.left, other.width)
            && end(self.top, self.height) >= end(other.top, other.height)
    }
}

impl Animation {
    /// Bytes of what controls a frame, with its checksum.
    const CONTROL: usize = 30;

    fn take_control(&mut self, control: &[u8; Animation::CONTROL]) {
        /// What becomes of the frame's area before the next one, unless it stays: it is cleared, or becomes
        /// what it was.
        const CLEARED: u8 = 1;
        const RESTORED: u8 = 2;
        // Number, size, place; then the time as a fraction of a second, and what follows.
        let word = |at| be32(control, at).unwrap_or_default();
        let area = Area {
            width: word(4),
            height: word(8),
            left: word(12),
            top: word(16),
        };
        self.shows_cleared |= self.cleared.is_some_and(|cleared| !area.covers(cleared));
        let is_cleared = match control[24] {
            CLEARED => true,
            RESTORED => self.frames == 0,
            _ => false,
        };
        self.cleared = is_cleared.then_some(area);
        self.frames = self.frames.saturating_add(1);
        if part(control, 20, 2) == Some(&[0, 0]) {
            self.instant = self.instant.saturating_add(1);
        }
    }

    fn put_into(self, found: &mut Excerpt) {
        let Some(stated) = self.stated else {
            return;
        };
        if stated != self.frames {
            found.frames = Some((stated, self.frames));
        }
        found.has_default_picture = self.is_begun_by_picture && self.frames > 0;
        if self.is_opaque && self.shows_cleared && self.frames > 1 {
            found.leave_out("transparency of what frames clear, which becomes black".to_owned());
        }
        let instant = instant_frames(self.instant.into(), self.frames.into(), "0", "1/15 s");
        found.changes.extend(instant.filter(|_| self.frames > 1));
    }
}

/// The word for what a chunk says, should there be no room for it.
fn word_for(name: [u8; 4]) -> &'static str {
    match &name {
        b"iCCP" => word::PROFILE,
        b"eXIf" => word::EXIF,
        b"tEXt" | b"zTXt" | b"iTXt" => word::TEXT,
        b"sBIT" => word::SIGNIFICANT_BITS,
        b"pHYs" => word::RESOLUTION,
        b"gAMA" => word::GAMMA,
        b"cHRM" => word::CHROMATICITIES,
        b"mDCV" | b"cLLI" => word::HDR,
        b"sRGB" => word::SRGB,
        b"tIME" => word::TIME,
        _ => word::CICP,
    }
}

/// Unpacks the profile of a whole chunk; `None` if it is damaged.
fn take_profile(found: &mut Excerpt, whole: &[u8]) -> Option<()> {
    let chunk = chunks(&[SIGNATURE, whole].concat())
        .next()
        .filter(Chunk::is_intact)
        .map(|c| c.data.to_vec())?;
    let (_, rest) = split_zero(&chunk)?;
    let (&method, deflated) = rest.split_first()?;
    match inflate(deflated, METADATA_LIMIT) {
        Inflated::Whole(profile) if method == 0 => found.icc_profile = Some(profile),
        Inflated::TooLarge => once(&mut found.too_large, word::PROFILE),
        _ => return None,
    }
    Some(())
}

pub(in crate::annotations) fn read(file: &[u8]) -> Annotations {
    let mut found = Annotations::default();
    // What compressed texts may come to, all together.
    let mut budget = METADATA_LIMIT;
    for chunk in chunks(file) {
        let data = chunk.data;
        match &chunk.name {
            b"IEND" => break,
            name if !KNOWN.contains(&name) => {}
            _ if !chunk.is_intact() => once(&mut found.damaged, word_for(chunk.name)),
            b"eXIf" => found.take_exif(data),
            b"tEXt" | b"zTXt" | b"iTXt" => {
                if let Err(reason) = take_text(&mut found, &chunk, &mut budget) {
                    reason.note(&mut found, chunk.name);
                }
            }
            _ if take_numbers(&mut found, &chunk).is_none() => {
                once(&mut found.damaged, word_for(chunk.name));
            }
            _ => {}
        }
    }
    found
}

/// Takes what a chunk of numbers says; `None` if it says what none may.
fn take_numbers(found: &mut Annotations, chunk: &Chunk<'_>) -> Option<()> {
    let data = chunk.data;
    match &chunk.name {
        b"gAMA" => found.gamma = Some(be32(data, 0).filter(|&gamma| gamma > 0)?),
        b"cHRM" => found.chromaticities = Some(numbers(data)?),
        b"sRGB" => found.srgb_intent = Some(data.first().copied().filter(|&intent| intent <= 3)?),
        b"cICP" => found.cicp = Some(code_points(data)?),
        b"mDCV" => found.mastering_display = Some(array(data, 0)?),
        b"cLLI" => found.content_light = Some(array(data, 0)?),
        b"sBIT" => {
            let is_fit = matches!(data.len(), 1..=4) && data.iter().all(|bits| (1..=16).contains(bits));
            found.significant_bits = Some(is_fit.then(|| data.to_vec())?);
        }
        b"tIME" => found.time = Some(time(data)?),
        // A length of 0 says nothing.
        b"pHYs" => found.density = density(array(data, 0)?).or(found.density),
        _ => {}
    }
    Some(())
}

/// Year, month, day, hour, minute and second, of which a minute may have 61.
fn time(data: &[u8]) -> Option<[u8; 7]> {
    let time: [u8; 7] = data.try_into().ok()?;
    matches!(time, [_, _, 1..=12, 1..=31, 0..=23, 0..=59, 0..=60]).then_some(time)
}

/// The code points, if PNG allows them: decoders refuse a file with others, wherever the chunk stood here.
fn code_points(data: &[u8]) -> Option<[u8; 4]> {
    let points: [u8; 4] = data.try_into().ok()?;
    matches!(points, [_, _, 0, 0 | 1]).then_some(points)
}

fn numbers(data: &[u8]) -> Option<[u32; 8]> {
    let bytes: [u8; 32] = array(data, 0)?;
    let mut numbers = [0; 8];
    for (to, from) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
        *to = be32(from, 0)?;
    }
    Some(numbers)
}

fn density(data: [u8; 9]) -> Option<Density> {
    let (x, y, unit) = (be32(&data, 0)?, be32(&data, 4)?, data[8]);
    let unit = if unit == 1 {
        DensityUnit::Metre
    } else {
        DensityUnit::None
    };
    Density::new(x.into(), y.into(), unit)
}

/// What comes before the first zero byte, and what comes after it.
fn split_zero(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = data.iter().position(|&b| b == 0)?;
    Some((data.get(..at)?, data.get(at.checked_add(1)?..)?))
}

/// Why a text is not taken.
enum Untaken {
    Damaged,
    TooLarge,
}

impl Untaken {
    fn note(self, found: &mut Annotations, name: [u8; 4]) {
        let words = match self {
            Untaken::Damaged => &mut found.damaged,
            Untaken::TooLarge => &mut found.left_out,
        };
        once(words, word_for(name));
    }
}

fn take_text(found: &mut Annotations, chunk: &Chunk<'_>, budget: &mut usize) -> Result<(), Untaken> {
    let (name, rest) = split_zero(chunk.data).ok_or(Untaken::Damaged)?;
    if name.len() > MOST_LETTERS {
        once(&mut found.unknown, word::LONG_NAMES);
    }
    let name = latin1(name.get(..name.len().min(MOST_LETTERS)).unwrap_or(name));
    let inflated: Vec<u8>;
    let mut body = rest;
    let mut is_deflated = false;
    if &chunk.name == b"zTXt" {
        let (&method, deflated) = rest.split_first().ok_or(Untaken::Damaged)?;
        (is_deflated, body) = (true, deflated);
        if method != 0 {
            return Err(Untaken::Damaged);
        }
    } else if &chunk.name == b"iTXt" {
        let (&[flag, method], rest) = rest.split_first_chunk().ok_or(Untaken::Damaged)?;
        let (language, rest) = split_zero(rest).ok_or(Untaken::Damaged)?;
        let (translated, rest) = split_zero(rest).ok_or(Untaken::Damaged)?;
        body = rest;
        if name != XMP && !(language.is_empty() && translated.is_empty()) {
            once(&mut found.unknown, word::LANGUAGE);
        }
        is_deflated = flag == 1;
        if flag > 1 || is_deflated && method != 0 {
            return Err(Untaken::Damaged);
        }
    }
    if is_deflated {
        match inflate(body, *budget) {
            Inflated::Whole(bytes) => inflated = bytes,
            Inflated::Damaged => return Err(Untaken::Damaged),
            Inflated::TooLarge => {
                // The time to inflate is to be spent once only.
                *budget = 0;
                if name == XMP {
                    once(&mut found.left_out, word::XMP);
                    return Ok(());
                }
                return Err(Untaken::TooLarge);
            }
        }
        *budget = budget.saturating_sub(inflated.len());
        body = &inflated;
    }
    if name == XMP {
        found.take_xmp(body);
        return Ok(());
    }
    if let Some(kind) = name.strip_prefix(RAW) {
        take_raw(found, kind, body);
        return Ok(());
    }
    let text = if &chunk.name == b"iTXt" {
        str::from_utf8(body).map_err(|_| Untaken::Damaged)?.to_owned()
    } else {
        latin1(body)
    };
    if name.is_empty() && !text.is_empty() {
        return Err(Untaken::Damaged);
    }
    found.take_text(&name, text);
    Ok(())
}

/// A PNG file, or chunks of one, without those that are too large or that unpack to too much, and the words
/// for them; `None` if there are none of these. For decoders that know no limit.
pub(crate) fn within_limit(file: &[u8]) -> Option<(Vec<u8>, Vec<&'static str>)> {
    let (signature, chunks_only) = match file.strip_prefix(SIGNATURE) {
        Some(rest) => (SIGNATURE, rest),
        None => (&[][..], file),
    };
    let mut words = Vec::new();
    let mut kept = signature.to_vec();
    let mut done = 0_usize;
    let mut budget = METADATA_LIMIT;
    for chunk in chunks_in(chunks_only) {
        let room = match &chunk.name {
            b"iCCP" | b"eXIf" => METADATA_LIMIT,
            b"tEXt" | b"zTXt" | b"iTXt" => budget,
            _ => usize::MAX,
        };
        done = done.saturating_add(chunk.whole.len());
        let size = if room == usize::MAX {
            0
        } else {
            unpacked_size(&chunk, room)
        };
        if size > room {
            once(&mut words, word_for(chunk.name));
            continue;
        }
        if chunk.name.ends_with(b"Xt") {
            budget = budget.saturating_sub(size);
        }
        kept.extend_from_slice(chunk.whole);
    }
    kept.extend_from_slice(chunks_only.get(done..).unwrap_or_default());
    (!words.is_empty()).then_some((kept, words))
}

/// Bytes of a profile or a text once it is unpacked, counted no further than beyond `limit`.
fn unpacked_size(chunk: &Chunk<'_>, limit: usize) -> usize {
    let deflated = match &chunk.name {
        b"iCCP" | b"zTXt" => split_zero(chunk.data).and_then(|(_, rest)| rest.get(1..)),
        b"iTXt" => split_zero(chunk.data)
            .and_then(|(_, rest)| rest.strip_prefix(&[1, 0]))
            .and_then(split_zero)
            .and_then(|(_, rest)| split_zero(rest))
            .map(|(_, rest)| rest),
        _ => None,
    };
    let Some(deflated) = deflated else {
        return chunk.data.len();
    };
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut unpacked = ZlibDecoder::new(deflated).take(one_more);
    // What is damaged ends there.
    let _ = io::copy(&mut unpacked, &mut io::sink());
    let left = usize::try_from(unpacked.limit()).unwrap_or(0);
    limit.saturating_add(1).saturating_sub(left)
}

enum Inflated {
    Whole(Vec<u8>),
    TooLarge,
    Damaged,
}

fn inflate(data: &[u8], limit: usize) -> Inflated {
    let mut out = Vec::new();
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match ZlibDecoder::new(data).take(one_more).read_to_end(&mut out) {
        Err(_) => Inflated::Damaged,
        Ok(len) if len > limit => Inflated::TooLarge,
        Ok(_) => Inflated::Whole(out),
    }
}

/// A block of another kind as ImageMagick packs it: its name, its length, its bytes in hexadecimal digits.
fn take_raw(found: &mut Annotations, kind: &str, body: &[u8]) {
    let kind = kind.to_ascii_lowercase();
    let word = match kind.as_str() {
        "exif" | "app1" => word::EXIF,
        "xmp" => word::XMP,
        "iptc" | "8bim" => word::IPTC,
        // An ICC profile in such a text is known to nobody but ImageMagick.
        _ => return,
    };
    let Some(bytes) = raw_bytes(body) else {
        once(&mut found.damaged, word);
        return;
    };
    match kind.as_str() {
        "exif" | "app1" => match bytes.strip_prefix(jpeg::XMP) {
            Some(packet) => found.take_xmp(packet),
            None => found.take_exif(without_prefix(&bytes)),
        },
        "xmp" => found.take_xmp(&bytes),
        _ => {
            found.take_iptc(
                photoshop::iptc(bytes.strip_prefix(jpeg::PHOTOSHOP).unwrap_or(&bytes)).unwrap_or(&bytes),
            );
        }
    }
}

/// The bytes of such a block; `None` if there are not as many as it says.
fn raw_bytes(body: &[u8]) -> Option<Vec<u8>> {
    let mut words = body.splitn(4, |&b| b == b'\n');
    let (_, _, len) = (words.next()?, words.next()?, words.next()?);
    let len: usize = str::from_utf8(len).ok()?.trim().parse().ok()?;
    let digit = |b: &u8| char::from(*b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let digits: Vec<u8> = words.next()?.iter().filter_map(digit).collect();
    let pairs = digits.chunks_exact(2);
    let bytes: Vec<u8> = pairs
        .filter_map(|pair| Some(pair.first()? << 4 | pair.get(1)?))
        .collect();
    (bytes.len() == len).then_some(bytes)
}

pub(in crate::annotations) fn insert(
    given: &Annotations,
    orientation: Option<u8>,
    file: Vec<u8>,
    lost: &mut Vec<&'static str>,
) -> Vec<u8> {
    let before = chunks(&file).take_while(|c| &c.name != b"IDAT");
    let has_profile = before.into_iter().any(|c| &c.name == b"iCCP");
    let header = chunks(&file)
        .next()
        .filter(|c| &c.name == b"IHDR" && c.data.len() == 13);
    let Some(header) = header else {
        all_lost(given, orientation, lost);
        return file;
    };
    let mut new = Chunks::default();
    if let Some(cicp) = given.cicp {
        new.push(b"cICP", &cicp);
    }
    if let Some(display) = given.mastering_display {
        new.push(b"mDCV", &display);
    }
    if let Some(light) = given.content_light {
        new.push(b"cLLI", &light);
    }
    if let Some(gamma) = given.gamma {
        new.push(b"gAMA", &gamma.to_be_bytes());
    }
    if let Some(numbers) = given.chromaticities {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        new.push(b"cHRM", &bytes);
    }
    // A profile says more, and the two must not stand together.
    if let Some(intent) = given.srgb_intent.filter(|_| !has_profile) {
        new.push(b"sRGB", &[intent]);
    }
    if let Some(bits) = &given.significant_bits {
        match significant(bits, header.data) {
            Some(bits) => new.push(b"sBIT", &bits),
            None => once(lost, word::SIGNIFICANT_BITS),
        }
    }
    if let Some(density) = given.density {
        let (numbers, unit) = match density.per_metre() {
            Some(both) => (Density::whole(both, i32::MAX.unsigned_abs()), 1),
            None => (density.ratio(i32::MAX.unsigned_abs()), 0),
        };
        if let Some((x, y)) = numbers {
            new.push(
                b"pHYs",
                &[&x.to_be_bytes()[..], &y.to_be_bytes(), &[unit]].concat(),
            );
        } else {
            once(lost, density.word());
        }
    }
    if let Some(time) = given.time {
        new.push(b"tIME", &time);
    }
    if let (Some(block), _) = exif::compose(given.exif.as_deref(), orientation, None, &[], false) {
        new.push(b"eXIf", &block);
    }
    if let Some(packet) = &given.xmp {
        new.push(b"iTXt", &[XMP.as_bytes(), b"\0\0\0\0\0", packet].concat());
    }
    if let Some(records) = &given.iptc {
        match raw_iptc(records) {
            Some(data) => new.push(b"zTXt", &data),
            None => once(lost, word::IPTC),
        }
    }
    for (name, text) in &given.texts {
        match text_chunk(name, text) {
            Some((chunk, data)) => new.push(&chunk, &data),
            None => once(lost, word::TEXT),
        }
    }
    new.into_file(&file)
}

/// New chunks in a row.
#[derive(Default)]
struct Chunks {
    bytes: Vec<u8>,
    names: Vec<[u8; 4]>,
}

impl Chunks {
    fn push(&mut self, name: &[u8; 4], data: &[u8]) {
        // Items are no larger than 16 MiB, in hexadecimal digits twice that: never near the limit.
        let Ok(len) = u32::try_from(data.len()) else {
            return;
        };
        self.names.push(*name);
        self.bytes.extend_from_slice(&len.to_be_bytes());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(data);
        self.bytes.extend_from_slice(&crc(*name, data).to_be_bytes());
    }

    /// The file with these chunks behind its header, in place of those of the same names.
    fn into_file(self, file: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(file.len().saturating_add(self.bytes.len()));
        out.extend_from_slice(SIGNATURE);
        let mut done = SIGNATURE.len();
        for (at, chunk) in chunks(file).enumerate() {
            if &chunk.name == b"IDAT" {
                break;
            }
            done = done.saturating_add(chunk.whole.len());
            let is_replaced = self.names.contains(&chunk.name) && !chunk.name.ends_with(b"Xt");
            // The orientation that the encoder wrote stands in the new block, if it is to stand.
            if !is_replaced && &chunk.name != b"eXIf" {
                out.extend_from_slice(chunk.whole);
            }
            if at == 0 {
                out.extend_from_slice(&self.bytes);
            }
        }
        out.extend_from_slice(file.get(done..).unwrap_or_default());
        out
    }
}

/// The significant bits for the channels that the file has; alpha that came newly is significant throughout.
fn significant(bits: &[u8], header: &[u8]) -> Option<Vec<u8>> {
    let (&depth, &colour) = (header.get(8)?, header.get(9)?);
    let (channels, depth) = match colour {
        0 => (1, depth),
        2 => (3, depth),
        3 => (3, 8),
        4 => (2, depth),
        6 => (4, depth),
        _ => return None,
    };
    let mut bits = bits.to_vec();
    if bits.len().checked_add(1)? == channels && matches!(colour, 4 | 6) {
        bits.push(depth);
    }
    (bits.len() == channels && bits.iter().all(|b| (1..=depth).contains(b))).then_some(bits)
}

fn deflated(data: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    ZlibEncoder::new(data, Compression::default())
        .read_to_end(&mut out)
        .ok()?;
    Some(out)
}

fn raw_iptc(records: &[u8]) -> Option<Vec<u8>> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let packed = photoshop::pack(records)?;
    let mut body = format!("\niptc\n{:8}", packed.len()).into_bytes();
    for line in packed.chunks(36) {
        body.push(b'\n');
        for byte in line {
            body.extend(DIGITS.get(usize::from(byte >> 4)));
            body.extend(DIGITS.get(usize::from(byte & 15)));
        }
    }
    body.push(b'\n');
    Some([RAW.as_bytes(), b"iptc\0\0", &deflated(&body)?].concat())
}

/// The chunk of a text: its name and data.
fn text_chunk(name: &str, text: &str) -> Option<([u8; 4], Vec<u8>)> {
    // 1 to 79 printable characters of Latin-1, with single spaces between words.
    let name: Vec<u8> = to_latin1(&name.split_whitespace().collect::<Vec<_>>().join(" "))?;
    let is_printable = |b: &u8| matches!(b, 32..=126 | 161..=255);
    if !(1..=79).contains(&name.len()) || !name.iter().all(is_printable) || text.contains('\0') {
        return None;
    }
    let body = to_latin1(text);
    Some(match body {
        Some(body) if body.len() < LONG => (*b"tEXt", [&name[..], b"\0", &body].concat()),
        Some(body) => (*b"zTXt", [&name[..], b"\0\0", &deflated(&body)?].concat()),
        None if text.len() < LONG => (*b"iTXt", [&name[..], b"\0\0\0\0\0", text.as_bytes()].concat()),
        None => (
            *b"iTXt",
            [&name[..], b"\0\x01\0\0\0", &deflated(text.as_bytes())?].concat(),
        ),
    })
}

fn to_latin1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

#[cfg(test)]
pub(in crate::annotations) mod tests {
    use super::*;
    use crate::annotations::bytes::Order;
    use crate::annotations::exif::tests::sample;
    use crate::annotations::{Container, read_from};

    /// A file of 1 x 1 pixels; its data are none, which nobody here looks at.
    pub(in crate::annotations) fn file(colour: u8) -> Vec<u8> {
        let mut new = Chunks::default();
        new.push(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, colour, 0, 0, 0]);
        new.push(b"IDAT", b"pixels");
        new.push(b"IEND", b"");
        [SIGNATURE, &new.bytes].concat()
    }

    /// The same chunks with right checksums.
    pub(in crate::annotations) fn repaired(file: &[u8]) -> Vec<u8> {
        let mut new = Chunks::default();
        for chunk in chunks(file) {
            new.push(&chunk.name, chunk.data);
        }
        [SIGNATURE, &new.bytes].concat()
    }

    pub(in crate::annotations) fn full() -> Annotations {
        Annotations {
            exif: Some(sample(Order::Big).into()),
            xmp: Some(b"<x>packet</x>"[..].into()),
            iptc: Some(b"\x1c\x02\x50\0\x01a"[..].into()),
            density: Density::new(11811.0, 5906.0, DensityUnit::Metre),
            texts: vec![
                ("Title".into(), "caf\u{e9}".into()),
                ("long".into(), "word ".repeat(1000)),
                ("Comment".into(), "\u{4f60}\u{597d}".into()),
                ("long2".into(), "\u{4f60}\u{597d}".repeat(1000)),
            ],
            gamma: Some(100_000),
            chromaticities: Some([1, 2, 3, 4, 5, 6, 7, 8]),
            srgb_intent: Some(1),
            cicp: Some([9, 16, 0, 1]),
            mastering_display: Some([7; 24]),
            content_light: Some([9; 8]),
            texts_are_in_container: false,
            significant_bits: Some(vec![5, 6, 5]),
            time: Some([7, 0xe8, 2, 29, 12, 30, 59]),
            left_out: Vec::new(),
            damaged: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Behind the pixels no decoder looks at them; before the pixels they make a file that none reads.
    #[test]
    fn code_points_that_png_forbids_are_named() {
        for points in [
            &[9, 16, 0, 1][..],
            &[9, 16, 9, 1],
            &[9, 16, 0, 2],
            &[9, 16, 0, 1, 0],
        ] {
            let mut new = Chunks::default();
            new.push(b"cICP", points);
            let found = read(&new.into_file(&file(2)));
            let is_allowed = points == [9, 16, 0, 1];
            assert_eq!(found.cicp.is_some(), is_allowed, "{points:?}");
            assert_eq!(found.damaged.is_empty(), is_allowed, "{points:?}");
        }
    }

    #[test]
    fn all_of_it_comes_back() {
        let mut lost = Vec::new();
        let out = insert(&full(), Some(6), file(2), &mut lost);
        assert!(lost.is_empty());
        let found = read(&out);
        let mut expected = full();
        let block = exif::compose(expected.exif.as_deref(), Some(6), None, &[], false).0;
        expected.exif = block.map(Into::into);
        assert_eq!(found, expected);
        // A second time, chunks do not pile up.
        let mut again = found;
        again.texts.clear();
        (again.xmp, again.iptc) = (None, None);
        assert_eq!(insert(&again, Some(6), out.clone(), &mut lost).len(), out.len());
    }

    #[test]
    fn a_profile_stands_alone_and_alpha_gets_its_bits() {
        let mut new = Chunks::default();
        new.push(b"iCCP", b"x\0\0");
        let base = file(6);
        let with_profile = [&base[..33], &new.bytes, &base[33..]].concat();
        let mut lost = Vec::new();
        let found = read(&insert(&full(), None, with_profile, &mut lost));
        assert_eq!(found.srgb_intent, None);
        assert_eq!(found.significant_bits, Some(vec![5, 6, 5, 8]));
        insert(&full(), None, file(0), &mut lost);
        assert_eq!(lost, ["significant bits"]);
    }

    #[test]
    fn damaged_chunks_are_passed_over() {
        let mut lost = Vec::new();
        let mut out = insert(&full(), None, file(2), &mut lost);
        let at = out.windows(4).position(|w| w == b"gAMA").unwrap();
        out[at + 5] ^= 1;
        let found = read(&out);
        assert_eq!(found.gamma, None);
        assert_eq!(found.cicp, full().cicp);
        assert_eq!(damage(&out), ["gamma"]);
    }

    /// The words of what of a file is damaged.
    fn damage(file: &[u8]) -> Vec<&'static str> {
        let metadata = read_from(Container::Png, &mut io::Cursor::new(file), None);
        let metadata = metadata.unwrap();
        assert_eq!(metadata.icc_profile, None);
        metadata.damaged
    }

    #[test]
    fn damaged_profiles_and_texts_are_named() {
        let whole = deflated(b"profile").unwrap();
        let base = file(2);
        for (name, data, expected) in [
            (
                b"iCCP",
                [b"x\0\0", &whole[..whole.len() - 6]].concat(),
                &[word::PROFILE][..],
            ),
            (b"iCCP", b"x\0\0nonsense".to_vec(), &[word::PROFILE]),
            (b"iCCP", [b"x\0\x01", &whole[..]].concat(), &[word::PROFILE]),
            (b"zTXt", b"x\0\0nonsense".to_vec(), &[word::TEXT]),
            (b"eXIf", b"nonsense".to_vec(), &[word::EXIF]),
            (b"tEXt", b"x\0text".to_vec(), &[]),
        ] {
            let mut new = Chunks::default();
            new.push(name, &data);
            let found = damage(&[&base[..33], &new.bytes, &base[33..]].concat());
            assert_eq!(found, expected, "{}", latin1(name));
        }
    }

    #[test]
    fn what_is_not_carried_is_named() {
        let mut new = Chunks::default();
        for name in [b"oFFs", b"bKGD", b"prVt", b"prVt", b"iDOT", b"caBX", b"sPLT"] {
            new.push(name, b"data");
        }
        new.push(b"iTXt", b"Title\0\0\0fr\0Titre\0un chat");
        let base = file(2);
        let whole = [&base[..33], &new.bytes, &base[33..]].concat();
        let found = read_from(Container::Png, &mut io::Cursor::new(&whole), None).unwrap();
        assert_eq!(
            found.unknown,
            [
                "place on the page (oFFs)",
                "chunk prVt",
                "content credentials (caBX)",
                "languages and translated names of texts",
            ]
        );
        for (page, expected) in [
            ([0; 9], &[][..]),
            ([0, 0, 0, 9, 0, 0, 0, 9, 0], &["size of the page (vpAg)"]),
        ] {
            let mut new = Chunks::default();
            new.push(b"vpAg", &page);
            new.push(b"tEXt", b"Title\0a cat");
            let whole = [&base[..33], &new.bytes, &base[33..]].concat();
            let found = read_from(Container::Png, &mut io::Cursor::new(&whole), None).unwrap();
            assert_eq!(found.unknown, expected);
            assert_eq!(found.annotations.texts.len(), 1);
        }
        assert_eq!(found.hints, ["background (bKGD)", "palette (sPLT)"]);
        assert_eq!(
            found.annotations.texts,
            [("Title".to_owned(), "un chat".to_owned())]
        );
        assert!(
            found
                .sentence()
                .unwrap()
                .contains("is left out: place on the page (oFFs), chunk prVt, ")
        );
        assert!(
            found
                .note()
                .unwrap()
                .ends_with("background (bKGD), palette (sPLT)")
        );
    }

    #[test]
    fn bombs_are_left_out() {
        let mut new = Chunks::default();
        let bomb = [&b"x\0\0"[..], &deflated(&vec![b' '; 40 << 20]).unwrap()].concat();
        new.push(b"zTXt", &bomb);
        new.push(b"zTXt", &bomb);
        let base = file(2);
        let found = read(&[&base[..33], &new.bytes, &base[33..]].concat());
        assert!(found.texts.is_empty());
        assert_eq!(found.left_out, ["text"]);
    }

    #[test]
    fn decoders_without_a_limit_get_no_bombs() {
        let mut new = Chunks::default();
        let bomb = [&b"x\0\0"[..], &deflated(&vec![b' '; METADATA_LIMIT + 1]).unwrap()].concat();
        let small = [&b"x\0\0"[..], &deflated(b"small").unwrap()].concat();
        new.push(b"iCCP", &bomb);
        let at = new.bytes.len();
        new.push(b"zTXt", &small);
        let kept = new.bytes[at..].to_vec();
        new.push(b"zTXt", &bomb);
        new.push(b"iTXt", &[&b"x\0\x01\0\0\0"[..], &bomb[3..]].concat());
        let base = file(2);
        let (shorter, words) =
            within_limit(&[&base[..33], &new.bytes, &base[33..], b"cut"].concat()).unwrap();
        assert_eq!(shorter, [&base[..33], &kept, &base[33..], b"cut"].concat());
        assert_eq!(words, [word::PROFILE, word::TEXT]);
        assert_eq!(within_limit(&shorter), None);
        assert_eq!(within_limit(&bomb), None);
        // The headers of an animation are chunks without the signature.
        assert_eq!(within_limit(&new.bytes).unwrap().0, kept);
    }

    #[test]
    fn raw_profiles_are_what_they_are() {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let block = sample(Order::Little);
        let prefixed = [b"Exif\0\0", &block[..]].concat();
        let packet = [jpeg::XMP, b"<x/>"].concat();
        let mut new = Chunks::default();
        for (kind, bytes) in [("exif", &prefixed), ("APP1", &packet)] {
            let text = format!(
                "Raw profile type {kind}\0\n{kind}\n {:7}\n{}\n",
                bytes.len(),
                hex(bytes)
            );
            new.push(b"tEXt", text.as_bytes());
        }
        let base = file(2);
        let found = read(&[&base[..33], &new.bytes, &base[33..]].concat());
        assert_eq!(found.exif.as_deref(), Some(&block[..]));
        assert_eq!(found.xmp.as_deref(), Some(&b"<x/>"[..]));
        assert_eq!(found.orientation(), Some(6));
    }

    #[test]
    fn raw_profiles_of_another_length_are_damaged() {
        let base = file(2);
        for (kind, text, damaged) in [
            ("exif", "5\n45786966", Some(word::EXIF)),
            ("xmp", "x\n3c783e", Some(word::XMP)),
            ("IPTC", "4", Some(word::IPTC)),
            ("xmp", "3\n3c783e", None),
            ("icc", "5\n3c783e", None),
        ] {
            let mut new = Chunks::default();
            new.push(
                b"tEXt",
                format!("Raw profile type {kind}\0\n{kind}\n {text}\n").as_bytes(),
            );
            let found = read(&[&base[..33], &new.bytes, &base[33..]].concat());
            assert_eq!(found.damaged.first().copied(), damaged, "{kind} {text:?}");
        }
    }
}
