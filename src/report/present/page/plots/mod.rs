//! The plots of a page, as SVG: `chart` and `palette` are what all have in common.

pub(super) mod chart;
pub(super) mod curves;
pub(super) mod dot_plot;
pub(super) mod latency;
pub(super) mod palette;
pub(super) mod stacked_bars;
pub(super) mod throughput;
pub(super) mod timeline;
