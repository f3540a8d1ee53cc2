//! What a run may take: a header is a claim, and is held against the machine before anything is allocated.

use super::Failure;
use framepipe::pipeline::Job;
use std::fs;
use std::path::Path;

/// Refuses a job whose frame buffers take more than `most` bytes, or than three quarters of the memory.
pub(super) fn check_memory(job: &Job, most: Option<u64>) -> Result<(), Failure> {
    let needed = job.buffer_bytes();
    let allowed = most.or_else(|| available().map(|bytes| bytes / 4 * 3));
    match allowed {
        Some(allowed) if needed > u128::from(allowed) => Err(Failure::Failed(format!(
            "the frame buffers would take {}, and {} allows {}; a smaller --queue or fewer --workers take \
             less",
            mega(needed),
            if most.is_some() {
                "--max-memory"
            } else {
                "three quarters of this machine's memory"
            },
            mega(u128::from(allowed)),
        ))),
        _ => Ok(()),
    }
}

fn mega(bytes: u128) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
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
