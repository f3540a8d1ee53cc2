//! The record of a part that was made.

use super::Digest;
use crate::frame::{Warning, WarningKind};
use crate::sink::hashes::LoggedFrame;
use crate::source::seam::Seams;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What was made, from which plan, and what proves it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The plan's id.
    pub plan: String,
    /// The part's number, counted from 0.
    pub part: usize,
    /// What it was made into.
    pub data: Data,
    /// The place in presentation of each packet of a video's part, in the file's order.
    pub order: Vec<u32>,
    /// The frames as they went to the encoder.
    pub frames: Vec<LoggedFrame>,
    /// The frames beside the cuts.
    pub seam: Seams,
    /// What was lost or is not as it should be, and what there is to know.
    pub warnings: Vec<Warning>,
    /// What there is to know.
    pub notes: Vec<String>,
    /// What filtered.
    pub engine: String,
    /// Where it was made, and how long that took, in seconds.
    pub host: String,
    /// Seconds.
    pub seconds: f64,
}

/// Where a part's result is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// A file in the folder `parts`.
    File {
        /// Its name.
        name: String,
        /// What its bytes are known by.
        digest: Digest,
    },
    /// Image files in their places.
    Images(Vec<ImageFile>),
}

/// An image file of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFile {
    /// Where it is.
    pub path: PathBuf,
    /// What its bytes are known by.
    pub digest: Digest,
}

impl Record {
    /// True if the decoder concealed damage of the input in this part.
    pub fn has_concealed(&self) -> bool {
        let mut warnings = self.warnings.iter();
        warnings.any(|warning| matches!(warning.kind, WarningKind::Concealed { .. }))
    }
}
