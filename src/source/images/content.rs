//! Which kind of image a file is by its first bytes, whatever its name says. What FFmpeg would be asked for
//! as well (streams of pictures one behind the other, the raw files of cameras) is none here.

use super::formats::{jpeg, tiff};
use super::picture_end;
use super::trailing::Trailing;
use crate::annotations::jpeg::walk;
use crate::media::still::ImageKind;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Bytes that the kinds are recognised by.
const HEAD: u64 = 128;

/// Sizes of the headers that BMP files have.
const BMP_HEADERS: [u32; 8] = [12, 16, 40, 52, 56, 64, 108, 124];

/// The kind that a file is by its content.
pub(super) fn kind_of(path: &Path) -> io::Result<Option<ImageKind>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    let kind = kind_in(&head);
    let is_ls = kind == Some(ImageKind::Jpeg) && is_jpeg_ls(&mut BufReader::new(File::open(path)?))?;
    Ok(kind.filter(|_| !is_ls))
}

/// True for JPEG-LS, which FFmpeg decodes: applications' segments and comments may stand before what tells it
/// from JPEG.
fn is_jpeg_ls(file: &mut impl BufRead) -> io::Result<bool> {
    let mut is_ls = false;
    walk(file, |_, marker, _| {
        is_ls = matches!(marker, 0xf7 | 0xf8);
        matches!(marker, 0xe0..=0xef | 0xfe)
    })?;
    Ok(is_ls)
}

/// What files of pictures begin with that are no kind of these and are read by FFmpeg alone.
const OTHERS: [&[u8]; 9] = [
    b"GIF87a",
    b"GIF89a",
    b"\xff\xd8\xff",
    b"\x01\xda\0\x01",
    b"\x01\xda\x01\x01",
    b"\x59\xa6\x6a\x95",
    b"PG ML ",
    b"PG LM ",
    b"SIMPLE  =",
];

/// True for a file that begins as those of a picture do.
pub(super) fn is_picture(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let is_other = || OTHERS.iter().any(|magic| head.starts_with(magic));
    !is_stream(path) && read.is_ok() && (is_other() || kind_in(&head).is_some())
}

/// Extensions of videos that are JPEG files one behind the other, perhaps a single one.
const STREAMS: [&str; 2] = ["mjpeg", "mjpg"];

/// What follows the first picture of a file if its content is of this kind, since its name may be wrong.
pub(super) fn trailing_of(kind: ImageKind, path: &Path) -> io::Result<Option<Trailing>> {
    match kind_of(path)? == Some(kind) {
        true => picture_end::trailing(kind, path),
        false => Ok(None),
    }
}

/// True for QOI pictures one behind the other, which FFmpeg reads as a video.
pub(super) fn are_several(kind: ImageKind, path: &Path) -> bool {
    kind == ImageKind::Qoi && matches!(picture_end::trailing(kind, path), Ok(Some(Trailing::Pictures)))
}

/// True for a GIF file, which FFmpeg reads, whatever its name says.
pub(super) fn is_gif(path: &Path) -> bool {
    let mut head = [0; 6];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && matches!(&head, b"GIF87a" | b"GIF89a")
}

/// The kind of image that a file holds whose name tells none; `None` for several pictures one behind the
/// other, which are a video.
pub(super) fn nameless_still(path: &Path) -> Option<ImageKind> {
    if is_stream(path) {
        return None;
    }
    let kind = kind_of(path).ok().flatten()?;
    let is_other = match kind {
        // Raw files of cameras are TIFF files whose first picture is a preview.
        ImageKind::Tiff => ImageKind::is_other_picture(path) || tiff::begins_with_preview(path),
        // An animation of one picture.
        ImageKind::Png if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("apng")) => true,
        ImageKind::Jpeg => File::open(path)
            .and_then(|file| jpeg::has_second_picture(&mut BufReader::new(file)))
            .unwrap_or_default(),
        ImageKind::Png | ImageKind::Bmp | ImageKind::WebP | ImageKind::Pnm => {
            matches!(picture_end::trailing(kind, path), Ok(Some(Trailing::Pictures)))
        }
        _ => false,
    };
    (!is_other).then_some(kind)
}

/// True for the name of a video that is JPEG files one behind the other.
fn is_stream(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    STREAMS
        .iter()
        .any(|stream| stream.eq_ignore_ascii_case(extension))
}

