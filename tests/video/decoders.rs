//! Several decoders for one file give the frames, times and words of one, whatever the codec refers to, with
//! little memory, in ranges, and where something is wrong.

use crate::common::{ffmpeg, framepipe, is_whole_matrix, said};
use crate::standin::stand_in;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A clip of ten seconds in `folder`, made with these options of FFmpeg's.
fn clip(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let moving = "testsrc2=size=96x64:rate=30:duration=10";
    let mut all = vec!["-f", "lavfi", "-i", moving];
    all.extend(options);
    all.push(path.to_str().unwrap());
    ffmpeg(&all);
    path
}

/// Times and hashes of all frames, and what was said of the run.
fn frames(input: &Path, options: &[&str]) -> (String, String) {
    let hashes = input.with_extension("hashes");
    let mut all = vec!["filter", input.to_str().unwrap(), "null:", "--filter", "identity"];
    all.extend([
        "--engine",
        "none",
        "--stats",
        "--overwrite",
        "--frame-hashes",
        hashes.to_str().unwrap(),
    ]);
    all.extend(options);
    let done = framepipe(&all).output().unwrap();
    assert!(done.status.success(), "{input:?} {options:?}: {}", said(&done));
    (fs::read_to_string(&hashes).unwrap(), said(&done))
}

/// What is said of the input: by how many decoders it was read, and what is wrong with it.
fn warnings(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains("warning")).collect()
}

const CASES: [(&str, &[&str]); 8] = [
    ("closed.mp4", &["-c:v", "libx264", "-g", "50", "-bf", "3"]),
    (
        "open.mkv",
        &[
            "-c:v",
            "libx264",
            "-x264-params",
            "open-gop=1:keyint=50:min-keyint=50:bframes=3:scenecut=0",
        ],
    ),
    (
        "cra.mp4",
        &[
            "-c:v",
            "libx265",
            "-x265-params",
            "log-level=none:open-gop=1:keyint=50:min-keyint=50:scenecut=0",
        ],
    ),
    (
        "radl.mkv",
        &[
            "-c:v",
            "libx265",
            "-x265-params",
            "log-level=none:open-gop=0:radl=2:keyint=50:min-keyint=50",
        ],
    ),
    (
        "vp9.webm",
        &[
            "-c:v",
            "libvpx-vp9",
            "-g",
            "50",
            "-deadline",
            "realtime",
            "-auto-alt-ref",
            "1",
        ],
    ),
    ("mpeg4.mp4", &["-c:v", "mpeg4", "-g", "50", "-bf", "2"]),
    ("mpeg2.mkv", &["-c:v", "mpeg2video", "-g", "15", "-bf", "2"]),
    (
        "uneven.mkv",
        &[
            "-vf",
            "select='mod(n,7)*mod(n,3)'",
            "-fps_mode",
            "passthrough",
            "-c:v",
            "libx264",
            "-g",
            "25",
        ],
    ),
];

#[test]
fn several_decoders_give_the_frames_of_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, options) in CASES {
        let input = clip(folder.path(), name, options);
        for range in [
            &[][..],
            &["--start", "3.21", "--duration", "5.3"],
            &["--start", "90f", "--frames", "70"],
        ] {
            let (expected, said_of_one) = frames(&input, range);
            for count in ["2", "5"] {
                // With room for many frames, and for a few.
                for memory in ["1G", "1K"] {
                    if memory == "1K" && count == "5" && !is_whole_matrix() {
                        continue;
                    }
                    let several = [
                        "--decoder",
                        "cpu",
                        "--decoders",
                        count,
                        "--decoder-memory",
                        memory,
                    ];
                    let (found, said) = frames(&input, &[range, &several].concat());
                    assert_eq!(found, expected, "{name} {range:?} {several:?}");
                    assert_eq!(warnings(&said), warnings(&said_of_one), "{name} {several:?}");
                    assert!(!said.contains("took over"), "{name} {several:?}: {said}");
                    let are_at_work = memory == "1G" && name != "open.mkv";
                    let counted = said.contains("decoders on the CPU");
                    assert_eq!(counted, are_at_work, "{name} {several:?}: {said}");
                }
            }
        }
    }
}

