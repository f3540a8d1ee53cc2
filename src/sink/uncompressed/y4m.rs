//! YUV4MPEG2 to a file or a pipe, each frame in one piece.

use super::byte_writer::ByteWriter;
use crate::frame::fact::{Fact, location_name};
use crate::frame::{ColourModel, FieldOrder, Frame, PixelFormat, Range};
use crate::sink::constant_rate::{ConstantRate, assumed_rate, irregular};
use crate::sink::ledger::{Outcome, PlainLedger};
use crate::sink::{Flow, Rules, Sink, SinkError, Written};
use crate::source::StreamInfo;
use crate::source::y4m::{MAGIC, TAGS};
use crate::wording::counted;
use crossbeam_channel::Receiver;
use std::fmt::Write as _;
use std::path::Path;

/// True if frames of `format` are written as they are.
pub fn accepts(format: PixelFormat) -> bool {
    // mono14 is read, but FFmpeg does not know it, so that nobody is given it.
    format.name() != "gray14le" && TAGS.iter().any(|t| t.format == format.name())
}

/// The format that a converter should make of `format` before it is written: itself if y4m holds it, else the
/// nearest that keeps every sample (RGB becomes YUV 4:4:4; alpha that y4m cannot hold is lost).
pub fn nearest(format: PixelFormat) -> PixelFormat {
    if accepts(format) {
        return format;
    }
    let (log2_x, log2_y) = format
        .planes()
        .iter()
        .map(|p| (p.log2_x, p.log2_y))
        .fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    let depth = match format.depth() {
        8 => "",
        9 => "9le",
        10 => "10le",
        12 => "12le",
        14 if format.model() != ColourModel::Gray => "14le",
        _ => "16le",
    };
    let family = match (format.model(), log2_x, log2_y) {
        (ColourModel::Gray, ..) => "gray",
        (ColourModel::Rgb, ..) if format.has_alpha() && depth.is_empty() => "yuva444p",
        (ColourModel::Yuv, 1, 1) => "yuv420p",
        (ColourModel::Yuv, 1, 0) => "yuv422p",
        // 4:1:0 and 4:4:0 have no tag; the next larger grid keeps their chroma.
        (ColourModel::Yuv, 2, _) => "yuv411p",
        _ => "yuv444p",
    };
    PixelFormat::from_name(&format!("{family}{depth}")).unwrap_or(format)
}

struct Y4m {
    writer: ByteWriter,
    header: String,
    begun: bool,
    mixed: bool,
    clock: ConstantRate,
    ledger: PlainLedger,
    lost: Vec<String>,
    rules: Rules,
}

/// Writes a YUV4MPEG2 file, or to standard output for "-". The info's format must be one that [`accepts`]
/// takes.
pub fn create(target: &Path, info: &StreamInfo, rules: Rules) -> Result<Box<dyn Sink>, SinkError> {
    if !accepts(info.format) {
        return Err(SinkError::Unsupported {
            path: target.display().to_string(),
            problem: format!(
                "y4m cannot hold {} frames; convert them to {} first (--pixel-format {})",
                info.format,
                nearest(info.format),
                nearest(info.format)
            ),
        });
    }
    let writer = ByteWriter::open(target, rules)?;
    let (header, lost) = header(info);
    let place = format!("{} (y4m)", writer.label());
    let mixed = info.field_order == FieldOrder::Mixed;
    let refused = |problem: String| SinkError::Unsupported {
        path: target.display().to_string(),
        problem,
    };
    let mut ledger = PlainLedger::new(place, ADVICE, rules, info).map_err(refused)?;
    if mixed {
        // Marked frame by frame.
        ledger.settle_change(Fact::FieldOrder);
    }
    Ok(Box::new(Y4m {
        ledger,
        rules,
        writer,
        header,
        begun: false,
        mixed,
        clock: ConstantRate::of(info),
        lost,
    }))
}

