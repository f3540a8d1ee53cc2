//! OUTPUT: its names, and the sink that it means.

use super::files::{Files, options_of};
use super::path::{open_written_identity, parent, written_identity};
use super::{EndpointError, PIPE, is_url, is_y4m};
use crate::cli::Failure;
use crate::cli::options::encoding::EncodingArguments;
use framepipe::convert::integers_for;
use framepipe::frame::{ColourModel, PixelFormat};
use framepipe::sink::atomic_file::is_empty_file;
use framepipe::sink::convert::{Choose, converting, info_after};
use framepipe::sink::images::{ImageOptions, Naming};
use framepipe::sink::video::{Streams, VideoSink};
use framepipe::sink::{self, AnySink, Rules};
use framepipe::source::StreamInfo;
use framepipe::source::images::listing::Listing;
use framepipe::still::ImageKind;
use framepipe::still::pattern::Pattern;
use framepipe::wording::counted;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

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
        if is_url(text) {
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

/// True for FFmpeg's names of YUV4MPEG2, for which there is a writer of our own.
fn is_y4m_container(name: &str) -> bool {
    matches!(name, "yuv4mpegpipe" | "y4m")
}

/// The stream that an output is opened for, and how it is encoded.
struct Stream<'a> {
    info: &'a StreamInfo,
    encoding: &'a EncodingArguments,
    /// Warnings are errors.
    strict: bool,
}

impl Stream<'_> {
    /// Those of the output at `path`.
    fn rules(&self, path: &Path) -> Rules {
        Rules {
            overwrite: self.encoding.replaces(path),
            strict: self.strict,
            pictures_alone: self.encoding.streams == Some(Streams::Video),
            trial: self.encoding.is_trial,
        }
    }
}

/// What stands under the name of an output that may be there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Nothing,
    /// A file without a byte, which no run has finished.
    Empty,
    Whole,
}

impl Existing {
    /// An error for a folder, in whose place no file can be put.
    pub(crate) fn at(name: &Path) -> Result<Existing, Failure> {
        match name.metadata() {
            Ok(facts) if facts.is_dir() => Err(Failure::Failed(format!(
                "{} is a directory, and a file is to be written there; rename one of them",
                name.display()
            ))),
            Ok(facts) if is_empty_file(&facts) => Ok(Existing::Empty),
            Ok(_) => Ok(Existing::Whole),
            Err(_) => Ok(Existing::Nothing),
        }
    }
}

/// What is said of a file that is there without a byte.
pub(crate) fn made_anew(name: &Path) -> String {
    format!("{} is empty and is replaced", name.display())
}

/// Brings floating-point frames to `to`, and leaves others as they are.
fn floats_to(to: PixelFormat) -> Choose {
    Arc::new(move |format, _| match format.is_float() {
        true => to,
        false => format,
    })
}

impl Output {
    /// Reads an argument. One that is not UTF-8 can only be the name of a file.
    pub(crate) fn from_argument(text: OsString) -> Result<Output, EndpointError> {
        match text.into_string() {
            Ok(text) => text.parse(),
            Err(name) => Ok(Output::named(PathBuf::from(name))),
        }
    }

    /// The output that the name of a file or folder means.
    pub(crate) fn named(path: PathBuf) -> Output {
        match path {
            path if is_y4m(&path) => Output::Y4m(path),
            path if sink::images::is_target(&path) => Output::Images(path),
            path => Output::Video(path),
        }
    }

