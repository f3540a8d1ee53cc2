//! The number of frames from which a card is faster than the processor, which needs no start.
//!
//! ```text
//! seconds |                  , cpu       start    driver, context, kernels: once
//!         |              , '      _ - '  card     a frame's bytes over the link, or nothing where the
//!         |          , '  _ - '                   decoder limits and the card works beside it
//!         |      , ' - '                 cpu      the filter's cost over all cores
//!   start |  , ' - '
//!         |,'________^_________ frames   frames = start / (cpu - card)
//! ```
//!
//! A card's decoders, if they can read the input, have a start and a saving of their own. These count if the
//! decoders save time at all.
//!
//! `framepipe bench tune` measures start, a core and the link, and keeps them beside the tuning table. They
//! are looked up by processor and not by card, because asking for the card's name starts the driver.

use crate::engine::EngineError;
use crate::engine::cuda::compile::cache::{Cache, CacheError, Digest};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The figures by which the decision is made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crossover {
    /// Seconds by which a run of one frame is longer with a card, its kernels compiled before.
    pub start_seconds: f64,
    /// Nanoseconds that one core takes for a multiply-add of two samples and two weights
    /// ([`crate::engine::cpu::Cpu::cost`]).
    pub term_nanoseconds: f64,
    /// Bytes a second that go up to the card while as many come down.
    pub link_bytes_per_second: f64,
}

/// Where the figures come from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    BuiltIn,
    /// At a date.
    Measured(String),
}

/// A run before it begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunEstimate {
    /// Frames of each input, if that is known.
    pub frames: Option<u64>,
    /// Inputs of about as many frames, for which a card is started once.
    pub runs: u64,
    /// Bytes of a frame.
    pub frame_bytes: usize,
    /// Cost of the whole chain in a frame, in such multiply-adds.
    pub cost: f64,
    /// Cores that filter.
    pub cores: usize,
    /// True if frames are decoded from compressed ones, which takes longer than moving them to a card.
    pub is_decoded: bool,
}

/// Whether a run should use a card, and why, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// A card is worth its start.
    pub takes_card: bool,
    /// If it is taken, its decoders are worth their start, too.
    pub decodes: bool,
    /// For `--explain`.
    pub why: String,
}

impl Crossover {
    /// An NVIDIA H200 beside 16 cores of an Intel Xeon: start and link (docs/performance.md); and a core with
    /// AVX2.
    const BUILT_IN: Crossover = Crossover {
        start_seconds: 0.44,
        term_nanoseconds: 0.03,
        link_bytes_per_second: 50e9,
    };

    /// Seconds that a card saves with each frame.
    fn saving(&self, run: &RunEstimate) -> f64 {
        let cpu = run.cost * self.term_nanoseconds / 1e9 / run.cores.max(1) as f64;
        let card = if run.is_decoded {
            0.0
        } else {
            run.frame_bytes as f64 / self.link_bytes_per_second
        };
        (cpu - card).max(0.0)
    }

    fn is_possible(&self) -> bool {
        let Crossover {
            start_seconds,
            term_nanoseconds,
            link_bytes_per_second,
        } = *self;
        [start_seconds, term_nanoseconds, link_bytes_per_second]
            .iter()
            .all(|figure| figure.is_finite() && *figure > 0.0)
    }
}

/// Figures, with their source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourcedCrossover {
    figures: Crossover,
    source: Source,
}

impl SourcedCrossover {
    /// What was measured on `machine`, else what is built in. A file that is damaged or of another framepipe
    /// is not used, with a warning.
    pub fn of_user(machine: &str) -> SourcedCrossover {
        SourcedCrossover::load(&Cache::of_user(), machine)
    }

