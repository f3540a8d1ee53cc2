//! What messages to people are made of.
//!
//! | file | what |
//! |---|---|
//! | `wording.rs` | numbers, lists of names and quotations in sentences |
//! | `error_chain.rs` | an error and its causes as one sentence |
//! | `shortage.rs` | what a run lacked: memory or threads |
//! | `explain.rs` | where explanations of a run's choices are logged |
//! | `suggest.rs` | the word that a mistyped one was meant for |
//! | `text_file.rs` | small text files of the user's, and errors that name a line of them |
//! | `metadata_limit.rs` | the limit for metadata, and a sentence about what is larger |

pub mod error_chain;
pub(crate) mod explain;
pub(crate) mod metadata_limit;
pub mod shortage;
pub(crate) mod suggest;
pub(crate) mod text_file;
pub mod wording;
