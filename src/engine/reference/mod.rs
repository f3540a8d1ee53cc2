//! The plainest correct loop, one thread: the oracle of every other engine and the baseline of every
//! speed-up.
//!
//! It follows docs/arithmetic.md sentence by sentence, and nothing in it is clever.

mod float;

use super::{Engine, EngineError};
use crate::filter::{
    Border, Chain, ChannelStep, CombinedKernel, Convolve, DirectKernel, FloatPlan, Kernel, Plan, PyramidGrid,
    PyramidKernel, SeparableKernel, Step, WeightedKernel,
};
use crate::frame::{Allocator, Buffer, Channel, Frame, Layout, Pageable, PixelFormat};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The reference engine.
pub struct Reference {
    chain: Chain,
    done: VecDeque<Frame>,
}

/// One component of a picture: its samples, row by row.
#[derive(Clone)]
struct Component<S = i64> {
    channel: Channel,
    width: usize,
    height: usize,
    samples: Vec<S>,
}

impl Reference {
    /// An engine that applies `chain`.
    pub fn new(chain: Chain) -> Reference {
        Reference {
            chain,
            done: VecDeque::new(),
        }
    }
}

impl Engine for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn description(&self) -> String {
        "reference: one thread, plain loops".to_owned()
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let (format, colour) = (input.format(), input.metadata.colour);
        let layout = Layout::new(
            input.format(),
            input.layout().width(),
            input.layout().height(),
            row_alignment,
        )?;
        let mut result = Frame::new(layout, output)?;
        if format.is_float() {
            float::filter(
                &FloatPlan::new(&self.chain, format, &colour)?,
                &input,
                &mut result,
            );
        } else {
            let plan = Plan::new(&self.chain, format, &colour)?;
            let steps = plan.steps.iter();
            let planes = steps.fold(integers(&input), |planes, step| apply(step, format, &planes));
            write(&planes, &mut result);
        }
        result.sequence = input.sequence;
        result.born = input.born;
        result.metadata = input.into_parts().0;
        self.done.push_back(result);
        Ok(())
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        Ok(self.done.pop_front())
    }
}

/// The components of each plane, their samples as `sample` gives them for a plane, a column, a row and a
/// place among the interleaved ones.
fn read<S>(frame: &Frame, sample: impl Fn(usize, usize, usize, usize) -> S) -> Vec<Vec<Component<S>>> {
    let planes = frame.layout().planes().iter().enumerate();
    planes
        .map(|(index, plane)| {
            let channels = frame.format().planes()[index].channels.iter().enumerate();
            channels
                .map(|(c, &channel)| Component {
                    channel,
                    width: plane.width,
                    height: plane.height,
                    samples: (0..plane.width * plane.height)
                        .map(|i| sample(index, i % plane.width, i / plane.width, c))
                        .collect(),
                })
                .collect()
        })
        .collect()
}

fn integers(frame: &Frame) -> Vec<Vec<Component>> {
    read(frame, |plane, x, y, c| i64::from(frame.sample(plane, x, y, c)))
}

