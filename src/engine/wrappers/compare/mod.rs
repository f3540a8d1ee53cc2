//! Shows before and after in every frame: an engine around another one.
//!
//! ```text
//!  frame --+--------------------------------> before --+
//!          |                                           +--> one frame of both
//!          +--another engine--> filtered ---> after ---+
//!
//!      split  [before|after ]        side  [ before ][ after  ]
//! ```
//!
//! Samples are copied, never changed: before are the samples of the input, after are the samples that the
//! other engine returns. [`Composition`] says where each of them goes.

mod composition;
mod label;
mod paint;

pub use composition::{Arrangement, Composition};
pub use label::label;

use crate::engine::{Engine, EngineError};
use crate::frame::fact::{self, Fact};
use crate::frame::{
    Allocator, Buffer, Frame, FramePool, Layout, Pageable, PixelFormat, Remarks, SideData, Turn,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Facts about where things are in a picture, of which there are two beside each other.
const OF_ONE_PICTURE: [Fact; 4] = [Fact::Stereo, Fact::Spherical, Fact::ActiveFormat, Fact::PanScan];

/// How a player shows the result. Before is on the left of what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Unturned: the output cannot store a turn.
    AsStored,
    /// Turned as the stream says, or, if it says nothing, as each frame says.
    Turned(Option<Turn>),
}

impl Shown {
    /// Turned as these blocks of the stream's side data say, or, if they say nothing, as each frame says.
    pub fn turned(stream: &[SideData]) -> Shown {
        Shown::Turned(Turn::of_blocks(stream))
    }
}

/// An engine that composes the results of another one with the frames before it.
pub struct Compare {
    inner: Box<dyn Engine>,
    composition: Composition,
    shown: Shown,
    /// Results that hold before and wait for after; the oldest first.
    waiting: VecDeque<(Frame, Composition)>,
    /// Memory of the inner engine's results.
    after: FramePool,
    /// Facts that were left out.
    unfitting: BTreeSet<Fact>,
}

impl Compare {
    /// Shows the effect of `inner`, arranged for a player that shows results as `shown` says.
    pub fn new(inner: Box<dyn Engine>, arrangement: Arrangement, shown: Shown) -> Compare {
        let depth = inner.depth().max(1) + 1;
        Compare {
            composition: Composition::new(arrangement),
            shown,
            waiting: VecDeque::new(),
            after: FramePool::new(depth, inner.output_allocator()),
            unfitting: BTreeSet::new(),
            inner,
        }
    }

    /// Leaves out of `blocks` what does not hold for a frame of both, of which there will be a note.
    pub fn leave_out_unfitting(&mut self, blocks: &mut Vec<SideData>) {
        if self.composition.arrangement() == Arrangement::Split {
            return;
        }
        blocks.retain(|block| {
            let fits = !OF_ONE_PICTURE.contains(&block.fact);
            if !fits && fact::block_value(block).is_some() {
                self.unfitting.insert(block.fact);
            }
            fits
        });
    }

    /// The composition for `frame`; for `None` the one of frames without a turn of their own.
    fn composition(&self, frame: Option<&Frame>) -> Composition {
        let turn = match self.shown {
            Shown::AsStored => None,
            Shown::Turned(turn) => turn.or_else(|| frame.and_then(|frame| Turn::of_frame(&frame.metadata))),
        };
        match turn {
            Some(turn) => self.composition.turned(turn),
            None => self.composition,
        }
    }
}

