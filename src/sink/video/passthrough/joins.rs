//! Where a copied video stream begins, if reading begins mid-file: at a key frame.

/// Start of a copied video stream when reading begins mid-file, in seconds.
#[derive(Default)]
pub(super) struct Join {
    /// The first picture that is left out, for want of a key frame before it.
    pub(super) from: Option<f64>,
    /// The first key frame.
    pub(super) at: Option<f64>,
    /// The cut has been reported.
    pub(super) is_reported: bool,
}

impl Join {
    /// Word of what is left out of the stream, if anything is.
    pub(super) fn sentence(&self, label: &str) -> Option<String> {
        let from = self.from?;
        Some(match self.at {
            Some(at) => format!(
                "{label} begins {:.3} s late: what comes before its first key frame behind the start cannot \
                 be decoded, and is left out",
                at - from
            ),
            None => format!(
                "{label} is left out: what is read of it has no key frame, without which it cannot be decoded"
            ),
        })
    }
}
