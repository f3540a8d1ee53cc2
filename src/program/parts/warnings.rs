//! Warnings of several parts as those of one run: each is given once, and counts of damage are added up.

use crate::source::video::Concealed;

/// The warnings without repetitions, in the order in which they first come. Counts of concealed damage of one
/// input become their sum.
pub fn merged<'a>(warnings: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut sums: Vec<(usize, &str, Concealed)> = Vec::new();
    for warning in warnings {
        match concealed(warning) {
            Some((name, counts)) => match sums.iter_mut().find(|(_, other, _)| *other == name) {
                Some((_, _, sum)) => *sum += counts,
                None => {
                    sums.push((all.len(), name, counts));
                    all.push(warning.to_owned());
                }
            },
            None if all.iter().any(|other| other == warning) => {}
            None => all.push(warning.to_owned()),
        }
    }
    for (place, name, sum) in sums {
        all[place] = format!("{name}{sum}");
    }
    all
}

/// The counts of damage that a warning holds, and what stands before them, such as the input's name.
pub(super) fn concealed(warning: &str) -> Option<(&str, Concealed)> {
    let begin = warning.rfind(": ").map_or(0, |at| at + 2);
    let (name, counts) = warning.split_at(begin);
    Some((name, Concealed::parse(counts)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_up_and_all_else_is_given_once() {
        let warnings = [
            "a.mkv: 1 damaged frame concealed by the decoder; --strict would fail",
            "the timestamps are irregular",
            "a.mkv: 1 damaged frame concealed by the decoder; --strict would fail",
            "b.mkv: 3 corrupt packets concealed or skipped; --strict would fail",
            "the timestamps are irregular",
            "a.mkv: 1 corrupt packet concealed or skipped; --strict would fail",
        ];
        assert_eq!(
            merged(warnings),
            [
                "a.mkv: 1 corrupt packet and 2 damaged frames concealed or skipped; --strict would fail",
                "the timestamps are irregular",
                "b.mkv: 3 corrupt packets concealed or skipped; --strict would fail",
            ]
        );
    }
}
