//! What INPUT and OUTPUT may name, and how sources and sinks are made from them.

use super::Failure;
use crate::cli::options::encoding::EncodingArguments;
use framepipe::convert::integers_for;
use framepipe::frame::{PixelFormat, Rational};
use framepipe::sink::convert::{Choose, converting, info_after};
use framepipe::sink::images::{ImageOptions, Naming};
use framepipe::sink::{self, AnySink, Rules};
use framepipe::source::animation::{self, is_animated_webp};
use framepipe::source::images::listing::{self, Listing, Selection};
use framepipe::source::images::{Failures, ImageFiles, ImageSourceOptions};
use framepipe::source::range::{self, TimeRange};
use framepipe::source::raw::{RawSpec, RawSpecError};
use framepipe::source::seam::SeamLog;
use framepipe::source::synthetic::{SyntheticSpec, SyntheticSpecError};
use framepipe::source::video::VideoSourceOptions;
use framepipe::source::y4m::Recognised;
use framepipe::source::{self, AnySource, StreamInfo};
use framepipe::still::ImageKind;
use framepipe::still::pattern::Pattern;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// The word for standard input and output.
pub(super) const PIPE: &str = "-";

/// The frame rate of image files that are made into a video without `--fps`.
const USUAL_RATE: Rational = Rational { num: 25, den: 1 };

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

/// What OUTPUT names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Output {
    /// YUV4MPEG2 to a file or, for "-", to standard output.
    Y4m(PathBuf),
    /// Raw frames to a file or, for "-", to standard output.
    Raw(PathBuf),
    /// Nowhere.
    Null,
    /// A directory, a pattern or one image file.
    Images(PathBuf),
    /// A video file.
    Video(PathBuf),
}

/// A text that names no input or output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndpointError {
    /// Nothing.
    #[error("the name is empty")]
    Empty,
    /// `raw:` without the geometry that an input needs.
    #[error(
        "'{0}' states no geometry; write raw:WIDTHxHEIGHT:FORMAT:FPS:PATH, such as \
         raw:1920x1080:yuv420p:30:clip.yuv, with - for standard input"
    )]
    NoGeometry(String),
    /// The geometry of raw frames.
    #[error(transparent)]
    Raw(#[from] RawSpecError),
    /// The made-up frames.
    #[error(transparent)]
    Synthetic(#[from] SyntheticSpecError),
    /// `null:` or `synthetic:` on the wrong side.
    #[error("{0} cannot be an {1}")]
    WrongSide(&'static str, &'static str),
    /// A URL, which no output is.
    #[error(
        "'{0}' is a URL, and framepipe writes files and pipes; let ffmpeg send what it writes: framepipe \
         filter INPUT - ... | ffmpeg -i - -c:v libx264 -f flv {0}"
    )]
    Url(String),
    /// `raw:` with a geometry on the output's side.
    #[error("raw output has the input's geometry; write raw:PATH, or raw:- for standard output")]
    OutputGeometry,
}

/// True for what may stand before the "://" of a URL. A folder's name may end in a colon, too, but none
/// before two slashes is meant.
fn is_scheme(text: &str) -> bool {
    let scheme = text.strip_prefix("raw:").unwrap_or(text);
    !scheme.is_empty()
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn is_y4m(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("y4m"))
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

impl FromStr for Output {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        if text == PIPE {
            return Ok(Output::Y4m(path));
        }
        if text == "null:" {
            return Ok(Output::Null);
        }
        if text
            .split_once("://")
            .is_some_and(|(scheme, _)| is_scheme(scheme))
        {
            return Err(EndpointError::Url(text.to_owned()));
        }
        if text.starts_with("synthetic:") {
            return Err(EndpointError::WrongSide("synthetic:", "output"));
        }
        if let Some(rest) = text.strip_prefix("raw:") {
            let begins_with_size = rest.split_once(':').is_some_and(|(size, _)| {
                size.split_once('x')
                    .is_some_and(|(w, h)| w.parse::<u32>().is_ok() && h.parse::<u32>().is_ok())
            });
            return match rest {
                _ if begins_with_size => Err(EndpointError::OutputGeometry),
                "" => Ok(Output::Raw(PathBuf::from(PIPE))),
                path => Ok(Output::Raw(PathBuf::from(path))),
            };
        }
        Ok(Output::named(path))
    }
}

