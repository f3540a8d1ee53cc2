//! Floating-point pictures through the program: bits that stay what they are, and a word about what does not.
//!
//! `media/layers.exr` was written by OpenEXR's own library: 5x4 pixels at (-2, 3) of a display of 10x8, with
//! `A B G R` of 16 bits, `N.X Z` of 32 bits and the integers `id`, whose values [`layer`] tells.

use crate::common::{PROGRAM, ffmpeg, names, said};
use crate::folder::Folder;
use exr::prelude::{FlatSamples, ReadChannels, ReadLayers, Vec2, read};
use framepipe::frame::Buffer;
use framepipe::source::IndexedSource;
use framepipe::source::images::{self, ImageSourceOptions};
use half::f16;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LAYERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/media/layers.exr");

const NAMES: [&str; 7] = ["A", "B", "G", "N.X", "R", "Z", "id"];

/// A blur whose sums are exact in any order for numbers of a few bits.
const TENT: &str = "mask:rows=1 2 1;2 4 2;1 2 1:divisor=16";

fn filter(input: impl AsRef<Path>, output: impl AsRef<Path>, filter: &str, options: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("filter")
        .args([input.as_ref(), output.as_ref()])
        .args(["--filter", filter, "--engine", "reference", "--overwrite"])
        .args(options)
        .output()
        .unwrap()
}

/// What a run that must succeed said.
fn filtered(input: impl AsRef<Path>, output: impl AsRef<Path>, by: &str, options: &[&str]) -> String {
    let done = filter(input, output, by, options);
    assert!(done.status.success(), "{}", said(&done));
    said(&done)
}

/// What a run that must fail said, which leaves nothing behind.
fn refused(input: impl AsRef<Path>, output: impl AsRef<Path>, options: &[&str]) -> String {
    let done = filter(&input, &output, "identity", options);
    assert!(matches!(done.status.code(), Some(1 | 2)), "{}", said(&done));
    assert!(!output.as_ref().exists());
    said(&done)
}

/// The value of a channel of the golden file.
fn layer(name: &str, x: i64, y: i64) -> f64 {
    let of_colour = |k: i64| (x + 2 * y + 3 * k) as f64 / 8.0;
    match name {
        "A" => of_colour(0),
        "B" => of_colour(1),
        "G" => of_colour(2),
        "R" => of_colour(3),
        "N.X" => (x * y) as f64 - 5.5,
        "Z" => 1000.0 + x as f64 / 4.0 + y as f64,
        _ => (4_000_000_000 + x + 10 * y) as f64,
    }
}

/// The tent over it, its edge repeated.
fn blurred(name: &str, x: i64, y: i64) -> f64 {
    let weight = |d: i64| 2.0 - d.abs() as f64;
    let taps = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy)));
    taps.map(|(dx, dy)| {
        let value = layer(name, (x + dx).clamp(0, 4), (y + dy).clamp(0, 3));
        weight(dx) * weight(dy) * value / 16.0
    })
    .sum()
}

type Layers = exr::image::Image<exr::image::Layers<exr::image::AnyChannels<FlatSamples>>>;

fn exr(path: impl AsRef<Path>) -> Layers {
    let reading = read().no_deep_data().largest_resolution_level().all_channels();
    reading.all_layers().all_attributes().from_file(path).unwrap()
}

