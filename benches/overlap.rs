//! How much of the transfers the ring hides: frames a second from the synthetic source to the null sink,
//! beside plain copies of the same size in both directions at once, in one run. `cargo bench --bench
//! overlap`, or checks/overlap in a bundle; parts of rows' names as arguments choose rows.
//!
//! Rates are those of the frames after the first `WARM_UP`, so that no allocation and no compilation is in
//! them; each row is the median of `ROUNDS` runs, the peak measured anew beside each.

mod rows;

use framepipe::engine::cpu::Cpu;
use framepipe::engine::cuda::{Cuda, CudaOptions, MemoryVariant, Overlap, devices, duplex, probe};
use framepipe::engine::several::Several;
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Border, Chain, Planes};
use framepipe::frame::{Allocator, Buffer, Frame};
use framepipe::pipeline::{self, Job, PipelineOptions, Progress, Stop};
use framepipe::sink::{AnySink, Flow, Sink, SinkError, Written};
use framepipe::source::raw::RawSpec;
use framepipe::source::{AnySource, raw, synthetic};
use rows::{is_wanted, median};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Frames whose time does not count.
const WARM_UP: u64 = 300;
/// Runs of each row.
const ROUNDS: usize = 3;
/// How long a run should take.
const SECONDS: f64 = 0.8;

/// Drops frames, and notes when the warm-up ended and when the last frame came.
struct Clock {
    count: u64,
    first: Option<Instant>,
    last: Instant,
    report: Sender<(u64, Duration)>,
}

impl Sink for Clock {
    fn row_alignment(&self) -> usize {
        1
    }

    fn write(&mut self, _frame: Frame) -> Result<Flow, SinkError> {
        self.count += 1;
        self.last = Instant::now();
        if self.count == WARM_UP {
            self.first = Some(self.last);
        }
        Ok(Flow::More)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        if let Some(first) = self.first {
            // The receiver waits for it; if it has gone, so has the bench.
            let _ = self.report.send((self.count - WARM_UP, self.last - first));
        }
        Ok(Written::default())
    }
}

/// An engine whose calls are timed: what the host spends on a frame must stay below what the link does.
struct Timed {
    engine: Box<dyn Engine>,
    frames: u64,
    submit: Duration,
    report: Sender<Duration>,
}

impl Drop for Timed {
    fn drop(&mut self) {
        // As for the clock.
        let _ = self.report.send(self.submit / (self.frames.max(1) as u32));
    }
}

