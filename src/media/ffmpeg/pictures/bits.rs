//! Where the bits of a component lie in pixels that are packed into bytes or words, such as rgb565le.

/// The bits of a component in the rows of a packed format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitsPlace {
    /// From one pixel to the next, and before the first: bytes, or bits of a format that has no whole bytes.
    pub(super) step: usize,
    pub(super) at: usize,
    /// Bits of the byte or word below the component's.
    pub(super) shift: u32,
    /// Bits of the component, at most 16.
    pub(crate) depth: u32,
    pub(super) big_endian: bool,
    /// Pixels begin in the midst of bytes, at the upper bits.
    pub(super) is_bitstream: bool,
}

impl BitsPlace {
    /// False for bits that would lie in several bytes of a format that has no whole bytes a pixel.
    pub(super) fn is_sound(&self) -> bool {
        let in_byte = || (1..=8).contains(&self.step) && 8 % self.step == 0;
        !self.is_bitstream || in_byte() && self.at + self.depth as usize <= self.step
    }

    /// Bytes of a word with the component.
    fn bytes(&self) -> usize {
        match self.is_bitstream {
            true => 1,
            false => (self.shift + self.depth).div_ceil(8).next_power_of_two() as usize,
        }
    }

    /// Bytes of a row of `width` pixels, up to the component of the last one.
    pub(crate) fn row(&self, width: usize) -> usize {
        let before = width.saturating_sub(1) * self.step + self.at;
        match self.is_bitstream {
            true => (before + self.depth as usize).div_ceil(8),
            false => before + self.bytes(),
        }
    }

    /// The component of each pixel of `row`, which has [`BitsPlace::row`] bytes.
    pub(crate) fn read(&self, row: &[u8], line: &mut [u16]) {
        for (x, sample) in line.iter_mut().enumerate() {
            let at = x * self.step + self.at;
            let (at, shift) = match self.is_bitstream {
                true => (at / 8, 8 - self.depth - (at % 8) as u32),
                false => (at, self.shift),
            };
            let bytes = &row[at..][..self.bytes()];
            let add = |word: u32, &byte: &u8| word << 8 | u32::from(byte);
            let word = match self.big_endian {
                true => bytes.iter().fold(0, add),
                false => bytes.iter().rev().fold(0, add),
            };
            *sample = (word >> shift & ((1 << self.depth) - 1)) as u16;
        }
    }
}