/// The kind of a file that begins with these bytes.
fn kind_in(head: &[u8]) -> Option<ImageKind> {
    let word = |at: usize| {
        head.get(at..)?
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
    };
    let starts = |magic: &[u8]| head.starts_with(magic);
    match head {
        [b'P', b'F' | b'f', b' ' | b'\t' | b'\r' | b'\n', ..] => Some(ImageKind::Pfm),
        [b'P', b'1'..=b'7', after, ..] => {
            (after.is_ascii_whitespace() || *after == b'#').then_some(ImageKind::Pnm)
        }
        [b'B', b'M', ..] => word(14)
            .is_some_and(|size| BMP_HEADERS.contains(&size))
            .then_some(ImageKind::Bmp),
        // Raw streams of MPEG-4 begin with the same four bytes.
        [0, 0, 1 | 2, 0, count, more, _, _, _, 0, ..] => {
            let list = 6 + 16 * u32::from(u16::from_le_bytes([*count, *more]));
            word(18)
                .is_some_and(|place| list > 6 && place >= list)
                .then_some(ImageKind::Ico)
        }
        [0, 0, 1 | 2, 0, ..] => None,
        [10, 0..=5, 1, 1 | 2 | 4 | 8, ..] => {
            matches!(head.get(64..66), Some([0, 1..=4])).then_some(ImageKind::Pcx)
        }
        // JPEG-LS, see `is_jpeg_ls`.
        [0xff, 0xd8, 0xff, 0xf7, ..] => None,
        // Canon's raw files.
        [b'I', b'I', b'*', 0, _, _, _, _, b'C', b'R', ..] => None,
        _ if starts(b"II*\0") || starts(b"MM\0*") || starts(b"II+\0") || starts(b"MM\0+") => {
            Some(ImageKind::Tiff)
        }
        _ if starts(b"#?RGBE") => Some(ImageKind::Hdr),
        _ if starts(b"8BPS") => Some(ImageKind::Psd),
        _ if starts(b"SDPX") || starts(b"XPDS") => Some(ImageKind::Dpx),
        _ if starts(b"\0\0\0\x0cjP  ") || starts(b"\xff\x4f\xff\x51") => Some(ImageKind::Jp2),
        _ if starts(b"\0\0\0\x0cJXL ") || starts(b"\xff\x0a") => Some(ImageKind::Jxl),
        _ => match image::guess_format(head).ok()? {
            image::ImageFormat::Avif => Some(ImageKind::Avif),
            image::ImageFormat::Qoi => Some(ImageKind::Qoi),
            format => ImageKind::recognised(format),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jpeg_ls_is_recognised_behind_other_segments() {
        let is_ls = |mut file: &[u8]| is_jpeg_ls(&mut file).unwrap();
        let head = b"\xff\xd8\xff\xe8\0\x08SPIFF\0\xff\xfe\0\x05abc";
        assert!(is_ls(
            &[&head[..], b"\xff\xf7\0\x05\x08\0\x01\xff\xda\0\x02"].concat()
        ));
        assert!(!is_ls(
            &[&head[..], b"\xff\xc0\0\x05\x08\0\x01\xff\xf7\0\x02"].concat()
        ));
        assert!(!is_ls(head) && !is_ls(b"\xff\xd8\xff"));
    }

    #[test]
    fn kinds_are_recognised_by_more_than_two_bytes() {
        let icon = [
            &[
                0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0, 8, 0, 9, 0, 0, 0, 22, 0, 0, 0,
            ][..],
            b"more",
        ]
        .concat();
        let bitmap = [&b"BM"[..], &[0; 12], &[40, 0, 0, 0]].concat();
        let paintbrush = [&[10, 5, 1, 8][..], &[0; 61], &[3]].concat();
        for (head, kind) in [
            (&b"PF\n"[..], Some(ImageKind::Pfm)),
            (b"P6 1 1 255 abc", Some(ImageKind::Pnm)),
            (b"P600 is a printer", None),
            (b"\xff\xd8\xff\xf7", None),
            (&bitmap, Some(ImageKind::Bmp)),
            (b"BMW drives on and on..", None),
            (&icon, Some(ImageKind::Ico)),
            // MPEG-4: a video object, and a layer of it.
            (
                b"\0\0\x01\0\0\0\x01\x20\0\x84\x40\xfa\x28\x40\x20\xf0\xa3\x1f\0\0\0\0",
                None,
            ),
            (&paintbrush, Some(ImageKind::Pcx)),
            (b"\n\x05 text", None),
            (b"II*\0\x08\0\0\0", Some(ImageKind::Tiff)),
            (b"MM\0+\0\x08\0\0", Some(ImageKind::Tiff)),
            (b"II*\0\x10\0\0\0CR\x02\0", None),
            (b"\0\0\0\x1cftypavif", Some(ImageKind::Avif)),
            (b"\0\0\0\x1cftypisom", None),
            (b"\x89PNG\r\n\x1a\n", Some(ImageKind::Png)),
            (b"\xff\xd8\xff\xe0", Some(ImageKind::Jpeg)),
            (b"GIF89a", None),
            (b"YUV4MPEG2 W8", None),
            (b"", None),
        ] {
            assert_eq!(kind_in(head), kind, "{}", head.escape_ascii());
        }
    }
}
