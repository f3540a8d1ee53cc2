//! Convolves tiles of a picture with a mask by Fourier transforms, two at a time: one is the real part and
//! the other the imaginary part of the input; as the mask is real, they do not mix.
//!
//! # Error of sums
//!
//! With u the unit of rounding, N points a side, samples whose squares add up to x^2 over both tiles, and
//! weights whose squares add up to q^2, the error of each sum is less than
//!
//! ```text
//! E = 250 u x q    in 64 bits, if the mask's spectrum is computed in 64 bits, too
//! E = 84 u x q     in 32 bits, where factors and spectrum are rounded from 64
//! ```
//!
//! A pass over four points adds twice, which is off by 2 u of its output's length (the Euclidean norm) or,
//! going back, of the sum of its inputs' magnitudes. It multiplies once by a factor: sqrt(5) u, and what the
//! factor itself is off by: u where it is rounded from 64 bits, else 8.4 u (an angle of up to 3/2 pi whose
//! product is off by 1.35 u of it, and sine and cosine, whose last bit may be wrong). The pass over eight
//! adds four times and multiplies once by a real factor, 6 u. That is at most 40 u for each dimension's
//! passes in 64 bits and 18 u in 32 (256 points: three of the former and one of 2 u). So a spectrum is off by
//! 80 u, or 36 u, of its length, which is N times that of samples or weights. By Cauchy and Schwarz what goes
//! back adds up to at most N^2 x q in magnitude, and is off by so much of that for each of the two spectra
//! (only by u for the mask's that was rounded), and by sqrt(5) u for their product; the passes back add as
//! much again. That makes 242 u, or 76 u, without terms of the order of u^2. Scaling by
//! powers of two changes nothing; another divisor rounds each weight once more, by u in 64 bits.
//!
//! In 64 bits E is below a quarter for all masks of weights of two bytes (none of them exceeds 32639, and
//! their magnitudes add up to less than 2^22, or 2^30 / m for samples up to m of at most 12 bits, so that
//! q is below 3.8 x 10^5): sums are integers, and so known exactly. In 32 bits E is some thousandths of a
//! level for masks that blur: results that lie closer to the border between two levels are named, for the
//! caller to find them in another way. So they are of long weights, whose sums reach 2^53: in 64 bits E is
//! some units then, and below a millionth of a level for masks that blur.

use super::butterfly::Twiddles;
use crate::engine::cpu::simd::float::{Complex, Doubles2, Float, FloatLoop, Line};
use crate::engine::cpu::simd::scratch::Scratch;
use crate::filter::DirectKernel;

/// Padding after a block's points, in vectors, so that blocks do not map to the same cache sets.
const BLOCK_PADDING: usize = 4;

/// Padding after a row of a tile's results, in numbers, for the same reason.
const ROW_PADDING: usize = 16;

/// The spacing, in both directions, of the samples whose mean is subtracted from a tile. Smaller samples have
/// smaller errors.
const SPARSE: usize = 16;

/// Two tiles to convolve.
pub(super) struct Pair<'a> {
    /// Their samples, row by row.
    pub(super) inputs: [&'a [u16]; 2],
    /// Samples from a row to the next.
    pub(super) stride: usize,
    /// Memory for their results.
    pub(super) outputs: [&'a mut [u16]; 2],
    /// The value to add to each tile's sums, in levels, before rounding.
    pub(super) add: [f64; 2],
    /// The largest sample.
    pub(super) largest: f64,
    /// Receives the results that may be wrong by one.
    pub(super) uncertain: &'a mut Vec<Uncertain>,
}

/// A vector of neighbouring results, at the same place of both tiles, of which some may be wrong by one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uncertain {
    /// Row of the results in the tile.
    pub(super) row: u16,
    /// Column of the first result in the tile.
    pub(super) column: u16,
    /// For each tile a bit for each result from there on: 1 if it may be wrong.
    pub(super) lanes: [u16; 2],
}

/// Convolves tiles with a mask.
pub(super) trait Tiles: Send + Sync {
    /// Columns and rows of a tile that become results.
    fn kept(&self) -> (usize, usize);

    /// Side of a tile, in points.
    fn side(&self) -> usize;

