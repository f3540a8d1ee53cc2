//! Samples of JPEG 2000 whose depth is none of a pixel format's. FFmpeg shifts them up to 8 or 16 bits, so
//! that white is not white, or leaves them as they are; here they are brought to the format's full range.
//!
//! ```text
//!  codestream: SOC ff4f | SIZ ff51 | length 16 | capabilities 16 | 8 sizes of 32 | components 16
//!              | a component: depth - 1 in 7 bits below a bit that says signed; 2 steps of 8 | ..
//! ```

use crate::frame::{Channel, Colour, ColourModel, Frame, PixelFormat};
use crate::media::ffmpeg::AvFormat;
use crate::media::rescale::rescaled;

/// What a codestream begins with.
const BEGIN: &[u8] = b"\xff\x4f\xff\x51";

/// Components by which a picture has colours and alpha.
const MOST_COMPONENTS: usize = 4;

/// Formats whose samples FFmpeg shifts up to 16 bits; in others of more than 8 bits they are as deep as its
/// deepest component.
const SHIFTED: [&str; 3] = ["gray16le", "rgb48le", "rgba64le"];

/// How a component is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Component {
    /// Significant bits, 1 to 38.
    depth: u32,
    is_signed: bool,
}

/// The components of a stream's pictures.
#[derive(Debug, Default)]
pub(in crate::source::video) struct Depths {
    /// Of the first packet; `None` before it.
    components: Option<Vec<Component>>,
    /// For each channel, the sample that stands for one of FFmpeg's; none where they are the same.
    tables: Vec<(Channel, Vec<u16>)>,
}

impl Depths {
    /// Looks at the first packet.
    pub(super) fn note_packet(&mut self, packet: &[u8]) {
        self.components
            .get_or_insert_with(|| components(packet).unwrap_or_default());
    }

    /// Prepares the change for pictures that FFmpeg gives as `coded`, which is `format`.
    pub(in crate::source::video) fn learn(&mut self, coded: AvFormat, format: PixelFormat, colour: &Colour) {
        let stored = self.components.as_deref().unwrap_or_default();
        let deepest = stored.iter().map(|one| one.depth).max().unwrap_or_default();
        let is_known = (1..=format.depth()).contains(&deepest);
        // Others are palettes, and XYZ, which becomes RGB.
        if coded.name() != format.name() || !is_known {
            return;
        }
        let given = match deepest {
            ..=8 => 8,
            _ if SHIFTED.contains(&format.name()) => 16,
            _ => deepest,
        };
        let channels: &[Channel] = match format.model() {
            ColourModel::Gray => &[Channel::Luma, Channel::Alpha],
            ColourModel::Yuv => &[Channel::Luma, Channel::Cb, Channel::Cr, Channel::Alpha],
            ColourModel::Rgb => &[Channel::Red, Channel::Green, Channel::Blue, Channel::Alpha],
            ColourModel::Data => return,
        };
        self.tables = stored
            .iter()
            .zip(channels)
            .filter(|(one, _)| one.depth != format.depth() && (1..=given).contains(&one.depth))
            .map(|(one, &channel)| {
                let is_limited = channel != Channel::Alpha && colour.is_limited(format);
                let scaled = table(one.depth, format.depth(), channel.is_chroma(), is_limited);
                let of_given = |v: usize| scaled[v >> (given - one.depth)];
                (channel, (0..1 << given).map(of_given).collect())
            })
            .collect();
    }

    /// What becomes of signed samples, in words.
    pub(in crate::source::video) fn signed(&self) -> Option<String> {
        let stored = self.components.iter().flatten();
        // Of signed chroma 0 is the middle of the range, where FFmpeg puts it.
        let is_chroma = |index: usize| matches!(index, 1 | 2) && stored.clone().count() > 2;
        let mut all = stored.clone().enumerate();
        let signed = all.find(|(index, one)| one.is_signed && !is_chroma(*index))?;
        Some(format!(
            "its samples are signed numbers of {} bits, of which the least is read as black",
            signed.1.depth
        ))
    }

    /// Brings the samples of a frame to its format's depth.
    pub(super) fn apply(&self, frame: &mut Frame) {
        let format = frame.format();
        for (channel, table) in &self.tables {
            let Some((plane, at)) = format.place(*channel) else {
                continue;
            };
            let step = format.planes()[plane].channels.len();
            for y in 0..frame.layout().planes()[plane].height {
                let row = frame.row_mut(plane, y);
                let scaled = |v: usize| table.get(v).or(table.last()).copied().unwrap_or_default();
                if format.bytes_per_sample() == 1 {
                    let samples = row.iter_mut().skip(at).step_by(step);
                    samples.for_each(|v| *v = scaled(usize::from(*v)) as u8);
                } else {
                    let samples = row.as_chunks_mut::<2>().0.iter_mut().skip(at).step_by(step);
                    samples.for_each(|v| *v = scaled(u16::from_le_bytes(*v).into()).to_le_bytes());
                }
            }
        }
    }
}

