//! Frames on their way in: brought to floating-point samples where these are requested, and watched for
//! samples that are no numbers.
//!
//! NaN and infinity pass through every sum that they are in, so that a filter spreads them as far as its mask
//! reaches. Nobody changes them here; the run says at its end how many came in.

use crate::frame::{Buffer, Colour, Frame, FramePool, Pageable, PixelFormat, Remarks};
use crate::media::convert::flatten::{Background, flat_format, flatten};
use crate::media::convert::{Converter, colour_after, integers_for};
use crate::source::{AnySource, IndexedSource, Source, SourceError, StreamInfo, Supply};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What becomes of alpha that the requested format does not hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlphaRules {
    /// The colour that frames are laid over.
    pub background: Option<Background>,
    /// A frame whose alpha would be lost is an error.
    pub strict: bool,
}

/// `source` with its frames in format `to`, if one is given, and with a warning about samples that are no
/// numbers, and about alpha that `to` does not hold, at its end.
pub fn watched(
    source: AnySource,
    to: Option<PixelFormat>,
    alpha: AlphaRules,
) -> Result<AnySource, SourceError> {
    let info = source.info();
    let to = to.filter(|&to| !info.uniform || to != info.format);
    watched_as(source, to.map_or(Goal::Same, Goal::Format), None, alpha)
}

/// The same for mattes, which are weights in levels: each frame of floating-point samples becomes one of
/// integers. The warning names them `name`.
pub fn watched_matte(source: AnySource, name: String) -> Result<AnySource, SourceError> {
    watched_as(source, Goal::Levels, Some(name), AlphaRules::default())
}

fn watched_as(
    source: AnySource,
    goal: Goal,
    matte: Option<String>,
    alpha: AlphaRules,
) -> Result<AnySource, SourceError> {
    let info = source.info();
    if !matches!(goal, Goal::Format(_)) && info.uniform && !info.format.is_float() {
        return Ok(source);
    }
    let watch = Watch {
        matte,
        ..Watch::new(info, goal, alpha)?
    };
    Ok(match source {
        AnySource::Indexed(inner) => AnySource::indexed(WatchedFiles { inner, watch }),
        AnySource::Stream(inner) => {
            let pool = FramePool::new(2 + inner.held_buffers(), Arc::new(Pageable));
            AnySource::Stream(Box::new(WatchedStream {
                inner,
                watch,
                pool,
                seen: 0,
            }))
        }
    })
}

/// What frames become.
#[derive(Debug, Clone, Copy)]
enum Goal {
    /// They stay.
    Same,
    /// All have this format.
    Format(PixelFormat),
    /// Floating-point samples become integers, others stay.
    Levels,
}

impl Goal {
    /// The format that frames of `format` get.
    fn of(self, format: PixelFormat, path: &str) -> Result<PixelFormat, SourceError> {
        match self {
            Goal::Format(to) => Ok(to),
            Goal::Levels if format.is_float() => integers_for(format).ok_or_else(|| SourceError::Invalid {
                path: path.to_owned(),
                problem: "holds channels that are no colours; a matte is a picture in gray or RGB".to_owned(),
            }),
            Goal::Same | Goal::Levels => Ok(format),
        }
    }
}

/// What is done with each frame.
struct Watch {
    info: StreamInfo,
    goal: Goal,
    alpha: AlphaRules,
    /// The name of the matte that the frames are, if they are one.
    matte: Option<String>,
    idle: Mutex<Vec<Converter>>,
    samples: AtomicU64,
    frames: AtomicU64,
    /// The number of the first such frame.
    first: AtomicU64,
    /// Samples that became infinite when they were brought to 16 bits.
    beyond_half: AtomicU64,
    /// Samples below 0 or above 1 that became the least or the largest level.
    outside: AtomicU64,
    /// Frames whose alpha was lost.
    without_alpha: AtomicU64,
}

