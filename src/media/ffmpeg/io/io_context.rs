//! An I/O context of FFmpeg's that reads and writes through functions of ours.
#![allow(unsafe_code)]

use crate::media::ffmpeg::{AvError, version};
use ffmpeg_next::ffi;
use std::ffi::{c_int, c_void};
use std::ptr;

/// Bytes that FFmpeg hands over at a time.
const BUFFER: usize = 32 << 10;

/// The functions behind a context; each gets the pointer that the context was made with.
#[derive(Clone, Copy, Default)]
pub(in crate::media::ffmpeg) struct Functions {
    pub(in crate::media::ffmpeg) read: Option<unsafe extern "C" fn(*mut c_void, *mut u8, c_int) -> c_int>,
    pub(in crate::media::ffmpeg) write:
        Option<unsafe extern "C" fn(*mut c_void, version::BytesToWrite, c_int) -> c_int>,
    pub(in crate::media::ffmpeg) seek: Option<unsafe extern "C" fn(*mut c_void, i64, c_int) -> i64>,
}

/// A context and its buffer. Whatever uses it must be gone when it is dropped.
pub(in crate::media::ffmpeg) struct IoContext(*mut ffi::AVIOContext);

impl IoContext {
    /// A context whose functions get `opaque`, which must live as long.
    pub(in crate::media::ffmpeg) fn new(
        opaque: *mut c_void,
        functions: Functions,
    ) -> Result<IoContext, AvError> {
        // SAFETY: the buffer is FFmpeg's own, as the context may replace it, and is freed with the context.
        unsafe {
            let buffer = ffi::av_malloc(BUFFER).cast::<u8>();
            if buffer.is_null() {
                return Err(AvError::no_memory());
            }
            let io = ffi::avio_alloc_context(
                buffer,
                BUFFER as c_int,
                c_int::from(functions.write.is_some()),
                opaque,
                functions.read,
                functions.write,
                functions.seek,
            );
            if io.is_null() {
                ffi::av_free(buffer.cast());
                return Err(AvError::no_memory());
            }
            Ok(IoContext(io))
        }
    }

    /// FFmpeg's pointer.
    pub(in crate::media::ffmpeg) fn as_ptr(&self) -> *mut ffi::AVIOContext {
        self.0
    }
}

impl Drop for IoContext {
    fn drop(&mut self) {
        // SAFETY: context and buffer are FFmpeg's and freed once; whoever used the context is gone.
        unsafe {
            ffi::av_freep(ptr::addr_of_mut!((*self.0).buffer).cast());
            ffi::avio_context_free(&mut self.0);
        }
    }
}
