//! Mattes: pictures whose samples are the weight of the filtered picture in each pixel.

use super::rectangle::Area;
use super::{Pairing, RegionError};
use crate::engine::wrappers::luma::{luma_rows, rows_at, take};
use crate::frame::{Channel, ColourModel, Frame, Metadata, Range, RangeChange, Remarks, Turn};
use std::error::Error;
use std::sync::Arc;
use std::{iter, ops};

/// A source of mattes: one for each frame, or a single one for all.
pub trait MatteFrames: Send {
    /// The matte's name for messages: a file.
    fn name(&self) -> String;

    /// Word, before the first matte is asked for, that the first `pictures` are not needed. Returns how many
    /// of them are left out.
    fn pass_over(&mut self, pictures: u64) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let _ = pictures;
        Ok(0)
    }

    /// The next matte; `None` after the last.
    fn next(&mut self) -> Result<Option<Frame>, Box<dyn Error + Send + Sync>>;

    /// Notes and warnings about the mattes that were read. Called once, at the end.
    fn remarks(&mut self) -> Remarks {
        Remarks::default()
    }
}

/// The weights of one matte, one per pixel.
pub(super) struct Matte {
    pub(super) width: usize,
    pub(super) height: usize,
    /// The weight of pixels that are completely filtered.
    pub(super) max: u16,
    weights: Vec<u16>,
    /// The smallest area with all weights above 0; `None` if there are none.
    pub(super) hull: Option<Area>,
}

impl Matte {
    /// The weights of a picture: its luma, at full range.
    pub(super) fn of(mut frame: Frame, name: &str) -> Result<Matte, RegionError> {
        let format = frame.format();
        if !frame.is_opaque() {
            return Err(RegionError::Transparent(name.to_owned()));
        }
        if frame.metadata.colour.is_limited(format) {
            RangeChange::new(format, Range::Full).apply(&mut frame);
        }
        let (width, height) = (frame.layout().width(), frame.layout().height());
        let max = format.max_value() as u16;
        let mut weights = Vec::with_capacity(width * height);
        let mut luma = vec![0; width];
        let loops = (format.model() == ColourModel::Rgb).then(|| luma_rows(&frame));
        for y in 0..height {
            match &loops {
                Some(loops) => loops.luma(rows_at(&frame, y), &mut luma),
                None => take(&frame, Channel::Luma, y, &mut luma),
            }
            // A word may hold more bits than its format's depth.
            weights.extend(luma.iter().map(|word| (word >> format.shift()).min(max)));
        }
        Ok(Matte {
            width,
            height,
            max,
            hull: hull(&weights, width),
            weights,
        })
    }

    /// The matte of a stored picture that `turn` shows; this one is for the shown picture.
    fn stored(&self, turn: Turn) -> Matte {
        let (width, height) = turn.shown_size((self.width, self.height));
        let mut weights = vec![0; self.weights.len()];
        for (y, row) in self.weights.chunks(self.width).enumerate() {
            for (x, &weight) in row.iter().enumerate() {
                let size = (width as i64, height as i64);
                let ((x, _), (y, _)) = turn.stored((x as i64, 1), (y as i64, 1), size);
                weights[y as usize * width + x as usize] = weight;
            }
        }
        Matte {
            width,
            height,
            max: self.max,
            hull: hull(&weights, width),
            weights,
        }
    }

    /// The weights of the samples `span` of row `y` of a plane, `repeat` times each. A sample's weight is the
    /// sum over the pixels that it stands for.
    pub(super) fn sums(&self, span: ops::Range<usize>, y: usize, shift: (u8, u8), repeat: usize) -> Vec<u32> {
        let columns = span.start << shift.0..(span.end << shift.0).min(self.width);
        let mut sums = vec![0; columns.len()];
        for row in y << shift.1..((y + 1) << shift.1).min(self.height) {
            let weights = &self.weights[row * self.width..][columns.clone()];
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                *sum += u32::from(weight);
            }
        }
        let sums = match shift.0 {
            0 => sums,
            1 => sums.chunks(2).map(|pair| pair.iter().sum()).collect(),
            across => sums
                .chunks(1 << across)
                .map(|pixels| pixels.iter().sum())
                .collect(),
        };
        match repeat {
            1 => sums,
            2 => spread::<2>(&sums),
            3 => spread::<3>(&sums),
            4 => spread::<4>(&sums),
            // The channels of an OpenEXR file may be any number.
            _ => {
                let each = sums.iter();
                each.flat_map(|&sum| iter::repeat_n(sum, repeat)).collect()
            }
        }
    }

    /// The largest possible weight of sample (`x`, `y`) of a plane.
    pub(super) fn whole(&self, x: usize, y: usize, shift: (u8, u8)) -> u32 {
        let columns = (((x + 1) << shift.0).min(self.width)) - (x << shift.0);
        let rows = (((y + 1) << shift.1).min(self.height)) - (y << shift.1);
        (columns * rows) as u32 * u32::from(self.max)
    }
}

