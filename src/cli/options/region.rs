//! The part of each picture that is filtered: regions, a matte, or the rest.

use super::reading::ReadingArguments;
use crate::cli::Failure;
use crate::cli::endpoint::{FileChoice, Files, Input, Output, check_distinct};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use framepipe::engine::region::{self, Clock, End, Pairing, Parts, Period, Region, RegionError};
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::Chain;
use framepipe::frame::{Rational, Turn};
use framepipe::pipeline::{MatteReader, Stop};
use framepipe::source::images::listing::{self, Listing, Selection};
use framepipe::source::images::pairing::{self, Unpaired};
use framepipe::source::range::{Point, TimeRange};
use framepipe::source::{self, AnySource, StreamInfo};
use framepipe::wording::tidy;
use std::path::{Path, PathBuf};

/// What a run says that passes over no frame, because they are counted.
pub(crate) const READ_FROM_THE_BEGINNING: &str =
    "the input is read from its beginning: a region or a matte depends on the number of a frame";

/// The part of each picture that is filtered.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Region")]
pub(crate) struct RegionArguments {
    /// Filter this rectangle only and leave the rest as it is, bit for bit: 200x100+10+20 is 200 columns and
    /// 100 rows after the first 10 and below the first 20, of the picture as it is shown, turned as its
    /// file says. '0:05..0:08 200x100+10+20 -> 300x100+400+20' applies from 0:05 on and before 0:08, and
    /// moves and grows meanwhile. Repeat it for several.
    #[arg(long, value_name = "[T0..T1] WxH+X+Y [-> WxH+X+Y]")]
    region: Vec<Region>,
    /// Filter the rectangles of this file, written as for --region, one a line; # begins a comment. Times
    /// and frames count from the beginning of the input, whichever frames are read.
    #[arg(long, value_name = "FILE")]
    regions: Option<PathBuf>,
    /// Filter as much as this gray picture, video or folder says in each pixel: nothing where it is black,
    /// all where it is white, mixed between; it lies on the picture as both are shown. One picture is for all
    /// frames. Of several each frame of the input has its own, whichever frames are read: image files by the
    /// same number, or else the same name, and others one by one.
    #[arg(long, value_name = "INPUT")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Input::from_argument))]
    matte: Option<Input>,
    /// Filter what regions and matte leave instead.
    #[arg(long)]
    outside: bool,
}

impl RegionArguments {
    /// True if not all of each picture is filtered.
    pub(crate) fn is_given(&self) -> bool {
        !self.region.is_empty() || self.regions.is_some() || self.matte.is_some()
    }

    /// True if the number of a frame in the input decides what of it is filtered.
    pub(crate) fn goes_by_number(&self) -> bool {
        let is_counted = |region: &Region| matches!(region.period, Period::Frames(..));
        self.region.iter().any(is_counted) || self.matte.as_ref().is_some_and(Input::has_several_frames)
    }

    /// Refuses impossible combinations, before anything is opened. `fields` is true with --fields.
    pub(crate) fn check(&self, input: &Input, output: Option<&Output>, fields: bool) -> Result<(), Failure> {
        let refuse = |text: String| Err(Failure::Usage(text));
        // The regions of a file stand beside those of the command line.
        let option = match (&self.matte, &self.regions, self.region.is_empty()) {
            (Some(_), _, _) => "--matte",
            (_, Some(_), _) => "--regions",
            (_, _, false) => "--region",
            _ if self.outside => {
                return refuse("--outside is for --region, --regions or --matte".to_owned());
            }
            _ => return Ok(()),
        };
        if fields {
            return refuse(format!(
                "{option} counts the rows of whole pictures, and --fields filters each field by itself; give \
                 one of the two"
            ));
        }
        let pipe = Path::new("-");
        if let Some(matte) = &self.matte
            && matte.path() == Some(pipe)
            && input.path() == Some(pipe)
        {
            return refuse("standard input can be the input or the matte, not both".to_owned());
        }
        // Its files may lie in a folder.
        match (&self.matte, output) {
            (Some(matte), Some(output)) => check_distinct(matte, output),
            _ => Ok(()),
        }
    }