/// The samples of a channel with the letter of their kind.
fn channel(image: &Layers, name: &str) -> (char, Vec<f64>) {
    let list = &image.layer_data[0].channel_data.list;
    match &list.iter().find(|c| c.name == *name).unwrap().sample_data {
        FlatSamples::F16(v) => ('h', v.iter().map(|v| v.to_f64()).collect()),
        FlatSamples::F32(v) => ('f', v.iter().map(|&v| f64::from(v)).collect()),
        FlatSamples::U32(v) => ('u', v.iter().map(|&v| f64::from(v)).collect()),
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let numbers = bytes.as_chunks::<4>().0;
    numbers.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

/// Planes of 32 bits that FFmpeg reads.
fn planes(path: &Path, format: &str) -> Vec<f32> {
    floats(&ffmpeg(&[
        "-i",
        path.to_str().unwrap(),
        "-f",
        "rawvideo",
        "-pix_fmt",
        format,
        "-",
    ]))
}

/// Numbers of all sizes, also below 0 and above 1, written as raw frames of `channels` interleaved samples.
fn raw(path: &Path, (width, height): (usize, usize), channels: usize) -> Vec<f32> {
    let numbers: Vec<f32> = (0..width * height * channels)
        .map(|at| ((at * 7919 % 1009) as f32 - 400.0) * 0.003_7 * 10_f32.powi(at as i32 % 5 - 2))
        .collect();
    fs::write(
        path,
        numbers.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>(),
    )
    .unwrap();
    numbers
}

#[test]
fn openexr_goes_through_with_all_its_channels() {
    let folder = Folder::new();
    let (same, soft) = (folder.at("same.exr"), folder.at("soft.exr"));
    let words = filtered(LAYERS, &same, "identity", &["--strict"]);
    assert!(
        words.contains("5x4 f32x6") && !words.contains("warning"),
        "{words}"
    );
    filtered(LAYERS, &soft, TENT, &["--strict"]);
    let (before, same, soft) = (exr(LAYERS), exr(&same), exr(&soft));
    for after in [&same, &soft] {
        assert_eq!(after.attributes, before.attributes);
        let (one, other) = (&after.layer_data[0], &before.layer_data[0]);
        assert_eq!(one.attributes, other.attributes);
        assert_eq!(one.encoding.compression, other.encoding.compression);
        assert_eq!(
            (one.size, one.attributes.layer_position),
            (Vec2(5, 4), Vec2(-2, 3))
        );
        let names: Vec<String> = one.channel_data.list.iter().map(|c| c.name.to_string()).collect();
        assert_eq!(names, NAMES);
    }
    assert_eq!(before.attributes.pixel_aspect, 2.0);
    assert!(before.layer_data[0].attributes.owner.is_some());
    for name in NAMES {
        let kept = channel(&same, name);
        assert_eq!(kept, channel(&before, name), "{name}");
        let places = || (0..4).flat_map(|y| (0..5).map(move |x| (x, y)));
        let golden: Vec<f64> = places().map(|(x, y)| layer(name, x, y)).collect();
        assert_eq!(kept.1, golden, "{name}");
        let (kind, values) = channel(&soft, name);
        let expected: Vec<f64> = places()
            .map(|(x, y)| match kind {
                'h' => f16::from_f64(blurred(name, x, y)).to_f64(),
                'f' => blurred(name, x, y),
                // Numbers of things.
                _ => layer(name, x, y),
            })
            .collect();
        assert_eq!(values, expected, "{name}");
    }
}

#[test]
fn ffmpeg_reads_what_is_written_and_is_read() {
    let folder = Folder::new();
    let source = folder.at("in.raw");
    for (channels, format, other) in [
        (1, "grayf32le", "grayf32le"),
        (3, "rgbf32le", "gbrpf32le"),
        (4, "rgbaf32le", "gbrapf32le"),
    ] {
        let (width, height) = (19, 37);
        let numbers = raw(&source, (width, height), channels);
        let input = format!("raw:{width}x{height}:{format}:25:{}", source.display());
        let file = folder.at(&format!("{channels}.exr"));
        filtered(&input, &file, "identity", &[]);
        let order = if channels == 1 { [0, 0, 0, 0] } else { [1, 2, 0, 3] };
        let expected: Vec<f32> = order[..channels]
            .iter()
            .flat_map(|&c| numbers.chunks(channels).map(move |pixel| (pixel, c)))
            .map(|(pixel, c)| match (channels, c) {
                // Straight colour is multiplied by its alpha.
                (4, 0..3) => pixel[c] * pixel[3],
                _ => pixel[c],
            })
            .collect();
        assert!(planes(&file, other) == expected, "{format}");
        // And back, from what FFmpeg writes itself.
        let written = folder.at(&format!("ffmpeg{channels}.exr"));
        let size = format!("{width}x{height}");
        let head = ["-f", "rawvideo", "-pix_fmt", other, "-s", &size, "-i"];
        let samples = folder.at("planes.raw");
        let bytes: Vec<u8> = expected.iter().flat_map(|v| v.to_le_bytes()).collect();
        fs::write(&samples, bytes).unwrap();
        let tail = [
            "-format",
            "float",
            "-compression",
            "zip16",
            written.to_str().unwrap(),
        ];
        ffmpeg(&[&head[..], &[samples.to_str().unwrap()], &tail].concat());
        let back = folder.at("back.raw");
        filtered(&written, format!("raw:{}", back.display()), "identity", &[]);
        let back = floats(&fs::read(&back).unwrap());
        let planar: Vec<f32> = order[..channels]
            .iter()
            .flat_map(|&c| back.iter().skip(c).step_by(channels).copied())
            .collect();
        assert!(planar == expected, "{format} of FFmpeg");
    }
}

#[test]
fn pfm_and_tiff_keep_their_numbers() {
    let folder = Folder::new();
    let source = folder.at("in.raw");
    for (channels, format) in [(1, "grayf32le"), (3, "rgbf32le")] {
        let numbers = raw(&source, (13, 5), channels);
        let input = format!("raw:13x5:{format}:25:{}", source.display());
        let pfm = folder.at("a.pfm");
        filtered(&input, &pfm, "identity", &[]);
        // The lowest row comes first. FFmpeg 5 takes it for the highest, so that it is no judge here.
        let head =
            |scale: &str| format!("P{}\n13 5\n{scale}\n", if channels == 1 { 'f' } else { 'F' }).into_bytes();
        let rows = || numbers.chunks(13 * channels).rev().flatten();
        let mut little = head("-1.0");
        little.extend(rows().flat_map(|v| v.to_le_bytes()));
        assert!(fs::read(&pfm).unwrap() == little, "{format}");
        // Big-endian, with another scale.
        let mut big = head("2.5");
        big.extend(rows().flat_map(|v| v.to_be_bytes()));
        fs::write(folder.at("big.pfm"), big).unwrap();
        let words = filtered(folder.at("big.pfm"), folder.at("b.pfm"), "identity", &[]);
        assert!(words.contains("scale of 2.5 is not kept"), "{words}");
        assert_eq!(fs::read(folder.at("b.pfm")).unwrap(), fs::read(&pfm).unwrap());
        let tiff = folder.at("a.tif");
        filtered(&pfm, &tiff, "identity", &["--strict"]);
        let mut decoder = tiff::decoder::Decoder::new(fs::File::open(&tiff).unwrap()).unwrap();
        let tiff::decoder::DecodingResult::F32(read) = decoder.read_image().unwrap() else {
            panic!("TIFF of numbers");
        };
        assert!(read == numbers, "{format}");
        filtered(&tiff, folder.at("c.pfm"), "identity", &["--strict"]);
        assert_eq!(fs::read(folder.at("c.pfm")).unwrap(), fs::read(&pfm).unwrap());
    }
}

#[test]
fn alpha_of_tiff_stays_associated_or_straight() {
    let folder = Folder::new();
    // The second one has a colour that alpha hides.
    let pixels = [0.25_f32, 0.5, 3.0, 0.5, 0.75, 0.0, 0.0, 0.0];
    for (kind, red) in [(1_u16, [0.25, 0.75]), (2, [0.125, 0.0])] {
        let file = folder.at("in.tif");
        let mut out = fs::File::create(&file).unwrap();
        let mut encoder = tiff::encoder::TiffEncoder::new(&mut out).unwrap();
        let mut image = encoder
            .new_image::<tiff::encoder::colortype::RGBA32Float>(2, 1)
            .unwrap();
        let tag = tiff::tags::Tag::ExtraSamples;
        image.encoder().write_tag(tag, &[kind][..]).unwrap();
        image.write_data(&pixels).unwrap();
        filtered(&file, folder.at("out.tif"), "identity", &["--strict"]);
        let mut decoder = tiff::decoder::Decoder::new(fs::File::open(folder.at("out.tif")).unwrap()).unwrap();
        assert_eq!(decoder.get_tag_u32_vec(tag).unwrap(), [u32::from(kind)]);
        let read = decoder.read_image().unwrap();
        assert!(matches!(read, tiff::decoder::DecodingResult::F32(v) if v == pixels));
        let words = filtered(&file, folder.at("out.exr"), "identity", &[]);
        assert_eq!(channel(&exr(folder.at("out.exr")), "R"), ('f', red.to_vec()));
        let lost = "warning: the colour of 1 pixel with alpha 0 is not kept";
        assert_eq!(words.contains(lost), kind == 2, "{words}");
        let strict = filter(&file, folder.at("strict.exr"), "identity", &["--strict"]);
        assert_eq!(strict.status.success(), kind == 1, "{}", said(&strict));
    }
}

/// A format of floating-point samples is one that frames are brought to before they are filtered; what is
/// said of alpha is the same as where integers are made behind the filter.
#[test]
fn alpha_that_a_floating_point_format_lacks_is_named() {
    let folder = Folder::new();
    let made = |name: &str, format: &str, more: &[&str]| {
        let path = folder.at(name);
        let source = "color=gray:64x48:r=1:d=2,format=rgba,colorchannelmixer=aa=0.5";
        let filter = format!("format={format}");
        let ends = ["-y", "-f", "lavfi", "-i", source, "-vf", &filter];
        ffmpeg(&[&ends[..], more, &[path.to_str().unwrap()]].concat());
        path
    };
    let colour = made("colour.png", "rgba", &["-frames:v", "1"]);
    let gray = made("gray.png", "ya8", &["-frames:v", "1"]);
    let video = made("video.mkv", "bgra", &["-c:v", "ffv1"]);
    let associated = folder.at("in.exr");
    let pixel = |_, _| (0.25_f32, 0.5_f32, 0.0_f32, 0.5_f32);
    exr::prelude::write_rgba_file(&associated, 4, 3, pixel).unwrap();
    let runs = [
        (&colour, "out.exr", "rgbf32", 1),
        (&colour, "out.tif", "rgbf16", 1),
        (&colour, "out.pfm", "rgbf32", 1),
        (&colour, "out.png", "gbrpf32le", 1),
        (&colour, "out.exr", "grayf32le", 1),
        (&gray, "out.tif", "grayf32le", 1),
        (&associated, "out.hdr", "rgbf32", 1),
        (&associated, "out.jpg", "rgbf32", 1),
        (&video, "out/%d.exr", "rgbf32", 2),
        (&video, "out.mkv", "gbrpf32le", 2),
    ];
    for (input, output, format, frames) in runs {
        let words = filtered(input, folder.at(output), TENT, &["--pixel-format", format]);
        let lost = match frames {
            1 => "warning: the alpha of 1 frame is not kept".to_owned(),
            n => format!("warning: the alpha of {n} frames is not kept"),
        };
        assert!(words.contains(&lost), "{output} {format}: {words}");
        let strict = filter(
            input,
            folder.at(output),
            TENT,
            &["--pixel-format", format, "--strict"],
        );
        assert_eq!(strict.status.code(), Some(1), "{output} {format}");
        assert!(said(&strict).contains("has alpha, which"), "{}", said(&strict));
        let over = ["--pixel-format", format, "--background", "white"];
        let words = filtered(input, folder.at(output), TENT, &over);
        assert!(words.contains("alpha laid over #ffffff"), "{words}");
        assert!(!words.contains("the alpha of"), "{words}");
    }
    let trial = filter(
        &colour,
        folder.at("none.exr"),
        TENT,
        &["--pixel-format", "rgbf32", "--dry-run"],
    );
    let words = [&trial.stdout[..], &trial.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    assert!(words.contains("the alpha of 1 frame"), "{words}");
    // Alpha of an opaque picture says nothing.
    let opaque = folder.at("opaque.png");
    let source = "color=gray:8x6,format=rgba";
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        source,
        "-frames:v",
        "1",
        opaque.to_str().unwrap(),
    ]);
    filtered(
        &opaque,
        folder.at("opaque.exr"),
        TENT,
        &["--pixel-format", "rgbf32", "--strict"],
    );
    // The colour is the same whether alpha goes before the filter or behind it, and so it is over white.
    for (over, red) in [(&[][..], 0.5), (&["--background", "white"], 0.75)] {
        for format in ["rgbf32", "rgb48le"] {
            let output = folder.at("same.png");
            let options = [&["--pixel-format", format][..], over].concat();
            filtered(&associated, &output, "identity", &options);
            let decoded = planes(&output, "gbrpf32le");
            assert!((decoded[24] - red).abs() < 1e-3, "{format}: {}", decoded[24]);
        }
    }
}

#[test]
fn radiance_goes_both_ways() {
    let folder = Folder::new();
    let head = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 2\n";
    fs::write(
        folder.at("a.hdr"),
        [&head[..], &[128, 64, 32, 128, 128, 0, 64, 140]].concat(),
    )
    .unwrap();
    // What it held before it holds again.
    filtered(folder.at("a.hdr"), folder.at("b.hdr"), "identity", &["--strict"]);
    let words = filtered(folder.at("a.hdr"), folder.at("c.hdr"), TENT, &[]);
    assert!(
        words.contains("8 bits for each colour and a common exponent") && !words.contains("NaN"),
        "{words}"
    );
    let strict = filter(folder.at("a.hdr"), folder.at("d.hdr"), TENT, &["--strict"]);
    assert!(!strict.status.success() && !folder.at("d.hdr").exists());
    filtered(
        folder.at("b.hdr"),
        format!("raw:{}", folder.at("b.raw").display()),
        "identity",
        &[],
    );
    let numbers = floats(&fs::read(folder.at("b.raw")).unwrap());
    assert_eq!(numbers, [0.5, 0.25, 0.125, 2048.0, 0.0, 1024.0]);
    // Numbers that its exponent does not reach.
    let wild = [f32::INFINITY, -1.0, f32::NAN, 1e-45, 0.0, 1e-40]
        .map(f32::to_le_bytes)
        .concat();
    fs::write(folder.at("wild.raw"), wild).unwrap();
    let wild = format!("raw:2x1:rgbf32le:25:{}", folder.at("wild.raw").display());
    let words = filtered(wild, folder.at("wild.hdr"), "identity", &[]);
    assert!(words.contains("no samples that are no numbers (NaN)"), "{words}");
    filtered(
        folder.at("wild.hdr"),
        format!("raw:{}", folder.at("w.raw").display()),
        "identity",
        &[],
    );
    let numbers = floats(&fs::read(folder.at("w.raw")).unwrap());
    assert!(
        numbers[0] > 1.69e38 && numbers[1..].iter().all(|&v| v == 0.0),
        "{numbers:?}"
    );
}

#[test]
fn ids_of_cryptomatte_are_not_filtered() {
    use exr::image::{AnyChannel, AnyChannels};
    use exr::meta::attribute::AttributeValue;
    use exr::prelude::WritableImage;
    let folder = Folder::new();
    let mut image = exr(LAYERS);
    // Hashes, whose bits are no numbers to add.
    let ids: Vec<f32> = (0..20_u32)
        .map(|at| f32::from_bits(0x3f80_1234 ^ at.wrapping_mul(0x0123_4567)))
        .collect();
    let layer = &mut image.layer_data[0];
    let mut list = layer.channel_data.list.clone();
    for name in ["Ids00.r", "Ids00.g", "Ids.r"] {
        list.push(AnyChannel::new(name, FlatSamples::F32(ids.clone())));
    }
    layer.channel_data = AnyChannels::sort(list);
    layer.attributes.other.insert(
        "cryptomatte/0a1b2c3/name".into(),
        AttributeValue::Text("Ids".into()),
    );
    let (input, output) = (folder.at("ids.exr"), folder.at("out.exr"));
    image.write().to_file(&input).unwrap();
    filtered(&input, &output, "soft", &["--strict"]);
    let (before, after) = (exr(&input), exr(&output));
    for (name, is_kept) in [
        ("Ids00.r", true),
        ("Ids00.g", true),
        ("Ids.r", false),
        ("R", false),
    ] {
        assert_eq!(channel(&before, name) == channel(&after, name), is_kept, "{name}");
    }
}

#[test]
fn integers_are_made_with_a_word_about_what_is_cut() {
    let folder = Folder::new();
    let numbers = [-0.5_f32, 0.5, 1.0, 1.5, f32::NAN, 0.25]
        .map(f32::to_le_bytes)
        .concat();
    fs::write(folder.at("a.pfm"), [b"PF\n2 1\n-1.0\n", &numbers[..]].concat()).unwrap();
    let words = filtered(folder.at("a.pfm"), folder.at("a.png"), "identity", &[]);
    assert!(
        words.contains("integers of 16 bits")
            && words.contains("1 above 1, 1 below 0, 1 that are no numbers"),
        "{words}"
    );
    let png = ffmpeg(&["-i", folder.at("a.png").to_str().unwrap(), "-f", "rawvideo", "-"]);
    let words: Vec<u16> = png
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&b| u16::from_be_bytes(b))
        .collect();
    assert_eq!(words, [0, 32_768, 65_535, 65_535, 0, 16_384]);
    let words = filtered(folder.at("a.pfm"), folder.at("a.jpg"), "identity", &[]);
    assert!(words.contains("integers of 8 bits"), "{words}");
    fs::write(folder.at("b.pfm"), [b"PF\n2 1\n-1.0\n", &[0; 24][..]].concat()).unwrap();
    let strict = refused(folder.at("b.pfm"), folder.at("b.png"), &["--strict"]);
    assert!(strict.contains("would become integers"), "{strict}");
    let linear = filtered(
        "tests/media/layers.exr",
        folder.at("z.raw.exr"),
        "identity",
        &["--pixel-format", "f32x6"],
    );
    assert!(!linear.contains("warning"), "{linear}");
    let data = refused(LAYERS, folder.at("c.png"), &[]);
    assert!(data.contains("not colours; write OpenEXR"), "{data}");
    // What a picture cannot say beside its samples is named.
    let lost = filtered(
        LAYERS,
        format!("raw:{}", folder.at("c.raw").display()),
        "identity",
        &[],
    );
    for word in [
        "channel names",
        "channels that are not filtered (id)",
        "data window",
        "chromaticities",
        "owner",
    ] {
        assert!(lost.contains(word), "{word}: {lost}");
    }
}

