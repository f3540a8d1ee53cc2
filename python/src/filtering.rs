//! Arrays through an engine, picture by picture.
//!
//! The CPU engine reads and writes the arrays' own memory. The others take frames, so that pictures are
//! copied for them, in and out, several in flight.

use crate::array::Pictures;
use crate::failure::Failure;
use crate::idle::Idle;
use crate::recipe::{Recipe, caveats, channels_of};
use framepipe::engine::cuda::{Cuda, CudaOptions};
use framepipe::engine::reference::Reference;
use framepipe::engine::{Engine, EngineError, luma};
use framepipe::filter::{NAMED_MASKS, OWN_MASK};
use framepipe::frame::{Buffer, Frame, FramePool, Layout};
use framepipe::{Chain, Image, ImageFilter, ImageMut, PixelFormat};
use pyo3::prelude::*;

/// Filters that are kept with their threads and memory for the next call.
const MOST_IDLE: usize = 8;

/// Refuses names of no engine.
pub(crate) fn check_engine(name: &str) -> Result<(), Failure> {
    match name {
        "auto" | "cpu" | "cuda" | "reference" => Ok(()),
        _ => Err(no_engine(name)),
    }
}

fn no_engine(name: &str) -> Failure {
    Failure::value(format!("'{name}' is no engine; use auto, cpu, cuda or reference"))
}

/// The engine of a name, for frames.
pub(crate) fn engine(name: &str, chain: Chain, threads: usize) -> Result<Box<dyn Engine>, Failure> {
    let planes = chain.planes.clone();
    let engine: Box<dyn Engine> = match name {
        "auto" | "cpu" => Box::new(framepipe::engine::cpu::Cpu::new(chain, threads)?),
        "reference" => Box::new(Reference::new(chain)),
        "cuda" => Box::new(Cuda::new(chain, CudaOptions::default())?),
        _ => return Err(no_engine(name)),
    };
    Ok(luma::around(engine, &planes, true, threads)?)
}

/// The CPU engine of a recipe, and what there is to say of its masks.
struct Worker {
    filter: ImageFilter,
    caveats: Vec<String>,
}

static IDLE: Idle<Recipe, Worker> = Idle::new(MOST_IDLE);

impl Worker {
    fn new(recipe: &Recipe) -> Result<Worker, Failure> {
        let chain = recipe.chain()?;
        Ok(Worker {
            caveats: caveats(&chain),
            filter: ImageFilter::new(chain, recipe.threads())?,
        })
    }
}

/// After a fork.
pub(crate) fn forget_idle() {
    IDLE.forget();
}

/// The names of all filters, each with a line of what it does.
#[pyfunction]
pub(crate) fn masks() -> Vec<(&'static str, &'static str)> {
    let named = NAMED_MASKS.iter().map(|mask| (mask.name, mask.about));
    let own = (
        OWN_MASK,
        "your own numbers: integers, decimals or fractions; odd sides up to 63",
    );
    named.chain([own]).collect()
}

/// Filters the pictures of `source` into those of `target`: arrays of the same four axes (pictures, rows,
/// pixels, samples) that do not overlap. Gives what there is to say of the masks.
#[pyfunction]
#[pyo3(signature = (source, target, filters, *, border, planes, format, engine, threads))]
// Python's arguments come one by one.
#[allow(clippy::too_many_arguments)]
pub(crate) fn filter_pictures(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    target: &Bound<'_, PyAny>,
    filters: Vec<String>,
    border: &str,
    planes: &str,
    format: &str,
    engine: &str,
    threads: i64,
) -> Result<Vec<String>, Failure> {
    let (source, mut target) = (Pictures::of(source)?, Pictures::of(target)?);
    let is_same_shape = source.shape() == target.shape() && source.sample_bytes() == target.sample_bytes();
    if !is_same_shape || !target.is_writable() || source.overlaps(&target) {
        return Err(Failure::value(
            "the result needs an array of its own, of the same shape and type, that can be written to",
        ));
    }
    let samples = source.shape()[3];
    if channels_of(format, source.sample_bytes(), source.is_float())? != samples {
        return Err(Failure::value(format!(
            "{format} does not have {samples} samples a pixel, as the array has"
        )));
    }
    let format: PixelFormat = format.parse()?;
    let recipe = Recipe::new(filters, border, planes, threads)?;
    if matches!(engine, "auto" | "cpu") {
        let mut worker = match IDLE.take(&recipe) {
            Some(worker) => worker,
            None => Worker::new(&recipe)?,
        };
        py.detach(|| in_place(&mut worker.filter, &source, &mut target, format))?;
        let caveats = worker.caveats.clone();
        if recipe.may_be_kept() {
            IDLE.keep(recipe, worker);
        }
        return Ok(caveats);
    }
    let chain = recipe.chain()?;
    let caveats = caveats(&chain);
    let mut engine = self::engine(engine, chain, recipe.threads())?;
    py.detach(|| through_frames(engine.as_mut(), &source, &mut target, format))?;
    Ok(caveats)
}

/// Lets Ctrl-C through between two pictures.
fn check_signals() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}

/// Filters from memory to memory.
fn in_place(
    filter: &mut ImageFilter,
    source: &Pictures<'_>,
    target: &mut Pictures<'_>,
    format: PixelFormat,
) -> Result<(), Failure> {
    let [count, height, width, _] = source.shape();
    let to = [target.row_stride()];
    for index in 0..count {
        if index > 0 {
            check_signals()?;
        }
        let from = [source.row_stride()];
        let image = Image::with_strides(source.picture(index), format, width, height, &from)?;
        let mut result = ImageMut::with_strides(target.picture_mut(index), format, width, height, &to)?;
        filter.filter(&image, &mut result)?;
    }
    Ok(())
}

/// Filters by way of frames in the engine's own memory, as many at a time as it takes.
fn through_frames(
    engine: &mut dyn Engine,
    source: &Pictures<'_>,
    target: &mut Pictures<'_>,
    format: PixelFormat,
) -> Result<(), Failure> {
    let [count, height, width, _] = source.shape();
    let layout = Layout::new(format, width, height, 64)?;
    let depth = engine.depth().max(1);
    let inputs = FramePool::new(depth + 1, engine.input_allocator());
    let outputs = FramePool::new(depth + 1, engine.output_allocator());
    let free = |pool: &FramePool| {
        let buffer = pool.try_take();
        buffer.unwrap_or_else(|| Buffer::unpooled(Box::new(Vec::new())))
    };
    let strides = [target.row_stride()];
    let (mut given, mut taken) = (0, 0);
    while taken < count {
        if given < count && given - taken < depth {
            let from = [source.row_stride()];
            let image = Image::with_strides(source.picture(given), format, width, height, &from)?;
            let mut frame = Frame::new(layout, free(&inputs))?;
            frame.sequence = given as u64;
            for y in 0..height {
                frame.row_mut(0, y).copy_from_slice(image.row(0, y));
            }
            engine.submit(frame, free(&outputs), 64)?;
            given += 1;
            continue;
        }
        check_signals()?;
        let Some(result) = engine.collect()? else {
            let lost = "the engine gave no result for a picture".to_owned();
            return Err(EngineError::Unavailable(lost).into());
        };
        let place = target.picture_mut(taken);
        let mut place = ImageMut::with_strides(place, format, width, height, &strides)?;
        for y in 0..height {
            place.row_mut(0, y).copy_from_slice(result.row(0, y));
        }
        taken += 1;
    }
    Ok(())
}
