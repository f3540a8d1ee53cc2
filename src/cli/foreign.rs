//! Options of FFmpeg's, answered with ours. clap would take the first letter for an option of its own, with
//! the rest as its value (-framerate as -f ramerate), or advise to pass the word as a value, which is never
//! what was meant.

use super::Arguments;
use super::show::failure::{exit, of_stdout};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Error, Parser};
use framepipe::sink::video::extension_of;
use std::io::{self, Write};
use std::iter::once;
use std::process::ExitCode;

/// Words, and what to write instead.
const HINTS: &[(&[&str], &str)] = &[
    (
        &["-i"],
        "names stand without it, the output last: framepipe filter in.mp4 out.mp4",
    ),
    (&["-hide_banner", "-nostdin", "-stats"], "leave it out"),
    (
        &["-loglevel"],
        "write -q for warnings and errors, -qq for errors, -v for more",
    ),
    (&["-ss"], "write --start, such as --start 0:05"),
    (&["-t"], "write --duration, such as --duration 3"),
    (&["-to"], "write --end, such as --end 0:08"),
    (
        &[
            "-crf",
            "--crf",
            "-qp",
            "--qp",
            "-cq",
            "-q:v",
            "-qscale",
            "-qscale:v",
        ],
        "write --quality, such as --quality 20",
    ),
    (
        &["-b:v", "--bitrate"],
        "write --quality, or the encoder's own --encoder-option b=4M",
    ),
    (&["-an"], "write --no-audio"),
    (&["-sn"], "write --no-subtitles"),
    (
        &["-c:v", "-codec:v", "-vcodec"],
        "write --encoder, such as --encoder libx265",
    ),
    (
        &["-c:a", "-codec:a", "-acodec"],
        "write --audio-encoder, such as --audio-encoder libopus",
    ),
    (
        &["-filter", "-filter:v", "-filter_complex", "-lavfi"],
        "write --filter",
    ),
    (&["-pix_fmt"], "write --pixel-format"),
    (&["-r", "-framerate"], "write --fps, which image files have"),
    (&["-map"], "write --streams, such as --streams 1,3"),
    (&["-preset"], "write --preset"),
    (
        &["-tune", "--tune"],
        "write --encoder-option, such as --encoder-option tune=grain",
    ),
    (
        &["-threads"],
        "write --threads, --decoder-threads or --encoder-threads",
    ),
    (&["-frames", "-frames:v", "-vframes"], "write --frames"),
    (&["-start_number"], "write --start-number"),
    (
        &["-n"],
        "an output that is there stays as it is, unless --overwrite is given",
    ),
];

/// Words that a command does not have though another one has, and what to write.
const ELSEWHERE: &[(&str, &[&str], &str)] = &[
    (
        "filter",
        &["--output", "-o"],
        "the output is the last name: framepipe filter in.mp4 out.mp4",
    ),
    (
        "preview",
        &["--start"],
        "the time stands behind the input: framepipe preview in.mp4 0:05",
    ),
    (
        "preview",
        &["--region", "--regions", "--matte"],
        "a preview filters the whole picture",
    ),
    (
        "preview",
        &["--compare"],
        "write --layout, such as --layout split",
    ),
    (
        "plan",
        &["--region", "--regions", "--matte"],
        "parts are filtered as whole pictures; filter the input in one run",
    ),
];

/// FFmpeg's formats that are no containers here, and what to write.
const FORMATS: &[(&str, &str)] = &[
    ("null", "write null: as the output"),
    ("rawvideo", "write raw:PATH as the output"),
    ("yuv4mpegpipe", "write - as the output"),
    ("image2", "write a name such as frames/%05d.png as the output"),
    ("image2pipe", "write a name such as frames/%05d.png as the output"),
];

/// What the command line says; with an error or the help, which is printed, how the program ends.
pub(crate) fn parse() -> Result<Arguments, ExitCode> {
    Arguments::try_parse().map_err(|error| {
        let words = std::env::args_os().skip(1);
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        reported(&answered(error, &words))
    })
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
    // The first letter of another program's word may be an option that shows the help, or one with a value.
    let is_by_letter = match error.kind() {
        ErrorKind::UnknownArgument => false,
        ErrorKind::DisplayHelp | ErrorKind::ValueValidation => true,
        _ => return error,
    };
    let command = words
        .iter()
        .find(|word| !word.starts_with('-'))
        .map_or("", String::as_str);
    let mut options = words
        .iter()
        .take_while(|word| *word != "--")
        .filter(|word| word.starts_with('-'));
    let found = options.find_map(|word| {
        let name = word.split('=').next().unwrap_or(word);
        Some((word, hint(command, name)?))
    });
    match found {
        Some((word, hint)) if is_by_letter => match without(word, &error, words) {
            Some(unknown) => hinted(unknown, word, hint),
            None => error,
        },
        Some((word, hint)) => hinted(error, word, hint),
        None if error.kind() == ErrorKind::ValueValidation => about_filter(error, words),
        None if is_by_letter => error,
        None => {
            let mut error = error;
            // Nobody who writes an option means a file of that name.
            error.remove(ContextKind::Suggested);
            error
        }
    }
}

/// What to write instead of an option.
fn hint(command: &str, name: &str) -> Option<&'static str> {
    let elsewhere = ELSEWHERE
        .iter()
        .find(|(of, words, _)| *of == command && words.contains(&name));
    let known = HINTS.iter().find(|(words, _)| words.contains(&name));
    elsewhere
        .map(|(.., hint)| *hint)
        .or_else(|| known.map(|(_, hint)| *hint))
}

/// The error about `word` as an unknown one, if `error` is what its first letter brought about.
fn without(word: &str, error: &Error, words: &[String]) -> Option<Error> {
    let is_its_letter = match error.kind() {
        ErrorKind::DisplayHelp => word.starts_with("-h"),
        _ => filter_of(error).is_some_and(|value| holds_filter(word, value)),
    };
    if !is_its_letter {
        return None;
    }
    // The same once more, with a word that no first letter is taken from.
    let whole = words
        .iter()
        .map(|other| if other == word { "--no-option" } else { other });
    let again = Arguments::try_parse_from(once("framepipe").chain(whole)).err()?;
    (again.kind() == ErrorKind::UnknownArgument).then_some(again)
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

/// The error about a word.
fn hinted(mut error: Error, word: &str, hint: &str) -> Error {
    let name = word.split('=').next().unwrap_or(word);
    error.insert(ContextKind::InvalidArg, ContextValue::String(name.to_owned()));
    error.remove(ContextKind::SuggestedArg);
    suggest(&mut error, hint.to_owned());
    error
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
