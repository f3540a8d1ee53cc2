//! Filters as text: their grammar, matrices of numbers, mask files, and advice on mistyped words. How text
//! files of the user's are read (`text_file.rs`) holds for mattes and regions, too.

mod advice;
pub(in crate::filter) mod grammar;
pub(in crate::filter) mod keys;
pub(in crate::filter) mod mask_file;
pub(in crate::filter) mod matrix;
pub(crate) mod suggest;
pub(crate) mod text_file;
