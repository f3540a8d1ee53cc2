//! What differs between FFmpeg's versions, from 5.1 to 9: one function for each difference, and no other
//! place that asks for the version.
//!
//! `cfg(ffmpeg_7_1)` means that the headers are those of 7.1 or newer; build.rs sets it from what
//! ffmpeg-sys-next found in them. Names are FFmpeg's. The version given is that of the first release with the
//! new way, and the old way is used below it, even where FFmpeg kept both for a while.
//!
//! | since | old | new |
//! |---|---|---|
//! | 6.0 | `AVFrame.pkt_duration` | `AVFrame.duration` |
//! | 6.1 | `AVFrame.interlaced_frame`, `top_field_first` | bits of `AVFrame.flags` |
//! | 6.1 | side data of `AVStream` | side data of `AVStream.codecpar`, which is copied with it |
//! | 7.0 | `uint8_t *` of a write callback | `const uint8_t *` |
//! | 7.1 | lists in `AVCodec`, such as `pix_fmts` | `avcodec_get_supported_config` |
//!
//! swscale's flags became an enumeration in 8; they are set by their names (see `scaler`), which all versions
//! understand.
#![allow(unsafe_code)]

use ffmpeg_next::ffi;
use std::ffi::{CStr, c_int, c_uint};

/// Ends the program if it runs with another major version of FFmpeg's libraries than that of the headers that
/// it was compiled with, because every structure would be misread. A dynamic linker does not let it come to
/// that; a build folder that outlives an upgrade of the system does.
pub(super) fn check() {
    // SAFETY: these calls read constants.
    let libraries = unsafe {
        [
            (
                "libavutil",
                ffi::LIBAVUTIL_VERSION_MAJOR as c_uint,
                ffi::avutil_version(),
            ),
            (
                "libavcodec",
                ffi::LIBAVCODEC_VERSION_MAJOR as c_uint,
                ffi::avcodec_version(),
            ),
            (
                "libavformat",
                ffi::LIBAVFORMAT_VERSION_MAJOR as c_uint,
                ffi::avformat_version(),
            ),
            (
                "libswresample",
                ffi::LIBSWRESAMPLE_VERSION_MAJOR as c_uint,
                ffi::swresample_version(),
            ),
            (
                "libswscale",
                ffi::LIBSWSCALE_VERSION_MAJOR as c_uint,
                ffi::swscale_version(),
            ),
        ]
    };
    for (name, built, runs) in libraries {
        let runs = runs >> 16;
        assert!(
            built == runs,
            "framepipe was built for version {built} of FFmpeg's {name} and runs with version {runs}; \
             build it again, after 'cargo clean -p ffmpeg-sys-next' in its folder"
        );
    }
}

/// The version of the FFmpeg that the libraries are of, as it names itself.
pub fn name() -> String {
    // SAFETY: the call gives a constant text that ends with a zero.
    let text = unsafe { CStr::from_ptr(ffi::av_version_info()) };
    text.to_string_lossy().into_owned()
}

/// What an I/O context's write callback is given.
#[cfg(ffmpeg_7_0)]
pub(super) type BytesToWrite = *const u8;
/// What an I/O context's write callback is given.
#[cfg(not(ffmpeg_7_0))]
pub(super) type BytesToWrite = *mut u8;

/// A stream's block of side data of one kind.
///
/// # Safety
/// `stream` must be valid as long as the block is used, and its side data unchanged.
pub(super) unsafe fn stream_side_data<'a>(
    stream: *const ffi::AVStream,
    kind: ffi::AVPacketSideDataType,
) -> Option<&'a [u8]> {
    // SAFETY: the stream is valid (the function's contract); a block, where there is one, holds as many bytes
    // as it says.
    unsafe {
        #[cfg(ffmpeg_6_1)]
        let (data, size) = {
            let parameters = &*(*stream).codecpar;
            let (blocks, count) = (parameters.coded_side_data, parameters.nb_coded_side_data);
            let block = ffi::av_packet_side_data_get(blocks, count, kind).as_ref()?;
            (block.data, block.size)
        };
        #[cfg(not(ffmpeg_6_1))]
        let (data, size) = {
            let mut size = 0;
            let data = ffi::av_stream_get_side_data(stream, kind, &mut size);
            (data, size)
        };
        (!data.is_null()).then(|| std::slice::from_raw_parts(data, size))
    }
}

