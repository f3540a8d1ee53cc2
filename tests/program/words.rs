//! What people type and what they are shown: other programs' words, hints, help, completions, manual pages,
//! and errors that come before any work.

use crate::common::{PROGRAM, ffmpeg, text};
use std::fs;
use std::path::Path;
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
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4").to_str().unwrap().to_owned();
    for encoder in ["x264", "h264", "H264"] {
        let said = filter(0, &[CLIP, &out, "-y", "--encoder", encoder]);
        assert!(said.contains("libx264"), "{said}");
    }
}

#[test]
fn words_that_mean_nothing_here_are_answered_with_what_to_write() {
    for (words, hint) in [
        (["--filter", "boxblur"], "box:size=7"),
        (["--filter", "blur"], "gaussian"),
        (["--filter", "median"], "no convolution"),
        (["--border", "mirorr"], "'mirror'"),
        (["--planes", "chrome"], "'chroma'"),
        (["--engine", "cpuu"], "'cpu'"),
        (["--simd", "avx3"], "avx2"),
        (["--filter", "convolution=1"], "such as mask:rows=0 -1 0"),
        (["--filter", "mask:rows="], "there is no number"),
        (["--frames", "abc"], "write N, A-B"),
        (["--border", "BORDER_CONSTANT"], "'constant:0'"),
        (["--planes", "q"], "gray (luma filtered, colour dropped)"),
        (["-ss", "5"], "write --start"),
        (["-crf", "20"], "write --quality"),
        (["--crf", "20"], "write --quality"),
        (
            ["--tune", "grain"],
            "write --encoder-option, such as --encoder-option tune=grain",
        ),
        (["--filter", "unsharp=7"], "amount=1 with --planes luma"),
        (["-t", "5"], "write --duration"),
        (["-an", "-q"], "write --no-audio"),
        (["-i", CLIP], "names stand without it"),
        (["-hide_banner", "-q"], "leave it out"),
        (["-c:v", "libx264"], "such as --encoder libx264\n"),
        (["-c:v=libvpx-vp9", "-q"], "such as --encoder libvpx-vp9\n"),
        (["-vcodec", "copy"], "such as --encoder libx265\n"),
        (["-acodec", "aac"], "such as --audio-encoder aac\n"),
        (["--no-sound", "-q"], "write --no-audio"),
        (["--filter", "sharpen,gaussian:2,,"], "has a stray comma"),
        (["--filter", ",gaussian"], "filter ',gaussian' has a stray comma"),
        (["--filter", "sharpen,,gaussian"], "has a stray comma"),
        (["--filter", "gaussian, "], "has a stray comma"),
        (["-framerate", "24"], "write --fps"),
        (["-framerate=24", "-q"], "write --fps"),
        (["-frames:v", "100"], "write --duration with an f"),
        (["-vframes", "100"], "write --duration with an f"),
        (["-filter:v", "hue"], "write --filter"),
        (["-filter_complex", "[0]hue"], "write --filter"),
        (["-f", "matroska"], "write --format matroska"),
        (["-f", "null"], "write null:"),
        (
            ["-field_order", "tt"],
            "so that -field_order ends in --filter ield_order",
        ),
        (["--output", "x.mp4"], "the output is the last name"),
        (["-hwaccel", "cuda"], "write --decoder nvdec"),
        (["-hwaccel_device", "0"], "write --device"),
        (["-movflags", "faststart"], "--encoder-option movflags="),
        (["-g", "25"], "--encoder-option g=25"),
        (["-c", "copy"], "write --encoder for the picture"),
        (["-overwrite", "-q"], "write --overwrite"),
        (["--ss", "5"], "write --start"),
        (["--to", "5"], "write --end"),
        (["--from", "5"], "write --start"),
        (["--an", "-q"], "write --no-audio"),
        (["--resume", "-q"], "write --skip-existing"),
        (["--audio", "aac"], "--audio-encoder to encode it"),
        (["--rate", "25"], "write --fps"),
        (["--crop=8x8", "-q"], "frames keep their size"),
        (["--sigma", "2"], "gaussian:sigma=2"),
        (["--force", "-q"], "write --overwrite"),
        (["--gpu", "-q"], "write --engine cuda"),
        (["--roi", "8x8"], "write --region"),
        (["--qiuet", "-q"], "a similar argument exists: '--quiet'"),
        (["--strits", "-q"], "a similar argument exists: '--strict'"),
        (["-v", "error"], "-v takes no level"),
    ] {
        let said = filter(2, &[&[CLIP, "null:"][..], &words].concat());
        assert!(said.contains(hint), "{words:?}: {said}");
        assert!(!said.contains("as a value"), "{words:?}: {said}");
    }
}

