//! Traces, read back: of the program's own runs, and of made-up ones on a made-up card, which show that each
//! check can fail.
#![allow(clippy::unwrap_used)]

mod common;
mod ring;
mod tracks;

use framepipe::report::{Alignment, Measurements, Trace};
use std::process::Command;
use tracks::{Tracks, read};

const PROGRAM: &str = env!("CARGO_BIN_EXE_framepipe");

/// Upload, kernels and download of a 1080p frame, in seconds.
const PARTS: [f64; 3] = [64e-6, 30e-6, 69e-6];

fn trace(measured: &Measurements, kept: u64) -> Tracks {
    let mut json = Vec::new();
    let task = ring::task("made-up \"frames\"");
    Trace::new(&task, measured, kept).write_to(&mut json).unwrap();
    read(&String::from_utf8(json).unwrap())
}

#[test]
fn a_ring_overlaps_and_no_slot_is_used_twice() {
    for slots in [2, 3, 5] {
        let trace = trace(&ring::run(60, slots, PARTS, 1024), 1024);
        trace.check(60, true).unwrap();
        trace.check_clocks().unwrap();
        assert!(trace.overlap() > 0.3, "{slots} slots: {}", trace.overlap());
        assert_eq!(trace.facts["frames_dropped"], 0);
        assert_eq!(trace.facts["input"], "made-up \"frames\"");
        assert!(trace.remarks.is_empty());
        // Decode, submit, upload, kernel, download, collect, encode.
        assert!(
            trace
                .arrows
                .values()
                .all(|knots| knots.len() == 7 && knots.iter().filter(|k| *k == "s").count() == 1)
        );
        for track in ["upload", "kernel", "download"] {
            assert_eq!(trace.tracks[&format!("Made-up card/{track}")].len(), 60);
        }
    }
}

#[test]
fn frames_beyond_those_that_are_kept_are_reported() {
    let trace = trace(&ring::run(60, 3, PARTS, 25), 25);
    trace.check(25, true).unwrap();
    assert_eq!(trace.facts["frames_kept"], 25);
    assert_eq!(trace.facts["frames_dropped"], 35);
    assert_eq!(trace.facts["device_frames_dropped"], 35);
    assert_eq!(trace.remarks, ["kept: the first 25 frames; not kept: 35 more"]);
}

#[test]
fn a_device_that_keeps_fewer_frames_than_the_stages_says_so() {
    let mut measured = ring::run(60, 3, PARTS, 1024);
    measured.device.as_mut().unwrap().frames.truncate(20);
    let trace = trace(&measured, 1024);
    trace.check_frames(60, false).unwrap();
    assert_eq!(trace.facts["device_frames_dropped"], 40);
    assert_eq!(
        trace.remarks,
        ["of the device's times, those of the first 20 frames were kept"]
    );
}

#[test]
fn the_cards_clock_is_laid_on_the_hosts_within_what_it_says() {
    let mut measured = ring::run(60, 3, PARTS, 1024);
    let real = ring::ZERO as f64 / 1e9;
    let found = Alignment::find(&measured).unwrap();
    assert!((found.offset - real).abs() <= found.tolerance + 1e-9, "{found:?}");
    assert!(found.tolerance < 10e-6, "{found:?}");
    // An engine that tells its zero binds it from below, where nothing else does as well.
    let device = measured.device.as_mut().unwrap();
    device.origin = Some(measured.began.unwrap() + std::time::Duration::from_nanos(ring::ZERO - 1000));
    let bounded = Alignment::find(&measured).unwrap();
    assert!(
        (bounded.offset - real).abs() <= bounded.tolerance + 1e-9,
        "{bounded:?}"
    );
    assert!(bounded.tolerance <= found.tolerance);
    measured.device = None;
    assert_eq!(Alignment::find(&measured), None);
}

/// Changes one frame's device times and gives what the checks say.
fn broken(change: impl FnOnce(&mut Vec<framepipe::engine::FrameTimes>)) -> String {
    let mut measured = ring::run(30, 3, PARTS, 1024);
    change(&mut measured.device.as_mut().unwrap().frames);
    trace(&measured, 1024).check(30, true).unwrap_err()
}

#[test]
fn a_slot_that_is_used_twice_at_once_is_found() {
    let error = broken(|frames| frames[11].slot = frames[12].slot);
    assert!(error.starts_with("slot 0: frame"), "{error}");
    // An upload into a slot whose last frame's kernels still read it.
    let error = broken(|frames| {
        let early = frames[9].kernel.1 - 20e-6;
        frames[12].upload = (early, early + 10e-6);
        frames[11].upload = (early - 20e-6, early - 10e-6);
        frames[10].upload = (early - 40e-6, early - 30e-6);
        frames[9].upload = (early - 60e-6, early - 50e-6);
    });
    assert!(error.contains("frame 12's upload"), "{error}");
}

#[test]
fn lost_doubled_and_disordered_frames_are_found() {
    let error = broken(|frames| {
        frames.remove(7);
    });
    assert!(error.starts_with("upload: the frames"), "{error}");
    let error = broken(|frames| {
        let again = frames[7];
        frames.insert(8, again);
    });
    assert!(error.starts_with("upload: the frames"), "{error}");
    let error = broken(|frames| frames[20].kernel.0 -= 50e-6);
    assert!(error.starts_with("frame 20: kernel begins"), "{error}");
}

