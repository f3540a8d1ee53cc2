//! Attributes of an OpenEXR header as bytes, where the crate would write others than it has read.
//!
//! It writes the key code of a film without one of its numbers, does not write time codes of impossible times
//! (all bits set for none), and exchanges the ends of windows that have none.
//!
//! ```text
//!   magic number 32 | version 32 | an attribute: name 0 | type 0 | bytes 32 | value | .. | 0
//! ```

use crate::annotations::exr::STRUCTURE;
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

/// Makes `header`, the first of the file `input`, one that is written with the attributes of the file. A
/// preview is left out: it shows the picture as it was. A data window that ends before it begins, whose ends
/// the crate exchanges, is damage.
pub(super) fn keep(header: &mut Header, input: &mut impl BufRead) -> Result<(), Reason> {
    let mut kept = header.clone();
    kept.own_attributes.preview = None;
    let written: BTreeMap<Vec<u8>, Option<Value>> = kept
        .all_named_attributes()
        .map(|(name, value)| (name.to_vec(), written(&value)))
        .collect();
    for (name, (kind, bytes)) in read(input)? {
        if name == b"dataWindow" && is_inverted(&bytes) {
            return Err("its data window ends before it begins; the file is damaged".into());
        }
        let is_structure = STRUCTURE.iter().any(|known| known.as_bytes() == name);
        let is_preview = name == names::PREVIEW && kind == names::PREVIEW;
        if is_structure || is_preview {
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
    *header = kept;
    Ok(())
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
        _ => {
            let is_custom = |text: &Text, _: &mut AttributeValue| text.as_slice() != name;
            let before = own.other.len() + shared.other.len();
            own.other.retain(is_custom);
            shared.other.retain(is_custom);
            return own.other.len() + shared.other.len() < before;
        }
    }
    true
}

/// The attributes of the first header. Of several of one name the last counts.
fn read(input: &mut impl BufRead) -> io::Result<BTreeMap<Vec<u8>, Value>> {
    io::copy(&mut input.by_ref().take(BEGIN), &mut io::sink())?;
    let mut found = BTreeMap::new();
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
        found.insert(name, (kind, bytes));
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
