//! Times an engine on whole frames in the host's memory.

use super::effort::Effort;
use crate::engine::verify::fill_with_noise;
use crate::engine::{Engine, EngineError};
use crate::frame::{Frame, FramePool, Layout};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::time::Instant;

/// Bytes that the frames of a room take together, at most, beyond the fewest that are needed.
const MOST_BYTES: usize = 2 << 30;
/// For an engine that overlaps frames: frames in one timed stretch, as a multiple of the frames in flight.
const BATCH: usize = 4;
/// How rows are aligned, as decoders align them.
const ALIGNMENT: usize = 64;

/// The result of timing.
pub(crate) struct FrameTimes {
    /// Milliseconds a frame; for an engine that overlaps frames, means over short stretches of its steady
    /// state.
    pub(crate) milliseconds: Vec<f64>,
    /// Frames used in turn.
    pub(crate) turns: usize,
    /// The noise of one of the frames that were timed.
    pub(crate) seed: u64,
    /// The engine's result of that frame.
    pub(crate) output: Frame,
}

/// Frames in memory of one kind, full of noise, that engines may be timed on one after another.
pub(crate) struct TimedFrames {
    layout: Layout,
    together: u64,
    turns: usize,
    inputs: FramePool,
    outputs: FramePool,
}

impl TimedFrames {
    /// Frames that take turns for an engine that keeps `depth` of them.
    fn turns(layout: &Layout, depth: usize, together: u64) -> usize {
        let both = 2 * layout.size().max(1);
        let wanted = (together as usize).min(MOST_BYTES).div_ceil(both);
        wanted.max(depth.max(1) + 1)
    }

    /// Frames of `layout`'s format and size in the memory that `engine` likes, with the results together at
    /// least `together` bytes. The noise of frame k has seed `seed` + k.
    pub(crate) fn new(
        engine: &dyn Engine,
        layout: &Layout,
        seed: u64,
        together: u64,
    ) -> Result<TimedFrames, EngineError> {
        let layout = Layout::new(layout.format(), layout.width(), layout.height(), ALIGNMENT)?;
        let turns = TimedFrames::turns(&layout, engine.depth(), together);
        let timed = TimedFrames {
            layout,
            together,
            turns,
            inputs: FramePool::new(turns, engine.input_allocator()),
            outputs: FramePool::new(turns, engine.output_allocator()),
        };
        // All are taken before any is given back, so that each is another block.
        let mut frames = Vec::with_capacity(turns);
        for _ in 0..turns {
            frames.push(Frame::new(layout, timed.inputs.try_take().ok_or_else(gone)?)?);
        }
        frames
            .par_iter_mut()
            .enumerate()
            .for_each(|(turn, frame)| fill_with_noise(frame, seed + turn as u64));
        // The system's work on the first use of a page must not count as an engine's time.
        timed.outputs.prepare(layout.size())?;
        let mut results: Vec<_> = std::iter::from_fn(|| timed.outputs.try_take()).collect();
        results.iter_mut().for_each(|result| result.bytes_mut().fill(1));
        drop(results);
        let mut filled = Vec::with_capacity(turns);
        for (turn, frame) in frames.into_iter().enumerate() {
            let mut buffer = frame.into_parts().1;
            buffer.set_tag(seed + turn as u64);
            filled.push(buffer);
        }
        drop(filled);
        Ok(timed)
    }

    /// True if frames of this layout are timed here by an engine that keeps `depth` of them.
    pub(crate) fn fits(&self, layout: &Layout, depth: usize) -> bool {
        let mine = (self.layout.format(), self.layout.width(), self.layout.height());
        mine == (layout.format(), layout.width(), layout.height())
            && self.turns == TimedFrames::turns(&self.layout, depth, self.together)
    }
}

fn gone() -> EngineError {
    EngineError::Device {
        doing: "timing an engine".to_owned(),
        reason: "it keeps more frames than it says".to_owned(),
    }
}

