//! A sweep's cells as comma-separated values, one line each, with the names of the columns first.

use super::super::measure::{Cell, Sweep};

/// The columns, in order.
pub const CSV_COLUMNS: [&str; 32] = [
    "engine",
    "scope",
    "variant",
    "algorithm",
    "block",
    "threads",
    "filter",
    "mask_width",
    "mask_height",
    "format",
    "width",
    "height",
    "border",
    "milliseconds_median",
    "milliseconds_min",
    "milliseconds_p90",
    "milliseconds_count",
    "warm_milliseconds_median",
    "rows_timed",
    "frames_in_turn",
    "bytes",
    "multiply_adds",
    "gigapixels_per_second",
    "gigabytes_per_second",
    "gigamacs_per_second",
    "share_of_copy",
    "share_of_arithmetic",
    "reference_milliseconds",
    "speed_up",
    "published_milliseconds",
    "published_speed_up",
    "samples_checked",
];

impl Sweep {
    /// The cells as comma-separated values.
    pub fn to_csv(&self) -> String {
        let mut text = CSV_COLUMNS.join(",");
        text.push('\n');
        for cell in &self.cells {
            text.push_str(&values(cell).map(|value| quoted(&value)).join(","));
            text.push('\n');
        }
        text
    }
}

fn values(cell: &Cell) -> [String; CSV_COLUMNS.len()] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    [
        cell.engine.clone(),
        cell.scope.to_string(),
        cell.variant.clone().unwrap_or_default(),
        cell.algorithm.clone(),
        cell.block.clone().unwrap_or_default(),
        cell.threads.map_or_else(String::new, |t| t.to_string()),
        cell.filter.clone(),
        cell.mask_width.to_string(),
        cell.mask_height.to_string(),
        cell.format.clone(),
        cell.width.to_string(),
        cell.height.to_string(),
        cell.border.clone(),
        cell.milliseconds.median.to_string(),
        cell.milliseconds.min.to_string(),
        cell.milliseconds.p90.to_string(),
        cell.milliseconds.count.to_string(),
        number(cell.warm_milliseconds.map(|warm| warm.median)),
        cell.rows_timed.to_string(),
        cell.frames_in_turn.to_string(),
        cell.bytes.to_string(),
        cell.multiply_adds.to_string(),
        cell.gigapixels_per_second.to_string(),
        cell.gigabytes_per_second.to_string(),
        cell.gigamacs_per_second.to_string(),
        number(cell.share_of_copy),
        number(cell.share_of_arithmetic),
        number(cell.reference_milliseconds),
        number(cell.speed_up),
        number(cell.published_milliseconds),
        number(cell.published_speed_up),
        cell.samples_checked.to_string(),
    ]
}

/// A value between quotation marks where it holds a comma, a quotation mark or a line break.
fn quoted(value: &str) -> String {
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::bench::measure::sample::full;

    #[test]
    fn every_line_has_every_column() {
        let text = full().to_csv();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        let columns = lines[0].split(',').count();
        assert_eq!(columns, CSV_COLUMNS.len());
        assert_eq!(lines[1].split(',').count(), columns, "{}", lines[1]);
        assert!(
            lines[1].starts_with("cuda,kernel,auto,separable,64x4,"),
            "{}",
            lines[1]
        );
    }

    #[test]
    fn commas_and_quotation_marks_stay_inside_a_value() {
        let mut sweep = full();
        sweep.cells[0].filter = "mask:rows=1,\"2\"".to_owned();
        let text = sweep.to_csv();
        assert!(text.contains(",\"mask:rows=1,\"\"2\"\"\","), "{text}");
        assert_eq!(quoted("plain"), "plain");
    }
}
