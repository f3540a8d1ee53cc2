//! Strips of rows by way of Fourier transforms, for large direct masks: what they cost hardly depends on the number of weights.
//!
//! A square tile of the picture with all that the mask reaches is transformed, multiplied with the mask's spectrum and transformed back; the samples whose mask lies
//! within the tile are kept (*overlap-save*). Two tiles go together, as real and as imaginary part: the mask is real, so neither gets anything of the other.
//!
//! The sums that come out are those of docs/arithmetic.md to the last bit, since they are known to be integers and are less than half of one off. With u = 2^-53, N points a side,
//! samples up to m and weights q, each sum is off by less than
//!
//! ```text
//! E = 128 u (sqrt(2) m N) |q|,    |q| = square root of the sum of q^2
//! ```
//!
//! A pass over four points adds twice and multiplies once by a factor that is rounded itself: 2 u + (sqrt(2) + sqrt(5)) u of its output's length (the Euclidean norm), or, going back,
//! of the sum of its inputs' magnitudes. That is at most 19 u for each dimension's passes (256 points: three such, and one of 2 u). So both spectra are off by 38 u of their
//! length, N times that of samples or weights, and their product's sum over all N^2 frequencies by 2 x 38 u N^2 (sqrt(2) m N) |q|, by Cauchy and Schwarz, to which rounding the product
//! adds sqrt(5) u. What goes back is at most N^2 (sqrt(2) m N) |q| in sum, of which the passes add 38 u: 117 u in all, without what is of the order of u^2. Powers of two, by
//! which all is scaled, change nothing. Quantised weights keep E below an eighth: none exceeds 32639, and their magnitudes add up to less than 2^22 (2^30 / m up to
//! 12 bits), so that |q| is below 3.8 x 10^5, and m at most 65535.

use super::alpha::Source;
use super::component::Component;
use super::edges::{complete, is_partial};
use super::fourier::Turns;
use super::memory::{aligned, spread};
#[cfg(target_arch = "x86_64")]
use super::real_vectors::{Eight, Four};
use super::reals::{Complex, Line, Reals, Two, Work};
use super::rows::{Place, store};
use super::simd::InstructionSet;
use super::strip::Strip;
use crate::filter::{ChannelStep, Convolve, DirectKernel, Kernel, Step};
use crate::frame::{Layout, PixelFormat, Plane};

/// Vectors beyond a block's points, so that blocks do not fall on each other in the cache.
const APART: usize = 4;

/// Weights of the smallest masks that it is tried for: smaller ones are faster by far in other ways.
const LEAST_WEIGHTS: usize = 81;

/// Numbers beyond a tile's row of results, for the same reason.
const ROWS_APART: usize = 16;

/// A mask's spectrum and how tiles are convolved with it.
pub(super) struct OverlapSave {
    tiles: Box<dyn Tiles>,
    /// Columns and rows of the mask.
    mask: (usize, usize),
    format: PixelFormat,
    shift: u32,
}

/// What a thread works in, for vectors of each kind.
#[derive(Default)]
pub(super) struct Memories {
    pub(super) two: Vec<Complex<<Two as Reals>::V>>,
    #[cfg(target_arch = "x86_64")]
    pub(super) four: Vec<Complex<<Four as Reals>::V>>,
    #[cfg(target_arch = "x86_64")]
    pub(super) eight: Vec<Complex<<Eight as Reals>::V>>,
}

/// The memory that a thread works in.
#[derive(Default)]
pub(super) struct Scratch {
    memories: Memories,
    /// The rows of all components that a row of tiles reads, with what lies beyond their ends.
    staged: Vec<i32>,
    /// A tile's samples of the result each.
    made: [Vec<i32>; 2],
    /// A row whose colours are weighted by alpha.
    under_alpha: Vec<u8>,
}

