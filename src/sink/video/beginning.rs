//! The first frame: the encoder is opened, streams are added, and the container's head is written.

use super::VideoSink;
use super::container::{AddVideo, explained};
use super::encoding::pacing::Pacing;
use super::encoding::{FrameEncoder, GifEncoder, PictureMaker, Running, Timing};
use super::passthrough::selection::Streams;
use super::passthrough::{MapFailure, Passthrough, Unopened};
use super::settings::alpha::AlphaWatch;
use super::settings::selection;
use crate::frame::{ColourModel, Frame, Rational};
use crate::media::ffmpeg::{AvError, AvFormat, Muxer, rescale};
use crate::sink::SinkError;
use std::io;

/// Seconds after the output's beginning from which on a first picture is late.
const LATE: f64 = 0.05;

impl VideoSink {
    /// Opens the encoder for frames like `frame`, or like the first of the whole if this is a part, and
    /// writes the container's head.
    pub(super) fn begin(&mut self, frame: &Frame) -> Result<Box<Running>, SinkError> {
        let whole = self.options.first.clone();
        let first = whole.as_ref().map_or(Ok(frame), |whole| whole.noted(frame));
        let first = first.map_err(|e| self.unsupported(e.to_string()))?;
        let layout = *first.layout();
        if is_seen_through(first) {
            self.kind = selection::choose_encoder(
                &self.output.muxer,
                &self.container,
                self.options.encoder.as_deref(),
                layout.format(),
                true,
            )
            .map_err(|problem| self.unsupported(problem))?;
        }
        let (staged, mut ledger, sample) = self.stage(first)?;
        if whole.is_some() {
            ledger.count_anew();
        }
        self.container.set_sample(sample);
        if let Some(problem) = self.merged_gif(&staged) {
            return Err(self.unsupported(problem));
        }
        self.warnings.extend(staged.misreadings.iter().cloned());
        self.warnings.extend(self.misnamed(staged.choice.format));
        let name = self.name.clone();
        let failed = |e: AvError| SinkError::Io {
            path: name.clone(),
            cause: e.to_io(),
        };
        let encoder_name = self.kind.name();
        let surfaces = self.surfaces(frame, &staged)?;
        let ((encoder, left), settings) = self.open_encoder(&staged.setup, &staged.hdr, surfaces.as_ref())?;
        self.set_container_options(&encoder_name, left)?;
        let base = staged.setup.time_base;
        let samples = self.sample_steps(&layout, &staged)?;
        let picture = frame.metadata.pts.unwrap_or(0) as f64 * self.info.time_base.to_f64();
        let tag = self.codec_tag();
        let add_video = |muxer: &mut Muxer| {
            let index = muxer.add_encoded(&encoder, tag)?;
            for block in &staged.blocks {
                muxer.add_side_data(index, block)?;
            }
            Ok(index)
        };
        if let Some(origin) = self.origin.as_mut().filter(|origin| origin.stretch.start == 0) {
            origin.stretch.start = self.info.time_base.nanos(frame.metadata.skipped.ticks);
        }
        let (stream, mut passthrough) = self.map_streams(&add_video, picture)?;
        let pause = passthrough.as_ref().map_or(0.0, Passthrough::pause);
        if let Err(reason) = explained(|| self.output.muxer.begin()) {
            return Err(self.refused_head(&reason));
        }
        if let Some(passthrough) = &mut passthrough {
            passthrough.begin_on_ticks(&self.output.muxer);
        }
        let step = frame.metadata.duration.unwrap_or_else(|| self.ticks_of_a_frame());
        let mut pacing = Pacing::new(self.info.time_base, base, pause, step).at_rate(self.ticks_of_a_frame());
        pacing.suit(&self.output.muxer, stream);
        let choice = &staged.choice;
        let has_palette = choice.format.facts().is_some_and(|facts| facts.palette);
        // Of the size behind a turn.
        let size = (staged.setup.width, staged.setup.height);
        let gif = (has_palette && encoder_name == "gif")
            .then(|| GifEncoder::new(size.0, size.1, staged.setup.sample_aspect));
        let alpha = AlphaWatch::new(
            &self.container,
            (self.kind, &self.options.encoder_options),
            choice.format,
            layout.format().has_alpha(),
        );
        Ok(Box::new(Running {
            layout,
            pictures: PictureMaker::new(
                &encoder_name,
                choice,
                has_palette && gif.is_none(),
                samples,
                surfaces,
            ),
            encoder: FrameEncoder::new(encoder, &encoder_name, settings, gif).map_err(failed)?,
            timing: Timing::new(&self.info, pacing, &self.options.encoder_options),
            stream,
            passthrough,
            alpha,
            ledger,
            colours_are_lost: false,
            staged,
        }))
    }

