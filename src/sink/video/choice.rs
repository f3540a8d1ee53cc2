//! Which encoder, pixel format, quality and time base an output gets when the user does not say.
//!
//! Defaults: MP4, MOV, Matroska and their like get H.264 by libx264 at crf 18 for pictures of 8 bits, HEVC by
//! libx265 at crf 20 for deeper ones; WebM gets VP9 at crf 24; AVI MPEG-4 at quantiser 2; Ogg Theora at 8 of
//! 10; GIF and others what FFmpeg chooses. Pictures with alpha get an encoder that keeps it where the
//! container has one: MOV ProRes 4444 for YUV and deep pictures, else QuickTime Animation; Matroska VP9, or
//! FFV1 for deep ones.

use super::container::{Container, explained};
use super::quality::{QUALITY_KEYS, Quality, check_preset, check_quality, quality_of};
use crate::convert::{self, divides, is_full_range_name, loss};
use crate::ffmpeg::{AvFormat, Encoder, EncoderKind, FormatFacts, Muxer};
use crate::filter::suggest::suggestion;
use crate::frame::fact::Samples;
use crate::frame::{Colour, ColourModel, PixelFormat, Range, Rational, SideData};
use ffmpeg_next::ffi;

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
        "mp4" | "mov" | "matroska" | "ipod" | "3gp" | "mpegts" | "flv" | "f4v" | "ismv" | "nut" => {
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
pub(super) fn choose_encoder(
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
        .find(|&kind| can_be_used(kind))
        .or(default)
        .ok_or_else(|| {
            format!(
                "{name} is no container for video, or this FFmpeg has no encoder for it; {}",
                offer()
            )
        })
}

/// The video encoder that FFmpeg itself would choose for the container, if it is one for video. Containers of
/// sound name an encoder of stills, for covers: these have no place for a picture without sound.
pub(super) fn default_encoder(muxer: &Muxer, container: &Container) -> Option<EncoderKind> {
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
            "{name} needs an NVIDIA card with an encoder (NVENC), and there is none to be had: {reason}; \
             {instead}"
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
pub(super) fn offer(muxer: &Muxer, container: &Container, refused: Option<EncoderKind>) -> String {
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

/// Containers that are made for players. Most players, those of browsers, phones and QuickTime among them,
/// know no chroma of H.264 and HEVC but 4:2:0.
const FOR_PLAYERS: &[&str] = &["mp4", "mov", "ipod", "3gp", "3g2", "f4v", "flv", "ismv"];

/// True if RGB pictures go to this encoder with 4:2:0 chroma, so that players of the container show them.
fn is_for_players(kind: EncoderKind, container: &str, model: ColourModel) -> bool {
    model == ColourModel::Rgb
        && FOR_PLAYERS.contains(&container)
        && matches!(kind.codec_name().as_str(), "h264" | "hevc")
}

/// The pixel format that goes to the encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormatChoice {
    pub(super) format: AvFormat,
    /// The pixels must be converted by swscale.
    pub(super) converts: bool,
    /// Colour facts of what goes to the encoder.
    pub(super) colour: Colour,
    /// The samples are brought to the range in `colour`, since the output cannot say the frames' own.
    pub(super) range_is_changed: bool,
    /// What to tell the user, if anything.
    pub(super) note: Option<String>,
}

impl FormatChoice {
    /// What facts about pictures of this format and height are about.
    pub(super) fn samples(&self, height: usize) -> Samples {
        let facts = self.format.facts().unwrap_or_default();
        Samples {
            model: match facts.components {
                _ if facts.rgb || facts.palette => ColourModel::Rgb,
                0..=2 => ColourModel::Gray,
                _ => ColourModel::Yuv,
            },
            subsampled: facts.log2_x + facts.log2_y > 0,
            height,
        }
    }

    /// The same format with samples of the other range.
    pub(super) fn with_other_range(&self, height: usize) -> FormatChoice {
        let limited = self.samples(height).is_limited(self.colour.range);
        let range = if limited { Range::Full } else { Range::Limited };
        FormatChoice {
            colour: Colour { range, ..self.colour },
            range_is_changed: true,
            ..self.clone()
        }
    }
}

/// True if the encoder refuses frames whose size does not fill whole chroma samples.
fn needs_whole_chroma(encoder: &str) -> bool {
    [
        "libx264",
        "libx265",
        "libopenh264",
        "libsvtav1",
        "h264_",
        "hevc_",
        "av1_",
    ]
    .iter()
    .any(|start| encoder.starts_with(start))
}

/// True for formats that an encoder of FFmpeg's takes and writes as another picture: its JPEG 2000 of more
/// than 8 bits overflows.
fn is_garbled(encoder: &str, format: AvFormat) -> bool {
    encoder == "jpeg2000" && format.facts().is_some_and(|facts| facts.depth > 8)
}

/// The frame's own format if the encoder takes it, else the one that loses least, or the one that the user
/// wants. RGB pictures become 4:2:0 where the container is for players that know nothing else.
pub(super) fn choose_format(
    (kind, container): (EncoderKind, &str),
    (format, colour): (PixelFormat, Colour),
    (width, height): (usize, usize),
    wanted: Option<&str>,
    alpha_is_held: bool,
) -> Result<FormatChoice, String> {
    let encoder = kind.name();
    let unknown = |name: &str| format!("this FFmpeg knows no pixel format '{name}'");
    let own = AvFormat::from_name(format.name()).ok_or_else(|| unknown(format.name()))?;
    let own_facts = own.facts().ok_or_else(|| unknown(format.name()))?;
    let mut taken = kind.formats();
    taken.retain(|&format| !is_garbled(&encoder, format));
    let list = |formats: &[AvFormat]| -> String {
        let names: Vec<String> = formats.iter().map(|f| f.name()).collect();
        names.join(", ")
    };
    let is_of_device = |f: &AvFormat| f.facts().is_some_and(|facts| facts.hardware);
    if !taken.is_empty() && taken.iter().all(is_of_device) {
        return Err(format!(
            "{encoder} takes pictures from a device's own memory only ({}), where framepipe has none; choose \
             another encoder, such as libx264",
            list(&taken)
        ));
    }
    let whole = |facts: &FormatFacts| !needs_whole_chroma(&encoder) || divides(facts, width, height);
    let is_for_players = wanted.is_none() && is_for_players(kind, container, format.model());
    let plays = |facts: &FormatFacts| (facts.log2_x, facts.log2_y) == (1, 1) && whole(facts);
    let of_players = is_for_players
        .then(|| nearest(kind, (own, &own_facts), &taken, plays, alpha_is_held))
        .flatten();
    let chosen = if let Some(name) = wanted {
        let chosen = AvFormat::from_name(name)
            .or_else(|| AvFormat::from_name(&format!("{name}le")))
            .ok_or_else(|| unknown(name))?;
        if !taken.is_empty() && !taken.contains(&chosen) {
            return Err(format!(
                "the encoder {encoder} does not take {name}; it takes {}",
                list(&taken)
            ));
        }
        if !chosen.facts().is_some_and(|facts| whole(&facts)) {
            return Err(format!(
                "{encoder} cannot encode {width}x{height} as {name}, which needs even sizes; leave \
                 --pixel-format out, take yuv444p, or another encoder such as ffv1"
            ));
        }
        chosen
    } else if taken.is_empty() {
        own
    } else if let Some(chosen) = of_players {
        chosen
    } else {
        nearest(kind, (own, &own_facts), &taken, whole, alpha_is_held).ok_or_else(|| {
            format!(
                "{encoder} cannot encode frames of {width}x{height} pixels: it takes only even sizes ({}); \
                 choose another encoder, such as libx264 with 4:4:4 or ffv1",
                list(&taken)
            )
        })?
    };
    let facts = chosen.facts().ok_or_else(|| unknown(&chosen.name()))?;
    let was_limited = format.model() == ColourModel::Yuv && colour.is_limited(format);
    let colour = colour_for(format, colour, chosen, &facts, height);
    let is_full = is_full_range_name(chosen);
    let plain = if is_full {
        facts.name.replacen("yuvj", "yuv", 1)
    } else {
        facts.name.clone()
    };
    let converts = plain != own_facts.name || (is_full && was_limited);
    let reason = if wanted.is_some() {
        Reason::Requested
    } else if of_players.is_some() {
        Reason::OfPlayers
    } else if is_for_players && facts.log2_x == 0 {
        Reason::TooOddForPlayers
    } else if taken.contains(&own) && !whole(&own_facts) {
        Reason::OddSize
    } else {
        Reason::Taken
    };
    let note = converts.then(|| conversion(format, (&own_facts, &facts), reason));
    Ok(FormatChoice {
        format: chosen,
        converts,
        colour,
        range_is_changed: false,
        note,
    })
}

/// Why pictures are converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The user wants the format.
    Requested,
    /// Players of the container know it, and hardly another.
    OfPlayers,
    /// They do not, but what they know needs even sizes.
    TooOddForPlayers,
    /// The frames' own format needs even sizes.
    OddSize,
    /// The encoder takes it and not the frames' own.
    Taken,
}

/// The note on a conversion of `format`, by the facts of what it is `from` and `to`.
fn conversion(format: PixelFormat, (from, to): (&FormatFacts, &FormatFacts), reason: Reason) -> String {
    let why = match reason {
        Reason::Requested => "as requested",
        Reason::OfPlayers if to.depth > 10 => "as near as there is to what players of the container know",
        Reason::OfPlayers => "which players of the container know",
        Reason::TooOddForPlayers => {
            "because the size is odd, which 4:2:0 cannot be; many players show only that"
        }
        Reason::OddSize => "because the size is odd",
        Reason::Taken => "which the encoder takes",
    };
    let lost = loss(from, to);
    let words = lost.words();
    let care = match (to.palette, words.is_empty()) {
        (true, _) => ", a palette for each frame".to_owned(),
        (false, true) => String::new(),
        (false, false) => format!(", not without loss of {}", listed(&words)),
    };
    let advice = match reason {
        Reason::OfPlayers => format!("; {} keeps all chroma", whole_chroma(format)),
        _ => String::new(),
    };
    format!("converted from {format} to {} ({why}{care}{advice})", to.name)
}

/// The option for an RGB picture's samples without subsampled chroma, and with the depth that encoders have.
fn whole_chroma(format: PixelFormat) -> &'static str {
    match format.depth() {
        ..=8 => "--pixel-format yuv444p",
        9..=10 => "--pixel-format yuv444p10le",
        _ => "--pixel-format yuv444p12le",
    }
}

