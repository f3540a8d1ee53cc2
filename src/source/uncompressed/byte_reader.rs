//! Where a source of bytes reads: a file, a named pipe, or standard input.

use crate::frame::{Frame, Layout, Stopped};
use crate::source::{SourceError, Supply};
use crate::waiting::{StallTimeout, WaitLimit, open_without_waiting, wait_a_tick};
use crate::wording::counted;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// What standard input is called in messages.
pub(super) const STANDARD_INPUT: &str = "standard input";

/// The size that a pipe's buffer is asked to have; the system's default of 64 KiB costs a switch of processes
/// for each few rows.
const PIPE_SIZE: usize = 1 << 20;

/// How long the rest of a line that has begun is awaited before anything is read.
const PATIENCE: Duration = Duration::from_secs(1);

/// A copy of what stands in a pipe, at most `most` bytes; nothing of what is no pipe.
fn copied(pipe: &File, most: usize) -> io::Result<Vec<u8>> {
    let (from, to) = rustix::pipe::pipe()?;
    let count = match rustix::pipe::tee(pipe, &to, most, SpliceFlags::NONBLOCK) {
        Ok(count) => count,
        Err(Errno::INVAL | Errno::AGAIN) => 0,
        Err(error) => return Err(error.into()),
    };
    let mut bytes = vec![0; count];
    File::from(from).read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Unbuffered input, so that a frame's bytes go straight to the frame's memory.
pub(in crate::source) struct ByteReader {
    file: File,
    label: String,
    length: Option<u64>,
    /// Bytes read so far.
    done: u64,
    /// How long a wait for a pipe may last.
    timeout: Option<Duration>,
    stall_timeout: StallTimeout,
}

impl ByteReader {
    /// Opens a file, or standard input for "-".
    pub(in crate::source) fn open(path: &Path) -> Result<ByteReader, SourceError> {
        let (file, label) = if path.as_os_str() == "-" {
            let stdin = io::stdin();
            let label = STANDARD_INPUT.to_owned();
            if stdin.is_terminal() {
                return Err(SourceError::Invalid {
                    path: label,
                    problem: "is a terminal; pipe frames into it or name a file".to_owned(),
                });
            }
            let file = stdin
                .as_fd()
                .try_clone_to_owned()
                .map_err(|cause| SourceError::Io {
                    path: label.clone(),
                    cause,
                })?;
            (File::from(file), label)
        } else {
            let label = path.display().to_string();
            let file = open_without_waiting(path).map_err(|cause| SourceError::Io {
                path: label.clone(),
                cause,
            })?;
            (file, label)
        };
        let metadata = file.metadata().map_err(|cause| SourceError::Io {
            path: label.clone(),
            cause,
        })?;
        if metadata.is_dir() {
            return Err(SourceError::Invalid {
                path: label,
                problem: "is a directory, and a file of frames was expected".to_owned(),
            });
        }
        // Standard input may have been read from before.
        let before = (&file).stream_position().unwrap_or(0);
        let length = metadata.is_file().then(|| metadata.len().saturating_sub(before));
        if length.is_none() {
            // Refused for what is no pipe, which is as well.
            let _ = rustix::pipe::fcntl_setpipe_size(&file, PIPE_SIZE);
        }
        Ok(ByteReader {
            file,
            label,
            length,
            done: 0,
            timeout: None,
            stall_timeout: StallTimeout::new(None),
        })
    }

    /// The file's name, or "standard input".
    pub(in crate::source) fn label(&self) -> &str {
        &self.label
    }

    /// Bytes of a regular file; `None` for a pipe.
    pub(in crate::source) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Ends every wait by `limit`.
    pub(super) fn set_limit(&mut self, limit: Option<&WaitLimit>) {
        let limit = limit.cloned().unwrap_or_default();
        self.stall_timeout = StallTimeout::by(&limit);
        self.timeout = limit.timeout;
    }

    /// An error if the file ends before it should by the length that it had when it was opened.
    pub(in crate::source) fn check_end(&self) -> Result<(), SourceError> {
        match self.length {
            Some(length) if self.done < length => Err(self.invalid(format!(
                "became shorter while it was read: it had {length} bytes, and ends after {}",
                self.done
            ))),
            _ => Ok(()),
        }
    }

    /// The open file.
    pub(super) fn into_file(self) -> File {
        self.file
    }

    /// Fills `buffer` and returns how many bytes there were: fewer than requested only at the end of the
    /// input.
    pub(super) fn read_full(
        &mut self,
        buffer: &mut [u8],
        supply: Option<&Supply>,
    ) -> Result<usize, SourceError> {
        let mut done = 0;
        while done < buffer.len() {
            if self.length.is_none() {
                self.wait(supply)?;
            }
            match self.file.read(&mut buffer[done..]) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    self.done += count as u64;
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
                Err(cause) => {
                    return Err(SourceError::Io {
                        path: self.label.clone(),
                        cause,
                    });
                }
            }
        }
        Ok(done)
    }

    /// The next bytes, at most `most`, which are read again afterwards. It waits until these are enough, but
    /// no longer than [`PATIENCE`] for more once there are some.
    pub(in crate::source) fn peek(
        &self,
        most: usize,
        is_enough: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, SourceError> {
        let failed = |cause| SourceError::Io {
            path: self.label.clone(),
            cause,
        };
        if self.length.is_some() {
            let at = (&self.file).stream_position().map_err(failed)?;
            let mut start = vec![0; most];
            let count = self.file.read_at(&mut start, at).map_err(failed)?;
            start.truncate(count);
            return Ok(start);
        }
        self.wait(None)?;
        let begun = Instant::now();
        loop {
            let start = copied(&self.file, most).map_err(failed)?;
            if start.len() == most || is_enough(&start) || begun.elapsed() > PATIENCE {
                return Ok(start);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn wait(&self, supply: Option<&Supply>) -> Result<(), SourceError> {
        if let Some(supply) = supply {
            self.stall_timeout.watch(&supply.stop);
        }
        self.stall_timeout.begin();
        loop {
            if self.stall_timeout.is_over() {
                return Err(match self.stall_timeout.ran_out() {
                    true => self.invalid(StallTimeout::sentence(self.timeout)),
                    false => Stopped.into(),
                });
            }
            match wait_a_tick(&self.file, PollFlags::IN) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(cause) => {
                    return Err(SourceError::Io {
                        path: self.label.clone(),
                        cause,
                    });
                }
            }
        }
    }

    /// The next frame of this layout, `whole` of which came before; `None` at the end of the input.
    pub(super) fn read_frame(
        &mut self,
        layout: Layout,
        whole: u64,
        supply: &Supply,
    ) -> Result<Option<Frame>, SourceError> {
        let buffer = supply.take()?;
        let born = Instant::now();
        let mut frame = Frame::new(layout, buffer)?;
        let found = self.read_full(frame.bytes_mut(), Some(supply))?;
        if found == 0 {
            return Ok(None);
        }
        if found < layout.size() {
            let problem = ends_in_mid_frame(whole, found as u64, layout.size() as u64);
            return Err(self.invalid(problem));
        }
        frame.sequence = whole;
        frame.born = born;
        Ok(Some(frame))
    }

    /// [`SourceError::Invalid`] with the input's name.
    pub(in crate::source) fn invalid(&self, problem: impl Into<String>) -> SourceError {
        SourceError::Invalid {
            path: self.label.clone(),
            problem: problem.into(),
        }
    }
}

/// What is said of an input that ends inside a frame.
pub(super) fn ends_in_mid_frame(whole: u64, found: u64, frame_bytes: u64) -> String {
    format!(
        "ends in the middle of a frame: {}, then {found} of {frame_bytes} bytes ({}); the input is \
         truncated, or its geometry is not as stated",
        counted(whole, "whole frame"),
        match frame_bytes - found {
            1 => "1 byte is missing".to_owned(),
            missing => format!("{missing} bytes are missing"),
        }
    )
}
