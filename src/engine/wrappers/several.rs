//! Several engines that take frames in turn, such as one for each card of a machine.
//!
//! ```text
//!   0 1 2 3 4 5 ->  engine 0:  0 2 4     each with as many in flight as it has room for
//!                   engine 1:  1 3 5     collected in the same order
//! ```
//!
//! A frame that lies on the device of one engine goes to that engine, whichever is next.
//!
//! All engines give the same bits, so the choice of the engine changes only the time.

use crate::engine::{DeviceTimes, Engine, EngineError, Ranges};
use crate::frame::{Allocator, Buffer, Colour, DeviceHandle, Frame, Layout, PixelFormat, Remarks};
use std::collections::VecDeque;
use std::sync::Arc;

/// Engines side by side, of one chain with the same options.
pub struct Several {
    /// At least one.
    engines: Vec<Box<dyn Engine>>,
    /// Index of the engine that takes the next frame.
    submits: usize,
    /// Index of the engine that took the last frame, and explains it.
    explains: usize,
    /// Indices of the engines that have the frames in flight, the oldest first.
    in_flight: VecDeque<usize>,
}

impl Several {
    /// `first` and `others`, in this order.
    pub fn new(first: Box<dyn Engine>, others: impl IntoIterator<Item = Box<dyn Engine>>) -> Several {
        Several {
            engines: std::iter::once(first).chain(others).collect(),
            submits: 0,
            explains: 0,
            in_flight: VecDeque::new(),
        }
    }

    fn after(&self, turn: usize) -> usize {
        (turn + 1) % self.engines.len()
    }
}

impl Engine for Several {
    fn name(&self) -> &'static str {
        self.engines[0].name()
    }

    fn description(&self) -> String {
        match self.engines.len() {
            1 => self.engines[0].description(),
            n => format!("{n} in turn: {}", self.engines[0].description()),
        }
    }

    fn depth(&self) -> usize {
        // Each takes as many as the shallowest, so that the next engine in turn always has room.
        let least = self.engines.iter().map(|engine| engine.depth().max(1)).min();
        least.unwrap_or(1) * self.engines.len()
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        self.engines[0].input_allocator()
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        self.engines[0].output_allocator()
    }

    fn output_size(&self, format: PixelFormat, width: usize, height: usize) -> (usize, usize) {
        self.engines[0].output_size(format, width, height)
    }

    fn own_bytes(&self, frame: &Layout) -> u128 {
        self.engines.iter().map(|engine| engine.own_bytes(frame)).sum()
    }

    fn expect(&mut self, frame: &Layout, colour: &Colour) {
        for engine in &mut self.engines {
            engine.expect(frame, colour);
        }
    }

    fn result_device(&self) -> Result<DeviceHandle, &'static str> {
        match &self.engines[..] {
            [engine] => engine.result_device(),
            _ => Err("several cards filter frames in turn"),
        }
    }

    fn leave_results(&mut self, on_device: bool) {
        for engine in &mut self.engines {
            engine.leave_results(on_device);
        }
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let home = self.engines.iter().position(|engine| engine.is_home_of(&input));
        let turn = home.unwrap_or(self.submits);
        self.engines[turn].submit(input, output, row_alignment)?;
        self.explains = turn;
        self.submits = self.after(turn);
        self.in_flight.push_back(turn);
        Ok(())
    }

    fn explanation(&mut self) -> Vec<String> {
        // They would all say the same.
        let lines = self.engines[self.explains].explanation();
        if self.explains == 0 { lines } else { Vec::new() }
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        match self.in_flight.pop_front() {
            Some(turn) => self.engines[turn].collect(),
            None => Ok(None),
        }
    }

    fn ranges(&self) -> Option<Arc<dyn Ranges>> {
        self.engines[0].ranges()
    }

    fn device_times(&mut self) -> Option<DeviceTimes> {
        let times = self.engines.iter_mut().filter_map(|engine| engine.device_times());
        times.reduce(together)
    }

    fn restart(&mut self) -> Result<(), EngineError> {
        self.submits = 0;
        self.in_flight.clear();
        self.engines.iter_mut().try_for_each(|engine| engine.restart())
    }

    fn remarks(&mut self, whole: bool) -> Remarks {
        let mut all = Remarks::default();
        for engine in &mut self.engines {
            let mut remarks = engine.remarks(whole);
            remarks
                .warnings
                .retain(|sentence| !all.warnings.contains(sentence));
            remarks.notes.retain(|sentence| !all.notes.contains(sentence));
            all.append(remarks);
        }
        all
    }
}

