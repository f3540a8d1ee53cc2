//! OpenEXR files: the frame's samples under the names that they had, with all else that their file said.
//!
//! Rows of blocks, whatever the blocks of the input were. Compression stays what it was, unless it is one
//! that loses something; ZIP is the usual one. Colour under straight alpha is multiplied by it, since
//! OpenEXR's is.

use crate::annotations::exr::{ExrPart, chromaticities, is_aspect, narrowed, widened};
use crate::frame::{AlphaKind, Channel, ColourModel, Frame, PixelFormat};
use ::exr::block::lines::LineRefMut;
use ::exr::block::writer::ChunksWriter;
use ::exr::block::{self, UncompressedBlock, enumerate_ordered_header_block_indices};
use ::exr::compression::Compression;
use ::exr::error::Error;
use ::exr::math::Vec2;
use ::exr::meta::BlockDescription;
use ::exr::meta::attribute::{ChannelDescription, ChannelList, IntegerBounds, LineOrder, SampleType, Text};
use ::exr::meta::header::Header;
use half::f16;
use std::io::{Seek, Write};

/// What there is to say of a file.
#[derive(Debug, Default)]
pub(super) struct ExrNotes {
    /// How it was written where that is not as it was read.
    pub(super) notes: Vec<String>,
    /// What is lost.
    pub(super) losses: Vec<String>,
    /// Pixels whose colour is lost, since it is multiplied by an alpha of 0.
    pub(super) hidden: u64,
}

/// Where the samples of a channel come from.
#[derive(Clone, Copy)]
enum Samples<'a> {
    /// A component of the frame: its plane, and its place among those that the plane interleaves.
    Frame { plane: usize, at: usize, is_alpha: bool },
    /// Integers of the file that the frame comes from.
    Kept(&'a [u8]),
}

/// A file that is about to be written.
struct Plan<'a> {
    header: Header,
    /// One for each channel of the header.
    samples: Vec<Samples<'a>>,
    notes: ExrNotes,
}

/// How many pixels have a colour under an alpha of 0, which multiplying by that alpha loses.
fn hidden(frame: &Frame) -> u64 {
    let format = frame.format();
    let straight = frame.metadata.colour.alpha == AlphaKind::Straight;
    let Some(alpha) = format.place(Channel::Alpha).filter(|_| straight) else {
        return 0;
    };
    let colours: Vec<(usize, usize)> = components(format)
        .into_iter()
        .filter_map(|(channel, plane, at)| (channel != Channel::Alpha).then_some((plane, at)))
        .collect();
    let width = frame.layout().width();
    let (mut line, mut opacity) = (vec![0.0; width], vec![0.0; width]);
    let mut is_hidden = vec![false; width];
    let mut pixels = 0;
    for y in 0..frame.layout().height() {
        read(frame, alpha, y, &mut opacity);
        if opacity.iter().all(|&a| a != 0.0) {
            continue;
        }
        is_hidden.fill(false);
        for &colour in &colours {
            read(frame, colour, y, &mut line);
            let pairs = line.iter().zip(&opacity);
            is_hidden
                .iter_mut()
                .zip(pairs)
                .for_each(|(hidden, (&value, &a))| *hidden |= a == 0.0 && value != 0.0);
        }
        pixels += is_hidden.iter().filter(|&&hidden| hidden).count() as u64;
    }
    pixels
}

/// Writes `frame`, which holds floating-point samples.
pub(super) fn encode(frame: &Frame, out: impl Write + Seek) -> Result<ExrNotes, Error> {
    let Plan {
        header,
        samples,
        mut notes,
    } = plan(frame);
    let kinds: Vec<SampleType> = header
        .channels
        .list
        .iter()
        .map(|channel| channel.sample_type)
        .collect();
    notes.hidden = hidden(frame);
    let mut rows = Rows::new(frame, &mut notes);
    block::write(out, [header].into_iter().collect(), false, |meta, writer| {
        let blocks = enumerate_ordered_header_block_indices(&meta.headers);
        let mut compressor = writer.sequential_blocks_compressor(&meta);
        for (number, index) in blocks {
            let channels = &meta.headers[index.layer].channels;
            let block = UncompressedBlock::from_lines(channels, index, |line| {
                let channel = line.location.channel;
                rows.fill(samples[channel], kinds[channel], line);
            });
            compressor.compress_block(number, block)?;
        }
        Ok(())
    })?;
    if rows.beyond_half > 0 {
        notes.losses.push(format!(
            "{} samples are larger than what channels of 16 bits hold (65504), and became infinite; \
             --pixel-format with f32 writes 32 bits",
            rows.beyond_half
        ));
    }
    Ok(notes)
}

