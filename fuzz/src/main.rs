//! Every fuzz target in one program; the environment's `FUZZ_TARGET` names the one to run.
#![no_main]

mod annotations;
mod common;
mod engine_case;
mod engines;
mod image;
mod large_masks;
mod mask_file;
mod stand_in;
mod text;
mod video;
mod webp;
mod y4m;

use libfuzzer_sys::{Corpus, fuzz_target};
use std::sync::LazyLock;

type Target = fn(&[u8]) -> Corpus;

/// In the order of fuzz/README.md.
const TARGETS: [(&str, Target); 10] = [
    ("engines", |data| engines::run(data).into()),
    ("large_masks", |data| large_masks::run(data).into()),
    ("stand_in", stand_in::run),
    ("text", |data| text::run(data).into()),
    ("mask_file", |data| mask_file::run(data).into()),
    ("y4m", |data| y4m::run(data).into()),
    ("image", |data| image::run(data).into()),
    ("annotations", |data| annotations::run(data).into()),
    ("webp", |data| webp::run(data).into()),
    ("video", |data| video::run(data).into()),
];

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    match TARGETS.iter().find(|(known, _)| *known == name) {
        Some(&(_, target)) => target,
        None => {
            let known: Vec<&str> = TARGETS.iter().map(|&(name, _)| name).collect();
            eprintln!("FUZZ_TARGET is '{name}'; set it to one of {}", known.join(", "));
            std::process::exit(2);
        }
    }
});

fuzz_target!(init: { LazyLock::force(&CHOSEN); }, |data: &[u8]| -> Corpus { CHOSEN(data) });
