//! Several inputs in one call, and the names of their outputs.
//!
//! ```text
//! a.mp4 b.mkv 'clips/*.mov' OUT/  ->  OUT/a.mp4  OUT/b.mkv  OUT/one.mov  OUT/two.mov
//! a.mp4 b.mkv OUT/ --format webm  ->  OUT/a.webm  OUT/b.webm
//! ```

use crate::cli::Failure;
use crate::cli::endpoint::{Existing, Input, Output, PIPE};
use framepipe::sink::video::{can_be_written, extension_of};
use framepipe::source::SourceError;
use framepipe::source::images::listing::{self, Listing, Selection};
use framepipe::still::ImageKind;
use framepipe::still::pattern::{Pattern, escaped};
use framepipe::wording::counted;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Extensions of the files of a folder that are taken for videos.
const VIDEOS: &[&str] = &[
    "264", "265", "3g2", "3gp", "amv", "apng", "asf", "av1", "avc", "avi", "dav", "dif", "divx", "dv",
    "dvr-ms", "evo", "f4v", "flv", "gif", "gxf", "h261", "h263", "h264", "h265", "hevc", "insv", "ismv",
    "ivf", "lrv", "m1v", "m2p", "m2t", "m2ts", "m2v", "m4s", "m4v", "mj2", "mjpeg", "mjpg", "mk3d", "mkv",
    "mod", "mov", "mp4", "mpe", "mpeg", "mpg", "mpv", "mts", "mxf", "nsv", "nut", "nuv", "obu", "ogg", "ogm",
    "ogv", "ogx", "qt", "rec", "rm", "rmvb", "tod", "tp", "trp", "ts", "vc1", "vob", "vro", "webm", "wmv",
    "wtv", "xvid", "y4m",
];

/// Extensions of files that lie beside videos and hold no picture: texts, subtitles, sound, checksums.
const SIDECARS: &[&str] = &[
    "aac", "ac3", "aif", "aiff", "ass", "cfg", "csv", "cube", "cue", "edl", "flac", "htm", "html", "idx",
    "ini", "json", "log", "lrc", "m3u", "m3u8", "m4a", "md", "md5", "mka", "mks", "mp3", "nfo", "opus",
    "pdf", "sfv", "sha1", "sha256", "srt", "ssa", "sub", "sup", "thm", "toml", "tsv", "txt", "vtt", "wav",
    "xml", "xmp", "yaml", "yml",
];

/// Files that are named before the rest is only counted.
const NAMED: usize = 3;

/// The meaning of the names.
pub(super) enum Gathered {
    /// One input, as it stands.
    One(Input),
    /// Several, each of which gives an output in the folder.
    Several {
        /// Files, at least one.
        inputs: Vec<Input>,
        /// It may be missing.
        folder: PathBuf,
        /// What of the names was left out, a sentence each.
        left: Vec<String>,
    },
}

/// What becomes of a single input that is one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alone {
    /// It has an output of its own.
    AsOne,
    /// It is treated as several are.
    AsSeveral,
    /// The same if the output is a folder: the options are those of files in a folder, and the name may be
    /// all that a shell found for a glob.
    IntoFolder,
    /// The same if it is a video. Image files have the options by themselves.
    VideoIntoFolder,
}

impl Alone {
    fn as_several(self, input: &Input, output: &OsStr) -> bool {
        // What is not there is named as one input.
        let is_file = input.path().is_some_and(Path::is_file);
        let is_video = matches!(input, Input::Video(_) | Input::Y4m(_));
        let is_still = input.is_images();
        match self {
            Alone::AsOne => false,
            Alone::AsSeveral => true,
            Alone::IntoFolder => is_file && is_folder(output) && (is_video || is_still),
            Alone::VideoIntoFolder => is_file && is_folder(output) && is_video,
        }
    }
}

/// The meaning of a name that is not a single input.
enum Group {
    /// Files, each of them an input.
    Files(Listing),
    /// Image files that are the frames of one input.
    Sequence,
}

