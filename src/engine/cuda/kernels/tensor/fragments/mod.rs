//! Weights as tensor-core fragments: Toeplitz bands of a mask's weights, split into signed bytes, distributed
//! over the 32 lanes of a warp.
//!
//! One product multiplies a 16 x 32 matrix A with a 32 x 8 matrix B, bytes both. With g = lane / 4 and t =
//! lane % 4, a lane's four registers of A hold rows g, g + 8, g, g + 8 at bytes 4t to 4t + 3 of the first,
//! first, second, second half of the row; its two of B hold column g at bytes 4t to 4t + 3 of the first and
//! the second half (PTX ISA, matrix fragments for mma.m16n8k32). A product of half the depth leaves the
//! second halves out.

/// Lanes of a warp.
const LANES: usize = 32;

/// Columns of A and rows of B in one product.
const DEPTH: usize = 32;

/// The largest magnitude of a weight of two signed bytes, and of one of three.
const MOST_OF_TWO: i32 = 127 * 256 + 127;
pub(crate) const MOST_OF_THREE: i32 = 127 * 65536 + MOST_OF_TWO;

/// A weight's signed bytes, the low one first: `q = 65536 high + 256 middle + low`. `q` is at most
/// [`MOST_OF_THREE`] in magnitude.
fn digits(q: i32) -> [i32; 3] {
    let low = |q: i32| ((q + 128) & 255) - 128;
    let rest = (q - low(q)) >> 8;
    [low(q), low(rest), (rest - low(rest)) >> 8]
}

/// Signed bytes that each of these weights needs, 1 to 3.
pub(crate) fn weight_bytes(weights: &[i32]) -> usize {
    if weights.iter().all(|q| (-128..128).contains(q)) {
        1
    } else if weights.iter().all(|q| q.abs() <= MOST_OF_TWO) {
        2
    } else {
        3
    }
}

/// How many sums of byte products make up one sum of products of weights and samples.
pub(crate) fn bands(weight_bytes: usize, sample_bytes: usize) -> usize {
    weight_bytes + sample_bytes - 1
}

/// The weight byte that multiplies byte `byte` of a sample (0: the low one) in band `band` of `bands`. Bands
/// are joined as `(band 0 * 256 + band 1) * 256 + ...`.
fn factor(q: i32, band: usize, bands: usize, byte: usize) -> i8 {
    let power = bands - 1 - band;
    let digit = power.checked_sub(byte);
    digit.and_then(|d| digits(q).get(d).copied()).unwrap_or(0) as i8
}

/// A mask over interleaved samples.
#[derive(Clone, Copy)]
pub(crate) struct Mask<'a> {
    /// Row by row.
    pub(crate) weights: &'a [i32],
    /// The weights of another mask of the same size, whose sums are bands of their own.
    pub(crate) second: Option<&'a [i32]>,
    pub(crate) size: (usize, usize),
    /// Samples from one pixel to the next.
    pub(crate) channels: usize,
    pub(crate) sample_bytes: usize,
}

impl Mask<'_> {
    /// Bytes from a pixel to the outermost one under its mask in a row.
    pub(crate) fn reach(&self) -> usize {
        self.size.0 / 2 * self.channels * self.sample_bytes
    }

    /// Sums of byte products: the first mask's, then the second mask's.
    pub(crate) fn bands(&self) -> usize {
        self.bands_of_each() * if self.second.is_some() { 2 } else { 1 }
    }

    fn bands_of_each(&self) -> usize {
        let bytes = weight_bytes(self.weights).max(self.second.map_or(0, weight_bytes));
        bands(bytes, self.sample_bytes)
    }

    /// The weight of the byte that lies `byte` bytes after a result's first one, `row` rows below the first
    /// row under its mask.
    fn factor(&self, band: usize, byte: isize, row: isize) -> i8 {
        let (sample, which) = (
            byte.div_euclid(self.sample_bytes as isize),
            byte.rem_euclid(self.sample_bytes as isize),
        );
        if sample % self.channels as isize != 0 {
            return 0;
        }
        let column = sample / self.channels as isize + (self.size.0 / 2) as isize;
        let within = |at: isize, len: usize| usize::try_from(at).ok().filter(|&at| at < len);
        let each = self.bands_of_each();
        let weights = match self.second {
            Some(second) if band >= each => second,
            _ => self.weights,
        };
        match within(column, self.size.0).zip(within(row, self.size.1)) {
            Some((i, j)) => factor(weights[j * self.size.0 + i], band % each, each, which as usize),
            None => 0,
        }
    }
}

