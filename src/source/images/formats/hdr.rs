//! What the head of a Radiance HDR file says beside the size, which its decoder passes over.
//!
//! ```text
//!   #?RADIANCE
//!   EXPOSURE=0.5       by which samples were multiplied; of several the product counts
//!   PIXASPECT=2        height over width of a pixel
//!   PRIMARIES=.64 .33 .3 .6 .15 .06 .3127 .329
//!
//!   -Y 480 +X 640
//! ```

use crate::annotations::FileMetadata;
use crate::annotations::exr::primaries;
use crate::frame::gcd;
use ::exr::math::Vec2;
use ::exr::meta::attribute::Chromaticities;
use std::io::{self, BufRead};

/// Bytes in which the head ends.
const LONGEST_HEAD: u64 = 1 << 16;

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
}

/// Reads the head of a file.
pub(in crate::source::images) fn read(input: impl BufRead) -> io::Result<Head> {
    let (mut head, mut unknown) = (Head::default(), Vec::new());
    let mut aspect = 1.0;
    for line in input.take(LONGEST_HEAD).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
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
            ("PRIMARIES", Some(numbers)) if near(numbers, &USUAL) => {}
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
            _ => {}
        }
    }
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
        read(format!("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n{lines}\n\n-Y 1 +X 1\n").as_bytes()).unwrap()
    }

    #[test]
    fn what_changes_nothing_is_not_named() {
        let usual = "SOFTWARE=any\nEXPOSURE= 1.0000\nGAMMA=1\nCOLORCORR=1 1 1\nPIXASPECT=1\n\
            PRIMARIES=0.640 0.330 0.290 0.600 0.150 0.060 0.333 0.333";
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
