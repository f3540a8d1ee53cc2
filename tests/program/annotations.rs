//! What pictures say beside their pixels, from every kind of input to every kind of output: it is in the
//! output, or a warning names it, which is an error under `--strict`.
//!
//! Inputs are small files made here: pictures of ffmpeg's with blocks put in by the formats' own rules. That
//! a block arrived is seen in the bytes of the output, or by ffprobe.

use crate::common::{PROGRAM, ffmpeg, is_whole_matrix, said};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::slice;

/// Something that a file says: what a warning calls it, and what of it is found in the bytes of a file that
/// says it, any of these.
struct Annotation {
    words: &'static [&'static str],
    marks: &'static [&'static [u8]],
}

const EXIF: Annotation = Annotation {
    words: &["Exif"],
    marks: &[b"Maker-mark"],
};
const XMP: Annotation = Annotation {
    words: &["XMP"],
    marks: &[b"packet-mark"],
};
const ICC: Annotation = Annotation {
    words: &["ICC"],
    marks: &[b"profile-mark"],
};
const TEXT: Annotation = Annotation {
    words: &["text", "comment"],
    marks: &[b"text-mark"],
};
/// 254 pixels an inch, 100 a centimetre or 10 000 a metre, as pHYs and BMP, JFIF, and Exif say it.
const DENSITY: Annotation = Annotation {
    words: &["resolution"],
    marks: &[
        b"\0\0\x27\x10\0\0\x27\x10\x01",
        b"\x10\x27\0\0\x10\x27\0\0",
        b"JFIF\0\x01\x01\x01\0\xfe\0\xfe",
        b"JFIF\0\x01\x02\x01\0\xfe\0\xfe",
        b"JFIF\0\x01\x01\x02\0\x64\0\x64",
        b"JFIF\0\x01\x02\x02\0\x64\0\x64",
        b"\xfe\0\0\0\x01\0\0\0",
        b"\x64\0\0\0\x01\0\0\0",
    ],
};
/// Orientation 6 as an entry of Exif or TIFF.
const TURN: Annotation = Annotation {
    words: &["rotation", "orientation"],
    marks: &[
        b"\x12\x01\x03\0\x01\0\0\0\x06\0",
        b"\x01\x12\0\x03\0\0\0\x01\0\x06",
    ],
};

/// An Exif block: orientation 6 and a maker.
fn exif() -> Vec<u8> {
    let entries = b"\x0f\x01\x02\0\x0b\0\0\0\x26\0\0\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
    [&b"II*\0\x08\0\0\0\x02\0"[..], entries, &[0; 4], b"Maker-mark\0"].concat()
}

fn xmp() -> Vec<u8> {
    b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>packet-mark</x:xmpmeta>".to_vec()
}

fn profile(space: &[u8; 4]) -> Vec<u8> {
    let mut profile = vec![0; 200];
    profile[3] = 200;
    profile[8] = 4;
    profile[12..16].copy_from_slice(b"mntr");
    profile[16..20].copy_from_slice(space);
    profile[20..24].copy_from_slice(b"XYZ ");
    profile[36..40].copy_from_slice(b"acsp");
    profile[150..162].copy_from_slice(b"profile-mark");
    profile
}

fn be(number: usize) -> [u8; 4] {
    (number as u32).to_be_bytes()
}

fn le(number: usize) -> [u8; 4] {
    (number as u32).to_le_bytes()
}

fn has(bytes: &[u8], mark: &[u8]) -> bool {
    bytes.windows(mark.len()).any(|window| window == mark)
}

/// Pictures of 24x16 pixels in a file, by ffmpeg.
fn pictures(path: &Path, frames: &str, options: &[&str]) {
    let head = ["-f", "lavfi", "-i", "testsrc2=s=24x16:r=5", "-flags", "bitexact"];
    let head = [&head[..], &["-frames:v", frames]].concat();
    ffmpeg(&[&head[..], options, &[path.to_str().unwrap()]].concat());
}

fn has_encoder(name: &str) -> bool {
    let listed = Command::new("ffmpeg")
        .args(["-hide_banner", "-encoders"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&listed.stdout).contains(&format!(" {name} "))
}

fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [&kind[..], data].concat();
    let mut crc = flate2::Crc::new();
    crc.update(&body);
    [&be(data.len())[..], &body, &crc.sum().to_be_bytes()].concat()
}

/// Puts chunks behind the header of a PNG or APNG file.
fn annotate_png(path: &Path) {
    let mut packed = flate2::write::ZlibEncoder::new(b"icc\0\0".to_vec(), flate2::Compression::none());
    packed.write_all(&profile(b"RGB ")).unwrap();
    let packet = [b"XML:com.adobe.xmp\0\0\0\0\0", &xmp()[..]].concat();
    let chunks = [
        png_chunk(b"iCCP", &packed.finish().unwrap()),
        png_chunk(b"pHYs", b"\0\0\x27\x10\0\0\x27\x10\x01"),
        png_chunk(b"eXIf", &exif()),
        png_chunk(b"iTXt", &packet),
        png_chunk(b"tEXt", b"Title\0text-mark"),
    ]
    .concat();
    let mut file = fs::read(path).unwrap();
    while let Some(at) = file.windows(4).position(|name| name == b"pHYs") {
        file.drain(at - 4..at + 17);
    }
    file.splice(33..33, chunks);
    fs::write(path, file).unwrap();
}

fn jpeg_segment(marker: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16 + 2).to_be_bytes();
    [&[0xff, marker][..], &length, data].concat()
}

fn annotate_jpeg(path: &Path) {
    let file = fs::read(path).unwrap();
    let packet = [b"http://ns.adobe.com/xap/1.0/\0", &xmp()[..]].concat();
    let icc = [b"ICC_PROFILE\0\x01\x01", &profile(b"RGB ")[..]].concat();
    let segments = [
        jpeg_segment(0xe0, b"JFIF\0\x01\x01\x01\0\xfe\0\xfe\0\0"),
        jpeg_segment(0xe1, &[b"Exif\0\0", &exif()[..]].concat()),
        jpeg_segment(0xe1, &packet),
        jpeg_segment(0xe2, &icc),
        jpeg_segment(0xfe, b"text-mark"),
    ]
    .concat();
    // In place of the JFIF header.
    assert_eq!(file[2..4], [0xff, 0xe0]);
    let end = 4 + usize::from(u16::from_be_bytes([file[4], file[5]]));
    fs::write(path, [&file[..2], &segments, &file[end..]].concat()).unwrap();
}

