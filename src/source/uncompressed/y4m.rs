//! YUV4MPEG2: a text header, then a short line and the bytes of each frame. Read from a file or a pipe,
//! straight into the frames' memory.

use super::byte_reader::{ByteReader, STANDARD_INPUT, ends_in_mid_frame};
use super::excess::Excess;
use crate::frame::{Colour, FieldOrder, Frame, Layout, Metadata, PixelFormat, Range, Rational, Remarks};
use crate::source::{Source, SourceError, StreamInfo, Supply};
use crate::waiting::WaitLimit;
use crate::wording::counted;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The first word of every stream.
pub(crate) const MAGIC: &str = "YUV4MPEG2";

/// A tag of the header's `C` parameter: its word, the format's name, and where chroma is sited.
pub(crate) struct Tag {
    /// The word after `C`, and in capitals after `XYSCSS=`.
    pub(crate) word: &'static str,
    /// The pixel format's name.
    pub(crate) format: &'static str,
    /// Chroma location as [`Colour::chroma_location`] numbers it.
    pub(crate) location: u8,
}

const fn tag(word: &'static str, format: &'static str, location: u8) -> Tag {
    Tag {
        word,
        format,
        location,
    }
}

/// All tags. Where a format has several, the first is the one for unstated chroma location.
#[rustfmt::skip]
pub(crate) static TAGS: &[Tag] = &[
    tag("420jpeg", "yuv420p", 2), tag("420mpeg2", "yuv420p", 1), tag("420paldv", "yuv420p", 3),
    tag("420", "yuv420p", 2),
    tag("mono", "gray", 0), tag("mono9", "gray9le", 0), tag("mono10", "gray10le", 0),
    tag("mono12", "gray12le", 0), tag("mono14", "gray14le", 0), tag("mono16", "gray16le", 0),
    tag("411", "yuv411p", 0), tag("422", "yuv422p", 0), tag("444", "yuv444p", 0),
    tag("444alpha", "yuva444p", 0),
    tag("420p9", "yuv420p9le", 0), tag("420p10", "yuv420p10le", 0), tag("420p12", "yuv420p12le", 0),
    tag("420p14", "yuv420p14le", 0), tag("420p16", "yuv420p16le", 0),
    tag("422p9", "yuv422p9le", 0), tag("422p10", "yuv422p10le", 0), tag("422p12", "yuv422p12le", 0),
    tag("422p14", "yuv422p14le", 0), tag("422p16", "yuv422p16le", 0),
    tag("444p9", "yuv444p9le", 0), tag("444p10", "yuv444p10le", 0), tag("444p12", "yuv444p12le", 0),
    tag("444p14", "yuv444p14le", 0), tag("444p16", "yuv444p16le", 0),
];

/// The longest header or frame line that is accepted.
const LONGEST_LINE: usize = 4096;

/// The most bytes of a frame that is accepted from a pipe, whose length cannot show that its header is wrong.
const LARGEST_FRAME: usize = 4 << 30;

/// What a stream's header says.
#[derive(Debug, Clone, PartialEq)]
struct Header {
    width: usize,
    height: usize,
    format: PixelFormat,
    rate: Option<Rational>,
    field_order: FieldOrder,
    aspect: (i32, i32),
    range: Range,
    chroma_location: u8,
    /// What is not understood, in words.
    remarks: Vec<String>,
}

