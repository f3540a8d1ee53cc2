//! Sums of products with the fragments, as PTX defines products, against plain sums of weights times samples.

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
        for outputs in [OutputTile::Shared, OutputTile::Wide, OutputTile::Tall] {
            let ((across, rows), sets) = (outputs.size(), outputs.sets());
            let pad = (4 - mask.reach() % 4) % 4;
            let start = mask.reach() + pad;
            let span = start + (across - 1) * sample_bytes + mask.reach() + sample_bytes;
            let slices = span.div_ceil(16);
            let pairs = (size.1 + rows - 1).div_ceil(2);
            let fragments = direct(mask, outputs, pairs, slices, start);
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
                                word_at(&tile, row * PITCH + origin(m) - start + 16 * slice + lane % 4 * 4)
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
                        let (x, y) = match outputs {
                            OutputTile::Shared => (4 * ((n / 2) & 1) + n % 2 + 2 * set, n >> 2),
                            OutputTile::Wide => (2 * ((n / 2) & 1) + n % 2, n >> 2),
                            OutputTile::Tall => (n & 1, n >> 1),
                        };
                        let expected = plain(&tile, mask, y * PITCH + origin(m) + x * sample_bytes);
                        let got = joined(sums.iter().map(|band| band[lane][i]));
                        assert_eq!(
                            got, expected,
                            "{size:?} {channels} {sample_bytes} {outputs:?} lane {lane}"
                        );
                    }
                }
            }
        }
    }
}

/// Where results begin in a tile.
const ORIGIN: usize = 512;

/// The sums of a product's lanes, of one band.
type Sums = [[i32; 4]; 32];

/// Words of the fragments of so many K-slices or groups.
fn words(count: usize) -> usize {
    (count / 2 * 4 + count % 2 * 2) * 32
}

/// Row pass and column pass of tensor/separable.cu for 16 x 16 results; as there, the intermediate stays
/// in its lane.
struct BothPasses<'a> {
    row: Mask<'a>,
    column: &'a [i32],
    passes: Passes,
    fragments: &'a [u32],
    tile: &'a [u8],
}

impl BothPasses<'_> {
    /// Bytes of the intermediate, and the shift that makes it of a sum.
    fn intermediate(&self) -> (usize, u32) {
        if self.passes.wide { (3, 14) } else { (2, 16) }
    }

    /// Truncated to the intermediate's bytes, of which the highest has the sign.
    fn between(&self, sum: i64) -> i32 {
        let (bytes, shift) = self.intermediate();
        let unused = 32 - 8 * bytes;
        (((sum + (1 << (shift - 1))) >> shift) as i32) << unused >> unused
    }

    /// The intermediate of eight rows of a group.
    fn row_pass(&self, group: usize, block: usize) -> Sums {
        let slices = self.passes.slices;
        let mut sums = vec![[[0; 4]; 32]; self.row.bands()];
        for (band, sums) in sums.iter_mut().enumerate() {
            for slice in (0..slices).step_by(2) {
                let at = band * words(slices) + slice / 2 * 128;
                let a = |lane: usize, register: usize| self.fragments[at + register * 32 + lane];
                let b = |lane: usize, register: usize| {
                    let y = group * 16 + block * 8 + row_of_column(lane / 4);
                    let x = ORIGIN - self.passes.start + 16 * (slice + register) + lane % 4 * 4;
                    word_at(self.tile, y * PITCH + x)
                };
                let depth = if slice + 1 < slices { 32 } else { 16 };
                product(sums, a, b, depth, (true, false));
            }
        }
        std::array::from_fn(|lane| {
            std::array::from_fn(|i| self.between(joined(sums.iter().map(|band| band[lane][i]))))
        })
    }

    /// The intermediate's bytes of a group, the low ones first, for columns of both halves of a product.
    fn handed(&self, group: usize) -> [[[u32; 3]; 2]; 32] {
        let values = [0, 1].map(|block| self.row_pass(group, block));
        let mut handed = [[[0; 3]; 2]; 32];
        for lane in 0..32 {
            for n in 0..2 {
                let four = [0, 1]
                    .map(|block: usize| [0, 1].map(|k: usize| values[block][lane][2 * n + k].to_le_bytes()));
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
        handed
    }

    /// The sums of half `n`, of what the row pass has handed for each group.
    fn column_pass(&self, turn: usize, n: usize, handed: &[[[[u32; 3]; 2]; 32]]) -> Vec<Sums> {
        let (bytes, groups) = (weight_bytes(self.column), self.passes.groups);
        let (between_bytes, _) = self.intermediate();
        let mut sums = vec![[[0; 4]; 32]; bytes + between_bytes - 1];
        for band in 0..bytes {
            // The weight's byte times each byte of the intermediate.
            for byte in 0..between_bytes {
                let digit = bytes - 1 - band;
                let sums = &mut sums[bytes + between_bytes - 2 - digit - byte];
                for group in (0..groups).step_by(2) {
                    let at = self.row.bands() * words(self.passes.slices)
                        + (turn * bytes + band) * words(groups)
                        + group / 2 * 128;
                    let a = |lane: usize, register: usize| self.fragments[at + register * 32 + lane];
                    let b = |lane: usize, register: usize| handed[group + (register ^ turn)][lane][n][byte];
                    let depth = if group + 1 < groups { 32 } else { 16 };
                    product(sums, a, b, depth, (true, byte + 1 == between_bytes));
                }
            }
        }
        sums
    }

    /// Holds the sums of half `n` against those of the definition.
    fn check(&self, n: usize, sums: &[Sums]) {
        let Mask {
            channels,
            sample_bytes,
            size: (width, _),
            ..
        } = self.row;
        let size = (width, self.column.len());
        for lane in 0..32 {
            for i in 0..4 {
                let (y, x) = (lane / 4 + i / 2 * 8, lane % 4 * 4 + 2 * n + i % 2);
                let at = |j: usize| (y + j) * PITCH + ORIGIN + x * sample_bytes;
                let between = |j: usize| self.between(plain(self.tile, self.row, at(j)));
                let expected: i64 = (0..size.1)
                    .map(|j| i64::from(self.column[j]) * i64::from(between(j)))
                    .sum();
                let got = joined(sums.iter().map(|band| band[lane][i]));
                assert_eq!(
                    got, expected,
                    "{size:?} {channels} {sample_bytes} lane {lane} {i}"
                );
                if self.passes.wide {
                    assert_eq!(
                        i64::from(split_sum32(sums.iter().map(|band| band[lane][i]))),
                        expected >> 16
                    );
                }
            }
        }
    }
}

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
        let passes = Passes {
            start,
            slices: (start + 16 * sample_bytes + row.reach()).div_ceil(16),
            groups: (15 + size.1).div_ceil(16),
            wide,
        };
        let fragments = separable(row, &column, passes);
        assert_eq!(
            fragments.len(),
            row.bands() * words(passes.slices)
                + passes.turns() * weight_bytes(&column) * words(passes.groups)
        );
        let both = BothPasses {
            row,
            column: &column,
            passes,
            fragments: &fragments,
            tile: &tile,
        };
        for turn in 0..passes.turns() {
            let handed: Vec<_> = (0..passes.groups).map(|group| both.handed(group)).collect();
            for n in 0..2 {
                both.check(n, &both.column_pass(turn, n, &handed));
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
