//! The kinds of image files, one row of a table each. A new kind is a variant of [`ImageKind`] and a row, an
//! arm where it is decoded or encoded if no library at hand does that already, and what files of it store of
//! a frame (`sink/images/stored.rs`).

use super::annotations::Container;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A kind of image file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageKind {
    /// PNG: gray and RGB, with or without alpha, 8 and 16 bits.
    Png,
    /// JPEG, lossy: gray and RGB, 8 bits.
    Jpeg,
    /// TIFF, written uncompressed: gray, RGB and RGBA, 8 and 16 bits, and floating-point samples.
    Tiff,
    /// BMP: gray, RGB and RGBA, 8 bits.
    Bmp,
    /// WebP, written lossless: gray and RGB, with or without alpha, 8 bits.
    WebP,
    /// PGM, PPM or PAM, by the colours: gray and RGB, with or without alpha, 8 and 16 bits.
    Pnm,
    /// PGM: gray, 8 and 16 bits.
    Pgm,
    /// PPM: RGB, 8 and 16 bits.
    Ppm,
    /// PBM, read only: black and white.
    Pbm,
    /// OpenEXR: floating-point samples of 16 and 32 bits in any number of channels.
    Exr,
    /// DPX: gray, RGB and RGBA, 8 and 16 bits; RGB of 10 and 12 bits.
    Dpx,
    /// Truevision TGA: gray, RGB and RGBA, 8 bits.
    Tga,
    /// PFM: gray and RGB, floating-point samples of 32 bits.
    Pfm,
    /// JPEG XL, written lossless: gray and RGB, with or without alpha, 8 and 16 bits.
    Jxl,
    /// AVIF, read only.
    Avif,
    /// JPEG 2000, written lossless: gray and RGB, with or without alpha, 8 and 16 bits.
    Jp2,
    /// QOI: RGB and RGBA, 8 bits.
    Qoi,
    /// Radiance HDR: RGB, floating-point samples of 8 bits with a common exponent.
    Hdr,
    /// Photoshop's own files, read only: the picture that all layers make.
    Psd,
    /// DDS, textures of games, read only: the first and largest picture.
    Dds,
    /// Icons and cursors of Windows, of which the largest picture is read; icons are written as one picture:
    /// RGB and RGBA, 8 bits, up to 256x256.
    Ico,
    /// PCX, read only.
    Pcx,
}

/// Who decodes a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoding {
    /// The image crate, as the format that it is named by.
    Image(image::ImageFormat),
    /// libjpeg-turbo, which knows every layout of scans and reports damage.
    Jpeg,
    /// Our decoder, `source/images/formats/tiff`; of the tiff crate it uses decompressors alone.
    Tiff,
    /// Our decoder, `source/images/formats/tga.rs`.
    Tga,
    /// Our decoder, `source/images/formats/pfm.rs`.
    Pfm,
    /// The dds crate.
    Dds,
    /// The exr crate.
    Exr,
    /// The image crate, which gets the largest picture alone.
    Ico,
    /// FFmpeg.
    Ffmpeg,
}

impl Decoding {
    /// The image crate's name of the format, of those that it recognises by their content.
    fn format(self) -> Option<image::ImageFormat> {
        match self {
            Decoding::Image(format) => Some(format),
            Decoding::Jpeg => Some(image::ImageFormat::Jpeg),
            Decoding::Tiff => Some(image::ImageFormat::Tiff),
            Decoding::Dds => Some(image::ImageFormat::Dds),
            Decoding::Exr => Some(image::ImageFormat::OpenExr),
            Decoding::Ico => Some(image::ImageFormat::Ico),
            Decoding::Tga | Decoding::Pfm | Decoding::Ffmpeg => None,
        }
    }
}

/// Who encodes a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Nobody: it is read only.
    None,
    /// The image crate, the tiff crate, libjpeg-turbo, or an encoder of ours (`sink/images/encode.rs`).
    Own,
    /// An encoder of FFmpeg's, by its name, if this FFmpeg has it.
    Ffmpeg(&'static str),
}

/// Whether a kind holds floating-point samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Floats {
    No,
    /// Beside integers.
    Also,
    /// And no others.
    Only,
}

/// A row of the table.
struct Row {
    kind: ImageKind,
    name: &'static str,
    /// Extensions of file names, the usual one first.
    extensions: &'static [&'static str],
    decoding: Decoding,
    encoding: Encoding,
    /// Samples of 16 bits are held.
    is_deep: bool,
    floats: Floats,
    /// The form of its annotations, if they are read and written here.
    container: Option<Container>,
    /// Files are written with a colour profile and the orientation.
    keeps_profile: bool,
    /// Gray is stored as RGB by its encoder, so that only a profile of RGB fits.
    makes_rgb_of_gray: bool,
    /// Pixels of the longest side that it holds, if a picture can be longer.
    longest_side: Option<u32>,
    /// The usual extension is that of a container, and the others are those of bare codestreams.
    has_bare_form: bool,
    /// The extension of animations in its format.
    animation: Option<&'static str>,
}

