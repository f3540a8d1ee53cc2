//! The ring's slots on the card, and the frames in flight through them.
//!
//! ```text
//! Slot     two pictures on the card, textures over them, a graph       as many as --slots
//! Flight   marks of upload, kernels, download; the frame's buffers     a few more
//! ```
//!
//! A flight keeps the frame's memory on the host until the card has read it and written to it.
#![allow(unsafe_code)]

use super::graph::Launches;
use crate::engine::EngineError;
use crate::engine::cuda::driver::device::{Device, check};
use crate::engine::cuda::driver::memory::{PinnedMemory, no_copy};
use crate::engine::cuda::driver::pictures::picture::Picture;
use crate::engine::cuda::driver::stream::{Event, Stream};
use crate::frame::{AllocationError, Frame, Layout, Memory};
use cudarc::driver::sys;
use rayon::prelude::*;
use std::sync::Arc;

/// Start and end of one part (upload, kernels or download) of a frame's path.
pub(crate) struct Mark {
    begin: Event,
    /// The event that other streams wait for. A timed event would delay the next copy by some microseconds,
    /// so copies have an untimed one.
    done: Option<Event>,
    end: Event,
    has_begin: bool,
}

impl Mark {
    /// The mark of a copy.
    fn of_copy(device: &Arc<Device>) -> Result<Mark, EngineError> {
        Ok(Mark {
            done: Some(Event::untimed(device)?),
            ..Mark::of_kernels(device)?
        })
    }

    /// The mark of kernels, whose timed events cost nothing measurable.
    fn of_kernels(device: &Arc<Device>) -> Result<Mark, EngineError> {
        Ok(Mark {
            begin: Event::new(device)?,
            done: None,
            end: Event::new(device)?,
            has_begin: false,
        })
    }

    /// Records the start, unless this part starts exactly when the work that it waits for ends
    /// (`stands_alone` false).
    pub(crate) fn begin(&mut self, stands_alone: bool, stream: &Stream) -> Result<(), EngineError> {
        self.has_begin = stands_alone;
        if stands_alone {
            self.begin.record(stream)
        } else {
            Ok(())
        }
    }

    /// Records the end of what was enqueued on `stream`. A copy's time is taken on `clock`, a stream with
    /// nothing else to do, if it is `timed`.
    pub(crate) fn end(&self, stream: &Stream, clock: &Stream, timed: bool) -> Result<(), EngineError> {
        let Some(done) = &self.done else {
            return self.end.record(stream);
        };
        done.record(stream)?;
        if !timed {
            return Ok(());
        }
        clock.wait_for(done)?;
        self.end.record(clock)
    }

    /// The event that others wait for.
    pub(crate) fn done(&self) -> &Event {
        self.done.as_ref().unwrap_or(&self.end)
    }

    /// The time of the start, if it was recorded.
    pub(crate) fn begin_time(&self) -> Option<&Event> {
        self.has_begin.then_some(&self.begin)
    }

    /// The time of the end, a moment after [`Mark::done`].
    pub(crate) fn end_time(&self) -> &Event {
        &self.end
    }
}

/// Start and end of each part of a frame's path.
pub(crate) struct Marks {
    pub(crate) upload: Mark,
    pub(crate) kernel: Mark,
    pub(crate) download: Mark,
}

impl Marks {
    fn new(device: &Arc<Device>) -> Result<Marks, EngineError> {
        Ok(Marks {
            upload: Mark::of_copy(device)?,
            kernel: Mark::of_kernels(device)?,
            download: Mark::of_copy(device)?,
        })
    }
}

/// What one frame moved and computed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Amount {
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) samples: u64,
}

/// A frame's memory while the card works on it.
pub(crate) struct FrameBuffers {
    /// Held until its upload is done; if it is filtered in place, until the frame is done.
    pub(crate) input: Option<Frame>,
    /// True if the input lies on the card.
    pub(crate) is_resident: bool,
    pub(crate) output: Frame,
    /// True if the output's memory is not page-locked, so that the result lies in the flight's staging
    /// memory.
    pub(crate) staged: bool,
    pub(crate) amount: Amount,
}

