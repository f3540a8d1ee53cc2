//! The running process: signals, limits of memory, the log, the sandbox, and the facts about it for reports.

pub(crate) mod interrupt;
pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod origin;
pub(crate) mod starting;
pub(crate) mod untrusted;
