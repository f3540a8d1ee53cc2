//! What a video costs to decode, on the CPU and by a card's decoders, as far as is known before.
//!
//! ```text
//! a frame   a core      pixels / 8.5e8 + bytes / 0.9e6   seconds; cores share frames (H.264)
//!           a decoder   pixels / 1.7e9 + bytes / 75e6    of a card's, which share frames, too (H.264)
//! a video   a card      0.05 + pixels / 2e7 + 0.11 for each decoder, which are made one after another
//! ```
//!
//! Bytes cost a core more than pixels: an ordinary film of 1920x1080 at 6 Mbit/s has 31 KB in each of 24
//! frames a second, which take 34 ms, and its pixels 2 ms. H.264 of the Baseline profile takes a core 1 s for
//! 13e6 bytes. The figures were fitted to H.264 and HEVC of 720 to 2160 rows and 3 to 48 KB a frame, Baseline
//! to 770 KB, decoded by an H100 and by the 16 cores beside it (docs/lab/2026-11-27-auto-decoding.md).
//!
//! A card decodes with no more decoders than there are stretches between key frames.

/// Pixels that are decoded in a second if they took no bytes, and bytes if they made no pixels.
#[derive(Clone, Copy)]
struct Rates {
    pixels: f64,
    bytes: f64,
}

/// Of H.264, by a core and by one decoder of a card.
const H264: [Rates; 2] = [
    Rates {
        pixels: 8.5e8,
        bytes: 0.9e6,
    },
    Rates {
        pixels: 1.7e9,
        bytes: 75e6,
    },
];

/// What a core makes of H.264 without arithmetic coding and pictures predicted from two others.
const BASELINE: Rates = Rates {
    pixels: 8.5e8,
    bytes: 13e6,
};

/// Of HEVC, for which later codecs are taken.
const LATER: [Rates; 2] = [
    Rates {
        pixels: 2.3e8,
        bytes: 0.9e6,
    },
    Rates {
        pixels: 5.4e9,
        bytes: 22e6,
    },
];

/// Seconds until a card's first decoder is made, for small pictures.
const START: f64 = 0.05;

/// Pixels of a picture for each second more, which their surfaces take.
const START_PIXELS: f64 = 2e7;

/// Seconds in which each decoder of a card is made and taken down.
const EACH: f64 = 0.11;

/// Of H.264, whose decoders leave their engines idle between frames: twelve on the seven engines of an H100
/// make 1.12 times the frames of eight. Of HEVC eight make as many.
const MORE_OF_H264: f64 = 1.12;

/// Decoders of a card that is not asked before it is started: those of an H100, and one more.
const USUAL: usize = 8;

/// Seconds that decoding takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecodingCost {
    /// A frame takes a core.
    core: f64,
    /// A frame takes a decoder of a card.
    decoder: f64,
    /// The first decoder takes to be made.
    start: f64,
    /// How many times as many frames come of half as many decoders more than are taken for films of middle
    /// length.
    more: f64,
    /// How many parts of the video can be decoded at a time.
    stretches: usize,
}

impl DecodingCost {
    /// For frames of so many pixels and bytes, by FFmpeg's name of the codec, and whether its profile is
    /// Baseline.
    pub fn new(codec: &str, is_baseline: bool, pixels: f64, bytes: f64) -> DecodingCost {
        let [core, decoder] = match (codec, is_baseline) {
            ("h264", true) => [BASELINE, H264[1]],
            ("h264", false) => H264,
            _ => LATER,
        };
        let seconds = |rates: Rates| pixels / rates.pixels + bytes / rates.bytes;
        DecodingCost {
            core: seconds(core),
            decoder: seconds(decoder),
            start: START + pixels / START_PIXELS,
            more: if codec == "h264" { MORE_OF_H264 } else { 1.0 },
            stretches: usize::MAX,
        }
    }

    /// The same of a video with so many stretches between key frames, at least 1.
    pub fn in_stretches(self, count: usize) -> DecodingCost {
        let stretches = count.max(1);
        DecodingCost { stretches, ..self }
    }

    /// How many decoders of a card have decoded so many frames first, where `usual` keep its engines about
    /// busy. If one would take all seconds, n take n EACH + all / n, which is least where n is the root of
    /// all / EACH. In long films half as many more than `usual` make up for their start.
    pub fn decoders(&self, frames: u64, usual: usize) -> usize {
        let all = self.decoder * frames as f64;
        let usual = usual.max(1);
        let saved = all / usual as f64 * (1.0 - 1.0 / self.more);
        if self.stretches > usual && saved > (usual / 2) as f64 * EACH {
            return usual + usual / 2;
        }
        ((all / EACH).sqrt().round() as usize).clamp(1, usual.min(self.stretches))
    }

