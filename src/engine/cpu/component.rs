//! One component of a plane, as numbers.

use super::alpha::Source;
use super::rows::{Place, extend, load};
use crate::filter::{Border, Convolve};

/// One component to convolve.
pub(super) struct Component<'a> {
    pub(super) source: Source<'a>,
    pub(super) plane: usize,
    pub(super) place: Place,
    pub(super) border: Border,
    pub(super) c: &'a Convolve,
}

impl Component<'_> {
    /// Row `y` of the component, which may lie outside the frame, with `radius` samples on each side.
    pub(super) fn load<T: Copy + From<u16>>(
        &self,
        y: i64,
        radius: usize,
        room: &mut Vec<u8>,
        line: &mut [T],
    ) {
        let outside = T::from(self.c.border);
        match self
            .border
            .index(y, self.source.picture.layout.planes()[self.plane].height)
        {
            None => line.fill(outside),
            Some(y) => {
                let width = line.len() - 2 * radius;
                load(
                    self.place,
                    self.source.row(self.plane, y, room),
                    &mut line[radius..radius + width],
                );
                extend(line, radius, self.border, outside);
            }
        }
    }
}
