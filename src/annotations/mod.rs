//! What image files say beside their pixels: Exif, XMP, IPTC, resolution, text, and PNG's words on colour.
//!
//! Image decoders give pixels and drop the rest. This module works beside them, on the bytes of whole files:
//! [`read`] picks up what a file says, [`insert`] puts it into a finished file and names what has no place
//! there.
//!
//! ```text
//!  a.jpg --decode--> pixels --filter--> pixels --encode--> bytes --insert--> b.png
//!    |                                                               ^  |
//!    +--read---------------> Annotations ----------------------------+  +--> ["IPTC", ..] cannot be held
//! ```
//!
//! `containers/` has a module for each kind of file; `exif`, `xmp` and `photoshop` are blocks that several
//! kinds hold.
//!
//! Files may be hostile: nothing here panics on them. [`read_from`] first makes an excerpt of a file, in
//! which everything but its pixels stands, [`METADATA_LIMIT`] bytes at most; what there is no room for is
//! named.

mod containers;
mod exif;
mod photoshop;
mod xmp;

#[cfg(feature = "images")]
pub use containers::exr;
pub use containers::{boxes, jpeg_xl, pcx, psd, tga};
pub(crate) use containers::{jpeg, png};

use crate::messages::metadata_limit::{METADATA_LIMIT, too_large};
use crate::wording::listed;
use containers::{bmp, dpx, gif, pnm, tiff, webp};
use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;

/// The most texts that are carried from one file.
const TEXT_LIMIT: usize = 4096;

/// The most names of what is left out of one file.
const UNKNOWN_LIMIT: usize = 4096;

/// The name of the text that says when a picture was changed.
const DATE_TIME: &str = "DateTime";

const METRES_PER_INCH: f64 = 0.0254;

/// The words for what can be lost.
mod word {
    pub(super) const PROFILE: &str = "colour (ICC) profile";
    pub(super) const EXIF: &str = "Exif";
    pub(super) const XMP: &str = "XMP";
    pub(super) const EXTENDED_XMP: &str = "extended XMP";
    pub(super) const IPTC: &str = "IPTC";
    pub(super) const RESOLUTION: &str = "resolution (DPI)";
    pub(super) const ASPECT: &str = "pixel aspect ratio";
    pub(super) const TEXT: &str = "text";
    pub(super) const FURTHER_TEXTS: &str = "texts beyond the first 4096";
    pub(super) const GAMMA: &str = "gamma";
    pub(super) const CHROMATICITIES: &str = "chromaticities";
    pub(super) const CICP: &str = "CICP colour";
    pub(super) const HDR: &str = "HDR mastering data";
    pub(super) const SIGNIFICANT_BITS: &str = "significant bits";
    pub(super) const ORIENTATION: &str = "orientation";
    pub(super) const TIME: &str = "time of change";
    pub(super) const RESOURCES: &str = "Photoshop's resources";
    pub(super) const LANGUAGE: &str = "languages and translated names of texts";
}

/// What the numbers of a [`Density`] count pixels by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DensityUnit {
    /// Pixels an inch.
    Inch,
    /// Pixels a metre.
    Metre,
    /// No unit: only the ratio of the two numbers, the shape of a pixel, means something.
    None,
}

/// How densely pixels lie on paper, as a file states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Density {
    /// Pixels a unit along a row.
    pub x: f64,
    /// Pixels a unit along a column.
    pub y: f64,
    /// The unit.
    pub unit: DensityUnit,
}

impl Density {
    /// None where nothing is said: numbers that are none, and square pixels of no stated size.
    fn new(x: f64, y: f64, unit: DensityUnit) -> Option<Self> {
        let sound = |v: f64| v.is_finite() && v > 0.0;
        let says = unit != DensityUnit::None || x != y;
        (sound(x) && sound(y) && says).then_some(Self { x, y, unit })
    }

    /// Pixels an inch.
    #[must_use]
    pub fn per_inch(self) -> Option<(f64, f64)> {
        match self.unit {
            DensityUnit::Inch => Some((self.x, self.y)),
            DensityUnit::Metre => Some((self.x * METRES_PER_INCH, self.y * METRES_PER_INCH)),
            DensityUnit::None => None,
        }
    }

    /// Pixels a metre.
    #[must_use]
    pub fn per_metre(self) -> Option<(f64, f64)> {
        match self.unit {
            DensityUnit::Inch => Some((self.x / METRES_PER_INCH, self.y / METRES_PER_INCH)),
            DensityUnit::Metre => Some((self.x, self.y)),
            DensityUnit::None => None,
        }
    }

