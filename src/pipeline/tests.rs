//! The pipeline with made-up stages: order, ends of every kind, failures in every place, memory.

use super::*;
use crate::engine::{Engine, EngineError, Ranges};
use crate::frame::{
    AllocationError, Allocator, Buffer, Frame, Layout, Memory, Pageable, PixelFormat, Remarks,
};
use crate::report::{Activity, Completion, Recording, Spans, Stage};
use crate::sink::{AnySink, Flow, IndexedSink, Sink, SinkError, Written};
use crate::source::{AnySource, IndexedSource, Source, SourceError, StreamInfo, Supply};
use crossbeam_channel::bounded;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, current, sleep};
use std::time::Duration;

const SIZE: usize = 64;

fn info() -> StreamInfo {
    StreamInfo::new(PixelFormat::GRAY, SIZE, 1).described("made-up frames")
}

fn layout() -> Layout {
    Layout::new(PixelFormat::from_name("gray").unwrap(), SIZE, 1, 1).unwrap()
}

fn paint(index: u64, buffer: Buffer) -> Frame {
    let mut frame = Frame::new(layout(), buffer).unwrap();
    frame.bytes_mut().fill(index as u8);
    frame
}

/// What happens at one frame.
#[derive(Clone, Copy, Default)]
struct FrameFault {
    fail_at: Option<u64>,
    panic_at: Option<u64>,
    delay: Duration,
    /// Sleep up to `delay`, differing from frame to frame.
    uneven: bool,
}

impl FrameFault {
    /// True if the frame is to fail.
    fn meet(&self, index: u64) -> bool {
        let delay = if self.uneven {
            self.delay.mul_f64((index.wrapping_mul(7919) % 13) as f64 / 13.0)
        } else {
            self.delay
        };
        sleep(delay);
        assert!(self.panic_at != Some(index), "made-up panic");
        self.fail_at == Some(index)
    }
}

fn io_error() -> std::io::Error {
    std::io::Error::other("made-up failure")
}

struct FakeSource {
    info: StreamInfo,
    count: u64,
    at: u64,
    fault: FrameFault,
    /// Hangs at this frame until the run is abandoned, as a silent pipe does.
    silent_at: Option<u64>,
}

impl FakeSource {
    fn new(count: u64, fault: FrameFault) -> FakeSource {
        FakeSource {
            info: info(),
            count,
            at: 0,
            fault,
            silent_at: None,
        }
    }
}

impl Source for FakeSource {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        if self.at == self.count {
            return Ok(None);
        }
        if self.silent_at == Some(self.at) {
            let _ = supply.stop.recv();
            return Err(crate::frame::Stopped.into());
        }
        let frame = paint(self.at, supply.take()?);
        if self.fault.meet(self.at) {
            return Err(SourceError::Io {
                path: "made-up".to_owned(),
                cause: io_error(),
            });
        }
        self.at += 1;
        Ok(Some(frame))
    }

    fn remarks(&mut self) -> Remarks {
        Remarks::warnings([format!("{} frames were made up", self.at)])
    }
}

struct FakeIndexed {
    info: StreamInfo,
    count: u64,
    fault: FrameFault,
}

impl IndexedSource for FakeIndexed {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn len(&self) -> u64 {
        self.count
    }

    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        if self.fault.meet(index) {
            return Err(SourceError::Invalid {
                path: format!("made-up {index}"),
                problem: "it is not real".to_owned(),
            });
        }
        Ok(paint(index, buffer))
    }
}

/// Counts what it has given out and not got back.
#[derive(Default)]
struct Counting {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct Counted(Box<dyn Memory>, Arc<AtomicUsize>);

impl Memory for Counted {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.bytes().len(), Ordering::SeqCst);
    }
}

impl Allocator for Counting {
    fn allocate(&self, len: usize) -> Result<Box<dyn Memory>, AllocationError> {
        let memory = Pageable.allocate(len)?;
        let now = self.now.fetch_add(len, Ordering::SeqCst) + len;
        self.most.fetch_max(now, Ordering::SeqCst);
        Ok(Box::new(Counted(memory, self.now.clone())))
    }
}