#[test]
fn integers_become_numbers_and_come_back() {
    let folder = Folder::new();
    let png = folder.at("in.png");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=40x20",
        "-frames:v",
        "1",
        "-pix_fmt",
        "rgba64be",
        png.to_str().unwrap(),
    ]);
    let decoded = |path: &Path| {
        ffmpeg(&[
            "-i",
            path.to_str().unwrap(),
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgba64le",
            "-",
        ])
    };
    for kind in ["exr", "tif"] {
        let file = folder.at(&format!("a.{kind}"));
        filtered(&png, &file, "identity", &["--pixel-format", "rgbaf32"]);
        let back = folder.at("back.png");
        filtered(&file, &back, "identity", &[]);
        assert!(decoded(&back) == decoded(&png), "{kind}");
    }
    filtered(&png, folder.at("b.exr"), "identity", &[]);
    let words = decoded(&png);
    let red: Vec<f64> = words
        .chunks(8)
        .map(|p| f64::from((f64::from(u16::from_le_bytes([p[0], p[1]])) / 65_535.0) as f32))
        .collect();
    assert!(channel(&exr(folder.at("b.exr")), "R").1 == red);
    // Filtered in floating point, whatever the output holds.
    let words = filtered(&png, folder.at("c.png"), TENT, &["--pixel-format", "rgbaf32"]);
    assert!(words.contains("brought from rgba64le to rgbaf32le"), "{words}");
    let (fine, plain) = (folder.at("c.png"), folder.at("d.png"));
    filtered(&png, &plain, TENT, &[]);
    let word = |b: &[u8]| u16::from_le_bytes([b[0], b[1]]);
    let (a, b) = (decoded(&fine), decoded(&plain));
    let most = a
        .chunks(2)
        .zip(b.chunks(2))
        .map(|(a, b)| word(a).abs_diff(word(b)))
        .max();
    assert!(most <= Some(1), "{most:?}");
}

#[test]
fn files_of_a_folder_keep_their_kinds() {
    let folder = Folder::new();
    fs::create_dir(folder.at("in")).unwrap();
    let png = folder.at("in/a.png");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=16x8",
        "-frames:v",
        "1",
        png.to_str().unwrap(),
    ]);
    fs::copy(LAYERS, folder.at("in/b.exr")).unwrap();
    filtered(&png, folder.at("in/c.exr"), "identity", &[]);
    let words = filtered(folder.at("in"), folder.at("out/"), "identity", &["--strict"]);
    assert_eq!(names(&folder.at("out")), ["a.png", "b.exr", "c.exr"], "{words}");
    let pixels = |path: &Path| ffmpeg(&["-i", path.to_str().unwrap(), "-f", "rawvideo", "-"]);
    assert_eq!(pixels(&folder.at("out/a.png")), pixels(&png));
    let layers = exr(folder.at("out/b.exr"));
    assert_eq!(channel(&layers, "Z"), channel(&exr(LAYERS), "Z"));
    let (one, other) = (exr(folder.at("in/c.exr")), exr(folder.at("out/c.exr")));
    assert_eq!(channel(&one, "G"), channel(&other, "G"));
}

#[test]
fn samples_that_are_no_numbers_are_counted() {
    let folder = Folder::new();
    for (name, bad) in [("1.pfm", 1_usize), ("2.pfm", 0), ("3.pfm", 2)] {
        let mut numbers = [0.5_f32; 30];
        numbers[7..7 + bad].fill(f32::INFINITY);
        let bytes: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        fs::write(folder.at(name), [&b"Pf\n6 5\n-1.0\n"[..], &bytes].concat()).unwrap();
    }
    let words = filtered(folder.at("%d.pfm"), folder.at("out/%d.pfm"), TENT, &[]);
    assert!(
        words.contains("3 samples in 2 frames of the input, first in frame 0, are infinite"),
        "{words}"
    );
    assert_eq!(names(&folder.at("out")).len(), 3);
    let strict = refused(folder.at("1.pfm"), folder.at("o.pfm"), &["--strict"]);
    assert!(strict.contains("1 sample in 1 frame"), "{strict}");
}

