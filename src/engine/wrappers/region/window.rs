//! Windows: the parts of a picture that are cut out, so that a region can be filtered by itself.
//!
//! ```text
//!  picture                               the window: the region and a halo as wide as the chain's masks
//!  ┌───────────────────────────────┐     reach, so that the filter sees the real pixels around the region
//!  │    ┌ ─ ─ ─ ─ ─ ─ ┐            │
//!  │       ┌───────┐      ┌ ─ ─ ─ ─┤     At the picture's edge the window ends there, too, and the border
//!  │    │  │region │  │   │    ┌───┤     acts as it does in the whole picture. What a border puts
//!  │       └───────┘           │   │     elsewhere reaches the halo and no further.
//!  │    └ ─ ─ ─ ─ ─ ─ ┘   └ ─ ─└───┤
//!  └───────────────────────────────┘     Dashed: two windows of one size, the second shifted inwards.
//! ```
//!
//! A window keeps its size while its region moves, because engines prepare themselves for a size. It begins
//! where all planes have a sample and pyramids a low pixel, which lies where it does in the whole picture.

use super::rectangle::Area;
use crate::filter::{Border, Chain, Filter, Mask, Response, widest_pyramid_grid};
use crate::frame::PixelFormat;

/// Sizes of windows of regions that change their size are multiples of this number of pixels, so that most
/// are of one size.
const STEP: usize = 64;

/// The radius of a chain: how far it reads around a sample, in samples of each plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Radius {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// True if the border wraps: outside the picture is its opposite edge.
    pub(super) wraps: bool,
    /// Windows begin at a multiple of this number of samples, a power of two.
    pub(super) grid: usize,
}

impl Radius {
    pub(super) fn of(chain: &Chain) -> Radius {
        let none = Radius {
            columns: 0,
            rows: 0,
            wraps: chain.border == Border::Wrap,
            grid: 1,
        };
        chain.filters.iter().fold(none, Radius::and)
    }

    /// The radius with another filter behind it.
    fn and(self, filter: &Filter) -> Radius {
        let reach = |size: fn(&Mask) -> usize| filter.masks().map(size).max().unwrap_or(1) / 2;
        let (columns, rows, grid) = match filter.response {
            Response::WideGaussian { sigma } => {
                let grid = widest_pyramid_grid(sigma);
                (grid.radius(), grid.radius(), grid.step)
            }
            _ => (reach(Mask::width), reach(Mask::height), 1),
        };
        Radius {
            columns: self.columns + columns,
            rows: self.rows + rows,
            grid: self.grid.max(grid),
            ..self
        }
    }
}

/// The picture and the chain that windows are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Pixels that one sample of the coarsest plane stands for, as a power of two, across and down.
    shift: (u8, u8),
    radius: Radius,
}

/// A region of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// The part of the region in the picture.
    pub(super) area: Area,
    /// Size of the whole region, in pixels.
    pub(super) size: (usize, usize),
    /// True if the region moves.
    pub(super) moves: bool,
    /// True if the region changes its size.
    pub(super) grows: bool,
}

impl Member {
    /// A region that stays where it is.
    pub(super) fn fixed(area: Area) -> Member {
        Member {
            area,
            size: (area.width, area.height),
            moves: false,
            grows: false,
        }
    }
}

/// What the window of one region, or of several together, depends on.
#[derive(Clone, Copy)]
struct Joint {
    /// The smallest area that holds all of them.
    hull: Area,
    /// Size of the region, or of the hull of several, in pixels.
    size: (usize, usize),
    /// True if the window's size is a multiple of [`STEP`].
    coarse: bool,
    /// True if a region moves or changes its size.
    changes: bool,
}

impl Joint {
    fn of(member: &Member) -> Joint {
        Joint {
            hull: member.area,
            size: member.size,
            coarse: member.grows,
            changes: member.moves || member.grows,
        }
    }

    fn with(&self, other: &Joint) -> Joint {
        let hull = self.hull.hull(&other.hull);
        let changes = self.changes || other.changes;
        Joint {
            hull,
            size: (hull.width, hull.height),
            coarse: changes,
            changes,
        }
    }
}

/// Regions that are filtered in one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) members: Vec<Member>,
    /// The part of the picture that is cut out.
    pub(super) window: Area,
}

impl Canvas {
    pub(super) fn new(format: PixelFormat, width: usize, height: usize, radius: Radius) -> Canvas {
        let planes = format.planes();
        Canvas {
            width,
            height,
            shift: (
                planes.iter().map(|p| p.log2_x).max().unwrap_or(0),
                planes.iter().map(|p| p.log2_y).max().unwrap_or(0),
            ),
            radius,
        }
    }

    /// The window of these regions together; `None` if there are none.
    pub(super) fn window(&self, members: &[Member]) -> Option<Area> {
        let joint = members.iter().map(Joint::of).reduce(|all, one| all.with(&one))?;
        Some(self.window_of(&joint))
    }