impl Input {
    /// What an argument names. One that is not UTF-8 has no words of ours in it, and is the name of a file.
    pub(crate) fn from_argument(text: OsString) -> Result<Input, EndpointError> {
        match text.into_string() {
            Ok(text) => text.parse(),
            Err(name) => Ok(Input::named(PathBuf::from(name))),
        }
    }

    /// What the name of a file or folder stands for.
    pub(super) fn named(path: PathBuf) -> Input {
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

    /// What is read of it: a file, or a folder of frames.
    pub(crate) fn reads(&self) -> Vec<&Path> {
        let Some(path) = self.path().filter(|path| *path != Path::new(PIPE)) else {
            return Vec::new();
        };
        vec![if path.exists() { path } else { parent(path) }]
    }

    /// The file, folder or pattern, if there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Input::Y4m(path) | Input::Raw(_, path) | Input::Images(path) | Input::Video(path) => Some(path),
            Input::Synthetic(_) => None,
        }
    }

    /// Opens the source. `rate` and `selection` are for image files only, `reading` is for videos.
    pub(crate) fn open(
        &self,
        rate: Option<Rational>,
        reading: &VideoSourceOptions,
        choice: &FileChoice<'_>,
    ) -> Result<Opened, Failure> {
        let selection = &choice.selection;
        if !selection.is_all() && !matches!(self, Input::Images(_)) {
            return Err(Failure::Usage(
                "--frames A-B chooses among image files; of other inputs --start Af --frames N gives N \
                 frames from frame A on"
                    .to_owned(),
            ));
        }
        if rate.is_some() && !matches!(self, Input::Images(_)) {
            return Err(Failure::Usage(
                "--fps gives image files a frame rate; other inputs have their own".to_owned(),
            ));
        }
        if reading.stream.is_some() && !matches!(self, Input::Video(_)) {
            return Err(Failure::Usage(
                "--stream chooses among the streams of a video file; other inputs have one".to_owned(),
            ));
        }
        if reading.threads.is_some() && !matches!(self, Input::Video(_)) {
            return Err(Failure::Usage(
                "--decoder-threads is an option of video files; --workers sets how many threads read images"
                    .to_owned(),
            ));
        }
        let (mut files, mut failures) = (None, None);
        let source = match self {
            Input::Y4m(path) => AnySource::Stream(source::y4m::open(path, reading.timeout)?),
            Input::Raw(spec, path) => source::raw::open(path, spec, reading.timeout)?,
            Input::Synthetic(spec) => source::synthetic::open(spec)?,
            Input::Images(path) => {
                let options = ImageSourceOptions {
                    fps: rate,
                    strict: reading.strict,
                    selection: *selection,
                    keep_going: choice.keep_going,
                    max_pixels: reading.access.max_pixels,
                };
                let mut listing = listing::list(path, selection)?;
                keep_range(&mut listing, &choice.range, rate)?;
                if let Some(output) = choice.missing_in {
                    output.leave_out_existing(&mut listing)?;
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
                match source::y4m::recognised(path, reading.timeout)? {
                    Recognised::Mixed(source) => AnySource::Stream(source),
                    Recognised::Other(_open) => AnySource::Stream(animation::open(path, reading)?),
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
            source: source::floats::watched(source, choice.floats)?,
            files,
            failures,
        })
    }

    /// True if the input is no still, as far as that is known before it is opened.
    fn has_several_frames(&self) -> bool {
        match self {
            Input::Images(path) => {
                listing::list(path, &Selection::default()).is_ok_and(|listing| listing.files.len() > 1)
            }
            Input::Synthetic(spec) => spec.frames != Some(1),
            Input::Y4m(_) | Input::Raw(..) | Input::Video(_) => true,
        }
    }

    /// The rate that image files need where the output has time.
    pub(crate) fn rate_for(&self, output: &Output, rate: Option<Rational>) -> Option<Rational> {
        match (self, output) {
            (Input::Images(_), Output::Video(_) | Output::Y4m(_)) => rate.or(Some(USUAL_RATE)),
            _ => rate,
        }
    }
}

/// Leaves the image files of a range.
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

/// An open source, and the image files that it reads, if it reads such.
pub(crate) struct Opened {
    pub(crate) source: AnySource,
    pub(crate) files: Option<Files>,
    /// Where image files that are passed over are listed.
    pub(crate) failures: Option<Failures>,
}

/// Which of the image files are read.
#[derive(Default)]
pub(crate) struct FileChoice<'a> {
    pub(crate) selection: Selection,
    /// Which frames of them, or of another input.
    pub(crate) range: TimeRange,
    /// Where the frames beside the cuts around the range are noted.
    pub(crate) seams: Option<SeamLog>,
    /// Pass over files that cannot be read.
    pub(crate) keep_going: bool,
    /// Only those whose output is not there yet.
    pub(crate) missing_in: Option<&'a Output>,
    /// The format of floating-point samples that frames are brought to before they are filtered.
    pub(crate) floats: Option<PixelFormat>,
}

