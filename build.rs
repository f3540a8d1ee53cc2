//! Tells the code which FFmpeg it is compiled for, `cfg(ffmpeg_7_1)` from FFmpeg 7.1 on and so forth, and
//! which vector instructions loops are compiled for, `cfg(compile_avx512)`.
//!
//! The facts come from the headers: ffmpeg-sys-next compiles a program that prints what they define, and
//! hands the answers on to the crates that depend on it. src/media/ffmpeg/version.rs holds the code that
//! depends on them.
//!
//! A release has the loops of every instruction set. A build for tests has those that this machine can run:
//! the others would be three quarters of the compile time, and no test could run them. Set
//! FRAMEPIPE_ALL_INSTRUCTION_SETS=1 to build tests for another machine. With 0 there are none beyond AVX2,
//! which is as far as valgrind goes.

use std::env;

/// The releases that changed something, or that tell what the oldest and the newest one known are.
const RELEASES: [&str; 8] = ["5_1", "6_0", "6_1", "7_0", "7_1", "8_0", "8_1", "9_0"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    compile_instruction_sets();
    // A feature of this crate; without it nobody looks for FFmpeg.
    let is_used = env::var_os("CARGO_FEATURE_FFMPEG").is_some();
    let at_least =
        |release: &str| env::var(format!("DEP_FFMPEG_FFMPEG_{release}")).is_ok_and(|v| v == "true");
    for release in RELEASES {
        println!("cargo::rustc-check-cfg=cfg(ffmpeg_{release})");
        if at_least(release) {
            println!("cargo::rustc-cfg=ffmpeg_{release}");
        }
    }
    if is_used && !at_least(RELEASES[0]) {
        println!(
            "cargo::error=The FFmpeg libraries found here are older than 5.1. framepipe needs 5.1 or newer, \
             with development files; PKG_CONFIG_PATH tells where to look for them."
        );
    }
}

/// The sets beside plain AVX2 whose loops are compiled.
fn compile_instruction_sets() {
    println!("cargo::rerun-if-env-changed=FRAMEPIPE_ALL_INSTRUCTION_SETS");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let wanted = env::var("FRAMEPIPE_ALL_INSTRUCTION_SETS").ok();
    for (name, is_here) in here() {
        println!("cargo::rustc-check-cfg=cfg(compile_{name})");
        let is_compiled = match wanted.as_deref() {
            Some("0") => false,
            Some(_) => true,
            None => is_release || is_here,
        };
        if is_compiled {
            println!("cargo::rustc-cfg=compile_{name}");
        }
    }
}

/// The sets by name, and whether this machine has them.
#[cfg(target_arch = "x86_64")]
fn here() -> [(&'static str, bool); 3] {
    [
        ("avxvnni", is_x86_feature_detected!("avxvnni")),
        ("avx512", is_x86_feature_detected!("avx512f")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
    ]
}

/// A machine that builds for x86-64 without being one runs none of them.
#[cfg(not(target_arch = "x86_64"))]
fn here() -> [(&'static str, bool); 3] {
    ["avxvnni", "avx512", "avx512vnni"].map(|name| (name, false))
}
