//! Video files through source and sink, judged by FFmpeg's own programs.

use crate::common::probe;
use crossbeam_channel::bounded;
use framepipe::frame::{AllocationError, Allocator, Frame, FramePool, Layout, Memory, Pageable, PixelFormat};
use framepipe::sink::video::{VideoOptions, VideoSink, is_same_file};
use framepipe::sink::{Flow, Sink, SinkError, Written};
use framepipe::source::video::{VideoSource, VideoSourceOptions};
use framepipe::source::{Source, SourceError, StreamInfo, Supply};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// The standard output of a program, which must succeed.
fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap();
    assert!(
        done.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

fn ffmpeg(arguments: &[&str]) -> String {
    output(
        "ffmpeg",
        &[&["-nostdin", "-v", "error", "-y"], arguments].concat(),
    )
}

/// MD5 of every decoded video frame, with nothing of time in it.
fn pixels(path: &Path) -> Vec<String> {
    let text = ffmpeg(&[
        "-noautorotate",
        "-i",
        path.to_str().unwrap(),
        "-map",
        "0:V:0",
        "-fps_mode",
        "passthrough",
        "-f",
        "framemd5",
        "-",
    ]);
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit(',').next().unwrap().trim().to_owned())
        .collect()
}

/// MD5 of the packets of the streams that `map` chooses.
fn packets(path: &Path, map: &str) -> Vec<String> {
    let text = ffmpeg(&[
        "-i",
        path.to_str().unwrap(),
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

/// Presentation times of the frames of the first real video stream, in seconds.
fn times(path: &Path) -> Vec<f64> {
    let found = probe(
        path,
        &[
            "-select_streams",
            "V:0",
            "-show_entries",
            "frame=best_effort_timestamp_time",
        ],
    );
    found["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["best_effort_timestamp_time"].as_str().unwrap().parse().unwrap())
        .collect()
}

fn assert_times(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance, "frame {at}: {f} instead of {e}");
    }
}

fn open(path: &Path) -> Result<VideoSource, SourceError> {
    VideoSource::open(path, &VideoSourceOptions::default())
}

/// `options` with something else.
fn changed<T>(mut options: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut options);
    options
}

fn open_strict(path: &Path) -> Result<VideoSource, SourceError> {
    VideoSource::open(
        path,
        &changed(VideoSourceOptions::default(), |options| options.strict = true),
    )
}

fn to(path: &Path) -> VideoOptions {
    let mut options = VideoOptions::new(path);
    options.copy_streams = true;
    options
}

fn lossless(path: &Path) -> VideoOptions {
    let mut options = to(path);
    options.encoder = Some("ffv1".to_owned());
    options
}

/// A pool of so few buffers that a sink which keeps frames would stand still.
fn supply() -> (Supply, crossbeam_channel::Sender<()>) {
    let (keep, stop) = bounded(0);
    let pool = FramePool::new(4, Arc::new(Pageable));
    (Supply { pool, stop }, keep)
}

/// Every frame of `source` counted, or the first error.
fn drain(source: &mut VideoSource) -> Result<u64, SourceError> {
    let (supply, _keep) = supply();
    let mut frames = 0;
    while let Some(frame) = source.next(&supply)? {
        assert_eq!(frame.sequence, frames);
        frames += 1;
    }
    Ok(frames)
}

fn transcode_some(
    source: &mut VideoSource,
    options: VideoOptions,
    most: usize,
) -> Result<Written, SinkError> {
    let (supply, _keep) = supply();
    let mut sink = Box::new(VideoSink::create(source.info(), options)?);
    for _ in 0..most {
        let Some(frame) = source.next(&supply).unwrap() else {
            break;
        };
        assert_eq!(sink.write(frame)?, Flow::More);
    }
    sink.finish()
}

fn transcode(input: &Path, options: VideoOptions) -> Result<Written, SinkError> {
    transcode_some(&mut open(input).unwrap(), options, usize::MAX)
}

/// The keys of a stream that filtering must not change.
fn facts(stream: &Value) -> Vec<(&'static str, Value)> {
    [
        "codec_type",
        "width",
        "height",
        "sample_aspect_ratio",
        "pix_fmt",
        "color_range",
        "color_space",
        "color_transfer",
        "color_primaries",
        "chroma_location",
        "field_order",
    ]
    .into_iter()
    .map(|key| (key, stream[key].clone()))
    .collect()
}

fn streams(path: &Path) -> Vec<Value> {
    probe(path, &["-show_streams"])["streams"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn an_ordinary_clip_keeps_everything_but_its_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (sample("clip-720p.mp4"), folder.path().join("out.mp4"));
    let written = transcode(
        &input,
        changed(to(&out), |options| options.preset = Some("ultrafast".to_owned())),
    )
    .unwrap();
    assert_eq!(written.remarks.warning_texts(), Vec::<String>::new());
    assert_eq!(written.bytes, Some(out.metadata().unwrap().len()));
    let (before, after) = (streams(&input), streams(&out));
    let kinds = |s: &[Value]| -> Vec<Value> { s.iter().map(|s| s["codec_type"].clone()).collect() };
    assert_eq!(kinds(&after), kinds(&before));
    assert_eq!(facts(&after[0]), facts(&before[0]));
    for key in [
        "time_base",
        "nb_frames",
        "start_pts",
        "duration_ts",
        "r_frame_rate",
        "avg_frame_rate",
    ] {
        assert_eq!(after[0][key], before[0][key], "{key}");
    }
    assert_eq!(after[1]["tags"]["language"], "eng");
    assert_times(&times(&out), &times(&input), 0.0);
    assert_eq!(packets(&out, "0:a"), packets(&input, "0:a"));
    let sound = |path: &Path| {
        probe(
            path,
            &[
                "-select_streams",
                "a:0",
                "-show_entries",
                "packet=pts_time,dts_time,duration_time,size",
            ],
        )["packets"]
            .clone()
    };
    assert_eq!(sound(&out), sound(&input));
    let (before, after) = (
        probe(&input, &["-show_chapters"]),
        probe(&out, &["-show_chapters"]),
    );
    let chapters = |v: &Value| -> Vec<(Value, Value, Value)> {
        v["chapters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| {
                (
                    c["start_time"].clone(),
                    c["end_time"].clone(),
                    c["tags"]["title"].clone(),
                )
            })
            .collect()
    };
    assert_eq!(chapters(&after).len(), 2);
    assert_eq!(chapters(&after), chapters(&before));
    let tags = |p: &Path| probe(p, &["-show_format"])["format"]["tags"].clone();
    assert_eq!(tags(&out)["title"], tags(&input)["title"]);
    assert_eq!(tags(&out)["artist"], tags(&input)["artist"]);
}

#[test]
fn lossless_output_has_the_inputs_pixels() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["clip-720p.mp4", "clip-10bit.mkv", "clip-odd.mp4", "clip-vfr.mkv"] {
        let out = folder.path().join(format!("{name}.mkv"));
        transcode(&sample(name), lossless(&out)).unwrap();
        assert_eq!(pixels(&out), pixels(&sample(name)), "{name}");
        let (before, after) = (streams(&sample(name)), streams(&out));
        let kept = |s: &Value| {
            // FFV1 in Matroska has no place for the field order of progressive pictures.
            let mut facts = facts(s);
            facts.retain(|(key, _)| *key != "field_order");
            facts
        };
        assert_eq!(kept(&after[0]), kept(&before[0]), "{name}");
        // Matroska counts milliseconds.
        assert_times_from_first(&times(&out), &times(&sample(name)), 0.000_6);
    }
}

