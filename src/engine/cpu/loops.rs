//! The inner loops, for vectors of any width. Everything is a sum of products of 16-bit *pairs*: a 32-bit element of a line holds two samples, and
//! one instruction multiplies a vector of such elements by two weights each and adds the two products.
//!
//! Samples that are too wide for exact 32-bit sums come as several *pieces* of `bits` bits each, lowest first, all but the highest without
//! sign; each piece is summed by itself and the sums are joined by carrying upwards.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not unroll.
#![allow(clippy::needless_range_loop)]

use super::lanes::{Lanes, Order, Work};

/// Samples that one step of the widest loop makes; lines are long enough for a multiple of it.
pub(super) const TILE: usize = 64;

/// One multiply-add of the sums of several output rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap {
    /// The element of the lines that the row's first sample needs.
    pub(super) at: usize,
    /// A second element, added to or subtracted from the first one before the multiplication, where the mask is mirrored.
    pub(super) mirror: usize,
    /// The two weights, low half first, of each output row from the upper one down; of two rows the first two.
    pub(super) weights: [i32; 4],
}

/// How the mirrored half of a mask is folded onto the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Equal weights: samples are added.
    Add,
    /// Opposite weights: samples are subtracted.
    Subtract,
}

/// Multiply-adds of the same output rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// Those of one element.
    pub(super) single: Vec<Tap>,
    /// Those of an element and its mirror image.
    pub(super) folded: Vec<Tap>,
}

/// The multiply-adds that make two output rows, or four.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taps<'a> {
    /// Those of the upper two rows alone, of all four, and of the lower two alone; two rows have the first ones only.
    pub(super) groups: &'a [Group; 3],
    /// What is done with mirror images.
    pub(super) fold: Fold,
}

/// Lines of pairs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'a> {
    /// The elements that taps point into.
    pub(super) elements: &'a [u32],
    /// How many pieces a sample has, 1 to 3.
    pub(super) pieces: usize,
    /// Elements from a piece to the next one.
    pub(super) piece_stride: usize,
    /// How the elements of two vectors lie.
    pub(super) order: Order,
}

/// The sums of the lower output row, before their shift, from one pair of rows to the next; one a sample, up to the next multiple of [`TILE`].
pub(super) struct Running<'a> {
    /// The sums; those of the pair just made are put here.
    pub(super) sums: &'a mut [i32],
    /// True if sums begin with those of the pair before, so that taps state what changes; false if they begin anew.
    pub(super) resumes: bool,
}

/// What turns sums into samples: `clamp(((sum + start) >> shift) + high, 0, max) << left`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Finish {
    /// What the sums of each piece begin with: [`TILE`] values for samples that begin with the first channel, then for such that begin with the second and
    /// so on, in the order in which samples lie in the lines.
    pub(super) start: [Vec<i32>; 3],
    /// What is added after the shift, likewise; empty if that is 0 for all channels.
    pub(super) high: Vec<i32>,
    /// Samples that a pixel interleaves.
    pub(super) channels: usize,
    /// Bits of a piece.
    pub(super) bits: u32,
    /// True if the sum of all pieces fits 32 bits, so that they are put together before the shift; false if they are carried upwards.
    pub(super) whole: bool,
    /// How far the joined sum (or, if carried, the highest piece's) is shifted down.
    pub(super) shift: u32,
    /// The largest sample.
    pub(super) max: u16,
    /// Padding bits below a stored sample.
    pub(super) left: u32,
}

/// What the row pass of a separable kernel does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RowPass {
    /// How words are brought together in pairs.
    pub(super) pairing: Pairing,
    /// What the sums begin with.
    pub(super) start: i32,
    /// How far they are shifted down.
    pub(super) shift: u32,
    /// Bits of a piece of the intermediate.
    pub(super) bits: u32,
}

/// How the words of a row become pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pairing {
    /// Neighbours in memory are neighbouring pixels: the first word of each pair, and its two weights for even and for odd results.
    InPlace(Vec<(usize, [i32; 2])>),
    /// Vectors of words are zipped.
    Zipped(Zips),
}

impl Default for Pairing {
    fn default() -> Pairing {
        Pairing::InPlace(Vec::new())
    }
}

/// The terms of a row pass, two by two with their weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Zips {
    /// Sums of two words of equal weight, with another such sum.
    pub(super) sums: Vec<([[usize; 2]; 2], i32)>,
    /// Such a sum with a single word.
    pub(super) mixed: Vec<([usize; 2], usize, i32)>,
    /// Single words.
    pub(super) singles: Vec<([usize; 2], i32)>,
}

