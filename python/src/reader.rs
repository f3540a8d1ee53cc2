//! Videos and images, read and filtered on threads of their own while Python works on the last frame.
//!
//! ```text
//!  pipeline's threads: source ─> engine ─> Delivery ──queue──> next() of the Python loop
//! ```
//!
//! The queue is short, so that the pipeline waits for the loop; whoever leaves the loop ends the pipeline.

use crate::card::RgbMaker;
use crate::failure::{Failure, in_python};
use crate::filtering;
use crate::picture::Picture;
use crate::recipe::{Recipe, caveats, no_luma_on_card};
use framepipe::engine::cuda::{Cuda, CudaOptions, keeping_context};
use framepipe::engine::none::NoFilter;
use framepipe::engine::{Engine, luma};
use framepipe::frame::{Frame, Point};
use framepipe::pipeline::{self, Job, Outcome, PipelineError, PipelineOptions, Progress, Stop};
use framepipe::sink::convert::{Choose, converting, info_after};
use framepipe::sink::{AnySink, Flow, Sink, SinkError, Written};
use framepipe::source::images::{ImageSourceOptions, listing};
use framepipe::source::range::{TimeRange, within};
use framepipe::source::video::{Consent, Decoders, Place, VideoSourceOptions};
use framepipe::source::{AnySource, StreamInfo, animation, images, y4m};
use framepipe::{Chain, PixelFormat};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Frames that wait for the loop.
const QUEUE: usize = 2;

/// How long a wait goes on before signals are looked after.
const PATIENCE: Duration = Duration::from_millis(50);

/// Hands frames to whoever reads.
struct Delivery(SyncSender<Frame>);

impl Sink for Delivery {
    /// Those in the queue, and the one that is copied out of it.
    fn held_buffers(&self) -> usize {
        QUEUE + 1
    }

    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        Ok(match frame.metadata.stands_in {
            true => Flow::More,
            false => self.0.send(frame).map_or(Flow::Closed, |()| Flow::More),
        })
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        Ok(Written::default())
    }
}

/// A pipeline that has not ended.
struct Running {
    frames: Receiver<Frame>,
    thread: JoinHandle<Result<Outcome, PipelineError>>,
    stop: Stop,
}

impl Running {
    /// Waits for the end; what was read is an error or what there is to say.
    fn end(self) -> Result<Vec<String>, Failure> {
        drop(self.frames);
        match self.thread.join() {
            Ok(outcome) => Ok(outcome?.remarks.warning_texts()),
            Err(_) => Err(Failure::error("the reader's thread broke down; please report it")),
        }
    }
}

/// What came of a wait for a frame.
enum Step {
    Frame(Box<Frame>),
    Nothing,
    End(Option<Running>),
}

/// Frames of a video or of images, filtered.
#[pyclass(frozen, module = "framepipe._framepipe")]
pub(crate) struct Reader {
    running: Mutex<Option<Running>>,
    /// What is known of the frames, as they come out.
    pub(crate) info: StreamInfo,
    /// What was damaged or lost, known after the last frame, or what there is to say of the masks.
    warnings: Mutex<Vec<String>>,
    /// The process whose threads read.
    process: u32,
    /// For frames on a card.
    rgb: RgbMaker,
}

/// Opens a video, an animation, or images; a video for frames on a card is decoded there if it can be and
/// `range` of it is long.
fn open_source(
    path: &Path,
    card: Option<usize>,
    range: TimeRange,
    strict: bool,
) -> Result<AnySource, Failure> {
    if listing::names_images(path) {
        let mut options = ImageSourceOptions::default();
        options.strict = strict;
        return Ok(AnySource::indexed(images::open(path, &options)?));
    }
    if path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("y4m"))
    {
        return Ok(AnySource::Stream(y4m::open(path, None)?));
    }
    let mut options = VideoSourceOptions::default();
    options.strict = strict;
    options.decoders = card.map(|card| Decoders {
        place: Place::Cards(vec![card]),
        count: None,
        memory: None,
        range,
        consent: Some(Consent::if_long()),
        is_expected: true,
    });
    Ok(AnySource::Stream(animation::open(path, &options)?))
}

