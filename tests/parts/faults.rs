//! What may happen to a job: workers that are killed or come twice, full disks, inputs, parts and plans that
//! are not what they were.

use super::common::ffmpeg;
use super::{Job, done, framepipe, refused, said, single_run, text};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A video whose job takes some time.
fn video(folder: &Path) -> PathBuf {
    let path = folder.join("in.mp4");
    let source = "testsrc2=size=96x64:rate=25:duration=2.4";
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        source,
        "-c:v",
        "libx264",
        "-g",
        "10",
        "-bf",
        "3",
        text(&path),
    ]);
    path
}

const OPTIONS: [&str; 6] = ["--filter", "gaussian:2", "--encoder", "ffv1", "--parts", "6"];

fn start(words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Names in a folder, without those of temporary files.
fn visible(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_str().unwrap().to_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

#[test]
fn a_worker_may_be_killed_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let input = video(folder.path());
    let expected = single_run(&input, &folder.path().join("whole.mkv"), &OPTIONS[..4]);
    let job = Job::plan(&input, "joined.mkv", &OPTIONS);
    let began = std::time::Instant::now();
    job.make([0]);
    let usual = began.elapsed();
    std::fs::remove_file(job.folder.join("parts/00000.json")).unwrap();
    // A moment that no clock decides: spread over what a part takes, and a little beyond.
    for moment in 0..100_u32 {
        let part = (moment as usize * 5 % job.parts).to_string();
        let mut worker = start(&["part", text(&job.folder), &part, "--again"]);
        std::thread::sleep(usual.mul_f64(f64::from(moment * 37 % 100) / 80.0));
        let _ = worker.kill();
        worker.wait().unwrap();
        // Whatever is there under a final name is whole: nothing is ever broken.
        let status = done(&["status", text(&job.folder), "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["broken"].as_array().unwrap().len(), 0, "{status}");
    }
    let missing = done(&["status", text(&job.folder), "--missing", "--lines"]);
    job.make(missing.lines().map(|line| line.parse().unwrap()));
    job.join();
    assert_eq!(job.hashes(), expected);
}

#[test]
fn two_workers_on_every_part_and_two_drivers_make_one_result() {
    let folder = tempfile::tempdir().unwrap();
    let input = video(folder.path());
    let expected = single_run(&input, &folder.path().join("whole.mkv"), &OPTIONS[..4]);
    let job = Job::plan(&input, "joined.mkv", &OPTIONS);
    // The same plan again changes nothing; another one is refused.
    Job::plan(&input, "joined.mkv", &OPTIONS);
    let other = [
        &["plan", text(&input), text(&job.output), text(&job.folder)],
        &["--filter", "soft"][..],
    ]
    .concat();
    assert!(refused(&other, 2).contains("another plan"));
    let words = ["run", text(&job.folder), "--at-once", "2", "--no-join"];
    let mut drivers = [start(&words), start(&words)];
    for driver in &mut drivers {
        assert!(driver.wait().unwrap().success());
    }
    assert_eq!(job.hashes(), expected);
    // A record and its data for each part, and nothing else.
    assert_eq!(visible(&job.folder.join("parts")).len(), 2 * job.parts);
    // Of two joins one waits for the other, and both end well; a lock shows that one waits.
    let lock = std::fs::File::open(job.folder.join("plan.json")).unwrap();
    lock.lock().unwrap();
    let joins = ["join", text(&job.folder)];
    let mut joins = [start(&joins), start(&joins)];
    std::thread::sleep(Duration::from_millis(300));
    for join in &mut joins {
        assert!(join.try_wait().unwrap().is_none());
    }
    assert!(!job.output.exists());
    lock.unlock().unwrap();
    for join in &mut joins {
        assert!(join.wait().unwrap().success());
    }
    assert_eq!(visible(&job.folder.join("parts")).len(), job.parts);
}

#[test]
fn what_is_not_of_the_job_is_named_and_nothing_is_shortened() {
    let folder = tempfile::tempdir().unwrap();
    let input = video(folder.path());
    let job = Job::plan(&input, "joined.mkv", &OPTIONS);
    let parts = job.folder.join("parts");
    // Copied by what leaves out empty folders.
    std::fs::remove_dir(&parts).unwrap();
    let join = || refused(&["join", text(&job.folder)], 1);
    job.make([0, 2, 3]);
    let missing = join();
    assert!(missing.contains("3 of 6 parts are missing: 1,4-5"), "{missing}");
    assert_eq!(done(&["status", text(&job.folder), "--missing"]).trim(), "1,4-5");
    job.make([1, 4, 5]);
    let recorded = |part: usize| {
        let record = std::fs::read_to_string(parts.join(format!("{part:05}.json"))).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        record["data"]["file"].clone()
    };
    let data = |part: usize| parts.join(recorded(part)["name"].as_str().unwrap());
    // Cut off, changed, and gone.
    let (path, whole) = (data(2), std::fs::read(data(2)).unwrap());
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(join().contains("part 2:"));
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(&path, &changed).unwrap();
    assert!(join().contains("part 2"), "{}", join());
    let status = done(&["status", text(&job.folder)]);
    assert!(
        status.contains("part 2: ") && status.contains("is not what was recorded of it"),
        "{status}"
    );
    assert!(said(&job.part(2, &[])).contains("part 2: 10 frames"));
    assert_eq!(std::fs::read(data(2)).unwrap().len(), whole.len());
    // At the recorded time only those read it that read all, and they say how it is made again.
    let path = data(2);
    std::fs::write(&path, &changed).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let written = recorded(2)["digest"]["written"].as_u64().unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_nanos(written))
        .unwrap();
    assert!(said(&job.part(2, &[])).contains("part 2 is there"));
    let again = format!("framepipe part {} 2 --again", job.folder.display());
    assert!(join().contains(&again), "{}", join());
    assert!(refused(&["check", text(&job.folder)], 1).contains(&again));
    assert!(job.part(2, &["--again"]).status.success());
    std::fs::remove_file(data(2)).unwrap();
    assert!(join().contains("part 2:"));
    // What is broken is made again without further words.
    job.make([2]);
    assert_eq!(std::fs::read(data(2)).unwrap().len(), whole.len());
    // What is no file stands in a record's place: the part is made again.
    let record = |part: usize| parts.join(format!("{part:05}.json"));
    for spoil in [
        ["ln", "-s", "/dev/zero"].as_slice(),
        &["mkfifo"],
        &["mkdir"],
        &["truncate", "-s", "20G"],
    ] {
        std::fs::remove_file(record(5)).unwrap();
        let spoilt = Command::new(spoil[0]).args(&spoil[1..]).arg(record(5)).status();
        assert!(spoilt.unwrap().success());
        let status = done(&["status", text(&job.folder)]);
        assert!(status.contains("part 5: "), "{spoil:?}: {status}");
        job.make([5]);
        assert!(record(5).is_file(), "{spoil:?}");
    }
    assert!(!job.output.exists());
    done(&["join", text(&job.folder), "--keep-parts"]);
    // What is there is not made again.
    let status = done(&["status", text(&job.folder), "--json"]);
    assert!(status.contains("\"joined\":true"), "{status}");
    let again = done(&["join", text(&job.folder)]);
    assert!(again.contains("is there already"), "{again}");
}

/// Records that say of their parts what cannot be.
#[test]
fn records_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let input = video(folder.path());
    let job = Job::plan(&input, "joined.mkv", &OPTIONS);
    job.make(0..6);
    let join = || refused(&["join", text(&job.folder)], 1);
    let parts = job.folder.join("parts");
    let record = |part: usize| parts.join(format!("{part:05}.json"));
    // Two records in each other's place.
    let swap = || {
        let between = parts.join("between");
        std::fs::rename(record(1), &between).unwrap();
        std::fs::rename(record(4), record(1)).unwrap();
        std::fs::rename(between, record(4)).unwrap();
    };
    swap();
    assert!(join().contains("another plan"), "{}", join());
    swap();
    // A seam that does not fit.
    let text_of = std::fs::read_to_string(record(3)).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text_of).unwrap();
    let first = value["seam"]["first"][0].as_i64().unwrap();
    value["seam"]["first"][0] = (first + 1).into();
    std::fs::write(record(3), value.to_string()).unwrap();
    let seam = join();
    assert!(seam.contains("parts 2 and 3 do not fit together"), "{seam}");
    // Fewer frames than the packets of the part.
    let mut value: serde_json::Value = serde_json::from_str(&text_of).unwrap();
    value["frames"].as_array_mut().unwrap().pop();
    std::fs::write(record(3), value.to_string()).unwrap();
    assert!(join().contains("frames"), "{}", join());
    // Frames that were not filtered.
    let mut value: serde_json::Value = serde_json::from_str(&text_of).unwrap();
    value["engine"] = "none: frames pass unfiltered".into();
    std::fs::write(record(3), value.to_string()).unwrap();
    let unfiltered = join();
    assert!(
        unfiltered.contains("part 3: ") && unfiltered.contains("its frames are not filtered"),
        "{unfiltered}"
    );
    for words in [
        &["part", text(&job.folder), "3"][..],
        &["check", text(&job.folder)],
    ] {
        let unfiltered = refused(&[words, &["--engine", "none"]].concat(), 2);
        assert!(
            unfiltered.contains("[possible values: auto, reference, cpu, cuda]"),
            "{unfiltered}"
        );
    }
    std::fs::write(record(3), &text_of).unwrap();
    assert!(!job.output.exists());
}

