//! Intermediate pictures on the card. One set serves all slots, since kernels of different frames run one
//! after another.

use super::chain::ChainLaunch;
use crate::engine::EngineError;
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::picture::{Arrangement, DevicePlanes, Picture};
use crate::engine::cuda::driver::texture::Texel;
use crate::frame::{Layout, Plane};
use std::sync::Arc;

/// Where such pictures lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scratch {
    /// Between row pass and column pass, for 16-bit and for 32-bit values.
    pub(crate) intermediate: [DevicePlanes; 2],
    /// What the passes of a pyramid make, each of what is in the other one.
    pub(crate) numbers: [DevicePlanes; 2],
    /// Floating-point colour multiplied by alpha.
    pub(crate) weighted: DevicePlanes,
    /// Sums of colour under alpha.
    pub(crate) sums: DevicePlanes,
}

/// Their memory, which grows to what the largest frames need.
#[derive(Default)]
pub(crate) struct ScratchMemory {
    intermediate: [Picture; 2],
    numbers: [Picture; 2],
    weighted: Picture,
    sums: Picture,
}

/// The card is short of memory: so many bytes were needed.
pub(crate) struct ScratchShortage(pub(crate) usize);

impl ScratchMemory {
    /// What `prepared` needs for frames of `layout`, with textures over what kernels may read through them.
    /// Nothing may be using what there was if the layout is another than the last one.
    pub(crate) fn places(
        &mut self,
        device: &Arc<Device>,
        prepared: &ChainLaunch,
        layout: &Layout,
        textures: bool,
    ) -> Result<Result<Scratch, ScratchShortage>, EngineError> {
        let mut wanted = Vec::new();
        let mut scratch = Scratch::default();
        let texels = [(2, Texel::I16), (4, Texel::I32)];
        let intermediate = self.intermediate.iter_mut().zip(&mut scratch.intermediate);
        for (index, (parts, (bytes, texel))) in intermediate.zip(texels).enumerate() {
            if prepared.has_intermediate(index == 1) {
                wanted.push((parts, Arrangement::between_passes(layout, bytes), Some(texel)));
            }
        }
        if layout
            .planes()
            .iter()
            .any(|plane| prepared.numbers(plane).is_some())
        {
            let size = |plane: &Plane| prepared.numbers(plane).unwrap_or_default();
            let arrangement = Arrangement::numbers(layout, size);
            let numbers = self.numbers.iter_mut().zip(&mut scratch.numbers);
            wanted.extend(numbers.map(|parts| (parts, arrangement, None)));
        }
        let samples = Arrangement::numbers(layout, |plane| (plane.width * plane.channels, plane.height));
        if prepared.weights_numbers() {
            wanted.push(((&mut self.weighted, &mut scratch.weighted), samples, None));
        }
        if prepared.has_weighted_sums() {
            wanted.push(((&mut self.sums, &mut scratch.sums), samples, None));
        }
        for ((picture, places), arrangement, texel) in wanted {
            if !picture.fit(device, arrangement.size())? {
                return Ok(Err(ScratchShortage(arrangement.size())));
            }
            *places = picture.places(device, &arrangement, texel.filter(|_| textures))?;
        }
        Ok(Ok(scratch))
    }
}
