//! Packets that are missing in a transport stream, by their counters, and damaged ones of the streams beside
//! the pictures.
//!
//! FFmpeg marks what it was putting together when a counter did not go on, and says nothing of what was lost
//! between two of a stream's packets. So what it says of the counters themselves is heard:
//!
//! ```text
//!   packets of one stream    begins at 100 ...... 900 | ?????? | begins at 5000 ......
//!   the counter fails                                            at 5188
//! ```
//!
//! It is damage unless the stream's clock jumps there, because two recordings were joined, or the counters
//! begin anew in the tables, too, because parts of one recording were put together.

use std::collections::BTreeMap;

/// Packets of a stream behind a fault until its clock must have jumped, if that is why it is there: a parser
/// lags behind by one.
const AGE: u32 = 2;

/// More than from where a packet of a transport stream begins to where the reader is behind it, and less than
/// two of them have.
const LONGEST: u64 = 204;

/// Bytes that the reader looks at when it searches for the next packet.
const SEARCHED: u64 = 8192;

/// Packets of all streams behind a place without packets in which counters show what it took.
const SETTLED: u32 = 16;

/// A place in a stream where its counter does not go on.
#[derive(Debug)]
struct Gap {
    at: u64,
    /// How many jumps of the clock came before it.
    before: Option<usize>,
    /// Packets that came behind it.
    age: u32,
    /// The counters begin anew: nothing is missing.
    is_restart: bool,
    /// Where it is, for an error's sentence.
    place: String,
}

/// A stream beside the pictures has a packet that is marked as damaged.
#[derive(Debug)]
struct Marked {
    epoch: usize,
    age: u32,
    place: String,
}

/// Bytes that are no packets.
#[derive(Debug)]
struct NoPackets {
    at: u64,
    place: String,
    age: u32,
    /// Damage that was counted when they came.
    damage: u64,
}

/// Which packets are missing, or damaged beside the pictures.
#[derive(Debug, Default)]
pub(in crate::source::video) struct Continuity {
    gaps: BTreeMap<usize, Vec<Gap>>,
    marked: BTreeMap<usize, Marked>,
    no_packets: Option<NoPackets>,
    /// How far each identifier's faults are known: after a seek they come once more.
    heard: BTreeMap<u32, u64>,
    /// Where the counters of tables began anew last, and the streams' since.
    restart: Option<u64>,
    restarted: BTreeMap<usize, u64>,
    /// A packet was read whose place is known.
    has_begun: bool,
}

/// What is wrong, and where.
pub(in crate::source::video) type Found = (String, String);

/// The sentence's beginning for a packet of `stream` that is marked.
fn marked(stream: usize) -> String {
    format!("a packet of stream {stream} is marked as damaged")
}

/// The sentence's beginning for packets that are missing in `stream`.
fn missing(stream: usize) -> String {
    format!("packets of stream {stream} are missing, by their counters,")
}

impl Continuity {
    /// Notes that the counter of packets with identifier `pid`, those of `stream` if it is one, goes on with
    /// `number` at byte `at`, which is not the next.
    pub(in crate::source::video) fn note_counter(
        &mut self,
        at: u64,
        (pid, number): (u32, u32),
        stream: Option<usize>,
        place: String,
    ) {
        let heard = self.heard.entry(pid).or_default();
        if at <= *heard {
            return;
        }
        *heard = at;
        let Some(stream) = stream else {
            // A table, whose packets come again and again.
            if number == 0 {
                self.restart = Some(at);
            }
            return;
        };
        let restart = self.restart.filter(|_| number == 0);
        let is_restart = restart.is_some() && self.restarted.get(&stream).copied() != restart;
        if let Some(restart) = restart {
            self.restarted.insert(stream, restart);
        }
        let gaps = self.gaps.entry(stream).or_default();
        gaps.push(Gap {
            at,
            before: None,
            age: 0,
            is_restart,
            place,
        });
        gaps.sort_by_key(|gap| gap.at);
    }

