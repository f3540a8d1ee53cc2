//! GIF: comments, XMP and a profile in extensions between the pictures. Read only.
//!
//! ```text
//!  "GIF89a" | screen, 7 bytes | colours | blocks .. | ';'
//!  a picture:     ',' | place, 9 bytes | colours | 1 byte | sub-blocks
//!  an extension:  '!' | 0xfe | sub-blocks                                    a comment
//!                 '!' | 0xf9 | 4, flags, time in 1/100 s, 16 bits, colour      of the picture that follows
//!                 '!' | 0xff | 11, a name of 11 bytes | sub-blocks           an application's
//!  sub-blocks:    length, 1 byte | data | .. | 0
//! ```
//!
//! The application NETSCAPE2.0 says how often the pictures are repeated: 1, 16 bits, 0 for ever.
//!
//! An XMP packet stands where sub-blocks would, and behind it 258 bytes that lead any reader of sub-blocks to
//! their end.

use crate::annotations::bytes::{array, pass, take_array, take_exactly, text};
use crate::annotations::{FileMetadata, instant_frames, name_once, once, word};
use crate::messages::metadata_limit::METADATA_LIMIT;
use crate::wording::counted;
use std::io::{self, BufRead, Seek};

const CONTROL: u8 = 0xf9;
const COMMENT: u8 = 0xfe;
const APPLICATION: u8 = 0xff;
const PLAIN_TEXT: u8 = 1;

/// Kinds of blocks that are named, at most.
const MOST_UNKNOWN: usize = 16;

/// Hundredths of a second that a picture must last, or else FFmpeg's demuxer gives it ten.
const LEAST_TIME: u16 = 2;

/// How the bytes behind an XMP packet begin.
const TRAILER: &[u8] = &[1, 0xff, 0xfe, 0xfd];

/// What a file says beside its pixels. What is damaged ends it.
pub(in crate::annotations) fn read(input: &mut (impl BufRead + Seek)) -> io::Result<FileMetadata> {
    let mut found = FileMetadata::default();
    let Some([b'G', b'I', b'F', _, _, _, w0, w1, h0, h1, flags, _, _]) = take_array::<13>(input)? else {
        return Ok(found);
    };
    let screen = [u16::from_le_bytes([w0, w1]), u16::from_le_bytes([h0, h1])];
    found.plays = Some(1);
    pass(input, colours(flags))?;
    let mut room = METADATA_LIMIT;
    let mut early_texts = None;
    let (mut pictures, mut instant, mut time, mut beyond) = (0, 0, None, 0_u64);
    while let Some([kind]) = take_array::<1>(input)? {
        match kind {
            b',' => {
                let Some([place @ .., flags]) = take_array::<9>(input)? else {
                    break;
                };
                pictures += 1;
                beyond += u64::from(is_beyond(place, screen));
                instant += u64::from(time.take().is_some_and(|time: u16| time < LEAST_TIME));
                early_texts = early_texts.or(Some(found.annotations.texts.len()));
                pass(input, colours(flags).saturating_add(1))?;
                skip_blocks(input)?;
            }
            b'!' => {
                let Some([label]) = take_array::<1>(input)? else {
                    break;
                };
                if label == CONTROL {
                    time = control(input, &mut room)?;
                } else {
                    extension(input, label, &mut room, &mut found)?;
                }
            }
            _ => break,
        }
    }
    let unknown = std::mem::take(&mut found.annotations.unknown);
    found.unknown.extend(unknown.into_iter().map(str::to_owned));
    if pictures > 1 {
        let changed = instant_frames(instant, pictures, "less than 2/100 s", "10/100 s");
        found.changes.extend(changed);
    }
    if beyond > 0 {
        let [width, height] = screen;
        let frames = counted(beyond, "frame");
        found.unknown.push(format!(
            "what of {frames} lies outside of the screen of {width}x{height}"
        ));
    }
    // FFmpeg keeps one comment, of those that it meets before the first picture.
    found.annotations.texts_are_in_container = early_texts == Some(1) && found.annotations.texts.len() == 1;
    Ok(found)
}

