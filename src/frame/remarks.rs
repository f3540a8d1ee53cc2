//! Notes and warnings of a source or a sink about a run that went on.

/// Sentences for the user, in the order in which they came up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// What was done with the input without a loss: converted, shifted, assumed.
    pub notes: Vec<String>,
    /// What is damaged, missing or lost. A strict run fails for each of them.
    pub warnings: Vec<String>,
}

impl Remarks {
    /// Warnings alone.
    pub fn warnings(warnings: impl IntoIterator<Item = String>) -> Remarks {
        Remarks {
            notes: Vec::new(),
            warnings: warnings.into_iter().collect(),
        }
    }

    /// Adds `more` behind these.
    pub fn append(&mut self, mut more: Remarks) {
        self.notes.append(&mut more.notes);
        self.warnings.append(&mut more.warnings);
    }

    /// One sentence of all warnings for the error of a strict run; `None` without warnings.
    pub fn refusal(&self) -> Option<String> {
        (!self.warnings.is_empty()).then(|| {
            format!(
                "{}; --strict refuses that, without it this is a warning",
                self.warnings.join("; ")
            )
        })
    }
}
