//! `--fields`: the fields of interlaced pictures are filtered separately, as FFmpeg's separatefields,
//! convolution and weave do it.

use crate::common::{PROGRAM, ffmpeg, probe, said};
use framepipe::frame::{Layout, PixelFormat};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const WIDTH: usize = 66;
const HEIGHT: usize = 52;
const FRAMES: usize = 5;

/// Three rows, which sum up to 4.
const MASK: &str = "mask:rows=1;2;1:divisor=4";

fn framepipe(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(["filter", "--overwrite"])
        .args(arguments)
        .output()
        .unwrap()
}

/// A lossless clip each of whose pictures shows two instants.
fn interlaced(folder: &Path, format: &str, order: &str) -> PathBuf {
    let path = folder.join(format!("{format}-{order}.mkv"));
    let source = format!("testsrc2=s={WIDTH}x{HEIGHT}:r=50");
    let mode = if order == "tff" {
        "interleave_top"
    } else {
        "interleave_bottom"
    };
    let filters = format!("format={format},tinterlace={mode},setfield={order}");
    let frames = FRAMES.to_string();
    let field_order = if order == "tff" { "tt" } else { "bb" };
    let input = [
        "-f",
        "lavfi",
        "-i",
        &source,
        "-vf",
        &filters,
        "-frames:v",
        &frames,
    ];
    let output = [
        "-c:v",
        "ffv1",
        "-field_order",
        field_order,
        path.to_str().unwrap(),
    ];
    ffmpeg(&[&input[..], &output[..]].concat());
    path
}

/// All pictures of a file, raw, through FFmpeg's filters.
fn raw(path: &Path, filters: &str, format: &str) -> Vec<u8> {
    let input = ["-i", path.to_str().unwrap(), "-vf", filters];
    ffmpeg(&[&input[..], &["-pix_fmt", format, "-f", "rawvideo", "-"]].concat())
}

/// The samples of `plane`'s rows in the picture that begins at `start`.
fn samples(data: &[u8], layout: &Layout, picture: usize, plane: usize) -> Vec<Vec<u32>> {
    let place = layout.planes()[plane];
    (0..place.height)
        .map(|y| {
            let at = picture * layout.size() + place.offset + y * place.stride;
            let row = &data[at..at + layout.row_bytes(plane)];
            match layout.format().bytes_per_sample() {
                1 => row.iter().map(|&b| u32::from(b)).collect(),
                _ => row
                    .chunks(2)
                    .map(|b| u32::from(u16::from_le_bytes([b[0], b[1]])))
                    .collect(),
            }
        })
        .collect()
}

/// Every second row of the plane filtered with the mask, the outermost ones repeated outside.
fn reference(rows: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let last = rows.len() as i64 - 1;
    let row = |y: i64, parity: i64| {
        let (low, high) = (parity, last - (last - parity) % 2);
        &rows[y.clamp(low, high) as usize]
    };
    (0..=last)
        .map(|y| {
            let near = [row(y - 2, y % 2), row(y, y % 2), row(y + 2, y % 2)];
            (0..rows[0].len())
                .map(|x| (near[0][x] + 2 * near[1][x] + near[2][x] + 2) >> 2)
                .collect()
        })
        .collect()
}

