//! Strings, fractions, timestamps and options as FFmpeg passes them.
#![allow(unsafe_code)]

use super::AvError;
use crate::frame::Rational;
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

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

/// Sets an option of an object or of one inside it.
///
/// # Safety
///
/// `object` is an object with options.
pub(super) unsafe fn set_option(object: *mut c_void, key: &str, value: &str) -> Result<(), AvError> {
    let (key, value) = (c_string(key.as_bytes())?, c_string(value.as_bytes())?);
    let search = ffi::AV_OPT_SEARCH_CHILDREN as c_int;
    // SAFETY: the caller passes an object with options; the strings are zero-terminated.
    let code = unsafe { ffi::av_opt_set(object, key.as_ptr(), value.as_ptr(), search) };
    AvError::check(code).map(|_| ())
}
