//! Several cards, on the stand-in for them: frames in turn and parts by card are those of one engine.

use super::standin::stand_in;
use super::{PathBuf, framepipe, said, single_run, text};
use std::process::{Command, Output};

/// Runs the program where so many cards are; `None` where there is no stand-in.
fn with_cards(cards: u32, kernels: &std::path::Path, words: &[&str]) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_framepipe"));
    command
        .args(words)
        .env("FRAMEPIPE_STANDIN_CARDS", cards.to_string());
    stand_in()?.with(&mut command, kernels);
    Some(command.output().unwrap())
}

#[test]
fn cards_in_turn_and_parts_by_card_give_the_frames_of_one_engine() {
    let folder = tempfile::tempdir().unwrap();
    let kernels = folder.path().join("kernels");
    let input = PathBuf::from("synthetic:48x32:yuv420p:25:17");
    let path = |name: &str| folder.path().join(name);
    let options = ["--filter", "sharpen", "--encoder", "ffv1"];
    let expected = single_run(
        &input,
        &path("one.mkv"),
        &[&options[..], &["--engine", "cpu"]].concat(),
    );
    let (three, list) = (path("three.mkv"), path("three.hashes"));
    let turns = [
        "filter",
        text(&input),
        text(&three),
        "--engine",
        "cuda",
        "--devices",
        "all",
    ];
    let words = [&turns[..], &options, &["--frame-hashes", text(&list)]].concat();
    let Some(done) = with_cards(3, &kernels, &words) else {
        eprintln!("SKIPPED: there is no stand-in for a card, so that several are not tested");
        return;
    };
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("3 in turn"), "{}", said(&done));
    let listed = std::fs::read_to_string(&list).unwrap();
    let hashes: Vec<&str> = listed
        .lines()
        .skip(1)
        .map(|row| row.rsplit(' ').next().unwrap())
        .collect();
    let wanted: Vec<&str> = expected.iter().map(|(_, hash)| hash.as_str()).collect();
    assert_eq!(hashes, wanted);
    // The same in parts, two at a time on each of two cards.
    let (joined, job) = (path("joined.mkv"), path("job"));
    let plan = ["plan", text(&input), text(&joined), text(&job), "--parts", "6"];
    let planned = framepipe(&[&plan[..], &options].concat());
    assert!(planned.status.success(), "{}", said(&planned));
    let run = ["run", text(&job), "--devices", "0,1", "--at-once", "2"];
    let done = with_cards(2, &kernels, &run).unwrap();
    assert!(done.status.success(), "{}", said(&done));
    let equal = framepipe(&["diff", text(&path("one.mkv")), text(&joined)]);
    assert!(equal.status.success(), "{}", said(&equal));
    let absent = with_cards(
        2,
        &kernels,
        &[
            "filter",
            text(&input),
            "null:",
            "--filter",
            "soft",
            "--devices",
            "0,2",
        ],
    );
    let absent = absent.unwrap();
    assert!(!absent.status.success());
    assert!(said(&absent).contains("there is no card 2"), "{}", said(&absent));
}

#[test]
fn a_part_that_no_card_can_make_is_not_tried_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let kernels = folder.path().join("kernels");
    let job = |name: &str, filter: &str| {
        let (output, job) = (
            folder.path().join(format!("{name}.mkv")),
            folder.path().join(format!("{name}.job")),
        );
        let input = "synthetic:48x32:gray16le:25:4";
        let plan = ["plan", input, text(&output), text(&job), "--parts", "1"];
        let planned = framepipe(&[&plan[..], &["--filter", filter, "--encoder", "ffv1"]].concat());
        assert!(planned.status.success(), "{}", said(&planned));
        job
    };
    let (soft, slopes) = (job("soft", "soft"), job("slopes", "sobel:bias=-600"));
    for (job, cards, code, reason) in [
        (&slopes, 1, 1, "too negative for gradient magnitudes"),
        // Another machine may have a card.
        (&soft, 0, 75, "no CUDA device"),
        (&soft, 1, 0, ""),
    ] {
        let words = ["part", text(job), "0", "--engine", "cuda"];
        let Some(done) = with_cards(cards, &kernels, &words) else {
            return;
        };
        assert_eq!(done.status.code(), Some(code), "{}", said(&done));
        assert!(said(&done).contains(reason), "{}", said(&done));
    }
}
