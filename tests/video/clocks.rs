//! Time: pictures and the streams beside them keep their places to each other, whatever the clock of the
//! input does, and an input is called incomplete where something is missing, and only there. FFmpeg's own
//! programs judge.
//!
//! Each kind of input is filtered into every container. Where it is tried with several clocks, each of them
//! goes into some of the containers, other ones for the next; FRAMEPIPE_WHOLE_MATRIX=1 tries them all.
//!
//! The clips show a white picture and sound a click at the same instants. Where FFmpeg finds the two in an
//! output, it has taken every offset, edit list and encoder's delay into account that a player would.

use crate::common::{ffmpeg, ffprobe, is_whole_matrix, probe};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use tempfile::TempDir;

/// How far, in seconds, picture and sound may move against each other: a millisecond, and what half a sample
/// of 48 kHz adds.
const TOGETHER: f64 = 0.001_02;

/// AVI has no finer clock for the start of a stream than its frames and its packets of sound.
const TOGETHER_IN_AVI: f64 = 0.045;

/// Seconds that one clip lasts, and the pictures in them.
const SECONDS: f64 = 2.0;
const PICTURES: usize = 50;

const OUTPUTS: [&str; 7] = ["mp4", "mov", "mkv", "avi", "ts", "flv", "webm"];

/// Every third container, so that three turns that follow each other have all of them.
fn some_outputs(turn: usize) -> Vec<&'static str> {
    let all = OUTPUTS.into_iter().enumerate();
    all.filter(|(at, _)| is_whole_matrix() || at % 3 == turn % 3)
        .map(|(_, container)| container)
        .collect()
}

/// A number that ffprobe writes as text.
fn number(value: &Value) -> Option<f64> {
    value.as_str()?.parse().ok()
}

/// Presentation times of the frames that FFmpeg decodes of the first video stream.
fn times(path: &Path) -> Vec<f64> {
    let arguments = [
        "-select_streams",
        "v:0",
        "-show_entries",
        "frame=best_effort_timestamp_time",
    ];
    let found = probe(path, &arguments);
    let frames = found["frames"].as_array().cloned().unwrap_or_default();
    frames
        .iter()
        .filter_map(|f| number(&f["best_effort_timestamp_time"]))
        .collect()
}

/// Asks for the frames that FFmpeg decodes, and for their form.
const COUNTED: [&str; 5] = [
    "-count_frames",
    "-select_streams",
    "v:0",
    "-show_entries",
    "stream=nb_read_frames,pix_fmt,width,height",
];

/// How many frames FFmpeg decodes, with a time or without one; none of a file that it wrote and cannot read.
fn count(path: &Path) -> usize {
    let read = ffprobe(path, &[&["-v", "error", "-of", "json"], &COUNTED[..]].concat());
    let found: Value = serde_json::from_slice(&read.stdout).unwrap();
    found["streams"][0]["nb_read_frames"]
        .as_str()
        .map_or(0, |n| n.parse().unwrap())
}

/// Start and end of the file by FFmpeg's account.
fn span(path: &Path) -> (f64, f64) {
    span_of(&probe(path, &["-show_entries", "format=start_time,duration"]))
}

fn span_of(found: &Value) -> (f64, f64) {
    let start = number(&found["format"]["start_time"]).unwrap_or(0.0);
    (
        start,
        start + number(&found["format"]["duration"]).unwrap_or(f64::NAN),
    )
}

/// What [`times`], [`span`] and [`has_sound`] say of a file, by one run of ffprobe.
struct Facts {
    times: Vec<f64>,
    span: (f64, f64),
    has_sound: bool,
}

impl Facts {
    fn of(path: &Path) -> Facts {
        let entries = "frame=stream_index,best_effort_timestamp_time:stream=index,codec_type:\
                       format=start_time,duration";
        let found = probe(path, &["-show_entries", entries]);
        let streams = found["streams"].as_array().cloned().unwrap_or_default();
        let is = |stream: &Value, kind: &str| stream["codec_type"] == kind;
        let video = streams.iter().find(|stream| is(stream, "video"));
        let video = video.map(|stream| &stream["index"]);
        let frames = found["frames"].as_array().cloned().unwrap_or_default();
        let pictures = frames.iter().filter(|f| Some(&f["stream_index"]) == video);
        Facts {
            times: pictures
                .filter_map(|f| number(&f["best_effort_timestamp_time"]))
                .collect(),
            span: span_of(&found),
            has_sound: streams.iter().any(|stream| is(stream, "audio")),
        }
    }
}

fn has_sound(path: &Path) -> bool {
    let found = probe(
        path,
        &["-select_streams", "a", "-show_entries", "stream=codec_name"],
    );
    found["streams"].as_array().is_some_and(|s| !s.is_empty())
}

