//! What the host's memory carries: a plain copy by some threads.

use super::effort::Effort;
use super::spread::Spread;
use crate::engine::EngineError;
use rayon::prelude::*;
use std::time::Instant;

/// 10^9 bytes a second, read and written, of copying blocks of `bytes` by `threads` threads. The blocks that take turns are together at
/// least `cache` bytes.
pub(super) fn host_copy(
    bytes: usize,
    threads: usize,
    cache: u64,
    effort: Effort,
) -> Result<f64, EngineError> {
    const MOST_TURNS: usize = 64;
    let team = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|cause| EngineError::Unavailable(format!("{threads} threads cannot be started: {cause}")))?;
    let turns = (cache as usize).div_ceil(2 * bytes.max(1)).clamp(2, MOST_TURNS);
    let from: Vec<Vec<u8>> = (0..turns).map(|turn| vec![turn as u8 + 1; bytes]).collect();
    let mut to: Vec<Vec<u8>> = (0..turns).map(|_| vec![0; bytes]).collect();
    let part = bytes.div_ceil(threads.max(1)).max(1);
    let mut copy = |turn: usize| {
        let (from, to) = (&from[turn % turns], &mut to[turn % turns]);
        let began = Instant::now();
        if threads <= 1 {
            to.copy_from_slice(from);
        } else {
            team.install(|| {
                to.par_chunks_mut(part)
                    .zip(from.par_chunks(part))
                    .for_each(|(to, from)| to.copy_from_slice(from));
            });
        }
        std::hint::black_box(&to);
        began.elapsed().as_secs_f64() * 1e3
    };
    (0..turns).for_each(|turn| {
        copy(turn);
    });
    let (began, mut times) = (Instant::now(), Vec::new());
    while times.len() < effort.rounds.0.max(1)
        || (times.len() < effort.rounds.1 && began.elapsed() < effort.time)
    {
        times.push(copy(times.len()));
    }
    let median = Spread::of(&times).map_or(f64::INFINITY, |s| s.median);
    Ok(2.0 * bytes as f64 / 1e9 / (median.max(1e-6) / 1e3))
}
