//! A sandbox: what the process may still do once it reads a file that a stranger made.
//!
//! Two parts of Linux keep it, and neither needs root:
//!
//!   Landlock   which files can be opened, made, renamed and removed         (this file, `paths`)
//!   seccomp    no socket, no other program, no way round Landlock           (`filter`)
//!
//! Both bind the thread that calls, and every thread and process it starts later. They never bind a thread
//! that runs already, and they cannot be taken back. So [`enter`] is called once, early, on the only thread.
//! Both set "no new privileges" by themselves (`prctl(PR_SET_NO_NEW_PRIVS)`): setuid programs gain nothing.
//!
//! What stays allowed: everything on files, pipes and sockets that are open already, looking up names and
//! sizes anywhere (`stat`), memory, threads, and processor time. Limits on those are the caller's work.

mod filter;
mod paths;

use landlock::{
    ABI, Access, AccessFs, AccessNet, AddRuleError, AddRulesError, BitFlags, CompatLevel, Compatible,
    LandlockStatus, PathBeneath, PathFd, PathFdError, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};
use rustix::io::Errno;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The newest Landlock whose rights are asked for. An older kernel gives what it has.
const NEWEST: ABI = ABI::V6;

/// The rights on what is only read. Running a program is never among them; loading a library is reading.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// The rights on a folder that is written to. Links, pipes, sockets and devices cannot be made in it.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | RemoveFile | RemoveDir | MakeReg | MakeDir | Refer
});

/// The rights on a device: no making, no removing, but its own commands (`ioctl`).
const DEVICE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir | WriteFile | IoctlDev});

/// The rights on files that are changed in place and neither made nor removed.
const CHANGE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir | WriteFile | Truncate});

/// Those of the rights above that a file, as opposed to a folder, can have.
const OF_A_FILE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});

/// What the process is still allowed to touch. All else is refused.
///
/// Every path must exist, and a link counts as what it leads to. What the program itself needs (libraries,
/// `/proc/self`, `/dev/null`, ...) is added by [`enter`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Files, and folders with all below them, that can be read.
    pub read: Vec<PathBuf>,
    /// Folders in which files can be read, made, changed, renamed and removed. A single file can be named
    /// too: it can be read and changed, not replaced.
    pub write: Vec<PathBuf>,
    /// Whether the CUDA driver is needed: its devices, what it reads and writes, and Unix sockets.
    pub devices: bool,
}

/// What is enforced. There is no half success: files, network and programs are closed whenever [`enter`]
/// returns this. The fields tell which second locks the kernel adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The version of Landlock in force, 1 or more, as far as this program knows it. From 4 on (Linux 6.7) it
    /// refuses TCP too.
    pub landlock: u32,
    /// Whether Unix sockets can be made: only with [`Permissions::devices`].
    pub unix_sockets: bool,
    /// Whether devices refuse their commands (`ioctl`) unless allowed (Linux 6.10). Before it, a device that
    /// can be opened obeys them all; few can be opened.
    pub device_commands: bool,
    /// Whether abstract Unix sockets of other programs cannot be reached (Linux 6.12). Before it they can be
    /// if [`Permissions::devices`] is set.
    pub scoped: bool,
}

impl Display for Status {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "files and folders: only those allowed (Landlock {}); ",
            self.landlock
        )?;
        f.write_str(match (self.unix_sockets, self.scoped) {
            (false, _) => "network: none, no sockets at all; ",
            (true, true) => "network: none, Unix sockets open for the CUDA driver; ",
            (true, false) => "network: none, Unix sockets open for the CUDA driver, abstract ones included; ",
        })?;
        f.write_str("other programs: none")
    }
}

/// Why there is no sandbox. The process may be partly bound already: end it, or say that it is not confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The system cannot do it.
    #[error("this system cannot confine the program: {reason}")]
    Unsupported {
        /// What is missing and what to do, as a sentence without its full stop.
        reason: &'static str,
    },
    /// Other threads run already.
    #[error(
        "the program has {count} threads already, and a sandbox binds only the one that enters it; \
         enter it before any thread is started"
    )]
    Threads {
        /// How many, the caller's included.
        count: usize,
    },
    /// The threads cannot be counted.
    #[error("cannot tell whether other threads run, which a sandbox would not bind; mount /proc")]
    ThreadsUnknown(#[source] io::Error),
    /// A path of the caller cannot be opened.
    #[error("cannot allow {}; name a file or folder that exists", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// Landlock refused a rule.
    #[error("cannot set up the rules on files (Landlock)")]
    Rules(#[from] RulesetError),
    /// The filter of system calls was refused.
    #[error(
        "cannot set up the filter of system calls (seccomp); the kernel lacks it, or a container forbids it"
    )]
    Filter(#[from] seccompiler::Error),
}

