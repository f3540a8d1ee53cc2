//! The list of frames that `--frame-hashes` writes.

use framepipe::frame::Rational;
use framepipe::sink::hashes::LoggedFrame;
use std::fmt::Write;

/// A line about the format, then one for each frame: number, tick ("-" without times), hash.
pub(crate) fn text(frames: &[LoggedFrame], base: Rational) -> String {
    let mut text = format!(
        "# framepipe frame hashes 1; number, time in ticks of {}/{} s, XXH3 of 128 bits\n",
        base.num, base.den
    );
    for (number, frame) in frames.iter().enumerate() {
        let time = frame.time.map_or_else(|| "-".to_owned(), |time| time.to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{number} {time} {}", frame.hash);
    }
    text
}
