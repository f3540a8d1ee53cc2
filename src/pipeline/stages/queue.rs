//! Frames through a queue between two stages: waiting ends with the run, and is measured.

use crate::frame::Frame;
use crate::pipeline::error::Halt;
use crate::pipeline::stop::Stop;
use crate::report::{Activity, StageClock};
use crossbeam_channel::{Receiver, Sender};
use std::time::Instant;

/// Sends a frame, waiting for room. False if the receiver is gone though nothing failed.
pub(super) fn send(
    output: &Sender<Frame>,
    frame: Frame,
    stop: &Stop,
    clock: &mut StageClock,
) -> Result<bool, Halt> {
    let (began, sequence) = (Instant::now(), frame.sequence);
    let sent = crossbeam_channel::select_biased! {
        recv(stop.abandoned()) -> _ => Err(Halt::Stopped),
        send(output, frame) -> sent => Ok(sent.is_ok()),
    };
    let waited = began.elapsed();
    clock.output_wait += waited;
    clock.span(Activity::QueueWait, sequence, began, waited);
    match sent {
        Ok(false) if stop.is_abandoned() => Err(Halt::Stopped),
        sent => sent,
    }
}

/// The next frame of a queue; `None` at its proper end.
pub(super) fn receive(
    input: &Receiver<Frame>,
    stop: &Stop,
    clock: &mut StageClock,
) -> Result<Option<Frame>, Halt> {
    let began = Instant::now();
    let received = crossbeam_channel::select_biased! {
        recv(stop.abandoned()) -> _ => Err(Halt::Stopped),
        recv(input) -> frame => Ok(frame.ok()),
    };
    let waited = began.elapsed();
    clock.input_wait += waited;
    if let Ok(Some(frame)) = &received {
        clock.span(Activity::InputWait, frame.sequence, began, waited);
    }
    match received {
        Ok(None) if stop.is_abandoned() => Err(Halt::Stopped),
        received => received,
    }
}
