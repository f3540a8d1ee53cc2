//! Truevision TGA files: the identity behind the header, and the extension area that the footer leads to.
//! Read only.
//!
//! ```text
//!  0 length of identity, .., 18 | identity | colours | pixels | extension | its place, developer's, mark
//!
//!  extension:  2 author, 41 bytes | 43 comments, 4 x 81 | 367 month, day, year, hour, minute, second
//!              379 job, 41 | 420 its time, 6 | 426 software, 41 | 467 version | 470 key colour
//!              474 pixel's width, height | 478 gamma, a fraction | 482 colours | 486 preview | 490 rows
//!              494 kind of alpha
//! ```

use crate::annotations::FileMetadata;
use crate::annotations::bytes::{array, le32, part, text};

/// What ends a file of the second version.
pub(crate) const FOOTER: &[u8] = b"TRUEVISION-XFILE.\0";

/// Bytes of the footer: two places and [`FOOTER`].
const FOOTER_LEN: usize = 26;

/// Bytes of the header.
const HEADER: usize = 18;

/// Bytes of the extension area.
const EXTENSION: usize = 495;

/// What the extension area says of the pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extension {
    /// The kind of alpha, 0 to 4; `None` if there is no extension area.
    pub alpha_kind: Option<u8>,
    /// Width over height of a pixel; 0 in the second number if it is not stated.
    pub pixel_aspect: (i32, i32),
}

/// The extension area as far as it is there, and where its developer's area is, 0 if nowhere.
fn extension(file: &[u8]) -> Option<(&[u8], u32)> {
    let footer = file.last_chunk::<FOOTER_LEN>()?;
    let (place, more) = (le32(footer, 0)?, le32(footer, 4)?);
    let area = match place {
        0 => &[],
        place => file.get(place as usize..)?,
    };
    footer.ends_with(FOOTER).then_some((area, more))
}

fn word(bytes: &[u8], at: usize) -> u16 {
    array(bytes, at).map_or(0, u16::from_le_bytes)
}

/// What a whole file's extension area says of the pixels.
#[must_use]
pub fn extension_of(file: &[u8]) -> Extension {
    let Some((area, _)) = extension(file) else {
        return Extension::default();
    };
    Extension {
        alpha_kind: area.get(494).copied(),
        pixel_aspect: (word(area, 474).into(), word(area, 476).into()),
    }
}

/// What a whole file says beside its pixels.
#[must_use]
pub fn read(file: &[u8]) -> FileMetadata {
    let mut found = FileMetadata::default();
    let identity = file.first().and_then(|&length| part(file, HEADER, length.into()));
    let identity = identity.unwrap_or_default();
    let identity = &identity[..identity
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |at| at + 1)];
    if identity.iter().any(u8::is_ascii_control) {
        found.unknown.push("identity".to_owned());
    } else {
        found
            .annotations
            .take_text("Title", text(identity).trim().to_owned());
    }
    let Some((area, more)) = extension(file) else {
        return found;
    };
    if more > 0 {
        found.unknown.push("developer's area".to_owned());
    }
    if area.len() >= EXTENSION {
        read_extension(area, &mut found);
    }
    found
}

fn read_extension(area: &[u8], found: &mut FileMetadata) {
    let until_zero = |at, length| {
        let field = part(area, at, length).unwrap_or_default();
        let end = field.iter().position(|&byte| byte == 0);
        text(&field[..end.unwrap_or(length)]).trim().to_owned()
    };
    let comments: Vec<String> = [43, 124, 205, 286]
        .into_iter()
        .map(|at| until_zero(at, 81))
        .filter(|line| !line.is_empty())
        .collect();
    let annotations = &mut found.annotations;
    annotations.take_text("Author", until_zero(2, 41));
    annotations.take_text("Comment", comments.join("\n"));
    annotations.take_text("Job", until_zero(379, 41));
    annotations.take_text("Software", until_zero(426, 41));
    let [month, day, year, hour, minute, second] = [367, 369, 371, 373, 375, 377].map(|at| word(area, at));
    if month > 0 {
        let [high, low] = year.to_be_bytes();
        let small = [month, day, hour, minute, second].map(|number| number.min(255) as u8);
        let [month, day, hour, minute, second] = small;
        annotations.time = Some([high, low, month, day, hour, minute, second]);
    }
    // The samples are those of light to the power of one over gamma.
    if let (gamma @ 1.., over @ 1..) = (word(area, 478), word(area, 480)) {
        annotations.gamma = Some((100_000 * u32::from(over)).div_ceil(gamma.into()));
    }
    // A preview at 486 is passed over, as in other files.
    let is_set = |at, length| part(area, at, length).is_some_and(|field| field.iter().any(|&byte| byte != 0));
    for (name, at, length) in [
        ("time of the job", 420, 6),
        ("key colour", 470, 4),
        ("table of colour correction", 482, 4),
    ] {
        if is_set(at, length) {
            found.unknown.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_and_extension_are_read() {
        let mut area = vec![0; EXTENSION];
        for (at, bytes) in [
            (2, &b"somebody"[..]),
            (43, b"one line"),
            (124, b"and one"),
            (367, &[2, 0, 3, 0, 0xe4, 7, 4, 0, 5, 0, 6, 0]),
            (379, b"a job"),
            (474, &[2, 0, 1, 0, 22, 0, 10, 0]),
            (486, &[18]),
            (494, &[4]),
        ] {
            area[at..at + bytes.len()].copy_from_slice(bytes);
        }
        let mut file = vec![4];
        file.resize(HEADER, 0);
        file.extend(b"name");
        let plain = read(&file);
        assert_eq!(plain.annotations.texts, [("Title".into(), "name".into())]);
        assert_eq!(extension_of(&file), Extension::default());
        file.extend(area);
        file.extend([&[22, 0, 0, 0, 1, 0, 0, 0], FOOTER].concat());
        let found = read(&file);
        let texts: Vec<&str> = found
            .annotations
            .texts
            .iter()
            .map(|(_, text)| &text[..])
            .collect();
        assert_eq!(texts, ["name", "somebody", "one line\nand one", "a job"]);
        assert_eq!(found.annotations.time, Some([7, 0xe4, 2, 3, 4, 5, 6]));
        assert_eq!(found.annotations.gamma, Some(45455));
        assert_eq!(found.unknown, ["developer's area"]);
        let said = extension_of(&file);
        assert_eq!((said.alpha_kind, said.pixel_aspect), (Some(4), (2, 1)));
        for end in 0..file.len() {
            let _ = (read(&file[..end]), extension_of(&file[end..]));
        }
    }
}
