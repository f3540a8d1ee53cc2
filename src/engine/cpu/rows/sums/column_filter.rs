//! Column filter and 2-D filter, for vectors of any width: 32-bit sums over 16-bit words interleaved in
//! *pairs* (`pmaddwd`). A 32-bit element of a line holds two samples; one instruction multiplies a vector of
//! such elements by two weights each and adds the two products.
//!
//! ```text
//! line 0   a0 b0 a1 b1 a2 b2 ..      picture rows a and b
//! line 1   c0 d0 c1 d1 c2 d2 ..      picture rows c and d
//!    | tap of line 0: (w0 w1) for row 0, ( 0 w0) for row 1      a column of three weights
//!    | tap of line 1: (w2  0) for row 0, (w1 w2) for row 1
//! row 0    a w0 + b w1 + c w2        32-bit sums of two output rows, or of four
//! row 1    b w0 + c w1 + d w2
//!    | join limbs, divide, add, clamp, pack                     rows/store/requantize.rs
//! rows     p0 p1 p2 ..               samples of one byte or two
//! ```
//!
//! A mask of several columns has taps at several places of a line.
//!
//! Samples that are too wide for exact 32-bit sums are split into *limbs* of `bits` bits each, lowest first,
//! all but the highest unsigned. Each limb has its own sum, and the sums are joined at the end.
#![allow(unsafe_code)]

use super::taps::{Fold, Tap, Taps};
use crate::engine::cpu::rows::store::prefetch::{NextRows, prefetch};
use crate::engine::cpu::rows::store::requantize::{Divide, JoinLimbs, Requantize, offset_and_store};
use crate::engine::cpu::rows::store::row_pointers;
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd, TILE, has_32_registers};

/// Lines of pairs.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct Lines<'a> {
    /// The memory that taps index.
    pub(in crate::engine::cpu) elements: &'a [u32],
    /// Limbs of a sample, 1 to 3.
    pub(in crate::engine::cpu) limbs: usize,
    /// Elements from a limb to the next one.
    pub(in crate::engine::cpu) limb_stride: usize,
    /// The order of samples in two vectors of elements.
    pub(in crate::engine::cpu) order: Order,
    /// The rows to prefetch.
    pub(in crate::engine::cpu) next: NextRows<'a>,
}

/// Makes `ROWS` output rows, two or four, of `samples` samples of `BYTES` bytes; lines are read up to the
/// next multiple of [`TILE`].
pub(in crate::engine::cpu) fn convolve<L: Simd, const BYTES: usize, const ROWS: usize>(
    simd: L,
    lines: Lines<'_>,
    taps: Taps<'_>,
    requantize: &Requantize,
    samples: usize,
    out: [&mut [u8]; ROWS],
) {
    let made = samples.next_multiple_of(TILE);
    let last = (lines.limbs - 1) * lines.limb_stride + made;
    let reach = |t: &Tap| t.at.max(t.mirror) + last;
    let all = taps.groups.iter().flat_map(|g| g.single.iter().chain(&g.folded));
    assert!(all.map(reach).max().unwrap_or(0) <= lines.elements.len());
    assert!(out.iter().all(|row| row.len() >= samples * BYTES));
    let pattern = TILE * requantize.channels;
    assert!(requantize.start[..lines.limbs].iter().all(|s| s.len() >= pattern));
    assert!(requantize.high.is_empty() || requantize.high.len() >= pattern);
    // The assertions bound every read (up to a multiple of TILE elements from each tap's element on, in each
    // limb) and every write.
    let work = Convolve {
        lines,
        taps,
        requantize,
        samples,
        out,
    };
    // Constant conditions: loops that a set never enters are not compiled.
    match lines.limbs {
        1 if const { ROWS == 2 || has_32_registers::<L>() } => {
            simd.enter(Rows::<BYTES, 1, 4, ROWS>(work));
        }
        2 if const { ROWS == 2 && has_32_registers::<L>() } => {
            simd.enter(Rows::<BYTES, 2, 4, ROWS>(work));
        }
        2 if const { ROWS == 2 || has_32_registers::<L>() } => {
            simd.enter(Rows::<BYTES, 2, 2, ROWS>(work));
        }
        3 if const { ROWS == 2 } => simd.enter(Rows::<BYTES, 3, 2, ROWS>(work)),
        n => unreachable!("{ROWS} rows of {n} limbs"),
    }
}

