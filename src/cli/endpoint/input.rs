//! INPUT: its names, and the source that it means.

use super::files::Files;
use super::output::Output;
use super::path::parent;
use super::{EndpointError, PIPE, is_url, is_y4m};
use crate::cli::Failure;
use framepipe::convert::flatten::Background;
use framepipe::frame::{ColourModel, PixelFormat, Rational};
use framepipe::source::animation;
use framepipe::source::floats::AlphaRules;
use framepipe::source::images::animated::is_animated_webp;
use framepipe::source::images::listing::{self, Listing, Selection};
use framepipe::source::images::{Failures, ImageSourceOptions};
use framepipe::source::range::{self, TimeRange};
use framepipe::source::raw::RawSpec;
use framepipe::source::seam::SeamLog;
use framepipe::source::synthetic::SyntheticSpec;
use framepipe::source::video::{VideoSourceOptions, is_url_like};
use framepipe::source::y4m::Recognised;
use framepipe::source::{self, AnySource};
use framepipe::still::pattern::Pattern;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// What INPUT names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// YUV4MPEG2 from a file or, for "-", from standard input.
    Y4m(PathBuf),
    /// Raw frames from a file or, for "-", from standard input.
    Raw(RawSpec, PathBuf),
    /// Made-up frames.
    Synthetic(SyntheticSpec),
    /// A directory, a pattern, a glob or one image file.
    Images(PathBuf),
    /// Anything that FFmpeg reads.
    Video(PathBuf),
}

impl FromStr for Input {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        if text == PIPE {
            return Ok(Input::Y4m(path));
        }
        if text == "null:" {
            return Err(EndpointError::WrongSide("null:", "input"));
        }
        if text.starts_with("synthetic:") {
            return Ok(Input::Synthetic(text.parse()?));
        }
        if let Some(rest) = text.strip_prefix("raw:") {
            // The path comes last and may hold colons itself.
            let parts: Vec<&str> = rest.splitn(4, ':').collect();
            let (geometry, path) = match parts[..] {
                [size, format, rate, path] if !path.is_empty() => (format!("{size}:{format}:{rate}"), path),
                [_, _] | [_, _, _] => (rest.to_owned(), PIPE),
                _ => return Err(EndpointError::NoGeometry(text.to_owned())),
            };
            return Ok(Input::Raw(geometry.parse()?, PathBuf::from(path)));
        }
        Ok(Input::named(path))
    }
}

impl Input {
    /// Reads an argument. One that is not UTF-8 can only be the name of a file.
    pub(crate) fn from_argument(text: OsString) -> Result<Input, EndpointError> {
        match text.into_string() {
            Ok(text) => text.parse(),
            Err(name) => Ok(Input::named(PathBuf::from(name))),
        }
    }

    /// The input that the name of a file or folder means.
    pub(crate) fn named(path: PathBuf) -> Input {
        match path {
            path if is_y4m(&path) => Input::Y4m(path),
            path if listing::names_images(&path) => Input::Images(path),
            path => Input::Video(path),
        }
    }

    /// True for a directory, a pattern, a glob or an image file.
    pub(crate) fn is_images(&self) -> bool {
        matches!(self, Input::Images(_))
    }

    /// True for a pattern of numbered image files, such as frames/%05d.png.
    pub(crate) fn is_pattern(&self) -> bool {
        let has_number = |path: &Path| matches!(Pattern::parse(path), Ok(Some(_)));
        matches!(self, Input::Images(path) if !path.exists() && has_number(path))
    }

    /// The paths that reading needs: a file, or a folder of frames. Links that lead out of it are refused.
    pub(crate) fn reads(&self) -> Result<Vec<PathBuf>, Failure> {
        let Some(path) = self.path().filter(|path| *path != Path::new(PIPE)) else {
            return Ok(Vec::new());
        };
        self.check_links(&self.image_files())?;
        Ok(vec![above(path).to_owned()])
    }

    /// Refuses `files`, for which this folder, pattern or glob stands, if one is a link that leads out of the
    /// folder: whoever made it would have any file read.
    pub(crate) fn check_links(&self, files: &[PathBuf]) -> Result<(), Failure> {
        let Some(folder) = self.path().map(above) else {
            return Ok(());
        };
        let real = folder.canonicalize().unwrap_or_default();
        let is_elsewhere = |file: &&PathBuf| file.canonicalize().is_ok_and(|file| !file.starts_with(&real));
        match files.iter().find(is_elsewhere) {
            Some(link) => Err(Failure::Failed(format!(
                "{} is a link that leads out of {}, and --untrusted reads nothing there; put the file itself \
                 in its place, or leave it out",
                link.display(),
                folder.display()
            ))),
            None => Ok(()),
        }
    }

