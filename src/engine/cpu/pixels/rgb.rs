//! Converts a picture in the host's memory to RGB, with the integers of `engine::rgb`, row by row.
//!
//! ```text
//! chroma          u   u   u        the row above and the row below, mixed by their distances
//! spread          u u u u u u      the samples to the left and to the right, mixed likewise
//! planes of RGB   r r r r r r      sums of three products, exact as doubles; floor, clamp
//! row of RGB      r g b r g b ..
//! ```

use super::floor_bits;
use crate::engine::EngineError;
use crate::engine::cpu::simd::vector::Plain;
use crate::engine::cpu::simd::{best_vectors, run_plain};
use crate::engine::rgb::{FACTOR_BITS, RgbIntegers, between};
use crate::frame::{Image, ImageMut};

/// Stores the RGB of a picture: of 8 bits for samples of 8, else of 16 at full scale; alpha is left out. The
/// bits are those that a card makes.
///
/// `rgb` is of the same size, in the format `rgb24` or `rgb48le`. An error if it is not, if samples are
/// floating-point numbers, or if the matrix is not known.
pub fn to_rgb(image: &Image<'_>, rgb: &mut ImageMut<'_>) -> Result<(), EngineError> {
    let layout = image.layout();
    let facts = (&image.colour(), image.field_order());
    let integers = RgbIntegers::new(layout.format(), facts, layout.height())?;
    let (found, size) = (rgb.layout(), (layout.width(), layout.height()));
    if found.format() != integers.result || (found.width(), found.height()) != size {
        return Err(EngineError::Unfit(format!(
            "RGB of {}x{} {} is {} of that size, and there is room for {}x{} {}",
            size.0,
            size.1,
            layout.format(),
            integers.result,
            found.width(),
            found.height(),
            found.format()
        )));
    }
    if layout.format() == integers.result {
        for y in 0..size.1 {
            rgb.row_mut(0, y).copy_from_slice(image.row(0, y));
        }
        return Ok(());
    }
    let rows = Rows {
        image,
        integers: &integers,
        rgb,
    };
    run_plain(best_vectors(), rows);
    Ok(())
}

/// All rows of a picture.
struct Rows<'a, 'b> {
    image: &'a Image<'a>,
    integers: &'a RgbIntegers,
    rgb: &'a mut ImageMut<'b>,
}

/// Loads the samples of component `k` in row `y`, less its zero level.
#[inline(always)]
fn load(image: &Image<'_>, integers: &RgbIntegers, (k, y): (usize, usize), to: &mut [i32]) {
    let (format, (plane, channel)) = (image.layout().format(), integers.places[k]);
    let (bytes, zero) = (format.bytes_per_sample(), integers.zeros[k]);
    let pixels = image
        .row(plane, y)
        .chunks_exact(image.layout().planes()[plane].channels * bytes);
    if bytes == 1 {
        for (to, pixel) in to.iter_mut().zip(pixels) {
            *to = i32::from(pixel[channel]) - zero;
        }
        return;
    }
    for (to, pixel) in to.iter_mut().zip(pixels) {
        let word = u16::from_le_bytes([pixel[2 * channel], pixel[2 * channel + 1]]);
        *to = i32::from(word >> format.shift()) - zero;
    }
}

/// The weights of a chroma sample's left neighbour, of itself and of its right neighbour, in each of the `N`
/// pixels that it stands for.
#[inline(always)]
fn taps<const N: usize>(origin: i32, log2: u32) -> [[i32; 3]; N] {
    std::array::from_fn(|pixel| {
        // The sample is number 1 of three.
        let (first, second, part) = between(N + pixel, origin, log2, 3);
        let mut taps = [0; 3];
        taps[first] += (2 << log2) - part as i32;
        taps[second] += part as i32;
        taps
    })
}

/// Interpolates chroma along a row: of each pixel, from the samples with a neighbour at either end.
#[inline(always)]
fn spread<const N: usize>(samples: &[i32], (origin, log2): (i32, u32), to: &mut [f64]) {
    let taps = taps::<N>(origin, log2);
    for (near, pixels) in samples.windows(3).zip(to.as_chunks_mut::<N>().0) {
        for (pixel, taps) in pixels.iter_mut().zip(&taps) {
            *pixel = f64::from(taps[0] * near[0] + taps[1] * near[1] + taps[2] * near[2]);
        }
    }
}

impl Plain for Rows<'_, '_> {
    #[inline(always)]
    fn run(self) {
        let Rows { image, integers, rgb } = self;
        let (width, height) = (image.layout().width(), image.layout().height());
        let chroma = image.layout().planes()[integers.places[1].0];
        let (log2, origin) = (integers.log2, integers.origin);
        let mut samples = [vec![0; width], vec![0; chroma.width]];
        let mut mixed = vec![0; chroma.width + 2];
        let mut components = [(); 3].map(|()| vec![0.0; width.max(chroma.width << log2.0)]);
        let mut planes = [(); 3].map(|()| vec![0; width]);
        let scale = 1.0 / f64::from(1 << FACTOR_BITS);
        let of_place = scale / f64::from(1 << integers.place_bits());
        let most = f64::from(integers.result.max_value());
        for y in 0..height {
            load(image, integers, (0, y), &mut samples[0]);
            for (to, &luma) in components[0].iter_mut().zip(&samples[0]) {
                *to = f64::from(luma);
            }
            if integers.count == 3 {
                let (above, below, down) = integers.rows_between(y, chroma.height);
                let (down, whole) = (down as i32, 1 << integers.row_bits());
                for (k, component) in components.iter_mut().enumerate().skip(1) {
                    let inside = &mut mixed[1..=chroma.width];
                    load(image, integers, (k, above), inside);
                    load(image, integers, (k, below), &mut samples[1]);
                    for (mixed, &below) in inside.iter_mut().zip(&samples[1]) {
                        *mixed = (whole - down) * *mixed + down * below;
                    }
                    mixed[0] = mixed[1];
                    mixed[chroma.width + 1] = mixed[chroma.width];
                    let along = (origin.0, log2.0);
                    match log2.0 {
                        0 => spread::<1>(&mixed, along, component),
                        1 => spread::<2>(&mixed, along, component),
                        _ => spread::<4>(&mixed, along, component),
                    }
                }
            }
            let [luma, cb, cr] = components.each_ref().map(|line| &line[..width]);
            for (plane, factors) in planes.iter_mut().zip(&integers.factors) {
                let [of_luma, of_cb, of_cr] = factors.map(f64::from);
                let (of_luma, of_cb, of_cr) = (of_luma * scale, of_cb * of_place, of_cr * of_place);
                for (((to, luma), cb), cr) in plane.iter_mut().zip(luma).zip(cb).zip(cr) {
                    let level = of_luma * luma + of_cb * cb + of_cr * cr + 0.5;
                    *to = floor_bits(level.clamp(0.0, most)) as i32;
                }
            }
            let [red, green, blue] = &planes;
            let levels = red.iter().zip(green).zip(blue);
            let row = rgb.row_mut(0, y);
            if integers.result.bytes_per_sample() == 1 {
                for (pixel, ((&red, &green), &blue)) in row.as_chunks_mut::<3>().0.iter_mut().zip(levels) {
                    *pixel = [red as u8, green as u8, blue as u8];
                }
            } else {
                for (pixel, ((&red, &green), &blue)) in row.as_chunks_mut::<6>().0.iter_mut().zip(levels) {
                    for (to, level) in pixel.as_chunks_mut::<2>().0.iter_mut().zip([red, green, blue]) {
                        *to = (level as u16).to_le_bytes();
                    }
                }
            }
        }
    }
}
