//! Overlap-save: filters a strip with a large direct mask, tile by tile (see `tile`). The cost hardly depends
//! on the number of weights.
//!
//! A square tile is transformed with the halo of its results, and the results whose mask lies within the tile
//! are kept (*overlap-save*). Transforms of 32 bits are twice as fast as those of 64, but a few results may
//! be wrong: these are recomputed by docs/arithmetic.md. A pair of tiles with many of them, which only
//! pictures with nearly constant sums have, is transformed again in 64 bits, where no result is wrong. Long
//! weights are an exception: they are transformed in 64 bits only, and uncertain results are recomputed
//! likewise.

use super::recheck::{Recheck, Tile};
use super::tile::{Pair, Spectra, Tiles, Uncertain, row_of_results};
use crate::engine::cpu::rows::plane_rows::fill_unconvolved_channels;
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::rows::words::component::{Component, ComponentLayout, store};
use crate::engine::cpu::simd::Vectors;
use crate::engine::cpu::simd::scratch::{self, aligned, spread};
use crate::filter::{Border, ChannelStep, Convolve, DirectKernel};
use crate::frame::{Layout, PixelFormat};

/// Largest share of vectors with uncertain results for which a pair of tiles is not transformed again in 64
/// bits.
const MAX_UNCERTAIN_VECTORS: f64 = 0.5;

/// Convolution with a mask over tiles of one side.
pub(super) struct OverlapSave {
    /// In 32 bits, if few results are uncertain.
    fast: Option<Box<dyn Tiles>>,
    /// In 64 bits.
    exact: Box<dyn Tiles>,
    /// Recomputes uncertain results, if there may be any.
    recheck: Option<Recheck>,
    /// Columns and rows of the mask.
    mask: (usize, usize),
    divisor: f64,
    format: PixelFormat,
}

/// Scratch memory of a thread.
#[derive(Default)]
struct TileScratch {
    /// The points of a tile, for each type of vectors.
    memory: scratch::Scratch,
    /// The rows of all components that a row of tiles reads, with their aprons.
    staged: Vec<u16>,
    /// The results of a pair of tiles.
    made: [Vec<u16>; 2],
    uncertain: Vec<Uncertain>,
}

impl OverlapSave {
    /// The convolution with a mask that has these spectra.
    pub(super) fn new(
        kernel: &DirectKernel,
        format: PixelFormat,
        vectors: Option<Vectors>,
        Spectra { fast, exact }: Spectra,
    ) -> OverlapSave {
        let is_rechecked = fast.is_some() || kernel.long;
        OverlapSave {
            fast,
            exact,
            recheck: is_rechecked.then(|| Recheck::new(kernel, format.max_value(), vectors)),
            mask: (kernel.width, kernel.height),
            divisor: kernel.division.divisor() as f64,
            format,
        }
    }

    /// Rows that are made at once.
    #[cfg(test)]
    pub(super) fn rows(&self) -> usize {
        self.exact.kept().1
    }

