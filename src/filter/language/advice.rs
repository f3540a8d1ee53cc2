//! Advice for users of other programs and for mistyped names.

use super::keys::names;
use crate::messages::suggest::suggestion;

/// Filters whose namesakes in FFmpeg take other values, in another order: the number of values that may stand
/// without keys behind a colon and behind FFmpeg's equals sign, and the advice.
const OTHER_ORDERS: &[(&str, [usize; 2], &str)] = &[
    (
        "unsharp",
        [2, 0],
        "FFmpeg's unsharp=5:5:1 is unsharp:size=5:amount=1 with --planes luma here",
    ),
    ("gblur", [1, 1], "FFmpeg's gblur=3:1 is gaussian:sigma=3 here"),
];

/// Words that name no mask, and the advice.
const HINTS: &[(&[&str], &str)] = &[
    (
        &["blur", "smooth"],
        "blurs are gaussian, binomial, box, disk and motion, such as gaussian:sigma=2",
    ),
    (
        &["boxblur", "avgblur"],
        "FFmpeg's takes a radius, and box takes a size: box:size=7 has a radius of 3",
    ),
    (
        &["convolution", "conv", "kernel"],
        "write your own numbers as mask:rows=, such as mask:rows=0 -1 0;-1 5 -1;0 -1 0, or in mask:file=",
    ),
    (
        &["edges", "edgedetect", "canny"],
        "edges are found by sobel, scharr, kirsch, laplacian8 and log",
    ),
    (&["usm"], "unsharp:sigma=1.5:amount=0.8 is an unsharp mask"),
    (
        &[
            "median",
            "bilateral",
            "denoise",
            "nlmeans",
            "hqdn3d",
            "despeckle",
            "erode",
            "dilate",
        ],
        "that is no convolution, which is what framepipe does; gaussian smooths noise",
    ),
];

/// Advice about a word that is no filter, as the end of a sentence.
pub(super) fn advice(word: &str) -> String {
    let small = word.to_lowercase();
    if let Some((_, hint)) = HINTS.iter().find(|(words, _)| words.contains(&&*small)) {
        return format!(": {hint}");
    }
    let known: Vec<&str> = names().collect();
    format!(
        "{}; the filters are {}",
        suggestion(word, &known),
        known.join(", ")
    )
}

/// Advice if `before` values without keys already are as many as mean the same in FFmpeg. `is_ffmpegs` is
/// true behind an equals sign.
pub(super) fn other_order(word: &str, before: usize, is_ffmpegs: bool) -> Option<&'static str> {
    let mut orders = OTHER_ORDERS.iter();
    let (_, most, hint) = orders.find(|(name, ..)| name.eq_ignore_ascii_case(word))?;
    (before >= most[usize::from(is_ffmpegs)]).then_some(*hint)
}
