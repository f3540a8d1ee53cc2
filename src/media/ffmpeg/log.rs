//! What FFmpeg says: its messages go to the debug log, and the last errors of each thread are kept for the
//! sentence that reports the failure. Errors of decoders are counted where their pictures lie.
//!
//! A result code alone is often no more than "Invalid argument"; the line that the library wrote before it
//! says which.
#![allow(unsafe_code)]

use crate::media::ffmpeg::input::access::Gate;
use crate::media::ffmpeg::pictures::decoder::memory::PictureMemory;
use ffmpeg_next::ffi;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, Once, PoisonError};

/// How the messages begin of which a decoder writes one for each picture that it patched: concealed errors,
/// and where a JPEG breaks off, of which the picture has no mark.
const PATCHED: [&[u8]; 2] = [b"concealing ", b"error y="];

/// How errors of decoders begin that take nothing from a picture.
const HARMLESS: [&[u8]; 1] = [b"unable to decode APP fields"];

/// How the error begins of a first picture that refers to others. It is harmless of H.261, which has no other
/// pictures: each block says whether it refers to one.
const NO_KEY: &[u8] = b"warning: first frame is no keyframe";

/// How the message of a picture of H.264 begins that releases a reference which is not there.
const RELEASE: &[u8] = b"mmco: unref short failure";

/// How the reader of transport streams begins what it says, below the level of warnings, where a counter of
/// packets does not go on, and where it looks for the next packet among bytes that are none.
const COUNTER: &[u8] = b"Continuity check failed for pid ";
const SEARCH: &[u8] = b"Probe: %d, score: %d";

/// How the reader of DASH begins what it says, below the level of warnings, of a file that it opens, and how
/// that and the reader of HLS begin what they say of one that they pass over.
const REQUEST: &[u8] = b"DASH request for url '";
const PASSED_OVER: [&str; 3] = [
    "Failed to open fragment of playlist",
    "Failed to open an initialization section",
    "Failed to open segment ",
];

/// How the reader of HLS begins what it says of a playlist of subtitles, which it does not read.
const UNREAD_SUBTITLE: &str = "Can't support the subtitle(uri: ";

/// Faults of transport streams that are kept between two calls of [`take_faults`].
const MOST_FAULTS: usize = 4096;

/// Parts of FFmpeg whose last errors are kept.
const MOST_PARTS: usize = 16;

/// What a place is counted from: where one is now.
const SEEK_CUR: c_int = 1;

/// Longest message that is kept.
const LINE: usize = 512;

thread_local! {
    /// The last error of each part, the latest one last.
    static LAST: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
    /// What readers of transport streams said of packets, and of which context's: its address.
    static FAULTS: RefCell<Vec<(usize, TransportFault)>> = const { RefCell::new(Vec::new()) };
    /// The file that was opened last of those that a DASH manifest names, and those that were passed over.
    static REQUESTED: RefCell<String> = const { RefCell::new(String::new()) };
    static PASSED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Playlists of subtitles that are not read.
    static UNREAD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Settings that wrappers of encoders' libraries refused and opened the encoder without.
    static REFUSED: RefCell<Vec<RefusedSetting>> = const { RefCell::new(Vec::new()) };
}

/// A setting in a list such as x264-params that the encoder's library refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedSetting {
    /// Its key.
    pub(crate) key: String,
    /// What FFmpeg said of it.
    pub(crate) line: String,
}

/// What is wrong with the packets of a transport stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransportFault {
    /// Where in the input the reader was then.
    pub(crate) at: u64,
    /// The identifier of the packets whose counter does not go on, and the number that it has there; `None`
    /// where there are bytes that are no packet.
    pub(crate) counter: Option<(u32, u32)>,
}

/// The latest picture that was not decoded because it is too large: decoders' threads report it, too.
static TOO_LARGE: Mutex<Option<(usize, usize)>> = Mutex::new(None);

/// A message, and FFmpeg's name of the part that wrote it, such as "matroska,webm"; empty if it has none.
struct Line {
    who: String,
    what: String,
}

/// How FFmpeg hands over the arguments of a message, on this kind of processor.
#[cfg(target_arch = "x86_64")]
type Arguments = *mut ffi::__va_list_tag;
#[cfg(not(target_arch = "x86_64"))]
type Arguments = ffi::va_list;

/// Takes FFmpeg's messages off the terminal, where they lack context and cannot be counted.
pub(super) fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: both calls only set process-wide state of FFmpeg and are made once; the callback is safe to
        // call from any thread.
        unsafe {
            ffi::av_log_set_level(ffi::AV_LOG_WARNING as c_int);
            ffi::av_log_set_callback(Some(keep));
        }
    });
}

