//! `framepipe diff` against FFmpeg's filters `psnr` and `ssim`, and on what they do not take: inputs that are
//! equal, that differ in one sample, in size, in format, in length.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod inputs;
mod interrupts;

use common::{ffmpeg, framepipe, text};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

/// A temporary folder and the names in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn name(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

/// Raw frames of one format and size.
#[derive(Clone, Copy)]
struct Raw {
    format: &'static str,
    width: usize,
    height: usize,
    /// Bits of a sample.
    depth: u32,
    frames: usize,
}

impl Raw {
    fn size(&self) -> String {
        format!("{}x{}", self.width, self.height)
    }

    /// The name of such a file for framepipe.
    fn named(&self, path: &str) -> String {
        format!("raw:{}:{}:25:{path}", self.size(), self.format)
    }

    /// Moving test pictures, as FFmpeg makes them.
    fn pictures(&self) -> Vec<u8> {
        let source = format!(
            "testsrc=size=320x240:rate=25,scale={}:{}",
            self.width, self.height
        );
        let frames = self.frames.to_string();
        let made = ["-f", "lavfi", "-i", &source, "-frames:v", &frames];
        ffmpeg(&[&made[..], &["-pix_fmt", self.format, "-f", "rawvideo", "-"]].concat())
    }

    /// What FFmpeg's filter prints of two files: a name and a number each, such as ("y", "33.10").
    fn filtered(&self, filter: &str, a: &str, b: &str) -> Vec<(String, String)> {
        let size = self.size();
        let input = [
            "-f",
            "rawvideo",
            "-pixel_format",
            self.format,
            "-video_size",
            &size,
            "-i",
        ];
        let output = Command::new("ffmpeg")
            // Its vector code computes another SSIM for some widths, such as 72.
            .args(["-nostdin", "-hide_banner", "-cpuflags", "0"])
            .args(input)
            .arg(a)
            .args(input)
            .arg(b)
            .args(["-lavfi", filter, "-f", "null", "-"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let start = format!("] {} ", filter.to_uppercase());
        let line = said
            .lines()
            .find_map(|line| line.split_once(&start))
            .expect(&said)
            .1;
        let words = line.split_whitespace().filter_map(|word| word.split_once(':'));
        words
            .map(|(name, number)| (name.to_lowercase(), number.to_owned()))
            .collect()
    }
}

/// Changes some samples of some frames by a few levels, within the depth.
fn damaged(raw: &Raw, mut bytes: Vec<u8>) -> Vec<u8> {
    let max = (1_u32 << raw.depth) - 1;
    let word = if raw.depth > 8 { 2 } else { 1 };
    let frame = bytes.len() / raw.frames;
    let mut state = 12345_u32;
    for (at, sample) in bytes.chunks_exact_mut(word).enumerate() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The first frame stays whole, later ones are damaged more and more.
        let index = at * word / frame;
        if index == 0 || (state >> 20) % 7 >= index as u32 {
            continue;
        }
        let mut value = u32::from(sample[0]);
        if word == 2 {
            value |= u32::from(sample[1]) << 8;
        }
        let moved = (value + (state >> 8) % 23).min(max);
        sample.copy_from_slice(&moved.to_le_bytes()[..word]);
    }
    bytes
}

fn command(arguments: &[&str]) -> Command {
    framepipe(&[&["diff"], arguments].concat())
}

fn diff(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// The JSON of a comparison that must end with this exit code.
fn json(code: i32, arguments: &[&str]) -> Value {
    let output = diff(&[arguments, &["--json"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The text of a comparison that must end with this exit code.
fn said(code: i32, arguments: &[&str]) -> String {
    let output = diff(arguments);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The error of a comparison that cannot be.
fn refused(arguments: &[&str], word: &str) {
    let output = diff(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(
        said.contains(word) && said.contains("error:"),
        "{arguments:?}: {said}"
    );
}

fn component<'a>(json: &'a Value, name: &str) -> &'a Value {
    let components = json["components"].as_array().unwrap();
    components
        .iter()
        .find(|c| c["component"] == name)
        .unwrap_or_else(|| panic!("{name}: {json}"))
}

#[test]
fn psnr_and_ssim_are_those_of_ffmpegs_filters() {
    let folder = Folder::new();
    let raw = |format, depth, width, height| Raw {
        format,
        width,
        height,
        depth,
        frames: 5,
    };
    for raw in [
        raw("gray", 8, 64, 48),
        raw("gray", 8, 67, 45),
        raw("gray", 8, 72, 45),
        raw("yuv420p", 8, 67, 45),
        raw("yuv420p", 8, 160, 90),
        raw("yuv444p10le", 10, 67, 45),
        raw("yuv422p12le", 12, 68, 33),
        raw("yuv420p16le", 16, 31, 29),
        raw("gbrp", 8, 67, 45),
        raw("rgb24", 8, 67, 45),
        raw("gbrp10le", 10, 19, 16),
    ] {
        let (a, b) = (folder.name("a.raw"), folder.name("b.raw"));
        let pictures = raw.pictures();
        fs::write(&a, &pictures).unwrap();
        fs::write(&b, damaged(&raw, pictures)).unwrap();
        let ours = json(1, &[&raw.named(&a), &raw.named(&b)]);
        let what = format!("{} {}", raw.format, raw.size());
        assert_eq!(
            (&ours["frames"], &ours["frames_differing"]),
            (&5.into(), &4.into()),
            "{what}"
        );
        let theirs = raw.filtered("psnr", &a, &b);
        assert!(theirs.len() >= 4, "{theirs:?}");
        for (name, number) in theirs {
            let psnr = match &name[..] {
                "average" => &ours["all"]["psnr"],
                "min" => &ours["worst"]["psnr"],
                // The first frame is whole.
                "max" => {
                    assert_eq!(number, "inf");
                    continue;
                }
                name => &component(&ours, name)["psnr"],
            };
            is_close(&what, &name, psnr, &number);
        }
        let theirs = raw.filtered("ssim", &a, &b);
        assert!(theirs.len() >= 2, "{theirs:?}");
        for (name, number) in theirs {
            let ssim = match &name[..] {
                "all" => &ours["all"]["ssim"],
                name => &component(&ours, name)["ssim"],
            };
            is_close(&what, &name, ssim, &number);
        }
    }
}

/// Compares with a number that FFmpeg printed with six digits after the point; its SSIM are sums of single
/// precision.
fn is_close(what: &str, name: &str, ours: &Value, theirs: &str) {
    assert_eq!(theirs.split_once('.').unwrap().1.len(), 6, "{theirs}");
    let (ours, theirs): (f64, f64) = (ours.as_f64().unwrap(), theirs.parse().unwrap());
    assert!(
        (ours - theirs).abs() < 1.01e-6,
        "{what} {name}: {ours} and {theirs}"
    );
}

#[test]
fn one_sample_is_found_at_its_place_in_a_video() {
    let folder = Folder::new();
    let raw = Raw {
        format: "yuv420p",
        width: 67,
        height: 45,
        depth: 8,
        frames: 6,
    };
    let mut bytes = raw.pictures();
    let (a, b) = (folder.name("a.mkv"), folder.name("b.raw"));
    let whole = folder.name("whole.raw");
    fs::write(&whole, &bytes).unwrap();
    let size = raw.size();
    let input = [
        "-f",
        "rawvideo",
        "-pixel_format",
        raw.format,
        "-video_size",
        &size,
    ];
    ffmpeg(&[&input[..], &["-i", &whole, "-c:v", "ffv1", &a]].concat());
    // v of frame 4, column 20, row 11: planes of 34x23.
    let (frame, luma, chroma) = (bytes.len() / 6, 67 * 45, 34 * 23);
    let at = 4 * frame + luma + chroma + 11 * 34 + 20;
    let before = bytes[at];
    bytes[at] ^= 0x81;
    fs::write(&b, &bytes).unwrap();
    // A video beside raw frames.
    let equal = said(0, &[&a, &raw.named(&whole)]);
    assert!(equal.contains("are equal: 6 frames"), "{equal}");
    let found = json(1, &[&a, &raw.named(&b)]);
    let first = &found["first"];
    assert_eq!((&first["frame"], &first["component"]), (&4.into(), &"v".into()));
    assert_eq!((&first["x"], &first["y"]), (&20.into(), &11.into()));
    assert_eq!(
        (&first["a"], &first["b"]),
        (&before.into(), &(before ^ 0x81).into())
    );
    assert_eq!(found["all"]["samples_differing"], 1);
    assert_eq!(found["all"]["largest"], before.abs_diff(before ^ 0x81));
    assert_eq!(
        (&found["worst"]["frame"], &found["frames_differing"]),
        (&4.into(), &1.into())
    );
    assert!(component(&found, "y")["psnr"].is_null() && component(&found, "y")["ssim"] == 1.0);
    let shown = said(1, &[&a, &raw.named(&b)]);
    let place = format!(
        "first difference: frame 4, v at (20, 11), {before} and {}",
        before ^ 0x81
    );
    assert!(
        shown.contains("differ in 1 of 6 frames") && shown.contains(&place),
        "{shown}"
    );
    assert!(said(1, &[&a, &raw.named(&b), "-q"]).is_empty());
    refused(&[&a, &raw.named(&b), "-q", "--json"], "leave one of them out");
    let floats = "synthetic:8x4:gbrpf32le:25:1";
    refused(
        &[floats, floats],
        "(framepipe filter IN OUT.png --filter identity)",
    );
}

#[test]
fn facts_that_give_samples_their_meaning_are_compared() {
    let folder = Folder::new();
    let make = |name: &str, facts: &str| {
        let path = folder.name(name);
        let source = "testsrc2=size=32x16:rate=25,format=yuv420p";
        let input = ["-f", "lavfi", "-i", source, "-frames:v", "2"];
        let filter = if facts.is_empty() {
            "null".to_owned()
        } else {
            format!("setparams={facts}")
        };
        ffmpeg(&[&input[..], &["-vf", &filter, "-c:v", "ffv1", &path]].concat());
        path
    };
    let of = |matrix: &str, primaries: &str, transfer: &str| {
        format!("colorspace={matrix}:color_primaries={primaries}:color_trc={transfer}")
    };
    let plain = make("plain.mkv", "");
    let assumed = make("assumed.mkv", &of("smpte170m", "smpte170m", "bt709"));
    let high = make("high.mkv", &of("bt709", "bt709", "bt709"));
    let bright = make("bright.mkv", &of("bt2020nc", "bt2020", "smpte2084"));
    let notes = |a: &str, b: &str| json(0, &[a, b])["notes"].to_string();
    assert_eq!(notes(&plain, &assumed), "[]");
    let end = "; equal samples are not the same colours\"]";
    let begin = "[\"the facts about samples differ: ";
    let words = "matrix (bt709 and bt2020nc), primaries (bt709 and bt2020), transfer (bt709 and smpte2084)";
    assert_eq!(notes(&high, &bright), format!("{begin}{words}{end}"));
    let words = "matrix (unspecified and bt709), primaries (unspecified and bt709)";
    assert_eq!(notes(&plain, &high), format!("{begin}{words}{end}"));
}

#[test]
fn image_files_that_are_not_of_one_number_are_named() {
    let folder = Folder::new();
    let [all, some] = ["all", "some"].map(|name| folder.name(name));
    for name in [&all, &some] {
        fs::create_dir(name).unwrap();
    }
    let source = ["-f", "lavfi", "-i", "color=size=16x16", "-frames:v", "4"];
    ffmpeg(&[&source[..], &["-start_number", "8", &format!("{all}/f%d.png")]].concat());
    for (number, other) in [(8, 108), (9, 109), (11, 111)] {
        fs::copy(format!("{all}/f{number}.png"), format!("{some}/g{other}.png")).unwrap();
    }
    let warnings = |b: &str| json(1, &[&all, b])["warnings"].to_string();
    let found = warnings(&some);
    assert!(
        found.contains("frame 2 compares") && found.contains("f10.png with"),
        "{found}"
    );
    fs::rename(format!("{some}/g111.png"), format!("{some}/g110.png")).unwrap();
    assert_eq!(warnings(&some), "[]");
}

#[test]
fn other_sizes_formats_and_lengths_differ_and_say_what_was_compared() {
    let mismatch = |code: i32, a: &str, b: &str| {
        let found = json(code, &[a, b]);
        assert_eq!(found["equal"], false);
        found["mismatches"][0].as_str().unwrap().to_owned()
    };
    let spec = |size: &str, format: &str, frames: u32| format!("synthetic:{size}:{format}:25:{frames}");
    let sizes = mismatch(2, &spec("64x48", "gray", 3), &spec("64x50", "gray", 3));
    assert_eq!(
        sizes,
        "the sizes differ: 64x48 and 64x50; no component can be compared"
    );
    let formats = mismatch(1, &spec("64x48", "yuv420p", 3), &spec("64x48", "yuv444p", 3));
    assert_eq!(
        formats,
        "the pixel formats differ: yuv420p and yuv444p; y was compared"
    );
    // The same components in another order are compared, and equal.
    let folder = Folder::new();
    let (packed, planar) = (folder.name("packed.mkv"), folder.name("planar.mkv"));
    let source = ["-f", "lavfi", "-i", "testsrc2=s=16x16", "-frames:v", "2"];
    ffmpeg(&[&source[..], &["-c:v", "utvideo", "-pix_fmt", "gbrp", &planar]].concat());
    ffmpeg(&["-i", &planar, "-c:v", "png", "-pix_fmt", "rgb24", &packed]);
    let same = json(0, &[&packed, &planar]);
    assert_eq!(
        (&same["equal"], &same["mismatches"]),
        (&true.into(), &Value::Array(Vec::new()))
    );
    assert!(
        same["notes"].to_string().contains("stored in other orders"),
        "{same}"
    );
    let depths = mismatch(2, &spec("64x48", "gray", 3), &spec("64x48", "gray10le", 3));
    assert!(depths.ends_with("no component can be compared"), "{depths}");
    // Where the text of the comparison has the reason, the error does not repeat it.
    let unlike = [spec("64x48", "gray", 3), spec("64x48", "gray10le", 3)];
    let [one, other] = [&unlike[0], &unlike[1]].map(String::as_str);
    for (options, on_stdout, on_stderr) in [(&[][..], 1, 0), (&["-q"], 0, 1), (&["--json"], 1, 1)] {
        let done = diff(&[&[one, other], options].concat());
        let count = |bytes: &[u8]| text(bytes).matches(&depths).count();
        assert_eq!(
            (done.status.code(), count(&done.stdout), count(&done.stderr)),
            (Some(2), on_stdout, on_stderr),
            "{options:?}"
        );
        assert!(text(&done.stderr).contains(" cannot be compared"));
    }
    let (long, short) = (spec("64x48", "gray", 5), spec("64x48", "gray", 3));
    let found = json(1, &[&long, &short]);
    assert_eq!(
        (&found["frames"], &found["frames_differing"]),
        (&3.into(), &0.into())
    );
    assert_eq!(
        (&found["a"]["frames"], &found["b"]["frames"]),
        (&Value::Null, &3.into())
    );
    assert_eq!(found["all"]["samples_differing"], 0);
    assert!(said(1, &[&short, &long]).contains("ends after 3 frames"));
    // An endless input ends with the other.
    assert!(said(1, &[&short, "synthetic:64x48:gray:25:0"]).contains("goes on"));
}

/// Makes a picture of 16x16 pixels.
fn picture(path: &str) {
    let source = ["-f", "lavfi", "-i", "testsrc2=size=16x16", "-frames:v", "1"];
    ffmpeg(&[&source[..], &[path]].concat());
}

#[test]
fn orientations_that_differ_are_named() {
    let folder = Folder::new();
    let plain = folder.name("plain.jpg");
    picture(&plain);
    let bytes = fs::read(&plain).unwrap();
    // Exif with one entry, the orientation, behind the start of the image.
    let turned = |name: &str, orientation: u8| {
        let exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0";
        let whole = [&exif[..], &[orientation], &[0; 6]].concat();
        let marker = [0xff, 0xe1, 0, whole.len() as u8 + 2];
        fs::write(
            folder.name(name),
            [&bytes[..2], &marker, &whole, &bytes[2..]].concat(),
        )
        .unwrap();
        folder.name(name)
    };
    let (six, again) = (turned("six.jpg", 6), turned("again.jpg", 6));
    let notes = |code: i32, a: &str, b: &str| json(code, &[a, b])["notes"].to_string();
    let differ = notes(0, &plain, &six);
    assert!(
        differ.contains("the orientations differ, upright and 90 degrees clockwise: samples are compared as"),
        "{differ}"
    );
    assert!(said(0, &[&six, &plain]).contains("the orientations differ, 90 degrees clockwise and upright"));
    assert_eq!(notes(0, &six, &again), "[]");
    assert_eq!(notes(0, &plain, &plain), "[]");
}

#[test]
fn times_that_differ_are_named() {
    let folder = Folder::new();
    let make = |name: &str, filter: &str| {
        let path = folder.name(name);
        let source = [
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=32x16:rate=25:duration=0.8",
            "-vf",
            filter,
        ];
        ffmpeg(&[&source[..], &["-fps_mode", "vfr", "-c:v", "ffv1", &path]].concat());
        path
    };
    let plain = make("plain.mkv", "null");
    for (name, filter, note) in [
        ("same.nut", "null", "[]"),
        (
            "fast.mkv",
            "settb=1/50,setpts=N,fps=50,trim=end_frame=20",
            "[\"the times of frames differ (25 and 50 frames/s)\"]",
        ),
        (
            "pause.mkv",
            "setpts='(N+gt(N,9)*2)/25/TB'",
            "[\"the times of frames differ, first at frame 10 (0.400 and 0.480 s)\"]",
        ),
    ] {
        let other = make(name, filter);
        let found = json(0, &[&plain, &other]);
        assert_eq!(found["notes"].to_string(), note, "{name}");
    }
}

#[test]
fn pictures_too_small_for_a_window_have_numbers_too() {
    let folder = Folder::new();
    for (width, height) in [(1, 1), (2, 3), (7, 7), (8, 1), (3, 40)] {
        let raw = Raw {
            format: "gray",
            width,
            height,
            depth: 8,
            frames: 1,
        };
        let (a, b) = (folder.name("a.raw"), folder.name("b.raw"));
        let mut bytes = vec![100_u8; width * height];
        fs::write(&a, &bytes).unwrap();
        *bytes.last_mut().unwrap() = 110;
        fs::write(&b, &bytes).unwrap();
        let found = json(1, &[&raw.named(&a), &raw.named(&b)]);
        let (psnr, ssim) = (&found["all"]["psnr"], found["all"]["ssim"].as_f64().unwrap());
        let mse = 100.0 / (width * height) as f64;
        let expected = 10.0 * (255.0 * 255.0 / mse).log10();
        assert!((psnr.as_f64().unwrap() - expected).abs() < 1e-9, "{found}");
        assert!(ssim > 0.0 && ssim < 1.0, "{width}x{height}: {ssim}");
        if (width, height) == (1, 1) {
            // Brightness alone, by the formula.
            let c1 = (0.0001_f64 * 255.0 * 255.0).round();
            let brightness = (2.0 * 100.0 * 110.0 + c1) / (100.0 * 100.0 + 110.0 * 110.0 + c1);
            assert!((ssim - brightness).abs() < 1e-12);
        }
        assert_eq!(json(0, &[&raw.named(&a), &raw.named(&a)])["all"]["ssim"], 1.0);
    }
}

#[test]
fn the_differences_are_drawn_where_they_are() {
    let folder = Folder::new();
    let (a, b) = (folder.name("a"), folder.name("b"));
    for path in [&a, &b] {
        fs::create_dir(path).unwrap();
        let source = "testsrc2=size=40x30:rate=1:duration=3";
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            source,
            "-pix_fmt",
            "rgb24",
            &format!("{path}/%02d.png"),
        ]);
    }
    // A block of another colour in the second picture.
    let (second, damaged) = (format!("{b}/02.png"), folder.name("damaged.png"));
    ffmpeg(&[
        "-i",
        &second,
        "-vf",
        "drawbox=x=8:y=6:w=5:h=4:color=white:t=fill",
        &damaged,
    ]);
    fs::rename(&damaged, &second).unwrap();
    let heat = folder.name("heat");
    assert!(said(1, &[&a, &b, "--output", &format!("{heat}/")]).contains("differ in 1 of 3 frames"));
    for name in ["01", "02", "03"] {
        let path = format!("{heat}/{name}.png");
        let pixels = ffmpeg(&["-i", &path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]);
        assert_eq!(pixels.len(), 40 * 30 * 3);
        for (at, pixel) in pixels.chunks_exact(3).enumerate() {
            let (x, y) = (at % 40, at / 40);
            let is_damaged = name == "02" && (8..13).contains(&x) && (6..10).contains(&y);
            assert_eq!(pixel != [0, 0, 0], is_damaged, "{name} ({x}, {y}): {pixel:?}");
        }
    }
    // A video, too; a file that is there is kept.
    let video = folder.name("heat.mkv");
    let arguments = [&a[..], &b, "-o", &video, "--encoder", "ffv1"];
    said(1, &arguments);
    let frames = ffmpeg(&["-i", &video, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]);
    assert_eq!(frames.len(), 3 * 40 * 30 * 3);
    refused(&arguments, "--overwrite");
}

#[test]
fn what_cannot_be_compared_has_an_exit_code_of_its_own() {
    let folder = Folder::new();
    let clip = "synthetic:16x16:gray:25:2";
    refused(&[clip], "required");
    refused(&["-", "-"], "standard input");
    refused(&[clip, &folder.name("missing.mp4")], "missing.mp4");
    refused(&[clip, clip, "--fps", "25"], "--fps");
    refused(&[clip, clip, "--stream", "0"], "--stream");
    refused(&[clip, clip, "--output", "-"], "standard output");
    let (video, floats) = (folder.name("heat.mkv"), folder.name("heat%d.exr"));
    let format = ["--pixel-format", "rgbf32"];
    refused(
        &[&[clip, clip, "--output", &video][..], &format].concat(),
        "holds no such samples",
    );
    said(0, &[&[clip, clip, "--output", &floats][..], &format].concat());
    refused(
        &[clip, clip, "--output", "null:", "--encoder", "ffv1"],
        "--encoder",
    );
    let short = folder.name("short.raw");
    fs::write(&short, [0; 100]).unwrap();
    refused(&[clip, &format!("raw:16x16:gray:25:{short}")], "short.raw");
    refused(
        &["synthetic:64x64:gray:25:2", clip, "--max-pixels", "1000"],
        "--max-pixels",
    );
    let same = folder.name("a.png");
    picture(&same);
    refused(
        &[&same, &same, "--output", &same, "--overwrite"],
        "both input and output",
    );
    assert!(said(0, &[&same, &same]).contains("are equal: 1 frame\n"));
}
