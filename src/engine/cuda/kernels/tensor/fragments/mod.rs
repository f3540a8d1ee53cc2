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

/// The output tiles of tensor/direct.cu: the results of a K-slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputTile {
    /// 8 x 2 results, in two products: two bands of weights for each pair of rows.
    Shared,
    /// 4 x 2 results.
    Wide,
    /// 2 x 4 results.
    Tall,
}

impl OutputTile {
    /// Columns and rows of results.
    pub(crate) fn size(self) -> (usize, usize) {
        match self {
            OutputTile::Shared => (8, 2),
            OutputTile::Wide => (4, 2),
            OutputTile::Tall => (2, 4),
        }
    }

    /// Samples from a lane's first K-slice to the next lane's.
    pub(crate) fn slices_apart(self) -> usize {
        match self {
            OutputTile::Shared | OutputTile::Wide => 16,
            OutputTile::Tall => 8,
        }
    }

    /// Products for one K-slice.
    fn sets(self) -> usize {
        if self == OutputTile::Shared { 2 } else { 1 }
    }

    /// Column and row of result `n` of product `set`.
    fn place(self, set: usize, n: usize) -> (usize, usize) {
        match self {
            OutputTile::Shared => (n / 2 % 2 * 4 + n % 2 + 2 * set, n / 4),
            OutputTile::Wide => (n % 4, n / 4),
            OutputTile::Tall => (n % 2, n / 2),
        }
    }
}

/// The weights of tensor/direct.cu. `start` is the number of bytes before an output tile at which its first
/// K-slice begins.
pub(crate) fn direct(
    mask: Mask<'_>,
    outputs: OutputTile,
    pairs: usize,
    slices: usize,
    start: usize,
) -> Vec<u32> {
    let mut list = Vec::new();
    for slice in 0..slices {
        for pair in 0..pairs {
            for set in 0..outputs.sets() {
                for band in 0..mask.bands() {
                    push_b(&mut list, |k, n| {
                        let (column, row) = outputs.place(set, n);
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
mod tests;
