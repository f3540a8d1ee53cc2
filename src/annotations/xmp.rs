//! What an XMP packet says of its file: the orientation, which would otherwise contradict the one that the
//! file states, and further parts of the file, which are left out with these parts.
//!
//! ```text
//!  <rdf:Description tiff:Orientation="6" ..>     or     <tiff:Orientation>6</tiff:Orientation>
//! ```

use std::borrow::Cow;
use std::sync::Arc;

const NAME: &[u8] = b"tiff:Orientation";

/// Where the digits of orientations lie.
fn places(packet: &[u8]) -> impl Iterator<Item = usize> {
    packet.windows(NAME.len()).enumerate().filter_map(|(at, window)| {
        if window != NAME {
            return None;
        }
        let start = at.checked_add(NAME.len())?;
        let rest = packet.get(start..)?;
        let place = rest.iter().take(8).position(u8::is_ascii_digit)?;
        let (before, digit) = rest.split_at_checked(place)?;
        let opens = before.iter().all(|b| b"=\"'> \t\r\n".contains(b));
        let closes = matches!(digit, [b'1'..=b'8', b'"' | b'\'' | b'<' | b' ', ..]);
        (opens && closes).then(|| start.checked_add(place))?
    })
}

/// The orientation that a packet states.
pub(super) fn orientation(packet: &[u8]) -> Option<u8> {
    let digit = packet.get(places(packet).next()?)?;
    digit.checked_sub(b'0')
}

/// The packet with this orientation wherever it states one.
pub(super) fn with_orientation(packet: &Arc<[u8]>, orientation: Option<u8>) -> Arc<[u8]> {
    let digit = b'0'.saturating_add(orientation.unwrap_or(1));
    let wrong: Vec<usize> = places(packet)
        .filter(|&at| packet.get(at) != Some(&digit))
        .collect();
    if wrong.is_empty() {
        return Arc::clone(packet);
    }
    let mut packet = packet.to_vec();
    for at in wrong {
        if let Some(byte) = packet.get_mut(at) {
            *byte = digit;
        }
    }
    packet.into()
}

/// Beginnings of names of properties that describe further parts of a file: a gain map, a video behind a
/// picture, more of the packet itself.
const PARTS: [&[u8]; 6] = [
    b"hdrgm:",
    b"HDRGainMap:",
    b"xmpNote:HasExtendedXMP",
    b"GCamera:MicroVideo",
    b"GCamera:MotionPhoto",
    b"Container:Directory",
];

/// The packet without descriptions of parts of its file that no picture is written with, as attributes and as
/// elements. What is behind one that is cut off stays as it is.
pub(super) fn without_parts(packet: &[u8]) -> Cow<'_, [u8]> {
    let mut kept = Vec::new();
    let (mut copied, mut at) = (0, 0);
    while let Some((lead, name)) = packet.get(at..).and_then(<[u8]>::split_first) {
        let is_part = PARTS.iter().any(|part| name.starts_with(part));
        let length = match (is_part, lead) {
            (true, b'<') => element(name),
            (true, lead) if lead.is_ascii_whitespace() && value(name).is_some() => attribute(name),
            _ => {
                at += 1;
                continue;
            }
        };
        let Some(length) = length else { break };
        kept.extend_from_slice(packet.get(copied..at).unwrap_or_default());
        at += 1 + length;
        copied = at;
    }
    if copied == 0 {
        return Cow::Borrowed(packet);
    }
    kept.extend_from_slice(packet.get(copied..).unwrap_or_default());
    Cow::Owned(kept)
}

/// Bytes of the name that `text` begins with.
fn name_length(text: &[u8]) -> usize {
    let is_of_name = |b: &u8| b.is_ascii_alphanumeric() || b":_-.".contains(b);
    text.iter().take_while(|b| is_of_name(b)).count()
}

/// Where the quoted value begins of the attribute that `text` begins with, if it is one.
fn value(text: &[u8]) -> Option<usize> {
    let spaces = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|b| b.is_ascii_whitespace()).count()
    };
    let equals = spaces(name_length(text));
    let quote = spaces(equals + 1);
    let is_quoted = matches!(text.get(quote), Some(b'"' | b'\''));
    (text.get(equals) == Some(&b'=') && is_quoted).then_some(quote)
}

/// Bytes of the attribute that `text` begins with.
fn attribute(text: &[u8]) -> Option<usize> {
    let quote = value(text)?;
    let (mark, rest) = text.get(quote..)?.split_first()?;
    Some(quote + 2 + rest.iter().position(|b| b == mark)?)
}

/// Bytes of the element that `text` begins with, behind its first bracket.
fn element(text: &[u8]) -> Option<usize> {
    let name = text.get(..name_length(text))?;
    let opens = text.iter().position(|&b| b == b'>')?;
    if opens.checked_sub(1).and_then(|before| text.get(before)) == Some(&b'/') {
        return Some(opens + 1);
    }
    let end = [b"</", name].concat();
    let closes = text.windows(end.len()).position(|window| window == end)?;
    let last = text.get(closes..)?.iter().position(|&b| b == b'>')?;
    Some(closes + last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_set() {
        let packet: Arc<[u8]> = Arc::from(
            &b"<a tiff:Orientation=\"6\"/><tiff:Orientation>8</tiff:Orientation><tiff:OrientationX>5<"[..],
        );
        assert_eq!(orientation(&packet), Some(6));
        let turned = with_orientation(&packet, Some(3));
        assert_eq!(
            str::from_utf8(&turned).unwrap(),
            "<a tiff:Orientation=\"3\"/><tiff:Orientation>3</tiff:Orientation><tiff:OrientationX>5<"
        );
        assert!(with_orientation(&turned, None).windows(3).any(|w| w == b"\"1\""));
        assert_eq!(orientation(b"tiff:Orientation"), None);
    }

    #[test]
    fn descriptions_of_parts_go_and_all_else_stays() {
        for (given, left) in [
            (r#"<d a:b="1" hdrgm:Version="1.0"/>"#, r#"<d a:b="1"/>"#),
            (
                "<d xmlns:hdrgm='u' hdrgm:Version = '1>0'\n hdrgm:Max=\"2\" c:d='3'>",
                "<d xmlns:hdrgm='u'\n c:d='3'>",
            ),
            (
                "<hdrgm:GainMapMax><rdf:Seq><rdf:li>1</rdf:li></rdf:Seq></hdrgm:GainMapMax><dc:x>2</dc:x>",
                "<dc:x>2</dc:x>",
            ),
            ("<Container:Directory/><x/>", "<x/>"),
            (r#"<d xmpNote:HasExtendedXMP="ABF7" e="f"/>"#, r#"<d e="f"/>"#),
            // What is cut off, and what only speaks of it.
            (r#"<d hdrgm:Version="1.0"#, r#"<d hdrgm:Version="1.0"#),
            ("<hdrgm:Version>1.0<", "<hdrgm:Version>1.0<"),
            (
                "<dc:x>of (hdrgm:Version)</dc:x>",
                "<dc:x>of (hdrgm:Version)</dc:x>",
            ),
        ] {
            assert_eq!(
                str::from_utf8(&without_parts(given.as_bytes())).unwrap(),
                left,
                "{given}"
            );
        }
    }
}
