//! What an encoder and a container can say, found out by trying: frames without content, tagged like the real
//! ones, are encoded with the same settings into memory, read back and compared.
//!
//! Frames are small, since facts do not depend on the size, unless the encoder refuses that, or pixels are
//! not square: MPEG-2 states the aspect of the whole picture, of which it knows four.

use super::container::{Sample, SampleSource, video_of};
use crate::ffmpeg::{
    AvError, AvFormat, Decoder, Demuxer, Encoder, EncoderSetup, Muxer, Packet, Picture, Received,
    picture_facts, rescale,
};
use crate::frame::{Metadata, Rational, SideData};
use crate::sink::ledger::add_stream_blocks;
use std::borrow::Cow;
use std::path::Path;

/// The size of a rehearsal's frames, a size that even H.261 knows.
const SMALL: (usize, usize) = (176, 144);

/// Frames that are written where fewer do not suffice to recognise the file.
const MANY: usize = 12;

/// Seconds from picture to picture, at least, in a trial of times: more than a tick of coarse clocks.
const STEP: f64 = 0.02;

/// An encoder that is open, and options that it left to the container.
pub(super) type Opened = (Encoder, Vec<(String, String)>);

/// What is tried.
pub(super) struct Rehearsal<'a> {
    /// Opens the encoder as the run does.
    pub(super) open: &'a dyn Fn(&EncoderSetup) -> Option<Opened>,
    pub(super) setup: EncoderSetup,
    /// The container's name, if the file's name does not tell.
    pub(super) muxer: Option<&'a str>,
    pub(super) path: &'a Path,
    pub(super) frame_rate: Option<Rational>,
    /// Four letters that mark the codec, if not the container's own choice.
    pub(super) tag: Option<[u8; 4]>,
    /// Blocks of the stream.
    pub(super) blocks: &'a [SideData],
}

/// What came of a rehearsal.
pub(super) enum Read {
    /// What came back.
    Back(Back),
    /// The file can be written, but nothing can be read from it: a stream of bare samples.
    Nothing,
    /// It could not be tried.
    Untried,
    /// There is a video stream, of which FFmpeg's own decoder makes no picture.
    Undecodable,
}

/// Frames that came back.
pub(super) struct Back {
    /// The facts of each one, in order.
    pub(super) facts: Vec<Metadata>,
    /// The pixel format of the first.
    pub(super) format: AvFormat,
    /// The encoder and its packets, if the file was one in memory.
    pub(super) sample: Option<Sample>,
}

impl Rehearsal<'_> {
    /// Writes a frame for each of `frames`, which hold what they say, and reads them back.
    pub(super) fn run(&self, frames: &[&Metadata]) -> Read {
        let square = frames.iter().all(|f| {
            let (num, den) = f.sample_aspect;
            num <= 0 || den <= 0 || num == den
        });
        let real = (self.setup.width, self.setup.height);
        let sizes: &[(usize, usize)] = if square { &[SMALL, real] } else { &[real] };
        let mut outcome = Read::Untried;
        for &size in sizes {
            let Some(written) = self.written(frames, size, (self.step(), 0)) else {
                continue;
            };
            let read = self.read(written);
            if matches!(read, Read::Back(_)) {
                return read;
            }
            // Recognised by content alone, a single frame may be too little.
            let many = frames.iter().chain(frames.last().into_iter().cycle());
            let many: Vec<&Metadata> = many.copied().take(frames.len() + MANY).collect();
            outcome = self
                .written(&many, size, (self.step(), 0))
                .map_or(Read::Untried, |written| self.read(written));
            if !matches!(outcome, Read::Undecodable) {
                break;
            }
        }
        outcome
    }

    /// True if pictures that come after a gap, frames like `frame`, come back after it; `None` if that cannot
    /// be tried.
    pub(super) fn keeps_gap(&self, frame: &Metadata) -> Option<bool> {
        let step = trial_step(self.step(), self.setup.time_base);
        let gap = 4 * MANY as i64 * step;
        let sizes = [SMALL, (self.setup.width, self.setup.height)];
        let (bytes, _) = sizes
            .into_iter()
            .find_map(|size| self.written(&[frame; 2 * MANY], size, (step, gap)))?;
        let demuxer = Demuxer::from_bytes(bytes, &self.name()).ok()?;
        Some(video_span(demuxer)? > gap as f64 * self.setup.time_base.to_f64())
    }

    /// Ticks of the encoder's from frame to frame.
    fn step(&self) -> i64 {
        self.frame_rate.map_or(1, |rate| {
            let one = Rational {
                num: rate.den,
                den: rate.num,
            };
            rescale(1, one, self.setup.time_base).max(1)
        })
    }

    fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// A file in memory, and what it was written from, with so many ticks from frame to frame, and a gap of so many in the middle.
    fn written(
        &self,
        frames: &[&Metadata],
        (width, height): (usize, usize),
        (step, gap): (i64, i64),
    ) -> Option<(Vec<u8>, Sample)> {
        let setup = EncoderSetup {
            width,
            height,
            threads: 1,
            ..self.setup.clone()
        };
        let (mut encoder, left) = (self.open)(&setup)?;
        let mut muxer = Muxer::in_memory(self.muxer, self.path).ok()?;
        let mut packets = Vec::new();
        let mut write = || -> Result<(), AvError> {
            for (key, value) in &left {
                muxer.set(key, value)?;
            }
            let stream = muxer.add_encoded(&encoder, self.tag)?;
            for block in self.blocks {
                muxer.add_side_data(stream, block)?;
            }
            muxer.begin()?;
            let mut packet = Packet::new()?;
            let mut deliver = |packet: &mut Packet| {
                packet.set_duration(step);
                packets.push(packet.duplicate()?);
                muxer.write(packet, stream, setup.time_base)
            };
            for (at, metadata) in frames.iter().enumerate() {
                let mut picture = Picture::allocate(setup.format, width, height)?;
                picture.fill();
                picture.set_colour(setup.colour);
                picture.set_field_order(metadata.field_order);
                for block in &metadata.side_data {
                    picture.add_side_data(block)?;
                }
                let late = if 2 * at < frames.len() { 0 } else { gap };
                picture.set_timing(at as i64 * step + late, metadata.sample_aspect);
                encode(&mut encoder, Some(&picture), &mut packet, &mut deliver)?;
            }
            encode(&mut encoder, None, &mut packet, &mut deliver)
        };
        write()
            .inspect_err(|e| tracing::debug!("the rehearsal at {width}x{height} failed: {e}"))
            .ok()?;
        let bytes = muxer.finish_in_memory().ok()?;
        let sample = Sample {
            from: SampleSource::Encoded(encoder, self.tag),
            packets,
            base: setup.time_base,
        };
        Some((bytes, sample))
    }

    fn read(&self, (bytes, sample): (Vec<u8>, Sample)) -> Read {
        let read = match Demuxer::from_bytes(bytes, &self.name()) {
            Ok(demuxer) => read_back(demuxer, usize::MAX),
            Err(_) => Read::Nothing,
        };
        match read {
            Read::Back(back) => Read::Back(Back {
                sample: Some(sample),
                ..back
            }),
            other => other,
        }
    }
}

