//! Regions and mattes: inside the whole picture's filter, outside the input's own samples, between them the
//! formula of docs/arithmetic.md, written here again.

use super::float::{self, Extras};
use super::oracle::{Random, copy, empty_frame, first_difference, format, frame_of, noise, put};
use framepipe::engine::cpu::Cpu;
use framepipe::engine::luma;
use framepipe::engine::reference::Reference;
use framepipe::engine::region::{self, Clock, MatteFrames, Parts, RegionError};
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Border, Chain, Planes};
use framepipe::frame::{
    Allocator, Buffer, Frame, Pageable, PixelFormat, Range, Rational, Remarks, Skipped, Turn,
};
use half::f16;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Arc, Mutex};

const CLOCK: Clock = Clock {
    time_base: Rational { num: 1, den: 25 },
    frame_rate: Some(Rational { num: 25, den: 1 }),
};

/// Left, top, width and height.
type Rect = (i64, i64, i64, i64);

/// What an engine was given: sizes, in order.
type Seen = Arc<Mutex<Vec<(usize, usize)>>>;

/// The reference engine with frames in flight, which tells what it was given.
struct Watched {
    inner: Reference,
    depth: usize,
    flying: usize,
    seen: Seen,
}

impl Engine for Watched {
    fn name(&self) -> &'static str {
        "watched"
    }
    fn description(&self) -> String {
        String::new()
    }
    fn depth(&self) -> usize {
        self.depth
    }
    fn input_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }
    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }
    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        self.flying += 1;
        assert!(self.flying <= self.depth, "more in flight than the engine allows");
        let size = (input.layout().width(), input.layout().height());
        self.seen.lock().unwrap().push(size);
        self.inner.submit(input, output, row_alignment)
    }
    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        self.flying = self.flying.saturating_sub(1);
        self.inner.collect()
    }
}

fn watched(chain: &Chain, depth: usize) -> (Box<dyn Engine>, Seen) {
    let seen = Seen::default();
    let engine = Watched {
        inner: Reference::new(chain.clone()),
        depth,
        flying: 0,
        seen: Arc::clone(&seen),
    };
    (Box::new(engine), seen)
}

/// Mattes from memory.
struct Stack(std::vec::IntoIter<Frame>);

impl MatteFrames for Stack {
    fn name(&self) -> String {
        "matte.png".to_owned()
    }
    fn next(&mut self) -> Result<Option<Frame>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.next())
    }
    fn remarks(&mut self) -> Remarks {
        Remarks::warnings(["the matte's own".to_owned()])
    }
}

fn parts(regions: &[&str], mattes: Option<Vec<Frame>>, outside: bool) -> Parts {
    Parts {
        regions: regions.iter().map(|line| line.parse().unwrap()).collect(),
        matte: mattes.map(|frames| Box::new(Stack(frames.into_iter())) as Box<dyn MatteFrames>),
        outside,
        ..Default::default()
    }
}

fn filter(engine: &mut dyn Engine, frame: &Frame, alignment: usize) -> Result<Frame, EngineError> {
    // Poisoned, so that a sample nobody writes shows.
    let mut memory = Pageable.allocate(frame.layout().size() * 2 + 4096).unwrap();
    memory.bytes_mut().fill(0xA5);
    engine.submit(copy(frame, 64), Buffer::unpooled(memory), alignment)?;
    Ok(engine.collect()?.unwrap())
}

fn whole(chain: &Chain, frame: &Frame) -> Frame {
    filter(&mut Reference::new(chain.clone()), frame, 1).unwrap()
}

fn chain(spec: &str, border: Border) -> Chain {
    Chain::parse(spec).unwrap().with_border(border)
}

/// The pixels that a sample of a plane stands for.
fn pixels(frame: &Frame, plane: usize, x: usize, y: usize) -> Vec<(usize, usize)> {
    let of = &frame.format().planes()[plane];
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let rows = (0..height).filter(|row| row >> of.log2_y == y);
    rows.flat_map(|row| {
        let columns = (0..width).filter(|column| column >> of.log2_x == x);
        columns.map(move |column| (column, row))
    })
    .collect()
}

fn holds((left, top, width, height): &Rect, (x, y): (usize, usize)) -> bool {
    (*left..left + width).contains(&(x as i64)) && (*top..top + height).contains(&(y as i64))
}

