//! `framepipe filter`: the main job.

mod job;

pub(crate) use job::run;

use super::encoding::EncodingArguments;
use super::endpoint::{FileChoice, Input, Output, check_distinct, names_same_file, parent};
use super::engine::EngineArguments;
use super::interrupt::{OnInterrupt, Policy};
use super::reading::ReadingArguments;
use super::trace::TraceArguments;
use super::{Failure, escape, progress, untrusted};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use framepipe::filter::{Algorithm, Border, Chain, Filter, Planes};
use framepipe::frame::Remarks;
use framepipe::pipeline::PipelineOptions;
use framepipe::report::Recording;
use framepipe::source::images::listing::Selection;
use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The job as the user wrote it.
#[derive(Debug, Clone, Args)]
pub(crate) struct FilterArguments {
    /// A video file, a directory, frames/%05d.png, a glob, an image, - (YUV4MPEG2 on standard input),
    /// raw:WxH:FORMAT:FPS:PATH or synthetic:WxH:FORMAT:FPS:FRAMES.
    #[arg(value_parser = OsStringValueParser::new().try_map(Input::from_argument))]
    input: Input,
    /// A video file, a directory, frames/%05d.png, an image, - (YUV4MPEG2 on standard output), raw:PATH or
    /// null:.
    #[arg(value_parser = OsStringValueParser::new().try_map(Output::from_argument))]
    output: Output,
    /// What is done to each frame, such as gaussian:sigma=2 or gaussian:2 (`framepipe masks` lists them);
    /// several are applied in order, given one by one or with commas between them.
    #[arg(short, long = "filter", value_name = "SPEC", required = true, value_parser = Chain::parse)]
    filters: Vec<Chain>,
    /// The pixels outside the frame: replicate (aaa|abcd|ddd), zero, constant:V, reflect (cba|abcd|dcb),
    /// mirror (dcb|abcd|cba) or wrap (bcd|abcd|abc); OpenCV's, NumPy's and SciPy's names are known, too.
    #[arg(long, value_name = "MODE", default_value_t)]
    border: Border,
    /// The components to change: all, all+alpha, luma (of RGB, too: the difference is added to red, green and
    /// blue), gray (luma filtered, colour dropped), chroma, or a list of y,u,v,r,g,b,a.
    #[arg(long, value_name = "PLANES", default_value_t)]
    planes: Planes,
    /// How masks are applied: auto, direct, or separable (masks of rank 1 only).
    #[arg(long, value_name = "NAME", default_value_t)]
    algorithm: Algorithm,
    /// Turn every mask by 180 degrees: convolution in the mathematical sense instead of correlation.
    #[arg(long)]
    flip: bool,
    /// Filter the two fields of each picture separately, for interlaced video: the even rows as one picture,
    /// the odd ones as another.
    #[arg(long)]
    fields: bool,
    /// The number of the first image file: to be read, of a numbered sequence [default: the first that there
    /// is]; of other inputs, to be written [default: 0].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    start_number: Option<i64>,
    /// Go on with an interrupted job: image files whose output is there are not filtered again. Files appear
    /// under their names only when they are whole.
    #[arg(long, conflicts_with = "overwrite")]
    skip_existing: bool,
    /// Pass over image files that cannot be read, list them at the end, and exit with 1.
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// Say nothing but warnings and errors; -qq errors only.
    #[arg(short, long, action = clap::ArgAction::Count)]
    quiet: u8,
    /// What becomes of a run that a signal ends: its output is finished with the frames so far, or nothing is
    /// left of it [default: Ctrl-C keeps, SIGTERM and SIGHUP discard; a file that is there already is never
    /// replaced by a short one].
    #[arg(long, value_name = "WHAT")]
    on_interrupt: Option<OnInterrupt>,
    /// Refuse a run whose frame buffers would take more, such as 500M or 4G [default: three quarters of the
    /// memory that this machine, or the control group, has].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_memory: Option<u64>,
    /// Print where the time went, stage by stage, instead of three lines; -v does, too.
    #[arg(long)]
    stats: bool,
    /// Print progress for programs, one JSON object a second (docs/progress-schema.md): json on stderr, or
    /// json:FD on an open file descriptor [default: a line on a terminal, elsewhere one every 30 s].
    #[arg(long, value_name = "FORM")]
    progress: Option<progress::Wanted>,
    /// Print what would be done, with input, filters, engine and output, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write the report to this file: figures if its name ends in .json, a page to look at with plots if it
    /// ends in .html.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    trace: TraceArguments,
    /// Frames that may wait between two stages.
    #[arg(long, value_name = "N", default_value_t = PipelineOptions::default().queue, value_parser = queue)]
    queue: usize,
    /// Threads that read and that write image files [default: as many as there are cores].
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
}