impl Zips {
    /// The furthest word that is read for the first sample.
    fn reach(&self) -> usize {
        let sums = self.sums.iter().flat_map(|(at, _)| at.as_flattened());
        let mixed = self
            .mixed
            .iter()
            .flat_map(|(sum, single, _)| sum.iter().chain([single]));
        let singles = self.singles.iter().flat_map(|(at, _)| at);
        sums.chain(mixed).chain(singles).copied().max().unwrap_or(0)
    }
}

/// How samples in memory become words that signed 16-bit multiplications take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// Bytes of a stored sample, 1 or 2.
    pub(super) bytes: usize,
    /// Padding bits below a sample of two bytes.
    pub(super) shift: u32,
    /// Bits that are turned over: 0x8000 takes 32768 from a sample.
    pub(super) flip: u16,
    /// True if the two bytes of a sample are two pieces.
    pub(super) halves: bool,
}

/// The same in registers.
#[derive(Clone, Copy)]
struct Words<T> {
    reading: Reading,
    shift: T,
    kept: T,
    flip: T,
    eight: T,
    byte: T,
}

impl<T: Copy> Words<T> {
    #[inline(always)]
    fn new<L: Lanes<V = T>>(lanes: L, reading: Reading) -> Words<T> {
        let both = |word: u16| i32::from(word) << 16 | i32::from(word);
        Words {
            reading,
            shift: lanes.splat(reading.shift as i32),
            kept: lanes.splat(both(u16::MAX >> reading.shift)),
            flip: lanes.splat(both(reading.flip)),
            eight: lanes.splat(8),
            byte: lanes.splat(both(255)),
        }
    }

    /// Stored words without their padding bits, turned over.
    #[inline(always)]
    fn taken<L: Lanes<V = T>>(&self, lanes: L, mut stored: T) -> T {
        if self.reading.shift > 0 {
            stored = lanes.and(lanes.shift_down(stored, self.shift), self.kept);
        }
        lanes.xor(stored, self.flip)
    }

    /// The low and the high bytes of words.
    #[inline(always)]
    fn split<L: Lanes<V = T>>(&self, lanes: L, words: T) -> [T; 2] {
        let high = lanes.and(lanes.shift_down(words, self.eight), self.byte);
        [lanes.and(words, self.byte), high]
    }
}

/// `out[x] = (upper[x], lower[x])`, and a second piece `stride` elements on if there is one. There has to be room for the row rounded up to [`TILE`] / 2
/// samples; what is written beyond the row means nothing.
pub(super) fn pair_rows<L: Lanes>(
    lanes: L,
    reading: Reading,
    rows: [&[u8]; 2],
    out: &mut [u32],
    stride: usize,
) {
    let reach = (rows[0].len() / reading.bytes).next_multiple_of(TILE / 2);
    let pieces = if reading.halves { 2 } else { 1 };
    assert!(rows[0].len() == rows[1].len() && (pieces - 1) * stride + reach <= out.len());
    if reading.bytes == 1 {
        lanes.enter(PairRows::<1>(reading, rows, out.as_mut_ptr(), stride));
    } else {
        lanes.enter(PairRows::<2>(reading, rows, out.as_mut_ptr(), stride));
    }
}

/// What [`pair_rows`] has checked, for samples of `BYTES` bytes.
struct PairRows<'a, const BYTES: usize>(Reading, [&'a [u8]; 2], *mut u32, usize);

impl<const BYTES: usize> Work for PairRows<'_, BYTES> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let PairRows(reading, rows, out, stride) = self;
        let words = Words::new(lanes, reading);
        let step = 2 * L::LANES * BYTES;
        let whole = rows[0].len() / step * step;
        for at in (0..whole).step_by(step) {
            // SAFETY: a step ends within the whole ones, for which there is room.
            unsafe {
                let from = rows.map(|row| row.as_ptr().add(at));
                pair_step::<L, BYTES>(lanes, &words, from, out.add(at / BYTES), stride);
            }
        }
        if whole < rows[0].len() {
            let last = rows.map(|row| padded_step(&row[whole..]));
            // SAFETY: the copies are a step long, and there is room for a step.
            unsafe {
                let from = last.each_ref().map(|row| row.as_ptr());
                pair_step::<L, BYTES>(lanes, &words, from, out.add(whole / BYTES), stride);
            }
        }
    }
}

/// The end of a row, filled up to the longest step.
fn padded_step(rest: &[u8]) -> [u8; TILE] {
    let mut step = [0; TILE];
    step[..rest.len()].copy_from_slice(rest);
    step
}

