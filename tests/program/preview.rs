//! What a filter does, shown: `framepipe preview` and `filter --compare`. FFmpeg cuts the parts out of the
//! pictures, and they must be the input's and the filter's own, sample by sample.

use crate::common::{ffmpeg, said};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const BOX: &str = "box:size=5";

fn framepipe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// What a run that must succeed says.
fn done(arguments: &[&str]) -> String {
    let run = framepipe(arguments);
    assert!(run.status.success(), "{arguments:?}: {}", said(&run));
    said(&run)
}

/// Checks that a run fails with this exit code and these words.
fn refused(code: i32, arguments: &[&str], words: &str) {
    let run = framepipe(arguments);
    let said = said(&run);
    assert_eq!(run.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(words), "{arguments:?}: {said}");
}

/// A temporary folder and the names in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn name(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Four seconds of moving pictures, 100 frames.
    fn clip(&self, name: &str, options: &[&str]) -> String {
        let path = self.name(name);
        let source = ["-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=4"];
        ffmpeg(&[&source[..], options, &[&path]].concat());
        path
    }
}

/// Hashes of a part of each picture, as FFmpeg cuts it out: `across` and `down` are first pixel and number.
fn part(input: &[&str], across: (usize, usize), down: (usize, usize)) -> Vec<String> {
    let crop = format!("crop={}:{}:{}:{}:exact=1", across.1, down.1, across.0, down.0);
    let text = ffmpeg(&[input, &["-vf", &crop, "-f", "framehash", "-hash", "md5", "-"]].concat());
    let text = String::from_utf8(text).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let hashes: Vec<String> = rows
        .map(|row| row.rsplit(',').next().unwrap().trim().to_owned())
        .collect();
    assert!(!hashes.is_empty());
    hashes
}

/// Width and height of a file's pictures, as they are stored.
fn size(path: &str) -> (usize, usize) {
    let done = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-of",
            "csv=p=0",
            "-show_entries",
            "stream=width,height",
        ])
        .args(["-select_streams", "v:0", path])
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    // A matrix beside it brings another comma.
    let mut numbers = text.trim().split(',').map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Raw frames of one format and size.
struct Raw<'a> {
    format: &'a str,
    height: usize,
}

impl Raw<'_> {
    /// How FFmpeg reads a file of such frames, of another width.
    fn input(&self, path: &str, width: usize) -> Vec<String> {
        let size = format!("{width}x{}", self.height);
        let words = [
            "-f",
            "rawvideo",
            "-pixel_format",
            self.format,
            "-video_size",
            &size,
            "-i",
            path,
        ];
        words.map(str::to_owned).to_vec()
    }

    fn part(&self, path: &str, width: usize, first: usize, count: usize) -> Vec<String> {
        let input = self.input(path, width);
        let input: Vec<&str> = input.iter().map(String::as_str).collect();
        part(&input, (first, count), (0, self.height))
    }
}

