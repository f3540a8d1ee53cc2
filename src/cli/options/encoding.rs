//! Options of encoding.

use super::words;
use crate::cli::Failure;
use crate::cli::process::limits::count;
use clap::Args;
use clap::builder::StringValueParser;
use framepipe::convert::flatten::Background;
use framepipe::frame::PixelFormat;
use framepipe::sink::atomic_file::is_empty_file;
use framepipe::sink::video::{AudioEncoding, FirstFrame, StreamOptions, Streams, VideoOptions, VideoSink};
use framepipe::sink::{Sink, SinkError};
use framepipe::source::StreamInfo;
use std::num::NonZeroUsize;
use std::path::Path;

/// Encoder, container, pixel format.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EncodingArguments {
    /// FFmpeg's name of the video encoder, such as libx264, libx265, ffv1 [default: what suits the
    /// container].
    #[arg(long, value_name = "NAME", hide_possible_values = true)]
    #[arg(value_parser = words::encoders(StringValueParser::new()))]
    pub(crate) encoder: Option<String>,
    /// Quality: the encoder's own scale, lower is better (x264 and x265 0 to 51, VP9 and AV1 0 to 63, MPEG-4
    /// 1 to 31), or 1 to 100 for JPEG files, higher is better.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) quality: Option<f64>,
    /// The encoder's preset, such as veryfast.
    #[arg(long, value_name = "NAME", hide_possible_values = true)]
    #[arg(value_parser = words::presets(StringValueParser::new()))]
    pub(crate) preset: Option<String>,
    /// Any other option of the encoder; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) encoder_option: Vec<(String, String)>,
    /// Threads of FFmpeg's encoder [default: the encoder decides, most take one a core].
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) encoder_threads: Option<NonZeroUsize>,
    /// The output's pixel format in FFmpeg's words [default: the input's, where the output can hold it;
    /// yuv420p for RGB in MP4 and MOV, which is what players show]. One of floating-point samples, such as
    /// rgbf32, is what frames are filtered in, whatever the output then holds.
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    #[arg(value_parser = words::pixel_formats(StringValueParser::new()))]
    pub(crate) pixel_format: Option<String>,
    /// Lay pictures with alpha over a colour: a name such as white, #RRGGBB, or R,G,B.
    #[arg(long, value_name = "COLOUR")]
    pub(crate) background: Option<Background>,
    /// The container: FFmpeg's name of it, or an extension such as mkv [default: by the file's name].
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    #[arg(value_parser = words::containers(StringValueParser::new()))]
    pub(crate) format: Option<String>,
    /// Leave all sound out.
    #[arg(long)]
    pub(crate) no_audio: bool,
    /// Leave all subtitles out.
    #[arg(long)]
    pub(crate) no_subtitles: bool,
    /// The input's streams that go into the output beside the filtered one: all, video (none), or their
    /// indices, such as 1,3 [default: all that the container holds].
    #[arg(long, value_name = "LIST")]
    pub(crate) streams: Option<Streams>,
    /// FFmpeg's name of an encoder for all sound, such as libopus, or copy to never encode it [default: sound
    /// is copied, and encoded only if the container cannot hold it].
    #[arg(long, value_name = "NAME")]
    pub(crate) audio_encoder: Option<String>,
    /// Replace an existing output.
    #[arg(long, short = 'y')]
    pub(crate) overwrite: bool,
    /// Set for --skip-existing: files without a byte are no outputs.
    #[arg(skip)]
    pub(crate) replaces_empty: bool,
    /// Set for a part of a job: the picture alone is written, and a folder of images is shared.
    #[arg(skip)]
    pub(crate) is_part: bool,
    /// Set for a dry run: no file gets its name.
    #[arg(skip)]
    pub(crate) is_trial: bool,
    /// Set for a part of a video: the first frame of the whole.
    #[arg(skip)]
    pub(crate) first: Option<FirstFrame>,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, such as tune=grain".to_owned()),
    }
}

