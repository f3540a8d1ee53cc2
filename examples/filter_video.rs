//! Sharpens a video, copies its sound and subtitles, and says which stage limited:
//!
//!     cargo run --release --example filter_video in.mp4 out.mp4

use framepipe::Chain;
use framepipe::engine::Engine;
use framepipe::engine::cpu::Cpu;
use framepipe::pipeline::{self, Job, Progress, Stop};
use framepipe::report::{Report, Task};
use framepipe::sink::AnySink;
use framepipe::sink::video::{VideoOptions, VideoSink};
use framepipe::source::video::{VideoSource, VideoSourceOptions};
use framepipe::source::{AnySource, Source};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Gives back what was measured.
pub fn filter(input: &Path, output: &Path) -> Result<Report, Box<dyn Error>> {
    let source = VideoSource::open(input, &VideoSourceOptions::default())?;
    let mut options = VideoOptions::new(output);
    options.copy_streams = true;
    let sink = VideoSink::create(source.info(), options)?;
    let engine = Cpu::new(Chain::parse("gaussian:sigma=0.8,unsharp:sigma=2:amount=0.7")?, 0)?;

    let task = Task {
        input: source.info().description.clone(),
        engine: engine.name().to_owned(),
        ..Task::default()
    };
    let job = Job::new(AnySource::stream(source), engine, AnySink::stream(sink));
    // `stop` could be asked by another thread to end early, and `progress` how far it is.
    let (stop, progress) = (Stop::new(), Progress::new());
    let outcome = pipeline::run(job, &stop, &progress)?;
    Ok(Report::new(task, &outcome.measurements, outcome.remarks))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: filter_video INPUT OUTPUT".into());
    };
    print!("{}", filter(&input, &output)?);
    Ok(())
}
