//! Puts a pixel format conversion before a sink that cannot hold the format that was filtered.
//!
//! The conversion runs in the sink's own threads, and the sink's last word says what was converted.

use super::step::{self, Step};
use super::{AnySink, SinkError, Written};
use crate::convert::{Converter, colour_after};
use crate::frame::{Buffer, Colour, Frame, FramePool, Pageable, PixelFormat};
use crate::source::StreamInfo;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Chooses the format that a frame is written in; the same format where nothing needs to be done.
pub type Choose = Arc<dyn Fn(PixelFormat) -> PixelFormat + Send + Sync>;

/// The stream's facts as they are behind the conversion, for the sink to be made from.
pub fn info_after(info: &StreamInfo, choose: &Choose) -> StreamInfo {
    let to = choose(info.format);
    let mut after = info.clone();
    if to != info.format {
        after.colour = colour_after(info.colour, info.format, to, info.height);
        after.format = to;
    }
    after
}

/// `sink` behind a conversion; `sink` itself if the stream's frames are all of one kind and need none. If it
/// is `strict`, a frame whose alpha would be lost ends the run.
pub fn converting(sink: AnySink, path: String, info: &StreamInfo, choose: Choose, strict: bool) -> AnySink {
    if info.uniform && choose(info.format) == info.format {
        return sink;
    }
    let (alignment, buffers) = match &sink {
        AnySink::Stream(inner) => (inner.row_alignment(), 1 + inner.held_buffers()),
        AnySink::Indexed(_) => (1, 0),
    };
    step::behind(Conversion::new(path, choose, strict, alignment, buffers), sink)
}

/// What a converter was made for.
type Kind = (PixelFormat, Colour, usize, usize);

struct Conversion {
    path: String,
    choose: Choose,
    strict: bool,
    /// Frames whose alpha the output does not hold.
    without_alpha: AtomicU64,
    alignment: usize,
    pool: FramePool,
    /// Idle converters; one a thread at most, since most frames of a run need the same conversion.
    idle: Mutex<Vec<(Kind, Converter)>>,
    /// "rgb24 to yuv444p", each once.
    done: Mutex<BTreeSet<String>>,
}

impl Conversion {
    fn new(path: String, choose: Choose, strict: bool, alignment: usize, buffers: usize) -> Conversion {
        Conversion {
            path,
            choose,
            strict,
            without_alpha: AtomicU64::new(0),
            alignment,
            pool: FramePool::new(buffers, Arc::new(Pageable)),
            idle: Mutex::default(),
            done: Mutex::default(),
        }
    }

    /// An idle converter of this kind, or a new one; those of other kinds are given up, so that they do not
    /// pile up.
    fn converter(&self, kind: Kind, to: PixelFormat) -> Result<Converter, SinkError> {
        let idle = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|(other, _)| *other == kind);
            idle.pop()
        };
        match idle {
            Some((_, converter)) => Ok(converter),
            None => {
                let (from, colour, width, height) = kind;
                Converter::new((from, colour), to, width, height).map_err(|error| self.refused(&error))
            }
        }
    }

    fn refused(&self, error: &dyn std::error::Error) -> SinkError {
        SinkError::Unsupported {
            path: self.path.clone(),
            problem: error.to_string(),
        }
    }
}

impl Step for Conversion {
    const COPIES: bool = true;

    fn run(&self, frame: Frame) -> Result<Frame, SinkError> {
        let (from, to) = (frame.format(), (self.choose)(frame.format()));
        if from == to {
            return Ok(frame);
        }
        if from.has_alpha() && !to.has_alpha() && !frame.is_opaque() {
            if self.strict {
                return Err(SinkError::Unsupported {
                    path: self.path.clone(),
                    problem: format!(
                        "frame {} has alpha, which {to} does not hold; without --strict it is written \
                         without",
                        frame.sequence
                    ),
                });
            }
            self.without_alpha.fetch_add(1, Ordering::Relaxed);
        }
        let (width, height) = (frame.layout().width(), frame.layout().height());
        let kind = (from, frame.metadata.colour, width, height);
        let mut converter = self.converter(kind, to)?;
        let buffer = self
            .pool
            .try_take()
            .unwrap_or_else(|| Buffer::unpooled(Box::new(Vec::new())));
        let converted = converter
            .convert_into(&frame, buffer, self.alignment)
            .map_err(|error| self.refused(&error))?;
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((kind, converter));
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked up first, because making the text for each frame would be waste once it is there.
        if done.len() < 16 {
            done.insert(format!("{from} to {to}"));
        }
        Ok(converted)
    }

    fn noted(&self, mut written: Written) -> Written {
        let frames = match self.without_alpha.load(Ordering::Relaxed) {
            0 => None,
            1 => Some("1 frame".to_owned()),
            n => Some(format!("{n} frames")),
        };
        written.remarks.warnings.extend(frames.map(|frames| {
            format!(
                "the alpha of {frames} is not kept: {} holds none; PNG files and .mov keep it",
                self.path
            )
        }));
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if !done.is_empty() {
            let list: Vec<&str> = done.iter().map(String::as_str).collect();
            written
                .description
                .push_str(&format!(", converted from {}", list.join(" and ")));
        }
        written
    }
}
