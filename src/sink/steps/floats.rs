//! A watch for results that are infinite or no numbers where all samples of the input are numbers.
//!
//! They were too large for the format that frames are filtered in. What the input has of them is counted
//! where it comes in (`source::floats`), which marks its frames.

use super::step::{self, Step};
use crate::frame::Frame;
use crate::sink::{AnySink, SinkError, Written};
use crate::source::StreamInfo;
use crate::wording::counted;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `sink` behind it, if frames as `info` describes them may have floating-point samples; `path` is for
/// messages. `parts` frames make one of the output. If it is `strict`, the first such frame ends the run.
pub fn watched(sink: AnySink, path: String, info: &StreamInfo, parts: u64, strict: bool) -> AnySink {
    if info.uniform && !info.format.is_float() {
        return sink;
    }
    step::around(Overflow::new(path, parts, strict), sink)
}

struct Overflow {
    path: String,
    parts: u64,
    strict: bool,
    samples: AtomicU64,
    frames: AtomicU64,
    /// The number of the first such frame.
    first: AtomicU64,
    /// Some of them have samples of 16 bits.
    is_half: AtomicBool,
}

/// Why there are such samples.
fn reason(is_half: bool) -> &'static str {
    match is_half {
        true => "results beyond 65504, the most that 16 bits hold; f32 formats hold more",
        false => "results beyond 3.4e38, the most that 32 bits hold",
    }
}

impl Overflow {
    fn new(path: String, parts: u64, strict: bool) -> Overflow {
        Overflow {
            path,
            parts,
            strict,
            samples: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            first: AtomicU64::new(u64::MAX),
            is_half: AtomicBool::new(false),
        }
    }

    fn warning(&self) -> Option<String> {
        let samples = self.samples.load(Ordering::Relaxed);
        (samples > 0).then(|| {
            format!(
                "{} in {} for {}, first in frame {}, became infinite or no numbers (NaN): {}",
                counted(samples, "sample"),
                counted(self.frames.load(Ordering::Relaxed), "frame"),
                self.path,
                self.first.load(Ordering::Relaxed),
                reason(self.is_half.load(Ordering::Relaxed))
            )
        })
    }
}

impl Step for Overflow {
    fn run(&self, frame: Frame) -> Result<Frame, SinkError> {
        let metadata = &frame.metadata;
        if metadata.has_no_numbers || metadata.stands_in {
            return Ok(frame);
        }
        let count = frame.no_numbers();
        if count > 0 {
            let number = frame.sequence / self.parts.max(1);
            let is_half = frame.format().depth() == 16;
            if self.strict {
                return Err(SinkError::Unsupported {
                    path: self.path.clone(),
                    problem: format!(
                        "{} of frame {number} became infinite or no numbers (NaN): {}; without --strict it \
                         is written so",
                        counted(count, "sample"),
                        reason(is_half)
                    ),
                });
            }
            self.samples.fetch_add(count, Ordering::Relaxed);
            self.frames.fetch_add(1, Ordering::Relaxed);
            self.first.fetch_min(number, Ordering::Relaxed);
            self.is_half.fetch_or(is_half, Ordering::Relaxed);
        }
        Ok(frame)
    }

    fn noted(&self, mut written: Written) -> Written {
        written.remarks.warn(self.warning());
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, Layout, PixelFormat};

    fn frame(format: PixelFormat, values: &[f32]) -> Frame {
        let channels = format.planes()[0].channels.len();
        let layout = Layout::new(format, values.len() / channels, 1, 64).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
        // Padding counts for nothing.
        frame.bytes_mut().fill(0xff);
        for (index, &value) in values.iter().enumerate() {
            frame.set_float(0, index / channels, 0, index % channels, value);
        }
        frame
    }

    #[test]
    fn results_of_numbers_that_are_none_are_counted() {
        let halves = PixelFormat::float_channels(16, 5).unwrap();
        let values = [
            65504.0,
            65519.0,
            -65520.0,
            1e9,
            f32::NAN,
            0.0,
            -0.0,
            1e-30,
            1.0,
            5.0,
        ];
        let watch = Overflow::new("out".to_owned(), 2, false);
        let mut first = frame(halves, &values);
        first.sequence = 5;
        watch.run(first).unwrap();
        // What came in so, and what is not there.
        let mut spread = frame(halves, &values);
        spread.metadata.has_no_numbers = true;
        watch.run(spread).unwrap();
        let mut absent = frame(halves, &values);
        absent.metadata.stands_in = true;
        watch.run(absent).unwrap();
        let mut second = frame(PixelFormat::GRAYF32, &[f32::MAX, f32::INFINITY]);
        second.sequence = 6;
        watch.run(second).unwrap();
        let said = watch.warning().unwrap();
        let counts = "4 samples in 2 frames for out, first in frame 2, became infinite or no numbers";
        assert!(said.starts_with(counts), "{said}");
        let strict = Overflow::new("out".to_owned(), 1, true);
        strict.run(frame(halves, &[65504.0; 5])).unwrap();
        assert!(strict.run(frame(halves, &values)).is_err());
    }
}
