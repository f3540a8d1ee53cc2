//! Pictures of at most 256 colours: exact if the picture has no more, else the nearest colours, with the
//! error of each pixel diffused to its neighbours (Sierra's small filter), so that gradients stay smooth to
//! the eye.
//!
//! The colours are found by splitting boxes of colours where that reduces the squared error most, then by
//! moving each colour to the mean of its pixels.

use std::collections::HashMap;

/// The most colours of a palette.
pub(crate) const MAX_COLOURS: usize = 256;

/// Alpha from which on a pixel is opaque.
const OPAQUE_FROM: u8 = 128;

/// Colours that are distinguished before they are split into boxes.
const MAX_BINS: usize = 1 << 13;

/// Bits of a component that distinguish colours if there are more than [`MAX_BINS`] of them.
const COUNTED_BITS: u32 = 6;

/// Bits of a component that select a cell in the search for the nearest colour.
const CELL_BITS: u32 = 5;

/// How often colours move to the middle of their pixels.
const ROUNDS: usize = 3;

/// Red, green and blue.
pub(crate) type Colour3 = [u8; 3];

/// A picture as indices into its palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The colours; the first stands for transparent pixels if `transparent`.
    pub palette: Vec<Colour3>,
    /// One a pixel, row by row.
    pub indices: Vec<u8>,
    /// Index 0 is kept for transparent pixels.
    pub transparent: bool,
    /// Every opaque pixel has its own colour.
    pub exact: bool,
}

/// Brings a picture of RGBA pixels, `width` to a row, to a palette. Index 0 is kept for transparent pixels,
/// unless the picture has 256 colours and no transparent pixel; `keep_transparent` keeps it then, too.
pub fn indexed(rgba: &[u8], width: usize, keep_transparent: bool) -> Indexed {
    let pixels = rgba.chunks_exact(4);
    let has_hole = pixels.clone().any(|p| p[3] < OPAQUE_FROM);
    let places = MAX_COLOURS - usize::from(has_hole || keep_transparent);
    if let Some(colours) = few_colours(rgba, places) {
        let transparent = colours.len() < MAX_COLOURS;
        let first = u8::from(transparent);
        let mut palette = vec![[0; 3]; usize::from(first)];
        palette.extend(&colours);
        let index: HashMap<Colour3, u8> = colours.iter().copied().zip(first..=u8::MAX).collect();
        let mut last = ([0; 3], index.get(&[0; 3]).copied().unwrap_or(0));
        let indices = pixels
            .map(|p| {
                if p[3] < OPAQUE_FROM {
                    return 0;
                }
                if p[..3] != last.0 {
                    last = ([p[0], p[1], p[2]], index[&p[..3]]);
                }
                last.1
            })
            .collect();
        return Indexed {
            palette,
            indices,
            transparent,
            exact: true,
        };
    }
    let colours = best_colours(rgba, MAX_COLOURS - 1);
    let indices = diffuse(rgba, width, &colours);
    let mut palette = vec![[0; 3]];
    palette.extend(colours);
    Indexed {
        palette,
        indices,
        transparent: true,
        exact: false,
    }
}

/// The colours of opaque pixels in the order of their first pixel, if there are at most `most`.
fn few_colours(rgba: &[u8], most: usize) -> Option<Vec<Colour3>> {
    let mut seen = std::collections::HashSet::new();
    let mut colours = Vec::new();
    let mut last = None;
    for p in rgba.chunks_exact(4).filter(|p| p[3] >= OPAQUE_FROM) {
        let colour = [p[0], p[1], p[2]];
        if last == Some(colour) {
            continue;
        }
        last = Some(colour);
        if seen.insert(colour) {
            if colours.len() == most {
                return None;
            }
            colours.push(colour);
        }
    }
    Some(colours)
}

/// Pixels of nearly one colour: how many, and their mean.
#[derive(Debug, Clone, Copy)]
struct Bin {
    weight: f64,
    mean: [f64; 3],
}

/// A run of bins, and their squared error around their mean.
struct ColourBox {
    bins: Vec<Bin>,
    error: f64,
}

/// Sums over bins, from which mean and squared error follow.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    weight: f64,
    first: [f64; 3],
    second: f64,
}

impl Sums {
    fn add(&mut self, bin: &Bin) {
        self.weight += bin.weight;
        for (sum, v) in self.first.iter_mut().zip(bin.mean) {
            *sum += bin.weight * v;
            self.second += bin.weight * v * v;
        }
    }

