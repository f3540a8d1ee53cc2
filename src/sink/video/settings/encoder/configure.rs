//! Options of an encoder: quality, preset, those that the user names, and HDR's.

use super::hdr::Hdr;
use super::quality::{QUALITY_KEYS, Quality, check_preset, check_quality, quality_of, without_effect};
use crate::frame::{FieldOrder, Rational};
use crate::media::ffmpeg::{AvFormat, Encoder};
use std::fmt;

/// What the user asked of the encoder.
pub(in crate::sink::video) struct RequestedSettings<'a> {
    pub(in crate::sink::video) quality: Option<f64>,
    pub(in crate::sink::video) preset: Option<&'a str>,
    /// Keys without a stream mark such as ":v".
    pub(in crate::sink::video) options: &'a [(String, String)],
    pub(in crate::sink::video) frame_rate: Option<Rational>,
    pub(in crate::sink::video) size: (usize, usize),
    pub(in crate::sink::video) format: AvFormat,
    pub(in crate::sink::video) field_order: FieldOrder,
    /// Blocks of the stream and of its first frame that the encoder writes into its stream.
    pub(in crate::sink::video) hdr: Hdr,
}

/// Sets quality, preset and options on `encoder`. Gives what was set, for the summary, and the options that
/// the encoder does not know, which may be the muxer's; an error is a sentence.
pub(in crate::sink::video) fn configure(
    encoder: &mut Encoder,
    name: &str,
    requested: &RequestedSettings<'_>,
) -> Result<(String, Vec<(String, String)>), String> {
    let mut target = Target {
        encoder,
        name,
        requested,
    };
    let preset = target.set_preset()?;
    target.set_profile()?;
    let quality = target.set_quality()?;
    let left = target.set_options()?;
    Ok((format!("{quality}{preset}"), left))
}

/// An encoder before it is opened, and what is asked of it.
struct Target<'a> {
    encoder: &'a mut Encoder,
    name: &'a str,
    requested: &'a RequestedSettings<'a>,
}

impl Target<'_> {
    /// True if the user gives the option.
    fn is_given(&self, key: &str) -> bool {
        self.requested.options.iter().any(|(k, _)| k == key)
    }

    fn refused(&self, key: &str, value: &str, error: &dyn fmt::Display) -> String {
        format!("the encoder {} refuses {key}={value}: {error}", self.name)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let set = self.encoder.set(key, value);
        set.map_err(|error| self.refused(key, value, &error))
    }

    /// Sets an option that the user does not give.
    fn set_unless_given(&mut self, key: &str, value: &str) -> Result<(), String> {
        match self.is_given(key) {
            true => Ok(()),
            false => self.set(key, value),
        }
    }

    /// True for the encoders of VP9 and AV1 whose speed is a number.
    fn has_cpu_used(&self) -> bool {
        matches!(self.name, "libvpx-vp9" | "libaom-av1")
    }

    /// Sets the preset, or else a speed. Gives the preset in words.
    fn set_preset(&mut self) -> Result<String, String> {
        let mut words = String::new();
        if let Some(preset) = self.requested.preset {
            let key = [
                (c"preset", "preset"),
                (c"cpu-used", "cpu-used"),
                (c"speed", "speed"),
            ]
            .into_iter()
            .find(|(key, _)| self.encoder.has(key))
            .map(|(_, key)| key)
            .ok_or_else(|| format!("the encoder {} has no presets; leave --preset out", self.name))?;
            check_preset(self.name, key, preset)?;
            self.set(key, preset)?;
            words = format!(", {key} {preset}");
        } else if self.has_cpu_used() {
            // Their own default is meant for a night, not for a run.
            let speed = if self.name == "libvpx-vp9" { "2" } else { "6" };
            self.set_unless_given("cpu-used", speed)?;
        }
        if self.has_cpu_used() {
            self.set_unless_given("row-mt", "1")?;
        }
        Ok(words)
    }

    /// Sets the profile of DNxHR.
    fn set_profile(&mut self) -> Result<(), String> {
        if self.name == "dnxhd" && !self.is_given("b") {
            self.set_unless_given("profile", dnxhr(self.requested.format))?;
        }
        Ok(())
    }

    /// The quality that is asked for, or else the encoder's usual one where no option chooses it.
    fn wanted_quality(&self, default: Option<f64>) -> Result<Option<f64>, String> {
        let Some(quality) = self.requested.quality else {
            let is_chosen = QUALITY_KEYS.iter().any(|key| self.is_given(key));
            return Ok(default.filter(|_| !is_chosen));
        };
        let name = self.name;
        check_quality(name, quality)?;
        let other = |(key, _): &&(String, String)| without_effect(name).contains(&key.as_str());
        match self.requested.options.iter().find(other) {
            Some((key, value)) => Err(format!(
                "--quality and --encoder-option {key}={value} each choose the quality of {name}; give one of \
                 the two"
            )),
            None => Ok(Some(quality)),
        }
    }

    /// Sets the quality, and the bit rate that it needs. Gives the quality in words.
    fn set_quality(&mut self) -> Result<String, String> {
        let name = self.name;
        let (knob, default) = quality_of(name);
        match (knob, self.wanted_quality(default)?) {
            (Quality::Option(key), Some(value)) => {
                let text = plain(value);
                self.set(key, &text)?;
                if self.has_cpu_used() {
                    self.set_unless_given("b", "0")?;
                }
                if name == "libvpx" {
                    // Here the rate is a ceiling, and without one the quality is not reached.
                    self.set_unless_given("b", &bit_rate(self.requested, 0.5))?;
                }
                Ok(format!(", {key} {text}"))
            }
            (Quality::Quantiser, Some(value)) => {
                if !(0.0..=1000.0).contains(&value) {
                    return Err(format!(
                        "a quality of {value} is out of range for the encoder {name}"
                    ));
                }
                self.encoder.set_quantiser(value);
                Ok(format!(", quantiser {}", plain(value)))
            }
            (Quality::None, Some(_)) => Err(format!(
                "the encoder {name} has no single number for its quality; leave --quality out, or set its \
                 own options with --encoder-option"
            )),
            (_, None) => {
                if name == "libopenh264" {
                    self.set_unless_given("b", &bit_rate(self.requested, 0.2))?;
                }
                Ok(String::new())
            }
        }
    }

    /// Sets the user's options, those of the encoder's library and the GOP time code. Gives the options that
    /// the encoder does not know.
    fn set_options(&mut self) -> Result<Vec<(String, String)>, String> {
        let requested = self.requested;
        let mut left = Vec::new();
        let mut extra = library_options(self.name, requested);
        for (key, value) in requested.options {
            if let Some((_, ours)) = extra.iter_mut().find(|(k, _)| k == key) {
                // The user's come last and so have the last word.
                *ours = format!("{ours}:{value}");
                continue;
            }
            match self.encoder.set(key, value) {
                Ok(()) => {}
                Err(e) if e.is_option_not_found() => left.push((key.clone(), value.clone())),
                Err(e) => return Err(self.refused(key, value, &e)),
            }
        }
        for (key, value) in extra {
            self.set(&key, &value)?;
        }
        if let Some(code) = requested.hdr.gop.as_deref()
            && takes_gop_code(self.name, requested)
        {
            self.set_unless_given("gop_timecode", code)?;
        }
        Ok(left)
    }
}

