//! Measures cells, and keeps what several of them share.
//!
//! ```text
//! case   -> an engine, fed frames of noise          times         timing
//!        -> its result                              compared with another engine's, all samples
//!        -> the reference on a strip                a speed-up
//!        -> peak rates of the machine               shares        peaks
//! times  -> figures                                               cell
//! ```

mod cell;
mod peaks;

use super::case::{Arithmetic, Case, Subject};
use super::error::BenchError;
use super::machine::{Machine, Versions, cold_bytes};
use super::sweep::{Cell, Peak, Scope, Sweep};
use super::timing::effort::Effort;
use super::timing::frames::{self, FrameTimes, TimedFrames};
use super::timing::spread::Spread;
use crate::engine::cpu::{Cpu, InstructionSet};
use crate::engine::cuda::{
    ArithmeticRates, Cuda, CudaOptions, DeviceInfo, KernelCase, KernelTimer, MemoryVariant, Overlap,
    TableCell, probe,
};
use crate::engine::reference::Reference;
use crate::engine::verify::fill_with_noise;
use crate::engine::{Engine, EngineError};
use crate::filter::Chain;
use crate::frame::{AllocationError, Allocator, Buffer, Frame, Layout, Pageable};
use cell::cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;

/// Multiply-adds after which a strip is long enough to time the reference on, and the rows that it has at
/// least.
const REFERENCE_WORK: u64 = 20_000_000;
const REFERENCE_ROWS: usize = 16;
/// Results of the CPU engine that are kept to be compared with.
const KEPT_RESULTS: usize = 4;

/// The reference on one work: milliseconds a row, and the result of its strip.
struct Baseline {
    milliseconds_a_row: f64,
    times: Vec<f64>,
    rows: usize,
    seed: u64,
    output: Frame,
}

/// The pictures that are used in turn while an engine is timed.
#[derive(Debug, Clone, Copy)]
enum Pictures {
    /// More than the last-level cache holds, in ordinary memory.
    Cold,
    /// The same in page-locked memory.
    ColdAndPinned,
    /// As few as possible, in ordinary memory.
    Warm,
}

/// Measures cells. What several cells share (pictures on the card, peaks, the reference's times) is
/// measured once and kept.
pub struct Bench {
    machine: Machine,
    versions: Versions,
    device: usize,
    effort: Effort,
    seed: u64,
    /// Total bytes of the pictures used in turn, so that none is in a cache.
    cold_bytes: u64,
    card: Option<KernelTimer>,
    peaks: Vec<Peak>,
    arithmetic: Option<ArithmeticRates>,
    baselines: HashMap<String, Baseline>,
    /// Frames in ordinary and in page-locked memory, more than any cache holds, and as few as can be.
    timed: [Option<TimedFrames>; 3],
    /// Of the CPU engine, for cells on the card: the work, the noise, the result.
    results: Vec<(String, u64, Frame)>,
}

impl Bench {
    /// A bench with card number `device`, if there is one and it can be used; the second value says why not.
    pub fn new(device: usize, effort: Effort) -> (Bench, Option<EngineError>) {
        // Other noise each time, so that no run can be tuned to it.
        let seed = std::hash::RandomState::new().build_hasher().finish() >> 16;
        let opened = probe().and_then(|_| KernelTimer::open(device, seed));
        let (card, why_not) = match opened {
            Ok(card) => (Some(card), None),
            Err(error) => (None, Some(error)),
        };
        let (machine, versions) = Machine::here(device);
        let bench = Bench {
            cold_bytes: cold_bytes(machine.cache_bytes),
            machine,
            versions,
            device,
            effort,
            seed,
            card,
            peaks: Vec::new(),
            arithmetic: None,
            baselines: HashMap::new(),
            timed: [None, None, None],
            results: Vec::new(),
        };
        (bench, why_not)
    }

    /// Sets the size of the last-level cache, in place of the system's figure.
    pub fn with_cache(mut self, bytes: u64) -> Bench {
        self.machine.cache_bytes = Some(bytes);
        self.cold_bytes = cold_bytes(self.machine.cache_bytes);
        self
    }

