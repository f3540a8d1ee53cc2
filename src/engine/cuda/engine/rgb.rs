//! Converts frames on a card to RGB there (docs/arithmetic.md).
//!
//! ```text
//! frame's memory  | Y | U | V |  --kernel-->  | R G B R G B ...      a block of the same card's memory
//! ```
//!
//! The host waits for the kernel, so that the result may be used on any stream.

use super::MAX_ROW;
use super::resident::{CardMemory, CardPicture};
use crate::engine::EngineError;
use crate::engine::cuda::compile::cache::Cache;
use crate::engine::cuda::compile::{Recipe, Source};
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::module::Module;
use crate::engine::cuda::driver::pictures::card_frame::Blocks;
use crate::engine::cuda::driver::stream::Stream;
use crate::engine::cuda::launch::parameters;
use crate::engine::rgb::{FACTOR_BITS, RgbIntegers};
use crate::frame::{Colour, FieldOrder, Layout, PixelFormat};
use std::sync::Arc;

/// Threads of a block.
const BLOCK: (u32, u32) = (64, 4);

/// The kernel for frames of `format`.
fn recipe(format: PixelFormat, integers: &RgbIntegers) -> Recipe {
    Recipe {
        source: Source::Rgb,
        parameters: vec![
            ("SAMPLE_BYTES", format.bytes_per_sample() as i64),
            ("COMPONENTS", integers.count as i64),
            ("LOG2_X", i64::from(integers.log2.0)),
            ("LOG2_Y", i64::from(integers.log2.1)),
            ("FIELDS", i64::from(integers.has_fields)),
            ("FACTOR_BITS", i64::from(FACTOR_BITS)),
            ("BLOCK_W", i64::from(BLOCK.0)),
            ("BLOCK_H", i64::from(BLOCK.1)),
        ],
    }
}

/// The kernel that converts frames of `format` and of this order of fields to RGB; an error if there is none.
pub fn rgb_recipe(format: PixelFormat, field_order: FieldOrder) -> Result<Recipe, EngineError> {
    RgbIntegers::new(format, (&Colour::default(), field_order), 1).map(|integers| recipe(format, &integers))
}

/// Converts frames on one card to RGB, one after another, of any sizes and formats.
pub struct CardRgb {
    // Each call waits for its kernel, so that nothing is in flight when this is dropped.
    device: Arc<Device>,
    stream: Stream,
    cache: Cache,
    /// The kernel that was used last.
    kernel: Option<(Recipe, Module)>,
    /// The memory of results.
    blocks: Option<Arc<Blocks>>,
}

impl CardRgb {
    /// For frames on card number `device`.
    pub fn new(device: usize) -> Result<CardRgb, EngineError> {
        let device = Device::open(device)?;
        Ok(CardRgb {
            stream: Stream::new(&device)?,
            cache: Cache::of_user(),
            kernel: None,
            blocks: None,
            device,
        })
    }

    /// Waits for all work on the card, also of other libraries, for frames that these may have written to.
    pub fn wait_for_others(&self) -> Result<(), EngineError> {
        self.device.synchronise()
    }

    /// Converts the frame in `memory` to RGB: rows without padding, with 8 bits a sample for samples of 8
    /// bits and 16 at full scale for all others, without alpha. The result is complete when this returns.
    ///
    /// An error if samples are floating-point numbers, if the matrix is not known, if the memory is another
    /// card's or too small, or if the card is short of memory or fails.
    pub fn convert(
        &mut self,
        memory: &CardMemory,
        layout: &Layout,
        facts: (&Colour, FieldOrder),
    ) -> Result<(Layout, CardMemory), EngineError> {
        let (format, width, height) = (layout.format(), layout.width(), layout.height());
        let failed = |reason: String| EngineError::Device {
            doing: format!("making RGB of a frame of {width}x{height} pixels on the CUDA device"),
            reason,
        };
        if width.max(height) > MAX_ROW / 3 {
            return Err(failed(format!(
                "kernels count the samples of a row up to {MAX_ROW}"
            )));
        }
        if !memory.holds(&self.device, layout.size()) {
            return Err(failed(
                "its memory is another card's, or smaller than it".to_owned(),
            ));
        }
        CardPicture {
            pointer: memory.pointer(),
            layout: *layout,
        }
        .check()?;
        let integers = RgbIntegers::new(format, facts, height)?;
        let result = Layout::new(integers.result, width, height, 1)?;
        self.device.bind()?;
        let wanted = recipe(format, &integers);
        let kernel = match self.kernel.take_if(|(recipe, _)| *recipe == wanted) {
            Some(kernel) => kernel,
            None => {
                let image = wanted.image(&self.device, &self.cache)?;
                (wanted, Module::load(&self.device, &image)?)
            }
        };
        let function = self.kernel.insert(kernel).1.function(c"to_rgb")?;
        let fitting = self.blocks.take_if(|blocks| blocks.size() == result.size());
        let blocks = fitting.unwrap_or_else(|| Arc::new(Blocks::new(&self.device, result.size())));
        let rgb = self.blocks.insert(blocks).take(&self.stream)?;
        let mut launch = parameters::Rgb {
            result: rgb.pointer(),
            result_pitch: result.planes()[0].stride as i64,
            zero: integers.zeros,
            factor: integers.factors,
            origin: integers.origin.into(),
            shift: format.shift() as i32,
            width: width as i32,
            height: height as i32,
            ..parameters::Rgb::default()
        };
        for (k, (plane, channel)) in integers.places.into_iter().enumerate() {
            let plane = &layout.planes()[plane];
            let before = plane.offset + channel * format.bytes_per_sample();
            launch.component[k] = memory.pointer() + before as u64;
            launch.pitch[k] = plane.stride as i64;
            launch.step[k] = plane.channels as i32;
        }
        parameters::to_rgb(function, BLOCK, self.stream.handle(), launch)?;
        let ready = rgb.ready();
        let ended = ready.record(&self.stream).and_then(|number| {
            rgb.wait()?;
            ready.saw(number);
            Ok(())
        });
        if ended.is_err() {
            // The kernel may still be running, and its memory must not be used again before it has ended.
            let _ = self.stream.synchronise();
        }
        ended?;
        Ok((result, CardMemory::lent(rgb)))
    }
}