    /// Reads the file of regions.
    pub(crate) fn read(&mut self) -> Result<(), Failure> {
        if let Some(path) = &self.regions {
            let read = region::read_regions(path).map_err(|e| Failure::usage(&e))?;
            self.region.extend(read);
        }
        Ok(())
    }

    /// The single files that are read besides the input, and what each is.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [
            ("matte", self.matte.as_ref().and_then(Input::path)),
            ("file of regions", self.regions.as_deref()),
        ];
        files
            .into_iter()
            .filter_map(|(noun, path)| Some((noun, path.filter(|path| *path != Path::new("-"))?)))
    }

    /// The image files of a matte, which are read besides the input.
    pub(crate) fn matte_files(&self) -> Vec<PathBuf> {
        self.matte.as_ref().map_or_else(Vec::new, Input::image_files)
    }

    /// Files that the confined process reads besides the input.
    pub(crate) fn reads(&self) -> Result<Vec<PathBuf>, Failure> {
        self.matte.as_ref().map_or(Ok(Vec::new()), Input::reads)
    }

    /// Refuses a region of the whole input that begins behind its last frame, as far as that is known without
    /// reading the frames. Files that state their length wrongly are asked for the times of their packets.
    pub(crate) fn check_times(&self, source: &mut AnySource) -> Result<(), Failure> {
        let info = source.info();
        let (Some(frames), base) = (info.frames, info.time_base) else {
            return Ok(());
        };
        // The first frame that is not before `point`.
        let number = |point| {
            let from = TimeRange::new(Some(point), None, None, None).ok()?;
            from.numbers(info.frame_rate).map(|(first, _)| first)
        };
        let late = |region: &&Region| {
            begin(region)
                .and_then(number)
                .is_some_and(|first| first >= frames)
        };
        let Some(latest) = self
            .region
            .iter()
            .filter(late)
            .max_by_key(|region| begin(region).and_then(number))
        else {
            return Ok(());
        };
        let is_late = match source {
            AnySource::Indexed(_) => true,
            AnySource::Stream(source) => {
                let (from, number) = match begin(latest) {
                    Some(Point::Time(nanos)) => (base.tick_at(nanos), 0),
                    Some(Point::Frame(frame)) => (i64::MIN, frame),
                    None => return Ok(()),
                };
                source.time_of(i64::MIN, 0)?.is_some() && source.time_of(from, number)?.is_none()
            }
        };
        match is_late {
            true => Err(Failure::usage(&RegionError::Late(latest.label.clone()))),
            false => Ok(()),
        }
    }

    /// The regions and the open matte, which is read in step with the frames of `info`.
    fn parts(&self, run: &Run<'_>) -> Result<Parts, Failure> {
        let mut parts = Parts::default();
        parts.regions.clone_from(&self.region);
        parts.outside = self.outside;
        parts.read = run.read;
        parts.stream_turn = Turn::of_blocks(&run.info.side_data);
        if let Some(matte) = &self.matte {
            let (matte, pairing) = run.open(matte)?;
            parts.matte = Some(Box::new(matte));
            parts.pairing = pairing;
        }
        Ok(parts)
    }

    /// `engine`, applied to the part of each picture that the user wants.
    pub(crate) fn around(
        &self,
        engine: Box<dyn Engine>,
        chain: &Chain,
        run: &Run<'_>,
        threads: usize,
    ) -> Result<Box<dyn Engine>, Failure> {
        let info = run.info;
        // Other inputs than image files have times; a rate is for frames that state none.
        let assumed = (!run.input.is_images()).then_some(Rational { num: 25, den: 1 });
        let clock = Clock {
            time_base: info.time_base,
            frame_rate: info.frame_rate.or(assumed),
        };
        let turn = Turn::of_blocks(&info.side_data).or(info.turn);
        // Pages of one size may be turned each by itself.
        let turn = turn.or((!run.input.is_images()).then_some(Turn::UPRIGHT));
        let size = turn.filter(|_| info.uniform);
        let size = size.map(|turn| turn.shown_size((info.width, info.height)));
        let mut parts = self.parts(run)?;
        parts.threads = threads;
        region::around(engine, parts, chain, clock, size).map_err(|error| match error {
            EngineError::Region(error) => Failure::usage(&error),
            other => other.into(),
        })
    }
}