/// Two tiles to convolve.
struct Pair<'a> {
    /// Their samples, row by row from the first on.
    inputs: [&'a [i32]; 2],
    /// From a row of them to the next.
    stride: usize,
    /// Room for their results.
    outputs: [&'a mut [i32]; 2],
    /// What is added to each tile's sums, in levels.
    add: [f64; 2],
    /// The largest sample.
    largest: f64,
}

/// Convolves tiles with a mask.
trait Tiles: Send + Sync {
    /// Columns and rows of a tile that are kept.
    fn kept(&self) -> (usize, usize);

    /// Points a side.
    fn side(&self) -> usize;

    /// What a pair of tiles takes, in multiply-adds of two samples and two weights each.
    fn terms(&self) -> f64;

    /// Convolves two tiles; results that are out of range saturate.
    fn convolve(&self, memories: &mut Memories, pair: Pair<'_>);
}

/// A mask's spectrum over tiles of `N` x `N` points.
struct Spectrum<R: Reals, const N: usize> {
    reals: R,
    turns: Turns,
    /// Of each [`Reals::LANES`] rows a line of `N`.
    lines: Vec<Complex<R::V>>,
    kept: (usize, usize),
    terms: f64,
}

impl<R: Reals, const N: usize> Spectrum<R, N> {
    fn new(reals: R, kernel: &DirectKernel, terms: f64) -> Spectrum<R, N> {
        let zero = Complex {
            re: reals.splat(0.0),
            im: reals.splat(0.0),
        };
        let mut spectrum = Spectrum {
            reals,
            turns: Turns::new::<N>(),
            lines: vec![zero; N * N / R::LANES],
            kept: (N - kernel.width + 1, N - kernel.height + 1),
            terms,
        };
        // What is multiplied by the pixel one further on stands one place before the first: indices count around.
        let mut weights = vec![0; N * N];
        for (j, row) in kernel.weights.chunks(kernel.width).enumerate() {
            for (i, &q) in row.iter().enumerate() {
                weights[(N - j) % N * N + (N - i) % N] = q;
            }
        }
        let scale = 1.0 / (N * N) as f64 / f64::from(kernel.shift).exp2();
        let mut memory = Vec::new();
        let mut lines = std::mem::take(&mut spectrum.lines);
        reals.enter(Transforming::<_, N> {
            turns: &spectrum.turns,
            weights: &weights,
            scale,
            memory: &mut memory,
            lines: &mut lines,
        });
        spectrum.lines = lines;
        spectrum
    }
}

impl<R: Reals + Send + Sync, const N: usize> Tiles for Spectrum<R, N>
where
    R::V: Send + Sync,
{
    fn kept(&self) -> (usize, usize) {
        self.kept
    }

    fn side(&self) -> usize {
        N
    }

    fn terms(&self) -> f64 {
        self.terms
    }

    fn convolve(&self, memories: &mut Memories, pair: Pair<'_>) {
        self.reals.enter(Convolving {
            spectrum: self,
            memory: R::memory(memories),
            pair,
        });
    }
}

/// Room for the points of a tile, in blocks of as many columns as a vector holds, and for a line of the rows of as many.
fn room_for_tile<R: Reals, const N: usize>(
    reals: R,
    memory: &mut Vec<Complex<R::V>>,
) -> (&mut [Complex<R::V>], &mut Line<R, N>) {
    let blocks = N / R::LANES * (N + APART);
    let zero = reals.splat(0.0);
    memory.resize(memory.len().max(blocks + N), Complex { re: zero, im: zero });
    let (tile, rest) = memory.split_at_mut(blocks);
    (tile, whole(rest))
}

/// The first `N` points.
#[inline(always)]
fn whole<V, const N: usize>(points: &mut [Complex<V>]) -> &mut [Complex<V>; N] {
    let Some(points) = points.first_chunk_mut() else {
        unreachable!("a block or a line has {N} points")
    };
    points
}

/// Makes a spectrum's lines of the weights of a tile.
struct Transforming<'a, V, const N: usize> {
    turns: &'a Turns,
    weights: &'a [i32],
    scale: f64,
    memory: &'a mut Vec<Complex<V>>,
    lines: &'a mut [Complex<V>],
}

impl<R: Reals, const N: usize> Work<R> for Transforming<'_, R::V, N> {
    #[inline(always)]
    fn run(self, reals: R) {
        let Transforming {
            turns,
            weights,
            scale,
            memory,
            lines,
        } = self;
        let (tile, _) = room_for_tile::<R, N>(reals, memory);
        let (scale, zero) = (reals.splat(scale), reals.splat(0.0));
        for (block, points) in tile.chunks_exact_mut(N + APART).enumerate() {
            let points = whole::<_, N>(points);
            for (row, point) in weights.chunks_exact(N).zip(points.iter_mut()) {
                let weights = reals.of_integers(&row[block * R::LANES..]);
                *point = Complex {
                    re: reals.mul(weights, scale),
                    im: zero,
                };
            }
            turns.forward(reals, points);
        }
        for (group, line) in lines.as_chunks_mut::<N>().0.iter_mut().enumerate() {
            gather(reals, tile, group, line);
            turns.forward(reals, line);
        }
    }
}

