//! Where the pictures of a NumPy array lie in memory.
//!
//! ```text
//!  array[n, h, w, c]             picture_stride from one picture to the next, perhaps backwards
//!    address ─> |c c c|c c c|c c c| padding |
//!               |c c c|c c c|c c c| padding |      row_stride from one row to the next
//! ```
//!
//! An array tells this itself (`__array_interface__`). Pixels of a row must stand side by side, and rows from
//! top to bottom; the Python half copies what lies otherwise.
#![allow(unsafe_code)]

use crate::failure::Failure;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use std::marker::PhantomData;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// The pictures of an array that is borrowed for `'a`.
pub(crate) struct Pictures<'a> {
    /// Pictures, rows, pixels in a row, samples of a pixel.
    shape: [usize; 4],
    sample_bytes: usize,
    address: usize,
    picture_stride: isize,
    row_stride: usize,
    is_writable: bool,
    array: PhantomData<&'a ()>,
}

impl<'a> Pictures<'a> {
    /// The pictures of `array`, an `ndarray` of four axes.
    pub(crate) fn of(array: &'a Bound<'_, PyAny>) -> Result<Pictures<'a>, Failure> {
        static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        if !array.is_exact_instance(NDARRAY.import(array.py(), "numpy", "ndarray")?) {
            return Err(Failure::value("pictures are filtered in arrays of NumPy"));
        }
        let interface = array.getattr("__array_interface__")?.cast_into::<PyDict>();
        let interface = interface.map_err(PyErr::from)?;
        let entry = |name: &str| {
            let found = interface.get_item(name)?;
            found.ok_or_else(|| Failure::value(format!("the array does not tell its {name}")))
        };
        let shape: [usize; 4] = entry("shape")?.extract()?;
        let (address, is_read_only): (usize, bool) = entry("data")?.extract()?;
        let sample_bytes = match &*entry("typestr")?.extract::<String>()? {
            "|u1" => 1,
            "<u2" => 2,
            other => {
                return Err(Failure::value(format!(
                    "samples of the type {other} are not filtered"
                )));
            }
        };
        let [count, height, width, channels] = shape;
        let tight = [height * width * channels, width * channels, channels, 1];
        let strides: [isize; 4] = match entry("strides")? {
            none if none.is_none() => tight.map(|samples| (samples * sample_bytes) as isize),
            strides => strides.extract()?,
        };
        // Along an axis of one there is no next.
        let is_apart =
            |axis: usize| shape[axis] > 1 && strides[axis] != (tight[axis] * sample_bytes) as isize;
        let row_bytes = tight[1] * sample_bytes;
        let row_stride = match height {
            0 | 1 => Some(row_bytes),
            _ => usize::try_from(strides[1])
                .ok()
                .filter(|&stride| stride >= row_bytes),
        };
        let (Some(row_stride), false) = (row_stride, is_apart(2) || is_apart(3)) else {
            return Err(Failure::value("the array's pixels do not stand side by side"));
        };
        Ok(Pictures {
            shape,
            sample_bytes,
            address,
            picture_stride: if count > 1 { strides[0] } else { 0 },
            row_stride,
            is_writable: !is_read_only,
            array: PhantomData,
        })
    }

    /// Pictures, rows, pixels in a row, samples of a pixel.
    pub(crate) fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Bytes of a sample.
    pub(crate) fn sample_bytes(&self) -> usize {
        self.sample_bytes
    }

    /// Bytes from one row to the next.
    pub(crate) fn row_stride(&self) -> usize {
        self.row_stride
    }

    /// True if results may be stored here.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// True if some byte may belong to both arrays.
    pub(crate) fn overlaps(&self, other: &Pictures<'_>) -> bool {
        let (a, b) = (self.extent(), other.extent());
        a.0 < b.1 && b.0 < a.1
    }

    /// Picture `index`, from its first sample to its last, with what pads its rows.
    pub(crate) fn picture(&self, index: usize) -> &'a [u8] {
        let address = self.address_of(index);
        // SAFETY: NumPy's account of an array (its address, shape and strides) holds while the array is
        // borrowed, which `'a` is; the bytes from a picture's first sample to its last lie in the memory that
        // the array is a view of. No other thread of Python may write to it meanwhile, as `filter` says.
        unsafe { std::slice::from_raw_parts(with_exposed_provenance(address), self.picture_bytes()) }
    }

    /// Picture `index` to store into.
    pub(crate) fn picture_mut(&mut self, index: usize) -> &mut [u8] {
        assert!(self.is_writable, "results are stored in a read-only array");
        let address = self.address_of(index);
        // SAFETY: as in `picture`; the array may be written to, and `&mut self` lends one picture at a time.
        unsafe { std::slice::from_raw_parts_mut(with_exposed_provenance_mut(address), self.picture_bytes()) }
    }

    fn address_of(&self, index: usize) -> usize {
        assert!(index < self.shape[0], "picture {index} of {}", self.shape[0]);
        self.address
            .wrapping_add_signed(self.picture_stride * index as isize)
    }

    fn picture_bytes(&self) -> usize {
        let [_, height, width, channels] = self.shape;
        match height * width * channels {
            0 => 0,
            _ => self.row_stride * (height - 1) + width * channels * self.sample_bytes,
        }
    }

    /// The first byte's address, and that behind the last one's.
    fn extent(&self) -> (usize, usize) {
        if self.shape[0] == 0 {
            return (self.address, self.address);
        }
        let ends = [self.address, self.address_of(self.shape[0] - 1)];
        (ends[0].min(ends[1]), ends[0].max(ends[1]) + self.picture_bytes())
    }
}
