//! The lock on the folder that a run writes into.

use crate::sink::SinkError;
use std::fs::{self, File};
use std::path::Path;

/// A lock on a folder, so that of two runs that would mix their files one is refused, unless both are to
/// share it; `None` where folders cannot be locked.
pub(super) fn locked(folder: &Path, shared: bool) -> Result<Option<File>, SinkError> {
    let Ok(file) = File::open(folder) else {
        return Ok(None);
    };
    let lock = match shared {
        true => file.try_lock_shared(),
        false => file.try_lock(),
    };
    match lock {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Err(SinkError::Unsupported {
            path: folder.display().to_string(),
            problem: "another run writes into this folder; wait for it, or choose another one".to_owned(),
        }),
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}
