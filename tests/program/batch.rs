//! Several inputs in one call: an output each, equal to what a run by itself makes of it; names, failures in
//! the middle, jobs side by side, interruption.

use crate::common::{ffmpeg, framepipe, send, text};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A temporary folder and the names in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn name(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// The names in the folder `inner`, hidden ones too; empty if there is none.
    fn names(&self, inner: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.path().join(inner)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Makes a video of `frames` frames, each file with pictures of its own.
    fn clip(&self, name: &str, frames: u32, encoder: &str) -> String {
        let path = self.name(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        let hue = name.bytes().map(u32::from).sum::<u32>() % 360;
        let source = format!("testsrc2=size=96x64:rate=25,hue=h={hue}");
        let frames = frames.to_string();
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &source,
            "-frames:v",
            &frames,
            "-pix_fmt",
            "yuv420p",
            "-c:v",
            encoder,
            &path,
        ]);
        path
    }

    /// Makes a still.
    fn still(&self, name: &str) -> String {
        let path = self.name(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=61x43",
            "-frames:v",
            "1",
            &path,
        ]);
        path
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = framepipe(&[&["filter"], arguments].concat());
    if !arguments.contains(&"--filter") {
        command.args(["--filter", "gaussian:sigma=1.5"]);
    }
    command
}

/// Runs `framepipe filter`, with a filter if none is given, and expects this exit code.
fn filter(code: i32, arguments: &[&str]) -> Output {
    let output = command(arguments).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{said}");
    assert!(!said.contains("panicked"), "{said}");
    if code == 1 || code == 2 {
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
    output
}

fn said(code: i32, arguments: &[&str]) -> String {
    text(&filter(code, arguments).stderr)
}

/// A hash of each frame, as FFmpeg decodes it.
fn frame_hashes(path: &str) -> Vec<String> {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-i", path, "-map", "0:v", "-f", "framemd5", "-"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{path}: {}", text(&output.stderr));
    let hashes: Vec<String> = text(&output.stdout)
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit(',').next().unwrap().trim().to_owned())
        .collect();
    assert!(!hashes.is_empty(), "{path}");
    hashes
}

#[test]
fn each_output_is_what_a_run_by_itself_makes() {
    let folder = Folder::new();
    let (a, b) = (
        folder.clip("a.mp4", 9, "libx264"),
        folder.clip("b.mkv", 5, "ffv1"),
    );
    folder.clip("more/c.mov", 4, "mpeg4");
    folder.clip("more/d.mov", 3, "mpeg4");
    let (glob, out) = (folder.name("more/*.mov"), folder.name("out/"));
    let shown = said(0, &[&a, &b, &glob, &out]);
    assert_eq!(folder.names("out"), ["a.mp4", "b.mkv", "c.mov", "d.mov"]);
    for (input, output, frames) in [
        ("a.mp4", "a.mp4", 9),
        ("b.mkv", "b.mkv", 5),
        ("more/c.mov", "c.mov", 4),
        ("more/d.mov", "d.mov", 3),
    ] {
        let alone = folder.name(&format!("alone-{output}"));
        filter(0, &[&folder.name(input), &alone]);
        let hashes = frame_hashes(&folder.name(&format!("out/{output}")));
        assert_eq!(hashes.len(), frames, "{output}");
        assert_eq!(hashes, frame_hashes(&alone), "{output}");
        // A line each, with the frames behind the name.
        let line = shown
            .lines()
            .find(|line| line.starts_with(&folder.name(input)))
            .unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[1], frames.to_string(), "{line}");
    }
    assert!(shown.contains("\n4 files: 21 frames in "), "{shown}");
    // The engine is started once, and shown once.
    assert_eq!(shown.matches("engine: ").count(), 1, "{shown}");
}

