//! What packets of sound say of themselves: codec, rate and channels, and how long each frame is.

/// Samples a second and channels, as a packet says of itself, and FFmpeg's name of its codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) codec: &'static str,
    pub(super) rate: u32,
    pub(super) channels: u8,
}

impl Form {
    pub(super) fn word(self) -> String {
        let channels = match self.channels {
            1 => "1 channel".to_owned(),
            n => format!("{n} channels"),
        };
        format!("{} Hz and {channels}", self.rate)
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) form: Form,
    /// Bytes of the frame.
    size: usize,
}

/// Codecs whose frames are known by their headers. FFmpeg reads those of one family with one parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Adts,
    Ac3,
    Mpeg,
}

/// Frames one behind another that show of which family they are: bytes of a frame may look like a header.
const IN_A_ROW: usize = 3;

/// Samples a second by the number that MPEG-4 has for them.
const RATES: [u32; 13] = [
    96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350,
];

impl Family {
    const ALL: [Family; 3] = [Family::Adts, Family::Ac3, Family::Mpeg];

    /// That of a codec of this name.
    pub(super) fn of(codec: &str) -> Option<Family> {
        match codec {
            "aac" => Some(Family::Adts),
            "ac3" | "eac3" => Some(Family::Ac3),
            "mp1" | "mp2" | "mp3" => Some(Family::Mpeg),
            _ => None,
        }
    }

    /// The header that a frame begins with.
    pub(super) fn header(self, data: &[u8]) -> Option<Header> {
        match self {
            Family::Adts => adts(data),
            Family::Ac3 => ac3(data),
            Family::Mpeg => mpeg(data),
        }
    }

    /// Bytes of the frames that `data` begins with.
    pub(super) fn frames(self, data: &[u8]) -> usize {
        let mut at = 0;
        while let Some(header) = data.get(at..).and_then(|rest| self.header(rest)) {
            at += header.size;
        }
        at.min(data.len())
    }

    /// The form of the first frame, if several of this family follow one another at the beginning of `data`.
    fn begins(self, data: &[u8]) -> Option<Form> {
        let (mut at, mut first) = (0, None);
        for _ in 0..IN_A_ROW {
            let header = self.header(data.get(at..)?)?;
            first.get_or_insert(header.form);
            at += header.size;
        }
        first
    }
}

/// The first frames of another family than `own` in `data`.
pub(super) fn others(own: Family, data: &[u8]) -> Option<Form> {
    let others = || Family::ALL.into_iter().filter(move |&family| family != own);
    (0..data.len()).find_map(|at| others().find_map(|family| family.begins(&data[at..])))
}

/// The header that AAC has in transport streams.
fn adts(data: &[u8]) -> Option<Header> {
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
    (second & 0xF6 == 0xF0 && size > 6).then_some(Header {
        form: Form {
            codec: "aac",
            rate: *rate,
            channels,
        },
        size,
    })
}