/// The frame's components in the order of their names in messages: red, green, blue, alpha.
fn components(format: PixelFormat) -> Vec<(Channel, usize, usize)> {
    if format.model() == ColourModel::Data {
        let count = format.planes()[0].channels.len();
        return (0..count).map(|at| (Channel::Data, 0, at)).collect();
    }
    [
        Channel::Luma,
        Channel::Red,
        Channel::Green,
        Channel::Blue,
        Channel::Alpha,
    ]
    .into_iter()
    .filter_map(|channel| format.place(channel).map(|(plane, at)| (channel, plane, at)))
    .collect()
}

/// The name of a component that no file named.
fn usual_name(channel: Channel, index: usize) -> Text {
    Text::from(match channel {
        Channel::Luma => "Y",
        Channel::Red => "R",
        Channel::Green => "G",
        Channel::Blue => "B",
        Channel::Alpha => "A",
        // Sorted as text they stay in their order.
        _ => return Text::from(&*format!("channel.{index:04}")),
    })
}

fn plan(frame: &Frame) -> Plan<'_> {
    let (format, metadata) = (frame.format(), &frame.metadata);
    let size = Vec2(frame.layout().width(), frame.layout().height());
    let components = components(format);
    let mut notes = ExrNotes::default();
    let part = metadata.exr.as_deref();
    // Windows and unfiltered channels belong to a size, and names to a number of components.
    let same = part.filter(|part| part.header().layer_size == size);
    let named = part.filter(|part| part.samples().len() == components.len());
    if named.is_none()
        && let Some(names) = part.and_then(ExrPart::unusual_names)
    {
        notes
            .losses
            .push(format!("the names of its channels ({names}) are left out"));
    }
    let short = match format.depth() {
        16 => SampleType::F16,
        _ => SampleType::F32,
    };
    let mut channels: Vec<(ChannelDescription, Samples<'_>)> = components
        .iter()
        .enumerate()
        .map(|(index, &(channel, plane, at))| {
            let samples = Samples::Frame {
                plane,
                at,
                is_alpha: channel == Channel::Alpha,
            };
            let description = match named {
                Some(part) => as_before(part, index, short),
                None => ChannelDescription::named(usual_name(channel, index), short),
            };
            (description, samples)
        })
        .collect();
    if let Some(part) = same {
        let list = part.header().channels.list.iter().enumerate();
        channels.extend(
            list.filter_map(|(index, channel)| {
                Some((channel.clone(), Samples::Kept(part.unfiltered(index)?)))
            }),
        );
    }
    // Readers look for them by bisection.
    channels.sort_by(|(a, _), (b, _)| a.name.as_slice().cmp(b.name.as_slice()));
    let list = channels.iter().map(|(channel, _)| channel.clone()).collect();
    let mut header = header(frame, part, ChannelList::new(list), size);
    if !is_aspect(header.shared_attributes.pixel_aspect) {
        header.shared_attributes.pixel_aspect = 1.0;
        notes
            .losses
            .push("the pixel's aspect is beyond what OpenEXR reads, and is left out".to_owned());
    }
    let lossless = lossless(header.compression, &header.channels);
    if lossless != header.compression && part.is_some() {
        notes.notes.push(format!(
            "written with {lossless}, since {} would lose something again",
            header.compression
        ));
    }
    header = header.with_encoding(lossless, BlockDescription::ScanLines, LineOrder::Increasing);
    if same.is_none() && part.is_some_and(says_more) {
        notes
            .losses
            .push("windows and unfiltered channels of a picture of another size are left out".to_owned());
    }
    Plan {
        samples: channels.iter().map(|(_, samples)| *samples).collect(),
        header,
        notes,
    }
}

/// True if a part has windows that differ from its picture, or unfiltered channels.
fn says_more(part: &ExrPart) -> bool {
    let header = part.header();
    let picture = IntegerBounds::from_dimensions(header.layer_size);
    let has_windows = header.shared_attributes.display_window != picture
        || header.own_attributes.layer_position != Vec2(0, 0);
    has_windows || (0..header.channels.list.len()).any(|index| part.unfiltered(index).is_some())
}

/// The channel that sample `index` of the frame came from. Where all were of 16 bits and the frame has 32, it
/// is because that was requested.
fn as_before(part: &ExrPart, index: usize, frame: SampleType) -> ChannelDescription {
    let list = &part.header().channels.list;
    let mut channel = list[part.samples()[index]].clone();
    let mut of_frame = part.samples().iter().map(|&index| list[index].sample_type);
    if frame == SampleType::F16 || of_frame.all(|kind| kind == SampleType::F16) {
        channel.sample_type = frame;
    }
    channel
}