#[test]
fn parts_of_compared_frames_are_the_inputs_and_the_filters_own() {
    let folder = Folder::new();
    // Format, width, the end of the part before, the begin of the part after, and the begin of the second
    // picture where both are whole.
    for (format, width, cut, after, second) in [
        ("yuv420p", 66, 32, 34, 66),
        ("yuv420p", 67, 32, 34, 68),
        ("yuv422p10le", 66, 32, 34, 66),
        ("yuv411p", 70, 32, 36, 72),
        ("nv12", 66, 32, 34, 66),
        ("nv12", 35, 16, 18, 36),
        ("p010le", 64, 30, 32, 64),
        ("yuv444p", 33, 15, 17, 33),
        ("yuva444p10le", 32, 15, 17, 32),
        ("gray", 65, 31, 33, 65),
        ("gray", 1, 0, 0, 1),
        ("gray12le", 3, 1, 1, 3),
        ("ya8", 20, 9, 11, 20),
        ("rgb24", 65, 31, 33, 65),
        ("rgba", 64, 31, 33, 64),
        ("gbrp16le", 41, 19, 21, 41),
        ("yuv420p", 1, 0, 0, 2),
        ("yuv420p", 6, 2, 2, 6),
    ] {
        let raw = Raw { format, height: 22 };
        let (input, plain) = (folder.name("in.raw"), folder.name("plain.raw"));
        // Of 8 bits FFmpeg makes p010 with bits below the samples.
        let deep = if format == "p010le" {
            ",format=yuv420p10le"
        } else {
            ""
        };
        let source = format!("testsrc2=size=320x240:rate=25,scale={width}:22{deep}");
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &source,
            "-frames:v",
            "3",
            "-pix_fmt",
            format,
            "-f",
            "rawvideo",
            &input,
        ]);
        let named = format!("raw:{width}x22:{format}:25:{input}");
        let filter = |output: &str, options: &[&str]| {
            let output = format!("raw:{output}");
            let words = ["filter", &named, &output, "--filter", BOX, "--overwrite"];
            done(&[&words[..], options].concat());
        };
        filter(&plain, &[]);
        let (split, side) = (folder.name("split.raw"), folder.name("side.raw"));
        filter(&split, &["--compare", "split"]);
        filter(&side, &["--compare", "side"]);
        let name = format!("{format} {width}");
        let length = |path: &str| fs::metadata(path).unwrap().len();
        assert_eq!(length(&split), length(&input), "{name}");
        if cut > 0 {
            let before = raw.part(&input, width, 0, cut);
            assert_eq!(raw.part(&split, width, 0, cut), before, "{name}");
            assert_ne!(raw.part(&plain, width, 0, cut), before, "{name}");
        }
        assert_eq!(
            raw.part(&split, width, after, width - after),
            raw.part(&plain, width, after, width - after),
            "{name}"
        );
        let both = second + width;
        assert_eq!(
            raw.part(&side, both, 0, width),
            raw.part(&input, width, 0, width),
            "{name}"
        );
        assert_eq!(
            raw.part(&side, both, second, width),
            raw.part(&plain, width, 0, width),
            "{name}"
        );
    }
}

#[test]
fn a_split_shows_what_each_engine_and_plane_gives() {
    let folder = Folder::new();
    let input = "synthetic:64x40:rgb24:25:9";
    let (plain, split) = (folder.name("plain.raw"), folder.name("split.raw"));
    let raw = Raw {
        format: "rgb24",
        height: 40,
    };
    for options in [
        &["--engine", "reference"][..],
        &["--engine", "cpu", "--threads", "3", "--queue", "1"],
        &["--planes", "gray"],
        &["--planes", "luma"],
        &["--engine", "none"],
    ] {
        for (path, more) in [(&plain, &[][..]), (&split, &["--compare", "split"])] {
            let output = format!("raw:{path}");
            let words = ["filter", input, &output, "--filter", BOX, "--overwrite"];
            done(&[&words[..], options, more].concat());
        }
        assert_eq!(
            raw.part(&split, 64, 33, 31),
            raw.part(&plain, 64, 33, 31),
            "{options:?}"
        );
        assert_eq!(raw.part(&split, 64, 0, 31).len(), 9);
    }
}

#[test]
fn a_compared_video_keeps_its_sound_and_says_what_it_is() {
    let folder = Folder::new();
    let sound = [
        "-f",
        "lavfi",
        "-i",
        "sine=duration=4",
        "-c:v",
        "ffv1",
        "-c:a",
        "flac",
    ];
    let input = folder.clip("in.mkv", &sound);
    let (plain, side) = (folder.name("plain.mkv"), folder.name("side.mkv"));
    let words = ["filter", &input, "--filter", BOX, "--encoder", "ffv1"];
    done(&[&words[..], &[&plain]].concat());
    let message = done(&[&words[..], &[&side, "--compare", "side"]].concat());
    assert!(message.contains("before beside after"), "{message}");
    assert_eq!(size(&side), (192, 64));
    assert_eq!(
        part(&["-i", &side], (0, 96), (0, 64)),
        part(&["-i", &input], (0, 96), (0, 64))
    );
    assert_eq!(
        part(&["-i", &side], (96, 96), (0, 64)),
        part(&["-i", &plain], (0, 96), (0, 64))
    );
    let sound = |path: &str| ffmpeg(&["-i", path, "-map", "0:a", "-f", "hash", "-"]);
    assert_eq!(sound(&side), sound(&input));
    let plan = framepipe(&[&words[..], &[&side, "-y", "--compare", "split", "--dry-run"]].concat());
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(plan.contains("half of each frame before, half after"), "{plan}");
}

