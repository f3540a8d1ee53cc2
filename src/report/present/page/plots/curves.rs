//! Curves and points between two axes.

use super::chart::{Area, Axis, axes, number, svg};
use super::palette::{Ink, SERIES};
use crate::report::present::page::PageError;
use crate::report::present::page::document::{Document, Key};
use plotters::prelude::{Circle, PathElement, Polygon};
use plotters::style::Color;

/// The scale of an axis.
#[derive(Debug, Clone)]
pub(crate) enum Scale {
    /// Logarithmic.
    Logarithmic,
    /// Logarithmic, with labels at exactly these values.
    LogarithmicAt(Vec<f64>),
    /// Linear, with labels at exactly these values.
    LinearAt(Vec<f64>),
}

/// One curve, or points that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// The text of the legend.
    pub(crate) name: String,
    /// The style that distinguishes it.
    pub(crate) style: SeriesStyle,
    /// The parts that are drawn.
    pub(crate) kind: CurveKind,
    /// Its points, in the axes' units.
    pub(crate) points: Vec<(f64, f64)>,
    /// The spread of repeated measurements around each point; empty if it is not shown.
    pub(crate) spreads: Vec<(f64, f64)>,
}

/// A colour and a shape, each by its number; both begin again after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesStyle {
    /// Which colour.
    pub(crate) colour: usize,
    /// Which shape its points have.
    pub(crate) shape: usize,
}

impl SeriesStyle {
    /// The nth of several that have nothing in common: neighbours differ in shape too, so that they can be
    /// distinguished without colours.
    pub(crate) fn nth(n: usize) -> SeriesStyle {
        SeriesStyle {
            colour: n,
            shape: n + n / SERIES,
        }
    }
}

/// The parts of a curve that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CurveKind {
    /// Its points, joined by a line.
    Joined,
    /// Its points alone.
    Points,
    /// Its points, joined by a dashed line: measurements of others.
    Dashed,
    /// A dashed line without points: a limit.
    Limit,
}

/// A plot of curves.
#[derive(Debug, Clone)]
pub(crate) struct Curves<'a> {
    /// The figure's name in the page.
    pub(crate) id: &'a str,
    /// Its heading.
    pub(crate) title: &'a str,
    /// The caption.
    pub(crate) caption: &'a str,
    /// The quantity of each axis, with its unit.
    pub(crate) axes: [(&'a str, Scale); 2],
    /// The curves.
    pub(crate) curves: &'a [Curve],
}

/// The shapes of points, in a legend.
const SHAPES: [char; 4] = ['●', '■', '▲', '◆'];

/// The colour and the letter that stand for a curve in a legend.
pub(super) fn key(style: SeriesStyle, kind: CurveKind) -> Key {
    let ink = Ink::Series(style.colour);
    match kind {
        CurveKind::Limit => Key::Mark(ink, '┅'),
        _ => Key::Mark(ink, SHAPES[style.shape % SHAPES.len()]),
    }
}

/// Draws a point of a curve around a pixel.
pub(super) fn mark(area: &Area<'_>, (x, y): (i32, i32), style: SeriesStyle) -> Result<(), PageError> {
    let filled = Ink::Series(style.colour).colour().filled();
    match style.shape % SHAPES.len() {
        0 => area.draw(&Circle::new((x, y), 5, filled))?,
        1 => area.draw(&Polygon::new(
            vec![(x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4)],
            filled,
        ))?,
        2 => area.draw(&Polygon::new(
            vec![(x, y - 6), (x + 6, y + 4), (x - 6, y + 4)],
            filled,
        ))?,
        _ => area.draw(&Polygon::new(
            vec![(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)],
            filled,
        ))?,
    }
    Ok(())
}

impl Scale {
    /// The position of a value.
    fn at(&self, value: f64) -> f64 {
        match self {
            Scale::LinearAt(_) => value,
            Scale::Logarithmic | Scale::LogarithmicAt(_) => value.max(1e-12).log10(),
        }
    }

    /// The axis for values from `least` to `most` with about `count` labels; `pad` leaves room at both ends.
    fn axis(&self, title: &str, (least, most): (f64, f64), count: usize, pad: f64) -> Axis {
        let labels = |values: &[f64]| {
            let step = values.len().div_ceil(count.max(1)).max(1);
            values
                .iter()
                .step_by(step)
                .map(|&v| (self.at(v), number(v)))
                .collect()
        };
        match self {
            Scale::Logarithmic => Axis::logarithmic(title, (least / (1.0 + pad), most * (1.0 + pad)), count),
            Scale::LogarithmicAt(values) => Axis {
                labels: labels(values),
                ..Axis::logarithmic(title, (least / (1.0 + pad), most * (1.0 + pad)), count)
            },
            Scale::LinearAt(values) => {
                let room = (most - least).max(1.0) * pad;
                Axis {
                    title: title.to_owned(),
                    ends: (least - room, most + room),
                    labels: labels(values),
                }
            }
        }
    }
}

impl Curves<'_> {
    /// Draws the plot into the page.
    pub(crate) fn draw(&self, document: &mut Document) -> Result<(), PageError> {
        let legend: Vec<(Key, String)> = self
            .curves
            .iter()
            .map(|curve| (key(curve.style, curve.kind), curve.name.clone()))
            .collect();
        let points = || self.curves.iter().flat_map(|c| &c.points);
        let span = |pick: fn(&(f64, f64)) -> f64| {
            points()
                .map(pick)
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                    (low.min(v), high.max(v))
                })
        };
        let (across, medians) = (span(|p| p.0), span(|p| p.1));
        if !(across.0.is_finite() && medians.0.is_finite()) {
            return Ok(());
        }
        let spreads = self.curves.iter().flat_map(|curve| &curve.spreads);
        let up = spreads.fold(medians, |(low, high), &(least, most)| {
            (low.min(least), high.max(most))
        });
        document.figure(self.id, self.title, self.caption, &legend, |width| {
            svg(width, width.pick(380, 320), |area, tooltips| {
                let [(x_title, x_scale), (y_title, y_scale)] = &self.axes;
                let x = x_scale.axis(x_title, across, width.pick(12, 6), 0.05);
                let y = y_scale.axis(y_title, up, 6, 0.2);
                let mut chart = axes(area, &x, &y, 0)?;
                for curve in self.curves {
                    let ink = Ink::Series(curve.style.colour).colour();
                    let at: Vec<(f64, f64)> = curve
                        .points
                        .iter()
                        .map(|p| (x_scale.at(p.0), y_scale.at(p.1)))
                        .collect();
                    match curve.kind {
                        CurveKind::Joined => {
                            chart.draw_series([PathElement::new(at.clone(), ink.stroke_width(2))])?;
                        }
                        CurveKind::Limit | CurveKind::Dashed => {
                            let pieces = width.pick(60, 30) / (at.len().max(2) as u32 - 1);
                            let dashes = at
                                .windows(2)
                                .flat_map(|ends| dashes(ends[0], ends[1], pieces.max(4)));
                            chart.draw_series(
                                dashes.map(|dash| PathElement::new(dash, ink.stroke_width(2))),
                            )?;
                        }
                        CurveKind::Points => {}
                    }
                    for (point, &(least, most)) in at.iter().zip(&curve.spreads) {
                        let ends = [least, most].map(|v| (point.0, y_scale.at(v)));
                        chart.draw_series([PathElement::new(ends.to_vec(), ink.stroke_width(1))])?;
                    }
                    if curve.kind != CurveKind::Limit {
                        for (index, (point, (x, y))) in at.iter().zip(&curve.points).enumerate() {
                            let pixel = chart.backend_coord(point);
                            mark(area, pixel, curve.style)?;
                            let (x, y) = (number(*x), number(*y));
                            let mut words = format!("{}\n{x_title}: {x}\n{y_title}: {y}", curve.name);
                            if let Some(&(least, most)) = curve.spreads.get(index) {
                                words += &format!(", from {} to {}", number(least), number(most));
                            }
                            tooltips.around(pixel, &words);
                        }
                    }
                }
                Ok(())
            })
        })
    }
}

