//! `framepipe devices`: what this machine can filter with.

use super::Failure;
use framepipe::bench::processor;
use framepipe::engine::cuda::{self, DeviceInfo};
use std::io::Write;

/// Prints the processor and what it offers.
pub(crate) fn list(out: &mut impl Write) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    writeln!(out, "cpu   {}", processor())?;
    writeln!(
        out,
        "      {cores} core{} for this process",
        if cores == 1 { "" } else { "s" }
    )?;
    writeln!(out, "      {}", instruction_sets().join(", "))?;
    match cuda::devices() {
        Err(reason) => writeln!(out, "cuda  none: {reason}")?,
        Ok(found) => {
            let (major, minor) = found.driver;
            let nvrtc = match &found.nvrtc {
                Ok((major, minor)) => format!("NVRTC {major}.{minor}"),
                Err(reason) => format!("NVRTC missing: {reason}"),
            };
            writeln!(out, "cuda  driver for CUDA {major}.{minor}, {nvrtc}")?;
            for card in &found.cards {
                write_card(card, out)?;
            }
        }
    }
    Ok(())
}

fn write_card(card: &DeviceInfo, out: &mut impl Write) -> std::io::Result<()> {
    const MIB: u64 = 1024 * 1024;
    let (major, minor) = card.compute_capability;
    writeln!(out, "{:<5} {}", card.ordinal, card.name)?;
    writeln!(
        out,
        "      compute capability {major}.{minor}, {} multiprocessors, {} copy engines",
        card.multiprocessors, card.copy_engines
    )?;
    writeln!(
        out,
        "      memory {} MiB, {} MiB free; L2 cache {} MiB",
        card.memory_total / MIB,
        card.memory_free / MIB,
        card.l2_bytes / MIB
    )?;
    writeln!(
        out,
        "      shared memory {} KiB a block ({} KiB at most on request), {} KiB a multiprocessor",
        card.shared_per_block / 1024,
        card.shared_per_block_optin / 1024,
        card.shared_per_multiprocessor / 1024
    )
}

/// The instruction sets that matter to convolution.
#[cfg(target_arch = "x86_64")]
fn instruction_sets() -> Vec<&'static str> {
    [
        ("SSE2", true),
        ("SSE4.1", std::is_x86_feature_detected!("sse4.1")),
        ("AVX2", std::is_x86_feature_detected!("avx2")),
        ("AVX-512BW", std::is_x86_feature_detected!("avx512bw")),
        ("AVX-512VNNI", std::is_x86_feature_detected!("avx512vnni")),
    ]
    .into_iter()
    .filter_map(|(name, present)| present.then_some(name))
    .collect()
}

/// The instruction sets that matter to convolution.
#[cfg(not(target_arch = "x86_64"))]
fn instruction_sets() -> Vec<&'static str> {
    vec![std::env::consts::ARCH]
}
