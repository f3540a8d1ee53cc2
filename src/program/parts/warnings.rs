//! Warnings of several parts as those of one run: each is given once, and counts of damage are added up.

use crate::frame::{Concealed, Warning, WarningKind};

/// The warnings without repetitions, in the order in which they first come. Counts of concealed damage of one
/// input become their sum.
pub fn merged<'a>(warnings: impl IntoIterator<Item = &'a Warning>) -> Vec<Warning> {
    let mut all: Vec<Warning> = Vec::new();
    let mut sums: Vec<(usize, &str, Concealed)> = Vec::new();
    for warning in warnings {
        match &warning.kind {
            WarningKind::Concealed { input, found } => {
                match sums.iter_mut().find(|(_, other, _)| other == input) {
                    Some((_, _, sum)) => *sum += *found,
                    None => {
                        sums.push((all.len(), input, *found));
                        all.push(warning.clone());
                    }
                }
            }
            _ if all.contains(warning) => {}
            _ => all.push(warning.clone()),
        }
    }
    for (place, input, sum) in sums {
        all[place] = Warning::concealed(input, sum);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_up_and_all_else_is_given_once() {
        let concealed = |input, packets, frames| Warning::concealed(input, Concealed { packets, frames });
        let irregular = || Warning::from("the timestamps are irregular".to_owned());
        let warnings = [
            concealed("a.mkv", 0, 1),
            irregular(),
            concealed("a.mkv", 0, 1),
            concealed("b.mkv", 3, 0),
            irregular(),
            concealed("a.mkv", 1, 0),
        ];
        assert_eq!(
            merged(&warnings),
            [concealed("a.mkv", 1, 2), irregular(), concealed("b.mkv", 3, 0)]
        );
    }
}
