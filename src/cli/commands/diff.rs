//! `framepipe diff`: two inputs, compared frame by frame.

use super::{Failure, to_stdout};
use crate::cli::endpoint::{FileChoice, Input, Opened, Output, check_distinct, check_files};
use crate::cli::options::encoding::EncodingArguments;
use crate::cli::options::reading::{RangeArguments, ReadingArguments};
use crate::cli::process::interrupt::{self, Policy};
use crate::cli::process::untrusted;
use crate::cli::show::escape;
use crate::cli::show::progress::{self, Form, Pace, Watched};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use framepipe::compare::{Heat, InputSummary, Lengths, Summary, Total};
use framepipe::frame::fact::{self, Fact, Samples};
use framepipe::frame::{Frame, Metadata, PixelFormat, Remarks, Turn};
use framepipe::pipeline::{InStep, PipelineError, Progress, Stop, Verdict, in_step};
use framepipe::report::Stage;
use framepipe::sink::atomic_file::remove_left_overs;
use framepipe::sink::{AnySink, SinkError};
use framepipe::source::StreamInfo;
use framepipe::source::images::pairing::Relation;
use framepipe::wording::{counted, tidy};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Seconds that times of frames may be apart, at most, where containers round them.
const SAME_TIME: f64 = 0.004;

/// What is compared, and what is said of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct DiffArguments {
    /// A video file, a directory, frames/%05d.png, a glob, an image, - (YUV4MPEG2 on standard input),
    /// raw:WxH:FORMAT:FPS:PATH or synthetic:WxH:FORMAT:FPS:FRAMES.
    #[arg(value_parser = OsStringValueParser::new().try_map(Input::from_argument))]
    a: Input,
    /// What it is compared with; the same kinds.
    #[arg(value_parser = OsStringValueParser::new().try_map(Input::from_argument))]
    b: Input,
    /// Write the differences as pictures: black where frames are equal, then purple, red and yellow up to
    /// white for the whole range, on a logarithmic scale. An image, a directory, frames/%05d.png or a
    /// video file.
    #[arg(short, long, value_parser = OsStringValueParser::new().try_map(Output::from_argument))]
    output: Option<Output>,
    /// Print JSON instead of text; docs/schemas.md in framepipe's source has the fields.
    #[arg(long)]
    json: bool,
    /// Print no comparison: the exit code says it; -qq keeps warnings back, too.
    #[arg(short, long, action = clap::ArgAction::Count)]
    quiet: u8,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    encoding: EncodingArguments,
}

impl DiffArguments {
    /// Refuses impossible combinations, before anything is opened.
    fn check(&self, output: Option<&Output>) -> Result<(), Failure> {
        if self.json && self.quiet > 0 {
            return Err(Failure::Usage(
                "--json prints the comparison, and -q holds it back; leave one of them out".to_owned(),
            ));
        }
        let pipe = Some(Path::new("-"));
        if self.a.path() == pipe && self.b.path() == pipe {
            return Err(Failure::Usage(
                "standard input can be one of the two inputs, not both".to_owned(),
            ));
        }
        let needs = [
            (self.reading.fps.is_some(), "--fps", "image files"),
            (self.reading.stream.is_some(), "--stream", "video files"),
        ];
        for (given, option, kind) in needs {
            let is_such = |input: &Input| match kind {
                "image files" => input.is_images(),
                _ => matches!(input, Input::Video(_)),
            };
            if given && !is_such(&self.a) && !is_such(&self.b) {
                return Err(Failure::Usage(format!(
                    "{option} is an option of {kind}, and neither input is such"
                )));
            }
        }
        let Some(output) = output else {
            return match self.encoding.first_given() {
                Some(option) => Err(Failure::Usage(format!(
                    "{option} is about the differences as pictures, and there is no --output for them"
                ))),
                None => Ok(()),
            };
        };
        output.check(&self.encoding)?;
        if let Some(floats) = self
            .encoding
            .floats()
            .filter(|&floats| !output.holds_floats(floats))
        {
            return Err(Failure::Usage(format!(
                "--pixel-format {floats}: {output} holds no such samples, and differences are not filtered \
                 in them; leave it out, or name a file that holds them, such as heat.exr"
            )));
        }
        if output.leads_to_stdout() {
            return Err(Failure::Usage(
                "standard output is for what was found; choose another output, such as heat.png".to_owned(),
            ));
        }
        check_distinct(&self.a, output)?;
        check_distinct(&self.b, output)
    }

