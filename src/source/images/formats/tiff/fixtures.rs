//! Small TIFF files for the tests, made in memory. Only tests use this file, so it may use the whole reader.
//!
//! ```text
//! header | strips or tiles | values that are too large for their entries | directory
//! ```

use super::directory::{HEIGHT, STRIP_COUNTS, STRIP_OFFSETS, TILE_COUNTS, TILE_OFFSETS, TILE_WIDTH, WIDTH};
use super::{Facts, Result, Tiff};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A file that is removed when it is dropped.
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    pub(super) fn new(bytes: &[u8]) -> Temporary {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("framepipe-tiff-{}-{number}.tif", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// Reads a file that has these bytes.
pub(super) fn read(bytes: &[u8]) -> Result<(Facts, Vec<u8>)> {
    let file = Temporary::new(bytes);
    let tiff = Tiff::open(&file.0)?;
    let facts = tiff.facts().clone();
    let mut out = vec![0xa5; facts.output_bytes().unwrap()];
    tiff.read(&mut out)?;
    Ok((facts, out))
}

/// A little-endian file: `chunks`, then a directory of `entries`, with strips unless these have a tile size.
pub(super) fn file(width: u32, height: u32, entries: &[(u16, &[u32])], chunks: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"II\x2a\0\0\0\0\0".to_vec();
    let (mut offsets, mut counts) = (Vec::new(), Vec::new());
    for chunk in chunks {
        offsets.push(bytes.len() as u32);
        counts.push(chunk.len() as u32);
        bytes.extend_from_slice(chunk);
    }
    let tiled = entries.iter().any(|entry| entry.0 == TILE_WIDTH);
    let places = if tiled {
        (TILE_OFFSETS, TILE_COUNTS)
    } else {
        (STRIP_OFFSETS, STRIP_COUNTS)
    };
    let mut all = entries.to_vec();
    let (width, height) = ([width], [height]);
    all.extend([
        (WIDTH, &width[..]),
        (HEIGHT, &height),
        (places.0, &offsets),
        (places.1, &counts),
    ]);
    all.sort();
    let mut directory = (all.len() as u16).to_le_bytes().to_vec();
    for (tag, values) in all {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let place = bytes.len() as u32;
        directory.extend(tag.to_le_bytes());
        directory.extend(4_u16.to_le_bytes());
        directory.extend((values.len() as u32).to_le_bytes());
        if values.len() == 1 {
            directory.extend(data);
        } else {
            directory.extend(place.to_le_bytes());
            bytes.extend(data);
        }
    }
    let place = (bytes.len() as u32).to_le_bytes();
    bytes[4..8].copy_from_slice(&place);
    bytes.extend(directory);
    bytes.extend([0; 4]);
    bytes
}
