//! The program from the outside: exit codes, bad input, pipes, interruption, files that appear only when
//! whole.

use crate::common::{PROGRAM, ffmpeg, framepipe, said, send, text};
use framepipe::filter::Border;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const BLUR: [&str; 2] = ["--filter", "soft"];

fn sample(name: &str) -> String {
    format!("{}/samples/{name}", env!("CARGO_MANIFEST_DIR"))
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
    /// The names of everything in the folder, hidden files too.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Waits for the end; a hang fails the test.
fn wait(mut child: Child) -> Output {
    let began = Instant::now();
    // Both pipes are drained meanwhile, so that the child never waits for room.
    let drain = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(&mut bytes).unwrap();
            }
            bytes
        })
    };
    let stdout = drain(child.stdout.take().map(|p| Box::new(p) as Box<dyn Read + Send>));
    let stderr = drain(child.stderr.take().map(|p| Box::new(p) as Box<dyn Read + Send>));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("framepipe hangs");
        }
        sleep(Duration::from_millis(10));
    };
    Output {
        status,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn run(arguments: &[&str]) -> Output {
    wait(framepipe(arguments).spawn().unwrap())
}

/// Runs `framepipe filter` with a filter added and expects this exit code; gives what it said on stderr.
fn filter(code: i32, arguments: &[&str]) -> String {
    let mut all = vec!["filter"];
    all.extend(arguments);
    if !arguments.contains(&"--filter") {
        all.extend(BLUR);
    }
    let output = run(&all);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{said}");
    assert!(!said.contains("panicked"), "{said}");
    if code == 1 || code == 2 {
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
    said
}

fn probe(path: &str, entries: &str) -> String {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-count_frames", "-select_streams", "v:0"])
        .args(["-show_entries", entries, "-of", "csv=p=0", path])
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    text(&output.stdout).trim().trim_end_matches(',').to_owned()
}

#[test]
fn a_video_is_filtered_and_the_summary_and_report_say_how() {
    let folder = Folder::new();
    let (out, report) = (folder.name("out.mkv"), folder.name("report.json"));
    let said = filter(
        0,
        &[
            &sample("clip-odd.mp4"),
            &out,
            "--encoder",
            "ffv1",
            "--report",
            &report,
            "--stats",
        ],
    );
    assert_eq!(
        probe(&out, "stream=nb_read_frames"),
        probe(&sample("clip-odd.mp4"), "stream=nb_read_frames")
    );
    for word in ["engine: ", "decode", "encode", "frames/s", "limit"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    for line in said
        .lines()
        .filter(|l| l.starts_with("decode") || l.starts_with("engine  "))
    {
        assert!(line.len() <= 100, "{line}");
    }
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(json["schema"], "framepipe-report");
    assert_eq!(json["stages"][2]["frames"], json["frames"]);
    assert_eq!(json["task"]["filters"][0], "soft");
    assert_eq!(folder.names(), ["out.mkv", "report.json"]);
}

#[test]
fn the_summary_is_three_lines_and_the_table_is_asked_for() {
    let folder = Folder::new();
    let clip = "synthetic:320x240:yuv420p:25:40";
    let out = folder.name("out.mkv");
    let slow = [
        "--encoder",
        "libx264",
        "--preset",
        "placebo",
        "--filter",
        "mask:rows=1",
    ];
    let said = filter(0, &[&[clip, &out][..], &slow].concat());
    let lines: Vec<&str> = said.lines().collect();
    // The engine's line comes before the run.
    assert_eq!(lines.len(), 4, "{said}");
    assert!(
        lines[2].starts_with("output  ") && lines[2].contains("libx264"),
        "{said}"
    );
    assert!(
        lines[1].starts_with("input  ") && lines[1].contains("320x240"),
        "{said}"
    );
    assert!(
        lines[3].starts_with("40 frames in ") && lines[3].contains("; encoding limits, "),
        "{said}"
    );
    let kilobytes = (fs::metadata(&out).unwrap().len() as f64 / 1000.0).round();
    assert!(lines[3].contains(&format!("x), {kilobytes} kB; ")), "{said}");
    assert!(lines[3].ends_with("% busy: try --preset veryfast"), "{said}");
    // The same advice in the figures and on the page.
    let (page, other) = (folder.name("run.html"), folder.name("other.mkv"));
    let told = [clip, &other, "--stats", "--report", &page];
    let said = filter(0, &[&told[..], &slow].concat());
    assert!(said.contains("of the time; try --preset veryfast\n"), "{said}");
    let shown = fs::read_to_string(&page).unwrap();
    assert!(shown.contains("of the time; try --preset veryfast</p>"));
    for option in ["--stats", "-v"] {
        let said = filter(0, &[clip, "null:", option]);
        assert!(said.contains("\nstage ") && said.contains("\nin all "), "{said}");
    }
    assert_eq!(filter(0, &[clip, "null:", "-q"]), "");
    let said = filter(0, &[clip, "null:", "-q", "--stats"]);
    assert!(said.contains("\nstage ") && !said.contains("engine: "), "{said}");
}

#[test]
fn progress_is_json_for_programs() {
    let folder = Folder::new();
    let file = folder.name("progress.jsonl");
    let clip = "synthetic:320x240:yuv420p:25:40";
    // A quiet run says nothing else.
    let line = filter(0, &[clip, "null:", "-q", "--progress", "json"]);
    let last: serde_json::Value = serde_json::from_str(line.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["state"], &last["schema"]),
        (&"ended".into(), &"framepipe-progress".into())
    );
    assert_eq!(
        (&last["frames"], &last["frames_in_all"]),
        (&40.into(), &40.into())
    );
    assert_eq!(last["left_seconds"], serde_json::Value::Null);
    // With what encoder and container hold back until the end.
    for name in ["out.mp4", "out.mkv", "out.avi", "out.y4m"] {
        let out = folder.name(name);
        let said = filter(
            0,
            &["synthetic:64x48:yuv420p:25:9", &out, "-q", "--progress", "json"],
        );
        let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert_eq!(last["bytes"], fs::metadata(&out).unwrap().len(), "{name}: {said}");
    }
    // Nothing is written to null:, neither while it runs nor in all.
    assert_eq!(last["bytes"], serde_json::Value::Null);
    let one = filter(0, &["synthetic:16x16:gray:25:1", "null:", "--stats"]);
    assert!(
        one.contains("\n1 frame in ") && one.contains("frame buffers 1.2 KiB"),
        "{one}"
    );
    // An input that fails has its last object, too.
    let missing = folder.name("missing.mkv");
    let said = filter(1, &[&missing, "null:", "--progress", "json"]);
    let (object, error) = said.split_once('\n').unwrap();
    let object: serde_json::Value = serde_json::from_str(object).unwrap();
    assert_eq!(
        (&object["state"], &object["frames"]),
        (&"ended".into(), &0.into())
    );
    assert!(
        error.starts_with("error: ") && error.lines().count() == 1,
        "{said}"
    );
    // What is in the file stays, whether it is shared from its end or from a place in the middle.
    let run = format!("{PROGRAM} filter {clip} null: -q --filter soft --progress json:3");
    let command = format!("echo first >{file}; {run} 3>>{file} && {{ echo second >&3; {run}; }} 3>>{file}");
    let done = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(
        done.status.success() && done.stderr.is_empty(),
        "{}",
        text(&done.stderr)
    );
    let lines = fs::read_to_string(&file).unwrap();
    let ends = lines.lines().map(|line| line.contains("\"state\":\"ended\""));
    assert_eq!(ends.filter(|&is_end| is_end).count(), 2, "{lines}");
    assert!(
        lines.starts_with("first\n") && lines.contains("\nsecond\n"),
        "{lines}"
    );
    // Neither one that is open for reading alone nor one that only the program itself has opened.
    for command in [format!("exec {run} 3<{file}"), format!("exec {run} 3>&-")] {
        let done = Command::new("sh").args(["-c", &command]).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    }
    // A socket, as parents other than shells hand over.
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let arguments = [
        "filter",
        clip,
        "null:",
        "-q",
        "--filter",
        "soft",
        "--progress",
        "json:0",
    ];
    let child = Command::new(PROGRAM)
        .args(arguments)
        .stdin(std::os::fd::OwnedFd::from(theirs))
        .spawn();
    assert!(child.unwrap().wait().unwrap().success());
    assert!(
        std::io::read_to_string(ours)
            .unwrap()
            .contains("\"state\":\"ended\"")
    );
    assert!(filter(2, &[clip, "null:", "--progress", "json:77"]).contains("file descriptor"));
    assert!(filter(2, &[clip, "null:", "--progress", "plain"]).contains("json:FD"));
}

#[test]
fn a_dry_run_tells_the_plan_and_makes_nothing() {
    let folder = Folder::new();
    let out = folder.name("out.mkv");
    let clip = sample("clip-odd.mp4");
    let output = run(&[
        "filter",
        &clip,
        &out,
        "--filter",
        "soft",
        "--dry-run",
        "-q",
        "--encoder",
        "ffv1",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let plan = text(&output.stdout);
    for word in [
        &clip[..],
        "soft (auto, border replicate",
        "engine  cpu",
        &format!("output  {out}, ffv1"),
    ] {
        assert!(plan.contains(word), "{word}: {plan}");
    }
    filter(0, &[&clip, &folder.name("deep/sub/"), "--dry-run"]);
    assert!(folder.names().is_empty());
    assert!(filter(1, &["missing.mp4", &out, "--dry-run"]).contains("missing.mp4"));
    let still = folder.name("nowhere/a.png");
    let refused = filter(1, &["synthetic:8x8:gray:25:1", &still, "--dry-run"]);
    assert!(refused.contains("nowhere/a.png: No such file"), "{refused}");
    // What the run itself refuses before it begins is refused in the same words.
    let (there, report) = (folder.name("there.mkv"), folder.name("none/x.json"));
    fs::write(&there, "old").unwrap();
    for (output, more) in [
        (&out, &["--encoder", "nosuch"][..]),
        (&out, &["--format", "nosuch"]),
        (&out, &["--pixel-format", "nosuch"]),
        (&out, &["--quality", "99"]),
        (&out, &["--audio-encoder", "nosuch"]),
        (&out, &["--max-memory", "1K"]),
        (&out, &["--report", &report]),
        (&there, &[]),
        (&folder.name("none/out.mkv"), &[]),
    ] {
        let arguments = [&[&clip[..], output], more].concat();
        let refused = filter(1, &arguments);
        let error = |said: &str| {
            said.lines()
                .find(|line| line.starts_with("error: "))
                .map(str::to_owned)
        };
        let planned = filter(1, &[&arguments[..], &["--dry-run"]].concat());
        assert_eq!(error(&planned), error(&refused), "{more:?}");
    }
    let late = ["synthetic:16x16:gray:25:5", "null:", "--start", "9f", "--dry-run"];
    assert!(filter(1, &late).contains("no frame lies in the range"));
    assert_eq!(folder.names(), ["there.mkv"]);
}

#[test]
fn a_dry_run_says_which_counts_are_estimates() {
    let folder = Folder::new();
    // Matroska does not count its frames, MP4 does.
    for (name, range, frames) in [
        ("a.mkv", &[][..], ", about 8 frames\n"),
        ("a.mp4", &[], ", 8 frames\n"),
        ("a.mp4", &["--start", "0.1"], ", about 5 frames\n"),
        ("a.mp4", &["--start", "0.1", "--frames", "2"], ", 2 frames\n"),
    ] {
        let input = folder.name(name);
        filter(0, &["synthetic:16x16:yuv420p:25:8", &input, "-y"]);
        let plan = run(&[
            &["filter", &input, "null:", "--filter", "soft", "--dry-run"],
            range,
        ]
        .concat());
        let said = text(&plan.stdout);
        assert!(said.contains(frames), "{name} {range:?}: {said}");
    }
    // Times of frames that are made are numbers.
    let input = "synthetic:16x16:gray:25:20";
    let plan = run(&[
        "filter",
        input,
        "null:",
        "--filter",
        "soft",
        "--dry-run",
        "--start",
        "0.4",
    ]);
    assert!(
        text(&plan.stdout).contains(", 10 frames\n"),
        "{}",
        text(&plan.stdout)
    );
}

#[test]
fn a_dry_run_tries_the_first_frame() {
    let folder = Folder::new();
    let deep = sample("clip-10bit.mkv");
    let (rgba, rgb16) = (sample("still-rgba.png"), sample("still-rgb16.png"));
    let floats = folder.name("floats.exr");
    filter(0, &[&rgb16, &floats, "--pixel-format", "rgbf32", "-q"]);
    let clip = sample("clip-odd.mp4");
    let name = |name: &str| folder.name(name);
    for (input, output, more) in [
        (&rgba, name("z.jpg"), &[][..]),
        (&floats, name("z.png"), &["--strict"]),
        (&deep, name("z.mp4"), &["--strict"]),
        (&deep, name("z.y4m"), &["--strict"]),
        (&clip, name("z.mp4"), &["--encoder-option", "foo=1"]),
        (&clip, name("z.mp4"), &["--encoder-option", "x264-params=keyin=5"]),
        (&clip, name("z.mp4"), &["--streams", "9"]),
    ] {
        let arguments = [&[&input[..], &output], more].concat();
        let error = |more: &[&str]| {
            let said = filter(1, &[&arguments[..], more].concat());
            let error = said.lines().find(|line| line.starts_with("error: "));
            error.unwrap().to_owned()
        };
        assert_eq!(error(&["--dry-run"]), error(&[]), "{arguments:?}");
    }
    // Encoder, format, streams and losses are printed, and what is there stays as it is.
    let there = name("there.mp4");
    fs::write(&there, "old").unwrap();
    for (input, output, words) in [
        (
            &deep,
            &there,
            &[
                "there.mp4, libx265, crf ",
                "yuv420p10le in mp4, 1 stream copied, which exists and \
          would be replaced",
                "\nwarning: stream 2 (subtitle, subrip) is left out",
            ][..],
        ),
        (
            &sample("frames"),
            &name("new/%d.jpg"),
            &["\noutput  JPEG image files to "],
        ),
        (&clip, &"-".to_owned(), &["\noutput  y4m to standard output"]),
    ] {
        let done = run(&[&["filter", input, output, "-y", "--dry-run"][..], &BLUR].concat());
        let plan = text(&done.stdout);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        for words in words {
            assert!(plan.contains(words), "{words}: {plan}");
        }
    }
    assert_eq!(fs::read_to_string(&there).unwrap(), "old");
    assert_eq!(folder.names(), ["floats.exr", "there.mp4"]);
}

#[test]
fn a_second_interrupt_ends_an_encoder_that_looks_far_ahead() {
    let folder = Folder::new();
    let out = folder.name("out.mkv");
    let mut arguments = vec![
        "filter",
        "synthetic:640x360:yuv420p:25:0",
        &out,
        "--filter",
        "soft",
    ];
    arguments.extend([
        "--encoder",
        "libx264",
        "--preset",
        "placebo",
        "--encoder-option",
        "rc-lookahead=250",
    ]);
    arguments.extend(["--progress", "json"]);
    let child = framepipe(&arguments).spawn().unwrap();
    sleep(Duration::from_secs(4));
    send("INT", &child);
    sleep(Duration::from_millis(500));
    send("INT", &child);
    let began = Instant::now();
    let output = wait(child);
    // The look-ahead takes a minute here; one step of it cannot be cut short.
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

/// The number before `behind`, from the word's begin.
fn number_before(text: &str, behind: &str) -> f64 {
    let (before, _) = text.split_once(behind).unwrap();
    let begin = before
        .rfind(|c: char| !c.is_ascii_digit() && c != '.')
        .map_or(0, |at| at + 1);
    before[begin..].parse().unwrap()
}

#[test]
fn the_speed_goes_by_when_frames_are_shown() {
    let folder = Folder::new();
    let uneven = folder.name("uneven.mkv");
    // Eight frames at 0 and 0.04 s, 2 and 2.04 s, and so on, to 6.04 s.
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=16x16:r=25:d=8",
        "-vf",
        "select='lt(mod(n,50),2)'",
        "-fps_mode",
        "vfr",
        "-c:v",
        "ffv1",
        &uneven,
    ]);
    let report = folder.name("run.json");
    for (input, shown) in [(&*uneven, 6.08), ("synthetic:16x16:gray:25:8", 8.0 / 25.0)] {
        let said = filter(0, &[input, "null:", "-y", "--report", &report]);
        let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
        let expected = shown / json["wall_seconds"].as_f64().unwrap();
        let speed = number_before(&said, "x)");
        assert!(
            (speed / expected - 1.0).abs() < 0.02,
            "{input}: {said} {expected}"
        );
        let said = filter(0, &[input, "null:", "-q", "--progress", "json"]);
        let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        let figure = |name: &str| last[name].as_f64().unwrap();
        // Both over the same time.
        let ratio = figure("speed") / figure("frames_per_second");
        assert!((ratio / (shown / 8.0) - 1.0).abs() < 1e-6, "{input}: {said}");
    }
}

#[test]
fn a_page_and_a_trace_appear_only_when_the_run_is_done() {
    let folder = Folder::new();
    let (page, trace) = (folder.name("run.html"), folder.name("run.json"));
    let clip = sample("clip-odd.mp4");
    let arguments = [&clip, "null:", "--report", &page, "--trace", &trace];
    let figures = folder.name("figures.json");
    filter(0, &[&arguments[..], &["--report", &figures]].concat());
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&figures).unwrap()).unwrap();
    assert_eq!(json["schema"], "framepipe-report");
    assert_eq!(json["task"]["input_name"], clip);
    assert_eq!(json["task"]["output_name"], "null:");
    // Of 45 frames the 99th percentile would be the longest.
    assert!(json["end_to_end"]["p95"].is_number() && json["end_to_end"]["p99"].is_null());
    fs::remove_file(&figures).unwrap();
    let shown = fs::read_to_string(&page).unwrap();
    assert!(shown.ends_with("</html>\n"));
    for head in [
        "<title>framepipe: clip-odd.mp4 \u{2192} null: (soft)</title>",
        "<h1>framepipe: clip-odd.mp4 \u{2192} null: (soft)</h1>",
    ] {
        assert!(shown.contains(head), "{head}");
    }
    assert_eq!(shown.matches("stream 0 of ").count(), 1);
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&trace).unwrap()).unwrap();
    assert!(json["traceEvents"].as_array().unwrap().len() > 10);
    assert_eq!(folder.names(), ["run.html", "run.json"]);
    // A run that fails leaves the old ones as they are.
    fs::write(&page, "old").unwrap();
    fs::write(&trace, "old").unwrap();
    let cut = folder.name("cut.y4m");
    let whole = fs::read(sample("clip.y4m")).unwrap();
    fs::write(&cut, &whole[..whole.len() - 100]).unwrap();
    filter(1, &[&cut, "null:", "--report", &page, "--trace", &trace]);
    assert_eq!(fs::read_to_string(&page).unwrap(), "old");
    assert_eq!(fs::read_to_string(&trace).unwrap(), "old");
    assert_eq!(folder.names(), ["cut.y4m", "run.html", "run.json"]);
}

