//! Where frames come from: video files, image files, pipes, or a generator.
//!
//! ```text
//! video/, animation/, images/, uncompressed/, synthetic.rs -> steps/ -> frames
//! ```

#[cfg(feature = "images")]
#[doc(hidden)]
pub mod animation;
mod cuts;
pub mod decoding_cost;
#[cfg(feature = "images")]
pub mod images;
mod steps;
#[cfg(feature = "ffmpeg")]
mod still_end;
pub mod synthetic;
mod uncompressed;
#[cfg(feature = "ffmpeg")]
pub mod video;

#[cfg(feature = "ffmpeg")]
#[doc(hidden)]
pub use steps::floats;
pub use steps::{fields, range};
#[doc(hidden)]
pub use steps::{seam, turns};
pub use uncompressed::{raw, y4m};

use crate::frame::{
    AllocationError, Buffer, Colour, FieldOrder, Frame, FramePool, LayoutError, PixelFormat, Rational,
    Remarks, SideData, Stopped, Turn,
};
#[cfg(feature = "ffmpeg")]
pub use crate::media::ffmpeg::Access;
#[cfg(feature = "ffmpeg")]
use crate::media::ffmpeg::Outline;
#[doc(hidden)]
pub use crate::waiting::WaitLimit;
use crate::waiting::is_closed;
use crate::wording::tidy;
use crossbeam_channel::Receiver;
pub use cuts::{CutRequest, Cuts};
use decoding_cost::DecodingCost;
#[cfg(feature = "ffmpeg")]
use std::path::PathBuf;
use std::sync::Arc;

/// The file and stream that frames are decoded from, so that a sink can copy the streams beside it.
#[cfg(feature = "ffmpeg")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The media file.
    pub path: PathBuf,
    /// Index of the stream that is filtered.
    pub stream: usize,
    /// The file's other streams in words, such as "stream 1 (audio, aac)", and subtitles that are not read.
    pub others: Vec<String>,
    /// What may be opened for it.
    pub access: Access,
    /// The part that is read.
    pub stretch: ReadRange,
    /// What an input says that may not be read a second time.
    pub(crate) outline: Option<Outline>,
}

/// The part of a media file that frames are read from.
#[cfg(feature = "ffmpeg")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadRange {
    /// Where it begins, in nanoseconds of the file's clock; 0 also if only the first frame's time will show
    /// it.
    pub start: i64,
    /// Where it ends, if that is known as a time.
    pub end: Option<i64>,
    /// True if the range is a frame count. `end` is then estimated from packet times; some packets yield no
    /// frame.
    pub is_counted: bool,
    /// True if it may end before the file does.
    pub is_limited: bool,
}

