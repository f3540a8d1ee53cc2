//! Rows on their way in and out: a row of the picture becomes words, sums become a row of the result.

pub(super) mod alpha;
pub(super) mod border;
pub(super) mod complete;
pub(super) mod component;
#[cfg(target_arch = "x86_64")]
pub(super) mod deinterleave;
#[cfg(target_arch = "x86_64")]
pub(super) mod prefetch;
#[cfg(target_arch = "x86_64")]
pub(super) mod requantize;
#[cfg(target_arch = "x86_64")]
pub(super) mod sample;
pub(super) mod strip;
#[cfg(target_arch = "x86_64")]
pub(super) mod widen;
