//! What becomes of alpha on the way into an encoder: kept, reduced to transparent or opaque, or lost, and
//! what warning that takes.

use crate::frame::{AlphaKind, Channel, Frame};
use crate::media::ffmpeg::{Access, AvFormat, Decoder, Demuxer, EncoderKind, Packet, Picture, Received};
use crate::sink::SinkError;
use crate::sink::video::container::Container;
use crate::wording::counted;
use std::path::Path;

/// Packets of a finished file that are read to find its first picture.
const PACKETS_READ: usize = 1000;

/// Encoders that keep alpha, as they are offered: those that players know first.
const KEEPING_ALPHA: &[&str] = &["libvpx-vp9", "prores_ks", "qtrle", "ffv1", "utvideo", "png"];

/// What the encoder does with alpha.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sink::video) enum AlphaHandling {
    /// It takes a format with alpha.
    Kept,
    /// It takes a palette, in which a pixel is transparent or opaque.
    Cut,
    /// It takes a format without.
    Lost,
}

/// What an encoder that loses nothing else does with colour that no alpha lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HiddenColour {
    /// It keeps it, or keeps no colour as it is.
    Kept,
    /// It writes black, so that files are smaller: `libwebp` without loss, whose option `exact` FFmpeg does
    /// not offer for animations.
    Black,
    /// It has one colour for all such pixels, as GIF has.
    One,
    /// Colours are multiplied by alpha before they reach it, as OpenEXR has them.
    Multiplied,
}

impl HiddenColour {
    fn by(kind: EncoderKind, handling: AlphaHandling, options: &[(String, String)]) -> HiddenColour {
        let is_on = |value: &str| !matches!(value, "0" | "false" | "no" | "off");
        let is_lossless = || {
            let given = options.iter().rev().find(|(name, _)| name == "lossless");
            given.is_some_and(|(_, value)| is_on(value))
        };
        match (handling, kind.name().as_str()) {
            (AlphaHandling::Cut, _) => HiddenColour::One,
            (AlphaHandling::Kept, "libwebp" | "libwebp_anim") if is_lossless() => HiddenColour::Black,
            (AlphaHandling::Kept, _) if kind.codec_name() == "exr" => HiddenColour::Multiplied,
            _ => HiddenColour::Kept,
        }
    }

    /// True if a pixel of the frame has an alpha of 0 and a colour that is lost with it: neither black nor
    /// white, which is what FFmpeg reads of transparent pixels in GIF.
    fn is_lost(self, frame: &Frame) -> bool {
        let (format, colour) = (frame.format(), frame.metadata.colour);
        if format.is_float() {
            let is_straight = colour.alpha == AlphaKind::Straight;
            return self == HiddenColour::Multiplied && is_straight && has_light_under_none(frame);
        }
        let alpha = format.place(Channel::Alpha);
        let Some(alpha) = alpha.filter(|_| self != HiddenColour::Kept) else {
            return false;
        };
        let keeps_white = self != HiddenColour::Multiplied;
        // Chroma alone, under black luma, is no colour that shows.
        let colours: Vec<((usize, usize), u32, u32)> =
            [Channel::Red, Channel::Green, Channel::Blue, Channel::Luma]
                .into_iter()
                .filter_map(|channel| {
                    let black = colour.zero_level(format, channel);
                    let white = black + colour.span(format, channel);
                    Some((format.place(channel)?, black, white))
                })
                .collect();
        let is_lost = |x, y| {
            let sample = |(plane, at): (usize, usize)| u32::from(frame.sample(plane, x, y, at));
            let is_white = || colours.iter().all(|&(place, _, white)| sample(place) == white);
            let is_black = || colours.iter().all(|&(place, black, _)| sample(place) == black);
            sample(alpha) == 0 && !is_black() && !(keeps_white && is_white())
        };
        let (width, height) = (frame.layout().width(), frame.layout().height());
        (0..height).any(|y| (0..width).any(|x| is_lost(x, y)))
    }
}