impl Engine for Timed {
    fn inner(&self) -> Option<&dyn Engine> {
        Some(&*self.engine)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Engine> {
        Some(&mut *self.engine)
    }

    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn description(&self) -> String {
        self.engine.description()
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        self.engine.input_allocator()
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        self.engine.output_allocator()
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let counts = input.sequence >= WARM_UP;
        let began = Instant::now();
        self.engine.submit(input, output, row_alignment)?;
        if counts {
            self.frames += 1;
            self.submit += began.elapsed();
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        self.engine.collect()
    }
}

/// What one run showed after its warm-up.
#[derive(Clone, Copy)]
struct Steady {
    rate: f64,
    /// The host's time to enqueue a frame.
    submit: Duration,
    /// The slowest part's time over the wall's, by the device's clock; 0 without one.
    efficiency: f64,
    /// Seconds of upload, kernels and download of a frame.
    parts: [f64; 3],
}

fn run(source: AnySource, engine: Box<dyn Engine>) -> Fallible<Steady> {
    let (report, times) = channel();
    let (report_submit, submit) = channel();
    let engine = Box::new(Timed {
        engine,
        frames: 0,
        submit: Duration::ZERO,
        report: report_submit,
    });
    let sink = Box::new(Clock {
        count: 0,
        first: None,
        last: Instant::now(),
        report,
    });
    let job = Job {
        source,
        engine,
        sink: AnySink::Stream(sink),
        options: PipelineOptions::default(),
    };
    let outcome = pipeline::run(job, &Stop::new(), &Progress::new())?;
    let (frames, time) = times.recv()?;
    let mut steady = Steady {
        rate: frames as f64 / time.as_secs_f64(),
        submit: submit.recv()?,
        efficiency: 0.0,
        parts: [0.0; 3],
    };
    if let Some(device) = outcome.measurements.device {
        let kept: Vec<_> = device.frames.iter().filter(|f| f.sequence >= WARM_UP).collect();
        if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
            let (mut sums, mut busy, mut until) = ([0.0; 3], [0.0; 3], [0.0; 3]);
            for frame in &kept {
                for (part, (begin, end)) in [frame.upload, frame.kernel, frame.download]
                    .into_iter()
                    .enumerate()
                {
                    sums[part] += end - begin;
                    // What runs beside another of its kind counts once.
                    busy[part] += (end - begin.max(until[part])).max(0.0);
                    until[part] = end.max(until[part]);
                }
            }
            let slowest = busy.iter().copied().fold(0.0, f64::max);
            steady.efficiency = slowest / (last.download.1 - first.upload.0);
            steady.parts = sums.map(|s| s / kept.len() as f64);
        }
    }
    Ok(steady)
}

fn chain() -> Fallible<Chain> {
    Ok(Chain {
        filters: vec!["gaussian:size=5".parse()?],
        border: Border::Replicate,
        planes: Planes::All,
        algorithm: Algorithm::Auto,
        alpha: Default::default(),
    })
}

fn synthetic_source(size: &str, frames: u64) -> Fallible<AnySource> {
    Ok(synthetic::open(
        &format!("synthetic:{size}:60:{frames}").parse()?,
    )?)
}

fn main() -> Fallible<()> {
    let card = match probe() {
        Ok(card) => card,
        Err(reason) => {
            println!("SKIPPED: the overlap benchmark: {reason}");
            return Ok(());
        }
    };
    println!(
        "{}, gaussian 5x5, synthetic source to null sink; medians of {ROUNDS} runs",
        card.name
    );
    println!(
        "{:<18} {:<20} {:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "frames",
        "engine",
        "frames/s",
        "duplex/s",
        "share",
        "overlap",
        "up us",
        "krnl us",
        "down us",
        "host us"
    );
    for size in ["3840x2160:rgb24", "1920x1080:yuv420p"] {
        compare(size)?;
    }
    for size in ["3840x2160:rgb24", "1920x1080:rgb24", "1920x1080:yuv420p"] {
        // For scripts/gpu-rates, which holds the program's own runs against it.
        if is_wanted("duplex alone") {
            let bytes = format!("{size}:60").parse::<RawSpec>()?.layout.size();
            let copies = duplex(0, bytes, Duration::from_millis(500))?.rate();
            println!("{size:<18} {:<20} {copies:>8.0}", "duplex alone");
        }
    }
    if is_wanted("raw file, page cache") {
        raw_file()?;
    }
    if is_wanted("cards in turn") {
        cards_in_turn()?;
    }
    Ok(())
}

/// 4K RGB frames on one card, on two that take them in turn, and so on; each row beside one card in the same
/// round.
fn cards_in_turn() -> Fallible<()> {
    const SIZE: &str = "3840x2160:rgb24";
    let cards = devices()?.cards.len();
    let bytes = format!("{SIZE}:60").parse::<RawSpec>()?.layout.size();
    let frames = WARM_UP + (duplex(0, bytes, Duration::from_millis(250))?.rate() * SECONDS) as u64;
    let rate = |count: usize| -> Fallible<f64> {
        let engine = |device: usize| -> Fallible<Box<dyn Engine>> {
            let options = CudaOptions {
                device,
                ..CudaOptions::default()
            };
            Ok(Box::new(Cuda::new(chain()?, options)?))
        };
        let others = (1..count).map(engine).collect::<Fallible<Vec<_>>>()?;
        let several = Several::new(engine(0)?, others);
        Ok(run(synthetic_source(SIZE, frames * count as u64)?, Box::new(several))?.rate)
    };
    for count in 1..=cards {
        let (mut rates, mut ratios) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            let (one, all) = (rate(1)?, rate(count)?);
            rates.push(all);
            ratios.push(all / one);
        }
        println!(
            "{SIZE:<18} {:<20} {:>8.0} frames/s, {:.2} times one",
            format!("{count} cards in turn"),
            median(rates),
            median(ratios)
        );
    }
    Ok(())
}

