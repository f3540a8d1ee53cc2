//! Parts of every plot: size, letters, axes.

use super::palette::Ink;
use crate::report::present::page::PageError;
use crate::report::present::page::escape::escape;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{Cartesian2d, DrawingArea, IntoDrawingArea, PathElement, SVGBackend, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, TextStyle};
use std::cell::RefCell;

/// A drawing in progress.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A drawing's coordinates: numbers in both directions.
pub(super) type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;

/// The two renderings of each plot; the page shows the one that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report::present::page) enum Width {
    /// For a screen.
    Wide,
    /// For a phone.
    Narrow,
}

impl Width {
    /// Pixels across.
    pub(super) fn pixels(self) -> u32 {
        self.pick(928, 358)
    }

    /// One of two values.
    pub(super) fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Width::Wide => wide,
            Width::Narrow => narrow,
        }
    }
}

/// The size of letters in pixels.
pub(super) const LETTERS: f64 = 13.0;

/// The approximate width of a text in pixels.
pub(super) fn text_width(text: &str) -> i32 {
    (text.chars().count() as f64 * LETTERS * 0.56).ceil() as i32
}

/// Texts that appear where the pointer rests on a drawing: titles of invisible rectangles, without a script.
#[derive(Default)]
pub(super) struct Tooltips(RefCell<String>);

impl Tooltips {
    /// `text` between two corners, in pixels of the whole drawing; at least so large that a pointer finds it.
    pub(super) fn add(&self, from: (i32, i32), to: (i32, i32), text: &str) {
        const LEAST: i32 = 6;
        let side = |from: i32, to: i32| {
            let (low, high) = (from.min(to), from.max(to));
            let lacking = (LEAST - (high - low)).max(0);
            (low - lacking / 2, high - low + lacking)
        };
        let ((x, width), (y, height)) = (side(from.0, to.0), side(from.1, to.1));
        self.0.borrow_mut().push_str(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{}</title></rect>\n",
            escape(text)
        ));
    }

    /// `text` around a point.
    pub(super) fn around(&self, (x, y): (i32, i32), text: &str) {
        const REACH: i32 = 9;
        self.add((x - REACH, y - REACH), (x + REACH, y + REACH), text);
    }
}

/// Draws one rendering.
pub(super) fn svg(
    width: Width,
    height: u32,
    draw: impl FnOnce(&Area<'_>, &Tooltips) -> Result<(), PageError>,
) -> Result<String, PageError> {
    let mut text = String::new();
    let tooltips = Tooltips::default();
    {
        let area = SVGBackend::with_string(&mut text, (width.pixels(), height)).into_drawing_area();
        draw(&area, &tooltips)?;
        area.present()?;
    }
    // Over everything that is drawn.
    let tooltips = format!("<g class=\"hover\">\n{}</g>\n</svg>", tooltips.0.into_inner());
    Ok(text.replacen("</svg>", &tooltips, 1))
}

/// Letters of this ink, anchored at this point of the text.
pub(super) fn letters(ink: Ink, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    // The back end divides the size by 1.24.
    let font = ("system-ui, sans-serif", LETTERS * 1.24).into_font();
    TextStyle {
        font,
        color: ink.colour().to_backend_color(),
        pos: Pos::new(horizontal, vertical),
    }
}

/// Writes a text at a pixel.
pub(super) fn write(
    area: &Area<'_>,
    text: impl Into<String>,
    at: (i32, i32),
    style: TextStyle<'static>,
) -> Result<(), PageError> {
    Ok(area.draw(&Text::new(text.into(), at, style))?)
}

/// One axis.
pub(super) struct Axis {
    /// Its quantity, with the unit.
    pub(super) title: String,
    /// Its two ends.
    pub(super) ends: (f64, f64),
    /// Positions and texts of its labels.
    pub(super) labels: Vec<(f64, String)>,
}

impl Axis {
    /// From 0 to at least `most`, with about `count` labels at round numbers.
    pub(super) fn from_zero(title: impl Into<String>, most: f64, count: usize) -> Axis {
        let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
        let step = round_step(most / count.max(1) as f64);
        let last = (most / step).ceil() as usize;
        Axis {
            title: title.into(),
            ends: (0.0, last as f64 * step),
            labels: (0..=last)
                .map(|n| n as f64 * step)
                .map(|v| (v, number(v)))
                .collect(),
        }
    }

    /// As [`Axis::from_zero`], but ending where the data ends.
    pub(super) fn until(title: impl Into<String>, end: f64, count: usize) -> Axis {
        let mut axis = Axis::from_zero(title, end, count);
        if end > 0.0 && end.is_finite() {
            axis.ends.1 = end;
            axis.labels.retain(|(v, _)| *v <= end * 1.000_001);
        }
        axis
    }

    /// Decades: the coordinates are logarithms to base 10, and the title says so.
    pub(super) fn logarithmic(title: impl Into<String>, (least, most): (f64, f64), count: usize) -> Axis {
        let (low, high) = (least.max(1e-12).log10(), most.max(1e-12).log10());
        let (low, high) = if high - low < 0.1 {
            (low - 0.15, high + 0.15)
        } else {
            (low, high)
        };
        let mut labels = Vec::new();
        for factors in [
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0][..],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ] {
            labels = (low.floor() as i32..=high.ceil() as i32)
                .flat_map(|decade| factors.iter().map(move |f| f * 10_f64.powi(decade)))
                .filter(|v| (low - 1e-9..=high + 1e-9).contains(&v.log10()))
                .map(|v| (v.log10(), number(v)))
                .collect();
            if labels.len() <= count.max(2) {
                break;
            }
        }
        // Too many decades for a label each.
        let every = labels.len().div_ceil(count.max(2));
        Axis {
            title: format!("{}, log scale", title.into()),
            ends: (low, high),
            labels: labels.into_iter().step_by(every.max(1)).collect(),
        }
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * decade)
        .find(|step| *step >= least * 0.999_999)
        .unwrap_or(10.0 * decade)
}

