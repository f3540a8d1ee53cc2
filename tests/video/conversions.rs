//! Outputs of another pixel format than their inputs: colours against the formulas of H.273, in files that
//! FFmpeg writes and reads.

use crate::common::{PROGRAM, ffmpeg, probe, said};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Red, green and blue of the pictures, each of one colour.
const COLOURS: [[f64; 3]; 5] = [
    [1.0, 1.0, 1.0],
    [0.0, 0.0, 0.0],
    [0.25, 0.5, 0.75],
    [1.0, 0.125, 0.0],
    [0.0, 0.875, 0.5],
];

/// Filters with the identity.
fn filter(input: &str, output: &Path, options: &[&str]) {
    let done = Command::new(PROGRAM)
        .args(["filter", input])
        .arg(output)
        .args(["--filter", "mask:rows=1", "--overwrite"])
        .args(options)
        .output()
        .unwrap();
    assert!(done.status.success(), "{input} {options:?}: {}", said(&done));
}

/// The same into FFV1 or samples alone of this pixel format.
fn convert(input: &str, output: &Path, encoder: &str, format: &str) {
    filter(input, output, &["--encoder", encoder, "--pixel-format", format]);
}

/// The first word of each plane of each frame of this pixel format, as FFmpeg reads them.
fn first_samples(path: &Path, format: &str, sizes: &[usize], bytes: usize) -> Vec<Vec<u16>> {
    let name = path.to_str().unwrap();
    let size = ["-f", "rawvideo", "-video_size", "64x48", "-pixel_format", format];
    let input = if name.ends_with(".yuv") { &size[..] } else { &[] };
    let output = ["-f", "rawvideo", "-pix_fmt", format, "-"];
    let raw = ffmpeg(&[input, &["-i", name], &output[..]].concat());
    let frame = sizes.iter().sum::<usize>() * bytes;
    let frames = raw.chunks_exact(frame).map(|frame| {
        let mut at = 0;
        let plane = |&size: &usize| {
            let sample = &frame[at * bytes..(at + 1) * bytes];
            at += size;
            sample
                .iter()
                .rev()
                .fold(0, |sum, &byte| sum << 8 | u16::from(byte))
        };
        sizes.iter().map(plane).collect()
    });
    frames.collect()
}

/// Y, Cb and Cr of a colour by BT.601, as pictures of few rows have it, in limited range.
fn yuv([red, green, blue]: [f64; 3], depth: u32) -> [f64; 3] {
    let unit = f64::from(1_u32 << (depth - 8));
    let luma = 0.299 * red + 0.587 * green + 0.114 * blue;
    let chroma = |part: f64, weight: f64| (128.0 + 224.0 * part / (2.0 * (1.0 - weight))) * unit;
    [
        (16.0 + 219.0 * luma) * unit,
        chroma(blue - luma, 0.114),
        chroma(red - luma, 0.299),
    ]
}

#[test]
fn deep_rgb_becomes_yuv_by_the_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("rgb.raw");
    let words = COLOURS.iter().flat_map(|colour| {
        let pixel: Vec<u8> = colour
            .iter()
            .flat_map(|part| ((part * 65535.0).round() as u16).to_le_bytes())
            .collect();
        pixel.repeat(64 * 48)
    });
    fs::write(&raw, words.collect::<Vec<u8>>()).unwrap();
    let input = format!("raw:64x48:rgb48le:25:{}", raw.display());
    for (format, encoder, depth, chroma) in [
        ("yuv444p10le", "ffv1", 10, 1),
        ("yuv444p16le", "ffv1", 16, 1),
        ("yuv420p10le", "ffv1", 10, 4),
        ("yuv422p12le", "ffv1", 12, 2),
        ("yuv420p", "ffv1", 8, 4),
        ("p010le", "rawvideo", 10, 4),
    ] {
        let bare = encoder == "rawvideo";
        let output = folder.path().join(if bare { "out.yuv" } else { "out.mkv" });
        convert(&input, &output, encoder, format);
        let size = 64 * 48;
        // Cb and Cr of p010 are one plane.
        let (cb, cr, shift) = if bare {
            (1, size / 2 - 1, 6)
        } else {
            (size / chroma, size / chroma, 0)
        };
        let found = first_samples(&output, format, &[size, cb, cr], if depth == 8 { 1 } else { 2 });
        assert_eq!(found.len(), COLOURS.len(), "{format}");
        for (samples, colour) in found.iter().zip(COLOURS) {
            for (&sample, exact) in samples.iter().zip(yuv(colour, depth)) {
                let off = (f64::from(sample >> shift) - exact).abs();
                assert!(off <= 0.52, "{format} {colour:?}: {sample}, not {exact:.2}");
            }
        }
    }
}