/// The extension of cursors, which are icons with the point that they point with. No frame has that.
const CURSOR: &str = "cur";

/// What most rows have.
const ROW: Row = Row {
    kind: ImageKind::Png,
    name: "",
    extensions: &[],
    decoding: Decoding::Ffmpeg,
    encoding: Encoding::None,
    is_deep: false,
    floats: Floats::No,
    container: None,
    keeps_profile: false,
    makes_rgb_of_gray: false,
    longest_side: None,
    has_bare_form: false,
    animation: None,
};

const ROWS: [Row; 22] = {
    use Decoding::{Dds, Exr, Ffmpeg, Ico, Image, Jpeg, Pfm, Tga, Tiff};
    use image::ImageFormat as F;
    [
        Row {
            kind: ImageKind::Png,
            name: "PNG",
            extensions: &["png"],
            decoding: Image(F::Png),
            encoding: Encoding::Own,
            is_deep: true,
            container: Some(Container::Png),
            keeps_profile: true,
            animation: Some("apng"),
            ..ROW
        },
        Row {
            kind: ImageKind::Jpeg,
            name: "JPEG",
            extensions: &["jpg", "jpeg", "jpe", "jfif"],
            decoding: Jpeg,
            encoding: Encoding::Own,
            container: Some(Container::Jpeg),
            keeps_profile: true,
            longest_side: Some(65_535),
            ..ROW
        },
        Row {
            kind: ImageKind::Tiff,
            name: "TIFF",
            extensions: &["tif", "tiff"],
            decoding: Tiff,
            encoding: Encoding::Own,
            is_deep: true,
            floats: Floats::Also,
            container: Some(Container::Tiff),
            keeps_profile: true,
            ..ROW
        },
        Row {
            kind: ImageKind::Bmp,
            name: "BMP",
            extensions: &["bmp", "dib"],
            decoding: Image(F::Bmp),
            encoding: Encoding::Own,
            container: Some(Container::Bmp),
            ..ROW
        },
        Row {
            kind: ImageKind::WebP,
            name: "WebP",
            extensions: &["webp"],
            decoding: Image(F::WebP),
            encoding: Encoding::Own,
            container: Some(Container::WebP),
            keeps_profile: true,
            makes_rgb_of_gray: true,
            longest_side: Some(16_384),
            ..ROW
        },
        Row {
            kind: ImageKind::Pnm,
            name: "PNM",
            extensions: &["pnm", "pam"],
            decoding: Image(F::Pnm),
            encoding: Encoding::Own,
            is_deep: true,
            container: Some(Container::Pnm),
            ..ROW
        },
        Row {
            kind: ImageKind::Pgm,
            name: "PGM",
            extensions: &["pgm"],
            decoding: Image(F::Pnm),
            encoding: Encoding::Own,
            is_deep: true,
            container: Some(Container::Pnm),
            ..ROW
        },
        Row {
            kind: ImageKind::Ppm,
            name: "PPM",
            extensions: &["ppm"],
            decoding: Image(F::Pnm),
            encoding: Encoding::Own,
            is_deep: true,
            container: Some(Container::Pnm),
            ..ROW
        },
        Row {
            kind: ImageKind::Pbm,
            name: "PBM",
            extensions: &["pbm"],
            decoding: Image(F::Pnm),
            container: Some(Container::Pnm),
            ..ROW
        },
        Row {
            kind: ImageKind::Exr,
            name: "OpenEXR",
            extensions: &["exr"],
            decoding: Exr,
            encoding: Encoding::Own,
            is_deep: true,
            floats: Floats::Only,
            ..ROW
        },
        Row {
            kind: ImageKind::Dpx,
            name: "DPX",
            extensions: &["dpx"],
            decoding: Ffmpeg,
            encoding: Encoding::Ffmpeg("dpx"),
            is_deep: true,
            ..ROW
        },
        Row {
            kind: ImageKind::Tga,
            name: "TGA",
            extensions: &["tga", "vda", "icb", "vst"],
            decoding: Tga,
            encoding: Encoding::Ffmpeg("targa"),
            ..ROW
        },
        Row {
            kind: ImageKind::Pfm,
            name: "PFM",
            extensions: &["pfm"],
            decoding: Pfm,
            encoding: Encoding::Own,
            is_deep: true,
            floats: Floats::Only,
            ..ROW
        },
        Row {
            kind: ImageKind::Jxl,
            name: "JPEG XL",
            extensions: &["jxl"],
            decoding: Ffmpeg,
            encoding: Encoding::Ffmpeg("libjxl"),
            is_deep: true,
            ..ROW
        },
        Row {
            kind: ImageKind::Avif,
            name: "AVIF",
            extensions: &["avif"],
            decoding: Ffmpeg,
            is_deep: true,
            ..ROW
        },
        Row {
            kind: ImageKind::Jp2,
            name: "JPEG 2000",
            extensions: &["jp2", "j2k", "j2c", "jpc"],
            decoding: Ffmpeg,
            encoding: Encoding::Ffmpeg("libopenjpeg"),
            is_deep: true,
            has_bare_form: true,
            ..ROW
        },
        Row {
            kind: ImageKind::Qoi,
            name: "QOI",
            extensions: &["qoi"],
            decoding: Ffmpeg,
            encoding: Encoding::Ffmpeg("qoi"),
            ..ROW
        },
        Row {
            kind: ImageKind::Hdr,
            name: "Radiance HDR",
            extensions: &["hdr"],
            decoding: Image(F::Hdr),
            encoding: Encoding::Own,
            is_deep: true,
            floats: Floats::Only,
            container: Some(Container::Radiance),
            ..ROW
        },
        Row {
            kind: ImageKind::Psd,
            name: "PSD",
            extensions: &["psd"],
            decoding: Ffmpeg,
            is_deep: true,
            ..ROW
        },
        Row {
            kind: ImageKind::Dds,
            name: "DDS",
            extensions: &["dds"],
            decoding: Dds,
            is_deep: true,
            ..ROW
        },
        Row {
            kind: ImageKind::Ico,
            name: "ICO",
            extensions: &["ico", CURSOR],
            decoding: Ico,
            encoding: Encoding::Own,
            ..ROW
        },
        Row {
            kind: ImageKind::Pcx,
            name: "PCX",
            extensions: &["pcx"],
            decoding: Ffmpeg,
            ..ROW
        },
    ]
};

