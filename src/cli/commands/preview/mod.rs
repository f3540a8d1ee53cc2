//! `framepipe preview`: one frame before and after a filter, in one picture.
//!
//! ```text
//!  input at T -> engine -> before and after beside each other -> RGB, upright -> layout, words -> file
//!                                                                                             or terminal
//! ```

mod picture;
mod sixel;
mod terminal;

use super::Failure;
use super::filter::pipeline_options;
use crate::cli::endpoint::{FileChoice, Input, Opened, Output, check_distinct, check_files, names_same_file};
use crate::cli::options::encoding::EncodingArguments;
use crate::cli::options::engine::EngineArguments;
use crate::cli::options::filtering::FilteringArguments;
use crate::cli::options::reading::ReadingArguments;
use crate::cli::options::region::{READ_FROM_THE_BEGINNING, RegionArguments, Run};
use crate::cli::process::{limits, untrusted};
use crate::cli::show::escape;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use framepipe::engine::compare::{Arrangement, Compare, Shown};
use framepipe::engine::region::End;
use framepipe::frame::{FieldOrder, Frame, Remarks};
use framepipe::pipeline::{self, Job, Progress, Stop};
use framepipe::report::Recording;
use framepipe::sink::{self, AnySink, Flow, Sink, SinkError, Written, images};
use framepipe::source::images::listing::{self, Selection};
use framepipe::source::range::{self, Point, TimeRange};
use framepipe::source::{self, AnySource, StreamInfo};
use framepipe::still::ImageKind;
use framepipe::wording::counted;
use picture::Picture;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use terminal::Protocol;

/// What most people come for.
pub(super) const EXAMPLES: &str = "Examples:
  framepipe preview in.mp4 --filter gaussian:sigma=3 -o try.png
      a frame a tenth into the video: the left half as it is, the right half filtered
  framepipe preview in.mp4 1:02:03.5 --filter sobel --planes gray --layout side -o edges.png
      the frame at that time, twice, beside each other
  framepipe preview in.mp4 0:06 --filter gaussian:sigma=8 --regions faces.txt -o faces.png
      the same, with the regions that are there at that time filtered
  framepipe preview photos/ 12f --filter unsharp:sigma=1.5:amount=0.8
      the thirteenth picture of a folder, shown in the terminal";

/// Columns and rows of a terminal that does not say how many it has.
const USUAL_CELLS: (usize, usize) = (80, 24);

fn help() -> String {
    format!("{{about-with-newline}}\n{EXAMPLES}\n\n{{usage-heading}} {{usage}}\n\n{{all-args}}{{after-help}}")
}

/// How before and after share the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Layout {
    /// The left half before, the right half after, a line between them.
    #[default]
    Split,
    /// Both whole, before on the left.
    Side,
    /// The filtered picture alone, without words in it.
    After,
}

/// What is shown, and where.
#[derive(Debug, Clone, Args)]
#[command(help_template = help())]
pub(crate) struct PreviewArguments {
    /// A video file, a directory, frames/%05d.png, a glob, an image, - (YUV4MPEG2 on standard input),
    /// raw:WxH:FORMAT:FPS:PATH or synthetic:WxH:FORMAT:FPS:FRAMES.
    #[arg(value_parser = OsStringValueParser::new().try_map(Input::from_argument))]
    input: Input,
    /// Which frame: the first that is shown at this time or after it, or the last one while it is shown, as
    /// seconds or [HH:]MM:SS.mmm, or 120f for the frame after the first 120 [default: a tenth into a video
    /// whose length is known, else the first].
    #[arg(value_name = "T")]
    time: Option<Point>,
    #[command(flatten)]
    filtering: FilteringArguments,
    /// How before and after share the picture [default: split; side with a region or a matte, which may lie
    /// in the left half].
    #[arg(long, value_name = "LAYOUT", value_enum)]
    layout: Option<Layout>,
    /// The image file to write, of the kind that its name says [default: show the picture in the terminal, if
    /// that is kitty, Ghostty, Konsole, iTerm2, WezTerm or mintty, or one with sixels: foot, mlterm, contour,
    /// yaft, Windows Terminal, or with sixel in TERM].
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_parser = OsStringValueParser::new().try_map(Output::from_argument)
    )]
    output: Option<Output>,
    /// Replace an existing file.
    #[arg(long, short = 'y')]
    overwrite: bool,
    /// Say nothing but warnings and errors; -qq errors only.
    #[arg(short, long, action = clap::ArgAction::Count)]
    quiet: u8,
    #[command(flatten)]
    region: RegionArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    engine: EngineArguments,
}

