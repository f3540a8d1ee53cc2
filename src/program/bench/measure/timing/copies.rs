//! The rate of the host's memory: plain copies of pictures by several threads.

use super::effort::Effort;
use super::spread::Spread;
use crate::engine::EngineError;
use std::time::Instant;

/// Pictures that each of several threads copies for one time, so that waking it does not count.
const STRETCH: usize = 4;

/// Milliseconds that a copy of a picture of `bytes` bytes takes while `threads` threads copy, each pictures
/// of its own. Pictures and copies used in turn have at least `together` bytes in total.
pub fn time_copies(
    bytes: usize,
    threads: usize,
    together: u64,
    effort: Effort,
) -> Result<Spread, EngineError> {
    let refused = |cause: String| EngineError::Unavailable(format!("copies cannot be timed: {cause}"));
    let (bytes, threads) = (bytes.max(1), threads.max(1));
    let team = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|cause| refused(cause.to_string()))?;
    // Of each thread.
    let turns = (together as usize).div_ceil(2 * bytes * threads).max(2);
    // Written to, so that the system's work for pages used for the first time does not count.
    let mut memory: Vec<(Vec<u8>, Vec<u8>)> = (0..threads)
        .map(|_| (vec![1; turns * bytes], vec![2; turns * bytes]))
        .collect();
    let copy = |(from, to): &mut (Vec<u8>, Vec<u8>), turn: usize| {
        let at = turn % turns * bytes;
        to[at..at + bytes].copy_from_slice(&from[at..at + bytes]);
        std::hint::black_box(to);
    };
    let (mut times, mut turn) = (Vec::new(), 0);
    let began = Instant::now();
    while times.len() < effort.rounds.0.max(1)
        || (times.len() < effort.rounds.1 && began.elapsed() < effort.time)
    {
        let start = Instant::now();
        let copied = if threads == 1 {
            memory.iter_mut().for_each(|mine| copy(mine, turn));
            1
        } else {
            team.scope(|scope| {
                for mine in &mut memory {
                    scope.spawn(|_| (0..STRETCH).for_each(|k| copy(mine, turn + k)));
                }
            });
            STRETCH * threads
        };
        turn += copied / threads;
        times.push(start.elapsed().as_secs_f64() * 1e3 / copied as f64);
    }
    Spread::of(&times).ok_or_else(|| refused("the clock gave no times".to_owned()))
}
