//! The command line program: parse, run, exit code.

mod cli;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    cli::log::start(arguments.verbosity(), arguments.explains());
    cli::exit(arguments.run())
}
