//! Samples as Radiance HDR holds them: three mantissas of 8 bits and a common exponent for each pixel.

use image::codecs::hdr::HdrEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use std::io::Write;

/// The greatest number: a mantissa of 255 with the greatest exponent.
const MOST: f32 = 255.0 * (1_u128 << 119) as f32;

/// The least number above 0 that a pixel's greatest sample may be.
const LEAST: f32 = 1e-38;

/// The pixels, RGB of 32 bits, with each sample brought to the nearest number that Radiance holds beside the
/// pixel's others, in the machine's order, so that the encoder has nothing to cut off. What is below 0 or no
/// number becomes 0, and what is above the greatest number becomes that.
pub(super) fn nearest(pixels: &[u8]) -> Vec<u8> {
    let (numbers, _) = pixels.as_chunks::<4>();
    let (pixels, _) = numbers.as_chunks::<3>();
    let pixels = pixels
        .iter()
        .flat_map(|pixel| nearest_pixel(pixel.map(f32::from_le_bytes)));
    pixels.flat_map(f32::to_ne_bytes).collect()
}

/// Columns of the widest row that can be packed, since 15 bits say how many there are.
const MOST_PACKED: u32 = 32_767;

/// Writes pixels that are [`nearest`] ones as a file.
pub(super) fn write(pixels: &[u8], width: u32, height: u32, mut out: impl Write) -> Result<(), ImageError> {
    // Wider rows are not packed. The image crate would pack those of one column more.
    if width <= MOST_PACKED {
        return HdrEncoder::new(out).write_image(pixels, width, height, ExtendedColorType::Rgb32F);
    }
    let head = format!("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {height} +X {width}\n");
    out.write_all(head.as_bytes())?;
    let (numbers, _) = pixels.as_chunks::<4>();
    let (pixels, _) = numbers.as_chunks::<3>();
    let mut bytes = Vec::new();
    for block in pixels.chunks(1 << 14) {
        bytes.clear();
        bytes.extend(
            block
                .iter()
                .flat_map(|pixel| stored(pixel.map(f32::from_ne_bytes))),
        );
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// The mantissas and the exponent of a pixel that is a nearest one.
fn stored(pixel: [f32; 3]) -> [u8; 4] {
    let most = pixel.into_iter().fold(0.0, f32::max);
    if most == 0.0 {
        return [0; 4];
    }
    let power = power_of_two_below(most.into());
    let [red, green, blue] = pixel.map(|value| (f64::from(value) * 128.0 / power) as u8);
    let exponent = (power.to_bits() >> 52) as i32 - 1023;
    [red, green, blue, (exponent + 129) as u8]
}

fn nearest_pixel(pixel: [f32; 3]) -> [f32; 3] {
    let pixel = pixel.map(|value| match value {
        value if value > 0.0 => f64::from(value.min(MOST)),
        // NaN, too.
        _ => 0.0,
    });
    let most = pixel.into_iter().fold(0.0, f64::max);
    if most < f64::from(LEAST) {
        return [0.0; 3];
    }
    let round = |step: f64| pixel.map(|value| (value / step).round() * step);
    // The greatest mantissa is 128 to 255.
    let step = power_of_two_below(most) / 128.0;
    let rounded = round(step);
    let rounded = match rounded.into_iter().any(|value| value >= 256.0 * step) {
        true => round(2.0 * step),
        false => rounded,
    };
    rounded.map(|value| value as f32)
}

/// The greatest power of two that is not above a normal positive number.
fn power_of_two_below(value: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    f64::from_bits(value.to_bits() & !MANTISSA)
}

/// True if a sample of the pixels, of 32 bits, is no number or above the greatest that Radiance holds.
pub(super) fn has_beyond(pixels: &[u8]) -> bool {
    let (numbers, _) = pixels.as_chunks::<4>();
    let mut values = numbers.iter().copied().map(f32::from_le_bytes);
    values.any(|value| value.is_nan() || value > MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mantissas and the exponent that are written: rows of fewer than 8 pixels are not packed, nor are
    /// those of more than 32767.
    fn written(pixel: [f32; 3]) -> [u8; 4] {
        let mut file = Vec::new();
        let pixels = nearest(&pixel.map(f32::to_le_bytes).concat());
        write(&pixels, 1, 1, &mut file).unwrap();
        let bytes = *file.last_chunk().unwrap();
        let nearest = pixels.as_chunks().0.iter().copied().map(f32::from_ne_bytes);
        assert_eq!(stored(nearest.collect::<Vec<f32>>().try_into().unwrap()), bytes);
        bytes
    }

    #[test]
    fn samples_become_the_nearest_numbers() {
        for (pixel, bytes) in [
            // 153.6, 76.8 and 25.6 of 256.
            ([0.6, 0.3, 0.1], [154, 77, 26, 128]),
            ([0.5, 0.25, 0.125], [128, 64, 32, 128]),
            // 255.744 of 256 has no mantissa of 8 bits.
            ([0.999, 0.5, 0.0], [128, 64, 0, 129]),
            ([0.9979, 0.0, 0.0], [255, 0, 0, 128]),
            ([f32::INFINITY, -1.0, f32::NAN], [255, 0, 0, 255]),
            ([3e38, 1e38, 0.0], [255, 150, 0, 255]),
            ([1.1e-38, 0.0, 1e-40], [240, 0, 2, 2]),
            ([1e-39, 0.0, 1e-45], [0; 4]),
            ([-0.0, f32::NEG_INFINITY, 0.0], [0; 4]),
        ] {
            assert_eq!(written(pixel), bytes, "{pixel:?}");
        }
        // No error is above half a step of the written exponent.
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits((state >> 9) % 0x0400_0000 + 0x3d00_0000)
        };
        for _ in 0..500 {
            let pixel = [random(), random(), random()];
            let [mantissas @ .., exponent] = written(pixel);
            let step = 2_f64.powi(i32::from(exponent) - 136);
            for (value, mantissa) in pixel.into_iter().zip(mantissas) {
                let error = (f64::from(value) / step - f64::from(mantissa)).abs();
                assert!(error <= 0.5, "{pixel:?}");
            }
        }
    }

    #[test]
    fn what_is_beyond_is_known() {
        let beyond = |value: f32| has_beyond(&[1.0, value, 0.0].map(f32::to_le_bytes).concat());
        assert!(beyond(f32::NAN) && beyond(f32::INFINITY) && beyond(1.7e38));
        assert!(!beyond(1.69e38) && !beyond(f32::NEG_INFINITY));
    }
}
