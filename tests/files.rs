//! Sources and sinks that need no codec library, against FFmpeg's own programs and against each other.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{ffmpeg, names};
use framepipe::frame::{
    Buffer, FieldOrder, Frame, FramePool, Layout, Pageable, PixelFormat, Range, Rational,
};
use framepipe::sink::images::ImageOptions;
use framepipe::sink::{Flow, Rules, SinkError};
use framepipe::source::images::ImageSourceOptions;
use framepipe::source::{AnySource, IndexedSource, Source, SourceError, StreamInfo, Supply};
use framepipe::still::ImageKind;
use framepipe::{sink, source};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Existing files are replaced.
const REPLACE: Rules = Rules {
    overwrite: true,
    strict: false,
    pictures_alone: false,
    trial: false,
};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

fn format(name: &str) -> PixelFormat {
    PixelFormat::from_name(name).unwrap()
}

fn no_buffer() -> Buffer {
    Buffer::unpooled(Box::new(Vec::new()))
}

/// A supply of `count` buffers, and the sender whose end stops the run.
fn supply(count: usize) -> (crossbeam_channel::Sender<()>, Supply) {
    let (keep, stop) = crossbeam_channel::bounded(0);
    let pool = FramePool::new(count, Arc::new(Pageable));
    (keep, Supply { pool, stop })
}

/// A frame of pseudo-random samples that fit the format's depth.
fn noise(format: PixelFormat, width: usize, height: usize, alignment: usize, seed: u64) -> Frame {
    let layout = Layout::new(format, width, height, alignment).unwrap();
    let mut frame = Frame::new(layout, no_buffer()).unwrap();
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for index in 0..layout.planes().len() {
        for y in 0..layout.planes()[index].height {
            for place in frame.row_mut(index, y).chunks_mut(format.bytes_per_sample()) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let sample = ((state >> 40) as u32 % (format.max_value() + 1)) << format.shift();
                let len = place.len();
                place.copy_from_slice(&sample.to_le_bytes()[..len]);
            }
        }
    }
    frame
}

/// The picture without padding.
fn tight(frame: &Frame) -> Vec<u8> {
    let planes = frame.layout().planes().iter().enumerate();
    planes
        .flat_map(|(i, p)| (0..p.height).flat_map(move |y| frame.row(i, y).to_vec()))
        .collect()
}

fn info(format: PixelFormat, width: usize, height: usize) -> StreamInfo {
    StreamInfo::new(format, width, height).at_rate(Rational {
        num: 30000,
        den: 1001,
    })
}

fn all(source: &mut dyn Source) -> Result<Vec<Frame>, SourceError> {
    let (_keep, supply) = supply(64);
    let mut frames = Vec::new();
    while let Some(frame) = source.next(&supply)? {
        frames.push(frame);
    }
    Ok(frames)
}

fn read_y4m(path: &Path) -> Result<Vec<Frame>, SourceError> {
    source::y4m::open(path, None).and_then(|mut source| all(&mut *source))
}

fn error(result: Result<Vec<Frame>, SourceError>) -> String {
    result.err().unwrap().to_string()
}

fn y4m_formats() -> impl Iterator<Item = PixelFormat> {
    PixelFormat::integers().filter(|&f| sink::y4m::accepts(f))
}

#[test]
fn y4m_of_every_format_comes_from_ffmpeg_bit_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.y4m");
    let mut count = 0;
    for format in y4m_formats() {
        for (width, height, range) in [(33, 17, "tv"), (48, 32, "pc")] {
            // FFmpeg 5.1 writes half a sample too little in each chroma row of more than 8 bits where the
            // width is odd.
            let halved = format.depth() > 8 && format.planes().iter().any(|p| p.log2_x > 0);
            let width = if halved { width / 2 * 2 } else { width };
            let picture = "testsrc2=s=64x48:r=30000/1001";
            let convert =
                format!("scale={width}:{height}:out_range={range},format={format},setparams=range={range}");
            let make = [
                "-f",
                "lavfi",
                "-i",
                picture,
                "-vf",
                &convert,
                "-frames:v",
                "3",
                "-strict",
                "-1",
                "-f",
            ];
            ffmpeg(&[&make[..], &["yuv4mpegpipe", file.to_str().unwrap()]].concat());
            // The same command, but for the muxer.
            let expected = ffmpeg(&[&make[..], &["rawvideo", "-"]].concat());
            let mut source = source::y4m::open(&file, None).unwrap();
            let info = source.info().clone();
            assert_eq!((info.format, info.width, info.height), (format, width, height));
            assert_eq!(
                info.frame_rate,
                Some(Rational {
                    num: 30000,
                    den: 1001
                })
            );
            assert_eq!(info.frames, Some(3));
            if !format.name().starts_with("gray") {
                let expected = if range == "pc" {
                    Range::Full
                } else {
                    Range::Limited
                };
                assert_eq!(info.colour.range, expected, "{format}");
            }
            let frames = all(&mut *source).unwrap();
            let found: Vec<u8> = frames.iter().flat_map(|f| f.bytes().to_vec()).collect();
            assert!(found == expected, "{format} {width}x{height} differs");
            assert_eq!(frames[2].metadata.pts, Some(2));
            count += 1;
        }
    }
    assert!(count >= 40);
}

