//! What a container says of its streams.
#![allow(unsafe_code)]

use super::Demuxer;
use crate::frame::fact::Fact;
use crate::frame::{METADATA_LIMIT, Rational, SideData};
use crate::media::ffmpeg::pictures::side_data::{STREAM_SIDE_DATA, stream_fact};
use crate::media::ffmpeg::text::{rational, text, timestamp};
use crate::media::ffmpeg::{Packet, Picture, version};
use ffmpeg_next::ffi;
use std::ffi::{CStr, c_int};
use std::ptr;

/// What kind of data a stream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    Video,
    Audio,
    Subtitle,
    Data,
    Attachment,
    Other,
}

impl Medium {
    pub(super) fn of(kind: ffi::AVMediaType) -> Medium {
        match kind {
            ffi::AVMediaType::AVMEDIA_TYPE_VIDEO => Medium::Video,
            ffi::AVMediaType::AVMEDIA_TYPE_AUDIO => Medium::Audio,
            ffi::AVMediaType::AVMEDIA_TYPE_SUBTITLE => Medium::Subtitle,
            ffi::AVMediaType::AVMEDIA_TYPE_DATA => Medium::Data,
            ffi::AVMediaType::AVMEDIA_TYPE_ATTACHMENT => Medium::Attachment,
            _ => Medium::Other,
        }
    }

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Medium::Video => "video",
            Medium::Audio => "audio",
            Medium::Subtitle => "subtitle",
            Medium::Data => "data",
            Medium::Attachment => "attachment",
            Medium::Other => "unknown",
        }
    }
}

/// What a demuxer says of one of its streams.
#[derive(Debug, Clone)]
pub(crate) struct StreamFacts {
    /// The container's own number for it, such as that of an MP4 file's track.
    pub(crate) id: i32,
    pub(crate) medium: Medium,
    /// FFmpeg's name of the codec.
    pub(crate) codec: String,
    /// The codec is known: the data is not just bytes without a name.
    pub(crate) has_codec: bool,
    /// The container's four-letter mark for the codec, 0 if none.
    pub(crate) tag: u32,
    /// A still picture such as a cover, not a video.
    pub(crate) is_cover: bool,
    /// The stream that a player would choose.
    pub(crate) is_default: bool,
    pub(crate) time_base: Rational,
    /// Frames according to the container, 0 if it does not say.
    pub(crate) frames: i64,
    pub(crate) duration: Option<i64>,
    pub(crate) start: Option<i64>,
    /// Frames a second as counted, (0, 0) if unknown.
    pub(crate) mean_rate: (i32, i32),
    pub(crate) width: i32,
    pub(crate) height: i32,
    /// Pictures that are decoded ahead of their turn at most, as far as headers say.
    pub(crate) reordered: usize,
    /// Channels of sound.
    pub(crate) channels: i32,
    /// Its times tell where the input's clock is.
    pub(crate) leads: bool,
    /// Seconds of sound at its beginning that are decoded to be thrown away.
    pub(crate) priming: f64,
}

/// Samples that are stored together.
pub(in crate::media::ffmpeg) enum SamplesOf {
    Block(c_int),
    Packet(c_int),
}

impl StreamFacts {
    /// Stream `index`, whose facts these are, in messages.
    pub(crate) fn label(&self, index: usize) -> String {
        let codec = match &self.tag.to_le_bytes() {
            // FFmpeg has no codec for time codes.
            b"tmcd" => "tmcd",
            _ => &self.codec,
        };
        format!("stream {index} ({}, {codec})", self.medium.word())
    }

    /// When it begins, in seconds of the container's clock; 0 if that is not known.
    pub(crate) fn begins(&self) -> f64 {
        self.start.map_or(0.0, |at| at as f64 * self.time_base.to_f64())
    }
}

/// True if a stream's times tell where the input's clock is: sound and video do, covers and subtitles don't.
pub(super) fn leads(medium: Medium, disposition: c_int) -> bool {
    let is_cover = disposition & ffi::AV_DISPOSITION_ATTACHED_PIC as c_int != 0;
    matches!(medium, Medium::Video | Medium::Audio) && !is_cover
}

impl Demuxer {
    /// Pointer to stream `index`.
    pub(crate) fn stream_ptr(&self, index: usize) -> Option<*mut ffi::AVStream> {
        // SAFETY: `streams` holds `nb_streams` valid pointers.
        (index < self.stream_count()).then(|| unsafe { *self.context().streams.add(index) })
    }

