//! Samples: unpacked from the bits of a stored row, scaled to 8 or 16 bits, and put into the output.
//!
//! A row of samples begins at a byte. Blocks of subsampled YCbCr have the Y of all their pixels, row by row,
//! and then one Cb and one Cr.
//!
//! ```text
//! 12 bits a sample    aaaaaaaa aaaabbbb bbbbbbbb        (the highest bit first)
//! chunky              R G B R G B R G B ...
//! separate planes     R R R ...  |  G G G ...  |  B B B ...
//! 2 x 2 YCbCr         Y00 Y01 Y10 Y11 Cb Cr | Y02 Y03 Y12 Y13 Cb Cr | ...    (Y: row, column)
//! ```

use super::chunks::Band;
use super::colour::{Conversion, Model};
use super::page::Page;
use crate::media::rescale::rescaled;
use std::cell::Cell;

/// How stored samples become those that are given out.
pub(super) struct Pixels<'a> {
    page: &'a Page,
    conversion: Conversion<'a>,
    /// Bytes of a pixel given out.
    pixel_bytes: usize,
    /// The sample given out for each stored one, if they are not the same.
    scale: Option<Vec<u16>>,
    /// Samples are given out as they are stored.
    plain: bool,
    /// The wanted samples of a row, pixel by pixel.
    line: Vec<u16>,
    /// The same before they were clamped, for floating point.
    floats: Vec<f64>,
}

