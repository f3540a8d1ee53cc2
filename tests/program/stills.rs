//! Stills and sequences of them through the program: right pixels or a word about them, nothing lost in
//! silence.

use crate::common::{PROGRAM, ffmpeg, ffprobe, is_whole_matrix, names, said};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A JPEG of 24x20 pixels, 4:2:0, each component in a baseline scan of its own.
const THREE_SCANS: &[&str] = &[
    "ffd8ffe000104a46494600010200000100010000ffdb0043000818181c181c2121212121212724272828282727272728",
    "28282b2b2b3333332b2b2b28282b2b303033333739373434333439393c3c3c4848454554545767677cffc00011080014",
    "001803012200021100031100ffc4001a000001050100000000000000000000000005000203040607ffc4002710000201",
    "02050401050000000000000000010211001203041321413132518171334261b1c1ffda0008010100003f00e5c755b10a",
    "a702788000dc927603e68be73133598645737150cc3b000bb4b5c21636eb34973199c1245d1201e88411c1060823e2a4",
    "c220ebac5c4e990bd0b05dc81ebdd19c42ba1a56cb77694ee543dc567cdbc777e284b98180a21194b1827b2e695b8fc7",
    "9dfcd671fea37afd555c7fb7dff29e9cd7ffc4001501010100000000000000000000000000000405ffc4002211000103",
    "040007000000000000000000000102113100032141041213325171c2ffda0008010211003f001dce2d6bbe85b31493cb",
    "97290b1920b86020c0c4d37acb50727cece8b3ee6668567bd1ebe6ac99afffc400150101010000000000000000000000",
    "0000000506ffc400241100010204050500000000000000000000010203000421311112223381326172a1b1ffda000801",
    "0311003f00a271a199692a270c79209d3635f7da24661942de5950cc6952904f48b9241a5a1998df7bca017b70f1f23f",
    "ffd9",
];

/// The same picture in one scan.
const ONE_SCAN: &[&str] = &[
    "ffd8ffe000104a46494600010200000100010000fffe00104c61766335392e33372e31303000ffdb0043000818181c18",
    "1c212121212121272427282828272727272828282b2b2b3333332b2b2b28282b2b303033333739373434333439393c3c",
    "3c4848454554545767677cffc40080000101000301010000000000000000000004050301020706010101010000000000",
    "00000000000000000405061000020003060405050100000000000000020112001141812113040332713151b133d2c142",
    "14a29154536111000103030204070101000000000000000131021121000304128133324122a1b17172c2615113ffc000",
    "11080014001803012200021100031100ffda000c03010002110311003f00f2e79a5b8c42c55b289258b6de09739afacd",
    "cd56a0804dc4c5112e0490e152895069875ace4da69e78d226f2da1e8c90e2d2baf9b3b8c7232a1a97165571628e2635",
    "ef0d9c5fe48f26adefcec7c41693b6b25a1e2a419100214145bd164c4373da5c4c4f1209f0a1af9fe5c21d46a765b515",
    "2a93e80d35634e8d35ca51f5da9fe9f687a6746e8b6055008593a37c11154627cbbe3de6ac7bff00b1b3f91f4cb7fd9e",
    "e124ff007b9ec627baaade4751858fccf2e1b8d2a5a09e90a4906897f0e7e615de125dff008dfed2a3f30aef092eff00",
    "c6ff0069161eb67b7d6ecea39f9be57d85b299305b299b256e0e6e61e1e97fffd9",
];

fn bytes(hex: &[&str]) -> Vec<u8> {
    let hex = hex.concat();
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

/// The engine for samples such as a file holds.
fn engine(input: &Path) -> &'static str {
    let extension = input.extension().and_then(|e| e.to_str());
    match extension {
        Some("exr" | "pfm" | "hdr") => "reference",
        _ => "cpu",
    }
}

fn framepipe(input: &Path, output: &Path, options: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("filter")
        .args([input, output])
        .args(["--filter", "mask:rows=1", "--engine", engine(input)])
        .args(options)
        .output()
        .unwrap()
}

/// What a run that must succeed said.
fn filtered(input: &Path, output: &Path, options: &[&str]) -> String {
    let done = framepipe(input, output, options);
    assert!(
        done.status.success(),
        "{} -> {}: {}",
        input.display(),
        output.display(),
        said(&done)
    );
    said(&done)
}

/// What a run that must fail said.
fn refused(input: &Path, output: &Path, options: &[&str]) -> String {
    let done = framepipe(input, output, options);
    assert_eq!(
        done.status.code(),
        Some(1),
        "{}: {}",
        input.display(),
        said(&done)
    );
    said(&done)
}

fn rgb(path: &Path) -> Vec<u8> {
    ffmpeg(&[
        "-i",
        path.to_str().unwrap(),
        "-pix_fmt",
        "rgb24",
        "-f",
        "rawvideo",
        "-",
    ])
}

/// A test picture of ffmpeg's.
fn picture(path: &Path, size: &str, options: &[&str]) {
    let source = format!("testsrc2=s={size}");
    let head = ["-f", "lavfi", "-i", &source, "-frames:v", "1"];
    ffmpeg(&[&head, options, &[path.to_str().unwrap()]].concat());
}

/// A folder of gray pictures with these numbers in their names.
fn numbered(folder: &Path, numbers: &[i64]) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    for number in numbers {
        picture(
            &folder.join(format!("f{number:04}.png")),
            "8x8",
            &["-pix_fmt", "gray"],
        );
    }
    folder.join("f%04d.png")
}

#[test]
fn scans_of_one_component_each_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, hex: &[&str]| {
        let (input, output) = (
            folder.path().join(name),
            folder.path().join(format!("{name}.png")),
        );
        fs::write(&input, bytes(hex)).unwrap();
        filtered(&input, &output, &["--strict"]);
        (rgb(&input), rgb(&output))
    };
    let (one, three) = (read("one.jpg", ONE_SCAN), read("three.jpg", THREE_SCANS));
    assert_eq!(one.0, three.0, "FFmpeg finds the same picture in both");
    assert_eq!(one.1.len(), 3 * 24 * 20);
    assert!(one.1 == three.1);
    // Without the last scan the decoder makes its component gray and says nothing.
    let mut lacking = bytes(THREE_SCANS);
    let last = lacking
        .windows(2)
        .rposition(|marker| *marker == [0xff, 0xda])
        .unwrap();
    lacking.truncate(last);
    lacking.extend([0xff, 0xd9]);
    fs::write(folder.path().join("lacking.jpg"), lacking).unwrap();
    read_with_a_word(&folder.path().join("lacking.jpg"), "of which its scans hold 2");
}

/// What a run said that read `bytes` from a pipe.
fn piped(bytes: &[u8], output: &Path, options: &[&str]) -> Output {
    let mut child = Command::new(PROGRAM)
        .args(["filter", "/dev/stdin", output.to_str().unwrap(), "-y"])
        .args(["--filter", "mask:rows=1", "--engine", "cpu"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn images_are_recognised_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Exif says that it is to be turned, and names its author.
    let exif =
        b"II*\0\x08\0\0\0\x02\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\x3b\x01\x02\0\x03\0\0\0me\0\0\0\0\0\0";
    let density = [&1000_u32.to_be_bytes()[..], &1000_u32.to_be_bytes(), &[1]].concat();
    png(&at("named.png"), &[(b"pHYs", &density), (b"eXIf", exif)]);
    filtered(&at("named.png"), &at("named.out.png"), &["--strict"]);
    pages(&at("pages.tif"), &[6, 6, 6]);
    filtered(&at("named.png"), &at("named.jpg"), &["--strict"]);
    filtered(&at("named.jpg"), &at("jpeg.out.png"), &["--strict"]);
    for (from, to, result) in [
        ("named.png", "upload", "named.out.png"),
        ("named.jpg", "photo.jpg.1", "jpeg.out.png"),
        ("named.jpg", "IMG_1.HEIC", "jpeg.out.png"),
        ("named.jpg", "photo.gif", "jpeg.out.png"),
        ("named.jpg", "photo.dpx", "jpeg.out.png"),
    ] {
        fs::copy(at(from), at(to)).unwrap();
        filtered(&at(to), &at("out.png"), &["--strict", "--overwrite"]);
        assert!(
            fs::read(at("out.png")).unwrap() == fs::read(at(result)).unwrap(),
            "{to}"
        );
    }
    fs::copy(at("pages.tif"), at("scan")).unwrap();
    filtered(&at("scan"), &at("scans/"), &["--strict"]);
    assert_eq!(
        names(&at("scans")),
        ["scan-000.png", "scan-001.png", "scan-002.png"]
    );
    // Pictures one behind the other are a video, as they are in a pipe.
    let (one, jpeg) = (
        fs::read(at("named.png")).unwrap(),
        fs::read(at("named.jpg")).unwrap(),
    );
    for (name, file) in [("pngs", &one), ("jpegs", &jpeg)] {
        fs::write(at(name), [&file[..], file, file].concat()).unwrap();
        let output = at(&format!("{name}.out/"));
        filtered(&at(name), &output, &[]);
        assert_eq!(names(&output).len(), 3, "{name}");
    }
    // Nothing of a pipe can be read twice.
    let done = piped(&one, &at("piped.png"), &[]);
    assert!(
        done.status.success() && said(&done).contains("one picture from a pipe"),
        "{}",
        said(&done)
    );
    // FFmpeg gives how a JPEG is turned, and the pixels are.
    let done = piped(&jpeg, &at("turned.png"), &[]);
    assert!(said(&done).contains("beside them (Exif, "), "{}", said(&done));
    let turned = fs::read(at("turned.png")).unwrap();
    assert_eq!(turned[16..24], [&one[20..24], &one[16..20]].concat());
    let done = piped(&one, &at("strict.png"), &["--strict"]);
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(!at("strict.png").exists());
    let done = piped(&[&one[..], &one].concat(), &at("pipe/"), &[]);
    assert!(
        done.status.success() && said(&done).contains("they are pictures from a pipe"),
        "{}",
        said(&done)
    );
    let gray = [&b"P5\n64 64\n255\n"[..], &[99; 4096]].concat();
    let done = piped(&gray, &at("gray.png"), &["--strict"]);
    assert!(done.status.success(), "{}", said(&done));
}

/// An Exif block that asks for orientation 6.
const ON_ITS_SIDE: &[u8] = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";

/// Several pictures in a pipe are a video: what one of them says beside its pixels and FFmpeg does not give
/// is named, and no more than that.
#[test]
fn what_pictures_in_a_pipe_say_beside_their_pixels_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let made = |name: &str, options: &[&str]| {
        picture(&at(name), "32x24", options);
        fs::read(at(name)).unwrap()
    };
    let png = made("a.png", &[]);
    // Behind the signature and the header.
    let with = |kind: &[u8; 4], data: &[u8]| [&png[..33], &chunk(kind, data), &png[33..]].concat();
    let exif = [&b"\xff\xe1\0\x22Exif\0\0"[..], ON_ITS_SIDE].concat();
    let jpeg = made("a.jpg", &[]);
    let webp = made("a.webp", &["-c:v", "libwebp", "-lossless", "1"]);
    let turned_webp = {
        // An extended header with the flag for Exif, and the size less one.
        let header = [&b"VP8X\x0a\0\0\0\x08\0\0\0\x1f\0\0\x17\0\0"[..]].concat();
        let block = [&b"EXIF\x1a\0\0\0"[..], ON_ITS_SIDE].concat();
        let body = [&b"WEBP"[..], &header, &webp[12..], &block].concat();
        [&b"RIFF"[..], &(body.len() as u32).to_le_bytes(), &body].concat()
    };
    let resolution = [&5906_u32.to_be_bytes()[..], &5906_u32.to_be_bytes(), b"\x01"].concat();
    for (what, first, second, words) in [
        (
            "orientation",
            &with(b"eXIf", ON_ITS_SIDE),
            &png,
            &["orientation"][..],
        ),
        (
            "in the second",
            &png,
            &with(b"eXIf", ON_ITS_SIDE),
            &["orientation"],
        ),
        ("text", &with(b"tEXt", b"Author\0Somebody"), &png, &["text"]),
        (
            "gamma",
            &with(b"gAMA", &100_000_u32.to_be_bytes()),
            &png,
            &["gamma"],
        ),
        ("cicp", &with(b"cICP", &[9, 16, 0, 1]), &png, &["CICP colour"]),
        (
            "resolution",
            &with(b"pHYs", &resolution),
            &png,
            &["resolution (DPI)"],
        ),
        (
            "two facts",
            &with(b"tEXt", b"Author\0Somebody"),
            &with(b"pHYs", &resolution),
            &["resolution (DPI)", "text"],
        ),
        ("webp", &turned_webp, &webp, &["orientation"]),
        ("plain PNG", &png, &png, &[]),
        ("plain JPEG", &jpeg, &jpeg, &[]),
        ("plain WebP", &webp, &webp, &[]),
        // FFmpeg tells how JPEGs are turned.
        (
            "turned JPEG",
            &[&jpeg[..2], &exif, &jpeg[2..]].concat(),
            &jpeg,
            &[],
        ),
    ] {
        let bytes = [&first[..], second].concat();
        let done = piped(&bytes, &at("out/"), &["-q"]);
        assert!(done.status.success(), "{what}: {}", said(&done));
        let shown = said(&done);
        assert_eq!(
            shown.contains("pictures from a pipe"),
            !words.is_empty(),
            "{what}: {shown}"
        );
        for word in words {
            assert_eq!(shown.matches(word).count(), 1, "{what}: {word}: {shown}");
        }
        let done = piped(&bytes, &at("strict/"), &["-q", "--strict"]);
        assert_eq!(done.status.success(), words.is_empty(), "{what}: {}", said(&done));
        fs::remove_dir_all(at("out")).unwrap();
        let _ = fs::remove_dir_all(at("strict"));
    }
}

#[test]
fn damaged_jpegs_are_given_with_a_word_and_refused_if_strict() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.jpg"), folder.path().join("out.png"));
    picture(&input, "128x128", &["-q:v", "3"]);
    let whole = fs::read(&input).unwrap();
    filtered(&input, &output, &["--strict"]);
    let mut half = whole[..whole.len() * 6 / 10].to_vec();
    half.extend([0xff, 0xd9]);
    for data in [&half[..], &whole[..whole.len() / 2], &whole[..whole.len() - 2]] {
        fs::write(&input, data).unwrap();
        assert!(filtered(&input, &output, &["--overwrite"]).contains("damaged"));
        let error = refused(&input, &folder.path().join("strict.png"), &["--strict"]);
        assert!(
            error.contains("damaged") && !folder.path().join("strict.png").exists(),
            "{error}"
        );
    }
}

