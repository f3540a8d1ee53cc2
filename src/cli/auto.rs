//! `--engine auto`: a card where the run is long enough for it, and the card's start while the input is being
//! opened.

use super::engine::{EngineArguments, EngineName, SimdName, check_card, integer_plan};
use super::origin;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::cuda::{RunEstimate, SourcedCrossover, Verdict, has_driver};
use framepipe::engine::{Engine, EngineError, luma};
use framepipe::filter::Chain;
use framepipe::frame::Layout;
use framepipe::source::StreamInfo;
use framepipe::source::video::Consent;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// An engine, or why it does not start.
pub(super) type Started = Result<Box<dyn Engine>, EngineError>;

/// An engine that is being started on a thread of its own, once. Clones are the same one, which is there for
/// whoever takes it first.
#[derive(Clone, Default)]
pub(crate) struct Starting(Arc<Mutex<Start>>);

#[derive(Default)]
enum Start {
    #[default]
    NotBegun,
    Running(JoinHandle<Started>),
    Taken,
}

impl Starting {
    /// Begins with it, unless it was begun before. Without another thread to be had nothing is begun, and the
    /// engine is started when it is needed.
    fn begin(&self, start: impl FnOnce() -> Started + Send + 'static) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Start::NotBegun = *state
            && let Ok(thread) = thread::Builder::new().name("start".to_owned()).spawn(start)
        {
            *state = Start::Running(thread);
        }
    }

    /// Waits for it; `None` if none was begun, or it was taken before.
    pub(super) fn take(&self) -> Option<Started> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = match std::mem::take(&mut *state) {
            Start::Running(thread) => thread,
            other => {
                *state = other;
                return None;
            }
        };
        *state = Start::Taken;
        drop(state);
        Some(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // The driver must not be in the middle of its start when the process ends.
        if Arc::strong_count(&self.0) == 1 {
            drop(self.take());
        }
    }
}

impl fmt::Debug for Starting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Starting")
    }
}

impl EngineArguments {
    /// Begins to start the card, if the user asked for it. The input can be opened meanwhile.
    pub(crate) fn begin(&self, chain: &Chain) {
        if self.engine == EngineName::Cuda {
            self.begin_card(chain);
        }
    }

    /// The same for `auto`, now that the input is open, if a card will be taken.
    pub(crate) fn begin_for(&self, chain: &Chain, info: &StreamInfo) {
        if self.engine == EngineName::Auto && has_driver() && self.verdict(chain, info).takes_card {
            self.begin_card(chain);
        }
    }

    fn begin_card(&self, chain: &Chain) {
        let (own, chain) = (
            EngineArguments {
                starting: Starting::default(),
                ..self.clone()
            },
            chain.clone(),
        );
        self.starting.begin(move || own.cuda(&chain));
    }

    /// For `auto`: a card decodes a video if it filters as well and its decoders save time. It is begun with
    /// then.
    pub(super) fn decoding_consent(&self, chain: Chain) -> Consent {
        let own = self.clone();
        Consent::by(move |info| {
            let verdict = own.judge(&chain, info, true);
            let takes_card = verdict.takes_card || own.cuda_option().is_some();
            if !(takes_card && verdict.decodes) {
                return Err(verdict.why);
            }
            let plan = integer_plan(&chain, info).map_err(|e| e.to_string())?;
            check_card(plan.as_ref()).map_err(|e| e.to_string())?;
            own.begin_card(&chain);
            Ok(())
        })
    }

    /// Whether `auto` takes a card, and why.
    pub(super) fn verdict(&self, chain: &Chain, info: &StreamInfo) -> Verdict {
        if let Some(option) = self.cuda_option() {
            return Verdict {
                takes_card: true,
                decodes: info.is_on_card,
                why: format!("{option} is an option of a card's"),
            };
        }
        let verdict = self.judge(chain, info, info.is_on_card);
        Verdict {
            takes_card: verdict.takes_card || info.is_on_card,
            ..verdict
        }
    }

    /// The same by what is saved alone; a card decodes the input if it `may` and that saves time.
    fn judge(&self, chain: &Chain, info: &StreamInfo, may: bool) -> Verdict {
        let format = luma::filtered_format(info.format, &chain.planes);
        let set = self.simd.map_or_else(InstructionSet::detect, SimdName::set);
        let known = Layout::new(format, info.width, info.height, 1)
            .ok()
            .and_then(|layout| {
                let terms = Cpu::terms(chain, &layout, &info.colour, set).ok()?;
                Some((layout.size(), terms))
            });
        // What cannot be filtered is reported when an engine is started.
        let (frame_bytes, terms) = known.unwrap_or((0, 0.0));
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let saved = |frames| match info.decoding_cost.filter(|_| may) {
            Some(cost) => cost.saved_by_card(frames, cores),
            None => 0.0,
        };
        let run = RunEstimate {
            frames: info.frames,
            runs: self.runs,
            frame_bytes,
            terms,
            cores: self.threads(),
            is_decoded: info.origin.is_some() || !info.uniform,
        };
        SourcedCrossover::of_user(&origin::machine()).judge(&run, &saved)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use framepipe::engine::none::NoFilter;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_engine_is_started_once_and_is_there_for_the_first() {
        let started = Arc::new(AtomicUsize::new(0));
        let starting = Starting::default();
        assert!(starting.take().is_none());
        let same = starting.clone();
        for _ in 0..2 {
            let started = started.clone();
            same.begin(move || {
                started.fetch_add(1, Ordering::SeqCst);
                Ok(Box::new(NoFilter::default()))
            });
        }
        drop(same);
        assert_eq!(starting.take().unwrap().unwrap().name(), "none");
        // Not once more for whoever comes later.
        starting.begin(|| Err(EngineError::Unavailable("twice".to_owned())));
        assert!(starting.take().is_none());
        assert_eq!(started.load(Ordering::SeqCst), 1);
        let starting = Starting::default();
        starting.begin(|| Err(EngineError::Unavailable("no card".to_owned())));
        let error = starting.take().unwrap().err().unwrap();
        assert_eq!(error.to_string(), "no card");
        // One that nobody takes is waited for.
        let starting = Starting::default();
        let ended = started.clone();
        starting.begin(move || {
            thread::sleep(std::time::Duration::from_millis(50));
            ended.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(NoFilter::default()))
        });
        drop(starting);
        assert_eq!(started.load(Ordering::SeqCst), 2);
    }
}