/// Extensions of pictures that are not read as frames of a sequence, to be named where a folder holds such.
const OTHER_PICTURES: &[&str] = &[
    "gif", "apng", "heic", "heif", "xcf", "svg", "ff", "sgi", "ras", "xbm", "xpm", "fits", "pcd", "cr2",
    "nef", "arw", "dng", "raf", "orf",
];

/// Extensions of more pictures to be named there. How one is read alone depends on its content.
const FURTHER_PICTURES: &[&str] = &[
    "sun", "im1", "im8", "im24", "im32", "sunras", "xwd", "jls", "phm", "pix", "pgx", "jpf", "jpx", "jpm",
    "j2p", "jph", "jhc", "mng", "jng", "pct", "pict", "pic", "fts", "svgz", "heics", "avifs", "hif", "jxr",
    "wdp", "hdp", "wbmp", "cri", "psb", "cr3", "crw", "rw2", "pef", "srw", "nrw", "3fr", "iiq",
];

/// A word that names no kind of image file that can be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no kind of image that framepipe writes; use one of {written}",
    written = ImageKind::written()
)]
pub struct UnknownImageKind(pub String);

impl FromStr for ImageKind {
    type Err = UnknownImageKind;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        ImageKind::named(word)
            .filter(|kind| kind.is_written())
            .ok_or_else(|| UnknownImageKind(word.to_owned()))
    }
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().name)
    }
}

impl ImageKind {
    /// The kind that an extension stands for.
    fn named(extension: &str) -> Option<ImageKind> {
        let is_named = |row: &&Row| row.extensions.iter().any(|e| e.eq_ignore_ascii_case(extension));
        ROWS.iter().find(is_named).map(|row| row.kind)
    }

