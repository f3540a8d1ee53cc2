//! Jobs in parts: whatever the input is made of, whoever makes the parts in whatever order, and whatever
//! happens to them, the output is that of a single run; FFmpeg makes the inputs and reads the outputs.

#![allow(clippy::unwrap_used)]

mod cards;
#[path = "../common/mod.rs"]
mod common;
mod exact;
mod faults;
mod pictures;
mod server;
#[path = "../standin/mod.rs"]
mod standin;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the program.
fn framepipe(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .args(words)
        .output()
        .unwrap()
}

/// What it said, on both of its ways.
fn said(done: &Output) -> String {
    let text = [&done.stdout[..], &done.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs it to a good end.
fn done(words: &[&str]) -> String {
    let output = framepipe(words);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    said(&output)
}

/// Runs it to an end with this exit code.
fn refused(words: &[&str], code: i32) -> String {
    let output = framepipe(words);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
    said(&output)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A job and its ends.
struct Job {
    input: PathBuf,
    output: PathBuf,
    folder: PathBuf,
    /// How many parts it has.
    parts: usize,
}

impl Job {
    /// Plans the job of `input` into a file or folder of that name beside it.
    fn plan(input: &Path, output: &str, options: &[&str]) -> Job {
        let output = input.parent().unwrap().join(output);
        let folder = PathBuf::from(format!("{}.job", output.display()));
        let mut words = vec!["plan", text(input), text(&output), text(&folder)];
        words.extend(options);
        done(&words);
        let plan = std::fs::read_to_string(folder.join("plan.json")).unwrap();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        Job {
            parts: plan["parts"].as_array().unwrap().len(),
            input: input.to_owned(),
            output,
            folder,
        }
    }

    /// Makes a part with further options.
    fn part(&self, part: usize, options: &[&str]) -> Output {
        let number = part.to_string();
        let mut words = vec!["part", text(&self.folder), &number];
        words.extend(options);
        framepipe(&words)
    }

    /// Makes these parts.
    fn make(&self, parts: impl IntoIterator<Item = usize>) {
        for part in parts {
            let made = self.part(part, &[]);
            assert!(
                made.status.success(),
                "{:?} part {part}: {}",
                self.input,
                said(&made)
            );
        }
    }

    /// Makes all parts, in an order that is none.
    fn make_shuffled(&self) {
        let stride = [7, 5, 3]
            .into_iter()
            .find(|stride| !self.parts.is_multiple_of(*stride))
            .unwrap_or(1);
        self.make((0..self.parts).map(|k| (k * stride + 2) % self.parts));
    }

    fn join(&self) -> String {
        done(&["join", text(&self.folder)])
    }

    /// The hashes of the records, with times.
    fn hashes(&self) -> Vec<(Option<i64>, String)> {
        let mut all = Vec::new();
        for part in 0..self.parts {
            let record = self.folder.join(format!("parts/{part:05}.json"));
            let record: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
            for frame in record["frames"].as_array().unwrap() {
                all.push((frame[0].as_i64(), frame[2].as_str().unwrap().to_owned()));
            }
        }
        all
    }
}

/// Filters in a single run, and gives the hashes that it lists.
fn single_run(input: &Path, output: &Path, options: &[&str]) -> Vec<(Option<i64>, String)> {
    let list = output.with_extension("hashes");
    let mut words = vec![
        "filter",
        text(input),
        text(output),
        "--frame-hashes",
        text(&list),
        "-q",
        "-y",
    ];
    words.extend(options);
    done(&words);
    let list = std::fs::read_to_string(&list).unwrap();
    let rows = list.lines().filter(|line| !line.starts_with('#')).enumerate();
    rows.map(|(number, row)| {
        let columns: Vec<&str> = row.split(' ').collect();
        assert_eq!(columns[0], number.to_string());
        (columns[1].parse().ok(), columns[2].to_owned())
    })
    .collect()
}
