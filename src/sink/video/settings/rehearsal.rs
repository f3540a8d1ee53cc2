//! What an encoder and a container can say, found out by trying: frames without content, tagged like the real
//! ones, are encoded with the same settings into memory, read back and compared.
//!
//! Frames are small, since facts do not depend on the size, unless the encoder refuses that, the real ones
//! are smaller, or pixels are not square: MPEG-2 states the aspect of the whole picture, of which it knows
//! four.

use crate::frame::{Metadata, Range, Rational, SideData};
use crate::media::convert::written_matrix;
use crate::media::ffmpeg::{
    AvError, AvFormat, Decoder, Demuxer, Encoder, EncoderSetup, Muxer, Packet, Picture, Received, Scaler,
    ScalerEnd, picture_facts, rescale,
};
use crate::sink::ledger::add_stream_blocks;
use crate::sink::video::container::{Sample, SampleSource, video_of};
use std::borrow::Cow;
use std::path::Path;

/// The size of a rehearsal's frames, a size that even H.261 knows.
const SMALL: (usize, usize) = (176, 144);

/// Columns or rows below which some codecs' pictures cannot be read again: those of a block.
const TINY: usize = 16;

/// Frames that are written where fewer do not suffice to recognise the file.
const MANY: usize = 12;

/// Seconds from picture to picture, at least, in a trial of times: more than a tick of coarse clocks.
const STEP: f64 = 0.02;

/// The mean difference of bytes from which on a picture is another one, and not one with losses.
const ANOTHER: u64 = 16;

/// An encoder that is open, and options that it left to the container.
pub(in crate::sink::video) type Opened = (Encoder, Vec<(String, String)>);

/// What is tried.
pub(in crate::sink::video) struct Rehearsal<'a> {
    /// Opens the encoder as the run does.
    pub(in crate::sink::video) open: &'a dyn Fn(&EncoderSetup) -> Option<Opened>,
    pub(in crate::sink::video) setup: EncoderSetup,
    /// The container's name, if the file's name does not tell.
    pub(in crate::sink::video) muxer: Option<&'a str>,
    pub(in crate::sink::video) path: &'a Path,
    pub(in crate::sink::video) frame_rate: Option<Rational>,
    /// Four letters that mark the codec, if not the container's own choice.
    pub(in crate::sink::video) tag: Option<[u8; 4]>,
    /// Blocks of the stream.
    pub(in crate::sink::video) blocks: &'a [SideData],
    /// FFmpeg's name of the codec that the encoder writes.
    pub(in crate::sink::video) codec: &'a str,
    /// Nothing can be read from what the container writes, as it is samples alone or a digest.
    pub(in crate::sink::video) is_bare: bool,
}

/// What came of a rehearsal.
pub(in crate::sink::video) enum Read {
    /// What came back.
    Back(Box<Back>),
    /// The file can be written, but nothing can be read from it: a stream of bare samples.
    Nothing,
    /// It could not be tried.
    Untried,
    /// There is a video stream, of which FFmpeg's own decoder makes no picture.
    Undecodable,
    /// FFmpeg finds no video, or the file does not say of which codec it is.
    Unknown,
}

/// Frames that came back.
pub(in crate::sink::video) struct Back {
    /// The facts of each one, in order.
    pub(in crate::sink::video) facts: Vec<Metadata>,
    /// The pixel format of the first.
    pub(in crate::sink::video) format: AvFormat,
    /// FFmpeg's name of the codec that it takes them for.
    pub(in crate::sink::video) codec: String,
    /// Nominal frames a second.
    pub(in crate::sink::video) rate: Option<Rational>,
    /// The encoder and its packets, if the file was one in memory.
    pub(in crate::sink::video) sample: Option<Sample>,
}

