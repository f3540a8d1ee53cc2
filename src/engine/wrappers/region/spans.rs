//! The samples of a plane's row that regions cover, as half-open ranges.
//!
//! A sample of a coarser plane belongs to a region if one of the pixels that it stands for does.

use super::rectangle::Area;
use std::ops::Range;

/// Ranges in order that do not touch.
pub(super) type Spans = Vec<Range<usize>>;

/// The samples that `areas` cover in row `y` of a plane whose samples stand for `1 << shift` pixels across
/// and down.
pub(super) fn covered<'a>(areas: impl Iterator<Item = &'a Area>, shift: (u8, u8), y: usize) -> Spans {
    let (across, down) = (1 << shift.0, 1 << shift.1);
    let rows = |area: &Area| area.y / down..area.bottom().div_ceil(down);
    let columns = |area: &Area| area.x / across..area.right().div_ceil(across);
    let mut spans: Spans = areas
        .filter(|area| rows(area).contains(&y))
        .map(columns)
        .collect();
    spans.sort_by_key(|span| span.start);
    let mut joined: Spans = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => joined.push(span),
        }
    }
    joined
}

/// The samples of `spans` that are not in `others`.
pub(super) fn without(spans: &Spans, others: &Spans) -> Spans {
    let mut left = Spans::new();
    for span in spans {
        let mut start = span.start;
        for other in others.iter().filter(|o| o.end > span.start && o.start < span.end) {
            if other.start > start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
        }
        if start < span.end {
            left.push(start..span.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init)]
    use super::*;

    #[test]
    fn spans_are_those_of_each_pixel() {
        let areas: Vec<Area> = [
            (0, 0, 3, 2),
            (2, 1, 4, 3),
            (9, 1, 1, 1),
            (6, 3, 2, 5),
            (5, 9, 4, 1),
        ]
        .map(|(x, y, width, height)| Area { x, y, width, height })
        .to_vec();
        for shift in [(0, 0), (1, 0), (1, 1), (2, 2)] {
            for y in 0..10_usize.div_ceil(1 << shift.1) {
                let inside = |areas: &[Area], x: usize| {
                    areas.iter().any(|a| {
                        (a.x..a.right()).any(|px| px >> shift.0 == x)
                            && (a.y..a.bottom()).any(|py| py >> shift.1 == y)
                    })
                };
                let spans = covered(areas.iter(), shift, y);
                let first = covered(areas[..2].iter(), shift, y);
                let rest = without(&spans, &first);
                for x in 0..12 {
                    let in_spans = |spans: &Spans| spans.iter().filter(|s| s.contains(&x)).count();
                    assert_eq!(
                        in_spans(&spans),
                        usize::from(inside(&areas, x)),
                        "{shift:?} {x} {y}"
                    );
                    let expected = inside(&areas, x) && !inside(&areas[..2], x);
                    assert_eq!(in_spans(&rest), usize::from(expected), "{shift:?} {x} {y}");
                }
            }
        }
        assert_eq!(without(&vec![2..9], &vec![0..3, 5..6, 8..12]), [3..5, 6..8]);
    }
}
