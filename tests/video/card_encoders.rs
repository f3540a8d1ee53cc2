//! NVIDIA's encoders: where there is a card that has one they encode, everywhere else one sentence says so
//! before anything is written.

use crate::common::{framepipe, names, probe, said};
use std::process::Command;

/// The encoders that this FFmpeg has, and what the sentence advises instead.
fn encoders() -> Vec<(&'static str, &'static str)> {
    let all = [
        ("h264_nvenc", "libx264"),
        ("hevc_nvenc", "libx265"),
        ("av1_nvenc", "libsvtav1"),
    ];
    let listed = Command::new("ffmpeg")
        .args(["-v", "error", "-encoders"])
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    all.into_iter()
        .filter(|(name, _)| listed.contains(name))
        .collect()
}

/// True if FFmpeg's own program encodes with it.
fn works(encoder: &str) -> bool {
    let source = [
        "-v",
        "quiet",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=256x256:duration=0.1",
    ];
    let sink = ["-pix_fmt", "yuv420p", "-c:v", encoder, "-f", "null", "-"];
    Command::new("ffmpeg")
        .args(source)
        .args(sink)
        .status()
        .unwrap()
        .success()
}

#[test]
fn a_missing_card_is_one_sentence_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let (video, report) = (folder.path().join("out.mkv"), folder.path().join("run.json"));
    for (encoder, instead) in encoders() {
        for (format, more) in [
            ("yuv420p", &[][..]),
            ("nv12", &[]),
            ("yuv420p10le", &["--report", report.to_str().unwrap()]),
            ("rgb24", &[]),
        ] {
            let input = format!("synthetic:256x256:{format}:25:10");
            let run = [
                "filter",
                &input,
                video.to_str().unwrap(),
                "--filter",
                "soft",
                "--overwrite",
            ];
            let done = framepipe(&[&run, more, &["--encoder", encoder]].concat())
                .output()
                .unwrap();
            let said = said(&done);
            if works(encoder) {
                assert!(done.status.success(), "{encoder} {format}: {said}");
                let facts = probe(&video, &["-count_frames", "-show_streams"]);
                assert_eq!(facts["streams"][0]["nb_read_frames"], "10", "{encoder} {format}");
                continue;
            }
            assert_eq!(done.status.code(), Some(1), "{encoder} {format}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            for part in [
                "error: ",
                "out.mkv: ",
                encoder,
                "(NVENC)",
                &format!("--encoder {instead}"),
            ] {
                assert!(said.contains(part), "{part}: {said}");
            }
            assert!(names(folder.path()).is_empty(), "{said}");
        }
    }
}

#[test]
fn other_names_take_an_encoder_that_works() {
    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("out.mkv");
    let run = [
        "filter",
        "synthetic:256x256:yuv420p:25:2",
        video.to_str().unwrap(),
        "--filter",
        "soft",
    ];
    for name in ["h264", "hevc", "av1"] {
        let done = framepipe(&[&run[..], &["--overwrite", "--encoder", name]].concat())
            .output()
            .unwrap();
        assert!(done.status.success(), "{name}: {}", said(&done));
    }
    // The short name of NVIDIA's own is not taken for another's.
    if let Some((encoder, _)) = encoders().first().filter(|(encoder, _)| !works(encoder)) {
        let done = framepipe(&[&run[..], &["--overwrite", "--encoder", "nvenc"]].concat())
            .output()
            .unwrap();
        assert!(said(&done).contains(encoder), "{}", said(&done));
        assert_eq!(done.status.code(), Some(1));
    }
}
