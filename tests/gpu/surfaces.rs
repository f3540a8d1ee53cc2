//! Frames of the card's decoders: surfaces become planes to the bit, are filtered where they lie, and give
//! their memory back for the next.

use super::{assert_same_rows, card, case, chain, is_tried, options, standin};
use framepipe::engine::Engine;
use framepipe::engine::cuda::decode::{DecoderCard, DecoderStream, Surface};
use framepipe::engine::cuda::{CardMemory, Cuda, CudaOptions, MemoryVariant, devices};
use framepipe::engine::reference::Reference;
use framepipe::engine::several::Several;
use framepipe::engine::verify::Case;
use framepipe::filter::{Algorithm, Border, Chain, Planes};
use framepipe::frame::{Buffer, Frame, FramePool, PixelFormat};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Command;

const SIZES: [(usize, usize); 6] = [(1, 1), (2, 2), (17, 9), (16, 3), (641, 5), (322, 130)];

/// A decoder's surface of the case's frame, and its memory.
fn surface_of(card: &DecoderCard, case: &Case, frame: &Frame) -> (Surface, Box<dyn Send>) {
    let bytes = case.format.bytes_per_sample();
    // The bits that a surface's samples have on the right.
    let shift = if bytes == 1 { 0 } else { 16 - case.format.depth() };
    let (width, height) = (case.width, case.height);
    let pitch = (width.next_multiple_of(2) * bytes).next_multiple_of(256) + 256;
    // What lies between rows is no part of the picture.
    let mut luma = vec![0xA5_u8; pitch * height];
    let mut chroma = vec![0x5A_u8; pitch * height.div_ceil(2)];
    let put = |to: &mut [u8], at: usize, value: u16| match bytes {
        1 => to[at] = value as u8,
        _ => to[2 * at..2 * at + 2].copy_from_slice(&(value << shift).to_le_bytes()),
    };
    for y in 0..height {
        for x in 0..width {
            put(&mut luma[y * pitch..], x, frame.sample(0, x, y, 0));
        }
    }
    for y in 0..height.div_ceil(2) {
        for x in 0..width.div_ceil(2) {
            put(&mut chroma[y * pitch..], 2 * x, frame.sample(1, x, y, 0));
            put(&mut chroma[y * pitch..], 2 * x + 1, frame.sample(2, x, y, 0));
        }
    }
    card.surface((&luma, &chroma), [pitch; 2]).unwrap()
}

/// The case's frame on the card, as a decoder's surface of it becomes one.
fn on_card(stream: &mut DecoderStream, card: &DecoderCard, case: &Case, frame: &Frame) -> Frame {
    let (surface, owner) = surface_of(card, case, frame);
    taken(stream, &surface, owner, case)
}

/// The frame that a surface becomes.
fn taken(stream: &mut DecoderStream, surface: &Surface, owner: Box<dyn Send>, case: &Case) -> Frame {
    let (layout, memory) = stream.take(surface, owner).unwrap();
    let mut frame = Frame::new(layout, Buffer::unpooled(memory)).unwrap();
    assert!(frame.on_device().is_some() && !frame.is_pinned());
    frame.metadata = case.frame().unwrap().metadata;
    frame
}

/// What the reference makes of the case.
fn expected(case: &Case) -> Frame {
    let mut reference = Reference::new(case.chain.clone());
    let unpooled = Buffer::unpooled(Box::new(Vec::new()));
    reference.submit(case.frame().unwrap(), unpooled, 1).unwrap();
    reference.collect().unwrap().unwrap()
}

