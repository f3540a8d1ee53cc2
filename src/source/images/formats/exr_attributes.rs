//! Attributes of an OpenEXR header as bytes, where the crate would write others than it has read.
//!
//! Attributes that OpenEXR does not read are left out.
//!
//! The crate writes the key code of a film without one of its numbers, does not write time codes of
//! impossible times (all bits set for none), and exchanges the ends of windows that have none.
//!
//! ```text
//!   magic number 32 | version 32 | an attribute: name 0 | type 0 | bytes 32 | value | .. | 0
//! ```

use crate::annotations::exr::{STRUCTURE, is_aspect};
use crate::source::images::picture::Reason;
use ::exr::meta::attribute::{AttributeValue, Text};
use ::exr::meta::header::{Header, standard_names as names};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

/// Bytes of the magic number and the version.
const BEGIN: u64 = 8;

/// Bytes of a name or a type, with the zero behind it.
const LONGEST_NAME: u64 = 256;

/// The type and the bytes of a value.
type Value = (Vec<u8>, Vec<u8>);

/// Makes `header`, the first of the file `input`, one that is written with the attributes of the file, and
/// tells which of them are left out, as those that OpenEXR would not read. A preview is: it shows the picture
/// as it was. A data window that ends before it begins, whose ends the crate exchanges, is damage.
pub(super) fn keep(header: &mut Header, input: &mut impl BufRead) -> Result<Vec<String>, Reason> {
    let mut losses = Vec::new();
    let mut kept = header.clone();
    kept.own_attributes.preview = None;
    let written: BTreeMap<Vec<u8>, Option<Value>> = kept
        .all_named_attributes()
        .map(|(name, value)| (name.to_vec(), written(&value)))
        .collect();
    let Found { last, twice } = read(input)?;
    for (name, (kind, bytes)) in last {
        let is_structure = STRUCTURE.iter().any(|known| known.as_bytes() == name);
        if is_structure {
            if twice.contains_key(&name) {
                return Err(format!(
                    "its header has two attributes {}; the file is damaged",
                    words(&name)
                )
                .into());
            }
            losses.extend(corrected(&mut kept, &name, &kind, &bytes)?);
            continue;
        }
        let is_preview = name == names::PREVIEW && kind == names::PREVIEW;
        if is_preview {
            continue;
        }
        let is_free = match written.get(&name) {
            Some(Some(same)) if *same == (kind.clone(), bytes.clone()) => false,
            Some(_) => forget(&mut kept, &name),
            None => true,
        };
        if is_free {
            let value = AttributeValue::Custom {
                kind: Text::from_slice_unchecked(&kind),
                bytes: bytes.into(),
            };
            let name = Text::from_slice_unchecked(&name);
            kept.own_attributes.other.insert(name, value);
        }
    }
    for (name, _) in twice.into_iter().filter(|(_, differ)| *differ) {
        // What the crate knows by its name stays.
        let is_known = kept
            .all_named_attributes()
            .filter(|(other, _)| **other == name[..])
            .count()
            > 1;
        if is_known {
            forget_others(&mut kept, &name);
        }
        losses.push(format!(
            "its attribute {} stands in the file twice, as values of two types; one is left out",
            words(&name)
        ));
    }
    *header = kept;
    Ok(losses)
}

fn words(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Puts what OpenEXR reads in the place of an attribute of the structure that it does not, and says so.
fn corrected(header: &mut Header, name: &[u8], kind: &[u8], bytes: &[u8]) -> Result<Option<String>, Reason> {
    if forget_others(header, name) {
        return Ok(Some(format!(
            "its attribute {} is of the type {}, which it never is; it is left out",
            words(name),
            words(kind)
        )));
    }
    let data = header.data_window();
    let (own, shared) = (&mut header.own_attributes, &mut header.shared_attributes);
    let said = match name {
        b"dataWindow" if is_inverted(bytes) => {
            return Err("its data window ends before it begins; the file is damaged".into());
        }
        b"displayWindow" if is_inverted(bytes) => {
            shared.display_window = data;
            "its display window ends before it begins; the data window takes its place".to_owned()
        }
        b"pixelAspectRatio" if !is_aspect(shared.pixel_aspect) => {
            let was = std::mem::replace(&mut shared.pixel_aspect, 1.0);
            format!("its pixel aspect ratio is {was}, which is none; 1 takes its place")
        }
        b"screenWindowWidth" if own.screen_window_width < 0.0 => {
            let was = std::mem::replace(&mut own.screen_window_width, 1.0);
            format!("its screen window's width is {was}, which is none; 1 takes its place")
        }
        _ => return Ok(None),
    };
    Ok(Some(said))
}

/// True for a window, left, top, right and bottom, whose last row or column comes before the first.
fn is_inverted(window: &[u8]) -> bool {
    let ends = window.as_chunks().0.iter().copied().map(i32::from_le_bytes);
    matches!(ends.collect::<Vec<i32>>()[..], [left, top, right, bottom] if right < left || bottom < top)
}

/// What the crate writes of a value, if it does.
fn written(value: &AttributeValue) -> Option<Value> {
    let mut bytes = Vec::new();
    value.write(&mut bytes).ok()?;
    Some((value.kind_name().to_vec(), bytes))
}

/// Takes an attribute out, if it is one of those that the crate may write otherwise; true if it is gone.
fn forget(header: &mut Header, name: &[u8]) -> bool {
    let (own, shared) = (&mut header.own_attributes, &mut header.shared_attributes);
    match name {
        names::KEY_CODE => own.film_key_code = None,
        names::TIME_CODE => shared.time_code = None,
        // Of an empty window the ends are exchanged.
        names::ORIGINAL_DATA_WINDOW => own.original_data_window = None,
        names::MULTI_VIEW => own.multi_view_names = None,
        _ => return forget_others(header, name),
    }
    true
}

/// Takes the attributes of a name out that have no place of their own in the crate's header; true if there
/// were some.
fn forget_others(header: &mut Header, name: &[u8]) -> bool {
    let (own, shared) = (
        &mut header.own_attributes.other,
        &mut header.shared_attributes.other,
    );
    let is_another = |text: &Text, _: &mut AttributeValue| text.as_slice() != name;
    let before = own.len() + shared.len();
    own.retain(is_another);
    shared.retain(is_another);
    own.len() + shared.len() < before
}

/// What the first header says.
#[derive(Default)]
struct Found {
    /// The attributes by name. Of several of one name the last counts.
    last: BTreeMap<Vec<u8>, Value>,
    /// The names of several that differ, and whether their types do.
    twice: BTreeMap<Vec<u8>, bool>,
}

/// The attributes of the first header.
fn read(input: &mut impl BufRead) -> io::Result<Found> {
    io::copy(&mut input.by_ref().take(BEGIN), &mut io::sink())?;
    let mut found = Found::default();
    loop {
        let name = word(input)?;
        if name.is_empty() {
            return Ok(found);
        }
        let kind = word(input)?;
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let mut bytes = Vec::new();
        if input.by_ref().take(length).read_to_end(&mut bytes)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((other, before)) = found.last.get(&name)
            && (*other != kind || *before != bytes)
        {
            *found.twice.entry(name.clone()).or_default() |= *other != kind;
        }
        found.last.insert(name, (kind, bytes));
    }
}

/// A word that ends with a zero.
fn word(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut word = Vec::new();
    input.by_ref().take(LONGEST_NAME).read_until(0, &mut word)?;
    match word.pop() {
        Some(0) => Ok(word),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
