//! What filters that share a launch save: chains of small masks with two of them a launch beside one a
//! launch, and beside a plain copy of the frame, on the card alone. `cargo bench --bench chains`, or
//! checks/chains in a bundle; parts of rows' names as arguments choose rows.
//!
//! Both take turns, `ROUNDS` times each, and each figure is the median of their medians. What they made
//! of the same noise is compared.

mod rows;

use framepipe::engine::EngineError;
use framepipe::engine::cuda::{KernelCase, KernelEffort, KernelTimer, MemoryVariant, probe};
use framepipe::filter::{Algorithm, Border, Chain, Planes};
use framepipe::frame::{Frame, PixelFormat};
use rows::{is_wanted, median};
use std::error::Error;
use std::time::Duration;

type Fallible<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 3;

/// Of one round of one of them.
const EFFORT: KernelEffort = KernelEffort {
    time: Duration::from_millis(150),
    rounds: (10, 1000),
};

/// Mask sizes of the chains. Some are beyond what shares a launch: then both take the same time.
const CHAINS: [&[usize]; 12] = [
    &[3, 3],
    &[3, 5],
    &[5, 3],
    &[5, 5],
    &[3, 7],
    &[5, 7],
    &[7, 5],
    &[3, 9],
    &[9, 3],
    &[3, 3, 3],
    &[3, 3, 3, 3],
    &[7, 7],
];

const FRAMES: [(&str, usize, usize); 5] = [
    ("gray", 7680, 4320),
    ("gray", 1920, 1080),
    ("gray", 1280, 720),
    ("yuv420p", 3840, 2160),
    ("gbrp", 1920, 1080),
];

fn main() -> Fallible<()> {
    let card = match probe() {
        Ok(card) => card,
        Err(reason) => {
            println!("SKIPPED: the chain benchmark: {reason}");
            return Ok(());
        }
    };
    println!(
        "{}, Gaussians applied whole on tensor cores, ms a frame; medians of {ROUNDS} rounds",
        card.name
    );
    println!(
        "{:<18} {:<10} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "frames", "masks", "copy", "separate", "shared", "of separate", "of copies"
    );
    let mut timer = KernelTimer::open(0, 1)?;
    for (format, width, height) in FRAMES {
        let size = format!("{width}x{height}:{format}");
        let format: PixelFormat = format.parse()?;
        let rows = CHAINS.map(|masks| {
            (
                masks,
                masks.iter().map(usize::to_string).collect::<Vec<_>>().join(" "),
            )
        });
        let wanted = rows
            .iter()
            .filter(|(_, name)| is_wanted(&format!("{size} {name}")));
        for (masks, name) in wanted {
            let copies = timer.copies((format, width, height), EFFORT)?;
            let copy = copies.into_iter().map(median).fold(f64::INFINITY, f64::min);
            let chain = chain(masks)?;
            let (mut separate, mut shared) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let mut time = |fuse| {
                    timer.time(
                        &KernelCase {
                            chain: &chain,
                            format,
                            width,
                            height,
                            memory: MemoryVariant::Tensor,
                            block: None,
                            fuse,
                        },
                        EFFORT,
                    )
                };
                let (one, two) = (time(false)?, time(true)?);
                same(&one.output, &two.output)?;
                separate.push(median(one.milliseconds));
                shared.push(median(two.milliseconds));
            }
            let (separate, shared) = (median(separate), median(shared));
            println!(
                "{size:<18} {name:<10} {copy:>8.4} {separate:>8.4} {shared:>8.4} {:>9.3} {:>9.2}",
                shared / separate,
                shared / copy
            );
        }
    }
    Ok(())
}

fn chain(masks: &[usize]) -> Fallible<Chain> {
    let filters = masks
        .iter()
        .map(|size| format!("gaussian:size={size}:sigma=1.7").parse());
    Ok(Chain {
        filters: filters.collect::<Result<_, _>>()?,
        border: Border::Replicate,
        planes: Planes::All,
        algorithm: Algorithm::Direct,
        alpha: Default::default(),
    })
}

/// An error if two results differ.
fn same(one: &Frame, two: &Frame) -> Result<(), EngineError> {
    for (plane, place) in one.layout().planes().iter().enumerate() {
        if (0..place.height).any(|y| one.row(plane, y) != two.row(plane, y)) {
            return Err(EngineError::Device {
                doing: "comparing filters that share a launch with filters that do not".to_owned(),
                reason: "their results differ; this is a defect of framepipe or of this machine".to_owned(),
            });
        }
    }
    Ok(())
}
