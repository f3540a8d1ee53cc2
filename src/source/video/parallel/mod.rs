//! One video decoded by several decoders: on the card, which has several engines for it, or on the CPU.
//!
//! The file is cut at key frames into stretches ([`stretches`]), each of which one decoder reads. A decoder
//! of the card leaves its pictures there ([`crate::engine::cuda::decode`]).
//!
//! All that is not a clean stretch of a file with an index is left to the one decoder of [`VideoSource`]:
//! `front`, which also knows the stream's facts. It takes over behind the last frame that was given as soon
//! as something is wrong, so that damage is concealed and reported by one decoder as always.

mod reader;
mod stretches;

use super::findings::Steps;
use super::seeking::{KeyFrames, KeyKind, Skip};
use super::{VideoSource, VideoSourceOptions};
use crate::explain::EXPLAIN_TARGET;
use crate::frame::fact::Fact;
use crate::frame::{Frame, Metadata, Rational, Remarks};
use crate::source::steps::range::TimeRange;
use crate::source::{CutRequest, Cuts, Source, SourceError, StreamInfo, Supply};
use crate::wording::counted;
use reader::{Reading, VideoReader};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stretches::{Cutter, Next, Open, Stretches};

/// Frames of a stretch, at least: at each one's end a decoder may make a picture that is not used.
const SHORTEST: f64 = 48.0;

/// Frames that a stretch is taken to have where nothing is known.
const USUAL: usize = 250;

/// Where decoders work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On the CPU, a thread each.
    Cpu,
    /// On the CUDA cards with these numbers, where frames stay; decoders take them in turn.
    Cards(Vec<usize>),
}

/// Several decoders for one file.
#[derive(Debug, Clone)]
pub struct Decoders {
    /// Where they work.
    pub place: Place,
    /// How many; `None` takes as many as there are engines or cores.
    pub count: Option<NonZeroUsize>,
    /// Bytes that frames may take that wait for their turn; `None` takes half of what the card has free (of
    /// several the fullest), or 1 GiB of the host's.
    pub memory: Option<u64>,
    /// What will be read of the video: decoders that are not worth their start for that are not started.
    pub range: TimeRange,
    /// Asked before a card decodes; without it a card decodes whatever it can.
    pub consent: Option<Consent>,
    /// True if the summary is to say why a card does not decode.
    pub is_expected: bool,
}

/// Whether a card is to decode an open video that it can: an error is the end of a sentence about why the CPU
/// does.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "cuda"),
    expect(dead_code, reason = "nothing is asked without cards")
)]
pub struct Consent(Arc<Answer>);

type Answer = dyn Fn(&StreamInfo) -> Result<(), String> + Send + Sync;

impl Consent {
    /// Asks `consent`, which is given what is known of the part of the video that will be read.
    pub fn by(consent: impl Fn(&StreamInfo) -> Result<(), String> + Send + Sync + 'static) -> Consent {
        Consent(Arc::new(consent))
    }

    /// A card decodes what its decoders save more time with than they take to start.
    pub fn if_long() -> Consent {
        Consent::by(|info| {
            let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            match (info.decoding_cost, info.frames) {
                (Some(cost), Some(frames)) if cost.saved_by_card(frames, cores) <= 0.0 => {
                    let frames = counted(frames, "frame");
                    Err(format!(
                        "a card's decoders take longer to start than {frames} here"
                    ))
                }
                _ => Ok(()),
            }
        })
    }
}

impl fmt::Debug for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Consent")
    }
}

/// Opens a video with the decoders that the options name, if it can be read by several: the summary's line
/// says by how many, or why not.
pub fn open(path: &Path, options: &VideoSourceOptions) -> Result<Box<dyn Source>, SourceError> {
    let front = VideoSource::open(path, options)?;
    let Some(decoders) = &options.decoders else {
        return Ok(Box::new(front));
    };
    Ok(match Plan::new(&front, decoders) {
        Ok((plan, ends)) => Box::new(ParallelVideo::new(front, plan, ends, options)),
        Err(reason) => {
            let mut front = front;
            match decoders.place {
                Place::Cards(_) if decoders.is_expected => {
                    let why = format!(", decoded on the CPU: {reason}");
                    front.info.description.push_str(&why);
                }
                Place::Cards(_) => {
                    tracing::info!(target: EXPLAIN_TARGET, "decode: on the CPU, because {reason}");
                }
                // By itself one decoder works; several were asked for.
                Place::Cpu if decoders.count.is_some_and(|count| count.get() > 1) => {
                    front
                        .info
                        .description
                        .push_str(&format!(", by one decoder: {reason}"));
                }
                Place::Cpu => {}
            }
            Box::new(front)
        }
    })
}