/// What must come out: `weight` gives a pixel's weight and the largest one.
fn expected(
    original: &Frame,
    filtered: &Frame,
    rects: &[Rect],
    weight: Option<&dyn Fn(usize, usize) -> (i128, i128)>,
    outside: bool,
) -> Frame {
    let (format, width, height) = (
        original.format(),
        original.layout().width(),
        original.layout().height(),
    );
    frame_of(format, width, height, 1, |plane, x, y, c| {
        let covered = pixels(original, plane, x, y);
        let inside = covered.iter().any(|&pixel| rects.iter().any(|r| holds(r, pixel)));
        let (mut part, mut all) = (i128::from(inside), 1);
        if let (true, Some(weight)) = (inside, weight) {
            part = covered.iter().map(|&(x, y)| weight(x, y).0).sum();
            all = covered.iter().map(|&(x, y)| weight(x, y).1).sum();
        }
        if outside {
            part = all - part;
        }
        let sample = |frame: &Frame| i128::from(frame.sample(plane, x, y, c));
        // floor(a / b + 1/2)
        let sum = sample(original) * (all - part) + sample(filtered) * part;
        ((2 * sum + all).div_euclid(2 * all)) as u32
    })
}

fn text(&(x, y, width, height): &Rect) -> String {
    format!("{width}x{height}{x:+}{y:+}")
}

fn check(got: &Frame, expected: &Frame, case: &str) {
    assert_eq!(got.layout().planes().len(), expected.layout().planes().len());
    if let Some(place) = first_difference(expected, got) {
        panic!("{case}: expected and found differ in {place}");
    }
}

/// The regions of a frame through the engine, against the whole picture's filter.
fn compare(chain: &Chain, frame: &Frame, rects: &[Rect], outside: bool, alignment: usize) {
    let lines: Vec<String> = rects.iter().map(text).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let expected = expected(frame, &whole(chain, frame), rects, None, outside);
    let engines: [Box<dyn Engine>; 2] = [
        Box::new(Reference::new(chain.clone())),
        Box::new(Cpu::new(chain.clone(), 2).unwrap()),
    ];
    for engine in engines {
        let case = format!(
            "{} {} {}x{} {:?} {lines:?} outside {outside}",
            engine.name(),
            frame.format(),
            frame.layout().width(),
            frame.layout().height(),
            chain.border
        );
        let mut engine = region::around(engine, parts(&lines, None, outside), chain, CLOCK, None).unwrap();
        check(&filter(&mut *engine, frame, alignment).unwrap(), &expected, &case);
    }
}

const FORMATS: [&str; 11] = [
    "gray",
    "gray16le",
    "yuv420p",
    "yuv422p10le",
    "yuv410p",
    "yuv440p",
    "nv12",
    "p010le",
    "rgb24",
    "rgba",
    "yuva444p",
];

#[test]
fn inside_is_the_whole_pictures_filter_and_outside_the_input() {
    let mut random = Random::new(1);
    for name in FORMATS {
        for border in Border::ALL {
            let (width, height) = (23 + random.below(18) as usize, 17 + random.below(14) as usize);
            let frame = noise(format(name), width, height, &mut random);
            let (w, h) = (width as i64, height as i64);
            let chain = chain("gaussian:size=5:sigma=1.1", border);
            let sets: [&[Rect]; 6] = [
                &[(7, 5, 6, 4)],
                // A pixel in a corner, and the opposite corner.
                &[(0, 0, 1, 1), (w - 3, h - 2, 3, 2)],
                // Over each edge.
                &[(-4, 3, 6, 3), (w - 2, 4, 9, 2), (9, -3, 3, 5), (10, h - 1, 4, 7)],
                // Overlapping, one inside another, touching.
                &[(3, 3, 9, 7), (8, 6, 9, 5), (4, 4, 2, 2), (17, 6, 3, 5)],
                // A cross, whose hull is the picture.
                &[(w / 2, 0, 1, h), (0, h / 2, w, 1)],
                &[(-9, -9, 99, 99)],
            ];
            for (at, rects) in sets.into_iter().enumerate() {
                compare(&chain, &frame, rects, false, [1, 64][at % 2]);
                compare(&chain, &frame, rects, true, [64, 1][at % 2]);
            }
        }
    }
}

#[test]
fn random_regions_of_random_pictures_through_chains() {
    let mut random = Random::new(2);
    let specs = [
        "sobel",
        "box:size=3,laplacian8",
        "gaussian:sigma=2.5",
        "unsharp:sigma=1:amount=0.8:threshold=9",
        "mask:rows=1,2,3,4,5,6,7",
        "mask:rows=3;1;4;1;5;9;2",
        "box:size=9,gaussian:sigma=1,sharpen",
        // Further than the picture.
        "box:size=63",
    ];
    for turn in 0..150 {
        let name = FORMATS[turn % FORMATS.len()];
        let (width, height) = (1 + random.below(44) as usize, 1 + random.below(36) as usize);
        let frame = noise(format(name), width, height, &mut random);
        let border = Border::ALL[random.below(Border::ALL.len() as u64) as usize];
        let chain = chain(specs[random.below(specs.len() as u64) as usize], border);
        let count = 1 + random.below(4);
        let rects: Vec<Rect> = (0..count)
            .map(|_| {
                let (w, h) = (1 + random.below(20) as i64, 1 + random.below(16) as i64);
                let x = random.below((width as i64 + w) as u64) as i64 - w;
                let y = random.below((height as i64 + h) as u64) as i64 - h;
                (x, y, w, h)
            })
            .collect();
        compare(&chain, &frame, &rects, turn % 3 == 0, 1);
    }
}

