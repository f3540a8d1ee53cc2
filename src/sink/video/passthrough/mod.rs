//! The passthrough streams: sound, subtitles, attachments, data, chapters and texts that come from the input
//! without being filtered.
//!
//! Packets are copied as they are. Sound that the container cannot hold is re-encoded; what else it cannot
//! hold is left out, with a warning. What it holds is found out by trying (see [`Container`]).
//!
//! ```text
//!   the options       selection which streams the user wants, and how sound is encoded
//!   before the head   plan      which streams go in, and how
//!                     sound     where sound begins beside the picture
//!                     texts     of the file, and chapters
//!   with each packet  copying   reading ─> copied (one for each stream) ─> muxer
//!   at the end        copying   the rest; account: what was done, and what was lost
//! ```

mod account;
mod copied;
mod copying;
mod plan;
mod reading;
pub(super) mod selection;
mod sound;
mod texts;

pub(super) use plan::{MapFailure, no_audio_encoder};

use super::container::{AddVideo, Container, StreamHandling};
use crate::media::ffmpeg::{AvError, Medium, Muxer};
use crate::source::Origin;
use account::Losses;
use copied::Copied;
use plan::{Planned, Planner};
use reading::Reader;
pub(super) use reading::Unopened;
use selection::{StreamOptions, Streams};
pub(super) use sound::writes_units;
use sound::{Changes, Gaps};

/// The streams of an input that come into the output beside the picture.
pub(super) struct Passthrough {
    reader: Reader,
    copied: Vec<Copied>,
    /// Seconds before picture and sound begin that the output leaves out.
    pause: f64,
    /// When the first picture is shown, in seconds of the output.
    picture: f64,
    /// Streams of the input whose mark as the default video went to the filtered one.
    unmarked: Vec<usize>,
    /// A packet that the container refuses ends the run.
    strict: bool,
    losses: Losses,
}

impl Passthrough {
    /// Opens the input a second time, or takes what is known of it where it can be read only once.
    pub(super) fn open(origin: &Origin, strict: bool) -> Result<Passthrough, Unopened> {
        Ok(Passthrough {
            reader: Reader::open(origin)?,
            copied: Vec::new(),
            pause: 0.0,
            picture: 0.0,
            unmarked: Vec::new(),
            strict,
            losses: Losses::default(),
        })
    }

    /// Word of streams that are wanted by `options` and not copied, since the input can be read only once.
    pub(super) fn unread(&self, options: &StreamOptions) -> Option<&str> {
        self.reader.unread(options)
    }

    /// Seconds before picture and sound begin that the output leaves out.
    pub(super) fn pause(&self) -> f64 {
        self.pause
    }

    /// Adds every stream that is wanted and that `muxer`, which writes `container`, can hold, in the input's
    /// order, with the filtered one where it stands or, where the container wants that, first, and takes over
    /// chapters and texts. Gives the index of the filtered stream in the output.
    pub(super) fn map(
        &mut self,
        muxer: &mut Muxer,
        container: &Container,
        add_video: AddVideo<'_>,
        options: &StreamOptions,
        picture: f64,
    ) -> Result<usize, MapFailure> {
        let alone = StreamOptions {
            streams: Streams::Video,
            ..StreamOptions::default()
        };
        let options = if self.reader.is_outline() { &alone } else { options };
        let planner = Planner {
            reader: &mut self.reader,
            losses: &mut self.losses,
            muxer,
            container,
            add_video,
            options,
        };
        let planned = planner.plan()?;
        texts::choose_form(&self.reader, muxer, planned.iter().map(|p| p.index));
        let video = self.add(muxer, container, add_video, planned)?;
        self.show_filtered(muxer, video);
        self.place_sound(muxer, container, picture);
        self.picture = picture - self.pause;
        let wanted: Vec<usize> = self.copied.iter().map(|c| c.from).collect();
        let streams = [&wanted[..], &[self.reader.filtered]].concat();
        self.reader.settle(wanted, options);
        if texts::loses_timecode(&self.reader) {
            self.losses.extend(vec![
                "its time code is left out: it is that of the input's first picture".to_owned(),
            ]);
        }
        texts::copy(&self.reader, muxer, &streams)?;
        Ok(video)
    }

    /// Has players show the filtered stream, `video` in the output, where other videos are copied beside it:
    /// they show the first one that is marked as default or, without such a mark, the first of all.
    fn show_filtered(&mut self, muxer: &mut Muxer, video: usize) {
        let (demuxer, filtered) = (&self.reader.demuxer, self.reader.filtered);
        let is_default = |index: usize| demuxer.stream(index).is_some_and(|facts| facts.is_default);
        let is_video = |copied: &&Copied| {
            let facts = demuxer.stream(copied.from);
            facts.is_some_and(|facts| facts.medium == Medium::Video && !facts.is_cover)
        };
        let others: Vec<&Copied> = self.copied.iter().filter(is_video).collect();
        let marked = || others.iter().filter(|copied| is_default(copied.from));
        let is_shown = is_default(filtered) && marked().all(|copied| copied.from > filtered);
        if others.is_empty() || is_shown {
            return;
        }
        muxer.mark_default(video, true);
        for other in marked() {
            muxer.mark_default(other.to, false);
        }
        self.unmarked = marked().map(|copied| copied.from).collect();
    }

    /// Adds the filtered stream, whose index in the output is given, and those that are `planned`.
    fn add(
        &mut self,
        muxer: &mut Muxer,
        container: &Container,
        add_video: AddVideo<'_>,
        planned: Vec<Planned>,
    ) -> Result<usize, MapFailure> {
        let add_described = |reader: &Reader, muxer: &mut Muxer| {
            let to = add_video(muxer)?;
            texts::describe_video(reader, muxer, to)?;
            texts::name_language(reader, muxer, (reader.filtered, to))?;
            Ok::<usize, AvError>(to)
        };
        let mut planned = planned.into_iter().peekable();
        let mut video = None;
        if container.wants_video_first() {
            video = Some(add_described(&self.reader, muxer)?);
        }
        for index in 0..self.reader.demuxer.stream_count() {
            if index == self.reader.filtered {
                if video.is_none() {
                    video = Some(add_described(&self.reader, muxer)?);
                }
                continue;
            }
            let (Some(Planned { handling, .. }), Some(facts)) = (
                planned.next_if(|p| p.index == index),
                self.reader.demuxer.stream(index),
            ) else {
                self.reader.demuxer.discard(index);
                continue;
            };
            let to = handling.add(muxer, &self.reader.demuxer, index)?;
            texts::name_language(&self.reader, muxer, (index, to))?;
            let gaps = Gaps::of_counted(&self.reader, muxer, container, &handling, (index, &facts));
            let header = self.reader.demuxer.extradata(index);
            let changes = match (facts.medium, &handling) {
                (Medium::Audio, StreamHandling::Encode(_)) => Some(Changes::of_codecs(&facts.codec, header)),
                (Medium::Audio | Medium::Video, StreamHandling::Copy { .. }) => {
                    Some(Changes::watched(&facts.codec, header, container.name()))
                }
                _ => None,
            };
            self.copied
                .push(Copied::new((index, &facts), to, handling, gaps, changes));
        }
        match video {
            Some(video) => Ok(video),
            None => Ok(add_video(muxer)?),
        }
    }
}
