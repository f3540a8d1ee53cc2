//! The timing table: the fastest memory variant by a launch's features, and the rule where nothing was
//! measured.

use super::features::LaunchFeatures;
use crate::engine::cuda::kernels::variant::MemoryVariant;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The time of one variant for a launch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantTime {
    /// Where kernels keep weights and pixels.
    pub variant: MemoryVariant,
    /// Milliseconds of one frame's kernels, the median.
    pub milliseconds: f64,
}

/// A launch's features and the times of the variants that were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableCell {
    /// The features of the launch.
    pub work: LaunchFeatures,
    /// In any order.
    pub times: Vec<VariantTime>,
}

impl TableCell {
    fn time(&self, variant: MemoryVariant) -> Option<f64> {
        self.times
            .iter()
            .find(|t| t.variant == variant)
            .map(|t| t.milliseconds)
    }
}

/// Where a table comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Part of the program: for which cards, and on which of them it was measured.
    BuiltIn(&'static str),
    /// Measured on this machine's card at a date.
    Measured(String),
    /// No times.
    Rule,
}

/// The table by which `auto` chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Where it comes from.
    pub origin: Origin,
    /// What was measured; empty for [`Origin::Rule`].
    pub cells: Vec<TableCell>,
    /// Why a table that was measured here is not used, if there is one.
    pub ignored: Option<String>,
}

/// A variant and why it was chosen, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariantChoice {
    pub(crate) variant: MemoryVariant,
    pub(crate) why: String,
}

impl Table {
    /// The table for cards that were never measured: no times, the rule alone.
    pub fn rule() -> Table {
        Table {
            origin: Origin::Rule,
            cells: Vec::new(),
            ignored: None,
        }
    }

    /// The fastest of `able`, the variants that can do the work; `None` if there are none.
    ///
    /// The nearest cell decides ([`LaunchFeatures::distance`], the first of equals), of those with a time of
    /// a variant in `able`, or with one of tensor cores if these are in `able`.
    pub(crate) fn pick(&self, work: &LaunchFeatures, able: &[MemoryVariant]) -> Option<VariantChoice> {
        let tensor = able.contains(&MemoryVariant::Tensor);
        let known = |cell: &&TableCell| match tensor {
            true => cell.time(MemoryVariant::Tensor).is_some(),
            false => able.iter().any(|v| cell.time(*v).is_some()),
        };
        let near = self.cells.iter().filter(known).filter_map(|cell| {
            let distance = cell.work.distance(work)?;
            Some((distance, cell))
        });
        let Some((distance, cell)) = near.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return by_rule(able).map(|variant| VariantChoice {
                variant,
                why: self.with_origin("which has no time for it: tensor cores, or else registers, are taken"),
            });
        };
        let mut times: Vec<(MemoryVariant, f64)> = able
            .iter()
            .filter_map(|&variant| Some((variant, cell.time(variant)?)))
            .collect();
        times.sort_by(|a, b| a.1.total_cmp(&b.1));
        let list: Vec<String> = times.iter().map(|(v, t)| format!("{v} {t:.4} ms")).collect();
        let nearness = if distance == 0.0 { "" } else { "nearest " };
        times.first().map(|&(variant, _)| VariantChoice {
            variant,
            why: self.with_origin(&format!("{nearness}cell {}: {}", cell.work, list.join(", "))),
        })
    }

    /// The end of a sentence: which table decided, and what it says.
    fn with_origin(&self, what: &str) -> String {
        let ignored = self.ignored.as_ref();
        let ignored = ignored.map_or_else(String::new, |why| format!(" ({why})"));
        format!("by {}, {what}{ignored}", self.origin)
    }
}