/// Two vectors of pairs.
#[inline(always)]
unsafe fn pair_step<L: Lanes, const BYTES: usize>(
    lanes: L,
    words: &Words<L::V>,
    from: [*const u8; 2],
    out: *mut u32,
    stride: usize,
) {
    // SAFETY: the caller has a step of samples and the room for it.
    unsafe {
        if BYTES == 1 {
            store_both(lanes, out, lanes.pair_bytes(from[0], from[1]));
            return;
        }
        let [first, second] = lanes.pair_words(from[0].cast(), from[1].cast());
        let pairs = [words.taken(lanes, first), words.taken(lanes, second)];
        if words.reading.halves {
            let (first, second) = (words.split(lanes, pairs[0]), words.split(lanes, pairs[1]));
            store_both(lanes, out, [first[0], second[0]]);
            store_both(lanes, out.add(stride), [first[1], second[1]]);
        } else {
            store_both(lanes, out, pairs);
        }
    }
}

/// `out[x] = row[x]` as a word, and a second piece `stride` words on if there is one. Room as for [`pair_rows`].
pub(super) fn load_row<L: Lanes>(lanes: L, reading: Reading, row: &[u8], out: &mut [u16], stride: usize) {
    let reach = (row.len() / reading.bytes).next_multiple_of(TILE / 2);
    let pieces = if reading.halves { 2 } else { 1 };
    assert!((pieces - 1) * stride + reach <= out.len());
    if reading.bytes == 1 {
        lanes.enter(LoadRow::<1>(reading, row, out.as_mut_ptr(), stride));
    } else {
        lanes.enter(LoadRow::<2>(reading, row, out.as_mut_ptr(), stride));
    }
}

/// What [`load_row`] has checked, for samples of `BYTES` bytes.
struct LoadRow<'a, const BYTES: usize>(Reading, &'a [u8], *mut u16, usize);

impl<const BYTES: usize> Work for LoadRow<'_, BYTES> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let LoadRow(reading, row, out, stride) = self;
        let words = Words::new(lanes, reading);
        let step = 2 * L::LANES * BYTES;
        let whole = row.len() / step * step;
        for at in (0..whole).step_by(step) {
            // SAFETY: a step ends within the whole ones, for which there is room.
            unsafe {
                let from = row.as_ptr().add(at);
                load_step::<L, BYTES>(lanes, &words, from, out.add(at / BYTES), stride);
            }
        }
        if whole < row.len() {
            let last = padded_step(&row[whole..]);
            // SAFETY: the copy is a step long, and there is room for a step.
            unsafe {
                load_step::<L, BYTES>(lanes, &words, last.as_ptr(), out.add(whole / BYTES), stride);
            };
        }
    }
}

/// A vector of words.
#[inline(always)]
unsafe fn load_step<L: Lanes, const BYTES: usize>(
    lanes: L,
    words: &Words<L::V>,
    from: *const u8,
    out: *mut u16,
    stride: usize,
) {
    // SAFETY: the caller has a step of samples and the room for it.
    unsafe {
        if BYTES == 1 {
            lanes.store(out, lanes.widen(from));
            return;
        }
        let taken = words.taken(lanes, lanes.load(from));
        if words.reading.halves {
            let [low, high] = words.split(lanes, taken);
            lanes.store(out, low);
            lanes.store(out.add(stride), high);
        } else {
            lanes.store(out, taken);
        }
    }
}

/// Two vectors, one after the other.
#[inline(always)]
unsafe fn store_both<L: Lanes>(lanes: L, to: *mut u32, values: [L::V; 2]) {
    // SAFETY: the caller has room for both.
    unsafe {
        lanes.store(to, values[0]);
        lanes.store(to.add(L::LANES), values[1]);
    }
}

