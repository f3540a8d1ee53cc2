//! Frames as image files, encoded by as many threads as the pipeline likes, each file complete before it has its name.

use super::ledger::{Outcome, PlainLedger, stated};
use super::part::PartFile;
use super::{IndexedSink, Rules, SinkError, Written};
use crate::frame::fact::{Fact, Samples};
use crate::frame::{Channel, ColourModel, Frame, PixelFormat, Range, Turn};
use crate::source::StreamInfo;
use crate::source::pattern::Pattern;
use image::codecs::bmp::BmpEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tiff::encoder::colortype::{Gray8, Gray16, RGB8, RGB16, RGBA8, RGBA16};
use tiff::encoder::{TiffEncoder, TiffValue};
use tiff::tags::{Tag, Type};

/// A kind of image file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// PNG: gray and RGB, with or without alpha, 8 and 16 bits.
    Png,
    /// JPEG, lossy: gray and RGB, 8 bits.
    Jpeg,
    /// TIFF, uncompressed: gray, RGB and RGBA, 8 and 16 bits.
    Tiff,
    /// BMP: gray, RGB and RGBA, 8 bits.
    Bmp,
    /// WebP, lossless: gray and RGB, with or without alpha, 8 bits.
    WebP,
    /// PGM, PPM or PAM, by the colours: gray and RGB, with or without alpha, 8 and 16 bits.
    Pnm,
    /// PGM: gray, 8 and 16 bits.
    Pgm,
    /// PPM: RGB, 8 and 16 bits.
    Ppm,
}

/// A word that names no kind of image file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no kind of image that framepipe writes; use png, jpg, tif, bmp, webp, pnm, pam, pgm or ppm"
)]
pub struct UnknownImageKind(pub String);

impl FromStr for ImageKind {
    type Err = UnknownImageKind;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(match word.to_ascii_lowercase().as_str() {
            "png" => ImageKind::Png,
            "jpg" | "jpeg" => ImageKind::Jpeg,
            "tif" | "tiff" => ImageKind::Tiff,
            "bmp" => ImageKind::Bmp,
            "webp" => ImageKind::WebP,
            "pnm" | "pam" => ImageKind::Pnm,
            "pgm" => ImageKind::Pgm,
            "ppm" => ImageKind::Ppm,
            _ => return Err(UnknownImageKind(word.to_owned())),
        })
    }
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageKind::Png => "PNG",
            ImageKind::Jpeg => "JPEG",
            ImageKind::Tiff => "TIFF",
            ImageKind::Bmp => "BMP",
            ImageKind::WebP => "WebP",
            ImageKind::Pnm => "PNM",
            ImageKind::Pgm => "PGM",
            ImageKind::Ppm => "PPM",
        })
    }
}

impl ImageKind {
    /// The kind that a file name's extension stands for.
    pub fn of(path: &Path) -> Option<ImageKind> {
        path.extension().and_then(OsStr::to_str)?.parse().ok()
    }

    /// The extension that files of this kind are given.
    pub fn extension(self) -> &'static str {
        match self {
            ImageKind::Png => "png",
            ImageKind::Jpeg => "jpg",
            ImageKind::Tiff => "tif",
            ImageKind::Bmp => "bmp",
            ImageKind::WebP => "webp",
            ImageKind::Pnm => "pnm",
            ImageKind::Pgm => "pgm",
            ImageKind::Ppm => "ppm",
        }
    }

    /// What is stored for samples of such colours; `None` if the kind cannot hold them.
    fn stored(self, gray: bool, alpha: bool, deep: bool) -> Option<Stored> {
        use ImageKind::{Bmp, Jpeg, Pgm, Png, Pnm, Ppm, Tiff, WebP};
        if deep && !matches!(self, Png | Tiff | Pnm | Pgm | Ppm) {
            return None;
        }
        let channels = match (self, gray, alpha) {
            (Ppm, true, false) => RGB,
            (Pgm, false, _) | (Pgm | Ppm | Jpeg, _, true) => return None,
            // Neither has gray with alpha: the gray goes to all three.
            (Tiff | Bmp, _, true) => RGBA,
            (Png | WebP | Pnm, true, true) => LA,
            (_, true, false) => L,
            (_, false, false) => RGB,
            (_, false, true) => RGBA,
        };
        Some(Stored { channels, deep })
    }
}

