//! GIF frames. FFmpeg's own encoder knows no transparency behind opaque frames and takes the palette as it
//! comes; here each frame gets the palette that suits it, and decoded frames are exactly those that were put
//! in.
//!
//! A frame is drawn over the one before, within the rectangle in which they differ, and pixels that stay are
//! left out. Where a pixel becomes transparent that was not, the frame before is cleared away; so a frame is
//! written when the next one is known.

use crate::media::convert::{Colour3, Indexed, MAX_COLOURS, indexed};
use weezl::{BitOrder, encode::Encoder as Lzw};

/// What a packet's graphic control block asks for when its time is up.
const KEEP: u8 = 1;
const CLEAR: u8 = 2;

/// A pixel of the canvas: transparent, or a colour.
type Pixel = Option<Colour3>;

/// One frame's bytes, as FFmpeg's GIF muxer takes them, and the time that it was given.
pub(in crate::sink::video) struct GifPacket {
    pub(in crate::sink::video) data: Vec<u8>,
    pub(in crate::sink::video) pts: i64,
    pub(in crate::sink::video) is_first: bool,
}

/// Frames of a GIF file that wait for their duration.
pub(in crate::sink::video) struct GifEncoder {
    width: usize,
    height: usize,
    aspect: u8,
    /// The palette of the first frame, which is that of the whole file.
    global: Option<Palette>,
    /// What is there before the waiting frame is drawn.
    canvas: Vec<Pixel>,
    waiting: Option<Waiting>,
    frames: u64,
    inexact: u64,
}

struct Waiting {
    pixels: Vec<Pixel>,
    indexed: Indexed,
    rgba: Vec<u8>,
    pts: i64,
}

/// Colours, and whether the first of them stands for transparency.
#[derive(PartialEq, Eq)]
struct Palette {
    colours: Vec<Colour3>,
    transparent: bool,
}

/// A part of the picture: first column and row, and those behind the last.
#[derive(Clone, Copy)]
struct Area {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

impl GifEncoder {
    /// An encoder for frames of a size that GIF can say.
    pub(in crate::sink::video) fn new(width: usize, height: usize, (num, den): (i32, i32)) -> GifEncoder {
        // The aspect is stated in 64ths, from 1/4 to 4.
        let aspect = if num > 0 && den > 0 && num != den {
            let value = i64::from(num) * 64 / i64::from(den) - 15;
            u8::try_from(value).unwrap_or(0)
        } else {
            0
        };
        GifEncoder {
            width,
            height,
            aspect,
            global: None,
            canvas: vec![None; width * height],
            waiting: None,
            frames: 0,
            inexact: 0,
        }
    }

    /// How many frames had more colours than a palette.
    pub(in crate::sink::video) fn inexact(&self) -> u64 {
        self.inexact
    }

    /// Takes a frame of RGBA pixels; gives the one before.
    pub(in crate::sink::video) fn push(&mut self, rgba: Vec<u8>, pts: i64) -> Option<GifPacket> {
        let indexed = indexed(&rgba, self.width, false);
        self.inexact += u64::from(!indexed.exact);
        let pixels = pixels(&indexed);
        let next = Waiting {
            pixels,
            indexed,
            rgba,
            pts,
        };
        let before = self.waiting.take();
        let packet = before.map(|before| self.write(before, Some(&next.pixels)));
        self.waiting = Some(next);
        packet
    }

    /// Gives the last frame.
    pub(in crate::sink::video) fn finish(&mut self) -> Option<GifPacket> {
        self.waiting.take().map(|last| self.write(last, None))
    }

    /// Writes a frame, so that `next` can be drawn after it.
    fn write(&mut self, mut frame: Waiting, next: Option<&Vec<Pixel>>) -> GifPacket {
        let clears = next.is_some_and(|next| {
            let pairs = frame.pixels.iter().zip(next);
            pairs
                .into_iter()
                .any(|(now, next)| now.is_some() && next.is_none())
        });
        if clears && !frame.indexed.transparent {
            // Players clear to the transparent colour of the frame that goes, so it must have one.
            let was_exact = frame.indexed.exact;
            frame.indexed = indexed(&frame.rgba, self.width, true);
            frame.pixels = pixels(&frame.indexed);
            self.inexact += u64::from(was_exact && !frame.indexed.exact);
        }
        let area = self.area(&frame.pixels, clears);
        let mut data = Vec::new();
        let is_first = self.frames == 0;
        if is_first {
            let colours = std::mem::take(&mut frame.indexed.palette);
            self.header(&mut data, &colours);
            self.global = Some(Palette {
                colours,
                transparent: frame.indexed.transparent,
            });
        }
        let shared = self.in_global(&frame.indexed, is_first, clears);
        let (indices, transparent, colours) = match (&shared, &self.global) {
            (Some(indices), Some(global)) => (indices, global.transparent, &global.colours),
            _ => (
                &frame.indexed.indices,
                frame.indexed.transparent,
                &frame.indexed.palette,
            ),
        };
        let mut drawn = Vec::with_capacity((area.right - area.left) * (area.bottom - area.top));
        for y in area.top..area.bottom {
            let row = y * self.width;
            drawn.extend((row + area.left..row + area.right).map(|at| {
                let stays = transparent && frame.pixels[at] == self.canvas[at];
                if stays { 0 } else { indices[at] }
            }));
        }
        let disposal = if clears { CLEAR } else { KEEP };
        data.extend([0x21, 0xf9, 4, disposal << 2 | u8::from(transparent), 0, 0, 0, 0]);
        let bits = table_bits(colours.len());
        data.push(0x2c);
        for v in [
            area.left,
            area.top,
            area.right - area.left,
            area.bottom - area.top,
        ] {
            data.extend((v as u16).to_le_bytes());
        }
        if shared.is_some() {
            data.push(0);
        } else {
            data.push(0x80 | (bits - 1));
            table(&mut data, colours);
        }
        compressed(&mut data, &drawn, bits.max(2));
        if clears {
            self.canvas.fill(None);
        } else {
            self.canvas = frame.pixels;
        }
        self.frames += 1;
        GifPacket {
            data,
            pts: frame.pts,
            is_first,
        }
    }