#[test]
fn a_clock_that_is_laid_wrongly_is_found() {
    // A millisecond late: downloads end long after they were collected.
    let mut trace = trace(&ring::run(30, 3, PARTS, 1024), 1024);
    for spans in trace
        .tracks
        .iter_mut()
        .filter(|(name, _)| name.starts_with("Made-up"))
        .map(|t| t.1)
    {
        for span in spans {
            span.begin += 1000.0;
            span.end += 1000.0;
        }
    }
    let error = trace.check_clocks().unwrap_err();
    assert!(error.contains("is collected"), "{error}");
}

#[test]
fn serial_parts_do_not_overlap() {
    // One slot is no ring: each upload waits for the last frame's kernels.
    let trace = trace(&ring::run(20, 1, PARTS, 1024), 1024);
    trace.check(20, true).unwrap();
    assert_eq!(trace.overlap(), 0.0);
}

fn run_program(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let output = Command::new(PROGRAM)
        .args(["filter", "--filter", "soft", "--engine", "cpu", "-q", "--trace"])
        .arg(&file)
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn every_frame_of_a_real_run_is_there_once() {
    let root = env!("CARGO_MANIFEST_DIR");
    let trace = read(&run_program(&[&format!("{root}/samples/clip-720p.mp4"), "null:"]));
    let frames = trace.facts["frames"].as_u64().unwrap();
    assert!(frames > 50);
    let command = trace.facts["command"].as_str().unwrap();
    assert!(
        command.contains("--filter soft") && command.contains("--trace"),
        "{command}"
    );
    trace.check(frames, false).unwrap();
    let names: Vec<&str> = trace.tracks.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["framepipe/decode", "framepipe/encode", "framepipe/engine"]
    );
}

#[test]
fn several_decoders_have_a_track_each() {
    let folder = tempfile::tempdir().unwrap();
    let clip = folder.path().join("clip.mkv");
    let moving = "testsrc2=size=160x120:rate=30:duration=10";
    let options = ["-c:v", "mpeg2video", "-g", "60", "-q:v", "2"];
    let options = [
        &["-f", "lavfi", "-i", moving],
        &options[..],
        &[clip.to_str().unwrap()],
    ];
    common::ffmpeg(&options.concat());
    let decoders = ["--decoder", "cpu", "--decoders", "3"];
    let trace = read(&run_program(
        &[&[clip.to_str().unwrap(), "null:"], &decoders[..]].concat(),
    ));
    assert_eq!(trace.facts["frames"], 300);
    trace.check(300, false).unwrap();
    let of_decoders = trace.tracks.iter().filter(|(name, _)| name.contains("decoder "));
    let mut frames = 0;
    for (name, spans) in of_decoders {
        assert!(
            name.starts_with("framepipe/decoder ") && name.ends_with(", CPU"),
            "{name}"
        );
        let own: Vec<u64> = spans
            .iter()
            .filter(|s| s.category == "decode")
            .map(|s| s.frame)
            .collect();
        // One whole stretch after another: they are 60 frames long.
        assert!(
            own.windows(2)
                .all(|pair| pair[1] == pair[0] + 1 || pair[1] % 60 == 0),
            "{name}: {own:?}"
        );
        assert!(own.len() < 300, "{name} did everything");
        frames += own.len();
    }
    assert_eq!(frames, 300);
    // The thread that takes their frames in order decodes none.
    assert!(
        trace.tracks["framepipe/decode"]
            .iter()
            .all(|s| s.category == "wait")
    );
    // Decode, submit, collect, encode.
    assert!(
        trace
            .arrows
            .values()
            .all(|knots| knots.len() == 4 && knots[0] == "s")
    );
}

#[test]
fn a_steady_run_has_a_trace_of_its_first_frames() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("steady.json");
    let output = Command::new(PROGRAM)
        .args([
            "bench",
            "pipeline",
            "synthetic:64x48:gray:25:0",
            "--engine",
            "cpu",
            "--seconds",
            "0.2",
        ])
        .arg("--trace")
        .arg(&file)
        .args(["--trace-frames", "30"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let trace = read(&std::fs::read_to_string(file).unwrap());
    trace.check(30, false).unwrap();
    assert!(trace.facts["frames_dropped"].as_u64().unwrap() > 0);
    assert_eq!(trace.remarks.len(), 1);
}

#[test]
fn every_worker_has_a_track_and_the_limit_holds_for_all_of_them() {
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = tempfile::tempdir().unwrap();
    let trace = read(&run_program(&[
        &format!("{root}/samples/frames"),
        folder.path().join("out").to_str().unwrap(),
        "--workers",
        "3",
        "--trace-frames",
        "10",
    ]));
    trace.check(10, false).unwrap();
    assert_eq!(trace.facts["frames_dropped"], 2);
    let threads: Vec<_> = trace.of("decode").iter().map(|s| s.frame).collect();
    assert_eq!(threads.len(), 10);
    assert!(
        trace.tracks.keys().all(|name| name.starts_with("framepipe/")),
        "{:?}",
        trace.tracks.keys()
    );
    assert!(
        trace
            .tracks
            .keys()
            .any(|name| name.starts_with("framepipe/decode "))
    );
}
