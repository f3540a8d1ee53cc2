//! Which engine `auto` takes, and a card that starts while the input is being opened.

use super::{LONGEST, PROGRAM, Runs};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The line of `--explain` about the choice.
fn choice(said: &str) -> &str {
    let line = said.lines().find(|line| line.contains("auto: "));
    line.unwrap_or_else(|| panic!("nothing is said of the choice: {said}"))
}

#[test]
fn short_runs_are_the_processors_and_start_no_driver() {
    let Some(runs) = Runs::new() else { return };
    let short = ["filter", "synthetic:64x48:gray:25:2", "null:", "--explain"];
    let filter = ["--filter", "gaussian:size=3"];
    // Written at the end of a process that has called the driver.
    let report = runs.folder.path().join("short.report");
    let settings = [("REPORT", report.to_str().unwrap())];
    let ended = runs.run(&[&short[..], &filter].concat(), &settings);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let line = choice(&ended.said);
    assert!(
        line.contains("auto: cpu, because a card saves nothing with 2 frames and takes 0.44 s to start"),
        "{line}"
    );
    assert!(line.contains("built-in figures"), "{line}");
    assert!(!report.exists());
    let ended = runs.run(&[&short[..], &filter, &["--engine", "cuda"]].concat(), &settings);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert!(report.exists());
}