    /// Seconds by which a card decodes so many frames faster than `cores`, its decoders' start and end
    /// included; below 0 where the cores are faster.
    pub fn saved_by_card(&self, frames: u64, cores: usize) -> f64 {
        let decoders = self.decoders(frames, USUAL) as f64;
        let card = self.start + decoders * EACH + self.decoder * frames as f64 / decoders;
        self.core * frames as f64 / cores.max(1) as f64 - card
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
            let cost = DecodingCost::new(codec, false, f64::from(width * height), 1024.0 * kilobytes);
            let chosen = if cost.saved_by_card(frames, 16) > 0.44 {
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

    /// Seconds of whole runs by so many decoders of the card.
    #[test]
    fn as_many_decoders_are_taken_as_were_about_the_fastest() {
        let counts = [1, 2, 3, 4, 5, 6, 8];
        let h264 = DecodingCost::new("h264", false, 1920.0 * 1080.0, 34.3e3);
        let hevc = DecodingCost::new("hevc", false, 3840.0 * 2160.0, 18.6e3);
        let measured = [
            (h264, 600, [1.72, 1.41, 1.18, 1.10, 1.39, 1.41, 1.66]),
            (h264, 1200, [2.70, 1.88, 1.64, 1.47, 1.48, 1.66, 1.65]),
            (h264, 2400, [4.69, 2.92, 2.14, 1.89, 1.91, 1.89, 1.89]),
            (hevc, 180, [1.52, 1.23, 1.20, 1.22, 1.49, 1.49, 1.70]),
            (hevc, 300, [1.79, 1.44, 1.42, 1.49, 1.50, 1.75, 1.76]),
            (hevc, 600, [2.49, 1.75, 1.76, 1.77, 1.50, 1.65, 1.77]),
        ];
        for (cost, frames, seconds) in measured {
            let count = cost.decoders(frames, 8);
            let least = seconds.iter().copied().fold(f64::MAX, f64::min);
            let nearest = counts.iter().position(|&k| k >= count).unwrap();
            let by = seconds[nearest] / least;
            assert!(
                by < 1.2,
                "{frames} frames by {count} decoders: {by:.2} times the least"
            );
        }
    }

    /// 1080p of 104 KB a frame and 4K of 8 KB (docs/lab/2026-11-26-card-decoders.md).
    #[test]
    fn long_films_of_h264_take_more_decoders() {
        let h264 = DecodingCost::new("h264", false, 1920.0 * 1080.0, 104e3);
        let hevc = DecodingCost::new("hevc", false, 3840.0 * 2160.0, 8e3);
        let counts = [6000, 60_000].map(|frames| (h264.decoders(frames, 8), hevc.decoders(frames, 8)));
        assert_eq!(counts, [(8, 8), (12, 8)]);
    }

    #[test]
    fn more_cores_need_more_frames_to_be_worth_a_start() {
        let cost = DecodingCost::new("h264", false, 1920.0 * 1080.0, 30e3);
        let saved = |frames, cores| cost.saved_by_card(frames, cores);
        assert!(saved(60, 2) > 0.0 && saved(10, 2) < 0.0);
        assert!(saved(600, 16) > 0.0 && saved(600, 64) < 0.0);
        // What a header claims.
        assert!(saved(u64::MAX, 16) > 0.0 && cost.decoders(u64::MAX, 8) == 12);
        assert_eq!((cost.decoders(0, 8), cost.decoders(1000, 0)), (1, 1));
    }

    /// 300 frames of 1080p, seconds on 16 cores and on the card (docs/lab/2026-11-27-auto-decoding.md).
    #[test]
    fn baseline_and_few_key_frames_are_left_to_the_cores() {
        let pixels = 1920.0 * 1080.0;
        let baseline = DecodingCost::new("h264", true, pixels, 700e3).in_stretches(2);
        assert!(baseline.saved_by_card(300, 16) < 0.0);
        assert!(baseline.in_stretches(100).saved_by_card(15_000, 16) > 0.0);
        // One decoder of a card makes half the frames of 16 cores.
        let film = DecodingCost::new("h264", false, pixels, 10e3);
        assert!(film.saved_by_card(20_000, 16) > 0.0);
        assert!(film.in_stretches(1).saved_by_card(20_000, 16) < 0.0);
        assert_eq!(film.in_stretches(1).decoders(20_000, 8), 1);
        assert_eq!(film.in_stretches(3).decoders(20_000, 8), 3);
    }
}
