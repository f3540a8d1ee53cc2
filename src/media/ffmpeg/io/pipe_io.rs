//! A pipe, or a device, that FFmpeg reads through an I/O context of its own, so that every wait can be ended.
//!
//! FFmpeg's own reader of files sleeps in the system call until something comes. Its reader of GIF, in
//! FFmpeg 5.1, goes through the whole file first, and goes back at each picture, for which the file is kept.
#![allow(unsafe_code)]

use super::io_context::{Functions, IoContext};
use crate::media::ffmpeg::AvError;
use crate::waiting::{StallTimeout, wait_a_tick};
use ffmpeg_next::ffi;
use rustix::event::PollFlags;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::{ptr, slice};

/// An open pipe. FFmpeg's context points into it and must not outlive it.
pub(in crate::media::ffmpeg) struct PipeFile {
    io: IoContext,
    contents: Box<Contents>,
}

/// What GIF files begin with, and the most bytes of one that are kept.
const GIF: &[u8] = b"GIF8";
const MOST_KEPT: usize = 256 << 20;

struct Contents {
    file: File,
    /// All bytes so far, while it may be gone back to them, and where among them FFmpeg reads.
    kept: Option<Vec<u8>>,
    at: usize,
    /// Lives longer: the demuxer drops it after its context.
    patience: *const StallTimeout,
}

impl PipeFile {
    /// A pipe to be read until `patience` is over, which must outlive it.
    pub(in crate::media::ffmpeg) fn new(file: File, patience: &StallTimeout) -> Result<PipeFile, AvError> {
        let mut contents = Box::new(Contents {
            file,
            kept: Some(Vec::new()),
            at: 0,
            patience: ptr::from_ref(patience),
        });
        let opaque = ptr::from_mut(&mut *contents).cast::<c_void>();
        let functions = Functions {
            read: Some(read),
            seek: Some(seek),
            ..Functions::default()
        };
        let io = IoContext::new(opaque, functions)?;
        // SAFETY: the context was just made. It goes back to what is kept, and nowhere else.
        unsafe { (*io.as_ptr()).seekable = 0 };
        Ok(PipeFile { io, contents })
    }

    /// The bytes of a GIF file that were read so far; empty for other files.
    pub(in crate::media::ffmpeg) fn kept(&self) -> &[u8] {
        self.contents.kept.as_deref().unwrap_or_default()
    }

    /// FFmpeg's context of this pipe.
    pub(in crate::media::ffmpeg) fn as_ptr(&self) -> *mut ffi::AVIOContext {
        self.io.as_ptr()
    }
}

impl Contents {
    /// Keeps what was read of a GIF file.
    fn keep(&mut self, read: &[u8]) {
        let Some(kept) = &mut self.kept else {
            return;
        };
        kept.extend_from_slice(read);
        self.at = kept.len();
        let is_gif = kept.starts_with(GIF) || GIF.starts_with(kept);
        if !is_gif || kept.len() > MOST_KEPT {
            self.kept = None;
        }
    }
}

/// Goes to another place of what is kept.
unsafe extern "C" fn seek(opaque: *mut c_void, offset: i64, whence: c_int) -> i64 {
    const SEEK_SET: c_int = 0;
    // SAFETY: FFmpeg hands back the contents, which nobody else touches while it calls.
    let contents = unsafe { &mut *opaque.cast::<Contents>() };
    let kept = contents.kept.as_ref().map_or(0, Vec::len);
    match usize::try_from(offset) {
        Ok(to) if to <= kept && whence == SEEK_SET => {
            contents.at = to;
            offset
        }
        _ => i64::from(ffi::AVERROR(ffi::EPIPE)),
    }
}

unsafe extern "C" fn read(opaque: *mut c_void, to: *mut u8, size: c_int) -> c_int {
    // SAFETY: FFmpeg hands back the contents, which nobody else touches while it calls, and a buffer of
    // `size` bytes; the patience outlives both.
    let (contents, to, patience) = unsafe {
        let contents = &mut *opaque.cast::<Contents>();
        let patience = &*contents.patience;
        (
            contents,
            slice::from_raw_parts_mut(to, size.max(0) as usize),
            patience,
        )
    };
    if let Some(kept) = contents.kept.as_ref().filter(|kept| contents.at < kept.len()) {
        let left = &kept[contents.at..];
        let count = left.len().min(to.len());
        to[..count].copy_from_slice(&left[..count]);
        contents.at += count;
        return count as c_int;
    }
    loop {
        if patience.is_over() {
            return ffi::AVERROR_EXIT;
        }
        if wait_a_tick(&contents.file, PollFlags::IN).is_ok_and(|is_ready| !is_ready) {
            continue;
        }
        match contents.file.read(to) {
            Ok(0) => return ffi::AVERROR_EOF,
            Ok(count) => {
                contents.keep(&to[..count]);
                return count as c_int;
            }
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(e) => return AvError::of_io(&e).0,
        }
    }
}
