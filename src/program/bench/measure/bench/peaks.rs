//! The peak rates that cells are held against, each measured when the first cell needs it.
//!
//! ```text
//! a CPU's cell             copies of pictures of the same size by as many threads
//! kernels on the card      copies within the card's memory; multiply-adds of three kinds
//! with transfers           copies from and to the host's memory at once
//! ```

use super::Bench;
use crate::engine::cuda::{ArithmeticRates, duplex};
use crate::program::bench::measure::case::Case;
use crate::program::bench::measure::error::BenchError;
use crate::program::bench::measure::sweep::{Peak, PeakKind};
use crate::program::bench::measure::timing::copies::time_copies;
use crate::program::bench::measure::timing::spread::Spread;
use std::time::Duration;

impl Bench {
    fn known_peak(&self, engine: &str, kind: PeakKind, bytes: u64, threads: Option<usize>) -> Option<f64> {
        self.peaks
            .iter()
            .find(|c| c.engine == engine && c.kind == kind && c.bytes == Some(bytes) && c.threads == threads)
            .map(|c| c.giga_per_second)
    }

    pub(super) fn host_copy(&mut self, bytes: usize, threads: usize) -> Result<f64, BenchError> {
        let threads = threads.max(1);
        if let Some(known) = self.known_peak("cpu", PeakKind::Copy, bytes as u64, Some(threads)) {
            return Ok(known);
        }
        let copies = time_copies(bytes, threads, self.cold_bytes, self.effort)?;
        let giga_per_second = 2.0 * bytes as f64 / 1e9 / (copies.median.max(1e-6) / 1e3);
        self.peaks.push(Peak {
            engine: "cpu".to_owned(),
            kind: PeakKind::Copy,
            bytes: Some(bytes as u64),
            threads: Some(threads),
            giga_per_second,
            method: "copies of pictures that no cache holds, bytes read and written".to_owned(),
        });
        Ok(giga_per_second)
    }

    pub(super) fn card_copy(&mut self, case: &Case) -> Result<f64, BenchError> {
        let bytes = case.layout()?.picture_bytes();
        if let Some(known) = self.known_peak("cuda", PeakKind::Copy, bytes as u64, None) {
            return Ok(known);
        }
        let effort = self.effort.on_card();
        let size = case.layout()?.size();
        let times = self
            .card()?
            .copies((case.format, case.width, case.height), effort)?
            .map(|times| Spread::of(&times).map_or(f64::INFINITY, |s| s.median));
        let (method, milliseconds) = if times[0] <= times[1] {
            ("the driver's copy", times[0])
        } else {
            ("a copying kernel", times[1])
        };
        let giga_per_second = 2.0 * size as f64 / 1e9 / (milliseconds / 1e3);
        self.peaks.push(Peak {
            engine: "cuda".to_owned(),
            kind: PeakKind::Copy,
            bytes: Some(bytes as u64),
            threads: None,
            giga_per_second,
            method: format!("{method} within the card's memory, the faster of two, bytes read and written"),
        });
        Ok(giga_per_second)
    }

    pub(super) fn link(&mut self, bytes: usize) -> Result<f64, BenchError> {
        if let Some(known) = self.known_peak("cuda", PeakKind::Link, bytes as u64, None) {
            return Ok(known);
        }
        let time = self.effort.time.max(Duration::from_millis(50));
        let giga_per_second = 2.0 * bytes as f64 / 1e9 * duplex(self.device, bytes, time)?.rate();
        self.peaks.push(Peak {
            engine: "cuda".to_owned(),
            kind: PeakKind::Link,
            bytes: Some(bytes as u64),
            threads: None,
            giga_per_second,
            method: "copies from and to page-locked memory, in both directions at once, bytes up and down"
                .to_owned(),
        });
        Ok(giga_per_second)
    }

    pub(super) fn arithmetic(&mut self) -> Result<ArithmeticRates, BenchError> {
        if let Some(rates) = self.arithmetic {
            return Ok(rates);
        }
        let effort = self.effort.on_card();
        let rates = self.card()?.arithmetic(effort)?;
        let found = [
            (
                PeakKind::MultiplyAdd,
                Some(rates.multiply_add),
                "multiply-adds of 32-bit integers",
            ),
            (
                PeakKind::DotProduct,
                rates.dot_product,
                "four-way dot products of bytes",
            ),
            (PeakKind::Tensor, rates.tensor, "mma.m16n8k32 of bytes, no memory"),
        ];
        for (kind, rate, method) in found {
            self.peaks.extend(rate.map(|giga_per_second| Peak {
                engine: "cuda".to_owned(),
                kind,
                bytes: None,
                threads: None,
                giga_per_second,
                method: method.to_owned(),
            }));
        }
        self.arithmetic = Some(rates);
        Ok(rates)
    }
}
