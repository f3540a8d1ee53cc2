//! Puts a pixel format conversion before a sink that cannot hold the format that was filtered.
//!
//! The conversion runs in the sink's own threads, and the sink's last word says what was converted.

use super::step::{self, Step};
use crate::frame::{Buffer, Colour, Frame, FramePool, Pageable, PixelFormat};
use crate::media::convert::{Converter, CutSamples, colour_after};
use crate::sink::{AnySink, SinkError, Written};
use crate::source::StreamInfo;
use crate::wording::{and_list, counted};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Chooses the format that a frame is written in, by its own and by the image file that it comes from, if
/// there is one; the same format where nothing needs to be done.
pub type Choose = Arc<dyn Fn(PixelFormat, Option<&Path>) -> PixelFormat + Send + Sync>;

/// The stream's facts as they are behind the conversion, for the sink to be made from.
pub fn info_after(info: &StreamInfo, choose: &Choose) -> StreamInfo {
    let to = choose(info.format, None);
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
    if info.uniform && choose(info.format, None) == info.format {
        return sink;
    }
    let (alignment, buffers) = match &sink {
        AnySink::Stream(inner) => (inner.row_alignment(), 1 + inner.held_buffers()),
        AnySink::Indexed(_) => (1, 0),
    };
    step::around(Conversion::new(path, choose, strict, alignment, buffers), sink)
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
    /// What became of floating-point samples that integers were made of.
    rounded: Mutex<Rounded>,
    /// Samples that became infinite.
    beyond_half: AtomicU64,
    /// Pixels whose light is under an alpha of 0.
    unseen: AtomicU64,
}

/// Floating-point frames that became integers.
#[derive(Default)]
struct Rounded {
    frames: u64,
    /// The format of the first.
    to: Option<PixelFormat>,
    cut: CutSamples,
    is_linear: bool,
}

/// H.273's number of linear light.
const LINEAR: u8 = 8;

impl Rounded {
    fn sentence(&self, path: &str) -> Option<String> {
        let to = self.to?;
        let bits = to.depth();
        let frames = match self.frames {
            1 => "1 frame".to_owned(),
            n => format!("{n} frames"),
        };
        let cut = self.cut.words().map_or_else(
            || ", and none was outside".to_owned(),
            |words| format!(", and cut: {words}"),
        );
        let light = match self.is_linear {
            true => "; linear light looks dark where a display's curve is expected, and none is applied here",
            false => "",
        };
        Some(format!(
            "the floating-point samples of {frames} became integers of {bits} bits for {path}, 1.0 as \
             white{cut}{light}; OpenEXR (.exr), TIFF and PFM keep them"
        ))
    }
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
            rounded: Mutex::default(),
            beyond_half: AtomicU64::new(0),
            unseen: AtomicU64::new(0),
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
        let from = frame.format();
        let file = frame.metadata.file.as_ref().map(|file| file.as_path());
        let to = (self.choose)(from, file);
        if from == to {
            return Ok(frame);
        }
        let (width, height) = (frame.layout().width(), frame.layout().height());
        let kind = (from, frame.metadata.colour, width, height);
        // Before what a run without --strict would only warn of.
        let mut converter = self.converter(kind, to)?;
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
        let is_rounded = from.is_float() && !to.is_float();
        if is_rounded && self.strict {
            return Err(SinkError::Unsupported {
                path: self.path.clone(),
                problem: format!(
                    "frame {} has floating-point samples ({from}), which would become integers ({to}); \
                     without --strict it is written so, and OpenEXR (.exr), TIFF and PFM keep them",
                    frame.sequence
                ),
            });
        }
        let buffer = self
            .pool
            .try_take()
            .unwrap_or_else(|| Buffer::unpooled(Box::new(Vec::new())));
        let converted = converter
            .convert_into(&frame, buffer, self.alignment)
            .map_err(|error| self.refused(&error))?;
        let cut = converter.take_cut();
        self.beyond_half.fetch_add(cut.beyond_half, Ordering::Relaxed);
        self.unseen.fetch_add(cut.unseen, Ordering::Relaxed);
        if is_rounded {
            let mut rounded = self.rounded.lock().unwrap_or_else(PoisonError::into_inner);
            rounded.frames += 1;
            rounded.to.get_or_insert(to);
            rounded.cut += cut;
            rounded.is_linear |= frame.metadata.colour.transfer == LINEAR;
        }
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
        written.remarks.warn(frames.map(|frames| {
            format!(
                "the alpha of {frames} is not kept: what is written to {} has none; PNG files and .mov keep \
                 it, in a --pixel-format with alpha",
                self.path
            )
        }));
        let rounded = self.rounded.lock().unwrap_or_else(PoisonError::into_inner);
        written.remarks.warn(rounded.sentence(&self.path));
        let beyond_half = self.beyond_half.load(Ordering::Relaxed);
        if beyond_half > 0 {
            written.remarks.warn([format!(
                "{beyond_half} samples for {} are beyond 65504, the most that 16 bits of floating point \
                 hold, and became infinite; f32 formats hold them",
                self.path
            )]);
        }
        let unseen = self.unseen.load(Ordering::Relaxed);
        if unseen > 0 {
            written.remarks.warn([format!(
                "the light of {} with alpha 0 is not seen in {}, where colours are not multiplied by alpha; \
                 OpenEXR (.exr) and TIFF keep it, and --background lays it over a colour",
                counted(unseen, "pixel"),
                self.path
            )]);
        }
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if !done.is_empty() {
            let list: Vec<&str> = done.iter().map(String::as_str).collect();
            written
                .description
                .push_str(&format!(", converted from {}", and_list(&list)));
        }
        written
    }
}