/// FFmpeg turns the pictures as a player does, and before is on the left of what is shown: in MP4, which says
/// so of the stored pictures, and in a container that does not, for which framepipe turns them.
#[test]
fn a_turned_video_shows_before_on_the_left() {
    let folder = Folder::new();
    let input = format!("{}/samples/clip-rotated.mp4", env!("CARGO_MANIFEST_DIR"));
    let (height, width) = size(&input);
    for (extension, stored) in [("mp4", (height, 2 * width)), ("avi", (2 * width, height))] {
        let [plain, side, split] =
            ["plain", "side", "split"].map(|name| folder.name(&format!("{name}.{extension}")));
        let words = ["filter", &input, "--filter", BOX, "--frames", "3", "--no-audio"];
        let lossless = ["--encoder", "libx264", "--quality", "0"];
        let words = [&words[..], &lossless].concat();
        done(&[&words[..], &[&plain]].concat());
        done(&[&words[..], &[&side, "--compare", "side"]].concat());
        done(&[&words[..], &[&split, "--compare", "split"]].concat());
        assert_eq!(size(&side), stored);
        assert_eq!(size(&split), size(&plain));
        let first = |path: &str, across| {
            let hashes = part(&["-i", path], across, (0, height));
            hashes.into_iter().take(3).collect::<Vec<_>>()
        };
        assert_eq!(first(&side, (0, width)), first(&input, (0, width)), "{extension}");
        assert_eq!(
            first(&side, (width, width)),
            first(&plain, (0, width)),
            "{extension}"
        );
        let cut = (width - 2) / 2 / 2 * 2;
        assert_eq!(
            first(&split, (0, cut - 2)),
            first(&input, (0, cut - 2)),
            "{extension}"
        );
        let rest = (cut + 4, width - cut - 4);
        assert_eq!(first(&split, rest), first(&plain, rest), "{extension}");
    }
}

#[test]
fn fields_are_compared_whole() {
    let folder = Folder::new();
    let input = folder.clip(
        "in.mkv",
        &["-frames:v", "8", "-vf", "tinterlace,setfield=tff", "-c:v", "ffv1"],
    );
    let (plain, split) = (folder.name("plain.mkv"), folder.name("split.mkv"));
    let words = ["filter", &input, "--filter", BOX, "--fields", "--encoder", "ffv1"];
    done(&[&words[..], &[&plain]].concat());
    done(&[&words[..], &[&split, "--compare", "split"]].concat());
    let height = size(&input).1;
    let of = |path: &str, across| part(&["-i", path], across, (0, height));
    assert_eq!(of(&split, (0, 46)), of(&input, (0, 46)));
    assert_eq!(of(&split, (48, 48)), of(&plain, (48, 48)));
}

#[test]
fn every_picture_of_a_folder_has_its_own_size() {
    let folder = Folder::new();
    fs::create_dir(folder.name("in")).unwrap();
    for (name, size, format) in [
        ("a", "30x20", "rgb24"),
        ("b", "21x33", "gray16be"),
        ("c", "8x8", "rgba"),
    ] {
        let source = format!("testsrc=size={size}");
        let path = folder.name(&format!("in/{name}.png"));
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &source,
            "-frames:v",
            "1",
            "-pix_fmt",
            format,
            &path,
        ]);
    }
    let (input, plain, side) = (folder.name("in"), folder.name("plain/"), folder.name("side/"));
    done(&["filter", &input, &plain, "--filter", BOX]);
    done(&["filter", &input, &side, "--filter", BOX, "--compare", "side"]);
    for (name, width, height) in [("a", 30, 20), ("b", 21, 33), ("c", 8, 8)] {
        let [input, plain, side] = [&input, &plain, &side].map(|folder| format!("{folder}/{name}.png"));
        assert_eq!(size(&side), (2 * width, height));
        let of = |path: &str, first| part(&["-i", path], (first, width), (0, height));
        assert_eq!(of(&side, 0), of(&input, 0));
        assert_eq!(of(&side, width), of(&plain, 0));
    }
}

/// Rows that no word reaches: two dots of margin above, seven of the letters, two of the outline.
const BELOW: usize = 11;

