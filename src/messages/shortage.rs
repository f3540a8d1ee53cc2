//! What a run lacked when a call failed: memory or threads. Libraries often say no more than that they
//! failed, and a codec is no better for being exchanged then.

use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// What the system gave no more of. Shown as a sentence, with the limit, and with what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// Memory.
    Memory,
    /// Threads.
    Threads,
}

/// As close as this to the limit, nothing of the size of a picture or of a thread's stack can be had.
const CLOSE: u64 = 64 << 20;

impl Shortage {
    /// What lacked if no thread could be started: memory for its stack, or the thread itself.
    pub fn of_thread() -> Shortage {
        if is_memory_used_up() {
            Shortage::Memory
        } else {
            Shortage::Threads
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FEWER: &str = "use fewer --workers, --threads, --decoder-threads and --encoder-threads";
        match self {
            Shortage::Memory => {
                f.write_str("there is no more memory")?;
                match (getrlimit(Resource::As).current, peak()) {
                    (Some(limit), Some(peak)) => write!(
                        f,
                        ": this process may take {} MiB (ulimit -v) and has taken {}; raise the limit, or \
                         {FEWER}",
                        limit >> 20,
                        peak >> 20
                    ),
                    _ => write!(f, "; {FEWER}"),
                }?;
                f.write_str(", or a smaller --queue")
            }
            Shortage::Threads => {
                f.write_str("no more threads can be started")?;
                if let Some(limit) = getrlimit(Resource::Nproc).current {
                    write!(f, ", this user's limit being {limit} (ulimit -u)")?;
                }
                if let Some(limit) = group_threads() {
                    write!(f, ", the control group's {limit} (pids.max)")?;
                }
                write!(f, "; raise the limit, or {FEWER}")
            }
        }
    }
}

impl std::error::Error for Shortage {}

/// The error of a thread that could not be started, with what lacked.
pub fn thread_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            io::Error::new(error.kind(), Shortage::of_thread())
        }
        _ => error,
    }
}

/// True if this process has a limit on its memory and was close to it.
pub(crate) fn is_memory_used_up() -> bool {
    let limit = getrlimit(Resource::As).current;
    let used = limit.zip(peak());
    used.is_some_and(|(limit, peak)| peak.saturating_add(CLOSE) >= limit)
}

/// The most bytes of address space that this process has had.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

/// The threads and processes that the control group may have.
fn group_threads() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let group = Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/'));
    fs::read_to_string(group.join("pids.max"))
        .ok()?
        .trim()
        .parse()
        .ok()
}
