//! Facts about pictures (range, colour, rotation, field order, HDR metadata, ...) through every kind of
//! output: carried, converted in the samples, or reported. Judged by ffprobe and by what ffmpeg makes of the
//! pixels.

use crate::common::{ffmpeg, ffprobe, is_whole_matrix};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// A clip of some frames of a test picture, made by `options` of ffmpeg's.
fn clip(folder: &Path, name: &str, picture: &str, options: &str) -> PathBuf {
    let path = folder.join(name);
    let mut arguments = vec!["-f", "lavfi", "-i", picture];
    arguments.extend(words(options));
    arguments.push(path.to_str().unwrap());
    ffmpeg(&arguments);
    path
}

/// Colour tags for ffmpeg, which takes them from the options up to version 6 and from the frames afterwards.
const SDR: &str = "-vf setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709 -color_primaries \
    bt709 -color_trc bt709 -colorspace bt709";
const PQ: &str = "-vf setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc \
    -color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc";

/// One run of `framepipe filter` with the identity.
fn filter(input: &Path, output: &Path, options: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .arg("filter")
        .args([input, output])
        .args(["--filter", "mask:rows=1", "--engine", "cpu", "--overwrite"])
        .args(words(options))
        .output()
        .unwrap()
}

/// What a run that must succeed said.
fn filtered(input: &Path, output: &Path, options: &str) -> String {
    let done = filter(input, output, options);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{} {options}: {said}", output.display());
    said
}

/// The warnings in what a run said, one a line.
fn warnings(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|l| l.contains("warning")).collect();
    lines.join("\n")
}

fn probe(path: &Path) -> Value {
    let wanted = ["-select_streams", "V:0", "-show_streams", "-show_frames"];
    let found = ffprobe(path, &[&["-v", "quiet", "-of", "json"], &wanted[..]].concat());
    serde_json::from_slice(&found.stdout).unwrap()
}

/// The first frame's pixels as RGB, as ffmpeg understands the file; without turning it.
fn rgb(path: &Path) -> Vec<u8> {
    let path = path.to_str().unwrap();
    let options = ["-frames:v", "1", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"];
    ffmpeg(&[&["-noautorotate", "-i", path], &options[..]].concat())
}

/// As [`rgb`], of several files by one run of ffmpeg.
fn rgb_of_all(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    let raw = |path: &PathBuf| path.with_extension(format!("{}.rgb", path.extension().unwrap().display()));
    let names: Vec<PathBuf> = paths.iter().map(raw).collect();
    let maps: Vec<String> = (0..paths.len()).map(|number| format!("{number}:V:0")).collect();
    let mut arguments = Vec::new();
    for path in paths {
        arguments.extend(["-noautorotate", "-i", path.to_str().unwrap()]);
    }
    for (map, name) in maps.iter().zip(&names) {
        arguments.extend([
            "-map",
            map,
            "-frames:v",
            "1",
            "-pix_fmt",
            "rgb24",
            "-f",
            "rawvideo",
        ]);
        arguments.push(name.to_str().unwrap());
    }
    ffmpeg(&arguments);
    names.iter().map(|name| std::fs::read(name).unwrap()).collect()
}

/// A value of the first frame or, where it has none, of the stream.
fn value(probed: &Value, key: &str) -> String {
    let known = |v: &Value| {
        v.as_str()
            .filter(|v| !matches!(*v, "unknown" | "unspecified"))
            .map(str::to_owned)
    };
    known(&probed["frames"][0][key])
        .or_else(|| known(&probed["streams"][0][key]))
        .unwrap_or_default()
}

/// True if a frame or the stream has a block of side data of that name.
fn has_block(probed: &Value, name: &str) -> bool {
    let holds = |list: &Value| {
        let blocks = list["side_data_list"].as_array();
        blocks.is_some_and(|b| {
            b.iter()
                .any(|b| b["side_data_type"].as_str().unwrap_or("").contains(name))
        })
    };
    let frames = probed["frames"].as_array().unwrap();
    holds(&probed["streams"][0]) || frames.iter().any(holds)
}

fn rotation(probed: &Value) -> String {
    let of = |list: &Value| {
        let blocks = list["side_data_list"].as_array()?;
        blocks.iter().find_map(|b| b["rotation"].as_i64())
    };
    let found = of(&probed["streams"][0]).or_else(|| of(&probed["frames"][0]));
    found.unwrap_or(0).to_string()
}

fn field_order(probed: &Value) -> String {
    let frame = &probed["frames"][0];
    match (
        frame["interlaced_frame"].as_i64(),
        frame["top_field_first"].as_i64(),
    ) {
        (Some(1), Some(1)) => "tt".to_owned(),
        (Some(1), _) => "bb".to_owned(),
        _ => match probed["streams"][0]["field_order"].as_str() {
            Some("tt" | "tb") => "tt".to_owned(),
            Some("bb" | "bt") => "bb".to_owned(),
            _ => "progressive".to_owned(),
        },
    }
}

/// Encoders and the containers that each is tried in.
const OUTPUTS: &[(&str, &str)] = &[
    ("mpeg4", "avi mov mkv mp4 nut"),
    ("mpeg2video", "mpg ts mkv mxf mov"),
    ("mjpeg", "avi mov mkv"),
    ("prores_ks", "mov mkv"),
    ("ffv1", "mkv avi nut mov"),
    ("libx264", "mp4 flv ts avi mkv mov"),
    ("libx265", "mp4 mkv ts"),
    ("libvpx-vp9", "webm mp4"),
    ("libtheora", "ogv mkv"),
    ("wmv2", "wmv avi mkv"),
    ("flv", "flv"),
    ("rawvideo", "nut avi"),
    ("v210", "mov mkv"),
    ("utvideo", "avi mkv"),
];

/// Every third of the outputs, others for another `seed`, so that the whole stays quick; all of them with
/// FRAMEPIPE_WHOLE_MATRIX=1.
fn outputs(seed: usize) -> Vec<(&'static str, &'static str)> {
    let all = is_whole_matrix();
    let pairs = OUTPUTS
        .iter()
        .flat_map(|(encoder, ends)| ends.split(' ').map(move |end| (*encoder, end)));
    pairs
        .enumerate()
        .filter(|(at, _)| all || at % 3 == seed % 3)
        .map(|(_, pair)| pair)
        .collect()
}

#[test]
fn full_range_comes_out_right_where_it_cannot_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let picture = "color=0x404040:s=64x64:r=25:d=1,drawbox=x=32:w=32:h=64:t=fill:color=0xC0C0C0";
    let input = clip(
        folder.path(),
        "in.avi",
        picture,
        "-vf scale=out_range=full,format=yuvj420p -c:v mjpeg -q:v 2",
    );
    let mut chosen: Vec<(&str, &str)> = outputs(0);
    chosen.extend([
        ("mpeg4", "avi"),
        ("mpeg2video", "mpg"),
        ("wmv2", "wmv"),
        ("libtheora", "ogv"),
        ("prores_ks", "mov"),
    ]);
    chosen.sort_unstable();
    chosen.dedup();
    let outputs = chosen.iter().map(|(encoder, end)| {
        let out = folder.path().join(format!("{encoder}.{end}"));
        filtered(&input, &out, &format!("--encoder {encoder}"));
        out
    });
    let outputs: Vec<PathBuf> = outputs.collect();
    for ((encoder, end), pixels) in chosen.iter().zip(rgb_of_all(&outputs)) {
        for (x, gray) in [(8, 64_u8), (56, 192)] {
            let found = &pixels[(32 * 64 + x) * 3..][..3];
            assert!(
                found.iter().all(|v| v.abs_diff(gray) <= 2),
                "{encoder} in {end}: gray {gray} became {found:?}"
            );
        }
    }
    let out = folder.path().join("said.mpg");
    let said = filtered(&input, &out, "");
    assert!(said.contains("samples brought to limited range"), "{said}");
    assert!(!warnings(&said).contains("range"), "{said}");
}

