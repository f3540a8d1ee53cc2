//! Enqueues a frame's three parts: upload, kernels and download.
//!
//! ```text
//! upload    waits for the slot's last frame: for its kernels, or its download if there is one of picture 0
//! kernels   wait for the upload, and for the download of the slot's last frame
//! download  waits for the kernels
//! ```
#![allow(unsafe_code)]

use super::{Cuda, Geometry, card_frame, planes_in};
use crate::engine::EngineError;
use crate::engine::cuda::driver::pictures::picture::Arrangement;
use crate::engine::cuda::driver::pictures::texture::sample_texel;
use crate::engine::cuda::driver::stream::{Event, Stream};
use crate::engine::cuda::kernels::variant::MemoryVariant;
use crate::engine::cuda::launch::chain::LaunchPlan;
use crate::engine::cuda::ring::graph::ChainWork;
use crate::engine::cuda::ring::overlap::Overlap;
use crate::engine::cuda::ring::slot::{self, Flight, FrameBuffers, Slot};
use std::sync::Arc;

/// A frame to enqueue.
pub(super) struct Enqueued<'a> {
    pub(super) slot: &'a mut Slot,
    pub(super) flight: &'a mut Flight,
    pub(super) buffers: &'a mut FrameBuffers,
    pub(super) geometry: &'a Geometry,
    pub(super) launch: &'a Arc<LaunchPlan>,
    pub(super) memory: MemoryVariant,
}

/// True if the work before the event's last record is not done.
fn is_pending(event: Option<&Event>) -> Result<bool, EngineError> {
    event.map_or(Ok(false), |event| event.is_done().map(|done| !done))
}

impl Cuda {
    /// Enqueues a frame's upload, its steps and its download.
    pub(super) fn enqueue(&mut self, frame: &mut Enqueued<'_>) -> Result<(), EngineError> {
        let mut work = self.work(frame)?;
        let resident = frame.buffers.input.as_ref().filter(|_| frame.buffers.is_resident);
        if let Some(card) = resident.and_then(card_frame) {
            // The decoder's stream writes it.
            card.ready().hold(&self.ring.streams.compute)?;
            work.input = planes_in(card.pointer(), &frame.geometry.device_input);
        }
        let (from, to) = self.host_memory(frame)?;
        let [upload, compute, _] = self.ring.streams.of(self.options.overlap);
        // On the stream whose end is waited for, so that the event is done when times are read.
        let first = if frame.flight.is_uploaded { upload } else { compute };
        if frame.flight.is_timed {
            self.ring.times.before_upload(&self.device, first)?;
        }
        if frame.flight.is_uploaded {
            self.enqueue_upload(frame, from)?;
        }
        let result = self.enqueue_kernels(frame, work)?;
        if frame.flight.is_downloaded {
            self.enqueue_download(frame, result, to)?;
        }
        Ok(())
    }

    /// True if the host waits after each part.
    fn is_serial(&self) -> bool {
        self.options.overlap != Overlap::Ring
    }

    /// Without overlap, waits until the stream is empty.
    fn pause(&self, stream: &Stream) -> Result<(), EngineError> {
        match self.is_serial() {
            true => stream.synchronise(),
            false => Ok(()),
        }
    }

    /// Enqueues the upload from the host's memory at `from` to the slot's first picture; the kernels wait for
    /// it.
    fn enqueue_upload(&self, frame: &mut Enqueued<'_>, from: *const u8) -> Result<(), EngineError> {
        let [upload, compute, _] = self.ring.streams.of(self.options.overlap);
        let mark = &mut frame.flight.marks.upload;
        let free = self.ring.last_in(frame.slot.id).map(|before| {
            // A result that stays on the card is copied from the slot behind the kernels.
            if before.result_in_first && before.is_downloaded {
                before.marks.download.done()
            } else {
                before.marks.kernel.done()
            }
        });
        let last = self.ring.last().map(|other| other.marks.upload.done());
        // A copy that queues behind unfinished work needs no start event: it starts when that work ends.
        let follows = !self.is_serial() && (is_pending(last)? || is_pending(free)?);
        if let Some(free) = free {
            upload.wait_for(free)?;
        }
        mark.begin(!follows, upload)?;
        // SAFETY: the flight holds the input (or the slot its copy) until the upload's end was seen; the
        // picture has room for either layout.
        unsafe {
            slot::upload(
                upload,
                from,
                &frame.geometry.host_input,
                frame.slot.pictures[0].pointer(),
                &frame.geometry.device_input,
            )?;
        }
        mark.end(upload, &self.ring.streams.clocks[0], frame.flight.is_timed)?;
        self.pause(upload)?;
        compute.wait_for(mark.done())
    }