fn word(bytes: impl Fn(usize) -> i8) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|b| bytes(b) as u8))
}

/// Registers of B, a lane's two beside each other: `value(k, n)` is row k, column n.
fn push_b(list: &mut Vec<u32>, value: impl Fn(usize, usize) -> i8) {
    for lane in 0..LANES {
        let (g, t) = (lane / 4, lane % 4);
        for half in 0..2 {
            list.push(word(|b| value(DEPTH / 2 * half + 4 * t + b, g)));
        }
    }
}

/// Registers of A, all lanes' first ones first: `value(m, k)` is row m, column k. Two registers for a product
/// of half the depth, else four.
fn push_a(list: &mut Vec<u32>, registers: usize, value: impl Fn(usize, usize) -> i8) {
    for register in 0..registers {
        for lane in 0..LANES {
            let (g, t) = (lane / 4, lane % 4);
            let (m, k) = (g + register % 2 * 8, register / 2 * DEPTH / 2 + 4 * t);
            list.push(word(|b| value(m, k + b)));
        }
    }
}

/// The patches of tensor/direct.cu: the results of a K-slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patch {
    /// 8 x 2 results, in two products: two bands of weights for each pair of rows.
    Shared,
    /// 4 x 2 results.
    Wide,
    /// 2 x 4 results.
    Tall,
}

impl Patch {
    /// Columns and rows of results.
    pub(crate) fn size(self) -> (usize, usize) {
        match self {
            Patch::Shared => (8, 2),
            Patch::Wide => (4, 2),
            Patch::Tall => (2, 4),
        }
    }

    /// Samples from a lane's first K-slice to the next lane's.
    pub(crate) fn slices_apart(self) -> usize {
        match self {
            Patch::Shared | Patch::Wide => 16,
            Patch::Tall => 8,
        }
    }

    /// Products for one K-slice.
    fn sets(self) -> usize {
        if self == Patch::Shared { 2 } else { 1 }
    }

    /// Column and row of result `n` of product `set`.
    fn place(self, set: usize, n: usize) -> (usize, usize) {
        match self {
            Patch::Shared => (n / 2 % 2 * 4 + n % 2 + 2 * set, n / 4),
            Patch::Wide => (n % 4, n / 4),
            Patch::Tall => (n % 2, n / 2),
        }
    }
}

/// The weights of tensor/direct.cu. `start` is the number of bytes before a patch at which its first K-slice
/// begins.
pub(crate) fn direct(mask: Mask<'_>, patch: Patch, pairs: usize, slices: usize, start: usize) -> Vec<u32> {
    let mut list = Vec::new();
    for slice in 0..slices {
        for pair in 0..pairs {
            for set in 0..patch.sets() {
                for band in 0..mask.bands() {
                    push_b(&mut list, |k, n| {
                        let (column, row) = patch.place(set, n);
                        let byte = (slice * DEPTH / 2 + k % (DEPTH / 2)) as isize
                            - (start + column * mask.sample_bytes) as isize;
                        mask.factor(band, byte, (2 * pair + k / (DEPTH / 2)) as isize - row as isize)
                    });
                }
            }
        }
    }
    list
}

/// The sample, of 16, that row `m` of a row pass's product gives. In this order a lane ends with four
/// neighbours.
fn row_result(m: usize) -> usize {
    m % 8 / 2 * 4 + m % 2 + m / 8 * 2
}

/// The row, of 8, that is column `n` of a row pass's product. Neighbouring columns are four rows apart, an
/// odd multiple of half of all banks' 128 bytes, so that their 16-byte reads lie in different banks.
fn row_of_column(n: usize) -> usize {
    n / 2 + n % 2 * 4
}

/// The row, of 16, that byte `k` of a column pass's product holds: a lane has rows of two of the row pass's
/// products, of 8 rows each.
fn column_row(k: usize) -> usize {
    row_of_column(k / 4 * 2 + k % 2) + k % 4 / 2 * 8
}

