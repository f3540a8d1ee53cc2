//! HDR10's static facts and the time code of MPEG-2, as options of encoders.

use crate::frame::SideData;
use crate::frame::fact::{self, Fact};
use ffmpeg_next::ffi;

/// HDR10's static facts in the words of x264 and x265, and the GOP time code in those of FFmpeg.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::sink::video) struct Hdr {
    pub(super) mastering: Option<String>,
    pub(super) light: Option<(u32, u32)>,
    pub(super) gop: Option<String>,
}

impl Hdr {
    /// Reads them from the blocks of a stream and of a frame.
    pub(in crate::sink::video) fn from_blocks(stream: &[SideData], frame: &[SideData]) -> Hdr {
        let find = |of_frame: ffi::AVFrameSideDataType, of_stream: ffi::AVPacketSideDataType| {
            let in_frame = frame.iter().find(|b| b.kind == of_frame as u32);
            in_frame.or_else(|| stream.iter().find(|b| b.kind == of_stream as u32))
        };
        Hdr {
            mastering: find(
                ffi::AVFrameSideDataType::AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
                ffi::AVPacketSideDataType::AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
            )
            .and_then(|b| mastering_words(&b.data)),
            light: find(
                ffi::AVFrameSideDataType::AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
                ffi::AVPacketSideDataType::AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
            )
            .and_then(|b| Some((number(&b.data, 0)? as u32, number(&b.data, 1)? as u32))),
            gop: frame
                .iter()
                .find(|block| block.fact == Fact::GopTimecode)
                .and_then(fact::block_value),
        }
    }
}

/// The `index`th 32-bit number of a block that FFmpeg laid out in memory.
fn number(block: &[u8], index: usize) -> Option<i32> {
    let bytes = block.get(4 * index..4 * index + 4)?;
    Some(i32::from_ne_bytes(bytes.try_into().ok()?))
}

/// An AVMasteringDisplayMetadata block (ten fractions, then two flags) as
/// "G(x,y)B(x,y)R(x,y)WP(x,y)L(max,min)".
fn mastering_words(block: &[u8]) -> Option<String> {
    if number(block, 20)? == 0 || number(block, 21)? == 0 {
        return None;
    }
    let scaled = |fraction: usize, scale: f64| -> Option<i64> {
        let (num, den) = (number(block, 2 * fraction)?, number(block, 2 * fraction + 1)?);
        (den != 0).then(|| (f64::from(num) / f64::from(den) * scale).round() as i64)
    };
    let point = |first: usize| Some((scaled(first, 50_000.0)?, scaled(first + 1, 50_000.0)?));
    let ((rx, ry), (gx, gy), (bx, by), (wx, wy)) = (point(0)?, point(2)?, point(4)?, point(6)?);
    let (least, most) = (scaled(8, 10_000.0)?, scaled(9, 10_000.0)?);
    Some(format!(
        "G({gx},{gy})B({bx},{by})R({rx},{ry})WP({wx},{wy})L({most},{least})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mastering_facts_become_the_words_of_x265() {
        let mut block = Vec::new();
        for (num, den) in [
            (34000, 50000),
            (16000, 50000),
            (13250, 50000),
            (34500, 50000),
            (7500, 50000),
            (3000, 50000),
            (15635, 50000),
            (16450, 50000),
            (1, 10000),
            (10_000_000, 10000),
        ] {
            block.extend(i32::to_ne_bytes(num));
            block.extend(i32::to_ne_bytes(den));
        }
        block.extend(1_i32.to_ne_bytes());
        block.extend(1_i32.to_ne_bytes());
        assert_eq!(
            mastering_words(&block).as_deref(),
            Some("G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1)")
        );
        assert_eq!(mastering_words(&block[..40]), None);
    }
}
