//! Frames that are made of decoded pictures.

use super::{Conversion, Depths, floats};
use crate::frame::fact::Fact;
use crate::frame::{Buffer, Colour, ColourModel, Frame, Layout, Metadata, Range, SideData};
use crate::media::ffmpeg::{AvFormat, Decoded, Picture, decoded, picture_facts};
use crate::source::uncompressed::excess::Excess;
use crate::source::video::VideoSource;
use crate::source::video::known::jpeg_xl::JpegXl;
use crate::source::{SourceError, Supply};

/// How pictures become frames.
pub(in crate::source::video) struct FrameMaker {
    /// The format of the pictures.
    pub(in crate::source::video) coded: AvFormat,
    /// Where that is not native.
    pub(in crate::source::video) conversion: Option<Conversion>,
    /// The last rotation seen in a picture.
    pub(in crate::source::video) rotation: Option<SideData>,
    /// Samples that do not fit their format, where they are stored as they are and no decoder makes them.
    pub(in crate::source::video) excess: Option<Excess>,
    /// The depths of samples, where the decoder does not bring them to those of their format.
    pub(in crate::source::video) depths: Option<Depths>,
    /// What the header of a JPEG XL picture says.
    pub(in crate::source::video) jpeg_xl: Option<JpegXl>,
    /// Frames so far.
    pub(in crate::source::video) made: u64,
}

impl FrameMaker {
    /// For pictures of `codec`, whose format the first of them tells.
    pub(in crate::source::video) fn new(codec: &str) -> FrameMaker {
        FrameMaker {
            coded: AvFormat(-1),
            conversion: None,
            rotation: None,
            excess: (codec == "rawvideo").then(Excess::default),
            depths: (codec == "jpeg2000").then(Depths::default),
            jpeg_xl: (codec == "jpegxl").then(JpegXl::default),
            made: 0,
        }
    }

    /// SEI messages say now and then how a picture is rotated, and it holds until they say something else.
    pub(in crate::source::video) fn carry_rotation(&mut self, metadata: &mut Metadata) {
        match metadata.side_data.iter().find(|b| b.fact == Fact::Rotation) {
            Some(block) => self.rotation = Some(block.clone()),
            None => metadata.side_data.extend(self.rotation.clone()),
        }
    }
}

impl VideoSource {
    /// The frame that the decoded picture holds, in a buffer of the pool.
    pub(in crate::source::video) fn frame(&mut self, supply: &Supply) -> Result<Frame, SourceError> {
        self.check_geometry(self.picture.format())?;
        let born = std::time::Instant::now();
        let metadata = self.metadata();
        let mut buffer = supply.take()?;
        let mut frame = match self.take_picture() {
            Some((layout, decoded)) => {
                buffer.host(Box::new(decoded));
                Frame::new(layout, buffer)?
            }
            None => self.copy(buffer)?,
        };
        if let Some(excess) = &self.maker.excess {
            excess.remove(&mut frame);
        }
        if let Some(depths) = &self.maker.depths {
            depths.apply(&mut frame);
        }
        frame.born = born;
        frame.sequence = self.maker.made;
        frame.metadata = metadata;
        self.picture.clear();
        self.maker.made += 1;
        Ok(frame)
    }

    /// Refuses a picture that is not as the first one was, whose samples are `format`.
    pub(in crate::source::video) fn check_geometry(&self, format: AvFormat) -> Result<(), SourceError> {
        let (width, height) = (self.picture.width(), self.picture.height());
        if (format, width, height) == (self.maker.coded, self.info.width, self.info.height) {
            return Ok(());
        }
        Err(self.file.invalid(format!(
            "frame {} is {width}x{height} {}, but the video began as {}x{} {}; split it there, or bring it \
             to one size and format first",
            self.maker.made,
            format.name(),
            self.info.width,
            self.info.height,
            self.maker.coded.name()
        )))
    }