    /// The same as far as files can tell: those that count by the metre round 300 an inch to 299.9994.
    fn is_near(self, other: Self) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 0.005 * a.abs().max(b.abs());
        match (self.per_metre(), other.per_metre()) {
            (Some(a), Some(b)) => near(a.0, b.0) && near(a.1, b.1),
            (None, None) => near(self.x * other.y, self.y * other.x),
            _ => false,
        }
    }

    /// The word for its loss.
    fn word(self) -> &'static str {
        if self.unit == DensityUnit::None {
            word::ASPECT
        } else {
            word::RESOLUTION
        }
    }

    /// The two numbers as whole ones from 1 to `max`, if they survive that within a hundredth.
    fn whole((x, y): (f64, f64), max: u32) -> Option<(u32, u32)> {
        let one = |v: f64| {
            let whole = v.round();
            let fits = whole >= 1.0 && whole <= f64::from(max) && (whole - v).abs() <= 0.01 * v;
            fits.then_some(whole as u32)
        };
        Some((one(x)?, one(y)?))
    }

    /// The ratio of the two numbers as whole ones from 1 to `max`.
    fn ratio(self, max: u32) -> Option<(u32, u32)> {
        [1.0, 10.0, 100.0, 1000.0, 10_000.0, 0.1, 0.01, 0.001]
            .into_iter()
            .filter_map(|scale| {
                let (x, y) = (self.x * scale, self.y * scale);
                let whole = Self::whole((x, y), max)?;
                let error = (f64::from(whole.0) * y / (f64::from(whole.1) * x) - 1.0).abs();
                Some((whole, error))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(whole, _)| whole)
    }
}

/// What a file says beside its pixels, its size and its ICC profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotations {
    /// A block in the structure of a TIFF file; it begins with `II` or `MM`.
    pub exif: Option<Arc<[u8]>>,
    /// The XML of the XMP packet.
    pub xmp: Option<Arc<[u8]>>,
    /// Records of IPTC's information interchange model (IIM).
    pub iptc: Option<Arc<[u8]>>,
    /// As the file states it; where only the Exif block does, as stated there.
    pub density: Option<Density>,
    /// Names and texts. Names are PNG's: Title, Author, Description, Copyright, Software, Comment, and what
    /// else the file has; TIFF's time of change is called DateTime.
    pub texts: Vec<(String, String)>,
    /// FFmpeg gives the texts as its container's metadata too, which video outputs carry by themselves.
    pub texts_are_in_container: bool,
    /// PNG's gAMA: the exponent of encoding, times 100 000.
    pub gamma: Option<u32>,
    /// PNG's cHRM: x and y of white, red, green and blue, times 100 000.
    pub chromaticities: Option<[u32; 8]>,
    /// PNG's sRGB: the colours are sRGB, and this is the rendering intent, 0 to 3.
    pub srgb_intent: Option<u8>,
    /// PNG's cICP: primaries, transfer, matrix and range by the numbers of H.273.
    pub cicp: Option<[u8; 4]>,
    /// PNG's mDCV: primaries, white and luminance of the display that an HDR picture was made on.
    pub mastering_display: Option<[u8; 24]>,
    /// PNG's cLLI: the greatest and the mean light of an HDR picture.
    pub content_light: Option<[u8; 8]>,
    /// PNG's sBIT: for each channel, how many bits of its samples mean something.
    pub significant_bits: Option<Vec<u8>>,
    /// PNG's tIME: the year in two bytes, month, day, hour, minute, second.
    pub time: Option<[u8; 7]>,
    /// The words of what the file says, but was left out on reading, being too large or in unknown parts.
    pub left_out: Vec<&'static str>,
    /// The words of what is damaged; [`read_from`] puts them into
    /// [`FileMetadata::damaged`].
    damaged: Vec<&'static str>,
    /// The words of what has no place in here; [`read_from`] puts them into [`FileMetadata::unknown`].
    unknown: Vec<&'static str>,
}

impl Annotations {
    /// What there is, in words, as far as its loss would be named: "Exif, XMP".
    #[must_use]
    pub fn words(&self) -> String {
        // A kind of file that holds nothing loses all of it.
        insert(Container::Pnm, self, None, Vec::new()).1.join(", ")
    }

    /// The annotations but for texts that stand in the container's metadata as well.
    #[must_use]
    pub fn without_container_texts(&self) -> Self {
        let mut rest = self.clone();
        if rest.texts_are_in_container {
            rest.texts.clear();
        }
        rest
    }

    /// How the picture is to be turned, 1 to 8, as the Exif block says or else the XMP packet.
    #[must_use]
    pub fn orientation(&self) -> Option<u8> {
        let exif = self.exif.as_deref().and_then(exif::orientation);
        exif.or_else(|| self.xmp.as_deref().and_then(xmp::orientation))
    }

