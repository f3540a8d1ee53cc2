//! Raw video: the bytes of each frame, planes in order, rows without padding, nothing else; the user states
//! the geometry.

use super::byte_reader::{ByteReader, ends_in_mid_frame};
use super::excess::Excess;
use crate::frame::{
    BadRate, Buffer, Frame, Layout, LayoutError, Metadata, PixelFormat, Rational, Remarks,
    UnknownPixelFormat, parse_rate,
};
use crate::source::{AnySource, IndexedSource, Source, SourceError, StreamInfo, Supply};
use crate::waiting::WaitLimit;
use crate::wording::counted;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// The geometry of raw frames: `raw:1920x1080:yuv420p:30`. The frame rate is 25 if it is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawSpec {
    /// Where the planes lie, without padding.
    pub layout: Layout,
    /// Frames a second.
    pub rate: Rational,
}

/// A geometry that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawSpecError {
    /// Parts are missing or too many.
    #[error("'{0}' is no geometry; write WIDTHxHEIGHT:FORMAT:FPS, such as 1920x1080:yuv420p:30")]
    Shape(String),
    /// The size is not two numbers.
    #[error("'{0}' is no size; write WIDTHxHEIGHT, such as 1920x1080")]
    Size(String),
    /// The size is impossible.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The pixel format is unknown.
    #[error(transparent)]
    Format(#[from] UnknownPixelFormat),
    /// The frame rate is none.
    #[error(transparent)]
    Rate(#[from] BadRate),
}

impl RawSpec {
    /// Reads the parts that stand between colons: size, format and, perhaps, frame rate.
    pub(in crate::source) fn from_parts(
        size: &str,
        format: Option<&str>,
        rate: Option<&str>,
    ) -> Result<RawSpec, RawSpecError> {
        let (width, height) = size
            .split_once('x')
            .and_then(|(w, h)| Some((w.parse::<u32>().ok()?, h.parse::<u32>().ok()?)))
            .ok_or_else(|| RawSpecError::Size(size.to_owned()))?;
        let format: PixelFormat = format.unwrap_or("yuv420p").parse()?;
        Ok(RawSpec {
            layout: Layout::new(format, width as usize, height as usize, 1)?,
            rate: rate.map_or(Ok(Rational { num: 25, den: 1 }), parse_rate)?,
        })
    }

    /// What is known of a stream of this geometry.
    pub(in crate::source) fn info(&self, frames: Option<u64>, description: String) -> StreamInfo {
        let (format, width, height) = (self.layout.format(), self.layout.width(), self.layout.height());
        StreamInfo {
            frames,
            ..StreamInfo::new(format, width, height)
        }
        .at_rate(self.rate)
        .described(description)
    }
}

impl FromStr for RawSpec {
    type Err = RawSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.strip_prefix("raw:").unwrap_or(text).split(':').collect();
        match parts[..] {
            [size, format] => RawSpec::from_parts(size, Some(format), None),
            [size, format, rate] => RawSpec::from_parts(size, Some(format), Some(rate)),
            _ => Err(RawSpecError::Shape(text.to_owned())),
        }
    }
}

impl fmt::Display for RawSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = &self.layout;
        write!(
            f,
            "raw:{}x{}:{}:",
            layout.width(),
            layout.height(),
            layout.format()
        )?;
        match self.rate {
            Rational { num, den: 1 } => write!(f, "{num}"),
            Rational { num, den } => write!(f, "{num}/{den}"),
        }
    }
}

/// Metadata of frame `index` of a stream with a constant frame rate.
pub(in crate::source) fn metadata(index: u64) -> Metadata {
    Metadata {
        pts: Some(index as i64),
        duration: Some(1),
        sample_aspect: (0, 1),
        ..Metadata::default()
    }
}

