//! The machine and the versions of a measurement.

use crate::engine::cpu::InstructionSet;
use crate::engine::cuda;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Machine {
    /// The processor's name, as the system states it.
    pub cpu: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// The best instruction set of it that the CPU engine uses.
    pub instruction_set: String,
    /// Bytes of the last-level cache; `None` if the system does not state them.
    pub cache_bytes: Option<u64>,
    /// The card's name; `None` if there is none.
    pub gpu: Option<String>,
    /// The card's compute capability, such as "9.0".
    pub compute_capability: Option<String>,
    /// The card's streaming multiprocessors.
    pub multiprocessors: Option<u32>,
    /// Bytes of the card's level-2 cache.
    pub l2_bytes: Option<u64>,
}

/// The versions of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Versions {
    /// framepipe's version.
    pub framepipe: String,
    /// The newest CUDA version that the driver supports; `None` without a driver.
    pub cuda_driver: Option<String>,
    /// NVRTC's version; `None` without it.
    pub nvrtc: Option<String>,
}

impl Machine {
    /// This machine, with card number `device` if there is one.
    pub fn here(device: usize) -> (Machine, Versions) {
        let mut machine = Machine {
            cpu: processor(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            instruction_set: InstructionSet::detect().to_string(),
            cache_bytes: last_level_cache(),
            ..Machine::default()
        };
        let mut versions = Versions {
            framepipe: env!("CARGO_PKG_VERSION").to_owned(),
            ..Versions::default()
        };
        let dotted = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        if let Ok(found) = cuda::devices() {
            versions.cuda_driver = Some(dotted(found.driver));
            versions.nvrtc = found.nvrtc.ok().map(dotted);
            if let Some(card) = found.cards.get(device) {
                machine.gpu = Some(card.name.clone());
                machine.compute_capability = Some(dotted(card.compute_capability));
                machine.multiprocessors = Some(card.multiprocessors);
                machine.l2_bytes = Some(card.l2_bytes);
            }
        }
        (machine, versions)
    }
}

/// The processor's name, as Linux states it.
pub fn processor() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|l| l.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| format!("unnamed {} processor", std::env::consts::ARCH))
}

/// The last-level cache that is assumed where the system does not report it.
const USUAL_CACHE: u64 = 32 << 20;

/// Bytes that pictures and results which take turns have together at least, so that none of them is in a
/// cache any more when its turn comes: four times the last-level cache, of which `known` is the size if it is
/// known.
pub fn cold_bytes(known: Option<u64>) -> u64 {
    4 * known.unwrap_or(USUAL_CACHE)
}

/// Bytes of the first core's largest cache, as Linux states them.
pub fn last_level_cache() -> Option<u64> {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    caches
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.ok()?.path().join("size")).ok()?;
            cache_size(text.trim())
        })
        .max()
}

/// Bytes of a size as Linux writes it: "32768K".
fn cache_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Now, in UTC, as `2026-11-21T10:05:00Z`.
pub fn now() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    date_and_time(seconds)
}

/// Seconds since 1970 as a date and a time. The calendar's rule (every 400 years have the same days) is
/// counted from the first of March, so that the leap day comes last.
fn date_and_time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_agree_with_the_calendar() {
        assert_eq!(date_and_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_and_time(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(date_and_time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date_and_time(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(date_and_time(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn cache_sizes_have_units() {
        assert_eq!(cache_size("32768K"), Some(32 << 20));
        assert_eq!(cache_size("64M"), Some(64 << 20));
        assert_eq!(cache_size("12"), Some(12));
        assert_eq!(cache_size("12Q"), None);
        assert_eq!(cache_size(""), None);
    }

    #[test]
    fn this_machine_has_a_processor_and_a_version() {
        let (machine, versions) = Machine::here(0);
        assert!(!machine.cpu.is_empty() && machine.cores > 0);
        assert_eq!(versions.framepipe, env!("CARGO_PKG_VERSION"));
    }
}
