//! The running process: signals, limits of memory, the log, the sandbox, and what a report says of the
//! machine.

pub(crate) mod interrupt;
pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod origin;
pub(crate) mod starting;
pub(crate) mod untrusted;