    /// Makes the rows of the strip from the picture; `channels` are the steps of the plane's components.
    pub(super) fn convolve(
        &self,
        (channels, border): (&[ChannelStep], Border),
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut scratch::Scratch,
    ) {
        let scratch: &mut TileScratch = scratch.of();
        let plane = layout.planes()[strip.plane];
        let row_bytes = layout.row_bytes(strip.plane);
        let ((columns, rows), side) = (self.exact.kept(), self.exact.side());
        let components: Vec<Component<'_>> = convolved(channels)
            .map(|(channel, c)| Component {
                picture,
                plane: strip.plane,
                place: ComponentLayout {
                    channels: channels.len(),
                    channel,
                    format: self.format,
                },
                border,
                c,
            })
            .collect();
        let across = plane.width.div_ceil(columns);
        let stride = spread(across * columns + self.mask.0 - 1 + Recheck::beyond());
        let component_rows = side * stride;
        let staged = aligned(&mut scratch.staged, components.len() * component_rows);
        let tiles: Vec<(usize, usize)> = (0..components.len())
            .flat_map(|component| (0..across).map(move |tile| (component, tile)))
            .collect();
        for first in (0..strip.rows).step_by(rows) {
            let count = rows.min(strip.rows - first);
            let y = strip.first_row + first;
            for (component, lines) in components.iter().zip(staged.chunks_exact_mut(component_rows)) {
                self.stage(component, y, count, lines, stride);
            }
            for pair in tiles.chunks(2) {
                // A tile without a partner is paired with itself.
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
                    (&mut scratch.memory, &mut scratch.uncertain),
                );
                for (k, &(component, tile)) in pair.iter().enumerate() {
                    let x = tile * columns;
                    let tile = Tile {
                        number: k,
                        side,
                        wanted: (columns.min(plane.width - x), count),
                        samples: inputs[k],
                        stride,
                        made: aligned(&mut scratch.made[k], rows * row_of_results(side)),
                    };
                    let start = x * channels.len() * self.format.bytes_per_sample();
                    let out = &mut strip.bytes[first * plane.stride + start..];
                    self.write_tile(
                        &components[component],
                        &scratch.uncertain,
                        tile,
                        (out, plane.stride),
                    );
                }
            }
            for k in 0..count {
                let row = &mut strip.bytes[(first + k) * plane.stride..][..row_bytes];
                fill_unconvolved_channels(channels, picture, (strip.plane, y + k), row);
            }
        }
    }

    /// Recomputes the uncertain results of a tile, and writes its wanted results to `out`, whose rows are
    /// `stride` bytes apart.
    fn write_tile(
        &self,
        component: &Component<'_>,
        uncertain: &[Uncertain],
        tile: Tile<'_>,
        (out, stride): (&mut [u8], usize),
    ) {
        let ((width, rows), side) = (tile.wanted, tile.side);
        let made = tile.made;
        if let Some(recheck) = &self.recheck {
            let tile = Tile {
                made: &mut *made,
                ..tile
            };
            recheck.recheck(uncertain, component.c, tile);
        }
        for (row, out) in made
            .chunks_exact(row_of_results(side))
            .zip(out.chunks_mut(stride))
            .take(rows)
        {
            store(component.place, &row[..width], out);
        }
    }

    /// Loads the input of `count` rows of results from row `y` on, for one component. The rest of the tiles
    /// is filled with a sample, since it is transformed, too.
    fn stage(&self, component: &Component<'_>, y: usize, count: usize, lines: &mut [u16], stride: usize) {
        let (radius, above) = (self.mask.0 / 2, self.mask.1 / 2);
        let padded = component.picture.layout.planes()[component.plane].width + 2 * radius;
        let mut last = 0;
        for (k, line) in lines.chunks_exact_mut(stride).enumerate() {
            let needed = if k < count + 2 * above { padded } else { 0 };
            let (line, beyond) = line.split_at_mut(needed);
            if needed > 0 {
                component.load((y + k) as i64 - above as i64, radius, line);
                last = line[needed - 1];
            }
            beyond.fill(last);
        }
    }

    /// Convolves a pair of tiles; `uncertain` receives the results that have to be recomputed.
    fn make(
        &self,
        inputs: [&[u16]; 2],
        stride: usize,
        c: [&Convolve; 2],
        outputs: [&mut [u16]; 2],
        (memory, uncertain): (&mut scratch::Scratch, &mut Vec<Uncertain>),
    ) {
        // Sums are integers: half a unit more than the bias keeps them as far as possible from both
        // neighbouring results.
        let add = c.map(|c| (c.low as f64 + 0.5) / self.divisor + c.high as f64);
        let [first, second] = outputs;
        let mut convolve = |tiles: &dyn Tiles| {
            uncertain.clear();
            let pair = Pair {
                inputs,
                stride,
                outputs: [&mut *first, &mut *second],
                add,
                largest: f64::from(self.format.max_value()),
                uncertain: &mut *uncertain,
            };
            tiles.convolve(&mut *memory, pair);
            let (columns, rows) = tiles.kept();
            let vectors = rows * columns.div_ceil(tiles.lanes());
            uncertain.len() as f64 <= MAX_UNCERTAIN_VECTORS * vectors as f64
        };
        let is_made = self.fast.as_ref().is_some_and(|tiles| convolve(&**tiles));
        if !is_made {
            convolve(&*self.exact);
        }
    }
}

