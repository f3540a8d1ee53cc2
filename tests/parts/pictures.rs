//! Image files and inputs whose frames have numbers.

use super::common::ffmpeg;
use super::{Job, done, framepipe, refused, said, single_run, text};
use std::collections::BTreeMap;
use std::path::Path;

/// Names and bytes of a folder's files.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().to_str().unwrap().to_owned();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// A folder of numbered PNGs, from 1001 on.
fn frames(folder: &Path, count: u32) -> std::path::PathBuf {
    let frames = folder.join("frames");
    std::fs::create_dir(&frames).unwrap();
    let pattern = frames.join("f.%04d.png");
    let (source, number) = (
        format!("testsrc2=size=48x32:rate=25:duration={}", f64::from(count) / 25.0),
        "1001",
    );
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        &source,
        "-start_number",
        number,
        text(&pattern),
    ]);
    frames
}

#[test]
fn folders_patterns_and_videos_become_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let input = frames(root, 23);
    let video = root.join("video.mp4");
    let pattern = input.join("f.%04d.png");
    ffmpeg(&[
        "-start_number",
        "1001",
        "-i",
        text(&pattern),
        "-c:v",
        "libx264",
        "-g",
        "5",
        "-bf",
        "2",
        text(&video),
    ]);
    // One in which no part can begin anywhere.
    let whole = root.join("video.ts");
    ffmpeg(&["-i", text(&video), "-c", "copy", text(&whole)]);
    // Pictures of other kinds of samples than the first.
    let mixed = root.join("mixed");
    std::fs::create_dir(&mixed).unwrap();
    for (name, format) in [
        ("a", "rgb24"),
        ("b", "rgba"),
        ("c", "gray"),
        ("d", "rgb48be"),
        ("e", "rgb24"),
    ] {
        let source = [
            "-f",
            "lavfi",
            "-i",
            "testsrc2=s=32x24",
            "-frames:v",
            "1",
            "-pix_fmt",
            format,
        ];
        ffmpeg(&[&source[..], &[text(&mixed.join(format!("{name}.png")))]].concat());
    }
    for (number, (input, output, options)) in [
        (&input, "out/", &[][..]),
        (&mixed, "m.%02d.png", &[]),
        (&pattern, "p.%05d.tif", &[]),
        (&pattern, "q.%05d.png", &["--frames", "1005-1017:3"]),
        (&input, "r.%03d.png", &[]),
        (&video, "s.%03d.png", &["--start-number", "10"]),
        (&video, "t/", &["--start", "0.2", "--end", "0.7"]),
        (&whole, "u.%03d.png", &["--start-number", "7"]),
    ]
    .into_iter()
    .enumerate()
    {
        let (one, parts) = (
            root.join(format!("one{number}")),
            root.join(format!("many{number}")),
        );
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&parts).unwrap();
        let options = [&["--filter", "sharpen"], options].concat();
        let expected = single_run(input, &one.join(output), &options);
        let target = parts.join(output);
        let job = root.join(format!("job{number}"));
        done(
            &[
                &["plan", text(input), text(&target), text(&job), "--parts", "4"],
                &options[..],
            ]
            .concat(),
        );
        if input != &whole {
            done(&["part", text(&job), "1"]);
        }
        done(&["part", text(&job), "0-9"]);
        done(&["join", text(&job)]);
        let _ = std::fs::remove_file(one.join(output).with_extension("hashes"));
        let inner = |folder: &Path| match output.strip_suffix('/') {
            Some(name) => files(&folder.join(name)),
            None => files(folder),
        };
        let (found, wanted) = (inner(&parts), inner(&one));
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            wanted.keys().collect::<Vec<_>>(),
            "{output}"
        );
        assert!(found == wanted, "{output}: bytes differ");
        assert_eq!(wanted.len(), expected.len(), "{output}");
    }
}

