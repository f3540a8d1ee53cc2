//! `--engine auto`: a card where the run is long enough for it, and the card's start while the input is being
//! opened.

use super::{EngineArguments, EngineName, SimdName, check_card};
use crate::cli::process::origin;
use crate::cli::process::starting::Starting;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::cuda::{RunEstimate, SourcedCrossover, Verdict, has_driver};
use framepipe::engine::luma;
use framepipe::filter::Chain;
use framepipe::frame::Layout;
use framepipe::source::StreamInfo;
use framepipe::source::video::Consent;
use std::num::NonZeroUsize;
use std::thread;

impl EngineArguments {
    /// Starts the card in the background if the user asked for it, while the input is being opened.
    pub(crate) fn begin(&self, chain: &Chain) {
        if self.engine == EngineName::Cuda {
            self.begin_card(chain);
        }
    }

    /// The same for `auto`, once the input is open, if a card will be used.
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

    /// For `auto`: a card decodes a video if it also filters and its decoders save time. Its start then
    /// begins.
    pub(crate) fn decoding_consent(&self, chain: Chain) -> Consent {
        let own = self.clone();
        Consent::by(move |info| {
            let verdict = own.judge(&chain, info, true);
            let takes_card = verdict.takes_card || own.cuda_option().is_some();
            if !(takes_card && verdict.decodes) {
                return Err(verdict.why);
            }
            let plan = luma::integer_plan(&chain, info.format, &info.colour).map_err(|e| e.to_string())?;
            check_card(plan.as_ref()).map_err(|e| e.to_string())?;
            own.begin_card(&chain);
            Ok(())
        })
    }

    /// Whether `auto` uses a card, and why.
    pub(crate) fn verdict(&self, chain: &Chain, info: &StreamInfo) -> Verdict {
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

    /// The verdict by the time saved alone; a card decodes the input if it `may` and that saves time.
    fn judge(&self, chain: &Chain, info: &StreamInfo, may: bool) -> Verdict {
        let format = luma::filtered_format(info.format, &chain.planes);
        let set = self.simd.map_or_else(InstructionSet::detect, SimdName::set);
        let known = Layout::new(format, info.width, info.height, 1)
            .ok()
            .and_then(|layout| {
                let cost = Cpu::cost(chain, &layout, &info.colour, set).ok()?;
                Some((layout.size(), cost))
            });
        // A chain that cannot be applied is reported when an engine is started.
        let (frame_bytes, cost) = known.unwrap_or((0, 0.0));
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let saved = |frames| match info.decoding_cost.filter(|_| may) {
            Some(cost) => cost.saved_by_card(frames, cores),
            None => 0.0,
        };
        let run = RunEstimate {
            frames: info.frames,
            runs: self.runs,
            frame_bytes,
            cost,
            cores: self.threads(),
            is_decoded: info.origin.is_some() || !info.uniform,
        };
        SourcedCrossover::of_user(&origin::machine()).judge(&run, &saved)
    }
}
