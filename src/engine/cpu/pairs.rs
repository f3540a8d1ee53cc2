//! Strips of rows by way of pairs of samples (see `loops`): two or four output rows at a time, from lines that hold two rows each.
//!
//! Direct: line k holds rows 2k and 2k + 1 of the strip's reach, interleaved, so that one multiply-add serves two rows of the mask, and
//! one load serves all of these output rows. Separable: the row pass pairs neighbours in a row, which lie side by side where a plane has one component
//! or where several are taken apart (see `deinterleave`), and are else brought together in registers, after the two halves of a row of weights that mirrors
//! itself have been added up; its results go straight into lines of two rows, and the column pass is the direct loop with a mask one column wide.
//! Interleaved components are convolved all at once: neighbouring pixels are `channels` samples apart unless they are taken apart.

use super::few_taps::{self, Alike, Few};
use super::few_terms::FewTerms;
use super::grouped_terms::GroupedTerms;
use super::loops::{self, Group, Lines, Running, Taps};
use super::row_pass::{self, Pairing, RowPass, Zips};
use super::simd::{Vectors, with_lanes};
use super::tap_places::{self, Places, pack, vertical, vertical_changes};
use crate::engine::cpu::rows::alpha::Source;
use crate::engine::cpu::rows::border::{self, Edges};
use crate::engine::cpu::rows::complete::{complete, is_partial};
use crate::engine::cpu::rows::deinterleave::{self, Apart};
use crate::engine::cpu::rows::prefetch;
use crate::engine::cpu::rows::requantize::{self, Finish, Sums};
use crate::engine::cpu::rows::sample::{Reader, magnitude, range, total};
use crate::engine::cpu::rows::strip::{OutputRows, Strip};
use crate::engine::cpu::rows::widen;
use crate::engine::cpu::simd::scratch::{aligned, room, spread};
use crate::engine::cpu::simd::vector::{self, Lanes, Order, TILE};
use crate::filter::{ChannelStep, DirectKernel, Kernel, SeparableKernel, Step};
use crate::frame::{Layout, PixelFormat};

enum Work {
    Direct {
        columns: usize,
    },
    Separable {
        row: Row,
        columns: usize,
        pieces: usize,
        /// True if components lie one after the other (see `deinterleave`).
        planar: bool,
    },
}

impl Work {
    /// True if a row pass before a column of so many taps asks for the next rows of the picture.
    fn asks<L: Lanes>(&self, _: L, taps: usize, format: PixelFormat) -> bool {
        let Work::Separable { row, .. } = self else {
            return false;
        };
        match row {
            Row::Any(_) => false,
            Row::Few(few) => {
                format.bytes_per_sample() == 1 && taps <= const { short_column::<L>() } && few.asks()
            }
            Row::Grouped(_) => {
                vector::has_more_registers::<L>() && !format.has_alpha() && (6..=8).contains(&taps)
            }
        }
    }
}

/// The loop that makes intermediates of rows.
enum Row {
    Any(RowPass),
    Few(FewTerms),
    Grouped(GroupedTerms),
}

/// One plane's part of a step, ready for the inner loops.
pub(super) struct Pairs {
    vectors: Vectors,
    format: PixelFormat,
    edges: Edges,
    channels: Vec<ChannelStep>,
    reader: Reader,
    /// Rows of the mask.
    rows: usize,
    work: Work,
    /// The taps that make two rows anew.
    taps: Places,
    /// The taps that change the sums of one pair of rows into the next one's, where they are fewer: where weights below each other are equal.
    changes: Option<Places>,
    making: Making,
    finish: Finish,
    /// True if results are rounded high words of sums.
    high_words: bool,
    /// True if the next rows of the picture are asked for in the row pass, so that the column pass asks for those of the result alone.
    asks_in_rows: bool,
}

/// Taps of a column, of two rows each, up to which it takes less time than memory takes to bring both the next rows of the picture and those of the result.
const fn short_column<L: Lanes>() -> usize {
    match (vector::has_more_registers::<L>(), L::FUSES) {
        (true, true) => 4,
        (true, false) => 3,
        (false, _) => 0,
    }
}