/// A frame's path through the card, on the host's side. There are a few more flights than slots, so that the
/// next frame is enqueued before the host has seen the last one's end; waits on the card keep a slot's old
/// frame and its new one apart.
pub(crate) struct Flight {
    pub(crate) marks: Marks,
    /// The slot that it uses.
    pub(crate) slot: usize,
    /// True if the result lies in the slot's first picture, where the next frame is uploaded to.
    pub(crate) result_in_first: bool,
    /// False if the frame lies on the card already, or its result stays there. The mark of a copy that is not
    /// made holds no times.
    pub(crate) is_uploaded: bool,
    pub(crate) is_downloaded: bool,
    /// False if its times are not taken.
    pub(crate) is_timed: bool,
    pub(crate) buffers: Option<FrameBuffers>,
    staging: [Option<PinnedMemory>; 2],
}

/// The card's memory for one frame.
pub(crate) struct Slot {
    pub(crate) id: usize,
    pub(crate) pictures: [Picture; 2],
    /// Layouts of the last frame's input and output.
    pub(crate) layouts: Option<(Layout, Layout)>,
    pub(crate) launches: Launches,
}

impl Slot {
    pub(crate) fn new(id: usize) -> Slot {
        Slot {
            id,
            pictures: Default::default(),
            layouts: None,
            launches: Launches::default(),
        }
    }

    /// Grows both pictures to `len` bytes; false if the card's memory is short. Nothing may be using them.
    pub(crate) fn fit(&mut self, device: &Arc<Device>, len: usize) -> Result<bool, EngineError> {
        for picture in &mut self.pictures {
            if !picture.fit(device, len)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Flight {
    pub(crate) fn new(device: &Arc<Device>) -> Result<Flight, EngineError> {
        Ok(Flight {
            marks: Marks::new(device)?,
            slot: 0,
            result_in_first: false,
            is_uploaded: true,
            is_downloaded: true,
            is_timed: true,
            buffers: None,
            staging: [None, None],
        })
    }

    /// Gives the input's memory back if the card has read it; true once it has. A frame that lies on the card
    /// is held until the frame is done, which saves a driver call.
    pub(crate) fn release_input(&mut self) -> Result<bool, EngineError> {
        let Some(buffers) = self.buffers.as_mut().filter(|buffers| !buffers.is_resident) else {
            return Ok(true);
        };
        if buffers.input.is_some() && self.marks.upload.done().is_done()? {
            buffers.input = None;
        }
        Ok(buffers.input.is_none())
    }

    /// Copies the input to the flight's page-locked memory, from which the upload overlaps other work.
    pub(crate) fn stage_input(
        &mut self,
        device: &Arc<Device>,
        bytes: &[u8],
    ) -> Result<*const u8, AllocationError> {
        let staging = grown(&mut self.staging[0], device, bytes.len())?;
        copy_parallel(bytes, &mut staging.bytes_mut()[..bytes.len()]);
        Ok(staging.bytes().as_ptr())
    }

    /// Page-locked memory for a result of `len` bytes whose frame's own memory is ordinary.
    pub(crate) fn stage_output(
        &mut self,
        device: &Arc<Device>,
        len: usize,
    ) -> Result<*mut u8, AllocationError> {
        Ok(grown(&mut self.staging[1], device, len)?.bytes_mut().as_mut_ptr())
    }

    /// Copies a staged result to its frame.
    pub(crate) fn unstage(&self, output: &mut Frame) {
        if let Some(staging) = &self.staging[1] {
            let out = output.bytes_mut();
            copy_parallel(&staging.bytes()[..out.len()], out);
        }
    }
}

fn grown<'a>(
    staging: &'a mut Option<PinnedMemory>,
    device: &Arc<Device>,
    len: usize,
) -> Result<&'a mut PinnedMemory, AllocationError> {
    let block = match staging.take() {
        Some(block) if block.bytes().len() >= len => block,
        _ => PinnedMemory::new(device, len, false)?,
    };
    Ok(staging.insert(block))
}

/// Copies large blocks on several threads: one thread reaches a fraction of the bus's rate.
fn copy_parallel(from: &[u8], to: &mut [u8]) {
    const PART: usize = 1 << 19;
    if from.len() < 2 * PART {
        to.copy_from_slice(from);
        return;
    }
    to.par_chunks_mut(PART)
        .zip(from.par_chunks(PART))
        .for_each(|(to, from)| to.copy_from_slice(from));
}

/// Enqueues the upload of a picture from the host at `from` to the card at `to`.
///
/// # Safety
/// `from` must stay readable for `host.size()` bytes until the copy is done, and `to` must have room for
/// `device.size()` bytes.
pub(crate) unsafe fn upload(
    stream: &Stream,
    from: *const u8,
    host: &Layout,
    to: u64,
    device: &Layout,
) -> Result<(), EngineError> {
    let doing = "uploading a frame to the CUDA device";
    if host == device {
        // SAFETY: `from` is readable and `to` has room for the layout's bytes until the copy is done, by the
        // contract of `upload`.
        return check(doing, unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, from.cast(), host.size(), stream.handle())
        });
    }
    for (index, (h, d)) in host.planes().iter().zip(device.planes()).enumerate() {
        let copy = sys::CUDA_MEMCPY2D {
            // SAFETY: the plane lies in the frame's block.
            srcHost: unsafe { from.add(h.offset) }.cast(),
            srcPitch: h.stride,
            dstMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
            dstDevice: to + d.offset as u64,
            dstPitch: d.stride,
            WidthInBytes: host.row_bytes(index),
            Height: h.height,
            ..no_copy()
        };
        // SAFETY: by the contract of `upload` both pictures live until the copy is done, and by their layouts
        // both planes hold that many rows at their pitches.
        check(doing, unsafe {
            sys::cuMemcpy2DAsync_v2(&raw const copy, stream.handle())
        })?;
    }
    Ok(())
}

