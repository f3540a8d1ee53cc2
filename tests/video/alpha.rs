//! Alpha, palettes and animations through the program, judged by FFmpeg's own programs and by pixels that are
//! known.

use crate::common::ffprobe;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WIDTH: usize = 33;
const HEIGHT: usize = 17;
const FRAMES: usize = 3;

/// Alpha in every awkward shade.
const SHADES: [u8; 6] = [0, 1, 127, 128, 254, 255];

/// Frames of RGBA.
type Frames = Vec<Vec<u8>>;

fn frames(
    count: usize,
    (width, height): (usize, usize),
    pixel: impl Fn(usize, usize, usize) -> [u8; 4],
) -> Frames {
    let frame = |f| {
        (0..width * height)
            .flat_map(|at| pixel(f, at % width, at / width))
            .collect()
    };
    (0..count).map(frame).collect()
}

/// A gradient that moves, with alpha in blocks of every shade.
fn shaded() -> Frames {
    frames(FRAMES, (WIDTH, HEIGHT), |f, x, y| {
        let shade = SHADES[((x + 3 * f) / 8 + y / 9) % SHADES.len()];
        [60 + 5 * x as u8, 40 + 8 * y as u8, 90 + 20 * f as u8, shade]
    })
}

/// The same without alpha.
fn opaque() -> Frames {
    let mut frames = shaded();
    for pixel in frames.iter_mut().flat_map(|f| f.chunks_exact_mut(4)) {
        pixel[3] = 255;
    }
    frames
}

/// Standard output of FFmpeg, which must succeed, with `input` on its standard input.
fn ffmpeg(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("ffmpeg")
        .args(["-y", "-v", "error"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        // FFmpeg may have enough before the end.
        let _ = stdin.write_all(&input);
    });
    let done = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ffmpeg {arguments:?}: {said}");
    done.stdout
}

/// Encodes frames with FFmpeg, ten a second.
fn encode(frames: &Frames, (width, height): (usize, usize), path: &Path, options: &[&str]) {
    let size = format!("{width}x{height}");
    let input = [
        "-f", "rawvideo", "-pix_fmt", "rgba", "-s", &size, "-r", "10", "-i", "-",
    ];
    let all = [&input, options, &[path.to_str().unwrap()]].concat();
    ffmpeg(&all, &frames.concat());
}