/// The engine for frames such as `info` describes, and what there is to say of the masks.
fn start(
    recipe: &Recipe,
    place: &FramePlace,
    info: &StreamInfo,
) -> Result<(Box<dyn Engine>, Vec<String>), Failure> {
    let chain = match (recipe.is_empty(), place) {
        (true, FramePlace::Host { .. }) => return Ok((Box::new(NoFilter::default()), Vec::new())),
        // Which brings to the card what was not decoded there.
        (true, FramePlace::Card(_)) => Chain::parse("identity")?,
        (false, _) => recipe.chain()?,
    };
    // Tells now what the engine would tell at the first frame.
    luma::integer_plan(&chain, info.format, &info.colour)?;
    let caveats = caveats(&chain);
    let engine = match place {
        FramePlace::Host { engine } => filtering::engine(engine, chain, recipe.threads())?,
        FramePlace::Card(_) if luma::filtered_format(info.format, &chain.planes) != info.format => {
            return Err(no_luma_on_card("the frames lie"));
        }
        FramePlace::Card(device) => {
            let options = CudaOptions {
                device: *device,
                keeps_results: true,
                samples_times: true,
                ..CudaOptions::default()
            };
            Box::new(Cuda::new(chain, options)?)
        }
    };
    Ok((engine, caveats))
}

/// Where the frames lie that come out.
enum FramePlace {
    /// In the host's memory, filtered by an engine.
    Host { engine: String },
    /// On the card of that number, where they are filtered.
    Card(usize),
}

impl FramePlace {
    /// Reads Python's words.
    fn new(device: &str, engine: &str, format: Option<&str>) -> Result<FramePlace, Failure> {
        filtering::check_engine(engine)?;
        if matches!(device, "auto" | "cpu") {
            return Ok(FramePlace::Host {
                engine: engine.to_owned(),
            });
        }
        let number = match device.split_once(':') {
            None if device == "cuda" => Some(0),
            Some(("cuda", number)) if number.bytes().all(|b| b.is_ascii_digit()) => number.parse().ok(),
            _ => None,
        };
        match number {
            None => Err(Failure::value(format!(
                "'{device}' is no device; use auto, cpu, cuda, or cuda:1 for another card"
            ))),
            Some(_) if !matches!(engine, "auto" | "cuda") => Err(Failure::value(format!(
                "frames on a card are filtered there, and not by the engine '{engine}'; leave it out, or \
                 read to the host's memory"
            ))),
            Some(_) if format.is_some() => Err(Failure::value(
                "formats are converted by the processor, and the frames lie on a card; leave `format` out, \
                 or read to the host's memory",
            )),
            Some(number) => Ok(FramePlace::Card(number)),
        }
    }