/// Makes `R` output rows, two or four, of `samples` samples of `BYTES` bytes; lines are read up to the next multiple of [`TILE`].
pub(super) fn convolve<L: Lanes, const BYTES: usize, const R: usize>(
    lanes: L,
    lines: Lines<'_>,
    taps: Taps<'_>,
    running: Option<Running<'_>>,
    finish: &Finish,
    samples: usize,
    out: [&mut [u8]; R],
) {
    let made = samples.next_multiple_of(TILE);
    assert!(
        running
            .as_ref()
            .is_none_or(|r| R == 2 && lines.pieces == 1 && r.sums.len() >= made)
    );
    let running = running.map(|r| (r.sums.as_mut_ptr(), r.resumes));
    let last = (lines.pieces - 1) * lines.piece_stride + made;
    let reach = |t: &Tap| t.at.max(t.mirror) + last;
    let all = taps.groups.iter().flat_map(|g| g.single.iter().chain(&g.folded));
    assert!(all.map(reach).max().unwrap_or(0) <= lines.elements.len());
    assert!(out.iter().all(|row| row.len() >= samples * BYTES));
    let pattern = TILE * finish.channels;
    assert!(finish.start[..lines.pieces].iter().all(|s| s.len() >= pattern));
    assert!(finish.high.is_empty() || finish.high.len() >= pattern);
    // The assertions bound every read (a tap's element and a multiple of TILE from there, in each piece) and every write.
    let work = Convolve {
        lines,
        taps,
        running,
        finish,
        samples,
        out,
    };
    match lines.pieces {
        1 if R == 4 && !has_more_registers::<L>() => lanes.enter(Rows::<BYTES, 1, 2, R>(work)),
        1 => lanes.enter(Rows::<BYTES, 1, 4, R>(work)),
        2 if R == 2 && has_more_registers::<L>() => lanes.enter(Rows::<BYTES, 2, 4, R>(work)),
        2 => lanes.enter(Rows::<BYTES, 2, 2, R>(work)),
        _ => lanes.enter(Rows::<BYTES, 3, 2, R>(work)),
    }
}

/// True for sets of 32 registers instead of 16, which hold the sums of twice as many vectors.
const fn has_more_registers<L: Lanes>() -> bool {
    L::LANES == 16
}

/// True if four output rows are made at a time with so many taps from lines of so many pieces, so that a line is read half as often: where registers hold
/// their sums, or half as many samples' and taps are most of the work.
pub(super) const fn makes_four_rows(lanes: usize, pieces: usize, taps: usize) -> bool {
    if lanes == 16 {
        pieces <= 2
    } else {
        pieces == 1 && taps >= 24
    }
}

/// What [`convolve`] has checked.
struct Convolve<'a, const R: usize> {
    lines: Lines<'a>,
    taps: Taps<'a>,
    running: Option<(*mut i32, bool)>,
    finish: &'a Finish,
    samples: usize,
    out: [&'a mut [u8]; R],
}

/// `R` output rows of samples of `BYTES` bytes, from lines of `P` pieces, `V` vectors at a time.
struct Rows<'a, const BYTES: usize, const P: usize, const V: usize, const R: usize>(Convolve<'a, R>);

/// The sums of `V` vectors of samples of `R` rows, in `P` pieces.
type Sums<T, const P: usize, const V: usize, const R: usize> = [[[T; V]; R]; P];

/// Adds the taps to the sums of rows `FROM` to `TO`. `FOLD`: 0 for single taps, 1 to add the mirror image, 2 to subtract it.
#[inline(always)]
unsafe fn add_taps<
    L: Lanes,
    const P: usize,
    const V: usize,
    const R: usize,
    const FROM: usize,
    const TO: usize,
    const FOLD: u8,
>(
    lanes: L,
    mut sums: Sums<L::V, P, V, R>,
    base: *const u32,
    piece_stride: usize,
    taps: &[Tap],
) -> Sums<L::V, P, V, R> {
    for tap in taps {
        let weights = tap.weights.map(|pair| lanes.splat(pair));
        for p in 0..P {
            for v in 0..V {
                let step = p * piece_stride + L::LANES * v;
                // SAFETY: `convolve` has bounded every tap's reach.
                let pairs = unsafe {
                    let pairs = lanes.load(base.add(tap.at + step));
                    match FOLD {
                        0 => pairs,
                        1 => lanes.add_words(pairs, lanes.load(base.add(tap.mirror + step))),
                        _ => lanes.sub_words(pairs, lanes.load(base.add(tap.mirror + step))),
                    }
                };
                for row in FROM..TO {
                    sums[p][row][v] = lanes.multiply_add(sums[p][row][v], pairs, weights[row]);
                }
            }
        }
    }
    sums
}

/// Adds a group of taps to the sums of rows `FROM` to `TO`.
#[inline(always)]
unsafe fn add_group<
    L: Lanes,
    const P: usize,
    const V: usize,
    const R: usize,
    const FROM: usize,
    const TO: usize,
>(
    lanes: L,
    sums: Sums<L::V, P, V, R>,
    base: *const u32,
    piece_stride: usize,
    [single, folded]: [&[Tap]; 2],
    fold: Fold,
) -> Sums<L::V, P, V, R> {
    // SAFETY: the caller's.
    unsafe {
        let sums = match fold {
            _ if folded.is_empty() => sums,
            Fold::Add => add_taps::<L, P, V, R, FROM, TO, 1>(lanes, sums, base, piece_stride, folded),
            Fold::Subtract => add_taps::<L, P, V, R, FROM, TO, 2>(lanes, sums, base, piece_stride, folded),
        };
        add_taps::<L, P, V, R, FROM, TO, 0>(lanes, sums, base, piece_stride, single)
    }
}

