//! Where frames go: video files, image files, pipes, or nowhere.
//!
//! ```text
//! frames -> steps/ -> video/, images/, uncompressed/, null.rs -> atomic_file.rs
//!                     '- ledger.rs, constant_rate.rs: what of the frames' facts is carried or lost
//! ```

#[doc(hidden)]
pub mod atomic_file;
mod constant_rate;
#[cfg(feature = "images")]
pub mod images;
mod ledger;
pub mod null;
#[cfg(feature = "ffmpeg")]
mod significant;
mod steps;
mod uncompressed;
#[cfg(feature = "ffmpeg")]
pub mod video;

#[doc(hidden)]
pub use steps::hashes;
#[cfg(feature = "ffmpeg")]
pub use steps::{convert, flatten};
pub use steps::{fields, floats};
#[doc(hidden)]
pub use uncompressed::{PERHAPS_CLOSED, is_stand_in};
pub use uncompressed::{raw, y4m};

use crate::frame::{DeviceHandle, Frame, Layout, Remarks, Stopped};
use crossbeam_channel::Receiver;
use std::sync::Arc;

/// What all outputs that are files have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// Replace existing files.
    pub overwrite: bool,
    /// Fail where a fact about the pictures would be lost, before anything is written.
    pub strict: bool,
    /// Sound and other streams of the input are not wanted where the output holds pictures alone.
    pub pictures_alone: bool,
    /// Find out only what would be written, and what would be refused: no file gets its name, and a target
    /// that is no file is not opened.
    pub trial: bool,
}

/// What a sink did, reported when it has finished.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// One line for the summary: what was written and how, with any conversion that was needed.
    pub description: String,
    /// Bytes written, if the sink counts them.
    pub bytes: Option<u64>,
    /// What was done with the frames, and what could not be carried over.
    pub remarks: Remarks,
    /// True if whoever read a pipe went away before the end; not an error.
    pub closed_early: bool,
}

/// Word from a sink after it took a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Send the next frame.
    More,
    /// The reader of a pipe has gone: stop the run without an error.
    Closed,
}

/// Takes frames one after another.
///
/// Files are written under a temporary name beside the target; [`Sink::finish`] renames them, and dropping a
/// sink that has not finished removes them.
pub trait Sink: Send {
    /// The byte alignment of rows that the sink reads best: 1 for raw output, that can then be written in one
    /// piece.
    fn row_alignment(&self) -> usize {
        64
    }

    /// How many frames the sink keeps after it took them (an encoder's look-ahead, if it reads them where
    /// they lie). The pool is made larger by that.
    fn held_buffers(&self) -> usize {
        0
    }

    /// How many frames the sink has taken and not written yet (what an encoder looks ahead).
    fn delayed_frames(&self) -> u64 {
        0
    }

    /// Offers frames in the memory of the engine's device, or says why there are none, as a clause after
    /// "because". True if the sink reads frames there; it then reads them in the host's memory, too. Called
    /// before the first frame, if at all.
    fn read_on_device(&mut self, _device: Result<DeviceHandle, &'static str>) -> bool {
        false
    }

    /// Called once, before the first frame: a wait for the output's reader ends when `stop` is closed.
    fn watch(&mut self, _stop: &Receiver<()>) {}

    /// Bytes that the output has so far, if the sink counts them.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Takes the next frame, in order.
    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError>;

    /// Writes what is still held back and puts the output in its place. Also called after an interruption.
    fn finish(self: Box<Self>) -> Result<Written, SinkError>;
}

/// Takes frames in any order, from several threads at once.
pub trait IndexedSink: Send + Sync {
    /// Takes frame `frame.sequence`.
    fn write(&self, frame: Frame) -> Result<(), SinkError>;

    /// Bytes that the output has so far, if the sink counts them.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Called once, after the last frame.
    fn finish(&self) -> Result<Written, SinkError>;
}

/// Either kind of sink.
pub enum AnySink {
    /// Written in order by one thread.
    Stream(Box<dyn Sink>),
    /// Written by several threads.
    Indexed(Arc<dyn IndexedSink>),
}

impl AnySink {
    /// A sink that is written in order.
    pub fn stream(sink: impl Sink + 'static) -> AnySink {
        AnySink::Stream(Box::new(sink))
    }

    /// A sink that several threads write to at once.
    pub fn indexed(sink: impl IndexedSink + 'static) -> AnySink {
        AnySink::Indexed(Arc::new(sink))
    }

    /// Offers frames in the memory of the engine's device, as [`Sink::read_on_device`] says.
    pub fn read_on_device(&mut self, device: Result<DeviceHandle, &'static str>) -> bool {
        match self {
            AnySink::Stream(sink) => sink.read_on_device(device),
            AnySink::Indexed(_) => false,
        }
    }

    /// The byte alignment of rows that the sink reads best.
    pub fn row_alignment(&self) -> usize {
        match self {
            AnySink::Stream(sink) => sink.row_alignment(),
            AnySink::Indexed(_) => 1,
        }
    }
}

/// What to do where a file cannot be made because its folder is missing.
fn missing_folder(path: &str, cause: &std::io::Error) -> String {
    let folder = std::path::Path::new(path).parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    match folder.filter(|_| cause.kind() == std::io::ErrorKind::NotFound) {
        Some(folder) => format!("; make the folder {} first", folder.display()),
        None => String::new(),
    }
}

/// Why frames could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// A file could not be made or written.
    #[error("cannot write {path}: {cause}{}", missing_folder(path, cause))]
    Io {
        /// The file, or "standard output".
        path: String,
        /// What the system said.
        #[source]
        cause: std::io::Error,
    },
    /// The output exists and replacing it was not requested.
    #[error("{path} exists; pass --overwrite to replace it")]
    Exists {
        /// The file.
        path: String,
    },
    /// The frames cannot be written there: what, where, and what to do about it.
    #[error("{path}: {problem}")]
    Unsupported {
        /// The file, or "standard output".
        path: String,
        /// A sentence.
        problem: String,
    },
    /// Any other failure, of a sink outside of this library.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// The run ended while the sink waited; never the first cause.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A frame differs from the ones before it, and the output cannot hold both.
    #[error(
        "{path}: frame {sequence}{from} is {found}, but the output was begun with {expected}; frames of one \
         output file must agree"
    )]
    Mismatch {
        /// The output.
        path: String,
        /// The frame's number.
        sequence: u64,
        /// " (FILE)" if the frame came from a file, else nothing.
        from: String,
        /// Size and format of the frame.
        found: String,
        /// Size and format of the output.
        expected: String,
    },
}

impl SinkError {
    /// An error of a sink outside of this library.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SinkError {
        SinkError::Other(error.into())
    }
}

/// Size and format, as [`SinkError::Mismatch`] states them.
pub fn geometry(layout: &Layout) -> String {
    format!("{}x{} {}", layout.width(), layout.height(), layout.format())
}