#[test]
fn quiet_says_nothing() {
    let folder = Folder::new();
    let said = filter(0, &[&sample("still-gray.png"), &folder.name("a.png"), "-q"]);
    assert_eq!(said, "");
}

#[test]
fn explain_tells_the_engine_that_was_picked() {
    let said = |more: &[&str]| {
        let mut arguments = vec![
            "filter",
            "synthetic:64x48:gray:30:2",
            "null:",
            "--filter",
            "soft",
            "--quiet",
        ];
        arguments.extend(more);
        let done = run(&arguments);
        assert_eq!(done.status.code(), Some(0));
        text(&done.stderr)
    };
    let explained = said(&["--engine", "cpu", "--threads", "1", "--explain"]);
    assert!(explained.contains("cpu: 1 thread"), "{explained}");
    let plain = said(&["--engine", "cpu", "--threads", "1"]);
    assert!(plain.is_empty(), "{plain}");
}

/// What users of FFmpeg, OpenCV and NumPy type is understood, or answered with what to type.
#[test]
fn words_of_other_programs_are_understood_or_answered() {
    let folder = Folder::new();
    let (input, out, same) = (
        sample("still-rgb.png"),
        folder.name("a.png"),
        folder.name("b.png"),
    );
    let plain = [
        "--filter",
        "gaussian:sigma=2",
        "--filter",
        "laplacian8",
        "--planes",
        "r,g,b",
    ];
    filter(0, &[&[&*input, &out, "--border", "mirror"][..], &plain].concat());
    for words in [
        [
            "--filter",
            "gblur=2,laplacian8",
            "--planes",
            "rgb",
            "--border",
            "reflect101",
        ],
        [
            "--filter",
            "Gaussian:2, laplacian8",
            "--planes",
            "RGB",
            "--border",
            "BORDER_REFLECT_101",
        ],
    ] {
        filter(0, &[&[&*input, &same, "-y"][..], &words].concat());
        assert_eq!(fs::read(&out).unwrap(), fs::read(&same).unwrap(), "{words:?}");
    }
    let answers: [(i32, &[&str], &str); 7] = [
        (2, &["--filter", "blur"], "blurs are gaussian"),
        (2, &["--filter", "boxblur=3"], "box:size=7 has a radius of 3"),
        (2, &["--filter", "median"], "no convolution"),
        (2, &["--filter", "soft,laplacain8"], "did you mean 'laplacian8'?"),
        (
            2,
            &["--filter", "soft", "--border", "reflext"],
            "did you mean 'reflect'?",
        ),
        (
            1,
            &["--filter", "soft", "--encoder", "libx246"],
            "did you mean 'libx264'?",
        ),
        (0, &["--filter", "mask=1 2 1;2 4 2;1 2 1"], "divisor=sum keeps it"),
    ];
    let clip = folder.name("clip.mkv");
    for (code, words, answer) in answers {
        let said = filter(code, &[&[&*input, &clip, "-y", "--fps", "5"][..], words].concat());
        assert!(said.contains(answer), "{words:?}: {said}");
    }
    // Without a card the answer is about the card, and not about the word.
    for engine in ["gpu", "nvidia"] {
        let done = run(&[
            "filter", &input, &out, "-y", "--filter", "soft", "--engine", engine,
        ]);
        assert_ne!(done.status.code(), Some(2), "{}", text(&done.stderr));
    }
    filter(
        0,
        &[
            &input,
            &clip,
            "-y",
            "--fps",
            "5",
            "--filter",
            "soft",
            "--encoder",
            "x264",
        ],
    );
    assert!(probe(&clip, "stream=codec_name").contains("h264"));
}