/// Reads the names of inputs and of their output. A single one is one input, but for a glob or a folder of
/// videos, and by the rule for one that is `alone`. Of `untrusted` ones no link leads out of its folder.
pub(super) fn gather(
    names: &[OsString],
    output: &OsStr,
    alone: Alone,
    untrusted: bool,
) -> Result<Gathered, Failure> {
    let mut inputs = Vec::new();
    for name in names {
        inputs.push(Input::from_argument(name.clone()).map_err(|e| Failure::usage(&e))?);
    }
    if inputs.len() == 1 && !alone.as_several(&inputs[0], output) {
        let input = inputs.remove(0);
        return match group(&input) {
            Ok(Some(Group::Files(found))) if !found.files.iter().all(|file| listing::names_images(file)) => {
                let held = format!(
                    "{} stands for {}",
                    input.name(),
                    counted(found.files.len() as u64, "file")
                );
                if untrusted {
                    input.check_links(&found.files)?;
                }
                Ok(Gathered::Several {
                    left: left_out(&input, &found),
                    inputs: found.files.into_iter().map(Input::named).collect(),
                    folder: folder(output, &held)?,
                })
            }
            // The error is reported again when it is opened.
            _ => Ok(Gathered::One(input)),
        };
    }
    let because = match inputs.len() {
        1 => "--at-once is for inputs".to_owned(),
        count => format!("there are {count} inputs"),
    };
    let folder = folder(output, &because)?;
    let (mut files, mut left) = (Vec::new(), Vec::new());
    for input in inputs {
        match group(&input)? {
            Some(Group::Files(found)) => {
                if untrusted {
                    input.check_links(&found.files)?;
                }
                left.extend(left_out(&input, &found));
                files.extend(found.files.into_iter().map(Input::named));
            }
            Some(Group::Sequence) => {
                return Err(Failure::Usage(format!(
                    "{} is a sequence of images, which is one input; filter it by itself, or write a glob \
                     for an output from each file, such as 'frames/*.png' with --at-once 1",
                    input.name()
                )));
            }
            None => files.push(input),
        }
    }
    Ok(Gathered::Several {
        inputs: files,
        folder,
        left,
    })
}

/// What is said of the names of a folder or a glob that lead to no file.
fn left_out(input: &Input, found: &Listing) -> Vec<String> {
    let notes = found.notes.iter();
    notes.map(|note| format!("{}: {note}", input.name())).collect()
}

/// True for a folder that is there, and for a name that ends in a slash.
fn is_folder(output: &OsStr) -> bool {
    Path::new(output).is_dir() || output.as_encoded_bytes().ends_with(b"/")
}

/// The folder that `output` names. `because` is the reason why it must be a folder.
fn folder(output: &OsStr, because: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(output);
    if is_folder(output) {
        return Ok(path);
    }
    let shown = path.display().to_string();
    let offer = if shown == PIPE || shown.contains(':') {
        "out/".to_owned()
    } else {
        format!("{shown}/")
    };
    Err(Failure::Usage(format!(
        "{because}, whose outputs go into a folder; {shown} is none: write {offer} (it is made if it is \
         missing)"
    )))
}

/// What the input stands for, if that is not one file; an error if it stands for nothing, or for what has no
/// name.
fn group(input: &Input) -> Result<Option<Group>, Failure> {
    let path = match input {
        Input::Synthetic(_) => return Err(no_file("made-up frames have")),
        Input::Y4m(path) | Input::Raw(_, path) | Input::Video(path) if path == Path::new(PIPE) => {
            return Err(no_file("standard input has"));
        }
        Input::Images(path) => path,
        Input::Y4m(_) | Input::Raw(..) | Input::Video(_) => return Ok(None),
    };
    if path.is_dir() {
        // A folder with both is a sequence with other files beside it, which `passed_over` names.
        if listing::list(path, &Selection::default()).is_ok() {
            return Ok(Some(Group::Sequence));
        }
        let mut found = videos_in(path)?;
        found.notes.extend(unknown_in(path)?);
        return match found.files.is_empty() {
            false => Ok(Some(Group::Files(found))),
            true => Err(Failure::Failed(format!(
                "{} holds neither images nor videos that are known by their extensions",
                path.display()
            ))),
        };
    }
    if path.exists() {
        return Ok(None);
    }
    if matches!(Pattern::parse(path), Ok(Some(_))) {
        return Ok(Some(Group::Sequence));
    }
    if path.to_string_lossy().contains(['*', '?', '[']) {
        return Ok(Some(Group::Files(listing::list(path, &Selection::default())?)));
    }
    Ok(None)
}

/// The videos of a folder, by their extensions.
fn videos_in(folder: &Path) -> Result<Listing, SourceError> {
    listing::files_in(folder, is_video)
}