/// The chunks of a WebP file after the head of an extended one.
fn annotate_webp(path: &Path) {
    let file = fs::read(path).unwrap();
    let chunk = |name: &[u8; 4], data: &[u8]| {
        let padding = vec![0; data.len() % 2];
        [&name[..], &le(data.len()), data, &padding].concat()
    };
    let (mut flags, rest) = match &file[12..16] {
        b"VP8X" => (file[20], &file[30..]),
        _ => (0, &file[12..]),
    };
    flags |= 0x20 | 0x08 | 0x04;
    let head = [flags, 0, 0, 0, 23, 0, 0, 15, 0, 0];
    let body = [
        b"WEBP".to_vec(),
        chunk(b"VP8X", &head),
        chunk(b"ICCP", &profile(b"RGB ")),
        rest.to_vec(),
        chunk(b"EXIF", &exif()),
        chunk(b"XMP ", &xmp()),
    ]
    .concat();
    fs::write(path, [&b"RIFF"[..], &le(body.len()), &body].concat()).unwrap();
}

/// Puts extensions before the first picture of a GIF file.
fn annotate_gif(path: &Path) {
    let mut file = fs::read(path).unwrap();
    let trailer: Vec<u8> = [1].into_iter().chain((0..=255).rev()).chain([0]).collect();
    let icc = profile(b"RGB ");
    let extensions = [
        &b"!\xfe\x09text-mark\0"[..],
        &[&b"!\xff\x0bXMP DataXMP"[..], &xmp(), &trailer].concat(),
        &[&b"!\xff\x0bICCRGBG1012"[..], &[200], &icc, &[0]].concat(),
    ]
    .concat();
    let table = if file[10] & 0x80 == 0 {
        0
    } else {
        3 << ((file[10] & 7) + 1)
    };
    file.splice(13 + table..13 + table, extensions);
    fs::write(path, file).unwrap();
}

/// A TIFF file of 2x2 pixels with all of it; of CMYK its profile is one, too.
fn tiff(path: &Path, is_cmyk: bool) {
    let samples = if is_cmyk { 4 } else { 3 };
    let short = |value: u16| (3_u16, 1_usize, value.to_le_bytes().to_vec());
    let bytes = |kind: u16, data: Vec<u8>| (kind, data.len(), data);
    let entries = [
        (256, short(2)),
        (257, short(2)),
        (258, (3, samples, [8, 0].repeat(samples))),
        (259, short(1)),
        (262, short(if is_cmyk { 5 } else { 2 })),
        (270, bytes(2, b"text-mark \xc2\xa9\0".to_vec())),
        (271, bytes(2, b"Maker-mark\0".to_vec())),
        // The place of the pixels.
        (273, (4, 1, le(8).to_vec())),
        (274, short(6)),
        (277, short(samples as u16)),
        (278, short(2)),
        (279, (4, 1, le(4 * samples).to_vec())),
        (282, (5, 1, b"\xfe\0\0\0\x01\0\0\0".to_vec())),
        (283, (5, 1, b"\xfe\0\0\0\x01\0\0\0".to_vec())),
        (296, short(2)),
        (700, bytes(1, xmp())),
        (34675, bytes(7, profile(if is_cmyk { b"CMYK" } else { b"RGB " }))),
    ];
    let mut values: Vec<u8> = (0..4 * samples as u8).map(|k| k * 9).collect();
    let mut directory = (entries.len() as u16).to_le_bytes().to_vec();
    for (tag, (kind, count, data)) in entries {
        directory.extend([&(tag as u16).to_le_bytes()[..], &kind.to_le_bytes(), &le(count)].concat());
        if data.len() <= 4 {
            directory.extend(data.iter().copied().chain([0; 4]).take(4));
        } else {
            values.resize(values.len().next_multiple_of(2), 0);
            directory.extend(le(8 + values.len()));
            values.extend(data);
        }
    }
    directory.extend([0; 4]);
    values.resize(values.len().next_multiple_of(2), 0);
    let head = [&b"II*\0"[..], &le(8 + values.len())].concat();
    fs::write(path, [head, values, directory].concat()).unwrap();
}

/// One of Photoshop's resources.
fn resource(id: u16, data: &[u8]) -> Vec<u8> {
    let padding = vec![0; data.len() % 2];
    [
        b"8BIM",
        &id.to_be_bytes()[..],
        &[0, 0],
        &be(data.len()),
        data,
        &padding,
    ]
    .concat()
}

/// A PSD file of 2x2 RGB pixels.
fn psd(path: &Path) {
    let resources = [
        resource(0x03ed, b"\0\xfe\0\0\0\x01\0\x01\0\xfe\0\0\0\x01\0\x01"),
        resource(0x040f, &profile(b"RGB ")),
        resource(0x0422, &exif()),
        resource(0x0424, &xmp()),
    ];
    psd_of(path, 3, &resources.concat(), 0);
}

/// A PSD file of 2x2 pixels of RGB, and of a fourth channel if there are as many, with these resources and,
/// where it is not 0, this number of layers.
fn psd_of(path: &Path, channels: u8, resources: &[u8], layers: i16) {
    let list = match layers {
        0 => Vec::new(),
        _ => [&be(2)[..], &layers.to_be_bytes(), &be(0)].concat(),
    };
    let samples = [7, 80, 9, 120, 50, 4, 77, 130, 8, 200, 31, 99, 0, 255, 128, 3];
    let file = [
        &b"8BPS\0\x01\0\0\0\0\0\0\0"[..],
        &[channels],
        b"\0\0\0\x02\0\0\0\x02\0\x08\0\x03\0\0\0\0",
        &be(resources.len()),
        resources,
        &be(list.len()),
        &list,
        &[0; 2],
        &samples[..4 * usize::from(channels)],
    ]
    .concat();
    fs::write(path, file).unwrap();
}

fn boxed(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    [&be(data.len() + 8), &name[..], data].concat()
}

/// What is in a box of a file, wherever it is.
fn content<'a>(file: &'a [u8], name: &[u8; 4]) -> &'a [u8] {
    let at = file.windows(4).position(|window| window == name).unwrap();
    let size = u32::from_be_bytes(file[at - 4..at].try_into().unwrap()) as usize;
    &file[at + 4..at - 4 + size]
}

