//! The inner loops of window sums, for vectors of any width: words of 16 bits that are added up along a row, and down the rows as rows come and go.
//!
//! Sums of words may wrap on the way, since a sum that ends within 16 bits ends right.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not unroll.
#![allow(clippy::needless_range_loop)]

use super::lanes::{Lanes, Order, Work};
use super::loops::{Finish, TILE, ask, put};

/// Fewer samples than this are added up where they are used; from here on they are added up by four, and from [`LEAST_EIGHTS`] on by eight.
const LEAST_FOURS: usize = 9;
const LEAST_EIGHTS: usize = 17;

/// Differences of lines that change weighted sums, beside that of the row that enters and the one that leaves.
pub(super) const DIFFERENCES: usize = 2;

/// Rows of a window, beside the newest one, that may weigh more or less than the others.
pub(super) const UNEVEN: usize = 4;

/// How the samples of a row are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Horizontal {
    /// How many there are, an odd number up to 63.
    count: usize,
    /// From a sample to the next one of its channel.
    step: usize,
    /// Samples of a partial sum, 1, 4 or 8, and how many of those come nearest.
    part: usize,
    parts: usize,
}

/// Numbers of partial sums, and the sign of the sample that they lack or have too many, which are added up where they are used: those of fours, and some of
/// eights.
const WITH_ONE_MORE: [(usize, i8); 4] = [(2, 1), (3, -1), (3, 1), (4, -1)];

/// Sums along a row that are yet to be made: of `count` words that are `step` words apart, and one of `more` that is added, or taken away where `sign` is
/// negative; none if it is 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a> {
    words: &'a [u16],
    count: usize,
    step: usize,
    more: &'a [u16],
    sign: i8,
}

impl Horizontal {
    /// Sums of `count` samples, `step` apart.
    pub(super) fn new(count: usize, step: usize) -> Horizontal {
        let part = match count {
            ..LEAST_FOURS => 1,
            LEAST_FOURS..LEAST_EIGHTS => 4,
            _ => 8,
        };
        Horizontal {
            count,
            step,
            part,
            parts: (count + part / 2) / part,
        }
    }

    /// As far as sums of four and of eight samples are needed for `made` sums: to the end of a step.
    fn reach_of_parts(&self, made: usize) -> [usize; 2] {
        let last = (made + (self.parts - 1) * self.part * self.step).next_multiple_of(TILE);
        match self.part {
            1 => [0, 0],
            4 => [last, 0],
            _ => [(last + 4 * self.step).next_multiple_of(TILE), last],
        }
    }

    /// How many samples are read for `made` sums, a multiple of [`TILE`].
    pub(super) fn reach(&self, made: usize) -> usize {
        let alone = made + self.count.max(self.parts * self.part) * self.step;
        alone.max(self.reach_of_parts(made)[0] + 3 * self.step)
    }

    /// Adds up all but a few samples of a row for `made` sums (a multiple of [`TILE`]), by way of sums of four and of eight.
    pub(super) fn add_up<'a, L: Lanes>(
        &self,
        lanes: L,
        words: &'a [u16],
        [fours, eights, all]: [&'a mut [u16]; 3],
        made: usize,
    ) -> Rest<'a> {
        let step = self.step;
        if self.part == 1 {
            return Rest {
                words,
                count: self.count,
                step,
                more: words,
                sign: 0,
            };
        }
        let [fours_made, eights_made] = self.reach_of_parts(made);
        let (fours, eights, all) = (
            &mut fours[..fours_made],
            &mut eights[..eights_made],
            &mut all[..made],
        );
        lanes.enter(Adding::<4, 0>::new((words, step), (words, 0), fours));
        let parts = if self.part == 4 {
            &*fours
        } else {
            lanes.enter(Adding::<2, 0>::new((fours, 4 * step), (words, 0), eights));
            &*eights
        };
        let apart = (parts, self.part * step);
        let whole = self.parts * self.part;
        let rest = |at: usize| &words[at * step..];
        let (sign, more) = match self.count as i64 - whole as i64 {
            -1 => (-1, rest(self.count)),
            1 => (1, rest(whole)),
            _ => (0, words),
        };
        if WITH_ONE_MORE.contains(&(self.parts, sign)) {
            return Rest {
                words: parts,
                count: self.parts,
                step: apart.1,
                more,
                sign,
            };
        }
        match self.count as i64 - whole as i64 {
            -3 => add_parts::<L, -3>(lanes, apart, self.parts, (rest(self.count), step), all),
            -1 => add_parts::<L, -1>(lanes, apart, self.parts, (rest(self.count), step), all),
            1 => add_parts::<L, 1>(lanes, apart, self.parts, (rest(whole), step), all),
            _ => add_parts::<L, 3>(lanes, apart, self.parts, (rest(whole), step), all),
        }
        Rest {
            words: all,
            count: 1,
            step,
            more: all,
            sign: 0,
        }
    }
}