/// Enqueues a copy of `len` bytes from one place on the card to another.
///
/// # Safety
/// Both hold `len` bytes of the card's memory until the copy is done; they do not overlap, and nobody uses
/// the second until then.
pub(crate) unsafe fn copy(stream: &Stream, from: u64, to: u64, len: usize) -> Result<(), EngineError> {
    // SAFETY: both places hold `len` bytes of the card's memory, apart from each other, until the copy is
    // done, by the contract of `copy`.
    check("keeping a frame on the CUDA device", unsafe {
        sys::cuMemcpyDtoDAsync_v2(to, from, len, stream.handle())
    })
}

/// Enqueues the download of a picture from the card at `from` to the host at `to`.
///
/// # Safety
/// `to` must stay writable for `host.size()` bytes, and nobody may read it, until the copy is done.
pub(crate) unsafe fn download(
    stream: &Stream,
    from: u64,
    device: &Layout,
    to: *mut u8,
    host: &Layout,
) -> Result<(), EngineError> {
    let doing = "downloading a frame from the CUDA device";
    if host == device {
        // SAFETY: `to` stays writable for the layout's bytes, and nobody reads it, until the copy is done, by
        // the contract of `download`.
        return check(doing, unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.cast(), from, host.size(), stream.handle())
        });
    }
    for (index, (h, d)) in host.planes().iter().zip(device.planes()).enumerate() {
        let copy = sys::CUDA_MEMCPY2D {
            srcMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
            srcDevice: from + d.offset as u64,
            srcPitch: d.stride,
            // SAFETY: the plane lies in the frame's block.
            dstHost: unsafe { to.add(h.offset) }.cast(),
            dstPitch: h.stride,
            WidthInBytes: host.row_bytes(index),
            Height: h.height,
            ..no_copy()
        };
        // SAFETY: by the contract of `download` both pictures live until the copy is done, and by their
        // layouts both planes hold that many rows at their pitches.
        check(doing, unsafe {
            sys::cuMemcpy2DAsync_v2(&raw const copy, stream.handle())
        })?;
    }
    Ok(())
}
