//! A low row from the sums of the vertical decimation: the horizontal decimation to every D-th pixel, then
//! the low filter along the row. Low rows are deinterleaved.

use crate::engine::cpu::algorithms::pyramid::passes::PassGeometry;
use crate::engine::cpu::rows::sums::integer::Sum;
use crate::engine::cpu::simd::vector::Plain;
use crate::filter::Pass;

/// Numbers that are multiplied and added side by side; 6 D is a multiple of this number.
const LANES: usize = 8;

/// The loop that makes one low row.
pub(super) struct MakeLowRow<'a, S> {
    pub(super) geometry: &'a PassGeometry<'a>,
    /// The sums of the vertical decimation, interleaved.
    pub(super) sums: &'a [i32],
    /// Memory for a component of the extended row.
    pub(super) extended: &'a mut [i32],
    /// Memory for the decimated component.
    pub(super) decimated: &'a mut [i32],
    /// Memory for sums along a line.
    pub(super) line_sums: &'a mut [S],
    /// The low row, component by component.
    pub(super) to: &'a mut [i32],
}

impl<S: Sum> Plain for MakeLowRow<'_, S> {
    #[inline(always)]
    fn run(self) {
        let kernel = &self.geometry.pyramid.kernel;
        let columns = self.line_sums.len();
        for channel in 0..self.geometry.channels {
            self.geometry
                .extend(self.sums, channel, |number| number, self.extended);
            for (i, to) in self.decimated.iter_mut().enumerate() {
                let window = &self.extended[i * kernel.grid.step..][..kernel.columns.weights.len()];
                *to = dot::<S>(&kernel.columns, window);
            }
            let to = &mut self.to[channel * columns..][..columns];
            let lines = (0..).map(|k| &self.decimated[k..k + columns]);
            filter(&kernel.low, lines, self.line_sums, to);
        }
    }
}

/// The weighted sum of a window.
#[inline(always)]
fn dot<S: Sum>(pass: &Pass, window: &[i32]) -> i32 {
    let mut sums = [S::from(0); LANES];
    let weights = pass.weights.as_chunks::<LANES>().0;
    for (weights, numbers) in weights.iter().zip(window.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += S::from(weights[lane]) * S::from(numbers[lane]);
        }
    }
    let sum = sums
        .into_iter()
        .fold(S::from_bias(pass.start()), |all, sum| all + sum);
    (sum >> pass.shift).widen() as i32
}

/// Stores the weighted sums of lines; there is a line for each weight.
#[inline(always)]
pub(super) fn filter<'a, S: Sum>(
    pass: &Pass,
    lines: impl Iterator<Item = &'a [i32]>,
    sums: &mut [S],
    to: &mut [i32],
) {
    sums.fill(S::from_bias(pass.start()));
    for (&weight, line) in pass.weights.iter().zip(lines) {
        for (sum, &number) in sums.iter_mut().zip(line) {
            *sum += S::from(weight) * S::from(number);
        }
    }
    for (to, &sum) in to.iter_mut().zip(&*sums) {
        *to = (sum >> pass.shift).widen() as i32;
    }
}
