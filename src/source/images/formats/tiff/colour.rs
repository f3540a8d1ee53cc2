//! Colours: gray, RGB, palette, CMYK and YCbCr, and alpha that the colours were multiplied by.
//!
//! A stored pixel has its colour samples first and then alpha, if any; so has the pixel that is given out.
//!
//! ```text
//! stored      gray A     R G B A     index A     C M Y K A     Y Cb Cr
//! given out   gray A     R G B A     R G B A     R G B A       R G B      (never premultiplied)
//! ```

use super::directory::{COLOUR_MAP, Entry, Input, YCBCR_LUMA, YCBCR_REFERENCE, YCBCR_SUBSAMPLING, find};
use super::{Result, damaged, unsupported};
use std::cell::Cell;

/// What the colour samples mean.
pub(super) enum Model {
    /// Inverted: 0 is white.
    Gray {
        inverted: bool,
    },
    Rgb,
    /// The RGB colours of the palette, with 16 bits.
    Palette(Vec<[u16; 3]>),
    Cmyk,
    YCbCr(YCbCr),
}

impl Model {
    /// The meaning of the colour samples, from the PhotometricInterpretation and the tags that go with it.
    pub(super) fn read(
        input: &mut Input,
        directory: &[Entry],
        photometric: u64,
        bits: usize,
        jpeg: bool,
    ) -> Result<Model> {
        match photometric {
            0 | 1 => Ok(Model::Gray {
                inverted: photometric == 0,
            }),
            2 => Ok(Model::Rgb),
            3 => {
                let Some(entry) = find(directory, COLOUR_MAP) else {
                    return damaged("its colour map is missing");
                };
                if bits > 16 {
                    return unsupported(format!("holds a palette of {bits}-bit samples"));
                }
                Ok(Model::Palette(palette(&input.integers(entry, 3 << 16)?, bits)?))
            }
            5 => Ok(Model::Cmyk),
            6 if jpeg => Ok(Model::YCbCr(YCbCr::JPEG)),
            6 => {
                let block = match find(directory, YCBCR_SUBSAMPLING) {
                    Some(entry) => input.integers(entry, 2)?,
                    None => vec![2, 2],
                };
                let &[h @ (1 | 2 | 4), v @ (1 | 2 | 4)] = block.as_slice() else {
                    return damaged("a subsampling that does not exist");
                };
                let luma = input.fractions(find(directory, YCBCR_LUMA));
                let reference = input.fractions(find(directory, YCBCR_REFERENCE));
                Ok(Model::YCbCr(YCbCr {
                    luma: luma
                        .filter(|l| l.iter().all(|&l| l > 0.0))
                        .unwrap_or(YCbCr::JPEG.luma),
                    reference: reference.unwrap_or(YCbCr::JPEG.reference),
                    block: (h as usize, v as usize),
                }))
            }
            4 => unsupported("holds a transparency mask and no picture"),
            8..=10 => unsupported("holds CIE L*a*b* colours"),
            32_803 => unsupported("holds a camera's raw samples"),
            32_844 | 32_845 => unsupported("holds LogLuv colours"),
            34_892 => unsupported("holds a camera's linear raw samples"),
            other => unsupported(format!("holds colours of an unknown kind ({other})")),
        }
    }

    /// How many colour samples a pixel has.
    pub(super) fn colours(&self) -> usize {
        match self {
            Model::Gray { .. } | Model::Palette(_) => 1,
            Model::Rgb | Model::YCbCr(_) => 3,
            Model::Cmyk => 4,
        }
    }

    /// One colour sample is given out, not three.
    pub(super) fn is_gray(&self) -> bool {
        matches!(self, Model::Gray { .. })
    }

    /// The colours need 16 bits even if the stored samples have fewer.
    pub(super) fn is_deep(&self) -> bool {
        match self {
            Model::Palette(map) => map.iter().flatten().any(|&v| v % 257 != 0),
            _ => false,
        }
    }

    /// Columns and rows of pixels that are stored together: 1 and 1 except for subsampled YCbCr.
    pub(super) fn block(&self) -> (usize, usize) {
        match self {
            Model::YCbCr(ycbcr) => ycbcr.block,
            _ => (1, 1),
        }
    }
}

