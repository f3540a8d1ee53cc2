//! How runs are timed: how often, on which frames, and what is stated of the times.
//!
//! ```text
//! effort   how long, how many times
//! frames   an engine on frames in turn                       -> times
//! copies   the same for plain copies, a peak rate            -> times
//! spread   times -> median, least, 90th percentile, count
//! ```

pub(super) mod copies;
pub(super) mod effort;
pub(super) mod frames;
pub(super) mod spread;