#[test]
fn frame_buffers_are_no_more_than_frames() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let report_name = report.to_str().unwrap();
    // FFmpeg reads SGI as a video of one frame.
    for (name, workers) in [
        ("one.png", "1"),
        ("one.png", "64"),
        ("one.sgi", "64"),
        ("one.dpx", "64"),
    ] {
        let input = folder.path().join(name);
        picture(&input, "640x480", &["-pix_fmt", "rgb24"]);
        let options = ["--workers", workers, "--report", report_name, "--overwrite"];
        filtered(&input, &folder.path().join("out.png"), &options);
        let report: serde_json::Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
        let text = report.to_string();
        let buffers: u64 = ["input_bytes", "output_bytes"]
            .iter()
            .map(|key| {
                let at = text
                    .find(&format!("\"{key}\":"))
                    .unwrap_or_else(|| panic!("{key} in {text}"));
                let digits = text[at + key.len() + 3..].trim_start();
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap();
                digits[..end].parse::<u64>().unwrap()
            })
            .sum();
        // Two frames, with padded rows.
        assert!(
            buffers <= 2 * 640 * 480 * 3 + 100_000,
            "{name}, {workers} workers: {buffers} bytes"
        );
    }
    // Two pictures in a file are two frames.
    if has_encoder("qoi") {
        let (one, two) = (folder.path().join("one.qoi"), folder.path().join("two.qoi"));
        picture(&one, "16x16", &["-pix_fmt", "rgb24"]);
        fs::write(&two, fs::read(&one).unwrap().repeat(2)).unwrap();
        filtered(&two, &folder.path().join("both/"), &[]);
        assert_eq!(fs::read_dir(folder.path().join("both")).unwrap().count(), 2);
    }
    // Of DPX the first is read, with a word.
    let (one, two) = (folder.path().join("one.dpx"), folder.path().join("two.dpx"));
    fs::write(&two, fs::read(&one).unwrap().repeat(2)).unwrap();
    let said = filtered(&two, &folder.path().join("first.png"), &[]);
    assert!(said.contains("the file holds several pictures"), "{said}");
}

/// Of a video a number is how many frames, of image files which one.
#[test]
fn a_number_of_frames_of_a_folder_is_said_to_be_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let pattern = numbered(&folder.path().join("in"), &[1, 2, 3, 4, 5]);
    let out = |name: &str| folder.path().join(name);
    let said = filtered(&out("in"), &out("one/"), &["--frames", "3"]);
    let note =
        "--frames 3 of image files is the one at place 3, counted from 0; the first 3 are --frames 0-2";
    assert!(said.contains(note), "{said}");
    assert_eq!(names(&out("one")), ["f0004.png"]);
    for (input, frames) in [(&out("in"), "0"), (&out("in"), "3-3"), (&pattern, "3")] {
        let said = filtered(input, &out("again/"), &["--frames", frames, "-y"]);
        assert!(!said.contains("at place"), "{frames}: {said}");
    }
}

#[test]
fn gaps_are_named_and_numbers_stay() {
    let folder = tempfile::tempdir().unwrap();
    let input = numbered(&folder.path().join("in"), &[1, 2, 3, 5, 6, 1001]);
    let out = |name: &str| folder.path().join(name);
    let said = filtered(&input, &out("a/g%04d.png"), &[]);
    assert!(said.contains("f0004.png and 994 more"), "{said}");
    assert_eq!(
        names(&out("a")),
        [
            "g0001.png",
            "g0002.png",
            "g0003.png",
            "g0005.png",
            "g0006.png",
            "g1001.png"
        ]
    );
    assert!(refused(&input, &out("b/%d.png"), &["--strict"]).contains("f0004.png"));
    for (options, expected) in [
        (&["--start-number", "1001"][..], &["f1001.png"][..]),
        (&["--frames", "2-3"], &["f0002.png", "f0003.png"]),
        (&["--frames", "1-5:2"], &["f0001.png", "f0003.png", "f0005.png"]),
    ] {
        let target = out(&options.concat());
        let said = filtered(&input, &target.join(""), options);
        assert!(!said.contains("missing"), "{options:?}: {said}");
        assert_eq!(names(&target), expected);
    }
    let clip = out("clip.mkv");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=16x16:r=5:d=0.6",
        "-c:v",
        "ffv1",
        clip.to_str().unwrap(),
    ]);
    filtered(&clip, &out("n/%04d.png"), &["--start-number", "1001"]);
    assert_eq!(names(&out("n")), ["1001.png", "1002.png", "1003.png"]);
}

#[test]
fn interrupted_jobs_go_on_and_broken_files_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    numbered(&input, &[1, 2, 3, 4]);
    let output = folder.path().join("out");
    filtered(&input, &output.join(""), &[]);
    let untouched = fs::metadata(output.join("f0002.png"))
        .unwrap()
        .modified()
        .unwrap();
    fs::remove_file(output.join("f0003.png")).unwrap();
    fs::write(output.join(".f0003.part-4294967295.png"), b"half").unwrap();
    assert!(filtered(&input, &output.join(""), &["--skip-existing"]).contains("1 PNG image file"));
    assert_eq!(
        names(&output),
        ["f0001.png", "f0002.png", "f0003.png", "f0004.png"]
    );
    assert_eq!(
        fs::metadata(output.join("f0002.png"))
            .unwrap()
            .modified()
            .unwrap(),
        untouched
    );
    // Numbers that the files get are looked for, and stay.
    let numbered = folder.path().join("n/%d.png");
    let from_3 = ["--start-number", "3"];
    filtered(&input, &numbered, &[&from_3[..], &["--frames", "0-1"]].concat());
    filtered(&input, &numbered, &[&from_3[..], &["--skip-existing"]].concat());
    let folder_of = numbered.parent().unwrap();
    assert_eq!(names(folder_of), ["3.png", "4.png", "5.png", "6.png"]);
    let last = fs::read(folder_of.join("6.png")).unwrap();
    assert!(last == fs::read(output.join("f0004.png")).unwrap());
    // With nothing to do, the files beside the output have no frames.
    let own = ["r.json", "r.html", "t.json", "h.txt"].map(|name| folder.path().join(name));
    let [report, page, trace, hashes] = own.each_ref().map(|path| path.to_str().unwrap());
    let files = [
        "--report",
        report,
        "--report",
        page,
        "--trace",
        trace,
        "--frame-hashes",
        hashes,
    ];
    let options = [&["--skip-existing"], &files[..]].concat();
    assert!(filtered(&input, &output.join(""), &options).contains("nothing to do"));
    let json = |path: &str| serde_json::from_slice::<serde_json::Value>(&fs::read(path).unwrap()).unwrap();
    let found = json(report);
    assert_eq!(
        (&found["frames"], &found["ending"], &found["task"]["engine"]),
        (&0.into(), &"complete".into(), &"none".into())
    );
    assert!(
        found["notes"][0].as_str().unwrap().starts_with("nothing to do"),
        "{found}"
    );
    assert!(json(trace)["traceEvents"].is_array());
    assert!(fs::read_to_string(page).unwrap().contains("nothing to do"));
    assert_eq!(fs::read_to_string(hashes).unwrap().lines().count(), 1);
    // Those of another run are not replaced, and nothing looks as if they were this one's.
    assert!(refused(&input, &output.join(""), &options).contains("r.json exists, and --skip-existing"));
    for broken in ["f0001.png", "f0003.png"] {
        fs::write(input.join(broken), b"no picture").unwrap();
    }
    let fresh = folder.path().join("fresh");
    let list = folder.path().join("list.json");
    let list = list.to_str().unwrap();
    let options = ["--keep-going", "--report", list];
    let error = refused(&input, &fresh.join(""), &options);
    let found = json(list);
    for (number, broken) in ["f0001.png", "f0003.png"].iter().enumerate() {
        assert!(error.contains(broken), "{error}");
        assert!(
            found["warnings"][number].as_str().unwrap().contains(broken),
            "{found}"
        );
    }
    assert_eq!(names(&fresh), ["f0002.png", "f0004.png"]);
    assert!(
        error.contains("output  2 PNG image files") && error.contains("\n2 frames in "),
        "{error}"
    );
    // A pattern's numbers are those of the whole sequence.
    let pattern = folder.path().join("p/%02d.png");
    fs::create_dir(folder.path().join("p")).unwrap();
    fs::copy(fresh.join("f0002.png"), folder.path().join("p/00.png")).unwrap();
    refused(&input, &pattern, &["--keep-going", "--skip-existing"]);
    assert_eq!(names(&folder.path().join("p")), ["00.png", "01.png", "03.png"]);
    // Without it the first broken file ends the run, which says how it would go on.
    fs::copy(input.join("f0002.png"), input.join("f0001.png")).unwrap();
    let ended = refused(&input, &folder.path().join("ended/"), &[]);
    assert!(
        ended.contains("f0003.png") && ended.contains("--keep-going passes over such files"),
        "{ended}"
    );
}

#[test]
fn folders_of_several_formats_and_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let mixed = folder.path().join("mixed");
    fs::create_dir(&mixed).unwrap();
    for (name, format) in [
        ("1.png", "gray"),
        ("2.png", "rgb24"),
        ("3.png", "rgba"),
        ("4.gif", "pal8"),
    ] {
        picture(&mixed.join(name), "32x24", &["-pix_fmt", format]);
    }
    let video = folder.path().join("out.mkv");
    let said = filtered(
        &mixed,
        &video,
        &["--pixel-format", "yuv444p", "--encoder", "ffv1"],
    );
    assert!(said.contains("left out: 4.gif"), "{said}");
    assert_eq!(rgb(&video).len(), 3 * 3 * 32 * 24);
    assert!(refused(&mixed, &folder.path().join("strict/"), &["--strict"]).contains("4.gif"));
    for (kind, format) in [
        ("exr", "gbrpf32le"),
        ("dpx", "rgb24"),
        ("tga", "rgb24"),
        ("jp2", "rgb24"),
    ] {
        let shots = folder.path().join(kind);
        fs::create_dir(&shots).unwrap();
        for number in [1001, 1002] {
            picture(
                &shots.join(format!("shot.{number}.{kind}")),
                "32x24",
                &["-pix_fmt", format],
            );
        }
        let pattern = shots.join(format!("shot.%d.{kind}"));
        let stills = folder.path().join(format!("{kind}-out"));
        let said = filtered(&pattern, &stills.join("%d.png"), &[]);
        assert_eq!(said.contains("became integers"), kind == "exr", "{said}");
        assert_eq!(names(&stills), ["1001.png", "1002.png"]);
        let want = rgb(&shots.join(format!("shot.1002.{kind}")));
        let got = rgb(&stills.join("1002.png"));
        let most = want.iter().zip(&got).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(most <= Some(2), "{kind}: {most:?}");
    }
}

#[test]
fn rgb_that_is_written_as_gray_keeps_black_and_white() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.png");
    let ends = "drawbox=w=8:h=16:c=black:t=fill,drawbox=x=8:w=8:h=16:c=white:t=fill,format=rgb24";
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "color=s=16x16",
        "-vf",
        ends,
        "-frames:v",
        "1",
        input.to_str().unwrap(),
    ]);
    for (name, format) in [
        ("a.png", "gray"),
        ("b.tif", "gray16le"),
        ("c.jpg", "gray"),
        ("d.pgm", "gray"),
        ("e.png", "ya8"),
    ] {
        let output = folder.path().join(name);
        filtered(&input, &output, &["--pixel-format", format, "--strict"]);
        let found = rgb(&output);
        let row = &found[..3 * 16];
        assert!(row[..3 * 7].iter().all(|&level| level <= 1), "{name}: {row:?}");
        assert!(row[3 * 9..].iter().all(|&level| level >= 254), "{name}: {row:?}");
    }
}

/// The luma of these samples, red, green and blue in turn, as docs/arithmetic.md defines it.
fn luma(samples: &[u64], (red, blue): (f64, f64), most: u64, most_after: u64) -> Vec<u64> {
    let whole = |weight: f64| (weight * 65536.0).round() as u64;
    let (red, blue) = (whole(red), whole(blue));
    let unit = most << 16;
    let of = |rgb: &[u64]| {
        let sum = red * rgb[0] + (65536 - red - blue) * rgb[1] + blue * rgb[2];
        (2 * sum * most_after + unit) / (2 * unit)
    };
    samples.chunks_exact(3).map(of).collect()
}

