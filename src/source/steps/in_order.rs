//! Frames that could be read in any order, read one after another by one thread.

use crate::frame::{Frame, Remarks};
use crate::source::{AnySource, IndexedSource, Source, SourceError, StreamInfo, Supply};
use std::sync::Arc;

impl AnySource {
    /// The source as one that is read in order, whichever kind it is.
    pub fn in_order(self) -> Box<dyn Source> {
        match self {
            AnySource::Stream(source) => source,
            AnySource::Indexed(source) => Box::new(InOrder { source, next: 0 }),
        }
    }
}

struct InOrder {
    source: Arc<dyn IndexedSource>,
    next: u64,
}

impl Source for InOrder {
    fn info(&self) -> &StreamInfo {
        self.source.info()
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        if self.next >= self.source.len() {
            return Ok(None);
        }
        let mut frame = self.source.read(self.next, supply.take()?)?;
        frame.sequence = self.next;
        self.next += 1;
        Ok(Some(frame))
    }

    fn remarks(&mut self) -> Remarks {
        self.source.remarks()
    }
}
