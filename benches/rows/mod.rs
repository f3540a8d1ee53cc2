//! Rows of a table of measurements: which ones are wanted, and the figure that stands for repeated ones.

/// True if the arguments, which are parts of rows' names, name this row, or there are none.
pub(crate) fn is_wanted(name: &str) -> bool {
    // cargo adds `--bench`.
    let mut wanted = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .peekable();
    wanted.peek().is_none() || wanted.any(|part| name.contains(&part))
}

/// The middle one of `values`, of which there is one at least.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