    fn error(&self) -> f64 {
        if self.weight == 0.0 {
            return 0.0;
        }
        self.second - self.first.iter().map(|s| s * s).sum::<f64>() / self.weight
    }

    fn mean(&self) -> [f64; 3] {
        self.first.map(|s| s / self.weight.max(1.0))
    }
}

impl ColourBox {
    fn new(bins: Vec<Bin>) -> ColourBox {
        let error = sums(&bins).error();
        ColourBox { bins, error }
    }

    /// Splits across the axis along which the colours differ most, where the two halves' errors are least.
    fn split(mut self) -> Result<[ColourBox; 2], ColourBox> {
        let all = sums(&self.bins);
        let mean = all.mean();
        let spread = |axis: usize| -> f64 {
            let differences = self.bins.iter().map(|b| (b.mean[axis] - mean[axis], b.weight));
            differences.map(|(d, weight)| weight * d * d).sum()
        };
        let axis = (0..3)
            .max_by(|&a, &b| spread(a).total_cmp(&spread(b)))
            .unwrap_or(0);
        self.bins.sort_by(|a, b| a.mean[axis].total_cmp(&b.mean[axis]));
        let mut low = Sums::default();
        let mut best = None;
        for (at, bin) in self.bins.iter().enumerate().take(self.bins.len() - 1) {
            low.add(bin);
            let high = Sums {
                weight: all.weight - low.weight,
                first: std::array::from_fn(|i| all.first[i] - low.first[i]),
                second: all.second - low.second,
            };
            let error = low.error() + high.error();
            if best.is_none_or(|(least, _)| error < least) {
                best = Some((error, at + 1));
            }
        }
        let Some((_, at)) = best else { return Err(self) };
        let high = self.bins.split_off(at);
        Ok([ColourBox::new(self.bins), ColourBox::new(high)])
    }
}

fn sums(bins: &[Bin]) -> Sums {
    let mut sums = Sums::default();
    for bin in bins {
        sums.add(bin);
    }
    sums
}

/// At most `most` colours that stand for the opaque pixels.
fn best_colours(rgba: &[u8], most: usize) -> Vec<Colour3> {
    let bins = count(rgba);
    let mut boxes = vec![ColourBox::new(bins.clone())];
    // Boxes that hold one bin only.
    let mut done = Vec::new();
    while !boxes.is_empty() && boxes.len() + done.len() < most {
        let worst = (0..boxes.len())
            .max_by(|&a, &b| boxes[a].error.total_cmp(&boxes[b].error))
            .unwrap_or(0);
        match boxes.swap_remove(worst).split() {
            Ok(halves) => boxes.extend(halves),
            Err(whole) => done.push(whole),
        }
    }
    done.append(&mut boxes);
    let mut colours: Vec<Colour3> = done.iter().map(|b| rounded(sums(&b.bins).mean())).collect();
    for _ in 0..ROUNDS {
        let mut nearest = Nearest::new(&colours);
        let mut moved = vec![Sums::default(); colours.len()];
        for bin in &bins {
            let at = nearest.find(rounded(bin.mean).map(i32::from));
            moved[usize::from(at)].add(bin);
        }
        for (colour, sums) in colours.iter_mut().zip(&moved) {
            if sums.weight > 0.0 {
                *colour = rounded(sums.mean());
            }
        }
    }
    colours.sort_unstable();
    colours.dedup();
    colours
}

fn rounded(colour: [f64; 3]) -> Colour3 {
    colour.map(|v| v.round().clamp(0.0, 255.0) as u8)
}