/// An AVIF file of the picture in another one, with `properties` beside those that it needs, and XMP that
/// asks for orientation 6.
fn avif(path: &Path, properties: &[Vec<u8>]) {
    pictures(
        path,
        "1",
        &["-c:v", "libaom-av1", "-cpu-used", "8", "-pix_fmt", "yuv420p"],
    );
    let file = fs::read(path).unwrap();
    let picture = content(&file, b"mdat");
    let packet = [&xmp()[..], b"<a tiff:Orientation='6'/>"].concat();
    let mut all = vec![
        boxed(b"ispe", &[0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 16]),
        boxed(b"av1C", content(&file, b"av1C")),
        boxed(b"colr", &[b"prof", &profile(b"RGB ")[..]].concat()),
    ];
    all.extend(properties.iter().cloned());
    let places: Vec<u8> = (1..=all.len() as u8).collect();
    let ipma = [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 1, places.len() as u8], &places[..]].concat();
    let iprp = [boxed(b"ipco", &all.concat()), boxed(b"ipma", &ipma)].concat();
    let item = |number: u8, kind: &[u8]| boxed(b"infe", &[&[2, 0, 0, 0, 0, number, 0, 0], kind].concat());
    let items = [item(1, b"av01\0"), item(2, b"mime\0application/rdf+xml\0\0")].concat();
    let meta = |place: usize| {
        // Both items in `mdat`: places and lengths of 4 bytes.
        let entry =
            |number: u8, at: usize, len: usize| [&[0, number, 0, 0, 0, 1], &be(at)[..], &be(len)].concat();
        let iloc = [
            &[0, 0, 0, 0, 0x44, 0, 0, 2][..],
            &entry(1, place, picture.len()),
            &entry(2, place + picture.len(), packet.len()),
        ]
        .concat();
        let parts = [
            vec![0; 4],
            boxed(b"hdlr", b"\0\0\0\0\0\0\0\0pict\0\0\0\0\0\0\0\0\0\0\0\0\0"),
            boxed(b"pitm", &[0, 0, 0, 0, 0, 1]),
            boxed(b"iloc", &iloc),
            boxed(b"iinf", &[&[0, 0, 0, 0, 0, 2], &items[..]].concat()),
            boxed(b"iprp", &iprp),
        ];
        boxed(b"meta", &parts.concat())
    };
    let head = boxed(b"ftyp", b"avif\0\0\0\0avifmif1miaf");
    let place = head.len() + meta(0).len() + 8;
    let data = boxed(b"mdat", &[picture, &packet].concat());
    fs::write(path, [head, meta(place), data].concat()).unwrap();
}

fn framepipe(input: &Path, output: &Path, options: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("filter")
        .args([input, output])
        .args(["--filter", "identity", "--engine", "cpu"])
        .args(options)
        .output()
        .unwrap()
}

/// True if ffprobe finds the picture turned.
fn is_turned(path: &Path) -> bool {
    let probed = Command::new("ffprobe")
        .args(["-v", "error", "-show_streams", path.to_str().unwrap()])
        .output()
        .unwrap();
    String::from_utf8_lossy(&probed.stdout).contains("rotation=-90")
}

/// The first file of an output, with the profile of a PNG file unpacked behind it.
fn written(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    if let Some(at) = bytes.windows(4).position(|name| name == b"iCCP") {
        let name = bytes[at + 4..].iter().position(|&byte| byte == 0).unwrap();
        let mut profile = Vec::new();
        let mut packed = flate2::write::ZlibDecoder::new(&mut profile);
        // What follows the stream is none of its business.
        let _ = packed.write_all(&bytes[at + 4 + name + 2..]);
        drop(packed);
        bytes.extend(profile);
    }
    bytes
}

/// Runs one input to all outputs.
fn check(folder: &Path, name: &str, sayings: &[(&str, &Annotation)]) {
    let input = folder.join(name);
    let bytes = written(&input);
    for (what, annotation) in sayings {
        let there = annotation.marks.iter().any(|mark| has(&bytes, mark));
        assert!(there || *what == "turn", "{name} says {what}");
    }
    let outputs = [
        "png", "jpg", "webp", "tiff", "bmp", "ppm", "mp4", "mkv", "apng", "y4m",
    ];
    for (turn, output) in outputs.into_iter().enumerate() {
        let is_still = ["png", "jpg", "webp", "tiff", "bmp", "ppm"].contains(&output);
        let file = if is_still {
            format!("%02d.{output}")
        } else {
            format!("out.{output}")
        };
        let results = folder.join("results");
        fs::create_dir(&results).unwrap();
        let first = results.join(file.replace("%02d", "00"));
        let target = results.join(&file);
        let background: &[&str] = match output {
            "jpg" | "ppm" if name == "b.webp" || name.ends_with("gif") => &["--background", "white"],
            _ => &[],
        };
        let done = framepipe(&input, &target, background);
        let words = said(&done);
        assert!(done.status.success(), "{name} to {output}: {words}");
        let warnings: Vec<&str> = words.lines().filter(|l| l.starts_with("warning: ")).collect();
        let bytes = written(&first);
        for (what, annotation) in sayings {
            let is_held = annotation.marks.iter().any(|mark| has(&bytes, mark))
                || *what == "turn" && (words.contains("pictures turned") || is_turned(&first));
            let is_named = annotation
                .words
                .iter()
                .any(|word| warnings.iter().any(|warning| warning.contains(word)));
            assert!(is_held || is_named, "{name} to {output} loses {what}: {words}");
            // The few bytes of a density are elsewhere in a file by chance.
            let is_both = is_held && is_named && *what != "density";
            assert!(!is_both, "{name} to {output} holds {what}: {words}");
        }
        fs::remove_dir_all(&results).unwrap();
        // With --strict every other output, the others for other inputs, if not all are to be tried.
        if !is_whole_matrix() && (turn + name.len()) % 2 == 1 {
            continue;
        }
        fs::create_dir(&results).unwrap();
        let strict = framepipe(&input, &target, &[background, &["--strict"]].concat());
        assert_eq!(
            strict.status.code(),
            Some(i32::from(!warnings.is_empty())),
            "{name} to {output}, strict: {}",
            said(&strict)
        );
        assert_eq!(first.exists(), warnings.is_empty());
        fs::remove_dir_all(&results).unwrap();
    }
}

#[test]
fn stills_lose_nothing_unsaid() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let all = [
        ("exif", &EXIF),
        ("xmp", &XMP),
        ("icc", &ICC),
        ("text", &TEXT),
        ("density", &DENSITY),
        ("turn", &TURN),
    ];
    pictures(&at("a.png"), "1", &["-pix_fmt", "rgb24"]);
    annotate_png(&at("a.png"));
    check(folder.path(), "a.png", &all);
    pictures(&at("a.jpg"), "1", &[]);
    annotate_jpeg(&at("a.jpg"));
    check(folder.path(), "a.jpg", &all);
    let without_text = [all[0], all[1], all[2], all[5]];
    pictures(&at("a.webp"), "1", &["-c:v", "libwebp", "-lossless", "1"]);
    annotate_webp(&at("a.webp"));
    check(folder.path(), "a.webp", &without_text);
    tiff(&at("a.tif"), false);
    check(folder.path(), "a.tif", &all);
    tiff(&at("cmyk.tif"), true);
    check(folder.path(), "cmyk.tif", &all);
    psd(&at("a.psd"));
    check(folder.path(), "a.psd", &[all[0], all[1], all[2], all[5]]);
}

