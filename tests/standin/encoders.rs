//! Results that stay on the card for its encoder: on a stand-in for NVIDIA's encoding library, which writes
//! H.264 without loss, so that FFmpeg decodes the very samples that were filtered.

use super::standin::{Library, StandIn, compiler};
use super::{Ended, PROGRAM, Report, Runs, ended};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The texts of the encoding library.
const LIBRARY: [&str; 2] = ["encode.cpp", "h264.cpp"];

/// What is missing, as the end of a sentence, and whether it can be installed; or nothing.
fn missing() -> Option<(&'static str, bool)> {
    let succeeds = |command: &mut Command| {
        let quiet = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    let mut compile = Command::new(compiler()?);
    let header = ["-fsyntax-only", "-include", "ffnvcodec/nvEncodeAPI.h"];
    if !succeeds(compile.args(header).args(["-x", "c++", "/dev/null"])) {
        return Some(("there is no ffnvcodec/nvEncodeAPI.h (libffmpeg-nvenc-dev)", true));
    }
    let listed = Command::new("ffmpeg").args(["-v", "error", "-encoders"]).output();
    let listed = listed.unwrap().stdout;
    let has_encoder = String::from_utf8_lossy(&listed).contains("h264_nvenc");
    (!has_encoder).then_some(("FFmpeg was built without h264_nvenc", false))
}

/// The folder with the encoding library beside the driver, under the names by which FFmpeg looks for them;
/// `None` where it cannot be built, which one line says. In CI what can be installed must be there.
fn library(stand_in: &StandIn) -> Option<&'static PathBuf> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if let Some((missing, can_be_had)) = missing() {
            let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
            assert!(
                !(in_ci && can_be_had),
                "in CI the stand-in for an encoder must be built, but {missing}"
            );
            // Straight to the stream, since the harness shows what a passing test prints to nobody.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: the tests on a stand-in for a card's encoder: {missing}"
            );
            return None;
        }
        let folder = stand_in.libraries.join("encoders");
        fs::create_dir_all(&folder).unwrap();
        let driver = folder.join("libcuda.so.1");
        if !driver.exists() {
            // Another process may be as far.
            let _ = symlink(stand_in.libraries.join("libcuda.so"), &driver);
        }
        if let Some(library) = Library::begin(folder.join("libnvidia-encode.so.1"), &LIBRARY) {
            library.end();
        }
        Some(folder)
    });
    built.as_ref()
}

/// Runs on a card with an encoder.
struct Encoding {
    runs: Runs,
    library: &'static PathBuf,
}

impl Encoding {
    /// `None` where there is no stand-in.
    fn new() -> Option<Encoding> {
        let runs = Runs::new()?;
        let library = library(runs.stand_in)?;
        Some(Encoding { runs, library })
    }

