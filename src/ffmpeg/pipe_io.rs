//! A pipe, or a device, that FFmpeg reads through an I/O context of its own, so that every wait can be ended.
//!
//! FFmpeg's own reader of files sleeps in the system call until something comes.
#![allow(unsafe_code)]

use super::AvError;
use super::access::Patience;
use ffmpeg_next::ffi;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::{ptr, slice};

/// Bytes that FFmpeg is handed at a time.
const BUFFER: usize = 32 << 10;

/// How long a wait lasts before it is looked whether it is to end.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// An open pipe. FFmpeg's context points into it and must not outlive it.
pub(super) struct PipeFile {
    io: *mut ffi::AVIOContext,
    _contents: Box<Contents>,
}

struct Contents {
    file: File,
    /// Lives longer: the demuxer drops it after its context.
    patience: *const Patience,
}

impl PipeFile {
    /// A pipe to be read until `patience` is over, which must outlive it.
    pub(super) fn new(file: File, patience: &Patience) -> Result<PipeFile, AvError> {
        let mut contents = Box::new(Contents {
            file,
            patience: ptr::from_ref(patience),
        });
        let opaque = ptr::from_mut(&mut *contents).cast::<c_void>();
        // SAFETY: the buffer is FFmpeg's own, as the context may replace it, and is freed with the context;
        // `opaque` points to the box, which lives as long as the context.
        unsafe {
            let buffer = ffi::av_malloc(BUFFER).cast::<u8>();
            if buffer.is_null() {
                return Err(AvError::no_memory());
            }
            let io = ffi::avio_alloc_context(buffer, BUFFER as c_int, 0, opaque, Some(read), None, None);
            if io.is_null() {
                ffi::av_free(buffer.cast());
                return Err(AvError::no_memory());
            }
            Ok(PipeFile {
                io,
                _contents: contents,
            })
        }
    }

    /// FFmpeg's context of this pipe.
    pub(super) fn as_ptr(&self) -> *mut ffi::AVIOContext {
        self.io
    }
}

impl Drop for PipeFile {
    fn drop(&mut self) {
        // SAFETY: context and buffer are FFmpeg's and freed once; whoever used the context is gone.
        unsafe {
            ffi::av_freep(ptr::addr_of_mut!((*self.io).buffer).cast());
            ffi::avio_context_free(&mut self.io);
        }
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
        match poll(&mut [PollFd::new(&contents.file, PollFlags::IN)], Some(&TICK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            // Data, the end, or an error that the read will tell.
            _ => {}
        }
        match contents.file.read(to) {
            Ok(0) => return ffi::AVERROR_EOF,
            Ok(count) => return count as c_int,
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(e) => return ffi::AVERROR(e.raw_os_error().unwrap_or(ffi::EIO)),
        }
    }
}
