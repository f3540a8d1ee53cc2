//! Gaps in the sound of a stream, in a container that has what follows a gap come at once.

use super::{TOO_SHORT_TO_HEAR, writes_units};
use crate::media::ffmpeg::{Medium, Muxer, StreamFacts};
use crate::sink::video::container::{Container, StreamHandling};
use crate::sink::video::passthrough::reading::Reader;

/// Sound that is early by so few seconds after a gap is not named: about a picture.
const TOO_EARLY: f64 = 0.03;

/// Where the sound of a stream pauses, in seconds, in a container that counts samples or packets of it.
#[derive(Default)]
pub(in crate::sink::video) struct Gaps {
    /// When the last packet ends.
    end: Option<f64>,
    /// How early the container has what comes next.
    early: f64,
    /// The most of that, and where it began.
    most: f64,
    first: Option<f64>,
    /// Seconds of sound and silence so far.
    total: f64,
}

impl Gaps {
    /// Of stream `index`, if the container counts its sound and it is copied, so that what comes after a gap
    /// follows on what came before.
    pub(in crate::sink::video) fn of_counted(
        reader: &Reader,
        muxer: &Muxer,
        container: &Container,
        handling: &StreamHandling,
        (index, facts): (usize, &StreamFacts),
    ) -> Option<Gaps> {
        if facts.medium != Medium::Audio || matches!(handling, StreamHandling::Encode(_)) {
            return None;
        }
        let packet = reader.waiting(index).next()?;
        let is_counted =
            writes_units(muxer) || !container.keeps_gaps((&reader.demuxer, index), handling, packet);
        is_counted.then(Gaps::default)
    }

    /// How much silence must come before a packet at `at` that lasts `length` seconds, which is known to the
    /// sample or to a tick, for the container to have it at its time.
    pub(in crate::sink::video) fn before(&mut self, at: f64, length: f64, is_exact: bool) -> Option<f64> {
        let off = self.end.replace(at + length).map_or(0.0, |end| at - end);
        self.total += length;
        if is_exact || off.abs() > TOO_SHORT_TO_HEAR {
            self.early += off;
        }
        (off > TOO_SHORT_TO_HEAR && self.early > TOO_SHORT_TO_HEAR).then_some(self.early)
    }

    /// Notes that there is silence now before the packet at `at`, or else that there cannot be.
    pub(in crate::sink::video) fn close(&mut self, at: f64, is_filled: bool) {
        if is_filled {
            self.total += self.early;
            self.early = 0.0;
        } else {
            self.most = self.most.max(self.early);
            self.first.get_or_insert(at);
        }
    }

    /// Seconds of sound and silence so far.
    pub(in crate::sink::video) fn total(&self) -> f64 {
        self.total
    }

    /// Counts so many seconds of silence behind all that was given.
    pub(in crate::sink::video) fn add(&mut self, silence: f64) {
        self.total += silence;
    }

    /// Word of what comes early, if that is to be heard.
    pub(in crate::sink::video) fn sentence(&self, label: &str, container: &str) -> Option<String> {
        let first = self.first.filter(|_| self.most > TOO_EARLY)?;
        Some(format!(
            "{label} has a gap before {first:.3} s, which {container} cannot hold: what follows comes up to \
             {:.3} s early; --audio-encoder puts silence there",
            self.most
        ))
    }
}
