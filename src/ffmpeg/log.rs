//! What FFmpeg says: its messages go to the debug log, and the last error of each thread is kept for the
//! sentence that reports the failure.
//!
//! A result code alone is often no more than "Invalid argument"; the line that the library wrote before it
//! says which.
#![allow(unsafe_code)]

use ffmpeg_next::ffi;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Once;

/// Longest message that is kept.
const LINE: usize = 512;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
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
    LAST.with(|last| Some(last.borrow().clone()).filter(|line| !line.is_empty()))
}

/// Forgets what this thread's calls have reported; called before a call whose failure is to be explained.
pub(crate) fn forget() {
    LAST.with(|last| last.borrow_mut().clear());
}

/// The format that FFmpeg found and that is not among those that it may read, if that was the last error.
pub(super) fn refused_format() -> Option<String> {
    let line = last_line()?;
    let (format, _) = line.split_once(": Format not on whitelist")?;
    Some(format.to_owned())
}

/// The last error since [`forget`] on this thread, if the library part of this name reported it.
pub(super) fn error_of(name: &str) -> Option<String> {
    let line = last_line()?;
    Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned())
}

/// `problem`, followed by the line in which FFmpeg explains it, if it does.
pub(crate) fn explained(problem: &str) -> String {
    match last_line() {
        Some(line) => format!("{problem} (FFmpeg: {line})"),
        None => problem.to_owned(),
    }
}

unsafe extern "C" fn keep(object: *mut c_void, level: c_int, format: *const c_char, arguments: Arguments) {
    if level > ffi::AV_LOG_WARNING as c_int {
        return;
    }
    let mut line = [0 as c_char; LINE];
    let mut prefix = 0;
    // SAFETY: FFmpeg passes a format and its arguments; at most LINE bytes are written, the closing zero
    // included.
    let text = unsafe {
        ffi::av_log_format_line2(
            object,
            level,
            format,
            arguments,
            line.as_mut_ptr(),
            LINE as c_int,
            &mut prefix,
        );
        CStr::from_ptr(line.as_ptr())
    };
    let text = text.to_string_lossy();
    let text = text.trim();
    // "[mp4 @ 0x55d0c8a0] Could not find tag": the address means nothing to anybody.
    let text = match text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((who, what)) if who.contains(" @ 0x") => {
            let who = who.split(" @ 0x").next().unwrap_or_default();
            format!("{who}: {what}")
        }
        _ => text.to_owned(),
    };
    if text.is_empty() {
        return;
    }
    tracing::debug!("FFmpeg: {text}");
    if level <= ffi::AV_LOG_ERROR as c_int {
        LAST.with(|last| *last.borrow_mut() = text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_is_kept_without_addresses_until_it_is_forgotten() {
        capture();
        forget();
        assert_eq!(explained("it failed"), "it failed");
        let log = |level: u32, text: &CStr| {
            // SAFETY: the format has one argument, a zero-terminated string.
            unsafe {
                ffi::av_log(
                    std::ptr::null_mut(),
                    level as c_int,
                    c"%s\n".as_ptr(),
                    text.as_ptr(),
                );
            }
        };
        log(ffi::AV_LOG_ERROR as u32, c"[mp4 @ 0x55d0c8a0] Could not find tag");
        log(ffi::AV_LOG_WARNING as u32, c"a warning is no error");
        log(ffi::AV_LOG_INFO as u32, c"neither is a remark");
        assert_eq!(
            explained("it failed"),
            "it failed (FFmpeg: mp4: Could not find tag)"
        );
        std::thread::spawn(|| assert_eq!(last_line(), None))
            .join()
            .expect("no panic");
        forget();
        assert_eq!(last_line(), None);
    }
}
