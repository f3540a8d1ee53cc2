//! The command line. `commands` holds the subcommands, `options` options that several of them have,
//! `endpoint` INPUT and OUTPUT, `process` signals, limits and the log, `show` progress, summaries and errors.
//!
//! The library does not use clap.

mod commands;
mod endpoint;
mod foreign;
mod options;
mod process;
mod show;

use clap::Parser;
use commands::Command;
use foreign::level_taken_for_name;
pub(crate) use foreign::parse;
pub(crate) use process::interrupt::outlive_size_limit;
pub(crate) use process::log;
use show::failure::Failure;
pub(crate) use show::failure::exit;

/// Convolves the frames of videos, image folders and pipes, exactly, on the CPU or on CUDA.
#[derive(Debug, Parser)]
#[command(
    name = "framepipe",
    // Whatever the file is called: the examples and the other usages say this.
    bin_name = "framepipe",
    version,
    max_term_width = 100,
    help_template = help(),
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Log more to stderr: -v what is done, -vv how. RUST_LOG, such as framepipe=debug, has precedence.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
}

fn help() -> String {
    let examples = commands::EXAMPLES;
    format!(
        "{{about-with-newline}}\nExamples:\n{examples}\n\n{{usage-heading}} {{usage}}\n\n\
         {{all-args}}{{after-help}}"
    )
}

impl Arguments {
    /// How often `-v` was given.
    pub(crate) fn verbosity(&self) -> u8 {
        self.verbose
    }

    /// True if the engines' choices are shown.
    pub(crate) fn explains(&self) -> bool {
        self.command.explains()
    }

    /// Runs the subcommand.
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.command.run(self.verbose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }
}