/// The instants at which the pictures turn white, and those at which the sound clicks.
fn flashes_and_clicks(path: &Path) -> (Vec<f64>, Vec<f64>) {
    let done = Command::new("ffmpeg")
        .args(["-nostdin", "-hide_banner", "-i"])
        .arg(path)
        .args([
            "-map",
            "0:v:0",
            "-map",
            "0:a?",
            "-vf",
            "blackdetect=d=0.01",
            "-af",
        ])
        .args([
            "silencedetect=n=-20dB:d=0.05",
            "-fps_mode",
            "passthrough",
            "-f",
            "null",
            "-",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let all = |key: &str| -> Vec<f64> {
        let places = said.split(key).skip(1);
        let mut found: Vec<f64> = places
            .map(|rest| rest.split_whitespace().next().unwrap().parse().unwrap())
            .collect();
        // The end of the clip ends its last darkness and silence.
        found.pop();
        found
    };
    (all("black_end:"), all("silence_end: "))
}

/// How long after each flash its click comes.
fn distances(path: &Path) -> Vec<f64> {
    let (flashes, clicks) = flashes_and_clicks(path);
    flashes
        .iter()
        .zip(&clicks)
        .map(|(flash, click)| click - flash)
        .collect()
}

/// What a run of framepipe came to.
struct Run {
    ok: bool,
    words: String,
}

impl Run {
    fn warnings(&self) -> Vec<&str> {
        self.words
            .lines()
            .filter(|l| l.starts_with("warning") || l.starts_with("error"))
            .collect()
    }
}

/// Filters `input` with a mask that changes nothing.
fn identity(input: &Path, output: &Path, more: &[&str]) -> Run {
    let done = Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .args(["filter", "--overwrite", "--filter", "mask:rows=1"])
        .args(more)
        .arg(input)
        .arg(output)
        .output()
        .unwrap();
    Run {
        ok: done.status.success(),
        words: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

/// As [`identity`], with an encoder that is quick and reorders pictures where it can.
fn quickly(input: &Path, output: &Path, more: &[&str]) -> Run {
    let encoder: &[&str] = match output.extension().unwrap().to_str().unwrap() {
        "avi" => &["--encoder", "mpeg4"],
        "webm" => &["--encoder", "libvpx", "--encoder-option", "deadline=realtime"],
        "ogv" => &["--encoder", "libtheora"],
        _ => &[
            "--encoder",
            "libx264",
            "--preset",
            "ultrafast",
            "--encoder-option",
            "bf=2",
        ],
    };
    identity(input, output, &[encoder, more].concat())
}

/// A clip of two seconds with two flashes and two clicks. Tests of one process share what was encoded.
fn clip(folder: &Path, name: &str, encoding: &[&str]) -> PathBuf {
    static ENCODED: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let path = folder.join(name);
    let key = format!("{:?} {encoding:?}", path.extension());
    if let Some(clip) = ENCODED.lock().unwrap().get(&key) {
        fs::write(&path, clip).unwrap();
        return path;
    }
    // A small square moves in the dark, so that no encoder leaves out pictures that repeat the one before.
    let light = "if(eq(mod(N,25),12),235,if(lt(mod(X+96-3*N,96),6)*lt(Y,6),180,16))";
    let video = format!("color=black:s=96x64:r=25:d=2,geq=lum='{light}':cb=128:cr=128");
    let sound = "aevalsrc='if(gte(t,0.48)*lt(mod(t-0.48,1),0.02),0.8*sin(2*PI*1000*t),0)':s=48000:d=2";
    let input = ["-f", "lavfi", "-i", &video, "-f", "lavfi", "-i", sound];
    ffmpeg(&[&input, encoding, &[path.to_str().unwrap()]].concat());
    ENCODED.lock().unwrap().insert(key, bytes(&path));
    path
}

const H264_AAC: &[&str] = &[
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-bf",
    "2",
    "-g",
    "25",
    "-c:a",
    "aac",
];
const MPEG2_MP2: &[&str] = &[
    "-c:v",
    "mpeg2video",
    "-b:v",
    "1M",
    "-bf",
    "2",
    "-g",
    "25",
    "-c:a",
    "mp2",
];

/// The packets of `input` in another file.
fn copied(input: &Path, output: &Path, before: &[&str], after: &[&str]) -> PathBuf {
    let files = (
        ["-i", input.to_str().unwrap(), "-map", "0", "-c", "copy"],
        output.to_str().unwrap(),
    );
    ffmpeg(&[before, &files.0, after, &[files.1]].concat());
    output.to_owned()
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

/// What is wrong with an output.
struct Check<'a> {
    /// The output's own name, and what it was made of.
    name: String,
    output: &'a Path,
    run: &'a Run,
    pictures: usize,
    seconds: f64,
    /// How long after each flash its click comes in the input.
    distances: Vec<f64>,
    /// Words that the input deserves.
    deserved: &'a [&'a str],
}

impl Check<'_> {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut say = |text: String| problems.push(format!("{}: {text}", self.name));
        if !self.run.ok {
            say(self.run.warnings().join(" | "));
            return problems;
        }
        let false_words = ["incomplete", "damaged", "corrupt", "missing"];
        for warning in self.run.warnings() {
            let is_deserved = self.deserved.iter().any(|w| warning.contains(w));
            if false_words.iter().any(|w| warning.contains(w)) && !is_deserved {
                say(warning.to_owned());
            }
        }
        let Facts {
            times,
            span: (start, end),
            has_sound,
        } = Facts::of(self.output);
        if times.len() != self.pictures {
            say(format!("{} of {} pictures", times.len(), self.pictures));
        }
        if let Some(pair) = times.windows(2).find(|pair| pair[1] <= pair[0]) {
            say(format!("times {} and {}", pair[0], pair[1]));
        }
        let extension = self.output.extension().unwrap();
        // FFmpeg's own transport streams begin at 1.4 s.
        let latest = if extension == "ts" { 3.0 } else { 0.1 };
        if !(-0.1..=latest).contains(&start) {
            say(format!("begins at {start} s"));
        }
        if !((end - start) - self.seconds).abs().le(&0.15) {
            say(format!(
                "lasts {:.3} s instead of {:.3} s",
                end - start,
                self.seconds
            ));
        }
        if has_sound {
            let found = distances(self.output);
            let tolerance = if extension == "avi" {
                TOGETHER_IN_AVI
            } else {
                TOGETHER
            };
            let worst = found
                .iter()
                .zip(&self.distances)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            // A container that has no word for a late beginning is named.
            let is_named = self
                .run
                .warnings()
                .iter()
                .any(|w| w.contains("cannot say, so that"));
            if found.len() != self.distances.len() || (worst > tolerance && !is_named) {
                say(format!(
                    "clicks come {found:?} s after their flashes instead of {:?}",
                    self.distances
                ));
            }
        } else if !self.run.words.contains("left out") && !self.distances.is_empty() {
            say("its sound is gone without a word".to_owned());
        }
        problems
    }
}

fn assert_none(problems: &[String]) {
    let list = problems.join("\n");
    assert!(problems.is_empty(), "{} problems:\n{list}", problems.len());
}

/// Filters `input` into these containers and says what is wrong with the outputs.
fn into_each(
    containers: &[&str],
    input: &Path,
    name: &str,
    (pictures, seconds): (usize, f64),
    distances: &[f64],
) -> Vec<String> {
    let mut problems = Vec::new();
    for container in containers {
        let output = input.with_file_name(format!("out.{container}"));
        let run = quickly(input, &output, &[]);
        let check = Check {
            name: format!("{name} -> {container}"),
            output: &output,
            run: &run,
            pictures,
            seconds,
            distances: distances.to_vec(),
            deserved: &[],
        };
        problems.extend(check.problems());
    }
    problems
}

/// Seconds by which the clocks of the two parts are moved, and in words.
const JUMPS: [(&str, &str, &str); 5] = [
    ("0", "7", "5 s forward"),
    ("0", "22", "20 s forward"),
    ("0", "90002", "25 h forward"),
    ("0", "0", "2 s back"),
    ("90000", "0", "25 h back"),
];

fn joined_recordings(extension: &str, muxer: &str, encoding: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let base = clip(folder.path(), "base.mkv", encoding);
    let mut problems = Vec::new();
    for (turn, (first, second, jump)) in JUMPS.into_iter().enumerate() {
        let part = |name: &str, offset: &str| {
            let path = folder.path().join(format!("{name}.{extension}"));
            copied(&base, &path, &[], &["-output_ts_offset", offset, "-f", muxer])
        };
        let (a, b) = (part("a", first), part("b", second));
        let expected = [distances(&a), distances(&b)].concat();
        assert_eq!(expected.len(), 4);
        let path = folder.path().join(format!("joined.{extension}"));
        fs::write(&path, [bytes(&a), bytes(&b)].concat()).unwrap();
        let name = format!("two {extension}, {jump}");
        let length = (2 * PICTURES, 2.0 * SECONDS);
        problems.extend(into_each(&some_outputs(turn), &path, &name, length, &expected));
        // A transport stream's packets are counted, and that the count begins anew at a join is no damage.
        let strict = identity(&path, Path::new("null:"), &["--strict"]);
        if !strict.ok {
            problems.push(format!("{name}, --strict: {}", strict.words));
        }
    }
    assert_none(&problems);
}

#[test]
fn joined_transport_streams_play_one_after_the_other() {
    joined_recordings("ts", "mpegts", H264_AAC);
}

#[test]
fn joined_program_streams_play_one_after_the_other() {
    joined_recordings("vob", "vob", MPEG2_MP2);
}

#[test]
fn chained_ogg_files_play_one_after_the_other_or_it_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let base = clip(
        folder.path(),
        "a.ogv",
        &["-c:v", "libtheora", "-c:a", "libvorbis"],
    );
    let path = folder.path().join("joined.ogv");
    fs::write(&path, bytes(&base).repeat(2)).unwrap();
    for container in OUTPUTS {
        let output = folder.path().join(format!("out.{container}"));
        let run = quickly(&path, &output, &[]);
        assert!(run.ok, "{container}: {}", run.words);
        let times = times(&output);
        assert!(
            times.windows(2).all(|pair| pair[0] < pair[1]),
            "{container}: {times:?}"
        );
        // FFmpeg 5.1's Theora decoder takes the second part with one thread only.
        assert!(times.len() >= PICTURES, "{container}: {} pictures", times.len());
        assert!(
            times.len() == 2 * PICTURES || !run.warnings().is_empty(),
            "{container}: {}",
            times.len()
        );
    }
}

/// Each of them counts from zero, and the header of the first one says how long it is alone.
#[test]
fn matroska_files_behind_one_another_play_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let vp8: &[&str] = &["-c:v", "libvpx", "-deadline", "realtime", "-c:a", "libvorbis"];
    let mut problems = Vec::new();
    for (turn, (name, encoding)) in [("a.mkv", H264_AAC), ("a.webm", vp8)].into_iter().enumerate() {
        let base = clip(folder.path(), name, encoding);
        let expected = distances(&base).repeat(2);
        let path = folder.path().join(format!("joined-{name}"));
        fs::write(&path, bytes(&base).repeat(2)).unwrap();
        let length = (2 * PICTURES, 2.0 * SECONDS);
        problems.extend(into_each(&some_outputs(turn), &path, name, length, &expected));
        // Behind the seam as well.
        let output = folder.path().join("out.mkv");
        let run = quickly(&path, &output, &["--start", "3", "--strict"]);
        if !run.ok || count(&output) != PICTURES / 2 {
            problems.push(format!("{name} from 3 s: {}, {}", count(&output), run.words));
        }
    }
    assert_none(&problems);
}

