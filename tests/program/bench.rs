//! `framepipe bench` from the outside, on the CPU: every subcommand, its files, and what it refuses. No time
//! is judged.
use crate::common::{ffmpeg, framepipe, text};
use framepipe::program::bench::CSV_COLUMNS;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output};

/// Small masks on small frames.
const SMALL: [&str; 9] = [
    "--quick",
    "--cache-mib",
    "1",
    "--mask-sizes",
    "3,5",
    "--sizes",
    "65x33",
    "--formats",
    "gray,yuv420p10le",
];

fn program(arguments: &[&str]) -> Command {
    let mut command = framepipe(&[&["bench"], arguments].concat());
    // No card, whatever this machine has: what it does without one is tested here.
    command.env("CUDA_VISIBLE_DEVICES", "");
    command
}

fn run(code: i32, arguments: &[&str]) -> Output {
    let output = program(arguments).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{said}");
    assert!(!said.contains("panicked"), "{said}");
    if code != 0 {
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
    output
}

fn cells(json: &Value) -> &Vec<Value> {
    json["cells"].as_array().unwrap()
}

#[test]
fn kernels_fill_table_json_and_csv() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, csv) = (path("sweep.json"), path("sweep.csv"));
    let mut arguments = vec!["kernels", "--json", &json, "--csv", &csv, "--threads", "1,2"];
    arguments.extend(SMALL);
    let table = text(&run(0, &arguments).stdout);
    assert!(
        table.contains("gaussian:size=5, 65x33 yuv420p10le, border replicate"),
        "{table}"
    );
    assert!(table.contains("note: nothing was measured on a card"), "{table}");

    let json: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(json["schema"], "framepipe-sweep");
    assert_eq!(json["ending"], "complete");
    // Two masks, two formats, two algorithms; the reference and two numbers of threads.
    assert_eq!(cells(&json).len(), 2 * 2 * 2 * 3);
    for cell in cells(&json) {
        let time = cell["milliseconds"]["median"].as_f64().unwrap();
        assert!(time > 0.0 && time.is_finite(), "{cell}");
        assert!(cell["speed_up"].as_f64().unwrap() > 0.0, "{cell}");
        if cell["engine"] == "cpu" {
            assert!(cell["samples_checked"].as_u64().unwrap() >= 65 * 16, "{cell}");
            assert!(cell["share_of_copy"].as_f64().unwrap() > 0.0, "{cell}");
            assert!(
                cell["warm_milliseconds"]["median"].as_f64().unwrap() > 0.0,
                "{cell}"
            );
            // Cold: with the padding of rows four times the cache that was named.
            let together = cell["frames_in_turn"].as_u64().unwrap() * cell["bytes"].as_u64().unwrap();
            assert!((1 << 20..=4 << 20).contains(&together), "{cell}");
        }
    }
    let lines = fs::read_to_string(&csv).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[0], CSV_COLUMNS.join(","));
    assert_eq!(lines.len(), 1 + cells(&json).len());
    assert!(
        lines[1..]
            .iter()
            .all(|l| l.split(',').count() == CSV_COLUMNS.len())
    );
    // Nothing else is left behind.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn one_engine_and_one_mask_by_name() {
    let output = run(
        0,
        &[
            "kernels",
            "--quick",
            "--engines",
            "cpu",
            "--threads",
            "1",
            "--filter",
            "laplacian8",
            "--filter",
            "sobel-x",
            "--border",
            "constant:16",
            "--sizes",
            "40x30",
            "--formats",
            "rgba",
            "--json",
            "-",
        ],
    );
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let seen: Vec<[&str; 3]> = cells(&json)
        .iter()
        .map(|c| ["filter", "algorithm", "border"].map(|key| c[key].as_str().unwrap()))
        .collect();
    // laplacian8 is not separable, and it was not requested to be.
    assert_eq!(
        seen,
        [
            ["laplacian8", "direct", "constant:16"],
            ["sobel-x", "direct", "constant:16"],
            ["sobel-x", "separable", "constant:16"],
        ]
    );
}

