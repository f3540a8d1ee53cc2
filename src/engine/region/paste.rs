//! Parts of frames: a window cut out of one, and samples put back, whole or mixed by a matte.

use super::matte::Matte;
use super::rectangle::Area;
use super::spans::Spans;
use crate::frame::{Frame, PixelFormat};
use half::f16;

/// Bytes of one pixel of each plane, and the pixels that its samples stand for as powers of two.
struct Grid {
    pixel: usize,
    shift: (u8, u8),
}

fn grids(frame: &Frame) -> impl Iterator<Item = Grid> + use<> {
    let bytes = frame.format().bytes_per_sample();
    let planes = frame.format().planes().iter();
    planes.map(move |plane| Grid {
        pixel: plane.channels.len() * bytes,
        shift: (plane.log2_x, plane.log2_y),
    })
}

/// Copies what `window` shows of `from`, all of `to`.
pub(super) fn cut(from: &Frame, window: &Area, to: &mut Frame) {
    for (index, Grid { pixel, shift }) in grids(from).enumerate() {
        let (x, y) = (window.x >> shift.0, window.y >> shift.1);
        for row in 0..to.layout().planes()[index].height {
            let target = to.row_mut(index, row);
            let source = &from.row(index, y + row)[x * pixel..];
            target.copy_from_slice(&source[..target.len()]);
        }
    }
}

/// How much of the filtered picture is seen.
#[derive(Clone, Copy)]
pub(super) enum Share<'a> {
    /// All of it.
    Whole,
    /// The matte's weight.
    Matte(&'a Matte),
    /// What the matte leaves.
    Rest(&'a Matte),
}

impl Share<'_> {
    /// Its numerator and denominator for a sample of a plane.
    fn of(&self, x: usize, y: usize, shift: (u8, u8)) -> (u64, u64) {
        match self {
            Share::Whole => (1, 1),
            Share::Matte(matte) => matte.sum(x, y, shift),
            Share::Rest(matte) => {
                let (sum, whole) = matte.sum(x, y, shift);
                (whole - sum, whole)
            }
        }
    }
}

/// Puts samples of `from`, the filtered `window`, into `to`, which holds the original: those that `spans`
/// names for a plane's shift and row.
pub(super) fn paste(
    from: &Frame,
    window: &Area,
    to: &mut Frame,
    share: Share<'_>,
    spans: impl Fn((u8, u8), usize) -> Spans,
) {
    let format = from.format();
    for (index, Grid { pixel, shift }) in grids(from).enumerate() {
        let (x, y) = (window.x >> shift.0, window.y >> shift.1);
        for row in y..y + from.layout().planes()[index].height {
            for span in spans(shift, row) {
                let source = &from.row(index, row - y)[(span.start - x) * pixel..(span.end - x) * pixel];
                let target = &mut to.row_mut(index, row)[span.start * pixel..span.end * pixel];
                if matches!(share, Share::Whole) {
                    target.copy_from_slice(source);
                    continue;
                }
                let pixels = target.chunks_exact_mut(pixel).zip(source.chunks_exact(pixel));
                for ((target, source), column) in pixels.zip(span) {
                    match share.of(column, row, shift) {
                        (0, _) => {}
                        (sum, whole) if sum == whole => target.copy_from_slice(source),
                        weight => mix(target, source, weight, format),
                    }
                }
            }
        }
    }
}

/// Mixes one pixel's samples into the original's.
fn mix(target: &mut [u8], source: &[u8], weight: (u64, u64), format: PixelFormat) {
    let (bytes, bits) = (format.bytes_per_sample(), format.shift());
    let samples = target.chunks_exact_mut(bytes).zip(source.chunks_exact(bytes));
    for (target, source) in samples {
        match (&mut *target, source) {
            ([to], [from]) => *to = mixed(u64::from(*to), u64::from(*from), weight) as u8,
            ([a, b, c, d], &[e, f, g, h]) => {
                let value = mixed_floats(
                    f32::from_le_bytes([*a, *b, *c, *d]),
                    f32::from_le_bytes([e, f, g, h]),
                    weight,
                );
                target.copy_from_slice(&value.to_le_bytes());
            }
            ([a, b], &[c, d]) if format.is_float() => {
                let value = |bytes| f16::from_le_bytes(bytes).to_f32();
                let value = mixed_floats(value([*a, *b]), value([c, d]), weight);
                target.copy_from_slice(&f16::from_f32(value).to_le_bytes());
            }
            (to, from) => {
                let sample = |word: &[u8]| u64::from(u16::from_le_bytes([word[0], word[1]]) >> bits);
                let value = mixed(sample(to), sample(from), weight) as u16;
                to.copy_from_slice(&(value << bits).to_le_bytes());
            }
        }
    }
}

/// `(original (whole - sum) + filtered sum) / whole`, halves rounded up. At most 16 pixels' weights of 16
/// bits and samples of 16 bits: it fits.
fn mixed(original: u64, filtered: u64, (sum, whole): (u64, u64)) -> u64 {
    (2 * (original * (whole - sum) + filtered * sum) + whole) / (2 * whole)
}

/// The same of floating-point samples, worked out in 64 bits and rounded to 32.
fn mixed_floats(original: f32, filtered: f32, (sum, whole): (u64, u64)) -> f32 {
    let (rest, sum, whole) = ((whole - sum) as f64, sum as f64, whole as f64);
    ((f64::from(original) * rest + f64::from(filtered) * sum) / whole) as f32
}