#[test]
fn damage_is_left_to_one_decoder() {
    let folder = tempfile::tempdir().unwrap();
    let whole = clip(folder.path(), "whole.mp4", CASES[0].1);
    let bytes = fs::read(&whole).unwrap();
    // The index in front, so that a file that was cut off still opens.
    let front = folder.path().join("front.mp4");
    ffmpeg(&[
        "-i",
        whole.to_str().unwrap(),
        "-c",
        "copy",
        "-movflags",
        "+faststart",
        front.to_str().unwrap(),
    ]);
    let short = folder.path().join("short.mp4");
    let bytes_in_front = fs::read(&front).unwrap();
    fs::write(&short, &bytes_in_front[..bytes_in_front.len() * 2 / 3]).unwrap();
    // Three packets of AVI are lost, and those behind them come too early.
    let holed = folder.path().join("holed.avi");
    let options = ["-c:v", "mpeg4", "-bf", "0", "-g", "60", "-q:v", "5"];
    let mut chunks = fs::read(clip(folder.path(), "whole.avi", &options)).unwrap();
    let starts: Vec<usize> = (0..chunks.len() - 4)
        .filter(|&at| &chunks[at..at + 4] == b"00dc")
        .collect();
    // Half of these are in the index.
    let at = starts.len() / 4;
    chunks[starts[at] - 8..starts[at + 2] + 8].fill(0);
    fs::write(&holed, chunks).unwrap();
    let broken = folder.path().join("broken.mp4");
    let mut damaged = bytes;
    let middle = damaged.len() / 2;
    damaged[middle..middle + 3000].fill(0x55);
    fs::write(&broken, damaged).unwrap();
    for input in [short, broken, holed] {
        // With several threads FFmpeg marks now one frame more, now one less.
        let threads = ["--decoder-threads", "1"];
        let (expected, said_of_one) = frames(&input, &threads);
        assert!(!warnings(&said_of_one).is_empty(), "{said_of_one}");
        let several = ["--decoder", "cpu", "--decoders", "4"];
        let (found, said) = frames(&input, &[&several[..], &threads].concat());
        assert_eq!(found, expected, "{input:?}");
        assert!(said.contains("took over"), "{said}");
        assert_eq!(warnings(&said), warnings(&said_of_one), "{said}");
        let strict = [
            "filter",
            input.to_str().unwrap(),
            "null:",
            "--filter",
            "identity",
            "--strict",
        ];
        let strict = framepipe(&[&strict[..], &["--decoder", "cpu", "--decoders", "4"]].concat());
        let done = { strict }.output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{said_of_one}");
    }
}

#[test]
fn what_cannot_be_read_by_several_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let stream = clip(folder.path(), "stream.ts", &["-c:v", "libx264", "-g", "50"]);
    let jpegs = clip(folder.path(), "jpegs.mkv", &["-c:v", "mjpeg"]);
    let run = |input: &Path, options: &[&str]| {
        let run = [
            "filter",
            input.to_str().unwrap(),
            "null:",
            "--filter",
            "identity",
            "--engine",
            "none",
        ];
        framepipe(&[&run[..], &["--decoder", "nvdec"], options].concat())
    };
    // Without a card the option is an error, whatever the file.
    for options in [&[][..], &["-q", "--strict"], &["--dry-run"]] {
        let done = { run(&jpegs, options) }
            .env("CUDA_VISIBLE_DEVICES", "")
            .output()
            .unwrap();
        let words = "error: --decoder nvdec needs a card, which is not available: there is no";
        assert!(said(&done).starts_with(words), "{options:?}: {}", said(&done));
        assert_eq!(done.status.code(), Some(1));
    }
    let done = run(&jpegs, &["--untrusted"]).output().unwrap();
    assert!(said(&done).contains("with --engine cuda only"), "{}", said(&done));
    assert_eq!(done.status.code(), Some(2));
    // With one the CPU decodes what the card cannot, and the summary says why.
    let Some(card) = stand_in() else { return };
    for (input, options, why) in [
        (
            &stream,
            &[][..],
            "decoded on the CPU: it is of a container (mpegts)",
        ),
        (&jpegs, &[], "no card decodes mjpeg to the bit"),
        (&jpegs, &["--strict"], "decoded on the CPU"),
    ] {
        let list = |name: &str| folder.path().join(name);
        let hashes = list("found.hashes");
        let name = hashes.to_str().unwrap();
        let mut command = run(
            input,
            &[&["--overwrite", "--frame-hashes", name], options].concat(),
        );
        let done = card.with(&mut command, &list("kernels")).output().unwrap();
        assert!(
            done.status.success() && said(&done).contains(why),
            "{}",
            said(&done)
        );
        let (one, _) = frames(input, &[]);
        assert_eq!(fs::read_to_string(&hashes).unwrap(), one, "{input:?}");
    }
}

