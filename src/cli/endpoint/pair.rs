//! What depends on both INPUT and OUTPUT: outputs that would overwrite their input, frame rates, forgotten
//! extensions.

use super::PIPE;
use super::files::Files;
use super::input::Input;
use super::output::Output;
use super::path::{identity, names_same_file, open_identity, parent, same_file};
use super::written::WrittenFiles;
use crate::cli::Failure;
use framepipe::frame::Rational;
use framepipe::still::ImageKind;
use framepipe::still::pattern::Pattern;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// The frame rate of image files that are made into a video without `--fps`.
const USUAL_RATE: Rational = Rational { num: 25, den: 1 };

impl Input {
    /// The frame rate of image files, with a default if the output is a video.
    pub(crate) fn rate_for(&self, output: &Output, rate: Option<Rational>) -> Option<Rational> {
        match (self, output) {
            (Input::Images(_), Output::Video(_) | Output::Y4m(_)) => rate.or(Some(USUAL_RATE)),
            _ => rate,
        }
    }
}

impl Output {
    /// Refuses a name without an extension, unless the input is image files or the name ends in a slash: a
    /// forgotten extension would make a folder of stills.
    pub(crate) fn check_extension(&self, input: &Input) -> Result<(), Failure> {
        let Output::Images(path) = self else {
            return Ok(());
        };
        let is_folder = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if is_folder || path.extension().is_some() || input.is_images() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{0} has no extension; write {0}.mp4 or {0}.mkv for a video, {0}/ for a folder of images",
            path.display()
        )))
    }

    /// The same as a video file if one WebP file is to hold several frames.
    pub(crate) fn for_input(self, input: &Input) -> Output {
        match self {
            Output::Images(path)
                if input.has_several_frames()
                    && ImageKind::of(&path) == Some(ImageKind::WebP)
                    && !path.is_dir()
                    && matches!(Pattern::parse(&path), Ok(None)) =>
            {
                Output::Video(path)
            }
            output => output,
        }
    }
}

/// Refuses an output that would overwrite its own input.
pub(crate) fn check_distinct(input: &Input, output: &Output) -> Result<(), Failure> {
    let (Some(from), Some(to)) = (input.path(), output.path()) else {
        return Ok(());
    };
    let refuse = |what: &str| {
        Err(Failure::Usage(format!(
            "{what} is both input and output; choose another output"
        )))
    };
    if same_file(from, to) || (from == to && from != Path::new(PIPE)) {
        return refuse(&to.display().to_string());
    }
    // A shell may have opened the file of either for reading or writing.
    let at_ends = (end_identity(from, io::stdin()), end_identity(to, io::stdout()));
    if let (Some(read), Some(written)) = at_ends
        && read == written
    {
        let word = match (from == Path::new(PIPE), to == Path::new(PIPE)) {
            (_, false) => to.display().to_string(),
            (false, true) => from.display().to_string(),
            (true, true) => "the file of standard input".to_owned(),
        };
        return refuse(&word);
    }
    if let (Input::Images(_), Output::Images(_)) = (input, output) {
        let names_follow_input = ImageKind::of(to).is_none() || to.is_dir();
        let folder = if from.is_dir() { from } else { parent(from) };
        if names_follow_input && same_file(folder, to) {
            return refuse(&to.display().to_string());
        }
    }
    Ok(())
}

/// The file of an end, which is that of `stream` for "-".
fn end_identity(path: &Path, stream: impl AsFd) -> Option<(u64, u64)> {
    match path == Path::new(PIPE) {
        true => open_identity(stream),
        false => identity(path),
    }
}

/// True if an own file of the run is, or will be, the file of an end, which is that of `stream` for "-".
pub(crate) fn is_file_of_end(end: &Path, stream: impl AsFd, file: &Path) -> bool {
    let is_open = || end_identity(end, stream).is_some_and(|id| identity(file) == Some(id));
    names_same_file(end, file) || is_open()
}

/// Refuses an output one of whose files is also one of the inputs', each with its image files if it is such.
/// The names of what is written follow the first, or are numbered from `start` on.
pub(crate) fn check_files(
    inputs: &[(&Input, Option<&Files>)],
    output: &Output,
    start: Option<i64>,
) -> Result<(), Failure> {
    let named = inputs.first().and_then(|(_, files)| *files);
    let written = WrittenFiles::new(output, named, start)?;
    (inputs.iter()).try_for_each(|(input, files)| written.check_read(input.files_read(*files)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::Arc;

    fn input(text: &str) -> Input {
        text.parse().unwrap()
    }

    fn output(text: &str) -> Output {
        text.parse().unwrap()
    }

    #[test]
    fn an_output_onto_its_input_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for name in ["a.mp4", "1.png", "2.png"] {
            std::fs::write(path(name), name).unwrap();
        }
        std::os::unix::fs::symlink(path("a.mp4"), path("link.mp4")).unwrap();
        std::fs::hard_link(path("a.mp4"), path("hard.mp4")).unwrap();
        let here = path("");
        for (from, to) in [
            (path("a.mp4"), path("a.mp4")),
            (path("a.mp4"), path("link.mp4")),
            (path("link.mp4"), path("hard.mp4")),
            (path("1.png"), path("1.png")),
            (here.clone(), here.clone()),
            (here.clone(), format!("{here}/.")),
            (path("*.png"), here.clone()),
            (path("%d.png"), path("%d.png")),
        ] {
            let result = check_distinct(&input(&from), &output(&to));
            assert!(matches!(result, Err(Failure::Usage(_))), "{from} {to}");
        }
        for (from, to) in [
            (path("a.mp4"), path("b.mp4")),
            (path("1.png"), path("3.png")),
            (here.clone(), path("sub/")),
            (path("*.png"), path("out-%d.png")),
        ] {
            assert!(check_distinct(&input(&from), &output(&to)).is_ok(), "{from} {to}");
        }
        assert!(check_distinct(&input("-"), &output("-")).is_ok());
        let paths: Arc<[PathBuf]> = [PathBuf::from(path("1.png")), PathBuf::from(path("2.png"))].into();
        let files = Files {
            read: paths.clone(),
            paths,
            numbers: Some([1, 2].into()),
            places: [0, 1].into(),
        };
        let from = input(&path("*.png"));
        let check =
            |files: &Files, to: &str, start| check_files(&[(&from, Some(files))], &output(&path(to)), start);
        assert!(check(&files, "%d.png", None).is_err());
        assert!(check(&files, "out-%d.png", None).is_ok());
        let folder = Files {
            numbers: None,
            ..files
        };
        for (start, is_refused) in [(None, true), (Some(2), true), (Some(3), false)] {
            let checked = check(&folder, "%d.png", start);
            assert_eq!(checked.is_err(), is_refused, "{start:?}");
        }
    }
}
