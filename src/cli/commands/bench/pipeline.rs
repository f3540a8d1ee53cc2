//! `framepipe bench pipeline`.

use super::axis::warn_of_caveats;
use super::output::OutputArguments;
use crate::cli::Failure;
use crate::cli::commands::filter::pipeline_options;
use crate::cli::endpoint::{FileChoice, Input, Output, check_distinct, check_files};
use crate::cli::options::encoding::EncodingArguments;
use crate::cli::options::engine::EngineArguments;
use crate::cli::options::trace::TraceArguments;
use crate::cli::process::interrupt::{self, Policy};
use crate::cli::process::limits::count;
use crate::cli::show::progress::{self, Form, Pace, Watched};
use crate::cli::show::summary;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use framepipe::filter::{Algorithm, Border, Chain, Filter, Planes};
use framepipe::frame::{Rational, parse_rate};
use framepipe::pipeline::{Job, PipelineError, PipelineOptions, Progress, Stop};
use framepipe::program::bench::{SteadyPlan, run_steady};
use framepipe::report::Completion;
use framepipe::source::video::VideoSourceOptions;
use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The run as the user wrote it.
#[derive(Debug, Clone, Args)]
pub(crate) struct PipelineArguments {
    /// As for `framepipe filter`. What is made up never ends; of anything else there should be enough for the
    /// whole time.
    #[arg(default_value = "synthetic:1920x1080:yuv420p:60:0")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Input::from_argument))]
    input: Input,
    /// As for `framepipe filter`.
    #[arg(default_value = "null:")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Output::from_argument))]
    output: Output,
    /// What is done to each frame; several are applied in order.
    #[arg(
        short,
        long = "filter",
        value_name = "SPEC",
        default_value = "gaussian:size=5",
        value_parser = Chain::parse
    )]
    filters: Vec<Chain>,
    /// What pixels outside the frame are.
    #[arg(long, value_name = "MODE", default_value_t)]
    border: Border,
    /// The components to change.
    #[arg(long, value_name = "PLANES", default_value_t)]
    planes: Planes,
    /// How masks are applied: auto, direct or separable.
    #[arg(long, value_name = "NAME", default_value_t)]
    algorithm: Algorithm,
    /// Frames a second of image files.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    fps: Option<Rational>,
    /// Threads of FFmpeg's decoder.
    #[arg(long, value_name = "N", value_parser = count)]
    decoder_threads: Option<NonZeroUsize>,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// Frames that may wait between two stages.
    #[arg(long, value_name = "N", default_value_t = PipelineOptions::default().queue)]
    #[arg(value_parser = crate::cli::process::limits::queue)]
    queue: usize,
    /// Threads that read and that write image files [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = count)]
    workers: Option<NonZeroUsize>,
    /// How long to measure [default: 10].
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    #[arg(help_heading = "Measuring")]
    seconds: Option<Duration>,
    /// How long to run before that [default: a fifth of it, 2 at most].
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    #[arg(help_heading = "Measuring")]
    warm_up: Option<Duration>,
    /// Measure for one second: a first look, and nothing to publish.
    #[arg(long, help_heading = "Measuring", conflicts_with = "seconds")]
    quick: bool,
    #[command(flatten)]
    files: OutputArguments,
    #[command(flatten)]
    trace: TraceArguments,
}

/// A length of time, at most a day.
fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|s: &f64| (0.0..=86_400.0).contains(s))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "write seconds, such as 10 or 0.5, at most 86400".to_owned())
}

impl PipelineArguments {
    /// True if the engine's choices are shown.
    pub(super) fn explains(&self) -> bool {
        self.engine.explain
    }

    fn plan(&self) -> Result<SteadyPlan, Failure> {
        let usual = Duration::from_secs(if self.quick { 1 } else { 10 });
        let time = self.seconds.unwrap_or(usual);
        if time < Duration::from_millis(10) {
            return Err(Failure::Usage(
                "--seconds is too short to measure anything; write 0.01 or more".to_owned(),
            ));
        }
        let warm_up = (time / 5).min(Duration::from_secs(2));
        Ok(SteadyPlan {
            warm_up: self.warm_up.unwrap_or(warm_up),
            time,
        })
    }

    fn filters(&self) -> Vec<Filter> {
        self.filters
            .iter()
            .flat_map(|chain| chain.filters.clone())
            .collect()
    }