impl EncodingArguments {
    /// The first option that was given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        [
            (self.encoder.is_some(), "--encoder"),
            (self.quality.is_some(), "--quality"),
            (self.preset.is_some(), "--preset"),
            (!self.encoder_option.is_empty(), "--encoder-option"),
            (self.encoder_threads.is_some(), "--encoder-threads"),
            (self.pixel_format.is_some(), "--pixel-format"),
            (self.background.is_some(), "--background"),
            (self.format.is_some(), "--format"),
            (self.no_audio, "--no-audio"),
            (self.no_subtitles, "--no-subtitles"),
            (self.streams.is_some(), "--streams"),
            (self.audio_encoder.is_some(), "--audio-encoder"),
            (self.overwrite, "--overwrite"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    /// Refuses options of a video of which one takes the other's effect.
    pub(crate) fn check_together(&self) -> Result<(), Failure> {
        let own = [
            (
                self.quality.is_some(),
                "--quality",
                &["crf", "qp", "cq", "q", "qscale", "global_quality", "quality"][..],
            ),
            (
                self.preset.is_some(),
                "--preset",
                &["preset", "cpu-used", "speed"],
            ),
            (self.encoder_threads.is_some(), "--encoder-threads", &["threads"]),
            (
                self.pixel_format.is_some(),
                "--pixel-format",
                &["pix_fmt", "pixel_format"],
            ),
        ];
        for (_, option, keys) in own.into_iter().filter(|(is_given, ..)| *is_given) {
            let is_same =
                |key: &&(String, String)| keys.contains(&key.0.strip_suffix(":v").unwrap_or(&key.0));
            if let Some((key, value)) = self.encoder_option.iter().find(is_same) {
                return Err(Failure::Usage(format!(
                    "{option} and --encoder-option {key}={value} set the same; give one of the two"
                )));
            }
        }
        let no_sound = match (&self.streams, self.no_audio) {
            (_, true) => "--no-audio",
            (Some(Streams::Video), _) => "--streams video",
            _ => return Ok(()),
        };
        match &self.audio_encoder {
            Some(encoder) => Err(Failure::Usage(format!(
                "--audio-encoder {encoder} is for sound, and {no_sound} leaves all sound out; give one of \
                 the two"
            ))),
            None => Ok(()),
        }
    }

    /// True if a file at `path` that is there already may be replaced.
    pub(crate) fn replaces(&self, path: &Path) -> bool {
        let is_empty = || path.metadata().is_ok_and(|facts| is_empty_file(&facts));
        self.overwrite || self.replaces_empty && is_empty()
    }

    /// Makes the sink of a video file.
    pub(crate) fn open_video(
        &self,
        path: &Path,
        info: &StreamInfo,
        strict: bool,
    ) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(self.video_sink(path, info, strict)?))
    }

    /// The same as what it is.
    pub(crate) fn video_sink(
        &self,
        path: &Path,
        info: &StreamInfo,
        strict: bool,
    ) -> Result<VideoSink, SinkError> {
        let mut options = VideoOptions::new(path);
        options.overwrite = self.replaces(path);
        options.encoder = self.encoder.clone();
        options.quality = self.quality;
        options.preset = self.preset.clone();
        options.encoder_options = self.encoder_option.clone();
        // Frames become floating-point before they are filtered; the encoder gets a format that it takes.
        options.pixel_format = self.pixel_format.clone().filter(|_| self.floats().is_none());
        options.muxer = self.format.clone();
        options.threads = self.encoder_threads.map(NonZeroUsize::get);
        options.copy_streams = !self.is_part;
        options.streams = StreamOptions {
            streams: self.streams.clone().unwrap_or_default(),
            no_audio: self.no_audio,
            no_subtitles: self.no_subtitles,
            audio: self
                .audio_encoder
                .as_deref()
                .map_or_else(AudioEncoding::default, AudioEncoding::from),
        };
        options.strict = strict;
        options.trial = self.is_trial;
        options.first = self.first.clone();
        VideoSink::create(info, options)
    }

    /// The quality as JPEG files have it.
    pub(crate) fn jpeg_quality(&self) -> Result<Option<u8>, Failure> {
        let whole = |quality: f64| (1..=100).find(|&whole| f64::from(whole) == quality);
        let Some(quality) = self.quality else {
            return Ok(None);
        };
        whole(quality).map(Some).ok_or_else(|| {
            Failure::Usage(format!(
                "a quality of {quality} is out of range for JPEG files; use a whole number from 1 to 100, \
                 higher is better"
            ))
        })
    }

    /// The requested pixel format, if its samples are floating-point.
    pub(crate) fn floats(&self) -> Option<PixelFormat> {
        let format = self.pixel_format.as_deref().and_then(PixelFormat::from_name);
        format.filter(|format| format.is_float())
    }

    /// The pixel format as one that framepipe knows itself.
    pub(crate) fn native_pixel_format(&self) -> Result<Option<PixelFormat>, Failure> {
        self.pixel_format
            .as_deref()
            .map(|name| {
                name.parse::<PixelFormat>()
                    .map_err(|error| Failure::usage(&error))
            })
            .transpose()
    }
}
