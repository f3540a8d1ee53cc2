//! Frames as image files, encoded by as many threads as the pipeline likes, each file complete before it has
//! its name.
//!
//! ```text
//!   options.rs      what the caller chooses
//!   naming.rs       the name and the kind of each frame's file; names.rs: those that are taken are refused;
//!                   lock.rs: one run for a folder
//!   a frame         accounted for in the ledger, turned, gray to full range (`settle`)
//!      |
//!   picture.rs      its pixels as the kind stores them (stored.rs, radiance.rs)
//!      |
//!   encode.rs       by the image crate or ffmpeg_encoder.rs; exr.rs: all channels of OpenEXR
//!      |            annotations go in after it (significant_bits.rs: those of the channels stored)
//!   shared.rs       what all threads have found, for the last word
//! ```

mod encode;
mod exr;
mod ffmpeg_encoder;
mod lock;
mod names;
mod naming;
mod options;
mod picture;
mod radiance;
mod shared;
mod significant_bits;
mod stored;

pub use encode::encoded;
pub use naming::kind_for;
#[doc(hidden)]
pub use naming::{Naming, is_target};
pub use options::ImageOptions;
#[doc(hidden)]
pub use stored::holds_opaque;
pub use stored::{accepts, nearest};

use super::atomic_file::AtomicFile;
use super::ledger::{Outcome, PlainLedger, stated};
use super::significant::with_true_bits;
use super::{IndexedSink, Rules, SinkError, Written};
use crate::annotations::{self, Arrangement};
use crate::frame::fact::{Fact, Samples};
use crate::frame::{ColourModel, Frame, Range, RangeChange, Remarks, Turn};
use crate::media::still::ImageKind;
use crate::source::StreamInfo;
use crate::wording::counted;
use image::ImageError;
use lock::locked;
use naming::Target;
use picture::{Picture, pixels};
use shared::Shared;
use significant_bits::fitting;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Cursor, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stored::{Stored, cannot_hold, stored};

/// Writes frames as image files: to a single file (one frame), a numbered pattern (`out/%05d.png`), or a
/// directory, where files are named after the frames' own files, or else `000000.png` and so on. A directory
/// that is missing is made, a pattern's too.
///
/// Existing files, names that clash and formats that cannot be held are refused here, before anything is
/// written, as far as the frames are known.
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
    let naming = Naming::new(target, options)?;
    let kind = naming.kind;
    if let Some(problem) = ffmpeg_encoder::missing(kind) {
        return Err(refuse(problem));
    }
    if !accepts(kind, info.format) && options.sources.is_none() {
        return Err(refuse(cannot_hold(kind, info.format)));
    }
    let rules = options.rules();
    let account = format!("{} ({kind} files)", target.display());
    let mut ledger = PlainLedger::new(account, ADVICE, rules, info).map_err(refuse)?;
    ledger.advise_on(Fact::is_of_colours, ADVICE_ON_COLOURS);
    let mut images = Images {
        label: target.display().to_string(),
        ledger: Mutex::new(ledger),
        naming,
        options: options.clone(),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        hidden: AtomicU64::new(0),
        shared: Mutex::default(),
        folder_lock: None,
    };
    let folder = images.naming.folder().map(Path::to_owned);
    // Patterns may share a folder: their names differ, and one that is there is never replaced.
    let own = folder
        .as_deref()
        .filter(|_| matches!(images.naming.place, Target::Directory(_)));
    // Before its files are looked at: another run's are no leftovers that --overwrite would be for.
    if let Some(folder) = own {
        images.folder_lock = locked(folder, options.shares_folder)?;
    }
    images.look_ahead(info)?;
    if let Some(folder) = &folder {
        fs::create_dir_all(folder).map_err(|cause| SinkError::Io {
            path: images.label.clone(),
            cause,
        })?;
    }
    if let Some(folder) = own.filter(|_| images.folder_lock.is_none()) {
        images.folder_lock = locked(folder, options.shares_folder)?;
    }
    Ok(Arc::new(images))
}

struct Images {
    label: String,
    naming: Naming,
    options: ImageOptions,
    files: AtomicU64,
    bytes: AtomicU64,
    /// Pixels of OpenEXR whose colour was lost under an alpha of 0.
    hidden: AtomicU64,
    shared: Mutex<Shared>,
    ledger: Mutex<PlainLedger>,
    /// Held as long as the run writes into the folder.
    folder_lock: Option<File>,
}

/// What to do about facts that are lost.
const ADVICE: &str = "a video such as .mkv keeps it";

/// What to do where colours are among them.
const ADVICE_ON_COLOURS: &str = "a video such as .mkv keeps it, or bring the colours to what untagged \
     pictures are taken for (bt709 or sRGB)";