    /// Says of bare samples that they are others than the name of their file tells.
    fn misnamed(&self, format: AvFormat) -> Option<String> {
        let options = &self.options;
        let is_asked = options.muxer.is_some() || options.encoder.is_some() || options.pixel_format.is_some();
        let facts = format.facts()?;
        let usual = match options.path.extension()?.to_str()? {
            "yuv" if facts.rgb || facts.alpha => "yuv420p",
            "rgb" if !facts.rgb || facts.alpha => "rgb24",
            _ => return None,
        };
        (!is_asked && self.output.muxer.name() == "rawvideo").then(|| {
            format!(
                "{} holds {} samples, which its name does not tell; --pixel-format {usual} converts them, \
                 and a name in .mkv or .y4m keeps what they are",
                self.name, facts.name
            )
        })
    }

    /// Gives the container the options that the encoder has `left`.
    pub(super) fn set_container_options(
        &mut self,
        encoder_name: &str,
        left: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), SinkError> {
        let repeat = repeated(&self.output.muxer.name(), self.info.plays);
        let repeat = repeat.map(|(key, value)| (key.to_owned(), value.to_string()));
        for (key, value) in repeat.into_iter().chain(left) {
            let container = self.output.muxer.name();
            self.container.option(&key, &value);
            self.output.muxer.set(&key, &value).map_err(|e| {
                self.unsupported(if e.is_option_not_found() {
                    format!(
                        "neither the encoder {encoder_name} nor the container {container} has an option \
                         '{key}'; `ffmpeg -h encoder={encoder_name}` lists them"
                    )
                } else {
                    format!("the container {container} refuses {key}={value}: {e}")
                })
            })?;
        }
        Ok(())
    }

    /// How long a frame lasts at the input's frame rate, in ticks of its clock; 1 without a rate.
    pub(super) fn ticks_of_a_frame(&self) -> i64 {
        self.info.frame_rate.map_or(1, |rate| {
            let one = Rational {
                num: rate.den,
                den: rate.num,
            };
            rescale(1, one, self.info.time_base)
        })
    }

    /// Adds the encoded stream, by `add_video`, and the passthrough streams to the container. The first
    /// picture is shown at `picture` seconds.
    pub(super) fn map_streams(
        &mut self,
        add_video: AddVideo<'_>,
        picture: f64,
    ) -> Result<(usize, Option<Passthrough>), SinkError> {
        let strict = self.options.strict;
        let opened = self
            .origin
            .as_ref()
            .map(|origin| Passthrough::open(origin, strict));
        let warning = match &opened {
            Some(Ok(passthrough)) => passthrough.unread(&self.options.streams),
            Some(Err(_)) if self.options.streams.streams == Streams::Video => None,
            Some(Err(Unopened::Failed(name, e))) => {
                let cause = e.to_io();
                let sentence =
                    format!("{name} cannot be opened a second time for its other streams: {cause}");
                return Err(self.file.failed(io::Error::new(cause.kind(), sentence)));
            }
            Some(Err(Unopened::Lost(warning))) => Some(warning.as_str()),
            None => None,
        };
        if let Some(warning) = warning {
            if strict {
                return Err(self.unsupported(format!(
                    "{warning}; give a file, or leave the other streams out with --streams video"
                )));
            }
            self.warnings.push(warning.to_owned());
        }
        let mut passthrough = opened.and_then(Result::ok);
        let muxer = &mut self.output.muxer;
        let mapped = match &mut passthrough {
            Some(passthrough) => {
                passthrough.map(muxer, &self.container, add_video, &self.options.streams, picture)
            }
            None => add_video(muxer).map_err(MapFailure::Memory),
        };
        let stream = mapped.map_err(|failure| match failure {
            MapFailure::Memory(e) => SinkError::Io {
                path: self.name.clone(),
                cause: e.to_io(),
            },
            MapFailure::Refused(problem) => self.unsupported(problem),
        })?;
        if let Some(passthrough) = &passthrough
            && strict
            && let Some(problem) = passthrough.refusal()
        {
            return Err(self.unsupported(problem));
        }
        self.check_beginning(picture, passthrough.as_ref().map_or(0.0, Passthrough::pause))?;
        Ok((stream, passthrough))
    }

