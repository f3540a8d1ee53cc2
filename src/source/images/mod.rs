//! Image files as frames, decoded straight into the frames' memory by as many threads as the pipeline likes.
//!
//! ```text
//! listing.rs    which files an input names; animated.rs: which are animations;
//!    |          pairing.rs: which of two inputs go together
//! still.rs      one of them: its kind (content.rs), its header, its pixels
//!    |          decoded by formats/, the image crate within read_budget.rs, or ffmpeg_still.rs
//! picture.rs    what each of these gives, or error.rs; picture_end.rs: where it ends in the file, and so
//!               trailing.rs: what follows it
//! ```

#[doc(hidden)]
pub mod animated;
mod content;
mod error;
mod ffmpeg_still;
mod formats;
pub mod listing;
#[doc(hidden)]
pub mod pairing;
mod picture;
mod picture_end;
mod read_budget;
mod still;
mod trailing;

use super::{IndexedSource, MOST_PIXELS, SourceError, StreamInfo, check_pixels};
use crate::annotations::Annotations;
use crate::frame::{Buffer, Colour, Frame, Layout, Rational, Remarks, Skipped, Turn};
use animated::is_animated;
use error::invalid;
pub(in crate::source) use formats::webp_chunks;
use listing::{Listing, Page, Selection, list};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use still::Still;
use trailing::Trailing;

/// Pixels across and down of a frame that stands for a file that was passed over.
const STAND_IN: usize = 2;

/// How image files are to be read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ImageSourceOptions {
    /// Frames a second: gives the frames a time, one tick each.
    pub fps: Option<Rational>,
    /// Fail where something of a file or of a sequence is damaged, missing or left out.
    pub strict: bool,
    /// Which frames of a sequence.
    pub selection: Selection,
    /// Pass over files that cannot be read: each is listed among the failures, and a frame stands for it that
    /// no image file is written for (see [`crate::frame::Metadata::stands_in`]).
    pub keep_going: bool,
    /// Pixels of the largest picture that is read; `None` for [`MOST_PIXELS`].
    pub max_pixels: Option<u64>,
    /// Of a file with further channels than those of a picture read the picture alone, if there is one.
    pub colours_only: bool,
}

/// A sentence about data behind all that a file of a picture or an animation shows, by its content.
pub(super) fn data_behind(path: &Path) -> std::io::Result<Option<&'static str>> {
    let further = match content::kind_of(path)? {
        Some(kind) => picture_end::trailing(kind, path)?,
        None => picture_end::holds_trailing_data(path)?.then_some(Trailing::Data),
    };
    // Trailing pictures are frames.
    Ok(further
        .filter(|further| *further == Trailing::Data)
        .map(Trailing::sentence))
}

/// The files that were passed over, and why.
pub type Failures = Arc<Mutex<Vec<(PathBuf, String)>>>;

/// The image files that one input names.
pub struct ImageFiles {
    files: Arc<[PathBuf]>,
    /// What files made of these are named after.
    names: Arc<[PathBuf]>,
    numbers: Option<Arc<[i64]>>,
    pages: Option<Vec<Page>>,
    /// The place of each among all files of the input.
    places: Arc<[u64]>,
    info: StreamInfo,
    rules: Rules,
    keep_going: bool,
    remarks: Mutex<FileRemarks>,
    failures: Failures,
}

/// How many files something was said of, and the first of them, by what was said.
type Counted = BTreeMap<String, (u64, PathBuf)>;

/// What was wrong with files, or done with them.
#[derive(Default)]
struct FileRemarks {
    listing: Vec<String>,
    files: Counted,
    conversions: Counted,
}

/// Lists the image files that `input` names (a file, a directory, `frames/%05d.png`, or a glob) and reads the
/// header of the first.
pub fn open(input: &Path, options: &ImageSourceOptions) -> Result<ImageFiles, SourceError> {
    open_listed(input, list(input, &options.selection)?, options)
}