/// A pair of tiles on its way.
struct Convolving<'a, R: Reals, const N: usize> {
    spectrum: &'a Spectrum<R, N>,
    memory: &'a mut Vec<Complex<R::V>>,
    pair: Pair<'a>,
}

impl<R: Reals, const N: usize> Work<R> for Convolving<'_, R, N> {
    #[inline(always)]
    fn run(self, reals: R) {
        let Convolving {
            spectrum,
            memory,
            pair,
        } = self;
        let turns = &spectrum.turns;
        let (tile, line) = room_for_tile::<R, N>(reals, memory);
        let [first, second] = pair.inputs;
        for (block, points) in tile.chunks_exact_mut(N + APART).enumerate() {
            let points = whole::<_, N>(points);
            for (y, point) in points.iter_mut().enumerate() {
                let at = y * pair.stride + block * R::LANES;
                *point = Complex {
                    re: reals.of_integers(&first[at..]),
                    im: reals.of_integers(&second[at..]),
                };
            }
            turns.forward(reals, points);
        }
        for (group, by) in spectrum.lines.as_chunks::<N>().0.iter().enumerate() {
            gather(reals, tile, group, line);
            turns.through(reals, line, by);
            scatter(reals, line, group, tile);
        }
        let (columns, rows) = spectrum.kept;
        let largest = reals.splat(pair.largest);
        let [first, second] = pair.outputs;
        let add = [reals.splat(pair.add[0]), reals.splat(pair.add[1])];
        let blocks = tile.chunks_exact_mut(N + APART).take(columns.div_ceil(R::LANES));
        for (block, points) in blocks.enumerate() {
            let points = whole::<_, N>(points);
            turns.backward(reals, points);
            for (y, point) in points[..rows].iter().enumerate() {
                let at = y * (N + ROWS_APART) + block * R::LANES;
                reals.put_whole(reals.add(point.re, add[0]), largest, &mut first[at..]);
                reals.put_whole(reals.add(point.im, add[1]), largest, &mut second[at..]);
            }
        }
    }
}

/// A line of as many rows as a vector holds, out of the blocks.
#[inline(always)]
fn gather<R: Reals, const N: usize>(reals: R, tile: &[Complex<R::V>], group: usize, line: &mut Line<R, N>) {
    let blocks = tile.chunks_exact(N + APART);
    for (block, points) in blocks.zip(line.chunks_exact_mut(R::LANES)) {
        reals.transpose(&block[group * R::LANES..], points);
    }
}

/// What [`gather`] has taken, back into the blocks.
#[inline(always)]
fn scatter<R: Reals, const N: usize>(reals: R, line: &Line<R, N>, group: usize, tile: &mut [Complex<R::V>]) {
    let blocks = tile.chunks_exact_mut(N + APART);
    for (block, points) in blocks.zip(line.chunks_exact(R::LANES)) {
        reals.transpose(points, &mut block[group * R::LANES..]);
    }
}

/// What a pair of tiles of 128 and of 256 points a side takes, in multiply-adds as [`Tiles::terms`] counts them (measured, docs/performance.md).
const TERMS_OF_TWO: [f64; 2] = [3.5e6, 17e6];
#[cfg(target_arch = "x86_64")]
const TERMS_OF_FOUR: [f64; 2] = [3.5e6, 17e6];
#[cfg(target_arch = "x86_64")]
const TERMS_OF_EIGHT: [f64; 2] = [3.5e6, 17e6];

/// The largest error that sums of samples up to `largest` may have, by the formula above, for tiles of `side` points.
fn error(weights: &[i32], largest: f64, side: usize) -> f64 {
    let squares: f64 = weights.iter().map(|&q| f64::from(q) * f64::from(q)).sum();
    64.0 * f64::EPSILON * std::f64::consts::SQRT_2 * largest * side as f64 * squares.sqrt()
}

