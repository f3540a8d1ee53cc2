//! All cores: the rows of a frame shared out over threads.
//!
//! `rows` holds the inner loops, free of threads and of formats; a loop for an instruction set belongs beside it.

mod alpha;
mod rows;
mod strip;

use super::{Engine, EngineError};
use crate::filter::{Chain, Plan, Step};
use crate::frame::{Allocator, Buffer, Colour, Frame, Layout, Pageable, PixelFormat};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// The threaded engine.
pub struct Cpu {
    chain: Chain,
    threads: rayon::ThreadPool,
    plan: Option<(PixelFormat, Colour, Arc<Plan>)>,
    /// Pictures between the steps of a chain, kept from frame to frame.
    between: [Vec<u8>; 2],
    premultiplied: Vec<u8>,
    done: VecDeque<Frame>,
}

/// A picture to read.
#[derive(Clone, Copy)]
struct Picture<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
}

impl<'a> Picture<'a> {
    /// Row `y` of plane `index`, without its padding.
    fn row(&self, index: usize, y: usize) -> &'a [u8] {
        let start = self.layout.planes()[index].offset + y * self.layout.planes()[index].stride;
        &self.bytes[start..start + self.layout.row_bytes(index)]
    }
}

/// Rows of one plane of the result, for one thread to write.
struct Strip<'a> {
    plane: usize,
    first_row: usize,
    rows: usize,
    bytes: &'a mut [u8],
}

impl Cpu {
    /// An engine that applies `chain` with `threads` threads (0: one a core).
    pub fn new(chain: Chain, threads: usize) -> Result<Cpu, EngineError> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("convolve-{i}"))
            .build()
            .map_err(|e| EngineError::Unavailable(format!("cannot start the engine's threads: {e}")))?;
        Ok(Cpu {
            chain,
            threads,
            plan: None,
            between: [Vec::new(), Vec::new()],
            premultiplied: Vec::new(),
            done: VecDeque::new(),
        })
    }

    fn plan(&mut self, format: PixelFormat, colour: Colour) -> Result<Arc<Plan>, EngineError> {
        match &self.plan {
            Some((f, c, plan)) if *f == format && *c == colour => Ok(Arc::clone(plan)),
            _ => {
                let plan = Arc::new(Plan::new(&self.chain, format, &colour)?);
                self.plan = Some((format, colour, Arc::clone(&plan)));
                Ok(plan)
            }
        }
    }

    fn apply(&mut self, step: &Step, input: Picture<'_>, layout: &Layout, output: &mut [u8]) {
        let threads = self.threads.current_num_threads();
        let convolve = |input: Picture<'_>, output: &mut [u8]| {
            strips(layout, output, threads)
                .into_par_iter()
                .for_each(|mut strip| strip::convolve(step, input, layout, &mut strip));
        };
        let premultiplied = &mut self.premultiplied;
        self.threads.install(|| match &step.alpha {
            None => convolve(input, output),
            Some(alpha) => {
                premultiplied.resize(layout.size(), 0);
                strips(layout, premultiplied, threads)
                    .into_par_iter()
                    .for_each(|mut strip| alpha::premultiply(step, input, layout, &mut strip));
                convolve(
                    Picture {
                        layout,
                        bytes: premultiplied,
                    },
                    output,
                );
                alpha::unpremultiply(step, alpha, input, layout, output);
            }
        });
    }
}

/// Cuts the planes of a picture into strips of rows, about four a thread, so that a slow thread holds nobody up for long.
fn strips<'a>(layout: &Layout, mut bytes: &'a mut [u8], threads: usize) -> Vec<Strip<'a>> {
    /// Fewer rows than this make the rows that neighbouring strips both read too dear.
    const LEAST_ROWS: usize = 32;
    let mut strips = Vec::new();
    let mut at = 0;
    for (index, plane) in layout.planes().iter().enumerate() {
        let (_, rest) = bytes.split_at_mut(plane.offset - at);
        let len = plane.stride * (plane.height - 1) + layout.row_bytes(index);
        let (mut own, rest) = rest.split_at_mut(len);
        at = plane.offset + len;
        bytes = rest;
        let rows = plane.height.div_ceil(4 * threads).max(LEAST_ROWS);
        let mut first_row = 0;
        while first_row < plane.height {
            let rows = rows.min(plane.height - first_row);
            let end = (rows * plane.stride).min(own.len());
            let (strip, rest) = own.split_at_mut(end);
            own = rest;
            strips.push(Strip {
                plane: index,
                first_row,
                rows,
                bytes: strip,
            });
            first_row += rows;
        }
    }
    strips
}

impl Engine for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn description(&self) -> String {
        format!("cpu: {} threads", self.threads.current_num_threads())
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let (format, width, height) = (input.format(), input.layout().width(), input.layout().height());
        let plan = self.plan(format, input.metadata.colour)?;
        let layout = Layout::new(format, width, height, row_alignment)?;
        let mut result = Frame::new(layout, output)?;
        let inner = Layout::new(format, width, height, 64)?;
        let mut between = std::mem::take(&mut self.between);
        let [from, to] = &mut between;
        for (index, step) in plan.steps.iter().enumerate() {
            let picture = match index {
                0 => Picture {
                    layout: input.layout(),
                    bytes: input.bytes(),
                },
                _ => Picture {
                    layout: &inner,
                    bytes: from,
                },
            };
            if index + 1 == plan.steps.len() {
                self.apply(step, picture, &layout, result.bytes_mut());
            } else {
                to.resize(inner.size(), 0);
                self.apply(step, picture, &inner, to);
                std::mem::swap(from, to);
            }
        }
        self.between = between;
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
