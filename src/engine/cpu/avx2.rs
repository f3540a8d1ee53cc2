//! The inner loops for AVX2. Everything is a sum of products of 16-bit *pairs*: a 32-bit element of a line holds two samples, and one
//! instruction multiplies eight such elements by two weights each and adds the two products.
//!
//! Samples that are too wide for exact 32-bit sums come as several *pieces* of `bits` bits each, lowest first, all but the highest without
//! sign; each piece is summed by itself and the sums are joined by carrying upwards.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not unroll.
#![allow(
    clippy::needless_range_loop,
    clippy::needless_pass_by_value,
    clippy::too_many_arguments
)]

use core::arch::x86_64::*;

/// The proof that this machine has AVX2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The proof, if there is one.
    pub(super) fn detect() -> Option<Avx2> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }
}

/// Samples that one step of the widest loop makes; lines are long enough for a multiple of it.
pub(super) const TILE: usize = 32;

/// One multiply-add of the sums of two output rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap {
    /// The element of the lines that the row's first sample needs.
    pub(super) at: usize,
    /// A second element, added to or subtracted from the first one before the multiplication, where the mask is mirrored.
    pub(super) mirror: usize,
    /// The two weights, low half first, of the upper and of the lower output row.
    pub(super) weights: [i32; 2],
}

/// How the mirrored half of a mask is folded onto the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Equal weights: samples are added.
    Add,
    /// Opposite weights: samples are subtracted.
    Subtract,
}

/// The multiply-adds that make two output rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taps<'a> {
    /// Those of one element.
    pub(super) single: &'a [Tap],
    /// Those of an element and its mirror image.
    pub(super) folded: &'a [Tap],
    /// What is done with the mirror image.
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
    /// True if each sixteen elements lie in the order 0-3, 8-11, 4-7, 12-15, in which packing leaves them sorted.
    pub(super) packed_order: bool,
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
    /// What the sums of each piece begin with: the channels' values repeated, `TILE + channels` long.
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
    /// First element of each pair of taps, and its two weights.
    pub(super) taps: Vec<(usize, i32)>,
    /// The weights for results at odd places, where rows are read in place.
    pub(super) odd: Vec<i32>,
    /// What the sums begin with.
    pub(super) start: i32,
    /// How far they are shifted down.
    pub(super) shift: u32,
    /// Bits of a piece of the intermediate.
    pub(super) bits: u32,
}

impl Avx2 {
    /// `out[x] = (a[x], b[x])`. All three are of one length, a multiple of 16.
    pub(super) fn interleave_bytes(self, a: &[u8], b: &[u8], out: &mut [u32]) {
        assert!(a.len() == out.len() && b.len() == out.len() && out.len().is_multiple_of(16));
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { interleave_bytes(a, b, out) }
    }

    /// `out[x] = (a[x] ^ flip, b[x] ^ flip)`, where a flip of 0x8000 takes 32768 from 16-bit samples. Lengths as above.
    pub(super) fn interleave_words(self, a: &[u16], b: &[u16], flip: u16, out: &mut [u32]) {
        assert!(a.len() == out.len() && b.len() == out.len() && out.len().is_multiple_of(16));
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { interleave_words(a, b, flip, out) }
    }

    /// The low and the high bytes of `(a[x], b[x])`, as two pieces. Lengths as above.
    pub(super) fn interleave_halves(self, a: &[u16], b: &[u16], low: &mut [u32], high: &mut [u32]) {
        assert!(a.len() == low.len() && b.len() == low.len() && high.len() == low.len());
        assert!(low.len().is_multiple_of(16));
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { interleave_halves(a, b, low, high) }
    }

    /// `out[x] = row[x]` as a word.
    pub(super) fn widen(self, row: &[u8], out: &mut [u16]) {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { widen(row, out) }
    }

    /// Takes 32768 from each 16-bit sample.
    pub(super) fn offset(self, row: &mut [u16]) {
        row.iter_mut().for_each(|v| *v ^= 0x8000);
    }

