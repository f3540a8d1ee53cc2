//! The CUDA engine on a card: every variant gives the reference's bits, and the ring holds up. Without a card
//! one line says so, and the tests that are quick enough run on a stand-in.
#![allow(clippy::unwrap_used)]

mod alpha;
mod borders;
mod divisors;
mod float;
mod formats;
mod fused;
mod long;
mod options;
mod program;
mod rgb;
mod ring;
#[path = "../standin/mod.rs"]
mod standin;
mod surfaces;
mod tiles;
mod timing;
#[path = "../tracks/mod.rs"]
mod tracks;
#[path = "../common/whole_matrix.rs"]
mod whole_matrix;
mod wide;

use framepipe::engine::cuda::{Cuda, CudaOptions, MemoryVariant, probe};
use framepipe::engine::reference::Reference;
use framepipe::engine::verify::{Case, compare};
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Border, Chain, Filter, Planes};
use framepipe::frame::{Buffer, Frame, FramePool, Layout, PixelFormat};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::fmt::Display;
use std::io::Write;
use std::process::Command;
use std::sync::{LazyLock, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use whole_matrix::is_whole_matrix;

/// Tests of this folder that need a card.
const TESTS: usize = 56;

/// Held to read by tests that compare bits, side by side, and to write by those that fill the card's memory,
/// count it or take times.
static CARD: RwLock<()> = RwLock::new(());

/// The card beside other tests, or `None` where there is none.
fn card() -> Option<RwLockReadGuard<'static, ()>> {
    is_there().then(|| CARD.read().unwrap_or_else(PoisonError::into_inner))
}

/// The card and no other test on it, or `None` where there is none.
fn card_alone() -> Option<RwLockWriteGuard<'static, ()>> {
    is_there().then(|| CARD.write().unwrap_or_else(PoisonError::into_inner))
}

/// True where there is a card; else one visible line says how many tests that skips.
fn is_there() -> bool {
    static SAID: Once = Once::new();
    match probe() {
        Ok(_) => true,
        Err(reason) => {
            let required = std::env::var_os("FRAMEPIPE_REQUIRE_GPU").is_some();
            assert!(!required, "FRAMEPIPE_REQUIRE_GPU is set, but {reason}");
            // Straight to the stream, since the harness shows what a passing test prints to nobody.
            SAID.call_once(|| {
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED: {TESTS} GPU tests (tests/gpu): {reason}"
                );
            });
            false
        }
    }
}

/// One for each way the kernels differ: zero is a constant.
static EACH_BORDER: LazyLock<Vec<Border>> = LazyLock::new(|| {
    let all = Border::ALL.into_iter();
    all.filter(|border| *border != Border::Zero).collect()
});

fn chain(specs: &[&str], border: Border, planes: Planes, algorithm: Algorithm) -> Chain {
    Chain {
        filters: specs.iter().map(|s| s.parse::<Filter>().unwrap()).collect(),
        border,
        planes,
        algorithm,
        alpha: Default::default(),
    }
}

fn case(chain: Chain, format: &str, (width, height): (usize, usize), seed: u64) -> Case {
    Case {
        chain,
        format: PixelFormat::from_name(format).unwrap(),
        width,
        height,
        seed,
    }
}

fn options(memory: MemoryVariant) -> CudaOptions {
    CudaOptions {
        memory,
        ..CudaOptions::default()
    }
}

fn start(options: CudaOptions) -> impl FnMut(Chain) -> Result<Box<dyn Engine>, EngineError> {
    move |chain| Ok(Box::new(Cuda::new(chain, options)?))
}

/// Tensor cores refuse some filters, so that they are held to the rest.
fn hold_against_reference(cases: &[Case], algorithm: Algorithm, options: CudaOptions) {
    let is_all = options.memory != MemoryVariant::Tensor;
    let able = cases.iter().filter(|case| is_all || case.suits_tensor());
    let cases = &able.cloned().collect::<Vec<Case>>()[..];
    let found = compare(cases, algorithm, &mut start(options)).unwrap();
    assert!(
        found.frames > 0 && found.samples > 0,
        "nothing compared: {options:?}"
    );
    assert_eq!(found.differences, 0, "{options:?} {algorithm}: {found:?}");
}