#[test]
fn luma_of_rgb_is_filtered_in_regions_too() {
    let mut random = Random::new(3);
    for name in ["rgb24", "rgba", "gbrp10le"] {
        for planes in [Planes::Luma, Planes::Gray] {
            let frame = noise(format(name), 31, 22, &mut random);
            let chain = chain("gaussian:sigma=1", Border::Mirror).with_planes(planes.clone());
            let engine = || luma::around(Box::new(Reference::new(chain.clone())), &planes, true, 1).unwrap();
            let all = filter(&mut *engine(), &frame, 1).unwrap();
            let expected = expected(&frame, &all, &[(3, 0, 9, 9), (20, 9, 30, 6)], None, false);
            let wanted = parts(&["9x9+3+0", "30x6+20+9"], None, false);
            let mut engine = region::around(engine(), wanted, &chain, CLOCK, None).unwrap();
            check(&filter(&mut *engine, &frame, 1).unwrap(), &expected, name);
        }
    }
}

/// The original with the samples of the rectangles' pixels from `filtered`, bit for bit.
fn pasted(original: &Frame, filtered: &Frame, rects: &[Rect]) -> Frame {
    let mut result = copy(original, 1);
    let (width, height) = (
        original.layout().width() as i64,
        original.layout().height() as i64,
    );
    let planes = original.layout().planes().iter().zip(original.format().planes());
    for (index, (plane, of)) in planes.enumerate() {
        let bytes = plane.channels * original.format().bytes_per_sample();
        // True if a pixel of the picture that the sample stands for lies in the stretch.
        let meets = |at: usize, shift: u8, begin: i64, length: i64, end: i64| {
            let pixels = ((at as i64) << shift, ((at as i64 + 1) << shift).min(end));
            begin < pixels.1 && pixels.0 < begin + length
        };
        for y in 0..plane.height {
            for x in 0..plane.width {
                let is_inside = rects.iter().any(|&(left, top, w, h)| {
                    meets(x, of.log2_x, left, w, width) && meets(y, of.log2_y, top, h, height)
                });
                if is_inside {
                    let sample = x * bytes..(x + 1) * bytes;
                    result.row_mut(index, y)[sample.clone()].copy_from_slice(&filtered.row(index, y)[sample]);
                }
            }
        }
    }
    result
}

/// The low pixels lie where they do in the whole picture, wherever a region begins.
#[test]
fn regions_of_wide_gaussians_have_the_whole_pictures_bits() {
    let mut random = Random::new(14);
    // Each is longer than twice the reach, which is 71, 167 and 575 samples, in one direction at least.
    let cases = [
        ("gaussian:sigma=12", "gray", (173, 165)),
        ("gaussian:sigma=12", "gray16le", (223, 37)),
        ("gaussian:sigma=12", "yuv420p", (19, 431)),
        ("gaussian:sigma=12:bias=-3.5", "rgba", (203, 21)),
        ("gaussian:sigma=12", "grayf32le", (211, 34)),
        ("gaussian:sigma=11", "rgbaf16le", (29, 197)),
        ("gaussian:sigma=30", "gray", (431, 11)),
        ("gaussian:sigma=30", "nv12", (9, 823)),
        ("gaussian:sigma=30", "gray10le", (417, 8)),
        ("gaussian:sigma=100", "gray", (1361, 5)),
        ("gaussian:sigma=100", "gray16le", (3, 1403)),
        ("gaussian:sigma=100", "grayf32le", (1361, 2)),
        // Low pixels 4 and 8 samples apart, and masks before and behind.
        (
            "box:size=9,gaussian:sigma=11,gaussian:sigma=19,laplacian8",
            "gray",
            (509, 13),
        ),
    ];
    for (spec, name, (width, height)) in cases {
        let (w, h) = (width as i64, height as i64);
        let (x, y) = (
            random.below(width as u64) as i64,
            random.below(height as u64) as i64,
        );
        let sets: [&[Rect]; 4] = [
            &[(w / 2 + 1, h / 2, 7, 3)],
            // A pixel in a corner, the opposite corner, and over an edge.
            &[(0, 0, 1, 1), (w - 3, h - 2, 3, 2), (w / 2, -2, 5, 3)],
            &[(x - 4, y - 3, 9, 7), (x, y, 3, 12), (w - x, h - y, 1, 1)],
            &[(5, 1, 6, 2), (w - 11, h - 2, 5, 1)],
        ];
        let format = format(name);
        for border in Border::ALL {
            let chain = chain(spec, border);
            let frame = match format.is_float() {
                true => float::noise(format, (width, height), &mut random, Extras::All),
                false => noise(format, width, height, &mut random),
            };
            let all = whole(&chain, &frame);
            let mut smaller = 0;
            for rects in sets {
                let lines: Vec<String> = rects.iter().map(text).collect();
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                let expected = pasted(&frame, &all, rects);
                let case = format!("{spec} {name} {width}x{height} {border:?} {lines:?}");
                let (reference, seen) = watched(&chain, 1);
                for engine in [reference, Box::new(Cpu::new(chain.clone(), 2).unwrap())] {
                    let wanted = parts(&lines, None, false);
                    let mut engine = region::around(engine, wanted, &chain, CLOCK, None).unwrap();
                    check(&filter(&mut *engine, &frame, 1).unwrap(), &expected, &case);
                }
                let seen = seen.lock().unwrap();
                smaller += seen.iter().filter(|&&size| size != (width, height)).count();
            }
            assert!(
                smaller > 0,
                "{spec} {name} {border:?}: nothing but whole pictures was filtered"
            );
        }
    }
}