    /// The low bytes of `words` and, after them, the high ones, as words.
    pub(super) fn split(self, words: &[u16], out: &mut [u16]) {
        let (low, high) = out.split_at_mut(words.len());
        low.iter_mut().zip(words).for_each(|(o, &v)| *o = v & 255);
        high.iter_mut().zip(words).for_each(|(o, &v)| *o = v >> 8);
    }

    /// Makes two output rows of `samples` samples of `BYTES` bytes; lines are read up to the next multiple of [`TILE`].
    pub(super) fn convolve<const BYTES: usize>(
        self,
        lines: Lines<'_>,
        taps: Taps<'_>,
        running: Option<Running<'_>>,
        finish: &Finish,
        samples: usize,
        out: [&mut [u8]; 2],
    ) {
        let made = samples.next_multiple_of(TILE);
        assert!(
            running
                .as_ref()
                .is_none_or(|r| lines.pieces == 1 && r.sums.len() >= made)
        );
        let running = running.map(|r| (r.sums.as_mut_ptr(), r.resumes));
        let last = (lines.pieces - 1) * lines.piece_stride + made;
        let reach = |t: &Tap| t.at.max(t.mirror) + last;
        let all = taps.single.iter().chain(taps.folded);
        assert!(all.map(reach).max().unwrap_or(0) <= lines.elements.len());
        assert!(out.iter().all(|row| row.len() >= samples * BYTES));
        let pattern = TILE + finish.channels;
        assert!(finish.start[..lines.pieces].iter().all(|s| s.len() >= pattern));
        assert!(finish.high.is_empty() || finish.high.len() >= pattern);
        // SAFETY: `self` proves AVX2; the assertions above bound every read (a tap's element and a multiple of TILE from there, in each
        // piece) and every write.
        unsafe {
            match lines.pieces {
                1 => convolve::<BYTES, 1, 4>(lines, taps, running, finish, samples, out),
                2 => convolve::<BYTES, 2, 2>(lines, taps, running, finish, samples, out),
                _ => convolve::<BYTES, 3, 2>(lines, taps, running, finish, samples, out),
            }
        }
    }

    /// The row pass over two rows of words of which neighbours are neighbouring pixels, piece after piece `piece_stride` words apart: a 32-bit
    /// element holds two taps of an even result, and with other weights of an odd one. `out` gets pairs (upper, lower) of intermediates in
    /// packed order, in `out_pieces` pieces, `out.len() / out_pieces` (a multiple of [`TILE`]) of each.
    pub(super) fn row_pass_in_place(
        self,
        rows: [&[u16]; 2],
        (pieces, piece_stride): (usize, usize),
        pass: &RowPass,
        out: &mut [u32],
        out_pieces: usize,
    ) {
        let samples = out.len() / out_pieces;
        // The last vector's taps end one word further on than the last sample's own.
        let reach = pass.taps.iter().map(|t| t.0).max().unwrap_or(0) + samples;
        assert!(
            pieces <= 2
                && rows
                    .iter()
                    .all(|row| (pieces - 1) * piece_stride + reach <= row.len())
        );
        assert!(samples.is_multiple_of(TILE) && samples * out_pieces == out.len());
        assert!(pass.odd.len() == pass.taps.len());
        let rows = rows.map(<[u16]>::as_ptr);
        let out = out.as_mut_ptr();
        // SAFETY: `self` proves AVX2; the assertions above bound every read (16 words from x + tap on, x + 16 at most `samples`) and every write.
        unsafe {
            match (pieces, out_pieces) {
                (1, 1) => row_pass_in_place::<1, 1, 2>(rows, piece_stride, pass, out, samples),
                (1, 2) => row_pass_in_place::<1, 2, 2>(rows, piece_stride, pass, out, samples),
                (1, _) => row_pass_in_place::<1, 3, 2>(rows, piece_stride, pass, out, samples),
                (_, 1) => row_pass_in_place::<2, 1, 1>(rows, piece_stride, pass, out, samples),
                (_, 2) => row_pass_in_place::<2, 2, 1>(rows, piece_stride, pass, out, samples),
                _ => row_pass_in_place::<2, 3, 1>(rows, piece_stride, pass, out, samples),
            }
        }
    }

