//! Where a sink of bytes writes: a file that is not yet in its place, or standard output.

use crate::frame::{Frame, Layout, Remarks, Stopped};
use crate::sink::atomic_file::{AtomicFile, NOWHERE};
use crate::sink::{Flow, Rules, SinkError, Written, geometry};
use crate::waiting::{is_closed, wait_a_tick};
use crossbeam_channel::Receiver;
use rustix::event::PollFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// How much of a frame with padded rows is gathered before it is written.
const GATHER: usize = 1 << 20;

/// The size that a pipe's buffer is asked to have; the system's default of 64 KiB costs a switch of processes
/// for each few rows.
const PIPE_SIZE: usize = 1 << 20;

/// What is said of a standard output that is /dev/null, opened for reading and writing.
pub const PERHAPS_CLOSED: &str = "is closed, or leads to /dev/null: nothing of it is kept";

enum Place {
    Part(AtomicFile),
    Stdout(File),
}

/// Writes frames one after another, each in one piece where its rows are tight.
pub(super) struct ByteWriter {
    place: Place,
    bytes: u64,
    frames: u64,
    closed: bool,
    begun: Option<Layout>,
    gathered: Vec<u8>,
    stop: Option<Receiver<()>>,
    rules: Rules,
    /// Standard output may have been closed from the beginning on, so that nobody gets what is written.
    is_perhaps_closed: bool,
}

impl ByteWriter {
    /// From now on waits for the reader end when `stop` is closed.
    pub(in crate::sink) fn watch(&mut self, stop: &Receiver<()>) {
        self.stop = Some(stop.clone());
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(is_closed)
    }

    /// Opens a file, or standard output for "-".
    pub(in crate::sink) fn open(target: &Path, rules: Rules) -> Result<ByteWriter, SinkError> {
        let mut is_perhaps_closed = false;
        let place = if target.as_os_str() == "-" && rules.trial {
            let file = OpenOptions::new().write(true).open(NOWHERE);
            Place::Stdout(file.map_err(|cause| SinkError::Io {
                path: NOWHERE.to_owned(),
                cause,
            })?)
        } else if target.as_os_str() == "-" {
            let stdout = io::stdout();
            if stdout.is_terminal() {
                return Err(SinkError::Unsupported {
                    path: "standard output".to_owned(),
                    problem:
                        "is a terminal, and frames would flood it; pipe it into a program or name a file"
                            .to_owned(),
                });
            }
            // It may be open on purpose.
            is_perhaps_closed = is_stand_in(&stdout);
            if is_perhaps_closed && rules.strict {
                return Err(SinkError::Unsupported {
                    path: "standard output".to_owned(),
                    problem: format!("{PERHAPS_CLOSED}; pipe it into a program, name a file, or write null:"),
                });
            }
            let file = stdout
                .as_fd()
                .try_clone_to_owned()
                .map_err(|cause| SinkError::Io {
                    path: "standard output".to_owned(),
                    cause,
                })?;
            // Refused for what is no pipe, which is as well.
            let _ = rustix::pipe::fcntl_setpipe_size(&file, PIPE_SIZE);
            Place::Stdout(unblocked(File::from(file)))
        } else {
            Place::Part(AtomicFile::by_rules(target, rules)?)
        };
        Ok(ByteWriter {
            place,
            bytes: 0,
            frames: 0,
            rules,
            closed: false,
            begun: None,
            gathered: Vec::new(),
            stop: None,
            is_perhaps_closed,
        })
    }

    /// The file's name, or "standard output".
    pub(in crate::sink) fn label(&self) -> &str {
        match &self.place {
            Place::Part(part) => part.label(),
            Place::Stdout(_) => "standard output",
        }
    }

    /// Bytes written so far.
    pub(in crate::sink) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frames written so far.
    pub(in crate::sink) fn frames(&self) -> u64 {
        self.frames
    }

    /// Writes bytes that belong to no frame.
    pub(super) fn write_header(&mut self, header: &[u8]) -> Result<Flow, SinkError> {
        self.send(&mut [IoSlice::new(header)])
    }

