//! Animated WebP files as videos, which FFmpeg's older versions do not read. Frames come composed, as a
//! player shows them: drawn or blended over the one before, whose area is cleared first where the file says
//! so. One canvas and one frame are in memory.

use crate::annotations::instant_frames;
use crate::frame::{Colour, Frame, Layout, Metadata, PixelFormat, Range, Rational, Remarks};
use crate::source::images::webp_chunks::{self, Missing};
use crate::source::{Source, SourceError, StreamInfo, Supply, check_pixels};
use crate::wording::counted;
use image::codecs::webp::WebPDecoder;
use image::{ColorType, ImageDecoder, ImageError};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// Milliseconds for a frame that says none, as browsers show it.
const USUAL_DELAY: u32 = 100;

/// Bytes of a frame's head in its chunk.
const FRAME_HEAD: u64 = 16;

/// Bytes at the beginning of a frame's picture that say whether it has alpha: a chunk's head, and that of
/// lossless data.
const PICTURE_HEAD: usize = 13;

/// Bytes beyond twice those of its pixels that a frame's data may have.
const SLACK: u64 = 1 << 20;

/// The frames of one animated WebP file.
pub struct WebpSource {
    name: String,
    info: StreamInfo,
    file: BufReader<File>,
    /// RGBA.
    canvas: Vec<u8>,
    /// What the next frame clears first.
    to_clear: Option<Area>,
    frames: u64,
    pts: i64,
    warning: Option<String>,
    note: Option<String>,
    strict: bool,
}

/// A rectangle of the canvas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Area {
    /// True if all of `other` lies within it.
    fn covers(self, other: Area) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.left + self.width >= other.left + other.width
            && self.top + self.height >= other.top + other.height
    }
}

/// What a frame says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FrameHead {
    area: Area,
    /// Milliseconds.
    duration: u32,
    blends: bool,
    is_cleared: bool,
}

/// What is found when the file's chunks are passed once.
#[derive(Default)]
struct Survey {
    width: usize,
    height: usize,
    has_alpha: bool,
    repeats: u16,
    frames: u64,
    /// Frames that state a time of 0.
    instant: u64,
    /// The largest step that divides all times.
    step: u32,
    is_cut: bool,
    /// Chunks end before the file does.
    breaks_off: bool,
}

impl WebpSource {
    /// Opens `path`, an animated WebP file. A `strict` source fails where the file ends early. Canvases of
    /// more than `max_pixels` are refused.
    pub fn open(path: &Path, strict: bool, max_pixels: u64) -> Result<WebpSource, SourceError> {
        let name = path.display().to_string();
        let io = |cause| SourceError::Io {
            path: name.clone(),
            cause,
        };
        let invalid = |problem: &str| SourceError::Invalid {
            path: name.clone(),
            problem: problem.to_owned(),
        };
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let mut file = BufReader::new(file);
        let survey = survey(&mut file, len).map_err(io)?;
        if survey.frames == 0 || survey.width == 0 {
            return Err(invalid("is an animated WebP without a frame; it is truncated"));
        }
        let (width, height) = (survey.width, survey.height);
        check_pixels(&name, width, height, max_pixels)?;
        let format = if survey.has_alpha { "rgba" } else { "rgb24" };
        let format =
            PixelFormat::from_name(format).ok_or_else(|| invalid("needs RGB, which is not native"))?;
        let layout = Layout::new(format, width, height, 64);
        layout.map_err(|cause| SourceError::Layout {
            path: name.clone(),
            cause,
        })?;
        let repeats = match survey.repeats {
            0 => "repeated for ever".to_owned(),
            1 => "shown once".to_owned(),
            n => format!("repeated {n} times"),
        };
        let rate = Rational {
            num: 1000,
            den: survey.step.max(1) as i32,
        };
        let lost = match (survey.is_cut, survey.breaks_off) {
            (true, _) => Some("by its own account its last bytes are missing"),
            (_, true) => Some("its chunks break off, and what follows is not read"),
            _ => None,
        };
        let warning =
            lost.map(|lost| format!("{name}: {lost}; the input is incomplete, and so is the output"));
        let mut source = WebpSource {
            info: StreamInfo {
                frame_rate: Some(rate),
                time_base: Rational { num: 1, den: 1000 },
                frames: Some(survey.frames),
                colour: colour(),
                description: format!(
                    "{} of {name} (animated WebP, {repeats}), {width}x{height} {format}",
                    counted(survey.frames, "frame")
                ),
                ..StreamInfo::new(format, width, height)
            },
            file,
            canvas: vec![0; 4 * width * height],
            to_clear: None,
            frames: 0,
            pts: 0,
            warning,
            note: instant_frames(survey.instant, survey.frames, "0", "1/10 s")
                .map(|sentence| format!("{name}: {sentence}")),
            strict,
            name,
        };
        source
            .file
            .seek(SeekFrom::Start(12))
            .map_err(|cause| source.io(cause))?;
        Ok(source)
    }