/// The last error that FFmpeg reported on this thread since [`forget`], without its line break; `None` if
/// there is none.
fn last_line() -> Option<String> {
    LAST.with(|last| last.borrow().last().map(|line| line.what.clone()))
}

/// Forgets what this thread's calls have reported; called before a call whose failure is to be explained.
pub(crate) fn forget() {
    LAST.with(|last| last.borrow_mut().clear());
    FAULTS.with(|faults| faults.borrow_mut().clear());
    PASSED.with(|passed| passed.borrow_mut().clear());
    UNREAD.with(|unread| unread.borrow_mut().clear());
    REFUSED.with(|refused| refused.borrow_mut().clear());
}

/// The faults of the transport stream that `context` reads, since this was asked last, or since [`forget`] on
/// this thread.
pub(super) fn take_faults(context: *const ffi::AVFormatContext) -> Vec<TransportFault> {
    let faults = FAULTS.with(RefCell::take);
    let ours = faults.into_iter().filter(|(of, _)| *of == context.addr());
    ours.map(|(_, fault)| fault).collect()
}

/// The files that readers of HLS and DASH could not open on this thread and passed over, since this was asked
/// last, or since [`forget`].
pub(super) fn take_passed_over() -> Vec<String> {
    PASSED.with(RefCell::take)
}

/// The playlists of subtitles that the reader of HLS named and does not read, since this was asked last, or
/// since [`forget`] on this thread.
pub(super) fn take_unread_subtitles() -> Vec<String> {
    UNREAD.with(RefCell::take)
}

/// The name of a playlist of subtitles, if `what` says that it is not read.
fn unread_subtitle(what: &str) -> Option<&str> {
    what.strip_prefix(UNREAD_SUBTITLE)?.strip_suffix(')')
}

/// Keeps the name of a file that a reader passes over, if `what` says that it does.
fn note_passed_over(what: &str) {
    let Some(at) = PASSED_OVER.iter().position(|begin| what.starts_with(begin)) else {
        return;
    };
    let requested = REQUESTED.with(RefCell::take);
    let name = match PASSED_OVER[at].ends_with(' ') || requested.is_empty() {
        true => what.strip_prefix("Failed to open ").unwrap_or(what).to_owned(),
        false => requested,
    };
    PASSED.with(|passed| {
        let mut passed = passed.borrow_mut();
        if passed.len() < MOST_FAULTS {
            passed.push(name);
        }
    });
}

/// The settings that were refused on this thread since [`forget`].
pub(crate) fn refused_settings() -> Vec<RefusedSetting> {
    REFUSED.with(|refused| refused.borrow().clone())
}

/// The key of a setting that the message `what` calls unknown or of a wrong value, in the words of FFmpeg's
/// wrappers of x264, x265, SVT-AV1 and rav1e.
fn refused_key(what: &str) -> Option<&str> {
    const BEGINNINGS: [&str; 4] = [
        "Error parsing option '",
        "Error parsing option ",
        "Unknown option: ",
        "Invalid value for ",
    ];
    let rest = BEGINNINGS.iter().find_map(|begin| what.strip_prefix(begin))?;
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let end = rest.find(|c: char| !is_of_key(c)).unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

/// The format that FFmpeg found and that is not among those that it may read, if that was the last error.
pub(super) fn refused_format() -> Option<String> {
    LAST.with(|last| {
        let last = last.borrow();
        let line = last.last()?;
        let is_refused = line.what.starts_with("Format not on whitelist");
        is_refused.then(|| line.who.clone())
    })
}

/// The last error since [`forget`] on this thread, if the library part of this name reported it.
pub(super) fn error_of(name: &str) -> Option<String> {
    LAST.with(|last| {
        let last = last.borrow();
        let line = last.iter().find(|line| line.who == name);
        line.map(|line| line.what.clone())
    })
}

/// Width and height of the latest picture that was not decoded because it has more pixels than it may have.
pub(crate) fn too_large() -> Option<(usize, usize)> {
    *TOO_LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Width and height that a message about too many pixels names: more than the caller allows, or than FFmpeg
/// ever decodes.
fn size_too_large(what: &str) -> Option<(usize, usize)> {
    let said = what.strip_prefix("Picture size ")?;
    let (size, why) = said.split_once(' ')?;
    if !(why.starts_with("exceeds specified max pixel count") || why == "is invalid") {
        return None;
    }
    let (width, height) = size.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|&side: &usize| side > 0);
    Some((side(width)?, side(height)?))
}

/// `problem`, followed by the line in which FFmpeg explains it, if it does.
pub(crate) fn explained(problem: &str) -> String {
    match last_line() {
        Some(line) => format!("{problem} (FFmpeg: {line})"),
        None => problem.to_owned(),
    }
}

/// The identifier and the number in what is said where a counter does not go on.
fn counter(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.nth(1)?))
}

