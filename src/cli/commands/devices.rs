//! `framepipe devices`: the devices of this machine that can filter.

use super::Failure;
use framepipe::engine::cpu::InstructionSet;
use framepipe::engine::cuda::{self, DeviceInfo};
use framepipe::program::bench::processor;
use framepipe::wording::counted;
use std::io::Write;

/// Prints the processor and its instruction sets.
pub(crate) fn list(out: &mut impl Write) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    writeln!(out, "cpu   {}", processor())?;
    writeln!(out, "      {} for this process", counted(cores as u64, "core"))?;
    let sets: Vec<String> = InstructionSet::available().map(|set| set.to_string()).collect();
    writeln!(
        out,
        "      vector instructions {}; {} is used (--simd chooses)",
        sets.join(", "),
        InstructionSet::detect()
    )?;
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
