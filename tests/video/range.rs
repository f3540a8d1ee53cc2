//! Ranges of an input: pieces put together are the whole, picture by picture and tick by tick, whatever the
//! codec refers to and however the container keeps time; FFmpeg makes the inputs and reads the outputs.

use crate::common::{PROGRAM, ffmpeg, is_whole_matrix, probe, said};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn framepipe(input: &str, output: &str, options: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(["filter", input, output, "--filter", "identity", "--overwrite"])
        .args(options)
        .output()
        .unwrap()
}

fn filtered(input: &Path, output: &Path, options: &[&str]) -> String {
    let done = framepipe(input.to_str().unwrap(), output.to_str().unwrap(), options);
    assert!(done.status.success(), "{input:?} {options:?}: {}", said(&done));
    said(&done)
}

/// Time and hash of each frame of a file, in microseconds.
type Hashed = Vec<(i64, String)>;

fn frames(path: &Path) -> Hashed {
    frames_of_all(&[path.to_owned()]).remove(0)
}

/// As [`frames`], of several files by one run of FFmpeg.
fn frames_of_all(paths: &[PathBuf]) -> Vec<Hashed> {
    let hashes: Vec<PathBuf> = paths.iter().map(|path| path.with_extension("md5")).collect();
    let mut arguments = vec!["-copyts"];
    for path in paths {
        arguments.extend(["-i", path.to_str().unwrap()]);
    }
    let maps: Vec<String> = (0..paths.len()).map(|number| format!("{number}:v:0")).collect();
    for (map, hash) in maps.iter().zip(&hashes) {
        arguments.extend([
            "-map",
            map,
            "-fps_mode",
            "passthrough",
            "-enc_time_base",
            "1:1000000",
        ]);
        arguments.extend(["-c:v", "rawvideo", "-f", "framehash", "-hash", "md5"]);
        arguments.push(hash.to_str().unwrap());
    }
    ffmpeg(&arguments);
    let columns = |row: &str| -> Vec<String> { row.split(',').map(|c| c.trim().to_owned()).collect() };
    let read = |path: &PathBuf| -> Hashed {
        let text = std::fs::read_to_string(path).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#')).map(columns);
        rows.map(|mut row| (row[2].parse().unwrap(), row.swap_remove(5)))
            .collect()
    };
    hashes.iter().map(read).collect()
}

const MOVING: &str = "testsrc2=size=96x64:rate=25:duration=4";

/// A clip in `folder`, made with these options of FFmpeg's.
fn clip(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let mut all = vec!["-f", "lavfi", "-i", MOVING];
    all.extend(options);
    all.push(path.to_str().unwrap());
    ffmpeg(&all);
    path
}

/// The whole as frames of a lossless file.
fn whole(input: &Path) -> Hashed {
    let output = input.with_extension("whole.mkv");
    filtered(input, &output, &["--encoder", "ffv1", "--no-audio"]);
    frames(&output)
}

/// Pieces that begin at these seconds, put together; each must end where the next one begins.
fn pieces(input: &Path, starts: &[f64], more: &[&str]) -> Hashed {
    let (mut outputs, mut shifts) = (Vec::new(), Vec::new());
    for (number, &start) in starts.iter().enumerate() {
        let output = input.with_extension(format!("piece-{number}.mkv"));
        let (start_text, end_text) = (start.to_string(), starts.get(number + 1).map(f64::to_string));
        let mut options = vec!["--encoder", "ffv1", "--start", &start_text];
        options.extend(more);
        if let Some(end) = &end_text {
            options.extend(["--end", end]);
        }
        filtered(input, &output, &options);
        // A piece begins with a tick, which some containers have once a frame.
        let extension = input.extension().unwrap().to_str().unwrap();
        let is_coarse = ["avi", "h264", "ogv"].contains(&extension);
        let start = if is_coarse {
            (start * 25.0).ceil() / 25.0
        } else {
            start
        };
        shifts.push((start * 1e6).round() as i64);
        outputs.push(output);
    }
    let pieces = frames_of_all(&outputs).into_iter().zip(shifts);
    pieces
        .flat_map(|(frames, shift)| frames.into_iter().map(move |(at, hash)| (at + shift, hash)))
        .collect()
}

/// Compares pieces with the whole; times within the millisecond that Matroska rounds to, twice.
fn assert_same(name: &str, whole: &[(i64, String)], pieces: &[(i64, String)]) {
    let hashes = |frames: &[(i64, String)]| frames.iter().map(|(_, hash)| hash.clone()).collect::<Vec<_>>();
    assert_eq!(pieces.len(), whole.len(), "{name}: frames");
    let first = hashes(whole)
        .iter()
        .zip(hashes(pieces))
        .position(|(a, b)| *a != b);
    assert_eq!(first, None, "{name}: the first frame that differs");
    for (number, (expected, found)) in whole.iter().zip(pieces).enumerate() {
        assert!(
            (expected.0 - found.0).abs() <= 2000,
            "{name}: frame {number} at {} us for {}",
            found.0,
            expected.0
        );
    }
}

