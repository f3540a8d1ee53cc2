//! Whether pictures are missing in the middle of a stream, where times alone leave a hole.
//!
//! A picture that is held for long looks the same, as containers other than MP4 do not say how long one
//! lasts. So there must be another sign that something was lost: damage, a count in the header, or sound that
//! breaks off at the same place.

use super::steps::{Hole, missing_in, missing_sentence, still_sentence};
use crate::frame::{Warning, WarningKind};
use crate::media::ffmpeg::Medium;
use crate::source::video::known::extent::fragments::stated_durations;
use crate::source::video::{ReadState, VideoSource};
use std::collections::{BTreeMap, BTreeSet};

/// Seconds that sound may lie before or behind its picture in a file, and be lost with another one.
const INTERLEAVED: f64 = 1.0;

/// Seconds between packets of sound that are no gap, for containers' rounding, and the most gaps that are
/// kept.
const ROUNDING: f64 = 0.01;
const MOST_GAPS: usize = 4096;

/// Where sound breaks off, in all streams of it.
#[derive(Default)]
pub(super) struct SoundGaps {
    /// When each stream's sound ended so far, and how long its last packet was; `None` for other streams.
    ends: BTreeMap<usize, Option<(f64, f64)>>,
    /// From when to when there is none, in seconds.
    gaps: Vec<(f64, f64)>,
}

impl SoundGaps {
    /// True if most of `step` seconds is missing somewhere beside the time `at`.
    fn is_missing(&self, at: f64, step: f64) -> bool {
        self.gaps.iter().any(|&(from, to)| {
            let is_beside = from < at + step + INTERLEAVED && to > at - INTERLEAVED;
            is_beside && to - from > step / 2.0
        })
    }
}

/// Holes that are seen, in words.
pub(super) enum Suspicion {
    Loss(String),
    Note(String),
}

impl Suspicion {
    /// The warning, if pictures are missing.
    pub(super) fn loss(&self) -> Option<Warning> {
        match self {
            Suspicion::Loss(sentence) => Some(Warning {
                text: sentence.clone(),
                kind: WarningKind::FramesMissing,
            }),
            Suspicion::Note(_) => None,
        }
    }

    /// The sentence, if nothing shows that pictures are missing.
    pub(super) fn note(&self) -> Option<String> {
        match self {
            Suspicion::Note(sentence) => Some(sentence.clone()),
            Suspicion::Loss(_) => None,
        }
    }
}

impl VideoSource {
    /// Pictures that are missing in the middle, or may be.
    pub(super) fn hole(&self) -> Option<Suspicion> {
        let holes = self.holes();
        let base = self.info.time_base;
        if holes.is_empty() {
            return None;
        }
        if self.is_short_of_packets() || self.sound_breaks_off(&holes) || self.decoder_lost(&holes) {
            return missing_sentence(&holes, base).map(Suspicion::Loss);
        }
        still_sentence(&holes, base).map(Suspicion::Note)
    }

    /// Holes between pictures. Where a list says of each packet how long it lasts, there are none between
    /// those that are there; AVI has a chunk without bytes for each frame that repeats the one before; and
    /// where times are those of decoding, they do not show it.
    fn holes(&self) -> Vec<Hole> {
        let (demuxer, stream) = (&self.input.demuxer, self.input.stream);
        // MXF notes when reordered pictures are shown, or not: FFmpeg then takes the order of decoding.
        let reorders = || demuxer.stream(stream).is_some_and(|facts| facts.reordered > 0);
        let is_timed_by_decoding =
            demuxer.format_name() == "mxf" && !self.findings.steps.goes_back() && reorders();
        let is_listed = demuxer.listed_packets(stream).is_some() || demuxer.format_name() == "avi";
        if is_listed || is_timed_by_decoding {
            return Vec::new();
        }
        let steps = &self.findings.steps;
        let found = steps.holes(&BTreeSet::new());
        match demuxer.stream(stream) {
            // Fragments say how long their pictures last, which FFmpeg keeps to itself.
            Some(facts) if demuxer.format_name().contains("mp4") && !found.is_empty() => {
                let stated = match self.file.path.is_file() {
                    true => stated_durations(&self.file.path, facts.id),
                    // Of a pipe they are not there any more; the first picture is where they matter.
                    false => steps.first().into_iter().collect(),
                };
                steps.holes(&stated)
            }
            _ => found,
        }
    }

    /// True if anything else shows that packets are missing: they are damaged, the input was cut off, or its
    /// header counts more.
    fn is_short_of_packets(&self) -> bool {
        let (damage, demuxer) = (&self.findings.damage, &self.input.demuxer);
        let counted = demuxer.stream(self.input.stream).map_or(0, |facts| facts.frames);
        let is_all_read = self.input.state == ReadState::Ended && !self.skip.has_sought();
        let is_counted = is_all_read && u64::try_from(counted).is_ok_and(|counted| damage.read < counted);
        // In fragments of MP4 no time is without a picture.
        demuxer.format_name().contains("mp4")
            || is_counted
            || damage.is_damaged()
            || self.findings.cut.is_some()
    }

    /// Pictures that are missing at the beginning, as a sentence. `at_end` is true at the end of the stream.
    pub(super) fn missing_head(&self, at_end: bool) -> Option<String> {
        if at_end && self.decoder_lost(&self.holes()) {
            return None;
        }
        let damage = &self.findings.damage;
        damage.missing_head(&self.decoder.codec_name(), at_end)
    }

    /// True if the decoder gave no picture for as many packets as are missing in `holes`: where two streams
    /// are joined and the second one has another head, FFmpeg's of MPEG-2 drops the last of the first.
    fn decoder_lost(&self, holes: &[Hole]) -> bool {
        let missing = missing_in(holes);
        let is_over = self.input.state == ReadState::Ended;
        let undecoded = || self.findings.damage.undecoded(&self.decoder.codec_name());
        missing > 0 && is_over && undecoded() == Some(missing)
    }

    /// True if sound is missing where one of `holes` is.
    fn sound_breaks_off(&self, holes: &[Hole]) -> bool {
        let tick = self.info.time_base.to_f64();
        let mut spans = (holes.iter()).map(|hole| (hole.at as f64 * tick, hole.step as f64 * tick));
        spans.any(|(at, step)| self.findings.sound.is_missing(at, step))
    }

    /// Notes how far the sound in a packet of `stream` goes, which begins at `at` and lasts for `lasts`
    /// seconds, 0 if that is not stated. Other streams' packets are passed over.
    pub(in crate::source::video) fn note_sound(&mut self, stream: usize, at: f64, lasts: f64) {
        let demuxer = &self.input.demuxer;
        let is_sound = || demuxer.stream(stream).map(|facts| facts.medium) == Some(Medium::Audio);
        let ends = &mut self.findings.sound.ends;
        let known = ends
            .entry(stream)
            .or_insert_with(|| is_sound().then_some((at, lasts)));
        let Some((end, usual)) = known else {
            return;
        };
        let lasts = match lasts > 0.0 {
            true => lasts,
            false if *usual > 0.0 => *usual,
            false => at - *end,
        };
        let gap = (*end, at);
        (*end, *usual) = (end.max(at + lasts), lasts);
        if gap.1 - gap.0 > ROUNDING && self.findings.sound.gaps.len() < MOST_GAPS {
            self.findings.sound.gaps.push(gap);
        }
    }
}
