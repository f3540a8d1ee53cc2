//! The beginning of sound beside that of the picture.

use super::{TOO_SHORT_TO_HEAR, writes_units};
use crate::media::ffmpeg::{Medium, Muxer};
use crate::sink::video::container::{Container, KEEP_NEGATIVE, StreamHandling};
use crate::sink::video::passthrough::Passthrough;
use crate::sink::video::passthrough::copied::Copied;
use crate::sink::video::passthrough::reading::has_long_packets;

/// Seconds from the beginning of a range to its first picture, up to which sound before that is not missed.
const WITHIN_A_PICTURE: f64 = 0.05;

impl Passthrough {
    /// Places the beginning of all sound, beside the first picture, which is shown at `picture` seconds.
    pub(in crate::sink::video) fn place_sound(
        &mut self,
        muxer: &mut Muxer,
        container: &Container,
        picture: f64,
    ) {
        self.place_late_sound(container, picture);
        self.place_early_sound(muxer, container, picture - self.pause);
        self.cut_long_packets(muxer);
        if writes_units(muxer) {
            self.begin_encoded_sound(picture);
            self.report_moved_sound(container, picture);
        }
    }

    /// Has picture and sound stay together in a container that cannot say that sound begins late. What both
    /// are late by is left out; what remains is a loss. `picture` is when the picture begins, in seconds.
    fn place_late_sound(&mut self, container: &Container, picture: f64) {
        let mut late = Vec::new();
        for copied in &self.copied {
            let Some(facts) = self.reader.demuxer.stream(copied.from) else {
                continue;
            };
            let start = self.reader.beginning(copied.from).unwrap_or(0.0);
            if facts.medium == Medium::Audio && start > TOO_SHORT_TO_HEAR {
                late.push((copied, start));
            }
        }
        let keeps = |copied: &Copied, begins| {
            container.keeps_apart((&self.reader.demuxer, copied.from), &copied.handling, begins)
        };
        if late
            .iter()
            .all(|(copied, start)| keeps(copied, (picture, *start)))
        {
            return;
        }
        let common = late
            .iter()
            .map(|(_, start)| *start)
            .fold(picture, f64::min)
            .max(0.0);
        let (mut losses, mut filled) = (Vec::new(), Vec::new());
        for (copied, start) in &late {
            if keeps(copied, (picture - common, start - common)) {
                continue;
            }
            match copied.handling {
                StreamHandling::Encode(_) if *start > picture => filled.push(copied.from),
                _ => losses.push(copied.moved(start - picture, container)),
            }
        }
        self.losses.extend(losses);
        self.pause = common;
        for copied in &mut self.copied {
            copied.delay -= common;
            // Silence stands for what is missing.
            if let StreamHandling::Encode(transcoder) = &mut copied.handling
                && filled.contains(&copied.from)
            {
                transcoder.begin_at(picture);
            }
        }
    }

    /// Has sound that begins before it is heard come back at its times, where the container has a way.
    /// `picture` is when the picture begins, in seconds.
    fn place_early_sound(&mut self, muxer: &mut Muxer, container: &Container, picture: f64) {
        for copied in &mut self.copied {
            let Some(facts) = self.reader.demuxer.stream(copied.from) else {
                continue;
            };
            let start = self.reader.beginning(copied.from).unwrap_or(0.0) + copied.delay;
            let (priming, begins) = match &copied.handling {
                StreamHandling::Encode(transcoder) => {
                    (transcoder.priming(), start.max(0.0) - transcoder.priming())
                }
                StreamHandling::Copy { .. } => (facts.priming, start.max(-facts.priming)),
            };
            if priming <= 0.0 {
                continue;
            }
            let source = (&self.reader.demuxer, copied.from);
            if let Some(early) = container.early_sound(source, &copied.handling, priming, (picture, begins)) {
                copied.delay += early.delay;
                if early.keeps_negative {
                    // The same option was accepted when it was tried.
                    let _ = muxer.set(KEEP_NEGATIVE.0, KEEP_NEGATIVE.1);
                }
            } else if let StreamHandling::Encode(transcoder) = &mut copied.handling {
                transcoder.overlay_priming();
            }
        }
    }

    /// Has sound that is encoded from long packets begin and end with the part that is read.
    fn cut_long_packets(&mut self, muxer: &Muxer) {
        for copied in &mut self.copied {
            let facts = self.reader.demuxer.stream(copied.from);
            let StreamHandling::Encode(transcoder) = &mut copied.handling else {
                continue;
            };
            if !facts.is_some_and(|facts| has_long_packets(&facts)) {
                continue;
            }
            if self
                .reader
                .beginning(copied.from)
                .is_some_and(|begins| begins < 0.0)
            {
                transcoder.begin_at(0.0);
            }
            // Containers of units need sound behind the end.
            if let Some(length) = self.reader.exact_length().filter(|_| !writes_units(muxer)) {
                transcoder.end_at(length);
            }
        }
    }

    /// Has sound that is encoded begin with the picture, at `picture` seconds.
    fn begin_encoded_sound(&mut self, picture: f64) {
        for copied in &mut self.copied {
            if let StreamHandling::Encode(transcoder) = &mut copied.handling {
                transcoder.begin_at(picture - copied.delay);
            }
        }
    }

    /// Has sound that is encoded begin on a tick of the container's clock, which is known once its head is
    /// written. To round the times of coarse clocks (WebM's milliseconds) would move the sound.
    pub(in crate::sink::video) fn begin_on_ticks(&mut self, muxer: &Muxer) {
        for copied in &mut self.copied {
            if let StreamHandling::Encode(transcoder) = &mut copied.handling {
                transcoder.begin_on_tick(muxer.time_base(copied.to), copied.delay);
            }
        }
    }

    /// Names sound that does not begin with the picture, at `picture` seconds, in a container that has both
    /// begin at once: copied sound is off by that, and of encoded sound the part before the picture is cut.
    fn report_moved_sound(&mut self, container: &Container, picture: f64) {
        let is_range = self.reader.demuxer.begins_later();
        let moved = self.copied.iter().filter_map(|copied| {
            let facts = self.reader.demuxer.stream(copied.from)?;
            if facts.medium != Medium::Audio {
                return None;
            }
            let begins = self.reader.beginning(copied.from)?;
            match copied.handling {
                StreamHandling::Copy { .. } => {
                    let off = begins - picture;
                    (off.abs() > TOO_SHORT_TO_HEAR).then(|| copied.moved(off, container))
                }
                StreamHandling::Encode(_) => {
                    // A range may begin within a picture, whose sound is not wanted.
                    let least = if is_range {
                        WITHIN_A_PICTURE
                    } else {
                        TOO_SHORT_TO_HEAR
                    };
                    let cut = picture - (begins + facts.priming).max(0.0);
                    (cut > least).then(|| copied.cut_head(cut, container))
                }
            }
        });
        self.losses.extend(moved.collect());
    }
}
