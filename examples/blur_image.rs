//! Blurs an image file, or a folder of them, and keeps what the files say beside their pixels:
//!
//!     cargo run --release --example blur_image in.png out.png

use framepipe::Chain;
use framepipe::engine::cpu::Cpu;
use framepipe::pipeline::{self, Job, Progress, Stop};
use framepipe::sink::images::ImageOptions;
use framepipe::sink::{self, AnySink};
use framepipe::source::images::ImageSourceOptions;
use framepipe::source::{self, AnySource, IndexedSource};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Gives back a line that says what was written.
pub fn blur(input: &Path, output: &Path) -> Result<String, Box<dyn Error>> {
    let files = source::images::open(input, &ImageSourceOptions::default())?;
    let mut options = ImageOptions::default();
    // Names in a folder follow those of the input.
    options.sources = Some(files.names().clone());
    let sink = sink::images::create(output, files.info(), &options)?;
    let engine = Cpu::new(Chain::parse("gaussian:sigma=3")?, 0)?;

    let job = Job::new(AnySource::indexed(files), engine, AnySink::Indexed(sink));
    let outcome = pipeline::run(job, &Stop::new(), &Progress::new())?;
    for warning in &outcome.remarks.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(outcome.written.description)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: blur_image INPUT OUTPUT".into());
    };
    println!("{}", blur(&input, &output)?);
    Ok(())
}
