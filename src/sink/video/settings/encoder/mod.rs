//! An encoder with its options.

mod configure;
mod hdr;
mod quality;

pub(in crate::sink::video) use hdr::Hdr;
#[doc(hidden)]
pub use quality::X26X_PRESETS;

use super::rehearsal::Opened;
use super::selection::FormatChoice;
use super::{alpha, selection};
use crate::media::ffmpeg::{AvError, CardSurfaces, Encoder, EncoderSetup, log};
use crate::sink::SinkError;
use crate::sink::video::VideoSink;
use configure::{RequestedSettings, configure};

impl VideoSink {
    /// Opens the encoder for frames as the stream's facts announce them, for trial: what is wrong with its
    /// options, or missing on this machine, is known before any work is done.
    pub(in crate::sink::video) fn try_encoder(&self) -> Result<(Opened, String), SinkError> {
        let choice = self
            .announced_choice()
            .map_err(|problem| self.unsupported(problem))?;
        self.open_on_trial(&self.announced_setup(&choice), &Hdr::default(), None)
    }

    /// The format that goes to the encoder for frames as the stream's facts announce them.
    pub(in crate::sink::video) fn announced_choice(&self) -> Result<FormatChoice, String> {
        let info = &self.info;
        selection::choose_format(
            (self.kind, self.container.name()),
            (info.format, info.colour, info.stored_chroma),
            (info.width, info.height),
            self.options.pixel_format.as_deref(),
            alpha::is_held(&self.container, self.kind),
        )
    }

    /// Settings for such frames.
    pub(in crate::sink::video) fn announced_setup(&self, choice: &FormatChoice) -> EncoderSetup {
        let info = &self.info;
        EncoderSetup {
            colour: choice.colour,
            time_base: selection::encoder_time_base(
                &self.kind.name(),
                &self.output.muxer.name(),
                info.time_base,
                info.frame_rate,
            ),
            frame_rate: info.frame_rate,
            global_header: self.output.muxer.wants_global_header(),
            ..EncoderSetup::plain(choice.format, info.width, info.height)
        }
    }

    /// An open encoder, which reads pictures of `surfaces` if there are such, with the options that it
    /// does not know, and its settings for the summary.
    pub(in crate::sink::video) fn open_encoder(
        &self,
        setup: &EncoderSetup,
        hdr: &Hdr,
        surfaces: Option<&CardSurfaces>,
    ) -> Result<(Opened, String), SinkError> {
        self.open_with((setup, hdr, surfaces), false)
    }

    /// The same for a trial, which leaves the files of the run's encoder alone.
    pub(in crate::sink::video) fn open_on_trial(
        &self,
        setup: &EncoderSetup,
        hdr: &Hdr,
        surfaces: Option<&CardSurfaces>,
    ) -> Result<(Opened, String), SinkError> {
        self.open_with((setup, hdr, surfaces), true)
    }

    fn open_with(
        &self,
        (setup, hdr, surfaces): (&EncoderSetup, &Hdr, Option<&CardSurfaces>),
        is_trial: bool,
    ) -> Result<(Opened, String), SinkError> {
        let encoder_name = self.kind.name();
        let failed = |e: AvError| SinkError::Io {
            path: self.name.clone(),
            cause: e.to_io(),
        };
        let mut encoder = Encoder::new(self.kind, setup).map_err(failed)?;
        if let Some(surfaces) = surfaces {
            surfaces.serve(&mut encoder).map_err(failed)?;
        }
        if encoder_name == "mjpeg" {
            encoder.allow_unofficial();
        }
        encoder.allow_alpha(setup.format);
        if self.is_kept_in_order() && encoder.has(c"bf") {
            encoder.set("bf", "0").map_err(failed)?;
        }
        let mut options: Vec<(String, String)> = self
            .options
            .encoder_options
            .iter()
            .map(|(key, value)| (key.strip_suffix(":v").unwrap_or(key).to_owned(), value.clone()))
            .collect();
        if let Some(flag) = pass_flag(&options)
            && !encoder_name.starts_with("libx264")
        {
            return Err(self.unsupported(format!(
                "flags={flag} is of no use with {encoder_name}, which leaves it to programs to keep the \
                 statistics of a pass: libx264 keeps its own, and libx265 with pass=1 in x265-params; leave \
                 it out"
            )));
        }
        if let Some(setting) = picture_setting(&options) {
            return Err(self.unsupported(format!(
                "{setting} is about the encoder's pictures and their memory, which are those of the frames; \
                 leave it out"
            )));
        }
        if is_trial {
            options = without_files(options);
        }
        let requested = RequestedSettings {
            quality: self.options.quality,
            preset: self.options.preset.as_deref(),
            options: &options,
            frame_rate: self.info.frame_rate,
            size: (setup.width, setup.height),
            format: setup.format,
            field_order: setup.field_order,
            hdr: hdr.clone(),
        };
        let (settings, left) = configure(&mut encoder, &encoder_name, &requested)
            .map_err(|problem| self.unsupported(problem))?;
        log::forget();
        encoder.open().map_err(|e| {
            if let Some(shortage) = e.shortage() {
                return self.unsupported(format!(
                    "the encoder {encoder_name} cannot be opened for {}x{} {}: {shortage}",
                    setup.width,
                    setup.height,
                    setup.format.name()
                ));
            }
            let problem = format!(
                "the encoder {encoder_name} cannot be opened for {}x{} {} with these options: {e}",
                setup.width,
                setup.height,
                setup.format.name()
            );
            self.unsupported(format!(
                "{}; try another encoder or fewer options",
                log::explained(&problem)
            ))
        })?;
        match refused_setting(&options) {
            Some(refused) => Err(self.unsupported(format!("the encoder {encoder_name} refuses {refused}"))),
            None => Ok(((encoder, left), settings)),
        }
    }

