//! Floating-point samples, by the plainest loop: every tap of every sum in its order, as
//! [`FloatPlan`](crate::filter::FloatPlan) defines it.

use super::{PyramidPasses, alpha_of, pixel, pyramid, read};
use crate::filter::{
    Border, FloatAlpha, FloatChannelStep, FloatKernel, FloatMask, FloatPlan, FloatPyramid, FloatStep,
    PyramidGrid,
};
use crate::frame::Frame;

/// One component of a picture.
type Component = super::Component<f32>;

/// Filters `input` into `output`, which has its format and size.
pub(super) fn filter(plan: &FloatPlan, input: &Frame, output: &mut Frame) {
    let mut planes = read(input, |plane, x, y, c| input.float(plane, x, y, c));
    for step in &plan.steps {
        planes = apply(step, &planes);
        for value in planes.iter_mut().flatten().flat_map(|c| &mut c.samples) {
            *value = crate::frame::float::rounded(plan.format, *value);
        }
    }
    for (index, components) in planes.iter().enumerate() {
        for (c, component) in components.iter().enumerate() {
            let is_copied = |step: &FloatStep| step.planes[index][c].convolved().is_none();
            if plan.steps.iter().all(is_copied) {
                copy(input, output, (index, c));
                continue;
            }
            for (at, &value) in component.samples.iter().enumerate() {
                let (x, y) = (at % component.width, at / component.width);
                output.set_float(index, x, y, c, value);
            }
        }
    }
}

/// Copies component `c` of plane `index` bit by bit, whatever it holds.
fn copy(input: &Frame, output: &mut Frame, (index, c): (usize, usize)) {
    let (plane, bytes) = (input.layout().planes()[index], input.format().bytes_per_sample());
    for y in 0..plane.height {
        let pixels = output.row_mut(index, y).chunks_exact_mut(plane.channels * bytes);
        for (to, from) in pixels.zip(input.row(index, y).chunks_exact(plane.channels * bytes)) {
            to[c * bytes..][..bytes].copy_from_slice(&from[c * bytes..][..bytes]);
        }
    }
}

fn apply(step: &FloatStep, planes: &[Vec<Component>]) -> Vec<Vec<Component>> {
    let mut weighted = planes.to_vec();
    if step.alpha.is_some() {
        let alpha = alpha_of(planes);
        for (component, what) in weighted.iter_mut().flatten().zip(step.planes.iter().flatten()) {
            if what.convolved().is_some_and(|c| !c.is_alpha) {
                for (c, a) in component.samples.iter_mut().zip(alpha) {
                    *c *= a;
                }
            }
        }
    }
    let mut result = weighted.clone();
    for (component, what) in result.iter_mut().flatten().zip(step.planes.iter().flatten()) {
        if let FloatChannelStep::Convolve(convolve) = what {
            component.samples = convolved(
                &step.kernel,
                (step.border, convolve.border),
                convolve.bias,
                component,
            );
        }
    }
    if let Some(alpha) = &step.alpha {
        unpremultiply(step, alpha, planes, &mut result);
    }
    let components = result.iter_mut().flatten().zip(planes.iter().flatten());
    for ((component, before), what) in components.zip(step.planes.iter().flatten()) {
        if what.convolved().is_some() {
            for (value, &was) in component.samples.iter_mut().zip(&before.samples) {
                if (*value - was).abs() < step.threshold {
                    *value = was;
                }
                if value.is_nan() {
                    *value = f32::NAN;
                }
            }
        }
    }
    result
}

