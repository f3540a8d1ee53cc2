//! Engines that the next run reuses: a card's context with its compiled kernels, or the CPU's threads, are
//! created once.
//!
//! ```text
//! EnginePool --take--> PooledEngine, in a run --dropped with nothing in flight--> EnginePool
//!                                              '-dropped with frames in flight or after an error: gone
//! ```

use super::none::NoFilter;
use super::{Engine, EngineError};
use crate::frame::{Allocator, Buffer, DeviceHandle, Frame};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Engines between two runs, which all apply one chain with the same options. Clones share them.
#[derive(Clone, Default)]
pub struct EnginePool(Arc<Mutex<Vec<Box<dyn Engine>>>>);

impl EnginePool {
    /// An engine that has ended its run and `fits`, or a new one from `start`. Dropping it returns it to the
    /// pool, if all its frames were collected and no call failed.
    pub fn take(
        &self,
        fits: impl Fn(&dyn Engine) -> bool,
        start: impl FnOnce() -> Result<Box<dyn Engine>, EngineError>,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let pooled = {
            let mut engines = self.engines();
            let place = engines.iter().rposition(|engine| fits(engine.as_ref()));
            place.map(|place| engines.remove(place))
        };
        let engine = match pooled {
            Some(mut engine) => {
                engine.restart()?;
                engine
            }
            None => start()?,
        };
        Ok(Box::new(PooledEngine {
            engine,
            in_flight: 0,
            is_sound: true,
            pool: self.clone(),
        }))
    }

    fn engines(&self) -> MutexGuard<'_, Vec<Box<dyn Engine>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An engine that returns to its pool at the end of its run.
struct PooledEngine {
    engine: Box<dyn Engine>,
    /// Frames submitted and not collected.
    in_flight: usize,
    /// True if no call failed.
    is_sound: bool,
    pool: EnginePool,
}

impl PooledEngine {
    fn noted<T>(&mut self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        self.is_sound &= result.is_ok();
        result
    }
}

impl Engine for PooledEngine {
    fn inner(&self) -> Option<&dyn Engine> {
        Some(&*self.engine)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Engine> {
        Some(&mut *self.engine)
    }

    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn description(&self) -> String {
        self.engine.description()
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        self.engine.input_allocator()
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        self.engine.output_allocator()
    }

    fn result_device(&self) -> Result<DeviceHandle, &'static str> {
        self.engine.result_device()
    }

    fn leave_results(&mut self, on_device: bool) {
        self.engine.leave_results(on_device);
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        // Counted first: after a panic in the call the engine never returns to the pool.
        self.in_flight += 1;
        let submitted = self.engine.submit(input, output, row_alignment);
        self.noted(submitted)
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        let collected = self.engine.collect();
        let frame = self.noted(collected)?;
        if frame.is_some() {
            self.in_flight -= 1;
        }
        Ok(frame)
    }
}

impl Drop for PooledEngine {
    fn drop(&mut self) {
        if self.in_flight == 0 && self.is_sound {
            let engine = std::mem::replace(&mut self.engine, Box::new(NoFilter::default()));
            self.pool.engines().push(engine);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Layout, Pageable, PixelFormat};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn buffer() -> Buffer {
        Buffer::unpooled(Pageable.allocate(64).unwrap())
    }

    fn frame() -> Frame {
        let format = PixelFormat::from_name("gray").unwrap();
        Frame::new(Layout::new(format, 8, 2, 1).unwrap(), buffer()).unwrap()
    }

    #[test]
    fn an_engine_comes_back_unless_frames_or_trust_were_lost() {
        let (pool, started) = (EnginePool::default(), AtomicUsize::new(0));
        let take_fit = |fits: fn(&dyn Engine) -> bool| {
            let start = || -> Result<Box<dyn Engine>, EngineError> {
                started.fetch_add(1, Ordering::Relaxed);
                Ok(Box::new(NoFilter::default()))
            };
            pool.take(fits, start).unwrap()
        };
        let take = || take_fit(|_| true);
        for _ in 0..3 {
            let mut engine = take();
            engine.submit(frame(), buffer(), 1).unwrap();
            assert!(engine.collect().unwrap().is_some());
        }
        assert_eq!(started.load(Ordering::Relaxed), 1);
        // Two at a time are two engines, and both are kept.
        let two = (take(), take());
        assert_eq!(started.load(Ordering::Relaxed), 2);
        drop(two);
        assert_eq!(pool.engines().len(), 2);
        // Those that do not fit stay.
        drop(take_fit(|engine| engine.name() != "none"));
        assert_eq!((pool.engines().len(), started.load(Ordering::Relaxed)), (3, 3));
        drop(pool.engines().pop());
        // One is dropped with a frame in flight.
        let mut busy = take();
        busy.submit(frame(), buffer(), 1).unwrap();
        drop(busy);
        assert_eq!(pool.engines().len(), 1);
    }
}