#[test]
fn levels_keep_their_meaning_whatever_the_depth_and_range() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    // Samples alone state no range, so that YUV of gray is limited.
    for (from, level, range, encoder, to, expected) in [
        ("gray", 255_u16, "pc", "rawvideo", "nv12", [235, 128]),
        ("gray10le", 1023, "pc", "rawvideo", "p010le", [940 << 6, 512 << 6]),
        // Range and depth in one rounding: 64 + 77 * 876 / 255. Of 8 bits in between it would be 328.
        ("gray", 77, "pc", "rawvideo", "p010le", [329 << 6, 512 << 6]),
        ("yuv420p", 255, "pc", "ffv1", "yuv420p10le", [1023, 512]),
        ("yuv420p", 235, "tv", "rawvideo", "p016le", [235 << 8, 128 << 8]),
        ("yuv420p10le", 940, "tv", "ffv1", "gbrp10le", [1023, 1023]),
        ("yuv444p12le", 4095, "pc", "ffv1", "gbrp16le", [65535, 65535]),
        ("gray", 235, "tv", "ffv1", "gbrp16le", [65535, 65535]),
    ] {
        let raw = folder.path().join("in.raw");
        let centre: u16 = match from {
            _ if from.ends_with("10le") => 512,
            _ if from.ends_with("12le") => 2048,
            _ => 128,
        };
        let chroma = match from {
            _ if from.starts_with("gray") => 0,
            "yuv444p12le" => 2 * 64 * 48,
            _ => 64 * 48 / 2,
        };
        let words = std::iter::repeat_n(level, 64 * 48).chain(std::iter::repeat_n(centre, chroma));
        let bytes = if centre == 128 { 1 } else { 2 };
        fs::write(
            &raw,
            words
                .flat_map(|v| v.to_le_bytes().into_iter().take(bytes))
                .collect::<Vec<u8>>(),
        )
        .unwrap();
        let tag = format!("setparams=range={range}");
        let read = [
            "-f",
            "rawvideo",
            "-video_size",
            "64x48",
            "-pixel_format",
            from,
            "-i",
            raw.to_str().unwrap(),
        ];
        let made = [
            "-vf",
            &tag,
            "-c:v",
            "ffv1",
            "-color_range",
            range,
            input.to_str().unwrap(),
        ];
        ffmpeg(&[&read[..], &made[..]].concat());
        let bare = encoder == "rawvideo";
        let output = folder.path().join(if bare { "out.yuv" } else { "out.mkv" });
        convert(input.to_str().unwrap(), &output, encoder, to);
        let rest = if bare { 64 * 48 / 2 - 1 } else { 1 };
        let sizes = [64 * 48, 1, rest];
        let bytes = if to == "nv12" { 1 } else { 2 };
        let found = first_samples(&output, to, &sizes, bytes);
        assert_eq!(found[0][..2], expected, "{from} {range} to {to}");
    }
}