/// Containers and codecs with what is hard about each.
const CASES: &[(&str, &[&str])] = &[
    ("closed.mp4", &["-c:v", "libx264", "-g", "20", "-bf", "3"]),
    ("closed.mkv", &["-c:v", "libx264", "-g", "20", "-bf", "3"]),
    (
        "open.mkv",
        &[
            "-c:v",
            "libx264",
            "-x264-params",
            "open-gop=1:keyint=20:min-keyint=20:bframes=3:scenecut=0",
        ],
    ),
    (
        "open.ts",
        &[
            "-c:v",
            "libx264",
            "-x264-params",
            "open-gop=1:keyint=20:min-keyint=20:bframes=3:scenecut=0",
        ],
    ),
    (
        "refresh.mp4",
        &[
            "-c:v",
            "libx264",
            "-x264-params",
            "intra-refresh=1:keyint=20:bframes=0",
        ],
    ),
    (
        "cra.mp4",
        &[
            "-c:v",
            "libx265",
            "-x265-params",
            "log-level=none:open-gop=1:keyint=20:min-keyint=20:scenecut=0",
        ],
    ),
    (
        "cra.mkv",
        &[
            "-c:v",
            "libx265",
            "-x265-params",
            "log-level=none:open-gop=1:keyint=20:min-keyint=20:scenecut=0",
        ],
    ),
    (
        "vp9.webm",
        &[
            "-c:v",
            "libvpx-vp9",
            "-g",
            "20",
            "-deadline",
            "realtime",
            "-auto-alt-ref",
            "1",
        ],
    ),
    (
        "vp8.webm",
        &[
            "-c:v",
            "libvpx",
            "-g",
            "20",
            "-auto-alt-ref",
            "1",
            "-lag-in-frames",
            "10",
        ],
    ),
    (
        "av1.mkv",
        &[
            "-c:v",
            "libaom-av1",
            "-g",
            "20",
            "-cpu-used",
            "8",
            "-lag-in-frames",
            "10",
        ],
    ),
    ("ffv1.mkv", &["-c:v", "ffv1", "-g", "10"]),
    ("mpeg2.mpg", &["-c:v", "mpeg2video", "-g", "15", "-bf", "2"]),
    ("mpeg2.ts", &["-c:v", "mpeg2video", "-g", "15", "-bf", "2"]),
    ("mpeg4.avi", &["-c:v", "mpeg4", "-g", "20", "-bf", "2"]),
    ("mjpeg.avi", &["-c:v", "mjpeg"]),
    ("mpeg4.mp4", &["-c:v", "mpeg4", "-g", "20", "-bf", "2"]),
    ("bare.h264", &["-c:v", "libx264", "-g", "20", "-bf", "3"]),
    ("theora.ogv", &["-c:v", "libtheora", "-g", "20"]),
    ("flash.flv", &["-c:v", "flv", "-g", "20"]),
    ("palette.gif", &[]),
    ("inter.apng", &["-c:v", "apng"]),
    ("one-key.mp4", &["-c:v", "libx264", "-g", "1000", "-bf", "3"]),
];

#[test]
fn pieces_put_together_are_the_whole() {
    put_together(&CASES[..CASES.len() / 2]);
}

#[test]
fn pieces_of_other_containers_are_the_whole_too() {
    put_together(&CASES[CASES.len() / 2..]);
}