#[test]
fn results_that_became_infinite_are_counted() {
    let folder = Folder::new();
    let input = folder.at("in.tif");
    // By twice they are below, at and beyond what 16 bits hold; the last is so in 32 bits.
    let halves = [1.5, 32752.0, 32768.0, 40000.0, -49984.0, 0.0];
    let numbers = halves.map(|v| f16::from_f32(v).to_f32());
    assert_eq!(numbers, halves);
    let mut file = b"PF\n2 1\n-1.0\n".to_vec();
    file.extend(halves.iter().flat_map(|v| v.to_le_bytes()));
    fs::write(folder.at("in.pfm"), file).unwrap();
    let half = ["--pixel-format", "rgbf16le"];
    filtered(folder.at("in.pfm"), folder.at("in.exr"), "identity", &half);
    let twice = "mask:rows=2";
    for (output, options, count) in [
        ("out.exr", &[][..], 3),
        ("out.tif", &[], 3),
        ("raw:out.raw", &[], 3),
        ("f32.tif", &["--pixel-format", "rgbf32le"], 0),
    ] {
        let target = match output.strip_prefix("raw:") {
            Some(name) => format!("raw:{}", folder.at(name).display()),
            None => folder.at(output).display().to_string(),
        };
        let words = filtered(folder.at("in.exr"), &target, twice, options);
        let named = target.trim_start_matches("raw:");
        let counted = format!("{count} samples in 1 frame for {named}, first in frame 0, became infinite");
        assert_eq!(words.contains(&counted), count > 0, "{words}");
        assert_eq!(words.contains("infinite"), count > 0, "{words}");
    }
    let (_, red) = channel(&exr(folder.at("out.exr")), "R");
    assert_eq!(red, [3.0, f64::INFINITY]);
    let strict = filter(folder.at("in.exr"), folder.at("strict.exr"), twice, &["--strict"]);
    assert!(
        !strict.status.success() && said(&strict).contains("3 samples of frame 0"),
        "{}",
        said(&strict)
    );
    assert!(!folder.at("strict.exr").exists());
    // What came in so is said once, where it came in.
    let words = filtered(folder.at("out.exr"), folder.at("again.exr"), twice, &[]);
    assert!(
        words.contains("3 samples in 1 frame of the input") && !words.contains("became"),
        "{words}"
    );
    // 32 bits, with both fields of two frames, of which the second has such results.
    let numbers: Vec<f32> = [1e38_f32, 3e38].iter().flat_map(|&v| [v; 12]).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(&input, bytes).unwrap();
    let raw = format!("raw:3x4:grayf32le:25:{}", input.display());
    let words = filtered(raw, "null:", twice, &["--fields"]);
    assert!(
        words.contains("12 samples in") && words.contains("first in frame 1, became"),
        "{words}"
    );
    assert!(words.contains("the most that 32 bits hold"), "{words}");
}

/// Writes straight or associated colours under alpha as TIFF.
fn alpha_tiff(path: &Path, kind: u16, (width, height): (u32, u32), pixels: &[f32]) {
    let mut out = fs::File::create(path).unwrap();
    let mut encoder = tiff::encoder::TiffEncoder::new(&mut out).unwrap();
    let image = encoder.new_image::<tiff::encoder::colortype::RGBA32Float>(width, height);
    let mut image = image.unwrap();
    let tag = tiff::tags::Tag::ExtraSamples;
    image.encoder().write_tag(tag, &[kind][..]).unwrap();
    image.write_data(pixels).unwrap();
}

#[test]
fn colours_of_openexr_in_videos_are_multiplied_by_alpha() {
    let folder = Folder::new();
    let size = (32_usize, 24_usize);
    let pixels: Vec<f32> = (0..size.0 * size.1 * 4)
        .map(|at| match at % 4 {
            3 => (at / 4 % 7 + 1) as f32 / 8.0,
            _ => (at * 7919 % 1009) as f32 / 512.0,
        })
        .collect();
    let options = ["--encoder", "exr", "--strict"];
    // FFmpeg's planes are green, blue, red and alpha.
    let stored = |path: &Path| -> Vec<[f32; 4]> {
        let all = planes(path, "gbrapf32le");
        let plane = all.len() / 4;
        let pixel = |k: usize| [2, 0, 1, 3].map(|p| all[p * plane + k]);
        (0..plane).map(pixel).collect()
    };
    for (kind, container) in [(2_u16, "mkv"), (2, "mov"), (1, "mkv")] {
        alpha_tiff(&folder.at("in.tif"), kind, (32, 24), &pixels);
        let video = folder.at(&format!("video.{container}"));
        let words = filtered(folder.at("in.tif"), &video, "identity", &options);
        assert_eq!(words.contains("multiplied by their alpha"), kind == 2, "{words}");
        for (given, found) in pixels.as_chunks::<4>().0.iter().zip(stored(&video)) {
            let factor = if kind == 2 { given[3] } else { 1.0 };
            let wanted = [given[0] * factor, given[1] * factor, given[2] * factor, given[3]];
            assert_eq!(found, wanted);
        }
        // Back they are what they were; and a copy loses nothing.
        filtered(&video, folder.at("copy.mkv"), "identity", &options);
        assert_eq!(stored(&folder.at("copy.mkv")), stored(&video));
        filtered(&video, folder.at("back.tif"), "identity", &["--strict"]);
        let file = fs::File::open(folder.at("back.tif")).unwrap();
        let mut decoder = tiff::decoder::Decoder::new(file).unwrap();
        let tag = tiff::tags::Tag::ExtraSamples;
        assert_eq!(decoder.get_tag_u32_vec(tag).unwrap(), [1]);
    }
    // Colour under an alpha of 0 is lost, and said to be.
    let mut hidden = pixels.clone();
    hidden[3] = 0.0;
    alpha_tiff(&folder.at("in.tif"), 2, (32, 24), &hidden);
    let words = filtered(folder.at("in.tif"), folder.at("h.mkv"), "identity", &options[..2]);
    assert!(
        words.contains("the colour of pixels with alpha 0 in 1 frame is not kept"),
        "{words}"
    );
    let strict = filter(folder.at("in.tif"), folder.at("s.mkv"), "identity", &options);
    assert!(!strict.status.success(), "{}", said(&strict));
    // Integers are divided by their maximum first.
    let name = |name: &str| folder.at(name).display().to_string();
    let rgba: Vec<u8> = (0..32 * 24 * 4).map(|at| (at * 7919 % 253 + 1) as u8).collect();
    fs::write(folder.at("rgba.raw"), &rgba).unwrap();
    filtered(
        format!("raw:32x24:rgba:25:{}", name("rgba.raw")),
        folder.at("i.mkv"),
        "identity",
        &options,
    );
    for (given, found) in rgba.as_chunks::<4>().0.iter().zip(stored(&folder.at("i.mkv"))) {
        let part = given.map(|v| f32::from(v) / 255.0);
        assert_eq!(
            found,
            [part[0] * part[3], part[1] * part[3], part[2] * part[3], part[3]]
        );
    }
    // Without alpha there is nothing to say.
    for (format, channels) in [("gbrpf32le", 3), ("grayf32le", 1)] {
        raw(&folder.at("plain.raw"), size, channels);
        let input = format!("raw:32x24:{format}:25:{}", name("plain.raw"));
        filtered(input, folder.at("plain.mkv"), "identity", &options);
        filtered(
            folder.at("plain.mkv"),
            folder.at("again.mkv"),
            "identity",
            &options,
        );
        let target = format!("raw:{}", name("back.raw"));
        filtered(folder.at("plain.mkv"), target, "identity", &["--strict"]);
        let same = [folder.at("plain.raw"), folder.at("back.raw")].map(|file| fs::read(file).unwrap());
        assert_eq!(same[0], same[1], "{format}");
    }
}

#[test]
fn light_under_no_alpha_is_named_where_colours_become_straight() {
    let folder = Folder::new();
    // Light under none, less than half a step of it, black under none, and colour under half.
    let pixels = [
        0.5_f32, 0.0, 0.25, 0.0, 1e-9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.25, 0.0, 0.5,
    ];
    for (kind, is_named) in [(1, true), (2, false)] {
        alpha_tiff(&folder.at("in.tif"), kind, (4, 1), &pixels);
        for (output, shows) in [
            ("o.png", false),
            ("o.mkv", false),
            ("o.exr", true),
            ("o.tif", true),
        ] {
            let options = if output == "o.mkv" {
                &["--encoder", "ffv1"][..]
            } else {
                &[]
            };
            let words = filtered(folder.at("in.tif"), folder.at(output), "identity", options);
            let said = "the light of 1 pixel with alpha 0 is not seen in";
            assert_eq!(
                words.contains(said),
                is_named && !shows,
                "{kind} {output}: {words}"
            );
        }
        let options = ["--background", "black"];
        let words = filtered(folder.at("in.tif"), folder.at("o.png"), "identity", &options);
        assert!(!words.contains("is not seen"), "{words}");
    }
}