    /// The colours are described, but as what a file without any description is taken for anyway.
    fn says_srgb_only(&self) -> bool {
        const SRGB: [u32; 8] = [31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000];
        let near = |a: u32, b: u32| a.abs_diff(b) <= 100;
        let cicp = self.cicp.is_none_or(|c| matches!(c, [1, 13, _, _]));
        // The sRGB chunk stands above gAMA and cHRM, which then are there for old programs only.
        let srgb = self.srgb_intent.is_some();
        let gamma = self.gamma.is_none_or(|g| near(g, 45455));
        let chromaticities = self
            .chromaticities
            .is_none_or(|c| c.iter().zip(SRGB).all(|(&a, b)| near(a, b)));
        cicp && (srgb || (gamma && chromaticities))
    }

    fn has_hdr(&self) -> bool {
        self.mastering_display.is_some() || self.content_light.is_some()
    }

    /// Takes an item unless there is one, it is empty, or it is too large.
    fn take(slot: &mut Option<Arc<[u8]>>, item: &[u8], left_out: &mut Vec<&'static str>, word: &'static str) {
        if item.is_empty() || slot.is_some() {
            return;
        }
        if item.len() > METADATA_LIMIT {
            once(left_out, word);
            return;
        }
        *slot = Some(item.into());
    }

    fn take_exif(&mut self, block: &[u8]) {
        let block = without_prefix(block);
        if exif::is_sound(block) {
            Self::take(&mut self.exif, block, &mut self.left_out, word::EXIF);
        } else if !block.is_empty() {
            once(&mut self.damaged, word::EXIF);
        }
    }

    fn take_xmp(&mut self, packet: &[u8]) {
        Self::take(&mut self.xmp, packet, &mut self.left_out, word::XMP);
    }

    fn take_iptc(&mut self, records: &[u8]) {
        // Every record begins with this byte.
        if records.first() == Some(&0x1c) {
            Self::take(&mut self.iptc, records, &mut self.left_out, word::IPTC);
        }
    }

    fn take_text(&mut self, name: &str, text: String) {
        if name.is_empty() || text.is_empty() {
            return;
        }
        if text.len() > METADATA_LIMIT {
            once(&mut self.left_out, word::TEXT);
            return;
        }
        if self.texts.len() >= TEXT_LIMIT {
            once(&mut self.unknown, word::FURTHER_TEXTS);
            return;
        }
        self.texts.push((name.to_owned(), text));
    }
}

/// The kinds of files that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Container {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    WebP,
    /// TIFF.
    Tiff,
    /// BMP.
    Bmp,
    /// PBM, PGM, PPM, PAM.
    Pnm,
}

/// A row of the table of what a kind holds.
struct Holds {
    exif: bool,
    xmp: bool,
    iptc: bool,
    density: bool,
    /// The shape of pixels without their size.
    aspect: bool,
    text: bool,
    /// PNG's own description of colours and samples.
    colour: bool,
}

impl Container {
    const fn holds(self) -> Holds {
        const fn row(metadata: [bool; 3], density: [bool; 2], text: bool, colour: bool) -> Holds {
            let [exif, xmp, iptc] = metadata;
            let [density, aspect] = density;
            Holds {
                exif,
                xmp,
                iptc,
                density,
                aspect,
                text,
                colour,
            }
        }
        const Y: bool = true;
        const N: bool = false;
        match self {
            //                      Exif XMP IPTC  DPI aspect text colour
            Self::Png => row([Y, Y, Y], [Y, Y], Y, Y),
            Self::Jpeg => row([Y, Y, Y], [Y, Y], Y, N),
            // Resolution and text as entries of the Exif block.
            Self::WebP => row([Y, Y, N], [Y, N], Y, N),
            Self::Tiff => row([Y, Y, Y], [Y, Y], Y, N),
            Self::Bmp => row([N, N, N], [Y, N], N, N),
            Self::Pnm => row([N, N, N], [N, N], N, N),
        }
    }
}

/// All that a file says beside its pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileMetadata {
    /// What it says but for the profile.
    pub annotations: Annotations,
    /// The ICC profile, uncompressed; that of a TIFF file is its decoder's business.
    pub icc_profile: Option<Vec<u8>>,
    /// How the pixels are to be turned, 1 to 8, where the file says so outside of Exif and XMP, which then
    /// have no say in that.
    pub orientation: Option<u8>,
    /// The words of what is larger than [`METADATA_LIMIT`], alone or with the rest, and was left out.
    pub too_large: Vec<&'static str>,
    /// The words of what is damaged, and was left out.
    pub damaged: Vec<&'static str>,
    /// Names of what is known to no output, and was left out.
    pub unknown: Vec<String>,
    /// Names of what only advises viewers, and was left out.
    pub hints: Vec<&'static str>,
    /// The file is so large that only its pixels are read.
    pub is_unsearched: bool,
    /// The pictures are a track, and all this speaks of a still that stands for it.
    pub is_sequence: bool,
    /// Decoders of this kind give pictures as they are to be shown, already turned.
    pub is_turned_by_decoder: bool,
    /// How many times an animation is shown, 0 for ever.
    pub plays: Option<u32>,
    /// How many frames an animation states and how many it holds, where these differ.
    pub frames: Option<(u32, u32)>,
    /// A picture that is no frame stands before the frames of an animated PNG, for programs that show stills.
    pub has_default_picture: bool,
    /// A gray other than black of a PNG file of fewer than 8 bits is transparent, which FFmpeg does not find.
    pub has_shallow_key: bool,
    /// Colours are multiplied by alpha.
    pub is_premultiplied: bool,
    /// Sentences about what is given otherwise than the file states it.
    pub changes: Vec<String>,
}