/// The sums around every pixel, which begin with `bias`. Samples outside are those of `border`, or `outside`.
pub(super) fn convolved(
    kernel: &FloatKernel,
    (border, outside): (Border, f32),
    bias: f32,
    input: &Component,
) -> Vec<f32> {
    let sum = |mask: &FloatMask, x: i64, y: i64, start: f32| {
        let (left, top) = (x - mask.width as i64 / 2, y - mask.height as i64 / 2);
        let mut sum = start;
        for (row, at_y) in mask.weights.chunks_exact(mask.width).zip(top..) {
            for (&weight, at_x) in row.iter().zip(left..) {
                sum = weight.mul_add(pixel(input, border, outside, at_x, at_y), sum);
            }
        }
        sum
    };
    let every = |make: &dyn Fn(i64, i64) -> f32| {
        let row = |y| (0..input.width as i64).map(move |x| make(x, y));
        (0..input.height as i64).flat_map(row).collect::<Vec<f32>>()
    };
    match kernel {
        FloatKernel::Direct(mask) => every(&|x, y| sum(mask, x, y, bias)),
        FloatKernel::Combined { masks, combining } => every(&|x, y| {
            let sums = masks.iter().map(|mask| sum(mask, x, y, 0.0));
            combining.combine(sums) + bias
        }),
        FloatKernel::Separable { row, column } => {
            let (rx, ry) = (row.len() as i64 / 2, column.len() as i64 / 2);
            // The intermediate rows, those outside the frame included, since the column pass reads them too.
            let along_row = |x: i64, y: i64| {
                let taps = row.iter().zip(x - rx..);
                taps.fold(0.0_f32, |sum, (weight, at)| {
                    weight.mul_add(pixel(input, border, outside, at, y), sum)
                })
            };
            let between: Vec<f32> = (-ry..input.height as i64 + ry)
                .flat_map(|y| (0..input.width as i64).map(move |x| (x, y)))
                .map(|(x, y)| along_row(x, y))
                .collect();
            every(&|x, y| {
                let taps = column.iter().zip(y as usize..);
                taps.fold(bias, |sum, (weight, at)| {
                    weight.mul_add(between[at * input.width + x as usize], sum)
                })
            })
        }
        FloatKernel::Pyramid(kernel) => pyramid(&FloatPasses { kernel, bias }, border, outside, input),
    }
}

/// A component of floating-point samples and the kernel that makes it.
struct FloatPasses<'a> {
    kernel: &'a FloatPyramid,
    bias: f32,
}

/// A weighted sum, tap by tap from `start` on.
fn weighted(weights: &[f32], start: f32, at: &dyn Fn(usize) -> f32) -> f32 {
    let taps = weights.iter().enumerate();
    taps.fold(start, |sum, (k, weight)| weight.mul_add(at(k), sum))
}

impl PyramidPasses<f32> for FloatPasses<'_> {
    fn grid(&self) -> PyramidGrid {
        self.kernel.grid
    }

    fn decimate_rows(&self, at: &dyn Fn(usize) -> f32) -> f32 {
        weighted(&self.kernel.decimate, 0.0, at)
    }

    fn decimate_columns(&self, at: &dyn Fn(usize) -> f32) -> f32 {
        weighted(&self.kernel.decimate, 0.0, at)
    }

    fn filter(&self, at: &dyn Fn(usize) -> f32) -> f32 {
        weighted(&self.kernel.low, 0.0, at)
    }

    fn interpolate_columns(&self, place: usize, at: &dyn Fn(usize) -> f32) -> f32 {
        weighted(&self.kernel.interpolate[place], 0.0, at)
    }

    fn interpolate_rows(&self, place: usize, at: &dyn Fn(usize) -> f32) -> f32 {
        weighted(&self.kernel.interpolate[place], self.bias, at)
    }
}

/// Straight colour again; see [`FloatAlpha`] for the formula.
fn unpremultiply(
    step: &FloatStep,
    alpha: &FloatAlpha,
    before: &[Vec<Component>],
    result: &mut [Vec<Component>],
) {
    let convolved = alpha_of(result).to_vec();
    let kept = alpha_of(before);
    let of_result = if alpha.filter_alpha { &convolved } else { kept };
    let weight = if alpha.normalise { &convolved } else { of_result };
    let components = result.iter_mut().flatten().zip(before.iter().flatten());
    for ((component, original), what) in components.zip(step.planes.iter().flatten()) {
        match what.convolved() {
            Some(c) if !c.is_alpha => {
                let samples = component.samples.iter_mut().zip(weight).zip(&original.samples);
                for ((value, &a), &was) in samples {
                    *value = if a == 0.0 {
                        was
                    } else {
                        (*value * alpha.gain) / a + alpha.bias
                    };
                }
            }
            Some(_) => component.samples = of_result.to_vec(),
            None => {}
        }
    }
}