#[test]
fn explain_tells_how_the_cpu_makes_each_plane() {
    let said = |input: &str, more: &[&str]| {
        let mut arguments = vec![
            "filter",
            input,
            "null:",
            "--quiet",
            "--engine",
            "cpu",
            "--explain",
        ];
        arguments.extend(more);
        let done = run(&arguments);
        assert_eq!(done.status.code(), Some(0));
        text(&done.stderr)
    };
    let clip = "synthetic:64x48:yuv420p:30:3";
    let chain = [
        "--filter",
        "box:size=5",
        "--filter",
        "gaussian:size=3",
        "--simd",
        "portable",
    ];
    let explained = said(clip, &[&chain[..], &["--planes", "luma"]].concat());
    for line in [
        "yuv420p, 5x5 mask, plane 0: scalar: row and column filter in plain Rust",
        "yuv420p, 5x5 mask, planes 1, 2: copied or filled",
        "yuv420p, 3x3 mask, plane 0: scalar: ",
    ] {
        assert_eq!(explained.matches(line).count(), 1, "{line}: {explained}");
    }
    // By the vectors that the machine has, if any.
    let explained = said(clip, &["--filter", "box:size=5", "--algorithm", "separable"]);
    let best = explained
        .lines()
        .find(|line| line.contains("5x5 mask, planes 0, 1, 2: "));
    assert!(
        best.is_some_and(|line| line.contains("box: ") || line.contains("scalar: ")),
        "{explained}"
    );
}

