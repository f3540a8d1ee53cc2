//! `framepipe filter` with regions and mattes: FFmpeg makes the inputs, reads the outputs and judges.

use crate::common::{PROGRAM, ffmpeg, said};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const WIDTH: usize = 96;
const HEIGHT: usize = 64;

/// A box of five by five.
const BOX: &str = "box:size=5";

fn framepipe(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(["filter", "--overwrite"])
        .args(arguments)
        .output()
        .unwrap()
}

/// What a run that must succeed says.
fn filtered(arguments: &[&str]) -> String {
    let done = framepipe(arguments);
    assert!(done.status.success(), "{arguments:?}: {}", said(&done));
    said(&done)
}

/// What a run that must fail says, with its exit code.
fn refused(arguments: &[&str]) -> (i32, String) {
    let done = framepipe(arguments);
    (done.status.code().unwrap(), said(&done))
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// A lossless clip, frames of which are dropped so that times are uneven.
    fn clip(&self, format: &str) -> String {
        let path = self.path(&format!("{format}.mkv"));
        let filters = format!("select='lt(mod(n\\,5)\\,3)',format={format}");
        let source = format!("testsrc2=size={WIDTH}x{HEIGHT}:rate=25:duration=2");
        let input = ["-f", "lavfi", "-i", &source, "-vf", &filters];
        let output = ["-fps_mode", "passthrough", "-c:v", "ffv1", &path];
        ffmpeg(&[&input[..], &output[..]].concat());
        path
    }

    /// Gray PNG files of noise, the same each time.
    fn noise(&self, name: &str, frames: u32) -> String {
        let folder = self.path(name);
        fs::create_dir(&folder).unwrap();
        let source = format!("color=gray:size={WIDTH}x{HEIGHT}:rate=25,noise=alls=100:allf=t,format=gray");
        let files = format!("{folder}/%03d.png");
        let count = frames.to_string();
        ffmpeg(&["-f", "lavfi", "-i", &source, "-frames:v", &count, &files]);
        folder
    }
}

/// The frames of a file, raw.
fn raw(path: &str, format: &str, frame: usize) -> Vec<Vec<u8>> {
    let options = ["-i", path, "-fps_mode", "passthrough", "-pix_fmt", format];
    let bytes = ffmpeg(&[&options[..], &["-f", "rawvideo", "-"]].concat());
    assert_eq!(bytes.len() % frame, 0);
    bytes.chunks(frame).map(<[u8]>::to_vec).collect()
}

/// When each frame of a file is shown, in milliseconds.
fn times(path: &str) -> Vec<i64> {
    let done = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-select_streams",
            "v:0",
            "-show_entries",
            "packet=pts",
        ])
        .args(["-of", "csv=p=0", path])
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines()
        .map(|l| l.trim_matches(',').parse().unwrap())
        .collect()
}

/// `filtered` inside of a rectangle of all three planes, `original` elsewhere.
fn pasted(original: &[u8], filtered: &[u8], rects: &[(i64, i64, i64, i64)]) -> Vec<u8> {
    let plane = WIDTH * HEIGHT;
    let inside = |at: usize| {
        let (x, y) = ((at % plane % WIDTH) as i64, (at % plane / WIDTH) as i64);
        let holds = |&(left, top, width, height): &(i64, i64, i64, i64)| {
            (left..left + width).contains(&x) && (top..top + height).contains(&y)
        };
        rects.iter().any(holds)
    };
    let pairs = original.iter().zip(filtered).enumerate();
    pairs
        .map(|(at, (&a, &b))| if inside(at) { b } else { a })
        .collect()
}

/// `a + (b - a) * part / whole`, halves rounded up.
fn between(a: i64, b: i64, part: i64, whole: i64) -> i64 {
    a + (2 * (b - a) * part + whole).div_euclid(2 * whole)
}

#[test]
fn regions_of_a_file_move_by_the_frames_times() {
    let folder = Folder::new();
    let clip = folder.clip("yuv444p");
    let regions = folder.write(
        "faces.txt",
        "# two faces\n0.1..1.3 21x15-10+3 -> 31x25+90+50  # walks and grows\n\n0:00.5.. 8x9+40+30\n",
    );
    let (all, part) = (folder.path("all.mkv"), folder.path("part.mkv"));
    filtered(&[&clip, &all, "-f", BOX, "--encoder", "ffv1"]);
    let text = filtered(&[
        &clip,
        &part,
        "-f",
        BOX,
        "--encoder",
        "ffv1",
        "--regions",
        &regions,
    ]);
    assert!(text.contains("faces.txt, line 2"), "{text}");
    let shown = times(&clip);
    assert_eq!((shown.len(), shown[3]), (30, 200), "{shown:?}");
    let size = 3 * WIDTH * HEIGHT;
    let [clip_frames, all_frames] = [&clip, &all].map(|path| raw(path, "yuv444p", size));
    let expected = |at: i64, n: usize| {
        let mut rects = Vec::new();
        if (100..1300).contains(&at) {
            let way = |a, b| between(a, b, at - 100, 1200);
            rects.push((way(-10, 90), way(3, 50), way(21, 31), way(15, 25)));
        }
        if at >= 500 {
            rects.push((40, 30, 8, 9));
        }
        pasted(&clip_frames[n], &all_frames[n], &rects)
    };
    let check = |path: &str, first: usize| {
        let got = raw(path, "yuv444p", size);
        assert_eq!(got.len(), shown.len() - first);
        for (n, frame) in got.iter().enumerate() {
            let n = n + first;
            assert!(
                *frame == expected(shown[n], n),
                "{path}: frame {n} at {} ms",
                shown[n]
            );
        }
    };
    check(&part, 0);
    assert_eq!(times(&part), shown);
    // Behind --start they are where they would have been without it.
    let late = folder.path("late.mkv");
    filtered(&[
        &clip,
        &late,
        "-f",
        BOX,
        "--encoder",
        "ffv1",
        "--regions",
        &regions,
        "--start",
        "0.6",
    ]);
    check(&late, shown.iter().position(|&at| at >= 600).unwrap());
}