fn probe(path: &Path, entries: &str) -> String {
    let wanted = [
        "-select_streams",
        "v:0",
        "-of",
        "csv=p=0",
        "-show_entries",
        entries,
    ];
    let done = ffprobe(path, &[&["-v", "error"], &wanted[..]].concat());
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A file's frames as FFmpeg decodes them to RGBA, alpha of VP8 and VP9 included.
fn decoded(path: &Path, size: (usize, usize)) -> Frames {
    // FFmpeg's own decoders leave alpha out. Matroska names the codec in its head.
    let file = fs::read(path).unwrap_or_default();
    let is_of = |codec: &[u8]| file.windows(codec.len()).any(|bytes| bytes == codec);
    let decoder = match () {
        () if is_of(b"V_VP8") => vec!["-c:v", "libvpx"],
        () if is_of(b"V_VP9") => vec!["-c:v", "libvpx-vp9"],
        () => vec![],
    };
    let name = path.to_str().unwrap();
    let after = [
        "-i",
        name,
        "-fps_mode",
        "passthrough",
        "-pix_fmt",
        "rgba",
        "-f",
        "rawvideo",
        "-",
    ];
    let bytes = ffmpeg(&[&decoder[..], &after].concat(), &[]);
    bytes
        .chunks_exact(4 * size.0 * size.1)
        .map(<[u8]>::to_vec)
        .collect()
}

/// Times of a file's frames, in seconds.
fn times(path: &Path) -> Vec<f64> {
    let text = probe(path, "frame=pts_time");
    let lines = text.lines().map(|line| line.trim_end_matches(','));
    lines.map(|line| line.parse().unwrap()).collect()
}

/// What the program said.
struct Said {
    succeeded: bool,
    text: String,
}

impl Said {
    fn warnings(&self) -> Vec<&str> {
        self.text
            .lines()
            .filter(|line| line.starts_with("warning"))
            .collect()
    }
}

/// Filters with a mask that changes nothing.
fn filter(input: &Path, output: &str, options: &[&str]) -> Said {
    let done = Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .arg("filter")
        .arg(input)
        .args([
            output,
            "--filter",
            "mask:rows=1",
            "--overwrite",
            "--engine",
            "cpu",
        ])
        .args(options)
        .output()
        .unwrap();
    Said {
        succeeded: done.status.success(),
        text: String::from_utf8(done.stderr).unwrap(),
    }
}

fn filtered(input: &Path, output: &Path, options: &[&str]) -> Said {
    let said = filter(input, output.to_str().unwrap(), options);
    assert!(
        said.succeeded,
        "{} -> {}: {}",
        input.display(),
        output.display(),
        said.text
    );
    said
}

/// A file's frames as the program itself reads them: FFmpeg 5.1 does not read animated WebP.
fn read(path: &Path, size: (usize, usize)) -> Frames {
    let raw = path.with_extension("raw");
    let said = filter(
        path,
        &format!("raw:{}", raw.display()),
        &["--pixel-format", "rgba"],
    );
    assert!(said.succeeded, "{}", said.text);
    let bytes = fs::read(raw).unwrap();
    bytes
        .chunks_exact(4 * size.0 * size.1)
        .map(<[u8]>::to_vec)
        .collect()
}

fn frames_of(path: &Path) -> Frames {
    if path.extension().is_some_and(|e| e == "webp") {
        read(path, (WIDTH, HEIGHT))
    } else if path.is_dir() {
        decoded(&path.join("%03d.png"), (WIDTH, HEIGHT))
    } else {
        decoded(path, (WIDTH, HEIGHT))
    }
}

/// The largest difference of alpha, and of the colours of pixels that are at least half opaque.
fn differences(got: &Frames, want: &Frames, name: &str) -> (u8, u8) {
    assert_eq!(got.len(), want.len(), "{name}");
    let mut most = (0, 0);
    for (got, want) in got.concat().chunks_exact(4).zip(want.concat().chunks_exact(4)) {
        most.0 = most.0.max(got[3].abs_diff(want[3]));
        if want[3] >= 128 {
            let colour = (0..3).map(|i| got[i].abs_diff(want[i])).max().unwrap();
            most.1 = most.1.max(colour);
        }
    }
    most
}

/// Alpha as GIF has it.
fn cut(frames: &Frames) -> Frames {
    let mut frames = frames.clone();
    for pixel in frames.iter_mut().flat_map(|f| f.chunks_exact_mut(4)) {
        pixel[3] = if pixel[3] < 128 { 0 } else { 255 };
    }
    frames
}

/// Makes `input` in `folder`, and gives its path.
fn make(input: &str, frames: &Frames, folder: &Path) -> PathBuf {
    let size = (WIDTH, HEIGHT);
    let make = |name: &str, options: &[&str]| {
        let path = folder.join(name);
        encode(frames, size, &path, options);
        path
    };
    match input {
        "png" => {
            fs::create_dir(folder.join("stills")).unwrap();
            make("stills/%03d.png", &[]);
            folder.join("stills")
        }
        "gif" => {
            let palette = "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1";
            make("in.gif", &["-filter_complex", palette])
        }
        "vp8" => make(
            "in8.webm",
            &[
                "-c:v",
                "libvpx",
                "-pix_fmt",
                "yuva420p",
                "-auto-alt-ref",
                "0",
                "-crf",
                "4",
                "-b:v",
                "2M",
            ],
        ),
        "vp9" => make(
            "in9.webm",
            &[
                "-c:v",
                "libvpx-vp9",
                "-pix_fmt",
                "yuva420p",
                "-crf",
                "4",
                "-b:v",
                "0",
            ],
        ),
        "prores" => make("in4444.mov", &["-c:v", "prores_ks"]),
        "qtrle" => make("in.mov", &["-c:v", "qtrle"]),
        "apng" => make("in.apng", &[]),
        "webp" => make("in.webp", &["-c:v", "libwebp_anim", "-lossless", "1"]),
        other => panic!("{other}"),
    }
}

/// Makes the alpha of a ProRes file what its 12 bits say: of many FFmpeg's RGBA has one more.
fn scale_alpha(frames: &mut Frames, file: &Path) {
    let format = "yuva444p12le";
    assert_eq!(probe(file, "stream=pix_fmt"), format);
    let name = file.to_str().unwrap();
    let samples = ffmpeg(&["-i", name, "-f", "rawvideo", "-pix_fmt", format, "-"], &[]);
    let planes = samples.chunks_exact(2 * WIDTH * HEIGHT);
    for (frame, alpha) in frames.iter_mut().zip(planes.skip(3).step_by(4)) {
        for (pixel, word) in frame.chunks_exact_mut(4).zip(alpha.as_chunks().0) {
            let exact = f64::from(u16::from_le_bytes(*word)) * 255.0 / 4095.0;
            pixel[3] = exact.round() as u8;
        }
    }
}

/// Goes from `input` to every container, with alpha kept within what each can hold, or lost with a warning
/// that names it.
fn goes_everywhere(input: &str) {
    let folder = tempfile::tempdir().unwrap();
    let from = make(input, &shaded(), folder.path());
    let mut want = frames_of(&from);
    assert_eq!(want.len(), FRAMES);
    let yuv = matches!(input, "vp8" | "vp9" | "prores");
    if input == "prores" {
        scale_alpha(&mut want, &from);
    }
    for to in ["webm", "mkv", "mov", "apng", "webp", "gif", "mp4", "avi"] {
        let name = format!("{input} -> {to}");
        let output = folder.path().join(format!("out.{to}"));
        let options: &[&str] = match to {
            "webp" => &["--encoder-option", "lossless=1"],
            // x265 4.1 writes past its memory where pictures of 4:4:4 are as small as these.
            "mp4" => &["--encoder", "libx264"],
            _ => &[],
        };
        let said = filtered(&from, &output, options);
        let warnings = said.warnings();
        let names_alpha = warnings
            .iter()
            .any(|w| w.contains("alpha") && !w.contains("pixels with alpha 0"));
        if matches!(to, "mp4" | "avi") {
            assert!(names_alpha, "{name}: {}", said.text);
            let strict = filter(&from, output.to_str().unwrap(), &["--strict"]);
            // Depth may be lost as well, which shows before the pictures.
            let names_loss = strict.text.contains("alpha") || strict.text.contains("depth (");
            assert!(!strict.succeeded && names_loss, "{name}: {}", strict.text);
            continue;
        }
        let got = frames_of(&output);
        let (alpha, colour) = match to {
            "gif" => differences(&got, &cut(&want), &name),
            _ => differences(&got, &want, &name),
        };
        let is_half = want.concat().chunks_exact(4).any(|p| !matches!(p[3], 0 | 255));
        assert_eq!(names_alpha, to == "gif" && is_half, "{name}: {}", said.text);
        let most_alpha = match to {
            "webm" | "mkv" => 2,
            // Between 8, 10 and 12 bits.
            _ if yuv => 1,
            _ => 0,
        };
        assert!(alpha <= most_alpha, "{name}: alpha differs by {alpha}");
        let most_colour = match to {
            // 4:2:0 mixes the colours of neighbours, opaque or not; few colours and other YUV are near.
            "webm" | "mkv" => 90,
            // WebP is 4:2:0, too, or RGB.
            "webp" if yuv => 40,
            "gif" if input == "gif" => 0,
            // Colours beyond 256 are near.
            "gif" => 8,
            _ if yuv => 5,
            _ => 0,
        };
        assert!(colour <= most_colour, "{name}: colours differ by {colour}");
    }
}

macro_rules! matrix {
    ($($name:ident: $input:literal,)*) => {
        $(#[test]
        fn $name() {
            goes_everywhere($input);
        })*
    };
}

matrix! {
    alpha_of_stills_goes_everywhere: "png",
    alpha_of_gif_goes_everywhere: "gif",
    alpha_of_vp8_goes_everywhere: "vp8",
    alpha_of_vp9_goes_everywhere: "vp9",
    alpha_of_prores_goes_everywhere: "prores",
    alpha_of_quicktime_animation_goes_everywhere: "qtrle",
    alpha_of_animated_png_goes_everywhere: "apng",
    alpha_of_animated_webp_goes_everywhere: "webp",
}

#[test]
fn encoders_are_chosen_for_alpha_where_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = |from: &Path, to: &str| {
        let output = folder.path().join(to);
        filtered(from, &output, &[]);
        probe(&output, "stream=codec_name,pix_fmt")
    };
    let stills = make("png", &shaded(), folder.path());
    let prores = make("prores", &shaded(), folder.path());
    let webm = make("vp9", &shaded(), folder.path());
    assert_eq!(chosen(&stills, "a.mov"), "qtrle,argb");
    assert!(chosen(&prores, "b.mov").starts_with("prores,yuva444p1"));
    assert!(chosen(&webm, "c.mov").starts_with("prores,yuva444p1"));
    assert_eq!(chosen(&stills, "d.mkv"), "vp9,yuv420p");
    assert_eq!(chosen(&prores, "e.mkv").split(',').next(), Some("ffv1"));
    assert_eq!(probe(&folder.path().join("d.mkv"), "stream_tags=alpha_mode"), "1");
    // VP9 alpha that only Matroska holds, and marks that are no longer true.
    let said = filtered(&webm, &folder.path().join("f.mp4"), &["--encoder", "libvpx-vp9"]);
    assert!(said.text.contains("alpha of 3 frames"), "{}", said.text);
    filtered(&webm, &folder.path().join("g.mkv"), &["--encoder", "libx264"]);
    assert_eq!(probe(&folder.path().join("g.mkv"), "stream_tags=alpha_mode"), "");
    // An encoder that takes alpha and drops it is found out.
    let even = folder.path().join("even.mov");
    let half = frames(2, (32, 16), |_, x, _| [9, 9, 9, if x < 16 { 100 } else { 255 }]);
    encode(&half, (32, 16), &even, &["-c:v", "qtrle"]);
    let said = filtered(&even, &folder.path().join("h.mov"), &["--encoder", "hap"]);
    assert!(said.text.contains("alpha is not kept"), "{}", said.text);
    let strict = filter(
        &even,
        folder.path().join("i.mov").to_str().unwrap(),
        &["--encoder", "hap", "--strict"],
    );
    assert!(
        !strict.succeeded && strict.text.contains("alpha is not kept"),
        "{}",
        strict.text
    );
    assert!(!folder.path().join("i.mov").exists());
}