/// How YCbCr becomes RGB.
pub(super) struct YCbCr {
    /// The weights of red, green and blue in Y.
    luma: [f32; 3],
    /// The stored values of black and white for Y, then of zero and the largest value for Cb and for Cr.
    pub(super) reference: [f32; 6],
    /// Columns and rows that share one Cb and one Cr.
    block: (usize, usize),
}

impl YCbCr {
    /// As in JPEG files: BT.601, full range.
    pub(super) const JPEG: YCbCr = YCbCr {
        luma: [0.299, 0.587, 0.114],
        reference: [0.0, 255.0, 128.0, 255.0, 128.0, 255.0],
        block: (1, 1),
    };

    /// The RGB colour of 8 bits.
    fn rgb(&self, y: u16, cb: u16, cr: u16) -> [u16; 3] {
        let [y0, y1, b0, b1, r0, r1] = self.reference;
        let [red, green, blue] = self.luma;
        let span = |low: f32, high: f32| if high == low { 1.0 } else { high - low };
        let y = (f32::from(y) - y0) * 255.0 / span(y0, y1);
        let cb = (f32::from(cb) - b0) * 127.0 / span(b0, b1);
        let cr = (f32::from(cr) - r0) * 127.0 / span(r0, r1);
        let r = y + cr * (2.0 - 2.0 * red);
        let b = y + cb * (2.0 - 2.0 * blue);
        let g = (y - red * r - blue * b) / green;
        [r, g, b].map(|v| (v.clamp(0.0, 255.0) + 0.5) as u16)
    }
}

/// The colours of a palette, with 16 bits. Those that have only 8 bits become multiples of 257.
fn palette(values: &[u64], bits: usize) -> Result<Vec<[u16; 3]>> {
    let size = 1_usize << bits;
    let mut planes = values.chunks_exact(size);
    let (Some(red), Some(green), Some(blue)) = (planes.next(), planes.next(), planes.next()) else {
        return damaged("its colour map is too short");
    };
    let most = values.iter().take(3 * size).max().copied().unwrap_or(0);
    // Some writers store 8-bit values, others shift them up by 8 bits. Unscaled, white would be nearly black
    // or light gray.
    let small = most < 256;
    let shifted = values.iter().take(3 * size).all(|v| v & 255 == 0);
    let full = |v: u64| {
        let v = v.min(65_535) as u16;
        if small {
            v * 257
        } else if shifted {
            (v >> 8) * 257
        } else {
            v
        }
    };
    let colours = red.iter().zip(green).zip(blue);
    Ok(colours
        .map(|((&r, &g), &b)| [full(r), full(g), full(b)])
        .collect())
}

/// From a stored pixel to the one that is given out.
pub(super) struct Conversion<'a> {
    pub(super) model: &'a Model,
    /// Colour samples of a stored pixel; alpha comes after them.
    pub(super) colours: usize,
    /// The largest sample given out: 255 or 65535.
    pub(super) most: u16,
    /// The colours are multiplied by alpha.
    pub(super) premultiplied: bool,
    /// The samples were floating-point numbers, and were divided by alpha as such.
    pub(super) float: bool,
    /// Colour samples that were greater than the alpha that they were divided by.
    pub(super) cut: Cell<u64>,
}

