//! The program on a card: errors, interrupts, video, traces, the cache of kernels, tuning.

use super::tracks;
use super::{card, card_alone, is_stand_in};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The program: what the bundle's script names, where cargo built it otherwise.
fn program() -> Command {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_framepipe"));
    let program = std::env::var_os("FRAMEPIPE_PROGRAM").map_or(built, PathBuf::from);
    Command::new(program)
}

/// A file of samples/: in the bundle, or where cargo built the test.
fn sample(name: &str) -> PathBuf {
    let bundle = std::env::var_os("FRAMEPIPE_PROGRAM").map(PathBuf::from);
    let folder = bundle.map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")),
        |program| program.parent().unwrap().to_owned(),
    );
    folder.join("samples").join(name)
}

/// A run of some 400 frames on the card.
fn framepipe() -> Command {
    framepipe_on("synthetic:640x360:rgb24:30:400")
}

fn framepipe_on(input: &str) -> Command {
    let mut command = program();
    command.args(["filter", input, "null:"]);
    command.args(["--filter", "gaussian:size=5:sigma=1.1", "--engine", "cuda"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

#[test]
fn an_error_in_mid_stream_ends_the_run_with_its_reason() {
    let Some(_card) = card() else { return };
    let at = if is_stand_in() { 13 } else { 123 };
    let fault = format!("cuda:{at}");
    let done = framepipe().env("FRAMEPIPE_FAULT", fault).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!("frame {at}")) && said.contains("FRAMEPIPE_FAULT"),
        "{said}"
    );
}

#[test]
fn an_interrupt_in_mid_flight_ends_with_whole_frames() {
    let Some(_card) = card_alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.y4m");
    let process = program()
        .args(["filter", "synthetic:320x180:gray:30:1000000"])
        .arg(&file)
        .args(["--filter", "gaussian:size=5:sigma=1.1", "--engine", "cuda"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Until frames are on their way to the file, which has another name so far.
    let written = || -> u64 {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files.map(|f| f.unwrap().metadata().map_or(0, |m| m.len())).sum()
    };
    while written() < 5_000_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", process.id())])
        .status();
    assert!(interrupt.unwrap().success());
    let done = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(130), "{said}");
    let bytes = std::fs::read(&file).unwrap();
    let header = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
    let frame = "FRAME\n".len() + 320 * 180;
    assert_eq!((bytes.len() - header) % frame, 0, "a frame is cut off");
    let count = (bytes.len() - header) / frame;
    assert!(
        said.contains(&format!("interrupted: {count} frames were written")),
        "{count} frames: {said}"
    );
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "something was left beside the output");
}

#[test]
fn decoded_video_is_filtered_to_the_cpu_engines_bits() {
    let Some(_card) = card() else { return };
    for name in ["clip-720p.mp4", "clip-10bit.mkv", "clip-odd.mp4"] {
        let run = |engine: &str| {
            let done = program()
                .arg("filter")
                .arg(sample(name))
                .args(["-", "--filter", "gaussian:sigma=2", "--filter", "sharpen"])
                .args(["--engine", engine])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            done.stdout
        };
        let (card, cores) = (run("cuda"), run("cpu"));
        assert!(card.len() > 100_000, "{name}: {} bytes", card.len());
        assert!(card == cores, "{name}: the engines differ");
    }
}

#[test]
fn two_processes_share_a_card() {
    let Some(_card) = card() else { return };
    let running: Vec<_> = (0..2).map(|_| framepipe().spawn().unwrap()).collect();
    for process in running {
        let done = process.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_trace_shows_uploads_beside_kernels_and_no_slot_used_twice() {
    let Some(_card) = card_alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let (input, frames) = if is_stand_in() {
        ("synthetic:64x48:rgb24:30:60", 60)
    } else {
        ("synthetic:1920x1080:rgb24:30:400", 400)
    };
    let trace = |more: &[&str]| {
        let mut command = framepipe_on(input);
        let done = command
            .args(["--overwrite", "--trace"])
            .arg(&file)
            .args(more)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        tracks::read(&std::fs::read_to_string(&file).unwrap())
    };
    for slots in ["2", "3", "6"] {
        let trace = trace(&["--slots", slots]);
        trace.check(frames, true).unwrap();
        assert!(
            trace.overlap() > 0.0,
            "{slots} slots: no upload ran beside another frame's kernels"
        );
        assert!(
            trace.facts["device_clock_tolerance_us"].is_number(),
            "{}",
            trace.facts
        );
        trace.check_clocks().unwrap();
    }
    let serial = trace(&["--no-overlap"]);
    serial.check(frames, true).unwrap();
    assert_eq!(serial.overlap(), 0.0, "without overlap");
    let kept = trace(&["--trace-frames", "50"]);
    kept.check(50, true).unwrap();
    assert_eq!(kept.facts["frames_dropped"], frames - 50);
}

#[test]
fn compiled_kernels_are_kept_and_damaged_ones_made_again() {
    let Some(_card) = card() else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let done = framepipe().env("XDG_CACHE_HOME", folder.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let entries = || {
        let entries = std::fs::read_dir(folder.path().join("framepipe")).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths
    };
    run();
    let first = entries();
    assert!(!first.is_empty());
    let whole = std::fs::read(&first[0]).unwrap();
    std::fs::write(&first[0], &whole[..whole.len() / 2]).unwrap();
    run();
    assert_eq!(entries(), first);
    assert!(
        std::fs::read(&first[0]).unwrap() == whole,
        "the damaged entry was not made again"
    );
}

#[test]
fn what_was_tuned_here_is_what_auto_goes_by() {
    let Some(_card) = card_alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let tables = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder.path().join("framepipe")).unwrap();
        entries
            .map(|e| e.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "tuning"))
            .collect()
    };
    let explained = || {
        let mut run = framepipe_on("synthetic:320x180:gray:30:4");
        run.arg("--explain").env("XDG_CACHE_HOME", folder.path());
        let done = run.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        said
    };
    let before = explained();
    assert!(!before.contains("measured here"), "{before}");
    let mut tune = program();
    tune.args(["bench", "tune", "--quick", "--mask-sizes", "3,5"]);
    tune.args(["--formats", "gray,rgb24", "--sizes", "320x180", "--json", "-"]);
    let done = tune.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 2 * 2);
    for cell in cells {
        let times = cell["times"].as_array().unwrap();
        assert!(times.len() >= 5, "{cell}");
        assert_eq!(cell["winner"], times[0]["variant"]);
        let median = |time: &serde_json::Value| time["milliseconds"]["median"].as_f64().unwrap();
        assert!(median(&times[0]) > 0.0 && cell["ahead"].as_f64().unwrap() >= 1.0);
        assert!(times.windows(2).all(|pair| median(&pair[0]) <= median(&pair[1])));
    }
    let kept = tables();
    assert_eq!(kept.len(), 1);
    assert_eq!(json["kept"].as_str(), kept[0].to_str());
    let after = explained();
    let date = json["date"].as_str().unwrap();
    let expected = format!("measured here on {date}, cell separable 5x5");
    assert!(after.contains(&expected), "{after}");
    let whole = std::fs::read(&kept[0]).unwrap();
    std::fs::write(&kept[0], &whole[..whole.len() / 2]).unwrap();
    let damaged = explained();
    assert!(
        damaged.contains("is damaged") && !damaged.contains("measured here on"),
        "{damaged}"
    );
}

#[test]
fn an_interrupt_while_tuning_keeps_no_table() {
    let Some(_card) = card_alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut tune = program();
    tune.args([
        "bench",
        "tune",
        "-v",
        "--mask-sizes",
        "3,5,7,9",
        "--formats",
        "gray",
    ]);
    tune.args(["--sizes", "320x180"])
        .env("XDG_CACHE_HOME", folder.path())
        .env_remove("RUST_LOG");
    tune.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = tune.spawn().unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    // The first time is there.
    while !line.contains(" ms") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    let interrupt = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", process.id())])
        .status();
    assert!(interrupt.unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let done = process.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{rest}");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(
        printed.contains("interrupted: nothing of this is kept"),
        "{printed}"
    );
    let files = std::fs::read_dir(folder.path().join("framepipe")).unwrap();
    let names = files.map(|f| f.unwrap().file_name().into_string().unwrap());
    let others: Vec<String> = names.filter(|n| !n.ends_with(".kernel")).collect();
    assert!(others.is_empty(), "{others:?}");
}
