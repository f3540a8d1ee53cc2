//! Times the CPU engine on whole frames.
//!
//! Each line on standard input is a job of `key=value` words separated by tabs; each job is answered by one line of JSON on standard output,
//! so that a script can take turns between this program and others in one run:
//!
//!     filter=gaussian:size=7    format=gray  size=1920x1080  threads=1  algorithm=auto  simd=avx2  border=mirror  frames=20
//!     pictures=4                pictures and results that take turns, where those in flight are fewer (one more result than that): what is not in a cache
//!     input=FILE  output=FILE   a raw picture to filter instead of noise, and where to put the result
//!
//! Without jobs (a terminal, or an empty input) it prints a table of common masks. Times are milliseconds a frame: the median and the least.

#![allow(clippy::unwrap_used)]

use framepipe::engine::Engine;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::filter::{Algorithm, Chain, Planes};
use framepipe::frame::{Frame, FramePool, Layout, PixelFormat};
use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Frames of one time where the engine is kept full, as a multiple of those in flight.
const STRETCH: usize = 4;

/// How long frames are filtered at least before any is counted.
const WARM_UP: Duration = Duration::from_millis(3);

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Job {
    chain: Chain,
    format: PixelFormat,
    size: (usize, usize),
    threads: usize,
    set: InstructionSet,
    frames: usize,
    pictures: usize,
    input: Option<String>,
    output: Option<String>,
}

impl Job {
    fn parse(line: &str) -> Outcome<Job> {
        let words = line.split('\t').filter(|w| !w.is_empty());
        let keys: HashMap<&str, &str> = words
            .map(|w| w.split_once('=').ok_or(format!("'{w}' is no key=value")))
            .collect::<Result<_, _>>()?;
        let get = |key: &str, default: &'static str| keys.get(key).copied().unwrap_or(default).to_owned();
        let size = get("size", "1920x1080");
        let (width, height) = size.split_once('x').ok_or("size is no WxH")?;
        let set = match get("simd", "auto").as_str() {
            "auto" => InstructionSet::detect(),
            word => word.parse()?,
        };
        Ok(Job {
            chain: Chain {
                filters: vec![get("filter", "box:size=3").parse()?],
                border: get("border", "mirror").parse()?,
                planes: Planes::All,
                algorithm: get("algorithm", "auto").parse()?,
            },
            format: get("format", "gray").parse()?,
            size: (width.parse()?, height.parse()?),
            threads: get("threads", "1").parse()?,
            set,
            frames: get("frames", "20").parse()?,
            pictures: get("pictures", "1").parse()?,
            input: keys.get("input").map(|&p| p.to_owned()),
            output: keys.get("output").map(|&p| p.to_owned()),
        })
    }