#[test]
fn animations_and_single_pictures_of_ffmpegs_lose_nothing_unsaid() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let blocks = [("exif", &EXIF), ("xmp", &XMP), ("icc", &ICC), ("turn", &TURN)];
    pictures(&at("b.png"), "3", &["-f", "apng", "-pix_fmt", "rgb24"]);
    annotate_png(&at("b.png"));
    let all = [&blocks[..], &[("text", &TEXT), ("density", &DENSITY)]].concat();
    check(folder.path(), "b.png", &all);
    let texts = [("xmp", &XMP), ("icc", &ICC), ("text", &TEXT)];
    for (name, frames) in [("b.gif", "3"), ("one.gif", "1")] {
        pictures(&at(name), frames, &[]);
        annotate_gif(&at(name));
        check(folder.path(), name, &texts);
    }
    if has_encoder("libwebp_anim") {
        pictures(&at("b.webp"), "3", &["-c:v", "libwebp_anim", "-lossless", "1"]);
        annotate_webp(&at("b.webp"));
        check(folder.path(), "b.webp", &blocks);
    } else {
        println!("SKIPPED: this FFmpeg writes no animated WebP");
    }
    if has_encoder("libjxl") {
        pictures(&at("bare.jxl"), "1", &["-pix_fmt", "rgb24"]);
        let picture = fs::read(at("bare.jxl")).unwrap();
        assert_eq!(picture[..2], [0xff, 0x0a]);
        let boxes = [
            boxed(b"JXL ", b"\r\n\x87\n"),
            boxed(b"ftyp", b"jxl \0\0\0\0jxl "),
            boxed(b"Exif", &[&[0; 4], &exif()[..]].concat()),
            boxed(b"xml ", &xmp()),
            boxed(b"jxlc", &picture),
        ];
        fs::write(at("c.jxl"), boxes.concat()).unwrap();
        check_overruled(folder.path(), "c.jxl");
    } else {
        println!("SKIPPED: this FFmpeg writes no JPEG XL");
    }
}

/// Runs a file to PNG whose Exif or XMP asks for orientation 6, and whose own properties for none.
fn check_overruled(folder: &Path, name: &str) {
    let (input, output) = (folder.join(name), folder.join(format!("{name}-%02d.png")));
    let words = said(&framepipe(&input, &output, &[]));
    assert!(
        words.contains("states orientation 6 in its Exif or XMP"),
        "{words}"
    );
    let bytes = written(&folder.join(format!("{name}-00.png")));
    assert!(has(&bytes, b"packet-mark"));
    assert!(!TURN.marks.iter().any(|mark| has(&bytes, mark)) && !has(&bytes, b"Orientation='6'"));
    let strict = framepipe(&input, &folder.join("strict-%02d.png"), &["--strict"]);
    assert_eq!(strict.status.code(), Some(1), "{}", said(&strict));
}

#[test]
fn avif_is_turned_by_its_properties_and_not_by_xmp() {
    if !has_encoder("libaom-av1") {
        println!("SKIPPED: this FFmpeg writes no AV1");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    avif(&at("plain.avif"), &[]);
    check_overruled(folder.path(), "plain.avif");
    // Three quarters against the clock are one with it, which is orientation 6: both agree.
    avif(&at("turned.avif"), &[boxed(b"irot", &[3])]);
    check(
        folder.path(),
        "turned.avif",
        &[("xmp", &XMP), ("icc", &ICC), ("turn", &TURN)],
    );
}

#[test]
fn damaged_profiles_and_blocks_of_tiff_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.tif");
    for (tag, word) in [(34675_u16, "ICC"), (700, "XMP"), (271, "Exif"), (270, "text")] {
        tiff(&input, false);
        let mut file = fs::read(&input).unwrap();
        let place = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize + 2;
        let entry = (place..)
            .step_by(12)
            .find(|&at| file[at..at + 2] == tag.to_le_bytes())
            .unwrap();
        // The offset of its values is behind the end of the file.
        file[entry + 8..entry + 12].copy_from_slice(&le(1 << 20));
        fs::write(&input, file).unwrap();
        let output = folder.path().join(format!("{tag}.png"));
        let words = said(&framepipe(&input, &output, &[]));
        assert!(
            words
                .lines()
                .any(|line| line.starts_with("warning: ") && line.contains(word)),
            "{tag}: {words}"
        );
        let strict = framepipe(&input, &folder.path().join("strict.png"), &["--strict"]);
        assert_eq!(strict.status.code(), Some(1), "{}", said(&strict));
    }
}

/// Chunks that say what PNG does not allow; each says something, so that what is not carried is named.
#[test]
fn damaged_chunks_of_png_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    pictures(&at("a.png"), "1", &["-pix_fmt", "rgb24"]);
    let plain = fs::read(at("a.png")).unwrap();
    let long = [&[b'a'; 80][..], b"\0text"].concat();
    let cases: &[(&[u8; 4], &[u8], &str)] = &[
        (b"iTXt", b"Title\0\0\0\0\0caf\xe9", "text"),
        (b"iTXt", b"Title\0\x02\0\0\0text", "text"),
        (b"iTXt", b"Title\0\0\0no zeros", "text"),
        (b"zTXt", b"Title\0\x01abc", "text"),
        (b"tEXt", b"no zero", "text"),
        (b"tEXt", b"\0no name", "text"),
        (b"tEXt", &long, "beyond 79 letters"),
        (b"pHYs", b"\0\0\x27\x10\0\0\x27\x10", "resolution"),
        (b"cHRM", &[0; 31], "chromaticities"),
        (b"gAMA", &[0; 4], "gamma"),
        (b"sRGB", &[9], "sRGB rendering intent"),
        (b"tIME", &[7, 0xe4, 13, 1, 0, 0, 0], "time of change"),
        (b"tIME", &[7, 0xe4, 12, 1, 24, 0, 0], "time of change"),
        (b"sBIT", &[0, 0, 0], "significant bits"),
        (b"sBIT", &[5; 5], "significant bits"),
        (b"mDCV", &[1; 23], "HDR mastering data"),
        (b"vpAg", &[0, 0, 0, 9], "vpAg"),
    ];
    for (name, data, word) in cases {
        let file = [&plain[..33], &png_chunk(name, data), &plain[33..]].concat();
        fs::write(at("in.png"), file).unwrap();
        let words = said(&framepipe(&at("in.png"), &at("out.png"), &["--overwrite"]));
        let warning = words.lines().find(|line| line.starts_with("warning: "));
        let is_named = warning.is_some_and(|line| line.contains(word));
        assert!(is_named, "{}: {words}", name.escape_ascii());
        let strict = framepipe(&at("in.png"), &at("strict.png"), &["--strict"]);
        assert_eq!(strict.status.code(), Some(1), "{}", said(&strict));
    }
    // What is allowed is not.
    for (name, data) in [
        (b"tIME", &[7, 0xe4, 2, 29, 23, 59, 60][..]),
        (b"pHYs", &[0; 9]),
        (b"tEXt", b"Title\0"),
        (b"iTXt", "Title\0\0\0\0\0caf\u{e9}".as_bytes()),
        (b"vpAg", &[0; 9]),
    ] {
        let file = [&plain[..33], &png_chunk(name, data), &plain[33..]].concat();
        fs::write(at("in.png"), file).unwrap();
        let strict = framepipe(&at("in.png"), &at("out.png"), &["--strict", "--overwrite"]);
        assert!(
            strict.status.success(),
            "{}: {}",
            name.escape_ascii(),
            said(&strict)
        );
    }
}

