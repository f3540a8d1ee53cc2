//! A picture of where two frames differ, and how much.
//!
//! Each pixel shows the largest difference among its components, chroma laid over all pixels that it stands
//! for. The scale is logarithmic, so that one level is seen beside hundreds:
//!
//! ```text
//!  black   purple   red   orange   yellow   white
//!  equal   a few levels ................   the whole range
//! ```

use super::{Component, common};
use crate::frame::{AllocationError, FieldOrder};
use crate::frame::{Buffer, Colour, Frame, FramePool, Layout, LayoutError, Metadata, Pageable, PixelFormat};
use crate::source::StreamInfo;
use std::sync::Arc;

/// The colours of equally spaced steps along the scale; between them they are mixed.
const SCALE: [[u8; 3]; 6] = [
    [40, 11, 84],
    [137, 34, 106],
    [212, 72, 66],
    [249, 142, 9],
    [246, 215, 70],
    [255, 255, 255],
];

/// A picture that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeatError {
    /// The picture's geometry is impossible.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// No memory for the picture.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
}

/// Makes pictures of differences, in rgb24.
pub struct Heat {
    pool: FramePool,
    /// The largest difference of each pixel.
    levels: Vec<u16>,
    a: Vec<u16>,
    b: Vec<u16>,
    /// The colour of each level, and the largest level that they were made for.
    colours: Vec<[u8; 3]>,
}

impl Default for Heat {
    fn default() -> Self {
        Heat::new()
    }
}

impl Heat {
    /// Nothing prepared yet.
    pub fn new() -> Heat {
        Heat {
            pool: FramePool::new(4, Arc::new(Pageable)),
            levels: Vec::new(),
            a: Vec::new(),
            b: Vec::new(),
            colours: Vec::new(),
        }
    }

    /// What is known of the pictures before the first: the size and time of A's.
    pub fn info(a: &StreamInfo) -> StreamInfo {
        let mut info = a.clone();
        info.format = PixelFormat::RGB24;
        info.brings_memory = false;
        info.pictures = 0;
        info.colour = Colour::default();
        info.field_order = FieldOrder::Progressive;
        info.side_data = Vec::new();
        #[cfg(feature = "ffmpeg")]
        {
            info.origin = None;
        }
        info.description = "the difference".to_owned();
        info
    }

    /// The picture of a pair, as large as A; white where the two have no samples to compare.
    pub fn picture(&mut self, a: &Frame, b: &Frame) -> Result<Frame, HeatError> {
        let (width, height) = (a.layout().width(), a.layout().height());
        let layout = Layout::new(PixelFormat::RGB24, width, height, 1)?;
        let buffer = self
            .pool
            .try_take()
            .unwrap_or_else(|| Buffer::unpooled(Box::new(Vec::new())));
        let mut picture = Frame::new(layout, buffer)?;
        picture.sequence = a.sequence;
        picture.born = a.born;
        picture.metadata = metadata(a);
        let components = common(a.layout(), b.layout());
        let max = match a.format().is_float() {
            true => 255,
            false => a.format().max_value(),
        };
        self.levels.clear();
        let unknown = if components.is_empty() { max as u16 } else { 0 };
        self.levels.resize(width * height, unknown);
        for component in &components {
            self.lay(component, a, b);
        }
        if self.colours.len() != max as usize + 1 {
            self.colours = (0..=max).map(|level| colour(level, max)).collect();
        }
        for (y, levels) in self.levels.chunks_exact(width).enumerate() {
            let (pixels, _) = picture.row_mut(0, y).as_chunks_mut::<3>();
            for (pixel, &level) in pixels.iter_mut().zip(levels) {
                *pixel = self.colours.get(usize::from(level)).copied().unwrap_or([255; 3]);
            }
        }
        Ok(picture)
    }