    fn path(&self, name: &str) -> String {
        self.runs.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// framepipe on a card with an encoder.
    fn command(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        self.runs
            .stand_in
            .with(&mut command, &self.runs.folder.path().join("kernels"));
        let mut envs = command.get_envs();
        let others = envs.find_map(|(name, value)| value.filter(|_| name == "LD_LIBRARY_PATH"));
        let mut folders = self.library.clone().into_os_string();
        folders.push(":");
        folders.push(others.unwrap());
        command.env("LD_LIBRARY_PATH", folders);
        for (name, value) in settings {
            command.env(format!("FRAMEPIPE_STANDIN_{name}"), value);
        }
        command
    }

    /// Filters `input` on the card into `output`, and gives the stand-in's report.
    fn run(&self, input: &str, output: &str, more: &[&str], settings: &[(&str, &str)]) -> (Ended, Report) {
        let path = format!("{output}.report");
        let arguments = [&["filter", input, output], &FILTER[..], &ON_CARD, more].concat();
        let mut command = self.command(&arguments, settings);
        command.env("FRAMEPIPE_STANDIN_REPORT", &path);
        let ended = ended(command);
        (ended, Report::read(Path::new(&path)))
    }

    /// Filters `input` on the processor into `output`, without loss, and gives the samples.
    fn right(&self, input: &str, output: &str, more: &[&str]) -> Vec<u8> {
        let on_cpu = [
            "--engine",
            "cpu",
            "--encoder",
            "ffv1",
            "--pixel-format",
            "yuv420p",
        ];
        let ended = self.runs.run(
            &[&["filter", input, output], &FILTER[..], &on_cpu, more].concat(),
            &[],
        );
        assert_eq!(ended.code, Some(0), "{input}: {}", ended.said);
        decoded(output)
    }
}

const FILTER: [&str; 4] = ["--filter", "sharpen", "--explain", "--overwrite"];
const ON_CARD: [&str; 4] = ["--engine", "cuda", "--encoder", "h264_nvenc"];

/// The samples of a video as FFmpeg decodes them.
fn decoded(path: &str) -> Vec<u8> {
    let done = Command::new("ffmpeg")
        .args(["-v", "error", "-i", path])
        .args(["-f", "rawvideo", "-"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{path}: {said}");
    assert!(!done.stdout.is_empty(), "{path} has no frame");
    done.stdout
}

/// A stream whose frames are of limited, of full, and of limited range, four each.
fn mixed_ranges(folder: &Path) -> String {
    let part = |range: &str| {
        let done = Command::new("ffmpeg")
            .args([
                "-v",
                "error",
                "-f",
                "lavfi",
                "-i",
                "testsrc2=size=98x70:rate=25:duration=0.16",
            ])
            .args([
                "-pix_fmt",
                "yuv420p",
                "-colorspace",
                "bt709",
                "-color_range",
                range,
                "-c:v",
                "libx264",
            ])
            .args(["-preset", "ultrafast", "-f", "h264", "-"])
            .output()
            .unwrap();
        assert!(done.status.success() && !done.stdout.is_empty());
        done.stdout
    };
    let (limited, full) = (part("tv"), part("pc"));
    let path = folder.join("mixed.h264");
    fs::write(&path, [&limited[..], &full, &limited].concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn results_stay_on_the_card_for_its_encoder() {
    let Some(encoding) = Encoding::new() else { return };
    let film = encoding.path("film.mkv");
    encoding.right("synthetic:98x70:yuv420p:25:9", &film, &[]);
    let mixed = mixed_ranges(encoding.runs.folder.path());
    let (right, output) = (encoding.path("right.mkv"), encoding.path("out.mkv"));
    // After an even number of steps the result lies where the slot's next frame is uploaded to.
    let second = ["--filter", "box:size=5"];
    // The last column counts the frames that the processor changes.
    for (input, more, seed, frames, changed) in [
        ("synthetic:66x50:yuv420p:25:24", &second[..], "2", 24, 0),
        ("synthetic:96x64:nv12:25:1", &[], "7", 1, 0),
        (film.as_str(), &[], "3", 9, 0),
        (mixed.as_str(), &[], "6", 12, 4),
    ] {
        let expected = encoding.right(input, &right, more);
        let (Ended { code, said, .. }, report) = encoding.run(input, &output, more, &[("SEED", seed)]);
        assert_eq!(code, Some(0), "{input}: {said}");
        assert!(decoded(&output) == expected, "{input}: the frames differ");
        for part in [
            "encode: results stay on the card, where h264_nvenc reads them",
            ", results stay on the card for the encoder",
            " in matroska, read on the card",
        ] {
            assert!(said.contains(part), "{input}: {part}: {said}");
        }
        assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
        assert_eq!(report.calls["nvEncMapInputResource"], frames, "{input}");
        let fetched = report.calls.get("cuMemcpyDtoH_v2").copied().unwrap_or(0);
        assert_eq!(fetched, changed, "{input}");
        assert_eq!(report.moved["to-the-host"] == 0, changed == 0, "{input}");
    }
    // Without its wait a copy is not there when the surface is encoded.
    let expected = encoding.right(&film, &right, &[]);
    let settings = [("SEED", "0"), ("IGNORE", "cuStreamSynchronize")];
    let (Ended { code, said, .. }, _) = encoding.run(&film, &output, &[], &settings);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        decoded(&output) != expected,
        "nobody noticed that copies were not waited for"
    );
}

#[test]
fn what_cannot_stay_on_the_card_goes_through_the_hosts_memory() {
    let Some(encoding) = Encoding::new() else { return };
    let (right, output) = (encoding.path("right.mkv"), encoding.path("out.mkv"));
    let (hashes, clip) = (encoding.path("hashes"), "synthetic:66x52:yuv420p:25:5");
    let hashes = ["--frame-hashes", &hashes];
    let cards = ["--devices", "0,1"];
    for (input, more, why) in [
        (clip, &[][..], ""),
        (clip, &cards, "several cards filter frames in turn"),
        (clip, &["--no-overlap"], "--no-overlap downloads each result"),
        (
            clip,
            &hashes,
            "something is done with each frame in the host's memory first",
        ),
        (
            clip,
            &["--fields"],
            "fields are put together in the host's memory",
        ),
        (
            clip,
            &["--compare", "side"],
            "results are made in the host's memory",
        ),
        (
            clip,
            &["--encoder-option", "gpu=0"],
            "the option gpu names the encoder's card",
        ),
        (
            "synthetic:66x50:gray:25:5",
            &[],
            "the processor converts gray to yuv420p",
        ),
    ] {
        let more = [more, &["--dry-run"]].concat();
        let (Ended { code, said, out }, report) = encoding.run(input, &output, &more, &[("CARDS", "2")]);
        assert_eq!(code, Some(0), "{why}: {said}");
        let through = format!("encode: results go to h264_nvenc through the host's memory, because {why}");
        let stays = "results stay on the card for the encoder";
        assert_eq!(said.contains(&through), !why.is_empty(), "{why}: {said}");
        assert_eq!(
            String::from_utf8_lossy(&out).contains(stays),
            why.is_empty(),
            "{why}"
        );
        assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
    }
    let expected = encoding.right(clip, &right, &[]);
    let (Ended { code, said, .. }, report) = encoding.run(clip, &output, &cards, &[("CARDS", "2")]);
    assert_eq!(code, Some(0), "{said}");
    assert!(decoded(&output) == expected, "the frames of two cards differ");
    assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
    assert!(report.moved["to-the-host"] > 0);
    // With one engine for several outputs, each is given the results where it wants them.
    let inputs = ["yuv420p", "gray", "nv12"].map(|format| {
        let path = encoding.path(&format!("{format}.mkv"));
        let clip = format!("synthetic:66x50:{format}:25:3");
        let made = [
            "--filter",
            "identity",
            "--engine",
            "none",
            "--encoder",
            "rawvideo",
        ];
        let ended = encoding
            .runs
            .run(&[&["filter", &clip, &path], &made[..]].concat(), &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        path
    });
    let [first, second, third] = &inputs;
    let folder = encoding.path("out/");
    let report = encoding.path("several.report");
    let names = ["filter", first, second, third, &folder];
    let command = encoding.command(&[&names, &FILTER[..], &ON_CARD].concat(), &[("REPORT", &report)]);
    let Ended { code, said, .. } = ended(command);
    assert_eq!(code, Some(0), "{said}");
    for (input, name) in inputs.iter().zip(["yuv420p", "gray", "nv12"]) {
        let expected = encoding.right(input, &right, &[]);
        assert!(
            decoded(&format!("{folder}{name}.mkv")) == expected,
            "{name}: the frames differ"
        );
    }
    let report = Report::read(Path::new(&report));
    assert!(report.is_clean(), "{:?} {:?}", report.left, report.complaints);
    assert_eq!(report.calls["nvEncMapInputResource"], 6, "{said}");
}

#[test]
fn whatever_the_encoder_refuses_is_one_sentence_and_no_file() {
    let Some(encoding) = Encoding::new() else { return };
    let (right, output) = (encoding.path("right.mkv"), encoding.path("out.mkv"));
    let mixed = mixed_ranges(encoding.runs.folder.path());
    let clip = "synthetic:66x50:yuv420p:25:5";
    let expected = encoding.right(clip, &right, &[]);
    // The first session tells whether there is an encoder, the fifth whether it takes results on the card,
    // and the eighth is that of the run.
    let sessions = [1, 5, 8].map(|n| (clip, format!("nvEncOpenEncodeSessionEx:{n}:1"), ""));
    let later = [
        (clip, "nvEncRegisterResource:2:23", "register an input HW frame"),
        (
            clip,
            "nvEncMapInputResource:3:16",
            "Error mapping an input resource",
        ),
        (
            clip,
            "cuMemcpy2DAsync_v2:5:999",
            "copying a plane on the CUDA device",
        ),
        (
            mixed.as_str(),
            "cuMemcpyDtoH_v2:2:999",
            "fetching a frame from the CUDA device",
        ),
    ];
    let later = later.map(|(input, fail, part)| (input, fail.to_owned(), part));
    let (mut refused, mut through_host) = (0, 0);
    for (input, fail, part) in sessions.into_iter().chain(later) {
        let (Ended { code, said, .. }, report) = encoding.run(input, &output, &[], &[("FAIL", &fail)]);
        assert!(
            report.is_clean(),
            "{fail}: {:?} {:?}",
            report.left,
            report.complaints
        );
        if code == Some(0) && part.is_empty() {
            assert!(decoded(&output) == expected, "{fail}: the frames differ");
            through_host += u32::from(said.contains("through the host's memory, because "));
            fs::remove_file(&output).unwrap();
            continue;
        }
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(code == Some(1) && errors.len() == 1, "{fail}: {said}");
        assert!(
            errors[0].contains("out.mkv: ") && errors[0].contains(part),
            "{fail}: {said}"
        );
        assert!(
            !said.contains("panicked") && !fs::exists(&output).unwrap(),
            "{fail}: {said}"
        );
        refused += u32::from(errors[0].contains("NVENC"));
    }
    assert!(refused > 0 && through_host > 0, "{refused} {through_host}");
}