    /// Opens one of the inputs with the options that it has.
    fn open(&self, input: &Input, output: Option<&Output>) -> Result<Opened, Failure> {
        let rate = self.reading.fps.filter(|_| input.is_images());
        let rate = output.map_or(rate, |output| input.rate_for(output, rate));
        let mut options = self.reading.options(None);
        match input {
            // Both inputs are decoded at once.
            Input::Video(_) => options.threads = self.reading.decoder_threads(true),
            _ => options.stream = None,
        }
        let choice = FileChoice {
            selection: self.range.selection(input),
            range: self.range.times(input)?,
            ..FileChoice::default()
        };
        let opened = input.open(rate, &options, &choice)?;
        let info = opened.source.info();
        self.reading.check_size(&input.name(), info)?;
        if info.format.is_float() {
            return Err(Failure::Usage(format!(
                "{} {}",
                input.name(),
                of_floats(info.format)
            )));
        }
        Ok(opened)
    }

    /// Makes the sink of the pictures of differences.
    fn open_output(&self, output: &Output, opened: &Opened) -> Result<AnySink, Failure> {
        // The sink of image files looks after its own.
        if let Some(folder) = output.folder().filter(|_| !output.is_images()) {
            remove_left_overs(&folder);
        }
        let info = Heat::info(opened.source.info());
        output.open(
            &info,
            &self.encoding,
            self.reading.strict,
            opened.files.clone(),
            None,
        )
    }

    /// Prints to stderr unless that is not wanted.
    fn say(&self, text: &str) {
        if self.quiet == 0 {
            // A closed stderr is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{}", escape::line(text));
        }
    }

    /// Prints the result.
    fn show(&self, summary: &Summary) -> Result<(), Failure> {
        if self.quiet == 1 {
            for warning in &summary.warnings {
                let _ = writeln!(std::io::stderr(), "warning: {}", escape::line(warning));
            }
        }
        if self.quiet > 0 {
            return Ok(());
        }
        let printed = to_stdout(|out| {
            let text = if self.json {
                summary.to_json()?
            } else {
                let mut summary = summary.clone();
                let sentences = summary.mismatches.iter_mut().chain(&mut summary.notes);
                escape::each(sentences.chain(&mut summary.warnings));
                escape::each([&mut summary.a.name, &mut summary.b.name]);
                summary.to_string()
            };
            Ok(out.write_all(text.as_bytes())?)
        });
        match printed {
            // A reader that stops early, as `head` does, still gets the exit code.
            Err(Failure::ReaderGone) => Ok(()),
            printed => printed,
        }
    }
}

/// Why frames of this format are not compared.
fn of_floats(format: PixelFormat) -> String {
    format!(
        "holds floating-point samples ({format}), and diff compares levels; make 16-bit pictures of both \
         first (framepipe filter IN OUT.png --filter identity), or compare bits by --frame-hashes"
    )
}

/// Facts of both inputs, known before the first frame.
struct Known {
    /// As they were given.
    names: [String; 2],
    a: StreamInfo,
    b: StreamInfo,
    /// Both inputs say when their frames are shown: neither is image files.
    has_times: bool,
}

impl Known {
    /// True if no later pair can be compared where the first could not.
    fn is_uniform(&self) -> bool {
        self.a.uniform && self.b.uniform
    }

