//! What is found to be wrong with an input, or lost of it: counted or kept as a sentence until the end, or an
//! error at once if the source is strict.
//!
//! `damage`: what cannot be read or decoded. `continuity`: packets that a
//! transport stream lacks, and damage beside the pictures. `steps`: from picture to picture; `holes`: whether
//! some are missing in the middle. `end`: an input that was cut off; `tail`: in the middle of a picture.
//! `piped_annotations`: what pictures from a pipe say beside their pixels; `additions`: what Matroska
//! stores there. `succession`: pictures that go on in another stream.

mod additions;
mod continuity;
mod damage;
mod end;
mod holes;
mod piped_annotations;
mod steps;
mod succession;
mod tail;

pub(super) use steps::Steps;

use super::file::InputFile;
use super::{ReadState, VideoSource};
use crate::frame::{Remarks, Warning, too_large};
use crate::media::ffmpeg::AvError;
use crate::source::{SourceError, late_start_sentence};
use crate::wording::{counted, listed};
use continuity::Continuity;
use damage::{Damage, jumps_sentence};
use holes::{SoundGaps, Suspicion};
use piped_annotations::PipedAnnotations;
use std::collections::BTreeSet;
use succession::Succession;
use tail::Tail;

/// Files that are remembered.
const MOST_NAMED: usize = 4096;

/// What was found so far.
#[derive(Default)]
pub(super) struct Findings {
    /// What is found ends the run.
    pub(super) strict: bool,
    pub(super) damage: Damage,
    /// From picture to picture.
    pub(super) steps: Steps,
    pub(super) continuity: Continuity,
    succession: Succession,
    sound: SoundGaps,
    pub(super) tail: Tail,
    /// What shows that the input was cut off.
    pub(super) cut: Option<String>,
    /// What the decoder does not give of the stream.
    lost: Option<String>,
    /// What pictures from a pipe say beside their pixels.
    pub(super) annotations: PipedAnnotations,
    /// What Matroska stores beside pictures and is not read, in words.
    additions: BTreeSet<String>,
    /// Files that the input names and that could not be opened.
    passed_over: Vec<String>,
    /// What the conversion to a native format loses.
    inexact: Option<String>,
    /// Packets that were skipped because FFmpeg does not implement what they need.
    unimplemented: u64,
    /// Metadata left out because it exceeds `METADATA_LIMIT`, in words.
    too_large: BTreeSet<String>,
}

/// A sentence about files that were passed over.
fn passed_over_sentence(files: Vec<String>) -> Option<String> {
    let what = match files.len() {
        0 => return None,
        1 => "file that it names cannot be opened, and what it holds is missing",
        _ => "files that it names cannot be opened, and what they hold is missing",
    };
    Some(format!("{} {what}: {}", files.len(), listed(files)))
}

/// A sentence about packets that were skipped because FFmpeg has no code for them.
fn unimplemented_sentence(packets: u64) -> Option<String> {
    let need = match packets {
        0 => return None,
        1 => "needs",
        _ => "need",
    };
    Some(format!(
        "{} {need} what this FFmpeg does not implement, and {} skipped; --strict would fail",
        counted(packets, "packet"),
        if packets == 1 { "is" } else { "are" }
    ))
}

impl Findings {
    pub(super) fn new(strict: bool) -> Findings {
        Findings {
            strict,
            ..Findings::default()
        }
    }

    /// Forgets what belongs to pictures so far: others come. `patched` is what the decoder said of them.
    pub(super) fn begin_anew(&mut self, patched: u64) {
        (self.steps, self.sound) = (Steps::default(), SoundGaps::default());
        self.damage.begin_anew(patched);
    }

    /// Notes what the decoder does not give, or fails if the source is strict.
    pub(super) fn lose(&mut self, file: &InputFile, lost: String) -> Result<(), SourceError> {
        let lost = match self.lost.take() {
            Some(before) => format!("{before}; {lost}"),
            None => lost,
        };
        if self.strict {
            return Err(file.invalid(format!("{lost}; without --strict it is read so")));
        }
        self.lost = Some(lost);
        Ok(())
    }

    /// Notes what the conversion to a native format loses, or fails if the source is strict.
    pub(super) fn note_inexact(&mut self, file: &InputFile, inexact: String) -> Result<(), SourceError> {
        if self.strict {
            return Err(file.invalid(format!("{inexact}; without --strict it is read so")));
        }
        self.inexact = Some(inexact);
        Ok(())
    }

    /// Notes what is left out because it is too large, or fails if the source is strict.
    pub(super) fn leave_out(&mut self, file: &InputFile, words: Vec<String>) -> Result<(), SourceError> {
        if self.strict && !words.is_empty() {
            return Err(file.invalid(format!(
                "{}; without --strict it is read without",
                too_large(&words.join(", "))
            )));
        }
        self.too_large.extend(words);
        Ok(())
    }

