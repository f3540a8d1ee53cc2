//! What became of the streams: the end of the summary's line, and a sentence for each loss.

use super::Passthrough;
use super::copied::Copied;
use super::texts;
use crate::sink::video::container::StreamHandling;
use crate::sink::video::container::kept::{self, Carried, Finished};
use crate::wording::counted;

/// What could not be carried over, a sentence each.
#[derive(Default)]
pub(super) struct Losses {
    warnings: Vec<String>,
    /// Those of them that a strict run does not allow, and that are known before anything is written.
    refused: Vec<String>,
}

impl Losses {
    /// Notes what cannot be carried over, known before anything is written, and what to do against it.
    pub(super) fn add(&mut self, sentence: String, advice: &str) {
        self.refused.push(format!("{sentence}; {advice}"));
        self.warnings.push(sentence);
    }

    /// Notes what cannot be carried over, known before anything is written.
    pub(super) fn extend(&mut self, sentences: Vec<String>) {
        self.warnings.extend(sentences.iter().cloned());
        self.refused.extend(sentences);
    }

    /// Notes what turned out while the output was written.
    pub(super) fn warn(&mut self, sentence: String) {
        self.warnings.push(sentence);
    }
}

impl Passthrough {
    /// What a strict run does not allow, if there is any, known before anything is written.
    pub(in crate::sink::video) fn refusal(&self) -> Option<String> {
        let refused = &self.losses.refused;
        (!refused.is_empty()).then(|| refused.join("; "))
    }

    /// What could not be carried over, a sentence each.
    pub(in crate::sink::video) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.losses.warnings)
    }

    /// Texts, marks and chapters that the finished file, which `open` opens, does not have, a sentence each.
    pub(in crate::sink::video) fn not_kept(
        &self,
        open: impl Fn() -> Option<Finished>,
        container: &str,
    ) -> Vec<String> {
        let others = self.copied.iter().map(|copied| Carried {
            from: copied.from,
            label: copied.label.clone(),
            is_filtered: false,
        });
        let mut carried: Vec<Carried> = others.collect();
        if let Some(facts) = self.reader.demuxer.stream(self.reader.filtered) {
            let place = carried.partition_point(|stream| stream.from < self.reader.filtered);
            let video = Carried {
                from: self.reader.filtered,
                label: facts.label(self.reader.filtered),
                is_filtered: true,
            };
            carried.insert(place, video);
        }
        // It has a sentence of its own.
        let ignored: &[&str] = if texts::stale_timecode(&self.reader).is_empty() {
            &[]
        } else {
            &["timecode"]
        };
        let mut lost = self.without_packets(&open, container);
        lost.extend(kept::losses(
            &self.reader.demuxer,
            (&carried, ignored),
            open,
            container,
        ));
        let streams = carried.iter().map(|stream| stream.from);
        lost.extend(self.reader.unread_of_matroska(streams));
        lost
    }

    /// Word of streams that hold nothing, if the finished file lacks some.
    fn without_packets(&self, open: impl Fn() -> Option<Finished>, container: &str) -> Vec<String> {
        let is_empty = |copied: &&Copied| copied.last_end.is_none() && copied.refusal.is_none();
        let empty: Vec<&Copied> = self.copied.iter().filter(is_empty).collect();
        if empty.is_empty() || open().is_none_or(|file| file.streams() > self.copied.len()) {
            return Vec::new();
        }
        let sentence =
            |copied: &&Copied| format!("{} holds nothing, and {container} leaves it out", copied.label);
        empty.iter().map(sentence).collect()
    }

    /// What was done, as the end of the summary's line: ", 2 streams copied, stream 1: aac to libopus, which
    /// webm holds".
    pub(in crate::sink::video) fn summary(&self, container: &str) -> String {
        let is_held = |c: &&Copied| c.refusal.is_none() || !c.is_given_up() && c.last_end.is_some();
        let held = || self.copied.iter().filter(is_held);
        let mut summary = match held()
            .filter(|c| matches!(c.handling, StreamHandling::Copy { .. }))
            .count()
        {
            0 => String::new(),
            1 => ", 1 stream copied".to_owned(),
            n => format!(", {n} streams copied"),
        };
        for copied in held() {
            if let StreamHandling::Encode(transcoder) = &copied.handling {
                let codec = self
                    .reader
                    .demuxer
                    .stream(copied.from)
                    .map_or_else(String::new, |facts| facts.codec);
                summary += &format!(
                    ", stream {}: {codec} to {}, which {container} holds",
                    copied.from,
                    transcoder.encoder_name()
                );
            }
        }
        if !self.unmarked.is_empty() {
            let streams: Vec<String> = self.unmarked.iter().map(usize::to_string).collect();
            summary += &format!(", marked as default in place of stream {}", streams.join(", "));
        }
        summary
    }

    /// Packets that could not be copied, a sentence for each stream.
    pub(in crate::sink::video) fn lost(&self, container: &str) -> Vec<String> {
        let late = self.copied.iter().filter_map(Copied::late_sentence);
        let joins = self.copied.iter().filter_map(|copied| {
            let join = self.reader.join(copied.from).filter(|join| !join.is_reported)?;
            join.sentence(&copied.label)
        });
        let gaps = self.copied.iter().filter_map(|copied| {
            let gaps = copied.gaps.as_ref()?;
            gaps.sentence(&copied.label, container)
        });
        let changes = self.copied.iter().flat_map(|copied| {
            let changes = copied.changes.iter();
            let sentences = changes.flat_map(move |changes| changes.sentences(&copied.label, container));
            sentences.chain(copied.change_of_form())
        });
        let cut_tails = self.copied.iter().filter_map(|copied| copied.cut_tail.clone());
        late.chain(self.reader.unforeseen())
            .chain(joins)
            .chain(gaps)
            .chain(changes)
            .chain(cut_tails)
            .collect()
    }

    /// Tells which streams lack packets that could not be written, and what was wrong with sound that
    /// was decoded.
    pub(super) fn report_refusals(&mut self) {
        for copied in &self.copied {
            if let Some(refusal) = &copied.refusal {
                self.losses.warn(refusal.sentence(&copied.label));
            }
            let damaged = match &copied.handling {
                StreamHandling::Encode(transcoder) => transcoder.damaged(),
                StreamHandling::Copy { .. } => 0,
            };
            if damaged > 0 {
                self.losses.warn(format!(
                    "{} of {} could not be decoded, and silence stands for {}",
                    counted(damaged, "packet"),
                    copied.label,
                    if damaged == 1 { "it" } else { "them" }
                ));
            }
        }
    }
}
