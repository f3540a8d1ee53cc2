//! OpenEXR: all channels of floating-point numbers of a file's first part as the samples of a frame, and all
//! else that the part says beside them, to be written again.
//!
//! ```text
//!   R G B, R G B A     rgbf32, rgbaf32        Y, Z     grayf32        Y A    yaf32
//!   any others         f32x5: one plane, in the order of the file
//! ```
//!
//! A part whose channels are all of 16 bits stays so; of mixed ones all get 32, and remember what they were.
//! Headers may lie, and so may the counts that blocks of DWA begin with: nothing large is allocated by them
//! before the file's length, or the block's size, was held against what they claim. Pixels that no block
//! gives are an error.

use super::exr_attributes;
use crate::annotations::exr::{ExrPart, is_float, primaries, widened};
use crate::frame::{AlphaKind, Channel, Colour, MAX_CHANNELS, PixelFormat, Range, gcd};
use crate::source::images::Rules;
use crate::source::images::picture::{OpenPicture, PictureNotes, Reason};
use crate::source::images::read_budget::{BudgetedReader, ReadBudget};
use crate::source::images::trailing::several_pictures;
use crate::wording::listed;
use ::exr::block::chunk::{CompressedBlock, CompressedScanLineBlock, CompressedTileBlock};
use ::exr::block::lines::LineIndex;
use ::exr::block::reader::{ChunksReader, Reader};
use ::exr::block::{self, BlockIndex, UncompressedBlock};
use ::exr::compression::Compression;
use ::exr::error::Error;
use ::exr::math::Vec2;
use ::exr::meta::BlockDescription;
use ::exr::meta::attribute::{AttributeValue, LevelMode, SampleType};
use ::exr::meta::header::Header;
use half::f16;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

/// H.273's number of linear light.
const LINEAR: u8 = 8;

/// Bytes of a tile that are plausible in any picture.
const USUAL_TILE: u64 = 64 << 20;

/// Bytes of samples that are plausible in any file.
const ALWAYS_PLAUSIBLE: u64 = 256 << 20;

/// Pixels are counted as if they had so many samples, so that many channels are as large as many pixels.
const SAMPLES_OF_A_PIXEL: u64 = 4;

/// Bytes of a channel's name that OpenEXR reads.
const LONGEST_NAME: usize = 255;

/// What is said of one that is longer.
const LONG_NAME: &str =
    "a name in its header has more than 255 bytes, which OpenEXR does not read; shorten it";

/// What is said of compressions that are not read.
const COMPRESSION: &str = "which is not read; save it again with ZIP or PIZ";

/// What is said of a header for which the budget does not suffice.
const LARGE_HEADER: &str = "its header is larger than 16 MiB; take large attributes out of the file";

struct Exr {
    reader: Reader<BudgetedReader<'static>>,
    budget: ReadBudget,
    format: PixelFormat,
    /// The channels of the frame's samples, in their order.
    samples: Vec<usize>,
    /// The first part's, with the attributes as they stand in the file.
    header: Header,
    /// What of the header is left out.
    losses: Vec<String>,
}

/// Opens a file and reads its header.
pub(in crate::source::images) fn open(path: &Path, rules: Rules) -> Result<Box<dyn OpenPicture>, Reason> {
    let budget = ReadBudget::new();
    // Lists of objects by their hashes (cryptomatte) stand in the header.
    budget.extend(0);
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let input = BudgetedReader::new(BufReader::new(file), &budget);
    let large = || Reason::Words(LARGE_HEADER.to_owned());
    let reader = block::read(input, false).map_err(|error| match budget.is_spent() {
        true => large(),
        false => reason(error),
    })?;
    let header = reader.headers().first().ok_or("it has no part")?;
    check(header, rules.max_pixels)?;
    if !is_plausible(header, length) {
        return Err(
            "it claims to hold more samples than its bytes can; the file is damaged or cut off".into(),
        );
    }
    let (format, samples) = arranged(header, rules.colours_only)?;
    let mut header = header.clone();
    budget.extend(0);
    let again = BudgetedReader::new(BufReader::new(File::open(path)?), &budget);
    let mut losses = exr_attributes::keep(&mut header, &mut { again })
        .map_err(|reason| if budget.is_spent() { large() } else { reason })?;
    losses.extend(left_out(&header, &samples));
    Ok(Box::new(Exr {
        format,
        samples,
        budget,
        header,
        losses,
        reader,
    }))
}