#[test]
fn usage_errors_exit_with_2_and_touch_nothing() {
    let folder = Folder::new();
    let (clip, out, bare) = (sample("clip-odd.mp4"), folder.name("out.mkv"), folder.name("out"));
    let cases: &[(&[&str], &str)] = &[
        (&[&clip, &out, "--filter", "blurr"], "'blurr' is no filter"),
        (&[&clip, &out, "--filter", "mask:rows=1 1;1 1"], "2x2"),
        (&[&clip, &out, "--filter", "mask:rows=1 2 1;1 2;1 1 1"], "row 2"),
        (&[&clip, &out, "--filter", "mask:rows=1 nan 1"], "nan"),
        (&[&clip, &out, "--border", "wrapp"], "no border mode"),
        (&[&clip, &out, "--planes", "q"], "no choice of planes"),
        (&[&clip, &out, "--algorithm", "fast"], "no algorithm"),
        (&[&clip, &out, "--fps", "0"], "no frame rate"),
        (&[&clip, &out, "--fps", "30"], "--fps"),
        (
            &[&clip, &out, "--engine", "cpu", "--memory", "shared"],
            "--memory",
        ),
        (
            &[&clip, &out, "--engine", "reference", "--threads", "2"],
            "--threads",
        ),
        (
            &[&clip, &out, "--engine", "reference", "--simd", "avx2"],
            "--simd",
        ),
        (&[&clip, &out, "--simd", "sse9"], "sse9"),
        (&[&clip, &out, "--slots", "1"], "--slots"),
        (&[&clip, &out, "--block", "64x64"], "block shape"),
        (&[&clip, &out, "--report", "report.txt"], ".json or .html"),
        (&[&clip, &out, "--trace", "trace.html"], ".json"),
        (&[&clip, &out, "--trace-frames", "5"], "--trace"),
        (&[&clip, &out, "--trace", "a.json", "--trace-frames", "0"], "1.."),
        (&[&clip, "-", "--encoder", "libx264"], "--encoder"),
        (&[&clip, &out, "--max-pixels", "2^30"], "in digits"),
        (&[&clip, &bare], "out.mp4"),
        (&[&clip, &out, "--encoder-option", "tune"], "key=value"),
        (&["raw:clip.yuv", &out], "geometry"),
        (&["synthetic:0x4:gray:25:1", &out], "empty"),
        (&[&clip, &out, "--nonsense"], "--nonsense"),
    ];
    for (arguments, expected) in cases {
        let said = filter(2, arguments);
        assert!(said.to_lowercase().contains(expected), "{arguments:?}: {said}");
    }
    let missing = run(&["filter", &clip, &out]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("--filter"));
    assert!(folder.names().is_empty());
}

#[test]
fn two_things_in_one_place_are_a_usage_error() {
    let folder = Folder::new();
    let (clip, out) = (sample("clip-odd.mp4"), folder.name("out.mkv"));
    let elsewhere = Folder::new();
    let link = elsewhere.name("link.json");
    std::os::unix::fs::symlink("/dev/stdout", &link).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&[&clip, &clip], "both input and output"),
        (
            &[&clip, &out, "--trace", "a.json", "--report", "a.json"],
            "both report and trace",
        ),
        (
            &[&clip, &out, "--report", "o.json", "--frame-hashes", "o.json"],
            "both report and list of hashes",
        ),
        (
            &[&clip, &out, "--trace", "o.json", "--frame-hashes", "./o.json"],
            "both trace and list of hashes",
        ),
        (
            &[&clip, &out, "--report", "a.json", "--report", "./a.json"],
            "named twice as a report",
        ),
        (&[&clip, "a.json", "--trace", "a.json"], "both output and trace"),
        (
            &[&clip, "-", "--frame-hashes", "-"],
            "standard output is the output",
        ),
        (
            &[&clip, "raw:/dev/stdout", "--frame-hashes", "-"],
            "standard output is the output",
        ),
        (
            &[&clip, "-", "--frame-hashes", "/dev/stdout"],
            "both output and list of hashes",
        ),
        (&[&clip, "-", "--report", &link], "both output and report"),
        (
            &[&clip, "null:", "--frame-hashes", "-", "--report", &link],
            "standard output is the report",
        ),
        (
            &[&clip, "null:", "--trace", &link, "--report", &link],
            "both report and trace",
        ),
        (
            &[&clip, "-", "--progress", "json:1"],
            "standard output is the output",
        ),
        (
            &[&clip, "raw:/dev/stdout", "--progress", "json:1"],
            "standard output is the output",
        ),
        (
            &[&clip, "null:", "--report", &link, "--progress", "json:1"],
            "standard output is the report",
        ),
    ];
    for (arguments, expected) in cases {
        let said = filter(2, arguments);
        assert!(said.to_lowercase().contains(expected), "{arguments:?}: {said}");
    }
    // Both streams of a shell lead into one pipe, and the differences to where the comparison is printed.
    let into_one = format!("{PROGRAM} filter {clip} - -q --filter soft --progress json 2>&1");
    let done = Command::new("sh").args(["-c", &into_one]).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stdout).contains("--progress json: standard error is the output"));
    let pictures = run(&["diff", &clip, &clip, "-o", "raw:/dev/stdout"]);
    assert_eq!(pictures.status.code(), Some(2), "{}", text(&pictures.stderr));
    let frames = sample("frames");
    assert!(filter(2, &[&frames, &format!("{frames}/")]).contains("both input and output"));
    assert!(folder.names().is_empty());
}