    /// Notes that the reader looked for the next packet near byte `at`. `damage` is what was counted so far.
    pub(in crate::source::video) fn note_search(&mut self, at: u64, damage: u64, place: String) {
        self.no_packets.get_or_insert(NoPackets {
            at,
            place,
            age: 0,
            damage,
        });
    }

    /// Takes a packet of `stream` that begins at byte `at`, whose clock has jumped `epoch` times, and gives
    /// the places before it where some are missing.
    pub(in crate::source::video) fn note_packet(
        &mut self,
        stream: usize,
        at: Option<u64>,
        epoch: usize,
        damage: u64,
    ) -> Vec<Found> {
        let mut found = Vec::new();
        // An input may begin in the middle of a packet.
        if let Some(at) = at.filter(|_| !self.has_begun) {
            self.has_begun = true;
            self.no_packets = self
                .no_packets
                .take()
                .filter(|none| none.at > at + SEARCHED + LONGEST);
        }
        if let Some(none) = &mut self.no_packets {
            none.age += 1;
        }
        if self.no_packets.as_ref().is_some_and(|none| none.age >= SETTLED) {
            found.extend(self.take_no_packets(damage));
        }
        if let Some(marked) = self.marked.get_mut(&stream) {
            marked.age += 1;
            let jumped = marked.epoch != epoch;
            if (jumped || marked.age >= AGE)
                && let Some(marked) = self.marked.remove(&stream).filter(|_| !jumped)
            {
                found.push((self::marked(stream), marked.place));
            }
        }
        let (Some(gaps), Some(at)) = (self.gaps.get_mut(&stream), at) else {
            return found;
        };
        let passed = gaps.partition_point(|gap| gap.at <= at + LONGEST);
        for gap in &mut gaps[passed..] {
            gap.before = Some(epoch);
        }
        // What lies between the same two packets is one.
        let first = gaps[..passed].partition_point(|gap| gap.age > 0);
        if first < passed {
            gaps[first].is_restart = gaps[first..passed].iter().all(|gap| gap.is_restart);
            gaps.drain(first + 1..passed);
        }
        for gap in &mut gaps[..passed.min(first + 1)] {
            gap.age += 1;
        }
        gaps.retain_mut(|gap| {
            let jumped = gap.age > 0 && gap.before.is_some_and(|before| before != epoch);
            let is_settled = gap.age >= AGE;
            if is_settled && !jumped && !gap.is_restart {
                found.push((missing(stream), std::mem::take(&mut gap.place)));
            }
            !jumped && !is_settled
        });
        found
    }

    /// True if a packet of `stream` that is marked as damaged is so because its counter does not go on.
    pub(in crate::source::video) fn explains(&self, stream: usize) -> bool {
        let gaps = self.gaps.get(&stream);
        gaps.is_some_and(|gaps| gaps.iter().any(|gap| gap.age == 0))
    }

    /// Notes that a packet of `stream`, which is not that of the pictures, is marked as damaged. Several in a
    /// row are one.
    pub(in crate::source::video) fn mark(&mut self, stream: usize, epoch: usize, place: String) {
        let marked = self
            .marked
            .entry(stream)
            .or_insert(Marked { epoch, age: 0, place });
        (marked.epoch, marked.age) = (epoch, 0);
    }

    /// What is not settled at the end. `ends_anywhere` is true for containers that a recorder may end in the
    /// middle of a packet.
    pub(in crate::source::video) fn end(&mut self, ends_anywhere: bool, damage: u64) -> Vec<Found> {
        let marked = std::mem::take(&mut self.marked).into_iter();
        let marked = marked.filter(|_| !ends_anywhere);
        let mut found: Vec<Found> = marked
            .map(|(stream, packet)| (self::marked(stream), packet.place))
            .collect();
        for (stream, gaps) in std::mem::take(&mut self.gaps) {
            let gap = gaps.into_iter().find(|gap| !gap.is_restart);
            found.extend(gap.map(|gap| (missing(stream), gap.place)));
        }
        if found.is_empty() {
            found.extend(self.take_no_packets(damage));
        }
        found
    }

