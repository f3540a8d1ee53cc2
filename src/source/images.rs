//! Image files as frames, decoded straight into the frames' memory by as many threads as the pipeline likes.

use super::animation::is_animated;
use super::listing::{image_format, list};
use super::{IndexedSource, SourceError, StreamInfo};
use crate::frame::{Buffer, Colour, FieldOrder, Frame, Layout, Metadata, PixelFormat, Range, Rational};
use image::codecs::tiff::TiffDecoder;
use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pictures up to this many bytes are decoded whatever the size of their file.
const ALWAYS_BELIEVED: u64 = 256 << 20;

/// The image files that one input names.
pub struct ImageFiles {
    files: Arc<[PathBuf]>,
    info: StreamInfo,
    /// How many of the files read so far are animations.
    animated: AtomicU64,
}

/// Lists the image files that `input` names (a file, a directory, `frames/%05d.png`, or a glob) and reads the
/// header of the first. `fps` gives the frames a time: one tick each.
pub fn open(input: &Path, fps: Option<Rational>) -> Result<ImageFiles, SourceError> {
    let files = list(input)?;
    let first = decoder(&files[0])?;
    let (width, height) = first.dimensions();
    let format = pixel_format(&files[0], first.color_type())?;
    Layout::new(format, width as usize, height as usize, 1).map_err(|cause| SourceError::Layout {
        path: files[0].display().to_string(),
        cause,
    })?;
    let count = files.len();
    let info = StreamInfo {
        format,
        width: width as usize,
        height: height as usize,
        uniform: count == 1,
        brings_memory: false,
        frame_rate: fps,
        time_base: fps.map_or(Rational { num: 1, den: 25 }, |r| Rational {
            num: r.den,
            den: r.num,
        }),
        frames: Some(count as u64),
        colour: colour(),
        sample_aspect: (0, 1),
        field_order: FieldOrder::Progressive,
        side_data: Vec::new(),
        origin: None,
        description: format!(
            "{count} image {} from {}, the first {width}x{height} {format}",
            if count == 1 { "file" } else { "files" },
            input.display()
        ),
    };
    Ok(ImageFiles {
        files: files.into(),
        info,
        animated: AtomicU64::new(0),
    })
}

impl ImageFiles {
    /// The files, one a frame.
    pub fn files(&self) -> &Arc<[PathBuf]> {
        &self.files
    }
}

impl IndexedSource for ImageFiles {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn len(&self) -> u64 {
        self.files.len() as u64
    }

    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        let path = &self.files[index as usize];
        if is_animated(path) {
            self.animated.fetch_add(1, Ordering::Relaxed);
        }
        let mut frame = read_image(path, buffer)?;
        frame.sequence = index;
        if self.info.frame_rate.is_some() {
            frame.metadata.pts = Some(index as i64);
            frame.metadata.duration = Some(1);
        }
        Ok(frame)
    }

    fn warnings(&self) -> Vec<String> {
        let files = match self.animated.load(Ordering::Relaxed) {
            0 => return Vec::new(),
            1 => "1 of the image files is an animation".to_owned(),
            n => format!("{n} of the image files are animations"),
        };
        vec![format!(
            "{files}, of which only the first frame is read; an animation given alone is read as a video"
        )]
    }
}

/// Decodes one file.
fn read_image(path: &Path, buffer: Buffer) -> Result<Frame, SourceError> {
    let mut decoder = decoder(path)?;
    let (width, height) = decoder.dimensions();
    let format = pixel_format(path, decoder.color_type())?;
    let layout =
        Layout::new(format, width as usize, height as usize, 1).map_err(|cause| SourceError::Layout {
            path: path.display().to_string(),
            cause,
        })?;
    let mut frame = Frame::new(layout, buffer)?;
    // Unreadable annotations are no reason to refuse the picture.
    let icc_profile = decoder.icc_profile().ok().flatten().filter(|p| !p.is_empty());
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    decoder.set_limits(unlimited()).map_err(|e| failed(path, e))?;
    decoder
        .read_image(frame.bytes_mut())
        .map_err(|e| failed(path, e))?;
    frame.metadata = Metadata {
        colour: colour(),
        sample_aspect: (0, 1),
        file: Some(Arc::new(path.to_owned())),
        icc_profile: icc_profile.map(Into::into),
        orientation: (orientation != Orientation::NoTransforms).then(|| orientation.to_exif()),
        ..Metadata::default()
    };
    Ok(frame)
}

/// The library's own limit of 512 MiB would refuse honest pictures; headers that lie are found by their
/// file's length.
fn unlimited() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = None;
    limits
}

fn colour() -> Colour {
    Colour {
        range: Range::Full,
        ..Colour::default()
    }
}

