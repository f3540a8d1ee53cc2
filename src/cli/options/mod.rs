//! Options that several subcommands have.

pub(crate) mod comparison;
pub(crate) mod decoding;
pub(crate) mod encoding;
pub(crate) mod engine;
pub(crate) mod filtering;
pub(crate) mod reading;
pub(crate) mod region;
pub(crate) mod trace;
pub(crate) mod words;