/// From the input's first one, as far as somebody counts them.
#[test]
fn frames_of_regions_are_counted() {
    let folder = Folder::new();
    let clip = folder.clip("yuv444p");
    let late = folder.path("late.mkv");
    let clip_frames = raw(&clip, "yuv444p", 3 * WIDTH * HEIGHT);
    let counted = ["--region", "20f..22f 31x17+20+9"];
    let run = [&clip, &late, "-f", BOX, "--encoder", "ffv1"];
    filtered(&[&run[..], &counted, &["--start", "15f"]].concat());
    let got = raw(&late, "yuv444p", 3 * WIDTH * HEIGHT);
    let changed = (15..).zip(&got).filter(|(n, frame)| **frame != clip_frames[*n]);
    assert_eq!(
        (got.len(), changed.map(|(n, _)| n).collect::<Vec<_>>()),
        (15, vec![20, 21])
    );
    // Behind a time, too: 0.6 s is frame 9.
    let text = filtered(&[&run[..], &counted, &["--start", "0.6"]].concat());
    assert!(text.contains("read from its beginning"), "{text}");
    let got = raw(&late, "yuv444p", 3 * WIDTH * HEIGHT);
    let changed = (9..).zip(&got).filter(|(n, frame)| **frame != clip_frames[*n]);
    assert_eq!(changed.map(|(n, _)| n).collect::<Vec<_>>(), [20, 21]);
}

#[test]
fn a_loss_in_the_input_that_displaces_what_is_counted_is_named() {
    let folder = Folder::new();
    let clip = folder.path("clip.mkv");
    let source = format!("testsrc2=size={WIDTH}x{HEIGHT}:rate=10:duration=1");
    ffmpeg(&["-f", "lavfi", "-i", &source, "-c:v", "png", &clip]);
    let mut bytes = fs::read(&clip).unwrap();
    let signature = b"\x89PNG\r\n";
    let place = |(at, window): (usize, &[u8])| (window == signature).then_some(at);
    let pictures: Vec<usize> = bytes.windows(6).enumerate().filter_map(place).collect();
    bytes[pictures[4]..][..40].fill(0);
    fs::write(&clip, bytes).unwrap();
    for (region, is_counted) in [("7f..9f 20x20+1+1", true), ("0.7..0.9 20x20+1+1", false)] {
        let text = filtered(&[&clip, "null:", "-f", BOX, "--region", region]);
        assert!(text.contains("corrupt packet"), "{text}");
        assert_eq!(
            text.contains("warning: lost frames are not counted"),
            is_counted,
            "{text}"
        );
    }
}

#[test]
fn regions_that_no_frame_meets_are_named() {
    let folder = Folder::new();
    let clip = folder.clip("yuv444p");
    let run = [&clip, "null:", "-f", BOX, "--region"];
    let missed = [&run[..], &["0.61..0.62 4x4+0+0"]].concat();
    let word = "no frame was shown in the time of the region 0.61..0.62 4x4+0+0";
    assert!(filtered(&missed).contains(&format!("warning: {word}")));
    let (code, text) = refused(&[&missed[..], &["--strict"]].concat());
    assert!(code == 1 && text.contains(word), "{text}");
    // Behind the last frame, which is shown at 1.88 s, it is refused at once.
    let stills = folder.noise("stills", 10);
    for (input, options, region) in [
        (&clip, &[][..], "9..10 4x4+0+0"),
        (&clip, &[], "50f.. 4x4+0+0"),
        (&clip, &[], "1.89.. 4x4+0+0"),
        (&stills, &["--fps", "10"], "1..2 4x4+0+0"),
        (&stills, &[], "10f.. 4x4+0+0"),
    ] {
        let late = [&[input.as_str(), "null:", "-f", BOX, "--region", region], options].concat();
        let (code, text) = refused(&late);
        let words = format!("the region {region} begins after the last frame of the input");
        assert!(code == 2 && text.contains(&words), "{late:?}: {text}");
    }
    filtered(&[&run[..], &["1.88.. 4x4+0+0"]].concat());
    filtered(&[
        &stills,
        "null:",
        "-f",
        BOX,
        "--fps",
        "10",
        "--region",
        "0.9.. 4x4+0+0",
    ]);
    // Of a part of the input, or of a pipe, that is known at the end.
    for (region, range) in [
        ("9.. 4x4+0+0", &["--start", "1"][..]),
        ("0.61..0.62 4x4+0+0", &["--start", "0.5", "--end", "1"]),
        ("0.61..0.62 4x4+0+0", &["--start", "0.5", "--frames", "8"]),
    ] {
        let said = filtered(&[&run[..], &[region], range].concat());
        assert!(
            said.contains(&format!(
                "warning: {}",
                word.replace("0.61..0.62 4x4+0+0", region)
            )),
            "{said}"
        );
    }
}