/// Cuts each clip into 2 and 7 pieces and into single frames. Without FRAMEPIPE_WHOLE_MATRIX=1 clips in turn
/// are cut into 7 and into 2, and fewer frames are taken singly.
fn put_together(cases: &[(&str, &[&str])]) {
    let folder = tempfile::tempdir().unwrap();
    for (turn, (name, options)) in cases.iter().enumerate() {
        let input = clip(folder.path(), name, options);
        let expected = whole(&input);
        assert!(expected.len() >= 95, "{name}: {} frames", expected.len());
        let cuts = [&[0.0, 0.5, 0.81, 1.6, 2.4, 3.0, 3.9][..], &[0.0, 2.02]];
        let tried = if is_whole_matrix() {
            &cuts[..]
        } else {
            &cuts[turn % 2..][..1]
        };
        for starts in tried {
            assert_same(
                name,
                &expected,
                &pieces(&input, starts, &["--no-audio", "--strict"]),
            );
        }
        // Single frames, at and between key frames; times of the whole lie half a frame apart at least.
        let singles = [20 + turn % 2, 94, 0, 19, 20, 21];
        let tried = if is_whole_matrix() { singles.len() } else { 2 };
        let mut outputs = Vec::new();
        let mut cut = |range: &[&str]| {
            let output = input.with_extension(format!("cut-{}.mkv", outputs.len()));
            filtered(
                &input,
                &output,
                &[&["--encoder", "ffv1", "--no-audio"], range].concat(),
            );
            outputs.push(output);
        };
        for &number in &singles[..tried] {
            let start = (expected[number].0 as f64 - 10_000.0).max(0.0) / 1e6;
            cut(&["--start", &start.to_string(), "--frames", "1"]);
        }
        // Several by their numbers.
        cut(&["--start", "37f", "--duration", "5f"]);
        let wanted = singles[..tried]
            .iter()
            .map(|&number| number..number + 1)
            .chain(std::iter::once(37..42));
        for (found, wanted) in frames_of_all(&outputs).into_iter().zip(wanted) {
            let hashes = |frames: &[(i64, String)]| frames.iter().map(|f| f.1.clone()).collect::<Vec<_>>();
            assert_eq!(
                hashes(&found),
                hashes(&expected[wanted.clone()]),
                "{name}: frames {wanted:?}"
            );
        }
    }
}

#[test]
fn variable_rates_edit_lists_and_joined_recordings_are_cut_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let uneven = clip(
        folder.path(),
        "uneven.mkv",
        &[
            "-vf",
            "select='mod(n,7)*mod(n,3)'",
            "-fps_mode",
            "passthrough",
            "-c:v",
            "libx264",
            "-g",
            "10",
        ],
    );
    let base = clip(
        folder.path(),
        "base.mp4",
        &["-c:v", "libx264", "-g", "25", "-bf", "3"],
    );
    let edited = folder.path().join("edited.mp4");
    ffmpeg(&[
        "-ss",
        "0.5",
        "-i",
        base.to_str().unwrap(),
        "-c",
        "copy",
        edited.to_str().unwrap(),
    ]);
    // Where reading stops soon behind the first longer step, it could be a hole.
    let slower = clip(
        folder.path(),
        "slower.ts",
        &[
            "-vf",
            "select='if(lt(t,1),1,not(mod(n,5)))'",
            "-fps_mode",
            "vfr",
            "-c:v",
            "libx264",
        ],
    );
    for options in [&[][..], &["--end", "1.1"], &["--frames", "27"]] {
        let done = filtered(&slower, Path::new("null:"), options);
        assert!(!done.contains("warning"), "{options:?}: {done}");
    }
    // Two recordings one behind the other: the clock goes back in the middle.
    let part = clip(
        folder.path(),
        "part.ts",
        &["-c:v", "libx264", "-g", "25", "-bf", "2"],
    );
    let joined = folder.path().join("joined.ts");
    let bytes = std::fs::read(&part).unwrap();
    std::fs::write(&joined, [&bytes[..], &bytes[..]].concat()).unwrap();
    for (path, starts) in [
        (&uneven, &[0.0, 1.0, 2.5][..]),
        (&edited, &[0.0, 0.3, 1.7]),
        (&joined, &[0.0, 3.0, 5.0, 7.3]),
    ] {
        let name = path.display().to_string();
        let expected = whole(path);
        assert_same(&name, &expected, &pieces(path, starts, &[]));
    }
}

/// Seconds at which samples of `path` are loud for the first time.
fn first_sound(path: &Path) -> f64 {
    // Clocks that do not begin at zero are brought there, and others are left as they are.
    let begins_anywhere = path.extension().is_some_and(|e| e == "ts");
    let mut options = if begins_anywhere { vec![] } else { vec!["-copyts"] };
    options.extend(["-i", path.to_str().unwrap(), "-map", "0:a:0", "-af"]);
    options.extend([
        "aresample=async=1:first_pts=0",
        "-ac",
        "1",
        "-ar",
        "48000",
        "-f",
        "f32le",
        "-",
    ]);
    let samples = ffmpeg(&options);
    let loud = samples
        .chunks_exact(4)
        .position(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).abs() > 0.2);
    loud.unwrap() as f64 / 48000.0
}

