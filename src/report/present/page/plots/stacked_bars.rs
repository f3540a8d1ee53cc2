//! The time of each stage and of the device, as stacked bars.

use super::chart::{Area, Axis, Width, axes, letters, number, svg, text_width, time_unit, write};
use super::palette::Ink;
use crate::report::present::page::PageError;
use crate::report::present::page::document::{Document, Key};
use crate::report::{DeviceReport, Report};
use plotters::prelude::Rectangle;
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

/// One bar of several pieces.
struct Bar {
    name: String,
    pieces: Vec<(Ink, f64)>,
}

/// Pixels from one bar to the next.
const PITCH: u32 = 44;

/// Work and waits as shares, in percent.
fn shares(busy: f64, no_input: f64, no_room: f64) -> Vec<(Ink, f64)> {
    let shares = [
        (Ink::Busy, busy),
        (Ink::NoInput, no_input),
        (Ink::NoRoom, no_room),
    ];
    shares.map(|(ink, share)| (ink, share * 100.0)).into()
}

/// The stages' work and waits.
pub(in crate::report::present::page) fn stages(
    document: &mut Document,
    report: &Report,
) -> Result<(), PageError> {
    let bars: Vec<Bar> = report
        .stages
        .iter()
        .map(|stage| Bar {
            name: stage.stage.to_string(),
            pieces: shares(
                stage.occupancy.busy_share,
                stage.occupancy.input_wait_share,
                stage.occupancy.output_wait_share,
            ),
        })
        .collect();
    let legend = [
        (Key::Fill(Ink::Busy), "busy".to_owned()),
        (Key::Fill(Ink::NoInput), "waits for a frame".to_owned()),
        (
            Key::Fill(Ink::NoRoom),
            "waits for a buffer or for room".to_owned(),
        ),
    ];
    let caption = "Shares of the time of all the stage's threads. The stage that is busy nearly all of the \
        time holds the others up; what is missing to 100% is starting and ending.";
    document.figure("stages", "What the stages did", caption, &legend, |width| {
        draw(
            width,
            (&bars, &legend),
            &Axis::from_zero("share of the stage's time, %", 100.0, 5),
            "%",
        )
    })
}

/// The device's uploads, kernels and downloads, and the part of the transfers that overlaps other work.
pub(in crate::report::present::page) fn device(
    document: &mut Document,
    device: &DeviceReport,
) -> Result<(), PageError> {
    let a_frame = 1.0 / device.frames.max(1) as f64;
    let [up, kernel, down] = [
        device.upload.seconds,
        device.kernel.seconds,
        device.download.seconds,
    ]
    .map(|s| s * a_frame);
    let (unit, factor) = time_unit(up + kernel + down);
    let hidden = (up + down) * device.transfer_hidden;
    let bars = [
        Bar {
            name: "work".to_owned(),
            pieces: [(Ink::Upload, up), (Ink::Kernel, kernel), (Ink::Download, down)]
                .map(|(ink, s)| (ink, s * factor))
                .into(),
        },
        Bar {
            name: "wall time".to_owned(),
            pieces: vec![
                (Ink::Wall, device.wall_seconds * a_frame * factor),
                (Ink::Hidden, hidden * factor),
            ],
        },
    ];
    let legend = [
        (Key::Fill(Ink::Upload), "upload".to_owned()),
        (Key::Fill(Ink::Kernel), "kernels".to_owned()),
        (Key::Fill(Ink::Download), "download".to_owned()),
        (Key::Fill(Ink::Wall), "wall time".to_owned()),
        (
            Key::Fill(Ink::Hidden),
            "transfers hidden behind other work".to_owned(),
        ),
    ];
    let caption = format!(
        "A frame's share of the device's time, as a mean over {} frames: above, what it would take one after \
         another; below, what it took. {:.1}% of the transfers cost no time; the slowest part fills {:.1}% \
         of the wall time.",
        device.frames,
        device.transfer_hidden * 100.0,
        device.overlap_efficiency * 100.0
    );
    document.figure("split", "What the device did", &caption, &legend, |width| {
        let most = bars
            .iter()
            .map(|b| b.pieces.iter().map(|p| p.1).sum())
            .fold(0.0, f64::max);
        draw(
            width,
            (&bars, &legend),
            &Axis::from_zero(format!("{unit} a frame"), most, width.pick(8, 4)),
            "",
        )
    })
}

fn draw(
    width: Width,
    (bars, legend): (&[Bar], &[(Key, String)]),
    x: &Axis,
    unit: &str,
) -> Result<String, PageError> {
    svg(
        width,
        PITCH * bars.len() as u32 + 70,
        |area: &Area<'_>, tooltips| {
            let count = bars.len() as f64;
            let y = Axis {
                title: String::new(),
                ends: (0.0, count),
                // The first bar stands at the top.
                labels: bars
                    .iter()
                    .enumerate()
                    .map(|(row, bar)| (count - row as f64 - 0.5, bar.name.clone()))
                    .collect(),
            };
            let chart = axes(area, x, &y, 0)?;
            for (row, bar) in bars.iter().enumerate() {
                let middle = count - row as f64 - 0.5;
                let mut from = 0.0;
                for &(ink, value) in &bar.pieces {
                    let (begin, end) = (
                        chart.backend_coord(&(from, middle + 0.36)),
                        chart.backend_coord(&((from + value).min(x.ends.1), middle - 0.36)),
                    );
                    from += value;
                    if end.0 <= begin.0 {
                        continue;
                    }
                    area.draw(&Rectangle::new([begin, end], ink.colour().filled()))?;
                    let named = |key: &Key| matches!(key, Key::Fill(other) if *other == ink);
                    let what = legend
                        .iter()
                        .find(|(key, _)| named(key))
                        .map_or("", |(_, what)| what);
                    let words = format!("{}, {what}: {}{unit}", bar.name, number(value));
                    tooltips.add(begin, end, words.trim_end());
                    let text = number((value * 10.0).round() / 10.0) + unit;
                    let text = if unit.is_empty() { number(value) } else { text };
                    if end.0 - begin.0 > text_width(&text) + 6 {
                        let at = (i32::midpoint(begin.0, end.0), i32::midpoint(begin.1, end.1));
                        write(area, text, at, letters(Ink::OnFill, HPos::Center, VPos::Center))?;
                    }
                }
            }
            Ok(())
        },
    )
}