    fn io(&self, cause: io::Error) -> SourceError {
        SourceError::Io {
            path: self.name.clone(),
            cause,
        }
    }

    fn invalid(&self, problem: &dyn std::fmt::Display) -> SourceError {
        SourceError::Invalid {
            path: self.name.clone(),
            problem: format!("frame {}: {problem}", self.frames),
        }
    }

    /// The next frame's head, and its picture as a still WebP file; `None` at the end.
    fn read_frame(&mut self) -> Result<Option<(FrameHead, Vec<u8>)>, SourceError> {
        loop {
            let Some((kind, size)) = chunk(&mut self.file).map_err(|e| self.io(e))? else {
                return Ok(None);
            };
            if &kind != b"ANMF" || size < FRAME_HEAD {
                skip(&mut self.file, size).map_err(|e| self.io(e))?;
                continue;
            }
            let mut head = [0; FRAME_HEAD as usize];
            let mut data = Vec::new();
            let whole = self.file.read_exact(&mut head).is_ok();
            let rest = padded(size) - FRAME_HEAD;
            if rest > 2 * self.canvas.len() as u64 + SLACK {
                return Err(self.invalid(&"it has more data than its picture can need"));
            }
            let read = (&mut self.file).take(rest).read_to_end(&mut data);
            let read = read.map_err(|e| self.io(e))? as u64;
            // The padding of the last chunk is often missing.
            if !whole || read < size - FRAME_HEAD {
                if self.strict {
                    return Err(self.invalid(&"the file ends early; it is truncated"));
                }
                return Ok(None);
            }
            return Ok(Some((frame_head(&head), still(&data, &head))));
        }
    }

    /// Draws a frame onto the canvas.
    fn compose(&mut self, head: FrameHead, still: Vec<u8>) -> Result<(), SourceError> {
        let area = head.area;
        let (width, height) = (self.info.width, self.info.height);
        if area.left + area.width > width || area.top + area.height > height {
            return Err(self.invalid(&"lies outside of the picture; the file is damaged"));
        }
        let lacks = webp_chunks::missing(&mut Cursor::new(&still)).map_err(|e| self.io(e))?;
        if lacks == Some(Missing::Pixels) {
            return Err(self.invalid(&"has less data than it says; the file is damaged"));
        }
        let damaged = |e: ImageError| format!("cannot be decoded, and may be damaged: {e}");
        let decoder = WebPDecoder::new(Cursor::new(still)).map_err(|e| self.invalid(&damaged(e)))?;
        if decoder.dimensions() != (area.width as u32, area.height as u32) {
            return Err(self.invalid(&"has another size than it says; the file is damaged"));
        }
        let samples = match decoder.color_type() {
            ColorType::Rgb8 => 3,
            ColorType::Rgba8 => 4,
            other => return Err(self.invalid(&format!("holds {other:?} samples"))),
        };
        let mut pixels = vec![0; samples * area.width * area.height];
        decoder
            .read_image(&mut pixels)
            .map_err(|e| self.invalid(&damaged(e)))?;
        if let Some(gone) = self.to_clear.take() {
            self.rows(gone).for_each(|row| row.fill(0));
        }
        let drawn = pixels.chunks_exact(samples * area.width);
        for (to, from) in self.rows(area).zip(drawn) {
            for (to, from) in to.chunks_exact_mut(4).zip(from.chunks_exact(samples)) {
                let from = [from[0], from[1], from[2], from.get(3).copied().unwrap_or(255)];
                let over = [to[0], to[1], to[2], to[3]];
                to.copy_from_slice(&if head.blends { blended(from, over) } else { from });
            }
        }
        self.to_clear = head.is_cleared.then_some(area);
        Ok(())
    }

    /// The canvas's rows within `area`.
    fn rows(&mut self, area: Area) -> impl Iterator<Item = &mut [u8]> {
        let row = 4 * self.info.width;
        self.canvas
            .chunks_exact_mut(row)
            .skip(area.top)
            .take(area.height)
            .map(move |row| &mut row[4 * area.left..4 * (area.left + area.width)])
    }
}