/// The image files that a source reads, and their numbers, where a pattern names them.
#[derive(Clone)]
pub(crate) struct Files {
    /// What is read.
    pub(crate) read: Arc<[PathBuf]>,
    /// What files made of them are named after: the same, but for pages of one file.
    pub(crate) paths: Arc<[PathBuf]>,
    pub(crate) numbers: Option<Arc<[i64]>>,
}

impl Files {
    /// Options of image files that are made from these.
    pub(crate) fn options(&self, start: Option<i64>) -> ImageOptions {
        ImageOptions {
            sources: Some(self.paths.clone()),
            numbers: self.numbers.clone(),
            start,
            ..ImageOptions::default()
        }
    }

    fn of(images: &ImageFiles) -> Files {
        Files {
            read: images.files().clone(),
            paths: images.names().clone(),
            numbers: images.numbers().cloned(),
        }
    }
}

impl Output {
    /// What an argument names; see [`Input::from_argument`].
    pub(crate) fn from_argument(text: OsString) -> Result<Output, EndpointError> {
        match text.into_string() {
            Ok(text) => text.parse(),
            Err(name) => Ok(Output::named(PathBuf::from(name))),
        }
    }

    /// What the name of a file or folder stands for.
    pub(super) fn named(path: PathBuf) -> Output {
        match path {
            path if is_y4m(&path) => Output::Y4m(path),
            path if sink::images::is_target(&path) => Output::Images(path),
            path => Output::Video(path),
        }
    }

