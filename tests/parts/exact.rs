//! Videos: every kind of stream, cut at key frames and anywhere.

use super::common::{ffmpeg, is_whole_matrix};
use super::{Job, done, refused, said, single_run, text};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;

const MOVING: &str = "testsrc2=size=96x64:rate=25:duration=3";
const TONE: &str = "sine=frequency=440:duration=3";

/// A clip with sound, made with these options of FFmpeg's.
fn clip(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let mut words = vec!["-f", "lavfi", "-i", MOVING, "-f", "lavfi", "-i", TONE];
    words.extend(options);
    words.push(text(&path));
    ffmpeg(&words);
    path
}

/// Runs ffprobe.
fn ffprobe(words: &[&str]) -> Vec<u8> {
    let output = Command::new("ffprobe")
        .args(["-v", "error"])
        .args(words)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Packets of the picture, and a hash of the sound's, as FFmpeg reads them.
fn packets(path: &Path) -> (String, String) {
    let shown = [
        "-select_streams",
        "v",
        "-show_entries",
        "packet=pts_time,duration_time",
        "-of",
        "csv=p=0",
    ];
    let mut words = shown.to_vec();
    words.push(text(path));
    let times = String::from_utf8(ffprobe(&words)).unwrap();
    // In the order of presentation: encoders of parts put other frames first.
    let mut times: Vec<&str> = times.lines().collect();
    times.sort_by(|a, b| {
        let time = |row: &str| row.split(',').next().unwrap().parse::<f64>().unwrap_or(0.0);
        time(a).total_cmp(&time(b))
    });
    let sound = ffmpeg(&["-i", text(path), "-map", "0:a?", "-c", "copy", "-f", "md5", "-"]);
    (times.join("\n"), String::from_utf8(sound).unwrap())
}

/// The pictures as FFmpeg decodes them.
fn pictures(path: &Path) -> String {
    let words = ["-i", text(path), "-map", "0:v:0", "-f", "framemd5", "-"];
    String::from_utf8(ffmpeg(&words)).unwrap()
}

/// Closed and open groups, leading pictures, hidden frames, reordering, containers with and without an index.
const CASES: &[(&str, &[&str])] = &[
    ("closed.mp4", &["-c:v", "libx264", "-g", "12", "-bf", "3"]),
    (
        "open.mkv",
        &[
            "-c:v",
            "libx264",
            "-x264-params",
            "open-gop=1:keyint=12:min-keyint=12:bframes=3:scenecut=0",
        ],
    ),
    (
        "cra.mp4",
        &[
            "-c:v",
            "libx265",
            "-x265-params",
            "log-level=none:open-gop=1:keyint=12:min-keyint=12:scenecut=0",
        ],
    ),
    (
        "vp9.webm",
        &[
            "-c:v",
            "libvpx-vp9",
            "-g",
            "12",
            "-deadline",
            "realtime",
            "-auto-alt-ref",
            "1",
        ],
    ),
    ("ffv1.mkv", &["-c:v", "ffv1", "-g", "10"]),
    // The first picture comes after the container's zero, and a second without pictures is in the middle.
    (
        "late.mkv",
        &[
            "-c:v",
            "ffv1",
            "-g",
            "10",
            "-vf",
            "setpts='(N+gte(N,20)*25)/25/TB+0.021/TB'",
            "-fps_mode",
            "passthrough",
        ],
    ),
    ("mpeg4.avi", &["-c:v", "mpeg4", "-g", "12", "-bf", "2"]),
    ("mpeg2.ts", &["-c:v", "mpeg2video", "-g", "12", "-bf", "2"]),
    ("mpeg2.mpg", &["-c:v", "mpeg2video", "-g", "12", "-bf", "2"]),
    (
        "refresh.mp4",
        &[
            "-c:v",
            "libx264",
            "-x264-params",
            "intra-refresh=1:keyint=12:bframes=0",
        ],
    ),
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
            "6",
        ],
    ),
];