/// True if a picture at this place, and of this size, is not all on the screen. One without a size is as
/// large as that.
fn is_beyond([x0, x1, y0, y1, w0, w1, h0, h1]: [u8; 8], screen: [u16; 2]) -> bool {
    let ends = [[x0, x1, w0, w1], [y0, y1, h0, h1]].map(|[a0, a1, l0, l1]| {
        u32::from(u16::from_le_bytes([a0, a1])) + u32::from(u16::from_le_bytes([l0, l1]))
    });
    let screen = screen.map(u32::from);
    screen.iter().all(|&side| side > 0) && ends.iter().zip(screen).any(|(&end, side)| end > side)
}

/// The time of the next picture in hundredths of a second.
fn control(input: &mut (impl BufRead + Seek), room: &mut usize) -> io::Result<Option<u16>> {
    let control = blocks(input, room, false)?;
    Ok(control.and_then(|control| array(&control, 1).map(u16::from_le_bytes)))
}

fn extension(
    input: &mut (impl BufRead + Seek),
    label: u8,
    room: &mut usize,
    found: &mut FileMetadata,
) -> io::Result<()> {
    if label == COMMENT {
        if let Some(comment) = blocks(input, room, false)? {
            found.annotations.take_text("Comment", text(&comment));
        } else {
            once(&mut found.too_large, word::TEXT);
        }
        return Ok(());
    }
    if label != APPLICATION {
        if label == PLAIN_TEXT {
            name_once(&mut found.unknown, "plain text".to_owned(), MOST_UNKNOWN);
        }
        return skip_blocks(input);
    }
    match take_array::<12>(input)? {
        Some([11, name @ ..]) if name == *b"XMP DataXMP" => {
            let Some(mut packet) = blocks(input, room, true)? else {
                once(&mut found.too_large, word::XMP);
                return Ok(());
            };
            let end = packet
                .windows(TRAILER.len())
                .rposition(|window| window == TRAILER);
            packet.truncate(end.unwrap_or(packet.len()));
            found.annotations.take_xmp(&packet);
        }
        Some([11, name @ ..]) if name == *b"ICCRGBG1012" => match blocks(input, room, false)? {
            Some(profile) if found.icc_profile.is_none() && !profile.is_empty() => {
                found.icc_profile = Some(profile);
            }
            Some(_) => {}
            None => once(&mut found.too_large, word::PROFILE),
        },
        Some([11, name @ ..]) if name == *b"NETSCAPE2.0" || name == *b"ANIMEXTS1.0" => {
            if let Some(&[1, low, high, ..]) = blocks(input, room, false)?.as_deref() {
                let repeats = u32::from(u16::from_le_bytes([low, high]));
                found.plays = Some(if repeats == 0 { 0 } else { repeats + 1 });
            }
        }
        Some([11, name @ ..]) => {
            let name = String::from_utf8_lossy(&name);
            let name = format!("application block {}", name.trim_end_matches(['\0', ' ']));
            name_once(&mut found.unknown, name, MOST_UNKNOWN);
            skip_blocks(input)?;
        }
        // No name of an application: where its blocks begin nobody knows.
        _ => pass(input, u64::MAX)?,
    }
    Ok(())
}

/// Bytes of the table of colours that these flags announce.
fn colours(flags: u8) -> u64 {
    if flags & 0x80 == 0 {
        return 0;
    }
    3 << ((flags & 7) + 1)
}

/// The data of the sub-blocks that follow, with their lengths if `whole`; `None`, all passed, where there is
/// no room for them.
fn blocks(input: &mut (impl BufRead + Seek), room: &mut usize, whole: bool) -> io::Result<Option<Vec<u8>>> {
    let mut data = Vec::new();
    let mut fits = true;
    while let Some(len) = block_length(input)? {
        let len = usize::from(len);
        fits &= data.len().saturating_add(len) < *room;
        if !fits {
            pass(input, len as u64)?;
            continue;
        }
        if whole {
            data.push(len as u8);
        }
        let Some(block) = take_exactly(input, len as u64)? else {
            break;
        };
        data.extend_from_slice(&block);
    }
    if !fits {
        return Ok(None);
    }
    *room = room.saturating_sub(data.len());
    Ok(Some(data))
}

fn skip_blocks(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    while let Some(len) = block_length(input)? {
        pass(input, len.into())?;
    }
    Ok(())
}

