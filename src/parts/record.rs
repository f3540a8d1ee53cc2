//! The record of a part that was made.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
    /// The place in presentation of each packet of a film's part, in the file's order.
    pub order: Vec<u32>,
    /// The frames as they went to the encoder.
    pub frames: Vec<RecordedFrame>,
    /// The frames beside the cuts.
    pub seam: Seam,
    /// What was lost or is not as it should be, and what there is to know.
    pub warnings: Vec<String>,
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
        /// Its length.
        bytes: u64,
        /// The hash of all of it, in hexadecimal digits.
        hash: String,
    },
    /// Image files in their places: names and lengths.
    Images(Vec<(PathBuf, u64)>),
}

/// A frame as it went to the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFrame(
    /// When it is shown, in ticks of the input's time base, counted from the beginning of the input.
    pub Option<i64>,
    /// How long, in the same ticks.
    pub Option<i64>,
    /// The hash of its samples.
    #[serde(serialize_with = "write_hash", deserialize_with = "read_hash")]
    pub u128,
);

/// A frame beside a cut, as the decoder gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside(
    /// When it is shown, in ticks.
    pub i64,
    /// The hash of its samples.
    #[serde(serialize_with = "write_hash", deserialize_with = "read_hash")]
    pub u128,
);

/// What was seen of the cuts around the part. Empty where frames are known by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seam {
    /// The first frame of the part.
    pub first: Option<Beside>,
    /// The first frame behind it.
    pub next: Option<Beside>,
    /// True if the input ended with the part.
    pub ended: bool,
}

fn write_hash<S: Serializer>(hash: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{hash:032x}"))
}

fn read_hash<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    let text = String::deserialize(deserializer)?;
    u128::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
}
