//! Times a chain's kernels alone: no transfers, no first calls, no cache that holds all the pictures, no gaps
//! between launches.
//!
//! Pictures of noise, together several times the level-2 cache, alternate. Their launches are captured as one
//! CUDA graph, which is replayed between events; each replay gives one time. Copies and bare multiply-adds
//! are timed in the same way, for comparison.
#![allow(unsafe_code)]

use crate::engine::cuda::compile::cache::Cache;
use crate::engine::cuda::compile::{Recipe, Source};
use crate::engine::cuda::driver::dependency::TrackedStream;
use crate::engine::cuda::driver::device::{Device, DeviceInfo, check, nvrtc_version};
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::engine::cuda::driver::module::Module;
use crate::engine::cuda::driver::pictures::picture::{Arrangement, DevicePlanes, Picture};
use crate::engine::cuda::driver::pictures::texture::{self, ALIGNMENT, sample_texel};
use crate::engine::cuda::driver::stream::{Event, Stream};
use crate::engine::cuda::kernels::variant::MemoryVariant;
use crate::engine::cuda::launch::chain::LaunchPlan;
use crate::engine::cuda::launch::parameters;
use crate::engine::cuda::launch::scratch::{Scratch, ScratchError, ScratchMemory};
use crate::engine::cuda::launch::{Request, StepBuffers};
use crate::engine::cuda::ring::graph::Graph;
use crate::engine::cuda::select::table::{Table, TableCell};
use crate::engine::cuda::select::{SelectContext, chain_recipes};
use crate::engine::verify::fill_with_noise;
use crate::engine::{EXPLAIN_TARGET, EngineError};
use crate::filter::Chain;
use crate::frame::{Allocator, Buffer, Colour, Frame, Layout, Pageable, PixelFormat};
use cudarc::driver::sys;
use rayon::prelude::*;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Alternating pictures together take this many times the level-2 cache.
const TIMES_THE_CACHE: u64 = 4;
/// Alternating pictures, at least and at most.
const TURNS: (usize, usize) = (3, 2048);
/// The least time of a graph: compared with it, the gap between two replays is negligible.
const GRAPH_SECONDS: f64 = 2e-3;
/// The most frames of one graph.
const GRAPH_FRAMES: usize = 8192;
/// Warm-up before the clock starts, so that the card's clock rate has risen.
const WARM_UP: f64 = 30e-3;
/// The value of results before a timed run, so that a kernel that writes nothing is noticed.
const POISON: u8 = 0xA5;

/// A case to time.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelCase<'a> {
    /// The filters.
    pub chain: &'a Chain,
    /// The frames' pixel format.
    pub format: PixelFormat,
    /// Pixels across.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Where kernels keep weights and pixels.
    pub memory: MemoryVariant,
    /// Threads of a block; `None` for the variant's own.
    pub block: Option<(u32, u32)>,
    /// Whether two filters may share a launch.
    pub fuse: bool,
}

/// How long and how often to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelEffort {
    /// How long to measure.
    pub time: Duration,
    /// The least and the most times to take, however long that takes.
    pub rounds: (usize, usize),
}

/// The times of a case.
pub struct KernelTimes {
    /// Milliseconds a frame, one for each replay of the graph.
    pub milliseconds: Vec<f64>,
    /// Alternating pictures.
    pub turns: usize,
    /// Threads of a block; `None` if no kernel ran.
    pub block: Option<(u32, u32)>,
    /// The noise that one of the pictures held, as [`fill_with_noise`] takes it, in a frame whose rows are
    /// aligned to 64 bytes.
    pub seed: u64,
    /// The timed kernels' result for that picture.
    pub output: Frame,
}

/// The card's rates of bare multiply-adds, 10^9 a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArithmeticRates {
    /// Of 32-bit integers.
    pub multiply_add: f64,
    /// Of bytes, four in a dot product; `None` if the card has none.
    pub dot_product: Option<f64>,
    /// Of bytes on tensor cores; `None` if the card has none.
    pub tensor: Option<f64>,
}

/// Times kernels on one card.
pub struct KernelTimer {
    // `drop` waits for the stream before any of these fields is dropped.
    pictures: Option<AlternatingPictures>,
    peak: Option<Module>,
    cache: Cache,
    table: Table,
    seed: u64,
    stream: Stream,
    device: Arc<Device>,
}

