//! What several targets share: files in memory, and sources read to their end.

use framepipe::frame::{FramePool, Pageable};
use framepipe::source::{Source, Supply};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Pictures of more pixels are left alone: what a header merely claims is no matter of these targets.
pub const MOST_PIXELS: usize = 1 << 20;

thread_local! {
    /// The one file in memory that every input is put into.
    static FILE: File = File::from(memfd_create("fuzz", MemfdFlags::empty()).unwrap());
}

/// The path of a file that holds `data` until the next call.
pub fn file_of(data: &[u8]) -> PathBuf {
    FILE.with(|file| {
        file.set_len(data.len() as u64).unwrap();
        file.write_all_at(data, 0).unwrap();
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    })
}

/// Reads up to `most` frames of a source, and looks at each.
pub fn drain(source: &mut dyn Source, most: usize) {
    let (_running, stop) = crossbeam_channel::bounded::<()>(0);
    let pool = FramePool::new(4 + source.held_buffers(), Arc::new(Pageable));
    let supply = Supply { pool, stop };
    for _ in 0..most {
        match source.next(&supply) {
            Ok(Some(frame)) => {
                let layout = *frame.layout();
                assert!(layout.width() > 0 && layout.height() > 0);
                for (index, plane) in layout.planes().iter().enumerate() {
                    // The first and the last byte of every plane lie within its memory.
                    std::hint::black_box(frame.row(index, 0).first());
                    std::hint::black_box(frame.row(index, plane.height - 1).last());
                }
            }
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    std::hint::black_box(source.remarks());
}