#[test]
fn joined_flash_videos_play_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let base = clip(folder.path(), "a.flv", &["-c:v", "flv", "-c:a", "libmp3lame"]);
    let expected = distances(&base).repeat(2);
    let path = folder.path().join("joined.flv");
    // The second part goes on behind the first one's tags, without a header of its own.
    fs::write(&path, [bytes(&base), bytes(&base)[13..].to_vec()].concat()).unwrap();
    let length = (2 * PICTURES, 2.0 * SECONDS);
    let problems = into_each(&OUTPUTS, &path, "two flv", length, &expected);
    assert_none(&problems);
}

#[test]
fn recordings_that_begin_late_begin_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let h264 = clip(folder.path(), "h264.mkv", H264_AAC);
    let mpeg2 = clip(folder.path(), "mpeg2.mkv", MPEG2_MP2);
    let inputs: [(&str, &str, &Path, &[&str]); 6] = [
        ("ts", "mpegts", &h264, &[]),
        ("vob", "vob", &mpeg2, &[]),
        ("mkv", "matroska", &h264, &[]),
        ("mp4", "mp4", &h264, &[]),
        ("mp4", "mp4", &h264, &["-use_editlist", "0"]),
        ("flv", "flv", &h264, &[]),
    ];
    let mut problems = Vec::new();
    for (kind, (extension, muxer, base, options)) in inputs.into_iter().enumerate() {
        for (turn, offset) in ["0.5", "1.4", "90000"].into_iter().enumerate() {
            // Two of the three for each kind, if not all are to be tried.
            if turn == kind % 3 && !is_whole_matrix() {
                continue;
            }
            let path = folder.path().join(format!("late.{extension}"));
            copied(
                base,
                &path,
                &[],
                &[&["-output_ts_offset", offset, "-f", muxer], options].concat(),
            );
            let name = format!("{extension} {options:?} from {offset} s on");
            let outputs = some_outputs(kind + turn);
            let mut found = into_each(&outputs, &path, &name, (PICTURES, SECONDS), &distances(&path));
            // Where the clock begins at zero, some seconds before the first picture are a pause, which stays.
            let begins_at_zero = matches!(extension, "mkv" | "mp4") && offset != "90000";
            if begins_at_zero {
                found.retain(|problem| !problem.contains(": begins at") && !problem.contains(": lasts"));
            }
            if extension == "mp4" || extension == "mkv" {
                // AVI counts pictures and sound from its first ones, so that a late first picture moves by
                // some.
                found.retain(|problem| !problem.contains("-> avi: clicks"));
            }
            problems.append(&mut found);
        }
    }
    assert_none(&problems);
}

#[test]
fn streams_that_begin_after_the_others_stay_late() {
    let folder = tempfile::tempdir().unwrap();
    let (mut problems, mut turn) = (Vec::new(), 0);
    for (extension, encoding) in [
        ("ts", H264_AAC),
        ("vob", MPEG2_MP2),
        ("mkv", H264_AAC),
        ("mp4", H264_AAC),
    ] {
        let base = clip(folder.path(), "base.mkv", encoding);
        let base = base.to_str().unwrap();
        for (late, maps) in [("sound", ["0:v", "1:a"]), ("picture", ["1:v", "0:a"])] {
            let path = folder.path().join(format!("late.{extension}"));
            let inputs = ["-i", base, "-itsoffset", "0.5", "-i", base];
            let maps = [
                "-map",
                maps[0],
                "-map",
                maps[1],
                "-c",
                "copy",
                path.to_str().unwrap(),
            ];
            ffmpeg(&[&inputs[..], &maps[..]].concat());
            let found = distances(&path);
            assert!(
                found.iter().all(|d| (d.abs() - 0.5).abs() < 0.03),
                "{extension}: {found:?}"
            );
            let name = format!("{extension}, late {late}");
            let length = (PICTURES, SECONDS + 0.5);
            problems.extend(into_each(&some_outputs(turn), &path, &name, length, &found));
            turn += 1;
        }
    }
    assert_none(&problems);
}

#[test]
fn pictures_of_encoders_that_count_frames_keep_their_distance_from_sound() {
    let folder = tempfile::tempdir().unwrap();
    let base = clip(folder.path(), "base.mkv", MPEG2_MP2);
    let path = folder.path().join("between.mkv");
    let (base, between) = (base.to_str().unwrap(), path.to_str().unwrap());
    // Less and more than half a frame.
    for late in ["0.017", "0.031"] {
        let inputs = ["-itsoffset", late, "-i", base, "-i", base];
        let maps = ["-map", "0:v", "-map", "1:a", "-c", "copy", between];
        ffmpeg(&[&inputs[..], &maps].concat());
        let before = distances(&path);
        for (output, encoder) in [
            ("out.ts", "mpeg2video"),
            ("out.mkv", "mpeg1video"),
            ("out.mpg", "mpeg2video"),
            ("out.mp4", "mpeg2video"),
            ("theora.mkv", "libtheora"),
        ] {
            let output = folder.path().join(output);
            let run = identity(&path, &output, &["--encoder", encoder]);
            assert!(
                run.ok && !run.words.contains(" shown "),
                "{output:?}: {}",
                run.words
            );
            let after = distances(&output);
            let moved = before.iter().zip(&after).map(|(b, a)| (b - a).abs());
            assert_eq!(before.len(), after.len(), "{output:?}");
            assert!(
                moved.fold(0.0, f64::max) <= TOGETHER,
                "{late} {output:?}: {before:?} {after:?}"
            );
        }
    }
}

#[test]
fn a_first_picture_that_a_container_moves_to_its_beginning_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let base = clip(folder.path(), "base.mkv", H264_AAC);
    let path = folder.path().join("late.mkv");
    let (base, late) = (base.to_str().unwrap(), path.to_str().unwrap());
    for maps in [&["-map", "0:v", "-map", "1:a"][..], &["-map", "0:v"]] {
        let inputs = ["-itsoffset", "0.5", "-i", base, "-i", base];
        ffmpeg(&[&inputs[..], maps, &["-c", "copy", late]].concat());
        for (output, is_moved) in [
            ("out.avi", true),
            ("out.mkv", false),
            ("out.mp4", false),
            ("out.ts", false),
        ] {
            let output = folder.path().join(output);
            let run = quickly(&path, &output, &[]);
            let said = run.warnings();
            let is_named = said.iter().any(|w| w.contains("cannot begin without a picture"));
            assert_eq!(is_named, is_moved, "{maps:?} {output:?}: {said:?}");
            let strict = quickly(&path, &output, &["--strict"]);
            assert_eq!(strict.ok, !is_moved, "{maps:?} {output:?}");
        }
    }
}

/// A video of 25 frames a second, every third of which is left out, with a gap of 0.5 s behind the fifth, and
/// with sound.
fn irregular(folder: &Path) -> PathBuf {
    let path = folder.join("irregular.mkv");
    let video = "testsrc2=s=96x64:r=25:d=2,select='not(eq(mod(n,3),1))',setpts='if(lt(N,5),PTS,PTS+0.5/TB)'";
    let input = ["-f", "lavfi", "-i", video, "-f", "lavfi", "-i", "sine=d=2.5"];
    let encoding = [
        "-fps_mode",
        "vfr",
        "-c:v",
        "ffv1",
        "-c:a",
        "pcm_s16le",
        "-ar",
        "48000",
    ];
    ffmpeg(&[&input[..], &encoding, &[path.to_str().unwrap()]].concat());
    path
}