#[test]
fn an_encoders_own_mark_reaches_the_container() {
    let folder = tempfile::tempdir().unwrap();
    let input = clip(
        folder.path(),
        "in.mkv",
        "testsrc2=s=64x64:r=25:d=0.2",
        "-pix_fmt yuv420p -c:v ffv1",
    );
    let mut files = vec![input.clone()];
    for (encoder, ends) in [
        ("rawvideo", "nut avi mkv"),
        ("utvideo", "avi mkv"),
        ("huffyuv", "avi mkv"),
        ("ffvhuff", "avi mkv nut"),
        ("magicyuv", "avi mov"),
    ] {
        for end in ends.split(' ') {
            let out = folder.path().join(format!("{encoder}.{end}"));
            filtered(&input, &out, &format!("--encoder {encoder}"));
            files.push(out);
        }
    }
    let pixels = rgb_of_all(&files);
    for (file, found) in files.iter().zip(&pixels) {
        assert_eq!(found.len(), pixels[0].len(), "{file:?}");
        let pairs = pixels[0].iter().zip(found);
        let off = pairs.filter(|(a, b)| a.abs_diff(**b) > 64).count();
        assert!(off < 64, "{file:?}: {off} samples differ");
    }
}

/// With a sample of chroma in every row, "top left" is no more than the left, where it is taken to be.
#[test]
fn the_location_of_chroma_of_dv_is_the_usual_one() {
    let folder = TempDir::new().unwrap();
    let options = "-frames:v 2 -pix_fmt yuv411p -c:v dvvideo";
    let input = clip(folder.path(), "in.dv", "testsrc2=s=720x480:r=30000/1001", options);
    assert_eq!(probe(&input)["streams"][0]["chroma_location"], "topleft");
    for (name, options) in [
        ("ffv1.mkv", "--encoder ffv1 --strict"),
        ("mpeg2.mkv", "--encoder mpeg2video"),
    ] {
        let said = filtered(&input, &folder.path().join(name), options);
        assert!(!said.contains("chroma location"), "{name}: {said}");
    }
}

#[test]
fn range_is_left_alone_where_it_can_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let options = "-vf scale=out_range=full,format=yuv420p -color_range pc -c:v libx264";
    let input = clip(folder.path(), "in.mp4", "testsrc2=s=64x64:r=25:d=0.2", options);
    for name in ["out.mkv", "out.mp4", "out.ts"] {
        let out = folder.path().join(name);
        let said = filtered(&input, &out, "");
        assert!(!said.contains("samples brought"), "{said}");
        assert_eq!(value(&probe(&out), "color_range"), "pc", "{name}");
    }
    let lossless = folder.path().join("lossless.mkv");
    filtered(&input, &lossless, "--encoder ffv1");
    let md5 = |path: &Path| ffmpeg(&["-i", path.to_str().unwrap(), "-f", "rawvideo", "-"]);
    assert_eq!(md5(&lossless), md5(&input));
}

/// What is compared of input and output: the word in a warning, and the value by ffprobe.
type Compared = (&'static str, fn(&Value) -> String);

const COMPARED: &[Compared] = &[
    ("matrix", |p| value(p, "color_space")),
    ("transfer", |p| value(p, "color_transfer")),
    ("primaries", |p| value(p, "color_primaries")),
    ("chroma location", |p| value(p, "chroma_location")),
    ("pixel aspect", |p| value(p, "sample_aspect_ratio")),
    ("rotation", rotation),
    ("field order", field_order),
    ("mastering display", |p| {
        has_block(p, "Mastering display").to_string()
    }),
    ("content light level", |p| {
        has_block(p, "Content light").to_string()
    }),
    ("closed captions", |p| has_block(p, "Closed Captions").to_string()),
];

/// Every fact of `input` is seen on `output`, or is named, or needs no word at this height.
fn assert_accounted(input: &Path, output: &Path, said: &str) {
    let (before, after) = (probe(input), probe(output));
    for (word, of) in COMPARED {
        let (from, to) = (of(&before), of(&after));
        let usual = matches!(
            (*word, from.as_str()),
            (_, "" | "false" | "1:1" | "0:1" | "progressive")
                | ("chroma location", "left")
                | ("matrix" | "primaries", "bt470bg" | "smpte170m")
                | ("transfer", "bt709" | "smpte170m" | "bt2020-10")
        );
        // RGB has no matrix, and neither has what was turned a rotation.
        let turned = *word == "rotation" && said.contains("pictures turned") && to == "0";
        let no_chroma = *word == "chroma location" && !value(&after, "pix_fmt").contains("42");
        // With a sample in every row, "top left" is the left.
        let every_row = ["422", "411"]
            .iter()
            .any(|of| value(&after, "pix_fmt").contains(of));
        let is_left = *word == "chroma location" && every_row && from == "topleft";
        let excused =
            turned || no_chroma || is_left || said.contains("pictures turned") && *word == "chroma location";
        assert!(
            from == to || usual && from != "bt2020nc" || excused || warnings(said).contains(word),
            "{}: {word} was {from} and is {to}; said: {said}",
            output.display()
        );
    }
}

#[test]
fn tags_of_hdr_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let hdr = "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1):\
        max-cll=1000,400";
    let options = format!(
        "-pix_fmt yuv420p10le {PQ} -chroma_sample_location topleft -c:v libx265 -x265-params \
         log-level=error:{hdr}"
    );
    let input = clip(folder.path(), "in.mkv", "testsrc2=s=128x96:r=25:d=0.4", &options);
    for (encoder, end) in outputs(1) {
        let out = folder.path().join(format!("{encoder}.{end}"));
        let said = filtered(&input, &out, &format!("--encoder {encoder}"));
        assert_accounted(&input, &out, &said);
    }
    // FFmpeg reads chromaticities of PNG as a mastering display without luminance.
    let said = filtered(&input, &folder.path().join("out.apng"), "");
    let lost = warnings(&said);
    assert!(
        lost.contains("mastering display (0.0001 to 1000 cd/m2)"),
        "{said}"
    );
    // In plain words, and as an error before anything is there.
    let out = folder.path().join("plain.avi");
    let said = warnings(&filtered(&input, &out, ""));
    for word in [
        "(mpeg4 in avi)",
        "depth (samples of 10 bits become samples of 8 bits in yuv420p)",
        "such as libx265 in .mkv",
        "matrix (bt2020nc)",
        "primaries (bt2020)",
        "transfer (smpte2084)",
    ] {
        assert!(said.contains(word), "{said}");
    }
    let strict = folder.path().join("strict.avi");
    let refused = filter(&input, &strict, "--strict");
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("smpte2084") && !strict.exists(), "{error}");
    // Samples that become shallower are lost, unless the format is asked for.
    let still = clip(
        folder.path(),
        "still.png",
        "testsrc2=s=64x64:d=0.04",
        "-pix_fmt gray16be",
    );
    for (end, encoder, bits, format) in [("gif", "gif", 8, "pal8"), ("avi", "mpeg4", 8, "yuv420p")] {
        let out = folder.path().join(format!("shallow.{end}"));
        let words = format!("depth (samples of 16 bits become samples of {bits} bits in {format})");
        let refused = filter(&still, &out, "--strict");
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains(&words) && !out.exists(), "{error}");
        let options = format!("--encoder {encoder} --pixel-format {format}");
        let said = warnings(&filtered(&still, &out, &options));
        assert!(!said.contains("depth ("), "{said}");
    }
    // So are colours that a palette has no room for.
    for (name, step, is_kept) in [("few.png", 4, true), ("many.png", 2, false)] {
        let graph =
            format!("nullsrc=s=64x64:d=0.04,format=gbrp,geq=r=floor(X/4)*16:g=floor(Y/{step})*8:b=90");
        let picture = clip(folder.path(), name, &graph, "-pix_fmt rgb24");
        let out = folder.path().join(format!("{name}.gif"));
        let strict = filter(&picture, &out, "--strict");
        let error = String::from_utf8(strict.stderr).unwrap();
        assert_eq!(strict.status.success(), is_kept, "{error}");
        if is_kept {
            assert!(rgb(&out) == rgb(&picture));
            continue;
        }
        let words = "not kept in ";
        assert!(
            error.contains(words) && error.contains("colours (a palette holds 256"),
            "{error}"
        );
        assert!(!out.exists());
        let said = warnings(&filtered(&picture, &out, ""));
        assert_eq!(said.matches("colours (a palette").count(), 1, "{said}");
        let asked = filtered(&picture, &out, "--pixel-format pal8 --strict");
        assert!(asked.contains("1 frame reduced to 256 colours"), "{asked}");
    }
    let kept = filter(
        &input,
        &folder.path().join("strict.mkv"),
        "--strict --encoder libx265",
    );
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
}

