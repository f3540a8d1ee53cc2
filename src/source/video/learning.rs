//! What is known of a stream once its first picture is decoded: its facts, and what the decoder does not give
//! of it.

use super::VideoSource;
use super::decoding::{Conversion, are_swapped};
use super::known::{crop, dolby, layers};
use crate::frame::{ColourModel, Turn};
use crate::media::containers::edits;
use crate::media::convert::{is_full_range_name, nearest_native};
use crate::media::ffmpeg::{AvFormat, Medium, Outline, picture_facts};
use crate::source::decoding_cost::DecodingCost;
use crate::source::{Origin, ReadRange, SourceError};
use crate::wording::tidy;

impl VideoSource {
    /// Fills in the format of frames from the first picture, and sees to its conversion. Gives the end of the
    /// description, and whether frames are the pictures as they are.
    fn learn_format(&mut self) -> Result<(String, bool), SourceError> {
        let coded = self.picture.format();
        let (native, exact) = nearest_native(coded).ok_or_else(|| {
            self.file.invalid(format!(
                "its pictures are {}, which cannot be brought into ordinary memory",
                coded.name()
            ))
        })?;
        let (width, height) = (self.picture.width(), self.picture.height());
        (self.info.format, self.info.width, self.info.height) = (native, width, height);
        self.maker.coded = coded;
        let chroma = coded.facts().map(|facts| (facts.log2_x, facts.log2_y));
        let is_brought_up = native.model() == ColourModel::Yuv && native.chroma_subsampling() == (0, 0);
        self.info.stored_chroma = chroma.filter(|&chroma| is_brought_up && chroma != (0, 0));
        let is_plain = coded.name() == native.name() || is_full_range_name(coded);
        let mut conversion = String::new();
        if are_swapped(coded, native) {
            conversion = format!(", read as {native}");
        } else if !is_plain {
            let from = self.coded_colour();
            let to = self.colour();
            let target = AvFormat::from_name(native.name())
                .ok_or_else(|| self.file.invalid(format!("this FFmpeg does not know {native}")))?;
            let made =
                Conversion::new((coded, from), (target, to), native, (width, height)).map_err(|e| {
                    self.file
                        .invalid(format!("{} cannot be converted to {native}: {e}", coded.name()))
                })?;
            self.maker.conversion = Some(made);
            let (from, mut care) = (coded.name(), "");
            if !exact {
                care = ", which loses precision";
                let inexact = format!("its {from} samples become {native}, which loses precision");
                self.findings.note_inexact(&self.file, inexact)?;
            }
            conversion = format!(", converted from {from} to {native}{care}");
        }
        Ok((conversion, is_plain))
    }

    /// Fills in the stream's facts from its first picture.
    pub(super) fn learn(&mut self) -> Result<(), SourceError> {
        let (conversion, is_plain) = self.learn_format()?;
        let (width, height) = (self.info.width, self.info.height);
        self.info.brings_memory = is_plain && self.decoder.takes_memory();
        self.info.colour = self.colour();
        if let Some(depths) = &mut self.maker.depths {
            depths.learn(self.maker.coded, self.info.format, &self.info.colour);
            if let Some(signed) = depths.signed() {
                self.findings.lose(&self.file, signed)?;
            }
        }
        let jpeg_xl = self.maker.jpeg_xl.as_ref();
        if let Some(lost) = jpeg_xl.and_then(|header| header.lost_samples(self.info.format)) {
            self.findings.lose(&self.file, lost)?;
        }
        self.info.sample_aspect = self.input.demuxer.sample_aspect(self.input.stream, &self.picture);
        let facts = picture_facts(&self.input.demuxer, self.input.stream, &self.picture);
        if let Some(problem) = dolby::unfit_base_layer(&self.info.side_data, &facts.side_data) {
            return Err(self.file.invalid(problem));
        }
        self.info.field_order = facts.field_order;
        self.info.turn = Turn::of_blocks(&facts.side_data);
        self.info.frames = match self.info.is_single {
            true => Some(1),
            false => self.expected_frames(),
        };
        self.info.frames_are_estimated = !self.info.is_single && self.counted_frames().is_none();
        let length = self.input.demuxer.length();
        let frames = self.info.frames.filter(|&frames| frames > 0);
        self.info.decoding_cost = length.zip(frames).map(|(bytes, frames)| {
            let pixels = width as f64 * height as f64;
            let (codec, is_baseline) = (self.decoder.codec_name(), self.decoder.is_baseline());
            DecodingCost::new(&codec, is_baseline, pixels, bytes as f64 / frames as f64)
        });
        let (demuxer, stream) = (&self.input.demuxer, self.input.stream);
        let others = (0..demuxer.stream_count()).filter(|&index| index != stream);
        let label = |index| Some(demuxer.stream(index)?.label(index));
        let unread = demuxer.unread_subtitles().iter();
        let unread = unread.map(|name| format!("subtitles of {name}"));
        // Without memory for it, nothing of a pipe is kept, which is said.
        let outline = || Outline::of(demuxer).ok();
        self.info.origin = Some(Origin {
            path: self.file.path.clone(),
            stream,
            others: others.filter_map(label).chain(unread).collect(),
            access: self.file.access,
            stretch: ReadRange::default(),
            outline: (!self.file.path.is_file()).then(outline).flatten(),
        });
        let rate = self
            .info
            .frame_rate
            .map_or_else(String::new, |r| format!(", {} frames/s", tidy(r.to_f64())));
        self.info.description = format!(
            "stream {} of {} ({}), {width}x{height} {}{rate}{conversion}",
            self.input.stream,
            self.file.name,
            self.decoder.codec_name(),
            self.maker.coded.name(),
        );
        Ok(())
    }