#[test]
fn ffmpeg_reads_our_y4m_bit_exactly_with_its_facts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.y4m");
    let path = file.to_str().unwrap();
    // FFmpeg writes C444alpha but refuses to read it.
    for format in y4m_formats().filter(|f| f.name() != "yuva444p") {
        let mut info = info(format, 35, 19);
        info.colour.range = Range::Full;
        info.sample_aspect = (4, 3);
        info.field_order = FieldOrder::TopFirst;
        if format.name() == "yuv420p" {
            info.colour.chroma_location = 3;
        }
        let mut sink = sink::y4m::create(&file, &info, REPLACE).unwrap();
        assert_eq!(sink.row_alignment(), 1);
        let mut expected = Vec::new();
        for k in 0..3 {
            // Padded rows must give the same bytes as tight ones.
            let frame = noise(format, 35, 19, [1, 64, 16][k], k as u64);
            expected.extend(tight(&frame));
            assert_eq!(sink.write(frame).unwrap(), Flow::More);
        }
        let written = sink.finish().unwrap();
        assert_eq!(written.bytes, Some(fs::metadata(&file).unwrap().len()));
        assert_eq!(written.remarks.warning_texts(), Vec::<String>::new());
        let found = ffmpeg(&["-i", path, "-f", "rawvideo", "-"]);
        assert!(found == expected, "{format} differs");
        let probe = Command::new("ffprobe")
            .args(["-v", "error", "-show_streams", path])
            .output()
            .unwrap();
        let probe = String::from_utf8(probe.stdout).unwrap();
        let mut facts = vec![
            format!("pix_fmt={format}"),
            "color_range=pc".to_owned(),
            "sample_aspect_ratio=4:3".to_owned(),
            "r_frame_rate=30000/1001".to_owned(),
            "field_order=tt".to_owned(),
        ];
        if format.name() == "yuv420p" {
            facts.push("chroma_location=topleft".to_owned());
        }
        for fact in facts {
            assert!(probe.contains(&fact), "{format}: {fact} is not in\n{probe}");
        }
    }
}

#[test]
fn y4m_facts_survive_a_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.y4m");
    for format in y4m_formats() {
        for (range, order, location) in [
            (Range::Limited, FieldOrder::Progressive, 1),
            (Range::Full, FieldOrder::BottomFirst, 2),
            (Range::Unspecified, FieldOrder::Mixed, 3),
        ] {
            let mut facts = info(format, 5, 3);
            facts.colour.range = range;
            facts.colour.chroma_location = if format.name() == "yuv420p" { location } else { 0 };
            facts.field_order = order;
            facts.sample_aspect = if range == Range::Full { (0, 1) } else { (10, 11) };
            let mut sink = sink::y4m::create(&file, &facts, REPLACE).unwrap();
            let orders = match order {
                FieldOrder::Mixed => [
                    FieldOrder::TopFirst,
                    FieldOrder::Progressive,
                    FieldOrder::BottomFirst,
                ],
                order => [order; 3],
            };
            let mut pictures = Vec::new();
            for (k, order) in orders.into_iter().enumerate() {
                let mut frame = noise(format, 5, 3, 1, k as u64);
                frame.metadata.field_order = order;
                pictures.push(tight(&frame));
                sink.write(frame).unwrap();
            }
            sink.finish().unwrap();
            let mut source = source::y4m::open(&file, None).unwrap();
            let found = source.info().clone();
            assert_eq!(found.format, format);
            assert_eq!(found.colour, facts.colour, "{format}");
            assert_eq!(
                (found.field_order, found.sample_aspect),
                (order, facts.sample_aspect)
            );
            assert_eq!(
                (found.frame_rate, found.time_base),
                (facts.frame_rate, facts.time_base)
            );
            let frames = all(&mut *source).unwrap();
            assert_eq!(frames.len(), 3);
            for (k, frame) in frames.iter().enumerate() {
                assert_eq!(frame.bytes(), pictures[k]);
                assert_eq!(frame.metadata.field_order, orders[k]);
            }
        }
    }
}

