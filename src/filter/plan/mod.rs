//! Plans: the numbers that engines compute with, integers for integer samples and floats for floating point.
//! docs/arithmetic.md states the same in prose.

pub(in crate::filter) mod error;
pub(in crate::filter) mod float;
pub(in crate::filter) mod integer;
pub(in crate::filter) mod pyramid;

use float::pyramid::FloatPyramid;
use pyramid::{PyramidGrid, PyramidKernel};

/// The grid of the Gaussian of `sigma` pixels, at least 10, that reaches as far as those for samples of any
/// kind do. D is the same for all, and a low filter's radius may depend on how weights are rounded.
pub(crate) fn widest_pyramid_grid(sigma: f64) -> PyramidGrid {
    let float = FloatPyramid::new(sigma).grid;
    let integers = (8..=16).map(|depth| PyramidKernel::new(sigma, depth).grid);
    integers.fold(float, |widest, grid| PyramidGrid {
        low_radius: widest.low_radius.max(grid.low_radius),
        ..widest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_grid_holds_those_of_all_samples() {
        for sigma in [10.4, 18.1, 30.0, 36.2, 77.0, 200.0, 1000.0] {
            let widest = widest_pyramid_grid(sigma);
            let integers = (8..=16).map(|depth| PyramidKernel::new(sigma, depth).grid);
            for grid in integers.chain([FloatPyramid::new(sigma).grid]) {
                assert_eq!(grid.step, widest.step, "{sigma}");
                assert!(grid.low_radius <= widest.low_radius, "{sigma}");
            }
        }
    }
}
