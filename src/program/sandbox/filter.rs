//! The filter of system calls: what Landlock does not see, refused with "operation not permitted".
//!
//! A list of what is refused, not of what is allowed: FFmpeg's libraries, the C library and the CUDA driver
//! may use any harmless call, and change. So new calls of newer kernels pass; Landlock still guards the
//! files. A call from another architecture (32-bit code) ends the process.

use libc::{AF_UNIX, O_ACCMODE, O_TRUNC, c_int, c_long};
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Refused whatever the arguments.
const REFUSED: &[c_long] = &[
    // Other programs. Landlock refuses them as well; this also covers a program in memory.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes' memory and open files.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_tkill,
    libc::SYS_kcmp,
    // Sockets and files through a queue, which no filter of calls sees; and `openat2`, whose flags are in
    // memory, where a filter cannot read them (see O_TRUNC below). No library falls over without them.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_openat2,
    // Landlock before Linux 6.2 does not know truncation. Files that are open for writing use `ftruncate`.
    libc::SYS_truncate,
    // Landlock does not guard owners, modes and attributes. Refused by name; on open files they are allowed.
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    // Files by number, mounts, namespaces, and large or rarely used parts of the kernel with a history of
    // holes. Most need root; some programs run as root.
    libc::SYS_open_by_handle_at,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
];

// Newer than the `libc` crate; from 424 on a call has one number on all architectures.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;

/// What only x86-64 has: older calls, and those whose number differs for its 32-bit pointers (x32).
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    X32 + 514, // ioctl
    X32 + 520, // execve
    X32 + 545, // execveat
    X32 + 521, // ptrace
    X32 + 539, // process_vm_readv
    X32 + 540, // process_vm_writev
    X32 + 524, // rt_sigqueueinfo
    X32 + 536, // rt_tgsigqueueinfo
    X32 + 528, // kexec_load
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[libc::SYS_kexec_file_load];

/// The bit that marks a call with 32-bit pointers. It comes as the same architecture, so a filter must name
/// it.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

/// The filter. Unix sockets can be made only if `unix_sockets`: the CUDA driver makes some.
pub(super) fn build(unix_sockets: bool) -> Result<BpfProgram, Error> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = BTreeMap::new();
    for &call in REFUSED.iter().chain(REFUSED_HERE) {
        rules.insert(call, Vec::new());
    }

    // The network, with packets, Bluetooth, netlink and all. A Unix socket could reach a service of the
    // machine (Docker's, the desktop's), which Landlock before Linux 7.1 does not see. A pair talks to itself
    // only.
    let not_unix = || when(0, Dword, Ne, unsigned(AF_UNIX));
    rules.insert(
        libc::SYS_socket,
        if unix_sockets {
            vec![not_unix()?]
        } else {
            Vec::new()
        },
    );
    rules.insert(libc::SYS_socketpair, vec![not_unix()?]);

    // Signals to others: older Landlock does not know them. The process can still end itself (`abort`).
    let not_self = || when(0, Dword, Ne, u64::from(std::process::id()));
    for call in [
        libc::SYS_kill,
        libc::SYS_tgkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
    ] {
        rules.insert(call, vec![not_self()?]);
    }
    // Other processes' limits; 0 is the caller.
    rules.insert(libc::SYS_prlimit64, vec![when(0, Dword, Ne, 0)?]);

    // Times by name; on an open file the name is null.
    rules.insert(libc::SYS_utimensat, vec![when(1, Qword, Ne, 0)?]);

    // Emptying a file while opening it to read: older Landlock takes it for reading.
    let empties = |argument| {
        when(
            argument,
            Dword,
            MaskedEq(unsigned(O_ACCMODE | O_TRUNC)),
            unsigned(libc::O_RDONLY | O_TRUNC),
        )
    };
    rules.insert(libc::SYS_openat, vec![empties(2)?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![empties(1)?]);

    // Writing into the terminal's own input, as if typed: the shell would run it after the program's end.
    rules.insert(
        libc::SYS_ioctl,
        vec![when(1, Dword, Eq, TIOCSTI)?, when(1, Dword, Eq, TIOCLINUX)?],
    );

    #[cfg(target_arch = "x86_64")]
    for (call, conditions) in rules.clone() {
        rules.insert(call | X32, conditions);
    }

    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let here: TargetArch = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, here)?.try_into()?)
}

const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;

/// A rule that refuses a call if one argument compares so with a value.
fn when(
    argument: u8,
    size: seccompiler::SeccompCmpArgLen,
    compared: seccompiler::SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, size, compared, value)?])
}

/// A flag or number as the kernel has it in a register.
fn unsigned(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}
