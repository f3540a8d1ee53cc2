//! Notes and warnings of a source or a sink about a run that went on.

/// Sentences for the user, in the order in which they came up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Changes without a loss: converted, shifted, assumed.
    pub notes: Vec<String>,
    /// Damage, missing parts and losses. A strict run fails for each.
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

    /// Appends `more`.
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