const L: &[Channel] = &[Channel::Luma];
const LA: &[Channel] = &[Channel::Luma, Channel::Alpha];
const RGB: &[Channel] = &[Channel::Red, Channel::Green, Channel::Blue];
const RGBA: &[Channel] = &[Channel::Red, Channel::Green, Channel::Blue, Channel::Alpha];

/// The samples of a file: which, in order, and whether of 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stored {
    channels: &'static [Channel],
    deep: bool,
}

impl Stored {
    fn color_type(self) -> ExtendedColorType {
        match (self.channels.len(), self.deep) {
            (1, false) => ExtendedColorType::L8,
            (2, false) => ExtendedColorType::La8,
            (3, false) => ExtendedColorType::Rgb8,
            (_, false) => ExtendedColorType::Rgba8,
            (1, true) => ExtendedColorType::L16,
            (2, true) => ExtendedColorType::La16,
            (3, true) => ExtendedColorType::Rgb16,
            (_, true) => ExtendedColorType::Rgba16,
        }
    }
}

/// What is stored for frames of `format`; `None` if they must be converted first or cannot be held.
fn stored(kind: ImageKind, format: PixelFormat) -> Option<Stored> {
    if format.model() == ColourModel::Yuv {
        return None;
    }
    kind.stored(
        format.model() == ColourModel::Gray,
        format.has_alpha(),
        format.depth() > 8,
    )
}

/// True if frames of `format` are written to files of `kind` as they are: components reordered and 9 to 14 bits scaled to 16
/// at most, so that nothing is lost.
pub fn accepts(kind: ImageKind, format: PixelFormat) -> bool {
    stored(kind, format).is_some()
}

/// The format that a converter should make of `format` before it is written to files of `kind`: itself if it is accepted, RGB
/// of 8 or 16 bits for YUV; `None` if the kind cannot hold it without loss (deep samples or alpha in a JPEG).
pub fn nearest(kind: ImageKind, format: PixelFormat) -> Option<PixelFormat> {
    if accepts(kind, format) {
        return Some(format);
    }
    if format.model() != ColourModel::Yuv {
        return None;
    }
    let name = match (format.has_alpha(), format.depth() > 8) {
        (false, false) => "rgb24",
        (true, false) => "rgba",
        (false, true) => "rgb48le",
        (true, true) => "rgba64le",
    };
    PixelFormat::from_name(name).filter(|&f| accepts(kind, f))
}

/// How image files are named and encoded.
#[derive(Debug, Clone)]
pub struct ImageOptions {
    /// The kind of file; by default what the target's extension says, else what the source's files are, else PNG.
    pub kind: Option<ImageKind>,
    /// JPEG quality, 1 to 100.
    pub jpeg_quality: u8,
    /// PNG compression, 0 (none) to 9 (smallest); `None` for a fast one that packs well.
    pub png_level: Option<u8>,
    /// The number of the first frame in names that are made from numbers.
    pub start: u64,
    /// Replace existing files.
    pub overwrite: bool,
    /// Fail where a fact about the pictures would be lost.
    pub strict: bool,
    /// The files that the frames come from, if known: names in a directory follow theirs, and clashes are found beforehand.
    pub sources: Option<Arc<[PathBuf]>>,
}

impl Default for ImageOptions {
    fn default() -> Self {
        ImageOptions {
            kind: None,
            jpeg_quality: 90,
            png_level: None,
            start: 0,
            overwrite: false,
            strict: false,
            sources: None,
        }
    }
}

/// True if `target` is to be written as images: a numbered pattern, a name with an image's extension, an existing directory, or a
/// name that ends in a slash or has no extension.
pub fn is_target(target: &Path) -> bool {
    target.is_dir()
        || target.as_os_str().as_encoded_bytes().ends_with(b"/")
        || ImageKind::of(target).is_some()
        || target.extension().is_none() && !target.exists()
}

