//! The results of several inputs: a line each, and the sums.

use framepipe::wording::{counted, size};
use std::fmt::Write;
use std::time::Duration;

/// The result of an input.
pub(super) enum End {
    /// Its output is whole.
    Done(Figures),
    /// Its output ends early, since the run was interrupted.
    Short(Figures),
    /// Its output was there.
    There,
    /// It failed, for this reason.
    Failed(String),
    /// The run ended first, and its output was removed.
    Stopped,
    /// The run ended before its turn.
    NotBegun,
}

/// An output in figures.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    pub(super) frames: u64,
    pub(super) time: Duration,
    pub(super) bytes: u64,
}

/// A line of the table.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) end: End,
}

impl Figures {
    fn cells(&self) -> [String; 4] {
        [
            self.frames.to_string(),
            format!("{:.1}", self.time.as_secs_f64()),
            format!("{:.1}", self.speed()),
            size(self.bytes),
        ]
    }

    fn speed(&self) -> f64 {
        self.frames as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

/// The table, and below it the sums; `wall` is the time of the whole run.
pub(super) fn table(rows: &[Row], wall: Duration) -> String {
    const HEAD: [&str; 4] = ["frames", "seconds", "frames/s", "size"];
    let name_width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let mut widths = HEAD.map(str::len);
    for figures in rows.iter().filter_map(|row| row.end.figures()) {
        for (width, cell) in widths.iter_mut().zip(figures.cells()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let aligned = |cells: [String; 4]| -> String {
        let cells = cells.iter().zip(widths);
        cells.map(|(cell, width)| format!("  {cell:>width$}")).collect()
    };
    let mut text = format!("{:name_width$}{}\n", "", aligned(HEAD.map(str::to_owned)));
    for row in rows {
        let name = &row.name;
        let rest = match &row.end {
            End::Done(figures) => aligned(figures.cells()),
            End::Short(figures) => format!("{}  interrupted: it ends early", aligned(figures.cells())),
            End::There => "  its output is there".to_owned(),
            End::Failed(reason) => format!("  failed: {reason}"),
            End::Stopped => "  stopped: nothing of it is left".to_owned(),
            End::NotBegun => "  not begun".to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:name_width$}{rest}");
    }
    text.push_str(&sums(rows, wall));
    text
}

/// The last line.
fn sums(rows: &[Row], wall: Duration) -> String {
    let mut total = Figures {
        time: wall,
        ..Figures::default()
    };
    for figures in rows.iter().filter_map(|row| row.end.figures()) {
        total.frames += figures.frames;
        total.bytes += figures.bytes;
    }
    let count = |is: fn(&End) -> bool| rows.iter().filter(|row| is(&row.end)).count();
    let done = count(|end| matches!(end, End::Done(_)));
    let mut text = match rows.len() {
        all if all == done => counted(all as u64, "file"),
        all => format!("{done} of {}", counted(all as u64, "file")),
    };
    for (number, words) in [
        (count(|end| matches!(end, End::Failed(_))), "failed"),
        (count(|end| matches!(end, End::There)), "there already"),
        (
            count(|end| matches!(end, End::Short(_) | End::Stopped)),
            "interrupted",
        ),
        (count(|end| matches!(end, End::NotBegun)), "not begun"),
    ] {
        if number > 0 {
            let _ = write!(text, ", {number} {words}");
        }
    }
    let _ = write!(
        text,
        ": {} in {:.1} s: {:.1} frames/s, {}",
        counted(total.frames, "frame"),
        wall.as_secs_f64(),
        total.speed(),
        size(total.bytes)
    );
    text
}

impl End {
    fn figures(&self) -> Option<&Figures> {
        match self {
            End::Done(figures) | End::Short(figures) => Some(figures),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_reasons_stand_in_their_place() {
        let figures = |frames, seconds, bytes| Figures {
            frames,
            time: Duration::from_secs(seconds),
            bytes,
        };
        let row = |name: &str, end| Row {
            name: name.to_owned(),
            end,
        };
        let rows = [
            row("a.mp4", End::Done(figures(300, 4, 1_234_567))),
            row("broken.mp4", End::Failed("no moov".to_owned())),
            row("c.mp4", End::There),
            row("d.mp4", End::Done(figures(12_000, 100, 12_345_678))),
        ];
        let expected = "\
\x20           frames  seconds  frames/s    size
a.mp4          300      4.0      75.0  1.2 MB
broken.mp4  failed: no moov
c.mp4       its output is there
d.mp4        12000    100.0     120.0   12 MB
2 of 4 files, 1 failed, 1 there already: 12300 frames in 104.0 s: 118.3 frames/s, 14 MB";
        assert_eq!(table(&rows, Duration::from_secs(104)), expected);
    }
}
