//! Small words drawn into a frame: white letters of dots with a black outline, legible on any picture.
//!
//! ```text
//!   . . . . . . .         a letter has five by seven dots, the outline is one dot wide,
//!   . # . . . . .         and a dot is a square of one or more pixels
//!   . # . # # . .
//!   . # # . . # .
//!   . # . . . # .
//!   . # # # # . .
//! ```

use super::paint::Tone;
use crate::frame::Frame;

/// Rows of a picture for each pixel of a dot: a word of nine dots takes a twenty-fifth of the height.
const ROWS_A_PIXEL: usize = 240;

/// Dots of a letter, across and down, and from one letter to the next.
const ACROSS: usize = 5;
const DOWN: usize = 7;
const STEP: usize = 6;

/// A letter's dots row by row, the leftmost in bit 4; `None` for what is not drawn.
fn letter(letter: char) -> Option<[u8; DOWN]> {
    Some(match letter {
        'a' => [0b00000, 0b00000, 0b01110, 0b00001, 0b01111, 0b10001, 0b01111],
        'b' => [0b10000, 0b10000, 0b10110, 0b11001, 0b10001, 0b10001, 0b11110],
        'e' => [0b00000, 0b00000, 0b01110, 0b10001, 0b11111, 0b10000, 0b01110],
        'f' => [0b00110, 0b01001, 0b01000, 0b11100, 0b01000, 0b01000, 0b01000],
        'o' => [0b00000, 0b00000, 0b01110, 0b10001, 0b10001, 0b10001, 0b01110],
        'r' => [0b00000, 0b00000, 0b10110, 0b11001, 0b10000, 0b10000, 0b10000],
        't' => [0b01000, 0b01000, 0b11100, 0b01000, 0b01000, 0b01001, 0b00110],
        _ => return None,
    })
}

/// A word as dots, with its outline.
struct Word {
    rows: Vec<Vec<Option<Tone>>>,
}

impl Word {
    fn new(text: &str) -> Word {
        let letters: Vec<[u8; DOWN]> = text.chars().filter_map(letter).collect();
        let width = (letters.len() * STEP + 1).max(2);
        let is_lit = |x: usize, y: usize| {
            let inside = |x: usize| (x % STEP < ACROSS).then_some(x % STEP);
            let letter = letters.get(x / STEP);
            letter
                .zip(inside(x))
                .is_some_and(|(letter, x)| y < DOWN && letter[y] >> (ACROSS - 1 - x) & 1 == 1)
        };
        // Dot (0, 0) is the outline's corner, one before the letter's.
        let tone = |x: usize, y: usize| {
            let near = |at: usize| at.saturating_sub(2)..=at;
            let mut around = near(y).flat_map(|y| near(x).map(move |x| (x, y)));
            match (
                x > 0 && y > 0 && is_lit(x - 1, y - 1),
                around.any(|(x, y)| is_lit(x, y)),
            ) {
                (true, _) => Some(Tone::White),
                (false, true) => Some(Tone::Black),
                (false, false) => None,
            }
        };
        let rows = (0..DOWN + 2).map(|y| (0..width).map(|x| tone(x, y)).collect());
        Word { rows: rows.collect() }
    }

    fn width(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }
}

/// Draws a word into the upper corner of a part of a frame, `left` to `right`, at its right end if
/// `is_at_right`. It is left out where the part is too small for it. Letters are those of "before" and
/// "after".
pub fn label(frame: &mut Frame, text: &str, (left, right): (usize, usize), is_at_right: bool) {
    let word = Word::new(text);
    let height = frame.layout().height();
    // Two dots of margin on each side.
    let (across, down) = (word.width() + 4, word.rows.len() + 4);
    let fits = |dot: &usize| across * dot <= right.saturating_sub(left) && down * dot <= height;
    let Some(dot) = (1..=height.div_ceil(ROWS_A_PIXEL)).rev().find(fits) else {
        return;
    };
    let x = if is_at_right {
        right - (word.width() + 2) * dot
    } else {
        left + 2 * dot
    };
    draw(frame, &word, (x, 2 * dot), dot);
}