/// The kind of file that [`create`] would write to `target`, so that frames can be converted for it.
pub fn kind_for(target: &Path, options: &ImageOptions) -> ImageKind {
    let by_source = || {
        let first = options.sources.as_ref().and_then(|s| s.first())?;
        ImageKind::of(first)
    };
    let by_target = || ImageKind::of(target).filter(|_| !target.is_dir());
    options
        .kind
        .or_else(by_target)
        .or_else(by_source)
        .unwrap_or(ImageKind::Png)
}

#[derive(Debug)]
enum Target {
    Single(PathBuf),
    Numbered(Pattern),
    Directory(PathBuf),
}

/// Writes frames as image files: to a single file (one frame), a numbered pattern (`out/%05d.png`), or a directory, where files are named after
/// the frames' own files, or else `000000.png` and so on. A directory that is missing is made, a pattern's too.
///
/// Existing files, names that clash and formats that cannot be held are refused here, before anything is written, as far as the
/// frames are known.
pub fn create(
    target: &Path,
    info: &StreamInfo,
    options: &ImageOptions,
) -> Result<Arc<dyn IndexedSink>, SinkError> {
    let refuse = |problem: String| SinkError::Unsupported {
        path: target.display().to_string(),
        problem,
    };
    if let Some(level) = options.png_level.filter(|&l| l > 9) {
        return Err(refuse(format!(
            "PNG compression {level} is out of range; use 0 to 9"
        )));
    }
    if !(1..=100).contains(&options.jpeg_quality) {
        return Err(refuse(format!(
            "JPEG quality {} is out of range; use 1 to 100",
            options.jpeg_quality
        )));
    }
    let kind = kind_for(target, options);
    let pattern = Pattern::parse(target).map_err(|e| refuse(e.to_string()))?;
    let is_directory = target.is_dir() || target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let place = match pattern {
        Some(pattern) if !is_directory => Target::Numbered(pattern),
        _ if is_directory || target.extension().is_none() && !target.exists() => {
            Target::Directory(target.to_owned())
        }
        _ => Target::Single(target.to_owned()),
    };
    if !matches!(place, Target::Directory(_)) && options.kind.is_none() && ImageKind::of(target).is_none() {
        return Err(refuse(
            "has no extension of an image that framepipe writes (png, jpg, tif, bmp, webp, pnm, pam, pgm, ppm); give one, or --format"
                .to_owned(),
        ));
    }
    if !accepts(kind, info.format) && options.sources.is_none() {
        return Err(refuse(cannot_hold(kind, info.format)));
    }
    let rules = Rules {
        overwrite: options.overwrite,
        strict: options.strict,
    };
    let account = format!("{} ({kind} files)", target.display());
    let images = Images {
        label: target.display().to_string(),
        ledger: Mutex::new(PlainLedger::new(account, ADVICE, rules, info)),
        place,
        fixed: options
            .kind
            .or_else(|| ImageKind::of(target).filter(|_| !is_directory)),
        kind,
        options: options.clone(),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        shared: Mutex::default(),
    };
    images.look_ahead(info)?;
    let folder = match &images.place {
        Target::Directory(folder) => Some(folder.clone()),
        Target::Numbered(pattern) => pattern.name(0).parent().map(Path::to_owned),
        Target::Single(_) => None,
    };
    if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|cause| SinkError::Io {
            path: images.label.clone(),
            cause,
        })?;
    }
    Ok(Arc::new(images))
}

fn cannot_hold(kind: ImageKind, format: PixelFormat) -> String {
    match nearest(kind, format) {
        Some(near) => format!(
            "{kind} cannot hold {format} frames; convert them to {near} first (--pixel-format {near})"
        ),
        None => format!(
            "{kind} cannot hold {format} frames without losing {}; write PNG or TIFF",
            match (format.depth() > 8, format.has_alpha()) {
                (true, true) => "depth and alpha",
                (true, false) => "depth",
                (false, true) => "alpha",
                (false, false) => "colour",
            }
        ),
    }
}

struct Images {
    label: String,
    place: Target,
    /// The kind of every file, if the user chose it; else each follows its frame's own file.
    fixed: Option<ImageKind>,
    kind: ImageKind,
    options: ImageOptions,
    files: AtomicU64,
    bytes: AtomicU64,
    shared: Mutex<Shared>,
    ledger: Mutex<PlainLedger>,
}

