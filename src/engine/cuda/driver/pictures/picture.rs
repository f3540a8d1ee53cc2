//! A picture in the card's memory: its planes one after the other in one block.
//!
//! ```text
//! Arrangement    offset, pitch, samples and rows of each plane; no memory yet
//! Picture        a block with that arrangement, and textures over its planes if kernels read them so
//! DevicePlane    what a kernel is given: the address of a plane, its pitch, its texture
//! ```
//!
//! Arrangements are of frames, of intermediate values of another size for each sample, or of rows of numbers.

use super::texture::{ALIGNMENT, Rows, Texel, Texture};
use crate::engine::EngineError;
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::frame::{Layout, MAX_PLANES, Plane};
use std::sync::Arc;

/// A plane in the card's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DevicePlane {
    pub(crate) pointer: u64,
    /// Bytes from one row to the next.
    pub(crate) pitch: usize,
    /// A texture object over it; 0 if there is none.
    pub(crate) texture: u64,
    /// True if the bytes between its rows belong to somebody else and must not be written.
    pub(crate) keeps_padding: bool,
}

impl DevicePlane {
    /// True if all rows are aligned to 16 bytes, and kernels may also write the padding of a row up to a
    /// multiple of 16 bytes.
    pub(crate) fn is_aligned(&self) -> bool {
        !self.keeps_padding && self.pointer.is_multiple_of(16) && self.pitch.is_multiple_of(16)
    }
}

/// The planes of a picture in the card's memory.
pub(crate) type DevicePlanes = [DevicePlane; MAX_PLANES];

/// The planes' offsets and sizes within a picture's memory, for values of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arrangement {
    planes: [PlaneRows; MAX_PLANES],
    count: usize,
    size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PlaneRows {
    offset: usize,
    pitch: usize,
    /// Samples in a row.
    samples: usize,
    rows: usize,
}

impl Arrangement {
    /// The arrangement of a frame's planes.
    pub(crate) fn of(layout: &Layout) -> Arrangement {
        let mut arrangement = Arrangement {
            count: layout.planes().len(),
            size: layout.size(),
            ..Arrangement::default()
        };
        for (rows, plane) in arrangement.planes.iter_mut().zip(layout.planes()) {
            *rows = PlaneRows {
                offset: plane.offset,
                pitch: plane.stride,
                samples: plane.width * plane.channels,
                rows: plane.height,
            };
        }
        arrangement
    }

    /// A value of `bytes` bytes for each sample of `layout`, with rows and planes aligned for textures.
    pub(crate) fn between_passes(layout: &Layout, bytes: usize) -> Arrangement {
        let mut arrangement = Arrangement::of(layout);
        let mut size = 0;
        for rows in &mut arrangement.planes[..arrangement.count] {
            rows.offset = size;
            rows.pitch = (rows.samples * bytes).next_multiple_of(ALIGNMENT);
            size += rows.pitch * rows.rows;
        }
        arrangement.size = size;
        arrangement
    }

    /// For each plane of `layout`, rows of 32-bit numbers: `size` gives the numbers of a row, and the rows.
    pub(crate) fn numbers(layout: &Layout, size: impl Fn(&Plane) -> (usize, usize)) -> Arrangement {
        let mut arrangement = Arrangement::of(layout);
        let mut bytes = 0;
        for (rows, plane) in arrangement.planes.iter_mut().zip(layout.planes()) {
            (rows.samples, rows.rows) = size(plane);
            rows.offset = bytes;
            rows.pitch = (4 * rows.samples).next_multiple_of(ALIGNMENT);
            bytes += rows.pitch * rows.rows;
        }
        arrangement.size = bytes;
        arrangement
    }

    /// Bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

/// A block of the card's memory that holds a picture, and textures over its planes where a variant reads
/// through them.
#[derive(Default)]
pub(crate) struct Picture {
    // Textures are dropped before the memory that they show.
    textures: Option<(Arrangement, Vec<Texture>)>,
    memory: Option<DeviceMemory>,
}

impl Picture {
    /// Grows to `len` bytes; false if the card's memory is short, and then it is empty. Nothing may be using
    /// it.
    pub(crate) fn fit(&mut self, device: &Arc<Device>, len: usize) -> Result<bool, EngineError> {
        if self.memory.as_ref().is_some_and(|m| m.len() >= len) {
            return Ok(true);
        }
        // The small block is freed first, so that the two are never held at once.
        self.textures = None;
        self.memory = None;
        self.memory = DeviceMemory::try_new(device, len)?;
        Ok(self.memory.is_some())
    }

    pub(crate) fn pointer(&self) -> u64 {
        self.memory.as_ref().map_or(0, DeviceMemory::pointer)
    }

    /// Its planes, with textures over them if `texel` is given. Nothing may be using it if the arrangement is
    /// another than the last one.
    pub(crate) fn device_planes(
        &mut self,
        device: &Arc<Device>,
        arrangement: &Arrangement,
        texel: Option<Texel>,
    ) -> Result<DevicePlanes, EngineError> {
        let mut places = [DevicePlane::default(); MAX_PLANES];
        let planes = &arrangement.planes[..arrangement.count];
        for (place, plane) in places.iter_mut().zip(planes) {
            place.pointer = self.pointer() + plane.offset as u64;
            place.pitch = plane.pitch;
        }
        let Some(texel) = texel else { return Ok(places) };
        if self.textures.as_ref().is_none_or(|(of, _)| of != arrangement) {
            let textures = places.iter().zip(planes).map(|(place, plane)| {
                let rows = Rows {
                    pointer: place.pointer,
                    texel,
                    width: plane.samples,
                    height: plane.rows,
                    pitch: place.pitch,
                };
                Texture::new(device, rows)
            });
            self.textures = Some((*arrangement, textures.collect::<Result<_, _>>()?));
        }
        if let Some((_, textures)) = &self.textures {
            for (place, texture) in places.iter_mut().zip(textures) {
                place.texture = texture.object();
            }
        }
        Ok(places)
    }
}