/// Rows of one size of frame.
fn compare(size: &str) -> Fallible<()> {
    let spec: RawSpec = format!("{size}:60").parse()?;
    let bytes = spec.layout.size();
    let ring = |slots| CudaOptions {
        slots,
        ..CudaOptions::default()
    };
    let serial = |overlap| CudaOptions {
        overlap,
        ..CudaOptions::default()
    };
    let of = |memory| CudaOptions {
        memory,
        ..CudaOptions::default()
    };
    let rows = [
        ("ring, 3 slots", ring(3)),
        ("ring, 2 slots", ring(2)),
        ("global", of(MemoryVariant::Global)),
        ("constant", of(MemoryVariant::Constant)),
        ("shared", of(MemoryVariant::Shared)),
        ("constant-shared", of(MemoryVariant::ConstantShared)),
        ("texture", of(MemoryVariant::Texture)),
        ("registers", of(MemoryVariant::Registers)),
        ("no overlap, pinned", serial(Overlap::SerialPinned)),
        ("no overlap, pageable", serial(Overlap::SerialPageable)),
    ];
    for (name, options) in rows.into_iter().filter(|(name, _)| is_wanted(name)) {
        let (mut rates, mut shares, mut peaks, mut efficiencies) = (vec![], vec![], vec![], vec![]);
        let (mut parts, mut host) = ([0.0; 3], 0.0);
        for _ in 0..ROUNDS {
            let peak = duplex(0, bytes, Duration::from_millis(250))?.rate();
            let guess = if options.overlap == Overlap::SerialPageable {
                peak / 6.0
            } else {
                peak
            };
            let frames = WARM_UP + (guess * SECONDS) as u64;
            let steady = run(
                synthetic_source(size, frames)?,
                Box::new(Cuda::new(chain()?, options)?),
            )?;
            rates.push(steady.rate);
            peaks.push(peak);
            shares.push(steady.rate / peak);
            efficiencies.push(steady.efficiency);
            parts = steady.parts;
            host = steady.submit.as_secs_f64();
        }
        println!(
            "{size:<18} {name:<20} {:>8.0} {:>8.0} {:>6.1}% {:>8.3} {:>8.1} {:>8.1} {:>8.1} {:>8.1}",
            median(rates),
            median(peaks),
            100.0 * median(shares),
            median(efficiencies),
            parts[0] * 1e6,
            parts[1] * 1e6,
            parts[2] * 1e6,
            host * 1e6,
        );
    }
    if !is_wanted("cpu, all cores") {
        return Ok(());
    }
    let cpu = run(
        synthetic_source(size, WARM_UP + 300)?,
        Box::new(Cpu::new(chain()?, 0)?),
    )?;
    println!("{size:<18} {:<20} {:>8.0}", "cpu, all cores", cpu.rate);
    Ok(())
}

/// 4K RGB frames from a raw file in the page cache.
fn raw_file() -> Fallible<()> {
    const FRAMES: u64 = WARM_UP + 300;
    let spec: RawSpec = "3840x2160:rgb24:60".parse()?;
    let bytes = spec.layout.size();
    let path = std::env::temp_dir().join(format!("framepipe-overlap-{}.raw", std::process::id()));
    let written = (|| -> Fallible<Steady> {
        let mut file = std::fs::File::create(&path)?;
        let mut pixels: Vec<u8> = (0..bytes as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for _ in 0..FRAMES {
            file.write_all(&pixels)?;
            pixels.rotate_left(977);
        }
        // Once through, so that it is in the page cache.
        run(
            raw::open(&path, &spec, None)?,
            Box::new(Cuda::new(chain()?, CudaOptions::default())?),
        )?;
        run(
            raw::open(&path, &spec, None)?,
            Box::new(Cuda::new(chain()?, CudaOptions::default())?),
        )
    })();
    std::fs::remove_file(&path)?;
    println!("3840x2160:rgb24    raw file, page cache {:>8.0}", written?.rate);
    Ok(())
}
