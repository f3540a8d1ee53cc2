//! The time base that an encoder counts in.

use crate::frame::Rational;

/// What a GIF file counts time in.
const GIF_STEP: Rational = Rational { num: 1, den: 100 };

/// The time base that the encoder counts in: the source's own, unless encoder or container know only even
/// steps.
pub(in crate::sink::video) fn encoder_time_base(
    encoder: &str,
    container: &str,
    own: Rational,
    frame_rate: Option<Rational>,
) -> Rational {
    let steps =
        matches!(encoder, "mpeg1video" | "mpeg2video" | "libtheora" | "vc2") || counts_frames(container);
    // Only the stream says the rate, and x264 writes the time base there.
    let alone = container == "h264";
    // Their streams count time in 16 bits.
    let narrow = matches!(
        encoder,
        "mpeg4" | "libxvid" | "msmpeg4" | "msmpeg4v2" | "h263" | "h263p" | "flv"
    ) && own.den > 65_535;
    match frame_rate {
        // The steps of its file, so that pacing sees what viewers will.
        _ if container == "gif" => GIF_STEP,
        Some(rate) if rate.num > 0 && rate.den > 0 && (steps || narrow || alone) => Rational {
            num: rate.den,
            den: rate.num,
        },
        _ if alone => Rational { num: 1, den: 25 },
        _ if narrow => Rational { num: 1, den: 60_000 },
        _ => own,
    }
}

/// True for containers that count frames.
pub(in crate::sink::video) fn counts_frames(container: &str) -> bool {
    matches!(
        container,
        "avi" | "mxf" | "mxf_d10" | "mxf_opatom" | "gxf" | "swf" | "dv" | "rm"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_as_the_source_does_where_that_is_possible() {
        let own = Rational { num: 1, den: 90_000 };
        let rate = Some(Rational {
            num: 30_000,
            den: 1001,
        });
        assert_eq!(encoder_time_base("libx264", "mp4", own, rate), own);
        let step = Rational {
            num: 1001,
            den: 30_000,
        };
        assert_eq!(encoder_time_base("mpeg2video", "mpegts", own, rate), step);
        assert_eq!(encoder_time_base("mpeg4", "mp4", own, rate), step);
        assert_eq!(encoder_time_base("libx264", "avi", own, rate), step);
        assert_eq!(encoder_time_base("libx264", "h264", own, rate), step);
        assert_eq!(
            encoder_time_base("mpeg4", "mp4", own, None),
            Rational { num: 1, den: 60_000 }
        );
    }
}