    /// What travels with the frame that is made of the picture.
    pub(in crate::source::video) fn metadata(&mut self) -> Metadata {
        let mut metadata = Metadata {
            colour: self.colour(),
            ..picture_facts(&self.input.demuxer, self.input.stream, &self.picture)
        };
        self.maker.carry_rotation(&mut metadata);
        self.findings.annotations.note_frame(&metadata);
        metadata
    }

    /// The picture itself as a frame's memory, if it was decoded into memory of the run's and needs no
    /// conversion.
    fn take_picture(&mut self) -> Option<(Layout, Decoded)> {
        if self.maker.conversion.is_some() || floats::are_swapped(self.maker.coded, self.info.format) {
            return None;
        }
        let picture = std::mem::replace(&mut self.picture, Picture::new().ok()?);
        decoded(picture, self.info.format)
            .map_err(|picture| self.picture = picture)
            .ok()
    }

    /// The picture copied, and converted where needed, into `buffer`.
    fn copy(&mut self, buffer: Buffer) -> Result<Frame, SourceError> {
        let (width, height) = (self.info.width, self.info.height);
        let layout =
            Layout::new(self.info.format, width, height, 64).map_err(|cause| SourceError::Layout {
                path: self.file.name.clone(),
                cause,
            })?;
        let mut frame = Frame::new(layout, buffer)?;
        let copied = match &mut self.maker.conversion {
            None if floats::are_swapped(self.maker.coded, self.info.format) => {
                floats::read(&self.picture, &mut frame)
            }
            None => self.picture.copy_to(&mut frame),
            Some(conversion) => conversion.run(&self.picture, &mut frame),
        };
        copied.map_err(|e| {
            self.file
                .invalid(format!("frame {} cannot be converted: {e}", self.maker.made))
        })?;
        Ok(frame)
    }

    /// Colour facts of the picture. ProRes says 0 where its matrix is not known. The files of single pictures
    /// of JPEG 2000 have sYCC, of which its decoder says nothing: BT.601's matrix (5) and full range. In
    /// videos they are as the video says.
    pub(in crate::source::video) fn coded_colour(&self) -> Colour {
        let mut colour = self.picture.colour();
        if colour.matrix == 0 && self.decoder.codec_name() == "prores" {
            colour.matrix = Colour::default().matrix;
        }
        let format = self.input.demuxer.format_name();
        let is_single = format == "image2" || format.ends_with("_pipe");
        let is_ycc = || self.picture.format().name().starts_with("yuv");
        if is_single && self.decoder.codec_name() == "jpeg2000" && is_ycc() {
            if colour.range == Range::Unspecified {
                colour.range = Range::Full;
            }
            if colour.matrix == Colour::default().matrix {
                colour.matrix = 5;
            }
        }
        colour
    }

    /// Colour facts of the frame that is made of the picture.
    pub(in crate::source::video) fn colour(&self) -> Colour {
        let mut colour = self.coded_colour();
        let facts = self.picture.format().facts();
        let was_rgb = facts.is_some_and(|f| f.rgb || f.palette);
        if self.info.format.model() == ColourModel::Rgb && !was_rgb {
            colour.matrix = 0;
            colour.range = Range::Full;
        }
        colour.alpha = self.input.demuxer.alpha_kind(self.input.stream, &self.picture);
        colour
    }

    /// True if the container says that pictures go on after `frame`: either further ones come, or it lasts
    /// until then.
    pub(in crate::source::video) fn may_be_last(&self, frame: &Frame) -> bool {
        let Some(pts) = frame.metadata.pts else {
            return false;
        };
        let own = (pts + frame.metadata.duration.unwrap_or(0)) as f64 * self.info.time_base.to_f64();
        self.end.is_some_and(|end| own < end)
    }

    /// Lets the last frame last until the end that the container states.
    pub(in crate::source::video) fn stretch(&self, frame: &mut Frame) {
        if let (Some(end), Some(pts)) = (self.end, frame.metadata.pts) {
            let ticks = (end / self.info.time_base.to_f64()).round() as i64 - pts;
            frame.metadata.duration = Some(ticks).filter(|&ticks| ticks > 0);
        }
    }
}
