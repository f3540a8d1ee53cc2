//! What a frame costs to decode, on the CPU and by a card's decoders, as far as is known before.
//!
//! ```text
//! a frame   CPU    pixels / 8.5e8 + bytes / 0.9e6   seconds of one core; cores share frames (H.264)
//!           card   pixels / 9e9   + bytes / 90e6    all its decoders together
//! a video   card   0.6 + pixels / 2e7               until its decoders have their surfaces
//! ```
//!
//! Bytes cost more than pixels: an ordinary film of 1920x1080 at 6 Mbit/s has 31 KB in each of 24 frames a
//! second, which take a core 34 ms, and its pixels 2 ms. The figures were fitted to H.264 and HEVC of 720 to
//! 2160 rows and 3 to 48 KB a frame, decoded by an H100 and by the 16 cores beside it
//! (docs/lab/2026-11-27-auto-decoding.md).

/// Bytes that are decoded in a second, if they made no pixels: by a core, and by a card.
const BYTES: (f64, f64) = (0.9e6, 90e6);

/// Pixels of H.264 that are decoded in a second, if they took no bytes.
const H264_PIXELS: (f64, f64) = (8.5e8, 9e9);

/// The same of later codecs.
const LATER_PIXELS: (f64, f64) = (2.3e8, 18e9);

/// Seconds until a card's decoders work, for small pictures.
const START: f64 = 0.6;

/// Pixels of a picture for each second more, which their surfaces take.
const START_PIXELS: f64 = 2e7;

/// How long decoding takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecodingCost {
    /// Seconds of one core, for a frame.
    pub core_seconds: f64,
    /// Seconds of all decoders of a card together, for a frame.
    pub card_seconds: f64,
    /// Seconds until a card's decoders have started.
    pub card_start_seconds: f64,
}

impl DecodingCost {
    /// For frames of so many pixels and bytes, by FFmpeg's name of the codec.
    pub fn new(codec: &str, pixels: f64, bytes: f64) -> DecodingCost {
        let rates = match codec {
            "h264" => H264_PIXELS,
            _ => LATER_PIXELS,
        };
        DecodingCost {
            core_seconds: pixels / rates.0 + bytes / BYTES.0,
            card_seconds: pixels / rates.1 + bytes / BYTES.1,
            card_start_seconds: START + pixels / START_PIXELS,
        }
    }

    /// Seconds by which a card decodes a frame faster than so many cores; below 0 where they are faster.
    pub fn saved_by_card(&self, cores: usize) -> f64 {
        self.core_seconds / cores.max(1) as f64 - self.card_seconds
    }

    /// True if a card saves more with so many frames than its decoders take to start.
    pub fn is_worth_card(&self, frames: u64, cores: usize) -> bool {
        self.saved_by_card(cores) * frames as f64 > self.card_start_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of whole runs, on the CPU and on the card, whose own start is in the latter: what is chosen is
    /// the faster one, or costs little.
    #[test]
    fn what_is_chosen_for_measured_videos_is_about_the_faster() {
        // Pixels across and down, KB a frame, frames, seconds on 16 cores and on the card.
        let measured = [
            ("h264", 1920, 1080, 11.2, 1200, 1.168, 1.504),
            ("h264", 1920, 1080, 14.8, 1200, 1.666, 1.550),
            ("h264", 1920, 1080, 26.1, 1200, 2.723, 1.709),
            ("h264", 1920, 1080, 47.5, 1200, 4.218, 1.968),
            ("h264", 3840, 2160, 12.8, 400, 1.169, 2.062),
            ("h264", 3840, 2160, 28.6, 400, 1.931, 2.474),
            ("hevc", 3840, 2160, 4.8, 360, 1.237, 1.607),
            ("hevc", 3840, 2160, 9.1, 360, 1.374, 1.660),
            ("hevc", 3840, 2160, 18.3, 360, 1.721, 1.766),
            ("hevc", 1920, 1080, 2.6, 900, 0.686, 1.480),
            ("hevc", 1920, 1080, 6.5, 900, 0.946, 1.510),
            ("h264", 1280, 720, 5.9, 1500, 0.915, 1.402),
        ];
        for (codec, width, height, kilobytes, frames, cpu, card) in measured {
            let cost = DecodingCost::new(codec, f64::from(width * height), 1024.0 * kilobytes);
            let saved = cost.saved_by_card(16) * f64::from(frames);
            let chosen = if saved > cost.card_start_seconds + 0.44 {
                card
            } else {
                cpu
            };
            assert!(
                chosen <= 1.1 * f64::min(cpu, card),
                "{codec} {width}x{height}, {kilobytes} KB"
            );
        }
    }

    #[test]
    fn more_cores_need_more_frames_to_be_worth_a_start() {
        let cost = DecodingCost::new("h264", 1920.0 * 1080.0, 30e3);
        assert!(cost.saved_by_card(2) > cost.saved_by_card(64));
        assert!(cost.is_worth_card(60, 2) && !cost.is_worth_card(10, 2));
        assert!(!cost.is_worth_card(600, 64));
        // What a header claims.
        assert!(cost.is_worth_card(u64::MAX, 16));
    }
}