#[test]
fn what_knows_integers_alone_says_so() {
    let folder = Folder::new();
    raw(&folder.at("in.raw"), (32, 24), 3);
    let input = format!("raw:32x24:rgbf32le:25:{}", folder.at("in.raw").display());
    let luma = refused(&input, folder.at("a.exr"), &["--planes", "luma"]);
    assert!(luma.contains("no luma is made of floating-point RGB"), "{luma}");
    let alpha = refused(&input, folder.at("a.exr"), &["--planes", "a"]);
    assert!(
        alpha.contains("does not have") && !alpha.contains("luma"),
        "{alpha}"
    );
    filtered(&input, folder.at("a.exr"), "identity", &[]);
    let exr = folder.at("a.exr");
    let done = Command::new(PROGRAM)
        .arg("diff")
        .args([&exr, &exr])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(said(&done).contains("diff compares levels"), "{}", said(&done));
    // Regions and mattes leave the rest as it is, and before and after stand side by side.
    let numbers = |path: &Path| planes(path, "gbrpf32le");
    let before = numbers(&exr);
    let in_place = |after: &[f32], plane: usize, x: usize, y: usize| {
        let at = (plane * 24 + y) * 32 + x;
        (before[at] == after[at], at)
    };
    filtered(&exr, folder.at("r.exr"), TENT, &["--region", "8x6+10+9"]);
    let after = numbers(&folder.at("r.exr"));
    let inside = |x: usize, y: usize| (10..18).contains(&x) && (9..15).contains(&y);
    let places = || (0..24).flat_map(|y| (0..32).map(move |x| (x, y)));
    let changed = places().filter(|&(x, y)| !in_place(&after, 0, x, y).0).count();
    assert!(places().all(|(x, y)| inside(x, y) || in_place(&after, 2, x, y).0));
    assert!(changed > 40, "{changed}");
    // A matte of numbers: half of the filtered picture on the right.
    let weights: Vec<u8> = (0..24 * 32)
        .flat_map(|at| [0.0_f32, 0.5][at % 32 / 16].to_le_bytes())
        .collect();
    fs::write(folder.at("m.pfm"), [&b"Pf\n32 24\n-1.0\n"[..], &weights].concat()).unwrap();
    let matte = folder.at("m.pfm");
    filtered(&exr, folder.at("w.exr"), TENT, &[]);
    filtered(
        &exr,
        folder.at("m.exr"),
        TENT,
        &["--matte", matte.to_str().unwrap()],
    );
    let mut wild = weights.clone();
    wild[..12].copy_from_slice(&[f32::NAN.to_le_bytes(); 3].concat());
    fs::write(folder.at("n.pfm"), [&b"Pf\n32 24\n-1.0\n"[..], &wild].concat()).unwrap();
    let words = filtered(
        &exr,
        folder.at("n.exr"),
        TENT,
        &["--matte", folder.at("n.pfm").to_str().unwrap()],
    );
    let name = format!(
        "3 samples in 1 frame of the matte {}",
        folder.at("n.pfm").display()
    );
    assert!(
        words.contains(&name) && words.matches("NaN)").count() == 1,
        "{words}"
    );
    let (whole, mixed) = (numbers(&folder.at("w.exr")), numbers(&folder.at("m.exr")));
    // NaN counts as 0, as the weights there did: the file begins with the lowest row.
    assert_eq!(numbers(&folder.at("n.exr")), mixed);
    for (x, y) in places() {
        let (is_same, at) = in_place(&mixed, 1, x, y);
        let weight = 32_768.0 / 65_535.0;
        let half = f64::from(before[at]) * (1.0 - weight) + f64::from(whole[at]) * weight;
        let near = (f64::from(mixed[at]) - half).abs() <= 1e-6 * half.abs().max(1.0);
        assert!(
            if x < 16 { is_same } else { near },
            "{x} {y}: {} {half}",
            mixed[at]
        );
    }
    filtered(&exr, folder.at("s.exr"), TENT, &["--compare", "side"]);
    let both = planes(&folder.at("s.exr"), "gbrpf32le");
    assert_eq!(both.len(), 2 * before.len());
    assert_eq!(both[64 * 23..][..32], before[32 * 23..][..32]);
    let video = filtered(&exr, folder.at("v.mkv"), "identity", &["--encoder", "ffv1"]);
    assert!(video.contains("ffv1"), "{video}");
    filtered(&exr, folder.at("v.y4m"), "identity", &[]);
    filtered("synthetic:16x8:gbrapf16le:25:2", folder.at("y/%d.exr"), TENT, &[]);
    assert_eq!(names(&folder.at("y")).len(), 2);
}

/// What becomes of a file: nothing, or why it is not read.
fn problem(path: &Path) -> Option<String> {
    let read = || {
        let files = images::open(path, &ImageSourceOptions::default())?;
        files.read(0, Buffer::unpooled(Box::new(Vec::new())))
    };
    read().err().map(|error| error.to_string())
}

#[test]
fn damaged_openexr_is_refused_in_a_sentence() {
    let folder = Folder::new();
    let path = folder.at("bad.exr");
    let golden = fs::read(LAYERS).unwrap();
    let tried = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        problem(&path)
    };
    for end in (1..golden.len()).step_by(5) {
        let problem = tried(&golden[..end]).unwrap_or_default();
        assert!(
            problem.contains("truncated") || problem.contains("damaged"),
            "{end}: {problem}"
        );
    }
    let mut refused = 0;
    for at in (0..golden.len()).step_by(2) {
        for change in [0x01, 0x80] {
            let mut bytes = golden.clone();
            bytes[at] ^= change;
            let problem = tried(&bytes);
            refused += u32::from(problem.is_some());
            let problem = problem.unwrap_or_default();
            assert!(!problem.contains("broke down"), "{at} {change}: {problem}");
        }
    }
    assert!(refused > 150, "{refused}");
}

