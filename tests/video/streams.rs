//! Sound, subtitles, data, covers, chapters and texts through `framepipe filter`, judged by FFmpeg's own
//! programs.

use crate::common::{is_whole_matrix, probe};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

const AUDIO: &[&str] = &[
    "aac",
    "libmp3lame",
    "ac3",
    "libopus",
    "libvorbis",
    "flac",
    "pcm_s16le",
    "wmav2",
];

/// Containers of several streams.
const CONTAINERS: &[&str] = &[
    "mp4", "mov", "mkv", "webm", "avi", "ts", "mpg", "flv", "ogg", "wmv", "mxf", "nut",
];

/// Containers of one video stream.
const VIDEO_ONLY: &[&str] = &["gif", "apng", "h264", "hevc", "m2v", "mjpeg", "ivf", "yuv"];

/// Frames of the inputs.
const FRAMES: u64 = 12;

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

pub(crate) fn ffmpeg(arguments: &[&str]) -> String {
    let done = run(
        "ffmpeg",
        &[&["-nostdin", "-v", "error", "-y"], arguments].concat(),
    );
    assert!(
        done.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

/// The streams of a file, with the number of frames that each one decodes to.
fn streams(path: &Path) -> Vec<Value> {
    let found = probe(path, &["-count_frames", "-show_streams"]);
    found["streams"].as_array().cloned().unwrap_or_default()
}

/// Media and codecs of a file's streams, in its order.
fn codecs(path: &Path) -> Vec<String> {
    let name = |s: &Value| s["codec_name"].as_str().unwrap_or("none").to_owned();
    streams(path).iter().map(name).collect()
}

/// MD5 of the packets of the streams that `map` chooses, in order.
fn packets(path: &Path, map: &str) -> Vec<String> {
    let path = path.to_str().unwrap();
    let text = ffmpeg(&[
        "-i",
        path,
        "-map",
        map,
        "-c",
        "copy",
        "-f",
        "streamhash",
        "-hash",
        "md5",
        "-",
    ]);
    text.lines()
        .map(|line| line.rsplit('=').next().unwrap().to_owned())
        .collect()
}

/// What `framepipe filter` did: whether it succeeded, and its errors and warnings.
pub(crate) fn filter(input: &Path, output: &Path, more: &[&str]) -> (bool, Vec<String>) {
    let fixed = ["filter", "--filter", "mask:rows=1", "--overwrite"];
    let paths = [input.to_str().unwrap(), output.to_str().unwrap()];
    let speed: &[&str] = match output.extension().and_then(|e| e.to_str()) {
        Some("webm" | "ivf") => &["--preset", "8"],
        Some("mp4" | "mov" | "mkv" | "ts" | "flv" | "nut") if !more.contains(&"--encoder") => {
            &["--preset", "ultrafast"]
        }
        _ => &[],
    };
    let done = run(
        env!("CARGO_BIN_EXE_framepipe"),
        &[&fixed, &paths[..], speed, more].concat(),
    );
    let text = String::from_utf8(done.stderr).unwrap();
    let words = text
        .lines()
        .filter(|line| line.starts_with("warning: ") || line.starts_with("error: "));
    (done.status.success(), words.map(str::to_owned).collect())
}

/// As [`filter`], for a run that must succeed; gives its warnings.
pub(crate) fn warnings(input: &Path, output: &Path, more: &[&str]) -> Vec<String> {
    let (done, words) = filter(input, output, more);
    assert!(done, "{} {more:?}: {words:?}", output.display());
    words
}

/// Frames of the output's video.
pub(crate) fn frames(path: &Path) -> u64 {
    if path.extension().is_some_and(|e| e == "yuv") {
        return std::fs::metadata(path).unwrap().len() / (64 * 48 * 3 / 2);
    }
    let is_picture = |s: &Value| s["codec_type"] == "video" && s["disposition"]["attached_pic"] == 0;
    let video = streams(path).into_iter().find(is_picture);
    let count = video.as_ref().and_then(|s| s["nb_read_frames"].as_str());
    count.map_or(0, |n| n.parse().unwrap())
}

/// A clip with sound by `audio`, of `inputs` beside video and sound, with further options of ffmpeg.
fn clip(path: &Path, audio: &str, inputs: &[&str], more: &[&str]) {
    let seconds = FRAMES as f64 / 25.0;
    // With noise, since encoders of some kinds leave out what does not change.
    let video = format!("testsrc2=s=64x48:r=25:d={seconds},noise=alls=30:allf=t");
    let sound = format!("sine=440:r=48000:d={seconds}");
    let fixed = ["-f", "lavfi", "-i", &video, "-f", "lavfi", "-i", &sound];
    let coded = [
        "-strict",
        "-2",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-bf",
        "2",
        "-c:a",
        audio,
    ];
    ffmpeg(&[&fixed, inputs, &coded, more, &[path.to_str().unwrap()]].concat());
}

fn subtitles(folder: &Path) -> PathBuf {
    let path = folder.join("words.srt");
    std::fs::write(&path, "1\n00:00:00,100 --> 00:00:00,300\nHello\n").unwrap();
    path
}

/// An input, the number of its streams, and the hash of each one's packets.
struct Input {
    path: PathBuf,
    hashes: Vec<String>,
}

/// Checks one output: frames, each stream's packets or a word about it, and that a strict run fails if there
/// is such a word.
fn check(input: &Input, output: &Path, strict_too: bool) {
    let name = output.display();
    let said = warnings(&input.path, output, &[]);
    assert_eq!(frames(output), FRAMES, "{name}: {said:?}");
    let mut lost = 0;
    let can_be_read = output.extension().is_none_or(|e| e != "yuv");
    let found = if can_be_read { streams(output) } else { Vec::new() };
    let mut next = 1;
    for index in 1..input.hashes.len() {
        let start = format!("warning: stream {index} (");
        let word = said.iter().find(|w| w.starts_with(&start));
        match word {
            Some(word) if word.contains(" is left out: ") => lost += 1,
            Some(word) => {
                assert!(word.contains(" is re-encoded by "), "{name}: {word}");
                assert_eq!(found[next]["codec_type"], "audio", "{name}");
                // Its packets can be decoded, all of them.
                let map = format!("0:{next}");
                ffmpeg(&[
                    "-xerror",
                    "-i",
                    output.to_str().unwrap(),
                    "-map",
                    &map,
                    "-f",
                    "null",
                    "-",
                ]);
                lost += 1;
                next += 1;
            }
            None => {
                // Where both codecs are lossless, encoding anew takes nothing away.
                let source = input.path.to_str().unwrap();
                let is_lossless = source.contains("flac") || source.contains("pcm_s16le");
                let codec = found[next]["codec_name"].as_str().unwrap();
                if is_lossless && !source.contains(codec) && matches!(codec, "pcm_s16le" | "alac" | "flac") {
                    let samples = |path: &Path, index: usize| {
                        let (path, map) = (path.to_str().unwrap(), format!("0:{index}"));
                        run(
                            "ffmpeg",
                            &["-v", "error", "-i", path, "-map", &map, "-f", "s16le", "-"],
                        )
                        .stdout
                    };
                    // In MXF, silence follows.
                    let (before, after) = (samples(&input.path, index), samples(output, next));
                    assert!(!before.is_empty() && after.starts_with(&before), "{name}");
                    next += 1;
                    continue;
                }
                let hash = packets(output, &format!("0:{next}"));
                // AAC is stored in two ways, of which the packets of one have a header more.
                // In MXF, silence makes sound as long as the picture.
                let is_rewrapped = output.extension().unwrap() == "mxf"
                    || found[next]["codec_name"] == "aac" && output.extension().unwrap() == "ts";
                if !is_rewrapped {
                    assert_eq!(hash[0], input.hashes[index], "{name}: stream {index}, {said:?}");
                }
                next += 1;
            }
        }
    }
    if can_be_read {
        assert_eq!(found.len(), next, "{name}: {said:?}");
    }
    if !strict_too {
        return;
    }
    let strict = output.with_file_name(format!("strict-{}", output.file_name().unwrap().display()));
    let (done, words) = filter(&input.path, &strict, &["--strict"]);
    assert_eq!(done, lost == 0, "{name}: {said:?}, but with --strict {words:?}");
    assert_eq!(done, strict.exists());
}

#[test]
fn every_stream_is_in_every_container_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let words = subtitles(folder.path());
    let words = words.to_str().unwrap();
    let kinds = [
        ("srt", "subrip"),
        ("mkv", "ass"),
        ("mp4", "mov_text"),
        ("mkv", "webvtt"),
    ];
    let inputs: Vec<Input> = AUDIO
        .iter()
        .enumerate()
        .map(|(at, audio)| {
            let subtitle = kinds[at % kinds.len()].1;
            let is_mp4 = subtitle == "mov_text" && *audio != "pcm_s16le" && *audio != "wmav2";
            let (extension, subtitle) = match (is_mp4, subtitle) {
                (true, _) => ("mp4", subtitle),
                (false, "mov_text") => ("mkv", "subrip"),
                _ => ("mkv", subtitle),
            };
            let path = folder.path().join(format!("in-{audio}.{extension}"));
            let maps = ["-map", "0", "-map", "1", "-map", "2", "-c:s", subtitle];
            clip(&path, audio, &["-i", words], &maps);
            Input {
                hashes: packets(&path, "0"),
                path,
            }
        })
        .collect();
    let mut cases: Vec<(usize, &str)> = Vec::new();
    for at in 0..inputs.len() {
        // Of each kind of sound every second container, the others for the next kind.
        let chosen = CONTAINERS
            .iter()
            .enumerate()
            .filter(|(to, _)| is_whole_matrix() || (at + to) % 2 == 0);
        cases.extend(chosen.map(|(_, &to)| (at, to)));
    }
    for at in [0, 3] {
        cases.extend(VIDEO_ONLY.iter().map(|&to| (at, to)));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(at, to)) = cases.get(case) else {
                        break;
                    };
                    let output = folder.path().join(format!("out-{}.{to}", AUDIO[at]));
                    // Of every container and every kind of sound some: 5 divides neither number.
                    check(&inputs[at], &output, case.is_multiple_of(5));
                }
            });
        }
    });
}

#[test]
fn encoders_that_the_container_holds_without_saying_so_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    clip(&input, "wmav2", &[], &[]);
    let output = folder.path().join("out.mkv");
    for encoder in ["utvideo", "huffyuv", "magicyuv"] {
        let said = warnings(&input, &output, &["--encoder", encoder]);
        assert!(said.is_empty(), "{said:?}");
        assert_eq!(codecs(&output), [encoder, "wmav2"]);
        assert_eq!(frames(&output), FRAMES);
    }
    let (done, said) = filter(&input, &folder.path().join("out.webm"), &["--encoder", "libx264"]);
    assert!(
        !done && said[0].contains("webm cannot hold h264, which the encoder libx264 writes; for webm it has")
    );
    assert!(
        said[0].contains("libvpx-vp9") && !said[0].contains("mpeg4"),
        "{said:?}"
    );
}

#[test]
fn encoders_that_nobody_set_take_the_size_and_fit_the_container() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // No size of H.263's, nor of DNxHD's, and a depth for which HEVC is taken where the container holds it.
    let size = ["-vf", "scale=320:240", "-an"];
    clip(&at("in.mkv"), "aac", &[], &size);
    clip(
        &at("deep.mkv"),
        "aac",
        &[],
        &[&size[..], &["-pix_fmt", "yuv420p10le"]].concat(),
    );
    for (input, name, more, codec) in [
        ("in.mkv", "out.3g2", &[][..], "h264"),
        ("in.mkv", "out.dnxhd", &[], "dnxhd"),
        ("in.mkv", "out.mxf", &["--encoder", "dnxhd"], "dnxhd"),
        ("deep.mkv", "out.mp4", &[], "hevc"),
        ("deep.mkv", "out.3gp", &[], "h264"),
    ] {
        let output = at(name);
        warnings(&at(input), &output, more);
        assert_eq!((codecs(&output), frames(&output)), (vec![codec.into()], FRAMES));
    }
}