#[test]
fn y4m_that_stops_or_lies_says_where() {
    let whole = fs::read(samples().join("clip.y4m")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.y4m");
    let header = whole.iter().position(|&b| b == b'\n').unwrap() + 1;
    let frame = 64 * 48 * 3 / 2;
    let count = read_y4m(&samples().join("clip.y4m")).unwrap().len();
    assert_eq!(count, (whole.len() - header) / (frame + 6));

    let read = |content: &[u8]| {
        fs::write(&file, content).unwrap();
        read_y4m(&file)
    };
    let two = header + 2 * (frame + 6);
    assert_eq!(read(&whole[..two]).unwrap().len(), 2);
    for (len, part) in [
        (
            two + 106,
            "2 whole frames, then 100 of 4608 bytes (4508 bytes are missing)",
        ),
        (two + 3, "2 whole frames, then 0 of 4608"),
        (header + 50, "cannot hold one such frame"),
        (header - 3, "ends within its y4m header"),
        (4, "does not begin with YUV4MPEG2"),
        (0, "is empty"),
    ] {
        let message = error(read(&whole[..len]));
        assert!(message.contains(part), "{len}: {message}");
    }
    assert!(read(&whole[..header]).unwrap().is_empty());

    let mut damaged = whole.clone();
    damaged[two] = b'X';
    assert!(error(read(&damaged)).contains("no FRAME line after 2 frames"));
    for (header, part) in [
        ("YUV4MPEG2 W0 H4 F25:1\n", "W0"),
        ("YUV4MPEG2 W4 H4 Cnone\n", "Cnone"),
        ("YUV4MPEG2 W2000000000 H2000000000\nFRAME\n", "header is wrong"),
    ] {
        let message = error(read(header.as_bytes()));
        assert!(message.contains(part), "{header}: {message}");
    }
    let endless = [b"YUV4MPEG2 W4 H4 X".to_vec(), vec![b'a'; 100_000]].concat();
    assert!(error(read(&endless)).contains("header has no end"));
    assert!(error(read_y4m(folder.path())).contains("is a directory"));
    assert!(matches!(
        read_y4m(&folder.path().join("none.y4m")),
        Err(SourceError::Io { .. })
    ));
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_wait_for_a_pipe_ends_when_the_run_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    fifo(&pipe);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            use std::io::Write;
            let mut file = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
            file.write_all(b"YUV4MPEG2 W4 H4 Cmono\nFRAME\n0123456789abcdefFRAME\n012")
                .unwrap();
            file
        });
        let mut source = source::y4m::open(&pipe, None).unwrap();
        let _open = writer.join().unwrap();
        let (keep, supply) = supply(2);
        assert_eq!(
            source.next(&supply).unwrap().unwrap().bytes(),
            b"0123456789abcdef"
        );
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(150));
            drop(keep);
        });
        let begun = Instant::now();
        assert!(matches!(source.next(&supply), Err(SourceError::Stopped(_))));
        assert!(begun.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn a_pipe_that_closes_in_mid_frame_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    fifo(&pipe);
    let y4m: &[u8] = b"YUV4MPEG2 W4 H4 Cmono\nFRAME\n0123456789abcdefFRAME\n012";
    for (content, raw) in [(y4m, false), (b"0123456789abcdef012", true)] {
        std::thread::scope(|scope| {
            scope.spawn(|| fs::write(&pipe, content).unwrap());
            let mut source = if raw {
                match source::raw::open(&pipe, &"4x4:gray:10".parse().unwrap(), None).unwrap() {
                    AnySource::Stream(source) => source,
                    AnySource::Indexed(_) => panic!("a pipe cannot be read in any order"),
                }
            } else {
                source::y4m::open(&pipe, None).unwrap()
            };
            let message = error(all(&mut *source));
            let part = "1 whole frame, then 3 of 16 bytes (13 bytes are missing)";
            assert!(message.contains(part), "{message}");
        });
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_run_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.y4m");
    fifo(&pipe);
    let info = info(format("gray"), 512, 512);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Read;
            let mut some = [0_u8; 1000];
            fs::File::open(&pipe).unwrap().read_exact(&mut some).unwrap();
        });
        let mut sink = sink::y4m::create(&pipe, &info, Rules::default()).unwrap();
        let closed =
            (0..1000).any(|k| sink.write(noise(info.format, 512, 512, 1, k)).unwrap() == Flow::Closed);
        assert!(closed);
        assert!(sink.finish().unwrap().closed_early);
    });
    assert_eq!(names(folder.path()), ["pipe.y4m"]);
}

#[test]
fn y4m_refuses_what_it_cannot_hold_and_says_what_it_drops() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.y4m");
    let refused = sink::y4m::create(&file, &info(format("rgb24"), 4, 4), Rules::default())
        .err()
        .unwrap();
    assert!(
        refused.to_string().contains("convert them to yuv444p"),
        "{refused}"
    );
    let mut facts = info(format("yuv420p"), 4, 4);
    facts.colour.matrix = 1;
    facts.frame_rate = None;
    let mut sink = sink::y4m::create(&file, &facts, Rules::default()).unwrap();
    sink.write(noise(facts.format, 4, 4, 1, 1)).unwrap();
    let other = sink.write(noise(facts.format, 6, 4, 1, 1)).unwrap_err();
    assert!(matches!(other, SinkError::Mismatch { .. }), "{other}");
    let warnings = sink.finish().unwrap().remarks.warning_texts().join("\n");
    assert!(
        warnings.contains("matrix") && warnings.contains("--fps"),
        "{warnings}"
    );

    let mut unfinished = sink::y4m::create(&folder.path().join("b.y4m"), &facts, Rules::default()).unwrap();
    unfinished.write(noise(facts.format, 4, 4, 1, 1)).unwrap();
    drop(unfinished);
    let refused = sink::y4m::create(&file, &facts, Rules::default()).err().unwrap();
    assert!(matches!(refused, SinkError::Exists { .. }), "{refused}");
    assert_eq!(names(folder.path()), ["a.y4m"]);
}

#[test]
fn raw_frames_of_every_format_come_back_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    for format in PixelFormat::integers() {
        let file = folder.path().join(format!("{format}.raw"));
        let mut sink = sink::raw::create(&file, &info(format, 7, 5), Rules::default()).unwrap();
        let pictures: Vec<_> = (0..6).map(|k| tight(&noise(format, 7, 5, 1, k))).collect();
        for k in 0..6 {
            let frame = noise(format, 7, 5, if k % 2 == 0 { 1 } else { 64 }, k);
            sink.write(frame).unwrap();
        }
        let written = sink.finish().unwrap();
        assert_eq!(fs::read(&file).unwrap(), pictures.concat());
        let (_, geometry) = written.description.rsplit_once(" as ").unwrap();
        let AnySource::Indexed(source) = source::raw::open(&file, &geometry.parse().unwrap(), None).unwrap()
        else {
            panic!("a file is read by one thread");
        };
        assert_eq!(source.len(), 6);
        std::thread::scope(|scope| {
            for half in 0..2 {
                let (source, pictures) = (&source, &pictures);
                scope.spawn(move || {
                    for k in (0..6).rev().filter(|k| k % 2 == half) {
                        let frame = source.read(k, no_buffer()).unwrap();
                        assert_eq!(frame.bytes(), pictures[k as usize]);
                        assert_eq!((frame.sequence, frame.metadata.pts), (k, Some(k as i64)));
                    }
                });
            }
        });
    }
}

