//! A log of the frames that a sink is given: when each is shown, and the hash of its samples.

use super::step::{self, Step};
use crate::frame::{ContentHash, Frame, content_hash};
use crate::sink::{AnySink, SinkError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What the log holds of a frame. Stored as a list of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub struct LoggedFrame {
    /// When it is shown, in ticks of the source's time base counted from the beginning of the input, also
    /// where a range of it is read.
    pub time: Option<i64>,
    /// How long it is shown, in the same ticks.
    pub duration: Option<i64>,
    /// What it shows.
    pub hash: ContentHash,
}

type Fields = (Option<i64>, Option<i64>, ContentHash);

impl From<Fields> for LoggedFrame {
    fn from((time, duration, hash): Fields) -> LoggedFrame {
        LoggedFrame { time, duration, hash }
    }
}

impl From<LoggedFrame> for Fields {
    fn from(frame: LoggedFrame) -> Fields {
        (frame.time, frame.duration, frame.hash)
    }
}

/// The frames that were written, by their numbers.
#[derive(Debug, Default)]
pub struct FrameLog(Mutex<BTreeMap<u64, LoggedFrame>>);

impl FrameLog {
    fn enter(&self, frame: &Frame) {
        let metadata = &frame.metadata;
        let logged = LoggedFrame {
            time: metadata.pts.map(|pts| pts + metadata.skipped.ticks),
            duration: metadata.duration,
            hash: content_hash(frame),
        };
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        frames.insert(frame.sequence, logged);
    }

    /// All of them in order; the log is empty then.
    pub fn take(&self) -> Vec<LoggedFrame> {
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *frames).into_values().collect()
    }
}

/// `sink` behind a log of its frames.
pub fn logging(sink: AnySink, log: Arc<FrameLog>) -> AnySink {
    step::around(Logging(log), sink)
}

struct Logging(Arc<FrameLog>);

impl Step for Logging {
    fn run(&self, frame: Frame) -> Result<Frame, SinkError> {
        self.0.enter(&frame);
        Ok(frame)
    }
}