/// What to do about facts that are lost.
const ADVICE: &str = "write a video such as .mkv to keep it, or bring the colours to what pictures without a word are taken for (bt709 or sRGB)";

#[derive(Default)]
struct Shared {
    /// Names given so far in a directory, where two source files may want the same.
    names: HashSet<PathBuf>,
    warnings: BTreeSet<String>,
    /// The only file of a single-file target: put in its place at the end, when it is known to be the only one.
    single: Option<PartFile>,
}

impl Images {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kind_of(&self, source: Option<&Path>) -> ImageKind {
        match (self.fixed, source) {
            (Some(kind), _) => kind,
            // A bitmap's gray needs the next larger kind.
            (None, Some(file)) if file.extension().is_some_and(|e| e.eq_ignore_ascii_case("pbm")) => {
                ImageKind::Pgm
            }
            (None, Some(file)) => ImageKind::of(file).unwrap_or(self.kind),
            (None, None) => self.kind,
        }
    }

    /// The name and kind of frame `sequence`'s file.
    fn name(&self, sequence: u64, source: Option<&Path>) -> (PathBuf, ImageKind) {
        let number = self.options.start.saturating_add(sequence);
        match &self.place {
            Target::Single(path) => (path.clone(), self.kind),
            Target::Numbered(pattern) => (pattern.name(number), self.kind),
            Target::Directory(folder) => {
                let kind = self.kind_of(source);
                let path = match source.and_then(|file| Some((file, file.file_stem()?))) {
                    Some((file, stem)) => {
                        let mut name = stem.to_owned();
                        name.push(".");
                        // The file's own way of writing the extension stays where the kind does.
                        match file.extension() {
                            Some(own) if ImageKind::of(file) == Some(kind) => name.push(own),
                            _ => name.push(kind.extension()),
                        }
                        folder.join(name)
                    }
                    None => folder.join(format!("{number:06}.{}", kind.extension())),
                };
                (path, kind)
            }
        }
    }

    fn several(&self) -> SinkError {
        SinkError::Unsupported {
            path: self.label.clone(),
            problem: format!(
                "is one image file, and there is more than one frame; write to a directory or to a numbered pattern such as out-%05d.png{}",
                match ImageKind::of(Path::new(&self.label)) {
                    Some(ImageKind::Png) => ", or an animation to a file that ends in .apng",
                    _ => "",
                }
            ),
        }
    }

    fn clash(&self, path: &Path) -> SinkError {
        SinkError::Unsupported {
            path: path.display().to_string(),
            problem:
                "two frames' files would get this name; write to a numbered pattern such as out-%05d.png"
                    .to_owned(),
        }
    }

    /// Refuses what can be known to fail before the first frame.
    fn look_ahead(&self, info: &StreamInfo) -> Result<(), SinkError> {
        let sources = self.options.sources.as_deref();
        let count = sources.map(|s| s.len() as u64).or(info.frames);
        if matches!(self.place, Target::Single(_)) {
            if count.is_some_and(|c| c > 1) {
                return Err(self.several());
            }
            // A device, such as /dev/null, is written whatever is there.
            if let Target::Single(path) = &self.place
                && path.is_file()
                && !self.options.overwrite
            {
                return Err(SinkError::Exists {
                    path: self.label.clone(),
                });
            }
            return Ok(());
        }
        let mut names = HashSet::new();
        for sequence in 0..count.unwrap_or(1) {
            let source = sources.map(|s| s[sequence as usize].as_path());
            let (path, _) = self.name(sequence, source);
            if path.exists() && !self.options.overwrite {
                return Err(SinkError::Exists {
                    path: path.display().to_string(),
                });
            }
            if source.is_some() && matches!(self.place, Target::Directory(_)) && !names.insert(path.clone()) {
                return Err(self.clash(&path));
            }
        }
        Ok(())
    }