fn write(planes: &[Vec<Component>], frame: &mut Frame) {
    let (bytes, shift) = (frame.format().bytes_per_sample(), frame.format().shift());
    for (index, components) in planes.iter().enumerate() {
        let interleaved = components.len();
        for (c, component) in components.iter().enumerate() {
            for y in 0..component.height {
                let row = frame.row_mut(index, y);
                for x in 0..component.width {
                    let value = (component.samples[y * component.width + x] as u16) << shift;
                    let at = (x * interleaved + c) * bytes;
                    row[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                }
            }
        }
    }
}

fn apply(step: &Step, format: PixelFormat, planes: &[Vec<Component>]) -> Vec<Vec<Component>> {
    let max = i64::from(format.max_value());
    let mut result: Vec<Vec<Component>> = planes
        .iter()
        .zip(&step.planes)
        .map(|(components, steps)| {
            let each = components.iter().zip(steps);
            each.map(|(c, s)| component(step, s, max, c)).collect()
        })
        .collect();
    if let Kernel::Weighted(kernel) = &step.kernel {
        weighted(step, kernel, max, planes, &mut result);
    }
    keep_small_differences(step, planes, &mut result);
    result
}

/// Samples that the step changes by less than its threshold stay what they were.
fn keep_small_differences(step: &Step, before: &[Vec<Component>], result: &mut [Vec<Component>]) {
    let components = result.iter_mut().flatten().zip(before.iter().flatten());
    for ((component, before), what) in components.zip(step.planes.iter().flatten()) {
        if what.convolved().is_some() {
            for (value, &was) in component.samples.iter_mut().zip(&before.samples) {
                if (*value - was).abs() < i64::from(step.threshold) {
                    *value = was;
                }
            }
        }
    }
}

fn component(step: &Step, what: &ChannelStep, max: i64, input: &Component) -> Component {
    match what {
        ChannelStep::Copy => input.clone(),
        ChannelStep::Fill(value) => Component {
            samples: vec![i64::from(*value); input.samples.len()],
            ..input.clone()
        },
        ChannelStep::Convolve(convolve) => match &step.kernel {
            Kernel::Direct(kernel) => direct(kernel, step.border, convolve, max, input),
            Kernel::Separable(kernel) => separable(kernel, step.border, convolve, max, input),
            Kernel::Combined(kernel) => combined(kernel, step.border, convolve, max, input),
            Kernel::Pyramid(kernel) => {
                let passes = IntegerPasses {
                    kernel,
                    convolve,
                    max,
                };
                Component {
                    samples: pyramid(&passes, step.border, i64::from(convolve.border), input),
                    ..input.clone()
                }
            }
            // All components at once.
            Kernel::Weighted(_) => input.clone(),
        },
    }
}

/// The pixel at (x, y), which may lie outside.
fn pixel<S: Copy>(input: &Component<S>, border: Border, outside: S, x: i64, y: i64) -> S {
    match (border.index(x, input.width), border.index(y, input.height)) {
        (Some(x), Some(y)) => input.samples[y * input.width + x],
        _ => outside,
    }
}

/// The sum of weights, `width` of them a row, times the pixels around (x, y).
fn sum(
    (weights, width): (&[i32], usize),
    (border, outside): (Border, i64),
    input: &Component,
    (x, y): (i64, i64),
) -> i64 {
    let height = (weights.len() / width) as i64;
    let width = width as i64;
    let mut sum = 0;
    for j in 0..height {
        for i in 0..width {
            let q = i64::from(weights[(j * width + i) as usize]);
            sum += q * pixel(input, border, outside, x + i - width / 2, y + j - height / 2);
        }
    }
    sum
}

fn direct(kernel: &DirectKernel, border: Border, c: &Convolve, max: i64, input: &Component) -> Component {
    let outside = (border, i64::from(c.border));
    let mut samples = Vec::with_capacity(input.samples.len());
    for y in 0..input.height as i64 {
        for x in 0..input.width as i64 {
            let sum = sum((&kernel.weights, kernel.width), outside, input, (x, y));
            let levels = (sum + c.low).div_euclid(kernel.division.divisor());
            samples.push((levels + c.high).clamp(0, max));
        }
    }
    Component {
        samples,
        ..input.clone()
    }
}

fn combined(kernel: &CombinedKernel, border: Border, c: &Convolve, max: i64, input: &Component) -> Component {
    let outside = (border, i64::from(c.border));
    let mut samples = Vec::with_capacity(input.samples.len());
    for y in 0..input.height as i64 {
        for x in 0..input.width as i64 {
            let sums = kernel.masks.iter().enumerate().map(|(k, weights)| {
                kernel.start(k, c.level) + sum((weights, kernel.width), outside, input, (x, y))
            });
            let number = kernel.combine(sums);
            samples.push((((number + c.low) >> kernel.shift) + c.high).clamp(0, max));
        }
    }
    Component {
        samples,
        ..input.clone()
    }
}

fn separable(
    kernel: &SeparableKernel,
    border: Border,
    c: &Convolve,
    max: i64,
    input: &Component,
) -> Component {
    let (rx, ry) = (
        kernel.row.weights.len() as i64 / 2,
        kernel.column.weights.len() as i64 / 2,
    );
    let row_pass = |x: i64, y: i64| {
        let taps = kernel.row.weights.iter().zip(x - rx..);
        let sum: i64 = taps
            .map(|(&q, at)| i64::from(q) * pixel(input, border, i64::from(c.border), at, y))
            .sum();
        (sum + kernel.row.start()) >> kernel.row.shift
    };
    // The intermediate rows, those outside the frame included, since the column pass reads them too.
    let width = input.width as i64;
    let intermediate: Vec<i64> = (-ry..input.height as i64 + ry)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .map(|(x, y)| row_pass(x, y))
        .collect();
    let mut samples = Vec::with_capacity(input.samples.len());
    for y in 0..input.height {
        for x in 0..input.width {
            let taps = kernel.column.weights.iter().zip(y..);
            let sum: i64 = taps
                .map(|(&q, row)| i64::from(q) * intermediate[row * input.width + x])
                .sum();
            let levels = (sum + c.low).div_euclid(kernel.column.division.divisor());
            samples.push((levels + c.high).clamp(0, max));
        }
    }
    Component {
        samples,
        ..input.clone()
    }
}

/// What the passes of a pyramid make of the numbers that `at` gives, one for each weight.
trait PyramidPasses<S> {
    fn grid(&self) -> PyramidGrid;
    fn decimate_rows(&self, at: &dyn Fn(usize) -> S) -> S;
    fn decimate_columns(&self, at: &dyn Fn(usize) -> S) -> S;
    fn filter(&self, at: &dyn Fn(usize) -> S) -> S;
    /// For pixels `place` places after a low one.
    fn interpolate_columns(&self, place: usize, at: &dyn Fn(usize) -> S) -> S;
    /// The same; makes samples.
    fn interpolate_rows(&self, place: usize, at: &dyn Fn(usize) -> S) -> S;
}

/// Each pass makes a grid of the one before. Grids of low pixels begin before the picture and end behind it.
fn pyramid<S: Copy>(
    passes: &impl PyramidPasses<S>,
    border: Border,
    outside: S,
    input: &Component<S>,
) -> Vec<S> {
    let grid = passes.grid();
    let (step, radius) = (grid.step as i64, grid.low_radius as i64);
    let (width, height) = (input.width as i64, input.height as i64);
    // The low pixels that results are interpolated from lie between these, and those that these are made of
    // on both sides.
    let (first, end) = (-2, |len: i64| (len - 1) / step + 4);
    let (before, behind) = (first - radius, |len: i64| end(len) + radius);
    let every = |rows: Range<i64>, columns: Range<i64>, make: &dyn Fn(i64, i64) -> S| {
        let row = |y: i64| columns.clone().map(|x| make(x, y)).collect::<Vec<S>>();
        rows.map(row).collect::<Vec<_>>()
    };
    let decimated_rows = every(before..behind(height), 0..width, &|x, j| {
        passes.decimate_rows(&|k| pixel(input, border, outside, x, (j - 3) * step + k as i64))
    });
    // A column outside of the picture that holds a constant.
    let column_outside = passes.decimate_rows(&|_| outside);
    let low = every(before..behind(height), before..behind(width), &|i, j| {
        let row = &decimated_rows[(j - before) as usize];
        passes.decimate_columns(&|k| {
            let x = border.index((i - 3) * step + k as i64, input.width);
            x.map_or(column_outside, |x| row[x])
        })
    });
    let along_rows = every(before..behind(height), first..end(width), &|i, j| {
        let row = &low[(j - before) as usize];
        passes.filter(&|k| row[(i - first) as usize + k])
    });
    let filtered = every(first..end(height), first..end(width), &|i, j| {
        passes.filter(&|k| along_rows[(j - first) as usize + k][(i - first) as usize])
    });
    let wide = every(first..end(height), 0..width, &|x, j| {
        let row = &filtered[(j - first) as usize];
        passes.interpolate_columns((x % step) as usize, &|tap| row[(x / step) as usize + tap])
    });
    let samples = every(0..height, 0..width, &|x, y| {
        passes.interpolate_rows((y % step) as usize, &|tap| {
            wide[(y / step) as usize + tap][x as usize]
        })
    });
    samples.concat()
}

/// A component of integers and the kernel that makes it.
struct IntegerPasses<'a> {
    kernel: &'a PyramidKernel,
    convolve: &'a Convolve,
    max: i64,
}