/// As [`open`], with the files that `input` names listed already; at least one.
pub fn open_listed(
    input: &Path,
    listing: Listing,
    options: &ImageSourceOptions,
) -> Result<ImageFiles, SourceError> {
    let names = listing.names();
    let Listing {
        files,
        numbers,
        pages,
        notes,
        places,
    } = listing;
    if options.strict && !notes.is_empty() {
        return Err(invalid(
            input,
            &format!(
                "{}; without --strict the rest is read all the same",
                notes.join("; ")
            ),
        ));
    }
    let count = files.len();
    let header = |index: usize| {
        let page = pages.as_ref().map(|pages| pages[index]);
        // Files of a sequence are each turned by themselves.
        let turns = count == 1 || page.is_some();
        header_of(&files[index], page, turns, Rules::of(options))
    };
    // Files that are passed over have no say in what the stream is.
    let passed_over = (0..files.len())
        .take_while(|&index| options.keep_going && header(index).is_err())
        .count();
    if files.is_empty() {
        return Err(invalid(input, "names no file"));
    }
    let first = if passed_over < files.len() { passed_over } else { 0 };
    let Head {
        layout,
        colour,
        mut turn,
        kept_bytes,
    } = header(first)?;
    let (width, height, format) = (layout.width(), layout.height(), layout.format());
    if let Some(pages) = &pages {
        let first_turn = turn;
        let others = (first + 1..pages.len()).map(|index| {
            let page = header(index).map(|head| {
                turn = turn.filter(|_| head.turn == first_turn);
                head.layout
            });
            (index, page)
        });
        check_pages(input, pages, (first, &layout), options.keep_going, others)?;
    }
    let what = match (pages.is_some(), count) {
        (true, 1) => "page",
        (true, _) => "pages",
        (false, 1) => "image file",
        (false, _) => "image files",
    };
    let info = StreamInfo {
        uniform: count == 1 || pages.is_some(),
        frame_rate: options.fps,
        time_base: options.fps.map_or(Rational { num: 1, den: 25 }, |r| Rational {
            num: r.den,
            den: r.num,
        }),
        frames: Some(count as u64),
        is_single: count == 1,
        kept_bytes,
        colour,
        turn,
        description: format!(
            "{count} {what} from {}, the first {width}x{height} {format}",
            input.display()
        ),
        ..StreamInfo::new(format, width, height)
    };
    Ok(ImageFiles {
        files: files.into(),
        names: names.into(),
        numbers: numbers.map(Into::into),
        pages,
        places: places.into(),
        info,
        rules: Rules::of(options),
        keep_going: options.keep_going,
        failures: Failures::default(),
        remarks: Mutex::new(FileRemarks {
            listing: notes
                .into_iter()
                .map(|n| format!("{}: {n}", input.display()))
                .collect(),
            ..FileRemarks::default()
        }),
    })
}

/// What the head of a file, or of one of its pages, says.
struct Head {
    layout: Layout,
    colour: Colour,
    /// How it says that it is shown, if that goes for the whole stream.
    turn: Option<Turn>,
    /// Bytes that the frame keeps beside its samples.
    kept_bytes: u64,
}

/// Reads the head of a file, or of one of its pages, which may turn the whole stream.
fn header_of(file: &Path, page: Option<Page>, turns: bool, rules: Rules) -> Result<Head, SourceError> {
    let still = unbroken(file, || open_still(file, page, rules))?;
    let layout = Layout::new(still.format, still.width, still.height, 1);
    let layout = layout.map_err(|cause| SourceError::Layout {
        path: file.display().to_string(),
        cause,
    })?;
    let turn = turns.then(|| still.turn()).transpose()?;
    Ok(Head {
        layout,
        colour: still.colour(),
        turn,
        kept_bytes: still.kept_bytes(),
    })
}

/// An error if one of the `others` pages of a file has another size or format than page `first`.
fn check_pages(
    input: &Path,
    pages: &[Page],
    (first, expected): (usize, &Layout),
    keep_going: bool,
    others: impl Iterator<Item = (usize, Result<Layout, SourceError>)>,
) -> Result<(), SourceError> {
    let (width, height, format) = (expected.width(), expected.height(), expected.format());
    for (index, other) in others {
        let other = match other {
            Err(_) if keep_going => continue,
            other => other?,
        };
        if (other.width(), other.height(), other.format()) != (width, height, format) {
            return Err(invalid(
                input,
                &format!(
                    "its pages differ: page {} is {width}x{height} {format}, page {} {}x{} {} (counted from \
                     0); choose pages of one size and format with --frames",
                    pages[first].number,
                    pages[index].number,
                    other.width(),
                    other.height(),
                    other.format()
                ),
            ));
        }
    }
    Ok(())
}

