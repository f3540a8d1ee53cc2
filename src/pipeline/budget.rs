//! The number of frame buffers of a run, and their bytes.

/// The number of buffers in both pools. It is fixed, so that a run's memory follows from its options and the
/// frame's size, not from the input's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Between source and engine: one for each source worker, those that the source keeps, the queue, one for
    /// each frame in flight in the engine, and one that the engine's thread holds between queue and engine.
    pub input_buffers: usize,
    /// Between engine and sink: one for each frame in flight in the engine, one that the engine's thread
    /// holds between engine and queue, the queue, one for each sink worker, and those that the sink keeps.
    pub output_buffers: usize,
}

impl Budget {
    /// The buffers that keep every stage busy: `queue` frames between two stages, `depth` in flight in the
    /// engine, `(workers, held)` of source and sink.
    pub fn new(queue: usize, depth: usize, source: (usize, usize), sink: (usize, usize)) -> Budget {
        Budget {
            input_buffers: source.0 + source.1 + queue + depth + 1,
            output_buffers: depth + 1 + queue + sink.0 + sink.1,
        }
    }

    /// No more buffers in either pool than there are frames. A sink that keeps buffers may end up with all of
    /// them; one more is then for the engine's thread, which takes a buffer before it knows whether another
    /// frame follows.
    #[must_use]
    pub fn at_most(self, frames: u64, sink_keeps: bool) -> Budget {
        let most = usize::try_from(frames).unwrap_or(usize::MAX).max(1);
        Budget {
            input_buffers: self.input_buffers.min(most),
            output_buffers: self.output_buffers.min(most.saturating_add(sink_keeps.into())),
        }
    }

    /// The frames that there may be at a time.
    pub(super) fn frames(&self) -> u64 {
        self.input_buffers.saturating_add(self.output_buffers) as u64
    }

    /// Bytes of all buffers for frames of `input` bytes before and `output` bytes after the filter.
    pub fn bytes(&self, input: usize, output: usize) -> u128 {
        self.input_buffers as u128 * input as u128 + self.output_buffers as u128 * output as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_follows_from_the_options() {
        let budget = Budget::new(3, 1, (2, 0), (2, 4));
        assert_eq!((budget.input_buffers, budget.output_buffers), (7, 11));
        assert_eq!(budget.bytes(100, 1000), 11_700);
        let short = budget.at_most(5, false);
        assert_eq!((short.input_buffers, short.output_buffers), (5, 5));
        let short = budget.at_most(5, true);
        assert_eq!((short.input_buffers, short.output_buffers), (5, 6));
        assert_eq!(budget.at_most(8, false).output_buffers, 8);
        assert!(Budget::new(2, 3, (1, 0), (1, 0)).bytes(usize::MAX, usize::MAX) > usize::MAX as u128);
    }
}