/// Opens a file by its content, or by its extension if the content does not tell.
fn decoder(path: &Path) -> Result<Box<dyn ImageDecoder>, SourceError> {
    let io = |cause| SourceError::Io {
        path: path.display().to_string(),
        cause,
    };
    let mut file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    let invalid = |problem: String| SourceError::Invalid {
        path: path.display().to_string(),
        problem,
    };
    if metadata.is_dir() {
        return Err(invalid(
            "is a directory, and an image file was expected".to_owned(),
        ));
    }
    if metadata.len() == 0 {
        return Err(invalid("is an empty file, not an image".to_owned()));
    }
    let guess = ImageReader::new(BufReader::new(&file))
        .with_guessed_format()
        .map_err(io)?
        .format();
    let Some(format) = guess.or_else(|| image_format(path)) else {
        return Err(invalid(
            "is no image that framepipe reads (PNG, JPEG, TIFF, BMP, WebP, PNM)".to_owned(),
        ));
    };
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    if format == ImageFormat::Jpeg {
        complete_jpeg(path)?;
    }
    let input = BufReader::new(file);
    // A TIFF decoder applies the limit that is set for pixels to the tags too, and would hide a small
    // picture's profile; so it gets its limits after the tags were read.
    let decoder: Box<dyn ImageDecoder> = if format == ImageFormat::Tiff {
        Box::new(TiffDecoder::new(input).map_err(|e| failed(path, e))?)
    } else {
        let mut reader = ImageReader::with_format(input, format);
        reader.limits(unlimited());
        Box::new(reader.into_decoder().map_err(|e| failed(path, e))?)
    };
    let claimed = decoder.total_bytes();
    // Deflate packs at most 1032 to 1, run lengths 128 to 1, raw formats hardly; flat WebP, JPEG and TIFF
    // files far more.
    let ratio = match format {
        ImageFormat::Png | ImageFormat::Bmp | ImageFormat::Pnm => 1100,
        _ => 20_000,
    };
    if claimed > ALWAYS_BELIEVED && claimed / ratio > metadata.len() {
        let (width, height) = decoder.dimensions();
        return Err(invalid(format!(
            "claims to hold {width}x{height} pixels in {} bytes, which cannot be; the file is damaged",
            metadata.len()
        )));
    }
    Ok(decoder)
}

/// Refuses JPEG data that ends early: the decoder would fill what is missing with gray and say nothing.
fn complete_jpeg(path: &Path) -> Result<(), SourceError> {
    let data = std::fs::read(path).map_err(|cause| SourceError::Io {
        path: path.display().to_string(),
        cause,
    })?;
    if jpeg_ends(&data) {
        return Ok(());
    }
    Err(SourceError::Invalid {
        path: path.display().to_string(),
        problem: "is a JPEG file that ends early; it is truncated".to_owned(),
    })
}

/// True if the markers of a JPEG stream lead to its end-of-image marker.
fn jpeg_ends(data: &[u8]) -> bool {
    const END: u8 = 0xd9;
    let mut at = 2;
    while let Some(&byte) = data.get(at) {
        // Outside of segments there is entropy-coded data, in which FF is followed by 00 or a restart marker.
        let marker = match (byte, data.get(at + 1)) {
            (0xff, Some(&marker)) => marker,
            _ => {
                at += 1;
                continue;
            }
        };
        match marker {
            END => return true,
            0xff => at += 1,
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2,
            _ => {
                let Some(length) = data.get(at + 2..at + 4) else {
                    return false;
                };
                at += 2 + usize::from(u16::from_be_bytes([length[0], length[1]]));
            }
        }
    }
    false
}

fn pixel_format(path: &Path, color: ColorType) -> Result<PixelFormat, SourceError> {
    let name = match color {
        ColorType::L8 => "gray",
        ColorType::La8 => "ya8",
        ColorType::Rgb8 => "rgb24",
        ColorType::Rgba8 => "rgba",
        ColorType::L16 => "gray16le",
        ColorType::La16 => "ya16le",
        ColorType::Rgb16 => "rgb48le",
        ColorType::Rgba16 => "rgba64le",
        _ => "",
    };
    PixelFormat::from_name(name).ok_or_else(|| SourceError::Invalid {
        path: path.display().to_string(),
        problem: format!(
            "holds {color:?} samples; framepipe reads gray and RGB, with or without alpha, of 8 or 16 bits, so convert it first"
        ),
    })
}

fn failed(path: &Path, error: ImageError) -> SourceError {
    let path = path.display().to_string();
    match error {
        ImageError::IoError(cause) if cause.kind() != std::io::ErrorKind::UnexpectedEof => {
            SourceError::Io { path, cause }
        }
        ImageError::IoError(_) => SourceError::Invalid {
            path,
            problem: "is an image file that ends early; it is truncated".to_owned(),
        },
        ImageError::Unsupported(e) => SourceError::Invalid {
            path,
            problem: format!("is an image of a kind that framepipe does not read: {e}"),
        },
        e => SourceError::Invalid {
            path,
            problem: format!("cannot be decoded, and may be damaged: {e}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_jpeg_is_found_by_its_markers() {
        // A segment that holds an end marker of its own (a thumbnail's), then a scan with stuffed bytes, then
        // the end.
        let whole = [
            0xff, 0xd8, 0xff, 0xe1, 0, 6, 0xff, 0xd9, 1, 2, 0xff, 0xda, 0, 3, 9, 7, 0xff, 0, 8, 0xff, 0xd0,
            5, 0xff, 0xd9,
        ];
        assert!(jpeg_ends(&whole));
        for end in 0..whole.len() {
            assert!(!jpeg_ends(&whole[..end]), "{end}");
        }
    }
}
