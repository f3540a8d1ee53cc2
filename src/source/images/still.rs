//! One image file: opened by its content, its header read, and then its pixels decoded into a frame's memory.

use super::Rules;
use super::jpeg::{self, Jpeg};
use super::listing::Page;
use super::ration::{PngPixels, Ration, Rationed};
use super::tga::Tga;
use super::tiff::{Problem, Tiff};
use crate::frame::fact::Fact;
use crate::frame::{Colour, Frame, FramePool, METADATA_LIMIT, Pageable, PixelFormat, Range, too_large};
use crate::source::video::floats::{self, quantised};
use crate::source::video::{VideoSource, VideoSourceOptions};
use crate::source::{Access, Source, SourceError, Supply};
use crate::still::annotations::{self, Aside, Described};
use crate::still::{Decoding, ImageKind};
use image::{ColorType, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Pictures up to this many bytes are decoded whatever the size of their file.
const ALWAYS_BELIEVED: u64 = 256 << 20;

/// Bytes of the largest file that is searched for what FFmpeg's decoders do not give.
const MOST_SEARCHED: u64 = 256 << 20;

/// Characters of a decoder's error that are passed on.
const MOST_WORDS: usize = 100;

/// Buffers of a decoder of FFmpeg's for one picture.
const FILM_BUFFERS: usize = 4;

/// An image file whose header has been read.
pub(super) struct Still<'a> {
    path: &'a Path,
    kind: ImageKind,
    pub(super) format: PixelFormat,
    pub(super) width: usize,
    pub(super) height: usize,
    /// The page of the file, if it is one of several that are read.
    page: Option<Page>,
    decoder: StillDecoder,
}

enum StillDecoder {
    Image(Box<dyn ImageDecoder>),
    Jpeg(Box<Jpeg>),
    Tiff(Box<Tiff>),
    Tga(Box<Tga>),
    /// The frame that FFmpeg has decoded.
    Film(Box<Film>),
}

/// A picture that FFmpeg has decoded.
struct Film {
    frame: Frame,
    notes: Vec<String>,
    described: Described,
}

/// What is said of a picture beside its pixels.
#[derive(Default)]
pub(super) struct Said {
    pub(super) icc_profile: Option<Vec<u8>>,
    pub(super) orientation: Option<u8>,
    /// What of the picture is missing, damaged or cut.
    pub(super) losses: Vec<String>,
    /// How samples were converted.
    pub(super) conversion: Option<String>,
}

impl<'a> Still<'a> {
    /// Opens a file by its content, or by its extension if the content does not tell.
    pub(super) fn open(path: &'a Path, rules: Rules) -> Result<Still<'a>, SourceError> {
        let io = |cause| io_error(path, cause);
        let mut file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(invalid(path, "is a directory, and an image file was expected"));
        }
        if metadata.len() == 0 {
            return Err(invalid(path, "is an empty file, not an image"));
        }
        let guess = ImageReader::new(BufReader::new(&file))
            .with_guessed_format()
            .map_err(io)?
            .format();
        let kind = guess
            .and_then(ImageKind::recognised)
            .or_else(|| ImageKind::read(path));
        let Some(kind) = kind else {
            return Err(invalid(
                path,
                "is no image that framepipe reads (PNG, JPEG, TIFF, BMP, WebP, PNM, OpenEXR, DPX, TGA, PFM, \
                 JPEG XL, AVIF, JPEG 2000, QOI, Radiance HDR, PSD)",
            ));
        };
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        match kind.decoding() {
            Decoding::Jpeg => Still::jpeg(path, file, metadata.len()),
            Decoding::Ffmpeg => Still::film(path, kind, rules),
            Decoding::Tiff => Still::tiff(path, None, metadata.len()),
            Decoding::Tga => Still::tga(path, metadata.len()),
            Decoding::Image(format) => {
                let ration = Ration::new();
                let input = BufReader::new(file);
                let decoder = if kind == ImageKind::Png {
                    decoder(Rationed::new(PngPixels::new(input), &ration), format)
                } else {
                    decoder(Rationed::new(input, &ration), format)
                };
                let decoder = match decoder {
                    Err(_) if kind == ImageKind::Bmp && is_second_os2(path) => {
                        return Still::film(path, kind, rules);
                    }
                    decoder => decoder.map_err(|e| failed(path, e))?,
                };
                // Deflate packs at most 1032 to 1, run lengths 128 to 1, raw formats hardly; flat WebP files
                // far more.
                let ratio = if kind == ImageKind::WebP { 20_000 } else { 1100 };
                Still::image(path, kind, (decoder, ration), metadata.len(), ratio)
            }
        }
    }

