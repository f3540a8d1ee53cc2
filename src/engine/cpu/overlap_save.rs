//! Strips of rows by way of Fourier transforms (see `tiles`), for large direct masks: what they cost hardly depends on the number of weights.
//!
//! A square tile of the picture is transformed with all that the mask reaches from what becomes results, and the samples whose mask lies within the tile are kept
//! (*overlap-save*). In 32 bits transforms are twice as fast as in 64, but then a few results may be wrong: those are computed as docs/arithmetic.md says.
//! A pair of tiles with many of them, which only pictures with hardly a difference between their sums have, is transformed once more in 64 bits, where none can be.

use super::alpha::Source;
use super::component::Component;
use super::edges::{complete, is_partial};
use super::memory::{aligned, spread};
use super::mending::{Mender, Tile};
#[cfg(target_arch = "x86_64")]
use super::real_vectors::{Doubles4, Doubles8, Singles8, Singles16};
use super::reals::{Doubles2, Reals, Singles4};
use super::rows::{Place, store};
use super::simd::InstructionSet;
use super::strip::Strip;
use super::tiles::{Doubt, Memory, Pair, Spectrum, Tiles, error, norm, row_of_results, spectrum};
use crate::filter::{ChannelStep, Convolve, DirectKernel, Kernel, Step};
use crate::frame::{Layout, PixelFormat, Plane};

/// Weights of the smallest masks that it is tried for: smaller ones are faster by far in other ways.
const LEAST_WEIGHTS: usize = 81;

/// Points a side that tiles may have.
const SIDES: [usize; 3] = [64, 128, 256];

/// Results that may be doubted for transforms of 32 bits to be worth while, as a share of all: of white noise, and of a tile's vectors.
const MOST_DOUBTED: f64 = 0.03;
const MOST_VECTORS_DOUBTED: f64 = 0.5;

/// What a pair of tiles of each of [`SIDES`] takes, with staging its samples and writing its results, in multiply-adds of two samples and two weights each as
/// `pairs` does them (measured, docs/performance.md): in 32 bits, and in 64.
struct Terms {
    singles: [f64; 3],
    doubles: [f64; 3],
}

const TERMS_PLAIN: Terms = Terms {
    singles: [1.1e6, 5.6e6, 28e6],
    doubles: [1.6e6, 7.5e6, 28e6],
};
#[cfg(target_arch = "x86_64")]
const TERMS_AVX2: Terms = Terms {
    singles: [0.42e6, 2.3e6, 12e6],
    doubles: [0.7e6, 3.6e6, 22e6],
};
#[cfg(target_arch = "x86_64")]
const TERMS_AVX512: Terms = Terms {
    singles: [0.44e6, 2.4e6, 13e6],
    doubles: [0.78e6, 4.0e6, 24e6],
};
/// There multiply-adds take half as long.
#[cfg(target_arch = "x86_64")]
const TERMS_AVX512_VNNI: Terms = Terms {
    singles: [0.85e6, 4.2e6, 23e6],
    doubles: [1.0e6, 5.1e6, 31e6],
};

/// How much more the same takes where samples of a component do not lie side by side.
const INTERLEAVED: f64 = 1.35;

/// A mask's spectra.
pub(super) struct OverlapSave {
    /// In 32 bits, where few results are doubted, and what computes those.
    fast: Option<(Box<dyn Tiles>, Mender)>,
    /// In 64 bits.
    exact: Box<dyn Tiles>,
    /// What a pair of tiles takes.
    terms: f64,
    /// Columns and rows of the mask.
    mask: (usize, usize),
    shift: u32,
    format: PixelFormat,
}

/// The memory that a thread works in.
#[derive(Default)]
pub(super) struct Scratch {
    memory: Memory,
    /// The rows of all components that a row of tiles reads, with what lies beyond their ends.
    staged: Vec<u16>,
    /// A tile's samples of the result each.
    made: [Vec<u16>; 2],
    doubts: Vec<Doubt>,
    /// A row whose colours are weighted by alpha.
    under_alpha: Vec<u8>,
}

