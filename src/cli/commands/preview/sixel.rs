//! Pictures as sixels, DEC's pictures of terminals: at most 256 colours, six rows to a line of characters.
//!
//! ```text
//!  ESC P 0;1;0 q " 1;1;WIDTH;HEIGHT   #0;2;R;G;B ...   #0 characters $ #1 characters -   ...   ESC \
//!                  shape of the pixels  colours, in %    six rows, a line for each colour
//! ```

use framepipe::convert::indexed;
use image::imageops::thumbnail;
use image::{ImageFormat, load_from_memory_with_format};
use sixel_image::{Pixel, SixelColor, SixelImage};

/// Why there are no sixels.
#[derive(Debug, thiserror::Error)]
pub(super) enum SixelError {
    /// The PNG file cannot be read.
    #[error("reading the preview's own PNG: {0}")]
    Png(#[from] image::ImageError),
    /// The library refuses the head of a picture.
    #[error("the picture cannot be written as sixels: {0}")]
    Head(&'static str),
}

/// The picture of a PNG file in sixels, in at most `room` pixels across and down. Nothing is drawn where it
/// is transparent.
pub(super) fn sequence(png: &[u8], room: (usize, usize)) -> Result<String, SixelError> {
    let whole = load_from_memory_with_format(png, ImageFormat::Png)?.to_rgba8();
    let size = (whole.width() as usize, whole.height() as usize);
    let (width, height) = fitting(size, room);
    let picture = if (width, height) == size {
        whole
    } else {
        // Each pixel is the mean of those that it stands for.
        thumbnail(&whole, width as u32, height as u32)
    };
    let picture = indexed(picture.as_raw(), width, false);
    let head = format!("\x1bP0;1;0q\"1;1;{width};{height}\x1b\\");
    let mut sixels = SixelImage::new(head.as_bytes()).map_err(SixelError::Head)?;
    let percent = |sample: u8| ((u32::from(sample) * 100 + 127) / 255) as u8;
    let colours = picture.palette.iter().map(|colour| colour.map(percent));
    sixels.color_registers = (0..)
        .zip(colours.map(|[r, g, b]| SixelColor::Rgb(r, g, b)))
        .collect();
    let pixel = |&index: &u8| Pixel {
        on: index > 0 || !picture.transparent,
        color: index.into(),
    };
    let rows = picture.indices.chunks(width.max(1));
    sixels.pixels = rows.map(|row| row.iter().map(pixel).collect()).collect();
    Ok(sixels.serialize() + "\n")
}

/// The largest size of a picture's shape that fits into `room` and is not larger than the picture.
fn fitting((width, height): (usize, usize), room: (usize, usize)) -> (usize, usize) {
    let (across, down) = (room.0.max(1), room.1.max(1));
    if width <= across && height <= down {
        return (width, height);
    }
    if width * down >= height * across {
        (across, (height * across / width.max(1)).max(1))
    } else {
        ((width * down / height.max(1)).max(1), down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{DynamicImage, Rgb, RgbImage, Rgba, RgbaImage};
    use std::io::Cursor;

    fn png(picture: impl Into<DynamicImage>) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        picture.into().write_to(&mut file, ImageFormat::Png).unwrap();
        file.into_inner()
    }

    /// The picture that a terminal draws, by the commands of DEC's manual; pixels that nothing is drawn on
    /// are no pixels.
    fn drawn(sequence: &str) -> (usize, usize, Vec<Option<[u8; 3]>>) {
        let text = sequence.strip_suffix("\x1b\\\n").unwrap();
        let (parameters, text) = text.strip_prefix("\x1bP").unwrap().split_once('q').unwrap();
        assert!(parameters.chars().all(|c| c.is_ascii_digit() || c == ';'));
        let bytes = text.as_bytes();
        let mut at = 0;
        let numbers = |at: &mut usize| -> Vec<usize> {
            let begin = *at;
            while bytes.get(*at).is_some_and(|b| b.is_ascii_digit() || *b == b';') {
                *at += 1;
            }
            let text = std::str::from_utf8(&bytes[begin..*at]).unwrap();
            text.split(';').map(|number| number.parse().unwrap()).collect()
        };
        let (mut width, mut height, mut pixels) = (0, 0, Vec::new());
        let mut colours = vec![None; 256];
        let (mut x, mut y, mut colour, mut times) = (0, 0, 0, 1);
        while at < bytes.len() {
            let command = bytes[at];
            at += 1;
            match command {
                b'"' => {
                    let shape = numbers(&mut at);
                    assert_eq!(shape[..2], [1, 1]);
                    (width, height) = (shape[2], shape[3]);
                    pixels = vec![None; width * height];
                }
                b'#' => {
                    let given = numbers(&mut at);
                    colour = given[0];
                    if let [_, kind, percent @ ..] = &given[..] {
                        assert_eq!((*kind, percent.len()), (2, 3));
                        let sample = |k: usize| ((percent[k] * 255 + 50) / 100) as u8;
                        colours[colour] = Some([sample(0), sample(1), sample(2)]);
                    }
                }
                b'!' => times = numbers(&mut at)[0],
                b'$' => x = 0,
                b'-' => (x, y) = (0, y + 6),
                b'?'..=b'~' => {
                    for _ in 0..std::mem::replace(&mut times, 1) {
                        for row in (0..6).filter(|row| (command - b'?') >> row & 1 == 1) {
                            assert!(x < width && y + row < height, "outside of the picture");
                            pixels[(y + row) * width + x] = Some(colours[colour].unwrap());
                        }
                        x += 1;
                    }
                }
                other => panic!("{:?}", char::from(other)),
            }
        }
        (width, height, pixels)
    }

    fn largest_difference(picture: &RgbImage, pixels: &[Option<[u8; 3]>]) -> u8 {
        let pairs = picture.pixels().zip(pixels);
        let of = |(pixel, drawn): (&Rgb<u8>, &Option<[u8; 3]>)| {
            let drawn = drawn.expect("every pixel is drawn");
            (0..3).map(|k| pixel.0[k].abs_diff(drawn[k])).max().unwrap()
        };
        pairs.map(of).max().unwrap()
    }

    #[test]
    fn few_colours_are_drawn_as_they_are_but_for_percents() {
        for (width, height) in [(1, 1), (1, 7), (2, 6), (5, 5), (64, 13), (33, 48)] {
            let picture = RgbImage::from_fn(width, height, |x, y| {
                Rgb([(x % 3 * 100) as u8, (y % 4 * 60) as u8, ((x + y) % 2 * 255) as u8])
            });
            let text = sequence(&png(picture.clone()), (640, 480)).unwrap();
            let (across, down, pixels) = drawn(&text);
            assert_eq!((across, down), (width as usize, height as usize));
            // A percent is two and a half levels.
            let difference = largest_difference(&picture, &pixels);
            assert!(difference <= 2, "{width}x{height}: {difference}");
        }
    }

    #[test]
    fn many_colours_are_near() {
        let picture = RgbImage::from_fn(160, 90, |x, y| Rgb([x as u8, (y * 2) as u8, 128]));
        let (width, height, pixels) = drawn(&sequence(&png(picture.clone()), (640, 480)).unwrap());
        assert_eq!((width, height), (160, 90));
        // Errors are diffused, so that means of 10 by 10 pixels are nearer than pixels.
        for (left, top) in (0..9).flat_map(|y| (0..16).map(move |x| (10 * x, 10 * y))) {
            let places = || (0..100).map(move |n| (left + n % 10, top + n / 10));
            for k in 0..3 {
                let before: u32 = places()
                    .map(|(x, y)| u32::from(picture.get_pixel(x as u32, y as u32).0[k]))
                    .sum();
                let after: u32 = places()
                    .map(|(x, y)| u32::from(pixels[y * width + x].unwrap()[k]))
                    .sum();
                assert!(before.abs_diff(after) < 600, "{left} {top} {k}: {before} {after}");
            }
        }
    }

    #[test]
    fn transparent_parts_are_left_out_and_large_pictures_are_shrunk() {
        let picture = RgbaImage::from_fn(40, 20, |x, _| Rgba([255, 255, 255, if x < 20 { 0 } else { 255 }]));
        let (width, height, pixels) = drawn(&sequence(&png(picture), (20, 400)).unwrap());
        assert_eq!((width, height), (20, 10));
        for (place, pixel) in pixels.into_iter().enumerate() {
            assert_eq!(pixel, (place % 20 >= 10).then_some([255; 3]), "{place}");
        }
        for (size, room, expected) in [
            ((1920, 1080), (640, 400), (640, 360)),
            ((1080, 1920), (640, 400), (225, 400)),
            ((640, 400), (640, 400), (640, 400)),
            ((4000, 1), (100, 100), (100, 1)),
            ((1, 4000), (100, 100), (1, 100)),
            ((8, 8), (0, 0), (1, 1)),
        ] {
            assert_eq!(fitting(size, room), expected);
        }
    }
}