#[test]
fn a_range_near_the_beginning_has_its_first_sound() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sound) in [
        ("a.avi", "pcm_s16le"),
        ("b.avi", "aac"),
        ("c.mkv", "pcm_s16le"),
        ("d.mov", "pcm_s16le"),
        ("e.mp4", "aac"),
    ] {
        let input = folder.path().join(name);
        let sine = "sine=f=440:r=48000:d=4,volume=8";
        let mut options = vec!["-f", "lavfi", "-i", MOVING, "-f", "lavfi", "-i", sine];
        options.extend(["-c:v", "libx264", "-bf", "0", "-g", "25", "-c:a", sound]);
        options.push(input.to_str().unwrap());
        ffmpeg(&options);
        for start in ["0.5", "1.5"] {
            let output = folder.path().join("out.mkv");
            filtered(
                &input,
                &output,
                &["--start", start, "--duration", "0.4", "--strict"],
            );
            let first = first_sound(&output);
            assert!(first < 0.05, "{name} from {start} s: silent for {first} s");
        }
    }
}

/// A clip of four seconds in `folder`, with sound, three chapters and, if `subtitle` is no empty name of an
/// encoder, three subtitles.
fn with_sound_and_words(folder: &Path, name: &str, subtitle: &str, sound: &str) -> PathBuf {
    let words = folder.join("words.srt");
    std::fs::write(
        &words,
        "1\n00:00:00,500 --> 00:00:01,000\nbefore\n\n2\n00:00:01,500 --> 00:00:02,500\nacross\n\n\
         3\n00:00:02,700 --> 00:00:03,000\nwithin\n",
    )
    .unwrap();
    let chapters = folder.join("chapters.txt");
    std::fs::write(
        &chapters,
        ";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=1000\ntitle=one\n[CHAPTER]\n\
         TIMEBASE=1/1000\nSTART=1000\nEND=2800\ntitle=two\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=2800\n\
         END=4000\ntitle=three\n",
    )
    .unwrap();
    // Silent but for a click from 2.6 to 2.7 s.
    let click = "aevalsrc='if(between(t,2.6,2.7),sin(6283*t),0)':s=48000:d=4";
    let input = folder.join(name);
    let mut options = vec!["-f", "lavfi", "-i", MOVING, "-f", "lavfi", "-i", click];
    options.extend(["-i", words.to_str().unwrap(), "-i", chapters.to_str().unwrap()]);
    options.extend([
        "-map",
        "0:v",
        "-map",
        "1:a",
        "-map_metadata",
        "3",
        "-c:v",
        "libx264",
        "-g",
        "20",
    ]);
    options.extend(["-c:a", sound]);
    if !subtitle.is_empty() {
        options.extend(["-map", "2:s", "-c:s", subtitle]);
    }
    options.push(input.to_str().unwrap());
    ffmpeg(&options);
    input
}

fn seconds(value: &serde_json::Value) -> f64 {
    value.as_str().map_or(0.0, |t| t.parse::<f64>().unwrap())
}

/// The chapters of such a clip from `start` to 3.2 s.
fn check_chapters(found: &serde_json::Value, start: f64, what: &str) {
    let titles: Vec<(String, f64, f64)> = found["chapters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            let title = c["tags"]["title"].as_str().unwrap_or_default().to_owned();
            (title, seconds(&c["start_time"]), seconds(&c["end_time"]))
        })
        .collect();
    let first = if start < 1.0 { "one" } else { "two" };
    assert_eq!(titles[0].0, first, "{what}: {titles:?}");
    assert_eq!(titles.last().unwrap().0, "three");
    let two = titles.iter().find(|(title, ..)| title == "two").unwrap();
    assert!((two.1 - (1.0 - start).max(0.0)).abs() < 0.01, "{titles:?}");
    assert!((two.2 - (2.8 - start)).abs() < 0.01, "{titles:?}");
    assert!(
        (titles.last().unwrap().2 - (3.2 - start)).abs() < 0.01,
        "{titles:?}"
    );
}

/// Its subtitles.
fn check_subtitles(found: &serde_json::Value, start: f64, what: &str) {
    let lines: Vec<f64> = found["packets"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| p["codec_type"] == "subtitle" && seconds(&p["duration_time"]) > 0.0)
        .map(|p| seconds(&p["pts_time"]))
        .collect();
    let across = (1.5 - start).max(0.0);
    assert!(
        lines.iter().any(|at| (at - across).abs() < 0.03),
        "{what}: {lines:?}"
    );
    assert!(
        lines.iter().any(|at| (at - (2.7 - start)).abs() < 0.03),
        "{what}: {lines:?}"
    );
}