    /// The sums of `count` (odd) samples each, `step` apart: `out[x] = row[x] + row[x + step] + ...`. Sums of two, four, eight and so on are made from one
    /// another, in `row`, and those that `count` is made of added up, so that the work grows with its logarithm. What lies within
    /// `count * step + 16 * 6` words of the end is not made.
    pub(super) fn box_sums(self, row: &mut [u16], count: usize, step: usize, out: &mut [u16]) {
        assert!(row.len() == out.len());
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { box_sums(row, count, step, out) }
    }

    /// The row pass over two rows of horizontal pairs at once: `out` gets pairs (upper, lower) of intermediates in `out_pieces` pieces,
    /// `out.len() / out_pieces` (a multiple of [`TILE`]) of each.
    pub(super) fn row_pass(self, rows: [Lines<'_>; 2], pass: &RowPass, out: &mut [u32], out_pieces: usize) {
        let samples = out.len() / out_pieces;
        let reach = pass.taps.iter().map(|t| t.0).max().unwrap_or(0) + samples;
        for row in &rows {
            assert!(row.pieces == rows[0].pieces && row.piece_stride == rows[0].piece_stride);
            assert!((row.pieces - 1) * row.piece_stride + reach <= row.elements.len());
        }
        assert!(samples.is_multiple_of(TILE) && samples * out_pieces == out.len());
        let out = out.as_mut_ptr();
        // SAFETY: `self` proves AVX2; the assertions above bound every read and every write.
        unsafe {
            match (rows[0].pieces, out_pieces) {
                (1, 1) => row_pass::<1, 1, 4>(rows, pass, out, samples),
                (1, 2) => row_pass::<1, 2, 4>(rows, pass, out, samples),
                (1, _) => row_pass::<1, 3, 4>(rows, pass, out, samples),
                (_, 1) => row_pass::<2, 1, 2>(rows, pass, out, samples),
                (_, 2) => row_pass::<2, 2, 2>(rows, pass, out, samples),
                _ => row_pass::<2, 3, 2>(rows, pass, out, samples),
            }
        }
    }
}

#[target_feature(enable = "avx2")]
fn widen(row: &[u8], out: &mut [u16]) {
    out.iter_mut().zip(row).for_each(|(o, &v)| *o = u16::from(v));
}

#[target_feature(enable = "avx2")]
fn interleave_bytes(a: &[u8], b: &[u8], out: &mut [u32]) {
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    for ((a, b), out) in a.iter().zip(b).zip(out.as_chunks_mut::<16>().0) {
        // SAFETY: each pointer comes from an array of exactly the bytes that are read or written.
        unsafe {
            let (a, b) = (
                _mm_loadu_si128(a.as_ptr().cast()),
                _mm_loadu_si128(b.as_ptr().cast()),
            );
            let out: *mut __m256i = out.as_mut_ptr().cast();
            _mm256_storeu_si256(out, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)));
            _mm256_storeu_si256(out.add(1), _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)));
        }
    }
}

