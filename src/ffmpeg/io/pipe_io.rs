//! A pipe, or a device, that FFmpeg reads through an I/O context of its own, so that every wait can be ended.
//!
//! FFmpeg's own reader of files sleeps in the system call until something comes.
#![allow(unsafe_code)]

use super::io_context::{Functions, IoContext};
use crate::ffmpeg::AvError;
use crate::frame::{StallTimeout, wait_a_tick};
use ffmpeg_next::ffi;
use rustix::event::PollFlags;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::{ptr, slice};

/// An open pipe. FFmpeg's context points into it and must not outlive it.
pub(in crate::ffmpeg) struct PipeFile {
    io: IoContext,
    _contents: Box<Contents>,
}

struct Contents {
    file: File,
    /// Lives longer: the demuxer drops it after its context.
    patience: *const StallTimeout,
}

impl PipeFile {
    /// A pipe to be read until `patience` is over, which must outlive it.
    pub(in crate::ffmpeg) fn new(file: File, patience: &StallTimeout) -> Result<PipeFile, AvError> {
        let mut contents = Box::new(Contents {
            file,
            patience: ptr::from_ref(patience),
        });
        let opaque = ptr::from_mut(&mut *contents).cast::<c_void>();
        let functions = Functions {
            read: Some(read),
            ..Functions::default()
        };
        Ok(PipeFile {
            io: IoContext::new(opaque, functions)?,
            _contents: contents,
        })
    }

    /// FFmpeg's context of this pipe.
    pub(in crate::ffmpeg) fn as_ptr(&self) -> *mut ffi::AVIOContext {
        self.io.as_ptr()
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
    loop {
        if patience.is_over() {
            return ffi::AVERROR_EXIT;
        }
        if wait_a_tick(&contents.file, PollFlags::IN).is_ok_and(|is_ready| !is_ready) {
            continue;
        }
        match contents.file.read(to) {
            Ok(0) => return ffi::AVERROR_EOF,
            Ok(count) => return count as c_int,
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(e) => return AvError::of_io(&e).0,
        }
    }
}
