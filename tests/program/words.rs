//! What people type and what they are shown: other programs' words, hints, help, completions, manual pages,
//! and errors that come before any work.

use crate::common::{PROGRAM, text};
use std::fs;
use std::process::{Command, Output};

const CLIP: &str = "synthetic:64x48:yuv420p:25:4";

fn framepipe(arguments: &[&str]) -> Output {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    assert!(!text(&output.stderr).contains("panicked"), "{arguments:?}");
    output
}

/// What `framepipe filter` says on stderr; it must end with this exit code.
fn filter(code: i32, arguments: &[&str]) -> String {
    let mut all = vec!["filter"];
    all.extend(arguments);
    if !arguments.contains(&"--filter") {
        all.extend(["--filter", "soft"]);
    }
    let output = framepipe(&all);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{said}");
    said
}

fn stdout(arguments: &[&str]) -> String {
    let output = framepipe(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn pixel_format(path: &str) -> String {
    let output = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-select_streams",
            "v:0",
            "-show_entries",
            "stream=pix_fmt",
        ])
        .args(["-of", "csv=p=0", path])
        .output()
        .unwrap();
    text(&output.stdout).trim().to_owned()
}

#[test]
fn words_of_other_programs_are_understood() {
    for words in [
        ["--border", "clamp"],
        ["--border", "nearest"],
        ["--border", "edge"],
        ["--border", "reflect101"],
        ["--border", "REFLECT_101"],
        ["--planes", "Y"],
        ["--filter", "gaussian:2"],
        ["--filter", "gaussian=2"],
        ["--filter", "gaussian,laplacian8"],
        ["--filter", "gblur=2"],
    ] {
        filter(0, &[&[CLIP, "null:", "-q"][..], &words].concat());
    }
    filter(
        0,
        &["synthetic:64x48:rgb24:25:4", "null:", "-q", "--planes", "rgb"],
    );
    for (words, hint) in [
        (["--filter", "boxblur"], "box:size=7"),
        (["--filter", "blur"], "gaussian"),
        (["--filter", "median"], "no convolution"),
        (["--border", "mirorr"], "'mirror'"),
        (["--planes", "chrome"], "'chroma'"),
        (["--engine", "cpuu"], "'cpu'"),
        (["--simd", "avx3"], "avx2"),
    ] {
        let said = filter(2, &[&[CLIP, "null:"][..], &words].concat());
        assert!(said.contains(hint), "{words:?}: {said}");
    }
    // The card by its other names: there is none to be had, or it works.
    for name in ["gpu", "nvidia"] {
        let said = framepipe(&["filter", CLIP, "null:", "--filter", "soft", "--engine", name]);
        assert!(
            matches!(said.status.code(), Some(0 | 1)),
            "{}",
            text(&said.stderr)
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4").to_str().unwrap().to_owned();
    for encoder in ["x264", "h264", "H264"] {
        let said = filter(0, &[CLIP, &out, "-y", "--encoder", encoder]);
        assert!(said.contains("libx264"), "{said}");
    }
}

#[test]
fn what_is_wrong_with_an_output_is_said_before_the_engine_starts() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (there, out) = (name("there.mp4"), name("out.mp4"));
    fs::write(&there, "whole").unwrap();
    for (output, options, words) in [
        (&there, &[][..], "exists"),
        (&out, &["--encoder", "libx246"], "did you mean 'libx264'?"),
        (&out, &["--encoder", "libx264", "--preset", "hasty"], "hasty"),
        (&out, &["--preset", "hasty"], "hasty"),
        (&out, &["--quality", "1000"], "use 0 to 51"),
        (&out, &["--encoder", "libx265", "--quality", "60"], "use 0 to 51"),
        (&out, &["--encoder", "mpeg4", "--quality", "0"], "use 1 to 31"),
        (
            &out,
            &[
                "--encoder-option",
                "no-such-option=1",
                "--pixel-format",
                "nonsense",
            ],
            "nonsense",
        ),
    ] {
        let said = filter(1, &[&[CLIP, output][..], options].concat());
        assert!(said.contains(words), "{options:?}: {said}");
        assert!(!said.contains("engine:"), "{options:?}: {said}");
    }
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1);
    assert_eq!(fs::read(&there).unwrap(), b"whole");
    let said = filter(1, &[CLIP, &out, "--encoder", "h264_vaapi"]);
    assert!(
        said.contains("device") || said.contains("no video encoder"),
        "{said}"
    );
    // Encoders of devices that are not here are not offered.
    let said = filter(1, &[CLIP, &out, "--encoder", "nonsense"]);
    assert!(said.contains("libx264"), "{said}");
    for absent in ["_omx", "_vaapi", "_v4l2m2m", "_qsv"] {
        assert!(!said.contains(absent), "{said}");
    }
}

