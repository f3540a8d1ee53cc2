//! What filters that are no single mask cost on the card: edges of every direction, absolute values,
//! thresholds and wide Gaussians, beside one 3x3 mask of the same format and a plain copy of the frame.
//! `cargo bench --bench filters`, or checks/filters in a bundle; parts of rows' names as arguments choose
//! rows.
//!
//! The mask and the filter take turns, `ROUNDS` times each, and each figure is the median of their medians.
//! On the CPU `cargo bench --bench frames` times the same filters.

mod rows;

use framepipe::engine::cuda::{KernelCase, KernelEffort, KernelTimer, MemoryVariant, probe};
use framepipe::filter::Chain;
use framepipe::frame::PixelFormat;
use rows::{is_wanted, median};
use std::error::Error;
use std::time::Duration;

const ROUNDS: usize = 3;

/// Of one round of one of them.
const EFFORT: KernelEffort = KernelEffort {
    time: Duration::from_millis(150),
    rounds: (10, 1000),
};

/// The mask that filters are held against: half of `sobel`.
const MASK: &str = "sobel-x";

const FILTERS: [&str; 12] = [
    "sobel",
    "prewitt",
    "scharr",
    "roberts",
    "kirsch",
    "laplacian8:abs",
    "unsharp:sigma=1",
    "unsharp:sigma=1:threshold=3",
    "gaussian:sigma=10",
    "gaussian:sigma=10.4",
    "gaussian:sigma=30",
    "gaussian:sigma=100",
];

const FRAMES: [(&str, usize, usize); 5] = [
    ("gray", 1920, 1080),
    ("yuv420p", 3840, 2160),
    ("rgb24", 3840, 2160),
    ("gray10le", 3840, 2160),
    ("gray16le", 3840, 2160),
];

fn main() -> Result<(), Box<dyn Error>> {
    let card = match probe() {
        Ok(card) => card,
        Err(reason) => {
            println!("SKIPPED: the filter benchmark: {reason}");
            return Ok(());
        }
    };
    println!("{}, ms a frame; medians of {ROUNDS} rounds", card.name);
    println!(
        "{:<20} {:<28} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "frames", "filter", "copy", MASK, "filter", "of mask", "of copies"
    );
    let mut timer = KernelTimer::open(0, 1)?;
    for (name, width, height) in FRAMES {
        let size = format!("{width}x{height}:{name}");
        let format: PixelFormat = name.parse()?;
        let wanted = |filter: &&&str| is_wanted(&format!("{size} {filter}"));
        for filter in FILTERS.iter().filter(wanted) {
            let copies = timer.copies((format, width, height), EFFORT)?;
            let copy = copies.into_iter().map(median).fold(f64::INFINITY, f64::min);
            let chains = [Chain::parse(MASK)?, Chain::parse(filter)?];
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                for (chain, times) in chains.iter().zip(&mut times) {
                    let case = KernelCase {
                        chain,
                        format,
                        width,
                        height,
                        memory: MemoryVariant::Auto,
                        block: None,
                        fuse: true,
                    };
                    times.push(median(timer.time(&case, EFFORT)?.milliseconds));
                }
            }
            let [mask, time] = times.map(median);
            println!(
                "{size:<20} {filter:<28} {copy:>8.4} {mask:>8.4} {time:>8.4} {:>9.2} {:>9.2}",
                time / mask,
                time / copy
            );
        }
    }
    Ok(())
}