#[test]
fn changed_inputs_and_plans_are_refused_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let input = video(folder.path());
    let job = Job::plan(&input, "joined.mkv", &OPTIONS);
    let bytes = std::fs::read(&input).unwrap();
    let mut changed = bytes.clone();
    changed[bytes.len() - 3] ^= 1;
    std::fs::write(&input, &changed).unwrap();
    let refusal = job.part(0, &[]);
    assert_eq!(refusal.status.code(), Some(2), "{}", said(&refusal));
    assert!(said(&refusal).contains("not what it was"), "{}", said(&refusal));
    let run = refused(&["run", text(&job.folder)], 2);
    assert_eq!(run.matches("not what it was").count(), 1, "{run}");
    // Gone, as where a file system is not mounted: another machine may have it.
    std::fs::remove_file(&input).unwrap();
    let refusal = job.part(0, &[]);
    assert_eq!(refusal.status.code(), Some(75), "{}", said(&refusal));
    std::fs::write(&input, &bytes).unwrap();
    job.make([0]);
    let path = job.folder.join("plan.json");
    let plan = std::fs::read_to_string(&path).unwrap();
    for (from, to, word) in [
        ("gaussian:2", "gaussian:3", "changed after it was made"),
        ("\"format\":1", "\"format\":2", "another version"),
        ("{", "", "not what framepipe writes"),
    ] {
        std::fs::write(&path, plan.replacen(from, to, 1)).unwrap();
        for command in ["part", "join", "status", "check", "run"] {
            let mut words = vec![command, text(&job.folder)];
            words.extend((command == "part").then_some("0"));
            let text = refused(&words, 2);
            assert!(text.contains(word), "{command}: {text}");
        }
    }
    std::fs::write(&path, &plan).unwrap();
    // A record that is not whole is named.
    let record = job.folder.join("parts/00002.json");
    std::fs::write(&record, "").unwrap();
    let status = done(&["status", text(&job.folder)]);
    let named = format!(
        "part 2: {}: it is not what framepipe writes there",
        record.display()
    );
    assert!(status.contains(&named), "{status}");
    std::fs::remove_file(&record).unwrap();
    for (output, what) in [("both", "output"), ("other.mkv", "input")] {
        let folder = if what == "input" {
            &input
        } else {
            &folder.path().join("both")
        };
        let output = input.with_file_name(output);
        let words = [
            "plan",
            text(&input),
            text(&output),
            text(folder),
            "--filter",
            "soft",
        ];
        let said = refused(&words, 2);
        assert!(
            said.contains(&format!("both the {what} and the folder")),
            "{said}"
        );
    }
    assert!(refused(&["part", text(&job.folder), "6"], 2).contains("there is no part 6"));
    let endless = [
        "plan",
        "synthetic:64x48:yuv420p:25:0",
        "never.mkv",
        "never.job",
        "--filter",
        "soft",
    ];
    assert!(refused(&endless, 2).contains("never ends"));
    assert!(!Path::new("never.job").exists());
    assert!(refused(&["part", text(folder.path()), "0"], 2).contains("no plan.json"));
    assert!(refused(&["part", text(&job.folder), "x"], 2).contains("A-B"));
    assert!(refused(&["part", text(&job.folder), "2-1"], 2).contains("ends before it begins"));
    let said = done(&["part", text(&job.folder), "5-9"]);
    assert!(
        said.contains("the job has 6 parts; of those named there are 5"),
        "{said}"
    );
    let status: serde_json::Value =
        serde_json::from_str(&done(&["status", text(&job.folder), "--json"])).unwrap();
    let page = include_str!("../../docs/schemas.md");
    let (_, section) = page.split_once("\n## Jobs in parts\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    for field in status.as_object().unwrap().keys() {
        let named = |c: char| section.contains(&format!("{c}{field}"));
        assert!(
            ["schema", "version"].contains(&&field[..]) || "`{ ".chars().any(named),
            "{field}"
        );
    }
    assert_eq!(status["schema"], "framepipe-status");
}

