//! What files say beside their pictures, held to [`METADATA_LIMIT`]: FFmpeg has no limit of its own, and
//! unpacks what PNG has compressed to any length.
#![allow(unsafe_code)]

use crate::annotations::png;
use crate::frame::METADATA_LIMIT;
use crate::media::ffmpeg::text::text;
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

/// What is left out of the texts of a file, its streams and its chapters, in words.
///
/// # Safety
/// The context must be open, and nobody else may use it meanwhile.
pub(in crate::media::ffmpeg) unsafe fn shorten_texts(context: *mut ffi::AVFormatContext) -> Vec<String> {
    // SAFETY: the context is open and used here alone (the function's contract), and its arrays hold as many
    // valid pointers as they say.
    unsafe {
        let context = &mut *context;
        let mut names = shorten(&raw mut context.metadata);
        for index in 0..context.nb_streams as usize {
            names.extend(shorten(&raw mut (**context.streams.add(index)).metadata));
        }
        for index in 0..context.nb_chapters as usize {
            names.extend(shorten(&raw mut (**context.chapters.add(index)).metadata));
        }
        for index in 0..context.nb_programs as usize {
            names.extend(shorten(&raw mut (**context.programs.add(index)).metadata));
        }
        names.iter().map(|name| format!("text '{name}'")).collect()
    }
}

/// Removes the longest texts of a dictionary until the rest is short enough, and names them.
///
/// # Safety
/// The pointer must be to a dictionary, which null is one of, that nobody else uses meanwhile.
unsafe fn shorten(dictionary: *mut *mut ffi::AVDictionary) -> Vec<String> {
    let mut removed = Vec::new();
    loop {
        let (mut total, mut longest, mut entry) = (0_usize, (0, CString::default()), ptr::null());
        loop {
            // SAFETY: the dictionary is valid and used here alone (the function's contract). An empty name
            // with this flag steps from one entry to the next, which is valid as long as the dictionary is
            // not changed, and whose texts end with a zero.
            unsafe {
                entry = ffi::av_dict_get(
                    *dictionary,
                    c"".as_ptr(),
                    entry,
                    ffi::AV_DICT_IGNORE_SUFFIX as c_int,
                );
                let Some(entry) = entry.as_ref() else { break };
                let key = CStr::from_ptr(entry.key);
                let len = key
                    .count_bytes()
                    .saturating_add(CStr::from_ptr(entry.value).count_bytes());
                total = total.saturating_add(len);
                if len > longest.0 {
                    longest = (len, key.to_owned());
                }
            }
        }
        if total <= METADATA_LIMIT {
            return removed;
        }
        // SAFETY: the dictionary is valid and used here alone (the function's contract), and the name ends
        // with a zero; a null value removes the entry.
        let code = unsafe {
            ffi::av_dict_set(
                dictionary,
                longest.1.as_ptr(),
                ptr::null(),
                ffi::AV_DICT_MATCH_CASE as c_int,
            )
        };
        removed.push(text(longest.1.as_ptr()));
        if code < 0 {
            return removed;
        }
    }
}

/// What is left out of the headers of animated PNG, in words: they are unpacked when the streams are looked
/// into.
///
/// # Safety
/// The context must be open, and nobody else may use it meanwhile.
pub(in crate::media::ffmpeg) unsafe fn shorten_headers(context: *mut ffi::AVFormatContext) -> Vec<String> {
    let mut left_out = Vec::new();
    // SAFETY: the context is open and used here alone (the function's contract); the headers hold
    // `extradata_size` bytes, of which no more are written, with zeros behind them as FFmpeg wants it.
    unsafe {
        for index in 0..(*context).nb_streams as usize {
            let parameters = &mut *(**(*context).streams.add(index)).codecpar;
            let size = usize::try_from(parameters.extradata_size).unwrap_or(0);
            if parameters.codec_id != ffi::AVCodecID::AV_CODEC_ID_APNG || parameters.extradata.is_null() {
                continue;
            }
            let headers = std::slice::from_raw_parts_mut(parameters.extradata, size);
            if let Some((shorter, words)) = png::within_limit(headers) {
                headers.fill(0);
                headers[..shorter.len()].copy_from_slice(&shorter);
                parameters.extradata_size = shorter.len() as c_int;
                left_out.extend(words.iter().map(|word| (*word).to_owned()));
            }
        }
    }
    left_out
}

/// Gives PNG covers the size that their headers state, since no decoder has looked into them.
///
/// # Safety
/// The context must be open, and nobody else may use it meanwhile.
pub(in crate::media::ffmpeg) unsafe fn size_covers(context: *mut ffi::AVFormatContext) {
    // Where the header of a PNG file has width and height.
    const SIZE: std::ops::Range<usize> = 16..24;
    // SAFETY: the context is open and used here alone (the function's contract); its arrays hold as many
    // valid pointers as they say, and a cover's packet holds `size` bytes.
    unsafe {
        for index in 0..(*context).nb_streams as usize {
            let stream = &*(*(*context).streams.add(index));
            let parameters = &mut *stream.codecpar;
            let cover = &stream.attached_pic;
            if parameters.codec_id != ffi::AVCodecID::AV_CODEC_ID_PNG
                || parameters.width > 0
                || cover.data.is_null()
            {
                continue;
            }
            let size = usize::try_from(cover.size).unwrap_or(0);
            let data = std::slice::from_raw_parts(cover.data, size);
            if let Some(&[w0, w1, w2, w3, h0, h1, h2, h3]) = data.get(SIZE).and_then(<[u8]>::first_chunk) {
                let side = |bytes| c_int::try_from(u32::from_be_bytes(bytes)).unwrap_or(0);
                (parameters.width, parameters.height) = (side([w0, w1, w2, w3]), side([h0, h1, h2, h3]));
            }
        }
    }
}

/// The decoders with which FFmpeg may look into the streams of an input: all but those of PNG and JPEG XL.
/// Our own decoder gets packets of the former without what is too large to be unpacked, and none of the
/// latter that FFmpeg would read for ever.
pub(in crate::media::ffmpeg) fn probing_decoders() -> *const c_char {
    static NAMES: OnceLock<CString> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        const LEFT_OUT: [ffi::AVCodecID; 2] = [
            ffi::AVCodecID::AV_CODEC_ID_PNG,
            ffi::AVCodecID::AV_CODEC_ID_JPEGXL,
        ];
        let mut names = Vec::new();
        let mut state: *mut c_void = ptr::null_mut();
        // SAFETY: codecs are static, and the state is the iteration's own.
        while let Some(codec) = unsafe { ffi::av_codec_iterate(&mut state).as_ref() } {
            // SAFETY: a codec of the list.
            let decodes = unsafe { ffi::av_codec_is_decoder(codec) } != 0;
            if decodes && !LEFT_OUT.contains(&codec.id) {
                names.push(text(codec.name));
            }
        }
        CString::new(names.join(",")).unwrap_or_default()
    });
    names.as_ptr()
}
