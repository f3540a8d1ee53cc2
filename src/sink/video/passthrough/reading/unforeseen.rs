//! Streams that begin when those of the output are fixed already.

use crate::media::ffmpeg::StreamFacts;
use crate::sink::video::passthrough::selection::StreamOptions;

/// Streams that came after those of the output were fixed, and would have been wanted.
pub(super) struct Unforeseen {
    /// Streams that were there then.
    known: usize,
    options: StreamOptions,
    /// Those that came later, with their first time in seconds.
    streams: Vec<(String, f64)>,
}

impl Unforeseen {
    /// While all streams can still be foreseen.
    pub(super) fn none() -> Unforeseen {
        Unforeseen {
            known: usize::MAX,
            options: StreamOptions::default(),
            streams: Vec::new(),
        }
    }

    /// From now on, with `known` streams; `options` say which others would be wanted.
    pub(super) fn after(known: usize, options: StreamOptions) -> Unforeseen {
        Unforeseen {
            known,
            options,
            streams: Vec::new(),
        }
    }

    /// True for a stream that came later.
    pub(super) fn concerns(&self, index: usize) -> bool {
        index >= self.known
    }

    /// Notes a packet of such a stream, at `time` seconds.
    pub(super) fn note(&mut self, index: usize, facts: &StreamFacts, time: f64) {
        if !self.options.wants(index, facts.medium) {
            return;
        }
        let label = facts.label(index);
        if self.streams.iter().all(|(other, _)| *other != label) {
            self.streams.push((label, time));
        }
    }

    /// Word of each of them.
    pub(super) fn sentences(&self) -> impl Iterator<Item = String> {
        self.streams.iter().map(|(label, time)| {
            format!(
                "{label} begins at {time:.3} s, when the output's streams were fixed already, and is left \
                 out; bring the input into another container first (ffmpeg -analyzeduration 1000M -i IN -c \
                 copy OUT.mkv)"
            )
        })
    }
}
