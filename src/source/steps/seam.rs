//! The frames on either side of the cuts around a range, as the decoder gave them.
//!
//! ```text
//!   part 3       ... f f f | n           n  the first frame behind the end: decoded, and not kept
//!   part 4                 | f f f f ... f  the first frame kept
//! ```
//!
//! Where what one part saw behind its end is what the next one began with, no frame is missing between them
//! and none is there twice.

use crate::frame::{ContentHash, Frame, content_hash};
use crate::source::{Source, SourceError, StreamInfo, Supply};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// A frame beside a cut. Stored as a list of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, ContentHash)", into = "(i64, ContentHash)")]
pub struct SeamFrame {
    /// When it is shown, in ticks of the source's time base.
    pub time: i64,
    /// The hash of its samples before any filter.
    pub hash: ContentHash,
}

impl From<(i64, ContentHash)> for SeamFrame {
    fn from((time, hash): (i64, ContentHash)) -> SeamFrame {
        SeamFrame { time, hash }
    }
}

impl From<SeamFrame> for (i64, ContentHash) {
    fn from(frame: SeamFrame) -> (i64, ContentHash) {
        (frame.time, frame.hash)
    }
}

/// What was seen of the cuts around a range; nothing where frames are known by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seams {
    /// The first frame of the range.
    pub first: Option<SeamFrame>,
    /// The first frame behind it.
    pub next: Option<SeamFrame>,
    /// True if the input ended.
    pub ended: bool,
}

/// Where they are noted while the source is read.
pub type SeamLog = Arc<Mutex<Seams>>;

/// A source that notes the first frames at tick `start` or later, and at `end` or later.
pub(super) struct SeamWatch {
    inner: Box<dyn Source>,
    start: Option<i64>,
    end: Option<i64>,
    log: SeamLog,
}

impl SeamWatch {
    pub(in crate::source) fn new(
        inner: Box<dyn Source>,
        start: Option<i64>,
        end: Option<i64>,
        log: SeamLog,
    ) -> SeamWatch {
        SeamWatch {
            inner,
            start,
            end,
            log,
        }
    }

    fn note(&self, frame: Option<&Frame>) {
        let mut seams = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(frame) = frame else {
            seams.ended = true;
            return;
        };
        let Some(time) = frame.metadata.pts else { return };
        let seen = || SeamFrame {
            time,
            hash: content_hash(frame),
        };
        if self.end.is_some_and(|end| time >= end) {
            if seams.next.is_none() {
                seams.next = Some(seen());
            }
        } else if seams.first.is_none() && self.start.is_none_or(|start| time >= start) {
            seams.first = Some(seen());
        }
    }
}

impl Source for SeamWatch {
    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Source> {
        Some(&mut *self.inner)
    }

    fn info(&self) -> &StreamInfo {
        self.inner.info()
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        let frame = self.inner.next(supply)?;
        self.note(frame.as_ref());
        Ok(frame)
    }
}
