//! One clock for all streams of an input: it begins near zero and never goes back.
//!
//! Packets come with the times that the container wrote. A transport stream begins wherever its sender's
//! clock stood, and where two recordings were joined, or a camera was restarted, the clock jumps. The map
//! from input time to output time is a sum, the same one for the picture and for every stream that is copied
//! beside it, so that they stay together:
//!
//! ```text
//!   input    90000.0 ........ 90002.0 | 0.0 ....... 3.0       the clock of the file
//!   offset   -90000.0                 | +2.0                  one an epoch
//!   output       0.0 ........     2.0 | 2.0 ....... 5.0       the clock of the frames
//! ```
//!
//! At a jump the streams do not change over at the same packet: what a demuxer still holds of one stream
//! belongs to the old clock while another stream is in the new one. So each stream goes from epoch to epoch
//! by itself, and a packet gets the first offset, from its stream's own epoch on, that continues its stream.

use std::time::Duration;

/// Times in nanoseconds, which every container's ticks go into and come back from unchanged.
type Nanos = i64;

const SECOND: Nanos = 1_000_000_000;

/// Decoding times of one stream never go back, but damaged ones by a little do.
const BACKWARD: Nanos = SECOND / 10;

/// A gap in every stream at once is a jump from here on.
const FORWARD: Nanos = SECOND;

/// A gap in the only stream is a jump from here on: with nothing beside it, a still picture looks the same.
const FORWARD_ALONE: Nanos = 10 * SECOND;

/// A start of more than this is another clock even in a container whose time begins at zero.
const LATE_START: Nanos = 10 * SECOND;

/// A jump of the input's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Jump {
    /// Where it is, in seconds of the output's clock.
    pub(crate) at: f64,
    /// How far the input's clock jumps there, in seconds.
    pub(crate) by: f64,
}

/// The jumps that were found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Jumps {
    /// How many.
    pub(crate) count: u64,
    /// The first of them.
    pub(crate) first: Option<Jump>,
}

/// The times of a packet on the input's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::media::ffmpeg) struct Times {
    pub(in crate::media::ffmpeg) dts: Nanos,
    pub(in crate::media::ffmpeg) pts: Nanos,
    pub(in crate::media::ffmpeg) duration: Nanos,
    /// Decoding may begin with it.
    pub(in crate::media::ffmpeg) is_key: bool,
}

/// Where one stream is, on the output's clock.
#[derive(Debug, Clone, Copy)]
struct Track {
    epoch: usize,
    /// Decoding time of the last packet.
    last: Nanos,
    /// When what is shown or heard of it so far ends.
    end: Nanos,
}

/// How a container counts time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::media::ffmpeg) enum ClockKind {
    /// From its beginning to its end.
    Steady,
    /// It begins anywhere and may jump (AVFMT_TS_DISCONT).
    Jumping,
    /// It is as steady, but where files were put one behind another, it begins anew, at a key packet. It says
    /// when packets are shown, and FFmpeg guesses when they are decoded.
    Restarting,
}

/// The map from an input's time to the output's.
#[derive(Debug)]
pub(crate) struct Clock {
    kind: ClockKind,
    /// What is added in each epoch.
    offsets: Vec<Nanos>,
    /// By stream; `None` before a stream's first packet.
    tracks: Vec<Option<Track>>,
    jumps: Jumps,
}

impl Clock {
    /// A clock for an input whose earliest sound or picture is shown at `origin` nanoseconds.
    pub(in crate::media::ffmpeg) fn new(kind: ClockKind, origin: Option<Nanos>) -> Clock {
        let origin = origin.unwrap_or(0);
        // A container whose time begins at zero may have a pause before its first frame, which is kept.
        let is_pause = kind != ClockKind::Jumping && (0..=LATE_START).contains(&origin);
        Clock {
            kind,
            offsets: vec![if is_pause { 0 } else { -origin }],
            tracks: Vec::new(),
            jumps: Jumps::default(),
        }
    }

    /// What is added to times in the first epoch.
    pub(in crate::media::ffmpeg) fn first_offset(&self) -> Nanos {
        self.offsets[0]
    }

    /// Where it begins, in nanoseconds, if that is counted as zero and far from it.
    pub(in crate::media::ffmpeg) fn late_start(&self) -> Option<Nanos> {
        let begins = -self.offsets[0];
        (begins > LATE_START).then_some(begins)
    }

    /// True if it may begin anywhere.
    pub(in crate::media::ffmpeg) fn begins_anywhere(&self) -> bool {
        self.kind == ClockKind::Jumping
    }

    /// True if it may begin anew, so that an index does not lead to all packets.
    pub(in crate::media::ffmpeg) fn may_restart(&self) -> bool {
        self.kind == ClockKind::Restarting
    }