/// [`Adding`] of `parts` parts, 2 to 8.
fn add_parts<L: Lanes, const REST: i8>(
    lanes: L,
    apart: (&[u16], usize),
    parts: usize,
    rest: (&[u16], usize),
    out: &mut [u16],
) {
    match parts {
        2 => lanes.enter(Adding::<2, REST>::new(apart, rest, out)),
        3 => lanes.enter(Adding::<3, REST>::new(apart, rest, out)),
        4 => lanes.enter(Adding::<4, REST>::new(apart, rest, out)),
        5 => lanes.enter(Adding::<5, REST>::new(apart, rest, out)),
        6 => lanes.enter(Adding::<6, REST>::new(apart, rest, out)),
        7 => lanes.enter(Adding::<7, REST>::new(apart, rest, out)),
        _ => lanes.enter(Adding::<8, REST>::new(apart, rest, out)),
    }
}

/// Adds up `PARTS` words each, and adds `REST` more ones or takes as many away if that is negative.
struct Adding<'a, const PARTS: usize, const REST: i8> {
    words: *const u16,
    step: usize,
    rest: *const u16,
    rest_step: usize,
    out: &'a mut [u16],
}

impl<'a, const PARTS: usize, const REST: i8> Adding<'a, PARTS, REST> {
    fn new(
        (words, step): (&[u16], usize),
        (rest, rest_step): (&[u16], usize),
        out: &'a mut [u16],
    ) -> Adding<'a, PARTS, REST> {
        let more = usize::from(REST.unsigned_abs());
        // Every read and every write is bounded by this.
        assert!(out.len().is_multiple_of(TILE) && words.len() >= out.len() + (PARTS - 1) * step);
        assert!(more == 0 || rest.len() >= out.len() + (more - 1) * rest_step);
        Adding {
            words: words.as_ptr(),
            step,
            rest: rest.as_ptr(),
            rest_step,
            out,
        }
    }
}

impl<const PARTS: usize, const REST: i8> Work for Adding<'_, PARTS, REST> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        for x in (0..self.out.len()).step_by(2 * L::LANES) {
            // SAFETY: `new` has bounded all of them.
            unsafe {
                let mut sum = add_steps::<L, PARTS>(lanes, self.words.add(x), self.step);
                for k in 0..usize::from(REST.unsigned_abs()) {
                    let more = lanes.load(self.rest.add(x + k * self.rest_step));
                    sum = if REST > 0 {
                        lanes.add_words(sum, more)
                    } else {
                        lanes.sub_words(sum, more)
                    };
                }
                lanes.store(self.out.as_mut_ptr().add(x), sum);
            }
        }
    }
}

/// The sum of `COUNT` vectors of words that are `step` words apart.
#[inline(always)]
unsafe fn add_steps<L: Lanes, const COUNT: usize>(lanes: L, from: *const u16, step: usize) -> L::V {
    // SAFETY: the caller has bounded them.
    unsafe {
        let mut sum = lanes.load(from);
        for k in 1..COUNT {
            sum = lanes.add_words(sum, lanes.load(from.add(k * step)));
        }
        sum
    }
}

/// `((sum + add) x factor + 2^14) >> (15 + down)`, where sums are kept with `add`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) add: u16,
    pub(super) factor: u16,
    pub(super) down: u32,
}

impl Scale {
    /// What a sum becomes.
    pub(super) fn of(self, sum: u16) -> u8 {
        let scaled = (i32::from(sum + self.add) * i32::from(self.factor) + (1 << 14)) >> 15;
        (scaled >> self.down) as u8
    }
}