/// Gives a stream a block of side data, in place of one of the same kind, and tells where its `size` bytes
/// are to be written; null if there is no memory.
///
/// # Safety
/// `stream` must be valid.
pub(super) unsafe fn new_stream_side_data(
    stream: *mut ffi::AVStream,
    kind: ffi::AVPacketSideDataType,
    size: usize,
) -> *mut u8 {
    // SAFETY: the stream and its parameters, which own the array of blocks, are valid (the
    // function's contract).
    unsafe {
        #[cfg(ffmpeg_6_1)]
        {
            let parameters = &mut *(*stream).codecpar;
            let (blocks, count) = (
                &mut parameters.coded_side_data,
                &mut parameters.nb_coded_side_data,
            );
            ffi::av_packet_side_data_new(blocks, count, kind, size, 0)
                .as_ref()
                .map_or(std::ptr::null_mut(), |block| block.data)
        }
        #[cfg(not(ffmpeg_6_1))]
        {
            ffi::av_stream_new_side_data(stream, kind, size)
        }
    }
}

/// How long a frame is shown, in its stream's time base; 0 if unknown.
pub(super) fn duration(frame: &ffi::AVFrame) -> i64 {
    #[cfg(ffmpeg_6_0)]
    {
        frame.duration
    }
    #[cfg(not(ffmpeg_6_0))]
    {
        frame.pkt_duration
    }
}

/// Whether a frame holds two fields, and whether the upper one of them is the earlier.
pub(super) fn fields(frame: &ffi::AVFrame) -> (bool, bool) {
    #[cfg(ffmpeg_6_1)]
    {
        let has = |bit| frame.flags & bit as c_int != 0;
        (
            has(ffi::AV_FRAME_FLAG_INTERLACED),
            has(ffi::AV_FRAME_FLAG_TOP_FIELD_FIRST),
        )
    }
    #[cfg(not(ffmpeg_6_1))]
    {
        (frame.interlaced_frame != 0, frame.top_field_first != 0)
    }
}

/// Marks a frame as [`fields`] tells it.
pub(super) fn set_fields(frame: &mut ffi::AVFrame, interlaced: bool, top_first: bool) {
    #[cfg(ffmpeg_6_1)]
    for (bit, on) in [
        (ffi::AV_FRAME_FLAG_INTERLACED as c_int, interlaced),
        (ffi::AV_FRAME_FLAG_TOP_FIELD_FIRST as c_int, top_first),
    ] {
        frame.flags = if on { frame.flags | bit } else { frame.flags & !bit };
    }
    #[cfg(not(ffmpeg_6_1))]
    {
        frame.interlaced_frame = c_int::from(interlaced);
        frame.top_field_first = c_int::from(top_first);
    }
}

/// What can be asked of an encoder, in [`supported`].
enum Config {
    PixelFormat,
    SampleRate,
    SampleFormat,
    ChannelLayout,
}