/// What the user leaves out is no loss.
#[test]
fn regions_outside_of_the_range_are_not_missed() {
    let folder = Folder::new();
    let clip = folder.clip("yuv444p");
    let faces = folder.write(
        "faces.txt",
        "0..0.3 9x9+0+0\n0.2..0.8 9x9+9+9\n1.5.. 9x9+20+20\n2f..4f 9x9+0+0\n",
    );
    let stills = folder.noise("stills", 10);
    let last = folder.write("last.txt", "0f..2f 9x9+0+0\n6f.. 9x9+0+0\n");
    for (input, regions, range) in [
        (&clip, &faces, &["--start", "0.5", "--end", "1"][..]),
        (&clip, &faces, &["--start", "0.5", "--duration", "0.4"]),
        (&clip, &faces, &["--start", "0.5", "--frames", "3"]),
        (&clip, &faces, &["--start", "6f", "--duration", "3f"]),
        (&stills, &last, &["--frames", "5-7"]),
    ] {
        let run = [input, "null:", "-f", BOX, "--strict", "--regions", regions];
        let said = filtered(&[&run[..], range].concat());
        assert!(
            !said.contains("no frame was shown") && !said.contains("none was there"),
            "{said}"
        );
    }
    // Nothing was filtered at all, which is said, and is no loss.
    let run = [&clip, "null:", "-f", BOX, "--strict", "--region", "1.5.. 4x4+0+0"];
    let said = filtered(&[&run[..], &["--end", "1"]].concat());
    assert!(
        said.contains("none was there") && !said.contains("warning"),
        "{said}"
    );
}

#[test]
fn many_regions_are_quick_and_too_many_are_refused() {
    let folder = Folder::new();
    let lines = |count: usize| -> String {
        let line = |n: usize| format!("10x10+{}+{}\n", n * 37 % 54, n * 101 % 38);
        (0..count).map(line).collect()
    };
    let run = |regions: &str| {
        let input = "synthetic:64x48:gray:25:3";
        framepipe(&[
            input,
            "null:",
            "-f",
            "soft",
            "--engine",
            "cpu",
            "--regions",
            regions,
        ])
    };
    let began = std::time::Instant::now();
    let done = run(&folder.write("most.txt", &lines(4096)));
    assert!(done.status.success(), "{}", said(&done));
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    let done = run(&folder.write("more.txt", &lines(40_000)));
    let text = said(&done);
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(
        text.contains("40000 regions are there at once, and a frame may have 4096"),
        "{text}"
    );
}

/// FFmpeg turns what it decodes as players do.
#[test]
fn regions_of_turned_videos_are_where_players_show_them() {
    let folder = Folder::new();
    let input = format!("{}/samples/clip-rotated.mp4", env!("CARGO_MANIFEST_DIR"));
    let (plain, out) = (folder.path("plain.mov"), folder.path("out.mov"));
    let lossless = ["--encoder", "libx264", "--quality", "0", "--frames", "2", "-f"];
    filtered(&[&[&input[..], &plain], &lossless[..], &["identity"]].concat());
    let region = ["box:size=15", "--region", "30x20+8+50"];
    filtered(&[&[&input[..], &out], &lossless[..], &region].concat());
    // Stored as 320x240, shown as 240x320.
    let frames = |path: &str| raw(path, "gray", 240 * 320).concat();
    let (plain, out) = (frames(&plain), frames(&out));
    let pairs = plain.iter().zip(&out).enumerate();
    let changed: Vec<(usize, usize)> = pairs
        .filter(|(_, (a, b))| a != b)
        .map(|(at, _)| (at % 240, at / 240 % 320))
        .collect();
    let inside = |&(x, y): &(usize, usize)| (8..38).contains(&x) && (50..70).contains(&y);
    assert!(changed.iter().all(inside), "{changed:?}");
    assert!(changed.len() > 2 * 30 * 20 / 3, "{} changed", changed.len());
}

