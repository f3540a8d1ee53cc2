//! The launches of a Gaussian that fits no mask (picture in common/pyramid.cuh), for any kind of sample.

use super::StepBuffers;
use super::parameters::Grid;
use crate::engine::EngineError;
use crate::engine::cuda::driver::pictures::picture::DevicePlanes;
use crate::engine::cuda::kernels::scalar::PYRAMID_BLOCK;
use crate::filter::PyramidGrid;
use crate::frame::Plane;

/// One launch: its number, its blocks, and the planes that it reads and writes.
pub(super) struct PyramidPass<'a> {
    pub(super) index: usize,
    pub(super) grid: Grid,
    pub(super) from: &'a DevicePlanes,
    pub(super) to: &'a DevicePlanes,
}

/// Calls `launch` for each pass over these planes, in order, with its kernel. They write two scratch pictures
/// by turns, and the last the result.
pub(super) fn for_each_pass<Kernel>(
    kernels: &[Kernel],
    grid: PyramidGrid,
    planes: &[usize],
    buffers: &StepBuffers<'_>,
    mut launch: impl FnMut(&Kernel, PyramidPass<'_>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let [one, other] = &buffers.scratch.numbers;
    let pictures = [
        (buffers.source, one),
        (one, other),
        (other, one),
        (one, other),
        (other, one),
        (one, buffers.result),
    ];
    for (index, (kernel, (from, to))) in kernels.iter().zip(pictures).enumerate() {
        let planes = planes.iter().map(|&plane| &buffers.layout.planes()[plane]);
        let grid = blocks(grid, index, planes);
        launch(
            kernel,
            PyramidPass {
                index,
                grid,
                from,
                to,
            },
        )?;
    }
    Ok(())
}

/// The blocks of pass `index` on these planes.
fn blocks<'a>(grid: PyramidGrid, index: usize, planes: impl Iterator<Item = &'a Plane>) -> Grid {
    let (mut numbers, mut rows, mut layers) = (0, 0, 0);
    for plane in planes {
        let (width, height) = (plane.width, plane.height);
        let size = match index {
            0 => (width, grid.decimated(height)),
            1 => (grid.decimated(width), grid.decimated(height)),
            2 => (grid.low_pixels(width), grid.decimated(height)),
            3 => (grid.low_pixels(width), grid.low_pixels(height)),
            4 => (width, grid.low_pixels(height)),
            _ => (width, height),
        };
        (numbers, rows) = (numbers.max(size.0 * plane.channels), rows.max(size.1));
        layers += 1;
    }
    let (across, down) = PYRAMID_BLOCK;
    Grid {
        x: numbers.div_ceil(across as usize),
        y: rows.div_ceil(down as usize),
        z: layers,
        block: PYRAMID_BLOCK,
        shared: 0,
    }
}