    fn chain(&self) -> Chain {
        let filters = self.filters();
        warn_of_caveats(&filters);
        Chain {
            filters,
            border: self.border,
            planes: self.planes.clone(),
            algorithm: self.algorithm,
            alpha: Default::default(),
        }
    }
}

/// Runs the pipeline and reports its steady state.
pub(super) fn run(mut arguments: PipelineArguments) -> Result<(), Failure> {
    arguments.output = arguments
        .output
        .with_container(arguments.encoding.format.as_deref());
    arguments.engine.check()?;
    arguments.trace.check()?;
    if let Some(trace) = &arguments.trace.trace
        && (arguments.files.names(trace) || arguments.output.to_string() == trace.display().to_string())
    {
        return Err(Failure::Usage(format!(
            "--trace {}: another option has the same name; choose another for one of them",
            trace.display()
        )));
    }
    arguments.output.check(&arguments.encoding)?;
    check_distinct(&arguments.input, &arguments.output)?;
    if arguments.output.leads_to_stdout() {
        return Err(Failure::Usage(
            "standard output is for what was measured; choose another output, such as null:".to_owned(),
        ));
    }
    let plan = arguments.plan()?;
    let rate = arguments.input.rate_for(&arguments.output, arguments.fps);
    let mut reading = VideoSourceOptions::default();
    reading.threads = arguments.decoder_threads.map(NonZeroUsize::get);
    let choice = FileChoice {
        floats: arguments.encoding.floats(),
        background: arguments.encoding.background,
        ..FileChoice::default()
    };
    let opened = arguments.input.open(rate, &reading, &choice)?;
    let info = opened.source.info().clone();
    let inputs = [(&arguments.input, opened.files.as_ref())];
    check_files(&inputs, &arguments.output, None)?;
    let engine = arguments.engine.start(arguments.chain(), &info)?;
    let overwrite = arguments.encoding.overwrite;
    let files = arguments.files.open(overwrite)?;
    let trace_file = arguments.trace.open(overwrite)?;
    let wants_page = arguments.files.wants_page();
    let sink = arguments
        .output
        .open(&info, &arguments.encoding, false, opened.files, None)?;
    let recording = arguments.trace.recording(wants_page, wants_page);
    let options = pipeline_options(arguments.queue, arguments.workers, recording);
    let job = Job {
        source: opened.source,
        engine,
        sink,
        options,
    };
    let stop = Stop::new();
    interrupt::watch(&stop, false, Policy::keeping())?;
    let counters = Progress::new();
    let filters = arguments.filters().into_iter().map(|f| f.label).collect();
    let device = arguments.engine.device.unwrap_or(0);
    let watched = Watched {
        counters: &counters,
        stop: &stop,
        frames: info.frames,
        parts: 1,
        pace: Pace::of(&info),
    };
    let measured = progress::show(&watched, Form::usual(false), || {
        run_steady(job, filters, plan, device, &stop, &counters)
    });
    let (mut steady, measured) = match measured {
        Err(PipelineError::Abandoned) => {
            // A closed stderr is no reason to stop.
            let _ = writeln!(std::io::stderr(), "abandoned: nothing was measured");
            return Err(Failure::Interrupted);
        }
        measured => measured?,
    };
    if steady.frames == 0 && steady.ending == Completion::Complete {
        return Err(Failure::Failed(format!(
            "{} ended before the warm-up of {} s was over, so that nothing was measured; give a longer \
             input, or a shorter --warm-up",
            arguments.input.name(),
            plan.warm_up.as_secs_f64()
        )));
    }
    steady.report.task.input_name = arguments.input.name();
    steady.report.task.output_name = arguments.output.to_string();
    summary::advise(&mut steady.report, &arguments.encoding);
    arguments
        .trace
        .write(trace_file, &steady.report.task, &measured)?;
    let (table, ending) = (steady.to_string(), steady.ending);
    files.write(&(steady, measured), &table)?;
    match ending {
        Completion::Interrupted => Err(Failure::Interrupted),
        Completion::Complete | Completion::Closed => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_limits() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["-1", "a", "NaN", "inf", "86401", ""] {
            assert!(seconds(bad).unwrap_err().contains("such as 10"), "{bad}");
        }
    }
}
