//! Times each kind of inner loop of the CPU engine, with each instruction set that this machine has, on one
//! thread and a picture of 640x360.
//!
//!     cargo bench --bench kernels                  all of them
//!     cargo bench --bench kernels -- separable     those whose name has that in it

#![allow(clippy::unwrap_used)]

mod cases;

use cases::{CASES, Run};
use divan::{Bencher, counter::ItemsCount};
use framepipe::engine::cpu::InstructionSet;

const SIZE: (usize, usize) = (640, 360);

fn main() {
    divan::main();
}

fn names() -> impl Iterator<Item = String> {
    InstructionSet::available().flat_map(|set| CASES.iter().map(move |case| format!("{set} {}", case.name)))
}

/// Throughput is in pixels.
#[divan::bench(args = names(), sample_count = 50)]
fn kernels(bencher: Bencher<'_, '_>, name: &str) {
    let (set, case) = name.split_once(' ').unwrap();
    let case = CASES.iter().find(|c| c.name == case).unwrap();
    let start = || Run::new(case, set.parse().unwrap(), SIZE.0, SIZE.1);
    let (mut run, pictures) = (start(), start());
    bencher
        .counter(ItemsCount::new(SIZE.0 * SIZE.1))
        .with_inputs(|| pictures.input())
        .bench_local_values(|input| run.filter(input));
}