impl Header {
    /// Reads the header line, without its line feed; the error is a sentence.
    fn parse(line: &str) -> Result<Header, String> {
        let mut words = line.split(' ').filter(|w| !w.is_empty());
        words.next();
        let (mut width, mut height, mut rate) = (None, None, None);
        let (mut tag, mut fallback) = (None, None);
        let mut field_order = FieldOrder::Progressive;
        let mut aspect = (0, 1);
        let mut range = Range::Unspecified;
        let mut remarks = Vec::new();
        for word in words {
            let key = word.chars().next().unwrap_or_default();
            let value = &word[key.len_utf8()..];
            match key {
                'W' => width = Some(size("width W", value)?),
                'H' => height = Some(size("height H", value)?),
                'F' => rate = ratio("frame rate F", value)?,
                'A' => aspect = ratio("pixel aspect A", value)?.map_or((0, 1), |r| (r.num, r.den)),
                'I' => {
                    field_order = match value {
                        "p" | "?" => FieldOrder::Progressive,
                        "t" => FieldOrder::TopFirst,
                        "b" => FieldOrder::BottomFirst,
                        "m" => FieldOrder::Mixed,
                        _ => {
                            return Err(format!(
                                "has the unknown interlacing 'I{value}' in its header; known are Ip, It, Ib, \
                                 Im and I?"
                            ));
                        }
                    };
                }
                'C' => tag = Some(value.to_owned()),
                'X' => {
                    if let Some(subsampling) = value.strip_prefix("YSCSS=") {
                        fallback = Some(subsampling.to_ascii_lowercase());
                    } else if let Some(word) = value.strip_prefix("COLORRANGE=") {
                        range = match word {
                            "FULL" => Range::Full,
                            "LIMITED" => Range::Limited,
                            _ => {
                                remarks.push(format!(
                                    "has the unknown range 'XCOLORRANGE={word}' in its header, which is not \
                                     looked at; known are FULL and LIMITED"
                                ));
                                Range::Unspecified
                            }
                        };
                    } else {
                        tracing::debug!("y4m header parameter 'X{value}' is not known and is ignored");
                    }
                }
                _ => tracing::debug!("y4m header parameter '{word}' is not known and is ignored"),
            }
        }
        let (Some(width), Some(height)) = (width, height) else {
            return Err("states no width or no height in its header (W and H)".to_owned());
        };
        // Without a tag the stream is 4:2:0, as its makers defined.
        let word = tag.or(fallback).unwrap_or_else(|| "420jpeg".to_owned());
        let (format, chroma_location) = TAGS
            .iter()
            .find(|t| t.word == word)
            .and_then(|t| Some((PixelFormat::from_name(t.format)?, t.location)))
            .ok_or_else(|| {
                let known: Vec<_> = TAGS.iter().map(|t| t.word).collect();
                format!(
                    "has the unknown colour space 'C{word}' in its header; known are {}",
                    known.join(", ")
                )
            })?;
        if rate.is_none() {
            remarks.push("states no frame rate in its header; 25 frames a second are taken".to_owned());
        }
        Ok(Header {
            width,
            height,
            format,
            rate,
            field_order,
            aspect,
            range,
            chroma_location,
            remarks,
        })
    }
}

fn size(what: &str, value: &str) -> Result<usize, String> {
    value
        .parse::<u32>()
        .ok()
        .filter(|&n| n > 0 && n <= i32::MAX as u32)
        .map(|n| n as usize)
        .ok_or_else(|| format!("has an impossible {what}{value} in its header"))
}

/// `N:D`, or `None` for 0 in either, which stands for unknown.
fn ratio(what: &str, value: &str) -> Result<Option<Rational>, String> {
    let parsed = value
        .split_once(':')
        .and_then(|(num, den)| Some((num.parse::<u32>().ok()?, den.parse::<u32>().ok()?)));
    match parsed {
        Some((0, _) | (_, 0)) => Ok(None),
        Some((num, den)) if num <= i32::MAX as u32 && den <= i32::MAX as u32 => Ok(Some(Rational {
            num: num as i32,
            den: den as i32,
        })),
        _ => Err(format!(
            "has an impossible {what}{value} in its header; it is written N:D"
        )),
    }
}

struct Y4m {
    reader: ByteReader,
    info: StreamInfo,
    layout: Layout,
    read: u64,
    repeats: u64,
    /// Frames whose marks say more of their sampling than their field order does, and the first such mark.
    marked: Option<(u64, String)>,
    excess: Excess,
    /// What the header says that is not understood.
    remarks: Vec<String>,
}

/// Opens a YUV4MPEG2 file, or standard input for "-", and reads its header.
///
/// From a pipe this waits for the header, until `limit` ends that.
pub fn open(path: &Path, limit: Option<&WaitLimit>) -> Result<Box<dyn Source>, SourceError> {
    let mut reader = ByteReader::open(path)?;
    reader.set_limit(limit);
    stream(reader)
}

