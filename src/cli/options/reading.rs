//! How inputs are read: options of every command with an INPUT.

use crate::cli::Failure;
use crate::cli::endpoint::Input;
use crate::cli::process::limits::count;
use clap::Args;
use framepipe::frame::{Rational, parse_rate};
use framepipe::source::images::listing::Selection;
use framepipe::source::range::{Point, TimeRange};
use framepipe::source::video::VideoSourceOptions;
use framepipe::source::{self, Access, MOST_PIXELS, StreamInfo};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// The most pixels of a frame with `--untrusted`: 12000 by 8000 and a little more.
const UNTRUSTED_PIXELS: u64 = 100_000_000;

/// The longest silence of an input with `--untrusted`.
const UNTRUSTED_PATIENCE: Duration = Duration::from_secs(60);

/// Which frames are read.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct RangeArguments {
    /// Begin with the first frame that is shown at this time or after it: seconds, [HH:]MM:SS.mmm, or 120f
    /// for the frame after the first 120. Sound and subtitles are cut to the same range. Times are those of
    /// the input's clock: a pause before its first frame counts, which MP4, Matroska, NUT and AVI may have,
    /// of up to 10 s; beyond that, and in transport and program streams and in Flash video, it begins with
    /// the first frame or sound.
    #[arg(long, value_name = "T")]
    start: Option<Point>,
    /// End before the first frame that is shown at this time, counted from the beginning of the input's
    /// clock.
    #[arg(long, value_name = "T")]
    end: Option<Point>,
    /// The most time, or with 120f the most frames, counted from the start.
    #[arg(long, value_name = "T", conflicts_with = "end")]
    duration: Option<Point>,
    /// The most frames, as a number. Of image files and the pages of a TIFF file those to read, by their
    /// numbers in a pattern's names, else by their place, counted from 0: 7, 1001-1100, 1001- (to the end),
    /// -1100 (from the beginning), 0-99:2 (every second).
    #[arg(long, value_name = "N|A-B[:STEP]", value_parser = frames, allow_hyphen_values = true)]
    frames: Option<Frames>,
}

/// A choice of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frames {
    /// The most frames, or the number of an image file.
    Number(i64),
    Range(Selection),
}

/// How they are read, and what is taken for granted of the input.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ReadingArguments {
    /// Frames a second of image files, such as 24 or 30000/1001 [default: 25 where the output needs it].
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) fps: Option<Rational>,
    /// Index of the video stream to read [default: the one that a player would show].
    #[arg(long, value_name = "N")]
    pub(crate) stream: Option<usize>,
    /// Fail wherever there would be a warning: at damage, at what is missing, and where a stream or a fact
    /// about the pictures cannot be carried over as it is.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Threads of FFmpeg's decoder [default: as many as there are cores, half of that if a video is encoded;
    /// 16 at most].
    #[arg(long, value_name = "N", value_parser = count)]
    decoder_threads: Option<NonZeroUsize>,
    /// Let FFmpeg open an input as a URL if there is no such file.
    #[arg(long)]
    allow_urls: bool,
    /// Read playlists and lists of files (HLS, DASH, ffconcat, VobSub), and what they name in their own
    /// folder or on their own host.
    #[arg(long)]
    allow_playlists: bool,
    /// Treat the input as a stranger's: the process can read it and write its own outputs, and has no other
    /// files, no network and no programs; links in a folder that lead out of it are refused. It waits a
    /// minute at most, takes 100 million pixels a frame, and leaves nothing behind when it is interrupted.
    /// Linux only; on the CPU unless --engine cuda is given.
    #[arg(long, conflicts_with_all = ["allow_urls", "allow_playlists"])]
    pub(crate) untrusted: bool,
    /// Give up an input, a pipe or a URL, that gives nothing for so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Refuse frames of more pixels, whatever a header claims [default: 2^30].
    #[arg(long, value_name = "N", value_parser = pixels)]
    max_pixels: Option<u64>,
}

/// Reads a number of pixels.
fn pixels(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "write a whole number of pixels in digits, such as 100000000".to_owned())
}