#[test]
fn threads_are_swept_in_order() {
    let mut arguments = vec![
        "threads",
        "--threads",
        "1,2,3",
        "--json",
        "-",
        "--algorithms",
        "direct",
    ];
    arguments.extend(SMALL);
    let output = run(0, &arguments);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let threads: Vec<u64> = cells(&json)
        .iter()
        .take(4)
        .map(|c| c["threads"].as_u64().unwrap())
        .collect();
    assert_eq!(threads, [1, 1, 2, 3]);
    assert_eq!(cells(&json)[0]["engine"], "reference");
}

#[test]
fn a_pipeline_runs_for_its_time_and_writes_what_it_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (out, json) = (path("out.y4m"), path("steady.json"));
    let table = run(
        0,
        &[
            "pipeline",
            "synthetic:160x90:yuv420p:30:0",
            &out,
            "--engine",
            "cpu",
            "--seconds",
            "0.3",
            "--warm-up",
            "0.1",
            "--json",
            &json,
        ],
    );
    assert!(text(&table.stdout).contains("drift"), "{}", text(&table.stdout));
    let json: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(
        (&json["schema"], &json["ending"]),
        (&"framepipe-steady".into(), &"complete".into())
    );
    assert_eq!(json["seconds"], 0.3);
    assert_eq!(json["rates"].as_array().unwrap().len(), 10);
    let steady = json["frames"].as_u64().unwrap();
    let all = json["report"]["frames"].as_u64().unwrap();
    assert!(steady > 0 && all > steady, "{steady} of {all}");
    assert_eq!(json["latency"]["count"].as_u64(), Some(steady));
    // The output is whole: a header and every frame that was counted.
    let frame = "FRAME\n".len() + 160 * 90 * 3 / 2;
    let bytes = fs::metadata(&out).unwrap().len() as usize;
    let header = bytes - all as usize * frame;
    assert!(header > 10 && header < 200, "{bytes} bytes, {all} frames");
}

#[test]
fn a_pipeline_filters_in_the_floats_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (measured, filtered, json) = (path("measured.mkv"), path("filtered.mkv"), path("steady.json"));
    let clip = "synthetic:64x48:yuv420p:25:8";
    let floats = [
        "--pixel-format",
        "rgbf32",
        "--encoder",
        "ffv1",
        "--filter",
        "sobel",
        "--engine",
        "cpu",
    ];
    let own = ["--warm-up", "0", "--explain", "--json", &json];
    let run = run(0, &[&["pipeline", clip, &measured][..], &own, &floats].concat());
    assert!(text(&run.stderr).contains("cpu: "), "{}", text(&run.stderr));
    let done = framepipe(&[&["filter", clip, &filtered][..], &floats].concat());
    assert!({ done }.output().unwrap().status.success());
    let frames = |path: &str| text(&ffmpeg(&["-i", path, "-f", "framemd5", "-"]));
    assert_eq!(frames(&measured), frames(&filtered));
    let json: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let task = &json["report"]["task"];
    let input = task["input"].as_str().unwrap();
    assert!(input.ends_with("brought from yuv420p to rgbf32le"), "{task}");
    let output = task["output"].as_str().unwrap();
    assert!(output.contains("converted from rgbf32le to rgb48le"), "{task}");
}

#[test]
fn a_report_is_printed_in_its_own_shape() {
    // The one whose pictures are the smallest: a debug build takes a minute for the floats of another.
    let output = run(0, &["report", "r1", "--tables", "1", "--quick"]);
    let table = text(&output.stdout);
    assert!(table.contains("RTX 3060") && table.contains("seq dir"), "{table}");
    assert!(table.contains("no card"), "{table}");
    let output = run(0, &["report", "R2", "--tables", "4", "--quick", "--csv", "-"]);
    let lines = text(&output.stdout);
    // One and 64 threads, two masks.
    assert_eq!(lines.lines().count(), 1 + 4, "{lines}");
    assert!(
        lines.lines().nth(3).unwrap().contains(",64,gaussian:size=3,"),
        "{lines}"
    );
}