impl<'a> Pixels<'a> {
    /// Prepares the conversion of a page. `pixel_bytes` is the size of a pixel given out.
    pub(super) fn new(page: &'a Page, pixel_bytes: usize) -> Pixels<'a> {
        let most: u16 = if page.deep() { 65_535 } else { 255 };
        let bits = if page.float { 16 } else { page.bits.min(16) };
        let stored = (1_u32 << bits) - 1;
        let scale = (stored != u32::from(most)).then(|| rescaled(stored, most));
        let as_stored = matches!(page.model, Model::Gray { inverted: false } | Model::Rgb);
        Pixels {
            page,
            conversion: Conversion {
                model: &page.model,
                colours: page.model.colours(),
                most,
                premultiplied: page.premultiplied,
                float: page.float,
                cut: Cell::new(0),
            },
            pixel_bytes,
            plain: as_stored && !page.float && !page.premultiplied && scale.is_none(),
            scale,
            line: Vec::new(),
            floats: Vec::new(),
        }
    }

    /// Colour samples so far that were greater than the alpha that they were divided by.
    pub(super) fn cut(&self) -> u64 {
        self.conversion.cut.get()
    }

    /// Converts row `row` of the band into `target`.
    pub(super) fn row(&mut self, band: &Band<'_>, row: usize, target: &mut [u8]) {
        let page = self.page;
        if self.plain {
            copy(page, band, row, target, self.conversion.most > 255);
            return;
        }
        if page.given_floats().is_some() {
            numbers(page, band, row, target);
            return;
        }
        self.unpack(band, row, target.len() / self.pixel_bytes);
        let most = self.conversion.most;
        let scaled = |v: u16| match &self.scale {
            Some(scale) => scale.get(usize::from(v)).copied().unwrap_or(most),
            None => v,
        };
        let stored = self.line.chunks_exact(page.wanted.len());
        let pixels = stored.map(|stored| self.conversion.pixel(stored, scaled));
        let targets = target.chunks_exact_mut(self.pixel_bytes);
        if most > 255 {
            for (target, pixel) in targets.zip(pixels) {
                for (to, from) in target.chunks_exact_mut(2).zip(pixel) {
                    to.copy_from_slice(&from.to_le_bytes());
                }
            }
        } else {
            for (target, pixel) in targets.zip(pixels) {
                target
                    .iter_mut()
                    .zip(pixel)
                    .for_each(|(to, from)| *to = from as u8);
            }
        }
    }

    /// Unpacks the wanted samples of row `row`, of `width` pixels, into `line`.
    fn unpack(&mut self, band: &Band<'_>, row: usize, width: usize) {
        let page = self.page;
        let Pixels { line, floats, .. } = self;
        let block = page.model.block();
        let count = page.wanted.len();
        line.clear();
        line.resize(width * count, 0);
        if page.float {
            floats.clear();
            floats.resize(line.len(), 0.0);
        }
        for (slot, &sample) in page.wanted.iter().enumerate() {
            let (plane, sample) = if page.planar { (slot, 0) } else { (0, sample) };
            let bytes = band.row(plane, row / block.1);
            let places = line.iter_mut().skip(slot).step_by(count);
            if page.float {
                page.floats(bytes, sample, floats.iter_mut().skip(slot).step_by(count));
            } else if block == (1, 1) {
                page.integers(bytes, sample, places);
            } else {
                subsampled(bytes, block, row, sample, places);
            }
        }
        if page.float {
            to_integers(floats, line, count, page.premultiplied);
        }
    }
}

/// Turns floating-point pixels of `count` samples into 16-bit integers: divided by alpha if the colours are
/// premultiplied, then clamped to 0..1.
fn to_integers(floats: &mut [f64], line: &mut [u16], count: usize, premultiplied: bool) {
    for (pixel, target) in floats.chunks_exact_mut(count).zip(line.chunks_exact_mut(count)) {
        if premultiplied && let Some((alpha, colours)) = pixel.split_last_mut() {
            let alpha = *alpha;
            colours
                .iter_mut()
                .for_each(|c| *c = if alpha > 0.0 { *c / alpha } else { 0.0 });
        }
        for (to, &from) in target.iter_mut().zip(&*pixel) {
            *to = (from.clamp(0.0, 1.0) * 65_535.0 + 0.5) as u16;
        }
    }
}

/// Copies the wanted floating-point samples of a row; those of 64 bits become 32 bits.
fn numbers(page: &Page, band: &Band<'_>, row: usize, target: &mut [u8]) {
    let count = page.wanted.len();
    for (slot, &sample) in page.wanted.iter().enumerate() {
        let (plane, sample) = if page.planar { (slot, 0) } else { (0, sample) };
        let (bytes, from) = (band.row(plane, row), (sample, page.samples));
        match page.bits {
            16 => pick::<2>(bytes, from, target, (slot, count)),
            32 => pick::<4>(bytes, from, target, (slot, count)),
            _ => {
                let stored = bytes.as_chunks::<8>().0.iter().skip(sample).step_by(page.samples);
                let places = target.as_chunks_mut::<4>().0.iter_mut().skip(slot).step_by(count);
                for (to, &number) in places.zip(stored) {
                    *to = (f64::from_le_bytes(number) as f32).to_le_bytes();
                }
            }
        }
    }
}

/// Copies the wanted samples of a row, which are given out as they are stored.
fn copy(page: &Page, band: &Band<'_>, row: usize, target: &mut [u8], deep: bool) {
    let count = page.wanted.len();
    if !page.planar && count == page.samples {
        target
            .iter_mut()
            .zip(band.row(0, row))
            .for_each(|(to, &from)| *to = from);
        return;
    }
    for (slot, &sample) in page.wanted.iter().enumerate() {
        let (plane, sample) = if page.planar { (slot, 0) } else { (0, sample) };
        let bytes = band.row(plane, row);
        if deep {
            pick::<2>(bytes, (sample, page.samples), target, (slot, count));
        } else {
            pick::<1>(bytes, (sample, page.samples), target, (slot, count));
        }
    }
}

/// Copies sample `sample` of each pixel of `samples` to place `slot` of each pixel of `count`.
fn pick<const N: usize>(
    stored: &[u8],
    (sample, samples): (usize, usize),
    target: &mut [u8],
    (slot, count): (usize, usize),
) {
    let (stored, _) = stored.as_chunks::<N>();
    let (places, _) = target.as_chunks_mut::<N>();
    let stored = stored.iter().skip(sample).step_by(samples);
    let places = places.iter_mut().skip(slot).step_by(count);
    places.zip(stored).for_each(|(to, from)| *to = *from);
}

impl Page {
    /// Unpacks sample `sample` of each pixel of a stored row of integers into its place.
    fn integers<'a>(&self, bytes: &[u8], sample: usize, places: impl Iterator<Item = &'a mut u16>) {
        let samples = self.samples;
        match self.bits {
            8 => {
                let stored = bytes.iter().skip(sample).step_by(samples);
                places.zip(stored).for_each(|(to, &from)| *to = from.into());
            }
            16 => {
                let (pairs, _) = bytes.as_chunks::<2>();
                let stored = pairs.iter().skip(sample).step_by(samples);
                places
                    .zip(stored)
                    .for_each(|(to, &from)| *to = u16::from_le_bytes(from));
            }
            bits => {
                // A sample of at most 15 bits is in three bytes at most.
                let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
                for (column, to) in places.enumerate() {
                    let first = (column * samples + sample) * bits;
                    let at = first / 8;
                    let three = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
                    *to = (three >> (24 - first % 8 - bits) & ((1 << bits) - 1)) as u16;
                }
            }
        }
    }

