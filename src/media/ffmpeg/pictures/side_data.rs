//! Which blocks of side data are facts about pictures, which are passed on, and which are the codecs' own
//! business.
#![allow(unsafe_code)]

use crate::frame::SideData;
use crate::frame::fact::Fact;
use crate::media::ffmpeg::text::text;
use ffmpeg_next::ffi;
use std::ffi::c_char;

/// The blocks of a stream that describe its pictures and that a muxer can take over.
pub(crate) const STREAM_SIDE_DATA: &[ffi::AVPacketSideDataType] = {
    use ffi::AVPacketSideDataType as Kind;
    &[
        Kind::AV_PKT_DATA_DISPLAYMATRIX,
        Kind::AV_PKT_DATA_STEREO3D,
        Kind::AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
        Kind::AV_PKT_DATA_SPHERICAL,
        Kind::AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
        Kind::AV_PKT_DATA_ICC_PROFILE,
        // Read, but not true of pictures that were re-encoded.
        Kind::AV_PKT_DATA_DOVI_CONF,
    ]
};

/// What a block of a stream is about; `kind` is a number of AVPacketSideDataType out of [`STREAM_SIDE_DATA`].
pub(crate) fn stream_fact(kind: u32) -> Fact {
    use ffi::AVPacketSideDataType as Kind;
    let known = [
        (Kind::AV_PKT_DATA_DISPLAYMATRIX, Fact::Rotation),
        (Kind::AV_PKT_DATA_STEREO3D, Fact::Stereo),
        (
            Kind::AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
            Fact::MasteringDisplay,
        ),
        (Kind::AV_PKT_DATA_SPHERICAL, Fact::Spherical),
        (Kind::AV_PKT_DATA_CONTENT_LIGHT_LEVEL, Fact::ContentLight),
        (Kind::AV_PKT_DATA_ICC_PROFILE, Fact::IccProfile),
        (Kind::AV_PKT_DATA_DOVI_CONF, Fact::DolbyVision),
    ];
    let found = known.iter().find(|(k, _)| *k as u32 == kind);
    found.map_or(Fact::Other(kind), |(_, fact)| *fact)
}

/// The blocks of a frame that stay true after its pixels were filtered, and what they are about.
const FRAME_SIDE_DATA: &[(ffi::AVFrameSideDataType, Fact)] = {
    use ffi::AVFrameSideDataType as Kind;
    &[
        (Kind::AV_FRAME_DATA_A53_CC, Fact::Captions),
        (Kind::AV_FRAME_DATA_STEREO3D, Fact::Stereo),
        (Kind::AV_FRAME_DATA_DISPLAYMATRIX, Fact::Rotation),
        (Kind::AV_FRAME_DATA_AFD, Fact::ActiveFormat),
        (Kind::AV_FRAME_DATA_PANSCAN, Fact::PanScan),
        (
            Kind::AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
            Fact::MasteringDisplay,
        ),
        (Kind::AV_FRAME_DATA_GOP_TIMECODE, Fact::GopTimecode),
        (Kind::AV_FRAME_DATA_SPHERICAL, Fact::Spherical),
        (Kind::AV_FRAME_DATA_CONTENT_LIGHT_LEVEL, Fact::ContentLight),
        (Kind::AV_FRAME_DATA_ICC_PROFILE, Fact::IccProfile),
        (Kind::AV_FRAME_DATA_S12M_TIMECODE, Fact::Timecode),
        (Kind::AV_FRAME_DATA_DYNAMIC_HDR_PLUS, Fact::Hdr10Plus),
        (Kind::AV_FRAME_DATA_DOVI_RPU_BUFFER, Fact::DolbyVision),
        (Kind::AV_FRAME_DATA_DOVI_METADATA, Fact::DolbyVision),
        (Kind::AV_FRAME_DATA_DYNAMIC_HDR_VIVID, Fact::HdrVivid),
    ]
};

/// Blocks that tell how the pictures were coded, that the decoder has carried out already, or that are about
/// sound.
const INTERNAL: &[ffi::AVFrameSideDataType] = {
    use ffi::AVFrameSideDataType as Kind;
    &[
        Kind::AV_FRAME_DATA_MATRIXENCODING,
        Kind::AV_FRAME_DATA_DOWNMIX_INFO,
        Kind::AV_FRAME_DATA_REPLAYGAIN,
        Kind::AV_FRAME_DATA_MOTION_VECTORS,
        Kind::AV_FRAME_DATA_SKIP_SAMPLES,
        Kind::AV_FRAME_DATA_AUDIO_SERVICE_TYPE,
        Kind::AV_FRAME_DATA_REGIONS_OF_INTEREST,
        Kind::AV_FRAME_DATA_VIDEO_ENC_PARAMS,
        Kind::AV_FRAME_DATA_FILM_GRAIN_PARAMS,
        Kind::AV_FRAME_DATA_DETECTION_BBOXES,
    ]
};