    /// The number of frames that the container states.
    fn counted_frames(&self) -> Option<u64> {
        let facts = self.input.demuxer.stream(self.input.stream)?;
        if facts.is_cover {
            return Some(1);
        }
        u64::try_from(facts.frames).ok().filter(|&frames| frames > 0)
    }

    /// A hint for the progress bar.
    fn expected_frames(&self) -> Option<u64> {
        if let Some(frames) = self.counted_frames() {
            return Some(frames);
        }
        let facts = self.input.demuxer.stream(self.input.stream)?;
        let rate = match facts.mean_rate {
            (num, den) if num > 0 && den > 0 => f64::from(num) / f64::from(den),
            _ => self.info.frame_rate?.to_f64(),
        };
        // Matroska's clock runs from zero, not from the first frame.
        let start = facts
            .start
            .map_or(0.0, |at| at as f64 * facts.time_base.to_f64())
            .max(0.0);
        let seconds = match self.stated_seconds() {
            Some(seconds) => seconds - start,
            None => facts
                .duration
                .map(|d| d as f64 * facts.time_base.to_f64())
                .or_else(|| self.input.demuxer.duration())?,
        };
        let frames = (seconds * rate).round();
        (1.0..1e15).contains(&frames).then_some(frames as u64)
    }

    /// Where the stream ends on the clock by the container's word for it: Matroska's for a stream, Flash
    /// video's for the whole file. Neither says how long the last picture lasts.
    pub(super) fn stated_seconds(&self) -> Option<f64> {
        match self.input.demuxer.stream_tag(self.input.stream, c"DURATION") {
            Some(text) => parse_clock(&text),
            None if self.input.demuxer.format_name() == "flv" && self.input.demuxer.stream_count() == 1 => {
                self.input.demuxer.duration()
            }
            None => None,
        }
    }

    /// Warns of alpha or a second view that this decoder drops. If the picture has alpha, nothing is lost.
    pub(super) fn find_lost_layers(&mut self) -> Result<(), SourceError> {
        if self
            .maker
            .coded
            .facts()
            .is_some_and(|facts| facts.alpha || facts.palette)
        {
            return Ok(());
        }
        let codec = self.decoder.codec_name();
        let lost = if self.input.demuxer.claims_alpha(self.input.stream) {
            if self.decoder.reads_alpha() {
                tracing::debug!(
                    path = %self.file.name,
                    "marked as having alpha, which its packets do not hold"
                );
                return Ok(());
            }
            format!("its alpha is lost: this FFmpeg has no decoder that reads the alpha of {codec}")
        } else if codec == "hevc" && layers::has_hevc_layers(self.input.demuxer.extradata(self.input.stream))
        {
            "its second layer is lost: this FFmpeg does not decode the alpha or second view that HEVC can \
             hold"
                .to_owned()
        } else if self.input.demuxer.format_name().contains("mp4") && layers::has_alpha_item(&self.file.path)
        {
            format!(
                "its alpha is lost: this FFmpeg does not join the alpha of {codec} stills to their pictures"
            )
        } else {
            return Ok(());
        };
        self.findings.lose(&self.file, lost)
    }

    /// Names a part of the picture that the container says is to be shown, where all of it is read.
    pub(super) fn find_lost_crop(&mut self) -> Result<(), SourceError> {
        let is_video = |index: &usize| {
            let facts = self.input.demuxer.stream(*index);
            facts.is_some_and(|facts| facts.medium == Medium::Video)
        };
        let nth = (0..self.input.stream).filter(is_video).count();
        let (width, height) = (self.info.width, self.info.height);
        let Some(shown) = crop::shown(&self.file.path, nth, (width as u64, height as u64)) else {
            return Ok(());
        };
        self.findings.lose(
            &self.file,
            format!(
                "its container says that {}x{} of its {width}x{height} pixels are to be shown, and all \
             of them are read",
                shown.0, shown.1
            ),
        )
    }

    /// Names what of the stream's edit list FFmpeg does not follow.
    pub(super) fn find_lost_edits(&mut self) -> Result<(), SourceError> {
        if !self.input.demuxer.format_name().contains("mp4") {
            return Ok(());
        }
        let lists = edits::EditLists::read(&self.file.path);
        let Some(list) = lists.and_then(|lists| lists.of(self.input.stream)) else {
            return Ok(());
        };
        self.findings.damage.is_edited = list.has_parts || list.unfollowed.is_some();
        let Some(words) = list.unfollowed else {
            return Ok(());
        };
        self.findings.lose(
            &self.file,
            format!(
                "its edit list has {words}, which FFmpeg does not follow: frames may be repeated, missing or \
                 at other times"
            ),
        )
    }
}

/// Seconds of a clock such as "00:01:02.5".
fn parse_clock(text: &str) -> Option<f64> {
    text.trim().split(':').try_fold(0.0, |seconds, part| {
        let part: f64 = part.parse().ok()?;
        (part.is_finite() && part >= 0.0).then_some(seconds * 60.0 + part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read() {
        assert_eq!(parse_clock("00:01:02.500000000"), Some(62.5));
        assert_eq!(parse_clock("nonsense"), None);
    }
}