/// A frame of a run.
fn shown(mut frame: Frame, sequence: u64, pts: Option<i64>, skipped: Skipped) -> Frame {
    frame.sequence = sequence;
    frame.metadata.pts = pts;
    frame.metadata.skipped = skipped;
    frame
}

/// Runs frames through an engine as the pipeline does, as many in flight as it allows.
fn run(engine: &mut dyn Engine, frames: &[Frame]) -> Result<Vec<Frame>, EngineError> {
    let (mut done, mut flying) = (Vec::new(), 0);
    for frame in frames {
        if flying == engine.depth() {
            done.push(engine.collect()?.unwrap());
            flying -= 1;
        }
        let room = Buffer::unpooled(Pageable.allocate(0).unwrap());
        engine.submit(copy(frame, 64), room, 16)?;
        flying += 1;
    }
    for _ in 0..flying {
        done.push(engine.collect()?.unwrap());
    }
    assert!(engine.collect()?.is_none());
    Ok(done)
}

fn noise_frames(name: &str, width: usize, height: usize, frames: u64, random: &mut Random) -> Vec<Frame> {
    (0..frames)
        .map(|n| {
            let frame = noise(format(name), width, height, random);
            shown(frame, n, Some(n as i64), Skipped::default())
        })
        .collect()
}

/// `a + (b - a) * part / whole`, halves rounded up.
fn between(a: i64, b: i64, part: i64, whole: i64) -> i64 {
    a + (2 * (b - a) * part + whole).div_euclid(2 * whole)
}

#[test]
fn moving_regions_come_in_order_from_windows_of_one_size() {
    let mut random = Random::new(4);
    for name in ["yuv420p", "rgb24"] {
        let frames = noise_frames(name, 97, 61, 40, &mut random);
        let chain = chain("box:size=5", Border::Reflect);
        // At 25 frames a second: from frame 5 on and before frame 30, from left of the picture to its edge.
        let lines = [
            "0.2..1.2 21x15-10+3 -> 21x15+90+50",
            "10f..35f 5x5+60+9 -> 5x5+60+9",
        ];
        for depth in [1, 3] {
            let (inner, seen) = watched(&chain, depth);
            let wanted = parts(&lines, None, false);
            let mut engine = region::around(inner, wanted, &chain, CLOCK, Some((97, 61))).unwrap();
            let done = run(&mut *engine, &frames).unwrap();
            assert_eq!(done.len(), frames.len());
            for (n, (before, after)) in (0..).zip(frames.iter().zip(&done)) {
                assert_eq!((after.sequence, after.metadata.pts), (n as u64, Some(n)));
                let mut rects = Vec::new();
                if (5..30).contains(&n) {
                    let way = |a, b| between(a, b, n - 5, 25);
                    rects.push((way(-10, 90), way(3, 50), 21, 15));
                }
                if (10..35).contains(&n) {
                    rects.push((60, 9, 5, 5));
                }
                let expected = expected(before, &whole(&chain, before), &rects, None, false);
                check(after, &expected, &format!("{name} frame {n} depth {depth}"));
            }
            let seen = seen.lock().unwrap();
            let sizes: BTreeSet<_> = seen.iter().collect();
            // One for each region, and where they meet one for both.
            assert!(sizes.len() <= 3, "{sizes:?}");
            let pixels: usize = seen.iter().map(|(w, h)| w * h).sum();
            assert!(pixels * 4 < 97 * 61 * 40, "{pixels} pixels were filtered");
        }
    }
}

