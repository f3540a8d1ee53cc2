//! A made-up sweep that holds every axis.
#![allow(dead_code, clippy::unwrap_used)]

use framepipe::program::bench::{Cell, Machine, Peak, PeakKind, Scope, Spread, Sweep, Versions};

/// What a made-up cell is.
struct Choice<'a> {
    engine: &'a str,
    scope: Scope,
    variant: Option<&'a str>,
    algorithm: &'a str,
    block: Option<&'a str>,
    threads: Option<usize>,
    mask: usize,
    format: &'a str,
    size: (usize, usize),
}

fn cell(choice: &Choice<'_>, milliseconds: f64) -> Cell {
    let (width, height) = choice.size;
    let channels = if choice.format == "rgb24" { 3 } else { 1 };
    let samples = (width * height * channels) as u64;
    let taps = match choice.algorithm {
        "separable" => 2 * choice.mask,
        _ => choice.mask * choice.mask,
    };
    let (bytes, multiply_adds) = (2 * samples, samples * taps as u64);
    let a_second = |amount: f64| amount / (milliseconds / 1e3) / 1e9;
    let reference = samples as f64 * taps as f64 * 1.1e-6;
    Cell {
        engine: choice.engine.to_owned(),
        scope: choice.scope,
        variant: choice.variant.map(str::to_owned),
        algorithm: choice.algorithm.to_owned(),
        block: choice.block.map(str::to_owned),
        threads: choice.threads,
        filter: format!("gaussian:size={}", choice.mask),
        mask_width: choice.mask,
        mask_height: choice.mask,
        format: choice.format.to_owned(),
        width,
        height,
        border: "replicate".to_owned(),
        milliseconds: Spread::of(&[milliseconds, milliseconds * 0.98, milliseconds * 1.1]).unwrap(),
        warm_milliseconds: (choice.engine == "cpu").then(|| Spread::of(&[milliseconds * 0.7]).unwrap()),
        rows_timed: height,
        frames_in_turn: 40,
        bytes,
        multiply_adds,
        gigapixels_per_second: a_second((width * height) as f64),
        gigabytes_per_second: a_second(bytes as f64),
        gigamacs_per_second: a_second(multiply_adds as f64),
        share_of_copy: Some(0.4),
        share_of_arithmetic: Some(0.3),
        reference_milliseconds: Some(reference),
        speed_up: Some(reference / milliseconds),
        published_milliseconds: (choice.variant == Some("shared")).then_some(milliseconds * 20.0),
        published_speed_up: (choice.variant == Some("shared")).then_some(reference / milliseconds / 30.0),
        samples_checked: samples,
    }
}

const FULL_HD: (usize, usize) = (1920, 1080);

/// What the card is given where an axis says nothing else.
const CARD: Choice<'_> = Choice {
    engine: "cuda",
    scope: Scope::Kernel,
    variant: Some("auto"),
    algorithm: "direct",
    block: Some("32x8"),
    threads: None,
    mask: 7,
    format: "gray",
    size: FULL_HD,
};

const VARIANTS: [&str; 6] = [
    "global",
    "constant",
    "shared",
    "constant-shared",
    "texture",
    "auto",
];

/// Masks, variants, blocks, threads, sizes and formats.
pub(crate) fn sweep() -> Sweep {
    let machine = Machine {
        cpu: "Made-up <processor>".to_owned(),
        cores: 16,
        instruction_set: "avx2".to_owned(),
        gpu: Some("Made-up card".to_owned()),
        ..Machine::default()
    };
    let mut sweep = Sweep::new(
        "kernels, a made-up sweep".to_owned(),
        machine,
        Versions::default(),
    );
    for mask in [3, 5, 7, 9, 11, 13, 15] {
        add_mask(&mut sweep, mask);
    }
    add_blocks(&mut sweep);
    add_threads(&mut sweep);
    add_sizes(&mut sweep);
    add_peaks(&mut sweep);
    sweep.note("a note with <b>&\"");
    sweep
}