struct Copying {
    depth: usize,
    fault: FrameFault,
    flying: VecDeque<(Frame, Buffer)>,
    memory: Arc<Counting>,
    /// Loses this frame.
    lose: Option<u64>,
    most_in_flight: Arc<AtomicUsize>,
    profiler: Option<Arc<Profiler>>,
}

/// Writes down each thread's ranges.
#[derive(Debug, Default)]
struct Profiler(Mutex<Vec<(ThreadId, Option<Range>)>>);

/// A range's name and frame.
type Range = (&'static str, u64);

impl Ranges for Profiler {
    fn begin(&self, name: &'static std::ffi::CStr, frame: u64) {
        let name = name.to_str().unwrap();
        let entry = (current().id(), Some((name, frame)));
        self.0.lock().unwrap().push(entry);
    }
    fn end(&self) {
        let entry = (current().id(), None);
        self.0.lock().unwrap().push(entry);
    }
}

impl Copying {
    fn new(depth: usize, fault: FrameFault) -> Copying {
        Copying {
            depth,
            fault,
            flying: VecDeque::new(),
            memory: Arc::default(),
            lose: None,
            most_in_flight: Arc::default(),
            profiler: None,
        }
    }
}

impl Engine for Copying {
    fn name(&self) -> &'static str {
        "copy"
    }
    fn description(&self) -> String {
        "copies".to_owned()
    }
    fn depth(&self) -> usize {
        self.depth
    }
    fn ranges(&self) -> Option<Arc<dyn Ranges>> {
        let profiler = self.profiler.clone()?;
        Some(profiler)
    }
    fn input_allocator(&self) -> Arc<dyn Allocator> {
        self.memory.clone()
    }
    fn output_allocator(&self) -> Arc<dyn Allocator> {
        self.memory.clone()
    }
    fn submit(&mut self, input: Frame, output: Buffer, _: usize) -> Result<(), EngineError> {
        if self.fault.meet(input.sequence) {
            return Err(EngineError::Device {
                doing: "copying".to_owned(),
                reason: "made-up failure".to_owned(),
            });
        }
        if self.lose != Some(input.sequence) {
            self.flying.push_back((input, output));
        }
        assert!(self.flying.len() <= self.depth);
        self.most_in_flight.fetch_max(self.flying.len(), Ordering::SeqCst);
        Ok(())
    }
    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        let Some((input, buffer)) = self.flying.pop_front() else {
            return Ok(None);
        };
        let mut output = Frame::new(*input.layout(), buffer)?;
        output.bytes_mut().copy_from_slice(input.bytes());
        output.sequence = input.sequence;
        output.born = input.born;
        Ok(Some(output))
    }
}

/// What became of a sink.
#[derive(Default)]
struct SinkLog {
    frames: Mutex<Vec<u64>>,
    finished: AtomicBool,
}

impl SinkLog {
    fn write(&self, frame: &Frame) {
        assert!(frame.bytes().iter().all(|&b| b == frame.sequence as u8));
        self.frames.lock().unwrap().push(frame.sequence);
    }
    fn frames(&self) -> Vec<u64> {
        self.frames.lock().unwrap().clone()
    }
    fn finish(&self) -> Result<Written, SinkError> {
        self.finished.store(true, Ordering::SeqCst);
        Ok(Written {
            description: "nowhere".to_owned(),
            ..Written::default()
        })
    }
}

struct FakeSink {
    log: Arc<SinkLog>,
    fault: FrameFault,
    closed_at: Option<u64>,
    fail_to_finish: bool,
}

impl Sink for FakeSink {
    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        if self.closed_at == Some(frame.sequence) {
            return Ok(Flow::Closed);
        }
        if self.fault.meet(frame.sequence) {
            return Err(SinkError::Io {
                path: "made-up".to_owned(),
                cause: io_error(),
            });
        }
        self.log.write(&frame);
        Ok(Flow::More)
    }
    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        if self.fail_to_finish {
            return Err(SinkError::Io {
                path: "made-up".to_owned(),
                cause: io_error(),
            });
        }
        self.log.finish()
    }
}