impl Images {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accounts for what the frame says, and turns it as its stream is to be shown: viewers of stills
    /// know no streams.
    fn settle(&self, frame: Frame, kind: ImageKind) -> Result<Frame, SinkError> {
        let unsupported = |problem| SinkError::Unsupported {
            path: self.label.clone(),
            problem,
        };
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = frame.metadata.clone();
        // These are the files' own business: see `encode`.
        own.orientation = None;
        own.icc_profile = None;
        own.side_data.retain(|block| block.fact != Fact::IccProfile);
        own.annotations = None;
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
                // Gray is brought to full range below.
                (Fact::Range, _) => Outcome::Carried,
                // Without words, as the picture before said it.
                (Fact::Transfer, _)
                    if ffmpeg_encoder::tells_transfer(kind, own.colour.transfer)
                        || kind.is_float_only()
                            && ffmpeg_encoder::tells_transfer(kind, metadata.colour.transfer) =>
                {
                    Outcome::Carried
                }
                (Fact::Exr | Fact::PixelAspect, _) if kind == ImageKind::Exr => Outcome::Carried,
                (Fact::AssociatedAlpha, _) if kind.holds_floats() => Outcome::Carried,
                (Fact::Primaries, _) if ffmpeg_encoder::tells_primaries(kind, own.colour.primaries) => {
                    Outcome::Carried
                }
                _ => Outcome::Lost,
            })
            .map_err(unsupported)?;
        drop(ledger);
        let mut frame = match turn {
            Some(turn) => turn.apply(&frame).map_err(|e| unsupported(e.to_string()))?,
            None => frame,
        };
        let is_gray = samples.model == ColourModel::Gray && !frame.format().is_float();
        if is_gray && samples.is_limited(metadata.colour.range) {
            RangeChange::new(frame.format(), Range::Full).apply(&mut frame);
            self.shared()
                .notes
                .insert("gray of limited range was brought to full range, which image files have".to_owned());
        }
        Ok(frame)
    }

    fn encode(
        &self,
        frame: &Frame,
        kind: ImageKind,
        extension: Option<&OsStr>,
        part: &AtomicFile,
    ) -> Result<(), SinkError> {
        let unsupported = |problem| SinkError::Unsupported {
            path: part.label().to_owned(),
            problem,
        };
        let is_colour = frame.metadata.exr.is_none() && frame.format().model() != ColourModel::Data;
        if let Some(word) = ffmpeg_encoder::assumed(frame.metadata.colour, kind).filter(|_| is_colour) {
            self.shared().notes.insert(word);
        }
        if kind == ImageKind::Exr && frame.format().is_float() {
            return self.encode_exr(frame, part);
        }
        let stored =
            stored(kind, frame.format()).ok_or_else(|| unsupported(cannot_hold(kind, frame.format())))?;
        let (Ok(width), Ok(height)) = (
            u32::try_from(frame.layout().width()),
            u32::try_from(frame.layout().height()),
        ) else {
            return Err(unsupported(format!("{kind} cannot hold a picture of this size")));
        };
        if kind.longest_side().is_some_and(|most| width.max(height) > most) {
            return Err(unsupported(format!(
                "{kind} cannot hold {width}x{height} pixels; write PNG or TIFF"
            )));
        }
        let mut picture = Picture {
            pixels: pixels(frame, stored),
            width,
            height,
            stored,
            icc: self.icc(frame, kind, stored, part)?,
            orientation: self.orientation(frame, kind, part)?,
            colour: frame.metadata.colour,
            depth: frame.format().depth(),
            is_bare: kind.is_bare(extension),
        };
        if kind == ImageKind::Hdr {
            self.bring_to_radiance(&mut picture.pixels, part)?;
        }
        let refused = |e| match e {
            ImageError::IoError(cause) => part.failed(cause),
            e => unsupported(format!("the {kind} encoder refused the picture: {e}")),
        };
        self.lose_annotations(frame, kind, part)?;
        let (Some(annotations), Some(container)) = (&frame.metadata.annotations, kind.container()) else {
            return picture.encode(kind, &self.options, part.file()).map_err(refused);
        };
        let mut file = Cursor::new(Vec::new());
        picture.encode(kind, &self.options, &mut file).map_err(refused)?;
        let mut annotations = fitting(annotations, stored);
        let programs = annotations.drop_other_structures(&Arrangement {
            width,
            height,
            channels: stored.channels.len() as u32,
            samples: match (stored.float, stored.deep) {
                (true, _) => "float",
                (false, true) => "uint16",
                (false, false) => "uint8",
            },
        });
        for program in programs {
            self.lose(
                part,
                format!(
                    "a description of the file's structure ({program}) is left out: its pages, size, \
                     channels or type differ"
                ),
            )?;
        }
        let (file, lost) =
            annotations::insert(container, &annotations, picture.orientation, file.into_inner());
        for word in lost {
            self.lose(
                part,
                format!("{kind} cannot hold what pictures say beside their pixels: {word} dropped"),
            )?;
        }
        part.file().write_all(&file).map_err(|cause| part.failed(cause))
    }

    /// Brings samples to those that Radiance HDR holds.
    fn bring_to_radiance(&self, pixels: &mut Cow<'_, [u8]>, part: &AtomicFile) -> Result<(), SinkError> {
        let nearest = radiance::nearest(pixels);
        if nearest[..] != pixels[..] {
            self.lose(
                part,
                "Radiance HDR has 8 bits for each colour and a common exponent: samples are rounded, and \
                 what is below 0 becomes 0; OpenEXR and TIFF keep them"
                    .to_owned(),
            )?;
        }
        if radiance::has_beyond(pixels) {
            self.lose(
                part,
                "Radiance HDR has no samples that are no numbers (NaN), which become 0, and none above \
                 1.69e38, which greater and infinite ones become; OpenEXR and TIFF keep them"
                    .to_owned(),
            )?;
        }
        *pixels = nearest.into();
        Ok(())
    }

    /// Writes all channels of the frame.
    fn encode_exr(&self, frame: &Frame, part: &AtomicFile) -> Result<(), SinkError> {
        let kind = ImageKind::Exr;
        self.lose_annotations(frame, kind, part)?;
        let metadata = &frame.metadata;
        let profiles = metadata
            .side_data
            .iter()
            .filter(|block| block.fact == Fact::IccProfile);
        if metadata.icc_profile.is_some() || profiles.count() > 0 {
            self.lose_profile(kind, part)?;
        }
        self.orientation(frame, kind, part)?;
        let encoded = exr::encode(frame, BufWriter::with_capacity(1 << 18, part.file()));
        let said = encoded.map_err(|error| match error {
            ::exr::error::Error::Io(cause) => part.failed(cause),
            error => SinkError::Unsupported {
                path: part.label().to_owned(),
                problem: format!("the {kind} encoder refused the picture: {error}"),
            },
        })?;
        if said.hidden > 0 && self.options.strict {
            self.lose(part, hidden(said.hidden))?;
        }
        self.hidden.fetch_add(said.hidden, Ordering::Relaxed);
        self.shared().notes.extend(said.notes);
        said.losses.into_iter().try_for_each(|loss| self.lose(part, loss))
    }

    /// Notes that annotations are lost in files that cannot hold any.
    fn lose_annotations(&self, frame: &Frame, kind: ImageKind, part: &AtomicFile) -> Result<(), SinkError> {
        let (Some(annotations), None) = (&frame.metadata.annotations, kind.container()) else {
            return Ok(());
        };
        let words = annotations.words();
        if words.is_empty() {
            return Ok(());
        }
        self.lose(
            part,
            format!(
                "{kind} files are written without what pictures say beside their pixels: {words} dropped"
            ),
        )
    }

    fn lose_profile(&self, kind: ImageKind, part: &AtomicFile) -> Result<(), SinkError> {
        self.lose(
            part,
            format!("{kind} files are written without a colour (ICC) profile; it was dropped"),
        )
    }

    fn warn(&self, warning: String) {
        self.shared().warnings.insert(warning);
    }

    /// Notes a loss, or fails if the output is strict.
    fn lose(&self, part: &AtomicFile, loss: String) -> Result<(), SinkError> {
        if self.options.strict {
            return Err(SinkError::Unsupported {
                path: part.label().to_owned(),
                problem: format!("{loss}; without --strict it is written so"),
            });
        }
        self.warn(loss);
        Ok(())
    }

    /// The frame's colour profile, if the file can hold it and it is one for the file's colours.
    fn icc(
        &self,
        frame: &Frame,
        kind: ImageKind,
        stored: Stored,
        part: &AtomicFile,
    ) -> Result<Option<Arc<[u8]>>, SinkError> {
        let metadata = &frame.metadata;
        let block = metadata
            .side_data
            .iter()
            .find(|block| block.fact == Fact::IccProfile);
        let block = block.map(|block| &block.data);
        let Some(profile) = metadata.icc_profile.as_ref().or(block).cloned() else {
            return Ok(None);
        };
        if !kind.keeps_colour_profile() {
            self.lose_profile(kind, part)?;
            return Ok(None);
        }
        let space: &[u8] = if stored.channels.len() < 3 && !kind.makes_rgb_of_gray() {
            b"GRAY"
        } else {
            b"RGB "
        };
        if profile.get(16..20) != Some(space) {
            let loss = match profile.get(16..20) {
                Some(other) => format!(
                    "a colour (ICC) profile was dropped: it is for {}, but the pixels are {}",
                    String::from_utf8_lossy(other).trim(),
                    String::from_utf8_lossy(space).trim()
                ),
                None => "a colour (ICC) profile was dropped: it is damaged".to_owned(),
            };
            self.lose(part, loss)?;
            return Ok(None);
        }
        Ok(Some(profile))
    }

    fn orientation(
        &self,
        frame: &Frame,
        kind: ImageKind,
        part: &AtomicFile,
    ) -> Result<Option<u8>, SinkError> {
        let Some(orientation) = frame.metadata.orientation.filter(|o| (2..=8).contains(o)) else {
            return Ok(None);
        };
        if !kind.keeps_colour_profile() {
            self.lose(part, format!(
                "{kind} files are written without the orientation; pictures to be shown turned or mirrored \
                 will be shown as they are stored"
            ))?;
            return Ok(None);
        }
        Ok(Some(orientation))
    }
}

