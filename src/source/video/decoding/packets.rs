//! Packets on their way from the demuxer to the decoder.

use crate::media::ffmpeg::{AvError, Demuxer, Packet, TransportFault};
use crate::source::SourceError;
use crate::source::video::findings::Findings;
use crate::source::video::{ReadState, VideoSource};
use crate::waiting::StallTimeout;

/// Read errors in a row after which a damaged input is given up: far more than a gap in a file, far less than
/// forever.
const MAX_READ_ERRORS: u32 = 10_000;

/// Read errors in a row after which an index at the end of a pipe is the cause.
const INDEX_BEHIND: u32 = 8;

/// What is wrong with a packet that FFmpeg finds no memory for, though there is some.
const CLAIM: &str = "a packet states that it is larger than anything can be";

/// What is wrong with a packet that the demuxer marked.
const MARKED: &str = "a packet is marked as damaged";

/// True for the beginning of an animated WebP file, as its flags state.
fn is_animated_webp(data: &[u8]) -> bool {
    const ANIMATION: u8 = 2;
    data.starts_with(b"RIFF")
        && data.get(8..16) == Some(b"WEBPVP8X")
        && data.get(20).is_some_and(|flags| flags & ANIMATION != 0)
}

/// The stream of the input that is decoded.
pub(in crate::source::video) struct InputStream {
    pub(in crate::source::video) demuxer: Demuxer,
    pub(in crate::source::video) stream: usize,
    /// The packet that was read last.
    pub(in crate::source::video) packet: Packet,
    pub(in crate::source::video) state: ReadState,
}

impl InputStream {
    /// How many jumps of the clock came so far.
    pub(super) fn epoch(&self) -> usize {
        self.demuxer.epoch(self.stream)
    }

    /// True if nothing went wrong in reading, and packets that reach up to byte `reached` are all of the
    /// input.
    fn is_at_end(&self, reached: u64) -> bool {
        if self.demuxer.is_list() {
            return false;
        }
        let length = self.demuxer.length();
        self.demuxer.io_error().is_none() && length.is_some_and(|length| reached >= length)
    }
}

impl VideoSource {
    /// Gives the next packet, or the end, to the decoder.
    pub(in crate::source::video) fn feed(&mut self, stopped: &impl Fn() -> bool) -> Result<(), SourceError> {
        match self.skip.next() {
            Some(packet) => self.input.packet = packet,
            None if self.read_packet(stopped)? => {}
            None => return self.send_end(),
        }
        self.send_packet()
    }

    /// Gives the packet to the decoder.
    pub(in crate::source::video) fn send_packet(&mut self) -> Result<(), SourceError> {
        if self.maker.made == 0
            && is_animated_webp(self.input.packet.data())
            && self.input.demuxer.format_name() == "webp_pipe"
        {
            return Err(self
                .file
                .invalid("an animated WebP cannot be read from a pipe; give the file".to_owned()));
        }
        if !self.input.packet.is_discarded() {
            self.findings.damage.note_packet(self.input.packet.pts());
        }
        self.findings
            .tail
            .note_packet(&self.input.demuxer, &self.input.packet);
        if let Some(depths) = &mut self.maker.depths {
            depths.note_packet(self.input.packet.data());
        }
        if let Some(jpeg_xl) = &mut self.maker.jpeg_xl {
            jpeg_xl.note_packet(self.input.packet.data());
        }
        self.note_annotations()?;
        self.note_additions()?;
        match self.decoder.send(Some(&self.input.packet)) {
            Ok(()) => Ok(()),
            Err(e) => self.refused(e),
        }
    }

    /// Reads the next packet of the stream; false at the end.
    pub(in crate::source::video) fn read_packet(
        &mut self,
        stopped: &impl Fn() -> bool,
    ) -> Result<bool, SourceError> {
        loop {
            let read = self.input.demuxer.read(&mut self.input.packet);
            if self.input.demuxer.timed_out() {
                return Err(self.file.invalid(StallTimeout::sentence(self.file.limit.timeout)));
            }
            if let Some(why) = self.input.demuxer.refused() {
                return Err(self.file.invalid(why));
            }
            for file in self.input.demuxer.passed_over() {
                self.findings.pass_over(&self.file, file)?;
            }
            if stopped() {
                return Err(crate::frame::Stopped.into());
            }
            match read {
                Ok(()) => {
                    self.findings.damage.errors_in_a_row = 0;
                    if let Some(complaint) = self.input.demuxer.complaint() {
                        self.damaged(&format!("bytes make no sense ({complaint})"))?;
                    }
                }
                Err(e) if e.is_eof() => {
                    self.findings.damage.stopped = self.input.demuxer.io_error().map(|e| e.to_string());
                    self.findings.damage.complaint = self.input.demuxer.complaint();
                    return Ok(false);
                }
                Err(e) if e.is_again() => {
                    std::thread::yield_now();
                    continue;
                }
                Err(e) if e.is_claim(self.input.demuxer.length()) => {
                    self.damaged(CLAIM)?;
                    self.findings.damage.stopped = Some(CLAIM.to_owned());
                    return Ok(false);
                }
                Err(e) if self.is_behind_list(e) => return Ok(false),
                Err(e) => {
                    if self.findings.damage.errors_in_a_row + 1 == INDEX_BEHIND
                        && self.findings.damage.read == 0
                        && self.input.demuxer.needs_index()
                    {
                        return Err(self.file.invalid(
                            "its index lies at its end, and what comes through a pipe cannot be read a \
                             second time; give the file itself, or write it with its index at the beginning \
                             (ffmpeg -movflags +faststart)"
                                .to_owned(),
                        ));
                    }
                    if !e.is_invalid_data() && self.input.is_at_end(self.findings.damage.reached) {
                        // Some demuxers call the end of a whole file a failure.
                        return Ok(false);
                    }
                    self.failed("a packet cannot be read", e)?;
                    self.findings.damage.errors_in_a_row += 1;
                    if !e.is_invalid_data() || self.findings.damage.errors_in_a_row >= MAX_READ_ERRORS {
                        self.findings.damage.stopped = Some(e.to_string());
                        return Ok(false);
                    }
                    continue;
                }
            }
            self.note_end();
            self.note_continuity()?;
            self.note_successor()?;
            if self.input.packet.stream() != self.input.stream {
                continue;
            }
            self.findings.damage.read += 1;
            let epoch = self.input.epoch();
            let shown = self.input.packet.pts();
            self.findings.steps.note_packet(shown, epoch);
            self.settle_mark(Some(epoch))?;
            if self.input.packet.is_corrupt()
                && !self.findings.continuity.explains(self.input.stream)
                && let Some(before) = self.findings.damage.mark(epoch, self.place())
            {
                self.findings.damaged_at(&self.file, MARKED, &before)?;
            }
            if self.input.packet.size() == 0 {
                continue;
            }
            if self.input.packet.is_encrypted() {
                return Err(self.file.invalid(format!(
                    "stream {} is encrypted; decrypt the file with its key first (ffmpeg -decryption_key KEY \
                     -i IN -c copy OUT)",
                    self.input.stream
                )));
            }
            return Ok(true);
        }
    }

