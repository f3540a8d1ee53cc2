//! The head of a Radiance HDR file but for its texts (`annotations/containers/radiance.rs`): what its decoder
//! passes over, and what it does not take, other words than `RADIANCE` in the first line and other orders of
//! the pixels.
//!
//! ```text
//!   #?RADIANCE
//!   EXPOSURE=0.5       by which samples were multiplied; of several the product counts
//!   PIXASPECT=2        height over width of a pixel
//!   PRIMARIES=.64 .33 .3 .6 .15 .06 .3127 .329
//!
//!   -Y 480 +X 640      480 rows, from the top down, of 640 pixels, from the left
//! ```

use crate::annotations::FileMetadata;
use crate::annotations::exr::primaries;
use crate::frame::gcd;
use ::exr::math::Vec2;
use ::exr::meta::attribute::Chromaticities;
use image::codecs::hdr::HdrDecoder;
use image::{ColorType, ImageDecoder, ImageError, ImageResult};
use std::io::{self, BufRead, Cursor, ErrorKind, Read, Seek, SeekFrom};

/// Bytes in which the head ends.
const LONGEST_HEAD: u64 = 1 << 16;

/// What files begin with, and the word that the decoder takes; others wrote RGBE or their own name.
const MAGIC: &str = "#?";
const USUAL_MAGIC: &str = "#?RADIANCE";

/// The primaries and the white of files that state none.
const USUAL: [f32; 8] = [0.64, 0.33, 0.29, 0.6, 0.15, 0.06, 0.333, 0.333];

/// What a head says.
#[derive(Debug, Default, PartialEq)]
pub(in crate::source::images) struct Head {
    /// Width over height of a pixel; (0, 0) if it is square.
    pub(in crate::source::images) sample_aspect: (i32, i32),
    /// H.273's number of the primaries, if they have one that is not assumed anyway.
    pub(in crate::source::images) primaries: Option<u8>,
    /// What has no place elsewhere.
    pub(in crate::source::images) metadata: FileMetadata,
    /// What the decoder is given in its place, and where the pixels begin; nothing if it is no head.
    plain: Option<(Vec<u8>, u64)>,
    order: Option<Order>,
}

/// The order of the pixels in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source::images) struct Order {
    /// Rows of the file, which are columns of the picture where X comes first, and the pixels of each.
    pub(in crate::source::images) rows: u32,
    pub(in crate::source::images) columns: u32,
    x_first: bool,
    from_right: bool,
    from_bottom: bool,
}

impl Order {
    /// What a line such as `-Y 480 +X 640` says. X grows to the right, and Y upwards.
    pub(in crate::source::images) fn of(line: &str) -> Option<Order> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [first, rows, second, columns] = words[..] else {
            return None;
        };
        let x_first = matches!(first, "+X" | "-X");
        let (x, y) = if x_first { (first, second) } else { (second, first) };
        if !matches!((x, y), ("+X" | "-X", "+Y" | "-Y")) {
            return None;
        }
        Some(Order {
            rows: rows.parse().ok()?,
            columns: columns.parse().ok()?,
            x_first,
            from_right: x == "-X",
            from_bottom: y == "+Y",
        })
    }

    fn is_usual(self) -> bool {
        !self.x_first && !self.from_right && !self.from_bottom
    }

    /// Width and height of the picture.
    fn size(self) -> (u32, u32) {
        match self.x_first {
            true => (self.rows, self.columns),
            false => (self.columns, self.rows),
        }
    }

    /// Puts the pixels of a file, of `N` bytes each, where they are seen.
    fn arrange<const N: usize>(self, stored: &[u8], shown: &mut [u8]) {
        let (width, height) = (self.size().0 as usize, self.size().1 as usize);
        let shown = shown.as_chunks_mut::<N>().0;
        let rows = stored.as_chunks::<N>().0.chunks((self.columns as usize).max(1));
        for (row, pixels) in rows.enumerate() {
            for (column, pixel) in pixels.iter().enumerate() {
                let (x, y) = if self.x_first {
                    (row, column)
                } else {
                    (column, row)
                };
                let x = if self.from_right { width - 1 - x } else { x };
                let y = if self.from_bottom { height - 1 - y } else { y };
                shown[y * width + x] = *pixel;
            }
        }
    }
}

/// A picture whose pixels come in another order than in most files.
struct Arranged<D> {
    decoder: D,
    order: Order,
}

impl<D: ImageDecoder> ImageDecoder for Arranged<D> {
    fn dimensions(&self) -> (u32, u32) {
        self.order.size()
    }

    fn color_type(&self) -> ColorType {
        self.decoder.color_type()
    }

    fn read_image(self, shown: &mut [u8]) -> ImageResult<()> {
        /// Three numbers of 32 bits.
        const PIXEL: usize = 12;
        let mut stored = Vec::new();
        let room = stored.try_reserve_exact(shown.len());
        room.map_err(|_| ImageError::IoError(ErrorKind::OutOfMemory.into()))?;
        stored.resize(shown.len(), 0);
        self.decoder.read_image(&mut stored)?;
        self.order.arrange::<PIXEL>(&stored, shown);
        Ok(())
    }

    fn read_image_boxed(self: Box<Self>, shown: &mut [u8]) -> ImageResult<()> {
        (*self).read_image(shown)
    }
}