#[test]
fn inputs_that_cannot_be_read_exit_with_1_and_name_the_file() {
    let folder = Folder::new();
    let out = folder.name("out.mkv");
    let empty = folder.name("empty/");
    fs::create_dir(&empty).unwrap();
    let nonsense = folder.name("nonsense.mp4");
    fs::write(&nonsense, "this is no video".repeat(100)).unwrap();
    let nothing = folder.name("nothing.mp4");
    fs::write(&nothing, "").unwrap();
    let lying = folder.name("lying.y4m");
    fs::write(&lying, "YUV4MPEG2 W64 H-3 F25:1 C420\nFRAME\n").unwrap();
    let headless = folder.name("headless.y4m");
    fs::write(&headless, "YUV4MPEG2 W64 H48 F25:1 C420jpeg\n").unwrap();
    let image = folder.name("image.png");
    fs::write(&image, "\x7fno image").unwrap();
    let before = folder.names();
    for input in [
        &folder.name("missing.mp4"),
        &folder.name("missing.png"),
        &empty,
        &nonsense,
        &nothing,
        &lying,
        &headless,
        &image,
    ] {
        let said = filter(1, &[input, &out]);
        let name = Path::new(input).file_name().unwrap().to_str().unwrap();
        assert!(said.contains(name), "{input}: {said}");
    }
    assert_eq!(folder.names(), before);
}

