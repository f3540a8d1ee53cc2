//! How much is measured for one cell.

use crate::engine::cuda::KernelEffort;
use std::time::Duration;

/// How much is measured for one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// How long.
    pub time: Duration,
    /// The least and the largest number of times taken, regardless of duration.
    pub rounds: (usize, usize),
}

impl Effort {
    /// What figures are published from.
    pub const FULL: Effort = Effort {
        time: Duration::from_millis(150),
        rounds: (9, 300),
    };
    /// A first look.
    pub const QUICK: Effort = Effort {
        time: Duration::from_millis(15),
        rounds: (3, 30),
    };

    pub(crate) fn on_card(self) -> KernelEffort {
        KernelEffort {
            time: self.time,
            rounds: self.rounds,
        }
    }
}
