//! How the page is stored, from the tags of its directory: samples, strips or tiles, compression, colours.
//!
//! Tags that contradict each other or that are not understood are refused here, before any sample is read.

use super::colour::{Model, YCbCr};
use super::compression::Packing;
use super::directory::{
    BITS, COMPRESSION, EXTRA_SAMPLES, Entry, FILL_ORDER, HEIGHT, ICC, INK_SET, Input, JPEG_TABLES,
    ORIENTATION, PHOTOMETRIC, PLANAR, PREDICTOR, ROWS_PER_STRIP, SAMPLE_FORMAT, SAMPLES, STRIP_COUNTS,
    STRIP_OFFSETS, T4_OPTIONS, TILE_COUNTS, TILE_HEIGHT, TILE_OFFSETS, TILE_WIDTH, WIDTH, YCBCR_REFERENCE,
    find,
};
use super::predictor::Predictor;
use super::{Result, damaged, unsupported};
use crate::frame::METADATA_LIMIT;

/// How the page is stored.
pub(super) struct Page {
    /// Pixels in a row.
    pub(super) width: u32,
    /// Rows.
    pub(super) height: u32,
    /// Bits of a stored sample.
    pub(super) bits: usize,
    /// The samples are floating-point numbers.
    pub(super) float: bool,
    /// What the colour samples mean.
    pub(super) model: Model,
    /// Samples a pixel in a strip or tile: 1 if the planes are stored one after another.
    pub(super) samples: usize,
    /// Which samples of a pixel are read: the colours, then alpha.
    pub(super) wanted: Vec<usize>,
    /// The last wanted sample is alpha.
    pub(super) alpha: bool,
    /// The file does not say that it is.
    presumes_alpha: bool,
    /// The colours are multiplied by alpha ("associated alpha").
    pub(super) premultiplied: bool,
    /// Samples of a pixel that are not read.
    dropped: usize,
    /// Stated values of black and white that are not applied.
    has_reference: bool,
    /// Each sample has its own plane of strips or tiles.
    pub(super) planar: bool,
    /// Width of a tile; a strip has the width of the page.
    pub(super) chunk_width: u32,
    /// Rows of a strip or tile.
    pub(super) chunk_height: u32,
    /// "strip" or "tile", for messages.
    pub(super) kind: &'static str,
    /// How a strip or tile is compressed.
    pub(super) packing: Packing,
    /// What was done to the samples before they were compressed.
    pub(super) predictor: Predictor,
    /// The lowest bit of each byte comes first (FillOrder 2).
    pub(super) reversed: bool,
    /// Where the strips or tiles are.
    pub(super) offsets: Entry,
    /// How many bytes they have.
    pub(super) counts: Option<Entry>,
    /// Rows of fax data may refer to the one above.
    pub(super) fax_refers: bool,
    /// JPEG tables that all strips or tiles share.
    pub(super) jpeg_tables: Vec<u8>,
    /// The Exif orientation, 1 to 8.
    pub(super) orientation: Option<u8>,
}

/// Which of the `extra` samples after the colours is alpha, whether the file says so, and whether colours are
/// premultiplied by it.
fn alpha_of(
    input: &mut Input,
    directory: &[Entry],
    extra: usize,
    model: &Model,
) -> Result<(Option<usize>, bool, bool)> {
    let extra_kinds = match find(directory, EXTRA_SAMPLES) {
        Some(entry) => input.integers(entry, 65_535)?,
        None => Vec::new(),
    };
    let named = extra_kinds
        .iter()
        .take(extra)
        .position(|kind| matches!(kind, 1 | 2));
    // A single extra sample of unspecified kind is alpha: many writers leave the kind out.
    let alpha = named.or((extra == 1).then_some(0));
    let premultiplied =
        alpha.is_some_and(|at| extra_kinds.get(at) == Some(&1)) && !matches!(model, Model::Palette(_));
    Ok((alpha, named.is_some(), premultiplied))
}