/// A mask of all variants, on the processor and by the reference.
fn add_mask(sweep: &mut Sweep, mask: usize) {
    for (index, variant) in VARIANTS.into_iter().enumerate() {
        for algorithm in ["direct", "separable"] {
            let taps = if algorithm == "direct" {
                mask * mask
            } else {
                2 * mask + 6
            };
            let ms = 0.002 + taps as f64 * (1.0 - 0.12 * index as f64) * 2e-4;
            let choice = Choice {
                variant: Some(variant),
                algorithm,
                mask,
                ..CARD
            };
            sweep.cells.push(cell(&choice, ms));
        }
    }
    let on_cpu = Choice {
        engine: "cpu",
        variant: None,
        block: None,
        threads: Some(16),
        mask,
        ..CARD
    };
    sweep
        .cells
        .push(cell(&on_cpu, 0.1 + mask as f64 * mask as f64 * 0.003));
    let plain = Choice {
        engine: "reference",
        threads: Some(1),
        ..on_cpu
    };
    sweep.cells.push(cell(&plain, 2.0 * mask as f64 * mask as f64));
}

fn add_blocks(sweep: &mut Sweep) {
    for (x, y) in [
        (8, 8),
        (16, 8),
        (16, 16),
        (32, 4),
        (32, 8),
        (32, 16),
        (32, 32),
        (64, 4),
        (64, 8),
        (128, 2),
    ] {
        for (index, variant) in VARIANTS.into_iter().take(3).enumerate() {
            let block = format!("{x}x{y}");
            let choice = Choice {
                variant: Some(variant),
                block: Some(&block),
                mask: 5,
                size: (3840, 2160),
                ..CARD
            };
            sweep.cells.push(cell(
                &choice,
                0.05 + 0.01 * index as f64 + (f64::from(x * y) - 200.0).abs() * 1e-4,
            ));
        }
    }
}

fn add_threads(sweep: &mut Sweep) {
    for threads in [1, 2, 4, 8, 16] {
        for (algorithm, ms) in [("direct", 12.0), ("separable", 4.0)] {
            let choice = Choice {
                engine: "cpu",
                variant: None,
                block: None,
                threads: Some(threads),
                algorithm,
                size: (4096, 2160),
                mask: 9,
                ..CARD
            };
            sweep
                .cells
                .push(cell(&choice, ms / threads as f64 + 0.08 * threads as f64));
        }
    }
}

/// Sizes and formats, in memory of the card and through the ring.
fn add_sizes(sweep: &mut Sweep) {
    for (format, size) in [
        ("gray", (640, 480)),
        ("gray", (3840, 2160)),
        ("gray", (7680, 4320)),
        ("rgb24", FULL_HD),
        ("yuv420p", FULL_HD),
    ] {
        for scope in [Scope::Kernel, Scope::Ring] {
            let choice = Choice {
                scope,
                format,
                size,
                ..CARD
            };
            let megapixels = (size.0 * size.1) as f64 / 1e6;
            let ms = if scope == Scope::Ring {
                0.03 + megapixels * 0.06
            } else {
                0.004 + megapixels * 0.005
            };
            sweep.cells.push(cell(&choice, ms));
        }
    }
}

fn add_peaks(sweep: &mut Sweep) {
    for (engine, kind, rate) in [
        ("cuda", PeakKind::Copy, 3900.0),
        ("cuda", PeakKind::Link, 92.0),
        ("cuda", PeakKind::MultiplyAdd, 16_500.0),
        ("cuda", PeakKind::DotProduct, 66_000.0),
        ("cpu", PeakKind::Copy, 180.0),
    ] {
        sweep.peaks.push(Peak {
            engine: engine.to_owned(),
            kind,
            bytes: matches!(kind, PeakKind::Copy | PeakKind::Link).then_some(1 << 26),
            threads: (engine == "cpu").then_some(16),
            giga_per_second: rate,
            method: "made up".to_owned(),
        });
    }
}