/// Matroska has the duration of a frame in nanoseconds, and FFmpeg reads 19001/317 from it.
#[test]
fn a_rate_that_a_container_rounds_is_the_one_that_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    let video = "testsrc2=s=64x48:r=60000/1001";
    let encoding = ["-frames:v", "12", "-c:v", "ffv1", input.to_str().unwrap()];
    ffmpeg(&[&["-f", "lavfi", "-i", video], &encoding[..]].concat());
    for name in ["out.mxf", "out.ts", "out.mkv", "out.y4m"] {
        let output = folder.path().join(name);
        let encoder: &[&str] = if name == "out.y4m" {
            &[]
        } else {
            &["--encoder", "mpeg2video"]
        };
        let run = identity(&input, &output, encoder);
        assert!(run.ok, "{name}: {}", run.words);
        assert!(!run.words.contains("irregular"), "{name}: {}", run.words);
        if name == "out.y4m" {
            let head = &bytes(&output)[..64];
            assert!(
                String::from_utf8_lossy(head).contains(" F60000:1001 "),
                "{head:?}"
            );
            continue;
        }
        let found = probe(
            &output,
            &[
                "-count_frames",
                "-show_entries",
                "stream=r_frame_rate,nb_read_frames",
            ],
        );
        let stream = &found["streams"][0];
        assert_eq!(stream["nb_read_frames"], "12", "{name}");
        if name != "out.mkv" {
            assert_eq!(stream["r_frame_rate"], "60000/1001", "{name}");
        }
    }
}

#[test]
fn irregular_times_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = irregular(folder.path());
    let expected = times(&input);
    let steps = |times: &[f64]| times.iter().map(|at| at - times[0]).collect::<Vec<_>>();
    for (output, encoder) in [
        ("out.mkv", "libx264"),
        ("out.mp4", "libx264"),
        ("out.ts", "libx264"),
        ("out.flv", "libx264"),
        ("out.wmv", "wmv2"),
        ("out.avi", "mpeg4"),
        ("out.ivf", "libvpx"),
        ("out.apng", "apng"),
        ("out.mxf", "mpeg2video"),
        ("out.h264", "libx264"),
        ("out.m2v", "mpeg2video"),
        ("out.mjpeg", "mjpeg"),
    ] {
        let output = folder.path().join(output);
        let run = identity(&input, &output, &["--encoder", encoder]);
        assert!(run.ok, "{output:?}: {}", run.words);
        let found = times(&output);
        let pairs = steps(&found).into_iter().zip(steps(&expected));
        let is_kept = found.len() == expected.len()
            && pairs
                .into_iter()
                .all(|(found, wanted)| (found - wanted).abs() < 0.021);
        let is_named = run.words.contains("the timestamps are irregular");
        assert_eq!(is_named, !is_kept, "{output:?}: {found:?}\n{}", run.words);
        // Sound that the container leaves out, as there are no pictures for it, is named, too.
        if output.extension().is_some_and(|e| e == "mxf") {
            let cut = span(&input).1 - span(&output).1;
            assert!(
                cut > 0.5 && run.words.contains("which mxf leaves out"),
                "{}",
                run.words
            );
        }
        if is_named {
            let strict = identity(&input, &output, &["--encoder", encoder, "--strict"]);
            assert!(!strict.ok, "{output:?}");
        }
    }
    // Nothing is wrong with a constant rate.
    let regular = clip(folder.path(), "regular.mkv", MPEG2_MP2);
    for output in ["out.mxf", "out.m2v", "out.avi"] {
        let output = folder.path().join(output);
        let run = identity(&regular, &output, &["--encoder", "mpeg2video", "--no-audio"]);
        assert!(
            run.ok && !run.words.contains("irregular"),
            "{output:?}: {}",
            run.words
        );
    }
}

#[test]
fn frames_that_come_faster_than_a_container_counts_time_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("fast.nut");
    for (rate, output, encoder, said) in [
        (
            240,
            "out.gif",
            "gif",
            "11 frames are shown up to 0.170 s later, because viewers of gif",
        ),
        (60, "out.gif", "gif", "1 frame is shown up to 0.010 s later"),
        (50, "out.gif", "gif", ""),
        (
            2000,
            "out.wmv",
            "wmv2",
            "38 frames are shown up to 0.019 s later, because asf",
        ),
        (
            2000,
            "out.mkv",
            "ffv1",
            "19 frames get the same time as the one before, because matroska",
        ),
        (
            2000,
            "out.flv",
            "flv",
            "frames get the same time as the one before, because flv",
        ),
        (2000, "out.mp4", "libx264", ""),
        (1000, "out.mkv", "ffv1", ""),
    ] {
        let frames = if rate < 1000 { rate / 20 } else { rate / 50 };
        let video = format!("testsrc2=s=96x64:r={rate},trim=end_frame={frames}");
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &video,
            "-c:v",
            "ffv1",
            input.to_str().unwrap(),
        ]);
        let output = folder.path().join(output);
        let options = ["--encoder", encoder];
        let run = identity(&input, &output, &options);
        let about_time = run.words.contains("shown up to") || run.words.contains("the same time");
        assert!(run.ok, "{rate} to {output:?}: {}", run.words);
        assert!(
            run.words.contains(said) && about_time != said.is_empty(),
            "{rate} to {output:?}: {}",
            run.words
        );
        let arguments = ["-select_streams", "v:0", "-show_entries", "packet=pts_time"];
        let found = probe(&output, &arguments);
        let mut times: Vec<String> = found["packets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["pts_time"].to_string())
            .collect();
        assert_eq!(times.len(), frames, "{rate} to {output:?}");
        times.sort();
        times.dedup();
        let shares = said.contains("the same time");
        assert_eq!(times.len() < frames, shares, "{rate} to {output:?}: {times:?}");
        let strict = identity(&input, &output, &[&options[..], &["--strict"]].concat());
        assert!(
            strict.ok || !said.is_empty() || strict.words.contains("not kept"),
            "{}",
            strict.words
        );
        assert!(!strict.ok || said.is_empty(), "{rate} to {output:?}");
    }
}