/// What is known of a source before its first frame is read. Made by [`StreamInfo::new`]; what else is known
/// is put into its fields.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StreamInfo {
    /// The pixel format of the frames that the source gives.
    pub format: PixelFormat,
    /// log2 of the chroma subsampling, across and down, of stored pictures that were brought to 4:4:4, since
    /// no format of frames has it beside alpha.
    pub stored_chroma: Option<(u32, u32)>,
    /// Pixels across the first frame.
    pub width: usize,
    /// Rows of the first frame.
    pub height: usize,
    /// False if frames may differ in size and format (image files).
    pub uniform: bool,
    /// True if frames bring their own memory (a decoder's). Pool buffers then stay empty, except for the rare
    /// copy.
    pub brings_memory: bool,
    /// Pictures that are made once and lent to all frames in turn, so that the pool's buffers need no memory
    /// and one thread is enough to read them; 0 if each frame is made anew.
    pub pictures: usize,
    /// Bytes that the first frame keeps beside its samples, such as channels that are not filtered.
    pub kept_bytes: u64,
    /// Where each of several decoders works that share the input, such as `card 0`: each frame then says
    /// which of them made it ([`Frame::decoded`]). Empty if the thread that asks for a frame decodes it.
    pub decoders: Vec<String>,
    /// True if frames come in a card's memory, where its decoders leave them.
    pub is_on_card: bool,
    /// What a frame costs to decode, on the mean; `None` where that is not known.
    pub decoding_cost: Option<DecodingCost>,
    /// Nominal frames a second; `None` if the source has no time (image files without `--fps`).
    pub frame_rate: Option<Rational>,
    /// Seconds that one tick of a timestamp stands for.
    pub time_base: Rational,
    /// Where the input's clock begins, in seconds, if that is far from zero and counted as zero.
    pub late_start: Option<f64>,
    /// How many frames will come, if that is known; a hint for the progress bar.
    pub frames: Option<u64>,
    /// True if `frames` follows from a length and a rate, and nothing has counted them.
    pub frames_are_estimated: bool,
    /// True if one frame comes and no more: the run then needs no buffers for others.
    pub is_single: bool,
    /// Colour facts of the stream; a frame's own facts have precedence.
    pub colour: Colour,
    /// Width over height of a pixel; (0, 1) if unknown.
    pub sample_aspect: (i32, i32),
    /// Field order.
    pub field_order: FieldOrder,
    /// How frames say that they are shown, which counts where the stream says nothing: of image files if it
    /// is known of all frames, of a video what the first says. `None` if it is not known.
    pub turn: Option<Turn>,
    /// How many times an animation is shown, 0 for ever; `None` where nothing says so.
    pub plays: Option<u32>,
    /// Blocks that belong to the whole stream (display matrix, mastering display, content light level).
    pub side_data: Vec<SideData>,
    /// The media file, if there is one.
    #[cfg(feature = "ffmpeg")]
    pub origin: Option<Origin>,
    /// One line for the summary: what is read and how, with any conversion that was needed.
    pub description: String,
}

/// Says that the clock of an input that begins at `seconds` is counted from there.
pub(crate) fn late_start_sentence(seconds: f64) -> String {
    format!("its clock begins at {} s, which is counted as 0", tidy(seconds))
}

impl StreamInfo {
    /// Frames of one size and format, of which nothing else is known: no rate, no colour facts, ticks of
    /// microseconds.
    pub fn new(format: PixelFormat, width: usize, height: usize) -> StreamInfo {
        StreamInfo {
            format,
            stored_chroma: None,
            width,
            height,
            uniform: true,
            brings_memory: false,
            pictures: 0,
            kept_bytes: 0,
            decoders: Vec::new(),
            is_on_card: false,
            decoding_cost: None,
            frame_rate: None,
            time_base: Rational {
                num: 1,
                den: 1_000_000,
            },
            late_start: None,
            frames: None,
            frames_are_estimated: false,
            is_single: false,
            colour: Colour::default(),
            sample_aspect: (0, 1),
            field_order: FieldOrder::Progressive,
            turn: None,
            plays: None,
            side_data: Vec::new(),
            #[cfg(feature = "ffmpeg")]
            origin: None,
            description: String::new(),
        }
    }

    /// The same at `rate` frames a second, one tick of a timestamp for each frame.
    pub fn at_rate(self, rate: Rational) -> StreamInfo {
        StreamInfo {
            frame_rate: Some(rate),
            time_base: Rational {
                num: rate.den,
                den: rate.num,
            },
            ..self
        }
    }

    /// True if each frame is shown for one tick, so that a time is the number of a frame.
    pub(crate) fn has_a_tick_a_frame(&self) -> bool {
        let Rational { num, den } = self.time_base;
        self.frame_rate == Some(Rational { num: den, den: num })
    }

    /// The same with a line for the summary.
    pub fn described(self, description: impl Into<String>) -> StreamInfo {
        StreamInfo {
            description: description.into(),
            ..self
        }
    }
}

/// What a source needs to make a frame: buffers, and word that the run has been stopped.
#[derive(Clone)]
pub struct Supply {
    /// Where buffers come from.
    pub pool: FramePool,
    /// Closed when the run has failed or is to be abandoned; every wait must end then.
    pub stop: Receiver<()>,
}

impl Supply {
    /// Waits for a free buffer.
    pub fn take(&self) -> Result<Buffer, Stopped> {
        self.pool.take(&self.stop)
    }

    /// True once the run is to be abandoned.
    pub fn is_stopped(&self) -> bool {
        is_closed(&self.stop)
    }
}