/// Matroska cannot hold the negative times that an AAC encoder's run-in has, and so shifts all streams
/// together.
fn assert_times_from_first(found: &[f64], expected: &[f64], tolerance: f64) {
    let shift = found[0] - expected[0];
    assert!((0.0..0.1).contains(&shift), "{shift}");
    let moved: Vec<f64> = found.iter().map(|t| t - shift).collect();
    assert_times(&moved, expected, 2.0 * tolerance);
}

#[test]
fn hdr10_keeps_its_depth_its_tags_and_its_light_levels() {
    let folder = tempfile::tempdir().unwrap();
    let input = sample("clip-10bit.mkv");
    let hdr = |path: &Path| {
        let frame = probe(
            path,
            &[
                "-select_streams",
                "v:0",
                "-read_intervals",
                "%+#1",
                "-show_frames",
            ],
        );
        let list = frame["frames"][0]["side_data_list"].as_array().unwrap().clone();
        let find = |kind: &str| list.iter().find(|b| b["side_data_type"] == kind).cloned();
        (
            find("Mastering display metadata"),
            find("Content light level metadata"),
        )
    };
    for out in ["out.mkv", "out.mp4"] {
        let out = folder.path().join(out);
        let written = transcode(
            &input,
            changed(to(&out), |options| options.preset = Some("ultrafast".to_owned())),
        )
        .unwrap();
        let (before, after) = (streams(&input), streams(&out));
        assert_eq!(after[0]["codec_name"], "hevc");
        assert_eq!(facts(&after[0]), facts(&before[0]));
        assert_eq!(after[0]["r_frame_rate"], "24/1");
        assert!(hdr(&out).0.is_some() && hdr(&out).1.is_some());
        assert_eq!(hdr(&out), hdr(&input));
        assert_times(&times(&out), &times(&input), 0.0);
        assert_eq!(packets(&out, "0:a"), packets(&input, "0:a"));
        if out.extension().unwrap() == "mkv" {
            assert_eq!(written.remarks.warning_texts(), Vec::<String>::new());
            let kinds: Vec<&Value> = after.iter().map(|s| &s["codec_type"]).collect();
            assert_eq!(kinds, ["video", "audio", "subtitle", "attachment"]);
            assert_eq!(after[3]["tags"]["filename"], "note.txt");
            assert_eq!(packets(&out, "0:s"), packets(&input, "0:s"));
            let dump = |path: &Path, to: &str| {
                let to = folder.path().join(to);
                // Without an output file FFmpeg calls it a failure, after it has written the attachment.
                let dump = Command::new("ffmpeg")
                    .args(["-nostdin", "-v", "error", "-y", "-dump_attachment:t:0"])
                    .args([&to, Path::new("-i"), path])
                    .output();
                dump.unwrap();
                std::fs::read(to).unwrap()
            };
            assert_eq!(dump(&out, "a"), dump(&input, "b"));
        } else {
            assert_eq!(after[0]["codec_tag_string"], "hvc1");
            let warnings = &written.remarks.warning_texts();
            assert_eq!(warnings.len(), 2, "{warnings:?}");
            let subtitles = "stream 2 (subtitle, subrip) is left out: mp4 holds no subtitles as subrip";
            assert_eq!(warnings[0], subtitles);
            // The reason follows, in FFmpeg's words.
            assert!(
                warnings[1].starts_with("stream 3 (attachment, none) is left out: mp4 cannot hold it: ")
                    && warnings[1].contains("FFmpeg: "),
                "{warnings:?}"
            );
        }
    }
}

/// Memory that says of itself that it is page-locked, so that a frame shows where its pixels lie, and the
/// number of its blocks.
#[derive(Default)]
struct Marked {
    blocks: AtomicUsize,
}

struct MarkedBlock(Vec<u8>);

impl Memory for MarkedBlock {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
    fn is_pinned(&self) -> bool {
        true
    }
}

impl Allocator for Marked {
    fn allocate(&self, len: usize) -> Result<Box<dyn Memory>, AllocationError> {
        self.blocks.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(MarkedBlock(vec![0x5A; len])))
    }
}

/// The frame's pixels without any padding.
fn packed(frame: &Frame) -> Vec<u8> {
    let planes = frame.layout().planes().iter().enumerate();
    planes
        .flat_map(|(index, plane)| (0..plane.height).flat_map(move |y| frame.row(index, y).to_vec()))
        .collect()
}

#[test]
fn pictures_are_decoded_into_the_runs_memory_and_never_spoilt_by_who_writes_into_a_frame() {
    let folder = tempfile::tempdir().unwrap();
    let mut inputs: Vec<PathBuf> = ["clip-720p.mp4", "clip-10bit.mkv", "clip-odd.mp4"]
        .map(sample)
        .into();
    for (codec, format, size) in [
        ("mpeg4", "yuv420p", "322x182"),
        ("ffv1", "yuv444p", "97x61"),
        ("mjpeg", "yuvj422p", "130x50"),
        ("mpeg2video", "yuv420p", "720x576"),
        ("prores_ks", "yuv422p10le", "192x108"),
    ] {
        let path = folder.path().join(format!("{codec}.mkv"));
        let source = format!("testsrc2=s={size}:r=25:d=2");
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &source,
            "-pix_fmt",
            format,
            "-c:v",
            codec,
            path.to_str().unwrap(),
        ]);
        inputs.push(path);
    }
    for input in inputs {
        let mut source = VideoSource::open(
            &input,
            &changed(VideoSourceOptions::default(), |options| options.threads = Some(3)),
        )
        .unwrap();
        assert!(source.info().brings_memory, "{}", input.display());
        let raw = folder.path().join("raw");
        ffmpeg(&[
            "-noautorotate",
            "-i",
            input.to_str().unwrap(),
            "-map",
            "0:V:0",
            "-fps_mode",
            "passthrough",
            "-f",
            "rawvideo",
            raw.to_str().unwrap(),
        ]);
        let expected = std::fs::read(&raw).unwrap();
        let allocator = Arc::new(Marked::default());
        let (_keep, stop) = bounded(0);
        let pool = FramePool::new(4, allocator.clone());
        let supply = Supply { pool, stop };
        let (mut at, mut count, mut in_place) = (0, 0, 0);
        let mut kept: Vec<(Frame, Vec<u8>)> = Vec::new();
        while let Some(mut frame) = source.next(&supply).unwrap() {
            let pixels = packed(&frame);
            assert!(
                expected[at..at + pixels.len()] == pixels,
                "{} frame {count}",
                input.display()
            );
            at += pixels.len();
            count += 1;
            // A frame that was copied lies as tightly as rows of 64 bytes allow, a decoder's picture has room
            // around it.
            let layout = frame.layout();
            let tight = Layout::new(layout.format(), layout.width(), layout.height(), 64).unwrap();
            in_place += usize::from(layout.size() > tight.size());
            if count % 3 == 0 {
                // Later pictures are predicted from this one, which must not see what is written into the
                // frame.
                assert!(frame.is_pinned());
                frame.bytes_mut().fill(0xEE);
                assert!(frame.bytes().iter().all(|&b| b == 0xEE));
            }
            // A frame keeps its pixels while the decoder goes on.
            let pixels = packed(&frame);
            kept.push((frame, pixels));
            if kept.len() == 3 {
                let (frame, pixels) = kept.remove(0);
                assert!(packed(&frame) == pixels);
            }
        }
        assert_eq!(at, expected.len());
        assert!(
            in_place * 2 > count,
            "{}: {in_place} of {count} frames",
            input.display()
        );
        // Reference pictures, threads and the pool, however long the input is.
        let blocks = allocator.blocks.load(Ordering::Relaxed);
        assert!(blocks < 40, "{}: {blocks} blocks", input.display());
    }
}