#[test]
fn interlaced_pictures_of_odd_shape_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = "-vf setsar=16/11,setfield=tff -c:v libx264 -x264opts tff=1 -flags +ildct+ilme";
    let input = clip(folder.path(), "in.mkv", "testsrc2=s=176x144:r=25:d=0.2", options);
    for (encoder, end) in outputs(2) {
        let out = folder.path().join(format!("{encoder}.{end}"));
        let said = filtered(&input, &out, &format!("--encoder {encoder}"));
        assert_accounted(&input, &out, &said);
    }
}

#[test]
fn a_pixel_aspect_that_is_rounded_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = "-vf setsar=16/11 -c:v libx264";
    let input = clip(folder.path(), "in.mp4", "testsrc2=s=128x96:r=25:d=0.4", options);
    // WebM states the width at which pictures are shown, in whole pixels.
    let webm = folder.path().join("out.webm");
    let said = filtered(&input, &webm, "--encoder libvpx");
    let became = value(&probe(&webm), "sample_aspect_ratio");
    assert_ne!(became, "16:11");
    let words = format!("pixel aspect (16:11, which becomes {became})");
    assert!(warnings(&said).contains(&words), "{said}");
    let strict = filter(&input, &webm, "--encoder libvpx --strict");
    assert_eq!(strict.status.code(), Some(1));
    let out = folder.path().join("out.mkv");
    filtered(&input, &out, "--encoder libvpx --strict");
    assert_eq!(value(&probe(&out), "sample_aspect_ratio"), "16:11");
}

/// Copies a video with a display matrix, by the option of FFmpeg 6 and newer or by the text of older ones.
fn rotated(from: &Path, to: &Path, degrees: &str) {
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    let run = |before: &[&str], after: &[&str]| {
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-v", "error", "-y"]).args(before);
        let done = command
            .args(["-i", from, "-c", "copy"])
            .args(after)
            .arg(to)
            .output();
        done.unwrap().status.success()
    };
    let text = format!("rotate={degrees}");
    assert!(run(&["-display_rotation", degrees], &[]) || run(&[], &["-metadata:s:v:0", &text]));
}

#[test]
fn turned_videos_are_kept_or_turned() {
    let folder = tempfile::tempdir().unwrap();
    let plain = clip(
        folder.path(),
        "plain.mp4",
        "testsrc2=s=96x64:r=25:d=0.12",
        "-c:v libx264 -qp 1",
    );
    let input = folder.path().join("in.mp4");
    for (tag, filter_text) in [
        ("90", "transpose=2"),
        ("180", "hflip,vflip"),
        ("270", "transpose=1"),
    ] {
        rotated(&plain, &input, tag);
        let right = ffmpeg(&[
            "-i",
            plain.to_str().unwrap(),
            "-vf",
            filter_text,
            "-frames:v",
            "1",
            "-pix_fmt",
            "yuv420p",
            "-f",
            "rawvideo",
            "-",
        ]);
        for (encoder, end) in [
            ("libx264", "mp4"),
            ("libx264", "mov"),
            ("ffv1", "mkv"),
            ("ffv1", "avi"),
            ("libx264", "ts"),
        ] {
            let out = folder.path().join(format!("{encoder}.{end}"));
            let said = filtered(&input, &out, &format!("--encoder {encoder}"));
            assert_accounted(&input, &out, &said);
            if said.contains("pictures turned") && encoder == "ffv1" {
                let found = ffmpeg(&[
                    "-i",
                    out.to_str().unwrap(),
                    "-frames:v",
                    "1",
                    "-f",
                    "rawvideo",
                    "-",
                ]);
                assert_eq!(found, right, "{tag} {end}");
            }
        }
        // Each colour of a GIF frame is one of 256: of the size and about the colours of the turned pictures.
        let gif = folder.path().join("out.gif");
        let said = filtered(&input, &gif, "");
        assert!(said.contains("pictures turned"), "{said}");
        let of_first = |path: &Path, before: &str| {
            let filter = format!("{before}format=rgb24");
            let path = path.to_str().unwrap();
            ffmpeg(&[
                "-i",
                path,
                "-vf",
                &filter,
                "-frames:v",
                "1",
                "-f",
                "rawvideo",
                "-",
            ])
        };
        let (found, wanted) = (of_first(&gif, ""), of_first(&plain, &format!("{filter_text},")));
        let off: u32 = found
            .iter()
            .zip(&wanted)
            .map(|(a, b)| u32::from(a.abs_diff(*b)))
            .sum();
        assert_eq!(found.len(), wanted.len());
        assert!(off < 12 * wanted.len() as u32, "{tag}: {off}");
        let said = filtered(&input, &folder.path().join("still_%d.png"), "");
        assert!(said.contains("pictures turned"), "{said}");
        let found = probe(&folder.path().join("still_0.png"));
        let (width, height) = if tag == "180" { (96, 64) } else { (64, 96) };
        assert_eq!(found["streams"][0]["width"], width);
        assert_eq!(found["streams"][0]["height"], height);
        let still = rgb(&folder.path().join("still_0.png"));
        // As the pictures are without the rotation, turned by ffmpeg.
        filtered(&plain, &folder.path().join("plain_%d.png"), "");
        let shown = folder.path().join("shown.png");
        ffmpeg(&[
            "-i",
            folder.path().join("plain_0.png").to_str().unwrap(),
            "-vf",
            filter_text,
            shown.to_str().unwrap(),
        ]);
        assert!(still == rgb(&shown), "{tag}");
        let said = warnings(&filtered(&input, &folder.path().join("out.y4m"), ""));
        assert!(said.contains("rotation"), "{said}");
    }
}