/// The format of the `taken` ones that loses least of `own` and that the encoder opens, if there is one whose
/// facts are `usable`.
fn nearest(
    kind: EncoderKind,
    (own, own_facts): (AvFormat, &FormatFacts),
    taken: &[AvFormat],
    usable: impl Fn(&FormatFacts) -> bool,
    alpha_is_held: bool,
) -> Option<AvFormat> {
    let encoder = kind.name();
    // Motion JPEG is full range by its standard; elsewhere the old full-range names say nothing that the
    // range does not.
    let is_jpeg = encoder == "mjpeg" || encoder == "ljpeg";
    // A palette is what GIF is made for, and the last resort of the others.
    let of_kind = |palette: bool| -> Vec<AvFormat> {
        let fits = |f: &FormatFacts| !f.hardware && f.palette == palette && (alpha_is_held || !f.alpha);
        let taken = taken.iter().copied();
        taken.filter(|f| f.facts().is_some_and(|f| fits(&f))).collect()
    };
    let mut named = of_kind(encoder == "gif");
    if named.is_empty() {
        named = of_kind(encoder != "gif");
    }
    let of_range: Vec<AvFormat> = named
        .iter()
        .copied()
        .filter(|&f| is_full_range_name(f) == is_jpeg)
        .collect();
    let candidates = if of_range.is_empty() { named } else { of_range };
    let mut fitting: Vec<(AvFormat, FormatFacts)> = candidates
        .iter()
        .filter_map(|&f| Some((f, f.facts()?)))
        .filter(|(_, facts)| usable(facts))
        .collect();
    fitting.sort_by_key(|(f, facts)| (loss(own_facts, facts), *f != own));
    // If none opens, the encoder wants something else, and says so when it is opened in earnest.
    fitting
        .iter()
        .find(|(f, _)| fitting.len() == 1 || kind.opens(*f))
        .or(fitting.first())
        .map(|(f, _)| *f)
}