#[test]
fn irregular_times_stay_irregular_and_late() {
    let folder = tempfile::tempdir().unwrap();
    let input = sample("clip-vfr.mkv");
    for out in ["out.mkv", "out.mp4"] {
        let out = folder.path().join(out);
        transcode(&input, to(&out)).unwrap();
        let found = times(&out);
        assert!(
            (found[0] - 1.5).abs() < 0.02,
            "the first frame is at {}",
            found[0]
        );
        assert_times(&found, &times(&input), 0.0);
        assert_eq!(packets(&out, "0:a"), packets(&input, "0:a"));
        let start = |path: &Path| streams(path)[1]["start_time"].clone();
        assert_eq!(start(&out), start(&input));
    }
}

#[test]
fn odd_sizes_and_odd_pixels_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (sample("clip-odd.mp4"), folder.path().join("out.mp4"));
    transcode(&input, to(&out)).unwrap();
    assert_eq!(facts(&streams(&out)[0]), facts(&streams(&input)[0]));
    assert_times(&times(&out), &times(&input), 0.0);

    // The same size in 4:2:0, which H.264 cannot have.
    let odd = folder.path().join("odd.mkv");
    ffmpeg(&[
        "-i",
        input.to_str().unwrap(),
        "-pix_fmt",
        "yuv420p",
        "-c:v",
        "ffv1",
        odd.to_str().unwrap(),
    ]);
    let out = folder.path().join("odd.mp4");
    let written = transcode(&odd, to(&out)).unwrap();
    assert_eq!(streams(&out)[0]["pix_fmt"], "yuv444p");
    assert_eq!(streams(&out)[0]["width"], 321);
    assert!(
        written
            .description
            .contains("converted from yuv420p to yuv444p (because the size is odd)"),
        "{}",
        written.description
    );
    let mut forced = to(&out);
    forced.pixel_format = Some("yuv420p".to_owned());
    forced.overwrite = true;
    let error = transcode(&odd, forced).unwrap_err().to_string();
    assert!(error.contains("needs even sizes"), "{error}");
}

#[test]
fn rotation_is_kept_or_carried_out() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (sample("clip-rotated.mp4"), folder.path().join("out.mp4"));
    let written = transcode(&input, to(&out)).unwrap();
    assert_eq!(written.remarks.warning_texts(), Vec::<String>::new());
    let matrix = |path: &Path| streams(path)[0]["side_data_list"][0]["displaymatrix"].clone();
    assert!(matrix(&input).is_string());
    assert_eq!(matrix(&out), matrix(&input));
    assert_times(&times(&out), &times(&input), 0.0);

    let out = folder.path().join("out.avi");
    let written = transcode(&input, to(&out)).unwrap();
    let warnings = written.remarks.warning_texts().join(" ");
    assert!(!warnings.contains("rotation"), "{warnings}");
    assert!(
        written.description.contains("pictures turned: 90 degrees"),
        "{}",
        written.description
    );
    let size = |path: &Path| {
        let stream = &streams(path)[0];
        (stream["width"].clone(), stream["height"].clone())
    };
    assert_eq!(size(&out), (size(&input).1, size(&input).0));
    assert_eq!(times(&out).len(), times(&input).len());
}

#[test]
fn foreign_formats_are_converted_and_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (foreign, native) in [
        ("rgb48be", "rgb48le"),
        ("yuva420p", "yuva444p"),
        ("bgr0", "rgb24"),
        ("yuvj420p", "yuv420p"),
    ] {
        let input = folder.path().join(format!("{foreign}.nut"));
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            "testsrc2=s=64x48:r=5",
            "-frames:v",
            "3",
            "-pix_fmt",
            foreign,
            "-c:v",
            if foreign == "yuvj420p" {
                "mjpeg"
            } else {
                "rawvideo"
            },
            input.to_str().unwrap(),
        ]);
        let mut source = open(&input).unwrap();
        assert_eq!(
            source.info().format,
            PixelFormat::from_name(native).unwrap(),
            "{foreign}"
        );
        let said = source
            .info()
            .description
            .contains(&format!("converted from {foreign} to {native}"));
        assert_eq!(said, foreign != "yuvj420p", "{}", source.info().description);
        let (supply, _keep) = supply();
        let frame = source.next(&supply).unwrap().unwrap();
        let raw = folder.path().join("raw");
        let mut bytes = Vec::new();
        for (index, plane) in frame.layout().planes().iter().enumerate() {
            for y in 0..plane.height {
                bytes.extend_from_slice(frame.row(index, y));
            }
        }
        ffmpeg(&[
            "-i",
            input.to_str().unwrap(),
            "-frames:v",
            "1",
            "-pix_fmt",
            if foreign == "yuvj420p" { foreign } else { native },
            "-sws_flags",
            "bicubic+accurate_rnd+full_chroma_int+full_chroma_inp+bitexact",
            "-f",
            "rawvideo",
            raw.to_str().unwrap(),
        ]);
        assert!(bytes == std::fs::read(&raw).unwrap(), "{foreign}");
    }
}

#[test]
fn each_container_gets_an_encoder_that_it_can_hold() {
    let folder = tempfile::tempdir().unwrap();
    let input = sample("clip-rotated.mp4");
    for (out, codec) in [
        ("out.mov", "h264"),
        ("out.webm", "vp9"),
        ("out.avi", "mpeg4"),
        ("out.gif", "gif"),
        ("out.ogv", "theora"),
        ("out.mxf", "mpeg2video"),
        ("out.ts", "h264"),
    ] {
        let out = folder.path().join(out);
        transcode_some(&mut open(&input).unwrap(), to(&out), 6).unwrap();
        let stream = &streams(&out)[0];
        assert_eq!(stream["codec_name"], codec);
        assert_eq!(times(&out).len(), 6, "{codec}");
    }
}

#[test]
fn an_interrupted_run_ends_its_sound_with_its_picture() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4");
    transcode_some(&mut open(&sample("clip-720p.mp4")).unwrap(), to(&out), 25).unwrap();
    let seconds = |index: usize| -> f64 {
        streams(&out)[index]["duration"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    assert!((seconds(0) - 1.0).abs() < 0.001);
    assert!((seconds(1) - 1.0).abs() < 0.1, "the sound lasts {} s", seconds(1));
}

#[test]
fn sound_that_outlasts_the_picture_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.mkv"), folder.path().join("out.mkv"));
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:r=5:d=1",
        "-f",
        "lavfi",
        "-i",
        "sine=d=6",
        "-c:v",
        "ffv1",
        "-c:a",
        "flac",
        input.to_str().unwrap(),
    ]);
    transcode(&input, to(&out)).unwrap();
    assert_eq!(packets(&out, "0:a"), packets(&input, "0:a"));
}