/// Where the period of a region begins, if it has one.
fn begin(region: &Region) -> Option<Point> {
    match region.period {
        Period::Always => None,
        Period::Times(from, _) => Some(Point::Time(from)),
        Period::Frames(from, _) => Some(Point::Frame(from)),
    }
}

/// The ends of what `range` takes of an input.
pub(crate) fn ends(range: TimeRange) -> (End, End) {
    let length = match (range.duration, range.frames) {
        (None, frames) => frames.map(Point::Frame),
        (duration, None) => duration,
        // Whichever is over first.
        (Some(_), Some(_)) => return (range.start.map_or(End::Input, End::At), End::Frame),
    };
    let to = match (range.end, length, range.start) {
        (None, None, _) => End::Input,
        (Some(end), None, _) => End::At(end),
        (None, Some(length), None) => End::At(length),
        (None, Some(Point::Time(length)), Some(Point::Time(start))) => {
            End::At(Point::Time(start.saturating_add(length)))
        }
        (None, Some(Point::Frame(length)), Some(Point::Frame(start))) => {
            End::At(Point::Frame(start.saturating_add(length)))
        }
        _ => End::Frame,
    };
    (range.start.map_or(End::Input, End::At), to)
}

/// The run that a matte belongs to.
pub(crate) struct Run<'a> {
    pub(crate) input: &'a Input,
    pub(crate) info: &'a StreamInfo,
    pub(crate) reading: &'a ReadingArguments,
    /// The image files that are read, if the input is such.
    pub(crate) files: Option<&'a Files>,
    /// What the run reads of the input.
    pub(crate) read: (End, End),
    pub(crate) stop: &'a Stop,
}