/// Sixteen pairs of words, in order.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs(a: &[u16; 16], b: &[u16; 16]) -> [__m256i; 2] {
    // SAFETY: both arrays are 32 bytes long.
    let (a, b) = unsafe {
        (
            _mm256_loadu_si256(a.as_ptr().cast()),
            _mm256_loadu_si256(b.as_ptr().cast()),
        )
    };
    let (low, high) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
    [
        _mm256_permute2x128_si256::<0x20>(low, high),
        _mm256_permute2x128_si256::<0x31>(low, high),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(out: &mut [u32; 16], values: [__m256i; 2]) {
    let out: *mut __m256i = out.as_mut_ptr().cast();
    // SAFETY: the array is 64 bytes long.
    unsafe {
        _mm256_storeu_si256(out, values[0]);
        _mm256_storeu_si256(out.add(1), values[1]);
    }
}

#[target_feature(enable = "avx2")]
fn interleave_words(a: &[u16], b: &[u16], flip: u16, out: &mut [u32]) {
    let flip = _mm256_set1_epi16(flip as i16);
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    for ((a, b), out) in a.iter().zip(b).zip(out.as_chunks_mut::<16>().0) {
        let [first, second] = pairs(a, b);
        store(
            out,
            [_mm256_xor_si256(first, flip), _mm256_xor_si256(second, flip)],
        );
    }
}

#[target_feature(enable = "avx2")]
fn interleave_halves(a: &[u16], b: &[u16], low: &mut [u32], high: &mut [u32]) {
    let bytes = _mm256_set1_epi16(255);
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    let outs = low
        .as_chunks_mut::<16>()
        .0
        .iter_mut()
        .zip(high.as_chunks_mut::<16>().0);
    for ((a, b), (low, high)) in a.iter().zip(b).zip(outs) {
        let [first, second] = pairs(a, b);
        store(
            low,
            [_mm256_and_si256(first, bytes), _mm256_and_si256(second, bytes)],
        );
        store(
            high,
            [_mm256_srli_epi16::<8>(first), _mm256_srli_epi16::<8>(second)],
        );
    }
}

/// The sums of `V` vectors of samples of two rows, in `P` pieces.
type Sums<const P: usize, const V: usize> = [[[__m256i; V]; 2]; P];

/// Adds the taps to the sums. `FOLD`: 0 for single taps, 1 to add the mirror image, 2 to subtract it.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn add_taps<const P: usize, const V: usize, const FOLD: u8>(
    mut sums: Sums<P, V>,
    base: *const u32,
    piece_stride: usize,
    taps: &[Tap],
) -> Sums<P, V> {
    for tap in taps {
        let weights = [
            _mm256_set1_epi32(tap.weights[0]),
            _mm256_set1_epi32(tap.weights[1]),
        ];
        for p in 0..P {
            for v in 0..V {
                let step = p * piece_stride + 8 * v;
                // SAFETY: the caller of `convolve` has bounded every tap's reach.
                let pairs = unsafe {
                    let pairs = _mm256_loadu_si256(base.add(tap.at + step).cast());
                    match FOLD {
                        0 => pairs,
                        1 => _mm256_add_epi16(pairs, _mm256_loadu_si256(base.add(tap.mirror + step).cast())),
                        _ => _mm256_sub_epi16(pairs, _mm256_loadu_si256(base.add(tap.mirror + step).cast())),
                    }
                };
                for (row, &w) in weights.iter().enumerate() {
                    sums[p][row][v] = _mm256_add_epi32(sums[p][row][v], _mm256_madd_epi16(pairs, w));
                }
            }
        }
    }
    sums
}

#[target_feature(enable = "avx2")]
unsafe fn convolve<const BYTES: usize, const P: usize, const V: usize>(
    lines: Lines<'_>,
    taps: Taps<'_>,
    running: Option<(*mut i32, bool)>,
    finish: &Finish,
    samples: usize,
    out: [&mut [u8]; 2],
) {
    let zero = _mm256_setzero_si256();
    for x in (0..samples).step_by(8 * V) {
        let phase = if finish.channels == 1 {
            0
        } else {
            x as u32 as usize % finish.channels
        };
        let mut sums: Sums<P, V> = [[[zero; V]; 2]; P];
        for p in 0..P {
            for v in 0..V {
                // SAFETY: the pattern is TILE + channels long; running sums go as far as the multiple of TILE.
                let start = unsafe {
                    let from = match running {
                        Some((kept, true)) => kept.cast_const().add(x + 8 * v),
                        _ => finish.start[p].as_ptr().add(phase + 8 * v),
                    };
                    _mm256_loadu_si256(from.cast())
                };
                sums[p][0][v] = start;
                sums[p][1][v] = start;
            }
        }
        // SAFETY: x + 8 V is at most the multiple of TILE up to which the caller has bounded the taps.
        unsafe {
            let base = lines.elements.as_ptr().add(x);
            sums = match taps.fold {
                _ if taps.folded.is_empty() => sums,
                Fold::Add => add_taps::<P, V, 1>(sums, base, lines.piece_stride, taps.folded),
                Fold::Subtract => add_taps::<P, V, 2>(sums, base, lines.piece_stride, taps.folded),
            };
            sums = add_taps::<P, V, 0>(sums, base, lines.piece_stride, taps.single);
        }
        if let Some((kept, _)) = running {
            for v in 0..V {
                // SAFETY: running sums go as far as the multiple of TILE.
                unsafe { _mm256_storeu_si256(kept.add(x + 8 * v).cast(), sums[0][1][v]) };
            }
        }
        for row in 0..2 {
            let mut values = [zero; V];
            for v in 0..V {
                let pieces: [__m256i; P] = core::array::from_fn(|p| sums[p][row][v]);
                values[v] = joined(pieces, finish.bits, finish.whole, finish.shift);
            }
            let rest = &mut out[row][x * BYTES..samples * BYTES];
            // SAFETY: the pattern is TILE + channels long.
            unsafe { give::<BYTES, V>(values, finish, phase, lines.packed_order, rest) };
        }
    }
}