    fn picture(&self) -> Outcome<Vec<u8>> {
        if let Some(path) = &self.input {
            return Ok(std::fs::read(path)?);
        }
        let layout = Layout::new(self.format, self.size.0, self.size.1, 1)?;
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as u16
        };
        let bytes = if self.format.bytes_per_sample() == 1 {
            (0..layout.size()).map(|_| noise() as u8).collect()
        } else {
            let max = self.format.max_value() as u16;
            let words = (0..layout.size() / 2).map(|_| (noise() & max) << self.format.shift());
            words.flat_map(u16::to_le_bytes).collect()
        };
        Ok(bytes)
    }

    /// Fills `frame` with the picture.
    fn fill(picture: &[u8], frame: &mut Frame) -> Outcome<()> {
        let layout = *frame.layout();
        let tight = Layout::new(layout.format(), layout.width(), layout.height(), 1)?;
        if picture.len() != tight.size() {
            return Err(format!("the picture has {} bytes, not {}", picture.len(), tight.size()).into());
        }
        for (index, plane) in tight.planes().iter().enumerate() {
            for y in 0..plane.height {
                let start = plane.offset + y * plane.stride;
                let row = &picture[start..start + tight.row_bytes(index)];
                frame.row_mut(index, y).copy_from_slice(row);
            }
        }
        Ok(())
    }

    /// Milliseconds a frame, sorted: of single frames where the engine works on one at a time, else means over stretches in which it is kept full.
    fn run(&self) -> Outcome<Vec<f64>> {
        let picture = self.picture()?;
        let mut engine = Cpu::with_instruction_set(self.chain.clone(), self.threads, self.set)?;
        // As a pipeline holds frames: rows aligned to 64 bytes.
        let layout = Layout::new(self.format, self.size.0, self.size.1, 64)?;
        let depth = engine.depth();
        let pictures = self.pictures.max(depth);
        let inputs = FramePool::new(pictures, engine.input_allocator());
        let outputs = FramePool::new(pictures + 1, engine.output_allocator());
        outputs.prepare(layout.size())?;
        let mut filled = Vec::new();
        for _ in 0..pictures {
            let mut frame = Frame::new(layout, inputs.try_take().ok_or("no input is free")?)?;
            Job::fill(&picture, &mut frame)?;
            filled.push(frame);
        }
        // Back into the pool, which hands them out as they are: the engine only reads them.
        drop(filled);
        let mut in_flight = 0;
        let mut next = |engine: &mut Cpu| -> Outcome<Frame> {
            while in_flight < depth {
                let input = Frame::new(layout, inputs.try_take().ok_or("no input is free")?)?;
                engine.submit(input, outputs.try_take().ok_or("no output is free")?, 64)?;
                in_flight += 1;
            }
            in_flight -= 1;
            Ok(engine.collect()?.ok_or("the engine gave nothing back")?)
        };
        // More frames than are counted, so that memory is there and warm, and that cores which slept run at their clock.
        let begin = Instant::now();
        let mut rounds = 0;
        while rounds <= pictures || begin.elapsed() < WARM_UP {
            next(&mut engine)?;
            rounds += 1;
        }
        let stretch = if depth == 1 { 1 } else { STRETCH * depth };
        let mut times = Vec::new();
        let mut last = Vec::new();
        while times.len() * stretch < self.frames {
            let begin = Instant::now();
            for _ in 1..stretch {
                next(&mut engine)?;
            }
            let result = next(&mut engine)?;
            times.push(begin.elapsed().as_secs_f64() * 1e3 / stretch as f64);
            if times.len() * stretch >= self.frames && self.output.is_some() {
                for (index, plane) in result.layout().planes().iter().enumerate() {
                    (0..plane.height).for_each(|y| last.extend_from_slice(result.row(index, y)));
                }
            }
        }
        if let Some(path) = &self.output {
            std::fs::write(path, last)?;
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    }
}

fn answer(line: &str) -> serde_json::Value {
    match Job::parse(line).and_then(|job| job.run()) {
        Ok(times) => serde_json::json!({ "median": times[times.len() / 2], "least": times[0] }),
        Err(error) => serde_json::json!({ "error": error.to_string() }),
    }
}

fn table() -> Outcome<()> {
    println!(
        "{:<40} {:>9} {:>9} {:>9}",
        "ms a frame, 1920x1080", "portable", "best", "2 threads"
    );
    for format in ["gray", "rgb24", "gray10le", "gray16le"] {
        for filter in [
            "mask:rows=1 2 3;-4 5 6;7 8 -9:divisor=sum",
            "gaussian:size=3",
            "gaussian:size=5",
            "gaussian:size=7",
            "gaussian:size=15",
            "gaussian:size=25",
            "box:size=15",
        ] {
            for algorithm in [Algorithm::Direct, Algorithm::Separable] {
                let time = |threads: usize, simd: &str, frames: usize| -> Outcome<f64> {
                    let line = format!(
                        "filter={filter}\tformat={format}\talgorithm={algorithm}\tthreads={threads}\tsimd={simd}\tframes={frames}"
                    );
                    let times = Job::parse(&line)?.run()?;
                    Ok(times[times.len() / 2])
                };
                // A mask that is not separable has no such row.
                let Ok(best) = time(1, "auto", 20) else {
                    continue;
                };
                println!(
                    "{:<40} {:>9.2} {:>9.2} {:>9.2}",
                    format!("{format} {} {algorithm}", &filter[..filter.len().min(18)]),
                    time(1, "portable", 2)?,
                    best,
                    time(2, "auto", 20)?
                );
            }
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let stdin = std::io::stdin();
    let mut jobs = 0;
    // `cargo bench` hands over its own flags; nothing here takes any.
    if !stdin.is_terminal() {
        for line in stdin.lock().lines() {
            let line = line?;
            if !line.trim().is_empty() {
                println!("{}", answer(&line));
                std::io::stdout().flush()?;
                jobs += 1;
            }
        }
    }
    if jobs == 0 {
        table()?;
    }
    Ok(())
}