#[test]
fn sound_subtitles_and_chapters_are_cut_to_the_range() {
    let folder = tempfile::tempdir().unwrap();
    for (name, subtitle, sound) in [
        ("a.mkv", "subrip", "pcm_s16le"),
        ("b.mkv", "subrip", "aac"),
        ("c.mp4", "mov_text", "aac"),
        ("d.mkv", "subrip", "libopus"),
        ("e.ts", "", "mp2"),
    ] {
        let input = with_sound_and_words(folder.path(), name, subtitle, sound);
        let before = first_sound(&input);
        for (output, start) in [("out.mkv", 2.0), ("out.mp4", 2.0), ("out.mov", 0.7)] {
            let output = folder.path().join(output);
            let what = format!("{name} to {output:?}");
            let start_text = start.to_string();
            let warnings = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| line.starts_with("warning"));
                lines.map(str::to_owned).collect()
            };
            let expected = warnings(&filtered(&input, &output, &[]));
            let found = warnings(&filtered(
                &input,
                &output,
                &["--start", &start_text, "--end", "3.2"],
            ));
            assert_eq!(found, expected, "{what}");
            let after = first_sound(&output);
            assert!(
                (before - start - after).abs() < 0.003,
                "{what}: the click at {before} s comes at {after} s"
            );
            let entries = "packet=codec_type,pts_time,duration_time";
            let wanted = ["-show_chapters", "-show_entries", entries, "-show_packets"];
            let found = probe(&output, &wanted);
            for packet in found["packets"].as_array().unwrap() {
                let at = seconds(&packet["pts_time"]);
                assert!(at < 3.2 - start + 0.05, "{what}: {packet}");
            }
            if name == "e.ts" {
                continue;
            }
            check_chapters(&found, start, &what);
            let is_mov = |path: &Path| path.extension().is_none_or(|e| e != "mkv");
            if is_mov(&input) == is_mov(&output) {
                check_subtitles(&found, start, &what);
            }
        }
    }
}

/// A clip of two seconds in `folder`, with a subtitle, two chapters, and a click at 0.3 s.
fn described(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let words = folder.join("long.srt");
    std::fs::write(&words, "1\n00:00:00,200 --> 00:00:00,900\nlong\n").unwrap();
    let chapters = folder.join("two.txt");
    std::fs::write(
        &chapters,
        ";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=750\ntitle=one\n[CHAPTER]\n\
         TIMEBASE=1/1000\nSTART=750\nEND=2000\ntitle=two\n",
    )
    .unwrap();
    let click = "aevalsrc='if(between(t,0.3,0.32),sin(6283*t),0)':s=48000:d=2";
    let path = folder.join(name);
    let mut all = vec!["-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=2"];
    all.extend(["-f", "lavfi", "-i", click, "-i", words.to_str().unwrap()]);
    all.extend([
        "-i",
        chapters.to_str().unwrap(),
        "-map_metadata",
        "3",
        "-map",
        "0",
        "-map",
        "1",
    ]);
    all.extend(options);
    all.push(path.to_str().unwrap());
    ffmpeg(&all);
    path
}

#[test]
fn the_text_track_of_chapters_is_no_stream_where_the_range_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let input = described(
        folder.path(),
        "in.mp4",
        &["-c:v", "libx264", "-c:a", "aac", "-t", "4"],
    );
    // The chapters end before the video does.
    let longer = folder.path().join("longer.mp4");
    let video = ["-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=4"];
    let both = ["-i", input.to_str().unwrap(), "-map", "0:v", "-map_chapters", "1"];
    ffmpeg(&[&video[..], &both, &["-c:v", "libx264", longer.to_str().unwrap()]].concat());
    for start in ["0", "1.5", "2.5"] {
        let options = ["--strict", "--start", start, "--duration", "1"];
        filtered(&longer, &folder.path().join("out.mkv"), &options);
    }
}