/// The components that are convolved, with their indices.
pub(super) fn convolved(channels: &[ChannelStep]) -> impl Iterator<Item = (usize, &Convolve)> {
    let channels = channels.iter().enumerate();
    channels.filter_map(|(channel, what)| Some((channel, what.convolved()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::algorithms::fft::tests::{fft, step};
    use crate::engine::cpu::algorithms::scalar;
    use crate::engine::cpu::rows::strip::{StripCount, strips};
    use crate::engine::cpu::simd::InstructionSet;
    use crate::filter::{Border, Mask, Step};

    /// A number below `n`, other ones each time.
    fn below(state: &mut u64, n: u64) -> u64 {
        *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (*state >> 33) % n
    }

    /// The plain loops' result, and that of transforms by each set of instructions, in strips as for
    /// `threads` threads; false if no set takes the mask.
    fn agrees(step: &Step, layout: &Layout, bytes: &[u8], threads: usize) -> bool {
        let picture = Picture { layout, bytes };
        let convolved = |plane: usize| convolved(&step.planes[plane]).next().is_some();
        let mut expected = vec![0x5A; layout.size()];
        for mut strip in strips(StripCount::of(step, 1), layout, &mut expected, |_| 2) {
            scalar::convolve(step, picture, layout, &mut strip);
        }
        let mut scratch = scratch::Scratch::default();
        let mut compared = false;
        for set in InstructionSet::available() {
            let Some(fft) = fft(step, layout.format(), set) else {
                continue;
            };
            // Tiles of all sides that keep a fair share of what they transform.
            for by in fft.all().filter(|by| by.rows() > 16) {
                let mut out = vec![0xA5; layout.size()];
                for mut strip in strips(StripCount::of(step, threads), layout, &mut out, |_| by.rows()) {
                    if convolved(strip.plane) {
                        let job = (&step.planes[strip.plane][..], step.border);
                        by.convolve(job, picture, layout, &mut strip, &mut scratch);
                    } else {
                        scalar::convolve(step, picture, layout, &mut strip);
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
            let Some(step) = step(mask, Border::ALL[round % Border::ALL.len()], bias, planes, format) else {
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
    fn sums_of_long_weights_are_those_of_plain_loops() {
        let mut state = 7;
        let sizes = [(1, 1), (150, 7), (131, 129), (70, 200)];
        for round in 0..12 {
            let format = ["gray12le", "gray16le", "rgb48le"][round % 3].parse().unwrap();
            let (columns, rows) = [(25, 25), (9, 63), (63, 9), (33, 31)][round / 3 % 4];
            // Some weights are a thousandth of others, so that two bytes are too coarse.
            let mut weights: Vec<f64> = (0..columns * rows)
                .map(|_| (1 + below(&mut state, 1000)) as f64 - [0.0, 300.0][round % 2])
                .collect();
            let total: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= total);
            let mask = Mask::new(columns, rows, weights).unwrap();
            let step = step(mask, Border::ALL[round % Border::ALL.len()], 0.0, "all", format).unwrap();
            assert!(step.kernel.is_long(), "{round}");
            let (width, height) = sizes[round % 4];
            let layout = Layout::new(format, width, height, 1).unwrap();
            let largest = format.max_value() as u16;
            let bytes: Vec<u8> = (0..layout.size() / 2)
                .flat_map(|_| (below(&mut state, 1 + u64::from(largest)) as u16).to_le_bytes())
                .collect();
            assert!(agrees(&step, &layout, &bytes, 1 + round % 3), "{round}");
        }
    }

    #[test]
    fn sums_that_all_lie_between_two_levels_are_made_in_64_bits() {
        let mut state = 5;
        let weights: Vec<i64> = (0..25 * 25).map(|_| 1 + below(&mut state, 99) as i64).collect();
        let total: i64 = weights.iter().sum();
        // Half an odd number everywhere; and, two weights taken from that, just below it, where 32 bits
        // cannot tell.
        for missing in [0, 2] {
            let mut weights = weights.clone();
            weights[312] -= missing;
            let mask = Mask::from_integers(25, 25, weights, 2 * total).unwrap();
            let format = "gray".parse().unwrap();
            let step = step(mask, Border::Replicate, 0.0, "all", format).unwrap();
            let layout = Layout::new(format, 150, 140, 1).unwrap();
            for set in InstructionSet::available() {
                let fft = fft(&step, format, set).unwrap();
                assert!(fft.all().all(|by| by.fast.is_some()), "{set}");
            }
            assert!(agrees(&step, &layout, &vec![77; layout.size()], 1));
        }
    }
}
