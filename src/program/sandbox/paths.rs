//! What the program itself needs of the system, each with its reason. Missing ones are left out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Read by the loader, the C library, Rust's library and the codecs, some of it only in mid-run.
///
/// All of it is the same for every user of the machine, or the process's own. `/etc` is not in it.
const READ: &[&str] = &[
    // Libraries that are loaded late: CUDA, NVRTC, character sets, what unwinds a stack. Distributions differ
    // in the folder. Where /lib is a link into /usr this is one folder twice.
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/lib",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    // Where the loader finds them.
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    // Its own threads, memory map, limits and control group: the C library finds stacks there, Rust the
    // number of processors. Links in it (`root`, `cwd`, `fd`) lead to the real path, which needs its own
    // permission.
    "/proc/self",
    // Free memory and processors: the program's own budget, x264, x265, SVT-AV1.
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/stat",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    // Asked by memory allocators.
    "/proc/sys/vm/overcommit_memory",
    "/sys/kernel/mm/transparent_hugepage",
    // Local time, for dates in metadata. /etc/localtime is a link into the first, or a file.
    "/usr/share/zoneinfo",
    "/etc/localtime",
];

/// Devices without harm, for reading and writing.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Read by the CUDA driver.
const CUDA_READ: &[&str] = &[
    // The driver's version, settings and capabilities.
    "/proc/driver/nvidia",
    "/proc/devices",
    "/proc/modules",
    "/proc/sys/vm/max_map_count",
    // Where the cards sit. The links of /sys/bus/pci lead into /sys/devices, so that is read as well.
    "/sys/bus/pci",
    "/sys/devices",
    "/sys/module",
    // Toolkits, of which NVRTC is loaded, and the driver's own profiles.
    "/usr/local/cuda",
    // Where containers have the driver mounted.
    "/usr/local/nvidia",
    "/opt/cuda",
    "/usr/share/nvidia",
    "/etc/nvidia",
];

/// Written by the CUDA driver.
const CUDA_WRITTEN: &[&str] = &[
    // It names its threads in /proc/self/task/THREAD/comm, and does not start where it cannot. What else lies
    // there is the process's own.
    "/proc/self/task",
];

/// Where the program's own needs lie, to be read.
pub(super) fn read() -> Vec<PathBuf> {
    // The program reads itself to name the functions of a panic.
    let own = std::env::current_exe().ok();
    // The loader looks into these folders when a library is loaded by its name.
    let libraries = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries = std::env::split_paths(&libraries).filter(|path| may_be_libraries(path));
    READ.iter()
        .map(PathBuf::from)
        .chain(own)
        .chain(libraries)
        .collect()
}

/// Whether a folder of `LD_LIBRARY_PATH` is one to be opened: an absolute one, and not the whole system.
fn may_be_libraries(path: &Path) -> bool {
    path.is_absolute() && path.components().count() > 2
}

/// The devices that are always allowed.
pub(super) fn devices() -> Vec<PathBuf> {
    DEVICES.iter().map(PathBuf::from).collect()
}

/// What the CUDA driver reads.
///
/// Its cache of compiled kernels (`~/.nv/ComputeCache`) is left out with intent: a program that has been
/// taken over could leave a kernel there for the next run, which may not be confined. The driver then
/// compiles anew. `/tmp` is left out too: only MPS needs it.
pub(super) fn cuda_read() -> Vec<PathBuf> {
    CUDA_READ.iter().map(PathBuf::from).collect()
}

/// Files of the process that the CUDA driver writes.
pub(super) fn cuda_written() -> Vec<PathBuf> {
    CUDA_WRITTEN.iter().map(PathBuf::from).collect()
}

/// The devices of the CUDA driver that are there now: `/dev/nvidia0`, `nvidiactl`, `nvidia-uvm`,
/// `nvidia-caps`.
pub(super) fn cuda_devices() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/dev") else {
        return Vec::new();
    };
    let is_nvidia = |name: &OsStr| name.as_bytes().starts_with(b"nvidia");
    entries
        .flatten()
        .filter(|entry| is_nvidia(&entry.file_name()))
        .map(|entry| entry.path())
        .collect()
}