#[test]
fn a_joined_video_is_that_of_a_single_run() {
    CASES.par_iter().with_max_len(1).for_each(|(name, options)| {
        let folder = tempfile::tempdir().unwrap();
        let input = clip(folder.path(), name, options);
        let filter = ["--filter", "box:size=3", "--encoder", "ffv1"];
        let whole = folder.path().join("whole.mkv");
        let expected = single_run(&input, &whole, &filter);
        let (read, decoded) = (packets(&whole), pictures(&whole));
        // One part says little that several do not.
        let alone = if is_whole_matrix() { 0 } else { 1 };
        for cut in [
            &["--parts", "1"][..],
            &["--parts", "4"],
            &["--parts", "7", "--cut-anywhere"],
        ]
        .into_iter()
        .skip(alone)
        {
            let job = Job::plan(&input, "joined.mkv", &[&filter[..], cut].concat());
            let is_cut = match *name {
                // Seeking is not exact in them, or there is one picture that stands by itself.
                "mpeg2.ts" | "mpeg2.mpg" | "mpeg4.avi" | "refresh.mp4" => cut.len() > 2,
                _ => cut[1] != "1",
            };
            assert_eq!(job.parts > 1, is_cut, "{name} {cut:?}: {} parts", job.parts);
            job.make_shuffled();
            job.join();
            assert_eq!(job.hashes(), expected, "{name} {cut:?}");
            assert_eq!(packets(&job.output), read, "{name} {cut:?}");
            assert_eq!(pictures(&job.output), decoded, "{name} {cut:?}");
            std::fs::remove_file(&job.output).unwrap();
            std::fs::remove_dir_all(&job.folder).unwrap();
        }
    });
}

/// Of packets of a program stream not each has a time.
#[test]
fn more_parts_than_frames_leave_no_part_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["-c:v", "mpeg2video", "-g", "12", "-bf", "2"];
    let input = clip(folder.path(), "mpeg2.mpg", &options);
    let filter = ["--filter", "box:size=3", "--encoder", "ffv1"];
    for range in [&["--start", "1.019", "--duration", "0.5"][..], &["--end", "0.4"]] {
        let whole = folder.path().join("whole.mkv");
        let options = [&filter[..], range].concat();
        let expected = single_run(&input, &whole, &options);
        let cut = ["--parts", "1000", "--cut-anywhere"];
        let job = Job::plan(&input, "joined.mkv", &[&options[..], &cut].concat());
        assert!(job.parts > 1 && job.parts <= expected.len(), "{}", job.parts);
        job.make(0..job.parts);
        job.join();
        assert_eq!(job.hashes(), expected, "{range:?}");
        assert_eq!(pictures(&job.output), pictures(&whole), "{range:?}");
        std::fs::remove_file(&job.output).unwrap();
        std::fs::remove_dir_all(&job.folder).unwrap();
    }
}

#[test]
fn lossy_parts_hold_the_frames_times_and_sound_of_a_single_run() {
    let folder = tempfile::tempdir().unwrap();
    let input = clip(
        folder.path(),
        "in.mp4",
        &["-c:v", "libx264", "-g", "12", "-bf", "3", "-c:a", "aac"],
    );
    for (output, encoder) in [
        ("out.mp4", &["--encoder", "libx264", "--preset", "veryfast"][..]),
        ("out.mkv", &["--encoder", "libx265", "--preset", "ultrafast"]),
        ("out.mov", &["--encoder", "prores_ks"]),
        ("out.avi", &["--encoder", "mpeg4"]),
        ("out.ts", &["--encoder", "libx264", "--preset", "veryfast"]),
    ] {
        let options = [&["--filter", "gaussian:1", "--encoder-threads", "1"], encoder].concat();
        let whole = folder
            .path()
            .join("whole")
            .with_extension(Path::new(output).extension().unwrap());
        let expected = single_run(&input, &whole, &options);
        let job = Job::plan(&input, output, &[&options[..], &["--parts", "5"]].concat());
        assert!(job.parts >= 4, "{output}: {}", job.parts);
        job.make_shuffled();
        job.join();
        assert_eq!(job.hashes(), expected, "{output}");
        assert_eq!(packets(&job.output), packets(&whole), "{output}");
        // A part's first picture is an IDR picture, and all of them can be decoded.
        let read = pictures(&job.output);
        assert_eq!(
            read.lines().filter(|row| !row.starts_with('#')).count(),
            expected.len(),
            "{output}"
        );
        // The same plan gives the same bits.
        let again = Job::plan(
            &input,
            &format!("again-{output}"),
            &[&options[..], &["--parts", "5"]].concat(),
        );
        again.make((0..again.parts).rev());
        again.join();
        assert_eq!(pictures(&again.output), read, "{output}");
    }
}