/// Refuses what cannot be filtered, and what cannot be.
fn check(header: &Header, most: u64) -> Result<(), Reason> {
    if header.deep {
        return Err("it holds deep data, any number of samples for each pixel; flatten it first".into());
    }
    if let Compression::HTJ2K32 | Compression::HTJ2K256 = header.compression {
        return Err(format!("it is compressed by HTJ2K, {COMPRESSION}").into());
    }
    let channels = &header.channels.list;
    let mut names = HashSet::new();
    if let Some(twice) = channels
        .iter()
        .find(|channel| !names.insert(channel.name.as_slice()))
    {
        return Err(format!(
            "two of its channels have the name {}; rename one first",
            twice.name
        )
        .into());
    }
    if channels
        .iter()
        .any(|channel| channel.name.as_slice().len() > LONGEST_NAME)
    {
        return Err(LONG_NAME.into());
    }
    if let Some(channel) = channels.iter().find(|channel| channel.sampling != Vec2(1, 1)) {
        return Err(format!(
            "its channel {} has fewer samples than there are pixels; bring all channels to one size first",
            channel.name
        )
        .into());
    }
    let count = channels.len() as u64;
    let Vec2(width, height) = header.layer_size;
    let pixels = (width as u64).saturating_mul(height as u64);
    if pixels.saturating_mul(count.div_ceil(SAMPLES_OF_A_PIXEL)) > most {
        return Err(format!(
            "its {width}x{height} pixels of {count} channels are more than --max-pixels allows ({most} of \
             {SAMPLES_OF_A_PIXEL})"
        )
        .into());
    }
    if let BlockDescription::Tiles(tiles) = header.blocks {
        let bytes = header.channels.bytes_per_pixel as u64;
        let Vec2(across, down) = tiles.tile_size;
        let tile = (across as u64).saturating_mul(down as u64).saturating_mul(bytes);
        if tile > USUAL_TILE.max(pixels.saturating_mul(bytes)) {
            return Err(
                format!("it claims to have tiles of {across}x{down}, which are larger than it is").into(),
            );
        }
    }
    Ok(())
}