/// How a file is to be read.
struct Plan {
    reading: Reading,
    count: usize,
    /// Frames of the first stretch.
    stretch: usize,
    most_waiting: NonZeroUsize,
}

impl Plan {
    /// The plan for an open video, with where it is cut, or why it is not one for several decoders: the end
    /// of a sentence.
    fn new(front: &VideoSource, decoders: &Decoders) -> Result<(Plan, StretchEnds), String> {
        if let Some(obstacle) = front.obstacle(&front.input.demuxer) {
            return Err(format!("it {obstacle}"));
        }
        if front
            .findings
            .damage
            .missing_head(&front.decoder.codec_name(), false)
            .is_some()
        {
            return Err("its first pictures cannot be decoded".to_owned());
        }
        Reading::check(front, decoders)?;
        let rate = front.info.frame_rate.map_or(25.0, Rational::to_f64);
        let mut ends = StretchEnds::new(front).map_err(|e| e.to_string())?;
        let stretch = match ends.end_of(None).map_err(|e| e.to_string())? {
            Some(end) => ((end - ends.first) as f64 * front.info.time_base.to_f64() * rate).ceil() as usize,
            None => front
                .info
                .frames
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(USUAL),
        };
        let stretch = stretch.max(1);
        let stretches_of =
            |frames: Option<u64>| frames.map_or(usize::MAX, |n| (n as usize).div_ceil(stretch).max(1));
        let stretches = stretches_of(front.info.frames);
        let mut part = front.info.clone();
        part.frames = decoders.range.count(&front.info);
        part.decoding_cost = part
            .decoding_cost
            .map(|cost| cost.in_stretches(stretches_of(part.frames)));
        let reading = Reading::new(front, decoders, &part)?;
        let memory = decoders.memory.unwrap_or_else(|| reading.usual_memory());
        let affordable = memory / reading.frame_bytes(&front.info).max(1);
        let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
        let wanted = decoders
            .count
            .map_or_else(|| reading.usual_count(), NonZeroUsize::get);
        let count = wanted.min(stretches).min((affordable / stretch).max(1));
        // A stretch for each decoder and one that is given out; they differ in length.
        let most_waiting = affordable.min((count + 2) * stretch);
        if count < 2 && matches!(decoders.place, Place::Cpu) {
            return Err(match stretches {
                1 => "it has one stretch that can be decoded by itself".to_owned(),
                _ if wanted < 2 => "one decoder is as fast".to_owned(),
                _ => {
                    "frames that wait for their turn would take too much memory (--decoder-memory)".to_owned()
                }
            });
        }
        let plan = Plan {
            reading,
            count,
            stretch,
            most_waiting: NonZeroUsize::new(most_waiting).unwrap_or(NonZeroUsize::MIN),
        };
        Ok((plan, ends))
    }
}

/// A video that several decoders read.
struct ParallelVideo {
    front: VideoSource,
    options: VideoSourceOptions,
    plan: Plan,
    /// The facts of the first picture, as one decoder on the CPU knows them.
    first: Metadata,
    /// Where the first frame that is wanted is.
    start: Option<i64>,
    state: DecodeState,
    /// A frame that was asked for to know whether there is one.
    held: Option<Frame>,
    /// When the frame that came last is shown.
    last: Option<i64>,
    fallen_back: Option<String>,
    /// A card decodes that the user did not ask to, and that is still to be said.
    looks_for_no_damage: bool,
    /// Packets that all readers have read.
    packets: Arc<AtomicU64>,
}

/// Who decodes, which is settled with the first frame that is asked for.
enum DecodeState {
    /// The places to cut at are known as far as the plan needed.
    NotStarted(Box<StretchEnds>),
    Parallel(Stretches),
    /// One decoder, `front`.
    Single,
    Ended,
}