    /// Notes a file that the input names and that cannot be opened, or fails if the source is strict.
    pub(super) fn pass_over(&mut self, file: &InputFile, name: String) -> Result<(), SourceError> {
        if self.strict {
            return Err(file.invalid(format!(
                "it names {name}, which cannot be opened; without --strict it is passed over"
            )));
        }
        if self.passed_over.len() < MOST_NAMED {
            self.passed_over.push(name);
        }
        Ok(())
    }

    /// Counts damage at `place`, or fails if the source is strict.
    pub(super) fn damaged_at(
        &mut self,
        file: &InputFile,
        what: &str,
        place: &str,
    ) -> Result<(), SourceError> {
        if self.strict {
            return Err(file.invalid(format!(
                "{what} {place}; without --strict the damage is concealed and counted"
            )));
        }
        tracing::debug!(path = %file.name, "{what} {place}");
        self.damage.packets += 1;
        Ok(())
    }

    /// Counts a packet at `place` for which FFmpeg has no code, or fails if the source is strict.
    fn unimplemented_at(&mut self, file: &InputFile, place: &str) -> Result<(), SourceError> {
        if self.strict {
            return Err(file.invalid(format!(
                "a packet {place} needs what this FFmpeg does not implement; without --strict it is skipped"
            )));
        }
        self.unimplemented += 1;
        Ok(())
    }
}

impl VideoSource {
    /// Counts damage, or fails if the source is strict.
    pub(super) fn damaged(&mut self, what: &str) -> Result<(), SourceError> {
        let place = self.place();
        self.findings.damaged_at(&self.file, what, &place)
    }

    /// Counts a failure as damage of the input, unless it is the machine that lacks something.
    pub(super) fn failed(&mut self, what: &str, e: AvError) -> Result<(), SourceError> {
        if e.shortage().is_some() {
            return Err(self.file.lacking(e));
        }
        if e.is_unimplemented() {
            let place = self.place();
            return self.findings.unimplemented_at(&self.file, &place);
        }
        self.damaged(&format!("{what} ({e})"))
    }

    /// Counts a packet that the decoder refused.
    pub(super) fn refused(&mut self, e: AvError) -> Result<(), SourceError> {
        self.findings.damage.note_refused();
        self.failed("a packet cannot be decoded", e)
    }

    /// Where the input is now, for an error's sentence.
    pub(super) fn place(&self) -> String {
        let packet = &self.input.packet;
        let base = match packet.stream() == self.input.stream {
            true => Some(self.info.time_base),
            false => self.input.demuxer.time_base(packet.stream()),
        };
        match packet.pts().or_else(|| packet.dts()).zip(base) {
            Some((at, base)) => format!(
                "at {:.3} s (after {})",
                at as f64 * base.to_f64(),
                counted(self.maker.made, "frame")
            ),
            None => format!("after {}", counted(self.maker.made, "frame")),
        }
    }

    /// Counts no packet as damaged so far: those of a still are whole, and what follows them in its file is
    /// no part of it.
    #[cfg(feature = "images")]
    pub(in crate::source) fn disregard_corrupt_packets(&mut self) {
        self.findings.damage.packets = 0;
    }

    /// Takes the remarks out, without the input's name.
    pub(in crate::source) fn take_remarks(&mut self) -> Remarks {
        let hole = self.hole();
        let cut = self
            .findings
            .cut
            .take()
            .map(|cut| format!("{cut}; the input is incomplete, and so is the output"));
        let head = self.missing_head(self.input.state == ReadState::Ended);
        let annotations = self.annotations_sentence();
        let words: Vec<String> = std::mem::take(&mut self.findings.too_large).into_iter().collect();
        let signs = [
            self.findings.lost.take(),
            annotations,
            additions::sentence(&std::mem::take(&mut self.findings.additions)),
            self.findings.inexact.take(),
            passed_over_sentence(std::mem::take(&mut self.findings.passed_over)),
            (!words.is_empty()).then(|| too_large(&words.join(", "))),
            head,
            unimplemented_sentence(std::mem::take(&mut self.findings.unimplemented)),
        ];
        let concealed = self.findings.damage.concealed();
        let excess = self.maker.excess.iter();
        let excess = excess.flat_map(|excess| excess.sentence(self.info.format));
        let demuxer = &self.input.demuxer;
        let late_start = self.info.late_start.filter(|_| !demuxer.begins_anywhere());
        Remarks {
            notes: late_start
                .map(late_start_sentence)
                .into_iter()
                .chain(jumps_sentence(demuxer.jumps()))
                .chain(hole.as_ref().and_then(Suspicion::note))
                .chain(self.skip.note())
                .collect(),
            warnings: (signs.into_iter().flatten().map(Warning::from))
                .chain(concealed.map(|found| Warning::concealed("", found)))
                .chain(hole.as_ref().and_then(Suspicion::loss))
                .chain(cut.map(Warning::from))
                .chain(excess.map(Warning::from))
                .collect(),
        }
    }
}
