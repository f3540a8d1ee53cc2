//! The ring of slots: order, changing sizes, a full card, memory over time, several engines.

use super::{
    card, card_alone, case, chain, hold_against_reference, hold_stream, is_stand_in, is_tried, options,
    stream,
};
use framepipe::engine::Engine;
use framepipe::engine::cuda::{Cuda, CudaOptions, MemoryVariant, Overlap, Reservation, devices};
use framepipe::engine::reference::Reference;
use framepipe::engine::verify::{Case, cases};
use framepipe::filter::{Algorithm, Border, Planes};
use framepipe::frame::{Buffer, Frame, FramePool, Layout, PixelFormat};

/// From a slot's second frame of a size on, the chain's launches are one graph.
#[test]
fn chains_that_begin_with_one_call_keep_the_bits_when_sizes_change() {
    let Some(_card) = card() else { return };
    let specs = ["gaussian:size=5", "box:size=3", "mask:rows=1 2 1:divisor=4"];
    for (format, planes, memory, overlap) in [
        ("yuv420p", Planes::Luma, MemoryVariant::Auto, Overlap::Ring),
        ("rgba", Planes::All, MemoryVariant::Auto, Overlap::Ring),
        ("gray10le", Planes::All, MemoryVariant::Texture, Overlap::Ring),
        (
            "nv12",
            Planes::Gray,
            MemoryVariant::ConstantShared,
            Overlap::SerialPinned,
        ),
    ] {
        let chain = chain(&specs, Border::Mirror, planes, Algorithm::Separable);
        // Runs of one size, with single frames of others between them, and back to the first.
        let sizes = [[(65, 33); 9], [(32, 65); 9], [(65, 33); 9]].concat();
        let others = [(9, 31, 7), (20, 3, 120), (21, 1, 1)];
        let list: Vec<Case> = sizes
            .into_iter()
            .enumerate()
            .map(|(index, size)| {
                let other = others.iter().find(|other| other.0 == index);
                let size = other.map_or(size, |&(_, width, height)| (width, height));
                case(chain.clone(), format, size, index as u64)
            })
            .collect();
        let options = CudaOptions {
            slots: 2,
            overlap,
            ..options(memory)
        };
        let mut engine = Cuda::new(chain.clone(), options).unwrap();
        hold_stream(&mut engine, &list, &mut Reference::new(chain));
    }
}

#[test]
fn a_ring_of_changing_sizes_and_formats_keeps_order_and_bits() {
    let Some(_card) = card() else { return };
    let chain = chain(
        &["gaussian:size=9:sigma=2", "sharpen"],
        Border::Reflect,
        Planes::All,
        Algorithm::Auto,
    );
    let sizes = if is_stand_in() {
        [
            (64, 48),
            (160, 90),
            (3, 3),
            (161, 91),
            (17, 225),
            (64, 48),
            (240, 135),
        ]
    } else {
        [
            (64, 48),
            (640, 360),
            (3, 3),
            (641, 361),
            (17, 900),
            (64, 48),
            (1920, 1080),
        ]
    };
    let formats = ["rgb24", "yuv420p", "rgba", "gray12le"];
    let list: Vec<Case> = (0..40)
        .map(|i| case(chain.clone(), formats[i / 3 % 4], sizes[i % 7], i as u64))
        .collect();
    let mut reference = Reference::new(chain.clone());
    for memory in [MemoryVariant::Auto, MemoryVariant::Texture] {
        for (turn, slots) in [2, 3, 5].into_iter().enumerate() {
            if !is_tried(turn, 2) {
                continue;
            }
            let options = CudaOptions {
                slots,
                ..options(memory)
            };
            let mut engine = Cuda::new(chain.clone(), options).unwrap();
            hold_stream(&mut engine, &list, &mut reference);
            let times = engine.device_times().unwrap();
            assert_eq!(times.count, 40);
            assert_eq!(times.frames.len(), 40);
            assert!(times.wall > 0.0 && times.totals.iter().all(|&t| t > 0.0 && t <= times.wall));
            for pair in times.frames.windows(2) {
                assert!(pair[0].download.1 <= pair[1].download.1);
            }
            for frame in &times.frames {
                assert!(frame.upload.1 <= frame.kernel.0 + 1e-5 && frame.kernel.1 <= frame.download.0 + 1e-5);
            }
        }
    }
}

#[test]
fn a_full_card_leaves_fewer_slots_and_then_a_clear_error() {
    let Some(_card) = card_alone() else { return };
    let chain = chain(&["box:size=3"], Border::Replicate, Planes::All, Algorithm::Direct);
    // 64 MB a picture, two pictures a slot.
    let list: Vec<Case> = (0..4)
        .map(|i| case(chain.clone(), "gray", (8192, 7813), i))
        .collect();
    let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    let reservation = Reservation::leaving(0, 320 << 20).unwrap();
    stream(&mut engine, &list, |_, _| {});
    let slots = engine.device_times().unwrap().slots;
    assert!((1..3).contains(&slots), "{slots} slots");
    drop(engine);
    drop(reservation);

    let mut engine = Cuda::new(chain, CudaOptions::default()).unwrap();
    let reservation = Reservation::leaving(0, 32 << 20).unwrap();
    let input = list[0].frame().unwrap();
    let buffer = Buffer::unpooled(Box::new(Vec::new()));
    let error = engine.submit(input, buffer, 1).unwrap_err().to_string();
    assert!(
        error.contains("MiB are needed") && error.contains("are free"),
        "{error}"
    );
    drop(reservation);
}

