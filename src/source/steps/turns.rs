//! A watch for pictures that are shown turned: filters act on them as they are stored.

use crate::frame::{Buffer, Frame, Remarks, Turn};
use crate::source::{AnySource, IndexedSource, Source, SourceError, StreamInfo, Supply};
use std::sync::{Arc, OnceLock};

/// What is to be said of pictures that are shown turned, if anything.
pub type Saying = Box<dyn Fn(Turn) -> Option<String> + Send + Sync>;

/// `source` with a note at its end about the first of its frames that `saying` has a word for.
pub fn watched(source: AnySource, saying: Saying) -> AnySource {
    let watch = Watch {
        stream: Turn::of_blocks(&source.info().side_data),
        saying,
        note: OnceLock::new(),
    };
    match source {
        AnySource::Indexed(inner) => AnySource::indexed(WatchedFiles { inner, watch }),
        AnySource::Stream(inner) => AnySource::stream(WatchedStream { inner, watch }),
    }
}

struct Watch {
    /// The turn that the stream states, which comes before that of its frames.
    stream: Option<Turn>,
    saying: Saying,
    note: OnceLock<String>,
}

impl Watch {
    fn see(&self, frame: &Frame) {
        if self.note.get().is_some() {
            return;
        }
        let turn = self.stream.or_else(|| Turn::of_frame(&frame.metadata));
        if let Some(note) = turn.and_then(&self.saying) {
            // Another thread may have come first.
            let _ = self.note.set(note);
        }
    }

    fn with_note(&self, mut remarks: Remarks) -> Remarks {
        remarks.notes.extend(self.note.get().cloned());
        remarks
    }
}

struct WatchedFiles {
    inner: Arc<dyn IndexedSource>,
    watch: Watch,
}

impl IndexedSource for WatchedFiles {
    fn info(&self) -> &StreamInfo {
        self.inner.info()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn prepare(&self) -> Result<(), SourceError> {
        self.inner.prepare()
    }

    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        let frame = self.inner.read(index, buffer)?;
        self.watch.see(&frame);
        Ok(frame)
    }

    fn remarks(&self) -> Remarks {
        self.watch.with_note(self.inner.remarks())
    }
}

struct WatchedStream {
    inner: Box<dyn Source>,
    watch: Watch,
}

impl Source for WatchedStream {
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
        frame.iter().for_each(|frame| self.watch.see(frame));
        Ok(frame)
    }

    fn remarks(&mut self) -> Remarks {
        let remarks = self.inner.remarks();
        self.watch.with_note(remarks)
    }
}