/// A sentence about frames of an animation that state no time, or one too short for players: `count` of
/// `frames`. `stated` and `shown` are times in words.
#[must_use]
pub fn instant_frames(count: u64, frames: u64, stated: &str, shown: &str) -> Option<String> {
    let (states, is) = match count {
        0 => return None,
        1 => ("states", "is"),
        _ => ("state", "are"),
    };
    Some(format!(
        "{count} of its {frames} frames {states} a time of {stated}, and {is} shown for {shown}, as in \
         browsers"
    ))
}

impl FileMetadata {
    /// How the picture is to be turned, 1 to 8.
    #[must_use]
    pub fn orientation(&self) -> Option<u8> {
        self.orientation.or_else(|| self.annotations.orientation())
    }

    /// The sentences about what is left out, joined, if something is.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let large = (!self.too_large.is_empty()).then(|| too_large(&self.too_large.join(", ")));
        let damaged = (!self.damaged.is_empty()).then(|| {
            format!(
                "holds damaged parts, which are left out: {}",
                self.damaged.join(", ")
            )
        });
        let unknown = (!self.unknown.is_empty()).then(|| {
            format!(
                "holds what no output is given, which is left out: {}",
                listed(self.unknown.clone())
            )
        });
        let unsearched = self.is_unsearched.then(|| {
            let most = MOST_SEARCHED >> 20;
            format!("is larger than {most} MiB, so that only its pixels are read")
        });
        let overruled = self.overruled_orientation().map(|orientation| {
            format!(
                "states orientation {orientation} in its Exif or XMP, where such files do not state it, and \
                none in its own properties: the pictures are not turned"
            )
        });
        let frames = self
            .frames
            .map(|(stated, held)| format!("states {stated} frames and holds {held}"));
        let sentences: Vec<String> = [large, damaged, unknown, unsearched, overruled, frames]
            .into_iter()
            .flatten()
            .collect();
        (!sentences.is_empty()).then(|| sentences.join("; it "))
    }

    /// The sentences about what is left out and changes no picture, and about what is changed, joined, if
    /// there are any.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let hints = self.hints.join(", ");
        let hints = (!hints.is_empty()).then(|| format!("advice to viewers is left out: {hints}"));
        let sentences: Vec<String> = hints.into_iter().chain(self.changes.iter().cloned()).collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }

    /// The orientation that Exif or XMP ask for in a file whose own properties turn nothing.
    fn overruled_orientation(&self) -> Option<u8> {
        let asked = self
            .annotations
            .orientation()
            .filter(|&orientation| orientation > 1);
        asked.filter(|_| self.orientation == Some(1))
    }
}

/// The parts of a file that say something, as a small file of the same kind.
struct Excerpt {
    bytes: Vec<u8>,
    icc_profile: Option<Vec<u8>>,
    too_large: Vec<&'static str>,
    damaged: Vec<&'static str>,
    unknown: Vec<String>,
    hints: Vec<&'static str>,
    plays: Option<u32>,
    frames: Option<(u32, u32)>,
    has_default_picture: bool,
    has_shallow_key: bool,
    changes: Vec<String>,
}

impl Excerpt {
    fn new(head: &[u8]) -> Self {
        Self {
            bytes: head.to_vec(),
            icc_profile: None,
            too_large: Vec::new(),
            damaged: Vec::new(),
            unknown: Vec::new(),
            hints: Vec::new(),
            plays: None,
            frames: None,
            has_default_picture: false,
            has_shallow_key: false,
            changes: Vec::new(),
        }
    }

    /// Notes the name of what is left out.
    fn leave_out(&mut self, name: String) {
        if !self.unknown.contains(&name) && self.unknown.len() < UNKNOWN_LIMIT {
            self.unknown.push(name);
        }
    }

    /// True if `len` more bytes have room; else what they are is named. A profile stands apart from the rest.
    fn has_room(&mut self, len: u64, word: &'static str) -> bool {
        let taken = if word == word::PROFILE {
            0
        } else {
            self.bytes.len()
        };
        let room = METADATA_LIMIT.saturating_sub(taken);
        let fits = usize::try_from(len).is_ok_and(|len| len <= room);
        if !fits {
            once(&mut self.too_large, word);
        }
        fits
    }
}

