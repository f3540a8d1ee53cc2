//! The encoder that a container gets.
//!
//! Defaults: MP4, MOV, Matroska and their like get H.264 by libx264 at crf 18 for pictures of 8 bits, HEVC by
//! libx265 at crf 20 for deeper ones where they hold it; WebM gets VP9 at crf 24; AVI MPEG-4 at quantiser 2;
//! Ogg Theora at 8 of 10; GIF and others what FFmpeg chooses. Pictures with alpha get an encoder that keeps
//! it where the container has one: MOV ProRes 4444 for YUV and deep pictures, else QuickTime Animation;
//! Matroska VP9, or FFV1 for deep ones.

use crate::frame::{ColourModel, PixelFormat};
use crate::media::ffmpeg::{AvFormat, EncoderKind, Muxer};
use crate::messages::suggest::suggestion;
use crate::sink::video::container::{Container, explained};

/// The most encoder names that an error lists.
const NAMES_LISTED: usize = 48;

/// The encoders to try for a container, best first.
fn candidates(container: &str, format: PixelFormat, alpha: bool) -> &'static [&'static str] {
    const H264: &[&str] = &["libx264", "libopenh264", "h264_nvenc", "mpeg4"];
    const HEVC: &[&str] = &["libx265", "libx264", "hevc_nvenc", "libopenh264", "mpeg4"];
    match container {
        // What editors take: 4444 for what comes of cameras and other YUV, whose depth it keeps; lossless for
        // graphics.
        "mov" if alpha && (format.depth() > 8 || format.model() == ColourModel::Yuv) => {
            &["prores_ks", "qtrle", "png", "libx264"]
        }
        "mov" if alpha => &["qtrle", "png", "prores_ks", "libx264"],
        // VP9 is what plays; it has alpha of 8 bits only, so that deep pictures are stored without loss.
        "matroska" if alpha && format.depth() > 8 => &["ffv1", "libvpx-vp9", "libx265"],
        "matroska" if alpha => &["libvpx-vp9", "ffv1", "libx264"],
        "nut" if alpha => &["ffv1", "libx264"],
        "mp4" | "mov" | "matroska" | "ipod" | "3gp" | "3g2" | "mpegts" | "flv" | "f4v" | "ismv" | "nut" => {
            if format.depth() > 8 && container != "flv" {
                HEVC
            } else {
                H264
            }
        }
        "webm" => &["libvpx-vp9", "libvpx", "libaom-av1", "libsvtav1"],
        "avi" => &["mpeg4", "mjpeg"],
        "ogg" | "ogv" => &["libtheora"],
        "mxf" => &["mpeg2video"],
        "webp" => &["libwebp_anim", "libwebp"],
        _ => &[],
    }
}

/// FFmpeg's names of encoders for what users call them: the first that this FFmpeg has.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("x264", &["libx264"]),
    ("h264", &["libx264", "libopenh264", "h264_nvenc"]),
    ("avc", &["libx264", "libopenh264", "h264_nvenc"]),
    ("x265", &["libx265"]),
    ("h265", &["libx265", "hevc_nvenc"]),
    ("hevc", &["libx265", "hevc_nvenc"]),
    ("av1", &["libsvtav1", "libaom-av1", "librav1e", "av1_nvenc"]),
    ("vp8", &["libvpx"]),
    ("vp9", &["libvpx-vp9"]),
    ("nvenc", &["h264_nvenc"]),
    ("theora", &["libtheora"]),
    ("webp", &["libwebp_anim", "libwebp"]),
];

/// The encoders that are the usual ones for something and that this FFmpeg has.
pub fn usual_encoders() -> Vec<&'static str> {
    const OTHERS: &[&str] = &[
        "ffv1",
        "prores_ks",
        "mpeg4",
        "mjpeg",
        "qtrle",
        "hevc_nvenc",
        "utvideo",
        "gif",
    ];
    let of_names = OTHER_NAMES.iter().flat_map(|(_, names)| names.iter());
    let mut all: Vec<&str> = of_names.chain(OTHERS).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|name| EncoderKind::find(name).is_some());
    all
}

/// The encoder of this name, FFmpeg's or another.
fn named(name: &str) -> Option<EncoderKind> {
    EncoderKind::find(name).or_else(|| {
        let small = name.to_lowercase();
        let (_, names) = OTHER_NAMES.iter().find(|(other, _)| *other == small)?;
        let mut found = names.iter().filter_map(|name| EncoderKind::find(name));
        let first = found.next()?;
        let usable = std::iter::once(first)
            .chain(found)
            .find(|&kind| can_be_used(kind));
        Some(usable.unwrap_or(first))
    })
}