#[test]
fn stills_give_a_file_each() {
    let folder = Folder::new();
    let (a, b) = (folder.still("a.png"), folder.still("100%.jpg"));
    let out = folder.name("out/");
    said(0, &[&a, &b, &out]);
    assert_eq!(folder.names("out"), ["100%.jpg", "a.png"]);
    for (name, alone) in [("a.png", "alone.png"), ("100%.jpg", "alone.jpg")] {
        filter(0, &[&folder.name(name), &folder.name(alone)]);
        let file = |name: &str| fs::read(folder.name(name)).unwrap();
        assert!(file(&format!("out/{name}")) == file(alone), "{name}");
    }
    said(0, &[&a, &b, &folder.name("tiff/"), "--format", "tif"]);
    assert_eq!(folder.names("tiff"), ["100%.tif", "a.tif"]);
    // Stills that FFmpeg decodes are frames of a glob, and inputs of a list.
    let shots = ["shots/s.1.dpx", "shots/s.2.dpx"].map(|name| folder.still(name));
    said(0, &[&folder.name("shots"), &folder.name("whole/")]);
    said(0, &[&folder.name("shots/s.*.dpx"), &folder.name("glob/")]);
    said(0, &[&shots[0], &shots[1], &folder.name("list/")]);
    for name in ["s.1.dpx", "s.2.dpx"] {
        let file = |inner: &str| fs::read(folder.name(&format!("{inner}/{name}"))).unwrap();
        assert!(
            file("glob") == file("whole") && file("list") == file("whole"),
            "{name}"
        );
    }
    said(
        0,
        &[&shots[0], &shots[1], &folder.name("png/"), "--format", "png"],
    );
    assert_eq!(folder.names("png"), ["s.1.png", "s.2.png"]);
}

#[test]
fn the_container_is_the_inputs_or_that_of_the_option() {
    let folder = Folder::new();
    let (a, b) = (
        folder.clip("a.mp4", 2, "libx264"),
        folder.clip("b.avi", 2, "mpeg4"),
    );
    for (option, format) in [("mkv", "matroska"), ("matroska", "matroska")] {
        let out = folder.name(&format!("{option}/"));
        said(0, &[&a, &b, &out, "--format", option, "--encoder", "ffv1"]);
        assert_eq!(folder.names(option), ["a.mkv", "b.mkv"]);
        let probed = Command::new("ffprobe")
            .args([
                "-v",
                "error",
                "-show_entries",
                "format=format_name",
                "-of",
                "csv=p=0",
            ])
            .arg(format!("{out}a.mkv"))
            .output()
            .unwrap();
        assert!(text(&probed.stdout).contains(format), "{}", text(&probed.stdout));
    }
    // An extension of nobody's: nothing is begun, and the file is named.
    let strange = folder.name("c.strange");
    fs::copy(&a, &strange).unwrap();
    let shown = said(2, &[&a, &strange, &folder.name("none/")]);
    assert!(
        shown.contains("c.strange") && shown.contains("--format mkv"),
        "{shown}"
    );
    assert!(
        folder.names("none").is_empty() && !shown.contains("engine:"),
        "{shown}"
    );
    said(
        0,
        &[
            &a,
            &strange,
            &folder.name("named/"),
            "--format",
            "mkv",
            "--encoder",
            "ffv1",
        ],
    );
    assert_eq!(folder.names("named"), ["a.mkv", "c.mkv"]);
    let shown = said(2, &[&a, &b, &folder.name("none/"), "--format", "nonsense"]);
    assert!(shown.contains("a.mp4") && shown.contains("nonsense"), "{shown}");
}

#[test]
fn names_that_clash_are_refused_before_anything_starts() {
    let folder = Folder::new();
    let (a, other) = (
        folder.clip("x/a.mp4", 2, "libx264"),
        folder.clip("y/a.mp4", 2, "libx264"),
    );
    let b = folder.clip("b.mp4", 2, "libx264");
    let shown = said(2, &[&b, &a, &other, &folder.name("out/")]);
    assert!(
        shown.contains(&a) && shown.contains(&other) && shown.contains("out/a.mp4"),
        "{shown}"
    );
    // By --format, too.
    let mkv = folder.clip("b.mkv", 2, "ffv1");
    let shown = said(2, &[&b, &mkv, &folder.name("out/"), "--format", "mkv"]);
    assert!(shown.contains(&b) && shown.contains(&mkv), "{shown}");
    // An input that is in the output's folder would be overwritten.
    let before = fs::read(&a).unwrap();
    let shown = said(2, &[&b, &a, &folder.name("x"), "--overwrite"]);
    assert!(
        shown.contains("both input and output") && shown.contains(&a),
        "{shown}"
    );
    assert_eq!(folder.names("x"), ["a.mp4"]);
    // By a link, too.
    fs::create_dir(folder.name("links")).unwrap();
    std::os::unix::fs::symlink(&b, folder.name("links/a.mp4")).unwrap();
    let shown = said(2, &[&b, &a, &folder.name("links"), "--overwrite"]);
    assert!(shown.contains("is an input") && shown.contains(&b), "{shown}");
    assert!(fs::read(&a).unwrap() == before);
    let shown = said(1, &[&b, &folder.name("missing.mp4"), &folder.name("out/")]);
    assert!(shown.contains("missing.mp4"), "{shown}");
    assert!(folder.names("out").is_empty());
}