#[test]
fn image_files_that_were_changed_are_found_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let input = frames(folder.path(), 8);
    let whole = folder.path().join("whole");
    std::fs::create_dir(&whole).unwrap();
    // Without compression, so that all files have one length.
    single_run(&input, &whole.join("%02d.bmp"), &["--filter", "soft"]);
    let job = Job {
        output: folder.path().join("out/%02d.bmp"),
        folder: folder.path().join("job"),
        input,
        parts: 2,
    };
    let plan = ["plan", text(&job.input), text(&job.output), text(&job.folder)];
    done(&[&plan, &["--filter", "soft", "--parts", "2"][..]].concat());
    done(&["run", text(&job.folder), "--no-join", "-q"]);
    let file = |number: u32| job.output.with_file_name(format!("{number:02}.bmp"));
    let (path, other) = (file(6), file(3));
    assert_eq!(path.metadata().unwrap().len(), other.metadata().unwrap().len());
    for keeps_time in [false, true] {
        let written = path.metadata().unwrap().modified().unwrap();
        std::fs::copy(&other, &path).unwrap();
        if keeps_time {
            let written = std::fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(written);
            written.unwrap();
        }
        let words = format!("{} is not what was recorded of it", path.display());
        for command in ["join", "check"] {
            let refusal = refused(&[command, text(&job.folder)], 1);
            assert!(
                refusal.contains(&words) && refusal.contains("part 1: "),
                "{refusal}"
            );
        }
        assert_eq!(done(&["status", text(&job.folder)]).contains(&words), !keeps_time);
        if !keeps_time {
            done(&["part", text(&job.folder), "1"]);
            let again = path.metadata().unwrap().modified().unwrap();
            assert!(std::fs::read(&path).unwrap() != std::fs::read(&other).unwrap() && again != written);
            continue;
        }
        done(&["part", text(&job.folder), "1", "--again"]);
    }
    job.join();
    let _ = std::fs::remove_file(whole.join("%02d.hashes"));
    assert!(files(job.output.parent().unwrap()) == files(&whole));
    // The same after the join.
    std::fs::remove_file(&path).unwrap();
    let words = format!("{} is gone", path.display());
    assert!(refused(&["join", text(&job.folder)], 1).contains(&words));
    assert!(done(&["status", text(&job.folder)]).contains(&words));
    assert!(done(&["run", text(&job.folder)]).contains(&words));
    assert!(files(job.output.parent().unwrap()) == files(&whole));
    assert!(done(&["run", text(&job.folder)]).contains("is there already"));
    std::fs::copy(&other, &path).unwrap();
    let words = format!("{} is not what was recorded of it", path.display());
    assert!(refused(&["run", text(&job.folder)], 1).contains(&words));
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&other).unwrap());
}

/// Where the parts of a video begin with frames that differ from the first, all is said and refused that a
/// single run says and refuses.
#[test]
fn what_changes_from_part_to_part_is_refused_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let gray = [&b"P5 48 32 255\n"[..], &[90; 48 * 32]].concat();
    let small = [&b"P6 32 32 255\n"[..], &[90; 3 * 32 * 32]].concat();
    let large = [&b"P6 48 32 255\n"[..], &[90; 3 * 48 * 32]].concat();
    let source = ["-f", "lavfi", "-i", "testsrc2=s=48x32", "-frames:v", "1"];
    let jpeg = ffmpeg(
        &[
            &source[..],
            &["-c:v", "mjpeg", "-flags", "bitexact", "-f", "image2pipe", "-"],
        ]
        .concat(),
    );
    // Exif asks for orientation 6.
    let exif = b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let turned = [&jpeg[..2], exif, &jpeg[2..]].concat();
    let rotated = "from 0.080 s on, 1 frame with rotation 90 degrees clockwise instead of upright";
    for (name, files, options, is_refused, words) in [
        (
            "small",
            [&large, &large, &small, &small],
            &["o.mkv", "--encoder", "ffv1"][..],
            true,
            "2.img) is 32x32 rgb24, but the output was begun with 48x32 rgb24",
        ),
        (
            "gray",
            [&large, &large, &gray, &gray],
            &["o.mkv", "--encoder", "ffv1"],
            true,
            "2.img) is 48x32 gray, but the output was begun with 48x32 rgb24",
        ),
        (
            "turned",
            [&jpeg, &jpeg, &turned, &jpeg],
            &["o.mp4"],
            false,
            rotated,
        ),
        (
            "strict",
            [&jpeg, &jpeg, &turned, &jpeg],
            &["o.mp4", "--strict"],
            true,
            rotated,
        ),
    ] {
        let input = at(name);
        std::fs::create_dir(&input).unwrap();
        for (number, file) in files.into_iter().enumerate() {
            let kind = if file.starts_with(b"P") { "ppm" } else { "jpg" };
            std::fs::write(input.join(format!("{number}.{kind}")), file).unwrap();
        }
        let words = words.replace("img", "ppm");
        let (whole, target, job) = (
            input.join(options[0]),
            at(name).join("p").with_extension(&options[0][2..]),
            input.join("job"),
        );
        let options = [&["--filter", "mask:rows=1", "--engine", "cpu"], &options[1..]].concat();
        let single = framepipe(&[&["filter", text(&input), text(&whole)], &options[..]].concat());
        let ends = [
            "plan",
            text(&input),
            text(&target),
            text(&job),
            "--part-frames",
            "2",
        ];
        let options: Vec<&str> = options
            .into_iter()
            .filter(|&word| !["--engine", "cpu"].contains(&word))
            .collect();
        done(&[&ends, &options[..]].concat());
        let parts = framepipe(&["run", text(&job)]);
        for run in [&single, &parts] {
            assert_eq!(run.status.success(), !is_refused, "{name}: {}", said(run));
            assert_eq!(said(run).matches(&words).count(), 1, "{name}: {}", said(run));
        }
    }
}