/// Exactly `len` bytes; `None` if the input ends before. Takes no memory for what is not there.
fn take_exactly(input: &mut impl BufRead, len: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let read = input.take(len).read_to_end(&mut bytes)?;
    Ok((read as u64 == len).then_some(bytes))
}

/// The next `N` bytes; `None` if the input ends before.
fn take_array<const N: usize>(input: &mut impl BufRead) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match input.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// Passes over `len` bytes, which may go beyond the end.
fn pass(input: &mut (impl BufRead + Seek), len: u64) -> io::Result<()> {
    input.seek_relative(i64::try_from(len).unwrap_or(i64::MAX))
}

/// What a file says beside its pixels. Damaged parts are passed over.
#[must_use]
pub fn read(container: Container, file: &[u8]) -> Annotations {
    // Memory has no errors of reading.
    read_from(container, &mut Cursor::new(file), None)
        .unwrap_or_default()
        .annotations
}

/// As [`read`], from a file, of which only the parts are read that say something. Of a TIFF file the first
/// page counts, or the one whose directory is at `page`.
pub fn read_from(
    container: Container,
    input: &mut (impl BufRead + Seek),
    page: Option<u64>,
) -> io::Result<FileMetadata> {
    let len = input.seek(SeekFrom::End(0))?;
    input.seek(SeekFrom::Start(0))?;
    let excerpt = match container {
        Container::Png => png::excerpt(input, len)?,
        Container::Jpeg => jpeg::excerpt(input)?,
        Container::WebP => webp::excerpt(input, len)?,
        Container::Tiff => tiff::excerpt(input, len, page)?,
        Container::Bmp => bmp::excerpt(input)?,
        Container::Pnm => return pnm::read(input),
    };
    let mut annotations = understood(container, &excerpt.bytes);
    let mut words = excerpt.too_large;
    let mut damaged = excerpt.damaged;
    for word in std::mem::take(&mut annotations.damaged) {
        once(&mut damaged, word);
    }
    let mut unknown = excerpt.unknown;
    unknown.extend(
        std::mem::take(&mut annotations.unknown)
            .into_iter()
            .map(str::to_owned),
    );
    // What texts unpacked to was too much, if they were not of a kind that is not understood.
    for word in annotations
        .left_out
        .extract_if(.., |word| *word != word::EXTENDED_XMP)
    {
        once(&mut words, word);
    }
    Ok(FileMetadata {
        annotations,
        icc_profile: excerpt.icc_profile.filter(|profile| !profile.is_empty()),
        too_large: words,
        damaged,
        unknown,
        hints: excerpt.hints,
        plays: excerpt.plays,
        frames: excerpt.frames,
        has_default_picture: excerpt.has_default_picture,
        has_shallow_key: excerpt.has_shallow_key,
        changes: excerpt.changes,
        ..FileMetadata::default()
    })
}

/// Bytes of the largest file that is read whole to be searched.
const MOST_SEARCHED: u64 = 256 << 20;