/// The decoder of the file `input`, whose head was read.
pub(in crate::source::images) fn decoder<'a>(
    mut input: impl BufRead + Seek + 'a,
    head: &Head,
) -> ImageResult<Box<dyn ImageDecoder + 'a>> {
    let (Some((plain, begin)), Some(order)) = (&head.plain, head.order) else {
        // It says what is wrong.
        return Ok(Box::new(HdrDecoder::new(input)?));
    };
    input.seek(SeekFrom::Start(*begin)).map_err(ImageError::IoError)?;
    let decoder = HdrDecoder::new(Cursor::new(plain.clone()).chain(input))?;
    Ok(match order.is_usual() {
        true => Box::new(decoder),
        false => Box::new(Arranged { decoder, order }),
    })
}

impl Head {
    /// The order of the pixels; `None` if it is no head.
    pub(in crate::source::images) fn order(&self) -> Option<Order> {
        self.order
    }
}

/// Reads the head of a file.
pub(in crate::source::images) fn read(input: impl BufRead) -> io::Result<Head> {
    let (mut head, mut unknown) = (Head::default(), Vec::new());
    let mut aspect = 1.0;
    let mut input = input.take(LONGEST_HEAD);
    let mut formats = String::new();
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        if std::mem::take(&mut is_first) && !line.starts_with(MAGIC) {
            break;
        }
        if line.trim().is_empty() {
            let mut line = Vec::new();
            input.read_until(b'\n', &mut line)?;
            head.order = Order::of(&String::from_utf8_lossy(&line));
            break;
        }
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        let numbers: Option<Vec<f32>> = value
            .split_ascii_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let numbers = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()));
        match (name, numbers.as_deref()) {
            ("PIXASPECT", Some(&[ratio])) if ratio > 0.0 => aspect *= f64::from(ratio),
            ("PRIMARIES", Some(numbers)) if near(numbers, &USUAL) || near(numbers, &[0.0; 8]) => {}
            ("PRIMARIES", Some(&[rx, ry, gx, gy, bx, by, wx, wy])) => {
                head.primaries = primaries(&Chromaticities {
                    red: Vec2(rx, ry),
                    green: Vec2(gx, gy),
                    blue: Vec2(bx, by),
                    white: Vec2(wx, wy),
                });
                if head.primaries.is_none() {
                    unknown.push(format!("{name}={value}"));
                }
            }
            ("EXPOSURE" | "GAMMA", Some([1.0])) | ("COLORCORR", Some([1.0, 1.0, 1.0])) => {}
            ("EXPOSURE" | "GAMMA" | "COLORCORR" | "PIXASPECT" | "PRIMARIES" | "VIEW", _) => {
                unknown.push(format!(
                    "{name}={}",
                    value.chars().take(MOST_WORDS).collect::<String>()
                ));
            }
            ("FORMAT", _) => formats += &format!("FORMAT={value}\n"),
            _ => {}
        }
    }
    head.plain = head.order.map(|order| {
        let size = format!("-Y {} +X {}", order.rows, order.columns);
        let plain = format!("{USUAL_MAGIC}\n{formats}\n{size}\n");
        (plain.into_bytes(), LONGEST_HEAD - input.limit())
    });
    head.sample_aspect = ratio(1.0 / aspect);
    head.metadata.unknown = unknown;
    Ok(head)
}

/// Characters of a value that are shown.
const MOST_WORDS: usize = 60;

fn near(numbers: &[f32], others: &[f32]) -> bool {
    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() < 2e-3;
    numbers.len() == others.len() && numbers.iter().zip(others).all(is_near)
}

/// A ratio in whole numbers; (0, 0) for 1 and for what is none.
fn ratio(value: f64) -> (i32, i32) {
    const PARTS: f64 = 10_000.0;
    let whole = (value * PARTS).round();
    if !(1.0..=1e9).contains(&whole) || whole == PARTS {
        return (0, 0);
    }
    let common = gcd(whole as i64, PARTS as i64) as i32;
    (whole as i32 / common, PARTS as i32 / common)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> Head {
        let file = format!("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n{lines}\n\n-Y 1 +X 1\n");
        let mut head = read(file.as_bytes()).unwrap();
        let plain = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n";
        assert_eq!(head.plain.take(), Some((plain.to_vec(), file.len() as u64)));
        assert!(head.order.take().is_some_and(Order::is_usual));
        head
    }

    #[test]
    fn what_changes_nothing_is_not_named() {
        let usual = "SOFTWARE=any\nEXPOSURE= 1.0000\nGAMMA=1\nCOLORCORR=1 1 1\nPIXASPECT=1\n\
            PRIMARIES=0.640 0.330 0.290 0.600 0.150 0.060 0.333 0.333\nPRIMARIES=0 0 0 0 0 0 0 0";
        assert_eq!(head(usual), Head::default());
    }

    #[test]
    fn what_else_is_said_is_carried_or_named() {
        let found = head(
            "EXPOSURE=2\nEXPOSURE=0.5 \nCOLORCORR=1 1 2\nGAMMA=2.2\nPIXASPECT=0.75\nPIXASPECT=2\n\
             PRIMARIES=0.708 0.292 0.170 0.797 0.131 0.046 0.3127 0.3290",
        );
        assert_eq!((found.sample_aspect, found.primaries), ((6667, 10_000), Some(9)));
        assert_eq!(
            found.metadata.unknown,
            ["EXPOSURE=2", "EXPOSURE=0.5", "COLORCORR=1 1 2", "GAMMA=2.2"]
        );
        assert_eq!(head("PIXASPECT=0.5").sample_aspect, (2, 1));
        let other = head("PRIMARIES=1 0 0 1 0 0 .3 .3").metadata.unknown;
        assert_eq!(other, ["PRIMARIES=1 0 0 1 0 0 .3 .3"]);
    }
}
