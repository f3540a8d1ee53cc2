//! A cell's figures from a case and its times.

use crate::engine::cuda::MemoryVariant;
use crate::program::bench::measure::case::{Arithmetic, Case};
use crate::program::bench::measure::error::BenchError;
use crate::program::bench::measure::sweep::{Cell, Scope};
use crate::program::bench::measure::timing::spread::Spread;

pub(super) fn cell(
    case: &Case,
    arithmetic: &Arithmetic,
    scope: Scope,
    times: &[f64],
) -> Result<Cell, BenchError> {
    let milliseconds = Spread::of(times).ok_or_else(|| BenchError::NoTimes(case.to_string()))?;
    let layout = case.layout()?;
    let bytes = 2 * layout.picture_bytes() as u64;
    let multiply_adds = arithmetic.multiply_adds;
    let giga_per_second = |amount: f64| amount / 1e9 / (milliseconds.median.max(1e-9) / 1e3);
    Ok(Cell {
        engine: String::new(),
        scope,
        variant: None,
        algorithm: arithmetic.algorithm.to_owned(),
        block: None,
        threads: None,
        filter: case.filter.label.clone(),
        mask_width: case.filter.mask.width(),
        mask_height: case.filter.mask.height(),
        format: case.format.to_string(),
        width: case.width,
        height: case.height,
        border: case.border.to_string(),
        milliseconds,
        warm_milliseconds: None,
        rows_timed: case.height,
        frames_in_turn: 0,
        bytes,
        multiply_adds,
        gigapixels_per_second: giga_per_second((case.width * case.height) as f64),
        gigabytes_per_second: giga_per_second(bytes as f64),
        gigamacs_per_second: giga_per_second(multiply_adds as f64),
        share_of_copy: None,
        share_of_arithmetic: None,
        reference_milliseconds: None,
        speed_up: None,
        published_milliseconds: None,
        published_speed_up: None,
        samples_checked: 0,
    })
}

impl Cell {
    pub(super) fn on_card(&mut self, memory: MemoryVariant, block: Option<(u32, u32)>) {
        self.engine = "cuda".to_owned();
        self.variant = Some(memory.name().to_owned());
        self.block = block.map(|(w, h)| format!("{w}x{h}"));
    }

    pub(super) fn against_reference(&mut self, milliseconds: f64) {
        self.reference_milliseconds = Some(milliseconds);
        self.speed_up = Some(milliseconds / self.milliseconds.median.max(1e-9));
    }
}
