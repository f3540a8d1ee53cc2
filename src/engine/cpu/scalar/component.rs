//! One component of a plane, as numbers.

use super::row::{Place, extend, load};
use crate::engine::cpu::alpha::Source;
use crate::filter::{Border, Convolve};

/// One component to convolve.
pub(in crate::engine::cpu) struct Component<'a> {
    pub(in crate::engine::cpu) source: Source<'a>,
    pub(in crate::engine::cpu) plane: usize,
    pub(in crate::engine::cpu) place: Place,
    pub(in crate::engine::cpu) border: Border,
    pub(in crate::engine::cpu) c: &'a Convolve,
}

impl Component<'_> {
    /// Row `y` of the component, which may lie outside the frame, with `radius` samples on each side.
    pub(in crate::engine::cpu) fn load<T: Copy + From<u16>>(
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