/// A weighted sum, and `start`, without the last `shift` bits.
fn sum_of(weights: &[i32], (start, shift): (i64, u32), at: &dyn Fn(usize) -> i64) -> i64 {
    let products = weights.iter().enumerate().map(|(k, &q)| i64::from(q) * at(k));
    (products.sum::<i64>() + start) >> shift
}

impl PyramidPasses<i64> for IntegerPasses<'_> {
    fn grid(&self) -> PyramidGrid {
        self.kernel.grid
    }

    fn decimate_rows(&self, at: &dyn Fn(usize) -> i64) -> i64 {
        let pass = &self.kernel.rows;
        sum_of(&pass.weights, (pass.start(), pass.shift), at)
    }

    fn decimate_columns(&self, at: &dyn Fn(usize) -> i64) -> i64 {
        let pass = &self.kernel.columns;
        sum_of(&pass.weights, (pass.start(), pass.shift), at)
    }

    fn filter(&self, at: &dyn Fn(usize) -> i64) -> i64 {
        let pass = &self.kernel.low;
        sum_of(&pass.weights, (pass.start(), pass.shift), at)
    }

    fn interpolate_columns(&self, place: usize, at: &dyn Fn(usize) -> i64) -> i64 {
        let bits = self.kernel.interpolate_bits;
        sum_of(&self.kernel.interpolate[place], (1 << (bits - 1), bits), at)
    }

    fn interpolate_rows(&self, place: usize, at: &dyn Fn(usize) -> i64) -> i64 {
        let last = (self.convolve.low, self.kernel.last_shift());
        let levels = sum_of(&self.kernel.interpolate[place], last, at);
        (levels + self.convolve.high).clamp(0, self.max)
    }
}

