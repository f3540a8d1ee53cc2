//! The engine without a filter: the baseline that shows what decoding and encoding alone take.

use super::{Engine, EngineError};
use crate::frame::{Allocator, Buffer, Frame, Pageable};
use std::collections::VecDeque;
use std::sync::Arc;

/// What it says of itself.
pub(crate) const DESCRIPTION: &str = "none: frames pass unfiltered";

/// Hands every frame on as it came, without a copy.
#[derive(Default)]
pub struct NoFilter {
    done: VecDeque<Frame>,
}

impl Engine for NoFilter {
    fn name(&self) -> &'static str {
        "none"
    }

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn submit(&mut self, input: Frame, _output: Buffer, _row_alignment: usize) -> Result<(), EngineError> {
        self.done.push_back(input);
        Ok(())
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        Ok(self.done.pop_front())
    }
}