/// No output is advised that loses the same, or something else.
#[test]
fn the_output_that_is_advised_holds_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, input) = (folder.path().join("plain.mp4"), folder.path().join("in.mp4"));
    let picture = "testsrc2=s=96x64:r=25:d=0.12";
    for (options, degrees) in [("", "45"), ("-flags +ildct", "180")] {
        clip(
            folder.path(),
            "plain.mp4",
            picture,
            &format!("-c:v libx264 {options}"),
        );
        rotated(&plain, &input, degrees);
        for encoder in ["libx264", "libx265", "ffv1"] {
            let out = folder.path().join("out.mkv");
            let done = filter(&input, &out, &format!("--encoder {encoder} --strict"));
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            if done.status.success() {
                continue;
            }
            let Some((_, advised)) = said.split_once("such as ") else {
                panic!("{encoder}, {degrees}: {said}");
            };
            let advised = advised.split(';').next().unwrap().trim();
            let (name, ending) = advised.split_once(" in .").unwrap();
            let again = folder.path().join(format!("again.{ending}"));
            let done = filter(&input, &again, &format!("--encoder {name} --strict"));
            assert!(
                done.status.success(),
                "{said}, but {}",
                String::from_utf8_lossy(&done.stderr)
            );
        }
    }
}

#[test]
fn rotation_in_the_coded_stream_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let plain = clip(
        folder.path(),
        "plain.h264",
        "testsrc2=s=96x64:r=25:d=0.4",
        "-c:v libx264",
    );
    let input = folder.path().join("in.h264");
    ffmpeg(&[
        "-i",
        plain.to_str().unwrap(),
        "-c",
        "copy",
        "-bsf:v",
        "h264_metadata=display_orientation=insert:rotate=90",
        input.to_str().unwrap(),
    ]);
    let before = rotation(&probe(&input));
    assert_eq!(before, "90");
    let out = folder.path().join("out.mp4");
    let said = filtered(&input, &out, "");
    assert_eq!(rotation(&probe(&out)), before, "{said}");
    filtered(&input, &folder.path().join("still_%d.png"), "");
    assert_eq!(
        probe(&folder.path().join("still_3.png"))["streams"][0]["width"],
        64
    );
}

/// HDR10+ (SMPTE ST 2094-40) as T.35 has it.
fn hdr10_plus() -> Vec<u8> {
    let mut bits = String::new();
    for (value, width) in [
        (0xB5, 8),
        (0x3C, 16),
        (1, 16),
        (4, 8),
        (1, 8),
        (1, 2),
        (1000, 27),
        (0, 1),
        (5000, 17),
        (4000, 17),
        (3000, 17),
        (1200, 17),
        (0, 4),
        (10, 10),
        (0, 1),
        (0, 1),
        (0, 1),
    ] {
        bits.push_str(&format!("{value:0width$b}"));
    }
    while !bits.len().is_multiple_of(8) {
        bits.push('0');
    }
    (0..bits.len() / 8)
        .map(|at| u8::from_str_radix(&bits[8 * at..8 * at + 8], 2).unwrap())
        .collect()
}

/// The HEVC stream `from` with one message of HDR10+ before each picture.
fn with_hdr10_plus(from: &[u8]) -> Vec<u8> {
    let payload = hdr10_plus();
    let message = [&[4, payload.len() as u8], &payload[..], &[0x80]].concat();
    let mut unit = vec![0, 0, 0, 1, 39 << 1, 1];
    let mut zeros = 0;
    for byte in message {
        if zeros >= 2 && byte < 4 {
            unit.push(3);
            zeros = 0;
        }
        unit.push(byte);
        zeros = if byte == 0 { zeros + 1 } else { 0 };
    }
    let starts: Vec<usize> = (0..from.len() - 3)
        .filter(|&at| from[at..at + 3] == [0, 0, 1])
        .collect();
    let mut out = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        if from[start + 3] >> 1 < 32 && from[start + 5] & 0x80 != 0 {
            out.extend_from_slice(&unit);
        }
        let end = starts.get(index + 1).copied().unwrap_or(from.len());
        out.extend_from_slice(&from[start..end]);
    }
    out
}

#[test]
fn dynamic_hdr_is_named_where_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let options = format!("-pix_fmt yuv420p10le {PQ} -c:v libx265 -x265-params log-level=error -f hevc");
    let plain = clip(
        folder.path(),
        "plain.hevc",
        "testsrc2=s=64x64:r=25:d=0.4",
        &options,
    );
    let input = folder.path().join("in.hevc");
    std::fs::write(&input, with_hdr10_plus(&std::fs::read(&plain).unwrap())).unwrap();
    assert!(has_block(&probe(&input), "2094-40"));
    for name in ["out.mkv", "out.mp4", "out_%d.png", "out.y4m"] {
        let out = folder.path().join(name);
        let said = warnings(&filtered(&input, &out, ""));
        assert_eq!(said.matches("HDR10+").count(), 1, "{name}: {said}");
    }
    let refused = filter(&input, &folder.path().join("strict.mkv"), "--strict");
    assert_eq!(refused.status.code(), Some(1));
    // PQ in pictures that everybody takes for sRGB.
    let said = warnings(&filtered(&plain, &folder.path().join("pq_%d.png"), ""));
    assert!(said.contains("smpte2084") && said.contains("bt2020"), "{said}");
}

/// An element of EBML with a size of four bytes.
fn ebml(id: u32, parts: &[&[u8]]) -> Vec<u8> {
    let id = id.to_be_bytes();
    let content = parts.concat();
    let size = (content.len() as u32 | 0x1000_0000).to_be_bytes();
    let begin = id.iter().position(|&byte| byte != 0).unwrap();
    [&id[begin..], &size, &content].concat()
}

/// The pictures of VP9 of an IVF file in Matroska, each with `addition` of that ID beside it.
fn with_additions(ivf: &[u8], (id, addition): (u8, &[u8])) -> Vec<u8> {
    let size = [ebml(0xB0, &[&[64]]), ebml(0xBA, &[&[64]])].concat();
    let track = [
        ebml(0xD7, &[&[1]]),
        ebml(0x73C5, &[&[1]]),
        ebml(0x83, &[&[1]]),
        ebml(0x86, &[b"V_VP9"]),
        ebml(0x55EE, &[&[id]]),
        ebml(0xE0, &[&size]),
        ebml(0x41E4, &[&ebml(0x41F0, &[&[id]]), &ebml(0x41E7, &[&[id]])]),
    ];
    let mut cluster = ebml(0xE7, &[&[0]]);
    let mut at = 32;
    for number in 0_u8.. {
        let Some(length) = ivf.get(at..at + 4) else { break };
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        let packet = &ivf[at + 12..at + 12 + length];
        at += 12 + length;
        let block = ebml(0xA1, &[&[0x81, 0, 40 * number, 0], packet]);
        let more = ebml(0xA6, &[&ebml(0xEE, &[&[id]]), &ebml(0xA5, &[addition])]);
        let reference = ebml(0xFB, &[&(-40_i16).to_be_bytes()]);
        let reference = if number > 0 { &reference[..] } else { &[] };
        cluster.extend(ebml(
            0xA0,
            &[&block, &ebml(0x9B, &[&[40]]), &ebml(0x75A1, &[&more]), reference],
        ));
    }
    let segment = [
        ebml(0x1549_A966, &[&ebml(0x2A_D7B1, &[&[0x0F, 0x42, 0x40]])]),
        ebml(0x1654_AE6B, &[&ebml(0xAE, &[&track.concat()])]),
        ebml(0x1F43_B675, &[&cluster]),
    ];
    [
        ebml(0x1A45_DFA3, &[&ebml(0x4282, &[b"matroska"])]),
        ebml(0x1853_8067, &[&segment.concat()]),
    ]
    .concat()
}

