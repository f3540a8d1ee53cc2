//! WebP: chunks in a RIFF file. Only its extended kind, which begins with VP8X, has room for more.
//!
//! ```text
//!  "RIFF" size "WEBP" | VP8L or VP8                                         the plain kinds
//!  "RIFF" size "WEBP" | VP8X: flags, canvas | ICCP | pixels | EXIF | XMP
//!  a chunk: name, 4 bytes | length, 32 bits | data, padded to an even length
//! ```
//!
//! Resolution and texts go into the Exif block, the only place for them.

use crate::annotations::bytes::{array, latin1, le32, overwrite, part, pass, take_array, take_exactly};
use crate::annotations::excerpt::Excerpt;
use crate::annotations::word::all_lost;
use crate::annotations::{Annotations, DensityUnit, exif, once, word};
use std::io::{self, BufRead, Seek};

const HEAD: usize = 12;

const ICC: u8 = 0x20;
const ALPHA: u8 = 0x10;
const EXIF: u8 = 0x08;
const XMP: u8 = 0x04;

/// Chunks that say how the pixels are stored, which their decoder knows.
const STORAGE: [&[u8; 4]; 6] = [b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF"];

/// The chunks of a file, as far as they are whole: names and data.
fn chunks(file: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let is_webp = file.starts_with(b"RIFF") && part(file, 8, 4) == Some(b"WEBP");
    let mut rest = if is_webp {
        file.get(HEAD..).unwrap_or_default()
    } else {
        &[]
    };
    std::iter::from_fn(move || {
        let name = array(rest, 0)?;
        let len = usize::try_from(le32(rest, 4)?).ok()?;
        let data = part(rest, 8, len)?;
        let padded = len.checked_add(len & 1)?.checked_add(8)?;
        rest = rest.get(padded..).unwrap_or_default();
        Some((name, data))
    })
}

/// The chunks of a file of `len` bytes that say something, as far as they are whole.
pub(in crate::annotations) fn excerpt(input: &mut (impl BufRead + Seek), len: u64) -> io::Result<Excerpt> {
    let Some(head) = take_array::<HEAD>(input)? else {
        return Ok(Excerpt::new(&[]));
    };
    let mut found = Excerpt::new(&head);
    let mut at = HEAD as u64;
    let mut flags = None;
    while head.starts_with(b"RIFF") && head.ends_with(b"WEBP") {
        let Some(chunk) = take_array::<8>(input)? else {
            break;
        };
        let [n0, n1, n2, n3, size @ ..] = chunk;
        let name = [n0, n1, n2, n3];
        let size = u64::from(u32::from_le_bytes(size));
        let padding = size & 1;
        if name.iter().any(u8::is_ascii_control) {
            break;
        }
        if !STORAGE.contains(&&name) && !matches!(&name, b"EXIF" | b"XMP " | b"ICCP") {
            found.leave_out(format!("chunk {}", latin1(&name).trim()));
        }
        at = at.saturating_add(8).saturating_add(size);
        if at > len {
            break;
        }
        if &name == b"VP8X" && size == 10 {
            let Some([first, ..]) = take_array::<10>(input)? else {
                break;
            };
            flags = Some(first);
            continue;
        }
        if &name == b"ALPH" && flags.is_some_and(|flags| flags & ALPHA == 0) {
            // All decoders obey the flag.
            found.leave_out("alpha (ALPH) that its flags do not announce".to_owned());
        }
        if &name == b"ANIM" && size == 6 {
            let Some([_, _, _, _, plays @ ..]) = take_array::<6>(input)? else {
                break;
            };
            found.plays = Some(u16::from_le_bytes(plays).into());
            continue;
        }
        let word = match &name {
            b"EXIF" => word::EXIF,
            b"XMP " => word::XMP,
            b"ICCP" => word::PROFILE,
            _ => "",
        };
        if word.is_empty() || !found.has_room(size, word) {
            pass(input, size.saturating_add(padding))?;
        } else {
            let Some(data) = take_exactly(input, size)? else {
                break;
            };
            pass(input, padding)?;
            if word == word::PROFILE {
                found.icc_profile = found.icc_profile.or(Some(data));
            } else if push(&mut found.bytes, name, &data).is_none() {
                break;
            }
        }
        at = at.saturating_add(padding);
    }
    Ok(found)
}

pub(in crate::annotations) fn read(file: &[u8]) -> Annotations {
    let mut found = Annotations::default();
    for (name, data) in chunks(file) {
        match &name {
            b"EXIF" => found.take_exif(data),
            b"XMP " => found.take_xmp(data),
            _ => {}
        }
    }
    found
}

/// What VP8X says of a file: flags, reserved bytes, width and height less one.
fn extended(file: &[u8]) -> Option<[u8; 10]> {
    let mut flags = 0;
    let mut size = None;
    for (name, data) in chunks(file) {
        match &name {
            b"VP8X" => return array(data, 0),
            b"ICCP" => flags |= ICC,
            b"ALPH" => flags |= ALPHA,
            b"VP8L" => {
                // A byte 0x2f, then bits: width less one 14, height less one 14, alpha 1, version 3.
                let bits = (*data.first()? == 0x2f).then(|| le32(data, 1))??;
                size = Some((bits & 0x3fff, bits >> 14 & 0x3fff));
                if bits >> 28 & 1 == 1 {
                    flags |= ALPHA;
                }
            }
            b"VP8 " => {
                // Three bytes, a mark, and width and height in 14 bits each with the scale above them.
                let bits = (part(data, 3, 3)? == b"\x9d\x01\x2a").then(|| le32(data, 6))??;
                size = Some((
                    (bits & 0x3fff).checked_sub(1)?,
                    (bits >> 16 & 0x3fff).checked_sub(1)?,
                ));
            }
            _ => {}
        }
    }
    let (width, height) = size?;
    let ([w0, w1, w2, _], [h0, h1, h2, _]) = (width.to_le_bytes(), height.to_le_bytes());
    Some([flags, 0, 0, 0, w0, w1, w2, h0, h1, h2])
}

pub(in crate::annotations) fn insert(
    given: &Annotations,
    orientation: Option<u8>,
    file: Vec<u8>,
    lost: &mut Vec<&'static str>,
) -> Vec<u8> {
    let density = given.density.filter(|d| d.unit != DensityUnit::None);
    let (block, rest) = exif::compose(given.exif.as_deref(), orientation, density, &given.texts, true);
    let is_plain = !chunks(&file).any(|(name, _)| matches!(&name, b"EXIF" | b"XMP "));
    if block.is_none() && given.xmp.is_none() && is_plain {
        if !rest.is_empty() {
            once(lost, word::TEXT);
        }
        return file;
    }
    match written(&file, block.as_deref(), given.xmp.as_deref()) {
        Some(out) => {
            if !rest.is_empty() {
                once(lost, word::TEXT);
            }
            out
        }
        None => {
            all_lost(given, orientation, lost);
            file
        }
    }
}

/// The file with these chunks. None if it is no WebP file or would be too long for one.
fn written(file: &[u8], block: Option<&[u8]>, packet: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut head = extended(file)?;
    let [flags, ..] = &mut head;
    *flags &= !(EXIF | XMP);
    if block.is_some() {
        *flags |= EXIF;
    }
    if packet.is_some() {
        *flags |= XMP;
    }
    let more = block
        .map_or(0, <[u8]>::len)
        .checked_add(packet.map_or(0, <[u8]>::len))?;
    let mut out = Vec::with_capacity(file.len().checked_add(more)?.checked_add(64)?);
    out.extend_from_slice(b"RIFF\0\0\0\0WEBP");
    push(&mut out, *b"VP8X", &head)?;
    for (name, data) in chunks(file) {
        if !matches!(&name, b"VP8X" | b"EXIF" | b"XMP ") {
            push(&mut out, name, data)?;
        }
    }
    if let Some(block) = block {
        push(&mut out, *b"EXIF", block)?;
    }
    if let Some(packet) = packet {
        push(&mut out, *b"XMP ", packet)?;
    }
    let size = u32::try_from(out.len().checked_sub(8)?).ok()?;
    overwrite(&mut out, 4, &size.to_le_bytes())?;
    Some(out)
}

fn push(out: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> Option<()> {
    out.extend_from_slice(&name);
    out.extend_from_slice(&u32::try_from(data.len()).ok()?.to_le_bytes());
    out.extend_from_slice(data);
    if !data.len().is_multiple_of(2) {
        out.push(0);
    }
    Some(())
}

#[cfg(test)]
pub(in crate::annotations) mod tests {
    use super::*;
    use crate::annotations::bytes::Order;
    use crate::annotations::exif::tests::sample;
    use crate::annotations::{Container, Density, without_prefix};

    /// A plain file of 300 x 20 pixels with alpha; its data end behind their head.
    pub(in crate::annotations) fn file() -> Vec<u8> {
        let bits = 299_u32 | 19 << 14 | 1 << 28;
        let mut out = b"RIFF\x12\0\0\0WEBP".to_vec();
        push(&mut out, *b"VP8L", &[&[0x2f][..], &bits.to_le_bytes()].concat()).unwrap();
        out
    }

    #[test]
    fn a_plain_file_becomes_an_extended_one() {
        let given = Annotations {
            exif: Some(sample(Order::Little).into()),
            xmp: Some(b"<x>packet</x>"[..].into()),
            density: Density::new(300.0, 150.0, DensityUnit::Inch),
            texts: vec![("Copyright".into(), "me".into()), ("key".into(), "value".into())],
            ..Annotations::default()
        };
        let mut lost = Vec::new();
        let out = insert(&given, Some(6), file(), &mut lost);
        assert_eq!(lost, ["text"]);
        assert_eq!(le32(&out, 4).unwrap() as usize, out.len() - 8);
        let names: Vec<[u8; 4]> = chunks(&out).map(|(name, _)| name).collect();
        assert_eq!(names, [*b"VP8X", *b"VP8L", *b"EXIF", *b"XMP "]);
        assert_eq!(
            chunks(&out).next().unwrap().1,
            [0x1c, 0, 0, 0, 43, 1, 0, 19, 0, 0]
        );
        let found = crate::annotations::read(Container::WebP, &out);
        assert_eq!((&found.xmp, found.density), (&given.xmp, given.density));
        assert_eq!(found.orientation(), Some(6));
        // Nothing to say takes the chunks out again.
        let out = insert(&Annotations::default(), None, out, &mut lost);
        assert_eq!(chunks(&out).next().unwrap().1[0], ALPHA);
    }

    #[test]
    fn lossy_files_state_their_size_elsewhere() {
        let mut plain = b"RIFF\0\0\0\0WEBP".to_vec();
        push(&mut plain, *b"VP8 ", b"\0\0\0\x9d\x01\x2a\x2c\x01\x14\x40").unwrap();
        assert_eq!(extended(&plain), Some([0, 0, 0, 0, 43, 1, 0, 19, 0, 0]));
    }

    #[test]
    fn the_words_before_exif_are_taken_off() {
        let block = sample(Order::Big);
        let mut out = file();
        push(&mut out, *b"EXIF", &[b"Exif\0\0", &block[..]].concat()).unwrap();
        let found = read(&out);
        assert_eq!(found.exif.as_deref(), Some(&block[..]));
        assert_eq!(without_prefix(&block), block);
    }

    #[test]
    fn nothing_to_say_changes_nothing() {
        let mut lost = Vec::new();
        assert_eq!(insert(&Annotations::default(), None, file(), &mut lost), file());
        let given = Annotations {
            xmp: Some(b"<x/>"[..].into()),
            ..Annotations::default()
        };
        assert_eq!(insert(&given, Some(6), b"RIFF".to_vec(), &mut lost), b"RIFF");
        assert_eq!(lost, ["XMP", "orientation"]);
    }
}
