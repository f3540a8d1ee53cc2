//! Progress of a run: a line on a terminal, regular lines in a log, or JSON for programs.
//!
//! ```text
//!  45%  450/1000  62.9 fps  2.5x  0:12, 0:15 left  12 MB  busiest: encode  while frames come
//!  finishing: 61 frames written, 14 in the encoder                         when no more will come
//!  3/12 files  5120 frames  62.9 fps  1:24  busiest: encode                several inputs
//! ```
//!
//! Fields that do not fit the terminal are left out, the last of the line first. docs/schemas.md has
//! the fields of the JSON.

use crate::cli::Failure;
use crate::cli::endpoint::open_written_identity;
use framepipe::frame::Rational;
use framepipe::pipeline::{Progress, Stop};
use framepipe::report::Stage;
use framepipe::source::StreamInfo;
use framepipe::wording::counted;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// From one reading of the counters to the next.
const INTERVAL: Duration = Duration::from_millis(200);

/// From one JSON object to the next.
const OBJECT: Duration = Duration::from_secs(1);

/// From one line in a log to the next.
const LINE: Duration = Duration::from_secs(30);

/// The time over which speed is measured.
const RECENT: Duration = Duration::from_secs(5);

/// Columns of a terminal that does not report its size.
const USUAL_WIDTH: usize = 80;

/// What `--progress` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressFormat {
    /// One JSON object a second, on stderr or on an open file descriptor.
    Json(Option<u32>),
}

impl FromStr for ProgressFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<ProgressFormat, String> {
        let wrong = || "write json, or json:FD with the number of an open file descriptor".to_owned();
        match text.strip_prefix("json").ok_or_else(wrong)? {
            "" => Ok(ProgressFormat::Json(None)),
            fd => {
                let number = fd.strip_prefix(':').and_then(|fd| fd.parse().ok());
                number.map(|fd| ProgressFormat::Json(Some(fd))).ok_or_else(wrong)
            }
        }
    }
}

impl ProgressFormat {
    /// The descriptor that objects are written to.
    pub(crate) fn descriptor(self) -> u32 {
        let ProgressFormat::Json(fd) = self;
        fd.unwrap_or(2)
    }

    /// Device and inode of the file, pipe or socket that objects are written to.
    pub(crate) fn written_identity(self) -> Option<(u64, u64)> {
        open_written_identity(descriptor(self.descriptor()).ok()?)
    }
}

impl fmt::Display for ProgressFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgressFormat::Json(None) => f.write_str("json"),
            ProgressFormat::Json(Some(fd)) => write!(f, "json:{fd}"),
        }
    }
}

/// Where progress is shown.
#[derive(Clone)]
pub(crate) enum Form {
    Nothing,
    /// One line that is drawn anew.
    Bar,
    /// A line at intervals.
    Lines,
    /// JSON objects, one a line.
    Json(JsonLines),
}

/// Lines that several runs may write, each line whole.
#[derive(Clone)]
pub(crate) struct JsonLines {
    out: Arc<Mutex<Box<dyn Write + Send>>>,
    /// The run's last object is written.
    has_ended: Arc<AtomicBool>,
}

impl JsonLines {
    fn to(out: impl Write + Send + 'static) -> JsonLines {
        JsonLines {
            out: Arc::new(Mutex::new(Box::new(out))),
            has_ended: Arc::default(),
        }
    }

    fn write(&self, object: &str) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        write_line(&mut **out, object);
    }

    /// Writes the run's last object. No other line comes between the snapshot and its object, so that the
    /// number of files that have ended grows from object to object.
    fn end(&self, snapshot: impl FnOnce() -> Snapshot) {
        self.has_ended.store(true, Ordering::Relaxed);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        write_line(&mut **out, &snapshot().json(true));
    }
}

/// The reader may have gone; the run goes on.
fn write_line(out: &mut dyn Write, object: &str) {
    let _ = out.write_all(format!("{object}\n").as_bytes());
}

impl Form {
    /// The same for another run, which has a last object of its own.
    pub(crate) fn for_another(&self) -> Form {
        match self {
            Form::Json(lines) => Form::Json(JsonLines {
                out: lines.out.clone(),
                has_ended: Arc::default(),
            }),
            form => form.clone(),
        }
    }

    /// Writes the last object of a run that ended before it had frames to show.
    pub(crate) fn ensure_end(&self, snapshot: impl FnOnce() -> Snapshot) {
        if let Form::Json(lines) = self
            && !lines.has_ended.load(Ordering::Relaxed)
        {
            lines.end(snapshot);
        }
    }