    /// The files that are read, each as an input: the image files, if they are known, else the one that is
    /// named.
    pub(crate) fn files_read<'a>(
        &'a self,
        files: Option<&'a Files>,
    ) -> impl Iterator<Item = (&'static str, &'a Path)> {
        let named = self.path().filter(|_| files.is_none());
        let listed = files.into_iter().flat_map(|files| files.read.iter());
        (listed.map(PathBuf::as_path).chain(named)).map(|file| ("input", file))
    }

    /// The image files of a folder, pattern or glob. What cannot be listed is an error later on.
    pub(crate) fn image_files(&self) -> Vec<PathBuf> {
        match self {
            Input::Images(path) if !path.is_file() => {
                let listing = listing::list(path, &Selection::default());
                listing.map_or_else(|_| Vec::new(), |listing| listing.files)
            }
            _ => Vec::new(),
        }
    }

    /// The file, folder or pattern, if there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Input::Y4m(path) | Input::Raw(_, path) | Input::Images(path) | Input::Video(path) => Some(path),
            Input::Synthetic(_) => None,
        }
    }

    /// Opens the source. `rate` and `choice` apply to image files, `reading` to videos; an option that does
    /// not apply is a usage error.
    pub(crate) fn open(
        &self,
        rate: Option<Rational>,
        reading: &VideoSourceOptions,
        choice: &FileChoice<'_>,
    ) -> Result<Opened, Failure> {
        let selection = &choice.selection;
        self.check_name(reading)?;
        self.check_options(rate, reading, selection)?;
        let (mut files, mut failures, mut notes) = (None, None, Vec::new());
        let limit = reading.limit();
        let source = match self {
            Input::Y4m(path) => AnySource::Stream(source::y4m::open(path, Some(&limit))?),
            Input::Raw(spec, path) => source::raw::open(path, spec, Some(&limit))?,
            Input::Synthetic(spec) => source::synthetic::open(spec)?,
            Input::Images(path) => {
                let mut options = ImageSourceOptions::default();
                options.fps = rate;
                options.strict = reading.strict;
                options.selection = *selection;
                options.keep_going = choice.keep_going;
                options.max_pixels = reading.access.max_pixels;
                options.colours_only = choice.floats.is_some_and(|to| to.model() != ColourModel::Data);
                let mut listing = match &choice.listed {
                    Some(listing) => listing.clone(),
                    None => {
                        let mut listing = listing::list(path, selection)?;
                        keep_range(&mut listing, &choice.range, rate)?;
                        listing
                    }
                };
                if let Some(output) = choice.missing_in {
                    notes = output.leave_out_existing(&mut listing, choice.first_written)?;
                    if listing.files.is_empty() {
                        return Err(Failure::NothingToDo);
                    }
                }
                let images = source::images::open_listed(path, listing, &options)?;
                failures = Some(images.failures().clone());
                files = Some(Files::of(&images));
                AnySource::Indexed(Arc::new(images))
            }
            Input::Video(path) => {
                if reading.stream.is_some_and(|stream| stream != 0) && is_animated_webp(path) {
                    return Err(Failure::Usage(
                        "an animated WebP has one stream; leave --stream out".to_owned(),
                    ));
                }
                match source::y4m::recognised(path, Some(&limit))? {
                    Recognised::Y4m(_) if reading.stream.is_some_and(|stream| stream != 0) => {
                        return Err(Failure::Usage(
                            "a y4m stream has one stream; leave --stream out".to_owned(),
                        ));
                    }
                    Recognised::Y4m(source) => AnySource::Stream(source),
                    Recognised::Other(pipe) => {
                        let mut reading = reading.clone();
                        reading.pipe = pipe.map(Arc::new);
                        AnySource::Stream(animation::open(path, &reading)?)
                    }
                }
            }
        };
        let source = match self {
            Input::Images(_) => source,
            _ => match &choice.seams {
                Some(log) => range::watched(source, choice.range, log.clone())?,
                None => range::within(source, choice.range)?,
            },
        };
        Ok(Opened {
            source: match choice.is_matte {
                true => source,
                false => {
                    let alpha = AlphaRules {
                        background: choice.background,
                        strict: reading.strict,
                    };
                    source::floats::watched(source, choice.floats, alpha)?
                }
            },
            files,
            failures,
            notes,
        })
    }

    /// Refuses options of other kinds of inputs.
    fn check_options(
        &self,
        rate: Option<Rational>,
        reading: &VideoSourceOptions,
        selection: &Selection,
    ) -> Result<(), Failure> {
        let (is_images, is_video) = (self.is_images(), matches!(self, Input::Video(_)));
        let options = [
            (
                !selection.is_all(),
                is_images,
                "--frames A-B chooses among image files; of other inputs --start Af --frames N gives N \
                 frames from frame A on",
            ),
            (
                rate.is_some(),
                is_images,
                "--fps gives image files a frame rate; other inputs have their own",
            ),
            (
                reading.stream.is_some(),
                is_video,
                "--stream chooses among the streams of a video file; other inputs have one",
            ),
            (
                reading.threads.is_some(),
                is_video,
                "--decoder-threads is an option of video files; --workers sets how many threads read images",
            ),
        ];
        if let Some((.., refusal)) = options.iter().find(|(given, applies, _)| *given && !applies) {
            return Err(Failure::Usage((*refusal).to_owned()));
        }
        Ok(())
    }

    /// Refuses the name of what is not there: whether options suit it cannot be judged.
    pub(crate) fn check_name(&self, reading: &VideoSourceOptions) -> Result<(), Failure> {
        match self {
            Input::Video(path) if !reading.access.urls && !is_url_like(&path.to_string_lossy()) => path
                .metadata()
                .map(|_| ())
                .map_err(|cause| Failure::Passing(format!("cannot read {}: {cause}", path.display()))),
            Input::Images(path) if is_url(&path.to_string_lossy()) && !path.exists() => {
                Err(Failure::Failed(format!(
                    "cannot read {}: pictures are read from files, not from URLs; fetch it first (curl -O \
                     URL) and give the file",
                    path.display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// True unless the input is a single picture, as far as that is known before it is opened.
    pub(crate) fn has_several_frames(&self) -> bool {
        match self {
            Input::Images(path) => {
                listing::list(path, &Selection::default()).is_ok_and(|listing| listing.files.len() > 1)
            }
            Input::Synthetic(spec) => spec.frames != Some(1),
            Input::Y4m(_) | Input::Raw(..) | Input::Video(_) => true,
        }
    }
}

/// What is there of a path: itself, or the nearest folder above it. A pattern may have wildcards in its
/// folders, too.
fn above(path: &Path) -> &Path {
    let mut above = path;
    while !above.exists() && above != parent(above) {
        above = parent(above);
    }
    above
}

/// Keeps the image files of a range and drops the others.
fn keep_range(listing: &mut Listing, range: &TimeRange, rate: Option<Rational>) -> Result<(), Failure> {
    let count = listing.files.len();
    let Some((first, end)) = range.numbers(rate) else {
        return Err(Failure::Usage(
            "image files have no times without --fps; give the range in frames, such as 120f".to_owned(),
        ));
    };
    let place = |number: u64| usize::try_from(number).unwrap_or(count).min(count);
    let (first, end) = (place(first), end.map_or(count, place));
    if first >= end {
        return Err(Failure::Usage(format!(
            "no frame lies in the range: there are {count} image files"
        )));
    }
    listing.keep(first, end);
    Ok(())
}

/// An open source, and the image files that it reads, if any.
pub(crate) struct Opened {
    pub(crate) source: AnySource,
    pub(crate) files: Option<Files>,
    /// The list of image files that are passed over.
    pub(crate) failures: Option<Failures>,
    /// What there is to say of files that are left out, since they are written already.
    pub(crate) notes: Vec<String>,
}

/// Which of the image files are read.
#[derive(Default)]
pub(crate) struct FileChoice<'a> {
    pub(crate) selection: Selection,
    /// The image files, where they are known already.
    pub(crate) listed: Option<Listing>,
    /// Which frames of the image files, or of another input.
    pub(crate) range: TimeRange,
    /// The list of frames beside the cuts around the range.
    pub(crate) seams: Option<SeamLog>,
    /// Pass over files that cannot be read.
    pub(crate) keep_going: bool,
    /// Only those whose output does not exist yet.
    pub(crate) missing_in: Option<&'a Output>,
    /// The number of the first image file that is written, if those that are read have no numbers.
    pub(crate) first_written: Option<i64>,
    /// The floating-point format that frames are converted to before they are filtered.
    pub(crate) floats: Option<PixelFormat>,
    /// The colour that alpha is laid over if that format has none.
    pub(crate) background: Option<Background>,
    /// The frames are mattes, whose samples are watched where they become weights.
    pub(crate) is_matte: bool,
}
