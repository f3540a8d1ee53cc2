//! Launch dependencies (programmatic dependent launch): which launches of a stream may overlap.
//!
//! ```text
//! launch 0   reads a, writes b   ----------|
//! launch 1   reads b, writes c        -----|-----   is early, not ready: it loads nothing before 0 has ended
//! launch 2   reads a, writes d              ------|-----   is early and ready: it loads at once
//! ```
//!
//! A kernel that begins early waits itself before it writes and, unless it is ready, before it reads.

use cudarc::driver::sys;
use std::cell::RefCell;
use std::ops::Range;

/// A stream, and the writes of its launches that may still be in flight.
pub(crate) struct TrackedStream {
    pub(crate) handle: sys::CUstream,
    /// The addresses that may still be written when the next launch begins, by the launches since the last
    /// one that waited for all before it. `None` if the next launch waits.
    written: RefCell<Option<Vec<Range<u64>>>>,
}

/// How a launch depends on those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchDependency {
    /// True if it may begin before the launch before it has ended.
    pub(crate) is_early: bool,
    /// True if no launch that may still be in flight writes what it reads.
    pub(crate) is_ready: bool,
}

impl TrackedStream {
    /// A stream whose last launches are not known.
    pub(crate) fn new(handle: sys::CUstream) -> TrackedStream {
        TrackedStream {
            handle,
            written: RefCell::default(),
        }
    }

    /// The stream, for anything but a launch with dependencies.
    pub(crate) fn after_all(&self) -> sys::CUstream {
        *self.written.borrow_mut() = None;
        self.handle
    }

    /// The dependency of a launch that reads and writes these addresses. `may_begin_early`: it may begin
    /// before the launch before it has ended, and lets the next one do so.
    pub(crate) fn next(
        &self,
        may_begin_early: bool,
        mut read: impl Iterator<Item = Range<u64>>,
        written: impl Iterator<Item = Range<u64>>,
    ) -> LaunchDependency {
        let mut under_way = self.written.borrow_mut();
        let is_early = may_begin_early && under_way.is_some();
        if !is_early {
            *under_way = may_begin_early.then(Vec::new);
        }
        let is_spared = |read: &Range<u64>| {
            let mut under_way = under_way.iter().flatten();
            under_way.all(|written| written.end <= read.start || read.end <= written.start)
        };
        let is_ready = read.all(|read| is_spared(&read));
        for written in written {
            if let Some(under_way) = &mut *under_way
                && !under_way.contains(&written)
            {
                under_way.push(written);
            }
        }
        LaunchDependency { is_early, is_ready }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_launches_that_read_what_is_under_way_have_to_wait_for_it() {
        let stream = TrackedStream::new(std::ptr::null_mut());
        let launch = |early: bool, read: &[u64], written: u64| {
            let rows = |&begin: &u64| begin..begin + 640;
            let dependency = stream.next(early, read.iter().map(rows), std::iter::once(rows(&written)));
            (dependency.is_early, dependency.is_ready)
        };
        assert_eq!(
            launch(true, &[4096], 8192),
            (false, true),
            "nothing was before it"
        );
        // The same source, others, and those that end or begin where the result begins or ends.
        for source in [4096, 16384, 8192 - 640, 8192 + 640] {
            assert_eq!(launch(true, &[source], 32768), (true, true), "{source}");
        }
        for source in [8192, 8192 - 639, 8192 + 639] {
            assert_eq!(launch(true, &[source], 32768), (true, false), "{source}");
        }
        // What an earlier launch writes is in flight for as long as nobody has waited for all.
        for sources in [[4096, 8192], [32768, 4096]] {
            assert_eq!(launch(true, &sources, 65536), (true, false), "{sources:?}");
        }
        assert_eq!(launch(false, &[8192], 65536), (false, true), "it waits for all");
        assert_eq!(
            launch(true, &[65536], 8192),
            (false, true),
            "so does one after it"
        );
        assert_eq!(launch(true, &[8192], 65536), (true, false));
        stream.after_all();
        assert_eq!(launch(true, &[8192], 65536), (false, true));
    }
}