/// What to say of the files of a folder of videos that are not known to be something else.
fn unknown_in(folder: &Path) -> Result<Option<String>, SourceError> {
    let is_known = |file: &Path| {
        is_video(file)
            || has_extension(file, SIDECARS)
            || ImageKind::read(file).is_some()
            || ImageKind::is_left_out(file)
    };
    let unknown = listing::files_in(folder, |file| file.is_file() && !is_known(file))?.files;
    let names = unknown.iter().take(NAMED).filter_map(|file| file.file_name());
    let mut names: Vec<String> = names.map(|name| name.display().to_string()).collect();
    if unknown.len() > NAMED {
        names.push(format!("{} more", unknown.len() - NAMED));
    }
    let what = match unknown.len() {
        0 => return Ok(None),
        1 => "file is no video by its extension and is left out",
        _ => "files are no videos by their extensions and are left out",
    };
    Ok(Some(format!("{} {what}: {}", unknown.len(), names.join(", "))))
}

/// What to say of videos that lie among the image files of a folder, which alone are its frames.
pub(super) fn passed_over(input: &Input) -> Result<Vec<String>, Failure> {
    let Some(folder) = input.path().filter(|path| input.is_images() && path.is_dir()) else {
        return Ok(Vec::new());
    };
    let found = videos_in(folder)?;
    let mut sentences = left_out(input, &found);
    // The listing names animations itself, as pictures of another kind.
    let mut videos = found.files;
    videos.retain(|file| !ImageKind::is_left_out(file));
    let Some(first) = videos.first() else {
        return Ok(sentences);
    };
    let more = match videos.len() {
        1 => String::new(),
        2 => " and 1 more video".to_owned(),
        count => format!(" and {} more videos", count - 1),
    };
    sentences.push(format!(
        "{} holds image files, which alone are filtered, and also {}{more}; filter videos by a glob, \
         such as '{}'",
        input.name(),
        first.display(),
        folder.join("*.mp4").display()
    ));
    Ok(sentences)
}

fn no_file(what: &str) -> Failure {
    Failure::Usage(format!(
        "{what} no name for an output in a folder; filter it by itself, with an output of its own"
    ))
}

fn is_video(path: &Path) -> bool {
    has_extension(path, VIDEOS)
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|e| known.iter().any(|one| one.eq_ignore_ascii_case(e)))
}

/// The output in `folder` for an input that is a file: its name, with the extension of `format` if there is
/// one.
pub(super) fn output_of(input: &Input, folder: &Path, format: Option<&str>) -> Result<Output, Failure> {
    let shown = input.name();
    let refuse = |problem: &str| Err(Failure::Usage(format!("{shown}: {problem}")));
    let is_still = input.is_images();
    let Some(name) = input.path().and_then(Path::file_name) else {
        return refuse("this has no name for an output; filter it by itself");
    };
    let mut name = Path::new(name).to_owned();
    if let Some(format) = format {
        let image = format.parse::<ImageKind>().ok().filter(|_| is_still);
        let extension = match image {
            Some(_) => Some(format.to_lowercase()),
            None => extension_of(format),
        };
        match extension {
            Some(extension) => name.set_extension(extension),
            None => {
                return refuse(&format!(
                    "--format {format} is no container that this FFmpeg writes and that has an extension of \
                     its own; try mp4, mkv, webm or mov"
                ));
            }
        };
    }
    let extension = name
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // A folder of this name would be taken for one of image files.
    Existing::at(&folder.join(&name))?;
    // A percent sign in the name of a still would be one of a pattern.
    let escaped = match ImageKind::of(&name) {
        Some(_) => escaped(name.as_os_str()),
        None => name,
    };
    let output = Output::named(folder.join(escaped)).for_input(input);
    match (&output, is_still) {
        _ if extension.is_empty() => refuse(
            "its name has no extension to tell how the output is to be written; name a container with \
             --format, such as --format mkv",
        ),
        (Output::Images(_), true) | (Output::Y4m(_), _) => Ok(output),
        (Output::Images(_), false) => refuse(&format!(
            "an animation is not written to a .{extension} file; name another container with --format, such \
             as --format apng"
        )),
        (Output::Video(path), true) if format.is_none() && can_be_written(path) => refuse(&format!(
            "a .{extension} file is written as a video of one frame, one file at a time: name a single input \
             and its output; for all of them name a kind of image with --format, such as --format png"
        )),
        (_, true) if format.is_none() => refuse(&format!(
            "framepipe writes no .{extension} files; name another kind with --format, such as --format png"
        )),
        (Output::Video(path), _) if can_be_written(path) => Ok(output),
        _ => refuse(&format!(
            "framepipe writes no .{extension} files; name a container with --format, such as --format mkv"
        )),
    }
}