/// A note about a mask of the user's own that makes pictures brighter or darker throughout.
fn brightness(filter: &Filter) -> Option<String> {
    let sum: f64 = filter.mask.weights().iter().sum();
    let is_plain = [0.0, 1.0].iter().any(|plain| (sum - plain).abs() < 1e-3);
    (filter.is_own() && !is_plain && filter.bias == 0.0).then(|| {
        format!(
            "the weights of {} add up to {}, which changes the brightness; divisor=sum keeps it",
            filter.label,
            (sum * 1000.0).round() / 1000.0
        )
    })
}

/// How a pipeline runs with this queue and these threads for image files.
pub(super) fn pipeline_options(
    queue: usize,
    workers: Option<NonZeroUsize>,
    recording: Recording,
) -> PipelineOptions {
    let mut options = PipelineOptions::default();
    options.queue = queue;
    if let Some(workers) = workers.map(NonZeroUsize::get) {
        options.source_workers = workers;
        options.sink_workers = workers;
    }
    options.recording = recording;
    options
}

/// A length of queue.
pub(super) fn queue(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| "write a number from 1 to 1024".to_owned())
}

/// A number of bytes such as 500M.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..]
        .to_ascii_uppercase()
        .trim_end_matches("IB")
        .trim_end_matches('B')
    {
        "" => 1_u64,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => 0,
    };
    let number: Option<f64> = digits.parse().ok().filter(|&n| n > 0.0 && unit > 0);
    number
        .map(|n| (n * unit as f64) as u64)
        .ok_or_else(|| "write a size such as 500M or 4G".to_owned())
}

impl FilterArguments {
    /// True if what the engine picks is to be told.
    pub(crate) fn explains(&self) -> bool {
        self.engine.explain
    }

    /// Refuses what cannot be, before anything is opened.
    fn check(&self) -> Result<(), Failure> {
        self.engine.check()?;
        self.output.check(&self.encoding)?;
        self.output.check_extension(&self.input)?;
        check_distinct(&self.input, &self.output)?;
        self.trace.check()?;
        if let Some(report) = &self.report {
            let extension = report.extension().unwrap_or_default();
            if extension != "json" && extension != "html" {
                return Err(Failure::Usage(format!(
                    "--report {}: the name must end in .json or .html",
                    report.display()
                )));
            }
        }
        for (noun, path) in [("report", &self.report), ("trace", &self.trace.trace)] {
            if let Some(path) = path {
                self.check_own(noun, path)?;
            }
        }
        if let (Some(report), Some(trace)) = (&self.report, &self.trace.trace)
            && names_same_file(report, trace)
        {
            return Err(Failure::Usage(format!(
                "{} is both report and trace; choose another name",
                report.display()
            )));
        }
        Ok(())
    }

    /// Refuses a file to be written that is the input or the output as well.
    fn check_own(&self, noun: &str, path: &Path) -> Result<(), Failure> {
        if self
            .output
            .path()
            .is_some_and(|output| names_same_file(output, path))
        {
            return Err(Failure::Usage(format!(
                "{} is both output and {noun}; choose another name",
                path.display()
            )));
        }
        if let Input::Video(input) | Input::Images(input) | Input::Raw(_, input) | Input::Y4m(input) =
            &self.input
            && names_same_file(input, path)
        {
            return Err(Failure::Usage(format!(
                "{} is both input and {noun}; choose another name",
                path.display()
            )));
        }
        Ok(())
    }

    /// The folders in which files of this run are made.
    fn folders(&self) -> BTreeSet<PathBuf> {
        let own = [self.report.as_deref(), self.trace.trace.as_deref()]
            .into_iter()
            .flatten();
        own.map(|file| parent(file).to_owned())
            .chain(self.output.folder())
            .collect()
    }

