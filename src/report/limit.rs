//! The bottleneck: which stage limits the run.

use super::{DeviceReport, Measurements, Stage};
use serde::Serialize;

/// Below this busy share no single stage limits the run.
const CLEAR: f64 = 0.75;

/// The stage that limits the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// The stage with the largest busy share.
    pub stage: Stage,
    /// Its busy share, 0 to 1.
    pub busy_share: f64,
    /// The same in words, and the consequence.
    pub sentence: String,
    /// What would make the run faster, if whoever asked for the run knows something.
    pub advice: Option<String>,
}

impl Limit {
    /// True if the stage limits the run, and is not only the busiest.
    pub fn is_clear(&self) -> bool {
        self.busy_share >= CLEAR
    }

    /// The sentence, and the advice behind it.
    pub(crate) fn words(&self) -> String {
        match &self.advice {
            Some(advice) => format!("{}; {advice}", self.sentence),
            None => self.sentence.clone(),
        }
    }

    /// Finds the stage with the largest busy share; for a device engine, the share of its slowest part
    /// counts, because the engine's thread only waits for the device. `None` if no frame was done.
    pub fn find(measured: &Measurements, device: Option<&DeviceReport>) -> Option<Limit> {
        if measured.frames == 0 {
            return None;
        }
        let share = |stage: Stage| {
            let own = measured.stage(stage).busy_share(measured.wall);
            match (stage, device) {
                (Stage::Engine, Some(d)) if measured.wall.as_secs_f64() > 0.0 => {
                    let slowest = d.upload.seconds.max(d.kernel.seconds).max(d.download.seconds);
                    own.min(slowest / measured.wall.as_secs_f64())
                }
                _ => own,
            }
        };
        let (stage, busy_share) = Stage::ALL
            .map(|stage| (stage, share(stage)))
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        let percent = busy_share * 100.0;
        let workers = measured.stage(stage).workers;
        let decoders = &measured.decoders;
        let threads = match (stage, decoders.first()) {
            (Stage::Decode, Some(first)) if decoders.len() > 1 => {
                format!(" in {} decoders ({})", decoders.len(), first.place)
            }
            _ if workers > 1 => format!(" on {workers} threads"),
            _ => String::new(),
        };
        let sentence = if busy_share < CLEAR {
            format!("no stage limits alone; {stage} is the busiest, {percent:.0}% of the time{threads}")
        } else {
            match (stage, device) {
                (Stage::Engine, Some(d)) => format!(
                    "engine limits: the device's {} is busy {percent:.0}% of the time",
                    d.slowest()
                ),
                _ => format!("{stage} limits: it is busy {percent:.0}% of the time{threads}"),
            }
        };
        Some(Limit {
            stage,
            busy_share,
            sentence,
            advice: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::DeviceTimes;
    use crate::report::StageClock;
    use std::time::Duration;

    fn measured(busy: [(usize, f64); 3]) -> Measurements {
        Measurements {
            frames: 10,
            wall: Duration::from_secs(10),
            stages: busy.map(|(workers, seconds)| StageClock {
                workers,
                frames: 10,
                busy: Duration::from_secs_f64(seconds),
                ..StageClock::default()
            }),
            ..Measurements::default()
        }
    }

    #[test]
    fn the_busiest_stage_limits() {
        let limit = Limit::find(&measured([(1, 3.0), (1, 4.0), (1, 9.9)]), None).unwrap();
        assert_eq!(limit.stage, Stage::Encode);
        assert_eq!(limit.sentence, "encode limits: it is busy 99% of the time");
    }

    #[test]
    fn workers_share_the_work() {
        // 12 s over 4 threads are a smaller share than 9 s on one.
        let limit = Limit::find(&measured([(4, 12.0), (1, 9.0), (1, 1.0)]), None).unwrap();
        assert_eq!(limit.stage, Stage::Engine);
    }

    #[test]
    fn no_stage_is_blamed_without_a_clear_lead() {
        let limit = Limit::find(&measured([(1, 3.0), (1, 4.0), (1, 3.0)]), None).unwrap();
        assert!(
            limit.sentence.starts_with("no stage limits"),
            "{}",
            limit.sentence
        );
    }

    #[test]
    fn a_thread_that_waits_for_an_idle_device_is_not_the_limit() {
        let device = DeviceReport::new(&DeviceTimes {
            totals: [1.0, 2.0, 1.0],
            wall: 9.0,
            ..DeviceTimes::default()
        });
        let limit = Limit::find(&measured([(1, 9.0), (1, 9.8), (1, 1.0)]), Some(&device)).unwrap();
        assert_eq!(limit.stage, Stage::Decode);
        assert_eq!(Limit::find(&Measurements::default(), None), None);
    }
}