#[test]
fn samples_alone_are_right_whatever_the_name_is() {
    let folder = tempfile::tempdir().unwrap();
    let (input, same) = (folder.path().join("in.mkv"), folder.path().join("same.yuv"));
    clip(&input, "aac", &[], &["-an"]);
    ffmpeg(&["-i", input.to_str().unwrap(), same.to_str().unwrap()]);
    // FFmpeg takes the first two for stills.
    for name in ["out.raw", "out.y", "out.bin"] {
        let output = folder.path().join(name);
        let said = warnings(&input, &output, &["--format", "rawvideo"]);
        assert!(said.is_empty(), "{name}: {said:?}");
        assert!(
            std::fs::read(&output).unwrap() == std::fs::read(&same).unwrap(),
            "{name}"
        );
    }
}

/// A transport stream with a data stream of KLV: ffmpeg writes one of unnamed data, whose entry in the
/// program map gets the mark of KLV.
fn klv(path: &Path) {
    let folder = path.parent().unwrap();
    let data = folder.join("data.bin");
    std::fs::write(&data, [6, 14, 43, 52].repeat(8)).unwrap();
    clip(
        path,
        "aac",
        &["-f", "data", "-i", data.to_str().unwrap()],
        &["-map", "0", "-map", "1", "-map", "2", "-c:d", "copy"],
    );
    let mut bytes = std::fs::read(path).unwrap();
    for packet in bytes.chunks_mut(188) {
        // A packet of the program map's: payload from byte 4 on, a pointer of 0, table 2.
        if packet[1] & 0x5f != 0x50 || packet[4] != 0 || packet[5] != 2 {
            continue;
        }
        let length = (usize::from(packet[6] & 15) << 8) + usize::from(packet[7]);
        let crc = 8 + length - 4;
        // The last entry is that of the data: its list of descriptors is empty.
        let mark = *b"\x05\x04KLVA";
        packet.copy_within(crc - 2..crc, crc - 2);
        packet[crc - 1] = mark.len() as u8;
        packet[crc..crc + 6].copy_from_slice(&mark);
        packet[7] += 6;
        let crc = crc + 6;
        let sum = packet[5..crc].iter().fold(u32::MAX, |sum, &byte| {
            (0..8).fold(sum ^ (u32::from(byte) << 24), |sum, _| {
                (sum << 1) ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 }
            })
        });
        packet[crc..crc + 4].copy_from_slice(&sum.to_be_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_transport_stream_keeps_named_data_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.ts");
    klv(&input);
    let named = |path: &Path| codecs(path).iter().filter(|c| *c == "klv").count();
    let there = named(&input);
    assert!(there > 0, "{:?}", codecs(&input));
    let output = folder.path().join("out.ts");
    assert_eq!(warnings(&input, &output, &["--strict"]), [] as [String; 0]);
    assert_eq!(named(&output), there, "{:?}", codecs(&output));
    // Private data without a name is data from one transport stream to the other.
    let (bytes, private) = (folder.path().join("data.bin"), folder.path().join("private.ts"));
    let more = ["-map", "0", "-map", "1", "-map", "2", "-c:d", "copy"];
    clip(
        &private,
        "aac",
        &["-f", "data", "-i", bytes.to_str().unwrap()],
        &more,
    );
    assert_eq!(warnings(&private, &output, &["--strict"]), [] as [String; 0]);
    assert_eq!(packets(&output, "0:d"), packets(&private, "0:d"));
    let said = warnings(&input, &folder.path().join("out.mkv"), &[]);
    assert!(
        said.len() == 1 && said[0].contains("(data, klv) is left out: matroska cannot hold it"),
        "{said:?}"
    );
    let text = folder.path().join("in.mkv");
    let words = subtitles(folder.path());
    clip(
        &text,
        "aac",
        &["-i", words.to_str().unwrap()],
        &["-map", "0", "-map", "1", "-map", "2", "-c:s", "subrip"],
    );
    let said = warnings(&text, &output, &[]);
    assert!(
        said.len() == 1 && said[0].contains("stream 2 (subtitle, subrip) is left out: mpegts has no name"),
        "{said:?}"
    );
    for (to, name) in [("avi", "avi"), ("mp4", "mp4")] {
        let said = warnings(&text, &folder.path().join(format!("text.{to}")), &[]).join("\n");
        let word = format!("stream 2 (subtitle, subrip) is left out: {name} holds no subtitles as subrip");
        assert!(said.ends_with(&word), "{said}");
    }
}

#[test]
fn data_of_a_transport_stream_keeps_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.ts"), folder.path().join("out.ts"));
    klv(&input);
    // In private stream 1, as data that is not synchronous is, at a time that the file states.
    let mut bytes = std::fs::read(&input).unwrap();
    let begins: Vec<usize> = (0..bytes.len() - 4)
        .filter(|&at| bytes[at..].starts_with(&[0, 0, 1, 0xfc]))
        .collect();
    assert!(!begins.is_empty());
    for at in begins {
        bytes[at + 3] = 0xbd;
    }
    std::fs::write(&input, bytes).unwrap();
    let times = |path: &Path, stream: &str| -> Vec<f64> {
        let entries = ["-select_streams", stream, "-show_entries", "packet=pts_time"];
        let found = probe(path, &entries);
        let packets = found["packets"].as_array().unwrap().iter();
        let time = |packet: &Value| {
            packet["pts_time"]
                .as_str()
                .map_or(f64::NAN, |t| t.parse().unwrap())
        };
        packets.map(time).collect()
    };
    let said = warnings(&input, &output, &["--strict"]);
    assert!(said.is_empty(), "{said:?}");
    let (before, after) = (times(&input, "d:0"), times(&output, "d:0"));
    let off = times(&output, "v:0")[0] - times(&input, "v:0")[0];
    assert_eq!(before.len(), after.len());
    let is_kept = |(from, to): (&f64, &f64)| (to - from - off).abs() < 0.001;
    assert!(
        !before.is_empty() && before.iter().zip(&after).all(is_kept),
        "{before:?}, {after:?}"
    );
    assert_eq!(packets(&output, "0:d"), packets(&input, "0:d"));
}

#[test]
fn subtitles_of_playlists_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let list = at("video.m3u8");
    let options = ["-c:v", "libx264", "-f", "hls", "-hls_list_size", "0"];
    let picture = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.2"];
    ffmpeg(&[&picture[..], &options, &[list.to_str().unwrap()]].concat());
    let words = "#EXTM3U\n#EXTINF:1,\nwords.vtt\n#EXT-X-ENDLIST\n";
    std::fs::write(at("words.m3u8"), words).unwrap();
    std::fs::write(at("words.vtt"), "WEBVTT\n\n00:00.000 --> 00:00.100\nhello\n").unwrap();
    let master = "#EXTM3U\n\
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"x\",URI=\"words.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=75900,SUBTITLES=\"s\"\nvideo.m3u8\n";
    let input = at("master.m3u8");
    std::fs::write(&input, master).unwrap();
    for (name, unsaid) in [("out.mkv", "--no-subtitles"), ("out.y4m", "--streams=video")] {
        let output = at(name);
        let said = warnings(&input, &output, &["--allow-playlists"]);
        assert!(
            said.len() == 1 && said[0].contains("words.m3u8"),
            "{name}: {said:?}"
        );
        let (is_done, said) = filter(&input, &output, &["--allow-playlists", "--strict"]);
        assert!(!is_done && said[0].contains("words.m3u8"), "{name}: {said:?}");
        let strict = ["--allow-playlists", "--strict", unsaid];
        assert_eq!(warnings(&input, &output, &strict), [] as [String; 0]);
    }
}

#[test]
fn a_time_code_is_that_of_the_picture_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let (input, words) = (folder.path().join("in.mov"), subtitles(folder.path()));
    let maps = ["-map", "0", "-map", "1", "-map", "2", "-c:s", "mov_text"];
    let code = ["-timecode", "01:00:00:00"];
    clip(
        &input,
        "aac",
        &["-i", words.to_str().unwrap()],
        &[&maps[..], &code].concat(),
    );
    assert!(streams(&input).iter().any(|s| s["codec_tag_string"] == "tmcd"));
    for to in ["mkv", "mov", "avi", "ts", "webm"] {
        let output = folder.path().join(format!("out.{to}"));
        let more = ["--no-subtitles", "--no-audio"];
        let said = warnings(&input, &output, &more).join("\n");
        let found = streams(&output);
        let tags = found[0]["tags"].as_object();
        let stated = tags.is_some_and(|tags| tags.iter().any(|(_, text)| text == "01:00:00:00"));
        assert_eq!(stated, matches!(to, "mkv" | "mov" | "webm"), "{to}");
        assert_eq!(said.is_empty(), stated, "{to}: {said}");
        assert_eq!(said.contains("does not hold timecode"), !stated, "{to}: {said}");
        assert!(!said.contains("none"), "{to}: {said}");
    }
    // The same code in the groups of pictures of MPEG-2 is no other one.
    let mxf = folder.path().join("in.mxf");
    let code = [
        "-c:v",
        "mpeg2video",
        "-gop_timecode",
        "10:00:59:20",
        "-timecode",
        "10:00:59:20",
    ];
    clip(&mxf, "pcm_s16le", &[], &code);
    for to in ["mkv", "mov"] {
        let output = folder.path().join(format!("coded.{to}"));
        assert_eq!(warnings(&mxf, &output, &["--strict"]), [] as [String; 0], "{to}");
        let found = probe(&output, &["-show_streams", "-show_format"]).to_string();
        assert!(found.contains("10:00:59:20"), "{to}: {found}");
    }
    // No container is advised that is the output's own.
    let (done, said) = filter(&input, &folder.path().join("out.mkv"), &["--strict"]);
    let word = "stream 2 (subtitle, mov_text) is left out: matroska holds no subtitles as mov_text; leave it";
    assert!(!done && said[0].contains(word), "{said:?}");
}

#[test]
fn streams_have_the_number_and_the_place_that_a_container_takes() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.ts"), folder.path().join("out.ts"));
    let ids = |path: &Path| -> Vec<String> {
        let id = |s: &Value| s["id"].as_str().unwrap_or_default().to_owned();
        streams(path).iter().map(id).collect()
    };
    // Sound whose PID the video would get without one of its own, one of a program's table, and no clash.
    for (pids, after) in [
        (["0:257", "1:256"], ["0x101", "0x100"]),
        (["0:256", "1:4096"], ["0x100", "0x101"]),
        (["0:300", "1:301"], ["0x12c", "0x12d"]),
    ] {
        let table = ["-mpegts_pmt_start_pid", "80"];
        let numbers = ["-streamid", pids[0], "-streamid", pids[1]];
        clip(&input, "aac", &[], &[&table[..], &numbers].concat());
        assert_eq!(
            warnings(&input, &output, &["--strict"]),
            [] as [String; 0],
            "{pids:?}"
        );
        assert_eq!(ids(&output), after, "{pids:?}");
        assert_eq!(packets(&output, "0:a"), packets(&input, "0:a"), "{pids:?}");
    }
    // 256 is the table's PID on Blu-ray discs.
    let (disc, loud) = (folder.path().join("out.m2ts"), folder.path().join("loud.ts"));
    clip(&loud, "ac3", &[], &["-streamid", "0:257", "-streamid", "1:256"]);
    assert_eq!(warnings(&loud, &disc, &["--strict"]), [] as [String; 0]);
    assert_eq!(ids(&disc), ["0x101", "0x1100"]);
    // MXF wants the video first.
    let (first, mxf) = (folder.path().join("first.mkv"), folder.path().join("out.mxf"));
    clip(&first, "pcm_s16le", &[], &["-map", "1:a", "-map", "0:v"]);
    assert_eq!(codecs(&first), ["pcm_s16le", "h264"]);
    assert_eq!(warnings(&first, &mxf, &[]), [] as [String; 0]);
    assert_eq!(codecs(&mxf), ["mpeg2video", "pcm_s16le"]);
}