fn header(frame: &Frame, part: Option<&ExrPart>, channels: ChannelList, size: Vec2<usize>) -> Header {
    let metadata = &frame.metadata;
    let Some(part) = part else {
        let mut header = Header::new(Text::from(""), size, channels.list);
        header.own_attributes.layer_name = None;
        header.compression = Compression::ZIP16;
        if let (across @ 1.., down @ 1..) = metadata.sample_aspect {
            header.shared_attributes.pixel_aspect = (f64::from(across) / f64::from(down)) as f32;
        }
        header.shared_attributes.chromaticities = chromaticities(metadata.colour.primaries);
        return header;
    };
    let mut header = part.header().clone();
    if header.layer_size != size {
        header.layer_size = size;
        header.own_attributes.layer_position = Vec2(0, 0);
        header.shared_attributes.display_window = IntegerBounds::from_dimensions(size);
    }
    header.channels = channels;
    header
}

/// The same compression, or ZIP in the place of one that loses something of these channels or that is not
/// written.
fn lossless(compression: Compression, channels: &ChannelList) -> Compression {
    use Compression::{PIZ, PXR24, RLE, Uncompressed, ZIP1, ZIP16};
    let has_floats = channels
        .list
        .iter()
        .any(|channel| channel.sample_type == SampleType::F32);
    match compression {
        Uncompressed | RLE | ZIP1 | ZIP16 | PIZ => compression,
        PXR24 if !has_floats => compression,
        _ => ZIP16,
    }
}

/// Rows of channels, from rows of the frame.
struct Rows<'a> {
    frame: &'a Frame,
    /// Where alpha lies that colours are multiplied by.
    alpha: Option<(usize, usize)>,
    line: Vec<f32>,
    opacity: Vec<f32>,
    /// Samples that became infinite in channels of 16 bits.
    beyond_half: u64,
}

impl<'a> Rows<'a> {
    fn new(frame: &'a Frame, notes: &mut ExrNotes) -> Rows<'a> {
        let alpha = frame.format().place(Channel::Alpha);
        let alpha = alpha.filter(|_| frame.metadata.colour.alpha == AlphaKind::Straight);
        if alpha.is_some() {
            notes
                .notes
                .push("colours were multiplied by their alpha, as OpenEXR has them".to_owned());
        }
        let width = frame.layout().width();
        Rows {
            frame,
            alpha,
            line: vec![0.0; width],
            opacity: vec![0.0; width],
            beyond_half: 0,
        }
    }

    /// Fills a row of a block, which is as wide as the frame.
    fn fill(&mut self, samples: Samples<'_>, kind: SampleType, line: LineRefMut<'_>) {
        let y = line.location.position.y();
        let stored = line.value;
        let (plane, at, is_alpha) = match samples {
            Samples::Kept(kept) => {
                let start = y * stored.len();
                stored.copy_from_slice(&kept[start..start + stored.len()]);
                return;
            }
            Samples::Frame { plane, at, is_alpha } => (plane, at, is_alpha),
        };
        let multiplies = self.alpha.filter(|_| !is_alpha);
        let is_half = self.frame.format().depth() == 16;
        if is_half && kind == SampleType::F16 && multiplies.is_none() {
            // As they are, those too that are no numbers.
            let step = self.frame.format().planes()[plane].channels.len();
            let row = self.frame.row(plane, y).as_chunks::<2>().0;
            let places = stored.as_chunks_mut::<2>().0.iter_mut();
            places
                .zip(row.iter().skip(at).step_by(step))
                .for_each(|(to, &from)| *to = u16::from_le_bytes(from).to_ne_bytes());
            return;
        }
        read(self.frame, (plane, at), y, &mut self.line);
        if let Some(alpha) = multiplies {
            read(self.frame, alpha, y, &mut self.opacity);
            self.line
                .iter_mut()
                .zip(&self.opacity)
                .for_each(|(value, &a)| *value *= a);
        }
        if kind == SampleType::F16 {
            for (to, &value) in stored.as_chunks_mut::<2>().0.iter_mut().zip(&self.line) {
                let half = narrowed(value);
                self.beyond_half += u64::from(half.is_infinite() && value.is_finite());
                *to = half.to_ne_bytes();
            }
        } else {
            let places = stored.as_chunks_mut::<4>().0.iter_mut();
            places
                .zip(&self.line)
                .for_each(|(to, value)| *to = value.to_ne_bytes());
        }
    }
}

/// Reads a component of a row of the frame.
fn read(frame: &Frame, (plane, at): (usize, usize), y: usize, line: &mut [f32]) {
    let row = frame.row(plane, y);
    let step = frame.format().planes()[plane].channels.len();
    let line = line.iter_mut();
    if frame.format().depth() == 16 {
        let stored = row.as_chunks::<2>().0.iter().skip(at).step_by(step);
        line.zip(stored)
            .for_each(|(to, &from)| *to = widened(f16::from_le_bytes(from)));
    } else {
        let stored = row.as_chunks::<4>().0.iter().skip(at).step_by(step);
        line.zip(stored)
            .for_each(|(to, &from)| *to = f32::from_le_bytes(from));
    }
}
