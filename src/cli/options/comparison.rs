//! `--compare`: every frame shows before and after.

use crate::cli::endpoint::Output;
use clap::{Args, ValueEnum};
use framepipe::engine::Engine;
use framepipe::engine::compare::{Arrangement, Compare, Shown};
use framepipe::engine::none::NoFilter;
use framepipe::source::StreamInfo;

/// How before and after share a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Comparison {
    /// The left half before, the right half after, a line between them; the size stays.
    Split,
    /// Both whole, before on the left, in a width rounded up to whole chroma samples; after is on the right.
    Side,
}

/// Whether frames show what the filter does.
#[derive(Debug, Clone, Args)]
pub(crate) struct ComparisonArguments {
    /// Show what the filter does: every frame of the output has before and after, in the input's own samples
    /// and pixel format.
    #[arg(long, value_name = "LAYOUT", value_enum)]
    compare: Option<Comparison>,
}

impl ComparisonArguments {
    /// True if frames are to show before and after.
    pub(crate) fn is_given(&self) -> bool {
        self.compare.is_some()
    }

    /// How before and after lie in the output's frames; `None` where they are not wanted. `info` is what
    /// those would be without.
    fn layout(&self, info: &StreamInfo, output: &Output) -> Option<(Arrangement, Shown)> {
        let arrangement = match self.compare? {
            Comparison::Split => Arrangement::Split,
            Comparison::Side => Arrangement::Side,
        };
        let shown = match output {
            Output::Y4m(_) | Output::Raw(_) => Shown::AsStored,
            Output::Images(_) | Output::Video(_) | Output::Null => Shown::turned(&info.side_data),
        };
        Some((arrangement, shown))
    }

    /// The stream as the output gets it.
    pub(crate) fn output_info(&self, info: &StreamInfo, output: &Output) -> StreamInfo {
        let mut both = info.clone();
        if let Some((arrangement, shown)) = self.layout(info, output) {
            let mut sized = Compare::new(Box::new(NoFilter::default()), arrangement, shown);
            sized.leave_out_unfitting(&mut both.side_data);
            (both.width, both.height) = sized.output_size(info.format, info.width, info.height);
        }
        both
    }

    /// `engine`, wrapped by one that shows before and after if requested.
    pub(crate) fn around(
        &self,
        engine: Box<dyn Engine>,
        info: &StreamInfo,
        output: &Output,
    ) -> Box<dyn Engine> {
        match self.layout(info, output) {
            Some((arrangement, shown)) => {
                let mut compare = Compare::new(engine, arrangement, shown);
                compare.leave_out_unfitting(&mut info.side_data.clone());
                Box::new(compare)
            }
            None => engine,
        }
    }
}