/// What is lost with `pixels` whose colour was multiplied by an alpha of 0.
fn hidden(pixels: u64) -> String {
    format!(
        "the colour of {} with alpha 0 is not kept: OpenEXR has colours multiplied by their alpha; PNG and \
         TIFF keep it",
        counted(pixels, "pixel")
    )
}

impl IndexedSink for Images {
    fn write(&self, frame: Frame) -> Result<(), SinkError> {
        let single = self.naming.is_single();
        if single && frame.sequence > 0 {
            return Err(self.several());
        }
        if frame.metadata.stands_in {
            return Ok(());
        }
        let source = frame.metadata.file.clone();
        let source = source.as_ref().map(|f| f.as_path());
        let (path, kind) = self.naming.name(frame.sequence, source);
        // Before anything that a run without --strict would only warn of.
        if !(kind == ImageKind::Exr && frame.format().is_float()) && stored(kind, frame.format()).is_none() {
            return Err(SinkError::Unsupported {
                path: path.display().to_string(),
                problem: cannot_hold(kind, frame.format()),
            });
        }
        let frame = with_true_bits(self.settle(frame, kind)?);
        if source.is_some()
            && matches!(self.naming.place, Target::Directory(_))
            && !self.shared().names.insert(path.clone())
        {
            return Err(self.clash(&path));
        }
        let rules = Rules {
            overwrite: self.replaces(&path),
            ..self.options.rules()
        };
        let part = AtomicFile::by_rules(&path, rules)?;
        self.encode(&frame, kind, path.extension(), &part)?;
        self.shared().note_kind(kind);
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

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes.load(Ordering::Relaxed))
    }

    fn finish(&self) -> Result<Written, SinkError> {
        let mut shared = self.shared();
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let mut remarks = Remarks {
            notes: std::mem::take(&mut shared.notes).into_iter().collect(),
            ..Remarks::warnings(std::mem::take(&mut shared.warnings))
        };
        let pixels = self.hidden.load(Ordering::Relaxed);
        remarks.warn((pixels > 0).then(|| hidden(pixels)));
        remarks.warn(ledger.sentences());
        if let Some(problem) = remarks.refusal().filter(|_| self.options.strict) {
            return Err(SinkError::Unsupported {
                path: self.label.clone(),
                problem,
            });
        }
        if let Some(part) = shared.single.take() {
            part.commit()?;
        }
        if let Some(lock) = &self.folder_lock {
            // Nothing more is written. A lock that stays is no harm either: it ends with the process.
            let _ = lock.unlock();
        }
        let files = self.files.load(Ordering::Relaxed);
        if self.options.trial || shared.kinds.is_empty() {
            // Of all files one was tried.
            let sources = self.options.sources.as_deref().unwrap_or_default();
            for (sequence, source) in (0..).zip(sources) {
                shared.note_kind(self.naming.name(sequence, Some(source)).1);
            }
            if sources.is_empty() {
                shared.note_kind(self.naming.kind);
            }
        }
        let (count, noun) = match files {
            _ if self.options.trial && !self.naming.is_single() => (String::new(), "files"),
            1 => ("1 ".to_owned(), "file"),
            _ => (format!("{files} "), "files"),
        };
        Ok(Written {
            description: format!(
                "{count}{} image {noun} to {}{}",
                shared.kinds(),
                self.label,
                ledger.notes()
            ),
            bytes: Some(self.bytes.load(Ordering::Relaxed)),
            remarks,
            closed_early: false,
        })
    }
}