/// A single still, too, is checked as it is shown: 64x96 here, which is stored as 96x64.
#[test]
fn regions_of_a_turned_still_are_within_what_is_shown() {
    let folder = Folder::new();
    let stills = folder.noise("stills", 1);
    let input = folder.path("turned.jpg");
    ffmpeg(&["-i", &format!("{stills}/001.png"), "-q:v", "2", &input]);
    let mut bytes = fs::read(&input).unwrap();
    let exif = b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    bytes.splice(2..2, exif.iter().copied());
    fs::write(&input, bytes).unwrap();
    let stored = |path: &str| {
        let output = ["-f", "rawvideo", "-pix_fmt", "gray", "-"];
        ffmpeg(&[&["-noautorotate", "-i", path][..], &output].concat())
    };
    let (plain, out) = (folder.path("plain.png"), folder.path("out.png"));
    filtered(&[&input, &plain, "-f", "identity"]);
    let plain = stored(&plain);
    for (option, is_inside) in [(&[][..], true), (&["--outside"], false)] {
        let region = ["-f", BOX, "--region", "20x10+5+75"];
        filtered(&[&[&input[..], &out], &region[..], option].concat());
        let out = stored(&out);
        assert_eq!(out.len(), WIDTH * HEIGHT);
        let pairs = plain.iter().zip(&out).enumerate();
        // Orientation 6 is a quarter clockwise.
        let changed: Vec<(usize, usize)> = pairs
            .filter(|(_, (a, b))| a != b)
            .map(|(at, _)| (HEIGHT - 1 - at / WIDTH, at % WIDTH))
            .collect();
        let inside = |&(x, y): &(usize, usize)| (5..25).contains(&x) && (75..85).contains(&y);
        assert!(changed.iter().all(|at| inside(at) == is_inside), "{changed:?}");
        assert!(changed.len() > 20 * 10 / 2, "{} changed", changed.len());
    }
    for output in [out, folder.path("out.mkv")] {
        let (code, text) = refused(&[&input, &output, "-f", BOX, "--region", "10x10+70+5"]);
        assert_eq!(code, 2, "{text}");
        assert!(
            text.contains("lies outside of the picture, which is 64x96"),
            "{text}"
        );
    }
}

#[test]
fn ffmpegs_convolution_of_a_crop_is_the_same() {
    let folder = Folder::new();
    let clip = folder.clip("yuv444p");
    let matrix = "1 2 1 2 4 2 1 2 1";
    let judge = format!(
        "split[a][b];[b]convolution='{matrix}:{matrix}:{matrix}:{matrix}:1/16:1/16:1/16:1/16',\
         crop=31:17:20:9[c];[a][c]overlay=20:9:format=yuv444"
    );
    let theirs = ffmpeg(&[
        "-i",
        &clip,
        "-vf",
        &judge,
        "-fps_mode",
        "passthrough",
        "-pix_fmt",
        "yuv444p",
        "-f",
        "rawvideo",
        "-",
    ]);
    let out = folder.path("out.mkv");
    let mask = "mask:rows=1,2,1;2,4,2;1,2,1:divisor=16";
    filtered(&[
        &clip,
        &out,
        "-f",
        mask,
        "--region",
        "31x17+20+9",
        "--encoder",
        "ffv1",
    ]);
    let ours = raw(&out, "yuv444p", 3 * WIDTH * HEIGHT).concat();
    assert!(!theirs.is_empty() && ours == theirs);
    // All but the region.
    filtered(&[
        &clip,
        &out,
        "-f",
        mask,
        "--region",
        "31x17+20+9",
        "--outside",
        "--encoder",
        "ffv1",
    ]);
    let outside = raw(&out, "yuv444p", 3 * WIDTH * HEIGHT).concat();
    let size = 3 * WIDTH * HEIGHT;
    let (all, original) = (folder.path("all.mkv"), raw(&clip, "yuv444p", size));
    filtered(&[&clip, &all, "-f", mask, "--encoder", "ffv1"]);
    let all = raw(&all, "yuv444p", size);
    let pairs = all.iter().zip(&original);
    let expected: Vec<u8> = pairs
        .flat_map(|(all, original)| pasted(all, original, &[(20, 9, 31, 17)]))
        .collect();
    assert!(outside == expected);
}