/// A number in its shortest form, thousands as "k" and millions as "M".
pub(super) fn number(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 9.995e5 => (value / 1e6, "M"),
        v if v >= 9_995.0 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = match scaled.abs() {
        v if v >= 100.0 => format!("{scaled:.0}"),
        v if v >= 10.0 => format!("{scaled:.1}"),
        v if v >= 1.0 => format!("{scaled:.2}"),
        0.0 => "0".to_owned(),
        v => {
            let digits = (1.0 - v.log10().floor()) as usize;
            format!("{scaled:.digits$}")
        }
    };
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    text + unit
}

/// The unit in which `most` seconds and less are short numbers: its name and how many of it are a second.
pub(super) fn time_unit(most: f64) -> (&'static str, f64) {
    match most {
        s if s >= 1.0 => ("s", 1.0),
        s if s >= 1e-3 => ("ms", 1e3),
        _ => ("µs", 1e6),
    }
}

/// Draws the axes and gives the plane between them. The y axis' title stands above it, the x axis' below;
/// `above` more pixels between the title and the plane are left free.
pub(super) fn axes<'a, 'b>(
    area: &'b Area<'a>,
    x: &Axis,
    y: &Axis,
    above: i32,
) -> Result<ChartContext<'b, SVGBackend<'a>, Plane>, PageError> {
    let left = y
        .labels
        .iter()
        .map(|(_, text)| text_width(text))
        .max()
        .unwrap_or(0)
        + 12;
    let mut chart = ChartBuilder::on(area)
        .margin_top(26 + above)
        .margin_right(18)
        .margin_left(left)
        .margin_bottom(44)
        .build_cartesian_2d(x.ends.0..x.ends.1, y.ends.0..y.ends.1)?;
    let upright = x.labels.iter().map(|(v, _)| vec![(*v, y.ends.0), (*v, y.ends.1)]);
    let level = y.labels.iter().map(|(v, _)| vec![(x.ends.0, *v), (x.ends.1, *v)]);
    let line = |points| PathElement::new(points, Ink::Grid.colour());
    chart.draw_series(upright.chain(level).map(line))?;
    let ((from_x, to_x), (from_y, to_y)) = {
        let (x, y) = chart.plotting_area().get_pixel_range();
        ((x.start, x.end), (y.start, y.end))
    };
    for (value, text) in &y.labels {
        let at = chart.backend_coord(&(x.ends.0, *value));
        write(
            area,
            text,
            (local(area, (from_x, 0)).0 - 6, local(area, at).1),
            letters(Ink::Muted, HPos::Right, VPos::Center),
        )?;
    }
    for (value, text) in &x.labels {
        let at = chart.backend_coord(&(*value, y.ends.0));
        write(
            area,
            text,
            (local(area, at).0, local(area, (0, to_y)).1 + 6),
            letters(Ink::Muted, HPos::Center, VPos::Top),
        )?;
    }
    let origin = area.get_base_pixel();
    write(
        area,
        &y.title,
        (0, from_y - origin.1 - 22 - above),
        letters(Ink::Text, HPos::Left, VPos::Top),
    )?;
    write(
        area,
        &x.title,
        (i32::midpoint(from_x, to_x) - origin.0, to_y - origin.1 + 24),
        letters(Ink::Text, HPos::Center, VPos::Top),
    )?;
    Ok(chart)
}

/// A pixel of the whole drawing, counted from the area's own corner.
fn local(area: &Area<'_>, (x, y): (i32, i32)) -> (i32, i32) {
    let origin = area.get_base_pixel();
    (x - origin.0, y - origin.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.labels.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn axes_have_round_labels_that_cover_the_data() {
        let axis = Axis::from_zero("frames/s", 933.0, 5);
        assert_eq!(labels(&axis), ["0", "200", "400", "600", "800", "1000"]);
        assert_eq!(axis.ends, (0.0, 1000.0));
        let axis = Axis::until("ms", 0.37, 4);
        assert_eq!(
            (axis.ends, labels(&axis)),
            ((0.0, 0.37), vec!["0", "0.1", "0.2", "0.3"])
        );
        let axis = Axis::logarithmic("ms", (0.8, 300.0), 8);
        assert_eq!(labels(&axis), ["1", "2", "5", "10", "20", "50", "100", "200"]);
        let axis = Axis::logarithmic("ms", (1.0, 1.0), 4);
        assert!(axis.ends.0 < 0.0 && axis.ends.1 > 0.0 && labels(&axis).contains(&"1"));
        for nothing in [0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Axis::from_zero("", nothing, 4).ends, (0.0, 1.0));
        }
        assert!(Axis::logarithmic("", (1e-9, 1e9), 6).labels.len() <= 6);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.0025, 0.5, 1.0, 2.345, 12.34, 1948.0, 13_494.0, 2.5e6].map(number);
        assert_eq!(
            texts,
            ["0", "0.0025", "0.5", "1", "2.35", "12.3", "1948", "13.5k", "2.5M"]
        );
    }
}
