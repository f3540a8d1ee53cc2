//! Filters and their options, for every command that filters the user's pictures.

use super::words;
use crate::cli::Failure;
use clap::Args;
use framepipe::filter::{Algorithm, AlphaWeighting, Border, Chain, Filter, Planes};
use framepipe::frame::{Remarks, Turn};
use framepipe::source::turns;
use std::path::Path;

/// The filters, and how they are applied.
#[derive(Debug, Clone, Args)]
pub(crate) struct FilteringArguments {
    /// What is done to each frame, such as gaussian:sigma=2 or gaussian:2 (`framepipe masks` lists them);
    /// several are applied in order, given one by one or with commas between them. Masks lie on pictures as
    /// they are stored, before Exif or a video turns them.
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
    /// mirror (dcb|abcd|cba) or wrap (bcd|abcd|abc); the names of OpenCV and SciPy are known, too, and those
    /// of NumPy, whose reflect is called mirror here.
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

    /// What reports call the filters.
    pub(crate) fn labels(&self) -> impl Iterator<Item = String> {
        self.filters().map(|filter| filter.label.clone())
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
            notes: self.filters().filter_map(brightness).collect(),
            ..Remarks::warnings(self.filters().filter_map(|filter| filter.caveat.clone()))
        }
    }

    /// The files that masks were read from.
    pub(crate) fn mask_files(&self) -> impl Iterator<Item = &Path> {
        self.filters().filter_map(Filter::file)
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

    /// What there is to say of pictures that are shown turned, if a filter is not the same in all directions.
    pub(crate) fn saying_of_turns(&self) -> Option<turns::Saying> {
        let turns = || (2..=8).filter_map(Turn::from_exif);
        let mut filters = self.chain().filters;
        filters.retain(|filter| turns().any(|turn| filter.depends_on(turn)));
        (!filters.is_empty()).then(|| -> turns::Saying {
            Box::new(move |turn| {
                let filter = filters.iter().find(|filter| filter.depends_on(turn))?;
                Some(format!(
                    "{} is not the same in all directions, and is applied to pictures as they are stored; \
                     these are shown turned ({})",
                    filter.label,
                    turn.word()
                ))
            })
        })
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

/// A note about the user's own mask if it makes pictures brighter or darker, or leaves nothing of them.
fn brightness(filter: &Filter) -> Option<String> {
    // Half a level of 16 bits.
    const SMALLEST: f64 = 0.5 / 65535.0;
    if !filter.is_own() {
        return None;
    }
    let (label, weights) = (&filter.label, filter.mask.weights());
    let sum: f64 = weights.iter().sum();
    let magnitude: f64 = weights.iter().map(|weight| weight.abs()).sum();
    if magnitude == 0.0 {
        return Some(format!(
            "all weights of {label} are zero, so that nothing of the picture is left"
        ));
    }
    if magnitude < SMALLEST {
        return Some(format!(
            "the weights of {label} are so small that integer samples show nothing of the picture"
        ));
    }
    // Weights that cancel each other out show edges.
    let is_plain = (sum - 1.0).abs() < 1e-3 || sum.abs() < 1e-3 && sum.abs() < magnitude / 2.0;
    let shown = match sum.abs() < 1e-3 {
        true => format!("{sum:.1e}"),
        false => ((sum * 1000.0).round() / 1000.0).to_string(),
    };
    (!is_plain && filter.bias.value() == 0.0).then(|| {
        format!(
            "the weights of {label} add up to {shown}, which changes the brightness; divisor=sum keeps it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_masks_that_leave_nothing_of_the_picture_have_a_note() {
        let note = |spec: &str| brightness(&spec.parse().unwrap()).unwrap_or_default();
        for (spec, part) in [
            ("mask:rows=0", "all weights of mask:rows=0 are zero"),
            ("mask:rows=0:bias=9", "are zero"),
            ("mask:rows=1e-400", "all weights of mask:rows=1e-400 are zero"),
            ("mask:rows=1e-12", "so small that integer samples show nothing"),
            ("mask:rows=1e-6 0 -1e-6", "so small"),
            ("mask:rows=1e-4", "add up to 1.0e-4, which"),
            ("mask:rows=-1e-4", "add up to -1.0e-4, which"),
            ("mask:rows=.5", "add up to 0.5, which"),
            ("mask:rows=-1 3 -1.25", "add up to 0.75, which"),
        ] {
            assert!(note(spec).contains(part), "{spec}: {}", note(spec));
        }
        for spec in [
            "mask:rows=1",
            "mask:rows=.3333 .3333 .3334",
            "mask:rows=-1 2 -1",
            "mask:rows=-1 0 1.0001",
        ] {
            assert_eq!(note(spec), "");
        }
        assert_eq!(note("mask:rows=.5:bias=9"), "");
    }
}