#[test]
fn sound_that_changes_its_form_is_named_where_the_container_states_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.ts"), folder.path().join("two.ts"));
    let input = folder.path().join("in.ts");
    for (audio, codec) in [("aac", "aac"), ("mp2", "mp2")] {
        clip(&one, audio, &[], &["-ac", "1"]);
        let later = ["-ar", "44100", "-ac", "2", "-output_ts_offset", "0.48"];
        clip(&two, audio, &[], &later);
        let both = [std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap()].concat();
        std::fs::write(&input, both).unwrap();
        let said = warnings(&input, &folder.path().join("out.mkv"), &[]).join("\n");
        let word = format!("stream 1 (audio, {codec}) has 44100 Hz and 2 channels from 0.");
        assert!(said.contains(&word), "{said}");
        assert!(
            said.contains(" s on instead of 48000 Hz and 1 channel, and matroska states"),
            "{said}"
        );
        let said = warnings(&input, &folder.path().join("kept.ts"), &[]).join("\n");
        assert!(!said.contains(" Hz "), "{said}");
        let flac = ["--audio-encoder", "flac"];
        let said = warnings(&input, &folder.path().join("kept.mkv"), &flac).join("\n");
        assert!(
            said.contains("the output keeps the first: stereo becomes mono"),
            "{said}"
        );
        let said = warnings(&one, &folder.path().join("one.mkv"), &[]).join("\n");
        assert!(!said.contains(" Hz "), "{said}");
    }
}

#[test]
fn sound_before_the_first_picture_is_named_where_mxf_leaves_it_out() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.mkv"), folder.path().join("out.mxf"));
    let video = [
        "-itsoffset",
        "0.5",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:r=25:d=0.4",
    ];
    // A click behind the beginning of the first picture.
    let burst = "aevalsrc='if(between(t,0.6,0.601),0.8*sin(2*PI*4000*t),0)':s=48000:d=0.9";
    let sound = ["-f", "lavfi", "-i", burst, "-c:v", "ffv1", "-c:a", "ac3"];
    ffmpeg(&[&video[..], &sound, &[input.to_str().unwrap()]].concat());
    let said = warnings(&input, &output, &[]).join("\n");
    assert!(said.contains(" (audio, ac3) begins 0.5"), "{said}");
    assert!(
        said.contains(" s before the picture, and mxf leaves out what comes before it"),
        "{said}"
    );
    // What is left stays with the picture.
    let [before, after] = [&input, &output].map(|path| click(&samples(path)));
    assert!((before - after).abs() < 0.002, "{before} {after}");
}

/// Language and set dispositions of each stream, in order.
fn marks(path: &Path) -> Vec<(String, Vec<String>)> {
    let of = |stream: &Value| {
        let language = stream["tags"]["language"].as_str().unwrap_or("und").to_owned();
        let set = stream["disposition"].as_object().unwrap().iter();
        let set = set
            .filter(|(_, on)| **on == 1)
            .map(|(name, _)| name.clone())
            .collect();
        (language, set)
    };
    streams(path).iter().map(of).collect()
}

#[test]
fn languages_and_dispositions_are_those_of_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let words = subtitles(folder.path());
    let source = folder.path().join("source.mkv");
    let mut options = vec![
        "-map", "0", "-map", "1", "-map", "1", "-map", "2", "-c:s", "subrip",
    ];
    for (stream, language, disposition) in [
        ("v:0", "language=fra", "default"),
        ("a:0", "language=deu", "default+original"),
        ("a:1", "language=eng", "comment+visual_impaired"),
        ("s:0", "language=jpn", "forced+hearing_impaired"),
    ] {
        let keys: [&str; 2] = match stream {
            "v:0" => ["-metadata:s:v:0", "-disposition:v:0"],
            "a:0" => ["-metadata:s:a:0", "-disposition:a:0"],
            "a:1" => ["-metadata:s:a:1", "-disposition:a:1"],
            _ => ["-metadata:s:s:0", "-disposition:s:0"],
        };
        options.extend([keys[0], language, keys[1], disposition]);
    }
    clip(&source, "aac", &["-i", words.to_str().unwrap()], &options);
    assert_eq!(marks(&source)[2].0, "eng");
    let containers = ["mkv", "mp4", "mov", "ts"];
    for (from, subtitle) in [
        ("mkv", "copy"),
        ("mp4", "mov_text"),
        ("mov", "mov_text"),
        ("ts", ""),
    ] {
        let input = folder.path().join(format!("in.{from}"));
        let kept = if subtitle.is_empty() { "-sn" } else { "-c:s" };
        let mut words = vec![
            "-v",
            "error",
            "-y",
            "-i",
            source.to_str().unwrap(),
            "-map",
            "0",
            "-c",
            "copy",
        ];
        words.push(kept);
        words.extend(Some(subtitle).filter(|word| !word.is_empty()));
        words.push(input.to_str().unwrap());
        ffmpeg(&words);
        let copies = containers.map(|into| folder.path().join(format!("copy.{into}")));
        let mut words = vec!["-i", input.to_str().unwrap()];
        for copy in &copies {
            words.extend(["-map", "0", "-sn", "-c", "copy", copy.to_str().unwrap()]);
        }
        ffmpeg(&words);
        for (into, copy) in containers.into_iter().zip(&copies) {
            let output = folder.path().join(format!("out.{into}"));
            let said = warnings(&input, &output, &["--no-subtitles"]);
            let (mut found, mut expected) = (marks(&output), marks(copy));
            if from == "ts" {
                // The program ffmpeg calls a first stream the default where the input names none.
                let streams = found.iter_mut().chain(&mut expected);
                streams.for_each(|(_, set)| set.retain(|word| word != "default"));
            }
            if into == "mov" {
                // A copy leaves out "fre" and "deu", for which MOV has no number.
                let stated = marks(&input);
                for (at, known) in [(0, "fra"), (1, "ger")] {
                    if stated[at].0 == "und" {
                        continue;
                    }
                    let copied = std::mem::replace(&mut expected[at].0, known.to_owned());
                    assert!(copied == "und" || copied == known, "{from}: {copied}");
                }
            }
            assert_eq!(found, expected, "{from} to {into}: {said:?}");
        }
        if !subtitle.is_empty() {
            let output = folder.path().join(format!("subtitles.{from}"));
            let said = warnings(&input, &output, &[]);
            assert_eq!(marks(&output), marks(&input), "{from}: {said:?}");
        }
    }
}

#[test]
fn the_user_chooses_streams() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    let words = subtitles(folder.path());
    clip(
        &input,
        "aac",
        &["-i", words.to_str().unwrap()],
        &[
            "-map",
            "0",
            "-map",
            "1",
            "-map",
            "2",
            "-c:s",
            "subrip",
            "-metadata:s:a",
            "language=deu",
            "-disposition:a",
            "default+comment",
        ],
    );
    let output = folder.path().join("out.mkv");
    for (options, expected) in [
        (&[][..], &["h264", "aac", "subrip"][..]),
        (&["--no-audio"], &["h264", "subrip"]),
        (&["--no-subtitles"], &["h264", "aac"]),
        (&["--streams", "video"], &["h264"]),
        (&["--streams", "all"], &["h264", "aac", "subrip"]),
        (&["--streams", "2"], &["h264", "subrip"]),
        (&["--streams", "0,1"], &["h264", "aac"]),
        (&["--audio-encoder", "flac"], &["h264", "flac", "subrip"]),
        (&["--audio-encoder", "copy"], &["h264", "aac", "subrip"]),
    ] {
        let said = warnings(&input, &output, &[options, &["--strict"]].concat());
        assert!(said.is_empty(), "{options:?}: {said:?}");
        assert_eq!(codecs(&output), expected, "{options:?}");
    }
    warnings(&input, &output, &["--audio-encoder", "libopus"]);
    let sound = &streams(&output)[1];
    assert_eq!(sound["tags"]["language"], "deu");
    assert_eq!(
        (&sound["disposition"]["default"], &sound["disposition"]["comment"]),
        (&1.into(), &1.into())
    );
    // What was left out on purpose is no loss.
    let gif = folder.path().join("out.gif");
    let chosen = ["--no-audio", "--no-subtitles", "--pixel-format", "pal8"];
    assert!(filter(&input, &gif, &[&["--strict"][..], &chosen].concat()).0);
    let (done, said) = filter(&input, &gif, &["--strict"]);
    assert!(
        !done && said[0].contains("--no-audio") && said[0].contains("--no-subtitles"),
        "{said:?}"
    );
    let webm = folder.path().join("out.webm");
    let said = warnings(&input, &webm, &["--audio-encoder", "copy"]);
    assert!(
        said.iter()
            .any(|w| w.contains("stream 1 (audio, aac) is left out")),
        "{said:?}"
    );
    assert_eq!(codecs(&webm), ["vp9"]);
    for (options, problem) in [
        (
            &["--streams", "7"][..],
            "--streams names stream 7, but the input has only streams 0 to 2",
        ),
        (&["--audio-encoder", "nothing"], "no audio encoder 'nothing'"),
        (&["--audio-encoder", "libx264"], "no audio encoder 'libx264'"),
        (&["--streams", "sound"], "write all, video, or indices"),
    ] {
        let (done, said) = filter(&input, &output, options);
        assert!(!done && said[0].contains(problem), "{options:?}: {said:?}");
    }
    let (done, said) = filter(&input, &webm, &["--audio-encoder", "aac"]);
    assert!(
        !done && said[0].contains("cannot be encoded with aac: webm cannot hold it"),
        "{said:?}"
    );
    for option in [
        &["--no-audio"][..],
        &["--no-subtitles"],
        &["--streams", "all"],
        &["--audio-encoder", "aac"],
    ] {
        let (done, said) = filter(&input, &folder.path().join("out.y4m"), option);
        assert!(
            !done && said[0].contains("is an option of video files"),
            "{said:?}"
        );
    }
}

/// Sound of a file's first audio stream, as 48000 mono samples a second from time 0 of the video's first
/// frame on.
fn samples(path: &Path) -> Vec<f64> {
    let start = |kind: &str| -> f64 {
        let found = probe(
            path,
            &[
                "-select_streams",
                kind,
                "-show_entries",
                "packet=pts_time",
                "-read_intervals",
                "%+#1",
            ],
        );
        found["packets"][0]["pts_time"].as_str().unwrap().parse().unwrap()
    };
    let video = start("v:0");
    let raw = path.with_extension("raw");
    // Times as they are in the file; silence up to the first one, so that the samples' places are their
    // times.
    let trim = format!("aresample=48000:first_pts=0:async=1,atrim=start={video}");
    ffmpeg(&[
        "-copyts",
        "-i",
        path.to_str().unwrap(),
        "-map",
        "0:a:0",
        "-af",
        &trim,
        "-ac",
        "1",
        "-f",
        "s16le",
        raw.to_str().unwrap(),
    ]);
    let bytes = std::fs::read(raw).unwrap();
    bytes
        .chunks_exact(2)
        .map(|b| f64::from(i16::from_le_bytes([b[0], b[1]])) / 32768.0)
        .collect()
}

/// Where the loudest sample is, in seconds.
fn click(samples: &[f64]) -> f64 {
    let at = (0..samples.len())
        .max_by(|&a, &b| samples[a].abs().total_cmp(&samples[b].abs()))
        .unwrap();
    at as f64 / 48_000.0
}

#[test]
fn sound_that_is_encoded_stays_with_the_picture() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    // A soft tone, and a burst of a millisecond at 1.5 s.
    let sound = "aevalsrc='0.05*sin(2*PI*440*t)+0.8*sin(2*PI*4000*t)*between(t\\,1.5\\,1.501)':s=48000:d=2";
    for (turn, (rate, channels)) in [("48000", "1"), ("44100", "2")].into_iter().enumerate() {
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            "testsrc2=s=64x48:r=25:d=2",
            "-f",
            "lavfi",
            "-i",
            sound,
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-bf",
            "0",
            "-c:a",
            "pcm_s16le",
            "-ar",
            rate,
            "-ac",
            channels,
            input.to_str().unwrap(),
        ]);
        let expected = click(&samples(&input));
        assert!((expected - 1.5).abs() < 0.002, "{expected}");
        let outputs = [
            ("mp4", "aac"),
            ("mp4", "libopus"),
            ("mov", "alac"),
            ("webm", "libopus"),
            ("webm", "libvorbis"),
            ("mkv", "aac"),
            ("mkv", "libopus"),
            ("mkv", "flac"),
            ("mkv", "libmp3lame"),
            ("avi", "ac3"),
            ("ts", "mp2"),
            ("mxf", "pcm_s16le"),
            // Packets as short as what these put before the sound.
            ("avi", "libmp3lame"),
            ("avi", "wmav2"),
        ];
        // Every other one of them for one rate, the others for the other, if not all are to be tried.
        let outputs = outputs.into_iter().enumerate();
        let tried = outputs.filter(|(at, _)| is_whole_matrix() || at % 2 == turn);
        for (_, (to, encoder)) in tried {
            let output = folder.path().join(format!("out.{to}"));
            let said = warnings(&input, &output, &["--audio-encoder", encoder]);
            assert!(said.is_empty(), "{to} {encoder}: {said:?}");
            let sound = samples(&output);
            let found = click(&sound);
            // MPEG's audio encoders smear a burst by about a millisecond; the place of its peak is a matter
            // of chance within it.
            assert!(
                (found - expected).abs() < 0.0015,
                "{to} {encoder} {rate}: {found} for {expected}"
            );
            let length = sound.len() as f64 / 48_000.0;
            // WMA's frames are of 46 ms.
            let slack = if encoder == "wmav2" { 0.1 } else { 0.05 };
            assert!((length - 2.0).abs() < slack, "{to} {encoder} {rate}: {length} s");
        }
    }
}