/// Where the picture goes.
enum Target {
    File(Output),
    Terminal(Protocol),
}

impl PreviewArguments {
    /// True if the engine's choices are shown.
    pub(crate) fn explains(&self) -> bool {
        self.engine.explain
    }

    /// How before and after share the picture.
    fn layout(&self) -> Layout {
        self.layout.unwrap_or(match self.region.is_given() {
            true => Layout::Side,
            false => Layout::Split,
        })
    }

    /// Where the picture goes, if it can go anywhere.
    fn target(&self) -> Result<Target, Failure> {
        let Some(output) = &self.output else {
            return terminal_target().map(Target::Terminal);
        };
        let is_file =
            matches!(output, Output::Images(path) if ImageKind::of(path).is_some() && !path.is_dir());
        if !is_file || output.is_numbered() {
            return Err(Failure::Usage(format!(
                "--output {output}: a preview is one image file; name it such as preview.png"
            )));
        }
        check_distinct(&self.input, output)?;
        let masks = self.filtering.mask_files().map(|file| ("mask file", file));
        let mattes = self.region.matte_files();
        let mattes = mattes.iter().map(|file| ("matte", file.as_path()));
        let mut files = masks.chain(self.region.files()).chain(mattes);
        let is_output = |file: &Path| output.path().is_some_and(|path| names_same_file(path, file));
        match files.find(|(_, file)| is_output(file)) {
            Some((noun, _)) => Err(Failure::Usage(format!(
                "{output} is both {noun} and output; choose another output"
            ))),
            None => Ok(Target::File(output.clone())),
        }
    }

    /// Confines the process as `--untrusted` asks.
    fn confine(&mut self) -> Result<(), Failure> {
        self.filtering.check_untrusted()?;
        self.engine.without_card();
        let folder = self.output.as_ref().and_then(Output::folder);
        let reads = [self.input.reads()?, self.region.reads()?].concat();
        let said = untrusted::confine(reads, folder, self.engine.wants_card())?;
        self.say(&format!("confined: {said}"));
        Ok(())
    }

    /// Prints to stderr unless that is not wanted.
    fn say(&self, text: &str) {
        if self.quiet == 0 {
            // A closed stderr is no reason to stop.
            let _ = writeln!(io::stderr(), "{}", escape::line(text));
        }
    }

    /// Refuses a glob of videos, of which one is to be named.
    fn check_glob(&self) -> Result<(), Failure> {
        let path = self.input.path().filter(|_| self.input.is_images());
        let Some(path) = path.filter(|path| !path.exists()) else {
            return Ok(());
        };
        let files = listing::list(path, &Selection::default())?.files;
        match files.iter().find(|file| !listing::names_images(file)) {
            Some(other) => Err(Failure::Usage(format!(
                "{} stands for {}, such as {}, which is no image; name one of them",
                self.input.name(),
                counted(files.len() as u64, "file"),
                other.display()
            ))),
            None => Ok(()),
        }
    }

    /// Opens the input for the one frame, and returns its description.
    fn open(&self) -> Result<(Opened, Option<Point>), Failure> {
        let one = |start: Option<Point>| {
            let mut range = TimeRange::new(start, None, None, Some(1)).map_err(|e| Failure::usage(&e))?;
            let is_behind = matches!(start, Some(Point::Time(start)) if start > 0);
            range.counts_all = is_behind && self.region.goes_by_number();
            Ok::<_, Failure>(range)
        };
        self.check_glob()?;
        // The length that the default and the last frame depend on is known once the input is open.
        let is_open = !matches!(self.time, Some(Point::Frame(_))) && !self.input.is_images();
        let choice = FileChoice {
            range: if is_open {
                TimeRange::default()
            } else {
                one(self.time)?
            },
            ..FileChoice::default()
        };
        let options = self.reading.options(self.reading.decoder_threads(false));
        let mut opened = self.input.open(self.reading.fps, &options, &choice)?;
        let info = opened.source.info();
        self.reading.check_size(&self.input.name(), info)?;
        let mut time = self.time;
        if is_open {
            time = match time {
                Some(Point::Time(time)) => Some(on_screen(&mut opened.source, time)?),
                _ => tenth(info),
            };
            let range = one(time)?;
            if range.counts_all && matches!(self.input, Input::Video(_)) {
                self.say(READ_FROM_THE_BEGINNING);
            }
            opened.source = range::within(opened.source, range)?;
        }
        if let Some(saying) = self.filtering.saying_of_turns() {
            opened.source = source::turns::watched(opened.source, saying);
        }
        Ok((opened, time))
    }