/// What a file says whose pixels FFmpeg decodes, or which is an animation: GIF, PNG, WebP, PSD, DPX, AVIF,
/// HEIF, JPEG 2000 and JPEG XL in boxes. Of others nothing is read but the first bytes.
pub fn search(input: &mut (impl BufRead + Seek)) -> io::Result<FileMetadata> {
    let len = input.seek(SeekFrom::End(0))?;
    input.seek(SeekFrom::Start(0))?;
    let head = take_array::<12>(input)?.unwrap_or_default();
    input.seek(SeekFrom::Start(0))?;
    let read: fn(&[u8]) -> FileMetadata = match &head {
        [b'G', b'I', b'F', ..] => return gif::read(input),
        [0x89, b'P', b'N', b'G', ..] => {
            let mut found = read_from(Container::Png, input, None)?;
            if found.has_default_picture {
                found
                    .unknown
                    .push("default picture, which is no frame of the animation".to_owned());
            }
            if found.has_shallow_key {
                found
                    .unknown
                    .push("transparency of gray of fewer than 8 bits, which FFmpeg does not find".to_owned());
            }
            return Ok(found);
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => {
            return read_from(Container::WebP, input, None);
        }
        [b'S', b'D', b'P', b'X', ..] | [b'X', b'P', b'D', b'S', ..] => {
            let mut header = Vec::new();
            input.take(dpx::HEADER).read_to_end(&mut header)?;
            return Ok(dpx::read(&header));
        }
        [b'8', b'B', b'P', b'S', ..] => psd::read,
        head if boxes::is_known(head) => boxes::read,
        _ => return Ok(FileMetadata::default()),
    };
    if len > MOST_SEARCHED {
        return Ok(FileMetadata {
            is_unsearched: true,
            ..FileMetadata::default()
        });
    }
    let mut file = Vec::new();
    input.read_to_end(&mut file)?;
    Ok(read(&file))
}

/// What an excerpt says.
fn understood(container: Container, file: &[u8]) -> Annotations {
    with_density_of_exif(match container {
        Container::Png => png::read(file),
        Container::Jpeg => jpeg::read(file),
        Container::WebP => webp::read(file),
        Container::Tiff => tiff::read(file),
        Container::Bmp => bmp::read(file),
        Container::Pnm => Annotations::default(),
    })
}

/// The annotations with the resolution that the Exif block states where the file itself states none.
fn with_density_of_exif(mut found: Annotations) -> Annotations {
    let inner = found.exif.as_deref().and_then(exif::density);
    if found.density.is_none_or(|d| d.unit == DensityUnit::None)
        && let Some(inner) = inner
    {
        found.density = Some(inner);
    }
    found
}

/// Puts annotations into `encoded`, a whole file without any but an ICC profile and an orientation, and names
/// what it cannot hold.
///
/// The Exif block will say `orientation`, whatever it said before. Its small preview is taken out: it shows
/// the picture as it was before the filter.
#[must_use]
pub fn insert(
    container: Container,
    annotations: &Annotations,
    orientation: Option<u8>,
    encoded: Vec<u8>,
) -> (Vec<u8>, Vec<&'static str>) {
    let orientation = orientation.filter(|o| (1..=8).contains(o));
    let mut lost = annotations.left_out.clone();
    let holds = container.holds();
    let mut rest = annotations.clone();
    let mut miss = |held: bool, there: bool, word| {
        if !held && there {
            once(&mut lost, word);
        }
        held
    };
    let says_more = |block: &[u8]| !exif::is_bare(block);
    if !miss(
        holds.exif,
        rest.exif.as_deref().is_some_and(says_more),
        word::EXIF,
    ) {
        rest.exif = None;
    }
    if !miss(holds.xmp, rest.xmp.is_some(), word::XMP) {
        rest.xmp = None;
    }
    if !miss(holds.iptc, rest.iptc.is_some(), word::IPTC) {
        rest.iptc = None;
    }
    if let Some(density) = rest.density {
        let held = if density.unit == DensityUnit::None {
            holds.aspect
        } else {
            holds.density
        };
        if !miss(held, true, density.word()) {
            rest.density = None;
        }
    }
    if !holds.colour
        && let Some(time) = rest.time.take()
    {
        match time_text(time).filter(|_| holds.text) {
            // Exif and TIFF have one time of change, and a file's own word for it goes first.
            Some(time) if rest.texts.iter().all(|(name, _)| name != DATE_TIME) => {
                rest.texts.push((DATE_TIME.to_owned(), time));
            }
            Some(_) => {}
            None => {
                miss(false, true, word::TIME);
            }
        }
    }
    if !miss(holds.text, !rest.texts.is_empty(), word::TEXT) {
        rest.texts.clear();
    }
    if !holds.colour {
        let is_described = !rest.says_srgb_only();
        miss(false, is_described && rest.gamma.is_some(), word::GAMMA);
        miss(
            false,
            is_described && rest.chromaticities.is_some(),
            word::CHROMATICITIES,
        );
        miss(false, is_described && rest.cicp.is_some(), word::CICP);
        miss(false, rest.has_hdr(), word::HDR);
        // Many programs state that all bits are significant.
        let partial = |bits: &Vec<u8>| bits.iter().any(|b| !matches!(b, 8 | 16));
        miss(
            false,
            rest.significant_bits.as_ref().is_some_and(partial),
            word::SIGNIFICANT_BITS,
        );
    }
    if let Some(packet) = &rest.xmp {
        rest.xmp = Some(xmp::with_orientation(packet, orientation));
    }
    let file = match container {
        Container::Png => png::insert(&rest, orientation, encoded, &mut lost),
        Container::Jpeg => jpeg::insert(&rest, orientation, encoded, &mut lost),
        Container::WebP => webp::insert(&rest, orientation, encoded, &mut lost),
        Container::Tiff => tiff::insert(&rest, orientation, encoded, &mut lost),
        Container::Bmp => bmp::insert(&rest, encoded, &mut lost),
        Container::Pnm => encoded,
    };
    (file, lost)
}

/// A time of PNG's as TIFF and Exif write it; `None` if it is none.
fn time_text([y1, y0, month, day, hour, minute, second]: [u8; 7]) -> Option<String> {
    let year = u16::from_be_bytes([y1, y0]);
    let is_time =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    is_time.then(|| format!("{year:04}:{month:02}:{day:02} {hour:02}:{minute:02}:{second:02}"))
}

/// Names all of the annotations: the file is none that they could be put into.
fn all_lost(annotations: &Annotations, orientation: Option<u8>, lost: &mut Vec<&'static str>) {
    let density = annotations.density.map_or(word::RESOLUTION, Density::word);
    for (there, word) in [
        (annotations.exif.is_some(), word::EXIF),
        (annotations.xmp.is_some(), word::XMP),
        (annotations.iptc.is_some(), word::IPTC),
        (annotations.density.is_some(), density),
        (!annotations.texts.is_empty(), word::TEXT),
        (annotations.gamma.is_some(), word::GAMMA),
        (annotations.chromaticities.is_some(), word::CHROMATICITIES),
        (annotations.cicp.is_some(), word::CICP),
        (annotations.has_hdr(), word::HDR),
        (annotations.significant_bits.is_some(), word::SIGNIFICANT_BITS),
        (annotations.time.is_some(), word::TIME),
        (orientation.is_some_and(|o| o > 1), word::ORIENTATION),
    ] {
        if there {
            once(lost, word);
        }
    }
}

/// The printable beginning of a block's identifier, which ends in a zero.
fn identifier(data: &[u8]) -> String {
    const MOST: usize = 20;
    let is_printable = |byte: &&u8| matches!(byte, b' '..=b'~');
    let word = data.iter().take(MOST).take_while(is_printable);
    word.map(|&byte| char::from(byte))
        .collect::<String>()
        .trim()
        .to_owned()
}

fn once(words: &mut Vec<&'static str>, word: &'static str) {
    if !words.contains(&word) {
        words.push(word);
    }
}

/// `len` bytes from `at` on, if there are so many.
fn part(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    part(bytes, at, N)?.try_into().ok()
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// Puts `new` over the bytes from `at` on, if there are so many.
fn overwrite(bytes: &mut [u8], at: usize, new: &[u8]) -> Option<()> {
    bytes
        .get_mut(at..at.checked_add(new.len())?)?
        .copy_from_slice(new);
    Some(())
}

/// An Exif block without the words that go before it in a JPEG segment, and in some WebP and PNG files.
fn without_prefix(block: &[u8]) -> &[u8] {
    match block.strip_prefix(b"Exif\0") {
        Some([_, block @ ..]) => block,
        _ => block,
    }
}

/// Text of a file that does not tell its encoding: UTF-8 if it can be, else Latin-1.
fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .rposition(|&b| b != 0)
        .map_or(0, |last| last.saturating_add(1));
    let bytes = bytes.get(..end).unwrap_or_default();
    str::from_utf8(bytes).map_or_else(|_| latin1(bytes), str::to_owned)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Container; 6] = [
        Container::Png,
        Container::Jpeg,
        Container::WebP,
        Container::Tiff,
        Container::Bmp,
        Container::Pnm,
    ];

    /// A file of each kind, without annotations.
    fn plain(container: Container) -> Vec<u8> {
        match container {
            Container::Png => png::tests::file(2),
            Container::Jpeg => jpeg::tests::file(),
            Container::WebP => webp::tests::file(),
            Container::Tiff => b"II*\0\x08\0\0\0\x01\0\0\x01\x03\0\x01\0\0\0\x07\0\0\0\0\0\0\0".to_vec(),
            Container::Bmp => {
                let mut file = b"BM".to_vec();
                file.resize(60, 0);
                file[14] = 40;
                file
            }
            Container::Pnm => b"P5 1 1 255\n0".to_vec(),
        }
    }

    #[test]
    fn what_has_no_place_is_named_once() {
        let given = Annotations {
            left_out: vec!["text"],
            ..png::tests::full()
        };
        let named = |container| {
            let (out, lost) = insert(container, &given, Some(6), plain(container));
            (read(container, &out), lost)
        };
        const COLOUR: [&str; 3] = ["CICP colour", "HDR mastering data", "significant bits"];
        let (found, lost) = named(Container::Pnm);
        assert_eq!(found, Annotations::default());
        for word in ["Exif", "XMP", "IPTC", "resolution (DPI)", "text"]
            .iter()
            .chain(&COLOUR)
        {
            assert_eq!(lost.iter().filter(|w| *w == word).count(), 1, "{word}");
        }
        let (found, lost) = named(Container::Bmp);
        assert!(found.density.unwrap().is_near(given.density.unwrap()));
        assert!(!lost.contains(&"resolution (DPI)"));
        for container in [Container::Jpeg, Container::WebP, Container::Tiff] {
            let (found, lost) = named(container);
            assert_eq!(found.orientation(), Some(6));
            assert_eq!(found.xmp, given.xmp);
            assert!(found.density.unwrap().is_near(given.density.unwrap()));
            assert_eq!(found.iptc.is_none(), container == Container::WebP);
            assert_eq!(lost.contains(&"IPTC"), container == Container::WebP);
            assert!(COLOUR.iter().all(|word| lost.contains(word)));
        }
        assert_eq!(named(Container::Png).1, ["text"]);
    }

    #[test]
    fn plain_srgb_is_no_loss() {
        let mut given = Annotations {
            srgb_intent: Some(0),
            gamma: Some(45455),
            significant_bits: Some(vec![8, 8, 8]),
            ..Annotations::default()
        };
        assert!(
            insert(Container::Jpeg, &given, None, plain(Container::Jpeg))
                .1
                .is_empty()
        );
        given.srgb_intent = None;
        given.gamma = Some(100_000);
        let (_, lost) = insert(Container::Jpeg, &given, None, plain(Container::Jpeg));
        assert_eq!(lost, ["gamma"]);
    }

    #[test]
    fn the_time_of_change_has_one_place_in_each_kind() {
        let mut given = Annotations {
            time: Some([7, 0xe8, 2, 29, 12, 30, 59]),
            ..Annotations::default()
        };
        let exif = |container, given: &Annotations| {
            let (file, lost) = insert(container, given, None, plain(container));
            assert!(lost.is_empty(), "{container:?}: {lost:?}");
            file
        };
        let has = |file: &[u8], text: &[u8]| file.windows(text.len()).any(|window| window == text);
        for container in [Container::Jpeg, Container::WebP, Container::Tiff] {
            assert!(
                has(&exif(container, &given), b"2024:02:29 12:30:59\0"),
                "{container:?}"
            );
        }
        assert_eq!(read(Container::Png, &exif(Container::Png, &given)), given);
        let (_, lost) = insert(Container::Pnm, &given, None, plain(Container::Pnm));
        assert_eq!(lost, ["time of change"]);
        given
            .texts
            .push((DATE_TIME.to_owned(), "2001:01:01 00:00:00".to_owned()));
        assert!(!has(&exif(Container::Tiff, &given), b"2024:"));
    }

    #[test]
    fn a_bare_exif_block_is_no_loss() {
        let (block, _) = exif::compose(None, Some(6), None, &[], false);
        let given = Annotations {
            exif: block.map(Into::into),
            ..Annotations::default()
        };
        assert!(
            insert(Container::Bmp, &given, None, plain(Container::Bmp))
                .1
                .is_empty()
        );
    }

    #[test]
    fn the_resolution_inside_exif_counts_where_there_is_no_other() {
        let density = Density::new(240.0, 240.0, DensityUnit::Inch);
        let (block, _) = exif::compose(None, None, density, &[], false);
        let given = Annotations {
            exif: block.map(Into::into),
            ..Annotations::default()
        };
        let (file, _) = insert(Container::Jpeg, &given, None, plain(Container::Jpeg));
        assert_eq!(read(Container::Jpeg, &file).density, density);
    }

    #[test]
    fn the_orientation_within_xmp_follows() {
        let given = Annotations {
            xmp: Some(b"<a tiff:Orientation='6'/>"[..].into()),
            ..Annotations::default()
        };
        assert_eq!(given.orientation(), Some(6));
        let (file, _) = insert(Container::Png, &given, Some(8), plain(Container::Png));
        assert_eq!(
            read(Container::Png, &file).xmp.unwrap()[..],
            *b"<a tiff:Orientation='8'/>"
        );
    }

    /// Files cut anywhere, and files with some bytes changed: nothing panics, and what is found is small.
    #[test]
    fn hostile_bytes_do_no_harm() {
        let given = png::tests::full();
        let mut state = 0x9e37_79b9_u32;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as usize
        };
        for container in ALL {
            let (file, _) = insert(container, &given, Some(6), plain(container));
            let trial = |bytes: &[u8]| {
                let found = read(container, bytes);
                let sizes =
                    [&found.exif, &found.xmp, &found.iptc].map(|item| item.as_ref().map_or(0, |i| i.len()));
                assert!(sizes.iter().sum::<usize>() <= 3 * bytes.len() + (1 << 16));
                for other in ALL {
                    let (_, lost) = insert(other, &found, Some(3), plain(other));
                    assert!(lost.len() <= 12);
                }
                let _ = insert(container, &given, Some(3), bytes.to_vec());
            };
            let step = (file.len() / 150).max(1);
            for end in (0..file.len()).step_by(step) {
                trial(&file[..end]);
            }
            for _ in 0..400 {
                let mut bytes = file.clone();
                for _ in 0..=random() % 4 {
                    let at = random() % bytes.len();
                    bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random() as u8][random() % 6];
                }
                trial(&bytes);
                // Else damage hardly gets past the checksums.
                if container == Container::Png {
                    trial(&png::tests::repaired(&bytes));
                }
            }
            // The Exif block by itself, in every place.
            let block = given.exif.as_deref().unwrap();
            for at in 0..block.len() {
                for value in [0, 1, 8, 0xff] {
                    let mut block = block.to_vec();
                    block[at] = value;
                    let mut hostile = Annotations::default();
                    hostile.take_exif(&block);
                    let _ = insert(container, &hostile, Some(2), plain(container));
                }
            }
        }
    }
}
