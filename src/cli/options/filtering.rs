//! Filters and their options, for every command that filters the user's pictures.

use super::words;
use crate::cli::Failure;
use clap::Args;
use framepipe::filter::{Algorithm, AlphaWeighting, Border, Chain, Filter, Planes};
use framepipe::frame::Remarks;

/// The filters, and how they are applied.
#[derive(Debug, Clone, Args)]
pub(crate) struct FilteringArguments {
    /// What is done to each frame, such as gaussian:sigma=2 or gaussian:2 (`framepipe masks` lists them);
    /// several are applied in order, given one by one or with commas between them.
    #[arg(
        short,
        long = "filter",
        value_name = "SPEC",
        required = true,
        hide_possible_values = true
    )]
    #[arg(value_parser = words::filters(Chain::parse))]
    filters: Vec<Chain>,
    /// The pixels outside the frame: replicate (aaa|abcd|ddd), zero, constant:V, reflect (cba|abcd|dcb),
    /// mirror (dcb|abcd|cba) or wrap (bcd|abcd|abc); OpenCV's, NumPy's and SciPy's names are known, too.
    #[arg(long, value_name = "MODE", default_value_t, hide_possible_values = true)]
    #[arg(value_parser = words::borders(str::parse::<Border>))]
    pub(crate) border: Border,
    /// The components to change: all, all+alpha, luma (of RGB, too: the difference is added to red, green and
    /// blue), gray (luma filtered, colour dropped), chroma, or a list of y,u,v,r,g,b,a.
    #[arg(long, value_name = "PLANES", default_value_t, hide_possible_values = true)]
    #[arg(value_parser = words::planes(str::parse::<Planes>))]
    pub(crate) planes: Planes,
    /// How colour is filtered where there is alpha: weighted by it, so that transparent pixels contribute
    /// none, or straight, as if there were none.
    #[arg(long, value_name = "HOW", default_value_t, hide_possible_values = true)]
    #[arg(value_parser = words::alpha(str::parse::<AlphaWeighting>))]
    alpha: AlphaWeighting,
    /// How masks are applied: auto, direct, or separable (masks of rank 1 only).
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) algorithm: Algorithm,
    /// Turn every mask by 180 degrees: convolution in the mathematical sense instead of correlation.
    #[arg(long)]
    flip: bool,
    /// Filter the two fields of each picture separately, for interlaced video: the even rows as one picture,
    /// the odd ones as another.
    #[arg(long)]
    pub(crate) fields: bool,
}

impl FilteringArguments {
    /// The filters, in the order of their application.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter().flat_map(|chain| &chain.filters)
    }

    /// The options as a chain for the engines.
    pub(crate) fn chain(&self) -> Chain {
        let mut filters: Vec<Filter> = self.filters().cloned().collect();
        if self.flip {
            filters = filters.into_iter().map(Filter::flipped).collect();
        }
        Chain {
            filters,
            border: self.border,
            planes: self.planes.clone(),
            algorithm: self.algorithm,
            alpha: self.alpha,
        }
    }

    /// Notes about masks that differ from the request, or were perhaps not meant.
    pub(crate) fn caveats(&self) -> Remarks {
        Remarks {
            warnings: self
                .filters()
                .filter_map(|filter| filter.caveat.clone())
                .collect(),
            notes: self.filters().filter_map(brightness).collect(),
        }
    }

    /// Refuses masks from files, which an untrusted run must not read.
    pub(crate) fn check_untrusted(&self) -> Result<(), Failure> {
        match self.filters().find(|filter| filter.is_from_file()) {
            Some(filter) => Err(Failure::Usage(format!(
                "--untrusted reads no mask files; write the mask of {} in rows=",
                filter.label
            ))),
            None => Ok(()),
        }
    }

    /// A note about interlaced pictures whose fields a mask mixes, if one does; `whose` says which pictures.
    pub(crate) fn note_on_fields(&self, whose: &str) -> Option<String> {
        let mut filters = self.filters();
        let filter = filters.find(|filter| !self.fields && filter.mask.height() > 1)?;
        Some(format!(
            "note: {whose} pictures are interlaced, and {} mixes their fields; --fields filters them apart",
            filter.label
        ))
    }
}

/// A note about the user's own mask if it makes pictures brighter or darker.
fn brightness(filter: &Filter) -> Option<String> {
    let sum: f64 = filter.mask.weights().iter().sum();
    let is_plain = [0.0, 1.0].iter().any(|plain| (sum - plain).abs() < 1e-3);
    (filter.is_own() && !is_plain && filter.bias == 0.0).then(|| {
        format!(
            "the weights of {} add up to {}, which changes the brightness; divisor=sum keeps it",
            filter.label,
            (sum * 1000.0).round() / 1000.0
        )
    })
}