/// True if four output rows are made at a time from lines of `limbs` limbs: if registers hold their sums.
/// Each line is then loaded half as often.
pub(in crate::engine::cpu) fn makes_four_rows<L: Simd>(_: L, limbs: usize) -> bool {
    has_32_registers::<L>() && limbs <= 2
}

/// The arguments of [`convolve`], which has checked their bounds.
struct Convolve<'a, const ROWS: usize> {
    lines: Lines<'a>,
    taps: Taps<'a>,
    requantize: &'a Requantize,
    samples: usize,
    out: [&'a mut [u8]; ROWS],
}

/// The loop of [`convolve`]: `ROWS` output rows of samples of `BYTES` bytes, from lines of `LIMBS` limbs,
/// `VECTORS` vectors at a time.
struct Rows<'a, const BYTES: usize, const LIMBS: usize, const VECTORS: usize, const ROWS: usize>(
    Convolve<'a, ROWS>,
);

/// The sums of `ROWS` rows, `VECTORS` vectors of each, in `LIMBS` limbs.
type Sums<T, const LIMBS: usize, const VECTORS: usize, const ROWS: usize> = [[[T; VECTORS]; ROWS]; LIMBS];

/// Adds the products of taps to the sums of rows `FROM` to `TO`. `FOLD`: 0 for single taps, 1 to add the
/// mirror image, 2 to subtract it.
#[inline(always)]
unsafe fn add_taps<
    L: Simd,
    const LIMBS: usize,
    const VECTORS: usize,
    const ROWS: usize,
    const FROM: usize,
    const TO: usize,
    const FOLD: u8,
>(
    simd: L,
    mut sums: Sums<L::V, LIMBS, VECTORS, ROWS>,
    base: *const u32,
    limb_stride: usize,
    taps: &[Tap],
) -> Sums<L::V, LIMBS, VECTORS, ROWS> {
    for tap in taps {
        let [a, b, c, d] = tap.weights;
        let weights = [simd.splat(a), simd.splat(b), simd.splat(c), simd.splat(d)];
        for p in 0..LIMBS {
            for v in 0..VECTORS {
                let step = p * limb_stride + L::LANES * v;
                // SAFETY: `convolve` asserted that lines go on from each tap's element, and its mirror image,
                // to the multiple of TILE that x + LANES VECTORS does not exceed.
                let pairs = unsafe {
                    let pairs = simd.load(base.add(tap.at + step));
                    match FOLD {
                        0 => pairs,
                        1 => simd.add_i16(pairs, simd.load(base.add(tap.mirror + step))),
                        _ => simd.sub_i16(pairs, simd.load(base.add(tap.mirror + step))),
                    }
                };
                for row in FROM..TO {
                    sums[p][row][v] = simd.add_dot_i16(sums[p][row][v], pairs, weights[row]);
                }
            }
        }
    }
    sums
}

/// Adds a group of taps to the sums of rows `FROM` to `TO`.
#[inline(always)]
unsafe fn add_group<
    L: Simd,
    const LIMBS: usize,
    const VECTORS: usize,
    const ROWS: usize,
    const FROM: usize,
    const TO: usize,
>(
    simd: L,
    sums: Sums<L::V, LIMBS, VECTORS, ROWS>,
    base: *const u32,
    limb_stride: usize,
    [single, folded]: [&[Tap]; 2],
    fold: Fold,
) -> Sums<L::V, LIMBS, VECTORS, ROWS> {
    // SAFETY: the caller guarantees that LANES VECTORS elements are readable from each tap's element on, in
    // each limb.
    unsafe {
        let sums = match fold {
            _ if folded.is_empty() => sums,
            Fold::Add => {
                add_taps::<L, LIMBS, VECTORS, ROWS, FROM, TO, 1>(simd, sums, base, limb_stride, folded)
            }
            Fold::Subtract => {
                add_taps::<L, LIMBS, VECTORS, ROWS, FROM, TO, 2>(simd, sums, base, limb_stride, folded)
            }
        };
        add_taps::<L, LIMBS, VECTORS, ROWS, FROM, TO, 0>(simd, sums, base, limb_stride, single)
    }
}

/// Joins the sums of limbs, and divides them.
#[inline(always)]
fn join_and_divide<L: Simd, const LIMBS: usize, const VECTORS: usize>(
    simd: L,
    sums: [[L::V; VECTORS]; LIMBS],
    joining: JoinLimbs<L::V>,
    dividing: Option<Divide<L::V>>,
) -> [L::V; VECTORS] {
    let mut values = [simd.splat(0); VECTORS];
    for v in 0..VECTORS {
        let mut limbs = [values[v]; LIMBS];
        for p in 0..LIMBS {
            limbs[p] = sums[p][v];
        }
        values[v] = joining.sum(simd, limbs);
    }
    for value in &mut values {
        *value = match dividing {
            Some(dividing) => dividing.of(simd, *value),
            None => joining.shift(simd, *value),
        };
    }
    values
}