#[test]
fn a_truncated_input_is_never_taken_for_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, share) in [
        ("clip-720p.mp4", 0.6),
        ("clip-10bit.mkv", 0.5),
        ("clip-vfr.mkv", 0.5),
    ] {
        let cut = folder.path().join(name);
        let whole = std::fs::read(sample(name)).unwrap();
        std::fs::write(&cut, &whole[..(whole.len() as f64 * share) as usize]).unwrap();
        let mut source = open(&cut).unwrap();
        let frames = drain(&mut source).unwrap();
        let all = drain(&mut open(&sample(name)).unwrap()).unwrap();
        assert!(frames > 0 && frames < all, "{name}: {frames} of {all}");
        let warnings = source.remarks().warning_texts();
        assert!(
            warnings.iter().any(|w| w.contains("incomplete")),
            "{name}: {warnings:?}"
        );
        let strict = open_strict(&cut).and_then(|mut source| drain(&mut source));
        assert!(
            matches!(strict, Err(SourceError::Invalid { .. })),
            "{name}: {strict:?}"
        );
    }
}

#[test]
fn however_little_a_container_lacks_it_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let muxers: [(&str, &[&str]); 6] = [
        ("seekable.mkv", &["-c:v", "ffv1"]),
        // Written as into a pipe: no sizes but the clusters', no duration.
        (
            "live.mkv",
            &["-c:v", "ffv1", "-f", "matroska", "-cluster_time_limit", "200"],
        ),
        ("faststart.mp4", &["-c:v", "mpeg4", "-movflags", "+faststart"]),
        (
            "fragments.mp4",
            &[
                "-c:v",
                "mpeg4",
                "-g",
                "5",
                "-movflags",
                "+frag_keyframe+empty_moov",
            ],
        ),
        ("clip.avi", &["-c:v", "ffv1"]),
        (
            "clip.webm",
            &["-c:v", "libvpx", "-deadline", "realtime", "-g", "5"],
        ),
    ];
    for (name, options) in muxers {
        let whole = folder.path().join(name);
        let mut command = Command::new("ffmpeg");
        command
            .args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=1"])
            .args(options);
        if name.starts_with("live") {
            let bytes = command.arg("-").output().unwrap().stdout;
            std::fs::write(&whole, bytes).unwrap();
        } else {
            assert!(command.arg(&whole).status().unwrap().success(), "{name}");
        }
        let mut source = open_strict(&whole).unwrap();
        assert_eq!(drain(&mut source).unwrap(), 25, "{name}");
        assert_eq!(source.remarks().warning_texts(), Vec::<String>::new(), "{name}");

        let bytes = std::fs::read(&whole).unwrap();
        let cut = folder.path().join(format!("cut-{name}"));
        for share in [0.97, 0.66, 0.5] {
            std::fs::write(&cut, &bytes[..(bytes.len() as f64 * share) as usize]).unwrap();
            let mut source = open(&cut).unwrap();
            drain(&mut source).unwrap();
            let warnings = source.remarks().warning_texts();
            assert!(
                warnings.iter().any(|w| w.contains("incomplete")),
                "{name} cut to {share}: {warnings:?}"
            );
        }
    }
}

#[test]
fn whole_inputs_are_not_suspected() {
    // A pause that MP4 states, shown two pictures behind the packet that lasts so long, and a seam of joined
    // recordings, whose sound is longer than their pictures.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let select = "select='lt(t,1)+gt(t,1.3)'";
    for (name, filter, options) in [
        ("pause.mp4", select, &["-fps_mode", "vfr"][..]),
        ("part.ts", "null", &["-c:a", "aac"]),
    ] {
        let input = ["-f", "lavfi", "-i", "testsrc2=s=64x64:r=30:d=2"];
        let sound = ["-f", "lavfi", "-i", "sine=440:d=2"];
        let video = [
            "-vf",
            filter,
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-bf",
            "2",
        ];
        ffmpeg(&[&input[..], &sound, &video, options, &[at(name).to_str().unwrap()]].concat());
    }
    std::fs::write(at("joined.ts"), std::fs::read(at("part.ts")).unwrap().repeat(2)).unwrap();
    // Zeros fill up a stream of constant rate.
    for name in ["full.vob", "full.m2v", "full.mkv"] {
        let input = ["-f", "lavfi", "-i", "testsrc2=s=64x64:r=25:d=2"];
        let rate = ["-b:v", "4M", "-minrate", "4M", "-maxrate", "4M", "-bufsize", "1M"];
        let path = at(name);
        let codec = ["-c:v", "mpeg2video", path.to_str().unwrap()];
        ffmpeg(&[&input[..], &rate, &codec].concat());
    }
    for (name, frames) in [
        ("pause.mp4", 50),
        ("joined.ts", 120),
        ("full.vob", 50),
        ("full.m2v", 50),
        ("full.mkv", 50),
    ] {
        let mut source = open_strict(&at(name)).unwrap();
        assert_eq!(drain(&mut source).unwrap(), frames, "{name}");
        assert_eq!(source.remarks().warning_texts(), Vec::<String>::new(), "{name}");
    }
    for name in [
        "clip-720p.mp4",
        "clip-10bit.mkv",
        "clip-odd.mp4",
        "clip-vfr.mkv",
        "clip-rotated.mp4",
        "clip.y4m",
    ] {
        let mut source = open_strict(&sample(name)).unwrap();
        let frames = drain(&mut source).unwrap();
        assert_eq!(frames as usize, times(&sample(name)).len(), "{name}");
        assert_eq!(source.remarks().warning_texts(), Vec::<String>::new(), "{name}");
        // At uneven times the number of frames does not follow from the length.
        if let Some(hint) = source.info().frames.filter(|_| name != "clip-vfr.mkv") {
            assert!(
                hint.abs_diff(frames) <= 3,
                "{name}: {hint} expected, {frames} found"
            );
        }
    }
}

#[test]
fn corrupt_packets_are_concealed_and_counted_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.mp4");
    let mut bytes = std::fs::read(sample("clip-720p.mp4")).unwrap();
    // Pictures only: places in the middle of the packets of video, some way into each.
    let listed = probe(
        &sample("clip-720p.mp4"),
        &["-select_streams", "v:0", "-show_entries", "packet=pos,size"],
    );
    for packet in listed["packets"].as_array().unwrap().iter().skip(20).step_by(9) {
        let number = |key: &str| -> usize { packet[key].as_str().unwrap().parse().unwrap() };
        let (at, size) = (number("pos"), number("size"));
        for byte in &mut bytes[at + size / 3..at + size / 3 + 40.min(size / 3)] {
            *byte ^= 0x5a;
        }
    }
    std::fs::write(&broken, bytes).unwrap();
    for threads in [1, 4] {
        let mut options = VideoSourceOptions::default();
        options.threads = Some(threads);
        let mut source = VideoSource::open(&broken, &options).unwrap();
        let frames = drain(&mut source).unwrap();
        assert!((70..=75).contains(&frames), "{frames} frames");
        let warnings = source.remarks().warning_texts();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("concealed"), "{warnings:?}");
    }
    let error = open_strict(&broken)
        .and_then(|mut source| drain(&mut source))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(" at ") && error.contains("without --strict"),
        "{error}"
    );
}

