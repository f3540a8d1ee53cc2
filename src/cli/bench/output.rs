//! Where a measurement goes: a table on standard output, JSON, comma-separated values.

use crate::cli::{Failure, to_stdout};
use clap::Args;
use framepipe::bench::{Steady, Sweep};
use framepipe::sink::part::PartFile;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The files that were asked for.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputArguments {
    /// Write JSON to this file (docs/bench-schema.md); - for standard output, instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write comma-separated values to this file; - for standard output, instead of the table.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// A measurement as programs read it.
pub(super) trait Shown {
    /// docs/bench-schema.md.
    fn json(&self) -> Result<String, serde_json::Error>;
    /// One line a cell.
    fn csv(&self) -> String;
}

impl Shown for Sweep {
    fn json(&self) -> Result<String, serde_json::Error> {
        self.to_json()
    }
    fn csv(&self) -> String {
        self.to_csv()
    }
}

impl Shown for Steady {
    fn json(&self) -> Result<String, serde_json::Error> {
        self.to_json()
    }
    fn csv(&self) -> String {
        self.to_csv()
    }
}

/// Where one shape goes.
enum Place {
    Stdout,
    File(PartFile),
}

/// Files that have been made, so that a name that cannot be written to is told before anything is measured.
pub(super) struct Outputs {
    json: Option<Place>,
    csv: Option<Place>,
}

impl OutputArguments {
    /// Makes the files, under temporary names.
    pub(super) fn open(&self) -> Result<Outputs, Failure> {
        if self.json.is_some() && self.json == self.csv {
            return Err(Failure::Usage(
                "--json and --csv have the same name; choose another for one of them".to_owned(),
            ));
        }
        let place = |path: &Option<PathBuf>| -> Result<Option<Place>, Failure> {
            match path {
                None => Ok(None),
                Some(path) if path == Path::new("-") => Ok(Some(Place::Stdout)),
                Some(path) => Ok(Some(Place::File(PartFile::create(path, true)?))),
            }
        };
        Ok(Outputs {
            json: place(&self.json)?,
            csv: place(&self.csv)?,
        })
    }
}

impl Outputs {
    /// Writes what was measured to all places; `table` is what standard output gets if nothing else does.
    pub(super) fn write(self, shown: &dyn Shown, table: &str) -> Result<(), Failure> {
        let mut printed = table.to_owned();
        let shapes = [(self.json, shown.json()?), (self.csv, shown.csv())];
        for (place, text) in shapes {
            match place {
                None => {}
                Some(Place::Stdout) => printed = text,
                Some(Place::File(file)) => {
                    file.file()
                        .write_all(text.as_bytes())
                        .map_err(|cause| file.failed(cause))?;
                    file.commit()?;
                }
            }
        }
        to_stdout(|out| Ok(out.write_all(printed.as_bytes())?))
    }
}