/// The channels that are filtered: those of floating-point numbers, but for the IDs of objects that
/// Cryptomatte keeps in such and their coverages, in channels such as `name00.r` that its attributes name.
fn filtered(header: &Header) -> Vec<usize> {
    let attributes = header.own_attributes.other.iter();
    let attributes = attributes.chain(&header.shared_attributes.other);
    let names: Vec<String> = attributes
        .filter(|(key, _)| {
            let key = key.to_string();
            key.starts_with("cryptomatte/") && key.ends_with("/name")
        })
        .filter_map(|(_, value)| match value {
            AttributeValue::Text(name) => Some(name.to_string()),
            _ => None,
        })
        .collect();
    let is_id = |channel: &str| {
        names.iter().any(|name| {
            let rank = channel
                .strip_prefix(&name[..])
                .and_then(|rest| rest.split_once('.'));
            rank.is_some_and(|(rank, _)| !rank.is_empty() && rank.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let list = header.channels.list.iter().enumerate();
    list.filter(|(_, channel)| {
        let kind = channel.sample_type;
        is_float(kind) && !(kind == SampleType::F32 && is_id(&channel.name.to_string()))
    })
    .map(|(index, _)| index)
    .collect()
}

/// The channels that are filtered in other files and not read of this one, in words.
fn left_out(header: &Header, samples: &[usize]) -> Option<String> {
    let others = filtered(header)
        .into_iter()
        .filter(|index| !samples.contains(index));
    let names: Vec<String> = others
        .map(|index| header.channels.list[index].name.to_string())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "channels that the requested pixel format has no place for are left out: {}",
            listed(names)
        )
    })
}

/// The format of the frame, and the channels that its samples come from; with `colours_only` those of a
/// picture, if there is one.
fn arranged(header: &Header, colours_only: bool) -> Result<(PixelFormat, Vec<usize>), Reason> {
    let channels = &header.channels.list;
    let mut floats = filtered(header);
    if colours_only {
        let find = |name: &&str| {
            floats
                .iter()
                .copied()
                .find(|&index| channels[index].name == **name)
        };
        let pictures: [&[&str]; 4] = [&["R", "G", "B", "A"], &["R", "G", "B"], &["Y", "A"], &["Y"]];
        let picture = pictures
            .iter()
            .find_map(|names| names.iter().map(find).collect::<Option<Vec<usize>>>());
        floats = picture.unwrap_or(floats);
    }
    if floats.is_empty() {
        return Err(
            "it holds numbers of things alone (UINT, or IDs of Cryptomatte), which are not filtered".into(),
        );
    }
    let bits = match floats
        .iter()
        .all(|&index| channels[index].sample_type == SampleType::F16)
    {
        true => 16,
        false => 32,
    };
    let named = |names: &[&str]| -> Option<Vec<usize>> {
        let place = |name: &&str| {
            floats
                .iter()
                .copied()
                .find(|&index| channels[index].name == **name)
        };
        let places: Option<Vec<usize>> = names.iter().map(place).collect();
        places.filter(|places| places.len() == floats.len())
    };
    let pick = |short, long| if bits == 16 { short } else { long };
    let known: [(&[&str], PixelFormat); 5] = [
        (&["R", "G", "B"], pick(PixelFormat::RGBF16, PixelFormat::RGBF32)),
        (
            &["R", "G", "B", "A"],
            pick(PixelFormat::RGBAF16, PixelFormat::RGBAF32),
        ),
        (&["Y"], pick(PixelFormat::GRAYF16, PixelFormat::GRAYF32)),
        (&["Z"], pick(PixelFormat::GRAYF16, PixelFormat::GRAYF32)),
        (&["Y", "A"], pick(PixelFormat::YAF16, PixelFormat::YAF32)),
    ];
    for (names, format) in known {
        if let Some(samples) = named(names) {
            return Ok((format, samples));
        }
    }
    let format = PixelFormat::float_channels(bits, floats.len());
    let format =
        format.ok_or_else(|| format!("it has {} channels; {MAX_CHANNELS} are read", floats.len()))?;
    Ok((format, floats))
}

/// What the crate says of a file, as the reason why it is not read.
fn reason(error: Error) -> Reason {
    match error {
        Error::Io(cause) => Reason::Io(cause),
        Error::Invalid(words) if words == "reference to missing bytes" => {
            Reason::Io(io::ErrorKind::UnexpectedEof.into())
        }
        Error::Invalid(words) if words == "text too long" => LONG_NAME.into(),
        Error::NotSupported(words) if words == "unknown compression method" => {
            format!("it is compressed by a method that is not known here, {COMPRESSION}").into()
        }
        Error::NotSupported(words) => format!("it is of a kind that is not read ({words})").into(),
        error => format!("it may be damaged ({error})").into(),
    }
}

impl OpenPicture for Exr {
    fn size(&self) -> (usize, usize) {
        let Vec2(width, height) = self.header.layer_size;
        (width, height)
    }

    fn format(&self) -> &'static str {
        self.format.name()
    }

    fn colour(&self) -> Colour {
        let chromaticities = self.header.shared_attributes.chromaticities;
        let is_picture = self
            .format
            .planes()
            .iter()
            .all(|plane| !plane.channels.contains(&Channel::Data));
        Colour {
            range: Range::Full,
            alpha: match self.format.has_alpha() {
                true => AlphaKind::Associated,
                false => AlphaKind::Straight,
            },
            transfer: if is_picture { LINEAR } else { 2 },
            primaries: chromaticities.as_ref().and_then(primaries).unwrap_or(2),
            ..Colour::default()
        }
    }

    fn most_packed(&self) -> Option<u64> {
        // All samples were held against the file's length.
        None
    }

    fn kept_bytes(&self) -> u64 {
        unfiltered_bytes(&self.header)
    }

    fn decode(self: Box<Self>, samples: &mut [u8]) -> Result<PictureNotes, Reason> {
        let header = self.header.clone();
        let losses = [self.losses, losses(self.reader.headers())].concat();
        if header.blocks != BlockDescription::ScanLines {
            tracing::debug!("an OpenEXR file in tiles; what is made of it has rows");
        }
        self.budget
            .extend(samples.len() as u64 + unfiltered_bytes(&header));
        let mut target = Target::new(&header, self.format, &self.samples, samples)?;
        let chunks = self.reader.filter_chunks(false, |_, tile, block| {
            block.layer == 0 && tile.is_largest_resolution_level()
        });
        let mut chunks = chunks.map_err(reason)?;
        let mut seen = HashSet::new();
        while let Some(chunk) = chunks.read_next_chunk() {
            let chunk = chunk.map_err(reason)?;
            check_counts(&header, &chunk.compressed_block)?;
            let block =
                UncompressedBlock::decompress_chunk(chunk, chunks.meta_data(), false).map_err(reason)?;
            let BlockIndex {
                layer,
                level,
                pixel_position,
                pixel_size,
            } = block.index;
            let is_wanted = layer == 0 && level == Vec2(0, 0) && seen.insert(pixel_position);
            if !is_wanted {
                return Err("its list of blocks is damaged".into());
            }
            target.missing = target.missing.saturating_sub(pixel_size.area());
            for (bytes, line) in LineIndex::lines_in_block(block.index, &header.channels) {
                let stored = block.data.get(bytes).ok_or("a block is shorter than its rows")?;
                target.put(&line, stored)?;
            }
        }
        if target.missing > 0 {
            return Err("blocks are missing, and the file may be cut off".into());
        }
        let unfiltered = target.unfiltered;
        let part = ExrPart::new(header, self.samples, unfiltered);
        Ok(PictureNotes {
            sample_aspect: aspect(part.header().shared_attributes.pixel_aspect),
            exr: Some(Arc::new(part)),
            losses,
            ..PictureNotes::default()
        })
    }
}

