//! Rows on their way in and out: a row of the picture becomes words, sums become a row of the result.

pub(super) mod alpha;
pub(super) mod border;
pub(super) mod complete;
pub(super) mod component;
pub(super) mod deinterleave;
pub(super) mod prefetch;
pub(super) mod requantize;
pub(super) mod sample;
pub(super) mod strip;
pub(super) mod widen;