/// A message as text, with the part of FFmpeg that `object` is in front unless that is null.
///
/// # Safety
/// `object` must be null or what FFmpeg logs, and `arguments` those of the format.
unsafe fn formatted(
    object: *mut c_void,
    level: c_int,
    format: *const c_char,
    arguments: Arguments,
) -> String {
    let mut line = [0 as c_char; LINE];
    let mut prefix = c_int::from(!object.is_null());
    // SAFETY: at most LINE bytes are written, the closing zero included.
    let text = unsafe {
        let (text, size) = (line.as_mut_ptr(), LINE as c_int);
        ffi::av_log_format_line2(object, level, format, arguments, text, size, &mut prefix);
        CStr::from_ptr(line.as_ptr())
    };
    text.to_string_lossy().into_owned()
}

/// Keeps the name of the file that the reader of DASH is about to open, as it says in `line`, and has the
/// gate of its context judge it: this reader opens files by a way of its own.
///
/// # Safety
/// `object` must be null or what FFmpeg logs.
unsafe fn note_request(object: *mut c_void, line: &str) {
    // An address may have quotes in it.
    let begin = REQUEST.len();
    let end = line.rfind("', ").unwrap_or(line.len());
    let Some(url) = line.get(begin..end) else { return };
    // SAFETY: what is logged begins with its class (the function's contract); of the class of containers'
    // contexts it is one, and that of an input has a gate of ours, or null.
    let gate = unsafe {
        let is_context =
            !object.is_null() && ptr::eq(*object.cast::<*const ffi::AVClass>(), ffi::avformat_get_class());
        match is_context {
            true => (*object.cast::<ffi::AVFormatContext>())
                .opaque
                .cast::<Gate>()
                .as_ref(),
            false => None,
        }
    };
    if let (Some(gate), Ok(url)) = (gate, CString::new(url)) {
        gate.judge(&url);
    }
    let name = url.strip_prefix("file:").unwrap_or(url).to_owned();
    REQUESTED.with(|requested| *requested.borrow_mut() = name);
}

/// True if `object` is the context of an H.261 decoder.
///
/// # Safety
/// `object` must be null or what FFmpeg logs.
unsafe fn is_of_h261(object: *const c_void) -> bool {
    // SAFETY: what is logged begins with its class (the function's contract); of the class of codecs'
    // contexts it is one.
    unsafe {
        !object.is_null()
            && ptr::eq(*object.cast::<*const ffi::AVClass>(), ffi::avcodec_get_class())
            && (*object.cast::<ffi::AVCodecContext>()).codec_id == ffi::AVCodecID::AV_CODEC_ID_H261
    }
}

/// Keeps what `object` says of the packets of a transport stream.
///
/// # Safety
/// `object` must be null or what FFmpeg logs, and `arguments` those of the format.
unsafe fn keep_fault(object: *mut c_void, format: &CStr, arguments: Arguments, is_counter: bool) {
    // SAFETY: what is logged begins with its class (the function's contract); of the class of containers'
    // contexts it is one, whose I/O context is null or open, and asked for its place alone.
    let (at, text) = unsafe {
        if object.is_null() || !ptr::eq(*object.cast::<*const ffi::AVClass>(), ffi::avformat_get_class()) {
            return;
        }
        let io = (*object.cast::<ffi::AVFormatContext>()).pb;
        if io.is_null() {
            return;
        }
        let level = ffi::AV_LOG_DEBUG as c_int;
        let text = formatted(ptr::null_mut(), level, format.as_ptr(), arguments);
        (ffi::avio_seek(io, 0, SEEK_CUR), text)
    };
    let counter = counter(&text).filter(|_| is_counter);
    let fault = u64::try_from(at).ok().map(|at| TransportFault { at, counter });
    FAULTS.with(|faults| {
        let mut faults = faults.borrow_mut();
        if let Some(fault) = fault.filter(|_| faults.len() < MOST_FAULTS) {
            faults.push((object.addr(), fault));
        }
    });
}

