//! Turns by right angles and mirrorings, as display matrices and Exif state them, and carried out on pixels.

use super::fact::Fact;
use crate::frame::{AllocationError, Buffer, Frame, Layout, LayoutError, Metadata, PixelFormat, SideData};

/// A turn by a multiple of 90 degrees, perhaps mirrored: a pixel at (x, y) is shown at (a x + c y, b x + d
/// y), y pointing down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    a: i8,
    b: i8,
    c: i8,
    d: i8,
}

/// Exif's eight orientations, from 1 on.
const EXIF: [(Turn, &str); 8] = [
    (turn(1, 0, 0, 1), "upright"),
    (turn(-1, 0, 0, 1), "mirrored left to right"),
    (turn(-1, 0, 0, -1), "180 degrees"),
    (turn(1, 0, 0, -1), "mirrored top to bottom"),
    (
        turn(0, 1, 1, 0),
        "90 degrees clockwise and mirrored left to right",
    ),
    (turn(0, 1, -1, 0), "90 degrees clockwise"),
    (
        turn(0, -1, -1, 0),
        "90 degrees clockwise and mirrored top to bottom",
    ),
    (turn(0, -1, 1, 0), "90 degrees counterclockwise"),
];

const fn turn(a: i8, b: i8, c: i8, d: i8) -> Turn {
    Turn { a, b, c, d }
}

/// Why a picture was not turned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The size is impossible.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// No memory for a frame.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
}