/// The better one of two sides of tiles, by what a sample takes.
fn tiles<R: Reals + Send + Sync + 'static>(
    reals: R,
    kernel: &DirectKernel,
    largest: f64,
    terms: [f64; 2],
) -> Box<dyn Tiles>
where
    R::V: Send + Sync,
{
    let each =
        |side: usize, terms: f64| terms / ((side - kernel.width + 1) * (side - kernel.height + 1)) as f64;
    debug_assert!(error(&kernel.weights, largest, 256) < 0.25);
    if each(256, terms[1]) < each(128, terms[0]) {
        Box::new(Spectrum::<R, 256>::new(reals, kernel, terms[1]))
    } else {
        Box::new(Spectrum::<R, 128>::new(reals, kernel, terms[0]))
    }
}

impl OverlapSave {
    /// That of a step; `None` if its mask is not direct, or so small that other ways are faster anyway.
    pub(super) fn new(step: &Step, format: PixelFormat, set: InstructionSet) -> Option<OverlapSave> {
        let Kernel::Direct(kernel) = &step.kernel else {
            return None;
        };
        if kernel.weights.len() < LEAST_WEIGHTS {
            return None;
        }
        let largest = f64::from(format.max_value());
        #[cfg(target_arch = "x86_64")]
        let vectors = match set {
            InstructionSet::Portable => None,
            InstructionSet::Avx2 | InstructionSet::Avx2Vnni => {
                Four::detect().map(|four| tiles(four, kernel, largest, TERMS_OF_FOUR))
            }
            InstructionSet::Avx512 | InstructionSet::Avx512Vnni => {
                Eight::detect().map(|eight| tiles(eight, kernel, largest, TERMS_OF_EIGHT))
            }
        };
        #[cfg(not(target_arch = "x86_64"))]
        let (vectors, _) = (None, set);
        let tiles = vectors.unwrap_or_else(|| tiles(Two, kernel, largest, TERMS_OF_TWO));
        Some(OverlapSave {
            tiles,
            mask: (kernel.width, kernel.height),
            format,
            shift: kernel.shift,
        })
    }

    /// Rows that are made at once.
    pub(super) fn rows(&self) -> usize {
        self.tiles.kept().1
    }

    /// True if it is faster on a plane than a way that takes so many terms a sample.
    pub(super) fn is_faster(&self, plane: &Plane, channels: &[ChannelStep], terms: usize) -> bool {
        let (columns, rows) = self.tiles.kept();
        let tiles = plane.width.div_ceil(columns) * convolved(channels).count();
        let pairs = plane.height.div_ceil(rows) * tiles.div_ceil(2);
        let samples = plane.width * plane.height * plane.channels;
        self.tiles.terms() * (pairs as f64) < (samples * terms) as f64
    }

