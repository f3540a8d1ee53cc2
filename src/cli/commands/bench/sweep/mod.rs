//! Sweeps: every combination of some choices, measured one after another.

pub(super) mod blocks;
pub(super) mod kernels;
pub(super) mod threads;

use crate::cli::Failure;
use crate::cli::commands::bench::axis::{self, Size};
use crate::cli::commands::bench::run::Axes;
use clap::Args;
use framepipe::filter::{Border, Filter};
use framepipe::frame::PixelFormat;

/// The frames of a quick look.
const SMALL: Size = Size {
    width: 640,
    height: 360,
};

/// The usual frames.
const FULL_HD: Size = Size {
    width: 1920,
    height: 1080,
};

/// What is filtered, whatever filters it.
#[derive(Debug, Clone, Args)]
struct WorkArguments {
    /// Masks by their size: a Gaussian of each.
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 7, 15])]
    mask_sizes: Vec<usize>,
    /// Masks by name instead, such as laplacian8; may be given several times.
    #[arg(short, long = "filter", value_name = "SPEC", conflicts_with = "mask_sizes")]
    filters: Vec<Filter>,
    /// Frame sizes [default: 1920x1080].
    #[arg(long, value_name = "WxH", value_delimiter = ',')]
    sizes: Vec<Size>,
    /// Pixel formats.
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', default_value = "gray")]
    formats: Vec<PixelFormat>,
    /// What pixels outside the frame are.
    #[arg(long, value_name = "MODE", default_value_t)]
    border: Border,
}

impl WorkArguments {
    fn filters(&self) -> Result<Vec<Filter>, Failure> {
        axis::filters(&self.filters, &self.mask_sizes)
    }

    /// The sizes of frames; `usual` if none is given.
    fn sizes(&self, usual: &[Size]) -> Vec<Size> {
        match &self.sizes[..] {
            [] => usual.to_vec(),
            sizes => sizes.to_vec(),
        }
    }

    fn axes<'a>(&'a self, filters: &'a [Filter], sizes: &'a [Size]) -> Axes<'a> {
        Axes {
            sizes,
            formats: &self.formats,
            filters,
            border: self.border,
        }
    }
}
