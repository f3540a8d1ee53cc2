//! Times the CPU engine on whole frames, cold and warm, beside a plain copy of them.
//!
//! Each line on standard input is a job of `key=value` words separated by tabs; each job is answered by one
//! line of JSON on standard output, so that a script can take turns between this program and others in one
//! run:
//!
//! ```text
//! filter=gaussian:size=7  format=gray  size=1920x1080  threads=1  algorithm=auto  simd=avx2  border=mirror
//! frames=20             frames that are timed at least
//! turns=both            cold: pictures and results in turn, together four times the last-level cache;
//!                       warm: as few as can be; both; or a number of pictures
//! cache=32              MiB of that cache, where it is not what the system says
//! input=FILE  output=FILE   a raw picture to filter instead of noise, and where to put the result
//! ```
//!
//! The answer has a key for each of the turns that were requested, with times in milliseconds a frame (the
//! median and the least), and beside `cold` that of a `copy`, and `copies`: cold as a multiple of it.
//!
//! Without jobs (a terminal, or an empty input) it prints a table of common masks.

#![allow(clippy::unwrap_used)]

use framepipe::engine::Engine;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::verify::fill_with_noise;
use framepipe::filter::{Chain, Planes};
use framepipe::frame::{Allocator, Buffer, Frame, FramePool, Layout, Pageable, PixelFormat};
use framepipe::program::bench::{Effort, Spread, cold_bytes, last_level_cache, time_copies};
use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Frames of one time where the engine is kept full, as a multiple of those in flight.
const STRETCH: usize = 4;

/// How long frames are filtered at least before any is counted.
const WARM_UP: Duration = Duration::from_millis(3);

/// Copies that are timed at least.
const COPIES: usize = 20;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Which pictures take turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turns {
    Cold,
    Warm,
    Both,
    Pictures(usize),
}

impl std::str::FromStr for Turns {
    type Err = std::num::ParseIntError;

    fn from_str(word: &str) -> Result<Turns, Self::Err> {
        Ok(match word {
            "cold" => Turns::Cold,
            "warm" => Turns::Warm,
            "both" => Turns::Both,
            number => Turns::Pictures(number.parse()?),
        })
    }
}

struct Job {
    chain: Chain,
    format: PixelFormat,
    size: (usize, usize),
    threads: usize,
    set: InstructionSet,
    frames: usize,
    turns: Turns,
    /// Bytes that cold pictures and results have together.
    cold: u64,
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
                alpha: Default::default(),
            },
            format: get("format", "gray").parse()?,
            size: (width.parse()?, height.parse()?),
            threads: get("threads", "1").parse()?,
            set,
            frames: get("frames", "20").parse()?,
            turns: get("turns", "both").parse()?,
            cold: cold_bytes(match get("cache", "").as_str() {
                "" => last_level_cache(),
                mib => Some(mib.parse::<u64>()? << 20),
            }),
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
        let bytes = if self.format.is_float() {
            let mut frame = Frame::new(layout, Buffer::unpooled(Pageable.allocate(layout.size())?))?;
            fill_with_noise(&mut frame, 1);
            frame.bytes().to_vec()
        } else if self.format.bytes_per_sample() == 1 {
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

    /// The layout of frames as a pipeline holds them: rows aligned to 64 bytes.
    fn layout(&self) -> Outcome<Layout> {
        Ok(Layout::new(self.format, self.size.0, self.size.1, 64)?)
    }

    /// What is requested.
    fn answer(&self) -> Outcome<serde_json::Value> {
        let picture = self.picture()?;
        let mut answer = serde_json::Map::new();
        let mut put = |name: &str, times: Spread| {
            answer.insert(
                name.to_owned(),
                serde_json::json!({ "median": times.median, "least": times.min }),
            );
        };
        if let Turns::Pictures(count) = self.turns {
            put("pictures", self.run(&picture, count)?);
        }
        if matches!(self.turns, Turns::Warm | Turns::Both) {
            put("warm", self.run(&picture, 1)?);
        }
        if matches!(self.turns, Turns::Cold | Turns::Both) {
            let both = 2 * self.layout()?.size() as u64;
            let copy = self.copy()?;
            let cold = self.run(&picture, self.cold.div_ceil(both.max(1)) as usize)?;
            put("copy", copy);
            put("cold", cold);
            answer.insert("copies".to_owned(), (cold.median / copy.median).into());
        }
        Ok(answer.into())
    }

    /// A plain copy of cold frames.
    fn copy(&self) -> Outcome<Spread> {
        let effort = Effort {
            time: Duration::ZERO,
            rounds: (self.frames.max(COPIES), self.frames),
        };
        Ok(time_copies(
            self.layout()?.size(),
            self.threads,
            self.cold,
            effort,
        )?)
    }

    /// Milliseconds a frame where at least so many pictures take turns: of single frames where the engine
    /// works on one at a time, else means over stretches in which it is kept full.
    fn run(&self, picture: &[u8], pictures: usize) -> Outcome<Spread> {
        let mut engine = Cpu::with_instruction_set(self.chain.clone(), self.threads, self.set)?;
        let layout = self.layout()?;
        let depth = engine.depth();
        let pictures = pictures.max(depth);
        let inputs = FramePool::new(pictures, engine.input_allocator());
        let outputs = FramePool::new(pictures + 1, engine.output_allocator());
        outputs.prepare(layout.size())?;
        let mut filled = Vec::new();
        for _ in 0..pictures {
            let mut frame = Frame::new(layout, inputs.try_take().ok_or("no input is free")?)?;
            Job::fill(picture, &mut frame)?;
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
        // More frames than are counted, so that memory is there and warm, and that cores which slept run at
        // their clock.
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
        Ok(Spread::of(&times).ok_or("no frame was timed")?)
    }
}

fn answer(line: &str) -> serde_json::Value {
    let answer = Job::parse(line).and_then(|job| job.answer());
    answer.unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }))
}

/// Each mask with the best instructions of this machine.
fn table() -> Outcome<()> {
    println!(
        "{:<36} {:>8} {:>8} {:>8} {:>10} {:>8}",
        "ms a frame, 1920x1080", "warm", "cold", "copies", "2 threads", "speed-up"
    );
    for format in [
        "gray",
        "rgb24",
        "gray10le",
        "gray16le",
        "grayf16le",
        "grayf32le",
        "rgbf32le",
    ] {
        for filter in [
            "sharpen",
            "mask:rows=1 2 3;-4 5 6;7 8 -9:divisor=sum",
            "gaussian:size=3",
            "gaussian:size=5",
            "gaussian:size=7",
            "gaussian:size=15",
            "gaussian:size=25",
            "box:size=3",
            "box:size=7",
            "box:size=15",
        ] {
            let job = |threads: usize| {
                Job::parse(&format!(
                    "filter={filter}\tformat={format}\tthreads={threads}\tframes=40"
                ))?
                .answer()
            };
            let (one, two) = (job(1)?, job(2)?);
            let median =
                |of: &serde_json::Value, turns: &str| of[turns]["median"].as_f64().unwrap_or_default();
            let cold = [median(&one, "cold"), median(&two, "cold")];
            println!(
                "{:<36} {:>8.3} {:>8.3} {:>8.2} {:>10.3} {:>8.2}",
                format!("{format} {}", &filter[..filter.len().min(18)]),
                median(&one, "warm"),
                cold[0],
                one["copies"].as_f64().unwrap_or_default(),
                cold[1],
                cold[0] / cold[1]
            );
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
