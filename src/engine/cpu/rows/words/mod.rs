//! Samples as words: what signed 16-bit multiplications take.
//!
//! ```text
//! u8, u16    p p p p ..
//!    | sample.rs        which encoding: bytes, words, words less 32768, or two bytes apart, and what it adds
//!    | widen.rs         the loops: a row of words, or two rows as pairs of words
//! words      w w w w ..
//!    | deinterleave.rs  R G B R G B ..  ->  R R .. G G .. B B ..  where a row filter is faster that way
//! ```
//!
//! `numbers.rs` is for loops in plain Rust, which take samples as numbers of any type.

pub(in crate::engine::cpu) mod deinterleave;
pub(in crate::engine::cpu) mod numbers;
pub(in crate::engine::cpu) mod sample;
pub(in crate::engine::cpu) mod widen;
