//! Threads over rows.