/// True if other values of black and white are stated than the whole range, for colours that are given out
/// without them: RGB, and YCbCr that a JPEG decoder converts.
fn has_other_reference(
    input: &mut Input,
    directory: &[Entry],
    (photometric, bits): (u64, usize),
    jpeg: bool,
) -> bool {
    let most = (1_u64 << bits.min(16)) as f32 - 1.0;
    let whole = match photometric {
        2 => [0.0, most, 0.0, most, 0.0, most],
        6 if jpeg => YCbCr::JPEG.reference,
        _ => return false,
    };
    let stated: Option<[f32; 6]> = input.fractions(find(directory, YCBCR_REFERENCE));
    stated.is_some_and(|stated| stated.iter().zip(whole).any(|(a, b)| (a - b).abs() > 0.5))
}

impl Model {
    /// An error if samples of this kind are not read in these colours.
    fn check(&self, (samples, bits): (usize, usize), float: bool, ink_set: u64) -> Result<()> {
        if float && matches!(self, Model::Palette(_) | Model::YCbCr(_)) {
            return unsupported("holds floating-point samples that are neither gray, RGB nor CMYK");
        }
        if matches!(self, Model::Cmyk) && ink_set != 1 {
            return unsupported("holds inks other than CMYK");
        }
        if matches!(self, Model::YCbCr(_)) && (bits != 8 || samples != 3) {
            return unsupported(format!("holds YCbCr of {samples} samples of {bits} bits"));
        }
        Ok(())
    }
}

impl Packing {
    /// An error if samples of this kind are not read out of such data.
    fn check(
        self,
        (samples, bits): (usize, usize),
        planar: bool,
        float: bool,
        fax_options: u64,
    ) -> Result<()> {
        if self == Packing::Jpeg && (bits != 8 || float) {
            return unsupported(format!("holds JPEG data of {bits}-bit samples"));
        }
        if self == Packing::Fax3 && fax_options & 2 != 0 {
            return unsupported("holds fax data that is partly uncompressed");
        }
        if self == Packing::WebP && (bits != 8 || !matches!(samples, 3 | 4) || planar) {
            return unsupported(format!("holds WebP data of {samples} samples of {bits} bits"));
        }
        if self.is_fax() && (bits != 1 || !(planar || samples == 1)) {
            return damaged("fax data that is not bilevel");
        }
        Ok(())
    }
}

/// The number of a tag, or the one that a missing tag stands for.
fn number(input: &mut Input, directory: &[Entry], tag: u16, default: Option<u64>) -> Result<u64> {
    match (find(directory, tag), default) {
        // Some writers give one number for each sample where a single one is meant.
        (Some(entry), _) => Ok(*input.numbers(entry, 65_535)?.first().unwrap_or(&0)),
        (None, Some(default)) => Ok(default),
        (None, None) => damaged(format!("tag {tag} is missing")),
    }
}

/// A number of pixels, which is not 0.
fn size(value: u64, what: &str) -> Result<u32> {
    match u32::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => damaged(format!("{value} is no {what}")),
    }
}

/// Pixels across and down of a tile, or of a strip of a page of this size.
fn chunk_size(input: &mut Input, directory: &[Entry], (width, height): (u32, u32)) -> Result<(u32, u32)> {
    if find(directory, TILE_WIDTH).is_some() {
        let width = size(number(input, directory, TILE_WIDTH, None)?, "width of a tile")?;
        let height = size(number(input, directory, TILE_HEIGHT, None)?, "height of a tile")?;
        return Ok((width, height));
    }
    let rows = number(input, directory, ROWS_PER_STRIP, Some(height.into()))?;
    Ok((width, size(rows.min(height.into()), "height of a strip")?))
}

/// The list of tiles or strips. Old writers list tiles under the tags of strips.
fn list_of(directory: &[Entry], tiled: bool, tile: u16, strip: u16) -> Option<Entry> {
    let tags = if tiled { [tile, strip] } else { [strip, tile] };
    tags.iter().find_map(|&tag| find(directory, tag)).cloned()
}

