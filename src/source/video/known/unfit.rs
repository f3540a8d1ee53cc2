//! Codecs of stills whose samples FFmpeg gives otherwise than the file holds them.

/// What becomes of pictures of a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source::video) enum Unfit {
    /// They come out wrong, and are refused.
    Wrong(&'static str),
    /// They come out right in a way that leaves something out.
    Changed(&'static str),
}

/// FFmpeg's names of the codecs.
const CODECS: [(&str, Unfit); 2] = [
    (
        "photocd",
        Unfit::Wrong(
            "it is a Photo CD picture, whose own kind of YCC colours FFmpeg takes for those of video, so \
             that they come out wrong; convert it to TIFF first",
        ),
    ),
    (
        "fits",
        Unfit::Changed(
            "FITS has no black and no white, so that its least value becomes black and its greatest white; \
             the values themselves are not kept",
        ),
    ),
];

/// What is known of a codec.
pub(in crate::source::video) fn unfit(codec: &str) -> Option<Unfit> {
    let row = CODECS.iter().find(|(name, _)| *name == codec)?;
    Some(row.1)
}
