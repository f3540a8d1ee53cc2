//! Clocks and reports.
