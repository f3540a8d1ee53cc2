//! `framepipe completions`: completion scripts from the same definition as the command line.

use super::{Arguments, Failure};
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

/// Prints the completion script of `shell`.
pub(crate) fn print(shell: Shell, out: &mut impl Write) -> Result<(), Failure> {
    // Written at once, because the generator panics where writing fails.
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(shell, &mut command, "framepipe", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    for name in hidden(&command) {
        script = without(&script, name, shell);
    }
    Ok(out.write_all(script.as_bytes())?)
}

/// The names of options that are not for users, which the generators offer all the same.
fn hidden(command: &Command) -> impl Iterator<Item = &str> {
    let options = command.get_subcommands().flat_map(Command::get_arguments);
    options
        .filter(|option| option.is_hide_set())
        .filter_map(Arg::get_long)
}

/// The script without an option: a word in bash, a line of its own in other shells.
fn without(script: &str, name: &str, shell: Shell) -> String {
    let option = format!("--{name}");
    if shell == Shell::Bash {
        return script.replace(&format!(" {option} "), " ");
    }
    let in_fish = format!("-l {name} ");
    let lines = script.split_inclusive('\n');
    lines
        .filter(|line| !line.contains(&option) && !line.contains(&in_fish))
        .collect()
}
