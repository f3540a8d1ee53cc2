//! The pixel format that is encoded.

use crate::frame::fact::Samples;
use crate::frame::{AlphaKind, Colour, ColourModel, PixelFormat, Range};
use crate::media::convert::{self, divides, is_full_range_name, loss, lost_depth};
use crate::media::ffmpeg::{AvFormat, EncoderKind, FormatFacts};
use crate::messages::suggest::suggestion;
use crate::wording::and_list;

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
pub(in crate::sink::video) struct FormatChoice {
    pub(in crate::sink::video) format: AvFormat,
    /// The pixels must be converted by swscale.
    pub(in crate::sink::video) converts: bool,
    /// Colour facts of what goes to the encoder.
    pub(in crate::sink::video) colour: Colour,
    /// The samples are brought to the range in `colour`, since the output cannot say the frames' own.
    pub(in crate::sink::video) range_is_changed: bool,
    /// Bits of the frames' samples and of those that are encoded, if they become fewer and the user has not
    /// named the format.
    pub(in crate::sink::video) lost_depth: Option<(u32, u32)>,
    /// Samples become a palette's, and the user has not named the format.
    pub(in crate::sink::video) is_reduced: bool,
    /// What to tell the user, if anything.
    pub(in crate::sink::video) note: Option<String>,
}

impl FormatChoice {
    /// What facts about pictures of this format and height are about.
    pub(in crate::sink::video) fn samples(&self, height: usize) -> Samples {
        let facts = self.format.facts().unwrap_or_default();
        Samples {
            model: match facts.components {
                _ if facts.rgb || facts.palette => ColourModel::Rgb,
                0..=2 => ColourModel::Gray,
                _ => ColourModel::Yuv,
            },
            subsampling: (facts.log2_x, facts.log2_y),
            height,
        }
    }

