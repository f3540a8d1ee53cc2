//! The trace of a run.

use crate::cli::Failure;
use clap::Args;
use framepipe::report::{Measurements, Recording, Task, Trace, page};
use framepipe::sink::atomic_file::AtomicFile;
use std::io::BufWriter;
use std::path::PathBuf;

/// Whether there is one, and how long it is.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceArguments {
    /// Write what each thread and each of the card's streams did to this file, whose name ends in .json: a
    /// trace for https://ui.perfetto.dev.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// How many of the first frames the trace holds; each takes up to 504 bytes of memory and about 2 kB of
    /// the file.
    #[arg(long, value_name = "N", default_value_t = 1024, requires = "trace")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    trace_frames: u64,
}

impl TraceArguments {
    /// Refuses a name with another extension.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.trace {
            Some(path) if path.extension().is_none_or(|e| e != "json") => Err(Failure::Usage(format!(
                "--trace {}: the name must end in .json",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The records that stages keep: frames' spans for the trace and, with `page`, for a page's plots.
    pub(crate) fn recording(&self, page: bool, throughput: bool) -> Recording {
        let traced = self.trace.as_ref().map_or(0, |_| self.trace_frames);
        Recording {
            frames: traced.max(if page { page::FRAMES } else { 0 }),
            throughput,
        }
    }

    /// Creates the file under a temporary name.
    pub(crate) fn open(&self, overwrite: bool) -> Result<Option<AtomicFile>, Failure> {
        let file = self
            .trace
            .as_deref()
            .map(|path| AtomicFile::create(path, overwrite));
        Ok(file.transpose()?)
    }

    /// Writes the file and renames it.
    pub(crate) fn write(
        &self,
        file: Option<AtomicFile>,
        task: &Task,
        measured: &Measurements,
    ) -> Result<(), Failure> {
        let Some(file) = file else { return Ok(()) };
        Trace::new(task, measured, self.trace_frames)
            .write_to(BufWriter::new(file.file()))
            .map_err(|cause| file.failed(cause))?;
        Ok(file.commit()?)
    }
}
