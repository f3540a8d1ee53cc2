//! `framepipe bench tune`.

mod start;

use super::axis::Size;
use super::output::Place;
use crate::cli::process::interrupt::{self, Policy};
use crate::cli::process::origin;
use crate::cli::show::bar::bar;
use crate::cli::show::failure::{Failure, to_stdout};
use clap::Args;
use framepipe::frame::PixelFormat;
use framepipe::pipeline::Stop;
use framepipe::program::bench::{Bench, Case, Effort, TuneGrid, TuneJob, Tuning, figure};
use framepipe::report::Completion;
use std::io::Write;
use std::path::PathBuf;

/// What is tuned.
#[derive(Debug, Clone, Args)]
pub(crate) struct TuneArguments {
    /// Masks by their size, each applied directly and separably [default: 3,5,7,9,11,15,21,31].
    #[arg(long, value_name = "K", value_delimiter = ',')]
    mask_sizes: Vec<usize>,
    /// Pixel formats, each for its kind of samples and interleaving [default: gray,gray10le,
    /// gray16le,rgb24].
    #[arg(long, value_name = "FORMAT", value_delimiter = ',')]
    formats: Vec<PixelFormat>,
    /// Frame sizes [default: 1280x720,3840x2160].
    #[arg(long, value_name = "WxH", value_delimiter = ',')]
    sizes: Vec<Size>,
    /// Which CUDA card, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    /// Short times, few masks, formats and sizes.
    #[arg(long)]
    quick: bool,
    /// Write JSON to this file, whose fields are in docs/schemas.md in framepipe's source; - for standard
    /// output, instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(short = 'y', long)]
    overwrite: bool,
}

impl TuneArguments {
    fn grid(&self) -> TuneGrid {
        let mut grid = if self.quick {
            TuneGrid::quick()
        } else {
            TuneGrid::full()
        };
        if !self.mask_sizes.is_empty() {
            grid.mask_sizes.clone_from(&self.mask_sizes);
        }
        if !self.formats.is_empty() {
            grid.formats.clone_from(&self.formats);
        }
        if !self.sizes.is_empty() {
            grid.frames = self.sizes.iter().map(|s| (s.width, s.height)).collect();
        }
        grid
    }
}

/// Measures, keeps the table if it is whole, and prints what won.
pub(super) fn run(arguments: &TuneArguments) -> Result<(), Failure> {
    let json = arguments.json.as_deref();
    let json = json
        .map(|path| Place::open(path, arguments.overwrite))
        .transpose()?;
    let effort = if arguments.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    let (mut bench, why_no_card) = Bench::new(arguments.device, effort);
    let Some(card) = bench.device() else {
        let why = why_no_card.map_or_else(String::new, |error| error.to_string());
        return Err(Failure::Failed(why));
    };
    let jobs = arguments.grid().jobs(card)?;
    let stop = Stop::new();
    interrupt::watch(&stop, false, Policy::keeping())?;
    let cases: Vec<Case> = jobs.iter().flat_map(TuneJob::cases).cloned().collect();
    let bar = bar(cases.len());
    bar.set_message("compiling kernels");
    bench.compile(&cases);
    let mut tuning = Tuning::new(bench.machine().clone(), bench.versions().clone());
    let measured = tuning.measure(
        &jobs,
        &mut |case| {
            let time = bench.time_kernels(case)?;
            tracing::info!("{case}: {} ms", figure(time.median));
            Ok(time)
        },
        &mut |number, case| {
            bar.set_position(number as u64);
            bar.set_message(case.to_string());
            !stop.is_finish_asked()
        },
    );
    bar.finish_and_clear();
    measured?;
    let is_whole = tuning.ending == Completion::Complete;
    if is_whole {
        let size = arguments.grid().frames.first().copied();
        match start::measure(&mut bench, arguments.device, size.unwrap_or((1920, 1080))) {
            Ok(crossover) => tuning.crossover = Some(crossover),
            Err(failure) => tuning.notes.push(failure.reason()),
        }
    }
    // The result is shown even if it cannot be stored.
    let kept = is_whole.then(|| bench.keep(&tuning.date, &tuning.table()));
    let kept = kept.transpose();
    if let Ok(Some(path)) = &kept {
        tuning.kept = Some(path.display().to_string());
    }
    let mut printed = tuning.to_string();
    if let Some(json) = json
        && let Some(text) = json.write(tuning.to_json()?)?
    {
        printed = text;
    }
    to_stdout(|out| Ok(out.write_all(printed.as_bytes())?))?;
    kept?;
    if let Some(crossover) = tuning.crossover {
        crossover.keep(&origin::machine(), &tuning.date)?;
    }
    if is_whole {
        Ok(())
    } else {
        Err(Failure::Interrupted)
    }
}