#[test]
fn frames_are_filtered_in_floats_in_parts_too() {
    let folder = tempfile::tempdir().unwrap();
    let input = clip(
        folder.path(),
        "in.mp4",
        &["-c:v", "libx264", "-g", "12", "-t", "1"],
    );
    let options = ["-f", "sobel", "--pixel-format", "rgbf32", "--encoder", "ffv1"];
    let mut job = Job::plan(&input, "out.mkv", &[&options[..], &["--parts", "2"]].concat());
    assert_eq!(job.parts, 2);
    let made = said(&job.part(0, &["--engine", "cpu", "--explain"]));
    assert!(made.contains("cpu: ") && !made.contains("none: "), "{made}");
    job.make([1]);
    let checked = done(&[
        "check",
        text(&job.folder),
        "--engine",
        "cpu",
        "--explain",
        "--sample",
        "1",
    ]);
    assert!(checked.contains("cpu: "), "{checked}");
    job.join();
    let single = folder.path().join("single.mkv");
    assert_eq!(job.hashes(), single_run(&input, &single, &options));
    assert_eq!(pictures(&job.output), pictures(&single));
    // Levels of the input's own depth would be other pictures.
    job.output = folder.path().join("levels.mkv");
    single_run(&input, &job.output, &["-f", "sobel", "--encoder", "ffv1"]);
    assert_ne!(pictures(&job.output), pictures(&single));
}

#[test]
fn irregular_times_that_the_joined_file_cannot_hold_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    let video = "testsrc2=s=64x48:r=25:d=1,setpts='if(lt(N,12),PTS,PTS+0.5/TB)'";
    let sources = [
        "-f",
        "lavfi",
        "-i",
        video,
        "-f",
        "lavfi",
        "-i",
        "sine=r=48000:d=1.5",
    ];
    let encoding = [
        "-fps_mode",
        "vfr",
        "-c:v",
        "libx264",
        "-g",
        "5",
        "-c:a",
        "pcm_s16le",
    ];
    ffmpeg(&[&sources, &encoding[..], &[text(&input)]].concat());
    for (output, encoder, is_lost) in [("joined.avi", "mpeg4", false), ("joined.mxf", "mpeg2video", true)] {
        let options = ["--filter", "identity", "--encoder", encoder, "--parts", "3"];
        let job = Job::plan(&input, output, &options);
        assert!(job.parts > 1);
        job.make(0..job.parts);
        let said = job.join();
        assert_eq!(
            said.contains("the timestamps are irregular"),
            is_lost,
            "{output}: {said}"
        );
        let pcm = |path: &Path| ffmpeg(&["-i", text(path), "-map", "0:a", "-t", "1", "-f", "s16le", "-"]);
        let (sound, expected) = (pcm(&job.output), pcm(&input));
        assert!(
            sound.starts_with(&expected[..expected.len() / 2]),
            "{output}: {said}"
        );
    }
}

#[test]
fn a_range_chapters_and_texts_are_those_of_a_single_run() {
    let folder = tempfile::tempdir().unwrap();
    let marks = folder.path().join("marks.txt");
    std::fs::write(
        &marks,
        ";FFMETADATA1\ntitle=A video\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=1000\ntitle=one\n[CHAPTER]\n\
         TIMEBASE=1/1000\nSTART=1000\nEND=3000\ntitle=two\n",
    )
    .unwrap();
    let plain = clip(
        folder.path(),
        "plain.mkv",
        &["-c:v", "libx264", "-g", "6", "-c:a", "flac"],
    );
    let input = folder.path().join("in.mkv");
    ffmpeg(&[
        "-i",
        text(&plain),
        "-i",
        text(&marks),
        "-map_metadata",
        "1",
        "-c",
        "copy",
        text(&input),
    ]);
    let options = [
        "--filter",
        "soft",
        "--encoder",
        "ffv1",
        "--start",
        "0.5",
        "--end",
        "2.3",
    ];
    let whole = folder.path().join("whole.mkv");
    let expected = single_run(&input, &whole, &options);
    let job = Job::plan(&input, "joined.mkv", &[&options[..], &["--parts", "4"]].concat());
    assert!(job.parts > 1);
    job.make_shuffled();
    job.join();
    assert_eq!(job.hashes(), expected);
    assert_eq!(
        (packets(&job.output), pictures(&job.output)),
        (packets(&whole), pictures(&whole))
    );
    let described = |path: &Path| {
        let words = [
            "-show_chapters",
            "-show_entries",
            "format_tags=title",
            "-of",
            "json",
            text(path),
        ];
        String::from_utf8(ffprobe(&words)).unwrap()
    };
    assert_eq!(described(&job.output), described(&whole));
    assert!(described(&whole).contains("two"));
}