unsafe extern "C" fn keep(object: *mut c_void, level: c_int, format: *const c_char, arguments: Arguments) {
    // SAFETY: FFmpeg passes a format, its arguments, and an object that is null or begins with its class.
    let (text, is_kept) = unsafe {
        let text = CStr::from_ptr(format);
        let begins = |words: &[&[u8]]| words.iter().any(|begin| text.to_bytes().starts_with(begin));
        let is_design = begins(&[NO_KEY]) && is_of_h261(object);
        let is_kept = level <= ffi::AV_LOG_ERROR as c_int && !is_design;
        if is_kept && !begins(&HARMLESS) || begins(&PATCHED) {
            PictureMemory::note_patched(object, begins(&[RELEASE]));
        }
        if level > ffi::AV_LOG_WARNING as c_int {
            if begins(&[COUNTER, SEARCH]) {
                keep_fault(object, text, arguments, begins(&[COUNTER]));
            } else if begins(&[REQUEST]) {
                note_request(object, &formatted(ptr::null_mut(), level, format, arguments));
            }
            return;
        }
        (formatted(object, level, format, arguments), is_kept)
    };
    let (mut who, mut what) = ("", text.trim());
    // "[mp4 @ 0x55d0c8a0] Could not find tag", with the part that it belongs to in front: the addresses mean
    // nothing to anybody.
    while let Some((part, rest)) = what.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && let Some((name, _)) = part.split_once(" @ 0x")
    {
        (who, what) = (name, rest.trim_start());
    }
    if what.is_empty() {
        return;
    }
    tracing::debug!("FFmpeg: {who}: {what}");
    note_passed_over(what);
    if let Some(name) = unread_subtitle(what) {
        UNREAD.with(|unread| {
            let mut unread = unread.borrow_mut();
            if unread.len() < MOST_FAULTS {
                unread.push(name.to_owned());
            }
        });
    }
    if let Some(key) = refused_key(what) {
        let (key, line) = (key.to_owned(), what.to_owned());
        REFUSED.with(|refused| {
            let mut refused = refused.borrow_mut();
            if refused.len() < MOST_PARTS {
                refused.push(RefusedSetting { key, line });
            }
        });
    }
    if is_kept {
        if let Some(size) = size_too_large(what) {
            *TOO_LARGE.lock().unwrap_or_else(PoisonError::into_inner) = Some(size);
        }
        let (who, what) = (who.to_owned(), what.to_owned());
        LAST.with(|last| {
            let mut last = last.borrow_mut();
            last.retain(|line| line.who != who);
            if last.len() == MOST_PARTS {
                last.remove(0);
            }
            last.push(Line { who, what });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_are_too_large_are_told_by_their_size() {
        let line = "Picture size 30000x20000 exceeds specified max pixel count 1073741824";
        assert_eq!(size_too_large(line), Some((30000, 20000)));
        assert_eq!(
            size_too_large("Picture size 40000x9 is invalid"),
            Some((40000, 9))
        );
        assert_eq!(size_too_large("Picture size 0x0 is invalid"), None);
    }

    #[test]
    fn refused_settings_are_known_by_their_key() {
        for line in [
            "Error parsing option 'nosuch = 3'.",
            "Error parsing option nosuch: 3.",
            "Unknown option: nosuch.",
            "Invalid value for nosuch: 3.",
        ] {
            assert_eq!(refused_key(line), Some("nosuch"), "{line}");
        }
        assert_eq!(refused_key("Error parsing AAC extradata"), None);
    }

    #[test]
    fn subtitles_that_are_not_read_are_known_by_their_name() {
        let line = "Can't support the subtitle(uri: a (b).m3u8)";
        assert_eq!(unread_subtitle(line), Some("a (b).m3u8"));
        assert_eq!(unread_subtitle("Can't support the codec"), None);
    }

    #[test]
    fn counters_that_do_not_go_on_are_read() {
        let line = "Continuity check failed for pid 257 expected 5 got 11\n";
        assert_eq!(counter(line), Some((257, 11)));
        assert_eq!(counter("Continuity check failed for pid 257"), None);
    }

    #[test]
    fn the_last_error_is_kept_without_addresses_until_it_is_forgotten() {
        capture();
        forget();
        assert_eq!(explained("it failed"), "it failed");
        let log = |level: u32, text: &CStr| {
            // SAFETY: the format has one argument, a zero-terminated string.
            unsafe {
                ffi::av_log(ptr::null_mut(), level as c_int, c"%s\n".as_ptr(), text.as_ptr());
            }
        };
        log(
            ffi::AV_LOG_ERROR as u32,
            c"[mov @ 0x1] [mp4 @ 0x55d0c8a0] Could not find tag",
        );
        log(ffi::AV_LOG_WARNING as u32, c"a warning is no error");
        log(ffi::AV_LOG_INFO as u32, c"neither is a remark");
        assert_eq!(explained("it failed"), "it failed (FFmpeg: Could not find tag)");
        assert_eq!(error_of("mp4").as_deref(), Some("Could not find tag"));
        assert_eq!(error_of("mov"), None);
        std::thread::spawn(|| assert_eq!(last_line(), None))
            .join()
            .expect("no panic");
        forget();
        assert_eq!(last_line(), None);
    }
}