#[test]
fn what_comes_beside_the_picture_ends_with_frames_that_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let encoding = ["-c:v", "libx264", "-c:a", "pcm_s16le"];
    let input = described(
        folder.path(),
        "in.mkv",
        &[&encoding[..], &["-map", "2", "-c:s", "srt"]].concat(),
    );
    for (options, length) in [
        (&["--frames", "15"][..], 0.6),
        (&["--duration", "15f"], 0.6),
        (&["--end", "15f"], 0.6),
        (&["--end", "0.6"], 0.6),
        (&["--start", "0.1", "--frames", "15"], 0.62),
        (&["--start", "3f", "--end", "18f"], 0.6),
        (&["--start", "3f", "--duration", "25f", "--frames", "15"], 0.6),
        (&["--start", "5f", "--end", "1", "--frames", "100"], 0.8),
    ] {
        for name in ["out.mkv", "out.mp4"] {
            let output = folder.path().join(name);
            let options = [options, &["--audio-encoder", "aac"]].concat();
            filtered(&input, &output, &options);
            let found = probe(
                &output,
                &[
                    "-show_chapters",
                    "-show_streams",
                    "-show_packets",
                    "-show_entries",
                    "format=duration",
                ],
            );
            let number = |value: &serde_json::Value| value.as_str().map_or(f64::NAN, |t| t.parse().unwrap());
            let ends = |at: &serde_json::Value| number(&at["pts_time"]) + number(&at["duration_time"]);
            let has_second = length > 0.7;
            let chapters = found["chapters"].as_array().unwrap();
            assert_eq!(
                chapters.len(),
                if has_second { 2 } else { 1 },
                "{name} {options:?}"
            );
            let last = number(&chapters[chapters.len() - 1]["end_time"]);
            assert!(
                (last - length).abs() < 0.005,
                "{name} {options:?}: the chapter ends at {last}"
            );
            // A frame of sound goes on to its end.
            let whole = number(&found["format"]["duration"]);
            assert!((whole - length).abs() < 0.03, "{name} {options:?}: {whole} s");
            let packets = found["packets"].as_array().unwrap();
            let subtitles = packets.iter().filter(|packet| packet["codec_type"] == "subtitle");
            let shown = subtitles.map(ends).fold(0.0, f64::max);
            assert!(
                shown < length + 0.005,
                "{name} {options:?}: subtitles until {shown}"
            );
        }
    }
}

/// A seek in the picture's stream goes forward where no picture comes before, and leads past a subtitle that
/// is still shown. FFmpeg says what the input holds.
#[test]
fn sound_before_the_first_picture_and_long_subtitles_are_in_a_range() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let words = path("words.srt");
    std::fs::write(
        &words,
        "1\n00:00:00,200 --> 00:00:07,500\nlong\n\n2\n00:00:06,000 --> 00:00:06,500\nshort\n",
    )
    .unwrap();
    let picture = "testsrc2=size=64x48:rate=5:duration=4";
    let sound = "sine=sample_rate=8000:duration=7";
    let inputs = [
        "-itsoffset",
        "4",
        "-f",
        "lavfi",
        "-i",
        picture,
        "-f",
        "lavfi",
        "-i",
        sound,
    ];
    let with_words = [&inputs[..], &["-i", words.to_str().unwrap()]].concat();
    let [mkv, mp4, mov] = ["in.mkv", "in.mp4", "in.mov"].map(path);
    let encoding = ["-c:v", "mpeg4", "-g", "5", "-c:a", "pcm_s16le"];
    let all = [
        "-map",
        "0",
        "-map",
        "1",
        "-map",
        "2",
        "-c:s",
        "srt",
        mkv.to_str().unwrap(),
    ];
    ffmpeg(&[&with_words[..], &encoding, &all].concat());
    let encoding = ["-c:v", "mpeg4", "-g", "5", "-c:a", "aac"];
    ffmpeg(
        &[
            &inputs[..],
            &encoding,
            &[mp4.to_str().unwrap(), "-map", "0", "-map", "1"],
            &encoding,
            &[mov.to_str().unwrap()],
        ]
        .concat(),
    );
    let output = path("out.mkv");
    let packets = |medium: &str| -> Vec<(f64, f64)> {
        let entries = [
            "-select_streams",
            medium,
            "-show_entries",
            "packet=pts_time,duration_time",
        ];
        let found = probe(&output, &entries);
        let packets = found["packets"].as_array().unwrap().clone();
        let number = |value: &serde_json::Value| value.as_str().map_or(f64::NAN, |t| t.parse().unwrap());
        let span =
            |packet: &serde_json::Value| (number(&packet["pts_time"]), number(&packet["duration_time"]));
        packets.iter().map(span).collect()
    };
    for input in [&mkv, &mp4, &mov] {
        for start in ["2.2", "3.5", "5"] {
            let options = ["--strict", "--encoder", "ffv1", "--start", start, "--end", "7"];
            filtered(input, &output, &options);
            let (begins, _) = packets("a")[0];
            assert!(
                begins < 0.13,
                "{} from {start}: sound from {begins} s",
                input.display()
            );
            if input == &mkv {
                let start: f64 = start.parse().unwrap();
                let expected = [(0.0, 7.0 - start), (6.0 - start, 0.5)];
                let found = packets("s");
                let off = |(a, b): (&(f64, f64), &(f64, f64))| (a.0 - b.0).abs().max((a.1 - b.1).abs());
                let is_same = found.len() == 2 && found.iter().zip(&expected).map(off).all(|off| off < 0.003);
                assert!(is_same, "from {start}: {found:?} for {expected:?}");
            }
        }
    }
}

