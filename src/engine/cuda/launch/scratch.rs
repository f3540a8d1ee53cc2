//! Intermediate pictures on the card. One set serves all slots, since kernels of different frames run one
//! after another.
//!
//! ```text
//! intermediate   between row and column pass, 16 or 32 bits     separable masks
//! numbers        two, which passes read and write by turns      pyramids
//! weighted       colour times alpha                             floating-point samples
//! sums           colour under alpha, before its division        all samples
//! ```

use crate::engine::EngineError;
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::pictures::picture::{Arrangement, DevicePlanes, Picture};
use crate::engine::cuda::driver::pictures::texture::Texel;
use crate::filter::PyramidGrid;
use crate::frame::{Layout, Plane};
use std::sync::Arc;

/// Something for intermediates of 16-bit values and of 32-bit ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Intermediates<T> {
    pub(crate) narrow: T,
    pub(crate) wide: T,
}

/// The intermediate pictures that a chain needs.
pub(crate) struct ScratchNeeds {
    /// Between row pass and column pass.
    pub(crate) intermediate: Intermediates<bool>,
    /// The steps that are Gaussians which fit no mask.
    pub(crate) pyramids: Vec<PyramidGrid>,
    /// Floating-point colour multiplied by alpha.
    pub(crate) weighted: bool,
    /// Sums of colour under alpha that a later launch divides.
    pub(crate) sums: bool,
}

impl ScratchNeeds {
    /// 32-bit numbers in a row, and rows, that hold the result of any pass of a pyramid for a plane; `None`
    /// without pyramids.
    fn numbers(&self, plane: &Plane) -> Option<(usize, usize)> {
        let size = |grid: &PyramidGrid| {
            let pixels = plane.width.max(grid.decimated(plane.width));
            (pixels * plane.channels, grid.decimated(plane.height))
        };
        let larger = |a: (usize, usize), b: (usize, usize)| (a.0.max(b.0), a.1.max(b.1));
        self.pyramids.iter().map(size).reduce(larger)
    }
}

/// Where the intermediate pictures lie; those that are not needed lie nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scratch {
    /// Between row pass and column pass.
    pub(crate) intermediate: Intermediates<DevicePlanes>,
    /// The results of a pyramid's passes, by turns.
    pub(crate) numbers: [DevicePlanes; 2],
    /// Floating-point colour multiplied by alpha.
    pub(crate) weighted: DevicePlanes,
    /// Sums of colour under alpha.
    pub(crate) sums: DevicePlanes,
}

/// The memory of the intermediate pictures, which grows to what the largest frames need.
#[derive(Default)]
pub(crate) struct ScratchMemory {
    /// The layout of the frames that it serves now.
    layout: Option<Layout>,
    intermediate: Intermediates<Picture>,
    numbers: [Picture; 2],
    weighted: Picture,
    sums: Picture,
}

/// Why there are no intermediate pictures.
pub(crate) enum ScratchError {
    /// The card lacks memory; holds the number of bytes needed.
    Shortage(usize),
    /// A call of the driver failed.
    Driver(EngineError),
}

impl From<EngineError> for ScratchError {
    fn from(error: EngineError) -> ScratchError {
        ScratchError::Driver(error)
    }
}

impl ScratchMemory {
    /// True if the pictures were last made for frames of `layout`.
    pub(crate) fn serves(&self, layout: &Layout) -> bool {
        self.layout == Some(*layout)
    }

    /// Makes the next [`ScratchMemory::fit`] one for another layout.
    pub(crate) fn forget_layout(&mut self) {
        self.layout = None;
    }

    /// The pictures of `needs` for frames of `layout`, with textures over those that kernels may read through
    /// them. Nothing may be using the pictures unless they serve this layout already.
    pub(crate) fn fit(
        &mut self,
        device: &Arc<Device>,
        needs: &ScratchNeeds,
        layout: &Layout,
        textures: bool,
    ) -> Result<Scratch, ScratchError> {
        self.layout = Some(*layout);
        let mut wanted = Vec::new();
        let mut scratch = Scratch::default();
        let (memory, planes) = (&mut self.intermediate, &mut scratch.intermediate);
        if needs.intermediate.narrow {
            let arrangement = Arrangement::between_passes(layout, 2);
            wanted.push((
                (&mut memory.narrow, &mut planes.narrow),
                arrangement,
                Some(Texel::I16),
            ));
        }
        if needs.intermediate.wide {
            let arrangement = Arrangement::between_passes(layout, 4);
            wanted.push((
                (&mut memory.wide, &mut planes.wide),
                arrangement,
                Some(Texel::I32),
            ));
        }
        if !needs.pyramids.is_empty() {
            let size = |plane: &Plane| needs.numbers(plane).unwrap_or_default();
            let arrangement = Arrangement::numbers(layout, size);
            let numbers = self.numbers.iter_mut().zip(&mut scratch.numbers);
            wanted.extend(numbers.map(|parts| (parts, arrangement, None)));
        }
        let samples = Arrangement::numbers(layout, |plane| (plane.width * plane.channels, plane.height));
        if needs.weighted {
            wanted.push(((&mut self.weighted, &mut scratch.weighted), samples, None));
        }
        if needs.sums {
            wanted.push(((&mut self.sums, &mut scratch.sums), samples, None));
        }
        for ((picture, planes), arrangement, texel) in wanted {
            if !picture.fit(device, arrangement.size())? {
                return Err(ScratchError::Shortage(arrangement.size()));
            }
            *planes = picture.device_planes(device, &arrangement, texel.filter(|_| textures))?;
        }
        Ok(scratch)
    }
}