/// The still that `filter` makes of the first frame from there on.
fn still(folder: &Folder, input: &str, filter: &str, range: &[&str]) -> String {
    let path = folder.name("still.png");
    let words = [
        "filter",
        input,
        &path,
        "--filter",
        filter,
        "--overwrite",
        "--frames",
    ];
    let frames = if input.ends_with(".png") || Path::new(input).is_dir() {
        "0-0"
    } else {
        "1"
    };
    done(&[&words[..], &[frames], range].concat());
    path
}

#[test]
fn a_preview_shows_the_frame_of_that_time_in_the_colours_of_stills() {
    let folder = Folder::new();
    let x264 = ["-c:v", "libx264", "-g", "20", "-bf", "3"];
    let inputs = [
        folder.clip(
            "in.mp4",
            &[&x264[..], &["-pix_fmt", "yuv420p", "-colorspace", "bt709"]].concat(),
        ),
        folder.clip("in.mkv", &["-c:v", "ffv1", "-pix_fmt", "yuv422p10le"]),
        folder.clip("gray.mkv", &["-c:v", "ffv1", "-pix_fmt", "gray"]),
        folder.clip("alpha.mov", &["-c:v", "png", "-pix_fmt", "rgba"]),
    ];
    let out = folder.name("out.png");
    for (number, input) in inputs.iter().enumerate() {
        let times = [
            (Some("1.3"), "1.3"),
            (Some("00:00:03.96"), "3.96"),
            (Some("37f"), "37f"),
            (Some("0"), "0"),
            // Within the last picture, which is shown from 3.96 to 4 seconds.
            (Some("3.99"), "99f"),
            // A tenth of a hundred frames.
            (None, "10f"),
        ];
        // All of them of the first input, the outermost ones of the others.
        for (time, start) in times.into_iter().step_by(if number == 0 { 1 } else { 5 }) {
            let preview = |layout: &str| {
                let words = [
                    "preview", input, "--filter", BOX, "--layout", layout, "-o", &out, "-y",
                ];
                done(&[&words[..], &time.into_iter().collect::<Vec<_>>()].concat())
            };
            let of = |path: &str, across, down| part(&["-i", path], across, down);
            let plain = still(&folder, input, BOX, &["--start", start]);
            let plain = |across, down| of(&plain, across, down);
            let name = format!("{input} {time:?}");
            let whole = plain((0, 96), (0, 64));
            preview("after");
            assert_eq!(size(&out), (96, 64));
            assert_eq!(of(&out, (0, 96), (0, 64)), whole, "{name}");
            // Which frame it is does not depend on the layout.
            if time != Some("1.3") {
                continue;
            }
            let rows = (BELOW, 64 - BELOW);
            let filtered = [
                plain((49, 47), rows),
                plain((0, 96), rows),
                plain((0, 47), (0, BELOW)),
            ];
            let before = still(&folder, input, "identity", &["--start", start]);
            let before = |across| of(&before, across, rows);
            preview("split");
            assert_eq!(size(&out), (96, 64));
            assert_eq!(of(&out, (0, 47), rows), before((0, 47)), "{name}");
            assert_eq!(of(&out, (49, 47), rows), filtered[0], "{name}");
            assert_ne!(of(&out, (0, 47), (0, BELOW)), filtered[2], "{name}");
            preview("side");
            assert_eq!(size(&out), (2 * 96 + 4, 64));
            assert_eq!(of(&out, (0, 96), rows), before((0, 96)), "{name}");
            assert_eq!(of(&out, (100, 96), rows), filtered[1], "{name}");
        }
    }
}

#[test]
fn both_pictures_are_named() {
    let folder = Folder::new();
    let input = folder.name("gray.png");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "color=gray:size=200x120",
        "-frames:v",
        "1",
        "-pix_fmt",
        "gray",
        &input,
    ]);
    let out = folder.name("out.png");
    done(&["preview", &input, "--filter", BOX, "-o", &out]);
    let pixels = ffmpeg(&["-i", &out, "-pix_fmt", "gray", "-f", "rawvideo", "-"]);
    let level = pixels[200 * 119];
    // Columns that hold white and black below and beside the line, at 99 and 100.
    let inked: Vec<usize> = (0..200)
        .filter(|x| ![99, 100].contains(x))
        .filter(|x| (0..120).any(|y| pixels[200 * y + x] != level))
        .collect();
    assert_eq!(pixels[200 * 119 + 99..200 * 119 + 101], [255, 0]);
    // "before" has six letters of six columns, "after" five, with the outline and two columns of margin.
    assert_eq!((inked[0], *inked.iter().rfind(|&&x| x < 99).unwrap()), (2, 38));
    let after = inked.iter().find(|&&x| x > 100).unwrap();
    assert_eq!((*after, *inked.last().unwrap()), (167, 197));
    let rows = (0..120).filter(|y| (0..99).any(|x| pixels[200 * y + x] != level));
    assert_eq!(rows.collect::<Vec<_>>(), (2..11).collect::<Vec<_>>());
}