#[test]
fn pictures_of_a_copied_video_that_come_before_its_key_frame_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let output = path("out.mkv");
    for (input, distance) in [
        ("in.mkv", "20"),
        ("in.mp4", "20"),
        ("in.ts", "20"),
        ("none.mkv", "250"),
    ] {
        let input = path(input);
        let other = "testsrc=size=96x64:rate=25:duration=2";
        let inputs = [
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=96x64:rate=25:duration=2",
            "-f",
            "lavfi",
            "-i",
            other,
        ];
        let encoding = [
            "-map",
            "0",
            "-map",
            "1",
            "-c:v",
            "libx264",
            "-sc_threshold",
            "0",
            "-g",
            distance,
        ];
        ffmpeg(&[&inputs[..], &encoding, &[input.to_str().unwrap()]].concat());
        // Key frames are at 0.8 and 1.6 s.
        for (options, late, packets) in [
            (&["--start", "0.8"][..], "", 30),
            (&["--start", "0.5"], "begins 0.280 s late", 30),
            (&["--start", "13f"], "begins 0.280 s late", 30),
            (&["--start", "1.7"], "has no key frame", 0),
            (&["--start", "0.5", "--end", "0.7"], "has no key frame", 0),
            (&["--start", "0.5", "--frames", "5"], "has no key frame", 0),
            (&["--end", "0.4"], "", 10),
        ] {
            let from_key = late.is_empty() && options[0] == "--end";
            let (late, packets) = match distance {
                "250" if !from_key => ("has no key frame", 0),
                _ => (late, packets),
            };
            let options = [&["--stream", "0", "--encoder", "ffv1"], options].concat();
            let said = filtered(&input, &output, &options);
            let is_named = said.contains("warning: stream 1 (video, h264)");
            assert!(
                is_named != late.is_empty() && said.contains(late),
                "{input:?} {options:?}: {said}"
            );
            let found = probe(
                &output,
                &["-count_packets", "-show_entries", "stream=nb_read_packets"],
            );
            let count = &found["streams"][1]["nb_read_packets"];
            let count: u32 = count.as_str().map_or(0, |count| count.parse().unwrap());
            // Packets are cut where they are decoded, which may be earlier than they are shown.
            assert!(
                count.abs_diff(packets) <= 3,
                "{input:?} {options:?}: {count} packets"
            );
            if is_named {
                let strict = [&options[..], &["--strict"]].concat();
                let done = framepipe(input.to_str().unwrap(), output.to_str().unwrap(), &strict);
                let refusal = crate::common::said(&done);
                assert!(
                    !done.status.success() && refusal.contains(late),
                    "{options:?}: {refusal}"
                );
            }
        }
    }
}

#[test]
fn sound_begins_with_a_frame_that_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    // AVI has no times of presentation, so that no packet tells when a frame is shown.
    for (name, encoding) in [
        ("in.mkv", &["-c:v", "libx264", "-c:a", "pcm_s16le"][..]),
        ("in.avi", &["-c:v", "mpeg4", "-bf", "2", "-c:a", "pcm_s16le"]),
    ] {
        let input = described(folder.path(), name, encoding);
        let output = folder.path().join("out.mkv");
        let whole = filtered(&input, &output, &[]);
        let before = first_sound(&output);
        let shown = frames(&output)[5].0 as f64 / 1e6;
        for options in [
            &["--start", "5f"][..],
            &["--start", "5f", "--end", "20f"],
            &["--start", "5f", "--frames", "15"],
        ] {
            filtered(&input, &output, options);
            let after = first_sound(&output);
            assert!(
                (before - shown - after).abs() < 0.003,
                "{name} {options:?}: the click at {before} s comes at {after} s, {shown} s left out\n{whole}"
            );
        }
    }
}

