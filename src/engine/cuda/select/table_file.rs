//! A table that was measured here, on disk: one file a card beside the compiled kernels.
//!
//! The file is JSON: the table, and everything that its times depend on. A damaged file, or one whose facts
//! have changed, is ignored and reported.

use super::hopper;
use super::table::{Origin, Table, TableCell};
use crate::engine::EngineError;
use crate::engine::cuda::compile::cache::{Cache, CacheError, Digest};
use crate::engine::cuda::compile::kernel_texts_digest;
use crate::engine::cuda::driver::device::{Device, DeviceInfo, driver_version, nvrtc_version};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The facts on which a table's times depend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    card: String,
    compute_capability: (u32, u32),
    driver: (u32, u32),
    nvrtc: (u32, u32),
    framepipe: String,
    /// A digest of all kernel texts.
    kernels: String,
}

impl Facts {
    fn of(card: &DeviceInfo) -> Result<Facts, EngineError> {
        Ok(Facts {
            card: card.name.clone(),
            compute_capability: card.compute_capability,
            driver: driver_version()?,
            nvrtc: nvrtc_version()?,
            framepipe: env!("CARGO_PKG_VERSION").to_owned(),
            kernels: kernel_texts_digest().to_string(),
        })
    }

    /// Card and compute capability decide the name, so that the table of a newer driver or program replaces
    /// an old one.
    fn file_name(&self) -> String {
        let (major, minor) = self.compute_capability;
        let card = format!("{} {major}.{minor}", self.card);
        format!("{}.tuning", Digest::of_parts(&[&card]))
    }

    /// The first fact that has changed.
    fn difference(&self, now: &Facts) -> Option<String> {
        let dotted = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        let pairs = [
            ("card", self.card.clone(), now.card.clone()),
            (
                "compute capability",
                dotted(self.compute_capability),
                dotted(now.compute_capability),
            ),
            ("driver", dotted(self.driver), dotted(now.driver)),
            ("NVRTC", dotted(self.nvrtc), dotted(now.nvrtc)),
            ("framepipe", self.framepipe.clone(), now.framepipe.clone()),
        ];
        let other = pairs.into_iter().find(|(_, then, now)| then != now);
        match other {
            Some((what, then, now)) => Some(format!("{what} was {then} and is {now}")),
            None => (self.kernels != now.kernels).then(|| "the kernels were others".to_owned()),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    facts: Facts,
    date: String,
    cells: Vec<TableCell>,
}

/// Why a file is ignored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Ignored {
    #[error("the measured table: {0}")]
    Unreadable(CacheError),
    #[error("the table {0} is damaged; `framepipe bench tune` makes it anew")]
    Damaged(PathBuf),
    #[error("the table {0} is of another time: {1}; `framepipe bench tune` makes it anew")]
    Stale(PathBuf, String),
}

/// The file of one card.
struct TableFile<'a> {
    cache: &'a Cache,
    facts: Facts,
}

impl TableFile<'_> {
    /// The date and the cells; `None` if there is no file.
    fn load(&self) -> Result<Option<(String, Vec<TableCell>)>, Ignored> {
        let name = self.facts.file_name();
        let bytes = match self.cache.read(&name) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(CacheError::Damaged(path)) => return Err(Ignored::Damaged(path)),
            Err(error) => return Err(Ignored::Unreadable(error)),
        };
        let path = self.cache.path(&name).map_err(Ignored::Unreadable)?;
        let kept: Kept = match serde_json::from_slice::<Kept>(&bytes) {
            Ok(kept) if kept.cells.iter().all(is_possible) => kept,
            _ => return Err(Ignored::Damaged(path)),
        };
        match kept.facts.difference(&self.facts) {
            Some(difference) => Err(Ignored::Stale(path, difference)),
            None => Ok(Some((kept.date, kept.cells))),
        }
    }

    /// Replaces the file by renaming, so that no reader sees half of it.
    fn store(&self, date: &str, cells: &[TableCell]) -> Result<PathBuf, EngineError> {
        let failed = |reason: String| EngineError::Device {
            doing: "keeping the measured table".to_owned(),
            reason,
        };
        let kept = Kept {
            facts: self.facts.clone(),
            date: date.to_owned(),
            cells: cells.to_vec(),
        };
        let body = serde_json::to_string_pretty(&kept).map_err(|e| failed(e.to_string()))?;
        let name = self.facts.file_name();
        let put = self.cache.put(&name, body.as_bytes());
        put.and_then(|()| self.cache.path(&name))
            .map_err(|error| failed(error.to_string()))
    }
}