/// What holds all of these weights, `width` in a row, that are above 0; `None` if there are none.
fn hull(weights: &[u16], width: usize) -> Option<Area> {
    let mut hull: Option<Area> = None;
    for (y, row) in weights.chunks(width).enumerate() {
        let Some(first) = row.iter().position(|&w| w > 0) else {
            continue;
        };
        let last = row.iter().rposition(|&w| w > 0).unwrap_or(first);
        let of_row = Area {
            x: first,
            y,
            width: last + 1 - first,
            height: 1,
        };
        hull = Some(hull.map_or(of_row, |hull| hull.hull(&of_row)));
    }
    hull
}

/// Repeats each number `N` times.
fn spread<const N: usize>(numbers: &[u32]) -> Vec<u32> {
    let mut all = vec![0; N * numbers.len()];
    for (to, &number) in all.as_chunks_mut::<N>().0.iter_mut().zip(numbers) {
        *to = [number; N];
    }
    all
}

/// The mattes of a run, in step with its frames.
pub(super) struct Mattes {
    frames: Box<dyn MatteFrames>,
    name: String,
    /// For pictures that are stored as they are shown.
    latest: Option<Arc<Matte>>,
    /// The latest one for pictures that are shown by a turn.
    stored: Option<(Turn, Arc<Matte>)>,
    pairing: Pairing,
    /// Pictures that were read or passed over.
    read: u64,
    ended: bool,
}