    /// Where samples of equal value do not mean the same, by what is said of them and else assumed.
    fn notes(&self) -> Option<String> {
        let facts = |info: &StreamInfo| {
            let mut metadata = Metadata::default();
            metadata.colour = info.colour;
            let samples = Samples::of(info.format, info.height);
            (fact::said(&metadata, samples), samples)
        };
        let ((a, of_a), (b, of_b)) = (facts(&self.a), facts(&self.b));
        let kinds = [
            Fact::Range,
            Fact::Matrix,
            Fact::Primaries,
            Fact::Transfer,
            Fact::ChromaLocation,
        ];
        let differing = kinds.into_iter().filter_map(|kind| {
            let (in_a, in_b) = (a.get(&kind), b.get(&kind));
            let is_same = match (in_a, in_b) {
                (Some(a), b) => fact::survives(kind, a, b.map(String::as_str), of_a),
                (None, Some(b)) => fact::is_usual(kind, b, of_b),
                (None, None) => true,
            };
            let word = |value: Option<&String>| value.map_or(fact::unsaid(kind), String::as_str).to_owned();
            (!is_same).then(|| format!("{} ({} and {})", kind.word(), word(in_a), word(in_b)))
        });
        let differing: Vec<String> = differing.collect();
        (!differing.is_empty()).then(|| {
            format!(
                "the facts about samples differ: {}; equal samples are not the same colours",
                differing.join(", ")
            )
        })
    }
}

/// Pairs that are shown in different orientations.
#[derive(Default)]
struct Orientations {
    /// The first such pair, and how A and B are shown.
    first: Option<(u64, Turn, Turn)>,
    count: u64,
}

impl Orientations {
    fn visit(&mut self, known: &Known, number: u64, a: &Frame, b: &Frame) {
        let turn = |info: &StreamInfo, frame: &Frame| {
            let turn = Turn::of_blocks(&info.side_data).or_else(|| Turn::of_frame(&frame.metadata));
            turn.unwrap_or(Turn::UPRIGHT)
        };
        let (a, b) = (turn(&known.a, a), turn(&known.b, b));
        if a != b {
            self.count += 1;
            self.first.get_or_insert((number, a, b));
        }
    }

    fn note(&self, frames: u64) -> Option<String> {
        let (number, a, b) = self.first?;
        let place = match self.count {
            count if count == frames => String::new(),
            1 => format!(" in frame {number}"),
            count => format!(" in {count} frames, the first of them {number}"),
        };
        Some(format!(
            "the orientations differ{place}, {} and {}: samples are compared as they are stored",
            a.word(),
            b.word()
        ))
    }
}

/// When the frames of pairs are shown, each counted from the first one of its input.
#[derive(Default)]
struct Times {
    /// The time of the first frame of A and of B, in seconds.
    begin: Option<(f64, f64)>,
    /// The first pair of frames that are shown at other times than each other.
    first: Option<(u64, f64, f64)>,
}

impl Times {
    fn visit(&mut self, known: &Known, number: u64, a: &Frame, b: &Frame) {
        let seconds = |info: &StreamInfo, frame: &Frame| {
            frame.metadata.pts.map(|pts| pts as f64 * info.time_base.to_f64())
        };
        let (Some(a), Some(b)) = (seconds(&known.a, a), seconds(&known.b, b)) else {
            return;
        };
        let (begin_a, begin_b) = *self.begin.get_or_insert((a, b));
        let (a, b) = (a - begin_a, b - begin_b);
        // Both times of both inputs are rounded to their ticks.
        let ticks = known.a.time_base.to_f64() + known.b.time_base.to_f64();
        if known.has_times && self.first.is_none() && (a - b).abs() > ticks.min(SAME_TIME) {
            self.first = Some((number, a, b));
        }
    }