/// What becomes of a row's sums; a window's sums go from one row to the next, one a sample up to the next multiple of [`TILE`].
pub(super) enum Making<'a> {
    /// The window's sums are scaled.
    Scaled {
        sums: &'a mut [u16],
        scale: &'a Scale,
        /// Padding bits below a stored sample.
        left: u32,
    },
    /// The windows' sums and those of a few of their rows are weighted.
    Uneven {
        /// The windows' sums as they are.
        sums: &'a mut [u16],
        few: FewRows,
        /// Made for sums that are 32768 less, which makes words with a sign of them.
        finish: &'a Finish,
    },
    /// The same where the windows' sums need more than 16 bits.
    UnevenWide {
        /// The windows' sums, weighted.
        sums: &'a mut [i32],
        few: FewRows,
        finish: &'a Finish,
    },
    /// Weighted sums change by what the window's sums and the steps between weights change by.
    Weighted {
        sums: &'a mut [i32],
        /// What weighs the row that enters less the one that leaves, and after it each difference.
        weights: [i32; 1 + DIFFERENCES],
        /// Where in the memory of the ring the lines lie whose differences count, too.
        differences: [[usize; 2]; DIFFERENCES],
        finish: &'a Finish,
    },
}

/// The few rows of a window that weigh more or less than the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct FewRows {
    /// What the window weighs, and how much more the few rows.
    pub(super) weights: [i32; 2],
    /// True if the row that enters is one of them.
    pub(super) newest: bool,
    /// How many others there are, and where in the memory of the ring they lie; what is left lies where there are zeros.
    pub(super) count: usize,
    pub(super) lines: [usize; UNEVEN],
}

impl FewRows {
    /// Others beside the newest row, of which loops are compiled for 1, 2 and 4, or one without it.
    pub(super) fn suit(newest: bool, others: usize) -> bool {
        (newest && (1..=UNEVEN).contains(&others)) || others == 1
    }

    /// The lines of those that loops are compiled for.
    fn first<const LINES: usize>(&self) -> [usize; LINES] {
        std::array::from_fn(|i| self.lines[i])
    }

    /// The factors of the window's sum and of theirs, as pairs of words.
    fn pair(&self) -> i32 {
        self.weights[0] & 0xFFFF | self.weights[1] << 16
    }
}

