//! Memory that is kept from frame to frame, and how rows lie in it.

use std::any::Any;

/// What one thread works in: the memory of each algorithm that it has met, by its type. It grows to what the
/// largest plane needs and is then never allocated again.
#[derive(Default)]
pub(in crate::engine::cpu) struct Scratch(Vec<Box<dyn Any + Send>>);

impl Scratch {
    /// The memory of type `T`.
    pub(in crate::engine::cpu) fn of<T: Default + Send + 'static>(&mut self) -> &mut T {
        let known = self.0.iter().position(|memory| memory.is::<T>());
        let at = known.unwrap_or_else(|| {
            self.0.push(Box::<T>::default());
            self.0.len() - 1
        });
        let Some(memory) = self.0[at].downcast_mut() else {
            unreachable!("it was found by its type")
        };
        memory
    }
}

/// The first `len` of a vector that only grows.
pub(in crate::engine::cpu) fn room<T: Clone + Default>(memory: &mut Vec<T>, len: usize) -> &mut [T] {
    if memory.len() < len {
        memory.resize(len, T::default());
    }
    &mut memory[..len]
}

/// The same, beginning on a cache line.
pub(in crate::engine::cpu) fn aligned<T: Clone + Default>(memory: &mut Vec<T>, len: usize) -> &mut [T] {
    let most = 64 / size_of::<T>();
    room(memory, len + most);
    // Where alignment cannot be found out, speed suffers, no result.
    let start = memory.as_ptr().align_offset(64).min(most);
    &mut memory[start..start + len]
}

/// A length of at least `len` that is an odd number of pairs of cache lines, so that lines do not fall on
/// each other in the cache.
pub(in crate::engine::cpu) fn spread(len: usize) -> usize {
    (len.div_ceil(32) | 1) * 32
}
