//! Where a copied video stream begins, if reading begins mid-file: at a key frame.

/// Start of a copied video stream when reading begins mid-file, in seconds.
#[derive(Default)]
pub(in crate::sink::video) struct Join {
    /// The first picture that is left out, for want of a key frame before it.
    from: Option<f64>,
    /// The first key frame.
    at: Option<f64>,
    /// The cut has been reported.
    pub(in crate::sink::video) is_reported: bool,
}

impl Join {
    /// True once the first key frame was read.
    pub(in crate::sink::video) fn has_begun(&self) -> bool {
        self.at.is_some()
    }

    /// True if the stream begins with the picture at `time`, which is left out otherwise.
    pub(super) fn begins_with(&mut self, time: f64, is_key: bool) -> bool {
        if is_key {
            self.at = Some(time);
        } else {
            self.from = self.from.map_or(Some(time), |from| Some(from.min(time)));
        }
        is_key
    }

    /// Word of what is left out of the stream, if anything is.
    pub(in crate::sink::video) fn sentence(&self, label: &str) -> Option<String> {
        let from = self.from?;
        Some(match self.at {
            Some(at) => format!(
                "{label} begins {:.3} s late: what comes before its first key frame after the start cannot \
                 be decoded, and is left out",
                at - from
            ),
            None => format!(
                "{label} is left out: what is read of it has no key frame, without which it cannot be decoded"
            ),
        })
    }
}
