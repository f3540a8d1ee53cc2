//! Filters as text: their grammar, matrices of numbers, mask files, and advice on mistyped words.

mod advice;
pub(in crate::filter) mod grammar;
pub(in crate::filter) mod keys;
pub(in crate::filter) mod mask_file;
pub(in crate::filter) mod matrix;