impl<const BYTES: usize, const P: usize, const V: usize, const R: usize> Work for Rows<'_, BYTES, P, V, R> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Convolve {
            lines,
            taps,
            running,
            finish,
            samples,
            out,
        } = self.0;
        let zero = lanes.splat(0);
        let joining = Joining::new(lanes, finish.bits, finish.whole, finish.shift);
        let step = L::LANES * V;
        let out = out.map(<[u8]>::as_mut_ptr);
        // Where a step goes for which there is no room, rows of as many as TILE samples of two bytes.
        let mut last = [[0_u8; 2 * TILE]; R];
        let (mut phase, ahead) = (0, step % finish.channels);
        // Out of the loop, as the compiler cannot know that nothing in it changes them.
        let [upper, all, lower] = taps.groups.each_ref().map(|g| [&g.single[..], &g.folded[..]]);
        let fold = taps.fold;
        for x in (0..samples).step_by(step) {
            let is_whole = samples - x >= step;
            let to = if is_whole {
                // SAFETY: `convolve` has found room for `samples`.
                out.map(|row| unsafe { row.add(x * BYTES) })
            } else {
                last.each_mut().map(|row| row.as_mut_ptr())
            };
            let mut sums: Sums<L::V, P, V, R> = [[[zero; V]; R]; P];
            for p in 0..P {
                for v in 0..V {
                    // SAFETY: the pattern is TILE x channels long; running sums go as far as the multiple of TILE.
                    let start = unsafe {
                        lanes.load(match running {
                            Some((kept, true)) => kept.cast_const().add(x + L::LANES * v),
                            _ => finish.start[p].as_ptr().add(phase * TILE + L::LANES * v),
                        })
                    };
                    for row in 0..R {
                        sums[p][row][v] = start;
                    }
                }
            }
            // SAFETY: x + LANES V is at most the multiple of TILE up to which `convolve` has bounded the taps.
            unsafe {
                let (base, stride) = (lines.elements.as_ptr().add(x), lines.piece_stride);
                sums = add_group::<L, P, V, R, 0, 2>(lanes, sums, base, stride, upper, fold);
                if R == 4 {
                    sums = add_group::<L, P, V, R, 0, R>(lanes, sums, base, stride, all, fold);
                    sums = add_group::<L, P, V, R, 2, R>(lanes, sums, base, stride, lower, fold);
                }
            }
            if let Some((kept, _)) = running {
                for v in 0..V {
                    // SAFETY: running sums go as far as the multiple of TILE.
                    unsafe { lanes.store(kept.add(x + L::LANES * v), sums[0][1][v]) };
                }
            }
            for row in 0..R {
                let mut values = [zero; V];
                for v in 0..V {
                    let mut pieces = [zero; P];
                    for p in 0..P {
                        pieces[p] = sums[p][row][v];
                    }
                    values[v] = joining.join(lanes, pieces);
                }
                // SAFETY: the pattern is TILE x channels long, and there is room for a step.
                unsafe { give::<L, BYTES, V>(lanes, values, finish, phase, lines.order, to[row]) };
            }
            phase += ahead;
            if phase >= finish.channels {
                phase -= finish.channels;
            }
        }
        let whole = samples / step * step;
        for row in 0..R {
            // SAFETY: `convolve` has found room for `samples`.
            unsafe {
                let rest = (samples - whole) * BYTES;
                out[row]
                    .add(whole * BYTES)
                    .copy_from_nonoverlapping(last[row].as_ptr(), rest);
            }
        }
    }
}

/// Adds what is added after the shift, clamps and stores LANES V samples.
#[inline(always)]
unsafe fn give<L: Lanes, const BYTES: usize, const V: usize>(
    lanes: L,
    mut values: [L::V; V],
    finish: &Finish,
    phase: usize,
    order: Order,
    to: *mut u8,
) {
    if !finish.high.is_empty() {
        for v in 0..V {
            // SAFETY: the pattern is TILE x channels long.
            let high = unsafe { lanes.load(finish.high.as_ptr().add(phase * TILE + L::LANES * v)) };
            values[v] = lanes.add(values[v], high);
        }
    }
    // SAFETY: the caller has the room.
    unsafe { put::<L, BYTES, V>(lanes, values, finish, order, to) };
}