/// The first entry of the list of what an encoder takes; null if it takes anything, or does not say. The
/// lists are static.
fn supported(codec: &'static ffi::AVCodec, config: &Config) -> *const std::ffi::c_void {
    #[cfg(ffmpeg_7_1)]
    {
        let kind = match config {
            Config::PixelFormat => ffi::AVCodecConfig::AV_CODEC_CONFIG_PIX_FORMAT,
            Config::SampleRate => ffi::AVCodecConfig::AV_CODEC_CONFIG_SAMPLE_RATE,
            Config::SampleFormat => ffi::AVCodecConfig::AV_CODEC_CONFIG_SAMPLE_FORMAT,
            Config::ChannelLayout => ffi::AVCodecConfig::AV_CODEC_CONFIG_CHANNEL_LAYOUT,
        };
        let mut list = std::ptr::null();
        // SAFETY: no context is allowed, and no count.
        let code = unsafe {
            ffi::avcodec_get_supported_config(
                std::ptr::null(),
                codec,
                kind,
                0,
                &mut list,
                std::ptr::null_mut(),
            )
        };
        if code < 0 { std::ptr::null() } else { list }
    }
    #[cfg(not(ffmpeg_7_1))]
    match config {
        Config::PixelFormat => codec.pix_fmts.cast(),
        Config::SampleRate => codec.supported_samplerates.cast(),
        Config::SampleFormat => codec.sample_fmts.cast(),
        Config::ChannelLayout => codec.ch_layouts.cast(),
    }
}

/// The entries at `at` up to the one that is the end; none if it is null.
///
/// # Safety
/// `at` is null or leads to entries that end with one for which `is_end` holds.
unsafe fn list<T: Copy>(mut at: *const T, is_end: impl Fn(&T) -> bool) -> Vec<T> {
    let mut found = Vec::new();
    // SAFETY: `at` leads to entries up to one that `is_end` (the function's contract), and none after it is
    // read.
    unsafe {
        while let Some(entry) = at.as_ref().filter(|entry| !is_end(entry)) {
            found.push(*entry);
            at = at.add(1);
        }
    }
    found
}

/// The numbers of the pixel formats that an encoder takes, the one that it prefers first; empty if it takes
/// any.
pub(super) fn pixel_formats(codec: &'static ffi::AVCodec) -> Vec<c_int> {
    // SAFETY: the list ends with -1. Read as numbers, since a newer library may know more formats than our
    // headers.
    unsafe {
        list(
            supported(codec, &Config::PixelFormat).cast(),
            |&format: &c_int| format == -1,
        )
    }
}

/// The sample rates that an audio encoder takes; empty if it takes any.
pub(super) fn sample_rates(codec: &'static ffi::AVCodec) -> Vec<c_int> {
    // SAFETY: the list ends with 0.
    unsafe {
        list(supported(codec, &Config::SampleRate).cast(), |&rate: &c_int| {
            rate == 0
        })
    }
}

/// The numbers of the sample formats that an audio encoder takes; empty if it does not say.
pub(super) fn sample_formats(codec: &'static ffi::AVCodec) -> Vec<c_int> {
    // SAFETY: the list ends with -1.
    unsafe {
        list(
            supported(codec, &Config::SampleFormat).cast(),
            |&format: &c_int| format == -1,
        )
    }
}

