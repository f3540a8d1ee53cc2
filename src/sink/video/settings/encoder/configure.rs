//! Options of an encoder: quality, preset, those that the user names, and HDR's.

use super::hdr::Hdr;
use super::quality::{QUALITY_KEYS, Quality, check_preset, check_quality, quality_of, without_effect};
use crate::frame::{FieldOrder, Rational};
use crate::media::ffmpeg::{AvFormat, Encoder};

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
    let mut settings = String::new();
    let refused = |key: &str, value: &str, e: &dyn std::fmt::Display| {
        format!("the encoder {name} refuses {key}={value}: {e}")
    };
    let given = |key: &str| requested.options.iter().any(|(k, _)| k == key);
    let set = |encoder: &mut Encoder, key: &str, value: &str| {
        encoder.set(key, value).map_err(|e| refused(key, value, &e))
    };
    if let Some(preset) = requested.preset {
        let key = [
            (c"preset", "preset"),
            (c"cpu-used", "cpu-used"),
            (c"speed", "speed"),
        ]
        .into_iter()
        .find(|(key, _)| encoder.has(key))
        .map(|(_, key)| key)
        .ok_or_else(|| format!("the encoder {name} has no presets; leave --preset out"))?;
        check_preset(name, key, preset)?;
        set(encoder, key, preset)?;
        settings = format!(", {key} {preset}");
    } else if matches!(name, "libvpx-vp9" | "libaom-av1") && !given("cpu-used") {
        // Their own default is meant for a night, not for a run.
        set(encoder, "cpu-used", if name == "libvpx-vp9" { "2" } else { "6" })?;
    }
    if matches!(name, "libvpx-vp9" | "libaom-av1") && !given("row-mt") {
        set(encoder, "row-mt", "1")?;
    }
    if name == "dnxhd" && !given("profile") && !given("b") {
        set(encoder, "profile", dnxhr(requested.format))?;
    }
    let (knob, default) = quality_of(name);
    let chosen_otherwise = QUALITY_KEYS.iter().any(|key| given(key));
    if let Some(quality) = requested.quality {
        check_quality(name, quality)?;
        let other = |(key, _): &&(String, String)| without_effect(name).contains(&key.as_str());
        if let Some((key, value)) = requested.options.iter().find(other) {
            return Err(format!(
                "--quality and --encoder-option {key}={value} each choose the quality of {name}; give one of \
                 the two"
            ));
        }
    }
    let quality = requested.quality.or(default.filter(|_| !chosen_otherwise));
    match (knob, quality) {
        (Quality::Option(key), Some(value)) => {
            let text = plain(value);
            set(encoder, key, &text)?;
            if matches!(name, "libvpx-vp9" | "libaom-av1") && !given("b") {
                set(encoder, "b", "0")?;
            }
            if name == "libvpx" && !given("b") {
                // Here the rate is a ceiling, and without one the quality is not reached.
                set(encoder, "b", &bit_rate(requested, 0.5))?;
            }
            settings = format!(", {key} {text}{settings}");
        }
        (Quality::Quantiser, Some(value)) => {
            if !(0.0..=1000.0).contains(&value) {
                return Err(format!(
                    "a quality of {value} is out of range for the encoder {name}"
                ));
            }
            encoder.set_quantiser(value);
            settings = format!(", quantiser {}{settings}", plain(value));
        }
        (Quality::None, Some(_)) => {
            return Err(format!(
                "the encoder {name} has no single number for its quality; leave --quality out, or set its \
                 own options with --encoder-option"
            ));
        }
        (_, None) => {
            if name == "libopenh264" && !given("b") {
                set(encoder, "b", &bit_rate(requested, 0.2))?;
            }
        }
    }
    let mut left = Vec::new();
    let mut extra = library_options(name, requested);
    for (key, value) in requested.options {
        if let Some((_, ours)) = extra.iter_mut().find(|(k, _)| k == key) {
            // The user's come last and so have the last word.
            *ours = format!("{ours}:{value}");
            continue;
        }
        match encoder.set(key, value) {
            Ok(()) => {}
            Err(e) if e.is_option_not_found() => left.push((key.clone(), value.clone())),
            Err(e) => return Err(refused(key, value, &e)),
        }
    }
    for (key, value) in extra {
        set(encoder, &key, &value)?;
    }
    let takes_code = takes_gop_code(name, requested) && !given("gop_timecode");
    if let Some(code) = requested.hdr.gop.as_deref().filter(|_| takes_code) {
        set(encoder, "gop_timecode", code)?;
    }
    Ok((settings, left))
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
