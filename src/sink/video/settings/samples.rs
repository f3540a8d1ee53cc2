//! What becomes of a frame's samples before they are encoded: changes that undo facts which the output cannot
//! say, and swscale where the encoder takes another format.

use super::selection::FormatChoice;
use super::stage::Staged;
use crate::frame::fact::Fact;
use crate::frame::{
    AlphaKind, CHROMA_CENTRE, CHROMA_LEFT, Colour, ColourModel, Frame, Layout, Range, RangeChange, Turn,
};
use crate::media::convert::{self, Converter};
use crate::media::ffmpeg::{AvError, AvFormat, Picture, Scaler, ScalerEnd};
use crate::sink::SinkError;
use crate::sink::ledger::merged;
use crate::sink::video::VideoSink;

/// Changes of a frame's samples that undo facts which the output cannot say.
pub(in crate::sink::video) struct SampleSteps {
    /// Colour facts of the stream, where a frame says nothing.
    stream_colour: Colour,
    turn: Option<Turn>,
    /// To what the encoder takes, or what swscale makes that of; in one rounding with the range.
    converter: Option<Converter>,
    /// The range that frames are scaled to where they are not converted, and it is not theirs.
    limited: bool,
    range_change: Option<RangeChange>,
    /// Straight colours are multiplied by their alpha, as those that are written are.
    associates: bool,
    /// How many frames had such colours.
    associated: u64,
}

impl VideoSink {
    /// swscale where the encoder takes another format, and what is done to frames of `layout` before it.
    pub(in crate::sink::video) fn sample_steps(
        &self,
        layout: &Layout,
        staged: &Staged,
    ) -> Result<(Option<(Scaler, Picture)>, SampleSteps), SinkError> {
        let choice = &staged.choice;
        let colour = staged.first.colour;
        let mut format = layout.format();
        let is_rgb = [format.model(), staged.output.model].contains(&ColourModel::Rgb);
        // Those of what swscale reads, if it reads anything.
        let mut scaled = colour;
        if !is_rgb && choice.range_is_changed {
            scaled.range = choice.colour.range;
        }
        let mut steps = SampleSteps {
            stream_colour: self.info.colour,
            turn: staged.turn,
            converter: None,
            limited: scaled.is_limited(format),
            range_change: None,
            associates: self.has_associated_alpha(),
            associated: 0,
        };
        if !choice.converts {
            return Ok((None, steps));
        }
        let (width, height) = (staged.setup.width, staged.setup.height);
        let problem = |e: convert::ConvertError| self.unsupported(e.to_string());
        let native = convert::nearest_native(scaled_format(choice)).map(|(native, _)| native);
        if let Some(native) = native.filter(|native| native.is_float() && !format.is_float())
            && native.name() == choice.format.name()
        {
            let straight = Colour {
                alpha: AlphaKind::Straight,
                ..colour
            };
            let converter = Converter::new((format, straight), native, width, height).map_err(problem)?;
            steps.converter = Some(converter);
            return Ok((None, steps));
        }
        if let Some(native) = native.filter(|native| !native.is_float() && !format.is_float()) {
            let mut written = choice.colour;
            if written.chroma_location == 0 {
                written.chroma_location = location_of(&self.kind.codec_name());
            }
            let (from, to) = ((format, colour), (native, written));
            if !convert::is_rearranged(from, to, height).map_err(|e| problem(e.into()))? {
                steps.converter = Some(Converter::between(from, to, width, height).map_err(problem)?);
                if native.name() == choice.format.name() {
                    return Ok((None, steps));
                }
                (format, scaled) = to;
            }
        }
        let own = AvFormat::from_name(format.name())
            .ok_or_else(|| self.unsupported(format!("this FFmpeg does not know {format}")))?;
        let layout = Layout::new(format, width, height, 64).map_err(|e| self.unsupported(e.to_string()))?;
        let made = make_scaler(&layout, own, scaled, choice).map_err(|e| {
            self.unsupported(format!(
                "swscale cannot convert {format} to {}: {e}",
                choice.format.name()
            ))
        })?;
        Ok((Some(made), steps))
    }
}

