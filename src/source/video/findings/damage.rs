//! What is wrong with an input: damage that was concealed, pictures that cannot be decoded, an end that is
//! missing.
//!
//! Whether an input is whole is asked of what knows it best: the container's own sizes (see [`Extent`]), else
//! the list of packets that an MP4 file begins or ends with, else the length that a header states.

use crate::frame::{Concealed, Rational};
use crate::media::ffmpeg::{Demuxer, Jumps};
use crate::source::video::known::extent::Extent;

/// Packets at the head of a stream among which leading pictures are looked for: more than any reordering.
const HEAD: usize = 64;

/// Codecs of which each packet is one picture that is shown.
const ONE_PICTURE_A_PACKET: &[&str] = &["h264", "hevc", "vvc", "mpeg1video", "mpeg2video"];

/// A packet that the demuxer marked, because the container's count of its pieces breaks off behind it.
#[derive(Debug)]
struct Mark {
    /// How many jumps of the clock came before it.
    epoch: usize,
    /// Where it is, for an error's sentence.
    place: String,
    /// Packets of its stream that came after it.
    age: u32,
}

/// Packets behind a marked one until the clock must have jumped, if that is why it was marked: a parser lags
/// behind by one.
const MARK_AGE: u32 = 2;

/// What was found to be wrong with the input, in counts.
#[derive(Debug, Default)]
pub(in crate::source::video) struct Damage {
    /// Packets that could not be read, were marked as damaged, or that the decoder refused.
    pub(in crate::source::video) packets: u64,
    /// Pictures that the decoder patched, by their marks.
    pub(in crate::source::video) pictures: u64,
    /// The same by what the decoder said, and what it had said when counting began: a picture may come out
    /// before it is marked.
    patched: u64,
    patched_before: u64,
    /// Packets that the decoder refused, of which it says the same.
    refused: u64,
    /// Packets of the filtered stream read so far.
    pub(in crate::source::video) read: u64,
    /// Largest end of any packet of any stream, in seconds.
    pub(in crate::source::video) end: f64,
    /// Largest end of any packet of the filtered stream, in seconds.
    pub(in crate::source::video) stream_end: f64,
    pub(in crate::source::video) errors_in_a_row: u32,
    /// Where the last packet's bytes end in the input.
    pub(in crate::source::video) reached: u64,
    /// The demuxer's last words, if they were of an error in the data.
    pub(in crate::source::video) complaint: Option<String>,
    /// A packet that is marked as damaged, though its data may be whole.
    mark: Option<Mark>,
    /// Its edit list has several parts, or is not followed: its stated length says nothing of its packets.
    pub(in crate::source::video) is_edited: bool,
    /// Reading stopped for this reason.
    pub(in crate::source::video) stopped: Option<String>,
    /// Times of the first packets that were decoded to be shown.
    head: Vec<Option<i64>>,
    /// Packets that were decoded to be shown, and pictures that came out.
    decoded: u64,
    shown: u64,
    /// Time of the first picture.
    first: Option<i64>,
    /// One of the pictures is interlaced, so that a packet may be half of one.
    interlaced: bool,
}

impl Damage {
    /// Counts a packet that is to be shown at `pts`.
    pub(in crate::source::video) fn note_packet(&mut self, pts: Option<i64>) {
        self.decoded += 1;
        if self.head.len() < HEAD {
            self.head.push(pts);
        }
    }

    /// Counts a picture that is shown at `pts`.
    pub(in crate::source::video) fn note_picture(&mut self, pts: Option<i64>, interlaced: bool) {
        if self.shown == 0 {
            self.first = pts;
        }
        self.shown += 1;
        self.interlaced |= interlaced;
    }

    /// Takes what the decoder said so far of pictures that it patched; true if there are some.
    pub(in crate::source::video) fn note_patched(&mut self, patched: u64) -> bool {
        self.patched = patched;
        patched > self.patched_before
    }

    /// Pictures that the decoder patched.
    fn damaged_pictures(&self) -> u64 {
        let said = self.patched - self.patched_before;
        self.pictures.max(said.saturating_sub(self.refused))
    }

    /// True if something is known to be damaged.
    pub(in crate::source::video) fn is_damaged(&self) -> bool {
        self.packets > 0 || self.damaged_pictures() > 0 || self.complaint.is_some() || self.stopped.is_some()
    }

    /// Counts a packet that the decoder refused.
    pub(in crate::source::video) fn note_refused(&mut self) {
        self.refused += 1;
    }