/// Bytes of the channels that are not filtered.
fn unfiltered_bytes(header: &Header) -> u64 {
    let count = header.channels.list.len() - filtered(header).len();
    (4 * count as u64).saturating_mul(header.layer_size.area() as u64)
}

/// True if a file of `length` bytes can hold the samples that its header claims.
fn is_plausible(header: &Header, length: u64) -> bool {
    let pixel = header.channels.bytes_per_pixel as u64;
    let samples = pixel.saturating_mul(header.layer_size.area() as u64);
    // In the list of blocks each has a place, and before a block of rows stand its row and its length.
    let block = match header.blocks {
        BlockDescription::ScanLines => 16,
        BlockDescription::Tiles(_) => 8,
    };
    let blocks = (header.chunk_count as u64).saturating_mul(block);
    samples <= ALWAYS_PLAUSIBLE || (samples / most_packed(header.compression) <= length && blocks <= length)
}

/// How many bytes of samples a byte of the file can stand for, and somewhat more.
fn most_packed(compression: Compression) -> u64 {
    // A byte of Deflate stands for 1032.
    match compression {
        Compression::Uncompressed => 1,
        // A number and a byte, for 128 of them.
        Compression::RLE => 64,
        Compression::ZIP1 | Compression::ZIP16 => 1100,
        // A code of a bit and 8 bits stand for 255 samples.
        Compression::PIZ => 1000,
        // The least 8 of 32 bits are not stored.
        Compression::PXR24 => 1500,
        // 3 bytes for 4x4 samples of 16 bits.
        Compression::B44 | Compression::B44A => 11,
        // Of 8x8 equal samples of 16 bits one is deflated, and of 128 equal bytes of A two.
        Compression::DWAA(_) | Compression::DWAB(_) => 70_000,
        Compression::HTJ2K32 | Compression::HTJ2K256 => 1,
    }
}