/// True if the encoder states the GOP time code of these frames: numbers are dropped at NTSC's rates alone.
fn takes_gop_code(name: &str, requested: &RequestedSettings<'_>) -> bool {
    let is_dropping = requested.hdr.gop.as_ref().is_some_and(|code| code.contains(';'));
    let is_ntsc = requested.frame_rate.is_some_and(|rate| rate.den == 1001);
    matches!(name, "mpeg1video" | "mpeg2video") && (is_ntsc || !is_dropping)
}

/// The profile of DNxHR for pictures of `format`. DNxHD's own is FFmpeg's default, which takes a few sizes of
/// television alone, and those only with a bit rate from its list.
fn dnxhr(format: AvFormat) -> &'static str {
    let facts = format.facts().unwrap_or_default();
    match (facts.log2_x, facts.depth) {
        (0, _) => "dnxhr_444",
        (_, 9..) => "dnxhr_hqx",
        _ => "dnxhr_hq",
    }
}

fn bit_rate(requested: &RequestedSettings<'_>, bits_per_pixel: f64) -> String {
    let rate = requested
        .frame_rate
        .map_or(25.0, Rational::to_f64)
        .clamp(1.0, 1000.0);
    let pixels = requested.size.0 as f64 * requested.size.1 as f64;
    format!("{:.0}", (pixels * rate * bits_per_pixel).clamp(1e5, 2e9))
}

fn plain(value: f64) -> String {
    format!("{value}")
}

/// Options that carry facts which FFmpeg's wrapper does not hand to the encoder's library by itself.
fn library_options(name: &str, requested: &RequestedSettings<'_>) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    match name {
        "libx265" => {
            parts.push("log-level=error".to_owned());
            // Versions up to 3.5 at least write beyond a buffer of fewer than four blocks of 16 columns.
            if requested.size.0 <= 48 {
                parts.push("cutree=0".to_owned());
            }
            if let Some(rate) = requested.frame_rate {
                // Else it takes the time base for the frame rate.
                parts.push(format!("fps={}/{}", rate.num, rate.den));
            }
            parts.extend(
                requested
                    .hdr
                    .mastering
                    .as_ref()
                    .map(|m| format!("master-display={m}")),
            );
            parts.extend(
                requested
                    .hdr
                    .light
                    .map(|(most, mean)| format!("max-cll={most},{mean}")),
            );
            vec![("x265-params".to_owned(), parts.join(":"))]
        }
        "libx264" => {
            if requested.field_order.shows_top_first() == Some(false) {
                // Else its pictures state the top field first, whatever the frames say.
                parts.push("bff=1".to_owned());
            }
            parts.extend(
                requested
                    .hdr
                    .mastering
                    .as_ref()
                    .map(|m| format!("mastering-display={m}")),
            );
            parts.extend(
                requested
                    .hdr
                    .light
                    .map(|(most, mean)| format!("cll={most},{mean}")),
            );
            if parts.is_empty() {
                return Vec::new();
            }
            vec![("x264-params".to_owned(), parts.join(":"))]
        }
        _ => Vec::new(),
    }
}
