//! The program from the outside: what it prints, writes, refuses and survives.
#![allow(clippy::unwrap_used)]

mod annotations;
mod batch;
mod bench;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod floats;
mod folder;
mod hostile;
mod icons_textures;
mod preview;
mod regions;
mod stills;
mod words;
