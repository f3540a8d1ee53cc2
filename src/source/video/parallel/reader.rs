//! A decoder that reads stretches of a video.
//!
//! ```text
//!   packets   K p p p p p K b b p p p ...       K key frame, b leading picture: shown before K
//!   stretch   [---------)                       all that is shown before the next K
//!   fed       K p p p p p K b b | flush         because leading pictures need both K
//!   fed       K p p p p p | K p p ..            H.264 on the card, at IDR pictures, which have none
//! ```
//!
//! FFmpeg makes the card's H.264 decoder anew after each flush, which takes a tenth of a second and stops all
//! others. So there stretches follow one another without one, and pictures are known by their times.

#[cfg(feature = "cuda")]
use super::Consent;
use super::stretches::{Read, Reader, Span};
use super::{Decoders, Place};
#[cfg(feature = "cuda")]
use crate::frame::Buffer;
use crate::frame::{Frame, FramePool, Layout, Pageable};
use crate::media::ffmpeg::Received;
#[cfg(feature = "cuda")]
use crate::media::ffmpeg::{AvFormat, Decoder, HardwareDevice, OnCard, Picture};
use crate::source::video::findings::Steps;
use crate::source::video::seeking::Skip;
use crate::source::video::{ReadState, VideoSource, VideoSourceOptions};
use crate::source::{SourceError, StreamInfo, Supply};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "cuda")]
use crate::engine::cuda::decode::{self, Codec, DecoderCard, DecoderStream, Surface};

/// Codecs whose key frames are followed by no picture that is shown before them.
const WITHOUT_LEADING: [&str; 3] = ["vp8", "vp9", "av1"];

/// Decoders on the card beside one for each of its engines: it prepares while the others work.
#[cfg(feature = "cuda")]
const MORE_THAN_ENGINES: usize = 1;

/// Bytes of waiting frames in the host's memory.
const HOST_MEMORY: u64 = 1 << 30;

/// What is wrong where a stretch does not begin or end where the key frames were found.
const MOVED: &str = "a key frame is not where it was";

/// Frames of one reader that are on their way at a time, at most; far more than a stretch holds.
const MOST_FRAMES: usize = 4096;

/// Where readers decode.
#[derive(Clone)]
pub(super) enum Reading {
    OnCpu,
    #[cfg(feature = "cuda")]
    OnCards {
        /// At least one; readers take them in turn.
        cards: Vec<DecoderCard>,
        /// How many readers keep all their engines busy, or have read what is wanted before more of them have
        /// started.
        count: usize,
    },
}

impl Reading {
    /// Why an open video cannot be read where `decoders` work, as far as is known without asking a card.
    pub(super) fn check(front: &VideoSource, decoders: &Decoders) -> Result<(), String> {
        match &decoders.place {
            Place::Cpu if front.info.brings_memory => Ok(()),
            Place::Cpu => Err("its pictures are converted".to_owned()),
            #[cfg(feature = "cuda")]
            Place::Cards(_) => Reading::codec_of_cards(front).map(drop),
            #[cfg(not(feature = "cuda"))]
            Place::Cards(_) => Err("this framepipe was built without CUDA".to_owned()),
        }
    }