    /// Results of a vector, the unit of [`Uncertain`].
    fn lanes(&self) -> usize;

    /// Convolves two tiles. Results are clamped to the range of samples.
    fn convolve(&self, memory: &mut Scratch, pair: Pair<'_>);
}

/// A mask's spectra over tiles of one side.
pub(super) struct Spectra {
    /// In 32 bits, if few results are uncertain.
    pub(super) fast: Option<Box<dyn Tiles>>,
    /// In 64 bits.
    pub(super) exact: Box<dyn Tiles>,
}

/// Numbers from a row of a tile's results to the next, for tiles of `side` points.
pub(super) fn row_of_results(side: usize) -> usize {
    side + ROW_PADDING
}

/// A mask's spectrum over tiles of `N` x `N` points.
pub(super) struct Spectrum<R: Float, const N: usize> {
    simd: R,
    twiddles: Twiddles<R>,
    /// The points: for each [`Float::LANES`] rows a line of `N` vectors.
    lines: Vec<Complex<R::V>>,
    /// See [`Tiles::kept`].
    kept: (usize, usize),
    /// The sum of the weights.
    gain: f64,
    /// The root of the sum of their squares.
    norm: f64,
    /// True if results may be wrong, so that uncertain ones have to be listed.
    is_rounded: bool,
}

/// The spectrum of a mask's weights over tiles of `N` x `N` points, divided by the number of points: row by
/// row, both dimensions in the digit-reversed order of the transforms.
pub(super) fn spectrum<const N: usize>(kernel: &DirectKernel) -> Vec<Complex<f64>> {
    let twiddles = Twiddles::<Doubles2>::new::<N>();
    let zero = Complex {
        re: [0.0; 2],
        im: [0.0; 2],
    };
    let scale = 1.0 / (N * N) as f64 / kernel.division.divisor() as f64;
    // Columns of the tile, two at a time. Convolution mirrors the mask: the weight of the pixel i further on
    // stands i places before the first, modulo N.
    let mut columns = vec![zero; N / 2 * N];
    for (j, row) in kernel.weights.chunks(kernel.width).enumerate() {
        for (i, &q) in row.iter().enumerate() {
            let (x, y) = ((N - i) % N, (N - j) % N);
            columns[x / 2 * N + y].re[x % 2] = f64::from(q) * scale;
        }
    }
    for column in columns.as_chunks_mut::<N>().0 {
        twiddles.forward(Doubles2, column);
    }
    let mut all = vec![Complex { re: 0.0, im: 0.0 }; N * N];
    for rows in 0..N / 2 {
        let mut line: Line<Doubles2, N> = [zero; N];
        for (column, points) in columns.as_chunks::<N>().0.iter().zip(line.chunks_exact_mut(2)) {
            Doubles2.transpose(&column[2 * rows..], points);
        }
        twiddles.forward(Doubles2, &mut line);
        for (x, point) in line.iter().enumerate() {
            for lane in 0..2 {
                all[(2 * rows + lane) * N + x] = Complex {
                    re: point.re[lane],
                    im: point.im[lane],
                };
            }
        }
    }
    all
}

impl<R: Float, const N: usize> Spectrum<R, N> {
    /// `points` is [`spectrum`] of the same mask and tiles.
    pub(super) fn new(simd: R, kernel: &DirectKernel, points: &[Complex<f64>]) -> Spectrum<R, N> {
        let lines = (0..N / R::LANES).flat_map(|group| (0..N).map(move |x| (group, x)));
        let vector = |part: fn(&Complex<f64>) -> f64, group: usize, x: usize| {
            let lanes: Vec<f64> = (0..R::LANES)
                .map(|lane| part(&points[(group * R::LANES + lane) * N + x]))
                .collect();
            simd.of_doubles(&lanes)
        };
        let lines = lines.map(|(group, x)| Complex {
            re: vector(|point| point.re, group, x),
            im: vector(|point| point.im, group, x),
        });
        let scale = kernel.division.divisor() as f64;
        let sum: f64 = kernel.weights.iter().map(|&q| f64::from(q)).sum();
        Spectrum {
            simd,
            lines: lines.collect(),
            twiddles: Twiddles::new::<N>(),
            kept: (N - kernel.width + 1, N - kernel.height + 1),
            gain: sum / scale,
            norm: norm(&kernel.weights) / scale,
            is_rounded: !R::IS_EXACT || kernel.long,
        }
    }