/// Every variant with each of these algorithms, side by side: most of the time is compilation, which takes
/// one core each.
fn hold_all_variants(cases: &[Case], algorithms: &[Algorithm]) {
    std::thread::scope(|scope| {
        for (v, memory) in MemoryVariant::ALL.into_iter().enumerate() {
            for (a, &algorithm) in algorithms.iter().enumerate() {
                let tried = cases.iter().enumerate().filter(|(c, _)| is_tried(c + v + a, 5));
                let tried: Vec<Case> = tried.map(|(_, case)| case.clone()).collect();
                scope.spawn(move || hold_against_reference(&tried, algorithm, options(memory)));
            }
        }
    });
}

/// The case's frame in memory from a pool, its rows aligned to `alignment` bytes.
fn frame_in(buffer: Buffer, case: &Case, alignment: usize) -> Frame {
    let noise = case.frame().unwrap();
    let layout = Layout::new(case.format, case.width, case.height, alignment).unwrap();
    let mut frame = Frame::new(layout, buffer).unwrap();
    for (plane, place) in layout.planes().iter().enumerate() {
        for y in 0..place.height {
            frame.row_mut(plane, y).copy_from_slice(noise.row(plane, y));
        }
    }
    frame.metadata = noise.metadata.clone();
    frame
}

/// Every row of every plane is the same in both frames, whatever lies between the rows.
fn assert_same_rows(expected: &Frame, got: &Frame, what: impl Display) {
    for (plane, place) in expected.layout().planes().iter().enumerate() {
        for y in 0..place.height {
            assert!(
                expected.row(plane, y) == got.row(plane, y),
                "{what}: plane {plane} row {y}"
            );
        }
    }
}

/// Filters a frame whose rows follow each other without a gap.
fn hold_packed_rows(case: &Case) {
    let unpooled = || Buffer::unpooled(Box::new(Vec::new()));
    let mut reference = Reference::new(case.chain.clone());
    reference.submit(case.frame().unwrap(), unpooled(), 1).unwrap();
    let expected = reference.collect().unwrap().unwrap();
    let mut engine = Cuda::new(case.chain.clone(), options(MemoryVariant::Tensor)).unwrap();
    let pool = FramePool::new(2, engine.input_allocator());
    let frame = frame_in(pool.try_take().unwrap(), case, 1);
    engine.submit(frame, pool.try_take().unwrap(), 1).unwrap();
    let got = engine.collect().unwrap().unwrap();
    assert_same_rows(&expected, &got, format_args!("{case:?}"));
}

/// Runs `cases` through one engine as a pipeline does: frames from its own pools, as many in flight as it
/// takes.
fn stream(engine: &mut dyn Engine, cases: &[Case], mut check: impl FnMut(usize, &Frame)) {
    let depth = engine.depth();
    let inputs = FramePool::new(depth + 2, engine.input_allocator());
    let outputs = FramePool::new(depth + 2, engine.output_allocator());
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut collect = |engine: &mut dyn Engine, waiting: &mut VecDeque<usize>| {
        let frame = engine.collect().unwrap().unwrap();
        let index = waiting.pop_front().unwrap();
        assert_eq!(frame.sequence, index as u64);
        check(index, &frame);
    };
    for (index, case) in cases.iter().enumerate() {
        if waiting.len() == depth {
            collect(engine, &mut waiting);
        }
        let mut frame = frame_in(inputs.try_take().unwrap(), case, 32);
        frame.sequence = index as u64;
        engine.submit(frame, outputs.try_take().unwrap(), 64).unwrap();
        waiting.push_back(index);
    }
    while !waiting.is_empty() {
        collect(engine, &mut waiting);
    }
    assert!(engine.collect().unwrap().is_none());
}

/// Puts all cases, which have the same chain, through one engine and holds each result against the
/// reference's.
fn hold_stream(engine: &mut dyn Engine, list: &[Case], reference: &mut Reference) {
    stream(engine, list, |index, frame| {
        let case = &list[index];
        let buffer = Buffer::unpooled(Box::new(Vec::new()));
        reference.submit(case.frame().unwrap(), buffer, 1).unwrap();
        let expected = reference.collect().unwrap().unwrap();
        assert_same_rows(&expected, frame, format_args!("frame {index}"));
    });
}

