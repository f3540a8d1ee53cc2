//! What annotations say of the bits that samples have (the `sBIT` of PNG), where it is true of the pixels
//! that are stored: a filter's results have more.

use super::stored::Stored;
use crate::annotations::Annotations;
use crate::frame::Channel;
use crate::sink::significant::has_only;

/// The annotations that are true of `pixels`, which are stored so.
pub(super) fn fitting(annotations: &Annotations, stored: Stored, pixels: &[u8]) -> Annotations {
    let most = if stored.deep { 16 } else { 8 };
    let mut fitting = annotations.clone();
    let channels = stored.channels.len();
    let has_alpha = stored.channels.contains(&Channel::Alpha);
    // Alpha that is new has all bits, and what is said of one that is gone says nothing.
    let fits = |bits: &Vec<u8>| bits.len() == channels || has_alpha && bits.len() + 1 == channels;
    fitting.significant_bits = fitting
        .significant_bits
        .map(|mut bits| {
            if !has_alpha && bits.len() == channels + 1 && matches!(channels, 1 | 3) {
                bits.truncate(channels);
            }
            bits
        })
        .filter(|bits| fits(bits) && bits.iter().all(|&bits| bits <= most))
        // A filter's results have more.
        .filter(|bits| stored.float || have_only(pixels, stored, bits));
    fitting
}

/// True if so many bits of each channel's samples say what the samples are.
fn have_only(pixels: &[u8], stored: Stored, bits: &[u8]) -> bool {
    let (depth, bytes) = if stored.deep { (16, 2) } else { (8, 1) };
    bits.iter().enumerate().all(|(slot, &bits)| {
        let bits = u32::from(bits);
        // Sixteen bits are little-endian here.
        let samples = pixels
            .chunks_exact(bytes)
            .skip(slot)
            .step_by(stored.channels.len());
        let mut samples = samples.map(|s| s.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte)));
        bits >= depth || samples.all(|sample| has_only(sample, bits, depth))
    })
}