/// The opaque pixels by colour, or by the higher bits of their colours if there are more than [`MAX_BINS`].
fn count(rgba: &[u8]) -> Vec<Bin> {
    let opaque = || rgba.chunks_exact(4).filter(|p| p[3] >= OPAQUE_FROM);
    let packed = |p: &[u8]| u32::from_be_bytes([0, p[0], p[1], p[2]]);
    // A bit for each colour there is.
    let mut seen = vec![0_u64; 1 << 18];
    let mut distinct = 0;
    for colour in opaque().map(packed) {
        let (word, bit) = (&mut seen[colour as usize / 64], 1 << (colour % 64));
        distinct += usize::from(*word & bit == 0);
        *word |= bit;
    }
    if distinct <= MAX_BINS {
        let mut colours: Vec<u32> = opaque().map(packed).collect();
        colours.sort_unstable();
        let bin = |same: &[u32]| {
            let [_, red, green, blue] = same[0].to_be_bytes();
            Bin {
                weight: same.len() as f64,
                mean: [red, green, blue].map(f64::from),
            }
        };
        return colours.chunk_by(|a, b| a == b).map(bin).collect();
    }
    let mut counts = vec![[0_u64; 4]; 1 << (3 * COUNTED_BITS)];
    for p in opaque() {
        let high = |v: u8| usize::from(v >> (8 - COUNTED_BITS));
        let key = (high(p[0]) << COUNTED_BITS | high(p[1])) << COUNTED_BITS | high(p[2]);
        let [weight, red, green, blue] = &mut counts[key];
        *weight += 1;
        *red += u64::from(p[0]);
        *green += u64::from(p[1]);
        *blue += u64::from(p[2]);
    }
    let filled = counts.iter().filter(|count| count[0] > 0);
    filled
        .map(|&[weight, red, green, blue]| Bin {
            weight: weight as f64,
            mean: [red, green, blue].map(|sum| sum as f64 / weight as f64),
        })
        .collect()
}

/// Finds the nearest of some colours. Each cell of the colour cube keeps the colours that can be the nearest
/// to one of its points.
struct Nearest {
    colours: Vec<[i32; 3]>,
    cells: Vec<Option<Box<[u8]>>>,
}

impl Nearest {
    fn new(colours: &[Colour3]) -> Nearest {
        Nearest {
            colours: colours.iter().map(|c| c.map(i32::from)).collect(),
            cells: vec![None; 1 << (3 * CELL_BITS)],
        }
    }

    /// Index of the colour nearest to `point`, whose components are 0 to 255; the first of several.
    fn find(&mut self, point: [i32; 3]) -> u8 {
        let corner = point.map(|v| v >> (8 - CELL_BITS));
        let key = corner
            .iter()
            .fold(0_usize, |key, &v| key << CELL_BITS | v as usize);
        let colours = &self.colours;
        let cell = self.cells[key].get_or_insert_with(|| candidates(colours, corner));
        let distance = |index: u8| -> i32 {
            let colour = colours[usize::from(index)];
            (0..3).map(|i| (colour[i] - point[i]).pow(2)).sum()
        };
        cell.iter().copied().min_by_key(|&i| distance(i)).unwrap_or(0)
    }
}

/// The colours that can be nearest to a point of the cell: those no farther from its nearest point than some
/// colour from its farthest.
fn candidates(colours: &[[i32; 3]], corner: [i32; 3]) -> Box<[u8]> {
    let bounds = |colour: &[i32; 3]| -> (i32, i32) {
        let mut sums = (0, 0);
        for (&v, corner) in colour.iter().zip(corner) {
            let low = corner << (8 - CELL_BITS);
            let high = low + (1 << (8 - CELL_BITS)) - 1;
            let least = (low - v).max(v - high).max(0);
            let most = (v - low).abs().max((v - high).abs());
            sums = (sums.0 + least * least, sums.1 + most * most);
        }
        sums
    };
    let bounds: Vec<(i32, i32)> = colours.iter().map(bounds).collect();
    let reach = bounds.iter().map(|b| b.1).min().unwrap_or(0);
    (0..=u8::MAX)
        .zip(&bounds)
        .filter(|(_, (least, _))| *least <= reach)
        .map(|(index, _)| index)
        .collect()
}