/// Where several threads decode, a picture may come out before its thread has marked it as patched.
#[test]
fn a_patched_picture_is_reported_however_many_threads_decode() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.mp4");
    let mut bytes = std::fs::read(sample("clip-720p.mp4")).unwrap();
    let data = bytes.windows(4).position(|tag| tag == b"mdat").unwrap();
    for at in (data + 3000..data + 7000).step_by(7) {
        bytes[at] ^= 0xff;
    }
    std::fs::write(&broken, bytes).unwrap();
    let options = |threads, strict| {
        let mut options = VideoSourceOptions::default();
        options.threads = Some(threads);
        options.strict = strict;
        options
    };
    let warnings = |threads| {
        let mut source = VideoSource::open(&broken, &options(threads, false)).unwrap();
        drain(&mut source).unwrap();
        source.remarks().warning_texts()
    };
    let expected = warnings(1);
    assert!(
        matches!(&expected[..], [warning] if warning.contains("damaged frame")),
        "{expected:?}"
    );
    for run in 0..5 {
        assert_eq!(warnings(4), expected, "run {run}");
        let strict = VideoSource::open(&broken, &options(4, true)).and_then(|mut source| drain(&mut source));
        let error = strict.unwrap_err().to_string();
        assert!(error.contains("damaged; without --strict"), "run {run}: {error}");
    }
}

/// What decoders of other kinds patch, with a mark of the picture or without.
#[test]
fn patched_pictures_of_each_codec_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    for (codec, format) in [
        ("libx264", "yuv420p"),
        ("mpeg2video", "yuv420p"),
        ("mpeg4", "yuv420p"),
        ("mjpeg", "yuvj420p"),
        ("prores", "yuv422p10le"),
    ] {
        let broken = folder.path().join(format!("{codec}.mkv"));
        let pictures = "testsrc2=size=640x360:rate=25:duration=2,noise=alls=12";
        let path = broken.to_str().unwrap();
        ffmpeg(&[
            "-f", "lavfi", "-i", pictures, "-pix_fmt", format, "-c:v", codec, "-b:v", "2M", "-g", "25", path,
        ]);
        let mut bytes = std::fs::read(&broken).unwrap();
        let listed = probe(&broken, &["-show_entries", "packet=pos,size"]);
        for packet in listed["packets"].as_array().unwrap().iter().skip(10).step_by(13) {
            let number = |key: &str| -> usize { packet[key].as_str().unwrap().parse().unwrap() };
            let (at, size) = (number("pos") + 16, number("size"));
            bytes[at + size / 3..][..60.min(size / 3)]
                .iter_mut()
                .for_each(|byte| *byte ^= 0x5a);
        }
        std::fs::write(&broken, bytes).unwrap();
        let mut source = open(&broken).unwrap();
        drain(&mut source).unwrap();
        let warnings = source.remarks().warning_texts();
        assert!(
            warnings.len() == 1 && (warnings[0].contains("damaged") || warnings[0].contains("corrupt")),
            "{codec}: {warnings:?}"
        );
        let strict = open_strict(&broken).and_then(|mut source| drain(&mut source));
        assert!(strict.is_err(), "{codec}");
    }
}

/// The bytes of each packet of the video in a file: where they are, and how many.
fn places(path: &Path) -> Vec<(usize, usize)> {
    let listed = probe(
        path,
        &["-select_streams", "v:0", "-show_entries", "packet=pos,size"],
    );
    let number = |packet: &Value, key: &str| -> usize { packet[key].as_str().unwrap().parse().unwrap() };
    let packets = listed["packets"].as_array().unwrap().iter();
    packets
        // FFmpeg says of some streams without a container not where their packets are.
        .filter(|packet| packet["pos"].is_string())
        .map(|packet| (number(packet, "pos"), number(packet, "size")))
        .collect()
}

/// What remains of a clip, made with these options of FFmpeg's, once `spoil` has had its bytes and the places
/// of its pictures: the frames and the warning. As it was made, nothing may be said of it.
pub(crate) fn spoilt(
    name: &str,
    options: &[&str],
    spoil: impl FnOnce(&mut Vec<u8>, &[(usize, usize)]),
) -> (u64, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let input = ["-f", "lavfi", "-i", "testsrc2=s=64x64:r=25:d=2"];
    ffmpeg(&[&input, options, &[path.to_str().unwrap()]].concat());
    let mut source = open_strict(&path).unwrap();
    assert_eq!(drain(&mut source).unwrap(), 50, "{name}");
    assert_eq!(source.remarks().warning_texts(), Vec::<String>::new(), "{name}");
    let mut bytes = std::fs::read(&path).unwrap();
    spoil(&mut bytes, &places(&path));
    std::fs::write(&path, bytes).unwrap();
    let strict = open_strict(&path).and_then(|mut source| drain(&mut source));
    assert!(strict.is_err(), "{name}: {strict:?}");
    let mut source = open(&path).unwrap();
    let frames = drain(&mut source).unwrap();
    (frames, source.remarks().warning_texts().join(" | "))
}

/// Decoders that give the picture and report what is wrong with it in an error line alone.
#[test]
fn errors_of_decoders_are_counted_as_damage() {
    let ffv1 = [
        "-c:v",
        "ffv1",
        "-level",
        "3",
        "-slices",
        "4",
        "-slicecrc",
        "1",
        "-g",
        "1",
    ];
    let (frames, said) = spoilt("slices.mkv", &ffv1, |bytes, places| {
        let (at, size) = places[20];
        bytes[at + size / 2] ^= 0xff;
    });
    assert_eq!(frames, 50);
    assert!(said.contains("1 damaged frame concealed"), "{said}");
    let (_, said) = spoilt("clip.ogv", &["-c:v", "libtheora"], |bytes, _| {
        // A page whose checksum is wrong is left out.
        let page = bytes.windows(4).rposition(|four| four == b"OggS").unwrap();
        bytes[page + 60] ^= 1;
    });
    assert!(said.contains("1 corrupt packet"), "{said}");
    // Of pictures of 64x64 x265's hashes are not always those of what is decoded.
    let hashes = [
        "-s",
        "80x64",
        "-c:v",
        "libx265",
        "-x265-params",
        "log-level=none:hash=1:pools=none",
    ];
    let (frames, said) = spoilt("hashes.mkv", &hashes, |bytes, places| {
        let (at, size) = places[20];
        bytes[at + size * 3 / 4] ^= 4;
    });
    assert_eq!(frames, 50);
    assert!(said.contains("damaged frame"), "{said}");
    // References that are missing.
    let options = |codec| ["-c:v", codec, "-preset", "ultrafast", "-bf", "2"];
    let x265 = [&options("libx265")[..], &["-x265-params", "log-level=none"]].concat();
    for (name, options) in [("hole.h264", &options("libx264")[..]), ("hole.hevc", &x265)] {
        let (_, said) = spoilt(name, options, |bytes, places| {
            let (at, size) = places[22];
            bytes.drain(at..at + size);
        });
        assert!(said.contains("damaged frame"), "{name}: {said}");
    }
}

/// An MP4 file of five fragments.
const FRAGMENTS: [&str; 10] = [
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-bf",
    "0",
    "-g",
    "10",
    "-movflags",
    "frag_keyframe+empty_moov+default_base_moof",
];