#[test]
fn headers_of_openexr_that_lie_take_no_memory() {
    let folder = Folder::new();
    let tiled = folder.at("tiled.exr");
    let pixels = exr::prelude::SpecificChannels::rgb(|_| (0.5_f32, 0.5_f32, 0.5_f32));
    let encoding = exr::prelude::Encoding {
        blocks: exr::prelude::Blocks::Tiles(Vec2(16, 16)),
        ..exr::prelude::Encoding::FAST_LOSSLESS
    };
    let layer = exr::prelude::Layer::new((40, 20), Default::default(), encoding, pixels);
    exr::prelude::WritableImage::write(&exr::prelude::Image::from_layer(layer))
        .to_file(&tiled)
        .unwrap();
    assert_eq!(problem(&tiled), None);
    let golden = fs::read(LAYERS).unwrap();
    let tiled = fs::read(tiled).unwrap();
    let with = |file: &[u8], attribute: &[u8], at: usize, number: u32| {
        let found = file.windows(attribute.len()).position(|part| part == attribute);
        // The length of the value stands behind the kind.
        let place = found.unwrap() + attribute.len() + 4 + at;
        let mut bytes = file.to_vec();
        bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    let window = b"dataWindow\0box2i\0";
    let wide = with(&golden, window, 8, 1_000_000);
    let tiles = b"tiles\0tiledesc\0";
    let count = b"chunkCount\0int\0";
    let packed = |compression: u8| {
        let square = with(&with(&golden, window, 8, 7997), window, 12, 8002);
        let kind = b"compression\0compression\0";
        let place = square.windows(kind.len()).position(|part| part == kind).unwrap() + kind.len() + 4;
        let mut bytes = square;
        bytes[place] = compression;
        bytes
    };
    for (bytes, word) in [
        (with(&golden, window, 8, 20_000_000), "claims to hold"),
        (with(&wide, window, 12, 1_000_000), "--max-pixels allows"),
        (with(&golden, window, 8, u32::MAX - 99), "damaged"),
        (
            with(&with(&tiled, tiles, 0, 1 << 20), count, 0, 2),
            "tiles of 1048576x16",
        ),
        (
            with(&with(&tiled, tiles, 4, 1 << 20), count, 0, 3),
            "tiles of 16x1048576",
        ),
        (with(&tiled, tiles, 0, 0), "cannot be decoded"),
        (with(&tiled, window, 8, 1 << 20), "damaged"),
        // Equal samples of DWA take little, and not nothing.
        (packed(8), "claims to hold"),
        (packed(9), "claims to hold"),
        (packed(3), "claims to hold"),
        (gray_dwa([1 << 40, 0, 0, 0, 0]), "a block claims more"),
        (gray_dwa([0, 1 << 40, 0, 0, 0]), "a block claims more"),
        (gray_dwa([0, 0, 1 << 40, 0, 0]), "a block claims more"),
        (gray_dwa([0, 0, 0, 1 << 40, 0]), "a block claims more"),
        (gray_dwa([0, 0, 0, 0, 1 << 40]), "a block claims more"),
    ] {
        let path = folder.at("bad.exr");
        fs::write(&path, bytes).unwrap();
        let script = format!(
            "ulimit -v 1500000; exec {PROGRAM} filter {} null: --filter identity --engine none",
            path.display()
        );
        let done = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{word}: {}", said(&done));
        assert!(said(&done).contains(word), "{word}: {}", said(&done));
    }
}

/// A block of DWA that claims to unpack to so much: others, runs, of runs, AC and DC.
fn gray_dwa([others, runs, of_runs, ac, dc]: [u64; 5]) -> Vec<u8> {
    let file = gray_exr_with(&[("compression", "compression", &[8])], &[]);
    let (_, end) = attributes(&file);
    let counts = [2, others, 0, 0, 0, 0, runs, of_runs, ac, dc, 0];
    let counts: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    let place = (end as u64 + 8).to_le_bytes();
    let head = [0, counts.len() as u32].map(u32::to_le_bytes).concat();
    [&file[..end], &place, &head, &counts].concat()
}

#[test]
fn channels_that_are_kept_count_as_memory() {
    use exr::image::{AnyChannel, AnyChannels};
    use exr::prelude::WritableImage;
    let folder = Folder::new();
    let (input, output) = (folder.at("ids.exr"), folder.at("out.exr"));
    let side = 400;
    let mut channels = vec![AnyChannel::new(
        "R",
        FlatSamples::F16(vec![f16::ONE; side * side]),
    )];
    let ids = (0..12).map(|id| AnyChannel::new(&*format!("id{id}"), FlatSamples::U32(vec![id; side * side])));
    channels.extend(ids);
    let layer = exr::prelude::Layer::new(
        (side, side),
        Default::default(),
        exr::prelude::Encoding::FAST_LOSSLESS,
        AnyChannels::sort(channels.into()),
    );
    let image = exr::prelude::Image::from_layer(layer);
    image.write().to_file(&input).unwrap();
    // A frame has 0.3 MB, and 7.7 MB beside it.
    let words = refused(&input, &output, &["--max-memory", "4M"]);
    assert!(words.contains("--max-memory allows"), "{words}");
    filtered(&input, &output, "identity", &["--max-memory", "10M", "--strict"]);
    assert_eq!(channel(&exr(&output), "id7"), channel(&exr(&input), "id7"));
}

/// OpenEXR's own library reads neither these files nor copies of their headers.
#[test]
fn headers_that_openexr_refuses_are_not_copied() {
    let folder = Folder::new();
    let (input, output) = (folder.at("in.exr"), folder.at("out.exr"));
    let ints = |numbers: &[i32]| numbers.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let aspect = |ratio: f32| gray_exr_with(&[("pixelAspectRatio", "float", &ratio.to_le_bytes())], &[]);
    let inverted = gray_exr_with(&[("displayWindow", "box2i", &ints(&[5, 5, 0, 0]))], &[]);
    let width = gray_exr_with(&[("screenWindowWidth", "float", &(-1_f32).to_le_bytes())], &[]);
    let twice = |name: &str, kinds: [&str; 2]| {
        gray_exr(&kinds.map(|kind| attribute(name, kind, &[0x40; 4])).concat())
    };
    for (file, word) in [
        (aspect(0.0), "pixel aspect ratio is 0"),
        (aspect(-1.0), "pixel aspect ratio is -1"),
        (aspect(f32::NAN), "pixel aspect ratio is NaN"),
        (aspect(f32::INFINITY), "pixel aspect ratio is inf"),
        (aspect(2e6), "pixel aspect ratio is 2000000"),
        (inverted, "display window ends before it begins"),
        (width, "screen window's width is -1"),
        (
            twice("owner", ["string", "float"]),
            "attribute owner stands in the file twice",
        ),
        (
            twice("owner", ["float", "string"]),
            "attribute owner stands in the file twice",
        ),
        (
            twice("own", ["int", "float"]),
            "attribute own stands in the file twice",
        ),
        (
            twice("white", ["mine", "yours"]),
            "attribute white stands in the file twice",
        ),
        (
            gray_exr(&attribute("name", "float", &[0; 4])),
            "attribute name is of the type float",
        ),
        (
            gray_exr(&attribute("tiles", "int", &[0; 4])),
            "attribute tiles is of the type int",
        ),
    ] {
        fs::write(&input, file).unwrap();
        let words = filtered(&input, &output, "identity", &[]);
        assert!(
            words.contains("warning") && words.contains(word),
            "{word}: {words}"
        );
        let strict = refused(&input, folder.at("no.exr"), &["--strict"]);
        assert!(strict.contains(word), "{word}: {strict}");
        let written = fs::read(&output).unwrap();
        let (kept, _) = attributes(&written);
        assert_eq!(kept["pixelAspectRatio"].1, 1_f32.to_le_bytes());
        assert_eq!(kept["screenWindowWidth"].1, 1_f32.to_le_bytes());
        assert_eq!(kept["displayWindow"].1, ints(&[0, 0, 2, 1]));
        assert!(
            !kept.contains_key("name") && !kept.contains_key("tiles"),
            "{word}"
        );
        for name in ["owner", "own", "white"] {
            let name = format!("\0{name}\0");
            let count = written
                .windows(name.len())
                .filter(|part| *part == name.as_bytes())
                .count();
            assert!(count <= 1, "{word}");
        }
    }
    // One type, and the same value.
    for kinds in [["string", "string"], ["int", "int"]] {
        fs::write(&input, twice("own", kinds)).unwrap();
        filtered(&input, &output, "identity", &["--strict"]);
    }
    let named = |names: &[&str]| {
        let channel = |name: &&str| [name.as_bytes(), &[0], &ints(&[2, 0, 1, 1])].concat();
        let list = [names.iter().map(channel).collect::<Vec<_>>().concat(), vec![0]].concat();
        gray_exr_with(&[("channels", "chlist", &list)], &[])
    };
    let packed = |code: u8| gray_exr_with(&[("compression", "compression", &[code])], &[]);
    for (file, word) in [
        (named(&["R", "R"]), "two of its channels have the name R"),
        (
            named(&["B", "G", "R", "R"]),
            "two of its channels have the name R",
        ),
        (named(&["R", &"x".repeat(256)]), "more than 255 bytes"),
        (named(&["R", &"x".repeat(300)]), "more than 255 bytes"),
        (
            gray_exr(&attribute("pixelAspectRatio", "float", &[0; 4])),
            "two attributes pixelAspectRatio",
        ),
        (
            packed(10),
            "HTJ2K, which is not read; save it again with ZIP or PIZ",
        ),
        (
            packed(11),
            "HTJ2K, which is not read; save it again with ZIP or PIZ",
        ),
        (packed(12), "which is not read; save it again with ZIP or PIZ"),
    ] {
        fs::write(&input, file).unwrap();
        let words = refused(&input, folder.at("no.exr"), &[]);
        assert!(words.contains(word), "{word}: {words}");
    }
}

#[test]
fn channels_keep_their_names_at_another_size() {
    let folder = Folder::new();
    let (input, output) = (folder.at("in.exr"), folder.at("out.exr"));
    layers_exr(&input, &["Z", "l.R", "l.G", "l.B"]);
    filtered(&input, &output, TENT, &["--compare", "side", "--strict"]);
    let list = |file: &Layers| {
        let list = &file.layer_data[0].channel_data.list;
        list.iter().map(|c| c.name.to_string()).collect::<Vec<String>>()
    };
    assert_eq!(list(&exr(&output)), list(&exr(&input)));
    // Depth has no name among red, green and blue.
    let depth = [&b"Z\0"[..], &[2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]].concat();
    fs::write(&input, gray_exr_with(&[("channels", "chlist", &depth)], &[])).unwrap();
    filtered(&input, &output, TENT, &["--compare", "side", "--strict"]);
    assert_eq!(list(&exr(&output)), ["Z"]);
    let colours = filter(&input, &output, TENT, &["--pixel-format", "rgbf32"]);
    let words = said(&colours);
    assert!(
        !colours.status.success() || words.contains("the names of its channels (Z) are left out"),
        "{words}"
    );
}

/// Half of 16 bits that are no numbers, beside channels of 32 bits.
#[test]
fn what_is_no_number_keeps_its_bits_outside_a_region() {
    use exr::image::{AnyChannel, AnyChannels};
    use exr::prelude::WritableImage;
    let folder = Folder::new();
    let (input, output) = (folder.at("in.exr"), folder.at("out.exr"));
    let halves: Vec<f16> = (0..64)
        .map(|at| f16::from_bits([0x7c01, 0xfe37, 0xfc01, 0x7fff, 0x3c00][at % 5]))
        .collect();
    let layer = exr::prelude::Layer::new(
        (8, 8),
        Default::default(),
        exr::prelude::Encoding::FAST_LOSSLESS,
        AnyChannels::sort(
            vec![
                AnyChannel::new("R", FlatSamples::F16(halves.clone())),
                AnyChannel::new("Z", FlatSamples::F32(vec![1.0; 64])),
            ]
            .into(),
        ),
    );
    exr::prelude::Image::from_layer(layer)
        .write()
        .to_file(&input)
        .unwrap();
    filtered(&input, &output, TENT, &["--region", "2x2+6+6"]);
    let written = exr(&output);
    let list = &written.layer_data[0].channel_data.list;
    let FlatSamples::F16(red) = &list.iter().find(|c| c.name == *"R").unwrap().sample_data else {
        panic!("R has 16 bits");
    };
    for (at, (one, other)) in red.iter().zip(&halves).enumerate() {
        let is_inside = at % 8 >= 6 && at / 8 >= 6;
        assert!(is_inside || one.to_bits() == other.to_bits(), "{at}");
    }
}

/// Attributes of a header by name: the type and the bytes. With them the place behind the header.
fn attributes(file: &[u8]) -> (BTreeMap<String, (String, Vec<u8>)>, usize) {
    let mut at = 8;
    let word = |at: &mut usize| {
        let length = file[*at..].iter().position(|&byte| byte == 0).unwrap();
        let word = String::from_utf8(file[*at..*at + length].to_vec()).unwrap();
        *at += length + 1;
        word
    };
    let mut found = BTreeMap::new();
    loop {
        let name = word(&mut at);
        if name.is_empty() {
            return (found, at);
        }
        let kind = word(&mut at);
        let length = u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let value = file[at + 4..at + 4 + length].to_vec();
        at += 4 + length;
        found.insert(name, (kind, value));
    }
}

fn attribute(name: &str, kind: &str, value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u32).to_le_bytes();
    [name.as_bytes(), b"\0", kind.as_bytes(), b"\0", &length, value].concat()
}

/// An OpenEXR file of one gray channel of 32 bits, 3x2 and not packed, with further attributes.
fn gray_exr(further: &[u8]) -> Vec<u8> {
    gray_exr_with(&[], further)
}