    /// Makes the strip's rows from the picture.
    pub(super) fn convolve(
        &self,
        step: &Step,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let row_bytes = layout.row_bytes(strip.plane);
        let channels = &step.planes[strip.plane];
        let ((columns, rows), side) = (self.tiles.kept(), self.tiles.side());
        let (radius, above) = (self.mask.0 / 2, self.mask.1 / 2);
        let components: Vec<Component<'_>> = convolved(channels)
            .map(|(channel, c)| Component {
                source,
                plane: strip.plane,
                place: Place {
                    channels: channels.len(),
                    channel,
                    format: self.format,
                },
                border: step.border,
                c,
            })
            .collect();
        let across = plane.width.div_ceil(columns);
        let padded = plane.width + 2 * radius;
        let stride = spread(across * columns + 2 * radius);
        let component_rows = side * stride;
        let staged = aligned(&mut scratch.staged, components.len() * component_rows);
        let made = scratch
            .made
            .each_mut()
            .map(|made| aligned(made, rows * (side + ROWS_APART)));
        let [first_made, second_made] = made;
        let tiles: Vec<(usize, usize)> = (0..components.len())
            .flat_map(|component| (0..across).map(move |tile| (component, tile)))
            .collect();
        let partial = is_partial(channels, source);
        for first in (0..strip.rows).step_by(rows) {
            let count = rows.min(strip.rows - first);
            let y = strip.first_row + first;
            for (component, lines) in components.iter().zip(staged.chunks_exact_mut(component_rows)) {
                for (k, line) in lines.chunks_exact_mut(stride).enumerate() {
                    // Of what no result needs, too, it has to be known that it is no larger than a sample.
                    let needed = if k < count + 2 * above { padded } else { 0 };
                    let (line, beyond) = line.split_at_mut(needed);
                    beyond.fill(0);
                    if needed > 0 {
                        let y = (y + k) as i64 - above as i64;
                        component.load(y, radius, &mut scratch.under_alpha, line);
                    }
                }
            }
            for pair in tiles.chunks(2) {
                // A tile that has no other goes with itself.
                let both = [pair[0], pair[pair.len() - 1]];
                let input = |(component, tile): (usize, usize)| {
                    &staged[component * component_rows + tile * columns..][..component_rows - tile * columns]
                };
                self.tiles.convolve(
                    &mut scratch.memories,
                    Pair {
                        inputs: both.map(input),
                        stride,
                        outputs: [&mut *first_made, &mut *second_made],
                        add: both.map(|(component, _)| {
                            self.add(components[component].c.low, components[component].c.high)
                        }),
                        largest: f64::from(self.format.max_value()),
                    },
                );
                for (&(component, tile), made) in pair.iter().zip([&*first_made, &*second_made]) {
                    let x = tile * columns;
                    let width = columns.min(plane.width - x);
                    let start = x * channels.len() * self.format.bytes_per_sample();
                    for (k, row) in made.chunks_exact(side + ROWS_APART).take(count).enumerate() {
                        let out = &mut strip.bytes[(first + k) * plane.stride..][start..row_bytes];
                        store(components[component].place, &row[..width], out);
                    }
                }
            }
            if partial {
                for k in 0..count {
                    let row = &mut strip.bytes[(first + k) * plane.stride..][..row_bytes];
                    complete(channels, self.format, source, (strip.plane, y + k), row);
                }
            }
        }
    }

    /// What is added to a scaled sum, whose whole part is the sample then: half a unit of the sum more than the bias, to be as far from both wrong results.
    fn add(&self, low: i64, high: i64) -> f64 {
        (low as f64 + 0.5) / f64::from(self.shift).exp2() + high as f64
    }
}

