//! Sound that changes its rate or channels in mid-stream, by the headers of its packets.
//!
//! Transport streams that were put together keep one stream for all of it. Other containers state rate and
//! channels once, and AAC has no other place for them there.

/// Samples a second and channels, as a packet says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    rate: u32,
    channels: u8,
}

impl Form {
    fn word(self) -> String {
        let channels = match self.channels {
            1 => "1 channel".to_owned(),
            n => format!("{n} channels"),
        };
        format!("{} Hz and {channels}", self.rate)
    }

    /// What a packet of `codec` says of itself.
    fn of(codec: &str, data: &[u8]) -> Option<Form> {
        match codec {
            "aac" => Form::of_adts(data),
            "mp1" | "mp2" | "mp3" => Form::of_mpeg(data),
            _ => None,
        }
    }

    /// By the header that AAC has in transport streams.
    fn of_adts(data: &[u8]) -> Option<Form> {
        const RATES: [u32; 13] = [
            96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350,
        ];
        let &[0xFF, second, third, fourth, fifth, sixth, ..] = data else {
            return None;
        };
        let size = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
        let rate = RATES.get(usize::from(third >> 2 & 15))?;
        let channels = match (third & 1) << 2 | fourth >> 6 {
            // Stated elsewhere.
            0 => return None,
            7 => 8,
            n => n,
        };
        (second & 0xF6 == 0xF0 && size <= data.len()).then_some(Form {
            rate: *rate,
            channels,
        })
    }

    /// By the header of each frame of MPEG audio.
    fn of_mpeg(data: &[u8]) -> Option<Form> {
        let &[0xFF, second, third, fourth, ..] = data else {
            return None;
        };
        let of_version = match second >> 3 & 3 {
            3 => 0,
            2 => 1,
            0 => 2,
            _ => return None,
        };
        let rate = [44100_u32, 48000, 32000].get(usize::from(third >> 2 & 3))?;
        let is_header = second & 0xE0 == 0xE0 && second & 6 != 0 && third >> 4 != 15;
        is_header.then_some(Form {
            rate: rate >> of_version,
            channels: if fourth >> 6 == 3 { 1 } else { 2 },
        })
    }
}

/// The forms that the packets of a stream say they have.
pub(in crate::sink::video) struct Changes {
    codec: String,
    /// That of the first packet.
    first: Option<Form>,
    /// That of the last packet, and when the first one of that form begins, in seconds.
    last: Option<(Form, f64)>,
    /// The first other form, and from when on.
    change: Option<(Form, f64)>,
}

impl Changes {
    /// Of a stream of this codec in `container`; `None` where each frame states its form, there, too.
    pub(in crate::sink::video) fn watched(codec: &str, container: &str) -> Option<Changes> {
        let says_each = matches!(container, "mpegts" | "mpeg" | "vob" | "svcd" | "dvd");
        (!says_each).then(|| Changes {
            codec: codec.to_owned(),
            first: None,
            last: None,
            change: None,
        })
    }

    /// Looks at a packet that begins at `time` seconds. Two in a row say that it changes, not a damaged one.
    pub(in crate::sink::video) fn see(&mut self, data: &[u8], time: f64) {
        let Some(form) = Form::of(&self.codec, data).filter(|_| self.change.is_none()) else {
            return;
        };
        let first = *self.first.get_or_insert(form);
        match self.last {
            Some((last, begins)) if last == form && form != first => self.change = Some((form, begins)),
            Some((last, _)) if last == form => {}
            _ => self.last = Some((form, time)),
        }
    }

    /// Word of the change, if there was one.
    pub(in crate::sink::video) fn sentence(&self, label: &str, container: &str) -> Option<String> {
        let ((to, begins), from) = self.change.zip(self.first)?;
        Some(format!(
            "{label} has {} from {begins:.3} s on instead of {}, and {container} states that once: players \
             may take what follows for the first; --audio-encoder brings it to one form",
            to.word(),
            from.word()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_rate_and_channels() {
        let form = |rate, channels| Some(Form { rate, channels });
        // A frame of 8 bytes: AAC LC, 44.1 kHz, stereo.
        let adts = [0xFF, 0xF1, 0x50, 0x80, 0x01, 0x1F, 0xFC, 0x21];
        assert_eq!(Form::of("aac", &adts), form(44100, 2));
        assert_eq!(Form::of("aac", &adts[..7]), None);
        // MPEG-1 layer II, 48 kHz, mono; MPEG-2 layer III, 22.05 kHz, joint stereo.
        assert_eq!(Form::of("mp2", &[0xFF, 0xFD, 0xA4, 0xC0]), form(48000, 1));
        assert_eq!(Form::of("mp3", &[0xFF, 0xF3, 0x40, 0x40]), form(22050, 2));
        assert_eq!(Form::of("aac", &[0x21, 0x10, 0x05, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn one_odd_packet_is_no_change() {
        let (mono, stereo) = ([0xFF, 0xFD, 0xA4, 0xC0], [0xFF, 0xFD, 0xA0, 0x00]);
        let mut changes = Changes::watched("mp2", "matroska");
        let Some(changes) = &mut changes else {
            unreachable!("Matroska states the form once");
        };
        for (at, header) in [mono, stereo, mono, mono].iter().enumerate() {
            changes.see(header, at as f64);
        }
        assert_eq!(changes.sentence("sound", "mkv"), None);
        for at in 4..6 {
            changes.see(&stereo, f64::from(at));
        }
        let said = changes.sentence("sound", "mkv").unwrap_or_default();
        assert!(
            said.starts_with("sound has 44100 Hz and 2 channels from 4.000 s on instead of 48000 Hz and 1"),
            "{said}"
        );
        assert!(Changes::watched("mp2", "mpegts").is_none());
    }
}
