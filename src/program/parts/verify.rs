//! The proof that all parts together are the whole: every part is there and of this plan, every cut is a cut
//! between two frames that follow one another, and counts agree.

use super::{Extent, JobError, JobFolder, PartState, Plan, Record};
use crate::wording::counted;

/// Records that fit together.
#[derive(Debug, Clone)]
pub struct Verified {
    /// One a part, in order.
    pub records: Vec<Record>,
    /// Frames of all parts.
    pub frames: u64,
}

/// Why parts cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Parts are to be made still.
    #[error("{count} of {} missing: {missing}", parts_are(*.of))]
    Missing {
        /// How many.
        count: usize,
        /// Of how many.
        of: usize,
        /// Their numbers.
        missing: String,
    },
    /// A part's record or data are not what they should be.
    #[error("part {part}: {problem}; make it again with `framepipe part {job} {part} --again`")]
    Broken {
        /// The job folder.
        job: String,
        /// Its number.
        part: usize,
        /// What is wrong.
        problem: String,
    },
    /// Two parts do not fit together.
    #[error("parts {part} and {next} do not fit together: {problem}", next = .part + 1)]
    Seam {
        /// The number of the first one.
        part: usize,
        /// What is wrong.
        problem: String,
    },
    /// The caller wanted no more.
    #[error("it was interrupted")]
    Stopped,
    /// The folder cannot be read.
    #[error(transparent)]
    Job(#[from] JobError),
}

fn parts_are(count: usize) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(count as u64, "part"))
}

/// Numbers as lists of arrays take them: 3,7-9.
pub fn ranges(numbers: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let Some(&first) = rest.first() {
        let length = rest.iter().zip(first..).take_while(|(a, b)| *a == b).count();
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&first.to_string());
        if length > 1 {
            text.push_str(&format!("-{}", first + length - 1));
        }
        rest = &rest[length..];
    }
    text
}

/// Checks all parts of a job, of whose data every byte is read. It ends early once `is_stopped`.
pub fn verify(job: &JobFolder, plan: &Plan, is_stopped: impl Fn() -> bool) -> Result<Verified, VerifyError> {
    let mut records = Vec::with_capacity(plan.parts.len());
    let mut missing = Vec::new();
    let broken = |part, problem| VerifyError::Broken {
        job: job.root().display().to_string(),
        part,
        problem,
    };
    // What is missing is found before anything is read.
    for part in 0..plan.parts.len() {
        match job.state(plan, part)? {
            PartState::Done(_) => {}
            PartState::Missing => missing.push(part),
            PartState::Broken(problem) => return Err(broken(part, problem)),
        }
    }
    if !missing.is_empty() {
        return Err(VerifyError::Missing {
            count: missing.len(),
            of: plan.parts.len(),
            missing: ranges(&missing),
        });
    }
    for part in 0..plan.parts.len() {
        if is_stopped() {
            return Err(VerifyError::Stopped);
        }
        match job.state_of_all_bytes(plan, part)? {
            PartState::Done(record) => records.push(*record),
            PartState::Missing => return Err(broken(part, "its record is gone".to_owned())),
            PartState::Broken(problem) => return Err(broken(part, problem)),
        }
    }
    for (part, (planned, record)) in plan.parts.iter().zip(&records).enumerate() {
        if let Some(problem) = wrong_count(planned.frames, record) {
            return Err(broken(part, problem));
        }
    }
    for (part, pair) in records.windows(2).enumerate() {
        let is_by_time = matches!(plan.parts[part].extent, Extent::Ticks { .. });
        if let Some(problem) = seam_problem(&pair[0], &pair[1]).filter(|_| is_by_time) {
            return Err(VerifyError::Seam { part, problem });
        }
    }
    if let (Some(last), Some(Extent::Ticks { end: None, .. })) =
        (records.last(), plan.parts.last().map(|part| part.extent))
        && !last.seam.ended
    {
        return Err(broken(
            records.len() - 1,
            "it did not reach the input's end".to_owned(),
        ));
    }
    let frames = records.iter().map(|record| record.frames.len() as u64).sum();
    Ok(Verified { records, frames })
}

/// What is wrong with the number of frames, if anything.
fn wrong_count(planned: Option<u64>, record: &Record) -> Option<String> {
    let found = record.frames.len() as u64;
    let planned = planned.filter(|&planned| planned != found)?;
    let found = counted(found, "frame");
    Some(format!("it has {found}, and {planned} were planned"))
}

/// Why the second of two parts does not follow the first, if it does not.
fn seam_problem(before: &Record, after: &Record) -> Option<String> {
    let (Some(next), Some(first)) = (before.seam.next, after.seam.first) else {
        return Some("the frame beside the cut was not seen from both sides".to_owned());
    };
    if next == first {
        return None;
    }
    if before.has_concealed() || after.has_concealed() {
        return Some(
            "the input is damaged at the cut, and a decoder that begins there conceals the damage in another \
             way; plan the job again in another folder, with another number of --parts, or with --parts 1"
                .to_owned(),
        );
    }
    if next.time != first.time {
        return Some(format!(
            "one saw the next frame at tick {}, and the other begins at tick {}",
            next.time, first.time
        ));
    }
    Some("the frame beside the cut was decoded differently, as decoders of unlike versions may do".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }
}
