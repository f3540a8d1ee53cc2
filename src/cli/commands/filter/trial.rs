//! A dry run's input: the first frame of a source, or its two fields, and then a stop, as of a user who ends
//! the run there.

use framepipe::frame::{Buffer, Frame, Remarks};
use framepipe::pipeline::Stop;
use framepipe::source::{AnySource, IndexedSource, Source, SourceError, StreamInfo, Supply};
use std::sync::Arc;

/// The first `frames` frames of `source`, behind which `stop` ends the run.
pub(super) fn first(source: AnySource, frames: u64, stop: &Stop) -> AnySource {
    match source {
        AnySource::Stream(inner) => AnySource::stream(First {
            inner,
            left: frames,
            stop: stop.clone(),
        }),
        AnySource::Indexed(inner) => AnySource::indexed(FirstIndexed {
            inner,
            frames,
            stop: stop.clone(),
        }),
    }
}

struct First {
    inner: Box<dyn Source>,
    left: u64,
    stop: Stop,
}

impl Source for First {
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
        if self.left == 0 {
            self.stop.finish();
            return Ok(None);
        }
        self.left -= 1;
        self.inner.next(supply)
    }
}

struct FirstIndexed {
    inner: Arc<dyn IndexedSource>,
    frames: u64,
    stop: Stop,
}

impl IndexedSource for FirstIndexed {
    fn info(&self) -> &StreamInfo {
        self.inner.info()
    }

    fn len(&self) -> u64 {
        self.inner.len().min(self.frames)
    }

    fn prepare(&self) -> Result<(), SourceError> {
        self.inner.prepare()
    }

    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        let frame = self.inner.read(index, buffer)?;
        if index + 1 == self.frames {
            self.stop.finish();
        }
        Ok(frame)
    }

    fn remarks(&self) -> Remarks {
        self.inner.remarks()
    }
}