    fn load(cache: &Cache, machine: &str) -> SourcedCrossover {
        let built_in = SourcedCrossover {
            figures: Crossover::BUILT_IN,
            source: Source::BuiltIn,
        };
        let bytes = match cache.read(&file_name(machine)) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return built_in,
            Err(error) => {
                match &error {
                    CacheError::Folder { .. } => cache.warn(&error),
                    error => tracing::warn!("when a card is worth its start: {error}"),
                }
                return built_in;
            }
        };
        match serde_json::from_slice::<Kept>(&bytes) {
            Ok(kept) if kept.framepipe == env!("CARGO_PKG_VERSION") && kept.figures.is_possible() => {
                SourcedCrossover {
                    figures: kept.figures,
                    source: Source::Measured(kept.date),
                }
            }
            _ => {
                tracing::warn!(
                    "what was measured of starting a card is damaged or of another framepipe; `framepipe \
                     bench tune` makes it anew"
                );
                built_in
            }
        }
    }

    /// Whether `run` should use a card. `decoding` gives the seconds that the card's decoders save with a
    /// number of frames of an input, less their start; 0 or less if they save nothing.
    pub fn judge(&self, run: &RunEstimate, decoding: &dyn Fn(u64) -> f64) -> Verdict {
        let start = self.figures.start_seconds;
        let Some(frames) = run.frames else {
            return Verdict {
                takes_card: true,
                decodes: decoding(FAR) > 0.0,
                why: "it is not known how many frames will come".to_owned(),
            };
        };
        let (runs, saving) = (run.runs.max(1), self.figures.saving(run));
        let by_decoding = |frames| decoding(frames).max(0.0) * runs as f64;
        let saved = |frames| saving * frames as f64 * runs as f64 + by_decoding(frames);
        let crossing = match first(|frames| saved(frames) > start) {
            Some(frames) => format!("; they are even at {} frames", frames.saturating_mul(runs)),
            None => String::new(),
        };
        let decodes = by_decoding(frames) > 0.0;
        let by_decoding = match decodes {
            true => format!(" ({} of it by decoding)", Seconds(by_decoding(frames))),
            false => String::new(),
        };
        let all = frames.saturating_mul(runs);
        let noun = if all == 1 { "frame" } else { "frames" };
        Verdict {
            takes_card: saved(frames) > start,
            decodes,
            why: format!(
                "a card saves {}{by_decoding} with {all} {noun} and takes {} to start{crossing} ({})",
                Seconds(saved(frames)),
                Seconds(start),
                self.source
            ),
        }
    }
}

/// More frames than any input has.
const FAR: u64 = 1 << 40;

/// The least number of frames for which `holds` is true, if there is one; it is true for all greater ones.
fn first(holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut below, mut above) = (0, FAR);
    if !holds(above) {
        return None;
    }
    while above - below > 1 {
        let middle = below.midpoint(above);
        match holds(middle) {
            true => above = middle,
            false => below = middle,
        }
    }
    Some(above)
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::BuiltIn => {
                f.write_str("built-in figures; `framepipe bench tune` measures this machine's")
            }
            Source::Measured(date) => write!(f, "measured here on {date}"),
        }
    }
}