/// Frames that come one after another.
///
/// A source around another one returns that one from [`Source::inner`] and [`Source::inner_mut`]. Methods
/// that it does not write itself are then forwarded. One whose frames are others, or have other times or
/// numbers, returns none: what is asked and answered in these would be wrong.
pub trait Source: Send {
    /// The source that this one works behind, if any.
    fn inner(&self) -> Option<&dyn Source> {
        None
    }

    /// The same source as [`Source::inner`].
    fn inner_mut(&mut self) -> Option<&mut dyn Source> {
        None
    }

    /// What is known before the first frame.
    fn info(&self) -> &StreamInfo;

    /// The next frame, or `None` at the end of the input. The pipeline counts the frames as they come and
    /// sets their `sequence`, whatever the source set.
    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError>;

    /// Word that frames shown before `tick`, in ticks of the time base, are not needed: the source may leave
    /// out any of them. It is given before the first frame is requested.
    fn pass_over(&mut self, tick: i64) {
        if let Some(inner) = self.inner_mut() {
            inner.pass_over(tick);
        }
    }

    /// Time, in ticks of the time base, of the `number`-th frame (from 0) at or after tick `from`; `None` if
    /// that cannot be found out without decoding.
    fn time_of(&mut self, from: i64, number: u64) -> Result<Option<i64>, SourceError> {
        match self.inner_mut() {
            Some(inner) => inner.time_of(from, number),
            None => Ok(None),
        }
    }

    /// Where the input can be cut into parts that are read by themselves. Asked before the first frame.
    fn cuts(&mut self, request: CutRequest) -> Result<Cuts, SourceError> {
        match self.inner_mut() {
            Some(inner) => inner.cuts(request),
            None => Ok(Cuts::None("is read from its beginning to its end".to_owned())),
        }
    }

    /// How many buffers the source keeps while it gives out the next frame (a decoder's reference frames, if
    /// they lie in the pool's memory), beside the one that it is filling. The pool is made larger by that.
    fn held_buffers(&self) -> usize {
        match self.inner() {
            Some(inner) => inner.held_buffers(),
            None => 0,
        }
    }

    /// What was done with the input, and what went wrong without ending the run (concealed packets, dropped
    /// streams); asked for once, at the end.
    fn remarks(&mut self) -> Remarks {
        match self.inner_mut() {
            Some(inner) => inner.remarks(),
            None => Remarks::default(),
        }
    }
}

/// Frames that can be read in any order, by several threads at once.
pub trait IndexedSource: Send + Sync {
    /// What is known before the first frame.
    fn info(&self) -> &StreamInfo;

    /// How many frames there are.
    fn len(&self) -> u64;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frame `index`, in the given buffer.
    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError>;

    /// Does what costs time or memory before the first frame, once the limits of the run allow its pictures.
    fn prepare(&self) -> Result<(), SourceError> {
        Ok(())
    }

    /// What was done with the files, and what of them was not read; asked for once, at the end.
    fn remarks(&self) -> Remarks {
        Remarks::default()
    }
}

/// Either kind of source.
pub enum AnySource {
    /// Read in order by one thread.
    Stream(Box<dyn Source>),
    /// Read by several threads.
    Indexed(Arc<dyn IndexedSource>),
}

impl AnySource {
    /// A source that is read in order.
    pub fn stream(source: impl Source + 'static) -> AnySource {
        AnySource::Stream(Box::new(source))
    }

    /// A source that several threads read at once.
    pub fn indexed(source: impl IndexedSource + 'static) -> AnySource {
        AnySource::Indexed(Arc::new(source))
    }

    /// Does what costs time or memory before the first frame; see [`IndexedSource::prepare`].
    pub fn prepare(&self) -> Result<(), SourceError> {
        match self {
            AnySource::Stream(_) => Ok(()),
            AnySource::Indexed(source) => source.prepare(),
        }
    }

    /// What is known before the first frame.
    pub fn info(&self) -> &StreamInfo {
        match self {
            AnySource::Stream(source) => source.info(),
            AnySource::Indexed(source) => source.info(),
        }
    }
}

