//! Signs, at the end of a stream, that the input was cut off.

use crate::source::SourceError;
use crate::source::video::VideoSource;
use crate::source::video::known::extent::Extent;
use crate::source::video::known::extent::fragments::breaks_off;
use crate::source::video::known::extent::nut::has_frames_behind;
use crate::source::video::known::extent::sizes::{Rest, classify_rest, extent_of};
use crate::source::video::known::extent::{avi, blocks, joined};
use crate::source::video::known::jpeg_xl::JpegXl;

/// So many bytes, and the verb.
fn are(bytes: u64) -> String {
    match bytes {
        1 => "byte is".to_owned(),
        _ => format!("{bytes} bytes are"),
    }
}

impl VideoSource {
    /// Looks, at the end, for signs that the input was cut off.
    pub(in crate::source::video) fn check_end(&mut self) -> Result<(), SourceError> {
        let format = self.input.demuxer.format_name();
        let mut extent = extent_of(&self.file.path, format, &self.decoder.codec_name());
        // Where Matroska is damaged, FFmpeg may pass over the rest of a cluster, or of the file.
        let mut has_left = false;
        let is_matroska = format.starts_with("matroska");
        if is_matroska && matches!(extent, Extent::Whole | Extent::Unknown) {
            let rest = classify_rest(&self.file.path, self.findings.damage.reached);
            has_left = rest == Rest::Blocks && extent == Extent::Whole;
            if rest == Rest::NoElement {
                extent = Extent::Broken;
            } else if has_left || self.findings.damage.complaint.is_some() {
                extent = Extent::Unknown;
            }
        }
        // FFmpeg takes foreign bytes between fragments for a box, and passes over what comes behind.
        let reached = self.findings.damage.reached;
        if extent == Extent::Unknown && format.contains("mp4") && breaks_off(&self.file.path, reached) {
            extent = Extent::Broken;
        }
        // FFmpeg looks for the next mark behind damage, and there may be none any more.
        let may_lack = format == "nut" && matches!(extent, Extent::Whole | Extent::Unknown);
        if may_lack && has_frames_behind(&self.file.path, reached) {
            extent = Extent::Broken;
        }
        // FFmpeg fills up the last frame of bare DV.
        if format == "dv" && self.input.demuxer.length().is_some_and(|length| length < reached) {
            extent = Extent::MidPacket;
        }
        let (rate, stream) = (self.info.frame_rate, self.input.stream);
        if self.findings.tail.breaks_off(&self.input.demuxer, stream) {
            extent = Extent::MidPacket;
        }
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
        } else if extent == Extent::Unknown && (!is_matroska || !self.file.path.is_file()) {
            // What comes behind is lost, unless the file states that this is its end.
            self.findings.cut = self.findings.cut.take().or(complaint
                .map(|complaint| format!("its bytes make no sense ({complaint}) where reading ended")));
        }
        if self.findings.cut.is_none() {
            self.findings.cut = self.lost_of_index().or_else(|| self.lost_of_mxf());
        }
        let format = self.input.demuxer.format_name();
        if self.findings.cut.is_none() && !self.skip.has_sought() {
            self.findings.cut = blocks::lost(&self.file.path, format);
        }
        let kept = self.input.demuxer.kept();
        if self.findings.cut.is_none() && joined::begins_again(&self.file.path, kept, format, reached) {
            self.findings.cut = Some(joined::SENTENCE.to_owned());
        }
        if self.findings.cut.is_none() {
            self.findings.cut = self.lost_of_listed();
        }
        let is_animated = self.maker.jpeg_xl.as_ref().is_some_and(JpegXl::is_animated);
        if is_animated && self.maker.made == 1 {
            self.findings.lose(
                &self.file,
                "it is an animation; only its first frame is read".to_owned(),
            )?;
        }
        self.findings.steps.end();
        // After a seek, leading pictures belong to what comes before.
        let head = self.missing_head(true).filter(|_| !self.skip.has_sought());
        let hole = self.hole().and_then(|hole| hole.loss()).map(String::from);
        // The last picture may have been marked after it came out.
        let is_patched = self.findings.damage.note_patched(self.decoder.patched());
        if self.findings.strict && is_patched {
            return Err(self.file.invalid(
                "one of its last frames is damaged; without --strict the damage is concealed and counted"
                    .to_owned(),
            ));
        }
        self.judge(head.as_ref().or(hole.as_ref()))
    }

    /// Looks, behind all stretches of a file that others read, for what none of them can see: whether their
    /// packets, `read` together, are all that there are.
    pub(in crate::source::video) fn check_stretches(&mut self, read: u64) -> Result<(), SourceError> {
        let (demuxer, damage) = (&self.input.demuxer, &mut self.findings.damage);
        damage.read = read;
        let short = damage.short_of_index(demuxer, self.input.stream);
        self.findings.cut = short.or_else(|| blocks::lost(&self.file.path, demuxer.format_name()));
        self.judge(None)
    }

    /// An error of what is missing, or of `other`, in a strict run.
    fn judge(&self, other: Option<&String>) -> Result<(), SourceError> {
        match self.findings.cut.as_ref().or(other) {
            Some(problem) if self.findings.strict => Err(self.file.invalid(format!(
                "{problem}; the input is incomplete; without --strict what is there is used"
            ))),
            _ => Ok(()),
        }
    }

    /// Pictures of an MXF file that its track counts and that are not there, as a sentence: FFmpeg goes on
    /// behind what it cannot read.
    fn lost_of_mxf(&self) -> Option<String> {
        let (demuxer, read) = (&self.input.demuxer, self.findings.damage.read);
        let is_whole =
            demuxer.format_name() == "mxf" && !self.skip.has_sought() && demuxer.jumps().count == 0;
        let facts = demuxer.stream(self.input.stream).filter(|_| is_whole)?;
        // The track's ticks are frames.
        let (num, den) = facts.mean_rate;
        let frames = facts.duration.and_then(|ticks| u64::try_from(ticks).ok())?;
        let counts_frames = (facts.time_base.num, facts.time_base.den) == (den, num);
        (counts_frames && read < frames).then(|| format!("only {read} of its {frames} frames are there"))
    }

    /// The first file of a list that was cut off, as a sentence.
    fn lost_of_listed(&self) -> Option<String> {
        self.input.demuxer.listed().iter().find_map(|file| {
            let lost = match extent_of(file, "", "") {
                Extent::Missing(bytes) => format!("its last {} missing", are(bytes)),
                Extent::Cut | Extent::MidPacket => "its end is missing".to_owned(),
                Extent::Broken | Extent::Whole | Extent::Unknown => return None,
            };
            Some(format!(
                "{}, which it names, was cut off: by its own account {lost}",
                file.display()
            ))
        })
    }

    /// Pictures of an AVI file that its index does not lead to though its header counts them, as a sentence.
    /// Those behind a lost one come too early.
    fn lost_of_index(&self) -> Option<String> {
        let (demuxer, damage) = (&self.input.demuxer, &self.findings.damage);
        let is_read_by_index = demuxer.indexed_packets(self.input.stream).is_some()
            && demuxer.jumps().count == 0
            && !self.skip.has_sought();
        let facts = demuxer.stream(self.input.stream).filter(|_| is_read_by_index)?;
        let frames = u64::try_from(facts.frames).ok()?;
        // A tick is a frame.
        let ends = (damage.stream_end / facts.time_base.to_f64()).round() as u64;
        if damage.read >= frames || ends >= frames {
            return None;
        }
        let there = ends + avi::repeats_at_end(&self.file.path, self.input.stream)?;
        (there < frames).then(|| format!("only {there} of its {frames} frames are there"))
    }
}
