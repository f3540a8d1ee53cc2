//! Sound that changes its rate, its channels or its codec in mid-stream, by the headers of its packets.
//!
//! Transport streams that were put together keep one stream for all of it, which FFmpeg reads as the first
//! codec. Other containers state rate and channels once, and AAC has no other place for them there.

use super::headers::{Family, Form, of_configuration, others};

/// The forms that the packets of a stream say they have.
pub(in crate::sink::video) struct Changes {
    codec: String,
    /// Packets go on as they are.
    is_copied: bool,
    /// The container does not say anew what the headers of packets say.
    states_once: bool,
    /// It does not say anew what comes beside packets (AV_PKT_DATA_NEW_EXTRADATA), either.
    states_headers_once: bool,
    /// The header that comes before the first packet.
    header: Vec<u8>,
    /// The form of the first packet.
    first: Option<Form>,
    /// That of the last packet, and when the first one of that form begins, in seconds.
    last: Option<(Form, f64)>,
    /// The first other form, and from when on.
    change: Option<(Form, f64)>,
    /// When another header came of which no more is known.
    other_header: Option<f64>,
    /// The first other codec that the first one's parser found nothing in, from when on, and its bytes.
    foreign: Option<(&'static str, f64, usize)>,
}

impl Changes {
    /// Of a stream of this codec, with this header, that is copied into `container`.
    pub(in crate::sink::video) fn watched(codec: &str, header: &[u8], container: &str) -> Changes {
        let says_each = match codec {
            // Decoders take it from each frame, but these containers have a box for it.
            "ac3" | "eac3" => !matches!(container, "mov" | "mp4" | "ipod" | "3gp" | "3g2" | "psp" | "ismv"),
            _ => matches!(container, "mpegts" | "mpeg" | "vob" | "svcd" | "dvd"),
        };
        Changes {
            is_copied: true,
            states_once: !says_each,
            states_headers_once: container != "flv",
            ..Changes::of_codecs(codec, header)
        }
    }

    /// Of a stream of this codec, with this header, that is decoded: rate and channels are the decoder's.
    pub(in crate::sink::video) fn of_codecs(codec: &str, header: &[u8]) -> Changes {
        Changes {
            codec: codec.to_owned(),
            is_copied: false,
            states_once: false,
            states_headers_once: false,
            header: header.to_vec(),
            first: None,
            last: None,
            change: None,
            other_header: None,
            foreign: None,
        }
    }

    /// True if the output must not be given the headers that come beside packets.
    pub(in crate::sink::video) fn keeps_first_header(&self) -> bool {
        self.states_headers_once
    }

    /// Looks at a packet from `begins` to `ends`, in seconds, and gives the bytes at its beginning that are
    /// of the stream's codec. Two packets in a row say that the form changes, not a damaged one.
    pub(in crate::sink::video) fn see(&mut self, data: &[u8], (begins, ends): (f64, f64)) -> usize {
        let Some(family) = Family::of(&self.codec) else {
            return data.len();
        };
        if let Some(header) = family.header(data) {
            self.note(header.form, begins);
        }
        let own = family.frames(data);
        // Between packets without headers there is nothing to know.
        if own == data.len() || self.first.is_none() {
            return data.len();
        }
        match others(family, &data[own..]) {
            Some(form) => {
                let from = if own == 0 { begins } else { ends };
                self.foreign.get_or_insert((form.codec, from, 0)).2 += data.len() - own;
                own
            }
            None => data.len(),
        }
    }

    /// Notes the form of a packet at `time` seconds.
    fn note(&mut self, form: Form, time: f64) {
        let first = *self.first.get_or_insert(form);
        let counts = self.states_once && form != first || self.is_copied && form.codec != first.codec;
        match self.last {
            Some((last, begins)) if last == form && counts => {
                self.change.get_or_insert((form, begins));
            }
            Some((last, _)) if last == form => {}
            _ => self.last = Some((form, time)),
        }
    }

    /// Notes a header that came beside a packet at `time` seconds.
    pub(in crate::sink::video) fn see_header(&mut self, header: &[u8], time: f64) {
        if !self.states_headers_once || header == self.header || self.change.is_some() {
            return;
        }
        let forms = of_configuration(header).zip(of_configuration(&self.header));
        match forms.filter(|_| self.codec == "aac") {
            Some((to, from)) if to != from => {
                self.first = Some(from);
                self.change = Some((to, time));
            }
            Some(_) => {}
            None => {
                self.other_header.get_or_insert(time);
            }
        }
    }

    /// Word of the changes, if there were some.
    pub(in crate::sink::video) fn sentences(&self, label: &str, container: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(((to, begins), from)) = self.change.zip(self.first) {
            let [to, from] = match to.codec == from.codec {
                true => [to, from].map(Form::word),
                false => [to, from].map(|form| format!("{}, {}", form.codec, form.word())),
            };
            sentences.push(format!(
                "{label} has {to} from {begins:.3} s on instead of {from}, and {container} states that once: \
                 players may take what follows for the first; --audio-encoder brings it to one form"
            ));
        }
        if let Some(begins) = self.other_header {
            sentences.push(format!(
                "{label} has other codec headers from {begins:.3} s on, and {container} states them once: \
                 players may not decode what follows"
            ));
        }
        if let Some((codec, begins, bytes)) = self.foreign {
            sentences.push(format!(
                "{label} goes over to {codec} at {begins:.3} s, which FFmpeg goes on reading as {}: {bytes} \
                 bytes of other codecs are left out; cut the input there and filter its parts one by one",
                self.codec
            ));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_packet_is_no_change() {
        let (mono, stereo) = ([0xFF, 0xFD, 0xA4, 0xC0], [0xFF, 0xFD, 0xA0, 0x00]);
        let mut changes = Changes::watched("mp2", &[], "matroska");
        for (at, header) in [mono, stereo, mono, mono].iter().enumerate() {
            changes.see(header, (at as f64, at as f64 + 1.0));
        }
        assert_eq!(changes.sentences("sound", "mkv"), [""; 0]);
        for at in 4..6 {
            changes.see(&stereo, (f64::from(at), f64::from(at + 1)));
        }
        let said = changes.sentences("sound", "mkv").join("\n");
        assert!(
            said.starts_with("sound has 44100 Hz and 2 channels from 4.000 s on instead of 48000 Hz and 1"),
            "{said}"
        );
        let mut each = Changes::watched("mp2", &[], "mpegts");
        for at in 0..4 {
            each.see(if at < 2 { &mono } else { &stereo }, (f64::from(at), 9.0));
        }
        assert_eq!(each.sentences("sound", "mpegts"), [""; 0]);
    }

    #[test]
    fn a_header_that_is_repeated_is_no_change() {
        let mut changes = Changes::watched("aac", &[0x11, 0x90], "mp4");
        changes.see_header(&[0x11, 0x90], 1.0);
        assert_eq!(changes.sentences("sound", "mp4"), [""; 0]);
        changes.see_header(&[0x12, 0x08], 2.0);
        let said = changes.sentences("sound", "mp4").join("\n");
        assert!(
            said.starts_with("sound has 44100 Hz and 1 channel from 2.000 s on instead of 48000 Hz and 2"),
            "{said}"
        );
    }
}
