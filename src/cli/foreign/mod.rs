//! Options of FFmpeg's, answered with ours. clap would take the first letter for an option of its own, with
//! the rest as its value (-framerate as -f ramerate), or advise to pass the word as a value, which is never
//! what was meant.

mod hints;

use super::Arguments;
use super::show::failure::{exit, of_stdout};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, Error, Parser};
use framepipe::sink::video::extension_of;
use hints::{ELSEWHERE, FORMATS, HINTS, LEVELS};
use std::cmp::Reverse;
use std::io::{self, Write};
use std::iter::once;
use std::path::Path;
use std::process::ExitCode;

/// What the command line says; with an error or the help, which is printed, how the program ends.
pub(crate) fn parse() -> Result<Arguments, ExitCode> {
    Arguments::try_parse().map_err(|error| {
        let words = typed();
        reported(&answered(error, &words))
    })
}

/// The words of the command line.
fn typed() -> Vec<String> {
    let words = std::env::args_os().skip(1);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Prints an error or the help, and gives the exit code.
fn reported(error: &Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed {
        // Nothing can be done if stderr is closed; the exit code remains.
        Err(cause) if !error.use_stderr() => exit(Err(of_stdout(cause).into())),
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1)),
    }
}

/// The error with what to write instead, if one of the `words` is another program's.
fn answered(error: Error, words: &[String]) -> Error {
    let command = Spoken::of(words);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match asked_by_letter(&command, words) {
            Some(word) => {
                let mut error = unknown(&command, word, words).unwrap_or(error);
                if error.get(ContextKind::Suggested).is_none() && error.kind() == ErrorKind::UnknownArgument {
                    suggest(&mut error, "--help shows the options that there are".to_owned());
                }
                error
            }
            None => error,
        },
        ErrorKind::ValueValidation if filter_of(&error).is_some() => {
            let mut options = options(words);
            let is_known = |word: &&String| {
                filter_of(&error).is_some_and(|value| holds_filter(word, value))
                    && command.hint(name_of(word)).is_some()
            };
            match options.find(is_known) {
                Some(word) => unknown(&command, word, words).unwrap_or(error),
                None => about_filter(error, words),
            }
        }
        ErrorKind::ValueValidation => about_level(error, words),
        ErrorKind::UnknownArgument => about_unknown(error, &command, words),
        _ => error,
    }
}

/// The words that are options, or look like some.
fn options(words: &[String]) -> impl Iterator<Item = &String> {
    let before = words.iter().take_while(|word| *word != "--");
    before.filter(|word| word.len() > 1 && word.starts_with('-'))
}

