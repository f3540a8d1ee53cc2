//! Rows of one component of a plane as integers, with the border filled: the input of algorithms in plain
//! Rust.

use crate::engine::cpu::rows::strip::Picture;
use crate::filter::{Border, Convolve};
use crate::frame::PixelFormat;

/// One component to convolve.
pub(in crate::engine::cpu) struct Component<'a> {
    pub(in crate::engine::cpu) picture: Picture<'a>,
    pub(in crate::engine::cpu) plane: usize,
    pub(in crate::engine::cpu) place: ComponentLayout,
    pub(in crate::engine::cpu) border: Border,
    /// The constants of its convolution.
    pub(in crate::engine::cpu) c: &'a Convolve,
}

impl Component<'_> {
    /// Loads row `y` of the component, inside or outside the frame, with `radius` samples on each side.
    pub(in crate::engine::cpu) fn load<T: Copy + From<u16>>(&self, y: i64, radius: usize, line: &mut [T]) {
        let outside = T::from(self.c.border);
        match self
            .border
            .index(y, self.picture.layout.planes()[self.plane].height)
        {
            None => line.fill(outside),
            Some(y) => {
                let width = line.len() - 2 * radius;
                load(
                    self.place,
                    self.picture.row(self.plane, y),
                    &mut line[radius..radius + width],
                );
                extend(line, radius, self.border, outside);
            }
        }
    }
}

/// Where a component's samples lie in a row of bytes.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct ComponentLayout {
    /// Samples that a pixel interleaves.
    pub(in crate::engine::cpu) channels: usize,
    /// Index of the component among these.
    pub(in crate::engine::cpu) channel: usize,
    /// The format: it says the size of a sample and its padding bits.
    pub(in crate::engine::cpu) format: PixelFormat,
}

/// Reads the component's samples of one row.
pub(in crate::engine::cpu) fn load<T: From<u16>>(place: ComponentLayout, row: &[u8], out: &mut [T]) {
    let shift = place.format.shift();
    if place.format.bytes_per_sample() == 1 {
        let sample = |v: u8| T::from(u16::from(v));
        // With 1 or 3 components the stride is a constant, which is faster.
        match place.channels {
            1 => out.iter_mut().zip(row).for_each(|(o, &v)| *o = sample(v)),
            3 => {
                let pixels = row.as_chunks::<3>().0;
                out.iter_mut()
                    .zip(pixels)
                    .for_each(|(o, v)| *o = sample(v[place.channel]));
            }
            _ => {
                let samples = row[place.channel..].iter().step_by(place.channels);
                out.iter_mut().zip(samples).for_each(|(o, &v)| *o = sample(v));
            }
        }
    } else {
        let samples = row.as_chunks::<2>().0[place.channel..]
            .iter()
            .step_by(place.channels);
        out.iter_mut()
            .zip(samples)
            .for_each(|(o, v)| *o = T::from(u16::from_le_bytes(*v) >> shift));
    }
}

/// Writes the component's samples of one row; the values are in range.
pub(in crate::engine::cpu) fn store<T: Copy + Into<i32>>(
    place: ComponentLayout,
    values: &[T],
    row: &mut [u8],
) {
    let shift = place.format.shift();
    if place.format.bytes_per_sample() == 1 {
        match place.channels {
            1 => row.iter_mut().zip(values).for_each(|(o, &v)| *o = v.into() as u8),
            3 => {
                let pixels = row.as_chunks_mut::<3>().0;
                pixels
                    .iter_mut()
                    .zip(values)
                    .for_each(|(o, &v)| o[place.channel] = v.into() as u8);
            }
            _ => {
                let samples = row[place.channel..].iter_mut().step_by(place.channels);
                samples.zip(values).for_each(|(o, &v)| *o = v.into() as u8);
            }
        }
    } else {
        let samples = row.as_chunks_mut::<2>().0[place.channel..]
            .iter_mut()
            .step_by(place.channels);
        samples
            .zip(values)
            .for_each(|(o, &v)| *o = ((v.into() as u16) << shift).to_le_bytes());
    }
}

/// Fills the `radius` samples on each side of a row whose middle is loaded.
pub(in crate::engine::cpu) fn extend<T: Copy>(line: &mut [T], radius: usize, border: Border, outside: T) {
    let width = line.len() - 2 * radius;
    for k in 1..=radius {
        let left = border.index(-(k as i64), width);
        let right = border.index((width + k - 1) as i64, width);
        line[radius - k] = left.map_or(outside, |i| line[radius + i]);
        line[radius + width + k - 1] = right.map_or(outside, |i| line[radius + i]);
    }
}
