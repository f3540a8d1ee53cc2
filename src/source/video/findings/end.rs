//! Signs, at the end of a stream, that the input was cut off.

use crate::source::SourceError;
use crate::source::video::VideoSource;
use crate::source::video::known::extent::{self, Extent};

impl VideoSource {
    /// Looks, at the end, for signs that the input was cut off.
    pub(in crate::source::video) fn check_end(&mut self) -> Result<(), SourceError> {
        let format = self.input.demuxer.format_name();
        let mut extent = Extent::of(&self.file.path, format, &self.decoder.codec_name());
        // Where Matroska is damaged, FFmpeg may pass over the rest of a cluster, or of the file.
        let mut has_left = false;
        if extent == Extent::Whole && format.starts_with("matroska") {
            has_left = extent::has_blocks_behind(&self.file.path, self.findings.damage.reached);
            if has_left || self.findings.damage.complained {
                extent = Extent::Unknown;
            }
        }
        let (rate, stream) = (self.info.frame_rate, self.input.stream);
        self.findings.cut = self.findings.damage.missing_end(
            &self.input.demuxer,
            stream,
            extent,
            rate,
            self.end,
            self.skip.has_sought(),
        );
        if self.findings.cut.is_none() && has_left && self.findings.damage.complained {
            self.damaged("bytes make no sense")?;
        }
        // Behind a seek, leading pictures belong to what comes before.
        let head = self
            .findings
            .damage
            .missing_head(&self.decoder.codec_name(), true);
        let head = head.filter(|_| !self.skip.has_sought());
        let hole = self.findings.steps.sentence(self.info.time_base);
        // The last picture may have been marked after it came out.
        let is_patched = self.findings.damage.note_patched(self.decoder.patched());
        if self.findings.strict && is_patched {
            return Err(self.file.invalid(
                "one of its last frames is damaged; without --strict the damage is concealed and counted"
                    .to_owned(),
            ));
        }
        match self.findings.cut.as_ref().or(head.as_ref()).or(hole.as_ref()) {
            Some(problem) if self.findings.strict => Err(self.file.invalid(format!(
                "{problem}; the input is incomplete; without --strict what is there is used"
            ))),
            _ => Ok(()),
        }
    }
}
