//! Pictures in borrowed memory, filtered without a copy.

use super::{Colour, FieldOrder, Frame, Layout, LayoutError, PixelFormat};

/// A picture to read, in borrowed memory.
///
/// All planes lie in one block; rows may be padded. A block of `width * height` pixels without padding needs
/// [`Image::new`] only:
///
/// ```
/// use framepipe::{Image, PixelFormat};
///
/// let pixels = vec![0_u8; 640 * 480 * 3];
/// let tight = Image::new(&pixels, PixelFormat::RGB24, 640, 480)?;
///
/// // 600 pixels of each row, the first 60 left out.
/// let part = Image::with_strides(&pixels[60 * 3..], PixelFormat::RGB24, 600 - 60, 480, &[640 * 3])?;
/// # Ok::<(), framepipe::frame::LayoutError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    layout: Layout,
    colour: Colour,
    field_order: FieldOrder,
    bytes: &'a [u8],
}

/// A picture to write, in borrowed memory. Bytes between its rows and planes are left as they are.
#[derive(Debug)]
pub struct ImageMut<'a> {
    layout: Layout,
    bytes: &'a mut [u8],
}

impl<'a> Image<'a> {
    /// Rows without padding, planes one after another.
    pub fn new(
        bytes: &'a [u8],
        format: PixelFormat,
        width: usize,
        height: usize,
    ) -> Result<Image<'a>, LayoutError> {
        Image::with_layout(bytes, Layout::new(format, width, height, 1)?)
    }

    /// Planes one after another. `strides` has a number for each plane: the bytes from one of its rows to the
    /// next. The last row of all may end where its pixels do.
    pub fn with_strides(
        bytes: &'a [u8],
        format: PixelFormat,
        width: usize,
        height: usize,
        strides: &[usize],
    ) -> Result<Image<'a>, LayoutError> {
        let layout = Layout::with_strides(format, width, height, strides, bytes.len())?;
        Image::with_layout(bytes, layout)
    }

    /// Planes at the places of `layout`, counted from the first byte.
    pub fn with_layout(bytes: &'a [u8], layout: Layout) -> Result<Image<'a>, LayoutError> {
        fits(&layout, bytes.len())?;
        Ok(Image {
            layout,
            colour: Colour::default(),
            field_order: FieldOrder::Progressive,
            bytes,
        })
    }

    /// The same with facts about its colours. The range decides which YUV level is black: limited unless
    /// stated, as in FFmpeg.
    pub fn with_colour(self, colour: Colour) -> Image<'a> {
        Image { colour, ..self }
    }

    /// The same as an interlaced picture: rows of chroma belong to one field each.
    pub fn with_field_order(self, field_order: FieldOrder) -> Image<'a> {
        Image { field_order, ..self }
    }

    /// Where the planes lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Facts about its colours.
    pub fn colour(&self) -> Colour {
        self.colour
    }

    /// Which field comes first, if it is interlaced.
    pub fn field_order(&self) -> FieldOrder {
        self.field_order
    }

    /// The block that holds the picture.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Row `y` of plane `index`, without its padding.
    pub fn row(&self, index: usize, y: usize) -> &'a [u8] {
        let plane = self.layout.planes()[index];
        let start = plane.offset + y * plane.stride;
        &self.bytes[start..start + self.layout.row_bytes(index)]
    }
}

impl<'a> From<&'a Frame> for Image<'a> {
    fn from(frame: &'a Frame) -> Image<'a> {
        Image {
            layout: *frame.layout(),
            colour: frame.metadata.colour,
            field_order: frame.metadata.field_order,
            bytes: frame.bytes(),
        }
    }
}

