//! Structural similarity, as the C code of FFmpeg's `ssim` filter computes it, whose vector code gives other
//! numbers for some widths: sums of integers over windows of 8x8 samples at steps of 4, without weights.
//!
//! ```text
//!      4   4   4   3        A plane is cut into blocks of 4x4, and each square of 2x2 blocks is a window.
//!    ┌───┬───┬───┬──┐       What is left on the right and below belongs to no block.
//!  4 │   │   │   │  │
//!    ├───┼───┼───┤  │       A plane of less than 8 samples in a direction, for which FFmpeg's filter gives
//!  4 │   │   │   │  │       no number, is one block in that direction: the window is as wide or as high as
//!    ├───┴───┴───┘  │       the plane.
//!  2 └──────────────┘
//! ```
//!
//! With N samples in a window, sums `s1` and `s2`, `ss` of the squares of both, `s12` of products:
//!
//! ```text
//!  variances  = N ss - s1^2 - s2^2                 C1 = round(0.01^2 max^2 N)
//!  covariance = N s12 - s1 s2                      C2 = round(0.03^2 max^2 N (N - 1))
//!
//!         (2 s1 s2 + C1) (2 covariance + C2)
//!  SSIM = ------------------------------------     without the second factors for N = 1
//!         (s1^2 + s2^2 + C1) (variances + C2)
//! ```

/// Blocks along one direction of a plane.
#[derive(Debug, Clone, Copy)]
struct Axis {
    /// Samples of a block.
    block: usize,
    /// Whole blocks.
    blocks: usize,
    /// Blocks of a window.
    per_window: usize,
}

impl Axis {
    fn new(extent: usize) -> Axis {
        if extent < 8 {
            return Axis {
                block: extent,
                blocks: 1,
                per_window: 1,
            };
        }
        Axis {
            block: 4,
            blocks: extent / 4,
            per_window: 2,
        }
    }
}

/// Sums over a block, or over the blocks of a window: at most 64 samples of 16 bits.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    a: i64,
    b: i64,
    squares: i64,
    products: i64,
}

impl Sums {
    fn add(&mut self, a: u16, b: u16) {
        let (a, b) = (i64::from(a), i64::from(b));
        self.a += a;
        self.b += b;
        self.squares += a * a + b * b;
        self.products += a * b;
    }

    fn join(self, other: Sums) -> Sums {
        Sums {
            a: self.a + other.a,
            b: self.b + other.b,
            squares: self.squares + other.squares,
            products: self.products + other.products,
        }
    }
}

/// The mean SSIM of one component of a pair of frames, fed row by row.
#[derive(Debug, Clone)]
pub struct Ssim {
    across: Axis,
    down: Axis,
    /// Samples of a window.
    count: i64,
    c1: i64,
    c2: i64,
    /// Rows taken.
    rows: usize,
    /// The blocks that the rows are added to, and those above them.
    blocks: Vec<Sums>,
    above: Vec<Sums>,
    total: f64,
    windows: u64,
}

impl Ssim {
    /// For a component of `width` times `height` samples, 1 at least, of values up to `max`.
    pub fn new(width: usize, height: usize, max: u32) -> Ssim {
        let (across, down) = (Axis::new(width), Axis::new(height));
        let count = across.block * across.per_window * down.block * down.per_window;
        let (square, n) = (f64::from(max) * f64::from(max), count as f64);
        Ssim {
            across,
            down,
            count: count as i64,
            c1: (0.01 * 0.01 * square * n).round() as i64,
            c2: (0.03 * 0.03 * square * n * (n - 1.0)).round() as i64,
            rows: 0,
            blocks: vec![Sums::default(); across.blocks],
            above: vec![Sums::default(); across.blocks],
            total: 0.0,
            windows: 0,
        }
    }

    /// Adds the next row of A and B.
    pub fn add_row(&mut self, a: &[u16], b: &[u16]) {
        let block = self.across.block;
        let pairs = a.chunks_exact(block).zip(b.chunks_exact(block));
        for (sums, (a, b)) in self.blocks.iter_mut().zip(pairs) {
            for (&a, &b) in a.iter().zip(b) {
                sums.add(a, b);
            }
        }
        self.rows += 1;
        if self.rows.is_multiple_of(self.down.block) {
            self.end_blocks();
        }
    }

    /// The mean over all windows of the rows that were added, -1 to 1.
    pub fn mean(&self) -> f64 {
        if self.windows == 0 {
            return 1.0;
        }
        self.total / self.windows as f64
    }