/// Tests whose frames are few and small enough for a stand-in, which computes a few million samples a second.
const ON_A_STAND_IN: [&str; 35] = [
    "timing::kernels_that_are_timed_make_the_references_bits",
    "divisors::sums_divided_by_a_multiplication_give_the_references_bits",
    "float::every_float_format_under_every_border",
    "float::floating_point_colour_under_alpha",
    "float::every_variant_gives_the_bits_of_floats_or_says_why_it_cannot",
    "float::floats_under_gaussians_that_fit_no_mask",
    "float::floats_that_are_no_numbers_are_stored_in_one_way",
    "float::chains_of_floats_go_through_the_ring_in_order",
    "divisors::masks_that_share_a_launch_divide_each_in_its_way",
    "formats::the_largest_of_eight_slopes_at_every_depth",
    "tiles::long_separable_masks_on_tensor_cores",
    "borders::halos_of_every_format",
    "fused::launches_of_small_frames_run_side_by_side",
    "alpha::every_colour_under_every_alpha",
    "alpha::colour_under_alpha_in_every_format_and_variant",
    "long::weights_of_three_bytes_and_more_give_the_references_bits",
    "alpha::wide_gaussians_of_colour_under_alpha",
    "tiles::wide_separable_masks_on_tensor_cores",
    "fused::masks_that_share_a_launch_give_the_references_bits",
    "formats::choices_of_planes_copy_and_fill_the_others",
    "fused::chains_stay_on_the_device",
    "ring::chains_that_begin_with_one_call_keep_the_bits_when_sizes_change",
    "program::a_trace_shows_uploads_beside_kernels_and_no_slot_used_twice",
    "options::without_overlap_the_bits_are_the_same",
    "ring::a_ring_of_changing_sizes_and_formats_keeps_order_and_bits",
    "options::a_block_or_device_that_cannot_be_is_refused_with_the_limit",
    "ring::two_engines_share_a_card",
    "ring::a_weights_change_of_one_engine_does_not_reach_another",
    "program::an_error_in_mid_stream_ends_the_run_with_its_reason",
    "program::an_interrupt_in_mid_flight_ends_with_whole_frames",
    "surfaces::surfaces_are_filtered_where_they_lie",
    "surfaces::several_decoders_share_blocks_and_an_engine",
    "surfaces::frames_in_a_row_come_back_right",
    "rgb::rgb_of_frames_on_the_card_has_the_references_bits",
    "rgb::rgb_that_cannot_be_made_is_refused",
];

/// True where the card is the stand-in that the test below starts this program with.
fn is_stand_in() -> bool {
    std::env::var_os("FRAMEPIPE_STANDIN_SEED").is_some()
}

/// True on a card, and on a stand-in for one in `part` turns: compiling and running the kernels takes a
/// processor long. With the sum of two places as `turn`, each of one list meets some of the other one's, and
/// its neighbour the next. FRAMEPIPE_WHOLE_MATRIX=1 has all of them tried.
fn is_tried(turn: usize, part: usize) -> bool {
    !is_stand_in() || turn.is_multiple_of(part) || is_whole_matrix()
}

#[test]
fn quick_tests_hold_on_a_stand_in_for_a_card() {
    let Some(stand_in) = standin::stand_in() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let run = |test: &str| {
        let report = folder.path().join(test);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test]).env("FRAMEPIPE_REQUIRE_GPU", "1");
        command
            .env("FRAMEPIPE_STANDIN_SEED", "2")
            .env("FRAMEPIPE_STANDIN_REPORT", &report);
        let done = stand_in
            .with(&mut command, &folder.path().join("kernels"))
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&done.stdout);
        assert!(
            done.status.success() && output.contains("1 passed; 0 failed"),
            "{output}{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let report = std::fs::read_to_string(report).unwrap_or_else(|e| panic!("{test} left no report: {e}"));
        assert!(!report.contains("complaint"), "{test}: {report}");
        report.contains("call cuGraphLaunch")
    };
    // Beside each other, since most of their time goes to compiling kernels, which takes one core each.
    // Every fourth one, or with FRAMEPIPE_WHOLE_MATRIX=1 all.
    let step = if is_whole_matrix() { 1 } else { 4 };
    let launched: Vec<bool> = ON_A_STAND_IN
        .par_iter()
        .step_by(step)
        .with_max_len(1)
        .map(|test| run(test))
        .collect();
    assert!(launched.contains(&true));
}

#[test]
fn without_a_driver_the_error_says_so_and_nothing_panics() {
    match probe() {
        Ok(info) => assert!(info.multiprocessors > 0 && info.memory_total > 0),
        Err(error) => {
            let text = error.to_string();
            assert!(
                ["driver", "NVRTC", "device"].iter().any(|w| text.contains(w)),
                "{text}"
            );
            assert!(text.contains("use the CPU"), "{text}");
            let chain = chain(&["box:size=3"], Border::Replicate, Planes::All, Algorithm::Auto);
            assert!(Cuda::new(chain, CudaOptions::default()).is_err());
        }
    }
}
