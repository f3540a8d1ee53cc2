//! A hash of the samples of a frame, plane by plane and row by row, without padding.
//!
//! Two runs that give the same hashes give the same frames, on whatever engine or machine, so that a run in
//! parts can be proved equal to a whole one without keeping both.

use super::Frame;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use xxhash_rust::xxh3::Xxh3;

/// XXH3 of 128 bits over pixel format, size and samples. Shown and stored as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(u128);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ContentHash, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let number = u128::from_str_radix(&digits, 16);
        number.map(ContentHash).map_err(serde::de::Error::custom)
    }
}

/// The hash of a frame.
pub fn content_hash(frame: &Frame) -> ContentHash {
    let layout = frame.layout();
    let mut hasher = Xxh3::new();
    hasher.update(layout.format().name().as_bytes());
    for side in [layout.width(), layout.height()] {
        hasher.update(&(side as u64).to_le_bytes());
    }
    for (index, plane) in layout.planes().iter().enumerate() {
        for y in 0..plane.height {
            hasher.update(frame.row(index, y));
        }
    }
    ContentHash(hasher.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Allocator, Buffer, Layout, Pageable, PixelFormat};

    fn frame(format: PixelFormat, width: usize, height: usize, alignment: usize, padding: u8) -> Frame {
        let layout = Layout::new(format, width, height, alignment).unwrap();
        let memory = Pageable.allocate(layout.size()).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(memory)).unwrap();
        frame.bytes_mut().fill(padding);
        for plane in 0..layout.planes().len() {
            for y in 0..layout.planes()[plane].height {
                for (x, byte) in frame.row_mut(plane, y).iter_mut().enumerate() {
                    *byte = (plane * 100 + y * 7 + x) as u8;
                }
            }
        }
        frame
    }

    #[test]
    fn padding_does_not_count_and_samples_size_and_format_do() {
        let yuv = PixelFormat::YUV420P;
        let hash = content_hash(&frame(yuv, 7, 5, 1, 0));
        assert_eq!(hash, content_hash(&frame(yuv, 7, 5, 64, 0)));
        assert_eq!(hash, content_hash(&frame(yuv, 7, 5, 64, 255)));
        let mut other = frame(yuv, 7, 5, 64, 0);
        other.row_mut(2, 2)[3] ^= 1;
        assert_ne!(hash, content_hash(&other));
        assert_ne!(
            content_hash(&frame(PixelFormat::GRAY, 6, 2, 1, 0)),
            content_hash(&frame(PixelFormat::GRAY, 4, 3, 1, 0))
        );
        assert_ne!(
            content_hash(&frame(PixelFormat::RGB24, 4, 4, 1, 0)),
            content_hash(&frame(PixelFormat::BGR24, 4, 4, 1, 0))
        );
    }
}