    /// The jumps so far.
    pub(in crate::media::ffmpeg) fn jumps(&self) -> Jumps {
        self.jumps
    }

    /// The epoch that stream `stream` is in: how many jumps of the clock it has gone over. One that begins no
    /// epoch, or has not begun, is in the newest.
    pub(in crate::media::ffmpeg) fn epoch(&self, stream: usize) -> usize {
        let track = self.tracks.get(stream).copied().flatten();
        track.map_or(self.offsets.len() - 1, |track| track.epoch)
    }

    /// What to add to the times of the next packet of stream `stream`. `leads` is true for streams whose
    /// times may begin an epoch: sound and video, not covers or subtitles.
    pub(in crate::media::ffmpeg) fn offset(&mut self, stream: usize, leads: bool, mut times: Times) -> Nanos {
        if self.kind == ClockKind::Steady {
            return self.offsets[0];
        }
        if self.kind == ClockKind::Restarting {
            times.dts = times.pts;
        }
        let latest = self.tracks.iter().flatten().map(|t| t.end).max();
        if !leads {
            // Sparse streams go by the others: the epoch that brings them nearest.
            let latest = latest.unwrap_or(0);
            let distance = |&offset: &Nanos| (times.pts + offset - latest).abs();
            let nearest = self.offsets.iter().copied().rev().min_by_key(distance);
            return nearest.unwrap_or(0);
        }
        if self.tracks.len() <= stream {
            self.tracks.resize(stream + 1, None);
        }
        let alone = self.tracks.iter().flatten().count() <= 1;
        let newest = self.offsets.len() - 1;
        let before = self.tracks[stream];
        let epoch = match before {
            None => newest,
            Some(track) => {
                // A gap that other streams have already crossed is a pause of this one.
                let end = track.end.max(latest.unwrap_or(track.end));
                let gap = if alone { FORWARD_ALONE } else { FORWARD };
                let fits = |epoch: &usize| {
                    let dts = times.dts + self.offsets[*epoch];
                    let is_behind = dts >= track.last - BACKWARD;
                    match self.kind {
                        ClockKind::Restarting => is_behind || !times.is_key,
                        _ => is_behind && dts <= end.saturating_add(gap),
                    }
                };
                let known = (track.epoch..=newest).find(fits);
                known.unwrap_or_else(|| self.begin(times, track, end))
            }
        };
        let offset = self.offsets[epoch];
        let (dts, end) = (times.dts + offset, times.pts + times.duration.max(0) + offset);
        self.tracks[stream] = Some(Track {
            epoch,
            last: before.map_or(dts, |track| track.last.max(dts)),
            end: before.map_or(end, |track| track.end.max(end)),
        });
        offset
    }

    /// Begins an epoch whose first packet is shown at `at`, or later where its stream is decoded further than
    /// that.
    fn begin(&mut self, times: Times, track: Track, at: Nanos) -> usize {
        let offset = (at - times.pts).max(track.last + 1 - times.dts);
        self.jumps.count += 1;
        self.jumps.first.get_or_insert(Jump {
            at: seconds(times.pts + offset),
            by: seconds(self.offsets[track.epoch] - offset),
        });
        self.offsets.push(offset);
        self.offsets.len() - 1
    }
}