/// The card by its other names, wherever an option takes it: there is none, or it works.
#[test]
fn a_card_has_other_names() {
    for name in ["gpu", "nvidia", "cuda"] {
        for arguments in [
            &["filter", CLIP, "null:", "--filter", "soft", "--engine"][..],
            &["bench", "pipeline", CLIP, "--filter", "soft", "--engine"],
            &["bench", "kernels", "--html", "/none/page.html", "--engines"],
            &["verify", "--quick", "--simd", "portable", "--engine"],
            &["filter", "missing.mkv", "null:", "--filter", "soft", "--decoder"],
        ] {
            let output = framepipe(&[arguments, &[name]].concat());
            let said = text(&output.stderr);
            assert!(!said.contains("invalid value"), "{arguments:?} {name}: {said}");
        }
    }
}

/// Words of which a letter asks for the help or the version, unknown ones, and ones that another command has.
#[test]
fn words_of_other_programs_are_named_as_they_are_typed() {
    for (command, words, name, tip) in [
        (
            "filter",
            &["-hls_time", "5"][..],
            "-hls_time",
            Some("--help shows"),
        ),
        (
            "filter",
            &["-movflags=faststart"],
            "-movflags",
            Some("write --encoder-option"),
        ),
        ("filter", &["-metadata", "a=b"], "-metadata", None),
        ("filter", &["-map_metadata", "-1"], "-map_metadata", None),
        ("filter", &["-qb:a", "128k"], "-qb:a", None),
        ("filter", &["-s", "64x48"], "-s", None),
        ("filter", &["--bogus"], "--bogus", None),
        ("plan", &["-hwaccel", "cuda"], "-hwaccel", Some("leave it out")),
        ("diff", &["-hwaccel", "cuda"], "-hwaccel", Some("leave it out")),
        ("diff", &["-hide_banner"], "-hide_banner", Some("leave it out")),
        (
            "diff",
            &["-lavfi", "ssim"],
            "-lavfi",
            Some("are printed by themselves"),
        ),
        (
            "diff",
            &["-threads", "2"],
            "-threads",
            Some("write --decoder-threads or --encoder"),
        ),
        ("diff", &["-i"], "-i", Some("names stand without it")),
        ("preview", &["-ss", "5"], "-ss", Some("preview in.mp4 0:05")),
        ("preview", &["-t", "5"], "-t", None),
        ("preview", &["-threads", "2"], "-threads", Some("write --threads")),
        ("join", &["-ss", "5"], "-ss", None),
        (
            "plan",
            &["--engine", "gpu"],
            "--engine",
            Some("framepipe part --engine"),
        ),
    ] {
        let names: &[&str] = match command {
            "filter" => &[CLIP, "null:", "--filter", "soft"],
            "diff" => &[CLIP, CLIP],
            "join" => &["job"],
            _ => &[CLIP],
        };
        let before = [&words[..1], &[command], names].concat();
        let behind = [&[command], names, words].concat();
        for (place, arguments) in [(0, before), (1, behind)] {
            let output = framepipe(&arguments);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            // Before the command its own options are unknown, too, and -q is none of the program.
            if place == 1 || name.starts_with("-h") {
                let sentence = format!("unexpected argument '{name}' found");
                assert!(said.contains(&sentence), "{arguments:?}: {said}");
            }
            if place == 1 {
                match tip {
                    Some(tip) => assert!(said.contains(tip), "{arguments:?}: {said}"),
                    None => assert!(!said.contains("tip:"), "{arguments:?}: {said}"),
                }
            }
        }
    }
    let output = framepipe(&["-Vsync", "0", "filter"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    // What asks for the help or the version gets it.
    for words in [
        &["filter", "-qh"][..],
        &["-hv"],
        &["-V"],
        &["filter", "--help", "-hwaccel"],
    ] {
        stdout(words);
    }
    let said = text(&framepipe(&["diff", "-v", "error", CLIP, CLIP]).stderr);
    assert!(said.contains("-v takes no level"), "{said}");
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
        (&out, &["--pixel-format", "yuv420"], "did you mean 'yuv420p'?"),
        (
            &name("none/out.mp4"),
            &[],
            "out.mp4: No such file or directory (os error 2); make the folder",
        ),
        (&out, &["--encoder", "libx264", "--preset", "hasty"], "hasty"),
        (&out, &["--preset", "hasty"], "hasty"),
        (&out, &["--quality", "1000"], "use 0 to 51"),
        (&out, &["--encoder", "libx265", "--quality", "60"], "use 0 to 51"),
        (&out, &["--encoder", "mpeg4", "--quality", "0"], "use 1 to 31"),
        (
            &out,
            &["--encoder-option", "x264-params=keyin=5"],
            "libx264 refuses keyin in x264-params",
        ),
        (
            &out,
            &[
                "--encoder",
                "libx265",
                "--encoder-option",
                "x265-params=bframes=0:nosuch=3",
            ],
            "libx265 refuses nosuch in x265-params",
        ),
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
    let webm = name("out.webm");
    for (output, options, words) in [
        (&webm, &["--quality", "70"][..], "use 0 to 63, lower is better"),
        (&webm, &["--preset", "veryfast"], "are numbers (cpu-used)"),
        (&out, &["--preset", "fastt"], "did you mean 'fast'?"),
        (&out, &["--preset", "11"], "has no preset '11'"),
    ] {
        let said = filter(1, &[&[CLIP, output][..], options].concat());
        assert!(said.contains(words), "{options:?}: {said}");
        // Nothing of the encoder's own.
        assert!(
            !said.contains("x264 [") && !said.contains("out of range:"),
            "{said}"
        );
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

/// A clip with sound, in a folder.
fn sounding_clip(folder: &Path) -> String {
    let clip = folder.join("clip.mkv").to_str().unwrap().to_owned();
    let sources = [
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:d=0.2",
        "-f",
        "lavfi",
        "-i",
        "sine=d=0.2",
    ];
    ffmpeg(&[&sources[..], &["-c:v", "libx264", "-c:a", "aac", &clip]].concat());
    clip
}

/// A folder with a still that states its resolution; the folder, and the still.
fn folder_of_a_still(folder: &Path) -> (String, String) {
    let stills = folder.join("stills").to_str().unwrap().to_owned();
    fs::create_dir(&stills).unwrap();
    let still = format!("{stills}/a.png");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48",
        "-frames:v",
        "1",
        "-dpi",
        "300",
        &still,
    ]);
    (stills, still)
}

#[test]
fn options_without_effect_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (clip, out) = (sounding_clip(folder.path()), name("out.mp4"));
    let (stills, _) = folder_of_a_still(folder.path());
    let (to_folder, missing) = (name("to/"), name("nofolder/"));
    for (code, arguments, words) in [
        (
            2,
            &[&clip[..], &out, "--quality", "20", "--encoder-option", "crf=30"][..],
            "--quality and --encoder-option crf=30 set the same",
        ),
        (
            2,
            &[&clip, &out, "--preset", "fast", "--encoder-option", "preset=slow"],
            "--preset and",
        ),
        (
            1,
            &[&clip, &out, "--quality", "20", "--encoder-option", "b=1M"],
            "--quality and --encoder-option b=1M each choose the quality of libx264",
        ),
        (
            2,
            &[&clip, &out, "--no-audio", "--audio-encoder", "aac"],
            "leaves all sound out",
        ),
        (
            2,
            &[&clip, &out, "--streams", "video", "--audio-encoder", "aac"],
            "leaves all sound out",
        ),
        (
            1,
            &[&clip, &out, "--no-audio", "--streams", "1"],
            "names stream 1, which is sound",
        ),
        (
            2,
            &[&clip, "null:", "--pixel-format", "rgb24"],
            "null: keeps nothing",
        ),
        (
            2,
            &[&clip, &out, "--workers", "2"],
            "--workers is for image files",
        ),
        (
            2,
            &[&clip, &out, "--decoder-memory", "1G", "--decoder", "cpu"],
            "--decoder-memory is for frames of several",
        ),
        (
            2,
            &[&stills, &to_folder, "--start-number", "100"],
            "keep their own names",
        ),
        (1, &[&missing, &out, "--fps", "25"], "No such file"),
        (1, &[&missing, &out, "--frames", "1-3"], "No such file"),
        (1, &[&missing, &to_folder, "--skip-existing"], "o such file"),
    ] {
        let said = filter(code, arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let said = filter(0, &[&clip, "null:", "--decoder", "cpu", "--decoders", "3"]);
    assert!(said.contains(", by one decoder: it has one stretch"), "{said}");
    // The card's options without a card; where there is one, it works.
    let output = framepipe(&["filter", CLIP, "null:", "--filter", "soft", "--devices", "all"]);
    let said = text(&output.stderr);
    assert!(
        output.status.success() || said.contains("option of the cuda engine"),
        "{said}"
    );
    // A comparison has no output unless it is named.
    let output = framepipe(&["diff", CLIP, CLIP, "--preset", "foo"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--preset is about the differences as pictures"));
}

#[test]
fn what_is_left_out_of_a_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let clip = sounding_clip(folder.path());
    let (stills, still) = folder_of_a_still(folder.path());
    let (out, to_folder) = (name("out.mp4"), name("to/"));
    // What no video says, and what is not there.
    let said = filter(0, &[&still, &out, "-y", "--fps", "25", "--background", "red"]);
    assert!(said.contains("files of stills alone hold that"), "{said}");
    assert!(!said.contains("alpha laid over"), "{said}");
    // Stills and videos in one folder.
    fs::copy(&clip, format!("{stills}/b.mkv")).unwrap();
    let said = filter(0, &[&stills, &to_folder]);
    assert!(
        said.contains("warning: ") && said.contains("which alone are filtered") && said.contains("b.mkv"),
        "{said}"
    );
    assert!(filter(1, &[&stills, &to_folder, "-y", "--strict"]).contains("b.mkv"));
    // An animation among stills is named once.
    fs::write(format!("{stills}/c.gif"), "GIF89a").unwrap();
    let said = filter(0, &[&stills, &to_folder, "-y"]);
    assert_eq!(said.matches("c.gif").count(), 1, "{said}");
    // Kinds of still are no containers.
    for (output, options, words) in [
        ("a.pbm", &[][..], "stills end in .png, .tif, .pgm"),
        ("new/", &["--format", "png"], "new/%04d.png' for such files"),
        ("new/", &["--format", "ico"], "new/%04d.ico' for such files"),
        ("n%d.png", &["--format", "png"], "end the name in .png"),
    ] {
        let output = format!("{stills}/{output}");
        let said = filter(1, &[&[&stills[..], &output, "-y"][..], options].concat());
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn outputs_of_pictures_alone_have_no_room_for_sound() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let clip = sounding_clip(folder.path());
    let raw = format!("raw:{}", name("a.raw"));
    for to in [raw, name("a.y4m"), name("%03d.png")] {
        let run = [clip.as_str(), &to, "--frames", "1", "-y"];
        let said = filter(0, &run);
        assert!(
            said.contains("warning: left out of") && said.contains("stream 1 (audio, aac)"),
            "{said}"
        );
        assert!(filter(1, &[&run[..], &["--strict"]].concat()).contains("stream 1 (audio, aac)"));
        let said = filter(0, &[&run[..], &["--strict", "--streams", "video"]].concat());
        assert!(!said.contains("left out of"), "{said}");
    }
}

#[test]
fn the_log_of_the_environment_and_the_explanation_go_together() {
    let run = |variable: &str| {
        let arguments = ["filter", CLIP, "null:", "--filter", "soft", "-q", "--explain"];
        let mut command = Command::new(PROGRAM);
        let output = command
            .args(arguments)
            .env("RUST_LOG", variable)
            .output()
            .unwrap();
        assert!(output.status.success());
        text(&output.stderr)
    };
    assert!(run("warn").contains("cpu: "), "{}", run("warn"));
    let nonsense = run("framepipe=loudly");
    assert!(
        nonsense.contains("warning: RUST_LOG is not understood") && nonsense.contains("cpu: "),
        "{nonsense}"
    );
}

#[test]
fn an_encoder_with_a_log_of_its_own_is_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mkv").to_str().unwrap().to_owned();
    let output = framepipe(&[
        "filter",
        "synthetic:96x96:yuv420p:25:4",
        &out,
        "-f",
        "soft",
        "-qq",
        "--encoder",
        "av1",
    ]);
    let said = text(&output.stderr);
    assert!(said.is_empty() || said.contains("no video encoder"), "{said}");
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
    let help = stdout(&["preview", "--help"]);
    let (examples, usage) = (help.find("Examples:"), help.find("Usage: framepipe preview"));
    assert!(examples.is_some() && examples < usage, "{help}");
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
        assert!(script.contains("die-with-parent") && !script.contains("keep-warnings"));
    }
    let script = stdout(&["completions", "bash"]);
    let (_, masks) = script.split_once("framepipe__subcmd__masks)").unwrap();
    let offers = masks.lines().find(|line| line.contains("opts=")).unwrap();
    assert!(
        offers.contains(" gaussian ") && offers.contains(" sobel "),
        "{offers}"
    );
    assert!(!stdout(&["masks", "-h"]).contains("possible values"));
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

/// Whatever the program's file is called.
#[test]
fn usages_name_the_program_as_the_examples_do() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("fp");
    std::os::unix::fs::symlink(PROGRAM, &other).unwrap();
    for command in ["filter", "preview", "diff", "verify", "bench", "masks"] {
        let output = Command::new(&other).args([command, "--help"]).output().unwrap();
        let help = text(&output.stdout);
        assert!(help.contains(&format!("Usage: framepipe {command}")), "{help}");
    }
    let output = Command::new(&other).args(["diff", "a"]).output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("Usage: framepipe diff"), "{said}");
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
