//! Scratch memory that a thread reuses for all frames, and the alignment of rows in it.

use std::any::Any;

/// The scratch memory of one thread: one value for each type that algorithms asked for. It grows to the size
/// of the largest plane, and is then never allocated again.
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

/// The first `len` elements of a vector that only grows.
pub(in crate::engine::cpu) fn room<T: Clone + Default>(memory: &mut Vec<T>, len: usize) -> &mut [T] {
    if memory.len() < len {
        memory.resize(len, T::default());
    }
    &mut memory[..len]
}

/// The same, aligned to a cache line.
pub(in crate::engine::cpu) fn aligned<T: Clone + Default>(memory: &mut Vec<T>, len: usize) -> &mut [T] {
    let most = 64 / size_of::<T>();
    room(memory, len + most);
    // If the offset is unknown, memory is not aligned: slower, but as correct.
    let start = memory.as_ptr().align_offset(64).min(most);
    &mut memory[start..start + len]
}

/// The same, filled with `value`.
pub(in crate::engine::cpu) fn filled<T: Copy + Default>(
    memory: &mut Vec<T>,
    len: usize,
    value: T,
) -> &mut [T] {
    let memory = aligned(memory, len);
    memory.fill(value);
    memory
}

/// A length of at least `len` that is an odd multiple of 32 elements, so that successive lines do not map to
/// the same cache sets.
pub(in crate::engine::cpu) fn spread(len: usize) -> usize {
    (len.div_ceil(32) | 1) * 32
}

/// A ring of the latest lines: line `k` lies in slot `k` modulo the number of slots. The owner may use
/// further memory after the slots.
pub(in crate::engine::cpu) struct LineRing<'a, T> {
    memory: &'a mut [T],
    /// Number of slots.
    slots: usize,
    /// Elements of a slot.
    slot: usize,
    /// Number of the line that is made next.
    next: usize,
}

impl<'a, T: Clone + Default> LineRing<'a, T> {
    /// A ring of `slots` slots of `slot` elements each, aligned to a cache line, followed by `more` elements.
    pub(in crate::engine::cpu) fn new(
        memory: &'a mut Vec<T>,
        (slots, slot): (usize, usize),
        more: usize,
    ) -> LineRing<'a, T> {
        LineRing {
            memory: aligned(memory, slots * slot + more),
            slots,
            slot,
            next: 0,
        }
    }

    /// The number and the slot of the next line to make; `None` once all lines before line `end` are made.
    #[inline]
    pub(in crate::engine::cpu) fn next_before(&mut self, end: usize) -> Option<(usize, &mut [T])> {
        let line = self.next;
        (line < end).then(|| {
            self.next += 1;
            let at = self.slot(line);
            (line, &mut self.memory[at..at + self.slot])
        })
    }

    /// Index of the first element of a line.
    #[inline]
    pub(in crate::engine::cpu) fn slot(&self, line: usize) -> usize {
        line % self.slots * self.slot
    }

    /// A function that gives the index of the first element of line `first + k`, for k below the number of
    /// slots.
    pub(in crate::engine::cpu) fn slots_from(&self, first: usize) -> impl Fn(usize) -> usize + use<T> {
        let (first, slots, slot) = (first % self.slots, self.slots, self.slot);
        move |k| {
            let at = first + k;
            (if at < slots { at } else { at - slots }) * slot
        }
    }

    /// Number of the line that is made next.
    pub(in crate::engine::cpu) fn next(&self) -> usize {
        self.next
    }

    /// A line, which must be in the ring.
    pub(in crate::engine::cpu) fn line(&self, line: usize) -> &[T] {
        let at = self.slot(line);
        &self.memory[at..at + self.slot]
    }

    /// All slots, and the memory after them.
    pub(in crate::engine::cpu) fn all(&self) -> &[T] {
        self.memory
    }

    /// The same, to write to.
    pub(in crate::engine::cpu) fn memory(&mut self) -> &mut [T] {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_the_place_of_those_that_are_no_longer_needed() {
        let mut memory = Vec::new();
        let mut ring = LineRing::new(&mut memory, (3, 4), 2);
        let mut made = Vec::new();
        for end in [2, 2, 5] {
            while let Some((k, line)) = ring.next_before(end) {
                line.fill(k);
                made.push(k);
            }
        }
        assert_eq!((made, ring.next()), (vec![0, 1, 2, 3, 4], 5));
        let slot = ring.slots_from(2);
        for (k, line) in (2..5).enumerate() {
            assert_eq!(ring.line(line), [line; 4]);
            assert_eq!(slot(k), ring.slot(line));
            assert_eq!(ring.all()[slot(k)], line);
        }
        assert_eq!(ring.all().len(), 3 * 4 + 2);
        assert!(ring.all().as_ptr().addr().is_multiple_of(64));
    }

    #[test]
    fn memory_is_found_again_by_its_type() {
        let mut scratch = Scratch::default();
        scratch.of::<Vec<u8>>().push(1);
        scratch.of::<Vec<u16>>().push(2);
        scratch.of::<Vec<u8>>().push(3);
        assert_eq!(scratch.of::<Vec<u8>>().as_slice(), [1, 3]);
        assert_eq!(scratch.0.len(), 2);
    }
}