    /// An empty sweep on this machine.
    pub fn sweep(&self, title: impl Into<String>) -> Sweep {
        Sweep::new(title.into(), self.machine.clone(), self.versions.clone())
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The versions.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The card, if there is one.
    pub fn device(&self) -> Option<&DeviceInfo> {
        self.card.as_ref().map(KernelTimer::device)
    }

    /// Times the kernels of a case on the card, and nothing else; the result is compared with the CPU
    /// engine's.
    pub fn time_kernels(&mut self, case: &Case) -> Result<Spread, BenchError> {
        let Subject::Cuda { memory, block } = case.subject else {
            return Err(BenchError::NoTimes(case.to_string()));
        };
        let chain = case.chain();
        let effort = self.effort.on_card();
        let timed = self
            .card()?
            .time(&kernel_case(case, &chain, memory, block), effort)?;
        self.check(case, timed.seed, &timed.output)?;
        Spread::of(&timed.milliseconds).ok_or_else(|| BenchError::NoTimes(case.to_string()))
    }

    /// Stores the results of the card, which `auto` uses from the next engine on. Returns the path of the
    /// file.
    pub fn keep(&mut self, date: &str, cells: &[TableCell]) -> Result<PathBuf, EngineError> {
        self.card()?.keep(date, cells)
    }

    /// True if there is a card.
    pub fn has_card(&self) -> bool {
        self.card.is_some()
    }

    /// The peaks that the cells so far were held against.
    pub fn peaks(&self) -> &[Peak] {
        &self.peaks
    }

    /// Compiles the kernels of `cases` side by side, so that no cell waits for its own.
    pub fn compile(&self, cases: &[Case]) {
        let Some(card) = &self.card else { return };
        let chains: Vec<Chain> = cases.iter().map(Case::chain).collect();
        let kernels: Vec<KernelCase<'_>> = cases
            .iter()
            .zip(&chains)
            .filter_map(|(case, chain)| match case.subject {
                Subject::Cuda { memory, block } => Some(kernel_case(case, chain, memory, block)),
                _ => None,
            })
            .collect();
        card.compile(&kernels);
    }

    /// Measures one cell.
    pub fn measure(&mut self, case: &Case, scope: Scope) -> Result<Cell, BenchError> {
        let arithmetic = Arithmetic::of(case)?;
        let reference = self.baseline(case, &arithmetic)?.milliseconds_a_row * case.height as f64;
        match (case.subject, scope) {
            (Subject::Reference, _) => self.reference(case, &arithmetic),
            (Subject::Cpu { threads, set }, _) => self.cpu(case, &arithmetic, (threads, set), reference),
            (Subject::Cuda { memory, block }, Scope::Kernel) => {
                self.kernels(case, &arithmetic, memory, block, reference)
            }
            (Subject::Cuda { memory, block }, _) => {
                self.with_transfers(case, &arithmetic, memory, block, scope, reference)
            }
        }
    }

    fn reference(&mut self, case: &Case, arithmetic: &Arithmetic) -> Result<Cell, BenchError> {
        let baseline = self.baseline(case, arithmetic)?;
        let scale = case.height as f64 / baseline.rows as f64;
        let times: Vec<f64> = baseline.times.iter().map(|t| t * scale).collect();
        let rows = baseline.rows;
        let mut cell = cell(case, arithmetic, Scope::Kernel, &times)?;
        cell.engine = "reference".to_owned();
        cell.threads = Some(1);
        cell.rows_timed = rows;
        cell.frames_in_turn = 1;
        cell.against_reference(cell.milliseconds.median);
        Ok(cell)
    }

    fn cpu(
        &mut self,
        case: &Case,
        arithmetic: &Arithmetic,
        (threads, set): (usize, Option<InstructionSet>),
        reference: f64,
    ) -> Result<Cell, BenchError> {
        let mut engine = match set {
            Some(set) => Cpu::with_instruction_set(case.chain(), threads, set)?,
            None => Cpu::new(case.chain(), threads)?,
        };
        let strip = self.baseline(case, arithmetic)?;
        let layout = *strip.output.layout();
        let made = filter(&mut engine, &layout, strip.seed)?;
        let checked = same(case, &made, &strip.output, "reference")?;
        let timed = self.frames(&mut engine, case, Pictures::Cold)?;
        let warm = self.frames(&mut engine, case, Pictures::Warm)?;
        let mut cell = cell(case, arithmetic, Scope::Kernel, &timed.milliseconds)?;
        cell.engine = "cpu".to_owned();
        cell.warm_milliseconds = Spread::of(&warm.milliseconds);
        cell.threads = Some(threads);
        cell.variant = set.map(|set| set.to_string());
        cell.frames_in_turn = timed.turns;
        cell.samples_checked = checked;
        cell.against_reference(reference);
        let peak = self.host_copy(case.layout()?.picture_bytes(), threads)?;
        cell.share_of_copy = Some(cell.gigabytes_per_second / peak);
        Ok(cell)
    }

    fn kernels(
        &mut self,
        case: &Case,
        arithmetic: &Arithmetic,
        memory: MemoryVariant,
        block: Option<(u32, u32)>,
        reference: f64,
    ) -> Result<Cell, BenchError> {
        let chain = case.chain();
        let effort = self.effort.on_card();
        let timed = self
            .card()?
            .time(&kernel_case(case, &chain, memory, block), effort)?;
        let checked = self.check(case, timed.seed, &timed.output)?;
        let mut cell = cell(case, arithmetic, Scope::Kernel, &timed.milliseconds)?;
        cell.on_card(memory, timed.block);
        cell.frames_in_turn = timed.turns;
        cell.samples_checked = checked;
        cell.against_reference(reference);
        let copy = self.card_copy(case)?;
        let arithmetic = self.arithmetic()?;
        cell.share_of_copy = Some(cell.gigabytes_per_second / copy);
        cell.share_of_arithmetic = Some(cell.gigamacs_per_second / arithmetic.multiply_add);
        Ok(cell)
    }

    fn with_transfers(
        &mut self,
        case: &Case,
        arithmetic: &Arithmetic,
        memory: MemoryVariant,
        block: Option<(u32, u32)>,
        scope: Scope,
        reference: f64,
    ) -> Result<Cell, BenchError> {
        let options = CudaOptions {
            device: self.device,
            memory,
            block,
            overlap: match scope {
                Scope::Pageable => Overlap::SerialPageable,
                Scope::Pinned => Overlap::SerialPinned,
                Scope::Kernel | Scope::Ring => Overlap::Ring,
            },
            ..CudaOptions::default()
        };
        self.card()?;
        let mut engine = Cuda::new(case.chain(), options)?;
        let pictures = if scope == Scope::Pageable {
            Pictures::Cold
        } else {
            Pictures::ColdAndPinned
        };
        let timed = self.frames(&mut engine, case, pictures)?;
        drop(engine);
        let checked = self.check(case, timed.seed, &timed.output)?;
        let mut cell = cell(case, arithmetic, scope, &timed.milliseconds)?;
        cell.on_card(memory, block);
        cell.frames_in_turn = timed.turns;
        cell.samples_checked = checked;
        cell.against_reference(reference);
        let link = self.link(case.layout()?.picture_bytes())?;
        cell.share_of_copy = Some(cell.gigabytes_per_second / link);
        Ok(cell)
    }

    /// Times an engine on whole frames.
    fn frames(
        &mut self,
        engine: &mut dyn Engine,
        case: &Case,
        pictures: Pictures,
    ) -> Result<FrameTimes, BenchError> {
        let layout = case.layout()?;
        let seed = self.seed;
        let together = match pictures {
            Pictures::Cold | Pictures::ColdAndPinned => self.cold_bytes,
            Pictures::Warm => 0,
        };
        let timed = &mut self.timed[pictures as usize];
        if !timed.as_ref().is_some_and(|r| r.fits(&layout, engine.depth())) {
            // The old frames go first, so that the two sets are never held at once.
            *timed = None;
        }
        let timed = match timed {
            Some(timed) => timed,
            empty => empty.insert(TimedFrames::new(engine, &layout, seed, together)?),
        };
        Ok(frames::time(engine, timed, self.effort)?)
    }

    fn card(&mut self) -> Result<&mut KernelTimer, EngineError> {
        self.card
            .as_mut()
            .ok_or_else(|| EngineError::Unavailable("there is no CUDA card to measure on".to_owned()))
    }

    /// Compares the card's result with the CPU engine's.
    fn check(&mut self, case: &Case, seed: u64, made: &Frame) -> Result<u64, BenchError> {
        let work = format!("{} {}", case.work(), case.height);
        let known = |(w, s, _): &&(String, u64, Frame)| *w == work && *s == seed;
        if self.results.iter().find(known).is_none() {
            let result = filter(&mut Cpu::new(case.chain(), 0)?, &case.layout()?, seed)?;
            if self.results.len() >= KEPT_RESULTS {
                self.results.remove(0);
            }
            self.results.push((work.clone(), seed, result));
        }
        match self.results.iter().find(known) {
            Some((_, _, expected)) => same(case, made, expected, "cpu"),
            None => Ok(0),
        }
    }

    /// The reference's time on a strip of this work's frames.
    fn baseline(&mut self, case: &Case, arithmetic: &Arithmetic) -> Result<&Baseline, BenchError> {
        let work = case.work();
        // A higher frame may allow a longer strip, but the time a row is the same.
        if self.baselines.get(&work).is_none_or(|b| b.rows > case.height) {
            let each_row = arithmetic.multiply_adds.div_ceil(case.height as u64).max(1);
            let rows = (REFERENCE_WORK / each_row) as usize;
            let rows = rows.max(REFERENCE_ROWS).min(case.height);
            let strip = Layout::new(case.format, case.width, rows, 64)?;
            let mut engine = Reference::new(case.chain());
            let effort = Effort {
                rounds: (3, 9),
                ..self.effort
            };
            let timed = TimedFrames::new(&engine, &strip, self.seed, 0)?;
            let timed = frames::time(&mut engine, &timed, effort)?;
            let spread =
                Spread::of(&timed.milliseconds).ok_or_else(|| BenchError::NoTimes(case.to_string()))?;
            let baseline = Baseline {
                milliseconds_a_row: spread.median / rows as f64,
                times: timed.milliseconds,
                rows,
                seed: timed.seed,
                output: timed.output,
            };
            self.baselines.insert(work.clone(), baseline);
        }
        self.baselines
            .get(&work)
            .ok_or_else(|| BenchError::NoTimes(case.to_string()))
    }
}

fn kernel_case<'a>(
    case: &Case,
    chain: &'a Chain,
    memory: MemoryVariant,
    block: Option<(u32, u32)>,
) -> KernelCase<'a> {
    KernelCase {
        chain,
        format: case.format,
        width: case.width,
        height: case.height,
        memory,
        block,
        fuse: true,
    }
}

