//! The facts that a decoded picture and its container state together.
#![allow(unsafe_code)]

use crate::frame::fact::Fact;
use crate::frame::{AlphaKind, Colour, FieldOrder, Metadata, SideData};
use crate::media::ffmpeg::pictures::decoder::is_png;
use crate::media::ffmpeg::{Demuxer, Picture};
use ffmpeg_next::ffi;
use std::ffi::c_int;

/// The facts of `picture`, which was decoded from stream `index` of `demuxer`, without those that belong to
/// the whole stream.
pub(crate) fn picture_facts(demuxer: &Demuxer, index: usize, picture: &Picture) -> Metadata {
    let field_order = match picture.field_order() {
        // Codecs that code each picture by itself often cannot say it, as VP8, VP9 and AV1 never can, and
        // leave it to the container.
        FieldOrder::Progressive => demuxer.stated_field_order(index),
        order => order,
    };
    Metadata {
        pts: picture.timestamp(),
        duration: picture.duration(),
        colour: Colour {
            alpha: demuxer.alpha_kind(index, picture),
            ..picture.colour()
        },
        sample_aspect: demuxer.sample_aspect(index, picture),
        field_order,
        side_data: facts_of(picture, demuxer.is_png(index)),
        ..Metadata::default()
    }
}

/// The picture's blocks. FFmpeg makes the chromaticities of a PNG a mastering display without luminance, even
/// those of the usual primaries.
fn facts_of(picture: &Picture, is_png: bool) -> Vec<SideData> {
    // Ten fractions, a flag for the primaries, and this one.
    let has_luminance = |block: &SideData| {
        block
            .data
            .get(84..88)
            .is_some_and(|flag| flag.iter().any(|&byte| byte != 0))
    };
    let mut blocks = picture.side_data();
    blocks.retain(|block| !is_png || block.fact != Fact::MasteringDisplay || has_luminance(block));
    blocks
}

impl Demuxer {
    /// How colours go with the alpha of a picture of stream `index`: OpenEXR's are multiplied by it.
    pub(crate) fn alpha_kind(&self, index: usize, picture: &Picture) -> AlphaKind {
        let has_alpha = picture.format().facts().is_some_and(|facts| facts.alpha);
        match self.codec_id(index) {
            Some(ffi::AVCodecID::AV_CODEC_ID_EXR) if has_alpha => AlphaKind::Associated,
            _ => AlphaKind::Straight,
        }
    }

    fn codec_id(&self, index: usize) -> Option<ffi::AVCodecID> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: the stream and its parameters belong to the open context.
        Some(unsafe { (*(*stream).codecpar).codec_id })
    }

    /// True if stream `index` is PNG pictures.
    fn is_png(&self, index: usize) -> bool {
        self.codec_id(index).is_some_and(is_png)
    }

    /// The field order that the container states for PNG, intra-only codecs, VP8, VP9 and AV1; progressive
    /// for others, whose pictures say it themselves.
    fn stated_field_order(&self, index: usize) -> FieldOrder {
        let Some(stream) = self.stream_ptr(index) else {
            return FieldOrder::Progressive;
        };
        use ffi::AVCodecID::{AV_CODEC_ID_AV1, AV_CODEC_ID_VP8, AV_CODEC_ID_VP9};
        // SAFETY: stream and parameters live as long as the demuxer; descriptors are static. The order is
        // read as its number, since a newer library may know more.
        let (needs_container, order) = unsafe {
            let parameters = (*stream).codecpar;
            let descriptor = ffi::avcodec_descriptor_get((*parameters).codec_id).as_ref();
            let is_intra = descriptor.is_some_and(|d| d.props & ffi::AV_CODEC_PROP_INTRA_ONLY as c_int != 0);
            let codec = (*parameters).codec_id;
            let needs_container = is_intra
                || is_png(codec)
                || [AV_CODEC_ID_VP8, AV_CODEC_ID_VP9, AV_CODEC_ID_AV1].contains(&codec);
            let order = std::ptr::addr_of!((*parameters).field_order).cast::<u32>().read();
            (needs_container, order)
        };
        use ffi::AVFieldOrder as Order;
        [
            (Order::AV_FIELD_TT, FieldOrder::TopFirst),
            (Order::AV_FIELD_BB, FieldOrder::BottomFirst),
            (Order::AV_FIELD_TB, FieldOrder::TopFirstInterleaved),
            (Order::AV_FIELD_BT, FieldOrder::BottomFirstInterleaved),
        ]
        .into_iter()
        .find(|&(number, _)| needs_container && number as u32 == order)
        .map_or(FieldOrder::Progressive, |(_, order)| order)
    }
}