    /// Makes windows of a finished row of blocks and of the one above it.
    fn end_blocks(&mut self) {
        let has_window = self.rows / self.down.block >= self.down.per_window;
        if has_window {
            let is_pair = self.down.per_window == 2;
            let columns: Vec<Sums> = self
                .blocks
                .iter()
                .zip(&self.above)
                .map(|(&below, &above)| if is_pair { below.join(above) } else { below })
                .collect();
            for window in columns.windows(self.across.per_window) {
                let sums = window
                    .iter()
                    .fold(Sums::default(), |sum, &column| sum.join(column));
                self.total += self.similarity(sums);
                self.windows += 1;
            }
        }
        std::mem::swap(&mut self.blocks, &mut self.above);
        self.blocks.fill(Sums::default());
    }

    fn similarity(&self, sums: Sums) -> f64 {
        let Sums {
            a,
            b,
            squares,
            products,
        } = sums;
        let luminance = (2 * a * b + self.c1) as f64 / (a * a + b * b + self.c1) as f64;
        let variances = self.count * squares - a * a - b * b + self.c2;
        if variances == 0 {
            return luminance;
        }
        let covariance = 2 * (self.count * products - a * b) + self.c2;
        luminance * covariance as f64 / variances as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    /// A picture of noise.
    fn noise(seed: u64, width: usize, height: usize, max: u32) -> Vec<Vec<u16>> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) % (u64::from(max) + 1)) as u16
        };
        (0..height)
            .map(|_| (0..width).map(|_| next()).collect())
            .collect()
    }

    fn mean(a: &[Vec<u16>], b: &[Vec<u16>], max: u32) -> f64 {
        let mut ssim = Ssim::new(a[0].len(), a.len(), max);
        for (a, b) in a.iter().zip(b) {
            ssim.add_row(a, b);
        }
        ssim.mean()
    }

    /// The same by the textbook, from means and unbiased variances of each window in real numbers; only the
    /// first constant is x264's and FFmpeg's, 1/N of the textbook's.
    fn textbook(a: &[Vec<u16>], b: &[Vec<u16>], max: u32) -> f64 {
        let (width, height) = (a[0].len(), a.len());
        let starts = |extent: usize| -> Vec<usize> {
            match extent {
                ..8 => vec![0],
                _ => (0..=(extent / 4 * 4 - 8)).step_by(4).collect(),
            }
        };
        let mut values = Vec::new();
        for &top in &starts(height) {
            for &left in &starts(width) {
                let pairs: Vec<(f64, f64)> = (top..height.min(top + 8))
                    .flat_map(|y| (left..width.min(left + 8)).map(move |x| (x, y)))
                    .map(|(x, y)| (f64::from(a[y][x]), f64::from(b[y][x])))
                    .collect();
                let n = pairs.len() as f64;
                let over = |f: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|&(a, b)| f(a, b)).sum::<f64>();
                let (ma, mb) = (over(&|a, _| a) / n, over(&|_, b| b) / n);
                let (c1, c2) = (
                    (0.01 * f64::from(max)).powi(2) / n,
                    (0.03 * f64::from(max)).powi(2),
                );
                let luminance = (2.0 * ma * mb + c1) / (ma * ma + mb * mb + c1);
                let structure = if pairs.len() == 1 {
                    1.0
                } else {
                    let variance = over(&|a, b| (a - ma).powi(2) + (b - mb).powi(2)) / (n - 1.0);
                    let covariance = over(&|a, b| (a - ma) * (b - mb)) / (n - 1.0);
                    (2.0 * covariance + c2) / (variance + c2)
                };
                values.push(luminance * structure);
            }
        }
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn integer_sums_give_the_textbooks_numbers_in_every_size_and_depth() {
        for (width, height) in [
            (8, 8),
            (37, 21),
            (64, 9),
            (7, 30),
            (30, 3),
            (5, 5),
            (2, 1),
            (1, 1),
        ] {
            for max in [255, 1023, 65_535] {
                let (a, b) = (noise(1, width, height, max), noise(2, width, height, max));
                let (ours, real) = (mean(&a, &b, max), textbook(&a, &b, max));
                assert!(
                    (ours - real).abs() < 1e-4,
                    "{width}x{height} to {max}: {ours} and {real}"
                );
                assert!((mean(&a, &a, max) - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn what_no_window_reaches_does_not_count() {
        let a = noise(3, 14, 11, 255);
        let mut b = a.clone();
        b[10][0] ^= 1;
        b[0][13] ^= 1;
        assert_eq!(mean(&a, &b, 255), 1.0);
        b[7][11] ^= 128;
        assert!(mean(&a, &b, 255) < 1.0);
    }
}