impl ImageFiles {
    /// The files, one a frame.
    pub fn files(&self) -> &Arc<[PathBuf]> {
        &self.files
    }

    /// What files made of the frames are named after: the files, with a number for each page.
    pub fn names(&self) -> &Arc<[PathBuf]> {
        &self.names
    }

    /// The place of each file among all that the input names.
    pub fn places(&self) -> &Arc<[u64]> {
        &self.places
    }

    /// The files' numbers, where a pattern names them.
    pub fn numbers(&self) -> Option<&Arc<[i64]>> {
        self.numbers.as_ref()
    }

    /// The files that were passed over so far; the list grows while they are read.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// A frame that stands for a file that was passed over.
    fn stand_in(&self, index: usize, error: &SourceError) -> Result<Frame, SourceError> {
        let path = &self.files[index];
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push((path.clone(), error.to_string()));
        drop(failures);
        let layout =
            Layout::new(self.info.format, STAND_IN, STAND_IN, 1).map_err(|cause| SourceError::Layout {
                path: path.display().to_string(),
                cause,
            })?;
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new())))?;
        frame.bytes_mut().fill(0);
        frame.metadata.colour = self.info.colour;
        frame.metadata.file = Some(Arc::new(self.names[index].clone()));
        frame.metadata.stands_in = true;
        Ok(frame)
    }

    /// Notes what is wrong with a file, or fails if the source is strict.
    fn note(&self, path: &Path, trouble: &str) -> Result<(), SourceError> {
        if self.rules.strict {
            return Err(invalid(
                path,
                &format!("{trouble}; without --strict it is read all the same"),
            ));
        }
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        count(&mut remarks.files, path, trouble);
        Ok(())
    }

    /// Decodes one file, or one page.
    fn read_file(&self, index: usize, buffer: Buffer) -> Result<Frame, SourceError> {
        let path = self.files[index].as_path();
        let page = self.pages.as_ref().map(|pages| pages[index]);
        let still = open_still(path, page, self.rules)?;
        let layout =
            Layout::new(still.format, still.width, still.height, 1).map_err(|cause| SourceError::Layout {
                path: path.display().to_string(),
                cause,
            })?;
        let metadata = still.metadata()?;
        let mut frame = Frame::new(layout, buffer)?;
        frame.metadata.colour = still.colour();
        frame.metadata.sample_aspect = (0, 1);
        let said = still.read(&mut frame)?;
        frame.metadata.file = Some(Arc::new(self.names[index].clone()));
        if said.sample_aspect.0 > 0 {
            frame.metadata.sample_aspect = said.sample_aspect;
        }
        frame.metadata.exr = said.exr;
        let left_out = metadata.sentence();
        let hints = metadata.note();
        let has_default_picture = metadata.has_default_picture;
        let annotations = metadata.annotations;
        let profile = said.icc_profile.or(metadata.icc_profile);
        let unfit = profile.as_deref().and_then(unfit_profile);
        frame.metadata.icc_profile = profile.filter(|_| unfit.is_none()).map(Into::into);
        let orientation = said.orientation.or(annotations.orientation());
        frame.metadata.orientation = orientation.filter(|o| (2..=8).contains(o));
        if annotations != Annotations::default() {
            frame.metadata.annotations = Some(Arc::new(annotations));
        }
        for loss in left_out.into_iter().chain(unfit).chain(said.losses) {
            self.note(path, &loss)?;
        }
        for conversion in said.conversion.into_iter().chain(hints) {
            let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
            count(&mut remarks.conversions, path, &conversion);
        }
        let others = match (is_animated(path), has_default_picture) {
            (true, false) => {
                Some("an animation; only its first frame is read (given alone it is read as a video)")
            }
            (true, true) => Some(
                "an animation; only its default picture is read, which is not one of its frames (given \
                 alone it is read as a video)",
            ),
            (false, true) => Some("its default picture is read, and the frame of its animation is left out"),
            (false, false) => None,
        };
        if let Some(others) = others {
            self.note(path, others)?;
        }
        Ok(frame)
    }
}