    /// Leaves the process what `--untrusted` allows.
    fn confine(&mut self) -> Result<(), Failure> {
        if let Some(filter) = self.filters().find(|filter| filter.is_from_file()) {
            return Err(Failure::Usage(format!(
                "--untrusted reads no mask files; write the mask of {} in rows=",
                filter.label
            )));
        }
        // A driver is more to attack, so that it is there for those alone who ask for it.
        self.engine.without_card();
        let said = untrusted::confine(&self.input.reads(), self.folders(), self.engine.wants_card())?;
        self.say(&format!("confined: {said}"));
        Ok(())
    }

    /// True if the report is to be a page.
    fn wants_page(&self) -> bool {
        let extension = self.report.as_ref().and_then(|path| path.extension());
        extension.is_some_and(|e| e == "html")
    }

    /// The filters, in the order of their application.
    fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter().flat_map(|chain| &chain.filters)
    }

    /// Where masks are not quite what was requested, or perhaps not what was meant.
    fn caveats(&self) -> Remarks {
        Remarks {
            warnings: self
                .filters()
                .filter_map(|filter| filter.caveat.clone())
                .collect(),
            notes: self.filters().filter_map(brightness).collect(),
        }
    }

    /// Which image files are to be read.
    fn selection(&self) -> Selection {
        let frames = self.reading.selection(&self.input);
        Selection {
            first: self
                .start_number
                .filter(|_| self.input.is_images())
                .or(frames.first),
            ..frames
        }
    }

    /// Which of the image files, and how.
    fn file_choice(&self) -> Result<FileChoice<'_>, Failure> {
        let of_images = [
            (self.skip_existing, "--skip-existing"),
            (self.keep_going, "--keep-going"),
        ];
        for (given, option) in of_images {
            if given && !(self.input.is_images() && self.output.is_images()) {
                return Err(Failure::Usage(format!(
                    "{option} is for image files that become image files, one by one"
                )));
            }
        }
        Ok(FileChoice {
            selection: self.selection(),
            range: self.reading.range(&self.input)?,
            keep_going: self.keep_going,
            missing_in: self.skip_existing.then_some(&self.output),
        })
    }

    /// The number of the first image file to be written, where those that are read have none.
    fn first_written(&self) -> Result<Option<i64>, Failure> {
        match self.start_number {
            Some(_) if self.input.is_images() => Ok(None),
            Some(_) if !self.output.is_numbered() => Err(Failure::Usage(
                "--start-number is for image files with numbers in their names, and neither input nor output \
                 is such"
                    .to_owned(),
            )),
            start => Ok(start),
        }
    }

    fn chain(&self) -> Chain {
        let mut filters: Vec<Filter> = self.filters().cloned().collect();
        if self.flip {
            filters = filters.into_iter().map(Filter::flipped).collect();
        }
        Chain {
            filters,
            border: self.border,
            planes: self.planes.clone(),
            algorithm: self.algorithm,
        }
    }

    /// The filter that mixes the fields of interlaced pictures, if one does.
    fn mixes_fields(&self) -> Option<&Filter> {
        self.filters()
            .find(|filter| !self.fields && filter.mask.height() > 1)
    }

    /// Threads of the decoder; `None` leaves the number to it. A video encoder works several times as long on
    /// a frame as the decoder, on all cores, so that a decoder with as many threads only takes turns with it:
    /// half of them do.
    fn decoder_threads(&self) -> Option<usize> {
        let encodes = matches!((&self.input, &self.output), (Input::Video(_), Output::Video(_)));
        self.reading.decoder_threads(encodes)
    }

    fn options(&self) -> PipelineOptions {
        let recording = self.trace.recording(self.wants_page(), self.report.is_some());
        let mut options = pipeline_options(self.queue, self.workers, recording);
        options.strict = self.reading.strict;
        options
    }

    /// Prints to stderr unless the run is quiet.
    fn say(&self, text: &str) {
        if self.quiet == 0 {
            // A closed stderr is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{}", escape::lines(text));
        }
    }

    fn interrupt_policy(&self) -> Policy {
        Policy {
            wanted: self
                .on_interrupt
                .or(self.reading.untrusted.then_some(OnInterrupt::Discard)),
            replaces: self.encoding.overwrite && self.output.path().is_some_and(Path::is_file),
        }
    }

}