    /// When the first picture is shown.
    pub(in crate::source::video) fn first_shown(&self) -> Option<i64> {
        self.first
    }

    /// Forgets the head of the stream: what was decoded of it is not part of what is read. `patched` is what
    /// the decoder said until then.
    pub(in crate::source::video) fn begin_anew(&mut self, patched: u64) {
        self.head.clear();
        (self.patched, self.patched_before, self.refused) = (patched, patched, 0);
        (self.decoded, self.shown, self.first) = (0, 0, None);
    }

    /// Notes that a packet is marked as damaged.
    /// Gives the place of one before it that is not settled yet.
    pub(in crate::source::video) fn mark(&mut self, epoch: usize, place: String) -> Option<String> {
        let before = self.mark.replace(Mark { epoch, place, age: 0 });
        before.map(|mark| mark.place)
    }

    /// Where a marked packet is, if it is damaged by what is known at a further one, or at the end (`None`),
    /// of the stream. Where the clock jumps, two recordings were joined, and the count of pieces begins anew
    /// though nothing is missing.
    pub(in crate::source::video) fn settle_mark(&mut self, epoch: Option<usize>) -> Option<String> {
        let mark = self.mark.as_mut()?;
        mark.age += 1;
        let jumped = epoch.is_some_and(|now| now != mark.epoch);
        if epoch.is_some() && !jumped && mark.age < MARK_AGE {
            return None;
        }
        self.mark.take().filter(|_| !jumped).map(|mark| mark.place)
    }

    /// Pictures at the head of the stream that cannot be decoded, because what they refer to comes before it.
    /// Before the end of the stream, packets may still be on their way through the decoder.
    fn leading(&self, codec: &str, at_end: bool) -> u64 {
        if let Some(undecoded) = self.undecoded(codec).filter(|_| at_end) {
            return undecoded;
        }
        if !ONE_PICTURE_A_PACKET.contains(&codec) || self.shown == 0 {
            return 0;
        }
        let before = |pts: &&Option<i64>| self.first.zip(**pts).is_some_and(|(first, pts)| pts < first);
        self.head.iter().filter(before).count() as u64
    }

    /// Packets, at the end of the stream, of which no picture came out, where times do not tell which they
    /// are: a bare stream has none, and containers have none, or the same as the first picture's, for what
    /// comes before their clock begins. Damaged packets bear no picture, and are counted by themselves.
    pub(super) fn undecoded(&self, codec: &str) -> Option<u64> {
        let timeless = self.head.iter().any(Option::is_none);
        let at_first = self.head.iter().filter(|&&pts| pts == self.first).count() > 1;
        let is_countable = ONE_PICTURE_A_PACKET.contains(&codec) && self.shown > 0;
        (is_countable && (timeless || at_first) && self.packets == 0 && !self.interlaced)
            .then(|| self.decoded.saturating_sub(self.shown))
    }

    /// How much was concealed, if there is anything to report.
    pub(in crate::source::video) fn concealed(&self) -> Option<Concealed> {
        let found = Concealed {
            packets: self.packets,
            frames: self.damaged_pictures(),
        };
        Some(found).filter(|&found| found != Concealed::default())
    }

    /// Pictures that are missing at the beginning, as a sentence.
    pub(in crate::source::video) fn missing_head(&self, codec: &str, at_end: bool) -> Option<String> {
        match self.leading(codec, at_end) {
            0 => None,
            1 => Some(
                "1 picture at its beginning cannot be decoded, because it refers to one before the cut"
                    .to_owned(),
            ),
            n => Some(format!(
                "{n} pictures at its beginning cannot be decoded, because they refer to ones before the cut"
            )),
        }
    }

    /// Packets of `stream` that an index of the file leads to and that were not read, as a sentence.
    pub(super) fn short_of_index(&self, demuxer: &Demuxer, stream: usize) -> Option<String> {
        if let Some(listed) = demuxer.listed_packets(stream) {
            return (self.read < listed)
                .then(|| format!("only {} of its {listed} packets are there", self.read));
        }
        let indexed = demuxer.indexed_packets(stream)?;
        (self.read < indexed).then(|| {
            format!(
                "only {} of the {indexed} packets in its index are there",
                self.read
            )
        })
    }

