//! Tap tables of masks: for each tap its line, the element in the line, and packed pairs of weights. The
//! places of lines in memory are filled in for each row of the result (see `fir`).

use crate::engine::cpu::rows::sums::taps::{Fold, Group, Tap, Taps, pack};
use crate::engine::cpu::rows::words::sample::SampleEncoding;
use crate::filter::DirectKernel;

/// A tap of a line, before the line's place in memory is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineTap {
    /// Number of the line.
    pub(super) line: usize,
    /// Indices in the line of the element and of its mirror image.
    at: [usize; 2],
    /// Weights as in [`Tap`].
    pub(super) weights: [i32; 4],
}

/// A [`Group`] before the lines' places are known.
#[derive(Default)]
struct LineTaps {
    single: Vec<LineTap>,
    folded: Vec<LineTap>,
}

/// The taps of a direct mask or of a column, grouped as [`Taps`] are.
pub(super) struct TapTable {
    groups: [LineTaps; 3],
    fold: Fold,
}

/// The taps of a mask of `rows` rows whose weight in row j is `weight(j)`, at element `at` of each line.
pub(super) fn vertical(rows: usize, at: usize, mirror: usize, weight: impl Fn(usize) -> i32) -> Vec<LineTap> {
    let q = |j: usize| if j < rows { weight(j) } else { 0 };
    let place = |line: usize| {
        let above = if line == 0 { 0 } else { q(2 * line - 1) };
        let (this, next) = (q(2 * line), q(2 * line + 1));
        LineTap {
            line,
            at: [at, mirror],
            weights: [pack(this, next), pack(above, this), 0, 0],
        }
    };
    (0..=rows / 2)
        .map(place)
        .filter(|p| p.weights != [0; 4])
        .collect()
}

impl TapTable {
    /// A table of these taps, none of them folded.
    pub(super) fn single(single: Vec<LineTap>) -> TapTable {
        TapTable::two_rows(single, Vec::new(), Fold::Add)
    }

    fn two_rows(single: Vec<LineTap>, folded: Vec<LineTap>, fold: Fold) -> TapTable {
        let upper = LineTaps { single, folded };
        TapTable {
            groups: [upper, LineTaps::default(), LineTaps::default()],
            fold,
        }
    }

    /// The table of four rows: the lower two read the same taps as the upper two, one line further down.
    pub(super) fn four_rows(&self) -> TapTable {
        let [upper, ..] = &self.groups;
        let (single, folded) = (four_rows(&upper.single), four_rows(&upper.folded));
        let mut groups = single
            .into_iter()
            .zip(folded)
            .map(|(single, folded)| LineTaps { single, folded });
        TapTable {
            groups: std::array::from_fn(|_| groups.next().unwrap_or_default()),
            fold: self.fold,
        }
    }

    /// The taps for lines that begin at element `start(line)`, stored in `groups`.
    pub(super) fn taps<'a>(&self, groups: &'a mut [Group; 3], start: impl Fn(usize) -> usize) -> Taps<'a> {
        let place = |p: &LineTap| Tap {
            at: start(p.line) + p.at[0],
            mirror: start(p.line) + p.at[1],
            weights: p.weights,
        };
        for (taps, places) in groups.iter_mut().zip(&self.groups) {
            taps.single.clear();
            taps.single.extend(places.single.iter().map(place));
            taps.folded.clear();
            taps.folded.extend(places.folded.iter().map(place));
        }
        Taps {
            groups,
            fold: self.fold,
        }
    }

    /// True if the taps are one per line: those of a column without a line of zero weights.
    pub(super) fn are_lines(&self) -> bool {
        let [upper, ..] = &self.groups;
        upper.folded.is_empty() && upper.single.iter().enumerate().all(|(k, place)| place.line == k)
    }

    /// Number of folded taps.
    pub(super) fn folded(&self) -> usize {
        self.groups.iter().map(|g| g.folded.len()).sum()
    }

    /// Number of taps.
    pub(super) fn len(&self) -> usize {
        self.groups.iter().map(|g| g.single.len() + g.folded.len()).sum()
    }
}

/// Splits the taps of two rows, applied to four, into those of the upper two only, of all four, and of the
/// lower two only.
fn four_rows(two: &[LineTap]) -> [Vec<LineTap>; 3] {
    let twin = |line: usize, at| two.iter().find(|p| p.line == line && p.at == at);
    let [mut upper, mut all, mut lower] = [const { Vec::new() }; 3];
    for &p in two {
        let [first, second, ..] = p.weights;
        match p.line.checked_sub(1).and_then(|line| twin(line, p.at)) {
            Some(above) => all.push(LineTap {
                weights: [first, second, above.weights[0], above.weights[1]],
                ..p
            }),
            None => upper.push(p),
        }
        if twin(p.line + 1, p.at).is_none() {
            lower.push(LineTap {
                line: p.line + 1,
                weights: [0, 0, first, second],
                ..p
            });
        }
    }
    [upper, all, lower]
}

/// The taps of a direct mask. Masks of at most `unrolled` unfolded taps are not folded.
pub(super) fn direct(
    kernel: &DirectKernel,
    channels: usize,
    encoding: SampleEncoding,
    unrolled: usize,
) -> TapTable {
    let (w, h) = (kernel.width, kernel.height);
    let q = |j: usize, i: usize| kernel.weights[j * w + i];
    let mirrors = |sign: i32| (0..h).all(|j| (0..w / 2).all(|i| q(j, i) == sign * q(j, w - 1 - i)));
    // The sum of two biased samples needs 17 bits; with the other encodings it fits a signed word.
    let fold = match encoding {
        SampleEncoding::Biased => None,
        _ if w * (h / 2 + 1) <= unrolled => None,
        _ if mirrors(1) => Some(Fold::Add),
        _ if mirrors(-1) => Some(Fold::Subtract),
        _ => None,
    };
    let all = |columns: &mut dyn Iterator<Item = (usize, usize)>| {
        let column = |(i, mirror)| vertical(h, i * channels, mirror * channels, |j| q(j, i));
        let mut places: Vec<LineTap> = columns.flat_map(column).collect();
        // Sorted by lines: loads stay close together in the cache.
        places.sort_by_key(|p| p.line);
        places
    };
    match fold {
        None => TapTable::single(all(&mut (0..w).map(|i| (i, i)))),
        Some(fold) => TapTable::two_rows(
            all(&mut std::iter::once((w / 2, w / 2))),
            all(&mut (0..w / 2).map(|i| (i, w - 1 - i))),
            fold,
        ),
    }
}