    /// Refuses encoding options that do not apply to this output.
    pub(crate) fn check(&self, encoding: &EncodingArguments) -> Result<(), Failure> {
        if let Output::Video(path) = self {
            let is_numbered = || matches!(Pattern::parse(path), Ok(Some(_))) && !path.exists();
            if encoding.format.is_none() && is_numbered() {
                return Err(Failure::Usage(format!(
                    "{} has a number in its name, as image files of a sequence have, and would be a video of \
                     that name; name one file, or a kind of image that framepipe writes",
                    path.display()
                )));
            }
            return encoding.check_together();
        }
        if *self == Output::Null && encoding.pixel_format.is_some() && encoding.floats().is_none() {
            return Err(Failure::Usage(
                "--pixel-format is for what is written, and null: keeps nothing; only a floating-point \
                 format, which is what frames are filtered in, goes with it"
                    .to_owned(),
            ));
        }
        let images = matches!(self, Output::Images(_));
        let is_other = |name: &str| !matches!(self, Output::Y4m(_)) || !is_y4m_container(name);
        let says_pictures_alone = *self != Output::Null && encoding.streams == Some(Streams::Video);
        let given = [
            (encoding.encoder.is_some(), "--encoder"),
            (encoding.quality.is_some() && !images, "--quality"),
            (encoding.preset.is_some(), "--preset"),
            (!encoding.encoder_option.is_empty(), "--encoder-option"),
            (encoding.encoder_threads.is_some(), "--encoder-threads"),
            (encoding.format.as_deref().is_some_and(is_other), "--format"),
            (encoding.no_audio, "--no-audio"),
            (encoding.no_subtitles, "--no-subtitles"),
            (encoding.streams.is_some() && !says_pictures_alone, "--streams"),
            (encoding.audio_encoder.is_some(), "--audio-encoder"),
        ];
        match given.into_iter().find_map(|(given, name)| given.then_some(name)) {
            Some(option) => Err(Failure::Usage(format!(
                "{option} is an option of video files; {self} has no encoder"
            ))),
            None => Ok(()),
        }
    }

    /// True if it holds floating-point samples of this format without a conversion, as far as its name says.
    pub(crate) fn holds_floats(&self, format: PixelFormat) -> bool {
        match self {
            Output::Raw(_) => true,
            Output::Images(path) => {
                let kind = sink::images::kind_for(path, &ImageOptions::default());
                path.is_dir() || sink::images::accepts(kind, format)
            }
            Output::Null | Output::Video(_) | Output::Y4m(_) => false,
        }
    }

    /// True for a directory, a pattern or an image file.
    pub(crate) fn is_images(&self) -> bool {
        matches!(self, Output::Images(_))
    }

    /// Leaves out the files whose output exists already. Outputs get their names when they are complete.
    /// `start` numbers the first of all files if they have no numbers. Gives sentences about it.
    pub(super) fn leave_out_existing(
        &self,
        listing: &mut Listing,
        start: Option<i64>,
    ) -> Result<Vec<String>, Failure> {
        let Output::Images(target) = self else {
            return Err(Failure::Usage(
                "--skip-existing goes on with image files; a video is written in one piece".to_owned(),
            ));
        };
        // Refuses a start behind which there is no number for each file.
        Naming::new(target, &options_of(None, start))?;
        // Numbers in the output's names stay the same as without the files left out.
        let names = listing.names();
        let taken = listing.numbers.take();
        let start = start.unwrap_or(0);
        let by_place = (0..listing.files.len() as i64).map(|place| start.saturating_add(place));
        let numbers = taken.unwrap_or_else(|| by_place.collect());
        let files = Files {
            read: listing.files.as_slice().into(),
            paths: names.as_slice().into(),
            numbers: Some(numbers.as_slice().into()),
            places: listing.places.as_slice().into(),
        };
        let naming = Naming::new(target, &files.options(None))?;
        let (mut missing, mut empty) = (Vec::new(), Vec::new());
        for (index, source) in names.iter().enumerate() {
            let (name, _) = naming.name(index as u64, Some(source));
            match Existing::at(&name)? {
                Existing::Whole => {}
                Existing::Empty => {
                    missing.push(index);
                    empty.push(name);
                }
                Existing::Nothing => missing.push(index),
            }
        }
        let mut notes = Vec::new();
        let skipped = names.len() - missing.len();
        if skipped > 0 && !missing.is_empty() {
            let verb = if skipped == 1 { "is" } else { "are" };
            notes.push(format!(
                "{skipped} of {} {verb} skipped: {self} has the output already",
                counted(names.len() as u64, "image file")
            ));
        }
        notes.extend(match empty.as_slice() {
            [] => None,
            [one] => Some(made_anew(one)),
            [first, rest @ ..] => Some(format!(
                "{} and {} more are empty and are replaced",
                first.display(),
                rest.len()
            )),
        });
        listing.numbers = Some(numbers);
        *listing = std::mem::take(listing).picked(&missing);
        Ok(notes)
    }