impl ParallelVideo {
    fn new(
        mut front: VideoSource,
        plan: Plan,
        ends: StretchEnds,
        options: &VideoSourceOptions,
    ) -> ParallelVideo {
        let decoders = match plan.count {
            1 => "1 decoder".to_owned(),
            count => format!("{count} decoders"),
        };
        let place = plan.reading.place();
        front
            .info
            .description
            .push_str(&format!(", {decoders} on the {place}"));
        front.info.brings_memory = true;
        front.info.is_single = false;
        front.info.is_on_card = plan.reading.is_on_card();
        front.info.decoders = (0..plan.count).map(|number| plan.reading.name(number)).collect();
        let first = front.metadata();
        let asked = options
            .decoders
            .as_ref()
            .is_some_and(|decoders| decoders.consent.is_none());
        let looks_for_no_damage = front.info.is_on_card && !asked;
        ParallelVideo {
            first,
            front,
            options: VideoSourceOptions {
                threads: Some(1),
                decoders: None,
                ..options.clone()
            },
            plan,
            start: None,
            state: DecodeState::NotStarted(Box::new(ends)),
            held: None,
            last: None,
            fallen_back: None,
            looks_for_no_damage,
            packets: Arc::default(),
        }
    }

    /// Starts the readers.
    fn start(&mut self, mut ends: Box<StretchEnds>, supply: &Supply) -> DecodeState {
        let start = self.start.filter(|&start| start > ends.first);
        let start = match start.map(|start| ends.keys.last_to(start, ends.shortest)) {
            None => None,
            Some(Some(key)) => Some(key).filter(|&key| key != ends.first),
            Some(None) => return self.fall_back("no key frame comes before the range".to_owned()),
        };
        tracing::info!(
            target: EXPLAIN_TARGET,
            "decode: {} on {}, each another stretch of about {} frames; up to {} frames of {:.1} MiB wait",
            self.plan.count, self.plan.reading.place(), self.plan.stretch, self.plan.most_waiting,
            self.plan.reading.frame_bytes(&self.front.info) as f64 / f64::from(1 << 20),
        );
        let readers = (0..self.plan.count).map(|number| {
            let (path, options) = (self.front.file.path.clone(), self.options.clone());
            let (reading, supply) = (self.plan.reading.clone(), supply.clone());
            let (stream, packets) = (self.front.input.stream, Arc::clone(&self.packets));
            let open = move || {
                let reader =
                    VideoReader::open(&path, &options, stream, (&reading, number), &supply, packets)?;
                Ok(Box::new(reader) as Box<dyn stretches::Reader>)
            };
            Box::new(open) as Open
        });
        let stretches = Stretches::start(readers.collect(), ends, start, self.plan.most_waiting);
        // The first picture, which the front has seen, need not be in the range.
        self.front.findings.steps = Steps::default();
        match stretches {
            Ok(stretches) => DecodeState::Parallel(stretches),
            Err(cause) => self.fall_back(cause.to_string()),
        }
    }

    /// Leaves what follows to the one decoder.
    fn fall_back(&mut self, reason: String) -> DecodeState {
        tracing::debug!(path = %self.front.file.name, "one decoder goes on: {reason}");
        match (self.last, self.start) {
            // From the beginning, so that it counts damage and conceals it as always. Frames that come again
            // are passed over.
            (_, None) => self.front.maker.made = 0,
            // It conceals damage as one decoder from the beginning does.
            (Some(last), Some(_)) => self.front.skip = Skip::from_further_back(last + 1),
            (None, Some(start)) => self.front.pass_over(start),
        }
        self.fallen_back = Some(reason);
        DecodeState::Single
    }

    /// The next frame of the readers, or of the front.
    fn upcoming(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        if let Some(frame) = self.held.take() {
            return Ok(Some(frame));
        }
        if let DecodeState::NotStarted(_) = self.state
            && let DecodeState::NotStarted(ends) = std::mem::replace(&mut self.state, DecodeState::Single)
        {
            self.state = self.start(ends, supply);
        }
        if let DecodeState::Parallel(stretches) = &self.state {
            match stretches.next(&|| supply.is_stopped())? {
                Next::Frame(mut frame) => {
                    self.front.maker.carry_rotation(&mut frame.metadata);
                    match self.contradiction(&frame.metadata) {
                        None => return self.accept(frame).map(Some),
                        Some(problem) => self.state = self.fall_back(problem),
                    }
                }
                Next::End => {
                    self.state = DecodeState::Ended;
                    self.front.findings.steps.end();
                    if self.start.is_none() {
                        self.front.check_stretches(self.packets.load(Ordering::Relaxed))?;
                    }
                    return Ok(None);
                }
                Next::Failed(failure) => self.state = self.fall_back(failure.to_string()),
            }
        }
        if !matches!(self.state, DecodeState::Single) {
            return Ok(None);
        }
        loop {
            // On its way to the first frame that is missing, some come again.
            match self.front.next(supply)? {
                Some(frame) if frame.metadata.pts <= self.last && self.last.is_some() => {}
                next => return Ok(next),
            }
        }
    }