fn hold(chain: &Chain, format: &str, options: CudaOptions) {
    let format_of_card = PixelFormat::from_name(format).unwrap();
    let mut engine = Cuda::new(chain.clone(), options).unwrap();
    for (seed, size) in SIZES.into_iter().enumerate() {
        let case = case(chain.clone(), format, size, seed as u64);
        let source = case.frame().unwrap();
        let card = DecoderCard::open(0, format_of_card, size).unwrap();
        let mut stream = card.stream().unwrap();
        let frame = on_card(&mut stream, &card, &case, &source);
        engine
            .submit(frame, Buffer::unpooled(Box::new(Vec::new())), 32)
            .unwrap();
        let got = engine.collect().unwrap().unwrap();
        assert_same_rows(
            &expected(&case),
            &got,
            format_args!("{format} {size:?} {options:?}"),
        );
        // On the host, too, where somebody wants it there.
        let frame = on_card(&mut stream, &card, &case, &source);
        assert_same_rows(&source, &frame, format_args!("{format} {size:?} fetched"));
    }
}

#[test]
fn surfaces_are_filtered_where_they_lie() {
    let Some(_card) = card() else { return };
    let chains = [&["gaussian:sigma=1"][..], &["sharpen", "box:size=3"]];
    let variants = [
        MemoryVariant::Auto,
        MemoryVariant::Registers,
        MemoryVariant::Texture,
    ];
    for (f, format) in ["yuv420p", "yuv420p10le", "yuv420p12le"].into_iter().enumerate() {
        for (c, filters) in chains.into_iter().enumerate() {
            for (v, variant) in variants.into_iter().enumerate() {
                if is_tried(f + c + v, 5) {
                    let chain = chain(filters, Border::Mirror, Planes::All, Algorithm::Auto);
                    hold(&chain, format, options(variant));
                }
            }
        }
    }
    let other = DecoderCard::open(0, PixelFormat::RGB24, (2, 2));
    assert!(other.unwrap_err().to_string().contains("rgb24"));
}

#[test]
fn several_decoders_share_blocks_and_an_engine() {
    let Some(_card) = card() else { return };
    let chain = chain(&["box:size=3"], Border::Replicate, Planes::All, Algorithm::Auto);
    let card = DecoderCard::open(0, PixelFormat::YUV420P, (66, 34)).unwrap();
    let mut streams: Vec<DecoderStream> = (0..3).map(|_| card.stream().unwrap()).collect();
    let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    let cases: Vec<Case> = (0..24)
        .map(|seed| case(chain.clone(), "yuv420p", (66, 34), seed))
        .collect();
    let mut done = 0;
    for (number, of) in cases.iter().enumerate() {
        let frame = on_card(&mut streams[number % 3], &card, of, &of.frame().unwrap());
        if number % 5 == 4 {
            // One that nobody filters leaves its block while it may still be on its way.
            drop(on_card(&mut streams[0], &card, of, &of.frame().unwrap()));
        }
        engine
            .submit(frame, Buffer::unpooled(Box::new(Vec::new())), 1)
            .unwrap();
        while number + 1 - done >= engine.depth() {
            let got = engine.collect().unwrap().unwrap();
            assert_same_rows(&expected(&cases[done]), &got, format_args!("frame {done}"));
            done += 1;
        }
    }
    while let Some(got) = engine.collect().unwrap() {
        assert_same_rows(&expected(&cases[done]), &got, format_args!("frame {done}"));
        done += 1;
    }
    assert_eq!(done, cases.len());
    // Results that stay on the card: of frames that lie there, and of those that are uploaded, in turn.
    let keeps = CudaOptions {
        keeps_results: true,
        ..CudaOptions::default()
    };
    let mut engine = Cuda::new(chain, keeps).unwrap();
    let pool = FramePool::new(2, engine.output_allocator());
    let mut kept = Vec::new();
    for (number, of) in cases.iter().enumerate() {
        let mut frame = of.frame().unwrap();
        if number % 2 == 0 {
            frame = on_card(&mut streams[1], &card, of, &frame);
        }
        engine.submit(frame, pool.try_take().unwrap(), 1).unwrap();
        let got = engine.collect().unwrap().unwrap();
        assert!(got.on_device().is_some());
        let layout = *got.layout();
        let (memory, ordinal) = CardMemory::of_frame(got).unwrap().ok().unwrap();
        assert_eq!(ordinal, 0);
        kept.push((layout, memory));
        // Lent memory is taken anew when the card was waited for.
        if kept.len() == 12 {
            for ((layout, memory), of) in kept.drain(..).zip(&cases[number - 11..]) {
                let bytes = memory.fetch().unwrap();
                let got = Frame::new(layout, Buffer::unpooled(Box::new(bytes))).unwrap();
                assert_same_rows(&expected(of), &got, format_args!("a frame on the card"));
            }
        }
    }
    let times = engine.device_times().unwrap();
    assert_eq!((times.bytes_down, times.count), (0, 24));
    assert!(CardMemory::of_frame(cases[0].frame().unwrap()).unwrap().is_err());
}

