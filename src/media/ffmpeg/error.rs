//! Error codes of FFmpeg calls.
#![allow(unsafe_code)]

use crate::shortage::{Shortage, is_memory_used_up};
use ffmpeg_next::ffi;
use std::ffi::{CStr, c_char, c_int};
use std::{fmt, io};

/// A negative result of an FFmpeg call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AvError(pub(crate) c_int);

/// Why a picture cannot be had on a card.
#[derive(Debug)]
pub(crate) enum SurfaceError {
    /// FFmpeg refused.
    Ffmpeg(AvError),
    /// The card failed: a sentence.
    Card(String),
}

impl From<AvError> for SurfaceError {
    fn from(error: AvError) -> SurfaceError {
        SurfaceError::Ffmpeg(error)
    }
}

impl fmt::Display for SurfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SurfaceError::Ffmpeg(error) => error.fmt(f),
            SurfaceError::Card(problem) => f.write_str(problem),
        }
    }
}

/// Threads that could not be started; four letters, as FFmpeg's own codes are.
const NO_THREADS: c_int = -(c_int::from_le_bytes(*b"FPth"));

/// Bytes that are asked for to know whether memory is short: more than demuxers need for what they hold
/// themselves, and no more than a packet may have.
const LEAST_TRIED: u64 = 64 << 20;
const MOST_TRIED: u64 = 256 << 20;

impl AvError {
    /// Turns a result code into a `Result`; zero and positive codes are passed on.
    pub(crate) fn check(code: c_int) -> Result<c_int, AvError> {
        if code < 0 { Err(AvError(code)) } else { Ok(code) }
    }

    /// Memory that FFmpeg could not get.
    pub(crate) fn no_memory() -> AvError {
        AvError(ffi::AVERROR(ffi::ENOMEM))
    }

    /// What opening a codec gives. Libraries that are codecs tell FFmpeg only that they failed; where memory
    /// or threads lacked, the system's error number still says so.
    pub(super) fn check_opening(call: impl FnOnce() -> c_int) -> Result<c_int, AvError> {
        let (code, number) = observed(call);
        let lacks_thread = code == ffi::AVERROR(ffi::EAGAIN) || (code < 0 && number == Some(ffi::EAGAIN));
        match AvError::check_working_as(code, number) {
            Err(e) if e.shortage().is_none() && lacks_thread => Err(match Shortage::of_thread() {
                Shortage::Memory => AvError::no_memory(),
                Shortage::Threads => AvError(NO_THREADS),
            }),
            result => result,
        }
    }

    /// What feeding a codec, or taking from it, gives; lack of memory is reported as by
    /// [`AvError::check_opening`].
    pub(super) fn check_working(call: impl FnOnce() -> c_int) -> Result<c_int, AvError> {
        let (code, number) = observed(call);
        AvError::check_working_as(code, number)
    }

    fn check_working_as(code: c_int, number: Option<c_int>) -> Result<c_int, AvError> {
        AvError::check(code).map_err(|e| {
            let says_nothing = code == ffi::AVERROR_EXTERNAL || code == ffi::AVERROR_UNKNOWN;
            let lacks = number == Some(ffi::ENOMEM) || (says_nothing && is_memory_used_up());
            if lacks && !e.is_again() && !e.is_eof() {
                AvError::no_memory()
            } else {
                e
            }
        })
    }

    /// What the system had no more of, if that is the error.
    pub(crate) fn shortage(self) -> Option<Shortage> {
        match self.0 {
            NO_THREADS => Some(Shortage::Threads),
            code => (code == ffi::AVERROR(ffi::ENOMEM)).then_some(Shortage::Memory),
        }
    }

    /// True if a demuxer finds no memory for what an input of `length` bytes states, where there is enough
    /// for all that it holds: sizes in it are wrong.
    pub(crate) fn is_claim(self, length: Option<u64>) -> bool {
        let bytes = length.unwrap_or(MOST_TRIED).clamp(LEAST_TRIED, MOST_TRIED) as usize;
        self.shortage() == Some(Shortage::Memory) && Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
    }

    /// True for what the system lacks for a moment or by its limits: memory, threads, open files.
    pub(crate) fn is_of_the_system(self) -> bool {
        self.shortage().is_some() || [ffi::EMFILE, ffi::ENFILE].map(ffi::AVERROR).contains(&self.0)
    }