impl Rehearsal<'_> {
    /// Writes a frame for each of `frames`, which hold what they say, and reads them back.
    pub(in crate::sink::video) fn run(&self, frames: &[&Metadata]) -> Read {
        let square = frames.iter().all(|f| {
            let (num, den) = f.sample_aspect;
            num <= 0 || den <= 0 || num == den
        });
        let real = (self.setup.width, self.setup.height);
        let is_tiny = real.0.min(real.1) < TINY;
        let sizes: &[(usize, usize)] = if square && !is_tiny {
            &[SMALL, real]
        } else {
            &[real]
        };
        let mut outcome = Read::Untried;
        for &size in sizes {
            let Some(written) = self.written(frames, size, (self.step(), 0), &uniform) else {
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
                .written(&many, size, (self.step(), 0), &uniform)
                .map_or(Read::Untried, |written| self.read(written));
            if !matches!(outcome, Read::Undecodable | Read::Unknown) {
                break;
            }
        }
        outcome
    }

    /// True if pictures that come after a gap, frames like `frame`, come back after it; `None` if that cannot
    /// be tried.
    pub(in crate::sink::video) fn keeps_gap(&self, frame: &Metadata) -> Option<bool> {
        let step = trial_step(self.step(), self.setup.time_base);
        let gap = 4 * MANY as i64 * step;
        let sizes = [SMALL, (self.setup.width, self.setup.height)];
        let (bytes, _) = sizes
            .into_iter()
            .find_map(|size| self.written(&[frame; 2 * MANY], size, (step, gap), &uniform))?;
        let demuxer = Demuxer::from_bytes(bytes, &self.name()).ok()?;
        Some(video_span(demuxer)? > gap as f64 * self.setup.time_base.to_f64())
    }

    /// Ticks of the encoder's from frame to frame.
    pub(in crate::sink::video) fn step(&self) -> i64 {
        self.frame_rate.map_or(1, |rate| {
            let one = Rational {
                num: rate.den,
                den: rate.num,
            };
            rescale(1, one, self.setup.time_base).max(1)
        })
    }

    /// The size of most of its frames.
    pub(in crate::sink::video) fn small(&self) -> (usize, usize) {
        SMALL
    }

    fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// True if the picture that came `back` is another one, since the file does not say how its samples are
    /// stored, or of which codec they are.
    pub(in crate::sink::video) fn is_misread(&self, frame: &Metadata, back: &Back) -> bool {
        let given = self.setup.format;
        let plain = |format: AvFormat| format.name().replacen("yuvj", "yuv", 1);
        let is_same_codec = back.codec == self.codec;
        if is_same_codec && plain(back.format) == plain(given) {
            return false;
        }
        let differs = |size: (usize, usize)| {
            let paint = |picture: &mut Picture| {
                let mut scaler = Scaler::new(size.0, size.1, self.end(rgb()?), self.end(given))?;
                scaler.run(&gradients(size)?, picture)
            };
            let mut before = Picture::allocate(given, size.0, size.1).ok()?;
            paint(&mut before).ok()?;
            let (bytes, _) = self.written(&[frame; MANY], size, (self.step(), 0), &paint)?;
            let mut after = None;
            let mut demuxer = Demuxer::from_bytes(bytes, &self.name()).ok()?;
            let stream = video_of(&demuxer)?;
            let decoder = Decoder::open(&demuxer, stream, 1, false).ok()??;
            decoded(&mut demuxer, decoder, stream, 1, |_, picture| {
                after = self.to_rgb(picture, size);
            })?;
            Some(distance(&self.to_rgb(&before, size)?, &after?) > ANOTHER)
        };
        let real = (self.setup.width, self.setup.height);
        let found = [SMALL, real].into_iter().find_map(differs);
        found.unwrap_or(!is_same_codec)
    }

    /// True if as many of `packets`, pictures of [`SMALL`] size that are shown a step after one another, come
    /// back from the container; `None` if that cannot be tried.
    pub(in crate::sink::video) fn keeps_packets(&self, packets: Vec<Packet>) -> Option<bool> {
        let setup = EncoderSetup {
            width: SMALL.0,
            height: SMALL.1,
            ..self.setup.clone()
        };
        let (encoder, left) = (self.open)(&setup)?;
        let mut muxer = Muxer::in_memory(self.muxer, self.path).ok()?;
        for (key, value) in &left {
            muxer.set(key, value).ok()?;
        }
        let stream = muxer.add_encoded(&encoder, self.tag).ok()?;
        muxer.begin().ok()?;
        let given = packets.len();
        for mut packet in packets {
            muxer.write(&mut packet, stream, setup.time_base).ok()?;
        }
        let mut back = Demuxer::from_bytes(muxer.finish_in_memory().ok()?, &self.name()).ok()?;
        let stream = video_of(&back)?;
        let (mut packet, mut found) = (Packet::new().ok()?, 0);
        while back.read(&mut packet).is_ok() {
            found += usize::from(packet.stream() == stream);
        }
        Some(found == given)
    }

    /// Samples of this format, as the output states them.
    fn end(&self, format: AvFormat) -> ScalerEnd {
        let (colour, facts) = (self.setup.colour, format.facts().unwrap_or_default());
        ScalerEnd {
            format,
            full_range: match colour.range {
                _ if facts.rgb || format.name().starts_with("yuvj") => true,
                Range::Full => true,
                Range::Limited => false,
                Range::Unspecified => facts.components <= 2,
            },
            matrix: written_matrix(colour.matrix, self.setup.height),
            chroma_location: colour.chroma_location,
        }
    }

    /// The bytes of a picture in RGB; `None` if it has another size, or swscale cannot convert it.
    fn to_rgb(&self, picture: &Picture, (width, height): (usize, usize)) -> Option<Vec<u8>> {
        if (picture.width(), picture.height()) != (width, height) {
            return None;
        }
        let rgb = rgb().ok()?;
        let mut scaler = Scaler::new(width, height, self.end(picture.format()), self.end(rgb)).ok()?;
        let mut converted = Picture::allocate(rgb, width, height).ok()?;
        scaler.run(picture, &mut converted).ok()?;
        let rows = (0..height).map(|y| converted.row(0, y, 3 * width));
        Some(rows.collect::<Option<Vec<&[u8]>>>()?.concat())
    }

    /// A file in memory of a picture for each of `frames`, which `paint` draws, with so many ticks from one
    /// to the next, and a gap of so many in the middle; and what it was written from.
    fn written(
        &self,
        frames: &[&Metadata],
        (width, height): (usize, usize),
        (step, gap): (i64, i64),
        paint: &dyn Fn(&mut Picture) -> Result<(), AvError>,
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
                paint(&mut picture)?;
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
            Err(_) => Read::Unknown,
        };
        match read {
            // Readers of other files may take the name for theirs.
            Read::Unknown | Read::Undecodable if self.is_bare => Read::Nothing,
            Read::Back(mut back) => {
                back.sample = Some(sample);
                Read::Back(back)
            }
            other => other,
        }
    }
}