/// A box commutes with right angles, so that the result, turned, is that of the turned picture.
#[test]
fn regions_and_mattes_lie_on_the_picture_as_it_is_shown() {
    let mut random = Random::new(9);
    let chain = chain("box:size=5", Border::Reflect);
    let rects = [(3, 2, 9, 5), (-4, 10, 20, 30), (20, 1, 7, 3)];
    let lines: Vec<String> = rects.iter().map(text).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (orientation, of_matte) in (1..=8).zip([3, 6, 1, 8, 2, 7, 5, 4]) {
        let turn = Turn::from_exif(orientation).unwrap();
        let stored = noise(format("yuv444p"), 37, 23, &mut random);
        let shown = turn.apply(&stored).unwrap();
        let (width, height) = (shown.layout().width(), shown.layout().height());
        let weights = noise(PixelFormat::GRAY, width, height, &mut random);
        let weight = |x, y| (i128::from(weights.sample(0, x, y, 0)), 255);
        let whole = whole(&chain, &shown);
        for (lines, outside, by_stream) in [
            (&lines[..], false, true),
            (&[], false, false),
            (&lines, true, false),
        ] {
            let mut matte = Turn::from_exif(of_matte)
                .unwrap()
                .inverse()
                .apply(&weights)
                .unwrap();
            matte.metadata.orientation = Some(of_matte);
            let everywhere = [(0, 0, width as i64, height as i64)];
            let rects = if lines.is_empty() { &everywhere[..] } else { &rects };
            let expected = expected(&shown, &whole, rects, Some(&weight), outside);
            let mut wanted = parts(lines, Some(vec![matte]), outside);
            let mut frame = copy(&stored, 1);
            if by_stream {
                wanted.stream_turn = Some(turn);
            } else {
                frame.metadata.orientation = Some(orientation);
            }
            let inner = Box::new(Reference::new(chain.clone()));
            let mut engine = region::around(inner, wanted, &chain, CLOCK, Some((width, height))).unwrap();
            let got = filter(&mut *engine, &frame, 1).unwrap();
            let case = format!("orientation {orientation}, {lines:?}, outside {outside}");
            check(&turn.apply(&got).unwrap(), &expected, &case);
        }
    }
}

/// A region is computed with as many samples around it as the result depends on, and with no more than it
/// takes to begin on a low pixel.
#[test]
fn regions_of_wide_gaussians_are_windows() {
    let chain = chain("gaussian:sigma=12", Border::Reflect);
    // 71 samples on either side, 4 from a low pixel to the next; chroma's are two pixels wide and high.
    for (name, size) in [("gray", (212, 212)), ("yuv420p", (356, 360))] {
        let frames = noise_frames(name, 500, 400, 1, &mut Random::new(15));
        let (inner, seen) = watched(&chain, 1);
        let wanted = parts(&["64x64+217+171"], None, false);
        let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
        run(&mut *engine, &frames).unwrap();
        assert_eq!(*seen.lock().unwrap(), [size], "{name}");
    }
}

#[test]
fn frames_without_regions_reach_no_engine() {
    let mut random = Random::new(5);
    let frames = noise_frames("nv12", 32, 24, 9, &mut random);
    let chain = chain("box:size=3", Border::Replicate);
    let (inner, seen) = watched(&chain, 2);
    let wanted = parts(&["4f..5f 8x8+4+4", "8f.. 8x8+40+4"], None, false);
    let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
    let done = run(&mut *engine, &frames).unwrap();
    for (n, (before, after)) in frames.iter().zip(&done).enumerate() {
        assert_eq!(first_difference(before, after).is_some(), n == 4, "{n}");
    }
    assert_eq!(seen.lock().unwrap().len(), 1);
    let remarks = engine.remarks(true);
    assert_eq!(
        remarks.warning_texts(),
        ["the region 8f.. 8x8+40+4 lay wholly outside of the picture in frame 8"]
    );
    assert!(remarks.notes.is_empty(), "{:?}", remarks.notes);
}