#[test]
fn frames_with_numbers_are_cut_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let frames = frames(folder.path(), 20);
    for (input, output) in [
        ("synthetic:64x48:yuv420p:25:30".into(), "made.mkv"),
        (frames.join("f.%04d.png"), "video.mkv"),
    ] {
        let options = ["--filter", "laplacian8", "--encoder", "ffv1"];
        let whole = folder.path().join("whole.mkv");
        let expected = single_run(&input, &whole, &options);
        let target = folder.path().join(output);
        let job = folder.path().join(output).with_extension("job");
        done(
            &[
                &[
                    "plan",
                    text(&input),
                    text(&target),
                    text(&job),
                    "--part-frames",
                    "7",
                ],
                &options[..],
            ]
            .concat(),
        );
        done(&["run", text(&job), "--keep-parts"]);
        let joined = folder.path().join("joined.hashes");
        done(&[
            "filter",
            text(&target),
            "null:",
            "--filter",
            "identity",
            "--frame-hashes",
            text(&joined),
            "-y",
        ]);
        let listed = std::fs::read_to_string(&joined).unwrap();
        let hash = |row: &str| row.rsplit(' ').next().unwrap().to_owned();
        let found: Vec<String> = listed
            .lines()
            .filter(|row| !row.starts_with('#'))
            .map(hash)
            .collect();
        let wanted: Vec<String> = expected.into_iter().map(|(_, hash)| hash).collect();
        assert_eq!(found, wanted, "{output}");
        assert!(
            done(&["diff", text(&whole), text(&target)]).contains("are equal"),
            "{output}"
        );
    }
}

#[test]
fn the_plan_says_what_is_assumed_and_workers_log_as_much_as_their_driver() {
    let folder = tempfile::tempdir().unwrap();
    let input = frames(folder.path(), 8);
    let name = |name: &str| text(&folder.path().join(name)).to_owned();
    let plan = |job: &str, options: &[&str]| {
        let (output, job) = (name(&format!("{job}.mkv")), name(job));
        let rest = ["-f", "soft", "--encoder", "ffv1", "--parts", "2"];
        done(&[&["plan", text(&input), &output, &job][..], options, &rest].concat())
    };
    let assumed = "no --fps: 25 frames/s are assumed";
    assert_eq!(plan("quiet", &[]).matches(assumed).count(), 1);
    assert_eq!(done(&["run", "-q", &name("quiet")]), "");
    assert_eq!(plan("loud", &["-q"]), "");
    assert!(!plan("verbose", &["-v"]).contains("none: "));
    let said = done(&["run", "-v", &name("loud")]);
    assert!(said.contains(" INFO ") && !said.contains(assumed), "{said}");
    assert!(!said.contains("none: "), "{said}");
    done(&["part", "-q", &name("verbose"), "0-1"]);
    assert!(!done(&["join", &name("verbose")]).contains(assumed));
}

#[test]
fn what_is_one_piece_is_one_part() {
    let folder = tempfile::tempdir().unwrap();
    let frames = frames(folder.path(), 9);
    let input = frames.join("f.%04d.png");
    for output in ["anim.gif", "out.y4m"] {
        let whole = folder.path().join(format!("whole-{output}"));
        single_run(&input, &whole, &["--filter", "soft"]);
        let job = Job::plan(
            &input,
            &format!("../{output}"),
            &["--filter", "soft", "--parts", "4"],
        );
        assert_eq!(job.parts, 1, "{output}");
        job.make([0]);
        assert!(done(&["check", text(&job.folder)]).contains("1 of 1 part made again"));
        job.join();
        assert!(
            std::fs::read(&job.output).unwrap() == std::fs::read(&whole).unwrap(),
            "{output}"
        );
    }
    let raw = |name: &str| format!("raw:{}", folder.path().join(name).display());
    done(&["filter", text(&input), &raw("whole.raw"), "--filter", "soft"]);
    let job = folder.path().join("raw.job");
    done(&[
        "plan",
        text(&input),
        &raw("out.raw"),
        text(&job),
        "--filter",
        "soft",
    ]);
    done(&["run", text(&job)]);
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(bytes("out.raw") == bytes("whole.raw"));
    let job = folder.path().join("none");
    for (input, output, word) in [
        ("-", "a.mkv", "pipe"),
        (text(&input), "-", "pipe"),
        (text(&input), "null:", "null:"),
    ] {
        let text = refused(&["plan", input, output, text(&job), "--filter", "soft"], 2);
        assert!(text.contains(word), "{text}");
    }
    let rate = ["--encoder-option", "b=1M", "--filter", "soft"];
    let refused = refused(
        &[&["plan", text(&input), "a.mkv", text(&job)], &rate[..]].concat(),
        2,
    );
    assert!(refused.contains("--quality"), "{refused}");
    assert!(!job.exists());
}