fn wide(bytes: &[u8]) -> Vec<u64> {
    bytes.iter().map(|&byte| byte.into()).collect()
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let pairs = bytes.as_chunks::<2>().0.iter();
    pairs.map(|&pair| u16::from_le_bytes(pair).into()).collect()
}

#[test]
fn gray_of_rgb_is_its_luma_wherever_it_is_made() {
    const BT709: (f64, f64) = (0.2126, 0.0722);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let samples = wide(&noise(&at("in.png"), "rgb24", (40, 30), 3));
    let expected = luma(&samples, BT709, 255, 255);
    for (name, options) in [
        ("a.png", &["--pixel-format", "gray"][..]),
        ("a.y4m", &["--pixel-format", "gray", "--fps", "1"]),
        ("a.tif", &["--planes", "gray"]),
    ] {
        filtered(&at("in.png"), &at(name), &[options, &["--strict"]].concat());
        let found = match name {
            "a.tif" => wide(&rgb(&at(name))).into_iter().step_by(3).collect(),
            _ => wide(&raw(&at(name), "gray")),
        };
        assert!(found == expected, "{name}");
    }
    filtered(
        &at("in.png"),
        &at("b.png"),
        &["--pixel-format", "gray16le", "--strict"],
    );
    assert!(words(&raw(&at("b.png"), "gray16le")) == luma(&samples, BT709, 255, 65535));
    let deep = words(&noise(&at("deep.png"), "rgb48le", (20, 30), 6));
    filtered(
        &at("deep.png"),
        &at("c.png"),
        &["--pixel-format", "gray16le", "--strict"],
    );
    assert!(words(&raw(&at("c.png"), "gray16le")) == luma(&deep, BT709, 65535, 65535));
    filtered(&at("deep.png"), &at("d.png"), &["--pixel-format", "gray"]);
    assert!(wide(&raw(&at("d.png"), "gray")) == luma(&deep, BT709, 65535, 255));
}

/// cICP and cHRM of PNG are primaries as any others, and stay in the file.
#[test]
fn primaries_of_png_choose_the_weights_of_luma() {
    const BT709: (f64, f64) = (0.2126, 0.0722);
    const BT2020: (f64, f64) = (0.2627, 0.0593);
    const P3: (f64, f64) = (0.228_975, 0.079_287);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let samples = wide(&noise(&at("plain.png"), "rgb24", (40, 30), 3));
    let plain = fs::read(at("plain.png")).unwrap();
    let points = |numbers: [u32; 8]| numbers.map(u32::to_be_bytes).concat();
    let srgb = points([31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000]);
    let p3 = points([31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000]);
    let bt2020 = points([31271, 32899, 70800, 29200, 17000, 79700, 13100, 4600]);
    for (kind, data, weights) in [
        (b"cICP", &[1, 13, 0, 1][..], BT709),
        (b"cICP", &[9, 16, 0, 1], BT2020),
        (b"cICP", &[12, 13, 0, 1], P3),
        (b"cHRM", &srgb, BT709),
        (b"cHRM", &p3, P3),
        (b"cHRM", &bt2020, BT2020),
    ] {
        let file = [&plain[..33], &chunk(kind, data), &plain[33..]].concat();
        fs::write(at("in.png"), file).unwrap();
        let expected = luma(&samples, weights, 255, 255);
        for options in [["--planes", "gray"], ["--pixel-format", "gray"]] {
            let options = [&options[..], &["--strict", "--overwrite"]].concat();
            filtered(&at("in.png"), &at("out.png"), &options);
            let red = wide(&rgb(&at("out.png"))).into_iter().step_by(3);
            assert!(red.eq(expected.iter().copied()), "{kind:?} {data:?} {options:?}");
            let file = fs::read(at("out.png")).unwrap();
            assert!(file.windows(data.len()).any(|bytes| bytes == data));
        }
    }
    // One word of what TIFF does not hold.
    let said = filtered(&at("in.png"), &at("out.tif"), &["--planes", "gray"]);
    let warnings = said.lines().filter(|line| line.starts_with("warning: ")).count();
    assert!(warnings == 1 && said.contains("chromaticities dropped"), "{said}");
}

#[test]
fn a_mixed_folder_is_summed_up_by_its_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("mixed")).unwrap();
    for name in ["mixed/a.png", "mixed/b.tif", "mixed/c.jpg", "mixed/d.png"] {
        picture(&at(name), "16x8", &[]);
    }
    let said = filtered(&at("mixed"), &at("out/"), &["--strict"]);
    assert!(said.contains("4 JPEG, PNG and TIFF image files to"), "{said}");
    let said = filtered(&at("mixed"), &at("same/%02d.png"), &[]);
    assert!(said.contains("4 PNG image files to"), "{said}");
}

/// Beside other inputs a kind that is written as a video is refused, with the way to write it.
#[test]
fn avif_files_are_written_one_at_a_time() {
    if !has_encoder("libaom-av1") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("a.png"), "16x8", &[]);
    let av1 = ["-c:v", "libaom-av1", "-cpu-used", "8", "-pix_fmt", "yuv420p"];
    picture(&at("b.avif"), "16x8", &av1);
    let run = |inputs: &[&str], output: &str, options: &[&str]| {
        Command::new(PROGRAM)
            .arg("filter")
            .args(inputs.iter().map(|name| at(name)))
            .arg(at(output))
            .args(["--filter", "mask:rows=1", "--engine", "cpu"])
            .args(options)
            .output()
            .unwrap()
    };
    let done = run(&["a.png", "b.avif"], "out/", &[]);
    let said = said(&done);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains("a .avif file is written as a video of one frame, one file at a time"),
        "{said}"
    );
    assert!(run(&["b.avif"], "c.avif", &[]).status.success());
    assert!(
        run(&["a.png", "b.avif"], "out/", &["--format", "ico"])
            .status
            .success()
    );
    assert_eq!(names(&at("out")), ["a.ico", "b.ico"]);
}

#[test]
fn alpha_is_laid_over_a_colour() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.png");
    let filter = "format=rgba,geq=r=200:g=100:b=0:a='if(lt(X,16),255,if(lt(X,24),128,0))'";
    picture(&input, "32x24", &["-vf", filter]);
    let words = said(&framepipe(&input, &folder.path().join("no.jpg"), &[]));
    let parts = ["without losing alpha", "--background white"];
    assert!(parts.iter().all(|part| words.contains(part)), "{words}");
    for (name, options) in [
        ("out.jpg", &[][..]),
        ("out.png", &[]),
        ("out.avi", &["--encoder", "ffv1"]),
    ] {
        let output = folder.path().join(name);
        let said = filtered(
            &input,
            &output,
            &[&["--background", "#0000ff", "--strict"], options].concat(),
        );
        assert!(said.contains("alpha laid over #0000ff"), "{said}");
        let pixels = rgb(&output);
        // (200, 100, 0) over blue: alone, half, not at all. 4:2:0 mixes the columns where they meet.
        for (x, want) in [(4, [200, 100, 0]), (20, [100, 50, 127]), (30, [0, 0, 255])] {
            let at = 3 * (12 * 32 + x);
            let off = pixels[at..at + 3]
                .iter()
                .zip(want)
                .map(|(&a, b)| a.abs_diff(b))
                .max()
                .unwrap();
            assert!(
                off <= if name == "out.jpg" { 12 } else { 2 },
                "{name}: {:?}",
                &pixels[at..at + 3]
            );
        }
    }
    assert_eq!(
        framepipe(&input, &input, &["--background", "nothing"])
            .status
            .code(),
        Some(2)
    );
}

/// Colour under an alpha of 0 shows where alpha is taken away, which FFmpeg's reader and Pillow's can do.
#[test]
fn colour_that_alpha_hides_is_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, red: &str, alpha: &str| {
        let path = folder.path().join(name);
        let filter = format!("format=rgba,geq=r='{red}':g=0:b=0:a='{alpha}',format=rgba");
        let source = "color=black:16x8:r=2:d=1";
        let to = path.to_str().unwrap();
        ffmpeg(&["-f", "lavfi", "-i", source, "-vf", &filter, "-f", "apng", to]);
        path
    };
    let half = "if(lt(X,8),255,0)";
    let hidden = of("hidden.apng", "100+X", half);
    let black = of("black.apng", "if(lt(X,8),200,0)", half);
    let opaque = of("opaque.apng", "100+X", "255");
    let lossless = ["--encoder-option", "lossless=1"];
    for (name, options, what) in [
        ("out.webp", &lossless[..], "writes it as black"),
        ("out.gif", &[], "has one colour for all that is transparent"),
    ] {
        if name.ends_with("webp") && !has_encoder("libwebp_anim") {
            continue;
        }
        let output = folder.path().join(name);
        let words = filtered(&hidden, &output, options);
        let lost = "warning: the colour of pixels with alpha 0 in 2 frames is not kept";
        assert!(words.contains(lost) && words.contains(what), "{words}");
        fs::remove_file(&output).unwrap();
        let strict = [options, &["--strict"]].concat();
        assert!(refused(&hidden, &output, &strict).contains("colour under an alpha of 0"));
        for input in [&black, &opaque] {
            filtered(input, &output, &strict);
            fs::remove_file(&output).unwrap();
        }
    }
    // What is transparent in a GIF is white, and stays so.
    let gif = folder.path().join("in.gif");
    filtered(&black, &gif, &[]);
    filtered(&gif, &folder.path().join("again.gif"), &["--strict"]);
    // Without loss and with its colours, which FFmpeg finds again.
    let same = folder.path().join("same.apng");
    filtered(&hidden, &same, &["--strict"]);
    assert_eq!(raw(&same, "rgba"), raw(&hidden, "rgba"));
}

/// A chunk of a PNG file.
fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [&kind[..], data].concat();
    let mut crc = flate2::Crc::new();
    crc.update(&body);
    [
        &(data.len() as u32).to_be_bytes(),
        &body[..],
        &crc.sum().to_be_bytes(),
    ]
    .concat()
}

/// A PNG of 8x8 pixels with these chunks before its pixels.
fn png(path: &Path, chunks: &[(&[u8; 4], &[u8])]) {
    picture(path, "8x8", &["-pix_fmt", "rgb24", "-pred", "none"]);
    let mut file = fs::read(path).unwrap();
    let more = chunks.iter().flat_map(|(kind, data)| chunk(kind, data));
    // Behind the header.
    file.splice(33..33, more.collect::<Vec<u8>>());
    fs::write(path, file).unwrap();
}

#[test]
fn annotations_are_carried_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.png");
    let exif =
        b"II*\0\x08\0\0\0\x02\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\x3b\x01\x02\0\x03\0\0\0me\0\0\0\0\0\0";
    let density = [&1000_u32.to_be_bytes()[..], &1000_u32.to_be_bytes(), &[1]].concat();
    png(
        &input,
        &[
            (b"gAMA", &100_000_u32.to_be_bytes()),
            (b"cICP", &[9, 16, 0, 1]),
            (b"pHYs", &density),
            (b"tEXt", b"Comment\0hello"),
            (b"eXIf", exif),
        ],
    );
    let output = folder.path().join("out.png");
    filtered(&input, &output, &["--strict"]);
    let written = fs::read(&output).unwrap();
    let has = |part: &[u8]| written.windows(part.len()).any(|window| window == part);
    assert!(has(b"gAMA\0\x01\x86\xa0") && has(b"cICP\x09\x10\0\x01") && has(b"Comment\0hello"));
    assert!(has(&[b"pHYs", &density[..]].concat()) && has(b"me\0"));
    let said = filtered(&input, &folder.path().join("out.jpg"), &[]);
    assert!(said.contains("gamma") && said.contains("CICP"), "{said}");
    let jpeg = fs::read(folder.path().join("out.jpg")).unwrap();
    assert!(jpeg.windows(5).any(|window| window == b"hello"));
    let error = refused(&input, &folder.path().join("strict.jpg"), &["--strict"]);
    assert!(error.contains("gamma") || error.contains("CICP"), "{error}");
    // A video has the rotation, and a word about the rest.
    let video = folder.path().join("out.mp4");
    let said = filtered(&input, &video, &["--encoder", "libx264"]);
    assert!(said.contains("annotations of stills (Exif"), "{said}");
    let probed = Command::new("ffprobe")
        .args(["-v", "error", "-show_streams", video.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&probed.stdout).contains("rotation=-90"));
    // Masks that are not the same in all directions lie on both as they are stored.
    let note = "sobel-y is not the same in all directions, and is applied to pictures as they are stored; \
                these are shown turned (90 degrees clockwise)";
    for (input, filter, is_said) in [
        (&input, "sobel-y", true),
        (&input, "sobel", false),
        (&video, "sobel-y", true),
    ] {
        let said = filtered(input, Path::new("null:"), &["--filter", filter]);
        assert_eq!(said.contains(note), is_said, "{said}");
    }
}

/// True if FFmpeg has the encoder; a test says so where not.
fn has_encoder(name: &str) -> bool {
    let listed = String::from_utf8(ffmpeg(&["-hide_banner", "-encoders"])).unwrap();
    let found = listed
        .lines()
        .any(|line| line.split_whitespace().nth(1) == Some(name));
    if !found {
        eprintln!("skipped: this FFmpeg has no encoder {name}");
    }
    found
}

/// The pixels of a file as FFmpeg decodes them.
fn raw(path: &Path, format: &str) -> Vec<u8> {
    ffmpeg(&[
        "-i",
        path.to_str().unwrap(),
        "-pix_fmt",
        format,
        "-f",
        "rawvideo",
        "-",
    ])
}