/// The rule where nothing was measured: the order of variants on the one card that was, for all masks.
fn by_rule(able: &[MemoryVariant]) -> Option<MemoryVariant> {
    let mut order = [
        MemoryVariant::Tensor,
        MemoryVariant::Registers,
        MemoryVariant::ConstantShared,
    ]
    .into_iter();
    order.find(|v| able.contains(v)).or_else(|| able.first().copied())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn(cards) => write!(f, "the built-in table of {cards}"),
            Origin::Measured(date) => write!(f, "the table measured here on {date}"),
            Origin::Rule => f.write_str(
                "the rule for cards that were not measured (`framepipe bench tune` measures this one)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::tests::gray;
    use super::*;
    use MemoryVariant::{Constant, ConstantShared, Global, Registers, Tensor};

    fn cell(work: LaunchFeatures, times: &[(MemoryVariant, f64)]) -> TableCell {
        let times = times.iter().map(|&(variant, milliseconds)| VariantTime {
            variant,
            milliseconds,
        });
        TableCell {
            work,
            times: times.collect(),
        }
    }

    fn measured() -> Table {
        Table {
            origin: Origin::Measured("2026-11-21T10:00:00Z".to_owned()),
            cells: vec![
                cell(
                    gray(false, 3, 1 << 20),
                    &[(Tensor, 0.02), (Registers, 0.01), (Global, 0.03)],
                ),
                cell(
                    gray(false, 15, 1 << 20),
                    &[(Tensor, 0.05), (Registers, 0.2), (ConstantShared, 0.1)],
                ),
                cell(gray(true, 15, 1 << 20), &[(Registers, 0.04), (Global, 0.03)]),
            ],
            ignored: None,
        }
    }

    #[test]
    fn the_fastest_of_those_that_can_do_it_is_taken() {
        let table = measured();
        let all = [Tensor, Registers, ConstantShared, Global];
        let pick = |work: LaunchFeatures, able: &[MemoryVariant]| table.pick(&work, able).unwrap().variant;
        // Tensor cores too only where they are the fastest.
        assert_eq!(pick(gray(false, 3, 1 << 20), &all), Registers);
        assert_eq!(pick(gray(false, 15, 1 << 20), &all), Tensor);
        assert_eq!(pick(gray(false, 15, 1 << 20), &all[1..]), ConstantShared);
        assert_eq!(pick(gray(false, 15, 1 << 20), &[Registers]), Registers);
        assert_eq!(pick(gray(true, 15, 1 << 20), &all[1..]), Global);
        // No cell has a time of tensor cores with separable masks, so the rule speaks.
        assert_eq!(pick(gray(true, 15, 1 << 20), &all), Tensor);
        assert_eq!(pick(gray(false, 3, 1 << 20), &[Constant]), Constant);
        assert_eq!(table.pick(&gray(false, 3, 1 << 20), &[]), None);
    }

    #[test]
    fn what_was_not_measured_goes_by_the_nearest_cell() {
        let table = measured();
        let pick = |work| table.pick(&work, &[Tensor, Registers, ConstantShared]).unwrap();
        let exact = pick(gray(false, 3, 1 << 20)).why;
        assert!(
            exact.contains("measured here on 2026-11-21T10:00:00Z, cell direct 3x3"),
            "{exact}"
        );
        assert!(exact.contains("registers 0.0100 ms, tensor 0.0200 ms"), "{exact}");
        // 25 and 81 taps lie on either side of the middle of 9 and 225, 45.
        assert_eq!(pick(gray(false, 5, 1 << 22)).variant, Registers);
        assert_eq!(pick(gray(false, 9, 1 << 18)).variant, Tensor);
        let near = pick(gray(false, 9, 1 << 18)).why;
        assert!(near.contains("nearest cell direct 15x15"), "{near}");
    }

    #[test]
    fn without_times_the_rule_says_so_and_why_a_table_is_not_used() {
        let mut rule = Table::rule();
        rule.ignored = Some("x.tuning is damaged".to_owned());
        let plain = [Registers, ConstantShared, Global];
        let pick = |work: LaunchFeatures| rule.pick(&work, &plain).unwrap();
        assert_eq!(pick(gray(false, 63, 100)).variant, Registers);
        assert_eq!(
            rule.pick(&gray(false, 3, 100), &plain[1..]).unwrap().variant,
            ConstantShared
        );
        let why = pick(gray(true, 63, 100)).why;
        assert!(
            why.contains("rule for cards") && why.contains("x.tuning is damaged"),
            "{why}"
        );
    }
}