/// Alternating pictures of one layout.
struct AlternatingPictures {
    layout: Layout,
    inputs: Vec<Picture>,
    /// Two for each turn, so that a chain of several filters never overwrites its input.
    results: [Vec<Picture>; 2],
    scratch: ScratchMemory,
}

/// The pictures of one turn.
#[derive(Clone, Copy)]
struct Turn {
    input: DevicePlanes,
    results: [DevicePlanes; 2],
}

impl KernelTimer {
    /// A timer for card `device`; `seed` chooses the noise.
    pub fn open(device: usize, seed: u64) -> Result<KernelTimer, EngineError> {
        let device = Device::open(device)?;
        nvrtc_version()?;
        let cache = Cache::of_user();
        Ok(KernelTimer {
            pictures: None,
            peak: None,
            table: Table::for_card(&device, &cache)?,
            cache,
            seed,
            stream: Stream::new(&device)?,
            device,
        })
    }

    /// The card.
    pub fn device(&self) -> &DeviceInfo {
        &self.device.info
    }

    /// Compiles the kernels of `cases` into the cache on disk, on several threads. [`KernelTimer::time`]
    /// reports errors.
    pub fn compile(&self, cases: &[KernelCase<'_>]) {
        let mut list: Vec<Recipe> = Vec::new();
        for case in cases {
            let more = chain_recipes(case.chain, case.format, &self.context(case)).ok();
            for recipe in more.into_iter().flatten() {
                if !list.contains(&recipe) {
                    list.push(recipe);
                }
            }
        }
        let (device, cache) = (&self.device, &self.cache);
        list.par_iter().for_each(|recipe| {
            let _ = recipe.image(device, cache);
        });
    }

    fn context(&self, case: &KernelCase<'_>) -> SelectContext<'_> {
        SelectContext {
            memory: case.memory,
            block: case.block,
            fuse: case.fuse,
            size: (case.width, case.height),
            card: &self.device.info,
            table: &self.table,
        }
    }

    /// Keeps what was measured on this card as the table by which `auto` chooses, from the next engine on;
    /// returns the file.
    pub fn keep(&self, date: &str, cells: &[TableCell]) -> Result<PathBuf, EngineError> {
        Table::keep(&self.device, &self.cache, date, cells)
    }

    /// Times the kernels of a case.
    pub fn time(&mut self, case: &KernelCase<'_>, effort: KernelEffort) -> Result<KernelTimes, EngineError> {
        self.device.bind()?;
        let textures = case.memory == MemoryVariant::Texture;
        let alignment = if textures { ALIGNMENT } else { 64 };
        let layout = Layout::new(case.format, case.width, case.height, alignment)?;
        if textures {
            self.check_textures(&layout)?;
        }
        let request = Request {
            device: &self.device,
            cache: &self.cache,
            context: self.context(case),
            explanation: RefCell::default(),
        };
        let launch = LaunchPlan::new(case.chain, case.format, &Colour::default(), &request)?;
        for line in request.explanation.take() {
            tracing::info!(target: EXPLAIN_TARGET, "{line}");
        }
        self.hang(&layout, launch.step_count() > 1)?;
        let (turns, scratch) = self.planes_of_turns(&launch, textures)?;
        self.poison()?;
        let steps = launch.step_count();
        // Launches follow each other as in a chain, from frame to frame too.
        let frame = |turn: &Turn, stream: &TrackedStream| -> Result<(), EngineError> {
            for index in 0..steps {
                let source = match index {
                    0 => &turn.input,
                    _ => &turn.results[(index - 1) % 2],
                };
                let buffers = StepBuffers {
                    layout: &layout,
                    source,
                    result: &turn.results[index % 2],
                    scratch: &scratch,
                    stream,
                };
                launch.run(index, &buffers)?;
            }
            Ok(())
        };
        // Once without a graph: a kernel that cannot be launched gives its own error, and code is loaded.
        let stream = TrackedStream::new(self.stream.handle());
        let timed = turns
            .iter()
            .try_for_each(|turn| frame(turn, &stream))
            .and_then(|()| self.stream.synchronise())
            .and_then(|()| self.replays(turns.len(), effort, &|turn, stream| frame(&turns[turn], stream)));
        if timed.is_err() {
            // Launches must not outlive their code and weights.
            let _ = self.stream.synchronise();
        }
        let milliseconds = timed?;
        let last = turns.len() - 1;
        let output = self.download(&layout, (steps - 1) % 2, last)?;
        Ok(KernelTimes {
            milliseconds,
            turns: turns.len(),
            block: launch.block(),
            seed: self.seed + last as u64,
            output,
        })
    }

    /// Milliseconds of copying a picture within the card's memory: by the driver's copy and by a plain
    /// kernel, whose launches overlap as those that convolve do.
    pub fn copies(
        &mut self,
        (format, width, height): (PixelFormat, usize, usize),
        effort: KernelEffort,
    ) -> Result<[Vec<f64>; 2], EngineError> {
        self.device.bind()?;
        let layout = Layout::new(format, width, height, 64)?;
        self.hang(&layout, false)?;
        let copy_words = self.peak()?.function(c"copy_words")?;
        let can_begin_early = self.device.begins_launches_early()?;
        let Some(pictures) = &self.pictures else {
            return Ok([Vec::new(), Vec::new()]);
        };
        let bytes = layout.size();
        let ends = |turn: usize| {
            (
                pictures.inputs[turn].pointer(),
                pictures.results[0][turn].pointer(),
            )
        };
        let by_driver = self.replays(pictures.inputs.len(), effort, &|turn, stream| {
            let (from, to) = ends(turn);
            // SAFETY: both pictures hold `bytes`.
            check("copying within the CUDA device's memory", unsafe {
                sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream.after_all())
            })
        })?;
        let by_kernel = self.replays(pictures.inputs.len(), effort, &|turn, stream| {
            parameters::copy_words(copy_words, stream, can_begin_early, ends(turn), bytes / 16)
        })?;
        Ok([by_driver, by_kernel])
    }

    /// The card's rates of bare multiply-adds.
    pub fn arithmetic(&mut self, effort: KernelEffort) -> Result<ArithmeticRates, EngineError> {
        const THREADS: u32 = 256;
        const ROUNDS: i32 = 1024;
        /// CHAINS of timing/peak.cu.
        const CHAINS: f64 = 8.0;
        self.device.bind()?;
        let blocks = self.device.info.multiprocessors.max(1) * 32;
        let out = self.memory(4 * (blocks * THREADS) as usize)?;
        let architecture = self.device.architecture();
        let names = [
            (c"multiply_adds", 0, 1.0),
            (c"dot_products", 61, 4.0),
            // 16 x 32 x 8 a warp of 32 threads.
            (c"tensor_products", 80, 128.0),
        ];
        let mut rates = [None; 3];
        for (rate, (name, least, each)) in rates.iter_mut().zip(names) {
            if architecture < least {
                continue;
            }
            let function = self.peak()?.function(name)?;
            let times = self.replays(1, effort, &|_, stream| {
                parameters::bare_arithmetic(
                    function,
                    stream.after_all(),
                    (blocks, THREADS),
                    out.pointer(),
                    ROUNDS,
                )
            })?;
            let mut sorted = times;
            sorted.sort_by(f64::total_cmp);
            let operations = f64::from(blocks * THREADS) * f64::from(ROUNDS) * CHAINS * each;
            *rate = sorted
                .get(sorted.len() / 2)
                .map(|milliseconds| operations / (milliseconds / 1e3) / 1e9);
        }
        self.stream.synchronise()?;
        Ok(ArithmeticRates {
            multiply_add: rates[0].unwrap_or(0.0),
            dot_product: rates[1],
            tensor: rates[2],
        })
    }

    fn check_textures(&self, layout: &Layout) -> Result<(), EngineError> {
        let fits = layout.planes().iter().all(|plane| {
            let samples = plane.width * plane.channels;
            let pitch = (4 * samples).next_multiple_of(ALIGNMENT);
            texture::fits(&self.device.info, samples, plane.height, pitch)
        });
        if fits {
            return Ok(());
        }
        let (width, height, _) = self.device.info.max_texture;
        Err(EngineError::Unavailable(format!(
            "frames of {}x{} pixels in {} are beyond this card's textures ({width} samples across, {height} \
             rows)",
            layout.width(),
            layout.height(),
            layout.format()
        )))
    }

    fn memory(&self, bytes: usize) -> Result<DeviceMemory, EngineError> {
        DeviceMemory::try_new(&self.device, bytes)?.ok_or_else(|| self.memory_short(bytes))
    }

    fn memory_short(&self, bytes: usize) -> EngineError {
        EngineError::Device {
            doing: "making room on the card for the pictures to be timed".to_owned(),
            reason: format!(
                "a part of {bytes} bytes is not available; end other programs that use the card, or choose \
                 smaller frames"
            ),
        }
    }

    /// Makes sure that the pictures on the card are of this layout and hold noise.
    fn hang(&mut self, layout: &Layout, is_chain: bool) -> Result<(), EngineError> {
        let fits = |g: &AlternatingPictures| g.layout == *layout && (!is_chain || !g.results[1].is_empty());
        if self.pictures.as_ref().is_some_and(fits) {
            return Ok(());
        }
        self.stream.synchronise()?;
        // The old pictures are freed first, so that the two sets are never held at once.
        self.pictures = None;
        let wanted = TIMES_THE_CACHE * self.device.info.l2_bytes;
        let turns = wanted.div_ceil(2 * layout.size().max(1) as u64) as usize;
        let turns = turns.clamp(TURNS.0, TURNS.1);
        let pictures = |count: usize| {
            let one = |_| {
                let mut picture = Picture::default();
                match picture.fit(&self.device, layout.size())? {
                    true => Ok(picture),
                    false => Err(self.memory_short(layout.size())),
                }
            };
            (0..count).map(one).collect::<Result<Vec<_>, EngineError>>()
        };
        let pictures = AlternatingPictures {
            layout: *layout,
            inputs: pictures(turns)?,
            results: [pictures(turns)?, pictures(if is_chain { turns } else { 0 })?],
            scratch: ScratchMemory::default(),
        };
        // A picture's noise does not depend on the alignment of its rows. A few frames at a time bound the
        // host's memory.
        let (threads, seed) = (rayon::current_num_threads().max(1), self.seed);
        for first in (0..turns).step_by(threads) {
            let frames: Vec<Result<Frame, EngineError>> = (first..turns.min(first + threads))
                .into_par_iter()
                .map(|turn| {
                    let mut frame = Frame::new(*layout, Buffer::unpooled(Pageable.allocate(layout.size())?))?;
                    fill_with_noise(&mut frame, seed + turn as u64);
                    Ok(frame)
                })
                .collect();
            for (frame, picture) in frames.into_iter().zip(&pictures.inputs[first..]) {
                let frame = frame?;
                self.device.bind()?;
                // SAFETY: frame and picture hold `layout.size()` bytes; the copy is done when the next call
                // returns.
                check("uploading noise to the CUDA device", unsafe {
                    sys::cuMemcpyHtoD_v2(picture.pointer(), frame.bytes().as_ptr().cast(), layout.size())
                })?;
            }
        }
        // SAFETY: the context is current. Copies from ordinary memory may still be in flight when their call
        // returns.
        check("uploading noise to the CUDA device", unsafe {
            sys::cuCtxSynchronize()
        })?;
        self.pictures = Some(pictures);
        Ok(())
    }

    /// The pictures of each turn, and the intermediate ones.
    fn planes_of_turns(
        &mut self,
        launch: &LaunchPlan,
        textures: bool,
    ) -> Result<(Vec<Turn>, Scratch), EngineError> {
        let short = self.memory_short(0);
        let device = &self.device;
        let Some(pictures) = &mut self.pictures else {
            return Err(short);
        };
        let layout = pictures.layout;
        let texel = textures.then(|| sample_texel(layout.format()));
        let whole = Arrangement::of(&layout);
        let mut turns = Vec::with_capacity(pictures.inputs.len());
        for index in 0..pictures.inputs.len() {
            let input = pictures.inputs[index].device_planes(device, &whole, texel)?;
            let first = pictures.results[0][index].device_planes(device, &whole, texel)?;
            let second = match pictures.results[1].get_mut(index) {
                Some(picture) => picture.device_planes(device, &whole, texel)?,
                None => first,
            };
            turns.push(Turn {
                input,
                results: [first, second],
            });
        }
        let needs = launch.scratch_needs();
        let scratch = pictures.scratch.fit(device, &needs, &layout, textures);
        let scratch = scratch.map_err(|error| match error {
            ScratchError::Shortage(_) => short,
            ScratchError::Driver(error) => error,
        })?;
        Ok((turns, scratch))
    }

    fn poison(&self) -> Result<(), EngineError> {
        let Some(pictures) = &self.pictures else {
            return Ok(());
        };
        for picture in pictures.results.iter().flatten() {
            // SAFETY: the picture holds `layout.size()` bytes.
            check("spoiling old results on the CUDA device", unsafe {
                let bytes = pictures.layout.size();
                sys::cuMemsetD8Async(picture.pointer(), POISON, bytes, self.stream.handle())
            })?;
        }
        self.stream.synchronise()
    }

    fn download(&self, layout: &Layout, side: usize, turn: usize) -> Result<Frame, EngineError> {
        let buffer = Buffer::unpooled(Pageable.allocate(layout.size())?);
        let mut frame = Frame::new(*layout, buffer)?;
        if let Some(pictures) = &self.pictures {
            let from = pictures.results[side][turn].pointer();
            // SAFETY: picture and frame hold `layout.size()` bytes; this copy is done when its call returns.
            check("downloading a result from the CUDA device", unsafe {
                sys::cuMemcpyDtoH_v2(frame.bytes_mut().as_mut_ptr().cast(), from, layout.size())
            })?;
        }
        Ok(frame)
    }

    fn peak(&mut self) -> Result<&Module, EngineError> {
        if self.peak.is_none() {
            let recipe = Recipe {
                source: Source::Peak,
                parameters: Vec::new(),
            };
            let image = recipe.image(&self.device, &self.cache)?;
            self.peak = Some(Module::load(&self.device, &image)?);
        }
        self.peak.as_ref().ok_or_else(|| self.memory_short(0))
    }

    /// Milliseconds of one turn, each from a replay of a graph of all turns.
    fn replays(
        &self,
        turns: usize,
        effort: KernelEffort,
        work: &dyn Fn(usize, &TrackedStream) -> Result<(), EngineError>,
    ) -> Result<Vec<f64>, EngineError> {
        let pass = |passes: usize| -> Result<(), EngineError> {
            let stream = TrackedStream::new(self.stream.handle());
            (0..passes * turns).try_for_each(|index| work(index % turns, &stream))
        };
        let mut passes = 1;
        let mut graph = Graph::capture(&self.stream, || pass(passes))?;
        // The first replay uploads the graph.
        graph.launch(&self.stream)?;
        let once = self.timed(&graph, 1)?[0];
        let more = (GRAPH_SECONDS / once.max(1e-7)).ceil() as usize;
        let more = more.min((GRAPH_FRAMES / turns).max(1));
        if more > 1 {
            passes = more;
            graph = Graph::capture(&self.stream, || pass(passes))?;
            graph.launch(&self.stream)?;
        }
        let seconds = self.timed(&graph, 1)?[0].max(1e-7);
        let warm_up = (WARM_UP / seconds).ceil().min(1000.0) as usize;
        self.timed(&graph, warm_up.max(1))?;
        let rounds = (effort.time.as_secs_f64() / seconds) as usize;
        let rounds = rounds.clamp(effort.rounds.0.max(1), effort.rounds.1.max(1));
        let times = self.timed(&graph, rounds)?;
        let frames = (passes * turns) as f64;
        Ok(times.into_iter().map(|seconds| seconds * 1e3 / frames).collect())
    }

    /// Seconds of each of `count` replays, one after another without a pause.
    fn timed(&self, graph: &Graph, count: usize) -> Result<Vec<f64>, EngineError> {
        let marks = (0..=count).map(|_| Event::new(&self.device));
        let marks: Vec<Event> = marks.collect::<Result<_, _>>()?;
        marks[0].record(&self.stream)?;
        for mark in &marks[1..] {
            graph.launch(&self.stream)?;
            mark.record(&self.stream)?;
        }
        self.stream.synchronise()?;
        let pairs = marks.windows(2);
        pairs.map(|pair| pair[1].seconds_since(&pair[0])).collect()
    }
}

impl Drop for KernelTimer {
    fn drop(&mut self) {
        // Nothing may be freed while a kernel still uses it, after an error either.
        if self.device.bind().is_ok() {
            let _ = self.stream.synchronise();
        }
    }
}
