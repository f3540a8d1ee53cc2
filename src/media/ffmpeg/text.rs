//! Strings, fractions, timestamps and options as FFmpeg passes them.
#![allow(unsafe_code)]

use super::AvError;
use crate::frame::Rational;
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

pub(super) fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: FFmpeg's names are zero-terminated and live as long as the object that they were read from.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

pub(super) fn timestamp(value: i64) -> Option<i64> {
    (value != ffi::AV_NOPTS_VALUE).then_some(value)
}

pub(super) fn rational(value: ffi::AVRational) -> Rational {
    Rational {
        num: value.num,
        den: value.den,
    }
}

/// `value` from one time base to another, to the nearest tick; halves go away from zero.
pub(crate) fn rescale(value: i64, from: Rational, to: Rational) -> i64 {
    let raw = |r: Rational| ffi::AVRational {
        num: r.num,
        den: r.den.max(1),
    };
    if to.num == 0 {
        return value;
    }
    // SAFETY: pure arithmetic; the denominators are not zero.
    unsafe { ffi::av_rescale_q(value, raw(from), raw(to)) }
}

pub(super) fn c_string(bytes: &[u8]) -> Result<CString, AvError> {
    CString::new(bytes).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)))
}

pub(super) fn raw_rational(value: Rational) -> ffi::AVRational {
    ffi::AVRational {
        num: value.num,
        den: value.den,
    }
}

/// Sets an option of what writes video, or of an object inside it. Shared options that are for reading, for
/// sound or for FFmpeg itself are not found: they would go into fields such as the pictures' size.
///
/// # Safety
///
/// `object` is an object with options.
pub(super) unsafe fn set_option(object: *mut c_void, key: &str, value: &str) -> Result<(), AvError> {
    let (key, value) = (c_string(key.as_bytes())?, c_string(value.as_bytes())?);
    let search = ffi::AV_OPT_SEARCH_CHILDREN as c_int;
    let mut owner = ptr::null_mut();
    // SAFETY: the caller passes an object with options; the strings are zero-terminated; options are static.
    let code = unsafe {
        let option = ffi::av_opt_find2(object, key.as_ptr(), ptr::null(), 0, search, &mut owner).as_ref();
        match option {
            Some(option) if owner == object && !is_for_writing_video(option.flags) => {
                ffi::AVERROR_OPTION_NOT_FOUND
            }
            _ => ffi::av_opt_set(object, key.as_ptr(), value.as_ptr(), search),
        }
    };
    AvError::check(code).map(|_| ())
}

/// True for the flags of an option that takes effect in an encoder of video or in a muxer.
fn is_for_writing_video(flags: c_int) -> bool {
    let is_set = |flag| flags & flag as c_int != 0;
    let of_others = is_set(ffi::AV_OPT_FLAG_AUDIO_PARAM) || is_set(ffi::AV_OPT_FLAG_SUBTITLE_PARAM);
    is_set(ffi::AV_OPT_FLAG_ENCODING_PARAM) && (is_set(ffi::AV_OPT_FLAG_VIDEO_PARAM) || !of_others)
}
