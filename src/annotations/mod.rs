//! What image files say beside their pixels: Exif, XMP, IPTC, resolution, text, and PNG's words on colour.
//!
//! Image decoders give pixels and drop the rest. This module works beside them, on the bytes of whole files:
//! [`read()`] picks up what a file says, [`insert()`] puts it into a finished file and names what has no
//! place there.
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

mod bytes;
mod containers;
mod excerpt;
mod exif;
mod insert;
mod kind;
mod metadata;
mod photoshop;
mod read;
mod structure;
mod word;
mod xmp;

#[cfg(feature = "images")]
pub use containers::exr;
pub(crate) use containers::png;
pub use containers::{boxes, jpeg_xl, pcx, psd, tga};
#[cfg(feature = "ffmpeg")]
pub(crate) use containers::{dpx, jpeg};

pub use insert::insert;
pub use kind::Container;
pub use metadata::{FileMetadata, instant_frames};
pub use read::{read, read_from, search};
#[cfg(feature = "images")]
pub(crate) use structure::Arrangement;

use crate::messages::metadata_limit::METADATA_LIMIT;
use exif::without_prefix;
use std::sync::Arc;
use word::{name_once, once};

/// The most texts that are carried from one file.
const TEXT_LIMIT: usize = 4096;

/// The name of the text that says when a picture was changed.
const DATE_TIME: &str = "DateTime";

const METRES_PER_INCH: f64 = 0.0254;

/// The least that is taken for a resolution. For none ImageMagick writes the least number that PSD has but 0.
const LEAST_PER_INCH: f64 = 0.001;

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
    /// None where nothing is said: numbers that are none, or as good as 0, and square pixels of no stated
    /// size.
    fn new(x: f64, y: f64, unit: DensityUnit) -> Option<Self> {
        let sound = |v: f64| v.is_finite() && v > 0.0;
        let says = unit != DensityUnit::None || x != y;
        let density = Self { x, y, unit };
        let is_none = |(x, y): (f64, f64)| x < LEAST_PER_INCH && y < LEAST_PER_INCH;
        (sound(x) && sound(y) && says && !density.per_inch().is_some_and(is_none)).then_some(density)
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
        // A kind of file that holds nothing but comments loses all of it where there is no file.
        insert(Container::Pnm, self, None, Vec::new()).1.join(", ")
    }

    /// Takes out descriptions of a file's structure that is not that of `picture`, alone in its file. The
    /// programs that state it so are given.
    #[cfg(feature = "images")]
    pub(crate) fn drop_other_structures(&mut self, picture: &Arrangement) -> Vec<&'static str> {
        let mut programs = Vec::new();
        self.texts.retain(|(_, text)| {
            let other = structure::kind(text).filter(|_| !structure::is_true_of(text, picture));
            other.inspect(|program| once(&mut programs, program)).is_none()
        });
        programs
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

    /// H.273's number of the primaries that PNG's chunks state, of which cICP goes first and sRGB next.
    pub(crate) fn primaries(&self) -> Option<u8> {
        const UNSPECIFIED: u8 = 2;
        let cicp = self.cicp.map(|[primaries, ..]| primaries);
        let srgb = self.srgb_intent.map(|_| 1);
        let stated = cicp.filter(|&primaries| primaries != UNSPECIFIED).or(srgb);
        #[cfg(feature = "images")]
        let stated =
            stated.or_else(|| exr::primaries_of(&self.chromaticities?.map(|c| c as f32 / 100_000.0)));
        stated
    }

    /// The annotations with the resolution that the Exif block states where the file itself states none.
    fn with_density_of_exif(mut self) -> Self {
        let inner = self.exif.as_deref().and_then(exif::density);
        if self.density.is_none_or(|d| d.unit == DensityUnit::None)
            && let Some(inner) = inner
        {
            self.density = Some(inner);
        }
        self
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
        if exif::is_sound(block) && exif::is_cut(block) && block.len() <= METADATA_LIMIT {
            once(&mut self.damaged, word::EXIF);
            let left = exif::rescued(block).unwrap_or_default();
            Self::take(&mut self.exif, &left, &mut self.left_out, word::EXIF);
        } else if exif::is_sound(block) {
            Self::take(&mut self.exif, block, &mut self.left_out, word::EXIF);
        } else if !block.is_empty() {
            once(&mut self.damaged, word::EXIF);
        }
    }

    fn take_xmp(&mut self, packet: &[u8]) {
        Self::take(
            &mut self.xmp,
            &xmp::without_parts(packet),
            &mut self.left_out,
            word::XMP,
        );
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

#[cfg(test)]
mod tests {
    use super::containers::webp;
    use super::*;

    const ALL: [Container; 7] = [
        Container::Png,
        Container::Jpeg,
        Container::WebP,
        Container::Tiff,
        Container::Bmp,
        Container::Pnm,
        Container::Radiance,
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
            Container::Radiance => b"#?RADIANCE\n\n-Y 1 +X 1\n0000".to_vec(),
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
