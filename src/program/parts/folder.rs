//! The job folder: where plan, parts and records are, and how each file appears there in one step.

use super::identity::written_at;
use super::plan::FORMAT;
use super::{Data, Digest, ImageFile, Plan, Record};
use crate::engine::none;
use crate::messages::text_file;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How old a temporary file is that nobody works on any more.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes of the longest plan or record that is read: one of some ten million frames.
const MOST_BYTES: u64 = 1 << 30;

/// A job folder that has a plan.
#[derive(Debug, Clone)]
pub struct JobFolder {
    root: PathBuf,
}

/// The right to join a job, until it is dropped. One process has it at a time, where the file system has
/// locks.
#[derive(Debug)]
pub struct Joining {
    _lock: Option<File>,
}

/// Why a job folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A file could not be read or written: what may go well elsewhere or later.
    #[error("cannot {doing} {path}: {cause}")]
    Io {
        /// "read" or "write".
        doing: &'static str,
        /// The file.
        path: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// There is no plan.
    #[error("{0} is no job folder: it has no plan.json; `framepipe plan INPUT OUTPUT {0}` makes one")]
    NoPlan(String),
    /// The folder has another plan.
    #[error("{0} holds another plan already; choose another folder, or remove it")]
    Taken(String),
    /// What the folder holds is not what framepipe wrote.
    #[error("{path}: {problem}")]
    Foreign {
        /// The file.
        path: String,
        /// A sentence.
        problem: String,
    },
}

impl JobError {
    /// True for what may go well elsewhere or later.
    pub fn is_passing(&self) -> bool {
        matches!(self, JobError::Io { .. })
    }
}

/// What became of a job's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinState {
    /// The parts were not joined.
    Unjoined,
    /// They were, and the output is what was made of them.
    Whole,
    /// They were, and some of the output is gone since: the end of a sentence.
    Gone(String),
    /// They were, and the output was changed since: the end of a sentence.
    Changed(String),
}

/// The note that the parts were joined.
#[derive(Debug, Serialize, Deserialize)]
struct JoinNote {
    /// The plan's id.
    plan: String,
    /// The output, if it is one file; records name image files.
    output: Option<ImageFile>,
}

/// How far a part is.
#[derive(Debug, Clone, PartialEq)]
pub enum PartState {
    /// Its record is there, and its data are those that it names, as far as they were read.
    Done(Box<Record>),
    /// It is to be made.
    Missing,
    /// There is a record that is not one of this plan, or whose data are not there: the end of a sentence.
    Broken(String),
}

/// How much of a part's data is read to tell whether they are those of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Nothing: the length alone counts.
    Length,
    /// Nothing, where length and time of writing are those of the record; else all.
    Changed,
    /// All.
    All,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is the part's.
    First,
    /// Another worker's was there before.
    Late,
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JobError + use<> {
    let path = path.display().to_string();
    move |cause| JobError::Io { doing, path, cause }
}

impl JobFolder {
    /// Makes the folder with its plan. One that has the same plan is taken as it is.
    pub fn create(root: &Path, plan: &Plan) -> Result<JobFolder, JobError> {
        let job = JobFolder {
            root: root.to_owned(),
        };
        job.make_parts()?;
        match job.publish(&job.plan_path(), plan, "plan")? {
            Published::First => Ok(job),
            Published::Late if job.plan()?.id == plan.id => Ok(job),
            Published::Late => Err(JobError::Taken(root.display().to_string())),
        }
    }

    /// Opens a folder, with its plan.
    pub fn open(root: &Path) -> Result<(JobFolder, Plan), JobError> {
        let job = JobFolder {
            root: root.to_owned(),
        };
        let plan = job.plan()?;
        Ok((job, plan))
    }

    fn plan(&self) -> Result<Plan, JobError> {
        let path = self.plan_path();
        let plan: Plan =
            read_json(&path)?.ok_or_else(|| JobError::NoPlan(self.root.display().to_string()))?;
        let foreign = |problem: &str| JobError::Foreign {
            path: path.display().to_string(),
            problem: problem.to_owned(),
        };
        if plan.format != FORMAT {
            return Err(foreign(
                "it is of another version of framepipe, which must make the parts, too",
            ));
        }
        if !plan.is_sealed() {
            return Err(foreign("it was changed after it was made; make a new plan"));
        }
        Ok(plan)
    }