/// The loops that make rows.
enum Making {
    /// Those for any taps: two rows, or four by these taps where that is better.
    Any(Option<Places>),
    /// Those compiled for so few taps (see `few_taps`), of samples that are all made with the same: two rows, four, or either. Two that they do not make
    /// are made like any.
    Few { alike: Alike, two: bool, four: bool },
}

impl Making {
    /// True if four rows are made at a time.
    fn makes_four(&self) -> bool {
        matches!(self, Making::Any(Some(_)) | Making::Few { four: true, .. })
    }

    /// Rows that are made at a time.
    fn at_once(&self) -> i64 {
        if self.makes_four() { 4 } else { 2 }
    }
}

/// The memory that a thread works in.
#[derive(Default)]
pub(super) struct Scratch {
    /// Rows with what lies beyond their ends, piece after piece.
    words: [Vec<u16>; 2],
    /// Rows of the result whose components lie one after the other.
    planar: Vec<u8>,
    /// A row that lies outside the frame, as rows are stored.
    outside: Vec<u8>,
    /// Rows whose colours are weighted by alpha.
    under_alpha: [Vec<u8>; 2],
    lines: Vec<u32>,
    /// Sums that are kept from one pair of rows to the next.
    sums: Vec<i32>,
    taps: [Group; 3],
    places: border::Places,
    /// The last of the output rows, where the strip has no such row.
    spare: Vec<u8>,
}

/// What a kernel needs of its plane.
struct Parts {
    reader: Reader,
    work: Work,
    taps: Places,
    changes: Option<Places>,
    /// The taps that end groups (see `groups`), where these are groups.
    ends: u32,
    finish: Finish,
}

/// The terms of a row whose neighbouring pixels are `step` words apart; where it mirrors itself, of its two halves at once.
fn zips(q: &[i32], step: usize, reader: Reader) -> Zips {
    let (last, at) = (q.len() - 1, |i: usize| i * step);
    // Two offset samples of 16 bits do not add up to 16 signed bits; no other two leave them.
    let mirrors = reader != Reader::Offset && q.iter().eq(q.iter().rev());
    let folded = if mirrors { q.len() / 2 } else { 0 };
    let sums: Vec<([usize; 2], i32)> = (0..folded).map(|i| ([at(i), at(last - i)], q[i])).collect();
    let singles: Vec<(usize, i32)> = (folded..q.len() - folded).map(|i| (at(i), q[i])).collect();
    let mut zips = Zips::default();
    let (pairs, rest) = sums.as_chunks::<2>();
    zips.sums
        .extend(pairs.iter().map(|[a, b]| ([a.0, b.0], pack(a.1, b.1))));
    let mut singles = &singles[..];
    if let ([sum], [single, others @ ..]) = (rest, singles) {
        zips.mixed.push((sum.0, single.0, pack(sum.1, single.1)));
        singles = others;
    }
    for two in singles.chunks(2) {
        // A single one left over comes with itself.
        let second = two.get(1).map_or((two[0].0, 0), |s| *s);
        zips.singles
            .push(([two[0].0, second.0], pack(two[0].1, second.1)));
    }
    zips
}

/// How a row's words are brought together where neighbouring pixels are `step` words apart.
fn pairing(q: &[i32], step: usize, reader: Reader) -> Pairing {
    if step > 1 {
        return Pairing::Zipped(zips(q, step, reader));
    }
    // A pair of neighbours is to a row what a line of two rows is to a column: it has weights for even results and for odd ones.
    let pairs = vertical(q.len(), 0, 0, |i| q[i]);
    Pairing::InPlace(
        pairs
            .iter()
            .map(|p| (2 * p.line, [p.weights[0], p.weights[1]]))
            .collect(),
    )
}

/// How the intermediates of a row pass lie where neighbouring pixels are `step` words apart.
fn row_order(step: usize) -> Order {
    if step == 1 {
        Order::Alternate
    } else {
        Order::Zipped
    }
}

