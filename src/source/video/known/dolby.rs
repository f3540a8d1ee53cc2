//! Dolby Vision streams whose base layer is no ordinary picture.
//!
//! Most profiles have a base layer that shows right by itself, as SDR, HDR10 or HLG, and a reshaping beside
//! it that FFmpeg's encoders do not write. Profile 5 and others without a compatible base layer are coded in
//! a colour space of Dolby's own (IPT), which looks violet and green to everybody who does not apply the
//! reshaping.

use crate::frame::SideData;
use crate::frame::fact::Fact;

/// A sentence if the pictures cannot be filtered as they are. `stream` and `frame` are blocks of the stream
/// and of its first frame.
pub(in crate::source::video) fn unfit_base_layer(stream: &[SideData], frame: &[SideData]) -> Option<String> {
    let of = |blocks: &[SideData]| -> Vec<Box<[u8]>> {
        let dolby = blocks.iter().filter(|b| b.fact == Fact::DolbyVision);
        dolby.map(|b| b.data.as_ref().into()).collect()
    };
    let profile = of(stream)
        .iter()
        .find_map(|block| configured(block))
        .or_else(|| of(frame).iter().find_map(|block| reshaping(block)))?;
    Some(format!(
        "it is Dolby Vision of {profile}, whose pictures are no ordinary ones without the reshaping that \
         FFmpeg does not apply: colours would be violet and green; convert it to a profile with an HDR10 or \
         SDR base layer first (profile 8.1, 8.2 or 8.4)"
    ))
}

/// Reads the container's configuration record: two bytes of version, profile, level, three flags,
/// compatibility, and from FFmpeg 7.1 on how its metadata is compressed.
fn configured(block: &[u8]) -> Option<String> {
    let &[_, _, profile, _, _, _, _, compatibility, ..] = block else {
        return None;
    };
    // Profiles below 8 other than 5 have two layers with an ordinary base, whatever their compatibility says.
    match (profile, compatibility) {
        (5, _) => Some("profile 5".to_owned()),
        (8.., 0) => Some(format!("profile {profile}.0")),
        _ => None,
    }
}

/// Reads the head of FFmpeg's parsed reshaping: it starts with a word that says where the header lies, which
/// holds the RPU's own profile in its fifth byte and in its eleventh whether the base layer has full range.
/// Only profile 5 has profile 0 and full range.
fn reshaping(block: &[u8]) -> Option<String> {
    let word = block.get(..size_of::<usize>())?;
    let header = usize::from_ne_bytes(word.try_into().ok()?);
    let rpu_profile = *block.get(header.checked_add(4)?)?;
    let full_range = *block.get(header.checked_add(10)?)?;
    (rpu_profile == 0 && full_range == 1).then(|| "profile 5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_without_an_ordinary_base_layer_are_refused() {
        let record = |profile: u8, compatibility: u8| [1, 0, profile, 6, 1, 0, 1, compatibility];
        for (profile, compatibility, refused) in [
            (5, 0, true),
            (5, 1, true),
            (8, 0, true),
            (10, 0, true),
            (8, 1, false),
            (8, 4, false),
            (7, 6, false),
            (4, 2, false),
        ] {
            let found = configured(&record(profile, compatibility));
            assert_eq!(found.is_some(), refused, "{profile}.{compatibility}");
        }
        let mut block = vec![0_u8; 64];
        block[..8].copy_from_slice(&24_usize.to_ne_bytes());
        assert_eq!(reshaping(&block), None);
        block[24 + 10] = 1;
        assert!(reshaping(&block).is_some());
        block[24 + 4] = 1;
        assert_eq!(reshaping(&block), None);
    }
}