/// The header of each frame of MPEG audio.
fn mpeg(data: &[u8]) -> Option<Header> {
    /// Kilobits a second: MPEG-1's of layers I, II and III, and MPEG-2's of layer I and of the others.
    const BITS: [[u32; 14]; 5] = [
        [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
        [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ];
    let &[0xFF, second, third, fourth, ..] = data else {
        return None;
    };
    let of_version = match second >> 3 & 3 {
        3 => 0,
        2 => 1,
        0 => 2,
        _ => return None,
    };
    let rate = [44100_u32, 48000, 32000].get(usize::from(third >> 2 & 3))? >> of_version;
    let (codec, layer) = match second >> 1 & 3 {
        3 => ("mp1", 0),
        2 => ("mp2", 1),
        1 => ("mp3", 2),
        _ => return None,
    };
    let table = match (of_version, layer) {
        (0, _) => layer,
        (_, 0) => 3,
        _ => 4,
    };
    let number = usize::from(third >> 4).checked_sub(1)?;
    let bits = BITS[table].get(number)? * 1000;
    let padding = u32::from(third >> 1 & 1);
    let size = match (layer, of_version) {
        (0, _) => (12 * bits / rate + padding) * 4,
        (2, 1..) => 72 * bits / rate + padding,
        _ => 144 * bits / rate + padding,
    };
    (second & 0xE0 == 0xE0).then_some(Header {
        form: Form {
            codec,
            rate,
            channels: if fourth >> 6 == 3 { 1 } else { 2 },
        },
        size: size as usize,
    })
}

/// The header of each frame of AC-3 and E-AC-3.
fn ac3(data: &[u8]) -> Option<Header> {
    const CHANNELS: [u8; 8] = [2, 1, 2, 3, 3, 4, 4, 5];
    const BITS: [usize; 19] = [
        32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
    ];
    let &[0x0B, 0x77, third, fourth, fifth, sixth, seventh, ..] = data else {
        return None;
    };
    let rates = [48000, 44100, 32000];
    let (rate_code, version) = (usize::from(fifth >> 6), sixth >> 3);
    if version > 16 {
        return None;
    }
    if version > 10 {
        let rate = match rates.get(rate_code) {
            Some(rate) => *rate,
            None => rates.get(usize::from(fifth >> 4 & 3))? / 2,
        };
        let size = 2 * ((usize::from(third & 7) << 8 | usize::from(fourth)) + 1);
        let channels = CHANNELS[usize::from(fifth >> 1 & 7)] + (fifth & 1);
        let form = Form {
            codec: "eac3",
            rate,
            channels,
        };
        return (size > 6).then_some(Header { form, size });
    }
    let rate = *rates.get(rate_code)?;
    let (number, mode) = (usize::from(fifth & 63), seventh >> 5);
    let bits = *BITS.get(number / 2)?;
    let words = match rate {
        48000 => 2 * bits,
        44100 => 320 * bits / 147 + number % 2,
        _ => 3 * bits,
    };
    // Levels of the mix, of two bits each, come before the mark of the low frequencies.
    let levels = [mode & 1 != 0 && mode != 1, mode & 4 != 0, mode == 2];
    let before = 3 + 2 * levels.iter().filter(|&&is_there| is_there).count();
    let behind = u16::from_be_bytes([seventh, data.get(7).copied().unwrap_or(0)]);
    let low = (behind >> (15 - before) & 1) as u8;
    Some(Header {
        form: Form {
            codec: "ac3",
            rate: rate >> version.saturating_sub(8),
            channels: CHANNELS[usize::from(mode)] + low,
        },
        size: 2 * words,
    })
}

/// What the header that AAC has outside of its packets (AudioSpecificConfig) says of them.
pub(super) fn of_configuration(header: &[u8]) -> Option<Form> {
    const ESCAPE: u32 = 31;
    const SBR: u32 = 5;
    const PS: u32 = 29;
    let mut at = 0;
    let mut bits = |count: usize| {
        (0..count).try_fold(0_u32, |value, _| {
            let byte = header.get(at / 8)?;
            let bit = byte >> (7 - at % 8) & 1;
            at += 1;
            Some(value << 1 | u32::from(bit))
        })
    };
    let mut kind = bits(5)?;
    if kind == ESCAPE {
        kind = 32 + bits(6)?;
    }
    let rate = |bits: &mut dyn FnMut(usize) -> Option<u32>| match bits(4)? {
        15 => bits(24),
        number => RATES.get(number as usize).copied(),
    };
    let own = rate(&mut bits)?;
    let channels = match bits(4)? {
        0 => return None,
        7 => 8,
        n => n as u8,
    };
    let heard = match kind {
        SBR | PS => rate(&mut bits)?,
        _ => own,
    };
    Some(Form {
        codec: "aac",
        rate: heard,
        channels: if kind == PS { 2 } else { channels },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_rate_and_channels() {
        let form = |codec, rate, channels| {
            Some(Form {
                codec,
                rate,
                channels,
            })
        };
        let of = |codec: &str, data: &[u8]| Family::of(codec)?.header(data).map(|header| header.form);
        // A frame of 8 bytes: AAC LC, 44.1 kHz, stereo.
        let adts = [0xFF, 0xF1, 0x50, 0x80, 0x01, 0x1F, 0xFC, 0x21];
        assert_eq!(of("aac", &adts), form("aac", 44100, 2));
        assert_eq!(of("aac", &adts[..5]), None);
        // MPEG-1 layer II, 48 kHz, mono; MPEG-2 layer III, 22.05 kHz, joint stereo.
        assert_eq!(of("mp2", &[0xFF, 0xFD, 0xA4, 0xC0]), form("mp2", 48000, 1));
        assert_eq!(of("mp3", &[0xFF, 0xF3, 0x40, 0x40]), form("mp3", 22050, 2));
        assert_eq!(of("aac", &[0x21, 0x10, 0x05, 0, 0, 0, 0, 0]), None);
        // 192 kbit/s of stereo, and 448 of 5.1.
        let stereo = [0x0B, 0x77, 0, 0, 0x14, 0x40, 0x43, 0xE1];
        assert_eq!(of("ac3", &stereo), form("ac3", 48000, 2));
        assert_eq!(
            of("ac3", &[0x0B, 0x77, 0, 0, 0x1E, 0x40, 0xE1, 0]),
            form("ac3", 48000, 6)
        );
        assert_eq!(Family::Ac3.header(&stereo).map(|header| header.size), Some(768));
    }

    #[test]
    fn configurations_say_rate_and_channels() {
        let of = |header: &[u8]| of_configuration(header).map(|form| (form.rate, form.channels));
        assert_eq!(of(&[0x11, 0x90]), Some((48000, 2)));
        assert_eq!(of(&[0x12, 0x08]), Some((44100, 1)));
        // HE-AAC: 24 kHz that are heard as 48.
        assert_eq!(of(&[0x2B, 0x11, 0x88, 0]), Some((48000, 2)));
        assert_eq!(of(&[0x11]), None);
    }

    #[test]
    fn frames_of_another_codec_are_known_by_three_in_a_row() {
        let frame = |head: &[u8], size: usize| [head, &vec![7; size - head.len()]].concat();
        let own = frame(&[0x0B, 0x77, 0, 0, 0x14, 0x40, 0x43, 0xE1], 768);
        let other = frame(&[0xFF, 0xFD, 0xA4, 0xC0], 576);
        let mixed = |count| [&own[..], &other.repeat(count)].concat();
        assert_eq!(Family::Ac3.frames(&mixed(3)), 768);
        let found = |data: &[u8]| others(Family::Ac3, data).map(|form| form.codec);
        assert_eq!(found(&mixed(3)), Some("mp2"));
        assert_eq!(found(&mixed(2)), None);
        assert_eq!(found(&own), None);
    }
}
