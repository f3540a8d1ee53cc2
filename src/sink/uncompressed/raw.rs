//! Raw video: the bytes of each frame, planes in order, rows without padding, nothing else.

use super::byte_writer::ByteWriter;
use crate::frame::Frame;
use crate::sink::ledger::{Outcome, PlainLedger};
use crate::sink::{Flow, Rules, Sink, SinkError, Written};
use crate::source::StreamInfo;
use crate::wording::counted;
use crossbeam_channel::Receiver;
use std::path::Path;

/// What to do about facts that are lost.
const ADVICE: &str = "tell it to the program that reads the frames, or write a container such as .mkv";

struct Raw {
    writer: ByteWriter,
    ledger: PlainLedger,
    rules: Rules,
    rate: String,
    geometry: String,
}

/// Writes raw frames of any native format to a file, or to standard output for "-".
pub fn create(target: &Path, info: &StreamInfo, rules: Rules) -> Result<Box<dyn Sink>, SinkError> {
    let writer = ByteWriter::open(target, rules)?;
    let place = format!("{} (raw frames)", writer.label());
    let ledger = PlainLedger::new(place, ADVICE, rules, info);
    Ok(Box::new(Raw {
        ledger: ledger.map_err(|problem| SinkError::Unsupported {
            path: target.display().to_string(),
            problem,
        })?,
        rules,
        writer,
        rate: info
            .frame_rate
            .map_or_else(String::new, |r| format!(":{}/{}", r.num, r.den)),
        geometry: format!("{}x{}:{}", info.width, info.height, info.format),
    }))
}

impl Sink for Raw {
    fn row_alignment(&self) -> usize {
        1
    }

    fn watch(&mut self, stop: &Receiver<()>) {
        self.writer.watch(stop);
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.writer.bytes())
    }

    fn write(&mut self, mut frame: Frame) -> Result<Flow, SinkError> {
        // Samples and nothing else: only what everybody assumes needs no word.
        let seen = self.ledger.see(&mut frame, |_, _, _| Outcome::Lost);
        seen.map_err(|problem| SinkError::Unsupported {
            path: self.writer.label().to_owned(),
            problem,
        })?;
        if self.writer.frames() == 0 {
            let layout = frame.layout();
            self.geometry = format!("{}x{}:{}", layout.width(), layout.height(), layout.format());
        }
        self.writer.write_frame(&[], &frame)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        let frames = match self.rules.trial {
            true => "raw frames".to_owned(),
            false => counted(self.writer.frames(), "raw frame"),
        };
        let description = format!(
            "{frames} to {}, to be read as raw:{}{}",
            self.writer.label(),
            self.geometry,
            self.rate
        ) + &self.ledger.notes();
        self.writer.finish(description, self.ledger.sentences())
    }
}