    /// The default form for stderr; none for a quiet run.
    pub(crate) fn usual(is_quiet: bool) -> Form {
        match (is_quiet, io::stderr().is_terminal()) {
            (true, _) => Form::Nothing,
            (false, true) => Form::Bar,
            (false, false) => Form::Lines,
        }
    }

    /// The requested form, or the default one. A descriptor is opened here, before the run begins.
    pub(crate) fn open(wanted: Option<ProgressFormat>, is_quiet: bool) -> Result<Form, Failure> {
        let fd = match wanted {
            None => return Ok(Form::usual(is_quiet)),
            Some(ProgressFormat::Json(None)) => return Ok(Form::Json(JsonLines::to(io::stderr()))),
            Some(ProgressFormat::Json(Some(fd))) => fd,
        };
        match descriptor(fd) {
            Ok(file) => Ok(Form::Json(JsonLines::to(file))),
            Err(cause) => Err(Failure::Usage(format!(
                "--progress json:{fd}: this file descriptor cannot be written to: {cause}"
            ))),
        }
    }
}

/// A copy of an open descriptor, which shares its position and works for sockets, too: another opening of
/// what it leads to would begin at the start of a file.
#[cfg(target_os = "linux")]
fn descriptor(fd: u32) -> io::Result<File> {
    use rustix::fs::{OFlags, fcntl_getfl};
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let number = i32::try_from(fd).map_err(|_| rustix::io::Errno::BADF)?;
    if !is_inherited(fd) {
        return Err(rustix::io::Errno::BADF.into());
    }
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    match pidfd_getfd(own, number, PidfdGetfdFlags::empty()) {
        Ok(copy) if fcntl_getfl(&copy)?.intersection(OFlags::ACCMODE) == OFlags::RDONLY => {
            Err(rustix::io::Errno::BADF.into())
        }
        Ok(copy) => Ok(File::from(copy)),
        // An old kernel, or a container that forbids it.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => reopened(fd),
        Err(error) => Err(error.into()),
    }
}

/// True for a descriptor that the program that started this one handed over. One that this process opened
/// itself, such as the socket that signals wake it by, is closed where another program is started.
#[cfg(target_os = "linux")]
fn is_inherited(fd: u32) -> bool {
    const CLOSED_ON_START: u32 = 0o2_000_000;
    let folder = std::path::Path::new("/proc/self/fdinfo");
    let Ok(facts) = std::fs::read_to_string(folder.join(fd.to_string())) else {
        // Open or not, nothing is said of it where there is no such folder.
        return !folder.is_dir();
    };
    let flags = facts.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_none_or(|flags| flags & CLOSED_ON_START == 0)
}

/// Elsewhere an opening by number is a copy of the descriptor.
#[cfg(not(target_os = "linux"))]
fn descriptor(fd: u32) -> io::Result<File> {
    reopened(fd)
}

/// What a descriptor leads to, opened once more to be written at its end.
fn reopened(fd: u32) -> io::Result<File> {
    File::options().append(true).open(format!("/dev/fd/{fd}"))
}

/// A run that is watched.
pub(crate) struct Watched<'a> {
    pub(crate) counters: &'a Progress,
    pub(crate) stop: &'a Stop,
    /// Frames that will come, if that is known.
    pub(crate) frames: Option<u64>,
    /// Frames of the pipeline in one of these.
    pub(crate) parts: u64,
    /// When frames are shown, for the speed relative to real time.
    pub(crate) pace: Option<Pace>,
}

/// How long frames are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// Seconds of a tick of the input's times.
    tick: f64,
    /// Frames a second, for the last frame, and where frames have no times.
    rate: f64,
}

impl Pace {
    /// The pace of an input that has a frame rate.
    pub(crate) fn of(info: &StreamInfo) -> Option<Pace> {
        let rate = info.frame_rate.map(Rational::to_f64).filter(|&rate| rate > 0.0)?;
        let tick = info.time_base.to_f64();
        Some(Pace { tick, rate })
    }

    /// Seconds that the pictures which the sink has taken are shown. A pipeline's frame is one of `parts` of
    /// a picture.
    pub(crate) fn shown(self, counters: &Progress, parts: u64) -> f64 {
        let taken = counters.frames(Stage::Encode) / parts.max(1);
        match counters.span() {
            Some(ticks) if taken > 1 => ticks as f64 * self.tick + 1.0 / self.rate,
            _ => taken as f64 / self.rate,
        }
    }
}

/// A run or batch whose progress is shown.
pub(crate) trait Watch: Sync {
    /// The current progress.
    fn snapshot(&self, meter: &mut Meter) -> Snapshot;