/// Makes a row of the result, of samples of `BYTES` bytes; what is read `next` is asked for meanwhile. At `at` in `ring` there are the sums of the row that leaves the windows, which give way
/// to those of the one that enters, `made` (a multiple of [`TILE`]) of them.
pub(super) fn make<L: Lanes, const BYTES: usize>(
    lanes: L,
    (rest, next): (Rest<'_>, &[u8]),
    (ring, at, made): (&mut [u16], usize, usize),
    making: Making<'_>,
    out: &mut [u8],
) {
    assert!(made.is_multiple_of(TILE) && at + made <= ring.len() && out.len() <= made * BYTES);
    assert!(rest.words.len() >= made + (rest.count - 1) * rest.step && rest.more.len() >= made);
    let row = Row {
        words: rest.words.as_ptr(),
        step: rest.step,
        more: rest.more.as_ptr(),
        ring: ring.as_mut_ptr(),
        at,
        next,
    };
    let terms = (rest.count, rest.sign);
    // The assertions bound every read and every write: x goes up to `made` in steps that divide TILE.
    match making {
        Making::Scaled { sums, scale, left } => {
            assert!(sums.len() >= made);
            let (sums, scale) = (sums.as_mut_ptr(), *scale);
            let ending = Scaled { sums, scale, left };
            enter::<L, BYTES, _>(lanes, row, terms, ending, out);
        }
        Making::Uneven { sums, few, finish } => {
            assert!(sums.len() >= made && few.lines.iter().all(|at| at + made <= ring.len()));
            let sums = sums.as_mut_ptr();
            let ending = Uneven { sums, few, finish };
            match (few.newest, few.count) {
                (false, _) => enter::<L, BYTES, _>(lanes, row, terms, ending.of::<1, false>(), out),
                (true, 1) => enter::<L, BYTES, _>(lanes, row, terms, ending.of::<1, true>(), out),
                (true, 2) => enter::<L, BYTES, _>(lanes, row, terms, ending.of::<2, true>(), out),
                (true, _) => enter::<L, BYTES, _>(lanes, row, terms, ending.of::<UNEVEN, true>(), out),
            }
        }
        Making::UnevenWide { sums, few, finish } => {
            assert!(sums.len() >= made && few.lines.iter().all(|at| at + made <= ring.len()));
            let sums = sums.as_mut_ptr();
            let ending = Uneven { sums, few, finish };
            match (few.newest, few.count) {
                (false, _) => enter::<L, BYTES, _>(lanes, row, terms, ending.of::<1, false>(), out),
                (true, 1) => enter::<L, BYTES, _>(lanes, row, terms, ending.of::<1, true>(), out),
                (true, _) => enter::<L, BYTES, _>(lanes, row, terms, ending.of::<2, true>(), out),
            }
        }
        Making::Weighted {
            sums,
            weights,
            differences,
            finish,
        } => {
            assert!(
                sums.len() >= made
                    && differences
                        .as_flattened()
                        .iter()
                        .all(|at| at + made <= ring.len())
            );
            let ending = Weighted {
                sums: sums.as_mut_ptr(),
                weights,
                differences,
                finish,
            };
            if weights[2..] == [0; DIFFERENCES - 1] {
                enter::<L, BYTES, _>(lanes, row, terms, OneDifference(ending), out);
            } else {
                enter::<L, BYTES, _>(lanes, row, terms, ending, out);
            }
        }
    }
}

/// Runs the loop for sums of so many words, and one more of that sign.
fn enter<L: Lanes, const BYTES: usize, E: Ending>(
    lanes: L,
    row: Row<'_>,
    terms: (usize, i8),
    ending: E,
    out: &mut [u8],
) {
    match terms {
        (1, _) => lanes.enter(Rows::<BYTES, 1, 0, E> { row, ending, out }),
        (2, _) => lanes.enter(Rows::<BYTES, 2, 1, E> { row, ending, out }),
        (3, 0) => lanes.enter(Rows::<BYTES, 3, 0, E> { row, ending, out }),
        (3, 1) => lanes.enter(Rows::<BYTES, 3, 1, E> { row, ending, out }),
        (3, _) => lanes.enter(Rows::<BYTES, 3, -1, E> { row, ending, out }),
        (4, _) => lanes.enter(Rows::<BYTES, 4, -1, E> { row, ending, out }),
        (5, _) => lanes.enter(Rows::<BYTES, 5, 0, E> { row, ending, out }),
        _ => lanes.enter(Rows::<BYTES, 7, 0, E> { row, ending, out }),
    }
}

/// A row to add up, and the line of the row that leaves.
#[derive(Clone, Copy)]
struct Row<'a> {
    words: *const u16,
    step: usize,
    more: *const u16,
    ring: *mut u16,
    at: usize,
    /// What is read next.
    next: &'a [u8],
}

/// A vector of what a row that enters the windows brings.
#[derive(Clone, Copy)]
struct Entering<V> {
    /// The row's sums.
    sums: V,
    /// These less those of the row that leaves.
    change: V,
}

impl Row<'_> {
    /// The sums of the row that enters from sample `x` on, which take the place of those of the one that leaves.
    #[inline(always)]
    unsafe fn enter<L: Lanes, const COUNT: usize, const SIGN: i8>(
        self,
        lanes: L,
        x: usize,
    ) -> Entering<L::V> {
        // SAFETY: `make` has bounded all of them.
        unsafe {
            let mut sum = add_steps::<L, COUNT>(lanes, self.words.add(x), self.step);
            if SIGN > 0 {
                sum = lanes.add_words(sum, lanes.load(self.more.add(x)));
            } else if SIGN < 0 {
                sum = lanes.sub_words(sum, lanes.load(self.more.add(x)));
            }
            let line = self.ring.add(self.at + x);
            let change = lanes.sub_words(sum, lanes.load(line));
            lanes.store(line, sum);
            Entering { sums: sum, change }
        }
    }
}

/// How what changes becomes samples.
trait Ending {
    /// What stays the same along a row.
    type Constants<V: Copy>: Copy;