#[test]
fn nothing_is_said_of_alpha_where_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain.mp4");
    encode(
        &opaque(),
        (WIDTH, HEIGHT),
        &plain,
        &["-c:v", "libx264", "-pix_fmt", "yuv444p"],
    );
    let mut inputs = vec![plain];
    // All of these have a format with alpha, which no pixel uses.
    inputs.extend(["png", "gif", "apng", "webp", "qtrle"].map(|input| make(input, &opaque(), folder.path())));
    for from in &inputs {
        for to in ["webm", "mkv", "mov", "apng", "webp", "gif", "mp4", "avi"] {
            let output = folder.path().join(format!("out.{to}"));
            // Else GIF loses colours.
            let palette: &[&str] = match to {
                "gif" => &["--pixel-format", "pal8"],
                _ => &[],
            };
            let said = filtered(from, &output, &[&["--strict"], palette].concat());
            assert_eq!(said.warnings(), Vec::<&str>::new(), "{} -> {to}", from.display());
        }
        filtered(from, &folder.path().join("h.mov"), &[]);
        let codec = probe(&folder.path().join("h.mov"), "stream=codec_name");
        assert_eq!(codec, "h264", "{}", from.display());
    }
}

#[test]
fn gif_frames_are_exactly_what_was_put_in() {
    let folder = tempfile::tempdir().unwrap();
    let size = (16, 16);
    // Opaque with 256 colours, a hole, opaque again, unchanged, all transparent, other colours, a hole that
    // moves.
    let cases = frames(8, size, |f, x, y| match f {
        0 | 2 | 3 => [(x + 16 * y) as u8, 9, 200, 255],
        1 if (4..9).contains(&x) && y > 3 => [0; 4],
        1 => [(x + 16 * y) as u8, 9, 200, 255],
        4 => [0; 4],
        5 => [9, (x + 16 * y) as u8, (3 * x) as u8, 255],
        _ if x / 4 == f - 5 => [0; 4],
        _ => [(8 * x) as u8, 7, (x + y) as u8, 255],
    });
    for skip in 0..cases.len() {
        let case: Frames = cases[skip..].to_vec();
        let stills = folder.path().join(format!("{skip}"));
        fs::create_dir(&stills).unwrap();
        encode(&case, size, &stills.join("%03d.png"), &[]);
        let gif = folder.path().join(format!("{skip}.gif"));
        let said = filtered(&stills, &gif, &["--fps", "10"]);
        let warnings = said.warnings();
        assert_eq!(
            warnings.len(),
            usize::from(skip <= 5),
            "from {skip}: {warnings:?}"
        );
        assert!(
            warnings
                .iter()
                .all(|warning| warning.contains("colours (a palette holds 256"))
        );
        let got = decoded(&gif, size);
        assert_eq!(got.len(), case.len(), "from {skip}");
        for (at, (got, want)) in got.iter().zip(&case).enumerate() {
            for (got, want) in got.chunks_exact(4).zip(want.chunks_exact(4)) {
                assert_eq!(got[3], want[3], "from {skip}, frame {at}");
                // A frame of 256 colours before a hole needs one of them for the hole.
                let most = if matches!(at + skip, 0 | 3 | 5) { 2 } else { 0 };
                let off = (0..3).map(|i| got[i].abs_diff(want[i])).max().unwrap();
                assert!(
                    want[3] == 0 || off <= most,
                    "from {skip}, frame {at}: {got:?} {want:?}"
                );
            }
        }
        // The program's GIF through the program again stays the same, pixel by pixel.
        let again = folder.path().join("again.gif");
        filtered(&gif, &again, &[]);
        assert_eq!(decoded(&again, size), decoded(&gif, size), "from {skip}");
    }
}

#[test]
fn a_gif_through_a_pipe_is_read_like_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (gif, out) = (folder.path().join("in.gif"), folder.path().join("out.mkv"));
    // More than FFmpeg reads at a time.
    let source = "testsrc2=s=160x160:r=25:d=0.4,noise=alls=60:allf=t";
    ffmpeg(&["-f", "lavfi", "-i", source, gif.to_str().unwrap()], &[]);
    assert!(fs::metadata(&gif).unwrap().len() > 100_000);
    let options = ["--encoder", "ffv1"];
    filtered(&gif, &out, &options);
    let expected = frames_of(&out);
    let mut cat = Command::new("cat")
        .arg(&gif)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .args(["filter", "--filter", "mask:rows=1", "--overwrite", "/dev/stdin"])
        .arg(&out)
        .args(options)
        .stdin(cat.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(cat.wait().unwrap().success());
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !said.contains("warning"), "{said}");
    assert_eq!(frames_of(&out), expected);
}

#[test]
fn gif_and_animated_png_keep_their_times_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let slides = folder.path().join("slides.gif");
    let two: Frames = shaded()[..2].to_vec();
    let graph = "setpts=N*2/TB,split[a][b];[a]palettegen[p];[b][p]paletteuse";
    encode(
        &two,
        (WIDTH, HEIGHT),
        &slides,
        &[
            "-filter_complex",
            graph,
            "-fps_mode",
            "vfr",
            "-final_delay",
            "500",
        ],
    );
    for to in ["gif", "apng", "webp"] {
        let output = folder.path().join(format!("slides-2.{to}"));
        filtered(&slides, &output, &[]);
        let from = if to == "webp" {
            let gif = folder.path().join("of-webp.gif");
            filtered(&output, &gif, &[]);
            gif
        } else {
            output
        };
        assert_eq!(times(&from), [0.0, 2.0], "{to}");
        let length: f64 = probe(&from, "packet=duration_time")
            .lines()
            .last()
            .unwrap()
            .parse()
            .unwrap();
        assert!(
            (length - 5.0).abs() < 0.011,
            "{to}: the last frame lasts {length} s"
        );
    }
}

