//! The CUDA engine on a stand-in for a card (tests/standin/README.md): the reference's bits in every order
//! that streams and threads allow, one sentence whatever call fails, and proof that faults are found.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "standin/encoders.rs"]
mod encoders;
mod standin;
#[path = "standin/start.rs"]
mod start;

use common::is_whole_matrix;
use standin::{StandIn, stand_in};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_framepipe");

/// A child that has not ended by then hangs.
const LONGEST: Duration = Duration::from_secs(480);

/// Runs of the program on the stand-in, with a folder of their own for kernels, outputs and reports.
struct Runs {
    stand_in: &'static StandIn,
    folder: TempDir,
}

/// What became of a run.
struct Ended {
    code: Option<i32>,
    out: Vec<u8>,
    said: String,
}

/// What the stand-in's report tells.
#[derive(Default)]
struct Report {
    calls: BTreeMap<String, u32>,
    left: BTreeMap<String, u64>,
    /// Bytes that were copied, by where they went.
    moved: BTreeMap<String, u64>,
    complaints: Vec<String>,
}

impl Runs {
    /// `None` where there is no stand-in.
    fn new() -> Option<Runs> {
        Some(Runs {
            stand_in: stand_in()?,
            folder: tempfile::tempdir().unwrap(),
        })
    }

    fn run(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Ended {
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        for (name, value) in settings {
            command.env(format!("FRAMEPIPE_STANDIN_{name}"), value);
        }
        self.stand_in
            .with(&mut command, &self.folder.path().join("kernels"));
        ended(command)
    }

    /// `run`, and the stand-in's report of it.
    fn reported(&self, name: &str, arguments: &[&str], settings: &[(&str, &str)]) -> (Ended, Report) {
        let path = self.folder.path().join(format!("{name}.report"));
        let mut settings = settings.to_vec();
        settings.push(("REPORT", path.to_str().unwrap()));
        let ended = self.run(arguments, &settings);
        (ended, Report::read(&path))
    }
}

fn ended(mut command: Command) -> Ended {
    command.env_remove("RUST_LOG").stdin(Stdio::null());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (number, began) = (child.id(), Instant::now());
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    // A child that hangs is killed, so that the test ends with what it said.
    let watch = std::thread::spawn(move || {
        if waiting.recv_timeout(LONGEST).is_err() {
            let _ = Command::new("kill").arg(number.to_string()).status();
        }
    });
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let _ = done.send(());
    watch.join().unwrap();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert!(began.elapsed() < LONGEST, "framepipe hangs: {said}");
    Ended {
        code: status.code(),
        out: stdout,
        said,
    }
}

impl Report {
    fn read(path: &Path) -> Report {
        let mut report = Report::default();
        for line in fs::read_to_string(path).unwrap().lines() {
            let (kind, rest) = line.split_once(' ').unwrap();
            match (kind, rest.split_once(' ')) {
                ("call", Some((name, count))) => {
                    report.calls.insert(name.to_owned(), count.parse().unwrap());
                }
                ("left", Some((what, count))) => {
                    report.left.insert(what.to_owned(), count.parse().unwrap());
                }
                ("moved", Some((to, bytes))) => {
                    report.moved.insert(to.to_owned(), bytes.parse().unwrap());
                }
                _ => report.complaints.push(rest.to_owned()),
            }
        }
        report
    }

