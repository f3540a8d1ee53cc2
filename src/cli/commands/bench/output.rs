//! The outputs of a measurement: a table on standard output, JSON, comma-separated values, a page with plots.

use crate::cli::process::origin;
use crate::cli::show::failure::{Failure, to_stdout};
use clap::Args;
use framepipe::program::bench::{Steady, Sweep};
use framepipe::report::Measurements;
use framepipe::report::page::PageError;
use framepipe::sink::atomic_file::AtomicFile;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The files that were requested.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputArguments {
    /// Write JSON to this file, whose fields are in docs/schemas.md in framepipe's source; - for standard
    /// output, instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write comma-separated values to this file; - for standard output, instead of the table.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page to look at, with plots, to this file, whose name ends in .html.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// A measurement as files hold it.
pub(super) trait Shown {
    /// docs/schemas.md.
    fn json(&self) -> Result<String, serde_json::Error>;
    /// One line a cell.
    fn csv(&self) -> String;
    /// A page, with the command line of the measurement.
    fn html(&self, command: &str) -> Result<String, PageError>;
}

impl Shown for Sweep {
    fn json(&self) -> Result<String, serde_json::Error> {
        self.to_json()
    }
    fn csv(&self) -> String {
        self.to_csv()
    }
    fn html(&self, command: &str) -> Result<String, PageError> {
        self.to_html(command)
    }
}

/// A steady run, with further contents of its page.
impl Shown for (Steady, Measurements) {
    fn json(&self) -> Result<String, serde_json::Error> {
        self.0.to_json()
    }
    fn csv(&self) -> String {
        self.0.to_csv()
    }
    fn html(&self, command: &str) -> Result<String, PageError> {
        self.0.to_html(&self.1, command)
    }
}

/// The place of one output.
pub(super) enum Place {
    Stdout,
    File(AtomicFile),
}

impl Place {
    /// Creates the file under a temporary name; `-` is standard output. One that exists is an error unless
    /// it is to be replaced.
    pub(super) fn open(path: &Path, overwrite: bool) -> Result<Place, Failure> {
        if path == Path::new("-") {
            return Ok(Place::Stdout);
        }
        Ok(Place::File(AtomicFile::create(path, overwrite)?))
    }

    /// Fills the file with `text`, or gives it back for standard output.
    pub(super) fn write(self, text: String) -> Result<Option<String>, Failure> {
        match self {
            Place::Stdout => Ok(Some(text)),
            Place::File(file) => fill(file, &text).map(|()| None),
        }
    }
}

/// Files that have been made, so that a name that cannot be written to is an error before anything is
/// measured.
pub(super) struct Outputs {
    json: Option<Place>,
    csv: Option<Place>,
    html: Option<AtomicFile>,
}

impl OutputArguments {
    /// True if one of the files has this name.
    pub(super) fn names(&self, path: &Path) -> bool {
        [&self.json, &self.csv, &self.html]
            .into_iter()
            .flatten()
            .any(|own| own == path)
    }

    /// True if a page is requested.
    pub(super) fn wants_page(&self) -> bool {
        self.html.is_some()
    }

    /// Creates the files under temporary names. One that exists is an error unless it is to be replaced.
    pub(super) fn open(&self, overwrite: bool) -> Result<Outputs, Failure> {
        let files = [
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--html", &self.html),
        ];
        for (index, (one, path)) in files.iter().enumerate() {
            let same = files[index + 1..]
                .iter()
                .find(|(_, other)| path.is_some() && other == path);
            if let Some((other, _)) = same {
                return Err(Failure::Usage(format!(
                    "{one} and {other} have the same name; choose another for one of them"
                )));
            }
        }
        if let Some(html) = &self.html
            && html.extension().is_none_or(|e| e != "html")
        {
            return Err(Failure::Usage(format!(
                "--html {}: the name must end in .html",
                html.display()
            )));
        }
        let place = |path: &Option<PathBuf>| {
            let path = path.as_deref();
            path.map(|path| Place::open(path, overwrite)).transpose()
        };
        Ok(Outputs {
            json: place(&self.json)?,
            csv: place(&self.csv)?,
            html: self
                .html
                .as_deref()
                .map(|path| AtomicFile::create(path, overwrite))
                .transpose()?,
        })
    }
}

impl Outputs {
    /// Writes the measurement to all places; standard output gets `table` unless another output goes there.
    pub(super) fn write(self, shown: &dyn Shown, table: &str) -> Result<(), Failure> {
        let mut printed = table.to_owned();
        let shapes = [(self.json, shown.json()?), (self.csv, shown.csv())];
        for (place, text) in shapes {
            if let Some(place) = place
                && let Some(text) = place.write(text)?
            {
                printed = text;
            }
        }
        if let Some(file) = self.html {
            fill(file, &shown.html(&origin::here().command)?)?;
        }
        to_stdout(|out| Ok(out.write_all(printed.as_bytes())?))
    }
}

/// Writes the whole file and renames it.
fn fill(file: AtomicFile, text: &str) -> Result<(), Failure> {
    file.file()
        .write_all(text.as_bytes())
        .map_err(|cause| file.failed(cause))?;
    Ok(file.commit()?)
}