    /// The folder in which files are created; `None` for standard output and `null:`.
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

    /// True if the files are named by a pattern.
    pub(crate) fn is_pattern(&self) -> bool {
        let Output::Images(target) = self else {
            return false;
        };
        Naming::new(target, &ImageOptions::default()).is_ok_and(|naming| naming.is_numbered())
    }

    /// True if the files' names can have numbers.
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

    /// Device and inode of the file, pipe or socket that frames go to, if it is there already.
    pub(crate) fn written_identity(&self) -> Option<(u64, u64)> {
        match self.is_stdout() {
            true => open_written_identity(io::stdout()),
            false => written_identity(self.path()?),
        }
    }

    /// True if frames go to standard output, by whichever name.
    pub(crate) fn leads_to_stdout(&self) -> bool {
        let is_same = |id| open_written_identity(io::stdout()) == Some(id);
        self.is_stdout() || self.written_identity().is_some_and(is_same)
    }

    /// What is left of a run that was abandoned when it had written `frames`: whole image files, and what a
    /// pipe or device was given, in words.
    pub(crate) fn abandoned_after(&self, frames: u64) -> String {
        let is_special = |path: &Path| self.is_stdout() || path.exists() && !path.is_file();
        match self {
            Output::Images(_) if frames > 0 => {
                let verb = if frames == 1 { "was" } else { "were" };
                format!("abandoned: {} {verb} written to {self}", counted(frames, "file"))
            }
            Output::Y4m(path) | Output::Raw(path) | Output::Video(path) if frames > 0 && is_special(path) => {
                format!(
                    "abandoned: {self} is cut short after {}",
                    counted(frames, "frame")
                )
            }
            _ => "abandoned: no output was written".to_owned(),
        }
    }

    /// The same as a video file, or as YUV4MPEG2, if the user chose a container, whatever the name ends in.
    pub(crate) fn with_container(self, container: Option<&str>) -> Output {
        match (self, container) {
            (Output::Images(path) | Output::Y4m(path) | Output::Video(path), Some(name))
                if is_y4m_container(name) =>
            {
                Output::Y4m(path)
            }
            (Output::Images(path) | Output::Y4m(path), Some(_)) if path != Path::new(PIPE) => {
                Output::Video(path)
            }
            (output, _) => output,
        }
    }

    /// Creates the sink for the source's stream, behind the conversions that its frames need. `start` numbers
    /// the first file of a pattern if the source's frames have no numbers.
    pub(crate) fn open(
        &self,
        info: &StreamInfo,
        encoding: &EncodingArguments,
        strict: bool,
        files: Option<Files>,
        start: Option<i64>,
    ) -> Result<AnySink, Failure> {
        let stream = |info| Stream {
            info,
            encoding,
            strict,
        };
        match encoding.background {
            None => self.open_held(&stream(info), files, start),
            // Nothing is laid over anything; image files may differ.
            Some(_)
                if info.uniform && !info.format.has_alpha() && info.format.model() != ColourModel::Data =>
            {
                self.open_held(&stream(info), files, start)
            }
            Some(background) => {
                let after = sink::flatten::info_after(info);
                let inner = self.open_held(&stream(&after), files, start)?;
                Ok(sink::flatten::flattening(inner, self.to_string(), background))
            }
        }
    }

    /// The video alone, for the frames that the sink of `open` gets behind its conversions.
    pub(crate) fn video_behind_conversions(
        path: &Path,
        info: &StreamInfo,
        encoding: &EncodingArguments,
        strict: bool,
    ) -> Result<VideoSink, Failure> {
        let stream = Stream {
            info,
            encoding,
            strict,
        };
        let after = match info.format.is_float() || encoding.floats().is_some() {
            true => info_after(info, &floats_to(Self::integers(path, &stream)?)),
            false => info.clone(),
        };
        Ok(encoding.video_sink(path, &after, strict)?)
    }

