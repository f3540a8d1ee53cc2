//! The command line program: parse, run, exit code.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::outlive_size_limit();
    let arguments = match cli::parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    cli::log::start(arguments.verbosity(), arguments.explains());
    cli::exit(arguments.run())
}