/// Refuses a block of DWA whose counts are more than its pixels can need: its decoder allocates by them.
///
/// ```text
///   version | bytes of others: raw, packed | packed: AC, DC, runs | bytes of runs: unpacked, raw
///   AC, DC: numbers of 16 bits | kind of AC                                         64 bits each
/// ```
fn check_counts(header: &Header, block: &CompressedBlock) -> Result<(), Reason> {
    let (CompressedBlock::ScanLine(CompressedScanLineBlock {
        compressed_pixels_le, ..
    })
    | CompressedBlock::Tile(CompressedTileBlock {
        compressed_pixels_le, ..
    })) = block
    else {
        return Ok(());
    };
    if !matches!(header.compression, Compression::DWAA(_) | Compression::DWAB(_)) {
        return Ok(());
    }
    let counts = compressed_pixels_le
        .as_chunks()
        .0
        .iter()
        .copied()
        .map(u64::from_le_bytes);
    let counts: Vec<u64> = counts.take(11).collect();
    let &[_, others, _, _, _, _, runs, of_runs, ac, dc, _] = &counts[..] else {
        return Ok(());
    };
    // Squares of 8x8 go beyond the edges, and runs of a byte take two.
    let Vec2(width, height) = header.max_block_pixel_size();
    let square = |side: usize| side.saturating_add(8) as u64;
    let samples = square(width).saturating_mul(square(height));
    let most = samples.saturating_mul(8 * header.channels.list.len() as u64);
    match [others, runs, of_runs, ac, dc].iter().any(|&count| count > most) {
        true => Err("a block claims more samples than it has pixels; the file is damaged".into()),
        false => Ok(()),
    }
}

/// What of a file is not read.
fn losses(headers: &[Header]) -> Vec<String> {
    let mut losses = Vec::new();
    if headers.len() > 1 {
        let name = |header: &Header| {
            let name = header.own_attributes.layer_name.as_ref();
            name.map_or_else(|| "without a name".to_owned(), |name| format!("'{name}'"))
        };
        losses.push(format!(
            "{}; left out: {}",
            several_pictures(headers.len(), "parts", &format!("first ({})", name(&headers[0]))),
            listed(headers[1..].iter().map(name).collect())
        ));
    }
    if let BlockDescription::Tiles(tiles) = headers[0].blocks
        && tiles.level_mode != LevelMode::Singular
    {
        losses.push("the file holds smaller copies of the picture (mip maps), which are left out".to_owned());
    }
    losses
}

/// Width over height of a pixel as a fraction; nothing for numbers that say nothing.
fn aspect(ratio: f32) -> (i32, i32) {
    const PARTS: f64 = 1_000_000.0;
    let parts = (f64::from(ratio) * PARTS).round();
    if !(1.0..2e9).contains(&parts) || ratio == 1.0 {
        return (0, 1);
    }
    let common = gcd(parts as i64, PARTS as i64) as i32;
    (parts as i32 / common, PARTS as i32 / common)
}

/// Where the rows of channels go.
struct Target<'a> {
    /// What each channel of the file becomes.
    places: Vec<Place>,
    kinds: Vec<SampleType>,
    width: usize,
    /// Samples of a pixel, and bytes of a sample.
    count: usize,
    bytes: usize,
    samples: &'a mut [u8],
    unfiltered: Vec<(usize, Vec<u8>)>,
    /// Pixels that no block has given.
    missing: usize,
}