#[test]
fn raw_files_of_another_geometry_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.raw");
    fs::write(&file, [0; 40]).unwrap();
    let spec = "raw:4x4:gray:25".parse().unwrap();
    let message = source::raw::open(&file, &spec, None).err().unwrap().to_string();
    assert!(
        message.contains("2 whole frames, then 8 of 16 bytes"),
        "{message}"
    );
    let missing = source::raw::open(&folder.path().join("b.raw"), &spec, None)
        .err()
        .unwrap();
    assert!(matches!(missing, SourceError::Io { .. }));
    fs::write(&file, [0; 32]).unwrap();
    let AnySource::Indexed(source) = source::raw::open(&file, &spec, None).unwrap() else {
        panic!("a file is read by one thread");
    };
    fs::write(&file, [0; 20]).unwrap();
    let message = source.read(1, no_buffer()).err().unwrap().to_string();
    assert!(message.contains("became shorter"), "{message}");
}

#[test]
fn null_counts() {
    let mut sink = sink::null::create();
    for k in 0..5 {
        sink.write(noise(format("yuv420p"), 4, 4, 64, k)).unwrap();
    }
    let written = sink.finish().unwrap();
    assert_eq!(written.bytes, None);
    assert!(written.description.contains("5 frames"));
}

fn open_images(input: &Path) -> source::images::ImageFiles {
    source::images::open(input, &ImageSourceOptions::default()).unwrap()
}

fn read(files: &source::images::ImageFiles, index: u64) -> Frame {
    files.read(index, no_buffer()).unwrap()
}

fn replacing() -> ImageOptions {
    let mut options = ImageOptions::default();
    options.overwrite = true;
    options
}

fn numbered(mut frame: Frame, sequence: u64) -> Frame {
    frame.sequence = sequence;
    frame
}

/// A profile that is none but for its length and the colours that it says it is for.
fn profile(space: &[u8; 4]) -> Arc<[u8]> {
    let mut profile: Vec<u8> = (0..600_u32).map(|k| (k * 7 % 251) as u8).collect();
    profile[..4].copy_from_slice(&600_u32.to_be_bytes());
    profile[16..20].copy_from_slice(space);
    profile[36..40].copy_from_slice(b"acsp");
    profile.into()
}

#[test]
fn every_kind_and_colour_survives_a_round_trip_with_profile_and_orientation() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for extension in ["png", "tif", "bmp", "webp", "pnm", "pgm", "ppm", "pam"] {
        let kind: ImageKind = extension.parse().unwrap();
        for name in [
            "gray", "ya8", "rgb24", "rgba", "gray16le", "ya16le", "rgb48le", "rgba64le",
        ] {
            let format = format(name);
            if !sink::images::accepts(kind, format) {
                continue;
            }
            // What the file holds, and what it is read as; these differ where decoders give RGB for gray.
            let (held, found_as) = match (kind, name) {
                (ImageKind::Bmp | ImageKind::WebP, "gray") => ("gray", "rgb24"),
                (ImageKind::WebP, "ya8") => ("ya8", "rgba"),
                (ImageKind::Bmp, "ya8") => ("rgba", "rgba"),
                (ImageKind::Ppm, "gray") => ("rgb24", "rgb24"),
                (ImageKind::Ppm, "gray16le") => ("rgb48le", "rgb48le"),
                (_, name) => (name, name),
            };
            // WebP stores RGB alone, to which no profile of gray belongs.
            let is_gray = !held.starts_with("rgb") && kind != ImageKind::WebP;
            let icc = profile(if is_gray { b"GRAY" } else { b"RGB " });
            let expected = noise(format, 37, 13, 1, 5);
            for orientation in [None, Some(3), Some(6)] {
                let file = folder.path().join(format!("{name}.{extension}"));
                let sink = sink::images::create(&file, &info(format, 37, 13), &replacing()).unwrap();
                let mut frame = noise(format, 37, 13, if orientation.is_none() { 1 } else { 64 }, 5);
                frame.metadata.icc_profile = Some(icc.clone());
                frame.metadata.orientation = orientation;
                sink.write(frame).unwrap();
                let warnings = sink.finish().unwrap().remarks.warning_texts().join("\n");

                let files = open_images(&file);
                assert!(files.info().uniform);
                let found = read(&files, 0);
                assert_eq!(found.format().name(), found_as, "{kind}");
                assert_eq!(found.metadata.colour.range, Range::Full);
                let channels = found.layout().planes()[0].channels;
                let spread = channels > expected.layout().planes()[0].channels;
                for (x, y) in (0..13).flat_map(|y| (0..37).map(move |x| (x, y))) {
                    for c in 0..channels {
                        // Gray spread over RGB keeps its alpha last.
                        let of = if spread { usize::from(c == 3) } else { c };
                        let pair = (found.sample(0, x, y, c), expected.sample(0, x, y, of));
                        assert_eq!(pair.0, pair.1, "{kind} {name} {x},{y} {c}");
                    }
                }
                if matches!(kind, ImageKind::Png | ImageKind::Tiff | ImageKind::WebP) {
                    assert_eq!(
                        found.metadata.icc_profile.as_deref(),
                        Some(&icc[..]),
                        "{kind} {name}"
                    );
                    assert_eq!(found.metadata.orientation, orientation, "{kind} {name}");
                    assert_eq!(warnings, "");
                } else {
                    assert!(warnings.contains("profile"), "{kind}: {warnings}");
                    assert_eq!(warnings.contains("orientation"), orientation.is_some());
                }
                count += 1;
            }
        }
    }
    assert_eq!(count, 3 * (8 + 8 + 4 + 4 + 8 + 2 + 4 + 8));
}