#[test]
fn a_run_broken_off_frees_what_it_held() {
    let Some(_card) = card_alone() else { return };
    let free = || devices().unwrap().cards[0].memory_free;
    let chain = chain(
        &["gaussian:sigma=3"],
        Border::Replicate,
        Planes::All,
        Algorithm::Auto,
    );
    let case = case(chain.clone(), "rgb24", (1920, 1080), 3);
    let keep = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    let mut before = 0;
    for round in 0..20 {
        let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
        for _ in 0..3 {
            let buffer = Buffer::unpooled(Box::new(Vec::new()));
            engine.submit(case.frame().unwrap(), buffer, 64).unwrap();
        }
        // Dropped with three frames in flight.
        drop(engine);
        if round == 4 {
            before = free();
        }
    }
    assert!(
        free() + (4 << 20) >= before,
        "{before} bytes were free, {} are",
        free()
    );
    drop(keep);
}

#[test]
fn memory_stays_flat_over_a_hundred_thousand_frames() {
    let Some(_card) = card_alone() else { return };
    let chain = chain(
        &["gaussian:size=5:sigma=1.1"],
        Border::Replicate,
        Planes::All,
        Algorithm::Auto,
    );
    let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    let inputs = FramePool::new(5, engine.input_allocator());
    let outputs = FramePool::new(5, engine.output_allocator());
    let layout = Layout::new(PixelFormat::from_name("yuv420p").unwrap(), 64, 48, 1).unwrap();
    let mut in_flight = 0;
    let mut before = None;
    for number in 0..100_000_u64 {
        if in_flight == engine.depth() {
            assert!(engine.collect().unwrap().is_some());
            in_flight -= 1;
        }
        let mut frame = Frame::new(layout, inputs.try_take().unwrap()).unwrap();
        frame.sequence = number;
        engine.submit(frame, outputs.try_take().unwrap(), 1).unwrap();
        in_flight += 1;
        if number == 20_000 {
            before = Some((resident_bytes(), devices().unwrap().cards[0].memory_free));
        }
    }
    while engine.collect().unwrap().is_some() {}
    let (resident, free) = before.unwrap();
    let now = (resident_bytes(), devices().unwrap().cards[0].memory_free);
    assert!(
        now.0 < resident + (8 << 20),
        "resident memory grew from {resident} to {}",
        now.0
    );
    assert!(
        now.1 + (8 << 20) > free,
        "free device memory shrank from {free} to {}",
        now.1
    );
    assert_eq!(engine.device_times().unwrap().count, 100_000);
    assert_eq!(engine.device_times().unwrap().frames.len(), 1024);
}

/// Bytes of this process that lie in memory.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn two_engines_share_a_card() {
    let Some(_card) = card() else { return };
    let list = cases(20);
    std::thread::scope(|scope| {
        for memory in [
            MemoryVariant::Auto,
            MemoryVariant::Constant,
            MemoryVariant::Texture,
        ] {
            let list = &list;
            scope.spawn(move || hold_against_reference(list, Algorithm::Auto, options(memory)));
        }
    });
}

#[test]
fn a_weights_change_of_one_engine_does_not_reach_another() {
    let Some(_card) = card() else { return };
    // Two engines of one process whose kernels have the same text and other weights, used in turn.
    let blur = chain(&["box:size=5"], Border::Replicate, Planes::All, Algorithm::Direct);
    let gauss = chain(
        &["gaussian:size=5:sigma=1"],
        Border::Replicate,
        Planes::All,
        Algorithm::Direct,
    );
    let mut engines = [
        Cuda::new(blur.clone(), options(MemoryVariant::ConstantShared)).unwrap(),
        Cuda::new(gauss.clone(), options(MemoryVariant::ConstantShared)).unwrap(),
    ];
    let cases = [case(blur, "gray", (99, 77), 1), case(gauss, "gray", (99, 77), 1)];
    let mut results: Vec<Vec<Vec<u8>>> = vec![Vec::new(), Vec::new()];
    for _ in 0..3 {
        for (index, engine) in engines.iter_mut().enumerate() {
            stream(engine, &cases[index..=index], |_, frame| {
                results[index].push((0..77).flat_map(|y| frame.row(0, y).to_vec()).collect());
            });
        }
    }
    for (index, case) in cases.iter().enumerate() {
        let mut reference = Reference::new(case.chain.clone());
        let buffer = Buffer::unpooled(Box::new(Vec::new()));
        reference.submit(case.frame().unwrap(), buffer, 1).unwrap();
        let expected = reference.collect().unwrap().unwrap();
        let expected: Vec<u8> = (0..77).flat_map(|y| expected.row(0, y).to_vec()).collect();
        assert!(results[index].iter().all(|r| *r == expected));
    }
}