impl Source for WebpSource {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        if self.strict
            && let Some(warning) = self.warning.take()
        {
            return Err(SourceError::Invalid {
                path: self.name.clone(),
                problem: warning,
            });
        }
        let buffer = supply.take()?;
        let born = std::time::Instant::now();
        let Some((head, still)) = self.read_frame()? else {
            return Ok(None);
        };
        self.compose(head, still)?;
        let layout = Layout::new(self.info.format, self.info.width, self.info.height, 64);
        let layout = layout.map_err(|cause| SourceError::Layout {
            path: self.name.clone(),
            cause,
        })?;
        let mut frame = Frame::new(layout, buffer)?;
        let samples = if self.info.format.has_alpha() { 4 } else { 3 };
        for (y, from) in self.canvas.chunks_exact(4 * self.info.width).enumerate() {
            let to = frame.row_mut(0, y).chunks_exact_mut(samples);
            for (to, from) in to.zip(from.chunks_exact(4)) {
                to.copy_from_slice(&from[..samples]);
            }
        }
        frame.born = born;
        frame.sequence = self.frames;
        frame.metadata = Metadata {
            pts: Some(self.pts),
            duration: Some(i64::from(head.duration)),
            colour: colour(),
            sample_aspect: (0, 1),
            ..Metadata::default()
        };
        self.pts += i64::from(head.duration);
        self.frames += 1;
        Ok(Some(frame))
    }

    fn remarks(&mut self) -> Remarks {
        Remarks {
            notes: self.note.take().into_iter().collect(),
            ..Remarks::warnings(self.warning.take())
        }
    }
}

fn colour() -> Colour {
    Colour {
        range: Range::Full,
        ..Colour::default()
    }
}

/// Passes all chunks once, without decoding.
fn survey(file: &mut BufReader<File>, len: u64) -> io::Result<Survey> {
    let mut survey = Survey::default();
    let mut head = [0; 12];
    file.read_exact(&mut head)?;
    let mut at = 12_u64;
    // What nothing is drawn in at first, and what the frame before leaves cleared.
    let mut hole = None;
    let mut draws_all = true;
    while let Some((kind, size)) = chunk(file)? {
        at += 8;
        survey.is_cut |= at + size > len;
        let mut taken = 0;
        match &kind {
            b"VP8X" if size >= 10 => {
                let mut data = [0; 10];
                file.read_exact(&mut data)?;
                taken = 10;
                survey.has_alpha = data[0] & 0x10 != 0;
                survey.width = number(&data[4..7]) as usize + 1;
                survey.height = number(&data[7..10]) as usize + 1;
            }
            b"ANIM" if size >= 6 => {
                let mut data = [0; 6];
                file.read_exact(&mut data)?;
                taken = 6;
                survey.repeats = u16::from_le_bytes([data[4], data[5]]);
            }
            b"ANMF" if size >= FRAME_HEAD && at + size <= len => {
                let mut data = [0; FRAME_HEAD as usize];
                file.read_exact(&mut data)?;
                taken = FRAME_HEAD;
                let head = frame_head(&data);
                let whole = Area {
                    left: 0,
                    top: 0,
                    width: survey.width,
                    height: survey.height,
                };
                let hole_before = if survey.frames == 0 { Some(whole) } else { hole };
                draws_all &= hole_before.is_none_or(|hole| head.area.covers(hole));
                hole = head.is_cleared.then_some(head.area);
                let mut picture = [0; PICTURE_HEAD];
                if size - taken >= PICTURE_HEAD as u64 {
                    file.read_exact(&mut picture)?;
                    taken += PICTURE_HEAD as u64;
                }
                // Its frames say more than the file, whose flag is a hint.
                survey.has_alpha |= has_alpha(&picture);
                survey.frames += 1;
                survey.instant += u64::from(data[12..15] == [0; 3]);
                survey.step = divisor(survey.step, head.duration);
            }
            _ => {}
        }
        skip_bytes(file, padded(size) - taken)?;
        at += padded(size);
    }
    let declared = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    survey.is_cut |= declared + 8 > len + 1;
    survey.breaks_off = at + 8 <= len.min(declared + 8);
    // Where nothing is drawn, or what was drawn is cleared, the canvas is transparent.
    survey.has_alpha |= !draws_all;
    Ok(survey)
}

/// The largest number that divides both.
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The next chunk's name and size; `None` at the end.
fn chunk(file: &mut BufReader<File>) -> io::Result<Option<([u8; 4], u64)>> {
    let mut head = [0; 8];
    match file.read_exact(&mut head) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(e) => return Err(e),
    }
    let [a, b, c, d, size @ ..] = head;
    // Names are printable; zeros would be passed over eight by eight.
    if [a, b, c, d].iter().any(u8::is_ascii_control) {
        return Ok(None);
    }
    Ok(Some(([a, b, c, d], u64::from(u32::from_le_bytes(size)))))
}

/// Chunks begin at even places.
fn padded(size: u64) -> u64 {
    size + size % 2
}

fn skip(file: &mut BufReader<File>, size: u64) -> io::Result<()> {
    skip_bytes(file, padded(size))
}

