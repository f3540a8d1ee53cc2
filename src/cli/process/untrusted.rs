//! `--untrusted`: the run's own files and nothing else.

use crate::cli::Failure;
use framepipe::program::sandbox::{self, Permissions};
use std::path::PathBuf;

/// Confines the process to reading `inputs`, which may be files or folders, and to writing in `folders`,
/// which are made if they are missing; with `card` also to the needs of the CUDA driver. Call it before any
/// thread is started.
pub(crate) fn confine(
    inputs: Vec<PathBuf>,
    folders: impl IntoIterator<Item = PathBuf>,
    card: bool,
) -> Result<String, Failure> {
    let folders: Vec<PathBuf> = folders.into_iter().collect();
    for folder in &folders {
        std::fs::create_dir_all(folder)
            .map_err(|cause| Failure::Failed(format!("cannot make {}: {cause}", folder.display())))?;
    }
    let status = sandbox::enter(&Permissions {
        read: inputs,
        write: folders,
        devices: card,
    })?;
    Ok(status.to_string())
}
