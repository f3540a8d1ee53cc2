//! Frames from a source and to a sink of one's own: a dot that falls is blurred, and looked for again.
//!
//!     cargo run --example own_ends

use framepipe::engine::cpu::Cpu;
use framepipe::frame::{Frame, Layout, Rational};
use framepipe::pipeline::{self, Job, Progress, Stop};
use framepipe::sink::{AnySink, Flow, Sink, SinkError, Written};
use framepipe::source::{AnySource, Source, SourceError, StreamInfo, Supply};
use framepipe::{Chain, PixelFormat};
use std::error::Error;
use std::sync::mpsc::{Sender, channel};

const SIZE: usize = 32;

struct FallingDot {
    info: StreamInfo,
    next: usize,
}

impl Source for FallingDot {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        if self.next == SIZE {
            return Ok(None);
        }
        let layout = Layout::new(PixelFormat::GRAY, SIZE, SIZE, 64).map_err(SourceError::other)?;
        // Waits until a buffer is free; its memory may be page-locked, if the engine is a card.
        let mut frame = Frame::new(layout, supply.take()?)?;
        frame.bytes_mut().fill(0);
        frame.row_mut(0, self.next)[SIZE / 2] = 255;
        self.next += 1;
        Ok(Some(frame))
    }
}

/// Sends on where each frame is brightest: row and column.
struct Finder(Sender<(usize, usize)>);

impl Sink for Finder {
    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        let pixels = (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (y, x)));
        let place = pixels
            .max_by_key(|&(y, x)| frame.row(0, y)[x])
            .unwrap_or_default();
        // Nobody may be listening; then nothing needs to be made either.
        Ok(self.0.send(place).map_or(Flow::Closed, |()| Flow::More))
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        Ok(Written::default())
    }
}

/// Where the dot was found in each frame.
pub fn follow() -> Result<Vec<(usize, usize)>, Box<dyn Error>> {
    let info = StreamInfo::new(PixelFormat::GRAY, SIZE, SIZE).at_rate(Rational { num: 25, den: 1 });
    let source = AnySource::stream(FallingDot { info, next: 0 });
    let (found, places) = channel();
    let engine = Cpu::new(Chain::parse("gaussian:sigma=1.5")?, 2)?;
    let job = Job::new(source, engine, AnySink::stream(Finder(found)));
    pipeline::run(job, &Stop::new(), &Progress::new())?;
    Ok(places.iter().collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    for (frame, (y, x)) in follow()?.into_iter().enumerate() {
        println!("frame {frame}: row {y}, column {x}");
    }
    Ok(())
}