    fn note(&self, known: &Known) -> Option<String> {
        let (number, a, b) = self.first?;
        let rates = known.a.frame_rate.zip(known.b.frame_rate);
        Some(match rates.map(|(a, b)| (tidy(a.to_f64()), tidy(b.to_f64()))) {
            Some((a, b)) if a != b => format!("the times of frames differ ({a} and {b} frames/s)"),
            _ => format!("the times of frames differ, first at frame {number} ({a:.3} and {b:.3} s)"),
        })
    }
}

/// Whether image files go together by their numbers or names, as the first pair does.
#[derive(Default)]
struct Names {
    begin: Option<Relation>,
    /// The first pair that goes together otherwise.
    first: Option<(u64, Arc<PathBuf>, Arc<PathBuf>)>,
}

impl Names {
    fn visit(&mut self, number: u64, a: &Frame, b: &Frame) {
        let (Some(a), Some(b)) = (&a.metadata.file, &b.metadata.file) else {
            return;
        };
        let relation = Relation::of(a, b);
        if *self.begin.get_or_insert(relation) != relation && self.first.is_none() {
            self.first = Some((number, a.clone(), b.clone()));
        }
    }

    fn warning(&self) -> Option<String> {
        let (number, a, b) = self.first.as_ref()?;
        Some(format!(
            "frame {number} compares {} with {}, whose names go together otherwise than those before: one of \
             the inputs lacks a file, or has one more",
            a.display(),
            b.display()
        ))
    }
}

/// Compares pair after pair.
struct Walk {
    known: Known,
    orientations: Orientations,
    times: Times,
    names: Names,
    pairs: u64,
    heat: Option<Heat>,
    total: Total,
    lengths: Lengths,
}

impl Walk {
    fn visit(&mut self, a: Option<&Frame>, b: Option<&Frame>) -> Result<Verdict, SinkError> {
        let (Some(a), Some(b)) = (a, b) else {
            self.lengths = match a {
                Some(_) => Lengths::BEndsFirst,
                None => Lengths::AEndsFirst,
            };
            return Ok(Verdict::Break(()));
        };
        for (frame, name) in [a, b].into_iter().zip(&self.known.names) {
            if frame.format().is_float() {
                return Err(SinkError::Unsupported {
                    path: name.clone(),
                    problem: of_floats(frame.format()),
                });
            }
        }
        self.orientations.visit(&self.known, self.pairs, a, b);
        self.times.visit(&self.known, self.pairs, a, b);
        self.names.visit(self.pairs, a, b);
        self.pairs += 1;
        self.total.add(a, b);
        if !self.total.has_compared() && self.known.is_uniform() {
            self.lengths = Lengths::Unknown;
            return Ok(Verdict::Break(()));
        }
        let picture = self.heat.as_mut().map(|heat| heat.picture(a, b));
        picture
            .transpose()
            .map(Verdict::Continue)
            .map_err(SinkError::other)
    }
}

/// Compares the inputs. Every error that prevents it has exit code 2.
pub(crate) fn run(arguments: &DiffArguments) -> Result<(), Failure> {
    compare(arguments).map_err(|failure| match failure {
        Failure::Failed(text) | Failure::Passing(text) => Failure::Incomparable(text),
        failure => failure,
    })
}

