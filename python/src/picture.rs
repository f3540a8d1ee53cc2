//! A frame as Python holds it: its samples in a `bytearray`, without padding, or on a card, and what travels
//! with them.
//!
//! ```text
//!  data   | plane 0 | plane 1 | plane 2 |      views are made of it by `planes`
//! ```
//!
//! The samples on the host are a copy: frames of the pipeline come from a pool that would run dry if Python
//! kept them. Those on a card belong to no such pool.

use crate::array::Pictures;
use crate::card::{CardMemory, RgbMaker};
use crate::failure::Failure;
use framepipe::convert::{ConvertError, Converter};
use framepipe::frame::{
    Buffer, Channel, Colour, Frame, Image, ImageMut, Layout, Metadata, PixelFormat, Range, Rational,
};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// A picture of a stream. Its samples may be changed in place.
#[pyclass(frozen, module = "framepipe._framepipe")]
pub(crate) struct Picture {
    layout: Layout,
    metadata: Metadata,
    /// Seconds of a tick of its times.
    pub(crate) time_base: Rational,
    /// The picture's number among those of its reader.
    #[pyo3(get)]
    index: u64,
    samples: Samples,
}

/// The samples, plane after plane.
enum Samples {
    Host(Py<PyByteArray>),
    /// And what makes RGB of them there.
    Card(Py<CardMemory>, RgbMaker),
}

impl Picture {
    /// A copy of `frame`.
    pub(crate) fn of(py: Python<'_>, frame: &Frame, time_base: Rational) -> Result<Picture, Failure> {
        let from = frame.layout();
        let layout = Layout::new(from.format(), from.width(), from.height(), 1)?;
        let bytes = PyByteArray::new_with(py, layout.size(), |bytes| {
            let mut rest = bytes;
            for (index, plane) in layout.planes().iter().enumerate() {
                for y in 0..plane.height {
                    let (row, more) = rest.split_at_mut(layout.row_bytes(index));
                    row.copy_from_slice(frame.row(index, y));
                    rest = more;
                }
            }
            Ok(())
        })?;
        Ok(Picture {
            layout,
            metadata: frame.metadata.clone(),
            time_base,
            index: frame.sequence,
            samples: Samples::Host(bytes.unbind()),
        })
    }

    /// The frame itself where it lies on a card, of which `rgb` may make another there; else a copy.
    pub(crate) fn taken(
        py: Python<'_>,
        frame: Frame,
        time_base: Rational,
        rgb: &RgbMaker,
    ) -> Result<Picture, Failure> {
        let (layout, metadata, index) = (*frame.layout(), frame.metadata.clone(), frame.sequence);
        match py.detach(|| CardMemory::of_frame(frame))? {
            Ok(memory) => Ok(Picture {
                layout,
                metadata,
                time_base,
                index,
                samples: Samples::Card(Py::new(py, memory)?, rgb.clone()),
            }),
            Err(frame) => Picture::of(py, &frame, time_base),
        }
    }

    /// A frame of the library with a copy of the samples, number `sequence` of its stream.
    pub(crate) fn frame(&self, py: Python<'_>, sequence: u64) -> Result<Frame, Failure> {
        let bytes = match &self.samples {
            Samples::Host(bytes) => bytes.bind(py).to_vec(),
            Samples::Card(memory, _) => {
                let memory = memory.get();
                py.detach(|| memory.fetch())?
            }
        };
        let mut frame = frame_of(self.layout, bytes)?;
        frame.sequence = sequence;
        frame.metadata = self.metadata.clone();
        Ok(frame)
    }

    /// RGB is of integers.
    fn check_integers(&self) -> Result<(), Failure> {
        let format = self.layout.format();
        if format.is_float() {
            return Err(Failure::value(format!(
                "samples of {format} are floating-point numbers, which are not converted; take the planes"
            )));
        }
        Ok(())
    }

    /// The format that the samples have when they are RGB of this depth.
    fn rgb_format(&self) -> PixelFormat {
        match self.layout.format().bytes_per_sample() {
            1 => PixelFormat::RGB24,
            _ => PixelFormat::RGB48,
        }
    }

    /// Converts `frame`, with the interpreter let go.
    fn converted(py: Python<'_>, frame: &Frame, to: (PixelFormat, Colour)) -> Result<Frame, Failure> {
        let (layout, colour) = (*frame.layout(), frame.metadata.colour);
        py.detach(|| {
            let from = (layout.format(), colour);
            Converter::between(from, to, layout.width(), layout.height())?.convert(frame)
        })
        .map_err(|error: ConvertError| Failure::error(error.to_string()))
    }
}

/// Copies component `place.1` of plane `place.0` from a frame into another of the same layout.
fn copy_component(from: &Frame, to: &mut Frame, place: (usize, usize)) {
    let (plane, component) = place;
    let geometry = from.layout().planes()[plane];
    let size = from.layout().format().bytes_per_sample();
    let pixel = geometry.channels * size;
    for y in 0..geometry.height {
        let (source, target) = (from.row(plane, y), to.row_mut(plane, y));
        for (target, source) in target.chunks_exact_mut(pixel).zip(source.chunks_exact(pixel)) {
            let at = component * size..(component + 1) * size;
            target[at.clone()].copy_from_slice(&source[at]);
        }
    }
}

/// A frame of these bytes.
fn frame_of(layout: Layout, bytes: Vec<u8>) -> Result<Frame, Failure> {
    // Says which are missing if somebody has shortened them.
    Image::with_layout(&bytes, layout)?;
    Ok(Frame::new(layout, Buffer::unpooled(Box::new(bytes)))?)
}