/// Draws a word at pixel (`x`, `y`), each dot `dot` pixels wide and high. Chroma that any dot covers becomes
/// neutral.
fn draw(frame: &mut Frame, word: &Word, (left, top): (usize, usize), dot: usize) {
    let (format, colour) = (frame.format(), frame.metadata.colour);
    let tone = |x: usize, y: usize| -> Option<Tone> {
        let at = |pixel: usize, begin: usize| Some(pixel.checked_sub(begin)? / dot);
        *word.rows.get(at(y, top)?)?.get(at(x, left)?)?
    };
    let (right, bottom) = (left + word.width() * dot, top + word.rows.len() * dot);
    for (index, plane) in format.planes().iter().enumerate() {
        let [white, black] = [Tone::White, Tone::Black].map(|tone| tone.pixel(format, &colour, plane));
        let (block_x, block_y) = (1 << plane.log2_x, 1 << plane.log2_y);
        for y in top >> plane.log2_y..bottom.div_ceil(block_y) {
            let row = frame.row_mut(index, y);
            for x in left >> plane.log2_x..right.div_ceil(block_x) {
                let mut block = (0..block_y).flat_map(|j| (0..block_x).map(move |i| (i, j)));
                let pixel = match block.find_map(|(i, j)| tone(x * block_x + i, y * block_y + j)) {
                    Some(Tone::White) => &white,
                    Some(Tone::Black) => &black,
                    None => continue,
                };
                row[x * pixel.len()..(x + 1) * pixel.len()].copy_from_slice(pixel);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Allocator, Buffer, Layout, Pageable, PixelFormat};

    fn blank(name: &str, width: usize, height: usize) -> Frame {
        let layout = Layout::new(PixelFormat::from_name(name).unwrap(), width, height, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Pageable.allocate(0).unwrap())).unwrap();
        frame.bytes_mut().fill(100);
        frame
    }

    #[test]
    fn a_word_is_white_within_black() {
        let mut frame = blank("gray", 60, 20);
        label(&mut frame, "f", (0, 60), false);
        let rows: Vec<String> = (1..12)
            .map(|y| {
                let row = &frame.row(0, y)[1..10];
                row.iter()
                    .map(|&sample| match sample {
                        255 => '#',
                        0 => 'o',
                        _ => '.',
                    })
                    .collect()
            })
            .collect();
        let expected = [
            ".........",
            "...oooo..",
            "..oo##oo.",
            "..o#oo#o.",
            ".oo#oooo.",
            ".o###o...",
            ".oo#oo...",
            "..o#o....",
            "..o#o....",
            "..ooo....",
            ".........",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn words_grow_with_the_picture_and_stay_in_their_part() {
        let extent = |width: usize, height: usize, part: (usize, usize)| {
            let mut frame = blank("gray", width, height);
            label(&mut frame, "after", part, true);
            let inked = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
            let inked: Vec<_> = inked.filter(|&(x, y)| frame.sample(0, x, y, 0) != 100).collect();
            let columns = inked.iter().map(|&(x, _)| x);
            let (first, last) = (columns.clone().min()?, columns.max()?);
            let last_row = inked.iter().map(|&(_, y)| y).max()?;
            Some((first, last, last_row))
        };
        // Five letters of six dots, and the outline.
        assert_eq!(extent(100, 50, (50, 100)), Some((67, 97, 10)));
        assert_eq!(extent(1000, 480, (500, 1000)), Some((934, 995, 21)));
        // Room for dots of one pixel only, and room for no dots.
        assert_eq!(extent(100, 480, (50, 100)), Some((67, 97, 10)));
        assert_eq!(extent(60, 50, (30, 60)), None);
        assert_eq!(extent(100, 12, (50, 100)), None);
    }

    #[test]
    fn chroma_is_neutral_where_a_word_is() {
        let mut frame = blank("yuv420p", 60, 20);
        label(&mut frame, "e", (0, 60), false);
        for (x, y) in (0..20).flat_map(|y| (0..60).map(move |x| (x, y))) {
            if frame.sample(0, x, y, 0) != 100 {
                assert_eq!(frame.sample(1, x / 2, y / 2, 0), 128);
            }
        }
        assert_eq!(frame.sample(1, 29, 9, 0), 100);
    }
}