#[test]
fn what_matroska_stores_beside_pictures_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8";
    let plain = clip(
        folder.path(),
        "plain.ivf",
        "testsrc2=s=64x64:r=25:d=0.16",
        options,
    );
    let ivf = std::fs::read(&plain).unwrap();
    let input = folder.path().join("in.mkv");
    let hdr = hdr10_plus();
    for (addition, words) in [
        ((4, &hdr[..]), "HDR10+ dynamic metadata"),
        ((121, b"\x01\x20\x30\x40"), "block additions of ID 121"),
    ] {
        std::fs::write(&input, with_additions(&ivf, addition)).unwrap();
        assert_eq!(probe(&input)["frames"].as_array().unwrap().len(), 4);
        for name in ["out.mkv", "out.y4m"] {
            let said = warnings(&filtered(&input, &folder.path().join(name), ""));
            assert_eq!(said.matches(words).count(), 1, "{name}: {said}");
        }
        let out = folder.path().join("strict.mkv");
        let refused = filter(&input, &out, "--strict");
        assert_eq!(refused.status.code(), Some(1), "{words}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(words) && !out.exists());
    }
    // Alpha that no picture is marked as having is nothing to name.
    std::fs::write(&input, with_additions(&ivf, (1, b"\0"))).unwrap();
    let said = filtered(&input, &folder.path().join("out.mkv"), "");
    assert!(!said.contains("block additions"), "{said}");
}

/// Inserts `bytes` at the end of the box that `path` leads to, and lengthens the boxes around it.
fn insert_box(file: &mut Vec<u8>, path: &[(&[u8; 4], usize)], bytes: &[u8]) {
    let (mut at, mut end) = (0, file.len());
    let mut around = Vec::new();
    for (kind, head) in path {
        while &file[at + 4..at + 8] != *kind {
            at += u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
            assert!(at < end, "{kind:?}");
        }
        let length = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        around.push((at, length));
        end = at + length;
        at += head;
    }
    for (at, length) in around {
        file[at..at + 4].copy_from_slice(&((length + bytes.len()) as u32).to_be_bytes());
    }
    file.splice(end..end, bytes.iter().copied());
}

#[test]
fn dolby_vision_without_an_ordinary_base_layer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = "-pix_fmt yuv420p10le -c:v libx265 -x265-params log-level=error -tag:v hvc1";
    let plain = clip(folder.path(), "plain.mp4", "testsrc2=s=64x64:r=25:d=0.2", options);
    let entry: [(&[u8; 4], usize); 7] = [
        (b"moov", 8),
        (b"trak", 8),
        (b"mdia", 8),
        (b"minf", 8),
        (b"stbl", 8),
        (b"stsd", 16),
        (b"hvc1", 86),
    ];
    let marked = |profile: u8, compatibility: u8| {
        let mut file = std::fs::read(&plain).unwrap();
        let mut record = vec![0, 0, 0, 32];
        record.extend_from_slice(if profile < 8 { b"dvcC" } else { b"dvvC" });
        record.extend([1, 0, profile << 1, (6 << 3) | 0b101, compatibility << 4]);
        record.resize(32, 0);
        insert_box(&mut file, &entry, &record);
        let input = folder.path().join(format!("p{profile}_{compatibility}.mp4"));
        std::fs::write(&input, file).unwrap();
        assert!(has_block(&probe(&input), "DOVI"));
        input
    };
    for output in ["out.mkv", "out_%d.png"] {
        let refused = filter(&marked(5, 0), &folder.path().join(output), "");
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains("Dolby Vision of profile 5"), "{error}");
    }
    let out = folder.path().join("out.mkv");
    let said = warnings(&filtered(&marked(8, 1), &out, ""));
    assert!(said.contains("Dolby Vision"), "{said}");
    assert!(!has_block(&probe(&out), "DOVI"));
    // A clean aperture of 48x32 is named, which this FFmpeg says nothing of.
    let mut file = std::fs::read(&plain).unwrap();
    let aperture = [48_u32, 1, 32, 1, 0, 1, 0, 1].map(u32::to_be_bytes).concat();
    insert_box(
        &mut file,
        &entry,
        &[&[0, 0, 0, 40], &b"clap"[..], &aperture].concat(),
    );
    let input = folder.path().join("clap.mp4");
    std::fs::write(&input, file).unwrap();
    let said = warnings(&filtered(&input, &out, ""));
    let is_whole = probe(&out)["streams"][0]["width"] == 64;
    assert_eq!(said.contains("48x32 of its 64x64 pixels"), is_whole, "{said}");
}

/// Two transport streams end to end, the second 0.4 s later.
fn joined(folder: &TempDir, name: &str, first: &str, second: &str) -> PathBuf {
    let picture = "testsrc2=s=64x64:r=25:d=0.4";
    let head = clip(folder.path(), "head.ts", picture, &format!("{first} -f mpegts"));
    let tail = clip(
        folder.path(),
        "tail.ts",
        picture,
        &format!("{second} -output_ts_offset 0.4 -f mpegts"),
    );
    let path = folder.path().join(name);
    let both = [std::fs::read(head).unwrap(), std::fs::read(tail).unwrap()].concat();
    std::fs::write(&path, both).unwrap();
    path
}

#[test]
fn a_change_of_range_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let x264 =
        "-color_primaries bt709 -color_trc bt709 -colorspace bt709 -c:v libx264 -preset ultrafast -qp 4";
    let input = joined(
        &folder,
        "in.ts",
        &format!("-pix_fmt yuv420p -color_range tv {x264}"),
        &format!("-vf scale=out_range=full -pix_fmt yuvj420p -color_range pc {x264}"),
    );
    for name in ["out.mkv", "out.y4m"] {
        let out = folder.path().join(name);
        let said = filtered(
            &input,
            &out,
            if name == "out.mkv" { "--encoder ffv1" } else { "" },
        );
        assert!(
            said.contains("10 frames brought from full to limited range"),
            "{said}"
        );
        let frames = ffmpeg(&[
            "-i",
            out.to_str().unwrap(),
            "-pix_fmt",
            "rgb24",
            "-f",
            "rawvideo",
            "-",
        ]);
        let size = 64 * 64 * 3;
        assert_eq!(frames.len(), 20 * size);
        // The two halves show the same video.
        for at in 0..10 {
            let (a, b) = (&frames[at * size..][..size], &frames[(at + 10) * size..][..size]);
            let sum: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
            assert!(sum < 4 * size as u64, "{name} frame {at}: {}", sum / size as u64);
        }
    }
}