impl Watch {
    fn new(info: &StreamInfo, goal: Goal, alpha: AlphaRules) -> Result<Watch, SourceError> {
        let mut info = info.clone();
        let to = goal.of(info.format, &info.description)?;
        if to != info.format {
            let laid_over = alpha.background.filter(|_| loses_alpha(info.format, to));
            let from = match laid_over {
                Some(_) => {
                    let flat = flat_format(info.format);
                    (flat, colour_after(info.colour, info.format, flat, info.height))
                }
                None => (info.format, info.colour),
            };
            let converter = converter(&info.description, from, to, (info.width, info.height))?;
            info.colour = converter.colour();
            info.description
                .push_str(&format!(", brought from {} to {to}", info.format));
            if let Some(Background([red, green, blue])) = laid_over {
                info.description
                    .push_str(&format!(", alpha laid over #{red:02x}{green:02x}{blue:02x}"));
            }
            info.format = to;
            info.brings_memory = false;
            info.pictures = 0;
        }
        Ok(Watch {
            info,
            goal,
            alpha,
            matte: None,
            idle: Mutex::default(),
            samples: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            first: AtomicU64::new(u64::MAX),
            beyond_half: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            without_alpha: AtomicU64::new(0),
        })
    }

    /// True if all frames of the source are converted.
    fn converts(&self) -> bool {
        matches!(self.goal, Goal::Format(_))
    }

    /// Counts what of the frame, which is number `number`, is no number.
    fn see(&self, frame: &mut Frame, number: u64) {
        let count = frame.no_numbers();
        if count > 0 {
            frame.metadata.has_no_numbers = true;
            self.samples.fetch_add(count, Ordering::Relaxed);
            self.frames.fetch_add(1, Ordering::Relaxed);
            self.first.fetch_min(number, Ordering::Relaxed);
        }
    }

    /// A frame where not all are converted: in memory of its own if this one is.
    fn settled(&self, frame: Frame) -> Result<Frame, SourceError> {
        match self.goal {
            Goal::Levels if frame.format().is_float() => {
                self.converted(frame, Buffer::unpooled(Box::new(Vec::new())))
            }
            _ => Ok(frame),
        }
    }

    /// The frame in the format that is wanted, in `buffer`.
    fn converted(&self, frame: Frame, buffer: Buffer) -> Result<Frame, SourceError> {
        let file = frame.metadata.file.clone();
        let path = || match &file {
            Some(file) => file.display().to_string(),
            None => self.info.description.clone(),
        };
        let to = self.goal.of(frame.format(), &path())?;
        let decoded = frame.decoded;
        let frame = match loses_alpha(frame.format(), to) {
            true => self.without_alpha(frame, to, &path)?,
            false => frame,
        };
        let (format, layout) = (frame.format(), frame.layout());
        let size = (layout.width(), layout.height());
        let is_fit =
            |converter: &Converter| converter.input() == (format, frame.metadata.colour, size.0, size.1);
        let idle = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(is_fit);
            idle.pop()
        };
        let mut converter = match idle {
            Some(converter) => converter,
            None => converter(&path(), (format, frame.metadata.colour), to, size)?,
        };
        let mut converted = converter
            .convert_into(&frame, buffer, 64)
            .map_err(|error| invalid(path(), &error))?;
        converted.decoded = decoded;
        let cut = converter.take_cut();
        converted.metadata.has_no_numbers |= cut.beyond_half > 0;
        self.beyond_half.fetch_add(cut.beyond_half, Ordering::Relaxed);
        self.outside.fetch_add(cut.below + cut.above, Ordering::Relaxed);
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(converter);
        Ok(converted)
    }

    /// A frame whose alpha `to` does not hold: over the background, if there is one, else as it is.
    fn without_alpha(
        &self,
        frame: Frame,
        to: PixelFormat,
        path: &dyn Fn() -> String,
    ) -> Result<Frame, SourceError> {
        if let Some(background) = self.alpha.background {
            return flatten(frame, background).map_err(|error| invalid(path(), &error));
        }
        if frame.is_opaque() {
            return Ok(frame);
        }
        if self.alpha.strict {
            return Err(SourceError::Invalid {
                path: path(),
                problem: format!(
                    "has alpha, which {to} does not hold; without --strict it is filtered without"
                ),
            });
        }
        self.without_alpha.fetch_add(1, Ordering::Relaxed);
        Ok(frame)
    }

    fn warnings(&self) -> Vec<String> {
        let counted = |count: u64, noun: &str| match count {
            1 => format!("1 {noun}"),
            n => format!("{n} {noun}s"),
        };
        let samples = self.samples.load(Ordering::Relaxed);
        let beyond = self.beyond_half.load(Ordering::Relaxed);
        let beyond = (beyond > 0).then(|| {
            format!(
                "{} of the input beyond 65504 became infinite in 16 bits; f32 formats hold them",
                counted(beyond, "sample")
            )
        });
        let outside = self.outside.load(Ordering::Relaxed);
        let outside = self.matte.as_ref().filter(|_| outside > 0).map(|name| {
            format!(
                "{} of the matte {name} below 0 or above 1 {} as 0 or 1",
                counted(outside, "sample"),
                if outside == 1 { "counts" } else { "count" }
            )
        });
        let (of, effect) = match &self.matte {
            None => (
                "the input".to_owned(),
                "so is every result whose mask reaches one of them",
            ),
            Some(name) => (format!("the matte {name}"), "NaN counts as a weight of 0"),
        };
        let none = (samples > 0).then(|| {
            format!(
                "{} in {} of {of}, first in frame {}, {} infinite or no numbers (NaN); {effect}",
                counted(samples, "sample"),
                counted(self.frames.load(Ordering::Relaxed), "frame"),
                self.first.load(Ordering::Relaxed),
                if samples == 1 { "is" } else { "are" }
            )
        });
        let alpha = self.without_alpha.load(Ordering::Relaxed);
        let alpha = (alpha > 0).then(|| {
            format!(
                "the alpha of {} is not kept: {}, which frames are filtered as, has none; a --pixel-format \
                 with alpha keeps it, and --background lays it over a colour",
                counted(alpha, "frame"),
                self.info.format
            )
        });
        none.into_iter()
            .chain(beyond)
            .chain(outside)
            .chain(alpha)
            .collect()
    }
}

