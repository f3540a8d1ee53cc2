//! Packets at which decoding can begin and gives the same pictures as from the beginning.
//!
//! Containers and parsers mark more packets as key frames than those: a stream that is refreshed bit by bit
//! (periodic intra refresh) has a mark where a decoder may join in, whose first pictures are wrong. H.264
//! says which is which by NAL units: a picture of type IDR, or a recovery point in no frames.

/// The type of a slice of an IDR picture, and of supplemental information (H.264, table 7-1).
const IDR: u8 = 5;
const SEI: u8 = 6;

/// The kind of supplemental information that says where pictures are right again (H.264, D.1.8).
const RECOVERY_POINT: u32 = 6;

/// Codecs besides those of pictures by themselves whose marked packets need nothing before them.
const CLEAN: &[&str] = &[
    "hevc",
    "vp8",
    "vp9",
    "av1",
    "mpeg1video",
    "mpeg2video",
    "mpeg4",
    "msmpeg4v2",
    "msmpeg4v3",
    "h263",
    "h263p",
    "flv1",
    "theora",
    "ffv1",
    "wmv1",
    "wmv2",
    "snow",
];

/// True if such packets of `codec` can be recognised.
pub(in crate::source::video) fn has_clean_keys(codec: &str, is_intra_only: bool) -> bool {
    is_intra_only || codec == "h264" || CLEAN.contains(&codec)
}

/// True if a packet that is marked as a key frame of `codec` needs nothing before it. `headers` is what the
/// container stores of the codec's headers.
pub(in crate::source::video) fn is_clean(codec: &str, headers: &[u8], packet: &[u8]) -> bool {
    codec != "h264" || units(headers, packet).into_iter().any(is_clean_unit)
}

/// True if a packet of H.264 holds an IDR picture, which no later picture refers beyond.
pub(in crate::source::video) fn is_idr(headers: &[u8], packet: &[u8]) -> bool {
    let is_idr = |unit: &[u8]| unit.first().is_some_and(|head| head & 31 == IDR);
    units(headers, packet).into_iter().any(is_idr)
}

/// True for a NAL unit that shows that a picture needs nothing before it.
fn is_clean_unit(unit: &[u8]) -> bool {
    match unit.first().map(|head| head & 31) {
        Some(IDR) => true,
        Some(SEI) => recovers_at_once(unit.get(1..).unwrap_or_default()),
        _ => false,
    }
}

/// True if one of the messages is a recovery point in no frames.
fn recovers_at_once(mut messages: &[u8]) -> bool {
    // Sums of bytes, of which all but the last are 255.
    let number = |messages: &mut &[u8]| -> Option<u32> {
        let mut sum = 0_u32;
        loop {
            let (&byte, rest) = messages.split_first()?;
            *messages = rest;
            sum = sum.checked_add(byte.into())?;
            if byte < 255 {
                return Some(sum);
            }
        }
    };
    while messages.len() > 2 {
        let (Some(kind), Some(size)) = (number(&mut messages), number(&mut messages)) else {
            return false;
        };
        let Some((message, rest)) = messages.split_at_checked(size as usize) else {
            return false;
        };
        if kind == RECOVERY_POINT {
            // An Exp-Golomb code, of which a first bit of 1 is zero.
            return message.first().is_some_and(|byte| byte & 0x80 != 0);
        }
        messages = rest;
    }
    false
}

/// The NAL units of a packet: behind their lengths where the headers are an avcC box, else behind start
/// codes.
fn units<'a>(headers: &[u8], packet: &'a [u8]) -> Vec<&'a [u8]> {
    let mut found = Vec::new();
    if let [1, _, _, _, lengths, ..] = headers {
        let bytes = usize::from(lengths & 3) + 1;
        let mut rest = packet;
        while let Some((length, after)) = rest.split_at_checked(bytes) {
            let length = length
                .iter()
                .fold(0_usize, |sum, &byte| sum << 8 | usize::from(byte));
            let Some((unit, after)) = after.split_at_checked(length) else {
                break;
            };
            found.push(unit);
            rest = after;
        }
        return found;
    }
    let starts = packet.windows(3).enumerate();
    let starts = starts.filter_map(|(at, window)| (window == [0, 0, 1]).then_some(at + 3));
    found.extend(starts.filter_map(|start| packet.get(start..)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_points_and_idr_pictures_are_told_apart() {
        let avcc = [1, 100, 0, 31, 255];
        for (unit, expected) in [
            (&[0x65, 1, 2][..], true),
            (&[0x41, 1, 2], false),
            (&[6, 6, 1, 0xc4, 0x80], true),
            (&[6, 6, 1, 0x44, 0x80], false),
            // Behind a message of another kind, of 2 bytes.
            (&[6, 5, 2, 9, 9, 6, 1, 0x80, 0x80], true),
            (&[6, 5, 200, 9], false),
            (&[], false),
        ] {
            let plain = [&[0, 0, 0, 1, 9, 16, 0, 0, 1], unit].concat();
            let length = [0, 0, 0, unit.len() as u8];
            let boxed = [&[0, 0, 0, 2, 9, 16][..], &length, unit].concat();
            assert_eq!(is_clean("h264", &[], &plain), expected, "{unit:?}");
            assert_eq!(is_clean("h264", &avcc, &boxed), expected, "{unit:?}");
        }
        assert!(is_clean("hevc", &[], &[]));
    }
}
