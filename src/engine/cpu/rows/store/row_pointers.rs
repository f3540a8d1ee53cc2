//! The places in several rows that a loop writes together, as pointers.
//!
//! Loops, because a closure is compiled once for each set of constants of the generic function around it, and
//! an array's `map` with it: in the column filter and in boxes that made a tenth of all that the compiler had
//! to optimise. It need not be inlined either (scripts/check-inlined).

use std::ptr::null_mut;

/// Pointers to the first bytes of `rows`.
#[inline(always)]
pub(in crate::engine::cpu) fn starts<B: AsMut<[u8]>, const R: usize>(rows: &mut [B; R]) -> [*mut u8; R] {
    let mut starts = [null_mut(); R];
    for r in 0..R {
        starts[r] = rows[r].as_mut().as_mut_ptr();
    }
    starts
}

/// The places that lie so many bytes further on in each row; before them where that is negative.
#[inline(always)]
pub(in crate::engine::cpu) fn offset<const R: usize>(mut rows: [*mut u8; R], bytes: isize) -> [*mut u8; R] {
    for row in &mut rows {
        *row = row.wrapping_offset(bytes);
    }
    rows
}
