//! Where each plane's rows lie in a frame's one block of memory.

use super::PixelFormat;

/// The most planes that a format has.
pub const MAX_PLANES: usize = 4;

/// One plane's place and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Plane {
    /// Bytes from the start of the frame's memory to the plane's first sample.
    pub offset: usize,
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Pixels in a row (each of `channels` samples).
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples that one pixel interleaves, 1 to 4.
    pub channels: usize,
}

/// The geometry of a frame in memory: format, size, and a place for each plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    format: PixelFormat,
    width: usize,
    height: usize,
    planes: [Plane; MAX_PLANES],
    size: usize,
}

/// A frame's size or a plane's place that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Width or height is zero.
    #[error("a frame of {width}x{height} pixels is empty")]
    Empty {
        /// Pixels across.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// The bytes of the frame cannot be counted in a machine word.
    #[error("a frame of {width}x{height} pixels in {format} is too large for this machine")]
    TooLarge {
        /// Pixels across.
        width: usize,
        /// Rows.
        height: usize,
        /// Pixel format.
        format: PixelFormat,
    },
    /// A plane's rows overlap or leave the memory.
    #[error("plane {plane} with a stride of {stride} bytes does not fit in {size} bytes")]
    PlaneOutside {
        /// Index of the plane.
        plane: usize,
        /// Its stride in bytes.
        stride: usize,
        /// Bytes of the frame's memory.
        size: usize,
    },
    /// Memory that should hold a picture is too small.
    #[error("{len} bytes cannot hold a picture of {needed} bytes")]
    Short {
        /// Bytes that the picture needs.
        needed: usize,
        /// Bytes of the memory.
        len: usize,
    },
    /// There is not one stride for each plane.
    #[error("{format} has {expected} planes, so that it needs as many strides, and not {found}")]
    Strides {
        /// Pixel format.
        format: PixelFormat,
        /// Its planes.
        expected: usize,
        /// Strides that were given.
        found: usize,
    },
    /// A plane to write begins before the one before it ends.
    #[error("plane {plane} begins before the one before it ends; planes to write lie one after another")]
    PlanesOverlap {
        /// Index of the plane.
        plane: usize,
    },
}

impl Layout {
    /// Planes one after another, each stride rounded up to `alignment` bytes (1 packs the rows tightly, as
    /// raw files and pipes have them), each plane starting on a multiple of `alignment`.
    pub fn new(
        format: PixelFormat,
        width: usize,
        height: usize,
        alignment: usize,
    ) -> Result<Layout, LayoutError> {
        if width == 0 || height == 0 {
            return Err(LayoutError::Empty { width, height });
        }
        let too_large = || LayoutError::TooLarge {
            width,
            height,
            format,
        };
        let mut planes = [Plane::default(); MAX_PLANES];
        let mut size = 0_usize;
        for (plane, pf) in planes.iter_mut().zip(format.planes()) {
            let w = width.div_ceil(1 << pf.log2_x);
            let h = height.div_ceil(1 << pf.log2_y);
            let row = w
                .checked_mul(pf.channels.len() * format.bytes_per_sample())
                .and_then(|r| r.checked_next_multiple_of(alignment))
                .ok_or_else(too_large)?;
            let bytes = row.checked_mul(h).ok_or_else(too_large)?;
            *plane = Plane {
                offset: size,
                stride: row,
                width: w,
                height: h,
                channels: pf.channels.len(),
            };
            size = size
                .checked_add(bytes)
                .filter(|&s| s <= isize::MAX as usize)
                .ok_or_else(too_large)?;
        }
        Ok(Layout {
            format,
            width,
            height,
            planes,
            size,
        })
    }

