//! Notes and warnings of a source or a sink about a run that went on.

use super::concealed::Concealed;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// A sentence about damage, a missing part or a loss, and what it is about where a program asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// For the user.
    pub text: String,
    /// What it is about.
    pub kind: WarningKind,
}

/// What a warning is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WarningKind {
    /// Damage of an input was concealed.
    Concealed {
        /// The input's name; empty where the text does not begin with it.
        input: String,
        /// How much.
        found: Concealed,
    },
    /// Frames of an input are missing.
    FramesMissing,
    /// Anything else.
    Other,
}

impl Warning {
    /// Damage of the input `name` that was concealed.
    pub fn concealed(input: &str, found: Concealed) -> Warning {
        let kind = WarningKind::Concealed {
            input: String::new(),
            found,
        };
        let text = found.to_string();
        let warning = Warning { text, kind };
        match input {
            "" => warning,
            input => warning.of_input(input),
        }
    }

    /// The warning about the input of this name, which stands before it.
    #[must_use]
    pub fn of_input(mut self, name: &str) -> Warning {
        self.text = format!("{name}: {}", self.text);
        if let WarningKind::Concealed { input, .. } = &mut self.kind {
            name.clone_into(input);
        }
        self
    }

    /// The warning with its words, and the name of its input, as `change` makes them.
    #[must_use]
    pub fn changed(&self, change: impl Fn(&str) -> String) -> Warning {
        let mut changed = self.clone();
        changed.text = change(&changed.text);
        if let WarningKind::Concealed { input, .. } = &mut changed.kind {
            *input = change(input);
        }
        changed
    }

    /// True if frames of an input were lost, so that those after them are counted lower.
    pub fn loses_frames(&self) -> bool {
        match &self.kind {
            WarningKind::Concealed { found, .. } => found.packets > 0,
            WarningKind::FramesMissing => true,
            WarningKind::Other => false,
        }
    }
}

impl From<String> for Warning {
    fn from(text: String) -> Warning {
        Warning {
            text,
            kind: WarningKind::Other,
        }
    }
}

impl From<Warning> for String {
    fn from(warning: Warning) -> String {
        warning.text
    }
}

impl Deref for Warning {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Sentences for the user, in the order in which they came up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Changes without a loss: converted, shifted, assumed.
    pub notes: Vec<String>,
    /// Damage, missing parts and losses. A strict run fails for each.
    pub warnings: Vec<Warning>,
}

impl Remarks {
    /// Warnings alone.
    pub fn warnings(warnings: impl IntoIterator<Item = impl Into<Warning>>) -> Remarks {
        Remarks {
            notes: Vec::new(),
            warnings: warnings.into_iter().map(Into::into).collect(),
        }
    }

    /// Adds warnings.
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = impl Into<Warning>>) {
        self.warnings.extend(warnings.into_iter().map(Into::into));
    }

    /// Appends `more`.
    pub fn append(&mut self, mut more: Remarks) {
        self.notes.append(&mut more.notes);
        self.warnings.append(&mut more.warnings);
    }

    /// The sentences of the warnings.
    pub fn warning_texts(&self) -> Vec<String> {
        self.warnings.iter().map(|warning| warning.text.clone()).collect()
    }

    /// One sentence of all warnings for the error of a strict run; `None` without warnings.
    pub fn refusal(&self) -> Option<String> {
        (!self.warnings.is_empty()).then(|| {
            format!(
                "{}; --strict refuses that, without it this is a warning",
                self.warning_texts().join("; ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_frames_are_told_from_patched_ones() {
        let found = |packets, frames| Warning::concealed("a.mkv", Concealed { packets, frames });
        assert!(found(1, 0).loses_frames() && found(1, 2).loses_frames());
        assert!(!found(0, 2).loses_frames());
        assert_eq!(
            found(1, 0).text,
            "a.mkv: 1 corrupt packet concealed or skipped; --strict would fail"
        );
        let missing = "2 frames are missing at one place after 1.960 s";
        assert!(!Warning::from(missing.to_owned()).loses_frames());
    }
}
