//! One image file: opened by its content, its header read, and then its pixels decoded into a frame's memory.

use super::error::{failed, invalid, io_error, reason_error, tiff_error};
use super::ffmpeg_still::FfmpegStill;
use super::formats::checked_png::CheckedPng;
use super::formats::tiff::Tiff;
use super::formats::webp_chunks::Missing;
use super::formats::{
    bmp_alpha, bmp_runs, dds, exr, hdr, ico, jpeg, palette, pfm, pnm, tga, webp_chunks, webp_flags,
};
use super::listing::Page;
use super::picture::{OpenPicture, PictureNotes, Reason, cut_sentence};
use super::read_budget::{BudgetedReader, PngPixels, ReadBudget};
use super::trailing::several_pictures;
use super::{Rules, content};
use crate::annotations::{self, Container, FileMetadata};
use crate::frame::{AlphaKind, Colour, Frame, PixelFormat, Range, Turn};
use crate::media::still::{Decoding, ImageKind};
use crate::source::{SourceError, check_pixels};
use image::{ColorType, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// Pictures up to this many bytes are decoded whatever the size of their file.
const ALWAYS_PLAUSIBLE: u64 = 256 << 20;

/// The most bytes that a byte of Deflate can stand for: 1032, and some for what is around it. Run lengths and
/// raw samples stay below.
const DEFLATE: u64 = 1100;

/// What is said of a PNG file whose pixels have another checksum than it states.
const WRONG_CHECKSUM: &str = "the checksum of its pixels is wrong: it is damaged";

/// What is said of a header that is longer than those of pictures.
const LARGE_HEADER: &str = "has a header of more than 1 MiB, which is not read; take long comments out of it";

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
    Image(Box<ByImage>),
    Open(Box<dyn OpenPicture>),
    Tiff(Box<Tiff>),
    /// The frame that FFmpeg has decoded.
    Ffmpeg(Box<FfmpegStill>),
}

/// A picture that the image crate decodes.
struct ByImage {
    decoder: Box<dyn ImageDecoder>,
    /// What of the file is left out, in words.
    losses: Vec<String>,
    /// What it says beside its pixels, if that does not stand in the file itself.
    metadata: Option<FileMetadata>,
    /// Width over height of a pixel, if both are above 0.
    sample_aspect: (i32, i32),
    /// H.273's number of the primaries, if it is known.
    primaries: Option<u8>,
}

