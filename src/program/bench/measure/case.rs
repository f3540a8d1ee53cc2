//! What is measured: an engine with its options, a filter, a format and a size.

use super::error::BenchError;
use crate::engine::EngineError;
use crate::engine::cpu::InstructionSet;
use crate::engine::cuda::MemoryVariant;
use crate::filter::{Algorithm, Border, Chain, Filter, FloatPlan, Kernel, Plan, Planes, PyramidGrid};
use crate::frame::{Colour, Layout, LayoutError, PixelFormat};
use crate::wording::counted;
use std::fmt;

/// What filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The reference engine. It is timed on a strip of the frame, and the time multiplied.
    Reference,
    /// The CPU engine.
    Cpu {
        /// Its threads.
        threads: usize,
        /// Its vector instructions; `None` for the best that this machine has.
        set: Option<InstructionSet>,
    },
    /// The CUDA engine.
    Cuda {
        /// Where kernels keep weights and pixels.
        memory: MemoryVariant,
        /// Threads of a block; `None` for the variant's own.
        block: Option<(u32, u32)>,
    },
}

impl Subject {
    /// True if it needs a card.
    pub fn needs_card(self) -> bool {
        matches!(self, Subject::Cuda { .. })
    }
}

/// One configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What filters.
    pub subject: Subject,
    /// The filter.
    pub filter: Filter,
    /// How the mask is applied.
    pub algorithm: Algorithm,
    /// What pixels outside the frame are.
    pub border: Border,
    /// The frames' pixel format.
    pub format: PixelFormat,
    /// Pixels across.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Case {
    /// The filter as a chain.
    pub fn chain(&self) -> Chain {
        Chain {
            filters: vec![self.filter.clone()],
            border: self.border,
            planes: Planes::All,
            algorithm: self.algorithm,
            alpha: Default::default(),
        }
    }

    pub(super) fn layout(&self) -> Result<Layout, LayoutError> {
        Layout::new(self.format, self.width, self.height, 64)
    }

    /// The same work for other engines has the same text.
    pub(super) fn work(&self) -> String {
        format!(
            "{} {} {} {} {}",
            self.filter.label, self.algorithm, self.border, self.format, self.width
        )
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject {
            Subject::Reference => f.write_str("reference")?,
            Subject::Cpu { threads, set } => {
                write!(f, "cpu, {}", counted(threads as u64, "thread"))?;
                set.map_or(Ok(()), |set| write!(f, ", {set}"))?;
            }
            Subject::Cuda { memory, block: None } => write!(f, "cuda {memory}")?,
            Subject::Cuda {
                memory,
                block: Some((w, h)),
            } => write!(f, "cuda {memory}, blocks of {w}x{h}")?,
        }
        write!(
            f,
            ", {} {}, {}x{} {}",
            self.filter.label, self.algorithm, self.width, self.height, self.format
        )
    }
}

/// The computation of a case, for samples of any kind.
pub(super) struct Arithmetic {
    /// "direct" or "separable".
    pub(super) algorithm: &'static str,
    /// Multiplications of a sample by a weight that a frame takes.
    pub(super) multiply_adds: u64,
}

impl Arithmetic {
    pub(super) fn of(case: &Case) -> Result<Arithmetic, BenchError> {
        let (chain, layout, colour) = (case.chain(), case.layout()?, Colour::default());
        let (is_separable, samples, each) = if case.format.is_float() {
            let plan = FloatPlan::new(&chain, case.format, &colour).map_err(EngineError::from)?;
            let kernel = plan.steps.first().map(|step| &step.kernel);
            let (is_separable, each) = kernel.map_or((false, 0), |k| (k.is_separable(), k.taps()));
            (is_separable, plan.convolved_samples(layout.planes()), each)
        } else {
            let plan = Plan::new(&chain, case.format, &colour)?;
            let (is_separable, each) = match plan.steps.first().map(|step| &step.kernel) {
                Some(Kernel::Direct(k)) => (false, k.width * k.height),
                Some(Kernel::Combined(k)) => (false, k.masks.len() * k.width * k.height),
                Some(Kernel::Separable(k)) => (true, k.row.weights.len() + k.column.weights.len()),
                // Of the low picture there is little.
                Some(Kernel::Pyramid(_)) => (false, 2 * PyramidGrid::TAPS),
                Some(Kernel::Weighted(k)) => (k.kernel.is_separable(), k.kernel.taps()),
                None => (false, 0),
            };
            (is_separable, plan.convolved_samples(layout.planes()), each)
        };
        Ok(Arithmetic {
            algorithm: if is_separable { "separable" } else { "direct" },
            multiply_adds: samples * each as u64,
        })
    }
}
