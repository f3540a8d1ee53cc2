//! Options of FFmpeg's, answered with ours. clap would take the first letter for an option of its own, or
//! advise to pass the word as a value, which is never what was meant.

use super::Arguments;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Error, Parser};
use std::iter::once;

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
        &["-crf", "-qp", "-cq", "-q:v", "-qscale", "-qscale:v"],
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
    (&["-filter:v", "-filter_complex", "-lavfi"], "write --filter"),
    (&["-pix_fmt"], "write --pixel-format"),
    (&["-r", "-framerate"], "write --fps, which image files have"),
    (&["-map"], "write --streams, such as --streams 1,3"),
    (&["-preset"], "write --preset"),
    (
        &["-threads"],
        "write --threads, --decoder-threads or --encoder-threads",
    ),
    (&["-frames:v", "-vframes"], "write --frames"),
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
        "plan",
        &["--region", "--regions", "--matte"],
        "parts are filtered as whole pictures; filter the input in one run",
    ),
];

/// What the command line says; an error or the help ends the program.
pub(crate) fn parse() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        let words = std::env::args_os().skip(1);
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        answered(error, &words).exit()
    })
}

/// The error with what to write instead, if one of the `words` is another program's.
fn answered(mut error: Error, words: &[String]) -> Error {
    let is_help = error.kind() == ErrorKind::DisplayHelp;
    if !is_help && error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let options = || {
        words
            .iter()
            .take_while(|word| *word != "--")
            .filter(|word| word.starts_with('-'))
    };
    let command = words
        .iter()
        .find(|word| !word.starts_with('-'))
        .map_or("", String::as_str);
    let found = options().find_map(|word| {
        let name = word.split('=').next().unwrap_or(word);
        let elsewhere = ELSEWHERE
            .iter()
            .find(|(of, words, _)| *of == command && words.contains(&name));
        let hint = HINTS
            .iter()
            .find(|(words, _)| words.contains(&name))
            .map(|(_, hint)| *hint);
        Some((name, elsewhere.map(|(.., hint)| *hint).or(hint)?))
    });
    match found {
        // The help that was asked for, and not by the first letter of another word.
        Some((word, _)) if is_help && !word.starts_with("-h") => error,
        None if is_help => error,
        Some((word, hint)) => {
            if is_help {
                // The same once more, with a word that no first letter is taken from.
                let whole = words
                    .iter()
                    .map(|other| if other == word { "--no-option" } else { other });
                match Arguments::try_parse_from(once("framepipe").chain(whole)) {
                    Err(other) if other.kind() == ErrorKind::UnknownArgument => error = other,
                    _ => return error,
                }
            }
            error.insert(ContextKind::InvalidArg, ContextValue::String(word.to_owned()));
            error.remove(ContextKind::SuggestedArg);
            let hint = ContextValue::StyledStrs(vec![StyledStr::from(hint.to_owned())]);
            error.insert(ContextKind::Suggested, hint);
            error
        }
        None => {
            // Nobody who writes an option means a file of that name.
            error.remove(ContextKind::Suggested);
            error
        }
    }
}