    /// True if reading failed with `e` because a file of a list cannot be opened, behind which FFmpeg reads
    /// nothing more.
    fn is_behind_list(&mut self, e: AvError) -> bool {
        let file = self.input.demuxer.file_not_opened();
        self.findings.damage.stopped = match file {
            Some(file) => Some(format!("{file}, which it names, cannot be read as a video: {e}")),
            None => return false,
        };
        true
    }

    /// Counts a packet that was marked as damaged, if it is by what is known now.
    fn settle_mark(&mut self, epoch: Option<usize>) -> Result<(), SourceError> {
        match self.findings.damage.settle_mark(epoch) {
            Some(place) => self.findings.damaged_at(&self.file, MARKED, &place),
            None => Ok(()),
        }
    }

    /// Counts packets that are missing in a transport stream, and damaged ones beside the pictures, by what
    /// is known at the packet that was read.
    fn note_continuity(&mut self) -> Result<(), SourceError> {
        let stream = self.input.packet.stream();
        let epoch = self.input.demuxer.epoch(stream);
        for fault in self.input.demuxer.transport_faults() {
            self.note_fault(fault);
        }
        let Findings {
            continuity, damage, ..
        } = &mut self.findings;
        let found = continuity.note_packet(stream, self.input.packet.begin_in_input(), epoch, damage.packets);
        for (what, place) in found {
            self.findings.damaged_at(&self.file, &what, &place)?;
        }
        let is_beside = stream != self.input.stream && self.input.packet.is_corrupt();
        if is_beside && !self.findings.continuity.explains(stream) {
            let place = self.place();
            self.findings.continuity.mark(stream, epoch, place);
        }
        Ok(())
    }

    /// Notes what the demuxer said of the packets of a transport stream.
    fn note_fault(&mut self, fault: TransportFault) {
        let place = self.place();
        let Findings {
            continuity, damage, ..
        } = &mut self.findings;
        match fault.counter {
            Some(counter) => {
                let stream = self.input.demuxer.stream_of_packets(counter.0);
                continuity.note_counter(fault.at, counter, stream, place);
            }
            None => continuity.note_search(fault.at, damage.packets, place),
        }
    }

    pub(in crate::source::video) fn send_end(&mut self) -> Result<(), SourceError> {
        self.settle_mark(None)?;
        for fault in self.input.demuxer.transport_faults() {
            self.note_fault(fault);
        }
        let ends_anywhere = self.input.demuxer.format_name() == "mpegts";
        let damage = self.findings.damage.packets;
        for (what, place) in self.findings.continuity.end(ends_anywhere, damage) {
            self.findings.damaged_at(&self.file, &what, &place)?;
        }
        self.input.state = ReadState::Draining;
        match self.decoder.send(None) {
            Ok(()) => Ok(()),
            Err(e) if e.is_eof() => Ok(()),
            Err(e) => self.failed("the decoder failed at the end", e),
        }
    }

    /// Remembers how far the packets reach.
    fn note_end(&mut self) {
        let end = self.input.packet.end_in_input().unwrap_or(0);
        self.findings.damage.reached = self.findings.damage.reached.max(end);
        let Some(base) = self.input.demuxer.time_base(self.input.packet.stream()) else {
            return;
        };
        if let Some(at) = self.input.packet.pts().or_else(|| self.input.packet.dts()) {
            let (stream, lasts) = (self.input.packet.stream(), self.input.packet.duration());
            let end = (at + lasts) as f64 * base.to_f64();
            self.findings.damage.end = self.findings.damage.end.max(end);
            if stream == self.input.stream {
                self.findings.damage.stream_end = self.findings.damage.stream_end.max(end);
            } else {
                self.note_sound(stream, at as f64 * base.to_f64(), lasts as f64 * base.to_f64());
            }
        }
    }
}