    /// How many streams there are now; some containers show more while they are read.
    pub(crate) fn stream_count(&self) -> usize {
        self.context().nb_streams as usize
    }

    /// The stream that packets of a transport stream with identifier `pid` are of, if it is seen, heard or
    /// read.
    pub(crate) fn stream_of_packets(&self, pid: u32) -> Option<usize> {
        (0..self.stream_count()).find(|&index| {
            let facts = self
                .stream(index)
                .filter(|facts| u32::try_from(facts.id) == Ok(pid));
            facts
                .is_some_and(|facts| matches!(facts.medium, Medium::Video | Medium::Audio | Medium::Subtitle))
        })
    }

    /// Seconds that a tick of stream `index` lasts; asked for each packet, so without the other facts.
    pub(crate) fn time_base(&self, index: usize) -> Option<Rational> {
        // SAFETY: a stream lives as long as the context.
        self.stream_ptr(index)
            .map(|stream| rational(unsafe { (*stream).time_base }))
    }

    /// What is known of stream `index`.
    pub(crate) fn stream(&self, index: usize) -> Option<StreamFacts> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: a stream and its parameters live as long as the context.
        let (stream, parameters) = unsafe { (&*stream, &*(*stream).codecpar) };
        // SAFETY: the name is static.
        let codec = text(unsafe { ffi::avcodec_get_name(parameters.codec_id) });
        Some(StreamFacts {
            id: stream.id,
            medium: Medium::of(parameters.codec_type),
            codec,
            has_codec: !matches!(
                parameters.codec_id,
                ffi::AVCodecID::AV_CODEC_ID_NONE | ffi::AVCodecID::AV_CODEC_ID_BIN_DATA
            ),
            tag: parameters.codec_tag,
            is_cover: stream.disposition & ffi::AV_DISPOSITION_ATTACHED_PIC as c_int != 0,
            is_default: stream.disposition & ffi::AV_DISPOSITION_DEFAULT as c_int != 0,
            time_base: rational(stream.time_base),
            frames: stream.nb_frames,
            duration: timestamp(stream.duration),
            start: timestamp(stream.start_time),
            mean_rate: (stream.avg_frame_rate.num, stream.avg_frame_rate.den),
            width: parameters.width,
            height: parameters.height,
            reordered: parameters.video_delay.max(0) as usize,
            channels: parameters.ch_layout.nb_channels,
            leads: leads(Medium::of(parameters.codec_type), stream.disposition),
            priming: match parameters.sample_rate {
                rate if rate > 0 => f64::from(parameters.initial_padding) / f64::from(rate),
                _ => 0.0,
            },
        })
    }

    /// True if packets are found by an index only, which may lie behind them, and the input cannot go back.
    pub(crate) fn needs_index(&self) -> bool {
        self.format_name().contains("mp4") && !self.can_seek()
    }

    /// How many packets of stream `index` an MP4 or QuickTime file lists, less those that its edit list
    /// leaves out; `None` for other containers, and for fragments, which are listed one by one.
    pub(crate) fn listed_packets(&self, index: usize) -> Option<u64> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: the stream belongs to the open context.
        let stored = u64::try_from(unsafe { (*stream).nb_frames }).ok()?;
        let listed = self.index_entries(index)?;
        (self.format_name().contains("mp4") && stored > 0 && listed > 0 && listed <= stored).then_some(listed)
    }

    /// How many packets of stream `index` the index of an AVI file leads to: all that hold something. `None`
    /// where it has none, and for other containers.
    pub(crate) fn indexed_packets(&self, index: usize) -> Option<u64> {
        self.indexed.get(index).copied().filter(|&entries| entries > 0)
    }

    /// Entries of the index of stream `index` that FFmpeg has so far.
    pub(super) fn index_entries(&self, index: usize) -> Option<u64> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: the stream belongs to the open context.
        u64::try_from(unsafe { ffi::avformat_index_get_entries_count(stream) }).ok()
    }

    /// True if a decoder can be opened by what is known of stream `index`.
    pub(crate) fn opens_decoder(&self, index: usize) -> bool {
        let Some(stream) = self.stream_ptr(index) else {
            return false;
        };
        // SAFETY: a stream and its parameters live as long as the context; the decoder's context is made and
        // freed here.
        unsafe {
            let parameters = (*stream).codecpar;
            let codec = ffi::avcodec_find_decoder((*parameters).codec_id);
            if codec.is_null() {
                return false;
            }
            let mut context = ffi::avcodec_alloc_context3(codec);
            if context.is_null() {
                return false;
            }
            let opened = ffi::avcodec_parameters_to_context(context, parameters) >= 0
                && ffi::avcodec_open2(context, codec, ptr::null_mut()) >= 0;
            ffi::avcodec_free_context(&mut context);
            opened
        }
    }

    /// A packet at time 0 of that many seconds of silence for stream `index`, if its codec is PCM.
    pub(crate) fn silence(&self, index: usize, seconds: f64) -> Option<Packet> {
        let (codec, rate, frame) = self.pcm(index)?;
        let silent = match codec.as_str() {
            "pcm_u8" => 0x80,
            "pcm_alaw" => 0xD5,
            "pcm_mulaw" => 0xFF,
            codec if codec.starts_with("pcm_s") || codec.starts_with("pcm_f") => 0,
            _ => return None,
        };
        // Rounding makes no further one.
        let frames = (seconds * rate - 1e-3).ceil();
        if frames < 1.0 {
            return None;
        }
        let mut packet = Packet::from_data(&vec![silent; frames as usize * frame], 0, true).ok()?;
        packet.set_duration(1);
        Some(packet)
    }

    /// Seconds of that many bytes of stream `index`, if its codec is PCM.
    pub(crate) fn pcm_seconds(&self, index: usize, bytes: usize) -> Option<f64> {
        let (_, rate, frame) = self.pcm(index)?;
        Some((bytes / frame) as f64 / rate)
    }

    /// Samples of each channel in a block of stream `index`, all of which are as large as it says, or, where
    /// AVI counts packets of any size, in one of them.
    pub(in crate::media::ffmpeg) fn samples_of_packet(&self, index: usize) -> Option<SamplesOf> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: a stream and its parameters live as long as the context; they are only read.
        let (has_blocks, in_block, rate) = unsafe {
            let parameters = (*stream).codecpar;
            (
                ffi::av_get_bits_per_sample((*parameters).codec_id) > 0,
                ffi::av_get_audio_frame_duration2(parameters, (*parameters).block_align),
                (*parameters).sample_rate,
            )
        };
        if has_blocks {
            // PCM's blocks are samples.
            return (in_block > 1).then_some(SamplesOf::Block(in_block));
        }
        let samples = self.time_base(index)?.to_f64() * f64::from(rate);
        let is_whole = self.format == "avi" && (samples - samples.round()).abs() < 1e-6;
        (is_whole && samples > 1.5).then_some(SamplesOf::Packet(samples.round() as c_int))
    }

    /// The codec of stream `index`, its samples a second, and the bytes of one of all channels, if it is PCM.
    fn pcm(&self, index: usize) -> Option<(String, f64, usize)> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: a stream and its parameters live as long as the context.
        let parameters = unsafe { &*(*stream).codecpar };
        // SAFETY: a pure function of the codec, 0 for what is no PCM.
        let bits = unsafe { ffi::av_get_bits_per_sample(parameters.codec_id) };
        let frame = match parameters.block_align {
            0 => bits * parameters.ch_layout.nb_channels / 8,
            stated => stated,
        };
        let frame = usize::try_from(frame).ok().filter(|&bytes| bytes > 0)?;
        let codec = self.stream(index)?.codec;
        let is_pcm = codec.starts_with("pcm_") && parameters.sample_rate > 0;
        is_pcm.then_some((codec, f64::from(parameters.sample_rate), frame))
    }

    /// Nominal frames a second of stream `index`.
    pub(crate) fn frame_rate(&self, index: usize) -> Option<Rational> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: context and stream are open; a null frame is allowed.
        let rate = unsafe { ffi::av_guess_frame_rate(self.context, stream, ptr::null_mut()) };
        (rate.num > 0 && rate.den > 0).then(|| rational(rate).without_rounding())
    }

    /// Width over height of a pixel of `picture`; (0, 1) if unknown.
    pub(crate) fn sample_aspect(&self, index: usize, picture: &Picture) -> (i32, i32) {
        let Some(stream) = self.stream_ptr(index) else {
            return (0, 1);
        };
        // SAFETY: context, stream and frame are valid.
        let aspect = unsafe { ffi::av_guess_sample_aspect_ratio(self.context, stream, picture.as_ptr()) };
        if aspect.num > 0 && aspect.den > 0 {
            (aspect.num, aspect.den)
        } else {
            (0, 1)
        }
    }

    /// A text that the container attaches to stream `index`.
    pub(crate) fn stream_tag(&self, index: usize, key: &CStr) -> Option<String> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: the dictionary belongs to the stream; null means empty.
        unsafe {
            let entry = ffi::av_dict_get((*stream).metadata, key.as_ptr(), ptr::null(), 0);
            entry.as_ref().map(|entry| text(entry.value))
        }
    }

    /// True if the container says that stream `index` carries alpha beside its pictures.
    pub(crate) fn claims_alpha(&self, index: usize) -> bool {
        // Keys are compared without regard to case.
        self.stream_tag(index, c"alpha_mode")
            .is_some_and(|value| value.trim().parse::<i64>().is_ok_and(|mode| mode != 0))
    }

    /// The codec's headers of stream `index`, as the container stores them; empty if there are none.
    pub(crate) fn extradata(&self, index: usize) -> &[u8] {
        let Some(stream) = self.stream_ptr(index) else {
            return &[];
        };
        // SAFETY: the block, where there is one, holds `extradata_size` bytes and lives as long as the
        // stream.
        unsafe {
            let parameters = &*(*stream).codecpar;
            if parameters.extradata.is_null() || parameters.extradata_size <= 0 {
                return &[];
            }
            std::slice::from_raw_parts(parameters.extradata, parameters.extradata_size as usize)
        }
    }

    /// The file of the cover that stream `index` is; `None` if it is no cover, or one that is not known yet.
    pub(crate) fn cover(&self, index: usize) -> Option<&[u8]> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: a stream and its cover's packet, which holds `size` bytes, live as long as the context.
        unsafe {
            let cover = &(*stream).attached_pic;
            let size = usize::try_from(cover.size).unwrap_or(0);
            (!cover.data.is_null()).then(|| std::slice::from_raw_parts(cover.data, size))
        }
    }

    /// The blocks of stream `index` that describe its pictures; `kind` is a number of AVPacketSideDataType.
    pub(crate) fn stream_side_data(&self, index: usize) -> Vec<SideData> {
        let Some(stream) = self.stream_ptr(index) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for &kind in STREAM_SIDE_DATA {
            // SAFETY: the stream lives as long as the context, and its blocks are copied at once.
            let data = unsafe { version::stream_side_data(stream, kind) };
            if let Some(data) = data.filter(|data| data.len() <= METADATA_LIMIT) {
                found.push(SideData {
                    kind: kind as u32,
                    fact: stream_fact(kind as u32),
                    name: None,
                    data: data.into(),
                });
            }
        }
        found
    }

    /// What the blocks of stream `index` are about that are too large to be carried.
    pub(crate) fn large_side_data(&self, index: usize) -> Vec<Fact> {
        let Some(stream) = self.stream_ptr(index) else {
            return Vec::new();
        };
        let is_large = |kind: &&ffi::AVPacketSideDataType| {
            // SAFETY: the stream lives as long as the context.
            let data = unsafe { version::stream_side_data(stream, **kind) };
            data.is_some_and(|data| data.len() > METADATA_LIMIT)
        };
        let large = STREAM_SIDE_DATA.iter().filter(is_large);
        large.map(|&kind| stream_fact(kind as u32)).collect()
    }

    /// States that the sound of stream `index` begins that many seconds before it is heard.
    pub(crate) fn set_priming(&mut self, index: usize, seconds: f64) {
        if let Some(stream) = self.stream_ptr(index) {
            // SAFETY: the stream and its parameters belong to this context, which is borrowed mutably.
            unsafe {
                let parameters = &mut *(*stream).codecpar;
                parameters.initial_padding = (seconds * f64::from(parameters.sample_rate)).round() as c_int;
            }
        }
    }

    /// Tells the demuxer that stream `index` will not be read.
    pub(crate) fn discard(&mut self, index: usize) {
        if let Some(stream) = self.stream_ptr(index) {
            // SAFETY: the stream belongs to this context, which is borrowed mutably.
            unsafe { (*stream).discard = ffi::AVDiscard::AVDISCARD_ALL };
        }
    }
}