/// Noise as a PNG of this format, with the samples in it.
fn noise(path: &Path, format: &str, size: (usize, usize), sample_bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_u32 ^ (size.0 * 31 + size.1) as u32;
    let mut samples = vec![0; size.0 * size.1 * sample_bytes];
    for byte in &mut samples {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        *byte = (state >> 24) as u8;
    }
    let source = path.with_extension("raw");
    fs::write(&source, &samples).unwrap();
    let big = format.replace("le", "be");
    let dimensions = format!("{}x{}", size.0, size.1);
    let head = ["-f", "rawvideo", "-pix_fmt", format, "-s", &dimensions, "-i"];
    let tail = [source.to_str().unwrap(), "-pix_fmt", &big, path.to_str().unwrap()];
    ffmpeg(&[&head[..], &tail].concat());
    samples
}

/// Interleaved samples from 0 to 1 of a file that holds such, as 8 or 16 bits.
fn floats(path: &Path, channels: usize, most: f64) -> Vec<u16> {
    let format = ["grayf32le", "", "gbrpf32le", "gbrapf32le"][channels - 1];
    let bytes = raw(path, format);
    let values: Vec<u16> = bytes
        .chunks_exact(4)
        .map(|b| (f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])) * most).round() as u16)
        .collect();
    let plane = values.len() / channels;
    let order = if channels == 1 { [0, 0, 0, 0] } else { [2, 0, 1, 3] };
    let at = |pixel: usize, channel: usize| values[order[channel] * plane + pixel];
    (0..plane)
        .flat_map(|pixel| (0..channels).map(move |channel| (pixel, channel)))
        .map(|(pixel, channel)| at(pixel, channel))
        .collect()
}

const FORMATS: [(&str, usize); 8] = [
    ("gray", 1),
    ("ya8", 2),
    ("rgb24", 3),
    ("rgba", 4),
    ("gray16le", 1),
    ("ya16le", 2),
    ("rgb48le", 3),
    ("rgba64le", 4),
];

#[test]
fn files_of_ffmpegs_encoders_hold_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (kind, encoder, formats) in [
        ("exr", "exr", "gray rgb24 gray16le rgb48le"),
        ("dpx", "dpx", "gray rgb24 rgba gray16le rgb48le rgba64le"),
        ("tga", "targa", "gray rgb24 rgba"),
        (
            "jxl",
            "libjxl",
            "gray ya8 rgb24 rgba gray16le ya16le rgb48le rgba64le",
        ),
        (
            "jp2",
            "libopenjpeg",
            "gray ya8 rgb24 rgba gray16le ya16le rgb48le rgba64le",
        ),
        ("j2k", "libopenjpeg", "gray rgb24 rgb48le"),
        ("qoi", "qoi", "rgb24 rgba"),
    ] {
        if !has_encoder(encoder) {
            continue;
        }
        for (turn, format) in formats.split(' ').enumerate() {
            let channels = FORMATS.iter().find(|(name, _)| *name == format).unwrap().1;
            let is_deep = format.contains("le");
            let bytes = channels * if is_deep { 2 } else { 1 };
            // Of the pictures of one column, one in turn.
            let left_out = if is_whole_matrix() {
                (0, 0)
            } else {
                [(1, 1), (1, 7)][turn % 2]
            };
            for size in [(1, 1), (1, 7), (17, 5)] {
                if size == left_out {
                    continue;
                }
                compared += 1;
                let input = folder.path().join("in.png");
                let output = folder.path().join(format!("out.{kind}"));
                let samples = noise(&input, format, size, bytes);
                filtered(&input, &output, &["--overwrite", "--strict"]);
                let place = format!("{kind} {format} {size:?}");
                let is_float = kind == "exr";
                if is_float {
                    let most = if is_deep { 65535.0 } else { 255.0 };
                    let words: Vec<u16> = match is_deep {
                        true => samples
                            .chunks_exact(2)
                            .map(|b| u16::from_le_bytes([b[0], b[1]]))
                            .collect(),
                        false => samples.iter().copied().map(u16::from).collect(),
                    };
                    assert_eq!(floats(&output, channels, most), words, "{place}");
                } else {
                    assert_eq!(raw(&output, format), samples, "{place}");
                }
                if is_deep {
                    let back = folder.path().join("back.png");
                    filtered(&output, &back, &["--overwrite"]);
                    assert_eq!(raw(&back, format), samples, "{place}, read again");
                }
            }
        }
    }
    // Every FFmpeg has OpenEXR, DPX and TGA: 13 formats in two sizes, or in three.
    let least = if is_whole_matrix() { 39 } else { 26 };
    assert!(compared >= least, "{compared}");
}

#[test]
fn dpx_keeps_ten_and_twelve_bits() {
    if !has_encoder("dpx") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for format in ["gbrp10le", "gbrp12le"] {
        let clip = folder.path().join(format!("{format}.mkv"));
        picture(&clip, "18x5", &["-c:v", "ffv1", "-pix_fmt", format]);
        let output = folder.path().join(format!("{format}-%d.dpx"));
        filtered(&clip, &output, &[]);
        let written = folder.path().join(format!("{format}-0.dpx"));
        assert!(raw(&clip, format) == raw(&written, format), "{format}");
    }
    // A time code of 0 is a field that nobody filled in.
    let input = folder.path().join("coded.dpx");
    picture(&input, "8x8", &["-pix_fmt", "rgb24"]);
    // FFmpeg writes the header without the fields of television and of users.
    let short = fs::read(&input).unwrap();
    for (code, is_lost) in [([0; 4], false), ([1, 2, 3, 4], true)] {
        let mut file = [&short[..1664], &[0; 384], &short[1664..]].concat();
        let offset = match short[0] {
            b'S' => 2048_u32.to_be_bytes(),
            _ => 2048_u32.to_le_bytes(),
        };
        file[4..8].copy_from_slice(&offset);
        file[1920..1924].copy_from_slice(&code);
        fs::write(&input, file).unwrap();
        let said = filtered(&input, &folder.path().join("coded.png"), &["-y"]);
        assert_eq!(said.contains("SMPTE time code"), is_lost, "{said}");
    }
}

#[test]
fn significant_bits_are_stated_while_they_are_true() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (format, bits) in [("gray", 5), ("gray16le", 10)] {
        let bytes = if format == "gray" { 1 } else { 2 };
        let mut samples = noise(&path("any.png"), format, (9, 7), bytes);
        // Zeros below, as cameras write them.
        let lower = 8 * bytes as u32 - bits;
        for sample in samples.chunks_exact_mut(bytes) {
            let value = sample
                .iter()
                .rev()
                .fold(0, |all, &byte| all << 8 | u32::from(byte));
            sample.copy_from_slice(&(value >> lower << lower).to_le_bytes()[..bytes]);
        }
        fs::write(path("any.raw"), samples).unwrap();
        let (raw, input) = (path("any.raw"), path("in.png"));
        let head = [
            "-f",
            "rawvideo",
            "-pix_fmt",
            format,
            "-s",
            "9x7",
            "-i",
            raw.to_str().unwrap(),
        ];
        ffmpeg(&[&head[..], &[input.to_str().unwrap()]].concat());
        let mut file = fs::read(&input).unwrap();
        file.splice(33..33, chunk(b"sBIT", &[bits as u8]));
        fs::write(&input, file).unwrap();
        for (filter, is_kept) in [("mask:rows=1", true), ("box:size=3", false)] {
            filtered(&input, &path("out.png"), &["-y", "--strict", "--filter", filter]);
            let written = fs::read(path("out.png")).unwrap();
            let stated = written
                .windows(5)
                .any(|w| w[..4] == *b"sBIT" && w[4] == bits as u8);
            assert_eq!(stated, is_kept, "{format} {filter}");
            // What is not true any more is no loss anywhere.
            for (output, encoder) in [
                ("out.tif", ""),
                ("out.qoi", "qoi"),
                ("out.tga", ""),
                ("out.jxl", "libjxl"),
                ("out.mkv", "ffv1"),
                ("out.exr", ""),
            ] {
                let needs_rgb = format == "gray16le" && matches!(output, "out.qoi" | "out.tga");
                if needs_rgb || !encoder.is_empty() && !has_encoder(encoder) {
                    continue;
                }
                let encoder = if output == "out.mkv" {
                    &["--encoder", encoder][..]
                } else {
                    &[]
                };
                let options = ["-y", "--strict", "--filter", filter];
                let done = framepipe(&input, &path(output), &[&options[..], encoder].concat());
                assert_eq!(
                    !done.status.success(),
                    is_kept,
                    "{output} {filter}: {}",
                    said(&done)
                );
                assert!(
                    done.status.success() || said(&done).contains("significant bits"),
                    "{}",
                    said(&done)
                );
            }
        }
    }
}

#[test]
fn gray_with_alpha_stays_so_in_tiff() {
    use tiff::tags::Tag;
    let folder = tempfile::tempdir().unwrap();
    for (format, bits) in [("ya8", 8_u32), ("ya16le", 16)] {
        let (input, output) = (folder.path().join("in.png"), folder.path().join("out.tif"));
        noise(&input, format, (9, 7), bits as usize / 4);
        filtered(&input, &output, &["--strict"]);
        let mut decoder = tiff::decoder::Decoder::new(fs::File::open(&output).unwrap()).unwrap();
        let mut stated = |tag: Tag| decoder.get_tag_u32_vec(tag).unwrap();
        assert_eq!(stated(Tag::BitsPerSample), [bits, bits]);
        assert_eq!(
            (stated(Tag::SamplesPerPixel), stated(Tag::ExtraSamples)),
            (vec![2], vec![2])
        );
        assert!(raw(&input, format) == raw(&output, format), "{format}");
        // And is read as what it is.
        let again = folder.path().join("again.png");
        filtered(&output, &again, &["--strict"]);
        assert!(raw(&input, format) == raw(&again, format), "{format}");
        fs::remove_file(output).unwrap();
        fs::remove_file(again).unwrap();
    }
}

#[test]
fn samples_of_unstated_kind_are_taken_for_alpha_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.tif");
    for (kind, is_presumed) in [(0_u16, true), (2, false)] {
        let mut encoder = tiff::encoder::TiffEncoder::new(fs::File::create(&input).unwrap()).unwrap();
        let image = encoder.new_image::<tiff::encoder::colortype::RGBA8>(2, 1);
        let mut image = image.unwrap();
        let tag = tiff::tags::Tag::ExtraSamples;
        image.encoder().write_tag(tag, &[kind][..]).unwrap();
        image.write_data(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let said = filtered(&input, Path::new("null:"), &[]);
        assert_eq!(said.contains("is taken for alpha"), is_presumed, "{said}");
    }
}

#[test]
fn what_such_files_cannot_hold_is_refused_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    noise(&path("deep.png"), "rgb48le", (4, 4), 6);
    noise(&path("alpha.png"), "rgba", (4, 4), 4);
    for (input, output, word) in [
        ("deep.png", "a.tga", "without losing depth"),
        ("deep.png", "a.qoi", "without losing depth"),
        ("alpha.png", "a.pfm", "without losing alpha"),
    ] {
        if output.ends_with("qoi") && !has_encoder("qoi") {
            continue;
        }
        let error = refused(&path(input), &path(output), &[]);
        assert!(error.contains(word) && !path(output).exists(), "{error}");
    }
    png(&path("said.png"), &[(b"tEXt", b"Comment\0hello")]);
    let said = filtered(&path("said.png"), &path("a.tga"), &[]);
    assert!(
        said.contains("TGA files are written without") && said.contains("text"),
        "{said}"
    );
    refused(&path("said.png"), &path("b.tga"), &["--strict"]);
    // Icons: one picture has no rate, and gray becomes colours that they hold.
    for (format, samples, written) in [("gray", 1, "bgr24"), ("rgba", 4, "bgra")] {
        let (input, icon) = (path(&format!("{format}.png")), path(&format!("{format}.ico")));
        noise(&input, format, (4, 4), samples);
        filtered(&input, &icon, &["--strict"]);
        assert!(raw(&icon, written) == raw(&input, written), "{format}");
    }
    let numbered = framepipe(&path("gray.png"), &path("n%d.avif"), &[]);
    let words = String::from_utf8_lossy(&numbered.stderr);
    assert!(words.contains("a number in its name"), "{words}");
    assert_eq!(numbered.status.code(), Some(2));
    noise(&path("large.png"), "gray", (300, 4), 1);
    let error = refused(&path("large.png"), &path("large.ico"), &[]);
    assert!(error.contains("256") && !path("large.ico").exists(), "{error}");
    let error = refused(&path("gray.png"), &path("gray.cur"), &[]);
    assert!(!path("gray.cur").exists(), "{error}");
    // A single still that is read as a video is a still of WebP, too.
    for kind in ["qoi", "sgi", "sun", "xwd", "fits"] {
        if kind == "qoi" && !has_encoder("qoi") {
            continue;
        }
        let (format, rules) = match kind {
            "fits" => ("gray", &[][..]),
            _ => ("rgb24", &["--strict"][..]),
        };
        let (input, output) = (path(&format!("lone.{kind}")), path(&format!("{kind}.webp")));
        picture(&input, "8x8", &["-pix_fmt", format]);
        filtered(&input, &output, rules);
        assert_eq!(
            fs::read(&output).unwrap().get(12..16),
            Some(&b"VP8L"[..]),
            "{kind}"
        );
        assert!(kind == "fits" || rgb(&input) == rgb(&output), "{kind}");
    }
    picture(&path("deep.sgi"), "8x8", &["-pix_fmt", "rgb48be"]);
    let error = refused(&path("deep.sgi"), &path("deep.webp"), &[]);
    assert!(
        error.contains("without losing depth") && !path("deep.webp").exists(),
        "{error}"
    );
    // A folder keeps its names and kinds.
    let shots = path("shots");
    fs::create_dir(&shots).unwrap();
    for name in ["1.exr", "2.exr"] {
        picture(&shots.join(name), "8x8", &["-pix_fmt", "gbrpf32le"]);
    }
    let said = filtered(&path("shots/*.exr"), &path("out/"), &[]);
    assert_eq!(names(&path("out")), ["1.exr", "2.exr"], "{said}");
    filtered(
        &path("shots/%d.exr"),
        &path("n/%04d.dpx"),
        &["--start-number", "1"],
    );
    assert_eq!(names(&path("n")), ["0001.dpx", "0002.dpx"]);
}

