//! Shows measurements as tables in the terminal, as CSV, and as a page with curves.

mod csv;
mod html;
mod text;

pub use csv::CSV_COLUMNS;
pub(super) use text::Head;
pub use text::{columns, figure};