#[test]
fn sound_keeps_its_place_over_many_passes() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("0.webm");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:r=25:d=0.4",
        "-f",
        "lavfi",
        "-i",
        "sine=440:d=0.4",
        "-c:v",
        "libvpx",
        "-c:a",
        "libopus",
        first.to_str().unwrap(),
    ]);
    let start = |path: &Path, kind: &str| -> f64 {
        let found = probe(
            path,
            &["-select_streams", kind, "-show_entries", "packet=pts_time"],
        );
        found["packets"][0]["pts_time"].as_str().unwrap().parse().unwrap()
    };
    let apart = |path: &Path| start(path, "v:0") - start(path, "a:0");
    let expected = apart(&first);
    let mut last = first.clone();
    for pass in 1..=4 {
        let next = folder.path().join(format!("{pass}.webm"));
        warnings(&last, &next, &[]);
        let found = apart(&next);
        assert!(
            (found - expected).abs() < 0.0015,
            "pass {pass}: {found} for {expected}"
        );
        last = next;
    }
}

#[test]
fn gaps_in_sound_that_is_encoded_become_silence() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:r=25:d=2",
        "-f",
        "lavfi",
        "-i",
        "sine=440:r=48000:d=2",
        "-af",
        "aselect='not(between(t,0.5,1.2))'",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-c:a",
        "pcm_s16le",
        input.to_str().unwrap(),
    ]);
    // Encoded, and copied into containers that count samples and no time.
    for (to, more) in [
        ("avi", &["--audio-encoder", "pcm_s16le"][..]),
        ("avi", &["--strict"]),
        ("mov", &["--strict"]),
        ("mxf", &["--strict"]),
    ] {
        let output = folder.path().join(format!("out.{to}"));
        warnings(&input, &output, more);
        assert_eq!(frames(&output), 50, "{to}");
        let sound = samples(&output);
        let loud = |from: f64, to: f64| {
            let part = &sound[(from * 48_000.0) as usize..(to * 48_000.0) as usize];
            (part.iter().map(|s| s * s).sum::<f64>() / part.len() as f64).sqrt()
        };
        assert!(loud(0.1, 0.45) > 0.05 && loud(1.3, 1.9) > 0.05, "{to} {more:?}");
        assert!(loud(0.6, 1.1) < 1e-4, "{to} {more:?}: {}", loud(0.6, 1.1));
        assert!(
            (sound.len() as f64 / 48_000.0 - 2.0).abs() < 0.05,
            "{to} {more:?}"
        );
    }
    // There is no silence in packets of AAC without encoding it.
    let packed = folder.path().join("aac.mkv");
    let (from, to) = (input.to_str().unwrap(), packed.to_str().unwrap());
    ffmpeg(&["-i", from, "-c:v", "copy", "-c:a", "aac", to]);
    let output = folder.path().join("out.avi");
    let said = warnings(&packed, &output, &[]).join("\n");
    let is_early = last_time(&output) < last_time(&packed) - 0.1;
    assert_eq!(said.contains("has a gap before "), is_early, "{said}");
    assert_eq!(filter(&packed, &output, &["--strict"]).0, !is_early);
    // A program stream says the time of a block, which holds several packets.
    let (packed, output) = (folder.path().join("ac3.mkv"), folder.path().join("out.mpg"));
    ffmpeg(&[
        "-i",
        from,
        "-c:v",
        "copy",
        "-c:a",
        "ac3",
        packed.to_str().unwrap(),
    ]);
    let said = warnings(&packed, &output, &[]).join("\n");
    assert!(!said.contains("has a gap"), "{said}");
    let length = |path: &Path| last_time(path) - first_time(path);
    assert!(
        (length(&output) - length(&packed)).abs() < 0.09,
        "{}",
        length(&output)
    );
}

/// When a file's packets of sound are heard, in seconds.
fn sound_times(path: &Path) -> Vec<f64> {
    let entries = ["-select_streams", "a:0", "-show_entries", "packet=pts_time"];
    let found = probe(path, &entries);
    let packets = found["packets"].as_array().unwrap().iter();
    packets
        .filter_map(|packet| packet["pts_time"].as_str()?.parse().ok())
        .collect()
}

fn first_time(path: &Path) -> f64 {
    sound_times(path)[0]
}

fn last_time(path: &Path) -> f64 {
    *sound_times(path).last().unwrap()
}

#[test]
fn sound_whose_times_avi_cannot_say_is_encoded_anew() {
    let folder = tempfile::tempdir().unwrap();
    for (from, audio, more, is_copied) in [
        ("mkv", "libvorbis", &["-ac", "2"][..], false),
        ("mkv", "eac3", &[], false),
        ("mkv", "ac3", &[], true),
        ("avi", "adpcm_ima_wav", &["-ac", "2"], true),
        ("mkv", "adpcm_ms", &[], true),
        ("mkv", "aac", &[], true),
        ("avi", "libmp3lame", &["-ar", "22050"], true),
    ] {
        let input = folder.path().join(format!("in.{from}"));
        clip(&input, audio, &[], more);
        let output = folder.path().join("out.avi");
        let said = warnings(&input, &output, &[]).join("\n");
        assert_eq!(!said.contains("is re-encoded"), is_copied, "{audio}: {said}");
        assert!(!said.contains("has a gap"), "{audio}: {said}");
        let (expected, found) = (last_time(&input), last_time(&output));
        assert!((found - expected).abs() < 0.09, "{audio}: {found} for {expected}");
        // What AVI holds is held by the next one, too.
        if is_copied {
            let again = folder.path().join("again.avi");
            let said = warnings(&output, &again, &["--audio-encoder", "copy"]).join("\n");
            assert_eq!(packets(&again, "0:a"), packets(&output, "0:a"), "{audio}: {said}");
            assert!((last_time(&again) - found).abs() < 0.001, "{audio}: {said}");
        }
    }
    // DTS is known by more packets than others.
    for name in ["dts.ts", "dts.mkv"] {
        let (input, output) = (folder.path().join(name), folder.path().join("out.ts"));
        clip(&input, "dca", &[], &["-ac", "2"]);
        assert_eq!(
            warnings(&input, &output, &["--strict"]),
            [] as [String; 0],
            "{name}"
        );
        assert_eq!(packets(&output, "0:a"), packets(&input, "0:a"), "{name}");
    }
    // Blu-ray's transport streams have no AAC, and AC-3 is what their players know.
    let aac = folder.path().join("aac.mkv");
    clip(&aac, "aac", &[], &[]);
    let said = warnings(&aac, &folder.path().join("out.m2ts"), &[]).join("\n");
    assert!(said.contains("re-encoded by ac3, because m2ts cannot"), "{said}");
}

/// What a container cannot give back at its time, or not so that it can be decoded, is not in it.
#[test]
fn sound_that_does_not_come_back_as_it_was_is_encoded_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("pcm.mov");
    clip(&input, "pcm_s16be", &[], &[]);
    // Readers of ASF and WTV have FLAC, which FFmpeg would choose, late by ten packets.
    for to in ["wmv", "wtv"] {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, &["--strict"]).join("\n");
        assert!(said.is_empty(), "{to}: {said}");
        let (before, after) = (samples(&input), samples(&output));
        let off = before
            .iter()
            .zip(&after)
            .filter(|(a, b)| (*a - *b).abs() > 1e-4)
            .count();
        assert!(
            off == 0 && before.len() == after.len(),
            "{to}: {off} of {}",
            after.len()
        );
    }
    for (to, encoder) in [("avi", "eac3"), ("avi", "libvorbis"), ("wmv", "flac")] {
        let (done, said) = filter(
            &input,
            &folder.path().join(format!("no.{to}")),
            &["--audio-encoder", encoder],
        );
        assert!(
            !done && said[0].contains("cannot say its times"),
            "{to} {encoder}: {said:?}"
        );
    }
    // WTV has no place for what AAC's decoder must know, and RealMedia gives all of it one time.
    let input = folder.path().join("aac.mp4");
    clip(&input, "aac", &[], &[]);
    for to in ["wtv", "rm"] {
        let output = folder.path().join(format!("aac.{to}"));
        let said = warnings(&input, &output, &[]).join("\n");
        assert!(said.contains("is re-encoded by ac3"), "{to}: {said}");
        let (before, after) = (samples(&input), samples(&output));
        let power = |samples: &[f64]| samples.iter().map(|v| v * v).sum::<f64>();
        let ratio = power(&after) / power(&before);
        assert!((0.8..1.25).contains(&ratio), "{to}: {ratio}");
    }
    // TrueHD is known in a transport stream by a hundred packets, and comes back.
    let (input, output) = (folder.path().join("thd.ts"), folder.path().join("out.ts"));
    let picture = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=1"];
    let sound = [
        "-f",
        "lavfi",
        "-i",
        "anoisesrc=r=48000:d=1:seed=1",
        "-strict",
        "-2",
    ];
    let coded = ["-c:v", "libx264", "-c:a", "truehd", input.to_str().unwrap()];
    ffmpeg(&[&picture[..], &sound, &coded].concat());
    assert_eq!(warnings(&input, &output, &["--strict"]), [] as [String; 0]);
    assert_eq!(packets(&output, "0:a"), packets(&input, "0:a"));
}

#[test]
fn packets_that_containers_count_otherwise_are_all_there() {
    let folder = tempfile::tempdir().unwrap();
    // MOV counts a packet of such sound as one sample, so that all of it would last for a moment.
    let (input, output) = (folder.path().join("swf.flv"), folder.path().join("swf.mov"));
    clip(&input, "adpcm_swf", &[], &["-ar", "22050"]);
    let said = warnings(&input, &output, &[]).join("\n");
    assert!(said.contains("is re-encoded by aac, because mov"), "{said}");
    let lasts = samples(&output).len() as f64 / 48_000.0;
    assert!(lasts > 0.45, "{lasts}");
    // Packets of Matroska without a length, of which MP4 must not leave out the last.
    let input = folder.path().join("alac.mkv");
    clip(&input, "alac", &[], &[]);
    let output = folder.path().join("alac.mp4");
    warnings(&input, &output, &[]);
    assert_eq!(packets(&output, "0:a"), packets(&input, "0:a"));
    // MP2 holds back its last samples; 23040 become 20 frames of it and a piece that is held back.
    let (input, output) = (folder.path().join("tta.mkv"), folder.path().join("mp2.mkv"));
    clip(&input, "tta", &[], &[]);
    warnings(&input, &output, &["--audio-encoder", "mp2"]);
    assert!(last_time(&output) > 0.47, "{}", last_time(&output));
}

#[test]
fn samples_that_tta_counts_are_all_there() {
    let folder = tempfile::tempdir().unwrap();
    // TTA counts its samples, and FFmpeg makes that count of Matroska's duration: FLAC has all of them.
    let (input, output) = (folder.path().join("tta.mkv"), folder.path().join("flac.mkv"));
    clip(&input, "tta", &[], &[]);
    for (more, read) in [
        (&[][..], 0..23_040),
        (&["--start", "0.2", "--end", "0.4"], 9_600..19_200),
    ] {
        let said = warnings(&input, &output, more);
        assert!(said.is_empty(), "{said:?}");
        let pcm = |path: &Path| {
            let path = path.to_str().unwrap();
            run(
                "ffmpeg",
                &["-v", "error", "-i", path, "-map", "0:a", "-f", "s16le", "-"],
            )
            .stdout
        };
        let (before, after) = (pcm(&input), pcm(&output));
        assert_eq!(before.len(), 2 * 23_040);
        assert!(
            after == before[2 * read.start..2 * read.end],
            "{more:?}: {}",
            after.len()
        );
    }
}

