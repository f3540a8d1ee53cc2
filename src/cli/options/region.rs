//! The part of each picture that is filtered: regions, a matte, or the rest.

use super::reading::{RangeArguments, ReadingArguments};
use crate::cli::Failure;
use crate::cli::endpoint::{FileChoice, Input, Output, check_distinct, check_files};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use framepipe::engine::region::{self, Clock, Parts, Period, Region, RegionError};
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::Chain;
use framepipe::frame::{Rational, Turn};
use framepipe::pipeline::{MatteReader, Stop};
use framepipe::source::images::listing::Selection;
use framepipe::source::range::{self, Point, TimeRange};
use framepipe::source::{self, AnySource, StreamInfo};
use std::path::{Path, PathBuf};

/// The part of each picture that is filtered.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Region")]
pub(crate) struct RegionArguments {
    /// Filter this rectangle only and leave the rest as it is, bit for bit: 200x100+10+20 is 200 columns and
    /// 100 rows behind the first 10 and below the first 20, of the picture as it is shown, turned as its
    /// file says. '0:05..0:08 200x100+10+20 -> 300x100+400+20' is there from 0:05 on and before 0:08, and
    /// moves and grows meanwhile. Repeat it for several.
    #[arg(long, value_name = "[T0..T1] WxH+X+Y [-> WxH+X+Y]")]
    region: Vec<Region>,
    /// Filter the rectangles of this file, written as for --region, one a line; # begins a comment. Times
    /// count from the beginning of the input, also behind --start.
    #[arg(long, value_name = "FILE")]
    regions: Option<PathBuf>,
    /// Filter as much as this gray picture, video or folder says in each pixel: nothing where it is black,
    /// all where it is white, mixed between; it lies on the picture as both are shown. One picture is for all
    /// frames; --start and --end cut others along with the input.
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

    /// Refuses impossible combinations, before anything is opened. `fields` and `skips` are true with
    /// --fields and with --skip-existing.
    pub(crate) fn check(
        &self,
        input: &Input,
        output: &Output,
        fields: bool,
        skips: bool,
    ) -> Result<(), Failure> {
        let refuse = |text: String| Err(Failure::Usage(text));
        let option = match (&self.matte, self.region.is_empty(), &self.regions) {
            (Some(_), _, _) => "--matte",
            (_, false, _) => "--region",
            (_, _, Some(_)) => "--regions",
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
        if skips && (self.regions.is_some() || self.matte.is_some()) {
            return refuse(format!(
                "{option} goes along with the frames of the input, and --skip-existing leaves some out; give \
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
        (self.matte.as_ref()).map_or(Ok(()), |matte| check_distinct(matte, output))
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

    /// Files that the confined process reads besides the input.
    pub(crate) fn reads(&self) -> Vec<PathBuf> {
        self.matte.as_ref().map_or_else(Vec::new, Input::reads)
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
                    Some(Point::Time(nanos)) => (range::tick_at(nanos, base), 0),
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
        parts.stream_turn = Turn::of_blocks(&run.info.side_data);
        if let Some(matte) = &self.matte {
            parts.matte = Some(Box::new(run.open(matte)?));
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

/// The run that a matte belongs to.
pub(crate) struct Run<'a> {
    pub(crate) input: &'a Input,
    /// What is written, and the first number in its names, if that is chosen.
    pub(crate) output: (&'a Output, Option<i64>),
    pub(crate) info: &'a StreamInfo,
    pub(crate) range: &'a RangeArguments,
    pub(crate) reading: &'a ReadingArguments,
    /// The choice of image files, if the input has any.
    pub(crate) selection: Selection,
    pub(crate) stop: &'a Stop,
}

impl Run<'_> {
    /// Opens a matte for the frames of the input.
    fn open(&self, matte: &Input) -> Result<MatteReader, Failure> {
        let mut options = self.reading.options(None);
        options.stream = None;
        if matches!(matte, Input::Video(_)) {
            options.threads = self.reading.decoder_threads(true);
        }
        let is_single = matte.is_images() && matte.path().is_some_and(Path::is_file);
        let (mut selection, mut range) = (Selection::default(), TimeRange::default());
        if !is_single {
            range = self.range.times(self.input)?;
            match (self.input.is_images(), matte.is_images()) {
                (true, true) => selection = self.selection,
                (true, false) if !self.selection.is_all() => {
                    return Err(Failure::Usage(
                        "--frames and --start-number choose image files; a matte that goes along with them \
                         is image files, too"
                            .to_owned(),
                    ));
                }
                _ => {}
            }
        }
        let choice = FileChoice {
            selection,
            range,
            is_matte: true,
            ..FileChoice::default()
        };
        let rate = self.info.frame_rate.filter(|_| matte.is_images());
        let opened = matte.open(rate, &options, &choice)?;
        if let Some(files) = &opened.files {
            check_files(files, self.output.0, self.output.1)?;
        }
        let source = source::floats::watched_matte(opened.source, matte.name())?;
        let info = source.info();
        self.reading.check_size(&matte.name(), info)?;
        // Image files state their turn with each frame, and only then can sizes be compared.
        let shown = |info: &StreamInfo| {
            let turn = Turn::of_blocks(&info.side_data).unwrap_or(Turn::UPRIGHT);
            turn.shown_size((info.width, info.height))
        };
        let (matte_size, picture) = (shown(info), shown(self.info));
        let is_turned = (matte_size.1, matte_size.0) == picture;
        if info.uniform && self.info.uniform && matte_size != picture && !is_turned {
            return Err(Failure::usage(&RegionError::Size {
                name: matte.name(),
                matte: matte_size,
                picture,
            }));
        }
        Ok(MatteReader::new(source, matte.name(), self.stop.clone()))
    }
}