    /// Everything was given back, and nothing done that a card would not stand.
    fn is_clean(&self) -> bool {
        self.complaints.is_empty() && !self.left.is_empty() && self.left.values().all(|&count| count == 0)
    }
}

#[test]
fn devices_tells_of_the_cards() {
    let Some(runs) = Runs::new() else { return };
    let settings = [("CARDS", "2"), ("CAPABILITY", "80"), ("MEMORY", "268435456")];
    let listing = runs.run(&["devices"], &settings);
    let text = String::from_utf8(listing.out).unwrap();
    assert_eq!(listing.code, Some(0), "{}", listing.said);
    assert_eq!(text.matches("stand-in for a card").count(), 2, "{text}");
    assert!(
        text.contains("compute capability 8.0") && text.contains("memory 256 MiB"),
        "{text}"
    );
    let none = runs.run(&["verify", "--engine", "cuda"], &[("CARDS", "0")]);
    assert_eq!(none.code, Some(1), "{}", none.said);
    assert!(none.said.contains("no CUDA device"), "{}", none.said);
}

/// Orders in which the card's threads and streams take turns.
const SEEDS: [&str; 8] = ["0", "3", "5", "6", "1", "2", "4", "7"];

/// The first `few` of them; with FRAMEPIPE_WHOLE_MATRIX=1 all.
fn some<'a>(all: &'a [&'a str], few: usize) -> &'a [&'a str] {
    if is_whole_matrix() { all } else { &all[..few] }
}

/// Every variant and algorithm, pixel format, border and odd size.
#[test]
fn every_variant_gives_the_references_bits() {
    let Some(runs) = Runs::new() else { return };
    let verify = ["verify", "--engine", "cuda", "--frames", "14"];
    for seed in some(&["2", "7", "1", "4"], 1) {
        let (ended, report) = runs.reported(seed, &verify, &[("SEED", seed)]);
        assert_eq!(ended.code, Some(0), "seed {seed}: {}", ended.said);
        let text = String::from_utf8(ended.out).unwrap();
        assert!(text.contains("every sample equals the reference's"), "{text}");
        assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
    }
}

#[test]
fn every_generation_of_cards_gives_the_references_bits() {
    let Some(runs) = Runs::new() else { return };
    for capability in some(&["75", "120", "80", "89", "130"], 2) {
        let ended = runs.run(
            &["verify", "--engine", "cuda", "--quick"],
            &[("CAPABILITY", capability)],
        );
        assert_eq!(ended.code, Some(0), "{capability}: {}", ended.said);
    }
    let ended = runs.run(
        &["verify", "--engine", "cuda", "--quick"],
        &[("CAPABILITY", "50")],
    );
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    assert!(ended.said.contains("compute capability 5.0"), "{}", ended.said);
}

/// A ring of slots whose pictures are used several times. With one step the result lies in the slot's second
/// picture, with two in its first, so that uploads have other things to wait for.
const RINGS: [&[&str]; 2] = [
    &["gaussian:size=5:sigma=1.1"],
    &["gaussian:size=5:sigma=1.1", "sharpen"],
];

fn ring<'a>(filters: &[&'a str], engine: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["filter", "synthetic:200x120:rgb24:30:24", "-", "--engine", engine];
    arguments.extend(filters.iter().flat_map(|&filter| ["--filter", filter]));
    arguments
}

#[test]
fn streams_in_any_order_give_the_same_frames() {
    let Some(runs) = Runs::new() else { return };
    for filters in RINGS {
        let expected = runs.run(&ring(filters, "cpu"), &[]);
        assert!(
            expected.code == Some(0) && expected.out.len() > 24 * 200 * 120 * 3,
            "{}",
            expected.said
        );
        for seed in some(&SEEDS, 2) {
            let got = runs.run(&ring(filters, "cuda"), &[("SEED", seed)]);
            assert_eq!(got.code, Some(0), "seed {seed}: {}", got.said);
            assert!(got.out == expected.out, "seed {seed}: the frames differ");
        }
    }
}

/// Several windows a frame, whose sizes change, and frames between that have none.
#[test]
fn regions_in_any_order_give_the_same_frames() {
    let Some(runs) = Runs::new() else { return };
    let run = |engine: &'static str| {
        let part = [
            "--region",
            "0f..14f 40x30-10+5 -> 70x60+150+80",
            "--region",
            "6f..14f 33x9+120+100",
            "--region",
            "18f.. 9x9+0+111",
        ];
        [&ring(RINGS[1], engine)[..], &part].concat()
    };
    let expected = runs.run(&run("cpu"), &[]);
    assert_eq!(expected.code, Some(0), "{}", expected.said);
    for seed in some(&SEEDS, 2) {
        let (got, report) = runs.reported("regions", &run("cuda"), &[("SEED", seed)]);
        assert_eq!(got.code, Some(0), "seed {seed}: {}", got.said);
        assert!(got.out == expected.out, "seed {seed}: the frames differ");
        assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
    }
}

