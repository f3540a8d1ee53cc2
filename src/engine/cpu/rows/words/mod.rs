//! Samples as 16-bit words, the operands of signed 16-bit multiplications.
//!
//! ```text
//! u8, u16    p p p p ..
//!    | sample.rs        the encoding: bytes, words, words less 32768, or two bytes as two limbs
//!    | widen.rs         the loops: a row of words, or two rows as pairs of words
//! words      w w w w ..
//!    | deinterleave.rs  R G B R G B ..  ->  R R .. G G .. B B ..  where that makes a row filter faster
//! ```
//!
//! For loops in plain Rust `convert.rs` converts samples to numbers of any type, and `component.rs` loads and
//! stores rows of one component.

pub(in crate::engine::cpu) mod component;
pub(in crate::engine::cpu) mod convert;
pub(in crate::engine::cpu) mod deinterleave;
pub(in crate::engine::cpu) mod sample;
pub(in crate::engine::cpu) mod widen;