#[test]
fn several_inputs_need_a_folder_and_names_of_their_own() {
    let folder = Folder::new();
    let (a, b) = (
        folder.clip("a.mp4", 2, "libx264"),
        folder.clip("b.mp4", 2, "libx264"),
    );
    let out = folder.name("out/");
    for (arguments, words) in [
        (vec![&a[..], &b, &folder.name("out.mp4")], "out.mp4/"),
        (vec![&a, &b, "null:"], "out/"),
        (vec![&a, &b, "-"], "out/"),
        (vec![&a, "-", &out], "standard input"),
        (vec![&a, "synthetic:8x8:gray:25:2", &out], "made-up"),
        (vec![&a, "raw:8x8:gray:25:-", &out], "standard input"),
        (vec![&a, &b, &out, "--report", "r.json"], "--report"),
        (vec![&a, &b, &out, "--trace", "t.json"], "--trace"),
        (vec![&a, &b, &out, "--start-number", "3"], "--start-number"),
        (vec![&a, &folder.name("frames/%03d.png"), &out], "sequence"),
        (vec![&a], "input"),
    ] {
        let shown = said(2, &arguments);
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(folder.names("out").is_empty());
}

#[test]
fn a_glob_or_a_folder_of_videos_is_several_inputs() {
    let folder = Folder::new();
    let hashes: Vec<Vec<String>> = ["clips/a.mp4", "clips/b.mkv"]
        .map(|name| {
            let clip = folder.clip(name, 3, "libx264");
            let alone = folder.name(&format!("alone-{}", name.replace('/', "-")));
            filter(0, &[&clip, &alone]);
            frame_hashes(&alone)
        })
        .into();
    fs::write(folder.name("clips/notes.txt"), "no video").unwrap();
    fs::write(folder.name("clips/a.srt"), "no video").unwrap();
    for (input, out) in [("clips/*.m*", "from-glob/"), ("clips", "from-folder/")] {
        said(0, &[&folder.name(input), &folder.name(out)]);
        assert_eq!(folder.names(out), ["a.mp4", "b.mkv"]);
        for (name, hashes) in ["a.mp4", "b.mkv"].iter().zip(&hashes) {
            assert_eq!(
                &frame_hashes(&folder.name(&format!("{out}{name}"))),
                hashes,
                "{out}"
            );
        }
        let shown = said(2, &[&folder.name(input), &folder.name("out.mp4")]);
        assert!(shown.contains("2 files") && shown.contains("out.mp4/"), "{shown}");
    }
    // Cameras and recorders have names of their own for containers; what has none that is known is named.
    fs::copy(folder.name("clips/b.mkv"), folder.name("clips/c.TOD")).unwrap();
    fs::copy(folder.name("clips/b.mkv"), folder.name("clips/d.film")).unwrap();
    let shown = said(
        0,
        &[&folder.name("clips"), &folder.name("mkv/"), "--format", "mkv"],
    );
    assert_eq!(folder.names("mkv"), ["a.mkv", "b.mkv", "c.mkv"]);
    assert!(
        shown.contains("1 file is no video by its extension and is left out: d.film"),
        "{shown}"
    );
    fs::remove_file(folder.name("clips/c.TOD")).unwrap();
    fs::remove_file(folder.name("clips/d.film")).unwrap();
    // One file is treated so where the user says that there may be several.
    said(
        0,
        &[
            &folder.name("clips/a.mp4"),
            &folder.name("one/"),
            "--at-once",
            "1",
        ],
    );
    assert_eq!(folder.names("one"), ["a.mp4"]);
    // And where options speak of files in a folder: a shell may have found one name for a glob.
    let clip = folder.name("clips/a.mp4");
    said(0, &[&clip, &folder.name("mov/"), "--format", "mov"]);
    assert_eq!(folder.names("mov"), ["a.mov"]);
    for _ in 0..2 {
        said(
            0,
            &[&clip, &folder.name("kept/"), "--skip-existing", "--keep-going"],
        );
        assert_eq!(folder.names("kept"), ["a.mp4"]);
    }
    said(
        0,
        &[
            &folder.still("lone/x.png"),
            &folder.name("jpg/"),
            "--format",
            "jpg",
        ],
    );
    assert_eq!(folder.names("jpg"), ["x.jpg"]);
    // A folder with images is what it was: the frames of one input.
    folder.still("frames/1.png");
    folder.still("frames/2.png");
    said(0, &[&folder.name("frames"), &folder.name("filtered/")]);
    assert_eq!(folder.names("filtered"), ["1.png", "2.png"]);
}

#[test]
fn names_that_lead_to_no_file_are_said() {
    let folder = Folder::new();
    folder.clip("clips/1.mkv", 2, "ffv1");
    std::os::unix::fs::symlink("nowhere", folder.name("clips/2.mkv")).unwrap();
    let made = Command::new("mkfifo").arg(folder.name("clips/3.mkv")).status();
    assert!(made.unwrap().success());
    folder.still("frames/1.png");
    std::os::unix::fs::symlink("nowhere", folder.name("frames/2.mkv")).unwrap();
    let [link, pipe] = [
        "1 link leads nowhere and is left out: 2.mkv",
        "1 name is of a pipe, socket or device, and is left out: 3.mkv",
    ];
    for (input, expected) in [
        ("clips", &[link, pipe][..]),
        ("clips/*.mkv", &[link, pipe]),
        ("frames", &[link]),
    ] {
        let warned = said(0, &[&folder.name(input), &folder.name("out/"), "--overwrite"]);
        let refused = said(1, &[&folder.name(input), &folder.name("strict/"), "--strict"]);
        for sentence in expected {
            assert!(
                warned.contains(sentence) && refused.contains(sentence),
                "{warned} {refused}"
            );
        }
        assert!(!Path::new(&folder.name("strict")).exists());
    }
}

#[test]
fn outputs_that_are_there_are_passed_over_or_refused() {
    let folder = Folder::new();
    let (a, b) = (
        folder.clip("a.mp4", 2, "libx264"),
        folder.clip("b.mp4", 2, "libx264"),
    );
    let out = folder.name("out/");
    fs::create_dir(&out).unwrap();
    fs::write(folder.name("out/a.mp4"), "whole").unwrap();
    fs::write(folder.name("out/b.mp4"), "whole").unwrap();
    let shown = said(1, &[&a, &b, &out]);
    assert!(
        shown.contains("out/a.mp4 exists, and so does 1 more; "),
        "{shown}"
    );
    fs::remove_file(folder.name("out/b.mp4")).unwrap();
    let shown = said(1, &[&a, &b, &out]);
    assert!(
        shown.contains("out/a.mp4 exists; ") && shown.contains("--skip-existing"),
        "{shown}"
    );
    assert!(
        !shown.contains("engine:") && folder.names("out") == ["a.mp4"],
        "{shown}"
    );
    let shown = said(0, &[&a, &b, &out, "--skip-existing"]);
    assert!(
        shown.contains("its output is there") && shown.contains("1 there already"),
        "{shown}"
    );
    assert_eq!(fs::read(folder.name("out/a.mp4")).unwrap(), b"whole");
    assert_eq!(frame_hashes(&folder.name("out/b.mp4")).len(), 2);
    let shown = said(0, &[&a, &b, &out, "--skip-existing"]);
    assert!(shown.contains("nothing to do"), "{shown}");
    said(0, &[&a, &b, &out, "--overwrite"]);
    assert_eq!(frame_hashes(&folder.name("out/a.mp4")).len(), 2);
}

#[test]
fn an_empty_file_or_a_folder_is_no_output_that_is_there() {
    let folder = Folder::new();
    let (a, b) = (folder.clip("a.mkv", 2, "ffv1"), folder.clip("b.mkv", 2, "ffv1"));
    let stills = folder.name("stills");
    fs::create_dir(&stills).unwrap();
    for name in ["1.png", "2.png", "3.png"] {
        fs::copy(folder.still(name), format!("{stills}/{name}")).unwrap();
    }
    let (out, pictures) = (folder.name("out/"), folder.name("pictures/"));
    for (arguments, made, there, words) in [
        (vec![&*a, &*b, &*out], "a.mkv", "b.mkv", "1 there already"),
        (
            vec![&*stills, &*pictures],
            "2.png",
            "1.png",
            "2 of 3 image files are skipped: ",
        ),
    ] {
        let to = arguments[arguments.len() - 1];
        let again = [&arguments[..], &["--skip-existing"]].concat();
        said(0, &arguments);
        let file = format!("{to}{made}");
        let whole = fs::metadata(&file).unwrap().len();
        fs::write(&file, "").unwrap();
        let untouched = fs::metadata(format!("{to}{there}")).unwrap().modified().unwrap();
        let shown = said(0, &again);
        assert!(
            shown.contains(words) && shown.contains(&format!("{file} is empty and is replaced")),
            "{shown}"
        );
        assert_eq!(fs::metadata(&file).unwrap().len(), whole);
        assert_eq!(
            fs::metadata(format!("{to}{there}")).unwrap().modified().unwrap(),
            untouched
        );
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        let shown = said(1, &again);
        assert!(shown.contains(&format!("{file} is a directory")), "{shown}");
    }
}

#[test]
fn a_broken_file_ends_the_run_or_is_listed_at_its_end() {
    let folder = Folder::new();
    let (a, c) = (
        folder.clip("a.mp4", 4, "libx264"),
        folder.clip("c.mp4", 3, "libx264"),
    );
    let broken = folder.name("broken.mp4");
    fs::write(&broken, "no video at all").unwrap();
    let shown = said(1, &[&a, &broken, &c, &folder.name("stopped/")]);
    assert_eq!(folder.names("stopped"), ["a.mp4"]);
    assert!(
        shown.contains("not begun") && shown.contains("broken.mp4"),
        "{shown}"
    );
    for extra in [&["--at-once", "1"][..], &["--at-once", "3"], &["-q"]] {
        let out = folder.name(&format!("out{}/", extra.join("")));
        let shown = said(1, &[&[&a[..], &broken, &c, &out, "--keep-going"], extra].concat());
        for (name, frames) in [("a.mp4", 4), ("c.mp4", 3)] {
            assert_eq!(frame_hashes(&format!("{out}{name}")).len(), frames);
        }
        assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
        // Why it failed stands there once, and how many did.
        assert!(shown.contains("1 of 3 files failed"), "{shown}");
        assert_eq!(shown.matches("finds no audio or video").count(), 1, "{shown}");
        let is_quiet = extra == ["-q"];
        assert_eq!(shown.contains("frames/s"), !is_quiet, "{shown}");
    }
    // One that is missing is no reason to begin nothing, then.
    let shown = said(
        1,
        &[
            &a,
            &folder.name("missing.mp4"),
            &folder.name("m/"),
            "--keep-going",
        ],
    );
    assert!(
        shown.contains("missing.mp4") && folder.names("m") == ["a.mp4"],
        "{shown}"
    );
}

#[test]
fn jobs_side_by_side_make_the_same() {
    let folder = Folder::new();
    let clips: Vec<String> = (0..7)
        .map(|n| folder.clip(&format!("{n}.mp4"), 3 + n, "libx264"))
        .collect();
    let mut hashes = Vec::new();
    for at_once in ["1", "3"] {
        let out = folder.name(&format!("out-{at_once}/"));
        let mut arguments: Vec<&str> = clips.iter().map(String::as_str).collect();
        arguments.extend([&out, "--at-once", at_once]);
        let shown = said(0, &arguments);
        assert!(shown.contains("\n7 files: 42 frames"), "{shown}");
        let of_files = (0..7).map(|n| frame_hashes(&format!("{out}{n}.mp4")));
        hashes.push(of_files.collect::<Vec<_>>());
    }
    assert_eq!(hashes[0], hashes[1]);
    assert_eq!(
        hashes[0].iter().map(Vec::len).collect::<Vec<_>>(),
        [3, 4, 5, 6, 7, 8, 9]
    );
    // A limit on memory that only one job fits into holds the others back; one that none fits into ends it.
    let mut arguments: Vec<&str> = clips.iter().map(String::as_str).collect();
    let out = folder.name("small/");
    arguments.extend([&out, "--at-once", "7", "--max-memory", "400K"]);
    said(0, &arguments);
    assert_eq!(folder.names("small").len(), 7);
    let shown = said(
        1,
        &[&clips[0], &clips[1], &folder.name("no/"), "--max-memory", "4K"],
    );
    assert!(
        shown.contains("--max-memory") && folder.names("no").is_empty(),
        "{shown}"
    );
}

#[test]
fn an_interrupt_leaves_whole_files_only() {
    let folder = Folder::new();
    let clips: Vec<String> = (0..6)
        .map(|n| folder.clip(&format!("{n}.mp4"), 150, "libx264"))
        .collect();
    // Slow enough that one file takes seconds.
    let slow = [
        "--engine",
        "reference",
        "--filter",
        "gaussian:sigma=2",
        "--preset",
        "ultrafast",
    ];
    for at_once in ["1", "2"] {
        let out = folder.name(&format!("out-{at_once}/"));
        let mut arguments: Vec<&str> = clips.iter().map(String::as_str).collect();
        arguments.extend([&out, "--at-once", at_once]);
        arguments.extend(slow);
        let child = command(&arguments).spawn().unwrap();
        // The first is whole, and another is begun.
        let began = Instant::now();
        let is_between = || {
            let names = folder.names(&format!("out-{at_once}"));
            !names.iter().any(|name| name == "0.mp4") || !names.iter().any(|name| name.starts_with('.'))
        };
        while is_between() {
            assert!(began.elapsed() < Duration::from_secs(100), "nothing comes");
            sleep(Duration::from_millis(5));
        }
        send("INT", &child);
        let output = child.wait_with_output().unwrap();
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{shown}");
        let names = folder.names(&format!("out-{at_once}"));
        assert!(!names.is_empty() && names.len() < 6, "{names:?}");
        for name in &names {
            assert_eq!(frame_hashes(&format!("{out}{name}")).len(), 150, "{name}");
        }
        assert!(shown.contains("stopped: nothing of it is left"), "{shown}");
        assert!(
            shown.contains("not begun") && shown.contains("interrupted"),
            "{shown}"
        );
        // What is missing is made by going on.
        arguments.push("--skip-existing");
        said(0, &arguments);
        assert_eq!(folder.names(&format!("out-{at_once}")).len(), 6);
    }
    // What is in flight is finished where that is wanted.
    let out = folder.name("kept/");
    let mut arguments: Vec<&str> = vec![&clips[0], &clips[1], &out, "--on-interrupt", "keep"];
    arguments.extend(["--progress", "json"]);
    // So slow that a second is not enough for a file.
    arguments.extend(["--engine", "reference", "--preset", "ultrafast"]);
    arguments.extend(["--filter", "gaussian:size=31", "--algorithm", "direct"]);
    let mut child = command(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let has_frames = |line: &String| {
        let object: Result<serde_json::Value, _> = serde_json::from_str(line);
        object.is_ok_and(|object| object["frames"].as_u64() > Some(0))
    };
    assert!(lines.by_ref().map(Result::unwrap).any(|line| has_frames(&line)));
    send("INT", &child);
    let shown: String = lines.map(|line| line.unwrap() + "\n").collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{shown}");
    let kept = frame_hashes(&format!("{out}0.mp4")).len();
    assert!(kept < 150 && shown.contains("it ends early"), "{kept}: {shown}");
    assert_eq!(folder.names("kept"), ["0.mp4"]);
}

#[test]
fn strict_runs_refuse_what_others_warn_of() {
    let folder = Folder::new();
    let (a, alpha) = (folder.clip("a.mkv", 3, "ffv1"), folder.name("alpha.mkv"));
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "color=red@0.5:size=64x48,format=yuva420p",
        "-frames:v",
        "3",
        "-c:v",
        "ffv1",
        &alpha,
    ]);
    let arguments = |out: &str| {
        vec![
            a.clone(),
            alpha.clone(),
            folder.name(out),
            "--format".into(),
            "mp4".into(),
        ]
    };
    let warned = arguments("warned/");
    let warned: Vec<&str> = warned.iter().map(String::as_str).collect();
    let shown = said(0, &warned);
    assert!(
        shown.contains(&format!("{alpha}: warning: ")) && shown.contains("alpha"),
        "{shown}"
    );
    assert_eq!(folder.names("warned"), ["a.mp4", "alpha.mp4"]);
    // A quiet run still warns.
    let quiet = arguments("quiet/");
    let quiet: Vec<&str> = quiet.iter().map(String::as_str).chain(["-q"]).collect();
    let shown = said(0, &quiet);
    assert!(
        shown.contains("warning: ") && !shown.contains("frames/s"),
        "{shown}"
    );
    let strict = arguments("strict/");
    let strict: Vec<&str> = strict.iter().map(String::as_str).chain(["--strict"]).collect();
    let shown = said(1, &strict);
    assert!(shown.contains("alpha"), "{shown}");
    assert_eq!(folder.names("strict"), ["a.mp4"]);
}

