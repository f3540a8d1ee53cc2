//! Ctrl-C, and a supervisor's SIGTERM, in the middle of a comparison.

use super::{Folder, command};
use crate::common::{ffmpeg, names, send, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A comparison that takes longer than this to end, once it is asked to, hangs.
const QUICKLY: Duration = Duration::from_secs(30);

/// Two endless inputs that are equal.
const ENDLESS: [&str; 2] = ["synthetic:160x120:gray:25:0", "synthetic:160x120:gray:25:0"];

/// YUV4MPEG2 with a frame of 16x16 equal samples for each of these levels.
fn y4m(levels: &[u8]) -> Vec<u8> {
    let mut bytes = b"YUV4MPEG2 W16 H16 F25:1 Cmono\n".to_vec();
    for &level in levels {
        bytes.extend(b"FRAME\n");
        bytes.extend([level; 16 * 16]);
    }
    bytes
}

/// The outcome of a comparison that was asked to end.
fn ended(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > QUICKLY {
            child.kill().unwrap();
            panic!("framepipe diff goes on");
        }
        sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Waits until the program looks after signals, and then some frames long.
fn under_way(child: &Child) {
    let began = Instant::now();
    let status = format!("/proc/{}/status", child.id());
    let is_caught = || {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        // SIGINT is 2, and signals are counted from 1.
        u64::from_str_radix(caught.unwrap().trim(), 16).unwrap() & 2 != 0
    };
    while !is_caught() {
        assert!(began.elapsed() < QUICKLY, "no signal is looked after");
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(700));
}

/// The frames that an interrupted comparison says it took.
fn frames(message: &str) -> u64 {
    let mut lines = message.lines();
    let count = lines.find_map(|line| {
        line.strip_prefix("interrupted: ")?
            .strip_suffix(" frames compared")
    });
    count.unwrap_or_else(|| panic!("{message}")).parse().unwrap()
}

#[test]
fn an_interrupted_comparison_tells_what_was_found_so_far() {
    for json in [false, true] {
        let options: &[&str] = if json { &["--json"] } else { &[] };
        let child = command(&[&ENDLESS[..], options].concat()).spawn().unwrap();
        under_way(&child);
        send("INT", &child);
        let done = ended(child);
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(130), "{message}");
        let frames = frames(&message);
        assert!(frames > 0 && message.contains("stopping: "), "{message}");
        if json {
            let found: Value = serde_json::from_slice(&done.stdout).unwrap();
            assert_eq!(
                (&found["frames"], &found["complete"]),
                (&frames.into(), &false.into())
            );
        } else {
            let shown = text(&done.stdout);
            assert!(
                shown.contains(&format!("are equal so far: {frames} frames")),
                "{shown}"
            );
        }
    }
}

#[test]
fn a_silent_pipe_does_not_hold_up_the_end() {
    let folder = Folder::new();
    let clip = folder.name("a.y4m");
    fs::write(&clip, y4m(&[50, 60, 70, 80, 90])).unwrap();
    for arguments in [["-", &clip], [&clip, "-"]] {
        let mut child = command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // The pipe stays open and gives nothing more; the second frame is another.
        pipe.write_all(&y4m(&[50, 61, 70])).unwrap();
        pipe.flush().unwrap();
        under_way(&child);
        send("INT", &child);
        let done = ended(child);
        drop(pipe);
        let (message, shown) = (text(&done.stderr), text(&done.stdout));
        assert_eq!(done.status.code(), Some(130), "{message}");
        assert_eq!(frames(&message), 3, "{message}");
        assert!(shown.contains("differ in 1 of 3 frames"), "{shown}");
        assert!(shown.contains("first difference: frame 1, "), "{shown}");
    }
}

#[test]
fn pictures_of_differences_are_kept_or_discarded_whole() {
    for (signal, is_there_before, is_kept) in
        [("INT", false, true), ("INT", true, false), ("TERM", false, false)]
    {
        let folder = Folder::new();
        let heat = folder.name("heat.mkv");
        if is_there_before {
            fs::write(&heat, "an older file").unwrap();
        }
        let output = ["-o", &heat, "--encoder", "ffv1", "--overwrite"];
        let output = if is_there_before {
            &output[..]
        } else {
            &output[..4]
        };
        let child = command(&[&ENDLESS[..], output].concat()).spawn().unwrap();
        under_way(&child);
        send(signal, &child);
        let done = ended(child);
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(130), "{signal}: {message}");
        if is_kept {
            let pictures = ffmpeg(&["-i", &heat, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]);
            assert_eq!(
                pictures.len() as u64,
                frames(&message) * 160 * 120 * 3,
                "{message}"
            );
        } else {
            assert!(message.contains("abandoned: no output was written"), "{message}");
            assert!(done.stdout.is_empty(), "{}", text(&done.stdout));
        }
        if is_there_before {
            assert_eq!(fs::read(&heat).unwrap(), b"an older file");
        }
        let expected: &[&str] = if is_kept || is_there_before {
            &["heat.mkv"]
        } else {
            &[]
        };
        assert_eq!(names(folder.0.path()), expected, "{signal}: {message}");
    }
}