impl<'a> ImageMut<'a> {
    /// Rows without padding, planes one after another.
    pub fn new(
        bytes: &'a mut [u8],
        format: PixelFormat,
        width: usize,
        height: usize,
    ) -> Result<ImageMut<'a>, LayoutError> {
        ImageMut::with_layout(bytes, Layout::new(format, width, height, 1)?)
    }

    /// Planes one after another; see [`Image::with_strides`].
    pub fn with_strides(
        bytes: &'a mut [u8],
        format: PixelFormat,
        width: usize,
        height: usize,
        strides: &[usize],
    ) -> Result<ImageMut<'a>, LayoutError> {
        let layout = Layout::with_strides(format, width, height, strides, bytes.len())?;
        ImageMut::with_layout(bytes, layout)
    }

    /// Planes at the places of `layout`, counted from the first byte. They must follow each other in the
    /// format's order, without overlapping.
    pub fn with_layout(bytes: &'a mut [u8], layout: Layout) -> Result<ImageMut<'a>, LayoutError> {
        fits(&layout, bytes.len())?;
        let mut end = 0;
        for (index, plane) in layout.planes().iter().enumerate() {
            if plane.offset < end {
                return Err(LayoutError::PlanesOverlap { plane: index });
            }
            end = plane.offset + plane.stride * (plane.height - 1) + layout.row_bytes(index);
        }
        Ok(ImageMut { layout, bytes })
    }

    /// Where the planes lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The block that holds the picture.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Row `y` of plane `index`, without its padding, to write into.
    pub fn row_mut(&mut self, index: usize, y: usize) -> &mut [u8] {
        let plane = self.layout.planes()[index];
        let start = plane.offset + y * plane.stride;
        let len = self.layout.row_bytes(index);
        &mut self.bytes[start..start + len]
    }
}

fn fits(layout: &Layout, len: usize) -> Result<(), LayoutError> {
    if layout.size() > len {
        return Err(LayoutError::Short {
            needed: layout.size(),
            len,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_needs_no_padding_and_planes_follow_each_other() {
        let bytes: Vec<u8> = (0..8 * 3 + 5 * 2 + 5 + 3).collect();
        let image = Image::with_strides(&bytes, PixelFormat::YUV420P, 5, 3, &[8, 5, 5]).unwrap();
        assert_eq!(image.row(0, 2), [16, 17, 18, 19, 20]);
        assert_eq!(image.row(1, 0), [24, 25, 26]);
        assert_eq!(image.row(2, 1), [39, 40, 41]);
        let short = Image::with_strides(&bytes[1..], PixelFormat::YUV420P, 5, 3, &[8, 5, 5]);
        assert!(matches!(short, Err(LayoutError::PlaneOutside { plane: 2, .. })));
    }

    #[test]
    fn memory_that_does_not_hold_the_picture_is_refused() {
        let gray = PixelFormat::GRAY;
        let mut bytes = [0; 11];
        let short = Image::new(&bytes, gray, 4, 3);
        assert_eq!(short.unwrap_err(), LayoutError::Short { needed: 12, len: 11 });
        let narrow = ImageMut::with_strides(&mut bytes, gray, 4, 2, &[3]);
        assert!(matches!(narrow, Err(LayoutError::PlaneOutside { .. })));
        let few = Image::with_strides(&bytes, PixelFormat::NV12, 2, 2, &[2]);
        assert!(matches!(
            few,
            Err(LayoutError::Strides {
                expected: 2,
                found: 1,
                ..
            })
        ));
        let huge = Image::with_strides(&bytes, gray, 4, usize::MAX, &[usize::MAX]);
        assert!(huge.is_err());
    }

    #[test]
    fn planes_to_write_do_not_overlap_those_to_read_may() {
        let mut bytes = [0; 64];
        let places = [(0, 4), (8, 2), (9, 2)];
        let layout = Layout::with_places(PixelFormat::YUV422P, 4, 4, &places, 64).unwrap();
        assert!(Image::with_layout(&bytes, layout).is_ok());
        let refused = ImageMut::with_layout(&mut bytes, layout);
        assert_eq!(refused.unwrap_err(), LayoutError::PlanesOverlap { plane: 1 });
    }
}