/// What heads say beside their samples: texts are carried where a place is known for them.
#[test]
fn heads_of_other_stills_lose_nothing_unsaid() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |input: &str, output: &str, options: &[&str]| {
        let done = framepipe(&at(input), &at(output), &[&["--overwrite"], options].concat());
        (done.status.code(), said(&done))
    };
    // Radiance HDR, whose lines stay as they are.
    let lines = "# a comment\nSOFTWARE=any\nOWNER=me\nCAPDATE=2020:01:02\npfilt -1 -x 100\n";
    let head = format!("#?RADIANCE\n{lines}FORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 2\n");
    let pixels = [128, 128, 128, 129, 0, 0, 0, 0];
    fs::write(at("a.hdr"), [head.as_bytes(), &pixels].concat()).unwrap();
    let reference = ["--engine", "reference", "--strict"];
    let hdr = |output: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["filter", "--filter", "identity", "--overwrite"]);
        let done = command.args([at("a.hdr"), at(output)]).args(reference).output();
        let done = done.unwrap();
        (done.status.code(), said(&done))
    };
    assert_eq!(hdr("b.hdr").0, Some(0), "{}", hdr("b.hdr").1);
    let written = fs::read(at("b.hdr")).unwrap();
    for line in lines.lines() {
        assert!(has(&written, format!("\n{line}\n").as_bytes()), "{line}");
    }
    // TIFF has a place for some of them, and PFM for none.
    for output in ["b.tif", "b.pfm"] {
        let (code, words) = hdr(output);
        assert!(code == Some(1) && words.contains("text"), "{words}");
    }
    // DPX, as FFmpeg writes it and with fields of its header.
    pictures(&at("a.dpx"), "1", &["-pix_fmt", "gbrp10le"]);
    let mut plain = fs::read(at("a.dpx")).unwrap();
    // Transfer and colours that nobody states.
    plain[801..803].copy_from_slice(&[4, 4]);
    fs::write(at("a.dpx"), &plain).unwrap();
    assert_eq!(run("a.dpx", "a.png", &["--strict"]).0, Some(0));
    // FFmpeg's numbers have the order of the samples' bytes.
    let number = |number: u32| match plain.starts_with(b"SDPX") {
        true => number.to_be_bytes(),
        false => number.to_le_bytes(),
    };
    let fields: [(usize, &[u8], &str, bool); 4] = [
        (136, b"2020:01:02:03:04:05", "2020:01:02:03:04:05", true),
        (1556, b"a camera", "a camera", true),
        (780, &number(1), "sign", false),
        (784, &number(95), "black and white (95", false),
    ];
    for (place, bytes, word, is_kept) in fields {
        let mut file = plain.clone();
        file[place..place + bytes.len()].copy_from_slice(bytes);
        fs::write(at("b.dpx"), file).unwrap();
        let (code, words) = run("b.dpx", "b.png", &["--strict"]);
        assert_eq!(code, Some(i32::from(!is_kept)), "{words}");
        match is_kept {
            true => assert!(has(&fs::read(at("b.png")).unwrap(), word.as_bytes())),
            false => assert!(words.contains(word), "{words}"),
        }
    }
    // SGI and FITS, which are read as videos of one picture.
    pictures(&at("a.sgi"), "1", &["-pix_fmt", "gray"]);
    assert_eq!(run("a.sgi", "a.png", &["--strict"]).0, Some(0));
    let mut file = fs::read(at("a.sgi")).unwrap();
    file[24..29].copy_from_slice(b"a cat");
    fs::write(at("b.sgi"), &file).unwrap();
    assert_eq!(run("b.sgi", "b.png", &["--strict"]).0, Some(0));
    assert!(has(&fs::read(at("b.png")).unwrap(), b"a cat"));
    file[107] = 1;
    fs::write(at("b.sgi"), &file).unwrap();
    let (code, words) = run("b.sgi", "b.png", &["--strict"]);
    assert!(code == Some(1) && words.contains("colour map 1"), "{words}");
    pictures(&at("a.fits"), "1", &["-pix_fmt", "gray"]);
    assert!(!run("a.fits", "a.png", &[]).1.contains("header cards"));
    let mut file = fs::read(at("a.fits")).unwrap();
    let end = file
        .chunks(80)
        .position(|card| card.starts_with(b"END "))
        .unwrap()
        * 80;
    let cards = format!("{:80}{:80}{:80}", "OBJECT  = 'M 31'", "HISTORY one", "END");
    file[end..end + 240].copy_from_slice(cards.as_bytes());
    fs::write(at("b.fits"), &file).unwrap();
    let (_, words) = run("b.fits", "b.png", &[]);
    assert!(words.contains("header cards (OBJECT, HISTORY)"), "{words}");
    // GIF: data behind it, and a frame that is larger than the screen.
    pictures(&at("a.gif"), "3", &[]);
    let gif = fs::read(at("a.gif")).unwrap();
    for (file, word) in [
        ([&gif[..], b"behind"].concat(), "bytes after the picture"),
        ([&gif[..6], &[20], &gif[7..]].concat(), "outside of the screen"),
        (gif[..gif.len() - 20].to_vec(), "its end is missing"),
    ] {
        fs::write(at("b.gif"), file).unwrap();
        let (_, words) = run("b.gif", "b.apng", &[]);
        assert!(words.contains("warning: ") && words.contains(word), "{words}");
        assert_eq!(run("b.gif", "b.apng", &["--strict"]).0, Some(1));
    }
    assert_eq!(run("a.gif", "b.apng", &["--strict"]).0, Some(0));
}