/// The share of results that are doubted in white noise of samples up to `largest`, in tiles of `side` points: those within the error on both sides of the border
/// between two levels.
fn doubted(kernel: &DirectKernel, largest: f64, side: usize) -> f64 {
    let samples = largest / 12_f64.sqrt() * std::f64::consts::SQRT_2 * side as f64;
    2.0 * error::<Singles4>(samples, norm(&kernel.weights) / f64::from(kernel.shift).exp2())
}

/// The side of tiles of which a result takes the least, and what a pair of them takes.
fn best_side(kernel: &DirectKernel, terms: [f64; 3]) -> (usize, f64) {
    let each = |&(side, terms): &(usize, f64)| {
        let kept = |reach: usize| (side + 1).saturating_sub(reach) as f64;
        terms / (kept(kernel.width) * kept(kernel.height))
    };
    let all = SIDES.into_iter().zip(terms);
    let best = all.min_by(|one, other| each(one).total_cmp(&each(other)));
    best.unwrap_or((SIDES[2], terms[2]))
}

/// Tiles of `N` points a side: in numbers of 32 bits, if those are wanted, and in numbers of 64.
fn tiles<S: Reals, D: Reals, const N: usize>(
    kernel: &DirectKernel,
    (singles, doubles): (S, D),
    is_fast: bool,
) -> (Option<Box<dyn Tiles>>, Box<dyn Tiles>) {
    let points = spectrum::<N>(kernel);
    let fast = || -> Box<dyn Tiles> { Box::new(Spectrum::<S, N>::new(singles, kernel, &points)) };
    let exact = Spectrum::<D, N>::new(doubles, kernel, &points);
    (is_fast.then(fast), Box::new(exact))
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
        #[cfg(target_arch = "x86_64")]
        match set {
            InstructionSet::Portable => {}
            InstructionSet::Avx2 | InstructionSet::Avx2Vnni => {
                if let (Some(singles), Some(doubles)) = (Singles8::detect(), Doubles4::detect()) {
                    return Some(OverlapSave::of(
                        kernel,
                        format,
                        set,
                        (singles, doubles),
                        &TERMS_AVX2,
                    ));
                }
            }
            InstructionSet::Avx512 | InstructionSet::Avx512Vnni => {
                let terms = match set {
                    InstructionSet::Avx512 => &TERMS_AVX512,
                    _ => &TERMS_AVX512_VNNI,
                };
                if let (Some(singles), Some(doubles)) = (Singles16::detect(), Doubles8::detect()) {
                    return Some(OverlapSave::of(kernel, format, set, (singles, doubles), terms));
                }
            }
        }
        Some(OverlapSave::of(
            kernel,
            format,
            set,
            (Singles4, Doubles2),
            &TERMS_PLAIN,
        ))
    }

    fn of<S: Reals, D: Reals>(
        kernel: &DirectKernel,
        format: PixelFormat,
        set: InstructionSet,
        reals: (S, D),
        terms: &Terms,
    ) -> OverlapSave {
        let (fast, slow) = (best_side(kernel, terms.singles), best_side(kernel, terms.doubles));
        // Sums that results are mended by have 32 bits up to 12-bit pixels.
        let is_fast =
            format.depth() <= 12 && doubted(kernel, f64::from(format.max_value()), fast.0) <= MOST_DOUBTED;
        let (side, terms) = if is_fast { fast } else { slow };
        let (fast, exact) = match side {
            64 => tiles::<S, D, 64>(kernel, reals, is_fast),
            128 => tiles::<S, D, 128>(kernel, reals, is_fast),
            _ => tiles::<S, D, 256>(kernel, reals, is_fast),
        };
        OverlapSave {
            fast: fast.map(|tiles| (tiles, Mender::new(kernel, format.max_value(), set))),
            exact,
            terms,
            mask: (kernel.width, kernel.height),
            shift: kernel.shift,
            format,
        }
    }

    /// Rows that are made at once.
    pub(super) fn rows(&self) -> usize {
        self.exact.kept().1
    }

    /// True if it is faster on a plane than a way that takes so many terms a sample.
    pub(super) fn is_faster(&self, plane: &Plane, channels: &[ChannelStep], terms: usize) -> bool {
        let (columns, rows) = self.exact.kept();
        let tiles = plane.width.div_ceil(columns) * convolved(channels).count();
        let pairs = plane.height.div_ceil(rows) * tiles.div_ceil(2);
        let samples = plane.width * plane.height * plane.channels;
        let apart = if plane.channels > 1 { INTERLEAVED } else { 1.0 };
        self.terms * apart * (pairs as f64) < (samples * terms) as f64
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
        let ((columns, rows), side) = (self.exact.kept(), self.exact.side());
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
        let stride = spread(across * columns + self.mask.0 - 1 + Mender::beyond());
        let component_rows = side * stride;
        let staged = aligned(&mut scratch.staged, components.len() * component_rows);
        let tiles: Vec<(usize, usize)> = (0..components.len())
            .flat_map(|component| (0..across).map(move |tile| (component, tile)))
            .collect();
        let partial = is_partial(channels, source);
        for first in (0..strip.rows).step_by(rows) {
            let count = rows.min(strip.rows - first);
            let y = strip.first_row + first;
            for (component, lines) in components.iter().zip(staged.chunks_exact_mut(component_rows)) {
                self.stage(component, y, count, lines, stride, &mut scratch.under_alpha);
            }
            for pair in tiles.chunks(2) {
                // A tile that has no other goes with itself.
                let both = [pair[0], pair[pair.len() - 1]];
                let inputs = both.map(|(component, tile)| {
                    &staged[component * component_rows + tile * columns..(component + 1) * component_rows]
                });
                let made = scratch
                    .made
                    .each_mut()
                    .map(|made| aligned(made, rows * row_of_results(side)));
                let c = both.map(|(component, _)| components[component].c);
                self.make(
                    inputs,
                    stride,
                    c,
                    made,
                    (&mut scratch.memory, &mut scratch.doubts),
                );
                for (k, &(component, tile)) in pair.iter().enumerate() {
                    let x = tile * columns;
                    let width = columns.min(plane.width - x);
                    let made = aligned(&mut scratch.made[k], rows * row_of_results(side));
                    if let Some((_, mender)) = &self.fast {
                        let tile = Tile {
                            number: k,
                            side,
                            wanted: (width, count),
                            samples: inputs[k],
                            stride,
                            made: &mut *made,
                        };
                        mender.mend(&scratch.doubts, components[component].c, tile);
                    }
                    let start = x * channels.len() * self.format.bytes_per_sample();
                    for (k, row) in made.chunks_exact(row_of_results(side)).take(count).enumerate() {
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

    /// Loads what `count` rows of results from row `y` on need of a component. What no result needs is filled with a sample, too, as it is transformed along.
    fn stage(
        &self,
        component: &Component<'_>,
        y: usize,
        count: usize,
        lines: &mut [u16],
        stride: usize,
        room: &mut Vec<u8>,
    ) {
        let (radius, above) = (self.mask.0 / 2, self.mask.1 / 2);
        let padded = component.source.picture.layout.planes()[component.plane].width + 2 * radius;
        let mut last = 0;
        for (k, line) in lines.chunks_exact_mut(stride).enumerate() {
            let needed = if k < count + 2 * above { padded } else { 0 };
            let (line, beyond) = line.split_at_mut(needed);
            if needed > 0 {
                component.load((y + k) as i64 - above as i64, radius, room, line);
                last = line[needed - 1];
            }
            beyond.fill(last);
        }
    }

    /// Convolves a pair of tiles; leaves in the doubts which results have to be computed yet.
    fn make(
        &self,
        inputs: [&[u16]; 2],
        stride: usize,
        c: [&Convolve; 2],
        outputs: [&mut [u16]; 2],
        (memory, doubts): (&mut Memory, &mut Vec<Doubt>),
    ) {
        // Half a unit of the sum more than the bias, to be as far from both wrong results.
        let add = c.map(|c| (c.low as f64 + 0.5) / f64::from(self.shift).exp2() + c.high as f64);
        let [first, second] = outputs;
        let mut convolve = |tiles: &dyn Tiles| {
            doubts.clear();
            let pair = Pair {
                inputs,
                stride,
                outputs: [&mut *first, &mut *second],
                add,
                largest: f64::from(self.format.max_value()),
                doubts: &mut *doubts,
            };
            tiles.convolve(&mut *memory, pair);
            let (columns, rows) = tiles.kept();
            let vectors = rows * columns.div_ceil(tiles.lanes());
            doubts.len() as f64 <= MOST_VECTORS_DOUBTED * vectors as f64
        };
        let is_made = self.fast.as_ref().is_some_and(|(tiles, _)| convolve(&**tiles));
        if !is_made {
            convolve(&*self.exact);
        }
    }
}

/// The components that are convolved, and which they are.
fn convolved(channels: &[ChannelStep]) -> impl Iterator<Item = (usize, &Convolve)> {
    let channels = channels.iter().enumerate();
    channels.filter_map(|(channel, what)| Some((channel, what.convolved()?)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::portable;
    use super::super::strip::{Picture, strips};
    use super::*;
    use crate::engine::verify::BORDERS;
    use crate::filter::{Algorithm, Border, Chain, Filter, Mask, Plan, Planes};
    use crate::frame::Colour;

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
    fn sums_that_all_lie_between_two_levels_are_made_in_64_bits() {
        let mut state = 5;
        let weights: Vec<i64> = (0..25 * 25).map(|_| 1 + below(&mut state, 99) as i64).collect();
        let total: i64 = weights.iter().sum();
        // Half an odd number everywhere; and, two weights taken from that, just below it, where 32 bits cannot tell.
        for missing in [0, 2] {
            let mut weights = weights.clone();
            weights[312] -= missing;
            let mask = Mask::from_integers(25, 25, weights, 2 * total).unwrap();
            let format = "gray".parse().unwrap();
            let step = step(mask, Border::Replicate, 0.0, "all", format).unwrap();
            let layout = Layout::new(format, 150, 140, 1).unwrap();
            for set in InstructionSet::available() {
                assert!(
                    OverlapSave::new(&step, format, set).unwrap().fast.is_some(),
                    "{set}"
                );
            }
            assert!(agrees(&step, &layout, &vec![77; layout.size()], 1));
        }
    }

    #[test]
    fn larger_masks_have_larger_tiles() {
        let side = |size: usize| {
            let weights: Vec<i64> = (0..size * size).map(|k| 1 + k as i64 % 7).collect();
            let total = weights.iter().sum();
            let mask = Mask::from_integers(size, size, weights, total).unwrap();
            let format = "gray".parse().unwrap();
            let step = step(mask, Border::Replicate, 0.0, "all", format).unwrap();
            let by = OverlapSave::new(&step, format, InstructionSet::Portable).unwrap();
            by.exact.side()
        };
        assert_eq!([9, 25, 63].map(side), SIDES);
    }

    #[test]
    fn blurs_of_bytes_are_transformed_in_32_bits_and_deep_samples_in_64() {
        let is_fast = |format: &str, edge: i64| {
            let format = format.parse().unwrap();
            let mut weights: Vec<i64> = (0..25 * 25).map(|k| 1 + k % 7).collect();
            weights[312] += edge;
            let total = weights.iter().sum();
            let mask = Mask::from_integers(25, 25, weights, total).unwrap();
            let step = step(mask, Border::Replicate, 0.0, "all", format).unwrap();
            OverlapSave::new(&step, format, InstructionSet::Portable)
                .unwrap()
                .fast
                .is_some()
        };
        assert!(is_fast("gray", 0) && is_fast("gray10le", 0));
        // A weight of nine tenths: sums differ by as much as samples do.
        assert!(!is_fast("gray", 20_000));
        assert!(!is_fast("gray12le", 0) && !is_fast("gray16le", 0));
    }
}