#[derive(Clone, Copy)]
enum Place {
    /// So many samples behind the first of a pixel.
    Sample(usize),
    /// A list of samples that are not filtered.
    Unfiltered(usize),
    LeftOut,
}

impl<'a> Target<'a> {
    fn new(
        header: &Header,
        format: PixelFormat,
        channels: &[usize],
        samples: &'a mut [u8],
    ) -> Result<Target<'a>, Reason> {
        let area = header.layer_size.area();
        let filtered = filtered(header);
        let (mut unfiltered, mut places) = (Vec::new(), Vec::new());
        let list = &header.channels.list;
        for index in 0..list.len() {
            if let Some(slot) = channels.iter().position(|&channel| channel == index) {
                places.push(Place::Sample(slot));
                continue;
            }
            if filtered.contains(&index) {
                places.push(Place::LeftOut);
                continue;
            }
            let mut room = Vec::new();
            let bytes = 4 * area;
            if room.try_reserve_exact(bytes).is_err() {
                return Err("there is no memory for its unfiltered channels".into());
            }
            room.resize(bytes, 0);
            places.push(Place::Unfiltered(unfiltered.len()));
            unfiltered.push((index, room));
        }
        Ok(Target {
            places,
            kinds: list.iter().map(|channel| channel.sample_type).collect(),
            width: header.layer_size.width(),
            count: channels.len(),
            bytes: format.bytes_per_sample(),
            samples,
            unfiltered,
            missing: area,
        })
    }

    /// Puts a row of one channel, or a tile's part of it, into its place.
    fn put(&mut self, line: &LineIndex, stored: &[u8]) -> Result<(), Reason> {
        const BEYOND: &str = "a block goes beyond the picture";
        let first = line.position.y() * self.width + line.position.x();
        let end = first + line.sample_count;
        if line.position.x() + line.sample_count > self.width {
            return Err(BEYOND.into());
        }
        match self.places[line.channel] {
            Place::LeftOut => {}
            Place::Unfiltered(index) => {
                let row = self.unfiltered[index]
                    .1
                    .get_mut(4 * first..4 * end)
                    .ok_or(BEYOND)?;
                row.copy_from_slice(stored);
            }
            Place::Sample(slot) => {
                let pixel = self.count * self.bytes;
                let row = self.samples.get_mut(first * pixel..end * pixel).ok_or(BEYOND)?;
                let at = (slot, self.count);
                match (self.kinds[line.channel], self.bytes) {
                    (SampleType::F16, 2) => spread(row, at, stored, |v| u16::from_ne_bytes(v).to_le_bytes()),
                    (SampleType::F16, _) => {
                        spread(row, at, stored, |v| widened(f16::from_ne_bytes(v)).to_le_bytes());
                    }
                    _ => spread(row, at, stored, |v| u32::from_ne_bytes(v).to_le_bytes()),
                }
            }
        }
        Ok(())
    }
}

/// Puts each number into its pixel, at `slot` of `count`.
fn spread<const STORED: usize, const GIVEN: usize>(
    row: &mut [u8],
    (slot, count): (usize, usize),
    stored: &[u8],
    given: impl Fn([u8; STORED]) -> [u8; GIVEN],
) {
    let places = row
        .as_chunks_mut::<GIVEN>()
        .0
        .iter_mut()
        .skip(slot)
        .step_by(count);
    let stored = stored.as_chunks::<STORED>().0;
    places.zip(stored).for_each(|(to, &from)| *to = given(from));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixel_aspects_are_fractions() {
        assert_eq!(aspect(1.0), (0, 1));
        assert_eq!(aspect(2.0), (2, 1));
        assert_eq!(aspect(0.5), (1, 2));
        assert_eq!(aspect(1.3), (13, 10));
        for nothing in [f32::NAN, f32::INFINITY, 0.0, -1.0, 1e30, 1e-30] {
            assert_eq!(aspect(nothing), (0, 1), "{nothing}");
        }
    }
}