#[test]
fn regions_count_from_the_inputs_beginning() {
    let mut random = Random::new(6);
    let chain = chain("box:size=3", Border::Replicate);
    let frame = |sequence: u64, skipped| {
        let frame = noise(format("gray"), 16, 16, &mut Random::new(7));
        shown(frame, sequence, Some(sequence as i64), skipped)
    };
    let skipped = |ticks, frames| Skipped { ticks, frames };
    let changes = |line: &str, frame: &Frame| {
        let inner = Box::new(Reference::new(chain.clone()));
        let wanted = parts(&[line], None, false);
        let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
        let done = run(&mut *engine, std::slice::from_ref(frame));
        done.map(|done| first_difference(frame, &done[0]).is_some())
    };
    let _ = random.next();
    for (line, first) in [("3.. 4x4+4+4", 75), ("75f.. 4x4+4+4", 75), ("..3 4x4+4+4", -75)] {
        for n in [74, 75, 76] {
            let inside = if first > 0 { n >= first } else { n < -first };
            let whole = frame(n as u64, Skipped::default());
            assert_eq!(changes(line, &whole).unwrap(), inside, "{line} {n}");
            let cut = frame(n as u64 - 70, skipped(70, Some(70)));
            assert_eq!(changes(line, &cut).unwrap(), inside, "{line} {n}");
        }
    }
    let uncounted = frame(0, skipped(75, None));
    assert!(changes("3.. 4x4+4+4", &uncounted).unwrap());
    let error = changes("75f.. 4x4+4+4", &uncounted).unwrap_err();
    assert!(
        matches!(error, EngineError::Region(RegionError::Uncounted(_))),
        "{error}"
    );
}

/// A matte of noise with runs of both ends, as a frame.
fn matte(name: &str, width: usize, height: usize, random: &mut Random) -> Frame {
    noise(format(name), width, height, random)
}

/// The weight of a pixel and the largest one: a sample, or at limited range what it is at full range.
fn weight(matte: &Frame, x: usize, y: usize) -> (i128, i128) {
    let format = matte.format();
    let max = i128::from(format.max_value());
    let sample = i128::from(matte.sample(0, x, y, 0));
    if matte.metadata.colour.is_limited(format) {
        let unit = 1_i128 << (format.depth() - 8);
        let above = (sample - 16 * unit).max(0);
        return (((2 * above * max + 219 * unit) / (2 * 219 * unit)).min(max), max);
    }
    (sample, max)
}

#[test]
fn mattes_mix_by_the_formula() {
    let mut random = Random::new(8);
    let chain = chain("gaussian:sigma=1.5", Border::Mirror);
    for name in FORMATS {
        for kind in ["gray", "gray10le", "gray16le", "yuv420p", "p010le"] {
            let (width, height) = (15 + random.below(9) as usize, 11 + random.below(9) as usize);
            let frame = noise(format(name), width, height, &mut random);
            let all = whole(&chain, &frame);
            let mut matte = matte(kind, width, height, &mut random);
            if random.below(3) == 0 {
                matte.metadata.colour.range = Range::Full;
            }
            let of = |x: usize, y: usize| weight(&matte, x, y);
            for outside in [false, true] {
                for rects in [&[][..], &[(3, 2, 7, 5), (6, 5, 6, 20)][..]] {
                    let lines: Vec<String> = rects.iter().map(text).collect();
                    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                    let everywhere = [(0, 0, width as i64, height as i64)];
                    let rects = if rects.is_empty() { &everywhere } else { rects };
                    let expected = expected(&frame, &all, rects, Some(&of), outside);
                    let inner = Box::new(Cpu::new(chain.clone(), 1).unwrap());
                    let wanted = parts(&lines, Some(vec![copy(&matte, 1)]), outside);
                    let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
                    let got = filter(&mut *engine, &frame, 1).unwrap();
                    check(
                        &got,
                        &expected,
                        &format!("{name} by {kind} {rects:?} outside {outside}"),
                    );
                }
            }
        }
    }
}

/// As many channels as a file of OpenEXR may have.
#[test]
fn mattes_mix_every_channel_of_floating_point_samples() {
    let mut random = Random::new(31);
    let chain = chain("gaussian:sigma=1.5", Border::Mirror);
    for (bits, count) in [(32, 1), (16, 4), (16, 5), (32, 5), (32, 8), (16, 9), (32, 33)] {
        let format = PixelFormat::float_channels(bits, count).unwrap();
        let (width, height) = (15, 11);
        let frame = float::noise(format, (width, height), &mut random, Extras::None);
        let all = whole(&chain, &frame);
        let matte = matte("gray16le", width, height, &mut random);
        for outside in [false, true] {
            let inner = Box::new(Cpu::new(chain.clone(), 1).unwrap());
            let wanted = parts(&["9x8+3+2"], Some(vec![copy(&matte, 1)]), outside);
            let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
            let got = filter(&mut *engine, &frame, 1).unwrap();
            for (x, y, c) in
                (0..width * height * count).map(|k| (k / count % width, k / count / width, k % count))
            {
                let inside = (3..12).contains(&x) && (2..10).contains(&y);
                let weight = if inside {
                    u32::from(matte.sample(0, x, y, 0))
                } else {
                    0
                };
                let weight = if outside { 65535 - weight } else { weight };
                let [was, filtered] = [&frame, &all].map(|f| f64::from(f.float(0, x, y, c)));
                let (share, rest) = (f64::from(weight), f64::from(65535 - weight));
                let mixed = ((was * rest + filtered * share) / 65535.0) as f32;
                let mixed = match bits {
                    16 => f16::from_f32(mixed).to_f32(),
                    _ => mixed,
                };
                let found = got.float(0, x, y, c);
                assert_eq!(found, mixed, "{format} {x} {y} {c} outside {outside}");
            }
        }
    }
}