#[test]
fn rgb_becomes_what_players_of_mp4_show() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (even, odd) = ("synthetic:64x48:rgb24:25:4", "synthetic:63x47:rgb24:25:4");
    for extension in ["mp4", "mov"] {
        let out = name(&format!("even.{extension}"));
        let said = filter(0, &[even, &out]);
        assert_eq!(pixel_format(&out), "yuv420p", "{said}");
        assert!(said.contains("converted from rgb24 to yuv420p"), "{said}");
        assert!(said.contains("--pixel-format yuv444p"), "{said}");
    }
    let said = filter(0, &[even, &name("deep.mp4"), "--encoder", "libx265"]);
    assert_eq!(pixel_format(&name("deep.mp4")), "yuv420p", "{said}");
    let said = filter(0, &[odd, &name("odd.mp4")]);
    assert_eq!(pixel_format(&name("odd.mp4")), "yuv444p");
    assert!(said.contains("because the size is odd"), "{said}");
    // Who asks for all chroma, or takes another container, gets it.
    filter(0, &[even, &name("full.mp4"), "--pixel-format", "yuv444p"]);
    assert_eq!(pixel_format(&name("full.mp4")), "yuv444p");
    filter(0, &[even, &name("even.mkv")]);
    assert_eq!(pixel_format(&name("even.mkv")), "yuv444p");
    filter(0, &[even, &name("exact.mkv"), "--encoder", "ffv1"]);
    assert_eq!(pixel_format(&name("exact.mkv")), "bgr0");
    // YUV of full chroma stays as it is.
    filter(0, &["synthetic:64x48:yuv444p:25:4", &name("yuv.mp4")]);
    assert_eq!(pixel_format(&name("yuv.mp4")), "yuv444p");
}

#[test]
fn help_begins_with_examples_and_ends_with_tuning() {
    let help = stdout(&["filter", "--help"]);
    let place = |words: &str| {
        help.find(words)
            .unwrap_or_else(|| panic!("{words} is not in the help:\n{help}"))
    };
    let order = [
        "Examples:",
        "Usage: framepipe filter",
        "<INPUT>...",
        "<OUTPUT>",
        "\nOptions:",
        "\nInput:",
        "\nOutput:",
        "\nEngine:",
        "\nTuning:",
        "--memory",
        "--queue",
        "--workers",
    ];
    let mut places: Vec<usize> = order.iter().map(|words| place(words)).collect();
    // The last three are among each other as they like.
    places.truncate(9);
    assert!(places.is_sorted(), "{places:?}\n{help}");
    assert!(place("--memory") > place("\nTuning:") && place("--queue") > place("\nTuning:"));
    assert!(place("--workers") > place("\nTuning:"));
    for line in help.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    // Each example is understood but for its files.
    for line in help
        .lines()
        .filter_map(|line| line.strip_prefix("  framepipe filter "))
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let said = framepipe(&[&["filter", "--dry-run"][..], &words].concat());
        assert_eq!(said.status.code(), Some(1), "{line}: {}", text(&said.stderr));
    }
    assert!(stdout(&["--help"]).contains("Examples:"));
}

#[test]
fn shells_complete_the_values_too() {
    for (shell, forms) in [
        (
            "bash",
            ["gaussian", "libx264", "replicate", "luma", "yuv420p10le"],
        ),
        ("zsh", ["gaussian", "libx264", "replicate", "luma", "yuv420p10le"]),
        (
            "fish",
            ["gaussian", "libx264", "replicate", "luma", "yuv420p10le"],
        ),
    ] {
        let script = stdout(&["completions", shell]);
        for word in forms {
            assert!(script.contains(word), "{shell} {word}");
        }
    }
    // The words are offers and no limits, and the help is not full of them.
    filter(
        0,
        &[
            CLIP,
            "null:",
            "-q",
            "--filter",
            "gaussian:sigma=2",
            "--border",
            "constant:7",
        ],
    );
    assert!(!stdout(&["filter", "--help"]).contains("yuv420p10le"));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("man1");
    stdout(&["man", target.to_str().unwrap()]);
    let page = |name: &str| fs::read_to_string(target.join(name)).unwrap();
    for name in [
        "filter",
        "diff",
        "masks",
        "devices",
        "verify",
        "bench",
        "bench-kernels",
        "completions",
        "man",
    ] {
        let page = page(&format!("framepipe-{name}.1"));
        assert!(page.contains(&format!(".TH framepipe-{name}")), "{name}: {page}");
    }
    assert!(page("framepipe-filter.1").contains("\\-\\-on\\-interrupt"));
    let root = stdout(&["man"]);
    assert!(root.contains(".TH framepipe") && root == page("framepipe.1"));
}

#[test]
fn an_encoder_that_waits_for_pictures_hangs_nothing() {
    let has = Command::new("ffmpeg")
        .args(["-v", "error", "-encoders"])
        .output()
        .unwrap();
    if !text(&has.stdout).contains("libsvtav1") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mkv").to_str().unwrap().to_owned();
    filter(
        0,
        &[
            "synthetic:64x64:yuv420p:25:4",
            &out,
            "--encoder",
            "av1",
            "--preset",
            "12",
        ],
    );
    assert_eq!(pixel_format(&out), "yuv420p");
    let said = filter(
        1,
        &[
            "synthetic:64x64:yuv420p:25:4",
            &out,
            "-y",
            "--encoder",
            "av1",
            "--preset",
            "99",
        ],
    );
    assert!(said.contains("99"), "{said}");
}