#[pymethods]
impl Picture {
    /// FFmpeg's name of the pixel format.
    #[getter]
    fn format(&self) -> &'static str {
        self.layout.format().name()
    }

    /// Width and height in pixels.
    #[getter]
    fn size(&self) -> (usize, usize) {
        (self.layout.width(), self.layout.height())
    }

    /// NumPy's code of the type of samples.
    #[getter]
    fn sample_type(&self) -> &'static str {
        let format = self.layout.format();
        match (format.is_float(), format.bytes_per_sample()) {
            (false, 1) => "|u1",
            (false, _) => "<u2",
            (true, 2) => "<f2",
            (true, _) => "<f4",
        }
    }

    /// The samples: a `bytearray`, or memory of a card.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.samples {
            Samples::Host(bytes) => bytes.bind(py).clone().into_any(),
            Samples::Card(memory, _) => memory.bind(py).clone().into_any(),
        }
    }

    /// Of each plane its first byte, rows, pixels in a row, samples of a pixel, and bytes from row to row.
    #[getter]
    fn planes(&self) -> Vec<(usize, usize, usize, usize, usize)> {
        let planes = self.layout.planes().iter();
        planes
            .map(|plane| {
                (
                    plane.offset,
                    plane.height,
                    plane.width,
                    plane.channels,
                    plane.stride,
                )
            })
            .collect()
    }

    /// When it is shown, in ticks.
    #[getter]
    fn pts(&self) -> Option<i64> {
        self.metadata.pts
    }

    /// How long it is shown, in ticks.
    #[getter]
    fn duration(&self) -> Option<i64> {
        self.metadata.duration
    }

    /// A tick in seconds, as a fraction.
    #[getter]
    fn time_base(&self) -> (i32, i32) {
        (self.time_base.num, self.time_base.den)
    }

    /// The image file that it came from.
    #[getter]
    fn file(&self) -> Option<std::path::PathBuf> {
        self.metadata.file.as_deref().cloned()
    }

    /// Range, and the numbers of primaries, transfer, matrix and chroma location.
    #[getter]
    fn colour(&self) -> (&'static str, u8, u8, u8, u8) {
        let colour = self.metadata.colour;
        let range = match colour.range {
            Range::Limited => "limited",
            Range::Full => "full",
            _ if colour.is_limited(self.layout.format()) => "limited",
            _ => "full",
        };
        let Colour {
            primaries,
            transfer,
            matrix,
            chroma_location,
            ..
        } = colour;
        (range, primaries, transfer, matrix, chroma_location)
    }

    /// The same as RGB, of 8 or 16 bits, on the card that the samples lie on.
    fn rgb_on_card(&self, py: Python<'_>) -> Result<Picture, Failure> {
        self.check_integers()?;
        let Samples::Card(memory, maker) = &self.samples else {
            return Err(Failure::value("the frame lies in the host's memory"));
        };
        let (card, facts) = (memory.get(), (&self.metadata.colour, self.metadata.field_order));
        let (layout, rgb) = py.detach(|| card.to_rgb(maker, &self.layout, facts))?;
        Ok(Picture {
            layout,
            metadata: self.metadata.clone(),
            time_base: self.time_base,
            index: self.index,
            samples: Samples::Card(Py::new(py, rgb)?, maker.clone()),
        })
    }

    /// Stores it as RGB, of 8 or 16 bits, in `rgb`, an array of 1xHxWx3. `data` is this picture's, as an
    /// array of 1x1xNx1 bytes.
    fn store_rgb(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        rgb: &Bound<'_, PyAny>,
    ) -> Result<(), Failure> {
        self.check_integers()?;
        let (samples, mut target) = (Pictures::of(data)?, Pictures::of(rgb)?);
        let format = match target.sample_bytes() {
            1 => PixelFormat::RGB24,
            _ => PixelFormat::RGB48,
        };
        let [count, height, width, channels] = target.shape();
        if samples.shape()[0] != 1 || (count, channels) != (1, 3) || target.is_float() {
            return Err(Failure::value("RGB is stored in an array of 1xHxWx3 integers"));
        }
        if !target.is_writable() || samples.overlaps(&target) {
            return Err(Failure::value("RGB is stored in an array of its own"));
        }
        py.detach(|| {
            let image = Image::with_layout(samples.picture(0), self.layout)?;
            let image = image.with_colour(self.metadata.colour);
            let image = image.with_field_order(self.metadata.field_order);
            let stride = [target.row_stride()];
            let mut rgb = ImageMut::with_strides(target.picture_mut(0), format, width, height, &stride)?;
            Ok(framepipe::engine::cpu::to_rgb(&image, &mut rgb)?)
        })
    }

    /// Another picture, RGB of the same size, in the format of this one and with what travels with this one.
    fn with_rgb(&self, py: Python<'_>, rgb: Vec<u8>) -> Result<Picture, Failure> {
        self.check_integers()?;
        let format = self.layout.format();
        let layout = Layout::new(self.rgb_format(), self.layout.width(), self.layout.height(), 1)?;
        let mut frame = frame_of(layout, rgb)?;
        frame.sequence = self.index;
        frame.metadata = self.metadata.clone();
        if format == self.rgb_format() {
            return Picture::of(py, &frame, self.time_base);
        }
        frame.metadata.colour.range = Range::Full;
        let mut frame = Picture::converted(py, &frame, (format, self.metadata.colour))?;
        if let Some(place) = format.place(Channel::Alpha) {
            copy_component(&self.frame(py, self.index)?, &mut frame, place);
        }
        Picture::of(py, &frame, self.time_base)
    }
}
