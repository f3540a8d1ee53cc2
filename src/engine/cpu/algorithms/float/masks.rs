//! Sums of masks: loads the lines that each four output rows read, and adds them up.

use super::finish::combine;
use super::part::{InPlaceMemory, Part, PartMemory};
use crate::engine::cpu::rows::strip::Strip;
use crate::engine::cpu::rows::sums::fused::{
    Lines, MOST_LINES, Next, ROWS, Taps, Unchanged, along_row, rows_of, sums,
};
use crate::engine::cpu::simd::levels::Levels;
use crate::engine::cpu::simd::scratch::{aligned, room, spread};
use crate::filter::FloatCombining;
use crate::frame::{Layout, Plane};

/// The masks of a step.
pub(super) struct Masks {
    /// Weights of the row pass of a separable mask.
    pub(super) row: Option<Vec<f32>>,
    /// The masks, all of one size; for a separable mask its column.
    pub(super) masks: Vec<Taps<f32>>,
    /// How the sums of the masks are combined; `None` for one mask.
    pub(super) combining: Option<FloatCombining>,
    /// Columns and rows of the mask.
    pub(super) size: (usize, usize),
}

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct MaskMemory {
    ring: Ring,
    /// A line before its row pass.
    line: Vec<f32>,
    sums: Vec<f32>,
    in_place: InPlaceMemory,
}

/// The loaded lines, each in a slot.
#[derive(Default)]
struct Ring {
    memory: Vec<f32>,
    /// The number of the line in each slot, counted from 1; 0 if it is empty.
    held: Vec<usize>,
}

impl Masks {
    /// Number of lines that [`ROWS`] output rows read.
    pub(super) fn lines(&self) -> usize {
        self.size.1 + ROWS - 1
    }

    /// Width in pixels of the parts that a plane is split into.
    pub(super) fn part_width(&self, plane: &Plane) -> usize {
        /// Samples of a ring that stays in the second-level cache.
        const RING: usize = 1 << 16;
        /// Samples of a ring of direct masks, which compute enough with each sample to load it from the next
        /// cache.
        const FAR_RING: usize = 1 << 20;
        /// Samples of the sums of several masks.
        const SUMS: usize = 1 << 15;
        /// Fewest samples of a line that are worth starting the loops.
        const LEAST: usize = 128;
        let halo = 2 * (self.size.0 / 2) * plane.channels;
        let samples = if self.row.is_some() {
            RING / self.lines()
        } else {
            let lines = (FAR_RING / self.lines()).saturating_sub(halo).max(halo);
            lines.min(SUMS / self.masks.len())
        };
        let most = samples.max(LEAST).div_ceil(plane.channels);
        let parts = plane.width.div_ceil(most);
        plane.width.div_ceil(parts)
    }

    /// Describes how a plane is filtered, with `vectors` vectors of `lanes` numbers of a row at once, rows in
    /// place or not.
    pub(super) fn describe(
        &self,
        geometry: &Plane,
        (lanes, vectors): (usize, usize),
        in_place: bool,
    ) -> String {
        let way = match (&self.row, self.masks.len()) {
            (Some(_), _) => "separable".to_owned(),
            (None, 1) => "direct".to_owned(),
            (None, masks) => format!("{masks} masks"),
        };
        let parts = match geometry.width.div_ceil(self.part_width(geometry)) {
            1 => String::new(),
            n => format!(", in {n} parts"),
        };
        let place = if in_place { ", in place" } else { "" };
        format!("{way}, {ROWS} rows of {vectors} vectors of {lanes} at once{place}{parts}")
    }
}

impl Part<'_> {
    /// Makes these columns in all rows of the strip.
    #[inline(always)]
    pub(super) fn make_masks<S: Levels>(
        &self,
        s: S,
        kernel: &Masks,
        layout: &Layout,
        strip: &mut Strip<'_>,
        memory: &mut MaskMemory,
        PartMemory { starts, work }: &mut PartMemory,
    ) {
        if let Some(split) = self.in_place(kernel, layout, strip, S::LANES) {
            self.make_in_place(s, (kernel, &split), layout, strip, &mut memory.in_place);
            return;
        }
        let channels = self.reader.channels();
        let samples = self.columns.len() * channels;
        let len = samples.next_multiple_of(S::LANES);
        let halo = 2 * (kernel.size.0 / 2) * channels;
        let starts = room(starts, 2 * len);
        self.starts(&mut starts[..samples]);
        starts[samples..].fill(0.0);
        let (biases, zeros) = starts.split_at(len);
        let all_sums = aligned(&mut memory.sums, kernel.masks.len() * ROWS * len);
        let line = aligned(&mut memory.line, len + halo);
        let pitch = spread(if kernel.row.is_some() { len } else { len + halo });
        // If the picture has fewer rows than the mask, the ring holds all of them, and each is read once.
        let is_whole = self.height + 1 < kernel.lines();
        let slots = if is_whole { self.height + 1 } else { kernel.lines() };
        let ring = &mut memory.ring;
        let lines = aligned(&mut ring.memory, slots * pitch);
        ring.held.clear();
        ring.held.resize(slots, 0);
        let top = self.first_row as i64 - (kernel.size.1 / 2) as i64;
        for k in (0..strip.rows).step_by(ROWS) {
            let mut places = [0; MOST_LINES];
            for (place, j) in places.iter_mut().zip(k..k + kernel.lines()) {
                let y = top + j as i64;
                let number = if is_whole {
                    self.reader.border.index(y, self.height).unwrap_or(self.height)
                } else {
                    j
                };
                let slot = number % slots;
                *place = slot * pitch;
                if ring.held[slot] == number + 1 {
                    continue;
                }
                ring.held[slot] = number + 1;
                let to = &mut lines[slot * pitch..][..pitch];
                match &kernel.row {
                    None => self.reader.line(s, y, &self.span, to, &mut work.alphas),
                    Some(row) => {
                        self.reader.line(s, y, &self.span, line, &mut work.alphas);
                        along_row(s, (row, 0.0), line, channels, &mut to[..len], |sums| sums);
                    }
                }
            }
            let rows = places.map(|place| &lines[place..]);
            let read = Lines {
                rows: &rows[..kernel.lines()],
                from: 0,
                pixel_stride: channels,
            };
            let starts = if kernel.combining.is_some() { zeros } else { biases };
            let stride = layout.planes()[strip.plane].stride;
            let later = strip.bytes.get((k + ROWS) * stride..).unwrap_or_default();
            let first = (strip.plane, self.first_row + k + ROWS + kernel.size.1 / 2);
            let mut next = Next::of(self.reader.picture, first, (later, stride), &self.columns);
            for (taps, sums_of) in kernel.masks.iter().zip(all_sums.chunks_exact_mut(ROWS * len)) {
                sums(s, taps, read, (starts, next), rows_of(sums_of), Unchanged);
                next.rows = [&[]; 2 * ROWS];
            }
            if let Some(combining) = kernel.combining {
                combine(combining, all_sums, ROWS * len, biases);
            }
            let made = (&mut all_sums[..ROWS * len], samples);
            self.finish(s, layout, strip, k, made, work);
        }
    }
}
