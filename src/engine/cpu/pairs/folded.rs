//! Masks that are their own mirror images both ways: what is weighted alike is added before it is multiplied.
//!
//! A row is folded once, when it comes: its lines hold pairs of folded columns, `column i + column w - 1 - i` for two neighbouring i. An output row folds
//! the lines above its middle onto those below and multiplies each pair of columns at once, so that a quarter of the multiplications is
//! left, and every line is read where it begins.

use super::{Fold, Lines, Order, Pairs, Reader, Scratch, TILE, Tap, Taps, Work, aligned, pack, spread};
use crate::engine::cpu::lanes::Lanes;
use crate::engine::cpu::loops::{self, Finish};
use crate::engine::cpu::{Picture, Strip};
use crate::filter::DirectKernel;
use crate::frame::{Layout, PixelFormat};

/// How a mask is folded.
pub(super) struct Folded {
    /// What becomes of columns that mirror each other.
    across: Fold,
    /// What becomes of rows that mirror each other.
    down: Fold,
    /// The weights of pairs of folded columns, for each folded row from the top; the middle row last.
    weights: Vec<Vec<i32>>,
}

impl Folded {
    /// How `kernel` is folded; `None` if it is not its own mirror image both ways, or if sums of four samples or the order in which zipping leaves them do not do.
    pub(super) fn new(
        kernel: &DirectKernel,
        format: PixelFormat,
        reader: Reader,
        finish: &Finish,
    ) -> Option<Folded> {
        let (w, h) = (kernel.width, kernel.height);
        let q = |j: usize, i: usize| kernel.weights[j * w + i];
        let cells = || (0..h).flat_map(|j| (0..w).map(move |i| (j, i)));
        let fold = |mirrors: &dyn Fn(i32) -> bool| match () {
            () if mirrors(1) => Some(Fold::Add),
            () if mirrors(-1) => Some(Fold::Subtract),
            () => None,
        };
        let across = fold(&|sign| cells().all(|(j, i)| i == w / 2 || q(j, i) == sign * q(j, w - 1 - i)))?;
        let down = fold(&|sign| cells().all(|(j, i)| j == h / 2 || q(j, i) == sign * q(h - 1 - j, i)))?;
        let fits = matches!(reader, Reader::Bytes | Reader::Words)
            && 4 * i64::from(format.max_value()) <= i64::from(i16::MAX);
        let alike = |pattern: &Vec<i32>| pattern.iter().all(|&v| v == pattern[0]);
        if !fits || !finish.start.iter().chain([&finish.high]).all(alike) {
            return None;
        }
        let column = |j: usize, i: usize| if i <= w / 2 { q(j, i) } else { 0 };
        let pairs = |j| (0..=w / 4).map(move |g| pack(column(j, 2 * g), column(j, 2 * g + 1)));
        Some(Folded {
            across,
            down,
            weights: (0..=h / 2).map(|j| pairs(j).collect()).collect(),
        })
    }

    /// Pairs of columns.
    fn groups(&self) -> usize {
        self.weights[0].len()
    }

    /// Multiplications of a vector of pairs for each output row.
    pub(super) fn cost(&self) -> usize {
        self.groups() * self.weights.len()
    }
}

impl Pairs {
    /// [`Pairs::convolve`] for a folded mask.
    pub(super) fn convolve_folded<L: Lanes>(
        &self,
        lanes: L,
        (folded, columns): (&Folded, usize),
        (input, layout): (Picture<'_>, &Layout),
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let (step, bytes) = (plane.channels, self.format.bytes_per_sample());
        let samples = plane.width * step;
        let made = samples.next_multiple_of(TILE);
        let (origin, lead, padded) = (self.origin(), self.lead(), self.padded(samples));
        let reading = self.reader.reading(self.format);
        let slot = spread(folded.groups() * made);
        self.find_edges(plane.width, &mut scratch.edges);
        self.store_outside(plane.width, &mut scratch.outside);
        let first = strip.first_row as i64 - self.rows as i64 / 2;
        let mut next = 0;
        for row in 0..strip.rows {
            while next < row + self.rows {
                let inside = self.border.index(first + next as i64, plane.height);
                let source = inside.map_or(&scratch.outside[..], |y| input.row(strip.plane, y));
                let words = aligned(&mut scratch.words[0], padded);
                loops::load_row(lanes, reading, source, &mut words[origin..], padded);
                self.surround(&scratch.edges, words, |sample| self.reader.word(sample, 0));
                let lines = aligned(&mut scratch.lines, self.rows * slot);
                let at = next % self.rows * slot;
                let out = &mut lines[at..at + folded.groups() * made];
                loops::fold_row(lanes, &words[lead..], (columns, step), folded.across, out);
                next += 1;
            }
            let middle = self.rows / 2;
            scratch.single.clear();
            scratch.folded.clear();
            for (j, weights) in folded.weights.iter().enumerate() {
                for (group, &weights) in weights.iter().enumerate().filter(|(_, w)| **w != 0) {
                    let at = |j: usize| (row + j) % self.rows * slot + group * made;
                    let taps = if j == middle {
                        &mut scratch.single
                    } else {
                        &mut scratch.folded
                    };
                    taps.push(Tap {
                        at: at(j),
                        mirror: at(self.rows - 1 - j),
                        weights: [weights, 0],
                    });
                }
            }
            let taps = Taps {
                single: &scratch.single,
                folded: &scratch.folded,
                fold: folded.down,
            };
            let lines = Lines {
                elements: aligned(&mut scratch.lines, self.rows * slot),
                pieces: 1,
                piece_stride: 0,
                order: Order::Zipped,
            };
            let start = row * plane.stride;
            let out = &mut strip.bytes[start..start + samples * bytes];
            if bytes == 1 {
                loops::convolve_row::<L, 1>(lanes, lines, taps, &self.finish, out);
            } else {
                loops::convolve_row::<L, 2>(lanes, lines, taps, &self.finish, out);
            }
            self.keep(input.row(strip.plane, strip.first_row + row), out);
        }
    }

    /// How the mask is folded and its columns, if it is.
    pub(super) fn folded(&self) -> Option<(&Folded, usize)> {
        match &self.work {
            Work::Folded { folded, columns } => Some((folded, *columns)),
            _ => None,
        }
    }
}