/// Seeds with which the card is behind the host. How far depends on the host's threads too, so that one of
/// them may let a mistake pass.
const LAZY: [&str; 6] = ["3", "2", "0", "7", "4", "6"];

/// The engine's streams are numbered as it makes them: 0 uploads, 1 kernels, 2 downloads. No wait between
/// them is there for nothing.
#[test]
fn each_wait_that_is_left_out_shows() {
    let Some(runs) = Runs::new() else { return };
    let waits = [
        ("1:0", "kernels for their upload", &[0, 1][..]),
        ("2:1", "a download for its kernels", &[0, 1]),
        (
            "0:1",
            "an upload for the kernels that read what it overwrites",
            &[0],
        ),
        ("0:2", "an upload for the download of what it overwrites", &[1]),
        ("1:2", "kernels for the download of what they overwrite", &[0]),
    ];
    let expected = RINGS.map(|filters| runs.run(&ring(filters, "cpu"), &[]).out);
    for (wait, what, affected) in waits {
        for &index in affected {
            let shows = |seed: &&str| {
                let settings = [("IGNORE_WAIT", wait), ("SEED", seed)];
                let got = runs.run(&ring(RINGS[index], "cuda"), &settings);
                got.code != Some(0) || got.out != expected[index]
            };
            assert!(
                LAZY.iter().any(shows),
                "nobody noticed without the wait of {what}"
            );
        }
    }
}

/// Copies of weights from ordinary memory, and fills, may still be in flight when their call returns.
#[test]
fn kernels_that_begin_before_their_weights_are_there_show() {
    let Some(runs) = Runs::new() else { return };
    let arguments = [&ring(RINGS[0], "cuda")[..], &["--memory", "global"]].concat();
    let expected = runs.run(&ring(RINGS[0], "cpu"), &[]).out;
    let shows = |seed: &&str| {
        let whole = runs.run(&arguments, &[("SEED", seed)]);
        assert!(whole.code == Some(0) && whole.out == expected, "{}", whole.said);
        let hasty = runs.run(&arguments, &[("SEED", seed), ("IGNORE", "cuCtxSynchronize")]);
        hasty.out != expected
    };
    assert!(
        LAZY.iter().any(shows),
        "nobody noticed that the weights were not waited for"
    );
}

