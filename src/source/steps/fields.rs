//! The two fields of interlaced pictures as two frames, one after the other.
//!
//! The even and the odd rows of an interlaced picture were taken at different times, and a mask of several
//! rows would mix them. As frames of half the height they are filtered separately, by any engine.
//! [`crate::sink::fields`] weaves them again.

use crate::frame::{FieldOrder, Frame, FramePool, Layout, Pageable, PixelFormat, Remarks};
use crate::source::{AnySource, Source, SourceError, StreamInfo, Supply};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pictures whose planes have no two fields of equally many rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "pictures of {height} rows in {format} have no two fields of whole rows in every plane; \
     their height must be a multiple of {multiple}"
)]
pub struct UnevenFields {
    height: usize,
    format: PixelFormat,
    multiple: usize,
}

/// Checks that each plane can be split into two fields.
pub fn check(format: PixelFormat, height: usize) -> Result<(), UnevenFields> {
    let log2 = format
        .planes()
        .iter()
        .map(|plane| plane.log2_y)
        .max()
        .unwrap_or(0);
    let multiple = 2 << log2;
    if height.is_multiple_of(multiple) {
        return Ok(());
    }
    Err(UnevenFields {
        height,
        format,
        multiple,
    })
}

/// A stream of the fields of `source`'s frames, the even rows of each before the odd ones.
pub fn split(source: AnySource) -> Result<AnySource, UnevenFields> {
    let whole = source.info().clone();
    check(whole.format, whole.height)?;
    let info = StreamInfo {
        height: whole.height / 2,
        brings_memory: false,
        pictures: 0,
        frames: whole.frames.map(|frames| 2 * frames),
        is_single: false,
        ..whole
    };
    let inner = source.in_order();
    Ok(AnySource::Stream(Box::new(Fields {
        // One more than the frame that is split, because a source may take the next buffer before it knows
        // that it has ended.
        pool: FramePool::new(2 + inner.held_buffers(), Arc::new(Pageable)),
        inner,
        info,
        split: None,
    })))
}

struct Fields {
    inner: Box<dyn Source>,
    info: StreamInfo,
    /// Whole frames lie here, so that the run's own buffers are of one size.
    pool: FramePool,
    /// The frame whose even rows have been given out.
    split: Option<Frame>,
}

/// Has no [`Source::inner`]: each frame is two, and those of the source lie in a pool of their own.
impl Source for Fields {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        if let Some(frame) = self.split.take() {
            return field(&frame, 1, supply).map(Some);
        }
        let whole = Supply {
            pool: self.pool.clone(),
            stop: supply.stop.clone(),
        };
        let Some(mut frame) = self.inner.next(&whole)? else {
            return Ok(None);
        };
        let mut even = field(&frame, 0, supply)?;
        even.decoded = frame.decoded.take();
        self.split = Some(frame);
        Ok(Some(even))
    }

    fn remarks(&mut self) -> Remarks {
        self.inner.remarks()
    }
}

/// Every second row of `frame`, from row `first` on.
fn field(frame: &Frame, first: usize, supply: &Supply) -> Result<Frame, SourceError> {
    let path = || {
        let file = frame.metadata.file.as_ref();
        file.map_or_else(
            || format!("frame {}", frame.sequence),
            |file| file.display().to_string(),
        )
    };
    let whole = frame.layout();
    check(whole.format(), whole.height()).map_err(|cause| SourceError::Invalid {
        path: path(),
        problem: format!("{cause} for --fields"),
    })?;
    let layout = Layout::new(whole.format(), whole.width(), whole.height() / 2, 64)
        .map_err(|cause| SourceError::Layout { path: path(), cause })?;
    let mut field = Frame::new(layout, supply.take()?)?;
    for (index, plane) in layout.planes().iter().enumerate() {
        for y in 0..plane.height {
            field
                .row_mut(index, y)
                .copy_from_slice(frame.row(index, 2 * y + first));
        }
    }
    field.born = frame.born;
    field.metadata = frame.metadata.clone();
    Ok(field)
}

/// `source`, which sets `seen` if one of its frames says that it is interlaced.
pub fn watched(source: AnySource, seen: Arc<AtomicBool>) -> AnySource {
    match source {
        AnySource::Stream(inner) => AnySource::Stream(Box::new(Watched { inner, seen })),
        // Image files do not say.
        indexed @ AnySource::Indexed(_) => indexed,
    }
}

struct Watched {
    inner: Box<dyn Source>,
    seen: Arc<AtomicBool>,
}

impl Source for Watched {
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
        let next = self.inner.next(supply)?;
        if next
            .as_ref()
            .is_some_and(|f| f.metadata.field_order != FieldOrder::Progressive)
        {
            self.seen.store(true, Ordering::Relaxed);
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_whose_fields_differ_are_refused() {
        for (format, height, multiple) in [
            ("yuv420p", 576, None),
            ("yuv420p", 486, Some(4)),
            ("yuv422p10le", 486, None),
            ("yuv422p", 487, Some(2)),
            ("yuv410p", 484, Some(8)),
            ("rgb24", 2, None),
        ] {
            let found = check(PixelFormat::from_name(format).unwrap(), height);
            assert_eq!(found.err().map(|e| e.multiple), multiple, "{format} {height}");
        }
    }
}