/// The sample of `depth` bits for each one of `stored` bits, which is less. Limited range has black and white
/// at the same shift of bits at every depth.
fn table(stored: u32, depth: u32, is_chroma: bool, is_limited: bool) -> Vec<u16> {
    let (before, most) = ((1_u32 << stored) - 1, (1_u32 << depth) - 1);
    if is_limited {
        return (0..=before).map(|v| (v << (depth - stored)) as u16).collect();
    }
    if !is_chroma {
        return rescaled(before, most as u16);
    }
    // The middle stays the middle.
    let (centre, scale) = (1_i64 << stored >> 1, f64::from(most) / f64::from(before));
    let around = |v: u32| (i64::from(v) - centre) as f64 * scale + f64::from(1_u32 << depth >> 1);
    (0..=before)
        .map(|v| around(v).round().clamp(0.0, most.into()) as u16)
        .collect()
}

/// The components that the codestream in a packet states.
fn components(packet: &[u8]) -> Option<Vec<Component>> {
    let begin = packet.windows(BEGIN.len()).position(|bytes| bytes == BEGIN)?;
    let size = packet.get(begin + BEGIN.len()..)?;
    let count = usize::from(u16::from_be_bytes(*size.get(36..)?.first_chunk()?));
    let named = size
        .get(38..)?
        .as_chunks::<3>()
        .0
        .get(..count.min(MOST_COMPONENTS))?;
    Some(
        named
            .iter()
            .map(|&[depth, ..]| Component {
                depth: u32::from(depth & 0x7f) + 1,
                is_signed: depth & 0x80 != 0,
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, Layout, Range};

    fn packet(depths: &[u8]) -> Vec<u8> {
        let mut packet = b"boxes\xff\x4f\xff\x51\0\0".to_vec();
        packet.extend([0; 34]);
        packet.extend([0, depths.len() as u8]);
        packet.extend(depths.iter().flat_map(|&depth| [depth, 1, 1]));
        packet
    }

    fn depths(depths: &[u8], format: PixelFormat, colour: &Colour) -> Depths {
        let mut found = Depths::default();
        found.note_packet(&packet(depths));
        found.learn(AvFormat::from_name(format.name()).unwrap(), format, colour);
        found
    }

    fn brought(stored: &[u8], format: PixelFormat, range: Range, words: &[u16]) -> Vec<u16> {
        let colour = Colour {
            range,
            ..Colour::default()
        };
        let planes = format.planes();
        let width = words.len() / planes.iter().map(|plane| plane.channels.len()).sum::<usize>();
        let layout = Layout::new(format, width, 1, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
        let bytes = format.bytes_per_sample();
        let places = frame.bytes_mut().chunks_exact_mut(bytes);
        places
            .zip(words)
            .for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()[..bytes]));
        depths(stored, format, &colour).apply(&mut frame);
        let samples = frame.bytes().chunks_exact(bytes);
        samples
            .map(|v| u16::from_le_bytes([v[0], v.get(1).copied().unwrap_or(0)]))
            .collect()
    }

    #[test]
    fn depths_are_brought_to_the_full_range() {
        let full = Range::Full;
        // Shifted up by FFmpeg, and not.
        let gray = brought(&[9], PixelFormat::GRAY16, full, &[0, 64, 32_768, 65_472]);
        assert_eq!(gray, [0, 64, 32_800, 65_535]);
        let with_alpha = brought(&[9, 9], PixelFormat::YA16, full, &[1023, 512, 1, 0]);
        assert_eq!(with_alpha, [65_535, 32_800, 64, 0]);
        let five = brought(&[4; 3], PixelFormat::RGB24, full, &[248, 128, 8]);
        assert_eq!(five, [255, 132, 8]);
        let mixed = brought(&[7, 7, 7, 0], PixelFormat::RGBA, full, &[7, 8, 9, 128]);
        assert_eq!(mixed, [7, 8, 9, 255]);
        let yuv = PixelFormat::YUV444P12;
        assert_eq!(brought(&[10; 3], yuv, full, &[2047, 1024, 0]), [4095, 2048, 0]);
        assert_eq!(
            brought(&[10; 3], yuv, Range::Limited, &[2047, 1024, 0]),
            [4094, 2048, 0]
        );
        assert_eq!(
            brought(&[15; 3], PixelFormat::RGB48, full, &[1, 2, 65_535]),
            [1, 2, 65_535]
        );
    }

    #[test]
    fn signed_colours_are_named() {
        let signed = |stored: &[u8]| depths(stored, PixelFormat::GRAY, &Colour::default()).signed();
        assert!(signed(&[0x87]).unwrap().contains("signed numbers of 8 bits"));
        assert!(signed(&[0x87; 3]).is_some() && signed(&[7, 0x87, 0x87]).is_none());
        assert_eq!(signed(&[7]), None);
        assert_eq!(components(&packet(&[7, 7])[..48]), None);
    }
}