    fn image(
        path: &'a Path,
        kind: ImageKind,
        (decoder, ration): (Box<dyn ImageDecoder>, Ration),
        length: u64,
        ratio: u64,
    ) -> Result<Still<'a>, SourceError> {
        let (width, height) = decoder.dimensions();
        believed(path, decoder.total_bytes(), (width, height), length, ratio)?;
        ration.extend(decoder.total_bytes());
        Ok(Still {
            path,
            kind,
            format: pixel_format(path, decoder.color_type())?,
            width: width as usize,
            height: height as usize,
            page: None,
            decoder: StillDecoder::Image(decoder),
        })
    }

    fn jpeg(path: &'a Path, file: File, length: u64) -> Result<Still<'a>, SourceError> {
        let data = jpeg::picture(&mut BufReader::new(file)).map_err(|cause| io_error(path, cause))?;
        let jpeg = Jpeg::open(data).map_err(|words| invalid(path, &format!("cannot be decoded: {words}")))?;
        let name = if jpeg.is_gray() { "gray" } else { "rgb24" };
        let format = PixelFormat::from_name(name).ok_or_else(|| invalid(path, "is of no known format"))?;
        let (width, height) = (jpeg.width as u32, jpeg.height as u32);
        let claimed = u64::from(width) * u64::from(height) * 3;
        believed(path, claimed, (width, height), length, 20_000)?;
        Ok(Still {
            path,
            kind: ImageKind::Jpeg,
            format,
            width: jpeg.width,
            height: jpeg.height,
            page: None,
            decoder: StillDecoder::Jpeg(Box::new(jpeg)),
        })
    }

    /// Opens one page of a TIFF file.
    pub(super) fn open_page(path: &'a Path, page: Page) -> Result<Still<'a>, SourceError> {
        let metadata = std::fs::metadata(path).map_err(|cause| io_error(path, cause))?;
        Still::tiff(path, Some(page), metadata.len())
    }

    fn tiff(path: &'a Path, page: Option<Page>, length: u64) -> Result<Still<'a>, SourceError> {
        let tiff = match page {
            None => Tiff::open(path).map_err(|problem| tiff_error(path, problem))?,
            Some(page) => Tiff::open_page(path, page.place)
                .map_err(|problem| page_error(page, tiff_error(path, problem)))?,
        };
        let facts = tiff.facts();
        let name = match (facts.gray, facts.alpha, facts.deep) {
            (true, false, false) => "gray",
            (true, true, false) => "ya8",
            (false, false, false) => "rgb24",
            (false, true, false) => "rgba",
            (true, false, true) => "gray16le",
            (true, true, true) => "ya16le",
            (false, false, true) => "rgb48le",
            (false, true, true) => "rgba64le",
        };
        let format = PixelFormat::from_name(name).ok_or_else(|| invalid(path, "is of no known format"))?;
        let (width, height) = (facts.width, facts.height);
        let claimed = (u64::from(width) * u64::from(height))
            .saturating_mul(format.planes()[0].channels.len() as u64 * format.bytes_per_sample() as u64);
        believed(path, claimed, (width, height), length, 20_000)?;
        Ok(Still {
            path,
            kind: ImageKind::Tiff,
            format,
            width: width as usize,
            height: height as usize,
            page,
            decoder: StillDecoder::Tiff(Box::new(tiff)),
        })
    }

    fn tga(path: &'a Path, length: u64) -> Result<Still<'a>, SourceError> {
        let data = Tga::file(path).map_err(|cause| io_error(path, cause))?;
        let tga = Tga::open(data).map_err(|words| invalid(path, &format!("cannot be decoded: {words}")))?;
        let format = PixelFormat::from_name(tga.format());
        let format = format.ok_or_else(|| invalid(path, "is of no known format"))?;
        let (width, height) = (tga.width, tga.height);
        let claimed = 4 * width as u64 * height as u64;
        believed(path, claimed, (width as u32, height as u32), length, 1100)?;
        Ok(Still {
            path,
            kind: ImageKind::Tga,
            format,
            width,
            height,
            page: None,
            decoder: StillDecoder::Tga(Box::new(tga)),
        })
    }

    /// Has FFmpeg decode the first picture, since nothing else gives its format.
    fn film(path: &'a Path, kind: ImageKind, rules: Rules) -> Result<Still<'a>, SourceError> {
        let options = VideoSourceOptions {
            strict: rules.strict,
            threads: Some(1),
            access: Access {
                max_pixels: Some(rules.max_pixels),
                ..Access::default()
            },
            ..VideoSourceOptions::default()
        };
        let mut source = VideoSource::open(path, &options)?;
        let (_keep, stop) = crossbeam_channel::bounded(0);
        let supply = Supply {
            pool: FramePool::new(FILM_BUFFERS, Arc::new(Pageable)),
            stop,
        };
        let Some(frame) = source.next(&supply)? else {
            return Err(invalid(path, "holds no picture"));
        };
        let mut notes = Vec::new();
        let mut searched = || {
            let (data, left_out) = searched(path)?;
            notes.extend(left_out);
            Ok::<_, SourceError>(data)
        };
        let mut described = match kind {
            ImageKind::Avif | ImageKind::Jp2 | ImageKind::Jxl => annotations::boxes::read(&searched()?),
            ImageKind::Psd => annotations::psd::read(&searched()?),
            _ => Described::default(),
        };
        let is_large = |profile: &mut Vec<u8>| profile.len() > METADATA_LIMIT;
        if described.icc_profile.take_if(is_large).is_some() {
            notes.push(too_large("ICC profile"));
        }
        if source.next(&supply)?.is_some() {
            notes.push("several pictures are in the file, of which the first is read".to_owned());
        }
        notes.append(&mut source.findings().warnings);
        Ok(Still {
            path,
            kind,
            format: frame.format(),
            width: frame.layout().width(),
            height: frame.layout().height(),
            page: None,
            decoder: StillDecoder::Film(Box::new(Film {
                frame,
                notes,
                described,
            })),
        })
    }

    /// The colour facts of the pixels, as far as they are known before they are decoded.
    pub(super) fn colour(&self) -> Colour {
        match &self.decoder {
            StillDecoder::Film(film) => film.frame.metadata.colour,
            _ => Colour {
                range: Range::Full,
                ..Colour::default()
            },
        }
    }

    /// What the file says beside its pixels.
    pub(super) fn aside(&self) -> Result<Aside, SourceError> {
        let Some(container) = self.kind.container() else {
            let annotations = match &self.decoder {
                StillDecoder::Film(film) => film.described.annotations.clone(),
                _ => Default::default(),
            };
            return Ok(Aside {
                annotations,
                ..Aside::default()
            });
        };
        let page = self.page.map(|page| page.place);
        let read = |file| annotations::read_from(container, &mut BufReader::new(file), page);
        File::open(self.path)
            .and_then(read)
            .map_err(|cause| io_error(self.path, cause))
    }

    /// Decodes the pixels into `frame`, whose rows have no padding.
    pub(super) fn read(self, frame: &mut Frame) -> Result<Said, SourceError> {
        let path = self.path;
        match self.decoder {
            StillDecoder::Image(decoder) => {
                let mut said = Said::default();
                if decoder.color_type() == ColorType::Rgb32F {
                    said.losses.push(floats::loss());
                    read_floats(decoder, frame.bytes_mut()).map_err(|e| failed(path, e))?;
                } else {
                    decoder
                        .read_image(frame.bytes_mut())
                        .map_err(|e| failed(path, e))?;
                }
                Ok(said)
            }
            StillDecoder::Jpeg(jpeg) => {
                let conversion = jpeg
                    .is_cmyk()
                    .then(|| "colours of four inks (CMYK) become RGB".to_owned());
                let damage = jpeg
                    .read(frame.bytes_mut())
                    .map_err(|words| invalid(path, &format!("cannot be decoded: {words}")))?;
                Ok(Said {
                    losses: damage
                        .map(|words| format!("damaged: {words}"))
                        .into_iter()
                        .collect(),
                    conversion,
                    ..Said::default()
                })
            }
            StillDecoder::Tiff(tiff) => {
                let facts = tiff.facts().clone();
                tiff.read(frame.bytes_mut()).map_err(|problem| {
                    let error = tiff_error(path, problem);
                    match self.page {
                        Some(page) => page_error(page, error),
                        None => error,
                    }
                })?;
                let pages = facts.pages;
                let further = (pages > 1).then(|| {
                    format!(
                        "{pages} pictures are in the file, of which the first is read (given alone all \
                        are read)"
                    )
                });
                Ok(Said {
                    icc_profile: facts.icc,
                    orientation: facts.orientation.filter(|o| (2..=8).contains(o)),
                    losses: facts.lost.into_iter().chain(further).collect(),
                    conversion: facts.converted,
                })
            }
            StillDecoder::Tga(tga) => {
                let said = tga.read(frame.bytes_mut());
                Ok(Said {
                    conversion: said
                        .map_err(|words| invalid(path, &format!("cannot be decoded: {words}")))?,
                    ..Said::default()
                })
            }
            StillDecoder::Film(film) => {
                let Film {
                    frame: film,
                    notes,
                    described,
                } = *film;
                for index in 0..film.layout().planes().len() {
                    for y in 0..film.layout().planes()[index].height {
                        frame.row_mut(index, y).copy_from_slice(film.row(index, y));
                    }
                }
                let mut metadata = film.metadata.clone();
                metadata.pts = None;
                metadata.duration = None;
                let mut icc_profile = described.icc_profile;
                metadata.side_data.retain(|block| match block.fact {
                    Fact::IccProfile => {
                        icc_profile.get_or_insert_with(|| block.data.to_vec());
                        false
                    }
                    // Newer versions of FFmpeg tell it, too.
                    Fact::Rotation => described.orientation.is_none(),
                    _ => true,
                });
                // The decoder of JPEG XL has turned the picture already, whatever its Exif block says.
                let is_turned = self.kind == ImageKind::Jxl;
                frame.metadata = metadata;
                Ok(Said {
                    icc_profile,
                    orientation: described.orientation.or(is_turned.then_some(1)),
                    losses: notes,
                    ..Said::default()
                })
            }
        }
    }
}

/// The decoder of an image file, its header read.
fn decoder<'a>(
    input: impl BufRead + Seek + 'a,
    format: ImageFormat,
) -> Result<Box<dyn ImageDecoder + 'a>, ImageError> {
    let mut reader = ImageReader::with_format(input, format);
    reader.limits(unlimited());
    Ok(Box::new(reader.into_decoder()?))
}

/// A file's bytes, to be searched for annotations; none and a sentence if they are too many.
fn searched(path: &Path) -> Result<(Vec<u8>, Option<String>), SourceError> {
    let io = |cause| io_error(path, cause);
    let length = std::fs::metadata(path).map_err(io)?.len();
    if length > MOST_SEARCHED {
        let sentence = format!(
            "larger than {} MiB, so that only its pixels are read",
            MOST_SEARCHED >> 20
        );
        return Ok((Vec::new(), Some(sentence)));
    }
    Ok((std::fs::read(path).map_err(io)?, None))
}

/// Decodes floating-point samples as 16-bit ones.
fn read_floats(decoder: Box<dyn ImageDecoder>, samples: &mut [u8]) -> Result<(), ImageError> {
    let mut floats = vec![0; 2 * samples.len()];
    decoder.read_image(&mut floats)?;
    let (samples, _) = samples.as_chunks_mut::<2>();
    let (floats, _) = floats.as_chunks::<4>();
    for (to, from) in samples.iter_mut().zip(floats) {
        *to = quantised(f32::from_ne_bytes(*from)).to_le_bytes();
    }
    Ok(())
}

/// True for a BMP file with the header of OS/2's second version, which the image crate does not know and
/// FFmpeg does, and without the Huffman codes that it knows as well.
fn is_second_os2(path: &Path) -> bool {
    let mut head = [0; 34];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head[14..18] == [64, 0, 0, 0] && matches!(head[30..34], [0..=2, 0, 0, 0])
}

/// The library's own limit of 512 MiB would refuse honest pictures; headers that lie are found by their
/// file's length.
fn unlimited() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = None;
    limits
}

/// Refuses a picture of `claimed` bytes in a file of `length` that could not pack it, at `ratio` to 1.
fn believed(
    path: &Path,
    claimed: u64,
    (width, height): (u32, u32),
    length: u64,
    ratio: u64,
) -> Result<(), SourceError> {
    if claimed > ALWAYS_BELIEVED && claimed / ratio > length {
        return Err(invalid(
            path,
            &format!(
                "claims to hold {width}x{height} pixels in {length} bytes, which cannot be; the file is \
                 damaged"
            ),
        ));
    }
    Ok(())
}

pub(super) fn invalid(path: &Path, problem: &str) -> SourceError {
    SourceError::Invalid {
        path: path.display().to_string(),
        problem: problem.to_owned(),
    }
}

fn io_error(path: &Path, cause: io::Error) -> SourceError {
    SourceError::Io {
        path: path.display().to_string(),
        cause,
    }
}

fn tiff_error(path: &Path, problem: Problem) -> SourceError {
    match problem {
        Problem::Io(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => io_error(path, cause),
        Problem::Io(_) => invalid(path, "is an image file that ends early; it is truncated"),
        problem => invalid(path, &problem.to_string()),
    }
}

/// Names the page that is to blame.
fn page_error(page: Page, error: SourceError) -> SourceError {
    match error {
        SourceError::Invalid { path, problem } => SourceError::Invalid {
            path,
            problem: format!("page {}: {problem}", page.number),
        },
        error => error,
    }
}

fn pixel_format(path: &Path, color: ColorType) -> Result<PixelFormat, SourceError> {
    let name = match color {
        ColorType::L8 => "gray",
        ColorType::La8 => "ya8",
        ColorType::Rgb8 => "rgb24",
        ColorType::Rgba8 => "rgba",
        ColorType::L16 => "gray16le",
        ColorType::La16 => "ya16le",
        // See `read_floats`.
        ColorType::Rgb16 | ColorType::Rgb32F => "rgb48le",
        ColorType::Rgba16 => "rgba64le",
        _ => "",
    };
    PixelFormat::from_name(name).ok_or_else(|| {
        invalid(
            path,
            &format!(
                "holds {color:?} samples; framepipe reads gray and RGB, with or without alpha, of 8 or 16 \
                 bits, so convert it first"
            ),
        )
    })
}

fn failed(path: &Path, error: ImageError) -> SourceError {
    match error {
        ImageError::IoError(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => io_error(path, cause),
        ImageError::IoError(_) => invalid(path, "is an image file that ends early; it is truncated"),
        ImageError::Unsupported(e) => invalid(
            path,
            &format!(
                "is an image of a kind that framepipe does not read: {}",
                brief(&e)
            ),
        ),
        e => invalid(
            path,
            &format!("cannot be decoded, and may be damaged: {}", brief(&e)),
        ),
    }
}

/// A decoder's words, which may quote the file, without what is beyond [`MOST_WORDS`] characters.
fn brief(error: &dyn std::error::Error) -> String {
    let words = error.to_string();
    match words.char_indices().nth(MOST_WORDS) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words,
    }
}