/// The delays of an APNG's frames, as fractions.
fn delays(path: &Path) -> Vec<(u16, u16)> {
    let bytes = fs::read(path).unwrap();
    let heads = bytes.windows(4).enumerate().filter(|(_, name)| *name == b"fcTL");
    let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    heads.map(|(at, _)| (number(at + 24), number(at + 26))).collect()
}

#[test]
fn long_and_fractional_times_of_animations_are_exact_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let two: Frames = opaque()[..2].to_vec();
    let graph = "setpts=N*5,split[a][b];[a]palettegen[p];[b][p]paletteuse";
    let slow = [
        "-filter_complex",
        graph,
        "-fps_mode",
        "vfr",
        "-final_delay",
        "10000",
    ];
    encode(&two, (WIDTH, HEIGHT), &at("slow.gif"), &slow);
    filtered(&at("slow.gif"), &at("slow.apng"), &[]);
    let exact =
        |(num, den): (u16, u16), (wanted, of): (u32, u32)| u32::from(num) * of == wanted * u32::from(den);
    let of_slow = delays(&at("slow.apng"));
    assert!(
        exact(of_slow[0], (1, 2)) && exact(of_slow[1], (100, 1)),
        "{of_slow:?}"
    );
    let stills = at("stills");
    fs::create_dir(&stills).unwrap();
    encode(&opaque(), (WIDTH, HEIGHT), &stills.join("%d.png"), &[]);
    for (rate, wanted) in [
        ("60", (1, 60)),
        ("30000/1001", (1001, 30_000)),
        ("1/1000", (1000, 1)),
    ] {
        let said = filtered(&stills, &at("out.apng"), &["--fps", rate]);
        let of_all = delays(&at("out.apng"));
        assert!(
            of_all.len() == 3 && of_all.iter().all(|&delay| exact(delay, wanted)),
            "{rate}: {of_all:?}"
        );
        assert!(said.warnings().is_empty(), "{}", said.text);
    }
    for (rate, to, words) in [
        (
            "1/1000",
            "out.gif",
            "3 frames are shown for 655.35 s instead of up to 1000 s, because gif",
        ),
        (
            "1/70000",
            "out.apng",
            "3 frames are shown for 65535 s instead of up to 70000 s, because apng",
        ),
    ] {
        let said = filtered(&stills, &at(to), &["--fps", rate]);
        assert!(said.warnings().iter().any(|w| w.contains(words)), "{}", said.text);
        assert!(!filter(&stills, at(to).to_str().unwrap(), &["--fps", rate, "--strict"]).succeeded);
    }
    let said = filter(&stills, at("out.webp").to_str().unwrap(), &["--fps", "1/20000"]);
    let words = "frame 0 is shown for 20000 s, and WebP has room for 16777.215 s at most";
    assert!(!said.succeeded && said.text.contains(words), "{}", said.text);
    filtered(&stills, &at("out.webp"), &["--fps", "1/16000"]);
}

/// Peak signal-to-noise ratio of colours, in decibels.
fn psnr(got: &Frames, want: &Frames) -> f64 {
    let (got, want) = (got.concat(), want.concat());
    assert_eq!(got.len(), want.len());
    let pairs = got.chunks_exact(4).zip(want.chunks_exact(4));
    let square = |(got, want): (&[u8], &[u8])| -> f64 {
        (0..3).map(|i| f64::from(got[i].abs_diff(want[i])).powi(2)).sum()
    };
    let mean = pairs.map(square).sum::<f64>() / (want.len() as f64 * 0.75);
    10.0 * (255.0 * 255.0 / mean).log10()
}

#[test]
fn palettes_of_photographs_are_as_good_as_ffmpegs() {
    let folder = tempfile::tempdir().unwrap();
    let size = (160, 120);
    // A sky, a sun and some grain.
    let photo = frames(2, size, |f, x, y| {
        let (sun_x, sun_y) = (x as f64 - 100.0 - 5.0 * f as f64, y as f64 - 40.0);
        let glow = 150.0 * (-(sun_x * sun_x + sun_y * sun_y) / 900.0).exp();
        let grain = ((x * 7919 + y * 104_729 + f * 31) % 7) as f64;
        let level = |base: f64, slope: f64| (base + slope * y as f64 + glow + grain).clamp(0.0, 255.0) as u8;
        [
            level(40.0, 0.5),
            level(70.0, 0.7),
            level(140.0 - 0.3 * x as f64, -0.2),
            255,
        ]
    });
    let stills = folder.path().join("stills");
    fs::create_dir(&stills).unwrap();
    encode(&photo, size, &stills.join("%03d.png"), &[]);
    let (ours, theirs) = (folder.path().join("ours.gif"), folder.path().join("theirs.gif"));
    let said = filtered(&stills, &ours, &[]);
    assert!(
        said.text.contains("2 frames reduced to 256 colours"),
        "{}",
        said.text
    );
    let graph = "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1";
    encode(&photo, size, &theirs, &["-filter_complex", graph]);
    let (ours, theirs) = (
        psnr(&decoded(&ours, size), &photo),
        psnr(&decoded(&theirs, size), &photo),
    );
    println!("PSNR {ours:.2} dB, FFmpeg's {theirs:.2} dB");
    assert!(
        ours >= theirs - 1.0,
        "{ours:.2} dB, FFmpeg's palette gives {theirs:.2} dB"
    );
}

#[test]
fn palettes_are_for_gif_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let stills = make("png", &cut(&shaded()), folder.path());
    for (encoder, format) in [("png", "rgba"), ("zmbv", "bgr0")] {
        let output = folder.path().join(format!("{encoder}.nut"));
        filtered(&stills, &output, &["--encoder", encoder]);
        assert_eq!(probe(&output, "stream=pix_fmt"), format);
    }
    let output = folder.path().join("pal8.nut");
    filtered(&stills, &output, &["--encoder", "png", "--pixel-format", "pal8"]);
    assert_eq!(probe(&output, "stream=pix_fmt"), "pal8");
    let (alpha, colour) = differences(&frames_of(&output), &cut(&shaded()), "pal8");
    assert!(
        alpha == 0 && colour <= 16,
        "alpha differs by {alpha}, colours by {colour}"
    );
}