#[test]
fn tuning_tells_what_it_is_for_and_without_a_card_keeps_nothing() {
    let help = text(&run(0, &["tune", "--help"]).stdout);
    for word in [
        "--mask-sizes",
        "--formats",
        "--sizes",
        "--quick",
        "--json",
        "--memory auto",
    ] {
        assert!(help.contains(word), "{help}");
    }
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("tuning.json");
    let mut command = program(&["tune", "--quick", "--json", json.to_str().unwrap()]);
    let output = command.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("missing/x.json");
    let refused = |code: i32, arguments: &[&str], word: &str| {
        let said = text(&run(code, arguments).stderr);
        assert!(said.contains(word), "{arguments:?}: {said}");
    };
    refused(2, &["kernels", "--sizes", "1920"], "such as 1920x1080");
    refused(2, &["kernels", "--mask-sizes", "4"], "size");
    refused(2, &["kernels", "--memory", "cloud"], "memory");
    refused(2, &["kernels", "--blocks", "64x64"], "at most 1024");
    refused(2, &["kernels", "--formats", "yuv999"], "yuv999");
    refused(2, &["kernels", "--threads", "0"], "threads");
    refused(
        2,
        &["kernels", "--filter", "soft", "--mask-sizes", "3"],
        "cannot be used with",
    );
    refused(2, &["report", "R9"], "R1, R2, R3, R4, R5");
    refused(2, &["report", "R1", "--tables", "9"], "numbered 1 to");
    refused(2, &["pipeline", "--seconds", "-1"], "such as 10");
    refused(2, &["pipeline", "--seconds", "0"], "too short");
    refused(
        2,
        &["pipeline", "synthetic:16x16:gray:25:0", "-"],
        "standard output",
    );
    refused(2, &["pipeline", "--engine", "cpu", "--slots", "3"], "--slots");
    refused(1, &["pipeline", "missing.mp4", "--quick"], "missing.mp4");
    refused(
        1,
        &["pipeline", "synthetic:16x16:gray:25:1", "--engine", "cpu"],
        "shorter --warm-up",
    );
    refused(1, &["kernels", "--engines", "cuda"], "use the CPU");
    refused(1, &["blocks"], "use the CPU");
    refused(1, &["tune"], "use the CPU");
    refused(
        1,
        &["tune", "--json", nowhere.to_str().unwrap()],
        "missing/x.json",
    );
    refused(2, &["tune", "--sizes", "1920"], "such as 1920x1080");
    refused(
        1,
        &["kernels", "--quick", "--json", nowhere.to_str().unwrap()],
        "missing/x.json",
    );
    refused(2, &["kernels", "--json", "-", "--csv", "-"], "same name");
    refused(
        2,
        &["kernels", "--json", "a.html", "--html", "a.html"],
        "same name",
    );
    refused(2, &["kernels", "--html", "a.json"], ".html");
    refused(
        2,
        &["pipeline", "--json", "a.json", "--trace", "a.json"],
        "same name",
    );
    refused(2, &["pipeline", "--trace", "a.html"], ".json");
    // Separable was requested by name, and no mask here is.
    refused(
        1,
        &[
            "kernels",
            "--quick",
            "--engines",
            "cpu",
            "--filter",
            "laplacian8",
            "--algorithms",
            "separable",
            "--sizes",
            "9x9",
        ],
        "not separable",
    );
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("sweep.json");
    // More cells than anyone waits for.
    let arguments = [
        "threads",
        "--mask-sizes",
        "3,5,7,9,11,13,15,17,19,21,23,25",
        "--sizes",
        "1920x1080",
        "--json",
    ];
    let mut child = program(&arguments).arg(&json).arg("-v").spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // The first cell is there.
    while !line.contains(" ms") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    let killed = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", child.id())])
        .status()
        .unwrap();
    assert!(killed.success());
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        rest
    });
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", rest.join().unwrap());
    assert!(text(&output.stdout).contains("interrupted: this is what was measured"));
    let json: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(json["ending"], "interrupted");
    assert!(!cells(&json).is_empty());
}