impl Conversion<'_> {
    /// The pixel given out for a stored one: its first samples are the channels. `scaled` takes a stored
    /// sample to the depth of the output; the index into a palette is not scaled.
    #[inline]
    pub(super) fn pixel(&self, stored: &[u16], scaled: impl Fn(u16) -> u16) -> [u16; 4] {
        let most = self.most;
        let alpha = stored.get(self.colours).map_or(0, |&a| scaled(a));
        if let Model::Palette(map) = self.model {
            let index = usize::from(stored.first().copied().unwrap_or(0));
            let [r, g, b] = map.get(index).copied().unwrap_or_default();
            return if most > 255 {
                [r, g, b, alpha]
            } else {
                [r / 257, g / 257, b / 257, alpha]
            };
        }
        let mut c = [0; 4];
        for (to, &from) in c.iter_mut().zip(stored.iter().take(self.colours)) {
            *to = scaled(from);
        }
        if self.premultiplied && !self.float {
            let cut = c.iter().filter(|&&colour| colour > alpha).count();
            self.cut.set(self.cut.get() + cut as u64);
        }
        if self.premultiplied && alpha == 0 {
            return [0; 4];
        }
        // Floating-point colours were divided by alpha before they were clamped.
        if self.premultiplied && !self.float {
            c = c.map(|c| divided(c, alpha, most));
        }
        let [x, y, z, k] = c;
        match self.model {
            Model::Gray { inverted: true } => [most - x, alpha, 0, 0],
            Model::Gray { inverted: false } => [x, alpha, 0, 0],
            Model::Cmyk => {
                let colour = |ink: u16| product(most - ink, most - k, most);
                [colour(x), colour(y), colour(z), alpha]
            }
            Model::YCbCr(ycbcr) => {
                let [r, g, b] = ycbcr.rgb(x, y, z);
                [r, g, b, alpha]
            }
            Model::Rgb | Model::Palette(_) => [x, y, z, alpha],
        }
    }
}

/// A premultiplied colour divided by its alpha.
pub(in crate::source::images) fn divided(colour: u16, alpha: u16, most: u16) -> u16 {
    let (colour, alpha, most) = (u64::from(colour), u64::from(alpha.max(1)), u64::from(most));
    ((colour * most + alpha / 2) / alpha).min(most) as u16
}

/// The product of two fractions of `most`.
fn product(a: u16, b: u16, most: u16) -> u16 {
    let most = u64::from(most);
    ((u64::from(a) * u64::from(b) + most / 2) / most) as u16
}

#[cfg(test)]
mod tests {
    use super::super::directory::{BITS, COLOUR_MAP, EXTRA_SAMPLES, PHOTOMETRIC, SAMPLES};
    use super::super::fixtures::{file, read};
    use super::*;

    #[test]
    fn colours_greater_than_their_alpha_are_counted() {
        let conversion = Conversion {
            model: &Model::Rgb,
            colours: 3,
            most: 255,
            premultiplied: true,
            float: false,
            cut: Cell::new(0),
        };
        for (stored, given, cut) in [
            ([20, 10, 40, 40], [128, 64, 255, 40], 0),
            ([200, 100, 40, 40], [255, 255, 255, 40], 2),
            // A light that is added covers nothing.
            ([0, 9, 0, 0], [0; 4], 3),
        ] {
            assert_eq!(conversion.pixel(&stored, |v| v), given);
            assert_eq!(conversion.cut.get(), cut);
        }
    }

    #[test]
    fn associated_alpha_is_divided_out() {
        let entries: &[(u16, &[u32])] = &[
            (BITS, &[8; 4]),
            (PHOTOMETRIC, &[2]),
            (SAMPLES, &[4]),
            (EXTRA_SAMPLES, &[1]),
        ];
        let (facts, out) = read(&file(
            3,
            1,
            entries,
            &[&[64, 0, 128, 128, 9, 9, 9, 0, 3, 2, 1, 2]],
        ))
        .unwrap();
        assert!(facts.alpha);
        assert_eq!(out, [128, 0, 255, 128, 0, 0, 0, 0, 255, 255, 128, 2]);
    }

    #[test]
    fn palettes_have_the_depth_of_their_colours() {
        let small: Vec<u32> = [1, 2, 3, 4, 5, 6].map(|v| v * 257).to_vec();
        let entries = |map| [(PHOTOMETRIC, &[3][..]), (COLOUR_MAP, map)];
        let (facts, out) = read(&file(2, 1, &entries(&small), &[&[0b0100_0000]])).unwrap();
        assert!(!facts.deep && !facts.gray);
        assert_eq!(out, [1, 3, 5, 2, 4, 6]);
        let (facts, out) = read(&file(1, 1, &entries(&[1, 2, 3, 4, 5, 999]), &[&[0x80]])).unwrap();
        assert!(facts.deep);
        assert_eq!(out, [2, 0, 4, 0, 231, 3]);
    }
}