/// Every second one of the pieces of a line.
fn dashes(from: (f64, f64), to: (f64, f64), pieces: u32) -> impl Iterator<Item = Vec<(f64, f64)>> {
    let at = move |n: u32| {
        let share = f64::from(n) / f64::from(pieces);
        (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
    };
    (0..pieces).step_by(2).map(move |n| vec![at(n), at(n + 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of lines of two points of this colour, in pixels down.
    fn lines(page: &str, ink: &str) -> Vec<(f64, f64)> {
        let of_line = |line: &str| {
            let points = line.strip_prefix("<polyline ")?.split_once("points=\"")?.1;
            let downs: Vec<f64> = points
                .split(['"', ' '])
                .filter_map(|point| point.split_once(',')?.1.parse().ok())
                .collect();
            match downs[..] {
                [a, b] if line.contains(ink) && line.contains("stroke-width=\"1\"") => Some((a, b)),
                _ => None,
            }
        };
        page.lines().filter_map(of_line).collect()
    }

    #[test]
    fn bars_are_drawn_to_their_ends() {
        let style = SeriesStyle::nth(0);
        let mut page = Document::new("bars");
        Curves {
            id: "bars",
            title: "bars",
            caption: "",
            axes: [
                ("width", Scale::LinearAt(vec![3.0, 7.0])),
                ("ms", Scale::Logarithmic),
            ],
            curves: &[Curve {
                name: "cpu".to_owned(),
                style,
                kind: CurveKind::Points,
                points: vec![(3.0, 1.0), (7.0, 2.0)],
                spreads: vec![(0.25, 16.0), (2.0, 4.0)],
            }],
        }
        .draw(&mut page)
        .unwrap();
        let page = page.finish();
        let ink = Ink::Series(style.colour).colour();
        let bars = lines(&page, &format!("#{:02X}{:02X}{:02X}", ink.0, ink.1, ink.2));
        // Both bars, in the wide drawing and in the narrow one.
        assert_eq!(bars.len(), 4, "{bars:?}");
        for pair in bars.chunks(2) {
            // Six times a factor of two beside one, to a pixel at either end.
            let (long, short) = (pair[0].0 - pair[0].1, pair[1].0 - pair[1].1);
            assert!((long - 6.0 * short).abs() <= 7.0, "{pair:?}");
        }
    }
}