/// Counts the frames whose alpha is not kept.
pub(in crate::sink::video) struct AlphaWatch {
    handling: AlphaHandling,
    hidden: HiddenColour,
    /// How many frames lost colour under an alpha of 0.
    hidden_frames: u64,
    /// How many frames lost something.
    frames: u64,
    /// Some frame had pixels that were not opaque.
    was_used: bool,
    /// Where alpha would be kept, for a sentence.
    advice: String,
    place: String,
}

impl AlphaWatch {
    /// Watches what `kind` does by its `options` in `container` with pictures that it gets as `format`;
    /// `has_alpha` if the frames have it.
    pub(in crate::sink::video) fn new(
        container: &Container,
        (kind, options): (EncoderKind, &[(String, String)]),
        format: AvFormat,
        has_alpha: bool,
    ) -> AlphaWatch {
        let facts = format.facts().unwrap_or_default();
        let has_such = |format: AvFormat| format.facts().is_some_and(|facts| facts.alpha);
        // The encoder takes alpha, too, and the container holds it: the format is the user's choice.
        let is_wished = has_alpha
            && !has_such(format)
            && kind.formats().into_iter().any(has_such)
            && is_held(container, kind);
        let handling = match (facts.palette, facts.alpha) {
            (true, _) => AlphaHandling::Cut,
            (false, true) => AlphaHandling::Kept,
            (false, false) => AlphaHandling::Lost,
        };
        AlphaWatch {
            handling,
            hidden: HiddenColour::by(kind, handling, options),
            hidden_frames: 0,
            frames: 0,
            was_used: false,
            advice: match (has_alpha, is_wished) {
                (_, true) => "choose a --pixel-format with alpha to keep it".to_owned(),
                (true, false) => advice(container),
                (false, false) => String::new(),
            },
            place: match is_wished {
                true => format!("{} of {} in {}", format.name(), kind.name(), container.name()),
                false => format!("{} in {}", kind.name(), container.name()),
            },
        }
    }

    /// Looks at a frame before it is converted; a sentence if it is the first that loses something.
    pub(in crate::sink::video) fn look(&mut self, frame: &Frame) -> Option<String> {
        let is_known = self.handling == AlphaHandling::Kept && self.was_used;
        let looks_below = self.hidden != HiddenColour::Kept;
        if !frame.format().has_alpha() || (is_known && !looks_below) {
            return None;
        }
        let is_used = !frame.is_opaque();
        self.was_used |= is_used;
        let loses = match self.handling {
            AlphaHandling::Kept => false,
            AlphaHandling::Cut => is_used && !frame.is_cut_out(),
            AlphaHandling::Lost => is_used,
        };
        self.frames += u64::from(loses);
        if loses && self.frames == 1 {
            return Some(format!(
                "frame {} has alpha, which is not kept: {}",
                frame.sequence,
                self.why()
            ));
        }
        let loses_colour = is_used && self.hidden.is_lost(frame);
        self.hidden_frames += u64::from(loses_colour);
        (loses_colour && self.hidden_frames == 1).then(|| {
            format!(
                "frame {} has colour under an alpha of 0, which is not kept: {}",
                frame.sequence,
                self.why_hidden()
            )
        })
    }

    fn why_hidden(&self) -> String {
        let what = match self.hidden {
            HiddenColour::One => "has one colour for all that is transparent",
            HiddenColour::Multiplied => "has colours multiplied by their alpha",
            HiddenColour::Black | HiddenColour::Kept => "writes it as black",
        };
        let keeping = match self.hidden {
            HiddenColour::Multiplied => "PNG and TIFF",
            _ => ".apng and .mkv",
        };
        format!("{} {what}; {keeping} files keep it", self.place)
    }

    fn why(&self) -> String {
        match self.handling {
            AlphaHandling::Kept | AlphaHandling::Lost => {
                format!("{} holds none; {}", self.place, self.advice)
            }
            AlphaHandling::Cut => format!(
                "pixels of {} are transparent or opaque, and alpha is cut at one half; {}",
                self.place, self.advice
            ),
        }
    }