impl Engine for Compare {
    fn inner(&self) -> Option<&dyn Engine> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Engine> {
        Some(&mut *self.inner)
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn description(&self) -> String {
        let how = match self.composition.arrangement() {
            Arrangement::Split => "half of each frame before, half after",
            Arrangement::Side => "before beside after",
        };
        format!("{}; {how}", self.inner.description())
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        self.inner.input_allocator()
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn output_size(&self, format: PixelFormat, width: usize, height: usize) -> (usize, usize) {
        self.composition(None).size(format, width, height)
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let composition = self.composition(Some(&input));
        let mut both = composition.canvas(input.layout(), output, row_alignment)?;
        composition.put_before(&input, &mut both);
        self.waiting.push_back((both, composition));
        let room = match self.after.try_take() {
            Some(buffer) => buffer,
            // Only if more frames are in flight than the engine allows.
            None => Buffer::unpooled(Pageable.allocate(0)?),
        };
        self.inner.submit(input, room, 64)
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        let Some(after) = self.inner.collect()? else {
            return Ok(None);
        };
        let Some((mut both, composition)) = self.waiting.pop_front() else {
            return Ok(Some(after));
        };
        composition.put_after(&after, &mut both);
        both.sequence = after.sequence;
        both.born = after.born;
        both.metadata = after.into_parts().0;
        self.leave_out_unfitting(&mut both.metadata.side_data);
        composition.finish(&mut both);
        Ok(Some(both))
    }

    fn remarks(&mut self, whole: bool) -> Remarks {
        let mut remarks = self.inner.remarks(whole);
        let words: Vec<&str> = self.unfitting.iter().map(|fact| fact.word()).collect();
        if !words.is_empty() {
            remarks.notes.push(format!(
                "left out, since it does not hold for two pictures beside each other: {}",
                words.join(", ")
            ));
        }
        remarks
    }

    fn own_bytes(&self, frame: &Layout) -> u128 {
        self.after.capacity() as u128 * frame.size() as u128 + self.inner.own_bytes(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::none::NoFilter;
    use crate::engine::reference::Reference;
    use crate::filter::{Algorithm, Border, Chain, Planes};
    use crate::frame::{Channel, Layout, Metadata};

    fn noise(format: PixelFormat, width: usize, height: usize) -> Frame {
        let layout = Layout::new(format, width, height, 64).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Pageable.allocate(0).unwrap())).unwrap();
        let mut state = 12345_u64;
        for (index, plane) in format.planes().iter().enumerate() {
            for y in 0..layout.planes()[index].height {
                for x in 0..layout.planes()[index].width * plane.channels.len() {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    let sample = (state >> 40) as u16 & format.max_value() as u16;
                    let row = frame.row_mut(index, y);
                    match format.bytes_per_sample() {
                        1 => row[x] = sample as u8,
                        _ => row[2 * x..2 * x + 2].copy_from_slice(&(sample << format.shift()).to_le_bytes()),
                    }
                }
            }
        }
        frame
    }

    fn darken(planes: Planes) -> Box<dyn Engine> {
        Box::new(Reference::new(Chain {
            filters: vec!["mask:rows=1 2 1:divisor=8".parse().unwrap()],
            border: Border::Replicate,
            planes,
            algorithm: Algorithm::Auto,
            alpha: Default::default(),
        }))
    }

    fn run(engine: &mut dyn Engine, frame: Frame) -> Frame {
        let room = Buffer::unpooled(Pageable.allocate(0).unwrap());
        engine.submit(frame, room, 1).unwrap();
        engine.collect().unwrap().unwrap()
    }

    /// The sample of the first channel of each plane, by columns and rows of the plane.
    fn at(frame: &Frame, plane: usize, x: usize, y: usize) -> u16 {
        frame.sample(plane, x, y, 0)
    }

    #[test]
    fn every_format_is_split_on_its_chroma_grid() {
        for format in PixelFormat::integers() {
            for (width, height) in [(1, 1), (2, 3), (7, 5), (33, 9), (64, 8)] {
                let before = noise(format, width, height);
                let after = run(&mut *darken(Planes::All), noise(format, width, height));
                let mut engine = Compare::new(darken(Planes::All), Arrangement::Split, Shown::Turned(None));
                let both = run(&mut engine, noise(format, width, height));
                assert_eq!(
                    (both.layout().width(), both.layout().height()),
                    (width, height),
                    "{format}"
                );
                // The formula again: a line of two columns, or of one chroma sample if that is wider.
                let unit = format.planes().iter().map(|p| 1 << p.log2_x).max().unwrap();
                let line = unit.max(2);
                let (cut, line) = match width < 4 * line {
                    true => (width / 2 / unit * unit, 0),
                    false => ((width - line) / 2 / unit * unit, line),
                };
                for (plane, shape) in format.planes().iter().enumerate() {
                    let (cut, end) = (cut >> shape.log2_x, (cut + line) >> shape.log2_x);
                    let place = both.layout().planes()[plane];
                    for (x, y) in (0..place.height).flat_map(|y| (0..place.width).map(move |x| (x, y))) {
                        if x < cut {
                            assert_eq!(at(&both, plane, x, y), at(&before, plane, x, y), "{format}");
                        } else if x >= end {
                            assert_eq!(at(&both, plane, x, y), at(&after, plane, x, y), "{format}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn side_by_side_both_are_whole() {
        for format in PixelFormat::integers() {
            for (width, height) in [(1, 1), (3, 2), (7, 5), (32, 9)] {
                let before = noise(format, width, height);
                let after = run(&mut *darken(Planes::All), noise(format, width, height));
                let mut engine = Compare::new(darken(Planes::All), Arrangement::Side, Shown::AsStored);
                let expected = engine.output_size(format, width, height);
                let both = run(&mut engine, noise(format, width, height));
                assert_eq!((both.layout().width(), both.layout().height()), expected);
                let unit: usize = format.planes().iter().map(|p| 1 << p.log2_x).max().unwrap();
                assert_eq!(
                    expected,
                    (width.next_multiple_of(unit) + width, height),
                    "{format}"
                );
                let (first, second) = Composition::new(Arrangement::Side).parts(&both).unwrap();
                for plane in 0..format.planes().len() {
                    for y in 0..before.layout().planes()[plane].height {
                        assert_eq!(first.row(plane, y), before.row(plane, y), "{format}");
                        assert_eq!(second.row(plane, y), after.row(plane, y), "{format}");
                    }
                }
            }
        }
    }

    /// The frame as it is shown has before on the left, whatever its turn.
    #[test]
    fn before_is_on_the_left_of_what_is_shown() {
        let format = PixelFormat::RGB24;
        for orientation in 1..=8 {
            let turn = Turn::from_exif(orientation).unwrap();
            for by_stream in [true, false] {
                let shown = Shown::Turned(by_stream.then_some(turn));
                let frame = || {
                    let mut frame = noise(format, 24, 10);
                    frame.metadata = Metadata {
                        orientation: (!by_stream).then_some(orientation),
                        ..Metadata::default()
                    };
                    frame
                };
                let upright = |engine: &mut dyn Engine| turn.apply(&run(engine, frame())).unwrap();
                let before = upright(&mut NoFilter::default());
                let after = upright(&mut *darken(Planes::All));
                let (width, height) = (before.layout().width(), before.layout().height());
                let side = upright(&mut Compare::new(darken(Planes::All), Arrangement::Side, shown));
                assert_eq!(
                    (side.layout().width(), side.layout().height()),
                    (2 * width, height)
                );
                let split = upright(&mut Compare::new(darken(Planes::All), Arrangement::Split, shown));
                assert_eq!((split.layout().width(), split.layout().height()), (width, height));
                for y in 0..height {
                    assert_eq!(side.row(0, y)[..3 * width], *before.row(0, y), "{orientation}");
                    assert_eq!(side.row(0, y)[3 * width..], *after.row(0, y), "{orientation}");
                    let (left, right) = (width / 2 - 1, width / 2 + 1);
                    assert_eq!(split.row(0, y)[..3 * left], before.row(0, y)[..3 * left]);
                    assert_eq!(split.row(0, y)[3 * right..], after.row(0, y)[3 * right..]);
                }
            }
        }
    }

    #[test]
    fn the_line_is_white_and_black_in_the_range_of_the_frame() {
        let mut engine = Compare::new(darken(Planes::All), Arrangement::Split, Shown::AsStored);
        for (name, white, black) in [
            ("yuv420p", [235, 128, 128], [16, 128, 128]),
            ("p010le", [940, 512, 512], [64, 512, 512]),
            ("gray", [255, 0, 0], [0, 0, 0]),
            ("gbrp12le", [4095, 4095, 4095], [0, 0, 0]),
            ("rgba", [255, 255, 255], [0, 0, 0]),
        ] {
            let format = PixelFormat::from_name(name).unwrap();
            let both = run(&mut engine, noise(format, 32, 6));
            // The first column of the line, and the one beside it.
            let cut = if format.place(Channel::Cb).is_some() {
                14
            } else {
                15
            };
            let mut channels = format.planes().iter().enumerate().flat_map(|(index, plane)| {
                (0..plane.channels.len()).map(move |at| (index, at, cut >> plane.log2_x, plane.log2_x))
            });
            for (white, black) in white.into_iter().zip(black) {
                let Some((plane, at, x, log2_x)) = channels.next() else {
                    continue;
                };
                assert_eq!(both.sample(plane, x, 1, at), white, "{name} {plane} {at}");
                if log2_x == 0 {
                    assert_eq!(both.sample(plane, x + 1, 1, at), black, "{name} {plane} {at}");
                }
            }
            if let Some((plane, at)) = format.place(Channel::Alpha) {
                assert_eq!(both.sample(plane, cut, 1, at), 255);
            }
        }
    }
}
