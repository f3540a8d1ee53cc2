//! The places of the pictures before and after the filter in the composed picture.
//!
//! Along the axis that is shown from left to right, `u` being a chroma sample's width and `g` a gap:
//!
//! ```text
//!  split   0 ........ cut |line| ........ length        cut and line are multiples of u
//!          [ first part  ]      [ second part   ]       samples under the line are lost
//!
//!  side    0 ........ length  .... start ........       start is length + g, rounded up to u
//!          [ first, whole   ]      [ second, whole ]
//! ```
//!
//! The first part is before, unless the picture is shown from its other end.

use super::paint::{Axis, Tone, copy, fill, repeat};
use crate::engine::EngineError;
use crate::frame::{Buffer, Frame, Layout, PixelFormat, Turn};
use std::ops::Range;

/// Pixels of the line between the halves, if a chroma sample is not wider.
const LINE: usize = 2;

/// How before and after share a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// The left half of the frame before, the right half of the frame after, with a line between them.
    Split,
    /// Both whole frames, side by side.
    Side,
}

/// The places of before and after in the composed frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Composition {
    arrangement: Arrangement,
    axis: Axis,
    /// True if before lies at the far end of the axis.
    is_reversed: bool,
    gap: usize,
}

/// A stretch of a picture along the axis, and its place in the composed picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    from: usize,
    length: usize,
    to: usize,
}

/// The stretches of both pictures, and of the line or gap between them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    first: Part,
    second: Part,
    /// Columns (or rows) that repeat the first part's last one, up to the next chroma sample.
    filled: Range<usize>,
    /// The line, or the gap.
    line: Range<usize>,
    total: usize,
}

impl Composition {
    /// For frames that are shown unturned.
    pub fn new(arrangement: Arrangement) -> Composition {
        Composition {
            arrangement,
            axis: Axis::Across,
            is_reversed: false,
            gap: 0,
        }
    }

    /// The same for frames that are shown with this turn: before is on the left then.
    pub fn turned(self, turn: Turn) -> Composition {
        Composition {
            axis: if turn.swaps_axes() {
                Axis::Down
            } else {
                Axis::Across
            },
            is_reversed: turn.shows_far_end_first(),
            ..self
        }
    }

    /// The same composition with `gap` pixels between pictures side by side.
    pub fn with_gap(self, gap: usize) -> Composition {
        Composition { gap, ..self }
    }

    /// How before and after share the frame.
    pub fn arrangement(&self) -> Arrangement {
        self.arrangement
    }

    /// Width and height in pixels of the composed frame, for frames of this format and size.
    pub fn size(&self, format: PixelFormat, width: usize, height: usize) -> (usize, usize) {
        match self.axis {
            Axis::Across => (self.parts_of(format, width).total, height),
            Axis::Down => (width, self.parts_of(format, height).total),
        }
    }

    /// The composed frame for frames of this layout, without pixels.
    pub fn canvas(
        &self,
        layout: &Layout,
        buffer: Buffer,
        row_alignment: usize,
    ) -> Result<Frame, EngineError> {
        let (width, height) = self.size(layout.format(), layout.width(), layout.height());
        let layout = Layout::new(layout.format(), width, height, row_alignment)?;
        Ok(Frame::new(layout, buffer)?)
    }

    /// Copies the shown part of the frame before into the composed frame.
    pub fn put_before(&self, before: &Frame, both: &mut Frame) {
        self.put(before, both, self.is_reversed);
    }

    /// Copies the shown part of the frame after into the composed frame.
    pub fn put_after(&self, after: &Frame, both: &mut Frame) {
        self.put(after, both, !self.is_reversed);
    }

    fn put(&self, frame: &Frame, both: &mut Frame, is_second: bool) {
        let parts = self.parts_of(frame.format(), self.axis.length(frame.layout()));
        let part = if is_second { parts.second } else { parts.first };
        copy(
            frame,
            part.from..part.from + part.length,
            both,
            part.to,
            self.axis,
        );
        if !is_second {
            repeat(both, parts.filled, self.axis);
        }
    }

    /// Draws the line or gap between the two: half white, half black, so that it is visible in any picture.
    /// The frame's colour facts define white.
    pub fn finish(&self, both: &mut Frame) {
        // The line's place depends on the length of one picture.
        let length = self.length_of_one(both);
        let line = self.parts_of(both.format(), length).line;
        let middle = line.start + line.len() / 2;
        fill(both, line.start..middle, self.axis, Tone::White);
        fill(both, middle..line.end, self.axis, Tone::Black);
    }

    /// Splits a frame that shows both whole into before and after again.
    pub fn parts(&self, both: &Frame) -> Result<(Frame, Frame), EngineError> {
        let length = self.length_of_one(both);
        let parts = self.parts_of(both.format(), length);
        let cut = |part: Part| -> Result<Frame, EngineError> {
            let (width, height) = match self.axis {
                Axis::Across => (part.length, both.layout().height()),
                Axis::Down => (both.layout().width(), part.length),
            };
            let layout = Layout::new(both.format(), width, height, 64)?;
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new())))?;
            copy(both, part.to..part.to + part.length, &mut frame, 0, self.axis);
            frame.sequence = both.sequence;
            frame.born = both.born;
            frame.metadata = both.metadata.clone();
            Ok(frame)
        };
        let (first, second) = (cut(parts.first)?, cut(parts.second)?);
        Ok(if self.is_reversed {
            (second, first)
        } else {
            (first, second)
        })
    }

    /// The length along the axis of the pictures that a composed frame was made of.
    fn length_of_one(&self, both: &Frame) -> usize {
        let total = self.axis.length(both.layout());
        match self.arrangement {
            Arrangement::Split => total,
            Arrangement::Side => {
                // The start of the second is a multiple of the unit, and less than a unit behind the first.
                let unit = self.axis.unit(both.format());
                let most = (total - self.gap) / 2;
                (most.saturating_sub(unit)..=most)
                    .rev()
                    .find(|&length| self.parts_of(both.format(), length).total == total)
                    .unwrap_or(most)
            }
        }
    }

    /// Both stretches for pictures of this length along the axis.
    fn parts_of(&self, format: PixelFormat, length: usize) -> Parts {
        let unit = self.axis.unit(format);
        match self.arrangement {
            Arrangement::Side => {
                let (end, start) = (
                    length.next_multiple_of(unit),
                    (length + self.gap).next_multiple_of(unit),
                );
                Parts {
                    first: Part {
                        from: 0,
                        length,
                        to: 0,
                    },
                    second: Part {
                        from: 0,
                        length,
                        to: start,
                    },
                    filled: length..end,
                    line: end..start,
                    total: start + length,
                }
            }
            Arrangement::Split => {
                let width = LINE.max(unit);
                // In a picture of a few pixels a line would be most of it.
                let width = if length < 4 * width { 0 } else { width };
                let cut = (length - width) / 2 / unit * unit;
                let start = cut + width;
                Parts {
                    first: Part {
                        from: 0,
                        length: cut,
                        to: 0,
                    },
                    second: Part {
                        from: start,
                        length: length - start,
                        to: start,
                    },
                    filled: cut..cut,
                    line: cut..start,
                    total: length,
                }
            }
        }
    }
}