/// The channel layouts that an audio encoder takes; empty if it does not say.
pub(super) fn channel_layouts(codec: &'static ffi::AVCodec) -> Vec<ffi::AVChannelLayout> {
    // SAFETY: the list ends with a layout without channels.
    unsafe {
        list(
            supported(codec, &Config::ChannelLayout).cast(),
            |layout: &ffi::AVChannelLayout| layout.nb_channels == 0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::ptr;

    #[test]
    fn the_libraries_are_those_of_the_headers() {
        check();
    }

    #[test]
    fn a_stream_keeps_its_blocks_of_side_data() {
        use ffi::AVPacketSideDataType::{
            AV_PKT_DATA_CONTENT_LIGHT_LEVEL as LIGHT, AV_PKT_DATA_DISPLAYMATRIX as MATRIX,
        };
        // SAFETY: the stream lives until its context is freed at the end, and a new block has room for what
        // is written.
        unsafe {
            let context = ffi::avformat_alloc_context();
            let stream = ffi::avformat_new_stream(context, ptr::null());
            assert_eq!(stream_side_data(stream, MATRIX), None);
            for (kind, bytes) in [
                (MATRIX, &[1_u8; 36][..]),
                (LIGHT, &[2; 8]),
                (MATRIX, &[3; 36]), // in place of the first
            ] {
                let data = new_stream_side_data(stream, kind, bytes.len());
                assert!(!data.is_null());
                ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
            }
            assert_eq!(stream_side_data(stream, MATRIX), Some(&[3; 36][..]));
            assert_eq!(stream_side_data(stream, LIGHT), Some(&[2; 8][..]));
            ffi::avformat_free_context(context);
        }
    }

    #[test]
    fn a_decoded_frame_has_its_packets_duration() {
        // SAFETY: all objects are made here, used in the order that FFmpeg asks for, and freed once.
        unsafe {
            let codec = ffi::avcodec_find_decoder(ffi::AVCodecID::AV_CODEC_ID_RAWVIDEO);
            let mut context = ffi::avcodec_alloc_context3(codec);
            (*context).width = 16;
            (*context).height = 2;
            (*context).pix_fmt = ffi::AVPixelFormat::AV_PIX_FMT_GRAY8;
            assert_eq!(ffi::avcodec_open2(context, codec, ptr::null_mut()), 0);
            let mut packet = ffi::av_packet_alloc();
            assert_eq!(ffi::av_new_packet(packet, 32), 0);
            (*packet).data.write_bytes(0, 32);
            (*packet).duration = 7;
            let mut frame = ffi::av_frame_alloc();
            assert_eq!(duration(&*frame), 0);
            assert_eq!(ffi::avcodec_send_packet(context, packet), 0);
            assert_eq!(ffi::avcodec_receive_frame(context, frame), 0);
            assert_eq!(duration(&*frame), 7);
            ffi::av_frame_free(&mut frame);
            ffi::av_packet_free(&mut packet);
            ffi::avcodec_free_context(&mut context);
        }
    }

    #[test]
    fn fields_are_read_as_they_were_set() {
        // SAFETY: the frame is made here and freed once.
        unsafe {
            let mut frame = ffi::av_frame_alloc();
            assert_eq!(fields(&*frame), (false, false));
            for marks in [(true, true), (true, false), (false, false)] {
                (*frame).flags |= ffi::AV_FRAME_FLAG_CORRUPT as c_int;
                set_fields(&mut *frame, marks.0, marks.1);
                assert_eq!(fields(&*frame), marks);
                assert_ne!((*frame).flags & ffi::AV_FRAME_FLAG_CORRUPT as c_int, 0);
            }
            ffi::av_frame_free(&mut frame);
        }
    }

    #[test]
    fn encoders_name_their_pixel_formats() {
        // SAFETY: the name is zero-terminated; codecs are static.
        let formats = |name: &CStr| unsafe {
            pixel_formats(ffi::avcodec_find_encoder_by_name(name.as_ptr()).as_ref().unwrap())
        };
        assert_eq!(
            formats(c"mpeg4"),
            [ffi::AVPixelFormat::AV_PIX_FMT_YUV420P as c_int]
        );
        assert_eq!(formats(c"rawvideo"), [] as [c_int; 0]);
        // SAFETY: the name is zero-terminated; codecs are static.
        let codec = unsafe {
            ffi::avcodec_find_encoder_by_name(c"mp2".as_ptr())
                .as_ref()
                .unwrap()
        };
        assert!(sample_rates(codec).contains(&44_100) && !sample_rates(codec).contains(&8000));
        assert_eq!(
            sample_formats(codec),
            [ffi::AVSampleFormat::AV_SAMPLE_FMT_S16 as c_int]
        );
        let channels: Vec<_> = channel_layouts(codec).iter().map(|l| l.nb_channels).collect();
        assert_eq!(channels, [1, 2]);
        let huffyuv = formats(c"huffyuv");
        for format in [
            ffi::AVPixelFormat::AV_PIX_FMT_YUV422P,
            ffi::AVPixelFormat::AV_PIX_FMT_RGB24,
        ] {
            assert!(huffyuv.contains(&(format as c_int)), "{huffyuv:?}");
        }
    }
}