/// Clamps and stores LANES V samples.
#[inline(always)]
pub(super) unsafe fn put<L: Lanes, const BYTES: usize, const V: usize>(
    lanes: L,
    values: [L::V; V],
    finish: &Finish,
    order: Order,
    out: *mut u8,
) {
    if BYTES == 1 {
        // SAFETY: the caller has the room.
        unsafe { lanes.put_bytes(values, order, out) };
        return;
    }
    for v in (0..V).step_by(2) {
        let two = [values[v], values[v + 1]];
        // SAFETY: the caller has the room.
        unsafe { lanes.put_words(two, order, finish.max, finish.left, out.add(2 * L::LANES * v)) };
    }
}

/// How the sums of pieces become one, and how far that is shifted down.
#[derive(Clone, Copy)]
struct Joining<T> {
    whole: bool,
    bits: T,
    twice: T,
    shift: T,
}

impl<T: Copy> Joining<T> {
    #[inline(always)]
    fn new<L: Lanes<V = T>>(lanes: L, bits: u32, whole: bool, shift: u32) -> Joining<T> {
        Joining {
            whole,
            bits: lanes.splat(bits as i32),
            twice: lanes.splat(2 * bits as i32),
            shift: lanes.splat(shift as i32),
        }
    }

    /// The sum of all pieces, shifted down.
    #[inline(always)]
    fn join<L: Lanes<V = T>, const P: usize>(self, lanes: L, pieces: [T; P]) -> T {
        let mut sum = pieces[0];
        if P > 1 && self.whole {
            sum = lanes.add(sum, lanes.shift_up(pieces[1], self.bits));
            if P > 2 {
                sum = lanes.add(sum, lanes.shift_up(pieces[2], self.twice));
            }
        } else {
            for p in 1..P {
                sum = lanes.add(pieces[p], lanes.shift_down(sum, self.bits));
            }
        }
        lanes.shift_down(sum, self.shift)
    }

    /// How a row pass's sums in `pieces` pieces of 8 bits become intermediates. These have 24 bits, so with a shift below 8 the whole sum fits 32.
    #[inline(always)]
    fn of_row_pass<L: Lanes<V = T>>(lanes: L, pieces: usize, shift: u32) -> Joining<T> {
        let whole = pieces > 1 && shift < 8;
        let below = if pieces == 1 || whole { 0 } else { 8 };
        Joining::new(lanes, 8, whole, shift - below)
    }
}

/// How the sums of a row pass become pieces of intermediates.
struct RowEnding<T> {
    joining: Joining<T>,
    /// What brings a sum's low word of the result into its high word; `None` if that is a shift down.
    up: Option<T>,
    sixteen: T,
    /// The bits of a piece, and how many they are.
    mask: T,
    bits: T,
}

impl<T: Copy> RowEnding<T> {
    #[inline(always)]
    fn new<L: Lanes<V = T>>(lanes: L, pieces: usize, pass: &RowPass) -> RowEnding<T> {
        RowEnding {
            joining: Joining::of_row_pass(lanes, pieces, pass.shift),
            up: (pass.shift <= 16).then(|| lanes.splat(16 - pass.shift as i32)),
            sixteen: lanes.splat(16),
            mask: lanes.splat((1 << pass.bits) - 1),
            bits: lanes.splat(pass.bits as i32),
        }
    }
}

/// Writes the intermediates of an upper and a lower row as pairs, in `T` pieces `stride` elements apart.
#[inline(always)]
unsafe fn put_pairs<L: Lanes, const P: usize, const T: usize>(
    lanes: L,
    sums: [[L::V; P]; 2],
    ending: &RowEnding<L::V>,
    to: *mut u32,
    stride: usize,
) {
    let mut upper = ending.joining.join(lanes, sums[0]);
    if let (1, 1, Some(up)) = (P, T, ending.up) {
        let pairs = lanes.merge(upper, lanes.shift_up(sums[1][0], up));
        // SAFETY: the caller has the room.
        unsafe { lanes.store(to, pairs) };
        return;
    }
    let mut lower = ending.joining.join(lanes, sums[1]);
    for k in 0..T {
        let (mut low, mut high) = (upper, lower);
        if k + 1 < T {
            (low, high) = (lanes.and(upper, ending.mask), lanes.and(lower, ending.mask));
            (upper, lower) = (
                lanes.shift_down(upper, ending.bits),
                lanes.shift_down(lower, ending.bits),
            );
        }
        // SAFETY: the caller has the room.
        unsafe {
            lanes.store(
                to.add(k * stride),
                lanes.merge(low, lanes.shift_up(high, ending.sixteen)),
            );
        };
    }
}