fn alpha_of<S>(planes: &[Vec<Component<S>>]) -> &[S] {
    planes
        .iter()
        .flatten()
        .find(|c| c.channel == Channel::Alpha)
        .map_or(&[], |c| &c.samples)
}

/// Colours averaged by the weight of alpha, and alpha; see [`WeightedKernel`] for the formula.
fn weighted(
    step: &Step,
    kernel: &WeightedKernel,
    max: i64,
    before: &[Vec<Component>],
    result: &mut [Vec<Component>],
) {
    let numbers = |samples: &[i64]| samples.iter().map(|&v| v as f32).collect::<Vec<f32>>();
    let level = |number: f32| (number.floor() as i64).clamp(0, max);
    let sums = |outside: f32, component: &Component, samples: Vec<f32>| {
        let input = Component {
            channel: component.channel,
            width: component.width,
            height: component.height,
            samples,
        };
        float::convolved(&kernel.kernel, (step.border, outside), 0.0, &input)
    };
    let each = || before.iter().flatten().zip(step.planes.iter().flatten());
    let kept = numbers(alpha_of(before));
    let Some((alpha, _)) = each().find(|(component, _)| component.channel == Channel::Alpha) else {
        return;
    };
    let summed = sums(kernel.outside, alpha, kept.clone());
    let of_result: Vec<i64> = if kernel.weighting.filter_alpha {
        summed.iter().map(|a| level(a + 0.5)).collect()
    } else {
        alpha.samples.clone()
    };
    let weights = if kernel.weighting.normalise {
        summed
    } else {
        numbers(&of_result)
    };
    for (component, (original, what)) in result.iter_mut().flatten().zip(each()) {
        let Some(convolve) = what.convolved() else {
            continue;
        };
        if convolve.is_alpha {
            component.samples.clone_from(&of_result);
            continue;
        }
        let zero = f32::from(convolve.level);
        let colours = original.samples.iter().zip(&kept);
        let premultiplied = colours.map(|(&c, a)| (c as f32 - zero) * a).collect();
        let sums = sums(kernel.outside(convolve), original, premultiplied);
        let base = kernel.base(component.channel, convolve.level);
        for (i, (sum, &a)) in sums.into_iter().zip(&weights).enumerate() {
            if a != 0.0 {
                component.samples[i] = level((sum * kernel.weighting.gain) / a + base);
            }
        }
    }
}