/// A video of 12 frames and `sound`, coded as `codec`, that begins `late` seconds after it.
fn late_sound(sound: &str, late: &str, codec: &str, path: &Path) {
    let inputs = [
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:r=25:d=0.48",
        "-itsoffset",
        late,
        "-f",
        "lavfi",
        "-i",
        sound,
    ];
    let coded = ["-c:v", "ffv1", "-c:a", codec, path.to_str().unwrap()];
    ffmpeg(&[&inputs[..], &coded].concat());
}

#[test]
fn sound_that_begins_late_is_held_or_named() {
    let folder = tempfile::tempdir().unwrap();
    // Ogg holds sound that begins late, if it lasts for more than one of its pages.
    let late = folder.path().join("late.mkv");
    late_sound("sine=r=48000:d=2.6", "0.3", "pcm_s16le", &late);
    let output = folder.path().join("late.ogv");
    let said = warnings(&late, &output, &["--audio-encoder", "libvorbis"]).join("\n");
    assert!(!said.contains(" begins "), "{said}");
    let (expected, found) = (last_time(&late), last_time(&output));
    assert!((found - expected).abs() < 0.09, "{found} for {expected}");
    // AVI has sound begin with the picture, however late it is by the packets' ticks.
    for (audio, late) in [("mp2", "0.5"), ("mp2", "0.55"), ("mp2", "0.6")] {
        let (input, output) = (folder.path().join("later.mkv"), folder.path().join("later.avi"));
        late_sound("sine=d=1", late, audio, &input);
        let said = warnings(&input, &output, &[]).join("\n");
        assert!(
            first_time(&output) < 0.03,
            "{audio} {late}: {}",
            first_time(&output)
        );
        assert!(
            said.contains(" s after the picture, which avi cannot say"),
            "{audio} {late}: {said}"
        );
    }
    // Sound that is encoded gets silence at its start.
    let (input, output) = (folder.path().join("later.mkv"), folder.path().join("later.avi"));
    late_sound("sine=d=1", "0.476", "aac", &input);
    let said = warnings(&input, &output, &[]).join("\n");
    assert!(
        said.contains("is re-encoded") && !said.contains("cannot say"),
        "{said}"
    );
    let samples = folder.path().join("later.raw");
    ffmpeg(&[
        "-i",
        output.to_str().unwrap(),
        "-vn",
        "-ac",
        "1",
        "-f",
        "u8",
        "-ar",
        "8000",
        samples.to_str().unwrap(),
    ]);
    let samples = std::fs::read(&samples).unwrap();
    let loud = samples
        .iter()
        .position(|sample| sample.abs_diff(128) > 8)
        .unwrap();
    assert!((loud as f64 / 8000.0 - 0.476).abs() < 0.03, "{loud}");
    // Ogg's first page of FLAC begins at zero, so that silence comes before encoded sound.
    late_sound("sine=r=48000:d=2.6", "0.5", "flac", &late);
    let said = warnings(&late, &output, &["--audio-encoder", "flac"]).join("\n");
    assert!(!said.contains(" begins "), "{said}");
    let ends = last_time(&output);
    assert!(first_time(&output) < 0.01 && (ends - 3.1).abs() < 0.2, "{ends}");
    // Program streams have a time for each packet.
    late_sound("sine=r=48000:d=1", "0.5", "mp2", &late);
    for to in ["mpg", "vob"] {
        let output = folder.path().join(format!("late.{to}"));
        let said = warnings(&late, &output, &[]).join("\n");
        assert!(!said.contains(" begins "), "{to}: {said}");
        let starts: Vec<f64> = streams(&output)
            .iter()
            .map(|s| s["start_time"].as_str().unwrap().parse().unwrap())
            .collect();
        assert!((starts[1] - starts[0] - 0.5).abs() < 0.05, "{to}: {starts:?}");
    }
}

#[test]
fn channels_that_mxf_does_not_name_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mov");
    for (layout, other) in [("quad", Some("4.0")), ("6.0", Some("5.1")), ("5.1", None)] {
        let names = ["-af", &format!("pan={layout}|FL=c0|FR=0.5*c0")];
        clip(&input, "pcm_s16le", &[], &names);
        for to in ["mxf", "mkv"] {
            let output = folder.path().join(format!("out.{to}"));
            let said = warnings(&input, &output, &[]).join("\n");
            let word = other.map(|other| format!("(audio, pcm_s16le), {layout}, are taken for {other}"));
            match word {
                Some(word) => assert!(said.contains(&word), "{to}: {said}"),
                None => assert!(!said.contains("taken for"), "{to}: {said}"),
            }
        }
    }
}

#[test]
fn channels_rate_and_bits_of_sound_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let form = |path: &Path| {
        let found = streams(path);
        let sound = found.iter().find(|s| s["codec_type"] == "audio").unwrap();
        let codec = sound["codec_name"].as_str().unwrap().to_owned();
        (codec, sound["channels"].as_i64().unwrap())
    };
    let input = folder.path().join("in.mkv");
    let deep = ["-af", "volume=0.123456", "-sample_fmt", "s32"];
    for (forms, more, out, codec, lost) in [
        (&["-ac", "6"][..], &[][..], "out.ts", ("ac3", 6), None),
        (&["-ac", "6"], &[], "out.flv", ("aac", 6), None),
        (
            &["-ac", "6"],
            &["--audio-encoder", "mp2"],
            "out.mkv",
            ("mp2", 2),
            Some(" becomes stereo"),
        ),
        (
            &["-ac", "8"],
            &[],
            "out.m2ts",
            ("ac3", 6),
            Some("7.1 becomes 5.1"),
        ),
        (
            &["-ar", "96000"],
            &[],
            "out.ts",
            ("mp2", 1),
            Some("96000 Hz become 48000 Hz"),
        ),
        (&deep, &[], "out.mov", ("alac", 1), None),
        (&deep, &[], "out.mxf", ("pcm_s24le", 1), None),
    ] {
        clip(&input, "flac", &[], forms);
        let output = folder.path().join(out);
        let said = warnings(&input, &output, more).join("\n");
        assert_eq!(
            form(&output),
            (codec.0.to_owned(), codec.1),
            "{out} {forms:?}: {said}"
        );
        assert_eq!(
            said.contains(" become"),
            lost.is_some(),
            "{out} {forms:?}: {said}"
        );
        assert!(said.contains(lost.unwrap_or_default()), "{out} {forms:?}: {said}");
    }
    // All bits of each sample, and silence behind them in MXF.
    let decoded = |path: &Path| {
        let path = path.to_str().unwrap();
        run(
            "ffmpeg",
            &["-v", "error", "-i", path, "-map", "0:a", "-f", "s32le", "-"],
        )
        .stdout
    };
    let (before, after) = (decoded(&input), decoded(&folder.path().join("out.mxf")));
    assert!(before.len() >= 4 * 23_040 && after.starts_with(&before));
    assert_eq!(decoded(&folder.path().join("out.mov")), before);
    assert!(before.chunks(4).any(|sample| sample[1] != 0));
}

#[test]
fn pictures_of_a_copied_video_keep_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    // B-pictures, of which the first ones come without decoding times from Matroska.
    let second = ["-f", "lavfi", "-i", "testsrc=s=64x48:r=25:d=0.48"];
    let maps = [
        "-map", "0", "-map", "1", "-map", "2", "-bf", "3", "-preset", "medium",
    ];
    clip(&input, "aac", &second, &maps);
    let times = |path: &Path| -> Vec<f64> {
        let of = |stream: &str| -> Vec<f64> {
            let found = probe(
                path,
                &["-select_streams", stream, "-show_entries", "frame=pts_time"],
            );
            let frames = found["frames"].as_array().unwrap();
            let time = |frame: &Value| frame["pts_time"].as_str().unwrap().parse().unwrap();
            frames.iter().map(time).collect()
        };
        let first = of("v:0")[0];
        of("v:1").into_iter().map(|time| time - first).collect()
    };
    let expected = times(&input);
    assert_eq!(expected.len() as u64, FRAMES);
    for to in ["mkv", "mp4", "ts"] {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, &["--strict"]);
        assert!(said.is_empty(), "{to}: {said:?}");
        let found = times(&output);
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.0015;
        assert!(
            found.len() == expected.len() && found.iter().zip(&expected).all(is_near),
            "{to}: {found:?} for {expected:?}"
        );
    }
}

/// What the summary says of the output, whose stream of the input with this index is filtered, and whether
/// each of its streams is marked as default.
fn defaults(input: &Path, output: &Path, stream: &str) -> (String, Vec<bool>) {
    let paths = [input.to_str().unwrap(), output.to_str().unwrap()];
    let more = [
        "--stream",
        stream,
        "--preset",
        "ultrafast",
        "--overwrite",
        "--strict",
    ];
    let done = run(
        env!("CARGO_BIN_EXE_framepipe"),
        &[&["filter", "--filter", "mask:rows=1"], &paths[..], &more].concat(),
    );
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{said}");
    let written = said.lines().find(|line| line.starts_with("output "));
    let is_default = |(_, set): (String, Vec<String>)| set.iter().any(|word| word == "default");
    let found = marks(output).into_iter().map(is_default).collect();
    (written.unwrap_or_default().to_owned(), found)
}

#[test]
fn players_show_the_filtered_one_of_several_videos() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let source = at("in.ts");
    let source_path = source.to_str().unwrap();
    let video = |text: &'static str| ["-f", "lavfi", "-i", text];
    let (small, large) = (
        video("testsrc=s=64x48:r=25:d=0.2"),
        video("testsrc2=s=128x96:r=25:d=0.2"),
    );
    let maps = ["-map", "0", "-map", "1", "-c:v", "mpeg2video", source_path];
    ffmpeg(&[&small[..], &large, &maps].concat());
    // Nothing is marked in a transport stream.
    for to in ["mp4", "mov", "mkv"] {
        let (said, found) = defaults(&source, &at(&format!("out.{to}")), "1");
        assert_eq!(found, [false, true], "{to}: {said}");
        assert!(!said.contains("default"), "{to}: {said}");
    }
    // Whether the second of the input is marked beside the first, the stream that is filtered, the container,
    // and the marks of the output.
    let cases = [
        (false, "1", "mp4", [false, true]),
        (false, "0", "mp4", [true, false]),
        (true, "1", "mkv", [false, true]),
        (true, "0", "mkv", [true, true]),
    ];
    for (has_two, stream, to, expected) in cases {
        let input = at("in.mkv");
        let second = if has_two { "default" } else { "0" };
        let marks = ["-disposition:v:0", "default", "-disposition:v:1", second];
        let copy = ["-i", source_path, "-map", "0", "-c", "copy"];
        ffmpeg(&[&copy[..], &marks, &[input.to_str().unwrap()]].concat());
        let (said, found) = defaults(&input, &at(&format!("out.{to}")), stream);
        assert_eq!(found, expected, "{has_two}, {stream} to {to}: {said}");
        let is_said = said.ends_with(", marked as default in place of stream 0");
        assert_eq!(is_said, stream == "1", "{has_two}, {stream} to {to}: {said}");
    }
}