#[test]
fn a_list_plays_at_once_and_run_does_it_all() {
    let folder = tempfile::tempdir().unwrap();
    let input = clip(
        folder.path(),
        "in.mp4",
        &["-c:v", "libx264", "-g", "12", "-bf", "2"],
    );
    let options = ["--filter", "box:size=3", "--encoder", "ffv1", "--parts", "5"];
    let whole = folder.path().join("whole.mkv");
    single_run(&input, &whole, &options[..4]);
    let job = Job::plan(&input, "joined.mkv", &options);
    done(&["run", text(&job.folder), "--at-once", "2", "--layout", "list"]);
    let list = folder.path().join("joined.ffconcat");
    let seen = |path: &Path, options: &[&str]| {
        let words = [options, &["-i", text(path), "-map", "0:v", "-f", "framemd5", "-"]].concat();
        let listed = String::from_utf8(ffmpeg(&words)).unwrap();
        let rows = listed.lines().filter(|row| !row.starts_with('#'));
        rows.map(|row| row.rsplit(',').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(&list, &["-safe", "0"]), seen(&whole, &[]));
    // The parts are there still, so that the file needs no work but the join's.
    let run = done(&["run", text(&job.folder)]);
    assert!(run.contains("joined") && !run.contains("part 0"), "{run}");
    assert_eq!(pictures(&job.output), pictures(&whole));
    // The data are gone with the join, and everybody knows why.
    assert!(done(&["status", text(&job.folder)]).contains("; joined"));
    assert!(done(&["run", text(&job.folder)]).contains("is there already"));
    // What is gone is made again; what was changed is not replaced.
    std::fs::remove_file(&job.output).unwrap();
    let gone = format!("{} is gone", job.output.display());
    assert!(refused(&["join", text(&job.folder)], 1).contains(&gone));
    let status = done(&["status", text(&job.folder)]);
    assert!(status.contains(&gone) && !status.contains("; joined"), "{status}");
    let run = done(&["run", text(&job.folder)]);
    assert!(run.contains(&gone) && run.contains("joined"), "{run}");
    assert_eq!(pictures(&job.output), pictures(&whole));
    std::fs::write(&job.output, "garbage").unwrap();
    let changed = format!("{} has 7 bytes", job.output.display());
    for command in ["run", "join"] {
        assert!(refused(&[command, text(&job.folder)], 1).contains(&changed));
    }
    let status = done(&["status", text(&job.folder)]);
    assert!(
        status.contains(&changed) && !status.contains("; joined"),
        "{status}"
    );
    assert_eq!(std::fs::read(&job.output).unwrap(), b"garbage");
    // An output that is there already is not the job's.
    let other = Job::plan(&input, "other.mkv", &options);
    std::fs::write(&other.output, "mine").unwrap();
    let refusal = refused(&["join", text(&other.folder)], 2);
    assert!(
        refusal.contains("--overwrite given to `framepipe plan`"),
        "{refusal}"
    );
}

#[test]
fn parts_can_be_made_again_by_any_engine_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let input = clip(
        folder.path(),
        "in.mp4",
        &["-c:v", "libx264", "-g", "12", "-bf", "2"],
    );
    let job = Job::plan(&input, "joined.mp4", &["--filter", "gaussian:2", "--parts", "5"]);
    job.make(0..job.parts);
    let checked = done(&[
        "check",
        text(&job.folder),
        "--sample",
        "2",
        "--engine",
        "reference",
    ]);
    assert!(
        checked.contains("2 of 5 parts") || checked.contains("all the same"),
        "{checked}"
    );
    // A record that claims another frame is found.
    let record = job.folder.join("parts/00000.json");
    let claim = std::fs::read_to_string(&record).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&claim).unwrap();
    value["frames"][3][2] = "0123456789abcdef0123456789abcdef".into();
    std::fs::write(&record, value.to_string()).unwrap();
    let found = refused(&["check", text(&job.folder), "--sample", "1"], 1);
    assert!(found.contains("frame 3 of part 0"), "{found}");
}

