//! The values of a sweep's axes as text.

use crate::cli::Failure;
use crate::cli::options::engine::{Block, CARD_ALIASES};
use clap::ValueEnum;
use framepipe::filter::{Algorithm, Filter};
use framepipe::program::bench::Scope;
use std::fmt;
use std::str::FromStr;

/// A frame's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// A text that is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no size; write WIDTHxHEIGHT in pixels, such as 1920x1080")]
pub(super) struct BadSize(String);

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |word: &str| word.parse().ok().filter(|n| (1..=1 << 20).contains(n));
        text.split_once('x')
            .and_then(|(w, h)| {
                Some(Size {
                    width: number(w)?,
                    height: number(h)?,
                })
            })
            .ok_or_else(|| BadSize(text.to_owned()))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// A block, or the variant's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockChoice(pub(super) Option<(u32, u32)>);

impl FromStr for BlockChoice {
    type Err = <Block as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(BlockChoice(None));
        }
        let block: Block = text.parse()?;
        Ok(BlockChoice(Some((block.width, block.height))))
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Measured {
    /// One plain thread.
    Reference,
    /// The CPU engine.
    Cpu,
    /// An NVIDIA card.
    #[value(aliases = CARD_ALIASES)]
    Cuda,
}

/// What a time covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ScopeName {
    /// The convolution alone.
    Kernel,
    /// Frame up, kernels, down, one after another, from ordinary memory.
    Pageable,
    /// The same from page-locked memory.
    Pinned,
    /// A frame in the ring's steady state.
    Ring,
}

impl ScopeName {
    pub(super) fn scope(self) -> Scope {
        match self {
            ScopeName::Kernel => Scope::Kernel,
            ScopeName::Pageable => Scope::Pageable,
            ScopeName::Pinned => Scope::Pinned,
            ScopeName::Ring => Scope::Ring,
        }
    }
}

/// Logs masks that differ from the request.
pub(super) fn warn_of_caveats(filters: &[Filter]) {
    for caveat in filters.iter().filter_map(|filter| filter.caveat.as_ref()) {
        tracing::warn!("{caveat}");
    }
}

/// The requested filters: the named ones, or else a Gaussian of each size.
pub(super) fn filters(written: &[Filter], mask_sizes: &[usize]) -> Result<Vec<Filter>, Failure> {
    warn_of_caveats(written);
    if !written.is_empty() {
        return Ok(written.to_vec());
    }
    mask_sizes
        .iter()
        .map(|size| gaussian(*size).map_err(|error| Failure::usage(&error)))
        .collect()
}

fn gaussian(size: usize) -> Result<Filter, framepipe::filter::FilterError> {
    format!("gaussian:size={size}").parse()
}

/// The requested algorithms that can apply a filter.
pub(super) fn algorithms(asked: &[Algorithm], filter: &Filter, are_given: bool) -> Vec<Algorithm> {
    let separable = filter.is_separable();
    let mut algorithms = asked.to_vec();
    // An algorithm requested by name is tried, and refused with a reason.
    if !are_given && !separable {
        algorithms.retain(|a| *a != Algorithm::Separable);
    }
    algorithms
}

/// 1, 2, 4 and so on, up to the number of cores, which is the last.
pub(super) fn powers_of_two_to(cores: usize) -> Vec<usize> {
    let mut threads: Vec<usize> = (0..)
        .map(|power| 1 << power)
        .take_while(|&threads| threads < cores)
        .collect();
    threads.push(cores.max(1));
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_blocks_have_limits() {
        let size = Size {
            width: 1920,
            height: 1080,
        };
        assert_eq!("1920x1080".parse(), Ok(size));
        assert_eq!(size.to_string(), "1920x1080");
        for bad in ["1920", "0x5", "5x0", "axb", "1920x1080x3", "9999999x1", ""] {
            let error = bad.parse::<Size>().unwrap_err();
            assert!(error.to_string().contains("such as 1920x1080"), "{error}");
        }
        assert_eq!("auto".parse(), Ok(BlockChoice(None)));
        assert_eq!("32x8".parse(), Ok(BlockChoice(Some((32, 8)))));
        assert!("64x64".parse::<BlockChoice>().is_err());
    }

    #[test]
    fn threads_end_with_all_cores() {
        assert_eq!(powers_of_two_to(1), [1]);
        assert_eq!(powers_of_two_to(2), [1, 2]);
        assert_eq!(powers_of_two_to(6), [1, 2, 4, 6]);
        assert_eq!(powers_of_two_to(16), [1, 2, 4, 8, 16]);
    }

    #[test]
    fn only_what_was_asked_for_by_name_may_be_refused() {
        let edge: Filter = "laplacian8".parse().unwrap();
        let both = [Algorithm::Direct, Algorithm::Separable];
        assert_eq!(algorithms(&both, &edge, false), [Algorithm::Direct]);
        assert_eq!(algorithms(&both, &edge, true), both);
        assert_eq!(algorithms(&both, &"box:size=3".parse().unwrap(), false), both);
    }

    #[test]
    fn mask_sizes_become_gaussians() {
        let filters = filters(&[], &[3, 5]).unwrap();
        assert_eq!(filters[1].label, "gaussian:size=5");
        assert!(matches!(super::filters(&[], &[4]), Err(Failure::Usage(_))));
    }
}
