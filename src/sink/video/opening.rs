//! Preparing an output: container, encoder and temporary file.

use super::container::Container;
use super::passthrough::no_audio_encoder;
use super::passthrough::selection::AudioEncoding;
use super::settings::selection;
use super::{Output, VideoOptions, VideoSink, is_same_file};
use crate::frame::PixelFormat;
use crate::media::ffmpeg::{AudioEncoderKind, AvFormat, Muxer, MuxerFailure};
use crate::sink::SinkError;
use crate::sink::atomic_file::AtomicFile;
use crate::source::StreamInfo;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// True for the name of a still that the sinks of images write.
fn is_written_still(path: &Path) -> bool {
    #[cfg(feature = "images")]
    return crate::media::still::ImageKind::of(path).is_some();
    #[cfg(not(feature = "images"))]
    {
        let _ = path;
        false
    }
}

/// Says how stills are written, if `--format` names a kind of still and no container.
fn stills_wanted(options: &VideoOptions) -> Option<String> {
    let name = options.muxer.as_deref()?;
    let is_no_container = match Muxer::in_memory(Some(name), &options.path) {
        Err(MuxerFailure::NoFile(muxer)) => muxer.starts_with("image2"),
        // Icons are written as stills: FFmpeg's muxer does not fill up the rows of their masks.
        Err(MuxerFailure::Unknown | MuxerFailure::Open(_)) | Ok(_) => name == "ico",
    };
    is_no_container.then(|| {
        let is_folder = options.path.is_dir() || options.path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let advice = match is_folder {
            true => {
                let ending = if name == "image2" { "png" } else { name };
                let pattern = options.path.join(format!("%04d.{ending}"));
                format!("write '{}' for such files in the folder", pattern.display())
            }
            false => "end the name in .png, .tif, .pgm or .jpg for stills".to_owned(),
        };
        format!("--format is for containers, and {name} is a kind of still; {advice}, without --format")
    })
}

impl VideoSink {
    /// Prepares the output: container, encoder and temporary file. What can be known to fail before the first
    /// frame fails here.
    pub fn create(info: &StreamInfo, options: VideoOptions) -> Result<VideoSink, SinkError> {
        let name = options.path.display().to_string();
        let unsupported = |problem: String| SinkError::Unsupported {
            path: name.clone(),
            problem,
        };
        if let Some(origin) = &info.origin
            && is_same_file(&origin.path, &options.path)
        {
            return Err(unsupported(
                "is the input itself; write to another file, and rename it afterwards".to_owned(),
            ));
        }
        if let Some(problem) = stills_wanted(&options) {
            return Err(unsupported(problem));
        }
        let file = AtomicFile::by_rules(&options.path, options.rules())?;
        let mut muxer =
            Muxer::create(options.muxer.as_deref(), &options.path, file.path()).map_err(|failure| {
                match failure {
                    MuxerFailure::Unknown => unsupported(match &options.muxer {
                        Some(muxer) => format!(
                            "this FFmpeg has no container '{muxer}' to write; try mp4, mov, \
                        matroska, webm or avi"
                        ),
                        None => "its name does not tell the container; end it in .mp4, .mov, .mkv, .webm or \
                        .avi, or name one with --format; pictures are .png, .jpg or .tif"
                            .to_owned(),
                    }),
                    MuxerFailure::NoFile(muxer) if muxer.starts_with("image2") => {
                        let problem = match is_written_still(&options.path) {
                            true => "is the name of a single picture, and a video is written here; end it in",
                            false => {
                                "is the name of a still of a kind that framepipe does not write; stills end \
                                 in .png, .tif, .pgm or .jpg, videos in"
                            }
                        };
                        unsupported(format!("{problem} .mp4, .mov, .mkv, .webm or .avi"))
                    }
                    MuxerFailure::NoFile(muxer) => unsupported(format!(
                        "{muxer} does not write into one file; choose another container"
                    )),
                    MuxerFailure::Open(e) => SinkError::Io {
                        path: name.clone(),
                        cause: e.to_io(),
                    },
                }
            })?;
        if is_pipe(&options.path) {
            // A trial does not open it.
            muxer.forbid_seeking();
        }
        let container = Container::of(&muxer, options.muxer.as_deref(), &options.path);
        let encoder = options.encoder.as_deref();
        let kind = selection::choose_encoder(&muxer, &container, encoder, info.format, false)
            .map_err(unsupported)?;
        if let AudioEncoding::By(name) = &options.streams.audio
            && AudioEncoderKind::find(name).is_none()
        {
            return Err(unsupported(no_audio_encoder(name)));
        }
        let sink = VideoSink {
            name,
            kind,
            origin: info.origin.clone().filter(|_| options.copy_streams),
            info: info.clone(),
            output: Output { running: None, muxer },
            container,
            file,
            warnings: Vec::new(),
            device: None,
            stop: None,
            is_closed: false,
            options,
        };
        if sink.is_encoder_settled() {
            sink.try_encoder()?;
        }
        Ok(sink)
    }

    /// FFmpeg's name of the encoder, as far as it is known before the first frame.
    pub fn encoder_name(&self) -> String {
        self.kind.name()
    }

    /// The format of floating-point samples that the encoder takes and that holds all of `format`'s; `None`
    /// if there is none.
    pub fn nearest_floats(&self, format: PixelFormat) -> Option<PixelFormat> {
        // Raw video takes all, but no container states floating-point samples in it.
        let taken = self.kind.formats();
        let knows = |name: &str| AvFormat::from_name(name).is_some_and(|f| taken.contains(&f));
        let holds = |other: PixelFormat| {
            (other.model(), other.has_alpha()) == (format.model(), format.has_alpha())
                && other.depth() >= format.depth()
                && knows(other.name())
        };
        let found = PixelFormat::floats().filter(|&other| holds(other));
        // Its own, or else the smallest.
        found.min_by_key(|&other| (other != format, other.depth()))
    }

    /// True if streams that were encoded in parts can be put together in the container: not so for pictures
    /// that build on one palette or canvas.
    pub fn is_joinable(&self) -> bool {
        !matches!(self.output.muxer.name().as_str(), "gif" | "webp" | "apng")
    }

    /// True if the user said something about the encoder, and no frame can change which one it is.
    fn is_encoder_settled(&self) -> bool {
        let options = &self.options;
        let has_options = options.quality.is_some()
            || options.preset.is_some()
            || !options.encoder_options.is_empty()
            || options.pixel_format.is_some();
        let is_named = options.encoder.is_some();
        let can_be_tried = self.info.uniform && !self.kind.waits_for_a_picture();
        can_be_tried && (is_named || has_options && !self.info.format.has_alpha())
    }
}

/// True for a pipe or socket, in which nothing can be changed that was written.
fn is_pipe(path: &Path) -> bool {
    let facts = std::fs::metadata(path).map(|facts| facts.file_type());
    facts.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}