#[test]
fn standard_input_that_is_no_y4m_stream_is_pointed_to_the_name_for_others() {
    let folder = Folder::new();
    let out = folder.name("out.mkv");
    let mut child = framepipe(&["filter", "-", &out, "--filter", "soft"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The beginning of Matroska.
    stdin
        .write_all(&[0x1a, 0x45, 0xdf, 0xa3, 0, 0, 0, 0, 0, 0, 0, 0])
        .unwrap();
    drop(stdin);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("/dev/stdin"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_pipe_that_stops_in_mid_frame_fails_and_leaves_the_old_output() {
    let folder = Folder::new();
    let out = folder.name("out.mkv");
    fs::write(&out, "precious").unwrap();
    let whole = fs::read(sample("clip.y4m")).unwrap();
    let mut child = framepipe(&["filter", "-", &out, "--overwrite", "--filter", "soft"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&whole[..whole.len() - 1000]);
    });
    let output = wait(child);
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&out).unwrap(), "precious");
    assert_eq!(folder.names(), ["out.mkv"]);
}

#[test]
fn an_existing_output_is_replaced_only_when_asked() {
    let folder = Folder::new();
    let out = folder.name("out.png");
    fs::write(&out, "precious").unwrap();
    let said = filter(1, &[&sample("still-gray.png"), &out]);
    assert!(said.contains("--overwrite"), "{said}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "precious");
    filter(0, &[&sample("still-gray.png"), &out, "--overwrite"]);
    assert_ne!(fs::read(&out).unwrap(), b"precious");
}

#[test]
fn outputs_that_cannot_be_written_exit_with_1() {
    let folder = Folder::new();
    let clip = sample("clip.y4m");
    let nowhere = folder.name("no/such/folder/out.mkv");
    assert!(filter(1, &[&clip, &nowhere]).contains("no/such/folder"));
    let said = filter(1, &[&clip, "raw:/dev/full"]);
    assert!(said.contains("/dev/full") && said.contains("space"), "{said}");
    let said = filter(1, &[&clip, &folder.name("out.mkv"), "--encoder", "libnothing"]);
    assert!(said.contains("libnothing") && said.contains("ffv1"), "{said}");
    assert!(folder.names().is_empty());
}

#[test]
fn tiny_frames_and_masks_larger_than_the_frame_work() {
    for border in Border::ALL.map(|border| border.to_string()) {
        for format in ["gray", "yuv420p", "rgb24", "yuv444p16le"] {
            let input = format!("synthetic:1x1:{format}:25:3");
            filter(
                0,
                &[
                    &input,
                    "null:",
                    "--filter",
                    "box:size=63",
                    "--border",
                    &border,
                    "-q",
                ],
            );
        }
    }
}

/// x265 3.5 writes beyond its memory there, unless one of its options (cutree) is off.
#[test]
fn x265_encodes_narrow_pictures() {
    let folder = Folder::new();
    for size in ["34x18", "16x18", "40x20", "48x64", "50x64"] {
        let out = folder.name(&format!("{size}.mkv"));
        let input = format!("synthetic:{size}:yuv420p:25:5");
        filter(
            0,
            &[&input, &out, "--filter", "soft", "--encoder", "libx265", "-q"],
        );
        assert_eq!(probe(&out, "stream=nb_read_frames"), "5", "{size}");
    }
}

#[test]
fn between_two_ffmpegs_every_frame_arrives() {
    let folder = Folder::new();
    let out = folder.name("out.mkv");
    let script = format!(
        "set -o pipefail; ffmpeg -v error -i '{}' -f yuv4mpegpipe -strict -1 - | \
         '{PROGRAM}' filter - - --filter soft -q | ffmpeg -v error -i - -c:v ffv1 '{out}'",
        sample("clip-10bit.mkv"),
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert_eq!(
        probe(&out, "stream=nb_read_frames,pix_fmt"),
        probe(&sample("clip-10bit.mkv"), "stream=nb_read_frames,pix_fmt")
    );
}

#[test]
fn y4m_has_its_own_writer_under_any_name() {
    let folder = Folder::new();
    let (input, named) = (folder.name("in.mkv"), folder.name("named.y4m"));
    let source = "testsrc2=s=64x48:r=30000/1001:d=0.2";
    ffmpeg(&[
        "-f", "lavfi", "-i", source, "-c:v", "ffv1", "-pix_fmt", "gbrp", &input,
    ]);
    filter(0, &[&input, &named, "--filter", "soft", "-q"]);
    let expected = fs::read(&named).unwrap();
    for (name, format) in [("a.bin", "y4m"), ("a.png", "yuv4mpegpipe")] {
        let out = folder.name(name);
        filter(0, &[&input, &out, "--filter", "soft", "--format", format, "-q"]);
        assert!(fs::read(&out).unwrap() == expected, "{name}");
    }
    assert_eq!(probe(&named, "stream=r_frame_rate"), "30000/1001");
}

/// Matroska wants to know the rate of AAC before the first packet, which transport streams do not say, unless
/// it can go back.
#[test]
fn sound_that_a_pipe_cannot_hold_is_encoded_anew() {
    let folder = Folder::new();
    let input = folder.name("a.ts");
    let source = "testsrc=s=64x48:d=1[out0];sine=d=1[out1]";
    let options = ["-c:v", "mpeg2video", "-c:a", "aac"];
    ffmpeg(&[&["-f", "lavfi", "-i", source], &options[..], &[&input]].concat());
    let out = folder.name("out.mkv");
    let arguments = "/dev/stdout --format matroska --filter soft -q";
    let run = |more: &str| {
        let script = format!("('{PROGRAM}' filter '{input}' {arguments} {more}) | cat > '{out}'");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        (text(&output.stderr), fs::read(&out).unwrap())
    };
    let (said, bytes) = run("--strict");
    assert!(
        said.contains("error: ") && said.contains("--audio-encoder"),
        "{said}"
    );
    assert!(bytes.is_empty());
    let (said, bytes) = run("--dry-run");
    assert!(said.is_empty() && text(&bytes).contains("re-encoded"), "{said}");
    let (said, _) = run("");
    assert!(
        said.contains("warning: stream 1 (audio, aac) is re-encoded"),
        "{said}"
    );
    ffmpeg(&["-i", &out, "-map", "0:a", "-f", "null", "-"]);
}

#[test]
fn a_reader_that_goes_away_ends_an_endless_run_well() {
    let container = ["/dev/stdout", "--format", "matroska", "--encoder", "rawvideo"];
    for (target, strict) in [
        (&["-"][..], None),
        (&["raw:-"], None),
        (&["-"], Some("--strict")),
        (&container, None),
        (&container, Some("--strict")),
    ] {
        let arguments = ["filter", "synthetic:320x240:yuv420p:25:0"];
        let mut child = framepipe(&[&arguments[..], target, &BLUR, strict.as_slice()].concat())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut some = vec![0; 500_000];
        stdout.read_exact(&mut some).unwrap();
        drop(stdout);
        let output = wait(child);
        let said = text(&output.stderr);
        let code = i32::from(strict.is_some());
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(
            said.contains(", cut short: the output's reader went away"),
            "{said}"
        );
        let name = if target.len() > 1 {
            target[0]
        } else {
            "standard output"
        };
        let error = format!("error: {name} is cut short");
        assert_eq!(said.contains(&error), strict.is_some(), "{said}");
        assert_eq!(said.contains("error"), strict.is_some(), "{said}");
    }
    // A file that ends in the muxer's buffer is complete only when the reader is gone.
    let script = format!(
        "('{PROGRAM}' filter '{}' /dev/stdout --format matroska --encoder ffv1 --no-audio --filter soft -q; \
         echo $? >&2) | head -c 1000 > /dev/null; '{PROGRAM}' masks > /dev/full; '{PROGRAM}' --help \
         > /dev/full; echo $? >&2; '{PROGRAM}' --version > /dev/full",
        sample("clip-odd.mp4")
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("0\n") && !said.contains("muxer"), "{said}");
    assert_eq!(
        said.matches("error: standard output: No space left").count(),
        3,
        "{said}"
    );
    assert!(
        said.contains("\n1\n") && output.status.code() == Some(1),
        "{said}"
    );
    let several = run(&["masks", "soft,box"]);
    assert!(text(&several.stderr).contains("a chain of filters"));
    // A list of hashes goes to standard output, too.
    let folder = Folder::new();
    let list = folder.name("list");
    let clip = sample("clip-odd.mp4");
    let hashes = |to: &str| {
        run(&[
            "filter",
            &clip,
            "null:",
            "--filter",
            "soft",
            "--frame-hashes",
            to,
            "-q",
        ])
    };
    assert!(hashes(&list).status.success());
    assert!(hashes("-").stdout == fs::read(&list).unwrap());
    // `framepipe masks | head -1` likewise.
    let mut child = framepipe(&["masks"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(wait(child).status.code(), Some(0));
}

#[test]
fn interrupting_an_endless_run_leaves_a_playable_file_and_says_how_many_frames() {
    let folder = Folder::new();
    let out = folder.name("out.mp4");
    let child = framepipe(&[
        "filter",
        "synthetic:160x120:yuv420p:25:0",
        &out,
        "--filter",
        "soft",
        "--preset",
        "ultrafast",
    ])
    .spawn()
    .unwrap();
    sleep(Duration::from_millis(1500));
    assert!(!Path::new(&out).exists(), "the name appears only at the end");
    send("INT", &child);
    let output = wait(child);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let frames: u64 = said
        .lines()
        .find_map(|l| l.strip_prefix("interrupted: ")?.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert!(frames > 0);
    assert_eq!(probe(&out, "stream=nb_read_frames"), frames.to_string());
    assert_eq!(folder.names(), ["out.mp4"]);
}

#[test]
fn interrupting_a_run_on_a_silent_pipe_ends_it() {
    let folder = Folder::new();
    let (out, report) = (folder.name("out.mkv"), folder.name("report.json"));
    let mut child = framepipe(&["filter", "-", &out, "--filter", "soft", "--report", &report])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let clip = fs::read(sample("clip.y4m")).unwrap();
    // The pipe stays open and gives nothing more.
    let (header, rest) = clip.split_at(clip.iter().position(|&b| b == b'\n').unwrap() + 1);
    let frame = rest[1..].windows(6).position(|w| w == b"FRAME\n").unwrap() + 1;
    stdin.write_all(header).unwrap();
    stdin.write_all(&rest[..3 * frame]).unwrap();
    stdin.flush().unwrap();
    sleep(Duration::from_millis(1000));
    let now = || {
        let date = Command::new("date").args(["-u", "+%FT%TZ"]).output().unwrap();
        text(&date.stdout).trim().to_owned()
    };
    let under_way = now();
    while now() == under_way {
        sleep(Duration::from_millis(20));
    }
    send("INT", &child);
    let output = wait(child);
    drop(stdin);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted: 3 frames"), "{said}");
    assert_eq!(probe(&out, "stream=nb_read_frames"), "3");
    // The date is that of the beginning.
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    let date = json["task"]["origin"]["date"].as_str().unwrap();
    assert!(date <= under_way.as_str(), "{date}, {under_way}");
}

#[test]
fn interrupting_twice_abandons_the_run() {
    let folder = Folder::new();
    let out = folder.name("out.mkv");
    let mut child = framepipe(&["filter", "-", &out, "--filter", "soft"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"YUV4MPEG2 W64 H48 F25:1 C420jpeg\nFRAME\n")
        .unwrap();
    sleep(Duration::from_millis(700));
    send("INT", &child);
    sleep(Duration::from_millis(300));
    send("INT", &child);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    drop(stdin);
}

#[test]
fn damaged_packets_are_concealed_and_reported_or_fail_when_strict() {
    let folder = Folder::new();
    let (whole, damaged) = (folder.name("whole.mkv"), folder.name("damaged.mkv"));
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=320x240:rate=25:duration=4",
        "-c:v",
        "mpeg4",
        "-q:v",
        "3",
        "-g",
        "10",
        &whole,
    ]);
    let mut bytes = fs::read(&whole).unwrap();
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle..middle + 3000] {
        *byte = byte.wrapping_mul(31) ^ 0x5A;
    }
    fs::write(&damaged, &bytes).unwrap();
    let said = filter(0, &[&damaged, &folder.name("out.mkv")]);
    assert!(said.contains("warning: "), "{said}");
    filter(1, &[&damaged, &folder.name("strict.mkv"), "--strict"]);
    assert_eq!(folder.names(), ["damaged.mkv", "out.mkv", "whole.mkv"]);
}

#[test]
fn a_directory_becomes_a_video_and_a_video_becomes_images() {
    let folder = Folder::new();
    let video = folder.name("out.mkv");
    filter(
        0,
        &[&sample("frames"), &video, "--fps", "12", "--encoder", "ffv1"],
    );
    assert_eq!(probe(&video, "stream=r_frame_rate,nb_read_frames"), "12/1,12");
    let images = folder.name("stills/");
    let said = filter(0, &[&sample("clip-odd.mp4"), &images]);
    assert!(said.contains("converted from yuv444p to rgb24"), "{said}");
    let count: u64 = probe(&sample("clip-odd.mp4"), "stream=nb_read_frames")
        .parse()
        .unwrap();
    assert_eq!(fs::read_dir(&images).unwrap().count() as u64, count);
    // RGB images through a YUV4MPEG2 pipe become YUV 4:4:4.
    let y4m = folder.name("out.y4m");
    let said = filter(0, &[&sample("frames"), &y4m]);
    assert!(said.contains("converted from rgb24 to yuv444p"), "{said}");
    assert_eq!(probe(&y4m, "stream=pix_fmt,nb_read_frames"), "yuv444p,12");
}

#[test]
fn images_of_different_sizes_go_to_a_directory_but_not_into_a_video() {
    let folder = Folder::new();
    let stills = folder.name("stills/");
    fs::create_dir(&stills).unwrap();
    for (name, size) in [("a", "64x48"), ("b", "33x17")] {
        let source = format!("testsrc=size={size}");
        let target = format!("{stills}{name}.png");
        ffmpeg(&["-f", "lavfi", "-i", &source, "-frames:v", "1", &target]);
    }
    let out = folder.name("out/");
    filter(0, &[&stills, &out]);
    assert_eq!(probe(&format!("{out}b.png"), "stream=width,height"), "33,17");
    for name in ["out.mkv", "out.y4m"] {
        let said = filter(1, &[&stills, &folder.name(name)]);
        assert!(said.contains("b.png") && said.contains("33x17"), "{said}");
    }
    assert_eq!(folder.names(), ["out", "stills"]);
}

#[test]
fn a_truncated_video_is_never_taken_for_a_whole_one() {
    let folder = Folder::new();
    let cut = folder.name("cut.mkv");
    let whole = fs::read(sample("clip-10bit.mkv")).unwrap();
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let said = filter(0, &[&cut, "null:"]);
    assert!(said.contains("warning: "), "{said}");
    filter(1, &[&cut, "null:", "--strict"]);
}

#[test]
fn a_stream_and_shares_of_the_cores_can_be_chosen() {
    let folder = Folder::new();
    let (two, out) = (folder.name("two.mkv"), folder.name("out.mkv"));
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:d=0.2",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=32x24:d=0.2",
        "-map",
        "0",
        "-map",
        "1",
        "-c:v",
        "ffv1",
        &two,
    ]);
    filter(
        0,
        &[
            &two,
            &out,
            "--stream",
            "1",
            "--decoder-threads",
            "1",
            "--encoder-threads",
            "1",
        ],
    );
    let streams = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-show_entries",
            "stream=width,codec_name",
            "-of",
            "csv=p=0",
            &out,
        ])
        .output()
        .unwrap();
    let streams = text(&streams.stdout);
    assert!(
        streams.contains("ffv1,64") && streams.contains(",32"),
        "{streams}"
    );
    assert!(filter(1, &[&two, "null:", "--stream", "2"]).contains("no stream 2"));
    for option in ["--stream", "--decoder-threads"] {
        filter(2, &["synthetic:8x8:gray:25:1", "null:", option, "1"]);
    }
    filter(2, &[&two, "null:", "--encoder-threads", "1"]);
}