    /// The same for floating-point numbers.
    fn floats<'a>(&self, bytes: &[u8], sample: usize, places: impl Iterator<Item = &'a mut f64>) {
        fn put<'a, const N: usize>(
            (bytes, sample, samples): (&[u8], usize, usize),
            places: impl Iterator<Item = &'a mut f64>,
            value: impl Fn([u8; N]) -> f64,
        ) {
            let (numbers, _) = bytes.as_chunks::<N>();
            let stored = numbers.iter().skip(sample).step_by(samples);
            places.zip(stored).for_each(|(to, &from)| *to = value(from));
        }
        let from = (bytes, sample, self.samples);
        match self.bits {
            16 => put(from, places, half),
            32 => put(from, places, |bytes| f32::from_le_bytes(bytes).into()),
            64 => put(from, places, f64::from_le_bytes),
            _ => {}
        }
    }
}

/// Unpacks component `component` of a row of subsampled YCbCr into its place. `bytes` is a row of blocks.
fn subsampled<'a>(
    bytes: &[u8],
    (h, v): (usize, usize),
    row: usize,
    component: usize,
    places: impl Iterator<Item = &'a mut u16>,
) {
    for (column, to) in places.enumerate() {
        let within = match component {
            0 => row % v * h + column % h,
            chroma => h * v + chroma - 1,
        };
        let at = column / h * (h * v + 2) + within;
        *to = bytes.get(at).copied().unwrap_or(0).into();
    }
}

/// The value of a floating-point number of 16 bits.
fn half(bytes: [u8; 2]) -> f64 {
    let bits = u16::from_le_bytes(bytes);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let size = match bits >> 10 & 31 {
        0 => fraction * 2.0_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction) * 2.0_f64.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::super::directory::{BITS, PHOTOMETRIC, SAMPLE_FORMAT};
    use super::super::fixtures::{file, read};
    use super::half;

    #[test]
    fn depths_are_scaled_exactly() {
        let entries: &[(u16, &[u32])] = &[(BITS, &[12]), (PHOTOMETRIC, &[1])];
        let (facts, out) = read(&file(3, 1, entries, &[&[0xff, 0xf0, 0x01, 0x80, 0x00]])).unwrap();
        assert!(facts.deep);
        let values: Vec<u16> = out
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        assert_eq!(values, [65_535, 16, 32_776]);
        let entries: &[(u16, &[u32])] = &[(BITS, &[4]), (PHOTOMETRIC, &[0])];
        assert_eq!(
            read(&file(3, 1, entries, &[&[0x0f, 0x10]])).unwrap().1,
            [255, 0, 238]
        );
    }

    #[test]
    fn floats_stay_what_they_are_but_for_inks() {
        let stored: Vec<u8> = [-1.0_f32, 0.5, f32::NAN, 2.0]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let entries: &[(u16, &[u32])] = &[(BITS, &[32]), (PHOTOMETRIC, &[1]), (SAMPLE_FORMAT, &[3])];
        let (facts, out) = read(&file(4, 1, entries, &[&stored])).unwrap();
        assert_eq!(
            (out, facts.float, facts.lost.len()),
            (stored.clone(), Some(32), 0)
        );
        let entries: &[(u16, &[u32])] = &[(BITS, &[32]), (PHOTOMETRIC, &[0]), (SAMPLE_FORMAT, &[3])];
        let (facts, out) = read(&file(4, 1, entries, &[&stored])).unwrap();
        assert_eq!((&out[2..4], &out[6..]), (&[255, 127][..], &[0, 0][..]));
        assert!(facts.lost[0].contains("outside 0 to 1 are cut"));
        let doubles = [0.25_f64, -3.0].map(f64::to_le_bytes).concat();
        let entries: &[(u16, &[u32])] = &[(BITS, &[64]), (PHOTOMETRIC, &[1]), (SAMPLE_FORMAT, &[3])];
        let (facts, out) = read(&file(2, 1, entries, &[&doubles])).unwrap();
        assert_eq!(out, [0.25_f32, -3.0].map(f32::to_le_bytes).concat());
        assert!(facts.lost[0].contains("64 bits are brought to 32"));
        assert_eq!(
            [0x3c00_u16, 0xc000, 1].map(|v| half(v.to_le_bytes())),
            [1.0, -2.0, 2.0_f64.powi(-24)]
        );
    }
}