/// Seconds to two places.
struct Seconds(f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0.005 {
            f.write_str("nothing")
        } else {
            write!(f, "{:.2} s", self.0)
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    framepipe: String,
    date: String,
    /// The machine in words.
    machine: String,
    figures: Crossover,
}

fn file_name(machine: &str) -> String {
    format!("{}.crossover", Digest::of_parts(&[machine]))
}

impl Crossover {
    /// Keeps what was measured on `machine` for later runs; returns the file.
    pub fn keep(&self, machine: &str, date: &str) -> Result<PathBuf, EngineError> {
        self.store(&Cache::of_user(), machine, date)
    }

    fn store(&self, cache: &Cache, machine: &str, date: &str) -> Result<PathBuf, EngineError> {
        let failed = |reason: String| EngineError::Device {
            doing: "keeping what starting a card takes".to_owned(),
            reason,
        };
        let kept = Kept {
            framepipe: env!("CARGO_PKG_VERSION").to_owned(),
            date: date.to_owned(),
            machine: machine.to_owned(),
            figures: *self,
        };
        let body = serde_json::to_string_pretty(&kept).map_err(|e| failed(e.to_string()))?;
        let name = file_name(machine);
        let put = cache.put(&name, body.as_bytes());
        put.and_then(|()| cache.path(&name))
            .map_err(|error| failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: Crossover = Crossover {
        start_seconds: 0.5,
        term_nanoseconds: 0.1,
        link_bytes_per_second: 1e9,
    };

    fn sourced() -> SourcedCrossover {
        SourcedCrossover {
            figures: FIGURES,
            source: Source::Measured("a date".to_owned()),
        }
    }

    /// 40 ms of one core, so 10 ms of four, and 2 ms of the link.
    fn estimate(frames: Option<u64>) -> RunEstimate {
        RunEstimate {
            frames,
            runs: 1,
            frame_bytes: 2_000_000,
            cost: 4e8,
            cores: 4,
            is_decoded: false,
        }
    }

    #[test]
    fn a_card_is_taken_from_the_crossing_on() {
        // 0.5 s over 8 ms are 62.5 frames.
        let judge = |frames| sourced().judge(&estimate(Some(frames)), &|_| 0.0);
        assert!(!judge(1).takes_card && !judge(62).takes_card);
        assert!(judge(63).takes_card && judge(1_000_000).takes_card);
        let why = judge(50).why;
        assert_eq!(
            why,
            "a card saves 0.40 s with 50 frames and takes 0.50 s to start; they are even at 63 frames \
             (measured here on a date)"
        );
    }

    #[test]
    fn where_decoding_limits_the_link_costs_nothing() {
        let decoded = |frames| RunEstimate {
            is_decoded: true,
            ..estimate(Some(frames))
        };
        let judge = |frames| sourced().judge(&decoded(frames), &|_| 0.0);
        // 0.5 s over 10 ms.
        assert!(!judge(50).takes_card);
        assert!(judge(51).takes_card);
    }

    #[test]
    fn decoders_count_where_they_save_more_than_their_start() {
        let estimate = |frames, runs| RunEstimate {
            is_decoded: true,
            runs,
            cost: 4e7,
            ..estimate(Some(frames))
        };
        let decoding = |frames| 0.004 * frames as f64 - 0.25;
        let judge = |frames, runs| sourced().judge(&estimate(frames, runs), &decoding);
        // 0.75 s over 1 ms of filtering and 4 ms of decoding.
        let verdict = judge(200, 1);
        assert!(verdict.takes_card && verdict.decodes);
        assert_eq!(
            verdict.why,
            "a card saves 0.75 s (0.55 s of it by decoding) with 200 frames and takes 0.50 s to start; they \
             are even at 151 frames (measured here on a date)"
        );
        assert!(judge(151, 1).takes_card && !judge(149, 1).takes_card);
        // The decoders start for each input, the card once: 100 inputs of 50 frames save 5 s of filtering.
        let verdict = judge(50, 100);
        assert!(verdict.takes_card && !verdict.decodes && verdict.why.contains("with 5000 frames"));
        assert!(judge(100, 5).decodes);
        // Decoders that are slower than the CPU change nothing.
        let slow = sourced().judge(&estimate(200, 1), &|frames| -(frames as f64));
        assert_eq!(slow, sourced().judge(&estimate(200, 1), &|_| 0.0));
    }

    #[test]
    fn a_filter_that_the_link_is_slower_than_never_needs_a_card() {
        let light = RunEstimate {
            cost: 4e7,
            ..estimate(Some(u64::MAX))
        };
        let verdict = sourced().judge(&light, &|_| 0.0);
        assert!(!verdict.takes_card);
        assert!(verdict.why.starts_with("a card saves nothing"), "{}", verdict.why);
        // More cores do the same.
        let many = RunEstimate {
            cores: 40,
            ..estimate(Some(1_000_000))
        };
        assert!(!sourced().judge(&many, &|_| 0.0).takes_card);
    }

    #[test]
    fn an_unknown_end_is_far_away() {
        let verdict = sourced().judge(&estimate(None), &|_| -1.0);
        assert!(verdict.takes_card && verdict.why.contains("not known"));
    }

    #[test]
    fn what_was_measured_comes_back_on_its_machine_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().join("made on demand"));
        let built_in = SourcedCrossover {
            figures: Crossover::BUILT_IN,
            source: Source::BuiltIn,
        };
        assert_eq!(SourcedCrossover::load(&cache, "this"), built_in);
        let path = FIGURES.store(&cache, "this", "a date").unwrap();
        assert_eq!(SourcedCrossover::load(&cache, "this"), sourced());
        assert_eq!(SourcedCrossover::load(&cache, "another"), built_in);
        // Another version's, impossible figures, and a damaged file are not used.
        let body = String::from_utf8(cache.read(&file_name("this")).unwrap().unwrap()).unwrap();
        let version = format!("\"{}\"", env!("CARGO_PKG_VERSION"));
        for changed in [body.replace(&version, "\"0.0.1\""), body.replace("0.5", "-0.5")] {
            assert_ne!(changed, body);
            cache.put(&file_name("this"), changed.as_bytes()).unwrap();
            assert_eq!(SourcedCrossover::load(&cache, "this"), built_in);
        }
        std::fs::write(path, b"{}").unwrap();
        assert_eq!(SourcedCrossover::load(&cache, "this"), built_in);
    }
}