/// On two cards, with a decoder and an engine on each.
#[test]
fn frames_of_two_cards_are_filtered_where_they_lie() {
    let Some(_card) = card() else { return };
    let open = |ordinal| DecoderCard::open(ordinal, PixelFormat::YUV420P, (66, 34));
    let first = open(0).unwrap();
    // Where there is one card only, the test below brings two.
    if devices().unwrap().cards.len() < 2 {
        return;
    }
    let second = open(1).unwrap();
    let chain = chain(&["box:size=3"], Border::Replicate, Planes::All, Algorithm::Auto);
    let engine = |device| -> Box<dyn Engine> {
        let options = CudaOptions {
            device,
            ..CudaOptions::default()
        };
        Box::new(Cuda::new(chain.clone(), options).unwrap())
    };
    let mut several = Several::new(engine(0), [engine(1)]);
    let mut streams = [first.stream().unwrap(), second.stream().unwrap()];
    let cards = [first, second];
    let cases: Vec<Case> = (0..24)
        .map(|seed| case(chain.clone(), "yuv420p", (66, 34), seed))
        .collect();
    let mut done = 0;
    for (number, of) in cases.iter().enumerate() {
        // Stretches of seven frames.
        let at = number / 7 % 2;
        let frame = on_card(&mut streams[at], &cards[at], of, &of.frame().unwrap());
        several
            .submit(frame, Buffer::unpooled(Box::new(Vec::new())), 1)
            .unwrap();
        while number + 1 - done >= several.depth() || number + 1 == cases.len() && done <= number {
            let got = several.collect().unwrap().unwrap();
            assert_same_rows(&expected(&cases[done]), &got, format_args!("frame {done}"));
            done += 1;
        }
    }
    assert_eq!(done, cases.len());
    let times = several.device_times().unwrap();
    assert_eq!((times.bytes_up, times.count), (0, 24));
}

#[test]
fn frames_of_two_cards_on_a_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    for seed in ["1", "2", "3"] {
        let settings = [("FRAMEPIPE_STANDIN_CARDS", "2"), ("FRAMEPIPE_STANDIN_SEED", seed)];
        let test = "surfaces::frames_of_two_cards_are_filtered_where_they_lie";
        let Some(report) = report_of(folder.path(), test, &settings) else {
            return;
        };
        assert!(!report.contains("complaint"), "seed {seed}: {report}");
        // Results are all that comes down.
        assert!(!report.contains("call cuMemcpyDtoH_v2"), "seed {seed}: {report}");
    }
}

