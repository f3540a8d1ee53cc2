//! What an audio encoder takes, read from its description.
//!
//! FFmpeg 7.1 has `avcodec_get_supported_config` for this, and later versions have nothing else; all of it is here.
#![allow(unsafe_code)]

use super::audio::Channels;
use ffmpeg_next::ffi;
use std::ffi::c_int;

/// The sample rates that it takes; empty if it takes any.
pub(super) fn sample_rates(codec: &ffi::AVCodec) -> Vec<c_int> {
    // SAFETY: the list, where there is one, is static and ends with 0.
    unsafe { list(codec.supported_samplerates, |&rate| rate == 0) }
}

/// The sample formats that it takes; empty if that is not known.
pub(super) fn sample_formats(codec: &ffi::AVCodec) -> Vec<ffi::AVSampleFormat> {
    // SAFETY: the list, where there is one, is static and ends with -1, which is a format's name, too.
    unsafe {
        list(codec.sample_fmts, |&format| {
            format == ffi::AVSampleFormat::AV_SAMPLE_FMT_NONE
        })
    }
}

/// The channel layouts that it takes; empty if that is not known.
pub(super) fn channel_layouts(codec: &ffi::AVCodec) -> Vec<Channels> {
    // SAFETY: the list, where there is one, is static and ends with a layout of no channels.
    let layouts = unsafe { list(codec.ch_layouts, |layout| layout.nb_channels == 0) };
    layouts.iter().map(Channels::read).collect()
}

/// The entries at `at` up to the one that is the end.
///
/// # Safety
/// `at` is null or leads to entries that end with one for which `is_end` holds.
unsafe fn list<T: Copy>(mut at: *const T, is_end: impl Fn(&T) -> bool) -> Vec<T> {
    let mut found = Vec::new();
    // SAFETY: reads up to the end that the caller vouches for.
    unsafe {
        while let Some(entry) = at.as_ref().filter(|entry| !is_end(entry)) {
            found.push(*entry);
            at = at.add(1);
        }
    }
    found
}