    /// Creates the sink for the source's stream, behind a conversion if it cannot hold the stream's pixel
    /// format.
    fn open_held(
        &self,
        stream: &Stream<'_>,
        files: Option<Files>,
        start: Option<i64>,
    ) -> Result<AnySink, Failure> {
        let encoding = stream.encoding;
        if let Some(still) = self.as_still(stream) {
            return still.open_held(stream, files, start);
        }
        match self {
            Output::Null => Ok(AnySink::Stream(sink::null::create())),
            Output::Video(path) if stream.info.format.is_float() || encoding.floats().is_some() => {
                self.float_video_sink(path, stream)
            }
            Output::Video(path) => {
                let are_several = files.is_some_and(|files| files.paths.len() > 1);
                self.video_sink(path, stream, are_several)
            }
            Output::Y4m(path) => self.y4m_sink(path, stream),
            Output::Raw(path) => self.raw_sink(path, stream),
            Output::Images(path) => {
                let mut options = options_of(files.as_ref(), start);
                options.shares_folder = encoding.is_part;
                options.overwrite = encoding.overwrite;
                options.replaces_empty = encoding.replaces_empty;
                options.strict = stream.strict;
                options.pictures_alone = stream.rules(path).pictures_alone;
                options.trial = encoding.is_trial;
                self.image_sink(path, stream, options)
            }
        }
    }

    /// The file of a still for a WebP video of a single picture. Options of encoders choose the video.
    fn as_still(&self, stream: &Stream<'_>) -> Option<Output> {
        let Output::Video(path) = self else {
            return None;
        };
        let is_still = stream.info.is_single
            && stream.encoding.quality.is_none()
            && ImageKind::of(path) == Some(ImageKind::WebP);
        let still = is_still.then(|| Output::Images(path.clone()))?;
        still.check(stream.encoding).is_ok().then_some(still)
    }

    /// What floating-point frames become for a video: the nearest that its encoder takes.
    fn integers(path: &Path, stream: &Stream<'_>) -> Result<PixelFormat, Failure> {
        let (info, encoding) = (stream.info, stream.encoding);
        // A format without a conversion is refused by the conversion itself.
        let whole = integers_for(info.format).unwrap_or(PixelFormat::RGB48);
        let asked = encoding.video_sink(path, &info_after(info, &floats_to(whole)), stream.strict)?;
        let is_open = encoding.pixel_format.is_none() || encoding.floats().is_some();
        let floats = asked.nearest_floats(info.format).filter(|_| is_open);
        // It has a temporary file, as the sink that is used will have.
        drop(asked);
        Ok(floats.unwrap_or(whole))
    }

    /// A video of floating-point frames, or one whose pixel format the user chose to be such.
    fn float_video_sink(&self, path: &Path, stream: &Stream<'_>) -> Result<AnySink, Failure> {
        self.converted(stream, floats_to(Self::integers(path, stream)?), |after| {
            let sink = stream.encoding.open_video(path, after, stream.strict)?;
            Ok(AnySink::Stream(sink))
        })
    }

    /// A video. Several image files may differ in format; a format that the user chose unites them.
    fn video_sink(&self, path: &Path, stream: &Stream<'_>, are_several: bool) -> Result<AnySink, Failure> {
        let open = |info: &StreamInfo| {
            let sink = stream.encoding.open_video(path, info, stream.strict)?;
            Ok(AnySink::Stream(sink))
        };
        match stream.encoding.native_pixel_format().ok().flatten() {
            Some(wanted) if are_several => self.converted(stream, Arc::new(move |_, _| wanted), open),
            _ => open(stream.info),
        }
    }

