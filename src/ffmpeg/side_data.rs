//! Blocks of side data that are passed on.

use ffmpeg_next::ffi;

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
    ]
};

/// The blocks of a frame that stay true after its pixels were filtered.
pub(crate) const FRAME_SIDE_DATA: &[ffi::AVFrameSideDataType] = {
    use ffi::AVFrameSideDataType as Kind;
    &[
        Kind::AV_FRAME_DATA_A53_CC,
        Kind::AV_FRAME_DATA_STEREO3D,
        Kind::AV_FRAME_DATA_DISPLAYMATRIX,
        Kind::AV_FRAME_DATA_AFD,
        Kind::AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
        Kind::AV_FRAME_DATA_GOP_TIMECODE,
        Kind::AV_FRAME_DATA_SPHERICAL,
        Kind::AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
        Kind::AV_FRAME_DATA_ICC_PROFILE,
        Kind::AV_FRAME_DATA_S12M_TIMECODE,
        Kind::AV_FRAME_DATA_DYNAMIC_HDR_PLUS,
        Kind::AV_FRAME_DATA_DOVI_RPU_BUFFER,
        Kind::AV_FRAME_DATA_DOVI_METADATA,
        Kind::AV_FRAME_DATA_DYNAMIC_HDR_VIVID,
    ]
};
