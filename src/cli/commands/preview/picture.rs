//! The picture of a preview: before and after, upright and in the colours of a still.

use super::Layout;
use crate::cli::Failure;
use framepipe::convert::{Converter, CutSamples, colour_after};
use framepipe::engine::compare::{Arrangement, Composition, label};
use framepipe::frame::fact::Fact;
use framepipe::frame::{Buffer, Frame, Turn};
use framepipe::sink::images;
use framepipe::source::StreamInfo;
use framepipe::still::ImageKind;

/// Pixels between pictures side by side.
const GAP: usize = 4;

/// A picture, and its facts for a sink.
pub(super) struct Picture {
    pub(super) frame: Frame,
    pub(super) info: StreamInfo,
    /// Samples that a PNG file's cannot hold, of before and after.
    pub(super) cut: CutSamples,
}

impl Picture {
    /// The picture in this layout, from a frame that holds before and after side by side, or after alone if
    /// that is the layout.
    pub(super) fn new(frame: Frame, layout: Layout, info: &StreamInfo) -> Result<Picture, Failure> {
        let turn = Turn::of_blocks(&info.side_data)
            .or_else(|| Turn::of_frame(&frame.metadata))
            .filter(|turn| !turn.is_upright());
        let arrangement = match layout {
            Layout::After => None,
            Layout::Side => Some(Arrangement::Side),
            Layout::Split => Some(Arrangement::Split),
        };
        let mut cut = CutSamples::default();
        let frame = match arrangement {
            None => still(frame, turn, &mut cut)?,
            Some(arrangement) => {
                let (before, after) = Composition::new(Arrangement::Side).parts(&frame)?;
                let (before, after) = (still(before, turn, &mut cut)?, still(after, turn, &mut cut)?);
                compose(&before, after, arrangement)?
            }
        };
        let mut info_after = info.clone();
        info_after.colour = colour_after(info.colour, info.format, frame.format(), info.height);
        info_after.format = frame.format();
        (info_after.width, info_after.height) = (frame.layout().width(), frame.layout().height());
        info_after.frames = Some(1);
        info_after.uniform = true;
        // One picture is shown, so that the other streams are not missed.
        info_after.origin = None;
        if let Some(turn) = turn {
            info_after.side_data.retain(|block| block.fact != Fact::Rotation);
            let (num, den) = info.sample_aspect;
            if turn.swaps_axes() && num > 0 {
                info_after.sample_aspect = (den, num);
            }
        }
        Ok(Picture {
            frame,
            info: info_after,
            cut,
        })
    }
}

/// A frame in the samples that PNG files have, by the conversion that writes them, and upright. What does not
/// fit is counted in `cut`.
fn still(frame: Frame, turn: Option<Turn>, cut: &mut CutSamples) -> Result<Frame, Failure> {
    let format = frame.format();
    let to = images::nearest(ImageKind::Png, format).unwrap_or(format);
    let mut frame = if to == format {
        frame
    } else {
        let (width, height) = (frame.layout().width(), frame.layout().height());
        let mut converter = Converter::new((format, frame.metadata.colour), to, width, height)?;
        let converted = converter.convert(&frame)?;
        *cut += converter.take_cut();
        converted
    };
    if let Some(turn) = turn {
        frame = turn.apply(&frame)?;
        frame.metadata.orientation = None;
        frame
            .metadata
            .side_data
            .retain(|block| block.fact != Fact::Rotation);
    }
    Ok(frame)
}

/// Both in one picture, with a word in each.
fn compose(before: &Frame, after: Frame, arrangement: Arrangement) -> Result<Frame, Failure> {
    let composition = Composition::new(arrangement).with_gap(GAP);
    let room = Buffer::unpooled(Box::new(Vec::new()));
    let mut both = composition.canvas(after.layout(), room, 64)?;
    composition.put_before(before, &mut both);
    composition.put_after(&after, &mut both);
    both.sequence = after.sequence;
    both.born = after.born;
    both.metadata = after.into_parts().0;
    composition.finish(&mut both);
    let width = both.layout().width();
    label(&mut both, "before", (0, width / 2), false);
    label(&mut both, "after", (width / 2, width), true);
    Ok(both)
}
