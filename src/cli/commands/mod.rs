//! The subcommands, a file or folder for each; `parts` has those of a job in parts.

mod bench;
mod completions;
mod devices;
mod diff;
mod filter;
mod man;
mod masks;
mod parts;
mod preview;
mod verify;

pub(super) use filter::EXAMPLES;

use super::Arguments;
use super::options::words;
use super::process::interrupt;
use super::show::failure::{Failure, to_stdout};
use clap::Subcommand;
use clap::builder::StringValueParser;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Filter a video, images or a pipe.
    Filter(Box<filter::FilterArguments>),
    /// Show what a filter does: one frame before and after, in one picture.
    Preview(Box<preview::PreviewArguments>),
    /// Compare two videos, images, folders or pipes sample by sample: differences, PSNR, SSIM. Exits with 0
    /// if they are equal, with 1 if they differ, and with 2 if they cannot be compared.
    Diff(Box<diff::DiffArguments>),
    /// Cut a job into parts that any number of processes and machines can make.
    Plan(Box<parts::plan::PlanArguments>),
    /// Make one part of a job, or some; exits with 75 where another try may go well.
    Part(Box<parts::part::PartArguments>),
    /// Prove that all parts of a job are complete and right, and join them.
    Join(parts::join::JoinArguments),
    /// Show how far a job is, and which parts are missing.
    Status(parts::status::StatusArguments),
    /// Make parts of a job again, by any engine, and compare the frames.
    Check(Box<parts::check::CheckArguments>),
    /// Make all parts of a job on this machine, on one card or several, and join them.
    Run(parts::run::RunArguments),
    /// List the filters, or show one filter's weights, sum, rank and factors.
    Masks {
        /// A filter such as gaussian:sigma=2; all of them are listed without it.
        #[arg(hide_possible_values = true, value_parser = words::filters(StringValueParser::new()))]
        filter: Option<String>,
    },
    /// List what this machine can filter with.
    Devices,
    /// Compare every engine and algorithm with the reference, on this machine; exits with 1 on any
    /// difference.
    Verify(verify::VerifyArguments),
    /// Measure kernels, engines and the whole pipeline on this machine.
    Bench {
        #[command(subcommand)]
        command: bench::BenchCommand,
    },
    /// Print a shell's completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands into a folder.
    Man {
        /// Where to, such as ~/.local/share/man/man1; it is made if it is missing.
        folder: Option<PathBuf>,
    },
}

impl Command {
    /// True if the engines' choices are shown.
    pub(super) fn explains(&self) -> bool {
        match self {
            Command::Filter(arguments) => arguments.explains(),
            Command::Preview(arguments) => arguments.explains(),
            Command::Part(arguments) => arguments.explains(),
            Command::Check(arguments) => arguments.explains(),
            Command::Bench { command } => command.explains(),
            _ => false,
        }
    }

    /// Runs the subcommand; `verbosity` is how often `-v` was given.
    pub(super) fn run(self, verbosity: u8) -> Result<(), Failure> {
        let is_verbose = verbosity > 0;
        match self {
            Command::Filter(arguments) => filter::run(*arguments, is_verbose),
            Command::Preview(arguments) => preview::run(*arguments),
            Command::Diff(arguments) => diff::run(&arguments),
            Command::Plan(arguments) => parts::plan::run(&arguments),
            Command::Part(arguments) => parts::part::run(&arguments),
            Command::Join(arguments) => parts::join::run(&arguments),
            Command::Status(arguments) => parts::status::run(&arguments),
            Command::Check(arguments) => parts::check::run(&arguments),
            Command::Run(arguments) => parts::run::run(&arguments, verbosity),
            Command::Masks { filter: None } => {
                interrupt::end_at_once()?;
                to_stdout(|out| Ok(masks::list(columns(), out)?))
            }
            Command::Masks { filter: Some(filter) } => {
                interrupt::end_at_once()?;
                to_stdout(|out| match masks::show(&filter, columns(), out) {
                    Err(error @ (masks::ShowError::Filter(_) | masks::ShowError::Several(_))) => {
                        Err(Failure::usage(&error))
                    }
                    Err(masks::ShowError::Write(error)) => Err(error.into()),
                    Ok(()) => Ok(()),
                })
            }
            Command::Devices => {
                interrupt::end_at_once()?;
                to_stdout(devices::list)
            }
            Command::Verify(arguments) => {
                interrupt::end_at_once()?;
                to_stdout(|out| verify::run(&arguments, is_verbose, out))
            }
            Command::Bench { command } => bench::run(command),
            Command::Completions { shell } => to_stdout(|out| completions::print(shell, out)),
            Command::Man { folder } => man::write(folder.as_deref()),
        }
    }
}

/// Columns of the terminal, if standard output is one.
fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(columns, _)| columns.0.into())
}