    /// Names what the container cannot say: that the first picture, at `picture` seconds of which the output
    /// leaves out `pause`, is late, or how often an animation is shown.
    fn check_beginning(&mut self, picture: f64, pause: f64) -> Result<(), SinkError> {
        let strict = self.options.strict;
        let begins = picture - pause;
        if begins > LATE && self.container.moves_first_picture(begins) {
            let early = format!(
                "{} cannot begin without a picture: the first one, which belongs {begins:.3} s after the \
                 beginning, is shown from the beginning on",
                self.container.name()
            );
            if strict {
                return Err(self.unsupported(early));
            }
            self.warnings.push(early);
        }
        if let Some(plays @ 2..) = self.info.plays
            && repeated(self.container.name(), None).is_none()
        {
            let lost = format!(
                "{} cannot say that the input is shown {plays} times; GIF, APNG and WebP can",
                self.container.name()
            );
            if strict {
                return Err(self.unsupported(lost));
            }
            self.warnings.push(lost);
        }
        Ok(())
    }

    /// What to say if the container's head cannot be written for `reason`. The other streams were tried
    /// before, so that it is the encoder's or the file's.
    pub(super) fn refused_head(&self, reason: &str) -> SinkError {
        if let Some(io) = self.output.muxer.io_error() {
            return SinkError::Io {
                path: self.name.clone(),
                cause: io.to_io(),
            };
        }
        let container = self.container.name();
        if !self.output.muxer.can_seek() {
            return self.unsupported(format!(
                "{container} cannot be written to it ({reason}); some containers have to go back in what \
                 they wrote: choose another one, such as matroska, a file, or for MP4 and MOV \
                 --encoder-option movflags=frag_keyframe+empty_moov"
            ));
        }
        self.unsupported(format!(
            "{container} cannot hold {}, which the encoder {} writes: {reason}; {}",
            self.kind.codec_name(),
            self.kind.name(),
            selection::offer(&self.output.muxer, &self.container, Some(self.kind))
        ))
    }
}

/// True if the encoder is to be chosen for alpha: the format has it, and it is used. Graphics of 8 bits have
/// it by habit (all GIFs do), so that their first frame tells; others have it on purpose.
fn is_seen_through(frame: &Frame) -> bool {
    let format = frame.format();
    let by_habit = format.depth() <= 8 && format.model() != ColourModel::Yuv;
    format.has_alpha() && !(by_habit && frame.is_opaque())
}

/// The option of a container's that says how often an animation is shown, and its value; as often as the
/// input `plays`, else for ever.
fn repeated(container: &str, plays: Option<u32>) -> Option<(&'static str, i64)> {
    let plays = i64::from(plays.unwrap_or(0));
    let sixteen_bits = i64::from(u16::MAX);
    match container {
        // How often it is repeated after the first time; -1 for never.
        "gif" => Some((
            "loop",
            match plays {
                0 => 0,
                1 => -1,
                _ => (plays - 1).min(sixteen_bits),
            },
        )),
        "apng" => Some(("plays", plays)),
        "webp" => Some(("loop", plays.min(sixteen_bits))),
        _ => None,
    }
}
