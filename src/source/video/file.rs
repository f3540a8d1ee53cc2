//! The input: its name, what may be opened for it, and errors that name it.

use super::known::extent::Extent;
use super::known::extent::sizes::extent_of;
use crate::media::ffmpeg::{Access, AvError, AvFormat, Demuxer, OpenFailure};
#[cfg(feature = "images")]
use crate::media::still::{Decoding, ImageKind};
use crate::source::SourceError;
use crate::waiting::{StallTimeout, WaitLimit};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Advice when a file holds no video.
const NO_VIDEO: &str = "give a video file, an image or a directory of images";

/// A file, a URL, or a device such as /dev/stdin.
#[derive(Debug, Clone)]
pub(super) struct InputFile {
    pub(super) path: PathBuf,
    /// The path in messages.
    pub(super) name: String,
    /// The files and protocols that may be opened for it.
    pub(super) access: Access,
    /// What ends the waits for it.
    pub(super) limit: WaitLimit,
    /// The pipe that the path names, if it is open already.
    pub(super) pipe: Option<Arc<File>>,
}

impl InputFile {
    /// Opens it with FFmpeg's demuxer for its content.
    pub(super) fn open(&self) -> Result<Demuxer, SourceError> {
        let (path, access, timeout) = (self.path.as_path(), self.access, self.limit.timeout);
        let invalid = |problem: String| self.invalid(problem);
        if !access.urls
            && let Err(cause) = path.metadata()
        {
            if cause.kind() == std::io::ErrorKind::NotFound && is_url_like(&self.name) {
                return Err(invalid(
                    "there is no such file; if it is a URL, --allow-urls lets FFmpeg open it".to_owned(),
                ));
            }
            return Err(SourceError::Io {
                path: self.name.clone(),
                cause,
            });
        }
        is_within_a_packet(path)?;
        let opened = Demuxer::open(path, access, Some(&self.limit), self.pipe.as_deref());
        let demuxer = opened.map_err(|failure| match failure {
            OpenFailure::Refused(problem) => invalid(problem),
            OpenFailure::TimedOut => invalid(StallTimeout::sentence(timeout)),
            OpenFailure::Open(e) if e.is_invalid_data() || ends_early(path, e) => {
                invalid(match extent_of(path, "", "") {
                    Extent::Missing(bytes) => format!(
                        "it was cut off: by its own account its last {bytes} bytes are missing, and with \
                         them what tells how to read it"
                    ),
                    _ if !e.is_invalid_data() => {
                        "it ends before any of its streams begins: it was cut off, or nothing was written \
                         into it; get the whole file"
                            .to_owned()
                    }
                    _ => self.unrecognized(),
                })
            }
            OpenFailure::Open(e) | OpenFailure::Streams(e) if e.is_claim(length(path)) => invalid(
                "it states more than could be held in memory, and more than it has: it is damaged".to_owned(),
            ),
            OpenFailure::Open(e) | OpenFailure::Streams(e) if e.is_of_seeking() && is_pipe(path) => invalid(
                "a file of its kind, such as APNG, cannot be read from a pipe, because its reader must go \
                 back; give the file"
                    .to_owned(),
            ),
            // A demuxer that is chosen by the name takes only what options describe.
            OpenFailure::Open(e) if e.is_refusal() => invalid(self.unrecognized()),
            OpenFailure::Open(e) => self.lacking(e),
            OpenFailure::Streams(e) => invalid(format!(
                "its streams cannot be understood ({e}); the file may be damaged or cut off at its start"
            )),
        })?;
        if demuxer.format_name() == "tty" {
            // FFmpeg would draw any text's letters as a film.
            return Err(invalid(format!("it is a text file; {NO_VIDEO}")));
        }
        Ok(demuxer)
    }