    /// The progress at the end.
    fn last(&self, meter: &mut Meter) -> Snapshot {
        self.snapshot(meter)
    }
}

/// Runs `work` while its progress is shown.
pub(crate) fn show<T: Send, E: Send>(
    watched: &impl Watch,
    form: Form,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    if matches!(form, Form::Nothing) {
        return work();
    }
    // True for a run that has failed or was abandoned.
    let (done, ended) = channel::<bool>();
    std::thread::scope(|scope| {
        let watch = move || {
            let mut meter = Meter::new();
            let mut face = Face::new(form);
            let has_failed = loop {
                match ended.recv_timeout(INTERVAL) {
                    Err(RecvTimeoutError::Timeout) => face.draw(&watched.snapshot(&mut meter)),
                    Err(RecvTimeoutError::Disconnected) => break true,
                    Ok(has_failed) => break has_failed,
                }
            };
            face.end(|| {
                let last = watched.last(&mut meter);
                Snapshot {
                    bytes: last.bytes.filter(|_| !has_failed),
                    ..last
                }
            });
        };
        // Without a thread for it, the run goes on without progress.
        let _ = std::thread::Builder::new().spawn_scoped(scope, watch);
        let result = work();
        // The thread may be missing.
        let _ = done.send(result.is_err());
        result
    })
}

/// The progress of a run at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) written: u64,
    pub(crate) frames: Option<u64>,
    /// Frames a second, recently.
    pub(crate) fps: f64,
    /// Seconds of pictures a second, recently.
    pub(crate) speed: Option<f64>,
    pub(crate) elapsed: Duration,
    /// Bytes that the output has.
    pub(crate) bytes: Option<u64>,
    pub(crate) busiest: Option<Stage>,
    /// The number of frames in the encoder when no more will come.
    pub(crate) finishing: Option<u64>,
    /// The file, if there are several.
    pub(crate) file: Option<String>,
    /// Files that are done, and the number of all files, if there are several.
    pub(crate) files: Option<(usize, usize)>,
}

/// Time, and speed over the last seconds.
pub(crate) struct Meter {
    began: Instant,
    /// Times, frames written and seconds that they are shown, over the last seconds.
    recent: VecDeque<(Instant, u64, f64)>,
}

impl Meter {
    fn new() -> Meter {
        let now = Instant::now();
        Meter {
            began: now,
            recent: VecDeque::from([(now, 0, 0.0)]),
        }
    }

    /// Time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Frames and seconds of pictures a second recently, given `frames` that are `shown` for so many seconds
    /// now.
    pub(crate) fn speeds(&mut self, frames: u64, shown: f64) -> (f64, f64) {
        let now = Instant::now();
        self.recent.push_back((now, frames, shown));
        while self.recent.len() > 2
            && let Some((then, ..)) = self.recent.get(1)
            && now.duration_since(*then) > RECENT
        {
            self.recent.pop_front();
        }
        let Some((then, frames_then, shown_then)) = self.recent.front() else {
            return (0.0, 0.0);
        };
        let seconds = now.duration_since(*then).as_secs_f64();
        if seconds > 0.0 {
            let frames = frames.saturating_sub(*frames_then) as f64;
            (frames / seconds, (shown - shown_then) / seconds)
        } else {
            (0.0, 0.0)
        }
    }
}

impl Watch for Watched<'_> {
    fn snapshot(&self, meter: &mut Meter) -> Snapshot {
        let counters = self.counters;
        let parts = self.parts.max(1);
        let taken = counters.frames(Stage::Encode);
        let delayed = counters.delayed();
        let is_drained = self.stop.has_input_ended() && taken >= counters.frames(Stage::Decode);
        let is_finishing = self.stop.is_finish_asked() || is_drained;
        let written = if is_finishing {
            taken.saturating_sub(delayed)
        } else {
            taken
        } / parts;
        let shown = self.pace.map(|pace| pace.shown(counters, parts));
        let (fps, speed) = meter.speeds(taken / parts, shown.unwrap_or(0.0));
        Snapshot {
            written,
            frames: self.frames.map(|frames| frames / parts),
            fps,
            speed: shown.map(|_| speed),
            elapsed: meter.elapsed(),
            bytes: counters.bytes(),
            busiest: counters.busiest(),
            finishing: is_finishing.then_some(delayed / parts),
            file: None,
            files: None,
        }
    }
}

impl Snapshot {
    /// Time until the last frame, at the recent speed.
    fn left(&self) -> Option<Duration> {
        let frames = self.frames.filter(|_| self.finishing.is_none())?;
        let rest = frames.checked_sub(self.written)? as f64;
        let seconds = rest / self.fps;
        (self.fps > 0.0 && seconds < 1e7).then(|| Duration::from_secs_f64(seconds))
    }