/// The row pass over two rows of words, piece after piece `piece_stride` words apart. `out` gets pairs (upper, lower) of intermediates in `out_pieces`
/// pieces, `out.len() / out_pieces` (a multiple of [`TILE`]) of each: in [`Order::Alternate`] where words are paired in place, in
/// [`Order::Zipped`] where they are zipped.
pub(super) fn row_pass<L: Lanes>(
    lanes: L,
    rows: [&[u16]; 2],
    (pieces, piece_stride): (usize, usize),
    pass: &RowPass,
    out: &mut [u32],
    out_pieces: usize,
) {
    let samples = out.len() / out_pieces;
    let furthest = match &pass.pairing {
        // The last vector's taps end one word further on than the last sample's own.
        Pairing::InPlace(taps) => taps.iter().map(|t| t.0).max().unwrap_or(0),
        Pairing::Zipped(zips) => zips.reach(),
    };
    let needed = (pieces - 1) * piece_stride + furthest + samples;
    assert!(pieces <= 2 && rows.iter().all(|row| needed <= row.len()));
    assert!(samples.is_multiple_of(TILE) && samples * out_pieces == out.len());
    // The assertions bound every read (2 LANES words from x + tap on, x + 2 LANES at most `samples`) and every write.
    let work = RowWork {
        rows: rows.map(<[u16]>::as_ptr),
        piece_stride,
        pass,
        out: out.as_mut_ptr(),
        samples,
    };
    match &pass.pairing {
        Pairing::InPlace(taps) => match (pieces, out_pieces) {
            (1, 1) => lanes.enter(InPlace::<1, 1, 2>(work, taps)),
            (1, 2) => lanes.enter(InPlace::<1, 2, 2>(work, taps)),
            (1, _) => lanes.enter(InPlace::<1, 3, 2>(work, taps)),
            (_, 2) if has_more_registers::<L>() => lanes.enter(InPlace::<2, 2, 2>(work, taps)),
            (_, 3) if has_more_registers::<L>() => lanes.enter(InPlace::<2, 3, 2>(work, taps)),
            (_, 1) => lanes.enter(InPlace::<2, 1, 1>(work, taps)),
            (_, 2) => lanes.enter(InPlace::<2, 2, 1>(work, taps)),
            _ => lanes.enter(InPlace::<2, 3, 1>(work, taps)),
        },
        Pairing::Zipped(zips) => match (pieces, out_pieces) {
            (1, 1) => lanes.enter(Zipped::<1, 1, 2>(work, zips)),
            (1, 2) => lanes.enter(Zipped::<1, 2, 2>(work, zips)),
            (1, _) => lanes.enter(Zipped::<1, 3, 2>(work, zips)),
            (_, 2) if has_more_registers::<L>() => lanes.enter(Zipped::<2, 2, 2>(work, zips)),
            (_, 3) if has_more_registers::<L>() => lanes.enter(Zipped::<2, 3, 2>(work, zips)),
            (_, 1) => lanes.enter(Zipped::<2, 1, 1>(work, zips)),
            (_, 2) => lanes.enter(Zipped::<2, 2, 1>(work, zips)),
            _ => lanes.enter(Zipped::<2, 3, 1>(work, zips)),
        },
    }
}

/// What [`row_pass`] has checked.
#[derive(Clone, Copy)]
struct RowWork<'a> {
    rows: [*const u16; 2],
    piece_stride: usize,
    pass: &'a RowPass,
    out: *mut u32,
    samples: usize,
}

impl RowWork<'_> {
    /// Writes `V` times two vectors of intermediates from the sums of `P` pieces as `T` pieces.
    #[inline(always)]
    unsafe fn put<L: Lanes, const P: usize, const T: usize, const V: usize>(
        &self,
        lanes: L,
        sums: RowSums<L::V, P, V>,
        ending: &RowEnding<L::V>,
        x: usize,
    ) {
        for v in 0..V {
            for half in 0..2 {
                let to = x + 2 * L::LANES * v + L::LANES * half;
                let mut pieces = [[sums[0][0][0][0]; P]; 2];
                for row in 0..2 {
                    for p in 0..P {
                        pieces[row][p] = sums[p][row][half][v];
                    }
                }
                // SAFETY: x + 2 LANES V is at most `samples`, a piece's length.
                unsafe { put_pairs::<L, P, T>(lanes, pieces, ending, self.out.add(to), self.samples) };
            }
        }
    }
}