    /// Signs that the input was cut off at its end, as a sentence. Packets can be counted only where none was
    /// passed over by seeking (`has_sought`).
    pub(in crate::source::video) fn missing_end(
        &self,
        demuxer: &Demuxer,
        stream: usize,
        extent: Extent,
        frame_rate: Option<Rational>,
        stated: Option<f64>,
        has_sought: bool,
    ) -> Option<String> {
        if let Some(reason) = &self.stopped {
            return Some(format!("reading ended early ({reason})"));
        }
        if extent == Extent::Missing(1) {
            return Some("by its own account its last byte is missing".to_owned());
        }
        if let Extent::Missing(bytes) = extent {
            return Some(format!("by its own account its last {bytes} bytes are missing"));
        }
        if extent == Extent::Cut {
            return Some("by its own account its end is missing".to_owned());
        }
        if extent == Extent::MidPacket {
            return Some("it ends in the middle of a packet".to_owned());
        }
        if extent == Extent::Broken {
            return Some("its blocks break off, and what follows is not read".to_owned());
        }
        if !has_sought {
            let short = self.short_of_index(demuxer, stream);
            // Its list says what is to be read, whatever an edit list makes of the length.
            if short.is_some() || demuxer.listed_packets(stream).is_some() {
                return short;
            }
        }
        // Fragments, and an AVI file whose index is lost, may lack pieces in the middle.
        let is_indexed = demuxer.indexed_packets(stream).is_some();
        let may_lack = match demuxer.format_name() {
            "avi" => !is_indexed && !has_sought,
            name => name.contains("mp4") && !self.is_edited,
        };
        if (extent == Extent::Whole && !may_lack) || demuxer.jumps().count > 0 {
            return None;
        }
        // Containers round to milliseconds and guess the last frame's duration.
        let tolerance = match frame_rate {
            Some(rate) if rate.to_f64() > 0.0 => f64::max(0.1, 2.0 / rate.to_f64()),
            _ => 0.25,
        };
        // Matroska's length is counted from zero, and our clock may begin later.
        let before = match demuxer.format_name().starts_with("matroska") {
            true => f64::max(0.0, -demuxer.shift()),
            false => 0.0,
        };
        [(self.stream_end, stated), (self.end + before, demuxer.duration())]
            .into_iter()
            .filter_map(|(end, seconds)| Some((end, seconds?)))
            .find(|&(end, seconds)| end > 0.0 && end + tolerance < seconds)
            .map(|(end, seconds)| {
                format!("its data end at {end:.3} s, though its header says {seconds:.3} s")
            })
    }
}

/// The jumps of an input's clock as a sentence, if there are any.
pub(in crate::source::video) fn jumps_sentence(jumps: Jumps) -> Option<String> {
    let first = jumps.first?;
    let times = match jumps.count {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    Some(format!(
        "its clock jumps {times}, first by {:+.3} s at {:.3} s; what comes after a jump follows on what came \
         before",
        first.by, first.at
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::ffmpeg::Jump;

    #[test]
    fn damage_is_counted() {
        let mut damage = Damage::default();
        assert_eq!(damage.concealed(), None);
        (damage.packets, damage.pictures) = (1, 2);
        let found = Concealed {
            packets: 1,
            frames: 2,
        };
        assert_eq!(damage.concealed(), Some(found));
    }

    #[test]
    fn leading_pictures_are_those_before_the_first_that_comes_out() {
        let mut damage = Damage::default();
        for pts in [3, 0, 1, 2, 6, 4, 5] {
            damage.note_packet(Some(pts));
        }
        for pts in [3, 4, 5, 6] {
            damage.note_picture(Some(pts), false);
        }
        assert_eq!(damage.leading("h264", true), 3);
        assert_eq!(damage.leading("vp8", true), 0);
        let mut bare = Damage::default();
        for _ in 0..7 {
            bare.note_packet(None);
        }
        for _ in 0..4 {
            bare.note_picture(None, false);
        }
        assert_eq!(bare.leading("hevc", true), 3);
        bare.note_picture(None, true);
        assert_eq!(bare.leading("hevc", true), 0);
    }

    #[test]
    fn jumps_are_said_with_the_first() {
        assert_eq!(jumps_sentence(Jumps::default()), None);
        let first = Some(Jump { at: 2.0, by: -1.5 });
        let sentence = jumps_sentence(Jumps { count: 2, first }).unwrap_or_default();
        assert!(
            sentence.contains("2 times, first by -1.500 s at 2.000 s"),
            "{sentence}"
        );
    }
}