#[test]
fn clocks_that_wrap_within_the_clip_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let h264 = clip(folder.path(), "h264.mkv", H264_AAC);
    let mpeg2 = clip(folder.path(), "mpeg2.mkv", MPEG2_MP2);
    let mut problems = Vec::new();
    for (extension, muxer, base) in [("ts", "mpegts", &h264), ("vob", "vob", &mpeg2)] {
        // Those of the clip itself: a wrap may lie between a flash and its click.
        let expected = distances(base);
        for (turn, offset) in ["95442", "95443", "95443.5"].into_iter().enumerate() {
            let path = folder.path().join(format!("wraps.{extension}"));
            copied(base, &path, &[], &["-output_ts_offset", offset, "-f", muxer]);
            let name = format!("{extension} from {offset} s on");
            let (outputs, length) = (some_outputs(turn), (PICTURES, SECONDS));
            problems.extend(into_each(&outputs, &path, &name, length, &expected));
            let strict = identity(&path, Path::new("null:"), &["--strict"]);
            if !strict.ok {
                problems.push(format!("{name}, --strict: {}", strict.warnings().join(" | ")));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn ten_passes_move_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let chains: [(&str, &[&str]); 8] = [
        ("webm", &["-c:v", "libvpx", "-c:a", "libopus"]),
        ("mkv", H264_AAC),
        ("mp4", H264_AAC),
        (
            "mov",
            &["-c:v", "libx264", "-preset", "ultrafast", "-c:a", "pcm_s16le"],
        ),
        ("ts", MPEG2_MP2),
        ("ogv", &["-c:v", "libtheora", "-c:a", "libvorbis"]),
        ("flv", &["-c:v", "flv", "-c:a", "libmp3lame", "-ar", "44100"]),
        ("avi", &["-c:v", "mpeg4", "-c:a", "libmp3lame"]),
    ];
    let mut problems = Vec::new();
    // Every other one, if not all are to be tried.
    let step = if is_whole_matrix() { 1 } else { 2 };
    for (extension, encoding) in chains.into_iter().step_by(step) {
        let first = clip(folder.path(), &format!("0.{extension}"), encoding);
        let expected = distances(&first);
        assert_eq!(expected.len(), 2, "{extension}");
        let mut last = first.clone();
        for pass in 1..=10 {
            let next = folder.path().join(format!("{pass}.{extension}"));
            let run = quickly(&last, &next, &[]);
            if !run.ok || !run.warnings().is_empty() {
                problems.push(format!(
                    "{extension}, pass {pass}: {}",
                    run.warnings().join(" | ")
                ));
                break;
            }
            last = next;
        }
        let found = distances(&last);
        let worst = found
            .iter()
            .zip(&expected)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        if found.len() != 2 || worst > TOGETHER {
            problems.push(format!("{extension}: {expected:?} became {found:?}"));
        }
        let (before, after) = (times(&first), times(&last));
        let length = |times: &[f64]| times.last().unwrap_or(&0.0) - times.first().unwrap_or(&0.0);
        if after.len() != before.len() || (length(&after) - length(&before)).abs() > 0.002 {
            problems.push(format!(
                "{extension}: {} pictures in {} s became {} in {} s",
                before.len(),
                length(&before),
                after.len(),
                length(&after)
            ));
        }
        // The first pass may take away or add what the container's muxer does by itself; the others do not
        // add to it.
        let (before, after) = (span(&folder.path().join(format!("1.{extension}"))), span(&last));
        if (after.0 - before.0).abs() > 0.05 || (after.1 - before.1).abs() > 0.05 {
            problems.push(format!("{extension}: {before:?} became {after:?}"));
        }
    }
    assert_none(&problems);
}

/// Makes the first edit list and the file's own lengths end at `millis`.
fn end_edits_at(path: &Path, start_ticks: Option<u32>, millis: u32) {
    let mut data = bytes(path);
    let find = |data: &[u8], name: &[u8]| data.windows(4).position(|w| w == name).unwrap();
    for (name, offset) in [(b"elst", 12), (b"mvhd", 20), (b"tkhd", 24)] {
        let at = find(&data, name) + offset;
        data[at..at + 4].copy_from_slice(&millis.to_be_bytes());
    }
    if let Some(ticks) = start_ticks {
        let at = find(&data, b"elst") + 16;
        data[at..at + 4].copy_from_slice(&ticks.to_be_bytes());
    }
    fs::write(path, data).unwrap();
}

#[test]
fn edit_lists_are_followed_and_nothing_is_called_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let base = clip(folder.path(), "base.mp4", H264_AAC);
    let start = copied(&base, &path("start.mp4"), &["-ss", "0.72"], &[]);
    let silent = copied(&base, &path("silent.mp4"), &[], &["-an"]);
    let end = path("end.mp4");
    fs::copy(&silent, &end).unwrap();
    end_edits_at(&end, None, 1000);
    let both = path("both.mp4");
    fs::copy(&silent, &both).unwrap();
    let ticks = 12800_u32;
    end_edits_at(&both, Some(ticks / 2), 1000);
    let mut problems = Vec::new();
    for input in [&start, &end, &both] {
        let name = input.file_name().unwrap().to_str().unwrap();
        let (expected, all) = (times(input), distances(input));
        assert!(
            !expected.is_empty() && expected.len() < PICTURES + 2,
            "{name}: {}",
            expected.len()
        );
        let strict = identity(input, Path::new("null:"), &["--strict"]);
        if !strict.ok || !strict.warnings().is_empty() {
            problems.push(format!("{name}, --strict: {}", strict.warnings().join(" | ")));
        }
        for container in ["mp4", "mov", "mkv"] {
            let output = path(&format!("out.{container}"));
            let run = quickly(input, &output, &[]);
            let check = Check {
                name: format!("{name} -> {container}"),
                output: &output,
                run: &run,
                pictures: expected.len(),
                seconds: span(input).1 - span(input).0,
                distances: if has_sound(input) { all.clone() } else { Vec::new() },
                deserved: &[],
            };
            problems.extend(check.problems());
        }
    }
    assert_none(&problems);
}

#[test]
fn edit_lists_that_ffmpeg_does_not_follow_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let base = clip(folder.path(), "base.mp4", H264_AAC);
    // Lists of two edits each: a pause at the beginning, and all of the media.
    let whole = copied(&base, &path("whole.mp4"), &["-itsoffset", "0.5"], &[]);
    let lists: Vec<usize> = bytes(&whole)
        .windows(8)
        .enumerate()
        .filter_map(|(at, window)| (window == b"elst\0\0\0\0").then_some(at + 12))
        .collect();
    assert_eq!(lists.len(), 2);
    let output = path("out.mkv");
    let ordinary = quickly(&whole, &output, &["--strict"]);
    assert!(
        ordinary.ok && ordinary.warnings().is_empty(),
        "{}",
        ordinary.words
    );
    let pause: fn(&mut [u8]) = |data| data.rotate_left(12);
    let rate: fn(&mut [u8]) = |data| data[21] = 2;
    // The pause becomes a part of the media from its tenth picture on.
    let parts: fn(&mut [u8]) = |data| data[4..8].copy_from_slice(&5120_u32.to_be_bytes());
    let (stream, sound) = ("edited.mp4: its", "the edit list of stream 1 (audio");
    let changes = [
        (lists[0], pause, [stream, "has a pause of 0.5 s after a part"]),
        (lists[0], rate, [stream, "has a rate of 2"]),
        (
            lists[0],
            parts,
            [stream, "has 2 parts of pictures that are coded out of order"],
        ),
        (lists[1], pause, [sound, " s after a part"]),
        (lists[1], rate, [sound, "has a rate of 2"]),
    ];
    for (list, change, words) in changes {
        let edited = path("edited.mp4");
        let mut data = bytes(&whole);
        change(&mut data[list..list + 24]);
        fs::write(&edited, data).unwrap();
        let run = quickly(&edited, &output, &[]);
        let said = run.warnings();
        let is_named = |w: &&str| words.iter().all(|part| w.contains(part));
        assert!(said.iter().any(is_named), "{words:?}: {}", run.words);
        assert!(
            !run.words.contains("incomplete") || words[1].contains("pause"),
            "{}",
            run.words
        );
        assert!(!quickly(&edited, &output, &["--strict"]).ok, "{words:?}");
    }
    // Of the media nothing is shown.
    let empty = path("empty.mp4");
    let mut data = bytes(&whole);
    data[lists[0]..lists[0] + 4].fill(0);
    data[lists[0] + 12..lists[0] + 16].fill(0);
    fs::write(&empty, data).unwrap();
    let run = quickly(&empty, &output, &[]);
    let words = "the edit list of stream 0 leaves out all of its 50 frames";
    assert!(!run.ok && run.words.contains(words), "{}", run.words);
}

/// A way to write two seconds of pictures, with sound where the container has any.
struct Whole {
    extension: &'static str,
    encoding: &'static [&'static str],
    /// False if all its pictures last equally long.
    varies: bool,
}