/// Changes bytes in the middle of every key frame but the first.
fn damage_key_frames(path: &Path) {
    let shown = [
        "-show_entries",
        "packet=pts,size,pos,flags",
        "-of",
        "csv=p=0",
        text(path),
    ];
    let probe = Command::new("ffprobe")
        .args(["-v", "error"])
        .args(shown)
        .output()
        .unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    for row in String::from_utf8(probe.stdout).unwrap().lines().skip(1) {
        let columns: Vec<&str> = row.split(',').collect();
        let number = |column: usize| columns[column].parse::<usize>().unwrap();
        let middle = number(2) + number(1) / 2;
        for byte in bytes[middle..middle + 8]
            .iter_mut()
            .filter(|_| columns[3].contains('K'))
        {
            *byte ^= 0x5a;
        }
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damage_at_a_cut_is_named_and_counts_are_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.mkv");
    let source = "testsrc2=size=96x64:rate=25:duration=2.4";
    let encoding = [
        "-c:v",
        "libx264",
        "-g",
        "10",
        "-bf",
        "0",
        "-x264-params",
        "scenecut=0",
    ];
    ffmpeg(&[&["-f", "lavfi", "-i", source], &encoding[..], &[text(&input)]].concat());
    damage_key_frames(&input);
    let expected = single_run(&input, &folder.path().join("whole.mkv"), &OPTIONS[..4]);
    let job = Job::plan(&input, "joined.mkv", &[&OPTIONS[..4], &["--parts", "3"]].concat());
    assert_eq!(job.parts, 3);
    let counts: usize = (0..job.parts)
        .map(|part| {
            let made = said(&job.part(part, &[]));
            let (_, counts) = made.split_once("in.mkv: ").unwrap();
            counts.split(' ').next().unwrap().parse::<usize>().unwrap()
        })
        .sum();
    let run = refused(&["run", text(&job.folder)], 1);
    assert!(
        run.contains("parts 0 and 1 do not fit together: the input is damaged at the cut"),
        "{run}"
    );
    assert!(run.contains("--parts 1"), "{run}");
    std::fs::remove_dir_all(&job.folder).unwrap();
    let job = Job::plan(&input, "joined.mkv", &[&OPTIONS[..4], &["--parts", "3"]].concat());
    // The driver gives the sum, once.
    let run = done(&["run", text(&job.folder), "--no-join"]);
    assert_eq!(run.matches("concealed").count(), 1, "{run}");
    assert!(
        run.contains(&format!("{counts} damaged frames concealed")),
        "{counts}: {run}"
    );
    std::fs::remove_dir_all(&job.folder).unwrap();
    let job = Job::plan(&input, "joined.mkv", &[&OPTIONS[..4], &["--parts", "1"]].concat());
    let run = done(&["run", text(&job.folder)]);
    assert!(run.contains("ffv1 in matroska, 1 part: 60 frames"), "{run}");
    assert_eq!(job.hashes(), expected);
}

#[test]
fn what_the_parts_or_the_join_would_refuse_is_not_planned() {
    let folder = tempfile::tempdir().unwrap();
    let input = video(folder.path());
    let texts = folder.path().join("texts.srt");
    std::fs::write(&texts, "1\n00:00:00,000 --> 00:00:02,000\nhello\n").unwrap();
    let both = folder.path().join("both.mkv");
    let mapped = ["-map", "0", "-map", "1", "-c:v", "copy", "-c:s", "ass"];
    ffmpeg(
        &[
            &["-i", text(&input), "-i", text(&texts)],
            &mapped[..],
            &[text(&both)],
        ]
        .concat(),
    );
    let before = visible(folder.path());
    for (output, options, code, words) in [
        (
            "out.mp4",
            &["--strict"][..],
            1,
            "leave it out with --no-subtitles",
        ),
        (
            "out.mkv",
            &["--encoder-option", "foo=1"],
            1,
            "has an option 'foo'",
        ),
        (
            "out.mp4",
            &["--encoder-option", "x264-params=keyin=5"],
            1,
            "refuses keyin",
        ),
        ("out.mkv", &["--frames", "31"], 2, "in times"),
    ] {
        let (output, job) = (folder.path().join(output), folder.path().join("job"));
        let plan = ["plan", text(&both), text(&output), text(&job), "--filter", "soft"];
        let plan = refused(&[&plan, options].concat(), code);
        assert!(plan.contains(words), "{plan}");
    }
    assert_eq!(visible(folder.path()), before);
    let help = done(&["plan", "--help"]);
    for words in ["Not of videos.", "--region, --regions, --matte and --compare"] {
        assert!(help.contains(words), "{help}");
    }
    let (output, job) = (folder.path().join("out.mkv"), folder.path().join("job"));
    let plan = [
        "plan",
        "-q",
        text(&both),
        text(&output),
        text(&job),
        "--filter",
        "soft",
    ];
    assert_eq!(done(&plan), "");
}

#[test]
fn a_warning_of_all_parts_is_given_once_and_names_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("wide.mkv");
    let source = "testsrc2=size=96x64:rate=25:duration=1.2";
    let facts = [
        "-color_primaries",
        "bt2020",
        "-color_trc",
        "smpte2084",
        "-colorspace",
        "bt2020nc",
    ];
    let encoding = ["-c:v", "libx264", "-g", "10"];
    ffmpeg(
        &[
            &["-f", "lavfi", "-i", source],
            &encoding[..],
            &facts,
            &[text(&input)],
        ]
        .concat(),
    );
    let options = ["--filter", "soft", "--encoder", "mpeg4", "--parts", "3"];
    let job = Job::plan(&input, "out.avi", &options);
    assert_eq!(job.parts, 3);
    let lost = format!(
        "not kept in {} (mpeg4 in avi): matrix (bt2020nc)",
        job.output.display()
    );
    assert!(said(&job.part(1, &[])).contains(&format!("part 1: {lost}")));
    let run = done(&["run", text(&job.folder)]);
    assert_eq!(run.matches("warning").count(), 1, "{run}");
    assert!(run.contains(&lost), "{run}");
}