#[test]
fn packets_that_the_container_refuses_in_mid_stream_are_left_out_alone() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.ts");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:r=25:d=2",
        "-f",
        "lavfi",
        "-i",
        "sine=440:r=48000:d=2",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-c:a",
        "aac",
        input.to_str().unwrap(),
    ]);
    // A header that FFmpeg's demuxer takes, and the filter that every packet passes on its way into MP4 does
    // not: two blocks and a checksum in one frame.
    let mut bytes = std::fs::read(&input).unwrap();
    let headers: Vec<usize> = (bytes.len() / 2..bytes.len() - 7)
        .filter(|&at| bytes[at] == 0xff && bytes[at + 1] == 0xf1 && bytes[at + 2] == 0x4c && at % 188 < 180)
        .take(3)
        .collect();
    assert_eq!(headers.len(), 3);
    for at in headers {
        bytes[at + 1] = 0xf0;
        bytes[at + 6] |= 1;
    }
    std::fs::write(&input, bytes).unwrap();
    let before = sound_times(&input);
    for to in ["mp4", "mkv"] {
        let output = folder.path().join("out").with_extension(to);
        let said = warnings(&input, &output, &[]).join("\n");
        let word = "3 packets of stream 1 (audio, aac) between ";
        let place = said.split_once(word).map(|(_, rest)| rest);
        let place = place.and_then(|rest| rest.split_once(" s are left out: refused by the container ("));
        let (place, _) = place.unwrap_or_else(|| panic!("{to}: {said}"));
        let (first, last) = place.split_once(" s and ").unwrap();
        let (first, last): (f64, f64) = (first.parse().unwrap(), last.parse().unwrap());
        assert_eq!(codecs(&output), ["h264", "aac"], "{to}");
        assert_eq!(frames(&output), 50, "{to}");
        // The others stay at their times, and those that are missing were at the times that are named.
        let after = sound_times(&output);
        assert_eq!(after.len(), before.len() - 3, "{to}: {said}");
        let off = after[0] - before[0];
        let is_there = |time: &f64| after.iter().any(|at| (at - time - off).abs() < 0.0015);
        let missing: Vec<f64> = before.iter().copied().filter(|time| !is_there(time)).collect();
        let is_named = |at: f64, named: f64| (at - before[0] - named).abs() < 0.002;
        assert!(
            missing.len() == 3 && is_named(missing[0], first) && is_named(missing[2], last),
            "{to}: {missing:?}: {said}"
        );
        let (done, _) = filter(&input, &output, &["--strict"]);
        assert!(!done, "{to}");
    }
}

#[test]
fn chapters_and_texts_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let (input, chapters) = (folder.path().join("in.mov"), folder.path().join("chapters"));
    std::fs::write(
        &chapters,
        ";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=200\ntitle=One\n",
    )
    .unwrap();
    clip(
        &input,
        "aac",
        &["-i", chapters.to_str().unwrap()],
        &[
            "-map",
            "0",
            "-map",
            "1",
            "-map_metadata",
            "2",
            "-movflags",
            "use_metadata_tags",
            "-metadata",
            "com.apple.quicktime.make=Maker",
            "-metadata",
            "title=Name",
        ],
    );
    let copied = |to: &str, more: &[&str]| -> (Value, usize, Vec<String>) {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, more);
        let found = probe(&output, &["-show_format", "-show_chapters"]);
        (
            found["format"]["tags"].clone(),
            found["chapters"].as_array().unwrap().len(),
            said,
        )
    };
    for to in ["mov", "mp4"] {
        for more in [&[][..], &["--encoder-option", "movflags=faststart"]] {
            let (texts, chapters, said) = copied(to, more);
            assert_eq!(texts["com.apple.quicktime.make"], "Maker", "{to}");
            assert_eq!((&texts["title"], chapters), (&"Name".into(), 1), "{to}");
            assert!(said.is_empty(), "{to}: {said:?}");
        }
    }
    let (texts, chapters, said) = copied("mkv", &[]);
    assert_eq!(
        (&texts["title"], chapters, said.len()),
        (&"Name".into(), 1, 0),
        "{said:?}"
    );
    let (texts, chapters, said) = copied("avi", &[]);
    assert_eq!((&texts["title"], chapters), (&"Name".into(), 0));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("metadata is not kept: avi does not hold com.apple.quicktime.make"),
        "{said:?}"
    );
    assert!(
        said[1].contains("the chapters are not kept: avi does not hold them"),
        "{said:?}"
    );
    let (_, chapters, said) = copied("ts", &[]);
    assert!(
        chapters == 0
            && said
                .iter()
                .any(|w| w.contains("the chapters are not kept: mpegts")),
        "{said:?}"
    );
}

#[test]
fn covers_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let (cover, covered) = (folder.path().join("cover.png"), folder.path().join("covered.mp4"));
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "color=red:s=32x32",
        "-frames:v",
        "1",
        cover.to_str().unwrap(),
    ]);
    clip(
        &covered,
        "aac",
        &["-i", cover.to_str().unwrap()],
        &[
            "-map",
            "0",
            "-map",
            "1",
            "-map",
            "2",
            "-c:v:1",
            "copy",
            "-disposition:v:1",
            "attached_pic",
        ],
    );
    for (to, kept) in [
        ("mp4", true),
        ("mkv", true),
        ("mov", false),
        ("ts", false),
        ("avi", true),
    ] {
        let output = folder.path().join(format!("cover.{to}"));
        let said = warnings(&covered, &output, &[]);
        let has = codecs(&output).contains(&"png".to_owned());
        let word = said
            .iter()
            .any(|w| w.contains("stream 2 (video, png) is left out"));
        assert_eq!((has, word), (kept, !kept), "{to}: {said:?} {:?}", codecs(&output));
        if kept {
            assert!(
                packets(&output, "0").contains(&packets(&covered, "0:2")[0]),
                "{to}"
            );
        }
        // Matroska has it as an attached file, which it still is after another run, as MP4's cover too.
        if to == "mkv" {
            let again = folder.path().join("again.mkv");
            let back = folder.path().join("back.mp4");
            assert_eq!(said, warnings(&output, &again, &["--strict"]), "{to}");
            assert!(warnings(&again, &back, &["--strict"]).is_empty());
            for path in [&output, &again, &back] {
                let streams = probe(path, &["-show_streams"]);
                let streams = streams["streams"].as_array().unwrap().iter();
                let covers = streams.filter(|s| s["disposition"]["attached_pic"] == 1);
                assert_eq!(covers.count(), 1, "{path:?}");
            }
        }
    }
}

/// A video with an attached file.
fn with_attachment(folder: &Path) -> PathBuf {
    let (note, path) = (folder.join("note.ttf"), folder.join("attached.mkv"));
    std::fs::write(&note, "a font").unwrap();
    let more = [
        "-attach",
        note.to_str().unwrap(),
        "-metadata:s:t",
        "mimetype=application/x-truetype-font",
    ];
    clip(&path, "aac", &[], &more);
    assert_eq!(codecs(&path), ["h264", "aac", "ttf"]);
    path
}

#[test]
fn attachments_that_the_container_drops_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = with_attachment(folder.path());
    let said = warnings(&input, &folder.path().join("out.mp4"), &[]);
    let word = "warning: stream 2 (attachment, ttf) is left out: mp4 holds no attachments as ttf";
    assert_eq!(said, [word]);
    for (to, is_kept) in [("mkv", true), ("webm", false), ("ts", false), ("m2ts", false)] {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, &[]);
        let is_named = said
            .iter()
            .any(|w| w.contains("stream 2 (attachment, ttf) is left out: "));
        let found = streams(&output);
        assert_eq!(found.len(), if is_kept { 3 } else { 2 }, "{to}: {said:?}");
        let comes_back = found.iter().any(|s| s["codec_type"] == "attachment");
        assert_eq!((comes_back, is_named), (is_kept, !is_kept), "{to}: {said:?}");
        assert_eq!(frames(&output), FRAMES, "{to}");
        std::fs::remove_file(&output).unwrap();
        let more = ["--strict", "--streams", "0,2"];
        assert_eq!(filter(&input, &output, &more).0, is_kept, "{to}");
        assert_eq!(output.exists(), is_kept, "{to}");
    }
}

#[test]
fn streams_beside_which_the_file_could_not_be_read_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    let words = subtitles(folder.path());
    let maps = ["-map", "0", "-map", "1", "-map", "2", "-c:s", "subrip"];
    clip(&input, "aac", &["-i", words.to_str().unwrap()], &maps);
    let output = folder.path().join("out.roq");
    let said = warnings(&input, &output, &[]);
    for stream in ["stream 1 (audio, aac)", "stream 2 (subtitle, subrip)"] {
        let start = format!("{stream} is left out: ");
        assert!(said.iter().any(|w| w.contains(&start)), "{said:?}");
    }
    assert_eq!(frames(&output), FRAMES, "{said:?}");
    std::fs::remove_file(&output).unwrap();
    assert!(!filter(&input, &output, &["--strict"]).0 && !output.exists());
}

#[test]
fn containers_that_hold_pictures_only_as_covers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (input, silent) = (folder.path().join("in.mp4"), folder.path().join("silent.mp4"));
    clip(&input, "aac", &[], &[]);
    clip(&silent, "aac", &[], &["-an"]);
    for (to, audio) in [("flac", "flac"), ("mp3", "libmp3lame"), ("aiff", "pcm_s16be")] {
        let output = folder.path().join(format!("out.{to}"));
        let encoded = ["--audio-encoder", audio];
        for (input, more) in [
            (&input, &encoded[..]),
            (&input, &["--encoder", "png"]),
            (&silent, &[]),
        ] {
            let (done, said) = filter(input, &output, more);
            let word = format!("{to} is no container for video");
            assert!(
                !done && said[0].contains(&word) && !said[0].contains("it has png"),
                "{said:?}"
            );
            assert!(!output.exists());
        }
    }
    // A container of a codec that no encoder writes.
    let (_, said) = filter(&input, &folder.path().join("out.vc1"), &[]);
    assert!(
        said[0].contains("vc1 is for vc1, of which this FFmpeg has no encoder")
            && !said[0].contains("libx264"),
        "{said:?}"
    );
    // The encoder that did not do is not offered.
    let (_, said) = filter(
        &input,
        &folder.path().join("out.gxf"),
        &["--encoder", "mpeg2video"],
    );
    assert!(
        said[0].contains("only accepts PAL or NTSC") && !said[0].contains("it has"),
        "{said:?}"
    );
    let (pal, output) = (folder.path().join("pal.mkv"), folder.path().join("pal.gxf"));
    let size = ["-vf", "scale=720:576"];
    clip(&pal, "aac", &[], &[&size[..], &["-an"]].concat());
    warnings(&pal, &output, &["--encoder", "mpeg2video"]);
    assert_eq!(frames(&output), FRAMES);
}

/// What a file says of stream `index`: title, language and whether it is a comment.
fn said_of(path: &Path, index: usize) -> [bool; 3] {
    let stream = &streams(path)[index];
    let tags = &stream["tags"];
    // FFmpeg 5.1 writes a title into MP4's box of user data, and does not read it.
    let bytes = std::fs::read(path).unwrap();
    let is_boxed = bytes.windows(13).any(|found| found == b"nameKommentar");
    let title = tags["title"] == "Kommentar" || tags["name"] == "Kommentar" || is_boxed;
    let language = tags["language"] == "ger";
    [title, language, stream["disposition"]["comment"] == 1]
}