    /// Writes `header` and the frame's rows without their padding. Every frame must agree with the first.
    pub(super) fn write_frame(&mut self, header: &[u8], frame: &Frame) -> Result<Flow, SinkError> {
        let layout = *frame.layout();
        match &self.begun {
            None => self.begun = Some(layout),
            Some(first) => {
                if (first.format(), first.width(), first.height())
                    != (layout.format(), layout.width(), layout.height())
                {
                    return Err(SinkError::Mismatch {
                        path: self.label().to_owned(),
                        sequence: frame.sequence,
                        from: frame
                            .metadata
                            .file
                            .as_ref()
                            .map_or_else(String::new, |f| format!(" ({})", f.display())),
                        found: geometry(&layout),
                        expected: geometry(first),
                    });
                }
            }
        }
        let flow = if layout.is_tight() {
            self.send(&mut [IoSlice::new(header), IoSlice::new(frame.bytes())])?
        } else {
            self.gather(header, frame)?
        };
        if flow == Flow::More {
            self.frames += 1;
        }
        Ok(flow)
    }

    fn gather(&mut self, header: &[u8], frame: &Frame) -> Result<Flow, SinkError> {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.clear();
        gathered.extend_from_slice(header);
        let mut flow = Flow::More;
        'planes: for (index, plane) in frame.layout().planes().iter().enumerate() {
            for y in 0..plane.height {
                gathered.extend_from_slice(frame.row(index, y));
                if gathered.len() >= GATHER {
                    flow = self.send(&mut [IoSlice::new(&gathered)])?;
                    gathered.clear();
                    if flow == Flow::Closed {
                        break 'planes;
                    }
                }
            }
        }
        if flow == Flow::More {
            flow = self.send(&mut [IoSlice::new(&gathered)])?;
        }
        self.gathered = gathered;
        Ok(flow)
    }

    fn send(&mut self, mut pieces: &mut [IoSlice<'_>]) -> Result<Flow, SinkError> {
        if self.closed {
            return Ok(Flow::Closed);
        }
        let mut file = match &self.place {
            Place::Part(part) => part.file(),
            Place::Stdout(file) => file,
        };
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let outcome = match file.write_vectored(pieces) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                other => other,
            };
            match outcome {
                Ok(count) => {
                    self.bytes += count as u64;
                    IoSlice::advance_slices(&mut pieces, count);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The reader is slow; the pipe is non-blocking.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let _ = wait_a_tick(file, PollFlags::OUT);
                    if self.is_stopped() {
                        return Err(Stopped.into());
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                    self.closed = true;
                    return Ok(Flow::Closed);
                }
                Err(cause) => {
                    return Err(SinkError::Io {
                        path: self.label().to_owned(),
                        cause,
                    });
                }
            }
        }
        Ok(Flow::More)
    }

    /// Renames the file to its final name and returns what was written.
    pub(in crate::sink) fn finish(
        self,
        description: String,
        warnings: Vec<String>,
    ) -> Result<Written, SinkError> {
        let lost = self
            .is_perhaps_closed
            .then(|| format!("standard output {PERHAPS_CLOSED}"));
        let remarks = Remarks::warnings(warnings.into_iter().chain(lost));
        if self.rules.strict
            && let Some(problem) = remarks.refusal()
        {
            return Err(SinkError::Unsupported {
                path: self.label().to_owned(),
                problem,
            });
        }
        if let Place::Part(part) = self.place {
            part.commit()?;
        }
        Ok(Written {
            description,
            bytes: Some(self.bytes),
            remarks,
            closed_early: self.closed,
        })
    }
}

/// True for the /dev/null that Rust's start-up puts in place of a closed standard output. It is opened for
/// reading and writing, which no shell does for one's `>/dev/null`, but other programs do for their children.
pub fn is_stand_in(stdout: &io::Stdout) -> bool {
    let Ok(flags) = rustix::fs::fcntl_getfl(stdout) else {
        return false;
    };
    let null = rustix::fs::stat("/dev/null").map(|stat| stat.st_rdev);
    let own = rustix::fs::fstat(stdout).map(|stat| stat.st_rdev);
    flags & rustix::fs::OFlags::RWMODE == rustix::fs::OFlags::RDWR && null.is_ok() && null == own
}

/// The same pipe opened once more, so that writing to it does not sleep, and whoever shares the old one is
/// not disturbed; other files as they are.
fn unblocked(file: File) -> File {
    let is_pipe = file
        .metadata()
        .is_ok_and(|metadata| metadata.file_type().is_fifo());
    if !is_pipe {
        return file;
    }
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().write(true).custom_flags(flags).open(own);
    opened.unwrap_or(file)
}