#[test]
fn animated_png_is_a_video_whatever_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let moving = folder.path().join("moving.apng");
    encode(&shaded(), (WIDTH, HEIGHT), &moving, &["-f", "apng"]);
    let named_png = folder.path().join("named.png");
    fs::copy(&moving, &named_png).unwrap();
    for input in [&moving, &named_png] {
        let output = folder.path().join("out.mkv");
        let said = filtered(input, &output, &["--encoder", "ffv1"]);
        assert_eq!(said.warnings(), Vec::<&str>::new());
        assert_eq!(differences(&frames_of(&output), &shaded(), "apng"), (0, 0));
        assert_eq!(times(&output), [0.0, 0.1, 0.2]);
    }
    // Frames of no delay are shown for as long by browsers.
    let mut bytes = fs::read(&moving).unwrap();
    for at in 0..bytes.len() - 34 {
        if bytes[at..].starts_with(b"fcTL") {
            bytes[at + 24..at + 26].fill(0);
            let mut crc = flate2::Crc::new();
            crc.update(&bytes[at..at + 30]);
            bytes[at + 30..at + 34].copy_from_slice(&crc.sum().to_be_bytes());
        }
    }
    let (hasty, output) = (folder.path().join("hasty.apng"), folder.path().join("hasty.mkv"));
    fs::write(&hasty, bytes).unwrap();
    filtered(&hasty, &output, &["--encoder", "ffv1", "--strict"]);
    assert_eq!(times(&output), [0.0, 0.1, 0.2]);
    // In a folder each file is a still.
    let stills = folder.path().join("stills");
    fs::create_dir(&stills).unwrap();
    fs::copy(&moving, stills.join("0.png")).unwrap();
    encode(
        &shaded()[..1].to_vec(),
        (WIDTH, HEIGHT),
        &stills.join("1.png"),
        &[],
    );
    let output = folder.path().join("stills.mkv");
    let said = filtered(&stills, &output, &["--encoder", "ffv1"]);
    assert_eq!(said.warnings().len(), 1, "{}", said.text);
    assert!(
        said.text.contains("an animation; only its first frame is read"),
        "{}",
        said.text
    );
    assert_eq!(times(&output).len(), 2);
    // A still named .png or .apng is one.
    let said = filtered(&stills.join("1.png"), &folder.path().join("still.bmp"), &[]);
    assert_eq!(said.warnings(), Vec::<&str>::new());
    let refused = filter(&moving, folder.path().join("out.png").to_str().unwrap(), &[]);
    assert!(
        !refused.succeeded && refused.text.contains(".apng"),
        "{}",
        refused.text
    );
}

/// A lossless still WebP's chunk of picture data.
fn webp_chunk(folder: &Path, size: (usize, usize), pixel: [u8; 4]) -> Vec<u8> {
    let path = folder.join("still.webp");
    let still = frames(1, size, |_, _, _| pixel);
    encode(&still, size, &path, &["-c:v", "libwebp", "-lossless", "1"]);
    let bytes = fs::read(path).unwrap();
    let mut at = 12;
    while &bytes[at..at + 4] != b"VP8L" {
        let size = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        at += 8 + size + size % 2;
    }
    bytes[at..].to_vec()
}

/// A chunk of a frame with its place, size, milliseconds and flags (1: cleared afterwards, 2: not blended).
fn webp_frame(data: &[u8], place: (usize, usize), size: (usize, usize), ms: u32, flags: u8) -> Vec<u8> {
    let three = |v: usize| (v as u32).to_le_bytes()[..3].to_vec();
    let head = [
        three(place.0 / 2),
        three(place.1 / 2),
        three(size.0 - 1),
        three(size.1 - 1),
        three(ms as usize),
        vec![flags],
    ]
    .concat();
    let length = (head.len() + data.len()) as u32;
    [
        b"ANMF".to_vec(),
        length.to_le_bytes().to_vec(),
        head,
        data.to_vec(),
    ]
    .concat()
}

#[test]
fn animated_webp_is_composed_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let size = (6, 4);
    let red = webp_chunk(folder.path(), size, [255, 0, 0, 255]);
    let green = webp_chunk(folder.path(), (2, 2), [0, 255, 0, 128]);
    let blue = webp_chunk(folder.path(), (2, 2), [0, 0, 255, 255]);
    let body = [
        b"WEBPVP8X\x0a\0\0\0\x12\0\0\0\x05\0\0\x03\0\0ANIM\x06\0\0\0\xff\xff\xff\xff\x03\0".to_vec(),
        webp_frame(&red, (0, 0), size, 100, 2),
        webp_frame(&green, (2, 2), (2, 2), 200, 0),
        webp_frame(&green, (0, 0), (2, 2), 0, 3),
        webp_frame(&blue, (4, 0), (2, 2), 700, 2),
    ]
    .concat();
    let path = folder.path().join("made.webp");
    fs::write(
        &path,
        [b"RIFF", &(body.len() as u32).to_le_bytes()[..], &body].concat(),
    )
    .unwrap();
    let got = read(&path, size);
    assert_eq!(got.len(), 4);
    let pixel = |frame: usize, x: usize, y: usize| -> [u8; 4] {
        let at = 4 * (x + size.0 * y);
        got[frame][at..at + 4].try_into().unwrap()
    };
    let (red, mixed) = ([255, 0, 0, 255], [127, 128, 0, 255]);
    assert_eq!((pixel(0, 0, 0), pixel(0, 5, 3)), (red, red));
    assert_eq!((pixel(1, 2, 2), pixel(1, 1, 1)), (mixed, red));
    assert_eq!((pixel(2, 1, 1), pixel(2, 2, 2)), ([0, 255, 0, 128], mixed));
    assert_eq!(
        (pixel(3, 1, 1)[3], pixel(3, 4, 1), pixel(3, 0, 3)),
        (0, [0, 0, 255, 255], red)
    );
    // A frame of no milliseconds is shown for a tenth of a second.
    let mkv = folder.path().join("out.mkv");
    let said = filtered(&path, &mkv, &["--encoder", "ffv1"]);
    assert!(said.text.contains("repeated 3 times"), "{}", said.text);
    assert_eq!(times(&mkv), [0.0, 0.1, 0.3, 0.4]);
    // What is cut off is reported.
    let whole = fs::read(&path).unwrap();
    let cut = folder.path().join("cut.webp");
    fs::write(&cut, &whole[..whole.len() - 6]).unwrap();
    let said = filtered(&cut, &mkv, &["--encoder", "ffv1"]);
    assert!(
        said.warnings().iter().any(|w| w.contains("incomplete")),
        "{}",
        said.text
    );
    assert!(!filter(&cut, mkv.to_str().unwrap(), &["--strict"]).succeeded);
    let apng = folder.path().join("moving.apng");
    let source = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=0.4"];
    ffmpeg(
        &[&source[..], &["-plays", "0", apng.to_str().unwrap()]].concat(),
        b"",
    );
    for (bytes, refusal) in [
        (
            whole,
            "an animated WebP cannot be read from a pipe; give the file",
        ),
        (
            fs::read(&apng).unwrap(),
            "such as APNG, cannot be read from a pipe",
        ),
    ] {
        let mut pipe = Command::new(env!("CARGO_BIN_EXE_framepipe"))
            .args(["filter", "--filter", "identity", "--overwrite", "/dev/stdin"])
            .arg(&mkv)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The pipe holds it all.
        pipe.stdin.take().unwrap().write_all(&bytes).unwrap();
        let said = pipe.wait_with_output().unwrap().stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(refusal), "{said}");
    }
}

