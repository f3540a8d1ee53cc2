//! `framepipe completions`: completion scripts from the same definition as the command line.

use super::{Arguments, Failure};
use clap::CommandFactory;
use std::io::Write;

/// Prints the completion script of `shell`.
pub(crate) fn print(shell: clap_complete::Shell, out: &mut impl Write) -> Result<(), Failure> {
    // Written at once, because the generator panics where writing fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "framepipe", &mut script);
    Ok(out.write_all(&script)?)
}
