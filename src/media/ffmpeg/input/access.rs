//! What an input may open beside itself: nothing, unless the user says otherwise.
//!
//! Playlists, manifests and scripts make a demuxer open further files, and what is called clip.mp4 may be
//! one. Demuxers that open files by ways of their own are left out by name; all others open them through a
//! callback of ours, which refuses whatever is not the input itself.
#![allow(unsafe_code)]

use crate::media::ffmpeg::text::text;
use crate::waiting::StallTimeout;
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// What FFmpeg may open for an input, and how large its pictures may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// URLs; without it a name is that of a file.
    pub urls: bool,
    /// Playlists, manifests and lists of files, and what they name in their own folder or on their own host.
    pub playlists: bool,
    /// Pixels of the largest picture that is decoded; `None` leaves that to FFmpeg, or to the source.
    pub max_pixels: Option<u64>,
}

/// Demuxers that open what a file names, by the option that allows them.
const PLAYLISTS: &[&str] = &["hls", "dash", "concat", "imf", "vobsub"];
/// Demuxers that open the network by what a file says.
const NETWORK: &[&str] = &["rtsp", "sdp", "sap", "rtp"];
/// Demuxers that run scripts or read devices; none of them is a file of pictures.
const NEVER: &[&str] = &["avisynth", "vapoursynth", "lavfi", "dvdvideo"];

/// What HLS playlists and lists of files (ffconcat) begin with, by which alone FFmpeg knows them.
const HLS: &[u8] = b"#EXTM3U";
pub(super) const FFCONCAT: &[u8] = b"ffconcat version 1.0";

impl Access {
    /// The demuxers of lists that may read the file, or URL, at `path` and what it names: within a list there
    /// is none of another kind, which would open files by ways of its own.
    fn lists(self, path: &Path) -> &'static [&'static str] {
        if !self.playlists {
            &[]
        } else if !path.is_file() {
            PLAYLISTS
        } else if begins_with(path, HLS) {
            &["hls"]
        } else if begins_with(path, FFCONCAT) {
            &["concat"]
        } else {
            &["dash", "imf", "vobsub"]
        }
    }

    /// The names of the demuxers that may read the input at `path`, as FFmpeg lists them.
    pub(in crate::media::ffmpeg) fn demuxers(self, path: &Path) -> CString {
        let lists = self.lists(path);
        let mut names = Vec::new();
        let mut state: *mut c_void = ptr::null_mut();
        // SAFETY: steps through FFmpeg's static list; `state` is its own.
        while let Some(format) = unsafe { ffi::av_demuxer_iterate(&mut state).as_ref() } {
            let name = text(format.name);
            let is_of = |list: &[&str]| name.split(',').any(|name| list.contains(&name));
            let is_refused =
                is_of(NEVER) || is_of(PLAYLISTS) && !is_of(lists) || !self.urls && is_of(NETWORK);
            if !is_refused {
                names.push(name);
            }
        }
        CString::new(names.join(",")).unwrap_or_default()
    }

    /// Why a file is not read that the demuxer of this name would read.
    pub(in crate::media::ffmpeg) fn refusal(format: &str) -> String {
        let is_of = |list: &[&str]| format.split(',').any(|name| list.contains(&name));
        if is_of(PLAYLISTS) {
            format!(
                "it is a list of other files ({format}) and no video itself; --allow-playlists reads what it \
                 names in its own folder"
            )
        } else if is_of(NETWORK) {
            format!("it names streams in a network ({format}); --allow-urls opens them")
        } else {
            format!("it is for FFmpeg's {format} reader, which opens more than one file")
        }
    }
}

/// True for the demuxer of a list, whose own bytes are no pictures.
pub(super) fn is_of_list(format: &str) -> bool {
    format.split(',').any(|name| PLAYLISTS.contains(&name))
}

/// True for a file that begins with `mark`.
pub(super) fn begins_with(path: &Path, mark: &[u8]) -> bool {
    let mut start = Vec::new();
    let read = |file: File| file.take(mark.len() as u64).read_to_end(&mut start);
    path.is_file() && File::open(path).and_then(read).is_ok() && start == mark
}

/// True for an HLS playlist. FFmpeg 7.1 and newer know one by its name alone.
pub(in crate::media::ffmpeg) fn begins_as_playlist(path: &Path) -> bool {
    begins_with(path, HLS)
}

/// Files that FFmpeg may open before it has read an input's beginning: a server's playlist may name itself.
const MOST_AT_BEGINNING: u32 = 256;

/// How FFmpeg opens files.
type Open = unsafe extern "C" fn(
    *mut ffi::AVFormatContext,
    *mut *mut ffi::AVIOContext,
    *const c_char,
    c_int,
    *mut *mut ffi::AVDictionary,
) -> c_int;

/// What stands between a demuxer and the files that it wants to open. FFmpeg's context points to it.
pub(in crate::media::ffmpeg) struct Gate {
    name: CString,
    access: Access,
    /// FFmpeg's own way of opening.
    open: Option<Open>,
    /// Why a file was not opened: a sentence.
    refused: Mutex<Option<String>>,
    /// Files that may be opened still while the input's beginning is read.
    left: AtomicU32,
    pub(in crate::media::ffmpeg) patience: StallTimeout,
}