fn compare(arguments: &DiffArguments) -> Result<(), Failure> {
    let container = arguments.encoding.format.as_deref();
    let output = arguments.output.clone();
    let output = output.map(|output| output.with_container(container).for_input(&arguments.a));
    let output = output.as_ref();
    arguments.check(output)?;
    if arguments.reading.untrusted {
        let reads = [arguments.a.reads()?, arguments.b.reads()?].concat();
        let said = untrusted::confine(reads, output.and_then(Output::folder), false)?;
        arguments.say(&format!("confined: {said}"));
    }
    let (a, b) = (
        arguments.open(&arguments.a, output)?,
        arguments.open(&arguments.b, output)?,
    );
    if let Some(output) = output {
        let inputs = [(&arguments.a, a.files.as_ref()), (&arguments.b, b.files.as_ref())];
        check_files(&inputs, output, None)?;
    }
    let stop = Stop::new();
    // Before the first file is created, so that none remains.
    let policy = Policy {
        wanted: None,
        replaces: arguments.encoding.overwrite && output.and_then(Output::path).is_some_and(Path::is_file),
    };
    interrupt::watch(&stop, arguments.quiet > 0, policy)?;
    let sink = output
        .map(|output| arguments.open_output(output, &a))
        .transpose()?;
    let known = Known {
        names: [&arguments.a, &arguments.b].map(Input::name),
        a: a.source.info().clone(),
        b: b.source.info().clone(),
        has_times: !arguments.a.is_images() && !arguments.b.is_images(),
    };
    let frames = known.a.frames;
    let pace = Pace::of(&known.a);
    let mut walk = Walk {
        known,
        orientations: Orientations::default(),
        times: Times::default(),
        names: Names::default(),
        pairs: 0,
        heat: output.map(|_| Heat::new()),
        total: Total::default(),
        lengths: Lengths::Equal,
    };
    let counters = Progress::new();
    let strict = arguments.reading.strict;
    let watched = Watched {
        counters: &counters,
        stop: &stop,
        frames,
        parts: 1,
        pace,
    };
    let outcome = progress::show(&watched, Form::usual(arguments.quiet > 0), || {
        in_step([a.source, b.source], sink, strict, &stop, &counters, |a, b| {
            walk.visit(a, b)
        })
    });
    let outcome = match outcome {
        Err(PipelineError::Abandoned) => {
            let written = counters.frames(Stage::Encode);
            arguments.say(&output.unwrap_or(&Output::Null).abandoned_after(written));
            return Err(Failure::Interrupted);
        }
        outcome => outcome?,
    };
    if stop.is_finish_asked() {
        walk.lengths = Lengths::Unknown;
    }
    conclude(arguments, walk, outcome, stop.is_finish_asked())
}

/// Prints the result, and returns the verdict.
fn conclude(
    arguments: &DiffArguments,
    walk: Walk,
    outcome: InStep,
    is_interrupted: bool,
) -> Result<(), Failure> {
    let Walk {
        known,
        orientations,
        times,
        names,
        pairs,
        total,
        lengths,
        ..
    } = walk;
    let mut remarks = Remarks::default();
    remarks.notes.extend(known.notes());
    remarks.notes.extend(total.other_storage());
    remarks.notes.extend(orientations.note(pairs));
    remarks.notes.extend(times.note(&known));
    remarks.warn(names.warning());
    for of_source in outcome.remarks {
        remarks.append(of_source);
    }
    if let Some(written) = outcome.written {
        remarks.append(written.remarks);
        arguments.say(&format!("the differences as pictures: {}", written.description));
    }
    let input = |input: &Input, info: StreamInfo| InputSummary {
        name: input.name(),
        description: info.description,
        frames: None,
    };
    let (a, b) = (input(&arguments.a, known.a), input(&arguments.b, known.b));
    let summary = Summary::new(&total, lengths, a, b, remarks);
    arguments.show(&summary)?;
    match (is_interrupted, summary.equal) {
        (true, _) => {
            arguments.say(&format!(
                "interrupted: {} compared",
                counted(summary.frames, "frame")
            ));
            Err(Failure::Interrupted)
        }
        (false, true) => Ok(()),
        (false, false) if summary.frames > 0 && summary.all.is_none() => {
            let mut text = format!("{} and {} cannot be compared", summary.a.name, summary.b.name);
            // The reason was printed with the text of the comparison.
            if arguments.quiet > 0 || arguments.json {
                text.push_str(&format!(": {}", summary.mismatches.join("; ")));
            }
            Err(Failure::Incomparable(text))
        }
        (false, false) => Err(Failure::Different),
    }
}
