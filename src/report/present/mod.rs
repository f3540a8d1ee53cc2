//! The report as people and programs read it.
//!
//! | file or folder | the report as |
//! |---|---|
//! | `text.rs`, over `table.rs` | a table of text |
//! | `trace.rs` | a trace for Perfetto |
//! | `page/` | a page of HTML with charts |

#[cfg(feature = "cli")]
pub mod page;
pub(crate) mod table;
pub(super) mod text;
mod trace;

pub use trace::{Alignment, Trace};