    /// The part to draw: what differs from the canvas, and all that must be cleared afterwards. The first
    /// frame fills the canvas.
    fn area(&self, pixels: &[Pixel], clears: bool) -> Area {
        let mut area: Option<Area> = None;
        for (at, (pixel, there)) in pixels.iter().zip(&self.canvas).enumerate() {
            if pixel != there || (clears && pixel.is_some()) {
                let (x, y) = (at % self.width, at / self.width);
                area = Some(match area {
                    None => Area {
                        left: x,
                        top: y,
                        right: x + 1,
                        bottom: y + 1,
                    },
                    Some(a) => Area {
                        left: a.left.min(x),
                        top: a.top.min(y),
                        right: a.right.max(x + 1),
                        bottom: a.bottom.max(y + 1),
                    },
                });
            }
        }
        if self.frames == 0 {
            return Area {
                left: 0,
                top: 0,
                right: self.width,
                bottom: self.height,
            };
        }
        // A frame that changes nothing still needs a pixel.
        area.unwrap_or(Area {
            left: 0,
            top: 0,
            right: 1,
            bottom: 1,
        })
    }

    /// The frame's indices in the file's palette, if that has all its colours.
    fn in_global(&self, frame: &Indexed, is_first: bool, clears: bool) -> Option<Vec<u8>> {
        if is_first {
            return Some(frame.indices.clone());
        }
        let global = self.global.as_ref()?;
        let needs_hole = clears || (frame.transparent && frame.indices.contains(&0));
        if !frame.exact || (needs_hole && !global.transparent) {
            return None;
        }
        let first = usize::from(global.transparent);
        let find = |colour: &Colour3| {
            let place = global.colours[first..].iter().position(|c| c == colour)?;
            u8::try_from(place + first).ok()
        };
        let skipped = usize::from(frame.transparent);
        let mut map = vec![0; skipped];
        for colour in &frame.palette[skipped..] {
            map.push(find(colour)?);
        }
        Some(frame.indices.iter().map(|&i| map[usize::from(i)]).collect())
    }

    fn header(&self, data: &mut Vec<u8>, colours: &[Colour3]) {
        data.extend(b"GIF89a");
        data.extend((self.width as u16).to_le_bytes());
        data.extend((self.height as u16).to_le_bytes());
        // A palette of 8-bit colours, whose first is the background.
        data.extend([0xf0 | (table_bits(colours.len()) - 1), 0, self.aspect]);
        table(data, colours);
    }
}

fn pixels(indexed: &Indexed) -> Vec<Pixel> {
    let pixel = |&index: &u8| match (index, indexed.transparent) {
        (0, true) => None,
        _ => Some(indexed.palette[usize::from(index)]),
    };
    indexed.indices.iter().map(pixel).collect()
}

/// log2 of the size of a table with room for `colours` colours.
fn table_bits(colours: usize) -> u8 {
    colours.clamp(2, MAX_COLOURS).next_power_of_two().trailing_zeros() as u8
}

fn table(data: &mut Vec<u8>, colours: &[Colour3]) {
    let room = 1 << table_bits(colours.len());
    data.extend(colours.iter().flatten());
    data.extend(std::iter::repeat_n(0, 3 * (room - colours.len())));
}

/// The image data: LZW codes in blocks of at most 255 bytes.
fn compressed(data: &mut Vec<u8>, indices: &[u8], bits: u8) {
    data.push(bits);
    let codes = Lzw::new(BitOrder::Lsb, bits)
        .encode(indices)
        .expect("every index is below the size of its table");
    for block in codes.chunks(255) {
        data.push(block.len() as u8);
        data.extend(block);
    }
    data.push(0);
}