/// True if frames of one format have alpha that the other does not hold.
fn loses_alpha(from: PixelFormat, to: PixelFormat) -> bool {
    from.has_alpha() && !to.has_alpha()
}

fn converter(
    path: &str,
    from: (PixelFormat, Colour),
    to: PixelFormat,
    (width, height): (usize, usize),
) -> Result<Converter, SourceError> {
    Converter::new(from, to, width, height).map_err(|error| invalid(path.to_owned(), &error))
}

fn invalid(path: String, error: &dyn std::error::Error) -> SourceError {
    SourceError::Invalid {
        path,
        problem: error.to_string(),
    }
}

fn with_warning(mut remarks: Remarks, watch: &Watch) -> Remarks {
    remarks.warn(watch.warnings());
    remarks
}

struct WatchedFiles {
    inner: Arc<dyn IndexedSource>,
    watch: Watch,
}

impl IndexedSource for WatchedFiles {
    fn info(&self) -> &StreamInfo {
        &self.watch.info
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn prepare(&self) -> Result<(), SourceError> {
        self.inner.prepare()
    }

    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        if !self.watch.converts() {
            let mut frame = self.inner.read(index, buffer)?;
            self.watch.see(&mut frame, index);
            return self.watch.settled(frame);
        }
        let mut frame = self.inner.read(index, Buffer::unpooled(Box::new(Vec::new())))?;
        self.watch.see(&mut frame, index);
        self.watch.converted(frame, buffer)
    }

    fn remarks(&self) -> Remarks {
        with_warning(self.inner.remarks(), &self.watch)
    }
}

struct WatchedStream {
    inner: Box<dyn Source>,
    watch: Watch,
    /// Frames lie here before they are converted.
    pool: FramePool,
    seen: u64,
}

impl Source for WatchedStream {
    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Source> {
        Some(&mut *self.inner)
    }

    fn info(&self) -> &StreamInfo {
        &self.watch.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        let own = Supply {
            pool: self.pool.clone(),
            stop: supply.stop.clone(),
        };
        let converts = self.watch.converts();
        let Some(mut frame) = self.inner.next(if converts { &own } else { supply })? else {
            return Ok(None);
        };
        self.watch.see(&mut frame, self.seen);
        self.seen += 1;
        if !converts {
            return self.watch.settled(frame).map(Some);
        }
        self.watch.converted(frame, supply.take()?).map(Some)
    }

    fn held_buffers(&self) -> usize {
        match self.watch.converts() {
            true => 0,
            false => self.inner.held_buffers(),
        }
    }

    fn remarks(&mut self) -> Remarks {
        with_warning(self.inner.remarks(), &self.watch)
    }
}
