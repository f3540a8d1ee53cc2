//! The ring: several frames in flight through the card at a time, each in a slot of its memory.
//!
//! While one frame is filtered, the next one is uploaded and the one before it downloaded. With three slots:
//!
//! ```text
//! upload    | 0 | 1 | 2 | 3 | 4 |
//! compute       | 0 | 1 | 2 | 3 | 4 |
//! download          | 0 | 1 | 2 | 3 | 4 |
//!
//! frame 3 takes the slot of frame 0: its upload waits for the kernels of 0, its kernels for the download of
//! 0
//!
//! slot      picture 0  <- upload     picture 1  <- step 0     a chain's steps take turns between the two
//! flight    the frame's memory and events, on the host's side; there are a few more flights than slots
//! ```
//!
//! `graph` begins a slot's launches with one call, `times` measures by the card's clock when each part ran,
//! and `overlap` names the ways without a ring, which are slower and there to be compared with it.

pub(crate) mod graph;
pub(crate) mod overlap;
pub(crate) mod slot;
pub(crate) mod times;

use super::driver::device::Device;
use super::driver::stream::Stream;
use crate::engine::EngineError;
use crate::frame::{Frame, Layout};
use overlap::Overlap;
use slot::{Flight, Slot};
use std::collections::VecDeque;
use std::sync::Arc;
use times::Times;

/// A stream for uploads, one for kernels, one for downloads, and the clocks.
pub(crate) struct Streams {
    pub(crate) upload: Stream,
    pub(crate) compute: Stream,
    pub(crate) download: Stream,
    /// They take the times of uploads and downloads, so that the copies' own streams are not held up.
    pub(crate) clocks: [Stream; 2],
}

impl Streams {
    fn new(device: &Arc<Device>) -> Result<Streams, EngineError> {
        Ok(Streams {
            upload: Stream::new(device)?,
            compute: Stream::new(device)?,
            download: Stream::new(device)?,
            clocks: [Stream::new(device)?, Stream::new(device)?],
        })
    }

    /// The streams of upload, kernels and download. Without overlap all three are one, and the host waits
    /// after each part.
    pub(crate) fn of(&self, overlap: Overlap) -> [&Stream; 3] {
        match overlap {
            Overlap::Ring => [&self.upload, &self.compute, &self.download],
            Overlap::SerialPinned | Overlap::SerialPageable => [&self.compute; 3],
        }
    }
}

/// The slots and the frames in flight through them.
pub(crate) struct Ring {
    /// Least recently used first.
    slots: VecDeque<Slot>,
    idle: Vec<Flight>,
    /// The oldest first.
    in_flight: VecDeque<Flight>,
    ready: VecDeque<Frame>,
    pub(crate) times: Times,
    pub(crate) streams: Streams,
    device: Arc<Device>,
}

impl Ring {
    /// A ring of `slots` slots and `flights` flights.
    pub(crate) fn new(device: &Arc<Device>, slots: usize, flights: usize) -> Result<Ring, EngineError> {
        let idle = (0..flights).map(|_| Flight::new(device));
        Ok(Ring {
            slots: (0..slots).map(Slot::new).collect(),
            idle: idle.collect::<Result<_, _>>()?,
            in_flight: VecDeque::new(),
            ready: VecDeque::new(),
            times: Times::new(device),
            streams: Streams::new(device)?,
            device: Arc::clone(device),
        })
    }

    /// Slots, of which the card may have had memory for fewer than were asked for.
    pub(crate) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Frames that may be in flight at a time.
    pub(crate) fn depth(&self) -> usize {
        self.idle.len() + self.in_flight.len()
    }