/// Opens raw frames: a regular file is read by several threads, a pipe (or "-") in order.
///
/// A file that does not hold a whole number of frames is refused at once.
pub fn open(path: &Path, spec: &RawSpec, limit: Option<&WaitLimit>) -> Result<AnySource, SourceError> {
    let mut reader = ByteReader::open(path)?;
    reader.set_limit(limit);
    let frame_bytes = spec.layout.size() as u64;
    let label = reader.label().to_owned();
    match reader.length() {
        Some(length) if path.as_os_str() != "-" => {
            let (whole, rest) = (length / frame_bytes, length % frame_bytes);
            if rest > 0 {
                return Err(reader.invalid(ends_in_mid_frame(whole, rest, frame_bytes)));
            }
            Ok(AnySource::Indexed(Arc::new(RawFile {
                file: reader.into_file(),
                info: spec.info(
                    Some(whole),
                    format!("{} of {label} as {spec}", counted(whole, "raw frame")),
                ),
                label,
                layout: spec.layout,
                frames: whole,
                excess: Excess::default(),
            })))
        }
        // Standard input may be a file that was read to some place already, so its length says nothing.
        _ => Ok(AnySource::Stream(Box::new(RawPipe {
            reader,
            info: spec.info(None, format!("raw frames of {label} as {spec}")),
            layout: spec.layout,
            read: 0,
            excess: Excess::default(),
        }))),
    }
}

fn remarks(excess: &Excess, label: &str, format: PixelFormat) -> Remarks {
    let sentence = excess.sentence(format);
    let sentence = sentence.map(|sentence| format!("{label}: {sentence}"));
    match format.shift() {
        0 => Remarks::warnings(sentence),
        // FFmpeg leaves a copy of the upper ones there where it makes p010 of 8 bits.
        _ => Remarks {
            notes: sentence.into_iter().collect(),
            ..Remarks::default()
        },
    }
}

struct RawFile {
    file: File,
    info: StreamInfo,
    label: String,
    layout: Layout,
    frames: u64,
    excess: Excess,
}

impl IndexedSource for RawFile {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn len(&self) -> u64 {
        self.frames
    }

    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        let mut frame = Frame::new(self.layout, buffer)?;
        let at = index * self.layout.size() as u64;
        self.file.read_exact_at(frame.bytes_mut(), at).map_err(|cause| {
            if cause.kind() == std::io::ErrorKind::UnexpectedEof {
                SourceError::Invalid {
                    path: self.label.clone(),
                    problem: format!("became shorter while it was read: frame {index} is no longer there"),
                }
            } else {
                SourceError::Io {
                    path: self.label.clone(),
                    cause,
                }
            }
        })?;
        self.excess.remove(&mut frame);
        frame.sequence = index;
        frame.metadata = metadata(index);
        Ok(frame)
    }

    fn remarks(&self) -> Remarks {
        remarks(&self.excess, &self.label, self.layout.format())
    }
}

struct RawPipe {
    reader: ByteReader,
    info: StreamInfo,
    layout: Layout,
    read: u64,
    excess: Excess,
}

impl Source for RawPipe {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        let Some(mut frame) = self.reader.read_frame(self.layout, self.read, supply)? else {
            return Ok(None);
        };
        self.excess.remove(&mut frame);
        frame.metadata = metadata(self.read);
        self.read += 1;
        Ok(Some(frame))
    }

    fn remarks(&mut self) -> Remarks {
        remarks(&self.excess, self.reader.label(), self.layout.format())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometries_are_read_and_printed_again() {
        let spec: RawSpec = "raw:5x3:yuv420p10:30000/1001".parse().unwrap();
        assert_eq!(spec.to_string(), "raw:5x3:yuv420p10le:30000/1001");
        assert_eq!(spec.layout.size(), 2 * (15 + 6 + 6));
        assert_eq!(spec.to_string().parse::<RawSpec>().unwrap(), spec);
        assert_eq!(
            "4x2:rgb24".parse::<RawSpec>().unwrap().to_string(),
            "raw:4x2:rgb24:25"
        );
    }

    #[test]
    fn wrong_geometries_say_what_is_wrong() {
        let wrong = |text: &str| text.parse::<RawSpec>().unwrap_err();
        assert!(matches!(wrong("raw:"), RawSpecError::Shape(_)));
        assert!(matches!(wrong("raw:4x4"), RawSpecError::Shape(_)));
        assert!(matches!(wrong("4x4:gray:1:2"), RawSpecError::Shape(_)));
        assert!(matches!(wrong("4y4:gray"), RawSpecError::Size(_)));
        assert!(matches!(wrong("0x4:gray"), RawSpecError::Layout(_)));
        assert!(matches!(wrong("4x4:pal8"), RawSpecError::Format(_)));
        assert!(matches!(wrong("4x4:gray:0"), RawSpecError::Rate(_)));
    }
}
