//! The end: the encoder's last packets, the rest of the other streams, and what turned out to be lost.

use super::VideoSink;
use super::encoding::Running;
use super::settings::alpha;
use crate::frame::{Remarks, Stopped};
use crate::media::ffmpeg::log;
use crate::sink::constant_rate::irregular;
use crate::sink::{SinkError, Written};
use crate::waiting::is_closed;
use crate::wording::counted;

impl VideoSink {
    /// Writes what comes behind the last frame, and puts the file in its place.
    pub(super) fn end(mut self) -> Result<Written, SinkError> {
        if self.is_closed {
            return Ok(self.cut_short());
        }
        let Some(mut running) = self.output.running.take() else {
            return Err(self.unsupported("no frame was written, and a video needs one".to_owned()));
        };
        let shown = running.timing.shown(&self.info);
        let muxer = &mut self.output.muxer;
        running.encoder.stop = self.stop.take();
        let mut result = running.encode(muxer, None);
        if result.is_err() && running.encoder.stop.as_ref().is_some_and(is_closed) {
            return Err(Stopped.into());
        }
        if result.is_ok()
            && let Some(passthrough) = &mut running.passthrough
        {
            let rest = passthrough.copy_rest(muxer, running.timing.end, shown);
            result = rest.map_err(|e| ("a packet of a copied stream cannot be written", e));
        }
        if result.is_ok() {
            let timed = running.timing.end_last_frame(muxer);
            result = timed.map_err(|e| ("the last frame's time cannot be set", e));
        }
        if result.is_ok() {
            log::forget();
        }
        let ended = match result {
            Ok(()) => muxer.end().map_err(|e| ("the file cannot be completed", e)),
            Err(e) => Err(e),
        };
        if ended.is_err() && self.output.muxer.lost_its_reader() {
            self.output.running = Some(running);
            return Ok(self.cut_short());
        }
        let bytes = ended.map_err(|(what, e)| self.failure(what, e))?;
        let undecodable = self.check_kept(&running.staged, &mut running.ledger);
        let mut losses: Vec<String> = undecodable.into_iter().collect();
        losses.append(&mut running.ledger.sentences());
        self.check_alpha(&running)?;
        losses.extend(self.unlike_given(&running));
        losses.extend(running.timing.is_lost.then(|| irregular(self.container.name())));
        losses.extend(
            running
                .timing
                .pacing
                .sentences(&self.kind.name(), &self.output.muxer.name()),
        );
        self.warnings.append(&mut losses);
        let copied = running.passthrough.as_mut();
        let copied = copied.map_or_else(String::new, |passthrough| self.account_of_streams(passthrough));
        let remarks = Remarks::warnings(std::mem::take(&mut self.warnings));
        if let Some(problem) = remarks.refusal().filter(|_| self.options.strict) {
            return Err(self.unsupported(problem));
        }
        let description = format!("{}{copied}", self.description(&running));
        self.file.commit()?;
        Ok(Written {
            description,
            bytes,
            remarks,
            closed_early: false,
        })
    }

    /// Says that the encoder left pictures out, or orders them in a way that the container does not note.
    fn unlike_given(&self, running: &Running) -> Vec<String> {
        let (encoder, container) = (self.kind.name(), self.container.name());
        let mut sentences = Vec::new();
        let empty = running.encoder.empty();
        if empty > 0 {
            sentences.push(format!(
                "{encoder} leaves out {empty} of {}, since they repeat the one before: players go on showing \
                 that one, and the file holds the others alone",
                counted(running.timing.frames, "frame"),
            ));
        }
        if running.encoder.reorders() && self.is_kept_in_order() {
            sentences.push(format!(
                "{container} does not say when the frames of {} are shown that {encoder} reorders, and \
                 readers show them at other times; --encoder-option bf=0 keeps them in order",
                self.kind.codec_name()
            ));
        }
        sentences
    }

    /// What there is to say of a pipe whose reader has gone.
    fn cut_short(mut self) -> Written {
        let mut description = self.name.clone();
        if let Some(running) = self.output.running.take() {
            description = self.description(&running);
            self.warnings.append(&mut running.ledger.sentences());
        }
        Written {
            description,
            bytes: None,
            remarks: Remarks::warnings(std::mem::take(&mut self.warnings)),
            closed_early: true,
        }
    }

    /// What a whole run would write, as far as the first frame tells. Nothing of it stays.
    pub(super) fn end_trial(mut self) -> Result<Written, SinkError> {
        let Some(mut running) = self.output.running.take() else {
            return Err(self.unsupported("no frame was written, and a video needs one".to_owned()));
        };
        let undecodable = running.staged.undecodable;
        self.warnings
            .extend(undecodable.then(|| self.undecodable(&running.staged)));
        self.warnings.append(&mut running.ledger.sentences());
        self.warnings.extend(running.alpha.warnings());
        let mut description = self.description(&running);
        if let Some(passthrough) = &mut running.passthrough {
            self.warnings.append(&mut passthrough.take_warnings());
            description.push_str(&passthrough.summary(self.container.name()));
        }
        let remarks = Remarks::warnings(std::mem::take(&mut self.warnings));
        match remarks.refusal().filter(|_| self.options.strict) {
            Some(problem) => Err(self.unsupported(problem)),
            None => Ok(Written {
                description,
                remarks,
                ..Written::default()
            }),
        }
    }

    /// Tells what became of alpha.
    fn check_alpha(&mut self, running: &Running) -> Result<(), SinkError> {
        self.warnings.extend(running.alpha.warnings());
        if self.file.path() == self.options.path {
            return Ok(());
        }
        if let Some(lost) = running.alpha.missing(self.file.path(), running.stream) {
            if self.options.strict {
                return Err(alpha::refused(&self.name, &lost));
            }
            self.warnings.push(lost);
        }
        Ok(())
    }

    /// What was written, for the summary.
    fn description(&self, running: &Running) -> String {
        let choice = &running.staged.choice;
        let mut converted = choice
            .note
            .as_ref()
            .map_or_else(String::new, |n| format!(", {n}"));
        let reduced = running.reduced();
        if reduced > 0 {
            converted.push_str(&format!(", {} reduced to 256 colours", counted(reduced, "frame")));
        }
        if running.pictures.associated() > 0 {
            converted.push_str(", colours multiplied by their alpha, as OpenEXR has them");
        }
        if running.pictures.are_on_card() {
            converted.push_str(", read on the card");
        }
        format!(
            "{}, {}{}, {} in {}{converted}{}",
            self.name,
            self.kind.name(),
            running.encoder.settings,
            choice.format.name(),
            self.output.muxer.name(),
            running.ledger.notes(),
        )
    }
}