/// Filters one frame of noise.
fn filter(engine: &mut dyn Engine, layout: &Layout, seed: u64) -> Result<Frame, BenchError> {
    let buffer = || Ok::<_, AllocationError>(Buffer::unpooled(Pageable.allocate(layout.size())?));
    let mut frame = Frame::new(*layout, buffer()?)?;
    fill_with_noise(&mut frame, seed);
    engine.submit(frame, buffer()?, 64)?;
    engine.collect()?.ok_or_else(|| {
        BenchError::Engine(EngineError::Device {
            doing: "comparing results".to_owned(),
            reason: "the engine gave no frame back".to_owned(),
        })
    })
}

/// How many samples two frames have, if all are equal.
fn same(case: &Case, made: &Frame, expected: &Frame, other: &'static str) -> Result<u64, BenchError> {
    let (mut samples, mut differences) = (0, 0);
    let each = expected.format().bytes_per_sample();
    for (plane, place) in expected.layout().planes().iter().enumerate() {
        for y in 0..place.height {
            samples += (place.width * place.channels) as u64;
            let (a, b) = (made.row(plane, y), expected.row(plane, y));
            if a != b {
                let pairs = a.chunks_exact(each).zip(b.chunks_exact(each));
                differences += pairs.filter(|(a, b)| a != b).count() as u64;
            }
        }
    }
    if differences > 0 {
        return Err(BenchError::Differs {
            case: case.to_string(),
            differences,
            samples,
            other,
        });
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Algorithm, Border};
    use crate::frame::PixelFormat;
    use std::time::Duration;

    fn case(subject: Subject, spec: &str, algorithm: Algorithm) -> Case {
        Case {
            subject,
            filter: spec.parse().unwrap(),
            algorithm,
            border: Border::Replicate,
            format: PixelFormat::from_name("rgb24").unwrap(),
            width: 65,
            height: 47,
        }
    }

    fn bench() -> Bench {
        let effort = Effort {
            time: Duration::from_millis(1),
            rounds: (3, 5),
        };
        Bench::new(0, effort).0
    }

    #[test]
    fn a_cell_says_what_was_measured() {
        let mut bench = bench();
        let case = case(
            Subject::Cpu {
                threads: 2,
                set: None,
            },
            "gaussian:size=5",
            Algorithm::Separable,
        );
        let cell = bench.measure(&case, Scope::Kernel).unwrap();
        assert_eq!((cell.engine.as_str(), cell.threads), ("cpu", Some(2)));
        assert_eq!((cell.mask_width, cell.algorithm.as_str()), (5, "separable"));
        assert_eq!(cell.bytes, 2 * 65 * 47 * 3);
        assert_eq!(cell.multiply_adds, 65 * 47 * 3 * 10);
        assert_eq!(cell.samples_checked, 65 * 47 * 3);
        assert!(cell.milliseconds.count >= 3 && cell.milliseconds.median > 0.0);
        assert!(cell.milliseconds.min <= cell.milliseconds.median);
        assert!(cell.milliseconds.median <= cell.milliseconds.p90);
        assert!(cell.warm_milliseconds.is_some_and(|warm| warm.median > 0.0));
        let pixels = cell.gigapixels_per_second * cell.milliseconds.median * 1e6;
        assert!((pixels - 65.0 * 47.0).abs() < 1e-6, "{pixels}");
        let speed_up = cell.speed_up.unwrap() * cell.milliseconds.median;
        assert!((speed_up - cell.reference_milliseconds.unwrap()).abs() < 1e-9);
        assert_eq!((bench.peaks().len(), cell.variant), (1, None));
        assert!(cell.share_of_copy.unwrap() > 0.0);

        let set = Some(InstructionSet::Portable);
        let portable = Case {
            subject: Subject::Cpu { threads: 1, set },
            ..case
        };
        assert!(
            portable.to_string().starts_with("cpu, 1 thread, portable"),
            "{portable}"
        );
        let cell = bench.measure(&portable, Scope::Kernel).unwrap();
        assert_eq!(
            (cell.variant.as_deref(), cell.threads),
            (Some("portable"), Some(1))
        );
    }

    #[test]
    fn the_reference_is_held_against_itself() {
        let mut bench = bench();
        let mut tall = case(Subject::Reference, "box:size=9", Algorithm::Direct);
        (tall.width, tall.height) = (640, 2000);
        let cell = bench.measure(&tall, Scope::Kernel).unwrap();
        assert!(cell.rows_timed < 2000 && cell.rows_timed >= REFERENCE_ROWS);
        assert_eq!(cell.speed_up, Some(1.0));
        assert_eq!(cell.multiply_adds, 640 * 2000 * 3 * 81);
    }

    #[test]
    fn what_cannot_be_is_a_refusal_and_what_is_wrong_is_not() {
        let mut bench = bench();
        let unfit = case(
            Subject::Cpu {
                threads: 1,
                set: None,
            },
            "laplacian8",
            Algorithm::Separable,
        );
        let error = bench.measure(&unfit, Scope::Kernel).unwrap_err();
        assert!(error.is_refusal(), "{error}");
        let layout = unfit.layout().unwrap();
        let right = filter(
            &mut Reference::new(case(Subject::Reference, "soft", Algorithm::Direct).chain()),
            &layout,
            5,
        )
        .unwrap();
        let mut wrong = filter(
            &mut Reference::new(case(Subject::Reference, "soft", Algorithm::Direct).chain()),
            &layout,
            5,
        )
        .unwrap();
        assert_eq!(same(&unfit, &wrong, &right, "cpu").unwrap(), 65 * 47 * 3);
        wrong.row_mut(0, 3)[7] ^= 1;
        let error = same(&unfit, &wrong, &right, "cpu").unwrap_err();
        assert!(!error.is_refusal());
        assert!(error.to_string().contains("1 of 9165 samples"), "{error}");
    }
}
