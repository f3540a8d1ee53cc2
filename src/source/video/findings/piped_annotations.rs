//! What pictures from a pipe say beside their pixels. FFmpeg gives little more than the pixels, and a pipe
//! cannot be read again for the rest; its packets are whole files, and show what is left out.

use crate::annotations::jpeg::walk;
use crate::annotations::{self, Container};
use crate::frame::fact::Fact;
use crate::frame::{Colour, Metadata};
use crate::source::SourceError;
use crate::source::video::{ReadState, VideoSource};
use std::io::Cursor;

/// FFmpeg's names of kinds of pictures that hold pixels alone.
const BARE_PICTURES: [&str; 8] = ["pam", "pbm", "pfm", "pgm", "pgmyuv", "phm", "ppm", "qoi"];

/// The most bits of lossless JPEG that FFmpeg decodes as they are.
const MOST_LOSSLESS: u8 = 12;

/// What FFmpeg's own encoder of JPEG writes as a comment.
const OF_ENCODERS: [&str; 2] = ["Lavc", "CS=ITU601"];

/// The words of what decoders tell as colours, where they know these.
const COLOURS: [&str; 3] = ["CICP colour", "chromaticities", "gamma"];

/// What the pictures say beside their pixels.
#[derive(Default)]
pub(in crate::source::video) struct PipedAnnotations {
    /// Words for it, each once.
    words: Vec<String>,
    has_profile: bool,
    is_turned: bool,
    /// A frame brought a profile, or how it is to be turned, or states its colours.
    gives_profile: bool,
    gives_turn: bool,
    gives_colours: bool,
    /// It has been said.
    is_said: bool,
}

impl PipedAnnotations {
    /// Looks at a packet, which is a file of a picture.
    fn note_packet(&mut self, file: &[u8]) {
        let input = &mut Cursor::new(file);
        let found = match file {
            [0xff, 0xd8, ..] => annotations::read_from(Container::Jpeg, input, None),
            [b'B', b'M', ..] => annotations::read_from(Container::Bmp, input, None),
            _ => annotations::search(input),
        };
        let mut found = found.unwrap_or_default();
        let is_of_encoder = |text: &str| OF_ENCODERS.iter().any(|begin| text.starts_with(begin));
        found.annotations.texts.retain(|(_, text)| !is_of_encoder(text));
        self.has_profile |= found.icc_profile.is_some();
        self.is_turned |= found.orientation().is_some_and(|orientation| orientation > 1);
        let words = found.annotations.words();
        let words = words.split(", ").filter(|word| !word.is_empty());
        for word in words.map(str::to_owned).chain(found.unknown) {
            if !self.words.contains(&word) {
                self.words.push(word);
            }
        }
    }

    /// Notes what comes with a frame.
    pub(in crate::source::video) fn note_frame(&mut self, metadata: &Metadata) {
        let unstated = Colour::default();
        let colour = &metadata.colour;
        let has = |fact| metadata.side_data.iter().any(|block| block.fact == fact);
        self.gives_profile |= has(Fact::IccProfile);
        self.gives_turn |= has(Fact::Rotation);
        self.gives_colours |= colour.primaries != unstated.primaries || colour.transfer != unstated.transfer;
    }

    /// Words for what was said and comes with no frame.
    fn lost(&self) -> Vec<String> {
        let is_given = |word: &String| self.gives_colours && COLOURS.contains(&word.as_str());
        let mut lost: Vec<String> = self
            .words
            .iter()
            .filter(|word| !is_given(word))
            .cloned()
            .collect();
        if self.has_profile && !self.gives_profile {
            lost.push("ICC profile".to_owned());
        }
        if self.is_turned && !self.gives_turn {
            lost.push("orientation".to_owned());
        }
        lost
    }
}

/// Bits of the samples of a lossless JPEG file.
fn lossless_bits(mut file: &[u8]) -> Option<u8> {
    const LOSSLESS: u8 = 0xc3;
    let mut bits = None;
    // Memory has no errors of reading.
    let _ = walk(&mut file, |_, marker, body| {
        // Behind the length.
        bits = bits.or(body.get(2).copied().filter(|_| marker == LOSSLESS));
        bits.is_none()
    });
    bits
}

impl VideoSource {
    /// True for pictures from a pipe whose kind says more than pixels.
    fn is_picture_of_pipe(&self) -> bool {
        let demuxer = self.input.demuxer.format_name();
        let is_picture = match demuxer.strip_suffix("_pipe") {
            Some(kind) => !BARE_PICTURES.contains(&kind),
            None => matches!(demuxer, "mjpeg" | "ico"),
        };
        is_picture && !self.file.path.is_file()
    }

    /// Looks at the packet that was read, for what its picture says beside its pixels.
    pub(in crate::source::video) fn note_annotations(&mut self) -> Result<(), SourceError> {
        if !self.is_picture_of_pipe() {
            return Ok(());
        }
        let file = self.input.packet.data();
        if let Some(bits) = lossless_bits(file).filter(|&bits| bits > MOST_LOSSLESS) {
            return Err(self.file.invalid(format!(
                "is a lossless JPEG of {bits} bits, which FFmpeg decodes to other pixels; convert it first"
            )));
        }
        self.findings.annotations.note_packet(file);
        Ok(())
    }

    /// Notes, at the end, what pictures from a pipe say beside their pixels and is left out.
    pub(in crate::source::video) fn lose_annotations(&mut self) -> Result<(), SourceError> {
        match self.annotations_sentence() {
            Some(lost) => self.findings.lose(&self.file, lost),
            None => Ok(()),
        }
    }

    /// What pictures from a pipe say beside their pixels and is left out, once, as a sentence. What a
    /// single one is made of is not looked at.
    pub(super) fn annotations_sentence(&mut self) -> Option<String> {
        let is_said = std::mem::replace(&mut self.findings.annotations.is_said, true);
        if is_said || self.maker.made == 0 || !self.is_picture_of_pipe() {
            return None;
        }
        if self.maker.made == 1 && self.input.state == ReadState::Ended {
            let orientation = if self.findings.annotations.gives_turn {
                ""
            } else {
                "orientation, "
            };
            return Some(format!(
                "it is one picture from a pipe, of which FFmpeg gives the pixels alone: what it says beside \
                 them ({orientation}Exif, resolution, texts) and its further pages, layers and parts are \
                 left out; give it as a file"
            ));
        }
        let words = self.findings.annotations.lost().join(", ");
        (!words.is_empty()).then(|| {
            format!(
                "they are pictures from a pipe, of which FFmpeg gives the pixels alone: what they say \
                 beside them is left out ({words}); give them as files"
            )
        })
    }
}