    fn plan_path(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// Where data and records are.
    pub fn parts(&self) -> PathBuf {
        self.root.join("parts")
    }

    /// Makes the folder of parts where it is missing: what copies a job may leave out empty folders.
    pub fn make_parts(&self) -> Result<(), JobError> {
        fs::create_dir_all(self.parts()).map_err(failed("write", &self.parts()))
    }

    /// Where the record of a part is.
    fn record_path(&self, part: usize) -> PathBuf {
        self.parts().join(format!("{part:05}.json"))
    }

    /// A name for data of a part while they are made, which no other process uses.
    pub fn work_path(&self, part: usize, extension: &str) -> PathBuf {
        self.hidden(&format!("{part:05}"), extension)
    }

    /// The same of any file: hidden, with machine and process in its name.
    fn hidden(&self, word: &str, extension: &str) -> PathBuf {
        let name = hidden_name(word, std::process::id());
        self.parts().join(format!(".{name}.{extension}"))
    }

    /// Removes the temporary files of a part that a process of this machine left, which has ended. What
    /// cannot be removed stays.
    pub fn remove_work(&self, part: usize, process: u32) {
        let own = format!("{}.", hidden_name(&format!("{part:05}"), process));
        let Ok(entries) = fs::read_dir(self.parts()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            // What is still written to such a file has another dot in front.
            let is_own = name
                .to_str()
                .is_some_and(|name| name.starts_with('.') && name.trim_start_matches('.').starts_with(&own));
            if is_own {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Where the job is.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// How far a part is. Data of the recorded length that were written at the recorded time are not read.
    pub fn state(&self, plan: &Plan, part: usize) -> Result<PartState, JobError> {
        self.state_by(plan, part, Reading::Changed)
    }

    /// The same, once every byte of its data was read.
    pub(super) fn state_of_all_bytes(&self, plan: &Plan, part: usize) -> Result<PartState, JobError> {
        self.state_by(plan, part, Reading::All)
    }

    fn state_by(&self, plan: &Plan, part: usize, reading: Reading) -> Result<PartState, JobError> {
        let path = self.record_path(part);
        let broken = |problem: &str| PartState::Broken(format!("{}: {problem}", path.display()));
        let record: Record = match read_json(&path) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(PartState::Missing),
            Err(JobError::Foreign { problem, .. }) => return Ok(broken(&problem)),
            Err(error) => return Err(error),
        };
        if record.plan != plan.id || record.part != part {
            return Ok(broken("its record is of another plan"));
        }
        if record.engine.starts_with(none::DESCRIPTION) {
            return Ok(broken(
                "its frames are not filtered, but were made with --engine none",
            ));
        }
        let mut problem = self.data_problem(&record.data, reading)?;
        if problem.is_some() {
            let is_joined = match self.join_state_by(plan, Reading::Length)? {
                JoinState::Whole | JoinState::Changed(_) => true,
                JoinState::Unjoined | JoinState::Gone(_) => false,
            };
            // A part's data went into the output. Image files are the output.
            problem = match (&record.data, reading) {
                _ if !is_joined => problem,
                (Data::Images(_), Reading::All) => problem,
                _ => None,
            };
        }
        Ok(match problem {
            None => PartState::Done(Box::new(record)),
            Some(problem) => PartState::Broken(problem),
        })
    }

    /// What is wrong with the files of a part's data, if anything.
    fn data_problem(&self, data: &Data, reading: Reading) -> Result<Option<String>, JobError> {
        match data {
            Data::File { name, digest } => file_problem(&self.parts().join(name), digest, reading),
            Data::Images(files) => files
                .par_iter()
                .find_map_first(|file| file_problem(&file.path, &file.digest, reading).transpose())
                .transpose(),
        }
    }

    /// The right to join; `None` while another process has it.
    pub fn try_joining(&self) -> Result<Option<Joining>, JobError> {
        let path = self.plan_path();
        // Network file systems lock only what can be written.
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file
            .or_else(|_| File::open(&path))
            .map_err(failed("read", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Joining { _lock: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            // A file system without locks.
            Err(TryLockError::Error(_)) => Ok(Some(Joining { _lock: None })),
        }
    }

    /// Notes that the output of the plan is there, whole, so that the parts' data are needed no more: the
    /// file `output`, or else the image files of the records.
    pub fn set_joined(&self, plan: &Plan, output: Option<&Path>) -> Result<(), JobError> {
        let file = |path: &Path| {
            Ok(ImageFile {
                path: path.to_owned(),
                digest: Digest::of_file(path).map_err(failed("read", path))?,
            })
        };
        let note = JoinNote {
            plan: plan.id.clone(),
            output: output.map(file).transpose()?,
        };
        let path = self.joined_path();
        let _ = fs::remove_file(&path);
        self.publish(&path, &note, "joined").map(|_| ())
    }

    /// Forgets that the parts were joined, so that the output is made anew.
    pub fn forget_joined(&self) -> Result<(), JobError> {
        make_room(&self.joined_path())
    }

    /// What became of the output. Files of the recorded length that were written at the recorded time are not
    /// read.
    pub fn join_state(&self, plan: &Plan) -> Result<JoinState, JobError> {
        self.join_state_by(plan, Reading::Changed)
    }

    fn join_state_by(&self, plan: &Plan, reading: Reading) -> Result<JoinState, JobError> {
        let note: JoinNote = match read_json(&self.joined_path()) {
            Ok(Some(note)) => note,
            // Of another version, which did not note what the output is.
            Ok(None) | Err(JobError::Foreign { .. }) => return Ok(JoinState::Unjoined),
            Err(error) => return Err(error),
        };
        if note.plan != plan.id {
            return Ok(JoinState::Unjoined);
        }
        let files = match note.output {
            Some(file) => vec![file],
            None => self.recorded_images(plan)?,
        };
        // What was changed is not to be made again over it, so that it comes first.
        let changed = files.par_iter().filter(|file| file.path.exists());
        let changed = changed
            .find_map_first(|file| file_problem(&file.path, &file.digest, reading).transpose())
            .transpose()?;
        if let Some(problem) = changed {
            return Ok(JoinState::Changed(problem));
        }
        let gone = files.par_iter().find_first(|file| !file.path.exists());
        Ok(match gone {
            Some(file) => JoinState::Gone(format!("{} is gone", file.path.display())),
            None => JoinState::Whole,
        })
    }

    /// The image files of all records.
    fn recorded_images(&self, plan: &Plan) -> Result<Vec<ImageFile>, JobError> {
        let mut files = Vec::new();
        for part in 0..plan.parts.len() {
            match read_json(&self.record_path(part)) {
                Ok(Some(Record {
                    data: Data::Images(images),
                    ..
                })) => files.extend(images),
                // A broken record is its part's concern.
                Ok(_) | Err(JobError::Foreign { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }

    fn joined_path(&self) -> PathBuf {
        self.root.join("joined.json")
    }

    /// Gives data that were made at `work` the name of their content.
    pub fn keep_data(&self, part: usize, work: &Path) -> Result<Data, JobError> {
        let mut digest = Digest::of_file(work).map_err(failed("read", work))?;
        let extension = work.extension().unwrap_or_default().to_string_lossy();
        let name = format!("{part:05}-{}.{extension}", &digest.hash[..16]);
        let path = self.parts().join(&name);
        match Digest::of_file(&path) {
            // The same bytes of another worker stay, whose record holds the time at which they were written.
            Ok(there) if there.is_of_same_bytes(&digest) => {
                fs::remove_file(work).map_err(failed("write", work))?;
                digest = there;
            }
            _ => fs::rename(work, &path).map_err(failed("write", &path))?,
        }
        Ok(Data::File { name, digest })
    }

    /// Makes the record of a part, unless there is one that counts already, whose data stay then.
    pub fn record(&self, plan: &Plan, record: &Record) -> Result<Published, JobError> {
        let path = self.record_path(record.part);
        for _ in 0..10 {
            if self.publish(&path, record, &format!("{:05}", record.part))? == Published::First {
                return Ok(Published::First);
            }
            match self.state(plan, record.part)? {
                PartState::Done(first) => {
                    self.drop_data(record, &first);
                    return Ok(Published::Late);
                }
                // What counts for nothing makes room.
                _ => make_room(&path)?,
            }
        }
        Err(JobError::Foreign {
            path: path.display().to_string(),
            problem: "something keeps putting a record there that is none of this job".to_owned(),
        })
    }

    /// Makes the record of a part in place of any other.
    pub fn replace_record(&self, record: &Record) -> Result<(), JobError> {
        let path = self.record_path(record.part);
        make_room(&path)?;
        self.publish(&path, record, &format!("{:05}", record.part))
            .map(|_| ())
    }

    /// Removes the data of a record that came late.
    fn drop_data(&self, late: &Record, first: &Record) {
        let is_first = |name| matches!(&first.data, Data::File { name: first, .. } if first == name);
        if let Data::File { name, .. } = &late.data
            && !is_first(name)
        {
            let path = self.parts().join(name);
            if let Err(cause) = fs::remove_file(&path) {
                tracing::warn!("cannot remove {}: {cause}", path.display());
            }
        }
    }

    /// Writes `value` under a temporary name and links it to `path`, which succeeds for one of several that
    /// try.
    fn publish(&self, path: &Path, value: &impl Serialize, word: &str) -> Result<Published, JobError> {
        let work = self.hidden(word, "json.tmp");
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&work)?;
            let mut text = serde_json::to_vec(value)?;
            text.push(b'\n');
            file.write_all(&text)?;
            file.sync_all()
        };
        let written = write().map_err(failed("write", &work));
        let linked = written.and_then(|()| match fs::hard_link(&work, path) {
            Ok(()) => Ok(Published::First),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(Published::Late),
            Err(cause) => Err(failed("write", path)(cause)),
        });
        let _ = fs::remove_file(&work);
        // The folder holds the name. Not every file system lets folders be synced.
        if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        linked
    }

    /// Removes temporary files that are older than a day, and data that no record names and that are as old.
    /// Gives their names.
    pub fn clean(&self, plan: &Plan) -> Result<Vec<PathBuf>, JobError> {
        let folder = self.parts();
        let mut kept = Vec::new();
        for part in 0..plan.parts.len() {
            if let PartState::Done(record) = self.state(plan, part)?
                && let Data::File { name, .. } = &record.data
            {
                kept.push(name.clone());
            }
        }
        let mut removed = Vec::new();
        self.make_parts()?;
        for entry in fs::read_dir(&folder).map_err(failed("read", &folder))? {
            let entry = entry.map_err(failed("read", &folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_record = name.ends_with(".json") && !name.starts_with('.');
            let age = entry
                .metadata()
                .and_then(|facts| facts.modified())
                .map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
            if is_record || kept.contains(&name) || age.is_ok_and(|age| age < STALE) {
                continue;
            }
            fs::remove_file(entry.path()).map_err(failed("write", &entry.path()))?;
            removed.push(entry.path());
        }
        Ok(removed)
    }

    /// Removes the data of parts, once the output is there.
    pub fn remove_data(&self, records: &[Record]) {
        for record in records {
            if let Data::File { name, .. } = &record.data {
                let path = self.parts().join(name);
                if let Err(cause) = fs::remove_file(&path) {
                    tracing::warn!("cannot remove {}: {cause}", path.display());
                }
            }
        }
    }
}

/// What is wrong with a file that should be the one of this digest, if anything.
fn file_problem(path: &Path, digest: &Digest, reading: Reading) -> Result<Option<String>, JobError> {
    let gone = |cause: io::Error| Some(format!("{}, which its record names: {cause}", path.display()));
    let facts = match path.metadata() {
        Ok(facts) => facts,
        Err(cause) => return Ok(gone(cause)),
    };
    if facts.len() != digest.bytes {
        return Ok(Some(format!(
            "{} has {} bytes, and its record says {}",
            path.display(),
            facts.len(),
            digest.bytes
        )));
    }
    let is_known = match reading {
        Reading::Length => true,
        Reading::Changed => written_at(&facts) == digest.written,
        Reading::All => false,
    };
    if is_known {
        return Ok(None);
    }
    match Digest::of_file(path) {
        Ok(found) if found.is_of_same_bytes(digest) => Ok(None),
        Ok(_) => Ok(Some(format!("{} is not what was recorded of it", path.display()))),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(gone(cause)),
        Err(cause) => Err(failed("read", path)(cause)),
    }
}

/// Reads a file of ours; `None` if there is none.
fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, JobError> {
    let foreign = |problem: String| JobError::Foreign {
        path: path.display().to_string(),
        problem,
    };
    let text = match text_file::read(path, MOST_BYTES) {
        Ok(Some(text)) => text,
        Ok(None) => {
            return Err(foreign(format!(
                "it is no text of up to {} GiB",
                MOST_BYTES >> 30
            )));
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) if cause.kind() == io::ErrorKind::Other => return Err(foreign(cause.to_string())),
        Err(cause) => return Err(failed("read", path)(cause)),
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|cause| foreign(format!("it is not what framepipe writes there: {cause}")))
}

/// Removes what stands in a record's place: a file of any kind, or an empty folder.
fn make_room(path: &Path) -> Result<(), JobError> {
    let removed = match path.is_dir() && !path.is_symlink() {
        true => fs::remove_dir(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed("write", path)(cause)),
        _ => Ok(()),
    }
}

/// What is between the dots in the name of a temporary file of a process of this machine.
fn hidden_name(word: &str, process: u32) -> String {
    format!("{word}-{}-{process}", host().replace(['/', '.'], "-"))
}

/// This machine's name.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