#[test]
fn a_full_disk_and_a_signal_say_try_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let input = video(folder.path());
    let job = Job::plan(&input, "joined.mkv", &OPTIONS);
    // Files of at most 4 KiB, as on a full disk.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
    let output = Command::new("sh")
        .args([
            "-c",
            limited,
            "sh",
            env!("CARGO_BIN_EXE_framepipe"),
            "part",
            text(&job.folder),
            "0",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", said(&output));
    assert!(said(&output).contains("cannot write"), "{}", said(&output));
    assert_eq!(visible(&job.folder.join("parts")), Vec::<String>::new());
    // So many frames that it is at work for long.
    let endless = Path::new("synthetic:640x480:yuv420p:25:100000");
    let (out, slow) = (folder.path().join("slow.mkv"), folder.path().join("slow.job"));
    done(&[&["plan", text(endless), text(&out), text(&slow)], &OPTIONS[..4]].concat());
    let mut worker = start(&["part", text(&slow), "0", "--engine", "reference"]);
    std::thread::sleep(Duration::from_millis(1000));
    let pid = rustix::process::Pid::from_child(&worker);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = worker.wait().unwrap();
    assert_eq!(status.code(), Some(75));
    // A run that is ended has its part remove what it began.
    let mut driver = start(&["run", text(&slow)]);
    let left = || std::fs::read_dir(slow.join("parts")).unwrap().count();
    for _ in 0..400 {
        if left() > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(left() > 0);
    let pid = rustix::process::Pid::from_child(&driver);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(driver.wait().unwrap().code(), Some(130));
    assert_eq!(left(), 0);
    // A parent that ends takes its worker along.
    let orphan = "\"$0\" part --die-with-parent --engine reference \"$1\" 0 & echo $!; sleep 0.3";
    let shell = Command::new("sh")
        .args(["-c", orphan, env!("CARGO_BIN_EXE_framepipe"), text(&slow)])
        .output()
        .unwrap();
    let pid: u32 = said(&shell).lines().next().unwrap().trim().parse().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(" Z "), "{state}");
    assert!(framepipe(&["run", text(&job.folder)]).status.success());
}