/// A TIFF file with a page of each of these widths, 4 rows high, filled with the page's number.
fn pages(path: &Path, widths: &[u32]) {
    let mut file = fs::File::create(path).unwrap();
    let mut encoder = tiff::encoder::TiffEncoder::new(&mut file).unwrap();
    for (number, &width) in (1_u8..).zip(widths) {
        let samples = vec![10 * number; 4 * width as usize];
        encoder
            .write_image::<tiff::encoder::colortype::Gray8>(width, 4, &samples)
            .unwrap();
    }
}

#[test]
fn pages_of_a_tiff_are_a_sequence() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let scan = path("scan.tif");
    pages(&scan, &[6, 6, 6]);
    filtered(&scan, &path("p/%03d.png"), &["--strict"]);
    assert_eq!(names(&path("p")), ["000.png", "001.png", "002.png"]);
    for (number, value) in [(0, 10), (1, 20), (2, 30)] {
        assert_eq!(raw(&path(&format!("p/{number:03}.png")), "gray"), [value; 24]);
    }
    filtered(&scan, &path("d/"), &["--strict"]);
    assert_eq!(
        names(&path("d")),
        ["scan-000.tif", "scan-001.tif", "scan-002.tif"]
    );
    assert_eq!(raw(&path("d/scan-002.tif"), "gray"), [30; 24]);
    filtered(&scan, &path("scan.mkv"), &["--encoder", "ffv1"]);
    assert_eq!(
        raw(&path("scan.mkv"), "gray"),
        [[10; 24], [20; 24], [30; 24]].concat()
    );
    // One file of several pages.
    let error = refused(&scan, &path("one.png"), &[]);
    assert!(
        error.contains("more than one frame") && error.contains("--frames"),
        "{error}"
    );
    assert!(!path("one.png").exists());
    filtered(&scan, &path("one.png"), &["--frames", "1-1"]);
    assert_eq!(raw(&path("one.png"), "gray"), [20; 24]);
    // Go on with the page that is missing.
    fs::remove_file(path("p/001.png")).unwrap();
    filtered(&scan, &path("p/%03d.png"), &["--skip-existing"]);
    assert_eq!(raw(&path("p/001.png"), "gray"), [20; 24]);
    // Pages that differ.
    let mixed = path("mixed.tif");
    pages(&mixed, &[6, 6, 5]);
    let error = refused(&mixed, &path("m/%03d.png"), &[]);
    assert!(
        error.contains("its pages differ: page 0 is 6x4 gray, page 2 5x4 gray"),
        "{error}"
    );
    filtered(&mixed, &path("m/%03d.png"), &["--frames", "0-1"]);
    // A stack of ImageJ's that lacks pictures.
    for (name, stated) in [("whole.tif", 2), ("short.tif", 5)] {
        let mut encoder = tiff::encoder::TiffEncoder::new(fs::File::create(path(name)).unwrap()).unwrap();
        for _ in 0..2 {
            let mut page = encoder
                .new_image::<tiff::encoder::colortype::Gray8>(2, 1)
                .unwrap();
            let text = format!("ImageJ=1.53\nimages={stated}\n");
            let tag = tiff::tags::Tag::ImageDescription;
            page.encoder().write_tag(tag, text.as_str()).unwrap();
            page.write_data(&[1, 2]).unwrap();
        }
    }
    let lacking = "states 5 pictures and holds 2 pages";
    let said = filtered(&path("whole.tif"), &path("w/%03d.png"), &[]);
    assert!(
        !said.contains("pictures and holds") && said.contains("(ImageJ) is left out"),
        "{said}"
    );
    let said = filtered(&path("short.tif"), &path("j/%03d.png"), &[]);
    assert!(said.contains(lacking), "{said}");
    assert!(refused(&path("short.tif"), &path("i/%03d.png"), &["--strict"]).contains(lacking));
    // In a folder it is one frame.
    fs::create_dir(path("scans")).unwrap();
    fs::copy(&scan, path("scans/scan.tif")).unwrap();
    let said = filtered(&path("scans"), &path("s/"), &[]);
    assert!(said.contains("the file holds 3 pictures"), "{said}");
    assert_eq!(names(&path("s")), ["scan.tif"]);
}

/// The samples of a picture's first frame as `format`, by FFmpeg.
fn samples(path: &Path, format: &str) -> Vec<u8> {
    let path = path.to_str().unwrap();
    ffmpeg(&[
        "-i",
        path,
        "-frames:v",
        "1",
        "-pix_fmt",
        format,
        "-f",
        "rawvideo",
        "-",
    ])
}

#[test]
fn jpegs_with_junk_in_their_header_are_read_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("whole.jpg"), "48x32", &["-q:v", "3"]);
    filtered(&at("whole.jpg"), &at("whole.png"), &["--strict"]);
    let whole = fs::read(at("whole.jpg")).unwrap();
    // Behind the first segment: a few bytes, and a profile that is none.
    let first = 4 + usize::from(u16::from_be_bytes([whole[4], whole[5]]));
    for junk in [&b"junk"[..], b"\xff\xe2\0\x10ICC_PROFILE\0\0\0"] {
        fs::write(at("junk.jpg"), [&whole[..first], junk, &whole[first..]].concat()).unwrap();
        assert!(
            filtered(&at("junk.jpg"), &at("junk.png"), &["--overwrite"]).contains("damaged: Corrupt JPEG")
        );
        assert!(rgb(&at("junk.png")) == rgb(&at("whole.png")));
        refused(&at("junk.jpg"), &at("strict.png"), &["--strict"]);
    }
}

#[test]
fn alpha_of_tga_is_what_its_header_says() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // As FFmpeg writes them.
    for format in ["gray", "bgr24", "bgra"] {
        picture(&at("a.tga"), "33x20", &["-pix_fmt", format]);
        filtered(&at("a.tga"), &at("a.png"), &["--strict", "--overwrite"]);
        assert!(
            samples(&at("a.png"), "rgba") == samples(&at("a.tga"), "rgba"),
            "{format}"
        );
    }
    let file = |kind: u8, bits: u8, flags: u8, pixels: &[u8]| {
        let head = [
            0,
            0,
            kind,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            2,
            0,
            1,
            0,
            bits,
            32 | flags,
        ];
        fs::write(at("b.tga"), [&head[..], pixels].concat()).unwrap();
        filtered(&at("b.tga"), &at("b.png"), &["--overwrite"])
    };
    file(3, 16, 8, &[10, 20, 30, 255]);
    assert_eq!(samples(&at("b.png"), "ya8"), [10, 20, 30, 255]);
    file(2, 16, 1, &[0, 0xfc, 0, 0x7c]);
    assert_eq!(samples(&at("b.png"), "rgba"), [255, 0, 0, 255, 255, 0, 0, 0]);
    // Of 8 bits of alpha, which a file may state, 16-bit pixels have one.
    file(2, 16, 8, &[0, 0xfc, 0, 0x7c]);
    assert_eq!(samples(&at("b.png"), "rgba"), [255, 0, 0, 255, 255, 0, 0, 0]);
    let said = file(2, 16, 0, &[0, 0xfc, 0, 0x7c]);
    assert!(said.contains("highest bit"), "{said}");
    assert_eq!(samples(&at("b.png"), "rgba"), [255, 0, 0, 255, 255, 0, 0, 255]);
    let said = file(2, 32, 0, &[1, 2, 3, 0, 1, 2, 3, 9]);
    assert!(said.contains("fourth byte"), "{said}");
    assert_eq!(samples(&at("b.png"), "rgba"), [3, 2, 1, 255, 3, 2, 1, 255]);
}

#[test]
fn bmps_of_os2s_second_version_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("a.bmp"), "33x20", &["-pix_fmt", "bgr24"]);
    let old = fs::read(at("a.bmp")).unwrap();
    assert_eq!((old[10], old[14]), (54, 40));
    let mut new = [&old[..54], &[0; 24], &old[54..]].concat();
    (new[10], new[14]) = (54 + 24, 64);
    let size = (new.len() as u32).to_le_bytes();
    new[2..6].copy_from_slice(&size);
    fs::write(at("b.bmp"), &new).unwrap();
    filtered(&at("b.bmp"), &at("b.png"), &["--strict"]);
    assert!(rgb(&at("b.png")) == rgb(&at("a.bmp")));
    // The same number stands for a Huffman code in these files.
    new[30] = 3;
    fs::write(at("c.bmp"), &new).unwrap();
    refused(&at("c.bmp"), &at("c.png"), &[]);
}

#[test]
fn radiance_hdr_becomes_integers_with_a_word_about_what_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let head = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 3\n";
    // Mantissas over 256, times two to the exponent less 128: 1/2 1/4 1/8; 1; 2 0 1.
    let pixels = [128, 64, 32, 128, 128, 128, 128, 129, 128, 0, 64, 130];
    fs::write(at("a.hdr"), [&head[..], &pixels].concat()).unwrap();
    let said = filtered(&at("a.hdr"), &at("a.png"), &[]);
    assert!(said.contains("and cut: 1 above 1"), "{said}");
    let words: Vec<u16> = samples(&at("a.png"), "rgb48le")
        .chunks(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    let most = u16::MAX;
    assert_eq!(words, [32_768, 16_384, 8_192, most, most, most, most, 0, most]);
}

#[test]
fn samples_of_any_depth_keep_their_white() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let words = |path: &Path, format: &str| -> Vec<u32> {
        let pairs = samples(path, format);
        pairs
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]).into())
            .collect()
    };
    // OpenJPEG's codestream of gray and alpha of 10 bits, 0, 1, 512 and 1023 each.
    let ten_bits =
        b"\xff\x4f\xff\x51\0\x2c\0\0\0\0\0\x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\x01\0\0\0\0\0\
        \0\0\0\0\x02\x09\x01\x01\x09\x01\x01\xff\x52\0\x0c\0\0\0\x01\0\0\x04\x04\0\x01\xff\x5c\0\x04\
        \x40\x50\xff\x90\0\x0a\0\0\0\0\0\x1e\0\x01\xff\x93\xdf\xb0\x28\x06\x6a\x2f\x09\xb1\xdf\xb0\
        \x28\x06\x6a\x2f\x09\xb1\xff\xd9";
    fs::write(at("a.j2k"), ten_bits).unwrap();
    filtered(&at("a.j2k"), &at("a.png"), &["--strict"]);
    let scaled = [0, 64, 32_800, 65_535].map(|v| [v, v]).concat();
    assert_eq!(words(&at("a.png"), "ya16le"), scaled);
    // The same, its samples signed.
    let mut signed = ten_bits.to_vec();
    (signed[42], signed[45]) = (0x89, 0x89);
    fs::write(at("signed.j2k"), signed).unwrap();
    read_with_a_word(&at("signed.j2k"), "signed numbers of 10 bits");

    picture(&at("b.png"), "40x24", &["-pix_fmt", "rgba"]);
    let shallow: Vec<u32> = samples(&at("b.png"), "rgba").iter().map(|&v| v.into()).collect();
    let deep: Vec<u32> = shallow.iter().map(|v| 257 * v).collect();
    for (name, options) in [("deep.png", &[][..]), ("deep.mkv", &["--encoder", "ffv1"])] {
        let options = [options, &["--pixel-format", "rgba64le"]].concat();
        filtered(&at("b.png"), &at(name), &options);
        assert!(words(&at(name), "rgba64le") == deep, "{name}");
    }
    filtered(&at("deep.mkv"), &at("back.png"), &["--pixel-format", "rgba"]);
    assert!(samples(&at("back.png"), "rgba") == samples(&at("b.png"), "rgba"));
}

