//! Streams that change in mid-stream, as in recordings that were put together: what goes on otherwise than it
//! began is kept or named. FFmpeg makes the parts, and its programs judge what becomes of them.

use crate::common::ffprobe;
use crate::streams::{ffmpeg, filter, frames, warnings};
use std::fs;
use std::path::{Path, PathBuf};

/// A second of pictures and sound, with further options of ffmpeg.
fn part(path: &Path, options: &[&str]) -> Vec<u8> {
    let inputs = [
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:r=25:d=1",
        "-f",
        "lavfi",
        "-i",
        "sine=440:r=48000:d=1",
        "-ac",
        "2",
        "-preset",
        "ultrafast",
    ];
    ffmpeg(&[&inputs, options, &[path.to_str().unwrap()]].concat());
    fs::read(path).unwrap()
}

/// A transport stream of two parts, the second of which begins when the first has ended.
fn joined(folder: &Path, first: &[&str], second: &[&str]) -> PathBuf {
    let later = [second, &["-output_ts_offset", "1"]].concat();
    let parts = [
        part(&folder.join("one.ts"), first),
        part(&folder.join("two.ts"), &later),
    ];
    let input = folder.join("joined.ts");
    fs::write(&input, parts.concat()).unwrap();
    input
}

const AC3: [&str; 4] = ["-c:v", "libx264", "-c:a", "ac3"];
const STRICT: &[&str] = &["--strict"];

#[test]
fn pictures_that_go_on_in_another_stream_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let other = [&AC3[..], &["-mpegts_start_pid", "512"]].concat();
    let input = joined(folder.path(), &AC3, &other);
    let output = folder.path().join("out.mkv");
    for more in [&[][..], &["--streams", "video"]] {
        let said = warnings(&input, &output, more).join("\n");
        assert!(
            said.contains("the pictures of its program are in stream 2"),
            "{said}"
        );
        let (done, words) = filter(&input, &output, &[more, STRICT].concat());
        assert!(!done, "{words:?}");
    }
    // The advice.
    warnings(&input, &output, &["--stream", "2"]);
    assert_eq!(frames(&output), 25);
    let said = warnings(&input, &output, &["--stream", "2", "--streams", "video"]);
    assert_eq!(said, [] as [String; 0]);
    // The same identifiers in both parts are one stream.
    let same = joined(folder.path(), &AC3, &AC3);
    assert_eq!(warnings(&same, &output, STRICT), [] as [String; 0]);
    assert_eq!(frames(&output), 50);
}

#[test]
fn sound_of_another_codec_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.mkv");
    for (first, second) in [("ac3", "mp2"), ("mp2", "ac3"), ("aac", "ac3"), ("ac3", "aac")] {
        let [one, two] = [first, second].map(|sound| ["-c:v", "libx264", "-c:a", sound]);
        let input = joined(folder.path(), &one, &two);
        let said = warnings(&input, &output, &[]).join("\n");
        let word = format!("stream 1 (audio, {first}) goes over to {second} at ");
        assert!(said.contains(&word), "{said}");
        assert!(!said.contains(" 1 packets"), "{said}");
        // A frame or two at the seam are cut, and nothing of the second part follows.
        let sizes = [
            "-select_streams",
            "a",
            "-show_entries",
            "packet=size",
            "-of",
            "csv=p=0",
        ];
        let sizes = String::from_utf8(ffprobe(&output, &sizes).stdout).unwrap();
        let sizes: Vec<u64> = sizes
            .lines()
            .map(|size| size.trim_end_matches(',').parse().unwrap())
            .collect();
        let most = sizes.iter().max().unwrap();
        assert!(*most < 3000 && sizes.len() < 50, "{first} {second}: {sizes:?}");
        let (done, words) = filter(&input, &output, STRICT);
        assert!(!done, "{words:?}");
    }
}

#[test]
fn channels_that_change_are_named_where_they_are_mixed_or_stated_once() {
    let folder = tempfile::tempdir().unwrap();
    let more = [&AC3[..], &["-ac", "6"]].concat();
    let input = joined(folder.path(), &AC3, &more);
    let pcm = ["--audio-encoder", "pcm_s16le"];
    for (to, options, word) in [
        (
            "mov",
            &pcm[..],
            "the output keeps the first: 5.1(side) becomes stereo",
        ),
        ("mp4", &[], "has 48000 Hz and 6 channels from "),
    ] {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, options).join("\n");
        assert!(said.contains(word), "{to}: {said}");
        assert!(!filter(&input, &output, &[options, STRICT].concat()).0, "{to}");
    }
    let fewer = joined(folder.path(), &more, &AC3);
    let output = folder.path().join("fewer.mov");
    assert_eq!(
        warnings(&fewer, &output, &[&pcm[..], STRICT].concat()),
        [] as [String; 0]
    );
}

/// Two Flash videos, one behind the other, with the header of the second's sound in between.
fn joined_flv(folder: &Path, second: &[&str]) -> PathBuf {
    let sound = ["-c:v", "libx264", "-c:a", "aac"];
    let mut film = part(&folder.join("one.flv"), &sound);
    let other = part(&folder.join("two.flv"), &[&sound, second].concat());
    let mut at = 13;
    while at + 15 <= other.len() {
        let number = |from: usize| u32::from_be_bytes([0, other[from], other[from + 1], other[from + 2]]);
        let end = at + 15 + number(at + 1) as usize;
        let mut tag = other[at..end].to_vec();
        tag[4..7].copy_from_slice(&(number(at + 4) + 1000).to_be_bytes()[1..]);
        if tag[0] != 18 {
            film.extend(tag);
        }
        at = end;
    }
    let input = folder.join("joined.flv");
    fs::write(&input, film).unwrap();
    input
}

#[test]
fn headers_of_sound_that_change_in_flash_video_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = joined_flv(folder.path(), &["-ar", "44100"]);
    for to in ["mkv", "mp4", "ts", "nut"] {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, &[]).join("\n");
        assert!(
            said.contains("stream 1 (audio, aac) has 44100 Hz and 2 channels from 1."),
            "{to}: {said}"
        );
        assert!(!filter(&input, &output, STRICT).0, "{to}");
        // The head is whole.
        let path = output.to_str().unwrap();
        ffmpeg(&["-xerror", "-i", path, "-map", "0:v", "-f", "null", "-"]);
    }
    let output = folder.path().join("out.flv");
    assert_eq!(warnings(&input, &output, STRICT), [] as [String; 0]);
    let same = joined_flv(folder.path(), &[]);
    let output = folder.path().join("same.mkv");
    assert_eq!(warnings(&same, &output, STRICT), [] as [String; 0]);
}
