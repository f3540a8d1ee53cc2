//! The peak rate of the link to the card, for comparison with the ring: plain copies in both directions at
//! once.
//!
//! ```text
//! stream 0   | up | up | up | up ..      8 blocks in turn on each side, so that none comes from a cache
//! stream 1   | down | down | down ..
//! ```
#![allow(unsafe_code)]

use crate::engine::EngineError;
use crate::engine::cuda::driver::device::{Device, check};
use crate::engine::cuda::driver::memory::{DeviceMemory, PinnedMemory};
use crate::engine::cuda::driver::stream::Stream;
use crate::frame::Memory;
use cudarc::driver::sys;
use std::time::{Duration, Instant};

/// Buffers on each side and in each direction: several, so that copies do not come from a cache.
const BUFFERS: usize = 8;
/// Copies before the clock starts.
const WARM_UP: usize = 64;

/// The time of `copies` uploads and as many downloads, at the same time, of `bytes` bytes each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duplex {
    /// Bytes of one copy.
    pub bytes: usize,
    /// Copies in each direction.
    pub copies: usize,
    /// From the first copy's start to the end of the last.
    pub time: Duration,
}

impl Duplex {
    /// Copies a second in each direction: the most frames a second of a pipeline that uploads and downloads
    /// every frame.
    pub fn rate(&self) -> f64 {
        self.copies as f64 / self.time.as_secs_f64()
    }
}

/// Measures copies from and to page-locked memory, one stream in each direction, as many as fit `time`.
pub fn duplex(device: usize, bytes: usize, time: Duration) -> Result<Duplex, EngineError> {
    let device = Device::open(device)?;
    let host = |count: usize| {
        (0..count)
            .map(|_| PinnedMemory::new(&device, bytes, false))
            .collect::<Result<Vec<_>, _>>()
    };
    let (mut from, mut to) = (host(BUFFERS)?, host(BUFFERS)?);
    for (index, block) in from.iter_mut().enumerate() {
        block.bytes_mut().fill(index as u8 + 1);
    }
    let on_card: Vec<DeviceMemory> = (0..2 * BUFFERS)
        .map(|_| {
            DeviceMemory::try_new(&device, bytes)?.ok_or_else(|| EngineError::Device {
                doing: "measuring the link to the card".to_owned(),
                reason: format!("the card has no {} bytes left", 2 * BUFFERS * bytes),
            })
        })
        .collect::<Result<_, _>>()?;
    let streams = [Stream::new(&device)?, Stream::new(&device)?];
    let mut run = |copies: usize| -> Result<Duration, EngineError> {
        let began = Instant::now();
        for index in 0..copies {
            let at = index % BUFFERS;
            let (source, target) = (from[at].bytes().as_ptr(), to[at].bytes_mut().as_mut_ptr());
            // SAFETY: the blocks on both sides hold `bytes` and live until the streams were waited for, below
            // or in their drop.
            unsafe {
                check(
                    "measuring uploads",
                    sys::cuMemcpyHtoDAsync_v2(
                        on_card[at].pointer(),
                        source.cast(),
                        bytes,
                        streams[0].handle(),
                    ),
                )?;
                check(
                    "measuring downloads",
                    sys::cuMemcpyDtoHAsync_v2(
                        target.cast(),
                        on_card[BUFFERS + at].pointer(),
                        bytes,
                        streams[1].handle(),
                    ),
                )?;
            }
        }
        streams[0].synchronise()?;
        streams[1].synchronise()?;
        Ok(began.elapsed())
    };
    let measured = run(WARM_UP).and_then(|warm| {
        let wanted = time.as_secs_f64() / (warm.as_secs_f64() / WARM_UP as f64);
        let copies = (wanted as usize).max(WARM_UP);
        run(copies).map(|time| Duplex { bytes, copies, time })
    });
    // Nothing may be freed while a copy still uses it, after an error either.
    for stream in &streams {
        let _ = stream.synchronise();
    }
    measured
}