/// The same with other values of its attributes.
fn gray_exr_with(others: &[(&str, &str, &[u8])], further: &[u8]) -> Vec<u8> {
    let ints = |numbers: &[i32]| numbers.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = [&20_000_630_u32.to_le_bytes()[..], &[2, 0, 0, 0]].concat();
    let channel = [b"Y\0".to_vec(), ints(&[2, 0, 1, 1]), vec![0]].concat();
    let window = ints(&[0, 0, 2, 1]);
    for (name, kind, value) in [
        ("channels", "chlist", &channel[..]),
        ("compression", "compression", &[0]),
        ("dataWindow", "box2i", &window),
        ("displayWindow", "box2i", &window),
        ("lineOrder", "lineOrder", &[0]),
        ("pixelAspectRatio", "float", &1_f32.to_le_bytes()),
        ("screenWindowCenter", "v2f", &[0; 8]),
        ("screenWindowWidth", "float", &1_f32.to_le_bytes()),
    ] {
        let other = others.iter().find(|(other, ..)| *other == name);
        let (name, kind, value) = other.copied().unwrap_or((name, kind, value));
        file.extend(attribute(name, kind, value));
    }
    file.extend_from_slice(further);
    file.push(0);
    let rows = file.len() as u64 + 16;
    file.extend([rows, rows + 20].iter().flat_map(|place| place.to_le_bytes()));
    for y in 0..2 {
        file.extend(ints(&[y, 12]));
        file.extend((0..3).flat_map(|x| (x as f32 * 0.25 + y as f32).to_le_bytes()));
    }
    file
}

#[test]
fn large_headers_of_openexr_are_read_or_called_large() {
    let folder = Folder::new();
    let (input, output) = (folder.at("in.exr"), folder.at("out.exr"));
    let large = |mebibytes: usize| gray_exr(&attribute("manifest", "string", &vec![b'x'; mebibytes << 20]));
    fs::write(&input, large(12)).unwrap();
    filtered(&input, &output, "identity", &["--strict"]);
    let (kept, _) = attributes(&fs::read(&output).unwrap());
    assert_eq!(kept["manifest"].1.len(), 12 << 20);
    fs::write(&input, large(17)).unwrap();
    let words = refused(&input, folder.at("no.exr"), &[]);
    assert!(
        words.contains("larger than 16 MiB") && !words.contains("truncated"),
        "{words}"
    );
    // A window of no pixel, whose ends in exchange would be one of 3x2.
    let mut file = gray_exr(&[]);
    let place = file
        .windows(17)
        .position(|part| part == b"dataWindow\0box2i\0")
        .unwrap()
        + 21;
    file[place..place + 16].rotate_left(8);
    fs::write(&input, file).unwrap();
    assert!(refused(&input, folder.at("no.exr"), &[]).contains("damaged"));
    // A comment of PNM.
    let (input, comment) = (folder.at("in.pgm"), vec![b'x'; 2 << 20]);
    fs::write(&input, [b"P5\n#", &comment[..], b"\n1 1\n255\n0"].concat()).unwrap();
    let words = refused(&input, folder.at("no.png"), &[]);
    assert!(
        words.contains("header of more than 1 MiB") && !words.contains("truncated"),
        "{words}"
    );
}

#[test]
fn attributes_of_openexr_are_written_as_they_stand() {
    let ints = |numbers: &[i32]| numbers.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let floats = |count: usize| {
        let numbers = (0..count).map(|v| v as f32 * 0.5);
        numbers.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
    };
    let doubles = |count: usize| vec![0x3f; 8 * count];
    let text = |words: &str| [ints(&[words.len() as i32]), words.as_bytes().to_vec()].concat();
    let list = [b"Q\0".to_vec(), ints(&[1, 1, 1, 1]), vec![0]].concat();
    // Every type of the file format, and what real files have in it.
    let all: Vec<(&str, &str, Vec<u8>)> = vec![
        ("keyCode", "keycode", ints(&[1, 2, 3, 4, 5, 6, 64])),
        ("ownKeyCode", "keycode", ints(&[7, 6, 5, 4, 3, 2, 20])),
        ("timeCode", "timecode", ints(&[0x0102_0304, 5])),
        ("noTime", "timecode", ints(&[-1, -1])),
        ("originalDataWindow", "box2i", ints(&[1, 2, 30, 40])),
        ("crop", "box2i", ints(&[10, 10, 5, 5])),
        ("area", "box2f", floats(4)),
        ("framesPerSecond", "rational", ints(&[24_000, 1001])),
        ("none", "rational", ints(&[-1, 0])),
        ("imageCounter", "int", ints(&[-5])),
        ("expTime", "float", floats(1)),
        ("nan", "float", vec![1, 0, 0xc0, 0x7f]),
        ("exact", "double", doubles(1)),
        ("envmap", "envmap", vec![1]),
        ("packed", "compression", vec![4]),
        ("order", "lineOrder", vec![2]),
        ("grid", "tiledesc", [ints(&[64, 32]), vec![0x11]].concat()),
        ("list", "chlist", list),
        ("chromaticities", "chromaticities", floats(8)),
        ("white", "chromaticities", floats(8)),
        ("many", "floatvector", floats(3)),
        ("words", "stringvector", [text("abc"), text("")].concat()),
        (
            "multiView",
            "stringvector",
            [text("left"), text("right")].concat(),
        ),
        ("m33", "m33f", floats(9)),
        ("worldToCamera", "m44f", floats(16)),
        ("m33d", "m33d", doubles(9)),
        ("m44d", "m44d", doubles(16)),
        ("v2i", "v2i", ints(&[1, -2])),
        ("v2f", "v2f", floats(2)),
        ("v2d", "v2d", doubles(2)),
        ("v3i", "v3i", ints(&[1, -2, 3])),
        ("v3f", "v3f", floats(3)),
        ("v3d", "v3d", doubles(3)),
        ("deepImageState", "deepImageState", vec![1]),
        ("blob", "bytes", [text("kind"), vec![1, 2, 3]].concat()),
        ("ids", "idmanifest", vec![0; 20]),
        ("owner", "string", b"me".to_vec()),
        ("nothing", "string", Vec::new()),
        ("latin", "string", b"\xe4\0\xff".to_vec()),
        ("comments", "int", ints(&[3])),
        ("own", "mytype", b"12345".to_vec()),
    ];
    let folder = Folder::new();
    let (input, output) = (folder.at("in.exr"), folder.at("out.exr"));
    let mut wanted = BTreeMap::new();
    let mut bytes = Vec::new();
    let check = |further: &[u8], wanted: &BTreeMap<String, (String, Vec<u8>)>| {
        fs::write(&input, gray_exr(further)).unwrap();
        filtered(&input, &output, "identity", &["--strict"]);
        let written = fs::read(&output).unwrap();
        let (found, end) = attributes(&written);
        for (name, value) in wanted {
            assert_eq!(found.get(name), Some(value), "{name}");
        }
        // The table of places follows the header, and the first block the table.
        let place = u64::from_le_bytes(written[end..end + 8].try_into().unwrap());
        assert_eq!(place, end as u64 + 16);
        assert_eq!(planes(&output, "grayf32le"), [0.0, 0.25, 0.5, 1.0, 1.25, 1.5]);
        found
    };
    for (name, kind, value) in all {
        let one = attribute(name, kind, &value);
        let value = (kind.to_owned(), value);
        check(&one, &BTreeMap::from([(name.to_owned(), value.clone())]));
        wanted.insert(name.to_owned(), value);
        bytes.extend(one);
    }
    check(&bytes, &wanted);
    // A preview shows the picture before the filter.
    let preview = [ints(&[1, 1]), vec![9; 4]].concat();
    let found = check(&attribute("preview", "preview", &preview), &BTreeMap::new());
    assert!(!found.contains_key("preview"));
    filtered(&input, folder.at("out.pfm"), "identity", &["--strict"]);
}

#[test]
fn radiance_of_every_order_is_read_upright() {
    let folder = Folder::new();
    let (file, raw) = (folder.at("a.hdr"), folder.at("a.raw"));
    // A picture of 3x2 pixels, a b c over d e f, as its rows or columns stand in the file.
    for (order, pixels) in [
        ("-Y 2 +X 3", "abcdef"),
        ("-Y 2 -X 3", "cbafed"),
        ("+Y 2 -X 3", "fedcba"),
        ("+Y 2 +X 3", "defabc"),
        ("+X 3 -Y 2", "adbecf"),
        ("-X 3 -Y 2", "cfbead"),
        ("-X 3 +Y 2", "fcebda"),
        ("+X 3 +Y 2", "daebfc"),
    ] {
        for magic in ["#?RADIANCE", "#?RGBE"] {
            let zeros = "PRIMARIES=0 0 0 0 0 0 0 0";
            let mut bytes = format!("{magic}\n{zeros}\nFORMAT=32-bit_rle_rgbe\n\n{order}\n").into_bytes();
            bytes.extend(
                pixels
                    .bytes()
                    .flat_map(|letter| [128 + letter - b'a', 128, 0, 129]),
            );
            fs::write(&file, bytes).unwrap();
            let words = filtered(&file, format!("raw:{}", raw.display()), "identity", &["--strict"]);
            assert!(words.contains("3x2 rgbf32"), "{order}: {words}");
            let numbers = floats(&fs::read(&raw).unwrap());
            let expected: Vec<f32> = (0..6)
                .flat_map(|at| [1.0 + at as f32 / 128.0, 1.0, 0.0])
                .collect();
            assert_eq!(numbers, expected, "{order}");
            let further = [&fs::read(&file).unwrap()[..], b"#?RADIANCE\n"].concat();
            fs::write(&file, further).unwrap();
            let words = said(&filter(&file, folder.at("b.exr"), "identity", &[]));
            assert!(
                words.contains("the file holds several pictures"),
                "{order}: {words}"
            );
        }
    }
    // What is no order is no picture.
    for order in ["-Y 2 +Y 3", "X 2 Y 3", "-Y 2", "-Y 2 +X many"] {
        fs::write(&file, format!("#?RGBE\n\n{order}\n")).unwrap();
        refused(&file, folder.at("c.exr"), &[]);
    }
}