/// An animated WebP file of these frames, whose head says that nothing of it is transparent.
fn opaque_webp(path: &Path, size: (usize, usize), frames: &[Vec<u8>]) {
    let head = [
        b"WEBPVP8X\x0a\0\0\0\x02\0\0\0".to_vec(),
        vec![size.0 as u8 - 1, 0, 0, size.1 as u8 - 1, 0, 0],
    ];
    let loops = b"ANIM\x06\0\0\0\xff\xff\xff\xff\0\0".to_vec();
    let body = [head.concat(), loops, frames.concat()].concat();
    fs::write(
        path,
        [b"RIFF", &(body.len() as u32).to_le_bytes()[..], &body].concat(),
    )
    .unwrap();
}

#[test]
fn what_an_opaque_animated_webp_clears_is_transparent() {
    let folder = tempfile::tempdir().unwrap();
    let (size, part) = ((6, 4), (2, 2));
    let red = webp_chunk(folder.path(), size, [255, 0, 0, 255]);
    let blue = webp_chunk(folder.path(), part, [0, 0, 255, 255]);
    let faint = webp_chunk(folder.path(), size, [0, 255, 0, 128]);
    let path = folder.path().join("made.webp");
    // Alpha of the last frame's pixel at (0, 0) and at (4, 2); `None` if none of the file is transparent.
    for (frames, alpha) in [
        // The whole picture is cleared, and a part is drawn.
        (
            vec![
                webp_frame(&red, (0, 0), size, 100, 3),
                webp_frame(&blue, (0, 0), part, 100, 2),
            ],
            Some((255, 0)),
        ),
        (
            vec![
                webp_frame(&red, (0, 0), size, 100, 3),
                webp_frame(&blue, (4, 2), part, 100, 0),
            ],
            Some((0, 255)),
        ),
        // A part is cleared, and another is drawn.
        (
            vec![
                webp_frame(&red, (0, 0), size, 100, 2),
                webp_frame(&blue, (4, 2), part, 100, 3),
                webp_frame(&blue, (0, 0), part, 100, 2),
            ],
            Some((255, 0)),
        ),
        // A frame is transparent of which the head says nothing.
        (
            vec![
                webp_frame(&faint, (0, 0), size, 100, 2),
                webp_frame(&blue, (0, 0), part, 100, 2),
            ],
            Some((255, 128)),
        ),
        // What is cleared is drawn over at once.
        (
            vec![
                webp_frame(&red, (0, 0), size, 100, 3),
                webp_frame(&red, (0, 0), size, 100, 2),
            ],
            None,
        ),
        (
            vec![
                webp_frame(&red, (0, 0), size, 100, 2),
                webp_frame(&blue, (4, 2), part, 100, 3),
                webp_frame(&blue, (4, 2), part, 100, 2),
            ],
            None,
        ),
    ] {
        opaque_webp(&path, size, &frames);
        let stills = folder.path().join("stills");
        filtered(&path, &stills.join(""), &[]);
        let last = stills.join(format!("{:06}.png", frames.len() - 1));
        assert_eq!(
            probe(&last, "stream=pix_fmt"),
            if alpha.is_some() { "rgba" } else { "rgb24" }
        );
        if let Some((first, other)) = alpha {
            let pixels = decoded(&last, size).remove(0);
            assert_eq!((pixels[3], pixels[4 * (4 + 2 * size.0) + 3]), (first, other));
        }
        fs::remove_dir_all(&stills).unwrap();
    }
}

#[test]
fn animated_webp_is_written_with_all_frames_and_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let stills = make("png", &shaded(), folder.path());
    let webp = folder.path().join("out.webp");
    filtered(&stills, &webp, &["--fps", "10", "--encoder-option", "lossless=1"]);
    let python = "import sys; from PIL import Image; i = Image.open(sys.argv[1])\n\
        for n in range(i.n_frames): i.seek(n); i.load(); \
        sys.stdout.buffer.write(i.convert('RGBA').tobytes())";
    let judged = Command::new("python3").args(["-c", python]).arg(&webp).output();
    if let Some(judged) = judged.ok().filter(|judged| judged.status.success()) {
        let bytes = judged.stdout.chunks_exact(4 * WIDTH * HEIGHT);
        let got: Frames = bytes.map(<[u8]>::to_vec).collect();
        assert_eq!(differences(&got, &shaded(), "webp by Pillow"), (0, 0));
    } else {
        eprintln!("skipped: Pillow is not installed, so that the program's own reader judges alone");
    }
    assert_eq!(differences(&frames_of(&webp), &shaded(), "webp"), (0, 0));
    let mkv = folder.path().join("of-webp.mkv");
    filtered(&webp, &mkv, &["--encoder", "ffv1"]);
    assert_eq!(times(&mkv), [0.0, 0.1, 0.2]);
    // One still is still a still, and a pattern gives stills.
    let one = folder.path().join("one.webp");
    filtered(&stills.join("001.png"), &one, &[]);
    assert_eq!(decoded(&one, (WIDTH, HEIGHT)).len(), 1);
    filtered(&stills, &folder.path().join("many-%d.webp"), &[]);
    assert!(folder.path().join("many-2.webp").exists());
}

#[test]
fn colours_of_srgb_are_what_webp_has() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.mkv"), folder.path().join("out.webp"));
    for (primaries, transfer, kept) in [
        ("bt709", "iec61966-2-1", true),
        ("bt2020", "iec61966-2-1", false),
        ("bt709", "smpte2084", false),
    ] {
        let tags = ["-colorspace", "smpte170m", "-color_range", "tv"];
        let colours = ["-color_primaries", primaries, "-color_trc", transfer];
        let coded = ["-pix_fmt", "yuv420p", "-c:v", "ffv1"];
        encode(
            &opaque(),
            (WIDTH, HEIGHT),
            &input,
            &[&coded[..], &tags, &colours].concat(),
        );
        let said = filtered(&input, &output, &[]);
        let warnings = said.warnings();
        let is_lost = |word: &str| {
            warnings
                .iter()
                .any(|w| w.contains("not kept") && w.contains(word))
        };
        assert_eq!(is_lost("primaries"), primaries != "bt709", "{}", said.text);
        assert_eq!(is_lost("transfer"), transfer == "smpte2084", "{}", said.text);
        assert_eq!(warnings.is_empty(), kept, "{}", said.text);
    }
}

/// How often an animation says it is shown, 0 for ever, found in its bytes.
fn plays(path: &Path) -> u32 {
    let bytes = fs::read(path).unwrap();
    let behind = |name: &[u8]| {
        let at = bytes.windows(name.len()).position(|window| window == name)?;
        Some(&bytes[at + name.len()..])
    };
    match path.extension().unwrap().to_str().unwrap() {
        "gif" => match behind(b"NETSCAPE2.0\x03\x01") {
            Some(&[low, high, ..]) => match u16::from_le_bytes([low, high]) {
                0 => 0,
                repeats => u32::from(repeats) + 1,
            },
            _ => 1,
        },
        "apng" => u32::from_be_bytes(behind(b"acTL").unwrap()[4..8].try_into().unwrap()),
        // Behind the name, 32 bits of length and 32 of a background.
        "webp" => u16::from_le_bytes(behind(b"ANIM").unwrap()[8..10].try_into().unwrap()).into(),
        other => panic!("{other}"),
    }
}