    fn row(self) -> &'static Row {
        // Every kind has its row (see the test), and the first is a kind, too.
        ROWS.iter().find(|row| row.kind == self).unwrap_or(&ROWS[0])
    }

    /// The kind that a file name's extension stands for, if files of it can be read.
    pub fn read(path: &Path) -> Option<ImageKind> {
        ImageKind::named(path.extension().and_then(OsStr::to_str)?)
    }

    /// The kind that a file name's extension stands for, if files of it can be written.
    pub fn of(path: &Path) -> Option<ImageKind> {
        let is_cursor = || path.extension().is_some_and(|e| e.eq_ignore_ascii_case(CURSOR));
        ImageKind::read(path).filter(|kind| kind.is_written() && !is_cursor())
    }

    /// The kind of files that the image crate recognised by their content.
    pub(crate) fn recognised(format: image::ImageFormat) -> Option<ImageKind> {
        let row = ROWS.iter().find(|row| row.decoding.format() == Some(format))?;
        Some(row.kind)
    }

    /// Who decodes it.
    pub fn decoding(self) -> Decoding {
        self.row().decoding
    }

    /// The form of its annotations, if they are read and written here.
    pub fn container(self) -> Option<Container> {
        self.row().container
    }

    /// Who encodes it.
    pub fn encoding(self) -> Encoding {
        self.row().encoding
    }

    /// True if files of this kind can be written.
    pub fn is_written(self) -> bool {
        self.encoding() != Encoding::None
    }

    /// True if a file of this kind is written with a colour profile and the orientation.
    pub fn keeps_colour_profile(self) -> bool {
        self.row().keeps_profile
    }

    /// True if a colour profile must be one of RGB, for gray as well.
    pub fn makes_rgb_of_gray(self) -> bool {
        self.row().makes_rgb_of_gray
    }

    /// Pixels of the longest side that it holds; `None` if it holds all that frames have.
    pub fn longest_side(self) -> Option<u32> {
        self.row().longest_side
    }

    /// True if a file with this extension is a bare codestream, where the kind has a container, too.
    pub fn is_bare(self, extension: Option<&OsStr>) -> bool {
        let row = self.row();
        row.has_bare_form && !extension.is_some_and(|e| e.eq_ignore_ascii_case(row.extensions[0]))
    }

    /// The extension of animations in its format.
    pub fn animation(self) -> Option<&'static str> {
        self.row().animation
    }

    /// True if it holds floating-point samples and no others.
    pub fn is_float_only(self) -> bool {
        self.row().floats == Floats::Only
    }

    /// True if it holds floating-point samples.
    pub fn holds_floats(self) -> bool {
        self.row().floats != Floats::No
    }

    /// True if it holds samples of more than 8 bits.
    pub fn is_deep(self) -> bool {
        self.row().is_deep
    }

    /// The extension that files of this kind are given.
    pub fn extension(self) -> &'static str {
        self.row().extensions[0]
    }

    /// The extensions of all files that can be read, for a message.
    pub fn extensions() -> String {
        let all: Vec<&str> = ROWS.iter().flat_map(|row| row.extensions).copied().collect();
        all.join(", ")
    }

    /// The names of all kinds that can be read, for a message.
    pub fn names() -> String {
        let mut names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        names.dedup();
        names.join(", ")
    }

    /// The usual extensions of all files that can be written, for a message.
    pub fn written() -> String {
        let all: Vec<&str> = ROWS
            .iter()
            .filter(|row| row.kind.is_written())
            .map(|row| row.extensions[0])
            .collect();
        all.join(", ")
    }

    /// True for the name of a picture that FFmpeg is asked for, of a kind that no sequence is read of.
    pub fn is_other_picture(path: &Path) -> bool {
        ends_in(path, OTHER_PICTURES)
    }

    /// True for the name of any picture of a kind that no sequence is read of.
    pub fn is_left_out(path: &Path) -> bool {
        ends_in(path, OTHER_PICTURES) || ends_in(path, FURTHER_PICTURES)
    }
}

/// True for a name with one of the `extensions`.
fn ends_in(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|e| extensions.iter().any(|other| other.eq_ignore_ascii_case(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row_and_every_extension_one_kind() {
        let mut extensions: Vec<&str> = ROWS.iter().flat_map(|row| row.extensions).copied().collect();
        let count = extensions.len();
        extensions.sort_unstable();
        extensions.dedup();
        assert_eq!(extensions.len(), count);
        for row in &ROWS {
            assert_eq!(row.kind.row().name, row.name);
            let upper = format!("a.{}", row.extensions[0].to_uppercase());
            assert_eq!(ImageKind::read(Path::new(&upper)), Some(row.kind));
            assert_eq!(ImageKind::of(Path::new(&upper)).is_some(), row.kind.is_written());
        }
        assert_eq!("JPE".parse(), Ok(ImageKind::Jpeg));
        assert_eq!("exr".parse(), Ok(ImageKind::Exr));
        for (name, is_bare) in [("a.jp2", false), ("a.JP2", false), ("a.j2k", true), ("a", true)] {
            assert_eq!(
                ImageKind::Jp2.is_bare(Path::new(name).extension()),
                is_bare,
                "{name}"
            );
        }
        assert!(!ImageKind::Jpeg.is_bare(Some(OsStr::new("jpe"))));
        assert!("avif".parse::<ImageKind>().is_err() && "pbm".parse::<ImageKind>().is_err());
        assert!(
            ImageKind::is_other_picture(Path::new("a.GIF"))
                && !ImageKind::is_other_picture(Path::new("a.txt"))
        );
        for extension in OTHER_PICTURES.iter().chain(FURTHER_PICTURES) {
            let name = format!("a.{extension}");
            assert!(ImageKind::is_left_out(Path::new(&name)) && ImageKind::named(extension).is_none());
        }
    }
}
