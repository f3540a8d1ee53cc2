//! Values of named things: a row for each name, a dot for each value.

use super::chart::{Axis, axes, number, svg};
use super::curves::{CurveKind, SeriesStyle, key, mark};
use crate::report::present::page::PageError;
use crate::report::present::page::document::{Document, Key};

/// Dots that stand for the same thing.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The text of the legend.
    pub(crate) name: String,
    /// The style that distinguishes it.
    pub(crate) style: SeriesStyle,
    /// Row and value of each dot.
    pub(crate) dots: Vec<(usize, f64)>,
}

/// A plot of dots.
#[derive(Debug, Clone)]
pub(crate) struct Dots<'a> {
    /// The figure's name in the page.
    pub(crate) id: &'a str,
    /// Its heading.
    pub(crate) title: &'a str,
    /// The caption.
    pub(crate) caption: &'a str,
    /// The meaning of the values, with their unit.
    pub(crate) axis: &'a str,
    /// The rows' names, from the top.
    pub(crate) rows: &'a [String],
    /// The dots.
    pub(crate) series: &'a [Series],
}

impl Dots<'_> {
    /// Draws the plot into the page.
    pub(crate) fn draw(&self, document: &mut Document) -> Result<(), PageError> {
        let values = || self.series.iter().flat_map(|s| &s.dots).map(|dot| dot.1);
        let (least, most) = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(0.0, f64::max),
        );
        if self.rows.is_empty() || !least.is_finite() || most <= 0.0 {
            return Ok(());
        }
        let legend: Vec<(Key, String)> = self
            .series
            .iter()
            .map(|s| (key(s.style, CurveKind::Points), s.name.clone()))
            .collect();
        // If the largest value would press all others to one side.
        let logarithmic = most > 8.0 * least && least > 0.0;
        document.figure(self.id, self.title, self.caption, &legend, |width| {
            svg(width, 26 * self.rows.len() as u32 + 74, |area, tooltips| {
                let count = self.rows.len() as f64;
                let x = if logarithmic {
                    Axis::logarithmic(self.axis, (least / 1.1, most * 1.1), width.pick(10, 5))
                } else {
                    Axis::from_zero(self.axis, most, width.pick(8, 4))
                };
                let y = Axis {
                    title: String::new(),
                    ends: (0.0, count),
                    labels: self
                        .rows
                        .iter()
                        .enumerate()
                        .map(|(row, name)| (count - row as f64 - 0.5, name.clone()))
                        .collect(),
                };
                let chart = axes(area, &x, &y, 0)?;
                for Series { name, style, dots } in self.series {
                    for &(row, value) in dots {
                        let x = if logarithmic { value.log10() } else { value };
                        let pixel = chart.backend_coord(&(x, count - row as f64 - 0.5));
                        mark(area, pixel, *style)?;
                        let row = self.rows.get(row).map_or("", String::as_str);
                        tooltips.around(pixel, &format!("{name}\n{row}\n{}: {}", self.axis, number(value)));
                    }
                }
                Ok(())
            })
        })
    }
}