impl Gate {
    /// A gate for the input at `path`, which FFmpeg calls `name`, on `context`, which must be dropped before
    /// it.
    pub(in crate::media::ffmpeg) fn install(
        context: *mut ffi::AVFormatContext,
        (path, name): (&Path, &CStr),
        access: Access,
        patience: StallTimeout,
    ) -> Box<Gate> {
        // SAFETY: the context is allocated and not open yet, so that nobody else uses it. The gate is boxed
        // and outlives the context; the list is FFmpeg's own copy.
        unsafe {
            let gate = Box::new(Gate {
                name: name.to_owned(),
                access,
                open: (*context).io_open,
                refused: Mutex::default(),
                left: AtomicU32::new(MOST_AT_BEGINNING),
                patience,
            });
            let opaque = ptr::from_ref(&*gate).cast_mut().cast::<c_void>();
            (*context).opaque = opaque;
            (*context).io_open = Some(open);
            (*context).interrupt_callback = ffi::AVIOInterruptCB {
                callback: Some(is_over),
                opaque,
            };
            (*context).format_whitelist = ffi::av_strdup(access.demuxers(path).as_ptr());
            if !access.urls {
                (*context).protocol_whitelist = ffi::av_strdup(c"file,crypto".as_ptr());
            }
            gate
        }
    }