fn skip_bytes(file: &mut BufReader<File>, bytes: u64) -> io::Result<()> {
    file.seek_relative(bytes as i64)
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, &byte| number << 8 | u32::from(byte))
}

fn frame_head(bytes: &[u8; FRAME_HEAD as usize]) -> FrameHead {
    let duration = number(&bytes[12..15]);
    FrameHead {
        area: Area {
            left: 2 * number(&bytes[0..3]) as usize,
            top: 2 * number(&bytes[3..6]) as usize,
            width: number(&bytes[6..9]) as usize + 1,
            height: number(&bytes[9..12]) as usize + 1,
        },
        duration: if duration == 0 { USUAL_DELAY } else { duration },
        blends: bytes[15] & 2 == 0,
        is_cleared: bytes[15] & 1 != 0,
    }
}

/// True if a frame whose chunks begin so has alpha.
fn has_alpha(picture: &[u8; PICTURE_HEAD]) -> bool {
    // Behind a signature, 14 bits of width, 14 of height, and one for alpha.
    picture.starts_with(b"ALPH") || picture.starts_with(b"VP8L") && picture[12] & 0x10 != 0
}

/// A frame's chunks as a WebP file of their own.
fn still(data: &[u8], head: &[u8; FRAME_HEAD as usize]) -> Vec<u8> {
    let mut body = b"WEBP".to_vec();
    if data.starts_with(b"ALPH") {
        body.extend(b"VP8X\x0a\0\0\0\x10\0\0\0");
        body.extend(&head[6..12]);
    }
    body.extend(data);
    [b"RIFF".to_vec(), (body.len() as u32).to_le_bytes().to_vec(), body].concat()
}

/// A pixel over another, both of straight alpha.
fn blended(from: [u8; 4], over: [u8; 4]) -> [u8; 4] {
    let (a, b) = (u32::from(from[3]), u32::from(over[3]));
    if a == 255 || b == 0 {
        return from;
    }
    if a == 0 {
        return over;
    }
    // In units of 1/255: what the pixel beneath still shows.
    let beneath = b * (255 - a);
    let sum = 255 * a + beneath;
    let mix = |i: usize| {
        let both = u32::from(from[i]) * 255 * a + u32::from(over[i]) * beneath;
        ((both + sum / 2) / sum) as u8
    };
    [mix(0), mix(1), mix(2), ((sum + 127) / 255) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn pixels_are_blended_with_straight_alpha() {
        assert_eq!(blended([10, 20, 30, 255], [1, 2, 3, 4]), [10, 20, 30, 255]);
        assert_eq!(blended([10, 20, 30, 0], [1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(blended([10, 20, 30, 7], [1, 2, 3, 0]), [10, 20, 30, 7]);
        assert_eq!(
            blended([255, 0, 100, 128], [0, 255, 100, 255]),
            [128, 127, 100, 255]
        );
        assert_eq!(blended([200, 0, 0, 127], [0, 100, 0, 128]), [133, 34, 0, 191]);
    }

    #[test]
    fn heads_of_frames_are_read() {
        let head = frame_head(&[1, 0, 0, 2, 0, 0, 32, 0, 0, 16, 0, 0, 0xe8, 3, 0, 3]);
        assert_eq!(
            head,
            FrameHead {
                area: Area {
                    left: 2,
                    top: 4,
                    width: 33,
                    height: 17
                },
                duration: 1000,
                blends: false,
                is_cleared: true
            }
        );
        assert_eq!(divisor(divisor(0, 2000), 5000), 1000);
    }

    #[test]
    fn frames_without_a_time_are_counted() {
        let mut whole = b"RIFF\0\0\0\0WEBP".to_vec();
        for time in [0, 9, 0] {
            whole.extend(b"ANMF\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
            whole.extend([time, 0, 0, 0]);
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&whole).unwrap();
        file.rewind().unwrap();
        let found = survey(&mut BufReader::new(file), whole.len() as u64).unwrap();
        assert_eq!((found.frames, found.instant), (3, 2));
    }

    #[test]
    fn chunks_that_break_off_are_noticed() {
        let mut whole = b"RIFF\0\0\0\0WEBP".to_vec();
        for _ in 0..3 {
            whole.extend(b"ANMF\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0");
        }
        let end = whole.len();
        whole[4] = (end - 8) as u8;
        let found = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file.rewind().unwrap();
            let found = survey(&mut BufReader::new(file), bytes.len() as u64).unwrap();
            (found.frames, found.is_cut, found.breaks_off)
        };
        assert_eq!(found(&whole), (3, false, false));
        assert_eq!(found(&[&whole[..], &[0; 40]].concat()), (3, false, false));
        whole[end - 24..].fill(0);
        assert_eq!(found(&whole), (2, false, true));
        assert_eq!(found(&whole[..end - 20]), (2, true, false));
    }
}
