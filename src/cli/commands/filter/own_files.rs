//! The files that a run writes beside its output: reports, a trace, the hashes of its frames.

use super::single::Single;
use super::{FilterArguments, is_page};
use crate::cli::Failure;
use crate::cli::show::failure::to_stdout;
use crate::cli::show::hashes;
use framepipe::frame::{Rational, Remarks};
use framepipe::report::{Measurements, Origin, Report, Task, page};
use framepipe::sink::SinkError;
use framepipe::sink::atomic_file::AtomicFile;
use std::io::Write;
use std::path::Path;

/// The files of a run beside its output, under temporary names.
pub(super) struct OwnFiles {
    /// In the order of their names.
    pub(super) reports: Vec<AtomicFile>,
    pub(super) trace: Option<AtomicFile>,
    pub(super) hashes: Option<AtomicFile>,
}

impl OwnFiles {
    pub(super) fn create(arguments: &FilterArguments) -> Result<OwnFiles, Failure> {
        let overwrite = arguments.encoding.overwrite;
        let create = |path: &Path| match AtomicFile::create(path, overwrite) {
            // Options that exclude each other.
            Err(SinkError::Exists { path }) if arguments.skip_existing => Err(Failure::Failed(format!(
                "{path} exists, and --skip-existing passes over images alone; choose another name"
            ))),
            created => Ok(created?),
        };
        Ok(OwnFiles {
            reports: (arguments.reports.iter())
                .map(|path| create(path))
                .collect::<Result<_, _>>()?,
            trace: arguments.trace.trace.as_deref().map(create).transpose()?,
            hashes: arguments.hashes_file().map(create).transpose()?,
        })
    }
}

impl Single<'_> {
    /// Writes the report to its files.
    pub(super) fn write_reports(
        &self,
        report: &Report,
        measured: &Measurements,
        files: Vec<AtomicFile>,
    ) -> Result<(), Failure> {
        for (name, file) in self.arguments.reports.iter().zip(files) {
            let text = if is_page(name) {
                page::run(report, measured)?
            } else {
                report.to_json()?
            };
            write_whole(file, &text)?;
        }
        Ok(())
    }

    /// Writes the hashes of the frames, if they are wanted: to standard output without a file.
    pub(super) fn write_hashes(&self, file: Option<AtomicFile>, time_base: Rational) -> Result<(), Failure> {
        let (Some(_), Some(log)) = (&self.arguments.frame_hashes, &self.log) else {
            return Ok(());
        };
        let text = hashes::text(&log.take(), time_base);
        match file {
            Some(file) => write_whole(file, &text),
            None => to_stdout(|out| Ok(out.write_all(text.as_bytes())?)),
        }
    }

    /// Writes the files of a run whose output is there already: they have no frames.
    pub(super) fn write_of_nothing(
        &self,
        mut remarks: Remarks,
        origin: Option<Origin>,
    ) -> Result<(), Failure> {
        let own = OwnFiles::create(self.arguments)?;
        let measured = Measurements::default();
        let task = Task {
            input_name: self.input.name(),
            output_name: self.output.to_string(),
            input: self.input.name(),
            output: self.output.to_string(),
            filters: self.arguments.filtering.labels().collect(),
            engine: "none".to_owned(),
            engine_description: "none was started".to_owned(),
            origin,
        };
        remarks.notes.push(self.nothing_to_do());
        let trace = self.arguments.trace.write(own.trace, &task, &measured);
        self.write_reports(&Report::new(task, &measured, remarks), &measured, own.reports)?;
        // As image files have them.
        let rate = self.input.rate_for(&self.output, self.arguments.reading.fps);
        let time_base = rate.map_or(Rational { num: 1, den: 25 }, |rate| Rational {
            num: rate.den,
            den: rate.num,
        });
        self.write_hashes(own.hashes, time_base)?;
        trace
    }
}

/// Writes all of a file and gives it its name.
fn write_whole(file: AtomicFile, text: &str) -> Result<(), Failure> {
    file.file()
        .write_all(text.as_bytes())
        .map_err(|cause| file.failed(cause))?;
    Ok(file.commit()?)
}