/// A picture of one value.
fn uniform(picture: &mut Picture) -> Result<(), AvError> {
    picture.fill();
    Ok(())
}

/// Ticks of `base` from picture to picture in a trial of times, where it is `step` in the video.
pub(in crate::sink::video) fn trial_step(step: i64, base: Rational) -> i64 {
    step.max((STEP / base.to_f64()).ceil() as i64)
}

/// Seconds from the first packet of the first video stream to its last one.
pub(in crate::sink::video) fn video_span(mut demuxer: Demuxer) -> Option<f64> {
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
pub(in crate::sink::video) fn read_back(mut demuxer: Demuxer, most: usize) -> Read {
    let Some((stream, stated)) = video_of(&demuxer).and_then(|at| Some((at, demuxer.stream(at)?))) else {
        return Read::Unknown;
    };
    let decoder = match Decoder::open(&demuxer, stream, 1, false) {
        Ok(Some(decoder)) => decoder,
        Ok(None) if stated.has_codec => return Read::Untried,
        // Other programs may know the mark.
        Ok(None) if stated.tag != 0 => return Read::Undecodable,
        Ok(None) => return Read::Unknown,
        Err(_) => return Read::Undecodable,
    };
    let (mut facts, mut format) = (Vec::new(), None);
    let rate = demuxer.frame_rate(stream);
    let decoded = decoded(&mut demuxer, decoder, stream, most, |demuxer, picture| {
        let mut metadata = picture_facts(demuxer, stream, picture);
        add_stream_blocks(&mut metadata, &demuxer.stream_side_data(stream));
        facts.push(metadata);
        format.get_or_insert(picture.format());
    });
    match (decoded, format) {
        (Some(()), Some(format)) => Read::Back(Box::new(Back {
            facts,
            format,
            codec: stated.codec,
            rate,
            sample: None,
        })),
        (Some(()), None) => Read::Undecodable,
        (None, _) => Read::Untried,
    }
}

/// Decodes the first `most` frames of a stream.
fn decoded(
    demuxer: &mut Demuxer,
    mut decoder: Decoder,
    stream: usize,
    most: usize,
    mut see: impl FnMut(&Demuxer, &Picture),
) -> Option<()> {
    let (mut packet, mut picture) = (Packet::new().ok()?, Picture::new().ok()?);
    let mut found = 0;
    let mut at_end = false;
    while found < most {
        match decoder.receive(&mut picture) {
            Ok(Received::Item) => {
                see(demuxer, &picture);
                found += 1;
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
    Some(())
}

fn rgb() -> Result<AvFormat, AvError> {
    AvFormat::from_name("rgb24").ok_or_else(AvError::bug)
}

/// A smooth picture in RGB, no component of which is like another. Codecs with losses keep it.
fn gradients((width, height): (usize, usize)) -> Result<Picture, AvError> {
    let mut picture = Picture::allocate(rgb()?, width, height)?;
    for y in 0..height {
        let row = picture.row_mut(0, y, 3 * width).ok_or_else(AvError::bug)?;
        for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
            let (across, down) = (255 * x / width, 255 * y / height);
            pixel.copy_from_slice(&[across as u8, down as u8, 255 - across as u8]);
        }
    }
    Ok(picture)
}

/// The mean difference of two pictures' bytes.
fn distance(a: &[u8], b: &[u8]) -> u64 {
    let sum: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum / a.len().max(1) as u64
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