    /// The same format with samples of the other range.
    pub(in crate::sink::video) fn with_other_range(&self, height: usize) -> FormatChoice {
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

/// The formats that an encoder takes, as far as it keeps them right; none if it does not say.
fn taken_by(kind: EncoderKind) -> Result<Vec<AvFormat>, String> {
    let encoder = kind.name();
    let mut taken = kind.formats();
    taken.retain(|&format| !is_garbled(&encoder, format));
    let is_of_device = |f: &AvFormat| f.facts().is_some_and(|facts| facts.hardware);
    if !taken.is_empty() && taken.iter().all(is_of_device) {
        return Err(format!(
            "{encoder} takes pictures from a device's own memory only ({}), where framepipe has none; choose \
             another encoder, such as libx264",
            list(&taken)
        ));
    }
    Ok(taken)
}

/// The names of formats.
fn list(formats: &[AvFormat]) -> String {
    let names: Vec<String> = formats.iter().map(|f| f.name()).collect();
    names.join(", ")
}

/// The frame's own format if the encoder takes it, else the one that loses least, or the one that the user
/// wants. RGB pictures become 4:2:0 where the container is for players that know nothing else, and pictures
/// that were brought to 4:4:4 for their alpha get back the subsampling with which they were `stored`, where
/// alpha is not kept.
pub(in crate::sink::video) fn choose_format(
    (kind, container): (EncoderKind, &str),
    (format, colour, stored): (PixelFormat, Colour, Option<(u32, u32)>),
    (width, height): (usize, usize),
    wanted: Option<&str>,
    alpha_is_held: bool,
) -> Result<FormatChoice, String> {
    let encoder = kind.name();
    let unknown = |name: &str| {
        let known: Vec<&str> = PixelFormat::all().map(PixelFormat::name).collect();
        format!(
            "this FFmpeg knows no pixel format '{name}'{}",
            suggestion(name, &known)
        )
    };
    let own = AvFormat::from_name(format.name()).ok_or_else(|| unknown(format.name()))?;
    let own_facts = own.facts().ok_or_else(|| unknown(format.name()))?;
    let (log2_x, log2_y) = stored.unwrap_or((own_facts.log2_x, own_facts.log2_y));
    let stored = FormatFacts {
        log2_x,
        log2_y,
        ..own_facts.clone()
    };
    let given = (own, &own_facts, &stored);
    let taken = taken_by(kind)?;
    let whole = |facts: &FormatFacts| !needs_whole_chroma(&encoder) || divides(facts, width, height);
    let is_for_players = wanted.is_none() && is_for_players(kind, container, format.model());
    let plays = |facts: &FormatFacts| (facts.log2_x, facts.log2_y) == (1, 1) && whole(facts);
    let of_players = is_for_players
        .then(|| nearest(kind, given, &taken, plays, alpha_is_held))
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
        nearest(kind, given, &taken, whole, alpha_is_held).ok_or_else(|| {
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
    } else if !facts.alpha && stored != own_facts && (facts.log2_x, facts.log2_y) == (log2_x, log2_y) {
        Reason::Stored
    } else {
        Reason::Taken
    };
    let lost_depth = (converts && reason != Reason::Requested)
        .then(|| lost_depth(&own_facts, &facts))
        .flatten();
    let is_reduced = facts.palette && reason != Reason::Requested;
    let note = converts.then(|| conversion(format, (&own_facts, &facts), reason));
    Ok(FormatChoice {
        format: chosen,
        converts,
        colour,
        range_is_changed: false,
        lost_depth,
        is_reduced,
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
    /// The input has its subsampling, and the frames have not.
    Stored,
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
        Reason::Stored => "whose chroma is that of the input",
        Reason::Taken => "which the encoder takes",
    };
    let lost = loss(from, to);
    let words = lost.words();
    let palette = if to.palette {
        ", a palette for each frame"
    } else {
        ""
    };
    let care = match words.as_slice() {
        [] => palette.to_owned(),
        words => format!("{palette}, not without loss of {}", and_list(words)),
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
    (own, own_facts, stored): (AvFormat, &FormatFacts, &FormatFacts),
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
    let from = |facts: &FormatFacts| if facts.alpha { own_facts } else { stored };
    fitting.sort_by_key(|(f, facts)| (loss(from(facts), facts), *f != own));
    // If none opens, the encoder wants something else, and says so when it is opened in earnest.
    fitting
        .iter()
        .find(|(f, _)| fitting.len() == 1 || kind.opens(*f))
        .or(fitting.first())
        .map(|(f, _)| *f)
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
    } else if !from_rgb && (facts.components <= 2) != (format.model() == ColourModel::Gray) {
        // Said aloud, since gray and YUV differ in what "unspecified" means.
        after.range = colour.assumed_range(format);
    }
    if is_full_range_name(chosen) {
        after.range = Range::Full;
    }
    if !facts.alpha {
        after.alpha = AlphaKind::Straight;
    }
    after
}

#[cfg(test)]
mod tests {
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
            (format(from), colour, None),
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
        let note = mpeg.note.as_deref().unwrap();
        assert!(
            note.ends_with("not without loss of alpha, exact colour and chroma resolution)"),
            "{note}"
        );
        assert_eq!(mpeg.lost_depth, None);
        let palette = chosen("gif", "gray16le", Range::Full, (32, 32));
        assert_eq!(palette.lost_depth, Some((16, 8)));
        let palette = palette.note.unwrap();
        let words = "to pal8 (which the encoder takes, a palette for each frame, not without loss of depth)";
        assert!(palette.ends_with(words), "{palette}");
        let shallow = chosen("gif", "rgb24", Range::Full, (32, 32)).note.unwrap();
        assert!(shallow.ends_with("a palette for each frame)"), "{shallow}");
        let deep = chosen("libvpx", "yuva444p10le", Range::Limited, (33, 17));
        assert_eq!(
            (deep.format.name().as_str(), deep.lost_depth),
            ("yuva420p", Some((10, 8)))
        );
        let requested = choose_format(
            (EncoderKind::find("ffv1").unwrap(), "matroska"),
            (format("gray16le"), Colour::default(), None),
            (32, 32),
            Some("gray"),
            true,
        );
        assert_eq!(requested.unwrap().lost_depth, None);
        assert!(deep.note.unwrap().contains("loss of depth and chroma resolution"));
    }

    #[test]
    fn chroma_that_was_brought_up_for_alpha_comes_down_without_it() {
        let chosen = |encoder: &str, from: &str, stored| {
            let kind = EncoderKind::find(encoder).unwrap();
            let facts = (format(from), Colour::default(), Some(stored));
            let choice = choose_format((kind, "matroska"), facts, (32, 32), None, true);
            choice.unwrap().format.name()
        };
        for (encoder, from, stored, expected) in [
            ("ffv1", "yuva444p", (1, 1), "yuva444p"),
            ("ffv1", "yuva444p10le", (1, 0), "yuva444p10le"),
            ("libx264", "yuva444p", (1, 1), "yuv420p"),
            ("libx264", "yuva444p10le", (1, 0), "yuv422p10le"),
            ("png", "rgba", (1, 1), "rgba"),
        ] {
            assert_eq!(chosen(encoder, from, stored), expected);
        }
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
}
