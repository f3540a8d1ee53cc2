//! Filters of earlier calls, with their threads, memory and kernels, for the next call that wants the same.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Filters by what they do, the latest last. The lock is held for moments only, and never by a thread that
/// has let the interpreter go: so none holds it while the process forks.
pub(crate) struct Idle<K, F> {
    most: usize,
    filters: Mutex<Vec<(K, F)>>,
}

impl<K: PartialEq, F> Idle<K, F> {
    /// Keeps so many filters at most.
    pub(crate) const fn new(most: usize) -> Idle<K, F> {
        Idle {
            most,
            filters: Mutex::new(Vec::new()),
        }
    }

    fn filters(&self) -> MutexGuard<'_, Vec<(K, F)>> {
        // The list is whole whenever a thread may have panicked.
        self.filters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that does the same, if there is one.
    pub(crate) fn take(&self, key: &K) -> Option<F> {
        let mut filters = self.filters();
        let at = filters.iter().rposition(|(of, _)| of == key)?;
        Some(filters.remove(at).1)
    }

    /// Keeps a filter for the next call, and gives back the one that there is no room for.
    pub(crate) fn keep(&self, key: K, filter: F) -> Option<F> {
        let mut filters = self.filters();
        let surplus = (filters.len() == self.most).then(|| filters.remove(0).1);
        filters.push((key, filter));
        surplus
    }

    /// After a fork: the threads of idle filters stayed in the parent, so that nothing may wait for them, and
    /// the child may not use the parent's card.
    pub(crate) fn forget(&self) {
        mem::forget(mem::take(&mut *self.filters()));
    }
}