    /// What was lost, once all frames have been seen.
    pub(in crate::sink::video) fn warnings(&self) -> Vec<String> {
        let alpha = (self.frames > 0).then(|| {
            let frames = counted(self.frames, "frame");
            format!("the alpha of {frames} is not kept: {}", self.why())
        });
        let hidden = (self.hidden_frames > 0).then(|| {
            let frames = counted(self.hidden_frames, "frame");
            format!(
                "the colour of pixels with alpha 0 in {frames} is not kept: {}",
                self.why_hidden()
            )
        });
        alpha.into_iter().chain(hidden).collect()
    }

    /// Looks into the finished file for the alpha that the encoder was given: some encoders and containers
    /// drop it without a word. A sentence if it is gone.
    pub(in crate::sink::video) fn missing(&self, path: &Path, stream: usize) -> Option<String> {
        if self.handling != AlphaHandling::Kept || !self.was_used {
            return None;
        }
        let first = first_format(path, stream)?;
        let facts = first.facts()?;
        (!facts.alpha && !facts.palette).then(|| {
            format!(
                "alpha is not kept: {} was given it, but the file holds none; {}",
                self.place, self.advice
            )
        })
    }
}

/// True if a pixel of floating-point samples has an alpha of 0 and a colour that is not.
fn has_light_under_none(frame: &Frame) -> bool {
    let format = frame.format();
    let Some((plane, at)) = format.place(Channel::Alpha) else {
        return false;
    };
    let colours: Vec<(usize, usize)> = [Channel::Red, Channel::Green, Channel::Blue, Channel::Luma]
        .into_iter()
        .filter_map(|channel| format.place(channel))
        .collect();
    let is_lit = |x, y| {
        let mut lights = colours.iter().map(|&(plane, at)| frame.float(plane, x, y, at));
        frame.float(plane, x, y, at) == 0.0 && lights.any(|light| light != 0.0)
    };
    let (width, height) = (frame.layout().width(), frame.layout().height());
    (0..height).any(|y| (0..width).any(|x| is_lit(x, y)))
}

/// The format of a file's first picture as FFmpeg decodes it.
fn first_format(path: &Path, stream: usize) -> Option<AvFormat> {
    let mut demuxer = Demuxer::open(path, Access::default(), None, None).ok()?;
    let mut decoder = Decoder::open(&demuxer, stream, 1, false).ok()??;
    let (mut packet, mut picture) = (Packet::new().ok()?, Picture::new().ok()?);
    for _ in 0..PACKETS_READ {
        let is_end = demuxer.read(&mut packet).is_err();
        if !is_end && packet.stream() != stream {
            continue;
        }
        decoder.send((!is_end).then_some(&packet)).ok()?;
        match decoder.receive(&mut picture) {
            Ok(Received::Item) => return Some(picture.format()),
            Ok(Received::Again) if !is_end => {}
            _ => return None,
        }
    }
    None
}

/// True if what `kind` writes keeps its alpha in `container`. The alpha of VP8 and VP9 is not in their
/// packets but beside them, and Matroska's family alone holds that.
pub(in crate::sink::video) fn is_held(container: &Container, kind: EncoderKind) -> bool {
    let beside = matches!(kind.codec_name().as_str(), "vp8" | "vp9");
    !beside || matches!(container.name(), "matroska" | "webm")
}

/// Which encoder of this container keeps alpha, or which container does.
fn advice(container: &Container) -> String {
    let keeps = |kind: &EncoderKind| {
        let has_alpha = |format: &AvFormat| format.facts().is_some_and(|f| f.alpha && !f.hardware);
        kind.formats().iter().any(has_alpha) && is_held(container, *kind) && container.holds(*kind)
    };
    let found = KEEPING_ALPHA
        .iter()
        .filter_map(|name| EncoderKind::find(name))
        .find(keeps);
    let others = "write a .webm, .mov or .mkv file to keep it";
    let is_one = matches!(container.name(), "webm" | "mov" | "matroska");
    match found {
        Some(kind) if is_one => format!("take --encoder {} to keep it", kind.name()),
        Some(kind) => format!("{others}, or take --encoder {}", kind.name()),
        None => others.to_owned(),
    }
}

/// An error that `--strict` makes of a loss.
pub(in crate::sink::video) fn refused(path: &str, problem: &str) -> SinkError {
    SinkError::Unsupported {
        path: path.to_owned(),
        problem: format!("{problem}; without --strict it is written all the same"),
    }
}
