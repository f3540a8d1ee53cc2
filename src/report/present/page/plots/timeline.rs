//! The first frames in flight: through the device's slots, and through the stages' threads.

use super::chart::{Area, Axis, Width, axes, letters, number, svg, text_width, time_unit, write};
use super::palette::Ink;
use crate::engine::DeviceTimes;
use crate::report::measure::spans::stretch_of;
use crate::report::present::page::PageError;
use crate::report::present::page::document::{Document, Key};
use crate::report::{Activity, Measurements, Span, Spans, Stage};
use plotters::prelude::Rectangle;
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

/// Frames that a drawing shows; fewer on a phone.
const FRAMES: (usize, usize) = (16, 7);

/// Threads of a stage that have a row.
const THREADS: usize = 8;

/// Height of a lane in pixels.
const LANE: u32 = 15;

/// One stretch of time in a lane.
struct Block {
    lane: usize,
    ink: Ink,
    begin: f64,
    end: f64,
    name: String,
    /// The text shown when the pointer rests on it.
    words: String,
}

/// Lanes that belong together, under one name.
struct Group {
    name: String,
    lanes: usize,
}

/// Uploads, kernels and downloads by slot.
pub(in crate::report::present::page) fn device(
    document: &mut Document,
    device: &DeviceTimes,
) -> Result<(), PageError> {
    if device.frames.is_empty() {
        return Ok(());
    }
    let slots = device.frames.iter().map(|f| f.slot + 1).max().unwrap_or(1);
    let groups: Vec<Group> = (0..slots)
        .map(|slot| Group {
            name: format!("slot {slot}"),
            lanes: 3,
        })
        .collect();
    let legend = [
        (Key::Fill(Ink::Upload), "upload".to_owned()),
        (Key::Fill(Ink::Kernel), "kernels".to_owned()),
        (Key::Fill(Ink::Download), "download".to_owned()),
    ];
    let caption = "The first frames on the device, by the slot that each used and by the device's own clock; \
        the numbers are the frames'. Blocks above each other are work of different frames at the same time.";
    document.figure("timeline", "Frames on the device", caption, &legend, |width| {
        let shown = width.pick(FRAMES.0, FRAMES.1).min(device.frames.len());
        let frames = &device.frames[..shown];
        let blocks: Vec<Block> = frames
            .iter()
            .flat_map(|f| {
                let parts = [
                    (Ink::Upload, f.upload),
                    (Ink::Kernel, f.kernel),
                    (Ink::Download, f.download),
                ];
                let words = ["upload", "kernels", "download"];
                parts
                    .into_iter()
                    .enumerate()
                    .map(move |(index, (ink, span))| Block {
                        lane: 3 * f.slot + index,
                        ink,
                        begin: span.0,
                        end: span.1,
                        name: f.sequence.to_string(),
                        words: format!("frame {}, {}", f.sequence, words[index]),
                    })
            })
            .collect();
        draw(width, &groups, &blocks)
    })
}

/// The stages' threads.
pub(in crate::report::present::page) fn stages(
    document: &mut Document,
    measured: &Measurements,
) -> Result<(), PageError> {
    let caption = "The first frames in the stages, a row a thread; the numbers are the frames'. A stage that \
        has filled its queue waits for room, one whose queue is empty for a frame.";
    threads(
        document,
        ("stage-timeline", "Frames in the stages", caption),
        (measured, 0),
        |thread| thread.list(),
    )?;
    let Some(start) = stretch_of(measured.frames) else {
        return Ok(());
    };
    let caption = "The same in the midst of the run, when all stages are filled.";
    threads(
        document,
        ("middle-timeline", "Frames in the stages, later", caption),
        (measured, start),
        |thread| thread.stretch(start),
    )
}