    fn window_of(&self, joint: &Joint) -> Area {
        let Joint {
            hull, size, coarse, ..
        } = *joint;
        let step = if coarse { STEP } else { 1 };
        let Radius {
            columns, rows, grid, ..
        } = self.radius;
        let axis = |begin, end, size, halo, shift: u8, length| {
            Axis {
                size,
                halo: halo << shift,
                grid: grid << shift,
                wraps: self.radius.wraps,
                step,
                length,
            }
            .window(begin, end)
        };
        let (x, width) = axis(hull.x, hull.right(), size.0, columns, self.shift.0, self.width);
        let (y, height) = axis(hull.y, hull.bottom(), size.1, rows, self.shift.1, self.height);
        Area { x, y, width, height }
    }

    /// Groups the regions into windows: two groups are merged if their common window is no larger than both
    /// together.
    pub(super) fn groups(&self, members: Vec<Member>) -> Vec<Group> {
        let mut groups: Vec<(Joint, Group)> = Vec::new();
        for member in members {
            let (mut joint, mut members) = (Joint::of(&member), vec![member]);
            // A merged group may be worth merging with one that its parts were not.
            loop {
                let window = self.window_of(&joint);
                let pays = |(other, group): &(Joint, Group)| {
                    let both = self.window_of(&other.with(&joint));
                    both.size() <= group.window.size() + window.size()
                };
                let Some(at) = groups.iter().position(pays) else {
                    groups.push((joint, Group { members, window }));
                    break;
                };
                let (other, mut group) = groups.remove(at);
                joint = other.with(&joint);
                group.members.append(&mut members);
                members = group.members;
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// One direction of a window.
struct Axis {
    /// Pixels of the region, including those outside of the picture.
    size: usize,
    /// Pixels of the halo on either side.
    halo: usize,
    /// The window begins at a multiple of this number of pixels.
    grid: usize,
    /// True if the border wraps.
    wraps: bool,
    /// The window's size is a multiple of this number of pixels, if the grid allows it.
    step: usize,
    /// Pixels of the picture.
    length: usize,
}

impl Axis {
    /// Begin and size of the window of a region from `begin` to `end`.
    fn window(&self, begin: usize, end: usize) -> (usize, usize) {
        let Axis {
            halo, grid, length, ..
        } = *self;
        if self.wraps && (begin < halo || end + halo > length) {
            return (0, length);
        }
        let size = self.size.max(end - begin).min(length);
        let needed = (size + 2 * halo + grid - 1).next_multiple_of(self.step);
        // As many pixels above a multiple of the grid as the picture has, so that a window at the far edge
        // begins at a multiple, too.
        let size = needed + (length % grid + grid - needed % grid) % grid;
        let size = size.min(length);
        let start = begin.saturating_sub(halo) / grid * grid;
        (start.min(length - size), size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every region of small pictures: the window holds region and halo as far as the picture goes, begins
    /// on the grid, and is of one size.
    #[test]
    fn windows_hold_the_halo_on_the_grid() {
        for grid in [1, 2, 4, 16] {
            for length in 1..40 {
                for (size, halo) in [(1, 0), (1, 3), (5, 4), (8, 1), (30, 7), (50, 2)] {
                    let axis = |wraps| Axis {
                        size,
                        halo,
                        grid,
                        wraps,
                        step: 1,
                        length,
                    };
                    let mut sizes = std::collections::BTreeSet::new();
                    for first in 1 - size as i64..length as i64 {
                        let begin = first.max(0) as usize;
                        let end = (first + size as i64).min(length as i64) as usize;
                        let (start, window) = axis(false).window(begin, end);
                        assert!(start <= begin.saturating_sub(halo));
                        assert!(start + window >= (end + halo).min(length));
                        assert!(start.is_multiple_of(grid) && start + window <= length);
                        sizes.insert(window);
                        let reaches = begin < halo || end + halo > length;
                        let wrapped = axis(true).window(begin, end);
                        assert_eq!(wrapped, if reaches { (0, length) } else { (start, window) });
                    }
                    assert_eq!(sizes.len(), 1, "{grid} {length} {size} {halo}");
                }
            }
        }
    }

    #[test]
    fn regions_are_filtered_together_where_that_is_less() {
        let radius = Radius {
            columns: 2,
            rows: 2,
            wraps: false,
            grid: 1,
        };
        let canvas = Canvas::new(PixelFormat::GRAY, 100, 80, radius);
        let member = |x, y, width, height| Member::fixed(Area { x, y, width, height });
        let windows = |members: Vec<Member>| -> Vec<(usize, usize, usize, usize)> {
            let groups = canvas.groups(members);
            let windows = groups.iter().map(|g| g.window);
            windows.map(|w| (w.x, w.y, w.width, w.height)).collect()
        };
        // Side by side, and one within the other.
        assert_eq!(
            windows(vec![member(10, 10, 5, 5), member(15, 10, 5, 5)]),
            [(8, 8, 14, 9)]
        );
        assert_eq!(
            windows(vec![member(10, 10, 20, 5), member(12, 11, 2, 2)]),
            [(8, 8, 24, 9)]
        );
        // In opposite corners, and crossing.
        assert_eq!(windows(vec![member(0, 0, 5, 5), member(90, 70, 5, 5)]).len(), 2);
        assert_eq!(
            windows(vec![member(50, 0, 2, 80), member(0, 40, 100, 2)]).len(),
            2
        );
        // The third lies between the two and brings them together.
        let three = vec![member(10, 10, 5, 5), member(24, 10, 5, 5), member(15, 10, 9, 5)];
        assert_eq!(windows(three), [(8, 8, 23, 9)]);
    }
}