/// The encoder that the user named, or the best for the container; an error is a sentence.
pub(in crate::sink::video) fn choose_encoder(
    muxer: &Muxer,
    container: &Container,
    wanted: Option<&str>,
    format: PixelFormat,
    alpha: bool,
) -> Result<EncoderKind, String> {
    let name = container.name();
    let offer = || offer(muxer, container, None);
    let default = default_encoder(muxer, container);
    if muxer.default_encoder().is_some() && default.is_none() {
        return Err(format!(
            "{name} is no container for video: it holds sound, and a picture only as its cover; choose \
             another container with --format or by the file's name"
        ));
    }
    if let Some(wanted) = wanted {
        let kind = named(wanted).ok_or_else(|| {
            let known = EncoderKind::all().into_iter().filter(|&kind| can_be_used(kind));
            let known: Vec<String> = known.map(EncoderKind::name).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let near = suggestion(wanted, &known);
            format!("this FFmpeg has no video encoder '{wanted}'{near}; {}", offer())
        })?;
        // What the container is for it may refuse for its size, which the real frames show.
        let is_its_own = default.is_some_and(|own| own.codec_name() == kind.codec_name());
        if !is_its_own && container.refuses(kind) {
            return Err(format!(
                "{name} cannot hold {}, which the encoder {wanted} writes; {}",
                kind.codec_name(),
                self::offer(muxer, container, Some(kind))
            ));
        }
        check_nvenc(kind)?;
        return Ok(kind);
    }
    candidates(name, format, alpha)
        .iter()
        .filter_map(|name| EncoderKind::find(name))
        .find(|&kind| can_be_used(kind) && !container.refuses(kind))
        .or(default)
        .ok_or_else(|| {
            if let Some(codec) = muxer.video_codec() {
                return format!(
                    "{name} is for {codec}, of which this FFmpeg has no encoder; choose another container \
                     with --format or by the file's name"
                );
            }
            format!(
                "{name} is no container for video, or this FFmpeg has no encoder for it; {}",
                offer()
            )
        })
}

/// The video encoder that FFmpeg itself would choose for the container, if it is one for video. Containers of
/// sound name an encoder of stills, for covers: these have no place for a picture without sound.
pub(in crate::sink::video) fn default_encoder(muxer: &Muxer, container: &Container) -> Option<EncoderKind> {
    let kind = muxer.default_encoder()?;
    let is_still = matches!(kind.codec_name().as_str(), "png" | "mjpeg");
    let is_cover = is_still && muxer.default_audio_encoder().is_some() && container.refuses(kind);
    (!is_cover).then_some(kind)
}

/// Refuses an encoder of NVIDIA's cards where there is none to encode: no card, no driver, or a card that was
/// made without encoders, as those for data centres often are.
fn check_nvenc(kind: EncoderKind) -> Result<(), String> {
    let name = kind.name();
    let Some(format) = first_of_memory(kind).filter(|_| name.ends_with("_nvenc")) else {
        return Ok(());
    };
    explained(|| kind.try_open(format)).map_err(|reason| {
        let codec = kind.codec_name();
        let of_codec = OTHER_NAMES.iter().find(|(other, _)| *other == codec);
        let on_cpu = of_codec.and_then(|(_, names)| {
            let mut found = names.iter().filter_map(|name| EncoderKind::find(name));
            found.find(|kind| !kind.is_of_device())
        });
        let instead = on_cpu.map_or_else(
            || "choose another encoder".to_owned(),
            |kind| format!("use --encoder {}, which encodes on the CPU", kind.name()),
        );
        format!(
            "{name} needs an NVIDIA card with an encoder (NVENC), and none can be used: {reason}; {instead}"
        )
    })
}

/// The first format that it takes from ordinary memory.
fn first_of_memory(kind: EncoderKind) -> Option<AvFormat> {
    let of_memory = |format: &AvFormat| format.facts().is_some_and(|facts| !facts.hardware);
    kind.formats().into_iter().find(of_memory)
}

/// False for an encoder of a device that is not there, or that takes no pictures from ordinary memory.
fn can_be_used(kind: EncoderKind) -> bool {
    if !kind.is_of_device() {
        return true;
    }
    first_of_memory(kind).is_some_and(|format| kind.opens(format))
}

/// The encoders that fit the container, as part of a sentence; not one for the codec of `refused`, which the
/// container does not take.
pub(in crate::sink::video) fn offer(
    muxer: &Muxer,
    container: &Container,
    refused: Option<EncoderKind>,
) -> String {
    let default = default_encoder(muxer, container).map(EncoderKind::codec_name);
    let refused = refused.map(EncoderKind::codec_name);
    let mut names: Vec<String> = EncoderKind::all()
        .into_iter()
        .filter(|&kind| can_be_used(kind) && refused != Some(kind.codec_name()))
        .filter(|&kind| container.holds(kind) || default == Some(kind.codec_name()))
        .map(EncoderKind::name)
        .collect();
    names.sort();
    if names.is_empty() {
        return "choose another container with --format or by the file's name".to_owned();
    }
    let more = names.len().saturating_sub(NAMES_LISTED);
    names.truncate(NAMES_LISTED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("for {} it has {}{more}", container.name(), names.join(", "))
}
