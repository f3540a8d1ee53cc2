//! When a picture is shown that is known by its number.

use super::REORDERED;
use crate::media::ffmpeg::{Demuxer, Packet};
use crate::source::SourceError;
use crate::source::video::VideoSource;
use std::collections::BinaryHeap;

impl VideoSource {
    /// The file once more, at a key frame a second before tick `from` where an index leads there, so that
    /// what is shown later comes behind it; else at the beginning.
    fn opened_before(&self, from: i64) -> Result<Demuxer, SourceError> {
        let open = || self.file.open();
        let (mut demuxer, aim) = (open()?, from.saturating_sub(self.second()));
        if aim <= 0 || !demuxer.has_exact_index() {
            return Ok(demuxer);
        }
        let mut packet = Packet::new().map_err(|e| self.file.lacking(e))?;
        let mut is_before = false;
        if demuxer.seek(self.input.stream, aim).is_ok() {
            let is_ours = |packet: &Packet| packet.stream() == self.input.stream && packet.size() > 0;
            while demuxer.read(&mut packet).is_ok() && !is_ours(&packet) {}
            is_before = packet.is_key() && packet.pts().is_some_and(|at| at <= aim);
        }
        // Back to that packet.
        if is_before && demuxer.seek(self.input.stream, aim).is_ok() {
            return Ok(demuxer);
        }
        open()
    }

    /// When picture `number` of those that are shown at tick `from` or later is shown, in ticks, found by the
    /// times of packets; `None` where they have none, or the input can be read only once. Those before the
    /// first picture, which cannot be decoded, are none.
    pub(in crate::source::video) fn packet_time(
        &mut self,
        from: i64,
        number: u64,
    ) -> Result<Option<i64>, SourceError> {
        let Ok(number) = usize::try_from(number) else {
            return Ok(None);
        };
        if !self.can_be_read_again() {
            return Ok(None);
        }
        let from = from.max(self.findings.damage.first_shown().unwrap_or(i64::MIN));
        let mut demuxer = self.opened_before(from)?;
        let mut packet = Packet::new().map_err(|e| self.file.lacking(e))?;
        // The latest ones; those that are certain to come before the wanted one are only counted.
        let mut times = BinaryHeap::new();
        let mut before = 0;
        while before + times.len() <= number + REORDERED && demuxer.read(&mut packet).is_ok() {
            if packet.stream() != self.input.stream || packet.size() == 0 || packet.is_discarded() {
                continue;
            }
            let Some(shown) = packet.pts() else {
                return Ok(None);
            };
            if shown < from {
                continue;
            }
            times.push(std::cmp::Reverse(shown));
            if times.len() > 2 * REORDERED {
                times.pop();
                before += 1;
            }
        }
        if number < before {
            return Ok(None);
        }
        let mut times: Vec<i64> = times.into_iter().map(|std::cmp::Reverse(at)| at).collect();
        times.sort_unstable();
        Ok(times.get(number - before).copied())
    }
}
