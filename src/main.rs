//! The command line program: parse, run, exit code.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = cli::parse();
    cli::log::start(arguments.verbosity(), arguments.explains());
    cli::exit(arguments.run())
}