/// Joins the times of two devices to times of one device that has all their slots. Both work most of the
/// time, so the longer of two totals stands for the time in which at least one of them worked.
fn together(mut a: DeviceTimes, b: DeviceTimes) -> DeviceTimes {
    let later = match (a.origin, b.origin) {
        (Some(a), Some(b)) => match b.checked_duration_since(a) {
            Some(later) => later.as_secs_f64(),
            None => -a.duration_since(b).as_secs_f64(),
        },
        _ => 0.0,
    };
    let moved = |(begin, end): (f64, f64)| (begin + later, end + later);
    for mut frame in b.frames {
        frame.slot += a.slots;
        frame.upload = moved(frame.upload);
        frame.kernel = moved(frame.kernel);
        frame.download = moved(frame.download);
        a.frames.push(frame);
    }
    a.frames.sort_by_key(|frame| frame.sequence);
    a.device = format!("{} + {}", a.device, b.device);
    a.slots += b.slots;
    a.count += b.count;
    a.untimed += b.untimed;
    for (total, other) in a.totals.iter_mut().zip(b.totals) {
        *total = total.max(other);
    }
    a.wall = a.wall.max(b.wall + later);
    a.bytes_up += b.bytes_up;
    a.bytes_down += b.bytes_down;
    a.samples += b.samples;
    if let (Some(all), Some(others)) = (&mut a.histograms, &b.histograms) {
        for (all, other) in all.iter_mut().zip(others) {
            // Only a histogram that cannot grow refuses; then its times count less.
            let _ = all.add(other);
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::none::NoFilter;
    use crate::frame::Pageable;
    use std::time::{Duration, Instant};

    #[test]
    fn frames_come_back_in_order_from_engines_in_turn() {
        let engine = || -> Box<dyn Engine> { Box::new(NoFilter::default()) };
        let mut several = Several::new(engine(), [engine(), engine()]);
        assert_eq!(several.depth(), 3);
        let buffer = || Buffer::unpooled(Pageable.allocate(16).unwrap());
        let layout = Layout::new(PixelFormat::GRAY, 4, 4, 1).unwrap();
        let mut next = 0;
        for round in 0..5 {
            for k in 0..1 + round % 3 {
                let mut frame = Frame::new(layout, buffer()).unwrap();
                frame.sequence = next + k;
                several.submit(frame, buffer(), 1).unwrap();
            }
            for _ in 0..1 + round % 3 {
                assert_eq!(several.collect().unwrap().map(|frame| frame.sequence), Some(next));
                next += 1;
            }
            assert!(several.collect().unwrap().is_none());
        }
    }

    /// An engine for frames of a number of its own, which it writes into their second pixel.
    struct At(u8, NoFilter);

    impl Engine for At {
        fn name(&self) -> &'static str {
            "at"
        }
        fn description(&self) -> String {
            String::new()
        }
        fn input_allocator(&self) -> Arc<dyn Allocator> {
            Arc::new(Pageable)
        }
        fn output_allocator(&self) -> Arc<dyn Allocator> {
            Arc::new(Pageable)
        }
        fn is_home_of(&self, frame: &Frame) -> bool {
            frame.bytes()[0] == self.0
        }
        fn submit(&mut self, mut input: Frame, output: Buffer, align: usize) -> Result<(), EngineError> {
            input.bytes_mut()[1] = self.0;
            self.1.submit(input, output, align)
        }
        fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
            self.1.collect()
        }
    }

    #[test]
    fn frames_go_where_they_lie_and_come_back_in_order() {
        let engine = |number| -> Box<dyn Engine> { Box::new(At(number, NoFilter::default())) };
        let mut several = Several::new(engine(1), [engine(2)]);
        let buffer = || Buffer::unpooled(Pageable.allocate(16).unwrap());
        let layout = Layout::new(PixelFormat::GRAY, 4, 4, 1).unwrap();
        // Stretches of one and of the other; those that lie nowhere take turns.
        let homes = [1, 1, 1, 2, 2, 1, 0, 0, 0, 2];
        for (sequence, home) in homes.into_iter().enumerate() {
            let mut frame = Frame::new(layout, buffer()).unwrap();
            frame.sequence = sequence as u64;
            frame.bytes_mut().fill(0);
            frame.bytes_mut()[0] = home;
            several.submit(frame, buffer(), 1).unwrap();
        }
        for (sequence, by) in [1, 1, 1, 2, 2, 1, 2, 1, 2, 2].into_iter().enumerate() {
            let frame = several.collect().unwrap().unwrap();
            assert_eq!((frame.sequence, frame.bytes()[1]), (sequence as u64, by));
        }
        assert!(several.collect().unwrap().is_none());
    }

    #[test]
    fn times_of_two_devices_are_on_one_clock() {
        let now = Instant::now();
        let times = |device: &str, origin, sequence, seconds: f64| DeviceTimes {
            device: device.to_owned(),
            slots: 2,
            count: 1,
            totals: [seconds; 3],
            origin: Some(origin),
            wall: seconds,
            bytes_up: 10,
            frames: vec![crate::engine::FrameTimes {
                sequence,
                slot: 1,
                upload: (0.0, 1.0),
                kernel: (1.0, 2.0),
                download: (2.0, 3.0),
                bytes_up: 10,
                bytes_down: 10,
                samples: 10,
            }],
            ..DeviceTimes::default()
        };
        let later = now + Duration::from_secs(1);
        let both = together(times("a", now, 1, 3.0), times("b", later, 0, 4.0));
        assert_eq!(
            (both.slots, both.count, both.bytes_up, both.wall),
            (4, 2, 20, 5.0)
        );
        assert_eq!(both.totals, [4.0; 3]);
        assert_eq!(
            (
                both.frames[0].sequence,
                both.frames[0].slot,
                both.frames[0].upload
            ),
            (0, 3, (1.0, 2.0))
        );
    }
}
