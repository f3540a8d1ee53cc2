//! One input with its output and the options: checks before anything is opened.

use super::{FilterArguments, is_page};
use crate::cli::Failure;
use crate::cli::endpoint::{
    FileChoice, Files, Input, Output, WrittenFiles, check_distinct, identity, is_file_of_end,
    names_same_file, open_written_identity, parent, written_identity,
};
use crate::cli::options::region::{self, Run};
use crate::cli::process::interrupt::{OnInterrupt, Policy};
use framepipe::engine::region::End;
use framepipe::pipeline::Stop;
use framepipe::sink::hashes::FrameLog;
use framepipe::source::StreamInfo;
use framepipe::source::images::listing::Selection;
use framepipe::source::range::{Point, TimeRange};
use framepipe::source::video::VideoSourceOptions;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// One input, one output, and the options.
pub(super) struct Single<'a> {
    pub(super) arguments: &'a FilterArguments,
    pub(super) input: Input,
    pub(super) output: Output,
    /// Messages are kept for later while other jobs run.
    kept: Option<Mutex<Vec<String>>>,
    /// The frames that are written, where the user or a part's record wants to know of them.
    pub(super) log: Option<Arc<FrameLog>>,
}

impl<'a> Single<'a> {
    /// The only job.
    pub(super) fn new(arguments: &'a FilterArguments, input: Input, output: Output) -> Single<'a> {
        let container = arguments.encoding.format.as_deref();
        Single {
            arguments,
            output: output.with_container(container).for_input(&input),
            input,
            kept: None,
            log: match &arguments.piece {
                Some(piece) => Some(piece.log.clone()),
                None => arguments.frame_hashes.is_some().then(Arc::default),
            },
        }
    }

    /// One of several jobs, which prints nothing before it has ended.
    pub(super) fn of_several(arguments: &'a FilterArguments, input: Input, output: Output) -> Single<'a> {
        Single {
            kept: Some(Mutex::default()),
            ..Single::new(arguments, input, output)
        }
    }

    /// True for a job of several.
    pub(super) fn is_of_several(&self) -> bool {
        self.kept.is_some()
    }

    /// Prints to stderr unless the run is quiet, of several jobs when this one has ended.
    pub(super) fn say(&self, text: &str) {
        match &self.kept {
            None => self.arguments.print(text),
            Some(kept) => kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(text.to_owned()),
        }
    }

    /// The kept messages.
    pub(super) fn said(&self) -> Vec<String> {
        let kept = self.kept.as_ref().map(Mutex::lock);
        kept.map_or_else(Vec::new, |kept| {
            std::mem::take(&mut *kept.unwrap_or_else(PoisonError::into_inner))
        })
    }

    /// Refuses impossible combinations, before anything is opened.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.arguments.engine.check()?;
        if self.arguments.engine.keep_on_card && self.output != Output::Null {
            return Err(Failure::Usage(
                "--keep-on-card is for null:, which reads no result; leave it out".to_owned(),
            ));
        }
        self.check_ends()?;
        let has_workers = self.input.is_images()
            || self.output.is_images()
            || matches!(self.input, Input::Raw(..) | Input::Synthetic(_));
        if self.arguments.workers.is_some() && !has_workers {
            return Err(Failure::Usage(
                "--workers is for image files and raw frames, and neither input nor output is such; \
                 --decoder-threads and --encoder-threads are for videos"
                    .to_owned(),
            ));
        }
        self.arguments.trace.check()?;
        for report in &self.arguments.reports {
            if !is_page(report) && report.extension().unwrap_or_default() != "json" {
                return Err(Failure::Usage(format!(
                    "--report {}: the name must end in .json or .html",
                    report.display()
                )));
            }
        }
        let own: Vec<(&str, &Path)> = self.own_files().collect();
        for (n, &(noun, path)) in own.iter().enumerate() {
            self.check_own(noun, path)?;
            if let Some((read, _)) = self.read_files().find(|(_, file)| names_same_file(file, path)) {
                return Err(Failure::Usage(format!(
                    "{} is both {read} and {noun}; choose another name",
                    path.display()
                )));
            }
            let is_same = |before: &Path| {
                let id = written_identity(path);
                names_same_file(before, path) || id.is_some() && id == written_identity(before)
            };
            if let Some((first, _)) = own[..n].iter().find(|(_, before)| is_same(before)) {
                let path = path.display();
                return Err(Failure::Usage(match *first == noun {
                    true => format!("{path} is named twice as a {noun}; choose another name"),
                    false => format!("{path} is both {first} and {noun}; choose another name"),
                }));
            }
        }
        self.check_streams()
    }

    /// Refuses lines of text in the midst of the output or of another file that the run writes.
    fn check_streams(&self) -> Result<(), Failure> {
        if self.arguments.frame_hashes.is_some() && self.arguments.hashes_file().is_none() {
            let stdout = open_written_identity(io::stdout());
            let noun = match self.output.is_stdout() {
                true => Some("output"),
                false => self.written_as(stdout),
            };
            if let Some(noun) = noun {
                return Err(Failure::Usage(format!(
                    "--frame-hashes -: standard output is the {noun}; name a file"
                )));
            }
        }
        let Some(form) = self.arguments.progress else {
            return Ok(());
        };
        let noun = match self.output.is_stdout() && form.descriptor() == 1 {
            true => Some("output"),
            false => self.written_as(form.written_identity()),
        };
        let stream = match form.descriptor() {
            1 => "standard output",
            2 => "standard error",
            _ => "this file descriptor",
        };
        match noun {
            Some(noun) => Err(Failure::Usage(format!(
                "--progress {form}: {stream} is the {noun}; choose another descriptor, such as json:3 with \
                 3> progress.jsonl"
            ))),
            None => Ok(()),
        }
    }

    /// What an open stream, by its device and inode, is written as: the output or another file of the run.
    fn written_as(&self, stream: Option<(u64, u64)>) -> Option<&'static str> {
        let stream = stream?;
        if self.output.written_identity() == Some(stream) {
            return Some("output");
        }
        let mut own = self.own_files();
        own.find_map(|(noun, path)| (written_identity(path) == Some(stream)).then_some(noun))
    }