#[test]
fn animations_are_shown_as_often_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let stills = make("png", &shaded(), folder.path());
    let mut compared = 0;
    for (kind, option, ever, once, thrice) in [
        ("gif", "loop", "0", "-1", "2"),
        ("apng", "plays", "0", "1", "3"),
        ("webp", "loop", "0", "1", "3"),
    ] {
        for (value, expected) in [(ever, 0), (once, 1), (thrice, 3)] {
            let input = folder.path().join(format!("in-{expected}.{kind}"));
            let pattern = stills.join("%03d.png");
            let path = [pattern.to_str().unwrap(), input.to_str().unwrap()];
            ffmpeg(&["-i", path[0], &format!("-{option}"), value, path[1]], &[]);
            assert_eq!(plays(&input), expected, "{input:?}");
            for to in ["gif", "apng", "webp"] {
                let output = folder.path().join(format!("from-{kind}-{expected}.{to}"));
                filtered(&input, &output, &[]);
                assert_eq!(plays(&output), expected, "{output:?}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 27);
    // What the user asks for counts, and of no account are inputs that say nothing.
    let input = folder.path().join("in-3.gif");
    let output = folder.path().join("asked.gif");
    filtered(&input, &output, &["--encoder-option", "loop=6"]);
    assert_eq!(plays(&output), 7);
    filtered(&stills, &output, &["--fps", "10"]);
    assert_eq!(plays(&output), 0);
}

/// tests/media/alpha.hevc holds ten frames of gradients with alpha from left to right in a layer of its own,
/// made by x265 4.3 with `--alpha --crf 10 --preset ultrafast`, which few distributions build in.
#[test]
fn alpha_layers_of_hevc_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = Path::new("tests/media/alpha.hevc");
    let output = folder.path().join("out.mkv");
    let said = filtered(input, &output, &["--encoder", "ffv1"]);
    let alpha = |path: &Path| {
        let extract = ["-vf", "alphaextract", "-f", "rawvideo", "-pix_fmt", "gray", "-"];
        ffmpeg(&[&["-i", path.to_str().unwrap()], &extract[..]].concat(), &[])
    };
    if probe(input, "stream=pix_fmt").contains("yuva") {
        assert!(said.warnings().is_empty(), "{}", said.text);
        let found = alpha(&output);
        assert_eq!(found.len(), 10 * 64 * 64);
        assert!(found == alpha(input), "alpha differs from ffmpeg's");
        assert!(found[0] < 8 && found[63] > 240, "{} to {}", found[0], found[63]);
    } else {
        eprintln!("skipped: this FFmpeg decodes no alpha of HEVC, so that it is only named");
        assert!(
            said.warnings().iter().any(|w| w.contains("second layer")),
            "{}",
            said.text
        );
    }
}

#[test]
fn layers_that_ffmpeg_does_not_decode_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let size = (64, 64);
    let plain = frames(2, size, |_, x, y| [x as u8, y as u8, 0, 255]);
    for name in ["a.mp4", "a.hevc"] {
        let path = folder.path().join(name);
        let options = [
            "-c:v",
            "libx265",
            "-pix_fmt",
            "yuv420p",
            "-x265-params",
            "log-level=none",
        ];
        encode(&plain, size, &path, &options);
        let output = folder.path().join("out.mkv");
        let said = filtered(&path, &output, &["--preset", "ultrafast"]);
        assert!(!said.text.contains("layer"), "{}", said.text);
        // The count of layers in the video parameter set.
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(3).position(|w| w == [0x40, 0x01, 0x0c]).unwrap();
        bytes[at + 3] |= 0x10;
        fs::write(&path, bytes).unwrap();
        let said = filtered(&path, &output, &["--preset", "ultrafast"]);
        assert!(
            said.warnings().iter().any(|w| w.contains("second layer")),
            "{}",
            said.text
        );
        let strict = filter(
            &path,
            output.to_str().unwrap(),
            &["--strict", "--preset", "ultrafast"],
        );
        assert!(
            !strict.succeeded && strict.text.contains("second layer"),
            "{}",
            strict.text
        );
    }
    let avif = folder.path().join("a.avif");
    // Newer FFmpegs take the colour facts of RGB along to the gray picture, which AV1 cannot say.
    let split = "split[a][b];[b]alphaextract,format=gray,setparams=colorspace=bt709[c]";
    let options = [
        "-filter_complex",
        split,
        "-map",
        "[a]",
        "-map",
        "[c]",
        "-c:v",
        "libaom-av1",
        "-cpu-used",
        "8",
    ];
    encode(&plain, size, &avif, &options);
    let said = filtered(
        &avif,
        &folder.path().join("of-avif.mkv"),
        &["--preset", "ultrafast"],
    );
    assert!(
        said.warnings().iter().any(|w| w.contains("alpha")),
        "{}",
        said.text
    );
}

#[test]
fn alpha_that_a_pipe_cannot_hold_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("deep.mov");
    encode(
        &shaded(),
        (WIDTH, HEIGHT),
        &deep,
        &["-c:v", "png", "-pix_fmt", "rgba64be"],
    );
    let output = folder.path().join("out.y4m");
    let said = filtered(&deep, &output, &[]);
    assert!(
        said.text.contains("alpha of 3 frames is not kept"),
        "{}",
        said.text
    );
    let strict = filter(&deep, output.to_str().unwrap(), &["--strict"]);
    assert!(
        !strict.succeeded && strict.text.contains("alpha"),
        "{}",
        strict.text
    );
}

/// A frame of RGBA of 16x16 with every alpha.
fn every_alpha() -> Frames {
    frames(1, (16, 16), |_, x, y| [200, 100, 50, (16 * y + x) as u8])
}

#[test]
fn alpha_between_formats_is_that_of_its_depth() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("in.raw");
    fs::write(&raw, every_alpha().concat()).unwrap();
    let input = PathBuf::from(format!("raw:16x16:rgba:25:{}", raw.display()));
    for (format, bits) in [
        ("yuva420p", 8),
        ("yuva422p", 8),
        ("yuva444p", 8),
        ("yuva444p10le", 10),
        ("gbrap12le", 12),
        ("yuva444p16le", 16),
        ("gbrap16le", 16),
    ] {
        let file = folder.path().join(format!("{format}.mkv"));
        filtered(
            &input,
            &file,
            &["--encoder", "ffv1", "--pixel-format", format, "--strict"],
        );
        let arguments = [
            "-i",
            file.to_str().unwrap(),
            "-f",
            "rawvideo",
            "-pix_fmt",
            format,
            "-",
        ];
        let samples = ffmpeg(&arguments, &[]);
        // Alpha is the last plane.
        let read = &samples[samples.len() - 256 * if bits > 8 { 2 } else { 1 }..];
        let most = (1_u32 << bits) - 1;
        let expected: Vec<u32> = (0..256).map(|v| (2 * v * most + 255) / 510).collect();
        let found: Vec<u32> = match bits {
            8 => read.iter().map(|&v| v.into()).collect(),
            _ => read
                .as_chunks()
                .0
                .iter()
                .map(|&v| u16::from_le_bytes(v).into())
                .collect(),
        };
        assert_eq!(found, expected, "{format}");
    }
}

