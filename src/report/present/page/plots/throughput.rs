//! Frames a second over the run's time.

use super::chart::{Axis, axes, number, svg, time_unit};
use super::palette::Ink;
use crate::report::present::page::PageError;
use crate::report::present::page::document::{Document, Key};
use crate::report::{Report, ThroughputReport};
use plotters::prelude::PathElement;
use plotters::style::Color;

/// Points across a drawing at most.
const POINTS: usize = 64;

/// The least number of frames for a point, if there are enough: with fewer a steady run looks ragged, because
/// a frame falls into one interval or the next.
const FRAMES_A_POINT: f64 = 8.0;

pub(in crate::report::present::page) fn draw(
    document: &mut Document,
    report: &Report,
) -> Result<(), PageError> {
    let Some(throughput) = &report.throughput else {
        return Ok(());
    };
    let (interval, rates) = rates(throughput, report.wall_seconds);
    let caption = format!(
        "Frames handed to the output, counted over intervals of {}. The mean is that of the whole run, the \
         beginning and the finishing of the output included.",
        crate::report::present::text::time(interval)
    );
    steps(
        document,
        ("throughput", "Throughput over time", &caption),
        (interval, &rates),
        report.wall_seconds,
        report.frames_per_second,
    )
}

/// A plot of these rates, each over an interval of `interval` seconds, up to `end`, with their mean.
pub(in crate::report::present::page) fn steps(
    document: &mut Document,
    (id, title, caption): (&str, &str, &str),
    (interval, rates): (f64, &[f64]),
    end: f64,
    mean: f64,
) -> Result<(), PageError> {
    let legend = [
        (Key::Mark(Ink::Series(0), '━'), "frames/s".to_owned()),
        (
            Key::Mark(Ink::Limit, '┅'),
            format!("mean, {} frames/s", crate::report::present::text::number(mean)),
        ),
    ];
    document.figure(id, title, caption, &legend, |width| {
        svg(width, width.pick(260, 220), |area, tooltips| {
            let (unit, factor) = time_unit(end);
            let x = Axis::until(format!("time, {unit}"), end * factor, width.pick(8, 4));
            let most = rates.iter().copied().fold(mean, f64::max);
            let y = Axis::from_zero("frames/s", most, 4);
            let mut chart = axes(area, &x, &y, 0)?;
            let mut steps = Vec::with_capacity(2 * rates.len());
            for (index, rate) in rates.iter().enumerate() {
                let begin = index as f64 * interval;
                steps.push((begin * factor, *rate));
                steps.push(((begin + interval).min(end) * factor, *rate));
            }
            for (index, rate) in rates.iter().enumerate() {
                let begin = index as f64 * interval;
                let until = (begin + interval).min(end);
                let from = chart.backend_coord(&(begin * factor, y.ends.1));
                let to = chart.backend_coord(&(until * factor, 0.0));
                let [begin, until, rate] = [begin * factor, until * factor, *rate].map(number);
                tooltips.add(from, to, &format!("{begin} to {until} {unit}: {rate} frames/s"));
            }
            // After the last frame the output was finished.
            let last = steps.last().map_or(0.0, |s| s.0);
            if last < end * factor {
                steps.extend([(last, 0.0), (end * factor, 0.0)]);
            }
            chart.draw_series([PathElement::new(steps, Ink::Series(0).colour().stroke_width(2))])?;
            let dash = x.ends.1 / width.pick(80.0, 40.0);
            chart.draw_series((0..width.pick(80, 40)).step_by(2).map(|n| {
                let from = f64::from(n) * dash;
                PathElement::new(vec![(from, mean), (from + dash, mean)], Ink::Limit.colour())
            }))?;
            Ok(())
        })
    })
}

/// Frames a second over intervals coarse enough to show a trend, and the interval's length in seconds.
fn rates(throughput: &ThroughputReport, wall: f64) -> (f64, Vec<f64>) {
    let intervals = throughput.frames.len().max(1);
    let frames: u64 = throughput.frames.iter().sum();
    let each = frames as f64 / intervals as f64;
    let join = (intervals.div_ceil(POINTS)).max((FRAMES_A_POINT / each.max(1e-9)).ceil() as usize);
    let join = join.clamp(1, intervals);
    let length = throughput.interval_seconds * join as f64;
    let rates = throughput
        .frames
        .chunks(join)
        .enumerate()
        .map(|(index, chunk)| {
            // The run may have ended within the last one.
            let lasted = (wall - index as f64 * length).min(length);
            let whole = throughput.interval_seconds / 4.0;
            chunk.iter().sum::<u64>() as f64 / lasted.max(whole)
        })
        .collect();
    (length, rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_run_is_a_straight_line() {
        let throughput = ThroughputReport {
            interval_seconds: 0.01,
            // 50 frames a second.
            frames: [1, 0].repeat(100),
        };
        let (interval, rates) = rates(&throughput, 2.0);
        assert!((interval - 0.16).abs() < 1e-9);
        assert_eq!(rates.len(), 13);
        assert!(rates.iter().all(|r| (r - 50.0).abs() < 1e-6), "{rates:?}");
    }

    #[test]
    fn the_last_interval_may_be_short() {
        let throughput = ThroughputReport {
            interval_seconds: 1.0,
            frames: vec![100, 100, 50],
        };
        assert_eq!(rates(&throughput, 2.5), (1.0, vec![100.0, 100.0, 100.0]));
    }
}
