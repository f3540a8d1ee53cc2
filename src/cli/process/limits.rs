//! Limits of memory: the size that a header claims is compared with the machine before anything is allocated.

use crate::cli::Failure;
use framepipe::pipeline::Job;
use framepipe::wording::mebibytes;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Reads a number of threads, of parallel jobs, or of frames in a queue.
pub(crate) fn count(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= MOST);
    number.ok_or_else(|| format!("write a number from 1 to {MOST}"))
}

/// Reads the length of a queue.
pub(crate) fn queue(text: &str) -> Result<usize, String> {
    count(text).map(NonZeroUsize::get)
}

/// Reads a number of bytes such as 500M.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..]
        .to_ascii_uppercase()
        .trim_end_matches("IB")
        .trim_end_matches('B')
    {
        "" => 1_u64,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => 0,
    };
    let number: Option<f64> = digits.parse().ok().filter(|&n| n > 0.0 && unit > 0);
    number
        .map(|n| (n * unit as f64) as u64)
        .ok_or_else(|| "write a size such as 500M or 4G".to_owned())
}

/// More than any machine can use.
const MOST: usize = 1024;

/// The memory that the frame buffers of all parallel jobs may take.
pub(crate) struct MemoryBudget {
    /// Bytes; `None` if the memory of the machine is not known.
    allowed: Option<u64>,
    /// The user set it.
    is_own: bool,
    taken: Mutex<u128>,
    left: Condvar,
}

/// A job's share of the memory, until it is dropped.
pub(crate) struct Part<'a> {
    budget: &'a MemoryBudget,
    bytes: u128,
}

impl MemoryBudget {
    /// `most` bytes, or three quarters of the memory.
    pub(crate) fn new(most: Option<u64>) -> MemoryBudget {
        MemoryBudget {
            allowed: most.or_else(|| available().map(|bytes| bytes / 4 * 3)),
            is_own: most.is_some(),
            taken: Mutex::new(0),
            left: Condvar::new(),
        }
    }

    /// Room for a job, once enough of the others have ended. One that does not fit alone is refused.
    pub(crate) fn enter(&self, job: &Job) -> Result<Part<'_>, Failure> {
        self.take(job.buffer_bytes())
    }

    fn take(&self, bytes: u128) -> Result<Part<'_>, Failure> {
        let mut taken = self.taken();
        if let Some(allowed) = self.allowed.map(u128::from) {
            if bytes > allowed {
                return Err(self.refusal(bytes, allowed));
            }
            while *taken + bytes > allowed {
                taken = self.left.wait(taken).unwrap_or_else(PoisonError::into_inner);
            }
        }
        *taken += bytes;
        Ok(Part { budget: self, bytes })
    }

    fn refusal(&self, bytes: u128, allowed: u128) -> Failure {
        Failure::Failed(format!(
            "the frame buffers would take {}, and {} allows {}; a smaller --queue or fewer --workers take \
             less",
            mebibytes(bytes),
            if self.is_own {
                "--max-memory"
            } else {
                "three quarters of this machine's memory"
            },
            mebibytes(allowed),
        ))
    }

    fn taken(&self) -> MutexGuard<'_, u128> {
        // A number stays valid even if the thread that held the lock panicked.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        *self.budget.taken() -= self.bytes;
        self.budget.left.notify_all();
    }
}

/// Bytes of memory of the machine, or of the control group if that is less.
fn available() -> Option<u64> {
    let number = |path: &Path| -> Option<u64> { fs::read_to_string(path).ok()?.trim().parse().ok() };
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let machine = line.split_whitespace().next()?.parse::<u64>().ok()? << 10;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let root = Path::new("/sys/fs/cgroup");
    let limits = [
        own.and_then(|own| number(&root.join(own.trim_start_matches('/')).join("memory.max"))),
        number(&root.join("memory.max")),
        number(&root.join("memory/memory.limit_in_bytes")),
    ];
    limits.into_iter().flatten().chain([machine]).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[test]
    fn jobs_wait_for_room_and_one_that_never_fits_is_refused() {
        let budget = MemoryBudget::new(Some(100));
        assert!(matches!(budget.take(101), Err(Failure::Failed(text)) if text.contains("--max-memory")));
        let first = budget.take(60).unwrap();
        let is_in = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _second = budget.take(60).unwrap();
                is_in.store(true, Ordering::SeqCst);
            });
            let _beside = budget.take(40).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            assert!(!is_in.load(Ordering::SeqCst));
            drop(first);
        });
        assert!(is_in.load(Ordering::SeqCst) && *budget.taken() == 0);
    }
}
