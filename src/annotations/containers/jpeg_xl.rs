//! The header of a JPEG XL codestream, which files hold bare or in [`boxes`](super::boxes).
//!
//! ```text
//!  ff 0a | size | all as usual? | else: more? orientation, size to show, preview, animation
//!                               |       floating point?  bits of a sample, of its exponent | ..
//! ```
//!
//! Bits are read from the lowest of each byte on.

/// A header that was read up to the orientation.
#[derive(Debug)]
pub struct CodestreamHeader<'a> {
    rest: Bits<'a>,
    is_usual: bool,
    has_more: bool,
    orientation: u8,
}

/// What a header says of frames and samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Frames may follow the first.
    pub is_animated: bool,
    /// Samples are floating-point numbers.
    pub is_float: bool,
    /// Bits of a sample, 1 to 64.
    pub bits: u32,
}

impl<'a> CodestreamHeader<'a> {
    /// Reads what `codestream` begins with; `None` if that is no header, or a cut one.
    #[must_use]
    pub fn begin(codestream: &'a [u8]) -> Option<CodestreamHeader<'a>> {
        let mut rest = Bits {
            bytes: codestream.strip_prefix(b"\xff\x0a")?,
            at: 0,
        };
        rest.pass_size()?;
        let is_usual = rest.flag()?;
        let has_more = !is_usual && rest.flag()?;
        let orientation = if has_more { rest.take(3)? as u8 + 1 } else { 1 };
        Some(CodestreamHeader {
            rest,
            is_usual,
            has_more,
            orientation,
        })
    }

    /// How the picture is turned, 1 to 8 as in Exif.
    #[must_use]
    pub fn orientation(&self) -> u8 {
        self.orientation
    }

    /// Reads on to what the samples are; `None` if the header is cut.
    #[must_use]
    pub fn contents(self) -> Option<Contents> {
        let mut contents = Contents {
            is_animated: false,
            is_float: false,
            bits: 8,
        };
        if self.is_usual {
            return Some(contents);
        }
        let mut rest = self.rest;
        if self.has_more {
            if rest.flag()? {
                rest.pass_size()?;
            }
            if rest.flag()? {
                rest.pass_preview()?;
            }
            contents.is_animated = rest.flag()?;
            if contents.is_animated {
                rest.pass_animation()?;
            }
        }
        contents.is_float = rest.flag()?;
        contents.bits = match contents.is_float {
            true => rest.chosen([(0, 32), (0, 16), (0, 24), (6, 1)])?,
            false => rest.chosen([(0, 8), (0, 10), (0, 12), (6, 1)])?,
        };
        Some(contents)
    }
}

/// Bits of a codestream.
#[derive(Debug)]
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The number in the next `count` bits, at most 32.
    fn take(&mut self, count: usize) -> Option<u32> {
        let mut number = 0;
        for place in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            number |= u32::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Some(number)
    }

    fn flag(&mut self) -> Option<bool> {
        self.take(1).map(|bit| bit == 1)
    }

    /// Two bits choose a number: so many bits, and what is added to them.
    fn chosen(&mut self, ways: [(usize, u32); 4]) -> Option<u32> {
        let (count, more) = ways[self.take(2)? as usize];
        Some(self.take(count)?.wrapping_add(more))
    }

    /// Passes a height, a ratio, and the width that goes with none.
    fn pass_sides(&mut self, side: impl Fn(&mut Self) -> Option<u32>) -> Option<()> {
        side(self)?;
        if self.take(3)? == 0 {
            side(self)?;
        }
        Some(())
    }

    fn pass_size(&mut self) -> Option<()> {
        match self.flag()? {
            true => self.pass_sides(|bits| bits.take(5)),
            false => self.pass_sides(|bits| bits.chosen([(9, 1), (13, 1), (18, 1), (30, 1)])),
        }
    }

    fn pass_preview(&mut self) -> Option<()> {
        match self.flag()? {
            true => self.pass_sides(|bits| bits.chosen([(0, 16), (0, 32), (5, 1), (9, 33)])),
            false => self.pass_sides(|bits| bits.chosen([(6, 1), (8, 65), (10, 321), (12, 1345)])),
        }
    }

    /// Ticks a second, loops, and whether frames have time codes.
    fn pass_animation(&mut self) -> Option<()> {
        self.chosen([(0, 100), (0, 1000), (10, 1), (30, 1)])?;
        self.chosen([(0, 1), (0, 1001), (8, 1), (10, 1)])?;
        self.chosen([(0, 0), (3, 0), (16, 0), (32, 0)])?;
        self.flag()?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_codestream_states_the_orientation() {
        let orientation = |codestream: &[u8]| Some(CodestreamHeader::begin(codestream)?.orientation());
        // Fields and their bits, the lowest first.
        let header = |fields: &[(u32, u32)]| {
            let bits: Vec<u32> = fields
                .iter()
                .flat_map(|&(value, bits)| (0..bits).map(move |bit| value >> bit & 1))
                .collect();
            let bytes = bits.chunks(8).map(|byte| {
                let set = byte.iter().enumerate().map(|(at, bit)| bit << at);
                set.sum::<u32>() as u8
            });
            [0xff, 0x0a].into_iter().chain(bytes).collect::<Vec<u8>>()
        };
        // 40x24 in units of 8; then 4000 rows in 13 bits and the ratio 1:1; then both in 9 bits.
        let small = [(1, 1), (2, 5), (0, 3), (4, 5)];
        let square = [(0, 1), (1, 2), (3999, 13), (1, 3)];
        let both = [(0, 1), (0, 2), (299, 9), (0, 3), (0, 2), (511, 9)];
        for size in [&small[..], &square, &both] {
            assert_eq!(orientation(&header(&[size, &[(1, 1)]].concat())), Some(1));
            let plain = [size, &[(0, 1), (0, 1), (7, 3)]].concat();
            assert_eq!(orientation(&header(&plain)), Some(1));
            let turned = [size, &[(0, 1), (1, 1), (5, 3)]].concat();
            assert_eq!(orientation(&header(&turned)), Some(6));
        }
        assert_eq!(orientation(b"\xff\x0a\0"), None);
    }
}