/// Adds what is added after the shift, clamps, and stores as many of the samples as there is room for.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn give<const BYTES: usize, const V: usize>(
    mut values: [__m256i; V],
    finish: &Finish,
    phase: usize,
    packed_order: bool,
    rest: &mut [u8],
) {
    if !finish.high.is_empty() {
        for (v, value) in values.iter_mut().enumerate() {
            // SAFETY: the pattern is TILE + channels long.
            let high = unsafe { _mm256_loadu_si256(finish.high.as_ptr().add(phase + 8 * v).cast()) };
            *value = _mm256_add_epi32(*value, high);
        }
    }
    if rest.len() >= 8 * V * BYTES {
        // SAFETY: there is room for the 8 V samples.
        unsafe { put::<BYTES, V>(values, finish, packed_order, rest.as_mut_ptr()) };
    } else {
        let mut step = [0; 2 * TILE];
        // SAFETY: as many as TILE samples of two bytes fit.
        unsafe { put::<BYTES, V>(values, finish, packed_order, step.as_mut_ptr()) };
        rest.copy_from_slice(&step[..rest.len()]);
    }
}

#[target_feature(enable = "avx2")]
fn box_sums(row: &mut [u16], count: usize, step: usize, out: &mut [u16]) {
    out.copy_from_slice(row);
    let (mut wide, mut done) = (1, 1);
    while 2 * wide <= count {
        let far = wide * step;
        let takes = count & (2 * wide) != 0;
        let ahead = done * step;
        let end = row.len();
        let mut x = 0;
        while x + far + 16 <= end {
            // SAFETY: x + far + 16 is at most the length of both.
            unsafe {
                let at: *mut __m256i = row.as_mut_ptr().add(x).cast();
                let next = _mm256_loadu_si256(row.as_ptr().add(x + far).cast());
                _mm256_storeu_si256(at, _mm256_add_epi16(_mm256_loadu_si256(at), next));
            }
            x += 16;
        }
        wide *= 2;
        if takes {
            let mut x = 0;
            while x + ahead + 16 <= end {
                // SAFETY: x + ahead + 16 is at most the length of both.
                unsafe {
                    let at: *mut __m256i = out.as_mut_ptr().add(x).cast();
                    let next = _mm256_loadu_si256(row.as_ptr().add(x + ahead).cast());
                    _mm256_storeu_si256(at, _mm256_add_epi16(_mm256_loadu_si256(at), next));
                }
                x += 16;
            }
            done += wide;
        }
    }
}