/// The pixels of a Radiance HDR file, by the book: rows of 8 to 32767 pixels begin with 2, 2 and their
/// length, and hold runs of each component; others are plain.
fn rgbe(file: &[u8], width: usize, height: usize) -> Vec<[u8; 4]> {
    let order = format!("\n\n-Y {height} +X {width}\n");
    let head = file
        .windows(order.len())
        .position(|bytes| bytes == order.as_bytes());
    let mut rest = &file[head.unwrap() + order.len()..];
    let mut pixels = Vec::new();
    for _ in 0..height {
        if !(8..=32_767).contains(&width) {
            let (row, behind) = rest.split_at(4 * width);
            pixels.extend(row.as_chunks::<4>().0);
            rest = behind;
            continue;
        }
        assert_eq!(rest[..4], [2, 2, (width >> 8) as u8, width as u8]);
        rest = &rest[4..];
        let mut parts = Vec::new();
        while parts.len() < 4 * width {
            let (run, length) = match rest[0] {
                count @ 129.. => (vec![rest[1]; usize::from(count) - 128], 1),
                count => (rest[1..=usize::from(count)].to_vec(), usize::from(count)),
            };
            // No run goes on in the next component.
            assert!(parts.len() % width + run.len() <= width);
            parts.extend(run);
            rest = &rest[1 + length..];
        }
        pixels.extend((0..width).map(|x| [0, 1, 2, 3].map(|component| parts[component * width + x])));
    }
    assert!(rest.is_empty());
    pixels
}

#[test]
fn rows_of_radiance_that_cannot_be_packed_are_plain() {
    let folder = Folder::new();
    let (source, file) = (folder.at("in.raw"), folder.at("a.hdr"));
    for width in [7, 8, 32_767, 32_768, 32_769] {
        // Numbers that the file holds exactly.
        let numbers: Vec<f32> = (0..2 * width)
            .flat_map(|at| [128.0 + (at * 7919 % 127) as f32, (at % 128) as f32, 1.0])
            .collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        fs::write(&source, bytes).unwrap();
        let input = format!("raw:{width}x2:rgbf32le:25:{}", source.display());
        filtered(&input, &file, "identity", &[]);
        // Mantissas of 8 bits, whose exponent is that of 128 to 255.
        let expected: Vec<[u8; 4]> = numbers
            .chunks(3)
            .map(|pixel| [pixel[0] as u8, pixel[1] as u8, pixel[2] as u8, 136])
            .collect();
        let read = rgbe(&fs::read(&file).unwrap(), width, 2);
        assert!(read == expected, "{width}");
    }
}

/// An OpenEXR file of red, green, blue and others of 16 bits, all 0.5, written by the crate.
fn layers_exr(path: &Path, others: &[&str]) {
    use exr::image::{AnyChannel, AnyChannels};
    use exr::prelude::WritableImage;
    let names = ["R", "G", "B"].iter().chain(others);
    let list = names.map(|name| AnyChannel::new(*name, FlatSamples::F16(vec![f16::from_f32(0.5); 6])));
    let channels = AnyChannels::sort(list.collect());
    let encoding = exr::prelude::Encoding::FAST_LOSSLESS;
    let layer = exr::prelude::Layer::new((3, 2), Default::default(), encoding, channels);
    exr::prelude::Image::from_layer(layer)
        .write()
        .to_file(path)
        .unwrap();
}

#[test]
fn what_is_refused_of_layers_says_what_to_do() {
    let folder = Folder::new();
    let (depth, both) = (folder.at("z.exr"), folder.at("az.exr"));
    layers_exr(&depth, &["Z"]);
    layers_exr(&both, &["A", "Z"]);
    // No promise that it would be written without --strict.
    for options in [&["--strict"][..], &[]] {
        for name in ["a.png", "a.tif", "a.jpg", "a.hdr", "a.pfm"] {
            let words = refused(&depth, folder.at(name), options);
            assert!(words.contains("write OpenEXR (.exr)"), "{name}: {words}");
            assert!(!words.contains("without --strict"), "{name}: {words}");
        }
        let rgb = [options, &["--pixel-format", "rgb24"]].concat();
        let words = refused(&depth, folder.at("b.png"), &rgb);
        assert!(!words.contains("without --strict"), "{words}");
    }
    let words = refused(&both, folder.at("a.mkv"), &[]);
    assert!(
        words.contains("--pixel-format rgbaf32 takes R, G, B and A alone"),
        "{words}"
    );
    // The picture among them, as it is without them.
    let picture = folder.at("a.exr");
    layers_exr(&picture, &["A"]);
    for (name, format) in [
        ("p.png", "rgbaf32"),
        ("p.tif", "rgbaf16"),
        ("p.exr", "rgbaf32"),
        ("p.mkv", "gbrapf32le"),
    ] {
        let options = ["--pixel-format", format];
        let alone = folder.at(&format!("alone-{name}"));
        filtered(&picture, &alone, TENT, &options);
        let words = filtered(&both, folder.at(name), TENT, &options);
        assert!(words.contains("are left out: Z"), "{name}: {words}");
        // Matroska has numbers of chance.
        let is_same = fs::read(folder.at(name)).unwrap() == fs::read(&alone).unwrap();
        assert!(is_same || name == "p.mkv", "{name}");
        let strict = [&options[..], &["--strict"]].concat();
        let words = refused(&both, folder.at("strict.exr"), &strict);
        assert!(words.contains("are left out: Z"), "{words}");
    }
    // A colour below is laid under no channel of several.
    let background = ["--background", "white"];
    let words = refused(&both, folder.at("c.exr"), &background);
    assert!(words.contains("leave --background out"), "{words}");
    filtered(&depth, folder.at("d.exr"), "identity", &background);
    for planes in ["r", "a", "luma"] {
        let words = refused(&both, folder.at("e.exr"), &["--planes", planes]);
        assert!(words.contains("leave --planes out"), "{words}");
        assert!(!words.contains("name r, g and b"), "{words}");
    }
    // Files that differ in their channels are as linear as each other.
    let (from, to) = (folder.at("in"), folder.at("out"));
    fs::create_dir(&from).unwrap();
    layers_exr(&from.join("1.exr"), &[]);
    layers_exr(&from.join("2.exr"), &["Z"]);
    filtered(&from, format!("{}/", to.display()), "identity", &["--strict"]);
    assert_eq!(names(&to).len(), 2);
}

#[test]
fn pictures_that_no_pipe_gives_are_named() {
    let folder = Folder::new();
    let hdr = folder.at("a.hdr");
    fs::write(&hdr, b"#?RADIANCE\n\n-Y 1 +X 1\n\x80\x40\x20\x80").unwrap();
    for (input, kind) in [(Path::new(LAYERS), "OpenEXR"), (&hdr, "Radiance HDR")] {
        let out = folder.at("out.exr");
        let script = format!(
            "cat {} | {PROGRAM} filter /dev/stdin {} --filter identity",
            input.display(),
            out.display()
        );
        let done = Command::new("sh").args(["-c", &script]).output().unwrap();
        let words = said(&done);
        assert!(
            words.contains(kind) && words.contains("write it into a file"),
            "{words}"
        );
        assert!(!done.status.success() && !out.exists(), "{words}");
    }
}

#[test]
fn absolute_values_of_what_has_no_negative_weight() {
    let folder = Folder::new();
    let (source, out) = (folder.at("in.raw"), folder.at("out.raw"));
    let numbers = raw(&source, (13, 7), 3);
    let input = format!("raw:13x7:rgbf32le:25:{}", source.display());
    filtered(&input, format!("raw:{}", out.display()), "mask:rows=1:abs", &[]);
    let absolute: Vec<f32> = numbers.iter().map(|v| v.abs()).collect();
    assert_eq!(floats(&fs::read(&out).unwrap()), absolute);
    // What is below black and below the centre of chroma comes out above it.
    let samples: Vec<u8> = (0..3 * 64).map(|at| (at * 37 % 251) as u8).collect();
    fs::write(&source, &samples).unwrap();
    let input = format!("raw:8x8:yuv444p:25:{}", source.display());
    for engine in ["reference", "cpu"] {
        let done = Command::new(PROGRAM)
            .args(["filter", &input, &format!("raw:{}", out.display()), "--overwrite"])
            .args(["--filter", "mask:rows=0 0 0;0 1 0;0 0 0:abs", "--engine", engine])
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", said(&done));
        let expected: Vec<u8> = samples
            .iter()
            .enumerate()
            .map(|(at, &v)| {
                let level = if at < 64 { 16 } else { 128 };
                (u16::from(level) + u16::from(v.abs_diff(level))).min(255) as u8
            })
            .collect();
        assert_eq!(fs::read(&out).unwrap(), expected, "{engine}");
    }
}
