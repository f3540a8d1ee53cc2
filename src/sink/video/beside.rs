//! The streams beside the filtered one: sound, subtitles, attachments, data, chapters and texts, copied without touching their packets.

use crate::ffmpeg::{AvError, Demuxer, Medium, Muxer, Packet, rescale};
use crate::frame::Rational;
use crate::source::Origin;
use std::collections::VecDeque;
use std::ffi::CStr;

/// Texts about the whole file that describe the old container and that the new one writes for itself.
const STALE_FILE_TEXTS: &[&CStr] = &[
    c"encoder",
    c"major_brand",
    c"minor_version",
    c"compatible_brands",
    c"duration",
];

/// Texts about the filtered stream that are no longer true of it.
const STALE_VIDEO_TEXTS: &[&CStr] = &[
    c"encoder",
    c"rotate",
    c"alpha_mode",
    c"DURATION",
    c"BPS",
    c"NUMBER_OF_FRAMES",
    c"NUMBER_OF_BYTES",
    c"_STATISTICS_TAGS",
    c"_STATISTICS_WRITING_APP",
    c"_STATISTICS_WRITING_DATE_UTC",
];

/// A video that ends this many seconds before its source does was interrupted, and so are the streams beside it.
const INTERRUPTED_AFTER: f64 = 1.0;

/// Seconds past the video's end after which streams of a file are not mixed any more.
const SETTLED_AFTER: f64 = 10.0;

/// One stream that is copied.
struct Copied {
    from: usize,
    to: usize,
    base: Rational,
    /// Time of the last packet, since a container refuses one that goes back.
    last: Option<i64>,
}

/// A second reader of the input file, and which of its streams go where.
pub(super) struct Beside {
    demuxer: Demuxer,
    filtered: usize,
    copied: Vec<Copied>,
    /// A packet that was read but whose time has not come, with that time in seconds.
    waiting: Option<(Packet, f64)>,
    ended: bool,
    /// Where the filtered video ended, set once the file shows that the input's goes on.
    limit: Option<f64>,
    /// What could not be carried over, a sentence each.
    pub(super) warnings: Vec<String>,
}

impl Beside {
    /// Opens the input a second time; `None`, perhaps with a warning, if it cannot be read twice.
    pub(super) fn open(origin: &Origin) -> Result<Beside, String> {
        let name = origin.path.display();
        if !origin.path.is_file() {
            return Err(format!(
                "{name} can be read only once, so its sound, subtitles and other streams are not copied"
            ));
        }
        match Demuxer::open(&origin.path) {
            Ok(demuxer) => Ok(Beside {
                demuxer,
                filtered: origin.stream,
                copied: Vec::new(),
                waiting: None,
                ended: false,
                limit: None,
                warnings: Vec::new(),
            }),
            Err(_) => Err(format!(
                "{name} cannot be opened a second time, so its sound, subtitles and other streams are not copied"
            )),
        }
    }

    /// Adds every stream that `muxer` can hold, in the input's order, calling `add_video` where the filtered one stands, and takes
    /// over chapters and texts. Gives the index of the filtered stream in the output.
    pub(super) fn map(
        &mut self,
        muxer: &mut Muxer,
        add_video: impl FnOnce(&mut Muxer) -> Result<usize, AvError>,
    ) -> Result<usize, AvError> {
        let container = muxer.name();
        let mut add_video = Some(add_video);
        let mut video = 0;
        for index in 0..self.demuxer.stream_count() {
            if index == self.filtered {
                if let Some(add) = add_video.take() {
                    video = add(muxer)?;
                    muxer.describe(video, &self.demuxer, index, STALE_VIDEO_TEXTS)?;
                }
                continue;
            }
            let Some(facts) = self.demuxer.stream(index) else {
                continue;
            };
            match self.verdict(muxer, &container, index) {
                Verdict::Copy { keep_tag } => {
                    let to = muxer.add_copied(&self.demuxer, index, keep_tag)?;
                    self.copied.push(Copied {
                        from: index,
                        to,
                        base: facts.time_base,
                        last: None,
                    });
                    continue;
                }
                Verdict::Remade => {}
                Verdict::Dropped => self.warnings.push(format!(
                    "stream {index} ({}, {}) is left out: {container} cannot hold it",
                    facts.medium.word(),
                    facts.codec
                )),
            }
            self.demuxer.discard(index);
        }
        if let Some(add) = add_video.take() {
            video = add(muxer)?;
        }
        muxer.copy_metadata(&self.demuxer, STALE_FILE_TEXTS)?;
        muxer.copy_chapters(&self.demuxer)?;
        Ok(video)
    }