/// The sum of all pieces, shifted down.
#[inline]
#[target_feature(enable = "avx2")]
fn joined<const P: usize>(pieces: [__m256i; P], bits: u32, whole: bool, shift: u32) -> __m256i {
    let count = _mm_cvtsi32_si128(bits as i32);
    let mut sum = pieces[0];
    if P > 1 && whole {
        for (p, &piece) in pieces.iter().enumerate().skip(1) {
            let up = _mm_cvtsi32_si128((bits * p as u32) as i32);
            sum = _mm256_add_epi32(sum, _mm256_sll_epi32(piece, up));
        }
    } else {
        for &piece in pieces.iter().skip(1) {
            sum = _mm256_add_epi32(piece, _mm256_sra_epi32(sum, count));
        }
    }
    _mm256_sra_epi32(sum, _mm_cvtsi32_si128(shift as i32))
}

/// Clamps and stores 8 V samples.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put<const BYTES: usize, const V: usize>(
    values: [__m256i; V],
    finish: &Finish,
    packed_order: bool,
    out: *mut u8,
) {
    // What puts quarters back in order that packing two vectors in plain order leaves as 0, 2, 1, 3.
    const SORT: i32 = 0b11_01_10_00;
    if BYTES == 1 {
        let halves = _mm256_packs_epi32(values[0], values[1]);
        if V == 4 {
            let bytes = _mm256_packus_epi16(halves, _mm256_packs_epi32(values[2], values[3]));
            let bytes = if packed_order {
                _mm256_permute4x64_epi64::<SORT>(bytes)
            } else {
                _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
            };
            // SAFETY: the caller gives room for 32 bytes.
            unsafe { _mm256_storeu_si256(out.cast(), bytes) };
        } else {
            let ordered = if packed_order {
                halves
            } else {
                _mm256_permute4x64_epi64::<SORT>(halves)
            };
            let bytes = _mm_packus_epi16(
                _mm256_castsi256_si128(ordered),
                _mm256_extracti128_si256::<1>(ordered),
            );
            // SAFETY: the caller gives room for 16 bytes.
            unsafe { _mm_storeu_si128(out.cast(), bytes) };
        }
        return;
    }
    let max = _mm256_set1_epi16(finish.max as i16);
    let left = _mm_cvtsi32_si128(finish.left as i32);
    for v in (0..V).step_by(2) {
        let words = _mm256_min_epu16(_mm256_packus_epi32(values[v], values[v + 1]), max);
        let words = _mm256_sll_epi16(words, left);
        let words = if packed_order {
            words
        } else {
            _mm256_permute4x64_epi64::<SORT>(words)
        };
        // SAFETY: the caller gives room for 8 V samples of two bytes.
        unsafe { _mm256_storeu_si256(out.add(16 * v).cast(), words) };
    }
}

/// A row pass's sum as an intermediate.
#[inline]
#[target_feature(enable = "avx2")]
fn intermediate<const P: usize>(pieces: [__m256i; P], shift: u32) -> __m256i {
    if P == 1 {
        return _mm256_sra_epi32(pieces[0], _mm_cvtsi32_si128(shift as i32));
    }
    // Pieces of 8 bits. An intermediate has 24 bits, so with a shift below 8 the whole sum fits 32.
    let whole = shift < 8;
    joined(pieces, 8, whole, if whole { shift } else { shift - 8 })
}

/// Takes the lowest of the pieces still to be taken from `t`, which is the last one if `is_last`.
#[inline]
#[target_feature(enable = "avx2")]
fn take_piece(t: &mut __m256i, bits: u32, is_last: bool) -> __m256i {
    if is_last {
        return *t;
    }
    let piece = _mm256_and_si256(*t, _mm256_set1_epi32((1 << bits) - 1));
    *t = _mm256_sra_epi32(*t, _mm_cvtsi32_si128(bits as i32));
    piece
}

/// The low words of two vectors of 32 bits, alternating.
#[inline]
#[target_feature(enable = "avx2")]
fn alternate(even: __m256i, odd: __m256i) -> __m256i {
    _mm256_blend_epi16::<0xAA>(even, _mm256_slli_epi32::<16>(odd))
}

