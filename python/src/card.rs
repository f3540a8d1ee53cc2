//! Arrays that lie on an NVIDIA card, filtered there, on a stream of the caller's.
//!
//! ```text
//!  array[n, h, w, c]   one picture after another, each where the Python half says that it lies
//! ```
#![allow(unsafe_code)]

use crate::dlpack::SampleType;
use crate::failure::Failure;
use crate::idle::Idle;
use crate::recipe::{Recipe, caveats, channels_of, no_luma_on_card};
use crate::shared_memory::SharedMemory;
use framepipe::PixelFormat;
use framepipe::engine::EngineError;
use framepipe::engine::cuda::{self, CardFilter, CardPicture, CardRgb, keeping_context};
use framepipe::frame::{Colour, FieldOrder, Frame, Layout};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Filters that are kept with their kernels and memory for the next call.
const MOST_IDLE: usize = 4;

/// A filter on a card, and what there is to say of its masks.
struct Worker {
    filter: CardFilter,
    caveats: Vec<String>,
}

/// By recipe and the card's number.
static IDLE: Idle<(Recipe, usize), Worker> = Idle::new(MOST_IDLE);

/// After a fork.
pub(crate) fn forget_idle() {
    IDLE.forget();
}

/// Memory of a card, for a result or of a frame.
#[pyclass(frozen, module = "framepipe._framepipe")]
pub(crate) struct CardMemory {
    /// Its card's number.
    #[pyo3(get)]
    device: usize,
    memory: SharedMemory,
    /// Its address was handed out, to somebody who may write to it.
    is_known: AtomicBool,
}

impl CardMemory {
    fn with(device: usize, memory: SharedMemory) -> CardMemory {
        CardMemory {
            device,
            memory,
            is_known: AtomicBool::new(false),
        }
    }

    /// The memory of a frame that lies on a card, whose picture is there when this returns; the frame itself
    /// if it lies on none.
    pub(crate) fn of_frame(frame: Frame) -> Result<Result<CardMemory, Frame>, Failure> {
        let taken = keeping_context(|| cuda::CardMemory::of_frame(frame))?;
        Ok(taken.map(|(memory, device)| CardMemory::with(device, SharedMemory::new(memory))))
    }

    /// RGB of the frame in it, of this layout and with these facts, which is there when this returns.
    pub(crate) fn to_rgb(
        &self,
        maker: &RgbMaker,
        layout: &Layout,
        facts: (&Colour, FieldOrder),
    ) -> Result<(Layout, CardMemory), Failure> {
        let Some(memory) = self.memory.memory() else {
            return Err(Failure::error("the frame's memory is gone"));
        };
        let is_known = self.is_known.load(Ordering::Relaxed);
        let (layout, rgb) = maker.make((memory, is_known), self.device, layout, facts)?;
        Ok((layout, CardMemory::with(self.device, SharedMemory::new(rgb))))
    }

    /// A copy on the host.
    pub(crate) fn fetch(&self) -> Result<Vec<u8>, Failure> {
        let memory = self.memory.memory();
        Ok(memory.map_or(Ok(Vec::new()), |memory| keeping_context(|| memory.fetch()))?)
    }

    /// The memory itself, which lives as long as anybody holds it.
    pub(crate) fn shared(&self) -> SharedMemory {
        self.is_known.store(true, Ordering::Relaxed);
        self.memory.clone()
    }
}

#[pymethods]
impl CardMemory {
    #[new]
    fn new(py: Python<'_>, device: usize, len: usize) -> Result<CardMemory, Failure> {
        let memory = py.detach(|| keeping_context(|| cuda::CardMemory::new(device, len)))?;
        Ok(CardMemory::with(device, SharedMemory::new(memory)))
    }

    /// The same memory, from a byte on.
    fn after(&self, offset: u64) -> CardMemory {
        CardMemory::with(self.device, self.shared().after(offset))
    }

    /// The address of its first byte.
    #[getter]
    fn pointer(&self) -> u64 {
        self.is_known.store(true, Ordering::Relaxed);
        self.memory.pointer()
    }

    /// A capsule of DLPack with an array in this memory: its shape, its strides in samples, the bits of a
    /// sample, and whether that is a floating-point number or an unsigned integer.
    fn to_dlpack<'py>(
        &self,
        py: Python<'py>,
        shape: Vec<i64>,
        strides: Vec<i64>,
        bits: u8,
        is_float: bool,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let sample = SampleType::new(is_float, bits);
        crate::dlpack::export(py, self.shared(), self.device, shape, strides, sample)
    }
}

