//! Frames lent to an encoder: pictures whose pixels are a frame's own memory.
#![allow(unsafe_code)]

use crate::frame::Frame;
use crate::media::ffmpeg::{AvError, AvFormat, Picture};
use ffmpeg_next::ffi;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A frame that FFmpeg holds, and the count of those.
struct LentFrame {
    frame: Frame,
    count: Arc<AtomicUsize>,
}

unsafe extern "C" fn give_back(opaque: *mut c_void, _data: *mut u8) {
    // SAFETY: `opaque` is the box made in `lend`, handed over once to the buffer whose last reference has
    // just gone.
    let lent = unsafe { Box::from_raw(opaque.cast::<LentFrame>()) };
    let LentFrame { frame, count } = *lent;
    drop(frame);
    count.fetch_sub(1, Ordering::Release);
}

/// A picture whose pixels are those of `frame`, which lives on until FFmpeg gives up its last reference;
/// `count` tells how many do.
pub(crate) fn lend(frame: Frame, format: AvFormat, count: &Arc<AtomicUsize>) -> Result<Picture, AvError> {
    let layout = *frame.layout();
    let size = |v: usize| c_int::try_from(v).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)));
    let (width, height) = (size(layout.width())?, size(layout.height())?);
    let mut strides = [0; 8];
    for (stride, plane) in strides.iter_mut().zip(layout.planes()) {
        *stride = size(plane.stride)?;
    }
    let picture = Picture::new()?;
    count.fetch_add(1, Ordering::Acquire);
    let lent = Box::into_raw(Box::new(LentFrame {
        frame,
        count: Arc::clone(count),
    }));
    // SAFETY: the box stays where it is until `give_back`, and the frame's memory with it; FFmpeg only reads
    // it (the buffer is marked read-only); on failure the box is taken back.
    unsafe {
        let bytes = (*lent).frame.bytes();
        let data = bytes.as_ptr().cast_mut();
        let buffer = ffi::av_buffer_create(
            data,
            bytes.len(),
            Some(give_back),
            lent.cast(),
            ffi::AV_BUFFER_FLAG_READONLY as c_int,
        );
        if buffer.is_null() {
            give_back(lent.cast(), data);
            return Err(AvError::no_memory());
        }
        let raw = &mut *picture.as_ptr();
        raw.buf[0] = buffer;
        raw.format = format.0;
        raw.width = width;
        raw.height = height;
        raw.linesize = strides;
        for (place, plane) in raw.data.iter_mut().zip(layout.planes()) {
            *place = data.add(plane.offset);
        }
        raw.extended_data = raw.data.as_mut_ptr();
    }
    Ok(picture)
}