#[test]
fn changes_are_named_by_the_time_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mpg");
    let video = [
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=96x64:r=24000/1001:d=2",
        "-vf",
        "telecine",
    ];
    let encoding = ["-c:v", "mpeg2video", "-flags", "+ildct", text(&input)];
    ffmpeg(&[&video[..], &encoding].concat());
    let options = [
        "--filter",
        "box",
        "--encoder",
        "ffv1",
        "--parts",
        "3",
        "--cut-anywhere",
    ];
    let job = Job::plan(&input, "out.mkv", &options);
    let plan = std::fs::read(job.folder.join("plan.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&plan).unwrap();
    let shown = [
        "-show_entries",
        "frame=best_effort_timestamp_time,top_field_first",
        "-of",
        "json",
    ];
    let found = ffprobe(&[&shown[..], &[text(&input)]].concat());
    let found: serde_json::Value = serde_json::from_slice(&found).unwrap();
    // The last one may have no time.
    let times = found["frames"].as_array().unwrap().iter().filter_map(|frame| {
        let time = frame["best_effort_timestamp_time"].as_str()?;
        Some((time.parse().unwrap(), frame["top_field_first"].as_i64().unwrap()))
    });
    let frames: Vec<(f64, i64)> = times.collect();
    for part in [1, 2] {
        let begins = plan["parts"][part]["extent"]["ticks"]["begin"].as_f64().unwrap() / 90000.0;
        let on_clock = frames.iter().map(|&(time, order)| (time - frames[0].0, order));
        let own: Vec<(f64, i64)> = on_clock.filter(|&(time, _)| time > begins - 1e-4).collect();
        let changed = own.iter().find(|&&(_, order)| order != own[0].1).unwrap().0;
        let words = format!("the input changes: from {changed:.3} s on");
        let made = job.part(part, &[]);
        assert!(said(&made).contains(&words), "{words}: {}", said(&made));
    }
}

/// What only the container says of the picture: the shape of pixels, and that packets have alpha.
#[test]
fn facts_of_the_container_alone_outlive_the_join() {
    let folder = tempfile::tempdir().unwrap();
    let oblong = ["-vf", "setsar=8/9", "-c:v", "prores_ks", "-c:a", "pcm_s16le"];
    let alpha = "format=yuva420p,geq=lum='p(X,Y)':a='X*2'";
    let alpha = [
        "-vf",
        alpha,
        "-c:v",
        "libvpx-vp9",
        "-g",
        "12",
        "-deadline",
        "realtime",
        "-c:a",
        "libopus",
    ];
    for (name, options, encoder) in [
        ("oblong.mov", &oblong[..], "prores_ks"),
        ("alpha.webm", &alpha, "libvpx-vp9"),
    ] {
        let input = clip(folder.path(), name, options);
        let filter = ["--filter", "box:size=3", "--encoder", encoder, "--strict"];
        let whole = folder.path().join(format!("whole-{name}"));
        single_run(&input, &whole, &filter);
        let job = Job::plan(
            &input,
            &format!("joined-{name}"),
            &[&filter[..], &["--parts", "3"]].concat(),
        );
        job.make_shuffled();
        job.join();
        let facts = |path: &Path| {
            let shown = "stream=sample_aspect_ratio,codec_name:stream_tags=alpha_mode";
            let words = [
                "-select_streams",
                "v",
                "-show_entries",
                shown,
                "-of",
                "csv=p=0",
                text(path),
            ];
            String::from_utf8(ffprobe(&words)).unwrap()
        };
        let joined = facts(&job.output);
        assert_eq!(joined, facts(&whole), "{name}");
        assert!(
            joined.contains("8:9") || joined.trim().ends_with(",1"),
            "{name}: {joined}"
        );
    }
}

/// A range that begins between two pictures, of a video that begins behind its sound.
#[test]
fn a_range_counts_by_the_clock_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["-c:v", "libx264", "-g", "12", "-bf", "2", "-c:a", "aac"];
    let near = clip(folder.path(), "near.mkv", &options);
    let far = folder.path().join("far.mkv");
    let tone = ["-f", "lavfi", "-i", "sine=duration=8", "-itsoffset", "5"];
    let maps = ["-map", "1:v", "-map", "0:a", "-c:v", "copy", "-c:a", "aac"];
    ffmpeg(&[&tone[..], &["-i", text(&near)], &maps, &[text(&far)]].concat());
    for (input, range) in [
        (&near, &["--start", "1", "--part-frames", "10"][..]),
        (&near, &["--start", "2.97"]),
        (&near, &["--end", "2", "--part-frames", "25", "--cut-anywhere"]),
        (&far, &["--start", "6.01", "--part-frames", "12"]),
        (&far, &["--start", "7.9"]),
    ] {
        let filter = ["--filter", "box:size=3", "--encoder", "ffv1"];
        let limits: Vec<&str> = range.iter().take(2).copied().collect();
        let whole = folder.path().join("whole.mkv");
        let expected = single_run(input, &whole, &[&filter[..], &limits].concat());
        let job = Job::plan(input, "joined.mkv", &[&filter[..], range].concat());
        job.make_shuffled();
        job.join();
        assert_eq!(job.hashes(), expected, "{range:?}");
        if range.contains(&"25") {
            assert_eq!(job.parts, 2);
        }
        std::fs::remove_file(&job.output).unwrap();
        std::fs::remove_dir_all(&job.folder).unwrap();
    }
}
