//! What a call asks for: filters as text, border, planes, and a format of samples.

use crate::failure::Failure;
use framepipe::engine::luma;
use framepipe::{Border, Chain, PixelFormat, Planes};
use pyo3::prelude::*;

/// Threads of an engine: more than any machine has cores, and fewer than a system would give.
const MOST_THREADS: usize = 1024;

/// What a call asks for: the same for two calls means the same chain.
#[derive(PartialEq)]
pub(crate) struct Recipe {
    filters: Vec<String>,
    border: Border,
    planes: Planes,
    threads: usize,
}

impl Recipe {
    /// Reads the words; the filters are read by [`Recipe::chain`].
    pub(crate) fn new(
        filters: Vec<String>,
        border: &str,
        planes: &str,
        threads: i64,
    ) -> Result<Recipe, Failure> {
        let threads = usize::try_from(threads)
            .ok()
            .filter(|&threads| threads <= MOST_THREADS);
        let Some(threads) = threads else {
            return Err(Failure::value(format!(
                "threads must be 0 (one for each core) to {MOST_THREADS}"
            )));
        };
        Ok(Recipe {
            filters,
            border: border.parse()?,
            planes: planes.parse()?,
            threads,
        })
    }

    /// True if there is no filter.
    pub(crate) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Threads of the engine; 0 for one a core.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// True if pictures of this format are filtered by their luma, which is no component of theirs.
    pub(crate) fn takes_luma_of(&self, format: PixelFormat) -> bool {
        luma::filtered_format(format, &self.planes) != format
    }

    /// False if the next call could find another mask in the same file.
    pub(crate) fn may_be_kept(&self) -> bool {
        !self.filters.iter().any(|text| text.contains("file="))
    }

    /// The filters in order; an error if there is none.
    pub(crate) fn chain(&self) -> Result<Chain, Failure> {
        let mut chains = self.filters.iter().map(|text| Chain::parse(text));
        let Some(first) = chains.next() else {
            return Err(Failure::value(
                "there is no filter; give one such as 'gaussian:sigma=2'",
            ));
        };
        let mut chain = first?.with_border(self.border).with_planes(self.planes.clone());
        for more in chains {
            chain.filters.extend(more?.filters);
        }
        Ok(chain)
    }
}

/// Where masks are not quite what was requested.
pub(crate) fn caveats(chain: &Chain) -> Vec<String> {
    chain
        .filters
        .iter()
        .filter_map(|filter| filter.caveat.clone())
        .collect()
}

/// Reads filters and gives what there is to say of them.
#[pyfunction]
pub(crate) fn check_filters(filters: Vec<String>) -> Result<Vec<String>, Failure> {
    Ok(caveats(&Recipe::new(filters, "replicate", "all", 0)?.chain()?))
}

/// Components of a pixel of the format; an error if they do not lie side by side in samples of this size, or
/// if either are floating-point numbers and the others are not.
#[pyfunction]
pub(crate) fn channels_of(format: &str, sample_bytes: usize, is_float: bool) -> Result<usize, Failure> {
    let format: PixelFormat = format.parse()?;
    let [plane] = format.planes() else {
        return Err(Failure::value(format!(
            "{format} keeps its components in {} planes; filter each as an array of its own, with \
             format=\"gray\"",
            format.planes().len()
        )));
    };
    if format.bytes_per_sample() != sample_bytes {
        return Err(Failure::value(format!(
            "{format} has samples of {} bits, and the array's have {}",
            8 * format.bytes_per_sample(),
            8 * sample_bytes
        )));
    }
    if format.is_float() != is_float {
        let numbers = |is_float| {
            if is_float {
                "floating-point numbers"
            } else {
                "integers"
            }
        };
        return Err(Failure::value(format!(
            "samples of {format} are {}, and the array's are {}",
            numbers(format.is_float()),
            numbers(is_float)
        )));
    }
    Ok(plane.channels.len())
}

/// The largest value that a sample of the format has.
#[pyfunction]
pub(crate) fn largest_sample(format: &str) -> Result<u32, Failure> {
    Ok(format.parse::<PixelFormat>()?.max_value())
}

/// Why luma of RGB is not filtered where `it` is on a card.
pub(crate) fn no_luma_on_card(it: &str) -> Failure {
    Failure::value(format!(
        "luma of RGB is computed by the processor, and {it} on a card; filter in the host's memory"
    ))
}