impl IndexedSource for ImageFiles {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn len(&self) -> u64 {
        self.files.len() as u64
    }

    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        let path = &self.files[index as usize];
        let mut frame = match unbroken(path, || self.read_file(index as usize, buffer)) {
            Err(SourceError::Stopped(e)) => return Err(e.into()),
            Err(error) if self.keep_going => self.stand_in(index as usize, &error)?,
            read => read?,
        };
        frame.sequence = index;
        let place = self.places.get(index as usize).copied();
        let skipped = place.unwrap_or(index).saturating_sub(index);
        frame.metadata.skipped = Skipped {
            ticks: skipped as i64,
            frames: Some(skipped),
        };
        if self.info.frame_rate.is_some() {
            frame.metadata.pts = Some(index as i64);
            frame.metadata.duration = Some(1);
        }
        Ok(frame)
    }

    fn remarks(&self) -> Remarks {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut warnings = std::mem::take(&mut remarks.listing);
        warnings.extend(sentences(&remarks.files));
        Remarks {
            notes: sentences(&remarks.conversions),
            ..Remarks::warnings(warnings)
        }
    }
}

/// A sentence about a profile of inks, or of other colours that no frame has. Gray that comes as RGB keeps
/// its own: it may be stored as gray again.
fn unfit_profile(profile: &[u8]) -> Option<String> {
    let Some(space) = profile.get(16..20) else {
        return Some("its colour (ICC) profile is damaged; it is left out".to_owned());
    };
    (!matches!(space, b"GRAY" | b"RGB ")).then(|| {
        let is_name = space.iter().all(|byte| matches!(byte, b' '..=b'~'));
        let name = match is_name {
            true => String::from_utf8_lossy(space),
            false => "colours that it does not name".into(),
        };
        format!(
            "its colour (ICC) profile is for {}, but its pixels are read as gray or RGB; it is left out",
            name.trim()
        )
    })
}

fn count(counted: &mut Counted, path: &Path, what: &str) {
    let entry = counted.entry(what.to_owned());
    entry.or_insert_with(|| (0, path.to_owned())).0 += 1;
}

fn sentences(counted: &Counted) -> Vec<String> {
    let sentence = |(what, (count, first)): (&String, &(u64, PathBuf))| match count {
        1 => format!("{}: {what}", first.display()),
        n => format!("{} and {} more: {what}", first.display(), n - 1),
    };
    counted.iter().map(sentence).collect()
}

/// What holds for each file.
#[derive(Debug, Clone, Copy)]
struct Rules {
    strict: bool,
    max_pixels: u64,
    colours_only: bool,
}

impl Rules {
    fn of(options: &ImageSourceOptions) -> Rules {
        Rules {
            strict: options.strict,
            max_pixels: options.max_pixels.unwrap_or(MOST_PIXELS),
            colours_only: options.colours_only,
        }
    }
}

/// Opens a file or a page whose picture is not too large.
fn open_still(path: &Path, page: Option<Page>, rules: Rules) -> Result<Still<'_>, SourceError> {
    let still = match page {
        Some(page) => Still::open_page(path, page),
        None => Still::open(path, rules),
    }?;
    check_pixels(
        &path.display().to_string(),
        still.width,
        still.height,
        rules.max_pixels,
    )?;
    Ok(still)
}

/// What `run` gives; a decoder that breaks down on a file is that file's trouble, not the run's.
fn unbroken<T>(path: &Path, run: impl FnOnce() -> Result<T, SourceError>) -> Result<T, SourceError> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(invalid(path, "cannot be decoded: its decoder broke down on it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_other_colours_are_named_in_letters() {
        let said = |space: &[u8; 4]| unfit_profile(&[&[0; 16], &space[..]].concat());
        assert_eq!((said(b"GRAY"), said(b"RGB ")), (None, None));
        for (space, name) in [
            (b"CMYK", "CMYK"),
            (b"Lab ", "Lab"),
            (b"\0\0\0\0", "colours that it does not name"),
        ] {
            let words = format!("profile is for {name}, but");
            assert!(said(space).is_some_and(|said| said.contains(&words)), "{name}");
        }
        assert!(unfit_profile(b"abc").is_some_and(|said| said.contains("profile is damaged")));
    }
}