    /// Bytes that are no packets, unless what they took is known.
    fn take_no_packets(&mut self, damage: u64) -> Option<Found> {
        let none = self.no_packets.take().filter(|none| none.damage == damage)?;
        // Its packets are counted below, if they are to be.
        let is_known = self.gaps.values().flatten().any(|gap| !gap.is_restart);
        (!is_known).then(|| {
            (
                "bytes are no packets of a transport stream".to_owned(),
                none.place,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where packets of stream 1 are missing whose counter fails at byte 1188: behind those at bytes 0 and
    /// 400, before those at the given ones, with their epochs.
    fn found(table: Option<u64>, number: u32, behind: &[(u64, usize)]) -> usize {
        let mut continuity = Continuity::default();
        let place = || "here".to_owned();
        assert!(continuity.note_packet(1, Some(0), 0, 0).is_empty());
        if let Some(at) = table {
            continuity.note_counter(at, (0, 0), None, place());
        }
        continuity.note_counter(1188, (256, number), Some(1), place());
        assert!(continuity.explains(1) && !continuity.explains(0));
        assert!(continuity.note_packet(1, Some(400), 0, 0).is_empty());
        let mut found = 0;
        for &(at, epoch) in behind {
            found += continuity.note_packet(1, Some(at), epoch, 0).len();
            continuity.note_counter(1188, (256, number), Some(1), place());
        }
        found + continuity.end(true, 0).len()
    }

    #[test]
    fn counters_that_fail_are_damage_unless_the_clock_jumps_or_all_begin_anew() {
        assert_eq!(found(None, 3, &[(1000, 0), (2000, 0), (3000, 0)]), 1);
        assert_eq!(found(None, 3, &[(1000, 0)]), 1);
        assert_eq!(found(None, 3, &[]), 1);
        assert_eq!(found(None, 3, &[(1000, 1), (2000, 1)]), 0);
        assert_eq!(found(None, 3, &[(1000, 0), (2000, 1), (3000, 1)]), 0);
        assert_eq!(found(Some(800), 0, &[(1000, 0), (2000, 0), (3000, 0)]), 0);
        assert_eq!(found(Some(800), 3, &[(1000, 0), (2000, 0), (3000, 0)]), 1);
        assert_eq!(found(None, 0, &[(1000, 0), (2000, 0), (3000, 0)]), 1);
    }

    #[test]
    fn bytes_that_are_no_packets_count_where_nothing_else_does() {
        let place = || "here".to_owned();
        for (at, counter, expected) in [(90_000, false, 1), (90_000, true, 1), (2000, false, 0)] {
            let mut continuity = Continuity::default();
            if at < 90_000 {
                continuity.note_search(at, 0, place());
            }
            assert!(continuity.note_packet(0, Some(188), 0, 0).is_empty());
            if at == 90_000 {
                continuity.note_search(at, 0, place());
            }
            if counter {
                continuity.note_counter(at, (256, 1), Some(1), place());
            }
            let mut found = 0;
            for packet in 0..40 {
                found += continuity
                    .note_packet(0, Some(100_000 + packet * 188), 0, 0)
                    .len();
            }
            assert_eq!(found + continuity.end(true, 0).len(), expected, "{at}, {counter}");
        }
    }

    #[test]
    fn marks_beside_the_pictures_are_damage_unless_the_clock_jumps_or_a_recording_ends() {
        for (epochs, ends_anywhere, expected) in [
            (&[0, 0][..], true, 1),
            (&[1, 1], true, 0),
            (&[], true, 0),
            (&[], false, 1),
        ] {
            let mut continuity = Continuity::default();
            continuity.mark(1, 0, "here".to_owned());
            continuity.mark(1, 0, "there".to_owned());
            let mut found = 0;
            for &epoch in epochs {
                found += continuity.note_packet(1, None, epoch, 0).len();
            }
            assert_eq!(
                found + continuity.end(ends_anywhere, 0).len(),
                expected,
                "{epochs:?}"
            );
        }
    }
}
