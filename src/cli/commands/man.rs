//! `framepipe man`: manual pages from the same definition as the command line.

use super::filter::ENDS_HELP;
use super::preview::EXAMPLES;
use super::{Arguments, Failure, to_stdout};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes a page for the program and one for each command into `folder`; without one the program's own goes
/// to standard output.
pub(super) fn write(folder: Option<&Path>) -> Result<(), Failure> {
    let pages = pages();
    let Some(folder) = folder else {
        let (_, page) = &pages[0];
        return to_stdout(|out| Ok(out.write_all(page)?));
    };
    let failed = |path: &Path, cause: &dyn std::fmt::Display| {
        Failure::Failed(format!("cannot write {}: {cause}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|cause| failed(folder, &cause))?;
    for (name, page) in &pages {
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, page).map_err(|cause| failed(&path, &cause))?;
    }
    Ok(())
}

/// The names of all pages and their texts, the program's own first.
fn pages() -> Vec<(String, Vec<u8>)> {
    // The list of names is hidden where the help has a text for it.
    let mut root = Arguments::command()
        .mut_subcommand("filter", |filter| {
            filter.mut_arg("paths", |paths| paths.hide(false).help(ENDS_HELP))
        })
        // Pages do not follow the help's order.
        .mut_subcommand("preview", |preview| preview.after_help(EXAMPLES));
    root.build();
    let mut pages = Vec::new();
    add(&root, "framepipe", &mut pages);
    pages
}

fn add(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) {
    let mut page = Vec::new();
    let titled = command.clone().display_name(name.to_owned());
    // Writing to memory does not fail.
    let _ = Man::new(titled).render(&mut page);
    pages.push((name.to_owned(), page));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        if inner.get_name() != "help" {
            add(inner, &format!("{name}-{}", inner.get_name()), pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = pages();
        let page = |name: &str| {
            let found = pages.iter().find(|(other, _)| other == name);
            String::from_utf8_lossy(&found.map(|(_, page)| page.clone()).unwrap_or_default()).into_owned()
        };
        let root = Arguments::command();
        for command in root.get_subcommands() {
            let text = page(&format!("framepipe-{}", command.get_name()));
            assert!(text.contains(".SH NAME"), "{}", command.get_name());
            for option in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                if let Some(long) = option.get_long() {
                    let written = format!("\\-\\-{}", long.replace('-', "\\-"));
                    assert!(text.contains(&written), "{} {written}", command.get_name());
                }
            }
        }
        assert!(
            page("framepipe").contains("filter") && page("framepipe-bench-kernels").contains("SH OPTIONS")
        );
        assert!(page("framepipe-filter").contains("For several inputs"));
    }
}