#[test]
fn the_report_has_an_account_of_each_decoder() {
    let folder = tempfile::tempdir().unwrap();
    let input = clip(folder.path(), "closed.mp4", CASES[0].1);
    let report = folder.path().join("run.json");
    let several = ["--decoder", "cpu", "--decoders", "3", "--explain", "--report"];
    let (_, said) = frames(&input, &[&several[..], &[report.to_str().unwrap()]].concat());
    let json: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    let decoders = json["decoders"].as_array().unwrap();
    assert_eq!(decoders.len(), 3);
    let sum = |field: &str| decoders.iter().map(|d| d[field].as_f64().unwrap()).sum::<f64>();
    assert_eq!((sum("frames"), json["frames"].as_f64().unwrap()), (300.0, 300.0));
    assert!((sum("frame_share") - 1.0).abs() < 1e-9);
    let stage = &json["stages"][0];
    assert_eq!(
        (&stage["stage"], &stage["workers"]),
        (&"decode".into(), &3.into())
    );
    for field in ["busy_seconds", "input_wait_seconds", "output_wait_seconds"] {
        assert!(
            (sum(field) - stage[field].as_f64().unwrap()).abs() < 1e-6,
            "{field}: {json}"
        );
    }
    // A decoder is at one thing at a time.
    let wall = json["wall_seconds"].as_f64().unwrap();
    for decoder in decoders {
        let all = ["busy_seconds", "input_wait_seconds", "output_wait_seconds"];
        let seconds: f64 = all.iter().map(|field| decoder[field].as_f64().unwrap()).sum();
        assert!(decoder["place"] == "CPU" && seconds <= wall, "{json}");
        // One that came too late for a stretch has made no frame and has no latency.
        let count = decoder["latency"]["count"].as_u64().unwrap_or(0);
        assert_eq!(Some(count), decoder["frames"].as_u64(), "{json}");
    }
    assert!(said.contains("decode: 3 on CPU, each another stretch"), "{said}");
    for number in 1..=3 {
        assert!(
            said.contains(&format!("decode: decoder {number} (CPU) made ")),
            "{said}"
        );
    }
    let head = said
        .lines()
        .position(|line| line.starts_with("decoder  "))
        .unwrap();
    let rows: Vec<&str> = said.lines().skip(head + 1).take(3).collect();
    for (row, decoder) in rows.iter().zip(decoders) {
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(
            (cells[1], cells[2]),
            ("CPU", decoder["frames"].to_string().as_str()),
            "{said}"
        );
    }
    // One decoder is the stage itself.
    let (_, said) = frames(&input, &["--report", report.to_str().unwrap()]);
    let json: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    assert_eq!(json["decoders"], Value::Array(Vec::new()));
    assert!(!said.contains("decoder  "), "{said}");
}

#[test]
fn an_interrupt_ends_all_decoders() {
    let folder = tempfile::tempdir().unwrap();
    let input = clip(folder.path(), "closed.mp4", CASES[0].1);
    let mut run = framepipe(&["filter", input.to_str().unwrap(), "-", "--filter", "identity"]);
    run.args([
        "--decoder",
        "cpu",
        "--decoders",
        "5",
        "--on-interrupt",
        "discard",
        "-q",
    ]);
    // Nobody reads the output, so that everybody waits.
    let mut child = run.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    crate::common::send("INT", &child);
    for _ in 0..100 {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    child.kill().unwrap();
    panic!("it goes on");
}