/// UUIDs of the user data of H.264 and HEVC in which encoders state their version and settings.
const ENCODERS: &[u128] = &[
    // x264
    0xdc45e9bd_e6d9_48b7_962c_d820d923eeef,
    // x265
    0x2ca2de09_b517_47db_bb55_a4fe7fc2fc4e,
    // Kvazaar
    0x32fe466c_9841_4269_ae35_6a91549ef3f1,
    // FFmpeg's encoders by VA-API and by Vulkan
    0x59948b28_11ec_45af_9675_19d41feaa94d,
    0x03fdf20a_5d4c_0548_2098_ca6b0c95301c,
    // Apple's VideoToolbox: values of its rate control, in every frame
    0x47564adc_5c4c_433f_94ef_c5113cd143a8,
];

/// True for user data by which an encoder describes itself, and not the pictures.
fn is_of_encoder(kind: u32, data: &[u8]) -> bool {
    let uuid = data.first_chunk().map(|bytes| u128::from_be_bytes(*bytes));
    kind == ffi::AVFrameSideDataType::AV_FRAME_DATA_SEI_UNREGISTERED as u32
        && uuid.is_some_and(|uuid| ENCODERS.contains(&uuid))
}

/// What a block of a frame is about; `None` if it is none of a filter's business. `kind` is a number of
/// AVFrameSideDataType, which a library newer than our headers may have more of.
pub(in crate::media::ffmpeg) fn frame_fact(kind: u32, data: &[u8]) -> Option<Fact> {
    if INTERNAL.iter().any(|&k| k as u32 == kind) || is_of_encoder(kind, data) {
        return None;
    }
    let known = FRAME_SIDE_DATA.iter().find(|(k, _)| *k as u32 == kind);
    match known {
        Some((_, fact)) => Some(*fact),
        // A hint to encoders, which FFmpeg 5.1 does not know by number.
        None => (frame_kind_name(kind) != "Encoding video hint").then_some(Fact::Other(kind)),
    }
}

/// FFmpeg's own kind for a block that may be attached to a frame.
pub(in crate::media::ffmpeg) fn frame_kind(block: &SideData) -> Option<ffi::AVFrameSideDataType> {
    // A stream's block may have the number of quite another kind of frames' blocks.
    let known = FRAME_SIDE_DATA
        .iter()
        .find(|(kind, fact)| *kind as u32 == block.kind && *fact == block.fact);
    known.map(|(kind, _)| *kind)
}

/// FFmpeg's name for a kind of block of a frame.
pub(in crate::media::ffmpeg) fn frame_kind_name(kind: u32) -> String {
    let name: unsafe extern "C" fn(ffi::AVFrameSideDataType) -> *const c_char = ffi::av_frame_side_data_name;
    // SAFETY: a C enumeration is passed as a number of 32 bits; FFmpeg looks it up in a table and gives null
    // for one that is not there.
    let name = unsafe {
        std::mem::transmute::<
            unsafe extern "C" fn(ffi::AVFrameSideDataType) -> *const c_char,
            unsafe extern "C" fn(u32) -> *const c_char,
        >(name)(kind)
    };
    match text(name) {
        name if name.is_empty() => format!("number {kind}"),
        name => name,
    }
}

/// The block under the number by which a stream knows its kind; `None` if only frames hold it.
pub(crate) fn for_stream(block: &SideData) -> Option<SideData> {
    let kind = STREAM_SIDE_DATA
        .iter()
        .map(|&kind| kind as u32)
        .find(|&kind| block.fact != Fact::DolbyVision && stream_fact(kind) == block.fact)?;
    Some(SideData {
        kind,
        ..block.clone()
    })
}

/// The block under the number by which frames know its kind; `None` if only streams hold it.
pub(crate) fn for_frame(block: &SideData) -> Option<SideData> {
    let (kind, _) = FRAME_SIDE_DATA
        .iter()
        .find(|(_, fact)| *fact == block.fact && *fact != Fact::DolbyVision)?;
    Some(SideData {
        kind: *kind as u32,
        ..block.clone()
    })
}