    fn constants<L: Lanes>(&self, lanes: L) -> Self::Constants<L::V>;

    /// Writes 4 LANES samples of `BYTES` bytes, from sample `x` on.
    ///
    /// # Safety
    /// [`make`] has bounded what lies at `x`; the samples are writable at `to`.
    unsafe fn put<L: Lanes, const BYTES: usize>(
        &self,
        lanes: L,
        constants: Self::Constants<L::V>,
        row: Row<'_>,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    );
}

/// Rows of samples of `BYTES` bytes, with sums of `COUNT` words and one more of the sign `SIGN`.
struct Rows<'a, const BYTES: usize, const COUNT: usize, const SIGN: i8, E> {
    row: Row<'a>,
    ending: E,
    out: &'a mut [u8],
}

impl<const BYTES: usize, const COUNT: usize, const SIGN: i8, E: Ending> Work
    for Rows<'_, BYTES, COUNT, SIGN, E>
{
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Rows { row, ending, out } = self;
        let constants = ending.constants(lanes);
        let (words, step) = (2 * L::LANES, 4 * L::LANES);
        let samples = out.len() / BYTES;
        let whole = samples / step * step;
        let mut last = [0; 2 * TILE];
        // One loop for whole steps and for the rest, for which there is no room, so that it is compiled once.
        let parts = [(0..whole, out.as_mut_ptr()), (whole..samples, last.as_mut_ptr())];
        for (part, to) in parts {
            let to = to.wrapping_sub(part.start * BYTES);
            for x in part.step_by(step) {
                ask(lanes, [row.next], x * BYTES, step * BYTES);
                // SAFETY: a whole step ends within `out`; as many as TILE samples of two bytes fit in `last`, and lines go on to a multiple of TILE.
                unsafe {
                    let entering = [
                        row.enter::<L, COUNT, SIGN>(lanes, x),
                        row.enter::<L, COUNT, SIGN>(lanes, x + words),
                    ];
                    ending.put::<L, BYTES>(lanes, constants, row, x, entering, to.wrapping_add(x * BYTES));
                }
            }
        }
        let rest = &mut out[whole * BYTES..];
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// See [`Making::Scaled`].
struct Scaled {
    sums: *mut u16,
    scale: Scale,
    left: u32,
}

impl Ending for Scaled {
    type Constants<V: Copy> = V;

    #[inline(always)]
    fn constants<L: Lanes>(&self, lanes: L) -> L::V {
        let word = i32::from(self.scale.factor);
        lanes.splat(word << 16 | word)
    }

    #[inline(always)]
    unsafe fn put<L: Lanes, const BYTES: usize>(
        &self,
        lanes: L,
        factor: L::V,
        _: Row<'_>,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    ) {
        let mut values = [factor; 2];
        // SAFETY: see the trait.
        unsafe {
            for v in 0..2 {
                let kept = self.sums.add(x + v * 2 * L::LANES);
                let sum = lanes.add_words(lanes.load(kept), entering[v].change);
                lanes.store(kept, sum);
                let product = lanes.multiply_round_words(sum, factor);
                values[v] = lanes.shift_words_down(product, self.scale.down);
            }
            if BYTES == 1 {
                lanes.put_narrow(values, Order::Zipped, to);
                return;
            }
            for v in 0..2 {
                lanes.store(
                    to.add(4 * L::LANES * v),
                    lanes.shift_words_up(values[v], self.left),
                );
            }
        }
    }
}

/// See [`Making::Uneven`] and [`Making::UnevenWide`]; sums are of `T`.
struct Uneven<'a, T> {
    sums: *mut T,
    few: FewRows,
    finish: &'a Finish,
}

/// The same with `LINES` few rows beside the newest one, if that is one (`NEWEST`).
struct UnevenOf<'a, T, const LINES: usize, const NEWEST: bool> {
    all: Uneven<'a, T>,
    lines: [usize; LINES],
}

impl<'a, T> Uneven<'a, T> {
    fn of<const LINES: usize, const NEWEST: bool>(self) -> UnevenOf<'a, T, LINES, NEWEST> {
        UnevenOf {
            lines: self.few.first(),
            all: self,
        }
    }
}