impl ByImage {
    fn of(decoder: Box<dyn ImageDecoder>) -> ByImage {
        ByImage {
            decoder,
            losses: Vec::new(),
            metadata: None,
            sample_aspect: (0, 0),
            primaries: None,
        }
    }
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
        let kind = content::kind_of(path)
            .map_err(io)?
            .or_else(|| guess.and_then(ImageKind::recognised))
            .or_else(|| ImageKind::read(path));
        let Some(kind) = kind else {
            return Err(invalid(
                path,
                &format!("is no image that framepipe reads ({})", ImageKind::names()),
            ));
        };
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        let length = metadata.len();
        match kind.decoding() {
            Decoding::Jpeg => Still::picture(path, kind, jpeg::open(path), length),
            Decoding::Tga => Still::picture(path, kind, tga::open(path), length),
            Decoding::Dds => Still::picture(path, kind, dds::open(path), length),
            Decoding::Exr => Still::picture(path, kind, exr::open(path, rules), length),
            Decoding::Pfm => Still::picture(path, kind, pfm::open(path), length),
            Decoding::Ico => Still::icon(path, length),
            Decoding::Ffmpeg => Still::by_ffmpeg(path, kind, rules),
            Decoding::Tiff => Still::tiff(path, None, length),
            Decoding::Image(ImageFormat::Png) => Still::png(path, file, length, rules),
            Decoding::Image(ImageFormat::Bmp) => Still::bmp(path, file, length, rules),
            Decoding::Image(ImageFormat::WebP) => Still::webp(path, file, length),
            Decoding::Image(ImageFormat::Hdr) => Still::hdr(path, file, length),
            Decoding::Image(format) => {
                let budget = ReadBudget::new();
                let input = BudgetedReader::new(BufReader::new(file), &budget);
                let opened = match format {
                    ImageFormat::Pnm => pnm::decoder(input),
                    format => decoder(input, format),
                };
                let picture = ByImage::of(opened.map_err(|e| match budget.is_spent() {
                    true => invalid(path, LARGE_HEADER),
                    false => failed(path, e),
                })?);
                Still::budgeted(path, kind, picture, &budget, (length, Some(DEFLATE)))
            }
        }
    }

    fn png(path: &'a Path, file: File, length: u64, rules: Rules) -> Result<Still<'a>, SourceError> {
        let budget = ReadBudget::new();
        let input = PngPixels::new(BufReader::new(file));
        let opened = match CheckedPng::open(BudgetedReader::new(input, &budget)) {
            Some(decoder) => Ok(Box::new(decoder) as Box<dyn ImageDecoder>),
            None => unchecked_png(path, &budget).map_err(|cause| io_error(path, cause))?,
        };
        let head = head(path)?;
        if let (Err(_), Some(&[w3, w2, w1, w0, h3, h2, h1, h0])) =
            (&opened, head.get(16..).and_then(<[u8]>::first_chunk))
        {
            let (width, height) = (
                u32::from_be_bytes([w3, w2, w1, w0]),
                u32::from_be_bytes([h3, h2, h1, h0]),
            );
            let name = path.display().to_string();
            check_pixels(&name, width as usize, height as usize, rules.max_pixels)?;
        }
        let decoder = opened.map_err(|e| failed(path, e))?;
        let most = most_packed_png(&head, decoder.color_type());
        Still::budgeted(
            path,
            ImageKind::Png,
            ByImage::of(decoder),
            &budget,
            (length, most),
        )
    }

    fn bmp(path: &'a Path, file: File, length: u64, rules: Rules) -> Result<Still<'a>, SourceError> {
        let budget = ReadBudget::new();
        let in_runs = bmp_runs::open(path, &budget).map_err(|cause| io_error(path, cause))?;
        let opened = match in_runs {
            Some(decoder) => Ok(Box::new(decoder) as Box<dyn ImageDecoder>),
            None => decoder(
                BudgetedReader::new(BufReader::new(file), &budget),
                ImageFormat::Bmp,
            ),
        };
        if opened.is_err() && is_second_os2(path) {
            return Still::by_ffmpeg(path, ImageKind::Bmp, rules);
        }
        let is_empty = |head: &[u8]| {
            [18..22, 22..26]
                .iter()
                .any(|side| head.get(side.clone()) == Some(&[0; 4]))
        };
        if opened.is_err()
            && let Some(kind) = unread_bmp(path)
        {
            let problem = format!("is a BMP file of a kind that framepipe does not read: {kind}");
            return Err(invalid(path, &problem));
        }
        if opened.is_err() && is_empty(&head(path)?) {
            return Err(invalid(
                path,
                "states a picture without a pixel; the file is damaged",
            ));
        }
        let picture = ByImage {
            losses: deep_bmp(path).into_iter().collect(),
            ..ByImage::of(opened.map_err(|e| failed(path, e))?)
        };
        // Two bytes may pass over rows, of which so many are in no honest file.
        Still::budgeted(path, ImageKind::Bmp, picture, &budget, (length, Some(DEFLATE)))
    }

    fn webp(path: &'a Path, file: File, length: u64) -> Result<Still<'a>, SourceError> {
        let io = |cause| io_error(path, cause);
        let budget = ReadBudget::new();
        let mut losses = Vec::new();
        let opened = match webp_flags::corrected(path).map_err(io)? {
            Some(corrected) => {
                losses.extend(corrected.absent);
                let input = Cursor::new(corrected.file);
                decoder(BudgetedReader::new(input, &budget), ImageFormat::WebP)
            }
            None => decoder(
                BudgetedReader::new(BufReader::new(file), &budget),
                ImageFormat::WebP,
            ),
        };
        let decoder = opened.map_err(|e| failed(path, e))?;
        losses.extend(cut_webp(path).map_err(io)?);
        let picture = ByImage {
            losses,
            ..ByImage::of(decoder)
        };
        // Without loss a picture of one colour takes no bits.
        Still::budgeted(path, ImageKind::WebP, picture, &budget, (length, None))
    }

    fn hdr(path: &'a Path, file: File, length: u64) -> Result<Still<'a>, SourceError> {
        let io = |cause| io_error(path, cause);
        let budget = ReadBudget::new();
        let open = || File::open(path).map(BufReader::new);
        let mut head = open().and_then(hdr::read).map_err(io)?;
        let texts = open().and_then(|mut file| annotations::read_from(Container::Radiance, &mut file, None));
        let texts = texts.map_err(io)?;
        (head.metadata.annotations, head.metadata.too_large) = (texts.annotations, texts.too_large);
        let decoder = hdr::decoder(BudgetedReader::new(BufReader::new(file), &budget), &head)
            .map_err(|e| failed(path, e))?;
        let picture = ByImage {
            metadata: Some(head.metadata),
            sample_aspect: head.sample_aspect,
            primaries: head.primaries,
            ..ByImage::of(decoder)
        };
        // Old files have runs of up to a row in a few bytes.
        let most = DEFLATE.max(picture.decoder.dimensions().0.into());
        Still::budgeted(path, ImageKind::Hdr, picture, &budget, (length, Some(most)))
    }

    /// A picture whose reading has a budget, which its pixels are added to. Of its file are given the length,
    /// and the most bytes of a picture that a byte can stand for.
    fn budgeted(
        path: &'a Path,
        kind: ImageKind,
        picture: ByImage,
        budget: &ReadBudget,
        file: (u64, Option<u64>),
    ) -> Result<Still<'a>, SourceError> {
        budget.extend(picture.decoder.total_bytes());
        Still::image(path, kind, picture, file)
    }

    fn image(
        path: &'a Path,
        kind: ImageKind,
        picture: ByImage,
        file: (u64, Option<u64>),
    ) -> Result<Still<'a>, SourceError> {
        let decoder = &picture.decoder;
        let (width, height) = decoder.dimensions();
        check_plausible(path, decoder.total_bytes(), (width, height), file)?;
        Ok(Still {
            path,
            kind,
            format: pixel_format(path, decoder.color_type())?,
            width: width as usize,
            height: height as usize,
            page: None,
            decoder: StillDecoder::Image(Box::new(picture)),
        })
    }

    fn icon(path: &'a Path, length: u64) -> Result<Still<'a>, SourceError> {
        let chosen = ico::open(path).map_err(|reason| reason_error(path, reason))?;
        let (format, metadata) = if chosen.is_png {
            let read = annotations::read_from(Container::Png, &mut Cursor::new(&chosen.file), None);
            (
                ImageFormat::Png,
                Some(read.map_err(|cause| io_error(path, cause))?),
            )
        } else {
            (ImageFormat::Ico, None)
        };
        let head = chosen.file.get(..HEAD as usize).unwrap_or_default().to_vec();
        let decoder = decoder(Cursor::new(chosen.file), format).map_err(|e| failed(path, e))?;
        let most = match format {
            ImageFormat::Png => most_packed_png(&head, decoder.color_type()),
            _ => Some(DEFLATE),
        };
        let picture = ByImage {
            losses: chosen.losses,
            metadata,
            ..ByImage::of(decoder)
        };
        Still::image(path, ImageKind::Ico, picture, (length, most))
    }

    fn picture(
        path: &'a Path,
        kind: ImageKind,
        opened: Result<Box<dyn OpenPicture>, Reason>,
        length: u64,
    ) -> Result<Still<'a>, SourceError> {
        let picture = opened.map_err(|reason| reason_error(path, reason))?;
        let format = PixelFormat::from_name(picture.format());
        let format = format.ok_or_else(|| invalid(path, "is of no known format"))?;
        let (width, height) = picture.size();
        let pixel = format.planes()[0].channels.len() * format.bytes_per_sample();
        let claimed = (width as u64 * height as u64).saturating_mul(pixel as u64);
        let file = (length, picture.most_packed());
        check_plausible(path, claimed, (width as u32, height as u32), file)?;
        Ok(Still {
            path,
            kind,
            format,
            width,
            height,
            page: None,
            decoder: StillDecoder::Open(picture),
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
        let floats = match (facts.gray, facts.alpha) {
            (true, false) => ["grayf16le", "grayf32le"],
            (true, true) => ["yaf16le", "yaf32le"],
            (false, false) => ["rgbf16le", "rgbf32le"],
            (false, true) => ["rgbaf16le", "rgbaf32le"],
        };
        let name = match (facts.gray, facts.alpha, facts.deep) {
            _ if facts.float == Some(16) => floats[0],
            _ if facts.float.is_some() => floats[1],
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
        check_plausible(path, claimed, (width, height), (length, facts.most_packed))?;
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

    /// Has FFmpeg decode the first picture, since only that tells the format.
    fn by_ffmpeg(path: &'a Path, kind: ImageKind, rules: Rules) -> Result<Still<'a>, SourceError> {
        let still = FfmpegStill::open(path, kind, rules)?;
        Ok(Still {
            path,
            kind,
            format: still.frame.format(),
            width: still.frame.layout().width(),
            height: still.frame.layout().height(),
            page: None,
            decoder: StillDecoder::Ffmpeg(Box::new(still)),
        })
    }

    /// How the picture says that it is shown.
    pub(super) fn turn(&self) -> Result<Turn, SourceError> {
        let own = match &self.decoder {
            StillDecoder::Ffmpeg(still) => return Ok(still.turn()),
            StillDecoder::Tiff(tiff) => tiff.facts().orientation.filter(|o| (2..=8).contains(o)),
            StillDecoder::Image(_) | StillDecoder::Open(_) => None,
        };
        let orientation = match own {
            Some(orientation) => Some(orientation),
            None => self.metadata()?.annotations.orientation(),
        };
        Ok(orientation.and_then(Turn::from_exif).unwrap_or(Turn::UPRIGHT))
    }

    /// The colour facts of the pixels, as far as they are known before they are decoded.
    pub(super) fn colour(&self) -> Colour {
        match &self.decoder {
            StillDecoder::Ffmpeg(still) => still.colour(),
            StillDecoder::Open(picture) => picture.colour(),
            StillDecoder::Image(picture) => Colour {
                range: Range::Full,
                primaries: picture.primaries.unwrap_or(Colour::default().primaries),
                ..Colour::default()
            },
            StillDecoder::Tiff(tiff) if tiff.facts().associated => Colour {
                range: Range::Full,
                alpha: AlphaKind::Associated,
                ..Colour::default()
            },
            _ => Colour {
                range: Range::Full,
                ..Colour::default()
            },
        }
    }

    /// Bytes that the frame keeps beside its samples.
    pub(super) fn kept_bytes(&self) -> u64 {
        match &self.decoder {
            StillDecoder::Open(picture) => picture.kept_bytes(),
            _ => 0,
        }
    }

    /// What the file says beside its pixels.
    pub(super) fn metadata(&self) -> Result<FileMetadata, SourceError> {
        if let StillDecoder::Image(picture) = &self.decoder
            && let Some(metadata) = &picture.metadata
        {
            return Ok(metadata.clone());
        }
        let Some(container) = self.kind.container() else {
            return Ok(match &self.decoder {
                StillDecoder::Ffmpeg(still) => still.metadata(),
                StillDecoder::Open(picture) => picture.metadata(),
                _ => FileMetadata::default(),
            });
        };
        let page = self.page.map(|page| page.place);
        let read = |file| annotations::read_from(container, &mut BufReader::new(file), page);
        File::open(self.path)
            .and_then(read)
            .map_err(|cause| io_error(self.path, cause))
    }

    /// Decodes the pixels into `frame`, whose rows have no padding.
    pub(super) fn read(self, frame: &mut Frame) -> Result<PictureNotes, SourceError> {
        let path = self.path;
        match self.decoder {
            StillDecoder::Image(picture) => {
                let ByImage {
                    decoder,
                    mut losses,
                    sample_aspect,
                    ..
                } = *picture;
                if let Err(e) = decoder.read_image(frame.bytes_mut()) {
                    if self.kind != ImageKind::Png {
                        return Err(failed(path, e));
                    }
                    let budget = ReadBudget::new();
                    budget.extend(frame.bytes().len() as u64);
                    unchecked_png(path, &budget)
                        .map_err(|cause| io_error(path, cause))?
                        .and_then(|decoder| decoder.read_image(frame.bytes_mut()))
                        .map_err(|e| failed(path, e))?;
                    losses.push(WRONG_CHECKSUM.to_owned());
                }
                if self.kind.decoding() == Decoding::Image(ImageFormat::Pnm) {
                    let said = File::open(path).and_then(|file| pnm::losses(BufReader::new(file)));
                    losses.extend(said.map_err(|cause| io_error(path, cause))?);
                } else {
                    let beyond = palette::beyond(self.kind, path).map_err(|cause| io_error(path, cause))?;
                    losses.extend(beyond);
                    let trailing =
                        content::trailing_of(self.kind, path).map_err(|cause| io_error(path, cause))?;
                    losses.extend(trailing.map(|trailing| trailing.sentence().to_owned()));
                }
                losses.extend(missing_rows(path, self.kind)?);
                let conversion = match self.kind {
                    ImageKind::Bmp => bmp_alpha::conversion(path).map_err(|cause| io_error(path, cause))?,
                    _ => None,
                };
                Ok(PictureNotes {
                    losses,
                    sample_aspect,
                    conversion,
                    ..PictureNotes::default()
                })
            }
            StillDecoder::Open(picture) => picture
                .decode(frame.bytes_mut())
                .map_err(|reason| reason_error(path, reason)),
            StillDecoder::Tiff(tiff) => {
                let facts = tiff.facts().clone();
                let cut = tiff.read(frame.bytes_mut()).map_err(|problem| {
                    let error = tiff_error(path, problem);
                    match self.page {
                        Some(page) => page_error(page, error),
                        None => error,
                    }
                })?;
                let pages = facts.pages;
                let further = (pages > 1).then(|| {
                    let several = several_pictures(pages, "pictures", "first");
                    format!("{several} (given alone all are read)")
                });
                Ok(PictureNotes {
                    icc_profile: facts.icc,
                    orientation: facts.orientation.filter(|o| (2..=8).contains(o)),
                    losses: facts
                        .lost
                        .into_iter()
                        .chain(further)
                        .chain(cut_sentence(cut))
                        .collect(),
                    conversion: facts.converted,
                    ..PictureNotes::default()
                })
            }
            StillDecoder::Ffmpeg(still) => {
                let mut notes = still.read(frame);
                notes.losses.extend(missing_rows(path, self.kind)?);
                Ok(notes)
            }
        }
    }
}

/// A sentence about rows that the file does not reach.
fn missing_rows(path: &Path, kind: ImageKind) -> Result<Option<String>, SourceError> {
    match kind {
        ImageKind::Bmp => bmp_runs::missing_rows(path).map_err(|cause| io_error(path, cause)),
        _ => Ok(None),
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

/// The decoder of a PNG file whose checksum of the pixels is not looked at; an error of reading, or of
/// decoding.
fn unchecked_png(path: &Path, budget: &ReadBudget) -> io::Result<Result<Box<dyn ImageDecoder>, ImageError>> {
    let input = PngPixels::new(BufReader::new(File::open(path)?));
    Ok(decoder(BudgetedReader::new(input, budget), ImageFormat::Png))
}

/// True for a BMP file with the header of OS/2's second version, which the image crate does not know and
/// FFmpeg does, and without the Huffman codes that it knows as well.
fn is_second_os2(path: &Path) -> bool {
    let mut head = [0; 34];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head[14..18] == [64, 0, 0, 0] && matches!(head[30..34], [0..=2, 0, 0, 0])
}

/// The kind of a BMP file that no decoder here knows, in words.
fn unread_bmp(path: &Path) -> Option<&'static str> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(34).read_to_end(&mut head).ok()?;
    let word = |at: usize| head.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
    match (head.get(..2)?, word(14), word(30)) {
        (b"BA", ..) => Some("an array of bitmaps of OS/2's (BA)"),
        (_, Some(16), _) => Some("one with OS/2's short header of 16 bytes"),
        (_, Some(40..), Some(6)) => Some("one with masks of alpha after its header (BI_ALPHABITFIELDS)"),
        _ => None,
    }
}

/// A sentence about a WebP file that is shorter than it states; an error if pixels are missing.
fn cut_webp(path: &Path) -> io::Result<Option<String>> {
    match webp_chunks::missing(&mut BufReader::new(File::open(path)?))? {
        Some(Missing::Pixels) => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(Missing::Others) => Ok(Some("by its own account its last bytes are missing".to_owned())),
        None => Ok(None),
    }
}

/// A sentence about a BMP file with masks of more bits than are read.
fn deep_bmp(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(70).read_to_end(&mut head).ok()?;
    let word = |at: usize| {
        head.get(at..at + 4)?
            .first_chunk()
            .copied()
            .map(u32::from_le_bytes)
    };
    // Masks of red, green and blue follow the header of 40 bytes, and are part of longer ones.
    let has_masks = word(14)? >= 40 && matches!(word(30)?, 3 | 6);
    let most = [54, 58, 62]
        .into_iter()
        .filter_map(word)
        .map(u32::count_ones)
        .max()?;
    (has_masks && most > 8).then(|| format!("samples of {most} bits are brought to 8 bits"))
}

/// The library's own limit of 512 MiB would refuse honest pictures; headers that lie are found by their
/// file's length.
fn unlimited() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = None;
    limits
}

/// Bytes of a PNG file up to its depth and its kind of colours, and of a BMP file up to its size.
const HEAD: u64 = 26;

/// The first bytes of a file.
fn head(path: &Path) -> Result<Vec<u8>, SourceError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.map_err(|cause| io_error(path, cause))?;
    Ok(head)
}

/// The most bytes of a picture of `given` that a byte of a PNG file can stand for, which begins with `head`.
fn most_packed_png(head: &[u8], given: ColorType) -> Option<u64> {
    let &[depth, colours] = head.get(24..)?.first_chunk()?;
    let channels = match colours {
        2 => 3,
        4 => 2,
        6 => 4,
        _ => 1,
    };
    let stored = channels * u64::from(depth.max(1));
    Some(DEFLATE * (8 * u64::from(given.bytes_per_pixel())).div_ceil(stored))
}

/// Refuses a picture of `claimed` bytes that its file cannot hold, of which are given the length and the most
/// bytes of a picture that a byte can stand for.
///
/// Where there is no such bound a picture is held to the limits of pixels and memory alone.
fn check_plausible(
    path: &Path,
    claimed: u64,
    (width, height): (u32, u32),
    (length, most): (u64, Option<u64>),
) -> Result<(), SourceError> {
    if claimed > ALWAYS_PLAUSIBLE && most.is_some_and(|most| claimed / most > length) {
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
        ColorType::Rgb16 => "rgb48le",
        ColorType::Rgba16 => "rgba64le",
        ColorType::Rgb32F => "rgbf32le",
        ColorType::Rgba32F => "rgbaf32le",
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