impl RangeArguments {
    /// The number of frames that `--frames N` allows, for inputs other than image files.
    fn most_frames(&self, input: &Input) -> Option<u64> {
        match self.frames {
            Some(Frames::Number(number)) if !input.is_images() => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// The image files to be read.
    pub(crate) fn selection(&self, input: &Input) -> Selection {
        match self.frames {
            Some(Frames::Number(number)) if input.is_images() => Selection {
                first: Some(number),
                last: Some(number),
                step: 1,
            },
            Some(Frames::Range(selection)) => selection,
            _ => Selection::default(),
        }
    }

    /// What `--frames N` means of the image files of `input`, where it might be taken for a number of them.
    pub(crate) fn note_on_place(&self, input: &Input) -> Option<String> {
        let Some(Frames::Number(place @ 1..)) = self.frames.filter(|_| input.is_images()) else {
            return None;
        };
        // The numbers in a pattern's names are what it goes by.
        let first = match place {
            1 => "the first is --frames 0".to_owned(),
            _ => format!("the first {place} are --frames 0-{}", place - 1),
        };
        (!input.is_pattern()).then(|| {
            format!("--frames {place} of image files is the one at place {place}, counted from 0; {first}")
        })
    }

    /// The frames to be read, of any input.
    pub(crate) fn times(&self, input: &Input) -> Result<TimeRange, Failure> {
        TimeRange::new(self.start, self.end, self.duration, self.most_frames(input))
            .map_err(|e| Failure::usage(&e))
    }
}

impl ReadingArguments {
    /// True if an input may be a URL.
    pub(crate) fn allows_urls(&self) -> bool {
        self.allow_urls
    }

    /// The most pixels that a picture of the input may have.
    fn most_pixels(&self) -> u64 {
        self.max_pixels.unwrap_or(if self.untrusted {
            UNTRUSTED_PIXELS
        } else {
            MOST_PIXELS
        })
    }

    /// Refuses larger pictures of the input called `name`.
    pub(crate) fn check_size(&self, name: &str, info: &StreamInfo) -> Result<(), Failure> {
        Ok(source::check_pixels(
            name,
            info.width,
            info.height,
            self.most_pixels(),
        )?)
    }

    /// Threads of a video's decoder: the user's number, else half of the cores if another part needs as many,
    /// else the decoder's own choice.
    pub(crate) fn decoder_threads(&self, shares_cores: bool) -> Option<usize> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let half = shares_cores.then_some(cores.div_ceil(2).min(16));
        self.decoder_threads.map(NonZeroUsize::get).or(half)
    }

    /// Options for reading a video with `threads` decoder threads; with `None` the decoder chooses.
    pub(crate) fn options(&self, threads: Option<usize>) -> VideoSourceOptions {
        let mut options = VideoSourceOptions::default();
        options.stream = self.stream;
        options.strict = self.strict;
        options.threads = threads;
        options.access = Access {
            urls: self.allow_urls,
            playlists: self.allow_playlists,
            max_pixels: Some(self.most_pixels()),
        };
        options.timeout = self.timeout.or(self.untrusted.then_some(UNTRUSTED_PATIENCE));
        options
    }
}

impl Input {
    /// The input's name in sentences.
    pub(crate) fn name(&self) -> String {
        match self {
            Input::Synthetic(spec) => spec.to_string(),
            Input::Y4m(path) | Input::Raw(_, path) | Input::Images(path) | Input::Video(path) => {
                match path == Path::new("-") {
                    true => "standard input".to_owned(),
                    false => path.display().to_string(),
                }
            }
        }
    }
}

/// A number of seconds above zero.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|&s| s > 0.0 && s < 1e9);
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "write a number of seconds above 0, such as 10".to_owned())
}

/// A number of frames, or a range such as 1001-1100:2.
fn frames(text: &str) -> Result<Frames, String> {
    let wrong = || {
        "write N, A-B, A- or -B, with :STEP after a range for every so many, such as 1001-1100:2".to_owned()
    };
    let (range, step) = match text.split_once(':') {
        Some((range, step)) => (
            range,
            step.parse().ok().filter(|&step| step > 0).ok_or_else(wrong)?,
        ),
        None => (text, 1),
    };
    let number = |text: &str| -> Result<Option<i64>, String> {
        match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| wrong()),
        }
    };
    // The dash after the first digits separates both ends; a single number is a range of one.
    let first = range.len()
        - range
            .trim_start_matches(|c: char| c == '-' || c.is_ascii_digit())
            .len();
    let digits = range.find(|c: char| c.is_ascii_digit()).unwrap_or(range.len());
    if first != range.len() || range.is_empty() {
        return Err(wrong());
    }
    let (first, last) = match range[digits..].find('-') {
        Some(dash) => (
            number(&range[..digits + dash])?,
            number(&range[digits + dash + 1..])?,
        ),
        None => match range.strip_prefix('-') {
            Some(last) => (None, number(last)?),
            None if range == text => return number(range)?.map(Frames::Number).ok_or_else(wrong),
            None => (number(range)?, number(range)?),
        },
    };
    if first.zip(last).is_some_and(|(first, last)| last < first) {
        return Err(format!("{range} ends before it begins"));
    }
    Ok(Frames::Range(Selection { first, last, step }))
}