#[test]
fn stills_and_folders_are_previewed_at_their_first_picture() {
    let folder = Folder::new();
    fs::create_dir(folder.name("in")).unwrap();
    let pattern = folder.name("in/%03d.png");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=48x32:rate=1",
        "-frames:v",
        "5",
        &pattern,
    ]);
    let (input, out) = (folder.name("in"), folder.name("out.png"));
    let whole = |path: &str| part(&["-i", path], (0, 48), (0, 32));
    for (options, file) in [
        (&[][..], "in/001.png"),
        (&["2f"], "in/003.png"),
        (&["2", "--fps", "2"], "in/005.png"),
    ] {
        let words = [
            "preview", &input, "--filter", BOX, "--layout", "after", "-o", &out, "-y",
        ];
        let said = done(&[&words[..], options].concat());
        assert!(
            said.contains(&format!("input   5 image files from {input}")),
            "{said}"
        );
        assert_eq!(
            whole(&out),
            whole(&still(&folder, &folder.name(file), BOX, &[])),
            "{options:?}"
        );
    }
    refused(
        2,
        &["preview", &input, "1.5", "--filter", BOX, "-o", &out, "-y"],
        "image files have no times without --fps",
    );
    refused(
        2,
        &["preview", &input, "5f", "--filter", BOX, "-o", &out, "-y"],
        "there are 5 image files",
    );
    // A gray float picture with one sample that is brighter than white, before and after.
    let floats = folder.name("bright.pfm");
    let samples = [0.25f32, 1.5, 0.5, 0.75].map(f32::to_le_bytes).concat();
    fs::write(&floats, [&b"Pf\n2 2\n-1\n"[..], &samples].concat()).unwrap();
    let words = done(&[
        "preview",
        &floats,
        "--filter",
        "identity",
        "-o",
        &folder.name("floats.png"),
    ]);
    assert!(words.contains("2 above 1"), "{words}");
}

#[test]
fn turned_inputs_are_previewed_upright() {
    let folder = Folder::new();
    let input = format!("{}/samples/clip-rotated.mp4", env!("CARGO_MANIFEST_DIR"));
    let (width, height) = size(&still(&folder, &input, BOX, &[]));
    let (stored_width, stored_height) = size(&input);
    assert_eq!((width, height), (stored_height, stored_width));
    let out = folder.name("out.png");
    for layout in ["split", "side", "after"] {
        done(&[
            "preview", &input, "0", "--filter", BOX, "--layout", layout, "-o", &out, "-y",
        ]);
        let plain = still(&folder, &input, BOX, &[]);
        let (begin, rows) = (if layout == "side" { width + 4 } else { 0 }, (60, height - 60));
        let expected = if layout == "side" { 2 * width + 4 } else { width };
        assert_eq!(size(&out), (expected, height));
        let shown = part(&["-i", &out], (begin + width / 2 + 1, width / 2 - 1), rows);
        assert_eq!(
            shown,
            part(&["-i", &plain], (width / 2 + 1, width / 2 - 1), rows),
            "{layout}"
        );
    }
    // A photo that a camera has turned.
    let photo = folder.name("photo.jpg");
    let mut bytes = ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=80x60",
        "-frames:v",
        "1",
        "-c:v",
        "mjpeg",
        "-f",
        "image2pipe",
        "-",
    ]);
    let exif =
        [&b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"[..]];
    bytes.splice(2..2, exif.concat());
    fs::write(&photo, bytes).unwrap();
    done(&[
        "preview", &photo, "--filter", BOX, "--layout", "side", "-o", &out, "-y",
    ]);
    assert_eq!(size(&out), (2 * 60 + 4, 80));
}