impl Mattes {
    pub(super) fn new(frames: Box<dyn MatteFrames>, pairing: Pairing) -> Mattes {
        Mattes {
            name: frames.name(),
            frames,
            latest: None,
            stored: None,
            pairing,
            read: 0,
            ended: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The matte of the next frame, the `sequence`th of the run, which is shown by `turn`.
    pub(super) fn of(
        &mut self,
        sequence: u64,
        metadata: &Metadata,
        turn: Turn,
    ) -> Result<Arc<Matte>, RegionError> {
        let number = match self.pairing {
            Pairing::Run => Some(sequence),
            Pairing::Whole | Pairing::Part => metadata.place(sequence),
        };
        // Without a place a second picture tells whether there is one for all frames.
        self.go_to(number.unwrap_or(1))?;
        if number.is_none() && !self.ended {
            return Err(RegionError::Uncounted(format!("the matte {}", self.name)));
        }
        // One picture is for all frames.
        match &self.latest {
            Some(matte) if !self.ended || self.read == 1 => {
                if turn.is_upright() {
                    return Ok(Arc::clone(matte));
                }
                let stored = self.stored.take().filter(|(of, _)| *of == turn);
                let (_, stored) = self
                    .stored
                    .insert(stored.unwrap_or_else(|| (turn, matte.stored(turn).into())));
                Ok(Arc::clone(stored))
            }
            _ => Err(RegionError::Ended {
                name: self.name.clone(),
                frames: self.read,
            }),
        }
    }

    /// Reads on up to picture `number`, or to the end.
    fn go_to(&mut self, number: u64) -> Result<(), RegionError> {
        if self.read == 0 && number > 0 && !self.ended {
            self.read = self.frames.pass_over(number).map_err(RegionError::Matte)?;
        }
        let mut latest = None;
        while !self.ended && self.read <= number {
            match self.frames.next().map_err(RegionError::Matte)? {
                Some(frame) => {
                    self.read += 1;
                    latest = Some(frame);
                }
                None => self.ended = true,
            }
        }
        if let Some(frame) = latest {
            let own = Turn::of_frame(&frame.metadata).unwrap_or(Turn::UPRIGHT);
            let matte = Matte::of(frame, &self.name)?;
            let shown = if own.is_upright() {
                matte
            } else {
                matte.stored(own.inverse())
            };
            self.latest = Some(Arc::new(shown));
            self.stored = None;
        }
        Ok(())
    }

    /// Notes and warnings at the end of a run; `whole` is true if it took all frames of the input.
    pub(super) fn remarks(&mut self, whole: bool) -> Remarks {
        let mut remarks = Remarks::default();
        if whole && !self.ended && self.pairing != Pairing::Part {
            match self.frames.next() {
                Ok(None) => {}
                Ok(Some(_)) => remarks.warn([format!(
                    "{} has more pictures than the input: {} were used",
                    self.name, self.read
                )]),
                Err(error) => remarks.warn([error.to_string()]),
            }
        }
        remarks.append(self.frames.remarks());
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, Layout, PixelFormat};

    fn picture(format: PixelFormat, words: &[u16], width: usize) -> Frame {
        let layout = Layout::new(format, width, words.len() / width, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
        let channels = layout.planes()[0].channels;
        for (y, row) in words.chunks(width).enumerate() {
            let samples = row.iter().flat_map(|&word| iter::repeat_n(word, channels));
            let bytes = frame.row_mut(0, y);
            if format.bytes_per_sample() == 1 {
                bytes
                    .iter_mut()
                    .zip(samples)
                    .for_each(|(b, word)| *b = word as u8);
            } else {
                let pairs = bytes.chunks_mut(2).zip(samples);
                pairs.for_each(|(b, word)| b.copy_from_slice(&word.to_le_bytes()));
            }
        }
        frame
    }

    #[test]
    fn weights_are_luma_at_full_range() {
        let of = |name: &str, words: &[u16]| {
            let format = PixelFormat::from_name(name).unwrap();
            Matte::of(picture(format, words, words.len()), "m")
                .unwrap()
                .weights
        };
        assert_eq!(of("gray", &[0, 16, 128, 235, 255]), [0, 16, 128, 235, 255]);
        assert_eq!(of("rgb24", &[0, 16, 128, 235, 255]), [0, 16, 128, 235, 255]);
        assert_eq!(of("gray16le", &[0, 256, 65535]), [0, 256, 65535]);
        // (v - 16) * 255 / 219, rounded: 112 * 255 / 219 = 130.4.
        assert_eq!(
            of("yuv420p", &[0, 16, 17, 128, 235, 255]),
            [0, 0, 1, 130, 255, 255]
        );
        // Ten bits in the upper part of a word: (512 - 64) * 1023 / 876 = 523.2.
        assert_eq!(of("p010le", &[64 << 6, 512 << 6, 940 << 6]), [0, 523, 1023]);
        // More than ten bits are the most.
        assert_eq!(of("gray10le", &[1023, 4000]), [1023, 1023]);
    }

    #[test]
    fn the_hull_holds_every_weight() {
        let of = |words: &[u16]| {
            let matte = Matte::of(picture(PixelFormat::GRAY, words, 4), "m").unwrap();
            matte.hull.map(|a| (a.x, a.y, a.width, a.height))
        };
        assert_eq!(of(&[0; 12]), None);
        assert_eq!(of(&[0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 0, 0]), Some((1, 1, 2, 2)));
        assert_eq!(of(&[1; 12]), Some((0, 0, 4, 3)));
    }

    #[test]
    fn coarse_samples_weigh_what_their_pixels_do() {
        let words = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let matte = Matte::of(picture(PixelFormat::GRAY, &words, 3), "m").unwrap();
        let sum = |x, y, shift| {
            let sums = matte.sums(x..x + 1, y, shift, 2);
            assert_eq!(sums, [sums[0]; 2]);
            (sums[0], matte.whole(x, y, shift))
        };
        assert_eq!(sum(1, 1, (0, 0)), (5, 255));
        assert_eq!(sum(0, 0, (1, 1)), (12, 4 * 255));
        assert_eq!(sum(1, 0, (1, 1)), (9, 2 * 255));
        assert_eq!(sum(1, 1, (1, 1)), (9, 255));
        assert_eq!(sum(1, 2, (1, 0)), (9, 255));
        assert_eq!(sum(0, 0, (2, 2)), (45, 9 * 255));
    }

    #[test]
    fn each_channel_has_the_weight_of_its_pixel() {
        let words: Vec<u16> = (1..=6).collect();
        let matte = Matte::of(picture(PixelFormat::GRAY, &words, 3), "m").unwrap();
        for channels in 1..=40 {
            let sums = matte.sums(1..3, 1, (0, 0), channels);
            assert_eq!(sums.len(), 2 * channels);
            for (index, sum) in sums.into_iter().enumerate() {
                assert_eq!(sum as usize, 5 + index / channels, "{channels} {index}");
            }
        }
    }

    #[test]
    fn what_is_transparent_is_no_matte() {
        let frame = picture(PixelFormat::YA8, &[7], 1);
        assert!(matches!(Matte::of(frame, "m"), Err(RegionError::Transparent(_))));
        let opaque = picture(PixelFormat::YA8, &[255], 1);
        assert_eq!(Matte::of(opaque, "m").unwrap().weights, [255]);
    }
}
