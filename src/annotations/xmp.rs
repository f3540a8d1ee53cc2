//! The orientation inside an XMP packet, which would otherwise contradict the one that the file states.
//!
//! ```text
//!  <rdf:Description tiff:Orientation="6" ..>     or     <tiff:Orientation>6</tiff:Orientation>
//! ```

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
}