    /// What to say of a file that no demuxer knows.
    fn unrecognized(&self) -> String {
        let mut head = Vec::new();
        if self.path.is_file()
            && let Ok(file) = File::open(&self.path)
            && file.take(12).read_to_end(&mut head).is_ok()
        {
            match &head[..] {
                [b'8', b'B', b'P', b'S', 0, 2, ..] => {
                    return "is a large Photoshop document (PSB), which is not read; write it as PSD or TIFF"
                        .to_owned();
                }
                [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..]
                    if [
                        b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1",
                    ]
                    .iter()
                    .any(|known| brand == &known[..]) =>
                {
                    return "is a HEIF picture (HEIC), which is not read; write it as JPEG, PNG or AVIF"
                        .to_owned();
                }
                _ => {}
            }
        }
        match self.is_raw() {
            true => self.raw_advice(),
            false => format!("FFmpeg finds no audio or video in it; {NO_VIDEO}"),
        }
    }

    /// True for the name of raw video: an extension that is usual for it, or names a pixel format.
    pub(super) fn is_raw(&self) -> bool {
        const USUAL: [&str; 15] = [
            "yuv", "raw", "rgb", "rgb24", "bgr", "i420", "yv12", "yuy2", "uyvy", "yuyv", "y8", "y16", "v210",
            "cif", "qcif",
        ];
        let extension = self.path.extension().and_then(OsStr::to_str);
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        USUAL.contains(&extension.as_str()) || AvFormat::from_name(&extension).is_some()
    }

    /// How raw video is read.
    pub(super) fn raw_advice(&self) -> String {
        let name = &self.name;
        format!(
            "raw video does not state its size; use raw:WxH:FORMAT:FPS:{name}, such as \
             raw:1920x1080:yuv420p:25:{name}"
        )
    }

    /// The error that says what is wrong with it.
    pub(super) fn invalid(&self, problem: String) -> SourceError {
        SourceError::Invalid {
            path: self.name.clone(),
            problem,
        }
    }

    /// The error for a call below that failed for want of something of the machine's.
    pub(super) fn lacking(&self, e: AvError) -> SourceError {
        SourceError::Io {
            path: self.name.clone(),
            cause: e.to_io(),
        }
    }
}

/// Bytes of a file.
fn length(path: &Path) -> Option<u64> {
    path.metadata()
        .ok()
        .filter(std::fs::Metadata::is_file)
        .map(|file| file.len())
}

/// True for a pipe or a device.
fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| !facts.is_file())
}

/// True if FFmpeg's error `e` means that the file ends too early. Some demuxers report that as an error of
/// the disk, though the file can be read to its end.
fn ends_early(path: &Path, e: AvError) -> bool {
    const BEGINNING: u64 = 1 << 20;
    let reads = || -> std::io::Result<u64> {
        let mut beginning = File::open(path)?.take(BEGINNING);
        std::io::copy(&mut beginning, &mut std::io::sink())
    };
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    is_file && (e.is_eof() || e.is_of_disk() && reads().is_ok_and(|read| read < BEGINNING))
}

/// Refuses a picture that is larger than FFmpeg's packets get, before two gigabytes of it are read for
/// nothing.
fn is_within_a_packet(path: &Path) -> Result<(), SourceError> {
    #[cfg(feature = "images")]
    let is_picture = ImageKind::read(path).is_some_and(|kind| kind.decoding() == Decoding::Ffmpeg);
    #[cfg(not(feature = "images"))]
    let is_picture = false;
    let bytes = path.metadata().map_or(0, |file| file.len());
    if is_picture && bytes > i32::MAX as u64 {
        return Err(SourceError::Invalid {
            path: path.display().to_string(),
            problem: format!("is a picture of {bytes} bytes, and FFmpeg reads pictures of up to 2 GiB"),
        });
    }
    Ok(())
}

/// True for what looks like the name of a protocol and what it is to open.
pub fn is_url_like(name: &str) -> bool {
    name.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.,".contains(c))
    })
}
