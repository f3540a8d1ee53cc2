//! Where the two inputs come from, and how much is made of what is wrong with them.

use super::{Folder, Raw, command, diff, json, refused, said};
use crate::common::{ffmpeg, names, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

const FRAMES: usize = 6;

const RAW: Raw = Raw {
    format: "yuv420p",
    width: 67,
    height: 45,
    depth: 8,
    frames: FRAMES,
};

/// YUV4MPEG2 as FFmpeg writes it, of raw frames in a file.
fn y4m(file: &str) -> Vec<u8> {
    let size = RAW.size();
    let input = [
        "-f",
        "rawvideo",
        "-pixel_format",
        RAW.format,
        "-video_size",
        &size,
    ];
    let output = ["-i", file, "-f", "yuv4mpegpipe", "-"];
    ffmpeg(&[&input[..], &output].concat())
}

/// A comparison with these bytes on standard input.
fn diff_from(input: &[u8], arguments: &[&str]) -> Output {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let bytes = input.to_vec();
    // A comparison that has found what it wanted reads no further.
    let writer = std::thread::spawn(move || {
        let _ = pipe.write_all(&bytes);
    });
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap();
    done
}

#[test]
fn standard_input_is_either_of_the_two() {
    let folder = Folder::new();
    let (raw, clip) = (folder.name("a.raw"), folder.name("a.y4m"));
    let mut pictures = RAW.pictures();
    fs::write(&raw, &pictures).unwrap();
    let whole = y4m(&raw);
    fs::write(&clip, &whole).unwrap();
    let equal = format!("are equal: {FRAMES} frames");
    assert!(said(0, &[&clip, &RAW.named(&raw)]).contains(&equal));
    for arguments in [["-", &clip], [&clip, "-"]] {
        let done = diff_from(&whole, &arguments);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        assert!(text(&done.stdout).contains(&equal), "{}", text(&done.stdout));
    }
    // One sample of u in the last frame, column 3, row 2: planes of 34x23.
    let at = pictures.len() / FRAMES * (FRAMES - 1) + 67 * 45 + 2 * 34 + 3;
    let before = pictures[at];
    pictures[at] ^= 0x55;
    fs::write(&raw, &pictures).unwrap();
    for (arguments, a, b) in [
        (["-", &clip, "--json"], before ^ 0x55, before),
        ([&clip, "-", "--json"], before, before ^ 0x55),
    ] {
        let done = diff_from(&y4m(&raw), &arguments);
        assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
        let found: Value = serde_json::from_slice(&done.stdout).unwrap();
        let first = &found["first"];
        assert_eq!(
            (&first["frame"], &first["component"], &first["x"], &first["y"]),
            (&(FRAMES - 1).into(), &"u".into(), &3.into(), &2.into())
        );
        assert_eq!((&first["a"], &first["b"]), (&a.into(), &b.into()));
        assert_eq!(found["all"]["samples_differing"], 1);
    }
}

#[test]
fn standard_input_that_is_cut_or_no_video_is_refused() {
    let folder = Folder::new();
    let (raw, clip) = (folder.name("a.raw"), folder.name("a.y4m"));
    fs::write(&raw, RAW.pictures()).unwrap();
    let whole = y4m(&raw);
    fs::write(&clip, &whole).unwrap();
    // In the fifth frame, at the end of a frame, within the header, and before it.
    let frame = (whole.len() - whole.iter().position(|&b| b == b'\n').unwrap() - 1) / FRAMES;
    for (input, part) in [
        (&whole[..whole.len() - frame - 100], "4 whole frames, then "),
        (&whole[..20], "ends within its y4m header"),
        (b"", "standard input: "),
        (b"GIF89a and no video\n", "standard input: "),
    ] {
        let done = diff_from(input, &["-", &clip]);
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{message}");
        assert_eq!(message.matches("error: ").count(), 1, "{message}");
        assert!(message.contains(part) && done.stdout.is_empty(), "{message}");
    }
    // Whole frames only, but fewer.
    let done = diff_from(&whole[..whole.len() - frame], &["-", &clip]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    let message = text(&done.stdout);
    assert!(message.contains("ends after 5 frames"), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn strangers_files_are_compared_in_a_sandbox() {
    let folder = Folder::new();
    let (raw, a, b) = (folder.name("a.raw"), folder.name("a.mkv"), folder.name("b.y4m"));
    let mut pictures = RAW.pictures();
    fs::write(&raw, &pictures).unwrap();
    ffmpeg(&[
        "-i",
        &{
            fs::write(&b, y4m(&raw)).unwrap();
            b.clone()
        },
        "-c:v",
        "ffv1",
        &a,
    ]);
    pictures[70] ^= 0x40;
    fs::write(&raw, &pictures).unwrap();
    fs::write(&b, y4m(&raw)).unwrap();
    let heat = |name: &str| folder.name(&format!("{name}/heat.mkv"));
    let run = |name: &str, options: &[&str]| {
        let heat = heat(name);
        fs::create_dir_all(folder.name(name)).unwrap();
        diff(&[&[&a, &b, "--json", "-o", &heat, "--encoder", "ffv1"][..], options].concat())
    };
    let (plain, confined) = (run("plain", &[]), run("confined", &["--untrusted"]));
    let message = text(&confined.stderr);
    if message.contains("this system cannot confine the program") {
        println!("SKIPPED: this kernel has no Landlock");
        return;
    }
    assert_eq!(confined.status.code(), Some(1), "{message}");
    assert!(message.contains("confined: "), "{message}");
    assert!(!text(&plain.stderr).contains("confined: "));
    assert_eq!(text(&confined.stdout), text(&plain.stdout));
    let pixels = |name: &str| ffmpeg(&["-i", &heat(name), "-f", "framemd5", "-"]);
    assert_eq!(pixels("confined"), pixels("plain"));
    // A list that names another file gets nowhere near it, whichever input it is.
    let list = folder.name("list.ffconcat");
    fs::write(&list, format!("ffconcat version 1.0\nfile '{a}'\n")).unwrap();
    for inputs in [[&a, &list], [&list, &a]] {
        let done = diff(&[inputs[0], inputs[1], "--untrusted"]);
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{message}");
        assert!(message.contains("list.ffconcat"), "{message}");
    }
    // Standard input is open already.
    let done = diff_from(&y4m(&raw), &["-", &b, "--untrusted"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    refused(&[&a, &b, "--untrusted", "--allow-urls"], "--allow-urls");
}

#[test]
fn damage_is_a_warning_and_strict_makes_it_an_error() {
    let folder = Folder::new();
    let (whole, damaged) = (folder.name("whole.mkv"), folder.name("damaged.mkv"));
    let source = "testsrc2=size=320x240:rate=25:duration=2";
    let encoder = ["-c:v", "mpeg4", "-q:v", "3", "-g", "10"];
    ffmpeg(&[&["-f", "lavfi", "-i", source][..], &encoder, &[&whole]].concat());
    let mut bytes = fs::read(&whole).unwrap();
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle..middle + 3000] {
        *byte = byte.wrapping_mul(31) ^ 0x5A;
    }
    fs::write(&damaged, &bytes).unwrap();
    // Either input's warnings are given, in each form.
    for (a, b) in [(&whole, &damaged), (&damaged, &whole)] {
        let shown = said(1, &[a, b]);
        assert!(shown.contains("\nwarning: "), "{shown}");
        let found = json(1, &[a, b]);
        let warnings = found["warnings"].as_array().unwrap();
        assert!(!warnings.is_empty(), "{found}");
        let quiet = diff(&[a, b, "-q"]);
        assert!(quiet.stdout.is_empty(), "{}", text(&quiet.stdout));
        assert_eq!(
            text(&quiet.stderr).matches("warning: ").count(),
            warnings.len(),
            "{}",
            text(&quiet.stderr)
        );
        let silent = diff(&[a, b, "-qq"]);
        assert!(silent.stdout.is_empty() && silent.stderr.is_empty());
        let heat = folder.name("heat.mkv");
        for options in [&["--strict"][..], &["--strict", "-q", "-o", &heat]] {
            let done = diff(&[&[&a[..], b], options].concat());
            let message = text(&done.stderr);
            assert_eq!(done.status.code(), Some(2), "{message}");
            assert_eq!(message.matches("error: ").count(), 1, "{message}");
            assert!(
                message.contains("damaged.mkv") && done.stdout.is_empty(),
                "{message}"
            );
        }
    }
    // Where nothing is wrong, strict changes nothing; and no picture of differences was left.
    assert!(said(0, &[&whole, &whole, "--strict"]).contains("are equal: 50 frames"));
    assert_eq!(names(folder.0.path()), ["damaged.mkv", "whole.mkv"]);
}