const fn whole(extension: &'static str, encoding: &'static [&'static str], varies: bool) -> Whole {
    Whole {
        extension,
        encoding,
        varies,
    }
}

const WHOLE: [Whole; 20] = [
    whole("mp4", H264_AAC, true),
    whole("mov", &["-c:v", "mjpeg", "-c:a", "pcm_s16le"], true),
    whole("mkv", H264_AAC, true),
    whole("webm", &["-c:v", "libvpx", "-c:a", "libopus"], true),
    whole("avi", &["-c:v", "mpeg4", "-c:a", "libmp3lame"], false),
    whole("ts", H264_AAC, true),
    whole("mpg", MPEG2_MP2, false),
    whole(
        "flv",
        &["-c:v", "flv", "-c:a", "libmp3lame", "-ar", "44100"],
        true,
    ),
    whole("ogv", &["-c:v", "libtheora", "-c:a", "libvorbis"], false),
    whole("wmv", &["-c:v", "wmv2", "-c:a", "wmav2"], true),
    whole("mxf", &["-c:v", "mpeg2video", "-c:a", "pcm_s16le"], false),
    whole("nut", &["-c:v", "ffv1", "-c:a", "pcm_s16le"], true),
    whole("gif", &["-an"], true),
    whole("apng", &["-an"], true),
    whole("ivf", &["-c:v", "libvpx", "-an"], true),
    whole("h264", &["-c:v", "libx264", "-bf", "2", "-an"], false),
    whole(
        "hevc",
        &["-c:v", "libx265", "-x265-params", "log-level=none", "-an"],
        false,
    ),
    whole("m2v", &["-c:v", "mpeg2video", "-bf", "2", "-an"], false),
    whole("mjpeg", &["-c:v", "mjpeg", "-an"], false),
    // The sound begins before the pictures, of which all but the first are moved.
    whole(
        "m4v",
        &[
            "-c:v",
            "libx264",
            "-bf",
            "0",
            "-c:a",
            "aac",
            "-movflags",
            "frag_keyframe+empty_moov",
            "-f",
            "mp4",
        ],
        false,
    ),
];

#[test]
fn whole_files_are_not_called_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    let mut problems = Vec::new();
    for (turn, kind) in WHOLE.into_iter().enumerate() {
        // Every picture moves, so that none is left out as a repetition.
        let video = "testsrc2=s=96x64:r=25:d=2";
        let still = "-frames:v";
        let shapes: [(&str, &str, &[&str]); 4] = [
            ("even", "null", &[]),
            (
                "uneven",
                "setpts='(N+floor(N/4)+mod(N*N,3)/4)/25/TB'",
                &["-fps_mode", "vfr"],
            ),
            (
                "long last",
                "setpts='(N+gte(N,9)*50)/25/TB',trim=end_frame=10",
                &["-fps_mode", "vfr"],
            ),
            ("one", "null", &[still, "1"]),
        ];
        // Of the two shapes of other rates one in turn, and every second kind without a single picture.
        let left_out: &[&str] = match turn % 2 {
            _ if is_whole_matrix() => &[],
            0 => &["uneven", "one"],
            _ => &["long last"],
        };
        for (shape, filter, more) in shapes {
            if !kind.varies && !more.is_empty() && shape != "one" || left_out.contains(&shape) {
                continue;
            }
            let path = folder
                .path()
                .join(format!("{shape}.{}", kind.extension).replace(' ', "-"));
            let sound = ["-f", "lavfi", "-i", "sine=440:d=2:r=48000"];
            let video = ["-f", "lavfi", "-i", video, "-vf", filter];
            let start = [&video[..2], &video[2..4], &sound, &video[4..]].concat();
            ffmpeg(&[&start, kind.encoding, more, &[path.to_str().unwrap()]].concat());
            let raw = folder.path().join("out.raw");
            let output = format!("raw:{}", raw.to_str().unwrap());
            // Raw frames say nothing of range and chroma, which a strict run would refuse.
            identity(&path, Path::new(&output), &[]);
            let run = identity(&path, Path::new("null:"), &["--strict"]);
            let expected = count(&path);
            if expected == 0 {
                // FFmpeg writes what it cannot read.
                continue;
            }
            let name = format!("{} {shape}", kind.extension);
            if !run.ok || !run.warnings().is_empty() {
                problems.push(format!("{name}: {}", run.warnings().join(" | ")));
                continue;
            }
            let (found, one) = (raw.metadata().unwrap().len() as usize, raw_size(&path));
            if found != expected * one {
                problems.push(format!("{name}: {found} bytes, not {expected} pictures of {one}"));
            }
        }
    }
    assert_none(&problems);
}

/// Bytes of one picture as framepipe writes it: three samples a pixel, or one and a half, or four.
fn raw_size(path: &Path) -> usize {
    let found = probe(path, &COUNTED);
    let stream = &found["streams"][0];
    let pixels = stream["width"].as_u64().unwrap() as usize * stream["height"].as_u64().unwrap() as usize;
    match stream["pix_fmt"].as_str().unwrap() {
        "yuv420p" | "yuvj420p" => pixels * 3 / 2,
        "yuv422p" | "yuvj422p" => pixels * 2,
        "bgra" | "rgba" | "bgr0" => pixels * 4,
        _ => pixels * 3,
    }
}

#[test]
fn pictures_of_bare_mpeg_follow_one_another_at_even_steps() {
    let folder = tempfile::tempdir().unwrap();
    for (name, codec, reordered) in [
        ("in.m1v", "mpeg1video", "0"),
        ("reordered.m1v", "mpeg1video", "2"),
        ("in.m2v", "mpeg2video", "2"),
    ] {
        let (input, output) = (folder.path().join(name), folder.path().join("out.mkv"));
        let video = ["-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=1"];
        let encoding = ["-c:v", codec, "-bf", reordered];
        ffmpeg(&[&video[..], &encoding, &[input.to_str().unwrap()]].concat());
        let run = identity(&input, &output, &["--encoder", "ffv1", "--strict"]);
        assert!(run.ok, "{name}: {}", run.words);
        let times = times(&output);
        assert_eq!(times.len(), 25, "{name}");
        for pair in times.windows(2) {
            assert!((pair[1] - pair[0] - 0.04).abs() < 1e-3, "{name}: {times:?}");
        }
    }
}

/// FFmpeg makes up the times of these: the stream's own rate counts.
#[test]
fn pictures_of_bare_streams_without_times_come_at_their_rate() {
    let folder = tempfile::tempdir().unwrap();
    // H.261 has no other clock than 30000/1001, and the encoder of H.263 takes it.
    for (name, codec, step) in [
        ("in.drc", "vc2", 1.0 / 30.0),
        ("in.h261", "h261", 1.001 / 30.0),
        ("in.h263", "h263", 1.001 / 30.0),
    ] {
        let (input, output) = (folder.path().join(name), folder.path().join("out.mkv"));
        let video = ["-f", "lavfi", "-i", "testsrc2=s=176x144:r=30:d=1", "-c:v", codec];
        ffmpeg(&[&video[..], &[input.to_str().unwrap()]].concat());
        let run = identity(&input, &output, &["--encoder", "ffv1", "--strict"]);
        assert!(run.ok, "{name}: {}", run.words);
        let times = times(&output);
        assert_eq!(times.len(), 30, "{name}");
        for (number, time) in times.iter().enumerate() {
            assert!((time - number as f64 * step).abs() < 1.1e-3, "{name}: {times:?}");
        }
    }
}

/// FFmpeg's decoder drops the last picture of a stream where one with another head follows on it.
#[test]
fn a_picture_that_is_lost_between_joined_streams_is_named_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.m2v"), folder.path().join("out.mkv"));
    let parts = ["1", "4/3"].map(|aspect| {
        let part = folder.path().join("part.m2v");
        let video = ["-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=1", "-vf"];
        let head = format!("setsar={aspect}");
        let encoding = [&head, "-c:v", "mpeg2video", part.to_str().unwrap()];
        ffmpeg(&[&video[..], &encoding].concat());
        bytes(&part)
    });
    fs::write(&input, parts.concat()).unwrap();
    let run = quickly(&input, &output, &[]);
    let words = "1 frame is missing at one place after 0.960 s";
    assert!(
        run.ok && run.words.contains(words) && !run.words.contains("at its beginning"),
        "{}",
        run.words
    );
    assert_eq!(count(&output), 49);
    let strict = identity(&input, Path::new("null:"), &["--strict"]);
    assert!(!strict.ok && strict.words.contains(words), "{}", strict.words);
}

/// Film in MPEG-2 at 30 frames a second: every other picture repeats a field, of which the first is one.
#[test]
fn fields_that_are_repeated_are_named_where_frames_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.m2v");
    let video = ["-f", "lavfi", "-i", "testsrc2=s=96x64:r=30000/1001:d=1"];
    let encoding = ["-c:v", "mpeg2video", "-bf", "0", input.to_str().unwrap()];
    ffmpeg(&[&video[..], &encoding].concat());
    let mut data = bytes(&input);
    let mut pictures = 0;
    for at in 0..data.len() - 9 {
        match (&data[at..at + 4], data[at + 4] >> 4) {
            // A picture coding extension: top_field_first, repeat_first_field and progressive_frame.
            ([0, 0, 1, 0xb5], 8) => {
                let (top_first, repeats) = [(1, 1), (0, 0), (0, 1), (1, 0)][pictures % 4];
                data[at + 7] = data[at + 7] & 0x7d | top_first << 7 | repeats << 1;
                data[at + 8] |= 0x80;
                pictures += 1;
            }
            // A sequence extension: not progressive_sequence.
            ([0, 0, 1, 0xb5], 1) => data[at + 5] &= !8,
            _ => {}
        }
    }
    assert!(pictures > 20, "{pictures}");
    fs::write(&input, data).unwrap();
    for (name, encoder) in [("out.ts", "mpeg2video"), ("out.avi", "mpeg4")] {
        let run = identity(&input, &folder.path().join(name), &["--encoder", encoder]);
        assert!(
            run.ok && run.words.contains("shown up to 0.017 s earlier or later"),
            "{name}: {}",
            run.words
        );
    }
    // Matroska has times of its own for each.
    let run = identity(
        &input,
        &folder.path().join("out.mkv"),
        &["--encoder", "ffv1", "--strict"],
    );
    assert!(run.ok, "{}", run.words);
}