#[test]
fn a_dry_run_tells_every_plan_and_makes_nothing() {
    let folder = Folder::new();
    let (a, b) = (folder.clip("a.mp4", 2, "libx264"), folder.still("b.png"));
    let out = folder.name("out/");
    let output = filter(0, &[&a, &b, &out, "--dry-run"]);
    let plan = text(&output.stdout);
    for words in [&a[..], &b, "out/a.mp4", "out/b.png", "engine  cpu"] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    assert_eq!(plan.matches("nothing was done").count(), 1, "{plan}");
    assert!(!Path::new(&out).exists());
    // One that a run passes over is named, and the code is that of the run.
    let broken = folder.name("broken.mp4");
    fs::write(&broken, "no video at all").unwrap();
    let arguments = [&broken[..], &b, &out, "--dry-run"];
    assert!(said(1, &arguments).contains("finds no audio or video"));
    let output = filter(1, &[&arguments[..], &["--keep-going"]].concat());
    let (plan, shown) = (text(&output.stdout), text(&output.stderr));
    for words in [
        &format!("input   {broken}\nfails   ")[..],
        "out/b.png",
        "finds no audio",
    ] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    assert!(shown.contains("1 of 2 files failed"), "{shown}");
    assert!(!Path::new(&out).exists());
}