struct FakeIndexedSink {
    log: Arc<SinkLog>,
    fault: FrameFault,
}

impl IndexedSink for FakeIndexedSink {
    fn write(&self, frame: Frame) -> Result<(), SinkError> {
        if self.fault.meet(frame.sequence) {
            return Err(SinkError::Io {
                path: "made-up".to_owned(),
                cause: io_error(),
            });
        }
        self.log.write(&frame);
        Ok(())
    }
    fn finish(&self) -> Result<Written, SinkError> {
        self.log.finish()
    }
}

/// A run in the making, its stages flawless and fast.
struct Setup {
    source: AnySource,
    engine: Copying,
    sink: AnySink,
    log: Arc<SinkLog>,
    stop: Stop,
    progress: Arc<Progress>,
    options: PipelineOptions,
}

fn stream(count: u64) -> Setup {
    let log = Arc::new(SinkLog::default());
    Setup {
        source: AnySource::Stream(Box::new(FakeSource::new(count, FrameFault::default()))),
        engine: Copying::new(2, FrameFault::default()),
        sink: sink(&log, |_| {}),
        log,
        stop: Stop::new(),
        progress: Arc::new(Progress::new()),
        options: PipelineOptions {
            queue: 2,
            source_workers: 5,
            sink_workers: 4,
            strict: false,
            recording: Recording::default(),
        },
    }
}

fn sink(log: &Arc<SinkLog>, change: impl FnOnce(&mut FakeSink)) -> AnySink {
    let mut sink = FakeSink {
        log: log.clone(),
        fault: FrameFault::default(),
        closed_at: None,
        fail_to_finish: false,
    };
    change(&mut sink);
    AnySink::Stream(Box::new(sink))
}

fn indexed_source(count: u64, fault: FrameFault) -> AnySource {
    AnySource::Indexed(Arc::new(FakeIndexed {
        info: info(),
        count,
        fault,
    }))
}

fn indexed_sink(log: &Arc<SinkLog>, fault: FrameFault) -> AnySink {
    AnySink::Indexed(Arc::new(FakeIndexedSink {
        log: log.clone(),
        fault,
    }))
}