/// Words as a list in a sentence.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Colour facts after a change to `chosen`.
fn colour_for(
    format: PixelFormat,
    colour: Colour,
    chosen: AvFormat,
    facts: &FormatFacts,
    height: usize,
) -> Colour {
    let from_rgb = format.model() == ColourModel::Rgb;
    let to_rgb = facts.rgb || facts.palette;
    let mut after = colour;
    if from_rgb && !to_rgb {
        after.matrix = convert::written_matrix(colour.matrix, height);
        after.range = Range::Limited;
    } else if !from_rgb && to_rgb {
        after.matrix = 0;
        after.range = Range::Full;
        after.chroma_location = 0;
    }
    if is_full_range_name(chosen) {
        after.range = Range::Full;
    }
    after
}

/// What the user asked of the encoder.
pub(super) struct RequestedSettings<'a> {
    pub(super) quality: Option<f64>,
    pub(super) preset: Option<&'a str>,
    /// Keys without a stream mark such as ":v".
    pub(super) options: &'a [(String, String)],
    pub(super) frame_rate: Option<Rational>,
    pub(super) size: (usize, usize),
    /// Blocks of the stream and of its first frame that the encoder writes into its stream.
    pub(super) hdr: Hdr,
}

/// Sets quality, preset and options on `encoder`. Gives what was set, for the summary, and the options that
/// the encoder does not know, which may be the muxer's; an error is a sentence.
pub(super) fn configure(
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
    let (knob, default) = quality_of(name);
    let chosen_otherwise = QUALITY_KEYS.iter().any(|key| given(key));
    if let Some(quality) = requested.quality {
        check_quality(name, quality)?;
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
    let mut extra = hdr_options(name, requested);
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
    Ok((settings, left))
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
fn hdr_options(name: &str, requested: &RequestedSettings<'_>) -> Vec<(String, String)> {
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

/// HDR10's static facts in the words of x264 and x265.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hdr {
    mastering: Option<String>,
    light: Option<(u32, u32)>,
}

impl Hdr {
    /// Reads them from the blocks of a stream and of a frame.
    pub(super) fn from_blocks(stream: &[SideData], frame: &[SideData]) -> Hdr {
        let find = |of_frame: ffi::AVFrameSideDataType, of_stream: ffi::AVPacketSideDataType| {
            let in_frame = frame.iter().find(|b| b.kind == of_frame as u32);
            in_frame.or_else(|| stream.iter().find(|b| b.kind == of_stream as u32))
        };
        Hdr {
            mastering: find(
                ffi::AVFrameSideDataType::AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
                ffi::AVPacketSideDataType::AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
            )
            .and_then(|b| mastering_words(&b.data)),
            light: find(
                ffi::AVFrameSideDataType::AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
                ffi::AVPacketSideDataType::AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
            )
            .and_then(|b| Some((number(&b.data, 0)? as u32, number(&b.data, 1)? as u32))),
        }
    }
}

/// The `index`th 32-bit number of a block that FFmpeg laid out in memory.
fn number(block: &[u8], index: usize) -> Option<i32> {
    let bytes = block.get(4 * index..4 * index + 4)?;
    Some(i32::from_ne_bytes(bytes.try_into().ok()?))
}

/// An AVMasteringDisplayMetadata block (ten fractions, then two flags) as
/// "G(x,y)B(x,y)R(x,y)WP(x,y)L(max,min)".
fn mastering_words(block: &[u8]) -> Option<String> {
    if number(block, 20)? == 0 || number(block, 21)? == 0 {
        return None;
    }
    let scaled = |fraction: usize, scale: f64| -> Option<i64> {
        let (num, den) = (number(block, 2 * fraction)?, number(block, 2 * fraction + 1)?);
        (den != 0).then(|| (f64::from(num) / f64::from(den) * scale).round() as i64)
    };
    let point = |first: usize| Some((scaled(first, 50_000.0)?, scaled(first + 1, 50_000.0)?));
    let ((rx, ry), (gx, gy), (bx, by), (wx, wy)) = (point(0)?, point(2)?, point(4)?, point(6)?);
    let (least, most) = (scaled(8, 10_000.0)?, scaled(9, 10_000.0)?);
    Some(format!(
        "G({gx},{gy})B({bx},{by})R({rx},{ry})WP({wx},{wy})L({most},{least})"
    ))
}

/// What a GIF file counts time in.
const GIF_STEP: Rational = Rational { num: 1, den: 100 };

/// The time base that the encoder counts in: the source's own, unless encoder or container know only even
/// steps.
pub(super) fn encoder_time_base(
    encoder: &str,
    container: &str,
    own: Rational,
    frame_rate: Option<Rational>,
) -> Rational {
    let steps = matches!(encoder, "mpeg1video" | "mpeg2video" | "libtheora" | "vc2")
        || matches!(
            container,
            "avi" | "mxf" | "mxf_d10" | "mxf_opatom" | "gxf" | "swf" | "dv" | "rm"
        );
    // Their streams count time in 16 bits.
    let narrow = matches!(
        encoder,
        "mpeg4" | "libxvid" | "msmpeg4" | "msmpeg4v2" | "h263" | "h263p" | "flv"
    ) && own.den > 65_535;
    match frame_rate {
        // The steps of its file, so that pacing sees what viewers will.
        _ if container == "gif" => GIF_STEP,
        Some(rate) if rate.num > 0 && rate.den > 0 && (steps || narrow) => Rational {
            num: rate.den,
            den: rate.num,
        },
        _ if narrow => Rational { num: 1, den: 60_000 },
        _ => own,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn format(name: &str) -> PixelFormat {
        PixelFormat::from_name(name).unwrap()
    }

    fn chosen(encoder: &str, from: &str, range: Range, size: (usize, usize)) -> FormatChoice {
        let colour = Colour {
            range,
            ..Colour::default()
        };
        choose_format(
            (EncoderKind::find(encoder).unwrap(), "matroska"),
            (format(from), colour),
            size,
            None,
            true,
        )
        .unwrap()
    }

    #[test]
    fn an_encoder_gets_the_frames_own_format_if_it_takes_it() {
        let own = chosen("ffv1", "yuv422p10le", Range::Limited, (321, 243));
        assert_eq!(own.format.name(), "yuv422p10le");
        assert!(!own.converts && own.note.is_none());
        let gif = chosen("gif", "yuv420p", Range::Limited, (32, 32));
        assert!(gif.converts && gif.format.name() == "pal8");
        let png = chosen("png", "rgba", Range::Full, (32, 32));
        assert_eq!((png.format.name().as_str(), png.converts), ("rgba", false));
    }

    #[test]
    fn what_is_lost_is_named() {
        let mpeg = chosen("mpeg4", "rgba", Range::Full, (33, 17));
        let note = mpeg.note.unwrap();
        assert!(
            note.ends_with("not without loss of alpha, exact colour and chroma resolution)"),
            "{note}"
        );
        let deep = chosen("libvpx", "yuva444p10le", Range::Limited, (33, 17));
        assert_eq!(deep.format.name(), "yuva420p");
        assert!(deep.note.unwrap().contains("loss of depth and chroma resolution"));
    }

    #[test]
    fn motion_jpeg_is_stretched_to_full_range() {
        let limited = chosen("mjpeg", "yuv422p", Range::Limited, (32, 32));
        assert_eq!(limited.format.name(), "yuvj422p");
        assert!(limited.converts);
        let full = chosen("mjpeg", "yuv422p", Range::Full, (32, 32));
        assert_eq!(full.format.name(), "yuvj422p");
        assert!(!full.converts);
    }

    #[test]
    fn mastering_facts_become_the_words_of_x265() {
        let mut block = Vec::new();
        for (num, den) in [
            (34000, 50000),
            (16000, 50000),
            (13250, 50000),
            (34500, 50000),
            (7500, 50000),
            (3000, 50000),
            (15635, 50000),
            (16450, 50000),
            (1, 10000),
            (10_000_000, 10000),
        ] {
            block.extend(i32::to_ne_bytes(num));
            block.extend(i32::to_ne_bytes(den));
        }
        block.extend(1_i32.to_ne_bytes());
        block.extend(1_i32.to_ne_bytes());
        assert_eq!(
            mastering_words(&block).as_deref(),
            Some("G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1)")
        );
        assert_eq!(mastering_words(&block[..40]), None);
    }

    #[test]
    fn time_is_counted_as_the_source_does_where_that_is_possible() {
        let own = Rational { num: 1, den: 90_000 };
        let rate = Some(Rational {
            num: 30_000,
            den: 1001,
        });
        assert_eq!(encoder_time_base("libx264", "mp4", own, rate), own);
        let step = Rational {
            num: 1001,
            den: 30_000,
        };
        assert_eq!(encoder_time_base("mpeg2video", "mpegts", own, rate), step);
        assert_eq!(encoder_time_base("mpeg4", "mp4", own, rate), step);
        assert_eq!(encoder_time_base("libx264", "avi", own, rate), step);
        assert_eq!(
            encoder_time_base("mpeg4", "mp4", own, None),
            Rational { num: 1, den: 60_000 }
        );
    }
}