    /// The end that the user wished.
    pub(crate) fn stopped() -> AvError {
        AvError(ffi::AVERROR_EXIT)
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

    /// True if a reader wants to go back or forward in what cannot.
    pub(crate) fn is_of_seeking(self) -> bool {
        self.0 == ffi::AVERROR(ffi::EPIPE)
    }

    /// True if bytes in the data make no sense.
    pub(crate) fn is_invalid_data(self) -> bool {
        self.0 == ffi::AVERROR_INVALIDDATA
    }

    /// True if FFmpeg knows what the data ask for and has no code for it.
    pub(crate) fn is_unimplemented(self) -> bool {
        self.0 == ffi::AVERROR_PATCHWELCOME
    }

    /// True for an error of the disk, as which some demuxers report an early end, too.
    pub(crate) fn is_of_disk(self) -> bool {
        self.0 == ffi::AVERROR(ffi::EIO)
    }

    /// True for what parts of FFmpeg give for a stream or setting that they do not take: the system's numbers
    /// that no disk gives.
    pub(crate) fn is_refusal(self) -> bool {
        const REFUSALS: &[c_int] = &[
            ffi::EPERM,
            ffi::EINVAL,
            ffi::ERANGE,
            ffi::EDOM,
            ffi::ENOSYS,
            ffi::EILSEQ,
        ];
        REFUSALS.iter().any(|&number| self.0 == ffi::AVERROR(number))
    }

    /// True if an option of that name does not exist.
    pub(crate) fn is_option_not_found(self) -> bool {
        self.0 == ffi::AVERROR_OPTION_NOT_FOUND
    }

    /// The standard library's error as FFmpeg's.
    pub(crate) fn of_io(error: &io::Error) -> AvError {
        AvError(ffi::AVERROR(error.raw_os_error().unwrap_or(ffi::EIO)))
    }

    /// The error as the standard library tells it: the system's own number where there is one.
    pub(crate) fn to_io(self) -> io::Error {
        if let Some(shortage) = self.shortage() {
            return io::Error::new(io::ErrorKind::OutOfMemory, shortage);
        }
        // FFmpeg's own codes are four letters and so far below any errno.
        if (-4096..0).contains(&self.0) {
            io::Error::from_raw_os_error(-self.0)
        } else {
            io::Error::other(self.to_string())
        }
    }
}

/// The code of a call, and the system's error number behind it.
fn observed(call: impl FnOnce() -> c_int) -> (c_int, Option<c_int>) {
    // A call that fails, since no file has no name: its number takes the place of an older one.
    let _ = std::fs::symlink_metadata("");
    let code = call();
    (code, io::Error::last_os_error().raw_os_error())
}

impl fmt::Display for AvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(shortage) = self.shortage() {
            return shortage.fmt(f);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves `number` as the system's last error, as a call below FFmpeg does.
    fn failing(number: i32) {
        let found = match number {
            ffi::ENOENT => std::fs::symlink_metadata("").err(),
            ffi::ENOMEM => too_much().err(),
            _ => None,
        };
        assert_eq!(found.and_then(|e| e.raw_os_error()), Some(number));
    }

    /// More address space than there is.
    fn too_much() -> io::Result<()> {
        Vec::<u8>::new()
            .try_reserve_exact(1 << 60)
            .map_err(|_| io::Error::last_os_error())
    }

    #[test]
    fn lack_of_memory_behind_a_librarys_failure_is_found_and_nothing_else_is_taken_for_it() {
        let external = ffi::AVERROR_EXTERNAL;
        failing(ffi::ENOMEM);
        // An older number is not the call's.
        let error = AvError::check_working(|| external).unwrap_err();
        assert_eq!((error.0, error.shortage()), (external, None));
        let lacking = |code: c_int| {
            AvError::check_working(|| {
                failing(ffi::ENOMEM);
                code
            })
        };
        let error = lacking(external).unwrap_err();
        assert_eq!(error.shortage(), Some(Shortage::Memory));
        assert!(error.to_string().contains("memory"), "{error}");
        assert!(error.to_io().to_string().contains("--workers"));
        assert_eq!(lacking(7), Ok(7));
        assert!(lacking(ffi::AVERROR(ffi::EAGAIN)).unwrap_err().is_again());
        assert!(lacking(ffi::AVERROR_EOF).unwrap_err().is_eof());
        let error = AvError::check_working(|| {
            failing(ffi::ENOENT);
            external
        });
        assert_eq!(error.unwrap_err().0, external);
        // Sizes in an input that cannot be are no lack of memory.
        assert!(AvError::no_memory().is_claim(Some(1000)) && AvError::no_memory().is_claim(None));
        assert!(!AvError(external).is_claim(Some(1000)));
        let error = AvError::check_opening(|| ffi::AVERROR(ffi::EAGAIN)).unwrap_err();
        assert_eq!(error.shortage(), Some(Shortage::Threads));
        assert!(error.to_string().contains("threads can be started"), "{error}");
    }
}