/// Kilobytes of memory that the process holds.
#[cfg(target_os = "linux")]
fn resident(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_number_of_frames() {
    let child = framepipe(&[
        "filter",
        "synthetic:640x480:yuv420p:25:0",
        "null:",
        "--filter",
        "box:size=3",
        "--engine",
        "cpu",
    ])
    .spawn()
    .unwrap();
    sleep(Duration::from_secs(2));
    let early = resident(&child);
    sleep(Duration::from_secs(4));
    let late = resident(&child);
    send("INT", &child);
    let output = wait(child);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    // A frame is 450 kB, and many hundred went through in between.
    assert!(late < early + 4_000, "{early} kB, then {late} kB: {said}");
}

#[test]
fn workers_and_threads_change_nothing_in_the_pictures() {
    let folder = Folder::new();
    let read = |name: &str| -> Vec<Vec<u8>> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder.name(name))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        files.sort();
        files.iter().map(|f| fs::read(f).unwrap()).collect()
    };
    let frames = sample("frames");
    filter(
        0,
        &[
            &frames,
            &folder.name("one/"),
            "--workers",
            "1",
            "--threads",
            "1",
            "--engine",
            "cpu",
            "--queue",
            "1",
        ],
    );
    filter(
        0,
        &[
            &frames,
            &folder.name("many/"),
            "--workers",
            "5",
            "--threads",
            "3",
            "--engine",
            "cpu",
        ],
    );
    filter(0, &[&frames, &folder.name("reference/"), "--engine", "reference"]);
    assert_eq!(read("one").len(), 12);
    assert_eq!(read("one"), read("many"));
    assert_eq!(read("one"), read("reference"));
}

#[test]
fn flipping_turns_the_mask() {
    let folder = Folder::new();
    let still = sample("still-gray.png");
    let (a, b) = (folder.name("a.png"), folder.name("b.png"));
    filter(0, &[&still, &a, "--filter", "mask:rows=1 0 0", "--flip"]);
    filter(0, &[&still, &b, "--filter", "mask:rows=0 0 1"]);
    assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap());
}