/// The sums that a step begins with: start values.
///
/// # Safety
/// `phase` is below the channels.
#[inline(always)]
unsafe fn start_sums<L: Simd, const LIMBS: usize, const VECTORS: usize, const ROWS: usize>(
    simd: L,
    requantize: &Requantize,
    phase: usize,
) -> Sums<L::V, LIMBS, VECTORS, ROWS> {
    let mut sums = [[[simd.splat(0); VECTORS]; ROWS]; LIMBS];
    for p in 0..LIMBS {
        for v in 0..VECTORS {
            // SAFETY: `convolve` asserted a pattern of TILE x channels start values for each limb.
            let start = unsafe { simd.load(requantize.start[p].as_ptr().add(phase * TILE + L::LANES * v)) };
            for row in 0..ROWS {
                sums[p][row][v] = start;
            }
        }
    }
    sums
}

impl<const BYTES: usize, const LIMBS: usize, const VECTORS: usize, const ROWS: usize> IntLoop
    for Rows<'_, BYTES, LIMBS, VECTORS, ROWS>
{
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Convolve {
            lines,
            taps,
            requantize,
            samples,
            mut out,
        } = self.0;
        let zero = simd.splat(0);
        let joining = JoinLimbs::new(simd, requantize.bits, requantize.whole, requantize.shift);
        let (divides, dividing) = (requantize.factor.is_some(), Divide::new(simd, requantize));
        let step = L::LANES * VECTORS;
        let out = row_pointers::starts(&mut out);
        // The last, partial step goes here: at most TILE samples of two bytes.
        let mut last = [[0_u8; 2 * TILE]; ROWS];
        let (mut phase, ahead) = (0, step % requantize.channels);
        // Loaded before the loop: the compiler cannot know that the loop does not change them.
        let [upper, all, lower] = taps.groups.each_ref().map(|g| [&g.single[..], &g.folded[..]]);
        let fold = taps.fold;
        for x in (0..samples).step_by(step) {
            let is_whole = samples - x >= step;
            prefetch(simd, lines.next, ROWS * x * BYTES, ROWS * step * BYTES);
            let to = if is_whole {
                row_pointers::offset(out, (x * BYTES) as isize)
            } else {
                row_pointers::starts(&mut last)
            };
            // SAFETY: `phase` is a channel.
            let mut sums: Sums<L::V, LIMBS, VECTORS, ROWS> = unsafe { start_sums(simd, requantize, phase) };
            // SAFETY: x + LANES VECTORS is at most the multiple of TILE up to which `convolve` has bounded
            // the taps.
            unsafe {
                let (base, stride) = (lines.elements.as_ptr().add(x), lines.limb_stride);
                sums = add_group::<L, LIMBS, VECTORS, ROWS, 0, 2>(simd, sums, base, stride, upper, fold);
                if ROWS == 4 {
                    sums = add_group::<L, LIMBS, VECTORS, ROWS, 0, ROWS>(simd, sums, base, stride, all, fold);
                    sums =
                        add_group::<L, LIMBS, VECTORS, ROWS, 2, ROWS>(simd, sums, base, stride, lower, fold);
                }
            }
            for row in 0..ROWS {
                let mut limbs = [[zero; VECTORS]; LIMBS];
                for p in 0..LIMBS {
                    limbs[p] = sums[p][row];
                }
                let values = join_and_divide(simd, limbs, joining, divides.then_some(dividing));
                // SAFETY: the pattern is TILE x channels long, and a step is writable at each of `to`.
                unsafe {
                    offset_and_store::<L, BYTES, VECTORS>(
                        simd,
                        values,
                        requantize,
                        phase,
                        lines.order,
                        to[row],
                    );
                };
            }
            phase += ahead;
            if phase >= requantize.channels {
                phase -= requantize.channels;
            }
        }
        let whole = samples / step * step;
        for row in 0..ROWS {
            // SAFETY: `convolve` asserted that each row has `samples` samples.
            unsafe {
                let rest = (samples - whole) * BYTES;
                out[row]
                    .add(whole * BYTES)
                    .copy_from_nonoverlapping(last[row].as_ptr(), rest);
            }
        }
    }
}