#[test]
fn other_changes_are_named_with_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let mpeg2 = "-c:v mpeg2video";
    let aspects = joined(
        &folder,
        "aspect.ts",
        &format!("-vf setsar=1 {mpeg2}"),
        &format!("-vf setsar=4/3 {mpeg2}"),
    );
    let fields = joined(
        &folder,
        "fields.ts",
        &format!("-vf setsar=1 {mpeg2}"),
        &format!("-vf setfield=tff {mpeg2} -flags +ildct+ilme"),
    );
    let x264 = "-c:v libx264 -preset ultrafast";
    let tags = joined(
        &folder,
        "tags.ts",
        &format!("{SDR} {x264}"),
        &format!("{PQ} {x264}"),
    );
    for (input, words) in [
        (&aspects, vec!["10 frames with pixel aspect 4:3 instead of 1:1"]),
        (
            &fields,
            vec!["10 frames with field order top field first instead of progressive"],
        ),
        (
            &tags,
            vec![
                "transfer smpte2084 instead of bt709",
                "matrix bt2020nc instead of bt709",
            ],
        ),
    ] {
        for name in ["out.mp4", "out.y4m", "raw:out.yuv"] {
            let out = match name.strip_prefix("raw:") {
                Some(name) => PathBuf::from(format!("raw:{}", folder.path().join(name).display())),
                None => folder.path().join(name),
            };
            let said = warnings(&filtered(input, &out, ""));
            for word in &words {
                assert!(said.contains(word), "{} {name}: {said}", input.display());
            }
            assert!(said.contains(" s on, "), "{said}");
        }
        let refused = filter(input, &folder.path().join("strict.mp4"), "--strict");
        assert_eq!(refused.status.code(), Some(1), "{}", input.display());
    }
    // Stills say each for itself what they say.
    let said = warnings(&filtered(&tags, &folder.path().join("still_%d.png"), ""));
    assert!(!said.contains("instead of"), "{said}");
}

/// Which numbers H.264's messages on the timing of pictures have for the order of fields, each once.
fn picture_structures(path: &Path) -> Vec<String> {
    let done = Command::new("ffmpeg")
        .args(["-nostdin", "-i", path.to_str().unwrap(), "-c", "copy"])
        .args(["-bsf:v", "trace_headers", "-f", "null", "-"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let lines = said.lines().filter(|line| line.contains(" pic_struct "));
    let mut found: Vec<String> = lines
        .filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn a_field_order_that_only_the_container_states_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let picture = "testsrc2=s=64x64:r=25:d=0.2";
    for encoder in ["utvideo", "huffyuv", "ffvhuff", "magicyuv"] {
        for order in ["tt", "bb"] {
            let first = if order == "tt" { "tff" } else { "bff" };
            let options = format!("-vf setfield={first} -c:v {encoder} -field_order {order}");
            let input = clip(folder.path(), "in.mkv", picture, &options);
            // FFmpeg 7 and newer write tb for tt, and bt for bb, whatever the option says.
            let written = probe(&input);
            let stated = field_order(&written);
            assert_ne!(stated, "progressive");
            for output in ["ffv1", "libx264", encoder] {
                let out = folder.path().join("out.mkv");
                let said = filtered(&input, &out, &format!("--encoder {output}"));
                let found = probe(&out);
                assert_eq!(field_order(&found), stated, "{encoder} to {output}: {said}");
                // H.264's pictures say it themselves, and nothing of the lines' order.
                if output == "libx264" && encoder == "utvideo" {
                    // 3: top field, bottom field; 4: bottom field, top field.
                    let structure = if stated == "tt" { "3" } else { "4" };
                    assert_eq!(picture_structures(&out), [structure], "{order}: {said}");
                }
                if output != "libx264" {
                    let order = |probed: &Value| value(probed, "field_order");
                    assert_eq!(order(&found), order(&written), "{encoder} to {output}: {said}");
                }
                assert_eq!(warnings(&said), "");
            }
        }
    }
}

#[test]
fn a_field_order_that_vp9_and_its_kin_cannot_say_is_the_containers() {
    let folder = tempfile::tempdir().unwrap();
    let fast = "-deadline realtime -cpu-used 8";
    for (encoder, fast, name, order, output) in [
        ("libvpx", fast, "in.mkv", "tt", "libx264"),
        ("libvpx-vp9", fast, "in.mp4", "bb", "libvpx-vp9"),
        (
            "libaom-av1",
            "-usage realtime -cpu-used 8",
            "in.mkv",
            "tt",
            "ffv1",
        ),
    ] {
        let first = if order == "tt" { "tff" } else { "bff" };
        let options = format!("-vf setfield={first} -c:v {encoder} {fast} -field_order {order}");
        let input = clip(folder.path(), name, "testsrc2=s=64x64:r=25:d=0.08", &options);
        assert_eq!(field_order(&probe(&input)), order);
        let out = folder.path().join("out.mkv");
        let said = filtered(&input, &out, &format!("--encoder {output}"));
        assert_eq!(field_order(&probe(&out)), order, "{encoder} to {output}: {said}");
        assert_eq!(warnings(&said), "");
    }
}

#[test]
fn ycgco_becomes_rgb_by_its_own_formula() {
    let folder = tempfile::tempdir().unwrap();
    for (y, cg, co, right) in [
        (128_u8, 255_u8, 128_u8, [1_u8, 255, 1]),
        (100, 90, 150, [160, 62, 116]),
        (128, 128, 128, [128; 3]),
    ] {
        let raw = folder.path().join("yc");
        let planes = [vec![y; 4096], vec![cg; 4096], vec![co; 4096]].concat();
        std::fs::write(&raw, planes).unwrap();
        let input = folder.path().join("in.mkv");
        let head = words("-f rawvideo -pix_fmt yuv444p -s 64x64 -i");
        let tail =
            words("-vf setparams=colorspace=ycgco:range=pc -colorspace ycgco -color_range pc -c:v ffv1");
        let (raw, to) = (raw.to_str().unwrap(), input.to_str().unwrap());
        ffmpeg(&[&head[..], &[raw], &tail[..], &[to]].concat());
        for (name, options) in [("out.png", ""), ("out.avi", "--encoder ffv1 --pixel-format bgra")] {
            let out = folder.path().join(name);
            filtered(&input, &out, options);
            assert_eq!(rgb(&out)[..3], right, "{name}");
        }
    }
    let options = "-vf setparams=colorspace=ictcp -colorspace ictcp -c:v ffv1";
    let input = clip(folder.path(), "ictcp.mkv", "testsrc2=s=64x64:r=25:d=0.1", options);
    for name in ["no_%d.png", "no.gif"] {
        let refused = filter(&input, &folder.path().join(name), "");
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains("matrix ictcp"), "{error}");
    }
    let said = filtered(&input, &folder.path().join("yes.mkv"), "--encoder ffv1");
    assert_eq!(
        value(&probe(&folder.path().join("yes.mkv")), "color_space"),
        "ictcp",
        "{said}"
    );
}

#[test]
fn captions_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let plain = clip(
        folder.path(),
        "plain.m2v",
        "testsrc2=s=64x64:r=25:d=0.2",
        "-c:v mpeg2video -bf 0",
    );
    // A caption in the user data before each picture's first slice.
    let bytes = std::fs::read(&plain).unwrap();
    let caption = [
        0, 0, 1, 0xB2, b'G', b'A', b'9', b'4', 3, 0x41, 0xFF, 0xFC, 0x94, 0x20, 0xFF,
    ];
    let mut marked = Vec::new();
    for at in 0..bytes.len() {
        if bytes[at..].starts_with(&[0, 0, 1, 1]) {
            marked.extend_from_slice(&caption);
        }
        marked.push(bytes[at]);
    }
    let input = folder.path().join("in.m2v");
    std::fs::write(&input, marked).unwrap();
    assert!(has_block(&probe(&input), "Closed Captions"));
    for (encoder, end) in [
        ("libx264", "mkv"),
        ("libx265", "mkv"),
        ("mpeg2video", "ts"),
        ("mpeg4", "avi"),
        ("ffv1", "mkv"),
    ] {
        let out = folder.path().join(format!("{encoder}.{end}"));
        let said = filtered(&input, &out, &format!("--encoder {encoder}"));
        assert_accounted(&input, &out, &said);
        // What has failed is not advised.
        assert!(!said.contains("such as libx265"), "{said}");
    }
    // User data of H.264 is no encoder's own word, unless an encoder's UUID is in front of it.
    let named = "H.26[45] User Data Unregistered SEI message";
    let drone = "086f3693-b7b3-4f2c-9653-21492feee5b8+noon";
    for (uuid, is_named) in [
        (drone, true),
        ("dc45e9bd-e6d9-48b7-962c-d820d923eeef+x264", false),
    ] {
        let options = format!("-c:v libx264 -bsf:v h264_metadata=sei_user_data={uuid}");
        let input = clip(
            folder.path(),
            "user.mp4",
            "testsrc2=s=64x64:r=25:d=0.08",
            &options,
        );
        assert!(has_block(&probe(&input), named), "{uuid}");
        let out = folder.path().join("user.mkv");
        let said = filtered(&input, &out, "");
        assert_eq!(warnings(&said).contains(named), is_named, "{uuid}: {said}");
        assert_eq!(
            filter(&input, &out, "--strict").status.success(),
            !is_named,
            "{uuid}"
        );
    }
}

