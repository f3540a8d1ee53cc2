//! The one number for quality: which knob it turns on an encoder, what it is by default, and its range.

use crate::messages::suggest::suggestion;

/// How a number for `--quality` reaches an encoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sink::video) enum Quality {
    /// By the option of that name.
    Option(&'static str),
    /// As a constant quantiser scale.
    Quantiser,
    /// It has no such knob.
    None,
}

/// The knob that `--quality` turns on this encoder, and the value that it gets by default.
pub(in crate::sink::video) fn quality_of(encoder: &str) -> (Quality, Option<f64>) {
    match encoder {
        "libx264" | "libx264rgb" => (Quality::Option("crf"), Some(18.0)),
        "libx265" => (Quality::Option("crf"), Some(20.0)),
        "libvpx-vp9" | "libaom-av1" | "libsvtav1" => (Quality::Option("crf"), Some(24.0)),
        "libvpx" => (Quality::Option("crf"), Some(8.0)),
        "librav1e" => (Quality::Option("qp"), Some(80.0)),
        "libwebp" | "libwebp_anim" => (Quality::Option("quality"), Some(90.0)),
        "libtheora" => (Quality::Quantiser, Some(8.0)),
        "mpeg4" | "mpeg1video" | "mpeg2video" | "msmpeg4" | "msmpeg4v2" | "libxvid" | "h263" | "h263p"
        | "flv" | "wmv1" | "wmv2" | "mjpeg" => (Quality::Quantiser, Some(2.0)),
        "prores_ks" | "prores" | "prores_aw" | "snow" => (Quality::Quantiser, None),
        name if name.ends_with("_nvenc") => (Quality::Option("cq"), Some(20.0)),
        name if name.ends_with("_qsv") || name.ends_with("_vaapi") => {
            (Quality::Option("global_quality"), None)
        }
        _ => (Quality::None, None),
    }
}

/// Options that do nothing beside `--quality` on this encoder, or take its effect. Others take a bit rate for
/// the most that the quality may cost.
pub(in crate::sink::video) fn without_effect(encoder: &str) -> &'static [&'static str] {
    match (encoder, quality_of(encoder).0) {
        ("libx264" | "libx264rgb" | "libx265" | "libsvtav1" | "librav1e", _) => &["b"],
        (_, Quality::Quantiser) => &["b", "maxrate", "qmin", "qmax"],
        _ => &[],
    }
}

/// The numbers for `--quality` that the encoder distinguishes, where FFmpeg's own limits are wider or none.
fn quality_range(encoder: &str) -> Option<(f64, f64)> {
    match encoder {
        "libx264" | "libx264rgb" | "libx265" => Some((0.0, 51.0)),
        "libtheora" => Some((0.0, 10.0)),
        "libvpx-vp9" | "libaom-av1" | "libsvtav1" => Some((0.0, 63.0)),
        "libvpx" => Some((4.0, 63.0)),
        "librav1e" => Some((0.0, 255.0)),
        "libwebp" | "libwebp_anim" => Some((0.0, 100.0)),
        name if name.ends_with("_nvenc") => Some((0.0, 51.0)),
        "mpeg4" | "mpeg1video" | "mpeg2video" | "msmpeg4" | "msmpeg4v2" | "libxvid" | "h263" | "h263p"
        | "flv" | "wmv1" | "wmv2" | "mjpeg" => Some((1.0, 31.0)),
        _ => None,
    }
}

/// Refuses a quality that the encoder would silently take for another.
pub(in crate::sink::video) fn check_quality(encoder: &str, quality: f64) -> Result<(), String> {
    match quality_range(encoder) {
        Some((least, most)) if !(least..=most).contains(&quality) => {
            let better = match encoder {
                "libtheora" | "libwebp" | "libwebp_anim" => "higher",
                _ => "lower",
            };
            Err(format!(
                "a quality of {quality} is out of range for the encoder {encoder}; use {least} to {most}, \
                 {better} is better"
            ))
        }
        _ => Ok(()),
    }
}

/// Presets of x264 and x265, which print an error of their own about others, the fastest first.
pub const X26X_PRESETS: [&str; 10] = [
    "ultrafast",
    "superfast",
    "veryfast",
    "faster",
    "fast",
    "medium",
    "slow",
    "slower",
    "veryslow",
    "placebo",
];

/// Refuses a preset that the encoder would not name in words of its own.
pub(in crate::sink::video) fn check_preset(encoder: &str, key: &str, preset: &str) -> Result<(), String> {
    match encoder {
        "libx264" | "libx264rgb" | "libx265" => {
            let is_known =
                X26X_PRESETS.contains(&preset) || (preset.len() == 1 && preset.parse::<u8>().is_ok());
            let near = || suggestion(preset, &X26X_PRESETS);
            match is_known {
                true => Ok(()),
                false => Err(format!(
                    "the encoder {encoder} has no preset '{preset}'{}; it has {}",
                    near(),
                    X26X_PRESETS.join(", ")
                )),
            }
        }
        _ if (key != "preset" || encoder == "libsvtav1") && preset.parse::<i64>().is_err() => Err(format!(
            "presets of the encoder {encoder} are numbers ({key}), higher is faster; '{preset}' is none, \
             take one such as 4"
        )),
        _ => Ok(()),
    }
}

/// Options that choose quality in their own way, so that the default stays away.
pub(in crate::sink::video) const QUALITY_KEYS: &[&str] = &[
    "b",
    "crf",
    "qp",
    "cq",
    "q",
    "qscale",
    "global_quality",
    "quality",
    "lossless",
    "rc",
];