/// The sums of two rows in `P` pieces: `V` pairs of vectors.
type RowSums<T, const P: usize, const V: usize> = [[[[T; V]; 2]; 2]; P];

/// The row pass in place, from `P` pieces to `T`, `V` vectors of words at a time.
struct InPlace<'a, const P: usize, const T: usize, const V: usize>(RowWork<'a>, &'a [(usize, [i32; 2])]);

impl<const P: usize, const T: usize, const V: usize> Work for InPlace<'_, P, T, V> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let InPlace(work, taps) = self;
        let (start, zero) = (lanes.splat(work.pass.start), lanes.splat(0));
        let ending = RowEnding::new(lanes, P, work.pass);
        for x in (0..work.samples).step_by(2 * L::LANES * V) {
            // Even and odd results of each row.
            let mut sums: RowSums<L::V, P, V> = [[[[zero; V]; 2]; 2]; P];
            sums[0] = [[[start; V]; 2]; 2];
            for &(at, [even, odd]) in taps {
                let weights = [lanes.splat(even), lanes.splat(odd)];
                for p in 0..P {
                    for row in 0..2 {
                        for v in 0..V {
                            let from = x + at + p * work.piece_stride + 2 * L::LANES * v;
                            // SAFETY: `row_pass` has bounded every tap's reach.
                            let words = unsafe { lanes.load(work.rows[row].add(from)) };
                            for parity in 0..2 {
                                let sum = &mut sums[p][row][parity][v];
                                *sum = lanes.multiply_add(*sum, words, weights[parity]);
                            }
                        }
                    }
                }
            }
            // SAFETY: x + 2 LANES V is at most `samples`.
            unsafe { work.put::<L, P, T, V>(lanes, sums, &ending, x) };
        }
    }
}

/// The row pass by zipping, from `P` pieces to `T`, `V` vectors of words at a time.
struct Zipped<'a, const P: usize, const T: usize, const V: usize>(RowWork<'a>, &'a Zips);

impl<const P: usize, const T: usize, const V: usize> Work for Zipped<'_, P, T, V> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Zipped(work, zips) = self;
        let (start, zero) = (lanes.splat(work.pass.start), lanes.splat(0));
        let ending = RowEnding::new(lanes, P, work.pass);
        for x in (0..work.samples).step_by(2 * L::LANES * V) {
            let mut sums: RowSums<L::V, P, V> = [[[[zero; V]; 2]; 2]; P];
            sums[0] = [[[start; V]; 2]; 2];
            for &([first, second], weights) in &zips.sums {
                sums = add_zip::<L, P, V, 2, 2>(lanes, sums, &work, x, (first, second, weights));
            }
            for &(first, second, weights) in &zips.mixed {
                sums = add_zip::<L, P, V, 2, 1>(lanes, sums, &work, x, (first, [second; 2], weights));
            }
            for &([first, second], weights) in &zips.singles {
                sums = add_zip::<L, P, V, 1, 1>(lanes, sums, &work, x, ([first; 2], [second; 2], weights));
            }
            // SAFETY: x + 2 LANES V is at most `samples`.
            unsafe { work.put::<L, P, T, V>(lanes, sums, &ending, x) };
        }
    }
}

/// Adds two terms of `A` and `B` words (1 or 2), zipped.
#[inline(always)]
fn add_zip<L: Lanes, const P: usize, const V: usize, const A: usize, const B: usize>(
    lanes: L,
    mut sums: RowSums<L::V, P, V>,
    work: &RowWork<'_>,
    x: usize,
    (first, second, weights): ([usize; 2], [usize; 2], i32),
) -> RowSums<L::V, P, V> {
    let weights = lanes.splat(weights);
    for p in 0..P {
        for row in 0..2 {
            for v in 0..V {
                // SAFETY: `row_pass` has bounded every term's reach.
                let [a, b] = unsafe {
                    let from = work.rows[row].add(x + p * work.piece_stride + 2 * L::LANES * v);
                    let (mut a, mut b) = (lanes.load(from.add(first[0])), lanes.load(from.add(second[0])));
                    if A == 2 {
                        a = lanes.add_words(a, lanes.load(from.add(first[1])));
                    }
                    if B == 2 {
                        b = lanes.add_words(b, lanes.load(from.add(second[1])));
                    }
                    [a, b]
                };
                let pairs = lanes.zip(a, b);
                for half in 0..2 {
                    let sum = &mut sums[p][row][half][v];
                    *sum = lanes.multiply_add(*sum, pairs[half], weights);
                }
            }
        }
    }
    sums
}