/// The spans that `kept` gives of each thread, from frame `first` on.
fn threads(
    document: &mut Document,
    (id, title, caption): (&str, &str, &str),
    (measured, first): (&Measurements, u64),
    kept: impl Fn(&Spans) -> &[Span],
) -> Result<(), PageError> {
    let mut groups = Vec::new();
    let mut spans = Vec::new();
    let mut lane = 0;
    let decoders: Vec<&Spans> = measured.decoders.iter().flat_map(|d| &d.clock.threads).collect();
    let stages = Stage::ALL.map(|stage| (stage.to_string(), measured.stage(stage).threads.iter().collect()));
    for (name, all) in std::iter::once(("decoders".to_owned(), decoders)).chain(stages) {
        let threads = &all[..all.len().min(THREADS)];
        for &thread in threads {
            let place = lane;
            spans.extend(kept(thread).iter().map(|span| (place, *span)));
            lane += 1;
        }
        if !threads.is_empty() {
            groups.push(Group {
                name: match all.len() {
                    n if n > THREADS => format!("{name}, {THREADS} of {n}"),
                    _ => name,
                },
                lanes: threads.len(),
            });
        }
    }
    if spans.is_empty() {
        return Ok(());
    }
    let legend = [
        (Key::Fill(Ink::Busy), "at work on the frame".to_owned()),
        (Key::Fill(Ink::NoInput), "waits for a frame".to_owned()),
        (
            Key::Fill(Ink::NoRoom),
            "waits for a buffer or for room".to_owned(),
        ),
    ];
    document.figure(id, title, caption, &legend, |width| {
        let shown = first + width.pick(FRAMES.0, FRAMES.1) as u64;
        let blocks: Vec<Block> = spans
            .iter()
            .filter(|(_, span)| span.sequence < shown)
            .map(|(lane, span)| Block {
                lane: *lane,
                ink: match span.activity {
                    Activity::Work | Activity::Submit | Activity::Collect => Ink::Busy,
                    Activity::InputWait => Ink::NoInput,
                    Activity::BufferWait | Activity::QueueWait => Ink::NoRoom,
                },
                begin: span.begin as f64 / 1e9,
                end: span.end as f64 / 1e9,
                name: if span.activity.is_wait() {
                    String::new()
                } else {
                    span.sequence.to_string()
                },
                words: format!("frame {}, {}", span.sequence, words(span.activity)),
            })
            .collect();
        draw(width, &groups, &blocks)
    })
}

/// The activity of a thread, in words.
fn words(activity: Activity) -> &'static str {
    match activity {
        Activity::Work => "at work",
        Activity::Submit => "handed to the engine",
        Activity::Collect => "taken from the engine",
        Activity::InputWait => "waits for it",
        Activity::BufferWait => "waits for a buffer",
        Activity::QueueWait => "waits for room",
    }
}

fn draw(width: Width, groups: &[Group], blocks: &[Block]) -> Result<String, PageError> {
    let lanes: usize = groups.iter().map(|g| g.lanes).sum();
    // A gap of half a lane after each group.
    let rows = lanes as f64 + 0.5 * groups.len() as f64;
    let zero = blocks.iter().map(|b| b.begin).fold(f64::INFINITY, f64::min);
    let end = blocks.iter().map(|b| b.end - zero).fold(0.0, f64::max);
    let (unit, factor) = time_unit(end);
    let x = Axis::until(
        format!("time from the first frame on, {unit}"),
        end * factor,
        width.pick(8, 4),
    );
    let mut tops = Vec::new();
    let mut labels = Vec::new();
    let mut top = 0.25;
    for group in groups {
        labels.push((rows - top - group.lanes as f64 / 2.0, group.name.clone()));
        for _ in 0..group.lanes {
            tops.push(top);
            top += 1.0;
        }
        top += 0.5;
    }
    let y = Axis {
        title: String::new(),
        ends: (0.0, rows),
        labels,
    };
    let height = (rows * f64::from(width.pick(LANE + 5, LANE + 3))) as u32 + 70;
    svg(width, height, |area: &Area<'_>, tooltips| {
        let chart = axes(area, &x, &y, 0)?;
        for block in blocks {
            let top = rows - tops[block.lane];
            let begin = chart.backend_coord(&((block.begin - zero) * factor, top - 0.04));
            let end = chart.backend_coord(&((block.end - zero) * factor, top - 0.96));
            // Even the shortest span is visible; a pixel of background separates neighbours.
            let end = ((end.0 - 1).max(begin.0 + 1), end.1);
            area.draw(&Rectangle::new([begin, end], block.ink.colour().filled()))?;
            let [at, long] = [block.begin - zero, block.end - block.begin].map(|s| number(s * factor));
            tooltips.add(
                begin,
                end,
                &format!("{}\nat {at} {unit}, for {long} {unit}", block.words),
            );
            if !block.name.is_empty() && end.0 - begin.0 > text_width(&block.name) + 2 {
                let at = (i32::midpoint(begin.0, end.0), i32::midpoint(begin.1, end.1));
                write(
                    area,
                    &block.name,
                    at,
                    letters(Ink::OnFill, HPos::Center, VPos::Center),
                )?;
            }
        }
        Ok(())
    })
}