/// How a wrong kernel shows.
#[derive(Debug, PartialEq)]
enum Shown {
    OtherBits,
    /// The driver's error.
    As(&'static str),
}

/// Kernels that are wrong, each in its own way: what is altered in their texts, the variant that is run, and
/// the compute capability of the card (from 9.0 on tensor cores have whole tiles copied). On tensor cores the
/// first two filters share a launch, and the third one's follows it.
const WRONG: [(&str, &str, &str, Shown); 23] = [
    ("__syncthreads();=>;", "tensor", "90", Shown::As("LAUNCH_FAILED")),
    (
        "wait_for_earlier_launches();=>;",
        "tensor",
        "90",
        Shown::As("LAUNCH_FAILED"),
    ),
    (
        "if (!tiles.is_ready) {=>if (false) {",
        "tensor",
        "90",
        Shown::OtherBits,
    ),
    ("loader.wait(slot, odd);=>;", "tensor", "90", Shown::OtherBits),
    (
        "(tile.x - LEFT) / 8=>(tile.x - LEFT) / 8 + 1",
        "tensor",
        "90",
        Shown::OtherBits,
    ),
    (
        "begin_arrivals(arrivals[0]);=>;",
        "tensor",
        "90",
        Shown::As("LAUNCH_FAILED"),
    ),
    (
        "ALIGNED_PITCH * ROWS=>ALIGNED_PITCH * ROWS + 16",
        "tensor",
        "90",
        Shown::As("LAUNCH_FAILED"),
    ),
    // The first two masks below share a launch: what is between them has a border of its own.
    (
        "if (fill_middle(middle, plane, tile))=>if (false)",
        "tensor",
        "90",
        Shown::OtherBits,
    ),
    (
        "__syncthreads();\n        if (fill_middle(=>if (fill_middle(",
        "tensor",
        "90",
        Shown::OtherBits,
    ),
    (
        "MIDDLE_LEFT - NEXT_START + across=>MIDDLE_LEFT - NEXT_START + 4 + across",
        "tensor",
        "80",
        Shown::OtherBits,
    ),
    ("__syncthreads();=>;", "shared", "90", Shown::OtherBits),
    ("__syncthreads();=>;", "tensor", "80", Shown::OtherBits),
    ("wait_for_copies();=>;", "tensor", "80", Shown::OtherBits),
    ("end_of_copies();=>;", "tensor", "80", Shown::OtherBits),
    ("? 0 : n - 1;=>? 0 : n - 2;", "constant", "90", Shown::OtherBits),
    (
        "(float)sample + 0.5f=>(float)sample + 1.5f",
        "texture",
        "90",
        Shown::OtherBits,
    ),
    (
        "(plane.source + (i64)y=>(plane.source + (i64)(y + 9000)",
        "global",
        "90",
        Shown::As("ILLEGAL_ADDRESS"),
    ),
    (
        "(Sample *)(plane.result + (i64)y=>(Sample *)(plane.result + (i64)(y + 9000)",
        "constant",
        "90",
        Shown::As("ILLEGAL_ADDRESS"),
    ),
    (
        "pack_4(values[4 * k], values[4 * k + 1]=>pack_4(values[4 * k + 1], values[4 * k]",
        "tensor",
        "80",
        Shown::OtherBits,
    ),
    (
        "__syncthreads();=>if (threadIdx.x) __syncthreads();",
        "shared",
        "90",
        Shown::As("LAUNCH_FAILED"),
    ),
    (
        "__shfl_xor_sync(=>threadIdx.x % 4 == 3 ? 0 : __shfl_xor_sync(",
        "tensor",
        "80",
        Shown::As("LAUNCH_FAILED"),
    ),
    (
        "*(uint2 *)(out + 4 * k) = =>*(uint2 *)(out + 4 * k + 4) = ",
        "tensor",
        "80",
        Shown::As("MISALIGNED_ADDRESS"),
    ),
    (
        "sum += (Sum)=>sum += 1 << 30, sum += (Sum)",
        "constant",
        "90",
        Shown::As("MISALIGNED_ADDRESS"),
    ),
];

#[test]
fn each_kernel_that_is_wrong_shows() {
    let Some(runs) = Runs::new() else { return };
    let arguments = [
        "filter",
        "synthetic:208x120:gray:30:2",
        "-",
        "--filter",
        "box:size=3",
        "--filter",
        "sharpen",
        "--filter",
        "sharpen",
    ];
    let run = |more: &[&str], settings: &[(&str, &str)]| runs.run(&[&arguments, more].concat(), settings);
    let expected = run(&["--engine", "cpu"], &[]).out;
    for (alter, memory, capability, shown) in WRONG {
        // Kernels that framepipe has kept are not compiled again.
        let _ = fs::remove_dir_all(runs.folder.path().join("kernels"));
        let ended = run(
            &["--engine", "cuda", "--memory", memory],
            &[("ALTER", alter), ("CAPABILITY", capability)],
        );
        let as_it_should = match shown {
            Shown::OtherBits => ended.code == Some(0) && ended.out != expected,
            Shown::As(error) => ended.code == Some(1) && ended.said.contains(error),
        };
        assert!(
            as_it_should,
            "{memory} of {capability} with {alter}: {:?} {}",
            ended.code, ended.said
        );
    }
}

/// A picture of cells of 3x3 samples of two bytes: two rows of cells, with those beside the centre by which
/// `roberts` makes b^2 of it. Of b^2 and b it makes the root of b^4 + b^2, just below (b^2 + 1/2)^2, and of
/// b^2 - 1 and b that of a number just above (b^2 - 1/2)^2.
fn edges(sides: &[u16]) -> Vec<u8> {
    let width = 3 * sides.len();
    let mut samples = vec![0; 6 * width];
    for (cell, &side) in sides.iter().enumerate() {
        for (row, across) in [side * side, side * side - 1].into_iter().enumerate() {
            let corner = 3 * (row * width + cell);
            samples[corner] = across;
            samples[corner + 1] = side;
        }
    }
    samples.into_iter().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn roots_are_exact_next_to_where_results_change() {
    let Some(runs) = Runs::new() else { return };
    let [input, output] = ["edges", "roots"].map(|name| runs.folder.path().join(name));
    for (format, most) in [("gray12le", 63), ("gray16le", 255)] {
        let sides: Vec<u16> = (1..=most).collect();
        let width = 3 * sides.len();
        fs::write(&input, edges(&sides)).unwrap();
        let source = format!("raw:{width}x6:{format}:1:{}", input.display());
        let result = format!("raw:{}", output.display());
        let are_exact = |memory: &str, settings: &[(&str, &str)]| {
            let _ = fs::remove_dir_all(runs.folder.path().join("kernels"));
            let filter = ["filter", &source, &result, "--overwrite", "--filter", "roberts"];
            let engine = ["--engine", "cuda", "--memory", memory];
            let ended = runs.run(&[&filter[..], &engine[..]].concat(), settings);
            assert_eq!(ended.code, Some(0), "{format} {memory}: {}", ended.said);
            let made = fs::read(&output).unwrap();
            let centre = |row: usize, cell: usize| 2 * ((3 * row + 1) * width + 3 * cell + 1);
            let is = |at: usize, side: u16| made[at..at + 2] == (side * side).to_le_bytes();
            let mut cells = sides.iter().enumerate();
            cells.all(|(cell, &side)| is(centre(0, cell), side) && is(centre(1, cell), side))
        };
        for memory in ["tensor", "constant"] {
            assert!(are_exact(memory, &[]), "{format} {memory}");
            let uncorrected = (
                "ALTER",
                "return near + (i32)((before=>return near + 0 * (i32)((before",
            );
            assert!(!are_exact(memory, &[uncorrected]), "{format} {memory}");
        }
    }
}

/// Short runs that together make every call of the engine's: to OUT, which is replaced by a file's name.
const SHORT: [&[&str]; 3] = [
    &[
        "filter",
        "synthetic:96x64:rgb24:30:9",
        "OUT",
        "--filter",
        "gaussian:size=9:sigma=2",
        "--engine",
        "cuda",
    ],
    &[
        "filter",
        "synthetic:67x45:nv12:30:5",
        "OUT",
        "--filter",
        "sharpen",
        "--planes",
        "gray",
        "--engine",
        "cuda",
        "--memory",
        "texture",
    ],
    &[
        "filter",
        "synthetic:67x45:yuv420p10le:30:5",
        "OUT",
        "--filter",
        "soft",
        "--planes",
        "gray",
        "--engine",
        "cuda",
        "--memory",
        "global",
        "--no-overlap=pageable",
    ],
];

/// Calls that give something back. What fails there is nobody's loss.
fn gives_back(call: &str) -> bool {
    ["Destroy", "Free", "Unload", "Release"]
        .iter()
        .any(|word| call.contains(word))
}

/// One failing call: the first, one in the middle or the last of its kind, alone or with all that follow.
struct Fault {
    run: usize,
    call: String,
    number: u32,
    setting: String,
}

#[test]
fn whatever_call_fails_the_run_ends_with_one_sentence_and_no_file() {
    let Some(runs) = Runs::new() else { return };
    let runs = &runs;
    let mut met = BTreeSet::new();
    let mut faults = Vec::new();
    for (run, arguments) in SHORT.iter().enumerate() {
        let file = runs.folder.path().join(format!("whole-{run}.y4m"));
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|&a| if a == "OUT" { file.to_str().unwrap() } else { a })
            .collect();
        let (ended, report) = runs.reported(&format!("whole-{run}"), &arguments, &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
        for (call, count) in report.calls {
            if run > 0 && met.contains(&call) {
                continue;
            }
            met.insert(call.clone());
            for number in BTreeSet::from([1, count / 2 + 1, count]) {
                for setting in [format!("{call}:{number}:999"), format!("{call}:{number}:719:on")] {
                    faults.push(Fault {
                        run,
                        call: call.clone(),
                        number,
                        setting,
                    });
                }
            }
            if call.contains("Alloc") {
                faults.push(Fault {
                    run,
                    setting: format!("{call}:1:2"),
                    call,
                    number: 1,
                });
            }
        }
    }
    assert!(met.len() > 35, "{met:?}");
    // Side by side, since a run waits more than it works.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(fault) = faults.get(index) else { break };
                    if let Some(wrong) = what_is_wrong(runs, index, fault) {
                        found
                            .lock()
                            .unwrap()
                            .push(format!("{}, run {}: {wrong}", fault.setting, fault.run));
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(
        found.is_empty(),
        "{} of {} faults:\n{}",
        found.len(),
        faults.len(),
        found.join("\n")
    );
}

fn what_is_wrong(runs: &Runs, index: usize, fault: &Fault) -> Option<String> {
    let folder = runs.folder.path().join(format!("fault-{index}"));
    fs::create_dir(&folder).unwrap();
    let file = folder.join("out.y4m");
    let arguments: Vec<&str> = SHORT[fault.run]
        .iter()
        .map(|&a| if a == "OUT" { file.to_str().unwrap() } else { a })
        .collect();
    let seed = index.to_string();
    let settings = [("FAIL", fault.setting.as_str()), ("SEED", &seed)];
    let (ended, report) = runs.reported(&format!("fault-{index}"), &arguments, &settings);
    let names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let whole = fs::read(runs.folder.path().join(format!("whole-{}.y4m", fault.run))).unwrap();
    let Ended { code, said, .. } = &ended;
    if said.contains("panicked") || said.contains("RUST_BACKTRACE") {
        return Some(format!("it panicked: {said}"));
    }
    if !report.complaints.is_empty() {
        return Some(format!("{:?}", report.complaints));
    }
    match code {
        Some(0) if fs::read(&file).ok().as_ref() != Some(&whole) => {
            return Some(format!("it says that all is well, but it is not: {said}"));
        }
        Some(0) => {
            let late =
                fault.number > 1 && (fault.call.starts_with("cuCtx") || fault.call == "cuStreamSynchronize");
            let memory_is_short = fault.setting.ends_with(":2");
            // In another order of things some calls are made less often.
            let was_met = report.calls.get(&fault.call) >= Some(&fault.number);
            if was_met && !gives_back(&fault.call) && !late && !memory_is_short {
                return Some("it goes on as if nothing was".to_owned());
            }
        }
        Some(1) => {
            let errors = said.lines().filter(|line| line.starts_with("error: ")).count();
            if errors != 1 {
                return Some(format!("{errors} errors are reported: {said}"));
            }
            if !names.is_empty() {
                return Some(format!("it left {names:?}"));
            }
        }
        _ => return Some(format!("exit code {code:?}: {said}")),
    }
    // Where the context cannot be entered nothing can be given back.
    let dead = fault.call == "cuCtxSetCurrent" || fault.setting.ends_with(":on");
    let left: Vec<_> = report.left.iter().filter(|(_, count)| **count != 0).collect();
    (!dead && !left.is_empty()).then(|| format!("it did not give back {left:?}"))
}

/// Three inputs, whose outputs go into the folder `out`.
fn several<'a>(names: &'a [String; 3], out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["filter"];
    arguments.extend(names.iter().map(String::as_str));
    arguments.extend([out, "--filter", "box:size=5", "--filter", "sharpen", "-q"]);
    arguments.extend(more);
    arguments
}

#[test]
fn one_engine_serves_several_inputs() {
    let Some(runs) = Runs::new() else { return };
    let name = |name: &str| runs.folder.path().join(name).to_str().unwrap().to_owned();
    let names = ["a.y4m", "b.y4m", "c.y4m"].map(name);
    for (file, size) in names.iter().zip(["67x45", "71x47", "67x45"]) {
        let clip = format!("synthetic:{size}:yuv420p:25:7");
        let made = runs.run(
            &[
                "filter", &clip, file, "-q", "--filter", "identity", "--engine", "none",
            ],
            &[],
        );
        assert_eq!(made.code, Some(0), "{}", made.said);
    }
    let (right, out, beside) = (name("right/"), name("out/"), name("beside/"));
    let plain = runs.run(&several(&names, &right, &["--engine", "reference"]), &[]);
    assert_eq!(plain.code, Some(0), "{}", plain.said);
    let cuda = ["--engine", "cuda"];
    let (ended, report) = runs.reported("several", &several(&names, &out, &cuda), &[("SEED", "7")]);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let side_by_side = [&cuda[..], &["--at-once", "2"]].concat();
    let (ended, others) = runs.reported(
        "beside",
        &several(&names, &beside, &side_by_side),
        &[("SEED", "6")],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    for file in ["a.y4m", "b.y4m", "c.y4m"] {
        let bytes = |folder: &str| fs::read(format!("{folder}{file}")).unwrap();
        assert!(
            bytes(&out) == bytes(&right) && bytes(&beside) == bytes(&right),
            "{file}"
        );
    }
    // One context, and the kernels of one run: the sizes are near enough to have the same.
    let alone = name("alone.y4m");
    let mut single = vec![
        "filter",
        &names[0],
        &alone,
        "--filter",
        "box:size=5",
        "--filter",
        "sharpen",
        "-q",
    ];
    single.extend(cuda);
    let (ended, of_one) = runs.reported("alone", &single, &[("SEED", "7")]);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let count = |report: &Report, part: &str| -> u32 {
        let calls = report.calls.iter().filter(|(call, _)| call.contains(part));
        calls.map(|(_, count)| count).sum()
    };
    for part in ["PrimaryCtxRetain", "ModuleLoad", "StreamCreate"] {
        assert!(count(&of_one, part) > 0, "{part}");
        assert_eq!(count(&report, part), count(&of_one, part), "{part}");
    }
    for report in [report, others, of_one] {
        assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
    }
}

#[test]
fn a_card_whose_memory_is_short_is_reported_with_what_is_needed() {
    let Some(runs) = Runs::new() else { return };
    let arguments = [
        "filter",
        "synthetic:1280x720:rgb24:30:4",
        "null:",
        "--filter",
        "box:size=3",
        "--engine",
        "cuda",
        "-v",
    ];
    // A picture is 2.6 MiB, and a slot has two.
    let (fewer, report) = runs.reported("fewer", &arguments, &[("MEMORY", "12000000")]);
    assert_eq!(fewer.code, Some(0), "{}", fewer.said);
    assert!(fewer.said.contains("fewer slots"), "{}", fewer.said);
    assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
    let (none, report) = runs.reported("none", &arguments, &[("MEMORY", "4000000")]);
    assert_eq!(none.code, Some(1), "{}", none.said);
    assert!(
        none.said.contains("MiB are needed") && none.said.contains("are free"),
        "{}",
        none.said
    );
    assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
}

#[test]
fn a_text_that_does_not_compile_is_reported_with_what_the_compiler_says() {
    let Some(runs) = Runs::new() else { return };
    let ended = runs.run(
        &["verify", "--engine", "cuda", "--quick"],
        &[("ALTER", "struct Plane {=>struct {")],
    );
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    assert!(
        ended.said.contains("with NVRTC") && ended.said.contains("common/plane.cuh"),
        "{}",
        ended.said
    );
}