/// What pictures begin with that FFmpeg would take for something else, or for broken packets.
const NOT_FROM_PIPES: [(&[u8], &str); 5] = [
    (b"\x76\x2f\x31\x01", "OpenEXR"),
    (b"#?RADIANCE", "Radiance HDR"),
    (b"#?RGBE", "Radiance HDR"),
    (b"PF\n", "PFM"),
    (b"Pf\n", "PFM"),
];

/// What a file or a pipe turned out to be.
pub enum Recognised {
    /// A y4m stream, open.
    Y4m(Box<dyn Source>),
    /// Something else, and the pipe that it is, from which it must be read: one with a name can be opened
    /// once only, as its writer may be gone by the second time.
    Other(Option<File>),
}

/// Looks for a y4m stream under a name that does not tell it: FFmpeg reads not all of them, and says less. No
/// byte of a pipe is taken.
pub fn recognised(path: &Path, limit: Option<&WaitLimit>) -> Result<Recognised, SourceError> {
    let is_pipe = path.metadata().is_ok_and(|facts| facts.file_type().is_fifo());
    if !(path.is_file() || is_pipe) {
        return Ok(Recognised::Other(None));
    }
    let mut reader = ByteReader::open(path)?;
    reader.set_limit(limit);
    let magic = MAGIC.as_bytes();
    let may_become = |start: &[u8], magic: &[u8]| start.starts_with(&magic[..magic.len().min(start.len())]);
    let is_enough = |start: &[u8]| {
        let mut pictures = NOT_FROM_PIPES.iter().map(|(magic, _)| *magic);
        let may_be_picture = pictures.any(|magic| start.len() < magic.len() && may_become(start, magic));
        start.contains(&b'\n') || !may_be_picture && !may_become(start, magic)
    };
    let start = reader.peek(LONGEST_LINE, is_enough)?;
    if is_pipe && let Some((_, kind)) = NOT_FROM_PIPES.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(reader.invalid(format!(
            "is a picture ({kind}) out of a pipe, and such are read from files alone; write it into a file"
        )));
    }
    match start.starts_with(magic) {
        true => Ok(Recognised::Y4m(stream(reader)?)),
        false => Ok(Recognised::Other(is_pipe.then(|| reader.into_file()))),
    }
}

fn stream(mut reader: ByteReader) -> Result<Box<dyn Source>, SourceError> {
    let mut magic = [0_u8; MAGIC.len()];
    let found = reader.read_full(&mut magic, None)?;
    if found == 0 {
        return Err(reader.invalid("is empty: no y4m header, no frames"));
    }
    if magic[..found] != MAGIC.as_bytes()[..] {
        let others = match reader.label() == STANDARD_INPUT {
            true => "; other videos are read from a pipe by the name /dev/stdin",
            false => "",
        };
        return Err(reader.invalid(format!(
            "is no y4m stream: it does not begin with YUV4MPEG2 (ffmpeg makes one with -f yuv4mpegpipe; raw \
             frames need raw:WxH:FORMAT:FPS{others})"
        )));
    }
    let mut line = magic.to_vec();
    if !read_line(&mut reader, &mut line, None)? {
        return Err(reader.invalid("ends within its y4m header, or the header has no end"));
    }
    let header = Header::parse(&String::from_utf8_lossy(&line)).map_err(|problem| reader.invalid(problem))?;
    let layout =
        Layout::new(header.format, header.width, header.height, 1).map_err(|cause| SourceError::Layout {
            path: reader.label().to_owned(),
            cause,
        })?;
    let too_large = match reader.length() {
        Some(length) => {
            let rest = length.saturating_sub(line.len() as u64 + 1);
            // A file shorter than its first frame: said before the memory for a frame is requested.
            rest > 0 && rest < layout.size() as u64
        }
        None => layout.size() > LARGEST_FRAME,
    };
    if too_large {
        return Err(reader.invalid(format!(
            "states {}x{} {} in its header, {} bytes a frame, and cannot hold one such frame; the header is \
             wrong or the input is truncated",
            header.width,
            header.height,
            header.format,
            layout.size()
        )));
    }
    let rate = header.rate.unwrap_or(Rational { num: 25, den: 1 });
    let info = StreamInfo {
        frames: reader
            .length()
            .map(|l| l.saturating_sub(line.len() as u64 + 1) / (layout.size() as u64 + 6)),
        colour: Colour {
            range: header.range,
            chroma_location: header.chroma_location,
            ..Colour::default()
        },
        sample_aspect: header.aspect,
        field_order: header.field_order,
        description: format!(
            "y4m from {}: {}x{} {}, {:.6} frames/s{}",
            reader.label(),
            header.width,
            header.height,
            header.format,
            rate.to_f64(),
            if header.rate.is_some() {
                ""
            } else {
                " (taken, because the header states none)"
            }
        )
        .replace(".000000 ", " "),
        ..StreamInfo::new(header.format, header.width, header.height).at_rate(rate)
    };
    Ok(Box::new(Y4m {
        reader,
        info,
        layout,
        read: 0,
        repeats: 0,
        marked: None,
        excess: Excess::default(),
        remarks: header.remarks,
    }))
}