    /// The files that a run writes beside its output, and what each is.
    fn own_files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let others = [
            ("trace", self.arguments.trace.trace.as_deref()),
            ("list of hashes", self.arguments.hashes_file()),
        ];
        let others = (others.into_iter()).filter_map(|(noun, path)| Some((noun, path?)));
        let reports = self
            .arguments
            .reports
            .iter()
            .map(|path| ("report", path.as_path()));
        reports.chain(others)
    }

    /// The files that a run reads beside its input, and what each is.
    fn read_files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let masks = self
            .arguments
            .filtering
            .mask_files()
            .map(|file| ("mask file", file));
        masks.chain(self.arguments.region.files())
    }

    /// Refuses an input and an output that do not go together, or not with the options.
    pub(super) fn check_ends(&self) -> Result<(), Failure> {
        self.output.check(&self.arguments.encoding)?;
        self.arguments
            .decoding
            .check(&self.input, &self.arguments.engine)?;
        self.output.check_extension(&self.input)?;
        let target = self.output.path().filter(|_| !self.output.is_stdout());
        for (noun, file) in self.read_files() {
            if let Some(path) = target.filter(|path| names_same_file(path, file)) {
                return Err(Failure::Usage(format!(
                    "{} is both {noun} and output; choose another output",
                    path.display()
                )));
            }
        }
        self.arguments
            .region
            .check(&self.input, Some(&self.output), self.arguments.filtering.fields)?;
        check_distinct(&self.input, &self.output)
    }

    /// Refuses a file to be written that is the input or the output as well.
    fn check_own(&self, noun: &str, path: &Path) -> Result<(), Failure> {
        let is_written = |id| self.output.written_identity() == Some(id);
        if self
            .output
            .path()
            .is_some_and(|output| is_file_of_end(output, io::stdout(), path))
            || written_identity(path).is_some_and(is_written)
        {
            return Err(Failure::Usage(format!(
                "{} is both output and {noun}; choose another name",
                path.display()
            )));
        }
        if let Input::Video(input) | Input::Images(input) | Input::Raw(_, input) | Input::Y4m(input) =
            &self.input
            && is_file_of_end(input, io::stdin(), path)
        {
            return Err(Failure::Usage(format!(
                "{} is both input and {noun}; choose another name",
                path.display()
            )));
        }
        Ok(())
    }

    /// Refuses to write over a file that the run reads, now that the image files of the input are listed.
    pub(super) fn check_written(&self, files: Option<&Files>) -> Result<(), Failure> {
        let written = WrittenFiles::new(&self.output, files, self.first_written()?)?;
        if !written.replaces_any() && self.own_files().next().is_none() {
            return Ok(());
        }
        let mattes = self.arguments.region.matte_files();
        let read: Vec<(&str, &Path)> = (self.input.files_read(files))
            .chain(self.read_files())
            .chain(mattes.iter().map(|file| ("matte", file.as_path())))
            .collect();
        written.check_read(read.iter().copied())?;
        for (noun, path) in self.own_files() {
            let own = identity(path);
            let is_same = |file: &Path| own.is_some() && identity(file) == own;
            let first = match read.iter().find(|(_, file)| is_same(file)) {
                Some((first, _)) => first,
                None if written.has(path) => "output",
                None => continue,
            };
            return Err(Failure::Usage(format!(
                "{} is both {first} and {noun}; choose another name",
                path.display()
            )));
        }
        Ok(())
    }

    /// The folders in which files of this run are made.
    pub(super) fn folders(&self) -> BTreeSet<PathBuf> {
        let own = self.own_files().map(|(_, file)| parent(file).to_owned());
        own.chain(self.output.folder()).collect()
    }

    /// The run that a matte belongs to.
    pub(super) fn matte_run<'b>(
        &'b self,
        info: &'b StreamInfo,
        files: Option<&'b Files>,
        stop: &'b Stop,
    ) -> Result<Run<'b>, Failure> {
        let chooses_files = !self.selection().is_all() || self.arguments.skip_existing;
        Ok(Run {
            input: &self.input,
            info,
            reading: &self.arguments.reading,
            files,
            read: match chooses_files {
                true => (End::Frame, End::Frame),
                false => region::ends(self.arguments.range.times(&self.input)?),
            },
            stop,
        })
    }

    /// True if a run of `range` takes every frame of the input.
    pub(super) fn takes_all(&self, range: TimeRange) -> bool {
        range.is_all() && self.selection().is_all() && !self.arguments.skip_existing
    }

    /// Which image files are to be read.
    pub(super) fn selection(&self) -> Selection {
        let frames = self.arguments.range.selection(&self.input);
        Selection {
            first: self
                .arguments
                .start_number
                .filter(|_| self.input.is_pattern())
                .or(frames.first),
            ..frames
        }
    }

    /// Which of the image files, and how.
    pub(super) fn file_choice(&self) -> Result<FileChoice<'_>, Failure> {
        let of_images = [
            (self.arguments.skip_existing, "--skip-existing"),
            (self.arguments.keep_going, "--keep-going"),
        ];
        self.input.check_name(&self.arguments.reading.options(None))?;
        for (given, option) in of_images {
            if given && !(self.input.is_images() && self.output.is_images()) {
                return Err(Failure::Usage(format!(
                    "{option} is for image files that become image files, one by one"
                )));
            }
        }
        let mut range = match &self.arguments.piece {
            Some(piece) => piece.range,
            None => self.arguments.range.times(&self.input)?,
        };
        let is_behind = matches!(range.start, Some(Point::Time(start)) if start > 0);
        range.counts_all = is_behind && self.arguments.region.goes_by_number();
        Ok(FileChoice {
            selection: self.selection(),
            listed: None,
            range,
            seams: self.arguments.piece.as_ref().map(|piece| piece.seams.clone()),
            keep_going: self.arguments.keep_going,
            missing_in: self.arguments.skip_existing.then_some(&self.output),
            first_written: self.first_written()?,
            floats: self.arguments.encoding.floats(),
            background: self.arguments.encoding.background,
            is_matte: false,
        })
    }

    /// The number of the first image file that is written, if the files that are read have no numbers.
    pub(super) fn first_written(&self) -> Result<Option<i64>, Failure> {
        if let Some(piece) = &self.arguments.piece {
            return Ok(piece.first_number);
        }
        match self.arguments.start_number {
            Some(_) if self.input.is_pattern() => Ok(None),
            Some(_) if !self.output.is_numbered() => Err(Failure::Usage(
                "--start-number is for image files with numbers in their names, and neither input nor output \
                 is such"
                    .to_owned(),
            )),
            Some(_) if self.input.is_images() && !self.output.is_pattern() => Err(Failure::Usage(format!(
                "--start-number is for names with numbers, and image files in {} keep their own names; \
                 write a pattern, such as %05d.png",
                self.output
            ))),
            start => Ok(start),
        }
    }

    /// Threads of the decoder; `None` leaves the number to it. A video encoder works several times as long on
    /// a frame as the decoder, on all cores, so that a decoder with as many threads only takes turns with it:
    /// half of them do.
    pub(super) fn decoder_threads(&self) -> Option<usize> {
        let encodes = matches!((&self.input, &self.output), (Input::Video(_), Output::Video(_)));
        self.arguments.reading.decoder_threads(encodes)
    }

    /// How `range` of a video is read. Of a card's decoders frames go to the engine as they are, so that they
    /// are taken by themselves only where nothing but the card looks at a frame.
    pub(super) fn reading_options(&self, range: TimeRange, stop: Option<&Stop>) -> VideoSourceOptions {
        let goes_straight = !self.arguments.filtering.fields
            && !self.arguments.region.is_given()
            && !self.arguments.comparison.is_given()
            && self.arguments.piece.is_none();
        let mut options = self.arguments.reading.options(self.decoder_threads());
        options.decoders = self.arguments.decoding.decoders(
            &self.arguments.engine,
            goes_straight && !self.arguments.reading.untrusted,
            self.arguments.filtering.chain(),
            range,
        );
        options.stop = stop.map(|stop| stop.abandoned().clone());
        options
    }

    /// The effect of a signal on the output.
    pub(super) fn interrupt_policy(&self) -> Policy {
        Policy {
            wanted: self.arguments.on_interrupt.or(self
                .arguments
                .reading
                .untrusted
                .then_some(OnInterrupt::Discard)),
            replaces: self.arguments.encoding.overwrite && self.output.path().is_some_and(Path::is_file),
        }
    }
}