    fn verdict(&self, muxer: &Muxer, container: &str, index: usize) -> Verdict {
        let Some(facts) = self.demuxer.stream(index) else {
            return Verdict::Dropped;
        };
        let is_matroska = matches!(container, "matroska");
        let is_mov = matches!(
            container,
            "mov" | "mp4" | "ipod" | "3gp" | "3g2" | "psp" | "ismv" | "f4v"
        );
        let tag = facts.tag.to_le_bytes();
        let keep = |keep_tag| Verdict::Copy { keep_tag };
        match facts.medium {
            Medium::Attachment if is_matroska => keep(false),
            Medium::Attachment | Medium::Other => Verdict::Dropped,
            // The text track of an MP4 file's chapters, which a muxer writes anew from the chapters.
            Medium::Data if &tag == b"text" && self.demuxer.has_chapters() => Verdict::Remade,
            // A time code, which the muxer writes anew from the text of that name.
            Medium::Data if &tag == b"tmcd" && is_mov => Verdict::Remade,
            // Telemetry of action cameras: the one kind of plain data that the container's tag gives a meaning.
            Medium::Data if is_mov && &tag != b"gpmd" => Verdict::Dropped,
            Medium::Data if is_matroska => Verdict::Dropped,
            _ => match muxer.holds_stream(&self.demuxer, index) {
                Some(true) => keep(facts.medium == Medium::Data),
                // A container that does not say is tried: its head fails if it cannot.
                None if facts.medium != Medium::Data => keep(false),
                _ => Verdict::Dropped,
            },
        }
    }

    /// How many streams are copied.
    pub(super) fn count(&self) -> usize {
        self.copied.len()
    }

    /// Writes the packets whose time is up to `until` seconds.
    pub(super) fn copy_until(&mut self, muxer: &mut Muxer, until: f64) -> Result<(), AvError> {
        while !self.ended && !self.copied.is_empty() {
            let (mut packet, time) = match self.waiting.take() {
                Some(waiting) => waiting,
                None => match self.read(None)? {
                    Some(read) => read,
                    None => break,
                },
            };
            if time > until {
                self.waiting = Some((packet, time));
                break;
            }
            self.write(muxer, &mut packet)?;
        }
        Ok(())
    }

    /// Writes the rest: all of it, or up to `end` seconds if the file shows that the video was cut short there.
    pub(super) fn copy_rest(&mut self, muxer: &mut Muxer, end: f64) -> Result<(), AvError> {
        // Packets past the end wait until it is clear which of the two it is.
        let mut unclear = VecDeque::new();
        while !self.ended && !self.copied.is_empty() {
            let (mut packet, time) = match self.waiting.take() {
                Some(waiting) => waiting,
                None => match self.read(Some(end))? {
                    Some(read) => read,
                    None => break,
                },
            };
            if time < end {
                self.write(muxer, &mut packet)?;
                continue;
            }
            match self.limit {
                Some(_) => unclear.clear(),
                None => unclear.push_back(packet),
            }
            if time > end + SETTLED_AFTER {
                for mut packet in unclear.drain(..) {
                    self.write(muxer, &mut packet)?;
                }
            }
        }
        if self.limit.is_none() {
            for mut packet in unclear {
                self.write(muxer, &mut packet)?;
            }
        }
        Ok(())
    }

    /// The next packet of a copied stream with its time in seconds. With `end`, the end of the filtered video, a later packet of that
    /// video sets the limit, and reading stops well past it.
    fn read(&mut self, end: Option<f64>) -> Result<Option<(Packet, f64)>, AvError> {
        let mut packet = Packet::new()?;
        let mut errors = 0;
        loop {
            match self.demuxer.read(&mut packet) {
                Ok(()) => errors = 0,
                Err(e) if e.is_invalid_data() && errors < 10_000 => {
                    errors += 1;
                    continue;
                }
                // The source has read the same bytes and told what was wrong with them.
                Err(_) => {
                    self.ended = true;
                    return Ok(None);
                }
            }
            let Some(facts) = self.demuxer.stream(packet.stream()) else {
                continue;
            };
            let seconds = |ticks: i64| ticks as f64 * facts.time_base.to_f64();
            let time = packet.dts().or_else(|| packet.pts()).map(seconds);
            if packet.stream() == self.filtered {
                if let (Some(end), Some(shown)) = (end, packet.pts().or_else(|| packet.dts()).map(seconds)) {
                    if shown > end + INTERRUPTED_AFTER {
                        self.limit = Some(end);
                    }
                    if shown > end + SETTLED_AFTER {
                        self.ended = true;
                        return Ok(None);
                    }
                }
                continue;
            }
            if self.copied.iter().any(|c| c.from == packet.stream()) && packet.size() > 0 {
                return Ok(Some((packet, time.unwrap_or(f64::NEG_INFINITY))));
            }
        }
    }

    fn write(&mut self, muxer: &mut Muxer, packet: &mut Packet) -> Result<(), AvError> {
        let from = packet.stream();
        let Some(copied) = self.copied.iter_mut().find(|c| c.from == from) else {
            return Ok(());
        };
        // Broken inputs repeat packets or go back; a container would refuse the whole file for it.
        if let Some(at) = packet.dts().or_else(|| packet.pts()) {
            let at = rescale(at, copied.base, muxer.time_base(copied.to));
            if copied.last.is_some_and(|last| at < last) {
                self.warnings.push(format!(
                    "a packet of stream {from} that goes back in time is left out"
                ));
                return Ok(());
            }
            copied.last = Some(at);
        }
        muxer.write(packet, copied.to, copied.base)
    }
}

/// What becomes of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Copy {
        keep_tag: bool,
    },
    /// The muxer makes it from other facts.
    Remade,
    Dropped,
}