#[test]
fn jpeg_keeps_profile_and_orientation_and_refuses_what_it_cannot_hold() {
    let folder = tempfile::tempdir().unwrap();
    for (name, space) in [("gray", b"GRAY"), ("rgb24", b"RGB ")] {
        let file = folder.path().join(format!("{name}.jpg"));
        let sink =
            sink::images::create(&file, &info(format(name), 40, 24), &ImageOptions::default()).unwrap();
        let mut frame = noise(format(name), 40, 24, 1, 0);
        let row = frame.layout().row_bytes(0);
        for (at, byte) in frame.bytes_mut().iter_mut().enumerate() {
            *byte = (at / row * 8 + 20) as u8;
        }
        let expected = frame.bytes().to_vec();
        frame.metadata.icc_profile = Some(profile(space));
        frame.metadata.orientation = Some(8);
        sink.write(frame).unwrap();
        assert_eq!(
            sink.finish().unwrap().remarks.warning_texts(),
            Vec::<String>::new()
        );
        let found = read(&open_images(&file), 0);
        assert_eq!(found.format().name(), name);
        assert_eq!(found.metadata.icc_profile, Some(profile(space)));
        assert_eq!(found.metadata.orientation, Some(8));
        let worst = found
            .bytes()
            .iter()
            .zip(&expected)
            .map(|(&a, &b)| a.abs_diff(b))
            .max();
        assert!(worst < Some(8), "{name}: {worst:?}");
    }
    for name in ["rgba", "gray16le", "rgb48le", "ya8"] {
        let target = folder.path().join("no.jpg");
        let refused = sink::images::create(&target, &info(format(name), 4, 4), &ImageOptions::default());
        let message = refused.err().unwrap().to_string();
        assert!(message.contains("PNG or TIFF"), "{message}");
    }
    assert_eq!(names(folder.path()), ["gray.jpg", "rgb24.jpg"]);
}

#[test]
fn a_profile_for_other_colours_is_dropped_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.png");
    let sink = sink::images::create(&file, &info(format("gray"), 4, 4), &ImageOptions::default()).unwrap();
    let mut frame = noise(format("gray"), 4, 4, 1, 0);
    frame.metadata.icc_profile = Some(profile(b"CMYK"));
    sink.write(frame).unwrap();
    assert!(sink.finish().unwrap().remarks.warnings[0].contains("for CMYK"));
    assert_eq!(read(&open_images(&file), 0).metadata.icc_profile, None);
}

#[test]
fn ffmpeg_and_framepipe_read_each_others_images() {
    let folder = tempfile::tempdir().unwrap();
    for (extension, name, ffmpeg_name) in [
        ("png", "rgb24", "rgb24"),
        ("png", "rgba", "rgba"),
        ("png", "gray", "gray"),
        ("png", "gray16le", "gray16be"),
        ("png", "rgb48le", "rgb48be"),
        ("png", "rgba64le", "rgba64be"),
        ("tif", "rgb24", "rgb24"),
        ("tif", "rgb48le", "rgb48le"),
        ("bmp", "rgb24", "bgr24"),
        ("ppm", "rgb24", "rgb24"),
        ("ppm", "rgb48le", "rgb48be"),
        ("pgm", "gray16le", "gray16be"),
    ] {
        let theirs = folder.path().join(format!("theirs-{name}.{extension}"));
        let to_raw = |path: &Path| {
            ffmpeg(&[
                "-i",
                path.to_str().unwrap(),
                "-f",
                "rawvideo",
                "-pix_fmt",
                name,
                "-",
            ])
        };
        let make = [
            "-f",
            "lavfi",
            "-i",
            "testsrc2=s=31x21",
            "-frames:v",
            "1",
            "-pix_fmt",
            ffmpeg_name,
        ];
        ffmpeg(&[&make[..], &["-update", "1", theirs.to_str().unwrap()]].concat());
        let raw = to_raw(&theirs);
        let frame = read(&open_images(&theirs), 0);
        assert_eq!(frame.format().name(), name, "{extension}");
        assert!(frame.bytes() == raw, "{extension} {name} read");
        let ours = folder.path().join(format!("ours-{name}.{extension}"));
        let sink =
            sink::images::create(&ours, &info(frame.format(), 31, 21), &ImageOptions::default()).unwrap();
        sink.write(frame).unwrap();
        sink.finish().unwrap();
        assert!(to_raw(&ours) == raw, "{extension} {name} written");
    }
}

