//! Lays frames with alpha over a colour before they reach a sink.

use super::step::{self, Step};
use crate::frame::{ColourModel, Frame, PixelFormat};
use crate::media::convert::flatten::{Background, flat_format, flatten};
use crate::sink::{AnySink, SinkError, Written};
use crate::source::StreamInfo;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The stream's facts as they are once frames are laid over a colour.
pub fn info_after(info: &StreamInfo) -> StreamInfo {
    let to = flat_format(info.format);
    let mut after = info.clone();
    if to != info.format {
        after.colour = crate::media::convert::colour_after(info.colour, info.format, to, info.height);
        after.format = to;
    }
    after
}

/// `sink` behind it; `path` is for messages.
pub fn flattening(sink: AnySink, path: String, background: Background) -> AnySink {
    let has_met_alpha = AtomicBool::new(false);
    step::around(
        Flattening {
            path,
            background,
            has_met_alpha,
        },
        sink,
    )
}

/// Says of a format, and of the file that a frame comes from, whether the output holds it but for alpha.
pub type HoldsOpaque = Box<dyn Fn(PixelFormat, Option<&Path>) -> bool + Send + Sync>;

/// `sink` behind it: opaque frames that the sink `holds` but for their alpha come without it. Others stay as
/// they are, for the sink to judge.
pub fn opaque(sink: AnySink, path: String, holds: HoldsOpaque) -> AnySink {
    step::around(Opaque { path, holds }, sink)
}

struct Opaque {
    path: String,
    holds: HoldsOpaque,
}

impl Step for Opaque {
    fn run(&self, frame: Frame) -> Result<Frame, SinkError> {
        let file = frame.metadata.file.as_ref().map(|file| file.as_path());
        if !(self.holds)(frame.format(), file) || !frame.is_opaque() {
            return Ok(frame);
        }
        // Of any colour, since nothing of it is seen.
        flatten(frame, Background([0; 3])).map_err(|e| SinkError::Unsupported {
            path: self.path.clone(),
            problem: e.to_string(),
        })
    }
}

/// True if the frame's channels are not one colour picture, and alpha is among them.
fn has_unnamed_alpha(frame: &Frame) -> bool {
    #[cfg(feature = "images")]
    let has_alpha = frame.metadata.exr.as_ref().is_some_and(|part| part.has_alpha());
    #[cfg(not(feature = "images"))]
    let has_alpha = false;
    frame.format().model() == ColourModel::Data && has_alpha
}

struct Flattening {
    path: String,
    background: Background,
    has_met_alpha: AtomicBool,
}

impl Step for Flattening {
    fn run(&self, frame: Frame) -> Result<Frame, SinkError> {
        if has_unnamed_alpha(&frame) {
            return Err(SinkError::Unsupported {
                path: self.path.clone(),
                problem: format!(
                    "frame {} has alpha as one of the channels of {}, which is not laid over a colour; leave \
                     --background out, or take the other channels out of the file",
                    frame.sequence,
                    frame.format()
                ),
            });
        }
        if frame.format().has_alpha() {
            self.has_met_alpha.store(true, Ordering::Relaxed);
        }
        flatten(frame, self.background).map_err(|e| SinkError::Unsupported {
            path: self.path.clone(),
            problem: e.to_string(),
        })
    }

    fn noted(&self, mut written: Written) -> Written {
        let [red, green, blue] = self.background.0;
        if self.has_met_alpha.load(Ordering::Relaxed) {
            written.description += &format!(", alpha laid over #{red:02x}{green:02x}{blue:02x}");
        }
        written
    }
}