    /// Transforms the rows of a tile whose columns are transformed, multiplies them by the spectrum, and
    /// transforms them back. `line` is memory for as many rows as a vector has lanes.
    #[inline(always)]
    fn convolve_rows(&self, simd: R, tile: &mut [Complex<R::V>], line: &mut [Complex<R::V>; N]) {
        for (group, by) in self.lines.as_chunks::<N>().0.iter().enumerate() {
            for (block, points) in tile
                .chunks_exact(N + BLOCK_PADDING)
                .zip(line.chunks_exact_mut(R::LANES))
            {
                simd.transpose(&block[group * R::LANES..], points);
            }
            self.twiddles.through(simd, line, by);
            for (block, points) in tile
                .chunks_exact_mut(N + BLOCK_PADDING)
                .zip(line.chunks_exact(R::LANES))
            {
                simd.transpose(points, &mut block[group * R::LANES..]);
            }
        }
    }
}

/// The root of the sum of the squares of weights.
pub(super) fn norm(weights: &[i32]) -> f64 {
    let squares = weights.iter().map(|&q| f64::from(q) * f64::from(q));
    squares.sum::<f64>().sqrt()
}

/// The bound E of the error of sums, for samples and weights of these norms.
pub(in crate::engine::cpu) fn error<R: Float>(samples: f64, weights: f64) -> f64 {
    let factor = if R::IS_EXACT { 250.0 } else { 84.0 };
    factor * R::UNIT * samples * weights
}

impl<R: Float, const N: usize> Tiles for Spectrum<R, N> {
    fn kept(&self) -> (usize, usize) {
        self.kept
    }

    fn side(&self) -> usize {
        N
    }

    fn lanes(&self) -> usize {
        R::LANES
    }

    fn convolve(&self, memory: &mut Scratch, pair: Pair<'_>) {
        self.simd.enter(Convolving {
            spectrum: self,
            memory: memory.of::<Vec<Complex<R::V>>>(),
            pair,
        });
    }
}

/// The first `N` points.
#[inline(always)]
fn whole<V, const N: usize>(points: &mut [Complex<V>]) -> &mut [Complex<V>; N] {
    let Some(points) = points.first_chunk_mut() else {
        unreachable!("a block or a line has {N} points")
    };
    points
}

/// An approximate mean of a tile's samples.
#[inline(always)]
fn middle<const N: usize>(samples: &[u16], stride: usize) -> f64 {
    let mut sum = 0;
    for row in samples.chunks(stride).take(N).step_by(SPARSE) {
        for sample in row[..N].iter().step_by(SPARSE) {
            sum += u32::from(*sample);
        }
    }
    f64::from(sum / (N / SPARSE * (N / SPARSE)) as u32)
}

/// The loop that convolves a pair of tiles.
struct Convolving<'a, R: Float, const N: usize> {
    spectrum: &'a Spectrum<R, N>,
    memory: &'a mut Vec<Complex<R::V>>,
    pair: Pair<'a>,
}