    /// True if the container says of these frames when they are decoded, but not when they are shown:
    /// FFmpeg's MXF notes the order of MPEG-2 only.
    pub(in crate::sink::video) fn is_kept_in_order(&self) -> bool {
        self.container.name().starts_with("mxf") && self.kind.codec_name() == "h264"
    }

    /// The mark that every player of this container knows; FFmpeg's own choice is refused by some.
    pub(in crate::sink::video) fn codec_tag(&self) -> Option<[u8; 4]> {
        let apple = matches!(self.output.muxer.name().as_str(), "mp4" | "mov" | "ipod" | "f4v");
        (apple && self.kind.codec_name() == "hevc").then_some(*b"hvc1")
    }
}

/// Settings in lists such as x265-params, in lower case and without marks, by which an encoder's library
/// takes other pictures than it gets, or reads them in their memory after they were given back.
const PICTURE_SETTINGS: [&str; 20] = [
    "codecbitdepth",
    "colorformat",
    "copypic",
    "csp",
    "encoderbitdepth",
    "encodercolorformat",
    "h",
    "height",
    "inputbitdepth",
    "inputchromaformat",
    "inputcsp",
    "inputdepth",
    "inputformat",
    "inputres",
    "nocopypic",
    "size",
    "sourceheight",
    "sourcewidth",
    "w",
    "width",
];

/// Options, and settings in such lists, in lower case and without marks, by which an encoder's library makes
/// one of several passes, or reads or writes a file.
const FILE_SETTINGS: [&str; 11] = [
    "analysisload",
    "analysisreusefile",
    "analysissave",
    "csv",
    "dumpyuv",
    "multipassoptanalysis",
    "multipassoptdistortion",
    "pass",
    "passlogfile",
    "recon",
    "stats",
];

/// The flags that are set for these passes.
const PASS_FLAGS: [&str; 2] = ["pass1", "pass2"];

/// True for an option that is a list of settings.
fn is_list(key: &str) -> bool {
    key.ends_with("-params") || key == "x264opts"
}

/// True if `key` is one of `names`, which are in lower case and without marks.
fn is_one_of(names: &[&str], key: &str) -> bool {
    let word = key.trim().to_lowercase().replace(['-', '_'], "");
    names.contains(&word.as_str())
}

/// The key of an entry of a list of settings.
fn key_of(entry: &str) -> &str {
    entry.split('=').next().unwrap_or_default().trim()
}

/// The first of the picture's settings among the user's, and the list that holds it.
fn picture_setting(options: &[(String, String)]) -> Option<String> {
    options
        .iter()
        .filter(|(key, _)| is_list(key))
        .find_map(|(list, value)| {
            let mut keys = value.split([':', ',']).map(key_of);
            let key = keys.find(|key| is_one_of(&PICTURE_SETTINGS, key))?;
            Some(format!("{key} in {list}"))
        })
}

/// The flag of a pass among the user's settings.
fn pass_flag(options: &[(String, String)]) -> Option<&'static str> {
    let mut flags = options.iter().filter(|(key, _)| key == "flags");
    flags.find_map(|(_, value)| PASS_FLAGS.into_iter().find(|flag| value.contains(flag)))
}

/// These options without passes and files, which are the run's.
fn without_files(options: Vec<(String, String)>) -> Vec<(String, String)> {
    let kept = options.into_iter().filter_map(|(key, value)| {
        let value = match key.as_str() {
            list if is_list(list) => {
                let entries = value.split_inclusive([':', ',']);
                let kept: String = entries
                    .filter(|entry| !is_one_of(&FILE_SETTINGS, key_of(entry)))
                    .collect();
                kept.trim_end_matches([':', ',']).to_owned()
            }
            "flags" => PASS_FLAGS.iter().fold(value, |flags, flag| {
                let signed = flags.replace(&format!("+{flag}"), "");
                signed.replace(&format!("-{flag}"), "").replace(flag, "")
            }),
            other if is_one_of(&FILE_SETTINGS, other) => String::new(),
            _ => return Some((key, value)),
        };
        (!value.is_empty()).then_some((key, value))
    });
    kept.collect()
}

/// The first of the user's settings in lists such as x264-params that the encoder, now open, does without,
/// and what FFmpeg said of it.
fn refused_setting(options: &[(String, String)]) -> Option<String> {
    let refused = log::refused_settings();
    refused.iter().find_map(|setting| {
        let is_it = |entry: &str| key_of(entry) == setting.key;
        let (list, _) = options
            .iter()
            .find(|(_, value)| value.split([':', ',']).any(is_it))?;
        Some(format!("{} in {list} (FFmpeg: {})", setting.key, setting.line))
    })
}