    /// The input in words. Of several image files one alone is open.
    fn described(&self, info: &StreamInfo) -> String {
        let path = self.input.path().filter(|_| self.input.is_images());
        let listed = path.and_then(|path| listing::list(path, &Selection::default()).ok());
        match listed.map_or(1, |listed| listed.files.len()) {
            1 => info.description.clone(),
            count => format!(
                "{count} image files from {}, this one {}x{} {}",
                self.input.name(),
                info.width,
                info.height,
                info.format
            ),
        }
    }

    /// The frame from the engine: before and after side by side, or after alone if that is all that is shown.
    fn filtered(&self, opened: Opened, info: &StreamInfo) -> Result<(Frame, Remarks), Failure> {
        let Opened { source, files, .. } = opened;
        let source = if self.filtering.fields {
            source::fields::split(source).map_err(|e| Failure::Usage(format!("--fields: {e}")))?
        } else {
            source
        };
        let stop = Stop::new();
        let run = Run {
            input: &self.input,
            info,
            reading: &self.reading,
            files: files.as_ref(),
            read: (End::Frame, End::Frame),
            stop: &stop,
        };
        let chain = self.filtering.chain();
        let engine = self.engine.start(chain.clone(), info)?;
        let threads = self.engine.threads();
        let mut engine = self.region.around(engine, &chain, &run, threads)?;
        self.say(&format!("engine: {}", engine.description()));
        if self.layout() != Layout::After {
            engine = Box::new(Compare::new(engine, Arrangement::Side, Shown::AsStored));
        }
        let kept = Arc::default();
        let mut sink = AnySink::stream(OneFrameSink(Arc::clone(&kept)));
        if self.filtering.fields {
            sink = sink::fields::weaving(sink, "the preview".to_owned());
        }
        let mut options = pipeline_options(1, Some(NonZeroUsize::MIN), Recording::default());
        options.strict = self.reading.strict;
        let job = Job {
            source,
            engine,
            sink,
            options,
        };
        let budget = limits::MemoryBudget::new(None);
        let _part = budget.enter(&job)?;
        let outcome = pipeline::run(job, &stop, &Progress::new())?;
        let frame = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Two fields make a frame, and a stream that ends between them has none.
        let frame = frame
            .ok_or_else(|| Failure::Failed(format!("the input has no whole frame ({})", info.description)))?;
        Ok((frame, outcome.remarks))
    }

    /// Writes the picture, and returns a sentence about it.
    fn write(&self, picture: Picture, output: &Output) -> Result<Written, Failure> {
        let encoding = EncodingArguments {
            overwrite: self.overwrite,
            ..EncodingArguments::default()
        };
        let sink = output.open(&picture.info, &encoding, self.reading.strict, None, None)?;
        Ok(match sink {
            AnySink::Stream(mut sink) => {
                sink.write(picture.frame)?;
                sink.finish()?
            }
            AnySink::Indexed(sink) => {
                sink.write(picture.frame)?;
                sink.finish()?
            }
        })
    }
}

/// The protocol of the terminal that standard output is.
fn terminal_target() -> Result<Protocol, Failure> {
    let problem = if !io::stdout().is_terminal() {
        "standard output is no terminal to show the picture in"
    } else if let Some(protocol) = Protocol::of(|name| std::env::var(name).ok()) {
        return Ok(protocol);
    } else {
        "this terminal is not known to show pictures"
    };
    Err(Failure::Usage(format!(
        "{problem}; write it to a file with -o preview.png"
    )))
}

/// Shows the picture in the terminal.
fn show(picture: &Picture, protocol: Protocol) -> Result<(), Failure> {
    let png = images::encoded(&picture.frame, ImageKind::Png)?;
    let size = (picture.info.width, picture.info.height);
    let cells = terminal_size::terminal_size().map(|(columns, rows)| (columns.0.into(), rows.0.into()));
    let columns = cells.and_then(|cells| terminal::columns(size, cells));
    let sequence = match protocol {
        Protocol::Kitty => terminal::kitty(&png, columns),
        Protocol::ITerm2 => terminal::iterm2(&png, columns),
        Protocol::Sixel => sixel::sequence(&png, terminal::room(cells.unwrap_or(USUAL_CELLS)))
            .map_err(|error| Failure::Failed(error.to_string()))?,
    };
    super::to_stdout(|out| Ok(out.write_all(sequence.as_bytes())?))
}

