//! Whether the last picture of bare HEVC breaks off.
//!
//! Nothing states how long such a stream is, and FFmpeg's decoder makes a whole picture of a slice that
//! breaks off, without a word: it goes on with what it reads behind the end. The data of a whole slice say
//! where they end, and what comes behind changes nothing. So the last picture is decoded twice by itself,
//! with other bytes behind its data each time: two different pictures show that it breaks off. What it refers
//! to is not there then, on which reading does not depend.

use crate::media::ffmpeg::{Decoder, Demuxer, Packet, Picture, Received};

/// FFmpeg's name of the demuxer.
const BARE: &str = "hevc";

/// Bytes behind the data. Without zeros, they begin no NAL unit.
const BEHIND: [[u8; 256]; 2] = [[0x55; 256], [0xD3; 256]];

/// Types of NAL units: below this one they are slices.
const FIRST_BESIDE_SLICES: u8 = 32;
const SEQUENCE_PARAMETERS: u8 = 33;
const PICTURE_PARAMETERS: u8 = 34;

/// The last packet, and what is needed to decode it.
#[derive(Default)]
pub(in crate::source::video) struct Tail {
    /// What came last in front of a picture with parameters of the sequence.
    head: Vec<u8>,
    /// Parameters of pictures came later, and may replace some of the head's.
    is_changed: bool,
    last: Option<Packet>,
}

impl Tail {
    /// Notes a packet that `demuxer` gave.
    pub(in crate::source::video) fn note_packet(&mut self, demuxer: &Demuxer, packet: &Packet) {
        if demuxer.format_name() != BARE {
            return;
        }
        let (head, types) = before_slices(packet.data());
        if types.contains(&SEQUENCE_PARAMETERS) {
            self.head = head.to_vec();
            self.is_changed = false;
        } else {
            self.is_changed |= types.contains(&PICTURE_PARAMETERS);
        }
        self.last = packet.duplicate().ok();
    }

    /// True if the last packet, of stream `stream`, ends before its picture does.
    pub(in crate::source::video) fn breaks_off(&self, demuxer: &Demuxer, stream: usize) -> bool {
        let Some(last) = self.last.as_ref().filter(|_| !self.is_changed) else {
            return false;
        };
        let [one, other] = BEHIND.map(|behind| {
            let data = [&self.head[..], last.data(), &behind].concat();
            luma(demuxer, stream, &last.with_data(&data).ok()?)
        });
        one.zip(other).is_some_and(|(one, other)| one != other)
    }
}

/// What comes before the first slice of a packet, and the types of the NAL units there.
fn before_slices(data: &[u8]) -> (&[u8], Vec<u8>) {
    let mut types = Vec::new();
    for (at, window) in data.windows(4).enumerate() {
        let [0, 0, 1, header] = *window else { continue };
        match header >> 1 & 0x3F {
            ..FIRST_BESIDE_SLICES => return (&data[..at], types),
            beside => types.push(beside),
        }
    }
    (data, types)
}

/// The luma of the picture in `packet`, decoded by itself.
fn luma(demuxer: &Demuxer, stream: usize, packet: &Packet) -> Option<Vec<u8>> {
    let mut decoder = Decoder::open(demuxer, stream, 1, false).ok()??;
    decoder.send(Some(packet)).ok()?;
    decoder.send(None).ok()?;
    let mut picture = Picture::new().ok()?;
    if decoder.receive(&mut picture).ok()? != Received::Item {
        return None;
    }
    let is_deep = picture.format().facts()?.depth > 8;
    let bytes = picture.width() << u32::from(is_deep);
    let rows = (0..picture.height()).map(|y| picture.row(0, y, bytes));
    Some(rows.collect::<Option<Vec<&[u8]>>>()?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_slices_is_known_by_its_types() {
        let head = [0, 0, 0, 1, 0x40, 1, 7, 0, 0, 1, 0x42, 1, 8, 0, 0, 1, 0x44, 1, 9];
        let slice = [0, 0, 1, 0x26, 1, 0, 0, 1, 0x42];
        let all = [&head[..], &slice].concat();
        assert_eq!(before_slices(&all), (&head[..], vec![32, 33, 34]));
        assert_eq!(before_slices(&slice), (&[][..], Vec::new()));
    }
}