impl<T, const LINES: usize, const NEWEST: bool> UnevenOf<'_, T, LINES, NEWEST> {
    /// The sums of the few rows from sample `x` on.
    #[inline(always)]
    unsafe fn few<L: Lanes>(&self, lanes: L, row: Row<'_>, entering: Entering<L::V>, x: usize) -> L::V {
        let line = |line: usize| row.ring.cast_const().wrapping_add(self.lines[line] + x);
        // SAFETY: `make` has bounded all of them.
        unsafe {
            let mut few = lanes.load(line(0));
            if NEWEST {
                few = lanes.add_words(few, entering.sums);
            }
            for k in 1..LINES {
                few = lanes.add_words(few, lanes.load(line(k)));
            }
            few
        }
    }
}

impl<const LINES: usize, const NEWEST: bool> Ending for UnevenOf<'_, u16, LINES, NEWEST> {
    /// The weights, what sums begin with, the shift, and the bit that gives words a sign.
    type Constants<V: Copy> = [V; 4];

    #[inline(always)]
    fn constants<L: Lanes>(&self, lanes: L) -> [L::V; 4] {
        let Uneven { few, finish, .. } = &self.all;
        [
            lanes.splat(few.pair()),
            lanes.splat(finish.start[0][0]),
            lanes.splat(finish.shift as i32),
            lanes.splat(0x8000_8000_u32 as i32),
        ]
    }

    #[inline(always)]
    unsafe fn put<L: Lanes, const BYTES: usize>(
        &self,
        lanes: L,
        [weights, start, shift, sign]: [L::V; 4],
        row: Row<'_>,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    ) {
        let mut values = [start; 4];
        // SAFETY: see the trait.
        unsafe {
            for v in 0..2 {
                let at = x + v * 2 * L::LANES;
                let kept = self.all.sums.add(at);
                let sum = lanes.add_words(lanes.load(kept), entering[v].change);
                lanes.store(kept, sum);
                let few = self.few(lanes, row, entering[v], at);
                let pairs = lanes.zip(lanes.xor(sum, sign), few);
                for half in 0..2 {
                    let sum = lanes.multiply_add(start, pairs[half], weights);
                    values[2 * v + half] = lanes.shift_down(sum, shift);
                }
            }
            put_numbers::<L, BYTES>(lanes, values, self.all.finish, to);
        }
    }
}

impl<const LINES: usize, const NEWEST: bool> Ending for UnevenOf<'_, i32, LINES, NEWEST> {
    /// The weights, that of the window alone, and the shift.
    type Constants<V: Copy> = [V; 3];

    #[inline(always)]
    fn constants<L: Lanes>(&self, lanes: L) -> [L::V; 3] {
        let Uneven { few, finish, .. } = &self.all;
        [
            lanes.splat(few.pair()),
            lanes.splat(few.weights[0] & 0xFFFF),
            lanes.splat(finish.shift as i32),
        ]
    }

    #[inline(always)]
    unsafe fn put<L: Lanes, const BYTES: usize>(
        &self,
        lanes: L,
        [weights, of_window, shift]: [L::V; 3],
        row: Row<'_>,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    ) {
        let mut values = [shift; 4];
        for v in 0..2 {
            let at = x + v * 2 * L::LANES;
            // SAFETY: see the trait.
            unsafe {
                let pairs = lanes.zip(entering[v].change, self.few(lanes, row, entering[v], at));
                for half in 0..2 {
                    let kept = self.all.sums.add(at + half * L::LANES);
                    let sum = lanes.load(kept);
                    lanes.store(kept, lanes.multiply_add(sum, pairs[half], of_window));
                    let sum = lanes.multiply_add(sum, pairs[half], weights);
                    values[2 * v + half] = lanes.shift_down(sum, shift);
                }
            }
        }
        // SAFETY: the caller has the room.
        unsafe { put_numbers::<L, BYTES>(lanes, values, self.all.finish, to) };
    }
}

/// See [`Making::Weighted`].
struct Weighted<'a> {
    sums: *mut i32,
    weights: [i32; 1 + DIFFERENCES],
    differences: [[usize; 2]; DIFFERENCES],
    finish: &'a Finish,
}

/// The same where the first difference is the only one.
struct OneDifference<'a>(Weighted<'a>);