/// Times `engine` on the frames of `room`.
pub(crate) fn time(
    engine: &mut dyn Engine,
    timed: &TimedFrames,
    effort: Effort,
) -> Result<FrameTimes, EngineError> {
    let TimedFrames {
        layout,
        turns,
        inputs,
        outputs,
        ..
    } = timed;
    let (layout, turns) = (*layout, *turns);
    let depth = engine.depth().max(1);
    let mut in_flight: VecDeque<u64> = VecDeque::new();
    let mut sequence = 0;
    // Submits until the engine is full, then collects the oldest.
    let mut next =
        |engine: &mut dyn Engine, in_flight: &mut VecDeque<u64>| -> Result<(u64, Frame), EngineError> {
            while in_flight.len() < depth {
                let input = inputs.try_take().ok_or_else(gone)?;
                in_flight.push_back(input.tag());
                let mut frame = Frame::new(layout, input)?;
                frame.sequence = sequence;
                sequence += 1;
                engine.submit(frame, outputs.try_take().ok_or_else(gone)?, ALIGNMENT)?;
            }
            let result = engine.collect()?;
            in_flight.pop_front().zip(result).ok_or_else(gone)
        };
    let batch = if depth > 1 { BATCH * depth } else { 1 };
    // Twice through all buffers, or as long as is measured: kernels are compiled, threads and clocks are
    // awake.
    let began = Instant::now();
    let warm_up = (2 * turns).max(batch);
    let mut warmed = 0;
    while warmed < 2.max(depth) || (warmed < warm_up && began.elapsed() < effort.time) {
        next(engine, &mut in_flight)?;
        warmed += 1;
    }
    let mut milliseconds = Vec::new();
    let began = Instant::now();
    let mut last = None;
    while milliseconds.len() < effort.rounds.0.max(1)
        || (milliseconds.len() < effort.rounds.1 && began.elapsed() < effort.time)
    {
        let start = Instant::now();
        for _ in 0..batch {
            last = Some(next(engine, &mut in_flight)?);
        }
        milliseconds.push(start.elapsed().as_secs_f64() * 1e3 / batch as f64);
    }
    while in_flight.pop_front().is_some() {
        engine.collect()?;
    }
    let (seed, output) = last.ok_or_else(gone)?;
    Ok(FrameTimes {
        milliseconds,
        turns,
        seed,
        output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::none::NoFilter;
    use crate::frame::{Allocator, Buffer, Pageable, PixelFormat};
    use std::sync::Arc;
    use std::time::Duration;

    fn layout(width: usize) -> Layout {
        Layout::new(PixelFormat::from_name("gray10le").unwrap(), width, 20, 1).unwrap()
    }

    fn effort(rounds: (usize, usize)) -> Effort {
        Effort {
            time: Duration::from_millis(5),
            rounds,
        }
    }

    fn noise(layout: &Layout, seed: u64) -> Frame {
        let mut frame = Frame::new(*layout, Buffer::unpooled(Pageable.allocate(0).unwrap())).unwrap();
        fill_with_noise(&mut frame, seed);
        frame
    }

    #[test]
    fn the_seed_says_which_noise_the_output_was_made_of() {
        let layout = layout(33);
        let mut engine = NoFilter::default();
        let timed = TimedFrames::new(&engine, &layout, 900, 1 << 20).unwrap();
        assert!(timed.fits(&layout, 1) && !timed.fits(&self::layout(34), 1));
        // Nothing is left to be allocated while frames are timed.
        let whole = Layout::new(layout.format(), 33, 20, ALIGNMENT).unwrap().size();
        assert_eq!(timed.outputs.allocated_bytes(), timed.turns * whole);
        let timed = time(&mut engine, &timed, effort((7, 7))).unwrap();
        assert_eq!(timed.milliseconds.len(), 7);
        assert!(timed.turns > 3 && (900..900 + timed.turns as u64).contains(&timed.seed));
        let expected = noise(&layout, timed.seed);
        let other = noise(&layout, timed.seed + 1);
        for y in 0..20 {
            assert_eq!(timed.output.row(0, y), expected.row(0, y));
            assert_ne!(timed.output.row(0, y), other.row(0, y));
        }
    }

    /// Keeps three frames in flight, and counts the frames that it was given.
    #[derive(Default)]
    struct Deep(NoFilter, usize, usize);

    impl Engine for Deep {
        fn name(&self) -> &'static str {
            "deep"
        }
        fn description(&self) -> String {
            String::new()
        }
        fn depth(&self) -> usize {
            3
        }
        fn input_allocator(&self) -> Arc<dyn Allocator> {
            self.0.input_allocator()
        }
        fn output_allocator(&self) -> Arc<dyn Allocator> {
            self.0.output_allocator()
        }
        fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
            self.1 += 1;
            self.2 = self.2.max(self.1);
            self.0.submit(input, output, row_alignment)
        }
        fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
            self.1 -= 1;
            self.0.collect()
        }
    }

    #[test]
    fn an_engine_with_depth_is_kept_full_and_emptied_at_the_end() {
        let mut engine = Deep::default();
        let timed = TimedFrames::new(&engine, &layout(40), 1, 0).unwrap();
        assert!(timed.fits(&layout(40), 3) && !timed.fits(&layout(40), 4));
        let timed = time(&mut engine, &timed, effort((2, 2))).unwrap();
        assert_eq!((engine.1, engine.2), (0, 3));
        assert_eq!(timed.milliseconds.len(), 2);
        let expected = noise(&layout(40), timed.seed);
        assert_eq!(timed.output.row(0, 19), expected.row(0, 19));
    }
}