/// Inside is the filter's still, outside the input's, at the frame of that time.
#[test]
fn regions_and_mattes_of_that_time_are_previewed() {
    let folder = Folder::new();
    let input = folder.clip("in.mkv", &["-c:v", "ffv1", "-pix_fmt", "yuv444p"]);
    let matte = folder.name("matte.mkv");
    let source = "color=black:size=96x64:rate=25:duration=2,format=gray,geq=lum='255*gte(N,33)'";
    ffmpeg(&["-f", "lavfi", "-i", source, "-c:v", "ffv1", &matte]);
    let faces = folder.name("faces.txt");
    fs::write(&faces, "..1.3 9x9+0+0\n1.2..1.4 31x17+20+9\n2.. 9x9+0+0\n").unwrap();
    let out = folder.name("out.png");
    let preview = |time: &str, more: &[&str]| {
        let words = [
            "preview", &input, time, "--filter", BOX, "--strict", "-y", "-o", &out,
        ];
        done(&[&words[..], more].concat())
    };
    let after = |time: &str, more: &[&str]| preview(time, &[more, &["--layout", "after"]].concat());
    let of = |path: &str, across, down| part(&["-i", path], across, down);
    let picture = |path: &str| of(path, (0, 96), (0, 64));
    let inside = |path: &str| of(path, (20, 31), (9, 17));
    let around = |path: &str| {
        let sides = [of(path, (0, 20), (0, 64)), of(path, (51, 45), (0, 64))];
        [
            &sides[..],
            &[of(path, (0, 96), (0, 9)), of(path, (0, 96), (26, 38))],
        ]
        .concat()
    };
    // At 1.3 s frame 33 is shown.
    let at = ["--start", "33f"];
    let filtered = still(&folder, &input, BOX, &at);
    let (all, part_of_it, rest) = (picture(&filtered), inside(&filtered), around(&filtered));
    let before = still(&folder, &input, "identity", &at);
    for (region, is_counted) in [
        (["--region", "31x17+20+9"], false),
        (["--region", "33f..34f 31x17+20+9"], true),
        (["--regions", &faces], false),
    ] {
        let said = after("1.3", &region);
        assert_eq!(inside(&out), part_of_it, "{region:?}");
        assert_eq!(around(&out), around(&before), "{region:?}");
        assert_eq!(said.contains("read from its beginning"), is_counted, "{said}");
    }
    after("1.3", &["--region", "31x17+20+9", "--outside"]);
    assert_eq!((inside(&out), around(&out)), (inside(&before), rest));
    // The picture of the matte is the one for the frame.
    for time in ["1.3", "33f"] {
        after(time, &["--matte", &matte]);
        assert_eq!(picture(&out), all, "{time}");
        after(time, &["--matte", &matte, "--outside"]);
        assert_eq!(picture(&out), picture(&before), "{time}");
    }
    after("32f", &["--matte", &matte]);
    let dark = picture(&out);
    assert_eq!(
        dark,
        picture(&still(&folder, &input, "identity", &["--start", "32f"]))
    );
    // A region may lie in the half that a split leaves as it is.
    preview("1.3", &["--region", "31x17+20+9"]);
    assert_eq!(size(&out), (2 * 96 + 4, 64));
    assert_eq!(of(&out, (100 + 20, 31), (9, 17)), part_of_it);
    assert!(preview("1.5", &["--region", "1..1.1 9x9+0+0"]).contains("none was there"));
    let words = ["preview", &input, "--filter", BOX, "-y", "-o"];
    let refused = |more: &[&str], said: &str| refused(2, &[&words[..], more].concat(), said);
    let text = folder.name("text.png");
    fs::write(&text, "9x9+0+0\n").unwrap();
    refused(&[&text, "--regions", &text], "is both file of regions and output");
    refused(&[&out, "--matte", &out], "is both input and output");
    refused(&[&out, "--outside"], "--outside is for --region");
    refused(
        &[&out, "--fields", "--region", "9x9+0+0"],
        "filters each field by itself",
    );
}