/// Ticks of `base` from picture to picture in a trial of times, where it is `step` in the video.
pub(super) fn trial_step(step: i64, base: Rational) -> i64 {
    step.max((STEP / base.to_f64()).ceil() as i64)
}

/// Seconds from the first packet of the first video stream to its last one.
pub(super) fn video_span(mut demuxer: Demuxer) -> Option<f64> {
    let stream = video_of(&demuxer)?;
    let mut packet = Packet::new().ok()?;
    let mut times = Vec::new();
    while demuxer.read(&mut packet).is_ok() {
        if packet.stream() == stream {
            times.extend(packet.dts().or_else(|| packet.pts()));
        }
    }
    let ticks = times.iter().max()? - times.iter().min()?;
    Some(ticks as f64 * demuxer.time_base(stream)?.to_f64())
}

/// The facts of the first `most` frames of the first video stream.
pub(super) fn read_back(mut demuxer: Demuxer, most: usize) -> Read {
    let Some(stream) = video_of(&demuxer) else {
        return Read::Nothing;
    };
    let decoder = match Decoder::open(&demuxer, stream, 1, false) {
        Ok(Some(decoder)) => decoder,
        Ok(None) => return Read::Untried,
        Err(_) => return Read::Undecodable,
    };
    match decoded_facts(&mut demuxer, decoder, stream, most) {
        Some((facts, Some(format))) => Read::Back(Back {
            facts,
            format,
            sample: None,
        }),
        Some(_) => Read::Undecodable,
        None => Read::Untried,
    }
}

/// The facts of each frame, and the first one's pixel format.
fn decoded_facts(
    demuxer: &mut Demuxer,
    mut decoder: Decoder,
    stream: usize,
    most: usize,
) -> Option<(Vec<Metadata>, Option<AvFormat>)> {
    let (mut packet, mut picture) = (Packet::new().ok()?, Picture::new().ok()?);
    let (mut found, mut format) = (Vec::new(), None);
    let mut at_end = false;
    while found.len() < most {
        match decoder.receive(&mut picture) {
            Ok(Received::Item) => {
                let mut metadata = picture_facts(demuxer, stream, &picture);
                add_stream_blocks(&mut metadata, &demuxer.stream_side_data(stream));
                found.push(metadata);
                format.get_or_insert(picture.format());
            }
            Ok(Received::Again) if !at_end => {
                at_end = demuxer.read(&mut packet).is_err();
                if at_end {
                    decoder.send(None).ok()?;
                } else if packet.stream() == stream {
                    // What cannot be decoded is not there.
                    let _ = decoder.send(Some(&packet));
                }
            }
            _ => break,
        }
    }
    Some((found, format))
}

/// Feeds the encoder a picture or the end, and hands on every packet that it has ready.
fn encode(
    encoder: &mut Encoder,
    picture: Option<&Picture>,
    packet: &mut Packet,
    mut write: impl FnMut(&mut Packet) -> Result<(), AvError>,
) -> Result<(), AvError> {
    loop {
        let taken = match encoder.send(picture) {
            Ok(()) => true,
            Err(e) if e.is_again() => false,
            Err(e) => return Err(e),
        };
        while encoder.receive(packet)? == Received::Item {
            write(packet)?;
        }
        if taken {
            return Ok(());
        }
    }
}