#[test]
fn gray_of_limited_range_becomes_files_of_full_range() {
    let folder = tempfile::tempdir().unwrap();
    let (raw, input) = (folder.path().join("gray.raw"), folder.path().join("gray.mkv"));
    let levels = [0_u8, 16, 77, 128, 200, 235, 255];
    let frames = levels.iter().flat_map(|&level| vec![level; 64 * 48]);
    fs::write(&raw, frames.collect::<Vec<u8>>()).unwrap();
    let read = [
        "-f",
        "rawvideo",
        "-video_size",
        "64x48",
        "-pixel_format",
        "gray",
        "-i",
    ];
    let made = ["-vf", "setparams=range=tv", "-c:v", "ffv1", "-color_range", "tv"];
    ffmpeg(
        &[
            &read[..],
            &[raw.to_str().unwrap()],
            &made[..],
            &[input.to_str().unwrap()],
        ]
        .concat(),
    );
    for kind in ["png", "tif", "pgm"] {
        let output = folder.path().join(kind);
        fs::create_dir(&output).unwrap();
        filter(
            input.to_str().unwrap(),
            &output.join(format!("%d.{kind}")),
            &["--strict"],
        );
        for (number, level) in levels.into_iter().enumerate() {
            let file = output.join(format!("{number}.{kind}"));
            let gray = ["-f", "rawvideo", "-pix_fmt", "gray", "-"];
            let found = ffmpeg(&[&["-i", file.to_str().unwrap()], &gray[..]].concat());
            let exact = (f64::from(level) - 16.0) * 255.0 / 219.0;
            assert_eq!(
                f64::from(found[0]),
                exact.round().clamp(0.0, 255.0),
                "{kind} {level}"
            );
        }
    }
}

#[test]
fn gray_whose_range_is_not_stated_keeps_its_levels() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("gray.raw");
    let levels = [0_u8, 60, 128, 200, 255];
    let frames = levels.iter().flat_map(|&level| vec![level; 64 * 48]);
    fs::write(&raw, frames.collect::<Vec<u8>>()).unwrap();
    let input = format!("raw:64x48:gray:25:{}", raw.display());
    for (name, encoder) in [
        ("a.mp4", "libx264"),
        ("a.mkv", "libx265"),
        ("b.mkv", "mpeg4"),
        ("c.mkv", "ffv1"),
    ] {
        let output = folder.path().join(name);
        filter(&input, &output, &["--encoder", encoder]);
        let rgb = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"];
        let shown = ffmpeg(&[&["-i", output.to_str().unwrap()], &rgb[..]].concat());
        let shown: Vec<u8> = shown.chunks(64 * 48 * 3).map(|frame| frame[3000]).collect();
        assert_eq!(shown.len(), levels.len(), "{encoder}");
        assert!(
            shown.iter().zip(levels).all(|(a, b)| a.abs_diff(b) <= 2),
            "{encoder}: {shown:?}"
        );
    }
}

/// Chroma that grows from left to right is where it was, whatever the size and the subsampling.
#[test]
fn chroma_stays_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    for (width, height) in [(64_usize, 48_usize), (63, 47)] {
        let raw = folder.path().join("in.raw");
        let pixels = (0..height)
            .flat_map(|_| 0..width)
            .flat_map(|x| [60 + x as u8, 90, 190 - x as u8]);
        fs::write(&raw, pixels.collect::<Vec<u8>>()).unwrap();
        let input = format!("raw:{width}x{height}:rgb24:25:{}", raw.display());
        for (format, (log2_x, log2_y)) in [
            ("yuv420p", (1, 1)),
            ("yuv422p", (1, 0)),
            ("yuv420p10le", (1, 1)),
            ("yuv411p", (2, 0)),
        ] {
            let output = folder.path().join("out.mkv");
            convert(&input, &output, "ffv1", format);
            let planes = ["-f", "rawvideo", "-pix_fmt", format, "-"];
            let found = ffmpeg(&[&["-i", output.to_str().unwrap()], &planes[..]].concat());
            let bytes = if format.ends_with("10le") { 2 } else { 1 };
            let (step, rows) = (1 << log2_x, height.div_ceil(1 << log2_y));
            let columns = width.div_ceil(step);
            // Left of the middle of the rows, where no end counts.
            for column in 2..columns - 2 {
                let at = (width * height + rows / 2 * columns + column) * bytes;
                let sample = found[at..at + bytes]
                    .iter()
                    .rev()
                    .fold(0, |sum, &byte| sum << 8 | u16::from(byte));
                let x = (column * step) as f64;
                let [_, exact, _] = yuv(
                    [60.0 + x, 90.0, 190.0 - x].map(|v| v / 255.0),
                    if bytes == 2 { 10 } else { 8 },
                );
                let off = (f64::from(sample) - exact).abs();
                assert!(off <= 0.52, "{format} {width} {column}: {sample}, not {exact:.2}");
            }
        }
    }
}