#[test]
fn texts_and_marks_of_single_streams_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    let texts = "-metadata:s:a:0 title=Kommentar -metadata:s:a:0 language=ger -disposition:a:0 comment \
                 -metadata:s:v language=fre";
    let texts: Vec<&str> = texts.split_whitespace().collect();
    clip(&input, "aac", &[], &texts);
    assert_eq!(said_of(&input, 1), [true; 3]);
    let mut named = 0;
    for to in [
        "mp4", "mov", "mkv", "webm", "avi", "ts", "flv", "wmv", "mxf", "mpg", "nut", "ogg",
    ] {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, &[]);
        let of = |start: &str| -> String {
            let start = format!("metadata of {start}");
            let word = said.iter().find(|w| w.contains(&start));
            word.cloned().unwrap_or_default()
        };
        let sound = of("stream 1 (audio, aac) is not kept: ");
        let words = [" title", "language ger", "disposition comment"];
        let lost = words.map(|word| sound.contains(word));
        assert_eq!(lost, said_of(&output, 1).map(|kept| !kept), "{to}: {said:?}");
        named += lost.iter().filter(|&&lost| lost).count();
        let video = of("stream 0 (video, h264) is not kept: ").contains("language fre");
        let found = &streams(&output)[0]["tags"]["language"];
        assert_eq!(video, found != "fre" && found != "fra", "{to}: {said:?}");
    }
    assert!(named > 10, "{named}");
    // MOV knows languages by one code each: of the two that some have, by the one that it has a number for.
    for (codes, known) in [
        (["deu", "ces"], ["ger", "ces"]),
        (["zho", "fra"], ["chi", "fra"]),
        (["nld", "eng"], ["dut", "eng"]),
    ] {
        let (from, to) = (
            folder.path().join("languages.mp4"),
            folder.path().join("languages.mov"),
        );
        let [video, sound] = codes.map(|code| format!("language={code}"));
        let options = ["-metadata:s:v", &video, "-metadata:s:a", &sound];
        clip(&from, "aac", &[], &options);
        assert_eq!(
            warnings(&from, &to, &["--strict"]),
            [] as [String; 0],
            "{codes:?}"
        );
        let found = streams(&to);
        let found = [0, 1].map(|at: usize| found[at]["tags"]["language"].as_str().unwrap().to_owned());
        assert_eq!(found, known);
        let (done, said) = filter(&from, &folder.path().join("languages.flv"), &[]);
        let word = format!("language {}", codes[0]);
        assert!(done && said.iter().any(|w| w.contains(&word)), "{said:?}");
    }
    // What containers write of their own accord is not missed.
    let plain = ["plain.mkv", "plain.mp4", "plain.avi"].map(|name| folder.path().join(name));
    clip(&plain[0], "aac", &[], &[]);
    clip(&plain[1], "aac", &[], &[]);
    clip(&plain[2], "libmp3lame", &[], &["-bf", "0", "-ar", "44100"]);
    for to in ["mp4", "mov", "mkv", "avi", "ts", "flv", "wmv", "nut"] {
        for input in &plain {
            let output = folder.path().join(format!("plain-out.{to}"));
            let said = warnings(input, &output, &["--strict"]);
            assert_eq!(said, [] as [String; 0], "{to}");
        }
    }
}

#[test]
fn a_text_accounts_for_one_of_the_inputs_and_must_be_whole() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    let long = format!("comment={}", "ü".repeat(40_000));
    let texts = ["-metadata", "disc=1", "-metadata", "track=1"];
    clip(&input, "aac", &[], &texts);
    let output = folder.path().join("out.avi");
    let said = warnings(&input, &output, &[]);
    let found = probe(&output, &["-show_format"]);
    let tags = &found["format"]["tags"];
    assert!(tags["track"] == "1" && tags["disc"].is_null(), "{tags}");
    assert_eq!(
        said,
        ["warning: metadata is not kept: avi does not hold DISC"],
        "{said:?}"
    );
    // In MP4 both have a place.
    let said = warnings(&input, &folder.path().join("out.mp4"), &["--strict"]);
    assert_eq!(said, [] as [String; 0]);

    clip(&input, "aac", &[], &["-metadata", &long]);
    let output = folder.path().join("out.wmv");
    let said = warnings(&input, &output, &[]);
    let found = probe(&output, &["-show_format"]);
    let text = found["format"]["tags"]["comment"].as_str().unwrap_or_default();
    assert!(text.chars().count() < 40_000);
    assert_eq!(
        said,
        ["warning: metadata is not kept: asf does not hold all of COMMENT"]
    );
}

#[test]
fn chapters_count_by_title_and_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let (input, chapters) = (folder.path().join("in.mkv"), folder.path().join("chapters"));
    let chapter = |(start, end, texts): (u32, u32, &str)| {
        format!("[CHAPTER]\nTIMEBASE=1/1000\nSTART={start}\nEND={end}\n{texts}\n")
    };
    let list = [
        (40, 120, "title=A"),
        (160, 240, "title=B"),
        (240, 320, ""),
        (280, 360, "title=D\nnote=by hand"),
        (400, 440, "title=E"),
    ];
    let text: String = list.into_iter().map(chapter).collect();
    std::fs::write(&chapters, format!(";FFMETADATA1\n{text}")).unwrap();
    let inputs = ["-i", chapters.to_str().unwrap()];
    clip(
        &input,
        "aac",
        &inputs,
        &["-map", "0", "-map", "1", "-map_metadata", "2"],
    );
    // Seconds and title of each chapter.
    let listed = |path: &Path| -> Vec<(String, String)> {
        let found = probe(path, &["-show_chapters"]);
        let one = |c: &Value| {
            let title = c["tags"]["title"].as_str().unwrap_or_default();
            (c["start_time"].as_str().unwrap().to_owned(), title.to_owned())
        };
        found["chapters"].as_array().unwrap().iter().map(one).collect()
    };
    let before = listed(&input);
    assert_eq!(before.len(), 5);
    for to in ["mp4", "mov", "mkv", "webm", "wmv"] {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, &[]);
        let after = listed(&output);
        let held = before.iter().filter(|chapter| after.contains(chapter)).count();
        let word = format!("only {held} of 5 chapters are kept");
        assert_eq!(
            said.iter().any(|w| w.contains(&word)),
            held < 5,
            "{to}: {said:?} {after:?}"
        );
        assert_eq!(held < 5, to == "mp4" || to == "mov", "{to}: {after:?}");
        let note = said.iter().any(|w| w.contains("does not hold NOTE"));
        assert_eq!(note, to != "mkv", "{to}: {said:?}");
    }
}

#[test]
fn texts_and_chapters_of_a_pipe_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let chapters =
        ";FFMETADATA1\ntitle=T\nartist=A\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=200\ntitle=One\n";
    std::fs::write(at("words"), chapters).unwrap();
    let make = |name: &str, more: &str| {
        let picture = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.2"];
        let output = text(&at(name));
        ffmpeg(&[&picture[..], &more.split(' ').collect::<Vec<_>>(), &[&output]].concat());
        at(name)
    };
    let marks = "-metadata:s:v:0 language=ger -disposition:v:0 forced";
    let words = format!(
        "-i {} -map_metadata 1 -map_chapters 1 -map 0 {marks}",
        text(&at("words"))
    );
    let from_pipe = |input: &Path, output: &str, more: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_framepipe"))
            .args([
                "filter",
                "/dev/stdin",
                &text(&at(output)),
                "--filter",
                "identity",
                "--strict",
                "-q",
                "-y",
            ])
            .args(more)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let bytes = std::fs::read(input).unwrap();
        // It may refuse the input before it has read all of it.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), &bytes);
        let done = child.wait_with_output().unwrap();
        (done.status.success(), String::from_utf8(done.stderr).unwrap())
    };
    let film = make("film.mkv", &words);
    let said_of = |path: &Path| {
        let shown = "format_tags=title,artist:stream_tags=language:stream_disposition=forced:chapter_tags";
        probe(path, &["-show_chapters", "-show_entries", shown])
    };
    for (more, end) in [(&[][..], "0.200000"), (&["--frames", "3"], "0.120000")] {
        let (done, said) = from_pipe(&film, "piped.mkv", more);
        assert!(done && said.is_empty(), "{said}");
        warnings(&film, &at("whole.mkv"), &[&["--strict"], more].concat());
        let (piped, whole) = (said_of(&at("piped.mkv")), said_of(&at("whole.mkv")));
        assert_eq!(piped, whole);
        assert_eq!(piped["chapters"][0]["tags"]["title"], "One");
        assert_eq!(piped["chapters"][0]["end_time"], end);
        assert_eq!(piped["streams"][0]["tags"]["language"], "ger");
    }
    let (done, said) = from_pipe(&film, "piped.avi", &[]);
    assert!(
        !done && said.contains("language ger, disposition forced"),
        "{said}"
    );
    // How often an animation is shown.
    let animation = make("in.gif", "-loop 3");
    let (done, said) = from_pipe(&animation, "out.gif", &[]);
    assert!(done, "{said}");
    let repeats = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        let at = bytes
            .windows(11)
            .position(|window| window == b"NETSCAPE2.0")
            .unwrap();
        bytes[at + 11..at + 16].to_vec()
    };
    assert_eq!(repeats(&at("out.gif")), [3, 1, 3, 0, 0]);
    let (done, said) = from_pipe(&animation, "out.mkv", &[]);
    assert!(!done && said.contains("is shown 4 times"), "{said}");
}

#[test]
fn programs_of_a_transport_stream_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.ts"), folder.path().join("two.ts"));
    clip(&one, "mp2", &[], &["-metadata", "service_name=Station"]);
    let programs = ["-program", "title=Left:st=0", "-program", "title=Right:st=1"];
    clip(&two, "mp2", &[], &programs);
    let services = |path: &Path| -> Vec<String> {
        let found = probe(path, &["-show_programs"]);
        let name = |p: &Value| p["tags"]["service_name"].as_str().unwrap_or_default().to_owned();
        found["programs"].as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(services(&two), ["Left", "Right"]);
    let output = folder.path().join("out.ts");
    assert_eq!(warnings(&one, &output, &["--strict"]), [] as [String; 0]);
    assert_eq!(services(&output), ["Station"]);
    let said = warnings(&two, &output, &[]);
    assert_eq!(services(&output).len(), 1);
    let word = "the 2 programs are not kept: all streams are written as one, without service_name Left, \
                service_name Right";
    assert!(said.iter().any(|w| w.contains(word)), "{said:?}");
    // Of a program that is left out nothing is missed.
    assert_eq!(
        warnings(&two, &output, &["--no-audio", "--strict"]),
        [] as [String; 0]
    );
    assert_eq!(services(&output), ["Left"]);
    let said = warnings(&one, &folder.path().join("out.mp4"), &[]);
    assert!(
        said.len() == 1 && said[0].contains("mp4 does not hold service_name Station"),
        "{said:?}"
    );
}

#[test]
fn a_stream_of_no_packets_is_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    clip(&input, "pcm_s16le", &[], &["-af", "atrim=end=0"]);
    for (to, is_kept) in [("mkv", true), ("mp4", false)] {
        let output = folder.path().join(format!("out.{to}"));
        let said = warnings(&input, &output, &[]).join("\n");
        let expected = "stream 1 (audio, pcm_s16le) holds nothing, and mp4 leaves it out";
        assert_eq!(said.contains(expected), !is_kept, "{to}: {said}");
        assert_eq!(codecs(&output).len(), if is_kept { 2 } else { 1 }, "{to}");
        assert_eq!(filter(&input, &output, &["--strict"]).0, is_kept, "{to}");
    }
}

#[test]
fn errors_of_containers_are_no_errors_of_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    clip(&at("in.mkv"), "aac", &[], &["-an"]);
    let output = at("out.mxf");
    let (done, said) = filter(&at("in.mkv"), &output, &["--encoder", "prores_ks"]);
    if !done {
        let is_told = said[0].contains("could not get prores profile") && !said[0].contains("os error");
        assert!(is_told && !output.exists(), "{said:?}");
    }
    // Inputs that end too early.
    let ogg = at("in.ogv");
    let source = at("in.mkv");
    ffmpeg(&[
        "-i",
        source.to_str().unwrap(),
        "-c:v",
        "libtheora",
        ogg.to_str().unwrap(),
    ]);
    for (name, bytes) in [("in.mkv", 50), ("in.mkv", 300), ("in.ogv", 100), ("in.ogv", 300)] {
        let (whole, short) = (at(name), at(&format!("short-{name}")));
        std::fs::write(&short, &std::fs::read(whole).unwrap()[..bytes]).unwrap();
        let (done, said) = filter(&short, &at("out.mp4"), &[]);
        let is_told = said[0].contains("cut off") && !said[0].contains("os error");
        assert!(!done && is_told, "{name} {bytes}: {said:?}");
    }
    let empty = at("empty.mkv");
    ffmpeg(&[
        "-i",
        source.to_str().unwrap(),
        "-frames:v",
        "0",
        "-c",
        "copy",
        empty.to_str().unwrap(),
    ]);
    let (done, said) = filter(&empty, &at("out.mp4"), &[]);
    assert!(
        !done && said[0].contains("it ends before any of its streams begins"),
        "{said:?}"
    );
    // A cover that is filtered is the output's video.
    let (cover, covered) = (at("cover.png"), at("covered.mp4"));
    let red = ["-f", "lavfi", "-i", "color=red:s=32x32", "-frames:v", "1"];
    ffmpeg(&[&red[..], &[cover.to_str().unwrap()]].concat());
    let maps = "-map 0 -map 1 -map 2 -c:v:1 copy -disposition:v:1 attached_pic";
    let maps: Vec<&str> = maps.split_whitespace().collect();
    clip(&covered, "aac", &["-i", cover.to_str().unwrap()], &maps);
    let output = at("filtered-cover.mp4");
    warnings(&covered, &output, &["--stream", "2", "--streams", "video"]);
    assert_eq!((codecs(&output), frames(&output)), (vec!["h264".to_owned()], 1));
}

