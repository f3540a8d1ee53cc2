//! What only the program uses of the library, and its tests and benchmarks: no part of the library's
//! interface.
//!
//! | folder | what is in it |
//! |---|---|
//! | `bench` | what `framepipe bench` measures |
//! | `parts` | one job in parts, for any number of processes and machines |
//! | `sandbox` | what the process may still do once it reads a stranger's file |

pub mod bench;
pub mod parts;
#[cfg(target_os = "linux")]
pub mod sandbox;