fn is_possible(cell: &TableCell) -> bool {
    cell.work.is_possible()
        && cell
            .times
            .iter()
            .all(|t| t.milliseconds.is_finite() && t.milliseconds > 0.0)
}

impl Table {
    /// The table by which `auto` chooses on `device`: what was measured here, else what is built in for the
    /// card, else the rule.
    pub(crate) fn for_card(device: &Device, cache: &Cache) -> Result<Table, EngineError> {
        let file = TableFile {
            cache,
            facts: Facts::of(&device.info)?,
        };
        Ok(choose(&file, &device.info))
    }

    /// Keeps what was measured on `device` for later runs; returns the file.
    pub(crate) fn keep(
        device: &Device,
        cache: &Cache,
        date: &str,
        cells: &[TableCell],
    ) -> Result<PathBuf, EngineError> {
        let file = TableFile {
            cache,
            facts: Facts::of(&device.info)?,
        };
        file.store(date, cells)
    }
}

fn choose(file: &TableFile<'_>, card: &DeviceInfo) -> Table {
    let otherwise = || hopper::table(card).unwrap_or_else(Table::rule);
    match file.load() {
        Ok(Some((date, cells))) => Table {
            origin: Origin::Measured(date),
            cells,
            ignored: None,
        },
        Ok(None) => otherwise(),
        Err(ignored) => {
            match &ignored {
                Ignored::Unreadable(error @ CacheError::Folder { .. }) => file.cache.warn(error),
                ignored => tracing::warn!("{ignored}"),
            }
            Table {
                ignored: Some(ignored.to_string()),
                ..otherwise()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::tests::gray;
    use super::super::table::VariantTime;
    use super::*;
    use crate::engine::cuda::kernels::variant::MemoryVariant;

    fn facts() -> Facts {
        Facts {
            card: "NVIDIA H200".to_owned(),
            compute_capability: (9, 0),
            driver: (13, 0),
            nvrtc: (13, 0),
            framepipe: "0.1.0".to_owned(),
            kernels: "00".to_owned(),
        }
    }

    fn card() -> DeviceInfo {
        DeviceInfo {
            name: "NVIDIA H200".to_owned(),
            compute_capability: (9, 0),
            ..DeviceInfo::default()
        }
    }

    fn cells() -> Vec<TableCell> {
        vec![TableCell {
            work: gray(false, 5, 2_073_600),
            times: vec![VariantTime {
                variant: MemoryVariant::ConstantShared,
                milliseconds: 0.012_345_678_901,
            }],
        }]
    }

    #[test]
    fn a_table_comes_back_as_it_was_and_takes_the_place_of_the_built_in() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().join("made on demand"));
        let file = TableFile {
            cache: &cache,
            facts: facts(),
        };
        assert_eq!(file.load(), Ok(None));
        assert_eq!(choose(&file, &card()).origin, Origin::BuiltIn(hopper::CARDS));
        let other = DeviceInfo::default();
        assert_eq!(choose(&file, &other).origin, Origin::Rule);
        let path = file.store("a date", &cells()).unwrap();
        assert_eq!(file.load(), Ok(Some(("a date".to_owned(), cells()))));
        let table = choose(&file, &card());
        assert_eq!(table.origin, Origin::Measured("a date".to_owned()));
        assert_eq!(table.ignored, None);
        // A second one replaces it, and nothing else lies there.
        file.store("later", &[]).unwrap();
        assert_eq!(file.load(), Ok(Some(("later".to_owned(), Vec::new()))));
        let there: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(there.len(), 1);
    }

    #[test]
    fn a_damaged_table_is_ignored_and_that_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().to_owned());
        let file = TableFile {
            cache: &cache,
            facts: facts(),
        };
        let path = file.store("a date", &cells()).unwrap();
        let good = std::fs::read(&path).unwrap();
        let mut flipped = good.clone();
        let digit = good.windows(7).position(|w| w == b"0.01234").unwrap() + 5;
        flipped[digit] = b'9';
        let impossible = {
            let name = file.facts.file_name();
            let body = String::from_utf8(cache.read(&name).unwrap().unwrap()).unwrap();
            let other = body.replace("\"channels\": 1", "\"channels\": 0");
            assert_ne!(body, other);
            cache.put(&name, other.as_bytes()).unwrap();
            std::fs::read(&path).unwrap()
        };
        for bad in [&good[..good.len() / 2], &flipped, b"", b"\xff\xfe\n", &impossible] {
            std::fs::write(&path, bad).unwrap();
            assert_eq!(file.load(), Err(Ignored::Damaged(path.clone())));
            let table = choose(&file, &card());
            assert_eq!(table.origin, Origin::BuiltIn(hopper::CARDS));
            assert!(table.ignored.unwrap().contains("is damaged"));
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(file.load(), Err(Ignored::Unreadable(..))));
    }

    #[test]
    fn a_table_in_a_folder_that_others_can_write_to_is_ignored_and_none_is_put_there() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().to_owned());
        let file = TableFile {
            cache: &cache,
            facts: facts(),
        };
        file.store("a date", &cells()).unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let table = choose(&file, &card());
        assert_eq!(table.origin, Origin::BuiltIn(hopper::CARDS));
        assert!(table.ignored.unwrap().contains("mode 0777"));
        let error = file.store("a date", &cells()).unwrap_err().to_string();
        assert!(error.contains("mode 0777"), "{error}");
    }

    #[test]
    fn a_table_of_another_driver_program_or_kernel_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().to_owned());
        let file = |facts| TableFile { cache: &cache, facts };
        file(facts()).store("a date", &cells()).unwrap();
        let changed: [(Facts, &str); 4] = [
            (
                Facts {
                    driver: (13, 1),
                    ..facts()
                },
                "driver was 13.0 and is 13.1",
            ),
            (
                Facts {
                    nvrtc: (12, 9),
                    ..facts()
                },
                "NVRTC was 13.0 and is 12.9",
            ),
            (
                Facts {
                    framepipe: "0.2.0".to_owned(),
                    ..facts()
                },
                "framepipe was 0.1.0 and is 0.2.0",
            ),
            (
                Facts {
                    kernels: "11".to_owned(),
                    ..facts()
                },
                "the kernels were others",
            ),
        ];
        for (now, why) in changed {
            let table = choose(&file(now), &card());
            let ignored = table.ignored.unwrap();
            assert!(
                ignored.contains(why) && ignored.contains("bench tune"),
                "{ignored}"
            );
            assert_eq!(table.origin, Origin::BuiltIn(hopper::CARDS));
        }
        // Another card has another file.
        let other = Facts {
            card: "NVIDIA L4".to_owned(),
            ..facts()
        };
        assert_eq!(file(other).load(), Ok(None));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        std::fs::write(&blocked, b"").unwrap();
        let cache = Cache::in_folder(blocked.join("below a file"));
        let file = TableFile {
            cache: &cache,
            facts: facts(),
        };
        let error = file.store("a date", &cells()).unwrap_err().to_string();
        assert!(error.contains("XDG_CACHE_HOME"), "{error}");
    }
}