#[test]
fn sound_of_mxf_stays_as_long_as_the_picture() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.mxf"), folder.path().join("out.mxf"));
    let video = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=1"];
    let sound = ["-f", "lavfi", "-i", "sine=r=48000:d=1"];
    let encoding = ["-c:v", "mpeg2video", "-c:a", "pcm_s16le", input.to_str().unwrap()];
    ffmpeg(&[&video[..], &sound, &encoding].concat());
    assert_eq!(warnings(&input, &output, &["--strict"]), [] as [String; 0]);
    assert_eq!(packets(&output, "0:a"), packets(&input, "0:a"));
    assert_eq!(frames(&output), 25);
}

/// Muxers that write each picture with its sound leave out a picture that lacks some of it, and sound that
/// has no picture.
#[test]
fn sound_that_ends_with_the_picture_or_not_costs_no_picture() {
    let folder = tempfile::tempdir().unwrap();
    let video = "testsrc2=s=720x576:r=25:d=0.4,format=yuv420p";
    // Late by less than a millisecond, by a few, by much, and longer than the picture.
    for sound in ["0.3997", "0.395", "0.1", "0.4", "0.475"] {
        let input = folder.path().join("in.mkv");
        let sine = format!("sine=r=48000:d={sound}");
        let inputs = ["-f", "lavfi", "-i", video, "-f", "lavfi", "-i", &sine];
        let encoding = [
            "-c:v",
            "dvvideo",
            "-c:a",
            "pcm_s16le",
            "-ac",
            "2",
            input.to_str().unwrap(),
        ];
        ffmpeg(&[&inputs[..], &encoding].concat());
        for to in ["dv", "mxf"] {
            let output = folder.path().join(format!("out.{to}"));
            let said = warnings(&input, &output, &["--encoder", "dvvideo"]).join("\n");
            assert_eq!(frames(&output), 10, "{to}, sound of {sound} s: {said}");
            let is_cut = said.contains(&format!("after the last picture, which {to} leaves out"));
            assert_eq!(is_cut, sound == "0.475", "{to}, sound of {sound} s: {said}");
            let heard = samples(&output).len();
            assert!(
                (19_200..=21_200).contains(&heard),
                "{to}, sound of {sound} s: {heard} samples"
            );
        }
    }
}

/// An element of Matroska.
fn element(id: &[u8], content: &[u8]) -> Vec<u8> {
    let size = (content.len() as u16 | 0x4000).to_be_bytes();
    [id, &size, content].concat()
}

/// A name of a chapter, in a language.
fn chapter_name(name: &str, code: &str) -> Vec<u8> {
    let tag = element(&[0x43, 0x7D], &code.as_bytes()[..2]);
    let parts = [
        element(&[0x85], name.as_bytes()),
        element(&[0x43, 0x7C], code.as_bytes()),
        tag,
    ];
    element(&[0x80], &parts.concat())
}

/// A chapter with its times in milliseconds, and what else it holds.
fn chapter(uid: u8, (begins, ends): (u32, u32), more: &[u8]) -> Vec<u8> {
    let [begins, ends] = [begins, ends].map(|ms| (u64::from(ms) * 1_000_000).to_be_bytes());
    let times = [element(&[0x91], &begins), element(&[0x92], &ends)].concat();
    element(
        &[0xB6],
        &[&element(&[0x73, 0xC4], &[uid])[..], &times, more].concat(),
    )
}

/// The chapters of a file.
fn edition(chapters: &[Vec<u8>]) -> Vec<u8> {
    let edition = element(&[0x45, 0xB9], &chapters.concat());
    element(&[0x10, 0x43, 0xA7, 0x70], &edition)
}

/// A film with German sound as it is written into a pipe: no sizes or places of what comes later, so that
/// more can be put in between.
fn live_film() -> Vec<u8> {
    let live = run(
        "ffmpeg",
        &[
            &["-v", "error", "-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=2"][..],
            &[
                "-f",
                "lavfi",
                "-i",
                "sine=r=48000:d=2",
                "-c:v",
                "libx264",
                "-c:a",
                "flac",
            ],
            &[
                "-metadata",
                "title=Film",
                "-metadata:s:a",
                "language=ger",
                "-f",
                "matroska",
                "-",
            ],
        ]
        .concat(),
    );
    live.stdout
}

#[test]
fn what_ffmpeg_does_not_read_from_matroska_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.mkv"), folder.path().join("out.mkv"));
    let live = live_film();
    let cluster = live
        .windows(4)
        .position(|id| id == [0x1F, 0x43, 0xB6, 0x75])
        .unwrap();
    let made = |more: &[u8], is_tagged: bool| {
        let mut head = live[..cluster].to_vec();
        let language = head
            .windows(7)
            .position(|part| part == b"\x22\xB5\x9C\x83ger")
            .unwrap();
        if is_tagged {
            // The code becomes a tag, of which there is no code.
            head[language + 2] = 0x9D;
        }
        std::fs::write(&input, [&head, more, &live[cluster..]].concat()).unwrap();
    };
    let ordinary = edition(&[
        chapter(1, (0, 1000), &chapter_name("One", "eng")),
        chapter(2, (1000, 2000), &chapter_name("Two", "eng")),
    ]);
    made(&ordinary, false);
    assert_eq!(warnings(&input, &output, &["--strict"]), [] as [String; 0]);
    let nested = chapter(3, (0, 500), &chapter_name("Inner", "eng"));
    let names = [chapter_name("One", "eng"), chapter_name("Eins", "ger"), nested].concat();
    let hidden = [chapter_name("Two", "eng"), element(&[0x98], &[1])].concat();
    let chapters = edition(&[chapter(1, (0, 1000), &names), chapter(2, (1000, 2000), &hidden)]);
    let title = [
        element(&[0x45, 0xA3], b"TITLE"),
        element(&[0x44, 0x87], b"Series"),
    ]
    .concat();
    let target = element(&[0x63, 0xC0], &element(&[0x68, 0xCA], &[70]));
    let tag = [target, element(&[0x67, 0xC8], &title)].concat();
    let tags = element(&[0x12, 0x54, 0xC3, 0x67], &element(&[0x73, 0x73], &tag));
    made(&[chapters, tags].concat(), true);
    let said = warnings(&input, &output, &[]);
    assert_eq!(said.len(), 1, "{said:?}");
    for word in [
        "1 nested chapter, 1 further name of a chapter, that 1 chapter is hidden",
        "language ger of stream 1 (audio, flac)",
        "title 'Series' of its tags",
    ] {
        assert!(said[0].contains(word), "{said:?}");
    }
    assert!(!filter(&input, &output, &["--strict"]).0);
    let found = probe(&output, &["-show_entries", "format_tags"]);
    assert_eq!(found["format"]["tags"]["title"], "Film");
    // Behind a chapter, what it holds is not missed.
    let said = warnings(&input, &output, &["--start", "1.2"]);
    assert!(
        !said[0].contains("nested") && said[0].contains("hidden"),
        "{said:?}"
    );
}

/// A tone for each channel, for FFmpeg's source of sound.
fn tones(count: usize, tone: impl Fn(usize) -> String) -> String {
    let tones: Vec<String> = (1..=count).map(tone).collect();
    tones.join("|")
}

/// A video with sound that is coded as `codec`, both made by FFmpeg's sources.
fn with_sound(picture: &str, sound: &str, codec: &str, path: &Path) {
    let inputs = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound];
    let coded = ["-c:v", "libx264", "-c:a", codec, path.to_str().unwrap()];
    ffmpeg(&[&inputs[..], &coded].concat());
}

#[test]
fn channels_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let samples = |path: &Path| {
        let path = path.to_str().unwrap();
        ffmpeg(&["-i", path, "-map", "0:a", "-c:a", "pcm_s24le", "-f", "md5", "-"])
    };
    let layout = |path: &Path| {
        streams(path)[1]["channel_layout"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    let made = |layout: &str, count: usize| {
        let input = at(&format!("{layout}.mkv"));
        let tones = tones(count, |n| format!("0.1*sin(2*PI*{}*t)", 20 * n));
        let sound = format!("aevalsrc={tones}:c={layout}:s=48000:d=0.48");
        with_sound("testsrc2=s=64x48:r=25:d=0.48", &sound, "flac", &input);
        input
    };
    // FFmpeg's ALAC has not all of these, and would mix them.
    for (name, count) in [("quad", 4), ("2.1", 3), ("hexagonal", 6), ("7.1", 8), ("5.1", 6)] {
        let (input, output) = (made(name, count), at("out.mov"));
        let said = warnings(&input, &output, &[]).join("\n");
        assert_eq!(samples(&output), samples(&input), "{name}: {said}");
        let found = layout(&output);
        assert!(
            found == name || said.contains("are taken for"),
            "{name}: {found}: {said}"
        );
        // MP4 does not say which channels FLAC has.
        let output = at("out.mp4");
        let said = warnings(&input, &output, &[]).join("\n");
        let found = layout(&output);
        let is_same = found.trim_end_matches("(side)") == name;
        assert_eq!(
            is_same,
            !said.contains(&format!("{name}, are taken for {found}")),
            "{name}: {said}"
        );
    }
    // Of more bytes a sample than a trial's packet had.
    let (input, output) = (at("5.1.mkv"), at("deep.mov"));
    let options = ["--audio-encoder", "pcm_s24le", "--strict"];
    assert_eq!(warnings(&input, &output, &options), [] as [String; 0]);
    assert_eq!(samples(&output), samples(&input));
    // Its muxer takes what it says of AC-3 from a packet.
    let output = at("ac3.mp4");
    warnings(&input, &output, &["--audio-encoder", "ac3"]);
    assert_eq!(codecs(&output), ["h264", "ac3"]);
    assert!(!packets(&output, "0:a").is_empty());
}

#[test]
fn five_channels_stay_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // FFmpeg hands them to libopus in another order; each is louder than the one before.
    let (input, output) = (at("rising.mkv"), at("rising.webm"));
    let tones = tones(5, |n| format!("0.1*{n}*sin(2*PI*{}*t)", 200 * n));
    let sound = format!("aevalsrc={tones}:c=5.0:s=48000:d=1");
    with_sound("testsrc2=s=64x48:r=25:d=1", &sound, "flac", &input);
    let louder = |path: &Path| {
        let path = path.to_str().unwrap();
        let run = run(
            "ffmpeg",
            &["-v", "error", "-i", path, "-map", "0:a", "-f", "f32le", "-"],
        );
        let (numbers, _) = run.stdout.as_chunks::<4>();
        let mut loudness = [0.0; 5];
        for (at, &number) in numbers.iter().enumerate() {
            loudness[at % 5] += f64::from(f32::from_le_bytes(number)).powi(2);
        }
        loudness.windows(2).all(|pair| pair[0] < pair[1])
    };
    let quick = ["--encoder", "libvpx", "--encoder-option", "deadline=realtime"];
    warnings(&input, &output, &quick);
    assert!(louder(&input) && louder(&output), "{:?}", codecs(&output));
    let output = at("opus.mkv");
    let said = warnings(&input, &output, &["--audio-encoder", "libopus"]).join("\n");
    assert!(said.contains("5.0 becomes"), "{said}");
}

#[test]
fn channels_without_places_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (input, output) = (at("twelve.mov"), at("twelve.ts"));
    let tones = tones(12, |n| format!("0.05*sin(2*PI*{}*t)", 100 * n));
    let sound = format!("aevalsrc={tones}:s=48000:d=1");
    with_sound("testsrc2=s=64x48:r=25:d=1", &sound, "pcm_s24le", &input);
    let said = warnings(&input, &output, &[]).join("\n");
    assert!(
        said.contains("is left out") && said.contains("12 channels"),
        "{said}"
    );
    assert_eq!(codecs(&output), ["h264"]);
}