    /// Counts a frame of the readers.
    fn accept(&mut self, mut frame: Frame) -> Result<Frame, SourceError> {
        let metadata = &frame.metadata;
        self.front.findings.steps.note(metadata.pts, metadata.duration);
        self.last = metadata.pts;
        frame.sequence = self.front.maker.made;
        self.front.maker.made += 1;
        Ok(frame)
    }

    /// How a decoder's facts of the first picture differ from those of the one on the CPU.
    fn contradiction(&self, found: &Metadata) -> Option<String> {
        if self.last.is_some() || found.pts != self.first.pts {
            return None;
        }
        let blocks = |metadata: &Metadata| {
            let mut blocks: Vec<(u32, Fact)> = metadata
                .side_data
                .iter()
                .map(|block| (block.kind, block.fact))
                .collect();
            blocks.sort_by_key(|&(kind, _)| kind);
            blocks
        };
        let same = found.colour == self.first.colour
            && found.field_order == self.first.field_order
            && found.sample_aspect == self.first.sample_aspect
            && blocks(found) == blocks(&self.first);
        (!same).then(|| "it does not say all that the decoder on the CPU says of a picture".to_owned())
    }

    /// A frame in a buffer of the run's, which bounds how many are on their way.
    fn pooled(frame: Frame, supply: &Supply) -> Result<Frame, SourceError> {
        let (layout, sequence, born) = (*frame.layout(), frame.sequence, frame.born);
        let decoded = frame.decoded;
        let mut buffer = supply.take()?;
        let (metadata, memory) = frame.into_parts();
        buffer.host(Box::new(memory));
        let mut frame = Frame::new(layout, buffer)?;
        (frame.metadata, frame.sequence, frame.born) = (metadata, sequence, born);
        frame.decoded = decoded;
        Ok(frame)
    }
}

impl Source for ParallelVideo {
    fn info(&self) -> &StreamInfo {
        self.front.info()
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        let Some(frame) = self.upcoming(supply)? else {
            return Ok(None);
        };
        if let DecodeState::Single = self.state {
            return Ok(Some(frame));
        }
        let mut frame = ParallelVideo::pooled(frame, supply)?;
        if self.front.may_be_last(&frame) {
            self.held = self.upcoming(supply)?;
            if self.held.is_none() {
                self.front.stretch(&mut frame);
            }
        }
        Ok(Some(frame))
    }

    fn pass_over(&mut self, tick: i64) {
        self.start = Some(tick);
    }

    fn time_of(&mut self, from: i64, number: u64) -> Result<Option<i64>, SourceError> {
        self.front.time_of(from, number)
    }

    fn cuts(&mut self, request: CutRequest) -> Result<Cuts, SourceError> {
        self.front.cuts(request)
    }

    fn remarks(&mut self) -> Remarks {
        let mut remarks = self.front.remarks();
        let name = &self.front.file.name;
        if self.last.is_some() && std::mem::take(&mut self.looks_for_no_damage) {
            remarks.notes.push(format!(
                "{name}: a card decoded it, which does not report damage within a picture; --decoder cpu does"
            ));
        }
        remarks.notes.extend(
            self.fallen_back
                .take()
                .map(|reason| format!("{name}: one decoder on the CPU took over: {reason}")),
        );
        remarks
    }
}

/// Ends each stretch at a key frame.
struct StretchEnds {
    keys: KeyFrames,
    /// When the input's first picture is shown.
    first: i64,
    /// Ticks of the shortest stretch.
    shortest: i64,
}

impl StretchEnds {
    /// H.264 is cut at IDR pictures only: behind a recovery point FFmpeg holds some pictures back until it
    /// has given the first one, and loses them where the stretch ends before that.
    fn new(front: &VideoSource) -> Result<StretchEnds, SourceError> {
        let kind = match front.decoder.codec_name() == "h264" {
            true => KeyKind::Idr,
            false => KeyKind::Clean,
        };
        let frame = front.info.frame_rate.map_or(0.04, |rate| 1.0 / rate.to_f64());
        Ok(StretchEnds {
            keys: KeyFrames::new(front, kind)?,
            first: front.picture.timestamp().unwrap_or(0),
            shortest: (SHORTEST * frame / front.info.time_base.to_f64()) as i64,
        })
    }
}

impl Cutter for StretchEnds {
    fn end_of(&mut self, start: Option<i64>) -> Result<Option<i64>, SourceError> {
        let least = start.unwrap_or(self.first) + self.shortest;
        Ok(self.keys.first_from(least, (least, i64::MAX)))
    }
}