/// An Exif block that is cut off leads outside of itself.
#[test]
fn of_a_damaged_exif_block_the_rest_is_kept_and_the_damage_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    pictures(&at("plain.jpg"), "1", &[]);
    let plain = fs::read(at("plain.jpg")).unwrap();
    let whole = exif();
    // In the middle of the maker's name, and of a third entry.
    let third = [&whole[..8], b"\x03\0", &whole[10..38]].concat();
    for block in [&whole[..whole.len() - 4], &third[..]] {
        let segment = jpeg_segment(0xe1, &[b"Exif\0\0", block].concat());
        fs::write(at("a.jpg"), [&plain[..2], &segment, &plain[2..]].concat()).unwrap();
        for name in ["b.jpg", "b.png"] {
            let words = said(&framepipe(&at("a.jpg"), &at(name), &["--overwrite"]));
            let damaged = "holds damaged parts, which are left out: Exif";
            assert!(
                words.contains("warning: ") && words.contains(damaged),
                "{name}: {words}"
            );
            assert!(!has(&fs::read(at(name)).unwrap(), b"Maker"), "{name}");
            // What is stored is sound, and turns the picture.
            let again = framepipe(&at(name), &at("again.jpg"), &["--strict", "--overwrite"]);
            assert!(again.status.success(), "{name}: {}", said(&again));
            assert!(has(
                &fs::read(at("again.jpg")).unwrap(),
                b"\x12\x01\x03\0\x01\0\0\0\x06\0"
            ));
        }
        let strict = framepipe(&at("a.jpg"), &at("strict.png"), &["--strict"]);
        assert_eq!(strict.status.code(), Some(1), "{}", said(&strict));
    }
}

/// Programs of science state pages, size and channels in a description, which is not true of every picture.
#[test]
fn a_description_of_another_structure_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.tif");
    let find = |file: &[u8], text: &[u8]| file.windows(text.len()).position(|bytes| bytes == text);
    for (text, is_true) in [(b"shape=(5,2,)", false), (b"ImageJ=1.5\n\n", true)] {
        tiff(&input, false);
        let mut file = fs::read(&input).unwrap();
        let at = find(&file, b"text-mark \xc2\xa9").unwrap();
        file[at..at + text.len()].copy_from_slice(text);
        fs::write(&input, file).unwrap();
        for name in ["b.tif", "b.png"] {
            let output = folder.path().join(name);
            let strict = framepipe(&input, &output, &["--strict", "--overwrite"]);
            assert_eq!(strict.status.success(), is_true, "{name}: {}", said(&strict));
            let words = said(&framepipe(&input, &output, &["--overwrite"]));
            let is_named = words.contains("warning: a description of the file's structure (tifffile)");
            assert_eq!(is_named, !is_true, "{name}: {words}");
            assert_eq!(
                find(&fs::read(&output).unwrap(), &text[..10]).is_some(),
                is_true,
                "{name}"
            );
        }
    }
}

/// Of a sequence, a later still may be the first to say something, or may say something else: outputs that
/// hold no such thing, or hold it once for all frames, name that.
#[test]
fn what_later_stills_say_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    pictures(&at("a.png"), "1", &["-pix_fmt", "rgb24"]);
    let plain = fs::read(at("a.png")).unwrap();
    let with = |chunks: &[Vec<u8>]| [&plain[..33], &chunks.concat(), &plain[33..]].concat();
    let packed = |space: &[u8; 4], end: u8| {
        let mut profile = profile(space);
        profile[199] = end;
        let mut packed = flate2::write::ZlibEncoder::new(b"icc\0\0".to_vec(), flate2::Compression::none());
        packed.write_all(&profile).unwrap();
        png_chunk(b"iCCP", &packed.finish().unwrap())
    };
    let text = png_chunk(b"tEXt", b"Title\0text-mark");
    let density = png_chunk(b"pHYs", b"\0\0\x27\x10\0\0\x27\x10\x01");
    let turned = |orientation: u8| {
        let mut block = exif();
        block[8 + 2 + 12 + 8] = orientation;
        png_chunk(b"eXIf", &block)
    };
    let (rgb, other) = (packed(b"RGB ", 0), packed(b"RGB ", 1));
    let words = "annotations of stills (resolution (DPI), text)";
    let rotations = "1 frame with rotation 90 degrees clockwise and 1 with rotation 180 degrees instead of \
        upright";
    let nothing: &[Vec<u8>] = &[];
    for (second, third, outputs, words) in [
        (&[density][..], &[text][..], &["mkv", "apng"][..], words),
        (&[turned(6)], &[turned(3)], &["mov"], rotations),
        (
            &[other],
            nothing,
            &["mp4"],
            "1 frame with another ICC profile and 1 without ICC profile;",
        ),
        (
            slice::from_ref(&rgb),
            nothing,
            &["mov"],
            "1 frame without ICC profile;",
        ),
    ] {
        let first = if words.contains("ICC") {
            with(slice::from_ref(&rgb))
        } else {
            plain.clone()
        };
        let rest = [with(second), with(third)];
        for (name, file) in ["a.png", "b.png", "c.png"]
            .iter()
            .zip([&first, &rest[0], &rest[1]])
        {
            fs::write(at(name), file).unwrap();
        }
        let input = folder.path().join("?.png");
        for output in outputs {
            let target = at(&format!("out.{output}"));
            let said_all = said(&framepipe(&input, &target, &["--overwrite"]));
            let warnings: String = said_all.lines().filter(|l| l.starts_with("warning: ")).collect();
            assert!(warnings.contains(words), "{output}: {said_all}");
            let strict = framepipe(&input, &at(&format!("strict.{output}")), &["--strict"]);
            assert_eq!(strict.status.code(), Some(1), "{output}: {}", said(&strict));
        }
    }
}