    fn card(&self) -> Option<usize> {
        match self {
            FramePlace::Host { .. } => None,
            FramePlace::Card(number) => Some(*number),
        }
    }
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (
        path, filters, *, border, planes, start, end, engine, device, threads, format, strict
    ))]
    // Python's arguments come one by one, and as values.
    #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        filters: Vec<String>,
        border: &str,
        planes: &str,
        start: Option<&str>,
        end: Option<&str>,
        engine: &str,
        device: &str,
        threads: i64,
        format: Option<&str>,
        strict: bool,
    ) -> Result<Reader, Failure> {
        let recipe = Recipe::new(filters, border, planes, threads)?;
        let place = FramePlace::new(device, engine, format)?;
        let point = |text: Option<&str>| text.map(str::parse::<Point>).transpose();
        let range = TimeRange::new(point(start)?, point(end)?, None, None)?;
        let format = format.map(str::parse::<PixelFormat>).transpose()?;
        py.detach(|| keeping_context(|| Reader::open(&path, &recipe, &place, range, format, strict)))
    }

    /// The next picture; `None` behind the last one.
    fn next(&self, py: Python<'_>) -> Result<Option<Picture>, Failure> {
        if std::process::id() != self.process {
            return Err(Failure::error(
                "this reader was opened before the process forked, and its threads stayed behind; open it \
                 in the process that reads",
            ));
        }
        loop {
            match py.detach(|| self.step()) {
                Step::Frame(frame) => {
                    return Picture::taken(py, *frame, self.info.time_base, &self.rgb).map(Some);
                }
                Step::Nothing => py.check_signals()?,
                Step::End(None) => return Ok(None),
                Step::End(Some(running)) => {
                    let warnings = py.detach(|| running.end())?;
                    self.warnings().extend(warnings);
                    return Ok(None);
                }
            }
        }
    }

    /// Ends the reading; frames that were not read are dropped.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.abandon());
    }

    /// What there is to say so far; each sentence once.
    fn take_warnings(&self) -> Vec<String> {
        let warnings = std::mem::take(&mut *self.warnings());
        warnings.iter().map(|warning| in_python(warning)).collect()
    }

    /// FFmpeg's name of the frames' format.
    #[getter]
    fn format(&self) -> &'static str {
        self.info.format.name()
    }

    /// Width and height of the first frame.
    #[getter]
    fn size(&self) -> (usize, usize) {
        (self.info.width, self.info.height)
    }

    /// Frames a second, as a fraction.
    #[getter]
    fn rate(&self) -> Option<(i32, i32)> {
        self.info.frame_rate.map(|rate| (rate.num, rate.den))
    }

    /// About how many frames will come. A range is counted by the rate, which may find none.
    #[getter]
    fn frames(&self) -> Option<u64> {
        self.info.frames.filter(|&frames| frames > 0)
    }

    /// What is read, and how, in words.
    #[getter]
    fn description(&self) -> &str {
        &self.info.description
    }
}

impl Reader {
    fn open(
        path: &Path,
        recipe: &Recipe,
        place: &FramePlace,
        range: TimeRange,
        format: Option<PixelFormat>,
        strict: bool,
    ) -> Result<Reader, Failure> {
        let source = within(open_source(path, place.card(), range, strict)?, range)?;
        let (engine, caveats) = start(recipe, place, source.info())?;
        let (sender, frames) = sync_channel(QUEUE);
        let mut sink = AnySink::stream(Delivery(sender));
        let mut info = source.info().clone();
        if let Some(to) = format {
            let choose: Choose = Arc::new(move |_, _| to);
            sink = converting(sink, path.display().to_string(), &info, choose.clone(), strict);
            info = info_after(&info, &choose);
        }
        let mut options = PipelineOptions::default();
        options.strict = strict;
        let job = Job {
            source,
            engine,
            sink,
            options,
        };
        let stop = Stop::new();
        let of_thread = stop.clone();
        let thread = std::thread::Builder::new()
            .name("framepipe-read".to_owned())
            .spawn(move || pipeline::run(job, &of_thread, &Progress::new()))
            .map_err(|cause| Failure::error(format!("cannot start a thread to read with: {cause}")))?;
        Ok(Reader {
            running: Mutex::new(Some(Running { frames, thread, stop })),
            info,
            warnings: Mutex::new(caveats),
            process: std::process::id(),
            rgb: RgbMaker::default(),
        })
    }

    /// Waits a moment for a frame.
    fn step(&self) -> Step {
        let mut running = self.running();
        let Some(pipeline) = &*running else {
            return Step::End(None);
        };
        match pipeline.frames.recv_timeout(PATIENCE) {
            Ok(frame) => Step::Frame(Box::new(frame)),
            Err(RecvTimeoutError::Timeout) => Step::Nothing,
            Err(RecvTimeoutError::Disconnected) => Step::End(running.take()),
        }
    }

    fn abandon(&self) {
        if std::process::id() != self.process {
            // Its threads are another process's. One of them may have been in here.
            let running = self.running.try_lock();
            std::mem::forget(running.ok().and_then(|mut running| running.take()));
            return;
        }
        let running = self.running().take();
        if let Some(running) = running {
            running.stop.abandon();
            // It was abandoned, which is no news.
            let _ = running.end();
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        // Nothing in there breaks half-way.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warnings(&self) -> MutexGuard<'_, Vec<String>> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.abandon();
    }
}