    fn y4m_sink(&self, path: &Path, stream: &Stream<'_>) -> Result<AnySink, Failure> {
        let wanted = self.wanted(stream.encoding, sink::y4m::accepts)?;
        let choose: Choose = Arc::new(move |format, _| wanted.unwrap_or_else(|| sink::y4m::nearest(format)));
        self.converted(stream, choose, |after| {
            Ok(AnySink::Stream(sink::y4m::create(
                path,
                after,
                stream.rules(path),
            )?))
        })
    }

    fn raw_sink(&self, path: &Path, stream: &Stream<'_>) -> Result<AnySink, Failure> {
        let wanted = self.wanted(stream.encoding, |_| true)?;
        let choose: Choose = Arc::new(move |format, _| wanted.unwrap_or(format));
        self.converted(stream, choose, |after| {
            Ok(AnySink::Stream(sink::raw::create(
                path,
                after,
                stream.rules(path),
            )?))
        })
    }

    fn image_sink(
        &self,
        path: &Path,
        stream: &Stream<'_>,
        mut options: ImageOptions,
    ) -> Result<AnySink, Failure> {
        let encoding = stream.encoding;
        let kind = sink::images::kind_for(path, &options);
        let wanted = self.wanted(encoding, |format| sink::images::accepts(kind, format))?;
        // In a folder each file may be of another kind.
        let naming = Naming::new(path, &options).ok();
        let of_file = {
            let naming = naming.clone();
            move |file: Option<&Path>| {
                let both = naming.as_ref().zip(file);
                both.map_or(kind, |(naming, file)| naming.name(0, Some(file)).1)
            }
        };
        if encoding.quality.is_some() {
            let sources = options.sources.as_deref().unwrap_or_default();
            let is_jpeg = |file| naming.is_some() && of_file(Some(file)) == ImageKind::Jpeg;
            if kind != ImageKind::Jpeg && !sources.iter().any(|file| is_jpeg(file)) {
                return Err(Failure::Usage(format!(
                    "--quality is an option of video files and of JPEG files; {kind} files have none"
                )));
            }
        }
        if let Some(quality) = encoding.jpeg_quality()? {
            options.jpeg_quality = quality;
        }
        let kind_of = of_file.clone();
        let choose: Choose = Arc::new(move |format, file| {
            // A format without a conversion is refused by the sink itself.
            wanted
                .or_else(|| sink::images::nearest(kind_of(file), format))
                .unwrap_or(format)
        });
        let holds = move |format, file: Option<&Path>| {
            wanted.is_none() && sink::images::holds_opaque(of_file(file), format)
        };
        let flat = holds(stream.info.format, None).then(|| sink::flatten::info_after(stream.info));
        let stream = Stream {
            info: flat.as_ref().unwrap_or(stream.info),
            ..*stream
        };
        let sink = self.converted(&stream, choose, |after| {
            Ok(AnySink::Indexed(sink::images::create(path, after, &options)?))
        })?;
        Ok(sink::flatten::opaque(sink, self.to_string(), Box::new(holds)))
    }

    /// Creates the sink for frames in the formats that `choose` gives, behind that conversion.
    fn converted(
        &self,
        stream: &Stream<'_>,
        choose: Choose,
        create: impl FnOnce(&StreamInfo) -> Result<AnySink, Failure>,
    ) -> Result<AnySink, Failure> {
        let sink = create(&info_after(stream.info, &choose))?;
        let name = self.to_string();
        Ok(converting(sink, name, stream.info, choose, stream.strict))
    }

    /// The pixel format that the user asked for; an error if the output cannot hold it.
    fn wanted(
        &self,
        encoding: &EncodingArguments,
        accepts: impl Fn(PixelFormat) -> bool,
    ) -> Result<Option<PixelFormat>, Failure> {
        let wanted = encoding.native_pixel_format()?;
        match wanted {
            // Frames are filtered in this format and then converted to one that the output holds.
            Some(format) if format.is_float() && !accepts(format) => Ok(None),
            Some(format) if !accepts(format) => {
                let held: Vec<&str> = PixelFormat::all()
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
