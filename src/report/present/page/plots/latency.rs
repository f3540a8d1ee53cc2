//! How long frames took, as histograms: from end to end, in each stage, and on the device.

use super::chart::{Area, Axis, Tooltips, Width, axes, letters, number, svg, time_unit, write};
use super::palette::Ink;
use crate::report::measure::latency::{LEAST_FOR_P99, recorded};
use crate::report::present::page::document::{Document, Key};
use crate::report::present::page::{PageError, latency_name};
use crate::report::{Measurements, Stage};
use crate::wording::counted;
use plotters::prelude::{PathElement, Rectangle};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

/// Intervals that a histogram's times are sorted into.
const BINS: usize = 36;

/// One histogram's name and its times: seconds, and how often.
struct Panel {
    name: String,
    times: Vec<(f64, u64)>,
}

/// Frames from end to end and in each stage.
pub(in crate::report::present::page) fn stages(
    document: &mut Document,
    measured: &Measurements,
) -> Result<(), PageError> {
    let mut panels = vec![Panel {
        name: "from end to end".to_owned(),
        times: measured.end_to_end.recorded(),
    }];
    panels.extend(Stage::ALL.map(|stage| Panel {
        name: latency_name(stage).to_owned(),
        times: measured.stage(stage).latency.recorded(),
    }));
    let caption = "How many frames took how long: from a frame's birth in the source to its being taken by \
        the sink, all waiting included; in the decoder and the encoder, waiting excluded; and in the engine, \
        from submit to collect, where it also waits for the frames before it.";
    draw(document, "latency", "Latency", caption, panels)
}

/// Frames on the device.
pub(in crate::report::present::page) fn device(
    document: &mut Document,
    measured: &Measurements,
) -> Result<(), PageError> {
    let Some(histograms) = measured.device.as_ref().and_then(|d| d.histograms.as_ref()) else {
        return Ok(());
    };
    let panels = ["upload", "kernels", "download"].into_iter().zip(histograms);
    let panels = panels.map(|(name, histogram)| Panel {
        name: name.to_owned(),
        times: recorded(histogram),
    });
    let caption = "How long each frame's upload, kernels and download took, by the device's own clock.";
    draw(
        document,
        "device-latency",
        "Times on the device",
        caption,
        panels.collect(),
    )
}

fn draw(
    document: &mut Document,
    id: &str,
    title: &str,
    caption: &str,
    panels: Vec<Panel>,
) -> Result<(), PageError> {
    let panels: Vec<Panel> = panels.into_iter().filter(|p| !p.times.is_empty()).collect();
    if panels.is_empty() {
        return Ok(());
    }
    let legend = [
        (Key::Fill(Ink::Series(0)), "frames".to_owned()),
        (
            Key::Mark(Ink::Limit, '│'),
            format!("median, 95th and, from {LEAST_FOR_P99} frames on, 99th percentile"),
        ),
    ];
    document.figure(id, title, caption, &legend, |width| {
        let across = width.pick(2, 1);
        let down = panels.len().div_ceil(across);
        svg(width, 224 * down as u32, |area, tooltips| {
            for (panel, place) in panels.iter().zip(area.split_evenly((down, across))) {
                panel_of((&place, tooltips), panel, width)?;
            }
            Ok(())
        })
    })
}

fn panel_of((area, tooltips): (&Area<'_>, &Tooltips), panel: &Panel, width: Width) -> Result<(), PageError> {
    let (unit, factor) = time_unit(percentile(&panel.times, 0.5));
    let times: Vec<(f64, u64)> = panel.times.iter().map(|(t, n)| (t * factor, *n)).collect();
    let least = times.first().map_or(1.0, |t| t.0);
    let most = times.last().map_or(1.0, |t| t.0);
    let x = Axis::logarithmic(
        format!("{}, {unit}", panel.name),
        (least, most * 1.000_001),
        width.pick(6, 6),
    );
    let bins = bins(&times, x.ends);
    let highest = bins.iter().copied().max().unwrap_or(1);
    let mut y = Axis::from_zero("frames", highest as f64, 3);
    y.labels.retain(|(value, _)| value.fract() == 0.0);
    let mut chart = axes(area, &x, &y, 16)?;
    let wide = (x.ends.1 - x.ends.0) / BINS as f64;
    chart.draw_series(
        bins.iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(index, &n)| {
                let from = x.ends.0 + index as f64 * wide;
                Rectangle::new(
                    [(from, 0.0), (from + wide * 0.92, n as f64)],
                    Ink::Series(0).colour().filled(),
                )
            }),
    )?;
    for (index, &n) in bins.iter().enumerate().filter(|(_, n)| **n > 0) {
        let [low, high] = [index, index + 1].map(|at| x.ends.0 + at as f64 * wide);
        let [from, to] = [(low, y.ends.1), (high, 0.0)].map(|at| chart.backend_coord(&at));
        let [low, high] = [low, high].map(|log| number(10_f64.powf(log)));
        let frames = counted(n, "frame");
        tooltips.add(from, to, &format!("{low} to {high} {unit}: {frames}"));
    }
    let mut free_from = i32::MIN;
    let count: u64 = times.iter().map(|(_, n)| n).sum();
    // Of fewer frames the 99th percentile is the slowest one.
    let marked = if count < LEAST_FOR_P99 { 2 } else { 3 };
    for (name, quantile) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]
        .into_iter()
        .take(marked)
    {
        let at = percentile(&times, quantile).log10().clamp(x.ends.0, x.ends.1);
        chart.draw_series([PathElement::new(
            vec![(at, 0.0), (at, y.ends.1)],
            Ink::Limit.colour().stroke_width(1),
        )])?;
        let (pixel, _) = chart.backend_coord(&(at, 0.0));
        let origin = area.get_base_pixel();
        let (pixel, right) = (pixel - origin.0, area.dim_in_pixel().0 as i32);
        // Overlapping names are left out; the lines stay.
        if pixel - 13 >= free_from {
            write(
                area,
                name,
                (pixel.min(right - 14), 23),
                letters(Ink::Limit, HPos::Center, VPos::Top),
            )?;
            free_from = pixel + 15;
        }
    }
    Ok(())
}

/// The time that this share of the frames did not exceed.
fn percentile(times: &[(f64, u64)], share: f64) -> f64 {
    let all: u64 = times.iter().map(|t| t.1).sum();
    let wanted = (all as f64 * share).ceil().max(1.0) as u64;
    let mut seen = 0;
    for (time, count) in times {
        seen += count;
        if seen >= wanted {
            return *time;
        }
    }
    times.last().map_or(0.0, |t| t.0)
}

/// How many times fall into each of the intervals between two logarithms.
fn bins(times: &[(f64, u64)], (low, high): (f64, f64)) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    for (time, count) in times {
        let place = (time.log10() - low) / (high - low) * BINS as f64;
        bins[(place.max(0.0) as usize).min(BINS - 1)] += count;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_a_bin_and_percentiles_are_of_the_frames() {
        let times = [(0.001, 50), (0.01, 45), (0.1, 4), (1.0, 1)];
        let bins = bins(&times, (-3.0, 0.0));
        assert_eq!(bins.iter().sum::<u64>(), 100);
        assert_eq!((bins[0], bins[12], bins[24], bins[35]), (50, 45, 4, 1));
        assert_eq!(
            [0.5, 0.95, 0.99, 1.0].map(|q| percentile(&times, q)),
            [0.001, 0.01, 0.1, 1.0]
        );
    }
}