/// Appends the bytes up to the next line feed, which is dropped; false if the input or the timeout ended
/// before.
fn read_line(
    reader: &mut ByteReader,
    line: &mut Vec<u8>,
    supply: Option<&Supply>,
) -> Result<bool, SourceError> {
    let mut byte = [0_u8];
    while line.len() < LONGEST_LINE {
        if reader.read_full(&mut byte, supply)? == 0 {
            return Ok(false);
        }
        if byte[0] == b'\n' {
            return Ok(true);
        }
        line.push(byte[0]);
    }
    Ok(false)
}

impl Y4m {
    /// Reads the line before a frame; `None` at the end of the input, else the frame's field order.
    fn frame_line(&mut self, supply: &Supply) -> Result<Option<FieldOrder>, SourceError> {
        let mut begin = [0_u8; 6];
        let found = self.reader.read_full(&mut begin, Some(supply))?;
        if found == 0 {
            self.reader.check_end()?;
            return Ok(None);
        }
        let whole = self.read;
        if found < begin.len() && b"FRAME\n".starts_with(&begin[..found]) {
            return Err(self
                .reader
                .invalid(ends_in_mid_frame(whole, 0, self.layout.size() as u64)));
        }
        match &begin {
            b"FRAME\n" => Ok(Some(self.stated_order())),
            b"FRAME " => {
                let mut line = Vec::new();
                if !read_line(&mut self.reader, &mut line, Some(supply))? {
                    return Err(self.reader.invalid(format!(
                        "ends within the line before frame {whole}, or that line has no end"
                    )));
                }
                Ok(Some(self.line_order(&String::from_utf8_lossy(&line))))
            }
            _ => Err(self.reader.invalid(format!(
                "has no FRAME line after {} of {} bytes; the data is damaged, or the header states a wrong \
                 size or colour space",
                counted(whole, "frame"),
                self.layout.size()
            ))),
        }
    }

    fn stated_order(&self) -> FieldOrder {
        match self.info.field_order {
            FieldOrder::Mixed => FieldOrder::Progressive,
            order => order,
        }
    }

    /// The field order that a frame's own parameters state: `Ixyz`, where x is the way the frame is shown, y
    /// how it was sampled in time, and z how its chroma was.
    fn line_order(&mut self, parameters: &str) -> FieldOrder {
        let value = parameters.split(' ').find_map(|word| word.strip_prefix('I'));
        let mut letters = value.unwrap_or_default().chars();
        let shown = letters.next();
        let usual = match shown {
            Some('1'..='3') => 'p',
            _ => 'i',
        };
        // A question mark says nothing.
        if letters.any(|letter| letter != usual && letter != '?') {
            let first = || (0, value.unwrap_or_default().chars().take(3).collect());
            self.marked.get_or_insert_with(first).0 += 1;
        }
        match shown {
            Some(c @ ('t' | 'T')) => {
                self.repeats += u64::from(c == 'T');
                FieldOrder::TopFirst
            }
            Some(c @ ('b' | 'B')) => {
                self.repeats += u64::from(c == 'B');
                FieldOrder::BottomFirst
            }
            Some(c @ ('1' | '2' | '3')) => {
                self.repeats += u64::from(c != '1');
                FieldOrder::Progressive
            }
            _ => self.stated_order(),
        }
    }
}