/// The header line, and a sentence for each fact that it cannot hold.
fn header(info: &StreamInfo) -> (String, Vec<String>) {
    let mut lost = Vec::new();
    let location = info.colour.chroma_location;
    let tags: Vec<_> = TAGS.iter().filter(|t| t.format == info.format.name()).collect();
    let word = tags
        .iter()
        .find(|t| t.location == location)
        .or(tags.first())
        .map_or("420jpeg", |t| t.word);
    if info.frame_rate.is_none() {
        lost.push("the frame rate is unknown and 25 was written; state one with --fps".to_owned());
    }
    let rate = assumed_rate(info);
    let interlacing = match (info.field_order, info.field_order.shows_top_first()) {
        (_, Some(true)) => 't',
        (_, Some(false)) => 'b',
        (FieldOrder::Mixed, None) => 'm',
        (_, None) => 'p',
    };
    let aspect = match info.sample_aspect {
        (num, den) if num > 0 && den > 0 => (num, den),
        _ => (0, 0),
    };
    let mut line = format!(
        "{MAGIC} W{} H{} F{}:{} I{interlacing} A{}:{} C{word}",
        info.width, info.height, rate.num, rate.den, aspect.0, aspect.1
    );
    if info.format.model() == ColourModel::Yuv {
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            " XYSCSS={}",
            word.trim_end_matches("alpha").to_ascii_uppercase()
        );
    }
    line.push_str(match info.colour.range {
        Range::Limited => " XCOLORRANGE=LIMITED",
        Range::Full => " XCOLORRANGE=FULL",
        Range::Unspecified => "",
    });
    line.push('\n');
    (line, lost)
}

/// What to do about facts that are lost.
const ADVICE: &str = "tell it to the program that reads the frames, or write a container such as .mkv";

/// What becomes of a fact in y4m.
fn outcome(fact: Fact, value: &str, format: PixelFormat) -> Outcome {
    let holds = match fact {
        Fact::Range | Fact::FieldOrder | Fact::PixelAspect => true,
        Fact::ChromaLocation => TAGS
            .iter()
            .filter(|t| t.format == format.name())
            .any(|t| location_name(t.location) == value),
        _ => false,
    };
    if holds { Outcome::Carried } else { Outcome::Lost }
}

impl Y4m {
    fn begin(&mut self) -> Result<Flow, SinkError> {
        if self.begun {
            return Ok(Flow::More);
        }
        self.begun = true;
        self.writer.write_header(self.header.as_bytes())
    }
}

impl Sink for Y4m {
    fn row_alignment(&self) -> usize {
        1
    }

    fn watch(&mut self, stop: &Receiver<()>) {
        self.writer.watch(stop);
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.writer.bytes())
    }

    fn write(&mut self, mut frame: Frame) -> Result<Flow, SinkError> {
        let format = frame.format();
        let seen = self
            .ledger
            .see(&mut frame, |fact, value, _| outcome(fact, value, format));
        seen.map_err(|problem| SinkError::Unsupported {
            path: self.writer.label().to_owned(),
            problem,
        })?;
        if self.begin()? == Flow::Closed {
            return Ok(Flow::Closed);
        }
        self.clock.see(frame.metadata.pts, self.writer.frames());
        let line: &[u8] = match (self.mixed, frame.metadata.field_order.shows_top_first()) {
            (false, _) => b"FRAME\n",
            (true, Some(true)) => b"FRAME Itii\n",
            (true, Some(false)) => b"FRAME Ibii\n",
            (true, _) => b"FRAME I1pp\n",
        };
        self.writer.write_frame(line, &frame)
    }

    fn finish(mut self: Box<Self>) -> Result<Written, SinkError> {
        self.begin()?;
        if self.clock.is_irregular() {
            self.lost.push(irregular("y4m"));
        }
        let amount = match self.rules.trial {
            true => String::new(),
            false => format!("{} of ", counted(self.writer.frames(), "frame")),
        };
        let description = format!("{amount}y4m to {}", self.writer.label()) + &self.ledger.notes();
        self.lost.append(&mut self.ledger.sentences());
        self.writer.finish(description, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_format_is_one_that_is_held() {
        for format in PixelFormat::integers() {
            let near = nearest(format);
            assert!(accepts(near), "{format} -> {near}");
            assert!(near.depth() >= format.depth(), "{format} -> {near}");
        }
        for (from, to) in [
            ("rgb24", "yuv444p"),
            ("rgba", "yuva444p"),
            ("gbrp10le", "yuv444p10le"),
            ("nv12", "yuv420p"),
            ("p010le", "yuv420p10le"),
            ("nv20le", "yuv422p10le"),
            ("gray14le", "gray16le"),
            ("ya8", "gray"),
            ("yuv410p", "yuv411p"),
            ("yuv440p12le", "yuv444p12le"),
        ] {
            assert_eq!(
                nearest(PixelFormat::from_name(from).unwrap()).name(),
                to,
                "{from}"
            );
        }
    }
}