    /// Accounts for what the frame says, and turns it as its stream is to be shown: viewers of stills are told nothing of streams.
    fn settle(&self, frame: Frame) -> Result<Frame, SinkError> {
        let unsupported = |problem| SinkError::Unsupported {
            path: self.label.clone(),
            problem,
        };
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = frame.metadata.clone();
        // Both are the files' own business: see `orientation` and `icc`.
        own.orientation = None;
        own.icc_profile = None;
        let metadata = stated(&own, ledger.info());
        let rotation = metadata.side_data.iter().find(|b| b.fact == Fact::Rotation);
        let turn = rotation
            .and_then(|block| Turn::from_matrix(&block.data))
            .filter(|turn| !turn.is_upright() && turn.fits(frame.format()));
        let samples = Samples::of(frame.format(), frame.layout().height());
        ledger
            .see_alone(&metadata, samples, |fact, value, _| match (fact, turn) {
                (Fact::Rotation, Some(_)) => Outcome::Converted(format!("pictures turned: {value}")),
                (Fact::Rotation, None) => Outcome::Lost,
                // Gray of limited range has a warning of its own.
                (Fact::Range, _) => Outcome::Carried,
                _ => Outcome::Lost,
            })
            .map_err(unsupported)?;
        drop(ledger);
        match turn {
            Some(turn) => turn.apply(&frame).map_err(|e| unsupported(e.to_string())),
            None => Ok(frame),
        }
    }

    fn encode(&self, frame: &Frame, kind: ImageKind, part: &PartFile) -> Result<(), SinkError> {
        let unsupported = |problem| SinkError::Unsupported {
            path: part.label().to_owned(),
            problem,
        };
        let stored =
            stored(kind, frame.format()).ok_or_else(|| unsupported(cannot_hold(kind, frame.format())))?;
        let (Ok(width), Ok(height)) = (
            u32::try_from(frame.layout().width()),
            u32::try_from(frame.layout().height()),
        ) else {
            return Err(unsupported(format!("{kind} cannot hold a picture of this size")));
        };
        if kind == ImageKind::Jpeg && width.max(height) > 65535
            || kind == ImageKind::WebP && width.max(height) > 16384
        {
            return Err(unsupported(format!(
                "{kind} cannot hold {width}x{height} pixels; write PNG or TIFF"
            )));
        }
        let picture = Picture {
            pixels: pixels(frame, stored),
            width,
            height,
            stored,
            icc: self.icc(frame, kind, stored),
            orientation: self.orientation(frame, kind),
        };
        if frame.format().model() == ColourModel::Gray && frame.metadata.colour.range == Range::Limited {
            self.warn(
                "image files are full range: gray of limited range was written as it is, black at 16"
                    .to_owned(),
            );
        }
        picture
            .encode(kind, &self.options, part.file())
            .map_err(|e| match e {
                ImageError::IoError(cause) => part.failed(cause),
                e => unsupported(format!("the {kind} encoder refused the picture: {e}")),
            })
    }

    fn warn(&self, warning: String) {
        self.shared().warnings.insert(warning);
    }

    /// The frame's colour profile, if the file can hold it and it is one for the file's colours.
    fn icc(&self, frame: &Frame, kind: ImageKind, stored: Stored) -> Option<Arc<[u8]>> {
        let profile = frame.metadata.icc_profile.clone()?;
        if matches!(
            kind,
            ImageKind::Bmp | ImageKind::Pnm | ImageKind::Pgm | ImageKind::Ppm
        ) {
            self.warn(format!(
                "{kind} cannot hold a colour (ICC) profile; it was dropped"
            ));
            return None;
        }
        let space: &[u8] = if stored.channels.len() < 3 {
            b"GRAY"
        } else {
            b"RGB "
        };
        if profile.get(16..20) != Some(space) {
            self.warn(format!(
                "a colour (ICC) profile was dropped: it is for {}, but the pixels are {}",
                String::from_utf8_lossy(profile.get(16..20).unwrap_or(b"nothing")).trim(),
                String::from_utf8_lossy(space).trim()
            ));
            return None;
        }
        Some(profile)
    }

    fn orientation(&self, frame: &Frame, kind: ImageKind) -> Option<u8> {
        let orientation = frame.metadata.orientation.filter(|o| (2..=8).contains(o))?;
        if matches!(
            kind,
            ImageKind::Bmp | ImageKind::Pnm | ImageKind::Pgm | ImageKind::Ppm
        ) {
            self.warn(format!(
                "{kind} cannot hold the orientation; pictures to be shown turned or mirrored will be shown as they are stored"
            ));
            return None;
        }
        Some(orientation)
    }
}

