//! A file in memory that FFmpeg reads and writes through an I/O context of its own.
//!
//! It can be sought like a file on disk, so that every muxer writes into it what it would write to disk.
#![allow(unsafe_code)]

use super::io_context::{Functions, IoContext};
use crate::media::ffmpeg::{AvError, version};
use ffmpeg_next::ffi;
use std::ffi::{c_int, c_void};
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::{ptr, slice};

/// A file in memory. FFmpeg's context points into it and must not outlive it.
pub(in crate::media::ffmpeg) struct MemoryFile {
    io: IoContext,
    contents: Box<Cursor<Vec<u8>>>,
}

impl MemoryFile {
    /// A file that holds `bytes`, at its beginning, to be written to or to be read.
    pub(in crate::media::ffmpeg) fn new(bytes: Vec<u8>, writable: bool) -> Result<MemoryFile, AvError> {
        let mut contents = Box::new(Cursor::new(bytes));
        let opaque = ptr::from_mut(&mut *contents).cast::<c_void>();
        let functions = Functions {
            read: (!writable).then_some(read),
            write: writable.then_some(write),
            seek: Some(seek),
        };
        let io = IoContext::new(opaque, functions)?;
        Ok(MemoryFile { io, contents })
    }

    /// FFmpeg's context of this file.
    pub(in crate::media::ffmpeg) fn as_ptr(&self) -> *mut ffi::AVIOContext {
        self.io.as_ptr()
    }

    /// The bytes of a file that was flushed, which is empty afterwards.
    pub(in crate::media::ffmpeg) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut *self.contents).into_inner()
    }
}

/// The file behind FFmpeg's `opaque` pointer.
///
/// # Safety
/// `opaque` is what [`MemoryFile::new`] gave to FFmpeg, and the file lives.
unsafe fn contents<'a>(opaque: *mut c_void) -> &'a mut Cursor<Vec<u8>> {
    // SAFETY: the pointer is to the boxed contents, which nobody else touches while FFmpeg calls.
    unsafe { &mut *opaque.cast::<Cursor<Vec<u8>>>() }
}

unsafe extern "C" fn read(opaque: *mut c_void, to: *mut u8, size: c_int) -> c_int {
    // SAFETY: FFmpeg hands back `opaque` and a buffer of `size` bytes.
    let (file, to) = unsafe {
        (
            contents(opaque),
            slice::from_raw_parts_mut(to, size.max(0) as usize),
        )
    };
    match file.read(to) {
        Ok(0) => ffi::AVERROR_EOF,
        Ok(count) => count as c_int,
        Err(_) => ffi::AVERROR(ffi::EIO),
    }
}

unsafe extern "C" fn write(opaque: *mut c_void, from: version::BytesToWrite, size: c_int) -> c_int {
    // SAFETY: FFmpeg hands back `opaque` and `size` bytes.
    let (file, from) = unsafe {
        (
            contents(opaque),
            slice::from_raw_parts(from, size.max(0) as usize),
        )
    };
    file.write_all(from)
        .map_or(ffi::AVERROR(ffi::EIO), |()| from.len() as c_int)
}

unsafe extern "C" fn seek(opaque: *mut c_void, offset: i64, whence: c_int) -> i64 {
    // SAFETY: FFmpeg hands back `opaque`.
    let file = unsafe { contents(opaque) };
    let to = match whence & !(ffi::AVSEEK_FORCE as c_int) {
        w if w == ffi::AVSEEK_SIZE as c_int => return file.get_ref().len() as i64,
        w if w == ffi::SEEK_SET as c_int => u64::try_from(offset).ok().map(SeekFrom::Start),
        w if w == ffi::SEEK_CUR as c_int => Some(SeekFrom::Current(offset)),
        w if w == ffi::SEEK_END as c_int => Some(SeekFrom::End(offset)),
        _ => None,
    };
    to.and_then(|to| file.seek(to).ok())
        .map_or(i64::from(ffi::AVERROR(ffi::EINVAL)), |at| at as i64)
}