impl Turn {
    /// Reads FFmpeg's display matrix: nine 32-bit numbers, of which the corners of the upper left square are
    /// scaled by 65536. `None` if it does more than turn by right angles and mirror.
    pub fn from_matrix(block: &[u8]) -> Option<Turn> {
        let number = |index: usize| -> Option<i64> {
            let bytes = block.get(4 * index..4 * index + 4)?;
            Some(i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)))
        };
        let (a, b, c, d) = (number(0)?, number(1)?, number(3)?, number(4)?);
        let scale = a.abs().max(b.abs());
        // A cosine that was rounded in 16 bits is not quite zero.
        let part = |v: i64| match v.abs() {
            small if small * 1000 <= scale => Some(0),
            large if (large - scale).abs() * 1000 <= scale => Some(v.signum() as i8),
            _ => None,
        };
        let found = turn(part(a)?, part(b)?, part(c)?, part(d)?);
        EXIF.iter().any(|(known, _)| *known == found).then_some(found)
    }

    /// The turn of an Exif orientation, 1 to 8.
    pub fn from_exif(orientation: u8) -> Option<Turn> {
        let index = usize::from(orientation).checked_sub(1)?;
        EXIF.get(index).map(|(turn, _)| *turn)
    }

    /// The turn that a stream's or a frame's blocks state.
    pub fn of_blocks(blocks: &[SideData]) -> Option<Turn> {
        let block = blocks.iter().find(|block| block.fact == Fact::Rotation)?;
        Turn::from_matrix(&block.data)
    }

    /// The turn that a frame states, in its blocks or by its Exif orientation. The stream's own turn comes
    /// first.
    pub fn of_frame(metadata: &Metadata) -> Option<Turn> {
        Turn::of_blocks(&metadata.side_data).or_else(|| Turn::from_exif(metadata.orientation?))
    }

    /// The turn as FFmpeg's display matrix: nine integers of 32 bits in this machine's order of bytes.
    pub fn to_matrix(self) -> Vec<u8> {
        let scaled = |v: i8| i32::from(v) << 16;
        let (a, b, c, d) = (scaled(self.a), scaled(self.b), scaled(self.c), scaled(self.d));
        [a, b, 0, c, d, 0, 0, 0, 1 << 30]
            .iter()
            .flat_map(|v| v.to_ne_bytes())
            .collect()
    }

    /// The turn that shows a picture as it is stored.
    pub const UPRIGHT: Turn = EXIF[0].0;

    /// The turn back.
    pub fn inverse(self) -> Turn {
        turn(self.a, self.c, self.b, self.d)
    }

    /// Where a pixel that is stored `(across, down)` from another one is shown from that.
    pub fn shown_offset(self, (across, down): (isize, isize)) -> (isize, isize) {
        let (a, b, c, d) = (self.a.into(), self.b.into(), self.c.into(), self.d.into());
        let sum = |p: isize, q: isize| p * across + q * down;
        (sum(a, c), sum(b, d))
    }

    /// Width and height of what is shown of a picture of `size`.
    pub fn shown_size(self, (width, height): (usize, usize)) -> (usize, usize) {
        if self.swaps_axes() {
            (height, width)
        } else {
            (width, height)
        }
    }

    /// True if nothing is turned.
    pub fn is_upright(self) -> bool {
        self == Turn::UPRIGHT
    }

    /// True if width and height change places.
    pub fn swaps_axes(self) -> bool {
        self.a == 0
    }

    /// Where a rectangle of the shown picture lies in the stored one, which has `size` (columns, rows).
    /// `across` is its first column and how many, `down` its first row and how many; so are the two results.
    /// It may reach beyond the picture.
    ///
    /// ```
    /// use framepipe::frame::Turn;
    ///
    /// // Three by two pixels, shown turned clockwise: the stored upper left is on the right.
    /// let clockwise = Turn::from_exif(6).unwrap();
    /// assert_eq!(clockwise.stored((1, 1), (0, 2), (3, 2)), ((0, 2), (0, 1)));
    /// ```
    pub fn stored(self, across: (i64, i64), down: (i64, i64), size: (i64, i64)) -> ((i64, i64), (i64, i64)) {
        // The turn is orthogonal, so that x = a X + b Y and y = c X + d Y for the shown place (X, Y).
        let along = |part_across: i8, part_down: i8, length: i64| {
            let (first, count) = if part_across == 0 { down } else { across };
            match part_across + part_down {
                1 => (first, count),
                _ => (length - first - count, count),
            }
        };
        (along(self.a, self.b, size.0), along(self.c, self.d, size.1))
    }

    /// True if the left edge of the shown picture is the far end of the rows, or of the columns if axes are
    /// swapped.
    pub fn shows_far_end_first(self) -> bool {
        self.a + self.c < 0
    }

    /// The turn in words.
    pub fn word(self) -> &'static str {
        EXIF.iter()
            .find(|(known, _)| *known == self)
            .map_or("turned", |(_, word)| word)
    }

    /// True if pictures of `format` can be turned sample by sample.
    pub fn fits(self, format: PixelFormat) -> bool {
        !self.swaps_axes() || format.planes().iter().all(|p| p.log2_x == p.log2_y)
    }

    /// Where chroma lies after the turn, by FFmpeg's numbers; 0 if there is no number for it.
    pub fn chroma_location(self, location: u8) -> u8 {
        // Offsets from the centre of the four luma samples, in halves of a sample.
        let (x, y): (i8, i8) = match location {
            1 => (-1, 0),
            2 => (0, 0),
            3 => (-1, -1),
            4 => (0, -1),
            5 => (-1, 1),
            6 => (0, 1),
            _ => return 0,
        };
        match (self.a * x + self.c * y, self.b * x + self.d * y) {
            (-1, 0) => 1,
            (0, 0) => 2,
            (-1, -1) => 3,
            (0, -1) => 4,
            (-1, 1) => 5,
            (0, 1) => 6,
            _ => 0,
        }
    }

    /// `frame` turned, in memory of its own; pixel aspect and chroma location are turned with it. The format
    /// must be one that fits.
    pub fn apply(self, frame: &Frame) -> Result<Frame, TurnError> {
        let from = frame.layout();
        let (width, height) = self.shown_size((from.width(), from.height()));
        let layout = Layout::new(from.format(), width, height, 64)?;
        let mut turned = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new())))?;
        for (index, plane) in from
            .planes()
            .iter()
            .enumerate()
            .take(from.format().planes().len())
        {
            let pixel = plane.channels * from.format().bytes_per_sample();
            // The source of the target's first pixel, and the steps in the source to the target's next pixel
            // and next row.
            let last = |step: i8, len: usize| if step < 0 { len as isize - 1 } else { 0 };
            let (start_x, start_y) = (
                last(self.a + self.b, plane.width),
                last(self.c + self.d, plane.height),
            );
            for y in 0..layout.planes()[index].height {
                let row = turned.row_mut(index, y);
                for (x, target) in row.chunks_exact_mut(pixel).enumerate() {
                    let (x, y) = (x as isize, y as isize);
                    let (a, b) = (isize::from(self.a), isize::from(self.b));
                    let (c, d) = (isize::from(self.c), isize::from(self.d));
                    let from_x = (start_x + a * x + b * y) as usize;
                    let from_y = (start_y + c * x + d * y) as usize;
                    let at = from_x * pixel;
                    target.copy_from_slice(&frame.row(index, from_y)[at..at + pixel]);
                }
            }
        }
        turned.sequence = frame.sequence;
        turned.born = frame.born;
        turned.metadata = frame.metadata.clone();
        let colour = &mut turned.metadata.colour;
        colour.chroma_location = self.chroma_location(colour.chroma_location);
        if self.swaps_axes() && turned.metadata.sample_aspect.0 > 0 {
            let (num, den) = turned.metadata.sample_aspect;
            turned.metadata.sample_aspect = (den, num);
        }
        Ok(turned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three by two pixels, turned, row by row.
    fn turned(orientation: u8) -> (usize, Vec<u8>) {
        let layout = Layout::new(PixelFormat::from_name("gray").unwrap(), 3, 2, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
        frame.bytes_mut().copy_from_slice(b"abcdef");
        let turned = Turn::from_exif(orientation).unwrap().apply(&frame).unwrap();
        let rows = (0..turned.layout().height()).flat_map(|y| turned.row(0, y).to_vec());
        (turned.layout().width(), rows.collect())
    }

    #[test]
    fn pixels_go_where_exif_shows_them() {
        for (orientation, width, pixels) in [
            (1, 3, b"abcdef"),
            (2, 3, b"cbafed"),
            (3, 3, b"fedcba"),
            (4, 3, b"defabc"),
            (5, 2, b"adbecf"),
            (6, 2, b"daebfc"),
            (7, 2, b"fcebda"),
            (8, 2, b"cfbead"),
        ] {
            assert_eq!(turned(orientation), (width, pixels.to_vec()), "{orientation}");
        }
    }

    #[test]
    fn shown_pixels_are_found_where_they_are_stored() {
        for orientation in 1..=8 {
            let (width, shown) = turned(orientation);
            let turn = Turn::from_exif(orientation).unwrap();
            for (at, pixel) in shown.iter().enumerate() {
                let (x, y) = ((at % width) as i64, (at / width) as i64);
                let ((x, columns), (y, rows)) = turn.stored((x, 1), (y, 1), (3, 2));
                assert_eq!((columns, rows), (1, 1));
                assert_eq!(b"abcdef"[(3 * y + x) as usize], *pixel, "{orientation}");
            }
        }
    }

    #[test]
    fn matrices_are_read_and_written() {
        for orientation in 1..=8 {
            let turn = Turn::from_exif(orientation).unwrap();
            assert_eq!(Turn::from_matrix(&turn.to_matrix()), Some(turn));
        }
        let tilted: Vec<u8> = [46341, 46341, 0, -46341, 46341, 0, 0, 0, 1 << 30]
            .iter()
            .flat_map(|v: &i32| v.to_ne_bytes())
            .collect();
        assert_eq!(Turn::from_matrix(&tilted), None);
        assert_eq!(Turn::from_matrix(&[0; 8]), None);
    }

    #[test]
    fn chroma_turns_with_the_picture() {
        let clockwise = Turn::from_exif(6).unwrap();
        assert_eq!(clockwise.chroma_location(1), 4);
        assert_eq!(clockwise.chroma_location(2), 2);
        assert_eq!(Turn::from_exif(8).unwrap().chroma_location(1), 6);
        assert_eq!(Turn::from_exif(3).unwrap().chroma_location(1), 0);
    }
}
