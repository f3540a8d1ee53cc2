//! Plain Rust, for any machine, and for planes that the other algorithms do not filter.
//!
//! ```text
//! row y - 1   c c | p p p p .. | c c     one component as integers, border filled     rows/words/
//! row y       c c | p p p p .. | c c     a ring: each row is loaded once
//! row y + 1   c c | p p p p .. | c c
//!    | sums[x] += weight * line[x + i]   for each weight other than 0                  row.rs
//! sums        s s s s ..                 i32, or i64 for samples of more than 12 bits and long weights
//!    | divide, add, clamp
//! row y       p p p p ..
//! ```
//!
//! For a separable mask each row is filtered along the row as it is loaded, and the ring holds the
//! intermediates.

mod row;

use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::rows::sums::integer::Sum;
use crate::engine::cpu::rows::words::component::{Component, ComponentLayout, load, store};
use crate::engine::cpu::simd::scratch::{LineRing, Scratch};
use crate::filter::{ChannelStep, DirectKernel, Kernel, SeparableKernel, Step};
use crate::frame::{Layout, Plane};
use row::{accumulate, accumulate_column, finish, intermediate};

/// One plane's part of a step with a direct or a separable mask.
pub(super) struct Scalar {
    step: Step,
    /// In multiply-adds of two samples and two weights.
    cost_per_sample: usize,
    /// True if nothing is convolved.
    keeps: bool,
}

/// Cost of a weight and a sample in plain loops, in multiply-adds of two samples and two weights.
const COST: usize = 4;

/// The same for long weights: few machines multiply 64-bit numbers in vectors.
const LONG_COST: usize = 16;

impl PlaneFilter for Scalar {
    fn new(part: &PlanePart<'_>, _: Option<&Scalar>) -> Option<Scalar> {
        let count = |weights: &[i32]| weights.iter().filter(|&&q| q != 0).count();
        let weights = match &part.step.kernel {
            Kernel::Direct(k) => count(&k.weights),
            Kernel::Separable(k) => count(&k.row.weights) + count(&k.column.weights),
            Kernel::Combined(_) | Kernel::Pyramid(_) | Kernel::Weighted(_) => return None,
        };
        Some(Scalar {
            step: part.step.clone(),
            cost_per_sample: weights.max(1)
                * if part.step.kernel.is_long() {
                    LONG_COST
                } else {
                    COST
                },
            keeps: part.channels().iter().all(|c| c.convolved().is_none()),
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        samples(plane) * self.cost_per_sample as f64
    }

    fn plan(&self, _: &Plane) -> AlgorithmPlan {
        match &self.step.kernel {
            _ if self.keeps => AlgorithmPlan::UNFILTERED,
            Kernel::Separable(_) => AlgorithmPlan::new("scalar", "row and column filter in plain Rust"),
            _ => AlgorithmPlan::new("scalar", "whole mask in plain Rust"),
        }
    }

    fn filter(&self, picture: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>, _: &mut Scratch) {
        convolve(&self.step, picture, layout, strip);
    }
}

/// Makes the strip's rows from the picture.
pub(super) fn convolve(step: &Step, picture: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>) {
    let format = layout.format();
    let channels = &step.planes[strip.plane];
    if channels.iter().all(|c| *c == ChannelStep::Copy) {
        strip.each_row(layout, |position, row| {
            row.copy_from_slice(picture.row(position.plane, position.row));
        });
        return;
    }
    let plane = strip.plane;
    let mut line = vec![0; layout.planes()[plane].width];
    for (channel, what) in channels.iter().enumerate() {
        let place = ComponentLayout {
            channels: channels.len(),
            channel,
            format,
        };
        match what {
            ChannelStep::Copy => strip.each_row(layout, |position, row| {
                load(place, picture.row(position.plane, position.row), &mut line);
                store(place, &line, row);
            }),
            ChannelStep::Fill(value) => {
                line.fill(i32::from(*value));
                strip.each_row(layout, |_, row| store(place, &line, row));
            }
            ChannelStep::Convolve(c) => {
                let component = Component {
                    picture,
                    plane,
                    place,
                    border: step.border,
                    c,
                };
                let deep = format.depth() > 12 || step.kernel.is_long();
                match &step.kernel {
                    Kernel::Direct(k) if deep => component.direct::<i64>(k, layout, strip),
                    Kernel::Direct(k) => component.direct::<i32>(k, layout, strip),
                    Kernel::Separable(k) if deep => component.separable::<i64, i64>(k, layout, strip),
                    Kernel::Separable(k) if k.wide => component.separable::<i32, i64>(k, layout, strip),
                    Kernel::Separable(k) => component.separable::<i32, i32>(k, layout, strip),
                    Kernel::Combined(_) | Kernel::Pyramid(_) | Kernel::Weighted(_) => {
                        unreachable!("`Scalar::new` refuses these")
                    }
                }
            }
        }
    }
}

impl Component<'_> {
    /// Convolves the component with a direct mask.
    fn direct<S: Sum>(&self, kernel: &DirectKernel, layout: &Layout, strip: &mut Strip<'_>) {
        let width = layout.planes()[self.plane].width;
        let max = layout.format().max_value() as i32;
        let (rx, ry) = (kernel.width / 2, kernel.height as i64 / 2);
        let (first, mut lines) = (strip.first_row, Vec::new());
        let mut ring = LineRing::new(&mut lines, (kernel.height, width + 2 * rx), 0);
        let mut sums = vec![S::from(0); width];
        let mut out = vec![0; width];
        strip.each_row(layout, |position, row| {
            // Line k is row k - ry of the strip.
            let above = position.row - first;
            while let Some((k, line)) = ring.next_before(above + kernel.height) {
                self.load((first + k) as i64 - ry, rx, line);
            }
            sums.fill(S::from_bias(self.c.low));
            for (weights, k) in kernel.weights.chunks(kernel.width).zip(above..) {
                accumulate(&mut sums, weights, ring.line(k));
            }
            finish(&sums, kernel.division, self.c.high, max, &mut out);
            store(self.place, &out, row);
        });
    }

    /// Convolves the component with a separable mask.
    fn separable<R: Sum, C: Sum>(&self, kernel: &SeparableKernel, layout: &Layout, strip: &mut Strip<'_>) {
        let width = layout.planes()[self.plane].width;
        let max = layout.format().max_value() as i32;
        let (rx, ry) = (
            kernel.row.weights.len() / 2,
            kernel.column.weights.len() as i64 / 2,
        );
        let (first, rows, mut lines) = (strip.first_row, kernel.column.weights.len(), Vec::new());
        let mut ring = LineRing::new(&mut lines, (rows, width), 0);
        let mut line = vec![0; width + 2 * rx];
        let mut row_sums = vec![R::from(0); width];
        let mut sums = vec![C::from(0); width];
        let mut out = vec![0; width];
        strip.each_row(layout, |position, row| {
            // Line k is row k - ry of the strip.
            let above = position.row - first;
            while let Some((k, t)) = ring.next_before(above + rows) {
                self.load((first + k) as i64 - ry, rx, &mut line);
                row_sums.fill(R::from_bias(kernel.row.start()));
                accumulate(&mut row_sums, &kernel.row.weights, &line);
                intermediate(&row_sums, kernel.row.shift, t);
            }
            sums.fill(C::from_bias(self.c.low));
            for (&q, k) in kernel.column.weights.iter().zip(above..) {
                accumulate_column(&mut sums, q, ring.line(k));
            }
            finish(&sums, kernel.column.division, self.c.high, max, &mut out);
            store(self.place, &out, row);
        });
    }
}