#[test]
fn planes_of_the_matrix_0_are_green_blue_and_red() {
    if !has_encoder("libaom-av1") {
        println!("SKIPPED: this FFmpeg writes no AV1");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let coding = [
        "-pix_fmt",
        "gbrp",
        "-c:v",
        "libaom-av1",
        "-crf",
        "0",
        "-cpu-used",
        "8",
    ];
    picture(&at("a.mkv"), "64x48", &coding);
    // With other primaries than sRGB's, decoders of AV1 call the planes luma and chroma.
    let tags = "av1_metadata=color_primaries=9:transfer_characteristics=16";
    let [from, to] = ["a.mkv", "b.mkv"].map(|name| at(name).display().to_string());
    ffmpeg(&["-i", &from, "-c", "copy", "-bsf:v", tags, &to]);
    for name in ["a", "b"] {
        filtered(&at(&format!("{name}.mkv")), &at(&format!("{name}_%d.png")), &[]);
    }
    assert!(rgb(&at("a_0.png")) == rgb(&at("b_0.png")));
}

#[test]
fn boxes_of_jpeg_2000_reach_the_output() {
    if !has_encoder("libopenjpeg") {
        println!("SKIPPED: this FFmpeg writes no JPEG 2000");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("a.png"), "40x24", &["-pix_fmt", "rgb24"]);
    filtered(&at("a.png"), &at("a.jp2"), &[]);
    let mut file = fs::read(at("a.jp2")).unwrap();
    let boxed = |name: &[u8], data: &[u8]| [&(data.len() as u32 + 8).to_be_bytes(), name, data].concat();
    // 300 pixels an inch.
    let resolution = boxed(
        b"res ",
        &boxed(b"resc", &[0x2e, 0x23, 0, 1, 0x2e, 0x23, 0, 1, 0, 0]),
    );
    let header = file.windows(4).position(|name| name == b"jp2h").unwrap() - 4;
    let size = u32::from_be_bytes(file[header..header + 4].try_into().unwrap());
    let end = header + size as usize;
    file[header..header + 4].copy_from_slice(&(size + resolution.len() as u32).to_be_bytes());
    file.splice(end..end, resolution);
    fs::write(at("b.jp2"), &file).unwrap();
    filtered(&at("b.jp2"), &at("b.png"), &["--strict"]);
    assert!(rgb(&at("b.png")) == rgb(&at("a.png")));
    let png = fs::read(at("b.png")).unwrap();
    let chunk = png.windows(4).position(|name| name == b"pHYs").unwrap();
    let expected = [&11_811_u32.to_be_bytes()[..], &11_811_u32.to_be_bytes(), &[1]].concat();
    assert_eq!(png[chunk + 4..chunk + 13], expected);
    let xml = boxed(b"xml ", b"<a/>");
    fs::write(at("c.jp2"), [&file[..12], &xml, &file[12..]].concat()).unwrap();
    read_with_a_word(&at("c.jp2"), "left out: XML box");

    // One colour in sYCC, which is of full range; and the same said to be of another colour space.
    let colour = [250, 240, 10];
    for (format, number_of_colours) in [("yuv444p", 24), ("yuv420p", 12)] {
        let (ycc, out) = (at(&format!("{format}.jp2")), at(&format!("{format}.png")));
        let full = format!("scale=out_range=full:out_color_matrix=bt601,format={format}");
        let source = ["-f", "lavfi", "-i", "color=c=0xfaf00a:s=64x64", "-frames:v", "1"];
        let options = ["-vf", &full, "-c:v", "libopenjpeg", ycc.to_str().unwrap()];
        ffmpeg(&[&source[..], &options].concat());
        filtered(&ycc, &out, &["--strict"]);
        let pixels = rgb(&out);
        let is_near = pixels
            .iter()
            .zip(colour.iter().cycle())
            .all(|(&a, &b)| a.abs_diff(b) <= 3);
        assert!(is_near, "{format}: {:?}", &pixels[3 * 64..][..3]);
        let mut file = fs::read(&ycc).unwrap();
        let number = file.windows(5).position(|part| part == b"colr\x01").unwrap() + 10;
        assert_eq!(file[number], 18);
        file[number] = number_of_colours;
        fs::write(&ycc, file).unwrap();
        let said = refused(&ycc, &out, &["--overwrite", "--strict"]);
        let word = if number_of_colours == 24 { "e-sYCC" } else { "CMYK" };
        assert!(said.contains(&format!("left out: colour space {word}")), "{said}");
    }
}

#[test]
fn masks_of_bmp_are_obeyed_and_what_8_bits_cannot_hold_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Two pixels of 32 bits, and masks of red, green and blue.
    let file = |masks: [u32; 3], pixels: [u32; 2]| {
        let numbers = [40, 2, 1, 1 | 32 << 16, 3, 8, 0, 0, 0, 0].into_iter();
        let words = numbers.chain(masks).chain(pixels).flat_map(u32::to_le_bytes);
        let head = [&b"BM"[..], &74_u32.to_le_bytes(), &[0; 4], &66_u32.to_le_bytes()].concat();
        fs::write(at("a.bmp"), head.into_iter().chain(words).collect::<Vec<u8>>()).unwrap();
        filtered(&at("a.bmp"), &at("a.png"), &["--overwrite"])
    };
    let said = file([0xff00_0000, 0xff0, 0x00ff_0000], [0x0a14_01e0, 0xff00_0010]);
    assert!(!said.contains("warning"), "{said}");
    assert_eq!(samples(&at("a.png"), "rgb24"), [10, 30, 20, 255, 1, 0]);
    // 11, 11 and 10 bits.
    let said = file([0xffe0_0000, 0x001f_fc00, 0x3ff], [1024 << 21, 2047 << 21 | 512]);
    assert!(
        said.contains("samples of 11 bits are brought to 8 bits"),
        "{said}"
    );
    let found = samples(&at("a.png"), "rgb24");
    let real = [
        1024.0 * 255.0 / 2047.0,
        0.0,
        0.0,
        255.0,
        0.0,
        512.0 * 255.0 / 1023.0,
    ];
    assert!(
        found
            .iter()
            .zip(real)
            .all(|(&a, b)| (f64::from(a) - b).abs() < 1.0),
        "{found:?}"
    );
    assert!(refused(&at("a.bmp"), &at("strict.png"), &["--strict"]).contains("11 bits"));
}

#[test]
fn a_start_number_is_for_the_names_that_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    for name in ["a.png", "b.png"] {
        picture(&input.join(name), "16x12", &["-pix_fmt", "gray"]);
    }
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    filtered(&input, &out.join("on%d.png"), &["--start-number", "5"]);
    assert_eq!(names(&out), ["on5.png", "on6.png"]);
    filtered(
        &input.join("a.png"),
        &out.join("one%d.png"),
        &["--start-number", "7"],
    );
    assert!(out.join("one7.png").exists());
    let most = i64::MAX.to_string();
    for more in [&[][..], &["--skip-existing"]] {
        let options = [&["--start-number", &most], more].concat();
        let said = refused(&input, &out.join("most%d.png"), &options);
        assert!(
            said.contains("cannot be numbered from 9223372036854775807 on"),
            "{said}"
        );
    }
    // Of a pattern it is the first that is read.
    let next = folder.path().join("next");
    fs::create_dir(&next).unwrap();
    filtered(
        &out.join("on%d.png"),
        &next.join("%d.png"),
        &["--start-number", "6"],
    );
    assert_eq!(names(&next), ["6.png"]);
}

/// Checks that a file is read with such a word, and refused for it under `--strict`.
fn read_with_a_word(input: &Path, word: &str) {
    let output = input.with_extension("out.png");
    let said = filtered(input, &output, &["--overwrite"]);
    assert!(said.contains(word), "{}: {said}", input.display());
    let said = refused(input, &output, &["--overwrite", "--strict"]);
    assert!(said.contains(word), "{}: {said}", input.display());
}

/// A BMP file of run lengths of 8 bits, whose palette begins with gray and red.
fn bmp_of_runs(width: u32, height: u32, runs: &[u8]) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    file.resize(54 + 4 * 256, 0);
    (file[10], file[11], file[14], file[26], file[28], file[30]) = (0x36, 4, 40, 1, 8, 1);
    file[18..22].copy_from_slice(&width.to_le_bytes());
    file[22..26].copy_from_slice(&height.to_le_bytes());
    file[54..62].copy_from_slice(&[128, 128, 128, 0, 0, 0, 255, 0]);
    file.extend(runs);
    let length = file.len() as u32;
    file[2..6].copy_from_slice(&length.to_le_bytes());
    file
}

#[test]
fn rows_that_run_lengths_do_not_reach_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.bmp");
    for (runs, missing) in [
        (&b"\x08\x01\0\0\0\x01"[..], "5 of 6 rows have no pixel"),
        (b"\0\x01", "6 of 6 rows have no pixel"),
        (b"\x08\x01\0\x02\0\x04\x02\x01\0\x01", "1 of 6 rows have no pixel"),
    ] {
        fs::write(&input, bmp_of_runs(8, 6, runs)).unwrap();
        read_with_a_word(&input, missing);
        assert_eq!(rgb(&input.with_extension("out.png")), rgb(&input));
    }
    // Rows that are passed over on purpose, and a last row that is short.
    for runs in [
        &b"\x08\x01\0\x02\0\x05\x02\x01\0\x01"[..],
        b"\0\0\0\0\0\0\0\0\0\0\x08\x01\0\0\0\x01",
    ] {
        fs::write(&input, bmp_of_runs(8, 6, runs)).unwrap();
        filtered(
            &input,
            &folder.path().join("out.png"),
            &["--strict", "--overwrite"],
        );
        assert_eq!(rgb(&folder.path().join("out.png")), rgb(&input));
    }
}

#[test]
fn data_behind_pictures_of_ffmpegs_are_named_and_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["qoi", "sgi"] {
        let input = folder.path().join(format!("in.{kind}"));
        picture(&input, "24x16", &["-pix_fmt", "rgb24"]);
        filtered(
            &input,
            &folder.path().join("out.png"),
            &["--strict", "--overwrite"],
        );
        let mut file = fs::read(&input).unwrap();
        file.extend(b"more");
        fs::write(&input, file).unwrap();
        read_with_a_word(&input, "bytes after the picture are ignored");
        let words = filtered(&input, &folder.path().join("out.png"), &["--overwrite"]);
        assert!(!words.contains("packet"), "{words}");
    }
}

#[test]
fn bmp_files_that_are_not_read_say_which_kind_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.bmp"), folder.path().join("out.png"));
    let plain = bmp_of_runs(8, 6, b"");
    let with = |place: usize, byte: u8| {
        let mut file = plain.clone();
        file[place] = byte;
        file
    };
    for (file, word) in [
        (with(30, 6), "BI_ALPHABITFIELDS"),
        (with(14, 16), "header of 16 bytes"),
        (with(1, b'A'), "array of bitmaps"),
    ] {
        fs::write(&input, file).unwrap();
        let words = refused(&input, &output, &[]);
        assert!(
            words.contains("framepipe does not read") && words.contains(word),
            "{words}"
        );
    }
}

/// A JPEG file with a list in the multi-picture format behind its first segment: the kinds of the pictures.
fn listing(jpeg: &[u8], kinds: &[u32]) -> Vec<u8> {
    let mut data = b"MPF\0MM\0\x2a\0\0\0\x08\0\x01\xb0\x02\0\x07".to_vec();
    data.extend((16 * kinds.len() as u32).to_be_bytes());
    data.extend(b"\0\0\0\x1a\0\0\0\0");
    for kind in kinds {
        data.extend(kind.to_be_bytes());
        data.extend([0; 12]);
    }
    let first = 4 + usize::from(u16::from_be_bytes([jpeg[4], jpeg[5]]));
    let length = (data.len() as u16 + 2).to_be_bytes();
    [&jpeg[..first], b"\xff\xe2", &length, &data, &jpeg[first..]].concat()
}

#[test]
fn files_of_several_pictures_say_that_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("one.jpg"), "24x16", &["-q:v", "3"]);
    let one = fs::read(at("one.jpg")).unwrap();
    // A list of a picture and two previews, as cameras write it, and the previews.
    let camera = [&listing(&one, &[0x03_0000, 0x01_0001, 0x01_0002]), &one[..], &one].concat();
    fs::write(at("camera.jpg"), camera).unwrap();
    filtered(&at("camera.jpg"), &at("camera.png"), &["--strict"]);
    fs::write(at("views.jpg"), listing(&one, &[0x02_0003; 3])).unwrap();
    read_with_a_word(&at("views.jpg"), "the file holds 3 pictures");
    for padding in [&b""[..], &[0; 9]] {
        fs::write(at("two.jpg"), [&one, padding, &one].concat()).unwrap();
        read_with_a_word(&at("two.jpg"), "the file holds several pictures");
    }
    let video = b"\0\0\0\x14ftypmp42\0\0\0\0mp42";
    for (name, first, behind, word) in [
        ("more.jpg", &one, &b"other data"[..], "bytes after the picture"),
        ("motion.jpg", &one, video, "a video follows the picture"),
        (
            "motion-views.jpg",
            &listing(&one, &[0x02_0003; 2]),
            video,
            "2 pictures and a video",
        ),
    ] {
        fs::write(at(name), [first, behind].concat()).unwrap();
        read_with_a_word(&at(name), word);
    }
    fs::write(at("padded.jpg"), [&one[..], b"\0\0\xff\xff\r\n"].concat()).unwrap();
    filtered(&at("padded.jpg"), &at("padded.png"), &["--strict"]);

    fs::write(at("one.pgm"), "P5 3 1 255\nabc").unwrap();
    filtered(&at("one.pgm"), &at("one.png"), &["--strict"]);
    fs::write(at("two.pgm"), "P5 3 1 255\nabcP5 3 1 255\ndef").unwrap();
    read_with_a_word(&at("two.pgm"), "the file holds several pictures");
    fs::write(at("above.pgm"), "P5 3 1 98\nabc").unwrap();
    read_with_a_word(&at("above.pgm"), "1 samples are above 98");

    let floats: Vec<u8> = [0.25_f32, 0.5, 0.75]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let pfm = |head: &str| [head.as_bytes(), &floats].concat();
    let unix = pfm("Pf\n3 1\n-1.0\n");
    fs::write(at("one.pfm"), &unix).unwrap();
    filtered(&at("one.pfm"), &at("one.tif"), &["--strict"]);
    fs::write(at("two.pfm"), unix.repeat(2)).unwrap();
    read_with_a_word(&at("two.pfm"), "the file holds several pictures");
    // Lines that end in two bytes.
    fs::write(at("dos.pfm"), pfm("Pf\r\n3 1\r\n-1.0\r\n")).unwrap();
    filtered(&at("dos.pfm"), &at("dos.tif"), &["--strict"]);
    assert!(fs::read(at("dos.tif")).unwrap() == fs::read(at("one.tif")).unwrap());
    for kind in ["png", "bmp", "tga", "jxl"] {
        let name = format!("one.{kind}");
        if kind == "jxl" && !has_encoder("libjxl") {
            continue;
        }
        picture(&at(&name), "24x16", &[]);
        let mut file = fs::read(at(&name)).unwrap();
        if kind == "jxl" {
            // A codestream in boxes, whose end is known.
            let length = (8 + file.len() as u32).to_be_bytes();
            let head = b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14ftypjxl \0\0\0\0jxl ";
            file = [&head[..], &length, b"jxlc", &file].concat();
        }
        if kind == "jxl" {
            // Three frames of 4x4 pixels, by libjxl.
            let animated =
                b"\xff\x0a\x83\x05\x4d\0\x20\x26\x08\x04\x01\0\x38\0\x4b\x18\x8b\x15\x80\x55\xfc\x7f\0\
                \0\x85\x36\x84\x09\x08\x04\x01\0\x3c\0\x4b\x18\x8b\x15\x80\x1d\xf8\xff\0\0\x10\x44\
                \x08\x1b\x01\x08\x04\x05\0\x3c\0\x4b\x18\x8b\x15\x80\x5d\xf8\xff\0\0\x52\x3c\x08\x43\
                \x02";
            fs::write(at("animated.jxl"), animated).unwrap();
            read_with_a_word(&at("animated.jxl"), "an animation");
        }
        fs::write(
            at(&format!("more.{kind}")),
            [&file[..], b"and more, which is text"].concat(),
        )
        .unwrap();
        read_with_a_word(&at(&format!("more.{kind}")), "bytes after the picture");
    }
    let png = fs::read(at("one.png")).unwrap();
    fs::write(at("two.png"), png.repeat(2)).unwrap();
    read_with_a_word(&at("two.png"), "the file holds several pictures");
}