/// Fields of which one has little of a colour and the other much, as FFmpeg converts them field by field.
#[test]
fn chroma_of_one_field_does_not_reach_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let written = |name: &str, format: &str, log2_y: usize, setfield: &str, order: &str| {
        let (width, height) = (32, 16);
        let mut picture = vec![128; width * height];
        for row in 0..height >> log2_y {
            picture.extend(vec![if row % 2 == 0 { 40 } else { 220 }; width / 2]);
        }
        picture.extend(vec![128; width / 2 * (height >> log2_y)]);
        fs::write(at("in.yuv"), &picture).unwrap();
        let raw = at("in.yuv");
        let input = ["-f", "rawvideo", "-pix_fmt", format, "-s", "32x16", "-i"];
        let path = at(name);
        let filter = format!("setfield={setfield}");
        let coded = ["-c:v", "ffv1", "-field_order", order, path.to_str().unwrap()];
        ffmpeg(&[&input[..], &[raw.to_str().unwrap(), "-vf", &filter], &coded[..]].concat());
        path.to_str().unwrap().to_owned()
    };
    let u_rows = |path: &Path, format: &str, log2_y: usize| -> Vec<u8> {
        let planes = ["-f", "rawvideo", "-pix_fmt", format, "-"];
        let found = ffmpeg(&[&["-i", path.to_str().unwrap()], &planes[..]].concat());
        let rows = found[32 * 16..].chunks(16).take(16 >> log2_y);
        rows.map(|row| row[5]).collect()
    };
    let turns = |count: usize| -> Vec<u8> { [40, 220].repeat(count / 2) };
    let fields = written("422.mkv", "yuv422p", 0, "tff", "tt");
    convert(&fields, &at("down.mkv"), "ffv1", "yuv420p");
    assert_eq!(u_rows(&at("down.mkv"), "yuv420p", 1), turns(8));
    let fields = written("420.mkv", "yuv420p", 1, "bff", "bb");
    convert(&fields, &at("up.mkv"), "ffv1", "yuv422p");
    assert_eq!(u_rows(&at("up.mkv"), "yuv422p", 0), turns(16));
    // Progressive pictures have rows between, as before.
    let whole = written("p.mkv", "yuv420p", 1, "prog", "progressive");
    convert(&whole, &at("p422.mkv"), "ffv1", "yuv422p");
    assert_eq!(u_rows(&at("p422.mkv"), "yuv422p", 0)[1..5], [85, 175, 175, 85]);
    // A still, too, has the colours of its field in each of its rows.
    filter(&fields, &at("still-%d.png"), &["--frames", "1"]);
    let still = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let still = still
        .filter(|path| path.extension().is_some_and(|e| e == "png"))
        .min()
        .unwrap();
    let rgb = ffmpeg(&[
        "-i",
        still.to_str().unwrap(),
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]);
    let blues: Vec<u8> = rgb.chunks(32 * 3).map(|row| row[5 * 3 + 2]).collect();
    assert_eq!(blues, [0, 255].repeat(8));
}

#[test]
fn gray_of_rgb_is_the_luma_of_the_matrix_that_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let (raw, output) = (folder.path().join("red.raw"), folder.path().join("red.mkv"));
    fs::write(&raw, [255, 0, 0].repeat(64 * 48)).unwrap();
    let input = format!("raw:64x48:rgb24:25:{}", raw.display());
    convert(&input, &output, "ffv1", "gray");
    let probed = probe(&output, &["-show_entries", "stream=color_space,color_range"]);
    let stream = &probed["streams"][0];
    assert_eq!(stream["color_space"], "smpte170m");
    let luma = match stream["color_range"].as_str() {
        Some("pc") => 76,
        _ => 81,
    };
    let found = first_samples(&output, "gray", &[64 * 48], 1);
    assert_eq!(found, [[luma]]);
}