impl Page {
    /// Reads the tags of a directory.
    pub(super) fn read(input: &mut Input, directory: &[Entry]) -> Result<Page> {
        let mut one = |tag: u16, default: Option<u64>| number(input, directory, tag, default);
        let width = size(one(WIDTH, None)?, "width")?;
        let height = size(one(HEIGHT, None)?, "height")?;
        let samples = match one(SAMPLES, Some(1))? {
            samples @ 1..=65_535 => samples as usize,
            samples => return damaged(format!("a pixel of {samples} samples")),
        };
        let packing = Packing::new(one(COMPRESSION, Some(1))?)?;
        let photometric = one(PHOTOMETRIC, None)?;
        let planar = samples > 1
            && match one(PLANAR, Some(1))? {
                1 => false,
                2 => true,
                other => return damaged(format!("planar configuration {other}")),
            };
        let tiled = find(directory, TILE_WIDTH).is_some();
        let (chunk_width, chunk_height) = chunk_size(input, directory, (width, height))?;
        let mut one = |tag: u16, default: Option<u64>| number(input, directory, tag, default);
        let orientation = one(ORIENTATION, Some(0)).unwrap_or(0);
        let reversed = one(FILL_ORDER, Some(1))? == 2;
        let fax_options = one(T4_OPTIONS, Some(0))?;
        let predictor_code = one(PREDICTOR, Some(1))?;
        let ink_set = one(INK_SET, Some(1))?;

        let (bits, float) = depth(input, directory, samples)?;
        let jpeg = packing == Packing::Jpeg;
        let model = Model::read(input, directory, photometric, bits, jpeg)?;
        let colours = model.colours();
        let has_reference = has_other_reference(input, directory, (photometric, bits), jpeg);
        model.check((samples, bits), float, ink_set)?;
        let Some(extra) = samples.checked_sub(colours) else {
            return damaged(format!(
                "a pixel of {samples} samples, which is too few for its colours"
            ));
        };
        let (alpha, is_named, premultiplied) = alpha_of(input, directory, extra, &model)?;
        let mut wanted: Vec<usize> = (0..colours).collect();
        wanted.extend(alpha.map(|at| colours + at));

        let predictor = Predictor::new(predictor_code, packing, bits, float)?;
        packing.check((samples, bits), planar, float, fax_options)?;
        if model.block() != (1, 1) && (planar || predictor != Predictor::None) {
            return unsupported("holds subsampled YCbCr in planes or as differences");
        }
        let jpeg_tables = match find(directory, JPEG_TABLES) {
            Some(entry) if jpeg => input.data(entry, 1 << 20)?,
            _ => Vec::new(),
        };

        let Some(offsets) = list_of(directory, tiled, TILE_OFFSETS, STRIP_OFFSETS) else {
            return damaged("it does not tell where its strips or tiles are");
        };
        let page = Page {
            width,
            height,
            bits,
            float,
            samples: if planar { 1 } else { samples },
            dropped: samples - wanted.len(),
            has_reference,
            wanted,
            alpha: alpha.is_some(),
            presumes_alpha: alpha.is_some() && !is_named,
            premultiplied,
            planar,
            chunk_width,
            chunk_height,
            kind: if tiled { "tile" } else { "strip" },
            packing,
            predictor,
            reversed,
            offsets,
            counts: list_of(directory, tiled, TILE_COUNTS, STRIP_COUNTS),
            fax_refers: fax_options & 1 != 0,
            jpeg_tables,
            model,
            orientation: u8::try_from(orientation).ok().filter(|o| (1..=8).contains(o)),
        };
        page.check_offsets(if planar { samples } else { 1 })?;
        Ok(page)
    }

    /// An error if a strip or tile of one of the `planes` has no place in the file.
    fn check_offsets(&self, planes: usize) -> Result<()> {
        let (across, down) = self.grid();
        let needed = (u64::from(across) * u64::from(down)).checked_mul(planes as u64);
        if needed.is_none_or(|needed| self.offsets.count < needed) {
            return damaged("the list of strips or tiles is too short");
        }
        Ok(())
    }