    /// The next slot, with room for `need` bytes in each picture, for frames of these layouts as they are
    /// uploaded and as they are downloaded. Slots for which the card lacks memory are given up; `None` if
    /// none is left.
    pub(crate) fn take_slot(
        &mut self,
        need: usize,
        layouts: (Layout, Layout),
    ) -> Result<Option<Slot>, EngineError> {
        while let Some(mut slot) = self.slots.pop_front() {
            if slot.layouts != Some(layouts) {
                // Memory or textures are about to be made anew, and may still be in use.
                while self.in_flight.iter().any(|flight| flight.slot == slot.id) {
                    self.finish_oldest()?;
                }
                if !slot.fit(&self.device, need)? {
                    drop(slot);
                    tracing::warn!(
                        slots = self.slots.len(),
                        "the card's memory is short, so the ring has fewer slots"
                    );
                    continue;
                }
                slot.layouts = Some(layouts);
            }
            return Ok(Some(slot));
        }
        Ok(None)
    }

    /// An idle flight; waits for the oldest frame if there is none.
    pub(crate) fn take_flight(&mut self) -> Result<Flight, EngineError> {
        loop {
            match self.idle.pop() {
                Some(flight) => return Ok(flight),
                None => self.finish_oldest()?,
            }
        }
    }

    /// Takes back the slot of a frame that was enqueued, or could not be.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        self.slots.push_back(slot);
    }

    /// Takes the flight of a frame that was enqueued.
    pub(crate) fn push_in_flight(&mut self, flight: Flight) {
        self.in_flight.push_back(flight);
    }

    /// Takes back the flight of a frame that could not be enqueued.
    pub(crate) fn push_idle(&mut self, flight: Flight) {
        self.idle.push(flight);
    }

    /// The last frame in flight.
    pub(crate) fn last(&self) -> Option<&Flight> {
        self.in_flight.back()
    }

    /// The last frame in flight through the slot with this number.
    pub(crate) fn last_in(&self, slot: usize) -> Option<&Flight> {
        self.in_flight.iter().rfind(|flight| flight.slot == slot)
    }

    /// Waits for the oldest frame in flight and moves it to those that are ready.
    fn finish_oldest(&mut self) -> Result<(), EngineError> {
        let Some(mut flight) = self.in_flight.pop_front() else {
            return Ok(());
        };
        let marks = &flight.marks;
        let last = match (flight.is_downloaded, flight.is_timed) {
            (true, true) => marks.download.end_time(),
            (true, false) => marks.download.done(),
            (false, _) => marks.kernel.end_time(),
        };
        // The upload ended long before, but its time is taken on another stream. Where nothing is uploaded
        // the card's decoders are at work, whose threads need the driver.
        let ended = match flight.is_uploaded {
            true => last.wait().and_then(|()| marks.upload.end_time().wait()),
            false => last.wait_asleep(),
        };
        if let Err(error) = ended {
            // The copies may not have ended, and the frame's memory must not go back to its pool before they
            // have.
            self.wait_for_everything();
            self.idle.push(flight);
            return Err(error);
        }
        if let Some(mut buffers) = flight.buffers.take() {
            if buffers.staged {
                flight.unstage(&mut buffers.output);
            }
            match flight.is_timed {
                true => self.times.add(buffers.output.sequence, &flight, buffers.amount)?,
                false => self.times.pass(buffers.amount),
            }
            self.ready.push_back(buffers.output);
        }
        self.idle.push(flight);
        Ok(())
    }

    /// Gives back the memory of inputs that the card has read. They are read in order, so that the search
    /// ends at the first that is not.
    pub(crate) fn release_inputs(&mut self) -> Result<(), EngineError> {
        for flight in &mut self.in_flight {
            if !flight.release_input()? {
                break;
            }
        }
        Ok(())
    }

    /// The next frame; waits for it. `None` if none is in flight.
    pub(crate) fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        if self.ready.is_empty() {
            self.finish_oldest()?;
        }
        self.release_inputs()?;
        Ok(self.ready.pop_front())
    }

    /// Waits until all streams are empty.
    pub(crate) fn wait_for_everything(&self) {
        if self.device.bind().is_ok() {
            let Streams {
                upload,
                compute,
                download,
                clocks,
            } = &self.streams;
            for stream in [upload, compute, download].into_iter().chain(clocks) {
                if let Err(error) = stream.synchronise() {
                    tracing::debug!("while stopping: {error}");
                }
            }
        }
    }
}