#[test]
fn each_field_is_filtered_like_a_picture_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["yuv420p", "yuv422p", "yuv420p10le", "yuv422p10le"] {
        for order in ["tff", "bff"] {
            let input = interlaced(folder.path(), name, order);
            let output = folder.path().join("out.mkv");
            let (from, to) = (input.to_str().unwrap(), output.to_str().unwrap());
            let run = framepipe(&[
                from,
                to,
                "--filter",
                MASK,
                "--fields",
                "--encoder",
                "ffv1",
                "--strict",
            ]);
            assert!(run.status.success(), "{}", said(&run));
            assert!(!said(&run).contains("note:"), "{}", said(&run));
            let layout = Layout::new(PixelFormat::from_name(name).unwrap(), WIDTH, HEIGHT, 1).unwrap();
            let ours = raw(&output, "null", name);
            assert_eq!(ours.len(), FRAMES * layout.size(), "{name} {order}");
            let before = raw(&input, "null", name);
            let first = if order == "tff" { "top" } else { "bottom" };
            let planes = "0 1 0 0 2 0 0 1 0";
            let convolution = format!("convolution=0m={planes}:1m={planes}:2m={planes}");
            let filters = format!("setfield={order},separatefields,{convolution},weave=first_field={first}");
            let theirs = raw(&input, &filters, name);
            assert_eq!(theirs.len(), ours.len(), "{name} {order}");
            let mut is_changed = false;
            for picture in 0..FRAMES {
                for plane in 0..3 {
                    let [ours, theirs, before] =
                        [&ours, &theirs, &before].map(|data| samples(data, &layout, picture, plane));
                    let place = format!("{name} {order}, picture {picture}, plane {plane}");
                    assert_eq!(ours, reference(&before), "{place}");
                    // FFmpeg does something else outside the plane of a field.
                    let inner = 2..ours.len() - 2;
                    for y in inner.clone() {
                        let width = ours[y].len();
                        assert_eq!(ours[y][1..width - 1], theirs[y][1..width - 1], "{place}, row {y}");
                    }
                    is_changed |= ours != before;
                }
            }
            assert!(is_changed);
            let entries = "frame=pts_time,interlaced_frame,top_field_first:stream=height";
            let [ours, theirs] = [&output, &input].map(|path| probe(path, &["-show_entries", entries]));
            assert_eq!(ours["frames"].as_array().map(Vec::len), Some(FRAMES));
            for what in ["frames", "streams"] {
                assert_eq!(ours[what], theirs[what], "{name} {order}");
            }
        }
    }
}

#[test]
fn image_files_have_fields_too() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir(&from).unwrap();
    let source = format!("testsrc2=s={WIDTH}x{HEIGHT}:r=50,format=rgb24,tinterlace=interleave_top");
    let pattern = from.join("%d.png");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        &source,
        "-frames:v",
        "7",
        pattern.to_str().unwrap(),
    ]);
    let (input, output) = (from.to_str().unwrap(), format!("{}/", to.display()));
    let report = to.with_extension("json");
    let report = report.to_str().unwrap();
    let run = framepipe(&[input, &output, "--filter", MASK, "--fields", "--report", report]);
    assert!(run.status.success(), "{}", said(&run));
    let report: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let counts = report["throughput"]["frames"].as_array().unwrap();
    assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), 7);
    let layout = Layout::new(PixelFormat::from_name("rgb24").unwrap(), WIDTH, HEIGHT, 1).unwrap();
    for number in 1..=7 {
        let [before, after] =
            [&from, &to].map(|folder| raw(&folder.join(format!("{number}.png")), "null", "rgb24"));
        let [before, after] = [before, after].map(|data| samples(&data, &layout, 0, 0));
        assert_eq!(after, reference(&before), "{number}.png");
    }
}

#[test]
fn pictures_without_two_even_fields_are_refused() {
    for (format, height, accepted) in [
        ("yuv420p", 50, false),
        ("yuv420p", 52, true),
        ("yuv422p", 50, true),
        ("gray", 51, false),
    ] {
        let input = format!("synthetic:64x{height}:{format}:25:3");
        let run = framepipe(&[&input, "null:", "--filter", MASK, "--fields"]);
        assert_eq!(
            run.status.code(),
            Some(if accepted { 0 } else { 2 }),
            "{input}: {}",
            said(&run)
        );
        if accepted {
            // Frames of the output, as many as came in.
            assert!(said(&run).contains("\n3 frames in "), "{}", said(&run));
        } else {
            let multiple = if format == "yuv420p" {
                "multiple of 4"
            } else {
                "multiple of 2"
            };
            assert!(said(&run).contains(multiple), "{}", said(&run));
        }
    }
}

