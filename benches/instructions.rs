//! Runs each kind of inner loop of the CPU engine once on a fixed small picture, for
//! `scripts/count-instructions`, which counts the instructions within `counted`. Prints a
//! line for each, in the order of the counts.

#![allow(clippy::unwrap_used)]

mod cases;

use cases::{CASES, Run};
use framepipe::engine::cpu::InstructionSet;
use framepipe::frame::{Buffer, Frame};

fn main() {
    for set in InstructionSet::available() {
        for case in &CASES {
            // Not a multiple of any vector, and tall enough for the loops to outweigh what they begin with.
            let mut run = Run::new(case, set, 333, 72);
            // Once before, so that plans are made and memory is there.
            for is_counted in [false, true] {
                let input = run.input();
                if is_counted {
                    counted(&mut run, input);
                } else {
                    run.filter(input);
                }
            }
            println!("{set} {}", case.name);
        }
    }
}

/// What is counted, by this name.
#[inline(never)]
fn counted(run: &mut Run, input: (Frame, Buffer)) -> Frame {
    run.filter(input)
}