/// The stand-in's report of one of the tests here, with such settings; `None` where there is no stand-in.
fn report_of(folder: &Path, test: &str, settings: &[(&str, &str)]) -> Option<String> {
    let stand_in = standin::stand_in()?;
    let report = folder.join("report");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).envs(settings.iter().copied());
    command
        .env("FRAMEPIPE_REQUIRE_GPU", "1")
        .env("FRAMEPIPE_STANDIN_REPORT", &report);
    let done = stand_in
        .with(&mut command, &folder.join("kernels"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        said.contains("1 passed; 0 failed"),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let report = std::fs::read_to_string(report).unwrap();
    // A test that returns early passes as well.
    let launches = ["call cuGraphLaunch", "call cuLaunchKernel"];
    assert!(
        launches.iter().any(|call| report.contains(call)),
        "no kernel was launched: {report}"
    );
    Some(report)
}

/// How many frames go through the engine in the test below.
const FRAMES: &str = "FRAMEPIPE_FRAMES_IN_A_ROW";

/// Frames of two decoders, one after another through a ring that is full, as a run makes them.
#[test]
fn frames_in_a_row_come_back_right() {
    let Some(_card) = card() else { return };
    let chain = chain(
        &["gaussian:sigma=1"],
        Border::Mirror,
        Planes::All,
        Algorithm::Auto,
    );
    let case = case(chain.clone(), "yuv420p", (66, 34), 7);
    let (source, expected) = (case.frame().unwrap(), expected(&case));
    let card = DecoderCard::open(0, PixelFormat::YUV420P, (66, 34)).unwrap();
    let (surface, _memory) = surface_of(&card, &case, &source);
    let mut streams = [card.stream().unwrap(), card.stream().unwrap()];
    let sampled = CudaOptions {
        samples_times: true,
        ..CudaOptions::default()
    };
    let mut engine = Cuda::new(chain, sampled).unwrap();
    // Page-locked, as a run's are.
    let outputs = FramePool::new(engine.depth() + 1, engine.output_allocator());
    let count = std::env::var(FRAMES).map_or(60, |count| count.parse().unwrap());
    let (mut waiting, mut made, mut done) = (VecDeque::new(), 0, 0);
    for number in 0..count {
        // Those of later stretches wait for their turn.
        while waiting.len() < 24 {
            waiting.push_back(taken(&mut streams[made / 8 % 2], &surface, Box::new(()), &case));
            made += 1;
        }
        let frame = waiting.pop_front().unwrap();
        engine.submit(frame, outputs.try_take().unwrap(), 1).unwrap();
        while number + 1 - done >= engine.depth() {
            let got = engine.collect().unwrap().unwrap();
            assert_same_rows(&expected, &got, format_args!("frame {done}"));
            done += 1;
        }
    }
}

/// What the driver is asked for a frame, which only a stand-in counts: 2 launches, 3 records of events, and
/// little else.
#[test]
fn a_frame_of_a_decoder_costs_few_calls_on_a_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    let calls = |frames: &str| -> Option<BTreeMap<String, i64>> {
        // Work is done as it is enqueued, so that nothing is asked twice.
        let settings = [("FRAMEPIPE_STANDIN_SEED", "1"), (FRAMES, frames)];
        let test = "surfaces::frames_in_a_row_come_back_right";
        let report = report_of(folder.path(), test, &settings)?;
        let calls = report
            .lines()
            .filter_map(|line| line.strip_prefix("call ")?.split_once(' '));
        Some(
            calls
                .map(|(name, count)| (name.to_owned(), count.parse().unwrap()))
                .collect(),
        )
    };
    let Some((few, many)) = calls("80").zip(calls("240")) else {
        return;
    };
    let a_frame = many.iter().map(|(name, &count)| {
        let before = few.get(name).copied().unwrap_or(0);
        (name.as_str(), (count - before) as f64 / 160.0)
    });
    let a_frame: BTreeMap<&str, f64> = a_frame.filter(|&(_, count)| count > 0.0).collect();
    // Nothing is fetched to the host but results.
    assert_eq!(a_frame.get("cuMemcpyDtoH_v2"), None, "{a_frame:?}");
    let all: f64 = a_frame.values().sum();
    // One enters the context again, since engine and decoders share this thread, which a run's do not.
    // The clock takes a new event each second, which a slow machine has more of.
    assert!(all <= 14.0, "{all} calls a frame: {a_frame:?}");
}
