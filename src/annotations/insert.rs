//! Annotations put into a finished file.

use super::containers::{bmp, jpeg, png, pnm, radiance, tiff, webp};
use super::kind::Container;
use super::{Annotations, DATE_TIME, DensityUnit, exif, once, word, xmp};

/// Puts annotations into `encoded`, a whole file without any but an ICC profile and an orientation, and names
/// what it cannot hold.
///
/// The Exif block will say `orientation`, whatever it said before. Its small preview is taken out: it shows
/// the picture as it was before the filter.
#[must_use]
pub fn insert(
    container: Container,
    annotations: &Annotations,
    orientation: Option<u8>,
    mut encoded: Vec<u8>,
) -> (Vec<u8>, Vec<&'static str>) {
    let orientation = orientation.filter(|o| (1..=8).contains(o));
    let mut lost = annotations.left_out.clone();
    let holds = container.holds();
    let mut rest = annotations.clone();
    let mut miss = |held: bool, there: bool, word| {
        if !held && there {
            once(&mut lost, word);
        }
        held
    };
    let says_more = |block: &[u8]| !exif::is_bare(block);
    if !miss(
        holds.exif,
        rest.exif.as_deref().is_some_and(says_more),
        word::EXIF,
    ) {
        rest.exif = None;
    }
    if !miss(holds.xmp, rest.xmp.is_some(), word::XMP) {
        rest.xmp = None;
    }
    if !miss(holds.iptc, rest.iptc.is_some(), word::IPTC) {
        rest.iptc = None;
    }
    if let Some(density) = rest.density {
        let held = if density.unit == DensityUnit::None {
            holds.aspect
        } else {
            holds.density
        };
        if !miss(held, true, density.word()) {
            rest.density = None;
        }
    }
    if !holds.colour
        && let Some(time) = rest.time.take()
    {
        match time_text(time).filter(|_| holds.text) {
            // Exif and TIFF have one time of change, and a file's own word for it goes first.
            Some(time) if rest.texts.iter().all(|(name, _)| name != DATE_TIME) => {
                rest.texts.push((DATE_TIME.to_owned(), time));
            }
            Some(_) => {}
            None => {
                miss(false, true, word::TIME);
            }
        }
    }
    match container {
        Container::Pnm => encoded = pnm::insert(&mut rest.texts, encoded),
        Container::Radiance => encoded = radiance::insert(&mut rest.texts, encoded),
        _ => {}
    }
    if !miss(holds.text, !rest.texts.is_empty(), word::TEXT) {
        rest.texts.clear();
    }
    if !holds.colour {
        let is_described = !rest.says_srgb_only();
        miss(false, is_described && rest.gamma.is_some(), word::GAMMA);
        miss(
            false,
            is_described && rest.chromaticities.is_some(),
            word::CHROMATICITIES,
        );
        miss(false, is_described && rest.cicp.is_some(), word::CICP);
        miss(false, rest.has_hdr(), word::HDR);
        // Many programs state that all bits are significant.
        let partial = |bits: &Vec<u8>| bits.iter().any(|b| !matches!(b, 8 | 16));
        miss(
            false,
            rest.significant_bits.as_ref().is_some_and(partial),
            word::SIGNIFICANT_BITS,
        );
    }
    if let Some(packet) = &rest.xmp {
        rest.xmp = Some(xmp::with_orientation(packet, orientation));
    }
    let file = match container {
        Container::Png => png::insert(&rest, orientation, encoded, &mut lost),
        Container::Jpeg => jpeg::insert(&rest, orientation, encoded, &mut lost),
        Container::WebP => webp::insert(&rest, orientation, encoded, &mut lost),
        Container::Tiff => tiff::insert(&rest, orientation, encoded, &mut lost),
        Container::Bmp => bmp::insert(&rest, encoded, &mut lost),
        Container::Pnm | Container::Radiance => encoded,
    };
    (file, lost)
}

/// A time of PNG's as TIFF and Exif write it; `None` if it is none.
pub(super) fn time_text([y1, y0, month, day, hour, minute, second]: [u8; 7]) -> Option<String> {
    let year = u16::from_be_bytes([y1, y0]);
    let is_time =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    is_time.then(|| format!("{year:04}:{month:02}:{day:02} {hour:02}:{minute:02}:{second:02}"))
}