#[test]
fn regions_that_cross_are_mixed_once() {
    let mut random = Random::new(13);
    let chain = chain("box:size=3", Border::Replicate);
    for name in ["gray", "yuv420p", "rgba"] {
        let frame = noise(format(name), 61, 47, &mut random);
        let matte = matte("gray10le", 61, 47, &mut random);
        let of = |x: usize, y: usize| weight(&matte, x, y);
        let cross = [(30, 0, 3, 47), (0, 25, 61, 3)];
        let lines: Vec<String> = cross.iter().map(text).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let all = whole(&chain, &frame);
        let expected = expected(&frame, &all, &cross, Some(&of), false);
        let (inner, seen) = watched(&chain, 1);
        let wanted = parts(&lines, Some(vec![copy(&matte, 1)]), false);
        let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
        check(&filter(&mut *engine, &frame, 1).unwrap(), &expected, name);
        assert_eq!(seen.lock().unwrap().len(), 2);
    }
}

#[test]
fn colours_are_mattes_by_their_luma() {
    let mut random = Random::new(9);
    let frame = noise(format("gray"), 9, 7, &mut random);
    let chain = chain("box:size=3", Border::Replicate);
    let all = whole(&chain, &frame);
    let colours = noise(format("rgb24"), 9, 7, &mut random);
    // BT.709's weights in 2^16ths; what they give is rounded half up.
    let of = |x: usize, y: usize| {
        let part = |c| i128::from(colours.sample(0, x, y, c));
        let sum = 13933 * part(0) + 46871 * part(1) + 4732 * part(2);
        ((sum + 32768) >> 16, 255)
    };
    let expected = expected(&frame, &all, &[(0, 0, 9, 7)], Some(&of), false);
    let wanted = parts(&[], Some(vec![copy(&colours, 1)]), false);
    let inner = Box::new(Reference::new(chain.clone()));
    let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
    check(&filter(&mut *engine, &frame, 1).unwrap(), &expected, "rgb24");
}

