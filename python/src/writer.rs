//! Frames into a video file, with the sound, subtitles and facts of the one that they were read from.

use crate::failure::{Failure, in_python};
use crate::picture::Picture;
use crate::reader::Reader;
use framepipe::frame::{Frame, PixelFormat, Rational, Remarks};
use framepipe::pipeline::Stop;
use framepipe::sink::video::{VideoOptions, VideoSink};
use framepipe::sink::{Sink, SinkError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that is being written, and how many frames it has taken.
struct Open {
    sink: Box<dyn Sink>,
    /// Of the frames that it takes: width, height and format. `None` where those of the reader differ.
    shape: Option<(usize, usize, PixelFormat)>,
    frames: u64,
    time_base: Rational,
    stop: Stop,
}

impl Open {
    /// Refuses a frame that is not as those of the reader.
    fn accept(&self, frame: &Frame) -> Result<(), Failure> {
        let layout = frame.layout();
        let (width, height, format) = (layout.width(), layout.height(), layout.format());
        match self.shape {
            Some(shape) if shape != (width, height, format) => Err(Failure::error(format!(
                "the frame is {width}x{height} {format}, but the file is for frames of {}x{} {}, as those of \
                 the reader that it is like",
                shape.0, shape.1, shape.2
            ))),
            _ => Ok(()),
        }
    }
}

/// A video file that grows by a frame at a time. It gets its name when it is finished.
#[pyclass(frozen, module = "framepipe._framepipe")]
pub(crate) struct Writer {
    open: Mutex<Option<Open>>,
    process: u32,
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (
        path, like, *, overwrite, encoder, quality, preset, pixel_format, encoder_options, copy_streams,
        strict
    ))]
    // Python's arguments come one by one.
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        like: &Bound<'_, Reader>,
        overwrite: bool,
        encoder: Option<String>,
        quality: Option<f64>,
        preset: Option<String>,
        pixel_format: Option<String>,
        encoder_options: Vec<(String, String)>,
        copy_streams: bool,
        strict: bool,
    ) -> Result<Writer, Failure> {
        let mut options = VideoOptions::new(path);
        options.overwrite = overwrite;
        options.encoder = encoder;
        options.quality = quality;
        options.preset = preset;
        options.pixel_format = pixel_format;
        options.encoder_options = encoder_options;
        options.copy_streams = copy_streams;
        options.strict = strict;
        let info = like.get().info.clone();
        let sink = py.detach(|| VideoSink::create(&info, options))?;
        let stop = Stop::new();
        let mut sink: Box<dyn Sink> = Box::new(sink);
        sink.watch(stop.abandoned());
        let shape = info.uniform.then_some((info.width, info.height, info.format));
        let open = Open {
            sink,
            shape,
            frames: 0,
            time_base: info.time_base,
            stop,
        };
        Ok(Writer {
            open: Mutex::new(Some(open)),
            process: std::process::id(),
        })
    }

    /// Encodes a picture.
    fn write(&self, py: Python<'_>, picture: &Bound<'_, Picture>) -> Result<(), Failure> {
        self.check_process()?;
        let mut frame = picture.get().frame(py, 0)?;
        let ticks = picture.get().time_base;
        py.detach(|| {
            let mut open = self.open();
            let Some(file) = &mut *open else {
                return Err(closed());
            };
            frame.sequence = file.frames;
            // The frame may be another reader's.
            let metadata = &mut frame.metadata;
            for time in [&mut metadata.pts, &mut metadata.duration] {
                *time = time.map(|time| rescaled(time, ticks, file.time_base));
            }
            let written = file.accept(&frame).and_then(|()| Ok(file.sink.write(frame)?));
            match written {
                Ok(_) => file.frames += 1,
                // What came so far is removed.
                Err(_) => *open = None,
            }
            written.map(drop)
        })
    }

    /// Writes what is held back and gives the file its name; what was written, and what there is to say.
    fn finish(&self, py: Python<'_>) -> Result<(String, Vec<String>), Failure> {
        self.check_process()?;
        py.detach(|| {
            let Some(file) = self.open().take() else {
                return Err(closed());
            };
            if file.frames == 0 {
                return Err(Failure::error("no frame was written; the file is left out"));
            }
            let written = file
                .sink
                .finish()
                .map_err(|error: SinkError| Failure::from(error))?;
            let Remarks { warnings, .. } = written.remarks;
            let warnings = warnings.iter().map(|warning| in_python(warning)).collect();
            Ok((written.description, warnings))
        })
    }

    /// Leaves nothing under the file's name.
    fn abandon(&self, py: Python<'_>) {
        if self.check_process().is_err() {
            return self.forget();
        }
        py.detach(|| {
            if let Some(file) = self.open().take() {
                file.stop.abandon();
            }
        });
    }

    /// True until it is finished or abandoned.
    #[getter]
    fn is_open(&self) -> bool {
        self.open().is_some()
    }
}

impl Writer {
    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        // A sink that panicked is dropped with what it wrote.
        self.open.lock().unwrap_or_else(|poisoned| {
            let mut open = PoisonError::into_inner(poisoned);
            *open = None;
            open
        })
    }

    /// Leaves the file to the process that opened it, a thread of which may have been in here.
    fn forget(&self) {
        let open = self.open.try_lock();
        std::mem::forget(open.ok().and_then(|mut open| open.take()));
    }

    fn check_process(&self) -> Result<(), Failure> {
        match std::process::id() == self.process {
            true => Ok(()),
            false => Err(Failure::error(
                "this file was opened before the process forked; write it in the process that opened it",
            )),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            self.forget();
        }
    }
}

/// A time in ticks of `from` as one in ticks of `to`, to nearest.
fn rescaled(time: i64, from: Rational, to: Rational) -> i64 {
    let over = |a: i32, b: i32| i128::from(a) * i128::from(b);
    let (above, below) = (over(from.num, to.den), over(from.den, to.num));
    if above == below || below <= 0 {
        return time;
    }
    let twice = 2 * i128::from(time) * above + below;
    i64::try_from(twice.div_euclid(2 * below)).unwrap_or(time)
}

fn closed() -> Failure {
    Failure::error("the file is closed; framepipe.write opens another")
}