/// Bytes of the next sub-block; `None` behind the last one, and at the end of the file.
fn block_length(input: &mut impl BufRead) -> io::Result<Option<u8>> {
    let len = take_array::<1>(input)?;
    Ok(len.map(|[len]| len).filter(|&len| len > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A file of one pixel with these extensions before its picture.
    fn file(extensions: &[&[u8]]) -> Vec<u8> {
        let mut file = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff".to_vec();
        file.extend(extensions.concat());
        file.extend(b",\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0!\xfe\x04last\0;");
        file
    }

    fn xmp(packet: &[u8]) -> Vec<u8> {
        let trailer: Vec<u8> = [1].into_iter().chain((0..=255).rev()).chain([0]).collect();
        [b"!\xff\x0bXMP DataXMP", packet, &trailer].concat()
    }

    #[test]
    fn extensions_are_read_wherever_they_stand() {
        let packet = b"<?xpacket begin='\xef\xbb\xbf'?><x:xmpmeta/>";
        let comment = b"!\xfe\x05first\x04 one\0";
        let profile = b"!\xff\x0bICCRGBG1012\x03ICC\x01!\0";
        let control = b"!\xf9\x04\x01\x0a\0\0\0";
        let netscape = b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0";
        let whole = file(&[comment, netscape, &xmp(packet), profile, control]);
        let found = read(&mut Cursor::new(&whole)).unwrap();
        let texts = [("Comment", "first one"), ("Comment", "last")];
        assert_eq!(
            found.annotations.texts,
            texts.map(|(name, text)| (name.to_owned(), text.to_owned()))
        );
        assert!(!found.annotations.texts_are_in_container);
        assert_eq!(found.annotations.xmp.as_deref(), Some(&packet[..]));
        assert_eq!(found.icc_profile.as_deref(), Some(&b"ICC!"[..]));
        assert_eq!(found.unknown, [""; 0]);
        let others = [
            &b"!\xff\x0bImageMagick\x03abc\0"[..],
            b"!\x01\x0c0123456789ab\x02hi\0",
            netscape,
        ];
        let found = read(&mut Cursor::new(file(&[
            others[0], others[0], others[1], others[2],
        ])))
        .unwrap();
        assert_eq!(found.unknown, ["application block ImageMagick", "plain text"]);
        assert_eq!(found.annotations.texts.len(), 1);
        for end in 0..whole.len() {
            read(&mut Cursor::new(&whole[..end])).unwrap();
        }
    }

    #[test]
    fn times_that_are_not_kept_are_counted() {
        let control = |time: u8| [b"!\xf9\x04\0", &[time, 0, 0, 0][..]].concat();
        let picture = b",\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0";
        let two = |first: u8, second: u8| {
            let whole = file(&[&control(first), picture, &control(second)]);
            read(&mut Cursor::new(whole)).unwrap().changes
        };
        assert!(two(2, 9).is_empty());
        let said =
            "1 of its 2 frames states a time of less than 2/100 s, and is shown for 10/100 s, as in browsers";
        assert_eq!(two(1, 9), [said]);
        // A lone picture has no time.
        let whole = file(&[&control(0)]);
        assert!(read(&mut Cursor::new(whole)).unwrap().changes.is_empty());
    }

    #[test]
    fn frames_outside_of_the_screen_are_counted() {
        let said = |picture: &[u8]| {
            let mut whole = file(&[picture]);
            // A screen of three by two.
            (whole[6], whole[8]) = (3, 2);
            read(&mut Cursor::new(whole)).unwrap().unknown
        };
        assert_eq!(said(b",\x02\0\x01\0\x01\0\x01\0\0\x02\x02\x44\x01\0"), [""; 0]);
        for picture in [
            b",\x02\0\x01\0\x02\0\x01\0\0\x02\x02\x44\x01\0",
            b",\0\0\0\0\x01\0\x03\0\0\x02\x02\x44\x01\0",
            b",\0\x01\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0",
        ] {
            assert_eq!(
                said(picture),
                ["what of 1 frame lies outside of the screen of 3x2"]
            );
        }
    }

    #[test]
    fn what_is_too_large_is_named_and_passed() {
        let blocks = [&[255][..], &[b'a'; 255]]
            .concat()
            .repeat(METADATA_LIMIT / 255 + 1);
        let whole = file(&[&[b"!\xfe", &blocks[..], &[0]].concat(), b"!\xfe\x04next\0"]);
        let found = read(&mut Cursor::new(&whole)).unwrap();
        assert_eq!(found.too_large, [word::TEXT]);
        let texts: Vec<&str> = found
            .annotations
            .texts
            .iter()
            .map(|(_, text)| &text[..])
            .collect();
        assert_eq!(texts, ["next", "last"]);
    }
}