#[test]
fn frames_that_containers_count_are_missed() {
    // An entry of AVI's index, no mark of NUT behind the damage, and FLV that ends with a whole tag.
    let sound = ["-f", "lavfi", "-i", "sine=d=2:r=48000", "-c:a", "pcm_s16le"];
    let with_sound = [&sound[..], &["-c:v", "huffyuv"]].concat();
    let (frames, said) = spoilt("entry.avi", &with_sound, |bytes, _| {
        let index = bytes.windows(4).rposition(|name| name == b"idx1").unwrap();
        // No entry's name, flags, place or size.
        for (place, n) in bytes[index + 414..][..40].iter_mut().zip(0_u8..) {
            *place = n.wrapping_mul(37).wrapping_add(126);
        }
    });
    assert!(
        frames == 49 && said.contains("only 49 of its 50 frames are there"),
        "{frames}: {said}"
    );
    let mpeg4 = ["-c:v", "mpeg4", "-g", "10"];
    for options in [&mpeg4[..], &[&mpeg4[..], &["-write_index", "0"]].concat()] {
        let (frames, said) = spoilt("mark.nut", options, |bytes, places| {
            let at = places[41].0;
            bytes[at - 8..at + 60].fill(0);
        });
        assert!(
            frames < 50 && said.contains("what follows is not read"),
            "{frames}: {said}"
        );
    }
    let (frames, said) = spoilt("tag.flv", &["-c:v", "flv"], |bytes, places| {
        bytes.truncate(places[20].0);
    });
    assert!(
        frames == 20 && said.contains("its header says 2.000 s"),
        "{frames}: {said}"
    );
    // MXF, whose demuxer goes on behind the hole.
    let mpeg2 = [
        "-f",
        "lavfi",
        "-i",
        "sine=d=2:r=48000",
        "-c:v",
        "mpeg2video",
        "-c:a",
        "pcm_s16le",
    ];
    let (frames, said) = spoilt("hole.mxf", &mpeg2, |bytes, _| {
        let (from, to) = (bytes.len() * 45 / 100, bytes.len() * 60 / 100);
        bytes[from..to].fill(0);
    });
    assert!(
        frames < 50 && said.contains("of its 50 frames are there"),
        "{frames}: {said}"
    );
    // Files that were joined.
    for (name, options) in [
        ("joined.mp4", &["-c:v", "mpeg4"][..]),
        ("fragments.mp4", &FRAGMENTS),
        ("joined.flv", &["-c:v", "flv"]),
        ("joined.wmv", &["-c:v", "wmv2"]),
        ("joined.apng", &[]),
        ("joined.gif", &[]),
    ] {
        let (frames, said) = spoilt(name, options, |bytes, _| bytes.extend_from_within(..));
        assert!(
            frames < 100 && said.contains("another movie begins after its end: not all of both is read"),
            "{name}: {frames}: {said}"
        );
    }
}

/// Demuxers that stop, or skip bytes, without a word in what they return.
/// Where the boxes of MP4 with this name begin.
fn places_of(bytes: &[u8], name: &[u8]) -> Vec<usize> {
    let is_there = |&at: &usize| bytes[at + 4..].starts_with(name);
    (0..bytes.len() - 4).filter(is_there).collect()
}

#[test]
fn what_a_demuxer_cannot_read_is_reported() {
    let (frames, said) = spoilt("clip.gif", &[], |bytes, _| {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 1500].fill(0);
    });
    assert!(frames < 50 && said.contains("the input is incomplete"), "{said}");
    // Without an index, the last frame's header tells.
    for options in [&["-c:v", "ffv1"][..], &["-c:v", "ffv1", "-write_index", "0"]] {
        let (frames, said) = spoilt("clip.nut", options, |bytes, _| bytes.truncate(bytes.len() / 2));
        assert!(
            (20..30).contains(&frames) && said.contains("bytes are missing"),
            "{said}"
        );
    }
    // Foreign and zero bytes between the fragments of MP4, a stretch of zeros in AVI, with its index and
    // without, and ends in the middle of a packet.
    let foreign = |bytes: &mut Vec<u8>, _: &[(usize, usize)]| {
        let third = places_of(bytes, b"moof")[2];
        bytes.splice(third..third, 1..=200);
    };
    let (frames, said) = spoilt("foreign.mp4", &FRAGMENTS, foreign);
    assert!(
        frames == 20 && said.contains("what follows is not read"),
        "{frames}: {said}"
    );
    let (frames, said) = spoilt("zero.mp4", &FRAGMENTS, |bytes, _| {
        let begin = places_of(bytes, b"moof");
        bytes[begin[2]..begin[3]].fill(0);
    });
    assert!(
        frames == 20 && said.contains("what follows is not read"),
        "{frames}: {said}"
    );
    for (has_index, sentence) in [
        (true, "of the 50 packets in its index"),
        (false, "its header says 2.000 s"),
    ] {
        let (frames, said) = spoilt("clip.avi", &["-c:v", "ffv1"], |bytes, _| {
            let length = bytes.len();
            bytes[length * 2 / 5..length * 3 / 5].fill(0);
            if !has_index {
                let at = bytes.windows(4).rposition(|name| name == b"idx1").unwrap();
                bytes[at..at + 4].copy_from_slice(b"JUNK");
            }
        });
        assert!(frames < 45 && said.contains(sentence), "{frames}: {said}");
    }
}

/// Zeros from a place on to the end, as in files that were not written to it, or within; ends within a tag.
#[test]
fn zeros_and_ends_within_a_tag_are_reported() {
    let sound = ["-f", "lavfi", "-i", "sine=d=2:r=44100"];
    let fragments = [&sound[..], &["-c:a", "aac"], &FRAGMENTS].concat();
    let (frames, said) = spoilt("tail.mp4", &fragments, |bytes, _| {
        let begin = places_of(bytes, b"moof")[3];
        // Its index is lost with them.
        bytes[begin..].fill(0);
    });
    assert!(
        frames == 30 && said.contains("what follows is not read"),
        "{frames}: {said}"
    );
    // Fewer frames than the length in the header would show.
    for options in [&["-c:v", "mpeg4"][..], &["-c:v", "mpeg4", "-live", "1"]] {
        let (frames, said) = spoilt("tail.mkv", options, |bytes, places| {
            bytes[places[48].0 + 20..].fill(0);
        });
        assert!(
            (48..50).contains(&frames) && said.contains("what follows is not read"),
            "{options:?}: {frames}: {said}"
        );
    }
    for (name, options, percent, expected) in [
        (
            "tail.flv",
            &["-c:v", "flv", "-c:a", "libmp3lame"],
            80..100,
            "what follows is not read",
        ),
        (
            "tail.wmv",
            &["-c:v", "wmv2", "-c:a", "wmav2"],
            80..100,
            "are no blocks of Windows Media",
        ),
        (
            "hole.wmv",
            &["-c:v", "wmv2", "-c:a", "wmav2"],
            60..80,
            "are no blocks of Windows Media",
        ),
        (
            "hole.rm",
            &["-c:v", "rv10", "-c:a", "ac3"],
            60..80,
            "its packets break off",
        ),
    ] {
        let options = [&sound[..], options].concat();
        let (frames, said) = spoilt(name, &options, |bytes, _| {
            let length = bytes.len();
            bytes[length * percent.start / 100..length * percent.end / 100].fill(0);
        });
        assert!(frames < 50 && said.contains(expected), "{name}: {frames}: {said}");
    }
    for (missing, options) in [
        (1000, &["-c:a", "aac", "-c:v", "libx264"]),
        (30, &["-c:a", "libmp3lame", "-c:v", "flv"]),
    ] {
        let options = [&sound[..], options].concat();
        let (_, said) = spoilt("tag.flv", &options, |bytes, _| {
            bytes.truncate(bytes.len() - missing);
        });
        assert!(
            said.contains(&format!("its last {missing} bytes are missing")),
            "{missing}: {said}"
        );
    }
}