/// Pixels of the largest frame that is read unless another number is given: more than pictures of any camera
/// have, and fewer than a header of a few bytes may claim.
pub const MOST_PIXELS: u64 = 1 << 30;

/// Refuses pictures of more than `most` pixels. A header is a claim, so that this comes before anything is
/// made.
pub fn check_pixels(path: &str, width: usize, height: usize, most: u64) -> Result<(), SourceError> {
    if width as u128 * height as u128 <= u128::from(most) {
        return Ok(());
    }
    Err(SourceError::TooManyPixels {
        path: path.to_owned(),
        width,
        height,
        most,
    })
}

/// Why frames could not be read. The sentences name the place and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file could not be opened or read.
    #[error("cannot read {path}: {cause}")]
    Io {
        /// The file, or "standard input".
        path: String,
        /// What the system said.
        #[source]
        cause: std::io::Error,
    },
    /// The input is not what it should be: what, where, and what to do about it.
    #[error("{path}: {problem}")]
    Invalid {
        /// The file, or "standard input".
        path: String,
        /// A sentence.
        problem: String,
    },
    /// The frames are larger than allowed.
    #[error(
        "{path}: its pictures are {width}x{height}, which is {} pixels, and --max-pixels allows {most}",
        *width as u128 * *height as u128
    )]
    TooManyPixels {
        /// The file, or "standard input".
        path: String,
        /// Pixels across.
        width: usize,
        /// Rows.
        height: usize,
        /// The most that is allowed.
        most: u64,
    },
    /// The frame's geometry is impossible.
    #[error("{path}: {cause}")]
    Layout {
        /// The file, or "standard input".
        path: String,
        /// Which and why.
        #[source]
        cause: LayoutError,
    },
    /// Any other failure, of a source outside of this library.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// No memory for a frame.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// The run ended while the source waited; never the first cause.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl SourceError {
    /// An error of a source outside of this library.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SourceError {
        SourceError::Other(error.into())
    }
}

#[cfg(test)]
#[cfg(feature = "ffmpeg")]
pub(in crate::source) mod tests {
    use super::*;

    /// A source whose every answer is not the one of a source that has none.
    pub(in crate::source) struct Answering(StreamInfo, bool);

    impl Answering {
        pub(in crate::source) fn source() -> Box<dyn Source> {
            let info = StreamInfo::new(PixelFormat::GRAYF32, 8, 8);
            Box::new(Answering(info, false))
        }
    }

    impl Source for Answering {
        fn info(&self) -> &StreamInfo {
            &self.0
        }
        fn next(&mut self, _: &Supply) -> Result<Option<Frame>, SourceError> {
            Ok(None)
        }
        fn pass_over(&mut self, tick: i64) {
            self.1 = tick == 5;
        }
        fn time_of(&mut self, from: i64, number: u64) -> Result<Option<i64>, SourceError> {
            Ok(Some(from + number as i64).filter(|_| self.1))
        }
        fn cuts(&mut self, _: CutRequest) -> Result<Cuts, SourceError> {
            Ok(Cuts::None("answers".to_owned()))
        }
        fn held_buffers(&self) -> usize {
            7
        }
        fn remarks(&mut self) -> Remarks {
            Remarks::warnings(["answered".to_owned()])
        }
    }

    /// Fails unless `source`, which is around an [`Answering`], forwards every method to it.
    pub(in crate::source) fn check_forwarding(name: &str, source: &mut dyn Source) {
        assert_eq!(source.info().width, 8, "{name}");
        source.pass_over(5);
        assert_eq!(source.time_of(30, 4).unwrap(), Some(34), "{name}");
        let request = CutRequest {
            parts: 2,
            start: None,
            end: None,
            anywhere: false,
            counts: false,
        };
        assert!(
            matches!(source.cuts(request).unwrap(), Cuts::None(why) if why == "answers"),
            "{name}"
        );
        assert_eq!(source.held_buffers(), 7, "{name}");
        assert!(
            source.remarks().warning_texts().contains(&"answered".to_owned()),
            "{name}"
        );
    }
}