impl Source for Y4m {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        let Some(field_order) = self.frame_line(supply)? else {
            return Ok(None);
        };
        let Some(mut frame) = self.reader.read_frame(self.layout, self.read, supply)? else {
            let problem = ends_in_mid_frame(self.read, 0, self.layout.size() as u64);
            return Err(self.reader.invalid(problem));
        };
        self.excess.remove(&mut frame);
        frame.metadata = Metadata {
            pts: Some(self.read as i64),
            duration: Some(1),
            colour: self.info.colour,
            sample_aspect: self.info.sample_aspect,
            field_order,
            ..Metadata::default()
        };
        self.read += 1;
        Ok(Some(frame))
    }

    fn remarks(&mut self) -> Remarks {
        let label = self.reader.label();
        let repeats = std::mem::take(&mut self.repeats);
        let repeated = (repeats > 0).then(|| match repeats {
            1 => "1 frame asks to be shown with repeated fields; it is taken once".to_owned(),
            _ => format!("{repeats} frames ask to be shown with repeated fields; each is taken once"),
        });
        let marked = self.marked.take().map(|(frames, first)| {
            let say = if frames == 1 { "frame says" } else { "frames say" };
            format!(
                "{frames} {say} more of how they were sampled than their field order, such as I{first}; \
                 the order alone is kept"
            )
        });
        let excess = self.excess.sentence(self.layout.format());
        let sentences = self.remarks.drain(..).chain(repeated).chain(marked).chain(excess);
        Remarks::warnings(sentences.map(|sentence| format!("{label}: {sentence}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_names_a_native_format() {
        for tag in TAGS {
            let header =
                Header::parse(&format!("YUV4MPEG2 W3 H5 F30000:1001 It A4:3 C{}", tag.word)).unwrap();
            assert_eq!(header.format.name(), tag.format);
            assert_eq!(header.chroma_location, tag.location);
            assert_eq!((header.width, header.height), (3, 5));
            assert_eq!(
                header.rate,
                Some(Rational {
                    num: 30000,
                    den: 1001
                })
            );
            assert_eq!(
                (header.field_order, header.aspect),
                (FieldOrder::TopFirst, (4, 3))
            );
        }
    }

    #[test]
    fn what_is_unstated_has_its_default() {
        let header = Header::parse("YUV4MPEG2 W2 H2").unwrap();
        assert_eq!(header.format.name(), "yuv420p");
        assert_eq!((header.rate, header.aspect), (None, (0, 1)));
        assert_eq!(header.range, Range::Unspecified);
        let header =
            Header::parse("YUV4MPEG2 W2 H2 F0:0 A0:0 I? XYSCSS=422P10 XCOLORRANGE=FULL XFOO=1").unwrap();
        assert_eq!(header.format.name(), "yuv422p10le");
        assert_eq!((header.rate, header.range), (None, Range::Full));
        assert!(
            header.remarks.join("").contains("states no frame rate"),
            "{:?}",
            header.remarks
        );
        let header = Header::parse("YUV4MPEG2 W2 H2 C444 XYSCSS=420JPEG Im XCOLORRANGE=LIMITED").unwrap();
        assert_eq!(header.format.name(), "yuv444p");
        assert_eq!(
            (header.field_order, header.range),
            (FieldOrder::Mixed, Range::Limited)
        );
        let header = Header::parse("YUV4MPEG2 W2 H2 F25:1 XCOLORRANGE=FOO").unwrap();
        assert_eq!((header.range, header.remarks.len()), (Range::Unspecified, 1));
        assert!(header.remarks[0].contains("'XCOLORRANGE=FOO'"));
    }

    #[test]
    fn headers_that_lie_are_refused() {
        for (line, part) in [
            ("YUV4MPEG2 W0 H2", "W0"),
            ("YUV4MPEG2 W2 H-2", "H-2"),
            ("YUV4MPEG2 W2", "no height"),
            ("YUV4MPEG2 W99999999999 H2", "W99999999999"),
            ("YUV4MPEG2 W2 H2 C421", "C421"),
            ("YUV4MPEG2 W2 H2 Iz", "Iz"),
            ("YUV4MPEG2 W2 H2 F25", "F25"),
            ("YUV4MPEG2 W2 H2 Fa:b", "Fa:b"),
            ("YUV4MPEG2 W2 H2 A1:-1", "A1:-1"),
            ("YUV4MPEG2 W\u{e9} H2", "width"),
        ] {
            let problem = Header::parse(line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
    }
}