#[test]
fn a_picture_that_is_held_is_no_loss_unless_sound_is_missing_too() {
    let folder = tempfile::tempdir().unwrap();
    let sound = "sine=d=5:r=48000";
    let broken = "sine=d=5:r=48000,aselect='lt(t,1.2)+gt(t,2.2)'";
    for (name, codec, sound, is_lost) in [
        ("alone.mkv", "mpeg4", None, false),
        ("alone.ts", "mpeg2video", None, false),
        ("alone.avi", "mpeg4", None, false),
        ("held.mkv", "mpeg4", Some(sound), false),
        ("held.avi", "mpeg4", Some(sound), false),
        ("lost.mkv", "mpeg4", Some(broken), true),
    ] {
        let input = folder.path().join(name);
        let video = "testsrc2=s=96x64:r=25:d=4,select='lt(t,1.2)+gt(t,2.2)'";
        let mut options = vec!["-f", "lavfi", "-i", video];
        options.extend(sound.iter().flat_map(|sound| ["-f", "lavfi", "-i", sound]));
        options.extend(["-fps_mode", "vfr", "-c:v", codec, "-c:a", "pcm_s16le"]);
        options.push(input.to_str().unwrap());
        ffmpeg(&options);
        let output = folder.path().join("out.mkv");
        let lenient = identity(&input, &output, &["--encoder", "ffv1"]);
        assert!(lenient.ok, "{name}: {}", lenient.words);
        let strict = identity(&input, &output, &["--encoder", "ffv1", "--strict"]);
        assert_eq!(strict.ok, !is_lost, "{name}: {}", strict.words);
        let is_named = lenient
            .warnings()
            .iter()
            .any(|w| w.contains("frames are missing"));
        assert_eq!(is_named, is_lost, "{name}: {}", lenient.words);
        let is_noted = lenient.words.contains("no new picture is shown for 1.0");
        let says_so = name.ends_with("avi");
        assert_eq!(is_noted, !is_lost && !says_so, "{name}: {}", lenient.words);
    }
    // FFmpeg's AVI has a first picture that comes late behind chunks without bytes.
    let late = folder.path().join("late.avi");
    let input = [
        "-itsoffset",
        "0.7",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=96x64:r=25:d=2",
    ];
    ffmpeg(&[&input[..], &["-c:v", "mpeg4", late.to_str().unwrap()]].concat());
    let run = identity(
        &late,
        &folder.path().join("out.mkv"),
        &["--encoder", "ffv1", "--strict"],
    );
    assert!(run.ok, "{}", run.words);
}

#[test]
fn a_long_last_picture_stays_long() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let list = path("list.txt");
    fs::write(&list, "file 'a.png'\nduration 2\nfile 'b.png'\nduration 5\n").unwrap();
    for (name, colour) in [("a.png", "blue"), ("b.png", "red")] {
        let source = format!("color={colour}:s=64x64");
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &source,
            "-frames:v",
            "1",
            path(name).to_str().unwrap(),
        ]);
    }
    let gif = path("slides.gif");
    let slides = [
        "-f",
        "concat",
        "-i",
        list.to_str().unwrap(),
        "-fps_mode",
        "vfr",
        "-final_delay",
        "500",
    ];
    ffmpeg(&[&slides[..], &[gif.to_str().unwrap()]].concat());
    let mut problems = Vec::new();
    let mut last = gif;
    for container in ["mkv", "mkv", "mp4", "mkv", "webm", "mov", "flv"] {
        let next = path(&format!(
            "from-{}.{container}",
            last.extension().unwrap().to_str().unwrap()
        ));
        let run = identity(&last, &next, &["--strict"]);
        let (start, end) = span(&next);
        if !run.ok || (end - start - 7.0).abs() > 0.05 {
            problems.push(format!(
                "{}: {} s, {}",
                next.display(),
                end - start,
                run.warnings().join(" | ")
            ));
        }
        if run.ok {
            last = next;
        }
    }
    assert_none(&problems);
}

/// Gives the tenth block of a Matroska file's last cluster a length beyond the cluster's.
fn break_tenth_block(data: &mut [u8]) {
    let size = |at: usize| {
        let length = data[at].leading_zeros() as usize + 1;
        let marked = data[at..at + length]
            .iter()
            .fold(0, |all, &byte| all << 8 | usize::from(byte));
        (marked & ((1 << (7 * length)) - 1), length)
    };
    let cluster = data.windows(4).rposition(|id| id == [0x1F, 0x43, 0xB6, 0x75]);
    let mut at = cluster.unwrap() + 4;
    at += size(at).1;
    let mut blocks = 0;
    loop {
        let id = data[at].leading_zeros() as usize + 1;
        blocks += usize::from(matches!(data[at], 0xA0 | 0xA3));
        let (content, length) = size(at + id);
        if blocks == 10 {
            data[at + id..at + id + 4].copy_from_slice(&[0x11, 0xFF, 0xFF, 0xFF]);
            return;
        }
        at += id + length + content;
    }
}

#[test]
fn files_that_were_cut_off_are_called_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    // Those that say in their head how much they hold, or mark their end.
    let known = [
        "mkv", "webm", "avi", "flv", "wmv", "ogv", "mxf", "gif", "apng", "nut", "mpg",
    ];
    let mut problems = Vec::new();
    for kind in WHOLE.iter().filter(|kind| known.contains(&kind.extension)) {
        let path = clip(folder.path(), &format!("cut.{}", kind.extension), kind.encoding);
        let data = bytes(&path);
        let percents: &[usize] = if is_whole_matrix() {
            &[50, 90, 93]
        } else {
            &[50, 93]
        };
        for percent in percents {
            fs::write(&path, &data[..data.len() * percent / 100]).unwrap();
            let output = folder.path().join("out.mkv");
            let (lenient, strict) = (
                quickly(&path, &output, &[]),
                quickly(&path, &output, &["--strict"]),
            );
            if lenient.warnings().is_empty() || strict.ok {
                problems.push(format!(
                    "{}: cut off at {percent} %, and nothing is said",
                    kind.extension
                ));
            }
        }
    }
    // A block of Matroska's last cluster whose length points behind the cluster: the file is whole.
    let path = clip(folder.path(), "long.mkv", H264_AAC);
    let mut data = bytes(&path);
    break_tenth_block(&mut data);
    fs::write(&path, &data).unwrap();
    let output = folder.path().join("out.mkv");
    let (lenient, strict) = (
        quickly(&path, &output, &[]),
        quickly(&path, &output, &["--strict"]),
    );
    let said = lenient.warnings().join(" | ");
    if !said.contains("its blocks break off") || strict.ok {
        problems.push(format!("a long block: {said}"));
    }
    for (extension, encoding) in [("mp4", H264_AAC), ("mov", H264_AAC)] {
        let moved = [encoding, &["-movflags", "faststart"]].concat();
        let path = clip(folder.path(), &format!("cut.{extension}"), &moved);
        let data = bytes(&path);
        fs::write(&path, &data[..data.len() * 8 / 10]).unwrap();
        let output = folder.path().join("out.mkv");
        let (lenient, strict) = (
            quickly(&path, &output, &[]),
            quickly(&path, &output, &["--strict"]),
        );
        if lenient.warnings().is_empty() || strict.ok {
            problems.push(format!("{extension}: cut off, and nothing is said"));
        }
    }
    // Of a bare picture of HEVC that breaks off, FFmpeg makes a whole one.
    let path = folder.path().join("cut.hevc");
    let parts = ["no-wpp=1", "slices=3"].map(|setting| {
        let video = "testsrc2=s=320x256:r=25:d=0.4,noise=alls=20";
        let settings = format!("log-level=none:{setting}");
        let encoding = [
            "-c:v",
            "libx265",
            "-x265-params",
            &settings,
            path.to_str().unwrap(),
        ];
        ffmpeg(&[&["-f", "lavfi", "-i", video], &encoding[..]].concat());
        bytes(&path)
    });
    for (data, percents) in [
        (&parts[0], &[100, 94, 60, 30][..]),
        (&parts[1], &[100, 94, 60, 30]),
        (&parts.concat(), &[100]),
    ] {
        for &percent in percents {
            fs::write(&path, &data[..data.len() * percent / 100]).unwrap();
            let strict = identity(&path, Path::new("null:"), &["--strict"]);
            if strict.ok != (percent == 100) {
                problems.push(format!("{percent} % of bare HEVC: {}", strict.words));
            }
        }
    }
    // AMV states no length and ends with a mark.
    let sound = ["-c:a", "adpcm_ima_amv", "-ar", "22050", "-block_size", "882"];
    let path = clip(folder.path(), "cut.amv", &[&["-c:v", "amv"], &sound[..]].concat());
    let data = bytes(&path);
    for percent in [100, 60] {
        fs::write(&path, &data[..data.len() * percent / 100]).unwrap();
        let strict = quickly(&path, &output, &["--strict", "--no-audio"]);
        if strict.ok != (percent == 100) {
            problems.push(format!("{percent} % of an AMV file: {}", strict.words));
        }
    }
    assert_none(&problems);
}