#[test]
fn progress_for_programs_tells_of_each_file() {
    let folder = Folder::new();
    let clips: Vec<String> = (0..3)
        .map(|n| folder.clip(&format!("{n}.mp4"), 4 + n, "libx264"))
        .collect();
    let out = folder.name("out/");
    let broken = folder.name("broken.mp4");
    fs::write(&broken, "no video at all").unwrap();
    let shown = said(
        1,
        &[
            &clips[0],
            &clips[1],
            &broken,
            &clips[2],
            &out,
            "-q",
            "--keep-going",
            "--progress",
            "json",
            "--at-once",
            "2",
        ],
    );
    let mut frames: BTreeMap<String, u64> = BTreeMap::new();
    let mut done = Vec::new();
    for line in shown.lines().filter(|line| line.starts_with('{')) {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["files"], 4);
        assert!(object["files_done"].as_u64().unwrap() <= 4);
        if object["state"] == "ended" {
            done.push(object["files_done"].as_u64().unwrap());
            let file = object["file"].as_str().unwrap().to_owned();
            let before = frames.insert(file, object["frames"].as_u64().unwrap());
            assert_eq!(before, None, "{shown}");
        }
    }
    let all = clips.into_iter().chain([broken]);
    let expected: BTreeMap<String, u64> = all.zip([4, 5, 6, 0]).collect();
    assert_eq!(frames, expected);
    // Each object counts its own file.
    assert_eq!(done, [1, 2, 3, 4]);
}

#[test]
fn a_strangers_files_are_confined_together() {
    let folder = Folder::new();
    let (a, b) = (folder.clip("a.mkv", 2, "ffv1"), folder.clip("b.mkv", 3, "ffv1"));
    let out = folder.name("out/");
    let shown = said(0, &[&a, &b, &out, "--untrusted", "--at-once", "2"]);
    assert!(shown.contains("confined: "), "{shown}");
    assert_eq!(frame_hashes(&folder.name("out/b.mkv")).len(), 3);
}