    /// Strips or tiles across and down.
    pub(super) fn grid(&self) -> (u32, u32) {
        (
            self.width.div_ceil(self.chunk_width),
            self.height.div_ceil(self.chunk_height),
        )
    }

    /// The samples given out have 16 bits, not 8.
    pub(super) fn deep(&self) -> bool {
        self.bits > 8 || self.model.is_deep()
    }

    /// The bits of the floating-point samples that are given out; `None` if these are integers.
    pub(super) fn given_floats(&self) -> Option<usize> {
        let as_stored = matches!(self.model, Model::Gray { inverted: false } | Model::Rgb);
        (self.float && as_stored).then_some(self.bits.min(32))
    }

    /// What is lost when the samples become gray or RGB of 8 or 16 bits.
    pub(super) fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        match (self.float, self.given_floats()) {
            (true, None) => losses.push(
                "floating-point samples of inks or of gray whose 0 is white are brought to 16 bits, and \
                 values outside 0 to 1 are cut"
                    .into(),
            ),
            (true, Some(_)) if self.bits == 64 => {
                losses.push("samples of 64 bits are brought to 32 bits".into());
            }
            _ => {}
        }
        if self.has_reference {
            losses.push("its values of black and white (ReferenceBlackWhite) are not applied".into());
        }
        match self.dropped {
            0 => {}
            1 => losses.push("1 extra sample of each pixel is left out".into()),
            n => losses.push(format!("{n} extra samples of each pixel are left out")),
        }
        losses
    }

    /// How samples are converted on the way out.
    pub(super) fn conversion(&self) -> Option<String> {
        let inks =
            matches!(self.model, Model::Cmyk).then_some("CMYK is brought to RGB without its colour profile");
        let alpha = self.presumes_alpha.then_some(
            "the sample after the colours, whose kind the file does not state, is taken for alpha",
        );
        // Indices of a palette are no samples, and black and white are all that there is of 1 bit.
        let is_scaled =
            !matches!(self.bits, 1 | 8 | 16) && !self.float && !matches!(self.model, Model::Palette(_));
        let to = if self.deep() { 16 } else { 8 };
        let bits = is_scaled.then(|| format!("samples of {} bits are scaled to {to}", self.bits));
        let words = inks.into_iter().chain(alpha).map(str::to_owned);
        let all: Vec<String> = words.chain(bits).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// The ICC profile of the samples given out.
    pub(super) fn profile(&self, input: &mut Input, directory: &[Entry]) -> Result<Option<Vec<u8>>> {
        let Some(entry) = find(directory, ICC) else {
            return Ok(None);
        };
        // What is larger than allowed is named together with all else that is.
        let most = METADATA_LIMIT as u64;
        if entry
            .bytes()
            .is_some_and(|bytes| bytes > most && bytes < input.len())
        {
            return Ok(None);
        }
        let profile = input.data(entry, most)?;
        Ok(Some(profile).filter(|profile| !profile.is_empty()))
    }
}