/// Indices of `colours`, counted from 1, for opaque pixels, and 0 for the others. The error of a pixel is
/// passed on to the pixels to the right (a half), below, and below on the left (a quarter each), in whole
/// levels: a smaller error is invisible and would only add noise.
fn diffuse(rgba: &[u8], width: usize, colours: &[Colour3]) -> Vec<u8> {
    let mut nearest = Nearest::new(colours);
    let mut indices = Vec::with_capacity(rgba.len() / 4);
    // With a place more on the left.
    let (mut here, mut below) = (vec![[0_i32; 3]; width + 2], vec![[0_i32; 3]; width + 2]);
    for row in rgba.chunks_exact(4 * width) {
        for (x, p) in row.chunks_exact(4).enumerate() {
            if p[3] < OPAQUE_FROM {
                indices.push(0);
                continue;
            }
            let wanted: [i32; 3] = std::array::from_fn(|i| (i32::from(p[i]) + here[x + 1][i]).clamp(0, 255));
            let index = nearest.find(wanted);
            indices.push(index + 1);
            for (i, (wanted, got)) in wanted.into_iter().zip(colours[usize::from(index)]).enumerate() {
                let error = wanted - i32::from(got);
                // Divided towards zero, so that errors of both signs count equally.
                here[x + 2][i] += error / 2;
                below[x][i] += error / 4;
                below[x + 1][i] += error / 4;
            }
        }
        std::mem::swap(&mut here, &mut below);
        below.fill([0; 3]);
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: usize, height: usize, pixel: impl Fn(usize, usize) -> [u8; 4]) -> Vec<u8> {
        (0..width * height)
            .flat_map(|at| pixel(at % width, at / width))
            .collect()
    }

    fn shown(indexed: &Indexed) -> Vec<[u8; 4]> {
        let pixel = |&index: &u8| match (index, indexed.transparent) {
            (0, true) => [0; 4],
            _ => {
                let [r, g, b] = indexed.palette[usize::from(index)];
                [r, g, b, 255]
            }
        };
        indexed.indices.iter().map(pixel).collect()
    }

    #[test]
    fn few_colours_are_kept_exactly() {
        // 255 colours and holes; alpha is cut at one half.
        let alpha = |x| [0, 1, 127, 128, 254, 255][x % 6];
        let some = picture(17, 15, |x, y| [(x + 17 * y) as u8, 7, 200, alpha(x)]);
        let result = indexed(&some, 17, false);
        assert!(result.exact && result.transparent && result.palette.len() <= MAX_COLOURS);
        for (got, want) in shown(&result).iter().zip(some.chunks_exact(4)) {
            let want = match want[3] {
                128.. => [want[0], want[1], want[2], 255],
                _ => [0; 4],
            };
            assert_eq!(*got, want);
        }
        // 256 colours leave no place for holes, unless one must be kept.
        let full = picture(16, 16, |x, y| [(x + 16 * y) as u8, 0, 0, 255]);
        let result = indexed(&full, 16, false);
        assert!(result.exact && !result.transparent && result.palette.len() == MAX_COLOURS);
        let kept = indexed(&full, 16, true);
        assert!(!kept.exact && kept.transparent && kept.palette.len() <= MAX_COLOURS);
        assert!(kept.indices.iter().all(|&i| i > 0));
    }

    #[test]
    fn many_colours_come_near_and_keep_their_mean() {
        let gradient = picture(64, 64, |x, y| {
            [4 * x as u8, 4 * y as u8, (2 * (x + y)) as u8, 255]
        });
        let result = indexed(&gradient, 64, false);
        assert!(!result.exact && result.palette.len() <= MAX_COLOURS);
        let mut square = 0.0;
        let mut sum = [0_i64; 3];
        for (got, want) in shown(&result).iter().zip(gradient.chunks_exact(4)) {
            for i in 0..3 {
                let difference = i64::from(got[i]) - i64::from(want[i]);
                square += (difference * difference) as f64;
                sum[i] += difference;
            }
        }
        let pixels = 64.0 * 64.0;
        assert!(square / (3.0 * pixels) < 64.0, "{}", square / (3.0 * pixels));
        assert!(sum.iter().all(|&s| (s as f64 / pixels).abs() < 0.5), "{sum:?}");
    }

    #[test]
    fn the_nearest_colour_is_found() {
        let colours: Vec<Colour3> = (0..200_u32)
            .map(|n| [n * 37 % 256, n * 91 % 256, n * n % 256].map(|v| v as u8))
            .collect();
        let mut nearest = Nearest::new(&colours);
        for n in 0..2000_i32 {
            let point = [n * 13 % 256, n * 29 % 256, n * 101 % 256];
            let distance = |c: &Colour3| -> i32 { (0..3).map(|i| (i32::from(c[i]) - point[i]).pow(2)).sum() };
            let found = distance(&colours[usize::from(nearest.find(point))]);
            assert_eq!(Some(found), colours.iter().map(distance).min());
        }
    }

    #[test]
    fn opaque_pixels_never_become_transparent() {
        let noise = picture(40, 30, |x, y| {
            let v = (x * 7919 + y * 104_729) as u32;
            [
                v as u8,
                (v >> 3) as u8,
                (v >> 5) as u8,
                if x < 20 { 127 } else { 128 },
            ]
        });
        let result = indexed(&noise, 40, false);
        for (at, &index) in result.indices.iter().enumerate() {
            assert_eq!(index == 0, at % 40 < 20);
        }
    }
}
