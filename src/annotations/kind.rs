//! Kinds of files that annotations are read from and put into, and what each holds.

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
    /// Radiance HDR.
    Radiance,
}

/// A row of the table of what a kind holds.
pub(super) struct Holds {
    pub(super) exif: bool,
    pub(super) xmp: bool,
    pub(super) iptc: bool,
    pub(super) density: bool,
    /// The shape of pixels without their size.
    pub(super) aspect: bool,
    pub(super) text: bool,
    /// PNG's own description of colours and samples.
    pub(super) colour: bool,
}

impl Container {
    pub(super) const fn holds(self) -> Holds {
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
            // Comments hold texts that are lines.
            Self::Pnm => row([N, N, N], [N, N], N, N),
            // Lines of the head, too.
            Self::Radiance => row([N, N, N], [N, N], N, N),
        }
    }
}