    /// Why a file was not opened that was requested, if there was one.
    pub(in crate::media::ffmpeg) fn refused(&self) -> Option<String> {
        self.refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The input's beginning was read: from now on it may open as many files as it has.
    pub(in crate::media::ffmpeg) fn has_begun(&self) {
        self.left.store(u32::MAX, Ordering::Relaxed);
    }

    /// Counts a file that is to be opened; false if it is one too many.
    fn counts(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left != u32::MAX {
            self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        }
        left > 0
    }

    /// Why `url` is not opened.
    fn refusal(&self, url: &CStr) -> String {
        let name = url.to_string_lossy();
        let file = name.strip_prefix("file:").unwrap_or(&name);
        if !self.access.playlists {
            return format!(
                "it names another file, {file}, and one input is one file; --allow-playlists reads what lies \
                 in its own folder"
            );
        }
        match (place(self.name.to_bytes()), place(url.to_bytes())) {
            (Place::File(_), Place::File(path)) => match path.metadata() {
                Err(cause) if cause.kind() == ErrorKind::NotFound => {
                    format!("it names {file}, and there is no such file")
                }
                Err(cause) => format!("it names {file}, which cannot be read: {cause}"),
                Ok(_) => format!("it names {file}, and of a list only what lies in its own folder is read"),
            },
            (Place::Host(_), Place::Host(_)) if self.access.urls => {
                format!("it names {file}, and of a list only what lies on its own host is read")
            }
            _ => format!("it names {file}, and a list in a file may name files in its own folder alone"),
        }
    }

    /// Refuses `url`, which FFmpeg opens by a way of its own after it has said so, if it is there and may not
    /// be opened: nothing is read of it.
    pub(in crate::media::ffmpeg) fn judge(&self, url: &CStr) {
        let is_missing = match place(url.to_bytes()) {
            Place::File(path) => !path.exists(),
            Place::Host(_) | Place::Elsewhere => false,
        };
        if !is_missing && !self.allows(url) {
            self.refuse(self.refusal(url));
        }
    }

    fn refuse(&self, why: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get_or_insert(why);
    }

    /// True if `url` may be opened.
    fn allows(&self, url: &CStr) -> bool {
        if url == &*self.name {
            return true;
        }
        if !self.access.playlists {
            return false;
        }
        let (own, other) = (place(self.name.to_bytes()), place(url.to_bytes()));
        match (own, other) {
            (Place::Host(own), Place::Host(other)) => self.access.urls && own == other,
            (Place::File(own), Place::File(other)) => {
                let folder = own.canonicalize().ok();
                let folder = folder.as_deref().and_then(Path::parent);
                let other = other.canonicalize().ok();
                folder
                    .zip(other)
                    .is_some_and(|(folder, other)| other.starts_with(folder))
            }
            _ => false,
        }
    }
}

/// Where a name leads.
enum Place<'a> {
    File(&'a Path),
    Host(&'a [u8]),
    Elsewhere,
}

fn place(name: &[u8]) -> Place<'_> {
    let name = [&b"crypto+"[..], b"crypto:"]
        .iter()
        .find_map(|prefix| name.strip_prefix(*prefix))
        .unwrap_or(name);
    if let Some(path) = name.strip_prefix(b"file:") {
        return Place::File(Path::new(OsStr::from_bytes(path)));
    }
    let scheme = name
        .iter()
        .position(|b| !b.is_ascii_alphanumeric() && !b"+-.".contains(b));
    match scheme {
        Some(at) if at > 0 && name[at..].starts_with(b"://") => {
            let rest = &name[at + 3..];
            let end = rest.iter().position(|&b| b == b'/' || b == b'?');
            Place::Host(&rest[..end.unwrap_or(rest.len())])
        }
        Some(at) if at > 0 && name[at] == b':' => Place::Elsewhere,
        _ => Place::File(Path::new(OsStr::from_bytes(name))),
    }
}

unsafe extern "C" fn is_over(opaque: *mut c_void) -> c_int {
    // SAFETY: FFmpeg hands back the gate, which lives as long as the context.
    let gate = unsafe { &*opaque.cast::<Gate>() };
    c_int::from(gate.patience.is_over() || gate.refused().is_some())
}

unsafe extern "C" fn open(
    context: *mut ffi::AVFormatContext,
    io: *mut *mut ffi::AVIOContext,
    url: *const c_char,
    flags: c_int,
    options: *mut *mut ffi::AVDictionary,
) -> c_int {
    // SAFETY: FFmpeg hands over its context, whose `opaque` is the gate, or null in a context that a demuxer
    // made for itself, and a name that ends in a zero.
    let (gate, url) = unsafe { ((*context).opaque.cast::<Gate>().as_ref(), CStr::from_ptr(url)) };
    let Some(gate) = gate else {
        return ffi::AVERROR(ffi::EPERM);
    };
    if gate.patience.is_over() {
        return ffi::AVERROR_EXIT;
    }
    let writes = flags & ffi::AVIO_FLAG_WRITE as c_int != 0;
    if !gate.counts() {
        gate.refuse(format!(
            "it names more than {MOST_AT_BEGINNING} files that are to be opened before its first picture"
        ));
        return ffi::AVERROR(ffi::EPERM);
    }
    match gate.open {
        // SAFETY: what FFmpeg handed over goes to the function that it had there.
        Some(open) if !writes && gate.allows(url) => unsafe {
            open(context, io, url.as_ptr(), flags, options)
        },
        _ => {
            gate.refuse(gate.refusal(url));
            ffi::AVERROR(ffi::EPERM)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(name: &str, urls: bool, playlists: bool) -> Gate {
        Gate {
            name: CString::new(name).unwrap(),
            access: Access {
                urls,
                playlists,
                max_pixels: None,
            },
            open: None,
            refused: Mutex::default(),
            left: AtomicU32::new(MOST_AT_BEGINNING),
            patience: StallTimeout::new(None),
        }
    }

    fn allows(gate: &Gate, url: &str) -> bool {
        gate.allows(&CString::new(url).unwrap())
    }

    #[test]
    fn only_the_input_itself_is_opened_and_a_playlist_its_own_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir(at("list")).unwrap();
        for name in ["list/a.m3u8", "list/a.ts", "secret.ts"] {
            std::fs::write(at(name), b"").unwrap();
        }
        std::os::unix::fs::symlink(at("secret.ts"), at("list/link.ts")).unwrap();
        let own = format!("file:{}", at("list/a.m3u8"));
        let closed = gate(&own, true, false);
        assert!(allows(&closed, &own) && !allows(&closed, &at("list/a.ts")));
        let list = gate(&own, true, true);
        assert!(
            allows(&list, &at("list/a.ts")) && allows(&list, &format!("crypto+file:{}", at("list/a.ts")))
        );
        for refused in [
            "secret.ts",
            "list/../secret.ts",
            "list/link.ts",
            "list/missing.ts",
        ] {
            assert!(!allows(&list, &at(refused)), "{refused}");
            assert!(!allows(&list, &format!("file:{}", at(refused))), "{refused}");
        }
        for refused in [
            "http://host/a.ts",
            "concat:a|b",
            "subfile,,start,0,end,0,,:a",
            "data:abc",
        ] {
            assert!(!allows(&list, refused), "{refused}");
        }
    }

    #[test]
    fn a_playlist_on_a_host_stays_on_that_host() {
        let list = gate("https://host:8000/a/b.m3u8", true, true);
        assert!(allows(&list, "https://host:8000/c.ts"));
        assert!(!allows(&list, "https://host/c.ts") && !allows(&list, "https://other:8000/c.ts"));
        assert!(!allows(&list, "/etc/passwd") && !allows(&list, "file:/etc/passwd"));
    }

    #[test]
    fn demuxers_that_open_other_files_are_left_out() {
        let names = |access: Access| -> Vec<String> {
            let names = access.demuxers(Path::new("http://host/a")).into_string().unwrap();
            names.split(',').map(str::to_owned).collect()
        };
        let default = names(Access::default());
        assert!(default.iter().any(|name| name == "mov") && default.iter().any(|name| name == "matroska"));
        for refused in PLAYLISTS.iter().chain(NETWORK).chain(NEVER) {
            assert!(!default.iter().any(|name| name == refused), "{refused}");
        }
        let lists = names(Access {
            playlists: true,
            ..Access::default()
        });
        assert!(lists.iter().any(|name| name == "hls") && !lists.iter().any(|name| name == "sdp"));
        assert!(Access::refusal("hls").contains("--allow-playlists"));
    }
}