    /// Lays a component's differences over the pixels that they belong to.
    fn lay(&mut self, component: &Component, a: &Frame, b: &Frame) {
        let (log2_x, log2_y) = component.subsampling(a.format());
        let width = a.layout().width();
        for y in 0..component.height {
            component.read_a(a, y, &mut self.a);
            component.read_b(b, y, &mut self.b);
            if self.a == self.b {
                continue;
            }
            let rows = self.levels.chunks_exact_mut(width);
            for row in rows.skip(y << log2_y).take(1 << log2_y) {
                let samples = self.a.iter().zip(&self.b);
                for (pixels, (&a, &b)) in row.chunks_mut(1 << log2_x).zip(samples) {
                    for level in pixels {
                        *level = (*level).max(a.abs_diff(b));
                    }
                }
            }
        }
    }
}

/// What of A holds for the picture, too.
fn metadata(a: &Frame) -> Metadata {
    let from = &a.metadata;
    Metadata {
        pts: from.pts,
        duration: from.duration,
        sample_aspect: from.sample_aspect,
        file: from.file.clone(),
        orientation: from.orientation,
        ..Metadata::default()
    }
}

/// The colour of a difference of `level` out of `max`.
fn colour(level: u32, max: u32) -> [u8; 3] {
    if level == 0 {
        return [0; 3];
    }
    // 0 for one level, 1 for all of them.
    let share = f64::from(level).ln() / f64::from(max).ln();
    let place = share * (SCALE.len() - 1) as f64;
    let step = place.floor() as usize;
    let at = |step: usize| SCALE.get(step).copied().unwrap_or([255; 3]);
    let (from, to, part) = (at(step), at(step + 1), place.fract());
    std::array::from_fn(|k| {
        let channel = |colour: [u8; 3]| colour.get(k).copied().map_or(255.0, f64::from);
        (channel(from) + (channel(to) - channel(from)) * part).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::frame;
    use super::*;

    #[test]
    fn chroma_covers_its_pixels_and_equal_ones_are_black() {
        let a = frame(PixelFormat::YUV420P, (5, 3), |_, _, _| 100);
        let b = frame(PixelFormat::YUV420P, (5, 3), |plane, x, y| {
            if (plane, x, y) == (1, 2, 1) { 101 } else { 100 }
        });
        let picture = Heat::new().picture(&a, &b).unwrap();
        for y in 0..3 {
            for x in 0..5 {
                let pixel: Vec<u16> = (0..3).map(|c| picture.sample(0, x, y, c)).collect();
                let expected = if (x, y) == (4, 2) { [40, 11, 84] } else { [0; 3] };
                assert_eq!(pixel, expected, "{x} {y}");
            }
        }
    }

    #[test]
    fn the_scale_gets_brighter_with_every_level_up_to_white() {
        for max in [255, 1023, 65_535] {
            let brightness = |level| colour(level, max).iter().map(|&c| u32::from(c)).sum::<u32>();
            let levels: Vec<u32> = (0..=max).map(brightness).collect();
            // Red, green and blue are rounded each for itself.
            assert!(levels.windows(2).all(|pair| pair[1] + 2 >= pair[0]), "{max}");
            assert!(levels.iter().step_by(levels.len() / 60).is_sorted(), "{max}");
            assert_eq!(colour(0, max), [0; 3]);
            assert_eq!(colour(1, max), SCALE[0]);
            assert_eq!(colour(max, max), [255; 3]);
        }
    }

    #[test]
    fn pictures_of_different_sizes_are_white_all_over() {
        let a = frame(PixelFormat::GRAY, (4, 4), |_, _, _| 0);
        let b = frame(PixelFormat::GRAY, (4, 5), |_, _, _| 0);
        let picture = Heat::new().picture(&a, &b).unwrap();
        assert_eq!((picture.layout().width(), picture.layout().height()), (4, 4));
        assert!((0..4).all(|y| picture.row(0, y).iter().all(|&byte| byte == 255)));
    }
}
