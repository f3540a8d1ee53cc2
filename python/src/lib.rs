//! The native half of the Python package `framepipe`: arrays filtered where they lie, videos read and
//! written.
//!
//! ```text
//!  framepipe/*.py       shapes, dtypes, defaults, documentation; programs use this
//!       |
//!  _framepipe (here)    array          where the pictures of an array lie
//!       |               recipe         what a call asks for
//!       |               filtering      arrays through an engine
//!       |               card           arrays that lie on an NVIDIA card, filtered there
//!       |               shared_memory  memory of a card, held by whoever was handed an array in it
//!       |               dlpack         how other libraries hand over such arrays, and get them
//!       |               idle           filters of earlier calls, for the next ones
//!       |               reader         a pipeline on threads of its own, whose sink is the caller's loop
//!       |               writer         frames into a video file
//!       |               picture        a frame as Python holds it
//!       v               failure        errors as exceptions
//!  framepipe (crate)
//! ```
//!
//! The interpreter is let go wherever frames are filtered, decoded, encoded or waited for.

mod array;
mod card;
mod dlpack;
mod failure;
mod filtering;
mod idle;
mod picture;
mod reader;
mod recipe;
mod shared_memory;
mod writer;

use pyo3::prelude::pymodule;

#[pymodule]
mod _framepipe {
    use framepipe::filter::Border;
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    #[pymodule_init]
    fn constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let borders = Border::ALL.map(|border| border.to_string());
        module.add("BORDERS", PyTuple::new(module.py(), borders)?)
    }

    #[pymodule_export]
    use crate::card::{CardMemory, card_of, filter_on_card};
    #[pymodule_export]
    use crate::dlpack::read_dlpack;
    #[pymodule_export]
    use crate::failure::Error;
    #[pymodule_export]
    use crate::filtering::{filter_pictures, masks};
    #[pymodule_export]
    use crate::picture::Picture;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::recipe::{channels_of, check_filters, largest_sample};
    #[pymodule_export]
    use crate::writer::Writer;

    /// After a fork.
    #[pyfunction]
    fn forget_idle() {
        crate::filtering::forget_idle();
        crate::card::forget_idle();
    }
}