/// Confines the process, for good, to what `permissions` say.
///
/// Call it on the main thread before any other is started: in `main`, after the arguments are read and the
/// output folder is made, before FFmpeg, CUDA, a log thread or a pool of workers.
///
/// # Errors
///
/// If other threads run, if a path does not exist, or if the kernel cannot enforce the rules on files
/// (Landlock, Linux 5.13) or the filter of system calls. After an error the process may be bound by a part of
/// it.
pub fn enter(permissions: &Permissions) -> Result<Status, SandboxError> {
    alone()?;
    // What can fail for a reason of ours comes first, while nothing is changed yet.
    let filter = filter::build(permissions.devices).map_err(|_| unsupported(OTHER_PROCESSOR))?;
    let rules = rules(permissions)?;
    let restricted = rules.restrict_self()?;
    let landlock = match (restricted.ruleset, restricted.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => return Err(unsupported(NOT_ENABLED)),
        (RulesetStatus::NotEnforced, _) => return Err(unsupported(NOT_IMPLEMENTED)),
        (_, LandlockStatus::Available { effective_abi, .. }) => effective_abi,
        (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => {
            return Err(unsupported(NOT_IMPLEMENTED));
        }
    };
    seccompiler::apply_filter(&filter)?;
    Ok(Status {
        landlock: landlock as u32,
        unix_sockets: permissions.devices,
        device_commands: landlock >= ABI::V5,
        scoped: landlock >= ABI::V6,
    })
}

const NOT_ENABLED: &str = "Landlock is built into the kernel but was not enabled at boot; add \"landlock\" \
     to the kernel's \"lsm=\" parameter";
const NOT_IMPLEMENTED: &str = "the kernel has no Landlock, or a container hides it; use Linux 5.13 or newer \
     with CONFIG_SECURITY_LANDLOCK, and a container that allows Landlock's system calls";
const OTHER_PROCESSOR: &str = "the filter of system calls knows x86-64, AArch64 and RISC-V only";

fn unsupported(reason: &'static str) -> SandboxError {
    SandboxError::Unsupported { reason }
}

/// Fails unless the calling thread is the only one.
fn alone() -> Result<(), SandboxError> {
    let tasks = fs::read_dir("/proc/self/task").map_err(SandboxError::ThreadsUnknown)?;
    match tasks.count() {
        1 => Ok(()),
        count => Err(SandboxError::Threads { count }),
    }
}

/// The rules on files, and Landlock's own locks on TCP, abstract sockets and signals where it has them.
///
/// Version 1 of Landlock lets no file be moved to another folder, and does not know truncation. The filter
/// closes the latter, so version 1 will do.
fn rules(permissions: &Permissions) -> Result<RulesetCreated, SandboxError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    for (paths, rights) in [(&permissions.read, READ), (&permissions.write, WRITE)] {
        for path in paths {
            let rule = rule(path, rights).map_err(|cause| SandboxError::Path {
                path: path.clone(),
                cause,
            })?;
            match (&mut rules).add_rule(rule) {
                // A pipe or socket without a place in a file system, such as /dev/stdin may lead to: Landlock
                // has no rules for these, and lets them be opened.
                Err(RulesetError::AddRules(AddRulesError::Fs(AddRuleError::AddRuleCall {
                    source, ..
                }))) if Errno::from_io_error(&source) == Some(Errno::BADFD) => {}
                added => {
                    added?;
                }
            }
        }
    }
    let mut system = paths::read();
    let mut devices = paths::devices();
    let mut changed = Vec::new();
    if permissions.devices {
        system.extend(paths::cuda_read());
        devices.extend(paths::cuda_devices());
        changed.extend(paths::cuda_written());
    }
    for (paths, rights) in [(system, READ), (devices, DEVICE), (changed, CHANGE)] {
        // What this system does not have needs no rule.
        for rule in paths.iter().filter_map(|path| rule(path, rights).ok()) {
            (&mut rules).add_rule(rule)?;
        }
    }
    Ok(rules)
}

/// The rule that gives `rights` on a path and all below it.
fn rule(path: &Path, rights: BitFlags<AccessFs>) -> io::Result<PathBeneath<PathFd>> {
    let opened = PathFd::new(path).map_err(|error| match error {
        PathFdError::OpenCall { source, .. } => source,
        error => io::Error::other(error),
    })?;
    let rights = if fs::metadata(path)?.is_dir() {
        rights
    } else {
        rights & OF_A_FILE
    };
    Ok(PathBeneath::new(opened, rights))
}
