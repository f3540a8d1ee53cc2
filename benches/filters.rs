//! What filters that are no single mask cost on the card: edges of every direction, absolute values,
//! thresholds and wide Gaussians, beside one 3x3 mask of the same format and a plain copy of the frame. Then
//! whole and separable masks of every size on floating-point frames, beside a copy; scripts/peers/gpu.py
//! holds those against other libraries.
//! `cargo bench --bench filters`, or checks/filters in a bundle; parts of rows' names as arguments choose
//! rows.
//!
//! The mask and the filter take turns, `ROUNDS` times each, and each figure is the median of their medians.
//! On the CPU `cargo bench --bench frames` times the same filters.

mod rows;

use framepipe::engine::cuda::{KernelCase, KernelEffort, KernelTimer, MemoryVariant, probe};
use framepipe::filter::{Algorithm, Chain};
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

const FLOAT_FRAMES: [(&str, usize, usize); 6] = [
    ("grayf32", 1920, 1080),
    ("rgbf32", 1920, 1080),
    ("grayf16", 3840, 2160),
    ("grayf32", 3840, 2160),
    ("rgbf32", 3840, 2160),
    ("rgbaf32", 3840, 2160),
];

/// Sides of masks for floating-point frames.
const SIDES: [usize; 8] = [3, 5, 7, 9, 11, 15, 25, 31];

/// A mask of this side: whole, without symmetry and of full rank; or a Gaussian, of which the two factors are
/// applied.
fn mask(kind: &str, side: usize) -> Result<Chain, Box<dyn Error>> {
    if kind == "separable" {
        let mut chain = Chain::parse(&format!("gaussian:size={side}"))?;
        chain.algorithm = Algorithm::Separable;
        return Ok(chain);
    }
    let weight = |y: usize, x: usize| (1 + (7 * y + 5 * x + 3 * x * y) % 11).to_string();
    let row = |y: usize| (0..side).map(|x| weight(y, x)).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = (0..side).map(row).collect();
    let mut chain = Chain::parse(&format!("mask:rows={}:divisor=sum", rows.join(";")))?;
    chain.algorithm = Algorithm::Direct;
    Ok(chain)
}

/// Floating-point frames: each mask's time, beside the copy's, and multiply-adds a second.
fn floats(timer: &mut KernelTimer) -> Result<(), Box<dyn Error>> {
    println!(
        "{:<20} {:<12} {:>8} {:>8} {:>9} {:>10}",
        "frames", "mask", "copy", "filter", "of copies", "10^12 fma/s"
    );
    for (name, width, height) in FLOAT_FRAMES {
        let size = format!("{width}x{height}:{name}");
        let format: PixelFormat = name.parse()?;
        let rows = ["direct", "separable"]
            .into_iter()
            .flat_map(|kind| SIDES.map(|side| (kind, side)));
        let wanted = rows.filter(|(kind, side)| is_wanted(&format!("{size} {kind} {side}")));
        let mut copy = None;
        for (kind, side) in wanted {
            let copy = match copy {
                Some(copy) => copy,
                None => {
                    let copies = timer.copies((format, width, height), EFFORT)?;
                    *copy.insert(copies.into_iter().map(median).fold(f64::INFINITY, f64::min))
                }
            };
            let chain = mask(kind, side)?;
            let case = KernelCase {
                chain: &chain,
                format,
                width,
                height,
                memory: MemoryVariant::Auto,
                block: None,
                fuse: true,
            };
            let times = (0..ROUNDS).map(|_| Ok(median(timer.time(&case, EFFORT)?.milliseconds)));
            let time = median(times.collect::<Result<_, Box<dyn Error>>>()?);
            let taps = if kind == "direct" { side * side } else { 2 * side };
            let samples = width * height * format.planes()[0].channels.len();
            let rate = (samples * taps) as f64 / (time / 1e3) / 1e12;
            println!(
                "{size:<20} {:<12} {copy:>8.4} {time:>8.4} {:>9.2} {rate:>10.2}",
                format!("{kind} {side}"),
                time / copy
            );
        }
    }
    Ok(())
}

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
    floats(&mut timer)
}