impl<R: Float, const N: usize> FloatLoop<R> for Convolving<'_, R, N> {
    #[inline(always)]
    fn run(self, simd: R) {
        let Convolving {
            spectrum,
            memory,
            pair,
        } = self;
        let twiddles = &spectrum.twiddles;
        // With numbers of 32 bits this is a constant.
        let is_rounded = !R::IS_EXACT || spectrum.is_rounded;
        let zero = simd.splat(R::number(0.0));
        // The tile, in blocks of a vector's width of columns, and a line of as many rows.
        let blocks = N / R::LANES * (N + BLOCK_PADDING);
        memory.resize(memory.len().max(blocks + N), Complex { re: zero, im: zero });
        let (tile, line) = memory.split_at_mut(blocks);
        let line = whole::<_, N>(line);
        let [first, second] = pair.inputs;
        let middles = [middle::<N>(first, pair.stride), middle::<N>(second, pair.stride)];
        let taken_off = [
            simd.splat(R::number(middles[0])),
            simd.splat(R::number(middles[1])),
        ];
        let mut squares = zero;
        // Row by row: the order in memory.
        for y in 0..N {
            let rows = [&first[y * pair.stride..][..N], &second[y * pair.stride..][..N]];
            for (block, points) in tile.chunks_exact_mut(N + BLOCK_PADDING).enumerate() {
                let re = simd.sub(simd.of_words(&rows[0][block * R::LANES..]), taken_off[0]);
                let im = simd.sub(simd.of_words(&rows[1][block * R::LANES..]), taken_off[1]);
                if is_rounded {
                    squares = simd.mul_add(re, re, simd.mul_add(im, im, squares));
                }
                points[y] = Complex { re, im };
            }
        }
        for points in tile.chunks_exact_mut(N + BLOCK_PADDING) {
            twiddles.forward(simd, whole::<_, N>(points));
        }
        spectrum.convolve_rows(simd, tile, line);
        let add = [
            pair.add[0] + middles[0] * spectrum.gain,
            pair.add[1] + middles[1] * spectrum.gain,
        ];
        // One thousandth more covers the errors of the sum of squares and of the comparison. `last` is the
        // error of the final addition, which matters only for results in the range of samples.
        let samples = (1.001 * simd.total(squares)).sqrt();
        let last = R::UNIT * (add[0].abs().max(add[1].abs()) + pair.largest + 1.0);
        let within = 0.5 - 1.001 * (error::<R>(samples, spectrum.norm) + last);
        let within = simd.splat(R::number(within));
        let largest = simd.splat(R::number(pair.largest));
        let add = [simd.splat(R::number(add[0])), simd.splat(R::number(add[1]))];
        let (columns, rows) = spectrum.kept;
        let [first, second] = pair.outputs;
        let mut found = 0;
        if is_rounded {
            pair.uncertain
                .resize(rows * columns.div_ceil(R::LANES), Uncertain::default());
        }
        let blocks = tile
            .chunks_exact_mut(N + BLOCK_PADDING)
            .take(columns.div_ceil(R::LANES));
        for (block, points) in blocks.enumerate() {
            let points = whole::<_, N>(points);
            twiddles.backward(simd, points);
            let results = first.chunks_exact_mut(N + ROW_PADDING);
            let results = results.zip(second.chunks_exact_mut(N + ROW_PADDING));
            let column = block * R::LANES;
            for (y, (point, (first, second))) in points[..rows].iter().zip(results).enumerate() {
                let (re, im) = (simd.add(point.re, add[0]), simd.add(point.im, add[1]));
                simd.store_whole(re, largest, &mut first[column..]);
                simd.store_whole(im, largest, &mut second[column..]);
                if is_rounded {
                    let lanes = [
                        simd.far_from_halves(re, within) as u16,
                        simd.far_from_halves(im, within) as u16,
                    ];
                    // Always written: a branch would often be mispredicted.
                    pair.uncertain[found] = Uncertain {
                        row: y as u16,
                        column: column as u16,
                        lanes,
                    };
                    found += usize::from(lanes != [0; 2]);
                }
            }
        }
        pair.uncertain.truncate(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::simd::float::Singles4;

    #[test]
    fn sums_of_64_bits_are_exact_whatever_the_mask() {
        // Up to 12 bits sums of magnitudes times the largest sample stay below 2^30, above, those alone below
        // 2^22.
        for (largest, magnitude) in [
            (255.0, 1 << 22),
            (1023.0, 1 << 20),
            (4095.0, 1 << 18),
            (65535.0, 1 << 22),
        ] {
            let heaviest = vec![32639; magnitude / 32639 + 1];
            let samples = largest * 256.0 * std::f64::consts::SQRT_2;
            assert!(error::<Doubles2>(samples, norm(&heaviest)) < 0.25, "{largest}");
        }
    }

    #[test]
    fn sums_of_32_bits_of_a_blur_are_off_by_thousandths() {
        // A box of 25 x 25, white noise from 0 to 255: 84 x 2^-24 x (74 x 128 x sqrt(2)) / 25.
        let error = error::<Singles4>(73.9 * 128.0 * std::f64::consts::SQRT_2, 1.0 / 25.0);
        assert!((0.002..0.003).contains(&error), "{error}");
    }
}