/// The bits of a sample, and whether they are a floating-point number.
fn depth(input: &mut Input, directory: &[Entry], samples: usize) -> Result<(usize, bool)> {
    let mut same = |tag: u16, what: &str| -> Result<Option<u64>> {
        let Some(entry) = find(directory, tag) else {
            return Ok(None);
        };
        let values = input.numbers(entry, 65_535)?;
        let first = values.first().copied();
        if values.iter().take(samples).any(|&v| Some(v) != first) {
            return unsupported(format!("holds samples of different {what}"));
        }
        Ok(first)
    };
    let bits = same(BITS, "depths")?.unwrap_or(1);
    let format = same(SAMPLE_FORMAT, "formats")?.unwrap_or(1);
    match (format, bits) {
        (1 | 4, 1..=16) => Ok((bits as usize, false)),
        (3, 16 | 32 | 64) => Ok((bits as usize, true)),
        (1 | 4, 17..) => unsupported(format!("holds {bits}-bit unsigned samples")),
        (2, 1..) => unsupported(format!("holds {bits}-bit signed samples")),
        (3, 1..) => unsupported(format!("holds {bits}-bit floating-point samples")),
        (5 | 6, 1..) => unsupported("holds complex numbers"),
        (_, 0) => damaged("samples of 0 bits"),
        _ => unsupported(format!("holds samples of an unknown format ({format})")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::super::directory::{
        BITS, COLOUR_MAP, COMPRESSION, EXTRA_SAMPLES, PHOTOMETRIC, SAMPLE_FORMAT, SAMPLES, YCBCR_REFERENCE,
    };
    use super::super::fixtures::{file, read};

    #[test]
    fn what_is_not_read_is_named() {
        for (format, bits, words) in [
            (1, 32, "holds 32-bit unsigned samples"),
            (2, 8, "holds 8-bit signed samples"),
            (3, 24, "holds 24-bit floating-point samples"),
        ] {
            let entries: &[(u16, &[u32])] =
                &[(BITS, &[bits]), (PHOTOMETRIC, &[1]), (SAMPLE_FORMAT, &[format])];
            let problem = read(&file(1, 1, entries, &[&[0; 8]])).unwrap_err();
            assert!(
                matches!(&problem, Problem::Unsupported(what) if what == words),
                "{problem}"
            );
        }
        let problem = read(&file(
            1,
            1,
            &[(PHOTOMETRIC, &[1]), (COMPRESSION, &[50_000])],
            &[&[0; 8]],
        ));
        assert!(matches!(problem, Err(Problem::Unsupported(what)) if what == "is compressed by Zstandard"));
    }

    #[test]
    fn values_of_black_and_white_that_are_not_applied_are_named() {
        let said = |values: &[u32]| {
            let entries: &[(u16, &[u32])] = &[
                (BITS, &[8, 8, 8]),
                (PHOTOMETRIC, &[2]),
                (SAMPLES, &[3]),
                (YCBCR_REFERENCE, values),
            ];
            read(&file(1, 1, entries, &[&[1, 2, 3]])).unwrap().0.lost
        };
        assert_eq!(said(&[0, 255, 0, 255, 0, 255]), [""; 0]);
        let lost = said(&[16, 235, 16, 235, 16, 235]);
        assert!(
            lost.len() == 1 && lost[0].contains("ReferenceBlackWhite"),
            "{lost:?}"
        );
    }

    #[test]
    fn samples_of_other_bits_are_said_to_be_scaled() {
        for (bits, photometric, words) in [
            (1, 1, None),
            (2, 1, Some("samples of 2 bits are scaled to 8")),
            (4, 0, Some("samples of 4 bits are scaled to 8")),
            (8, 1, None),
            (10, 1, Some("samples of 10 bits are scaled to 16")),
            (12, 1, Some("samples of 12 bits are scaled to 16")),
            (16, 1, None),
        ] {
            let entries: &[(u16, &[u32])] = &[(BITS, &[bits]), (PHOTOMETRIC, &[photometric])];
            let (facts, _) = read(&file(1, 1, entries, &[&[0; 8]])).unwrap();
            assert_eq!(facts.converted.as_deref(), words, "{bits}");
        }
        let map = [0; 48];
        let entries: &[(u16, &[u32])] = &[(BITS, &[4]), (PHOTOMETRIC, &[3]), (COLOUR_MAP, &map)];
        let (facts, _) = read(&file(1, 1, entries, &[&[0; 8]])).unwrap();
        assert_eq!(facts.converted, None);
    }

    #[test]
    fn an_extra_sample_of_unspecified_kind_is_not_premultiplied() {
        for extra in [Some(0), Some(2), None] {
            let kind = [extra.unwrap_or(0)];
            let mut entries: Vec<(u16, &[u32])> = vec![(BITS, &[8; 2]), (PHOTOMETRIC, &[1]), (SAMPLES, &[2])];
            entries.extend(extra.map(|_| (EXTRA_SAMPLES, &kind[..])));
            let (facts, out) = read(&file(2, 1, &entries, &[&[64, 128, 9, 0]])).unwrap();
            assert!(facts.gray && facts.alpha);
            assert_eq!(out, [64, 128, 9, 0]);
        }
    }
}
