//! Numbers, lists of names and quotations in sentences.

/// A count with its noun, such as "1 frame" and "0 frames".
pub fn counted(count: impl Into<u128>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// A number with at most three decimals and no idle zeros.
pub fn tidy(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in MiB, or in KiB where there are few, so that only none are shown as 0.
pub fn mebibytes(bytes: u128) -> String {
    let mebi = bytes as f64 / f64::from(1 << 20);
    match mebi {
        0.0 => "0 MiB".to_owned(),
        _ if bytes < 103 => counted(bytes, "byte"),
        ..0.1 => format!("{:.1} KiB", mebi * 1024.0),
        ..100.0 => format!("{mebi:.1} MiB"),
        _ => format!("{mebi:.0} MiB"),
    }
}

/// Bytes in the unit that suits them, of powers of 1000, such as "1.2 MB".
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if value < 9.95 => format!("{value:.1} {}", UNITS[unit]),
        _ => format!("{value:.0} {}", UNITS[unit]),
    }
}

/// Words as a list in a sentence: "a", "a and b", "a, b and c".
pub(crate) fn and_list<S: AsRef<str>>(words: &[S]) -> String {
    let joined = |words: &[S]| {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        words.join(", ")
    };
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => format!("{} and {}", joined(first), last.as_ref()),
    }
}

/// The most names that [`listed`] gives.
#[cfg(feature = "ffmpeg")]
const NAMED: usize = 12;

/// The first names, and how many there are beside these.
#[cfg(feature = "ffmpeg")]
pub(crate) fn listed(names: Vec<String>) -> String {
    first_of(NAMED, names.into_iter())
}

/// The first `most` names, and how many there are beside these.
#[cfg(feature = "ffmpeg")]
pub(crate) fn first_of(most: usize, names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(most);
    let names: Vec<String> = names.take(most).collect();
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// As much of a text as a message quotes, at most 40 characters: whatever file it comes from, it is not
/// printed.
pub(crate) fn shortened(text: &str) -> String {
    shortened_to(40, text)
}

/// The first `most` characters of a text, with dots behind them where there are more.
pub(crate) fn shortened_to(most: usize, text: &str) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ä".repeat(41);
        assert_eq!(shortened(&long), format!("{}...", &long[..80]));
        assert_eq!(shortened(&long[..80]), &long[..80]);
    }

    #[test]
    fn the_last_word_of_a_list_has_an_and() {
        let lists = [0, 1, 2, 3].map(|n| and_list(&["a", "b", "c"][..n]));
        assert_eq!(lists, ["", "a", "a and b", "a, b and c"]);
    }

    #[test]
    fn idle_zeros_are_left_out() {
        assert_eq!(tidy(25.0), "25");
        assert_eq!(tidy(30000.0 / 1001.0), "29.97");
    }

    #[test]
    fn few_are_not_none() {
        assert_eq!(
            [0_u64, 1, 2].map(|count| counted(count, "frame")),
            ["0 frames", "1 frame", "2 frames"]
        );
        let sizes = [0, 1, 102, 1024, 12_345, 104_858, 1 << 20, 200 << 20].map(mebibytes);
        assert_eq!(
            sizes,
            [
                "0 MiB",
                "1 byte",
                "102 bytes",
                "1.0 KiB",
                "12.1 KiB",
                "0.1 MiB",
                "1.0 MiB",
                "200 MiB"
            ]
        );
    }

    #[test]
    fn sizes_have_the_unit_that_suits_them() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (9_950, "10 kB"),
            (999_600, "1.0 MB"),
            (2_500_000_000_000_000, "2500 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[cfg(feature = "ffmpeg")]
    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(vec!["a".to_owned(), "b".to_owned()]), "a, b");
        let many = (0..NAMED + 3).map(|n| n.to_string()).collect();
        assert!(listed(many).ends_with("11 and 3 more"));
    }
}
