//! Error codes of FFmpeg calls.
#![allow(unsafe_code)]

use ffmpeg_next::ffi;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;

/// A negative result of an FFmpeg call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AvError(pub(crate) c_int);

impl AvError {
    /// Turns a result code into a `Result`; zero and positive codes are passed on.
    pub(crate) fn check(code: c_int) -> Result<c_int, AvError> {
        if code < 0 { Err(AvError(code)) } else { Ok(code) }
    }

    /// Memory that FFmpeg could not get.
    pub(crate) fn no_memory() -> AvError {
        AvError(ffi::AVERROR(ffi::ENOMEM))
    }

    /// What cannot be.
    pub(crate) fn bug() -> AvError {
        AvError(ffi::AVERROR_BUG)
    }

    /// True at the end of the data.
    pub(crate) fn is_eof(self) -> bool {
        self.0 == ffi::AVERROR_EOF
    }

    /// True if the codec wants to be emptied, or fed, first.
    pub(crate) fn is_again(self) -> bool {
        self.0 == ffi::AVERROR(ffi::EAGAIN)
    }

    /// True if bytes in the data make no sense.
    pub(crate) fn is_invalid_data(self) -> bool {
        self.0 == ffi::AVERROR_INVALIDDATA
    }

    /// True if an option of that name does not exist.
    pub(crate) fn is_option_not_found(self) -> bool {
        self.0 == ffi::AVERROR_OPTION_NOT_FOUND
    }

    /// The standard library's error as FFmpeg's.
    pub(crate) fn of_io(error: &std::io::Error) -> AvError {
        AvError(ffi::AVERROR(error.raw_os_error().unwrap_or(ffi::EIO)))
    }

    /// The error as the standard library tells it: the system's own number where there is one.
    pub(crate) fn to_io(self) -> std::io::Error {
        // FFmpeg's own codes are four letters and so far below any errno.
        if (-4096..0).contains(&self.0) {
            std::io::Error::from_raw_os_error(-self.0)
        } else {
            std::io::Error::other(self.to_string())
        }
    }
}

impl fmt::Display for AvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0 as c_char; 128];
        // SAFETY: av_strerror writes at most `text.len()` bytes, the closing zero included.
        let text = unsafe {
            ffi::av_strerror(self.0, text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr())
        };
        f.write_str(&text.to_string_lossy())
    }
}

impl std::error::Error for AvError {}
