//! What a container holds, found out by trying: the head is written into memory with the real streams, and
//! what it kept is read back.
//!
//! FFmpeg's own answer (`avformat_query_codec`) is wrong both ways: Matroska denies codecs that it stores
//! under the names of other systems, MPEG-TS takes anything as data without a name, and raw muxers write any
//! packet between the frames.
//!
//! `streams`: which streams it holds. `times`: whether they come back at their times. `kept`: what a finished
//! file has of the input's texts and chapters.

pub(super) mod kept;
mod sample;
mod streams;
mod times;

pub(super) use sample::{Sample, SampleSource, video_of};
pub(super) use streams::{PACKETS_TRIED, STALE_TEXTS, StreamHandling};
pub(super) use times::KEEP_NEGATIVE;

use crate::media::ffmpeg::{AvError, AvFormat, Encoder, EncoderKind, EncoderSetup, Muxer, log};
use std::path::{Path, PathBuf};

/// Muxers that write samples or packets without a word of what they are, or only a digest of them.
const BARE: &[&str] = &[
    "rawvideo",
    "data",
    "null",
    "crc",
    "framecrc",
    "hash",
    "framehash",
    "streamhash",
    "md5",
    "framemd5",
    "uncodedframecrc",
    "mkvtimestamp_v2",
];

/// Adds the filtered stream to a muxer.
pub(super) type AddVideo<'a> = &'a dyn Fn(&mut Muxer) -> Result<usize, AvError>;

/// A container as the user chose it, of which trials are made in memory.
pub(super) struct Container {
    muxer: Option<String>,
    target: PathBuf,
    /// Options of the muxer that the user gave.
    options: Vec<(String, String)>,
    name: String,
    /// What is written can be changed later, unlike in a pipe.
    can_seek: bool,
    /// Video that can be read back, once it is known.
    sample: Option<Sample>,
}

impl Container {
    /// The container that `muxer` writes, which was chosen by these two.
    pub(super) fn of(muxer: &Muxer, name: Option<&str>, target: &Path) -> Container {
        Container {
            muxer: name.map(str::to_owned),
            target: target.to_owned(),
            options: Vec::new(),
            name: muxer.name(),
            can_seek: muxer.can_seek(),
            sample: None,
        }
    }

    /// The muxer's short name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// True if no reader can tell from what is written what it is.
    pub(super) fn is_bare(&self) -> bool {
        BARE.contains(&self.name.as_str())
    }

    /// The container as users call it: FFmpeg writes two kinds of transport streams under one name, and takes
    /// the first muxer of .vob, which has another name.
    pub(super) fn word(&self) -> &str {
        let is_vob = || {
            self.target
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("vob"))
        };
        match self.name.as_str() {
            _ if self.is_disc() => "m2ts",
            "svcd" if is_vob() => "vob",
            name => name,
        }
    }

    /// True for program streams, in which each packet has its own time; a trial's, which are no sound, come
    /// back in others.
    fn is_program_stream(&self) -> bool {
        matches!(self.name.as_str(), "mpeg" | "vob" | "svcd" | "dvd" | "vcd")
    }

    /// True for transport streams as they are on Blu-ray discs, which hold less kinds of sound than others.
    pub(super) fn is_disc(&self) -> bool {
        self.name == "mpegts"
            && self
                .target
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("m2ts"))
    }

    /// Notes an option that was set on the muxer.
    pub(super) fn option(&mut self, key: &str, value: &str) {
        self.options.push((key.to_owned(), value.to_owned()));
    }

    /// Has trials write this video beside the other streams, where they cannot be recognised alone.
    pub(super) fn set_sample(&mut self, sample: Option<Sample>) {
        self.sample = sample;
    }

    /// The container in memory.
    pub(super) fn in_memory(&self) -> Result<Muxer, AvError> {
        let mut muxer =
            Muxer::in_memory(self.muxer.as_deref(), &self.target).map_err(|_| AvError::no_memory())?;
        for (key, value) in &self.options {
            muxer.set(key, value)?;
        }
        // The index of a trial stays where it is: to bring it to the front, FFmpeg would open a file of the
        // trial's name. A container that has no such option has no such step.
        let _ = muxer.set("movflags", "-faststart");
        Ok(muxer)
    }

    /// True if the head can be written for the codec of `kind`, as far as that shows without an open encoder.
    pub(super) fn holds(&self, kind: EncoderKind) -> bool {
        // The muxers of some codecs look into their headers: H.264 and HEVC as MP4 has them, and the three of
        // Xiph's.
        let mut start = [0_u8; 64];
        start[..6].copy_from_slice(&[1, 100, 0, 31, 255, 225]);
        let mut xiph = vec![0, 42];
        xiph.extend([0; 42]);
        xiph.extend([0, 1, 0, 0, 1, 0]);
        [&[], &start[..], &xiph].into_iter().any(|extradata| {
            let run = || -> Result<(), AvError> {
                let mut muxer = self.in_memory()?;
                muxer.add_presumed(kind, extradata)?;
                muxer.begin()
            };
            run().is_ok()
        })
    }

    /// True if the container surely cannot hold what `kind` writes: not even an open encoder makes a head
    /// possible.
    pub(super) fn refuses(&self, kind: EncoderKind) -> bool {
        if self.holds(kind) {
            return false;
        }
        let run = || -> Result<bool, AvError> {
            let mut muxer = self.in_memory()?;
            let format = kind.formats().first().copied();
            let format = format.or_else(|| AvFormat::from_name("yuv420p"));
            let setup = EncoderSetup {
                global_header: muxer.wants_global_header(),
                ..EncoderSetup::plain(format.ok_or(AvError::no_memory())?, 352, 288)
            };
            let mut encoder = Encoder::new(kind, &setup)?;
            encoder.open()?;
            muxer.add_encoded(&encoder, None)?;
            Ok(muxer.begin().is_err())
        };
        // An encoder that does not open here may open for the real frames, which then show it.
        run().unwrap_or(false)
    }
}

/// The result of a call of FFmpeg's, with its own words for a failure.
pub(super) fn explained<T>(run: impl FnOnce() -> Result<T, AvError>) -> Result<T, String> {
    log::forget();
    run().map_err(|e| log::explained(&e.to_string()))
}