impl Run<'_> {
    /// Opens a matte for the frames of the input, and says which of its pictures is for which frame.
    fn open(&self, matte: &Input) -> Result<(MatteReader, Pairing), Failure> {
        let mut options = self.reading.options(None);
        options.stream = None;
        options.stop = Some(self.stop.abandoned().clone());
        if matches!(matte, Input::Video(_)) {
            options.threads = self.reading.decoder_threads(true);
        }
        let listed = self.beside(matte)?;
        let pairing = match (&listed, self.read) {
            (Some(_), _) => Pairing::Run,
            (None, (End::Input, End::Input)) => Pairing::Whole,
            (None, _) => Pairing::Part,
        };
        let choice = FileChoice {
            listed,
            is_matte: true,
            ..FileChoice::default()
        };
        let opened = matte.open(None, &options, &choice);
        let opened = opened.map_err(|failure| match self.stop.is_abandon_asked() {
            true => Failure::Interrupted,
            false => failure,
        })?;
        let source = source::floats::watched_matte(opened.source, matte.name())?;
        let info = source.info();
        self.reading.check_size(&matte.name(), info)?;
        self.check_shown_size(&matte.name(), info)?;
        let note = self.note_on_rate(&matte.name(), info);
        let reader = MatteReader::new(source, matte.name(), self.stop.clone());
        Ok((
            match note {
                Some(note) => reader.noting(note),
                None => reader,
            },
            pairing,
        ))
    }

    /// The image files of a matte in step with those of the input. `None` if either is something else, or if
    /// one picture is for all.
    fn beside(&self, matte: &Input) -> Result<Option<Listing>, Failure> {
        let (Input::Images(input), Input::Images(path), Some(files)) = (self.input, matte, self.files) else {
            return Ok(None);
        };
        let mattes = listing::list(path, &Selection::default())?;
        if mattes.files.len() == 1 {
            return Ok(None);
        }
        let all = listing::list(input, &Selection::default())?;
        let mut read = files.places.iter().zip(files.read.iter());
        let is_same = read.all(|(&place, file)| all.files.get(place as usize) == Some(file));
        if !is_same {
            return Err(Failure::Failed(format!(
                "files were added to {} or removed meanwhile; start again once it is complete",
                input.display()
            )));
        }
        match pairing::paired(&all, &files.places, mattes) {
            Ok(listing) => Ok(Some(listing)),
            Err(Unpaired::Place(frames)) => Err(Failure::Failed(
                RegionError::Ended {
                    name: matte.name(),
                    frames,
                }
                .to_string(),
            )),
            Err(unpaired) => Err(Failure::Failed(format!(
                "the matte {}: {unpaired}; add it, or leave the frame out by --frames",
                matte.name()
            ))),
        }
    }

    /// Refuses a matte of another size than the picture, where that is known of all pictures.
    fn check_shown_size(&self, name: &str, info: &StreamInfo) -> Result<(), Failure> {
        // Image files state their turn with each frame, and only then can sizes be compared.
        let shown = |info: &StreamInfo| {
            let turn = Turn::of_blocks(&info.side_data).unwrap_or(Turn::UPRIGHT);
            turn.shown_size((info.width, info.height))
        };
        let (matte_size, picture) = (shown(info), shown(self.info));
        let is_turned = (matte_size.1, matte_size.0) == picture;
        if info.uniform && self.info.uniform && matte_size != picture && !is_turned {
            return Err(Failure::usage(&RegionError::Size {
                name: name.to_owned(),
                matte: matte_size,
                picture,
            }));
        }
        Ok(())
    }

    /// Says of a matte with another frame rate that its pictures are counted.
    fn note_on_rate(&self, name: &str, info: &StreamInfo) -> Option<String> {
        let rates = [info, self.info].map(|info| info.frame_rate.map(|rate| tidy(rate.to_f64())));
        let [Some(matte), Some(input)] = rates else {
            return None;
        };
        (matte != input && info.frames != Some(1)).then(|| {
            format!(
                "the matte {name} has {matte} frames/s and the input {input}: each frame takes the next \
                 picture of the matte, whenever that is shown"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_where_they_say_or_with_their_frames() {
        let read = |start: &str, end: &str, duration: &str, frames: Option<u64>| {
            let point = |text: &str| (!text.is_empty()).then(|| text.parse::<Point>().unwrap());
            ends(TimeRange::new(point(start), point(end), point(duration), frames).unwrap())
        };
        let at = |text: &str| End::At(text.parse().unwrap());
        for (start, end, duration, frames, expected) in [
            ("", "", "", None, (End::Input, End::Input)),
            ("3", "", "", None, (at("3"), End::Input)),
            ("3", "5", "", None, (at("3"), at("5"))),
            ("3", "9f", "", None, (at("3"), at("9f"))),
            ("", "", "2", None, (End::Input, at("2"))),
            ("3", "", "2", None, (at("3"), at("5"))),
            ("3", "", "9f", None, (at("3"), End::Frame)),
            ("3f", "", "9f", None, (at("3f"), at("12f"))),
            ("3f", "", "2", None, (at("3f"), End::Frame)),
            ("", "", "", Some(7), (End::Input, at("7f"))),
            ("3f", "", "", Some(7), (at("3f"), at("10f"))),
            ("3", "", "", Some(7), (at("3"), End::Frame)),
            ("3", "5", "", Some(7), (at("3"), End::Frame)),
            ("3", "", "2", Some(7), (at("3"), End::Frame)),
        ] {
            let found = read(start, end, duration, frames);
            assert_eq!(found, expected, "{start} {end} {duration} {frames:?}");
        }
    }
}
