//! How much two streams of frames differ: sample by sample, as PSNR, as SSIM, and as a picture.
//!
//! ```text
//!  frame of A ─┐                                      ┌─ Difference   how many, how much, where first
//!              ├─ rows of one component, as 16 bits ──┼─ Ssim         windows of 8x8 at steps of 4
//!  frame of B ─┘                                      └─ Heat         a picture, brighter where it is more
//! ```
//!
//! A component is compared where both frames have it in the same size and depth, whatever else lies beside
//! it in memory: red of rgb24 with red of gbrp, luma of yuv420p with luma of yuv444p. PSNR and SSIM are
//! those of FFmpeg's filters of these names, SSIM by its C code. docs/schemas.md states every field of the
//! JSON.

mod component;
mod difference;
mod heat;
mod psnr;
mod ssim;
mod summary;
mod text;
mod total;

pub use component::{Component, common};
pub use difference::{Difference, Place};
pub use heat::Heat;
pub use psnr::psnr;
pub use ssim::Ssim;
pub use summary::{
    ComponentSummary, DIFF_SCHEMA, DIFF_VERSION, Figures, FirstDifference, InputSummary, Summary, WorstFrame,
};
pub use total::{Lengths, Total};

use crate::frame::Frame;

/// What one component of one pair of frames shows.
#[derive(Debug, Clone)]
pub struct ComponentFigures {
    /// Which component.
    pub component: Component,
    /// Counts and sums of its differences.
    pub difference: Difference,
    /// Its mean SSIM, at most 1 and that only where the two are equal as windows see them.
    pub ssim: f64,
}

/// Compares a pair of frames, component by component. The list is empty where no component can be compared.
pub fn compare(a: &Frame, b: &Frame) -> Vec<ComponentFigures> {
    let mut rows = Rows::default();
    common(a.layout(), b.layout())
        .into_iter()
        .map(|component| rows.figures(component, a, b))
        .collect()
}

/// A row of either frame, kept from one row to the next for its memory.
#[derive(Default)]
struct Rows {
    a: Vec<u16>,
    b: Vec<u16>,
}

impl Rows {
    fn figures(&mut self, component: Component, a: &Frame, b: &Frame) -> ComponentFigures {
        let samples = component.width as u64 * component.height as u64;
        if component.is_stored_equally(a, b) {
            return ComponentFigures {
                component,
                difference: Difference::none(samples),
                ssim: 1.0,
            };
        }
        let mut difference = Difference::default();
        let mut ssim = Ssim::new(component.width, component.height, component.max);
        for y in 0..component.height {
            component.read_a(a, y, &mut self.a);
            component.read_b(b, y, &mut self.b);
            difference.add_row(y, &self.a, &self.b);
            ssim.add_row(&self.a, &self.b);
        }
        ComponentFigures {
            component,
            difference,
            ssim: ssim.mean(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::frame::{Buffer, Layout, PixelFormat};

    /// A frame whose stored samples are `value(plane, x, y)`, `x` counting interleaved samples.
    pub(crate) fn frame(
        format: PixelFormat,
        (width, height): (usize, usize),
        value: impl Fn(usize, usize, usize) -> u16,
    ) -> Frame {
        let layout = Layout::new(format, width, height, 64).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
        let bytes = format.bytes_per_sample();
        for (index, plane) in layout.planes().iter().enumerate() {
            for y in 0..plane.height {
                for (x, sample) in frame.row_mut(index, y).chunks_exact_mut(bytes).enumerate() {
                    let word = value(index, x, y) << format.shift();
                    sample.copy_from_slice(&word.to_le_bytes()[..bytes]);
                }
            }
        }
        frame
    }

    #[test]
    fn one_sample_is_found_in_each_arrangement_of_red_green_and_blue() {
        // Green at (5, 3), interleaved and planar.
        let flat = |_: usize, _: usize, _: usize| 100;
        let packed = |value| {
            frame(PixelFormat::RGB24, (9, 10), move |_, x, y| {
                if (x, y) == (16, 3) { value } else { 100 }
            })
        };
        let planar = frame(PixelFormat::GBRP, (9, 10), flat);
        for (a, b) in [(&packed(100), &packed(103)), (&planar, &packed(103))] {
            let figures = compare(a, b);
            let names: Vec<&str> = figures.iter().map(|f| f.component.name()).collect();
            assert_eq!(names, ["r", "g", "b"]);
            let differing: Vec<u64> = figures.iter().map(|f| f.difference.differing).collect();
            assert_eq!(differing, [0, 1, 0]);
            let green = figures[1].difference;
            assert_eq!((green.largest, green.sum, green.squares), (3, 3, 9));
            let place = green.first.unwrap();
            assert_eq!((place.x, place.y, place.a, place.b), (5, 3, 100, 103));
            assert!(figures[1].ssim < 1.0 && figures[0].ssim == 1.0);
        }
    }

    #[test]
    fn deep_samples_are_compared_without_their_padding() {
        let a = frame(PixelFormat::P010, (6, 4), |_, x, y| (x * 100 + y) as u16);
        let b = frame(PixelFormat::YUV420P10, (6, 4), |plane, x, y| match plane {
            0 => (x * 100 + y) as u16,
            plane => ((2 * x + plane - 1) * 100 + y) as u16,
        });
        let figures = compare(&a, &b);
        assert_eq!(figures.len(), 3);
        assert!(
            figures
                .iter()
                .all(|f| f.difference.differing == 0 && f.ssim == 1.0)
        );
    }
}