#[test]
fn ranges_of_files_pipes_and_generators() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let y4m = at("a.y4m");
    ffmpeg(&["-f", "lavfi", "-i", MOVING, "-pix_fmt", "yuv420p", &y4m]);
    ffmpeg(&["-i", &y4m, "-f", "rawvideo", &at("a.yuv")]);
    let raw = format!("raw:96x64:yuv420p:25:{}", at("a.yuv"));
    ffmpeg(&["-i", &y4m, &at("%03d.png")]);
    let bytes = std::fs::read(at("a.yuv")).unwrap();
    let frame = 96 * 64 * 3 / 2;
    for options in [
        &["--start", "1.0", "--end", "1.2"][..],
        &["--start", "25f", "--frames", "5"],
        &["--start", "25f", "--duration", "0.2"],
        &["--start", "0.99", "--end", "30f"],
    ] {
        for input in [y4m.as_str(), &raw] {
            let output = format!("raw:{}", at("out.yuv"));
            let done = framepipe(input, &output, options);
            assert!(done.status.success(), "{input} {options:?}: {}", said(&done));
            let found = std::fs::read(at("out.yuv")).unwrap();
            assert!(
                found == bytes[25 * frame..30 * frame],
                "{input} {options:?}: {}",
                found.len()
            );
        }
    }
    let out = folder.path().join("out");
    let pattern = at("%03d.png");
    let done = framepipe(
        &pattern,
        &format!("{}/", out.display()),
        &["--start", "3f", "--duration", "2f"],
    );
    assert!(done.status.success(), "{}", said(&done));
    let mut names: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["004.png", "005.png"]);
    let sixty = at("sixty.mkv");
    ffmpeg(&["-i", &y4m, "-c:v", "ffv1", "-output_ts_offset", "60", &sixty]);
    let text = filtered(
        Path::new(&sixty),
        &folder.path().join("out.mkv"),
        &["--start", "3"],
    );
    assert!(
        text.contains("note: ") && text.contains("its clock begins at 60 s, which is counted as 0"),
        "{text}"
    );
    let late = at("late.mkv");
    ffmpeg(&["-itsoffset", "3", "-i", &y4m, "-c:v", "ffv1", &late]);
    for (input, options, problem) in [
        (y4m.as_str(), &["--start", "9"][..], "no frame lies in the range"),
        (&raw, &["--start", "9"], "no frame lies in the range"),
        (
            &sixty,
            &["--start", "60.2"],
            "the last one is shown at 3.96 s; its clock begins at 60 s, which is counted as 0",
        ),
        (
            &late,
            &["--start", "0.2", "--end", "0.5"],
            "the next one is shown at 3",
        ),
        (&pattern, &["--start", "1"], "--fps"),
        (&pattern, &["--start", "500f"], "no frame lies in the range"),
        (&y4m, &["--start", "2", "--end", "1"], "holds no frame"),
        (&y4m, &["--start", "abc"], "120f"),
        (&y4m, &["--frames", "3-9"], "--start"),
        (&y4m, &["--frames", "3-3"], "--start"),
        (&y4m, &["--frames", "0"], "holds no frame"),
    ] {
        // A folder, which image files go into without a rate.
        let output = folder
            .path()
            .join(if input == pattern { "none/" } else { "none.mkv" });
        let done = framepipe(input, output.to_str().unwrap(), options);
        assert!(!done.status.success(), "{input} {options:?}");
        assert!(
            said(&done).contains(problem),
            "{input} {options:?}: {}",
            said(&done)
        );
        assert!(!output.is_file(), "{input} {options:?}");
    }
}

/// Pictures of H.264 release references among the leading pictures of a key frame, which are passed over.
#[test]
fn references_that_were_passed_over_are_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let open = [
        "-c:v",
        "libx264",
        "-g",
        "12",
        "-bf",
        "3",
        "-x264-params",
        "open-gop=1",
    ];
    let input = clip(folder.path(), "open.mp4", &open);
    let output = folder.path().join("out.mkv");
    let all = whole(&input);
    for start in [0.5, 1.5, 3.0] {
        let text = start.to_string();
        let options = ["--strict", "--encoder", "ffv1", "--start", &text];
        filtered(&input, &output, &options);
        let pictures = |frames: Vec<(i64, String)>| frames.into_iter().map(|(_, hash)| hash);
        let from = (start * 25.0_f64).ceil() as usize;
        assert!(
            pictures(frames(&output)).eq(pictures(all.clone()).skip(from)),
            "{start}"
        );
    }
}

/// A time code is that of the first picture, whatever the case of its name.
#[test]
fn a_time_code_is_left_out_by_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["-c:v", "ffv1", "-metadata", "TIMECODE=01:00:00:00"];
    let input = clip(folder.path(), "in.mkv", &options);
    let text = filtered(&input, &folder.path().join("out.mkv"), &["--start", "1"]);
    assert!(
        text.contains("its time code is left out") && !text.contains("does not hold"),
        "{text}"
    );
}

#[test]
fn reading_from_the_beginning_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("a.mp4", &["-c:v", "libx264"][..], false),
        ("b.mkv", &["-c:v", "libx264"], false),
        ("c.ts", &["-c:v", "libx264"], true),
        ("d.h264", &["-c:v", "libx264"], true),
    ];
    for (name, options, is_read) in cases {
        let input = clip(folder.path(), name, options);
        let note = |start: &str| {
            let output = folder.path().join("out.mkv");
            let text = filtered(&input, &output, &["--start", start, "--strict"]);
            text.contains("reading from the beginning")
        };
        assert_eq!(note("3"), is_read, "{name}");
        // Nothing is lost by reading so little.
        assert!(!note("1"), "{name}");
    }
}