/// The file from the packet of its second key frame on, which is one that earlier pictures lead to.
fn from_second_key(input: &Path, muxer: &str) -> PathBuf {
    let extension = input.extension().unwrap().to_str().unwrap();
    let output = input.with_file_name(format!("headless.{extension}"));
    let found = probe(
        input,
        &[
            "-select_streams",
            "v:0",
            "-show_entries",
            "packet=pts_time,pos,flags",
        ],
    );
    let packets = found["packets"].as_array().unwrap();
    let key = packets
        .iter()
        .skip(1)
        .find(|p| p["flags"].as_str().unwrap().starts_with('K'))
        .unwrap();
    let position: usize = key["pos"].as_str().unwrap().parse().unwrap();
    let data = bytes(input);
    match muxer {
        // The tables come first, three packets of 188 bytes.
        "mpegts" => fs::write(&output, [&data[..564], &data[position..]].concat()).unwrap(),
        "matroska" => {
            let after = format!("{}", number(&key["pts_time"]).unwrap() + 0.3);
            copied(input, &output, &["-ss", &after], &[]);
        }
        _ => fs::write(&output, &data[position..]).unwrap(),
    }
    output
}

#[test]
fn pictures_that_lead_to_a_lost_group_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let x264: &[&str] = &[
        "-c:v",
        "libx264",
        "-x264-params",
        "open-gop=1:keyint=24:min-keyint=24:bframes=3:b-adapt=0:scenecut=0",
    ];
    let x265: &[&str] = &[
        "-c:v",
        "libx265",
        "-x265-params",
        "open-gop=1:keyint=24:min-keyint=24:bframes=3:b-adapt=0:scenecut=0:log-level=none",
    ];
    let mpeg2: &[&str] = &["-c:v", "mpeg2video", "-bf", "2", "-g", "12", "-b:v", "2M"];
    let mut problems = Vec::new();
    for (codec, encoding, raw) in [
        ("h264", x264, "h264"),
        ("hevc", x265, "hevc"),
        ("mpeg2", mpeg2, "m2v"),
    ] {
        for (extension, muxer) in [("ts", "mpegts"), ("mkv", "matroska"), (raw, "")] {
            let path = folder.path().join(format!("{codec}.{extension}"));
            let source = ["-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=4", "-threads", "1"];
            ffmpeg(&[&source[..], encoding, &[path.to_str().unwrap()]].concat());
            let cut = from_second_key(&path, muxer);
            let arguments = [
                "-count_packets",
                "-select_streams",
                "v:0",
                "-show_entries",
                "stream=nb_read_packets",
            ];
            let read = &probe(&cut, &arguments)["streams"][0]["nb_read_packets"];
            let packets: usize = read.as_str().unwrap().parse().unwrap();
            let file = folder.path().join("out.raw");
            let output = format!("raw:{}", file.to_str().unwrap());
            let run = identity(&cut, Path::new(&output), &[]);
            let strict = identity(&cut, Path::new(&output), &["--strict"]);
            let run_again = identity(&cut, Path::new(&output), &[]);
            let pictures = file.metadata().unwrap().len() as usize / (96 * 64 * 3 / 2);
            let name = format!("{codec} in {extension}");
            let lost = packets - pictures;
            let is_warned = run.warnings().iter().any(|w| w.contains(&format!("{lost} ")));
            if lost > 0 && (!is_warned || strict.ok || !run_again.ok) {
                problems.push(format!("{name}: {pictures} of {packets}, {:?}", run.warnings()));
            }
            // Frames are counted from the first that is shown.
            if extension == "ts" {
                let later = identity(&cut, Path::new(&output), &["--start", "20f"]);
                let found = file.metadata().unwrap().len() as usize / (96 * 64 * 3 / 2);
                if !later.ok || found + 20 != pictures {
                    problems.push(format!("{name}: {found} of {pictures} pictures behind 20"));
                }
            }
            // Where the decoder shows something for each of them, it is no longer the right thing.
            if lost == 0 && run.warnings().is_empty() {
                problems.push(format!(
                    "{name}: {pictures} of {packets} and no word of what leads to them"
                ));
            }
            let whole = identity(&path, Path::new("null:"), &["--strict"]);
            if !whole.ok || !whole.warnings().is_empty() {
                problems.push(format!("{name}, not cut: {}", whole.warnings().join(" | ")));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn encrypted_files_are_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let base = clip(folder.path(), "base.mp4", H264_AAC);
    let path = folder.path().join("encrypted.mp4");
    let key = "76a6c65c5ea762046bd749a2e632ccbb";
    let kid = "a7e61c373e219033c21091fa607bf3b8";
    let scheme = [
        "-encryption_scheme",
        "cenc-aes-ctr",
        "-encryption_key",
        key,
        "-encryption_kid",
        kid,
    ];
    copied(&base, &path, &[], &scheme);
    for more in [&[][..], &["--strict"]] {
        let run = identity(&path, &folder.path().join("out.mkv"), more);
        assert!(
            !run.ok && run.words.contains("encrypted"),
            "{more:?}: {}",
            run.words
        );
    }
}

/// A Flash video whose sound begins `seconds` after its pictures, and whose head does not speak of it.
fn late_sound(folder: &TempDir, seconds: u32) -> PathBuf {
    let full = folder.path().join("full.flv");
    let inputs = [
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x64:r=5:d=20",
        "-f",
        "lavfi",
        "-i",
        "sine=440:d=20",
    ];
    let codecs = [
        "-c:v",
        "flv",
        "-c:a",
        "libmp3lame",
        "-b:a",
        "32k",
        full.to_str().unwrap(),
    ];
    ffmpeg(&[&inputs[..], &codecs[..]].concat());
    let data = bytes(&full);
    let mut out = data[..13].to_vec();
    out[4] = 1;
    let mut at = 13;
    while at < data.len() {
        let word = |from: usize| {
            data[from..from + 3]
                .iter()
                .fold(0_u32, |n, b| n << 8 | u32::from(*b))
        };
        let (size, time) = (word(at + 1) as usize, word(at + 4));
        let is_early_sound = data[at] == 8 && time < seconds * 1000;
        if !is_early_sound && data[at] != 18 {
            out.extend(&data[at..at + 15 + size]);
        }
        at += 15 + size;
    }
    let path = folder.path().join("late.flv");
    fs::write(&path, out).unwrap();
    path
}

#[test]
fn sound_that_begins_after_the_probe_is_kept_or_reported() {
    let folder = tempfile::tempdir().unwrap();
    for seconds in [1, 6, 16] {
        let path = late_sound(&folder, seconds);
        for container in ["mkv", "flv", "mp4"] {
            let output = folder.path().join(format!("out.{container}"));
            let run = quickly(&path, &output, &[]);
            assert!(run.ok, "{}", run.words);
            let words = run.warnings().join("\n");
            let is_mentioned = words.contains("sound") || words.contains("audio");
            assert!(
                has_sound(&output) || is_mentioned,
                "{seconds} s, {container}: {:?}",
                run.warnings()
            );
        }
    }
}