    /// What reads `part` of an open video that passed [`Reading::check`], or why a card does not.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(unused_variables, reason = "only cards are asked about")
    )]
    pub(super) fn new(
        front: &VideoSource,
        decoders: &Decoders,
        part: &StreamInfo,
    ) -> Result<Reading, String> {
        match &decoders.place {
            #[cfg(feature = "cuda")]
            Place::Cards(ordinals) => Reading::on_cards(front, part, ordinals, decoders.consent.as_ref()),
            _ => Ok(Reading::OnCpu),
        }
    }

    /// The codec that cards know an open video's by, or why they do not decode it.
    #[cfg(feature = "cuda")]
    fn codec_of_cards(front: &VideoSource) -> Result<Codec, String> {
        let name = front.decoder.codec_name();
        let Some(codec) = Codec::from_name(&name) else {
            return Err(format!("no card decodes {name} to the bit"));
        };
        if front.decoder.reads_alpha() {
            return Err("a card decodes no alpha".to_owned());
        }
        if front.findings.strict {
            return Err("--strict looks for damage, which a card does not report".to_owned());
        }
        decode::shift_for(front.info.format).map_err(|e| e.to_string())?;
        Ok(codec)
    }

    #[cfg(feature = "cuda")]
    fn on_cards(
        front: &VideoSource,
        part: &StreamInfo,
        ordinals: &[usize],
        consent: Option<&Consent>,
    ) -> Result<Reading, String> {
        let codec = Reading::codec_of_cards(front)?;
        let name = front.decoder.codec_name();
        let format = front.info.format;
        // Whatever follows starts the driver.
        consent.map_or(Ok(()), |consent| consent.0(part))?;
        let depth = format.depth();
        let (width, height) = (front.info.width, front.info.height);
        let (mut cards, mut engines) = (Vec::new(), 0);
        for &ordinal in ordinals {
            let caps = decode::capabilities(ordinal, codec, depth)?;
            let (least, most) = (caps.least, caps.most);
            if !(least.0..=most.0).contains(&width) || !(least.1..=most.1).contains(&height) {
                return Err(format!(
                    "the card decodes {name} from {}x{} to {}x{} pixels",
                    least.0, least.1, most.0, most.1
                ));
            }
            cards.push(DecoderCard::open(ordinal, format, (width, height)).map_err(|e| e.to_string())?);
            engines += caps.engines;
        }
        if cards.is_empty() {
            return Err("there is no card".to_owned());
        }
        let usual = engines + MORE_THAN_ENGINES * cards.len();
        let known = part.decoding_cost.zip(part.frames);
        let count = known.map_or(usual, |(cost, frames)| cost.decoders(frames, usual));
        Ok(Reading::OnCards { cards, count })
    }

    /// Where its readers work, for a sentence.
    pub(super) fn place(&self) -> String {
        match self {
            Reading::OnCpu => "CPU".to_owned(),
            #[cfg(feature = "cuda")]
            Reading::OnCards { cards, .. } if cards.len() > 1 => format!("{} cards", cards.len()),
            #[cfg(feature = "cuda")]
            Reading::OnCards { .. } => "card".to_owned(),
        }
    }

    /// True if its frames come in a card's memory.
    pub(super) fn is_on_card(&self) -> bool {
        !matches!(self, Reading::OnCpu)
    }

    /// Where reader `number` works, for a report.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(unused_variables, reason = "only cards take turns")
    )]
    pub(super) fn name(&self, number: usize) -> String {
        match self {
            Reading::OnCpu => "CPU".to_owned(),
            #[cfg(feature = "cuda")]
            Reading::OnCards { cards, .. } => format!("card {}", cards[number % cards.len()].ordinal()),
        }
    }

    /// How many readers it takes where the user says nothing.
    pub(super) fn usual_count(&self) -> usize {
        match self {
            Reading::OnCpu => std::thread::available_parallelism().map_or(1, usize::from),
            #[cfg(feature = "cuda")]
            Reading::OnCards { count, .. } => *count,
        }
    }

    /// Bytes that waiting frames may take where the user says nothing: half of what a card has free. All of
    /// them may come to wait on one card.
    pub(super) fn usual_memory(&self) -> u64 {
        match self {
            Reading::OnCpu => HOST_MEMORY,
            #[cfg(feature = "cuda")]
            Reading::OnCards { cards, .. } => {
                let free = cards.iter().map(|card| card.free_bytes().unwrap_or(0)).min();
                free.map_or(0, |free| free / 2)
            }
        }
    }

    /// Bytes of a frame that waits.
    pub(super) fn frame_bytes(&self, info: &StreamInfo) -> u64 {
        match self {
            Reading::OnCpu => Layout::new(info.format, info.width, info.height, 64)
                .map_or(u64::MAX, |layout| layout.size() as u64),
            #[cfg(feature = "cuda")]
            Reading::OnCards { cards, .. } => cards[0].frame_bytes() as u64,
        }
    }

    /// True if a decoder of `codec` goes from stretch to stretch without a flush.
    pub(super) fn goes_through(&self, codec: &str) -> bool {
        self.is_on_card() && codec == "h264"
    }
}