#[test]
fn long_runs_and_options_of_the_cards_take_it() {
    let Some(runs) = Runs::new() else { return };
    let planned = |input: &str, more: &[&str]| {
        let mut arguments = vec!["filter", input, "null:", "--explain", "--dry-run"];
        arguments.extend(["--filter", "gaussian:size=31", "--algorithm", "direct"]);
        arguments.extend(more);
        let ended = runs.run(&arguments, &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        (
            choice(&ended.said).to_owned(),
            String::from_utf8(ended.out).unwrap(),
        )
    };
    // A mask of 961 taps takes any processor far longer than the link; two frames do not make up for a start.
    let long = "synthetic:320x180:gray:25:1000000000";
    let (line, plan) = planned(long, &[]);
    assert!(
        line.contains("auto: cuda, because a card saves ") && line.contains("with 1000000000 frames"),
        "{line}"
    );
    assert!(plan.contains("engine  cuda: "), "{plan}");
    let (line, plan) = planned(long, &["--frames", "1"]);
    assert!(
        line.contains("auto: cpu, because") && line.contains("with 1 frame "),
        "{line}"
    );
    assert!(plan.contains("engine  cpu: "), "{plan}");
    let (line, plan) = planned("synthetic:64x48:gray:25:2", &["--slots", "2"]);
    assert!(
        line.contains("auto: cuda, because --slots is an option of a card's"),
        "{line}"
    );
    assert!(plan.contains("2 slots"), "{plan}");
    let (line, _) = planned("synthetic:64x48:gray:25:0", &[]);
    assert!(
        line.contains("auto: cuda, because it is not known how many frames"),
        "{line}"
    );
    // A card that is not there is said to be missing, not weighed against its start.
    let arguments = [
        "filter",
        long,
        "null:",
        "--explain",
        "--dry-run",
        "--filter",
        "sharpen",
    ];
    let ended = runs.run(&arguments, &[("CARDS", "0")]);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert!(ended.said.contains("no CUDA: "), "{}", ended.said);
}

#[test]
fn what_decoding_costs_counts_and_a_range_is_no_whole_film() {
    let Some(runs) = Runs::new() else { return };
    let clip = runs.folder.path().join("clip.mp4");
    let clip = clip.to_str().unwrap();
    // About 2 MB of edges for each core, which takes it two seconds.
    let cores = std::thread::available_parallelism().unwrap();
    let made = format!("synthetic:640x360:yuv420p:25:{}", 12 * cores.get());
    let encoder = ["--encoder", "libx264", "--preset", "superfast", "--quality", "1"];
    let edges = ["--filter", "laplacian8", "--engine", "cpu"];
    let ended = runs.run(&[&["filter", &made, clip][..], &edges, &encoder].concat(), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert!(fs::metadata(clip).unwrap().len() > 1_500_000 * cores.get() as u64);
    let explained = |more: &[&str]| {
        let plain = [
            "filter",
            clip,
            "null:",
            "--explain",
            "--dry-run",
            "--filter",
            "soft",
        ];
        let ended = runs.run(&[&plain[..], more].concat(), &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        ended.said
    };
    // The stand-in has no decoders, which is known once the driver has started.
    let said = explained(&[]);
    let whole = "decode: on the CPU, because the ";
    assert!(said.contains(whole) && !said.contains("by decoding"), "{said}");
    let said = explained(&["--frames", "1"]);
    let part = "decode: on the CPU, because a card saves nothing with 1 frame";
    assert!(said.contains(part), "{said}");
    assert!(
        choice(&said).contains("auto: cpu, because a card saves nothing with 1 frame"),
        "{said}"
    );
    assert!(!explained(&["--decoder", "cpu"]).contains("decode: "));
}

#[test]
fn a_card_starts_while_the_input_is_being_opened() {
    let Some(runs) = Runs::new() else { return };
    let folder = runs.folder.path();
    let (pipe, output) = (folder.join("late.y4m"), folder.join("out.y4m"));
    for (engine, starts) in [("cuda", true), ("cpu", false)] {
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let mut command = Command::new(PROGRAM);
        command.arg("filter").arg(&pipe).arg(&output);
        command.args(["--filter", "identity", "--engine", engine, "--overwrite"]);
        runs.stand_in.with(&mut command, &folder.join("kernels"));
        let child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let maps = format!("/proc/{}/maps", child.id());
        let is_loaded = || fs::read_to_string(&maps).unwrap().contains("/libnvrtc.so");
        let began = Instant::now();
        // Nobody has written to the pipe, so that the input is not open yet.
        let longest = if starts { LONGEST } else { Duration::from_secs(2) };
        while !is_loaded() && began.elapsed() < longest {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(is_loaded(), starts, "{engine}");
        let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        writer
            .write_all(b"YUV4MPEG2 W4 H2 F25:1 Cmono\nFRAME\n01234567")
            .unwrap();
        drop(writer);
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(fs::read(&output).unwrap().ends_with(b"FRAME\n01234567"));
        fs::remove_file(&pipe).unwrap();
    }
}

#[test]
fn errors_of_a_start_beside_the_opening_are_as_they_were() {
    let Some(runs) = Runs::new() else { return };
    let output = runs.folder.path().join("out.y4m");
    let output = output.to_str().unwrap();
    let filtered = |name: &str, input: &str, settings: &[(&str, &str)]| {
        let arguments = ["filter", input, output, "--filter", "sharpen", "--engine", "cuda"];
        let (ended, report) = runs.reported(name, &arguments, settings);
        assert_eq!(ended.code, Some(1), "{}", ended.said);
        let errors = ended
            .said
            .lines()
            .filter(|line| line.starts_with("error: "))
            .count();
        assert_eq!(errors, 1, "{}", ended.said);
        assert!(!fs::exists(output).unwrap());
        assert!(report.left.values().all(|&count| count == 0), "{:?}", report.left);
        ended.said
    };
    let clip = "synthetic:64x48:gray:25:3";
    let cards = filtered("none", clip, &[("CARDS", "0")]);
    assert!(cards.contains("finds no CUDA device"), "{cards}");
    let context = filtered("context", clip, &[("FAIL", "cuDevicePrimaryCtxRetain:1:2")]);
    assert!(
        context.contains("making a context on the CUDA device"),
        "{context}"
    );
    // What is wrong with the input is reported though the card has started, or has not.
    for settings in [&[][..], &[("CARDS", "0")]] {
        let missing = filtered("missing", "there/is/none.y4m", settings);
        assert!(
            missing.contains("there/is/none.y4m") && !missing.contains("CUDA"),
            "{missing}"
        );
    }
}