/// The weights of the window and of the first difference, that of the second one, and the shift.
type Factors<V> = ([V; 2], V);

impl Weighted<'_> {
    #[inline(always)]
    fn factors<L: Lanes>(&self, lanes: L) -> Factors<L::V> {
        let [window, first, second] = self.weights;
        let weights = [
            lanes.splat(window & 0xFFFF | first << 16),
            lanes.splat(second & 0xFFFF),
        ];
        (weights, lanes.splat(self.finish.shift as i32))
    }

    /// A vector of one line less one of another.
    #[inline(always)]
    unsafe fn difference<L: Lanes>(&self, lanes: L, row: Row<'_>, index: usize, x: usize) -> L::V {
        let [more, less] = self.differences[index];
        let line = |at: usize| row.ring.cast_const().wrapping_add(at + x);
        // SAFETY: `make` has bounded both.
        unsafe { lanes.sub_words(lanes.load(line(more)), lanes.load(line(less))) }
    }

    /// [`Ending::put`] with all differences or the first one.
    #[inline(always)]
    unsafe fn put<L: Lanes, const BYTES: usize, const ALL: bool>(
        &self,
        lanes: L,
        (weights, shift): Factors<L::V>,
        row: Row<'_>,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    ) {
        let mut values = [lanes.splat(0); 4];
        for v in 0..2 {
            let at = x + v * 2 * L::LANES;
            // SAFETY: see the trait.
            unsafe {
                let kept = self.sums.add(at);
                let mut sums = [lanes.load(kept), lanes.load(kept.add(L::LANES))];
                let pairs = lanes.zip(entering[v].change, self.difference(lanes, row, 0, at));
                for half in 0..2 {
                    sums[half] = lanes.multiply_add(sums[half], pairs[half], weights[0]);
                }
                if ALL {
                    let second = self.difference(lanes, row, 1, at);
                    let pairs = lanes.zip(second, second);
                    for half in 0..2 {
                        sums[half] = lanes.multiply_add(sums[half], pairs[half], weights[1]);
                    }
                }
                for half in 0..2 {
                    lanes.store(kept.add(half * L::LANES), sums[half]);
                    values[2 * v + half] = lanes.shift_down(sums[half], shift);
                }
            }
        }
        // SAFETY: the caller has the room.
        unsafe { put_numbers::<L, BYTES>(lanes, values, self.finish, to) };
    }
}

/// Adds what is added after the shift, clamps and stores 4 LANES samples.
#[inline(always)]
unsafe fn put_numbers<L: Lanes, const BYTES: usize>(
    lanes: L,
    mut values: [L::V; 4],
    finish: &Finish,
    to: *mut u8,
) {
    if let Some(&high) = finish.high.first() {
        let high = lanes.splat(high);
        for v in 0..4 {
            values[v] = lanes.add(values[v], high);
        }
    }
    // SAFETY: the caller has the room.
    unsafe { put::<L, BYTES, 4>(lanes, values, finish, Order::Zipped, to) };
}

impl Ending for Weighted<'_> {
    type Constants<V: Copy> = Factors<V>;

    #[inline(always)]
    fn constants<L: Lanes>(&self, lanes: L) -> Factors<L::V> {
        self.factors(lanes)
    }

    #[inline(always)]
    unsafe fn put<L: Lanes, const BYTES: usize>(
        &self,
        lanes: L,
        factors: Factors<L::V>,
        row: Row<'_>,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    ) {
        // SAFETY: see the trait.
        unsafe { self.put::<L, BYTES, true>(lanes, factors, row, x, entering, to) };
    }
}

impl Ending for OneDifference<'_> {
    type Constants<V: Copy> = Factors<V>;

    #[inline(always)]
    fn constants<L: Lanes>(&self, lanes: L) -> Factors<L::V> {
        self.0.factors(lanes)
    }

    #[inline(always)]
    unsafe fn put<L: Lanes, const BYTES: usize>(
        &self,
        lanes: L,
        factors: Factors<L::V>,
        row: Row<'_>,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    ) {
        // SAFETY: see the trait.
        unsafe {
            self.0
                .put::<L, BYTES, false>(lanes, factors, row, x, entering, to);
        };
    }
}