impl SampleSteps {
    /// True if [`SampleSteps::run`] changes the frame's samples.
    pub(in crate::sink::video) fn changes(&self, frame: &Frame) -> bool {
        self.turn.is_some()
            || self.converter.is_some()
            || self.changes_range(frame)
            || self.associates && frame.format().has_alpha()
    }

    /// How many frames had straight colours that were multiplied by their alpha.
    pub(in crate::sink::video) fn associated(&self) -> u64 {
        self.associated
    }

    fn changes_range(&self, frame: &Frame) -> bool {
        let format = frame.format();
        let limited = merged(frame.metadata.colour, self.stream_colour).is_limited(format);
        limited != self.limited && format.model() != ColourModel::Rgb
    }

    /// Brings a frame to the output's range and orientation, and converts it where swscale is inexact.
    pub(in crate::sink::video) fn run(&mut self, mut frame: Frame) -> Result<Frame, AvError> {
        if self.converter.is_none() && self.changes_range(&frame) {
            let to = if self.limited { Range::Limited } else { Range::Full };
            self.range_change
                .get_or_insert_with(|| RangeChange::new(frame.format(), to))
                .apply(&mut frame);
        }
        if let Some(turn) = self.turn {
            frame = turn.apply(&frame).map_err(|_| AvError::no_memory())?;
            frame.metadata.side_data.retain(|b| b.fact != Fact::Rotation);
        }
        if let Some(converter) = &mut self.converter {
            let (format, read, ..) = converter.input();
            let colour = merged(frame.metadata.colour, self.stream_colour);
            if colour.is_limited(format) != read.is_limited(format) {
                *converter = converter
                    .of_range(colour.range)
                    .map_err(|_| AvError::no_memory())?;
            }
            frame = converter.convert(&frame).map_err(|_| AvError::no_memory())?;
        }
        if self.associates {
            self.associated += u64::from(convert::associate(&mut frame));
        }
        Ok(frame)
    }
}

/// FFmpeg's number of the place of chroma that pictures of a codec have where nothing is said: the middle in
/// those before MPEG-2 and in JPEG, else the left.
fn location_of(codec: &str) -> u8 {
    match codec {
        "mjpeg" | "mpeg1video" | "h261" | "h263" | "h263p" | "flv1" => CHROMA_CENTRE,
        _ => CHROMA_LEFT,
    }
}

/// The format that the scaler makes: the encoder's, or the one that a palette is made from.
pub(in crate::sink::video) fn scaled_format(choice: &FormatChoice) -> AvFormat {
    let has_palette = choice.format.facts().is_some_and(|facts| facts.palette);
    AvFormat::from_name("rgba")
        .filter(|_| has_palette)
        .unwrap_or(choice.format)
}

/// swscale for frames of `layout`, and the padded picture that it reads.
fn make_scaler(
    layout: &Layout,
    own: AvFormat,
    colour: Colour,
    choice: &FormatChoice,
) -> Result<(Scaler, Picture), AvError> {
    let (width, height) = (layout.width(), layout.height());
    let to_full = match choice.colour.range {
        Range::Full => true,
        Range::Limited => false,
        Range::Unspecified => choice.format.facts().is_some_and(|f| f.rgb || f.components <= 2),
    };
    let scaler = Scaler::new(
        width,
        height,
        ScalerEnd {
            format: own,
            full_range: !colour.is_limited(layout.format()),
            matrix: convert::written_matrix(colour.matrix, height),
            chroma_location: colour.chroma_location,
        },
        ScalerEnd {
            format: scaled_format(choice),
            full_range: to_full,
            matrix: convert::written_matrix(choice.colour.matrix, height),
            chroma_location: choice.colour.chroma_location,
        },
    )?;
    Ok((scaler, Picture::allocate(own, width, height)?))
}