/// Packed RGB: FFmpeg's name of its little-endian or only form, bits of a word, and for red, green and blue
/// the lowest bit and how many there are, as FFmpeg's list of pixel formats draws them.
type Packed = (&'static str, u32, [(u32, u32); 3]);
const PACKED: [Packed; 12] = [
    ("rgb565le", 16, [(11, 5), (5, 6), (0, 5)]),
    ("bgr565le", 16, [(0, 5), (5, 6), (11, 5)]),
    ("rgb555le", 16, [(10, 5), (5, 5), (0, 5)]),
    ("bgr555le", 16, [(0, 5), (5, 5), (10, 5)]),
    ("rgb444le", 16, [(8, 4), (4, 4), (0, 4)]),
    ("bgr444le", 16, [(0, 4), (4, 4), (8, 4)]),
    ("rgb8", 8, [(5, 3), (2, 3), (0, 2)]),
    ("bgr8", 8, [(0, 3), (3, 3), (6, 2)]),
    ("rgb4_byte", 8, [(3, 1), (1, 2), (0, 1)]),
    ("bgr4_byte", 8, [(0, 1), (1, 2), (3, 1)]),
    ("rgb4", 4, [(3, 1), (1, 2), (0, 1)]),
    ("bgr4", 4, [(0, 1), (1, 2), (3, 1)]),
];

/// Words of pixels with all values of each component, and with bits that mean nothing.
fn words_of(bits: u32) -> Vec<u32> {
    let most = u32::MAX >> (32 - bits);
    let mut words: Vec<u32> = (0..1023).map(|n| (n * 97 * 65) & most).collect();
    words.push(most);
    words
}

/// The words in bytes, in one of the two orders.
fn in_bytes(words: &[u32], bits: u32, is_big: bool) -> Vec<u8> {
    if bits == 4 {
        return words
            .chunks(2)
            .map(|pair| (pair[0] << 4 | pair[1]) as u8)
            .collect();
    }
    let bytes = bits as usize / 8;
    let split = |&word: &u32| match is_big {
        true => word.to_be_bytes()[4 - bytes..].to_vec(),
        false => word.to_le_bytes()[..bytes].to_vec(),
    };
    words.iter().flat_map(split).collect()
}

/// FFmpeg's containers of raw video; each component's samples by the formula, with one rounding.
#[test]
fn packed_rgb_of_few_bits_spans_all_of_a_sample() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (raw, samples) = (at("words.raw"), at("samples.raw"));
    for (name, bits, places) in PACKED {
        let words = words_of(bits);
        let size = format!("{}x8", words.len() / 8);
        let big = name.replace("le", "be");
        // FFmpeg's program does not know each of them as an input's format; AVI and MOV have names for few.
        let forms = [
            (name.to_owned(), "nut", false),
            (big.clone(), "nut", true),
            (name.to_owned(), "avi", false),
            (big, "mov", true),
        ];
        for (format, container, is_big) in forms {
            let is_held = match container {
                "avi" | "mov" => name == "rgb555le",
                _ => !is_big || bits >= 16,
            };
            if !is_held {
                continue;
            }
            fs::write(&raw, in_bytes(&words, bits, is_big)).unwrap();
            let video = at(&format!("{format}.{container}"));
            let input = [
                "-f",
                "rawvideo",
                "-pixel_format",
                &format,
                "-video_size",
                &size,
                "-i",
                &raw,
            ];
            // Encoders give the pictures of AVI and MOV their names.
            let encoder = ["-c:v", "rawvideo", "-pix_fmt", &format, &video];
            let encoder = if container == "nut" {
                &["-c", "copy", &video][..]
            } else {
                &encoder
            };
            ffmpeg(&[&input[..], encoder].concat());
            let shown = probe(Path::new(&video), &["-show_entries", "stream=pix_fmt"]);
            assert_eq!(shown["streams"][0]["pix_fmt"], format, "{container}");
            filter(&video, Path::new(&format!("raw:{samples}")), &["-q", "--strict"]);
            let found = fs::read(&samples).unwrap();
            for (component, (low, length)) in places.into_iter().enumerate() {
                for (x, word) in words.iter().enumerate() {
                    let stored = word >> low & ((1 << length) - 1);
                    let found = f64::from(found[3 * x + component]);
                    let expected = (f64::from(stored) * 255.0 / f64::from((1 << length) - 1)).round();
                    assert_eq!(found, expected, "{format} {container}: {word:#x} {component}");
                }
            }
        }
    }
}