    /// Planes one after another in a block of `size` bytes; `strides` has the bytes from row to row for each
    /// of them.
    pub fn with_strides(
        format: PixelFormat,
        width: usize,
        height: usize,
        strides: &[usize],
        size: usize,
    ) -> Result<Layout, LayoutError> {
        let tight = Layout::new(format, width, height, 1)?;
        if strides.len() != tight.planes().len() {
            return Err(LayoutError::Strides {
                format,
                expected: tight.planes().len(),
                found: strides.len(),
            });
        }
        let mut offset = 0_usize;
        let places = tight.planes().iter().zip(strides).map(|(plane, &stride)| {
            let place = (offset, stride);
            // A saturated value is refused as a place outside of the memory.
            offset = offset.saturating_add(stride.saturating_mul(plane.height));
            place
        });
        let places: Vec<(usize, usize)> = places.collect();
        Layout::with_places(format, width, height, &places, size)
    }

    /// A layout whose planes lie where another library put them: `places` are (offset, stride) of each plane
    /// in a block of `size` bytes.
    pub fn with_places(
        format: PixelFormat,
        width: usize,
        height: usize,
        places: &[(usize, usize)],
        size: usize,
    ) -> Result<Layout, LayoutError> {
        let mut layout = Layout::new(format, width, height, 1)?;
        for (index, &(offset, stride)) in places.iter().enumerate().take(format.planes().len()) {
            let row = layout.row_bytes(index);
            let plane = &mut layout.planes[index];
            let end = stride
                .checked_mul(plane.height - 1)
                .and_then(|b| b.checked_add(offset))
                .and_then(|b| b.checked_add(row));
            if stride < row || end.is_none_or(|end| end > size) {
                return Err(LayoutError::PlaneOutside {
                    plane: index,
                    stride,
                    size,
                });
            }
            plane.offset = offset;
            plane.stride = stride;
        }
        layout.size = size;
        Ok(layout)
    }

    /// The pixel format.
    pub fn format(&self) -> PixelFormat {
        self.format
    }

    /// Pixels across the frame.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows of the frame.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The planes, as many as the format has.
    pub fn planes(&self) -> &[Plane] {
        &self.planes[..self.format.planes().len()]
    }

    /// Bytes of memory that the frame needs, padding included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes of picture in one row of plane `index`, padding excluded.
    pub fn row_bytes(&self, index: usize) -> usize {
        let plane = &self.planes[index];
        plane.width * plane.channels * self.format.bytes_per_sample()
    }

    /// Bytes of picture, padding excluded: the size of a tightly packed raw frame.
    pub fn picture_bytes(&self) -> usize {
        (0..self.planes().len())
            .map(|i| self.row_bytes(i) * self.planes[i].height)
            .sum()
    }

    /// True if the rows and planes follow each other without padding, as in a raw file.
    pub fn is_tight(&self) -> bool {
        self.size == self.picture_bytes()
            && Layout::new(self.format, self.width, self.height, 1)
                .is_ok_and(|tight| tight.planes == self.planes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_sizes_round_chroma_up() {
        let format = PixelFormat::from_name("yuv420p").unwrap();
        let layout = Layout::new(format, 5, 3, 1).unwrap();
        assert_eq!(layout.planes()[1].width, 3);
        assert_eq!(layout.planes()[1].height, 2);
        assert_eq!(layout.size(), 15 + 6 + 6);
        assert!(layout.is_tight());
        let aligned = Layout::new(format, 5, 3, 64).unwrap();
        assert_eq!(aligned.planes()[2].offset, 64 * 3 + 64 * 2);
        assert!(!aligned.is_tight());
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let format = PixelFormat::from_name("rgba64le").unwrap();
        assert!(matches!(
            Layout::new(format, 0, 3, 1),
            Err(LayoutError::Empty { .. })
        ));
        assert!(matches!(
            Layout::new(format, usize::MAX / 2, 3, 1),
            Err(LayoutError::TooLarge { .. })
        ));
        assert!(matches!(
            Layout::with_places(format, 4, 2, &[(0, 31)], 64),
            Err(LayoutError::PlaneOutside { .. })
        ));
    }
}
