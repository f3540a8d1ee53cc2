//! Tells the code which FFmpeg it is compiled for: `cfg(ffmpeg_7_1)` holds from FFmpeg 7.1 on, and so forth.
//!
//! The facts come from the headers: ffmpeg-sys-next compiles a program that prints what they define, and
//! hands the answers on to the crates that depend on it. src/ffmpeg/version.rs holds the code that depends on
//! them.

use std::env;

/// The releases that changed something, or that tell what the oldest and the newest one known are.
const RELEASES: [&str; 8] = ["5_1", "6_0", "6_1", "7_0", "7_1", "8_0", "8_1", "9_0"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