#[test]
fn files_of_every_kind_and_no_half_ones() {
    let folder = Folder::new();
    let input = folder.clip("in.mp4", &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
    for kind in ["png", "jpg", "tif", "bmp", "webp", "ppm"] {
        let out = folder.name(&format!("out.{kind}"));
        let message = done(&["preview", &input, "1", "--filter", BOX, "-o", &out]);
        assert!(
            message.contains("the first frame from 1 s on") && message.contains(&out),
            "{message}"
        );
        assert_eq!(size(&out), (96, 64), "{kind}");
    }
    let out = folder.name("out.png");
    let bytes = fs::read(&out).unwrap();
    let words = ["preview", &input, "2", "--filter", BOX, "-o"];
    refused(
        1,
        &[&words[..], &[&out]].concat(),
        "exists; pass --overwrite to replace it",
    );
    assert_eq!(fs::read(&out).unwrap(), bytes);
    done(&[&words[..], &[&out, "--overwrite", "-q"]].concat());
    assert_ne!(fs::read(&out).unwrap(), bytes);
    for name in ["out.mp4", "out/", "out", "%d.png", "out.y4m"] {
        refused(
            2,
            &[&words[..], &[&folder.name(name)]].concat(),
            "a preview is one image file",
        );
    }
    refused(2, &[&words[..], &["-"]].concat(), "a preview is one image file");
    let photo = folder.name("out.jpg");
    refused(
        2,
        &["preview", &photo, "--filter", BOX, "-o", &photo, "-y"],
        "is both input and output",
    );
    let missing = folder.name("new.png");
    for (time, words) in [
        ("4", "the last one is shown at 3.96 s"),
        ("100f", "no frame lies in the range"),
    ] {
        refused(
            1,
            &["preview", &input, time, "--filter", BOX, "-o", &missing],
            words,
        );
    }
    refused(
        2,
        &["preview", &input, "soon", "--filter", BOX, "-o", &missing],
        "'soon' is no time",
    );
    refused(2, &["preview", &input, "-o", &missing], "--filter");
    assert!(!Path::new(&missing).exists());
    done(&[
        "preview",
        &input,
        "1",
        "--filter",
        BOX,
        "-o",
        &missing,
        "--untrusted",
        "--strict",
    ]);
    refused(
        2,
        &[
            "preview",
            &input,
            "--filter",
            "mask:file=samples/masks/soft.txt",
            "-o",
            &missing,
            "--untrusted",
        ],
        "--untrusted reads no mask files",
    );
}

#[test]
fn without_a_terminal_a_file_is_to_be_named() {
    let folder = Folder::new();
    let sound = ["-f", "lavfi", "-i", "sine=d=4"];
    let input = folder.clip(
        "in.mp4",
        &[&sound[..], &["-c:v", "libx264", "-pix_fmt", "yuv420p"]].concat(),
    );
    // One picture is shown, and the sound is not missed.
    let out = folder.name("sound.png");
    let message = done(&["preview", &input, "--filter", BOX, "-o", &out, "--strict"]);
    assert!(!message.contains("audio"), "{message}");
    let glob = folder.name("in*.mp4");
    let words = "stands for 1 file, such as";
    refused(2, &["preview", &glob, "--filter", BOX, "-o", &out, "-y"], words);
    let run = Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .args(["preview", &input, "--filter", BOX])
        // A pipe is no terminal, whatever the environment says.
        .env("TERM", "xterm-kitty")
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(run.stdout.is_empty());
    assert!(
        said(&run).contains("write it to a file with -o preview.png"),
        "{}",
        said(&run)
    );
}

#[test]
fn interlaced_video_is_previewed_by_its_fields() {
    let folder = Folder::new();
    let options = [
        "-frames:v",
        "8",
        "-vf",
        "tinterlace,setfield=tff",
        "-c:v",
        "ffv1",
        "-field_order",
        "tt",
    ];
    let input = folder.clip("in.mkv", &options);
    let height = size(&input).1;
    let out = folder.name("out.png");
    let words = [
        "preview", &input, "3f", "--filter", BOX, "--layout", "after", "-o", &out, "-y",
    ];
    let message = done(&words);
    assert!(message.contains("--fields filters them apart"), "{message}");
    let message = done(&[&words[..], &["--fields"]].concat());
    assert!(!message.contains("--fields filters them apart"), "{message}");
    let plain = still(&folder, &input, BOX, &["--start", "3f", "--fields"]);
    let whole = |path: &str| part(&["-i", path], (0, 96), (0, height));
    assert_eq!(whole(&out), whole(&plain));
}