    /// Refuses options of the encoding that this output does not have.
    pub(crate) fn check(&self, encoding: &EncodingArguments) -> Result<(), Failure> {
        if matches!(self, Output::Video(_)) {
            return Ok(());
        }
        let images = matches!(self, Output::Images(_));
        let given = [
            (encoding.encoder.is_some(), "--encoder"),
            (encoding.quality.is_some() && !images, "--quality"),
            (encoding.preset.is_some(), "--preset"),
            (!encoding.encoder_option.is_empty(), "--encoder-option"),
            (encoding.encoder_threads.is_some(), "--encoder-threads"),
            (encoding.format.is_some(), "--format"),
            (encoding.no_audio, "--no-audio"),
            (encoding.no_subtitles, "--no-subtitles"),
            (encoding.streams.is_some(), "--streams"),
            (encoding.audio_encoder.is_some(), "--audio-encoder"),
        ];
        match given.into_iter().find_map(|(given, name)| given.then_some(name)) {
            Some(option) => Err(Failure::Usage(format!(
                "{option} is an option of video files; {self} has no encoder"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a name without an extension for what is no sequence of image files: a forgotten extension
    /// would make a folder of stills. A slash behind the name says that a folder is meant.
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

    /// True for a directory, a pattern or an image file.
    pub(crate) fn is_images(&self) -> bool {
        matches!(self, Output::Images(_))
    }

    /// Leaves out the files whose output is there already, whole as everything that has its name.
    fn leave_out_existing(&self, listing: &mut Listing) -> Result<(), Failure> {
        let Output::Images(target) = self else {
            return Err(Failure::Usage(
                "--skip-existing goes on with image files; a video is written in one piece".to_owned(),
            ));
        };
        // Numbers in the output's names stay those of the whole sequence.
        let names = listing.names();
        let taken = listing.numbers.take();
        let mut numbers = taken.unwrap_or_else(|| (0..listing.files.len() as i64).collect());
        let files = Files {
            read: listing.files.as_slice().into(),
            paths: names.as_slice().into(),
            numbers: Some(numbers.as_slice().into()),
        };
        let naming = Naming::new(target, &files.options(None))?;
        let is_missing: Vec<bool> = (0..)
            .zip(&names)
            .map(|(sequence, file)| !naming.name(sequence, Some(file)).0.exists())
            .collect();
        let mut keep = is_missing.iter();
        listing.files.retain(|_| keep.next() == Some(&true));
        let mut keep = is_missing.iter();
        numbers.retain(|_| keep.next() == Some(&true));
        if let Some(pages) = &mut listing.pages {
            let mut keep = is_missing.iter();
            pages.retain(|_| keep.next() == Some(&true));
        }
        listing.numbers = Some(numbers);
        Ok(())
    }

    /// The folder in which its files are made; `None` where there are none.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let path = self.path().filter(|path| *path != Path::new(PIPE))?;
        if self.is_images()
            && let Ok(naming) = Naming::new(path, &ImageOptions::default())
            && let Some(folder) = naming.folder()
        {
            return Some(folder.to_owned());
        }
        Some(parent(path).to_owned())
    }

    /// True if a pattern gives its files' names.
    pub(crate) fn is_pattern(&self) -> bool {
        let Output::Images(target) = self else {
            return false;
        };
        Naming::new(target, &ImageOptions::default()).is_ok_and(|naming| naming.is_numbered())
    }

    /// True if its files can have numbers in their names.
    pub(crate) fn is_numbered(&self) -> bool {
        let Output::Images(target) = self else {
            return false;
        };
        Naming::new(target, &ImageOptions::default()).is_ok_and(|naming| !naming.is_single())
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Output::Y4m(path) | Output::Raw(path) | Output::Images(path) | Output::Video(path) => Some(path),
            Output::Null => None,
        }
    }

    /// True if frames go to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path() == Some(Path::new(PIPE))
    }

    /// A video file where the user named a container, whatever the name looks like.
    pub(crate) fn with_container(self, container: Option<&str>) -> Output {
        match (self, container) {
            (Output::Images(path) | Output::Y4m(path), Some(_)) if path != Path::new(PIPE) => {
                Output::Video(path)
            }
            (output, _) => output,
        }
    }

    /// A video file where one WebP file is to hold several frames, which it can.
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

    /// Makes the sink for the source's stream, behind all that frames go through before it. `start` is the
    /// number of the first file in a pattern's names, where the source's frames have none.
    pub(crate) fn open(
        &self,
        info: &StreamInfo,
        encoding: &EncodingArguments,
        strict: bool,
        files: Option<Files>,
        start: Option<i64>,
    ) -> Result<AnySink, Failure> {
        match encoding.background {
            None => self.open_held(info, encoding, strict, files, start),
            Some(background) => {
                let after = sink::flatten::info_after(info);
                let inner = self.open_held(&after, encoding, strict, files, start)?;
                Ok(sink::flatten::flattening(inner, self.to_string(), background))
            }
        }
    }

    /// Makes the sink for the source's stream, behind a conversion where it cannot hold the stream's pixel
    /// format.
    fn open_held(
        &self,
        info: &StreamInfo,
        encoding: &EncodingArguments,
        strict: bool,
        files: Option<Files>,
        start: Option<i64>,
    ) -> Result<AnySink, Failure> {
        let rules = Rules {
            overwrite: encoding.overwrite,
            strict,
        };
        match self {
            Output::Null => Ok(AnySink::Stream(sink::null::create())),
            Output::Video(path) if info.format.is_float() || encoding.floats().is_some() => {
                // What no conversion helps is refused by the conversion, in its own words.
                let whole = integers_for(info.format).unwrap_or(PixelFormat::RGB48);
                let choose: Choose = Arc::new(move |format, _| match format.is_float() {
                    true => whole,
                    false => format,
                });
                let after = info_after(info, &choose);
                let asked = encoding.video_sink(path, &after, strict)?;
                let is_open = encoding.pixel_format.is_none() || encoding.floats().is_some();
                let floats = asked.nearest_floats(info.format).filter(|_| is_open);
                // It has a temporary file, as the sink that is used will have.
                drop(asked);
                let to = floats.unwrap_or(whole);
                let choose: Choose = Arc::new(move |format, _| match format.is_float() {
                    true => to,
                    false => format,
                });
                let after = info_after(info, &choose);
                let sink = AnySink::Stream(encoding.open_video(path, &after, strict)?);
                Ok(converting(sink, self.to_string(), info, choose, strict))
            }
            Output::Video(path) => match encoding.native_pixel_format().ok().flatten() {
                // Image files may differ in format, and one that was requested unites them.
                Some(wanted) if files.as_ref().is_some_and(|files| files.paths.len() > 1) => {
                    let choose: Choose = Arc::new(move |_, _| wanted);
                    let after = info_after(info, &choose);
                    let sink = AnySink::Stream(encoding.open_video(path, &after, strict)?);
                    Ok(converting(sink, self.to_string(), info, choose, strict))
                }
                _ => Ok(AnySink::Stream(encoding.open_video(path, info, strict)?)),
            },
            Output::Y4m(path) => {
                let wanted = self.wanted(encoding, sink::y4m::accepts)?;
                let choose: Choose =
                    Arc::new(move |format, _| wanted.unwrap_or_else(|| sink::y4m::nearest(format)));
                let after = info_after(info, &choose);
                let sink = AnySink::Stream(sink::y4m::create(path, &after, rules)?);
                Ok(converting(sink, self.to_string(), info, choose, strict))
            }
            Output::Raw(path) => {
                let wanted = self.wanted(encoding, |_| true)?;
                let choose: Choose = Arc::new(move |format, _| wanted.unwrap_or(format));
                let after = info_after(info, &choose);
                let sink = AnySink::Stream(sink::raw::create(path, &after, rules)?);
                Ok(converting(sink, self.to_string(), info, choose, strict))
            }
            Output::Images(path) => {
                let named = files.map(|files| files.options(start));
                let mut options = ImageOptions {
                    shares_folder: encoding.is_part,
                    overwrite: rules.overwrite,
                    strict: rules.strict,
                    start,
                    ..named.unwrap_or_default()
                };
                let kind = sink::images::kind_for(path, &options);
                let wanted = self.wanted(encoding, |format| sink::images::accepts(kind, format))?;
                // In a folder each file may be of another kind.
                let naming = Naming::new(path, &options).ok();
                if encoding.quality.is_some() {
                    let sources = options.sources.as_deref().unwrap_or_default();
                    let is_jpeg = |file| {
                        let kind_of = |naming: &Naming| naming.name(0, Some(file)).1;
                        naming.as_ref().map(kind_of) == Some(ImageKind::Jpeg)
                    };
                    if kind != ImageKind::Jpeg && !sources.iter().any(|file| is_jpeg(file)) {
                        return Err(Failure::Usage(format!(
                            "--quality is an option of video files and of JPEG files; {kind} files have none"
                        )));
                    }
                }
                if let Some(quality) = encoding.jpeg_quality()? {
                    options.jpeg_quality = quality;
                }
                let choose: Choose = Arc::new(move |format, file| {
                    let of_file = naming
                        .as_ref()
                        .zip(file)
                        .map(|(naming, file)| naming.name(0, Some(file)).1);
                    let kind = of_file.unwrap_or(kind);
                    // What no conversion helps is refused by the sink, in its own words.
                    wanted
                        .or_else(|| sink::images::nearest(kind, format))
                        .unwrap_or(format)
                });
                let after = info_after(info, &choose);
                let sink = AnySink::Indexed(sink::images::create(path, &after, &options)?);
                Ok(converting(sink, self.to_string(), info, choose, strict))
            }
        }
    }

    /// The pixel format that the user asked for, which the output must take.
    fn wanted(
        &self,
        encoding: &EncodingArguments,
        accepts: impl Fn(PixelFormat) -> bool,
    ) -> Result<Option<PixelFormat>, Failure> {
        let wanted = encoding.native_pixel_format()?;
        match wanted {
            // Filtered so, and brought to what the output holds.
            Some(format) if format.is_float() && !accepts(format) => Ok(None),
            Some(format) if !accepts(format) => {
                let held: Vec<&str> = PixelFormat::all()
                    .chain(PixelFormat::floats())
                    .filter(|&f| accepts(f))
                    .map(PixelFormat::name)
                    .collect();
                Err(Failure::Usage(format!(
                    "{self} cannot hold {format}; it takes {}",
                    held.join(", ")
                )))
            }
            wanted => Ok(wanted),
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            None => f.write_str("null:"),
            Some(path) if path == Path::new(PIPE) => f.write_str("standard output"),
            Some(path) => path.display().fmt(f),
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
    if let (Input::Images(_), Output::Images(_)) = (input, output) {
        let names_follow_input = ImageKind::of(to).is_none() || to.is_dir();
        let folder = if from.is_dir() { from } else { parent(from) };
        if names_follow_input && same_file(folder, to) {
            return refuse(&to.display().to_string());
        }
    }
    Ok(())
}

/// Refuses numbered names that fall on the input's own files.
pub(crate) fn check_files(files: &Files, output: &Output) -> Result<(), Failure> {
    let Output::Images(target) = output else {
        return Ok(());
    };
    let options = files.options(None);
    let Ok(naming) = Naming::new(target, &options) else {
        // The sink says better what is wrong with the name.
        return Ok(());
    };
    if !naming.is_numbered() {
        return Ok(());
    }
    let identities: std::collections::HashSet<(u64, u64)> =
        files.read.iter().filter_map(|f| identity(f)).collect();
    for sequence in 0..files.paths.len() as u64 {
        let (name, _) = naming.name(sequence, None);
        if identity(&name).is_some_and(|id| identities.contains(&id)) {
            return Err(Failure::Usage(format!(
                "{} is both input and output; choose another output",
                name.display()
            )));
        }
    }
    Ok(())
}

pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Device and inode of a file or directory; links lead to what they name. Pipes and devices have no content
/// to lose.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    let facts = std::fs::metadata(path).ok()?;
    (facts.is_file() || facts.is_dir()).then(|| (facts.dev(), facts.ino()))
}

/// True if both names are, or will be, those of one file: they lead to the same one, or have the same last
/// part in the same folder.
pub(crate) fn names_same_file(a: &Path, b: &Path) -> bool {
    let in_one_folder = || {
        let folder = |path| parent(path).canonicalize().ok();
        a.file_name().is_some()
            && a.file_name() == b.file_name()
            && folder(a).is_some_and(|f| folder(b) == Some(f))
    };
    a == b || same_file(a, b) || in_one_folder()
}

/// True if both paths lead to the same existing file or directory.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    identity(a).is_some_and(|id| identity(b) == Some(id))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn input(text: &str) -> Input {
        text.parse().unwrap()
    }

    fn output(text: &str) -> Output {
        text.parse().unwrap()
    }

    #[test]
    fn inputs_by_their_names() {
        assert_eq!(input("-"), Input::Y4m("-".into()));
        assert_eq!(input("a/b.Y4M"), Input::Y4m("a/b.Y4M".into()));
        assert_eq!(input("clip.mp4"), Input::Video("clip.mp4".into()));
        assert_eq!(input("no-such-name"), Input::Video("no-such-name".into()));
        assert_eq!(input("still.PNG"), Input::Images("still.PNG".into()));
        assert_eq!(input("frames/%05d.png"), Input::Images("frames/%05d.png".into()));
        assert_eq!(input("samples"), Input::Images("samples".into()));
        assert!(matches!(input("synthetic:64x32:gray:25:3"), Input::Synthetic(_)));
        assert!(matches!(
            "null:".parse::<Input>(),
            Err(EndpointError::WrongSide(..))
        ));
        assert_eq!("".parse::<Input>(), Err(EndpointError::Empty));
    }

    #[test]
    fn urls_are_no_outputs() {
        for url in [
            "rtmp://127.0.0.1/live/x",
            "udp://127.0.0.1:9999",
            "https://a/b.png",
            "raw:tcp://a:1",
        ] {
            let refused = url.parse::<Output>();
            assert_eq!(refused, Err(EndpointError::Url(url.to_owned())), "{url}");
        }
        assert_eq!(output("rtmp:/x.mkv"), Output::Video("rtmp:/x.mkv".into()));
    }

    #[test]
    fn raw_inputs_state_their_geometry_and_may_have_colons_in_the_path() {
        let Input::Raw(spec, path) = input("raw:64x32:yuv420p:30000/1001:a:b.yuv") else {
            panic!("no raw input");
        };
        assert_eq!((spec.layout.width(), spec.layout.height()), (64, 32));
        assert_eq!(
            spec.rate,
            Rational {
                num: 30000,
                den: 1001
            }
        );
        assert_eq!(path, Path::new("a:b.yuv"));
        for pipe in ["raw:64x32:gray:25", "raw:64x32:gray", "raw:64x32:gray:25:-"] {
            assert!(
                matches!(input(pipe), Input::Raw(_, path) if path == Path::new("-")),
                "{pipe}"
            );
        }
        for bad in [
            "raw:",
            "raw:clip.yuv",
            "raw:64:gray:25:x",
            "raw:64x32:nothing:25:x",
            "raw:0x32:gray:25:x",
        ] {
            assert!(bad.parse::<Input>().is_err(), "{bad}");
        }
    }

    #[test]
    fn outputs_by_their_names() {
        assert_eq!(output("-"), Output::Y4m("-".into()));
        assert_eq!(output("null:"), Output::Null);
        assert_eq!(output("raw:-"), Output::Raw("-".into()));
        assert_eq!(output("raw:out.yuv"), Output::Raw("out.yuv".into()));
        assert_eq!(output("out.mkv"), Output::Video("out.mkv".into()));
        assert_eq!(output("out/"), Output::Images("out/".into()));
        assert_eq!(output("out/%03d.tif"), Output::Images("out/%03d.tif".into()));
        assert_eq!(
            "raw:64x32:gray:25:x".parse::<Output>(),
            Err(EndpointError::OutputGeometry)
        );
        assert!(matches!(
            "synthetic:1x1".parse::<Output>(),
            Err(EndpointError::WrongSide(..))
        ));
        assert_eq!(
            output("out").with_container(Some("matroska")),
            Output::Video("out".into())
        );
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
        };
        assert!(check_files(&files, &output(&path("%d.png"))).is_err());
        assert!(check_files(&files, &output(&path("out-%d.png"))).is_ok());
    }
}