/// What tensor/separable.cu reads for 16 x 16 results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passes {
    /// Bytes before 16 results at which their first K-slice begins.
    pub(crate) start: usize,
    /// K-slices of 16 bytes of a row.
    pub(crate) slices: usize,
    /// Groups of 16 rows under 16 results.
    pub(crate) groups: usize,
    /// True if the intermediate has three bytes.
    pub(crate) wide: bool,
}

impl Passes {
    /// Layouts of the column's weights: with two groups, the older one is by turns the first and the second
    /// half of a product. Wide intermediates are moved instead.
    fn turns(self) -> usize {
        if self.groups == 2 && !self.wide { 2 } else { 1 }
    }
}

/// The weights of tensor/separable.cu: row pass and column pass.
pub(crate) fn separable(row: Mask<'_>, column: &[i32], passes: Passes) -> Vec<u32> {
    let Passes {
        start,
        slices,
        groups,
        ..
    } = passes;
    let mut list = Vec::new();
    for band in 0..row.bands() {
        for slice in (0..slices).step_by(2) {
            push_a(&mut list, if slice + 1 < slices { 4 } else { 2 }, |m, k| {
                let byte =
                    (slice * DEPTH / 2 + k) as isize - (start + row_result(m) * row.sample_bytes) as isize;
                row.factor(band, byte, 0)
            });
        }
    }
    let bytes = weight_bytes(column);
    for turn in 0..passes.turns() {
        for band in 0..bytes {
            for group in (0..groups).step_by(2) {
                push_a(&mut list, if group + 1 < groups { 4 } else { 2 }, |m, k| {
                    let half = (k / (DEPTH / 2)) ^ turn;
                    let at = ((group + half) * 16 + column_row(k % (DEPTH / 2))).checked_sub(m);
                    let q = at.and_then(|at| column.get(at));
                    q.map_or(0, |&q| factor(q, band, bytes, 0))
                });
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_range_loop)]
    use super::*;

    /// D += A x B as PTX defines it for the lanes' registers.
    fn product(
        d: &mut [[i32; 4]; 32],
        a: impl Fn(usize, usize) -> u32,
        b: impl Fn(usize, usize) -> u32,
        depth: usize,
        signs: (bool, bool),
    ) {
        let byte = |register: u32, at: usize, signed: bool| {
            let byte = register.to_le_bytes()[at];
            if signed {
                i32::from(byte as i8)
            } else {
                i32::from(byte)
            }
        };
        let a_at = |m: usize, k: usize| byte(a(m % 8 * 4 + k % 16 / 4, m / 8 + k / 16 * 2), k % 4, signs.0);
        let b_at = |k: usize, n: usize| byte(b(n * 4 + k % 16 / 4, k / 16), k % 4, signs.1);
        for (lane, d) in d.iter_mut().enumerate() {
            for (i, d) in d.iter_mut().enumerate() {
                let (m, n) = (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
                *d += (0..depth).map(|k| a_at(m, k) * b_at(k, n)).sum::<i32>();
            }
        }
    }

    fn noise(seed: u32) -> impl FnMut() -> u32 {
        let mut state = seed | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        }
    }

    fn weights(count: usize, small: bool, next: &mut impl FnMut() -> u32) -> Vec<i32> {
        let most = if small { 128 } else { 32639 };
        (0..count)
            .map(|_| (next() % (2 * most)) as i32 - most as i32)
            .collect()
    }

    #[test]
    fn weights_are_split_into_signed_bytes() {
        let long = (-MOST_OF_THREE..=MOST_OF_THREE).step_by(997);
        for q in (-MOST_OF_TWO..=MOST_OF_TWO).chain(long).chain([MOST_OF_THREE]) {
            let bytes = digits(q);
            assert_eq!(65536 * bytes[2] + 256 * bytes[1] + bytes[0], q);
            assert!(bytes.iter().all(|byte| (-128..128).contains(byte)), "{q}");
            assert!(bytes[weight_bytes(&[q])..].iter().all(|&byte| byte == 0), "{q}");
        }
        assert_eq!((weight_bytes(&[-128, 127]), weight_bytes(&[128])), (1, 2));
        assert_eq!(
            (weight_bytes(&[MOST_OF_TWO]), weight_bytes(&[-MOST_OF_TWO - 1])),
            (2, 3)
        );
    }

    const PITCH: usize = 1024;
    const ROWS: usize = 96;

    fn word_at(tile: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(tile[at..at + 4].try_into().unwrap())
    }

    fn sample(tile: &[u8], sample_bytes: usize, at: usize) -> i64 {
        match sample_bytes {
            1 => i64::from(tile[at]),
            _ => i64::from(u16::from_le_bytes([tile[at], tile[at + 1]])),
        }
    }

    /// Sum of weights times samples for the result whose first byte is `at`, its mask's first row in that
    /// row.
    fn plain(tile: &[u8], mask: Mask<'_>, at: usize) -> i64 {
        let (w, h) = mask.size;
        let step = mask.channels * mask.sample_bytes;
        (0..w * h)
            .map(|k| {
                let at = at + k / w * PITCH + k % w * step - w / 2 * step;
                i64::from(mask.weights[k]) * sample(tile, mask.sample_bytes, at)
            })
            .sum()
    }

    fn joined(bands: impl Iterator<Item = i32>) -> i64 {
        bands.fold(0, |sum, band| sum * 256 + i64::from(band))
    }

    /// The sums of tensor/direct.cu's K-slices, gathered as it gathers them.
    #[test]
    fn bands_of_a_whole_mask_give_the_masks_sums() {
        let mut next = noise(7);
        for (size, channels, sample_bytes, small) in [
            ((3, 3), 1, 1, false),
            ((9, 9), 1, 1, false),
            ((5, 7), 2, 1, true),
            ((3, 5), 4, 1, false),
            ((15, 15), 1, 1, false),
            ((25, 5), 3, 1, false),
            ((3, 3), 1, 2, false),
            ((7, 5), 2, 2, true),
            ((21, 3), 4, 2, false),
            ((1, 1), 1, 1, true),
            ((1, 9), 3, 1, false),
        ] {
            let weights = weights(size.0 * size.1, small, &mut next);
            let mask = Mask {
                weights: &weights,
                second: None,
                size,
                channels,
                sample_bytes,
            };
            let tile: Vec<u8> = (0..PITCH * ROWS).map(|_| next() as u8).collect();
            for patch in [Patch::Shared, Patch::Wide, Patch::Tall] {
                let ((across, rows), sets) = (patch.size(), patch.sets());
                let pad = (4 - mask.reach() % 4) % 4;
                let start = mask.reach() + pad;
                let span = start + (across - 1) * sample_bytes + mask.reach() + sample_bytes;
                let slices = span.div_ceil(16);
                let pairs = (size.1 + rows - 1).div_ceil(2);
                let fragments = direct(mask, patch, pairs, slices, start);
                let bands = mask.bands();
                assert_eq!(fragments.len(), slices * pairs * sets * bands * 64);
                // Sixteen K-slices at any places: here 24 bytes apart.
                let origin = |m: usize| 512 + 24 * m;
                for set in 0..sets {
                    let mut sums = vec![[[0; 4]; 32]; bands];
                    for slice in 0..slices {
                        for pair in 0..pairs {
                            for (band, sums) in sums.iter_mut().enumerate() {
                                let at = (((slice * pairs + pair) * sets + set) * bands + band) * 64;
                                let a = |lane: usize, register: usize| {
                                    let (m, row) = (lane / 4 + register % 2 * 8, 2 * pair + register / 2);
                                    word_at(
                                        &tile,
                                        row * PITCH + origin(m) - start + 16 * slice + lane % 4 * 4,
                                    )
                                };
                                let b = |lane: usize, register: usize| fragments[at + lane * 2 + register];
                                product(sums, a, b, 32, (false, true));
                            }
                        }
                    }
                    for lane in 0..32 {
                        for i in 0..4 {
                            let (m, n) = (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
                            // As tensor/direct.cu stores them.
                            let (x, y) = match patch {
                                Patch::Shared => (4 * ((n / 2) & 1) + n % 2 + 2 * set, n >> 2),
                                Patch::Wide => (2 * ((n / 2) & 1) + n % 2, n >> 2),
                                Patch::Tall => (n & 1, n >> 1),
                            };
                            let expected = plain(&tile, mask, y * PITCH + origin(m) + x * sample_bytes);
                            let got = joined(sums.iter().map(|band| band[lane][i]));
                            assert_eq!(
                                got, expected,
                                "{size:?} {channels} {sample_bytes} {patch:?} lane {lane}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// Row pass and column pass of tensor/separable.cu for 16 x 16 results; as there, the intermediate stays
    /// in its lane.
    #[test]
    fn both_passes_of_a_separable_mask_give_its_sums() {
        let mut next = noise(9);
        for (size, channels, sample_bytes, small, wide) in [
            ((5, 5), 1, 1, false, false),
            ((17, 17), 1, 1, false, false),
            ((25, 31), 1, 1, false, false),
            ((7, 33), 3, 1, true, false),
            ((9, 3), 4, 1, false, false),
            ((5, 17), 1, 2, false, false),
            ((15, 63), 2, 2, false, false),
            ((1, 1), 1, 1, true, false),
            ((1, 1), 1, 1, true, true),
            ((9, 9), 3, 1, false, true),
            ((5, 5), 1, 2, false, true),
            ((17, 17), 4, 2, true, true),
            ((31, 31), 1, 2, false, true),
            ((5, 63), 3, 2, false, true),
        ] {
            let row_weights = weights(size.0, small, &mut next);
            let column = weights(size.1, small, &mut next);
            let row = Mask {
                weights: &row_weights,
                second: None,
                size: (size.0, 1),
                channels,
                sample_bytes,
            };
            let tile: Vec<u8> = (0..PITCH * ROWS).map(|_| next() as u8).collect();
            let start = row.reach().next_multiple_of(4);
            let slices = (start + 16 * sample_bytes + row.reach()).div_ceil(16);
            let groups = (15 + size.1).div_ceil(16);
            let passes = Passes {
                start,
                slices,
                groups,
                wide,
            };
            let fragments = separable(row, &column, passes);
            let origin = 512;
            let (between_bytes, shift) = if wide { (3, 14) } else { (2, 16) };
            // Truncated to the intermediate's bytes, of which the highest has the sign.
            let unused = 32 - 8 * between_bytes;
            let between = |sum: i64| (((sum + (1 << (shift - 1))) >> shift) as i32) << unused >> unused;
            let registers = |count: usize| count / 2 * 4 + count % 2 * 2;
            let row_words = registers(slices) * 32;
            let bytes = weight_bytes(&column);
            let column_words = registers(groups) * 32;
            let turns = passes.turns();
            assert_eq!(
                fragments.len(),
                row.bands() * row_words + turns * bytes * column_words
            );
            for turn in 0..turns {
                // The intermediate's bytes of each group, the low ones first, for columns of both halves of a
                // product.
                let mut handed = vec![[[[0_u32; 3]; 2]; 32]; groups];
                for (group, handed) in handed.iter_mut().enumerate() {
                    let mut values = [[[0_i32; 4]; 32]; 2];
                    for (block, values) in values.iter_mut().enumerate() {
                        let mut sums = vec![[[0; 4]; 32]; row.bands()];
                        for (band, sums) in sums.iter_mut().enumerate() {
                            for slice in (0..slices).step_by(2) {
                                let at = band * row_words + slice / 2 * 128;
                                let a = |lane: usize, register: usize| fragments[at + register * 32 + lane];
                                let b = |lane: usize, register: usize| {
                                    let y = group * 16 + block * 8 + row_of_column(lane / 4);
                                    word_at(
                                        &tile,
                                        y * PITCH + origin - start + 16 * (slice + register) + lane % 4 * 4,
                                    )
                                };
                                product(
                                    sums,
                                    a,
                                    b,
                                    if slice + 1 < slices { 32 } else { 16 },
                                    (true, false),
                                );
                            }
                        }
                        for lane in 0..32 {
                            for i in 0..4 {
                                values[lane][i] = between(joined(sums.iter().map(|band| band[lane][i])));
                            }
                        }
                    }
                    for lane in 0..32 {
                        for n in 0..2 {
                            let four = [0, 1].map(|block: usize| {
                                [0, 1].map(|k: usize| values[block][lane][2 * n + k].to_le_bytes())
                            });
                            let of = |byte: usize| {
                                [
                                    four[0][0][byte],
                                    four[0][1][byte],
                                    four[1][0][byte],
                                    four[1][1][byte],
                                ]
                            };
                            handed[lane][n] = [0, 1, 2].map(|byte| u32::from_le_bytes(of(byte)));
                        }
                    }
                }
                for n in 0..2 {
                    let mut sums = vec![[[0; 4]; 32]; bytes + between_bytes - 1];
                    for band in 0..bytes {
                        // The weight's byte times each byte of the intermediate.
                        for byte in 0..between_bytes {
                            let digit = bytes - 1 - band;
                            let sums = &mut sums[bytes + between_bytes - 2 - digit - byte];
                            for group in (0..groups).step_by(2) {
                                let at = row.bands() * row_words
                                    + (turn * bytes + band) * column_words
                                    + group / 2 * 128;
                                let a = |lane: usize, register: usize| fragments[at + register * 32 + lane];
                                let b = |lane: usize, register: usize| {
                                    handed[group + (register ^ turn)][lane][n][byte]
                                };
                                product(
                                    sums,
                                    a,
                                    b,
                                    if group + 1 < groups { 32 } else { 16 },
                                    (true, byte + 1 == between_bytes),
                                );
                            }
                        }
                    }
                    for lane in 0..32 {
                        for i in 0..4 {
                            let (y, x) = (lane / 4 + i / 2 * 8, lane % 4 * 4 + 2 * n + i % 2);
                            let at = |j: usize| (y + j) * PITCH + origin + x * sample_bytes;
                            let expected: i64 = (0..size.1)
                                .map(|j| i64::from(column[j]) * i64::from(between(plain(&tile, row, at(j)))))
                                .sum();
                            let got = joined(sums.iter().map(|band| band[lane][i]));
                            assert_eq!(
                                got, expected,
                                "{size:?} {channels} {sample_bytes} lane {lane} {i}"
                            );
                            if wide {
                                assert_eq!(
                                    i64::from(split_sum32(sums.iter().map(|band| band[lane][i]))),
                                    expected >> 16
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    /// A sum without its lowest 16 bits, joined in 32 bits as tensor/separable.cu does it.
    fn split_sum32(sums: impl ExactSizeIterator<Item = i32>) -> i32 {
        let above = sums.len() - 2;
        let (mut upper, mut lower) = (0, 0);
        for (i, sum) in sums.enumerate() {
            let half = if i < above { &mut upper } else { &mut lower };
            *half = *half * 256 + sum;
        }
        upper + (lower >> 16)
    }

    /// The largest sums that 63 taps can have fit the 32 bits in which they are joined, with the bias and the
    /// rounding that they begin with.
    #[test]
    fn sums_of_the_longest_masks_fit_32_bits() {
        const TAPS: i32 = 63;
        let product = [-128 * 255, 127 * 255, 128 * 128].map(i32::abs).into_iter().max();
        // Two products of bytes a tap: the middle band of a row pass, all but the first and last sum of a
        // column pass.
        let (single, double) = (TAPS * product.unwrap(), 2 * TAPS * product.unwrap());
        assert!(double < 1 << 22);
        // The row pass: the first two of three bands, or two bands with the largest rounding.
        let largest_rounding = 1 << 29;
        let upper = single.checked_mul(256).and_then(|s| s.checked_add(double));
        assert!(upper.unwrap() < 1 << 30);
        assert!(upper.unwrap().checked_add(largest_rounding).is_some());
        // The column pass, whose bias lies below 2^45.
        let lower = double.checked_mul(256).and_then(|s| s.checked_add(single));
        assert!(lower.unwrap().checked_add(0xffff).is_some());
        let upper = (TAPS * 128 * 128)
            .checked_mul(256)
            .and_then(|s| s.checked_add(double));
        let with_bias = upper.unwrap().checked_add(1 << 29).unwrap();
        assert!(with_bias.checked_add(lower.unwrap() >> 16).is_some());
    }
}