    /// The share that is done, 0 to 1.
    fn share(&self) -> Option<f64> {
        let frames = self.frames.filter(|&frames| frames > 0)?;
        Some((self.written as f64 / frames as f64).min(1.0))
    }

    /// One line of at most `width` columns.
    fn line(&self, width: usize) -> String {
        if let Some(delayed) = self.finishing {
            let short = format!("finishing: {} written", counted(self.written, "frame"));
            let long = match delayed {
                0 => short.clone(),
                delayed => format!("{short}, {delayed} in the encoder"),
            };
            return fitting(&[if long.len() <= width { long } else { short }], width);
        }
        let mut fields = Vec::new();
        fields.extend(
            self.share()
                .map(|share| format!("{:.0}%", (share * 100.0).floor())),
        );
        fields.extend(
            self.files
                .map(|(done, all)| format!("{done}/{}", counted(all as u64, "file"))),
        );
        fields.push(match self.frames {
            Some(frames) => format!("{}/{frames}", self.written),
            None => counted(self.written, "frame"),
        });
        fields.push(format!("{:.1} fps", self.fps));
        fields.extend(self.speed.map(|speed| format!("{speed:.1}x")));
        fields.push(match self.left() {
            Some(left) => format!("{}, {} left", clock(self.elapsed), clock(left)),
            None => clock(self.elapsed),
        });
        fields.extend(self.bytes.map(|bytes| format!("{:.0} MB", bytes as f64 / 1e6)));
        fields.extend(self.busiest.map(|stage| format!("busiest: {stage}")));
        fitting(&fields, width)
    }

    fn json(&self, has_ended: bool) -> String {
        let state = match (has_ended, self.finishing) {
            (true, _) => "ended",
            (false, Some(_)) => "finishing",
            (false, None) => "running",
        };
        // At the end nothing is left in the encoder.
        let (written, in_encoder) = match (has_ended, self.finishing) {
            (true, delayed) => (self.written + delayed.unwrap_or(0), Some(0)),
            (false, delayed) => (self.written, delayed),
        };
        json!({
            "schema": "framepipe-progress",
            "version": 1,
            "state": state,
            "frames": written,
            "frames_in_all": self.frames,
            "frames_in_encoder": in_encoder,
            "frames_per_second": self.fps,
            "speed": self.speed,
            "elapsed_seconds": self.elapsed.as_secs_f64(),
            "left_seconds": self.left().filter(|_| !has_ended).map(|left| left.as_secs_f64()),
            "bytes": self.bytes,
            "busiest": self.busiest.map(Stage::name),
            "file": self.file,
            "files_done": self.files.map(|(done, _)| done),
            "files": self.files.map(|(_, all)| all),
        })
        .to_string()
    }
}

/// As many of the fields as fit, from the first on.
fn fitting(fields: &[String], width: usize) -> String {
    let mut line = String::new();
    for field in fields {
        let gap = if line.is_empty() { "" } else { "  " };
        if line.len() + gap.len() + field.len() > width {
            break;
        }
        line.push_str(gap);
        line.push_str(field);
    }
    line
}

/// Minutes and seconds, with hours if needed.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// The target of drawing.
enum Face {
    Bar(ProgressBar),
    Lines(Instant),
    Json(Instant, JsonLines),
}

impl Face {
    fn new(form: Form) -> Face {
        let now = Instant::now();
        match form {
            Form::Json(out) => Face::Json(now, out),
            Form::Lines | Form::Nothing => Face::Lines(now),
            Form::Bar => {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                    bar.set_style(style);
                }
                Face::Bar(bar)
            }
        }
    }

    /// Shows the snapshot if it is time. The reader may have gone; the run goes on.
    fn draw(&mut self, snapshot: &Snapshot) {
        match self {
            Face::Bar(bar) => bar.set_message(snapshot.line(width())),
            Face::Lines(last) => {
                if last.elapsed() >= LINE {
                    *last = Instant::now();
                    let _ = writeln!(io::stderr(), "{}", snapshot.line(usize::MAX));
                }
            }
            Face::Json(last, out) => {
                if last.elapsed() >= OBJECT {
                    *last = Instant::now();
                    out.write(&snapshot.json(false));
                }
            }
        }
    }

    fn end(&mut self, snapshot: impl FnOnce() -> Snapshot) {
        match self {
            Face::Bar(bar) => bar.finish_and_clear(),
            Face::Lines(_) => {}
            Face::Json(_, out) => out.end(snapshot),
        }
    }
}