#[test]
fn a_directory_is_read_in_order_and_written_under_the_same_names() {
    let files = open_images(&samples().join("frames"));
    let file_names = |files: &source::images::ImageFiles| -> Vec<String> {
        let names = files
            .files()
            .iter()
            .map(|f| f.file_name().unwrap().to_str().unwrap().to_owned());
        names.collect()
    };
    let expected: Vec<_> = (1..=12).map(|k| format!("frame-{k}.png")).collect();
    assert_eq!(file_names(&files), expected);
    assert_eq!(open_images(&samples().join("frames/frame-%d.png")).len(), 12);
    assert_eq!(open_images(&samples().join("frames/*-1?.png")).len(), 3);

    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/out");
    let mut options = ImageOptions::default();
    options.sources = Some(files.files().clone());
    let sink = sink::images::create(&target, files.info(), &options).unwrap();
    // Two threads, backwards.
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (files, sink) = (&files, &sink);
            scope.spawn(move || {
                for k in (0..12).rev().filter(|k| k % 2 == half) {
                    sink.write(read(files, k)).unwrap();
                }
            });
        }
    });
    let written = sink.finish().unwrap();
    assert!(written.description.contains("12 PNG image files"));
    let again = open_images(&target);
    assert_eq!(file_names(&again), expected);
    let mut bytes = 0;
    for k in 0..12 {
        assert_eq!(read(&again, k).bytes(), read(&files, k).bytes());
        bytes += fs::metadata(&again.files()[k as usize]).unwrap().len();
    }
    assert_eq!(written.bytes, Some(bytes));
    // Refused before anything is written.
    let refused = sink::images::create(&target, files.info(), &options)
        .err()
        .unwrap();
    assert!(matches!(refused, SinkError::Exists { .. }), "{refused}");
}

#[test]
fn frames_without_files_are_numbered() {
    let folder = tempfile::tempdir().unwrap();
    let facts = info(format("gbrp10le"), 6, 4);
    let write = |target: &Path, options: &ImageOptions| {
        let sink = sink::images::create(target, &facts, options).unwrap();
        for k in [1, 0, 2] {
            sink.write(numbered(noise(facts.format, 6, 4, 1, k), k)).unwrap();
        }
        sink.finish().unwrap();
    };
    write(&folder.path().join("plain"), &ImageOptions::default());
    assert_eq!(
        names(&folder.path().join("plain")),
        ["000000.png", "000001.png", "000002.png"]
    );
    let mut options = ImageOptions::default();
    options.kind = Some(ImageKind::Tiff);
    options.start = Some(5);
    write(&folder.path().join("tiffs"), &options);
    assert_eq!(
        names(&folder.path().join("tiffs")),
        ["000005.tif", "000006.tif", "000007.tif"]
    );
    let pattern = folder.path().join("pattern/f%03d.ppm");
    write(&pattern, &ImageOptions::default());
    assert_eq!(
        names(&folder.path().join("pattern")),
        ["f000.ppm", "f001.ppm", "f002.ppm"]
    );
    // 10 bits are scaled to 16 so that both ends meet.
    let (found, expected) = (read(&open_images(&pattern), 1), noise(facts.format, 6, 4, 1, 1));
    for (channel, plane) in [(0, 2), (1, 0), (2, 1)] {
        for x in 0..6 {
            let v = u32::from(expected.sample(plane, x, 2, 0));
            assert_eq!(
                u32::from(found.sample(0, x, 2, channel)),
                (v * 65535 + 511) / 1023
            );
        }
    }
}

#[test]
fn one_file_holds_one_frame() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.png");
    let mut facts = info(format("gray"), 4, 4);
    let sink = sink::images::create(&file, &facts, &ImageOptions::default()).unwrap();
    sink.write(noise(facts.format, 4, 4, 1, 0)).unwrap();
    let second = numbered(noise(facts.format, 4, 4, 1, 1), 1);
    let message = sink.write(second).unwrap_err().to_string();
    assert!(message.contains("out-%05d.png"), "{message}");
    drop(sink);
    assert_eq!(names(folder.path()), Vec::<String>::new());
    facts.frames = Some(2);
    assert!(sink::images::create(&file, &facts, &ImageOptions::default()).is_err());
    for (target, part) in [
        ("a.xyz", "has no extension of an image"),
        ("%d-%d.png", "more than one number"),
    ] {
        let refused = sink::images::create(&folder.path().join(target), &facts, &ImageOptions::default());
        let message = refused.err().unwrap().to_string();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn two_sources_of_one_name_clash() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = ImageOptions::default();
    options.sources = Some([PathBuf::from("a/x.png"), PathBuf::from("b/x.png")].into());
    let target = folder.path().join("out");
    let facts = info(format("gray"), 4, 4);
    let message = sink::images::create(&target, &facts, &options)
        .err()
        .unwrap()
        .to_string();
    assert!(message.contains("would get this name"), "{message}");
    assert!(!target.exists());
    // Found while writing, where the sources were not known beforehand.
    let sink = sink::images::create(&target, &facts, &replacing()).unwrap();
    for (k, file) in ["a/x.png", "b/x.png"].iter().enumerate() {
        let mut frame = numbered(noise(facts.format, 4, 4, 1, 0), k as u64);
        frame.metadata.file = Some(Arc::new(PathBuf::from(file)));
        assert_eq!(sink.write(frame).is_ok(), k == 0);
    }
    assert_eq!(names(&target), ["x.png"]);
}