fn seconds(nanos: Nanos) -> f64 {
    let length = Duration::from_nanos(nanos.unsigned_abs()).as_secs_f64();
    if nanos < 0 { -length } else { length }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Nanos = SECOND / 25;

    fn frame(time: Nanos) -> Times {
        Times {
            dts: time,
            pts: time,
            duration: FRAME,
            is_key: true,
        }
    }

    /// Output times of a stream alone.
    fn alone(clock: &mut Clock, times: &[f64]) -> Vec<f64> {
        times
            .iter()
            .map(|&t| {
                let nanos = (t * 1e9).round() as Nanos;
                seconds(nanos + clock.offset(0, true, frame(nanos)))
            })
            .collect()
    }

    #[test]
    fn clocks_begin_at_zero_but_a_pause_before_the_first_frame_stays() {
        let late = 25 * 3600 * SECOND;
        assert_eq!(Clock::new(ClockKind::Jumping, Some(late)).first_offset(), -late);
        assert_eq!(
            Clock::new(ClockKind::Jumping, Some(-SECOND)).first_offset(),
            SECOND
        );
        assert_eq!(Clock::new(ClockKind::Steady, Some(late)).first_offset(), -late);
        assert_eq!(Clock::new(ClockKind::Steady, Some(late)).late_start(), Some(late));
        assert_eq!(Clock::new(ClockKind::Steady, Some(SECOND)).late_start(), None);
        assert_eq!(Clock::new(ClockKind::Steady, Some(SECOND / 2)).first_offset(), 0);
        assert_eq!(
            Clock::new(ClockKind::Steady, Some(-SECOND)).first_offset(),
            SECOND
        );
        assert_eq!(Clock::new(ClockKind::Steady, None).first_offset(), 0);
    }

    #[test]
    fn a_clock_that_goes_back_or_far_ahead_goes_on_where_it_was() {
        let mut clock = Clock::new(ClockKind::Jumping, Some(0));
        let times = [0.0, 0.2, 0.4, 0.0, 0.2, 90000.0, 90000.2];
        let expected = [0.0, 0.2, 0.4, 0.44, 0.64, 0.68, 0.88];
        for (found, expected) in alone(&mut clock, &times).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        }
        assert_eq!(clock.jumps().count, 2);
        let first = clock.jumps().first.expect("a jump");
        assert!(
            (first.at - 0.44).abs() < 1e-6 && (first.by + 0.44).abs() < 1e-6,
            "{first:?}"
        );
    }

    #[test]
    fn a_still_picture_in_the_only_stream_is_no_jump() {
        let mut clock = Clock::new(ClockKind::Jumping, Some(0));
        let times = [0.0, 0.04, 5.0, 5.04];
        assert_eq!(alone(&mut clock, &times), times);
        assert_eq!(clock.jumps().count, 0);
    }

    #[test]
    fn streams_change_over_one_by_one_and_stay_together() {
        let mut clock = Clock::new(ClockKind::Jumping, Some(0));
        let mut put = |stream, time: f64| {
            let nanos = (time * 1e9).round() as Nanos;
            seconds(nanos + clock.offset(stream, true, frame(nanos)))
        };
        for step in 0..50 {
            let time = f64::from(step) * 0.04;
            put(0, time);
            if step < 49 {
                put(1, time);
            }
        }
        // The video begins anew at zero while the last packet of the old sound is still to come.
        assert!((put(0, 0.0) - 2.0).abs() < 1e-6);
        assert!((put(1, 1.96) - 1.96).abs() < 1e-6);
        assert!((put(1, 0.0) - 2.0).abs() < 1e-6);
        assert!((put(0, 0.04) - 2.04).abs() < 1e-6);
        assert_eq!(clock.jumps().count, 1);
    }

    #[test]
    fn pictures_that_are_decoded_early_are_shown_where_the_last_part_ends() {
        let mut clock = Clock::new(ClockKind::Jumping, Some(0));
        let early = |pts| Times {
            dts: pts - 2 * FRAME,
            pts,
            duration: FRAME,
            is_key: true,
        };
        for step in 0..50 {
            clock.offset(0, true, early(step * FRAME));
        }
        assert_eq!(clock.offset(0, true, early(0)), 50 * FRAME);
    }

    #[test]
    fn a_pause_of_one_stream_beside_another_is_no_jump() {
        let mut clock = Clock::new(ClockKind::Jumping, Some(0));
        clock.offset(0, true, frame(0));
        for step in 0..125 {
            assert_eq!(clock.offset(1, true, frame(step * FRAME)), 0);
        }
        assert_eq!(clock.offset(0, true, frame(5 * SECOND)), 0);
        assert_eq!(clock.jumps().count, 0);
    }

    #[test]
    fn subtitles_go_by_the_streams_beside_them() {
        let mut clock = Clock::new(ClockKind::Jumping, Some(0));
        alone(&mut clock, &[0.0, 0.04, 50_000.0, 50_000.04]);
        let offset = clock.offset(3, false, frame(50_000 * SECOND));
        assert!((seconds(50_000 * SECOND + offset) - 0.08).abs() < 1e-6);
    }

    #[test]
    fn files_behind_one_another_begin_anew_at_key_packets() {
        let mut clock = Clock::new(ClockKind::Restarting, Some(0));
        let mut put = |stream, frame: i64, is_key| {
            let times = Times {
                // What FFmpeg guesses is wrong where the clock begins anew.
                dts: 7 * FRAME,
                pts: frame * FRAME,
                duration: FRAME,
                is_key,
            };
            (frame * FRAME + clock.offset(stream, true, times)) / FRAME
        };
        // Pictures come in order of decoding, and pauses are no jumps.
        let video = [0, 8, 4, 2, 900, 896];
        for (frame, sound) in video.into_iter().zip([0, 2, 4, 6, 899, 900]) {
            assert_eq!(put(0, frame, matches!(frame, 0 | 900)), frame);
            assert_eq!(put(1, sound, true), sound);
        }
        assert_eq!(put(0, 0, true), 901);
        assert_eq!(put(1, 900, true), 900);
        assert_eq!(put(1, 0, true), 901);
        assert_eq!((put(0, 8, false), put(0, 4, false)), (909, 905));
        assert_eq!(clock.jumps().count, 1);
    }
}