/// Where the frames of a reader are decoded to.
enum Destination {
    /// The decoder's own pictures; the buffers that hold them have no memory of their own.
    Host(Supply),
    #[cfg(feature = "cuda")]
    Card(DecoderStream),
}

/// A source that reads stretches.
pub(super) struct VideoReader {
    // Pictures go before the stream that they are used on.
    source: VideoSource,
    destination: Destination,
    through: bool,
    has_leading: bool,
    span: Span,
    /// The key frame behind the stretch, whose leading pictures still belong to it, was fed.
    behind: Option<i64>,
    /// Packets of all stretches, each of which begins with a key frame and ends before one.
    packets: Arc<AtomicU64>,
}

impl VideoReader {
    /// Opens a reader of `stream`, which counts the packets of its stretches in `packets`.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(unused_variables, reason = "only cards take turns")
    )]
    pub(super) fn open(
        path: &Path,
        options: &VideoSourceOptions,
        stream: usize,
        (reading, number): (&Reading, usize),
        supply: &Supply,
        packets: Arc<AtomicU64>,
    ) -> Result<VideoReader, SourceError> {
        let options = VideoSourceOptions {
            stream: Some(stream),
            ..options.clone()
        };
        let mut source = VideoSource::open(path, &options)?;
        // Whatever is wrong is for the one decoder to conceal and report.
        source.findings.strict = true;
        source.input.demuxer.watch(&supply.stop);
        let codec = source.decoder.codec_name();
        let through = reading.goes_through(&codec);
        let destination = match reading {
            Reading::OnCpu => {
                source.decoder.decode_into(supply.pool.reserve());
                Destination::Host(Supply {
                    pool: FramePool::new(MOST_FRAMES, Arc::new(Pageable)),
                    stop: supply.stop.clone(),
                })
            }
            #[cfg(feature = "cuda")]
            Reading::OnCards { cards, .. } => {
                let stream = cards[number % cards.len()].stream().map_err(SourceError::other)?;
                decode_on(&mut source, &stream)?;
                Destination::Card(stream)
            }
        };
        Ok(VideoReader {
            source,
            destination,
            through,
            has_leading: !WITHOUT_LEADING.contains(&codec.as_str()),
            span: Span {
                start: None,
                end: None,
            },
            behind: None,
            packets,
        })
    }

    /// Goes to the first packet of the stretch.
    fn seek(&mut self, span: Span) -> Result<(), SourceError> {
        let source = &mut self.source;
        let Some(start) = span.start else {
            source.input.demuxer = source.file.open()?;
            return match source.read_packet(&|| false)? {
                true => Ok(()),
                false => Err(source.file.invalid("it has no packets any more".to_owned())),
            };
        };
        source
            .input
            .demuxer
            .seek(source.input.stream, start)
            .map_err(|e| source.file.lacking(e))?;
        while source.read_packet(&|| false)? {
            if source.input.packet.pts() == Some(start) && source.input.packet.is_key() {
                return Ok(());
            }
        }
        Err(source.file.invalid(MOVED.to_owned()))
    }

    /// Feeds the next packet of the stretch, or its end.
    fn feed(&mut self) -> Result<(), SourceError> {
        let source = &mut self.source;
        if !source.read_packet(&|| false)? {
            return match self.span.end.is_some() && self.behind.is_none() {
                true => Err(source.file.invalid(MOVED.to_owned())),
                false => source.send_end(),
            };
        }
        let shown = source.input.packet.pts();
        if let Some(key) = self.behind {
            if shown.is_none_or(|shown| shown >= key) {
                return source.send_end();
            }
        } else if let (Some(end), Some(shown)) = (self.span.end, shown)
            && shown >= end
            && source.is_key()
        {
            // Where packets of AVI are lost, those behind them come too early.
            if shown != end {
                return Err(source.file.invalid(MOVED.to_owned()));
            }
            if self.through {
                source.input.state = ReadState::Ended;
                return Ok(());
            }
            if !self.has_leading {
                return source.send_end();
            }
            self.behind = Some(shown);
        } else {
            self.packets.fetch_add(1, Ordering::Relaxed);
        }
        source.send_packet()
    }

    /// The frame that the picture becomes.
    fn frame(&mut self) -> Result<Frame, SourceError> {
        let source = &mut self.source;
        // What a picture says of its rotation holds for later ones in order of presentation, which is not
        // known here.
        source.maker.rotation = None;
        match &mut self.destination {
            Destination::Host(supply) => source.frame(supply),
            #[cfg(feature = "cuda")]
            Destination::Card(stream) => frame_on_card(source, stream),
        }
    }
}