/// A picture of one colour keeps it through encoders that state a matrix of their own, or that is named.
/// Behind the start of a group of pictures there are 25 bits, whose first says that numbers are dropped.
#[test]
fn the_time_code_of_a_group_of_pictures_is_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let code = |path: &Path| -> Option<[u8; 4]> {
        let bytes = std::fs::read(path).unwrap();
        let at = bytes.windows(4).position(|word| word == [0, 0, 1, 0xB8])?;
        bytes[at + 4..at + 8].try_into().ok()
    };
    for (rate, text) in [("30000/1001", "01:00:00;02"), ("25", "10:11:12:13")] {
        let picture = format!("testsrc2=s=64x48:r={rate}:d=0.3");
        let options = format!("-c:v mpeg2video -gop_timecode {text}");
        let input = clip(folder.path(), "in.m2v", &picture, &options);
        assert_eq!(
            code(&input).map(|code| code[0] >> 7),
            Some(u8::from(text.contains(';')))
        );
        for end in ["mxf", "m2v", "mkv"] {
            let out = folder.path().join(format!("out.{end}"));
            filtered(&input, &out, "--encoder mpeg2video --strict");
            assert_eq!(code(&out), code(&input), "{end}, {text}");
        }
        let said = filtered(&input, &folder.path().join("out.mkv"), "--encoder ffv1");
        assert!(
            warnings(&said).contains(&format!("GOP time code ({text})")),
            "{said}"
        );
    }
}

#[test]
fn a_matrix_that_an_encoder_states_unasked_is_not_taken_for_the_pictures() {
    let folder = tempfile::tempdir().unwrap();
    // Untagged: BT.601 below 720 rows, BT.709 from there on.
    let small = clip(
        folder.path(),
        "small.mkv",
        "color=red:s=64x64:d=0.04",
        "-vf scale=out_color_matrix=bt601 -pix_fmt yuv420p -c:v ffv1",
    );
    let large = clip(
        folder.path(),
        "large.mkv",
        "color=lime:s=64x720:d=0.04",
        "-vf scale=out_color_matrix=bt709 -pix_fmt yuv420p -c:v ffv1",
    );
    for (input, encoder, colour, warns) in [
        (&small, "vc2", [255, 0, 0], true),
        (&small, "utvideo", [255, 0, 0], false),
        (&large, "vc2", [0, 255, 0], false),
        (&large, "utvideo", [0, 255, 0], false),
        (&large, "mjpeg", [0, 255, 0], true),
        (&large, "speedhq", [0, 255, 0], true),
    ] {
        let out = folder.path().join("out.mkv");
        let said = warnings(&filtered(input, &out, &format!("--encoder {encoder}")));
        let found = rgb(&out);
        let is_kept = found.iter().zip(colour).all(|(a, b)| a.abs_diff(b) < 8);
        assert_eq!(said.contains(": matrix ("), warns, "{encoder}: {said}");
        assert_eq!(is_kept, !warns, "{encoder}: {:?}", &found[..3]);
        let strict = filter(input, &out, &format!("--encoder {encoder} --strict"));
        assert_eq!(strict.status.success(), !warns, "{encoder}");
    }
}

/// What is left out or cannot be read back is named, and an error of a strict run, which leaves nothing
/// behind.
#[test]
fn losses_that_only_the_finished_file_shows_end_a_strict_run() {
    let folder = tempfile::tempdir().unwrap();
    let plain = clip(
        folder.path(),
        "plain.mkv",
        "testsrc2=s=64x64:r=25:d=0.2",
        "-pix_fmt yuv420p -c:v ffv1",
    );
    let texts = clip(
        folder.path(),
        "texts.mkv",
        "testsrc2=s=64x64:r=25:d=0.2",
        "-pix_fmt yuv420p -c:v ffv1 -metadata colour_of_the_sky=blue",
    );
    let sound = folder.path().join("sound.mkv");
    ffmpeg(
        &[
            &[
                "-i",
                plain.to_str().unwrap(),
                "-f",
                "lavfi",
                "-i",
                "sine=r=48000:d=1",
            ][..],
            &["-c:v", "copy", "-c:a", "pcm_s16le", sound.to_str().unwrap()],
        ]
        .concat(),
    );
    for (input, name, options, word) in [
        (&plain, "raw.mov", "--encoder rawvideo", "cannot decode"),
        (&texts, "texts.avi", "", "COLOUR_OF_THE_SKY"),
        (&sound, "tail.mxf", "", "after the last picture"),
    ] {
        let out = folder.path().join(name);
        let said = warnings(&filtered(input, &out, options));
        assert!(said.contains(word), "{name}: {said}");
        std::fs::remove_file(&out).unwrap();
        let refused = filter(input, &out, &format!("{options} --strict"));
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{name}: {error}");
        assert!(error.contains(word) && !out.exists(), "{name}: {error}");
    }
}