#[test]
fn cut_stills_are_known_by_their_formats_own_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("a.bmp"), "24x16", &["-pix_fmt", "bgr24"]);
    for (extension, encoder) in [
        ("qoi", "qoi"),
        ("ras", "sunrast"),
        ("jls", "jpegls"),
        ("sgi", "sgi"),
        ("pcx", "pcx"),
        ("pix", "alias_pix"),
    ] {
        if !has_encoder(encoder) {
            println!("SKIPPED: this FFmpeg does not write {encoder}");
            continue;
        }
        let (whole, cut) = (at(&format!("whole.{extension}")), at(&format!("cut.{extension}")));
        ffmpeg(&["-i", at("a.bmp").to_str().unwrap(), whole.to_str().unwrap()]);
        filtered(&whole, &at("out.png"), &["--strict", "--overwrite"]);
        let file = fs::read(&whole).unwrap();
        fs::write(&cut, &file[..file.len() - 1]).unwrap();
        read_with_a_word(&cut, "by its own account its");
        if extension == "jls" {
            // Segments of applications may stand before what tells JPEG-LS from JPEG.
            let spiff = [&file[..2], b"\xff\xe8\0\x08SPIFF\0", &file[2..]].concat();
            fs::write(at("spiff.jls"), spiff).unwrap();
            filtered(&at("spiff.jls"), &at("out.png"), &["--strict", "--overwrite"]);
        }
    }
    // Rows of 75 bytes and one of padding, which FFmpeg takes for none if a byte is missing.
    picture(&at("odd.dpx"), "25x16,format=rgb24", &[]);
    let file = fs::read(at("odd.dpx")).unwrap();
    fs::write(at("cut.dpx"), &file[..file.len() - 1]).unwrap();
    read_with_a_word(&at("cut.dpx"), "its last byte is missing");
}

#[test]
fn frames_that_an_animated_png_lacks_and_its_default_picture_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let counts = |frames: u8| [0, 0, 0, frames, 0, 0, 0, 0];
    // Number, 8x8 at 0,0, a time of `tenths`, no disposal, no blending.
    let control = |number: u8, tenths: u8| {
        let size = [0, 0, 0, number, 0, 0, 0, 8, 0, 0, 0, 8];
        chunk(b"fcTL", &[&size[..], &[0; 9], &[tenths, 0, 10, 0, 0]].concat())
    };
    png(&at("one.png"), &[]);
    let one = fs::read(at("one.png")).unwrap();
    let data = one.windows(4).position(|name| name == b"IDAT").unwrap();
    let length = u32::from_be_bytes(one[data - 4..data].try_into().unwrap()) as usize;
    let frame = |number: u8| {
        let data = [&[0, 0, 0, number], &one[data + 4..data + 4 + length]].concat();
        chunk(b"fdAT", &data)
    };
    let animated = |name: &str, stated: u8, frames: &[Vec<u8>]| {
        let end = one.len() - 12;
        let (head, picture) = (&one[..33], &one[33..end]);
        let whole = [
            head,
            &chunk(b"acTL", &counts(stated)),
            picture,
            &frames.concat(),
            &one[end..],
        ]
        .concat();
        fs::write(at(name), whole).unwrap();
    };
    animated("still.png", 1, &[control(0, 1), frame(1)]);
    read_with_a_word(&at("still.png"), "its default picture is read");
    animated(
        "moves.png",
        2,
        &[control(0, 1), frame(1), control(2, 0), frame(3)],
    );
    let said = filtered(&at("moves.png"), &at("moves/"), &[]);
    assert!(said.contains("left out: default picture"), "{said}");
    assert!(
        said.contains("1 of its 2 frames states a time of 0, and is shown for 1/15 s"),
        "{said}"
    );
    assert_eq!(names(&at("moves")).len(), 2);
    assert!(refused(&at("moves.png"), &at("strict/"), &["--strict"]).contains("default picture"));
    animated(
        "lacks.png",
        4,
        &[control(0, 1), frame(1), control(2, 1), frame(3)],
    );
    let said = filtered(&at("lacks.png"), &at("lacks/"), &[]);
    assert!(
        said.contains("states 4 frames and holds 2") && !said.contains("what frames clear"),
        "{said}"
    );
    // A frame that is cleared, and one that covers it or lacks a row. What is clear is black to FFmpeg.
    let cleared = |rows: u8| {
        let mut first = control(0, 1)[8..34].to_vec();
        first[24] = 1;
        let mut second = control(2, 1)[8..34].to_vec();
        second[11] = rows;
        [
            chunk(b"fcTL", &first),
            frame(1),
            chunk(b"fcTL", &second),
            frame(3),
        ]
    };
    for (rows, is_said) in [(8, false), (7, true)] {
        animated("cleared.png", 2, &cleared(rows));
        let said = filtered(&at("cleared.png"), &at("cleared/"), &["--overwrite"]);
        let words = "transparency of what frames clear, which becomes black";
        assert_eq!(said.contains(words), is_said, "{said}");
    }
}

#[test]
fn what_formats_say_of_the_picture_is_carried_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let written = |name: &str| fs::read(at(name)).unwrap();
    let has = |file: &[u8], part: &[u8]| file.windows(part.len()).any(|window| window == part);
    // Two pixels of 32 bits in a BMP: with a plain header, then with one that has a profile.
    let bmp = |size: u8, fourth: u8, more: &[u8]| {
        let mut file = b"BM".to_vec();
        file.resize(14 + usize::from(size), 0);
        (file[10], file[14], file[18], file[22]) = (14 + size, size, 2, 1);
        (file[26], file[28]) = (1, 32);
        file.extend([1, 2, 3, 255, 4, 5, 6, fourth]);
        file.extend(more);
        file
    };
    fs::write(at("same.bmp"), bmp(40, 255, b"")).unwrap();
    let said = filtered(&at("same.bmp"), &at("bmp.png"), &["--strict"]);
    assert!(!said.contains("fourth byte"), "{said}");
    fs::write(at("other.bmp"), bmp(40, 254, b"")).unwrap();
    let said = filtered(&at("other.bmp"), &at("bmp.png"), &["--overwrite"]);
    assert!(said.contains("fourth byte"), "{said}");
    let mut profile = vec![7; 200];
    profile[16..20].copy_from_slice(b"RGB ");
    let mut profiled = bmp(124, 255, &profile);
    profiled[70..74].copy_from_slice(b"DEBM");
    (profiled[126], profiled[130]) = (124 + 8, 200);
    fs::write(at("profiled.bmp"), profiled).unwrap();
    filtered(&at("profiled.bmp"), &at("profiled.png"), &["--strict"]);
    assert!(has(&written("profiled.png"), b"iCCP"));

    // The identity of a TGA, and of its extension author, gamma, key colour and a small preview.
    let mut tga = vec![2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 24, 32];
    tga.extend(b"id123456");
    let place = tga.len() as u32;
    tga.extend([0; 495]);
    let area = place as usize;
    tga[area + 2..area + 10].copy_from_slice(b"somebody");
    (tga[area + 478], tga[area + 480], tga[area + 486]) = (1, 1, 9);
    tga[area + 470] = 9;
    tga.extend([&place.to_le_bytes()[..], &[0; 4], b"TRUEVISION-XFILE.\0"].concat());
    fs::write(at("a.tga"), tga).unwrap();
    read_with_a_word(&at("a.tga"), "left out: key colour");
    let png = written("a.out.png");
    assert!(has(&png, b"Author\0somebody") && has(&png, b"Title\0id") && has(&png, b"gAMA\0\x01\x86\xa0"));

    // Comments of PNM.
    fs::write(at("a.pgm"), b"P5\n# Copyright me\n2 1\n# and you\n255\nab").unwrap();
    filtered(&at("a.pgm"), &at("pgm.png"), &["--strict"]);
    assert!(has(&written("pgm.png"), b"Comment\0Copyright me\nand you"));
    let pam = b"P7\n# a map\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\nab";
    fs::write(at("a.pam"), pam).unwrap();
    filtered(&at("a.pam"), &at("pam.png"), &["--strict"]);
    assert!(has(&written("pam.png"), b"Comment\0a map"));
    filtered(&at("a.pgm"), &at("other.pgm"), &["--strict"]);
    assert_eq!(
        written("other.pgm"),
        b"P5\n# Copyright me\n# and you\n2 1\n255\nab"
    );

    // A DPX of two rows that is to be mirrored, of film's logarithm.
    picture(&at("a.dpx"), "8x2", &["-pix_fmt", "rgb24"]);
    let mut dpx = written("a.dpx");
    let low = if dpx.starts_with(b"XPDS") { 768 } else { 769 };
    (dpx[low], dpx[801]) = (1, 3);
    dpx[460..462].copy_from_slice(b"me");
    fs::write(at("b.dpx"), &dpx).unwrap();
    read_with_a_word(&at("b.dpx"), "left out: transfer (logarithmic)");
    let png = written("b.out.png");
    assert!(has(&png, b"Copyright\0me"));
    assert!(has(&png, b"\x01\x12\0\x03\0\0\0\x01\0\x02") || has(&png, b"\x12\x01\x03\0\x01\0\0\0\x02\0"));
}

/// A WebP file whose flags do not announce the alpha of its picture, one with a chunk of no known name, and
/// one whose flags announce Exif and XMP that are not there.
#[test]
fn flags_and_chunks_of_webp_are_held_against_the_file() {
    if !has_encoder("libwebp") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = ["-vf", "format=bgra,colorchannelmixer=aa=0.5", "-lossless", "1"];
    picture(&at("plain.webp"), "8x8", &options);
    let plain = fs::read(at("plain.webp")).unwrap();
    let extended = [&b"VP8X\x0a\0\0\0\0\0\0\0\x07\0\0\x07\0\0"[..], &plain[12..]].concat();
    let riff = |body: &[u8]| {
        let size = (body.len() as u32 + 4).to_le_bytes();
        [b"RIFF", &size[..], b"WEBP", body].concat()
    };
    fs::write(at("a.webp"), riff(&extended)).unwrap();
    filtered(&at("a.webp"), &at("webp.png"), &["--strict"]);
    let alpha = samples(&at("webp.png"), "rgba")[3];
    assert!((120..136).contains(&alpha), "{alpha}");
    fs::write(at("b.webp"), riff(&[&extended[..], b"UNKN\x02\0\0\0hi"].concat())).unwrap();
    read_with_a_word(&at("b.webp"), "left out: chunk UNKN");
    let mut announced = extended.clone();
    announced[8] = 0x0c;
    fs::write(at("c.webp"), riff(&announced)).unwrap();
    read_with_a_word(
        &at("c.webp"),
        "its header announces Exif and XMP, and no chunk holds it",
    );
    let said = filtered(&at("c.webp"), &at("c.png"), &[]);
    assert!(
        samples(&at("c.png"), "rgba") == samples(&at("webp.png"), "rgba"),
        "{said}"
    );
}

