//! Weighted sums of rows, for several algorithms.
//!
//! ```text
//! column_filter.rs   lines of pairs of words -> rows of the result               fir, pyramid
//!     taps.rs            its taps: places in lines, packed weights
//! decimator.rs       rows -> every D-th row of a Gaussian along the columns      pyramid, float
//! fused.rs           lines of floating-point numbers -> four rows of sums        float, doubles
//! integer.rs         i32 or i64, whichever holds the sums                        scalar, pyramid
//! ```

pub(in crate::engine::cpu) mod column_filter;
pub(in crate::engine::cpu) mod decimator;
pub(in crate::engine::cpu) mod fused;
pub(in crate::engine::cpu) mod integer;
pub(in crate::engine::cpu) mod taps;