#[test]
fn ends_within_a_packet_and_impossible_sizes_are_reported() {
    let dv = ["-vf", "scale=720:576", "-pix_fmt", "yuv420p", "-c:v", "dvvideo"];
    let (frames, said) = spoilt("clip.dv", &dv, |bytes, _| bytes.truncate(bytes.len() / 20 * 11));
    assert!(
        frames < 50 && said.contains("it ends in the middle of a packet"),
        "{frames}: {said}"
    );
    for (name, more) in [("clip.ts", &[][..]), ("clip.m2ts", &["-mpegts_m2ts_mode", "1"])] {
        let options = [&["-c:v", "mpeg2video"], more].concat();
        let (_, said) = spoilt(name, &options, |bytes, _| bytes.truncate(bytes.len() - 100));
        assert!(
            said.contains("it ends in the middle of a packet"),
            "{name}: {said}"
        );
    }
    let av1 = ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime"];
    let (frames, said) = spoilt("clip.obu", &av1, |bytes, _| bytes.truncate(bytes.len() - 30));
    assert!(
        frames < 50 && said.contains("its last 30 bytes are missing"),
        "{frames}: {said}"
    );
    // Sizes that cannot be are no lack of memory.
    let vp8 = ["-c:v", "libvpx", "-deadline", "realtime", "-g", "5"];
    let (frames, said) = spoilt("clip.ivf", &vp8, |bytes, places| {
        let at = places[20].0;
        bytes[at..at + 4].fill(0xff);
    });
    assert!(
        frames == 20 && said.contains("larger than anything can be"),
        "{frames}: {said}"
    );
    let folder = tempfile::tempdir().unwrap();
    let claim = folder.path().join("claim.mp4");
    let mut bytes = std::fs::read(sample("clip-odd.mp4")).unwrap();
    let table = bytes.windows(4).position(|four| four == b"stco").unwrap();
    bytes[table + 8..table + 12].copy_from_slice(&[0x3f, 0xff, 0xff, 0xff]);
    std::fs::write(&claim, bytes).unwrap();
    let error = open(&claim).err().unwrap().to_string();
    assert!(
        error.contains("it is damaged") && !error.contains("--workers"),
        "{error}"
    );
}

#[test]
fn what_is_no_video_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &Path| open(path).err().unwrap().to_string();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "Just words.\n".repeat(200)).unwrap();
    assert!(message(&text).contains("text file"), "{}", message(&text));
    let named_video = folder.path().join("notes.mp4");
    std::fs::write(&named_video, "Just words.\n".repeat(200)).unwrap();
    assert!(
        message(&named_video).contains("finds no audio or video"),
        "{}",
        message(&named_video)
    );
    // FFmpeg's demuxers refuse the first and the last with a number of the system's.
    for (name, bytes, said) in [
        ("clip.yuv", &[16; 600][..], "use raw:WxH:FORMAT:FPS:"),
        ("clip.raw", &[16; 600], "use raw:WxH:FORMAT:FPS:"),
        ("clip.nv12", &[16; 600], "use raw:WxH:FORMAT:FPS:"),
        (
            "large.psb",
            b"8BPS\0\x02\0\0\0\0",
            "large Photoshop document (PSB)",
        ),
        ("clip.v210", &[16; 600], "use raw:WxH:FORMAT:FPS:"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let message = message(&path);
        assert!(
            message.contains(said) && !message.contains("os error"),
            "{message}"
        );
    }
    let empty = folder.path().join("empty.mp4");
    std::fs::write(&empty, "").unwrap();
    assert!(
        message(&empty).contains("finds no audio or video"),
        "{}",
        message(&empty)
    );
    let sound = folder.path().join("sound.mka");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "sine=d=1",
        "-c:a",
        "flac",
        sound.to_str().unwrap(),
    ]);
    assert!(
        message(&sound).contains("holds no video; its streams are 0: audio (flac)"),
        "{}",
        message(&sound)
    );
    let missing = folder.path().join("missing.mp4");
    assert!(matches!(open(&missing), Err(SourceError::Io { .. })));
    assert!(
        message(&missing).contains("No such file"),
        "{}",
        message(&missing)
    );
    let mut wrong = VideoSourceOptions::default();
    wrong.stream = Some(1);
    let error = VideoSource::open(&sample("clip-720p.mp4"), &wrong)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("stream 1 is audio, not video"), "{error}");
}

#[test]
fn a_cover_picture_is_not_the_video() {
    let folder = tempfile::tempdir().unwrap();
    let (cover, song) = (folder.path().join("cover.png"), folder.path().join("song.mp4"));
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=800x600",
        "-frames:v",
        "1",
        cover.to_str().unwrap(),
    ]);
    let add_cover = |inputs: &[&str], maps: &[&str], disposition: &str| {
        let cover = ["-i", cover.to_str().unwrap()];
        let end = ["-c", "copy", disposition, "attached_pic", song.to_str().unwrap()];
        ffmpeg(&[inputs, &cover, maps, &end].concat());
    };
    let clip = sample("clip-720p.mp4");
    add_cover(
        &["-i", clip.to_str().unwrap()],
        &["-map", "1:v", "-map", "0:v", "-map", "0:a"],
        "-disposition:v:0",
    );
    let source = open(&song).unwrap();
    assert_eq!((source.info().width, source.info().height), (1280, 720));
    let out = folder.path().join("out.mp4");
    let written = transcode_some(
        &mut open(&song).unwrap(),
        changed(to(&out), |options| options.preset = Some("ultrafast".to_owned())),
        usize::MAX,
    )
    .unwrap();
    assert_eq!(written.remarks.warning_texts(), Vec::<String>::new());
    let covers = |path: &Path| {
        streams(path)
            .iter()
            .filter(|s| s["disposition"]["attached_pic"] == 1)
            .count()
    };
    assert_eq!((covers(&out), covers(&song)), (1, 1));
    add_cover(
        &["-i", clip.to_str().unwrap()],
        &["-map", "0:a", "-map", "1:v"],
        "-disposition:v:0",
    );
    let error = open(&song).err().unwrap().to_string();
    assert!(error.contains("only sound with a cover picture"), "{error}");
}

#[test]
fn a_change_of_size_in_mid_stream_is_reported_with_both_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let mut joined = Vec::new();
    for size in ["64x48", "96x64"] {
        let part = folder.path().join("part.ts");
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &format!("testsrc2=s={size}:r=10"),
            "-frames:v",
            "5",
            "-c:v",
            "libx264",
            "-bf",
            "0",
            "-pix_fmt",
            "yuv420p",
            part.to_str().unwrap(),
        ]);
        joined.extend(std::fs::read(&part).unwrap());
    }
    let input = folder.path().join("joined.ts");
    std::fs::write(&input, joined).unwrap();
    let error = drain(&mut open(&input).unwrap()).unwrap_err().to_string();
    assert!(
        error.contains("frame 5 is 96x64 yuv420p, but the video began as 64x48 yuv420p"),
        "{error}"
    );
}

fn refusal(info: &StreamInfo, options: VideoOptions) -> String {
    VideoSink::create(info, options).err().unwrap().to_string()
}