impl IndexedSink for Images {
    fn write(&self, frame: Frame) -> Result<(), SinkError> {
        let single = matches!(self.place, Target::Single(_));
        if single && frame.sequence > 0 {
            return Err(self.several());
        }
        let frame = self.settle(frame)?;
        let source = frame.metadata.file.as_ref().map(|f| f.as_path());
        let (path, kind) = self.name(frame.sequence, source);
        if source.is_some()
            && matches!(self.place, Target::Directory(_))
            && !self.shared().names.insert(path.clone())
        {
            return Err(self.clash(&path));
        }
        let part = PartFile::create(&path, self.options.overwrite)?;
        self.encode(&frame, kind, &part)?;
        let length = part.file().metadata().map_err(|e| part.failed(e))?.len();
        if single {
            self.shared().single = Some(part);
        } else {
            part.commit()?;
        }
        self.bytes.fetch_add(length, Ordering::Relaxed);
        self.files.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&self) -> Result<Written, SinkError> {
        let mut shared = self.shared();
        if let Some(part) = shared.single.take() {
            part.commit()?;
        }
        let files = self.files.load(Ordering::Relaxed);
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let mut warnings: Vec<String> = std::mem::take(&mut shared.warnings).into_iter().collect();
        warnings.append(&mut ledger.sentences());
        Ok(Written {
            description: format!(
                "{files} {} image {} to {}{}",
                self.kind,
                if files == 1 { "file" } else { "files" },
                self.label,
                ledger.notes()
            ),
            bytes: Some(self.bytes.load(Ordering::Relaxed)),
            warnings,
            closed_early: false,
        })
    }
}

/// Pixels as a file stores them, and what is said about them.
struct Picture<'a> {
    pixels: Cow<'a, [u8]>,
    width: u32,
    height: u32,
    stored: Stored,
    icc: Option<Arc<[u8]>>,
    orientation: Option<u8>,
}

impl Picture<'_> {
    fn encode(&self, kind: ImageKind, options: &ImageOptions, file: &File) -> Result<(), ImageError> {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        match kind {
            ImageKind::Png => {
                let compression = match options.png_level {
                    None => CompressionType::Fast,
                    Some(level) => CompressionType::Level(level),
                };
                self.annotated(PngEncoder::new_with_quality(
                    &mut out,
                    compression,
                    FilterType::Adaptive,
                ))?;
            }
            ImageKind::Jpeg => {
                self.annotated(JpegEncoder::new_with_quality(&mut out, options.jpeg_quality))?;
            }
            ImageKind::WebP => self.annotated(WebPEncoder::new_lossless(&mut out))?,
            ImageKind::Bmp => BmpEncoder::new(&mut out).write_image(
                &self.pixels,
                self.width,
                self.height,
                self.stored.color_type(),
            )?,
            ImageKind::Tiff => self.tiff(&mut out).map_err(|e| match e {
                tiff::TiffError::IoError(e) => ImageError::IoError(e),
                e => ImageError::IoError(io::Error::other(e)),
            })?,
            ImageKind::Pnm | ImageKind::Pgm | ImageKind::Ppm => self.netpbm(&mut out)?,
        }
        // Encoders that finish when they are dropped lose the error of their last write; the flush meets it again.
        out.flush()?;
        Ok(())
    }

    fn annotated(&self, mut encoder: impl ImageEncoder) -> Result<(), ImageError> {
        if let Some(profile) = &self.icc {
            encoder
                .set_icc_profile(profile.to_vec())
                .map_err(ImageError::Unsupported)?;
        }
        if let Some(orientation) = self.orientation {
            encoder
                .set_exif_metadata(exif(orientation))
                .map_err(ImageError::Unsupported)?;
        }
        encoder.write_image(&self.pixels, self.width, self.height, self.stored.color_type())
    }

    /// With the crate below the image crate's own encoder, which has no orientation.
    fn tiff(&self, out: &mut (impl Write + io::Seek)) -> Result<(), tiff::TiffError> {
        let mut encoder = TiffEncoder::new(out)?;
        let samples = || -> Vec<u16> {
            self.pixels
                .chunks_exact(2)
                .map(|b| u16::from_le_bytes([b[0], b[1]]))
                .collect()
        };
        macro_rules! write {
            ($color:ty, $data:expr) => {{
                let mut image = encoder.new_image::<$color>(self.width, self.height)?;
                if let Some(profile) = &self.icc {
                    image
                        .encoder()
                        .write_tag(Tag::IccProfile, Profile(profile))?;
                }
                if let Some(orientation) = self.orientation {
                    image
                        .encoder()
                        .write_tag(Tag::Orientation, u16::from(orientation))?;
                }
                image.write_data($data)
            }};
        }
        match (self.stored.channels.len(), self.stored.deep) {
            (1, false) => write!(Gray8, &self.pixels),
            (3, false) => write!(RGB8, &self.pixels),
            (_, false) => write!(RGBA8, &self.pixels),
            (1, true) => write!(Gray16, &samples()),
            (3, true) => write!(RGB16, &samples()),
            (_, true) => write!(RGBA16, &samples()),
        }
    }

    /// Written by hand: the image crate writes 16-bit gray and RGB as PAM only.
    fn netpbm(&self, out: &mut impl Write) -> io::Result<()> {
        let (width, height) = (self.width, self.height);
        let max = if self.stored.deep { 65535 } else { 255 };
        match self.stored.channels.len() {
            1 => write!(out, "P5\n{width} {height}\n{max}\n")?,
            3 => write!(out, "P6\n{width} {height}\n{max}\n")?,
            depth => {
                let kind = if depth == 2 {
                    "GRAYSCALE_ALPHA"
                } else {
                    "RGB_ALPHA"
                };
                write!(
                    out,
                    "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {max}\nTUPLTYPE {kind}\nENDHDR\n"
                )?;
            }
        }
        if !self.stored.deep {
            return out.write_all(&self.pixels);
        }
        let mut swapped = Vec::new();
        for block in self.pixels.chunks(1 << 16) {
            swapped.clear();
            swapped.extend(block.chunks_exact(2).flat_map(|b| [b[1], b[0]]));
            out.write_all(&swapped)?;
        }
        Ok(())
    }
}