#[test]
fn mattes_are_a_picture_a_folder_or_a_video() {
    let folder = Folder::new();
    let (clip, mattes) = (folder.clip("yuv444p"), folder.noise("mattes", 30));
    let size = 3 * WIDTH * HEIGHT;
    let all = folder.path("all.mkv");
    filtered(&[&clip, &all, "-f", BOX, "--encoder", "ffv1"]);
    let [original, all] = [&clip, &all].map(|path| raw(path, "yuv444p", size));
    let weights: Vec<Vec<u8>> = (1..=30)
        .flat_map(|n| raw(&format!("{mattes}/{n:03}.png"), "gray", WIDTH * HEIGHT))
        .collect();
    // The same weights as limited-range video: 16 is none and 235 is all.
    let video = folder.path("mattes.mkv");
    let files = format!("{mattes}/%03d.png");
    ffmpeg(&[
        "-i",
        &files,
        "-vf",
        "scale=out_range=tv,format=yuv420p",
        "-c:v",
        "ffv1",
        &video,
    ]);
    let limited = raw(&video, "yuv420p", WIDTH * HEIGHT * 3 / 2);
    let full = |luma: u8| ((2 * (i64::from(luma) - 16).max(0) * 255 + 219) / (2 * 219)).min(255);
    let first = format!("{mattes}/001.png");
    let out = folder.path("out.mkv");
    for (matte, weight) in [
        (
            &mattes,
            &(|n: usize, at: usize| i64::from(weights[n][at])) as &dyn Fn(usize, usize) -> i64,
        ),
        (&first, &|_: usize, at: usize| i64::from(weights[0][at])),
        (&video, &|n: usize, at: usize| full(limited[n][at])),
    ] {
        for options in [&[][..], &["--start", "0.6"], &["--start", "9f"]] {
            let run = [&clip, &out, "-f", BOX, "--encoder", "ffv1", "--matte", matte];
            // The clip's times are uneven, and those of the mattes are not.
            let text = filtered(&[&run[..], options, &["--strict"]].concat());
            let is_counted = options.contains(&"0.6") && matte != &first;
            assert_eq!(text.contains("read from its beginning"), is_counted, "{text}");
            let got = raw(&out, "yuv444p", size);
            let skipped = original.len() - got.len();
            assert_eq!(skipped, if options.is_empty() { 0 } else { 9 });
            for (n, frame) in (skipped..).zip(&got) {
                for (at, &sample) in frame.iter().enumerate() {
                    let weight = weight(n, at % (WIDTH * HEIGHT));
                    let sum = i64::from(original[n][at]) * (255 - weight) + i64::from(all[n][at]) * weight;
                    assert_eq!(
                        i64::from(sample),
                        (2 * sum + 255) / 510,
                        "{matte} frame {n} at {at}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_folder_of_mattes_may_hold_integers_and_floats() {
    let folder = Folder::new();
    let (pictures, mattes, out) = (folder.path("in"), folder.path("mattes"), folder.path("out"));
    for name in [&pictures, &mattes] {
        fs::create_dir(name).unwrap();
    }
    let source = [
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48",
        "-frames:v",
        "2",
        "-pix_fmt",
        "rgb24",
    ];
    ffmpeg(&[&source[..], &[&format!("{pictures}/%d.png")]].concat());
    let black = [
        "-f",
        "lavfi",
        "-i",
        "color=black:s=64x48",
        "-frames:v",
        "1",
        "-pix_fmt",
        "gray",
    ];
    ffmpeg(&[&black[..], &[&format!("{mattes}/1.png")]].concat());
    let ramp = format!("{mattes}/2.tif");
    let numbers: Vec<f32> = (0..64 * 48).map(|at| (at % 64) as f32 / 63.0).collect();
    let mut encoder = tiff::encoder::TiffEncoder::new(fs::File::create(&ramp).unwrap()).unwrap();
    let image = encoder.write_image::<tiff::encoder::colortype::Gray32Float>(64, 48, &numbers);
    image.unwrap();
    filtered(&[&pictures, &format!("{out}/"), "-f", BOX, "--matte", &mattes]);
    let alone = folder.path("alone.png");
    filtered(&[&format!("{pictures}/2.png"), &alone, "-f", BOX, "--matte", &ramp]);
    let size = 3 * 64 * 48;
    let pixels = |path: &str| raw(path, "rgb24", size).concat();
    assert!(pixels(&format!("{out}/2.png")) == pixels(&alone));
    assert!(pixels(&format!("{out}/1.png")) == pixels(&format!("{pictures}/1.png")));
    // What is no weight is cut with a word.
    let wide: Vec<f32> = numbers.iter().map(|number| 3.0 * number - 1.0).collect();
    let beyond = wide
        .iter()
        .filter(|number| !(0.0..=1.0).contains(*number))
        .count();
    let file = folder.path("wide.tif");
    let mut encoder = tiff::encoder::TiffEncoder::new(fs::File::create(&file).unwrap()).unwrap();
    let image = encoder.write_image::<tiff::encoder::colortype::Gray32Float>(64, 48, &wide);
    image.unwrap();
    let run = [&format!("{pictures}/2.png"), "null:", "-f", BOX, "--matte", &file];
    let words = said(&framepipe(&run));
    assert!(
        words.contains(&format!("{beyond} samples of the matte")) && words.contains("count as 0 or 1"),
        "{words}"
    );
    // Half of the way is a weight of a half.
    let whole = folder.path("whole.png");
    filtered(&[&format!("{pictures}/2.png"), &whole, "-f", BOX]);
    let (before, after, mixed) = (
        pixels(&format!("{pictures}/2.png")),
        pixels(&whole),
        pixels(&alone),
    );
    for ((at, &mixed), (before, after)) in mixed.iter().enumerate().zip(before.iter().zip(&after)) {
        let weight = (at / 3 % 64) as f64 / 63.0;
        let real = f64::from(*before) * (1.0 - weight) + f64::from(*after) * weight;
        assert!((f64::from(mixed) - real).abs() < 0.51, "{at}");
    }
}

#[test]
fn a_matte_lies_on_a_turned_video_as_it_is_shown() {
    // Stored as 320x240.
    let portrait = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/clip-rotated.mp4");
    let folder = Folder::new();
    let (all, out) = (folder.path("all.mkv"), folder.path("out.mkv"));
    let matte = |size: &str| {
        let path = folder.path(&format!("{size}.png"));
        let source = format!("color=white:size={size},format=gray,geq=255");
        ffmpeg(&["-f", "lavfi", "-i", &source, "-frames:v", "1", &path]);
        path
    };
    let run = |out, more: &[&str]| {
        let fixed = [portrait, out, "-f", BOX, "--encoder", "ffv1", "--end", "0.1"];
        framepipe(&[&fixed, more].concat())
    };
    let (upright, lying) = (matte("240x320"), matte("320x240"));
    assert!(run(&all, &[]).status.success());
    let done = run(&out, &["--matte", &upright]);
    assert!(done.status.success(), "{}", said(&done));
    let size = 320 * 240 * 3 / 2;
    let (found, expected) = (raw(&out, "yuv420p", size), raw(&all, "yuv420p", size));
    assert!(found == expected, "{} of {} frames", found.len(), expected.len());
    let done = run(&out, &["--matte", &lying]);
    let text = said(&done);
    assert!(
        text.contains("is 320x240, and the picture 240x320; make it the same size"),
        "{text}"
    );
}

#[test]
fn ffmpegs_maskedmerge_is_near() {
    let folder = Folder::new();
    let (clip, mattes) = (folder.clip("yuv444p"), folder.noise("mattes", 1));
    let (matte, all, out) = (
        format!("{mattes}/001.png"),
        folder.path("all.mkv"),
        folder.path("out.mkv"),
    );
    filtered(&[&clip, &all, "-f", BOX, "--encoder", "ffv1"]);
    filtered(&[&clip, &out, "-f", BOX, "--encoder", "ffv1", "--matte", &matte]);
    // All at 25 frames a second, so that each frame meets its own.
    let graph = "[0]setpts=N/25/TB[x];[1]setpts=N/25/TB[y];[2]format=gray,split=3[a][b][c];\
                 [a][b][c]mergeplanes=0x001020:yuv444p,loop=-1:1,setpts=N/25/TB[m];\
                 [x][y][m]maskedmerge=planes=7";
    let theirs = ffmpeg(&[
        "-i",
        &clip,
        "-i",
        &all,
        "-i",
        &matte,
        "-filter_complex",
        graph,
        "-frames:v",
        "29",
        "-fps_mode",
        "passthrough",
        "-pix_fmt",
        "yuv444p",
        "-f",
        "rawvideo",
        "-",
    ]);
    let ours = raw(&out, "yuv444p", 3 * WIDTH * HEIGHT).concat();
    // FFmpeg doubles the last frame, and rounds in another way.
    assert_eq!(theirs.len(), 29 * 3 * WIDTH * HEIGHT);
    let far = ours
        .iter()
        .zip(&theirs)
        .filter(|(a, b)| a.abs_diff(**b) > 1)
        .count();
    assert_eq!(far, 0);
}

/// Names and bytes of a folder's files.
fn files(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let names = files.into_iter();
    names
        .map(|f| (f.file_name().map(PathBuf::from).unwrap(), fs::read(&f).unwrap()))
        .collect()
}

#[test]
fn folders_of_stills_count_frames() {
    let folder = Folder::new();
    let stills = folder.noise("stills", 6);
    let out = folder.path("out");
    let pixels = |path: &str| raw(path, "gray", WIDTH * HEIGHT).concat();
    let changed = |options: &[&str]| -> Vec<bool> {
        let _ = fs::remove_dir_all(&out);
        filtered(&[&[&stills, &out, "-f", BOX][..], options].concat());
        let written = files(&out).into_iter();
        written
            .map(|(name, _)| {
                let of = |folder: &str| pixels(Path::new(folder).join(&name).to_str().unwrap());
                of(&stills) != of(&out)
            })
            .collect()
    };
    let region = ["--region", "2f..4f 20x20+30+20"];
    assert_eq!(changed(&region), [false, false, true, true, false, false]);
    assert_eq!(
        changed(&[&region[..], &["--start", "3f"]].concat()),
        [true, false, false]
    );
    let timed = ["--region", "0.2..0.4 20x20+30+20"];
    let at_ten = [&timed[..], &["--fps", "10"]].concat();
    assert_eq!(changed(&at_ten), [false, false, true, true, false, false]);
    // Whichever files are read.
    for region in [&region[..], &at_ten] {
        let some = |frames| changed(&[region, &["--frames", frames]].concat());
        assert_eq!(some("1-3"), [false, true, true]);
        assert_eq!(some("0-5:2"), [false, true, false]);
        assert_eq!(changed(region), [false, false, true, true, false, false]);
        let whole = files(&out);
        for name in ["001.png", "004.png", "005.png"] {
            fs::remove_file(Path::new(&out).join(name)).unwrap();
        }
        // `filtered` overwrites, which goes against leaving files as they are.
        let resumed = ["filter", &stills, &out, "-f", BOX, "--skip-existing"];
        let done = Command::new(PROGRAM).args(resumed).args(region).output().unwrap();
        assert!(done.status.success() && files(&out) == whole, "{}", said(&done));
    }
    let (code, text) = refused(&[&[&stills, &out, "-f", BOX][..], &timed].concat());
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("has no times") && text.contains("--fps"), "{text}");
    // Behind a range of other inputs, too.
    let raw_file = folder.path("in.gray");
    let files = format!("{stills}/%03d.png");
    ffmpeg(&["-i", &files, "-f", "rawvideo", "-pix_fmt", "gray", &raw_file]);
    let (from, to) = (
        format!("raw:{WIDTH}x{HEIGHT}:gray:25:{raw_file}"),
        folder.path("out.gray"),
    );
    let raw_out = format!("raw:{to}");
    let frames = |start: &str| {
        filtered(&[
            &from,
            &raw_out,
            "-f",
            BOX,
            "--region",
            "2f..4f 20x20+30+20",
            "--start",
            start,
        ]);
        let (before, after) = (fs::read(&raw_file).unwrap(), fs::read(&to).unwrap());
        let before = &before[before.len() - after.len()..];
        let pairs = before.chunks(WIDTH * HEIGHT).zip(after.chunks(WIDTH * HEIGHT));
        pairs.map(|(a, b)| a != b).collect::<Vec<bool>>()
    };
    assert_eq!(frames("0f"), [false, false, true, true, false, false]);
    assert_eq!(frames("0.12"), [true, false, false]);
}

#[test]
fn each_still_has_the_matte_of_its_number_or_name() {
    let folder = Folder::new();
    let (stills, mattes) = (folder.noise("stills", 5), folder.noise("mattes", 5));
    let pattern = |folder: &str| format!("{folder}/%03d.png");
    let run = |input: &str, matte: &str, out: &str, options: &[&str]| {
        filtered(&[&[input, out, "-f", BOX, "--matte", matte][..], options].concat());
        files(out)
    };
    let all = run(&pattern(&stills), &pattern(&mattes), &folder.path("all"), &[]);
    let some = |places: &[usize]| places.iter().map(|&n| all[n].clone()).collect::<Vec<_>>();
    let video = folder.path("mattes.mkv");
    ffmpeg(&["-i", &pattern(&mattes), "-c:v", "ffv1", &video]);
    for (number, matte) in [pattern(&mattes), mattes.clone(), video].iter().enumerate() {
        let go = |of: &str, frames: &[&str]| {
            run(
                &pattern(&stills),
                matte,
                &folder.path(&format!("{of}{number}")),
                frames,
            )
        };
        assert!(go("part", &["--frames", "3-4"]) == some(&[2, 3]), "{matte}");
        assert!(
            go("second", &["--frames", "1-5:2"]) == some(&[0, 2, 4]),
            "{matte}"
        );
        assert!(go("late", &["--start", "3f"]) == some(&[3, 4]), "{matte}");
        assert!(
            go("numbered", &["--start-number", "2"]) == some(&[1, 2, 3, 4]),
            "{matte}"
        );
    }
    // Stills and mattes that lack some: 002 of these, and 003 of those.
    fs::remove_file(format!("{stills}/002.png")).unwrap();
    fs::remove_file(format!("{mattes}/003.png")).unwrap();
    for (n, (input, matte)) in [
        (pattern(&stills), pattern(&mattes)),
        (stills.clone(), mattes.clone()),
        (stills.clone(), pattern(&mattes)),
    ]
    .iter()
    .enumerate()
    {
        let out = folder.path(&format!("gaps{n}"));
        let (code, text) = refused(&[input, &format!("{out}/"), "-f", BOX, "--matte", matte]);
        let words = "there is no picture for";
        assert!(
            code == 1 && text.contains(words) && text.contains("003.png"),
            "{text}"
        );
        fs::rename(format!("{stills}/003.png"), format!("{stills}/.003")).unwrap();
        assert!(
            run(input, matte, &out, &[]) == some(&[0, 3, 4]),
            "{input} {matte}"
        );
        fs::rename(format!("{stills}/.003"), format!("{stills}/003.png")).unwrap();
    }
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let folder = Folder::new();
    let clip = folder.clip("yuv420p");
    let (short, out) = (folder.noise("short", 29), folder.path("out.mkv"));
    let small = folder.path("small.png");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "color=gray:size=80x64",
        "-frames:v",
        "1",
        &small,
    ]);
    let bad = folder.write("bad.txt", "# fine\n4x4+1+1\n0:05..0:03 4x4+1+1\n");
    let empty = folder.write("empty.txt", "# nothing\n");
    let long_line = folder.write("long.txt", &"root:x:0:0:root:/root:/bin/bash ".repeat(999));
    for (options, code, parts) in [
        (&["--region", "200:100:10:20"][..], 2, &["200x100+10+20"][..]),
        (&["--region", "200x100"], 2, &["200x100+X+Y"]),
        (&["--region", "0x4+1+1"], 2, &["is empty"]),
        (&["--region", "4x4+96+1"], 2, &["4x4+96+1 lies outside", "96x64"]),
        (&["--region", "4x4+1+1 -> 4x4+9+1"], 2, &["times of both ends"]),
        (
            &["--regions", &bad],
            2,
            &["bad.txt, line 3", "ends before it begins"],
        ),
        (&["--regions", &empty], 2, &["empty.txt has no regions"]),
        // No more of any file is printed than shows what is wrong with it.
        (
            &["--regions", &long_line],
            2,
            &["line 1: 'root:x:0:0:root:/root:/bin/bash root:x:0...' is no rectangle"],
        ),
        (
            &["--regions", "/no/such.txt"],
            2,
            &["/no/such.txt cannot be read", "No such file"],
        ),
        // Opened, a pipe would be waited for, and a device might have no end.
        (
            &["--regions", "/dev/zero"],
            2,
            &["/dev/zero cannot be read: it is no regular file"],
        ),
        (&["--matte", "/no/such.png"], 1, &["/no/such.png"]),
        (
            &["--matte", &small],
            2,
            &["small.png is 80x64, and the picture 96x64"],
        ),
        (
            &["--matte", &short],
            1,
            &["short ends after 29 of the input", "frame 29"],
        ),
        (&["--matte", &out], 2, &["both matte and output"]),
        (&["--outside"], 2, &["--region, --regions or --matte"]),
        (
            &["--fields", "--region", "4x4+1+1"],
            2,
            &["--region counts the rows"],
        ),
    ] {
        let (found, text) = refused(&[&[&clip, &out, "-f", BOX][..], options].concat());
        assert_eq!(found, code, "{options:?}: {text}");
        for part in parts {
            assert!(text.contains(part), "{options:?}: {text}");
        }
        assert_eq!(text.matches("error: ").count(), 1, "{options:?}: {text}");
        assert!(!Path::new(&out).exists(), "{options:?} left an output");
    }
}

#[test]
fn what_the_output_would_overwrite_is_refused() {
    let folder = Folder::new();
    let (clip, short) = (folder.clip("yuv420p"), folder.noise("short", 29));
    let lines = folder.write("lines.txt", "4x4+1+1\n");
    let onto = format!("raw:{lines}");
    let (code, text) = refused(&[&clip, &onto, "-f", BOX, "--regions", &lines]);
    assert!(
        code == 2 && text.contains("lines.txt is both file of regions and output"),
        "{text}"
    );
    let (stills, pattern) = (folder.noise("stills", 2), format!("{short}/%03d.png"));
    let (code, text) = refused(&[&stills, &short, "-f", BOX, "--matte", &pattern]);
    assert!(code == 2 && text.contains("both input and output"), "{text}");
}

#[test]
fn what_of_a_part_is_not_used_is_a_warning_and_an_error_where_strict() {
    let folder = Folder::new();
    let (clip, out) = (folder.clip("yuv420p"), folder.path("out.mkv"));
    // More mattes than frames: a warning, and an error where strict.
    let long = folder.noise("long", 31);
    let (options, part) = (
        ["--matte", &long],
        "long has more pictures than the input: 30 were used",
    );
    let text = filtered(&[&[&clip, &out, "-f", BOX][..], &options].concat());
    let warnings: Vec<&str> = text.lines().filter(|l| l.starts_with("warning: ")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains(part), "{text}");
    fs::remove_file(&out).unwrap();
    let (code, text) = refused(&[&[&clip, &out, "-f", BOX, "--strict"][..], &options].concat());
    assert!(code == 1 && text.contains(part), "{text}");
    assert!(!Path::new(&out).exists(), "a strict run left an output");
    // What leaves the picture, or comes into it, is ordinary.
    for region in ["0..1 4x4+90+1 -> 4x4+110+1", "0..1 4x4-20+1 -> 4x4+10+1"] {
        let text = filtered(&[&clip, &out, "-f", BOX, "--strict", "--region", region]);
        assert!(!text.contains("warning"), "{text}");
    }
}

#[test]
fn plans_and_reports_name_the_part() {
    let folder = Folder::new();
    let clip = folder.clip("yuv420p");
    let matte = format!("{}/001.png", folder.noise("matte", 1));
    let report = folder.path("run.json");
    let run = [
        &clip,
        "null:",
        "-f",
        BOX,
        "--engine",
        "cpu",
        "--region",
        "40x30+7+9",
        "--matte",
        &matte,
    ];
    let done = framepipe(&[&run[..], &["--dry-run"]].concat());
    let plan = String::from_utf8(done.stdout).unwrap();
    let part = format!("; only 40x30+7+9, by matte {matte}");
    assert!(plan.contains(&part), "{plan}");
    filtered(&[&run[..], &["--outside", "--report", &report]].concat());
    let text = fs::read_to_string(&report).unwrap();
    assert!(text.contains("; outside of 40x30+7+9, by matte"), "{text}");
}

#[test]
fn a_strangers_input_may_have_regions_and_a_matte() {
    let folder = Folder::new();
    let clip = folder.clip("yuv420p");
    let matte = format!("{}/001.png", folder.noise("matte", 1));
    let regions = folder.write("regions.txt", "40x30+7+9\n");
    let run = |out: &str, options: &[&str]| {
        fs::create_dir_all(folder.path("out")).unwrap();
        let out = folder.path(&format!("out/{out}.y4m"));
        let part = ["--regions", &regions, "--matte", &matte];
        filtered(&[&[&clip, &out, "-f", BOX][..], &part, options].concat());
        fs::read(out).unwrap()
    };
    assert!(run("trusted", &[]) == run("untrusted", &["--untrusted"]));
}

#[test]
fn a_matte_that_goes_silent_ends_the_run() {
    let folder = Folder::new();
    let clip = folder.clip("yuv420p");
    let (pipe, out) = (folder.path("matte.y4m"), folder.path("out.mkv"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let bytes = ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "color=gray:size=96x64",
        "-frames:v",
        "9",
        "-pix_fmt",
        "yuv420p",
        "-f",
        "yuv4mpegpipe",
        "-",
    ]);
    // Three frames and a part of the fourth, and then nothing for as long as the run goes on.
    let part = bytes.len() / 9 * 3 + 500;
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let (name, began) = (pipe.clone(), std::time::Instant::now());
    let writer = std::thread::spawn(move || {
        let mut pipe = fs::OpenOptions::new().write(true).open(name).unwrap();
        std::io::Write::write_all(&mut pipe, &bytes[..part]).unwrap();
        let _ = waiting.recv_timeout(std::time::Duration::from_secs(60));
    });
    let (code, text) = refused(&[&clip, &out, "-f", BOX, "--matte", &pipe, "--timeout", "1"]);
    assert!(began.elapsed().as_secs() < 50, "it waited for the writer");
    let _ = done.send(());
    writer.join().unwrap();
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("cannot filter frame 3: ") && text.contains("gave nothing for 1 s"),
        "{text}"
    );
    assert!(!Path::new(&out).exists());
}
