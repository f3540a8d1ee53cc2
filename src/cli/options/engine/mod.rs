//! The engine and its options.

mod auto;

use crate::cli::Failure;
use crate::cli::process::limits::count;
use crate::cli::process::starting::Starting;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::cuda::{self, Cuda, CudaOptions, MemoryVariant, Overlap, Verdict};
use framepipe::engine::luma;
use framepipe::engine::none::NoFilter;
use framepipe::engine::pool::EnginePool;
use framepipe::engine::reference::Reference;
use framepipe::engine::several::Several;
use framepipe::engine::{EXPLAIN_TARGET, Engine, EngineError};
use framepipe::filter::{Chain, Plan};
use framepipe::frame::ColourModel;
use framepipe::source::StreamInfo;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// What people also call a card, wherever an option takes its engine or its decoders.
pub(crate) const CARD_ALIASES: [&str; 2] = ["gpu", "nvidia"];

/// The engines by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum EngineName {
    /// The CUDA card if there is one and the input is long enough to be worth its start, else the CPU.
    #[default]
    Auto,
    /// One thread, the plainest loop: what the others are compared with.
    Reference,
    /// All cores.
    Cpu,
    /// An NVIDIA card.
    #[value(aliases = CARD_ALIASES)]
    Cuda,
    /// No filter: what decoding and encoding take by themselves.
    None,
}

impl EngineName {
    /// Reads the name of an engine that filters. Parts of a job have no other, since each counts as filtered.
    pub(crate) fn of_filters() -> impl TypedValueParser<Value = EngineName> {
        let filters = |name: &&EngineName| **name != EngineName::None;
        let names = EngineName::value_variants().iter().filter(filters);
        PossibleValuesParser::new(names.filter_map(EngineName::to_possible_value))
            .try_map(|name| EngineName::from_str(&name, false))
    }
}

/// Memory variants of CUDA kernels by name: those that the engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryName(MemoryVariant);

impl MemoryName {
    const ALL: [MemoryName; MemoryVariant::ALL.len()] = {
        let mut all = [MemoryName(MemoryVariant::Auto); MemoryVariant::ALL.len()];
        let mut k = 0;
        while k < all.len() {
            all[k] = MemoryName(MemoryVariant::ALL[k]);
            k += 1;
        }
        all
    };

    pub(crate) fn variant(self) -> MemoryVariant {
        self.0
    }
}

impl ValueEnum for MemoryName {
    fn value_variants<'a>() -> &'a [MemoryName] {
        &MemoryName::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

/// How the work is done one step after another, to see what overlapping buys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Serial {
    /// From ordinary memory.
    Pageable,
    /// From page-locked memory.
    Pinned,
}

/// Which CUDA cards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cards {
    /// Those that there are.
    All,
    /// These.
    These(Vec<usize>),
}

impl FromStr for Cards {
    type Err = String;

    fn from_str(text: &str) -> Result<Cards, String> {
        if text == "all" {
            return Ok(Cards::All);
        }
        let numbers = text.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
        numbers
            .map(Cards::These)
            .map_err(|_| "write all, or numbers of cards such as 0,1".to_owned())
    }
}

impl Cards {
    /// The numbers of the cards. An error if one does not exist.
    pub(crate) fn numbers(&self) -> Result<Vec<usize>, EngineError> {
        let found =
            cuda::devices().map_err(|reason| EngineError::Unavailable(format!("no CUDA: {reason}")))?;
        let there: Vec<usize> = found.cards.iter().map(|card| card.ordinal).collect();
        match self {
            Cards::All => Ok(there),
            Cards::These(wanted) => match wanted.iter().find(|number| !there.contains(number)) {
                Some(number) => Err(EngineError::Unavailable(format!(
                    "there is no card {number}; `framepipe devices` lists them"
                ))),
                None => Ok(wanted.clone()),
            },
        }
    }
}

/// The shape of a CUDA block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// Threads across.
    pub(crate) width: u32,
    /// Threads down.
    pub(crate) height: u32,
}

/// A text that is no block shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no block shape; write WIDTHxHEIGHT in threads, at most 1024 in all, such as 32x8")]
pub(crate) struct BadBlock(String);