impl Reader for VideoReader {
    fn begin(&mut self, span: Span) -> Result<(), SourceError> {
        if !self.through {
            self.source.decoder.flush();
        }
        self.source.picture.clear();
        self.source.held = false;
        self.source.skip = Skip::of_stretch();
        let patched = self.source.decoder.patched();
        self.source.findings.begin_anew(patched);
        self.source.input.state = ReadState::Reading;
        (self.span, self.behind) = (span, None);
        self.seek(span)?;
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.source.send_packet()
    }

    fn end(&mut self) -> Result<(), SourceError> {
        match self.through {
            true => self.source.send_end(),
            false => Ok(()),
        }
    }

    fn read(&mut self) -> Result<Read, SourceError> {
        loop {
            match self.source.decoder.receive(&mut self.source.picture) {
                Ok(Received::Item) => {
                    self.source.note_picture()?;
                    let Some(shown) = self.source.picture.timestamp() else {
                        return Err(self.source.file.invalid("a picture has no time".to_owned()));
                    };
                    return Ok(Read::Frame(self.frame()?, shown));
                }
                Ok(Received::Again) if self.source.input.state == ReadState::Reading => self.feed()?,
                Ok(Received::Again | Received::End) => {
                    let is_at_end = self.source.input.state == ReadState::Draining && self.span.end.is_none();
                    self.source.input.state = ReadState::Ended;
                    if is_at_end {
                        // Steps are looked at where all frames come by.
                        self.source.findings.steps = Steps::default();
                        self.source.check_end()?;
                    }
                    return Ok(Read::NeedsStretch);
                }
                Err(e) => self.source.refused(e)?,
            }
        }
    }

    fn is_behind(&self) -> bool {
        self.through
    }
}

/// Has the source's decoder replaced by one of the card.
#[cfg(feature = "cuda")]
fn decode_on(source: &mut VideoSource, stream: &DecoderStream) -> Result<(), SourceError> {
    let device = HardwareDevice::cuda(stream.handles()).map_err(|e| source.file.lacking(e))?;
    let decoder = Decoder::open_on(&source.input.demuxer, source.input.stream, &device)
        .map_err(|e| source.file.lacking(e))?;
    let codec = source.decoder.codec_name();
    source.decoder = decoder.ok_or_else(|| {
        source
            .file
            .invalid(format!("this FFmpeg decodes no {codec} on cards"))
    })?;
    Ok(())
}

/// The frame that a picture on the card becomes, which stays there.
#[cfg(feature = "cuda")]
fn frame_on_card(source: &mut VideoSource, stream: &mut DecoderStream) -> Result<Frame, SourceError> {
    let fresh = Picture::new().map_err(|e| source.file.lacking(e))?;
    let Some(OnCard {
        format,
        planes,
        pitches,
    }) = source.picture.on_card()
    else {
        return Err(source
            .file
            .invalid("a picture was not decoded on the card".to_owned()));
    };
    let planar = match format.name().as_str() {
        "nv12" => "yuv420p",
        "p010le" => "yuv420p10le",
        "p016le" => "yuv420p12le",
        other => return Err(source.file.invalid(format!("a picture on the card is {other}"))),
    };
    // FFmpeg's old names say the range besides.
    let is_same = source.info.format.name() == planar;
    let coded = if is_same {
        source.maker.coded
    } else {
        AvFormat::from_name(planar).unwrap_or(AvFormat(-1))
    };
    source.check_geometry(coded)?;
    let metadata = source.metadata();
    let surface = Surface { planes, pitches };
    let born = std::time::Instant::now();
    let picture = std::mem::replace(&mut source.picture, fresh);
    let (layout, memory) = stream
        .take(&surface, Box::new(picture))
        .map_err(SourceError::other)?;
    let mut frame = Frame::new(layout, Buffer::unpooled(memory))?;
    (frame.metadata, frame.born) = (metadata, born);
    Ok(frame)
}