/// A colour profile as a TIFF tag of the type that its specification asks for.
struct Profile<'a>(&'a [u8]);

impl TiffValue for Profile<'_> {
    const BYTE_LEN: u8 = 1;
    const FIELD_TYPE: Type = Type::UNDEFINED;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.0)
    }
}

/// The smallest Exif block: one directory with one entry, the orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut block = b"II*\0\x08\0\0\0\x01\0".to_vec();
    // Tag 0x0112, type 3 (16 bits), one value, the value, padding; then no further directory.
    block.extend_from_slice(&[0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0]);
    block
}

/// The frame's samples, interleaved and ordered as the file stores them; borrowed where they lie so already.
fn pixels(frame: &Frame, stored: Stored) -> Cow<'_, [u8]> {
    let (layout, format) = (frame.layout(), frame.format());
    let planes = format.planes();
    if planes.len() == 1
        && planes[0].channels == stored.channels
        && matches!(format.depth(), 8 | 16)
        && layout.is_tight()
    {
        return Cow::Borrowed(frame.bytes());
    }
    let bytes = format.bytes_per_sample();
    let row_bytes = layout.width() * stored.channels.len() * bytes;
    let mut pixels = vec![0_u8; row_bytes * layout.height()];
    let max = format.max_value();
    // Exact at both ends and invertible in between.
    let scale: Vec<u16> = match format.depth() {
        8 | 16 => Vec::new(),
        _ => (0..=max).map(|v| ((v * 65535 + max / 2) / max) as u16).collect(),
    };
    for (slot, &channel) in stored.channels.iter().enumerate() {
        let wanted = |c: &Channel| {
            *c == channel
                || format.model() == ColourModel::Gray && channel != Channel::Alpha && *c == Channel::Luma
        };
        let Some((plane, offset)) = planes
            .iter()
            .enumerate()
            .find_map(|(i, p)| Some((i, p.channels.iter().position(wanted)?)))
        else {
            continue;
        };
        let step = planes[plane].channels.len();
        for y in 0..layout.height() {
            let source = frame.row(plane, y);
            let target = &mut pixels[y * row_bytes..(y + 1) * row_bytes];
            if bytes == 1 {
                let samples = source[offset..].iter().step_by(step);
                for (to, from) in target[slot..]
                    .iter_mut()
                    .step_by(stored.channels.len())
                    .zip(samples)
                {
                    *to = *from;
                }
            } else {
                let samples = source[2 * offset..].chunks(2 * step);
                for (to, from) in target[2 * slot..]
                    .chunks_mut(2 * stored.channels.len())
                    .zip(samples)
                {
                    let word = u16::from_le_bytes([from[0], from[1]]);
                    let word = scale.get(usize::from(word)).copied().unwrap_or(word);
                    to[..2].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }
    Cow::Owned(pixels)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::frame::{Buffer, Layout};

    fn format(name: &str) -> PixelFormat {
        PixelFormat::from_name(name).unwrap()
    }

    #[test]
    fn the_nearest_format_is_one_that_the_kind_holds() {
        use ImageKind::{Bmp, Jpeg, Pgm, Png, Pnm, Ppm, Tiff, WebP};
        for kind in [Png, Jpeg, Tiff, Bmp, WebP, Pnm, Pgm, Ppm] {
            for f in PixelFormat::all() {
                if let Some(near) = nearest(kind, f) {
                    assert!(accepts(kind, near), "{kind} {f} -> {near}");
                    assert!(near.depth() >= f.depth() && near.has_alpha() == f.has_alpha());
                }
            }
            assert_eq!(kind.extension().parse::<ImageKind>().unwrap(), kind);
        }
        let near = |kind, name: &str| nearest(kind, format(name)).map(PixelFormat::name);
        assert_eq!(near(Png, "yuv420p10le"), Some("rgb48le"));
        assert_eq!(near(Jpeg, "nv12"), Some("rgb24"));
        assert_eq!(near(Jpeg, "rgba"), None);
        assert_eq!(near(Jpeg, "gray16le"), None);
        assert_eq!(near(WebP, "yuv420p10le"), None);
        assert_eq!(near(Pgm, "rgb24"), None);
        assert_eq!(near(Ppm, "gray"), Some("gray"));
        assert_eq!(near(Tiff, "gbrp12le"), Some("gbrp12le"));
        assert!(cannot_hold(Jpeg, format("rgba64le")).contains("depth and alpha; write PNG or TIFF"));
    }

    #[test]
    fn components_are_put_in_order_and_scaled() {
        let gather = |name: &str, samples: &[u16], kind: ImageKind| {
            let layout = Layout::new(format(name), 2, 1, 16).unwrap();
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
            let mut samples = samples.iter();
            for index in 0..layout.planes().len() {
                for place in frame
                    .row_mut(index, 0)
                    .chunks_mut(format(name).bytes_per_sample())
                {
                    let sample = samples.next().unwrap().to_le_bytes();
                    let len = place.len();
                    place.copy_from_slice(&sample[..len]);
                }
            }
            pixels(&frame, stored(kind, format(name)).unwrap()).into_owned()
        };
        assert_eq!(
            gather("bgr24", &[3, 2, 1, 6, 5, 4], ImageKind::Png),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(
            gather("abgr", &[4, 3, 2, 1, 8, 7, 6, 5], ImageKind::Tiff),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert_eq!(
            gather("gbrp", &[2, 5, 3, 6, 1, 4], ImageKind::Jpeg),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(
            gather("gbrap", &[2, 6, 3, 7, 1, 5, 4, 8], ImageKind::Png),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert_eq!(
            gather("ya8", &[9, 1, 8, 2], ImageKind::Bmp),
            [9, 9, 9, 1, 8, 8, 8, 2]
        );
        assert_eq!(gather("gray10le", &[0, 1023], ImageKind::Png), [0, 0, 255, 255]);
        assert_eq!(gather("gray10le", &[1, 512], ImageKind::Png), [64, 0, 32, 128]);
        assert_eq!(
            gather("bgr48le", &[3, 2, 1, 6, 5, 0x104], ImageKind::Pnm),
            [1, 0, 2, 0, 3, 0, 4, 1, 5, 0, 6, 0]
        );
    }
}