/// An option's word without its value.
fn name_of(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// The letters of a word behind one dash, unless it has none but one.
fn letters(word: &str) -> Option<impl Iterator<Item = char>> {
    let is_several = word.starts_with('-') && !word.starts_with("--") && word.chars().count() > 2;
    is_several.then(|| word.chars().skip(1))
}

/// The subcommand that is spoken of.
struct Spoken {
    name: String,
    command: Command,
    /// It is a subcommand, and not the program itself, whose options follow from the subcommand's.
    is_known: bool,
}

impl Spoken {
    fn of(words: &[String]) -> Spoken {
        let mut command = Arguments::command();
        command.build();
        let mut is_known = false;
        for word in words.iter().filter(|word| !word.starts_with('-')) {
            match command.find_subcommand(word) {
                Some(found) => (command, is_known) = (found.clone(), true),
                // A value of an option that stands before the subcommand, or the first name behind it.
                None if !is_known => {}
                None => break,
            }
        }
        Spoken {
            name: command.get_name().to_owned(),
            command,
            is_known,
        }
    }

    fn longs(&self) -> impl Iterator<Item = &str> {
        self.command.get_arguments().filter_map(Arg::get_long)
    }

    fn by_letter(&self, letter: char) -> Option<&Arg> {
        let mut arguments = self.command.get_arguments();
        arguments.find(|argument| argument.get_short() == Some(letter))
    }

    /// True if it has all options that `hint` names.
    fn has_all_of(&self, hint: &str) -> bool {
        let is_letter = |c: char| c.is_ascii_lowercase() || c == '-';
        let mut names = hint.split(|c: char| !is_letter(c)).filter(|word| word.len() > 1);
        !self.is_known
            || names.all(|word| match (word.strip_prefix("--"), word.strip_prefix('-')) {
                (Some(long), _) => self.longs().any(|own| own == long),
                (None, Some(letter)) => letter.chars().all(|letter| self.by_letter(letter).is_some()),
                (None, None) => true,
            })
    }

    /// What to write instead of an option, with one dash or two.
    fn hint(&self, name: &str) -> Option<String> {
        let name = name
            .strip_prefix('-')
            .filter(|rest| rest.starts_with('-'))
            .unwrap_or(name);
        let mut elsewhere = ELSEWHERE.iter();
        let elsewhere = elsewhere.find(|(of, words, _)| *of == self.name && words.contains(&name));
        let mut known = HINTS.iter();
        let known = known.find(|(words, hint)| words.contains(&name) && self.has_all_of(hint));
        let hint = elsewhere.map(|(.., hint)| *hint).or(known.map(|(_, hint)| *hint));
        let word = name.strip_prefix('-').unwrap_or(name);
        let is_own = || self.is_known && self.longs().any(|long| long == word);
        hint.map(str::to_owned)
            .or_else(|| is_own().then(|| format!("write --{word}")))
    }

    /// The option that was meant by a mistyped one.
    fn meant(&self, name: &str) -> Option<String> {
        let word = name.trim_start_matches('-');
        // Two letters of six: one that is wrong and one beside it.
        let most = ((word.chars().count() + 2) / 4).max(1);
        let distances = self.longs().map(|long| match long.starts_with(word) {
            true => (0, Reverse(word.len()), long),
            false => {
                // Of equally near ones that which begins as the word does.
                let same = long.chars().zip(word.chars()).take_while(|(a, b)| a == b);
                (strsim::osa_distance(word, long), Reverse(same.count()), long)
            }
        });
        let nearest = distances.min().filter(|_| word.len() > 1);
        nearest
            .filter(|(distance, ..)| *distance <= most)
            .map(|(.., long)| format!("--{long}"))
    }
}

/// The word that shows the help or the version by one of its letters, though its other letters say that
/// something else was meant.
fn asked_by_letter<'a>(command: &Spoken, words: &'a [String]) -> Option<&'a str> {
    for word in options(words) {
        if ["-h", "--help", "-V", "--version"].contains(&word.as_str()) {
            return None;
        }
        for (place, letter) in letters(word).into_iter().flatten().enumerate() {
            if matches!(letter, 'h' | 'V') {
                let is_option = |letter| letter == 'V' || command.by_letter(letter).is_some();
                let mut rest = letters(word).into_iter().flatten().skip(place);
                return (!rest.all(is_option)).then_some(word);
            }
            let takes_value = |argument: &Arg| argument.get_action().takes_values();
            if command.by_letter(letter).is_none_or(takes_value) {
                break;
            }
        }
    }
    None
}

/// The error about a `foreign` word as an unknown one, of which the first letter was taken for an option.
fn unknown(command: &Spoken, foreign: &str, words: &[String]) -> Option<Error> {
    // The same once more, with a word that no first letter is taken from.
    let whole = words
        .iter()
        .map(|word| if word == foreign { "--no-option" } else { word });
    let error = Arguments::try_parse_from(once("framepipe").chain(whole)).err()?;
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    is_unknown.then(|| named(error, command, foreign, words))
}

/// The error about an unknown argument, named as it was typed.
fn about_unknown(mut error: Error, command: &Spoken, words: &[String]) -> Error {
    // Nobody who writes an option means a file of that name.
    error.remove(ContextKind::Suggested);
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidArg).cloned() else {
        return error;
    };
    if !name.starts_with('-') {
        return about_level(error, words);
    }
    // Of a word behind one dash clap names the first letter that is none of its own.
    let is_of = |word: &&String| {
        let mut letters = letters(word).into_iter().flatten();
        let first = letters.find(|&letter| command.by_letter(letter).is_none());
        name.len() == 2 && first == name.chars().nth(1)
    };
    let exact = options(words).find(|word| name_of(word) == name);
    let typed = exact.or_else(|| options(words).find(is_of)).unwrap_or(&name);
    named(error, command, typed, words)
}