#[test]
fn only_what_a_matte_shows_is_filtered() {
    let chain = chain("box:size=5", Border::Replicate);
    let frames = noise_frames("yuv420p", 200, 160, 2, &mut Random::new(10));
    let mut matte = empty_frame(PixelFormat::GRAY, 200, 160, 1);
    matte.bytes_mut().fill(0);
    for (x, y) in [(40, 50), (55, 61)] {
        put(&mut matte, 0, x, y, 0, 200);
    }
    let (inner, seen) = watched(&chain, 1);
    let wanted = parts(&[], Some(vec![matte]), false);
    let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
    let done = run(&mut *engine, &frames).unwrap();
    assert!(
        done.iter()
            .zip(&frames)
            .all(|(a, b)| first_difference(a, b).is_some())
    );
    assert_eq!(*seen.lock().unwrap(), [(64, 64); 2]);
    // All black: nothing is.
    let mut black = empty_frame(PixelFormat::GRAY, 200, 160, 1);
    black.bytes_mut().fill(0);
    let (inner, seen) = watched(&chain, 1);
    let wanted = parts(&[], Some(vec![black]), false);
    let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
    let done = run(&mut *engine, &frames).unwrap();
    assert!(
        done.iter()
            .zip(&frames)
            .all(|(a, b)| first_difference(a, b).is_none())
    );
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn mattes_go_along_with_frames_or_are_one_for_all() {
    let mut random = Random::new(11);
    let chain = chain("box:size=3", Border::Replicate);
    let frames = noise_frames("gray", 12, 10, 5, &mut random);
    let mattes: Vec<Frame> = (0..6).map(|_| matte("gray", 12, 10, &mut random)).collect();
    let go = |count: usize, depth: usize| {
        let (inner, _) = watched(&chain, depth);
        let copies = mattes[..count].iter().map(|m| copy(m, 1)).collect();
        let wanted = parts(&[], Some(copies), false);
        let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
        let done = run(&mut *engine, &frames)?;
        Ok::<_, EngineError>((done, engine.remarks(true).warning_texts()))
    };
    for depth in [1, 4] {
        for count in [1, 5, 6] {
            let (done, warnings) = go(count, depth).unwrap();
            for (n, (before, after)) in frames.iter().zip(&done).enumerate() {
                let matte = &mattes[if count == 1 { 0 } else { n }];
                let of = |x: usize, y: usize| weight(matte, x, y);
                let all = whole(&chain, before);
                let expected = expected(before, &all, &[(0, 0, 12, 10)], Some(&of), false);
                check(after, &expected, &format!("{count} mattes, frame {n}"));
            }
            let longer = "matte.png has more pictures than the input: 5 were used";
            let own = "the matte's own";
            assert_eq!(warnings, if count == 6 { vec![longer, own] } else { vec![own] });
        }
        for count in [2, 4] {
            let error = go(count, depth).map(|_| ()).unwrap_err();
            let EngineError::Region(RegionError::Ended { frames, .. }) = error else {
                panic!("{error}");
            };
            assert_eq!(frames, count as u64);
        }
    }
    let wanted = parts(&[], Some(vec![matte("gray", 12, 9, &mut random)]), false);
    let (inner, _) = watched(&chain, 1);
    let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
    let error = filter(&mut *engine, &frames[0], 1).err().unwrap().to_string();
    assert!(error.contains("is 12x9, and the picture 12x10"), "{error}");
}

#[test]
fn frames_of_several_sizes_and_formats_in_one_run() {
    let mut random = Random::new(12);
    let chain = chain("gaussian:sigma=1", Border::Wrap);
    let mut frames = Vec::new();
    for (n, (name, width, height)) in (0..).zip([
        ("gray", 20, 20),
        ("rgb24", 9, 31),
        ("yuv420p", 41, 7),
        ("gray", 20, 20),
        ("gray", 3, 3),
    ]) {
        frames.push(shown(
            noise(format(name), width, height, &mut random),
            n,
            None,
            Skipped::default(),
        ));
    }
    let (inner, _) = watched(&chain, 2);
    let wanted = parts(&["12x6+4+2"], None, false);
    let mut engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
    let done = run(&mut *engine, &frames).unwrap();
    for (before, after) in frames.iter().zip(&done) {
        let expected = expected(before, &whole(&chain, before), &[(4, 2, 12, 6)], None, false);
        check(after, &expected, &before.format().to_string());
    }
    assert_eq!(
        engine.remarks(true).warning_texts(),
        ["the region 12x6+4+2 lay wholly outside of the picture in frame 4"]
    );
}

#[test]
fn the_memory_of_windows_is_known_before_the_run() {
    let chain = chain("box:size=5", Border::Replicate);
    let frame = empty_frame(PixelFormat::RGB24, 1920, 1080, 64);
    let bytes = |lines: &[&str], matte: bool, outside| {
        let (inner, _) = watched(&chain, 3);
        let mattes = matte.then(Vec::new);
        let wanted = parts(lines, mattes, outside);
        let engine = region::around(inner, wanted, &chain, CLOCK, None).unwrap();
        engine.own_bytes(frame.layout())
    };
    // Four windows before and four after, each of 104x54 pixels, whose rows have a multiple of 64 bytes.
    let region = "100x50+1+1";
    assert_eq!(
        bytes(&[region], false, false),
        8 * 54 * (104_u128 * 3).next_multiple_of(64)
    );
    assert_eq!(
        bytes(&[region; 2], false, false),
        2 * bytes(&[region], false, false)
    );
    let whole = 8 * 1080 * 1920 * 3;
    assert_eq!(bytes(&["1900x1070+0+0"; 2], false, false), whole);
    assert_eq!(bytes(&[region], false, true), whole);
    // Weights of two bytes.
    assert_eq!(bytes(&[], true, false), whole + 4 * 1080 * 1920 * 2);
}

#[test]
fn what_cannot_be_is_refused_at_once() {
    let chain = chain("box:size=3", Border::Replicate);
    let refused = |line: &str, clock: Clock, size| {
        let inner = Box::new(Reference::new(chain.clone()));
        let wanted = parts(&[line], None, false);
        region::around(inner, wanted, &chain, clock, size)
            .err()
            .map(|e| e.to_string())
    };
    let size = Some((64, 48));
    let said = refused("9x9+64+0", CLOCK, size).unwrap();
    assert_eq!(
        said,
        "the region 9x9+64+0 lies outside of the picture, which is 64x48"
    );
    assert!(refused("0..1 9x9+64+0 -> 9x9+70+0", CLOCK, size).is_some());
    // It comes in on its way, or the size is not known.
    assert_eq!(refused("0..1 9x9+64+0 -> 9x9-9+0", CLOCK, size), None);
    assert_eq!(refused("9x9+64+0", CLOCK, None), None);
    let timeless = Clock {
        frame_rate: None,
        ..CLOCK
    };
    let said = refused("0..1 9x9+4+0", timeless, size).unwrap();
    assert!(said.contains("--fps"), "{said}");
    assert_eq!(refused("0f..1f 9x9+4+0", timeless, size), None);
}
