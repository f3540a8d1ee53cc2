//! Signs, at the end of a stream, that the input was cut off.

use crate::source::SourceError;
use crate::source::video::VideoSource;
use crate::source::video::known::extent::{self, Extent};
use crate::source::video::known::fragments::has_fragments_behind;
use crate::source::video::known::jpeg_xl::JpegXl;

impl VideoSource {
    /// Looks, at the end, for signs that the input was cut off.
    pub(in crate::source::video) fn check_end(&mut self) -> Result<(), SourceError> {
        let format = self.input.demuxer.format_name();
        let mut extent = Extent::of(&self.file.path, format, &self.decoder.codec_name());
        // Where Matroska is damaged, FFmpeg may pass over the rest of a cluster, or of the file.
        let mut has_left = false;
        let is_matroska = format.starts_with("matroska");
        if extent == Extent::Whole && is_matroska {
            has_left = extent::has_blocks_behind(&self.file.path, self.findings.damage.reached);
            if has_left || self.findings.damage.complaint.is_some() {
                extent = Extent::Unknown;
            }
        }
        // FFmpeg takes foreign bytes between fragments for a box, and passes over what comes behind.
        let reached = self.findings.damage.reached;
        if extent == Extent::Unknown
            && format.contains("mp4")
            && has_fragments_behind(&self.file.path, reached)
        {
            extent = Extent::Broken;
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
        let complaint = self.findings.damage.complaint.take();
        let complaint = complaint.filter(|_| self.findings.cut.is_none());
        if has_left && complaint.is_some() {
            self.damaged("bytes make no sense")?;
        } else if extent == Extent::Unknown && !is_matroska {
            // What comes behind is lost, unless the file states that this is its end.
            self.findings.cut = self.findings.cut.take().or(complaint
                .map(|complaint| format!("its bytes make no sense ({complaint}) where reading ended")));
        }
        // Behind a seek, leading pictures belong to what comes before.
        let head = self
            .findings
            .damage
            .missing_head(&self.decoder.codec_name(), true);
        let head = head.filter(|_| !self.skip.has_sought());
        let is_animated = self.maker.jpeg_xl.as_ref().is_some_and(JpegXl::is_animated);
        if is_animated && self.maker.made == 1 {
            self.findings.lose(
                &self.file,
                "it is an animation, of which the first frame alone is read".to_owned(),
            )?;
        }
        self.findings.steps.end();
        let hole = self.hole();
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