/// The time a tenth into an input whose length is known.
fn tenth(info: &StreamInfo) -> Option<Point> {
    let (frames, rate) = (info.frames?, info.frame_rate?);
    let frame = i64::try_from(frames / 10).ok().filter(|&frame| frame > 0)?;
    let nanos = i128::from(frame) * i128::from(rate.den) * 1_000_000_000 / i128::from(rate.num.max(1));
    i64::try_from(nanos).ok().map(Point::Time)
}

/// The time in nanoseconds as it is, or, if no frame is shown at it or after it and the last one is still on
/// the screen, that frame.
fn on_screen(source: &mut AnySource, time: i64) -> Result<Point, Failure> {
    let info = source.info();
    let (frames, base) = (info.frames, info.time_base);
    let Some(rate) = info.frame_rate.filter(|rate| rate.num > 0) else {
        return Ok(Point::Time(time));
    };
    if let AnySource::Stream(source) = source {
        let lasts = (1e9 / rate.to_f64()) as i64;
        if source.time_of(base.tick_at(time), 0)?.is_some() {
            return Ok(Point::Time(time));
        }
        // A frame that began a whole frame ago is no longer shown.
        if let Some(tick) = source.time_of(base.tick_at(time - lasts + 1), 0)? {
            return Ok(Point::Time(base.nanos(tick)));
        }
    }
    let at = time as f64 * rate.to_f64() / 1e9;
    let last = frames.and_then(|frames| frames.checked_sub(1));
    let is_on = |last: &u64| at > *last as f64 && at < (*last + 1) as f64;
    Ok(last.filter(is_on).map_or(Point::Time(time), Point::Frame))
}

/// Which frame that is.
fn which(time: Option<Point>) -> String {
    match time {
        None => "its first frame".to_owned(),
        Some(point @ Point::Time(_)) => format!("the first frame from {point} on"),
        Some(point @ Point::Frame(_)) => point.to_string(),
    }
}

/// A sink for one frame.
struct OneFrameSink(Arc<Mutex<Option<Frame>>>);

impl Sink for OneFrameSink {
    fn held_buffers(&self) -> usize {
        1
    }

    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(frame);
        Ok(Flow::More)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        Ok(Written::default())
    }
}

/// Shows the effect of the filter on one frame.
pub(crate) fn run(mut arguments: PreviewArguments) -> Result<(), Failure> {
    arguments.engine.check()?;
    // Before the process is confined.
    arguments.region.read()?;
    let fields = arguments.filtering.fields;
    let output = arguments.output.as_ref();
    arguments.region.check(&arguments.input, output, fields)?;
    let target = arguments.target()?;
    if arguments.reading.untrusted {
        arguments.confine()?;
    }
    let mut remarks = arguments.filtering.caveats();
    if let Some(problem) = remarks.refusal().filter(|_| arguments.reading.strict) {
        return Err(Failure::Failed(problem));
    }
    let (opened, time) = arguments.open()?;
    if let Target::File(output) = &target {
        check_files(&[(&arguments.input, opened.files.as_ref())], output, None)?;
    }
    let info = opened.source.info().clone();
    let (frame, of_source) = arguments.filtered(opened, &info)?;
    remarks.append(of_source);
    let is_interlaced = [info.field_order, frame.metadata.field_order]
        .iter()
        .any(|order| *order != FieldOrder::Progressive);
    if let Some(note) = arguments
        .filtering
        .note_on_fields("its")
        .filter(|_| is_interlaced)
    {
        arguments.say(&note);
    }
    let picture = Picture::new(frame, arguments.layout(), &info)?;
    if let Some(words) = picture.cut.words() {
        remarks.warn([format!(
            "the preview cuts samples that are outside of 0 to 1: {words}"
        )]);
    }
    let mut said = vec![format!("input   {}: {}", arguments.described(&info), which(time))];
    match target {
        Target::File(output) => {
            let written = arguments.write(picture, &output)?;
            remarks.append(written.remarks);
            said.push(format!("output  {}", written.description));
        }
        Target::Terminal(protocol) => show(&picture, protocol)?,
    }
    said.iter().for_each(|line| arguments.say(line));
    for note in &remarks.notes {
        arguments.say(&format!("note: {note}"));
    }
    if arguments.quiet < 2 {
        for warning in &remarks.warnings {
            let _ = writeln!(io::stderr(), "warning: {}", escape::line(warning));
        }
    }
    Ok(())
}