/// WebP stores gray as RGB, for which a profile of gray is none.
#[test]
fn a_profile_of_gray_is_for_gray_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    pictures(&at("a.png"), "1", &["-pix_fmt", "gray"]);
    let mut packed = flate2::write::ZlibEncoder::new(b"icc\0\0".to_vec(), flate2::Compression::none());
    packed.write_all(&profile(b"GRAY")).unwrap();
    let mut file = fs::read(at("a.png")).unwrap();
    file.splice(33..33, png_chunk(b"iCCP", &packed.finish().unwrap()));
    fs::write(at("a.png"), file).unwrap();
    for (output, is_kept) in [("b.png", true), ("b.tif", true), ("b.webp", false)] {
        let words = said(&framepipe(&at("a.png"), &at(output), &[]));
        let is_named = words.contains("warning: a colour (ICC) profile was dropped: it is for GRAY");
        assert_eq!(is_named, !is_kept, "{output}: {words}");
        assert_eq!(has(&written(&at(output)), b"profile-mark"), is_kept, "{output}");
        let strict = framepipe(&at("a.png"), &at(&format!("strict-{output}")), &["--strict"]);
        assert_eq!(strict.status.success(), is_kept, "{output}: {}", said(&strict));
    }
}

/// What Photoshop writes into every file is no loss; paths, guides, the flag of copyright and layers are.
#[test]
fn photoshops_resources_are_named_where_they_say_something() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    pictures(&at("plain.jpg"), "1", &[]);
    tiff(&at("plain.tif"), false);
    let plain = fs::read(at("plain.jpg")).unwrap();
    let write = |resources: &[u8]| {
        let data = [b"Photoshop 3.0\0", resources].concat();
        let jpeg = [&plain[..2], &jpeg_segment(0xed, &data), &plain[2..]].concat();
        fs::write(at("a.jpg"), jpeg).unwrap();
        // In place of the XMP packet: tag 34377, whose bytes are put behind the file's end.
        let mut file = fs::read(at("plain.tif")).unwrap();
        let place = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
        let xmp = (place + 2..)
            .step_by(12)
            .find(|&at| file[at..at + 2] == 700_u16.to_le_bytes());
        let entry = [
            &34377_u16.to_le_bytes()[..],
            &7_u16.to_le_bytes(),
            &le(resources.len()),
            &le(file.len()),
        ]
        .concat();
        file[xmp.unwrap()..][..12].copy_from_slice(&entry);
        file.extend(resources);
        fs::write(at("a.tif"), file).unwrap();
        psd_of(&at("a.psd"), 3, resources, 0);
    };
    let square = [&[0, 0, 0, 1][..], &1_f64.to_be_bytes()].concat();
    let wide = [&[0, 0, 0, 1][..], &2_f64.to_be_bytes()].concat();
    let usual = [
        resource(0x03ed, b"\0\x48\0\0\0\x01\0\x01\0\x48\0\0\0\x01\0\x01"),
        resource(1011, &[0, 0, 0, 0, 0, 0, 0, 0, 1]),
        resource(1030, &[0, 5, 0, 0, 0, 1]),
        resource(1032, b"\0\0\0\x01\0\0\x02\x40\0\0\x02\x40\0\0\0\0"),
        resource(1034, &[0]),
        resource(1037, &[0, 0, 0, 90]),
        resource(1049, &[0, 0, 0, 30]),
        resource(1054, &[0; 4]),
        resource(1057, b"\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0\0\0\x01"),
        resource(1061, &[7; 16]),
        resource(1062, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3f, 0x80, 0, 0]),
        resource(1064, &square),
        resource(10_000, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 2]),
    ]
    .concat();
    let said_of = |name: &str, is_strict: bool| {
        let strict: &[&str] = if is_strict { &["--strict"] } else { &[] };
        framepipe(&at(name), &at("out.png"), &[&["--overwrite"], strict].concat())
    };
    let kinds = ["a.jpg", "a.tif", "a.psd"];
    write(&usual);
    for name in kinds {
        let done = said_of(name, true);
        assert!(done.status.success(), "{name}: {}", said(&done));
    }
    for (id, data) in [
        (2000, &[0; 26][..]),
        (2999, b"\x04path\0"),
        (1008, b"\x03cap"),
        (1032, b"\0\0\0\x01\0\0\x02\x40\0\0\x02\x40\0\0\0\x01\0\0\0\x40\0"),
        (1034, &[1]),
        (1035, b"http://example.org"),
        (1064, &wide),
    ] {
        write(&[&usual[..], &resource(id, data)].concat());
        for name in kinds {
            let words = said(&said_of(name, false));
            assert!(
                words.contains("left out: Photoshop's resources"),
                "{name} {id}: {words}"
            );
            assert_eq!(said_of(name, true).status.code(), Some(1), "{name} {id}");
        }
    }
    psd_of(&at("a.psd"), 3, &usual, 1);
    let words = said(&said_of("a.psd", false));
    assert!(words.contains("left out: Photoshop's layers\n"), "{words}");
    assert_eq!(said_of("a.psd", true).status.code(), Some(1));
    // Saved without the picture that they make.
    let version = resource(1057, b"\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\x01");
    psd_of(&at("a.psd"), 3, &version, 1);
    let words = said(&said_of("a.psd", false));
    assert!(words.contains("layers, which alone hold the picture"), "{words}");
}

/// The channel behind the colours of a PSD file is alpha where the file says so, or says nothing.
#[test]
fn saved_selections_are_no_alpha() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (input, output) = (at("a.psd"), at("out.png"));
    let decoded = |format: &str| {
        let path = output.to_str().unwrap();
        ffmpeg(&["-i", path, "-pix_fmt", format, "-f", "rawvideo", "-"])
    };
    let colours = [7, 50, 8, 80, 4, 200, 9, 77, 31, 120, 130, 99];
    let with_alpha = [7, 50, 8, 0, 80, 4, 200, 255, 9, 77, 31, 128, 120, 130, 99, 3];
    for (name, layers, words, is_alpha) in [
        (
            &b""[..],
            0,
            "whose kind the file does not state, is taken for alpha",
            true,
        ),
        (b"\x0cTransparency", 0, "", true),
        (
            b"\x07Alpha 1",
            0,
            "the saved selection 'Alpha 1' of each pixel is left out",
            false,
        ),
        (b"\x0bTransparenz", -1, "Photoshop's layers", true),
        (
            b"\x07Alpha 1",
            2,
            "the saved selection 'Alpha 1' of each pixel is left out",
            false,
        ),
    ] {
        psd_of(&input, 4, &resource(1006, name), layers);
        let done = framepipe(&input, &output, &["--overwrite"]);
        let all = said(&done);
        assert!(done.status.success() && all.contains(words), "{all}");
        assert_eq!(
            all.contains("is taken for alpha"),
            words.contains("taken"),
            "{all}"
        );
        let probed = Command::new("ffprobe")
            .args(["-v", "error", "-show_entries", "stream=pix_fmt"])
            .arg(&output)
            .output()
            .unwrap();
        let format = if is_alpha { "rgba" } else { "rgb24" };
        assert!(String::from_utf8_lossy(&probed.stdout).contains(&format!("pix_fmt={format}\n")));
        assert!(
            decoded(format) == if is_alpha { &with_alpha[..] } else { &colours },
            "{all}"
        );
        let strict = framepipe(&input, &output, &["--overwrite", "--strict"]);
        assert_eq!(
            strict.status.success(),
            is_alpha && layers == 0,
            "{}",
            said(&strict)
        );
    }
}