/// Bare samples whose form the container does not name are read in another one: that is named, and only that.
#[test]
fn samples_that_are_read_in_another_form_are_named() {
    let folder = tempfile::tempdir().unwrap();
    // The first frame as FFmpeg reads it, in RGB.
    let rgb = |path: &Path| {
        let options = ["-frames:v", "1", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"];
        let done = Command::new("ffmpeg")
            .args(["-v", "error", "-i"])
            .arg(path)
            .args(options)
            .output()
            .unwrap();
        done.stdout
    };
    let formats = [
        "yuv420p",
        "yuv444p",
        "nv24",
        "gray",
        "gray16le",
        "p010le",
        "bgr24",
        "gbrp",
        "yuv440p10le",
    ];
    for (turn, format) in formats.into_iter().enumerate() {
        let picture = "testsrc2=s=66x50:r=25:d=0.2";
        // Formats that FFV1 lacks, from one with the same samples.
        let near = match format {
            "nv24" => "yuv444p",
            "p010le" => "yuv420p10le",
            own => own,
        };
        let options = format!("-pix_fmt {near} -strict -1 -c:v ffv1");
        let input = clip(folder.path(), "in.mkv", picture, &options);
        let truth = rgb(&input);
        let ends = ["avi", "mov", "nut"].into_iter().enumerate();
        // Two of three in turn, or with FRAMEPIPE_WHOLE_MATRIX=1 all.
        for (_, end) in ends.filter(|(at, _)| is_whole_matrix() || at % 3 != turn % 3) {
            let output = folder.path().join(format!("out.{end}"));
            let options = format!("--encoder rawvideo --pixel-format {format}");
            let said = warnings(&filtered(&input, &output, &options));
            let back = rgb(&output);
            let sum: u64 = truth
                .iter()
                .zip(&back)
                .map(|(a, b)| u64::from(a.abs_diff(*b)))
                .sum();
            let is_other = back.len() != truth.len() || sum / truth.len() as u64 > 8;
            let is_named = said.contains("does not say how") || said.contains("cannot decode");
            assert_eq!(is_other, is_named, "{format} in {end}: {said}");
            if !is_other {
                continue;
            }
            std::fs::remove_file(&output).unwrap();
            let strict = filter(&input, &output, &format!("{options} --strict"));
            assert!(!strict.status.success() && !output.exists(), "{format} in {end}");
        }
    }
    // FFmpeg's encoder of JPEG 2000 takes 16 bits and gets them wrong.
    for format in ["gbrp10le", "gray16le"] {
        let options = format!("-pix_fmt {format} -c:v ffv1");
        let input = clip(folder.path(), "in.mkv", "testsrc2=s=66x50:r=25:d=0.2", &options);
        let output = folder.path().join("out.mov");
        filtered(&input, &output, "--encoder jpeg2000");
        let (truth, back) = (rgb(&input), rgb(&output));
        let off = truth
            .iter()
            .zip(&back)
            .map(|(a, b)| u64::from(a.abs_diff(*b)))
            .sum::<u64>();
        assert!(
            back.len() == truth.len() && off / truth.len() as u64 <= 8,
            "{format}: {off}"
        );
    }
}

/// The rate that ffprobe finds stated of the first stream of video, and when its frames are shown.
fn frames_by_ffprobe(path: &Path) -> (String, Vec<String>) {
    let probed = probe(path);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rate = text(&probed["streams"][0]["r_frame_rate"]);
    let frames = probed["frames"].as_array().cloned().unwrap_or_default();
    let times = frames
        .iter()
        .map(|frame| text(&frame["best_effort_timestamp_time"]));
    (rate, times.collect())
}

/// A file that no reader knows for video is refused, for a plan and a trial, too; other rates, times and
/// numbers of frames than were given are named.
#[test]
fn what_readers_take_for_something_else_is_refused_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let picture = "testsrc2=s=64x48:r=25:d=0.4";
    let plain = clip(
        folder.path(),
        "in.mp4",
        picture,
        "-pix_fmt yuv420p -c:v libx264 -bf 0",
    );
    let stderr = |done: Output| String::from_utf8(done.stderr).unwrap();
    for (name, options) in [
        ("out.ts", "--encoder ffv1"),
        ("out.mpg", "--encoder mjpeg --dry-run"),
        ("out.mkv", "--encoder gif"),
    ] {
        let done = filter(&plain, &at(name), options);
        assert_eq!(done.status.code(), Some(1), "{name}");
        assert!(stderr(done).contains("encoder") && !at(name).exists(), "{name}");
    }
    let plan = Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .arg("plan")
        .args([&plain, &at("out.ts"), &at("job")])
        .args(["--filter", "identity", "--encoder", "ffv1", "--parts", "2"])
        .output()
        .unwrap();
    let said = stderr(plan);
    assert!(said.contains("mpegts cannot hold ffv1"), "{said}");
    // What comes back as another codec shows another picture, or none.
    let said = warnings(&filtered(&plain, &at("out.rm"), "--encoder msmpeg4"));
    assert!(said.contains("reads it as rv20"), "{said}");
    // The clock of MP4 is not the rate.
    filtered(&plain, &at("out.h264"), "--strict");
    assert_eq!(frames_by_ffprobe(&at("out.h264")).0, "25/1");
    // JPEG pictures one after another are read at 25 frames a second.
    let fast = clip(
        folder.path(),
        "fast.mkv",
        "testsrc2=s=64x48:r=60:d=0.1",
        "-c:v ffv1",
    );
    let said = warnings(&filtered(&fast, &at("fast.mjpeg"), ""));
    assert!(
        said.contains("mjpeg does not say the rate of 60 frames/s"),
        "{said}"
    );
    assert_eq!(frames_by_ffprobe(&at("fast.mjpeg")).0, "25/1");
    assert_eq!(
        filter(&fast, &at("fast.mjpeg"), "--strict").status.code(),
        Some(1)
    );
    for name in ["fast.m2v", "fast.m4v"] {
        let said = warnings(&filtered(&fast, &at(name), ""));
        assert!(!said.contains("rate"), "{name}: {said}");
    }
    // MXF does not note when reordered pictures of H.264 are shown.
    filtered(&plain, &at("out.mxf"), "--encoder libx264 --strict");
    let times: Vec<String> = (0..10).map(|n| format!("{:.6}", f64::from(n) * 0.04)).collect();
    assert_eq!(frames_by_ffprobe(&at("out.mxf")).1, times);
    let options = "--encoder libx264 --encoder-option bf=2";
    let said = warnings(&filtered(&plain, &at("out.mxf"), options));
    assert!(said.contains("mxf does not say when"), "{said}");
    assert_ne!(frames_by_ffprobe(&at("out.mxf")).1, times);
    // All its frames are there nevertheless.
    filtered(&at("out.mxf"), Path::new("null:"), "--strict");
    let still = clip(
        folder.path(),
        "still.mkv",
        "color=gray:s=64x48:r=25:d=0.4",
        "-c:v ffv1",
    );
    filtered(&still, &at("still.mov"), "--encoder gif --strict");
    assert_eq!(frames_by_ffprobe(&at("still.mov")).1.len(), 10);
    // Theora leaves out pictures that stay.
    let said = warnings(&filtered(&still, &at("still.ogv"), ""));
    let left = 10 - frames_by_ffprobe(&at("still.ogv")).1.len();
    assert!(
        left > 0 && said.contains(&format!("leaves out {left} of 10 frames")),
        "{said}"
    );
}
