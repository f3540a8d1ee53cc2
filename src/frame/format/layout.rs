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
    /// Samples that one pixel interleaves: 1 to 4, up to [`MAX_CHANNELS`](super::MAX_CHANNELS) in formats of
    /// [`PixelFormat::float_channels`].
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
    /// The frame or its memory has more bytes than an address space.
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
    /// Rows were to be aligned to 0 bytes.
    #[error("rows cannot be aligned to 0 bytes; 1 is for rows without padding")]
    ZeroAlignment,
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
    /// There is not one place for each plane.
    #[error("{format} has {expected} planes, so that it needs as many places, and not {found}")]
    Places {
        /// Pixel format.
        format: PixelFormat,
        /// Its planes.
        expected: usize,
        /// Places that were given.
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
    ///
    /// # Errors
    /// [`LayoutError::Empty`] if a side is 0, [`LayoutError::ZeroAlignment`], and [`LayoutError::TooLarge`]
    /// beyond `isize::MAX` bytes.
    pub fn new(
        format: PixelFormat,
        width: usize,
        height: usize,
        alignment: usize,
    ) -> Result<Layout, LayoutError> {
        if width == 0 || height == 0 {
            return Err(LayoutError::Empty { width, height });
        }
        if alignment == 0 {
            return Err(LayoutError::ZeroAlignment);
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
    ///
    /// # Errors
    /// [`LayoutError::Strides`] unless there is one stride for each plane, and those of
    /// [`Layout::with_places`].
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

    /// A layout whose planes lie where another library put them: `places` are (offset, stride) in bytes of
    /// each plane in a block of `size` bytes. Planes to read may overlap, which
    /// [`ImageMut`](crate::frame::ImageMut) refuses. The last row of a plane may end where its pixels do. A
    /// plane of one row may have any stride that is no shorter than the row; the layout has at most `size`.
    ///
    /// # Errors
    /// [`LayoutError::Places`] unless there is one place for each plane; [`LayoutError::PlaneOutside`] if a
    /// stride is shorter than a row or a plane leaves the block; [`LayoutError::Empty`] if a side is 0;
    /// [`LayoutError::TooLarge`] if the picture or the block has more than `isize::MAX` bytes.
    pub fn with_places(
        format: PixelFormat,
        width: usize,
        height: usize,
        places: &[(usize, usize)],
        size: usize,
    ) -> Result<Layout, LayoutError> {
        let mut layout = Layout::new(format, width, height, 1)?;
        if places.len() != format.planes().len() {
            return Err(LayoutError::Places {
                format,
                expected: format.planes().len(),
                found: places.len(),
            });
        }
        if size > isize::MAX as usize {
            return Err(LayoutError::TooLarge {
                width,
                height,
                format,
            });
        }
        for (index, &(offset, stride)) in places.iter().enumerate() {
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
            // Beyond the block only if there is no second row.
            plane.stride = stride.min(size);
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
    use crate::frame::Image;

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

    #[test]
    fn rows_are_aligned_to_a_byte_at_least() {
        let refused = Layout::new(PixelFormat::GRAY, 4, 2, 0).unwrap_err();
        assert_eq!(refused, LayoutError::ZeroAlignment);
        // The size is named first: without it there is nothing to align.
        let empty = Layout::new(PixelFormat::GRAY, 0, 2, 0);
        assert!(matches!(empty, Err(LayoutError::Empty { .. })));
    }

    #[test]
    fn each_plane_has_a_place() {
        let format = PixelFormat::YUV420P;
        for places in [&[][..], &[(0, 4)], &[(0, 4); 2], &[(0, 4); 4]] {
            let refused = Layout::with_places(format, 4, 2, places, 64).unwrap_err();
            let found = places.len();
            assert_eq!(
                refused,
                LayoutError::Places {
                    format,
                    expected: 3,
                    found
                }
            );
        }
        assert!(Layout::with_places(format, 4, 2, &[(0, 4); 3], 8).is_ok());
    }

    #[test]
    fn places_that_cannot_be_counted_are_refused() {
        let place =
            |offset, stride, size| Layout::with_places(PixelFormat::GRAY, 4, 3, &[(offset, stride)], size);
        let most = isize::MAX as usize;
        for (offset, stride) in [
            (0, usize::MAX),
            (0, usize::MAX / 2 + 1),
            (usize::MAX, 4),
            (usize::MAX - 11, 4),
            (usize::MAX - 3, usize::MAX),
            (most, 4),
        ] {
            let refused = place(offset, stride, most);
            assert!(
                matches!(refused, Err(LayoutError::PlaneOutside { plane: 0, .. })),
                "{offset} {stride}"
            );
        }
        assert!(place(most - 12, 4, most).is_ok());
        let beyond = place(0, 4, most + 1);
        assert!(matches!(beyond, Err(LayoutError::TooLarge { .. })));
    }

    #[test]
    fn the_stride_of_one_row_does_not_matter() {
        let layout = Layout::with_places(PixelFormat::GRAY, 4, 1, &[(1, usize::MAX)], 5).unwrap();
        assert_eq!(layout.planes()[0].stride, 5);
        let narrow = Layout::with_places(PixelFormat::GRAY, 4, 1, &[(1, 3)], 5);
        assert!(matches!(narrow, Err(LayoutError::PlaneOutside { .. })));
    }

    /// Numbers that follow from `seed`, up to `most`.
    fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
        move |most| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % (most + 1)
        }
    }

    #[test]
    fn a_layout_is_made_exactly_if_its_rows_lie_in_the_block_and_apart() {
        let mut number = numbers(1);
        let (mut made, mut refused) = (0, 0);
        for format in PixelFormat::all().chain(PixelFormat::float_channels(16, 7)) {
            for _ in 0..400 {
                let (width, height) = (1 + number(8), 1 + number(5));
                let tight = Layout::new(format, width, height, 1).unwrap();
                let size = tight.size() + number(2 * tight.size());
                let places: Vec<(usize, usize)> = (0..tight.planes().len())
                    .map(|index| {
                        let plane = tight.planes()[index];
                        let longer = number(plane.stride / 2 + 2);
                        (
                            (plane.offset + number(size / 2)).saturating_sub(size / 4),
                            (plane.stride + longer).saturating_sub(1),
                        )
                    })
                    .collect();
                // The same by numbers that cannot overflow, row by row.
                let holds = places.iter().enumerate().all(|(index, &(offset, stride))| {
                    let row = tight.row_bytes(index) as u128;
                    let start = |y: usize| offset as u128 + y as u128 * stride as u128;
                    let is_inside = |y| start(y) + row <= size as u128;
                    stride as u128 >= row && (0..tight.planes()[index].height).all(is_inside)
                });
                let layout = Layout::with_places(format, width, height, &places, size);
                assert_eq!(
                    layout.is_ok(),
                    holds,
                    "{format} {width}x{height} {places:?} {size}"
                );
                let Ok(layout) = layout else {
                    refused += 1;
                    continue;
                };
                made += 1;
                assert_eq!((layout.size(), layout.planes().len()), (size, places.len()));
                let bytes = vec![0; size];
                let image = Image::with_layout(&bytes, layout).unwrap();
                for (index, plane) in layout.planes().iter().enumerate() {
                    let last = image.row(index, plane.height - 1);
                    assert_eq!(last.len(), layout.row_bytes(index));
                    assert!(plane.height == 1 || plane.stride == places[index].1);
                }
            }
        }
        assert!(made > 1000 && refused > 1000, "{made} made, {refused} refused");
    }
}