/// `V` counts vectors of 16 samples.
#[target_feature(enable = "avx2")]
unsafe fn row_pass_in_place<const P: usize, const T: usize, const V: usize>(
    rows: [*const u16; 2],
    piece_stride: usize,
    pass: &RowPass,
    out: *mut u32,
    samples: usize,
) {
    let start = _mm256_set1_epi32(pass.start);
    for x in (0..samples).step_by(16 * V) {
        // Even and odd results of each row.
        let mut sums = [[[[_mm256_setzero_si256(); V]; 2]; 2]; P];
        sums[0] = [[[start; V]; 2]; 2];
        for (&(at, even), &odd) in pass.taps.iter().zip(&pass.odd) {
            let weights = [_mm256_set1_epi32(even), _mm256_set1_epi32(odd)];
            for p in 0..P {
                for row in 0..2 {
                    for v in 0..V {
                        // SAFETY: the caller has bounded every tap's reach.
                        let words = unsafe {
                            _mm256_loadu_si256(rows[row].add(x + at + p * piece_stride + 16 * v).cast())
                        };
                        for (parity, &w) in weights.iter().enumerate() {
                            let sum = &mut sums[p][row][parity][v];
                            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(words, w));
                        }
                    }
                }
            }
        }
        for v in 0..V {
            let mut t = [[_mm256_setzero_si256(); 2]; 2];
            for row in 0..2 {
                for parity in 0..2 {
                    let pieces: [__m256i; P] = core::array::from_fn(|p| sums[p][row][parity][v]);
                    t[row][parity] = intermediate(pieces, pass.shift);
                }
            }
            for k in 0..T {
                let mut words = [_mm256_setzero_si256(); 2];
                for row in 0..2 {
                    let even = take_piece(&mut t[row][0], pass.bits, k + 1 == T);
                    let odd = take_piece(&mut t[row][1], pass.bits, k + 1 == T);
                    words[row] = alternate(even, odd);
                }
                // SAFETY: x + 16 V is at most `samples`, a piece's length.
                unsafe {
                    let out: *mut __m256i = out.add(k * samples + x + 16 * v).cast();
                    _mm256_storeu_si256(out, _mm256_unpacklo_epi16(words[0], words[1]));
                    _mm256_storeu_si256(out.add(1), _mm256_unpackhi_epi16(words[0], words[1]));
                }
            }
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn row_pass<const P: usize, const T: usize, const V: usize>(
    rows: [Lines<'_>; 2],
    pass: &RowPass,
    out: *mut u32,
    samples: usize,
) {
    let start = _mm256_set1_epi32(pass.start);
    let stride = rows[0].piece_stride;
    let bases = [rows[0].elements.as_ptr(), rows[1].elements.as_ptr()];
    for x in (0..samples).step_by(8 * V) {
        let mut sums: Sums<P, V> = [[[_mm256_setzero_si256(); V]; 2]; P];
        sums[0] = [[start; V]; 2];
        for &(at, weights) in &pass.taps {
            let w = _mm256_set1_epi32(weights);
            for p in 0..P {
                for row in 0..2 {
                    for v in 0..V {
                        // SAFETY: the caller has bounded every tap's reach.
                        let pairs =
                            unsafe { _mm256_loadu_si256(bases[row].add(x + at + p * stride + 8 * v).cast()) };
                        sums[p][row][v] = _mm256_add_epi32(sums[p][row][v], _mm256_madd_epi16(pairs, w));
                    }
                }
            }
        }
        for v in 0..V {
            let mut t = [_mm256_setzero_si256(); 2];
            for row in 0..2 {
                let pieces: [__m256i; P] = core::array::from_fn(|p| sums[p][row][v]);
                t[row] = intermediate(pieces, pass.shift);
            }
            for k in 0..T {
                let upper = take_piece(&mut t[0], pass.bits, k + 1 == T);
                let lower = take_piece(&mut t[1], pass.bits, k + 1 == T);
                // SAFETY: x + 8 V is at most `samples`, a piece's length.
                unsafe {
                    _mm256_storeu_si256(out.add(k * samples + x + 8 * v).cast(), alternate(upper, lower));
                };
            }
        }
    }
}