/// The beginning of a PNG file up to its pixels.
fn png_head(side: u32, depth: u8, colours: u8) -> Vec<u8> {
    let size = side.to_be_bytes();
    let head = [&b"IHDR"[..], &size, &size, &[depth, colours, 0, 0, 0]].concat();
    let crc = crc32(&head).to_be_bytes();
    [b"\x89PNG\r\n\x1a\n\0\0\0\x0d", &head[..], &crc, b"\0\x10\0\0IDAT"].concat()
}

/// Pictures of more than 256 MiB: a file is refused by its length where, and only where, its kind cannot pack
/// them so.
#[test]
fn a_large_picture_may_come_in_as_few_bytes_as_its_kind_allows() {
    const SIDE: u32 = 16_400;
    let folder = tempfile::tempdir().unwrap();
    let refusal = |name: &str, file: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, file).unwrap();
        let opened = source::images::open(&path, &ImageSourceOptions::default());
        opened.err().map(|e| e.to_string())
    };
    // A row of one bit a pixel and of four has a byte for the filter; Deflate packs 1032 bytes into one.
    for (bits, colours) in [(1, 0), (2, 0), (4, 0), (8, 0)] {
        let head = png_head(SIDE, bits, colours);
        let rows = u64::from(SIDE) * (u64::from(SIDE * u32::from(bits)).div_ceil(8) + 1);
        let least = rows.div_ceil(1032) as usize;
        let of = |length| [&head[..], &vec![0; length - head.len()]].concat();
        assert_eq!(refusal("a.png", &of(least)), None, "{bits} bits");
        let said = refusal("a.png", &of(least * 9 / 10)).unwrap_or_default();
        assert!(said.contains("which cannot be"), "{bits} bits: {said}");
    }
    // One colour without loss, 16383 pixels square, as libwebp writes it.
    let codes = b"\x2f\xfe\xbf\xff\x0f\x07\xd0\x84\x26\x34\xa1\xff\x81\x88\xe8\x7f\0\0\0";
    let webp = [&b"RIFF\x1e\0\0\0WEBPVP8L\x11\0\0\0"[..], codes].concat();
    assert_eq!(refusal("a.webp", &webp), None);
    // A fax of white rows, a bit each; uncompressed samples are not in so few bytes.
    let rows = SIDE.div_ceil(8);
    for (packing, bits, is_read) in [(4, 1, true), (1, 1, false), (1, 8, false)] {
        let entries = [
            (256, SIDE),
            (257, SIDE),
            (258, bits),
            (259, packing),
            (262, 0),
            (273, 8),
            (277, 1),
            (278, SIDE),
            (279, rows),
        ];
        let entry = |&(tag, value): &(u16, u32)| {
            let (kind, count) = (4_u16, 1_u32);
            [
                &tag.to_le_bytes()[..],
                &kind.to_le_bytes(),
                &count.to_le_bytes(),
                &value.to_le_bytes(),
            ]
            .concat()
        };
        let directory = entries.iter().flat_map(entry).collect::<Vec<u8>>();
        let head = [&b"II*\0"[..], &(8 + rows).to_le_bytes()].concat();
        let data = vec![0xff; rows as usize];
        let tiff = [&head, &data, &[9, 0][..], &directory, &[0; 4]].concat();
        let said = refusal("a.tif", &tiff);
        let is_refused = said
            .as_deref()
            .is_some_and(|said| said.contains("which cannot be"));
        assert!(
            if is_read { said.is_none() } else { is_refused },
            "{packing}: {said:?}"
        );
    }
    // Blocks take a bit of Huffman's codes, and next to none of arithmetic ones.
    let still = samples().join("still-rgb.png");
    let jpeg = folder.path().join("small.jpg");
    let frame = read(&open_images(&still), 0);
    let facts = info(frame.format(), 4, 4);
    let sink = sink::images::create(&jpeg, &facts, &ImageOptions::default()).unwrap();
    sink.write(frame).unwrap();
    sink.finish().unwrap();
    let mut jpeg = fs::read(jpeg).unwrap();
    let size = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    let side = (SIDE as u16).to_be_bytes();
    jpeg[size + 5..size + 9].copy_from_slice(&[side, side].concat());
    let said = refusal("a.jpg", &jpeg).unwrap_or_default();
    assert!(said.contains("which cannot be"), "{said}");
    jpeg[size + 1] = 0xc9;
    assert_eq!(refusal("a.jpg", &jpeg), None);
}

