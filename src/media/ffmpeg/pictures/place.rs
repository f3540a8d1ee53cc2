//! Where a component lies in the rows of FFmpeg's pictures.

/// The place of a component in a picture's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) plane: usize,
    /// Bytes from one pixel to the next, and before the first.
    pub(super) step: usize,
    pub(super) at: usize,
    pub(super) depth: u32,
    /// Words of 16 bits have their high byte first.
    pub(super) big_endian: bool,
}

impl Place {
    fn bytes(&self) -> usize {
        if self.depth > 8 { 2 } else { 1 }
    }

    /// Bytes of a row of `width` pixels.
    pub(super) fn row(&self, width: usize) -> usize {
        width.saturating_sub(1) * self.step + self.at + self.bytes()
    }

    pub(super) fn read(&self, pixel: &[u8]) -> usize {
        match pixel[self.at..] {
            [high, low, ..] if self.depth > 8 && self.big_endian => u16::from_be_bytes([high, low]).into(),
            [low, high, ..] if self.depth > 8 => u16::from_le_bytes([low, high]).into(),
            [byte, ..] => byte.into(),
            [] => 0,
        }
    }

    pub(super) fn write(&self, pixel: &mut [u8], word: u16) {
        let place = &mut pixel[self.at..];
        match (self.depth > 8, self.big_endian) {
            (false, _) => place[0] = word as u8,
            (true, true) => place[..2].copy_from_slice(&word.to_be_bytes()),
            (true, false) => place[..2].copy_from_slice(&word.to_le_bytes()),
        }
    }
}