/// An Exif block with a maker's note behind two directories, at byte 44.
fn exif_with_note(note: &[u8]) -> Vec<u8> {
    let entry = |tag: u16, kind: u16, count: usize, value: usize| {
        let numbers = [[1, 0], tag.to_le_bytes(), kind.to_le_bytes()].concat();
        [&numbers[..], &le(count), &le(value), &[0; 4]].concat()
    };
    let directories = [entry(0x8769, 4, 1, 26), entry(0x927c, 7, note.len(), 44)].concat();
    [&b"II*\0\x08\0\0\0"[..], &directories, note].concat()
}

/// A maker's note as Canon's has offsets that count from the begin of the Exif block: it stays at its place,
/// or is named.
#[test]
fn a_makers_note_keeps_its_offsets_or_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    pictures(&at("plain.jpg"), "1", &[]);
    let plain = fs::read(at("plain.jpg")).unwrap();
    let write = |note: &[u8]| {
        let block = [b"Exif\0\0", &exif_with_note(note)[..]].concat();
        let file = [&plain[..2], &jpeg_segment(0xe1, &block), &plain[2..]].concat();
        fs::write(at("a.jpg"), file).unwrap();
    };
    // One entry, a text of 12 bytes behind it, at byte 62 of the block.
    let fixed = [
        &b"\x01\0\x09\0\x02\0"[..],
        &le(12),
        &le(62),
        &le(0),
        b"owner-mark1\0",
    ]
    .concat();
    // Of the same length, with a TIFF head of its own.
    let free = [&b"Nikon\0\x02\x10\0\0II*\0\x08\0\0\0"[..], b"owner-mark2\0"].concat();
    assert_eq!(fixed.len(), free.len());
    write(&fixed);
    for name in ["b.jpg", "b.png", "b.webp"] {
        let done = framepipe(&at("a.jpg"), &at(name), &["--strict"]);
        assert!(done.status.success(), "{name}: {}", said(&done));
        let file = fs::read(at(name)).unwrap();
        let mark = file
            .windows(11)
            .position(|bytes| bytes == b"owner-mark1")
            .unwrap();
        assert_eq!(&file[mark - 62..mark - 58], b"II*\0", "{name}");
    }
    let words = said(&framepipe(&at("a.jpg"), &at("b.tif"), &[]));
    assert!(
        words.contains("MakerNote (JPEG, PNG and WebP alone keep"),
        "{words}"
    );
    assert!(!has(&fs::read(at("b.tif")).unwrap(), b"owner-mark1"));
    let strict = framepipe(&at("a.jpg"), &at("strict.tif"), &["--strict"]);
    assert_eq!(strict.status.code(), Some(1), "{}", said(&strict));
    write(&free);
    let done = framepipe(&at("a.jpg"), &at("c.tif"), &["--strict"]);
    assert!(done.status.success(), "{}", said(&done));
    let mut file = fs::read(at("c.tif")).unwrap();
    let place = file.windows(free.len()).position(|bytes| bytes == free).unwrap();
    // And from TIFF, where the offsets are those of the file.
    file[place..place + fixed.len()].copy_from_slice(&fixed);
    fs::write(at("d.tif"), file).unwrap();
    for (input, is_kept) in [("c.tif", true), ("d.tif", false)] {
        for output in ["e.png", "e.tif"] {
            let words = said(&framepipe(&at(input), &at(output), &["--overwrite"]));
            let is_named = words.contains("left out: MakerNote, whose offsets are those of the whole file");
            assert_eq!(is_named, !is_kept, "{input} to {output}: {words}");
            assert_eq!(has(&fs::read(at(output)).unwrap(), b"owner-mark"), is_kept);
            let strict = framepipe(&at(input), &at(output), &["--overwrite", "--strict"]);
            assert_eq!(strict.status.success(), is_kept, "{}", said(&strict));
        }
    }
}

/// PNM files hold texts that are lines as comments, which every reader passes over.
#[test]
fn comments_of_pnm_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let heads: [(&str, &[u8], &str); 4] = [
        (
            "a.ppm",
            b"P6\n# Created by GIMP\n# caf\xc3\xa9\n2 1\n255\n",
            "rgb24",
        ),
        (
            "a.pgm",
            b"P5\n# Created by GIMP\n# caf\xc3\xa9\n6 1\n255\n",
            "gray",
        ),
        (
            "deep.ppm",
            b"P6\n# Created by GIMP\n# caf\xc3\xa9\n1 1\n65535\n",
            "rgb48be",
        ),
        (
            "a.pam",
            b"P7\n# Created by GIMP\n# caf\xc3\xa9\nWIDTH 3\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE \
              GRAYSCALE_ALPHA\nENDHDR\n",
            "ya8",
        ),
    ];
    for (name, head, format) in heads {
        let samples = [35, 10, 200, 0, 255, 32];
        fs::write(at(name), [head, &samples].concat()).unwrap();
        let output = at(&format!("out-{name}"));
        let done = framepipe(&at(name), &output, &["--strict"]);
        assert!(done.status.success(), "{name}: {}", said(&done));
        let file = fs::read(&output).unwrap();
        assert!(has(&file, b"\n# Created by GIMP\n# caf\xc3\xa9\n"), "{name}");
        let path = output.to_str().unwrap();
        let decoded = ffmpeg(&["-i", path, "-pix_fmt", format, "-f", "rawvideo", "-"]);
        assert_eq!(decoded, samples, "{name}");
    }
    // What is no line is named as before.
    pictures(&at("a.png"), "1", &["-pix_fmt", "rgb24"]);
    let plain = fs::read(at("a.png")).unwrap();
    let text = png_chunk(b"tEXt", b"Comment\0one \n\n two");
    fs::write(at("a.png"), [&plain[..33], &text, &plain[33..]].concat()).unwrap();
    let words = said(&framepipe(&at("a.png"), &at("b.ppm"), &[]));
    assert!(
        words.contains("PPM cannot hold") && words.contains("text dropped"),
        "{words}"
    );
}
