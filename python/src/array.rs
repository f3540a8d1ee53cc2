//! Where the pictures of a NumPy array lie in memory.
//!
//! ```text
//!  array[n, h, w, c]             picture_stride from one picture to the next, perhaps backwards
//!    address ─> |c c c|c c c|c c c| padding |
//!               |c c c|c c c|c c c| padding |      row_stride from one row to the next
//! ```
//!
//! These come from the array's `__array_struct__`. Pixels of a row must stand side by side, and rows from
//! top to bottom; the Python half copies what lies otherwise.
#![allow(unsafe_code)]

use crate::failure::Failure;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{ffi, intern};
use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{self, with_exposed_provenance, with_exposed_provenance_mut};

/// What `__array_struct__` holds, as NumPy's header `ndarraytypes.h` declares it.
#[repr(C)]
struct Interface {
    two: c_int,
    axes: c_int,
    kind: c_char,
    sample_bytes: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
    description: *mut ffi::PyObject,
}

/// Flags of it: samples have this machine's order of bytes, and may be written to.
const NATIVE: c_int = 0x200;
const WRITEABLE: c_int = 0x400;

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
        // The fastest to read of NumPy's interfaces.
        let capsule = array.getattr(intern!(array.py(), "__array_struct__"))?;
        // SAFETY: the interpreter is held, and any object may be asked. A capsule without a name, of an array
        // of NumPy, holds what NumPy says that it holds, and lives until the end of this function.
        let interface = unsafe {
            let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), ptr::null());
            pointer.cast::<Interface>().as_ref()
        };
        let interface = interface.ok_or_else(|| PyErr::fetch(array.py()))?;
        let sample_bytes = match (
            interface.kind as u8,
            interface.sample_bytes,
            interface.flags & NATIVE,
        ) {
            (b'u', 1, _) => 1,
            (b'u', 2, NATIVE) => 2,
            (b'f', 4, NATIVE) => 4,
            _ => {
                let other: String = array.getattr("dtype")?.str()?.extract()?;
                return Err(Failure::value(format!(
                    "samples of the type {other} are not filtered"
                )));
            }
        };
        if interface.axes != 4 {
            return Err(Failure::value("pictures are filtered in arrays of four axes"));
        }
        // SAFETY: both are arrays of as many numbers as the array has axes, which are four.
        let (shape, strides) = unsafe {
            let shape: [isize; 4] = *interface.shape.cast();
            let strides: [isize; 4] = *interface.strides.cast();
            (shape.map(|count| count as usize), strides)
        };
        let address = interface.data.expose_provenance();
        let [count, height, width, channels] = shape;
        let tight = [height * width * channels, width * channels, channels, 1];
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
            is_writable: interface.flags & WRITEABLE != 0,
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

    /// True if samples are floating-point numbers.
    pub(crate) fn is_float(&self) -> bool {
        self.sample_bytes == 4
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
        // SAFETY: NumPy's account of an array (its address, shape and strides) holds while the array is
        // borrowed, which `'a` is; the bytes from a picture's first sample to its last lie in the memory that
        // the array is a view of, which may be written to. `&mut self` lends one picture at a time, and no
        // other thread of Python may use it meanwhile, as `filter` says.
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