    /// Enqueues the steps, and the copy of a result that stays on the card. Returns the address of the result
    /// in the slot.
    fn enqueue_kernels(&self, frame: &mut Enqueued<'_>, work: ChainWork) -> Result<u64, EngineError> {
        let [_, compute, _] = self.ring.streams.of(self.options.overlap);
        let before = self.ring.last_in(frame.slot.id);
        if let Some(before) = before.filter(|before| before.is_downloaded) {
            compute.wait_for(before.marks.download.done())?;
        }
        let result = frame.slot.pictures[frame.launch.step_count() % 2].pointer();
        let (mark, timed) = (&mut frame.flight.marks.kernel, frame.flight.is_timed);
        mark.begin(timed, compute)?;
        frame.slot.launches.run(work, compute)?;
        if let Some(card) = card_frame(&frame.buffers.output) {
            let size = frame.geometry.device_output.size();
            // SAFETY: the slot's picture and the frame's block are as large as the layout says, and whoever
            // writes to either waits for this stream.
            unsafe { slot::copy(compute, result, card.pointer(), size) }?;
            card.ready().record(compute)?;
        }
        mark.end(compute, compute, timed)?;
        self.pause(compute)?;
        Ok(result)
    }

    /// Enqueues the download of the result at `result` to the host's memory at `to`.
    fn enqueue_download(
        &self,
        frame: &mut Enqueued<'_>,
        result: u64,
        to: *mut u8,
    ) -> Result<(), EngineError> {
        let [_, _, download] = self.ring.streams.of(self.options.overlap);
        let timed = frame.flight.is_timed;
        let marks = &mut frame.flight.marks;
        // If the frame before was not timed, this copy records its own start.
        let is_known = self.ring.last().is_none_or(|last| last.is_timed);
        let follows = timed && is_known && !self.is_serial() && is_pending(Some(marks.kernel.done()))?;
        download.wait_for(marks.kernel.done())?;
        marks.download.begin(timed && !follows, download)?;
        let (device, host) = (&frame.geometry.device_output, &frame.geometry.host_output);
        // SAFETY: the flight holds the output (or the slot its staging memory), and nobody reads it before
        // the download's end was seen.
        unsafe { slot::download(download, result, device, to, host)? };
        marks
            .download
            .end(download, &self.ring.streams.clocks[1], timed)?;
        self.pause(download)
    }

    /// The steps of a frame, and where its pictures lie on the card.
    fn work(&mut self, frame: &mut Enqueued<'_>) -> Result<ChainWork, EngineError> {
        let Enqueued {
            slot,
            geometry,
            launch,
            memory,
            ..
        } = frame;
        let textures = *memory == MemoryVariant::Texture;
        let scratch = self.scratch(launch, &geometry.device_output, textures)?;
        let texel = textures.then(|| sample_texel(geometry.host_input.format()));
        // The first step reads a picture that lies as the input does; all others lie as the output does.
        let first = Arrangement::of(&geometry.device_input);
        let later = Arrangement::of(&geometry.device_output);
        let input = slot.pictures[0].device_planes(&self.device, &first, texel)?;
        // From the second step on the first picture lies as the output does.
        let texel_of_later = if first == later { texel } else { None };
        let pictures = [
            slot.pictures[0].device_planes(&self.device, &later, texel_of_later)?,
            slot.pictures[1].device_planes(&self.device, &later, texel)?,
        ];
        Ok(ChainWork {
            launch: Arc::clone(launch),
            layout: geometry.device_output,
            input,
            pictures,
            scratch,
        })
    }

    /// The host's memory that a frame is uploaded from and downloaded to: its buffers where they are
    /// page-locked or nothing overlaps, else the flight's staging memory.
    fn host_memory(&self, frame: &mut Enqueued<'_>) -> Result<(*const u8, *mut u8), EngineError> {
        let Enqueued {
            flight,
            buffers,
            geometry,
            ..
        } = frame;
        let from = match &buffers.input {
            Some(_) if buffers.is_resident => std::ptr::null(),
            Some(input) if self.options.overlap == Overlap::Ring && !input.is_pinned() => {
                flight.stage_input(&self.device, input.bytes())?
            }
            Some(input) => input.bytes().as_ptr(),
            None => [].as_ptr(),
        };
        let to = if !flight.is_downloaded {
            std::ptr::null_mut()
        } else if buffers.staged {
            flight.stage_output(&self.device, geometry.host_output.size())?
        } else {
            buffers.output.bytes_mut().as_mut_ptr()
        };
        Ok((from, to))
    }
}
