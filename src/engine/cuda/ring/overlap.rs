//! Whether transfers overlap kernels: the ring's normal way, and two slower ones to compare it with.

/// Whether transfers of one frame overlap kernels of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// They overlap, on three streams with page-locked memory.
    #[default]
    Ring,
    /// One after another, with page-locked memory.
    SerialPinned,
    /// One after another, with ordinary memory, as a simple program does it.
    SerialPageable,
}