#[test]
fn vector_instructions_can_be_chosen_and_change_nothing_in_the_picture() {
    let folder = Folder::new();
    let still = sample("still-gray.png");
    let devices = run(&["devices"]);
    let line = text(&devices.stdout);
    let line = line.lines().find(|l| l.contains("vector instructions")).unwrap();
    let known = line.split(';').next().unwrap().replace(',', " ");
    let mut pictures = Vec::new();
    for set in ["portable", "avx2", "avx2-vnni", "avx512", "avx512-vnni"] {
        let out = folder.name(&format!("{set}.png"));
        let arguments = [
            &still,
            &out,
            "--filter",
            "gaussian:size=9",
            "--engine",
            "cpu",
            "--simd",
            set,
        ];
        if known.split_whitespace().any(|word| word == set) {
            let said = filter(0, &arguments);
            assert!(said.contains(set), "{said}");
            pictures.push(fs::read(out).unwrap());
        } else {
            let said = filter(1, &arguments);
            assert!(
                said.contains(&format!("cannot run the instruction set {set}")),
                "{said}"
            );
            assert!(!Path::new(&out).exists());
            let verify = run(&["verify", "--engine", "cpu", "--simd", set]);
            assert_eq!(verify.status.code(), Some(1));
        }
    }
    assert!(pictures.iter().all(|picture| *picture == pictures[0]));
    let verify = run(&["verify", "--quick", "--engine", "cpu", "-v"]);
    assert!(verify.status.success());
    for word in known.split_whitespace().skip(2) {
        assert!(
            text(&verify.stdout).contains(&format!("{word}, 1 thread ")),
            "{word}"
        );
    }
    assert_eq!(
        run(&["verify", "--engine", "cuda", "--simd", "portable"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn the_other_subcommands_work() {
    let masks = run(&["masks"]);
    assert!(masks.status.success() && text(&masks.stdout).contains("gaussian"));
    let mask = run(&["masks", "box:size=3"]);
    assert!(mask.status.success() && text(&mask.stdout).contains("rank"));
    assert_eq!(run(&["masks", "nothing"]).status.code(), Some(2));
    let devices = run(&["devices"]);
    assert!(devices.status.success() && text(&devices.stdout).starts_with("cpu "));
    let verify = run(&["verify", "--frames", "10"]);
    assert!(verify.status.success(), "{}", text(&verify.stdout));
    let verdict = text(&verify.stdout);
    assert!(
        verdict.starts_with("every sample equals") && verdict.lines().count() <= 2,
        "{verdict}"
    );
    let child = framepipe(&["verify", "--frames", "100000", "--engine", "cpu"])
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let is_caught = || {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        // SIGINT is 2, and signals are counted from 1.
        u64::from_str_radix(caught.unwrap().trim(), 16).unwrap() & 2 != 0
    };
    let began = Instant::now();
    while !is_caught() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "no signal is looked after"
        );
        sleep(Duration::from_millis(5));
    }
    send("INT", &child);
    let ended = wait(child);
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert!(
        text(&ended.stderr).ends_with("interrupted\n"),
        "{}",
        text(&ended.stderr)
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert!(script.status.success() && text(&script.stdout).contains("framepipe"));
    }
    assert_eq!(run(&["--version"]).status.code(), Some(0));
    assert_eq!(run(&["nonsense"]).status.code(), Some(2));
}

#[test]
fn named_pipes_are_read_once_whatever_their_names() {
    let folder = Folder::new();
    let still = folder.name("still.png");
    ffmpeg(&["-f", "lavfi", "-i", "testsrc2=s=64x48", "-frames:v", "1", &still]);
    let clip = folder.name("clip.mkv");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:d=0.2",
        "-c:v",
        "ffv1",
        &clip,
    ]);
    for (name, content) in [
        ("pipe.mkv", clip.clone()),
        ("pipe.png", still),
        ("pipe", clip),
        ("pipe.y4m", sample("clip.y4m")),
    ] {
        let (pipe, out) = (folder.name(name), folder.name("out.mkv"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Nobody writes yet.
        let options = [
            "--filter",
            "soft",
            "--engine",
            "cpu",
            "--overwrite",
            "--timeout",
            "1",
        ];
        let said = filter(1, &[&[&*pipe, &*out][..], &options].concat());
        assert!(said.contains("gave nothing for 1 s"), "{name}: {said}");
        // What is written once cannot be read twice.
        let shell = format!("cat '{content}' >'{pipe}'");
        let mut writer = Command::new("sh").args(["-c", &shell]).spawn().unwrap();
        filter(
            0,
            &[&[&*pipe, &*out][..], &options[..5], &["--timeout", "20"]].concat(),
        );
        assert!(writer.wait().unwrap().success());
    }
}

#[test]
fn threads_have_a_limit() {
    for option in ["--threads", "--decoder-threads", "--encoder-threads", "--workers"] {
        for number in ["0", "1025", "100000"] {
            let said = filter(2, &["a.mp4", "b.mp4", "--filter", "soft", option, number]);
            assert!(said.contains("write a number from 1 to 1024"), "{said}");
        }
    }
}

/// A YUV4MPEG2 stream of 4x4 pixels with a frame for each of these marks.
fn mixed_y4m(header: &str, marks: &[&str]) -> Vec<u8> {
    let mut stream = format!("YUV4MPEG2 W4 H4 {header} A1:1 C420jpeg\n").into_bytes();
    for (level, mark) in (b'0'..).zip(marks) {
        stream.extend(format!("FRAME {mark}\n").bytes());
        stream.extend([level; 24]);
    }
    stream
}

#[test]
fn field_orders_of_frames_survive_from_a_file_and_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let stream = mixed_y4m("F25:1 Im", &["Itii", "Ibii", "I1pp"]);
    for name in ["in.y4m", "in.bin"] {
        fs::write(at(name), &stream).unwrap();
    }
    let run = |input: &Path, stdin: Option<&[u8]>| {
        let mut child = Command::new(PROGRAM)
            .arg("filter")
            .arg(input)
            .arg(at("out.y4m"))
            .args([
                "--filter",
                "identity",
                "--engine",
                "cpu",
                "--strict",
                "--overwrite",
            ])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(stdin.unwrap_or_default()).unwrap();
        drop(pipe);
        child.wait_with_output().unwrap()
    };
    let frames = |file: &[u8]| {
        let at = file.windows(6).position(|word| word == b"FRAME ").unwrap();
        file[at..].to_vec()
    };
    for (input, stdin) in [
        (at("in.y4m"), None),
        (at("in.bin"), None),
        ("-".into(), Some(&stream[..])),
        ("/dev/stdin".into(), Some(&stream)),
    ] {
        let done = run(&input, stdin);
        assert!(done.status.success(), "{}: {}", input.display(), said(&done));
        let written = fs::read(at("out.y4m")).unwrap();
        assert!(
            written.starts_with(b"YUV4MPEG2 W4 H4 F25:1 Im "),
            "{}",
            input.display()
        );
        assert_eq!(frames(&written), frames(&stream), "{}", input.display());
    }
    for (header, marks, words) in [
        (
            "F25:1 Im",
            &["Itpp", "Itip", "It??"][..],
            "2 frames say more of how they were sampled",
        ),
        ("F0:0 Im", &["Itii"], "states no frame rate"),
        (
            "F25:1 Im XCOLORRANGE=FOO",
            &["Itii"],
            "unknown range 'XCOLORRANGE=FOO'",
        ),
    ] {
        fs::write(at("in.y4m"), mixed_y4m(header, marks)).unwrap();
        let done = run(&at("in.y4m"), None);
        assert_eq!(done.status.code(), Some(1), "{header}: {}", said(&done));
        assert!(said(&done).contains(words), "{header}: {}", said(&done));
    }
}

/// What is wrong with a header is said in the same words, whatever way the stream comes in.
#[test]
fn a_y4m_stream_is_judged_alike_by_whatever_way_it_comes() {
    let folder = Folder::new();
    let (fifo, bin) = (folder.name("fifo"), folder.name("in.bin"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let frame = [&b"FRAME\n"[..], &[99; 24]].concat();
    for (header, code, words) in [
        ("W100000 H100000 F25:1", 1, "cannot hold one such frame"),
        ("W0 H4 F25:1", 1, "has an impossible width W0 in its header"),
        ("W4 H4 F25:1 C42", 1, "has the unknown colour space 'C42'"),
        (
            "W4 H4",
            0,
            "states no frame rate in its header; 25 frames a second are taken",
        ),
        ("W4 H4 F25:1", 0, ""),
    ] {
        let stream = [format!("YUV4MPEG2 {header}\n").as_bytes(), &frame, &frame].concat();
        fs::write(&bin, &stream).unwrap();
        for input in ["-", "/dev/stdin", &fifo, &bin] {
            let command = match input == fifo {
                true => "cat \"$1\" > \"$2\" & exec \"$0\" filter \"$2\" null: --filter identity -q",
                false => "cat \"$1\" | \"$0\" filter \"$2\" null: --filter identity -q",
            };
            let mut run = Command::new("sh");
            let done = run.args(["-c", command, PROGRAM, &bin, input]).output().unwrap();
            assert_eq!(
                done.status.code(),
                Some(code),
                "{header} {input}: {}",
                said(&done)
            );
            assert!(said(&done).contains(words), "{header} {input}: {}", said(&done));
            assert!(
                !words.is_empty() || done.stderr.is_empty(),
                "{input}: {}",
                said(&done)
            );
        }
    }
    // Another kind of video comes through a FIFO as before.
    let video = folder.name("in.mkv");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=32x24:d=1",
        "-c:v",
        "mpeg4",
        &video,
    ]);
    let command = "cat \"$1\" > \"$2\" & exec \"$0\" filter \"$2\" null: --filter identity -q --strict";
    let mut run = Command::new("sh");
    let done = run
        .args(["-c", command, PROGRAM, &video, &fifo])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", said(&done));
}

#[test]
fn a_run_that_hangs_ends_after_one_signal() {
    let folder = Folder::new();
    let (input, pipe) = (folder.name("in.png"), folder.name("out.png"));
    ffmpeg(&["-f", "lavfi", "-i", "testsrc2=s=16x16", "-frames:v", "1", &input]);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Nobody reads the pipe, so that it cannot be opened.
    let mut child = Command::new(PROGRAM)
        .args(["filter", &input, &pipe, "--filter", "soft", "--overwrite", "-q"])
        .spawn()
        .unwrap();
    sleep(Duration::from_secs(1));
    send("TERM", &child);
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(130), "{ended:?}");
}