#[test]
fn what_no_output_is_given_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    png(&at("scaled.png"), &[(b"sCAL", b"\x011\x002")]);
    read_with_a_word(&at("scaled.png"), "is left out: scale (sCAL)");
    // The last four bytes of the only IDAT's data are the checksum of the pixels.
    png(&at("right.png"), &[]);
    let mut file = fs::read(at("right.png")).unwrap();
    let begin = file.windows(4).position(|name| name == b"IDAT").unwrap();
    let length = u32::from_be_bytes(file[begin - 4..begin].try_into().unwrap()) as usize;
    let end = begin + 4 + length;
    file[end - 1] ^= 1;
    let data = chunk(b"IDAT", &file[begin + 4..end]);
    file.splice(begin - 4..end + 4, data);
    fs::write(at("wrong.png"), file).unwrap();
    read_with_a_word(&at("wrong.png"), "the checksum of its pixels is wrong");
    filtered(&at("right.png"), &at("right.out.png"), &["--strict"]);
    assert!(rgb(&at("wrong.out.png")) == rgb(&at("right.out.png")));
    png(&at("coded.png"), &[(b"cICP", &[9, 16, 9, 1])]);
    read_with_a_word(&at("coded.png"), "left out: CICP colour");
    // A Photoshop file of one pixel: duotone, and CMYK.
    let psd = |mode: u8, samples: &[u8]| {
        let mut file = b"8BPS\0\x01".to_vec();
        file.resize(26, 0);
        (file[13], file[17], file[21], file[23], file[25]) = (samples.len() as u8, 1, 1, 8, mode);
        [&file, &[0; 14][..], samples].concat()
    };
    fs::write(at("duotone.psd"), psd(8, b"a")).unwrap();
    read_with_a_word(&at("duotone.psd"), "left out: inks of a duotone");
    fs::write(at("inks.psd"), psd(4, b"abcd")).unwrap();
    let said = filtered(&at("inks.psd"), &at("inks.png"), &["--strict"]);
    assert!(said.contains("four inks (CMYK) become RGB"), "{said}");
    png(&at("backed.png"), &[(b"bKGD", b"\0\0\0\0\0\0")]);
    let said = filtered(&at("backed.png"), &at("backed.out.png"), &["--strict"]);
    assert!(
        said.contains("advice to viewers is left out: background (bKGD)"),
        "{said}"
    );
    let head = |lines: &str| format!("#?RADIANCE\n{lines}FORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 2\n");
    let pixels = [128, 128, 128, 129, 64, 64, 64, 129];
    let hdr = |lines: &str| [head(lines).as_bytes(), &pixels].concat();
    fs::write(at("plain.hdr"), hdr("EXPOSURE=1\n")).unwrap();
    filtered(&at("plain.hdr"), &at("plain.exr"), &["--strict"]);
    fs::write(at("exposed.hdr"), hdr("EXPOSURE=2\nGAMMA=2.2\n")).unwrap();
    let said = refused(&at("exposed.hdr"), &at("exposed.exr"), &["--strict"]);
    assert!(said.contains("left out: EXPOSURE=2, GAMMA=2.2"), "{said}");
    fs::write(at("wide.hdr"), hdr("PIXASPECT=0.5\n")).unwrap();
    filtered(&at("wide.hdr"), &at("wide.exr"), &["--strict"]);
    let said = refused(&at("wide.hdr"), &at("wide.tif"), &["--strict"]);
    // What to do is about what is lost.
    let advice = "pixel aspect (2:1); a video such as .mkv keeps it; ";
    assert!(said.contains(advice), "{said}");
    let source = "testsrc2=s=16x16:d=0.04";
    let clip = at("pq.mkv");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        source,
        "-c:v",
        "ffv1",
        "-color_trc",
        "smpte2084",
        clip.to_str().unwrap(),
    ]);
    let said = refused(&clip, &at("pq.tif"), &["--strict"]);
    assert!(said.contains("transfer (smpte2084)"), "{said}");
    assert!(said.contains("keeps it, or bring the colours to what"), "{said}");
}

/// A name that exists is that of one file, whoever decodes it; FFmpeg alone would take it for a pattern.
#[test]
fn an_existing_file_whose_name_looks_like_a_pattern_is_read_itself() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, colour) in [("f0.dpx", "red"), ("z.dpx", "blue")] {
        let source = format!("color={colour}:s=16x8");
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            &source,
            "-frames:v",
            "1",
            "-pix_fmt",
            "rgb24",
            at(name).to_str().unwrap(),
        ]);
    }
    fs::rename(at("z.dpx"), at("f%d.dpx")).unwrap();
    filtered(&at("f%d.dpx"), &at("blue.png"), &[]);
    assert_eq!(rgb(&at("blue.png"))[..3], [0, 0, 254]);
    // The same in a folder, and beside a name that is none.
    fs::create_dir(at("in")).unwrap();
    fs::copy(at("f%d.dpx"), at("in/f%05d.dpx")).unwrap();
    filtered(&at("in"), &at("out/%d.png"), &[]);
    assert_eq!(rgb(&at("out/0.png"))[..3], [0, 0, 254]);
    fs::copy(at("f0.dpx"), at("in/f%05d.dpx")).unwrap();
    filtered(&at("in"), &at("out/%d.png"), &["--start-number", "1"]);
    assert!(rgb(&at("out/1.png")) == rgb(&at("f0.dpx")));
}

/// Colours of an indexed picture have alpha for FFmpeg, which says nothing where all of them are opaque.
#[test]
fn alpha_that_lets_nothing_through_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("p.pcx"), "16x12", &["-pix_fmt", "gray"]);
    picture(&at("o.gif"), "16x12", &[]);
    picture(&at("c.png"), "16x12", &["-pix_fmt", "rgba"]);
    let half = "format=rgba,geq=r=9:g=9:b=9:a=X*16";
    picture(&at("half.png"), "16x12", &["-vf", half]);
    for input in ["p.pcx", "o.gif", "c.png"] {
        for output in ["j.jpg", "m.ppm"] {
            filtered(&at(input), &at(output), &["--overwrite"]);
        }
        assert!(rgb(&at("m.ppm")) == rgb(&at(input)), "{input}");
    }
    assert!(refused(&at("half.png"), &at("h.jpg"), &[]).contains("without losing alpha"));
    assert!(!at("h.jpg").exists());
    // PCX has none at all.
    filtered(&at("p.pcx"), &at("p.png"), &["--strict"]);
    // Eight bits of red, green and blue.
    assert_eq!(fs::read(at("p.png")).unwrap()[24..26], [8, 2]);
}

/// Stills that FFmpeg decodes are image files, as others are.
#[test]
fn a_lone_dpx_has_the_options_and_the_name_of_a_still() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("s.dpx"), "16x12", &["-pix_fmt", "rgb24"]);
    filtered(&at("s.dpx"), &at("s.mkv"), &["--fps", "24", "--encoder", "ffv1"]);
    let rate = ["-v", "error", "-show_entries", "stream=r_frame_rate"];
    let probed = ffprobe(&at("s.mkv"), &rate).stdout;
    assert!(String::from_utf8_lossy(&probed).contains("r_frame_rate=24/1"));
    filtered(&at("s.dpx"), &at("out/"), &["--frames", "0-0"]);
    assert_eq!(names(&at("out")), ["s.dpx"]);
    assert!(rgb(&at("out/s.dpx")) == rgb(&at("s.dpx")));
}

#[test]
fn options_that_stills_do_not_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    picture(&at("in.png"), "24x16", &[]);
    for (output, options, words) in [
        ("out.webp", ["--quality", "5"], "PNG files have none"),
        ("out.png", ["--quality", "5"], "PNG files have none"),
        ("out/", ["--quality", "5"], "PNG files have none"),
        (
            "out.jpg",
            ["--quality", "50.5"],
            "a quality of 50.5 is out of range for JPEG",
        ),
        (
            "out.jpg",
            ["--quality", "nan"],
            "a quality of NaN is out of range for JPEG",
        ),
        (
            "out.jpg",
            ["--quality", "300"],
            "a quality of 300 is out of range for JPEG",
        ),
        (
            "out.png",
            ["--decoder", "nvdec"],
            "--decoder nvdec is an option of video files",
        ),
        (
            "out.png",
            ["--decoders", "3"],
            "--decoders is an option of video files",
        ),
    ] {
        let done = framepipe(&at("in.png"), &at(output), &options);
        let said = said(&done);
        assert_eq!(done.status.code(), Some(2), "{options:?}: {said}");
        let words = words.replace("PNG", if output == "out.webp" { "WebP" } else { "PNG" });
        assert!(said.contains(&words), "{options:?}: {said}");
        assert!(!at(output).exists(), "{options:?}");
    }
    let bare = said(&framepipe(&at("in.png"), &at("bare.yuv"), &[]));
    assert!(
        bare.contains("bare.yuv holds rgb24 samples, which its name does not tell"),
        "{bare}"
    );
    filtered(
        &at("in.png"),
        &at("named.yuv"),
        &["--strict", "--pixel-format", "yuv420p"],
    );
    filtered(&at("in.png"), &at("low.jpg"), &["--quality", "5"]);
    filtered(&at("in.png"), &at("high.jpg"), &["--quality", "95"]);
    let size = |name| fs::metadata(at(name)).unwrap().len();
    assert!(size("low.jpg") < size("high.jpg"));
    // In a folder of several kinds it is for the JPEG files.
    fs::create_dir(at("both")).unwrap();
    fs::copy(at("in.png"), at("both/a.png")).unwrap();
    fs::copy(at("high.jpg"), at("both/b.jpg")).unwrap();
    filtered(&at("both"), &at("made/"), &["--quality", "5"]);
    assert!(size("made/b.jpg") < size("high.jpg"));
}

#[test]
fn colours_of_jpeg_with_an_unknown_transform_are_those_that_libjpeg_takes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = bytes(ONE_SCAN);
    // In the place of JFIF's segment, which tells the colours by itself.
    let rest = &file[20..];
    let decoded = |transform: u8| {
        let adobe = [
            b"\xff\xd8\xff\xee\0\x0eAdobe\0\x64\0\0\0\0".as_slice(),
            &[transform],
        ]
        .concat();
        fs::write(at("in.jpg"), [&adobe, rest].concat()).unwrap();
        let said = filtered(&at("in.jpg"), &at("out.ppm"), &["-y"]);
        assert!(!said.contains("warning"), "{said}");
        fs::read(at("out.ppm")).unwrap()
    };
    let [rgb, ycbcr, unknown] = [0, 1, 2].map(decoded);
    assert!(ycbcr == unknown && ycbcr == decoded(9) && ycbcr != rgb);
}

/// Eight by eight pixels of four inks, of one colour, without Adobe's marker.
const INKS: &[&str] = &[
    "ffd8ffdb004300010101010101010101010101010101010101010101010101010101010101010101010101010101010101",
    "01010101010101010101010101010101010101010101ffc000140800080008044311004d11005911004b1100ffc4001600",
    "010101000000000000000000000000000a0609ffc40014100100000000000000000000000000000000ffda000e0443004d",
    "0059004b00003f00570d785c1d43ffd9",
];

#[test]
fn inks_of_jpeg_are_how_much_light_they_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let plain = bytes(INKS);
    let marker = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0";
    fs::write(at("plain.jpg"), &plain).unwrap();
    fs::write(at("adobe.jpg"), [&plain[..2], marker, &plain[2..]].concat()).unwrap();
    for name in ["plain.jpg", "adobe.jpg"] {
        let said = filtered(&at(name), &at("o.png"), &["-y", "--strict"]);
        assert!(said.contains("four inks (CMYK) become RGB"), "{said}");
        let (ours, ffmpegs) = (rgb(&at("o.png")), rgb(&at(name)));
        let is_near = ours.iter().zip(&ffmpegs).all(|(a, b)| a.abs_diff(*b) <= 2);
        assert!(
            is_near && ours[..3] == [207, 168, 130],
            "{name}: {:?}",
            &ours[..3]
        );
    }
}

#[test]
fn pages_of_tiff_in_a_circle_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let path = at("a.tif");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=16x8",
        "-frames:v",
        "1",
        path.to_str().unwrap(),
    ]);
    let whole = fs::read(&path).unwrap();
    assert!(!filtered(&path, &at("o.png"), &[]).contains("warning"));
    let first = u32::from_le_bytes(whole[4..8].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes(whole[first..first + 2].try_into().unwrap()));
    let next = first + 2 + 12 * count;
    // The page itself, and a second one that leads back to it.
    let mut own = whole.clone();
    own[next..next + 4].copy_from_slice(&(first as u32).to_le_bytes());
    let mut two = own.clone();
    two[next..next + 4].copy_from_slice(&(whole.len() as u32).to_le_bytes());
    two.extend_from_slice(&own[first..next + 4]);
    for (name, file, read) in [("own.tif", own, 1), ("two.tif", two, 2)] {
        fs::write(at(name), file).unwrap();
        let out = at("out");
        let said = filtered(&at(name), &out.join(""), &[]);
        let words = format!(
            "warning: {}: what follows its page {read} cannot be read: ",
            at(name).display()
        );
        assert!(said.contains(&words) && said.contains("in a circle"), "{said}");
        assert_eq!(names(&out).len(), read);
        fs::remove_dir_all(&out).unwrap();
        let refusal = refused(&at(name), &out.join(""), &["--strict"]);
        assert!(refusal.contains("in a circle"), "{refusal}");
    }
}

#[test]
fn deep_lossless_jpeg_is_refused_from_a_pipe_as_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let path = at("a.jpg");
    let source = [
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=16x8",
        "-frames:v",
        "1",
        "-c:v",
        "ljpeg",
    ];
    ffmpeg(
        &[
            &source[..],
            &["-pix_fmt", "bgr24", "-f", "image2", path.to_str().unwrap()],
        ]
        .concat(),
    );
    let mut file = fs::read(&path).unwrap();
    assert!(piped(&file, &at("o.png"), &[]).status.success());
    let depth = file.windows(2).position(|pair| pair == b"\xff\xc3").unwrap() + 4;
    file[depth] = 16;
    fs::write(&path, &file).unwrap();
    refused(&path, &at("o.png"), &["-y"]);
    let done = piped(&file, &at("o.png"), &[]);
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(
        said(&done).contains("lossless JPEG of 16 bits"),
        "{}",
        said(&done)
    );
}
