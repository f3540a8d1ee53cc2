//! The parts of a file that say something. Modules of `containers/` make excerpts, and read them like a whole
//! file.

use super::word::{self, name_once, once};
use crate::messages::metadata_limit::METADATA_LIMIT;

/// The most names of what is left out of one file.
const UNKNOWN_LIMIT: usize = 4096;

/// The parts of a file that say something, as a small file of the same kind.
pub(super) struct Excerpt {
    pub(super) bytes: Vec<u8>,
    pub(super) icc_profile: Option<Vec<u8>>,
    pub(super) too_large: Vec<&'static str>,
    pub(super) damaged: Vec<&'static str>,
    pub(super) unknown: Vec<String>,
    pub(super) hints: Vec<&'static str>,
    pub(super) plays: Option<u32>,
    pub(super) frames: Option<(u32, u32)>,
    pub(super) has_default_picture: bool,
    pub(super) has_shallow_key: bool,
    pub(super) changes: Vec<String>,
}

impl Excerpt {
    pub(super) fn new(head: &[u8]) -> Self {
        Self {
            bytes: head.to_vec(),
            icc_profile: None,
            too_large: Vec::new(),
            damaged: Vec::new(),
            unknown: Vec::new(),
            hints: Vec::new(),
            plays: None,
            frames: None,
            has_default_picture: false,
            has_shallow_key: false,
            changes: Vec::new(),
        }
    }

    /// Notes the name of what is left out.
    pub(super) fn leave_out(&mut self, name: String) {
        name_once(&mut self.unknown, name, UNKNOWN_LIMIT);
    }

    /// True if `len` more bytes have room; else what they are is named. A profile stands apart from the rest.
    pub(super) fn has_room(&mut self, len: u64, word: &'static str) -> bool {
        let taken = if word == word::PROFILE {
            0
        } else {
            self.bytes.len()
        };
        let room = METADATA_LIMIT.saturating_sub(taken);
        let fits = usize::try_from(len).is_ok_and(|len| len <= room);
        if !fits {
            once(&mut self.too_large, word);
        }
        fits
    }
}
