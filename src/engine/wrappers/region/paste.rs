//! Cuts windows out of frames, and pastes samples back, whole or mixed by a matte.

use super::matte::Matte;
use super::rectangle::Area;
use super::spans::Spans;
use crate::engine::cpu::Threads;
use crate::engine::cpu::pixels::mix::Mixing;
use crate::frame::Frame;

/// Bytes of one pixel of a plane, and log2 of the pixels that its samples stand for, across and down.
struct Grid {
    pixel: usize,
    shift: (u8, u8),
}

fn grids(frame: &Frame) -> impl Iterator<Item = Grid> + use<> {
    let bytes = frame.format().bytes_per_sample();
    let planes = frame.format().planes().iter();
    planes.map(move |plane| Grid {
        pixel: plane.channels.len() * bytes,
        shift: (plane.log2_x, plane.log2_y),
    })
}

/// Number of rows of `row_bytes` bytes that a thread copies at a time.
fn copied(row_bytes: usize) -> usize {
    (512 << 10) / row_bytes.max(1) + 1
}

/// Rows that a thread mixes at a time.
const MIXED: usize = 16;

/// Copies the window `window` of `from` to `to`, which has its size.
pub(super) fn cut(threads: &Threads, from: &Frame, window: &Area, to: &mut Frame) {
    for ((index, Grid { pixel, shift }), rows) in grids(from).enumerate().zip(to.plane_rows_mut()) {
        let (x, y) = (window.x >> shift.0, window.y >> shift.1);
        let row_bytes = rows.first().map_or(0, |row| row.len());
        threads.each_row(copied(row_bytes), rows, |row, target| {
            let source = &from.row(index, y + row)[x * pixel..];
            target.copy_from_slice(&source[..target.len()]);
        });
    }
}

/// The weight of the filtered picture.
#[derive(Clone, Copy)]
pub(super) enum Share<'a> {
    /// 1.
    Whole,
    /// The matte's weight.
    Matte(&'a Matte),
    /// 1 less the matte's weight.
    Rest(&'a Matte),
}

/// Pastes samples of `from`, the filtered `window`, into `to`, which holds the original: the samples that
/// `spans` returns for a plane's subsampling shift and a row.
pub(super) fn paste(
    threads: &Threads,
    (from, window): (&Frame, &Area),
    to: &mut Frame,
    share: Share<'_>,
    spans: impl Fn((u8, u8), usize) -> Spans + Sync,
) {
    let mixing = Mixing::new(from.format());
    for ((index, Grid { pixel, shift }), mut rows) in grids(from).enumerate().zip(to.plane_rows_mut()) {
        let (x, y) = (window.x >> shift.0, window.y >> shift.1);
        let of_window = rows.drain(y..y + from.layout().planes()[index].height).collect();
        let band = match share {
            Share::Whole => copied(from.layout().row_bytes(index)),
            Share::Matte(_) | Share::Rest(_) => MIXED,
        };
        threads.each_row(band, of_window, |row, target: &mut [u8]| {
            for span in spans(shift, y + row) {
                let source = &from.row(index, row)[(span.start - x) * pixel..(span.end - x) * pixel];
                let target = &mut target[span.start * pixel..span.end * pixel];
                let (matte, is_rest) = match share {
                    Share::Whole => {
                        target.copy_from_slice(source);
                        continue;
                    }
                    Share::Matte(matte) => (matte, false),
                    Share::Rest(matte) => (matte, true),
                };
                let channels = from.layout().planes()[index].channels;
                let mut sums = matte.sums(span.clone(), y + row, shift, channels);
                // The last sample of a row may stand for fewer pixels.
                let last = span.end - 1;
                let parts = [span.start..last, last..span.end];
                for part in parts.into_iter().filter(|part| !part.is_empty()) {
                    let whole = matte.whole(part.start, y + row, shift);
                    let within = part.start - span.start..part.end - span.start;
                    let samples = within.start * channels..within.end * channels;
                    let bytes = within.start * pixel..within.end * pixel;
                    let weights = &mut sums[samples];
                    if is_rest {
                        weights.iter_mut().for_each(|weight| *weight = whole - *weight);
                    }
                    mixing.mix(&mut target[bytes.clone()], &source[bytes], weights, whole);
                }
            }
        });
    }
}