/// What makes RGB of a reader's frames on their card, from the first on that is asked for. The memory of what
/// it has made is used again, and freed with the reader and the last of its frames.
#[derive(Clone, Default)]
pub(crate) struct RgbMaker(Arc<Mutex<Converter>>);

#[derive(Default)]
struct Converter(Option<CardRgb>);

impl Drop for Converter {
    fn drop(&mut self) {
        if let Some(converter) = self.0.take() {
            keeping_context(|| drop(converter));
        }
    }
}

impl RgbMaker {
    /// To be called with the interpreter let go. Others may have enqueued what writes to the frame if
    /// `is_known` says that they know where it lies.
    fn make(
        &self,
        (memory, is_known): (&cuda::CardMemory, bool),
        device: usize,
        layout: &Layout,
        facts: (&Colour, FieldOrder),
    ) -> Result<(Layout, cuda::CardMemory), EngineError> {
        // Whatever a call left half-done, the next makes anew.
        let mut converter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keeping_context(|| {
            let converter = match &mut converter.0 {
                Some(converter) => converter,
                none => none.insert(CardRgb::new(device)?),
            };
            if is_known {
                converter.wait_for_others()?;
            }
            converter.convert(memory, layout, facts)
        })
    }
}

/// The number of the card on which an address lies; `None` if it lies on none.
#[pyfunction]
pub(crate) fn card_of(pointer: u64) -> Result<Option<usize>, Failure> {
    Ok(keeping_context(|| cuda::card_of(pointer))?)
}

/// The first sample's address, and bytes from picture to picture and from row to row.
type Place = (u64, isize, usize);

/// Filters the pictures at `source` into those at `target`, on a card, on `stream`, and waits for them if it
/// is to. `shape` is how many there are, rows, and pixels in a row. Gives what there is to say of the masks.
#[pyfunction]
#[pyo3(signature = (source, target, shape, filters, *, border, planes, format, device, stream, wait))]
// Python's arguments come one by one.
#[allow(clippy::too_many_arguments)]
pub(crate) fn filter_on_card(
    py: Python<'_>,
    source: Place,
    target: Place,
    shape: (usize, usize, usize),
    filters: Vec<String>,
    border: &str,
    planes: &str,
    format: &str,
    device: usize,
    stream: usize,
    wait: bool,
) -> Result<Vec<String>, Failure> {
    let format: PixelFormat = format.parse()?;
    // Refuses formats of several planes.
    channels_of(format.name(), format.bytes_per_sample(), format.is_float())?;
    let key = (Recipe::new(filters, border, planes, 0)?, device);
    if key.0.takes_luma_of(format) {
        return Err(no_luma_on_card("the array lies"));
    }
    let idle = IDLE.take(&key);
    py.detach(|| {
        keeping_context(|| {
            let mut worker = match idle {
                Some(worker) => worker,
                None => {
                    let chain = key.0.chain()?;
                    Worker {
                        caveats: caveats(&chain),
                        filter: CardFilter::new(chain, device)?,
                    }
                }
            };
            filter_pictures(&mut worker.filter, (source, target), shape, format, stream)?;
            if wait {
                worker.filter.wait()?;
            }
            Ok((worker, key))
        })
    })
    .map(|(worker, key)| {
        let caveats = worker.caveats.clone();
        let surplus = match key.0.may_be_kept() {
            true => IDLE.keep(key, worker),
            false => Some(worker),
        };
        py.detach(|| keeping_context(|| drop(surplus)));
        caveats
    })
}

fn filter_pictures(
    filter: &mut CardFilter,
    (source, target): (Place, Place),
    (count, height, width): (usize, usize, usize),
    format: PixelFormat,
    stream: usize,
) -> Result<(), EngineError> {
    let layout = |pitch: usize| {
        let row = Layout::new(format, width, height, 1)?.row_bytes(0);
        // What cannot be counted is refused as a layout that does not fit.
        let size = pitch.saturating_mul(height.saturating_sub(1)).saturating_add(row);
        Layout::with_strides(format, width, height, &[pitch], size)
    };
    let layouts = (layout(source.2)?, layout(target.2)?);
    let picture = |(pointer, step, _): Place, layout, index: usize| CardPicture {
        pointer: pointer.wrapping_add_signed(step as i64 * index as i64),
        layout,
    };
    for index in 0..count {
        let (from, to) = (
            picture(source, layouts.0, index),
            picture(target, layouts.1, index),
        );
        // SAFETY: arrays of the caller's, whose owners say that they lie there. The Python half has seen that
        // they are on this card and do not overlap, and holds them until the call is over; then either all is
        // done, or their library frees memory in the order of the stream.
        unsafe { filter.filter(&from, &to, stream) }?;
    }
    Ok(())
}