/// Columns of the terminal, less one, since some break a line that is full.
fn width() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0))
        .saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            written: 450,
            frames: Some(1000),
            fps: 62.94,
            speed: Some(2.5176),
            elapsed: Duration::from_secs(12),
            bytes: Some(12_345_678),
            busiest: Some(Stage::Encode),
            finishing: None,
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_line_fits_every_width() {
        let full = "45%  450/1000  62.9 fps  2.5x  0:12, 0:08 left  12 MB  busiest: encode";
        assert_eq!(snapshot().line(100), full);
        assert_eq!(snapshot().line(40), "45%  450/1000  62.9 fps  2.5x");
        for width in 0..100 {
            let line = snapshot().line(width);
            assert!(line.len() <= width && full.starts_with(&line), "{width}: {line}");
        }
        let endless = Snapshot {
            frames: None,
            speed: None,
            ..snapshot()
        };
        assert_eq!(endless.line(40), "450 frames  62.9 fps  0:12  12 MB");
        let of_several = Snapshot {
            files: Some((3, 12)),
            ..endless
        };
        assert_eq!(of_several.line(40), "3/12 files  450 frames  62.9 fps  0:12");
    }

    #[test]
    fn no_time_is_promised_where_none_is_known() {
        let finishing = Snapshot {
            finishing: Some(14),
            written: 61,
            ..snapshot()
        };
        assert_eq!(finishing.left(), None);
        assert_eq!(
            finishing.line(80),
            "finishing: 61 frames written, 14 in the encoder"
        );
        assert_eq!(finishing.line(40), "finishing: 61 frames written");
        let stalled = Snapshot {
            fps: 0.0,
            ..snapshot()
        };
        assert_eq!(stalled.left(), None);
        assert!(!stalled.line(100).contains("left"));
        // More frames than the header said.
        let longer = Snapshot {
            written: 1001,
            ..snapshot()
        };
        assert!(longer.line(100).starts_with("100%  1001/1000") && longer.left().is_none());
    }

    #[test]
    fn times_have_hours_where_they_need_them() {
        assert_eq!(clock(Duration::from_secs(5)), "0:05");
        assert_eq!(clock(Duration::from_secs(3725)), "1:02:05");
    }

    #[test]
    fn the_json_has_the_documented_fields() {
        let object: serde_json::Value = serde_json::from_str(&snapshot().json(false)).unwrap();
        let mut found: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
        let page = include_str!("../../../docs/schemas.md");
        let (_, section) = page.split_once("\n## Progress\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let fields = rows.flat_map(|(fields, _)| fields.trim_matches(['{', '}']).split(", "));
        let mut documented: Vec<&str> = fields.chain(["schema", "version"]).collect();
        found.sort_unstable();
        documented.sort_unstable();
        assert_eq!(found, documented);
    }

    #[test]
    fn the_last_object_counts_what_the_encoder_has_given() {
        let drained = Snapshot {
            written: 61,
            finishing: Some(14),
            ..snapshot()
        };
        let object = |has_ended| serde_json::from_str::<serde_json::Value>(&drained.json(has_ended)).unwrap();
        assert_eq!(
            (&object(false)["frames"], &object(false)["frames_in_encoder"]),
            (&61.into(), &14.into())
        );
        assert_eq!(
            (&object(true)["frames"], &object(true)["frames_in_encoder"]),
            (&75.into(), &0.into())
        );
    }

    /// Lines as they are written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_run_that_has_ended_has_nothing_left_and_a_failed_one_no_bytes() {
        struct Half;
        impl Watch for Half {
            fn snapshot(&self, _: &mut Meter) -> Snapshot {
                snapshot()
            }
        }
        assert!(snapshot().left().is_some());
        for (result, bytes) in [(Ok(()), Some(12_345_678)), (Err(()), None)] {
            let written = Written::default();
            let form = Form::Json(JsonLines::to(written.clone()));
            assert_eq!(show(&Half, form, || result), result);
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            let object: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(object["state"], "ended");
            assert_eq!(object["left_seconds"], serde_json::Value::Null);
            assert_eq!(object["bytes"].as_u64(), bytes);
            assert_eq!(object["frames"], 450);
        }
    }

    #[test]
    fn forms_by_their_words() {
        assert_eq!("json".parse(), Ok(ProgressFormat::Json(None)));
        assert_eq!("json:3".parse(), Ok(ProgressFormat::Json(Some(3))));
        for bad in ["", "plain", "json:", "json:x", "json3"] {
            assert!(
                bad.parse::<ProgressFormat>().unwrap_err().contains("json:FD"),
                "{bad}"
            );
        }
    }
}