/// The error about an unknown option, with what to write instead of it, or what it resembles.
fn named(mut error: Error, command: &Spoken, word: &str, words: &[String]) -> Error {
    let name = name_of(word);
    error.insert(ContextKind::InvalidArg, ContextValue::String(name.to_owned()));
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Suggested);
    if let Some(hint) = command.hint(name) {
        suggest(&mut error, with_value(hint, word, words));
    } else if let Some(meant) = command.meant(name).filter(|_| name.starts_with("--")) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(meant));
    }
    error
}

/// The hint with the encoder that was typed in place of its example.
fn with_value(hint: String, word: &str, words: &[String]) -> String {
    let Some((before, example)) = hint.rsplit_once(' ') else {
        return hint;
    };
    let is_encoder = ["--encoder", "--audio-encoder"]
        .iter()
        .any(|option| before == format!("write {option}, such as {option}"));
    let value = match word.split_once('=') {
        Some((_, value)) => Some(value),
        None => {
            let mut pairs = words.windows(2);
            let pair = pairs.find(|pair| pair[0] == word);
            pair.map(|pair| pair[1].as_str())
        }
    };
    let is_name = |value: &&str| {
        // Pictures are not copied, since they are filtered.
        *value != "copy"
            && value
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    let value = value
        .filter(is_name)
        .filter(|value| !value.starts_with('-') && !value.is_empty());
    match value.filter(|_| is_encoder) {
        Some(value) => format!("{before} {value}"),
        None => format!("{before} {example}"),
    }
}

/// What to say of a level of FFmpeg's behind -v, which takes none here.
fn level_hint(level: &str) -> String {
    format!(
        "-v takes no level, so that '{level}' is a name; write -q for warnings and errors alone, -v or -vv \
         for more"
    )
}

/// The error, with a hint if FFmpeg's level of the log behind -v may be the cause.
fn about_level(mut error: Error, words: &[String]) -> Error {
    if let Some(level) = level(words) {
        suggest(&mut error, level_hint(level));
    }
    error
}

/// FFmpeg's level of the log behind -v, unless there is a file of that name.
fn level(words: &[String]) -> Option<&str> {
    let mut pairs = words.windows(2);
    let pair = pairs.find(|pair| pair[0] == "-v" && LEVELS.contains(&pair[1].as_str()))?;
    Some(pair[1].as_str()).filter(|level| !Path::new(level).exists())
}

/// What to say of names that go together badly, if one of them is FFmpeg's level of the log behind -v.
pub(super) fn level_taken_for_name() -> Option<String> {
    let words: Vec<String> = typed();
    level(&words).map(level_hint)
}

/// The refused value, if it is a filter's.
fn filter_of(error: &Error) -> Option<&str> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let is_filter = text(ContextKind::InvalidArg).is_some_and(|of| of.starts_with("--filter"));
    text(ContextKind::InvalidValue).filter(|_| is_filter)
}

/// True if this word is `-f` with the value in one, perhaps behind other letters.
fn holds_filter(word: &str, value: &str) -> bool {
    let letters = word.strip_suffix(value);
    letters.is_some_and(|letters| !letters.starts_with("--") && letters.ends_with('f'))
}

/// The error about a filter, which `-f` names here, with what to write if another program's `-f` was meant.
fn about_filter(mut error: Error, words: &[String]) -> Error {
    let Some(value) = filter_of(&error).map(str::to_owned) else {
        return error;
    };
    let follows_letter = words.windows(2).any(|pair| pair[0] == "-f" && pair[1] == value);
    if follows_letter {
        let format = FORMATS.iter().find(|(name, _)| *name == value);
        if let Some((_, hint)) = format {
            suggest(&mut error, format!("-f is --filter; {hint}"));
        } else if extension_of(&value).is_some() {
            suggest(
                &mut error,
                format!("-f is --filter; write --format {value} for a container"),
            );
        }
    } else if let Some(word) = words.iter().find(|word| holds_filter(word, &value)) {
        suggest(
            &mut error,
            format!("-f is --filter, so that {word} ends in --filter {value}"),
        );
    }
    error
}

fn suggest(error: &mut Error, hint: String) {
    let hint = ContextValue::StyledStrs(vec![StyledStr::from(hint)]);
    error.insert(ContextKind::Suggested, hint);
}
