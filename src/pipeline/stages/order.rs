//! Puts the frames of several workers back in order.

use crate::frame::Frame;
use std::collections::BTreeMap;

/// Frames that came before their turn, at most as many as the pool has buffers.
#[derive(Default)]
pub(super) struct Reorder {
    next: u64,
    early: BTreeMap<u64, Frame>,
}

impl Reorder {
    /// Puts a frame aside.
    pub(super) fn put(&mut self, frame: Frame) {
        self.early.insert(frame.sequence, frame);
    }

    /// The next frame in order, if it is here.
    pub(super) fn take(&mut self) -> Option<Frame> {
        let frame = self.early.remove(&self.next)?;
        self.next += 1;
        Some(frame)
    }

    /// The numbers of the frame that is due and of the earliest one here; `None` if no frame is here.
    pub(super) fn gap(&self) -> Option<(u64, u64)> {
        let (&found, _) = self.early.first_key_value()?;
        Some((self.next, found))
    }
}