#[test]
fn impossible_outputs_are_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mp4");
    std::fs::copy(sample("clip-rotated.mp4"), &input).unwrap();
    let info = open(&input).unwrap().info().clone();
    let out = folder.path().join("out.mp4");
    let unknown = refusal(
        &info,
        changed(to(&out), |options| {
            options.encoder = Some("no-such-encoder".to_owned());
        }),
    );
    assert!(
        unknown.contains("no video encoder 'no-such-encoder'; for mp4 it has ") && unknown.contains("mpeg4"),
        "{unknown}"
    );
    let webm = refusal(
        &info,
        changed(to(&folder.path().join("out.webm")), |options| {
            options.encoder = Some("mpeg4".to_owned());
        }),
    );
    assert!(webm.contains("webm cannot hold mpeg4"), "{webm}");
    assert!(refusal(&info, to(&folder.path().join("out.nonsense"))).contains("does not tell the container"));
    let link = folder.path().join("link.mp4");
    std::os::unix::fs::symlink(&input, &link).unwrap();
    for same in [&input, &link] {
        let error = refusal(&info, changed(to(same), |options| options.overwrite = true));
        assert!(error.contains("is the input itself"), "{error}");
        assert!(is_same_file(&input, same));
    }
    assert!(!is_same_file(&input, &sample("clip-rotated.mp4")));
    std::fs::write(&out, "kept").unwrap();
    assert!(refusal(&info, to(&out)).contains("exists"));
    assert!(refusal(&info, to(&folder.path().join("missing/out.mp4"))).contains("No such file"));
    assert_eq!(std::fs::read(&out).unwrap(), b"kept");
    // Nothing half-written is left behind.
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["in.mp4", "link.mp4", "out.mp4"]);
}

/// Trials neither read nor write the statistics of a pass.
#[test]
fn an_encoder_makes_two_passes() {
    let folder = tempfile::tempdir().unwrap();
    let input = sample("clip-rotated.mp4");
    let frames = times(&input).len();
    let out = folder.path().join("out.mkv");
    let with = |encoder: &str, pairs: &[(&str, String)]| {
        let mut options = to(&out);
        options.overwrite = true;
        options.encoder = Some(encoder.to_owned());
        options.encoder_options = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        options
    };
    for (encoder, name) in [("libx264", "x264.log"), ("libx265", "x265.log")] {
        let log = folder.path().join(name);
        let stats = log.to_str().unwrap();
        let mut written = Vec::new();
        for pass in [1, 2] {
            let rate = ("b", "100k".to_owned());
            let own = match encoder {
                "libx264" => ("x264-params", format!("stats={stats}")),
                _ => ("x265-params", format!("pass={pass}:stats={stats}:log-level=none")),
            };
            let flags = ("flags", format!("+pass{pass}+cgop"));
            let options = [own, rate, flags];
            let count = if encoder == "libx264" { 3 } else { 2 };
            transcode(&input, with(encoder, &options[..count])).unwrap();
            // A line for each frame.
            let text = std::fs::read_to_string(&log).unwrap();
            assert_eq!(
                text.lines().filter(|line| line.starts_with("in:")).count(),
                frames,
                "{text}"
            );
            written.push(text);
        }
        assert_eq!(written[0], written[1], "{encoder}");
        assert_eq!(times(&out).len(), frames);
    }
    let refused = transcode(&input, with("libvpx", &[("flags", "pass1".to_owned())])).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("flags=pass1 is of no use with libvpx"),
        "{refused}"
    );
}

#[test]
fn options_reach_encoder_and_container_or_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = sample("clip-rotated.mp4");
    let out = folder.path().join("out.mp4");
    let with = |pairs: &[(&str, &str)]| {
        let mut options = to(&out);
        options.overwrite = true;
        options.encoder_options = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        options
    };
    let error = |pairs| transcode(&input, with(pairs)).unwrap_err().to_string();
    let unknown = error(&[("no-such-option", "1")]);
    assert!(
        unknown.contains("neither the encoder libx264 nor the container mp4 has an option 'no-such-option'"),
        "{unknown}"
    );
    // Shared options that are for decoders, for sound or for FFmpeg itself are none of an encoder's.
    for (key, value) in [
        ("video_size", "64x48"),
        ("lowres", "1"),
        ("pixel_format", "gray"),
        ("time_base", "1/7"),
        ("ar", "5"),
        ("probesize", "32"),
    ] {
        let unknown = transcode(&input, with(&[(key, value)])).unwrap_err().to_string();
        assert!(unknown.contains(&format!("has an option '{key}'")), "{unknown}");
    }
    for setting in [
        "input-res=1280x960",
        "--no_copy_pic=1",
        "copy-pic=0",
        "input-csp=i444",
    ] {
        let mut options = with(&[("x265-params", &format!("aq-mode=1:{setting}"))]);
        options.encoder = Some("libx265".to_owned());
        let refused = transcode(&input, options).unwrap_err().to_string();
        assert!(
            refused.contains(" in x265-params is about the encoder's pictures"),
            "{refused}"
        );
    }
    // Flags add to those that the container needs.
    let mut options = with(&[("flags", "bitexact")]);
    options.path = folder.path().join("flags.mkv");
    transcode(&input, options).unwrap();
    let streams = probe(
        &folder.path().join("flags.mkv"),
        &["-show_entries", "stream=extradata_size"],
    );
    assert!(
        streams["streams"][0]["extradata_size"].as_u64().is_some(),
        "{streams}"
    );
    let refused = error(&[("bf", "many")]);
    assert!(refused.contains("libx264 refuses bf=many"), "{refused}");
    assert!(!out.exists());
    transcode(
        &input,
        with(&[("g", "7"), ("movflags", "+faststart"), ("bf:v", "0")]),
    )
    .unwrap();
    let keys = probe(&out, &["-show_entries", "packet=flags"])["packets"].clone();
    let keys = keys.as_array().unwrap();
    for (at, packet) in keys.iter().enumerate() {
        let is_key = packet["flags"].as_str().unwrap().starts_with('K');
        assert!(is_key || at % 7 != 0, "packet {at}");
    }
    let head = std::fs::read(&out).unwrap();
    let place = |mark: &[u8]| head.windows(4).position(|w| w == mark).unwrap();
    assert!(place(b"moov") < place(b"mdat"));
    let quality = |value: f64| {
        let mut options = with(&[]);
        options.quality = Some(value);
        transcode(&input, options).unwrap().bytes.unwrap()
    };
    assert!(quality(40.0) < quality(20.0));
    let mut none = to(&folder.path().join("out.mkv"));
    none.encoder = Some("ffv1".to_owned());
    none.quality = Some(3.0);
    let error = transcode(&input, none).unwrap_err().to_string();
    assert!(error.contains("no single number for its quality"), "{error}");
}

#[test]
fn a_frame_unlike_the_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (supply, _keep) = supply();
    let mut small = open(&sample("clip-rotated.mp4")).unwrap();
    let mut large = open(&sample("clip-vfr.mkv")).unwrap();
    let mut sink = VideoSink::create(small.info(), to(&folder.path().join("out.mkv"))).unwrap();
    sink.write(small.next(&supply).unwrap().unwrap()).unwrap();
    let error = sink.write(large.next(&supply).unwrap().unwrap()).unwrap_err();
    assert!(matches!(error, SinkError::Mismatch { .. }), "{error}");
    assert!(error.to_string().contains("320x180") && error.to_string().contains("320x240"));
    drop(sink);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_output_without_frames_is_no_video() {
    let folder = tempfile::tempdir().unwrap();
    let source = open(&sample("clip-rotated.mp4")).unwrap();
    let sink = Box::new(VideoSink::create(source.info(), to(&folder.path().join("out.mkv"))).unwrap());
    assert!(matches!(sink.finish(), Err(SinkError::Unsupported { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_reported_with_the_files_name() {
    let error = transcode(
        &sample("clip-720p.mp4"),
        changed(to(Path::new("/dev/full")), |options| {
            options.muxer = Some("mpegts".to_owned());
            options.preset = Some("ultrafast".to_owned());
            options.overwrite = true;
        }),
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("/dev/full") && error.contains("No space left"),
        "{error}"
    );
}