/// The components that are convolved, and which they are.
fn convolved(channels: &[ChannelStep]) -> impl Iterator<Item = (usize, &Convolve)> {
    channels
        .iter()
        .enumerate()
        .filter_map(|(channel, what)| match what {
            ChannelStep::Convolve(c) => Some((channel, c)),
            ChannelStep::Copy | ChannelStep::Fill(_) => None,
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::portable;
    use super::super::strip::{Picture, strips};
    use super::*;
    use crate::filter::{Algorithm, Border, Chain, Filter, Mask, Plan, Planes};
    use crate::frame::Colour;

    const BORDERS: [Border; 6] = [
        Border::Replicate,
        Border::Zero,
        Border::Constant(90.0),
        Border::Reflect,
        Border::Mirror,
        Border::Wrap,
    ];

    /// A number below `n`, other ones each time.
    fn below(state: &mut u64, n: u64) -> u64 {
        *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (*state >> 33) % n
    }

    fn step(mask: Mask, border: Border, bias: f64, planes: &str, format: PixelFormat) -> Option<Step> {
        let chain = Chain {
            filters: vec![Filter {
                mask,
                bias,
                label: String::new(),
            }],
            border,
            planes: planes.parse::<Planes>().unwrap(),
            algorithm: Algorithm::Direct,
        };
        let plan = Plan::new(&chain, format, &Colour::default()).ok()?;
        plan.steps.into_iter().next()
    }

    /// The plain loops' result, and that of transforms by each set of instructions, in strips as for `threads` threads; false if no set takes the mask.
    fn agrees(step: &Step, layout: &Layout, bytes: &[u8], threads: usize) -> bool {
        let picture = Picture { layout, bytes };
        let source = Source { picture, alpha: None };
        let planes = 0..layout.planes().len();
        let convolved = |plane: usize| convolved(&step.planes[plane]).next().is_some();
        let mut expected = vec![0x5A; layout.size()];
        for mut strip in strips(step, layout, planes.clone(), &mut expected, 1, |_| 2) {
            portable::convolve(step, source, layout, &mut strip);
        }
        let mut scratch = Scratch::default();
        let mut compared = false;
        for set in InstructionSet::available() {
            let Some(by) = OverlapSave::new(step, layout.format(), set) else {
                continue;
            };
            let mut out = vec![0xA5; layout.size()];
            for mut strip in strips(step, layout, planes.clone(), &mut out, threads, |_| by.rows()) {
                if convolved(strip.plane) {
                    by.convolve(step, source, layout, &mut strip, &mut scratch);
                } else {
                    portable::convolve(step, source, layout, &mut strip);
                }
            }
            for (index, plane) in layout.planes().iter().enumerate() {
                for y in 0..plane.height {
                    let at = plane.offset + y * plane.stride;
                    let row = at..at + layout.row_bytes(index);
                    assert!(
                        out[row.clone()] == expected[row],
                        "{set}, {layout:?}, plane {index}, row {y}, {threads} threads: {step:?}"
                    );
                }
            }
            compared = true;
        }
        compared
    }

    #[test]
    fn sums_are_those_of_plain_loops_to_the_last_bit() {
        let mut state = 3;
        let mut compared = 0;
        let formats = [
            "gray", "yuv420p", "rgb24", "rgba", "nv12", "gray10le", "p010le", "gray16le", "rgb48le",
        ];
        let masks = [
            (9, 9),
            (25, 25),
            (31, 7),
            (63, 3),
            (3, 63),
            (63, 63),
            (41, 43),
            (17, 25),
        ];
        let sizes = [
            (1, 1),
            (7, 300),
            (261, 5),
            (129, 131),
            (208, 97),
            (105, 211),
            (400, 33),
        ];
        for round in 0..72 {
            let format: PixelFormat = formats[round % formats.len()].parse().unwrap();
            let (columns, rows) = masks[round / 3 % masks.len()];
            let (width, height) = sizes[round / 2 % sizes.len()];
            let most = [2, 9, 300][round % 3];
            let lowest = if round % 2 == 0 { 0 } else { -(most as i64 / 2) };
            let weights: Vec<i64> = (0..columns * rows)
                .map(|_| lowest + below(&mut state, most) as i64)
                .collect();
            let magnitude: i64 = weights.iter().map(|q| q.abs()).sum();
            // Unit gain, a large one, and one that is a power of two, by which sums lie between two levels.
            let divisor = [magnitude.max(1), 1 + magnitude / 20, 1 << 8][round % 3];
            let mask = Mask::from_integers(columns, rows, weights, divisor).unwrap();
            let bias = [0.0, 0.0, 40.5, -300.0][round % 4];
            let planes = if format.has_alpha() { "r" } else { "all" };
            let Some(step) = step(mask, BORDERS[round % 6], bias, planes, format) else {
                continue;
            };
            let layout = Layout::new(format, width, height, [1, 64][round % 2]).unwrap();
            let mut bytes: Vec<u8> = (0..layout.size()).map(|_| below(&mut state, 256) as u8).collect();
            if round % 5 == 0 {
                // Black and white, whose sums are the furthest apart.
                bytes.iter_mut().for_each(|b| *b = if *b < 128 { 0 } else { 255 });
            }
            if format.bytes_per_sample() == 2 {
                for sample in bytes.as_chunks_mut::<2>().0 {
                    let value = u16::from_le_bytes(*sample) >> (16 - format.depth());
                    *sample = (value << format.shift()).to_le_bytes();
                }
            }
            compared += usize::from(agrees(&step, &layout, &bytes, 1 + round % 3));
        }
        assert!(compared > 50, "{compared}");
    }

    #[test]
    fn the_largest_masks_that_quantisation_makes_are_exact() {
        // Up to 12 bits sums of magnitudes times the largest sample stay below 2^30, above, those alone below 2^22.
        for (largest, magnitude) in [
            (255.0, 1 << 22),
            (1023.0, 1 << 20),
            (4095.0, 1 << 18),
            (65535.0, 1 << 22),
        ] {
            let heaviest = vec![32639; magnitude / 32639 + 1];
            assert!(error(&heaviest, largest, 256) < 0.125, "{largest}");
        }
    }
}
