//! What the benchmarks time is what the engine computes.

use super::{assert_same_rows, card_alone, chain, is_tried};
use framepipe::engine::Engine;
use framepipe::engine::cuda::{KernelCase, KernelEffort, KernelTimer, MemoryVariant};
use framepipe::engine::reference::Reference;
use framepipe::engine::verify::fill_with_noise;
use framepipe::filter::{Algorithm, Border, Chain, Planes};
use framepipe::frame::{Buffer, Frame, Layout, PixelFormat};
use framepipe::program::bench::{self, Bench, Effort, PeakKind, Scope, Subject};
use std::time::Duration;

/// The reference's result on the noise that a timer says it used.
fn expected(chain: &Chain, format: PixelFormat, (width, height): (usize, usize), seed: u64) -> Frame {
    let layout = Layout::new(format, width, height, 64).unwrap();
    let buffer = || Buffer::unpooled(Box::new(Vec::new()));
    let mut frame = Frame::new(layout, buffer()).unwrap();
    fill_with_noise(&mut frame, seed);
    let mut reference = Reference::new(chain.clone());
    reference.submit(frame, buffer(), 64).unwrap();
    reference.collect().unwrap().unwrap()
}

#[test]
fn kernels_that_are_timed_make_the_references_bits() {
    let Some(_card) = card_alone() else { return };
    let effort = KernelEffort {
        time: Duration::from_millis(2),
        rounds: (3, 5),
    };
    let size = (301, 97);
    let mut timer = KernelTimer::open(0, 77).unwrap();
    // The chains of several filters go through a second set of results, the others after them through the
    // same pictures as before.
    let chains: [(&[&str], Algorithm); 4] = [
        (&["gaussian:size=7"], Algorithm::Separable),
        (&["gaussian:size=7", "sharpen", "box:size=3"], Algorithm::Auto),
        (&["laplacian8"], Algorithm::Direct),
        (&["soft", "soft"], Algorithm::Separable),
    ];
    let formats =
        ["gray", "rgba", "gray16le", "yuv420p", "nv12"].map(|name| PixelFormat::from_name(name).unwrap());
    let chains = chains.map(|(specs, algorithm)| chain(specs, Border::Mirror, Planes::All, algorithm));
    for (index, format) in formats
        .into_iter()
        .enumerate()
        .filter(|(index, _)| is_tried(*index, 4))
    {
        // All chains on the first format; on the others one of several filters.
        let chosen = if index == 0 { &chains[..] } else { &chains[1..2] };
        for (turn, chain) in chosen.iter().enumerate() {
            // A case takes some 30 frames.
            let variants = MemoryVariant::ALL.into_iter().enumerate();
            let tried = variants.filter(|(at, _)| is_tried(index + turn + at, 4));
            let cases = tried.map(|(_, memory)| KernelCase {
                chain,
                format,
                width: size.0,
                height: size.1,
                memory,
                block: None,
                fuse: true,
            });
            let cases: Vec<_> = cases.collect();
            timer.compile(&cases);
            for case in cases {
                hold_timed(&mut timer, &case, effort);
            }
        }
    }
    let floats = [("rgbf32", &chains[0]), ("yaf16", &chains[3])];
    for (name, chain) in floats {
        let case = KernelCase {
            chain,
            format: PixelFormat::from_name(name).unwrap(),
            width: 137,
            height: 35,
            memory: MemoryVariant::Auto,
            block: None,
            fuse: true,
        };
        timer.compile(std::slice::from_ref(&case));
        hold_timed(&mut timer, &case, effort);
    }
}

/// Times of the case, and the reference's bits of what was timed.
fn hold_timed(timer: &mut KernelTimer, case: &KernelCase<'_>, effort: KernelEffort) {
    let timed = timer.time(case, effort).unwrap();
    let what = format!("{} {} {}", case.format, case.chain.filters.len(), case.memory);
    assert!((3..=5).contains(&timed.milliseconds.len()), "{what}");
    assert!(
        timed.milliseconds.iter().all(|t| t.is_finite() && *t > 0.0),
        "{what}"
    );
    assert!(timed.turns >= 3 && timed.block.is_some(), "{what}");
    let size = (case.width, case.height);
    let expected = expected(case.chain, case.format, size, timed.seed);
    assert_same_rows(&expected, &timed.output, &what);
}

#[test]
fn cells_of_a_sweep_are_checked_and_held_against_peaks() {
    let Some(_card) = card_alone() else { return };
    let (mut bench, why_not) = Bench::new(0, Effort::QUICK);
    assert!(bench.has_card(), "{why_not:?}");
    let case = |subject| bench::Case {
        subject,
        filter: "gaussian:size=5".parse().unwrap(),
        algorithm: Algorithm::Direct,
        border: Border::Replicate,
        format: PixelFormat::from_name("rgb24").unwrap(),
        width: 640,
        height: 361,
    };
    let block = None;
    for memory in [MemoryVariant::Auto, MemoryVariant::Texture] {
        for scope in Scope::ALL {
            let cell = bench
                .measure(&case(Subject::Cuda { memory, block }), scope)
                .unwrap();
            assert_eq!(cell.samples_checked, 640 * 361 * 3);
            let times = cell.milliseconds;
            assert!(times.min > 0.0 && times.min <= times.median && times.median <= times.p90);
            assert!(times.count >= 3 && cell.frames_in_turn >= 3);
            assert!(cell.share_of_copy.unwrap() > 0.0 && cell.speed_up.unwrap() > 0.0);
            assert_eq!(cell.share_of_arithmetic.is_some(), scope == Scope::Kernel);
        }
    }
    let rate = |kind| {
        let mut peaks = bench.peaks().iter();
        peaks.find(|c| c.kind == kind).map(|c| c.giga_per_second)
    };
    for kind in [PeakKind::Copy, PeakKind::Link, PeakKind::MultiplyAdd] {
        assert!(rate(kind).is_some_and(|r| r.is_finite() && r > 0.0), "{kind:?}");
    }
    let memory = MemoryVariant::Global;
    let block = Some((32, 64));
    let error = bench
        .measure(&case(Subject::Cuda { memory, block }), Scope::Kernel)
        .unwrap_err();
    assert!(
        error.is_refusal() && error.to_string().contains("2048"),
        "{error}"
    );
}