/// PNG's passes are an order in which pixels are stored. FFmpeg's decoder calls such pictures interlaced.
#[test]
fn pictures_of_png_in_passes_have_no_fields() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let field_order = |path: &str| {
        let found = probe(Path::new(path), &["-show_streams"]);
        found["streams"][0]["field_order"]
            .as_str()
            .unwrap_or("unknown")
            .to_owned()
    };
    let is_in_passes = |path: &str| {
        let file = fs::read(path).unwrap();
        let head = file.windows(4).position(|name| name == b"IHDR").unwrap();
        file[head + 16] == 1
    };
    for end in ["mov", "mkv"] {
        let mut results = Vec::new();
        for (name, flags) in [("rows", "+bitexact"), ("passes", "+bitexact+ildct")] {
            let (clip, out) = (at(&format!("{name}.{end}")), at(&format!("{name}.{end}.mkv")));
            let source = [
                "-f",
                "lavfi",
                "-i",
                "testsrc2=s=34x26:r=25:d=0.08",
                "-pix_fmt",
                "rgb24",
            ];
            ffmpeg(&[&source[..], &["-c:v", "png", "-flags:v", flags, &clip]].concat());
            assert_eq!(is_in_passes(&clip), name == "passes");
            let run = framepipe(&[
                &clip,
                &out,
                "--filter",
                MASK,
                "--encoder",
                "ffv1",
                "--pixel-format",
                "yuv420p",
            ]);
            assert!(run.status.success(), "{}", said(&run));
            let words = said(&run);
            assert!(
                !words.contains("interlaced") && !words.contains("field order"),
                "{words}"
            );
            let order = field_order(&out);
            assert!(matches!(order.as_str(), "progressive" | "unknown"), "{order}");
            results.push(raw(Path::new(&out), "null", "yuv420p"));
        }
        assert!(results[0] == results[1], "{end}");
    }
    // What a container states of fields stays, and pixels are not stored in passes for it.
    let input = interlaced(folder.path(), "yuv420p", "tff");
    let out = at("fields.mov");
    let run = framepipe(&[
        input.to_str().unwrap(),
        &out,
        "--filter",
        "identity",
        "--encoder",
        "png",
    ]);
    assert!(
        run.status.success() && !said(&run).contains("field order"),
        "{}",
        said(&run)
    );
    assert_eq!(field_order(&out), "tt");
    assert!(!is_in_passes(&out));
}

#[test]
fn a_mask_of_several_rows_on_interlaced_pictures_gets_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let input = interlaced(folder.path(), "yuv420p", "tff");
    let progressive = folder.path().join("progressive.mkv");
    let later = folder.path().join("later.mkv");
    let source = format!("testsrc2=s={WIDTH}x{HEIGHT}:r=25:d=0.4");
    let encoder = ["-c:v", "ffv1", progressive.to_str().unwrap()];
    ffmpeg(
        &[
            &["-f", "lavfi", "-i", &source, "-vf", "setfield=prog"][..],
            &encoder[..],
        ]
        .concat(),
    );
    // MPEG-2 says of each picture whether it is interlaced.
    let (a, b) = (folder.path().join("a.ts"), folder.path().join("b.ts"));
    let mpeg2 = ["-c:v", "mpeg2video", "-q:v", "2"];
    let input_a = ["-f", "lavfi", "-i", &source];
    ffmpeg(&[&input_a[..], &mpeg2[..], &[a.to_str().unwrap()]].concat());
    let fields = [
        "-vf",
        "setfield=tff",
        "-flags",
        "+ildct+ilme",
        "-output_ts_offset",
        "0.4",
    ];
    ffmpeg(&[&input_a[..], &mpeg2[..], &fields[..], &[b.to_str().unwrap()]].concat());
    fs::write(&later, [fs::read(a).unwrap(), fs::read(b).unwrap()].concat()).unwrap();
    let gaussian = "gaussian:sigma=2";
    for (input, filter, more, note) in [
        (
            &input,
            gaussian,
            "--strict",
            Some("note: its pictures are interlaced, and gaussian:sigma=2 mixes"),
        ),
        (&input, gaussian, "--fields", None),
        (&input, gaussian, "--quiet", None),
        (&input, "mask:rows=1 2 1:divisor=4", "--strict", None),
        (&progressive, gaussian, "--strict", None),
        (
            &later,
            gaussian,
            "--flip",
            Some("note: some of its pictures are interlaced"),
        ),
    ] {
        let run = framepipe(&[input.to_str().unwrap(), "null:", "--filter", filter, more]);
        assert!(run.status.success(), "{}", said(&run));
        match note {
            Some(note) => assert!(said(&run).contains(note), "{more}: {}", said(&run)),
            None => assert!(!said(&run).contains("note:"), "{more}: {}", said(&run)),
        }
    }
}