impl Setup {
    /// Runs to the end; a hang fails the test.
    fn run(self) -> Result<Outcome, PipelineError> {
        let (done, result) = bounded(1);
        std::thread::spawn(move || {
            let job = Job {
                source: self.source,
                engine: Box::new(self.engine),
                sink: self.sink,
                options: self.options,
            };
            let _ = done.send(run(job, &self.stop, &self.progress));
        });
        result
            .recv_timeout(Duration::from_secs(20))
            .expect("the run hangs")
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_stream_arrives_whole_and_in_order() {
    let setup = stream(100);
    let (log, progress, most) = (
        setup.log.clone(),
        setup.progress.clone(),
        setup.engine.most_in_flight.clone(),
    );
    let outcome = setup.run().unwrap();
    assert_eq!(log.frames(), (0..100).collect::<Vec<_>>());
    assert!(log.finished.load(Ordering::SeqCst));
    assert_eq!(outcome.measurements.frames, 100);
    assert_eq!(outcome.measurements.ending, Completion::Complete);
    assert_eq!(outcome.remarks.warning_texts(), ["100 frames were made up"]);
    for stage in Stage::ALL {
        assert_eq!(outcome.measurements.stage(stage).frames, 100);
        assert_eq!(outcome.measurements.stage(stage).bytes, 100 * SIZE as u64);
        assert_eq!(progress.frames(stage), 100);
    }
    assert_eq!(outcome.measurements.end_to_end.summary().unwrap().count, 100);
    assert!(most.load(Ordering::SeqCst) <= 2);
}

#[test]
fn a_strict_run_fails_for_what_the_source_warns_of() {
    let mut setup = stream(100);
    setup.options.strict = true;
    let log = setup.log.clone();
    let error = setup.run().unwrap_err();
    assert!(matches!(error, PipelineError::Strict { .. }), "{error}");
    assert!(
        error.to_string().starts_with("100 frames were made up"),
        "{error}"
    );
    assert!(!log.finished.load(Ordering::SeqCst));
}

#[test]
fn many_workers_of_uneven_speed_keep_the_order() {
    let mut setup = stream(0);
    setup.source = indexed_source(
        200,
        FrameFault {
            delay: ms(6),
            uneven: true,
            ..FrameFault::default()
        },
    );
    let log = setup.log.clone();
    let outcome = setup.run().unwrap();
    assert_eq!(log.frames(), (0..200).collect::<Vec<_>>());
    assert_eq!(outcome.measurements.stage(Stage::Decode).workers, 5);
    assert!(outcome.measurements.stage(Stage::Decode).busy > ms(100));
}

#[test]
fn a_slow_first_frame_does_not_starve_of_buffers() {
    // The first worker takes so long that the others could fill every buffer with frames that are not due
    // yet.
    let slow_first = FrameFault::default();
    let mut setup = stream(0);
    struct SlowFirst(FakeIndexed);
    impl IndexedSource for SlowFirst {
        fn info(&self) -> &StreamInfo {
            &self.0.info
        }
        fn len(&self) -> u64 {
            self.0.count
        }
        fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
            if index.is_multiple_of(50) {
                sleep(ms(200));
            }
            self.0.read(index, buffer)
        }
    }
    setup.source = AnySource::Indexed(Arc::new(SlowFirst(FakeIndexed {
        info: info(),
        count: 120,
        fault: slow_first,
    })));
    setup.options.queue = 1;
    let log = setup.log.clone();
    setup.run().unwrap();
    assert_eq!(log.frames(), (0..120).collect::<Vec<_>>());
}

#[test]
fn an_indexed_sink_gets_every_frame_once() {
    let mut setup = stream(0);
    setup.source = indexed_source(150, FrameFault::default());
    setup.sink = indexed_sink(
        &setup.log,
        FrameFault {
            delay: ms(4),
            uneven: true,
            ..FrameFault::default()
        },
    );
    let log = setup.log.clone();
    let outcome = setup.run().unwrap();
    let mut frames = log.frames();
    frames.sort_unstable();
    assert_eq!(frames, (0..150).collect::<Vec<_>>());
    assert!(log.finished.load(Ordering::SeqCst));
    assert_eq!(outcome.written.description, "nowhere");
    assert_eq!(outcome.measurements.stage(Stage::Encode).workers, 4);
}

#[test]
fn a_slow_sink_keeps_the_memory_bounded() {
    let mut setup = stream(120);
    setup.sink = sink(&setup.log, |s| s.fault.delay = ms(5));
    let (most, now) = (setup.engine.memory.most.clone(), setup.engine.memory.now.clone());
    let budget = Budget::new(2, 2, (1, 0), (1, 0));
    let outcome = setup.run().unwrap();
    let memory = outcome.measurements.memory;
    assert_eq!(memory.input_buffers, budget.input_buffers);
    assert_eq!(memory.output_buffers, budget.output_buffers);
    let bytes = memory.input_bytes + memory.output_bytes;
    assert_eq!(bytes, most.load(Ordering::SeqCst));
    // Both queues are full; a few buffers that no stage came to take were never allocated.
    let all = budget.bytes(SIZE, SIZE);
    assert!(
        (all - 4 * SIZE as u128..=all).contains(&(bytes as u128)),
        "{bytes}"
    );
    assert_eq!(now.load(Ordering::SeqCst), 0, "buffers were leaked");
    // It is the sink that limits, and the clocks say so.
    let limit = crate::report::Limit::find(&outcome.measurements, None).unwrap();
    assert_eq!(limit.stage, Stage::Encode, "{limit:?}");
    assert!(outcome.measurements.stage(Stage::Decode).output_wait > outcome.measurements.wall / 2);
    assert!(outcome.measurements.stage(Stage::Engine).output_wait > outcome.measurements.wall / 2);
}

#[test]
fn a_slow_source_is_named_as_the_limit() {
    let mut setup = stream(0);
    setup.source = AnySource::Stream(Box::new(FakeSource::new(
        60,
        FrameFault {
            delay: ms(3),
            ..FrameFault::default()
        },
    )));
    let outcome = setup.run().unwrap();
    let limit = crate::report::Limit::find(&outcome.measurements, None).unwrap();
    assert_eq!(limit.stage, Stage::Decode, "{limit:?}");
    assert!(outcome.measurements.stage(Stage::Engine).input_wait > outcome.measurements.wall / 2);
    assert!(outcome.measurements.stage(Stage::Encode).input_wait > outcome.measurements.wall / 2);
}

#[test]
fn a_failing_source_is_the_cause_and_nothing_is_finished() {
    let fault = FrameFault {
        fail_at: Some(30),
        ..FrameFault::default()
    };
    for source in [
        AnySource::Stream(Box::new(FakeSource::new(100, fault)) as Box<dyn Source>),
        indexed_source(100, fault),
    ] {
        for many in [false, true] {
            let mut setup = stream(0);
            setup.source = match &source {
                AnySource::Stream(_) => AnySource::Stream(Box::new(FakeSource::new(100, fault))),
                AnySource::Indexed(source) => AnySource::Indexed(source.clone()),
            };
            if many {
                setup.sink = indexed_sink(&setup.log, FrameFault::default());
            }
            let log = setup.log.clone();
            let error = setup.run().unwrap_err();
            assert!(matches!(error, PipelineError::Source(_)), "{error:?}");
            assert!(!log.finished.load(Ordering::SeqCst));
        }
    }
}

#[test]
fn a_failing_engine_is_the_cause_and_names_the_frame() {
    let mut setup = stream(100);
    setup.engine.fault.fail_at = Some(17);
    let log = setup.log.clone();
    let error = setup.run().unwrap_err();
    assert!(
        matches!(error, PipelineError::Engine { sequence: 17, .. }),
        "{error:?}"
    );
    assert!(!log.finished.load(Ordering::SeqCst));
}

#[test]
fn a_failing_sink_is_the_cause_however_many_workers_there_are() {
    let fault = FrameFault {
        fail_at: Some(20),
        delay: ms(1),
        ..FrameFault::default()
    };
    for many in [false, true] {
        let mut setup = stream(1000);
        setup.sink = if many {
            indexed_sink(&setup.log, fault)
        } else {
            sink(&setup.log, |s| s.fault = fault)
        };
        let log = setup.log.clone();
        let error = setup.run().unwrap_err();
        assert!(matches!(error, PipelineError::Sink(_)), "{error:?}");
        assert!(!log.finished.load(Ordering::SeqCst));
    }
}

#[test]
fn a_sink_that_cannot_finish_fails_the_run() {
    let mut setup = stream(3);
    setup.sink = sink(&setup.log, |s| s.fail_to_finish = true);
    let error = setup.run().unwrap_err();
    assert!(matches!(error, PipelineError::Sink(_)), "{error:?}");
}

#[test]
fn a_panic_in_any_stage_is_an_error_that_names_the_stage() {
    let fault = FrameFault {
        panic_at: Some(11),
        ..FrameFault::default()
    };
    type Change = fn(&mut Setup, FrameFault);
    let changes: [(Stage, Change); 5] = [
        (Stage::Decode, |s, f| {
            s.source = AnySource::Stream(Box::new(FakeSource::new(50, f)));
        }),
        (Stage::Decode, |s, f| s.source = indexed_source(50, f)),
        (Stage::Engine, |s, f| s.engine.fault = f),
        (Stage::Encode, |s, f| s.sink = sink(&s.log, |k| k.fault = f)),
        (Stage::Encode, |s, f| s.sink = indexed_sink(&s.log, f)),
    ];
    for (expected, change) in changes {
        let mut setup = stream(50);
        change(&mut setup, fault);
        let log = setup.log.clone();
        match setup.run().unwrap_err() {
            PipelineError::Panicked { stage, message } => {
                assert_eq!(stage, expected);
                assert_eq!(message, "made-up panic");
            }
            other => panic!("{other:?}"),
        }
        assert!(!log.finished.load(Ordering::SeqCst));
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_run_well() {
    for source in [None, Some(indexed_source(u64::MAX, FrameFault::default()))] {
        let mut setup = stream(u64::MAX);
        if let Some(source) = source {
            setup.source = source;
        }
        setup.sink = sink(&setup.log, |s| s.closed_at = Some(12));
        let log = setup.log.clone();
        let outcome = setup.run().unwrap();
        assert_eq!(outcome.measurements.ending, Completion::Closed);
        assert_eq!(outcome.measurements.frames, 12);
        assert_eq!(log.frames(), (0..12).collect::<Vec<_>>());
        assert!(log.finished.load(Ordering::SeqCst));
    }
}

/// Calls `act` once `frames` frames are written.
fn when_written(setup: &Setup, frames: u64, act: impl FnOnce(&Stop) + Send + 'static) {
    let (stop, progress) = (setup.stop.clone(), setup.progress.clone());
    std::thread::spawn(move || {
        while progress.frames(Stage::Encode) < frames {
            sleep(ms(1));
        }
        act(&stop);
    });
}

#[test]
fn a_gentle_end_writes_everything_that_is_in_flight() {
    for source in [None, Some(indexed_source(u64::MAX, FrameFault::default()))] {
        let mut setup = stream(u64::MAX);
        if let Some(source) = source {
            setup.source = source;
        }
        setup.sink = sink(&setup.log, |s| s.fault.delay = ms(1));
        when_written(&setup, 20, Stop::finish);
        let log = setup.log.clone();
        let outcome = setup.run().unwrap();
        assert_eq!(outcome.measurements.ending, Completion::Interrupted);
        let frames = outcome.measurements.frames;
        assert!(frames >= 20);
        assert_eq!(log.frames(), (0..frames).collect::<Vec<_>>());
        assert_eq!(outcome.measurements.stage(Stage::Decode).frames, frames);
        assert!(log.finished.load(Ordering::SeqCst));
    }
}

#[test]
fn a_gentle_end_does_not_wait_for_a_silent_pipe() {
    let mut setup = stream(0);
    let mut source = FakeSource::new(u64::MAX, FrameFault::default());
    source.silent_at = Some(15);
    setup.source = AnySource::Stream(Box::new(source));
    when_written(&setup, 15, Stop::finish);
    let log = setup.log.clone();
    let outcome = setup.run().unwrap();
    assert_eq!(outcome.measurements.frames, 15);
    assert_eq!(outcome.measurements.stage(Stage::Decode).frames, 15);
    assert!(log.finished.load(Ordering::SeqCst));
}

#[test]
fn an_abandoned_run_finishes_nothing_even_if_everything_waits() {
    let mut setup = stream(0);
    let mut source = FakeSource::new(u64::MAX, FrameFault::default());
    source.silent_at = Some(5);
    setup.source = AnySource::Stream(Box::new(source));
    when_written(&setup, 5, Stop::abandon);
    let log = setup.log.clone();
    let error = setup.run().unwrap_err();
    assert!(matches!(error, PipelineError::Abandoned), "{error:?}");
    assert!(!log.finished.load(Ordering::SeqCst));
}

#[test]
fn a_lost_frame_is_noticed_before_the_output_is_finished() {
    // In mid-stream the order gives it away, at the end the count does.
    for lost in [10, 49] {
        for depth in [1, 3] {
            let mut setup = stream(50);
            setup.engine.depth = depth;
            setup.engine.lose = Some(lost);
            let log = setup.log.clone();
            let error = setup.run().unwrap_err();
            assert!(
                matches!(
                    error,
                    PipelineError::FrameCount { .. } | PipelineError::Order { .. }
                ),
                "{error:?}"
            );
            assert!(!log.finished.load(Ordering::SeqCst));
        }
    }
}

#[test]
fn an_input_without_frames_is_an_error() {
    for many in [false, true] {
        let mut setup = stream(0);
        if many {
            setup.source = indexed_source(0, FrameFault::default());
            setup.sink = indexed_sink(&setup.log, FrameFault::default());
        }
        let log = setup.log.clone();
        let error = setup.run().unwrap_err();
        assert_eq!(error.to_string(), "the input has no frames (made-up frames)");
        assert!(!log.finished.load(Ordering::SeqCst));
    }
}

#[test]
fn workers_share_the_work() {
    // Sleeping stands for work, so that the test needs no second core.
    let time = |workers: usize| {
        let mut setup = stream(0);
        let fault = FrameFault {
            delay: ms(5),
            ..FrameFault::default()
        };
        setup.source = indexed_source(60, fault);
        setup.sink = indexed_sink(&setup.log, fault);
        setup.options.source_workers = workers;
        setup.options.sink_workers = workers;
        setup.run().unwrap().measurements.wall
    };
    let (one, four) = (time(1), time(4));
    assert!(four * 2 < one, "one worker {one:?}, four {four:?}");
}

#[test]
fn a_profiler_learns_what_each_thread_is_at() {
    let profiler = Arc::new(Profiler::default());
    for many in [false, true] {
        let mut setup = stream(20);
        if many {
            setup.source = indexed_source(20, FrameFault::default());
            setup.sink = indexed_sink(&setup.log, FrameFault::default());
        }
        setup.engine.profiler = Some(profiler.clone());
        setup.run().unwrap();
        let reports = std::mem::take(&mut *profiler.0.lock().unwrap());
        let mut open = std::collections::HashMap::new();
        let mut closed = Vec::new();
        for (thread, what) in reports {
            match what {
                Some(range) => assert_eq!(open.insert(thread, range), None, "a range within another"),
                None => closed.push(open.remove(&thread).expect("an end without a begin")),
            }
        }
        assert!(open.is_empty());
        for name in ["decode", "submit", "collect", "encode"] {
            let mut frames: Vec<u64> = closed.iter().filter(|r| r.0 == name).map(|r| r.1).collect();
            frames.sort_unstable();
            // The call in which a stream's source ends is one too.
            frames.truncate(20);
            assert_eq!(frames, (0..20).collect::<Vec<_>>(), "{name}");
        }
    }
}

#[test]
fn spans_and_rates_are_kept_only_if_asked_for() {
    let outcome = stream(50).run().unwrap();
    for stage in Stage::ALL {
        let clock = outcome.measurements.stage(stage);
        assert!(clock.threads.is_empty() && clock.throughput.is_none());
    }
    let mut setup = stream(50);
    setup.options.recording = Recording {
        frames: 30,
        throughput: true,
    };
    setup.source = indexed_source(50, FrameFault::default());
    let measured = setup.run().unwrap().measurements;
    let threads = Stage::ALL.map(|stage| measured.stage(stage).threads.len());
    assert_eq!(threads, [5, 1, 1]);
    for stage in Stage::ALL {
        let spans = measured.stage(stage).threads.iter().flat_map(Spans::list);
        let mut work: Vec<u64> = spans
            .filter(|s| matches!(s.activity, Activity::Work | Activity::Submit))
            .map(|s| s.sequence)
            .collect();
        work.sort_unstable();
        assert_eq!(work, (0..30).collect::<Vec<_>>(), "{stage}");
    }
    let counted = measured
        .stage(Stage::Encode)
        .throughput
        .as_ref()
        .unwrap()
        .report()
        .unwrap();
    assert_eq!(counted.frames.iter().sum::<u64>(), 50);
}
