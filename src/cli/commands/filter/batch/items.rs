//! The jobs of a batch by their names: the output of each input, and conflicts.

use crate::cli::Failure;
use crate::cli::commands::filter::FilterArguments;
use crate::cli::commands::filter::inputs::output_of;
use crate::cli::commands::filter::single::Single;
use crate::cli::endpoint::{Existing, Input, identity, made_anew, place};
use crate::cli::process::interrupt::OnInterrupt;
use framepipe::still::ImageKind;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The options as each kind of input takes them.
pub(super) struct OptionsByKind {
    /// Of videos, whose container the options may name.
    videos: FilterArguments,
    /// Of image files: the option may name their kind, and there is one frame to each.
    stills: FilterArguments,
}

impl OptionsByKind {
    pub(super) fn new(arguments: &FilterArguments) -> OptionsByKind {
        let mut videos = FilterArguments {
            // These options are handled here.
            skip_existing: false,
            keep_going: false,
            on_interrupt: arguments.on_interrupt.or(Some(OnInterrupt::Discard)),
            ..arguments.clone()
        };
        videos
            .engine
            .share_cores(arguments.at_once.unwrap_or(NonZeroUsize::MIN));
        let mut stills = videos.clone();
        stills.workers = stills.workers.or(Some(NonZeroUsize::MIN));
        stills.encoding.format = stills
            .encoding
            .format
            .filter(|format| format.parse::<ImageKind>().is_err());
        OptionsByKind { videos, stills }
    }

    /// The jobs, after all checks of names.
    pub(super) fn items(
        &self,
        arguments: &FilterArguments,
        inputs: Vec<Input>,
        folder: &Path,
    ) -> Result<Vec<Item<'_>>, Failure> {
        // As the user gave them, before the engine's share of the cores.
        arguments.engine.check()?;
        let mut items = Vec::new();
        for input in inputs {
            let style = if input.is_images() {
                &self.stills
            } else {
                &self.videos
            };
            let output = output_of(&input, folder, arguments.encoding.format.as_deref())?;
            let name = input.name();
            let is_missing = input.path().is_some_and(|path| !path.exists());
            if is_missing && !arguments.keep_going && !arguments.reading.allows_urls() {
                return Err(Failure::Failed(format!("{name}: there is no such file")));
            }
            let single = Single::of_several(style, input, output);
            single.check_ends().map_err(|failure| failure.about(&name))?;
            let is_there = match single.output.path().filter(|_| arguments.skip_existing) {
                Some(path) => match Existing::at(path)? {
                    Existing::Empty => {
                        single.say(&made_anew(path));
                        false
                    }
                    existing => existing == Existing::Whole,
                },
                None => false,
            };
            items.push(Item {
                single,
                name,
                is_there,
            });
        }
        check_names(&items)?;
        if !arguments.encoding.overwrite && !arguments.skip_existing {
            check_existing(&items)?;
        }
        Ok(items)
    }
}

/// Refuses outputs that fall on each other or on an input.
fn check_names(items: &[Item<'_>]) -> Result<(), Failure> {
    let mut owners: HashMap<PathBuf, &str> = HashMap::new();
    // Also under other names, such as links.
    let inputs: HashMap<(u64, u64), &str> = items
        .iter()
        .filter_map(|item| Some((identity(item.single.input.path()?)?, item.name.as_str())))
        .collect();
    for item in items {
        let Some(output) = item.single.output.path() else {
            continue;
        };
        let end = place(output).unwrap_or_else(|| output.to_owned());
        if let Some(other) = owners.insert(end, &item.name) {
            return Err(Failure::Usage(format!(
                "{other} and {} would both become {}; rename one of them, or filter them into two folders",
                item.name,
                output.display()
            )));
        }
        if let Some(other) = identity(output).and_then(|id| inputs.get(&id)) {
            return Err(Failure::Usage(format!(
                "{other} is an input, and the output of {} would be the same file; choose another folder",
                item.name
            )));
        }
    }
    Ok(())
}

/// Refuses outputs that are there.
fn check_existing(items: &[Item<'_>]) -> Result<(), Failure> {
    let mut there = items
        .iter()
        .map(|item| &item.single.output)
        .filter(|output| output.path().is_some_and(Path::exists));
    let Some(first) = there.next() else {
        return Ok(());
    };
    let more = match there.count() {
        0 => String::new(),
        1 => ", and so does 1 more".to_owned(),
        n => format!(", and so do {n} more"),
    };
    Err(Failure::Failed(format!(
        "{first} exists{more}; pass --overwrite to replace what is there, or --skip-existing to keep it"
    )))
}

/// A job.
pub(super) struct Item<'a> {
    pub(super) single: Single<'a>,
    /// The input's name in sentences.
    pub(super) name: String,
    /// Its output is there, and it is passed over.
    pub(super) is_there: bool,
}