/// Of components that are taken apart for a row of so many weights, since that is better, what all are made with.
fn planar(vectors: Vectors, channels: &[ChannelStep], weights: usize) -> Option<ChannelStep> {
    let mut convolved = channels.iter().filter(|c| c.convolved().is_some());
    let first = convolved.next()?;
    let made = |c: &ChannelStep| c.convolved().map(|c| (c.low, c.high));
    let are_alike = convolved.all(|c| made(c) == made(first));
    let is_better = with_lanes!(vectors, lanes => deinterleave::suit(lanes, channels.len(), weights));
    (are_alike && is_better).then_some(*first)
}

/// The reader, the passes and the last step of a separable kernel.
fn separable(
    vectors: Vectors,
    kernel: &SeparableKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Parts> {
    let max = i64::from(format.max_value());
    let (r, c) = (&kernel.row, &kernel.column);
    let planar = planar(vectors, channels, r.weights.len());
    let channels = planar.as_ref().map_or(channels, std::slice::from_ref);
    let (column_total, whole) = (total(&c.weights), 1_i64 << c.shift);
    let bound = magnitude(&r.weights) * max + r.rounding();
    let (reader, missing) = Reader::choose(format, bound, || {
        // What the column makes of it must come to whole levels.
        Reader::offset_after(&r.weights, r.shift, r.rounding())
            .filter(|missing| column_total * missing % whole == 0)
    });
    // Intermediates as they are held: those of offset words may have their offset left.
    let between = range(&r.weights, (0, max));
    let held = |sum: i64| ((sum + r.rounding()) >> r.shift) - missing.unwrap_or(0);
    let (bottom, top) = (held(between.0), held(between.1));
    let sums = |pieces: usize, bits: u32| Sums {
        pieces,
        bits,
        shift: c.shift,
        range: range(&c.weights, (bottom, top)),
        largest: top.max(-bottom),
        weight: magnitude(&c.weights),
        correction: 0,
        raise: (column_total * missing.unwrap_or(0)) >> c.shift,
    };
    let order = (row_order(channels.len()), vectors.lanes());
    let fits_words = top < 1 << 15 && bottom >= -(1 << 15);
    let ways = [(1, 16), (2, 12), (3, 8)];
    let (pieces, bits, finish) = ways
        .into_iter()
        .filter(|&(pieces, _)| pieces > 1 || fits_words)
        .find_map(|(pieces, bits)| {
            Some((pieces, bits, sums(pieces, bits).finish(format, channels, order)?))
        })?;
    let start = |reader: Reader| r.rounding() + reader.correction(total(&r.weights));
    let terms = |reader| pairing(&r.weights, channels.len(), reader);
    let (words, values) = Reader::whole_words(format);
    let grouped = (reader == Reader::Halves)
        .then(|| GroupedTerms::of(&terms(Reader::Offset), values, (start(words), r.shift), bits))
        .flatten();
    let (reader, row) = match grouped {
        Some(grouped) => (words, Row::Grouped(grouped)),
        None => {
            let pass = RowPass {
                pairing: terms(reader),
                start: missing.map_or(start(reader), |_| r.rounding()) as i32,
                shift: r.shift,
                bits,
            };
            let is_narrow = (reader.pieces(), pieces) == (1, 1);
            let few = with_lanes!(vectors, lanes => FewTerms::of(lanes, &pass, reader)).filter(|_| is_narrow);
            (reader, few.map_or(Row::Any(pass), Row::Few))
        }
    };
    let work = Work::Separable {
        row,
        columns: r.weights.len(),
        pieces,
        planar: planar.is_some(),
    };
    let q = |j: usize| c.weights[j];
    let taps = Places::single(vertical(c.weights.len(), 0, 0, q));
    let changes = vertical_changes(c.weights.len(), 0, 0, q).map(Places::single);
    Some(Parts {
        reader,
        work,
        taps,
        changes,
        ends: 0,
        finish,
    })
}

/// The reader, the taps and the last step of a direct kernel.
fn direct(
    vectors: Vectors,
    kernel: &DirectKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Parts> {
    let largest = i64::from(format.max_value());
    let weight = magnitude(&kernel.weights);
    let below = 1_i64 << kernel.shift;
    let (reader, missing) = Reader::choose(format, weight * largest + below, || {
        Reader::offset_after(&kernel.weights, kernel.shift, below - 1)
    });
    let (values, correction) = match missing {
        Some(_) => ((i16::MIN.into(), i16::MAX.into()), 0),
        None => ((0, largest), reader.correction(total(&kernel.weights))),
    };
    let sums = Sums {
        pieces: reader.pieces(),
        bits: 8,
        shift: kernel.shift,
        range: range(&kernel.weights, values),
        largest,
        weight,
        correction,
        raise: missing.unwrap_or(0),
    };
    let finish = sums.finish(format, channels, (Order::Plain, vectors.lanes()))?;
    let (taps, changes) = tap_places::direct(kernel, channels.len(), reader, few_taps::MOST)?;
    let columns = kernel.width;
    Some(Parts {
        reader,
        work: Work::Direct { columns },
        taps,
        changes,
        ends: 0,
        finish,
    })
}

/// The same as `pieces` with taps in groups, where that is better than words in two pieces.
fn in_groups(
    pieces: &Parts,
    vectors: Vectors,
    kernel: &DirectKernel,
    format: PixelFormat,
    channels: &[ChannelStep],
) -> Option<Parts> {
    if pieces.reader != Reader::Halves {
        return None;
    }
    let (reader, values) = Reader::whole_words(format);
    // The only loops that know groups are those of few taps.
    let (taps, _) = tap_places::direct(kernel, channels.len(), reader, few_taps::MOST_GROUPED)?;
    if taps.len() > few_taps::MOST_GROUPED {
        return None;
    }
    let (taps, ends) = taps.grouped(values, kernel.shift)?;
    let groups = ends.count_ones() as usize;
    if !with_lanes!(vectors, lanes => few_taps::suit_groups(lanes, taps.len(), groups)) {
        return None;
    }
    let correction = reader.correction(total(&kernel.weights));
    let columns = kernel.width;
    let parts = Parts {
        reader,
        work: Work::Direct { columns },
        taps,
        changes: None,
        ends,
        finish: requantize::finish_groups(format, channels, kernel.shift, correction)?,
    };
    parts.alike(vectors, format).map(|_| parts)
}

impl Parts {
    fn pieces(&self) -> usize {
        match &self.work {
            Work::Direct { .. } => self.reader.pieces(),
            Work::Separable { pieces, .. } => *pieces,
        }
    }

    /// What all samples are made with, where that is the same and sums are not kept.
    fn alike(&self, vectors: Vectors, format: PixelFormat) -> Option<Alike> {
        let (pieces, bytes) = (self.pieces(), format.bytes_per_sample());
        with_lanes!(vectors, lanes => Alike::of(lanes, &self.finish, self.ends, pieces, bytes))
            .filter(|_| self.changes.is_none())
    }

    /// The loops that make rows.
    fn making(&self, vectors: Vectors, format: PixelFormat) -> Making {
        let (lanes, pieces, folded) = (vectors.lanes(), self.pieces(), self.taps.folded());
        if let Some(alike) = self.alike(vectors, format) {
            let most = if self.ends != 0 {
                few_taps::MOST_GROUPED
            } else {
                few_taps::MOST
            };
            let two = folded == 0 && (2..=most).contains(&self.taps.len());
            let four = self.makes_four_rows(vectors, format);
            if two || four {
                return Making::Few { alike, two, four };
            }
        }
        let four = self.changes.is_none() && loops::makes_four_rows(lanes, pieces, folded);
        Making::Any(four.then(|| self.taps.four_rows()))
    }

    /// True if four rows of a column are made at a time, by a loop that is compiled for so many taps.
    fn makes_four_rows(&self, vectors: Vectors, format: PixelFormat) -> bool {
        let samples = (format.bytes_per_sample(), self.finish.rounds_high_words());
        let (taps, pieces) = (self.taps.len(), self.pieces());
        let Work::Separable { planar, .. } = self.work else {
            return false;
        };
        self.taps.are_lines()
            && with_lanes!(vectors, lanes => few_taps::makes_four_rows(lanes, taps, pieces, samples, planar))
    }
}

impl Pairs {
    /// The plane's part of `step`; `None` if nothing is convolved in it, or if its numbers need more than the inner loops hold.
    pub(super) fn new(vectors: Vectors, step: &Step, plane: usize, format: PixelFormat) -> Option<Pairs> {
        let channels = &step.planes[plane];
        let mut parts = match &step.kernel {
            Kernel::Direct(k) => {
                let parts = direct(vectors, k, format, channels)?;
                in_groups(&parts, vectors, k, format, channels).unwrap_or(parts)
            }
            Kernel::Separable(k) => separable(vectors, k, format, channels)?,
        };
        let pieces = parts.pieces();
        let taps = parts.taps.len();
        // Sums that are kept are read and written once more, which a few taps cost too.
        parts.changes = parts.changes.filter(|c| pieces == 1 && c.len() + 2 < taps);
        let making = parts.making(vectors, format);
        let is_planar = matches!(parts.work, Work::Separable { planar: true, .. });
        let asks_in_rows = with_lanes!(vectors, lanes => parts.work.asks(lanes, taps, format));
        let Parts {
            reader,
            work,
            taps,
            changes,
            finish,
            ..
        } = parts;
        Some(Pairs {
            vectors,
            format,
            edges: Edges::new(step.border, format, channels, (step.kernel.size().0, is_planar)),
            channels: channels.clone(),
            reader,
            rows: step.kernel.size().1,
            work,
            taps,
            changes,
            making,
            high_words: finish.rounds_high_words(),
            finish,
            asks_in_rows,
        })
    }

    /// Of a direct mask, the multiply-adds that each sample of two rows below each other takes.
    pub(super) fn terms(&self) -> usize {
        self.changes.as_ref().unwrap_or(&self.taps).len() * self.reader.pieces()
    }

    /// Makes the strip's rows from the picture.
    pub(super) fn convolve(
        &self,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        with_lanes!(self.vectors, lanes => self.convolve_with(lanes, source, layout, strip, scratch));
    }

    fn convolve_with<L: Lanes>(
        &self,
        lanes: L,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let samples = self.edges.samples(plane.width);
        let bytes = self.format.bytes_per_sample();
        let row_bytes = plane.width * plane.channels * bytes;
        let apart = self.is_planar().then(|| Apart {
            channels: plane.channels,
            pitch: self.edges.pitch(plane.width),
        });
        let line = self.line(samples);
        // As many lines as two rows read; with changes, the one that the pair before began with, too, and for four rows one more.
        let reach = self.rows / 2 + 1;
        let makes_four = self.making.makes_four();
        let slots = reach + usize::from(self.changes.is_some() || makes_four);
        self.edges.find(plane.width, &mut scratch.places);
        self.edges.store_outside(plane.width, &mut scratch.outside);
        aligned(&mut scratch.lines, slots * line.slot);
        let first = strip.first_row as i64 - self.rows as i64 / 2;
        let partial = is_partial(&self.channels, source);
        let (mut next, mut row) = (0, 0);
        room(&mut scratch.spare, row_bytes);
        while row < strip.rows {
            let pair = row / 2;
            let is_four = makes_four && row + 2 < strip.rows;
            while next < pair + reach + usize::from(is_four) {
                let y = first + 2 * next as i64;
                let at = next % slots * line.slot;
                self.fill(
                    lanes,
                    source,
                    (strip.plane, y),
                    (samples, apart),
                    (at, &line),
                    scratch,
                );
                next += 1;
            }
            let (places, first_line) = match (&self.changes, &self.making) {
                (Some(changes), _) if pair > 0 => (changes, pair - 1),
                (_, Making::Any(Some(fours))) if is_four => (fours, pair),
                _ => (&self.taps, pair),
            };
            let first_slot = first_line % slots;
            let start = |k: usize| {
                let slot = first_slot + k;
                (if slot < slots { slot } else { slot - slots }) * line.slot + line.lead
            };
            let at_once = if is_four { 4 } else { 2 };
            let made = strip.rows.min(row + at_once) - row;
            let place = |k: usize| (row + k) * plane.stride;
            let taps = places.taps(&mut scratch.taps, start);
            let planar_row = spread(samples + deinterleave::BEHIND) * bytes;
            let there = &mut strip.bytes[place(0)..place(made - 1) + row_bytes];
            let (rows, later): (_, &[u8]) = match apart {
                Some(_) => (
                    OutputRows {
                        bytes: aligned(&mut scratch.planar, 4 * planar_row),
                        stride: planar_row,
                        row_bytes: samples * bytes,
                        spare: &mut [],
                    },
                    there,
                ),
                None => (
                    OutputRows {
                        bytes: there,
                        stride: plane.stride,
                        row_bytes,
                        spare: &mut scratch.spare,
                    },
                    &[],
                ),
            };
            let next = match self.asks_in_rows {
                true => &[],
                false => prefetch::worth_asking(source, strip.plane, first + 2 * next as i64, at_once),
            };
            let lines = Lines {
                elements: aligned(&mut scratch.lines, slots * line.slot),
                pieces: line.pieces,
                piece_stride: line.piece,
                order: self.order(),
                ahead: [next, later],
            };
            let few = |alike, beyond| Few {
                lines,
                taps: &taps.groups[0].single,
                beyond,
                finish: &self.finish,
                alike,
                high_words: self.high_words,
                samples,
            };
            match self.making {
                Making::Any(_) if is_four => {
                    self.make(lanes, lines, taps, None, samples, rows.split::<4>());
                }
                Making::Few { alike, .. } if is_four => {
                    let few = few(alike, start(taps.groups[0].single.len()));
                    match bytes {
                        1 => few.make_four::<L, 1>(lanes, rows.split()),
                        _ => few.make_four::<L, 2>(lanes, rows.split()),
                    }
                }
                Making::Few { alike, two: true, .. } => {
                    let few = few(alike, 0);
                    match bytes {
                        1 => few.make::<L, 1>(lanes, rows.split()),
                        _ => few.make::<L, 2>(lanes, rows.split()),
                    }
                }
                _ => {
                    let running = self.changes.as_ref().map(|_| Running {
                        sums: room(&mut scratch.sums, samples.next_multiple_of(TILE)),
                        resumes: pair > 0,
                    });
                    self.make(lanes, lines, taps, running, samples, rows.split::<2>());
                }
            }
            for k in 0..made {
                let out = &mut strip.bytes[place(k)..place(k) + row_bytes];
                if let Some(apart) = apart {
                    let planar =
                        &aligned(&mut scratch.planar, 4 * planar_row)[k * planar_row..][..planar_row];
                    deinterleave::put(lanes, apart, bytes, planar, out);
                }
                if partial {
                    let y = strip.first_row + row + k;
                    complete(&self.channels, self.format, source, (strip.plane, y), out);
                }
            }
            row += made;
        }
    }

    /// Makes `R` rows of so many samples from the lines.
    fn make<L: Lanes, const R: usize>(
        &self,
        lanes: L,
        lines: Lines<'_>,
        taps: Taps<'_>,
        running: Option<Running<'_>>,
        samples: usize,
        out: [&mut [u8]; R],
    ) {
        let finish = (&self.finish, self.high_words);
        if self.format.bytes_per_sample() == 1 {
            loops::convolve::<L, 1, R>(lanes, lines, taps, running, finish, samples, out);
        } else {
            loops::convolve::<L, 2, R>(lanes, lines, taps, running, finish, samples, out);
        }
    }

    /// How the elements of lines lie.
    fn order(&self) -> Order {
        match self.work {
            Work::Separable { .. } => row_order(self.edges.step()),
            Work::Direct { .. } => Order::Plain,
        }
    }

    fn is_planar(&self) -> bool {
        matches!(self.work, Work::Separable { planar: true, .. })
    }

    fn columns(&self) -> usize {
        match &self.work {
            Work::Direct { columns } | Work::Separable { columns, .. } => *columns,
        }
    }

    /// The form of the lines of two rows.
    fn line(&self, samples: usize) -> LineForm {
        match &self.work {
            Work::Direct { .. } => {
                let piece = self.padded(samples);
                let pieces = self.reader.pieces();
                LineForm {
                    pieces,
                    piece,
                    slot: pieces * piece,
                    lead: self.edges.lead(),
                }
            }
            Work::Separable { pieces, .. } => {
                let piece = samples.next_multiple_of(TILE);
                LineForm {
                    pieces: *pieces,
                    piece,
                    slot: spread(pieces * piece),
                    lead: 0,
                }
            }
        }
    }

    /// Samples of a row with what lies beyond its ends, filled up for the inner loops.
    fn padded(&self, samples: usize) -> usize {
        // What row passes begin with is made in whole steps.
        let rest = match self.work {
            Work::Separable { .. } => TILE,
            Work::Direct { .. } => 0,
        };
        let columns = self.columns() * self.edges.step();
        spread(self.edges.lead() + samples.next_multiple_of(TILE) + columns + rest)
    }

    /// Fills the line at `at` with what rows `y` and `y + 1`, which may lie outside the frame, are in it.
    fn fill<L: Lanes>(
        &self,
        lanes: L,
        source: Source<'_>,
        (plane, y): (usize, i64),
        (samples, apart): (usize, Option<Apart>),
        (at, form): (usize, &LineForm),
        scratch: &mut Scratch,
    ) {
        let Scratch {
            words,
            outside,
            under_alpha: [first, second],
            lines,
            places,
            ..
        } = scratch;
        let rows = [
            self.edges.row(source, plane, y, outside, first),
            self.edges.row(source, plane, y + 1, outside, second),
        ];
        let reading = self.reader.reading(self.format);
        let (pieces, origin, lead) = (self.reader.pieces(), self.edges.origin(), self.edges.lead());
        let padded = self.padded(samples);
        let lines = aligned(lines, at + form.slot);
        let Work::Separable { row, .. } = &self.work else {
            let line = &mut lines[at..at + form.slot];
            widen::pair_rows(lanes, reading, rows, &mut line[origin..], padded);
            for (piece, line) in line.chunks_mut(padded).enumerate() {
                let pair = |word| u32::from(word) << 16 | u32::from(word);
                Edges::fill(places, line, |sample| pair(self.reader.word(sample, piece)));
            }
            return;
        };
        let out = &mut lines[at..at + form.pieces * form.piece];
        let mut words = words.each_mut().map(|words| aligned(words, pieces * padded));
        for (row, words) in rows.iter().zip(words.each_mut()) {
            let to = &mut words[origin..];
            match apart {
                Some(apart) => deinterleave::load(lanes, reading, apart, row, to, padded),
                None => widen::load_row(lanes, reading, row, to, padded),
            }
            for (piece, words) in words.chunks_mut(padded).enumerate() {
                Edges::fill(places, words, |sample| self.reader.word(sample, piece));
            }
        }
        let rows = words.each_ref().map(|row| &row[lead..]);
        // Those that take this line's place among the next rows to be made.
        let ahead = match self.asks_in_rows {
            true => prefetch::worth_asking(source, plane, y + self.making.at_once(), 2),
            false => &[],
        };
        match row {
            Row::Any(pass) => row_pass::row_pass(lanes, rows, (pieces, padded), pass, out, form.pieces),
            Row::Few(few) => few.make(lanes, rows, out, ahead),
            Row::Grouped(grouped) => grouped.make(lanes, rows, (out, form.pieces), ahead),
        }
    }
}

/// Elements of a line of two rows.
struct LineForm {
    pieces: usize,
    /// From a piece to the next.
    piece: usize,
    /// From a line to the next.
    slot: usize,
    /// From a line's begin to what the first sample needs first.
    lead: usize,
}
