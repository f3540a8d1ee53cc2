//! DLPack: how libraries hand arrays to each other, without a copy.
//!
//! ```text
//!  capsule "dltensor" ──> ManagedTensor { tensor, manager, deleter }
//!                           tensor: address, device, shape, strides, type
//! ```
//!
//! Whoever takes the array renames the capsule to "used_dltensor" and calls the deleter at the end; a capsule
//! that nobody took calls it itself. Here one is only looked at, while its capsule is held.
#![allow(unsafe_code)]

use crate::failure::Failure;
use crate::shared_memory::SharedMemory;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

const NAME: &CStr = c"dltensor";

/// Unsigned integers, floating-point numbers, and a CUDA device, in DLPack's numbers.
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const CUDA: i32 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    number: i32,
}

/// What a sample is.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SampleType {
    code: u8,
    bits: u8,
    lanes: u16,
}

impl SampleType {
    /// A floating-point number or an unsigned integer of so many bits.
    pub(crate) fn new(is_float: bool, bits: u8) -> SampleType {
        SampleType {
            code: if is_float { FLOAT } else { UNSIGNED },
            bits,
            lanes: 1,
        }
    }
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    axes: i32,
    sample: SampleType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct ManagedTensor {
    tensor: Tensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

/// An array of ours that was handed over. The tensor comes first, so that its address is this value's.
#[repr(C)]
struct Export {
    managed: ManagedTensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    memory: SharedMemory,
}

unsafe extern "C" fn delete(managed: *mut ManagedTensor) {
    // SAFETY: made by `export` of a boxed `Export`, which begins with it; whoever holds it calls this once.
    drop(unsafe { Box::from_raw(managed.cast::<Export>()) });
}

unsafe extern "C" fn delete_unused(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule that it destroys. One that still has its name holds what
    // `export` put there, and nobody has taken it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

/// A capsule with an array of such samples in `memory`, its strides in samples.
pub(crate) fn export(
    py: Python<'_>,
    memory: SharedMemory,
    device: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
    sample: SampleType,
) -> Result<Bound<'_, PyAny>, Failure> {
    if shape.len() != strides.len() {
        return Err(Failure::value("an array has as many strides as axes"));
    }
    let mut export = Box::new(Export {
        managed: ManagedTensor {
            tensor: Tensor {
                data: ptr::with_exposed_provenance_mut(memory.pointer() as usize),
                device: Device {
                    kind: CUDA,
                    number: device as i32,
                },
                axes: shape.len() as i32,
                sample,
                shape: ptr::null_mut(),
                strides: ptr::null_mut(),
                byte_offset: 0,
            },
            manager: ptr::null_mut(),
            deleter: Some(delete),
        },
        shape,
        strides,
        memory,
    });
    export.managed.tensor.shape = export.shape.as_mut_ptr();
    export.managed.tensor.strides = export.strides.as_mut_ptr();
    let pointer = Box::into_raw(export);
    // SAFETY: the interpreter is held; the pointer is to a live tensor and not null, the name lives for ever.
    // The result is a new object, or null with an exception set.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer.cast(), NAME.as_ptr(), Some(delete_unused));
        if capsule.is_null() {
            delete(pointer.cast());
        }
        Ok(Bound::from_owned_ptr_or_err(py, capsule)?)
    }
}

/// What a capsule's array is: kind and number of the device, address, shape, strides in samples (none where
/// rows follow each other), and code, bits and lanes of a sample's type.
type Contents = ((i32, i32), u64, Vec<i64>, Option<Vec<i64>>, (u8, u8, u16));

/// Looks into a capsule, which must be held for as long as the array is used.
#[pyfunction]
pub(crate) fn read_dlpack(capsule: &Bound<'_, PyAny>) -> Result<Contents, Failure> {
    let name: *const c_char = NAME.as_ptr();
    // SAFETY: the interpreter is held, and any object may be asked. A capsule of this name holds a tensor, by
    // DLPack's contract, whose shape, and strides if it has any, are as many numbers as it has axes; it lives
    // as long as the capsule, which is borrowed.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name) != 1 {
            return Err(Failure::value(
                "the array's __dlpack__ gives no array that can be used",
            ));
        }
        let managed: *const ManagedTensor = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name).cast();
        let tensor = &(*managed).tensor;
        let axes = usize::try_from(tensor.axes).unwrap_or(0);
        let numbers = |at: *const i64| match at.is_null() || axes == 0 {
            true => Vec::new(),
            false => std::slice::from_raw_parts(at, axes).to_vec(),
        };
        let strides = (!tensor.strides.is_null()).then(|| numbers(tensor.strides));
        Ok((
            (tensor.device.kind, tensor.device.number),
            tensor.data.expose_provenance() as u64 + tensor.byte_offset,
            numbers(tensor.shape),
            strides,
            (tensor.sample.code, tensor.sample.bits, tensor.sample.lanes),
        ))
    }
}