impl FromStr for Block {
    type Err = BadBlock;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadBlock(text.to_owned());
        let (width, height) = text.split_once('x').ok_or_else(bad)?;
        let number = |word: &str| word.parse::<u32>().ok().filter(|n| (1..=1024).contains(n));
        let (width, height) = number(width).zip(number(height)).ok_or_else(bad)?;
        if width * height > 1024 {
            return Err(bad());
        }
        Ok(Block { width, height })
    }
}

/// Vector instructions by name: those that the engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimdName(InstructionSet);

impl SimdName {
    const ALL: [SimdName; InstructionSet::ALL.len()] = {
        let mut all = [SimdName(InstructionSet::Portable); InstructionSet::ALL.len()];
        let mut k = 0;
        while k < all.len() {
            all[k] = SimdName(InstructionSet::ALL[k]);
            k += 1;
        }
        all
    };

    pub(crate) fn set(self) -> InstructionSet {
        self.0
    }
}

impl ValueEnum for SimdName {
    fn value_variants<'a>() -> &'a [SimdName] {
        &SimdName::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

/// The last heading of the help: options whose defaults are right for almost everybody.
pub(crate) const TUNING: &str = "Tuning";

/// The engine and its options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArguments {
    /// What filters.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: EngineName,
    /// Which CUDA card, counted from 0.
    #[arg(long, value_name = "N", conflicts_with = "devices")]
    pub(crate) device: Option<usize>,
    /// Several CUDA cards that take frames in turn: all, or numbers such as 0,1.
    #[arg(long, value_name = "LIST")]
    pub(crate) devices: Option<Cards>,
    /// Tell on stderr which engine was picked and how it makes each plane (algorithms and loops, or kernels),
    /// what each of several decoders did, and whether results stay on the card for its encoder.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Threads of the CPU engine [default: as many as there are cores].
    #[arg(long, value_name = "N", help_heading = TUNING, value_parser = count)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Vector instructions of the CPU engine's filters; conversions of pixels around them use the best
    /// [default: the best that this machine has].
    #[arg(long, value_enum, help_heading = TUNING)]
    pub(crate) simd: Option<SimdName>,
    /// CUDA: where kernels keep weights and pixels.
    #[arg(long, value_enum, help_heading = TUNING)]
    pub(crate) memory: Option<MemoryName>,
    /// CUDA: threads of a block, such as 32x8.
    #[arg(long, value_name = "WxH", help_heading = TUNING)]
    pub(crate) block: Option<Block>,
    /// CUDA: every filter of a chain in launches of its own, also where two in one are faster.
    #[arg(long, help_heading = TUNING)]
    pub(crate) no_fuse: bool,
    /// CUDA: frames in the ring, at least 2 [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=64))]
    #[arg(help_heading = TUNING)]
    pub(crate) slots: Option<u8>,
    /// CUDA: leave results on the card, to measure what the link takes. Only for null:, which reads none.
    #[arg(long, help_heading = TUNING)]
    pub(crate) keep_on_card: bool,
    /// CUDA: upload, filter and download one after another, from ordinary or from pinned memory.
    #[arg(long, value_enum, value_name = "MEMORY", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "pageable", help_heading = TUNING)]
    pub(crate) no_overlap: Option<Serial>,
    /// The card whose start is under way.
    #[arg(skip)]
    pub(crate) starting: Starting,
    /// Number of inputs that one engine filters, if known; 0 for one.
    #[arg(skip)]
    pub(crate) runs: u64,
    /// Nothing is said of the engine: it serves a trial of the output.
    #[arg(skip)]
    pub(crate) is_trial: bool,
    /// The times of each frame on the card are not needed.
    #[arg(skip)]
    pub(crate) samples_times: bool,
}

impl EngineArguments {
    /// The first given option that only CUDA has.
    pub(crate) fn cuda_option(&self) -> Option<&'static str> {
        [
            (self.device.is_some(), "--device"),
            (self.devices.is_some(), "--devices"),
            (self.memory.is_some(), "--memory"),
            (self.block.is_some(), "--block"),
            (self.no_fuse, "--no-fuse"),
            (self.slots.is_some(), "--slots"),
            (self.no_overlap.is_some(), "--no-overlap"),
            (self.keep_on_card, "--keep-on-card"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    /// The first given option that only the CPU engine has.
    fn cpu_option(&self) -> Option<&'static str> {
        [
            (self.threads.is_some(), "--threads"),
            (self.simd.is_some(), "--simd"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    /// Refuses options that do not apply to the chosen engine.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let refuse = |option: &str, of: &str| {
            Err(Failure::Usage(format!(
                "{option} is an option of the {of} engine; leave it out or choose --engine {of}"
            )))
        };
        match (self.engine, self.cuda_option()) {
            (EngineName::Reference | EngineName::Cpu | EngineName::None, Some(option)) => {
                refuse(option, "cuda")
            }
            (EngineName::Reference | EngineName::Cuda | EngineName::None, _) => match self.cpu_option() {
                Some(option) => refuse(option, "cpu"),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Chooses the CPU if the engine is `auto`.
    pub(crate) fn without_card(&mut self) {
        if self.engine == EngineName::Auto {
            self.engine = EngineName::Cpu;
        }
    }

    /// The cards that filter, or that `auto` may use; `None` if no card will.
    pub(crate) fn possible_cards(&self) -> Option<Vec<usize>> {
        let is_possible = match self.engine {
            EngineName::Cuda => true,
            EngineName::Auto => cuda::has_driver(),
            EngineName::Reference | EngineName::Cpu | EngineName::None => false,
        };
        let numbers = || self.cards().ok().filter(|cards| !cards.is_empty());
        is_possible.then(numbers).flatten()
    }

    /// The cards that the user names, or the default one.
    fn cards(&self) -> Result<Vec<usize>, EngineError> {
        match &self.devices {
            Some(cards) => cards.numbers(),
            None => Ok(vec![self.device.unwrap_or(CudaOptions::default().device)]),
        }
    }

    /// True if a card is needed.
    pub(crate) fn wants_card(&self) -> bool {
        self.engine == EngineName::Cuda
    }

    /// Starts the engine for frames as `info` describes them: for `auto` a card if one can be used, else the
    /// CPU.
    pub(crate) fn start(&self, chain: Chain, info: &StreamInfo) -> Result<Box<dyn Engine>, EngineError> {
        self.start_by(chain, info, |chain, plan| self.choose(chain, plan, info))
    }

    /// The same, but takes an engine from `pool` if it has one. The engine returns there after its run.
    pub(crate) fn start_or_reuse(
        &self,
        chain: Chain,
        info: &StreamInfo,
        pool: &EnginePool,
    ) -> Result<Box<dyn Engine>, EngineError> {
        self.start_by(chain, info, |chain, plan| {
            // The pool may hold a CPU engine from a short input, while this input is worth a card.
            let needs_card = || {
                self.engine == EngineName::Auto
                    && cuda::has_driver()
                    && self.verdict(&chain, info).takes_card
                    && check_card(plan).is_ok()
            };
            let fits = |engine: &dyn Engine| engine.name() == "cuda" || !needs_card();
            pool.take(fits, || self.choose(chain.clone(), plan, info))
        })
    }

    fn start_by(
        &self,
        chain: Chain,
        info: &StreamInfo,
        start: impl FnOnce(Chain, Option<&Plan>) -> Result<Box<dyn Engine>, EngineError>,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let planes = chain.planes.clone();
        // Reports before anything is written the error that the engine would report at the first frame.
        let plan = luma::integer_plan(&chain, info.format, &info.colour)?;
        let may_be_rgb = info.format.model() == ColourModel::Rgb || !info.uniform;
        let engine = luma::around(start(chain, plan.as_ref())?, &planes, may_be_rgb, self.threads())?;
        if !self.is_trial {
            tracing::info!(target: EXPLAIN_TARGET, "{}", engine.description());
        }
        Ok(engine)
    }

    /// The engine that the user chose. Floating-point samples have no `plan` of integers.
    fn choose(
        &self,
        chain: Chain,
        plan: Option<&Plan>,
        info: &StreamInfo,
    ) -> Result<Box<dyn Engine>, EngineError> {
        match self.engine {
            EngineName::Reference => Ok(Box::new(Reference::new(chain))),
            EngineName::None => Ok(Box::new(NoFilter::default())),
            EngineName::Cpu => self.cpu(chain),
            EngineName::Cuda => {
                plan.map_or(Ok(()), cuda::check)?;
                self.card(&chain)
            }
            EngineName::Auto => self.by_itself(chain, plan, info),
        }
    }

    /// The engine that `auto` chooses.
    fn by_itself(
        &self,
        chain: Chain,
        plan: Option<&Plan>,
        info: &StreamInfo,
    ) -> Result<Box<dyn Engine>, EngineError> {
        // Without a driver there is no choice.
        let verdict = cuda::has_driver().then(|| self.verdict(&chain, info));
        if let Some(Verdict {
            takes_card: false,
            why,
            ..
        }) = verdict
        {
            tracing::info!(target: EXPLAIN_TARGET, "auto: cpu, because {why}");
            return self.cpu(chain);
        }
        if let Err(reason) = check_card(plan) {
            if let Some(option) = self.cuda_option() {
                return Err(EngineError::Unavailable(format!(
                    "{option} is an option of the cuda engine, which is not available: {reason}"
                )));
            }
            tracing::info!(target: EXPLAIN_TARGET, "no CUDA: {reason}");
            return self.cpu(chain);
        }
        if let Some(Verdict { why, .. }) = verdict {
            tracing::info!(target: EXPLAIN_TARGET, "auto: cuda, because {why}");
        }
        self.card(&chain)
    }

    /// The card that is already being started, or one that is started now.
    fn card(&self, chain: &Chain) -> Result<Box<dyn Engine>, EngineError> {
        self.starting.take().unwrap_or_else(|| self.cuda(chain))
    }

    fn cpu(&self, chain: Chain) -> Result<Box<dyn Engine>, EngineError> {
        let set = self.simd.map_or_else(InstructionSet::detect, SimdName::set);
        Ok(Box::new(Cpu::with_instruction_set(chain, self.threads(), set)?))
    }

    pub(crate) fn cuda(&self, chain: &Chain) -> Result<Box<dyn Engine>, EngineError> {
        let start = |device: usize| self.cuda_on(device, chain.clone());
        let mut engines = self
            .cards()?
            .into_iter()
            .map(start)
            .collect::<Result<Vec<_>, _>>()?
            .into_iter();
        let first = engines.next();
        let first = first.ok_or_else(|| EngineError::Unavailable("there is no CUDA card".to_owned()))?;
        Ok(match engines.len() {
            0 => first,
            _ => Box::new(Several::new(first, engines)),
        })
    }

    fn cuda_on(&self, device: usize, chain: Chain) -> Result<Box<dyn Engine>, EngineError> {
        let defaults = CudaOptions::default();
        let options = CudaOptions {
            device,
            memory: self.memory.map_or(defaults.memory, MemoryName::variant),
            block: self.block.map(|b| (b.width, b.height)),
            fuse: !self.no_fuse,
            slots: self.slots.map_or(defaults.slots, usize::from),
            overlap: match self.no_overlap {
                None => Overlap::Ring,
                Some(Serial::Pageable) => Overlap::SerialPageable,
                Some(Serial::Pinned) => Overlap::SerialPinned,
            },
            write_combined: defaults.write_combined,
            keeps_results: self.keep_on_card,
            samples_times: self.samples_times,
        };
        Ok(Box::new(Cuda::new(chain, options)?))
    }

    /// Gives each of `count` parallel engines its share of the cores, unless the user chose the number of
    /// threads.
    pub(crate) fn share_cores(&mut self, count: NonZeroUsize) {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.threads = self
            .threads
            .or_else(|| NonZeroUsize::new(cores.div_ceil(count.get())).filter(|_| count.get() > 1));
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }
}

/// Refuses a card that cannot be used, and a plan for which it has no kernel.
pub(crate) fn check_card(plan: Option<&Plan>) -> Result<(), EngineError> {
    cuda::available()?;
    plan.map_or(Ok(()), cuda::check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_limits() {
        assert_eq!("32x8".parse(), Ok(Block { width: 32, height: 8 }));
        for bad in ["32", "0x8", "32x", "64x32", "axb", "32x8x1", "-1x4"] {
            assert_eq!(bad.parse::<Block>(), Err(BadBlock(bad.to_owned())));
        }
    }
}