#[test]
fn broken_images_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut strict = ImageSourceOptions::default();
    strict.strict = true;
    let problem = |name: &str, content: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        let result = source::images::open(&file, &strict).and_then(|files| files.read(0, no_buffer()));
        let message = result
            .err()
            .unwrap_or_else(|| panic!("{name} was read"))
            .to_string();
        assert!(message.contains(name), "{message}");
        message
    };
    let png = fs::read(samples().join("frames/frame-1.png")).unwrap();
    for part in [10, 40, png.len() / 2, png.len() - 30] {
        problem("cut.png", &png[..part]);
    }
    let mut damaged = png.clone();
    damaged[png.len() / 2] ^= 0x55;
    problem("damaged.png", &damaged);
    assert!(problem("empty.png", b"").contains("empty file"));
    problem("text.png", b"this is not a picture at all");
    assert!(problem("words.dat", b"this is not a picture").contains("no image that framepipe reads"));

    let still = samples().join("still-rgb.png");
    for extension in ["jpg", "tif", "bmp", "webp", "ppm"] {
        let file = folder.path().join(format!("whole.{extension}"));
        let frame = read(&open_images(&still), 0);
        let sink =
            sink::images::create(&file, &info(frame.format(), 4, 4), &ImageOptions::default()).unwrap();
        sink.write(frame).unwrap();
        sink.finish().unwrap();
        let whole = fs::read(&file).unwrap();
        let cut = format!("cut.{extension}");
        problem(&cut, &whole[..whole.len() / 2]);
        // What a JPEG still has is given where that is allowed, with a word about it.
        let files = source::images::open(&folder.path().join(cut), &ImageSourceOptions::default());
        let read = files.and_then(|files| {
            files
                .read(0, no_buffer())
                .map(|_| files.remarks().warning_texts())
        });
        match read {
            Ok(warnings) => assert!(
                extension == "jpg" && warnings[0].contains("damaged"),
                "{warnings:?}"
            ),
            Err(e) => assert_ne!(extension, "jpg", "{e}"),
        }
        problem(&format!("short.{extension}"), &whole[..20]);
    }

    // A header that claims far more than its file can hold: 60000x60000.
    let mut bomb = png.clone();
    bomb[16..20].copy_from_slice(&60000_u32.to_be_bytes());
    bomb[20..24].copy_from_slice(&60000_u32.to_be_bytes());
    let crc = crc32(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&crc.to_be_bytes());
    assert!(problem("bomb.png", &bomb).contains("which cannot be"));

    for (name, file) in [
        ("no-size.jpg", &b"\xff\xd8"[..]),
        ("no-size.jpg", b"\xff\xd8\xff\xd9"),
    ] {
        assert!(problem(name, file).contains("ends before it says how large it is"));
    }
    let vast = png_head(i32::MAX as u32, 8, 2);
    assert!(problem("vast.png", &vast).contains("--max-pixels allows"));
    let mut flat = vec![0; 54];
    flat[..2].copy_from_slice(b"BM");
    (flat[10], flat[14], flat[22], flat[26], flat[28]) = (54, 40, 5, 1, 24);
    assert!(problem("flat.bmp", &flat).contains("states a picture without a pixel"));

    let float = folder.path().join("float.tif");
    let mut out = fs::File::create(&float).unwrap();
    let mut encoder = tiff::encoder::TiffEncoder::new(&mut out).unwrap();
    encoder
        .write_image::<tiff::encoder::colortype::RGB32Float>(2, 2, &[0.5; 12])
        .unwrap();
    let files = open_images(&float);
    assert_eq!(read(&files, 0).float(0, 0, 0, 0), 0.5);
    assert!(files.remarks().warnings.is_empty());

    let signed = folder.path().join("signed.tif");
    let mut out = fs::File::create(&signed).unwrap();
    let mut encoder = tiff::encoder::TiffEncoder::new(&mut out).unwrap();
    encoder
        .write_image::<tiff::encoder::colortype::GrayI16>(2, 2, &[-5, 0, 5, 9])
        .unwrap();
    let opened = source::images::open(&signed, &ImageSourceOptions::default());
    let message = opened.err().unwrap().to_string();
    assert!(
        message.contains("signed") && message.contains("convert it"),
        "{message}"
    );
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |c: u32, _| {
        if c & 1 == 1 {
            (c >> 1) ^ 0xedb8_8320
        } else {
            c >> 1
        }
    };
    !bytes
        .iter()
        .fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn stills_have_the_formats_that_their_names_say() {
    for (file, name) in [
        ("still-gray.png", "gray"),
        ("still-gray16.png", "gray16le"),
        ("still-rgb.png", "rgb24"),
        ("still-rgb16.png", "rgb48le"),
        ("still-rgba.png", "rgba"),
    ] {
        let path = samples().join(file);
        let mut options = ImageSourceOptions::default();
        options.fps = Some(Rational { num: 25, den: 1 });
        let files = source::images::open(&path, &options).unwrap();
        assert_eq!(files.info().format.name(), name);
        let frame = read(&files, 0);
        assert_eq!((frame.metadata.pts, frame.metadata.duration), (Some(0), Some(1)));
        let raw = ffmpeg(&[
            "-i",
            path.to_str().unwrap(),
            "-f",
            "rawvideo",
            "-pix_fmt",
            name,
            "-",
        ]);
        assert!(frame.bytes() == raw, "{file}");
    }
}

#[test]
fn a_full_device_is_an_error() {
    // Every write to this device fails as on a full disk.
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: this system has no /dev/full");
        return;
    }
    let facts = info(format("yuv420p"), 512, 512);
    let mut sink = sink::y4m::create(Path::new("/dev/full"), &facts, Rules::default()).unwrap();
    let error = sink.write(noise(facts.format, 512, 512, 1, 0)).unwrap_err();
    assert!(error.to_string().contains("cannot write /dev/full"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    for extension in ["png", "jpg", "bmp", "webp", "ppm"] {
        let link = folder.path().join(format!("full.{extension}"));
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        let sink =
            sink::images::create(&link, &info(format("rgb24"), 8, 8), &ImageOptions::default()).unwrap();
        let result = sink.write(noise(format("rgb24"), 8, 8, 1, 0));
        assert!(matches!(result, Err(SinkError::Io { .. })), "{extension}");
    }
}