#[test]
fn opaque_pictures_of_prores_stay_opaque() {
    let folder = tempfile::tempdir().unwrap();
    let (video, stills) = (folder.path().join("p.mov"), folder.path().join("%d.png"));
    let colour = "color=red:s=64x48:d=0.08,format=yuva444p10le";
    let made = [
        "-f",
        "lavfi",
        "-i",
        colour,
        "-c:v",
        "prores_ks",
        "-profile:v",
        "4444",
    ];
    ffmpeg(&[&made[..], &[video.to_str().unwrap()]].concat(), &[]);
    filtered(&video, &stills, &["--strict"]);
    let first = folder.path().join("1.png");
    let format = probe(&first, "stream=pix_fmt");
    let arguments = [
        "-i",
        first.to_str().unwrap(),
        "-f",
        "rawvideo",
        "-pix_fmt",
        &format,
        "-",
    ];
    let samples = ffmpeg(&arguments, &[]);
    match format.as_str() {
        // No alpha is left where every pixel is opaque.
        "rgb48be" | "rgb24" => {}
        "rgba64be" => assert!(
            samples
                .as_chunks::<8>()
                .0
                .iter()
                .all(|pixel| pixel[6..] == [255; 2])
        ),
        other => panic!("{other}"),
    }
}

#[test]
fn colours_of_one_depth_are_only_rearranged() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("in.raw"), folder.path().join("out.raw"));
    let mut state = 1_u32;
    let mut random = |depth: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as u16 & ((1_u32 << depth) - 1) as u16
    };
    // Where a format has green, blue, red and alpha: planes, or places in a pixel of so many.
    let places = |format: &str| -> (bool, Vec<usize>) {
        match format {
            "gbrp12le" | "gbrp16le" => (true, vec![0, 1, 2]),
            "gbrap12le" | "gbrap16le" => (true, vec![0, 1, 2, 3]),
            "rgb48le" => (false, vec![1, 2, 0]),
            "bgr48le" => (false, vec![1, 0, 2]),
            "rgba64le" => (false, vec![1, 2, 0, 3]),
            "bgra64le" => (false, vec![1, 0, 2, 3]),
            other => panic!("{other}"),
        }
    };
    let deep = [
        "gbrp16le",
        "gbrap16le",
        "rgb48le",
        "bgr48le",
        "rgba64le",
        "bgra64le",
    ];
    for (depth, formats) in [(12, &["gbrp12le", "gbrap12le"][..]), (16, &deep[..])] {
        for (from, to) in formats
            .iter()
            .flat_map(|from| formats.iter().map(move |to| (from, to)))
        {
            let ((from_planar, order), (to_planar, wanted)) = (places(from), places(to));
            let (count, pixels) = (order.len(), 256);
            let words: Vec<u16> = (0..count * pixels).map(|_| random(depth)).collect();
            fs::write(
                &source,
                words.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>(),
            )
            .unwrap();
            let input = PathBuf::from(format!("raw:16x16:{from}:25:{}", source.display()));
            let output = PathBuf::from(format!("raw:{}", out.display()));
            filtered(&input, &output, &["--pixel-format", to]);
            let at = |planar: bool, count: usize, pixel: usize, place: usize| match planar {
                true => place * pixels + pixel,
                false => pixel * count + place,
            };
            let mut expected = vec![((1_u32 << depth) - 1) as u16; wanted.len() * pixels];
            for pixel in 0..pixels {
                for (&from, &to) in order.iter().zip(&wanted) {
                    expected[at(to_planar, wanted.len(), pixel, to)] =
                        words[at(from_planar, count, pixel, from)];
                }
            }
            let expected: Vec<u8> = expected.iter().flat_map(|v| v.to_le_bytes()).collect();
            assert!(fs::read(&out).unwrap() == expected, "{from} {to}");
        }
    }
}

#[test]
fn planes_that_swscale_does_not_read_go_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (from, planar, (width, height), shift, bytes) in [
        ("nv16", "yuv422p", (8, 16), 0, 1),
        ("nv20le", "yuv422p10le", (8, 16), 0, 2),
        ("p012le", "yuv420p12le", (8, 8), 4, 2),
        ("nv24", "yuv444p", (16, 16), 0, 1),
        ("p210le", "yuv422p10le", (8, 16), 6, 2),
    ] {
        let most = if bytes == 1 { 255 } else { 1023 };
        let sample = |at: usize| (at * 7919 % 773 % (most + 1)) as u16;
        let stored = |value: u16, shift: u32| match bytes {
            1 => vec![value as u8],
            _ => (value << shift).to_le_bytes().to_vec(),
        };
        let chroma = width * height;
        let luma = (0..256).map(sample);
        let pairs = (0..chroma).flat_map(|at| [sample(300 + at), sample(700 + at)]);
        let mixed: Vec<u8> = luma.clone().chain(pairs).flat_map(|v| stored(v, shift)).collect();
        let apart = (300..300 + chroma).chain(700..700 + chroma).map(sample);
        let apart: Vec<u8> = luma.chain(apart).flat_map(|v| stored(v, 0)).collect();
        fs::write(at("mixed.raw"), mixed).unwrap();
        fs::write(at("apart.raw"), &apart).unwrap();
        let input =
            |format: &str, file: &str| PathBuf::from(format!("raw:16x16:{format}:25:{}", at(file).display()));
        let (mixed, planes) = (input(from, "mixed.raw"), input(planar, "apart.raw"));
        let name = at("a.mkv");
        let said = filter(&mixed, name.to_str().unwrap(), &["--encoder", "ffv1", "--strict"]);
        // FFmpeg before 6 does not know all of them.
        if !said.text.contains("this FFmpeg knows no pixel format") {
            assert!(said.succeeded, "{from}: {}", said.text);
            let arguments = [
                "-i",
                name.to_str().unwrap(),
                "-f",
                "rawvideo",
                "-pix_fmt",
                planar,
                "-",
            ];
            assert!(ffmpeg(&arguments, &[]) == apart, "{from}");
        }
        for kind in ["y4m", "png"] {
            let (one, other) = (at(&format!("one.{kind}")), at(&format!("other.{kind}")));
            filtered(&mixed, &one, &[]);
            filtered(&planes, &other, &[]);
            assert!(
                fs::read(one).unwrap() == fs::read(other).unwrap(),
                "{from} {kind}"
            );
        }
    }
}
